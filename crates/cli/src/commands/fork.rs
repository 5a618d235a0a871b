//! `piton fork`: a branch of the conversation on purpose, beside what goes on.

use std::io::{self, Write};
use std::path::PathBuf;

use piton_engine::ForkOptions;
use piton_engine::view::{ForkOutcome, WorktreeView};
use piton_wording::conversation::say_prompt;
use piton_wording::escape::{escape, escape_path};
use piton_wording::lines::Lines;
use piton_wording::owners::Names;
use piton_wording::{Call, Failure, Place, call, skipped};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::conversation;
use crate::environment::{Surroundings, say_recovered};
use crate::progress::with_progress;

/// Make a branch of the conversation without leaving the current one
///
/// The branch is a new session of the agent that ends just before the turn, with an id of its own. The files stay as
/// they are, and so does the conversation that you are in.
///
/// With `--worktree`, the code of that moment is laid out in another folder, so that you can try two approaches side
/// by side. The folder is made whole or not at all; it becomes a workspace of its own, and the agent continues the
/// branch there. It has the checkpoint's files: no .git, and nothing that was skipped, such as node_modules.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where the branch begins: t5 (just before turn 5), t5.end, or a checkpoint between two turns
    target: String,
    /// A name for the branch
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Lay out the code of that moment in this folder, which must be empty or not exist
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    worktree: Option<PathBuf>,
    /// Also make that folder a worktree of git, with HEAD detached at the commit of that moment
    ///
    /// It is made with `git worktree add`; none of your branches moves, and `git status` there shows how the files
    /// differ from that commit. `git worktree remove` removes it.
    #[arg(long, requires = "worktree")]
    git: bool,
    /// Copy the prompt of that turn to the clipboard
    #[arg(long)]
    copy: bool,
    /// Start the agent in the branch
    #[arg(long, conflicts_with = "json")]
    resume: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton fork t5                              try turn 5 another way
  piton fork t5 --name \"with a queue\" --resume
  piton fork t5 --worktree ../shop-queue     in a folder of its own
  piton fork t5 --worktree ../shop-queue --git
  piton fork t5 --json | jq -r .conversation.agent_id";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let mut workspace = surroundings.open(console)?;
    let worktree = args.worktree.as_ref().map(|folder| surroundings.here.join(folder));
    let options = ForkOptions { name: args.name.clone(), worktree, git: args.git };
    let progress = workspace.progress();
    let said = workspace.recovered().len();
    let forked = with_progress(console, &progress, "Forking", || workspace.fork(&args.target, &options));
    say_recovered(console, &workspace.recovered()[said..]);
    let forked = forked?;
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print_done(&forked, |out, look| write(out, look, args, &forked, &names))?;
    if !console.is_json() {
        console.say_with(|out, look| write_rest(out, look, &forked));
    }
    conversation::go_on(console, forked.outcome.conversation.as_ref(), args.copy, args.resume, "fork")
}

/// What was made.
fn write(out: &mut dyn Write, look: &Look, args: &Args, forked: &ForkOutcome, names: &Names) -> io::Result<()> {
    let session = forked.outcome.conversation.as_ref().and_then(|done| done.session.as_ref());
    let target = escape(&args.target);
    match (session, &args.name) {
        (Some(id), Some(name)) => {
            let id = look.paint.id(names.session(id));
            writeln!(out, "forked {target} as session {id} \"{}\"", escape(name))?;
        }
        (Some(id), None) => writeln!(out, "forked {target} as session {}", look.paint.id(names.session(id)))?,
        (None, _) => {
            writeln!(out, "forked {target}: nothing was said before it, so the conversation starts over")?;
        }
    }
    if let Some(WorktreeView { path, verified, git, .. }) = &forked.worktree {
        let end = if *verified { look.paint.good("verified") } else { look.paint.warn("changed again since") };
        writeln!(out, "its code is in {}; {end}", escape_path(path))?;
        if let Some(commit) = git {
            let commit = look.paint.id(commit.get(..10).unwrap_or(commit));
            writeln!(out, "it is a worktree of git's, HEAD detached at {commit}")?;
        }
    }
    Ok(())
}

/// How to go on.
fn write_rest(out: &mut dyn Write, look: &Look, forked: &ForkOutcome) -> io::Result<()> {
    let paint = look.paint;
    if let Some(worktree) = &forked.worktree {
        if !worktree.skipped.is_empty() {
            let text = format!("not there, because not captured: {}", skipped::summary(&worktree.skipped));
            writeln!(out, "{}", paint.dim(text))?;
        }
        if let Some(problem) = &worktree.git_problem {
            writeln!(out, "{} it is not a worktree of git's: {}", paint.warn("warning:"), escape(problem))?;
        }
        if let Some(problem) = &worktree.problem {
            writeln!(out, "{} it is not a workspace yet: {}", paint.warn("warning:"), escape(problem))?;
            writeln!(
                out,
                "{} the folder and the branch are whole; {} there tries again",
                paint.id("hint:"),
                look.text(Call { place: Place::Anywhere, ..call("checkpoint") })
            )?;
        }
    }
    let Some(done) = &forked.outcome.conversation else { return Ok(()) };
    match conversation::resume_line(done) {
        Some(command) => {
            writeln!(out, "go on with it:")?;
            writeln!(out, "  {}", paint.bold(escape(&command)))?;
        }
        None if done.session.is_none() => writeln!(out, "start a new session of the agent there")?,
        None => {}
    }
    if let Some(prompt) = &done.prompt {
        writeln!(out, "the prompt of turn {}, to edit and send again:", done.turn)?;
        let mut lines = Lines::default();
        say_prompt(&mut lines, prompt, usize::MAX);
        look.write(out, &lines)?;
    }
    Ok(())
}
