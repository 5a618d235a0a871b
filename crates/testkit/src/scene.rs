//! The real `piton` over a world, in an environment of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::World;

/// A world and the binary that works in it.
pub struct Scene {
    /// The workspace, the store and the engine over them.
    pub world: World,
    binary: &'static str,
}

impl Scene {
    /// An empty workspace. The binary is `env!("CARGO_BIN_EXE_piton")`, which only a test of the command line knows.
    pub fn new(binary: &'static str) -> Self {
        Self { world: World::new(), binary }
    }

    /// The command, in the workspace, with nothing of the environment around the test.
    pub fn piton(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command.env_clear().current_dir(self.world.ws()).args(args).stdin(Stdio::null());
        command.env("HOME", self.world.base()).env("PITON_HOME", self.world.base().join("home"));
        command
    }

    /// Runs it.
    pub fn run(&self, args: &[&str]) -> Output {
        self.piton(args).output().expect("the binary runs")
    }

    /// The stdout of a command that works.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {}", both(&done));
        text(&done.stdout)
    }

    /// Both streams of a command that works.
    #[track_caller]
    pub fn told(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {}", both(&done));
        both(&done)
    }

    /// The document of a command that works.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--json"]].concat())).expect("one JSON document")
    }

    /// The stderr of a command that the user can mend and that prints nothing.
    #[track_caller]
    pub fn fails(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {}", both(&done));
        assert_eq!(text(&done.stdout), "", "{args:?}");
        text(&done.stderr)
    }

    /// Sends bytes to a command.
    pub fn send(&self, args: &[&str], bytes: &[u8]) -> Output {
        let mut command = self.piton(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        child.stdin.take().expect("a pipe").write_all(bytes).expect("it reads");
        child.wait_with_output().expect("it ends")
    }

    /// Runs a command at a terminal of its own, where somebody types an answer; what the screen shows, and the exit code.
    pub fn at_a_terminal(&self, args: &[&str], answer: &str) -> (String, Option<i32>) {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).expect("a terminal");
        unlockpt(&screen).expect("a terminal");
        let name = ptsname(&screen, Vec::new()).expect("a terminal has a name");
        let open =
            || File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).expect("it opens");
        let mut command = self.piton(args);
        let child = command.env("COLUMNS", "80").stdin(open()).stdout(open()).stderr(open()).spawn();
        drop(command);
        let mut screen = File::from(screen);
        screen.write_all(answer.as_bytes()).expect("somebody types");
        let mut shown = Vec::new();
        // The system's word for "the other end is closed" is an error here.
        let _ = screen.read_to_end(&mut shown);
        let code = child.expect("the binary runs").wait().expect("it ends").code();
        (text(&shown).replace("\r\n", "\n"), code)
    }

    /// What a file of the workspace says.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.world.path(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }
}

/// What a command said, all of it.
pub fn both(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
