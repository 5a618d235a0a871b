//! Undo of one turn in the middle of a long session, compared with a rewind of the same files.
//!
//! The peers have nothing like it: theirs is all or nothing. So piton is measured against itself.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::hook::Hook;
use crate::peers::BenchFolders;
use crate::prng::Prng;
use crate::process::{self, millis, settle};
use crate::report::{Figure, Goal, Row, Section, Unit, thousands};
use crate::scale::Scale;
use crate::tree::Tree;
use crate::{Result, context, say};

const FILES: usize = 12_000;
const TURNS: usize = 500;
/// Files that the undone turn edits, and nobody after it.
const UNDONE: usize = 10;

pub fn run(place: &BenchFolders, piton: &Path, rounds: usize, scale: Scale, seed: u64) -> Result<Section> {
    say("undo: writing the tree");
    let (files, turns) = (scale.of(FILES), scale.of(TURNS));
    let middle = turns / 2;
    let tree = Tree::plan(seed, files);
    tree.write(&place.workspace)?;
    let mut hook = Hook::new(piton, place);
    let mut rng = Prng::new(seed, u64::MAX - 3);
    let paths: Vec<&str> = tree.files.iter().filter_map(|file| file.path.to_str()).collect();
    let (chosen, others) = paths.split_at(UNDONE);

    say(&format!("undo: a session of {turns} turns"));
    for turn in 1..=turns {
        let edited: Vec<&str> =
            if turn == middle { chosen.to_vec() } else { (0..2).map(|_| others[rng.below(others.len())]).collect() };
        let named = |path: &str| {
            json!({ "prompt_id": format!("p{turn}"), "tool_use_id": format!("{turn}-{path}"),
            "tool_input": { "file_path": place.workspace.join(path) } })
        };
        hook.report(
            "UserPromptSubmit",
            "",
            json!({ "prompt": format!("turn {turn}"), "prompt_id": format!("p{turn}") }),
        )?;
        for path in edited {
            hook.report("PreToolUse", "Edit", named(path))?;
            let whole = place.workspace.join(path);
            let mut bytes = fs::read(&whole).map_err(context(&whole))?;
            bytes.extend_from_slice(format!("turn {turn}\n").as_bytes());
            fs::write(&whole, bytes).map_err(context(&whole))?;
            hook.report("PostToolUse", "Edit", named(path))?;
        }
        hook.report("Stop", "", json!({ "prompt_id": format!("p{turn}") }))?;
    }

    say("undo: measuring");
    let turn = format!("t{middle}");
    let undo = vec!["undo", &turn, "--yes"];
    let mut rewind = vec!["rewind", &turn, "--yes"];
    for path in chosen {
        rewind.extend(["--path", path]);
    }
    let mut samples = vec![Vec::new(); 2];
    for round in 0..rounds {
        for index in (0..2).map(|position| (position + round) % 2) {
            settle()?;
            let ran = piton_run(&hook, [&undo, &rewind][index])?;
            samples[index].push(ran);
            let text = fs::read(place.workspace.join(chosen[0]))?;
            if text.ends_with(format!("turn {middle}\n").as_bytes()) {
                return Err("the turn was not taken back".into());
            }
            piton_run(&hook, &["redo", "--yes"])?;
        }
    }
    let row = Row {
        name: format!("undo of turn {middle} of {turns}, {UNDONE} files"),
        unit: Unit::Millis,
        figures: ["piton", "rewind of the files"]
            .into_iter()
            .zip(samples)
            .map(|(label, samples)| Figure::new(label, samples))
            .collect(),
        // Half of its speed: at most twice its time.
        goal: Goal::TimesFaster(0.5),
        seeds_limit: None,
    };
    Ok(Section {
        name: "undo".to_owned(),
        title: format!("undo: one turn in the middle of a session, {} files", thousands(&files.to_string())),
        rows: vec![row],
    })
}

fn piton_run(hook: &Hook, args: &[&str]) -> Result<f64> {
    let mut command = process::command(&hook.program, &hook.place.workspace, &hook.place.home);
    command.env("PITON_HOME", &hook.store).args(args);
    Ok(millis(process::run(command)?.took))
}
