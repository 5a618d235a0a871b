//! Runs one command from spawn to exit: the only clock of the bench.
//!
//! All contenders go through here, with the same pipes and the same cleared environment, so that none is measured
//! differently.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// Longer than a tick of the kernel's clock for file times.
const TICK: Duration = Duration::from_millis(50);

/// The result of a measured action, and how long it took.
#[derive(Debug, Clone)]
pub struct Timed<T> {
    pub value: T,
    /// From spawn to exit, summed over all processes of the action.
    pub took: Duration,
}

/// A command isolated from the caller's settings: its own home, no inherited variables but the search path.
pub fn command(program: impl AsRef<OsStr>, cwd: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(cwd).env("HOME", home).env("LC_ALL", "C");
    for kept in ["PATH", "TMPDIR"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command
}

/// Runs it to its end, reading its output through pipes. A failure is an error that quotes its output.
pub fn run(command: Command) -> Result<Timed<Vec<u8>>> {
    run_with(command, Stdio::null())
}

/// Like [`run`], with input.
pub fn run_with(mut command: Command, stdin: Stdio) -> Result<Timed<Vec<u8>>> {
    command.stdin(stdin);
    let start = Instant::now();
    let output = command.output();
    let took = start.elapsed();
    let output = output.map_err(|error| format!("{command:?} did not start: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed with {}:\n{}", output.status, said.trim_end()).into());
    }
    Ok(Timed { value: output.stdout, took })
}

/// Waits until the disk is idle and the clock has ticked.
///
/// Without the first, whoever syncs would pay for what the others left unwritten; without the second, files edited in
/// the same tick as a capture would have to be read again by the next.
pub fn settle() -> Result<()> {
    run(Command::new("sync"))?;
    std::thread::sleep(TICK);
    Ok(())
}

pub fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
