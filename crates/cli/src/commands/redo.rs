//! `piton redo`: take back the last rewind or undo.

use std::io::{self, Write};
use std::process::ExitCode;

use piton_engine::model::{OperationId, OperationVerb};
use piton_engine::view::{OperationOutcome, OperationStatus, OperationView};
use piton_engine::{RedoOptions, Workspace};
use piton_wording::outcome::{nothing, way_back};
use piton_wording::owners::Names;
use piton_wording::words::plural;
use piton_wording::{Code, Failure, call, text};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::conversation;
use crate::environment::Surroundings;
use crate::help::Example;
use crate::operate::{self, Act, GoArgs, Way};
use crate::outcome;
use crate::settle::SettleArgs;
use crate::signals::Signals;
use crate::titles;

/// Take back the last rewind or undo
///
/// Takes back only what that operation changed; what was done since stays, even in the same files. Run it again to
/// take back the one before. If later work conflicts with that, nothing is done and the conflicts are shown;
/// `--partial` does the rest, and the next redo continues with what it left.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which operation: the beginning of an id from `piton ops` [default: the last rewind or undo still in effect]
    #[arg(long = "op", value_name = "ID")]
    operation: Option<String>,
    /// Go back to before this operation: it and every rewind, undo and redo since, as one operation
    ///
    /// The files become as if none of them had happened: the state before it, with everything that you and agents did
    /// since. Files outside the workspace stay as they are.
    #[arg(long, value_name = "ID", conflicts_with_all = ["operation", "outside"])]
    to: Option<String>,
    #[command(flatten)]
    settle: SettleArgs,
    #[command(flatten)]
    go: GoArgs,
}

pub const EXAMPLES: [Example; 5] = [
    Example::Call("redo --preview", ""),
    Example::Call("redo --yes", ""),
    Example::Shell("piton redo --patch", "change by change: each is asked about"),
    Example::Call("redo --op kmzq", "that operation; `piton ops` lists them"),
    Example::Call("redo --to kmzq --preview", "that one and every operation since"),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::read(global)?;
    let mut workspace = surroundings.open(console)?;
    let GoArgs { outside, interrupted, .. } = args.go;
    let settle = args.settle.settle(workspace.path(), &surroundings.here)?;
    let options = RedoOptions { operation: args.operation.clone(), to: args.to.clone(), settle, outside, interrupted };
    let mut command = match (&args.operation, &args.to) {
        (Some(id), _) => call("redo").with("--op", id),
        (None, Some(id)) => call("redo").with("--to", id),
        (None, None) => call("redo"),
    };
    command = args.settle.said(command);
    if outside {
        command = command.arg("--outside");
    }
    take_back(console, &mut workspace, options, &args.go.way(command))
}

impl Args {
    /// Sets what goes without saying where it is typed to an agent.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        self.go.settle_inside()
    }
}

/// Takes an operation back, and tells.
pub fn take_back(
    console: &mut Console,
    workspace: &mut Workspace,
    options: RedoOptions,
    way: &Way,
) -> Result<ExitCode, Failure> {
    let signals = Signals::watch(workspace);
    let is_any = options.operation.is_none() && options.to.is_none();
    let done = operate::carry_out(console, workspace, &Act::Redo(options), way, &signals, |_, _| {});
    let done = done.map_err(|failure| match (failure.code, last_redo(workspace)) {
        (Code::NothingToRedo, Some(redo)) if is_any => {
            failure.hint(text![call("undo").with("--op", redo.short()), " takes the last redo back"])
        }
        _ => failure,
    })?;
    let Some(mut outcome) = done else { return Ok(ExitCode::SUCCESS) };
    if outcome.operation.is_none() {
        // Nothing was taken back that could be taken back elsewhere too.
        outcome.other_workspaces.clear();
    }
    let names = Names::of(&workspace.sessions()?.sessions);
    let of = taken_back(workspace, &outcome, &names)?;
    console.print_done(&outcome, |out, look| {
        conversation::first_inside(out, outcome.conversation.as_ref())?;
        write(out, look, &outcome, &of)
    })?;
    outcome::say_remarks(console, &outcome, &names, OperationVerb::Redo);
    let is_open = outcome.conflicts.iter().any(|conflict| !conflict.decided);
    if outcome.operation.is_none() && (outcome.git_stays.is_some() || is_open || !outcome.not_done.is_empty()) {
        console.advise(text![
            call("ops"),
            " lists what stands; ",
            call("redo").arg("--op").asking("ID"),
            " takes another one back"
        ]);
    }
    if outcome.operation.is_some() && !console.is_json() {
        if is_open || outcome.not_done.iter().any(|one| !one.reason.is_for_good()) {
            console.say(text![call("redo"), " continues with what was left"]);
        }
        console.say(text![way_back(&outcome), " takes this redo back"]);
        if let more @ 1.. = workspace.operations_standing()? {
            console.say(text![call("redo"), " can take back ", plural(more as u64, "operation"), " more"]);
        }
    }
    signals.tell(console, &way_back(&outcome));
    Ok(outcome::exit_code(&outcome))
}

/// The newest redo that is still in effect.
fn last_redo(workspace: &Workspace) -> Option<OperationId> {
    let operations = workspace.operations().ok()?.operations;
    let is_redo =
        |one: &OperationView| one.kind == OperationVerb::Redo && one.state == OperationStatus::Done && !one.taken_back;
    operations.into_iter().find(is_redo).map(|one| one.id)
}

/// What a redo took back: `the rewind to t5`.
pub fn taken_back(workspace: &Workspace, outcome: &OperationOutcome, names: &Names) -> Result<String, Failure> {
    let titles = titles::of_all(workspace, names)?;
    let id = outcome.operation.as_ref().and_then(|operation| operation.target.as_deref());
    let of = id.and_then(|id| id.parse().ok()).and_then(|id| titles.get(&id));
    let of = of.map_or_else(|| "the operation".to_owned(), |of| format!("the {}", titles.plain(of)));
    Ok(match outcome.operation.as_ref().map_or(0, |operation| operation.also.len()) {
        0 => of,
        more => format!("{of} and {} after it", plural(more as u64, "operation")),
    })
}

/// The redo in one line.
pub fn write(out: &mut dyn Write, look: &Look, outcome: &OperationOutcome, of: &str) -> io::Result<()> {
    match outcome.operation {
        Some(_) if outcome.already => {
            writeln!(
                out,
                "{}; {of} counts as taken back",
                nothing(outcome, "the files are already as they were before it")
            )
        }
        Some(_) => writeln!(out, "{}", outcome::headline(look, "took back", of, outcome)),
        None => writeln!(out, "{}", nothing(outcome, "the files are already as they were before it")),
    }
}
