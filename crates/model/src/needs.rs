//! Which objects a record needs. This is the only account of it: `verify` looks for what it names, an archive holds what it
//! names and nothing else, and whoever removes objects one day keeps what it names.
//!
//! Here are only the objects that a record names itself. What a tree lists, what a repository's state has staged
//! ([`GitState::needs`]) and the chunks of a large file follow from those objects.

use crate::git::GitState;
use crate::id::ObjectId;
use crate::operation::Operation;
use crate::path::WorkspacePath;
use crate::plan;
use crate::record::{Checkpoint, Record};
use crate::session::{Outside, Session};
use crate::tree::Entry;

/// An object that a record needs, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub object: NeededObject,
    /// What of the record cannot be had without it.
    pub part: NeededFor,
}

/// An object by what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeededObject {
    /// A folder's listing, with all that it lists.
    Tree(ObjectId),
    /// A file's bytes.
    Blob {
        id: ObjectId,
        /// How many, where the record says so.
        size: Option<u64>,
    },
    /// A repository's state, with all that was staged in it.
    GitState(ObjectId),
}

impl NeededObject {
    /// The object's id.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Tree(id) | Self::Blob { id, .. } | Self::GitState(id) => *id,
        }
    }
}

/// What an object is needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeededFor {
    /// All files of the workspace.
    Files,
    /// One path of the workspace.
    Path(WorkspacePath),
    /// The state of git.
    Git,
    /// A session's transcript.
    Transcript,
    /// A file outside the workspace, by its whole path.
    Outside(String),
}

impl Record {
    /// Every object that the record names, each time that it does.
    pub fn needs(&self) -> Vec<Need> {
        match self {
            Self::Checkpoint(checkpoint) => checkpoint.needs(),
            Self::Operation(operation) => operation.needs(),
            Self::Session(session) => session.needs().collect(),
            Self::Step(step) => outside(&step.outside).collect(),
            Self::StepEnded(end) => outside(&end.outside).collect(),
            Self::Workspace(_)
            | Self::Name { .. }
            | Self::Annotation { .. }
            | Self::Accepted(_)
            | Self::Turn(_)
            | Self::TurnEnded(_)
            | Self::SessionEnded { .. }
            | Self::Gap(_)
            | Self::Message(_)
            | Self::Imported { .. }
            | Self::Ended { .. } => Vec::new(),
        }
    }
}

impl Checkpoint {
    /// See [`Record::needs`].
    pub fn needs(&self) -> Vec<Need> {
        let files = Need { object: NeededObject::Tree(self.root.tree), part: NeededFor::Files };
        let git = self.git.map(|id| Need { object: NeededObject::GitState(id), part: NeededFor::Git });
        let rules = self.unagreed.iter().filter_map(|rules| {
            let object = NeededObject::Blob { id: rules.users?, size: None };
            // One that is never captured has no path in the workspace.
            let part = match &rules.file {
                Some(path) => NeededFor::Path(path.clone()),
                None => NeededFor::Outside(rules.shown.clone()),
            };
            Some(Need { object, part })
        });
        [files].into_iter().chain(git).chain(rules).collect()
    }
}

impl Operation {
    /// See [`Record::needs`].
    pub fn needs(&self) -> Vec<Need> {
        let here = self.steps.iter().flat_map(|step| of_step(step, NeededFor::Path(step.path.clone())));
        let elsewhere = self.elsewhere().flat_map(|step| {
            let path = format!("/{}", step.path.display());
            of_step(step, NeededFor::Outside(path))
        });
        let git = self.git.iter().flat_map(|change| change.before.needs().chain(change.after.needs()));
        let branch = self.conversation.iter().filter_map(|change| change.branch.as_ref());
        let result = [Need { object: NeededObject::Tree(self.result.tree), part: NeededFor::Files }];
        here.chain(result).chain(elsewhere).chain(git).chain(branch.flat_map(Session::needs)).collect()
    }
}

impl Session {
    /// See [`Record::needs`].
    pub fn needs(&self) -> impl Iterator<Item = Need> {
        self.kept.iter().map(|kept| {
            let object = NeededObject::Blob { id: kept.blob, size: Some(kept.size) };
            Need { object, part: NeededFor::Transcript }
        })
    }
}

impl GitState {
    /// What was staged.
    pub fn needs(&self) -> impl Iterator<Item = Need> {
        let staged = self.staged.iter().filter_map(|entry| entry.blob);
        staged.map(|id| Need { object: NeededObject::Blob { id, size: None }, part: NeededFor::Git })
    }
}

impl Entry {
    /// The object that has what is at the entry's path.
    pub fn needs(&self) -> Option<NeededObject> {
        match self {
            Self::File { blob, size, .. } => Some(NeededObject::Blob { id: *blob, size: Some(*size) }),
            Self::Folder { tree, .. } => Some(NeededObject::Tree(*tree)),
            Self::Symlink { .. } | Self::Skipped { .. } => None,
        }
    }
}

fn of_step(step: &plan::Step, part: NeededFor) -> impl Iterator<Item = Need> {
    let entries = step.before.iter().chain(&step.after).filter_map(Entry::needs);
    entries.map(move |object| Need { object, part: part.clone() })
}

fn outside(files: &[Outside]) -> impl Iterator<Item = Need> {
    files.iter().filter_map(|outside| {
        let kept = outside.file.as_ref()?;
        let object = NeededObject::Blob { id: kept.blob, size: Some(kept.size) };
        Some(Need { object, part: NeededFor::Outside(outside.path.clone()) })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// Any other object than those before.
    struct Objects(u8);

    impl Objects {
        fn next(&mut self) -> String {
            self.0 += 1;
            ObjectId([self.0; 32]).to_hex()
        }
    }

    /// A record of every kind as it is recorded, with every field that it can have. Every object in it is another one.
    fn records() -> Vec<Value> {
        let mut objects = Objects(0);
        let mut new = || objects.next();
        let (at, session, id) = ("2026-11-15T20:03:11.042Z", "kklzzkzzklkmknko", "kklzzkzzklkmknkp");
        let root = json!({ "device": 1, "inode": 2, "born": 3 });
        let state = |blob: String| {
            let staged =
                json!([{ "path": "s", "kind": "modified", "mode": 33188, "id": "ab".repeat(20), "blob": blob }]);
            json!({ "head": { "branch": "main", "commit": "cd".repeat(20) }, "staged": staged })
        };
        let file = |blob: String| json!({ "kind": "file", "mode": 420, "size": 1, "blob": blob });
        let folder = |tree: String| json!({ "kind": "folder", "mode": 493, "tree": tree, "holds_skipped": false });
        let outside = |blob: String| json!([{ "path": "/o", "file": { "blob": blob, "size": 1, "mode": 420 } }]);
        let kept = |blob: String| json!({ "blob": blob, "size": 1 });
        let session_with = |kept: Value| json!({ "id": session, "agent": "a", "agent_id": "s", "transcript": "/t", "started_at": at, "kept": kept });
        let step = json!({ "session": session, "turn": 1, "step": 1 });
        let with = |kind: &str, of: Value| {
            let mut record = of;
            record["record"] = json!(kind);
            record
        };
        let mut operation = json!({
            "id": id, "kind": { "kind": "rewind", "target": id }, "began_at": at, "before": id, "follows": id,
            "root": root, "folders": [{ "path": "d", "before": 448, "after": 493 }],
            "moves": [{ "from": "a", "to": "b" }],
            "steps": [
                { "path": "a", "before": file(new()), "after": folder(new()) },
                { "path": "l", "before": { "kind": "symlink", "target": "x" }, "after": null },
            ],
            "outside": [{ "path": "o", "before": file(new()), "after": file(new()) }],
            "git": { "before": state(new()), "after": state(new()), "index": "" },
            "result": { "tree": new(), "mode": 493 },
        });
        operation["conversation"] = json!({
            "from": session, "to": session, "turn": 1, "goes": true,
            "branch": session_with(kept(new())),
            "file": { "path": "t", "before": null, "after": file(new()) },
            "worktree": { "path": "w", "before": null, "after": folder(new()) },
        });
        let checkpoint = json!({
            "id": id, "parent": id, "line": 1, "created_at": at, "cause": "manual", "root": { "tree": new(), "mode": 493 },
            "changes": { "created": 0, "modified": 0, "deleted": 0 }, "skipped": 0, "git": new(),
            "unagreed": [
                { "shown": ".gitignore", "file": ".gitignore", "users": new(), "owner": { "who": "you" } },
                { "shown": ".git/info/exclude", "users": new(), "owner": { "who": "you" } },
            ],
        });
        let mut began = step.clone();
        began["tool"] = json!("Edit");
        began["summary"] = json!("");
        began["paths"] = json!(["a"]);
        began["background"] = json!(false);
        began["says"] = json!(true);
        began["opened"] = json!(1);
        began["outside"] = outside(new());
        let mut step_ended = step.clone();
        step_ended["how"] = json!("done");
        step_ended["closed"] = json!(1);
        step_ended["outside"] = outside(new());
        let workspace = json!({
            "id": id, "path": "/w", "root": root, "line": 1, "budget": 1, "forced": false, "at": at
        });
        vec![
            with("workspace", workspace),
            with("checkpoint", checkpoint),
            with("name", json!({ "checkpoint": id, "name": "n" })),
            with("annotation", json!({ "checkpoint": id, "text": "t" })),
            with("operation", operation),
            with("session", session_with(kept(new()))),
            with("turn", json!({ "session": session, "number": 1, "prompt": "p", "at": at })),
            with("step", began),
            with("step-ended", step_ended),
            with("turn-ended", json!({ "session": session, "number": 1, "how": "done", "message": "m", "at": at })),
            with("session-ended", json!({ "session": session, "at": at })),
            with("gap", json!({ "session": session, "turn": 1, "cause": "prompt", "reason": "r", "at": at })),
            with("message", json!({ "session": session, "turn": 1, "role": "user", "text": "t", "at": at })),
            with("imported", json!({ "session": session, "at": at })),
            with("ended", json!({ "operation": id, "outcome": { "outcome": "done", "after": id }, "ended_at": at })),
        ]
    }

    /// Everything in a record that looks like an object's id, wherever it stands.
    fn ids_in(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
                found.insert(text.clone());
            }
            Value::Array(all) => all.iter().for_each(|one| ids_in(one, found)),
            Value::Object(fields) => fields.values().for_each(|one| ids_in(one, found)),
            _ => {}
        }
    }

    #[test]
    fn the_account_of_what_a_record_needs_has_every_object_that_it_names() {
        let mut kinds = BTreeSet::new();
        for written in records() {
            let record: Record = serde_json::from_value(written.clone()).unwrap_or_else(|e| panic!("{e}: {written:#}"));
            kinds.insert(record.kind());
            assert_eq!(written["record"], record.kind());
            let mut named = BTreeSet::new();
            ids_in(&written, &mut named);
            // What was written was read as well: no field of it was left out for its name.
            let mut read = BTreeSet::new();
            ids_in(&serde_json::to_value(&record).unwrap(), &mut read);
            assert_eq!(read, named, "{}", record.kind());
            let needs: BTreeSet<String> = record.needs().iter().map(|need| need.object.id().to_hex()).collect();
            assert_eq!(needs, named, "{}", record.kind());
        }
        assert_eq!(kinds.len(), 15, "a kind of record is missing here: {kinds:?}");
    }

    #[test]
    fn a_state_of_git_needs_what_was_staged() {
        let staged = json!([{ "path": "s", "kind": "modified", "mode": 33188, "blob": Objects(8).next() }]);
        let state: GitState = serde_json::from_value(json!({ "head": {}, "staged": staged })).unwrap();
        let needs: Vec<ObjectId> = state.needs().map(|need| need.object.id()).collect();
        assert_eq!(needs, [ObjectId([9; 32])]);
    }
}
