//! The machine the figures were taken on: without it they mean little.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::process;

/// The machine, as far as the figures depend on it.
#[derive(Debug, Clone)]
pub struct Machine {
    cores: usize,
    kernel: String,
    filesystem: String,
    git: String,
}

impl Machine {
    /// Describes the machine, and the filesystem that contains `scratch`.
    pub fn look(scratch: &Path) -> Self {
        let filesystem = ask("df", &["--output=fstype".as_ref(), scratch.as_os_str()]);
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: ask("uname", &["-sr".as_ref()]),
            // The first line is a heading.
            filesystem: filesystem.lines().last().unwrap_or_default().to_owned(),
            git: ask("git", &["--version".as_ref()]),
        }
    }

    pub fn json(&self) -> Value {
        json!({ "cores": self.cores, "kernel": self.kernel, "filesystem": self.filesystem, "git": self.git })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, kernel, filesystem, git } = self;
        write!(f, "{cores} cores, {kernel}, {filesystem}, {git}")
    }
}

/// What the system does not report is `unknown`: no reason to stop.
fn ask(program: &str, args: &[&std::ffi::OsStr]) -> String {
    let mut command = Command::new(program);
    command.args(args);
    match process::run(command) {
        Ok(answer) => String::from_utf8_lossy(&answer.value).trim().to_owned(),
        Err(_) => "unknown".to_owned(),
    }
}
