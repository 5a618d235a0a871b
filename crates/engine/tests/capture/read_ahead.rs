//! A capture that has too little time, and what is read ahead for the next one.

use std::time::{Duration, Instant};

use piton_engine::model::event::Event;
use piton_engine::view::Observed;
use piton_engine::{Ahead, AheadOptions, ObserveOptions};
use piton_host::fail;
use piton_testkit::{Agent, World};

/// So that every slice is the first file of each thread.
const SHORTEST: AheadOptions = AheadOptions { slice: Duration::ZERO, at_most: Duration::from_secs(600) };

/// A world with files that are not young any more when it is read.
fn world(files: usize) -> World {
    let world = World::new();
    for n in 0..files {
        world.write(format!("dir{}/file{n}", n % 7), format!("{n} ").repeat(200));
    }
    world.write("large", vec![3; 3 << 20]);
    std::thread::sleep(Duration::from_millis(50));
    world.open();
    world
}

/// A prompt for which there is so much time.
fn observe(world: &World, time: Duration) -> Observed {
    let deadline = Some(Instant::now() + time);
    let options = ObserveOptions { deadline, embedded: true, ..ObserveOptions::default() };
    let report = Agent::new(world, "s1").report(None, Event::Prompt { text: "x".into() });
    world.engine.observe(&report, &options).unwrap().0
}

fn checkpoints(world: &World) -> u64 {
    world.open().log(Default::default()).unwrap().total
}

#[test]
fn what_was_read_ahead_need_not_be_read_by_a_capture_and_is_no_checkpoint() {
    let world = world(60);
    let before = world.snapshot();
    let late = observe(&world, Duration::ZERO);
    assert!(late.out_of_time && late.checkpoint.is_none() && late.gap.is_some(), "{late:?}");
    assert_eq!(world.engine.read_ahead(&world.ws(), SHORTEST).unwrap(), Ahead::Whole);
    assert_eq!(checkpoints(&world), 0, "nobody captures for an event that has passed");
    // There is no time to read a single file, and none is needed.
    let captured = observe(&world, Duration::ZERO);
    assert!(!captured.out_of_time && captured.gap.is_none(), "{captured:?}");
    let checkpoint = captured.checkpoint.unwrap();
    assert_eq!(checkpoint.changes.created, 61);
    world.remove("dir3").remove("large").write("dir1/file1", "other");
    world.rewind(checkpoint.id.as_str());
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn changes_that_were_read_ahead_have_the_owners_that_they_would_have_had() {
    let world = world(0);
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.before("c1", "Bash", &[]);
    std::thread::sleep(Duration::from_millis(20));
    for n in 0..10 {
        world.write(format!("made{n}"), "by the shell");
    }
    std::thread::sleep(Duration::from_millis(20));
    world.engine.read_ahead(&world.ws(), SHORTEST).unwrap();
    agent.after("c1");
    agent.end_turn();
    let turns = agent.turns();
    assert_eq!(turns[0].files.len(), 10, "{turns:#?}");
    assert!(turns[0].unsure.is_empty() && turns[0].yours.is_empty(), "{turns:#?}");
}

#[test]
fn captures_that_have_time_for_a_part_only_come_to_an_end() {
    let world = world(3_000);
    let before = world.snapshot();
    assert!(observe(&world, Duration::ZERO).out_of_time);
    // Each keeps what it read, however little that is.
    let captured =
        (0..2_000).map(|_| observe(&world, Duration::from_millis(60))).find(|observed| !observed.out_of_time);
    let checkpoint = captured.expect("they never come to an end").checkpoint.unwrap();
    assert_eq!(checkpoints(&world), 1);
    world.remove("dir5");
    world.rewind(checkpoint.id.as_str());
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn it_may_be_killed_anywhere() {
    for step in 1.. {
        let world = world(5);
        let before = world.snapshot();
        let done = fail::with(step, || world.engine.read_ahead(&world.ws(), SHORTEST).unwrap());
        world.assert_sound();
        assert_eq!(checkpoints(&world), 0);
        let id = world.capture();
        world.remove("dir1").write("large", "small");
        world.rewind(&id);
        world.assert_is(&before);
        world.assert_sound();
        if done.is_some() {
            assert!(step > 10, "only {step} points");
            break;
        }
    }
}

#[test]
fn only_one_at_a_time_reads_ahead() {
    let world = world(5);
    let held = std::fs::File::create(world.open().store_folder().join("ahead")).unwrap();
    held.lock().unwrap();
    assert_eq!(world.engine.read_ahead(&world.ws(), SHORTEST).unwrap(), Ahead::Busy);
    drop(held);
    assert_eq!(world.engine.read_ahead(&world.ws(), SHORTEST).unwrap(), Ahead::Whole);
}

#[test]
fn a_folder_that_is_gone_or_another_one_is_left_alone() {
    let world = world(5);
    world.capture();
    // Not beside it, where the store would follow it.
    let far = world.base().join("far");
    std::fs::create_dir(&far).unwrap();
    std::fs::rename(world.ws(), far.join("elsewhere")).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    world.write("other", "folder");
    assert_eq!(world.engine.read_ahead(&world.ws(), SHORTEST).unwrap(), Ahead::Nothing);
    assert_eq!(checkpoints(&world), 1);
}
