//! Gaps of those who could not record them: for want of the lock, of time, or of a store that takes anything.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use piton_host::Lock;
use piton_model::WorkspaceId;
use piton_model::session::Gap;

use crate::database::to_sql;
use crate::error::StoreError;
use crate::{Home, Store};

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
    let mut line = serde_json::to_vec(gap).map_err(to_sql)?;
    line.push(b'\n');
    let file = std::fs::File::options().append(true).create(true).mode(0o600).open(&path);
    // One write, so that lines of several processes do not mix.
    file.and_then(|mut file| if file.metadata()?.len() < MOST_ASIDE { file.write_all(&line) } else { Ok(()) })
        .map_err(StoreError::io("cannot write", &path))
}

impl Store {
    /// Sets a gap aside: whoever could not get the lock in time cannot record why. The next one to write does.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn set_gap_aside(&self, gap: &Gap) -> Result<(), StoreError> {
        append(self.folder(), gap)
    }

    /// The gaps that were set aside. Once they are recorded, [`Store::forget_gaps_aside`].
    pub fn gaps_aside(&self, _lock: &Lock) -> Vec<Gap> {
        let taken = self.folder().join(ASIDE_TAKEN);
        // Under another name first: what is set aside from now on goes to a new file. One that is there already was taken
        // by somebody who did not get to the end.
        if !taken.exists() {
            let _ = std::fs::rename(self.folder().join(ASIDE), &taken);
        }
        let Ok(text) = std::fs::read_to_string(&taken) else { return Vec::new() };
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Forgets the gaps that [`Store::gaps_aside`] gave.
    pub fn forget_gaps_aside(&self, _lock: &Lock) {
        let _ = std::fs::remove_file(self.folder().join(ASIDE_TAKEN));
    }
}
