//! Numbers as git writes them.

/// A variable-length number, as in a pack's offsets, an index of version 4, and reftables.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut byte = *bytes.get(*at)?;
    *at += 1;
    let mut value = u64::from(byte & 127);
    while byte & 128 != 0 {
        byte = *bytes.get(*at)?;
        *at += 1;
        value = (value + 1).checked_mul(128).filter(|v| v >> 62 == 0)? | u64::from(byte & 127);
    }
    Some(value)
}

/// Big-endian.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(two.try_into().ok()?))
}

/// Big-endian.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

/// Big-endian.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_be_bytes(eight.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_form() {
        for (bytes, value) in
            [(&[0][..], 0), (&[127], 127), (&[0x80, 0], 128), (&[0x80, 127], 255), (&[0x80, 0x80, 0], 16_512)]
        {
            let mut at = 0;
            assert_eq!((varint(bytes, &mut at), at), (Some(value), bytes.len()));
        }
        assert_eq!(varint(&[0xff; 20], &mut 0), None);
        assert_eq!(varint(&[0x80], &mut 0), None);
    }
}
