//! `piton undo`: take back chosen changes and keep all others.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use piton_engine::model::OperationVerb;
use piton_engine::view::OperationOutcome;
use piton_engine::{Choice, IntoTarget, OperationError, RedoOptions, Since, UndoOptions, Which, Whose, Workspace};
use piton_wording::outcome::{nothing, way_back};
use piton_wording::owners::Names;
use piton_wording::{Call, Code, Failure, call, text, without};

use super::{log, redo};
use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::operate::{self, Act, GoArgs};
use crate::outcome;
use crate::paths::PathArgs;
use crate::settle::SettleArgs;
use crate::signals::Signals;

/// Take back chosen changes and keep all others
///
/// Without arguments it takes back the last turn of any session here that changed something and is still in effect;
/// with `--owner you` alone, what you did since the last prompt. What you and others did since stays, even in the same
/// files: the change is removed from the current content. If later edits conflict with that, nothing is done and the
/// conflicts are shown. What may be your own edit or another session's is left alone. The current state is captured
/// first, so `piton redo` can take the undo back.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to take back: last, last 3, numbers from `piton changes`, turns (t3), steps (t3.2), those of another
    /// session (kmzq:t3), or all
    #[arg(value_name = "WHAT")]
    words: Vec<String>,
    #[command(flatten)]
    paths: PathArgs,
    /// Only changes made since: 10m, 2h, 3d
    #[arg(long, value_name = "AGE")]
    since: Option<String>,
    /// Only changes made after the first of two checkpoints and up to the second
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    between: Option<Vec<String>>,
    /// Only changes of this session: the beginning of its id, or its name [default: the one that reported last]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Whose changes to take back: agent or you [default: agent]. With nothing else, yours are those since the last
    /// prompt
    #[arg(long, value_name = "WHO", hide_possible_values = true)]
    owner: Option<Whom>,
    /// Also take back what may be your own edit or another session's
    #[arg(long)]
    unsure: bool,
    #[command(flatten)]
    settle: SettleArgs,
    /// Take back an operation listed by `piton ops` instead: the beginning of its id
    #[arg(long = "op", value_name = "ID")]
    #[arg(conflicts_with_all = ["words", "paths", "paths_b64", "since", "between", "session", "owner", "unsure"])]
    operation: Option<String>,
    #[command(flatten)]
    go: GoArgs,
}

/// Whose changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Whom {
    You,
    Agent,
}

pub const EXAMPLES: [Example; 14] = [
    Example::Call("undo", "the agent's last turn that changed something"),
    Example::Call("undo last 2", "the session's last two changes"),
    Example::Call("undo 3 5", "changes 3 and 5 of `piton changes`"),
    Example::Call("undo t3 t4.2", "turn 3, and the second step of turn 4"),
    Example::Call("undo all --path src", "everything that the session did under src"),
    Example::Call("undo --since 10m --preview", "what it did in the last ten minutes"),
    Example::Call("undo t3 --conflict markers", "on a conflict, write both versions into the file"),
    Example::Shell("piton undo t3 --patch", "change by change: each is asked about"),
    Example::Call("undo --owner you --path notes.md", "your own edits to one file"),
    Example::Call("undo --owner you", "what you did since the last prompt"),
    Example::Call("undo all --owner you", "everything that you did"),
    Example::Call("undo t3 --owner you", "your own edits from the start of turn 3 to the next prompt"),
    Example::Call("undo --wait", "once the agent's turn has ended"),
    Example::Call("undo --op kmzq", "a rewind, undo or redo listed by `piton ops`"),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::read(global)?;
    let mut workspace = surroundings.open(console)?;
    surroundings.say_earlier_turns(console, &workspace);
    args.paths.refuse_outside(args.go.outside)?;
    let settle = args.settle.settle(workspace.path(), &surroundings.here)?;
    if let Some(operation) = &args.operation {
        let GoArgs { outside, interrupted, .. } = args.go;
        let options = RedoOptions { operation: Some(operation.clone()), to: None, settle, outside, interrupted };
        return redo::take_back(console, &mut workspace, options, &args.go.way(args.typed()));
    }
    let (what, of) = Which::of_words(&args.words).map_err(OperationError::from)?;
    if let (Some(_), Some(session)) = (&of, &args.session) {
        return Err(Failure::user(Code::ArgumentsClash, "the session is said twice").hint(text![
            "leave out ",
            without("--session").arg(session),
            ": the words name one already"
        ]));
    }
    let between = args.between.as_deref().and_then(|two| match two {
        [from, to] => Some(from.into_target().and_then(|from| Ok((from, to.into_target()?)))),
        _ => None,
    });
    let now = console.look.now.at;
    let since = |age: &String| log::since(age, now).map(|at| Since { at, age: age.clone() });
    let choice = Choice {
        what,
        paths: args.paths.resolve(workspace.path(), &surroundings.here)?,
        since: args.since.as_ref().map(since).transpose()?,
        between: between.transpose()?,
        session: of.or_else(|| args.session.clone()),
        whose: args.owner.map(|whom| match whom {
            Whom::You => Whose::You,
            Whom::Agent => Whose::Agent,
        }),
        unsure: args.unsure,
    };
    let GoArgs { outside, interrupted, .. } = args.go;
    let act = Act::Undo(UndoOptions { choice, settle, outside, interrupted });
    if workspace.sessions()?.sessions.is_empty() && args.owner != Some(Whom::You) {
        let rewind = call("rewind").asking("TARGET");
        return Err(Failure::no_session(text![rewind, " goes back to a checkpoint; ", call("log"), " lists them"]));
    }
    let way = args.go.way(args.typed());
    let signals = Signals::watch(&workspace);
    let done = operate::carry_out(console, &mut workspace, &act, &way, &signals, |_, _| {});
    let done = done.map_err(|failure| match surroundings.own_workspace_hint(&workspace) {
        Some(hint) => failure.hint(hint),
        None => failure,
    })?;
    let Some(outcome) = done else { return Ok(ExitCode::SUCCESS) };
    console.print_done(&outcome, |out, look| write(out, look, &outcome))?;
    tell(console, &workspace, &outcome)?;
    signals.tell(console, &way_back(&outcome));
    Ok(outcome::exit_code(&outcome))
}

impl Args {
    /// Sets what goes without saying where it is typed to an agent.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        self.go.settle_inside()
    }

    /// The command as it was typed, but for what says how it goes: a hint adds to it.
    fn typed(&self) -> Call {
        let mut typed = self.words.iter().fold(call("undo"), Call::arg);
        typed = self.settle.said(self.paths.said(typed));
        if let Some(since) = &self.since {
            typed = typed.with("--since", since);
        }
        if let Some(two) = &self.between {
            typed = two.iter().fold(typed.arg("--between"), Call::arg);
        }
        if let Some(session) = &self.session {
            typed = typed.with("--session", session);
        }
        if let Some(owner) = self.owner {
            typed = typed.with("--owner", if owner == Whom::You { "you" } else { "agent" });
        }
        if self.unsure {
            typed = typed.arg("--unsure");
        }
        if let Some(operation) = &self.operation {
            typed = typed.with("--op", operation);
        }
        if self.go.outside { typed.arg("--outside") } else { typed }
    }
}

/// The undo in one line.
pub fn write(out: &mut dyn Write, look: &Look, outcome: &OperationOutcome) -> io::Result<()> {
    let Some(operation) = &outcome.operation else {
        return writeln!(out, "{}", nothing(outcome, "nothing of it is left in the files"));
    };
    let about = operation.about.as_deref().unwrap_or("the changes");
    writeln!(out, "{}", outcome::headline(look, "undid", about, outcome))
}

/// What else there is to know, and the way back.
fn tell(console: &mut Console, workspace: &Workspace, outcome: &OperationOutcome) -> Result<(), Failure> {
    if console.is_json() {
        return Ok(());
    }
    let names = Names::of(&workspace.sessions()?.sessions);
    outcome::say_remarks(console, outcome, &names, OperationVerb::Undo);
    if outcome.operation.is_some() {
        console.say(text![way_back(outcome), " takes it back"]);
    }
    Ok(())
}
