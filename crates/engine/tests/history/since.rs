//! What happened since a cursor, and waiting for more.

use std::time::{Duration, Instant};

use piton_engine::model::OperationVerb;
use piton_engine::view::{Cursor, Notice, NumberedNotice, OperationStatus, Since};
use piton_engine::{CaptureOptions, History, RedoOptions, RewindOptions, TimelineOptions, Tool};
use piton_testkit::World;

/// Longer than any machine takes; a test that waits this long has failed.
const LONG: Duration = Duration::from_secs(60);

fn notices(history: &History, cursor: &Cursor) -> Vec<NumberedNotice> {
    match history.since(cursor, usize::MAX).unwrap() {
        Since::Notices { notices, more: false, .. } => notices,
        other => panic!("{other:?}"),
    }
}

fn kinds(notices: &[NumberedNotice]) -> Vec<String> {
    let kind = |one: &NumberedNotice| serde_json::to_value(one).unwrap()["kind"].as_str().unwrap().to_owned();
    notices.iter().map(kind).collect()
}

fn begins_again(history: &History, cursor: &Cursor) -> Cursor {
    match history.since(cursor, 10).unwrap() {
        Since::BeginAgain { cursor } => cursor,
        other => panic!("{cursor}: {other:?}"),
    }
}

#[test]
fn every_record_is_told_in_order_and_the_same_to_whoever_asks() {
    let world = World::new();
    world.write("a", "1");
    let mut workspace = world.open();
    let start = workspace.cursor_now().unwrap();
    let mut session = workspace.begin_session("embedded", "run-1").unwrap();
    session.begin_turn("make it two").unwrap();
    session.before_tool(&Tool::new("1", "write_file").names("a")).unwrap();
    world.write("a", "2");
    session.after_tool("1").unwrap();
    session.end_turn().unwrap();
    session.end().unwrap();
    let options = CaptureOptions { name: Some("two".into()), annotation: Some("done".into()), ..Default::default() };
    workspace.capture(&options).unwrap();
    workspace.rewind_now("t1", &RewindOptions::default()).unwrap();
    workspace.redo_now(&RedoOptions::default()).unwrap();
    let told = notices(&workspace, &start);
    let kinds = kinds(&told);
    for kind in [
        "session-began",
        "turn-began",
        "captured",
        "step-began",
        "step-ended",
        "turn-ended",
        "session-ended",
        "named",
        "annotated",
        "operation-began",
        "operation-ended",
    ] {
        assert!(kinds.iter().any(|one| one == kind), "{kind}: {kinds:?}");
    }
    let of_operations: Vec<_> = told
        .iter()
        .filter_map(|one| match &one.notice {
            Notice::OperationBegan { operation } => Some((operation.kind, operation.state, false)),
            Notice::OperationEnded { operation, took_back } => {
                Some((operation.kind, operation.state, took_back.is_some()))
            }
            _ => None,
        })
        .collect();
    let (pending, done) = (OperationStatus::Pending, OperationStatus::Done);
    let (rewind, redo) = (OperationVerb::Rewind, OperationVerb::Redo);
    assert_eq!(
        of_operations,
        [(rewind, pending, false), (rewind, done, false), (redo, pending, false), (redo, done, true)]
    );
    // Another handle, such as another process has, is told the same.
    let json = |notices: &[NumberedNotice]| serde_json::to_string(notices).unwrap();
    assert_eq!(json(&told), json(&notices(&world.open(), &start)));
    let read: Vec<NumberedNotice> = serde_json::from_str(&json(&told)).unwrap();
    assert_eq!(json(&read), json(&told));
}

#[test]
fn pages_of_any_size_come_to_the_same_and_the_last_one_says_so() {
    let world = World::new();
    world.write("a", "1");
    let mut workspace = world.open();
    let start = Cursor { seq: 0, ..workspace.cursor_now().unwrap() };
    for name in ["one", "two", "three"] {
        workspace.capture(&CaptureOptions { name: Some(name.into()), ..Default::default() }).unwrap();
    }
    let all = notices(&workspace, &start);
    assert_eq!(all.last().unwrap().cursor, workspace.cursor_now().unwrap());
    for size in 1..=all.len() + 1 {
        let (mut cursor, mut paged) = (start.clone(), Vec::new());
        loop {
            let Since::Notices { notices, next, more } = workspace.since(&cursor, size).unwrap() else {
                panic!("nothing was removed")
            };
            assert!(notices.len() <= size);
            paged.extend(notices);
            cursor = next;
            if !more {
                break;
            }
        }
        assert_eq!(kinds(&paged), kinds(&all));
        assert_eq!(cursor, workspace.cursor_now().unwrap());
    }
    assert!(notices(&workspace, &workspace.cursor_now().unwrap()).is_empty());
}

#[test]
fn a_rename_and_a_rank_of_a_session_are_told_as_changes_of_it() {
    let world = World::new();
    world.write("a", "1");
    let mut workspace = world.open();
    let mut session = workspace.begin_session("embedded", "run-1").unwrap();
    session.begin_turn("one").unwrap();
    session.end_turn().unwrap();
    let id = workspace.sessions().unwrap().sessions[0].id.clone();
    let before = workspace.cursor_now().unwrap();
    workspace.rename_session(id.as_str(), "mine").unwrap();
    let told = notices(&workspace, &before);
    let [Notice::SessionChanged { session, name, .. }] =
        &told.iter().map(|one| one.notice.clone()).collect::<Vec<_>>()[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((session, name.as_deref()), (&id, Some("mine")));
}

#[test]
fn agreeing_to_changed_rules_is_told_with_its_checkpoint() {
    let world = World::new();
    world.write("data/x", "1").write(".gitignore", "");
    world.capture();
    let agent = piton_testkit::Agent::new(&world, "s1");
    let start = world.open().cursor_now().unwrap();
    agent.edits("ignore it", &[".gitignore"], |world| {
        world.write(".gitignore", "data/\n");
    });
    let mut workspace = world.open();
    let waiting = |cursor: &Cursor| {
        let told = notices(&world.open(), cursor).into_iter();
        let waiting = told.filter_map(|one| match one.notice {
            Notice::Captured { rules_waiting, .. } => rules_waiting,
            _ => None,
        });
        waiting.collect::<Vec<_>>()
    };
    assert_eq!(waiting(&start), [1]);
    let between = workspace.cursor_now().unwrap();
    workspace.accept_rules().unwrap();
    assert_eq!(waiting(&between), [0]);
}

#[test]
fn a_cursor_that_is_no_place_in_these_records_begins_again() {
    let world = World::new();
    world.write("a", "1");
    world.capture();
    let workspace = world.open();
    let now = workspace.cursor_now().unwrap();
    let of_another = Cursor { store: piton_engine::model::WorkspaceId::from_random([3; 8]), ..now.clone() };
    let beyond = Cursor { seq: now.seq + 1, ..now.clone() };
    let of_another_view = Cursor { generation: now.generation + 1, ..now.clone() };
    for wrong in [of_another, beyond, of_another_view] {
        assert_eq!(begins_again(&workspace, &wrong), now);
        assert!(workspace.wait_for_more(&wrong, LONG).unwrap(), "nobody waits for that");
    }
}

#[test]
fn after_the_view_is_made_anew_open_handles_begin_again_and_go_on() {
    let world = World::new();
    world.write("a", "1");
    world.capture();
    let workspace = world.open();
    let before = workspace.cursor_now().unwrap();
    let watcher = workspace.watcher();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| watcher.wait(&before, LONG));
        let database = piton_store::database_file(workspace.store_folder()).unwrap();
        std::fs::write(&database, "no database").unwrap();
        drop(world.open());
        assert!(waiting.join().unwrap().unwrap());
    });
    let again = begins_again(&workspace, &before);
    assert!(again.generation > before.generation);
    world.write("a", "2");
    world.capture();
    assert!(workspace.wait_for_more(&again, LONG).unwrap());
    assert!(kinds(&notices(&workspace, &again)).contains(&"captured".to_owned()));
}

#[test]
fn a_store_that_is_removed_ends_the_waiting_and_its_cursor_begins_again_in_the_next_one() {
    let world = World::new();
    world.write("a", "1");
    world.capture();
    let workspace = world.open();
    let before = workspace.cursor_now().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| workspace.wait_for_more(&before, LONG));
        std::fs::remove_dir_all(world.base().join("home")).unwrap();
        assert!(waiting.join().unwrap().is_err());
    });
    assert!(workspace.since(&before, 10).is_err());
    let anew = world.engine.open_or_init(&world.ws()).unwrap();
    begins_again(&anew, &before);
}

#[test]
fn nobody_waits_past_the_time_that_was_given() {
    let world = World::new();
    world.write("a", "1");
    world.capture();
    let workspace = world.open();
    let now = workspace.cursor_now().unwrap();
    assert!(!workspace.wait_for_more(&now, Duration::ZERO).unwrap());
    assert!(!workspace.wait_for_more(&now, Duration::from_millis(30)).unwrap());
}

/// Several wait at once while another handle commits again and again: each hears of all, whenever it asks.
#[test]
fn no_commit_is_missed_between_asking_and_waiting() {
    const COMMITS: usize = 60;
    let world = World::new();
    world.write("a", "0");
    world.capture();
    let start = world.open().cursor_now().unwrap();
    std::thread::scope(|scope| {
        let hear = || {
            let workspace = world.open();
            let watcher = workspace.watcher();
            let (mut cursor, mut heard, begun) = (start.clone(), 0, Instant::now());
            while heard < COMMITS && begun.elapsed() < LONG {
                assert!(watcher.wait(&cursor, LONG).unwrap());
                let Since::Notices { notices, next, .. } = workspace.since(&cursor, 7).unwrap() else {
                    panic!("nothing was removed")
                };
                heard += notices.iter().filter(|one| matches!(one.notice, Notice::Captured { .. })).count();
                cursor = next;
            }
            heard
        };
        let listeners = [scope.spawn(hear), scope.spawn(hear), scope.spawn(hear)];
        let mut workspace = world.open();
        for number in 0..COMMITS {
            world.write("a", number.to_string());
            workspace.capture(&CaptureOptions::default()).unwrap();
        }
        for listener in listeners {
            assert_eq!(listener.join().unwrap(), COMMITS);
        }
    });
}

#[test]
fn waiting_leaves_no_handle_open() {
    let world = World::new();
    world.write("a", "1");
    world.capture();
    let workspace = world.open();
    let now = workspace.cursor_now().unwrap();
    // Other tests of this program open watches of their own.
    let watches = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
        all.filter(|one| std::fs::read_link(one.path()).is_ok_and(|to| to.to_string_lossy().contains("inotify")))
            .count()
    };
    for _ in 0..200 {
        workspace.wait_for_more(&now, Duration::ZERO).unwrap();
    }
    assert!(watches() < 100);
}

#[test]
fn the_timeline_is_paged_by_where_the_page_before_ended() {
    let world = World::new();
    world.write("a", "0");
    let agent = piton_testkit::Agent::new(&world, "s1");
    for turn in 0..9 {
        agent.edits(&format!("turn {turn}"), &["a"], |world| {
            world.write("a", turn.to_string());
        });
    }
    world.capture();
    world.rewind("t3");
    let workspace = world.open();
    let page = |before: Option<Cursor>, limit| {
        workspace.timeline(&TimelineOptions { before, limit, ..TimelineOptions::default() }).unwrap()
    };
    let json = |entries: &[piton_engine::view::LogEntry]| serde_json::to_string(entries).unwrap();
    let whole = page(None, None);
    assert!(whole.next.is_none() && whole.older == 0);
    for size in 1..=whole.total + 1 {
        let (mut before, mut entries) = (None, Vec::new());
        loop {
            let one = page(before, Some(size));
            assert_eq!(one.total, whole.total);
            entries.extend(one.entries);
            assert_eq!(one.older, whole.total - entries.len() as u64);
            before = one.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(json(&entries), json(&whole.entries), "in pages of {size}");
    }
    let second = page(None, Some(2)).next.unwrap();
    let other = Cursor { generation: second.generation + 1, ..second };
    let again = page(Some(other), Some(2));
    assert!(again.begin_again);
    assert_eq!(json(&again.entries), json(&whole.entries[..2]));
}
