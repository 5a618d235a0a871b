//! `piton rewind`, `undo` and `redo` while an agent is at work, and what the agent hears of them: real sessions made
//! through the engine or the hook, and the real binary over them.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use piton_testkit::{Agent, Scene, both};
use serde_json::{Value, json};

use crate::PITON;

/// A turn that wrote `a.txt`, and a second one that goes on.
fn in_a_second_turn(scene: &Scene) -> Agent<'_> {
    let agent = Agent::new(&scene.world, "s1");
    agent.edits("write it", &["a.txt"], |world| {
        world.write("a.txt", "1\n");
    });
    agent.prompt("go on");
    agent
}

/// Starts a command that waits, and gives it the time to begin with that.
fn waiting(scene: &Scene, args: &[&str]) -> Child {
    let mut child = scene.piton(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    child
}

#[test]
fn without_anybody_to_ask_it_is_refused_with_the_ways_out_and_each_of_them_works() {
    let scene = Scene::new(PITON);
    let agent = in_a_second_turn(&scene);
    let short = agent.id().short().to_owned();
    let error = scene.fails(&["undo", "--yes"]);
    assert_eq!(
        error,
        format!(
            "error: the agent is in the middle of turn 2 of session {short}; nothing was changed\n\
             hint: `piton undo --wait` waits until its turn has ended\n\
             hint: `piton undo --interrupted` goes ahead if you have stopped the agent yourself\n"
        )
    );
    agent.before("c", "Bash", &[]);
    let error = scene.fails(&["rewind", "t1", "--yes", "--scope", "code"]);
    assert!(error.contains(&format!("the agent runs “Bash” in turn 2 of session {short}")), "{error}");
    assert!(error.contains("`piton rewind t1 --scope code --wait`"), "{error}");
    assert!(scene.fails(&["rewind", "t1", "--careful"]).contains("the agent runs"));
    let done = scene.run(&["undo", "--yes", "--json"]);
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(document["error"]["message"].as_str().unwrap().contains("the agent runs"), "{document}");
    assert_eq!((document["error"]["hints"].as_array().unwrap().len(), done.status.code()), (2, Some(1)));
    assert_eq!(scene.read("a.txt"), "1\n");
    scene.ok(&["undo", "--yes", "--interrupted"]);
    assert!(!scene.world.path("a.txt").exists());
    assert!(scene.ok(&["log"]).contains("go on"));
}

#[test]
fn the_preview_says_what_runs_and_refuses_nothing() {
    let scene = Scene::new(PITON);
    let agent = in_a_second_turn(&scene);
    let text = scene.ok(&["undo", "--preview"]);
    assert!(text.contains("warning: the agent is in the middle of t2\n"), "{text}");
    agent.before("c", "Bash", &["b"]);
    let text = scene.ok(&["undo", "--preview"]);
    assert!(text.contains("warning: the agent runs “Bash b” (t2.1); `--wait` waits for its end\n"), "{text}");
    let document = scene.json(&["undo", "--preview"]);
    let one = &document["running"][0];
    assert_eq!((&one["what"], &one["turn"], &one["step"]), (&json!("tool"), &json!(2), &json!(1)));
    assert_eq!((&one["own"], &one["blocks"]), (&json!(true), &json!(true)));
    let text = scene.ok(&["undo", "--preview", "--interrupted"]);
    assert!(text.contains("t2 counts as interrupted: you say so\n"), "{text}");
    assert!(scene.fails(&["undo", "--yes"]).contains("the agent runs"), "a preview records nothing");
}

#[test]
fn an_undo_that_leaves_a_turn_of_another_session_alone_says_so() {
    let scene = Scene::new(PITON);
    Agent::new(&scene.world, "s1").edits("write it", &["a.txt"], |world| {
        world.write("a.txt", "1\n");
    });
    let other = Agent::new(&scene.world, "s2");
    other.prompt("something else");
    let said = scene.told(&["undo", "--yes"]);
    assert!(said.contains("undid turn 1 of session") || said.contains("undid turn 1 “write it”"), "{said}");
    assert!(said.contains("the agent is in the middle of t1"), "{said}");
    other.end_turn();
    assert!(!scene.told(&["redo", "--yes"]).contains("in the middle"));
    other.prompt("once more");
    let document = scene.json(&["undo", "--yes"]);
    assert_eq!((&document["running"][0]["what"], &document["running"][0]["blocks"]), (&json!("turn"), &json!(false)));
}

#[test]
fn at_a_terminal_between_tools_somebody_is_asked_and_while_one_runs_nobody_is() {
    let scene = Scene::new(PITON);
    let agent = in_a_second_turn(&scene);
    let (screen, code) = scene.at_a_terminal(&["undo"], "n\n");
    assert!(screen.contains("The agent is in the middle of t2. Has it been interrupted? [y/N]"), "{screen}");
    assert!(screen.contains("hint:") && screen.contains("--wait") && !screen.contains("Undo 1 file"), "{screen}");
    assert_eq!((code, scene.read("a.txt")), (Some(1), "1\n".into()));
    agent.before("c", "Bash", &[]);
    let (screen, code) = scene.at_a_terminal(&["undo"], "y\ny\n");
    assert!(screen.contains("the agent runs “Bash”") && !screen.contains("interrupted?"), "{screen}");
    assert_eq!((code, scene.read("a.txt")), (Some(1), "1\n".into()));
    agent.after("c");
    // Interrupted, and then thought better of it: the file stays, and so does the turn as it was.
    let (screen, code) = scene.at_a_terminal(&["undo"], "y\nn\n");
    assert!(screen.contains("counts as interrupted: you say so") && screen.contains("Undo 1 file"), "{screen}");
    assert_eq!((code, scene.read("a.txt")), (Some(1), "1\n".into()));
    let (screen, code) = scene.at_a_terminal(&["undo"], "y\ny\n");
    assert_eq!(code, Some(0), "{screen}");
    assert!(!scene.world.path("a.txt").exists());
}

#[test]
fn waiting_goes_on_when_the_tool_and_the_turn_have_ended() {
    let scene = Scene::new(PITON);
    let agent = in_a_second_turn(&scene);
    agent.before("c", "Bash", &[]);
    let mut child = waiting(&scene, &["undo", "--yes", "--wait"]);
    agent.after("c");
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "the turn goes on");
    agent.end_turn();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", both(&done));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.starts_with("waiting: the agent runs “Bash” in turn 2"), "{said}");
    assert!(!scene.world.path("a.txt").exists());
    // Nobody to wait for.
    let said = scene.told(&["redo", "--yes", "--wait"]);
    assert!(!said.contains("waiting"), "{said}");
}

#[test]
fn waiting_that_is_cut_short_changes_nothing() {
    // Bit 1 is SIGINT's: who runs the tests in the background may have it ignored, and so would the command.
    if piton_engine::ignored_signals().unwrap_or(0) & 2 != 0 {
        piton_testkit::not_run("waiting that is cut short", "Ctrl-C is ignored here");
        return;
    }
    let scene = Scene::new(PITON);
    let agent = in_a_second_turn(&scene);
    agent.before("c", "Bash", &[]);
    let error = scene.fails(&["undo", "--yes", "--wait", "--wait-at-most", "300ms"]);
    assert!(error.contains("the agent runs “Bash”") && error.contains("this waited for 300ms"), "{error}");
    let child = waiting(&scene, &["undo", "--yes", "--wait"]);
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
    assert!(both(&done).contains("error: the waiting was stopped; nothing was changed"), "{}", both(&done));
    assert_eq!(scene.read("a.txt"), "1\n");
    for bad in [&["--wait", "--interrupted"][..], &["--wait-at-most", "1s"], &["--wait", "--wait-at-most", "soon"]] {
        assert_ne!(scene.run(&[&["undo", "--yes"], bad].concat()).status.code(), Some(0), "{bad:?}");
    }
}

#[test]
fn the_turn_of_an_agent_whose_process_is_gone_counts_as_interrupted() {
    let scene = Scene::new(PITON);
    let report = |name: &str, event: Value| {
        let mut event = event;
        event["session"] = json!("g");
        event["cwd"] = json!(scene.world.ws());
        std::fs::write(scene.world.base().join(name), event.to_string()).unwrap();
    };
    report("1", json!({"event": "prompt", "text": "go"}));
    report("2", json!({"event": "before-tool", "tool": "write", "call": "c1", "paths": ["a.txt"]}));
    report("3", json!({"event": "after-tool", "tool": "write", "call": "c1", "paths": ["a.txt"]}));
    report("4", json!({"event": "before-tool", "tool": "shell", "call": "c2"}));
    // `find` is the agent here: no shell, and alive as long as its commands run.
    let script = format!(
        "cd {0}; for n in 1 2; do {PITON} hook generic < $n; done; echo 1 > ws/a.txt; \
         for n in 3 4; do {PITON} hook generic < $n; done; cd ws; {PITON} undo --yes; echo $? > ../while-it-lives",
        scene.world.base().display()
    );
    let mut agent = Command::new("find");
    agent.args([".", "-maxdepth", "0", "-exec", "sh", "-c", &script, ";"]).current_dir(scene.world.base());
    agent.env("PITON_HOME", scene.world.base().join("home")).env("HOME", scene.world.base());
    let run = agent.output().unwrap();
    let while_it_lives = std::fs::read_to_string(scene.world.base().join("while-it-lives")).unwrap();
    assert_eq!(while_it_lives.trim(), "1", "{}", both(&run));
    let text = scene.ok(&["undo", "--preview"]);
    assert!(text.contains("t1 counts as interrupted: its agent's process is gone"), "{text}");
    scene.ok(&["undo", "--yes"]);
    assert!(!scene.world.path("a.txt").exists());
}

/// Sends an event of Claude Code's, and returns what it gets back.
fn hook(scene: &Scene, event: &str, more: Value) -> Value {
    scene.claude_event("s1", event, more)
}

/// A turn of Claude Code's that writes `a.txt` through its hooks.
fn a_turn(scene: &Scene, id: &str, content: &str, ends: bool) {
    assert_eq!(hook(scene, "UserPromptSubmit", json!({ "prompt": "write", "prompt_id": id })), Value::Null);
    let call = json!({
        "prompt_id": id, "tool_name": "Write", "tool_use_id": format!("{id}-1"),
        "tool_input": { "file_path": scene.world.path("a.txt") }
    });
    hook(scene, "PreToolUse", call.clone());
    scene.world.write("a.txt", content);
    hook(scene, "PostToolUse", call);
    if ends {
        hook(scene, "Stop", json!({ "prompt_id": id }));
    }
}

#[test]
fn the_prompt_after_an_undo_tells_the_agent_and_a_setting_keeps_it_quiet() {
    let scene = Scene::new(PITON);
    a_turn(&scene, "p1", "1\n", true);
    scene.ok(&["undo", "--yes"]);
    let reply = hook(&scene, "UserPromptSubmit", json!({ "prompt": "go on", "prompt_id": "p2" }));
    assert_eq!(reply["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit");
    let context = reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("undid turn 1 “write”") && context.contains("\n- deleted: a.txt\n"), "{context}");
    assert_eq!(reply["systemMessage"], Value::Null);
    hook(&scene, "Stop", json!({ "prompt_id": "p2" }));
    a_turn(&scene, "p3", "3\n", true);
    scene.ok(&["undo", "--yes"]);
    scene.world.write(".piton/config.toml", "hook.tell-agent = false\n");
    assert_eq!(hook(&scene, "UserPromptSubmit", json!({ "prompt": "go on", "prompt_id": "p4" })), Value::Null);
}

#[test]
fn going_on_in_a_session_that_was_rewound_is_a_line_for_the_user_beside_what_the_agent_is_told() {
    let scene = Scene::new(PITON);
    let send = |event: &str, more: Value| scene.generic_event("g", event, more);
    for (number, content) in ["1\n", "2\n"].into_iter().enumerate() {
        send("prompt", json!({"text": "write"}));
        send("message", json!({"role": "assistant", "text": "I will"}));
        let tool = json!({"tool": "w", "call": format!("c{number}"), "paths": ["a.txt"]});
        send("before-tool", tool.clone());
        scene.world.write("a.txt", content);
        send("after-tool", tool);
        send("turn-ended", json!({}));
    }
    scene.ok(&["rewind", "t2", "--yes", "--scope", "both"]);
    let reply = send("prompt", json!({"text": "go on"}));
    let line = reply["line"].as_str().unwrap();
    assert!(line.starts_with("piton: this session was rewound to before turn 2: the branch is session "), "{line}");
    let context = reply["context"].as_str().unwrap();
    assert!(
        context.contains("rewound the files to before turn 2") && context.contains("- modified: a.txt"),
        "{context}"
    );
    send("turn-ended", json!({}));
    assert_eq!(send("prompt", json!({"text": "and on"})), Value::Null);
}

#[test]
fn a_command_inside_the_agent_ends_the_turn_that_nobody_ended() {
    let scene = Scene::new(PITON);
    a_turn(&scene, "p1", "1\n", false);
    assert!(scene.fails(&["undo", "--yes"]).contains("in the middle of turn 1"));
    // A prompt that belongs to the turn itself says nothing of its end.
    let reply = hook(&scene, "UserPromptSubmit", json!({ "prompt": "/piton undo", "prompt_id": "p1" }));
    let answer = reply["reason"].as_str().unwrap();
    assert!(answer.contains("in the middle of turn 1") && answer.contains("`/piton undo --wait`"), "{answer}");
    let reply = hook(&scene, "UserPromptSubmit", json!({ "prompt": "/piton undo", "prompt_id": "p2" }));
    assert!(reply["reason"].as_str().unwrap().contains("undid turn 1"), "{reply}");
    assert!(!scene.world.path("a.txt").exists());
    let log = scene.json(&["log"]);
    let turns = log["entries"].as_array().unwrap().iter().filter(|entry| entry["entry"] == "turn");
    assert_eq!(turns.map(|turn| &turn["ending"]).collect::<Vec<_>>(), [&json!("interrupted")]);
}
