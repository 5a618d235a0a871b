//! The timeline: what a limit leaves out, and what is too much to list.

use piton_engine::model::event::{Event, Report, ToolCall};
use piton_engine::model::{Counts, WorkspacePath};
use piton_engine::view::{LogEntry, Timeline};
use piton_engine::{CaptureOptions, ChangesOptions, ObserveOptions, TimelineOptions};
use piton_testkit::World;

/// More than a checkpoint lists.
const MANY: u64 = 5_200;

fn tell(world: &World, session: &str, event: Event) {
    let report = Report {
        agent: "test".into(),
        session: session.into(),
        cwd: Some(world.ws()),
        transcript: None,
        prompt_id: None,
        subagent: None,
        event,
    };
    let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
    world.engine.observe(&report, &options).unwrap();
}

fn prompt(world: &World, session: &str, text: &str) {
    tell(world, session, Event::Prompt { text: text.into() });
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall { id: Some(id.into()), tool: tool.into(), summary: tool.into(), ..ToolCall::default() }
}

fn end(world: &World, session: &str) {
    tell(world, session, Event::TurnEnded { failed: false, message: None, background: false });
}

fn make_many(world: &World, folder: &str) {
    std::fs::create_dir_all(world.ws().join(folder)).unwrap();
    for number in 0..MANY {
        std::fs::write(world.ws().join(format!("{folder}/{number}")), "").unwrap();
    }
}

fn timeline(world: &World, options: &TimelineOptions) -> Timeline {
    world.open().timeline(options).unwrap()
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn a_limit_shows_the_newest_of_the_same_entries_whatever_else_is_asked_for() {
    let world = World::new();
    std::fs::write(world.ws().join("a"), "0").unwrap();
    for round in 0..3 {
        for session in ["one", "two"] {
            tell(&world, session, Event::SessionStarted { source: None });
            prompt(&world, session, &format!("{session} {round}"));
            tell(&world, session, Event::BeforeTool(call(&format!("c{round}"), "Bash")));
            std::fs::write(world.ws().join("a"), format!("{session} {round}")).unwrap();
            std::fs::write(world.ws().join(format!("{session}{round}")), "").unwrap();
            tell(&world, session, Event::AfterTool(call(&format!("c{round}"), "Bash")));
            end(&world, session);
        }
        std::fs::write(world.ws().join("mine"), format!("{round}")).unwrap();
        world.open().capture(&CaptureOptions::default()).unwrap();
    }
    let session = world.open().sessions().unwrap().sessions[0].id.clone();
    let asked = [
        TimelineOptions::default(),
        TimelineOptions { session: Some(session), ..TimelineOptions::default() },
        TimelineOptions { paths: vec![WorkspacePath::new(b"a".to_vec()).unwrap()], ..TimelineOptions::default() },
        TimelineOptions { paths: vec![WorkspacePath::new(b"mine".to_vec()).unwrap()], ..TimelineOptions::default() },
    ];
    for asked in asked {
        let all = timeline(&world, &asked);
        assert_eq!(all.total, all.entries.len() as u64);
        assert!(all.total >= 3, "{all:?}");
        for limit in 0..=all.total {
            let some = timeline(&world, &TimelineOptions { limit: Some(limit), ..asked.clone() });
            assert_eq!(some.total, all.total);
            assert_eq!(json(&some.entries), json(&&all.entries[..usize::try_from(limit).unwrap()]));
            let is_known = |id: &_| all.sessions.iter().any(|one| one.id == *id);
            assert!(some.sessions.iter().all(|one| is_known(&one.id)));
        }
    }
}

#[test]
fn what_is_too_much_to_list_is_counted_for_whoever_made_it() {
    let world = World::new();
    std::fs::write(world.ws().join("a"), "0").unwrap();
    prompt(&world, "one", "first");
    end(&world, "one");
    make_many(&world, "yours");
    prompt(&world, "one", "second");
    tell(&world, "one", Event::BeforeTool(call("c1", "Bash")));
    make_many(&world, "its");
    tell(&world, "one", Event::AfterTool(call("c1", "Bash")));
    tell(&world, "one", Event::BeforeTool(call("c2", "Bash")));
    make_many(&world, "whose");
    // No word of the end of the call.
    prompt(&world, "one", "third");
    let turns: Vec<_> = timeline(&world, &TimelineOptions::default())
        .entries
        .into_iter()
        .filter_map(|entry| if let LogEntry::Turn(turn) = entry { Some(*turn) } else { None })
        .collect();
    let many = Counts { created: MANY, ..Counts::default() };
    assert_eq!((turns[1].yours_unlisted, turns[1].changes), (many, many));
    assert!(turns[1].unsure_unlisted.is_empty());
    assert_eq!((turns[0].yours_unlisted, turns[0].unsure_unlisted), (Counts::default(), many));
    let changes = world.open().changes(&ChangesOptions { session: None, all: true }).unwrap();
    assert_eq!((changes.unlisted, changes.yours_unlisted), (many, many));
}
