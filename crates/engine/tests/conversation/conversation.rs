//! Going back in a conversation: a branch that the agent goes on with, the files with it, and the way forth again.

use piton_engine::model::{OperationVerb, Scope, SessionId};
use piton_engine::view::{ConversationOutcome, OperationOutcome};
use piton_engine::{Carry, NoConversation, OperationError, RedoOptions, RewindOptions};
use piton_testkit::{Claude, World, three_turns};

fn scoped(scope: Scope) -> RewindOptions {
    RewindOptions { scope: Some(scope), ..RewindOptions::default() }
}

fn rewind(world: &World, target: &str, scope: Scope) -> (OperationOutcome, ConversationOutcome) {
    let outcome = world.open().rewind_now(target, &scoped(scope)).unwrap();
    let conversation = outcome.conversation.clone().expect("the conversation went");
    (outcome, conversation)
}

fn text(world: &World, path: &str) -> String {
    std::fs::read_to_string(world.path(path)).unwrap_or_default()
}

#[test]
fn files_and_conversation_go_back_as_one_and_the_original_stays_as_it_is() {
    let world = World::new();
    let claude = three_turns(&world);
    let original = std::fs::read(claude.path()).unwrap();
    let before = world.snapshot();
    let (outcome, conversation) = rewind(&world, "t3", Scope::Both);
    assert_eq!(text(&world, "a.txt"), "line\nline\n");
    assert!(outcome.verified);
    assert_eq!(conversation.prompt.as_deref(), Some("third"));
    assert_eq!(conversation.turn, 3);
    let branch = Claude::resumed(&world, conversation.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["first", "second"]);
    assert!(branch.lines().iter().all(|line| line["sessionId"] == branch.id.as_str()));
    assert_eq!(conversation.resume.as_deref().unwrap(), ["claude", "--resume", branch.id.as_str()]);
    assert_eq!(conversation.cwd.as_deref(), world.ws().to_str());
    assert_eq!(std::fs::read(claude.path()).unwrap(), original);
    // Its own turns go on with the parent's numbers, and the parent's are its own.
    branch.edits("third, otherwise", &["b.txt"], |world| {
        world.write("b.txt", "b\n");
    });
    let end_of_branch = world.snapshot();
    let workspace = world.open();
    let sessions = workspace.sessions().unwrap().sessions;
    let of_branch = sessions.iter().find(|session| session.id == branch.session()).unwrap();
    assert!(of_branch.current && of_branch.turns == 3, "{of_branch:?}");
    assert_eq!(of_branch.title.as_deref(), Some("first (branch)"));
    let origin = of_branch.origin.as_ref().unwrap();
    assert_eq!((&origin.parent, origin.turn), (&claude.session(), 3));
    assert_eq!(workspace.resolve("t2").unwrap().checkpoint.place.unwrap().session, claude.session());
    assert_eq!(workspace.resolve("t3").unwrap().checkpoint.place.unwrap().session, branch.session());
    drop(workspace);
    let changes = world.open().changes(&Default::default()).unwrap();
    assert_eq!(changes.changes.len(), 3, "two of the parent's, one of its own");
    // Back to the original line, and forth once more.
    let redone = world.open().redo_now(&RedoOptions::default()).unwrap();
    assert_eq!(redone.conversation.as_ref().unwrap().session, Some(claude.session()));
    assert_eq!(text(&world, "a.txt"), "line\nline\nline\n");
    world.assert_is(&before);
    assert_eq!(redone.operation.as_ref().unwrap().kind, OperationVerb::Redo);
    assert!(branch.path().exists(), "a branch that was left stays");
    // And back to the branch once more.
    let redo = redone.operation.unwrap().id.to_string();
    let again = world.open().redo_now(&RedoOptions { operation: Some(redo), ..RedoOptions::default() }).unwrap();
    assert_eq!(again.conversation.unwrap().session, Some(branch.session()));
    world.assert_is(&end_of_branch);
    world.redo();
    world.assert_is(&before);
    let session = world.open().sessions().unwrap().sessions.into_iter().find(|session| session.current).unwrap();
    assert_eq!(session.id, claude.session());
    world.assert_sound();
}

#[test]
fn rewinding_goes_on_to_any_depth() {
    let world = World::new();
    let claude = three_turns(&world);
    let (_, first) = rewind(&world, "t3", Scope::Both);
    let branch = Claude::resumed(&world, first.agent_id.as_deref().unwrap());
    branch.edits("three", &["a.txt"], |world| {
        world.write("a.txt", "line\nline\nthree\n");
    });
    branch.talks("four");
    let (_, second) = rewind(&world, "t4", Scope::Both);
    assert_eq!(second.prompt.as_deref(), Some("four"));
    let twig = Claude::resumed(&world, second.agent_id.as_deref().unwrap());
    assert_eq!(twig.prompts(), ["first", "second", "three"]);
    // A turn of the grandparent, from the twig.
    let (_, third) = rewind(&world, "t2", Scope::Both);
    assert_eq!((text(&world, "a.txt").as_str(), third.prompt.as_deref()), ("line\n", Some("second")));
    let parent = world.open().sessions().unwrap().sessions.into_iter().find(|s| Some(&s.id) == third.session.as_ref());
    assert_eq!(parent.unwrap().origin.unwrap().parent, twig.session());
    for (expected, current) in
        [("line\nline\nthree\n", &twig), ("line\nline\nthree\n", &branch), ("line\nline\nline\n", &claude)]
    {
        let redone = world.open().redo_now(&RedoOptions::default()).unwrap();
        assert_eq!(redone.conversation.unwrap().session, Some(current.session()));
        assert_eq!(text(&world, "a.txt"), expected);
    }
    world.assert_sound();
}

#[test]
fn only_the_conversation_goes_and_the_plan_names_the_newer_files() {
    let world = World::new();
    three_turns(&world);
    let before = world.snapshot();
    let workspace = world.open();
    let plan = workspace.plan_rewind("t2", &scoped(Scope::Conversation)).unwrap();
    let view = plan.view().conversation.clone().unwrap();
    assert_eq!((view.turn, view.leaves, view.prompt.as_deref()), (2, 2, Some("second")));
    assert_eq!(view.newer.iter().map(|file| &file.path.path[..]).collect::<Vec<_>>(), ["a.txt"]);
    drop((plan, workspace));
    let (_, conversation) = rewind(&world, "t2", Scope::Conversation);
    world.assert_is(&before);
    let branch = Claude::resumed(&world, conversation.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["first"]);
    world.redo();
    world.assert_is(&before);
}

#[test]
fn before_the_first_turn_the_conversation_begins_anew() {
    let world = World::new();
    let claude = three_turns(&world);
    let (_, conversation) = rewind(&world, "t1", Scope::Both);
    assert_eq!((&conversation.session, &conversation.resume), (&None, &None));
    assert_eq!(conversation.prompt.as_deref(), Some("first"));
    assert_eq!(std::fs::read_dir(claude.folder()).unwrap().count(), 1, "no file was made");
    let redone = world.open().redo_now(&RedoOptions::default()).unwrap();
    assert_eq!(redone.conversation.unwrap().session, Some(claude.session()));
}

#[test]
fn the_end_of_a_turn_keeps_that_turn_and_the_middle_of_one_is_refused_with_its_reason() {
    let world = World::new();
    three_turns(&world);
    let (_, conversation) = rewind(&world, "t2.end", Scope::Both);
    let branch = Claude::resumed(&world, conversation.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["first", "second"]);
    world.redo();
    let error = world.open().rewind_now("t2.1", &scoped(Scope::Both)).unwrap_err();
    assert!(matches!(error, OperationError::Conversation(NoConversation::Within { turn: 2 })), "{error}");
    // Without a scope the files go, and the reason is said.
    let outcome = world.open().rewind_now("t2.1", &RewindOptions::default()).unwrap();
    assert!(outcome.conversation.is_none());
    assert!(outcome.conversation_stays.unwrap().contains("whole turns"));
}

#[test]
fn without_a_scope_both_go_where_the_agent_can_and_files_alone_where_not() {
    let world = World::new();
    let claude = three_turns(&world);
    let outcome = world.open().rewind_now("t3", &RewindOptions::default()).unwrap();
    assert!(outcome.conversation.is_some());
    world.redo();
    std::fs::remove_file(claude.path()).unwrap();
    let outcome = world.open().rewind_now("t3", &RewindOptions::default()).unwrap();
    assert!(outcome.conversation.is_none());
    assert_eq!(outcome.conversation_stays.as_deref(), Some("its transcript is gone"));
    let error = world.open().rewind_now("t2", &scoped(Scope::Both)).unwrap_err();
    assert!(matches!(error, OperationError::Conversation(NoConversation::Gone)), "{error}");
}

#[test]
fn a_transcript_elsewhere_is_not_read_and_no_branch_is_written_there() {
    let world = World::with(|environment| environment.transcripts.clear());
    three_turns(&world);
    let error = world.open().rewind_now("t2", &scoped(Scope::Both)).unwrap_err();
    assert!(matches!(error, OperationError::Conversation(NoConversation::Elsewhere)), "{error}");
    let world = World::new();
    let claude = three_turns(&world);
    // A link in the place of the transcript leads elsewhere.
    std::fs::rename(claude.path(), world.base().join("moved")).unwrap();
    std::os::unix::fs::symlink(world.base().join("moved"), claude.path()).unwrap();
    let error = world.open().rewind_now("t2", &scoped(Scope::Both)).unwrap_err();
    assert!(matches!(error, OperationError::Conversation(NoConversation::Unreadable(_))), "{error}");
}

#[test]
fn a_last_line_that_is_being_written_is_left_out_and_said() {
    use std::io::Write;
    let world = World::new();
    let claude = three_turns(&world);
    let mut file = std::fs::File::options().append(true).open(claude.path()).unwrap();
    file.write_all(b"{\"type\":\"assistant\",\"uuid\":\"half").unwrap();
    let plan = world.open().plan_rewind("t3.end", &scoped(Scope::Both)).unwrap().view().clone();
    assert!(plan.conversation.unwrap().cut_off);
    let (_, conversation) = rewind(&world, "t3.end", Scope::Both);
    let branch = Claude::resumed(&world, conversation.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["first", "second", "third"]);
}

#[test]
fn a_transcript_that_was_written_anew_after_the_plan_is_noticed() {
    let world = World::new();
    let claude = three_turns(&world);
    let mut workspace = world.open();
    let plan = workspace.plan_rewind("t3", &scoped(Scope::Both)).unwrap();
    let before = world.snapshot();
    let changed = std::fs::read_to_string(claude.path()).unwrap().replace("first", "FIRST");
    std::fs::write(claude.path(), changed).unwrap();
    let error = workspace.carry_out(plan).unwrap_err();
    assert!(matches!(error, OperationError::StaleTranscript), "{error}");
    world.assert_is(&before);
    // What grew since is another matter.
    let plan = workspace.plan_rewind("t3", &scoped(Scope::Both)).unwrap();
    claude.write("system", serde_json::json!({"subtype": "informational"}));
    workspace.carry_out(plan).unwrap();
}

#[test]
fn an_agent_without_a_transcript_that_reports_what_is_said_has_branches_too() {
    use piton_engine::model::event::Event;
    let world = World::new();
    let agent = piton_testkit::Agent::new(&world, "s");
    let error = |world: &World| world.open().rewind_now("t2", &scoped(Scope::Both)).unwrap_err();
    agent.edits("one", &["a"], |w| {
        w.write("a", "1\n");
    });
    agent.edits("two", &["a"], |w| {
        w.write("a", "2\n");
    });
    assert!(matches!(error(&world), OperationError::Conversation(NoConversation::Agent(_))), "{}", error(&world));
    drop(agent);
    let say = |session: &str, event: Event| {
        let report = piton_engine::model::event::Report {
            agent: "generic".into(),
            session: session.into(),
            cwd: Some(world.ws()),
            transcript: None,
            prompt_id: None,
            subagent: None,
            event,
        };
        world.engine.observe(&report, &Default::default()).unwrap().0
    };
    for prompt in ["one", "two", "three"] {
        say("g", Event::Prompt { text: prompt.into() });
        say("g", Event::Message { role: "assistant".into(), text: format!("{prompt}, yes") });
        say("g", Event::TurnEnded { failed: false, message: None, background: false });
    }
    let (_, conversation) = rewind(&world, "t3", Scope::Both);
    assert_eq!(conversation.prompt.as_deref(), Some("three"));
    let branch = conversation.agent_id.unwrap();
    let next = say(&branch, Event::Prompt { text: "three, otherwise".into() });
    assert_eq!((next.turn, next.session), (3, SessionId::of("generic", &branch)));
}

#[test]
fn the_other_workspaces_of_the_conversation_know_its_branch() {
    let world = World::new();
    let other = world.base().join("other");
    std::fs::create_dir(&other).unwrap();
    drop(world.engine.open_or_init(&other).unwrap());
    let claude = Claude::new(&world, 1);
    claude.edits("here and there", &["../other/x", "a"], |world| {
        std::fs::write(world.base().join("other/x"), "x\n").unwrap();
        world.write("a", "a\n");
    });
    claude.edits("once more", &["a"], |world| {
        world.write("a", "aa\n");
    });
    let (_, conversation) = rewind(&world, "t2", Scope::Both);
    let branch = Claude::resumed(&world, conversation.agent_id.as_deref().unwrap());
    let there = || world.engine.open(&other).unwrap();
    let known = there().sessions().unwrap().sessions.into_iter().find(|one| one.id == branch.session()).unwrap();
    assert_eq!(known.origin.unwrap().parent, claude.session());
    branch.edits("otherwise", &["a"], |_| std::fs::write(world.base().join("other/x"), "otherwise\n").unwrap());
    let place = |target: &str| there().resolve(target).unwrap().checkpoint.place.unwrap();
    assert_eq!(place("t1").session, claude.session());
    assert_eq!(place("t2").session, branch.session());
}

#[test]
fn in_a_branch_its_own_edits_and_those_it_inherited_are_this_conversations() {
    let world = World::new();
    let claude = three_turns(&world);
    let (_, conversation) = rewind(&world, "t3", Scope::Both);
    let branch = Claude::resumed(&world, conversation.agent_id.as_deref().unwrap());
    branch.edits("third, otherwise", &["b.txt"], |world| {
        world.write("b.txt", "b\n");
    });
    world.write("mine.txt", "mine\n");
    for target in ["t2", "t2.1"] {
        let plan = world.open().plan_rewind(target, &RewindOptions::default()).unwrap().view().clone();
        let others: Vec<_> = plan.others.iter().map(|file| &file.path.path[..]).collect();
        assert_eq!(others, ["mine.txt"], "{target}");
    }
    // From the parent's line the branch is another one.
    let target = format!("{}:t2", claude.id);
    let options = RewindOptions { carry: Carry::Others, scope: Some(Scope::Code), ..RewindOptions::default() };
    world.open().rewind_now(&target, &options).unwrap();
    assert_eq!(text(&world, "b.txt"), "b\n");
    assert_eq!(text(&world, "a.txt"), "line\n");
}
