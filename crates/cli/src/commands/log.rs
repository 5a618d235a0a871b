//! `piton log`: the checkpoints, newest first.

use std::collections::HashMap;
use std::io::{self, Write};

use piton_engine::LogOptions;
use piton_engine::model::{Cause, OperationId};
use piton_engine::view::{CheckpointView, Log, OperationView};
use unicode_width::UnicodeWidthStr;

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::error::Failure;
use crate::escape::escape;
use crate::words;

/// List the checkpoints, newest first
///
/// One line for each: `*` at the newest, its id, its age, its name and note or why it exists, and how many paths were
/// created (+), modified (~) and deleted (-) since the checkpoint it follows.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// At most so many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    limit: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  piton log -n 10
  piton log --json | jq -r '.checkpoints[].id'";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    let log = workspace.log(LogOptions { limit: args.limit })?;
    let operations = if console.is_json() { Vec::new() } else { workspace.operations()? };
    console.print(&log, |out, look| write(out, look, &log, &operations))?;
    if log.total == 0 {
        console.advise("nothing has been captured here yet; `piton checkpoint` captures the workspace");
    } else if (log.checkpoints.len() as u64) < log.total {
        let more = log.total - log.checkpoints.len() as u64;
        let text = format!("{} older ones; `piton log` lists all", words::grouped(more));
        let text = console.talk.paint.dim(text);
        console.advise(text);
    }
    Ok(())
}

/// One line for each checkpoint.
pub fn write(out: &mut dyn Write, look: &Look, log: &Log, operations: &[OperationView]) -> io::Result<()> {
    let operations: HashMap<&OperationId, &OperationView> = operations.iter().map(|o| (&o.id, o)).collect();
    let line = log.checkpoints.first().map(|c| c.line);
    let rows: Vec<_> =
        log.checkpoints.iter().map(|c| (words::age(c.created_at, look.now), Description::of(c, &operations))).collect();
    let ages = rows.iter().map(|(age, _)| age.len()).max().unwrap_or(0);
    // Names are aligned up to a width that leaves short ones near their counts.
    let texts = rows.iter().map(|(_, text)| text.width()).max().unwrap_or(0).min(48);
    for (at, (checkpoint, (age, text))) in log.checkpoints.iter().zip(&rows).enumerate() {
        let marker = if at == 0 { look.paint.bold("*") } else { " ".to_owned() };
        let pad = " ".repeat(texts.saturating_sub(text.width()));
        let id = look.paint.id(checkpoint.id.short());
        let age = look.paint.dim(format!("{age:<ages$}"));
        let counts = words::signs(&checkpoint.changes, look.paint);
        let other = if Some(checkpoint.line) == line { "" } else { "  (another folder)" };
        writeln!(out, "{marker} {id}  {age}  {}{pad}  {counts}{other}", text.painted(look))?;
    }
    Ok(())
}

/// What a checkpoint is called, or why it exists.
struct Description {
    name: String,
    rest: String,
}

impl Description {
    fn of(checkpoint: &CheckpointView, operations: &HashMap<&OperationId, &OperationView>) -> Self {
        let name = checkpoint.name.as_deref().map(|name| escape(name).into_owned()).unwrap_or_default();
        let rest = match (&checkpoint.annotation, checkpoint.cause) {
            (Some(text), _) => escape(text).into_owned(),
            (None, Cause::Manual) if !name.is_empty() => String::new(),
            (None, cause) => {
                let operation = checkpoint.operation.as_ref().and_then(|id| operations.get(id)).copied();
                why(cause, operation)
            }
        };
        Self { name, rest }
    }

    fn gap(&self) -> &'static str {
        if self.name.is_empty() || self.rest.is_empty() { "" } else { "  " }
    }

    fn width(&self) -> usize {
        self.name.width() + self.gap().len() + self.rest.width()
    }

    fn painted(&self, look: &Look) -> String {
        format!("{}{}{}", look.paint.bold(&self.name), self.gap(), self.rest)
    }
}

/// Why a checkpoint exists, with the operation that it belongs to.
pub fn why(cause: Cause, operation: Option<&OperationView>) -> String {
    let Some(operation) = operation else { return words::cause(cause).to_owned() };
    let target = operation.target.as_deref().map(|id| id.chars().take(8).collect::<String>());
    match (cause, operation.kind.as_str(), target) {
        (Cause::BeforeOperation, kind, _) => format!("before {}", noun(kind)),
        (_, "rewind", Some(id)) => format!("rewind to {id}"),
        (_, "redo", Some(_)) => "redo".to_owned(),
        (_, kind, _) => noun(kind).to_owned(),
    }
}

fn noun(kind: &str) -> &str {
    if kind == "recover" { "recovery" } else { kind }
}
