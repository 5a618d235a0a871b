//! Measures piton against its peers on trees of several sizes.
//!
//! stdout is the report, stderr is progress. Exit code 0 even if a target is missed: this is a report. 1 if a contender
//! failed, or a restored workspace was not what it should be.

mod args;
mod attic;
mod big;
mod blame;
mod disk;
mod edits;
mod fingerprint;
mod goals;
mod hook;
mod machine;
mod peers;
mod prng;
mod process;
mod readme;
mod report;
mod rounds;
mod scale;
mod text;
mod tree;
mod undo;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::LazyLock;
use std::time::Instant;
use std::{env, fs, io};

use serde_json::{Value, json};

use crate::args::Args;
use crate::machine::Machine;
use crate::peers::{BenchFolders, Contender, Git, Piton, Style};
use crate::report::Section;
use crate::rounds::{Bench, Rounds};
use crate::scale::Scale;
use crate::tree::Tree;

/// A result whose error is only ever displayed.
pub type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Every tree of every run is generated from this.
const SEED: u64 = 0x0070_6974_6f6e;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let args = Args::parse(env::args_os().skip(1))?;
    if args.help {
        print!("{}", args::HELP);
        return Ok(());
    }
    if !args.table.is_empty() {
        let read = |file: &PathBuf| Ok(serde_json::from_slice(&fs::read(file).map_err(context(file))?)?);
        let runs: Vec<Value> = args.table.iter().map(read).collect::<Result<_>>()?;
        print!("{}", readme::table(&runs));
        return Ok(());
    }
    let piton = fs::canonicalize(&args.piton).map_err(context(&args.piton))?;
    let scratch = Scratch::create(args.keep.as_deref())?;
    let machine = Machine::look(&scratch.path);

    if args.trial {
        say("in miniature: the figures say nothing about speed");
    }
    let sections = measure(&args, &piton, &scratch.path)?;
    print!("{}", report::text(&machine, &sections));
    if let Some(folder) = args.json.parent() {
        fs::create_dir_all(folder).map_err(context(folder))?;
    }
    fs::write(&args.json, report::json(&machine, &made(&args)?, &sections)?).map_err(context(&args.json))?;
    say(&format!("all figures: {}", args.json.display()));
    Ok(())
}

/// How the figures were made: what was measured, of which piton, and when.
fn made(args: &Args) -> Result<Value> {
    let said = |program: &Path, arg: &str| -> Result<String> {
        let mut command = Command::new(program);
        command.arg(arg);
        Ok(String::from_utf8_lossy(&process::run(command)?.value).trim().to_owned())
    };
    Ok(json!({
        "piton": said(&args.piton, "--version")?,
        "day": said(Path::new("date"), "+%F")?,
        "arguments": env::args().skip(1).filter(|arg| arg.starts_with("--")).collect::<Vec<_>>(),
    }))
}

/// All trees; `rounds` says why housekeeping comes after all of them.
fn measure(args: &Args, piton: &Path, scratch: &Path) -> Result<Vec<Section>> {
    let scale = if args.trial { Scale::TRIAL } else { Scale::FULL };
    let mut benches = Vec::new();
    let mut large = Vec::new();
    for name in &args.trees {
        let place = BenchFolders::create(scratch.join(name))?;
        match files(name) {
            Some(files) => {
                let (mut bench, title) = prepare(name, files, rounds(name, args), &place, piton)?;
                bench.run()?;
                benches.push((*name, title, bench));
            }
            None if *name == "hook" => {
                let rounds = rounds(name, args).others;
                large.extend(hook::run(&place, piton, rounds, scale, SEED)?);
            }
            None if *name == "undo" => {
                let rounds = rounds(name, args).others;
                large.push(undo::run(&place, piton, rounds, scale, SEED)?);
            }
            None if *name == "blame" => {
                let rounds = rounds(name, args).others;
                large.push(blame::run(&place, piton, rounds, scale, SEED)?);
            }
            None => {
                let style = benches.last().map_or(Style::WriteTree, |(_, _, bench)| faster_style(bench));
                large.push(big::run(&place, piton, style, scale, SEED)?);
            }
        }
    }
    for (_, _, bench) in &mut benches {
        bench.housekeeping()?;
    }
    let section = |(name, title, bench): &(&str, String, Bench)| {
        // The targets are for the trees where time is noticeable.
        let rows = goals::rows(bench, *name != "1k");
        Section { name: (*name).to_owned(), title: title.clone(), rows }
    };
    Ok(benches.iter().map(section).chain(large).collect())
}

/// Writes the tree and sets up the contenders.
fn prepare(
    name: &'static str,
    files: usize,
    rounds: Rounds,
    place: &BenchFolders,
    piton: &Path,
) -> Result<(Bench, String)> {
    say(&format!("{name}: writing the tree"));
    let tree = Tree::plan(SEED, files);
    tree.write(&place.workspace)?;
    let contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Piton::new(piton, place)),
        Box::new(Git::new(Style::WriteTree, place)),
        Box::new(Git::new(Style::Commit, place)),
    ];
    let count = |number: usize| report::thousands(&number.to_string());
    let (files, folders) = (count(tree.files.len()), count(tree.folders.len()));
    let title = format!("{name}: {files} files in {folders} folders, {:.0} MB", disk::megabytes(tree.bytes()));
    Ok((Bench::new(name, contenders, place, &tree, rounds), title))
}

/// How many files a tree has; `None` for what is not about a whole tree.
fn files(name: &str) -> Option<usize> {
    match name {
        "1k" => Some(1_000),
        "12k" => Some(12_000),
        "100k" => Some(100_000),
        _ => None,
    }
}

fn rounds(name: &str, args: &Args) -> Rounds {
    if args.trial {
        return Rounds { first: 1, turns: 2, others: 1, whole_tree_restores: 1 };
    }
    let full = match name {
        "100k" => Rounds { first: 1, turns: 50, others: 7, whole_tree_restores: 1 },
        _ => Rounds { first: 3, turns: 50, others: 15, whole_tree_restores: 3 },
    };
    if !args.quick {
        return full;
    }
    // The turns stay: the disk row states their number, and they are quick.
    Rounds { first: 1, turns: full.turns, others: 5, whole_tree_restores: 2 }
}

/// Judged by the most common action, a capture after a few edits.
fn faster_style(bench: &Bench) -> Style {
    let edits = &bench.measured().ten_edits;
    if report::median(&edits[2]) < report::median(&edits[1]) { Style::Commit } else { Style::WriteTree }
}

/// The folder that everything happens in; removed at the end unless it is to be kept.
struct Scratch {
    path: PathBuf,
    _removed: Option<tempfile::TempDir>,
}

impl Scratch {
    fn create(keep: Option<&Path>) -> Result<Self> {
        let (path, removed) = match keep {
            Some(folder) => {
                fs::create_dir_all(folder).map_err(context(folder))?;
                (folder.to_owned(), None)
            }
            None => {
                let parent = env::var_os("PITON_BENCH_DIR").map_or_else(env::temp_dir, PathBuf::from);
                fs::create_dir_all(&parent).map_err(context(&parent))?;
                let folder =
                    tempfile::Builder::new().prefix("piton-bench-").tempdir_in(&parent).map_err(context(&parent))?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        // Contenders run in the workspace, so a relative path would mean another folder to them.
        Ok(Self { path: fs::canonicalize(&path).map_err(context(&path))?, _removed: removed })
    }
}

/// Progress, with the seconds since the first line.
pub fn say(what: &str) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    eprintln!("{:4} s  {what}", START.elapsed().as_secs());
}

/// Adds to an I/O error which path it is about.
pub fn context(path: &Path) -> impl FnOnce(io::Error) -> Box<dyn Error + Send + Sync> + use<> {
    let path = path.to_owned();
    move |error| format!("`{}`: {error}", path.display()).into()
}
