//! Running as an ordinary user: root may do everything, so permission tests would prove nothing.

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a test as a user without privileges. If the process is root, the thread that runs it (and every thread that it
/// starts) gives up root's rights over files; other threads are not affected.
pub fn as_ordinary_user<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    if !is_root() {
        return act();
    }
    std::thread::scope(|scope| {
        let result = scope
            .spawn(|| {
                become_nobody();
                act()
            })
            .join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

const NOBODY: libc::c_long = 65_534;

#[allow(unsafe_code, reason = "the call takes two numbers; libc has no safe form of it")]
fn become_nobody() {
    // By number and not through libc, which would change every thread of the process. The kernel takes away root's
    // rights over files together with its filesystem user id.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, NOBODY);
        libc::syscall(libc::SYS_setfsuid, NOBODY);
    }
    let folder = tempfile::tempdir().expect("a folder of nobody's own can be made");
    let file = folder.path().join("probe");
    std::fs::write(&file, "x").expect("nobody may write in a folder of its own");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(&file, closed).expect("nobody may close a file of its own");
    assert!(std::fs::read(&file).is_err(), "the rights of root are still there");
}

/// A command that runs its arguments as a user to whom permissions apply.
pub fn without_privileges() -> std::process::Command {
    let mut command = std::process::Command::new(if is_root() { "setpriv" } else { "env" });
    if is_root() {
        command.args(["--bounding-set", "-dac_override,-dac_read_search", "--"]);
    }
    command
}
