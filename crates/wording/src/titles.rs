//! What operations are called, for people: `rewind to before turn 5 “add tests”`, `undo of turn 3 “make it blue”`.

use std::collections::HashMap;

use piton_engine::model::short::one_line;
use piton_engine::model::{Cause, OperationId, OperationVerb};
use piton_engine::view::{CheckpointView, OperationStatus, OperationView};

use crate::checkpoints::moment;
use crate::owners::Names;
use crate::text::{Style, Text};
use crate::words;

/// The titles of a workspace's operations.
#[derive(Clone, Debug, Default)]
pub struct Titles {
    /// Newest first.
    operations: Vec<OperationView>,
    /// What the checkpoints that were rewound to are called.
    targets: HashMap<String, String>,
}

impl Titles {
    /// Of some operations, newest first. Those that they take back must be among them to be called by more than their ids.
    /// `checkpoint` looks one up by its id.
    pub fn of(
        operations: Vec<OperationView>,
        names: &Names,
        checkpoint: impl Fn(&str) -> Option<CheckpointView>,
    ) -> Self {
        let mut targets = HashMap::new();
        for operation in &operations {
            if let (Some(id), OperationVerb::Rewind | OperationVerb::Checkout) = (&operation.target, operation.kind) {
                // A checkpoint may be gone one day: its id is the last resort.
                let called = |checkpoint: CheckpointView| match checkpoint.name {
                    Some(name) => name,
                    None => shortened(&moment(&checkpoint, names).plain()),
                };
                let called = checkpoint(id).map_or_else(|| short(id), called);
                targets.insert(id.clone(), called);
            }
        }
        Self::new(operations, targets)
    }

    /// Of operations, newest first, and what the checkpoints that were rewound to are called.
    pub fn new(operations: Vec<OperationView>, targets: HashMap<String, String>) -> Self {
        Self { operations, targets }
    }

    /// An operation as it is known here: whether it was taken back since is.
    pub fn get(&self, id: &OperationId) -> Option<&OperationView> {
        self.operations.iter().find(|operation| operation.id == *id)
    }

    /// What one is called; what it is about stands out.
    pub fn title(&self, operation: &OperationView) -> Text {
        let target = operation.target.as_deref();
        let about = operation.about.as_deref().map(shortened);
        match (operation.kind, target, &about) {
            (OperationVerb::Rewind, Some(id), _) => {
                let target = self.targets.get(id).cloned().unwrap_or_else(|| short(id));
                Text::new(Style::Plain, "rewind to ").and(Style::Bold, target)
            }
            (OperationVerb::Checkout, Some(id), Some(folder)) => {
                let target = self.targets.get(id).cloned().unwrap_or_else(|| short(id));
                Text::new(Style::Plain, "checkout of ")
                    .and(Style::Bold, target)
                    .and(Style::Plain, format!(" to {folder}"))
            }
            (OperationVerb::Redo, Some(id), about) => match (self.older(id, operation), about) {
                (Some(of), _) => {
                    let title = Text::new(Style::Plain, "redo of the ").and_all(self.title(of));
                    match operation.also.len() {
                        0 => title,
                        more => title
                            .and(Style::Plain, format!(" and {} after it", words::plural(more as u64, "operation"))),
                    }
                }
                (None, Some(about)) => Text::new(Style::Plain, "redo of ").and(Style::Bold, about),
                (None, None) => Text::new(Style::Plain, "redo"),
            },
            (OperationVerb::Branch, _, Some(about)) => Text::new(Style::Bold, about),
            (OperationVerb::Recover, ..) => Text::new(Style::Plain, "recovery"),
            (verb, _, Some(about)) => Text::new(Style::Plain, format!("{} of ", verb.as_str())).and(Style::Bold, about),
            (verb, _, None) => Text::new(Style::Plain, verb.as_str()),
        }
    }

    /// The same in one piece, without colour.
    pub fn plain(&self, operation: &OperationView) -> String {
        self.title(operation).plain()
    }

    /// Why a checkpoint exists, with the operation or the tool that it belongs to.
    pub fn why(&self, checkpoint: &CheckpointView) -> String {
        let what = checkpoint.description.as_deref();
        match (checkpoint.cause, what) {
            (Cause::Prompt, Some(prompt)) => return format!("at the prompt: {prompt}"),
            (Cause::BeforeTool, Some(tool)) => return format!("before {tool}"),
            (Cause::AfterTool, Some(tool)) => return format!("after {tool}"),
            _ => {}
        }
        let operation = checkpoint.operation.as_ref().and_then(|id| self.get(id));
        match (operation, checkpoint.cause) {
            (None, cause) => words::cause(cause).to_owned(),
            (Some(operation), Cause::BeforeOperation) => format!("before the {}", self.plain(operation)),
            (Some(operation), _) => self.plain(operation),
        }
    }

    /// The operation that another one takes back. Only an older one: whatever a damaged store says, titles end.
    fn older(&self, id: &str, than: &OperationView) -> Option<&OperationView> {
        let mut older = self.operations.iter().skip_while(|operation| operation.id != than.id).skip(1);
        older.find(|operation| operation.id.as_str() == id)
    }
}

/// As many characters of a prompt are in a title.
const WORDS: usize = 30;

/// `turn 3 “make it blue”`, with less of a long prompt.
fn shortened(about: &str) -> String {
    match about.strip_suffix('”').and_then(|about| about.split_once('“')) {
        Some((before, prompt)) => format!("{before}“{}”", one_line(prompt, WORDS)),
        None => about.to_owned(),
    }
}

fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// How an operation stands: `done`, `taken back`, `rolled back: why`.
pub fn state(operation: &OperationView) -> Text {
    match operation.state {
        OperationStatus::Done if operation.taken_back => Text::new(Style::Dim, "taken back"),
        OperationStatus::Done => Text::new(Style::Good, "done"),
        OperationStatus::Pending => Text::new(Style::Warn, "not ended"),
        OperationStatus::RolledBack => {
            let why = operation.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            Text::new(Style::Warn, "rolled back").and(Style::Plain, why)
        }
        OperationStatus::GivenUp => {
            let why = operation.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            Text::new(Style::Warn, "given up").and(Style::Plain, why)
        }
    }
}
