//! A disk that is soon full.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use crate::mounts::Mounted;

/// A small filesystem in memory, unmounted with this value; the test begins with
/// [`needs_mounts!`](crate::needs_mounts).
pub struct SmallDisk {
    mounted: Option<Mounted>,
    folder: tempfile::TempDir,
}

impl SmallDisk {
    pub fn new(kib: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder to mount on");
        let options = CString::new(format!("size={kib}k,mode=0777")).expect("numbers have no zero byte");
        Self { mounted: Some(Mounted::disk(folder.path(), &options)), folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Unmounts the disk and leaves the folder.
    pub fn unmount(&mut self) {
        self.mounted = None;
    }

    /// Fills it up to the last `kib` KiB, and returns the file that does.
    pub fn fill_but(&self, kib: u64) -> PathBuf {
        let left = rustix::fs::statvfs(self.path()).expect("a mounted disk tells its size");
        let free = (left.f_bavail * left.f_frsize).saturating_sub(kib * 1024);
        let file = self.path().join("filler");
        std::fs::write(&file, vec![1; free as usize]).expect("the filler fits");
        file
    }
}
