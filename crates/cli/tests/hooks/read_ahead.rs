//! What goes on after a hook that had too little time has answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use piton_engine::LogOptions;
use piton_testkit::{Scene, give, until};
use serde_json::json;

use crate::PITON;

/// A workspace with some files.
fn scene() -> Scene {
    let scene = Scene::with_a_home(PITON);
    for n in 0..20 {
        scene.world.write(format!("file{n}"), format!("{n} ").repeat(100));
    }
    // Young files are read again, and there is to be no need for that.
    std::thread::sleep(Duration::from_millis(50));
    scene
}

/// A prompt, with what a test has in mind for its hook.
fn prompt(scene: &Scene, mut hook: Command, fail: &str) {
    hook.env("PITON_FAIL", fail);
    let done = give(hook, &scene.claude_report("s1", "UserPromptSubmit", json!({ "prompt": "x" })));
    assert_eq!(done.status.code(), Some(0));
}

fn hook(scene: &Scene) -> Command {
    scene.piton(&["hook", "claude-code"])
}

#[track_caller]
fn assert_logged(scene: &Scene, what: &str) {
    let line = scene.hook_log().pop().unwrap();
    assert!(line.contains(what), "{line}");
}

/// The process that reads ahead here.
fn reader(scene: &Scene) -> Option<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_it = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("--read-ahead") && line.contains(&*scene.world.ws().to_string_lossy())
    };
    processes.into_iter().find(is_it)
}

fn checkpoints(scene: &Scene) -> u64 {
    scene.world.open().log(LogOptions::default()).unwrap().total
}

/// Where a process that a test holds up waits for its file, which comes at the latest with the end of the test.
struct Held(PathBuf);

impl Held {
    fn at(scene: &Scene) -> Self {
        Self(scene.at("home").join("go-on"))
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
    let scene = scene();
    let held = Held::at(&scene);
    // An agent may leave more open than the three streams.
    let other = scene.at("home").join("other");
    let mut command = Command::new("bash");
    scene.surround(&mut command);
    command.env("PITON_FAIL_AHEAD", held.fail("ahead:kept"));
    command.arg("-c").arg(format!("exec 7> {}; exec {PITON} hook claude-code", other.display()));
    prompt(&scene, command, "late");
    assert_logged(&scene, "gap: not all files could be read in time");
    held.wait_until_reached();
    let process = reader(&scene).expect("it is there while it waits");
    assert_eq!(session_of(process), process, "it has a session of its own");
    let open = open_files(process);
    for stream in ["0", "1", "2"] {
        let is_null = |(name, to): &(String, PathBuf)| name == stream && to == Path::new("/dev/null");
        assert!(open.iter().any(is_null), "{open:?}");
    }
    let is_the_agents = |to: &Path| to == other || to.to_string_lossy().starts_with("pipe:");
    assert!(!open.iter().any(|(_, to)| is_the_agents(to)), "{open:?}");
    drop(held);
    until(|| reader(&scene).is_none());
    assert_eq!(checkpoints(&scene), 0, "it captures for no event that has passed");
    // A hook that has no time to read captures now.
    prompt(&scene, hook(&scene), "late");
    assert_logged(&scene, "captured");
    assert_eq!(checkpoints(&scene), 1);
    assert!(reader(&scene).is_none());
}

#[test]
fn a_hook_that_is_ended_by_its_watchdog_leaves_one_too_and_its_gap_is_recorded() {
    let scene = scene();
    let never = scene.at("home").join("never");
    let mut command = hook(&scene);
    command.env("PITON_HOOK_TIME_BUDGET", "1s");
    let held = Held::at(&scene);
    command.env("PITON_FAIL_AHEAD", held.fail("ahead:kept"));
    prompt(&scene, command, &format!("wait=capture:scanned={}", never.display()));
    assert_logged(&scene, "gap: the time budget is over");
    held.wait_until_reached();
    drop(held);
    until(|| reader(&scene).is_none());
    prompt(&scene, hook(&scene), "late");
    assert_logged(&scene, "captured");
    let done = scene.run(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(status["gaps"][0]["reason"], "the time budget is over", "{status:#}");
}

#[test]
fn between_its_slices_others_capture_and_a_second_one_does_nothing() {
    let scene = scene();
    let held = Held::at(&scene);
    let mut command = hook(&scene);
    command.env("PITON_AHEAD_SLICE", "1").env("PITON_FAIL_AHEAD", held.fail("ahead:between"));
    prompt(&scene, command, "late");
    held.wait_until_reached();
    let trace = scene.at("home").join("trace");
    let mut second = scene.piton(&["hook", "--read-ahead"]);
    second.arg(scene.at("ws")).env("PITON_FAIL_TRACE", &trace);
    assert!(second.status().unwrap().success());
    let passed = fs::read_to_string(&trace).unwrap_or_default();
    assert!(!passed.contains("capture:"), "two read at once: {passed}");
    // The first one still waits, and has no lock.
    prompt(&scene, hook(&scene), "");
    assert_logged(&scene, "captured");
    assert!(reader(&scene).is_some());
    drop(held);
    until(|| reader(&scene).is_none());
    assert_eq!(checkpoints(&scene), 1);
}

#[test]
fn killing_it_costs_nothing_but_its_work() {
    let scene = scene();
    let held = Held::at(&scene);
    let mut command = hook(&scene);
    command.env("PITON_AHEAD_SLICE", "1").env("PITON_FAIL_AHEAD", held.fail("capture:slice"));
    prompt(&scene, command, "late");
    held.wait_until_reached();
    let process = rustix::process::Pid::from_raw(reader(&scene).unwrap() as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    until(|| reader(&scene).is_none());
    prompt(&scene, hook(&scene), "");
    assert_logged(&scene, "captured");
    scene.ok(&["verify"]);
}
