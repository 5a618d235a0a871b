//! `piton export`: a session as one file, or checkpoints as git commits.

mod archive;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use piton_engine::view::{CopyView, Exported, PathView};
use piton_engine::{ExportOptions, ExportWhat, IntoTarget};
use piton_wording::escape::{escape, escape_path, escape_view};
use piton_wording::{Code, Failure, Style, call, flag, text, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::files;
use crate::paths::resolve;

/// Write a session to one file, or checkpoints to git as commits
///
/// With a session it writes an archive: one file with its turns, its checkpoints and every file in them, names,
/// notes, the transcript, and for a branch the turns that it shares with its parent. `piton import` reads it into the
/// store of another workspace, here or on another machine. Anyone who has the file can read all of it.
///
/// With `--git` it makes commits. What is or was ignored and is not tracked (`.env`, keys), what a git filter changes
/// (git-crypt, LFS), and copies of such files, even renamed and edited ones, are left out and listed; `--include` adds
/// what you name. A checkpoint becomes one commit without a parent. With `--session`, the session's first state becomes
/// a commit, then each turn, and your own edits between turns as commits of their own, for `git log -p`, `git blame` or
/// `git bisect`. The same checkpoints with the same files left out become the same commits. HEAD, the index and your
/// files stay as they are; only the branch is made.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The session: the beginning of its id, or its name. With `--git` the checkpoint: an id or its beginning, a name, a turn
    /// such as t3, an age such as 10m, or start
    #[arg(value_name = "SESSION|TARGET", required_unless_present = "session", conflicts_with = "session")]
    target: Option<String>,
    /// The file to write [default: session-ID.piton in the current folder, or beside the workspace if that contains
    /// it]; - for stdout
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "git")]
    output: Option<PathBuf>,
    /// All turns of a session: the beginning of its id, or its name
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// The branch to make
    #[arg(long, value_name = "BRANCH")]
    git: Option<String>,
    /// Another repository than the one around the workspace; if there is none, a bare one is made
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, requires = "git")]
    into: Option<PathBuf>,
    /// Include this file or folder, which would be left out otherwise; may be given several times
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath, requires = "git")]
    include: Vec<OsString>,
    /// Replace the file or branch if it exists; never a branch that is checked out
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton export kmzq                      to session-kmzqwxyz.piton, beside the workspace
  piton export kmzq -o - | ssh host 'cat > s.piton'
  piton export t5 --git before-t5        then `git diff main before-t5`
  piton export --session kmzq --git agent/kmzq
  git log -p agent/kmzq                  the session, turn by turn
  piton export start --git start --into ../copy.git

Git holds no empty folders, and of permission bits only the executable one: the rest is left out, and the output says so.";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let Some(reference) = &args.git else { return archive::run(args, global, console) };
    let surroundings = Surroundings::read(global)?;
    let workspace = surroundings.open(console)?;
    let what = match (&args.target, &args.session) {
        (_, Some(session)) => ExportWhat::Session(session.clone()),
        (Some(target), None) => ExportWhat::Checkpoint(target.into_target()?),
        (None, None) => return Err(Failure::user(Code::Arguments, "an export needs a checkpoint or a session")),
    };
    let include = args.include.iter().map(|path| resolve(workspace.path(), &surroundings.here, path));
    let include = include.collect::<Result<_, _>>()?;
    let (reference, into) = (reference.clone(), args.into.clone());
    let options = ExportOptions { what, reference, include, into, force: args.force };
    let exported = workspace.export_git(&options)?;
    console.print_done(&exported, |out, look| write(out, look, &exported))?;
    if !console.is_json() {
        console.say_with(|out, look| write_remarks(out, look, &exported));
    }
    Ok(())
}

/// The commits, and how to look at them.
fn write(out: &mut dyn Write, look: &Look, exported: &Exported) -> io::Result<()> {
    let short = |commit: &str| commit.get(..10).unwrap_or(commit).to_owned();
    let shown = look.lines(files::ON_A_TERMINAL).min(exported.commits.len());
    if exported.commits.len() > 1 {
        for commit in &exported.commits[..shown] {
            writeln!(out, "{} {}", look.paint.id(short(&commit.commit)), escape(&commit.subject))?;
        }
        files::write_rest(out, look, "", exported.commits.len() - shown)?;
    }
    let name = exported.reference.strip_prefix("refs/heads/").unwrap_or(&exported.reference);
    let made = if exported.made { ", which was made for it" } else { "" };
    writeln!(
        out,
        "{} at {} in {}{made}: {}, read back",
        escape(name),
        look.paint.id(short(&exported.commit)),
        escape_path(&exported.repository),
        words::plural(exported.commits.len() as u64, "commit"),
    )
}

/// What stayed out, and what git could not hold.
fn write_remarks(out: &mut dyn Write, look: &Look, exported: &Exported) -> io::Result<()> {
    let note = look.paint.warn("note:");
    let filtered = "a filter of git's changes them (git-crypt, LFS), and piton runs none";
    let unwatched = "git is told not to look at them (skip-worktree, assume-unchanged) and has something else there";
    let copied = "what they hold was in one of those at some time, or they are an edited copy";
    let lines = |paths: &[PathView]| paths.iter().map(escape_view).collect::<Vec<_>>();
    let from = |copy: &CopyView| format!("{} (from {})", escape_view(&copy.path), escape_view(&copy.from));
    let stayed = [
        (lines(&exported.ignored), "git ignores them, or did at some checkpoint"),
        (lines(&exported.filtered), filtered),
        (lines(&exported.unwatched), unwatched),
        (exported.copies.iter().map(from).collect(), copied),
    ];
    for (paths, why) in stayed {
        if paths.is_empty() {
            continue;
        }
        let include = flag("--include").asking("PATH");
        writeln!(out, "{note} left out, because {why}; {} takes one in:", look.text(include))?;
        let shown = look.lines(files::ON_A_TERMINAL).min(paths.len());
        paths[..shown].iter().try_for_each(|path| writeln!(out, "  {path}"))?;
        files::write_rest(out, look, "  ", paths.len() - shown)?;
    }
    if !exported.without.is_empty() {
        let turns: Vec<_> = exported.without.iter().map(|turn| format!("t{turn}")).collect();
        writeln!(out, "{note} nothing was captured in {}, so there is no commit", turns.join(", "))?;
    }
    if let Some(first) = exported.empty_folders.first() {
        let count = words::plural(exported.empty_folders.len() as u64, "empty folder");
        writeln!(out, "{note} git holds no empty folders: {count} left out, such as {}", escape_view(first))?;
    }
    if exported.other_modes > 0 {
        let count = words::plural(exported.other_modes, "file");
        writeln!(out, "{note} git holds only the executable bit: {count} with other permission bits")?;
    }
    if exported.skipped_count > 0 {
        let count = words::plural(exported.skipped_count, "path");
        let text = text!["not captured, so not in it: ", count, "; ", call("show").asking("TARGET"), " lists them"];
        writeln!(out, "{}", look.text(text.in_style(Style::Dim)))?;
    }
    Ok(())
}
