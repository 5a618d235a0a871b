//! What goes on after a hook that had too little time has answered.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use piton_engine::{Engine, Environment, LogOptions};
use serde_json::json;

const PITON: &str = env!("CARGO_BIN_EXE_piton");

struct Scene {
    scratch: tempfile::TempDir,
}

impl Scene {
    /// A workspace with some files.
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let scene = Self { scratch };
        fs::create_dir_all(scene.path("home")).unwrap();
        fs::create_dir_all(scene.path("ws")).unwrap();
        for n in 0..20 {
            fs::write(scene.path("ws").join(format!("file{n}")), format!("{n} ").repeat(100)).unwrap();
        }
        // Young files are read again, and there is to be no need for that.
        std::thread::sleep(Duration::from_millis(50));
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    fn piton(&self) -> Command {
        let mut command = Command::new(PITON);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        command.env("PITON_HOME", self.path("store")).current_dir(self.path("ws"));
        command
    }

    /// A prompt, with what a test has in mind for its hook.
    fn prompt(&self, mut command: Command, fail: &str) {
        let body = json!({
            "hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": self.path("ws"), "prompt": "x"
        });
        command.env("PITON_FAIL", fail).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(body.to_string().as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }

    fn hook(&self) -> Command {
        let mut command = self.piton();
        command.args(["hook", "claude-code"]);
        command
    }

    fn last_of_log(&self) -> String {
        let log = fs::read_to_string(self.path("store/hook.log")).unwrap();
        log.lines().last().unwrap().to_owned()
    }

    /// The process that reads ahead here.
    fn reader(&self) -> Option<u32> {
        let processes =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_it = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            line.contains("--read-ahead") && line.contains(&*self.path("ws").to_string_lossy())
        };
        processes.into_iter().find(is_it)
    }

    fn checkpoints(&self) -> u64 {
        let engine = Engine::new(self.path("store"), Environment::default());
        engine.open(&self.path("ws")).unwrap().log(LogOptions::default()).unwrap().total
    }
}

/// Where a process that a test holds up waits for its file, which comes at the latest with the end of the test.
struct Held(PathBuf);

impl Held {
    fn at(scene: &Scene) -> Self {
        Self(scene.path("home").join("go-on"))
    }

    fn fail(&self, point: &str) -> String {
        format!("wait={point}={}", self.0.display())
    }

    fn wait_until_reached(&self) {
        until(|| self.0.with_extension("reached").exists());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "");
    }
}

#[track_caller]
fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn open_files(pid: u32) -> Vec<(String, PathBuf)> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    files
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.to_owned(), fs::read_link(path).ok()?))
        })
        .collect()
}

fn session_of(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().parse().unwrap()
}

#[test]
fn a_hook_without_time_leaves_a_process_that_has_nothing_of_its_agents_and_lets_the_next_hook_capture() {
    let scene = Scene::new();
    let held = Held::at(&scene);
    // An agent may leave more open than the three streams.
    let other = scene.path("home").join("other");
    let mut command = Command::new("bash");
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", scene.path("home"));
    command.env("PITON_HOME", scene.path("store")).current_dir(scene.path("ws"));
    command.env("PITON_FAIL_AHEAD", held.fail("ahead:kept"));
    command.arg("-c").arg(format!("exec 7> {}; exec {PITON} hook claude-code", other.display()));
    scene.prompt(command, "late");
    assert!(scene.last_of_log().contains("gap: not all files could be read in time"), "{}", scene.last_of_log());
    held.wait_until_reached();
    let reader = scene.reader().expect("it is there while it waits");
    assert_eq!(session_of(reader), reader, "it has a session of its own");
    let open = open_files(reader);
    for stream in ["0", "1", "2"] {
        let is_null = |(name, to): &(String, PathBuf)| name == stream && to == Path::new("/dev/null");
        assert!(open.iter().any(is_null), "{open:?}");
    }
    let is_the_agents = |to: &Path| to == other || to.to_string_lossy().starts_with("pipe:");
    assert!(!open.iter().any(|(_, to)| is_the_agents(to)), "{open:?}");
    drop(held);
    until(|| scene.reader().is_none());
    assert_eq!(scene.checkpoints(), 0, "it captures for no event that has passed");
    // A hook that has no time to read captures now.
    scene.prompt(scene.hook(), "late");
    assert!(scene.last_of_log().contains("captured"), "{}", scene.last_of_log());
    assert_eq!(scene.checkpoints(), 1);
    assert!(scene.reader().is_none());
}

#[test]
fn a_hook_that_is_ended_by_its_watchdog_leaves_one_too_and_its_gap_is_recorded() {
    let scene = Scene::new();
    let never = scene.path("home").join("never");
    let mut command = scene.hook();
    command.env("PITON_HOOK_TIME_BUDGET", "1s");
    let held = Held::at(&scene);
    command.env("PITON_FAIL_AHEAD", held.fail("ahead:kept"));
    scene.prompt(command, &format!("wait=capture:scanned={}", never.display()));
    assert!(scene.last_of_log().ends_with("gap: the time budget is over"), "{}", scene.last_of_log());
    held.wait_until_reached();
    drop(held);
    until(|| scene.reader().is_none());
    scene.prompt(scene.hook(), "late");
    assert!(scene.last_of_log().contains("captured"), "{}", scene.last_of_log());
    let done = scene.piton().args(["status", "--json"]).stdin(Stdio::null()).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(status["gaps"][0]["reason"], "the time budget is over", "{status:#}");
}

#[test]
fn between_its_slices_others_capture_and_a_second_one_does_nothing() {
    let scene = Scene::new();
    let held = Held::at(&scene);
    let mut command = scene.hook();
    command.env("PITON_AHEAD_SLICE", "1").env("PITON_FAIL_AHEAD", held.fail("ahead:between"));
    scene.prompt(command, "late");
    held.wait_until_reached();
    let trace = scene.path("home").join("trace");
    let mut second = scene.piton();
    second.args(["hook", "--read-ahead"]).arg(scene.path("ws")).env("PITON_FAIL_TRACE", &trace);
    assert!(second.stdin(Stdio::null()).status().unwrap().success());
    let passed = fs::read_to_string(&trace).unwrap_or_default();
    assert!(!passed.contains("capture:"), "two read at once: {passed}");
    // The first one still waits, and has no lock.
    scene.prompt(scene.hook(), "");
    assert!(scene.last_of_log().contains("captured"), "{}", scene.last_of_log());
    assert!(scene.reader().is_some());
    drop(held);
    until(|| scene.reader().is_none());
    assert_eq!(scene.checkpoints(), 1);
}

#[test]
fn killing_it_costs_nothing_but_its_work() {
    let scene = Scene::new();
    let held = Held::at(&scene);
    let mut command = scene.hook();
    command.env("PITON_AHEAD_SLICE", "1").env("PITON_FAIL_AHEAD", held.fail("capture:slice"));
    scene.prompt(command, "late");
    held.wait_until_reached();
    let reader = rustix::process::Pid::from_raw(scene.reader().unwrap() as i32).unwrap();
    rustix::process::kill_process(reader, rustix::process::Signal::KILL).unwrap();
    until(|| scene.reader().is_none());
    scene.prompt(scene.hook(), "");
    assert!(scene.last_of_log().contains("captured"), "{}", scene.last_of_log());
    let done = scene.piton().args(["verify"]).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}
