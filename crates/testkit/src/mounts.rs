//! Mounts that exist for as long as a value lives; the test begins with [`needs_mounts!`](crate::needs_mounts).

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};

/// A mount that is removed with this value.
pub struct Mounted {
    at: PathBuf,
}

impl Mounted {
    /// An empty disk over a folder; `options` are those of tmpfs.
    pub fn disk(at: &Path, options: &CStr) -> Self {
        mount("tmpfs", at, "tmpfs", MountFlags::empty(), options).expect("a disk is mounted");
        Self { at: at.to_owned() }
    }

    /// A folder over itself, read-only: its contents can be read and not changed by anyone.
    pub fn read_only(at: &Path) -> Self {
        mount_bind(at, at).expect("a folder is mounted");
        let mounted = Self { at: at.to_owned() };
        // In a namespace, what the disk below forbids stays forbidden, and leaving it out is an error.
        let below = rustix::fs::statvfs(at).expect("a mounted folder tells its flags").f_flag;
        let kept = [
            (rustix::fs::StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
            (rustix::fs::StatVfsMountFlags::NODEV, MountFlags::NODEV),
            (rustix::fs::StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
            (rustix::fs::StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
            (rustix::fs::StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
            (rustix::fs::StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
        ];
        let kept = kept.into_iter().filter(|(flag, _)| below.contains(*flag)).map(|(_, flag)| flag);
        let flags = kept.fold(MountFlags::BIND | MountFlags::RDONLY, |all, flag| all | flag);
        mount_remount(at, flags, c"").expect("a mount is made read-only");
        mounted
    }

    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = unmount(&self.at, UnmountFlags::DETACH);
        if !std::thread::panicking() {
            unmounted.expect("what was mounted is unmounted");
        }
    }
}
