//! References in tables (`reftable/`), which git can use instead of files.
//!
//! Only looks up a name: newest table first, block by block.

use std::path::Path;

use super::Repository;
use super::files;
use super::hash::{Format, Id};
use super::number::varint;
use super::refs::{Reference, folder_of};

const LARGEST_LIST: u64 = 64 << 10;
const LARGEST_TABLE: u64 = 256 << 20;
/// Git merges tables long before there are this many.
const MOST_TABLES: usize = 1000;

/// Finds a reference. A worktree has its own tables for HEAD and its kin.
pub(super) fn look_up(repository: &Repository, name: &[u8], format: Format) -> Result<Option<Reference>, String> {
    let folder = folder_of(repository, name).join("reftable");
    // Git may merge tables while they are read; then the list has changed.
    let mut last = Err(String::new());
    for _ in 0..3 {
        last = look_up_in(&folder, name, format);
        if last.is_ok() {
            break;
        }
    }
    last.map_err(|why| format!("reference {}: {why}", String::from_utf8_lossy(name)))
}

fn look_up_in(folder: &Path, name: &[u8], format: Format) -> Result<Option<Reference>, String> {
    let list = files::read(&folder.join("tables.list"), LARGEST_LIST).map_err(|e| e.to_string())?;
    let (list, _) = list.ok_or("the list of tables is missing")?;
    let list = String::from_utf8(list).map_err(|_| "the list of tables is damaged")?;
    let tables: Vec<&str> = list.lines().filter(|line| !line.is_empty()).collect();
    if tables.len() > MOST_TABLES || tables.iter().any(|table| table.contains('/') || table.starts_with('.')) {
        return Err("the list of tables is damaged".into());
    }
    for table in tables.iter().rev() {
        let bytes = files::read(&folder.join(table), LARGEST_TABLE).map_err(|e| e.to_string())?;
        let (bytes, _) = bytes.ok_or_else(|| format!("the table {table} is missing"))?;
        match find(&bytes, name, format).ok_or_else(|| format!("the table {table} is damaged"))? {
            RefFound::Nothing => {}
            RefFound::Deleted => return Ok(None),
            RefFound::Is(reference) => return Ok(Some(reference)),
        }
    }
    Ok(None)
}

enum RefFound {
    Nothing,
    Deleted,
    Is(Reference),
}

/// Searches the blocks of references, which come first in a table and are sorted. `None` if the table is damaged.
fn find(table: &[u8], name: &[u8], format: Format) -> Option<RefFound> {
    let version = *table.get(4)?;
    let (header, footer) = match (table.get(..4)?, version) {
        (b"REFT", 1) if format == Format::Sha1 => (24, 68),
        (b"REFT", 2) => (28, 72),
        _ => return None,
    };
    let block_size = u24(table, 5)?;
    // A truncated table would hide its entries, and an older one would be believed.
    let end = table.len().checked_sub(footer).filter(|end| *end >= header)?;
    let (footer, sum) = table[end..].split_at(footer - 4);
    let mut crc = flate2::Crc::new();
    crc.update(footer);
    if footer[..header] != table[..header] || sum != crc.sum().to_be_bytes() {
        return None;
    }
    let mut at = header;
    while at < end {
        match table[at] {
            b'r' => {}
            // Padding between aligned blocks.
            0 => {
                at += 1;
                continue;
            }
            // Everything else comes after the references.
            _ => break,
        }
        // The first block's length includes the table's header.
        let block_start = if at == header { 0 } else { at };
        let block_end = block_start + u24(table, at + 1)?;
        if block_end > end || block_end <= at {
            return None;
        }
        match find_in_block(&table[at..block_end], name, format)? {
            None => return Some(RefFound::Nothing),
            Some(RefFound::Nothing) => {}
            Some(found) => return Some(found),
        }
        at = if block_size > 0 { (block_start + block_size).max(block_end) } else { block_end };
    }
    Some(RefFound::Nothing)
}

/// Searches a block. The inner `None` means that the name would have come already.
fn find_in_block(block: &[u8], name: &[u8], format: Format) -> Option<Option<RefFound>> {
    let restarts = u16::from_be_bytes(block.get(block.len().checked_sub(2)?..)?.try_into().ok()?) as usize;
    let end = block.len().checked_sub(2 + restarts * 3)?;
    let mut at = 4;
    let mut key = Vec::new();
    while at < end {
        let prefix = varint(block, &mut at)? as usize;
        let suffix_and_type = varint(block, &mut at)?;
        let (suffix, kind) = ((suffix_and_type >> 3) as usize, suffix_and_type & 7);
        if prefix > key.len() {
            return None;
        }
        key.truncate(prefix);
        key.extend_from_slice(block.get(at..at.checked_add(suffix)?)?);
        at += suffix;
        varint(block, &mut at)?;
        let value = match kind {
            0 => RefFound::Deleted,
            1 | 2 => {
                let id = Id::from_bytes(block.get(at..at + format.len())?);
                at += format.len() * kind as usize;
                RefFound::Is(Reference::Id(id))
            }
            3 => {
                let len = varint(block, &mut at)? as usize;
                let target = block.get(at..at.checked_add(len)?)?;
                at += len;
                RefFound::Is(Reference::Symbolic(target.to_vec()))
            }
            _ => return None,
        };
        match key.as_slice().cmp(name) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => return Some(Some(value)),
            std::cmp::Ordering::Greater => return Some(None),
        }
    }
    Some(Some(RefFound::Nothing))
}

fn u24(bytes: &[u8], at: usize) -> Option<usize> {
    let three = bytes.get(at..at + 3)?;
    Some((three[0] as usize) << 16 | (three[1] as usize) << 8 | three[2] as usize)
}
