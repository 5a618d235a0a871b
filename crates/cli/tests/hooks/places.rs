//! Where agents work, from outside: the log, the user and the commands say the same of what is captured, and the truth.

use std::path::Path;

use piton_testkit::{Scene, both, git, give};
use serde_json::{Value, json};

use crate::PITON;

/// Reports an event of Claude Code; what the user sees of it.
#[track_caller]
fn hook(scene: &Scene, session: &str, event: &str, cwd: &Path, mut more: Value) -> Option<String> {
    more["cwd"] = json!(cwd);
    Some(scene.claude_event(session, event, more)["systemMessage"].as_str()?.to_owned())
}

fn prompt(scene: &Scene, session: &str, cwd: &Path, text: &str) -> Option<String> {
    hook(scene, session, "UserPromptSubmit", cwd, json!({ "prompt": text, "prompt_id": text }))
}

/// The last line of the hook's log.
fn logged(scene: &Scene) -> String {
    scene.hook_log().pop().unwrap()
}

fn repository(ignored: &str) -> Scene {
    let scene = Scene::new(PITON);
    let ws = scene.world.ws();
    git(&ws, &["init", "-q"]);
    scene.world.write("src/main.rs", "main\n").write(".gitignore", ignored);
    git(&ws, &["add", "-A"]);
    git(&ws, &["commit", "-qm", "c"]);
    scene
}

#[test]
fn a_home_folder_and_what_is_around_it_are_refused_and_the_user_hears_of_it_once() {
    let scene = Scene::new(PITON);
    let user = scene.world.path("user");
    std::fs::create_dir(&user).unwrap();
    let run = |args: &[&str], folder: &Path| {
        let done = scene.piton(args).env("HOME", &user).current_dir(folder).output().unwrap();
        (done.status.code(), both(&done))
    };
    for (session, folder, what) in [("s1", &user, "your home folder"), ("s2", &scene.world.ws(), "around your home")] {
        let body = scene.claude_report(session, "SessionStart", json!({ "cwd": folder }));
        let tell = || {
            let mut command = scene.piton(&["hook", "claude-code"]);
            command.env("HOME", &user);
            String::from_utf8(give(command, &body).stdout).unwrap()
        };
        let first = tell();
        assert!(first.contains("nothing is captured") && first.contains(what), "{first}");
        assert_eq!(tell(), "", "it is told once");
        assert!(logged(&scene).contains("gap: ") && logged(&scene).contains(what), "{}", logged(&scene));
        let (code, status) = run(&["status"], folder);
        assert!(code == Some(1) && status.contains(what) && !status.contains("captures it"), "{status}");
        let (code, doctor) = run(&["doctor"], folder);
        assert_eq!(code, Some(1));
        let line = doctor.lines().find(|line| line.contains(" workspace ")).unwrap();
        assert!(line.starts_with("problem") && line.contains(what), "{doctor}");
    }
    assert!(scene.world.engine.workspaces().is_empty());
}

#[test]
fn a_folder_that_is_left_out_is_never_logged_as_captured_and_the_user_hears_of_it_once() {
    let scene = repository("build/\n");
    let (ws, build) = (scene.world.ws(), scene.world.path("build"));
    scene.world.write("build/out", "1");
    assert_eq!(prompt(&scene, "s1", &ws, "one"), None);
    assert!(!logged(&scene).contains("not captured"), "{}", logged(&scene));
    let told = prompt(&scene, "s1", &build, "two").unwrap();
    assert!(told.contains("build is not captured (ignored)") && told.contains("piton init"), "{told}");
    assert!(logged(&scene).contains(&format!("; not captured: {} (ignored)", build.display())), "{}", logged(&scene));
    assert_eq!(prompt(&scene, "s1", &build, "three"), None);
    assert!(logged(&scene).contains("not captured"), "the log says it each time");

    let outside = scene.world.base().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let told = prompt(&scene, "s1", &outside, "four").unwrap();
    assert!(told.contains("outside is not captured (in no repository and no workspace)"), "{told}");
    assert!(scene.world.engine.workspaces().iter().eq([&ws]));

    for command in ["status", "log", "checkpoint"] {
        let done = scene.piton(&[command]).current_dir(&build).output().unwrap();
        assert!(both(&done).contains("build is not captured (ignored)"), "{command}: {}", both(&done));
    }
    let done = scene.piton(&["doctor"]).current_dir(&build).output().unwrap();
    assert!(both(&done).contains("build is not captured (ignored)"), "{}", both(&done));
    // What the hint says is so.
    scene.ok(&["init", "build"]);
    assert_eq!(prompt(&scene, "s1", &build, "five"), None);
    assert!(!logged(&scene).contains("not captured"), "{}", logged(&scene));
}

#[test]
fn the_reported_loss_in_a_worktree_of_claude_code_is_undone() {
    let scene = repository(".claude/\n");
    let ws = scene.world.ws();
    git(&ws, &["worktree", "add", "-q", ".claude/worktrees/fix"]);
    let tree = scene.world.path(".claude/worktrees/fix");
    prompt(&scene, "s1", &ws, "begin");
    hook(&scene, "s1", "Stop", &ws, json!({}));
    let status = scene.ok(&["status"]);
    assert!(status.contains("not protected") && status.contains(".claude/worktrees/fix"), "{status}");

    let call = json!({ "tool_name": "Bash", "tool_use_id": "c1", "tool_input": { "command": "rm -rf src" } });
    prompt(&scene, "s1", &tree, "clean up");
    hook(&scene, "s1", "PreToolUse", &tree, call.clone());
    std::fs::remove_dir_all(tree.join("src")).unwrap();
    hook(&scene, "s1", "PostToolUse", &tree, call);
    hook(&scene, "s1", "Stop", &tree, json!({}));
    assert!(!scene.ok(&["status"]).contains("not protected"));

    let undone = scene.piton(&["undo", "--yes"]).current_dir(&tree).output().unwrap();
    assert_eq!(undone.status.code(), Some(0), "{}", both(&undone));
    assert_eq!(scene.read(".claude/worktrees/fix/src/main.rs"), "main\n");
    // The store around it never had a file of an ignored worktree, so nobody is sent there.
    let log = scene.piton(&["log"]).current_dir(&tree).output().unwrap();
    assert!(!both(&log).contains("earlier turns") && !both(&undone).contains("earlier turns"), "{}", both(&log));
}

#[test]
fn a_worktree_that_was_captured_with_the_folder_around_it_says_where_its_earlier_turns_are() {
    let scene = Scene::new(PITON);
    let (ws, main, away) = (scene.world.ws(), scene.world.base().join("main"), scene.world.base().join("away"));
    git(&ws, &["init", "-q"]);
    git(scene.world.base(), &["init", "-q", "main"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "c"]);
    let tree = scene.world.path("tree");
    git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    // Without its repository it is a folder like any other; so are the worktrees in stores of an earlier piton.
    std::fs::rename(&main, &away).unwrap();
    scene.world.write("tree/a", "1");
    prompt(&scene, "s1", &ws, "begin");
    hook(&scene, "s1", "Stop", &ws, json!({}));
    std::fs::rename(&away, &main).unwrap();
    prompt(&scene, "s1", &tree, "go on");
    std::fs::write(tree.join("a"), "2").unwrap();
    hook(&scene, "s1", "Stop", &tree, json!({}));
    for command in [&["log"][..], &["undo", "--yes"]] {
        let done = scene.piton(command).current_dir(&tree).output().unwrap();
        let note = format!("earlier turns are in that of {}", ws.display());
        assert!(both(&done).contains(&note), "{command:?}: {}", both(&done));
    }
    // The outer log has no such note, nor has one of a worktree that was protected from its first turn on.
    assert!(!scene.told(&["log"]).contains("earlier turns"));
    git(&main, &["worktree", "add", "-q", scene.world.path("new").to_str().unwrap()]);
    prompt(&scene, "s2", &scene.world.path("new"), "begin");
    let log = scene.piton(&["log"]).current_dir(scene.world.path("new")).output().unwrap();
    assert!(!both(&log).contains("earlier turns"), "{}", both(&log));
}

#[test]
fn status_lists_the_worktrees_that_sessions_here_do_not_capture() {
    let scene = repository(".claude/\nhidden/\n");
    let ws = scene.world.ws();
    git(&ws, &["worktree", "add", "-q", ".claude/worktrees/w1"]);
    git(&ws, &["worktree", "add", "-q", "beside"]);
    // A nested repository is part of the workspace; its worktree in an ignored folder is not.
    git(&ws, &["clone", "-q", ".", "nested"]);
    git(&scene.world.path("nested"), &["worktree", "add", "-q", "../hidden/w2"]);
    let (w1, w2) = (scene.world.path(".claude/worktrees/w1"), scene.world.path("hidden/w2"));
    let unprotected = || {
        let status = scene.json(&["status"]);
        let all = status["unprotected"].as_array().unwrap();
        all.iter().map(|one| Path::new(one.as_str().unwrap()).to_owned()).collect::<Vec<_>>()
    };
    // Another session works in the ignored one, and ends.
    prompt(&scene, "s2", &w1, "there");
    hook(&scene, "s2", "Stop", &w1, json!({}));
    hook(&scene, "s2", "SessionEnd", &w1, json!({}));
    prompt(&scene, "s1", &ws, "here");
    assert_eq!(unprotected(), [w1.clone(), w2.clone()], "what is not ignored is captured by the same event");
    // Once the session has worked in it, its events capture it.
    prompt(&scene, "s1", &w1, "there");
    assert_eq!(unprotected(), std::slice::from_ref(&w2));
    prompt(&scene, "s1", &w2, "and there");
    assert!(unprotected().is_empty());
    // Of another session here that does not hold.
    prompt(&scene, "s3", &ws, "here");
    assert_eq!(unprotected(), [w1, w2]);
}

#[test]
fn a_transcript_inside_the_workspace_is_neither_captured_nor_put_back() {
    let scene = repository("");
    let id = "428214a0-5123-43c6-ae2b-86a56b0968a8";
    let ws = scene.world.ws();
    let transcript = format!(".cc/projects/-ws/{id}.jsonl");
    let (subagent, copy) = (format!(".cc/projects/-ws/{id}/subagents/agent-1.jsonl"), ".cc/file-history/x/a@v1");
    scene.world.write(&transcript, "1\n").write(&subagent, "1\n").write(copy, "1").write(".cc/settings.json", "1");
    // Before any session reported, nobody knows what that is.
    scene.ok(&["checkpoint", "old"]);
    let report = json!({ "prompt": "one", "prompt_id": "one", "transcript_path": ws.join(&transcript) });
    hook(&scene, id, "UserPromptSubmit", &ws, report);
    let grown = "1\n2\n";
    scene.world.write(&transcript, grown).write(&subagent, grown).write(copy, grown).write("src/main.rs", "edited\n");
    scene.world.write(".cc/settings.json", "2");
    hook(&scene, id, "Stop", &ws, json!({ "transcript_path": ws.join(&transcript) }));

    // The shell that piton runs in knows nothing of the agent's variables.
    for (target, code) in [("t1", 0), ("old", 1)] {
        let done = scene.run(&["rewind", target, "--yes", "--scope", "code"]);
        let told = both(&done);
        // The old one holds them, so not all of it comes back; that is said.
        assert_eq!(done.status.code(), Some(code), "{told}");
        assert_eq!(told.contains(".cc/projects/-ws (an agent's own state)"), code == 1, "{told}");
        assert_eq!(scene.read("src/main.rs"), "main\n", "{told}");
        assert_eq!(scene.read(".cc/settings.json"), "1", "that is the user's");
        for path in [&transcript, &subagent, copy] {
            assert_eq!(scene.read(path), grown, "{target} {path}");
        }
        scene.ok(&["redo", "--yes"]);
    }
    let shown = scene.json(&["rewind", "old", "--preview", "--scope", "code"]);
    let kept = shown["skipped"].as_array().unwrap().iter().filter(|one| one["reason"] == "agent-state").count();
    assert_eq!(kept, 2, "{shown:#}");
    let status = scene.json(&["status"]);
    let listed: Vec<_> =
        status["skipped"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(listed, [".cc/file-history", ".cc/projects/-ws"]);
}

#[test]
fn no_report_leaves_a_workspace_or_the_agents_folder_out() {
    let scene = repository("");
    let ws = scene.world.ws();
    let id = "428214a0-5123-43c6-ae2b-86a56b0968a8";
    let inner = scene.world.path("projects/-app");
    scene.world.write("projects/-app/a", "1");
    for (event, transcript) in [
        ("one", ws.clone()),
        ("two", scene.world.path("src")),
        ("three", inner.join(format!("{id}.jsonl"))),
        ("four", std::path::PathBuf::from("/")),
    ] {
        let report = json!({ "prompt": event, "prompt_id": event, "transcript_path": transcript });
        hook(&scene, id, "UserPromptSubmit", &inner, report);
    }
    assert_eq!(scene.json(&["status"])["skipped"], json!([]));
}

#[test]
fn a_transcript_whose_usual_path_leads_into_the_workspace_by_a_symlink_is_not_put_back() {
    let id = "428214a0-5123-43c6-ae2b-86a56b0968a8";
    // The agent's folder for the project, the transcript alone, and the folder with all of them.
    for linked in [".claude/projects/-ws", &format!(".claude/projects/-ws/{id}.jsonl"), ".claude/projects"] {
        let scene = repository("");
        let (ws, link) = (scene.world.ws(), scene.world.base().join(linked));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let real = match linked.ends_with(".jsonl") {
            true => "kept/conversation".to_owned(),
            false => format!("kept{}/{id}.jsonl", if linked.ends_with("projects") { "/-ws" } else { "" }),
        };
        scene.world.write(&real, "1\n");
        let target = if linked.ends_with(".jsonl") { ws.join(&real) } else { ws.join("kept") };
        std::os::unix::fs::symlink(target, &link).unwrap();
        let transcript = scene.world.base().join(format!(".claude/projects/-ws/{id}.jsonl"));
        let report = json!({ "prompt": "one", "prompt_id": "one", "transcript_path": transcript });
        hook(&scene, id, "UserPromptSubmit", &ws, report);
        let grown = "1\n2\n";
        scene.world.write(&real, grown).write("src/main.rs", "edited\n");
        hook(&scene, id, "Stop", &ws, json!({ "transcript_path": transcript }));
        scene.run(&["rewind", "t1", "--yes", "--scope", "code"]);
        assert_eq!((scene.read("src/main.rs").as_str(), scene.read(&real).as_str()), ("main\n", grown), "{linked}");
    }
}

#[test]
fn a_source_file_that_a_report_calls_its_transcript_stays_captured() {
    let scene = repository("");
    let (ws, id) = (scene.world.ws(), "428214a0-5123-43c6-ae2b-86a56b0968a8");
    let source = ws.join("src/main.rs");
    let report = json!({ "prompt": "one", "prompt_id": "one", "transcript_path": source });
    hook(&scene, id, "UserPromptSubmit", &ws, report);
    assert_eq!(scene.json(&["status"])["skipped"], json!([]));
    scene.world.write("src/main.rs", "edited\n");
    hook(&scene, id, "Stop", &ws, json!({ "transcript_path": source }));
    scene.ok(&["rewind", "t1", "--yes", "--scope", "code"]);
    assert_eq!(scene.read("src/main.rs"), "main\n");
}

#[test]
fn init_in_a_folder_of_a_workspace_says_which_one_it_is_and_how_to_make_another() {
    let scene = Scene::new(PITON);
    let (outer, app) = (scene.world.ws(), scene.world.path("app"));
    std::fs::create_dir(&app).unwrap();
    git(&app, &["init", "-q"]);
    let run = |folder: &Path, args: &[&str]| {
        let output = scene.piton(args).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", both(&output));
        both(&output)
    };
    assert!(!run(&outer, &["init"]).contains("piton init ."));
    assert!(!run(&outer, &["init"]).contains("piton init ."), "it is this very folder");
    let said = run(&app, &["init"]);
    let (outer, app) = (outer.display().to_string(), app.display().to_string());
    assert!(said.contains(&format!("{outer} was a workspace already")), "{said}");
    assert!(
        said.contains(&format!("{app} belongs to it; `piton init .` makes {app} a workspace of its own")),
        "{said}"
    );
    // What an undo there is about is the whole workspace, and who is refused hears how to change that.
    assert_eq!(prompt(&scene, "s1", Path::new(&app), "one"), None);
    hook(&scene, "s1", "Stop", Path::new(&app), json!({}));
    let refused = scene.piton(&["undo", "--yes"]).current_dir(&app).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let hint = format!("{app} belongs to the workspace {outer}; `piton init {app}` makes it a workspace of its own");
    assert!(both(&refused).contains(&hint), "{}", both(&refused));
    assert!(run(Path::new(&app), &["init", "."]).contains(&format!("{app} is a workspace now")));
    assert!(run(Path::new(&app), &["init"]).contains(&format!("{app} was a workspace already")));
}
