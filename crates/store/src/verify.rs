//! Comparing the whole store with itself: packs with their checksums, rows with the records they were made of, and
//! what checkpoints need with what is there.

use std::collections::{BTreeMap, HashMap, HashSet};

use piton_model::diff::TreeSource;
use piton_model::{CheckpointId, Entry, ObjectId, WorkspacePath};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::Store;
use crate::database::{self, VIEW};
use crate::error::StoreError;
use crate::pack::{self, Item, Kind};
use crate::rebuild::replay;

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
        /// The table.
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// What a checkpoint needs is damaged or missing.
    Needed {
        /// The checkpoint that needs it; the newest where several do.
        checkpoint: CheckpointId,
        /// Where.
        path: WorkspacePath,
        /// What.
        object: ObjectId,
    },
    /// SQLite itself finds its file inconsistent.
    Database {
        /// What it says.
        message: String,
    },
}

impl Store {
    /// Checks everything; reads every byte of every pack.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let mut found = Verified::default();
        self.integrity(&mut found)?;
        let committed: HashMap<u32, u64> = self.packs()?.into_iter().map(|(p, length, _)| (p, length)).collect();
        let again = database::in_memory()?;
        let mut damage = Vec::new();
        again.execute_batch("BEGIN")?;
        let ends = replay(
            &again,
            self.folder(),
            |pack| Some(committed.get(&pack).copied().unwrap_or(0)),
            |item| {
                if let Item::Damage { pack, from, to } = item {
                    // A pack that no row knows is the beginning of something that was never committed.
                    if committed.contains_key(&pack) {
                        damage.push(Damage::Pack { pack, from, to });
                    }
                }
                Ok(())
            },
        )?;
        again.execute_batch("COMMIT")?;
        let ends: HashMap<u32, u64> = ends.into_iter().collect();
        for (pack, length) in &committed {
            let end = ends.get(pack).copied().unwrap_or(0);
            let is_named =
                damage.iter().any(|d| matches!(d, Damage::Pack { pack: p, to, .. } if p == pack && to == length));
            if end != *length && !is_named {
                damage.push(Damage::Pack { pack: *pack, from: end.min(*length), to: end.max(*length) });
            }
            found.bytes += length;
        }
        let broken_packs = !damage.is_empty();
        found.damage.append(&mut damage);
        for (table, columns) in VIEW {
            compare(&self.db(), &again, table, columns, &mut found.damage)?;
        }
        self.compare_packs(&mut found)?;
        self.reach(&mut found, broken_packs)?;
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
            .prepare("SELECT key FROM meta WHERE key NOT IN ('boot', 'index', 'searched')")?
            .query_map([], |r| r.get(0))?
            .collect::<Result<_, _>>()?;
        found.damage.extend(unknown.into_iter().map(|key| Damage::Row { table: "meta", key }));
        Ok(())
    }

    /// Looks for everything that checkpoints need. Objects were read when the packs were, so here it is enough to see
    /// that each has a row whose record is sound.
    fn reach(&self, found: &mut Verified, broken_packs: bool) -> Result<(), StoreError> {
        let mut seen: HashSet<ObjectId> = HashSet::new();
        for row in self.checkpoints(None)? {
            found.checkpoints += 1;
            let mut todo = vec![(WorkspacePath::root(), row.checkpoint.root.tree)];
            while let Some((path, id)) = todo.pop() {
                if !seen.insert(id) {
                    continue;
                }
                found.objects += 1;
                let mut needed = |path: WorkspacePath, object| {
                    let checkpoint = row.checkpoint.id.clone();
                    found.damage.push(Damage::Needed { checkpoint, path, object });
                };
                let Ok(tree) = self.tree(&id) else {
                    needed(path, id);
                    continue;
                };
                for (name, entry) in tree.entries() {
                    match entry {
                        Entry::Folder { tree, .. } => todo.push((path.join(name), *tree)),
                        Entry::File { blob, .. } if seen.insert(*blob) => {
                            found.objects += 1;
                            if !self.has_blob(blob, broken_packs)? {
                                needed(path.join(name), *blob);
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a blob is whole: its record is sound, and its chunks' records are.
    fn has_blob(&self, id: &ObjectId, read_all: bool) -> Result<bool, StoreError> {
        let Some(place) = self.place(id)? else { return Ok(false) };
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
