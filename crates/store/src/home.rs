//! Where stores are: one folder a workspace under piton's home, outside any workspace.
//!
//! `paths/<hash of the path>` names the workspace that is (or was last seen) at a path, so that finding it costs one
//! look per folder on the way up; `workspaces/<id>/workspace.json` says where that workspace is and which folder it
//! is. Both only help finding: the truth is the workspace's own record.

mod agent_state;
mod agreed;

use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_host::{Lock, canonical, identity_at, own};
use piton_model::{OperationId, RootIdentity, SessionId, Workspace, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::Store;
use crate::error::StoreError;

/// Piton's home.
#[derive(Clone, Debug)]
pub struct Home {
    path: PathBuf,
}

/// A workspace that piton knows.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its id.
    pub id: WorkspaceId,
    /// Where it was last.
    pub path: PathBuf,
    /// Which folder it was.
    pub root: RootIdentity,
    /// How many folders stood there before it, at least, of which this store has checkpoints.
    pub line: u32,
    /// Nothing was ever captured of it, because it does not fit: it stands for itself and for no folder in it.
    pub is_refused: bool,
}

/// What is noted of a workspace outside of its store's packs.
#[derive(Serialize, Deserialize)]
struct Note {
    #[serde(flatten)]
    workspace: Workspace,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_refused: bool,
}

/// What is known of a path, when all stores have been asked.
#[derive(Debug)]
pub struct Settled {
    /// The workspace there.
    pub known: Option<Known>,
    /// A store that nothing was ever recorded in, as a process leaves it that dies in its first moments.
    pub unused: Option<WorkspaceId>,
    /// Stores that cannot be read, with what the system says: whose they are is not known.
    pub unread: Vec<(PathBuf, StoreError)>,
}

impl Known {
    /// Whether a folder that is there now is this workspace's.
    fn is_it(&self, folder: &RootIdentity) -> bool {
        is_it(&self.root, folder, || identity_at(&self.path))
    }

    /// Where its folder is now, if it has only another name.
    fn renamed(&self) -> Option<PathBuf> {
        /// Folders with more in them are rarely those that projects are kept in.
        const LOOKED_AT: usize = 2_000;
        let parent = self.path.parent()?;
        let device = identity_at(parent)?.device;
        // No rename leads from one device to another: what looks the same there is a copy of the whole disk.
        let is_it = |there: RootIdentity| there.device == device && self.root.is_same_moved(&there);
        let entries = std::fs::read_dir(parent).ok()?.take(LOOKED_AT).filter_map(Result::ok);
        let mut folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.find(|entry| identity_at(&entry.path()).is_some_and(is_it)).map(|entry| entry.path())
    }
}

/// Whether a folder is the one that was recorded, given what stands now at the place where that was. Device numbers change
/// from one start of the machine to the next, so a recorded one says little; of two folders that are both there they tell
/// a copy of a whole disk, in which everything else is the same.
fn is_it(recorded: &RootIdentity, folder: &RootIdentity, at_its_place: impl FnOnce() -> Option<RootIdentity>) -> bool {
    recorded.is_same(folder)
        && match at_its_place().filter(|there| there.is_same(recorded)) {
            // Both are there now, so that one number is one folder.
            Some(there) => (there.device, there.inode) == (folder.device, folder.inode),
            None => recorded.is_same_moved(folder),
        }
}

/// A workspace that is noted for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedWorkspace {
    /// Its id.
    pub id: WorkspaceId,
    /// What it is opened by ([`Home::name_of`]).
    pub path: PathBuf,
    /// Only captured along with one that the session works in.
    pub along: bool,
}

/// What stands after the id of a workspace that is captured along.
const ALONG: &str = " along";

impl Home {
    /// A home at a path, which need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the home's folders, for the user alone.
    pub fn make(&self) -> Result<(), StoreError> {
        for folder in ["paths", "workspaces"] {
            let folder = self.path.join(folder);
            own::make_folders(&folder).map_err(StoreError::io("cannot make", &folder))?;
        }
        Ok(())
    }

    /// Held while a folder becomes known: two that come at once must not each make a store for it.
    pub fn lock(&self, patience: Duration) -> Result<Lock, StoreError> {
        crate::take_lock(&self.path, patience)
    }

    /// The folder of a workspace's store.
    pub fn folder(&self, id: &WorkspaceId) -> PathBuf {
        self.path.join("workspaces").join(id.as_str())
    }

    /// Opens the store of a known workspace.
    pub fn open(&self, id: &WorkspaceId) -> Result<Store, StoreError> {
        Store::open(&self.folder(id))
    }

    /// The workspace that was last seen at exactly this canonical path.
    pub fn at(&self, path: &Path) -> Option<Known> {
        self.known(&self.pointed(path)?).filter(|known| known.path == path)
    }

    /// Where a workspace's folder is now: at its recorded path, at another one, or nowhere. What stands at its path is it
    /// too where nobody knows that from elsewhere; a symlink there is not.
    pub fn place_of(&self, known: &Known) -> Option<PathBuf> {
        let stands = canonical(&known.path).ok().and_then(|path| Some((identity_at(&path)?, path)));
        match stands {
            Some((there, path)) if path == known.path && known.root.is_same(&there) => return Some(path),
            Some((there, path)) if known.root.is_same_moved(&there) => return Some(path),
            Some((_, path)) if path == known.path && self.of(&path).is_some_and(|of| of.id == known.id) => {
                return Some(path);
            }
            _ => {}
        }
        let is_there = |place: &PathBuf| identity_at(place).is_some_and(|there| known.is_it(&there));
        let at_another = || self.all().into_iter().map(|other| other.path).find(is_there);
        known.renamed().or_else(at_another)
    }

    /// What a workspace is opened by: its path, or its store's folder where its own is gone and another workspace is at
    /// that path.
    pub fn name_of(&self, known: &Known) -> PathBuf {
        let is_there = || identity_at(&known.path).is_some_and(|there| known.root.is_same(&there));
        match is_there() || self.of(&known.path).is_none_or(|of| of.id == known.id) {
            true => known.path.clone(),
            false => self.folder(&known.id),
        }
    }

    /// The workspace whose store has this folder.
    pub fn of_store(&self, folder: &Path) -> Option<Known> {
        let is_store = folder.parent()? == self.path.join("workspaces");
        self.known(&folder.file_name().filter(|_| is_store)?.to_str()?.parse().ok()?)
    }

    /// The workspace that was last seen at a path where a symlink leads elsewhere now.
    pub fn replaced_by_link(&self, folder: &Path) -> Option<Known> {
        let place = std::path::absolute(folder).ok()?;
        let path = canonical(&place).ok().filter(|path| *path != place)?;
        // The folder that the name is in may be reached by a link of its own.
        let in_folder = || Some(canonical(place.parent()?).ok()?.join(place.file_name()?));
        let known = self.at(&place).or_else(|| self.at(&in_folder().filter(|place| *place != path)?))?;
        let is_moved = identity_at(&path).is_some_and(|there| known.root.is_same_moved(&there));
        (!is_moved).then_some(known)
    }

    /// The stores of the workspaces whose ids begin like this.
    pub fn stores_called(&self, beginning: &str) -> Vec<PathBuf> {
        self.ids().iter().filter(|id| id.as_str().starts_with(beginning)).map(|id| self.folder(id)).collect()
    }

    /// The workspaces that were last seen at a canonical path and are not the one that is found there.
    pub fn hidden_at(&self, path: &Path) -> Vec<Known> {
        let (found, there) = (self.of(path).map(|known| known.id), identity_at(path));
        // One that is being made known at this moment is of the folder that stands there.
        let is_there = |known: &Known| there.is_some_and(|there| known.root.is_same(&there));
        let is_hidden = |known: &Known| known.path == path && Some(&known.id) != found.as_ref() && !is_there(known);
        self.all().into_iter().filter(is_hidden).collect()
    }

    /// The id that is noted for a canonical path.
    fn pointed(&self, path: &Path) -> Option<WorkspaceId> {
        std::fs::read_to_string(self.pointer(path)).ok()?.trim().parse().ok()
    }

    /// The workspace of what stands at a canonical path: the one that was last seen there, unless this is another folder and
    /// piton knows that from elsewhere. A folder in the place of one that was only renamed is nobody's yet.
    pub fn of(&self, path: &Path) -> Option<Known> {
        let at = self.at(path);
        let there = identity_at(path);
        if let (Some(at), Some(there)) = (&at, &there)
            && at.root.is_same(there)
        {
            // Where births move, another folder may have got its number; one that is known by its birth is that one.
            let is_sure = at.root.is_same_moved(there);
            let other = || self.all().into_iter().find(|known| known.root.is_same_moved(there));
            return if is_sure || !there.is_layered { Some(at.clone()) } else { other().or(Some(at.clone())) };
        }
        let last = || at.or_else(|| self.all().into_iter().find(|known| known.path == path));
        let Some(there) = there else { return last() };
        let moved_here = self.all().into_iter().find(|known| known.is_it(&there));
        moved_here.or_else(|| last().filter(|known| known.renamed().is_none()))
    }

    /// The workspace that was last seen at a canonical path where another folder stands now, and the place beside it where
    /// its own folder is.
    pub fn displaced(&self, path: &Path) -> Option<(Known, PathBuf)> {
        let known = self.at(path)?;
        let is_there = identity_at(path).is_some_and(|there| known.root.is_same(&there));
        let renamed = if is_there { None } else { known.renamed() };
        renamed.map(|place| (known, place))
    }

    /// The innermost known workspace around a canonical path: by its path, or because it moved there.
    pub fn around(&self, path: &Path) -> Option<Known> {
        let counts = |known: &Known, folder: &Path| !known.is_refused || folder == path;
        let by_path = path.ancestors().find_map(|folder| self.at(folder).filter(|known| counts(known, folder)));
        if by_path.is_some() {
            return by_path;
        }
        let all = self.all();
        path.ancestors().find_map(|folder| {
            let identity = identity_at(folder)?;
            let is_it = |known: &&Known| known.is_it(&identity);
            let found = all.iter().find(is_it).or_else(|| all.iter().find(|known| known.path == folder));
            found.filter(|known| counts(known, folder)).cloned()
        })
    }

    /// The workspace whose folder moved to a canonical path.
    pub fn moved_to(&self, path: &Path) -> Option<Known> {
        let identity = identity_at(path)?;
        self.all().into_iter().find(|known| known.is_it(&identity))
    }

    /// What is known of a canonical path, for whoever makes it known. No store is passed over because somebody is at work
    /// in it, or because its process died before anybody could find it. One that cannot be read stands in the way only of the
    /// path that it is noted for: a store is noted before anything is captured in it. Only under the home's lock.
    ///
    /// # Errors
    /// Where a store is busy, or the path's own cannot be read, or which one that is.
    pub fn settled(&self, path: &Path) -> Result<Settled, StoreError> {
        // One that only root may read, say: the store that it leads to must not be passed over.
        self.check_pointer(path)?;
        let mut unused = None;
        let mut unread = Vec::new();
        for id in self.list_ids()? {
            if self.noted(&id).is_some() {
                continue;
            }
            let is_unused = || -> Result<bool, StoreError> {
                let store = self.open(&id)?;
                let lock = store.lock(crate::PATIENCE)?;
                match store.workspace_for_sure(&lock)? {
                    Some(workspace) => self.note(&workspace).map(|()| false),
                    None => store.is_unused(),
                }
            };
            match is_unused() {
                Ok(true) => unused = Some(id),
                Ok(false) => {}
                Err(error) if matches!(error, StoreError::Busy) || self.pointed(path).as_ref() == Some(&id) => {
                    return Err(error);
                }
                Err(error) => unread.push((self.folder(&id), error)),
            }
        }
        Ok(Settled { known: self.of(path), unused, unread })
    }

    /// Refuses a canonical path for which something is noted that cannot be read: it may name a store that has its
    /// checkpoints. For whoever found no workspace there.
    ///
    /// # Errors
    /// What the system says where it cannot be read.
    pub fn check_pointer(&self, path: &Path) -> Result<(), StoreError> {
        let pointer = self.pointer(path);
        match std::fs::read(&pointer) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io("cannot read", &pointer)(error)),
            _ => Ok(()),
        }
    }

    fn ids(&self) -> Vec<WorkspaceId> {
        self.list_ids().unwrap_or_default()
    }

    /// The ids of all stores.
    fn list_ids(&self) -> Result<Vec<WorkspaceId>, StoreError> {
        let folder = self.path.join("workspaces");
        let failed = |error| StoreError::io("cannot list", &folder)(error);
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            ids.extend(entry.map_err(failed)?.file_name().to_str().and_then(|name| name.parse().ok()));
        }
        Ok(ids)
    }

    /// Every known workspace.
    pub fn all(&self) -> Vec<Known> {
        let mut all: Vec<Known> = self.ids().iter().filter_map(|id| self.known(id)).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Whether an operation has begun and not ended in a workspace around a folder or in it. Asked only where a file has
    /// the name of a staged one.
    pub fn has_pending_near(&self, folder: &Path, operation: &OperationId) -> bool {
        let is_near = |known: &Known| known.path.starts_with(folder) || folder.starts_with(&known.path);
        let mut near = self.all().into_iter().filter(is_near);
        near.any(|known| self.open(&known.id).is_ok_and(|store| store.is_pending(operation)))
    }

    /// Notes where a workspace is.
    pub fn note(&self, workspace: &Workspace) -> Result<(), StoreError> {
        self.write_note(&Note { workspace: workspace.clone(), is_refused: false })?;
        replace(&self.pointer(&workspace.place()), workspace.id.as_str().as_bytes())
    }

    /// Notes whether a workspace of which there is no checkpoint was refused because it does not fit.
    pub fn note_refused(&self, workspace: &Workspace, is_refused: bool) -> Result<(), StoreError> {
        match self.noted(&workspace.id) {
            Some(note) if note.is_refused != is_refused => self.write_note(&Note { is_refused, ..note }),
            _ => Ok(()),
        }
    }

    fn write_note(&self, note: &Note) -> Result<(), StoreError> {
        self.make()?;
        let file = self.folder(&note.workspace.id).join(crate::WORKSPACE_COPY);
        replace(&file, &serde_json::to_vec(note).map_err(crate::database::to_sql)?)
    }

    /// The workspaces that a session works in, with what they are opened by ([`Home::name_of`]).
    pub fn workspaces_of(&self, session: &SessionId) -> Vec<(WorkspaceId, PathBuf)> {
        let all = self.all_workspaces_of(session).into_iter().filter(|noted| !noted.along);
        all.map(|noted| (noted.id, noted.path)).collect()
    }

    /// The stores of workspaces that a session works in that are there and cannot be read, with what the system says.
    pub fn unread_stores_of(&self, session: &SessionId) -> Vec<(PathBuf, StoreError)> {
        let unread = self.ids_of(session).into_iter().filter(|(id, along)| !along && self.known(id).is_none());
        let error = |(id, _)| {
            let folder = self.folder(&id);
            // One that is gone for good has nothing to tell.
            let is_there = folder.try_exists().unwrap_or(true);
            let error = self.open(&id).and_then(|store| store.workspace()).err().filter(|_| is_there)?;
            Some((folder, error))
        };
        unread.filter_map(error).collect()
    }

    /// The workspaces that a session works in, and those that are captured along with them.
    pub fn all_workspaces_of(&self, session: &SessionId) -> Vec<NotedWorkspace> {
        let noted = |(id, along)| self.known(&id).map(|known| NotedWorkspace { id, path: self.name_of(&known), along });
        self.ids_of(session).into_iter().filter_map(noted).collect()
    }

    /// The workspaces that are noted for a session, each with whether it is only captured along.
    fn ids_of(&self, session: &SessionId) -> Vec<(WorkspaceId, bool)> {
        let Ok(bytes) = std::fs::read(self.session(session)) else { return Vec::new() };
        // A damaged line says nothing; the others still hold.
        let lines = String::from_utf8_lossy(&bytes);
        let mut all: Vec<(WorkspaceId, bool)> = Vec::new();
        for line in lines.lines() {
            let (id, along) = match line.strip_suffix(ALONG) {
                Some(id) => (id, true),
                None => (line, false),
            };
            let Ok(id) = id.parse() else { continue };
            match all.iter_mut().find(|(other, _)| *other == id) {
                Some((_, both)) => *both &= along,
                None => all.push((id, along)),
            }
        }
        all
    }

    /// Notes that a session works in a workspace, or that this is captured along. Like the paths this only helps finding:
    /// each store has the session's records of its own.
    pub fn note_session(&self, session: &SessionId, workspace: &WorkspaceId, along: bool) -> Result<(), StoreError> {
        let path = self.session(session);
        let noted = std::fs::read(&path).unwrap_or_default();
        let line = format!("{workspace}{}", if along { ALONG } else { "" });
        if noted.split(|byte| *byte == b'\n').any(|noted| noted == line.as_bytes()) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            own::make_folders(folder).map_err(StoreError::io("cannot make", folder))?;
        }
        // Appended and not written anew: hooks of several workspaces note themselves at once, and a line that comes
        // twice does no harm.
        // The first workspace is found by the folder that the agent works in, every other only here: so from the second on
        // the note must survive a power cut. A line of its own even where the last one was cut off.
        let is_cut_off = noted.last().is_some_and(|last| *last != b'\n');
        let line = format!("{}{line}\n", if is_cut_off { "\n" } else { "" });
        let file = own::open_or_make(&path, std::fs::File::options().append(true).mode(0o600));
        let written = file.and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            if noted.is_empty() {
                return Ok(());
            }
            file.sync_data()?;
            path.parent().map_or(Ok(()), piton_host::disk::sync_folder)
        });
        written.map_err(StoreError::io("cannot write", &path))
    }

    /// Notes that a session was told something; false where it was told before.
    ///
    /// # Errors
    /// Where that cannot be noted.
    pub fn note_told(&self, session: &SessionId, what: &str) -> Result<bool, StoreError> {
        let folder = self.path.join("told");
        let path = folder.join(session.as_str());
        let line = &blake3::hash(what.as_bytes()).to_hex()[..16];
        let noted = std::fs::read_to_string(&path).unwrap_or_default();
        if noted.lines().any(|told| told == line) {
            return Ok(false);
        }
        self.make()?;
        own::make_folders(&folder).map_err(StoreError::io("cannot make", &folder))?;
        replace(&path, format!("{noted}{line}\n").as_bytes())?;
        Ok(true)
    }

    /// Notes the command that a session's user may say yes to, and the fingerprint of the plan that was shown; the last one
    /// counts.
    ///
    /// # Errors
    /// Where that cannot be noted.
    pub fn note_asked(&self, session: &SessionId, command: &str, shown: &str) -> Result<(), StoreError> {
        let folder = self.path.join("asked");
        self.make()?;
        own::make_folders(&folder).map_err(StoreError::io("cannot make", &folder))?;
        replace(&folder.join(session.as_str()), format!("{shown}\n{command}").as_bytes())
    }

    /// The command that a session's user may say yes to, with the plan that was shown; forgotten with that.
    pub fn take_asked(&self, session: &SessionId) -> Option<(String, String)> {
        let path = self.path.join("asked").join(session.as_str());
        let noted = std::fs::read_to_string(&path).ok()?;
        // Twice would be another act.
        std::fs::remove_file(&path).ok()?;
        let (shown, command) = noted.split_once('\n')?;
        Some((command.to_owned(), shown.to_owned()))
    }

    /// Where the files of a deleted branch are kept until somebody wants it back.
    pub fn trash(&self, session: &SessionId) -> PathBuf {
        self.path.join("trash").join(session.as_str())
    }

    fn session(&self, session: &SessionId) -> PathBuf {
        self.path.join("sessions").join(session.as_str())
    }

    /// What is known of a workspace.
    pub fn known(&self, id: &WorkspaceId) -> Option<Known> {
        let Note { workspace, is_refused } = match self.noted(id) {
            Some(note) => note,
            // Lost or torn: the store itself knows.
            None => Note { workspace: self.open(id).ok()?.workspace().ok()??, is_refused: false },
        };
        let (path, root, line) = (workspace.place(), workspace.root, workspace.line);
        Some(Known { id: id.clone(), path, root, line, is_refused })
    }

    /// What the copy of a workspace's record says.
    fn noted(&self, id: &WorkspaceId) -> Option<Note> {
        let noted = std::fs::read(self.folder(id).join(crate::WORKSPACE_COPY)).ok()?;
        serde_json::from_slice(&noted).ok().filter(|note: &Note| note.workspace.id == *id)
    }

    fn pointer(&self, path: &Path) -> PathBuf {
        let hash = blake3::hash(path.as_os_str().as_bytes()).to_hex();
        self.path.join("paths").join(&hash[..32])
    }
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    // For the user alone, also where the home's own folder is open to others.
    let made = own::open_or_make(&new, std::fs::File::options().write(true).truncate(true).mode(0o600));
    let written = made.and_then(|mut file| file.write_all(bytes)).and_then(|()| std::fs::rename(&new, path));
    written.map_err(StoreError::io("cannot write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One flipped bit used to hide all workspaces of a session, for good.
    #[test]
    fn a_damaged_line_of_a_sessions_note_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        let session = SessionId::of("agent", "session");
        let all = [1, 2, 3].map(|n| WorkspaceId::from_random([n; 8]));
        for id in &all {
            home.note_session(&session, id, false).unwrap();
        }
        let path = home.session(&session);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3] |= 0x80;
        bytes.pop();
        std::fs::write(&path, &bytes).unwrap();
        let lines = || std::fs::read(&path).unwrap().split(|byte| *byte == b'\n').count();
        for _ in 0..3 {
            all.iter().for_each(|id| home.note_session(&session, id, false).unwrap());
            assert_eq!(lines(), 5, "each line once, and what is damaged stays");
        }
    }

    #[test]
    fn a_copy_of_a_whole_disk_is_another_folder_while_the_original_is_there() {
        let on = |device, inode| RootIdentity { device, inode, born: Some(7), is_layered: false };
        let (recorded, other) = (on(1, 5), on(1, 6));
        for (folder, at_its_place, expected) in [
            // It moved, or its disk has another number since the machine was started anew.
            (on(1, 5), None, true),
            (on(2, 5), None, true),
            (on(2, 5), Some(other), true),
            // Two paths to one folder.
            (on(1, 5), Some(on(1, 5)), true),
            (on(2, 5), Some(on(2, 5)), true),
            // A copy of the disk beside the original.
            (on(2, 5), Some(on(1, 5)), false),
            (on(1, 6), None, false),
        ] {
            assert_eq!(is_it(&recorded, &folder, || at_its_place), expected, "{folder:?} {at_its_place:?}");
        }
    }

    #[test]
    fn a_number_that_is_used_again_elsewhere_is_another_folder_where_births_move_or_are_not_told() {
        let layered = |born| RootIdentity { device: 1, inode: 5, born, is_layered: true };
        for (recorded, folder) in [(layered(Some(7)), layered(Some(8))), (layered(None), layered(None))] {
            let other = RootIdentity { inode: 6, ..folder };
            assert!(!is_it(&recorded, &folder, || None));
            assert!(!is_it(&recorded, &folder, || Some(other)));
            // Two paths to one folder.
            assert!(is_it(&recorded, &folder, || Some(folder)));
        }
    }
}
