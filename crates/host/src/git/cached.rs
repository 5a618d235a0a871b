//! The trees that git caches in its index, for folders in which nothing was staged since they were computed.

use super::hash::{Format, Id};

/// One folder, with or without a tree.
pub(super) struct CachedFolder<'a> {
    name: &'a [u8],
    /// How many index entries are beneath it, and the tree they form; `None` if unknown.
    pub tree: Option<(usize, Id)>,
    /// Position of the first folder after this one and its contents.
    next: usize,
}

/// All folders, parents first.
pub(super) struct CachedTree<'a> {
    pub folders: Vec<CachedFolder<'a>>,
}

impl<'a> CachedTree<'a> {
    /// Reads the index extension. `None` if it is damaged: git can do without it, and so can we.
    pub(super) fn new(mut bytes: &'a [u8], format: Format) -> Option<Self> {
        let mut folders = Vec::new();
        // Incomplete folders, and how many of their subfolders are still to come.
        let mut open: Vec<(usize, usize)> = Vec::new();
        loop {
            let (folder, inside, rest) = parse(bytes, format)?;
            bytes = rest;
            open.push((folders.len(), inside));
            folders.push(folder);
            while let Some((at, left)) = open.last_mut() {
                if *left > 0 {
                    *left -= 1;
                    break;
                }
                folders[*at].next = folders.len();
                open.pop();
            }
            if open.is_empty() {
                return Some(Self { folders });
            }
        }
    }

    /// The root's tree and its number of entries, reading nothing else.
    pub(super) fn root(bytes: &[u8], format: Format) -> Option<(usize, Id)> {
        parse(bytes, format)?.0.tree
    }

    /// The subfolders of a folder, in name order.
    pub(super) fn inside(&self, folder: usize) -> Vec<(&'a [u8], usize)> {
        let mut found = Vec::new();
        let mut at = folder + 1;
        while at < self.folders[folder].next {
            found.push((self.folders[at].name, at));
            at = self.folders[at].next;
        }
        found.sort_unstable();
        found
    }
}

/// A folder's record, the number of its subfolders, and the rest.
fn parse(bytes: &[u8], format: Format) -> Option<(CachedFolder<'_>, usize, &[u8])> {
    let (name, rest) = split(bytes, 0)?;
    let (count, rest) = split(rest, b' ')?;
    let (inside, rest) = split(rest, b'\n')?;
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i32>().ok();
    // A negative count means that something in the folder was staged since, and that there is no id.
    let (tree, rest) = match usize::try_from(number(count)?) {
        Ok(count) => {
            let (id, rest) = rest.split_at_checked(format.len())?;
            (Some((count, Id::from_bytes(id))), rest)
        }
        Err(_) => (None, rest),
    };
    Some((CachedFolder { name, tree, next: 0 }, usize::try_from(number(inside)?).ok()?, rest))
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == at)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_found_by_their_names_at_any_depth() {
        let mut bytes = b"\0-1 2\n".to_vec();
        bytes.extend_from_slice(b"b\x003 1\n");
        bytes.extend_from_slice(&[1; 20]);
        bytes.extend_from_slice(b"deep\x001 0\n");
        bytes.extend_from_slice(&[2; 20]);
        bytes.extend_from_slice(b"a\x004 0\n");
        bytes.extend_from_slice(&[3; 20]);
        let tree = CachedTree::new(&bytes, Format::Sha1).unwrap();
        assert!(tree.folders[0].tree.is_none());
        assert_eq!(tree.inside(0), [(&b"a"[..], 3), (b"b", 1)]);
        assert_eq!(tree.inside(1), [(&b"deep"[..], 2)]);
        assert_eq!(tree.inside(2), []);
        assert!(tree.folders[2].tree == Some((1, Id::from_bytes(&[2; 20]))));
        for end in 0..bytes.len() {
            assert!(CachedTree::new(&bytes[..end], Format::Sha1).is_none(), "cut at {end}");
        }
        assert!(CachedTree::new(b"\x001 -5\n", Format::Sha1).is_none());
    }
}
