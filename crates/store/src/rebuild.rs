//! Making the view anew from the packs.

use std::collections::HashMap;
use std::path::Path;

use piton_host::{Lock, clock};
use piton_model::record::Numbered;
use rusqlite::{Connection, OpenFlags, params};

use crate::database::{apply, apply_object};
use crate::error::StoreError;
use crate::pack::Place;
use crate::settle::{cut, lengths, set_aside};
use crate::transactions::{self, End, Position, Range, Transaction, pack_numbers};
use crate::{INDEX, PATIENCE, Store, take_lock, views};

/// Makes the view of a store from all that counts in its packs, in the place of the one before it.
pub(crate) fn rebuild(folder: &Path, _lock: &Lock) -> Result<(), StoreError> {
    let old = views::newest(folder)?;
    let mut told = old.and_then(|generation| Told::by(&views::path(folder, generation)).ok());
    loop {
        let draft = views::draft(folder)?;
        let db = crate::database::create(&draft)?;
        db.execute_batch("PRAGMA synchronous=OFF; BEGIN")?;
        let found = replay(&db, folder, told.as_ref())?;
        if let Some(from) = found.cut {
            drop(db);
            set_aside(folder, from)?;
            cut(folder, from)?;
            // What the old view says of the rest is no longer so.
            told = None;
            continue;
        }
        for (pack, end) in &found.lengths {
            db.execute("INSERT INTO packs VALUES (?1, ?2, 0)", params![pack, *end as i64])?;
        }
        db.execute("INSERT INTO meta VALUES ('boot', ?1)", [clock::boot_id()])?;
        // On the disk before it gets its name: SQLite does not notice a page that a power cut took.
        db.execute_batch("COMMIT; PRAGMA synchronous=NORMAL")?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        drop(db);
        let _ = std::fs::remove_file(folder.join(INDEX));
        let generation = old.max(found.generation).unwrap_or(0) + 1;
        return views::publish(folder, &draft, generation);
    }
}

/// What a view says of the packs, before it is replaced.
pub(crate) struct Told {
    end: Position,
    synced: Position,
    boot: String,
}

impl Told {
    fn by(path: &Path) -> Result<Self, StoreError> {
        let db = crate::database::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let packs = crate::pack_rows(&db)?;
        let boot = db.query_row("SELECT value FROM meta WHERE key = 'boot'", [], |r| r.get(0))?;
        let end = packs.last().map(|(pack, length, _)| Position { pack: *pack, offset: *length });
        Ok(Self { end: end.unwrap_or_default(), synced: synced(&packs), boot })
    }
}

/// Everything before this is on the disk.
pub(crate) fn synced(packs: &[(u32, u64, u64)]) -> Position {
    let unsynced = packs.iter().find(|(_, length, synced)| synced < length);
    let at =
        unsynced.map(|(pack, _, synced)| (*pack, *synced)).or(packs.last().map(|(pack, length, _)| (*pack, *length)));
    at.map_or(Position::default(), |(pack, offset)| Position { pack, offset })
}

/// What a replay found.
pub(crate) struct Replayed {
    /// Each pack with the end of what counts in it.
    pub lengths: Vec<(u32, u64)>,
    /// Bytes that count as closed and are no sound record.
    pub damage: Vec<Range>,
    /// From here on nothing can be believed: a power cut took some of it.
    pub cut: Option<Position>,
    /// The highest generation that a commit record names.
    pub generation: Option<u64>,
}

/// Makes the rows of all that counts.
fn replay(db: &Connection, folder: &Path, told: Option<&Told>) -> Result<Replayed, StoreError> {
    let mut rows = Rows::new(db);
    let mut judge =
        Judge { boot: clock::boot_id(), durable: told.map_or(Position::default(), |t| t.synced), ..Judge::default() };
    transactions::read(folder, Position::default(), None, |mut transaction| {
        if matches!(transaction.end, End::Open) {
            // Unless the view has it, in which case only its commit record is damaged, nobody ever closed it.
            let Some(told) = told.filter(|told| told.end > transaction.start) else { return Ok(()) };
            shorten(&mut transaction, told.end);
            transaction.end = End::Lost;
            judge.last_boot = Some(told.boot.clone());
        }
        judge.see(&transaction);
        rows.add(folder, transaction)
    })?;
    let (cut, generation) = (judge.cut(), judge.generation);
    Ok(Replayed { cut, generation, ..rows.finish()? })
}

/// The same for `verify`, of what a view says is there: nothing is judged, damage is only named.
pub(crate) fn replay_known(db: &Connection, folder: &Path, known: &HashMap<u32, u64>) -> Result<Replayed, StoreError> {
    let mut rows = Rows::new(db);
    transactions::read(folder, Position::default(), Some(known), |transaction| rows.add(folder, transaction))?;
    rows.finish()
}

/// Leaves only what lies before a position.
fn shorten(transaction: &mut Transaction, end: Position) {
    let is_before = |place: &Place| Position { pack: place.pack, offset: place.offset } < end;
    transaction.objects.retain(|(_, _, place)| is_before(place));
    transaction.timeline.retain(|(_, place)| is_before(place));
    transaction.damage.retain(|range| Position { pack: range.pack, offset: range.from } < end);
    transaction.stop = transaction.stop.min(end);
}

/// Makes rows of transactions. Records of the timeline wait until all are known, since they go in order of their numbers.
struct Rows<'d> {
    db: &'d Connection,
    timeline: Vec<(Numbered, Place)>,
    lengths: std::collections::BTreeMap<u32, u64>,
    damage: Vec<Range>,
}

impl<'d> Rows<'d> {
    fn new(db: &'d Connection) -> Self {
        Self { db, timeline: Vec::new(), lengths: Default::default(), damage: Vec::new() }
    }

    fn add(&mut self, folder: &Path, transaction: Transaction) -> Result<(), StoreError> {
        for (kind, id, place) in &transaction.objects {
            apply_object(self.db, *kind, id, place)?;
        }
        self.lengths.extend(lengths(folder, &transaction)?);
        self.damage.extend(transaction.damage);
        self.timeline.extend(transaction.timeline);
        Ok(())
    }

    fn finish(mut self) -> Result<Replayed, StoreError> {
        self.timeline.sort_by_key(|(numbered, _)| numbered.seq);
        for (numbered, place) in &self.timeline {
            apply(self.db, numbered, place)?;
        }
        let lengths = self.lengths.into_iter().collect();
        Ok(Replayed { lengths, damage: self.damage, cut: None, generation: None })
    }
}

/// Tells damage from the traces of a power cut.
///
/// Damage in what was on the disk loses only the damaged records. What was not on the disk when the power went may be
/// there in part, and a later transaction may need what is not: so nothing counts from the first one on that is not
/// whole.
#[derive(Default)]
struct Judge {
    /// The machine's run of now: what was written in it was not hit by a power cut.
    boot: String,
    /// Everything before this was on the disk.
    durable: Position,
    generation: Option<u64>,
    /// Transactions that are not sound: where they begin and end, and the run that they were written in, where known.
    unsound: Vec<(Position, Position, Option<String>)>,
    /// The run in which the bytes at the end were written, where only the view tells.
    last_boot: Option<String>,
}

impl Judge {
    fn see(&mut self, transaction: &Transaction) {
        let Transaction { start, stop, end, .. } = transaction;
        match end {
            End::Old => {}
            End::Closed { commit, is_sound } => {
                self.generation = self.generation.max(Some(commit.generation));
                if *is_sound {
                    self.durable = self.durable.max(commit.synced);
                    // One whose own commit record is damaged was written in this run or before it. Had it been before,
                    // this run would have synced it first.
                    for (_, _, boot) in self.unsound.iter_mut().rev().take_while(|(_, _, boot)| boot.is_none()) {
                        *boot = Some(commit.boot.clone());
                    }
                } else {
                    self.unsound.push((*start, *stop, Some(commit.boot.clone())));
                }
            }
            End::Lost | End::Open => self.unsound.push((*start, *stop, self.last_boot.take())),
        }
    }

    fn cut(&self) -> Option<Position> {
        let is_trace = |(_, stop, boot): &&(Position, Position, Option<String>)| {
            *stop > self.durable && boot.as_ref() != Some(&self.boot)
        };
        self.unsound.iter().find(is_trace).map(|(start, _, _)| *start)
    }
}

/// Whether everything between two positions is closed and sound.
pub(crate) fn is_sound(folder: &Path, from: Position, known: &HashMap<u32, u64>) -> Result<bool, StoreError> {
    let mut sound = true;
    let mut reached = from;
    transactions::read(folder, from, Some(known), |transaction| {
        sound &= match &transaction.end {
            End::Closed { is_sound, .. } => *is_sound,
            End::Old => transaction.damage.is_empty(),
            End::Lost | End::Open => false,
        };
        reached = transaction.stop;
        Ok(())
    })?;
    let last =
        known.iter().max().map_or(Position::default(), |(pack, length)| Position { pack: *pack, offset: *length });
    Ok(sound && reached >= last && known.keys().all(|pack| pack_numbers(folder).is_ok_and(|all| all.contains(pack))))
}

impl Store {
    /// Makes the view anew from the packs, unless somebody else has done so. This handle still has the old one: open the
    /// store again.
    pub fn rebuild(&self) -> Result<(), StoreError> {
        // Not as other writers take it: where packs and view cannot be made to agree, this is the way out.
        let lock = take_lock(self.folder(), PATIENCE)?;
        if views::newest(self.folder())? != Some(self.generation) {
            return Ok(());
        }
        rebuild(self.folder(), &lock)
    }
}
