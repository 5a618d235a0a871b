//! How the commands that change files go: plan, show, ask, do. Rewind, undo and redo differ only in what they plan.

mod ask;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use piton_engine::model::{Except, Target};
use piton_engine::view::{Diff, OperationOutcome, PathView, PlanView, RunningView};
use piton_engine::{
    Carry, OperationError, Plan, Policy, RedoOptions, Refusal, RewindOptions, Settle, UndoOptions, Workspace,
};
use piton_wording::escape::escape_view;
use piton_wording::lines::Lines;
use piton_wording::owners::Names;
use piton_wording::plan::{self, Around};
use piton_wording::{Call, Code, Failure, call, flag, note, text};

use serde::Serialize;

pub use self::ask::someone_to_ask;
use self::ask::{Agreed, Decision, also, decide, refused, was_interrupted, yes_or_keep, yes_or_no};
use crate::console::{Console, Look};
use crate::environment::say_recovered;
use crate::hunks;
use crate::inside::{Inside, only_in_terminal, shown_before};
use crate::patch;
use crate::progress::with_progress;
use crate::signals::Signals;
use crate::titles;
use crate::waiting;

/// Equal lines around each difference.
const CONTEXT: u32 = 3;

/// The flags of each.
#[derive(Debug, Default, clap::Args)]
pub struct GoArgs {
    /// Show what would change, and change nothing
    #[arg(long)]
    pub preview: bool,
    /// Also show the contents of what would change
    #[arg(long, conflicts_with = "yes")]
    pub diff: bool,
    /// Ask about each change by itself, as `git add -p` does; with --yes nothing is asked after that
    #[arg(short, long, conflicts_with = "preview")]
    pub patch: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Also touch files outside the workspace that the agent's tools named
    #[arg(long)]
    pub outside: bool,
    /// If the agent is at work, wait until its turn has ended, then go on
    #[arg(long, conflicts_with_all = ["interrupted", "preview"])]
    pub wait: bool,
    /// Wait at most this long: 90s, 10m, 2h [default: 30m]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = waiting::time)]
    pub wait_at_most: Option<Duration>,
    /// The agent's turn was interrupted and will not continue; piton cannot always see that
    #[arg(long)]
    pub interrupted: bool,
}

impl GoArgs {
    /// Lets nobody be asked, for a command that was typed to an agent: it is done, unless only the plan is wanted.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        if self.diff && !self.preview {
            let because = "which shows the contents and asks";
            return Err(only_in_terminal("--diff", because)
                .hint(text![flag("--preview").arg("--diff"), " shows them and changes nothing"]));
        }
        if self.patch {
            return Err(only_in_terminal("--patch", "which asks about each change").hint(text![
                flag("--preview").arg("--diff"),
                " shows the changes; ",
                flag("--except").asking("PATH"),
                " leaves one of the files as it is"
            ]));
        }
        self.yes |= !self.preview;
        Ok(())
    }

    /// What they mean, for a command that was typed.
    pub fn way(&self, command: Call) -> Way {
        let how = match (self.preview, self.patch, self.yes) {
            (true, ..) => How::Preview,
            (false, false, true) => How::Yes,
            (false, true, _) | (false, _, false) => How::Ask,
        };
        let patch = self.patch.then_some(if self.yes { Patch::ThenDo } else { Patch::ThenAsk });
        let command = if self.patch { command.arg("--patch") } else { command };
        let wait = self.wait.then(|| self.wait_at_most.unwrap_or(waiting::AT_MOST));
        Way { how, diff: self.diff, patch, wait, all_workspaces: false, command }
    }
}

/// How it goes.
#[derive(Clone, Debug)]
pub struct Way {
    /// Whether somebody is asked.
    pub how: How,
    /// Show contents with the plan.
    pub diff: bool,
    /// Ask about each change by itself.
    pub patch: Option<Patch>,
    /// How long to wait at most for an agent that is at work; not at all where none.
    pub wait: Option<Duration>,
    /// The session's other workspaces go back too.
    pub all_workspaces: bool,
    /// What was typed, for hints.
    pub command: Call,
}

/// Whether somebody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Only show.
    Preview,
    /// Show, and ask.
    Ask,
    /// Do it.
    Yes,
    /// Do it unless that takes something from others.
    Careful,
}

/// What follows when each change was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    ThenAsk,
    ThenDo,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    Rewind { target: Target, options: RewindOptions },
    Undo(UndoOptions),
    Redo(RedoOptions),
}

impl Act {
    fn plan(&self, workspace: &Workspace) -> Result<Plan, OperationError> {
        match self {
            Self::Rewind { target, options } => workspace.plan_rewind(target, options),
            Self::Undo(options) => workspace.plan_undo(options),
            Self::Redo(options) => workspace.plan_redo(options),
        }
    }

    fn now(&self, workspace: &mut Workspace) -> Result<OperationOutcome, OperationError> {
        match self {
            Self::Rewind { target, options } => workspace.rewind_now(target, options),
            Self::Undo(options) => workspace.undo_now(options),
            Self::Redo(options) => workspace.redo_now(options),
        }
    }

    /// What agents are at that it is about.
    pub fn running(&self, workspace: &Workspace) -> Result<Vec<RunningView>, OperationError> {
        match self {
            Self::Rewind { target, options } => workspace.running_at_rewind(target, options),
            Self::Undo(options) => workspace.running_at_undo(options),
            Self::Redo(options) => workspace.running_at_redo(options),
        }
    }

    fn doing(&self) -> &'static str {
        match self {
            Self::Rewind { .. } => "Rewinding",
            Self::Undo(_) => "Undoing",
            Self::Redo(_) => "Redoing",
        }
    }

    fn settle(&self) -> &Settle {
        match self {
            Self::Rewind { options, .. } => &options.settle,
            Self::Undo(options) => &options.settle,
            Self::Redo(options) => &options.settle,
        }
    }

    /// Whose edits are carried over.
    fn carries(&self) -> Carry {
        match self {
            Self::Rewind { options, .. } => options.carry,
            Self::Undo(_) | Self::Redo(_) => Carry::Nothing,
        }
    }

    /// The failure of it. An undo or a redo cannot insist on another folder; a rewind to a state of it can.
    pub fn failed(&self, error: OperationError, command: &Call) -> Failure {
        match (self, error) {
            (Self::Undo(_) | Self::Redo(_), OperationError::OtherFolder { path, state }) => {
                let what = if matches!(self, Self::Redo(_)) { "what this would" } else { "what was there last" };
                let hint = state.as_ref().map(|id| {
                    let back = call("rewind").arg(id.short()).arg("--across");
                    text![back, " brings back ", what]
                });
                Failure::from(OperationError::OtherFolder { path, state })
                    .hints(hint)
                    .hint(text![call("log"), " lists the checkpoints of the folder that was here"])
            }
            (_, error) => Failure::of_operation(error, command),
        }
    }
}

/// What `--preview --json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    plan: &'a PlanView,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<&'a Diff>,
}

/// Why it was not done.
enum Stopped {
    /// An agent is at work.
    Running(Vec<RunningView>),
    /// Anything else.
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Does it; none where it was only shown. `beside` is called with the plan before that is shown.
pub fn carry_out(
    console: &mut Console,
    workspace: &mut Workspace,
    act: &Act,
    way: &Way,
    signals: &Signals,
    mut beside: impl FnMut(&mut Console, &PlanView),
) -> Result<Option<OperationOutcome>, Failure> {
    let until = way.wait.map(|at_most| Instant::now() + at_most);
    loop {
        if let (Some(until), Some(at_most)) = (until, way.wait) {
            waiting::until_idle(console, workspace, act, way, signals, (until, at_most))?;
        }
        let said = workspace.recovered().len();
        let done = go(console, workspace, act, way, &mut beside);
        // What another process left half done while this one waited for the lock is ended first, whatever comes of this.
        say_recovered(console, &workspace.recovered()[said..]);
        match done {
            Ok(done) => return Ok(done),
            // The agent went on between the waiting and the lock.
            Err(Stopped::Running(_)) if until.is_some_and(|until| Instant::now() < until) => {}
            Err(Stopped::Running(running)) => {
                return Err(match way.wait {
                    Some(at_most) => waiting::timed_out(running, way, at_most),
                    None => act.failed(OperationError::Running(running), &way.command),
                });
            }
            Err(Stopped::Failed(failure)) => return Err(failure),
        }
    }
}

/// Does it without waiting for anybody.
fn go(
    console: &mut Console,
    workspace: &mut Workspace,
    act: &Act,
    way: &Way,
    beside: &mut impl FnMut(&mut Console, &PlanView),
) -> Result<Option<OperationOutcome>, Stopped> {
    let progress = workspace.progress();
    let Way { how, command, .. } = way;
    let how = *how;
    let stopped = |error: OperationError| match error {
        OperationError::Running(running) => Stopped::Running(running),
        error => Stopped::Failed(act.failed(error, command)),
    };
    let agreed_to = if how == How::Yes { shown_before() } else { None };
    if how == How::Yes && agreed_to.is_none() {
        let done = with_progress(console, &progress, act.doing(), || act.now(workspace));
        return done.map(Some).map_err(|error| {
            if let OperationError::Conflict(conflicts) = &error {
                let conflicts: Vec<_> = conflicts.iter().map(Into::into).collect();
                console.say_with(|out, look| {
                    let mut lines = Lines::default();
                    plan::say_conflicts(&mut lines, &look.room(), &conflicts, false);
                    look.write(out, &lines)
                });
            }
            stopped(error)
        });
    }
    let plan = with_progress(console, &progress, "Planning", || act.plan(workspace));
    let mut plan = plan.map_err(stopped)?;
    // What cannot be planned at all is said first.
    if way.patch.is_some() {
        hunks::someone_to_ask(console)?;
    } else if how == How::Ask {
        someone_to_ask(console)?;
    }
    let policy = if how == How::Careful { Policy::Careful } else { Policy::Anything };
    let mut refusal = if how == How::Preview { None } else { workspace.refusal(&plan, policy) };
    if let Some(Refusal::Running { running, can_be_interrupted }) = refusal {
        // While a tool runs nobody is asked: it may be writing to the very files.
        if how != How::Ask || !can_be_interrupted || !was_interrupted(console, workspace, &running)? {
            return Err(Stopped::Running(running));
        }
        plan.count_as_interrupted();
        refusal = workspace.refusal(&plan, policy);
    }
    let view = plan.view().clone();
    let view = &view;
    beside(console, view);
    let diff = if way.diff { Some(workspace.plan_diff(&plan, CONTEXT).map_err(Failure::from)?) } else { None };
    let mut around = around(workspace, console, how == How::Preview, act.settle().partial)?;
    around.all_workspaces = way.all_workspaces;
    around.carry = act.carries();
    if how == How::Preview {
        let shown = Shown { plan: view, diff: diff.as_ref() };
        console.print(&shown, |out, look| write_plan(out, look, view, &around, diff.as_ref()))?;
        return Ok(None);
    }
    if agreed_to.is_some_and(|shown| shown != view.fingerprint.to_string()) {
        console.say_with(|out, look| write_plan(out, look, view, &around, diff.as_ref()));
        let failure = Failure::user(Code::Stale, "the plan is another one by now; nothing was changed");
        let can_say_yes = Inside::of_process().is_some_and(|inside| inside.may_say_yes(&view.fingerprint.to_string()));
        return Err(if can_say_yes { failure.hint("`/piton yes` carries out this one") } else { failure }.into());
    }
    // Who said yes to it has seen it.
    let mut is_shown = how == How::Yes;
    if let (How::Ask, Act::Undo(options), false, None) = (how, act, view.unsure.is_empty(), &refusal) {
        console.say_with(|out, look| write_plan(out, look, view, &around, diff.as_ref()));
        is_shown = true;
        if let Some(more) = also(console, workspace, view, options)? {
            plan = more;
            refusal = workspace.refusal(&plan, policy);
            is_shown = refusal.is_none();
        }
    }
    if way.patch.is_some() && refusal.is_none() && !plan.view().is_empty() {
        plan = chosen(console, workspace, plan, act, (&around, command), is_shown)?;
        refusal = workspace.refusal(&plan, policy);
        is_shown = false;
    }
    let view = plan.view();
    let is_in_conflict = matches!(refusal, Some(Refusal::Impossible(OperationError::Conflict(_))));
    let shows = how == How::Ask || is_in_conflict || !view.others.is_empty();
    if shows && !is_shown && !view.is_empty() {
        console.say_with(|out, look| write_plan(out, look, view, &around, diff.as_ref()));
    }
    let contents = || workspace.plan_diff(&plan, CONTEXT).map_err(Failure::from);
    let agreed = match decide(way, act, view, refusal) {
        Decision::Refuse(refusal) => return Err(refused(refusal, view, act, command).into()),
        Decision::Do => Agreed::All,
        Decision::Ask => yes_or_no(console, view)?,
        Decision::AskRewind { can_keep_mine } => {
            let has_contents = diff.is_some() && !is_shown;
            yes_or_keep(console, view, can_keep_mine, has_contents, &contents)?
        }
    };
    if let (Agreed::KeepingMine, Act::Rewind { target, options }) = (agreed, act) {
        let options = RewindOptions { carry: Carry::Mine, ..options.clone() };
        let act = Act::Rewind { target: target.clone(), options };
        let way = Way { command: way.command.clone().arg("--keep-mine"), ..way.clone() };
        return go(console, workspace, &act, &way, beside);
    }
    let done = with_progress(console, &progress, act.doing(), || workspace.carry_out(plan));
    done.map(Some).map_err(stopped)
}

/// Asks about each change of a plan by itself; the plan without what is to stay as it is.
fn chosen(
    console: &mut Console,
    workspace: &Workspace,
    plan: Plan,
    act: &Act,
    (around, command): (&Around, &Call),
    is_shown: bool,
) -> Result<Plan, Stopped> {
    if !is_shown {
        console.say_with(|out, look| look.write(out, &plan::heading(&look.room(), plan.view(), around)));
    }
    let diff = workspace.plan_diff(&plan, CONTEXT).map_err(Failure::from)?;
    let moves = workspace.plan_moves(&plan).map_err(Failure::from)?;
    let Except { paths, hunks } = hunks::ask(console, &diff, &moves, plan.view().kind)?;
    if paths.is_empty() && hunks.is_empty() {
        return Ok(plan);
    }
    let asked: Vec<_> = act.settle().except.paths.iter().cloned().chain(paths).collect();
    let left = workspace.plan_without(&plan, Except { paths: asked.clone(), hunks });
    let left = left.map_err(|error| Stopped::Failed(act.failed(error, command)))?;
    let is_asked = |path: &PathView| path.exact().is_some_and(|path| asked.iter().any(|one| path.is_within(one)));
    let along: Vec<_> = left.view().excepted.iter().filter(|path| !is_asked(path)).map(escape_view).collect();
    if !along.is_empty() {
        console.say(note(format!("stays too, because it cannot change without the rest: {}", along.join(", "))));
    }
    Ok(left)
}

/// A plan, and the contents of what would change where they are asked for.
pub fn write_plan(
    out: &mut dyn Write,
    look: &Look,
    plan: &PlanView,
    around: &Around,
    diff: Option<&Diff>,
) -> io::Result<()> {
    look.write(out, &plan::lines(&look.room(), plan, around))?;
    diff.iter().flat_map(|diff| &diff.files).try_for_each(|file| patch::write(out, look, file))
}

/// What a plan's text needs beside the plan.
fn around(workspace: &Workspace, console: &Console, whole: bool, partial: bool) -> Result<Around, Failure> {
    if console.is_json() && whole {
        return Ok(Around::default());
    }
    let names = Names::of(&workspace.sessions()?.sessions);
    Ok(Around { titles: titles::of_all(workspace, &names)?, names, whole, partial, ..Around::default() })
}
