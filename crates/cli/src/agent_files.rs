//! Files of an agent's that piton edits when its user asks for that: a settings file, a command file.
//!
//! They are the agent's and the user's, never piton's: written whole and at once, with their mode, where a symlink
//! leads, and only if they still hold what was read.

#![expect(clippy::disallowed_methods, reason = "an agent's settings are outside every workspace and store")]

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A new file is for its user alone: settings may hold keys.
const NEW: u32 = 0o600;

/// Larger files, in bytes, are not read: settings are small, and the hook's log is cut long before that.
const LARGEST: u64 = 64 << 20;

/// What a file holds; nothing where there is none.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match piton_engine::read_bounded(path, LARGEST)? {
        // A link to nothing is something.
        None if std::fs::symlink_metadata(path).is_ok() => Err(io::ErrorKind::NotFound.into()),
        found => Ok(found),
    }
}

/// Writes a file in place of what was read from it; false where that has changed in the meantime, and nothing is done.
pub fn replace(path: &Path, was: Option<&[u8]>, new: &[u8]) -> io::Result<bool> {
    let place = if was.is_some() { std::fs::canonicalize(path)? } else { path.to_owned() };
    let folder = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(folder)?;
    let mode = match std::fs::metadata(&place) {
        Ok(found) => found.permissions().mode() & 0o7777,
        Err(_) => NEW,
    };
    let mut file = tempfile::Builder::new().prefix(".piton-").tempfile_in(folder)?;
    file.write_all(new)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    if read(&place)?.as_deref() != was {
        return Ok(false);
    }
    match was {
        Some(_) => file.persist(&place).map_err(|error| error.error)?,
        None => file.persist_noclobber(&place).map_err(|error| error.error)?,
    };
    Ok(true)
}

/// Keeps what a file held beside it, under the first of these endings that is free; a copy that is there already is
/// enough, and none is overwritten.
pub fn back_up(path: &Path, bytes: &[u8], endings: impl Iterator<Item = String>) -> io::Result<PathBuf> {
    for ending in endings {
        let place = with_ending(path, &ending);
        match read(&place)? {
            Some(held) if held == bytes => return Ok(place),
            Some(_) => {}
            None => {
                replace(&place, None, bytes)?;
                let mode = std::fs::metadata(path)?.permissions();
                std::fs::set_permissions(&place, mode)?;
                return Ok(place);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for a copy of it is taken"))
}

/// A file's name with more at its end.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Removes a file; one that is gone is removed.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a folder that holds nothing.
pub fn remove_if_empty(folder: &Path) {
    let _ = std::fs::remove_dir(folder);
}

/// Whether a path is a symlink.
pub fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// Whether a path is a program that this user may run.
pub fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file())
        && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The program that a bare name runs.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| is_program(program))
}
