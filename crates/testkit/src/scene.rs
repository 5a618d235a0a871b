//! The real `piton` over a world, in its own environment.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::World;

/// A world and the binary that works in it.
pub struct Scene {
    pub world: World,
    /// Variables that every command gets besides `HOME` and `PITON_HOME`; a later one of the same name wins.
    pub environment: Vec<(&'static str, OsString)>,
    binary: &'static str,
    home: PathBuf,
    store: PathBuf,
}

impl Scene {
    /// An empty workspace `ws`; the store is `home`, and the scratch folder is the user's home. The binary is
    /// `env!("CARGO_BIN_EXE_piton")`, which only a test of the command line knows.
    pub fn new(binary: &'static str) -> Self {
        let world = World::new();
        let (home, store) = (world.base().to_owned(), world.base().join("home"));
        Self { world, environment: Vec::new(), binary, home, store }
    }

    /// An empty workspace `ws`, a home `home`, a folder for temporary files `tmp`, and `store` for a store that does
    /// not exist yet: for tests of what piton writes where.
    pub fn with_a_home(binary: &'static str) -> Self {
        Self::with_a_home_in(binary, tempfile::tempdir().expect("a scratch folder"))
    }

    /// Like [`Scene::with_a_home`], in the caller's scratch folder.
    pub fn with_a_home_in(binary: &'static str, scratch: tempfile::TempDir) -> Self {
        let base = scratch.path().canonicalize().expect("a scratch folder has a path");
        let (home, store, tmp) = (base.join("home"), base.join("store"), base.join("tmp"));
        for folder in [&home, &tmp] {
            std::fs::create_dir(folder).expect("a folder can be made");
        }
        let mut world = World::laid_out(&base, &home, &store, |_| {});
        world.hold(scratch);
        let environment = vec![("PATH", "/usr/bin:/bin".into()), ("TMPDIR", tmp.into())];
        Self { world, environment, binary, home, store }
    }

    /// A path in the scratch folder.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.world.base().join(path)
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.world.path(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// The command, in the workspace, with nothing of the environment around the test.
    pub fn piton(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        self.surround(&mut command);
        command.args(args);
        command
    }

    /// The command as the last arguments of another program, which starts it.
    pub fn started_by(&self, mut program: Command, args: &[&str]) -> Command {
        self.surround(&mut program);
        program.arg(self.binary).args(args);
        program
    }

    /// Gives a program the environment of a command.
    pub fn surround(&self, program: &mut Command) {
        program.env_clear().current_dir(self.world.ws()).stdin(Stdio::null());
        // Nobody is there to turn pages.
        program.env("HOME", &self.home).env("PITON_HOME", &self.store).env("PITON_PAGER", "");
        program.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.piton(args).output().expect("the binary runs")
    }

    /// The stdout of a command that succeeds.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        text(&self.ends_in(0, args).stdout)
    }

    /// Both streams of a command that succeeds.
    #[track_caller]
    pub fn told(&self, args: &[&str]) -> String {
        both(&self.ends_in(0, args))
    }

    /// The JSON of a command that succeeds.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--json"]].concat())).expect("one JSON document")
    }

    /// The stderr of a command that fails with exit code 1 and prints nothing.
    #[track_caller]
    pub fn fails(&self, args: &[&str]) -> String {
        let done = self.ends_in(1, args);
        assert_eq!(text(&done.stdout), "", "{args:?}");
        text(&done.stderr)
    }

    #[track_caller]
    fn ends_in(&self, code: i32, args: &[&str]) -> Output {
        let done = self.run(args);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}", both(&done));
        done
    }

    /// Makes a checkpoint and returns its id.
    #[track_caller]
    pub fn capture(&self) -> String {
        self.json(&["checkpoint"])["checkpoint"]["id"].as_str().expect("a checkpoint has an id").to_owned()
    }

    /// Runs a command with input.
    pub fn send(&self, args: &[&str], bytes: &[u8]) -> Output {
        give(self.piton(args), bytes)
    }

    /// The bytes of a Claude Code event in the workspace. `more` adds or replaces fields.
    pub fn claude_report(&self, session: &str, event: &str, more: Value) -> Vec<u8> {
        let report = json!({ "session_id": session, "hook_event_name": event, "cwd": self.world.ws() });
        merged(report, more).to_string().into_bytes()
    }

    /// The bytes of an event in piton's own format, in the workspace. `more` adds or replaces fields.
    pub fn generic_report(&self, session: &str, event: &str, more: Value) -> Vec<u8> {
        let report = json!({ "session": session, "event": event, "cwd": self.world.ws() });
        merged(report, more).to_string().into_bytes()
    }

    /// Reports an event as Claude Code does; returns the reply, or null.
    #[track_caller]
    pub fn claude_event(&self, session: &str, event: &str, more: Value) -> Value {
        reply(&self.send(&["hook", "claude-code"], &self.claude_report(session, event, more)))
    }

    /// Reports an event in piton's own format; returns the reply, or null.
    #[track_caller]
    pub fn generic_event(&self, session: &str, event: &str, more: Value) -> Value {
        reply(&self.send(&["hook", "generic"], &self.generic_report(session, event, more)))
    }

    /// A turn in which shell commands run in a folder, reported in piton's own format; returns what the user sees of
    /// it.
    #[track_caller]
    pub fn shell_turn(&self, session: &str, folder: &Path, number: u32, commands: &[&str]) -> String {
        let turn = format!("p{number}");
        let mut seen = Vec::new();
        let mut tell = |event: &str, more: Value| {
            let reply = self.generic_event(session, event, merged(json!({ "cwd": folder, "turn": turn }), more));
            seen.extend(reply["line"].as_str().or(reply["answer"].as_str()).map(str::to_owned));
        };
        tell("prompt", json!({ "text": format!("prompt {number}") }));
        for (at, command) in commands.iter().enumerate() {
            let call = json!({ "tool": "shell", "call": format!("{session}{number}-{at}"), "command": command });
            tell("before-tool", call.clone());
            let ran = Command::new("sh").args(["-ec", command]).current_dir(folder).status();
            assert!(ran.expect("a shell runs").success(), "{command}");
            tell("after-tool", call);
        }
        tell("turn-ended", json!({}));
        seen.join("\n")
    }

    /// Runs a command in another folder and with the `PATH` of the test; returns its exit code and all its output.
    pub fn run_in(&self, folder: &Path, args: &[&str]) -> (Option<i32>, String) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let done = self.piton(args).current_dir(folder).env("PATH", path).output().expect("the binary runs");
        (done.status.code(), both(&done))
    }

    /// The lines of the hook's log, without their times.
    pub fn hook_log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.store.join("hook.log")).unwrap_or_default();
        text.lines().map(|line| line.split_once(' ').expect("a line begins with a time").1.to_owned()).collect()
    }

    /// Runs a command at a terminal of 80 columns, where somebody types an answer; returns the screen and the exit
    /// code.
    pub fn at_a_terminal(&self, args: &[&str], answer: &str) -> (String, Option<i32>) {
        let mut command = self.piton(args);
        command.env("COLUMNS", "80");
        at_a_terminal(command, answer)
    }
}

/// Runs a command at its own terminal, where somebody types an answer; returns the screen and the exit code.
pub fn at_a_terminal(mut command: Command, answer: &str) -> (String, Option<i32>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&screen).expect("a terminal");
    unlockpt(&screen).expect("a terminal");
    let name = ptsname(&screen, Vec::new()).expect("a terminal has a name");
    let open = || File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).expect("it opens");
    let child = command.stdin(open()).stdout(open()).stderr(open()).spawn();
    drop(command);
    let mut screen = File::from(screen);
    screen.write_all(answer.as_bytes()).expect("somebody types");
    let mut shown = Vec::new();
    // The system reports a closed other end as an error here.
    let _ = screen.read_to_end(&mut shown);
    let code = child.expect("the binary runs").wait().expect("it ends").code();
    (text(&shown).replace("\r\n", "\n"), code)
}

/// Starts a command with a pipe at each of its streams.
pub fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

/// Runs a command with input, all of which it must read.
pub fn give(mut command: Command, bytes: &[u8]) -> Output {
    let mut child = start(&mut command);
    let mut stdin = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || stdin.write_all(bytes));
        let done = child.wait_with_output().expect("it ends");
        writing.join().expect("a writer ends").expect("whoever writes a report is let finish");
        done
    })
}

/// A hook's reply, or null. Whatever happens in a hook, it exits with 0 and prints nothing on stderr.
#[track_caller]
pub fn reply(done: &Output) -> Value {
    assert_eq!((done.status.code(), &text(&done.stderr)[..]), (Some(0), ""), "{}", both(done));
    if done.stdout.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("no document: {}", both(done)))
}

/// Stdout and stderr.
pub fn both(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of both; those of `more` win.
fn merged(mut fields: Value, more: Value) -> Value {
    fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fields
}
