//! `piton accept` as a person and a script see it.

use piton_testkit::{Agent, Scene};

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::new(PITON);
    let agent = Agent::new(&scene.world, "run-1");
    for name in ["one", "two"] {
        agent.edits(name, &[&format!("src/{name}.txt")], |world| {
            world.write(format!("src/{name}.txt"), name);
        });
    }
    scene
}

#[test]
fn a_turn_or_a_path_is_accepted_shown_in_the_log_and_taken_back() {
    let scene = scene();
    let told = scene.told(&["accept", "t2"]);
    assert!(told.starts_with("accepted 1 change\n  src/two.txt  t2.1\n"), "{told}");
    assert!(told.contains("`piton accept --take-back t2` takes that back"), "{told}");
    let log = scene.ok(&["log"]);
    assert!(log.lines().any(|line| line.contains("two") && line.contains("accepted")), "{log}");
    assert!(log.lines().any(|line| line.contains("one") && !line.contains("accepted")), "{log}");
    assert_eq!(scene.ok(&["accept", "t2"]), "all of that is accepted already\n");
    let undone = scene.told(&["undo", "--yes"]);
    assert!(undone.contains("turn 1") && scene.world.has("src/two.txt") && !scene.world.has("src/one.txt"), "{undone}");
    let refused = scene.fails(&["undo", "all", "--yes"]);
    assert!(refused.contains("is accepted") && refused.contains("piton accept --take-back t3"), "{refused}");
    // From a subfolder, by a path.
    let folder = scene.world.path("src");
    let (code, said) = scene.run_in(&folder, &["accept", "--take-back", "two.txt"]);
    assert!(code == Some(0) && said.contains("no longer accepted: 1 change"), "{said}");
    scene.ok(&["undo", "--yes"]);
    assert!(!scene.world.has("src/two.txt"));
}

#[test]
fn an_undo_of_everything_says_what_it_leaves_because_it_is_accepted() {
    let scene = scene();
    scene.ok(&["accept", "t2"]);
    let plan = scene.ok(&["undo", "all", "--preview"]);
    assert!(plan.contains("Left as it is, because you accepted it:\n  src/two.txt\n"), "{plan}");
    let told = scene.told(&["undo", "all", "--yes"]);
    assert!(told.contains("note: left as it is, because you accepted it:\n  src/two.txt\n"), "{told}");
}

#[test]
fn what_an_accepted_turn_ran_is_not_listed_as_not_undone() {
    let scene = Scene::new(PITON);
    let agent = Agent::new(&scene.world, "run-1");
    for (name, command) in [("one", "npm install; touch one"), ("two", "git push; touch two")] {
        agent.runs(name, command, |world| {
            world.write(name, name);
        });
    }
    let all = scene.ok(&["undo", "all", "--preview"]);
    assert!(all.contains("npm install") && all.contains("git push"), "{all}");
    scene.ok(&["accept", "t1"]);
    let rest = scene.ok(&["undo", "all", "--preview"]);
    assert!(!rest.contains("npm install") && rest.contains("git push"), "{rest}");
}

#[test]
fn a_chain_of_undos_goes_back_at_once() {
    let scene = scene();
    scene.ok(&["undo", "t1", "--yes"]);
    scene.ok(&["undo", "t2", "--yes"]);
    let operations = scene.json(&["ops"])["operations"].clone();
    let first = operations[1]["id"].as_str().unwrap().to_owned();
    let shown = scene.ok(&["redo", "--to", &first, "--preview"]);
    assert!(
        shown.contains("Redo: takes back the undo of turn 1") && shown.contains("and 1 operation after it"),
        "{shown}"
    );
    assert!(!scene.world.has("src/one.txt"));
    let (asked, code) = scene.at_a_terminal(&["redo", "--to", &first], "n\n");
    assert!(asked.contains("Take it back in 2 files") && code == Some(1), "{asked}");
    let done = scene.told(&["redo", "--to", &first, "--yes"]);
    assert!(done.starts_with("took back the undo of turn 1 “one” and 1 operation after it: 2 recreated"), "{done}");
    assert!(scene.world.has("src/one.txt") && scene.world.has("src/two.txt"));
    assert!(scene.fails(&["redo", "--yes"]).contains("no rewind or undo to take back"));
    let redo = scene.json(&["ops"])["operations"][0]["id"].as_str().unwrap().to_owned();
    scene.ok(&["redo", "--op", &redo, "--yes"]);
    assert!(!scene.world.has("src/one.txt") && !scene.world.has("src/two.txt"));
    assert!(scene.fails(&["redo", "--to", &first, "--op", &first]).contains("does not go together with"));
}

#[test]
fn a_program_gets_what_was_accepted_and_a_code_where_there_is_nothing() {
    let scene = scene();
    let cursor = scene.json(&["watch", "--timeout", "0s"])["cursor"].as_str().unwrap().to_owned();
    let done = scene.json(&["accept", "t1", "src/one.txt"]);
    assert_eq!((&done["files"][0]["path"], &done["files"][0]["owner"]["turn"]), (&"src/one.txt".into(), &1.into()));
    let turn = &scene.json(&["log"])["entries"];
    let accepted: Vec<_> = turn.as_array().unwrap().iter().map(|entry| entry["accepted"].clone()).collect();
    assert!(accepted.contains(&"all".into()), "{turn}");
    let watched = scene.ok(&["watch", "--json", "--timeout", "0s", "--since", &cursor]);
    assert!(watched.contains("\"kind\":\"accepted\""), "{watched}");
    for (args, code) in [
        (&["accept", "nosuch.txt"][..], "nothing-to-accept"),
        (&["accept", "--take-back", "t2"], "nothing-to-accept"),
        (&["accept", "t9"], "unknown-turn"),
        (&["accept", "nobody:t1"], "unknown-session"),
        (&["accept", "../x"], "path-outside"),
        (&["accept"], "arguments"),
    ] {
        let done = scene.run(&[args, &["--json"]].concat());
        let document: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(document["error"]["code"], code, "{args:?}: {document}");
    }
}
