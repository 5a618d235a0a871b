//! Where agents that reported keep their transcripts, and what belongs to those: noted in the home and not in a store,
//! since a transcript may lie in another workspace than the one that its session works in.

use std::io::{ErrorKind, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use piton_host::own;
use piton_model::WorkspaceId;

use super::Home;
use crate::error::StoreError;

/// What is noted.
#[derive(Clone, Debug, Default)]
pub struct AgentState {
    /// Files and folders that are never captured.
    pub paths: Vec<PathBuf>,
    /// Workspaces whose older sessions are among it.
    gathered: Vec<String>,
}

impl AgentState {
    /// Whether the sessions that a workspace's store has from before there were notes are among it.
    pub fn has_gathered(&self, workspace: &WorkspaceId) -> bool {
        self.gathered.iter().any(|id| id == workspace.as_str())
    }
}

impl Home {
    /// Reads what is noted.
    pub fn agent_state(&self) -> AgentState {
        let mut state = AgentState::default();
        let bytes = std::fs::read(self.agent_state_file()).unwrap_or_default();
        // One that a crash cut off has no end.
        let whole = bytes.iter().rposition(|b| *b == 0).map_or(0, |at| at + 1);
        for noted in bytes[..whole].split(|b| *b == 0).filter(|noted| !noted.is_empty()) {
            let path = PathBuf::from(std::ffi::OsString::from_vec(noted.to_vec()));
            match path.is_absolute() {
                true => state.paths.push(path),
                false => state.gathered.extend(String::from_utf8(noted.to_vec())),
            }
        }
        state
    }

    /// Notes paths, and that a workspace's older sessions are among them. Appended in one write: of several at once none
    /// is lost.
    pub fn note_agent_state(&self, paths: &[PathBuf], gathered: Option<&WorkspaceId>) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        // Ends what a crash may have cut off.
        bytes.push(0);
        for path in paths.iter().filter(|path| path.is_absolute()) {
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        if let Some(id) = gathered {
            bytes.extend_from_slice(id.as_str().as_bytes());
            bytes.push(0);
        }
        self.make()?;
        let path = self.agent_state_file();
        let file = own::open_or_make(&path, std::fs::File::options().append(true).mode(0o600));
        match file.and_then(|mut file| file.write_all(&bytes)) {
            // Another user's, which this one cannot read either. Each workspace notes its sessions' once more.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => super::replace(&path, &bytes),
            written => written.map_err(StoreError::io("cannot write", &path)),
        }
    }

    fn agent_state_file(&self) -> PathBuf {
        self.path().join("agent-state")
    }
}
