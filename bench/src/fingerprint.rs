//! The contents of a workspace, byte for byte: how the bench knows that a restore was correct.
//!
//! Independent of all contenders: hashes every path, executable bit and byte. The hash finds mistakes, not forgeries.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{Result, context};

/// Every folder and file of a workspace, with a hash of its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    entries: BTreeMap<PathBuf, u64>,
}

impl Fingerprint {
    pub fn of(root: &Path) -> Result<Self> {
        let mut folders = vec![PathBuf::new()];
        let mut files = Vec::new();
        let mut entries = BTreeMap::new();
        while let Some(folder) = folders.pop() {
            let full = root.join(&folder);
            for entry in fs::read_dir(&full).map_err(context(&full))? {
                let entry = entry.map_err(context(&full))?;
                let path = folder.join(entry.file_name());
                if entry.file_type().map_err(context(&full))?.is_dir() {
                    entries.insert(path.clone(), FOLDER);
                    folders.push(path);
                } else {
                    files.push(path);
                }
            }
        }
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let share = files.len().div_ceil(workers).max(1);
        std::thread::scope(|scope| -> Result<()> {
            let running: Vec<_> = files
                .chunks(share)
                .map(|chunk| scope.spawn(|| chunk.iter().map(|path| hash_file(root, path)).collect::<Result<Vec<_>>>()))
                .collect();
            for worker in running {
                entries.extend(worker.join().expect("a hasher panicked")?);
            }
            Ok(())
        })?;
        Ok(Self { entries })
    }

    /// The first few differing paths, in words; `None` if there are none.
    pub fn difference(&self, found: &Self) -> Option<String> {
        let missing = self.entries.iter().filter(|(path, _)| !found.entries.contains_key(*path));
        let extra = found.entries.iter().filter(|(path, _)| !self.entries.contains_key(*path));
        let changed =
            self.entries.iter().filter(|(path, hash)| found.entries.get(*path).is_some_and(|other| other != *hash));
        let all: Vec<String> = missing
            .map(|(path, _)| format!("missing: {}", path.display()))
            .chain(extra.map(|(path, _)| format!("should not be there: {}", path.display())))
            .chain(changed.map(|(path, _)| format!("other bytes or mode: {}", path.display())))
            .collect();
        let shown = all.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n  ");
        (!all.is_empty()).then(|| format!("{} paths differ:\n  {shown}", all.len()))
    }
}

const FOLDER: u64 = 1;

fn hash_file(root: &Path, path: &Path) -> Result<(PathBuf, u64)> {
    let full = root.join(path);
    let bytes = fs::read(&full).map_err(context(&full))?;
    let mode = fs::symlink_metadata(&full).map_err(context(&full))?.permissions().mode();
    // Only the bit that git stores: the rest of the mode depends on the umask.
    let executable = u64::from(mode & 0o100 != 0);
    Ok((path.to_owned(), fold(&bytes, executable)))
}

fn fold(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash ^ u64::from_le_bytes(*word));
    }
    for byte in rest {
        hash = mix(hash ^ u64::from(*byte));
    }
    hash
}

fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^ (value >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl Fn(&Path), expected: &str) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("folder/file"), b"some bytes").unwrap();
        let before = Fingerprint::of(root.path()).unwrap();
        change(root.path());
        let found = before.difference(&Fingerprint::of(root.path()).unwrap());
        assert_eq!(found.as_deref().unwrap_or("same"), expected);
    }

    #[test]
    fn an_untouched_tree_is_the_same() {
        check(|_| {}, "same");
    }

    #[test]
    fn a_changed_byte_is_found() {
        check(
            |root| fs::write(root.join("folder/file"), b"some bytez").unwrap(),
            "1 paths differ:\n  other bytes or mode: folder/file",
        );
    }

    #[test]
    fn a_lost_executable_bit_is_found() {
        check(
            |root| fs::set_permissions(root.join("folder/file"), fs::Permissions::from_mode(0o755)).unwrap(),
            "1 paths differ:\n  other bytes or mode: folder/file",
        );
    }

    #[test]
    fn a_folder_left_behind_is_found() {
        check(|root| fs::create_dir(root.join("new")).unwrap(), "1 paths differ:\n  should not be there: new");
    }

    #[test]
    fn a_missing_file_is_found() {
        check(|root| fs::remove_file(root.join("folder/file")).unwrap(), "1 paths differ:\n  missing: folder/file");
    }
}
