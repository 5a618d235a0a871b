//! A disk that is soon full.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A small filesystem in memory, gone with this value. Needs root, or a user namespace of the test's own.
pub struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// A disk of so many KiB.
    pub fn new(kib: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder to mount on");
        let options = format!("size={kib}k,mode=0777");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path()).status();
        assert!(mounted.is_ok_and(|s| s.success()), "mounting a small disk needs root (try: sudo, or unshare -Urm)");
        Self { folder }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills what is left of it but for so many KiB, and returns the file that does.
    pub fn fill_but(&self, kib: u64) -> PathBuf {
        let left = rustix::fs::statvfs(self.path()).expect("a mounted disk tells its size");
        let free = (left.f_bavail * left.f_frsize).saturating_sub(kib * 1024);
        let file = self.path().join("filler");
        std::fs::write(&file, vec![1; free as usize]).expect("the filler fits");
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A test may have taken it away already.
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).stderr(std::process::Stdio::null()).status();
    }
}
