//! Nested folders, deeper than a path can express or a process has handles.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Creates `depth` nested folders of one name, the first one in `top`, with a file `f` in every hundredth that says how
/// deep it is.
pub fn make_deep(top: &Path, name: &str, depth: usize) {
    let mut at = open_folder(top);
    for level in 1..=depth {
        mkdirat(&at, name, Mode::RWXU).expect("a folder can be made");
        at = openat(&at, name, FOLDER, Mode::empty()).expect("a new folder can be opened");
        if level.is_multiple_of(100) {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = openat(&at, "f", flags, Mode::RUSR | Mode::WUSR).expect("a file can be made");
            write!(File::from(file), "{level}").expect("it can be written");
        }
    }
}

/// How many folders of one name are nested, and what the files `f` in them say.
pub fn read_deep(top: &Path, name: &str) -> (usize, Vec<String>) {
    let mut at = open_folder(top);
    let (mut depth, mut said) = (0, Vec::new());
    loop {
        match openat(&at, "f", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => {
                let mut text = String::new();
                File::from(file).read_to_string(&mut text).expect("it can be read");
                said.push(text);
            }
            Err(errno) => assert_eq!(errno, Errno::NOENT),
        }
        at = match openat(&at, name, FOLDER, Mode::empty()) {
            Ok(deeper) => deeper,
            Err(Errno::NOENT) => return (depth, said),
            Err(errno) => panic!("level {depth}: {errno}"),
        };
        depth += 1;
    }
}

/// Removes such folders. The standard library would hold every one of them open at once.
pub fn remove_deep(path: &Path) {
    let removed = std::process::Command::new("rm").arg("-rf").arg(path).status();
    assert!(removed.is_ok_and(|status| status.success()), "{} goes", path.display());
}

fn open_folder(path: &Path) -> OwnedFd {
    openat(CWD, path, FOLDER, Mode::empty()).expect("the folder is there")
}
