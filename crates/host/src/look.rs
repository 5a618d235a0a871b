//! Asking the disk about a path by its name: for places outside any workspace, and before one is opened. What a workspace holds is
//! asked of its open root.

use std::io;
use std::path::{Path, PathBuf};

/// Whether a folder is there, or a symlink to one.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// Whether something is there, and not only a symlink that leads nowhere.
pub fn is_there(path: &Path) -> bool {
    path.exists()
}

/// Whether the name is taken, be it by a symlink that leads nowhere.
pub fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The canonical form of a path, which may end in names that do not exist (yet, or any more).
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    match absolute.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match (absolute.parent(), absolute.file_name()) {
            (Some(parent), Some(name)) => Ok(canonical(parent)?.join(name)),
            _ => Err(error),
        },
        result => result,
    }
}

/// The same of a folder, which may be gone with one above it that is a file by now.
pub fn canonical_folder(path: &Path) -> io::Result<PathBuf> {
    match (canonical(path), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotADirectory => {
            Ok(canonical_folder(parent)?.join(name))
        }
        (result, ..) => result,
    }
}
