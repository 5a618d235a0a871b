//! Sessions, turns and steps: what an agent reports becomes a timeline with owners.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use piton_engine::model::event::{Event, ToolCall};
use piton_engine::model::{Candidate, Owner};
use piton_engine::view::{ChangedFile, LogEntry, Observed, Unknown, UnknownTurn};
use piton_engine::{
    CaptureError, CaptureOptions, ChangesOptions, Choice, ChosenError, MOST_MANUAL, ObserveError, ObserveOptions,
    ObservedElsewhere, OperationError, TargetError, TimelineOptions, UndoOptions, Visit, Which, Workspace,
};
use piton_testkit::{Agent, World};

/// `a.txt named t1.2`, and so on.
fn owners(files: &[ChangedFile]) -> Vec<String> {
    files.iter().map(|file| format!("{} {}", file.path.path, owner(&file.owner))).collect()
}

fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Step { step, evidence } => format!("{} t{}.{}", evidence.as_str(), step.turn, step.step),
        Owner::You => "you".into(),
        Owner::Operation { .. } => "operation".into(),
        Owner::Unsure { candidates } => {
            let names = candidates.iter().map(|c| match c {
                Candidate::Step(step) => format!("t{}.{}", step.turn, step.step),
                Candidate::You => "you".into(),
            });
            format!("unsure {}", names.collect::<Vec<_>>().join(" "))
        }
    }
}

/// Long enough for a filesystem's clock to tick.
fn tick() {
    std::thread::sleep(Duration::from_millis(40));
}

#[test]
fn two_turns_with_the_user_in_between_have_their_steps_owners_and_targets() {
    let world = World::new();
    world.write("notes.md", "mine").write("src/a.rs", "a");
    let agent = Agent::new(&world, "s1");
    agent.tell(Event::SessionStarted { source: Some("startup".into()) });
    let start = world.snapshot();

    agent.prompt("write b\nand more");
    agent.before("c1", "Write", &["src/b.rs"]);
    world.write("src/b.rs", "b");
    agent.after("c1");
    let first_step_done = world.snapshot();
    agent.before("c2", "Bash", &[]);
    tick();
    world.write("src/c.rs", "c").remove("src/a.rs").rename("src/b.rs", "src/d.rs");
    agent.after("c2");
    agent.end_turn();

    world.write("notes.md", "mine, edited");
    let before_second = world.snapshot();
    agent.prompt("edit c");
    agent.before("c3", "Edit", &["src/c.rs"]);
    world.write("src/c.rs", "c, edited");
    agent.after("c3");
    agent.end_turn();
    let end = world.snapshot();

    let turns = agent.turns();
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[0].prompt.as_deref(), Some("write b\nand more"));
    assert_eq!(turns[0].steps.iter().map(|s| &s.summary[..]).collect::<Vec<_>>(), ["Write src/b.rs", "Bash"]);
    assert_eq!(owners(&turns[0].steps[0].files), ["src/b.rs named t1.1"]);
    assert_eq!(
        owners(&turns[0].steps[1].files),
        ["src/a.rs window t1.2", "src/b.rs window t1.2", "src/c.rs window t1.2", "src/d.rs window t1.2"]
    );
    // Taken together `src/b.rs` was made and went again.
    let counts = turns[0].changes;
    assert_eq!((counts.created, counts.modified, counts.deleted), (2, 0, 1));
    assert_eq!(owners(&turns[1].yours), ["notes.md you"]);
    assert_eq!(owners(&turns[1].files), ["src/c.rs named t2.1"]);

    for (target, state) in [
        ("t2", &before_second),
        ("t1.2", &first_step_done),
        ("t1", &start),
        ("t2.end", &end),
        (&format!("{}:t2", agent.id().short()), &before_second),
        ("s1:start", &start),
    ] {
        world.rewind(target);
        world.assert_is(state);
    }
    let workspace = world.open();
    assert!(matches!(workspace.resolve("t3"), Err(TargetError::NoTurn { turn: 3, last: 2, .. })));
    assert!(matches!(workspace.resolve("t1.7"), Err(TargetError::NoStep { step: 7, last: 2, .. })));
    assert!(matches!(workspace.resolve("nobody:t1"), Err(TargetError::UnknownSession { .. })));
    drop(workspace);
    world.assert_sound();
}

#[test]
fn what_a_missing_after_event_a_parallel_call_and_a_background_command_did_has_its_owner_or_is_unsure() {
    let world = World::new();
    world.write("yours.txt", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    // Parallel shells: only the turn is sure.
    agent.before("a", "Bash", &[]);
    agent.before("b", "Bash", &[]);
    tick();
    world.write("either.txt", "x");
    agent.after("a");
    agent.after("b");
    // The user saves a file of theirs while a shell runs.
    world.write("yours.txt", "2");
    agent.prompt("two");
    agent.before("c", "Bash", &[]);
    tick();
    world.write("yours.txt", "3").write("shells.txt", "x");
    agent.after("c");
    // A background command: what changes later may be of it.
    agent.tell(Event::BeforeTool(agent.call("d", "Bash", &[], true)));
    agent.after("d");
    tick();
    world.write("later.txt", "x");
    agent.before("e", "Edit", &["named.txt"]);
    world.write("named.txt", "x");
    agent.after("e");
    agent.end_turn();
    // No after event (the user pressed Esc), and then a prompt.
    agent.prompt("three");
    agent.before("f", "Bash", &[]);
    tick();
    world.write("interrupted.txt", "x");
    agent.prompt("four");
    tick();
    world.write("after.txt", "x");
    agent.prompt("five");

    let turns = agent.turns();
    assert_eq!(owners(&turns[0].unsure), ["either.txt unsure t1.1 t1.2"]);
    assert_eq!(owners(&turns[0].files), ["either.txt unsure t1.1 t1.2"]);
    assert_eq!(owners(&turns[1].files), ["named.txt named t2.3", "shells.txt window t2.1"]);
    assert_eq!(owners(&turns[1].unsure), ["later.txt unsure t2.2 you", "yours.txt unsure t2.1 you"]);
    assert_eq!(owners(&turns[3].unsure), ["interrupted.txt unsure t3.1 you"]);
    assert_eq!(owners(&turns[4].yours), ["after.txt you"]);
    let endings: Vec<_> =
        turns.iter().flat_map(|t| &t.steps).map(|s| s.ending.map_or("open", |e| e.as_str())).collect();
    assert_eq!(endings, ["done", "done", "done", "done", "done", "lost"]);
}

#[test]
fn two_sessions_at_once_get_their_own_turns_and_overlapping_shells_are_unsure() {
    let world = World::new();
    world.write("a.txt", "1");
    let (one, two) = (Agent::new(&world, "one"), Agent::new(&world, "two"));
    one.prompt("first");
    two.prompt("second");
    one.before("1", "Bash", &[]);
    two.before("1", "Bash", &[]);
    tick();
    world.write("a.txt", "2");
    one.after("1");
    two.before("2", "Edit", &["b.txt"]);
    world.write("b.txt", "x");
    two.after("2");
    assert_eq!(owners(&one.turns()[0].unsure), ["a.txt unsure t1.1 t1.1 you"]);
    assert_eq!(owners(&two.turns()[0].files), ["b.txt named t1.2"]);
    let sessions = world.open().sessions().unwrap().sessions;
    assert_eq!(sessions.iter().map(|s| &s.agent_id[..]).collect::<Vec<_>>(), ["two", "one"]);

    // Nobody can be asked which is meant: then it is an error that names them.
    let strict = World::at(world.base(), |environment| environment.guesses_session = false);
    assert!(matches!(strict.open().resolve("t1"), Err(TargetError::SeveralSessions { live, .. }) if live.len() == 2));
    assert!(strict.open().resolve("one:t1").is_ok());
    one.tell(Event::SessionEnded { reason: None });
    assert!(strict.open().resolve("t1").is_ok());
}

#[test]
fn an_agent_that_goes_to_a_second_repository_is_captured_there_under_the_same_turn() {
    let world = World::new();
    world.write("a.txt", "1");
    let second = world.base().join("second");
    std::fs::create_dir_all(second.join(".git")).unwrap();
    std::fs::write(second.join("b.txt"), "1").unwrap();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.end_turn();
    agent.prompt("work in both");
    agent.before("c1", "Bash", &[]);
    agent.after("c1");
    agent.folder.replace(second.clone());
    let there = agent.before("c2", "Edit", &["b.txt"]);
    assert_eq!((there.turn, there.step), (2, Some(2)));
    std::fs::write(second.join("b.txt"), "2").unwrap();
    agent.after("c2");
    agent.end_turn();
    agent.folder.replace(world.ws());
    agent.prompt("three");

    assert_eq!(world.engine.workspaces_of(&agent.id()), [world.ws(), second.clone()]);
    let mut other = world.engine.open(&second).unwrap();
    let interrupted = piton_engine::RewindOptions { interrupted: true, ..piton_engine::RewindOptions::default() };
    let outcome = other.rewind_now("t2.2", &interrupted).unwrap();
    assert_eq!(outcome.restored.len(), 1);
    assert_eq!(std::fs::read(second.join("b.txt")).unwrap(), b"1");
    // The third turn is known in both.
    assert!(other.resolve("t3").is_ok());
    assert!(world.open().resolve("t3").is_ok());
}

#[test]
fn a_file_that_a_tool_names_is_captured_though_a_rule_leaves_it_out() {
    let world = World::new();
    world.write(".gitignore", "out/\n").write("out/config", "1").write("out/other", "1").write("a", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.before("c1", "Edit", &["out/config"]);
    world.write("out/config", "2").write("out/other", "2");
    agent.after("c1");
    agent.end_turn();
    assert_eq!(owners(&agent.turns()[0].files), ["out/config named t1.1"]);
    world.rewind("t1.1");
    let now = world.snapshot();
    assert_eq!(now.bytes("out/config"), Some(&b"1"[..]));
    assert_eq!(now.bytes("out/other"), Some(&b"2"[..]));
}

#[test]
fn a_symlink_that_a_tool_names_stands_for_what_it_leads_to() {
    let world = World::new();
    world.write(".gitignore", "out/\n").write("out/notes", "1").write("src/real", "1").folder("links");
    // A link to a link to an ignored file, one to a captured file, and one to a file that the tool makes.
    world.link("notes", "links/notes").link("links/notes", "../out/notes").link("linked", "src/real");
    world.link("dangling", "out/new");
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["notes", "linked", "dangling"], |w| {
        std::fs::write(w.path("notes"), "2").unwrap();
        std::fs::write(w.path("linked"), "2").unwrap();
        std::fs::write(w.path("dangling"), "2").unwrap();
    });
    let files = ["out/new named t1.1", "out/notes named t1.1", "src/real named t1.1"];
    assert_eq!(owners(&agent.turns()[0].files), files);
    world.open().undo_now(&piton_engine::UndoOptions::default()).unwrap();
    let now = world.snapshot();
    assert_eq!([now.bytes("out/notes"), now.bytes("src/real")], [Some(&b"1"[..]); 2]);
    assert!(now.bytes("out/new").is_none(), "the tool made it");
    let leads_to = |path: &str| std::fs::read_link(world.path(path)).unwrap();
    assert_eq!([leads_to("notes"), leads_to("linked")], ["links/notes", "src/real"].map(std::path::PathBuf::from));
}

#[test]
fn when_time_runs_out_a_gap_is_noted_and_the_next_capture_goes_on() {
    let world = World::new();
    for number in 0..40 {
        world.write(format!("{number}"), format!("content {number}"));
    }
    let agent = Agent::new(&world, "s1");
    let late = ObserveOptions { deadline: Some(Instant::now()), embedded: true, ..ObserveOptions::default() };
    world.open();
    let report = agent.report(None, Event::Prompt { text: "one".into() });
    let observed = world.engine.observe(&report, &late).unwrap().0;
    assert!(observed.checkpoint.is_none());
    assert!(observed.gap.unwrap().contains("in time"));
    let turns = agent.turns();
    assert_eq!(turns[0].gaps.len(), 1);
    assert!(matches!(world.open().resolve("t1"), Err(TargetError::Gap { .. })));
    agent.before("c1", "Bash", &[]);
    // The moment before the first step is as good.
    assert!(world.open().resolve("t1").is_ok());
    world.assert_sound();
}

#[test]
fn a_lock_that_is_not_to_be_had_in_time_leaves_a_gap_that_the_next_event_records() {
    let world = World::new();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    let held = piton_host_lock(&world);
    let soon = Instant::now() + Duration::from_millis(50);
    let late = ObserveOptions { deadline: Some(soon), embedded: true, ..ObserveOptions::default() };
    let report = agent.report(None, Event::BeforeTool(agent.call("c1", "Bash", &[], false)));
    assert!(world.engine.observe(&report, &late).is_err());
    drop(held);
    assert!(agent.turns()[0].gaps.is_empty());
    agent.end_turn();
    let gaps = &agent.turns()[0].gaps;
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].reason.contains("another piton"));
    world.assert_sound();
}

#[test]
fn a_turn_that_nobody_could_record_keeps_its_number_its_steps_and_what_they_changed() {
    let world = World::new();
    world.write("b", "1").write("c", "1").write("gone", "1").write("mine", "1");
    let agent = Agent::new(&world, "s1");
    agent.runs("one", "make", |_| {});
    tick();
    world.write("mine", "2");
    let busy = |event: Event| {
        tick();
        let soon = Instant::now() + Duration::from_millis(10);
        let late = ObserveOptions { deadline: Some(soon), embedded: true, ..ObserveOptions::default() };
        assert!(world.engine.observe(&agent.report(None, event), &late).is_err());
        tick();
    };
    let held = piton_host_lock(&world);
    // What a full disk may leave of an earlier one.
    std::fs::write(world.open().store_folder().join("gaps.taken"), "").unwrap();
    busy(Event::Prompt { text: "two".into() });
    let (shell, edit) = (agent.call("c1", "Bash", &[], false), agent.call("c2", "Edit", &["c", "/elsewhere/x"], false));
    busy(Event::BeforeTool(shell.clone()));
    world.write("b", "2").remove("gone");
    busy(Event::AfterTool(shell));
    busy(Event::BeforeTool(edit.clone()));
    world.write("c", "2");
    busy(Event::AfterTool(edit));
    busy(Event::TurnEnded { failed: false, message: None, background: false });
    drop(held);
    // Whoever captures next finds it: an event, a person, an operation.
    let found = world.capture();
    agent.prompt("three");
    let turns = agent.turns();
    let told: Vec<_> = turns.iter().map(|turn| (turn.number, turn.prompt.as_deref(), turn.gaps.len())).collect();
    assert_eq!(told, [(1, Some("one"), 0), (2, Some("two"), 6), (3, Some("three"), 0)]);
    // Nothing was captured when the tools began, so what the user did before that would be in the same change.
    let all = ["b unsure t2.1 you", "c unsure t2.2 you", "gone unsure t2.1 you", "mine you"];
    assert_eq!(owners_in(&world, &found), all);
    world.open().undo_now(&of_turn_two()).unwrap();
    let now = world.snapshot();
    assert_eq!(["b", "c", "gone", "mine"].map(|path| now.bytes(path).unwrap()), [&b"1"[..], b"1", b"1", b"2"]);
    world.assert_sound();
}

/// Who changed what since the checkpoint before.
fn owners_in(world: &World, checkpoint: &str) -> Vec<String> {
    let files = world.open().show(checkpoint).unwrap().files;
    files.iter().map(|file| format!("{} {}", file.change.path.path, owner(file.owner.as_ref().unwrap()))).collect()
}

fn of_turn_two() -> piton_engine::UndoOptions {
    let what = Some(piton_engine::Which::Places(vec![(2, None)]));
    let choice = piton_engine::Choice { what, unsure: true, ..piton_engine::Choice::default() };
    piton_engine::UndoOptions { choice, interrupted: true, ..piton_engine::UndoOptions::default() }
}

#[test]
fn what_is_found_after_events_of_which_nothing_is_known_is_nobodys() {
    let changed = |agent: &Agent<'_>| {
        let last = agent.world.open().log(Default::default()).unwrap().checkpoints[0].id.to_string();
        owners_in(agent.world, &last)
    };
    // An event for which not even a line could be set aside.
    let world = World::new();
    world.write("b", "1");
    let agent = Agent::new(&world, "s1");
    agent.runs("one", "make", |_| {});
    let folder = world.open().store_folder().to_owned();
    std::fs::create_dir(folder.join("gaps")).unwrap();
    let soon = ObserveOptions { deadline: Some(Instant::now()), embedded: true, ..ObserveOptions::default() };
    let held = piton_host_lock(&world);
    assert!(world.engine.observe(&agent.report(None, Event::Prompt { text: "two".into() }), &soon).is_err());
    drop(held);
    std::fs::remove_dir(folder.join("gaps")).unwrap();
    world.write("b", "2");
    agent.prompt("three");
    assert_eq!(changed(&agent), ["b unsure you"]);
    assert_eq!(agent.turns().iter().map(|turn| turn.gaps.len()).sum::<usize>(), 1);
    // What comes after that is as sure as ever.
    world.write("b", "3");
    agent.prompt("four");
    assert_eq!(changed(&agent), ["b you"]);

    // A tool of which only the end was set aside.
    let world = World::new();
    world.write("b", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    tick();
    world.write("b", "2");
    tick();
    let soon = ObserveOptions { deadline: Some(Instant::now()), embedded: true, ..ObserveOptions::default() };
    let held = piton_host_lock(&world);
    let ended = Event::AfterTool(agent.call("c1", "Bash", &[], false));
    assert!(world.engine.observe(&agent.report(None, ended), &soon).is_err());
    drop(held);
    agent.end_turn();
    assert_eq!(changed(&agent), ["b unsure t1.1 you"]);

    // The end of a turn that nobody heard of before.
    let world = World::new();
    world.write("b", "1");
    let agent = Agent::new(&world, "s1");
    let tell = |prompt_id: &str, event: Event| {
        let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
        world.engine.observe(&agent.report(Some(prompt_id), event), &options).unwrap().0
    };
    let ended = || Event::TurnEnded { failed: false, message: None, background: false };
    tell("p1", Event::Prompt { text: "one".into() });
    tell("p1", ended());
    world.write("b", "2");
    assert_eq!(tell("p2", ended()).turn, 2);
    assert_eq!(changed(&agent), ["b unsure you"]);
    world.assert_sound();
}

/// Holds the workspace's lock, as another process would.
fn piton_host_lock(world: &World) -> std::fs::File {
    let file = std::fs::File::open(world.open().store_folder().join("lock")).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn a_session_has_fifty_manual_checkpoints_at_most_and_outside_one_there_is_no_limit() {
    let world = World::new();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    let mut workspace = world.open();
    for _ in 0..MOST_MANUAL {
        workspace.capture(&CaptureOptions::default()).unwrap();
    }
    assert!(matches!(workspace.capture(&CaptureOptions::default()), Err(CaptureError::TooMany { made: 50, .. })));
    agent.end_turn();
    agent.tell(Event::SessionEnded { reason: None });
    workspace.capture(&CaptureOptions::default()).unwrap();
}

#[test]
fn words_of_prompts_steps_names_notes_and_paths_are_found() {
    let world = World::new();
    world.write("src/authentication.rs", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("Refactor the LOGIN flow");
    agent.before("c1", "Edit", &["src/authentication.rs"]);
    world.write("src/authentication.rs", "2");
    agent.after("c1");
    let mut workspace = world.open();
    let options = CaptureOptions { name: Some("before-lunch".into()), ..CaptureOptions::default() };
    workspace.capture(&options).unwrap();
    workspace.annotate("t1", "the größte risk").unwrap();
    let find = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let found = world.open().search(&words, 10).unwrap().found;
        found.iter().map(|f| format!("{} {}", f.kind.as_str(), f.target.as_deref().unwrap_or("-"))).collect::<Vec<_>>()
    };
    let session = agent.id();
    assert_eq!(find(&["login", "refactor"]), [format!("prompt {}:t1", session.short())]);
    assert_eq!(find(&["authentication"]).len(), 2);
    // Parts of words, of any length.
    assert_eq!(find(&["thentic"]).len(), 2);
    assert_eq!(find(&["gi", "FACT"]), [format!("prompt {}:t1", session.short())]);
    assert_eq!(find(&["LOG", "gi", "x"]), [""; 0]);
    assert!(find(&["ö"])[0].starts_with("annotation ") && find(&["Ö", "isk"])[0].starts_with("annotation "));
    assert!(find(&["lunch"])[0].starts_with("name "));
    assert!(find(&["größte"])[0].starts_with("annotation "));
    workspace.annotate("t1", "修复登录页面的错误").unwrap();
    for words in [&["登录"][..], &["登录页面"], &["修", "错误"]] {
        assert!(find(words)[0].starts_with("annotation "), "{words:?}");
    }
    assert!(find(&["登页"]).is_empty());
    for odd in ["\"", "*", "AND", "NEAR(", "a:b", "-", ""] {
        find(&[odd]);
    }
    assert!(find(&["nothing-like-it"]).is_empty());
}

#[test]
fn an_index_that_an_earlier_piton_made_is_made_anew() {
    let world = World::new();
    let agent = Agent::new(&world, "s1");
    agent.prompt("refactor everything");
    let workspace = world.open();
    let index = workspace.store_folder().join("words.db");
    // What an earlier one had: whole words alone, and all of them up to a later record.
    let old = rusqlite::Connection::open(&index).unwrap();
    old.execute_batch(
        "CREATE TABLE searched(generation INTEGER NOT NULL, seq INTEGER NOT NULL);
         CREATE VIRTUAL TABLE words USING fts5(seq UNINDEXED, kind UNINDEXED, text);
         INSERT INTO searched VALUES (1, 1)",
    )
    .unwrap();
    drop(old);
    assert_eq!(workspace.search(&["every".into(), "factor".into()], 10).unwrap().found.len(), 1);
    // And kept from then on.
    assert_eq!(world.open().search(&["fact".into()], 10).unwrap().found.len(), 1);
}

#[test]
fn a_lost_database_is_rebuilt_with_all_sessions_and_verifies() {
    let world = World::new();
    world.write("a", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.before("c1", "Bash", &[]);
    tick();
    world.write("b", "1");
    agent.after("c1");
    agent.tell(Event::Message { role: "assistant".into(), text: "done".into() });
    agent.end_turn();
    let workspace = world.open();
    let before = format!("{:?}", workspace.timeline(&TimelineOptions::default()).unwrap());
    workspace.search(&["one".into()], 1).unwrap();
    let store = workspace.store_folder().to_owned();
    drop(workspace);
    std::fs::remove_file(piton_store::database_file(&store).unwrap()).unwrap();
    assert_eq!(format!("{:?}", world.open().timeline(&TimelineOptions::default()).unwrap()), before);
    world.assert_sound();
    assert_eq!(world.open().search(&["one".into()], 1).unwrap().found.len(), 1);
}

#[test]
fn with_automatic_checkpoints_off_only_turns_and_steps_are_noted() {
    let world = World::new();
    let agent = Agent::new(&world, "s1");
    let off = ObserveOptions { automatic: false, embedded: true, ..ObserveOptions::default() };
    let report = agent.report(None, Event::Prompt { text: "one".into() });
    assert!(world.engine.observe(&report, &off).unwrap().0.checkpoint.is_none());
    assert_eq!(agent.turns().len(), 1);
    assert_eq!(world.open().log(piton_engine::LogOptions::default()).unwrap().total, 0);
}

#[test]
fn of_a_turn_that_nobody_captured_it_is_not_said_that_it_changed_nothing() {
    let world = World::new();
    world.write("a", "1").write("b", "2");
    world.capture();
    let agent = Agent::new(&world, "s1");
    let off = ObserveOptions { automatic: false, embedded: true, ..ObserveOptions::default() };
    let tell = |event: Event| drop(world.engine.observe(&agent.report(None, event), &off).unwrap());
    tell(Event::Prompt { text: "delete it".into() });
    tell(Event::BeforeTool(agent.call("1", "Bash", &[], false)));
    world.remove("a");
    tell(Event::AfterTool(agent.call("1", "Bash", &[], false)));
    tell(Event::TurnEnded { failed: false, message: None, background: false });
    assert_eq!(agent.turns()[0].unknown, Some(Unknown::NotCaptured));
    let changes = world.open().changes(&ChangesOptions::default()).unwrap();
    assert_eq!(changes.unknown, [UnknownTurn { turn: 1, why: Unknown::NotCaptured }]);
    // The next capture finds it.
    world.capture();
    assert_eq!(agent.turns()[0].unknown, None);
}

#[test]
fn a_subagents_steps_are_in_the_turn_and_its_shell_may_end_after_the_turn_did() {
    let world = World::new();
    let mut agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.subagent = Some("sub-1");
    agent.before("c1", "Bash", &[]);
    agent.subagent = None;
    agent.tell(Event::TurnEnded { failed: false, message: None, background: true });
    tick();
    world.write("late.txt", "x");
    agent.subagent = Some("sub-1");
    agent.after("c1");
    let turns = agent.turns();
    assert_eq!(turns[0].steps[0].subagent.as_deref(), Some("sub-1"));
    assert_eq!(owners(&turns[0].files), ["late.txt window t1.1"]);
}

#[test]
fn a_step_that_changes_too_much_to_list_is_counted_all_the_same() {
    let world = World::new();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.before("c1", "Bash", &[]);
    tick();
    for number in 0..5_100 {
        world.write(format!("{}/{number}", number % 10), "x");
    }
    agent.after("c1");
    let turn = &agent.turns()[0];
    assert_eq!((turn.changes.created, turn.steps[0].changes.created, turn.files.len()), (5_100, 5_100, 0));
}

#[test]
fn a_prompt_in_a_second_repository_is_a_turn_of_its_own_and_no_step_takes_anothers_number() {
    let world = World::new();
    world.write("a.txt", "1");
    let second = world.base().join("second");
    std::fs::create_dir_all(second.join(".git")).unwrap();
    std::fs::write(second.join("b.txt"), "1").unwrap();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.before("c0", "Bash", &[]);
    tick();
    world.write("a.txt", "2");
    agent.after("c0");
    agent.folder.replace(second.clone());
    let told = agent.before("c1", "Bash", &[]);
    assert_eq!((told.turn, told.step), (1, Some(2)));
    agent.after("c1");
    assert_eq!(agent.prompt("two").turn, 2);
    agent.folder.replace(world.ws());
    assert_eq!(agent.prompt("three").turn, 3);
    let turns = agent.turns();
    let prompts: Vec<_> = turns.iter().map(|turn| turn.prompt.clone().unwrap()).collect();
    assert_eq!(prompts, ["one", "two", "three"]);
    assert_eq!(owners(&turns[0].steps[0].files), ["a.txt window t1.1"]);
    assert_eq!(turns[0].steps.len(), 2);
}

#[test]
fn another_workspace_is_never_taken_back_to_before_the_session_came_there() {
    let world = World::new();
    world.write("a.txt", "1");
    let second = world.base().join("second");
    std::fs::create_dir_all(second.join(".git")).unwrap();
    std::fs::write(second.join("b.txt"), "old").unwrap();
    let mut there = world.engine.open_or_init(&second).unwrap();
    there.capture(&CaptureOptions::default()).unwrap();
    std::fs::write(second.join("b.txt"), "the user's work").unwrap();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    let call = ToolCall { paths: vec![second.join("b.txt")], ..agent.call("c1", "Edit", &[], false) };
    agent.tell(Event::BeforeTool(call.clone()));
    std::fs::write(second.join("b.txt"), "the agent's").unwrap();
    agent.tell(Event::AfterTool(call));
    let target = world.open().resolve("t1").unwrap();
    let counterpart = there.counterpart(&(&target).into()).unwrap().unwrap();
    let interrupted = piton_engine::RewindOptions { interrupted: true, ..piton_engine::RewindOptions::default() };
    there.rewind_now(counterpart.id.as_str(), &interrupted).unwrap();
    assert_eq!(std::fs::read(second.join("b.txt")).unwrap(), b"the user's work");
}

#[test]
fn what_only_an_after_event_tells_of_is_named_or_unsure_and_a_late_end_still_counts() {
    let world = World::new();
    world.write("a.txt", "1").write("b.txt", "1");
    let mut agent = Agent::new(&world, "s1");
    agent.prompt("one");
    // No before event.
    world.write("a.txt", "2").write("b.txt", "2");
    agent.tell(Event::AfterTool(agent.call("c1", "Edit", &["a.txt"], false)));
    // A subagent's shell goes on across a prompt.
    agent.subagent = Some("sub-1");
    agent.before("c2", "Bash", &[]);
    agent.subagent = None;
    agent.prompt("two");
    tick();
    world.write("late.txt", "x");
    agent.subagent = Some("sub-1");
    agent.after("c2");
    agent.subagent = None;
    // An edit is under way while the user types the next prompt.
    agent.before("c3", "Edit", &["edited.txt"]);
    agent.prompt("three");
    world.write("edited.txt", "x");
    agent.after("c3");
    // A command goes to the background while it runs.
    agent.before("c4", "Bash", &[]);
    agent.tell(Event::AfterTool(ToolCall { background: true, ..agent.call("c4", "Bash", &[], false) }));
    tick();
    world.write("server.log", "x");
    agent.prompt("four");
    let turns = agent.turns();
    assert_eq!(owners(&turns[0].steps[0].files), ["a.txt named t1.1"]);
    assert_eq!(owners(&turns[0].unsure), ["b.txt unsure t1.1 you"]);
    assert_eq!(owners(&turns[0].steps[1].files), ["late.txt window t1.2"]);
    assert_eq!(owners(&turns[1].steps[0].files), ["edited.txt named t2.1"]);
    assert_eq!(owners(&turns[3].unsure), ["server.log unsure t3.1 you"]);
}

#[test]
fn a_file_that_was_in_doubt_once_stays_in_doubt_and_an_edit_elsewhere_owns_nothing_here() {
    let world = World::new();
    world.write("mine.txt", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    world.write("mine.txt", "2");
    agent.prompt("two");
    for (number, call) in ["c1", "c2", "c3"].into_iter().enumerate() {
        agent.before(call, "Bash", &[]);
        tick();
        world.write("mine.txt", format!("in doubt {number}"));
        agent.after(call);
    }
    let elsewhere = world.base().join("elsewhere.txt");
    let edit = ToolCall { paths: vec![elsewhere.clone()], ..agent.call("c4", "Edit", &[], false) };
    agent.tell(Event::BeforeTool(edit.clone()));
    tick();
    world.write("other.txt", "x");
    agent.tell(Event::AfterTool(edit));
    let turn = &agent.turns()[1];
    assert!(turn.steps.iter().all(|step| step.files.is_empty()), "{turn:#?}");
    assert_eq!(owners(&turn.unsure), ["mine.txt unsure t2.3 you", "other.txt unsure t2.4 you"]);
}

#[test]
fn a_background_command_of_an_earlier_turn_ends_when_the_agent_says_that_nothing_runs() {
    let world = World::new();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.tell(Event::BeforeTool(agent.call("c1", "Bash", &[], true)));
    agent.after("c1");
    agent.tell(Event::TurnEnded { failed: false, message: None, background: true });
    agent.prompt("two");
    agent.end_turn();
    tick();
    world.write("mine.txt", "x");
    agent.prompt("three");
    assert_eq!(owners(&agent.turns()[2].yours), ["mine.txt you"]);
}

#[test]
fn a_large_file_that_cannot_be_read_in_time_is_a_gap_and_not_a_hang() {
    let world = World::new();
    world.open();
    world.write("large", vec![7; 64 << 20]);
    let agent = Agent::new(&world, "s1");
    let soon = Instant::now() + Duration::from_millis(5);
    let late = ObserveOptions { deadline: Some(soon), embedded: true, ..ObserveOptions::default() };
    let report = agent.report(None, Event::Prompt { text: "one".into() });
    assert!(world.engine.observe(&report, &late).unwrap().0.gap.unwrap().contains("in time"));
    assert_eq!(agent.turns()[0].gaps.len(), 1);
}

#[test]
fn a_store_over_its_budget_leaves_gaps_and_turns() {
    let world = World::new();
    world.open();
    let options = piton_engine::InitOptions { budget: Some(piton_engine::MINIMUM_BUDGET), ..Default::default() };
    world.engine.init(&world.ws(), options).unwrap();
    let mut state = 1u64;
    let noise = (0..12 << 20).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    world.write("large", noise.collect::<Vec<u8>>());
    let agent = Agent::new(&world, "s1");
    assert!(agent.prompt("one").gap.unwrap().contains("budget"));
    assert_eq!(agent.turns()[0].gaps.len(), 1);
}

#[test]
fn the_end_of_a_turn_is_before_what_was_done_until_its_session_went_on() {
    let world = World::new();
    let agent = Agent::new(&world, "s");
    agent.edits("one", &["a"], |world| {
        world.write("a", "one\n");
    });
    let end = world.snapshot();
    world.write("a", "mine\n");
    agent.tell(Event::SessionStarted { source: Some("resume".into()) });
    world.rewind("t1.end");
    world.assert_is(&end);
}

/// Two sessions edit two files at once, and the second is done first: its capture finds both changes.
#[test]
fn what_a_tool_named_is_its_own_though_another_sessions_tool_ended_first() {
    let world = World::new();
    world.write("alpha", "1").write("beta", "1").write("gone", "1").write("made/by/a/shell", "1");
    let (a, b) = (Agent::new(&world, "a"), Agent::new(&world, "b"));
    a.prompt("change alpha");
    b.prompt("change beta");
    a.before("a1", "Edit", &["alpha", "gone"]);
    b.before("b1", "Edit", &["beta"]);
    tick();
    world.write("alpha", "2").write("beta", "2").remove("gone");
    b.after("b1");
    // It cannot be known yet that the other tool is at work still.
    let files = |agent: &Agent<'_>| owners(&agent.turns()[0].steps[0].files);
    assert_eq!(files(&a), [""; 0]);
    world.write("alpha", "3");
    a.after("a1");
    assert_eq!(files(&a), ["alpha named t1.1", "gone named t1.1"]);
    assert_eq!(files(&b), ["beta named t1.1"]);
    assert_eq!(owners(&b.turns()[0].unsure), [""; 0]);
    a.end_turn();
    b.end_turn();
    world.assert_sound();

    // The same of a shell beside a tool that says what it writes, and of a tool that failed.
    for (how, id) in [("done", "a2"), ("failed", "a3"), ("interrupted", "a4")] {
        a.prompt(how);
        b.prompt(how);
        a.before(id, "Bash", &[]);
        b.before(id, "Edit", &["beta"]);
        tick();
        world.write("beta", how).write(format!("by a shell, {how}"), "");
        b.after(id);
        let call = ToolCall { id: Some(id.into()), ..ToolCall::default() };
        a.tell(match how {
            "done" => Event::AfterTool(call),
            _ => Event::ToolFailed { call, error: String::new(), interrupted: how == "interrupted" },
        });
        let turn = a.turns().pop().unwrap();
        assert_eq!(owners(&turn.files), [format!("by a shell, {how} window t{}.1", turn.number)]);
        a.end_turn();
        b.end_turn();
    }
    world.assert_sound();

    let chosen = world
        .open()
        .changes(&ChangesOptions { session: Some(a.id().to_string()), ..ChangesOptions::default() })
        .unwrap();
    assert!(chosen.changes.iter().all(|one| !matches!(one.change.owner, Owner::Unsure { .. })), "{chosen:?}");
}

#[test]
fn a_tool_that_never_reports_its_end_leaves_the_doubt() {
    let world = World::new();
    world.write("alpha", "1").write("beta", "1");
    let (a, b) = (Agent::new(&world, "a"), Agent::new(&world, "b"));
    a.prompt("change alpha");
    b.prompt("change beta");
    a.before("a1", "Edit", &["alpha"]);
    b.before("b1", "Edit", &["beta"]);
    tick();
    world.write("alpha", "2").write("beta", "2");
    b.after("b1");
    a.prompt("and now?");
    assert_eq!(owners(&b.turns()[0].unsure), ["alpha unsure t1.1 you"]);
    world.assert_sound();
}

/// Somebody who edited a file of the folder that stood here before did not edit this one.
#[test]
fn who_edited_a_file_of_another_folder_says_nothing_of_this_one() {
    let world = World::new();
    world.write("b", "b");
    let agent = Agent::new(&world, "s1");
    agent.runs("one", "make", |_| {});
    tick();
    world.write("b", "the user's");
    agent.runs("two", "make", |_| {});
    let far = world.base().join("far");
    std::fs::create_dir(&far).unwrap();
    std::fs::rename(world.ws(), far.join("kept")).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    world.write("b", "b");
    tick();
    let other = Agent::new(&world, "s2");
    other.runs("in the clone", "echo agent >b", |world| {
        tick();
        world.write("b", "agent");
    });
    assert_eq!(world.open().line(), 2);
    assert_eq!(owners(&other.turns()[0].steps[0].files), ["b window t1.1"]);
}

/// A second repository beside the workspace.
fn second_repository(world: &World) -> PathBuf {
    let second = world.base().join("second");
    std::fs::create_dir_all(second.join(".git")).unwrap();
    std::fs::write(second.join("b"), "1").unwrap();
    second
}

/// An agent that names its turns and says where it works at each event.
struct Named<'w>(Agent<'w>);

impl Named<'_> {
    fn tell(
        &self,
        cwd: &Path,
        turn: &str,
        event: Event,
        options: &ObserveOptions<'_>,
    ) -> (Result<Observed, ObserveError>, Vec<ObservedElsewhere>) {
        self.0.folder.replace(cwd.to_owned());
        self.0.world.engine.observe_everywhere(&self.0.report(Some(turn), event), options)
    }

    /// A whole turn of one shell command, of which no event comes through where the agent works while that is `busy`.
    fn runs(&self, cwd: &Path, turn: &str, busy: bool, work: impl FnOnce()) {
        let call =
            ToolCall { id: Some(turn.into()), tool: "Bash".into(), summary: "Bash".into(), ..ToolCall::default() };
        let mut work = Some(work);
        for event in [
            Event::Prompt { text: turn.into() },
            Event::BeforeTool(call.clone()),
            Event::AfterTool(call),
            Event::TurnEnded { failed: false, message: None, background: false },
        ] {
            tick();
            if matches!(event, Event::AfterTool(_)) {
                work.take().unwrap()();
            }
            let deadline = Some(Instant::now() + Duration::from_secs(2));
            let options = ObserveOptions { embedded: true, deadline, ..ObserveOptions::default() };
            assert_eq!(self.tell(cwd, turn, event, &options).0.is_err(), busy);
        }
    }

    /// Its turns in a workspace, oldest first.
    fn turns(&self, folder: &Path) -> Vec<(u32, String)> {
        let options = TimelineOptions { session: Some(self.0.id()), ..TimelineOptions::default() };
        let mut workspace = self.0.world.engine.open(folder).unwrap();
        workspace.record_aside();
        let entries = workspace.timeline(&options).unwrap().entries;
        let turn = |entry| if let LogEntry::Turn(turn) = entry { Some((turn.number, turn.prompt?)) } else { None };
        let mut turns: Vec<_> = entries.into_iter().filter_map(turn).collect();
        turns.reverse();
        turns
    }
}

fn numbered(turns: &[(u32, &str)]) -> Vec<(u32, String)> {
    turns.iter().map(|(number, prompt)| (*number, (*prompt).to_owned())).collect()
}

#[test]
fn what_keeps_an_event_from_one_workspace_keeps_it_from_no_other() {
    let world = World::new();
    world.write("a", "1");
    let (ws, second) = (world.ws(), second_repository(&world));
    let agent = Named(Agent::new(&world, "s1"));
    agent.runs(&ws, "p1", false, || {});
    agent.runs(&second, "p2", false, || {});
    // Somebody is busy with the one that the agent works in.
    let held = piton_host_lock(&world);
    agent.runs(&ws, "p3", true, || std::fs::write(second.join("b"), "agent").unwrap());
    agent.runs(&second, "p4", false, || {});
    drop(held);
    agent.runs(&ws, "p5", false, || {});
    let all = numbered(&[(1, "p1"), (2, "p2"), (3, "p3"), (4, "p4"), (5, "p5")]);
    assert_eq!(agent.turns(&ws), all);
    assert_eq!(agent.turns(&second), all[1..]);
    let undone = world.engine.open(&second).unwrap().undo_now(&Default::default()).unwrap();
    assert!(undone.unsure.is_empty() && undone.operation.unwrap().about.unwrap().contains("turn 3"));
    assert_eq!(std::fs::read(second.join("b")).unwrap(), b"1");

    // Its store cannot even be opened.
    let store = world.open().store_folder().to_owned();
    std::fs::rename(store.join("packs"), store.join("away")).unwrap();
    std::fs::write(store.join("packs"), "junk").unwrap();
    let prompt = Event::Prompt { text: "p6".into() };
    let (first, others) = agent.tell(&ws, "p6", prompt, &ObserveOptions::default());
    assert!(first.is_err() && others[0].1.as_ref().unwrap().checkpoint.is_some(), "{others:?}");
    assert_eq!(agent.turns(&second).last().unwrap(), &(6, "p6".to_owned()));
    std::fs::remove_file(store.join("packs")).unwrap();
    std::fs::rename(store.join("away"), store.join("packs")).unwrap();
    agent.runs(&ws, "p7", false, || {});
    assert_eq!(agent.turns(&ws)[5..], numbered(&[(6, "p6"), (7, "p7")]));
    world.assert_sound();
}

#[test]
fn a_turn_whose_prompt_is_set_aside_has_its_number_for_every_workspace() {
    let world = World::new();
    world.write("a", "1");
    let (ws, second) = (world.ws(), second_repository(&world));
    let agent = Named(Agent::new(&world, "s1"));
    agent.runs(&ws, "p1", false, || {});
    let held = piton_host_lock(&world);
    agent.runs(&ws, "p2", true, || {});
    // It goes where the session has not been, and nobody has recorded the turn before.
    agent.runs(&second, "p3", false, || {});
    drop(held);
    agent.runs(&ws, "p4", false, || {});
    assert_eq!(agent.turns(&ws), numbered(&[(1, "p1"), (2, "p2"), (3, "p3"), (4, "p4")]));
    assert_eq!(agent.turns(&second), numbered(&[(3, "p3"), (4, "p4")]));
}

#[test]
fn whoever_asks_hears_where_an_event_is_still_to_be_taken() {
    let world = World::new();
    let (ws, second) = (world.ws(), second_repository(&world));
    let agent = Named(Agent::new(&world, "s1"));
    agent.runs(&ws, "p0", false, || {});
    agent.runs(&second, "p1", false, || {});
    let heard = RefCell::new(Vec::new());
    let visiting = |still: Vec<Visit>| {
        heard.borrow_mut().push(still.into_iter().map(|visit| visit.path).collect::<Vec<_>>());
    };
    let options = ObserveOptions { visiting: Some(&visiting), ..ObserveOptions::default() };
    agent.tell(&ws, "p2", Event::Prompt { text: "p2".into() }, &options).0.unwrap();
    assert_eq!(heard.take(), [vec![ws, second.clone()], vec![second]]);
}

/// Why the last undo was refused.
fn why_unknown(workspace: &mut Workspace, what: Option<Which>) -> (u32, Unknown) {
    let choice = Choice { what, ..Choice::default() };
    match workspace.undo_now(&UndoOptions { choice, interrupted: true, ..UndoOptions::default() }) {
        Err(OperationError::Chosen(ChosenError::Unknown { turn, why, .. })) => (turn, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_turn_did_in_a_folder_before_its_first_capture_is_not_known() {
    let world = World::new();
    let (ws, second) = (world.ws(), second_repository(&world));
    let agent = Named(Agent::new(&world, "s1"));
    let options = ObserveOptions::default();
    agent.tell(&ws, "p1", Event::Prompt { text: "p1".into() }, &options).0.unwrap();
    let call = ToolCall { id: Some("c".into()), tool: "Bash".into(), ..ToolCall::default() };
    agent.tell(&ws, "p1", Event::BeforeTool(call.clone()), &options).0.unwrap();
    std::fs::write(second.join("b"), "agent").unwrap();
    // The same command went there and stays there.
    agent.tell(&second, "p1", Event::AfterTool(call), &options).0.unwrap();
    let mut workspace = world.engine.open(&second).unwrap();
    for what in [None, Some(Which::All), Some(Which::Places(vec![(1, None)]))] {
        assert_eq!(why_unknown(&mut workspace, what), (1, Unknown::BeforeFirstCapture));
    }
    let unknown = workspace.changes(&ChangesOptions::default()).unwrap().unknown;
    assert_eq!(unknown, [UnknownTurn { turn: 1, why: Unknown::BeforeFirstCapture }]);
    assert!(world.open().changes(&ChangesOptions::default()).unwrap().unknown.is_empty());
    // What it does from there on is known.
    agent.runs(&second, "p2", false, || std::fs::write(second.join("c"), "agent").unwrap());
    let unknown = workspace.changes(&ChangesOptions::default()).unwrap().unknown;
    assert_eq!(unknown.iter().map(|one| one.turn).collect::<Vec<_>>(), [1]);
    workspace.undo_now(&UndoOptions::default()).unwrap();
    assert!(!second.join("c").exists());
    // With that taken back, "all is taken back already" would be said of the first one too.
    for what in [None, Some(Which::All)] {
        assert_eq!(why_unknown(&mut workspace, what), (1, Unknown::BeforeFirstCapture));
    }
    let known = Choice { what: Some(Which::Places(vec![(2, None)])), ..Choice::default() };
    let error = workspace.undo_now(&UndoOptions { choice: known, ..UndoOptions::default() }).unwrap_err();
    assert!(matches!(error, OperationError::Chosen(ChosenError::Nothing { undone: true, .. })), "{error}");
}

#[test]
fn what_a_turn_of_gaps_did_is_not_known() {
    let world = World::new();
    for number in 0..40 {
        world.write(format!("{number}"), format!("content {number}"));
    }
    let agent = Agent::new(&world, "s1");
    let late = || ObserveOptions { deadline: Some(Instant::now()), embedded: true, ..ObserveOptions::default() };
    let call = agent.call("c1", "Bash", &[], false);
    for event in [
        Event::Prompt { text: "one".into() },
        Event::BeforeTool(call.clone()),
        Event::AfterTool(call),
        Event::TurnEnded { failed: false, message: None, background: false },
    ] {
        assert!(world.engine.observe(&agent.report(None, event), &late()).unwrap().0.gap.is_some());
    }
    agent.prompt("two");
    agent.end_turn();
    assert_eq!(why_unknown(&mut world.open(), Some(Which::Places(vec![(1, None)]))), (1, Unknown::BeforeFirstCapture));
    let turns = agent.turns();
    assert!(matches!(turns[0].unknown, Some(Unknown::Gap { .. })) && turns[1].unknown.is_none());
    let nothing = world.open().undo_now(&UndoOptions {
        choice: Choice { what: Some(Which::Places(vec![(2, None)])), ..Choice::default() },
        ..UndoOptions::default()
    });
    assert!(matches!(nothing, Err(OperationError::Chosen(ChosenError::Nothing { .. }))));
}

/// A process that dies after it has recorded what was set aside, and before it has forgotten it, makes no turn twice.
#[test]
fn an_event_that_was_recorded_and_not_forgotten_is_not_recorded_again() {
    let world = World::new();
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    let two = agent.report(None, Event::Prompt { text: "two".into() });
    world.engine.set_event_aside(&world.ws(), &two, "no time", false).unwrap();
    let store = world.open().store_folder().to_owned();
    let aside = std::fs::read(store.join("gaps")).unwrap();
    for _ in 0..3 {
        world.capture();
        assert_eq!(agent.turns().len(), 2);
        std::fs::write(store.join("gaps.taken"), &aside).unwrap();
    }
    world.capture();
    assert_eq!(agent.turns().len(), 2);
    world.assert_sound();
}

/// What the user did after a tool's end used to be the tool's when its after event came once more, and an undo deleted it.
#[test]
fn an_after_event_that_comes_twice_takes_nothing_of_the_users() {
    let world = World::new();
    world.write("a", "a");
    let agent = Agent::new(&world, "s");
    agent.prompt("go");
    agent.before("c1", "Bash", &[]);
    world.write("a", "agent");
    agent.after("c1");
    agent.end_turn();
    world.write("mine", "an hour of work");
    agent.after("c1");
    world.open().undo_now(&piton_engine::UndoOptions::default()).unwrap();
    assert_eq!(world.snapshot().bytes("mine"), Some(&b"an hour of work"[..]));
    assert_eq!(world.snapshot().bytes("a"), Some(&b"a"[..]));
}

/// Some programs count their calls anew in each turn, or give all of one tool the same id.
#[test]
fn a_call_whose_id_was_used_before_in_the_same_turn_is_a_step_of_its_own() {
    let world = World::new();
    let agent = Agent::new(&world, "s");
    agent.prompt("go");
    for content in ["one", "two"] {
        agent.before("same", "Bash", &[]);
        world.write(content, content);
        agent.after("same");
    }
    agent.end_turn();
    let turns = agent.turns();
    assert_eq!(turns[0].steps.len(), 2);
    world.open().undo_now(&piton_engine::UndoOptions::default()).unwrap();
    assert!(world.snapshot().is_empty(), "{:?}", world.snapshot());
}

/// Whose a change is may be settled by a later record. A row with the settled owner used to count as damaged, and no undo of the
/// turn was possible any more.
#[test]
fn a_turn_is_undone_though_another_session_captured_while_its_tool_ran() {
    let world = World::new();
    world.write("a", "a");
    let (one, other) = (Agent::new(&world, "one"), Agent::new(&world, "other"));
    one.prompt("go");
    one.before("c1", "Bash", &[]);
    world.write("a", "changed");
    other.prompt("look");
    one.after("c1");
    one.end_turn();
    other.end_turn();
    let choice = Choice { session: Some(one.id().to_string()), ..Choice::default() };
    world.open().undo_now(&piton_engine::UndoOptions { choice, ..Default::default() }).unwrap();
    assert_eq!(world.snapshot().bytes("a"), Some(&b"a"[..]));
}

/// Interrupted twice, or under an id that a call of an earlier turn had which never ended.
#[test]
fn no_repeated_word_of_a_tool_takes_the_work_of_others() {
    let world = World::new();
    let agent = Agent::new(&world, "s");
    agent.prompt("go");
    agent.before("c1", "Bash", &[]);
    world.write("tool", "1");
    let failed =
        || Event::ToolFailed { call: agent.call("c1", "Bash", &[], false), error: String::new(), interrupted: true };
    agent.tell(failed());
    world.write("mine", "1");
    agent.tell(failed());
    agent.end_turn();
    world.open().undo_now(&Default::default()).unwrap();
    assert!(world.snapshot().has("mine") && !world.snapshot().has("tool"));

    agent.prompt("again");
    agent.before("c2", "Bash", &[]);
    world.write("first", "1");
    agent.prompt("and again");
    agent.before("c2", "Bash", &[]);
    world.write("second", "1");
    agent.after("c2");
    agent.end_turn();
    world.open().undo_now(&Default::default()).unwrap();
    assert!(world.snapshot().has("first") && !world.snapshot().has("second"));
}

/// The user rejects an edit and makes it himself: the tool that did not run used to own that, as sure.
#[test]
fn what_a_tool_names_is_its_own_only_if_it_ran() {
    let failed = |call, interrupted| Event::ToolFailed { call, error: "no".into(), interrupted };
    for (how, is_sure) in [("done", true), ("failed", false), ("interrupted", false), ("never heard of again", false)] {
        // Also where somebody looks while it runs.
        for looks in [false, true] {
            let world = World::new();
            world.write("a", "1\n");
            let agent = Agent::new(&world, "s");
            agent.prompt("edit it");
            agent.before("c", "Edit", &["a"]);
            world.write("a", "2\n");
            if looks {
                world.capture();
            }
            let call = agent.call("c", "Edit", &["a"], false);
            match how {
                "done" => drop(agent.after("c")),
                "failed" => drop(agent.tell(failed(call, false))),
                "interrupted" => drop(agent.tell(failed(call, true))),
                _ => {}
            }
            agent.end_turn();
            let undone = world.open().undo_now(&UndoOptions::default()).unwrap();
            assert_eq!(undone.unsure.is_empty(), is_sure, "{how}, {looks}");
            let text = std::fs::read_to_string(world.path("a")).unwrap();
            assert_eq!(text, if is_sure { "1\n" } else { "2\n" }, "{how}, {looks}");
        }
    }
}
