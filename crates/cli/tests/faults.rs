//! Real processes that are killed at every step, that find no space at every step, that race with each other and with
//! an attacker. The failpoints are in debug builds only (`crates/host/src/fail.rs`).

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use piton_testkit::{Snapshot, snapshot};
use serde_json::Value;

/// A workspace and a home of its own, driven through the binary alone.
struct Scene {
    scratch: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("ws")).unwrap();
        Self { scratch }
    }

    fn ws(&self) -> PathBuf {
        self.scratch.path().join("ws")
    }

    fn piton(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_piton"));
        command.env_clear().env("HOME", self.scratch.path()).env("PITON_HOME", self.scratch.path().join("home"));
        command.arg("--workspace").arg(self.ws()).args(args).stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Value {
        let done = self.piton(args).arg("--json").output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", text(&done));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    fn capture(&self) -> String {
        self.run(&["checkpoint"])["checkpoint"]["id"].as_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.ws().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.ws().join(path);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    }

    fn snapshot(&self) -> Snapshot {
        snapshot(&self.ws())
    }

    /// A checkpoint, and then a bit of everything.
    fn after_the_agent() -> (Self, String) {
        let scene = Self::new();
        scene.write("same", "same");
        scene.write("edited", "before");
        scene.write("dir/x", "x");
        scene.write("dir/sub/y", "y");
        let id = scene.capture();
        scene.write("edited", "after");
        scene.remove("dir");
        scene.write("added/p", "p");
        (scene, id)
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command once for each of its steps with `PITON_FAIL=<how>=<step>`; `check` sees what is left. Ends when the
/// command passes all of its steps undisturbed.
fn at_every_step(how: &str, verb: &[&str], mut check: impl FnMut(&Scene, &str, &Snapshot, &Output, u32)) -> u32 {
    for step in 1.. {
        let (scene, id) = Scene::after_the_agent();
        let old = scene.snapshot();
        let verb: Vec<&str> = verb.iter().map(|a| if *a == "ID" { &id[..] } else { a }).collect();
        let trace = scene.scratch.path().join("trace");
        let mut command = scene.piton(&verb);
        let done = command.env("PITON_FAIL", format!("{how}={step}")).env("PITON_FAIL_TRACE", &trace).output().unwrap();
        let passed = std::fs::read_to_string(&trace).unwrap_or_default().lines().count();
        if passed < step as usize {
            assert!(done.status.success(), "{}", text(&done));
            return step - 1;
        }
        check(&scene, &id, &old, &done, step);
    }
    unreachable!()
}

/// Once its end is noted nobody looks again: so what went back is on the disk first.
#[test]
fn a_rewind_that_is_refused_syncs_what_it_put_back_before_it_says_so() {
    let mut refused = 0;
    at_every_step("error", &["rewind", "ID", "--yes"], |scene, _, old, done, step| {
        let trace = std::fs::read_to_string(scene.scratch.path().join("trace")).unwrap();
        let (before, after) = trace.split_at(trace.match_indices('\n').nth(step as usize - 1).unwrap().0);
        if !before.ends_with("apply:swap") {
            return;
        }
        assert!(!done.status.success());
        assert!(scene.snapshot() == *old);
        let (synced, ended) = (after.find("apply:sync-swapped"), after.find("store:commit"));
        assert!(synced.unwrap() < ended.unwrap(), "{after}");
        refused += 1;
    });
    assert!(refused > 2, "{refused}");
}

#[test]
fn a_power_cut_in_the_middle_of_a_swap_that_tears_what_was_put_in_place_leaves_the_old_tree() {
    let mut torn = 0;
    for step in 1.. {
        let (scene, id) = Scene::after_the_agent();
        let old = scene.snapshot();
        let run = |args: &[&str], boot: &str, fail: &str| {
            scene.piton(args).env("PITON_TEST_BOOT_ID", boot).env("PITON_FAIL", fail).output().unwrap()
        };
        let done = run(&["rewind", &id, "--yes"], "one", &format!("kill={step}"));
        if done.status.success() {
            break;
        }
        // What was never synced is gone: the file is there, and empty or cut off.
        let edited = scene.ws().join("edited");
        if std::fs::read(&edited).unwrap() != b"before" || !files(scene.ws()).iter().any(|p| is_staged(p)) {
            continue;
        }
        // Once it is noted that what came out is being removed, everything was synced.
        let is_noted = |path: &PathBuf| {
            path.ends_with("progress") && std::fs::read_to_string(path).is_ok_and(|text| text.contains("clearing"))
        };
        if files(scene.scratch.path().join("home")).iter().any(is_noted) {
            continue;
        }
        for (path, length) in [("edited", 3), ("dir/x", 0), ("dir/sub/y", 0)] {
            if let Ok(file) = std::fs::File::options().write(true).open(scene.ws().join(path)) {
                file.set_len(length).unwrap();
            }
        }
        torn += 1;
        let done = run(&["status"], "two", "");
        assert!(done.status.success(), "{}", text(&done));
        let now = scene.snapshot();
        assert!(now == old, "step {step}\n{}", now.differences(&old).join("\n"));
    }
    assert!(torn > 3, "{torn}");
}

fn is_staged(path: &std::path::Path) -> bool {
    path.components().any(|c| c.as_os_str().to_string_lossy().starts_with(".piton-"))
}

fn rewound() -> Snapshot {
    let (scene, id) = Scene::after_the_agent();
    scene.run(&["rewind", &id, "--yes"]);
    scene.snapshot()
}

#[test]
fn killed_at_any_step_of_a_rewind_the_next_command_finds_the_old_or_the_new_tree_and_finishes_by_itself() {
    let new = rewound();
    let steps = at_every_step("kill", &["rewind", "ID", "--yes"], |scene, _, old, done, step| {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(done.status.signal(), Some(9), "step {step}: {}", text(done));
        let status = scene.run(&["status"]);
        assert_eq!(status["pending"].as_array().map(Vec::len), Some(0));
        let now = scene.snapshot();
        assert!(now == *old || now == new, "step {step}: a mix\n{}", now.differences(old).join("\n"));
        assert_eq!(scene.run(&["verify"])["sound"], true, "step {step}");
    });
    assert!(steps > 25, "only {steps} steps: are the failpoints there?");
}

#[test]
fn killed_at_any_step_and_edited_afterwards_no_edit_is_lost() {
    at_every_step("kill", &["rewind", "ID", "--yes"], |scene, id, _, _, step| {
        let mut edits = vec!["edited", "same", "elsewhere/new"];
        for (folder, file) in [("added", "added/p"), ("added", "added/q"), ("dir", "dir/x"), ("dir", "dir/z")] {
            if scene.ws().join(folder).is_dir() {
                edits.push(file);
            }
        }
        edits.iter().for_each(|path| scene.write(path, &format!("my edit of {path}")));
        scene.run(&["status"]);
        let now = scene.snapshot();
        for path in &edits {
            let expected = format!("my edit of {path}");
            assert_eq!(now.bytes(path), Some(expected.as_bytes()), "step {step}: {path}\n{now:?}");
        }
        let outcome = scene.run(&["rewind", id, "--yes"]);
        scene.run(&["rewind", outcome["operation"]["before"].as_str().unwrap(), "--yes"]);
        assert!(scene.snapshot() == now, "step {step}");
    });
}

#[test]
fn killed_at_any_step_of_a_checkpoint_nothing_is_lost_but_that_checkpoint() {
    let steps = at_every_step("kill", &["checkpoint"], |scene, id, old, _, step| {
        assert!(scene.snapshot() == *old);
        assert_eq!(scene.run(&["verify"])["sound"], true, "step {step}");
        let again = scene.capture();
        scene.run(&["rewind", id, "--yes"]);
        scene.run(&["rewind", &again, "--yes"]);
        assert!(scene.snapshot() == *old, "step {step}");
    });
    assert!(steps > 4, "{steps}");
}

#[test]
fn without_space_at_any_step_of_a_rewind_there_is_a_clear_error_and_the_old_or_the_new_tree() {
    let new = rewound();
    let mut refused = 0;
    at_every_step("error", &["rewind", "ID", "--yes"], |scene, _, old, done, step| {
        // Where even the end could not be recorded, what came out stands beside until the next command.
        let now = scene.snapshot().without_staged();
        assert!(now == *old || now == new, "step {step}: a mix\n{}", now.differences(old).join("\n"));
        if done.status.success() {
            assert!(now == new, "step {step}");
        } else {
            refused += 1;
            let said = text(done);
            assert!(said.contains("error: ") && said.contains("No space left"), "step {step}: {said}");
            assert!(matches!(done.status.code(), Some(1 | 2)), "step {step}: {said}");
        }
        scene.run(&["status"]);
        let now = scene.snapshot();
        assert!(now == *old || now == new, "step {step}: a mix after the recovery");
        assert_eq!(scene.run(&["verify"])["sound"], true, "step {step}");
    });
    assert!(refused > 20, "{refused}");
}

/// Starts a rewind that waits at a failpoint, does something, and lets it go on.
fn in_the_middle(scene: &Scene, id: &str, point: &str, act: impl FnOnce()) -> Output {
    let go = tempfile::Builder::new().tempdir_in(scene.scratch.path()).unwrap().keep().join("go");
    let wait = format!("wait={point}={}", go.display());
    let running = scene
        .piton(&["rewind", id, "--yes", "--json"])
        .env("PITON_FAIL", wait)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let reached = go.with_extension("reached");
    for _ in 0..5000 {
        if reached.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(reached.exists(), "the rewind never came to {point}");
    act();
    std::fs::write(&go, "").unwrap();
    running.wait_with_output().unwrap()
}

#[test]
fn an_attacker_who_swaps_a_folder_for_a_symlink_between_plan_and_apply_gains_nothing() {
    for point in ["operate:begun", "apply:stage", "apply:swap", "apply:sync-swapped", "operate:check", "apply:clear"] {
        let scene = Scene::new();
        scene.write("d/f", "before");
        scene.write("d/gone", "before");
        let id = scene.capture();
        scene.write("d/f", "after");
        scene.remove("d/gone");
        scene.write("d/new", "after");
        let outside = scene.scratch.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        for name in ["f", "new", "precious"] {
            std::fs::write(outside.join(name), "not yours").unwrap();
        }
        let before = snapshot(&outside);
        in_the_middle(&scene, &id, point, || {
            std::fs::rename(scene.ws().join("d"), scene.ws().join("aside")).unwrap();
            std::os::unix::fs::symlink(&outside, scene.ws().join("d")).unwrap();
        });
        let _ = scene.piton(&["status"]).output().unwrap();
        let now = snapshot(&outside);
        assert!(now == before, "{point}: outside was touched\n{}", now.differences(&before).join("\n"));
    }
}

#[test]
fn what_does_not_read_back_as_it_was_written_is_never_called_restored() {
    let (scene, id) = Scene::after_the_agent();
    let old = scene.snapshot();
    let done = in_the_middle(&scene, &id, "apply:staged-file", || {
        let staged = std::fs::read_dir(scene.ws()).unwrap().map(|e| e.unwrap().path());
        let staged = staged.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with(".piton-"));
        let file = staged.flat_map(files).next().expect("a staged file");
        std::fs::write(file, "something else").unwrap();
    });
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("does not read back"), "{}", text(&done));
    assert!(scene.snapshot() == old);
    // Changed after the swap by somebody else: not a failure, and not called verified either.
    let done = in_the_middle(&scene, &id, "operate:check", || scene.write("edited", "mine, just now"));
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(outcome["verified"], false, "{outcome}");
    assert_eq!(outcome["changed_again"][0]["path"], "edited", "{outcome}");
    assert_eq!(scene.snapshot().bytes("edited"), Some(&b"mine, just now"[..]));
}

fn files(path: PathBuf) -> Vec<PathBuf> {
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().flat_map(|e| files(e.unwrap().path())).collect()
    } else {
        vec![path]
    }
}

#[test]
fn what_is_written_between_capture_and_swap_is_rescued_and_comes_back_with_redo() {
    let (scene, id) = Scene::after_the_agent();
    let done = in_the_middle(&scene, &id, "apply:swap", || {
        scene.write("edited", "written in the last moment");
        scene.write("added/late", "written in the last moment");
    });
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done)));
    let rescued: Vec<&str> =
        outcome["rescued"].as_array().unwrap().iter().map(|p| p["path"].as_str().unwrap()).collect();
    assert_eq!(rescued, ["added/late", "edited"]);
    assert!(scene.snapshot() == rewound());
    scene.run(&["redo", "--yes"]);
    let now = scene.snapshot();
    assert_eq!(now.bytes("edited"), Some(&b"written in the last moment"[..]));
    assert_eq!(now.bytes("added/late"), Some(&b"written in the last moment"[..]));
}

/// A rewind that has swapped everything, checked nothing yet, and waits.
fn all_swapped(scene: &Scene, id: &str) -> Child {
    let go = scene.scratch.path().join("go");
    let mut rewind = scene.piton(&["rewind", id, "--yes"]);
    let rewind = rewind.env("PITON_FAIL", format!("wait=operate:check={}", go.display())).spawn().unwrap();
    while !go.with_extension("reached").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    rewind
}

#[test]
fn a_checkpoint_that_waited_for_a_rewind_that_was_killed_is_not_of_a_mix() {
    let new = rewound();
    let (scene, id) = Scene::after_the_agent();
    let old = scene.snapshot();
    let mut rewind = all_swapped(&scene, &id);
    // A checkpoint is asked for, and waits.
    let waiting = scene.piton(&["checkpoint", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    rewind.kill().unwrap();
    rewind.wait().unwrap();
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    let captured: Value = serde_json::from_slice(&done.stdout).unwrap();
    scene.write("edited", "later");
    scene.run(&["rewind", captured["checkpoint"]["id"].as_str().unwrap(), "--yes"]);
    let now = scene.snapshot();
    assert!(now == old || now == new, "{now:?}");
}

/// The file that somebody edited meanwhile was left as it is, and no command ever named it.
#[test]
fn whoever_waited_for_an_operation_that_was_killed_says_what_became_of_it() {
    let (scene, id) = Scene::after_the_agent();
    let mut rewind = all_swapped(&scene, &id);
    scene.write("edited", "before, and mine");
    let mut other = scene.piton(&["rewind", &id, "--path", "same", "--yes"]);
    let waiting = other.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    rewind.kill().unwrap();
    rewind.wait().unwrap();
    let said = text(&waiting.wait_with_output().unwrap());
    assert!(said.contains("had been cut off") && said.contains("edited"), "{said}");
}

#[test]
fn a_git_folder_made_after_a_power_cut_is_never_taken_for_a_torn_folder() {
    let (scene, id) = Scene::after_the_agent();
    let run = |args: &[&str], boot: &str, fail: &str| {
        scene.piton(args).env("PITON_TEST_BOOT_ID", boot).env("PITON_FAIL", fail).output().unwrap()
    };
    for step in 1.. {
        let done = run(&["rewind", &id, "--yes"], "one", &format!("kill={step}"));
        assert!(!done.status.success(), "the folder never came back while the operation was pending");
        if scene.ws().join("dir/x").exists() {
            break;
        }
        run(&["status"], "one", "");
    }
    scene.write("dir/.git/HEAD", "precious");
    let done = run(&["status"], "two", "");
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(scene.snapshot().bytes("dir/.git/HEAD"), Some(&b"precious"[..]));
}

#[test]
fn eight_processes_at_once_end_in_a_verifiable_store_with_checkpoints_of_states_that_existed() {
    let scene = Scene::new();
    scene.write("f", "0 0");
    scene.write("dir/g", "g");
    let start = scene.capture();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (scene, start) = (&scene, &start);
            scope.spawn(move || {
                for round in 0..5 {
                    if (n + round) % 4 == 3 {
                        let done = scene.piton(&["rewind", start, "--yes"]).output().unwrap();
                        assert!(matches!(done.status.code(), Some(0 | 1)), "{}", text(&done));
                    } else {
                        let new = scene.scratch.path().join(format!("edit{n}"));
                        std::fs::write(&new, format!("{n} {round}")).unwrap();
                        let _ = std::fs::rename(&new, scene.ws().join("f"));
                        let done = scene.piton(&["checkpoint"]).output().unwrap();
                        assert!(done.status.success(), "{}", text(&done));
                    }
                }
            });
        }
    });
    assert_eq!(scene.run(&["verify"])["sound"], true);
    let log = scene.run(&["log", "--checkpoints"]);
    let checkpoints = log["checkpoints"].as_array().unwrap();
    assert!(checkpoints.len() > 30, "{}", checkpoints.len());
    for checkpoint in checkpoints {
        scene.run(&["rewind", checkpoint["id"].as_str().unwrap(), "--yes"]);
        let now = scene.snapshot();
        let f = String::from_utf8(now.bytes("f").unwrap().to_vec()).unwrap();
        assert!(f.split_once(' ').is_some_and(|(n, r)| n.len() == 1 && r.len() == 1), "{f:?} never existed");
        assert_eq!(now.bytes("dir/g"), Some(&b"g"[..]));
    }
}

/// The sync of the database's log fails after all of it was written. The writer takes its bytes back from the pack, and whoever
/// came next found the rows of a checkpoint whose bytes were gone.
#[test]
fn a_sync_that_fails_leaves_no_trace_of_what_was_not_recorded() {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    if !tried.is_ok_and(|done| done.status.success()) {
        piton_testkit::not_run("a sync that fails", "strace does not work here");
        return;
    }
    for calls in ["fsync", "fdatasync"] {
        for nth in 1.. {
            let (scene, id) = Scene::after_the_agent();
            let before = scene.snapshot();
            let piton = scene.piton(&["rewind", &id, "--yes"]);
            let mut failing = Command::new("strace");
            failing.args(["-f", "-o"]).arg(scene.scratch.path().join("trace")).args(["-e", &format!("trace={calls}")]);
            failing.args(["-e", &format!("inject={calls}:error=EIO:when={nth}")]);
            failing.arg(piton.get_program()).args(piton.get_args()).env_clear().stdin(Stdio::null());
            failing.env("PATH", std::env::var_os("PATH").unwrap_or_default());
            failing.envs(piton.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let done = failing.output().unwrap();
            let trace = std::fs::read_to_string(scene.scratch.path().join("trace")).unwrap();
            let verified = scene.piton(&["verify"]).output().unwrap();
            assert!(verified.status.success(), "{calls} {nth}: {}{}", text(&done), text(&verified));
            scene.run(&["rewind", &id, "--yes"]);
            assert_ne!(scene.snapshot(), before);
            let verified = scene.piton(&["verify"]).output().unwrap();
            assert!(verified.status.success(), "{calls} {nth}: {}{}", text(&done), text(&verified));
            if !trace.contains("INJECTED") {
                assert!(done.status.success(), "{}", text(&done));
                assert!(nth > 1 || calls == "fsync", "{calls} {nth}");
                break;
            }
        }
    }
}
