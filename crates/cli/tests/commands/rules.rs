//! `piton rules`, and what an agent and its user hear of rules that change: from outside, with the real hook.

use std::process::Stdio;
use std::time::Duration;

use piton_testkit::{Scene, both, git, start};
use serde_json::{Value, json};

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("data/b.csv", "b\n").write("src/main.rs", "main\n").write(".gitignore", "*.log\n");
    scene
}

/// Reports an event of Claude Code's; what the user reads of it.
#[track_caller]
fn event(scene: &Scene, event: &str, more: Value) -> String {
    let said = scene.claude_event("s1", event, more);
    said["systemMessage"].as_str().unwrap_or_default().to_owned()
}

fn prompt(scene: &Scene, text: &str) -> String {
    event(scene, "UserPromptSubmit", json!({ "prompt": text }))
}

/// A whole turn of one shell command.
fn shell(scene: &Scene, id: &str, work: impl FnOnce()) {
    prompt(scene, "work");
    let call = json!({ "tool_name": "Bash", "tool_use_id": id, "tool_input": { "command": "sh" } });
    event(scene, "PreToolUse", call.clone());
    work();
    event(scene, "PostToolUse", call);
    event(scene, "Stop", json!({}));
    std::thread::sleep(Duration::from_millis(80));
}

#[test]
fn a_user_is_told_once_at_the_prompt_and_agrees_at_a_terminal() {
    let scene = scene();
    shell(&scene, "a", || {
        scene.world.write(".gitignore", "*.log\ndata/\n");
    });
    let said = prompt(&scene, "go on");
    let expected = "piton: warning: .gitignore changed (by the agent, in turn 1) and leaves out data; it stays captured until you \
                    agree; `piton rules accept` agrees, `piton rules` says more";
    assert_eq!(said, expected);
    assert_eq!(prompt(&scene, "and on"), "");

    let listed = scene.run(&["rules"]);
    let expected = "waiting for your word:\n  data  still captured; left out by .gitignore, changed by t1.1\n";
    assert_eq!(String::from_utf8_lossy(&listed.stdout), expected);
    assert!(
        both(&listed).ends_with("`piton rules accept` agrees; `piton undo t1` takes the change back\n"),
        "{}",
        both(&listed)
    );
    // Another command says it once.
    assert!(both(&scene.run(&["log"])).contains("note: .gitignore changed (by the agent, in turn 1)"));
    assert!(!both(&scene.run(&["log"])).contains("stays captured"));
    assert!(
        scene.ok(&["status"]).contains("warning: .gitignore changed (by the agent, in turn 1) and leaves out data")
    );
    let waiting = scene.json(&["rules", "list"])["waiting"].clone();
    assert_eq!((&waiting["paths"][0]["path"], &waiting["paths"][0]["rules"]), (&json!("data"), &json!([".gitignore"])));
    assert_eq!(scene.json(&["status"])["rules_waiting"], waiting);

    assert!(scene.fails(&["rules", "accept"]).contains("hint: `--yes` agrees without asking"));
    let (shown, code) = scene.at_a_terminal(&["rules", "accept"], "n\n");
    assert!(code == Some(1) && shown.contains("Agree to all of this?"), "{shown}");
    assert_eq!(scene.json(&["rules"])["waiting"], waiting);
    let (shown, code) = scene.at_a_terminal(&["rules", "accept"], "y\n");
    assert!(code == Some(0) && shown.contains("agreed: 1 path left out from now on"), "{shown}");
    assert_eq!(scene.json(&["rules"])["waiting"], json!({ "paths": [], "settings": [] }));
    assert!(scene.ok(&["rules", "accept"]).starts_with("nothing waits for your word"));
    assert!(scene.ok(&["log"]).contains("agreed to changed rules"));
    assert_eq!(scene.json(&["status"])["skipped"][0]["path"], "data");
}

#[test]
fn a_hook_captures_though_an_agent_switched_it_off() {
    let scene = scene();
    prompt(&scene, "begin");
    event(&scene, "Stop", json!({}));
    shell(&scene, "a", || {
        scene.world.write(".piton/config.toml", "capture.automatic = false\ncapture.size-limit = 1\n");
        scene.world.write(".pitonignore", "*\n");
    });
    let said = prompt(&scene, "go on");
    let settings =
        ".piton/config.toml was changed, and not by you: it says capture.automatic = false, capture.size-limit = 1;";
    assert!(said.contains(settings) && said.contains(".pitonignore changed"), "{said}");
    scene.world.write("src/main.rs", "mine\n");
    shell(&scene, "b", || {
        scene.world.remove("src");
    });
    scene.ok(&["undo", "--unsure", "--yes"]);
    assert_eq!(scene.read("src/main.rs"), "mine\n");
    assert_eq!(scene.ok(&["config", "capture.automatic"]), "true\n");
    assert_eq!(scene.json(&["config"])["waiting"], json!(["capture.automatic", "capture.size-limit"]));
    assert_eq!(scene.json(&["rules", "accept", "--yes"])["agreed"]["settings"][0]["key"], "capture.automatic");
    assert_eq!(scene.ok(&["config", "capture.automatic"]), "false\n");
}

#[test]
fn what_the_user_writes_holds_at_once() {
    let scene = scene();
    shell(&scene, "a", || {
        scene.world.write("src/main.rs", "agent\n");
    });
    scene.world.write(".gitignore", "data/\n").write(".piton/config.toml", "capture.size-limit = \"1GiB\"\n");
    assert_eq!(prompt(&scene, "go on"), "");
    assert_eq!(scene.json(&["rules"])["waiting"], json!({ "paths": [], "settings": [] }));
    assert_eq!(scene.ok(&["config", "capture.size-limit"]), "1GiB\n");
}

#[test]
fn an_agents_settings_are_measured_by_what_the_user_says_for_every_workspace() {
    let scene = scene();
    let folder = scene.world.base().join(".config/piton");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "capture.ignored-limit = \"50MiB\"\n").unwrap();
    assert_eq!(scene.ok(&["config", "capture.ignored-limit"]), "50MiB\n");
    prompt(&scene, "begin");
    event(&scene, "Stop", json!({}));
    shell(&scene, "a", || {
        scene.world.write(".piton/config.toml", "capture.ignored-limit = \"5MiB\"\n");
    });
    let said = prompt(&scene, "go on");
    assert!(
        said.contains(".piton/config.toml was changed, and not by you: it says capture.ignored-limit = 5MiB"),
        "{said}"
    );
    assert_eq!(scene.ok(&["config", "capture.ignored-limit"]), "50MiB\n");
}

/// An agent whose tool runs the command that agrees: the test is the agent, since it is what started the hooks.
#[test]
fn an_agents_own_tool_cannot_agree() {
    let scene = scene();
    shell(&scene, "a", || {
        scene.world.write(".gitignore", "data/\n");
    });
    prompt(&scene, "now agree");
    let call =
        json!({ "tool_name": "Bash", "tool_use_id": "b", "tool_input": { "command": "piton rules accept --yes" } });
    event(&scene, "PreToolUse", call.clone());
    let said = scene.fails(&["rules", "accept", "--yes"]);
    assert!(said.contains("an agent runs this command, and only you can agree; nothing was agreed to"), "{said}");
    let (shown, code) = scene.at_a_terminal(&["rules", "accept", "--yes"], "");
    assert!(code == Some(1) && shown.contains("only you can agree"), "{shown}");
    event(&scene, "PostToolUse", call);
    event(&scene, "Stop", json!({}));
    assert_eq!(scene.json(&["rules"])["waiting"]["paths"][0]["path"], "data");
    scene.ok(&["rules", "accept", "--yes"]);
}

/// A program that a tool started in a session and at a terminal of its own is no child of the agent's any more.
#[test]
fn while_a_tool_runs_nobody_agrees_and_neither_does_what_an_agent_started() {
    let scene = scene();
    shell(&scene, "a", || {
        scene.world.write(".gitignore", "data/\n");
    });
    let accept = [PITON, "rules", "accept", "--yes"].join(" ");
    let detached = |variable: &str| {
        let code = scene.world.base().join("code");
        let _ = std::fs::remove_file(&code);
        let script = format!("script -qec '{accept}' /dev/null >/dev/null 2>&1; echo $? > {}", code.display());
        let home = scene.world.base();
        let mut command = std::process::Command::new("setsid");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).current_dir(scene.world.ws());
        command.env("HOME", home).env("PITON_HOME", home.join("home")).stdin(Stdio::null());
        command.args(["--fork", "sh", "-c", &script]);
        if !variable.is_empty() {
            command.env(variable, "1");
        }
        assert!(command.status().unwrap().success());
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(50));
            if let Ok(text) = std::fs::read_to_string(&code)
                && text.ends_with('\n')
            {
                return text.trim().to_owned();
            }
        }
        panic!("it does not end");
    };
    prompt(&scene, "now agree");
    let call = json!({ "tool_name": "Bash", "tool_use_id": "b", "tool_input": { "command": "setsid script" } });
    event(&scene, "PreToolUse", call.clone());
    assert_eq!(detached(""), "1");
    event(&scene, "PostToolUse", call);
    event(&scene, "Stop", json!({}));
    assert_eq!(detached("CLAUDECODE"), "1");
    assert_eq!(scene.json(&["rules"])["waiting"]["paths"][0]["path"], "data");
}

#[test]
fn an_undo_is_named_only_where_it_takes_the_rule_back() {
    let scene = scene();
    git(&scene.world.ws(), &["init", "-q"]);
    prompt(&scene, "begin");
    event(&scene, "Stop", json!({}));
    shell(&scene, "a", || {
        scene.world.write(".git/info/exclude", "data/\n");
    });
    let said = both(&scene.run(&["rules"]));
    assert!(said.contains("left out by .git/info/exclude, changed by t2.1"), "{said}");
    let hint = "`piton rules accept` agrees; no undo reaches .git/info/exclude: change that by hand\n";
    assert!(said.ends_with(hint), "{said}");
}

#[test]
fn a_user_agrees_at_the_agents_own_prompt() {
    let scene = scene();
    shell(&scene, "a", || {
        scene.world.write(".gitignore", "data/\n");
    });
    let said = scene.claude_event("s1", "UserPromptSubmit", json!({ "prompt": "/piton rules accept" })).to_string();
    assert!(said.contains("agreed: 1 path left out from now on"), "{said}");
    assert_eq!(scene.json(&["rules"])["waiting"]["paths"], json!([]));
}

#[test]
fn two_hooks_at_once_and_one_that_is_killed_lose_nothing_that_is_held() {
    let scene = scene();
    prompt(&scene, "work");
    let call = |id: &str| json!({ "tool_name": "Bash", "tool_use_id": id, "tool_input": { "command": "sh" } });
    event(&scene, "PreToolUse", call("a"));
    event(&scene, "PreToolUse", call("b"));
    scene.world.write(".gitignore", "data/\n");
    let tell = |id: &str| {
        let mut hook = start(&mut scene.piton(&["hook", "claude-code"]));
        let report = scene.claude_report("s1", "PostToolUse", call(id));
        std::io::Write::write_all(&mut hook.stdin.take().unwrap(), &report).unwrap();
        hook
    };
    let (mut one, mut other) = (tell("a"), tell("b"));
    let _ = one.kill();
    let _ = one.wait();
    assert!(other.wait().unwrap().success());
    event(&scene, "Stop", json!({}));
    assert_eq!(scene.json(&["rules"])["waiting"]["paths"][0]["path"], "data");
    assert_eq!(scene.json(&["status"])["skipped"], json!([]));
}
