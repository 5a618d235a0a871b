//! Making the view anew from the packs.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use piton_host::{Lock, clock, disk, own};
use piton_model::record::Numbered;
use piton_model::{Record, Workspace};
use rusqlite::{Connection, OpenFlags, params};

use crate::bond::{self, Bond, Identity};
use crate::database::{self, apply, apply_object};
use crate::error::StoreError;
use crate::pack::{self, PackForm, Place, TAG};
use crate::settle::{cut, cut_unclosed, lengths, set_aside};
use crate::transactions::{self, Commit, End, Position, Range, Transaction, TransactionHash, find_key, pack_numbers};
use crate::{INDEX, PACKS, PATIENCE, Reader, Store, WORKSPACE_COPY, gone, pack_name, take_lock, views};

/// Makes the view of a store from all that counts in its packs, in the place of the one before it.
pub(crate) fn rebuild(folder: &Path, lock: &Lock) -> Result<(), StoreError> {
    let old = views::newest(folder)?;
    let packs = folder.join(PACKS);
    own::make_folders(&packs).map_err(StoreError::io("cannot make", &packs))?;
    let mut told = old.and_then(|generation| database::in_time(&views::path(folder, generation), Told::by).ok());
    let noted = told.as_ref().and_then(|told| told.file);
    let lost = told.as_ref().map(|told| gone::note(folder, told)).transpose()?.flatten();
    loop {
        let draft = views::draft(folder)?;
        let db = database::create(&draft)?;
        db.execute_batch("PRAGMA synchronous=OFF; BEGIN")?;
        let mut found = replay(&db, folder, told.as_ref(), lost)?;
        if let Some(from) = found.cut {
            drop(db);
            set_aside(folder, from)?;
            cut(folder, from)?;
            // What the old view says of the rest is no longer so.
            told = None;
            continue;
        }
        let generation = old.max(found.generation).unwrap_or(0) + 1;
        if let Some((end, next)) = found.to_seal {
            let sealed = seal(folder, end, next, generation)?;
            found.lengths.retain(|(pack, _)| *pack != sealed.pack);
            found.lengths.push((sealed.pack, sealed.offset));
        }
        for (pack, end) in &found.lengths {
            db.execute("INSERT INTO packs VALUES (?1, ?2, 0)", params![pack, *end as i64])?;
        }
        db.execute("INSERT INTO meta VALUES ('boot', ?1)", [clock::boot_id()])?;
        let identity = Identity::at(&draft);
        let identity = noted.map_or(identity, |(noted, found)| identity.after(noted, found));
        bond::found(&db, identity)?;
        // On the disk before it gets its name: SQLite does not notice a page that a power cut took.
        db.execute_batch("COMMIT; PRAGMA synchronous=NORMAL")?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        drop((db, told.take()));
        let _ = std::fs::remove_file(folder.join(INDEX));
        views::publish(folder, &draft, generation)?;
        let path = views::path(folder, generation);
        if !Identity::at(&path).may_be(identity) {
            // A filesystem on which not even a rename keeps it.
            bond::forget_identity(&database::connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?)?;
        }
        let store = Store::with_view(folder, generation)?;
        // What lies behind its end goes now, so that `verify` names what had to be set aside. Where that fails, whoever takes the
        // lock next tries again.
        let _ = store.settle();
        return store.keep_workspace_record(lock);
    }
}

/// Ends the packs with a commit record that closes nothing, after bytes that no sound one closes, or that are damaged.
///
/// It says for good that what lies before it was closed and on the disk, whatever becomes of the view that knew so: its
/// damage is never taken for the trace of a power cut. And it says which number comes next.
fn seal(folder: &Path, end: Position, next: u64, generation: u64) -> Result<Position, StoreError> {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    // Nobody closed what lies behind it.
    cut_unclosed(folder, end)?;
    let packs = folder.join(PACKS);
    let sync = |path: &Path| {
        let synced = File::open(path).and_then(disk::sync);
        synced.map_err(StoreError::io("cannot sync", path))
    };
    for pack in pack_numbers(folder)? {
        sync(&packs.join(pack_name(pack)))?;
    }
    sync(&packs)?;
    let path = packs.join(pack_name(end.pack));
    let file = File::open(&path).map_err(StoreError::io("cannot open", &path))?;
    let form = pack::form(&file).map_err(StoreError::io("cannot read", &path))?;
    let (key, at) = match form {
        PackForm::Tagged(key) => (Some(key), end),
        _ => (find_key(folder)?, Position { pack: end.pack + 1, offset: 0 }),
    };
    // Bytes that need a seal have tags.
    let key = key.ok_or(StoreError::Unfinished)?;
    let commit = Commit {
        first: next,
        count: 0,
        ranges: Vec::new(),
        hash: TransactionHash::default().finish(),
        synced: end,
        boot: clock::boot_id(),
        generation,
        key: key.to_hex(),
    };
    let mut bytes = if at.offset == 0 { key.head().to_vec() } else { Vec::new() };
    let offset = at.offset + (bytes.len() + TAG) as u64;
    let path = packs.join(pack_name(at.pack));
    let record = commit.to_record().map_err(StoreError::io("cannot pack", &path))?;
    bytes.extend_from_slice(&key.tagger(at.pack).tag(offset, &record));
    bytes.extend_from_slice(&record);
    let file = own::open_or_make(&path, File::options().write(true).mode(0o600));
    file.and_then(|file| {
        file.write_all_at(&bytes, at.offset)?;
        file.sync_all()
    })
    .map_err(StoreError::io("cannot write", &path))?;
    sync(&packs)?;
    Ok(Position { pack: at.pack, offset: at.offset + bytes.len() as u64 })
}

/// What a view says of the packs, before it is replaced.
pub(crate) struct Told {
    pub db: Connection,
    /// Each pack with its committed and its synced length.
    pub packs: Vec<(u32, u64, u64)>,
    end: Position,
    synced: Position,
    pub boot: String,
    /// What it notes of its file, and what that is.
    file: Option<(Identity, Identity)>,
}

impl Told {
    fn by(path: &Path) -> Result<Self, StoreError> {
        let db = database::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let packs = crate::pack_rows(&db)?;
        let boot = db.query_row("SELECT value FROM meta WHERE key = 'boot'", [], |r| r.get(0))?;
        let end = packs.last().map(|(pack, length, _)| Position { pack: *pack, offset: *length });
        // A view of an earlier piton notes nothing.
        let bond = Bond::read(&db).ok().flatten();
        let file = bond.map(|(bond, _)| (bond.identity(), Identity::at(path)));
        Ok(Self { end: end.unwrap_or_default(), synced: synced(&packs), boot, file, packs, db })
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
    /// Numbers of records that came again or out of order. Such a record counts, behind the one before it.
    pub repeated: Vec<u64>,
    /// Numbers of records, from and to, that the commit records pass over.
    pub missing: Vec<(u64, u64)>,
    /// Where what counts ends, with the number of the next record, where no sound commit record says so.
    pub to_seal: Option<(Position, u64)>,
    /// The number behind the last record.
    pub next: u64,
}

/// Makes the rows of all that counts. `lost` is the number behind records that are gone from the packs.
fn replay(db: &Connection, folder: &Path, told: Option<&Told>, lost: Option<u64>) -> Result<Replayed, StoreError> {
    let mut rows = Rows::new(db);
    let mut judge = Judge::now(told.map_or(Position::default(), |t| t.synced));
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
    let last = rows.last;
    let replayed = rows.finish(|_| ())?;
    let next = replayed.next.max(lost.unwrap_or(0));
    let is_told = |(_, end): &(Position, LastEnd)| match end {
        LastEnd::Commit { next: said } => *said >= next && !judge.has_damage_only_the_view_explains(),
        LastEnd::NoCommit => false,
        LastEnd::Old => true,
    };
    // The numbers of lost records are not given again: the gap tells that something is missing there.
    let after = |end: LastEnd| match end {
        LastEnd::Commit { next: said } => said.max(next),
        LastEnd::NoCommit => next + 1,
        LastEnd::Old => next,
    };
    let to_seal = last.filter(|last| !is_told(last)).map(|(position, end)| (position, after(end)));
    Ok(Replayed { cut, generation, to_seal, ..replayed })
}

/// The same for `verify`, of what a view says is there: nothing is judged, damage is only named.
pub(crate) fn replay_known(
    db: &Connection,
    folder: &Path,
    known: &HashMap<u32, u64>,
    each: impl FnMut(&Record),
) -> Result<Replayed, StoreError> {
    let mut rows = Rows::new(db);
    transactions::read(folder, Position::default(), Some(known), |transaction| rows.add(folder, transaction))?;
    rows.finish(each)
}

/// Leaves only what lies before a position.
fn shorten(transaction: &mut Transaction, end: Position) {
    let is_before = |place: &Place| Position { pack: place.pack, offset: place.offset } < end;
    transaction.objects.retain(|(_, _, place)| is_before(place));
    transaction.timeline.retain(|(_, place)| is_before(place));
    transaction.damage.retain(|range| Position { pack: range.pack, offset: range.from } < end);
    transaction.stop = transaction.stop.min(end);
}

/// Makes rows of transactions. Records of the timeline wait until all objects are known.
struct Rows<'d> {
    db: &'d Connection,
    timeline: Vec<(Numbered, Place)>,
    lengths: std::collections::BTreeMap<u32, u64>,
    damage: Vec<Range>,
    missing: Vec<(u64, u64)>,
    /// The number that the transaction before says comes next.
    expected: Option<u64>,
    /// Where the last transaction ends, and how.
    last: Option<(Position, LastEnd)>,
}

/// What stands at the end of all that counts.
#[derive(Clone, Copy)]
enum LastEnd {
    Commit {
        next: u64,
    },
    /// Bytes that were closed, without the commit record that did.
    NoCommit,
    /// A pack of format 1.
    Old,
}

impl<'d> Rows<'d> {
    fn new(db: &'d Connection) -> Self {
        Self {
            db,
            timeline: Vec::new(),
            lengths: Default::default(),
            damage: Vec::new(),
            missing: Vec::new(),
            expected: None,
            last: None,
        }
    }

    fn add(&mut self, folder: &Path, transaction: Transaction) -> Result<(), StoreError> {
        for (kind, id, place) in &transaction.objects {
            apply_object(self.db, *kind, id, place)?;
        }
        self.lengths.extend(lengths(folder, &transaction)?);
        let end = match &transaction.end {
            End::Closed { commit, .. } => {
                // One that closes nothing may set the number on purpose.
                let gap = self.expected.filter(|next| *next < commit.first && !commit.ranges.is_empty());
                self.missing.extend(gap.map(|next| (next, commit.first - 1)));
                LastEnd::Commit { next: commit.next() }
            }
            End::Lost | End::Open => LastEnd::NoCommit,
            End::Old => LastEnd::Old,
        };
        self.expected = if let LastEnd::Commit { next } = end { Some(next) } else { None };
        self.last = Some((transaction.stop, end));
        if let End::Closed { commit, is_sound: false } = &transaction.end {
            // What it covers beyond the end of a pack is damage that no reading finds.
            for range in &commit.ranges {
                let length = transactions::pack_length(folder, range.pack)?;
                if length < range.to {
                    self.damage.push(Range { from: range.from.max(length), ..*range });
                }
            }
        }
        self.damage.extend(transaction.damage);
        self.timeline.extend(transaction.timeline);
        Ok(())
    }

    /// Records are written in order of their numbers, so they come in that order too. One that does not was given its number by
    /// a piton that believed a wrong view: it counts, with a number behind the one before it.
    fn finish(self, mut each: impl FnMut(&Record)) -> Result<Replayed, StoreError> {
        let (mut repeated, mut written, mut given) = (Vec::new(), 0, 0);
        for (mut numbered, place) in self.timeline {
            if numbered.seq <= written {
                repeated.push(numbered.seq);
            }
            written = written.max(numbered.seq);
            given = numbered.seq.max(given + 1);
            numbered.seq = given;
            each(&numbered.record);
            apply(self.db, &numbered, &place)?;
        }
        let lengths = self.lengths.into_iter().collect();
        Ok(Replayed {
            lengths,
            damage: self.damage,
            cut: None,
            generation: None,
            repeated,
            missing: self.missing,
            to_seal: None,
            next: given + 1,
        })
    }
}

/// Tells damage from the traces of a power cut.
///
/// Damage in what was on the disk loses only the damaged records. What was not on the disk when the power went may be
/// there in part, and a later transaction may need what is not: so nothing counts from the first one on that is not
/// whole.
#[derive(Default)]
pub(crate) struct Judge {
    /// The machine's run of now: what was written in it was not hit by a power cut.
    boot: String,
    /// Everything before this was on the disk, as the view or a commit record tells.
    durable: Position,
    /// The same as commit records alone tell it.
    durable_in_packs: Position,
    generation: Option<u64>,
    /// Transactions that are not sound: where they begin and end, and the run that they were written in, where known.
    unsound: Vec<(Position, Position, Option<String>)>,
    /// The run in which the bytes at the end were written, where only the view tells.
    last_boot: Option<String>,
}

impl Judge {
    /// A judge in the machine's run of now. Everything before `durable` is on the disk.
    pub(crate) fn now(durable: Position) -> Self {
        Self { boot: clock::boot_id(), durable, ..Self::default() }
    }

    pub(crate) fn see(&mut self, transaction: &Transaction) {
        let Transaction { start, stop, end, .. } = transaction;
        match end {
            End::Old => {}
            End::Closed { commit, is_sound } => {
                self.generation = self.generation.max(Some(commit.generation));
                // A commit record is whole or none: what it says holds, also where bytes that it covers are damaged.
                self.durable_in_packs = self.durable_in_packs.max(commit.synced);
                self.durable = self.durable.max(commit.synced);
                // One whose own commit record is damaged was written in this run or before it. Had it been before, this run
                // would have synced it first.
                for (_, _, boot) in self.unsound.iter_mut().filter(|(_, _, boot)| boot.is_none()) {
                    *boot = Some(commit.boot.clone());
                }
                if !is_sound {
                    self.unsound.push((*start, *stop, Some(commit.boot.clone())));
                }
            }
            End::Lost | End::Open => self.unsound.push((*start, *stop, self.last_boot.take())),
        }
    }

    /// Whether there is damage that without the view, or in a later run, would look like the trace of a power cut.
    fn has_damage_only_the_view_explains(&self) -> bool {
        self.unsound.iter().any(|(_, stop, _)| *stop > self.durable_in_packs)
    }

    /// From here on nothing counts: a power cut took some of it.
    pub(crate) fn cut(&self) -> Option<Position> {
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

impl Reader {
    /// Makes the view anew from the packs, unless somebody else has done so, and reads from that one from now on.
    pub fn rebuild(&self) -> Result<(), StoreError> {
        // Not as other writers take it: where packs and view cannot be made to agree, this is the way out.
        let lock = take_lock(self.folder(), PATIENCE)?;
        if !self.is_current()? {
            return self.look_anew();
        }
        self.make_view_anew(&lock)
    }

    /// Makes the view anew from the packs, and reads from that one from now on.
    pub(crate) fn make_view_anew(&self, lock: &Lock) -> Result<(), StoreError> {
        rebuild(self.folder(), lock)?;
        self.look_anew()
    }
}

impl Store {
    /// Records the workspace once more where its own record, or the newest of them, is not in the packs any more: without it
    /// nobody finds what else is there. The copy beside the packs has it.
    fn keep_workspace_record(&self, lock: &Lock) -> Result<(), StoreError> {
        let copy = std::fs::read(self.folder().join(WORKSPACE_COPY)).ok();
        let copy: Option<Workspace> = copy.and_then(|json| serde_json::from_slice(&json).ok());
        let is_own = |copy: &Workspace| self.folder().file_name().is_some_and(|name| name == copy.id.as_str());
        let Some(copy) = copy.filter(is_own) else { return Ok(()) };
        if self.workspace()?.is_some_and(|recorded| recorded.at >= copy.at) {
            return Ok(());
        }
        let mut writer = self.write(lock)?;
        writer.record(Record::Workspace(copy))?;
        writer.commit(true, false)
    }
}
