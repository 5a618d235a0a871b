//! The real Claude Code from npm, offline, with a scripted model instead of Anthropic's.

use std::ffi::OsString;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::model::Model;
use crate::network::Network;

/// The version that the tests run. `./check` reads it from this line.
pub const CLAUDE_CODE_VERSION: &str = "2.1.325";

/// An installed Claude Code, and how to run it.
#[derive(Clone, Debug)]
pub struct ClaudeCode {
    /// The program, or its script for node.
    pub program: PathBuf,
    /// Additional variables for it, its tools and its hooks; only these and what it needs are passed on.
    pub environment: Vec<(OsString, OsString)>,
    /// How long a run may take.
    pub timeout: Duration,
}

/// A completed run.
#[derive(Debug)]
pub struct ClaudeRun {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// Its output as JSON; null if it is not JSON.
    pub result: Value,
    pub took: Duration,
}

impl ClaudeCode {
    /// Finds the program: the one that `PITON_TEST_CLAUDE` names, else what `./check` installed beneath `target`.
    pub fn find() -> Result<Self, String> {
        let named = std::env::var_os("PITON_TEST_CLAUDE").map(PathBuf::from);
        let program = named.clone().unwrap_or_else(installed);
        if program.is_file() {
            return Ok(Self { program, environment: Vec::new(), timeout: Duration::from_secs(120) });
        }
        let place = installed();
        let prefix = place.ancestors().nth(3).unwrap_or(&place).display();
        Err(match named {
            Some(named) => format!("PITON_TEST_CLAUDE names {}, which is no file", named.display()),
            None => format!(
                "Claude Code is not installed \
                 (npm install --prefix {prefix} @anthropic-ai/claude-code@{CLAUDE_CODE_VERSION})"
            ),
        })
    }

    /// Like [`ClaudeCode::find`], for a test that needs it: if it is missing the test is listed as not run, and fails
    /// if `PITON_TEST_AGENTS=required` is set.
    #[track_caller]
    pub fn find_or_say_so() -> Option<Self> {
        let missing = match Self::find() {
            Ok(found) => return Some(found),
            Err(missing) => missing,
        };
        assert!(std::env::var_os("PITON_TEST_AGENTS").is_none_or(|wanted| wanted != "required"), "{missing}");
        crate::not_run("tests with Claude Code", &missing);
        None
    }

    /// Gives it a prompt in a workspace, with the test's own home, and waits for its end. `arguments` go at the end of
    /// its command line: `["--resume", id]` resumes a session. Fails unless it succeeds.
    #[track_caller]
    pub fn run(&self, home: &Path, workspace: &Path, model: &Model, prompt: &str, arguments: &[&str]) -> ClaudeRun {
        match self.try_run(home, workspace, model, prompt, arguments) {
            Ok(run) if run.status.success() && run.result["is_error"] == false => run,
            Ok(run) => panic!("Claude Code ended with {}\n{}", run.status, said(&run.stdout, &run.stderr)),
            Err(why) => panic!("Claude Code: {why}"),
        }
    }

    /// Like [`ClaudeCode::run`], where failing is also a result: an error means only that it did not start, or did not
    /// end in time.
    pub fn try_run(
        &self,
        home: &Path,
        workspace: &Path,
        model: &Model,
        prompt: &str,
        arguments: &[&str],
    ) -> Result<ClaudeRun, String> {
        let mut command = self.command(home, workspace, model);
        command.args(["-p", prompt, "--output-format", "json", "--permission-mode", "acceptEdits"]);
        command.args(["--allowedTools", "Bash,Write,Edit"]).args(arguments);
        watch(&mut command, model.network(), self.timeout)
    }

    /// The program with its environment: of the machine's variables only `PATH`.
    fn command(&self, home: &Path, workspace: &Path, model: &Model) -> Command {
        let mut command = if self.program.extension().is_some_and(|e| e == "js" || e == "cjs" || e == "mjs") {
            let mut node = Command::new("node");
            node.arg(&self.program);
            node
        } else {
            Command::new(&self.program)
        };
        command.current_dir(workspace).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
        command.env("LANG", "C.UTF-8").env("TERM", "dumb");
        // Otherwise it leaves the output of background commands in the machine's temporary folder.
        command.env("CLAUDE_CODE_TMPDIR", home);
        command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "not-a-key");
        for off in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
        ] {
            command.env(off, "1");
        }
        if !model.network().is_closed() {
            // Nothing listens on the discard port: whatever is not for loopback is refused at once.
            for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
                command.env(proxy, "http://127.0.0.1:9");
            }
            command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl ClaudeRun {
    #[track_caller]
    pub fn session(&self) -> &str {
        self.result["session_id"].as_str().unwrap_or_else(|| panic!("no session\n{}", said(&self.stdout, &self.stderr)))
    }

    /// The last thing it said.
    #[track_caller]
    pub fn answer(&self) -> &str {
        self.result["result"].as_str().unwrap_or_else(|| panic!("no answer\n{}", said(&self.stdout, &self.stderr)))
    }
}

fn installed() -> PathBuf {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a room is in a house");
    house.join(format!("target/agents/claude-code-{CLAUDE_CODE_VERSION}/node_modules/.bin/claude"))
}

/// Runs a command to its end, or kills its whole process group when its time is up.
fn watch(command: &mut Command, network: &Network, limit: Duration) -> Result<ClaudeRun, String> {
    // Files and not pipes: what it leaves running may hold its output open for as long as it likes.
    let [mut stdout, mut stderr] = [(); 2].map(|()| tempfile::tempfile().expect("a scratch file"));
    let [out, err] = [&stdout, &stderr].map(|file| file.try_clone().expect("a second handle"));
    command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err);
    let begun = Instant::now();
    let started = network.inside(|| command.spawn());
    let mut child = started.map_err(|e| format!("{} cannot be started: {e}", command.get_program().display()))?;
    let ended = wait(&mut child, limit);
    if ended.is_none() {
        end(&mut child);
    }
    let took = begun.elapsed();
    let [stdout, stderr] = [&mut stdout, &mut stderr].map(|file| {
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("a scratch file can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let Some(status) = ended else {
        return Err(format!("it did not end within {} s\n{}", limit.as_secs(), said(&stdout, &stderr)));
    };
    let result = serde_json::from_str(&stdout).unwrap_or_default();
    Ok(ClaudeRun { status, stdout, stderr, result, took })
}

fn wait(child: &mut Child, at_most: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if begun.elapsed() > at_most {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Terminates politely first, so that it can end the shells it started, which have their own process groups.
fn end(child: &mut Child) {
    let Some(group) = Pid::from_raw(child.id() as i32) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    if wait(child, Duration::from_secs(5)).is_none() {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
}

fn said(stdout: &str, stderr: &str) -> String {
    format!("--- stdout\n{stdout}\n--- stderr\n{stderr}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_in_time_is_ended_with_its_group_and_shows_what_it_said() {
        crate::needs_network!();
        let begun = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $!; echo worried >&2; wait"]);
        let error = watch(&mut command, &Network::closed(), Duration::from_secs(1)).unwrap_err();
        assert!(error.starts_with("it did not end within 1 s") && error.contains("worried"), "{error}");
        let child: String = error.lines().nth(2).unwrap().into();
        // It was told to end when its parent was, and may take a moment longer. Its parent is gone, so it may then
        // remain as a zombie until something reaps orphans here.
        let state = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(begun.elapsed() < Duration::from_secs(30), "{}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_agent_gets_nothing_of_the_machine_but_its_path() {
        crate::needs_network!();
        let program = PathBuf::from("env");
        let timeout = Duration::from_secs(120);
        let agent = ClaudeCode { program, environment: vec![("PITON_HOME".into(), "/somewhere".into())], timeout };
        let (here, model) = (Path::new("/"), Model::start([]));
        let run = watch(&mut agent.command(here, here, &model), model.network(), timeout).unwrap();
        for name in run.stdout.lines().filter_map(|line| line.split('=').next()) {
            let given = ["PATH", "HOME", "LANG", "TERM", "PITON_HOME"].contains(&name);
            let set = ["ANTHROPIC_", "CLAUDE_CODE_", "DISABLE_"].iter().any(|start| name.starts_with(start));
            let proxy = !model.network().is_closed() && name.to_ascii_uppercase().ends_with("_PROXY");
            assert!(given || set || proxy, "{name} came through");
        }
        assert!(run.stdout.contains("PITON_HOME=/somewhere\n"), "{}", run.stdout);
    }
}
