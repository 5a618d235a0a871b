//! `piton rewind --scope`: what is shown before and after a conversation goes back, and what scripts get.

use piton_testkit::{Claude, Scene, make_program};

use crate::PITON;

/// Three turns of a session that has ended: each writes a file.
fn three_turns_of_three_files(scene: &Scene) -> Claude<'_> {
    scene.world.write("README.md", "hello\n");
    let claude = Claude::new(&scene.world, 1);
    for (prompt, file) in
        [("set it up", "a.txt"), ("add a login\nwith \u{1b}[31ma form", "b.txt"), ("test it", "c.txt")]
    {
        claude.edits(prompt, &[file], |world| {
            world.write(file, file);
        });
    }
    claude
}

#[test]
fn the_plan_says_where_the_conversation_goes_and_changes_nothing() {
    let scene = Scene::new(PITON);
    let claude = three_turns_of_three_files(&scene);
    let before = scene.world.snapshot();
    let shown = scene.ok(&["rewind", "t2", "--preview"]);
    assert!(shown.contains("Conversation: a new branch that ends before turn 2; 2 turns stay readable"), "{shown}");
    assert!(shown.contains("│ add a login\n") && shown.contains("[31ma form\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "a control character: {shown}");
    let shown = scene.ok(&["rewind", "t2", "--scope", "conversation", "--preview"]);
    assert!(shown.contains("newer than that conversation") && shown.contains("+ c.txt"), "{shown}");
    assert!(!shown.contains("to delete"), "{shown}");
    let shown = scene.ok(&["rewind", "t2", "--scope", "code", "--preview"]);
    assert!(!shown.to_lowercase().contains("conversation"), "{shown}");
    let plan = scene.json(&["rewind", "t2", "--preview"]);
    assert_eq!((&plan["conversation"]["turn"], &plan["conversation"]["leaves"]), (&2.into(), &2.into()));
    scene.world.assert_is(&before);
    assert_eq!(std::fs::read_dir(claude.folder()).unwrap().count(), 1);
}

#[test]
fn both_go_back_and_it_is_said_how_to_go_on() {
    let scene = Scene::new(PITON);
    let claude = three_turns_of_three_files(&scene);
    let told = scene.told(&["rewind", "t3", "--yes"]);
    assert!(told.contains("1 deleted; verified"), "{told}");
    let resume = told.lines().find_map(|line| line.trim().strip_prefix("claude --resume ")).unwrap();
    assert_eq!(Claude::resumed(&scene.world, resume).prompts().len(), 2);
    assert!(told.contains("the prompt of turn 3, to edit and send again:\n  │ test it\n"), "{told}");
    let listed = scene.ok(&["sessions"]);
    assert!(listed.contains("set it up (branch)"), "{listed}");
    let told = scene.told(&["redo", "--yes"]);
    assert!(told.contains(&format!("claude --resume {}", claude.id)), "{told}");
    // From elsewhere the agent would not find it.
    let mut command = scene.piton(&["rewind", "t3", "--yes", "--workspace"]);
    let done = command.arg(scene.world.ws()).current_dir("/").output().unwrap();
    let told = piton_testkit::both(&done);
    assert!(told.contains(&format!("cd {} && claude --resume ", scene.world.ws().display())), "{told}");
}

#[test]
fn scripts_get_one_document_with_all_of_it() {
    let scene = Scene::new(PITON);
    let claude = three_turns_of_three_files(&scene);
    let done = scene.json(&["rewind", "t2", "--scope", "both", "--yes"]);
    let conversation = &done["conversation"];
    let id = conversation["agent_id"].as_str().unwrap();
    assert_eq!(conversation["resume"], serde_json::json!(["claude", "--resume", id]));
    assert_eq!(conversation["prompt"], "add a login\nwith \u{1b}[31ma form");
    assert_eq!(conversation["parent"], claude.session().as_str());
    assert_eq!(done["operation"]["kind"], "rewind");
    assert_eq!(done["deleted"].as_array().unwrap().len(), 2);
    let sessions = scene.json(&["sessions"]);
    let branch = &sessions["sessions"][0];
    assert_eq!((&branch["current"], &branch["origin"]["turn"]), (&true.into(), &2.into()));
    assert_eq!(branch["origin"]["parent"], claude.session().as_str());
}

#[test]
fn the_question_names_the_conversation_and_a_no_changes_nothing() {
    let scene = Scene::new(PITON);
    let claude = three_turns_of_three_files(&scene);
    let before = scene.world.snapshot();
    let (screen, code) = scene.at_a_terminal(&["rewind", "t3"], "n\n");
    assert!(screen.contains("Rewind 1 file (c.txt) and the conversation?"), "{screen}");
    assert_eq!(code, Some(1));
    let (screen, _) = scene.at_a_terminal(&["rewind", "t3", "--scope", "conversation"], "n\n");
    assert!(screen.contains("Rewind the conversation?"), "{screen}");
    scene.world.assert_is(&before);
    assert_eq!(std::fs::read_dir(claude.folder()).unwrap().count(), 1);
}

#[test]
fn typed_to_claude_code_a_turn_takes_the_conversation_along_and_says_first_how_to_go_on() {
    let scene = Scene::new(PITON);
    let claude = three_turns_of_three_files(&scene);
    let ask = |typed: &str| {
        let more = serde_json::json!({ "prompt": typed, "prompt_id": "q" });
        let reply = scene.claude_event(&claude.id, "UserPromptSubmit", more);
        reply["reason"].as_str().unwrap_or_default().to_owned()
    };
    let alone = ask("/piton rewind t3 --scope code");
    assert!(alone.starts_with("rewound to before turn 3") && !alone.contains("/resume"), "{alone}");
    ask("/piton redo");
    let done = ask("/piton rewind t3");
    let first = done.lines().next().unwrap_or_default();
    assert!(first.starts_with("type `/resume ") && first.contains("this screen switches"), "{done}");
    assert!(done.contains("rewound to before turn 3") && !scene.world.has("c.txt"), "{done}");
    assert_eq!(scene.json(&["sessions"])["sessions"][0]["origin"]["turn"], 3);
    ask("/piton redo");
    // A name or an age means the files alone.
    scene.ok(&["checkpoint", "here"]);
    scene.world.remove("c.txt");
    let named = ask("/piton rewind here");
    assert!(!named.contains("/resume"), "{named}");
}

#[test]
fn what_cannot_go_back_is_refused_with_a_way_out() {
    let scene = Scene::new(PITON);
    let claude = three_turns_of_three_files(&scene);
    let told = scene.fails(&["rewind", "t2.1", "--scope", "both", "--yes"]);
    assert!(told.contains("goes back by whole turns") && told.contains("--scope code"), "{told}");
    for scope in ["both", "conversation"] {
        let told = scene.fails(&["rewind", "t2", "--scope", scope, "--path", "a.txt", "--yes"]);
        assert!(told.contains("only files go back") && told.contains("--scope code"), "{told}");
    }
    let told = scene.fails(&["rewind", "t2", "--scope", "conversation", "--keep-mine", "--yes"]);
    assert!(told.contains("`--keep-mine` is about files"), "{told}");
    let told = scene.fails(&["rewind", "t9", "--scope", "conversation", "--yes"]);
    assert!(told.contains("does not have turn 9"), "{told}");
    std::fs::remove_file(claude.path()).unwrap();
    let told = scene.fails(&["rewind", "t2", "--scope", "both", "--yes"]);
    assert!(told.contains("its transcript is gone") && told.contains("--scope code"), "{told}");
    let told = scene.told(&["rewind", "t2", "--yes"]);
    assert!(told.contains("the conversation stays as it is: its transcript is gone"), "{told}");
    assert_eq!(scene.run(&["rewind", "t2", "--scope", "words"]).status.code(), Some(1));
}

#[test]
fn the_agent_is_started_in_its_folder_on_request() {
    let scene = Scene::new(PITON);
    three_turns_of_three_files(&scene);
    let bin = scene.at("bin");
    std::fs::create_dir(&bin).unwrap();
    make_program(&bin.join("claude"), "#!/bin/sh\necho \"started $* in $PWD\"\nexit 7\n");
    let mut command = scene.piton(&["rewind", "t3", "--yes", "--resume"]);
    let done = command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output().unwrap();
    let told = piton_testkit::both(&done);
    assert!(told.contains("started --resume "), "{told}");
    assert!(told.contains(&format!(" in {}", scene.world.ws().display())), "{told}");
    assert_eq!(done.status.code(), Some(7), "the agent's own");
    // Without an agent there is nothing to start, and the rewind is done all the same.
    scene.ok(&["redo", "--yes"]);
    let done = scene.piton(&["rewind", "t3", "--yes", "--resume"]).env("PATH", "/nowhere").output().unwrap();
    let told = piton_testkit::both(&done);
    assert!(told.contains("cannot start claude") && told.contains("claude --resume "), "{told}");
    assert!(!scene.world.path("c.txt").exists());
}
