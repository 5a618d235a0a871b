//! Branches as the command line shows them: future turns, the tree, forks, and what a person makes of them.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use piton_testkit::{Claude, Scene, both, three_turns};
use serde_json::Value;

use crate::PITON;

fn scene() -> Scene {
    Scene::new(PITON)
}

/// What a command made: the agent's id of the branch.
fn branch_of(done: &Value) -> String {
    done["conversation"]["agent_id"].as_str().unwrap().to_owned()
}

fn short(claude: &Claude<'_>) -> String {
    claude.session().short().to_owned()
}

#[test]
fn the_log_leaves_future_turns_out_and_says_how_many_and_redo_brings_them_back() {
    let scene = scene();
    three_turns(&scene.world);
    assert!(!scene.told(&["log"]).contains("future"));
    let done = scene.json(&["rewind", "t2", "--yes"]);
    let branch = Claude::resumed(&scene.world, &branch_of(&done));
    branch.talks("second, otherwise");
    let told = scene.told(&["log"]);
    assert!(told.ends_with("2 future turns: `piton log --future`\n"), "{told}");
    assert!(told.contains("first") && told.contains("second, otherwise") && !told.contains("third"), "{told}");
    let all = scene.told(&["log", "--future"]);
    let marked: Vec<_> = all.lines().filter(|line| line.ends_with("future")).collect();
    assert_eq!(marked.len(), 2, "{all}");
    assert!(marked[0].contains("third") && marked[1].contains("second"), "{all}");
    assert!(!all.contains("piton log --future"), "{all}");
    let document = scene.json(&["log"]);
    assert_eq!(document["future"], 2);
    let turns = |document: &Value, future: bool| {
        let entries = document["entries"].as_array().unwrap();
        entries.iter().filter(|entry| entry["entry"] == "turn" && entry["future"].is_boolean() == future).count()
    };
    assert_eq!((turns(&document, true), turns(&document, false)), (0, 2));
    let document = scene.json(&["log", "--future"]);
    assert_eq!((turns(&document, true), turns(&document, false)), (2, 2));
    scene.ok(&["redo", "--yes"]);
    assert!(!scene.told(&["log", "--future"]).contains("future"));
    assert_eq!(scene.json(&["log"])["future"], Value::Null);
}

#[test]
fn the_tree_shows_what_left_where_and_where_you_are() {
    let scene = scene();
    let claude = three_turns(&scene.world);
    let done = scene.json(&["rewind", "t3", "--yes"]);
    let branch = Claude::resumed(&scene.world, &branch_of(&done));
    let forked = scene.json(&["fork", "t2", "--name", "try 日本"]);
    let twig = Claude::resumed(&scene.world, &branch_of(&forked));
    let tree = scene.ok(&["sessions", "--tree"]);
    let lines: Vec<_> = tree.lines().collect();
    assert_eq!(lines.len(), 3, "{tree}");
    assert!(lines[0].contains(&short(&claude)) && lines[0].contains("3 turns"), "{tree}");
    assert!(lines[1].contains(&format!("└─ {}", short(&branch))), "{tree}");
    assert!(lines[1].contains("first (branch)") && lines[1].contains("rewind at t3"), "{tree}");
    assert!(lines[1].ends_with("you are here") && !lines[0].contains("you are here"), "{tree}");
    assert!(
        lines[2].contains(&format!("   └─ {}  try 日本", short(&twig))) && lines[2].contains("fork at t2"),
        "{tree}"
    );
    // A plain list marks branches too, and JSON has the parents.
    let plain = scene.ok(&["sessions"]);
    assert!(plain.contains("rewind at t3 of "), "{plain}");
    let document = scene.json(&["sessions", "--tree"]);
    let sessions = document["sessions"].as_array().unwrap();
    let of_twig = sessions.iter().find(|session| session["agent_id"] == *twig.id).unwrap();
    assert_eq!(of_twig["origin"]["parent"], branch.session().as_str());
    assert_eq!((&of_twig["origin"]["turn"], &of_twig["origin"]["how"]), (&2.into(), &"fork".into()));
    // Deleted ones only on request.
    scene.ok(&["branch", "delete", "try 日本", "--yes"]);
    assert!(!scene.ok(&["sessions", "--tree"]).contains("try"));
    let all = scene.ok(&["sessions", "--tree", "--all"]);
    assert!(all.lines().any(|line| line.contains("try 日本") && line.ends_with("deleted")), "{all}");
    assert_eq!(scene.json(&["sessions"])["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_fork_says_how_to_go_on_and_changes_nothing_here() {
    let scene = scene();
    three_turns(&scene.world);
    let before = scene.world.snapshot();
    let told = scene.told(&["fork", "t3", "--name", "try two"]);
    assert!(told.starts_with("forked t3 as session ") && told.contains("\"try two\""), "{told}");
    assert!(told.contains("claude --resume ") && told.contains("│ third"), "{told}");
    scene.world.assert_is(&before);
    assert_eq!(scene.json(&["sessions"])["sessions"][0]["turns"], 3, "you are where you were");
    let document = scene.json(&["fork", "t3"]);
    assert_eq!(document["conversation"]["prompt"], "third");
    assert_eq!(document["conversation"]["resume"][0], "claude");
    let error = scene.fails(&["fork", "t1"]);
    assert!(error.contains("nothing was said before turn 1") && error.contains("--worktree"), "{error}");
    let error = scene.fails(&["fork", "t9"]);
    assert!(error.contains("turn 9") && error.contains("hint:"), "{error}");
    let error = scene.fails(&["fork", "t3", "--name", "a\u{1b}[2Jb"]);
    assert!(error.contains("cannot be a session's name") && !error.contains('\u{1b}'), "{error}");
    let error = scene.fails(&["fork", "t3", "--name", "try two"]);
    assert!(error.contains("is called `try two` already"), "{error}");
    assert_eq!(scene.run(&["fork"]).status.code(), Some(1));
}

#[test]
fn a_worktree_is_a_workspace_of_its_own_whatever_the_umask() {
    let scene = scene();
    scene.world.write("run.sh", "#!/bin/sh\n").mode("run.sh", 0o755).write("docs/x.md", "x").mode("docs", 0o750);
    three_turns(&scene.world);
    let script = "umask 077; cd \"$1\"; shift; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(scene.world.ws()).arg(PITON);
    command.args(["fork", "t3", "--worktree", "../two approaches"]).env_clear();
    command.env("HOME", scene.world.base()).env("PITON_HOME", scene.world.base().join("home"));
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", both(&done));
    let folder = scene.world.base().join("two approaches");
    assert!(both(&done).contains(&format!("its code is in {}; verified", folder.display())), "{}", both(&done));
    assert!(both(&done).contains(&format!("cd '{}' && claude --resume ", folder.display())), "{}", both(&done));
    let mode = |path: &str| std::fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
    let of_root = std::fs::metadata(scene.world.ws()).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("run.sh"), mode("docs"), mode("")), (0o755, 0o750, of_root));
    assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "line\nline\n");
    let there = scene.ok(&["log", "--workspace", folder.to_str().unwrap()]);
    assert!(there.starts_with('*'), "{there}");
    let error = scene.fails(&["fork", "t3", "--worktree", "../two approaches"]);
    assert!(error.contains("something is in that folder") && error.contains("hint:"), "{error}");
    let error = scene.fails(&["fork", "t3", "--worktree", "inside"]);
    assert!(error.contains("neither in the workspace nor around it"), "{error}");
    let document = scene.json(&["fork", "t2", "--worktree", "../three"]);
    assert_eq!(document["worktree"]["verified"], true);
    assert!(document["worktree"]["checkpoint"].is_string(), "{document}");
}

#[test]
fn names_are_checked_and_wrong_ones_say_why() {
    let scene = scene();
    three_turns(&scene.world);
    let branch = branch_of(&scene.json(&["fork", "t2"]));
    let told = scene.ok(&["branch", "rename", &branch, "with a queue"]);
    assert!(told.ends_with("is called \"with a queue\"\n"), "{told}");
    assert!(scene.ok(&["branch"]).contains("with a queue"));
    let listed = scene.json(&["branch", "list"]);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "only branches are data");
    for (bad, why) in [
        ("t5", "may not look like a turn"),
        ("10m", "may not look like an age"),
        ("a\u{7}b", "no control characters"),
        ("", "no control characters"),
    ] {
        let error = scene.fails(&["branch", "rename", "with a queue", bad]);
        assert!(error.contains(why) && error.contains("hint:") && !error.contains('\u{7}'), "{bad:?}: {error}");
    }
    let error = scene.fails(&["branch", "rename", "nobody", "x"]);
    assert!(error.contains("there is no session `nobody`"), "{error}");
    for wrong in [&["branch", "rename", "x"][..], &["branch", "delete"], &["branch", "compare", "x"], &["branch", "x"]]
    {
        assert_eq!(scene.run(wrong).status.code(), Some(1), "{wrong:?}");
    }
}

#[test]
fn branches_are_deleted_after_a_question_and_come_back() {
    let scene = scene();
    let claude = three_turns(&scene.world);
    let branch = Claude::resumed(&scene.world, &branch_of(&scene.json(&["fork", "t2", "--name", "b"])));
    let bytes = std::fs::read(branch.path()).unwrap();
    let error = scene.fails(&["branch", "delete", "b"]);
    assert!(error.contains("no terminal to ask at"), "{error}");
    let preview = scene.ok(&["branch", "delete", "b", "--preview"]);
    assert!(preview.starts_with("would delete ") && branch.path().exists(), "{preview}");
    let (screen, code) = scene.at_a_terminal(&["branch", "delete", "b"], "n\n");
    assert!(code == Some(1) && screen.contains("Delete 1 branch?") && branch.path().exists(), "{screen}");
    let (screen, code) = scene.at_a_terminal(&["branch", "delete", "b"], "y\n");
    assert!(code == Some(0) && screen.contains("deleted "), "{screen}");
    assert!(!branch.path().exists());
    let error = scene.fails(&["branch", "delete", "b", "--yes"]);
    assert!(error.contains("is deleted") && error.contains("piton branch restore"), "{error}");
    assert!(scene.ok(&["branch", "list", "--all"]).contains("deleted"));
    let told = scene.ok(&["branch", "restore", "b"]);
    assert!(told.starts_with("restored "), "{told}");
    assert_eq!(std::fs::read(branch.path()).unwrap(), bytes);
    let error = scene.fails(&["branch", "delete", &short(&claude), "--yes"]);
    assert!(error.contains("is not a branch") && error.contains("hint:"), "{error}");
    let error = scene.fails(&["branch", "delete", "--older-than", "yesterday"]);
    assert!(error.contains("`yesterday` is not an age"), "{error}");
    let told = scene.ok(&["branch", "delete", "--older-than", "30d", "--yes"]);
    assert!(told.starts_with("nothing to delete"), "{told}");
    let document = scene.json(&["branch", "delete", "--older-than", "0s", "--yes"]);
    assert_eq!((&document["done"], document["branches"].as_array().unwrap().len()), (&true.into(), 1));
    assert_eq!(document["branches"][0]["rank"], "deleted");
    assert!(claude.path().exists() && !branch.path().exists());
}

#[test]
fn a_branch_is_promoted_and_compared() {
    let scene = scene();
    let claude = three_turns(&scene.world);
    let branch = Claude::resumed(&scene.world, &branch_of(&scene.json(&["rewind", "t3", "--yes"])));
    branch.edits("third, otherwise", &["b.txt"], |world| {
        world.write("b.txt", "b\n");
    });
    let (a, b) = (short(&claude), short(&branch));
    let told = scene.told(&["branch", "promote", &b]);
    assert!(told.contains("is the main line\narchived "), "{told}");
    assert!(told.contains(&format!("go on with it:\n  claude --resume {}\n", branch.id)), "{told}");
    let rewind = format!("`piton rewind {}:t3.end --scope code` makes them what it left", &b[..4]);
    assert!(told.contains(&rewind), "{told}");
    let tree = scene.ok(&["branch"]);
    assert!(tree.lines().next().unwrap().ends_with("archived") && tree.contains("you are here, main line"), "{tree}");
    assert!(scene.ok(&["branch", "promote", &b]).contains("already"));
    let told = scene.ok(&["branch", "compare", &a, &b]);
    assert!(told.starts_with("parted before turn 3 of session "), "{told}");
    let row = told.lines().find(|line| line.contains("third, otherwise")).unwrap();
    assert!(row.trim_start().starts_with("t3  third ") && row.ends_with("+1"), "{told}");
    assert!(told.contains("~ a.txt") && told.contains("+ b.txt | 1 +"), "{told}");
    assert!(!told.contains("@@"), "{told}");
    assert!(scene.ok(&["branch", "compare", &a, &b, "--patch"]).contains("+b\n"));
    let document = scene.json(&["branch", "compare", &a, &b]);
    assert_eq!(document["parted"]["turn"], 3);
    assert_eq!(document["turns_b"][0]["prompt"], "third, otherwise");
    assert_eq!(document["diff"]["files"][1]["path"], "b.txt");
    let error = scene.fails(&["branch", "compare", &a, &a]);
    assert!(error.contains("both are session"), "{error}");
    let narrow = scene.piton(&["branch", "compare", &a, &b]).env("COLUMNS", "40").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    assert!(narrow.lines().any(|line| line.trim().starts_with("t3  third, otherwise")), "{narrow}");
}

#[test]
fn the_limit_on_branches_is_a_setting() {
    let scene = scene();
    three_turns(&scene.world);
    scene.world.write(".piton/config.toml", "[conversation]\nmost-branches = 1\n");
    scene.ok(&["fork", "t2"]);
    let error = scene.fails(&["fork", "t2"]);
    assert!(error.contains("1 branches, as many") || error.contains("1 branch already"), "{error}");
    assert!(error.contains("--older-than") && error.contains("conversation.most-branches"), "{error}");
    let error = scene.fails(&["rewind", "t2", "--scope", "conversation", "--yes"]);
    assert!(error.contains("conversation.most-branches"), "{error}");
    let more = scene.piton(&["fork", "t2"]).env("PITON_CONVERSATION_MOST_BRANCHES", "2").output().unwrap();
    assert_eq!(more.status.code(), Some(0), "{}", both(&more));
}
