//! Comparing the whole store with itself: packs with their checksums, rows with the records they were made of, and
//! what checkpoints need with what is there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use piton_model::diff::TreeSource;
use piton_model::git::GitState;
use piton_model::session::StepRef;
use piton_model::{
    CheckpointId, Entry, Need, NeededFor, NeededObject, ObjectId, OperationId, Record, SessionId, WorkspacePath,
};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::bond::{self, Identity};
use crate::database::{self, VIEW};
use crate::error::StoreError;
use crate::gone::Gone;
use crate::pack::{self, Kind};
use crate::rebuild::replay_known;
use crate::settle::checkpoints_aside;
use crate::transactions::Range;
use crate::{CheckpointRow, Reader};

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Objects that were read and compared with their ids.
    pub objects: u64,
    /// Checkpoints whose trees and blobs were all looked for.
    pub checkpoints: u64,
    /// Bytes of packs that were read.
    pub bytes: u64,
    /// What is wrong.
    pub damage: Vec<Damage>,
}

/// One thing that is wrong with a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Bytes of a pack that are no sound record.
    Pack {
        /// Which pack.
        pack: u32,
        /// From here.
        from: u64,
        /// To there.
        to: u64,
    },
    /// A row that is not what its record says, or that has no record, or is missing.
    Row {
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// What a checkpoint needs is damaged or missing.
    Needed {
        /// Every checkpoint that needs it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// Where the newest of them has it.
        path: WorkspacePath,
        /// Its id.
        object: ObjectId,
    },
    /// The state of git that checkpoints have, or a file that was staged in it, is damaged or missing.
    GitState {
        /// Every checkpoint that has it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// What is not whole.
        object: ObjectId,
    },
    /// The copy of a session's transcript is damaged or missing.
    Transcript {
        session: SessionId,
        /// What is not whole.
        object: ObjectId,
    },
    /// The copy of a file outside the workspace, from before or after a step, is damaged or missing.
    OutsideOfStep {
        /// The step that named it.
        step: StepRef,
        path: String,
        /// What is not whole.
        object: ObjectId,
    },
    /// The same from before or after an operation.
    OutsideOfOperation {
        /// The operation that changed it.
        operation: OperationId,
        path: String,
    },
    /// What an operation took out of the workspace or put there, as far as no checkpoint that is named has it too.
    Operation {
        /// The operation that changed it.
        operation: OperationId,
        /// Where; the root where it is the state of git or all of the result.
        path: WorkspacePath,
        /// What is not whole.
        object: ObjectId,
    },
    /// Bytes that were closed and are not sound: a power cut took some of them, so none count. They are kept.
    Aside {
        /// Where they are kept.
        file: PathBuf,
        /// The checkpoints in it, newest first, as far as their records could be read.
        checkpoints: Vec<CheckpointId>,
    },
    /// Bytes of a pack that the view once knew and that are no longer there.
    Gone {
        /// Which pack.
        pack: u32,
        /// From here.
        from: u64,
        /// To there.
        to: u64,
        /// The checkpoints whose records were there, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The note that says so.
        file: PathBuf,
    },
    /// A pack is not there, and others of higher numbers are.
    PackMissing {
        /// Which pack.
        pack: u32,
    },
    /// Records of the timeline that were written, as those around them tell, and are not there.
    RecordsMissing {
        /// The first number.
        from: u64,
        to: u64,
    },
    /// Two records of the timeline have one number. Both count.
    RecordTwice { seq: u64 },
    /// SQLite itself finds its file inconsistent.
    Database {
        /// What it says.
        message: String,
    },
}

impl Reader {
    /// Checks everything; reads every byte of every pack. Needs no lock: it looks at the store as it is when it begins,
    /// and whoever writes meanwhile goes on.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        struct Ended<'s>(&'s Reader);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                let _ = self.0.db().execute_batch("COMMIT");
            }
        }
        self.db().execute_batch("BEGIN")?;
        let _ended = Ended(self);
        let mut found = Verified::default();
        self.integrity(&mut found)?;
        let committed: HashMap<u32, u64> = self.packs()?.into_iter().map(|(p, length, _)| (p, length)).collect();
        let again = database::in_memory()?;
        again.execute_batch("BEGIN")?;
        let mut needs: Vec<(Holder, Need)> = Vec::new();
        let replayed = replay_known(&again, self.folder(), &committed, |record| {
            if let Some(holder) = Holder::of(record) {
                needs.extend(record.needs().into_iter().map(|need| (holder.clone(), need)));
            }
        })?;
        again.execute_batch("COMMIT")?;
        let mut damage: Vec<Damage> =
            replayed.damage.into_iter().map(|Range { pack, from, to }| Damage::Pack { pack, from, to }).collect();
        let ends: HashMap<u32, u64> = replayed.lengths.into_iter().collect();
        for (pack, length) in &committed {
            let end = ends.get(pack).copied().unwrap_or(0);
            let is_named =
                damage.iter().any(|d| matches!(d, Damage::Pack { pack: p, to, .. } if p == pack && to == length));
            if end != *length && !is_named {
                damage.push(Damage::Pack { pack: *pack, from: end.min(*length), to: end.max(*length) });
            }
            found.bytes += length;
        }
        let last = committed.keys().copied().max().unwrap_or(0);
        damage.extend((1..last).filter(|pack| !committed.contains_key(pack)).map(|pack| Damage::PackMissing { pack }));
        damage.extend(replayed.missing.into_iter().map(|(from, to)| Damage::RecordsMissing { from, to }));
        damage.extend(replayed.repeated.into_iter().map(|seq| Damage::RecordTwice { seq }));
        let broken_packs = !damage.is_empty();
        found.damage.append(&mut damage);
        for (table, columns) in VIEW {
            compare(&self.db(), &again, table, columns, &mut found.damage)?;
        }
        self.compare_packs(&mut found)?;
        self.reach(&mut found, needs, broken_packs)?;
        found.damage.extend(self.aside_files().into_iter().filter_map(|file| match Gone::noted_in(&file) {
            Some(gone) if gone.is_back(&self.db()) => {
                let _ = std::fs::remove_file(file);
                None
            }
            Some(Gone { pack, from, to, checkpoints, .. }) => Some(Damage::Gone { pack, from, to, checkpoints, file }),
            None => Some(Damage::Aside { checkpoints: checkpoints_aside(&file), file }),
        }));
        Ok(found)
    }

    fn integrity(&self, found: &mut Verified) -> Result<(), StoreError> {
        let db = self.db();
        let mut query = db.prepare("PRAGMA integrity_check(20)")?;
        let messages = query.query_map([], |r| r.get::<_, String>(0))?;
        for message in messages {
            match message {
                Ok(message) if message == "ok" => {}
                Ok(message) => found.damage.push(Damage::Database { message }),
                Err(error) => found.damage.push(Damage::Database { message: error.to_string() }),
            }
        }
        Ok(())
    }

    /// Rows that no record says: lengths and marks of the packs.
    fn compare_packs(&self, found: &mut Verified) -> Result<(), StoreError> {
        for (pack, length, synced) in self.packs()? {
            if synced > length {
                found.damage.push(Damage::Row { table: "packs", key: pack.to_string() });
            }
        }
        let unknown: Vec<String> = self
            .db()
            .prepare("SELECT key FROM meta WHERE key NOT IN ('boot', 'index', 'file')")?
            .query_map([], |r| r.get(0))?
            .collect::<Result<_, _>>()?;
        found.damage.extend(unknown.into_iter().map(|key| Damage::Row { table: "meta", key }));
        if bond::check(&self.db(), Identity::Unknown).is_err() {
            found.damage.push(Damage::Row { table: "meta", key: bond::KEY.to_owned() });
        }
        Ok(())
    }

    /// Looks for everything that records need. Objects were read when the packs were, so here it is enough to see that each
    /// has a row whose record is sound.
    fn reach(&self, found: &mut Verified, needs: Vec<(Holder, Need)>, broken_packs: bool) -> Result<(), StoreError> {
        let mut reach = Reach { store: self, read_all: broken_packs, seen: HashMap::new(), broken: Vec::new() };
        // By its row: where a checkpoint's record is damaged, that is all that is left of it.
        let rows = self.checkpoints(None)?;
        found.checkpoints += rows.len() as u64;
        let mut roots: Vec<(CheckpointId, ObjectId)> = Vec::new();
        let mut states: BTreeMap<ObjectId, Vec<CheckpointId>> = BTreeMap::new();
        let mut rules: BTreeMap<ObjectId, (WorkspacePath, Vec<CheckpointId>)> = BTreeMap::new();
        for CheckpointRow { checkpoint, .. } in rows {
            for need in checkpoint.needs() {
                let id = checkpoint.id.clone();
                match need.object {
                    NeededObject::Tree(tree) => roots.push((id, tree)),
                    NeededObject::GitState(state) => states.entry(state).or_default().push(id),
                    NeededObject::Blob { id: blob, .. } => {
                        rules.entry(blob).or_insert_with(|| (path_of(need.part), Vec::new())).1.push(id);
                    }
                }
            }
        }
        for (_, root) in &roots {
            reach.tree(WorkspacePath::root(), *root)?;
        }
        let broken = std::mem::take(&mut reach.broken);
        for (state, checkpoints) in states {
            let lacks = reach.lacking_of_state(&state)?;
            found.damage.extend(lacks.map(|object| Damage::GitState { checkpoints, object }));
        }
        for (object, (path, checkpoints)) in rules {
            let is_named = broken.iter().any(|(_, broken)| *broken == object);
            if !reach.has_blob(&object)? && !is_named {
                found.damage.push(Damage::Needed { checkpoints, path, object });
            }
        }
        let mut named: HashSet<ObjectId> = broken.iter().map(|(_, object)| *object).collect();
        for (holder, need) in needs {
            for object in reach.lacking(&need.object)? {
                let damage = match (&holder, &need.part) {
                    (Holder::Session(session), _) => Damage::Transcript { session: session.clone(), object },
                    (Holder::Step(step), part) => {
                        Damage::OutsideOfStep { step: step.clone(), path: shown(part), object }
                    }
                    (Holder::Operation(operation), part @ (NeededFor::Outside(_) | NeededFor::Transcript)) => {
                        Damage::OutsideOfOperation { operation: operation.clone(), path: shown(part) }
                    }
                    // Most of it is what checkpoints have, and is named with them.
                    (Holder::Operation(operation), part) if named.insert(object) => {
                        Damage::Operation { operation: operation.clone(), path: path_of(part.clone()), object }
                    }
                    (Holder::Operation(_), _) => continue,
                };
                if !found.damage.contains(&damage) {
                    found.damage.push(damage);
                }
            }
        }
        found.objects += reach.seen.len() as u64;
        if broken.is_empty() {
            return Ok(());
        }
        let numbers = broken.iter().enumerate().map(|(number, (_, object))| (*object, number)).collect();
        let mut needs = Needs { store: self, broken: numbers, known: HashMap::new() };
        let mut checkpoints: Vec<Vec<CheckpointId>> = vec![Vec::new(); broken.len()];
        for (id, root) in &roots {
            for number in needs.of(root).iter() {
                checkpoints[*number].push(id.clone());
            }
        }
        let needed = broken.into_iter().zip(checkpoints);
        found.damage.extend(needed.map(|((path, object), checkpoints)| Damage::Needed { checkpoints, path, object }));
        Ok(())
    }

    /// Whether a blob is whole: its record is sound, and its chunks' records are.
    fn has_blob(&self, id: &ObjectId, read_all: bool) -> Result<bool, StoreError> {
        // What a fork shares with its parent may be in the parent's store alone.
        let Some(place) = self.place(id)? else {
            return Ok(self.write_blob(id, &mut std::io::sink()).is_ok_and(|w| w.is_ok()));
        };
        let sql =
            "SELECT kind FROM fresh_objects WHERE id = ?1 UNION ALL SELECT kind FROM objects WHERE id = ?1 LIMIT 1";
        let kind: u8 = self.db().prepare_cached(sql)?.query_row([&id.0[..]], |r| r.get(0))?;
        if Kind::from_code(kind) != Some(Kind::Chunks) && !read_all {
            // Its row equals the one that the record makes, and the record was found sound.
            return Ok(true);
        }
        let file = self.pack_file(place.pack)?;
        let Ok(Some(sound)) = pack::read(&file, &place) else { return Ok(false) };
        if sound.id != *id {
            return Ok(false);
        }
        match sound.kind {
            Kind::Blob => Ok(true),
            Kind::Chunks => Ok(self.write_blob(id, &mut std::io::sink()).is_ok()),
            _ => Ok(false),
        }
    }
}

/// What an object that is not in a checkpoint is named by.
#[derive(Clone)]
enum Holder {
    Session(SessionId),
    Step(StepRef),
    Operation(OperationId),
}

impl Holder {
    /// None of a checkpoint, which is looked at by its row, and of records that need nothing.
    fn of(record: &Record) -> Option<Self> {
        match record {
            Record::Session(session) => Some(Self::Session(session.id.clone())),
            Record::Step(step) => Some(Self::Step(step.at.clone())),
            Record::StepEnded(end) => Some(Self::Step(end.at.clone())),
            Record::Operation(operation) => Some(Self::Operation(operation.id.clone())),
            Record::Checkpoint(_)
            | Record::Workspace(_)
            | Record::Name { .. }
            | Record::Annotation { .. }
            | Record::Accepted(_)
            | Record::Turn(_)
            | Record::TurnEnded(_)
            | Record::SessionEnded { .. }
            | Record::Gap(_)
            | Record::Message(_)
            | Record::Imported { .. }
            | Record::Ended { .. } => None,
        }
    }
}

/// Where in the workspace a part of a record is.
fn path_of(part: NeededFor) -> WorkspacePath {
    match part {
        NeededFor::Path(path) => path,
        NeededFor::Files | NeededFor::Git | NeededFor::Transcript | NeededFor::Outside(_) => WorkspacePath::root(),
    }
}

/// A part of a record that is not in the workspace, for people.
fn shown(part: &NeededFor) -> String {
    match part {
        NeededFor::Outside(path) => path.clone(),
        NeededFor::Path(path) => path.display().to_string(),
        NeededFor::Transcript => "the transcript".to_owned(),
        NeededFor::Files | NeededFor::Git => String::new(),
    }
}

/// Looks for objects, each once.
struct Reach<'s> {
    store: &'s Reader,
    /// Whether bytes of packs are damaged, so that a row says nothing of its record.
    read_all: bool,
    /// Each object that was looked for, and whether it is whole; of a tree, whether it itself is.
    seen: HashMap<ObjectId, bool>,
    /// What is not whole of the trees, with the first path that it was found at.
    broken: Vec<(WorkspacePath, ObjectId)>,
}

impl Reach<'_> {
    fn tree(&mut self, path: WorkspacePath, id: ObjectId) -> Result<(), StoreError> {
        let mut todo = vec![(path, id)];
        while let Some((path, id)) = todo.pop() {
            if self.seen.contains_key(&id) {
                continue;
            }
            let tree = self.store.tree(&id);
            self.seen.insert(id, tree.is_ok());
            let Ok(tree) = tree else {
                self.broken.push((path, id));
                continue;
            };
            for (name, entry) in tree.entries() {
                match entry {
                    Entry::Folder { tree, .. } => todo.push((path.join(name), *tree)),
                    Entry::File { blob, .. } if !self.seen.contains_key(blob) && !self.has_blob(blob)? => {
                        self.broken.push((path.join(name), *blob));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn has_blob(&mut self, id: &ObjectId) -> Result<bool, StoreError> {
        if let Some(is_whole) = self.seen.get(id) {
            return Ok(*is_whole);
        }
        let is_whole = self.store.has_blob(id, self.read_all)?;
        self.seen.insert(*id, is_whole);
        Ok(is_whole)
    }

    /// What is not whole of an object that a record needs.
    fn lacking(&mut self, object: &NeededObject) -> Result<Vec<ObjectId>, StoreError> {
        Ok(match object {
            NeededObject::Blob { id, .. } if self.has_blob(id)? => Vec::new(),
            NeededObject::Blob { id, .. } => vec![*id],
            NeededObject::GitState(id) => self.lacking_of_state(id)?.into_iter().collect(),
            NeededObject::Tree(id) => {
                self.tree(WorkspacePath::root(), *id)?;
                std::mem::take(&mut self.broken).into_iter().map(|(_, object)| object).collect()
            }
        })
    }

    /// What is not whole of a state of git: itself, or the last of what was staged in it.
    fn lacking_of_state(&mut self, id: &ObjectId) -> Result<Option<ObjectId>, StoreError> {
        if !self.has_blob(id)? {
            return Ok(Some(*id));
        }
        let state = self.store.blob(id).ok().and_then(|json| serde_json::from_slice::<GitState>(&json).ok());
        let mut lacks = None;
        for need in state.iter().flat_map(GitState::needs) {
            let blob = need.object.id();
            if !self.has_blob(&blob)? {
                lacks = Some(blob);
            }
        }
        Ok(lacks)
    }
}

/// Which trees need which broken objects: every tree is read once, however many are broken.
struct Needs<'s> {
    store: &'s Reader,
    /// Each broken object with its number.
    broken: HashMap<ObjectId, usize>,
    /// What each tree needs, in order. Most need nothing, or what the one tree in them that changed needs.
    known: HashMap<ObjectId, Rc<BTreeSet<usize>>>,
}

impl Needs<'_> {
    fn of(&mut self, root: &ObjectId) -> Rc<BTreeSet<usize>> {
        // Not by recursion: folders may be deeper than a stack. A tree is asked again once all in it are known.
        let mut todo = vec![*root];
        while let Some(id) = todo.last().copied() {
            if self.known.contains_key(&id) {
                todo.pop();
                continue;
            }
            let own = self.broken.get(&id).copied();
            let tree = if own.is_some() { None } else { self.store.tree(&id).ok() };
            let Some(tree) = tree else {
                self.known.insert(id, Rc::new(own.into_iter().collect()));
                continue;
            };
            let folders = || {
                tree.entries().iter().filter_map(|(_, entry)| match entry {
                    Entry::Folder { tree, .. } => Some(tree),
                    _ => None,
                })
            };
            let unknown = todo.len();
            todo.extend(folders().filter(|folder| !self.known.contains_key(*folder)));
            if todo.len() > unknown {
                continue;
            }
            let mut needs: BTreeSet<usize> = BTreeSet::new();
            for folder in folders() {
                needs.extend(self.known.get(folder).iter().flat_map(|known| known.iter()));
            }
            let files = tree.entries().iter().filter_map(|(_, entry)| match entry {
                Entry::File { blob, .. } => self.broken.get(blob).copied(),
                _ => None,
            });
            needs.extend(files);
            self.known.insert(id, Rc::new(needs));
        }
        self.known.get(root).cloned().unwrap_or_default()
    }
}

/// Compares a table with the same made anew, row by row.
fn compare(
    live: &Connection,
    again: &Connection,
    table: &'static str,
    columns: &str,
    damage: &mut Vec<Damage>,
) -> Result<(), StoreError> {
    let key = columns.split(',').next().unwrap_or_default();
    let rows = |db: &Connection| -> Result<BTreeMap<String, Vec<Value>>, StoreError> {
        let mut query = db.prepare(&format!("SELECT {columns} FROM {table} NOT INDEXED ORDER BY {key}"))?;
        let count = query.column_count();
        let rows = query.query_map([], |r| (0..count).map(|c| r.get(c)).collect::<Result<Vec<Value>, _>>())?;
        rows.map(|row| {
            let row = row?;
            Ok((format_key(&row[0]), row))
        })
        .collect()
    };
    let live = match rows(live) {
        Ok(rows) => rows,
        Err(error) => {
            damage.push(Damage::Database { message: error.to_string() });
            return Ok(());
        }
    };
    let again = rows(again)?;
    let wrong = live.iter().filter(|(key, row)| again.get(*key) != Some(row)).map(|(key, _)| key);
    let missing = again.keys().filter(|key| !live.contains_key(*key));
    damage.extend(wrong.chain(missing).map(|key| Damage::Row { table, key: key.clone() }));
    Ok(())
}

fn format_key(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
    }
}
