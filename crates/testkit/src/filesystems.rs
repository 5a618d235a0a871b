//! Other filesystems than the one that tests are on, mounted for as long as a value lives.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, unmount};

/// A filesystem at a folder, with its source next to it. Unmounted with this value; the test begins with
/// [`needs_mounts!`](crate::needs_mounts).
pub struct Filesystem {
    at: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemKind {
    /// In memory.
    Tmpfs,
    /// One folder laid over another, as in containers.
    Overlay,
    /// In user space; supports no rename flags.
    Bindfs,
    /// In user space; supports no rename flags, and shows two names of a file as two files.
    Unionfs,
    /// ext4 with folders in which `readme` and `README` are the same name.
    Casefold,
}

impl FilesystemKind {
    pub const ALL: [Self; 5] = [Self::Tmpfs, Self::Overlay, Self::Bindfs, Self::Unionfs, Self::Casefold];
}

impl Filesystem {
    /// Mounts one at an empty folder; `beside` is a folder for its parts.
    ///
    /// # Errors
    /// Why it is not available here, in words for the list of what was not run.
    pub fn mount(kind: FilesystemKind, at: &Path, beside: &Path) -> Result<Self, String> {
        let folder = |name: &str| {
            let path = beside.join(name);
            std::fs::create_dir_all(&path).expect("a folder beside it");
            path
        };
        match kind {
            FilesystemKind::Tmpfs => mount("tmpfs", at, "")?,
            FilesystemKind::Overlay => return Self::overlay(at, beside, |_| {}),
            FilesystemKind::Bindfs => run(Command::new("bindfs").arg(folder("bound")).arg(at))?,
            FilesystemKind::Unionfs => {
                let branch = format!("{}=RW", folder("branch").display());
                run(Command::new("unionfs").args(["-o", "cow", &branch]).arg(at))?;
            }
            FilesystemKind::Casefold => {
                let image = folder("disk").join("image");
                std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("an image");
                run(Command::new("mkfs.ext4").args(["-q", "-O", "casefold"]).arg(&image))?;
                run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(at))?;
                let mounted = Self { at: at.to_owned() };
                let inner = at.join("folded");
                std::fs::create_dir(&inner).expect("a folder");
                run(Command::new("chattr").arg("+F").arg(&inner))?;
                return Ok(mounted);
            }
        }
        Ok(Self { at: at.to_owned() })
    }

    /// Mounts an overlay whose lower folder was filled before, like the layers of a container's image.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub fn overlay(at: &Path, beside: &Path, fill_lower: impl FnOnce(&Path)) -> Result<Self, String> {
        // Some kernels refuse an overlay on an overlay, so its parts are in memory.
        let parts = beside.join("parts");
        std::fs::create_dir_all(&parts).expect("a folder beside it");
        mount("tmpfs", &parts, "")?;
        let made = ["lower", "upper", "work"].map(|name| parts.join(name));
        made.iter().for_each(|path| std::fs::create_dir(path).expect("a folder in memory"));
        fill_lower(&made[0]);
        let [lower, upper, work] = made.map(|path| path.display().to_string());
        // Only root may use the default attributes in which an overlay records what it hides.
        let of_users = if rustix::process::geteuid().is_root() { "" } else { ",userxattr" };
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}{of_users}");
        let mounted = crate::namespace::past_permissions(|| mount("overlay", at, &options));
        // It lives on for as long as the overlay does.
        let _ = unmount(&parts, UnmountFlags::DETACH);
        mounted.map(|()| Self { at: at.to_owned() })
    }
}

impl Drop for Filesystem {
    fn drop(&mut self) {
        if unmount(&self.at, UnmountFlags::DETACH).is_ok() {
            return;
        }
        for (program, option) in [("fusermount3", "-uz"), ("fusermount", "-uz")] {
            if run(Command::new(program).arg(option).arg(&self.at)).is_ok() {
                return;
            }
        }
        if !std::thread::panicking() {
            panic!("{} stays mounted", self.at.display());
        }
    }
}

/// By the system call itself: the program refuses everyone but root, even those who may mount in a namespace.
fn mount(kind: &str, at: &Path, options: &str) -> Result<(), String> {
    let options = CString::new(options).expect("no zero byte in a test's paths");
    rustix::mount::mount(kind, at, kind, MountFlags::empty(), &*options).map_err(|error| format!("{kind}: {error}"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(format!("{program}: {}", said.trim().replace('\n', "; "))) }
}
