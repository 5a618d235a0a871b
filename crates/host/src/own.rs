//! Creating piton's own files and folders: its home, and the stores in it.
//!
//! Used for everything meant to last. `sudo piton log` in a user's home must leave nothing behind that the user's own
//! piton cannot open: what root creates is given to the owner of the containing folder. Where the system refuses that,
//! it stays root's. This costs other users no system call, and root none if the file already exists.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat};

use crate::sys;

/// Opens a file, creating it if necessary. The options say how it is opened, and its permission bits.
pub fn open_or_make(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let open_in_any_case = || options.clone().create(true).open(path);
    if !sys::is_root() {
        return open_in_any_case();
    }
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    match make_new(path, options) {
        // Somebody else has just created it; or it is a dangling link, and what root creates elsewhere remains root's.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => open_in_any_case(),
        made => made,
    }
}

/// Creates a file; fails if the name is taken.
pub fn make_new(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let file = options.clone().create_new(true).open(path)?;
    if sys::is_root() {
        let _ = give_to_owner_of_folder(&file, path);
    }
    Ok(file)
}

/// Overwrites or creates a file.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    open_or_make(path, File::options().write(true).truncate(true))?.write_all(bytes)
}

/// Creates a folder for its owner alone, with missing parents.
pub fn make_folders(path: &Path) -> io::Result<()> {
    match make_folder(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make_folders(path.parent().ok_or(error)?)?;
            make_folder(path)
        }
        made => made,
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(_) if path.is_dir() => return Ok(()),
        made => made?,
    }
    if sys::is_root() {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // The owner of the folder above may have put another folder of root's in its place.
        let made = openat(CWD, path, how, Mode::empty()).ok().filter(is_empty);
        let _ = made.map(|made| give_to_owner_of_folder(made, path));
    }
    Ok(())
}

fn is_empty(folder: &OwnedFd) -> bool {
    let mut is_empty = true;
    sys::list(folder, &mut Vec::new(), |_, _| is_empty = false).is_ok() && is_empty
}

/// Gives what root has just created at a path to the owner of its folder. Only through handles: the names may lead
/// elsewhere by now, and only what was created may be given away, only to the owner of the folder it was created in.
fn give_to_owner_of_folder(made: impl AsFd, path: &Path) -> Option<()> {
    let how = sys::HANDLE | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, path.parent()?, how, Mode::empty()).ok()?;
    let (found, above) = (fstat(&made).ok()?, fstat(&folder).ok()?);
    let id = |stat: &Stat| (stat.st_dev, stat.st_ino);
    let is_in_folder =
        || statat(&folder, path.file_name()?, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|named| id(named) == id(&found));
    if found.st_uid == above.st_uid || is_in_folder().is_none() || !sys::may_open_everything() {
        return None;
    }
    sys::give(made, above.st_uid, above.st_gid).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::PathBuf;

    use super::*;

    const SOMEBODY: u32 = 65_534;

    /// A folder of another user. Without root there is only one user.
    fn of_somebody() -> (tempfile::TempDir, u32) {
        let folder = tempfile::tempdir().unwrap();
        let _ = std::os::unix::fs::chown(folder.path(), Some(SOMEBODY), Some(SOMEBODY));
        let owner = folder.path().metadata().unwrap().uid();
        (folder, owner)
    }

    fn owner(path: PathBuf) -> u32 {
        path.symlink_metadata().unwrap().uid()
    }

    #[test]
    fn what_is_made_belongs_to_the_owner_of_its_folder() {
        let (folder, somebody) = of_somebody();
        let at = |path: &str| folder.path().join(path);
        make_folders(&at("a/b/c")).unwrap();
        make_folders(&at("a/b/c")).unwrap();
        write(&at("a/b/file"), b"long").unwrap();
        write(&at("a/b/file"), b"x").unwrap();
        open_or_make(&at("lock"), File::options().write(true)).unwrap();
        assert_eq!(std::fs::read(at("a/b/file")).unwrap(), b"x");
        for made in ["a", "a/b", "a/b/c", "a/b/file", "lock"] {
            assert_eq!(owner(at(made)), somebody, "{made}");
        }
        assert_eq!(at("a/b").metadata().unwrap().mode() & 0o777, 0o700);
        assert!(make_folders(&at("lock/x")).is_err());
    }

    /// The owner of the folder may put a link there, to make root create a file for them somewhere else.
    #[test]
    fn nobody_is_given_what_lies_elsewhere_or_was_there_before() {
        let (folder, _) = of_somebody();
        let elsewhere = tempfile::tempdir().unwrap();
        let this = elsewhere.path().metadata().unwrap().uid();
        let at = |path: &str| folder.path().join(path);
        symlink(elsewhere.path().join("new"), at("link")).unwrap();
        symlink(elsewhere.path(), at("folder")).unwrap();
        std::fs::write(at("old"), "of who runs this").unwrap();
        for path in ["link", "folder/file", "old"] {
            write(&at(path), b"x").unwrap();
        }
        make_folders(&at("folder/inside")).unwrap();
        for path in ["new", "file", "inside"] {
            assert_eq!(owner(elsewhere.path().join(path)), this, "{path}");
        }
        assert_eq!(owner(at("old")), this);
    }
}
