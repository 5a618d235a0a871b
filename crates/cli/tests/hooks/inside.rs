//! `/piton …` typed to an agent: the same arguments as in a terminal, answers that name what can be typed there, and nothing
//! that needs a terminal. And the documents that programs get for errors.

use piton_testkit::{Scene, both};
use serde_json::{Value, json};

use crate::PITON;

/// Reports an event of a generic agent; what the user reads of it.
#[track_caller]
fn report(scene: &Scene, event: &str, more: Value) -> Option<String> {
    let mut body = json!({ "event": event, "session": "s1", "cwd": scene.world.ws() });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let done = scene.send(&["hook", "generic"], body.to_string().as_bytes());
    assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{}", both(&done));
    let reply: Option<Value> = serde_json::from_slice(&done.stdout).ok();
    reply.and_then(|reply| Some(reply["answer"].as_str()?.to_owned()))
}

#[track_caller]
fn answer(scene: &Scene, typed: &str) -> String {
    report(scene, "prompt", json!({ "turn": "q", "text": typed })).unwrap()
}

/// A turn that changed `a.txt`.
fn with_a_turn() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("a.txt", "1\n");
    let call = json!({ "turn": "p1", "tool": "shell", "call": "c1", "command": "echo 2 > a.txt" });
    report(&scene, "prompt", json!({ "turn": "p1", "text": "write it" }));
    report(&scene, "before-tool", call.clone());
    scene.world.write("a.txt", "2\n");
    report(&scene, "after-tool", call);
    report(&scene, "turn-ended", json!({ "turn": "p1" }));
    scene
}

#[test]
fn wrong_arguments_are_told_as_they_are_typed_there() {
    let scene = with_a_turn();
    for (typed, expected) in [
        ("/piton log --nonsense", "error: `/piton log` has no flag `--nonsense`"),
        ("/piton log --nonsense", "Usage: /piton log [OPTIONS]"),
        ("/piton rewind", "`/piton rewind` needs TARGET"),
        ("/piton diff --stat --name-only", "Usage: /piton diff [OPTIONS] [TURN | FROM [TO]]"),
        ("/piton undo --owner nobody", "`nobody` is not a value for `--owner`"),
        ("/piton undo --op x t1", "does not go together with"),
        ("/piton log a\u{202e}b", "a\\u{202e}b"),
    ] {
        let said = answer(&scene, typed);
        assert!(said.starts_with("error: ") && said.contains(expected), "{typed}: {said}");
    }
    assert_eq!(scene.read("a.txt"), "2\n");
}

#[test]
fn what_is_for_a_terminal_is_refused_before_anything_is_done() {
    let scene = with_a_turn();
    for (typed, expected) in [
        ("/piton verify", "`verify` is for a terminal"),
        ("/piton --json setup", "`setup` is for a terminal"),
        ("/piton hook generic", "`hook` is for a terminal"),
        ("/piton rewind t1 --all-workspaces", "`--all-workspaces` is for a terminal, which shows the plan first"),
        ("/piton rewind t1 --all-workspaces=true", "error: "),
        ("/piton rewind t1 --all-work", "error: "),
        ("/piton rewind t1 --scope both --resume", "`--resume` is for a terminal"),
        ("/piton undo --diff", "hint: `--preview --diff` shows them"),
    ] {
        let said = answer(&scene, typed);
        assert!(said.contains(expected), "{typed}: {said}");
    }
    assert_eq!(scene.read("a.txt"), "2\n");
    assert!(!scene.ok(&["ops"]).contains("rewind"));
}

#[test]
fn help_is_given_for_in_there_and_for_each_command() {
    let scene = with_a_turn();
    let short = answer(&scene, "/piton");
    assert!(short.starts_with("/piton undo ") && short.lines().count() == 10, "{short}");
    assert!(short.lines().all(|line| line.starts_with("/piton ") && line.len() <= 110), "{short}");
    for typed in ["/piton help", "/piton --help", "/piton help --help"] {
        let help = answer(&scene, typed);
        assert!(help.starts_with("/piton undo ") && help.contains("Also: blame"), "{typed}: {help}");
    }
    for typed in ["/piton help undo", "/piton undo --help"] {
        let page = answer(&scene, typed);
        assert!(page.contains("Usage: /piton undo [OPTIONS]") && page.contains("\n  /piton undo last 2 "), "{page}");
        assert!(page.contains("so `/piton redo` ") && !page.contains("`piton redo`"), "{page}");
    }
}

#[test]
fn what_goes_without_saying_there_is_not_asked_for_and_can_be_said() {
    let scene = with_a_turn();
    let stat = answer(&scene, "/piton diff t1");
    assert!(stat.contains("a.txt | ") && !stat.contains("@@"), "{stat}");
    assert!(answer(&scene, "/piton diff t1 --name-only").contains("a.txt"));
    assert!(answer(&scene, "/piton diff t1 --side-by-side").contains('│'));
    assert!(answer(&scene, "/piton undo --preview --diff").contains("@@"));
    assert_eq!(scene.read("a.txt"), "2\n");
    scene.world.write("mine.txt", "mine\n");
    let refused = answer(&scene, "/piton rewind t1");
    assert!(refused.contains("would delete your own mine.txt"), "{refused}");
    assert!(refused.contains("hint: `/piton rewind t1 --keep-mine` carries"), "{refused}");
    assert!(refused.contains("hint: `/piton yes` carries this plan out; `/piton redo` takes that back"), "{refused}");
    let done = answer(&scene, "/piton rewind t1 --keep-mine");
    assert!(done.contains("`/piton redo` takes it back") && !done.contains("--workspace"), "{done}");
    assert_eq!((scene.read("a.txt"), scene.read("mine.txt")), ("1\n".into(), "mine\n".into()));
    assert!(done.contains("\n  ~ a.txt\n"), "{done}");
    assert!(answer(&scene, "/piton redo").contains("`/piton undo --op "));
    assert!(answer(&scene, "/piton accept t1").contains("accepted 1 change"));
}

#[test]
fn a_plan_that_was_shown_there_is_carried_out_by_a_yes_and_only_once() {
    let scene = with_a_turn();
    assert!(answer(&scene, "/piton yes").contains("nothing waits for a yes"));
    scene.world.write("mine.txt", "mine\n");
    let shown = answer(&scene, "/piton rewind t1");
    assert!(shown.contains("would be deleted:") && shown.contains("`/piton yes` carries this plan out"), "{shown}");
    assert_eq!((scene.read("a.txt"), scene.read("mine.txt")), ("2\n".into(), "mine\n".into()));
    let done = answer(&scene, "/piton yes");
    assert!(done.starts_with("rewound to before turn 1") && done.contains("  - mine.txt"), "{done}");
    assert_eq!(scene.read("a.txt"), "1\n");
    assert!(!scene.world.has("mine.txt"));
    assert!(answer(&scene, "/piton yes").contains("nothing waits for a yes"));
    answer(&scene, "/piton redo");
    // Another plan than the one that was shown is shown again first.
    answer(&scene, "/piton rewind t1");
    scene.world.write("since.txt", "mine too\n");
    let other = answer(&scene, "/piton yes");
    assert!(other.contains("- delete   since.txt") && other.contains("the plan is another one by now"), "{other}");
    assert!(other.contains("`/piton yes` carries out this one"), "{other}");
    assert_eq!(scene.read("mine.txt"), "mine\n");
    let done = answer(&scene, "/piton yes");
    assert!(done.contains("rewound to before turn 1") && !scene.world.has("since.txt"), "{done}");
    answer(&scene, "/piton redo");
    // What writes in between forgets it, who only looks may still say yes, and another session's yes is another's.
    answer(&scene, "/piton rewind t1");
    answer(&scene, "/piton undo t9");
    assert!(answer(&scene, "/piton yes").contains("nothing waits for a yes"));
    answer(&scene, "/piton rewind t1");
    answer(&scene, "/piton log");
    assert!(answer(&scene, "/piton yes").contains("rewound to before turn 1"));
    answer(&scene, "/piton redo");
    answer(&scene, "/piton rewind t1");
    let other = scene.generic_event("s2", "prompt", json!({ "turn": "q", "text": "/piton yes" }));
    assert!(other["answer"].as_str().unwrap().contains("nothing waits for a yes"), "{other}");
    assert_eq!(scene.read("mine.txt"), "mine\n");
}

#[test]
fn a_command_that_cannot_be_typed_there_is_named_for_a_terminal() {
    let scene = with_a_turn();
    let folder = scene.world.ws().display().to_string();
    std::fs::create_dir(scene.world.base().join("elsewhere")).unwrap();
    let typed = format!("/piton log --workspace {}", scene.world.base().join("elsewhere").display());
    let said = answer(&scene, &typed);
    assert!(said.contains("`/piton checkpoint --workspace "), "{said}");
    assert!(said.contains("elsewhere` in a terminal only makes it known"), "{said}");
    assert!(!said.contains(&folder), "{said}");
    // What a file is called or holds is never taken for a command.
    scene.world.write("`piton redo`", "x\n");
    let status = answer(&scene, "/piton status");
    assert!(status.contains("+ `piton redo`"), "{status}");
}

#[test]
fn a_program_gets_the_code_the_fault_and_the_commands_of_an_error() {
    let scene = with_a_turn();
    let ws = scene.world.ws();
    let (folder, here) = (ws.display().to_string(), ["--workspace", ws.to_str().unwrap()]);
    let error = |arguments: &[&str]| -> Value {
        let command = [arguments, &["--json"]].concat();
        let done =
            scene.piton(&command).current_dir(if ws.exists() { &ws } else { scene.world.base() }).output().unwrap();
        let document: Value = serde_json::from_slice(&done.stdout).unwrap();
        document["error"].clone()
    };
    let unknown = error(&["rewind", "nonsense", "--yes"]);
    assert_eq!((&unknown["code"], &unknown["fault"]), (&json!("unknown-target"), &json!("user")));
    assert_eq!(unknown["ways"], json!([{ "verb": "log", "arguments": [], "text": "piton log" }]));
    let chosen = error(&["rewind", "nonsense", "--yes", here[0], here[1]]);
    assert_eq!(chosen["ways"][0]["arguments"], json!(["--workspace", folder]));
    assert_eq!(error(&["rewind", "--nonsense"])["code"], "arguments");
    assert_eq!(error(&["undo"])["code"], "nobody-to-ask");
    assert_eq!(error(&["redo", "--yes"])["code"], "nothing-to-redo");
    assert_eq!(error(&["show", "t9"])["code"], "unknown-turn");
    scene.ok(&["checkpoint", "one"]);
    assert_eq!(error(&["checkpoint", "one"])["code"], "name-taken");
    std::fs::remove_dir_all(&ws).unwrap();
    let gone = error(&["checkpoint", here[0], here[1]]);
    assert_eq!(gone["code"], "workspace-gone");
    assert_eq!(gone["ways"][0]["placeholders"], json!(["TARGET"]), "{gone}");
}
