//! Gaps of those who could not record them: for want of the lock, of time, or of a store that takes anything.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_host::Lock;
use piton_model::WorkspaceId;
use piton_model::session::Gap;

use crate::database::to_sql;
use crate::error::StoreError;
use crate::{Home, Store, file_id, file_id_of};

/// Where they are set aside, and where they are while they are being recorded.
const ASIDE: &str = "gaps";
const ASIDE_TAKEN: &str = "gaps.taken";
/// A store that cannot take a gap for days must not grow by what is set aside: what comes first tells enough.
const MOST_ASIDE: u64 = 256 << 10;

impl Home {
    /// Sets a gap of a workspace aside without opening its store, which may be what took too long.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn set_gap_aside(&self, workspace: &WorkspaceId, gap: &Gap) -> Result<(), StoreError> {
        append(&self.folder(workspace), gap)
    }
}

fn append(folder: &Path, gap: &Gap) -> Result<(), StoreError> {
    let path = folder.join(ASIDE);
    // A line of its own also where the one before it is torn, as a full disk leaves it.
    let mut line = vec![b'\n'];
    line.extend(serde_json::to_vec(gap).map_err(to_sql)?);
    line.push(b'\n');
    append_line(&path, &line).map_err(StoreError::io("cannot write", &path))
}

/// Appends to the file that has the name when the writing is over. Whoever takes the file away locks it first, so that what
/// is appended is either read with it or goes to the next one.
fn append_line(path: &Path, line: &[u8]) -> io::Result<()> {
    loop {
        let file = File::options().append(true).create(true).mode(0o600).open(path)?;
        if file.try_lock_shared().is_err() || file_id(path) != file_id_of(&file) {
            // It has just been taken, and the next one gets the name.
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        // One write, so that lines of several processes do not mix.
        return if file.metadata()?.len() < MOST_ASIDE { (&file).write_all(line) } else { Ok(()) };
    }
}

impl Store {
    /// Sets a gap aside: whoever could not get the lock in time cannot record why. The next one to write does.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn set_gap_aside(&self, gap: &Gap) -> Result<(), StoreError> {
        append(self.folder(), gap)
    }

    /// The gaps that were set aside; none where somebody is appending one just now. Once they are recorded,
    /// [`GapsAside::forget`].
    pub fn gaps_aside(&self, _lock: &Lock) -> Option<GapsAside> {
        let path = self.folder().join(ASIDE_TAKEN);
        // Under another name first: what is set aside from now on goes to a new file. One that is there already was taken
        // by somebody who did not get to the end.
        if !path.exists() {
            std::fs::rename(self.folder().join(ASIDE), &path).ok()?;
        }
        let mut file = File::open(&path).ok()?;
        file.try_lock().ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        // A line that is none is all that a full disk let through: nobody can tell what it would have said.
        let gaps = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Some(GapsAside { gaps, path, _file: file })
    }
}

/// Gaps that were set aside, and the file that they are in, which nobody appends to any more.
pub struct GapsAside {
    /// The gaps, oldest first.
    pub gaps: Vec<Gap>,
    path: PathBuf,
    /// Locked while this lives.
    _file: File,
}

impl GapsAside {
    /// Forgets them: they are recorded.
    pub fn forget(self) {
        let _ = std::fs::remove_file(self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PATIENCE;
    use piton_model::{Cause, Place, SessionId, Timestamp};

    fn gap(n: i64) -> Gap {
        let place = Place { session: SessionId::of("agent", "session"), turn: 0, step: None };
        Gap { place, cause: Cause::Prompt, reason: "no time".into(), at: Timestamp(n) }
    }

    fn taken(store: &Store) -> Vec<i64> {
        let lock = store.lock(PATIENCE).unwrap();
        let Some(aside) = store.gaps_aside(&lock) else { return Vec::new() };
        let times = aside.gaps.iter().map(|gap| gap.at.0).collect();
        aside.forget();
        times
    }

    /// A full disk leaves an empty file, or the beginning of a line. It used to stand in the way of every gap after it.
    #[test]
    fn a_file_without_a_whole_gap_stands_in_the_way_of_no_other() {
        for torn in [&b""[..], b"{\"place\":{\"ses", b"\xff\xfe\n"] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::create(folder.path()).unwrap();
            for name in [ASIDE, ASIDE_TAKEN] {
                std::fs::write(folder.path().join(name), torn).unwrap();
            }
            store.set_gap_aside(&gap(1)).unwrap();
            let found: Vec<i64> = (0..3).flat_map(|_| taken(&store)).collect();
            assert_eq!(found, [1], "{torn:?}");
            assert!(!folder.path().join(ASIDE_TAKEN).exists());
        }
    }

    /// Somebody who had the file open before it was taken used to append to what was about to be removed.
    #[test]
    fn no_gap_is_lost_while_others_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let mut found = Vec::new();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4_i64)
                .map(|worker| {
                    let path = folder.path();
                    scope.spawn(move || (0..200).for_each(|n| append(path, &gap(worker * 200 + n)).unwrap()))
                })
                .collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                found.extend(taken(&store));
            }
        });
        found.extend(taken(&store));
        found.extend(taken(&store));
        found.sort_unstable();
        assert_eq!(found, (0..800).collect::<Vec<_>>());
    }
}
