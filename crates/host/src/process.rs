//! Other processes: which one reports, and whether it still runs.

use std::os::unix::process::CommandExt;
use std::process::Command;

use piton_model::session::Process;

use crate::sys;

/// The process that runs piton for the user: the nearest ancestor that is neither a shell nor piton itself.
pub fn reporter() -> Option<Process> {
    let mut pid = std::os::unix::process::parent_id();
    // An agent runs a hook through a shell or two.
    for _ in 0..8 {
        let stat = sys::process(pid)?;
        if !is_shell(&stat.name) || stat.parent <= 1 {
            return Some(Process { pid, started: stat.started, own: false });
        }
        pid = stat.parent;
    }
    None
}

/// The ancestors of this process, nearest first.
pub fn ancestors() -> Vec<Process> {
    let mut found = Vec::new();
    let mut pid = std::os::unix::process::parent_id();
    while let Some(stat) = sys::process(pid).filter(|_| pid > 1 && found.len() < 64) {
        found.push(Process { pid, started: stat.started, own: false });
        pid = stat.parent;
    }
    found
}

pub fn this() -> Option<Process> {
    let pid = std::process::id();
    sys::process(pid).map(|stat| Process { pid, started: stat.started, own: true })
}

/// Whether a process still runs, and is not another one with the same pid.
pub fn is_alive(process: &Process) -> bool {
    sys::process(process.pid).is_some_and(|stat| stat.started == process.started && !stat.is_dead)
}

/// The signals that this process ignores, as bits: signal 1 is the lowest. `None` where that is unknown.
pub fn ignored_signals() -> Option<u64> {
    sys::ignored_signals()
}

/// Makes a command run in its own session, inheriting nothing but the standard streams.
#[allow(unsafe_code, reason = "between fork and exec only system calls are made")]
pub fn detach(command: &mut Command) {
    let detach = || {
        let _ = rustix::process::setsid();
        sys::close_on_exec();
        Ok(())
    };
    unsafe { command.pre_exec(detach) };
}

fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "fish" | "ksh" | "busybox" | "env" | "timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_is_not_alive_and_neither_is_another_with_its_number() {
        let me = this().unwrap();
        assert!(is_alive(&me));
        assert!(!is_alive(&Process { started: me.started + 1, ..me }));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let it = Process { pid: child.id(), started: sys::process(child.id()).unwrap().started, own: false };
        assert!(is_alive(&it));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(&it));
    }

    #[test]
    fn the_reporter_is_somebody_who_runs() {
        assert!(reporter().is_some_and(|process| is_alive(&process)));
    }
}
