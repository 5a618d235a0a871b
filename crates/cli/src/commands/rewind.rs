//! `piton rewind`: make the workspace's files equal to a checkpoint.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use piton_agents::Agents;
use piton_engine::model::{OperationVerb, Scope};
use piton_engine::view::{Also, CheckpointView, OperationOutcome, PlanView};
use piton_engine::{Carry, IntoTarget, Plan, RewindOptions, Workspace};
use piton_wording::checkpoints::{moment, then};
use piton_wording::escape::{escape, escape_path};
use piton_wording::outcome::{not_done, nothing, summary, way_back};
use piton_wording::owners::Names;
use piton_wording::plan::Around;
use piton_wording::{Call, Code, Failure, call, text};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::conversation;
use crate::environment::{self, Surroundings};
use crate::help::Example;
use crate::inside::only_in_terminal;
use crate::operate::{self, Act, GoArgs, How};
use crate::outcome;
use crate::paths::PathArgs;
use crate::settle::SettleArgs;
use crate::signals::Signals;

/// Go back to a checkpoint: the files, and the conversation with the agent
///
/// Restores what changed, brings back what was deleted and deletes what was created since; then reads everything back
/// and compares. The current state is captured first, so `piton redo` can take the rewind back. What a checkpoint did
/// not capture (ignored folders and such) is never touched, and neither is .git.
///
/// The conversation goes back as a branch: a new session of the agent that ends just before the turn, with an id of
/// its own. The old session stays as it is.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to go back to: t5 (just before turn 5), t5.2, t5.end, the beginning of an id, a name, an age such as
    /// 10m, or start
    target: String,
    #[command(flatten)]
    paths: PathArgs,
    /// Keep the edits that you made since then
    #[arg(long)]
    keep_mine: bool,
    /// Take back this session's work only: keep your own edits and those of other sessions
    #[arg(long)]
    only_session: bool,
    /// Also take back what may be yours or the session's, which is kept otherwise
    #[arg(long)]
    unsure: bool,
    /// What goes back [default: both for a turn or start, if the agent's conversation can go back; else code, as for
    /// a name or an age]
    #[arg(long, value_enum)]
    scope: Option<ScopeArg>,
    /// Whether it was typed to an agent.
    #[arg(skip)]
    is_inside: bool,
    /// Copy the prompt of that turn to the clipboard
    #[arg(long)]
    copy: bool,
    /// Start the agent in the rewound conversation
    #[arg(long, conflicts_with_all = ["preview", "json"])]
    resume: bool,
    /// Also restore the repository's branch, HEAD and index; otherwise .git stays as it is
    #[arg(long, conflicts_with_all = ["paths", "paths_b64"])]
    git: bool,
    #[command(flatten)]
    settle: SettleArgs,
    #[command(flatten)]
    go: GoArgs,
    /// Do not ask; do nothing if edits that are not this session's would be overwritten
    #[arg(long, conflicts_with_all = ["yes", "preview", "patch", "all_workspaces"])]
    careful: bool,
    /// Go ahead although the checkpoint was captured in another folder that stood at this path
    #[arg(long)]
    across: bool,
    /// Also rewind the other workspaces that the session worked in, to the same moment
    #[arg(long, conflicts_with_all = ["paths", "patch"])]
    all_workspaces: bool,
}

/// What goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ScopeArg {
    /// The files
    Code,
    /// What was said: the agent continues in a branch of the conversation
    Conversation,
    /// Both, as one operation
    Both,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Code => Self::Code,
            ScopeArg::Conversation => Self::Conversation,
            ScopeArg::Both => Self::Both,
        }
    }
}

pub const EXAMPLES: [Example; 12] = [
    Example::Call("rewind t5", "just before the agent's turn 5"),
    Example::Call("rewind t5.2 --preview", "just before the second tool call of turn 5"),
    Example::Call("rewind before-refactor --preview", ""),
    Example::Call("rewind 10m", "the files as they were ten minutes ago"),
    Example::Call("rewind t5 --keep-mine", "and keep the edits that you made since"),
    Example::Call("rewind t5 --except notes.md", "everything except that file"),
    Example::Shell("piton rewind t5 --patch", "change by change: each is asked about"),
    Example::Call("rewind t5 --scope code", "the files only, not the conversation"),
    Example::Shell("piton rewind t5 --scope conversation --resume", ""),
    Example::Call("rewind t5 --wait --yes", "once the agent's turn has ended"),
    Example::Call("rewind kmzq --path src/auth.rs --yes", ""),
    Example::Call("rewind start --json --yes", ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::read(global)?;
    let mut workspace = surroundings.open(console)?;
    let of_files = [
        (args.keep_mine, "--keep-mine"),
        (args.only_session, "--only-session"),
        (args.git, "--git"),
        (args.go.outside, "--outside"),
        (args.go.patch, "--patch"),
    ];
    // Whoever chooses among changes means files.
    let usual = (args.go.patch || args.is_inside && !switches_inside(&workspace)).then_some(ScopeArg::Code);
    let scope = args.scope.or(usual);
    if let (Some(ScopeArg::Conversation), Some((_, flag))) = (scope, of_files.iter().find(|(given, _)| *given)) {
        return Err(Failure::user(
            Code::ArgumentsClash,
            format!("`{flag}` is about files, and `--scope conversation` leaves them as they are"),
        )
        .hint(text![piton_wording::flag("--scope").arg("both"), " takes files and conversation back"]));
    }
    args.paths.refuse_outside(args.go.outside)?;
    let paths = args.paths.resolve(workspace.path(), &surroundings.here)?;
    let options = RewindOptions {
        paths,
        across: args.across,
        carry: args.carry(),
        unsure: args.unsure,
        settle: args.settle.settle(workspace.path(), &surroundings.here)?,
        outside: args.go.outside,
        git: args.git,
        scope: scope.map(Into::into),
        interrupted: args.go.interrupted,
    };
    let mut way = args.go.way(args.typed());
    way.all_workspaces = args.all_workspaces;
    if args.careful {
        way.how = How::Careful;
    }
    let wanted = args.target.into_target()?;
    let act = Act::Rewind { target: wanted.clone(), options };
    let signals = Signals::watch(&workspace);
    let done = operate::carry_out(console, &mut workspace, &act, &way, &signals, |console, plan| {
        if args.all_workspaces {
            show_others(plan, &args.elsewhere(), console);
        }
    });
    let done = done.map_err(|failure| match workspace.resolve(&wanted) {
        Ok(_) => failure,
        Err(_) => surroundings.hint_earlier_turns(failure, &workspace),
    })?;
    let Some(mut outcome) = done else { return Ok(ExitCode::SUCCESS) };
    let target = match scope {
        Some(ScopeArg::Conversation) => None,
        _ => Some(target_of(&workspace, &outcome, &wanted)?),
    };
    if let (true, Some(target)) = (args.all_workspaces, &target) {
        // A turn that was interrupted here was so everywhere.
        let interrupted = args.go.interrupted || !outcome.interrupted.is_empty();
        let options = RewindOptions { interrupted, ..args.elsewhere() };
        outcome.also = rewind_others(&outcome, target, &options);
    }
    let outcome = outcome;
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print_done(&outcome, |out, look| {
        conversation::first_inside(out, outcome.conversation.as_ref())?;
        match &target {
            Some(target) => write(out, look, &outcome, (target, &args.paths.paths), &names),
            None => writeln!(out, "rewound to before {}: {}", escape(&args.target), look.text(summary(&outcome))),
        }
    })?;
    if !console.is_json() {
        outcome::say_remarks(console, &outcome, &names, OperationVerb::Rewind);
        if outcome.operation.is_some() {
            console.say(text![way_back(&outcome), " takes it back"]);
        }
        if args.scope.is_none() && usual.is_some() && args.can_take_conversation(&workspace) {
            let typed = call("rewind").arg(&args.target).with("--scope", "conversation");
            console.say(text![typed, " takes the conversation there too"]);
        }
        let done = |also: &&Also| also.outcome.as_ref().is_some_and(|outcome| outcome.operation.is_some());
        for also in outcome.also.iter().filter(done) {
            console.say(text![call("redo").there(&also.workspace), " takes it back there"]);
        }
    }
    signals.tell(console, &way_back(&outcome));
    conversation::go_on(console, outcome.conversation.as_ref(), args.copy, args.resume, "rewind")?;
    Ok(outcome::exit_code(&outcome))
}

impl Args {
    /// Sets what goes without saying where it is typed to an agent. Who types it there has seen no plan, so what others did is
    /// taken from them only on demand.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        if self.all_workspaces {
            return Err(only_in_terminal("--all-workspaces", "which shows the plan first"));
        }
        if self.resume {
            return Err(only_in_terminal("--resume", "in which the agent can be started"));
        }
        let is_sure = self.go.yes || self.careful;
        self.go.settle_inside()?;
        if !is_sure && !self.go.preview {
            self.go.yes = false;
            self.careful = true;
        }
        self.is_inside = true;
        Ok(())
    }

    /// Whether the conversation could go back there as well.
    fn can_take_conversation(&self, workspace: &Workspace) -> bool {
        let options = RewindOptions { scope: Some(Scope::Conversation), ..RewindOptions::default() };
        let plan = workspace.plan_rewind(&self.target, &options);
        plan.is_ok_and(|plan| plan.view().conversation.as_ref().is_some_and(|conversation| !conversation.anew))
    }

    fn carry(&self) -> Carry {
        match (self.only_session, self.keep_mine) {
            (true, _) => Carry::Others,
            (false, true) => Carry::Mine,
            (false, false) => Carry::Nothing,
        }
    }

    /// What holds in the other workspaces of the session too: whose edits stay, there as here.
    fn elsewhere(&self) -> RewindOptions {
        RewindOptions {
            carry: self.carry(),
            unsure: self.unsure,
            settle: self.settle.elsewhere(),
            git: self.git,
            // The conversation is one, and goes back here.
            scope: Some(Scope::Code),
            ..RewindOptions::default()
        }
    }

    /// The command as it was typed, but for what says how it goes: a hint adds to it, and must not mean more than it did.
    fn typed(&self) -> Call {
        let mut typed = self.settle.said(self.paths.said(call("rewind").arg(&self.target)));
        if let Some(scope) = self.scope {
            typed = typed.with("--scope", Scope::from(scope).as_str());
        }
        let flags = [
            (self.keep_mine, "--keep-mine"),
            (self.only_session, "--only-session"),
            (self.unsure, "--unsure"),
            (self.git, "--git"),
            (self.go.outside, "--outside"),
            (self.all_workspaces, "--all-workspaces"),
        ];
        flags.iter().filter(|(is_given, _)| *is_given).fold(typed, |typed, (_, flag)| typed.arg(flag))
    }
}

/// Whether the agent's running screen can go where a conversation goes; where it cannot, whoever types to it goes on right
/// there.
fn switches_inside(workspace: &Workspace) -> bool {
    let sessions = workspace.sessions().map(|all| all.sessions).unwrap_or_default();
    let Some(here) = sessions.into_iter().find(|session| session.current) else { return false };
    let transcripts = Agents::default().get(&here.agent).and_then(|agent| agent.transcripts);
    transcripts.is_some_and(|transcripts| transcripts.resume_inside(&here.agent_id).is_some())
}

/// Shows what would be done in the other workspaces of the session, before anybody is asked.
fn show_others(plan: &PlanView, options: &RewindOptions, console: &mut Console) {
    let plan_there = |path: &Path| -> Result<Plan, String> {
        let other = open_other(path)?;
        let Some(target) = &plan.target else { return Err("a rewind without a target".to_owned()) };
        let counterpart = other.counterpart(target).map_err(|error| error.to_string())?;
        let target = counterpart.ok_or("the session captured nothing there from that moment on")?;
        other.plan_rewind(&target.id, options).map_err(|error| error.to_string())
    };
    for path in &plan.other_workspaces {
        let there = plan_there(path);
        console.say_with(|out, look| {
            writeln!(out, "{}", look.paint.bold(format!("In {}:", escape_path(path))))?;
            match &there {
                Ok(there) => {
                    let around = Around { all_workspaces: true, ..Around::default() };
                    operate::write_plan(out, look, there.view(), &around, None)?
                }
                Err(error) => writeln!(out, "  nothing is done there: {}", escape(error))?,
            }
            writeln!(out)
        });
    }
}

/// The same rewind in the other workspaces of the session. What goes wrong in one does not keep the others from it.
fn rewind_others(outcome: &OperationOutcome, target: &CheckpointView, options: &RewindOptions) -> Vec<Also> {
    let rewind = |path: &Path| -> Result<OperationOutcome, String> {
        let mut other = open_other(path)?;
        let counterpart = other.counterpart(target).map_err(|error| error.to_string())?;
        let target = counterpart.ok_or("the session captured nothing there from that moment on")?;
        // Moved, or removed on purpose, unless a tool did it since: to make it anew is an act of its own.
        let is_taken = || other.was_taken_since(&target.id).map_err(|error| error.to_string());
        if other.is_missing() && !options.across && !is_taken()? {
            let anew = call("rewind").asking("TARGET").there(path);
            return Err(text!["its folder is gone; ", anew, " makes it anew"].plain());
        }
        other.rewind_now(&target.id, options).map_err(|error| error.to_string())
    };
    let others = outcome.other_workspaces.iter();
    others
        .map(|path| match rewind(path) {
            Ok(outcome) => Also { workspace: path.clone(), outcome: Some(outcome), error: None },
            Err(error) => Also { workspace: path.clone(), outcome: None, error: Some(error) },
        })
        .collect()
}

/// Another workspace of the session, by its own settings.
fn open_other(path: &Path) -> Result<Workspace, String> {
    let engine = environment::engine_for(path).map_err(|failure| failure.message)?;
    engine.open(path).map_err(|error| error.to_string())
}

/// The rewind in one line.
pub fn write(
    out: &mut dyn Write,
    look: &Look,
    outcome: &OperationOutcome,
    (target, paths): (&CheckpointView, &[OsString]),
    names: &Names,
) -> io::Result<()> {
    let (target, as_then) = (look.text(moment(target, names)), look.text(then(target, names)));
    let only: Vec<_> = paths.iter().map(|path| escape(&path.to_string_lossy()).into_owned()).collect();
    let only = if only.is_empty() { String::new() } else { format!("{} ", only.join(", ")) };
    match outcome.operation {
        Some(_) => writeln!(out, "rewound {only}to {target}: {}", look.text(summary(outcome)))?,
        None => {
            // What the target did not capture may be otherwise, or gone: nobody knows.
            let otherwise = match outcome.skipped.is_empty() {
                true => format!("the files are already as they were {as_then}"),
                false => "what was captured then is as it was".to_owned(),
            };
            writeln!(out, "{}", nothing(outcome, &otherwise))?;
        }
    }
    for also in &outcome.also {
        let place = escape_path(&also.workspace);
        match (&also.outcome, &also.error) {
            (Some(outcome), _) if outcome.operation.is_some() => {
                writeln!(out, "rewound {place} too: {}", look.text(summary(outcome)))?;
                let mut left = outcome.not_done.iter();
                left.try_for_each(|one| writeln!(out, "  not restored: {}", look.text(not_done(one))))?;
            }
            (Some(outcome), _) => writeln!(out, "{place}: {}", nothing(outcome, "the files are as they were"))?,
            (None, error) => {
                let error = escape(error.as_deref().unwrap_or_default());
                writeln!(out, "{} {place}: {error}", look.paint.bad("not rewound:"))?;
            }
        }
    }
    Ok(())
}

/// The checkpoint that was rewound to: by its id, because an age means another one as time goes on.
pub fn target_of(
    workspace: &Workspace,
    outcome: &OperationOutcome,
    wanted: impl IntoTarget,
) -> Result<CheckpointView, Failure> {
    let id = outcome.operation.as_ref().and_then(|operation| operation.target.as_deref());
    let target = id.map_or_else(|| wanted.into_target(), IntoTarget::into_target)?;
    Ok((&workspace.resolve(target)?).into())
}
