//! Mounts and networks for tests, even for users whom the machine grants neither.
//!
//! The kernel grants them to everyone in a user namespace, which only a single-threaded process may create. A test
//! runner has many threads, so a test that lacks the right runs a second time, alone in its own process that has it.
//! There the user is the same as before, permissions included: the only added rights are those to mount and to set up
//! networks.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, unshare_unsafe};

/// The first line of a test that mounts something. The rest of the test runs only where that is possible; otherwise,
/// when this returns from the test, it has passed in its own process or is listed as not run.
#[macro_export]
macro_rules! needs_mounts {
    () => {
        if !$crate::namespace::has_mounts(::std::any::type_name_of_val(&|| ())) {
            return;
        }
    };
}

/// The first line of a test that starts programs in a closed [`Network`](crate::Network). If no process can have one,
/// the rest of the test runs with a substitute.
#[macro_export]
macro_rules! needs_network {
    () => {
        if !$crate::namespace::has_network(::std::any::type_name_of_val(&|| ())) {
            return;
        }
    };
}

/// Set in the process that a test runs in a second time.
const AGAIN: &str = "PITON_TEST_AGAIN";

#[doc(hidden)]
pub fn has_mounts(closure: &str) -> bool {
    keep_to_permissions();
    // Its own even where it need not be: what a killed test leaves mounted disappears with its thread.
    let Err(refused) = own_mounts() else { return true };
    assert!(std::env::var_os(AGAIN).is_none(), "a user namespace gives no right to mount: {refused}");
    let test = name_of(closure);
    if let Err(reason) = run_again(test) {
        crate::not_run(test, &format!("it mounts disks, and {reason}"));
    }
    false
}

#[doc(hidden)]
pub fn has_network(closure: &str) -> bool {
    keep_to_permissions();
    crate::Network::can_be_closed() || std::env::var_os(AGAIN).is_some() || run_again(name_of(closure)).is_err()
}

/// What a process in a namespace may do from the start.
const RIGHTS: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// In a namespace, makes permissions apply to this thread and everything it starts as for the user outside. The right
/// to bypass them stays in reserve for [`past_permissions`].
fn keep_to_permissions() {
    if std::env::var_os(AGAIN).is_none() {
        return;
    }
    let _ = rustix::thread::configure_capability_in_ambient_set(CapabilitySet::DAC_OVERRIDE, false);
    let sets =
        CapabilitySets { effective: RIGHTS, permitted: RIGHTS | CapabilitySet::DAC_OVERRIDE, inheritable: RIGHTS };
    rustix::thread::set_capabilities(None, sets).expect("a process may do less than it might");
}

/// Runs `act` with the right to bypass permissions, if this is a process in a namespace: an overlay has a folder that
/// nobody may enter without it.
pub(crate) fn past_permissions<T>(act: impl FnOnce() -> T) -> T {
    if std::env::var_os(AGAIN).is_some() {
        let all = RIGHTS | CapabilitySet::DAC_OVERRIDE;
        let sets = CapabilitySets { effective: all, permitted: all, inheritable: RIGHTS };
        rustix::thread::set_capabilities(None, sets).expect("the right is in reserve");
    }
    let result = act();
    keep_to_permissions();
    result
}

/// The path of a test without its crate's name, as the test runner wants it, from the type of a closure in it.
pub(crate) fn name_of(closure: &str) -> &str {
    let path = closure.strip_suffix("::{{closure}}").expect("a closure's type ends so");
    path.split_once("::").expect("a test is in a crate").1
}

#[allow(unsafe_code, reason = "rustix calls it unsafe for file tables, which this leaves alone")]
fn own_mounts() -> io::Result<()> {
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", all)?)
}

/// Runs one test of this program in a user namespace; an error says why that is impossible. Fails if the test does.
fn run_again(test: &str) -> Result<(), String> {
    let mut command = Command::new(std::env::current_exe().expect("a test is a program"));
    command.args([test, "--exact", "--nocapture"]).env(AGAIN, "1");
    enter_namespace(&mut command);
    let run = command.output().map_err(|e| format!("user namespaces are refused here ({e})"))?;
    let [stdout, stderr] = [&run.stdout, &run.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    // A name that matches no test would pass as well.
    let passed = run.status.success() && stdout.contains("test result: ok. 1 passed");
    assert!(passed, "in a namespace: {}\n{stdout}\n{stderr}", run.status);
    for line in stderr.lines().filter(|line| line.starts_with("NOT RUN: ")) {
        let _ = writeln!(io::stderr(), "{line}");
    }
    Ok(())
}

#[allow(unsafe_code, reason = "between fork and exec only system calls are made, with what was prepared before")]
fn enter_namespace(command: &mut Command) {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let maps = [
        (c"/proc/self/setgroups", "deny".to_owned()),
        (c"/proc/self/uid_map", format!("{user} {user} 1")),
        (c"/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    let enter = move || {
        unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }?;
        for (file, text) in &maps {
            let file = rustix::fs::open(*file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(&file, text.as_bytes())?;
        }
        // All others end with exec.
        let rights = RIGHTS | CapabilitySet::DAC_OVERRIDE;
        let sets = CapabilitySets { effective: rights, permitted: rights, inheritable: rights };
        rustix::thread::set_capabilities(None, sets)?;
        for right in rights.iter() {
            rustix::thread::configure_capability_in_ambient_set(right, true)?;
        }
        // A system that grants namespaces without their rights fails here.
        mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        Ok(())
    };
    unsafe { command.pre_exec(enter) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_that_mounts_remains_a_user_to_whom_permissions_apply() {
        crate::needs_mounts!();
        let disk = crate::SmallDisk::new(64);
        let large = disk.path().join("large");
        assert!(std::fs::write(&large, vec![1; 128 << 10]).is_err(), "the disk is not small");
        std::fs::remove_file(&large).unwrap();
        crate::as_ordinary_user(|| {
            let file = disk.path().join("closed");
            std::fs::write(&file, "x").unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
            assert!(std::fs::read(&file).is_err(), "a closed file was read");
        });
    }

    #[test]
    fn a_test_that_fails_in_its_namespace_fails() {
        const FAILS: &str = "PITON_TEST_FAILS";
        if std::env::var_os(FAILS).is_some() {
            crate::needs_mounts!();
            panic!("as it should");
        }
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "namespace::tests::a_test_that_fails_in_its_namespace_fails";
        let run = command.args([name, "--exact"]).env(FAILS, "1").env_remove("PITON_TEST_NOT_RUN").output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success() || said.contains("NOT RUN"), "{said}");
    }
}
