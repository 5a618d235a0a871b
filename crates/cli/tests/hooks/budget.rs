//! A store whose budget is used up, at the command line: who is told, and what to do.

use piton_testkit::{Scene, both, noise};
use serde_json::{Value, json};

use crate::PITON;

/// Reports an event; what the agent gets back.
#[track_caller]
fn report(scene: &Scene, session: &str, event: &str, more: Value) -> String {
    let reply = scene.generic_event(session, event, more);
    if reply.is_null() { String::new() } else { reply.to_string() }
}

#[test]
fn the_first_gap_of_a_session_is_told_once_and_status_and_doctor_fail_until_a_capture_works() {
    let scene = Scene::new(PITON);
    scene.ok(&["init", "--budget", "8M"]);
    scene.world.write("f", "1");
    scene.ok(&["checkpoint", "before"]);
    scene.ok(&["status"]);
    scene.world.write("large", noise(1, 7 << 20)).write("f", "2");

    let first = report(&scene, "s1", "prompt", json!({"text": "one"}));
    let line: Value = serde_json::from_str(&first).unwrap();
    let line = line["line"].as_str().unwrap();
    assert!(line.contains("not captured") && line.contains("budget") && line.contains("piton status"), "{line}");
    // Once in a session, and again in another.
    assert_eq!(report(&scene, "s1", "turn-ended", json!({})), "");
    assert_eq!(report(&scene, "s1", "prompt", json!({"text": "two"})), "");
    assert!(report(&scene, "s2", "session-started", json!({})).contains("not captured"));

    let status = scene.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(both(&status).contains("not protected:"), "{}", both(&status));
    let found = scene.run(&["status", "--json"]);
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert!(found["not_captured"]["reason"].as_str().unwrap().contains("budget"));
    let doctor = scene.run(&["doctor", "--json"]);
    assert_eq!(doctor.status.code(), Some(1));
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let gap = doctor["checks"].as_array().unwrap().iter().find(|check| check["what"] == "gap").unwrap();
    assert_eq!(gap["state"], "problem");

    // What does not fit into the reserve is refused, with figures and the command that makes room.
    let refused = scene.fails(&["rewind", "before", "--yes", "--scope", "code", "--interrupted"]);
    assert!(refused.contains("over its budget of 8 MiB") && refused.contains("piton init --budget 1G"), "{refused}");
    assert_eq!(scene.read("f"), "2");
    // One file does fit.
    scene.ok(&["rewind", "before", "--path", "f", "--yes", "--scope", "code", "--interrupted"]);
    assert_eq!(scene.read("f"), "1");
    scene.ok(&["redo", "--yes", "--interrupted"]);
    assert_eq!(scene.read("f"), "2");

    assert_eq!(scene.run(&["status"]).status.code(), Some(1));

    scene.ok(&["init", "--budget", "1G"]);
    report(&scene, "s1", "turn-ended", json!({}));
    scene.ok(&["status"]);
}
