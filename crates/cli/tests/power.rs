//! The power goes at any moment of a capture, a rewind, a redo, a recovery or a rebuild: what real processes did to the disk
//! is recorded, and everything that the disk may hold afterwards is opened and judged (`piton_testkit::power`).
//!
//! `PITON_POWER_STATES=N` tries N different states of each recording, `PITON_POWER_SECONDS=N` as many as N seconds give.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use piton_testkit::power::{Cut, Effect, Event, Recorder, Survives};
use piton_testkit::{Dice, World};

fn recorder(what: &str) -> Option<Recorder> {
    Recorder::new(what, env!("CARGO_BIN_EXE_piton"))
}

fn project(world: &World) {
    world.write("same", "same").write("edited", "before").write("deleted", "deleted").write("dir/x", "x");
    world.write("dir/sub/y", "y").link("link", "same").write("large", text(1, 30_000));
}

/// A bit of everything that can happen to it.
fn agent_at_work(world: &World) {
    world.write("edited", "after").remove("deleted").remove("dir").write("added/p", "p").write("new", "new");
    world.remove("link").link("link", "edited").write("large", text(2, 30_000));
}

/// Only files in one folder, so that each is synced for itself.
fn agent_at_work_on_files(world: &World) {
    world.write("edited", "after").remove("deleted").write("new", "new").write("large", text(2, 30_000));
}

/// Text that does not pack well.
fn text(seed: u64, length: usize) -> String {
    let mut dice = Dice::new(seed);
    (0..length).map(|_| char::from(b'a' + dice.below(26) as u8)).collect()
}

fn checkpoint(recorder: &mut Recorder, sync: bool) -> String {
    let args: &[&str] = if sync { &["checkpoint", "--sync", "--json"] } else { &["checkpoint", "--json"] };
    let said: serde_json::Value = serde_json::from_str(&recorder.run(args, sync)).unwrap();
    said["checkpoint"]["id"].as_str().unwrap().to_owned()
}

/// A project with a checkpoint of it, some time ago.
fn begin(recorder: &mut Recorder) -> String {
    recorder.edit(project);
    let id = checkpoint(recorder, true);
    recorder.settle();
    id
}

#[test]
fn a_power_cut_at_the_first_contact_leaves_nothing_or_all() {
    let Some(mut recorder) = recorder("power cuts at the first contact") else { return };
    recorder.edit(project);
    checkpoint(&mut recorder, true);
    recorder.edit(agent_at_work);
    checkpoint(&mut recorder, false);
    let (recorded, _kept) = recorder.finish();
    recorded.explore("first contact", 1);
}

#[test]
fn a_power_cut_during_captures_takes_none_that_was_synced() {
    let Some(mut recorder) = recorder("power cuts during captures") else { return };
    begin(&mut recorder);
    for round in 0..6_u64 {
        recorder.edit(|world| {
            world.write("edited", format!("round {round}")).write("large", text(round, 20_000));
            world.write(format!("new/{round}"), text(round, 600));
        });
        checkpoint(&mut recorder, round == 3);
    }
    recorder.run(&["log"], false);
    let (recorded, _kept) = recorder.finish();
    recorded.explore("captures", 2);
}

/// Enough events for the database's log to be folded into it.
#[test]
fn a_power_cut_during_the_events_of_an_agent_takes_none_that_was_synced() {
    let Some(mut recorder) = recorder("power cuts during the events of an agent") else { return };
    begin(&mut recorder);
    let cwd = recorder.world().ws();
    let mut folded = 0;
    for turn in 0..10_u64 {
        for event in ["prompt", "before-tool", "after-tool", "turn-ended"] {
            if event == "after-tool" {
                recorder.edit(|world| {
                    for file in 0..30 {
                        world.write(format!("made/{file}"), text(turn * 100 + file, 300));
                    }
                });
            }
            let report = serde_json::json!({
                "event": event, "session": "s", "cwd": cwd, "turn": format!("p{turn}"), "text": "do it", "tool": "shell",
                "call": format!("c{turn}"), "command": "make"
            });
            let from = recorder.recorded().recording.events.len();
            recorder.run_with(&["hook", "generic"], report.to_string().as_bytes(), false);
            folded += usize::from(is_folded(&recorder, from));
        }
        if turn == 2 {
            checkpoint(&mut recorder, true);
        }
    }
    assert!(folded > 0, "the database's log was never folded");
    let (recorded, _kept) = recorder.finish();
    recorded.explore("events", 3);
}

/// Whether a log of a database was cut to nothing.
fn is_folded(recorder: &Recorder, from: usize) -> bool {
    let recording = &recorder.recorded().recording;
    let is_log =
        |inode: usize| recording.live.names.iter().any(|((_, name), to)| *to == inode && name.ends_with(b"-wal"));
    recording.events[from..]
        .iter()
        .any(|event| matches!(event, Event::Effect(Effect::Length(file, 0)) if is_log(*file)))
}

fn rewind_and_redo(name: &str, seed: u64, work: fn(&World), is_captured_first: bool) {
    let Some(mut recorder) = recorder(&format!("power cuts during {name}")) else { return };
    let id = begin(&mut recorder);
    recorder.edit(work);
    if is_captured_first {
        checkpoint(&mut recorder, false);
    }
    recorder.run(&["rewind", &id, "--yes"], true);
    recorder.run(&["redo", "--yes"], true);
    let (recorded, _kept) = recorder.finish();
    let explored = recorded.explore(name, seed);
    assert!(explored.old > 0 && explored.new > 0, "{explored:?}");
}

#[test]
fn a_power_cut_during_a_rewind_or_a_redo_leaves_the_old_or_the_new_tree() {
    rewind_and_redo("a rewind of files and folders", 4, agent_at_work, true);
}

#[test]
fn a_power_cut_during_a_rewind_or_a_redo_of_files_leaves_the_old_or_the_new_tree() {
    rewind_and_redo("a rewind of files", 5, agent_at_work_on_files, false);
}

/// The power goes in the middle of a rewind, and again while the next process ends that.
#[test]
fn a_power_cut_during_a_recovery_leaves_the_old_or_the_new_tree() {
    for seed in 0..5 {
        let Some(mut recorder) = recorder("power cuts during a recovery") else { return };
        let id = begin(&mut recorder);
        recorder.edit(agent_at_work);
        checkpoint(&mut recorder, false);
        recorder.run(&["rewind", &id, "--yes"], true);
        let phase = recorder.recorded().phases.len() - 1;
        let disk = cut_in_the_middle(&recorder, phase, seed);
        let allowed = recorder.cut(phase, &disk);
        recorder.run_among(&["log"], b"", false, &allowed);
        recorder.run(&["checkpoint"], false);
        let (recorded, _kept) = recorder.finish();
        recorded.explore("recovery", 100 + seed);
    }
}

/// A disk after a power cut in the middle of a rewind's renames.
fn cut_in_the_middle(recorder: &Recorder, phase: usize, seed: u64) -> piton_testkit::power::Disk {
    let recorded = recorder.recorded();
    let recording = &recorded.recording;
    let phase = &recorded.phases[phase];
    let is_rename =
        |at: &usize| matches!(&recording.events[*at], Event::Effect(Effect::Names(slots)) if slots.len() == 2);
    let renames: Vec<usize> = (phase.began..phase.ended).filter(is_rename).collect();
    assert!(renames.len() > 3, "{renames:?}");
    let mut dice = Dice::new(seed);
    // Once all of them are done and nothing else was, a recovery goes forward.
    let (at, survives) = match seed {
        0 => (renames[renames.len() - 1] + 1, Survives::Everything),
        _ => (*dice.one_of(&renames) + 1, Survives::Chance { seed, of_16: 10, torn: [0, 1, 8][seed as usize % 3] }),
    };
    let cut = Cut { at, survives };
    recording.after_cut(cut.at, |event, sector| cut.keeps(recording, event, sector))
}

/// The power goes after captures that were not synced; what the next process makes of that is cut off too.
#[test]
fn a_power_cut_while_the_traces_of_one_are_cleared_up_takes_nothing_more() {
    for seed in 0..5 {
        let Some(mut recorder) = recorder("power cuts while the traces of one are cleared up") else { return };
        begin(&mut recorder);
        for round in 0..3_u64 {
            recorder.edit(|world| {
                world.write("edited", text(round, 5_000));
            });
            checkpoint(&mut recorder, false);
        }
        let recorded = recorder.recorded();
        let at = recorded.phases.last().unwrap().ended;
        let cut = Cut { at, survives: Survives::Chance { seed, of_16: 11, torn: 1 } };
        let disk = recorded.recording.after_cut(at, |event, sector| cut.keeps(&recorded.recording, event, sector));
        let phase = recorded.phases.len() - 1;
        let allowed = recorder.cut(phase, &disk);
        recorder.run_among(&["log"], b"", false, &allowed);
        recorder.edit(|world| {
            world.write("new", "new");
        });
        checkpoint(&mut recorder, seed % 2 == 0);
        recorder.edit(|world| {
            world.write("new", "newer");
        });
        checkpoint(&mut recorder, false);
        let (recorded, _kept) = recorder.finish();
        recorded.explore("clearing up", 200 + seed);
    }
}

#[test]
fn a_power_cut_during_a_rebuild_takes_nothing() {
    type Damage = fn(&World);
    let damages: [(&str, Damage); 3] = [
        ("the database is gone", |world| {
            database(world).into_iter().for_each(|file| std::fs::remove_file(file).unwrap())
        }),
        ("the database's log is gone", |world| {
            let logs = database(world).into_iter().filter(|file| file.to_string_lossy().ends_with("-wal"));
            logs.for_each(|file| std::fs::remove_file(file).unwrap());
        }),
        ("the database is no database", |world| {
            let files = database(world).into_iter().filter(|file| file.to_string_lossy().ends_with(".db"));
            files.for_each(|file| std::fs::write(file, "not a database").unwrap());
        }),
    ];
    for (seed, (what, damage)) in damages.into_iter().enumerate() {
        let Some(mut recorder) = recorder("power cuts during a rebuild") else { return };
        begin(&mut recorder);
        recorder.edit(agent_at_work);
        checkpoint(&mut recorder, false);
        recorder.edit(|world| {
            world.write("new", "newer");
        });
        checkpoint(&mut recorder, true);
        recorder.edit(damage);
        recorder.run(&["log"], true);
        recorder.edit(|world| {
            world.write("new", "newest");
        });
        checkpoint(&mut recorder, false);
        recorder.run(&["verify"], false);
        let (recorded, _kept) = recorder.finish();
        recorded.explore(what, 300 + seed as u64);
    }
}

/// The files of the database of the only store.
fn database(world: &World) -> Vec<std::path::PathBuf> {
    let stores = std::fs::read_dir(world.base().join("home/workspaces")).unwrap();
    let store = stores.map(|entry| entry.unwrap().path()).next().unwrap();
    let files = std::fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.file_name().unwrap().to_string_lossy().starts_with("view-")).collect()
}
