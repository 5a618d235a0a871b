//! `piton blame` as a person and a script see it: a real session made through the engine, and the real binary over it.

use piton_engine::Tool;
use piton_testkit::{Scene, both};
use serde_json::{Value, json};

use crate::PITON;

/// A file with lines of two turns, of the user, and from before piton.
fn scene() -> Scene {
    let scene = Scene::new(PITON);
    let world = &scene.world;
    world.write("src/auth.ts", "import x\nend\n");
    let mut workspace = world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    session.begin_turn("add a login page\nwith a form").unwrap();
    session.before_tool(&Tool::new("1", "Edit").names("src/auth.ts")).unwrap();
    world.write("src/auth.ts", "import x\nlogin()\nform()\nend\n");
    session.after_tool("1").unwrap();
    session.end_turn().unwrap();
    world.write("src/auth.ts", "// mine\nimport x\nlogin()\nform()\nend\n");
    session.begin_turn("log out").unwrap();
    session.before_tool(&Tool::new("2", "Write").names("src/auth.ts")).unwrap();
    world.write("src/auth.ts", "// mine\nimport x\nlogin()\nform()\n\tlogout(\"\x1b[2J\")\nend\n");
    session.after_tool("2").unwrap();
    session.end_turn().unwrap();
    drop(workspace);
    scene
}

/// What a command prints that works in a folder of the workspace.
#[track_caller]
fn ok(scene: &Scene, folder: &str, args: &[&str]) -> String {
    let done = scene.piton(args).current_dir(scene.world.path(folder)).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{args:?}: {}", both(&done));
    String::from_utf8(done.stdout).unwrap()
}

/// Without what differs from run to run: how many seconds ago it was.
fn steady(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let (margin, rest) = line.split_once('│').unwrap();
        let is_age = |word: &str| word == "now" || word.strip_suffix('s').is_some_and(|n| n.parse::<u32>().is_ok());
        let words: Vec<&str> = margin.split_whitespace().filter(|word| !is_age(word)).collect();
        out += &format!("{:<30}│{rest}\n", words.join(" "));
    }
    out
}

#[track_caller]
fn check(scene: &Scene, args: &[&str], expected: &str) {
    assert_eq!(format!("\n{}", steady(&ok(scene, "src", args))), expected, "{args:?}");
}

#[track_caller]
fn fails(scene: &Scene, args: &[&str], message: &str) {
    assert_eq!(scene.fails(args), message, "{args:?}");
}

#[test]
fn each_line_says_whose_it_is_and_contents_reach_a_pipe_as_they_are() {
    let scene = scene();
    check(
        &scene,
        &["blame", "auth.ts"],
        "
you                           │ 1 │ // mine
before piton                  │ 2 │ import x
t1.1 Edit add a login page    │ 3 │ login()
t1.1 Edit add a login page    │ 4 │ form()
t2.1 Write log out            │ 5 │ \tlogout(\"\x1b[2J\")
before piton                  │ 6 │ end
",
    );
    check(
        &scene,
        &["blame", "auth.ts", "--at", "t2", "-L", "3,+2"],
        "
t1.1 Edit add a login page    │ 3 │ login()
t1.1 Edit add a login page    │ 4 │ form()
",
    );
    assert!(scene.ok(&["blame", "src/auth.ts", "--color", "always"]).contains("logout(\"\\x1b[2J\")"));
}

#[test]
fn a_script_gets_each_origin_once_and_the_lines_point_to_them() {
    let scene = scene();
    let found: Value = serde_json::from_str(&scene.ok(&["blame", "src/auth.ts", "--json"])).unwrap();
    assert_eq!((&found["path"], &found["at"]), (&json!("src/auth.ts"), &Value::Null));
    let lines: Vec<_> =
        found["lines"].as_array().unwrap().iter().map(|line| (&line["number"], &line["origin"])).collect();
    let numbers = [1, 2, 3, 4, 5, 6].map(|number| json!(number));
    let origins = [0, 1, 2, 2, 3, 1].map(|number| json!(number));
    assert_eq!(lines, numbers.iter().zip(&origins).collect::<Vec<_>>());
    let kinds: Vec<_> = found["origins"].as_array().unwrap().iter().map(|origin| &origin["kind"]).collect();
    assert_eq!(kinds, ["you", "before-piton", "step", "step"]);
    let step = &found["origins"][2];
    assert_eq!(
        (&step["turn"], &step["step"], &step["tool"], &step["prompt"], &step["owner"]["evidence"]),
        (&json!(1), &json!(1), &json!("Edit"), &json!("add a login page"), &json!("named"))
    );
    assert!(step["checkpoint"].is_string() && step["at"].is_string() | step["at"].is_number());
    let then = scene.ok(&["blame", "src/auth.ts", "--at", "t1", "--json"]);
    let then: Value = serde_json::from_str(&then).unwrap();
    assert_eq!(then["at"]["cause"], "prompt");
}

#[test]
fn what_cannot_be_told_comes_with_a_way_out() {
    let scene = scene();
    scene.world.write("logo", b"\0").remove("src/auth.ts");
    let last = scene.world.open().log(Default::default()).unwrap().checkpoints[0].id.short().to_owned();
    fails(
        &scene,
        &["blame", "src/auth.ts"],
        &format!(
            "error: `src/auth.ts` is not there any more\n\
             hint: `--at {last}` asks about the last checkpoint that has it\n"
        ),
    );
    assert!(scene.ok(&["blame", "src/auth.ts", "--at", &last]).contains("login()"));
    fails(
        &scene,
        &["blame", "logo"],
        "error: `logo` is binary, so it has no lines\n\
         hint: `piton log --files --path FILE` says who changed it, and when\n",
    );
    fails(
        &scene,
        &["blame", "src"],
        "error: `src` is a folder, and only a file has lines\n\
         hint: `piton log --files --path DIR` says who changed what in it\n",
    );
    fails(
        &scene,
        &["blame", "src/auth.ts", "--at", "t1", "-L", "9,"],
        "error: `src/auth.ts` has 2 lines, so it has no line 9\n\
         hint: without `-L` all lines are shown\n",
    );
    let refused = scene.run(&["blame", "src/auth.ts", "-L", "5,3"]);
    assert_eq!(refused.status.code(), Some(1));
}
