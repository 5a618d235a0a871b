//! Whose files are. One look by root (`sudo piton log`) must not leave files that the user's own hooks cannot write.

use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, chownat, stat};

/// Gives what was just made the owner of the folder that it is in, where root made it. For everybody else nothing happens, and
/// where it cannot be done the file stays root's.
pub fn give_to_owner_of_folder(path: &Path) {
    static IS_ROOT: OnceLock<bool> = OnceLock::new();
    if !*IS_ROOT.get_or_init(|| rustix::process::geteuid().is_root()) {
        return;
    }
    let Some(Ok(folder)) = path.parent().map(stat) else { return };
    if folder.st_uid == 0 {
        return;
    }
    let (user, group) = (rustix::fs::Uid::from_raw(folder.st_uid), rustix::fs::Gid::from_raw(folder.st_gid));
    let _ = chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
}
