//! What goes on after a hook has answered: a process of its own reads what the capture had no time for.
//!
//! The agent waits until the hook's output is closed and may end the hook's whole process group: so this one has a session of
//! its own and nothing open that the hook was given. It answers to nobody. That it is killed, or does not start, costs time
//! at the next capture and no more.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use piton_engine::AheadOptions;

use crate::{environment, settings};

/// `piton hook --read-ahead FOLDER`: for hooks alone.
pub const ARGUMENT: &str = "--read-ahead";

/// Starts it, and does not wait for it.
pub fn start(root: &Path) {
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command.arg(super::NAME).arg(ARGUMENT).arg(root);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(debug_assertions)]
    for (name, own) in [("PITON_FAIL", "PITON_FAIL_AHEAD"), ("PITON_FAIL_TRACE", "PITON_FAIL_AHEAD_TRACE")] {
        // What a test has in mind for the hook is not meant for this process.
        command.env_remove(name);
        command.envs(std::env::var_os(own).map(|value| (name, value)));
    }
    // Whatever else the agent's process has left open for its children stays with them.
    piton_engine::detach(&mut command);
    let _ = command.spawn();
}

/// Reads on, in the process that [`start`] made.
pub fn run(root: OsString) -> ExitCode {
    // The agent and its tools come first; not by much, for a hook may wait until a slice is done.
    let _ = rustix::process::nice(5);
    let root = Path::new(&root);
    let (settings, _) = settings::load_leniently(Some(root));
    if let Ok(engine) = environment::engine(Some(&settings)) {
        // Nobody listens, and whatever went wrong will meet the next capture, which says so.
        let _ = engine.read_ahead(root, options());
    }
    ExitCode::SUCCESS
}

#[cfg(not(debug_assertions))]
fn options() -> AheadOptions {
    AheadOptions::default()
}

/// A test may want slices of a file each.
#[cfg(debug_assertions)]
fn options() -> AheadOptions {
    match std::env::var_os("PITON_AHEAD_SLICE").is_some() {
        true => AheadOptions { slice: std::time::Duration::ZERO, ..AheadOptions::default() },
        false => AheadOptions::default(),
    }
}
