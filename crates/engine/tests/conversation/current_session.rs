//! Which session of a conversation the user is in after rewinds, redos and forks, and what belongs to it.

use std::path::Path;

use piton_engine::model::Scope;
use piton_engine::model::event::{Event, Report, Subagent, ToolCall};
use piton_engine::model::ownership::Owner;
use piton_engine::model::summary::SummarySide;
use piton_engine::view::{LogEntry, OperationOutcome};
use piton_engine::{
    CaptureOptions, ChangesOptions, DeleteOptions, ForkOptions, InitOptions, ObserveOptions, OperationError,
    RedoOptions, RewindOptions, TimelineOptions,
};
use piton_testkit::{Claude, World, three_turns};
use serde_json::json;

fn both() -> RewindOptions {
    RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() }
}

fn branch_of<'w>(world: &'w World, outcome: &OperationOutcome) -> Claude<'w> {
    Claude::resumed(world, outcome.conversation.as_ref().unwrap().agent_id.as_deref().unwrap())
}

/// Rewinds to before turn 3 and goes on in the branch.
fn branched(world: &World) -> (Claude<'_>, OperationOutcome) {
    let outcome = world.open().rewind_now("t3", &both()).unwrap();
    let branch = branch_of(world, &outcome);
    writes(&branch, "third, otherwise", "b.txt");
    (branch, outcome)
}

fn writes(claude: &Claude<'_>, prompt: &str, path: &str) {
    claude.edits(prompt, &[path], |world| {
        world.write(path, path);
    });
}

fn redo(world: &World) -> OperationOutcome {
    world.open().redo_now(&RedoOptions::default()).unwrap()
}

fn redo_of(world: &World, operation: &OperationOutcome) -> Result<OperationOutcome, OperationError> {
    let operation = Some(operation.operation.as_ref().unwrap().id.to_string());
    world.open().redo_now(&RedoOptions { operation, ..RedoOptions::default() })
}

fn current(world: &World) -> String {
    let sessions = world.open().sessions().unwrap().sessions;
    sessions.into_iter().find(|session| session.current).map(|session| session.agent_id).unwrap_or_default()
}

fn files(world: &World) -> Vec<&'static str> {
    ["b.txt", "c.txt", "f.txt", "x.txt"].into_iter().filter(|path| world.path(path).exists()).collect()
}

#[test]
fn a_fork_in_a_folder_of_its_own_is_none_of_this_ones_business() {
    let world = World::new();
    let claude = three_turns(&world);
    let folder = world.base().join("beside");
    let options = ForkOptions { worktree: Some(folder.clone()), ..ForkOptions::default() };
    let forked = world.open().fork("t3", &options).unwrap().outcome.conversation.unwrap();
    let id = forked.agent_id.unwrap();
    let tell = |event: Event| {
        let (cwd, prompt_id) = (Some(folder.clone()), Some("there".into()));
        let (agent, session) = ("claude-code".into(), id.clone());
        let report = Report { agent, session, cwd, transcript: None, prompt_id, subagent: None, event };
        world.engine.observe(&report, &ObserveOptions { embedded: true, ..ObserveOptions::default() }).unwrap()
    };
    let (_, elsewhere) = tell(Event::Prompt { text: "beside".into() });
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    let make = ToolCall { id: Some("c1".into()), tool: "Bash".into(), ..ToolCall::default() };
    tell(Event::BeforeTool(make));
    claude.prompt("fourth");
    let call = claude.calls("Bash", &[]);
    world.write("b.txt", "b\n");
    claude.called(call);
    claude.answers("done");
    assert_eq!(current(&world), claude.id);
    let changes = world.open().changes(&ChangesOptions::default()).unwrap().changes;
    assert!(matches!(changes.last().unwrap().change.owner, Owner::Step { .. }), "{:?}", changes.last());
    world.open().rewind_now("t4", &RewindOptions::default()).unwrap();
    world.redo();
    // And it is not deleted while its agent is at work there.
    let delete = DeleteOptions { sessions: vec![id.clone()], older_than: None };
    let error = world.open().delete_branches(&delete).unwrap_err();
    assert!(error.to_string().contains("at work"), "{error}");
}

#[test]
fn where_the_agent_itself_went_back_a_branch_has_what_the_agent_had() {
    let world = World::new();
    let claude = three_turns(&world);
    let lines = claude.lines();
    let second = lines.iter().find(|line| line["message"]["content"] == "second").unwrap();
    let message = json!({"role": "user", "content": "second, again"});
    claude.write("user", json!({"parentUuid": second["parentUuid"], "promptId": "own", "message": message}));
    claude.write("assistant", json!({"message": {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}}));
    assert_eq!(claude.prompts().len(), 4);
    let options = RewindOptions { scope: Some(Scope::Conversation), ..RewindOptions::default() };
    let outcome = world.open().rewind_now("t4", &options).unwrap();
    assert_eq!(branch_of(&world, &outcome).prompts(), ["first"]);
    assert_eq!(outcome.conversation.unwrap().prompt.as_deref(), Some("second, again"));
}

#[test]
fn a_redo_leads_back_to_where_the_user_was_whatever_the_target_was_called() {
    for by_turn in [false, true] {
        let world = World::new();
        let claude = three_turns(&world);
        let second = world.open().resolve("t2").unwrap().checkpoint.id.to_string();
        let (branch, _) = branched(&world);
        let before = world.snapshot();
        let target = if by_turn { format!("{}:t3.end", claude.id) } else { second };
        world.open().rewind_now(&target, &both()).unwrap();
        let options = TimelineOptions { future: true, ..TimelineOptions::default() };
        let entries = world.open().timeline(&options).unwrap().entries;
        let future = entries.iter().any(|entry| {
            matches!(entry, LogEntry::Turn(turn) if turn.session == branch.session() && turn.number == 3 && turn.future)
        });
        assert!(future, "{target}: what the branch did was gone past");
        assert_eq!(redo(&world).conversation.unwrap().session, Some(branch.session()), "{target}");
        assert_eq!(current(&world), branch.id, "{target}");
        world.assert_is(&before);
        world.assert_sound();
    }
}

#[test]
fn what_a_rewind_left_is_a_moment_of_the_branch() {
    let world = World::new();
    three_turns(&world);
    let first = world.open().rewind_now("t2", &both()).unwrap();
    let after = first.operation.as_ref().unwrap().after.clone().unwrap();
    let branch = branch_of(&world, &first);
    writes(&branch, "second, otherwise", "b.txt");
    let again = world.open().rewind_now(after.as_str(), &RewindOptions::default()).unwrap();
    assert_eq!(branch_of(&world, &again).prompts(), ["first"]);
    assert!(files(&world).is_empty());
}

#[test]
fn a_branch_alone_makes_no_folder_that_is_gone() {
    let world = World::new();
    three_turns(&world);
    let mut workspace = world.open();
    std::fs::rename(world.ws(), world.base().join("unmounted")).unwrap();
    workspace.fork("t3", &ForkOptions::default()).unwrap_err();
    assert!(!world.ws().exists());
    drop(workspace);
    std::fs::rename(world.base().join("unmounted"), world.ws()).unwrap();
    world.open().fork("t3", &ForkOptions::default()).unwrap();
    world.open().rewind_now("t2", &both()).unwrap();
    world.assert_sound();
}

#[test]
fn a_branch_that_nobody_went_on_with_is_not_where_the_user_is() {
    for is_deleted in [false, true] {
        let world = World::new();
        let claude = three_turns(&world);
        let branch = world.open().rewind_now("t3", &both()).unwrap().conversation.unwrap().agent_id.unwrap();
        writes(&claude, "fourth", "x.txt");
        claude.tell(Event::SessionEnded { reason: None });
        if is_deleted {
            let delete = DeleteOptions { sessions: vec![branch], older_than: None };
            world.open().delete_branches(&delete).unwrap();
        }
        let captured = world.open().capture(&CaptureOptions::default()).unwrap();
        assert_eq!(captured.checkpoint.checkpoint.place, None);
    }
}

#[test]
fn a_checkpoint_by_hand_is_of_the_line_that_the_user_is_on() {
    let world = World::new();
    let claude = three_turns(&world);
    let place = || world.captured().checkpoint.checkpoint.place;
    let at = || place().map(|place| (place.session, place.turn)).unwrap();
    assert_eq!(at(), (claude.session(), 3));
    // Nobody has gone on in the branch yet.
    let outcome = world.open().rewind_now("t3", &both()).unwrap();
    let branch = branch_of(&world, &outcome);
    assert_eq!(at(), (branch.session(), 2));
    writes(&branch, "third, otherwise", "b.txt");
    assert_eq!(at(), (branch.session(), 3));
    // Its agent was ended, and the session that the user left before is none where anybody is.
    branch.tell(Event::SessionEnded { reason: None });
    assert_eq!(place(), None);
    redo(&world);
    assert_eq!(at(), (claude.session(), 3));
    // A rewind of the files alone leaves the user where they are.
    world.open().rewind_now("t2", &RewindOptions { scope: Some(Scope::Code), ..RewindOptions::default() }).unwrap();
    assert_eq!(at(), (claude.session(), 3));
}

#[test]
fn a_redo_leaves_the_whole_line_that_was_left_with_all_that_began_in_it() {
    // A fork of the branch.
    let world = World::new();
    let claude = three_turns(&world);
    branched(&world);
    let fork = world.open().fork("t3.end", &ForkOptions::default()).unwrap().outcome;
    writes(&branch_of(&world, &fork), "f4", "f.txt");
    assert_eq!(redo(&world).conversation.unwrap().session, Some(claude.session()));
    assert!(files(&world).is_empty(), "{:?}", files(&world));
    // A branch of the branch, and back at once.
    let world = World::new();
    let claude = three_turns(&world);
    let (branch, first) = branched(&world);
    branch.talks("fourth");
    let second = world.open().rewind_now("t4", &both()).unwrap();
    writes(&branch_of(&world, &second), "c4", "c.txt");
    let done = redo_of(&world, &first).unwrap().conversation.unwrap();
    assert_eq!(done.session, Some(claude.session()));
    assert!(files(&world).is_empty(), "{:?}", files(&world));
    // And back to the branch after work on the line.
    let world = World::new();
    let claude = three_turns(&world);
    let (branch, _) = branched(&world);
    let back = redo(&world);
    writes(&claude, "fourth", "x.txt");
    let forth = redo_of(&world, &back).unwrap();
    assert_eq!(forth.conversation.unwrap().session, Some(branch.session()));
    assert_eq!(files(&world), ["b.txt"]);
    world.assert_sound();
}

#[test]
fn a_deleted_branch_is_not_gone_to_and_is_there_again_when_it_is_heard_of() {
    let world = World::new();
    three_turns(&world);
    let (branch, _) = branched(&world);
    branch.tell(Event::SessionEnded { reason: None });
    let back = redo(&world);
    world.open().delete_branches(&DeleteOptions { sessions: vec![branch.id.clone()], older_than: None }).unwrap();
    let error = redo_of(&world, &back).unwrap_err();
    assert!(matches!(error, OperationError::DeletedBranch(_)), "{error}");
    writes(&branch, "fourth", "x.txt");
    assert_eq!(current(&world), branch.id);
    world.assert_sound();
}

#[test]
fn a_tool_of_a_subagent_that_outlives_its_turn_is_named() {
    let world = World::new();
    let claude = three_turns(&world);
    claude.prompt("fourth");
    let report = Report {
        agent: "claude-code".into(),
        session: claude.id.clone(),
        cwd: Some(world.ws()),
        transcript: Some(claude.path()),
        prompt_id: Some(format!("{}-p4", claude.id)),
        subagent: Some(Subagent { id: "agent-1".into(), kind: "general-purpose".into() }),
        event: Event::BeforeTool(ToolCall { id: Some("s1".into()), tool: "Bash".into(), ..ToolCall::default() }),
    };
    world.engine.observe(&report, &ObserveOptions { embedded: true, ..ObserveOptions::default() }).unwrap();
    claude.answers("somebody goes on");
    let plan = world.open().plan_rewind("t2", &RewindOptions::default()).unwrap().view().clone();
    assert_eq!(plan.running.len(), 1, "{:?}", plan.running);
}

#[test]
fn a_prompt_that_never_got_to_the_transcript_does_not_shift_the_turns_of_a_summary() {
    let world = World::new();
    let claude = three_turns(&world);
    let report = Report {
        agent: "claude-code".into(),
        session: claude.id.clone(),
        cwd: Some(world.ws()),
        transcript: Some(claude.path()),
        prompt_id: Some("never".into()),
        subagent: None,
        event: Event::Prompt { text: "never written".into() },
    };
    let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
    world.engine.observe(&report, &options).unwrap();
    writes(&claude, "fifth", "x.txt");
    let turns = world.open().to_summarize("t3", SummarySide::UpTo, None).unwrap();
    let made = world.open().summarize(&turns, "so it was").unwrap();
    let branch = branch_of(&world, &made);
    writes(&branch, "next", "b.txt");
    let place = |turn: u32| world.open().resolve(&format!("{}:t{turn}", branch.id)).unwrap().checkpoint.place.unwrap();
    assert_eq!((place(5).session, place(6).session), (claude.session(), branch.session()));
}

#[test]
fn a_store_without_room_says_so_and_not_that_the_transcript_cannot_be_read() {
    let world = World::new();
    world.engine.init(&world.ws(), InitOptions { force: false, budget: Some(9 << 20) }).unwrap();
    let claude = Claude::new(&world, 1);
    claude.talks("first");
    let mut seed = 1u64;
    for _ in 0..24 {
        let mut text = String::new();
        while text.len() < 1 << 20 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(&format!("{seed:x}"));
        }
        let content = json!([{"type": "text", "text": text}]);
        claude.write("assistant", json!({"message": {"role": "assistant", "content": content}}));
    }
    claude.talks("second");
    let error = world.open().rewind_now("t2", &both()).unwrap_err().to_string();
    assert!(error.contains("budget"), "{error}");
    assert!(Path::new(&claude.path()).exists());
}

#[test]
fn a_turn_that_nobody_could_have_counted_to_is_an_error_like_any_other() {
    let world = World::new();
    three_turns(&world);
    for target in ["t4294967295.end", "t0", "t9.end"] {
        world.open().fork(target, &ForkOptions::default()).unwrap_err();
    }
}
