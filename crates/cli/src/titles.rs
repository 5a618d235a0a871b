//! What operations are called, for people: `rewind to t5`, `undo of turn 3 “make it blue”`, `redo of the rewind to t5`.

use std::collections::HashMap;

use piton_engine::Workspace;
use piton_engine::model::{Cause, OperationId};
use piton_engine::view::{CheckpointView, OperationView};

use crate::error::Failure;
use crate::owners::Names;
use crate::table::{Style, Text};

/// The titles of a workspace's operations.
#[derive(Clone, Debug, Default)]
pub struct Titles {
    operations: HashMap<OperationId, OperationView>,
    /// What the checkpoints that were rewound to are called.
    targets: HashMap<String, String>,
}

impl Titles {
    /// Of some operations. Those that they take back must be among them to be called by more than their ids.
    pub fn of(workspace: &Workspace, operations: &[OperationView], names: &Names) -> Self {
        let mut titles = Self::default();
        for operation in operations {
            if let (Some(id), "rewind") = (&operation.target, &operation.kind[..]) {
                // A checkpoint may be gone one day: its id is the last resort.
                let called = match workspace.resolve(id) {
                    Ok(row) => called(&(&row).into(), names),
                    Err(_) => short(id),
                };
                titles.targets.insert(id.clone(), called);
            }
            titles.operations.insert(operation.id.clone(), operation.clone());
        }
        titles
    }

    /// Of all operations.
    pub fn of_all(workspace: &Workspace, names: &Names) -> Result<Self, Failure> {
        Ok(Self::of(workspace, &workspace.operations()?.operations, names))
    }

    /// An operation as it is known here: whether it was taken back since is.
    pub fn get(&self, id: &OperationId) -> Option<&OperationView> {
        self.operations.get(id)
    }

    /// Which operation has its state before it in this checkpoint.
    pub fn that_began_at(&self, checkpoint: &CheckpointView) -> Option<&OperationView> {
        self.operations.values().find(|operation| operation.before == checkpoint.id)
    }

    /// What one is called; what it is about stands out.
    pub fn title(&self, operation: &OperationView) -> Text {
        let target = operation.target.as_deref();
        match (operation.kind.as_str(), target, &operation.about) {
            ("rewind", Some(id), _) => {
                let target = self.targets.get(id).cloned().unwrap_or_else(|| short(id));
                Text::new(Style::Plain, "rewind to ").and(Style::Bold, target)
            }
            ("redo", Some(id), _) if self.other(id, operation).is_some() => {
                let of = self.other(id, operation).map(|other| self.title(other)).unwrap_or_default();
                Text::new(Style::Plain, "redo of the ").and_all(of)
            }
            ("redo", _, Some(about)) => Text::new(Style::Plain, "redo of ").and(Style::Bold, about),
            (kind, _, Some(about)) => Text::new(Style::Plain, format!("{kind} of ")).and(Style::Bold, about),
            ("recover", _, None) => Text::new(Style::Plain, "recovery"),
            (kind, _, None) => Text::new(Style::Plain, kind),
        }
    }

    /// The same in one piece, without colour.
    pub fn plain(&self, operation: &OperationView) -> String {
        self.title(operation).plain()
    }

    /// The operation that another one takes back. Only an older one: whatever a damaged store says, titles end.
    fn other(&self, id: &str, of: &OperationView) -> Option<&OperationView> {
        let other = id.parse().ok().and_then(|id: OperationId| self.operations.get(&id))?;
        (other.id != of.id && other.began_at <= of.began_at).then_some(other)
    }
}

/// What a person calls a checkpoint: its name, its place in a session, or its id.
fn called(checkpoint: &CheckpointView, names: &Names) -> String {
    match (&checkpoint.name, &checkpoint.place, checkpoint.cause) {
        (Some(name), _, _) => name.clone(),
        (_, Some(place), Cause::Prompt | Cause::BeforeTool) if place.turn > 0 => {
            names.target(&place.session, place.turn, place.step)
        }
        _ => checkpoint.id.short().to_owned(),
    }
}

fn short(id: &str) -> String {
    id.chars().take(8).collect()
}
