//! What a shell offers to go on with, as a person types.

use std::process::Command;

use piton_engine::Tool;
use piton_testkit::{Scene, both};

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::new(PITON);
    let mut workspace = scene.world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    for (call, prompt) in [("1", "add a login page\nwith a form"), ("2", "make the tests pass")] {
        session.begin_turn(prompt).unwrap();
        session.before_tool(&Tool::new(call, "Write").names("a.txt")).unwrap();
        scene.world.write("a.txt", format!("{prompt}\n"));
        session.after_tool(call).unwrap();
        session.end_turn().unwrap();
    }
    session.end().unwrap();
    scene.ok(&["checkpoint", "before-refactor", "-m", "it works"]);
    scene.ok(&["branch", "rename", "run-1", "login"]);
    scene
}

/// The lines that begin with what is typed.
fn offers(scene: &Scene, words: &[&str]) -> String {
    scene.ok(&[&["complete", "--"], words].concat())
}

#[test]
fn a_target_is_offered_with_what_it_means() {
    let scene = scene();
    assert_eq!(
        offers(&scene, &["rewind", ""]),
        "t2\tmake the tests pass\nt1\tadd a login page …\nbefore-refactor\tit works\nstart\tthe first checkpoint\n"
    );
    assert_eq!(offers(&scene, &["show", "bef"]), "before-refactor\tit works\n");
    assert_eq!(offers(&scene, &["rewind", "t1."]), "t1.1\tWrite a.txt\nt1.end\tafter all of it\n");
    assert_eq!(offers(&scene, &["rewind", "login:t1"]), "login:t1\tadd a login page …\n");
    assert_eq!(offers(&scene, &["undo", "1"]), "1\t+ a.txt\n");
    assert!(offers(&scene, &["log", "--session", "log"]).starts_with("login\tclaude-code, login\n"));
    assert!(offers(&scene, &["diff", "t1", "t"]).starts_with("t2\t"));
    assert!(offers(&scene, &["diff", "t1", ""]).ends_with("\n:files\n"));
    scene.ok(&["undo", "t2", "--yes"]);
    assert!(offers(&scene, &["undo", "--op", ""]).ends_with("\tundo of turn 2 “make the tests pass”\n"));
}

#[test]
fn commands_flags_and_values_are_offered_where_they_can_stand() {
    let scene = scene();
    let commands = offers(&scene, &[""]);
    assert!(commands.contains("\nundo\tTake back chosen changes") && !commands.contains("complete\t"), "{commands}");
    assert_eq!(offers(&scene, &["branch", "ren"]).lines().count(), 1);
    assert!(offers(&scene, &["rewind", "t1", "--sc"]).starts_with("--scope\tWhat goes back"));
    assert_eq!(offers(&scene, &["rewind", "--scope", "co"]).lines().count(), 2);
    assert!(offers(&scene, &["config", "capture."]).contains("capture.automatic\n"));
    assert_eq!(offers(&scene, &["log", "--path", ""]), ":files\n");
    assert_eq!(offers(&scene, &["rewind", "t1", "t"]), "");
}

#[test]
fn a_shell_is_answered_from_the_store_alone_and_without_a_word_where_something_is_wrong() {
    let scene = scene();
    let nobody = scene.piton(&["complete", "--", "rewind", ""]).current_dir("/").output().unwrap();
    assert_eq!((both(&nobody).as_str(), nobody.status.code()), ("", Some(0)));
    std::fs::remove_dir_all(scene.world.ws()).unwrap();
    let workspace = scene.world.ws();
    let typed = ["complete", "--workspace", workspace.to_str().unwrap(), "--", "rewind", "t"];
    assert!(scene.run_in(scene.world.base(), &typed).1.contains("t2\t"));
}

#[test]
fn bash_completes_words_with_colons_too() {
    let scene = scene();
    let script = scene.at("piton.bash");
    std::fs::write(&script, scene.ok(&["completions", "bash"])).unwrap();
    let complete = |line: &str| {
        let program = format!(
            "source {}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9; \
             compopt() {{ :; }}; _piton; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &program]);
        let mut bash = scene.started_by(bash, &[]);
        let path = std::path::Path::new(PITON).parent().unwrap().display();
        bash.env("PATH", format!("{path}:/usr/bin:/bin"));
        String::from_utf8(bash.output().unwrap().stdout).unwrap()
    };
    assert_eq!(complete("piton rewind t"), "t2\nt1\n");
    assert_eq!(complete("piton rewind login:t1"), "t1\n");
    assert_eq!(complete("piton show bef"), "before-refactor\n");
    assert!(complete("piton ").contains("checkpoint\n"));
}
