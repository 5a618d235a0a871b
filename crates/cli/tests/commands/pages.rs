//! The output of the commands, as a terminal of 80 and of 120 columns shows it.
//!
//! The pages are files in `tests/pages`. `PITON_WRITE_PAGES=1 cargo test -p piton --test commands pages` writes them anew: read what
//! changed as somebody who has never seen piton would.

use std::path::Path;

use piton_engine::Tool;
use piton_testkit::{Scene, at_a_terminal};

use crate::PITON;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["log"],
    &["log", "--steps"],
    &["log", "--files"],
    &["log", "--checkpoints"],
    &["show", "t2"],
    &["show", "t2.1"],
    &["show", "release"],
    &["show", "t3", "--stat"],
    &["diff", "t2"],
    &["diff", "--stat"],
    &["diff", "--side-by-side", "t1"],
    &["status"],
    &["status", "--short"],
    &["sessions"],
    &["sessions", "--tree"],
    &["changes"],
    &["ops"],
    &["search", "login"],
    &["blame", "src/auth.ts"],
    &["rewind", "t2", "--preview"],
    &["undo", "--preview"],
    &["redo", "--preview"],
    &["cat", "t2:src/auth.ts"],
    &["changes", "--all"],
    &["diff", "t1", "t2"],
    &["log", "--future"],
    &["conversation"],
    &["config"],
    &["rules"],
    &["help"],
    &["help", "undo"],
    &["help", "rewind"],
    // What changes something, one after the other.
    &["accept", "t1"],
    &["checkpoint", "before-more", "-m", "a note"],
    &["annotate", "t1", "the first one"],
    &["undo", "t2", "--yes"],
    &["redo", "--yes"],
    &["rewind", "t2", "--scope", "code", "--yes"],
    &["rewind", "t2", "--scope", "code", "--yes", "--path", "src"],
    &["checkout", "t2", "../out"],
    &["export", "run-1", "-o", "../run.piton"],
    &["verify"],
    &["undo", "t9"],
    &["rewind", "before-mor"],
];

/// Three turns, one of which was taken back, with edits of the user's and what may be theirs.
fn scene() -> Scene {
    let scene = Scene::new(PITON);
    let world = &scene.world;
    world.write("src/auth.ts", "one\ntwo\nthree\n").write("notes.md", "mine\n");
    let mut workspace = world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    session
        .begin_turn("add a login page\nwith a form, and validate both fields on the server before anything is saved")
        .unwrap();
    session.before_tool(&Tool::new("1", "Write").names("src/login.ts")).unwrap();
    world.write("src/login.ts", "login\nform\n");
    session.after_tool("1").unwrap();
    session.end_turn().unwrap();
    world.write("notes.md", "mine, and more\n");
    session.begin_turn("make the tests pass, and do not change what they expect of the login form").unwrap();
    session.before_tool(&Tool::new("2", "Bash").runs("npm install && npm test -- --runInBand")).unwrap();
    world.write("dist/app.js", "built\n").write("notes.md", "whose?\n").write("src/auth.ts", "one\nTWO\nthree\n");
    session.after_tool("2").unwrap();
    session.before_tool(&Tool::new("3", "Bash").runs("npm test")).unwrap();
    session.tool_failed("3", "exit code 1").unwrap();
    session.end_turn().unwrap();
    scene.ok(&["checkpoint", "release", "-m", "it works"]);
    session.begin_turn("refactor everything").unwrap();
    session.before_tool(&Tool::new("4", "Edit").names("src/auth.ts")).unwrap();
    world.write("src/auth.ts", "ONE\nTWO\nthree\nfour\n");
    session.after_tool("4").unwrap();
    session.end_turn().unwrap();
    session.end().unwrap();
    scene.ok(&["undo", "t3", "--yes"]);
    scene.ok(&["annotate", "t2", "the one to go back to"]);
    world.write("src/login.ts", "login\nform\nby hand\n");
    scene
}

/// Without what differs from run to run: ids, ages, times, sizes, and with them how far columns are apart.
fn steady(text: &str, scene: &Scene) -> String {
    let is_id = |word: &str| matches!(word.len(), 8 | 16) && word.bytes().all(|b| (b'k'..=b'z').contains(&b));
    let text = text.replace(scene.world.base().to_str().unwrap(), "/w");
    let mut out = String::new();
    // The store's place may stand on a line of its own.
    let is_store = |line: &str| line.starts_with("store  ") || line.trim_start().starts_with("/w/home/workspaces/");
    for line in text.lines().filter(|line| !is_store(line) && !line.starts_with("size  ")) {
        let line = if line.starts_with("when  ") || line.starts_with("captured  ") { "when  (a time)" } else { line };
        let mut line: String = line.to_owned();
        for seconds in (1..60).rev() {
            line = line.replace(&format!("{seconds} s ago"), "just now").replace(&format!(" {seconds}s "), " now ");
        }
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
                let is_time = bare.len() == 5
                    && bare.bytes().enumerate().all(|(n, b)| if n == 2 { b == b':' } else { b.is_ascii_digit() });
                if is_time {
                    word.replace(bare, "09:41")
                } else if word.parse::<f64>().is_ok() && word.contains('.') {
                    // As many KiB.
                    "N".to_owned()
                } else if is_id(bare) {
                    word.replace(bare, &"k".repeat(bare.len()))
                } else {
                    word.to_owned()
                }
            })
            .collect();
        let mut line = words.join(" ");
        while line.contains("   ") {
            line = line.replace("   ", "  ");
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[test]
fn every_page_is_as_it_was_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages");
    let writes = std::env::var_os("PITON_WRITE_PAGES").is_some();
    let mut wrong = Vec::new();
    for width in [80, 120] {
        let scene = scene();
        for command in COMMANDS {
            let mut process = scene.piton(command);
            process.env("COLUMNS", width.to_string()).env("NO_COLOR", "1").env("TZ", "UTC");
            let (screen, _) = at_a_terminal(process, "");
            let name = format!("{}-{width}.txt", command.join("_").replace(['/', ' ', ':'], "_"));
            let page = format!("$ piton {}\n{}", command.join(" "), steady(&screen, &scene));
            let file = folder.join(&name);
            if writes {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&file, page).unwrap();
            } else if std::fs::read_to_string(&file).ok().as_deref() != Some(&page) {
                wrong.push(format!("{name} is now\n{page}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_of_tables_hold_at_80_columns() {
    let scene = scene();
    for command in [
        &["log"][..],
        &["log", "--checkpoints"],
        &["sessions"],
        &["sessions", "--tree"],
        &["ops"],
        &["search", "login"],
    ] {
        let mut process = scene.piton(command);
        process.env("COLUMNS", "80").env("NO_COLOR", "1");
        let (screen, _) = at_a_terminal(process, "");
        let long: Vec<_> = screen.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{command:?}: {long:#?}");
    }
}
