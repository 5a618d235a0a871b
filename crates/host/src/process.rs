//! Other processes: which one reports, and whether it still runs.

use piton_model::session::Process;

/// The process that works for the user here: the nearest ancestor that is no shell and not piton itself.
pub fn reporter() -> Option<Process> {
    let mut pid = std::os::unix::process::parent_id();
    // A hook is run by its agent through a shell or two.
    for _ in 0..8 {
        let stat = Stat::of(pid)?;
        if !stat.is_shell() || stat.parent <= 1 {
            return Some(Process { pid, started: stat.started, own: false });
        }
        pid = stat.parent;
    }
    None
}

/// This process.
pub fn this() -> Option<Process> {
    let pid = std::process::id();
    Stat::of(pid).map(|stat| Process { pid, started: stat.started, own: true })
}

/// Whether a process still runs, and is not another one with its number.
pub fn is_alive(process: &Process) -> bool {
    Stat::of(process.pid).is_some_and(|stat| stat.started == process.started && !stat.is_dead)
}

/// What the kernel says of a process.
struct Stat {
    name: String,
    parent: u32,
    started: u64,
    is_dead: bool,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name is in brackets and may hold anything, brackets too.
        let (head, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Self {
            name: head.split_once('(')?.1.to_owned(),
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn is_shell(&self) -> bool {
        matches!(&self.name[..], "sh" | "bash" | "dash" | "zsh" | "fish" | "ksh" | "busybox" | "env" | "timeout")
    }
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
        let it = Process { pid: child.id(), started: Stat::of(child.id()).unwrap().started, own: false };
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
