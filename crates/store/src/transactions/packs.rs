//! The pack files of a store: which there are, of which format each is, and the key that their tags are made with.

use crate::error::StoreError;
use crate::pack::{self, Kind, PackForm, Place, StoreKey, TAG, Tagger};
use crate::transactions::Commit;
use crate::{PACKS, pack_name};
use piton_host::disk::read_what_can_be;
use std::fs::File;
use std::io;
use std::path::Path;

/// What makes the tags of a pack; none where it is of format 1.
pub(crate) fn tagger_of(folder: &Path, file: &File, pack: u32) -> Result<Option<Tagger>, StoreError> {
    let failed = |e| StoreError::io("cannot read", &folder.join(PACKS).join(pack_name(pack)))(e);
    match pack::form(file).map_err(failed)? {
        PackForm::Old => Ok(None),
        PackForm::Tagged(key) => Ok(Some(key.tagger(pack))),
        PackForm::Newer(found) => Err(StoreError::Newer { found: found.into(), known: 2 }),
        PackForm::Damaged => tagger_without_head(file, pack, find_key(folder)?).map_err(failed),
    }
}

/// The same for a pack whose head is damaged. The store's key may come from another pack, so the records tell: it is of
/// format 1 where there are sound ones, and none has a tag.
pub(super) fn tagger_without_head(file: &File, pack: u32, key: Option<StoreKey>) -> io::Result<Option<Tagger>> {
    let Some(tagger) = key.map(|key| key.tagger(pack)) else { return Ok(None) };
    let end = file.metadata()?.len();
    let mut has_records = false;
    let mut at = 0;
    while let Some(magic) = pack::next_magic(file, at, end)? {
        let has_tag =
            magic >= TAG as u64 && pack::read_at(file, pack, Some(&tagger), magic - TAG as u64, end)?.is_some();
        if has_tag {
            return Ok(Some(tagger));
        }
        has_records = has_records || pack::read_at(file, pack, None, magic, end)?.is_some();
        at = magic + 1;
    }
    Ok(if has_records { None } else { Some(tagger) })
}

/// The numbers of all pack files, in order.
pub(crate) fn pack_numbers(folder: &Path) -> Result<Vec<u32>, StoreError> {
    let folder = folder.join(PACKS);
    let failed = |e| StoreError::io("cannot list", &folder)(e);
    let mut numbers = Vec::new();
    let entries = match std::fs::read_dir(&folder) {
        // Deleted with all that was in it, or never made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(numbers),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        numbers.extend(name.to_str().and_then(|n| n.strip_suffix(".pack")).and_then(|n| n.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// How long a pack is; 0 where it is not there. Anything else that keeps it from being looked at is an error: what cannot be seen
/// is not gone.
pub(crate) fn pack_length(folder: &Path, pack: u32) -> Result<u64, StoreError> {
    let path = folder.join(PACKS).join(pack_name(pack));
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => Ok(found.map_err(StoreError::io("cannot read", &path))?.len()),
    }
}

/// The store's key, from whatever pack still tells: from a head, else from a commit record that is where it says.
pub(crate) fn find_key(folder: &Path) -> Result<Option<StoreKey>, StoreError> {
    let packs = pack_numbers(folder)?;
    let mut damaged = Vec::new();
    for pack in packs {
        let path = folder.join(PACKS).join(pack_name(pack));
        let failed = |e| StoreError::io("cannot read", &path)(e);
        let file = File::open(&path).map_err(failed)?;
        match pack::form(&file).map_err(failed)? {
            PackForm::Tagged(key) => return Ok(Some(key)),
            PackForm::Damaged => damaged.push((pack, file)),
            PackForm::Old | PackForm::Newer(_) => {}
        }
    }
    for (pack, file) in damaged {
        let failed = |e| StoreError::io("cannot read", folder)(e);
        let end = file.metadata().map_err(failed)?.len();
        let mut at = TAG as u64;
        while let Some(offset) = pack::next_magic(&file, at, end).map_err(failed)? {
            if let Some(key) = key_at(&file, pack, offset, end).map_err(failed)? {
                return Ok(Some(key));
            }
            at = offset + 1;
        }
    }
    Ok(None)
}

/// The key that a commit record at this offset tells, if it is one and its tag agrees.
fn key_at(file: &File, pack: u32, offset: u64, end: u64) -> io::Result<Option<StoreKey>> {
    let mut head = [0; TAG + pack::RECORD_HEAD];
    if offset + pack::RECORD_HEAD as u64 > end {
        return Ok(None);
    }
    read_what_can_be(file, &mut head, offset - TAG as u64)?;
    let (tag, record) = head.split_at(TAG);
    let length = pack::record_length(record).filter(|length| record[4] == Kind::Commit as u8 && offset + length <= end);
    let Some(length) = length.and_then(|length| u32::try_from(length).ok()) else { return Ok(None) };
    let sound = pack::read(file, &Place { pack, offset, length })?;
    let key = sound.as_ref().and_then(Commit::of).and_then(|commit| commit.key());
    Ok(key.filter(|key| key.tagger(pack).tag(offset, record) == *tag))
}
