//! `piton watch`: what another process does, told as it happens.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use piton_testkit::Scene;
use serde_json::Value;

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::with_a_home(PITON);
    scene.world.write("a.txt", "one\n");
    scene.ok(&["checkpoint", "first"]);
    scene
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_script_goes_on_behind_the_cursor_that_it_kept() {
    let scene = scene();
    let begun = lines(&scene.ok(&["watch", "--json", "--timeout", "0s"]));
    assert_eq!(begun.len(), 1);
    let cursor = begun[0]["cursor"].as_str().unwrap();
    scene.world.write("a.txt", "two\n");
    scene.ok(&["checkpoint", "second"]);
    scene.ok(&["rewind", "first", "--yes"]);
    let told = lines(&scene.ok(&["watch", "--json", "--since", cursor, "--timeout", "0s"]));
    let kinds: Vec<&str> = told.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["watching", "captured", "named"]);
    assert_eq!(kinds.last(), Some(&"operation-ended"));
    // From the middle on it is the same again.
    let from = told[2]["cursor"].as_str().unwrap();
    let rest = lines(&scene.ok(&["watch", "--json", "--since", from, "--timeout", "0s"]));
    assert_eq!(rest[1..], told[3..]);
    let words = scene.ok(&["watch", "--since", cursor, "--timeout", "0s"]);
    assert_eq!(words.lines().count(), told.len() - 1, "{words}");
    assert!(words.contains("named second") && words.contains("rewind done"), "{words}");
}

#[test]
fn a_cursor_of_another_store_begins_again_and_a_text_that_is_none_is_refused() {
    let scene = scene();
    let told = lines(&scene.ok(&["watch", "--json", "--since", "kkkkkkkkkkkkkkkk.1.5", "--timeout", "0s"]));
    assert_eq!(told.len(), 2);
    assert_eq!(told[1]["kind"], "begin-again");
    assert!(scene.fails(&["watch", "--since", "5"]).contains("not a cursor"));
}

#[test]
fn what_another_process_does_is_told_while_it_waits_and_ctrl_c_ends_it_well() {
    let scene = scene();
    let mut child = scene.piton(&["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    assert_eq!(next()["kind"], "watching");
    for name in ["second", "third"] {
        scene.world.write("a.txt", name);
        scene.ok(&["checkpoint", name]);
        assert_eq!(next()["kind"], "captured");
        assert_eq!(next()["name"], name);
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_closed_pipe_ends_it_without_a_word() {
    let scene = scene();
    let mut child = scene.piton(&["watch"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), &done.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn the_log_is_read_page_by_page() {
    let scene = scene();
    for name in ["second", "third"] {
        scene.world.write("a.txt", name);
        scene.ok(&["checkpoint", name]);
    }
    let whole = scene.json(&["log"]);
    assert_eq!(whole["next"], Value::Null);
    let first = scene.json(&["log", "-n", "1"]);
    let next = first["next"].as_str().unwrap();
    let second = scene.json(&["log", "-n", "1", "--before", next]);
    assert_eq!(second["entries"][0], whole["entries"][1]);
    let foreign = "kkkkkkkkkkkkkkkk.1.5";
    assert!(scene.fails(&["log", "--before", foreign]).contains("`piton log` begins again"));
}
