//! The agents' own files: what a session reports as its transcript, and what its adapter says belongs to that, is never
//! captured and never put back, whoever runs piton and whatever variables they have.

use std::path::{Path, PathBuf};

use piton_host::{canonical, is_folder};
use piton_model::event::Report;
use piton_store::StoreError;

use crate::workspace::{Engine, Workspace};

impl Engine {
    /// Notes the transcript of a report before anything is captured.
    pub(crate) fn note_transcript(&self, report: &Report, cwd: &Path) -> Result<(), StoreError> {
        let Some(transcript) = &report.transcript else { return Ok(()) };
        let new = self.new_belongings(&report.agent, &report.session, transcript, canonical(cwd).ok().as_deref());
        if new.is_empty() { Ok(()) } else { self.home.note_agent_state(&new, None) }
    }

    /// What belongs to a transcript and is not known to be an agent's yet. Never a folder that is or holds a workspace or
    /// the folder that the agent works in, and nothing for a file that does not look like a transcript: a report that says
    /// otherwise is wrong.
    fn new_belongings(&self, agent: &str, session: &str, transcript: &Path, cwd: Option<&Path>) -> Vec<PathBuf> {
        if !transcript.is_absolute() || is_folder(transcript) {
            return Vec::new();
        }
        let belongings = self.environment.agents.of_session(agent).events.belongings(session, transcript);
        // Compared by where the files really are: the agent's folder, one in it or the transcript itself may be a symlink
        // that leads into a workspace.
        let mut new: Vec<PathBuf> = belongings.iter().filter_map(|p| canonical(p).ok()).collect();
        let noted = self.home.agent_state().paths;
        new.retain(|path| !is_within_any(path, self.environment.agent_state.iter().chain(&noted)));
        if new.is_empty() {
            return new;
        }
        let roots: Vec<PathBuf> = self.home.all().into_iter().map(|known| known.path).collect();
        let is_inside = |path: &PathBuf| roots.iter().map(PathBuf::as_path).chain(cwd).any(|one| one.starts_with(path));
        new.retain(|path| !is_inside(path));
        // What lies in another one goes without saying.
        let all = new.clone();
        new.retain(|path| !all.iter().any(|other| other != path && path.starts_with(other)));
        new
    }
}

impl Workspace {
    /// Notes the transcripts of sessions that reported to an earlier piton, once.
    pub(crate) fn gather_transcripts(&self) -> Result<(), StoreError> {
        if self.home.agent_state().has_gathered(&self.record.id) {
            return Ok(());
        }
        let engine = self.engine();
        let mut new = Vec::new();
        for row in self.store.sessions()? {
            let Some(transcript) = row.session.transcript.as_deref().map(Path::new) else { continue };
            new.extend(engine.new_belongings(&row.session.agent, &row.session.agent_id, transcript, None));
        }
        new.sort();
        new.dedup();
        self.home.note_agent_state(&new, Some(&self.record.id))
    }
}

/// Whether a canonical path is one of some paths or lies in it.
pub(crate) fn is_within_any<'a>(path: &Path, folders: impl Iterator<Item = &'a PathBuf> + Clone) -> bool {
    // Nearly always there is no symlink: what a canonical path begins with is canonical itself.
    folders.clone().any(|folder| path.starts_with(folder))
        || folders.filter_map(|folder| canonical(folder).ok()).any(|folder| path.starts_with(folder))
}
