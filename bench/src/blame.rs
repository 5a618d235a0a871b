//! Blame of a file with a long history: piton's checkpoints compared with the same versions committed to git.
//!
//! Git twice, since both occur in practice: with loose objects, as in a shadow repository, and after `gc`, as in most
//! project repositories.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::peers::BenchFolders;
use crate::prng::Prng;
use crate::process::{self, Timed, millis, settle};
use crate::report::{Figure, Goal, Row, Section, Unit, thousands};
use crate::scale::Scale;
use crate::tree::Tree;
use crate::{Result, context, say, text};

/// Lines of the file.
const LINES: usize = 5_000;
const VERSIONS: usize = 300;
/// Number of other files.
const BESIDE: usize = 1_000;
/// The file, relative to the workspace.
const FILE: &str = "src/long.rs";
/// Two line diffs need not agree on every line that occurs several times.
const AGREEMENT: f64 = 0.98;

/// The commands of this scenario.
struct Commands<'a> {
    place: &'a BenchFolders,
    piton: &'a Path,
    /// The two git repositories: loose, and after `gc`.
    gits: [PathBuf; 2],
}

impl Commands<'_> {
    fn piton(&self, args: &[&str]) -> Result<Timed<Vec<u8>>> {
        let mut command = process::command(self.piton, &self.place.workspace, &self.place.home);
        command.env("PITON_HOME", self.place.root.join("piton-home")).env("NO_COLOR", "1").args(args);
        process::run(command)
    }

    fn git(&self, repository: usize, args: &[&str]) -> Result<Timed<Vec<u8>>> {
        let mut command = process::command("git", &self.place.workspace, &self.place.home);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_DIR", &self.gits[repository]).env("GIT_WORK_TREE", &self.place.workspace).args(args);
        process::run(command)
    }
}

pub fn run(place: &BenchFolders, piton: &Path, rounds: usize, scale: Scale, seed: u64) -> Result<Section> {
    say("blame: writing the tree");
    let (length, count, beside) = (scale.of(LINES), scale.of(VERSIONS), scale.of(BESIDE));
    Tree::plan(seed, beside).write(&place.workspace)?;
    let gits = [place.root.join("git-loose"), place.root.join("git-gc")];
    let commands = Commands { place, piton, gits };
    commands.git(0, &["init", "-q"])?;
    for (key, value) in
        [("gc.auto", "0"), ("maintenance.auto", "false"), ("user.name", "bench"), ("user.email", "b@example.invalid")]
    {
        commands.git(0, &["config", key, value])?;
    }

    say(&format!("blame: {count} versions"));
    let mut rng = Prng::new(seed, u64::MAX - 2);
    let mut lines = first_version(&mut rng, length);
    let file = place.workspace.join(FILE);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(context(folder))?;
    }
    // The number of the version that a checkpoint or a commit contains.
    let mut versions: HashMap<String, usize> = HashMap::new();
    for version in 0..count {
        if version > 0 {
            edit(&mut rng, &mut lines, version);
        }
        fs::write(&file, lines.concat()).map_err(context(&file))?;
        let answer: Value = serde_json::from_slice(&commands.piton(&["checkpoint", "--json"])?.value)?;
        let id = answer.pointer("/checkpoint/id").and_then(Value::as_str);
        versions.insert(id.ok_or("piton's answer names no checkpoint")?.to_owned(), version);
        commands.git(0, &["add", "-A"])?;
        commands.git(0, &["commit", "-q", "-m", "x"])?;
        let commit = String::from_utf8(commands.git(0, &["rev-parse", "HEAD"])?.value)?;
        versions.insert(commit.trim().to_owned(), version);
    }
    let mut copy = process::command("cp", &place.root, &place.home);
    copy.arg("-r").args(&commands.gits);
    process::run(copy)?;
    commands.git(1, &["gc", "-q"])?;
    check(&commands, &versions, length)?;

    say("blame: measuring");
    let mut samples = vec![Vec::new(); 3];
    for round in 0..rounds {
        for index in (0..3).map(|position| (position + round) % 3) {
            settle()?;
            let ran = match index {
                0 => commands.piton(&["blame", FILE])?,
                other => commands.git(other - 1, &["blame", FILE])?,
            };
            samples[index].push(millis(ran.took));
        }
    }
    let labels = ["piton", "git blame", "git blame, after gc"];
    let row = Row {
        name: "blame of the file".to_owned(),
        unit: Unit::Millis,
        figures: labels.into_iter().zip(samples).map(|(label, samples)| Figure::new(label, samples)).collect(),
        // Half of git's speed: at most twice its time.
        goal: Goal::TimesFaster(0.5),
        seeds_limit: None,
    };
    Ok(Section {
        name: "blame".to_owned(),
        title: format!(
            "blame: a file of {} lines with {count} versions, {} files beside it",
            thousands(&length.to_string()),
            thousands(&beside.to_string())
        ),
        rows: vec![row],
    })
}

fn first_version(rng: &mut Prng, length: usize) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    while lines.len() < length {
        let more = text::source(rng, 100_000);
        lines.extend(more.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).map(Vec::from));
    }
    lines.truncate(length);
    lines
}

/// What an agent's step does to a file: a few places, some lines each; the length stays.
fn edit(rng: &mut Prng, lines: &mut Vec<Vec<u8>>, version: usize) {
    let length = lines.len();
    for place in 0..3 {
        let at = rng.below(lines.len() - 10);
        let count = 1 + rng.below(5);
        let new = (0..count).map(|n| format!("    let v{version}_{place}_{n} = {};\n", text::name(rng)).into_bytes());
        let new: Vec<_> = new.collect();
        lines.splice(at..at + 1 + rng.below(5), new);
    }
    lines.resize_with(length, || format!("// version {version}\n").into_bytes());
}

/// A fast wrong answer would be worthless: both must agree on nearly every line.
fn check(commands: &Commands<'_>, versions: &HashMap<String, usize>, length: usize) -> Result<()> {
    let answer: Value = serde_json::from_slice(&commands.piton(&["blame", FILE, "--json"])?.value)?;
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let origins: Vec<Option<usize>> = list("origins")
        .iter()
        .map(|origin| origin["checkpoint"].as_str().and_then(|id| versions.get(id)).copied())
        .collect();
    let pitons: Vec<Option<usize>> = list("lines")
        .iter()
        .map(|line| origins.get(usize::try_from(line["origin"].as_u64()?).ok()?).copied().flatten())
        .collect();
    let blame = String::from_utf8_lossy(&commands.git(1, &["blame", "-l", "-s", "--root", FILE])?.value).into_owned();
    let gits: Vec<Option<usize>> =
        blame.lines().map(|line| versions.get(line.split(' ').next().unwrap_or_default()).copied()).collect();
    let same = pitons.iter().zip(&gits).filter(|(a, b)| a == b && a.is_some()).count();
    let share = same as f64 / length as f64;
    if (pitons.len(), gits.len()) != (length, length) || share < AGREEMENT {
        let (a, b) = (pitons.len(), gits.len());
        return Err(format!("piton and git agree on {same} lines only; piton has {a}, git has {b}").into());
    }
    say(&format!("blame: piton and git agree on {:.1} % of the lines", share * 100.0));
    Ok(())
}
