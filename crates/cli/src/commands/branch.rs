//! `piton branch`: what a person makes of branches.

mod compare;

use std::io::{self, Write};

use piton_agents::Agents;
use piton_engine::model::target::meant_age;
use piton_engine::model::{Rank, When};
use piton_engine::view::{BranchDeletion, SessionView, Sessions};
use piton_engine::{DeleteOptions, Workspace};
use piton_wording::escape::escape;
use piton_wording::owners::Names;
use piton_wording::sessions::{left_at, title};
use piton_wording::words::plural;
use piton_wording::{Code, Failure, Style, Text, call, did_you_mean, flag, text, warning, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::operate::someone_to_ask;
use crate::table::ShownText;
use crate::tree;

/// List, rename, delete, promote and compare branches of a conversation
///
/// Rewinding a conversation makes a branch, and so does `piton fork`. Refer to a branch by its name, the beginning of
/// its id, or the agent's own id of it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    act: Option<Act>,
}

const EXAMPLES: &str = "\
Examples:
  piton branch                               as a tree; `branch list --all` adds deleted ones
  piton branch rename kmzq \"with a queue\"
  piton branch compare kmzq lmno --patch
  piton branch promote kmzq                  the main line from now on; what it left is archived
  piton branch delete kmzq lmno
  piton branch delete --older-than 30d --preview
  piton branch restore kmzq";

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// List branches below the sessions that they left; `piton branch` alone does the same
    List(List),
    /// Give a session a name
    Rename(Rename),
    /// Delete branches; their transcripts go to piton's trash, their checkpoints stay
    ///
    /// Only branches can be deleted: never a session that the agent itself began, nor the one that you are in, nor
    /// one with branches of its own unless you delete those too. `piton branch restore` brings one back.
    Delete(Delete),
    /// Bring a deleted branch back
    Restore(One),
    /// Make a branch the main line, and archive the lines that it comes from
    ///
    /// Nothing is moved or deleted: it is a mark that every list shows. To reverse it, promote the old line again.
    Promote(One),
    /// Compare two sessions: where they parted, their turns since, and how their files differ
    Compare(compare::Args),
}

#[derive(Debug, clap::Args)]
struct List {
    /// Include deleted branches
    #[arg(long)]
    all: bool,
}

#[derive(Debug, clap::Args)]
struct Rename {
    /// The session
    session: String,
    /// Its new name
    name: String,
}

#[derive(Debug, clap::Args)]
struct One {
    /// The session
    session: String,
}

#[derive(Debug, clap::Args)]
struct Delete {
    /// The branches
    #[arg(value_name = "SESSION", required_unless_present = "older_than")]
    sessions: Vec<String>,
    /// All branches in which nothing has happened for this long: 30d, 12h
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    preview: bool,
    /// Do not ask
    #[arg(short, long, conflicts_with = "preview")]
    yes: bool,
}

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let mut workspace = Surroundings::read(global)?.open(console)?;
    match &args.act {
        None => list(&workspace, false, console),
        Some(Act::List(args)) => list(&workspace, args.all, console),
        Some(Act::Rename(args)) => rename(&mut workspace, args, console),
        Some(Act::Delete(args)) => delete(&mut workspace, args, console),
        Some(Act::Restore(args)) => restore(&mut workspace, args, console),
        Some(Act::Promote(args)) => promote(&mut workspace, args, console),
        Some(Act::Compare(args)) => compare::run(args, &workspace, console),
    }
}

/// Only branches are data; a person is shown the sessions that they left too.
fn list(workspace: &Workspace, all: bool, console: &mut Console) -> Result<(), Failure> {
    let mut sessions = workspace.sessions()?.sessions;
    sessions.retain(|session| all || session.rank != Rank::Deleted);
    let is_branch = |session: &&SessionView| session.origin.is_some();
    let branches = Sessions { sessions: sessions.iter().filter(is_branch).cloned().collect() };
    let is_left = |session: &SessionView| {
        branches.sessions.iter().any(|branch| branch.origin.as_ref().is_some_and(|origin| origin.parent == session.id))
    };
    sessions.retain(|session| session.origin.is_some() || is_left(session));
    console.print(&branches, |out, look| tree::write(out, look, &sessions))?;
    if branches.sessions.is_empty() {
        console.advise(text![
            "there is no branch here; ",
            call("fork").arg("t5"),
            " and ",
            call("rewind").arg("t5"),
            " make one"
        ]);
    }
    Ok(())
}

fn rename(workspace: &mut Workspace, args: &Rename, console: &mut Console) -> Result<(), Failure> {
    let renamed = workspace.rename_session(&args.session, &args.name)?;
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print_done(&renamed, |out, look| {
        let id = look.paint.id(names.session(&renamed.session.id));
        writeln!(out, "session {id} is called \"{}\"", escape(&args.name))
    })?;
    say_untold(console, &renamed.untold);
    Ok(())
}

fn promote(workspace: &mut Workspace, args: &One, console: &mut Console) -> Result<(), Failure> {
    let promoted = workspace.promote(&args.session)?;
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print_done(&promoted, |out, look| {
        let id = look.paint.id(names.session(&promoted.session.id));
        if promoted.already {
            return writeln!(out, "session {id} is the main line already");
        }
        writeln!(out, "session {id} is the main line")?;
        let archived = promoted.archived.iter();
        archived.into_iter().try_for_each(|one| writeln!(out, "archived {}", line(look, one, &names)))
    })?;
    say_untold(console, &promoted.untold);
    if !promoted.already && !console.is_json() {
        say_next(console, &promoted.session, &names);
    }
    Ok(())
}

/// How to go on in the main line: promoting moves neither files nor anybody.
fn say_next(console: &mut Console, session: &SessionView, names: &Names) {
    let format = Agents::default().transcripts(&session.agent);
    let resume = format.and_then(|format| format.resume_command(&session.agent_id));
    if let Some(resume) = resume.filter(|_| session.transcript.is_some()) {
        console.say("go on with it:");
        console.say(text!["  ", Text::new(Style::Bold, resume.join(" "))]);
    }
    if session.turns > 0 {
        let end = format!("{}:t{}.end", names.session(&session.id), session.turns);
        let rewind = call("rewind").arg(end).with("--scope", "code");
        console.say(text!["the files stay as they are; ", rewind, " makes them what it left"]);
    }
}

fn delete(workspace: &mut Workspace, args: &Delete, console: &mut Console) -> Result<(), Failure> {
    let older_than = args.older_than.as_deref().map(age).transpose()?;
    let plan = workspace.plan_delete(&DeleteOptions { sessions: args.sessions.clone(), older_than })?;
    let names = Names::of(&workspace.sessions()?.sessions);
    if args.preview || plan.branches.is_empty() {
        return console.print(&plan, |out, look| write_deletion(out, look, &plan, &names));
    }
    if !args.yes {
        someone_to_ask(console)?;
        console.say_with(|out, look| write_deletion(out, look, &plan, &names));
        if !console.ask(&format!("Delete {}?", branches(plan.branches.len()))) {
            return Err(Failure::declined());
        }
    }
    // Exactly those that were shown: time has gone on since.
    let sessions = plan.branches.iter().map(|branch| branch.id.to_string()).collect();
    let done = workspace.delete_branches(&DeleteOptions { sessions, older_than: None })?;
    let done = BranchDeletion { stay: plan.stay, ..done };
    console.print_done(&done, |out, look| write_deletion(out, look, &done, &names))?;
    say_untold(console, &done.untold);
    console.advise(text![call("branch").arg("restore").asking("SESSION"), " brings one back; the checkpoints stay"]);
    Ok(())
}

fn write_deletion(out: &mut dyn Write, look: &Look, deletion: &BranchDeletion, names: &Names) -> io::Result<()> {
    if deletion.branches.is_empty() {
        writeln!(out, "nothing to delete: no branch that may be deleted is that old")?;
    }
    let word = if deletion.done { "deleted" } else { "would delete" };
    for branch in &deletion.branches {
        writeln!(out, "{word} {}", line(look, branch, names))?;
    }
    for stays in &deletion.stay {
        let id = names.session(&stays.session);
        writeln!(out, "{}", look.paint.dim(format!("{id} stays: {}", escape(&stays.why))))?;
    }
    Ok(())
}

fn restore(workspace: &mut Workspace, args: &One, console: &mut Console) -> Result<(), Failure> {
    let restored = workspace.restore_branch(&args.session)?;
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print_done(&restored, |out, look| writeln!(out, "restored {}", line(look, &restored.session, &names)))?;
    say_untold(console, &restored.untold);
    Ok(())
}

/// `kmzq  add a login form (branch)  rewind at t3, 2 min ago`.
fn line(look: &Look, session: &SessionView, names: &Names) -> String {
    let id = look.paint.id(names.session(&session.id));
    let title = title(session).cut(look, look.width.saturating_sub(48).clamp(16, 60)).painted;
    let from = session.origin.as_ref().map(|origin| {
        let left = left_at(origin, false);
        look.paint.dim(format!("  {left}, {}", words::age(origin.at, &look.now)))
    });
    format!("{id}  {title}{}", from.unwrap_or_default())
}

fn branches(count: usize) -> String {
    if count == 1 { "1 branch".to_owned() } else { format!("{} branches", words::grouped(count as u64)) }
}

fn age(typed: &str) -> Result<i64, Failure> {
    match typed.parse() {
        Ok(When::Age(ms)) => Ok(ms),
        _ => Err(Failure::user(Code::Arguments, format!("`{typed}` is not an age"))
            .hints(meant_age(typed).and_then(|age| did_you_mean(&[age.to_string()])))
            .hint(text!["an age is a number and s, m, h or d, as in ", flag("--older-than").arg("30d")])),
    }
}

fn say_untold(console: &mut Console, untold: &[String]) {
    if untold.is_empty() {
        return;
    }
    let places: Vec<_> = untold.iter().map(|path| escape(path)).collect();
    let count = plural(untold.len() as u64, "other workspace");
    let places = places.join(", ");
    console.say(warning(format!("{count} could not be told, where it may be listed as before: {places}")));
}
