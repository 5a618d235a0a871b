//! Real processes that are killed at every step, that find no space at every step, that race with each other and with
//! an attacker. The failpoints are in debug builds only (`crates/host/src/fail.rs`).

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use piton_testkit::{Scene, Snapshot, both, snapshot, start, until};
use serde_json::Value;

use crate::PITON;

fn scene() -> Scene {
    Scene::new(PITON)
}

/// A checkpoint, and then a bit of everything.
fn after_the_agent() -> (Scene, String) {
    let scene = scene();
    scene.world.write("same", "same").write("edited", "before").write("dir/x", "x").write("dir/sub/y", "y");
    let id = scene.capture();
    scene.world.write("edited", "after").remove("dir").write("added/p", "p");
    (scene, id)
}

/// Runs a command once for each of its steps with `PITON_FAIL=<how>=<step>`; `check` sees what is left. Ends when the
/// command passes all of its steps undisturbed.
fn at_every_step(how: &str, verb: &[&str], mut check: impl FnMut(&Scene, &str, &Snapshot, &Output, u32)) -> u32 {
    for step in 1.. {
        let (scene, id) = after_the_agent();
        let old = scene.world.snapshot();
        let verb: Vec<&str> = verb.iter().map(|a| if *a == "ID" { &id[..] } else { a }).collect();
        let trace = scene.at("trace");
        let mut command = scene.piton(&verb);
        let done = command.env("PITON_FAIL", format!("{how}={step}")).env("PITON_FAIL_TRACE", &trace).output().unwrap();
        let passed = std::fs::read_to_string(&trace).unwrap_or_default().lines().count();
        if passed < step as usize {
            assert!(done.status.success(), "{}", both(&done));
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
        let trace = std::fs::read_to_string(scene.at("trace")).unwrap();
        let (before, after) = trace.split_at(trace.match_indices('\n').nth(step as usize - 1).unwrap().0);
        if !before.ends_with("apply:swap") {
            return;
        }
        assert!(!done.status.success());
        assert!(scene.world.snapshot() == *old);
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
        let (scene, id) = after_the_agent();
        let old = scene.world.snapshot();
        let done = killed_at(step, &scene, &id);
        if done.status.success() {
            break;
        }
        // What was never synced is gone: the file is there, and empty or cut off.
        let edited = scene.world.ws().join("edited");
        if std::fs::read(&edited).unwrap() != b"before" || !files(scene.world.ws()).iter().any(|p| is_staged(p)) {
            continue;
        }
        // Once it is noted that what came out is being removed, everything was synced.
        let is_noted = |path: &PathBuf| {
            path.ends_with("progress") && std::fs::read_to_string(path).is_ok_and(|text| text.contains("clearing"))
        };
        if files(scene.at("home")).iter().any(is_noted) {
            continue;
        }
        for (path, length) in [("edited", 3), ("dir/x", 0), ("dir/sub/y", 0)] {
            if let Ok(file) = std::fs::File::options().write(true).open(scene.world.ws().join(path)) {
                file.set_len(length).unwrap();
            }
        }
        torn += 1;
        let done = status_in("two", &scene);
        assert!(done.status.success(), "{}", both(&done));
        let now = scene.world.snapshot();
        assert!(now == old, "step {step}\n{}", now.differences(&old).join("\n"));
    }
    assert!(torn > 3, "{torn}");
}

#[test]
fn verify_names_a_rewind_that_was_killed_and_says_how_it_ends() {
    let mut named = 0;
    at_every_step("kill", &["rewind", "ID", "--yes"], |scene, _, _, _, step| {
        let found = scene.piton(&["verify"]).output().unwrap();
        let said = both(&found);
        if !said.contains("has not ended") {
            return;
        }
        assert_eq!(found.status.code(), Some(1), "step {step}: {said}");
        assert!(said.contains("piton status"), "step {step}: {said}");
        assert!(scene.piton(&["status"]).output().unwrap().status.success());
        let after = scene.piton(&["verify"]).output().unwrap();
        assert!(after.status.success() && !both(&after).contains("has not ended"), "step {step}: {}", both(&after));
        named += 1;
    });
    assert!(named > 5, "{named}");
}

/// A rewind that is killed at one of its steps, in the boot `one` of the machine.
fn killed_at(step: u32, scene: &Scene, id: &str) -> Output {
    let mut command = scene.piton(&["rewind", id, "--yes"]);
    command.env("PITON_TEST_BOOT_ID", "one").env("PITON_FAIL", format!("kill={step}")).output().unwrap()
}

/// The next command, in a boot of the machine.
fn status_in(boot: &str, scene: &Scene) -> Output {
    scene.piton(&["status"]).env("PITON_TEST_BOOT_ID", boot).output().unwrap()
}

fn is_staged(path: &std::path::Path) -> bool {
    path.components().any(|c| c.as_os_str().to_string_lossy().starts_with(".piton-"))
}

fn rewound() -> Snapshot {
    let (scene, id) = after_the_agent();
    scene.json(&["rewind", &id, "--yes"]);
    scene.world.snapshot()
}

#[test]
fn killed_at_any_step_of_a_rewind_the_next_command_finds_the_old_or_the_new_tree_and_finishes_by_itself() {
    let new = rewound();
    let steps = at_every_step("kill", &["rewind", "ID", "--yes"], |scene, _, old, done, step| {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(done.status.signal(), Some(9), "step {step}: {}", both(done));
        let status = scene.json(&["status"]);
        assert_eq!(status["pending"].as_array().map(Vec::len), Some(0));
        let now = scene.world.snapshot();
        assert!(now == *old || now == new, "step {step}: a mix\n{}", now.differences(old).join("\n"));
        assert_eq!(scene.json(&["verify"])["sound"], true, "step {step}");
    });
    assert!(steps > 25, "only {steps} steps: are the failpoints there?");
}

#[test]
fn killed_at_any_step_and_edited_afterwards_no_edit_is_lost() {
    at_every_step("kill", &["rewind", "ID", "--yes"], |scene, id, _, _, step| {
        let mut edits = vec!["edited", "same", "elsewhere/new"];
        for (folder, file) in [("added", "added/p"), ("added", "added/q"), ("dir", "dir/x"), ("dir", "dir/z")] {
            if scene.world.ws().join(folder).is_dir() {
                edits.push(file);
            }
        }
        for path in &edits {
            scene.world.write(path, format!("my edit of {path}"));
        }
        scene.json(&["status"]);
        let now = scene.world.snapshot();
        for path in &edits {
            let expected = format!("my edit of {path}");
            assert_eq!(now.bytes(path), Some(expected.as_bytes()), "step {step}: {path}\n{now:?}");
        }
        let outcome = scene.json(&["rewind", id, "--yes"]);
        scene.json(&["rewind", outcome["operation"]["before"].as_str().unwrap(), "--yes"]);
        assert!(scene.world.snapshot() == now, "step {step}");
    });
}

#[test]
fn killed_at_any_step_of_a_checkpoint_nothing_is_lost_but_that_checkpoint() {
    let steps = at_every_step("kill", &["checkpoint"], |scene, id, old, _, step| {
        assert!(scene.world.snapshot() == *old);
        assert_eq!(scene.json(&["verify"])["sound"], true, "step {step}");
        let again = scene.capture();
        scene.json(&["rewind", id, "--yes"]);
        scene.json(&["rewind", &again, "--yes"]);
        assert!(scene.world.snapshot() == *old, "step {step}");
    });
    assert!(steps > 4, "{steps}");
}

#[test]
fn without_space_at_any_step_of_a_rewind_there_is_a_clear_error_and_the_old_or_the_new_tree() {
    let new = rewound();
    let mut refused = 0;
    at_every_step("error", &["rewind", "ID", "--yes"], |scene, _, old, done, step| {
        // Where even the end could not be recorded, what came out stands beside until the next command.
        let now = scene.world.snapshot().without_staged();
        assert!(now == *old || now == new, "step {step}: a mix\n{}", now.differences(old).join("\n"));
        if done.status.success() {
            assert!(now == new, "step {step}");
        } else {
            refused += 1;
            let said = both(done);
            assert!(said.contains("error: ") && said.contains("No space left"), "step {step}: {said}");
            assert!(matches!(done.status.code(), Some(1 | 2)), "step {step}: {said}");
        }
        scene.json(&["status"]);
        let now = scene.world.snapshot();
        assert!(now == *old || now == new, "step {step}: a mix after the recovery");
        assert_eq!(scene.json(&["verify"])["sound"], true, "step {step}");
    });
    assert!(refused > 20, "{refused}");
}

/// A rewind that has come to a failpoint and waits there.
struct Waiting {
    rewind: Child,
    go: PathBuf,
}

impl Waiting {
    fn at(point: &str, scene: &Scene, id: &str) -> Self {
        let go = tempfile::Builder::new().tempdir_in(scene.world.base()).unwrap().keep().join("go");
        let mut command = scene.piton(&["rewind", id, "--yes", "--json"]);
        command.env("PITON_FAIL", format!("wait={point}={}", go.display()));
        let rewind = start(&mut command);
        until(|| go.with_extension("reached").exists());
        Self { rewind, go }
    }

    fn goes_on(self) -> Output {
        std::fs::write(&self.go, "").unwrap();
        self.rewind.wait_with_output().unwrap()
    }

    fn dies(mut self) {
        self.rewind.kill().unwrap();
        self.rewind.wait().unwrap();
    }
}

/// Starts a rewind that waits at a failpoint, does something, and lets it go on.
fn in_the_middle<T>(scene: &Scene, id: &str, point: &str, act: impl FnOnce() -> T) -> Output {
    let waiting = Waiting::at(point, scene, id);
    act();
    waiting.goes_on()
}

#[test]
fn an_attacker_who_swaps_a_folder_for_a_symlink_between_plan_and_apply_gains_nothing() {
    for point in ["operate:begun", "apply:stage", "apply:swap", "apply:sync-swapped", "operate:check", "apply:clear"] {
        let scene = scene();
        scene.world.write("d/f", "before").write("d/gone", "before");
        let id = scene.capture();
        scene.world.write("d/f", "after").remove("d/gone").write("d/new", "after");
        let outside = scene.at("outside");
        std::fs::create_dir(&outside).unwrap();
        for name in ["f", "new", "precious"] {
            std::fs::write(outside.join(name), "not yours").unwrap();
        }
        let before = snapshot(&outside);
        in_the_middle(&scene, &id, point, || {
            std::fs::rename(scene.world.ws().join("d"), scene.world.ws().join("aside")).unwrap();
            std::os::unix::fs::symlink(&outside, scene.world.ws().join("d")).unwrap();
        });
        let _ = scene.run(&["status"]);
        let now = snapshot(&outside);
        assert!(now == before, "{point}: outside was touched\n{}", now.differences(&before).join("\n"));
    }
}

#[test]
fn what_does_not_read_back_as_it_was_written_is_never_called_restored() {
    let (scene, id) = after_the_agent();
    let old = scene.world.snapshot();
    let done = in_the_middle(&scene, &id, "apply:staged-file", || {
        let staged = std::fs::read_dir(scene.world.ws()).unwrap().map(|e| e.unwrap().path());
        let staged = staged.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with(".piton-"));
        let file = staged.flat_map(files).next().expect("a staged file");
        std::fs::write(file, "something else").unwrap();
    });
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
    assert!(both(&done).contains("does not read back"), "{}", both(&done));
    assert!(scene.world.snapshot() == old);
    // Changed after the swap by somebody else: not a failure, and not called verified either.
    let done = in_the_middle(&scene, &id, "operate:check", || scene.world.write("edited", "mine, just now"));
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(outcome["verified"], false, "{outcome}");
    assert_eq!(outcome["changed_again"][0]["path"], "edited", "{outcome}");
    assert_eq!(scene.world.snapshot().bytes("edited"), Some(&b"mine, just now"[..]));
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
    let (scene, id) = after_the_agent();
    let done = in_the_middle(&scene, &id, "apply:swap", || {
        scene.world.write("edited", "written in the last moment");
        scene.world.write("added/late", "written in the last moment");
    });
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", both(&done)));
    let rescued: Vec<&str> =
        outcome["rescued"].as_array().unwrap().iter().map(|p| p["path"].as_str().unwrap()).collect();
    assert_eq!(rescued, ["added/late", "edited"]);
    assert!(scene.world.snapshot() == rewound());
    scene.json(&["redo", "--yes"]);
    let now = scene.world.snapshot();
    assert_eq!(now.bytes("edited"), Some(&b"written in the last moment"[..]));
    assert_eq!(now.bytes("added/late"), Some(&b"written in the last moment"[..]));
}

/// A rewind that has swapped everything, checked nothing yet, and waits.
fn all_swapped(scene: &Scene, id: &str) -> Waiting {
    Waiting::at("operate:check", scene, id)
}

#[test]
fn a_checkpoint_that_waited_for_a_rewind_that_was_killed_is_not_of_a_mix() {
    let new = rewound();
    let (scene, id) = after_the_agent();
    let old = scene.world.snapshot();
    let rewind = all_swapped(&scene, &id);
    // A checkpoint is asked for, and waits.
    let waiting = scene.piton(&["checkpoint", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    rewind.dies();
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", both(&done));
    let captured: Value = serde_json::from_slice(&done.stdout).unwrap();
    scene.world.write("edited", "later");
    scene.json(&["rewind", captured["checkpoint"]["id"].as_str().unwrap(), "--yes"]);
    let now = scene.world.snapshot();
    assert!(now == old || now == new, "{now:?}");
}

/// The file that somebody edited meanwhile was left as it is, and no command ever named it.
#[test]
fn whoever_waited_for_an_operation_that_was_killed_says_what_became_of_it() {
    let (scene, id) = after_the_agent();
    let rewind = all_swapped(&scene, &id);
    scene.world.write("edited", "before, and mine");
    let waiting = start(&mut scene.piton(&["rewind", &id, "--path", "same", "--yes"]));
    std::thread::sleep(Duration::from_millis(600));
    rewind.dies();
    let said = both(&waiting.wait_with_output().unwrap());
    assert!(said.contains("had been cut off") && said.contains("edited"), "{said}");
}

#[test]
fn a_git_folder_made_after_a_power_cut_is_never_taken_for_a_torn_folder() {
    let (scene, id) = after_the_agent();
    for step in 1.. {
        let done = killed_at(step, &scene, &id);
        assert!(!done.status.success(), "the folder never came back while the operation was pending");
        if scene.world.ws().join("dir/x").exists() {
            break;
        }
        status_in("one", &scene);
    }
    scene.world.write("dir/.git/HEAD", "precious");
    let done = status_in("two", &scene);
    assert!(done.status.success(), "{}", both(&done));
    assert_eq!(scene.world.snapshot().bytes("dir/.git/HEAD"), Some(&b"precious"[..]));
}

#[test]
fn eight_processes_at_once_end_in_a_verifiable_store_with_checkpoints_of_states_that_existed() {
    let scene = scene();
    scene.world.write("f", "0 0");
    scene.world.write("dir/g", "g");
    let start = scene.capture();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (scene, start) = (&scene, &start);
            scope.spawn(move || {
                for round in 0..5 {
                    if (n + round) % 4 == 3 {
                        let done = scene.piton(&["rewind", start, "--yes"]).output().unwrap();
                        assert!(matches!(done.status.code(), Some(0 | 1)), "{}", both(&done));
                    } else {
                        let new = scene.at(format!("edit{n}"));
                        std::fs::write(&new, format!("{n} {round}")).unwrap();
                        let _ = std::fs::rename(&new, scene.world.ws().join("f"));
                        let done = scene.piton(&["checkpoint"]).output().unwrap();
                        assert!(done.status.success(), "{}", both(&done));
                    }
                }
            });
        }
    });
    assert_eq!(scene.json(&["verify"])["sound"], true);
    let log = scene.json(&["log", "--checkpoints"]);
    let checkpoints = log["checkpoints"].as_array().unwrap();
    assert!(checkpoints.len() > 30, "{}", checkpoints.len());
    for checkpoint in checkpoints {
        scene.json(&["rewind", checkpoint["id"].as_str().unwrap(), "--yes"]);
        let now = scene.world.snapshot();
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
            let (scene, id) = after_the_agent();
            let before = scene.world.snapshot();
            let mut failing = Command::new("strace");
            failing.args(["-f", "-o"]).arg(scene.at("trace")).args(["-e", &format!("trace={calls}")]);
            failing.args(["-e", &format!("inject={calls}:error=EIO:when={nth}")]);
            let mut failing = scene.started_by(failing, &["rewind", &id, "--yes"]);
            failing.env("PATH", std::env::var_os("PATH").unwrap_or_default());
            let done = failing.output().unwrap();
            let trace = std::fs::read_to_string(scene.at("trace")).unwrap();
            // The rewind may not have ended, which it says too.
            let verified = both(&scene.run(&["verify"]));
            assert!(verified.contains("sound: "), "{calls} {nth}: {}{verified}", both(&done));
            scene.json(&["rewind", &id, "--yes"]);
            assert_ne!(scene.world.snapshot(), before);
            let verified = scene.run(&["verify"]);
            assert!(verified.status.success(), "{calls} {nth}: {}{}", both(&done), both(&verified));
            if !trace.contains("INJECTED") {
                assert!(done.status.success(), "{}", both(&done));
                assert!(nth > 1 || calls == "fsync", "{calls} {nth}");
                break;
            }
        }
    }
}
