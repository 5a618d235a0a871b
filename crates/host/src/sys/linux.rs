//! Linux.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use piton_model::RootIdentity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, WatchFlags};
use rustix::fs::{
    Access, Advice, AtFlags, CWD, FileType, Gid, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, StatFs, Statx,
    StatxAttributes, StatxFlags, Uid, XattrFlags, accessat, chownat, fadvise, fchmod, fgetxattr, flistxattr, fsetxattr,
    fstat, fstatfs, fsync, openat2, readlinkat, renameat_with, statfs, statx,
};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::{Call, refuse};

/// Opens something only to get a handle: needs no permission to read it, follows no symlink, never waits.
pub(crate) const HANDLE: OFlags = OFlags::PATH;

/// Reading does not change the access time. Refused (`EPERM`) for anyone but the file's owner.
pub(crate) const KEEP_ACCESS_TIME: OFlags = OFlags::NOATIME;

/// Begins to be told of changes in a folder: of files in it that are written, closed after that, made, renamed or removed, and
/// of the folder's own end. The handle has something to read when anything happened.
pub(crate) fn watch_folder(folder: &Path) -> rustix::io::Result<OwnedFd> {
    refuse(Call::Watch)?;
    let told = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
    let of_files = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::CREATE | WatchFlags::DELETE;
    let of_names = WatchFlags::MOVE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
    inotify::add_watch(&told, folder, of_files | of_names)?;
    Ok(told)
}

/// Waits until a watched folder changes, a signal comes or the time is up, and forgets what was told until then. Whether
/// anything was.
pub(crate) fn wait_for_change(told: &OwnedFd, at_most: Duration) -> rustix::io::Result<bool> {
    let at_most = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
    match poll(&mut [PollFd::new(told, PollFlags::IN)], Some(&at_most)) {
        Ok(0) | Err(Errno::INTR) => return Ok(false),
        waited => drop(waited?),
    }
    let mut events = [0; 4096];
    loop {
        match rustix::io::read(told, &mut events) {
            Ok(1..) => {}
            Ok(0) | Err(Errno::AGAIN) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens a path beneath a folder, with no symlink anywhere in it; `None` if this kernel, or a sandbox, has no such
/// call.
pub(crate) fn open_beneath(folder: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> rustix::io::Result<Option<OwnedFd>> {
    if refuse(Call::OpenBeneath).is_err() {
        return Ok(None);
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(folder, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(None),
        result => result.map(Some),
    }
}

/// Exchanges two names of a folder in one step. `EINVAL`, `ENOSYS` or `EOPNOTSUPP` if the filesystem cannot.
pub(crate) fn exchange(folder: BorrowedFd<'_>, one: &[u8], other: &[u8]) -> rustix::io::Result<()> {
    refuse(Call::Exchange)?;
    renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE)
}

/// Renames to a free name in one step. Fails like [`exchange`] if the filesystem cannot.
pub(crate) fn rename_to_new<P: rustix::path::Arg, Q: rustix::path::Arg>(
    from_folder: impl AsFd,
    from: P,
    to_folder: impl AsFd,
    to: Q,
) -> rustix::io::Result<()> {
    refuse(Call::RenameToNew)?;
    renameat_with(from_folder, from, to_folder, to, RenameFlags::NOREPLACE)
}

/// Gives a file, or a symlink itself, a second name. Fails like [`exchange`], or with `EPERM`, if there are no hard
/// links.
pub(crate) fn link<P: rustix::path::Arg, Q: rustix::path::Arg>(
    from_folder: impl AsFd,
    from: P,
    to_folder: impl AsFd,
    to: Q,
) -> rustix::io::Result<()> {
    refuse(Call::Link)?;
    refuse(Call::LinkDenied)?;
    rustix::fs::linkat(from_folder, from, to_folder, to, AtFlags::empty())
}

/// Syncs a whole filesystem.
pub(crate) fn sync_filesystem(on_it: impl AsFd) -> rustix::io::Result<()> {
    rustix::fs::syncfs(on_it)
}

/// Makes an open file's content or an open folder's names survive a power cut.
pub(crate) fn sync(open: impl AsFd) -> rustix::io::Result<()> {
    if cfg!(debug_assertions) && !FileType::from_raw_mode(fstat(&open)?.st_mode).is_file() {
        refuse(Call::SyncOne)?;
    }
    fsync(open)
}

/// Makes the disk start writing bytes of a file, and returns at once.
pub(crate) fn begin_writing(file: &File, from: u64, length: NonZeroU64) {
    // Linux writes what is declared unneeded, and drops from memory only what is already on the disk: nothing of what
    // was just written. If it refuses, the later sync does all the work.
    let _ = fadvise(file, from, Some(length), Advice::DontNeed);
}

/// Sets the permission bits of something open for reading or writing.
pub(crate) fn set_open_mode(file: impl AsFd, mode: u32) -> rustix::io::Result<()> {
    refuse(Call::SetMode)?;
    fchmod(file, Mode::from_raw_mode(mode))
}

/// Sets the permission bits of what a [`HANDLE`] refers to.
pub(crate) fn set_mode(handle: BorrowedFd<'_>, mode: u16) -> rustix::io::Result<()> {
    // Through the kernel's own link: a handle itself does not allow it.
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(link, Mode::from_raw_mode(u32::from(mode)))
}

/// Gives what is open, or what a [`HANDLE`] refers to, to a user and a group.
pub(crate) fn give(open: impl AsFd, user: u32, group: u32) -> rustix::io::Result<()> {
    chownat(open, c"", Some(Uid::from_raw(user)), Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH)
}

/// The target of the symlink that a [`HANDLE`] refers to.
pub(crate) fn link_target(handle: BorrowedFd<'_>) -> rustix::io::Result<Vec<u8>> {
    Ok(readlinkat(handle, c"", Vec::new())?.into_bytes())
}

/// The identity of an open folder, with its birth time if the filesystem has one.
pub(crate) fn identity(folder: BorrowedFd<'_>) -> io::Result<RootIdentity> {
    match statx(folder, c"", AtFlags::EMPTY_PATH, IDENTITY) {
        Ok(found) => Ok(identity_of(&found, || fstatfs(folder))),
        Err(_) => {
            let found = fstat(folder)?;
            Ok(RootIdentity { device: found.st_dev, inode: found.st_ino, born: None, is_layered: false })
        }
    }
}

/// The identity of the folder at a path, in one call; `None` if there is no folder, or no such call.
pub(crate) fn identity_at(path: &Path) -> Option<RootIdentity> {
    let found = statx(CWD, path, AtFlags::empty(), IDENTITY).ok()?;
    let is_folder = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory;
    is_folder.then(|| identity_of(&found, || statfs(path)))
}

const IDENTITY: StatxFlags = StatxFlags::TYPE.union(StatxFlags::INO).union(StatxFlags::BTIME);

fn identity_of(found: &Statx, filesystem: impl FnOnce() -> rustix::io::Result<StatFs>) -> RootIdentity {
    const OVERLAYFS: u64 = 0x794c_7630;
    // A real disk has a major number and is not layered, so most are not checked.
    let is_layered = found.stx_dev_major == 0 && filesystem().is_ok_and(|fs| fs.f_type as u64 == OVERLAYFS);
    RootIdentity {
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        born: (found.stx_mask & StatxFlags::BTIME.bits() != 0)
            .then(|| found.stx_btime.tv_sec * 1_000_000_000 + i64::from(found.stx_btime.tv_nsec)),
        is_layered,
    }
}

/// What decides whether names may be removed from an open folder.
pub(crate) struct FolderFacts {
    /// Kind and permission bits.
    pub mode: u32,
    pub user: u32,
    /// Another filesystem is mounted there.
    pub is_mount: bool,
    /// An attribute makes its names immutable, whatever the bits say.
    pub is_fixed: bool,
}

pub(crate) fn folder_facts(folder: BorrowedFd<'_>) -> rustix::io::Result<FolderFacts> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::UID;
    let found = statx(folder, c"", AtFlags::EMPTY_PATH, wanted)?;
    Ok(FolderFacts {
        mode: found.stx_mode.into(),
        user: found.stx_uid,
        is_mount: found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        is_fixed: found.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND),
    })
}

/// Whether this thread may create and remove names in an open folder, according to the kernel.
pub(crate) fn may_change(folder: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match accessat(folder, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        // A kernel that cannot check for this user: it will report that when it comes to it.
        Err(Errno::NOSYS | Errno::INVAL) => Ok(()),
        answer => answer,
    }
}

/// Whether a folder is on a filesystem that is known to update a folder's times whenever its listing changes.
pub(crate) fn moves_folder_times(folder: BorrowedFd<'_>) -> bool {
    /// ext2/3/4, xfs, btrfs, tmpfs, overlayfs, zfs, f2fs, bcachefs.
    const KNOWN: [u64; 8] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1, 0xf2f5_2010, 0xca45_1a4e];
    fstatfs(folder).is_ok_and(|fs| KNOWN.contains(&(fs.f_type as u64)))
}

/// Visits each name in an open folder, without `.` and `..`, with its kind, which not every filesystem reports. `space`
/// is the caller's, so that many folders share one.
pub(crate) fn list(
    folder: impl AsFd,
    space: &mut Vec<u8>,
    mut each: impl FnMut(&CStr, FileType),
) -> rustix::io::Result<()> {
    space.reserve(32 << 10);
    let mut listing = RawDir::new(folder, space.spare_capacity_mut());
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            each(name, entry.file_type());
        }
    }
    Ok(())
}

/// Copies extended attributes (including access lists), as far as permitted.
pub(crate) fn copy_attributes(from: &File, to: &File) {
    let mut names = vec![0; 4096];
    let Ok(length) = flistxattr(from, &mut names[..]) else { return };
    for name in names[..length].split(|b| *b == 0).filter(|n| !n.is_empty()) {
        let mut value = vec![0; 65536];
        if let Ok(length) = fgetxattr(from, name, &mut value[..]) {
            let _ = fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}

/// The number of cores that this process may use.
pub(crate) fn cores() -> usize {
    // Asks only the scheduler: the standard library also reads half a dozen control-group files.
    sched_getaffinity(None).map_or(1, |cores| cores.count() as usize)
}

/// The core that this thread runs on.
pub(crate) fn core() -> usize {
    sched_getcpu()
}

/// Moves this thread to another core, if it is on this one. From then on it may run anywhere.
pub(crate) fn leave_core(core: usize) {
    if sched_getcpu() != core {
        return;
    }
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut others = allowed;
    others.unset(core);
    // If the system refuses, it is only slower.
    if sched_setaffinity(None, &others).is_ok() {
        let _ = sched_setaffinity(None, &allowed);
    }
}

/// Identifies the current boot.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// What the kernel says about a process.
pub(crate) struct ProcessStatus {
    pub name: String,
    pub parent: u32,
    /// Differs between two processes with the same pid, within one boot.
    pub started: u64,
    pub is_dead: bool,
}

/// `None` if there is no such process.
pub(crate) fn process(pid: u32) -> Option<ProcessStatus> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name is in parentheses and may contain anything, even parentheses.
    let (head, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(ProcessStatus {
        name: head.split_once('(')?.1.to_owned(),
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// The user whose files this thread may set the bits of: the effective one, unless another was chosen for file access
/// alone.
pub(crate) fn file_user() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let of_files = users.and_then(|users| users.split_whitespace().nth(3)?.parse().ok());
    of_files.unwrap_or_else(|| rustix::process::geteuid().as_raw())
}

/// Whether this process was started as root. Read from what the kernel put into its memory, which costs no system call.
#[allow(unsafe_code, reason = "it takes a number and looks it up in this process's memory")]
pub(crate) fn is_root() -> bool {
    unsafe { libc::getauxval(libc::AT_EUID) == 0 }
}

/// Whether this thread may open any file, whoever owns it. In a container root may lack that right.
pub(crate) fn may_open_everything() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::DAC_OVERRIDE))
}

/// Closes everything but the standard streams on exec. Makes a single system call, so that it may be called between
/// fork and exec.
#[allow(unsafe_code, reason = "a system call that takes numbers alone")]
pub(crate) fn close_on_exec() {
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// The signals that this process ignores, as bits: signal 1 is the lowest.
pub(crate) fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_pushed_away_may_run_where_it_might_before() {
        let allowed = sched_getaffinity(None).unwrap();
        leave_core(core());
        assert_eq!(sched_getaffinity(None).unwrap(), allowed);
    }
}
