//! The pager that long output is read in, as git has it.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

/// A running pager.
pub struct Pager {
    child: Child,
    stdin: BufWriter<ChildStdin>,
}

/// In this order; the first that is set counts, also where it is empty.
const VARIABLES: [&str; 2] = ["PITON_PAGER", "PAGER"];

/// Where none of them is set.
const USUAL: &str = "less";

/// What only a shell understands.
const FOR_A_SHELL: &str = "|&;<>()$`\\\"'*?[#~=%\n";

impl Pager {
    /// Starts the one that the user wants; none where that is none, or there is no such program.
    pub fn start() -> Option<Self> {
        let wanted = VARIABLES.iter().find_map(std::env::var_os).unwrap_or_else(|| USUAL.into());
        let mut command = command(&wanted)?;
        // As git does: colours pass, a short text ends it at once, and the text stays on the screen.
        for (variable, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(variable).is_none() {
                command.env(variable, value);
            }
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let stdin = BufWriter::new(child.stdin.take()?);
        // An interrupt is the pager's: without a handler it would end this process and leave the pager behind.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default());
        Some(Self { child, stdin })
    }

    /// Waits until the user has seen enough.
    pub fn wait(mut self) {
        // Whoever quits early has seen enough as well.
        let _ = self.stdin.flush();
        drop(self.stdin);
        let _ = self.child.wait();
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdin.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdin.flush()
    }
}

/// A program with its arguments where it is no more than that: one that is not there is found out before anything is written to
/// it. Everything else is a line for a shell.
fn command(wanted: &OsStr) -> Option<Command> {
    let line = wanted.to_string_lossy();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (program, arguments) = words.split_first().filter(|_| words != ["cat"])?;
    if line.contains(|c| FOR_A_SHELL.contains(c)) {
        let mut shell = Command::new("sh");
        shell.args([OsString::from("-c"), wanted.to_owned()]);
        return Some(shell);
    }
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}
