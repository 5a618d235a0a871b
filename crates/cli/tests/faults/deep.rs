//! Trees deeper than a process has handles, and than a path can say: nothing fails, and nothing stays behind.

use std::path::PathBuf;
use std::process::Command;

use piton_testkit::{Scene, both, make_deep, read_deep, remove_deep};
use serde_json::Value;

use crate::PITON;

/// Handles that each command may have open.
const HANDLES: u32 = 64;

/// A workspace whose deep trees go with it, and a piton with few handles.
struct Deep(Scene);

impl Deep {
    fn new() -> Self {
        let deep = Self(Scene::new(PITON));
        deep.0.world.write("f", "0");
        deep
    }

    fn ws(&self) -> PathBuf {
        self.0.world.ws()
    }

    fn piton(&self, args: &[&str]) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("ulimit -n {HANDLES}; exec \"$0\" \"$@\"")]);
        self.0.started_by(shell, &[args, &["--json"]].concat())
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Value {
        let done = self.piton(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", both(&done));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    #[track_caller]
    fn capture(&self) -> String {
        self.run(&["checkpoint"])["checkpoint"]["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn rewind(&self, id: &str) {
        assert_eq!(self.run(&["rewind", id, "--yes"])["verified"], true);
    }

    /// What is at the top of the workspace.
    fn top(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(self.ws()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Deep {
    fn drop(&mut self) {
        remove_deep(&self.ws());
    }
}

/// The name of each folder, and how many there are: more than there are handles, more than a path can say with many short
/// names and with few long ones, and both.
fn shapes() -> [(String, usize); 4] {
    [("d".to_owned(), 700), ("deep".to_owned(), 1_500), ("n".repeat(200), 30), ("name-of-a-folder".to_owned(), 2_000)]
}

#[test]
fn a_deep_tree_is_captured_deleted_brought_back_and_checked() {
    for (name, depth) in shapes() {
        let scene = Deep::new();
        let without = scene.capture();
        make_deep(&scene.ws(), &name, depth);
        let whole = read_deep(&scene.ws(), &name);
        assert_eq!(whole.0, depth);
        let with = scene.capture();
        let status = scene.run(&["status"]);
        assert_eq!(
            (&status["changes"]["created"], &status["skipped"]),
            (&0.into(), &Value::Array(Vec::new())),
            "{depth}"
        );

        scene.rewind(&without);
        assert_eq!(scene.top(), ["f"]);
        scene.rewind(&with);
        assert_eq!(read_deep(&scene.ws(), &name), whole);
        scene.run(&["redo", "--yes"]);
        assert_eq!(scene.top(), ["f"]);
        scene.rewind(&with);
        assert_eq!(scene.run(&["verify"])["sound"], true);
        assert_eq!(scene.top(), {
            let mut top = vec![name.clone(), "f".to_owned()];
            top.sort();
            top
        });
    }
}

#[test]
fn a_crash_in_the_middle_of_a_deep_tree_is_recovered_from() {
    let (name, depth) = ("deep", 400);
    // Making and deleting it, killed at steps all over the way: while folders are staged, after the swap, while what came
    // out is removed.
    for creates in [false, true] {
        let mut was_killed = 0;
        for step in [8, 11, 13, 15, 17, 19, 21, 24] {
            let scene = Deep::new();
            let without = scene.capture();
            make_deep(&scene.ws(), name, depth);
            let whole = read_deep(&scene.ws(), name);
            let with = scene.capture();
            let target = if creates {
                scene.rewind(&without);
                &with
            } else {
                &without
            };
            let done =
                scene.piton(&["rewind", target, "--yes"]).env("PITON_FAIL", format!("kill={step}")).output().unwrap();
            was_killed += u32::from(!done.status.success());
            let status = scene.run(&["status"]);
            assert_eq!(status["pending"], Value::Array(Vec::new()));
            let now = read_deep(&scene.ws(), name);
            assert!(now == whole || now.0 == 0, "step {step}: {} levels", now.0);
            let names = if now.0 == 0 { vec!["f"] } else { vec![name, "f"] };
            assert_eq!(scene.top(), names, "step {step}");
            scene.rewind(target);
            let wanted = if creates { whole } else { (0, vec!["0".to_owned()]) };
            assert_eq!(read_deep(&scene.ws(), name), wanted, "step {step}");
            assert_eq!(scene.run(&["verify"])["sound"], true);
        }
        assert!(was_killed >= 6, "only {was_killed} were killed");
    }
}

/// What lies deeper than trees are followed is left out, said, and never in anybody's way.
#[test]
fn a_tree_without_end_is_cut_off_where_it_is_said_and_the_rest_is_captured() {
    for (name, depth) in [("d".to_owned(), 6_000), ("n".repeat(250), 400)] {
        let scene = Deep::new();
        let without = scene.capture();
        make_deep(&scene.ws(), &name, depth);
        std::fs::write(scene.ws().join("f"), "1").unwrap();
        let captured = scene.run(&["checkpoint"]);
        let skipped = captured["checkpoint"]["skipped"].as_array().unwrap();
        assert_eq!(skipped.len(), 1);
        assert_eq!(skipped[0]["reason"], "unreadable");
        let cut = skipped[0]["path"].as_str().unwrap().split('/').count();
        assert!(cut < depth);
        // It came since and cannot go: that is said too.
        let done = scene.piton(&["rewind", &without, "--yes"]).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{}", both(&done));
        let told: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(told["not_done"][0]["path"], skipped[0]["path"]);
        assert_eq!(std::fs::read_to_string(scene.ws().join("f")).unwrap(), "0");
        // Nobody knows what is at its end, so all the way to it stays.
        assert_eq!(read_deep(&scene.ws(), &name).0, depth);
        assert_eq!(scene.run(&["verify"])["sound"], true);
    }
}
