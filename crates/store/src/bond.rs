//! What binds a view's file, its log and this store together, so that nobody believes a view that was copied or restored.
//!
//! SQLite applies a log to whatever file has the name beside it. A folder that is copied while hooks run, or one of the two that
//! comes back from a backup, is therefore a mix of two moments that looks like a view, and its end may well agree with the
//! packs. Two notes tell, which [`Store::settle`](crate::Store) and every opening compare:
//!
//! - **The file.** When it was made, as the filesystem tells. A rename keeps that, a copy has its own.
//! - **The log.** Each fold of the log gives the file a new *mark*, in a table that nothing else writes to, so that the mark
//!   that is read is the file's unless a fold is under way. The first transaction of each log names the mark of the file that
//!   it is written over, in another table. A file of another moment has another mark.
//!
//! A view that does not belong together is made anew from the packs, which costs time and nothing else.

use std::path::Path;

use piton_host::clock;
use rusqlite::{Connection, params};

use crate::error::StoreError;

/// The key in `meta` under which a view has its [`Bond`].
pub(crate) const KEY: &str = "file";

/// What a view notes of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bond {
    identity: Identity,
    /// The mark of the file that the log is written over.
    over: i64,
    /// The mark that the file gets with the fold that is under way, or has got with the last one.
    next: i64,
}

/// What tells a file from its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// When it was made, in nanoseconds since 1970. Programs cannot set that, so every copy has another; and unlike the number
    /// of an inode it is the same wherever the file is mounted.
    Born(i64),
    /// The number of its inode, where the filesystem keeps no times of birth.
    Inode {
        number: u64,
        /// Whether the view before it was made anew because of its number. Should that be so once more, it is the filesystem that
        /// has no steady numbers, and they are not compared any longer.
        is_second: bool,
    },
    /// Nothing that could be compared.
    Unknown,
}

/// How a view's file and log stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// The log names the mark of the file.
    Bound,
    /// The log was folded, and nothing was written since, or the fold was cut off: whoever writes next binds it anew.
    Folded,
}

impl Identity {
    /// That of a file, as far as it can be told.
    pub(crate) fn of(found: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        // A simulated power cut leaves its disk as a copy of the one before it.
        if clock::is_simulated_run() {
            return Self::Unknown;
        }
        let born = found.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        match born.and_then(|since| i64::try_from(since.as_nanos()).ok()) {
            Some(born) => Self::Born(born),
            None => Self::Inode { number: found.ino(), is_second: false },
        }
    }

    /// The same of the file at a path.
    pub(crate) fn at(path: &Path) -> Self {
        std::fs::metadata(path).map_or(Self::Unknown, |found| Self::of(&found))
    }

    /// Whether a file may be the one that was noted.
    pub(crate) fn may_be(self, noted: Self) -> bool {
        match (self, noted) {
            (Self::Unknown, _) | (_, Self::Unknown) => true,
            (Self::Inode { number, .. }, Self::Inode { number: noted, .. }) => number == noted,
            _ => self == noted,
        }
    }

    /// What a new view notes of its own file, after one whose file was noted as one thing and found as another.
    pub(crate) fn after(self, noted: Self, found: Self) -> Self {
        match (self, noted) {
            (Self::Inode { .. }, Self::Unknown) => Self::Unknown,
            (Self::Inode { number, .. }, Self::Inode { is_second, .. }) if !found.may_be(noted) => {
                if is_second {
                    Self::Unknown
                } else {
                    Self::Inode { number, is_second: true }
                }
            }
            _ => self,
        }
    }

    fn to_text(self) -> String {
        match self {
            Self::Born(at) => format!("born {at}"),
            Self::Inode { number, is_second: false } => format!("inode {number}"),
            Self::Inode { number, is_second: true } => format!("inode-again {number}"),
            Self::Unknown => "unknown 0".to_owned(),
        }
    }

    fn from_text(kind: &str, value: &str) -> Option<Self> {
        Some(match kind {
            "born" => Self::Born(value.parse().ok()?),
            "inode" | "inode-again" => Self::Inode { number: value.parse().ok()?, is_second: kind == "inode-again" },
            "unknown" => Self::Unknown,
            _ => return None,
        })
    }
}

impl Bond {
    fn from_text(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [kind, value, over, next] = parts[..] else { return None };
        let identity = Identity::from_text(kind, value)?;
        Some(Self { identity, over: over.parse().ok()?, next: next.parse().ok()? })
    }

    /// The bond of a view with the mark of its file, as far as it has both.
    pub(crate) fn read(db: &Connection) -> Result<Option<(Self, i64)>, StoreError> {
        let sql = "SELECT (SELECT value FROM meta WHERE key = 'file'), (SELECT mark FROM folded)";
        let found = db.prepare_cached(sql)?.query_row([], |r| Ok((r.get(0)?, r.get(1)?)))?;
        let (text, mark): (Option<String>, Option<i64>) = found;
        Ok(text.as_deref().and_then(Self::from_text).zip(mark))
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    fn write(&self, db: &Connection) -> Result<(), StoreError> {
        let text = format!("{} {} {}", self.identity.to_text(), self.over, self.next);
        db.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?.execute(params![KEY, text])?;
        Ok(())
    }
}

/// Whether a view's rows, log and file belong together.
///
/// # Errors
/// [`StoreError::is_damaged_database`] where they do not.
pub(crate) fn check(db: &Connection, file: Identity) -> Result<Belonging, StoreError> {
    let foreign = |what: &str| StoreError::Diverged { what: what.to_owned() };
    let (bond, mark) = Bond::read(db)?.ok_or_else(|| foreign("it does not say which file it is in"))?;
    if !file.may_be(bond.identity) {
        return Err(foreign("its file is a copy"));
    }
    match mark {
        mark if mark == bond.over => Ok(Belonging::Bound),
        mark if mark == bond.next => Ok(Belonging::Folded),
        _ => Err(foreign("its log is not of its file")),
    }
}

/// Notes in a new view which file it is in.
pub(crate) fn found(db: &Connection, identity: Identity) -> Result<(), StoreError> {
    let mark = new_mark()?;
    db.execute("INSERT INTO folded VALUES (?1)", [mark])?;
    // Its first log is still to be bound: no mark is 0.
    Bond { identity, over: 0, next: mark }.write(db)
}

/// Begins a fold: the file gets another mark with it.
pub(crate) fn begin_fold(db: &Connection) -> Result<(), StoreError> {
    let Some((bond, _)) = Bond::read(db)? else { return Ok(()) };
    let mark = new_mark()?;
    db.execute("UPDATE folded SET mark = ?1", [mark])?;
    Bond { next: mark, ..bond }.write(db)
}

/// Binds the log to the file that it is written over. Before anything else is written to it.
pub(crate) fn bind(db: &Connection) -> Result<(), StoreError> {
    let Some((bond, mark)) = Bond::read(db)? else { return Ok(()) };
    Bond { over: mark, ..bond }.write(db)
}

/// Writes a transaction that changes nothing, so that it stands in the log where another one was.
pub(crate) fn put_something(db: &Connection) -> Result<(), StoreError> {
    let transaction = rusqlite::Transaction::new_unchecked(db, rusqlite::TransactionBehavior::Immediate)?;
    // As if a fold were about to begin.
    begin_fold(db)?;
    transaction.commit()?;
    Ok(())
}

/// Notes that nothing tells the file of a view from its copies.
pub(crate) fn forget_identity(db: &Connection) -> Result<(), StoreError> {
    let Some((bond, _)) = Bond::read(db)? else { return Ok(()) };
    Bond { identity: Identity::Unknown, ..bond }.write(db)
}

fn new_mark() -> Result<i64, StoreError> {
    let random = clock::random().map_err(StoreError::io("cannot make a mark for", Path::new("the database")))?;
    // Never 0 and never negative.
    Ok(i64::from_le_bytes(random) >> 2 & i64::MAX | 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LOG_LIMIT, PATIENCE, Store, views};
    use piton_model::{CheckpointId, Record};
    use std::path::PathBuf;

    fn name(store: &Store, n: u64) {
        let lock = store.lock(PATIENCE).unwrap();
        let mut writer = store.write(&lock).unwrap();
        let checkpoint = CheckpointId::from_random(n.to_le_bytes());
        writer.record(Record::Name { checkpoint, name: format!("name {n:04}") }).unwrap();
        writer.commit(false, false).unwrap();
        store.tidy(&lock).unwrap();
    }

    fn names(store: &Store) -> u64 {
        store.db().query_row("SELECT count(*) FROM names", [], |r| r.get::<_, i64>(0)).unwrap() as u64
    }

    fn view(folder: &Path) -> PathBuf {
        views::database_file(folder).unwrap()
    }

    fn log(folder: &Path) -> PathBuf {
        PathBuf::from(format!("{}-wal", view(folder).display()))
    }

    /// Writes names until the log has been folded once more.
    fn write_until_folded(store: &Store, n: &mut u64) {
        let length = || std::fs::metadata(log(store.folder())).unwrap().len();
        loop {
            let before = length();
            *n += 1;
            name(store, *n);
            if length() < before {
                return;
            }
            assert!(*n < 10 * LOG_LIMIT as u64, "it is never folded");
        }
    }

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &to),
                false => drop(std::fs::copy(entry.path(), to).unwrap()),
            }
        }
    }

    /// One of the two is put back from a backup, in place. SQLite applies the log to the file all the same; the next turn used to get
    /// the number of an old one, and that went into the packs.
    #[test]
    fn a_file_and_a_log_of_different_moments_are_never_believed() {
        // In a simulated run files are not told from their copies, so here only the marks tell.
        clock::in_another_run("a run", || {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::create(folder.path()).unwrap();
            let mut n = 1;
            name(&store, n);
            let both = || [view(folder.path()), log(folder.path())].map(|path| std::fs::read(path).unwrap());
            let mut moments = vec![both()];
            for _ in 0..3 {
                for _ in 0..2 {
                    n += 1;
                    name(&store, n);
                    moments.push(both());
                }
                write_until_folded(&store, &mut n);
                moments.push(both());
            }
            n += 1;
            name(&store, n);
            moments.push(both());
            drop(store);
            let mut made_anew = Vec::new();
            for (of_file, [file, _]) in moments.iter().enumerate() {
                for (of_log, [_, log]) in moments.iter().enumerate() {
                    let restored = tempfile::tempdir().unwrap();
                    copy(&folder.path().join(crate::PACKS), &restored.path().join(crate::PACKS));
                    std::fs::write(views::path(restored.path(), 1), file).unwrap();
                    std::fs::write(self::log(restored.path()), log).unwrap();
                    let store = Store::open(restored.path()).unwrap();
                    drop(store.lock(PATIENCE).unwrap());
                    assert_eq!(names(&store), n, "file {of_file}, log {of_log}");
                    let damage = store.verify().unwrap().damage;
                    assert!(damage.is_empty(), "file {of_file}, log {of_log}: {damage:?}");
                    if store.generation() > 1 {
                        made_anew.push((of_file, of_log));
                    }
                }
            }
            assert!(made_anew.len() > 30 && made_anew.iter().all(|(file, log)| file != log), "{made_anew:?}");
        });
    }

    #[test]
    fn a_copied_store_makes_its_view_anew_once_and_a_renamed_one_never() {
        let base = tempfile::tempdir().unwrap();
        let (first, second, third) = (base.path().join("first"), base.path().join("second"), base.path().join("third"));
        let store = Store::create(&first).unwrap();
        name(&store, 1);
        let generation = store.generation();
        drop(store);
        std::fs::rename(&first, &second).unwrap();
        let store = Store::open(&second).unwrap();
        assert_eq!((store.generation(), names(&store)), (generation, 1));
        drop(store);
        copy(&second, &third);
        for _ in 0..3 {
            let store = Store::open(&third).unwrap();
            assert_eq!((store.generation(), names(&store)), (generation + 1, 1));
        }
        assert_eq!(Store::open(&second).unwrap().generation(), generation);
    }

    #[test]
    fn a_fold_that_is_cut_off_anywhere_costs_no_view() {
        for nth in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::create(folder.path()).unwrap();
            let lock = store.lock(PATIENCE).unwrap();
            let mut n = 0;
            while store.log_pages().unwrap() < LOG_LIMIT {
                n += 1;
                let mut writer = store.write(&lock).unwrap();
                let checkpoint = CheckpointId::from_random(u64::to_le_bytes(n));
                writer.record(Record::Name { checkpoint, name: format!("name {n:04}") }).unwrap();
                writer.commit(false, false).unwrap();
            }
            let is_whole = piton_host::fail::with(nth, || store.tidy(&lock).unwrap()).is_some();
            let generation = store.generation();
            drop((lock, store));
            let store = Store::open(folder.path()).unwrap();
            name(&store, n + 1);
            assert_eq!((store.generation(), names(&store)), (generation, n + 1));
            assert!(store.verify().unwrap().damage.is_empty());
            if is_whole {
                assert!(nth > 3, "{nth}");
                return;
            }
        }
    }

    #[test]
    fn where_numbers_of_inodes_are_not_steady_they_are_compared_twice_and_then_no_more() {
        let inode = |number, is_second| Identity::Inode { number, is_second };
        // (its own, noted of the one before it, found of the one before it) → what it notes
        for (own, noted, found, expected) in [
            (inode(1, false), inode(7, false), inode(7, false), inode(1, false)),
            (inode(1, false), inode(7, false), inode(8, false), inode(1, true)),
            (inode(1, false), inode(7, true), inode(7, false), inode(1, false)),
            (inode(1, false), inode(7, true), inode(8, false), Identity::Unknown),
            (inode(1, false), Identity::Unknown, inode(8, false), Identity::Unknown),
            // It was on another filesystem before.
            (inode(1, false), Identity::Born(7), inode(8, false), inode(1, false)),
            (Identity::Born(1), Identity::Unknown, Identity::Born(8), Identity::Born(1)),
            (Identity::Born(1), Identity::Born(7), Identity::Born(8), Identity::Born(1)),
        ] {
            assert_eq!(own.after(noted, found), expected, "{own:?} after {noted:?}, {found:?}");
            let text = format!("{} 3 5", expected.to_text());
            assert_eq!(Bond::from_text(&text), Some(Bond { identity: expected, over: 3, next: 5 }));
        }
        assert!(inode(1, true).may_be(inode(1, false)) && !inode(1, false).may_be(inode(2, false)));
        assert!(!Identity::Born(1).may_be(inode(1, false)) && Identity::Unknown.may_be(Identity::Born(1)));
    }
}
