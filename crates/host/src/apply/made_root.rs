//! Creating a folder for a workspace whose root is gone.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

/// A folder created for a missing root. It is removed on drop, unless it is kept or something is in it.
#[derive(Debug)]
pub struct MadeRoot(Option<PathBuf>);

impl MadeRoot {
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for MadeRoot {
    fn drop(&mut self) {
        self.0.take().map(std::fs::remove_dir);
    }
}

/// Creates a folder for a missing root, and its parents. Nothing existing is ever taken for it, neither a symlink nor
/// another workspace's folder.
pub fn make_root(path: &Path, mode: u16) -> io::Result<MadeRoot> {
    let around = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    around.and_then(|()| std::fs::create_dir(path)).map_err(|error| match error.kind() {
        // A file above it is in the way, too.
        kind @ (io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
            io::Error::new(kind, "something else stands in its place; move that away and run the command again")
        }
        _ => error,
    })?;
    let made = MadeRoot(Some(path.to_owned()));
    rustix::fs::chmod(path, Mode::from_raw_mode(u32::from(mode)))?;
    Ok(made)
}
