//! The files of the view: `view-<generation>.db`, of which the highest generation holds.
//!
//! A view that is made anew is another file under another name. SQLite finds a database's log by the database's name, so
//! a process that still has the old one open can never mix its log with that of the new one.

use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// What the last view that was replaced is kept as, for people and tools.
const REPLACED: &str = "view.replaced";
/// The view of a piton before there were generations.
const FIRST: &str = "piton.db";
/// What SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The database of a store, where it has one. For tests and tools: pitons open a [`crate::Store`].
pub fn database_file(folder: &Path) -> Option<PathBuf> {
    newest(folder).ok().flatten().map(|generation| path(folder, generation))
}

/// The generation that holds.
pub(crate) fn newest(folder: &Path) -> Result<Option<u64>, StoreError> {
    Ok(names(folder)?.iter().filter_map(|name| generation(name)).max())
}

pub(crate) fn path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("view-{generation:06}.db"))
}

/// Where a new view is made before it gets its name.
pub(crate) fn draft(folder: &Path) -> Result<PathBuf, StoreError> {
    let draft = folder.join("view.new");
    discard(&draft)?;
    Ok(draft)
}

/// Puts a draft, which is on the disk, in the place of all views before it. Only under the lock.
pub(crate) fn publish(folder: &Path, draft: &Path, generation: u64) -> Result<(), StoreError> {
    for end in BESIDE {
        remove(&beside(draft, end))?;
    }
    let to = path(folder, generation);
    std::fs::rename(draft, &to).map_err(StoreError::io("cannot replace", &to))?;
    // From here on the old ones are nobody's. Whoever has one open keeps it, and is refused the lock.
    for name in names(folder)? {
        let stale = folder.join(&name);
        match self::generation(&name) {
            Some(old) if old < generation => {
                let _ = std::fs::rename(&stale, folder.join(REPLACED));
            }
            None if is_beside_of_older(&name, generation) || name.starts_with(FIRST) => {
                let _ = std::fs::remove_file(&stale);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Bytes that all of it takes.
pub(crate) fn size(folder: &Path) -> Result<u64, StoreError> {
    let views = names(folder)?.into_iter().filter(|name| name.starts_with("view"));
    Ok(views.filter_map(|name| std::fs::metadata(folder.join(name)).ok()).map(|found| found.len()).sum())
}

fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let failed = |e| StoreError::io("cannot list", folder)(e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    Ok(names)
}

fn generation(name: &str) -> Option<u64> {
    name.strip_prefix("view-")?.strip_suffix(".db")?.parse().ok()
}

fn is_beside_of_older(name: &str, generation: u64) -> bool {
    let ends = BESIDE.iter().filter_map(|end| name.strip_suffix(end));
    ends.filter_map(self::generation).any(|old| old < generation)
}

fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn discard(database: &Path) -> Result<(), StoreError> {
    for end in BESIDE {
        remove(&beside(database, end))?;
    }
    remove(database)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io("cannot remove", path)(error)),
        _ => Ok(()),
    }
}
