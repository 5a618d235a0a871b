//! `piton summarize`: who summarizes and what it gets, what goes wrong, and what the real Claude Code makes of the branch.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use piton_testkit::{Claude, ClaudeCode, Endpoint, Model, Request, Say, Scene, Turn, both};
use serde_json::Value;

use crate::PITON;

/// Three turns of a played Claude Code.
fn scene() -> Scene {
    let scene = Scene::new(PITON);
    let claude = Claude::new(&scene.world, 1);
    claude.edits("make a.txt", &["a.txt"], |world| {
        world.write("a.txt", "one\n");
    });
    claude.edits("make it \u{1b}[2Jtwo", &["a.txt"], |world| {
        world.write("a.txt", "two\n");
    });
    claude.talks("what is in it?");
    scene
}

/// With a summary command.
fn with(scene: &Scene, command: &str, args: &[&str]) -> Output {
    scene.piton(args).env("PITON_SUMMARY_COMMAND", command).output().unwrap()
}

#[track_caller]
fn document(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", both(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// How many transcripts there are.
fn transcripts(scene: &Scene) -> usize {
    std::fs::read_dir(Claude::new(&scene.world, 1).folder()).unwrap().count()
}

#[track_caller]
fn refused(scene: &Scene, output: &Output, expected: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(expected) && said.contains("--digest"), "{said}");
    assert!(output.stdout.is_empty() && !said.contains('\u{1b}'), "{said:?}");
    assert_eq!(transcripts(scene), 1, "nothing was made");
    said
}

#[test]
fn without_settings_it_is_a_digest_and_says_so() {
    let scene = scene();
    let shown = scene.told(&["summarize", "t3", "--up-to", "--preview"]);
    let expected =
        "A summary of turns 1 to 2, by piton itself (a digest):\n  A digest of these turns that piton extracted";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.contains("- asked: make it two\n  - files: modified a.txt\n  - answered: done\n"), "{shown}");
    assert_eq!(transcripts(&scene), 1);
    let done = scene.json(&["summarize", "t3", "--up-to", "--yes", "--name", "short"]);
    assert_eq!(
        (&done["summary"]["by"], &done["summary"]["first"], &done["summary"]["last"]),
        (&"digest".into(), &1.into(), &2.into())
    );
    let branch = done["conversation"]["agent_id"].as_str().unwrap();
    assert_eq!(Claude::resumed(&scene.world, branch).prompts(), ["what is in it?"]);
    let said = scene.told(&["summarize", "t2", "--from", "--yes"]);
    assert!(
        said.contains(": turn 1, then a summary of turns 2 to 3 by piton itself (a digest); the files stay\n"),
        "{said}"
    );
    assert!(said.contains("`claude --resume ") && said.contains("` goes on there; you stay where you are\n"), "{said}");
    let sessions = scene.json(&["sessions"]);
    let named = sessions["sessions"].as_array().unwrap().iter().find(|one| one["name"] == "short").unwrap();
    assert_eq!(named["origin"]["how"], "summary-up-to");
}

#[test]
fn a_command_gets_the_conversation_and_the_instructions_and_its_answer_is_the_summary() {
    let scene = scene();
    let args = ["summarize", "t2", "--from", "--instructions", "be brief", "--yes", "--json"];
    let done = document(&with(&scene, "cat; echo \"hook $PITON_HOOK in $(ls -A | wc -l)\"", &args));
    let text = done["summary"]["text"].as_str().unwrap();
    assert_eq!(done["summary"]["by"], "command");
    let expected = "Turns 2 to 3 of a conversation with a coding agent:\n\n[turn 2, user]\nmake it two\n\n\
                    [turn 2, tool] Edit a.txt\n\n[turn 2, assistant]\ndone\n\n[turn 3, user]\nwhat is in it?\n\n\
                    [turn 3, assistant]\nwell\n\nInstructions for the summary: be brief\nhook off in 0";
    assert_eq!(text, expected);
    let branch = Claude::resumed(&scene.world, done["conversation"]["agent_id"].as_str().unwrap());
    assert_eq!(branch.prompts(), ["make a.txt"]);
    assert!(std::fs::read_to_string(branch.path()).unwrap().contains("hook off in 0"));
}

#[test]
fn while_a_command_thinks_the_workspace_is_free() {
    let scene = scene();
    let piton = PITON;
    let line = format!("{piton} --workspace {} checkpoint meanwhile && echo so", scene.world.ws().display());
    let done = document(&with(&scene, &line, &["summarize", "t2", "--from", "--yes", "--json"]));
    assert!(done["summary"]["text"].as_str().unwrap().ends_with("so"), "{done}");
    scene.ok(&["show", "meanwhile"]);
}

#[test]
fn controls_in_an_answer_are_taken_out() {
    let scene = scene();
    let line = r"printf '\033[31mred\033[0m \033]0;title\007\r\nand \302\2332Jblue\b\n'";
    let done = document(&with(&scene, line, &["summarize", "t2", "--from", "--yes", "--json"]));
    assert_eq!(done["summary"]["text"], "red \nand blue");
    let shown = with(&scene, line, &["summarize", "t2", "--from", "--preview", "--color", "always"]);
    assert!(String::from_utf8_lossy(&shown.stdout).ends_with("\n  red \n  and blue\n"), "{shown:?}");
}

#[test]
fn a_command_that_fails_hangs_or_says_nothing_or_too_much_leaves_everything_as_it_was() {
    let scene = scene();
    let args = ["summarize", "t2", "--from", "--yes"];
    let said = refused(
        &scene,
        &with(&scene, r"printf 'no \033[2Jkey\n' >&2; exit 3", &args),
        "(exit status: 3): no \\x1b[2Jkey",
    );
    assert!(said.contains("hint: nothing was made; `summary.command` in your settings is what was run"), "{said}");
    refused(&scene, &with(&scene, "no-such-program-anywhere", &args), "failed (exit status: 127)");
    refused(&scene, &with(&scene, "cat > /dev/null", &args), "the summary command wrote nothing");
    refused(&scene, &with(&scene, r"printf '\033[0m\007 \n'", &args), "the summary is empty");
    refused(&scene, &with(&scene, "head -c 500000 /dev/zero | tr '\\0' x", &args), "far more than a summary");
    refused(&scene, &with(&scene, "yes", &args), "far more than a summary");
    // What it started ends with it.
    let mark = scene.world.base().join("still-here");
    let line = format!("(sleep 3; touch {}) & sleep 60", mark.display());
    let begun = Instant::now();
    let late = with(&scene, &line, &[&args[..], &["--time-limit", "1s"]].concat());
    refused(&scene, &late, "took longer than 1 s and was ended");
    assert!(begun.elapsed() < Duration::from_secs(20));
    std::thread::sleep(Duration::from_secs(4).saturating_sub(begun.elapsed()));
    assert!(!mark.exists());
    // A mistake in the settings is not passed over.
    let odd = scene.piton(&args).env("PITON_SUMMARY_URL", "nowhere").output().unwrap();
    refused(&scene, &odd, "`summary.url` takes an address");
    document(&with(&scene, "exit 1", &[&args[..], &["--digest", "--json"]].concat()));
}

#[test]
fn what_ends_piton_ends_the_command_too() {
    let scene = scene();
    let mark = scene.world.base().join("begun");
    let line = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 60", mark.display());
    let mut command = scene.piton(&["summarize", "t2", "--from", "--yes"]);
    let child =
        command.env("PITON_SUMMARY_COMMAND", &line).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !mark.exists() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    let piton = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(piton, rustix::process::Signal::INT).unwrap();
    refused(&scene, &child.wait_with_output().unwrap(), "the summary command was stopped");
    let shell: i32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    let shell = rustix::process::Pid::from_raw(shell).unwrap();
    assert!(rustix::process::test_kill_process(shell).is_err(), "the command still runs");
}

#[test]
fn a_workspaces_own_file_does_not_say_which_program_runs() {
    let scene = scene();
    let mark = scene.world.base().join("ran");
    let text = format!("[summary]\ncommand = \"touch {}\"\n", mark.display());
    scene.world.write(".piton/config.toml", text);
    let output = scene.run(&["summarize", "t2", "--from", "--yes"]);
    refused(&scene, &output, "`summary.command` counts in your own file only");
    let output = scene.run(&["summarize", "t2", "--from", "--yes", "--digest"]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert!(!mark.exists());
    // The user's own does.
    scene.world.remove(".piton");
    std::fs::create_dir_all(scene.world.base().join(".config/piton")).unwrap();
    let own = "[summary]\ncommand = \"echo mine\"\n";
    std::fs::write(scene.world.base().join(".config/piton/config.toml"), own).unwrap();
    let done = scene.json(&["summarize", "t2", "--from", "--preview"]);
    assert_eq!((&done["summary"]["text"], done.get("operation")), (&"mine".into(), None));
    assert_eq!(scene.ok(&["config", "summary.command"]), "echo mine\n");
}

#[test]
fn nobody_works_where_nobody_can_be_asked_and_a_no_makes_nothing() {
    let scene = scene();
    let mark = scene.world.base().join("ran");
    let line = format!("touch {}; echo so", mark.display());
    let output = with(&scene, &line, &["summarize", "t2", "--from"]);
    assert!(both(&output).contains("there is no terminal to ask at"), "{}", both(&output));
    assert!(!mark.exists());
    let (screen, code) = scene.at_a_terminal(&["summarize", "t2", "--from"], "n\n");
    assert!(
        screen.contains("A summary of turns 2 to 3") && screen.contains("Make a branch with this summary?"),
        "{screen}"
    );
    assert_eq!((code, transcripts(&scene)), (Some(1), 1));
    let said = scene.fails(&["summarize", "t1", "--up-to", "--yes"]);
    assert!(said.contains("there is nothing to summarize: nothing was said before turn 1"), "{said}");
    let said = scene.fails(&["summarize", "t1", "--from", "--yes", "--instructions", "x"]);
    assert!(said.contains("a digest follows no instructions") && said.contains("summary.command"), "{said}");
}

/// Asks a model at an address.
fn ask(scene: &Scene, endpoint: &Endpoint, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = scene.piton(args);
    command.env("PITON_SUMMARY_URL", endpoint.url()).env("PITON_SUMMARY_MODEL", "small");
    command.envs(environment.iter().copied());
    endpoint.network().inside(|| command.output().unwrap())
}

#[test]
fn a_model_at_an_address_is_asked_with_its_key_and_its_answer_is_the_summary() {
    piton_testkit::needs_network!();
    let scene = scene();
    let endpoint = Endpoint::saying("It was \u{1b}[1msummarized\u{1b}[0m.");
    let args = ["summarize", "t2", "--from", "--yes", "--json", "--instructions", "be brief"];
    let done = document(&ask(&scene, &endpoint, &args, &[("OPENAI_API_KEY", "a-key")]));
    assert_eq!((&done["summary"]["by"], &done["summary"]["text"]), (&"endpoint".into(), &"It was summarized.".into()));
    let asked = endpoint.asked();
    let [asked] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((&asked.path[..], asked.header("authorization")), ("/v1/chat/completions", Some("Bearer a-key")));
    assert_eq!(asked.body["model"], "small");
    let messages = asked.body["messages"].as_array().unwrap();
    assert_eq!((&messages[0]["role"], &messages[1]["role"]), (&"system".into(), &"user".into()));
    assert!(messages[0]["content"].as_str().unwrap().ends_with("be brief"));
    assert!(messages[1]["content"].as_str().unwrap().starts_with("[turn 2, user]\nmake it two\n"));
    // Another variable, and none.
    ask(&scene, &endpoint, &args, &[("PITON_SUMMARY_KEY_ENV", "MINE"), ("MINE", "own"), ("OPENAI_API_KEY", "a-key")]);
    ask(&scene, &endpoint, &args, &[]);
    let asked = endpoint.asked();
    assert_eq!(asked[1].header("authorization"), Some("Bearer own"));
    assert_eq!(asked[2].header("authorization"), None);
}

#[test]
fn an_address_that_refuses_or_says_something_else_is_told_and_nothing_is_made() {
    piton_testkit::needs_network!();
    let scene = scene();
    let args = ["summarize", "t2", "--from", "--yes"];
    let refusing = Endpoint::start(401, r#"{"error":{"message":"no \u001b[2J such key"}}"#);
    let said = refused(&scene, &ask(&scene, &refusing, &args, &[]), "answered 401: no \\x1b[2J such key");
    assert!(said.contains("the key is taken from the variable OPENAI_API_KEY"), "{said}");
    let odd = Endpoint::start(200, "<html>");
    refused(&scene, &ask(&scene, &odd, &args, &[]), "answered something else than a message: <html>");
    let empty = Endpoint::saying(" \n");
    refused(&scene, &ask(&scene, &empty, &args, &[]), "the summary is empty");
    let moved = Endpoint::start(302, "");
    refused(&scene, &ask(&scene, &moved, &args, &[]), "http://127.0.0.1");
    let unnamed = scene.piton(&args).env("PITON_SUMMARY_URL", empty.url()).output().unwrap();
    refused(&scene, &unnamed, "`summary.model` is not");
    let network = piton_testkit::Network::closed();
    let mut command = scene.piton(&args);
    command.env("PITON_SUMMARY_URL", "http://127.0.0.1:9/v1").env("PITON_SUMMARY_MODEL", "m");
    refused(&scene, &network.inside(|| command.output().unwrap()), "http://127.0.0.1:9/v1 cannot be asked: ");
}

/// What the agent said to the model in the user's name, and what the model had said, in order.
fn said(request: &Request) -> String {
    let mut all = String::new();
    for message in request.messages() {
        let role = message["role"].as_str().unwrap_or_default();
        // What the agent tells of its surroundings.
        if role == "system" {
            continue;
        }
        let texts: Vec<&str> = match &message["content"] {
            Value::String(text) => vec![text],
            Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            _ => Vec::new(),
        };
        for text in texts.into_iter().filter(|text| !text.starts_with("<system-reminder>")) {
            all += &format!("{role}: {text}\n");
        }
    }
    all
}

#[test]
fn the_real_claude_code_goes_on_with_a_summary_in_the_place_of_turns() {
    piton_testkit::needs_network!();
    let Some(mut claude) = ClaudeCode::find_or_say_so() else { return };
    let scene = Scene::new(PITON);
    let (home, work) = (scene.world.base(), scene.world.ws());
    claude.environment.push(("PITON_HOME".into(), home.join("home").into()));
    let run = |args: &[&str]| {
        let mut command: Command = scene.piton(args);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let done = command.env("PITON_SUMMARY_COMMAND", "cat > /dev/null; echo the-summary").output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{args:?}: {}", both(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    run(&["setup", "claude-code", "--user"]);
    let prompts = ["ask one", "ask two", "ask three", "go on"];
    let model = Model::start(prompts.map(|prompt| Turn::new(prompt, [Say::text(format!("answer to {prompt}"))])));
    let first = claude.run(home, &work, &model, "ask one", &[]);
    for prompt in ["ask two", "ask three"] {
        claude.run(home, &work, &model, prompt, &["--resume", first.session()]);
    }
    let go_on = |args: &[&str]| {
        let target = format!("{}:{}", first.session(), args[0]);
        let done: Value = serde_json::from_str(&run(&["summarize", &target, args[1], "--yes", "--json"])).unwrap();
        let branch = done["conversation"]["agent_id"].as_str().unwrap().to_owned();
        let went_on = claude.run(home, &work, &model, "go on", &["--resume", &branch]);
        assert_eq!(went_on.answer(), "answer to go on");
        let log: Value = serde_json::from_str(&run(&["sessions", "--json"])).unwrap();
        let sessions = log["sessions"].as_array().unwrap().clone();
        let session = sessions.into_iter().find(|session| session["agent_id"] == branch.as_str()).unwrap();
        (said(model.conversations().last().unwrap()), session["turns"].as_u64().unwrap())
    };
    let (heard, turns) = go_on(&["t3", "--up-to"]);
    assert!(heard.starts_with("user: ") && heard.contains("the-summary"), "{heard}");
    let rest = heard.split_once("the-summary").unwrap().1;
    assert!(rest.contains("ask three\nassistant: answer to ask three\nuser: go on\n"), "{heard}");
    assert!(!heard.contains("ask one") && !heard.contains("ask two"), "{heard}");
    assert_eq!(turns, 4);
    let (heard, turns) = go_on(&["t2", "--from"]);
    let (before, rest) = heard.split_once("the-summary").unwrap();
    assert!(before.contains("user: ask one\nassistant: answer to ask one\nuser: "), "{heard}");
    assert!(rest.ends_with("user: go on\n") && !heard.contains("ask two") && !heard.contains("ask three"), "{heard}");
    assert_eq!(turns, 2);
    // The whole of it.
    for args in [["t1", "--from"], ["t3.end", "--up-to"]] {
        let (heard, _) = go_on(&args);
        assert!(heard.contains("the-summary") && heard.ends_with("go on\n"), "{args:?}: {heard}");
        assert!(!heard.contains("ask"), "{args:?}: {heard}");
    }
}
