//! The hook as an agent calls it before each tool, compared with the same event handled by a shadow git repository; and
//! an event that needs no capture, compared with an empty process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;

use crate::attic::Attic;
use crate::edits::Editor;
use crate::peers::{BenchFolders, Contender, Git, Style};
use crate::process::{self, millis, settle};
use crate::report::{Figure, Goal, Row, Section, Unit, thousands};
use crate::scale::Scale;
use crate::tree::Tree;
use crate::{Result, context, say};

/// Files of the workspace.
const FILES: usize = 12_000;

/// Piton's hook with its own store.
pub struct Hook {
    pub program: PathBuf,
    pub place: BenchFolders,
    pub store: PathBuf,
    calls: u32,
}

impl Hook {
    /// A hook that has not been called yet.
    pub fn new(program: &Path, place: &BenchFolders) -> Self {
        Self { program: program.to_owned(), place: place.clone(), store: place.root.join("piton-home"), calls: 0 }
    }

    /// Reports an event as Claude Code does; returns how long it took, in milliseconds.
    pub fn report(&mut self, event: &str, tool: &str, more: serde_json::Value) -> Result<f64> {
        self.calls += 1;
        let mut payload = json!({
            "session_id": "bench-session", "cwd": self.place.workspace, "prompt_id": "bench-prompt",
            "hook_event_name": event, "tool_name": tool, "tool_use_id": format!("call-{}", self.calls),
            "tool_input": { "command": "make", "description": "Build" },
        });
        if let (Some(all), Some(more)) = (payload.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        let file = self.place.root.join("payload.json");
        fs::write(&file, payload.to_string()).map_err(context(&file))?;
        let mut command = process::command(&self.program, &self.place.workspace, &self.place.home);
        command.env("PITON_HOME", &self.store).args(["hook", "claude-code"]);
        let input = fs::File::open(&file).map_err(context(&file))?;
        let ran = process::run_with(command, Stdio::from(input))?;
        Ok(millis(ran.took))
    }

    /// The number of checkpoints: a hook that failed silently would be fast for the wrong reason.
    fn checkpoints(&self) -> Result<u64> {
        let mut command = process::command(&self.program, &self.place.workspace, &self.place.home);
        command.env("PITON_HOME", &self.store).args(["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&process::run(command)?.value)?;
        status["checkpoints"].as_u64().ok_or_else(|| format!("no count of checkpoints in {status}").into())
    }
}

pub fn run(place: &BenchFolders, piton: &Path, rounds: usize, scale: Scale, seed: u64) -> Result<Vec<Section>> {
    say("hook: writing the tree");
    let files = scale.of(FILES);
    let tree = Tree::plan(seed, files);
    tree.write(&place.workspace)?;
    let mut editor = Editor::new(&place.workspace, &tree, Attic::new(place.root.join("attic")));
    let mut hook = Hook::new(piton, place);
    let mut gits = [Git::new(Style::WriteTree, place), Git::new(Style::Commit, place)];
    for git in &mut gits {
        git.start_anew()?;
        git.first_capture()?;
    }
    hook.report("UserPromptSubmit", "", json!({ "prompt": "build it" }))?;

    let mut rows = Vec::new();
    for (name, edits) in [("before a tool, nothing changed", 0), ("before a tool, 10 edits", 10)] {
        say(&format!("hook: {name}"));
        let mut samples = vec![Vec::new(); 3];
        let before = hook.checkpoints()?;
        for round in 0..rounds {
            editor.edit(edits)?;
            for index in (0..3).map(|position| (position + round) % 3) {
                settle()?;
                samples[index].push(match index {
                    0 => hook.report("PreToolUse", "Bash", json!({}))?,
                    other => millis(gits[other - 1].capture()?.took),
                });
            }
        }
        if hook.checkpoints()? != before + rounds as u64 {
            return Err("the hook did not make a checkpoint each time".into());
        }
        let labels = ["piton", gits[0].label(), gits[1].label()];
        rows.push(row(name, &labels, samples, Goal::None));
    }
    let title = format!("hook: the event before a tool, {} files", thousands(&files.to_string()));
    let captures = Section { name: "hook".into(), title, rows };

    say("hook: an event without a capture");
    let mut samples = vec![Vec::new(); 2];
    for round in 0..rounds * 3 {
        for index in (0..2).map(|position| (position + round) % 2) {
            samples[index].push(match index {
                0 => hook.report("PreToolUse", "Read", json!({}))?,
                _ => millis(process::run(process::command("true", &place.workspace, &place.home))?.took),
            });
        }
    }
    // A quarter of the empty process's speed: at most four times its time.
    let idle = row("an event without a capture", &["piton", "empty process"], samples, Goal::TimesFaster(0.25));
    Ok(vec![captures, Section { name: "hook".into(), title: "hook: what costs nothing".into(), rows: vec![idle] }])
}

fn row(name: &str, labels: &[&'static str], samples: Vec<Vec<f64>>, goal: Goal) -> Row {
    Row {
        name: name.to_owned(),
        unit: Unit::Millis,
        figures: labels.iter().zip(samples).map(|(label, samples)| Figure::new(label, samples)).collect(),
        goal,
        seeds_limit: None,
    }
}
