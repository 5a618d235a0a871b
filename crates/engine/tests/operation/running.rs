//! An operation under an agent that is at work: refused, unless the turn was interrupted.

use piton_engine::model::event::{Event, ToolCall};
use piton_engine::model::ownership::Owner;
use piton_engine::model::{Ending, Scope, WorkspacePath};
use piton_engine::view::{Activity, Interrupted, RunningView};
use piton_engine::{Choice, OperationError, RedoOptions, RewindOptions, UndoOptions, Which, Whose};
use piton_testkit::{Agent, Claude, World};
use serde_json::json;

fn text(world: &World, path: &str) -> String {
    std::fs::read_to_string(world.path(path)).unwrap_or_default()
}

/// What stands in the way of an operation that was refused.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, OperationError>) -> RunningView {
    match result.unwrap_err() {
        OperationError::Running(mut running) => running.remove(0),
        other => panic!("{other}"),
    }
}

fn interrupted() -> UndoOptions {
    UndoOptions { interrupted: true, ..UndoOptions::default() }
}

/// A turn that wrote `a`, and the next one that has begun.
fn in_a_second_turn<'w>(world: &'w World) -> Agent<'w> {
    let agent = Agent::new(world, "s");
    agent.edits("one", &["a"], |w| {
        w.write("a", "1\n");
    });
    agent.prompt("two");
    agent
}

#[test]
fn while_a_tool_runs_every_verb_that_writes_files_is_refused_and_says_what_runs() {
    let world = World::new();
    let agent = Agent::new(&world, "s");
    for content in ["1\n", "2\n"] {
        agent.edits("write", &["a"], |w| {
            w.write("a", content);
        });
    }
    world.open().undo_now(&UndoOptions::default()).unwrap();
    agent.prompt("three");
    agent.before("c", "Bash", &[]);
    let before = world.snapshot();
    let mut workspace = world.open();
    let one = refused(workspace.rewind_now("t1", &RewindOptions::default()));
    assert_eq!((one.what, one.turn, one.step, one.about.as_deref()), (Activity::Tool, 3, Some(1), Some("Bash")));
    assert!(one.own && one.blocks && one.session == agent.id(), "{one:?}");
    refused(workspace.undo_now(&UndoOptions::default()));
    refused(workspace.redo_now(&RedoOptions::default()));
    let error = workspace.undo_now(&UndoOptions::default()).unwrap_err().to_string();
    let short = agent.id().short().to_owned();
    assert_eq!(error, format!("the agent runs “Bash” in turn 3 of session {short}; nothing was changed"));
    world.assert_is(&before);
    assert_eq!(agent.turns()[2].ending, None, "nothing was recorded either");
    // When the tool and the turn have ended, it goes.
    agent.after("c");
    assert_eq!(refused(workspace.undo_now(&UndoOptions::default())).what, Activity::Turn);
    agent.end_turn();
    workspace.undo_now(&UndoOptions::default()).unwrap();
    assert!(!world.path("a").exists());
}

#[test]
fn between_tools_the_users_word_ends_the_turn_and_its_tools() {
    let world = World::new();
    let agent = in_a_second_turn(&world);
    agent.step("Bash", &[], |w| {
        w.write("b", "2\n");
    });
    let one = refused(world.open().undo_now(&UndoOptions::default()));
    assert_eq!((one.what, one.about.as_deref()), (Activity::Turn, Some("two")));
    world.open().undo_now(&interrupted()).unwrap();
    assert!(!world.path("b").exists());
    let turn = agent.turns().pop().unwrap();
    assert_eq!(turn.ending, Some(Ending::Interrupted));
    // Nobody has to say it twice.
    world.open().undo_now(&UndoOptions::default()).unwrap();
    assert!(!world.path("a").exists());
}

#[test]
fn what_an_interrupted_tool_left_may_be_the_users_and_what_comes_then_is_for_sure() {
    let world = World::new();
    let agent = in_a_second_turn(&world);
    agent.before("c", "Edit", &["a"]);
    world.write("a", "half\n");
    // Nobody knows when it stopped: the user may have written that since.
    let places = || Choice { what: Some(Which::Places(vec![(2, None)])), ..Choice::default() };
    let outcome = world.open().undo_now(&UndoOptions { choice: places(), ..interrupted() }).unwrap();
    assert_eq!((outcome.unsure.len(), text(&world, "a")), (1, "half\n".into()));
    let choice = Choice { unsure: true, ..places() };
    world.open().undo_now(&UndoOptions { choice, ..UndoOptions::default() }).unwrap();
    assert_eq!(text(&world, "a"), "1\n");
    let turn = agent.turns().pop().unwrap();
    assert_eq!(turn.steps[0].ending, Some(Ending::Interrupted));
    std::thread::sleep(std::time::Duration::from_millis(50));
    world.write("a", "mine\n");
    agent.prompt("three");
    let mine = agent.turns().pop().unwrap().yours;
    assert_eq!(mine.iter().map(|file| (&file.path.path[..], &file.owner)).collect::<Vec<_>>(), [("a", &Owner::You)]);
}

#[test]
fn a_transcript_that_says_so_interrupts_the_turn() {
    let world = World::new();
    let claude = Claude::new(&world, 1);
    claude.edits("one", &["a"], |w| {
        w.write("a", "1\n");
    });
    claude.prompt("two");
    claude.calls("Bash", &[]);
    refused(world.open().undo_now(&UndoOptions::default()));
    let words = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
    claude.write("user", json!({"message": {"role": "user", "content": words}}));
    let plan = world.open().plan_undo(&UndoOptions::default()).unwrap().view().clone();
    assert_eq!(plan.running[0].interrupted, Some(Interrupted::Transcript), "{:?}", plan.running);
    assert!(!plan.running[0].blocks);
    world.open().undo_now(&UndoOptions::default()).unwrap();
    assert!(!world.path("a").exists());
    // The next turn is another one, whatever stands before it.
    claude.edits("three", &["a"], |w| {
        w.write("a", "3\n");
    });
    claude.prompt("four");
    refused(world.open().undo_now(&UndoOptions::default()));
}

#[test]
fn what_an_interrupted_command_wrote_until_then_is_its_own_and_what_came_later_stays() {
    let world = World::new();
    let claude = Claude::new(&world, 1);
    claude.prompt("build it");
    claude.calls("Bash", &[]);
    let pause = || std::thread::sleep(std::time::Duration::from_millis(100));
    world.write("built", "1\n");
    pause();
    // Esc: no hook tells of it, and the transcript has a line with its time.
    let words = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let at = piton_engine::model::Timestamp(now as i64).to_string();
    claude.write("user", json!({"timestamp": at, "message": {"role": "user", "content": words}}));
    pause();
    world.write("later", "the user's\n");
    let outcome = world.open().undo_now(&UndoOptions::default()).unwrap();
    assert!(!world.has("built") && world.has("later"), "{outcome:?}");
    assert_eq!(outcome.unsure.iter().map(|file| &file.path.path[..]).collect::<Vec<_>>(), ["later"]);
    // The same where the next prompt is what tells of it.
    claude.prompt("again");
    claude.calls("Bash", &[]);
    world.write("built", "2\n");
    pause();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let at = piton_engine::model::Timestamp(now as i64).to_string();
    claude.write("user", json!({"timestamp": at, "message": {"role": "user", "content": words}}));
    claude.prompt("and now");
    claude.answers("well");
    let turns = world.turns(Some(claude.session()));
    assert_eq!(turns[1].files.iter().map(|file| &file.path.path[..]).collect::<Vec<_>>(), ["built"], "{turns:#?}");
}

#[test]
fn of_a_long_transcript_only_the_end_is_read() {
    let world = World::new();
    let claude = Claude::new(&world, 1);
    claude.edits("one", &["a"], |w| {
        w.write("a", "1\n");
    });
    claude.prompt("two");
    let long = "x".repeat(1 << 20);
    for _ in 0..12 {
        claude.write("assistant", json!({"message": {"role": "assistant", "content": long}}));
    }
    refused(world.open().undo_now(&UndoOptions::default()));
    let words = json!([{"type": "text", "text": "[Request interrupted by user]"}]);
    claude.write("user", json!({"message": {"role": "user", "content": words}}));
    world.open().undo_now(&UndoOptions::default()).unwrap();
}

#[test]
fn a_tool_that_begins_after_the_plan_was_shown_refuses_it_whatever_the_user_said() {
    let world = World::new();
    let agent = Agent::new(&world, "s");
    agent.edits("one", &["a"], |w| {
        w.write("a", "1\n");
    });
    let mut workspace = world.open();
    let plan = workspace.plan_undo(&UndoOptions::default()).unwrap();
    assert!(plan.view().running.is_empty());
    agent.prompt("two");
    agent.before("c", "Bash", &[]);
    let before = world.snapshot();
    assert_eq!(refused(workspace.carry_out(plan)).what, Activity::Tool);
    agent.after("c");
    // The user says that turn 2 was interrupted, and then another tool begins.
    let mut plan = workspace.plan_undo(&UndoOptions::default()).unwrap();
    assert!(plan.view().running[0].blocks);
    plan.count_as_interrupted();
    assert_eq!(plan.view().running[0].interrupted, Some(Interrupted::Said));
    agent.before("d", "Bash", &[]);
    assert_eq!(refused(workspace.carry_out(plan)).step, Some(2));
    world.assert_is(&before);
    assert_eq!(agent.turns()[1].ending, None);
    agent.after("d");
    let mut plan = workspace.plan_undo(&UndoOptions::default()).unwrap();
    plan.count_as_interrupted();
    workspace.carry_out(plan).unwrap();
    assert!(!world.path("a").exists());
}

#[test]
fn the_conversation_alone_goes_back_under_a_running_tool_and_the_plan_says_so() {
    let world = World::new();
    let claude = Claude::new(&world, 1);
    claude.edits("one", &["a"], |w| {
        w.write("a", "1\n");
    });
    claude.prompt("two");
    let call = claude.calls("Bash", &[]);
    let options = RewindOptions { scope: Some(Scope::Conversation), ..RewindOptions::default() };
    let plan = world.open().plan_rewind("t2", &options).unwrap().view().clone();
    assert!(plan.running.len() == 1 && !plan.running[0].blocks && plan.running[0].own, "{:?}", plan.running);
    let outcome = world.open().rewind_now("t2", &options).unwrap();
    assert!(outcome.conversation.is_some());
    // Of the session that was left a tool still runs, and files under it stay as they are.
    let error = world.open().rewind_now("t1", &RewindOptions { scope: Some(Scope::Code), ..options.clone() });
    assert_eq!(refused(error).session, claude.session());
    claude.called(call);
}

#[test]
fn another_sessions_tool_is_not_written_under_and_commands_in_the_background_are_remarks() {
    let world = World::new();
    let (one, two) = (Agent::new(&world, "one"), Agent::new(&world, "two"));
    two.prompt("beside");
    two.before("c", "Bash", &[]);
    one.prompt("go");
    let background = ToolCall { command: Some("npm run dev".into()), ..one.call("b", "Bash", &[], true) };
    one.tell(Event::BeforeTool(background));
    one.after("b");
    one.step("Edit", &["a"], |w| {
        w.write("a", "1\n");
    });
    one.tell(Event::TurnEnded { failed: false, message: None, background: true });
    let choice = Choice { session: Some(one.id().to_string()), ..Choice::default() };
    let options = UndoOptions { choice, ..UndoOptions::default() };
    let plan = world.open().plan_undo(&options).unwrap().view().clone();
    let seen: Vec<_> = plan.running.iter().map(|one| (one.what, one.own, one.blocks)).collect();
    assert_eq!(seen, [(Activity::Tool, false, true), (Activity::Background, false, false)]);
    assert_eq!(refused(world.open().undo_now(&options)).session, two.id());
    two.after("c");
    // Between its tools only what is not its own work is in the way of nobody.
    let plan = world.open().plan_undo(&options).unwrap().view().clone();
    let seen: Vec<_> = plan.running.iter().map(|one| (one.what, one.own, one.blocks)).collect();
    assert_eq!(seen, [(Activity::Background, false, false)]);
    world.open().undo_now(&options).unwrap();
    assert!(!world.path("a").exists());
}

#[test]
fn a_prompt_to_the_session_itself_ends_its_turn_unless_it_belongs_to_it() {
    let world = World::new();
    let agent = in_a_second_turn(&world);
    let mut workspace = world.open();
    workspace.prompted(&agent.id(), None).unwrap();
    assert_eq!(agent.turns()[1].ending, Some(Ending::Interrupted));
    workspace.undo_now(&UndoOptions::default()).unwrap();
    let claude = Claude::new(&world, 1);
    claude.prompt("one");
    workspace.prompted(&claude.session(), Some(&format!("{}-p1", claude.id))).unwrap();
    let error = workspace.rewind_now(&format!("{}:t1", claude.session()), &RewindOptions::default());
    assert_eq!(refused(error).session, claude.session());
    workspace.prompted(&claude.session(), Some("another")).unwrap();
    workspace.rewind_now(&format!("{}:t1", claude.session()), &RewindOptions::default()).unwrap();
}

#[test]
fn an_end_that_somebody_else_notes_does_not_make_a_session_the_current_one() {
    let world = World::new();
    let (old, new) = (Agent::new(&world, "old"), Agent::new(&world, "new"));
    old.prompt("one");
    old.step("Edit", &["a"], |w| {
        w.write("a", "1\n");
    });
    new.edits("beside", &["b"], |w| {
        w.write("b", "1\n");
    });
    let choice = Choice { session: Some(old.id().to_string()), ..Choice::default() };
    world.open().undo_now(&UndoOptions { choice, ..interrupted() }).unwrap();
    let current = world.open().sessions().unwrap().sessions.into_iter().find(|session| session.current).unwrap();
    assert_eq!(current.id, new.id());
    world.assert_sound();
}

#[test]
fn a_plan_that_writes_nothing_is_in_nobodys_way() {
    let world = World::new();
    let agent = in_a_second_turn(&world);
    agent.before("c", "Bash", &[]);
    let mut workspace = world.open();
    let plan = workspace.plan_rewind("t2", &RewindOptions::default()).unwrap();
    assert!(plan.view().is_empty() && plan.view().running[0].what == Activity::Tool);
    assert!(workspace.carry_out(plan).unwrap().operation.is_none());
    assert_eq!(agent.turns()[1].ending, None);
}

/// A rewind used to be refused only under the session that had reported last.
#[test]
fn no_verb_writes_under_an_agent_at_work_whoever_reported_last() {
    let world = World::new();
    world.write("a", "0\n");
    let id = world.capture();
    let (idle, busy) = (Agent::new(&world, "idle"), Agent::new(&world, "busy"));
    busy.edits("one", &["a"], |w| {
        w.write("a", "1\n");
    });
    busy.prompt("two");
    busy.before("c", "Bash", &[]);
    idle.edits("beside", &["b"], |w| {
        w.write("b", "1\n");
    });
    world.write("mine", "1\n");
    let before = world.snapshot();
    let rewinds = [
        RewindOptions::default(),
        RewindOptions { scope: Some(Scope::Code), ..RewindOptions::default() },
        RewindOptions { paths: vec![WorkspacePath::new("a").unwrap()], ..RewindOptions::default() },
    ];
    let rewind = |options: &RewindOptions| refused(world.open().rewind_now(&id, options));
    let undo = |choice: Choice| refused(world.open().undo_now(&UndoOptions { choice, ..UndoOptions::default() }));
    for options in &rewinds {
        assert_eq!((rewind(options).session, rewind(options).what), (busy.id(), Activity::Tool));
    }
    let yours = Choice { what: Some(Which::All), whose: Some(Whose::You), ..Choice::default() };
    let of_idle = Choice { session: Some("idle".into()), ..Choice::default() };
    for choice in [yours, of_idle.clone()] {
        assert_eq!(undo(choice).session, busy.id());
    }
    world.assert_is(&before);
    // Between its tools a rewind would still take its files from it; an undo of another session's work would not.
    busy.after("c");
    assert_eq!(rewind(&RewindOptions::default()).what, Activity::Turn);
    world.open().undo_now(&UndoOptions { choice: of_idle, ..UndoOptions::default() }).unwrap();
    busy.end_turn();
    world.open().rewind_now(&id, &RewindOptions::default()).unwrap();
}
