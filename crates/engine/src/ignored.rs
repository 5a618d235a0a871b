//! What of some checkpoints the user's git leaves alone: files that are ignored and that git does not track, such as `.env`.
//!
//! Piton captures small ones, so that an undo brings them back; but what leaves the machine is another matter. Asked by
//! exports. A file counts as ignored where the ignore files of any of the checkpoints say so, or those of now: one that was
//! ignored only later was meant to be so from its beginning.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use piton_host::IgnoreFiles;
use piton_host::git::Git;
use piton_model::diff::TreeSource;
use piton_model::{Entry, ObjectId, WorkspacePath};
use piton_store::StoreError;

use crate::workspace::Workspace;

/// Git's own files of rules.
const IGNORE_FILE: &[u8] = b".gitignore";

/// Ignore files: the folder of each, and its content.
type Rules = Arc<BTreeSet<(WorkspacePath, ObjectId)>>;

/// What is found in trees, each of which is looked at once wherever it stands.
#[derive(Default)]
struct Found {
    files: BTreeSet<WorkspacePath>,
    folders: BTreeSet<WorkspacePath>,
    seen: HashMap<(WorkspacePath, ObjectId), Rules>,
}

impl Workspace {
    /// The files of some trees that are ignored and not tracked, in order.
    pub(crate) fn ignored_in(&self, trees: &[ObjectId]) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let mut found = Found::default();
        let mut moments: HashSet<Rules> = HashSet::new();
        for tree in trees {
            moments.insert(found.look(self, &WorkspacePath::root(), tree)?);
        }
        let options = self.rules();
        let mut all = Vec::with_capacity(moments.len() + 1);
        for rules in moments {
            let mut given = Vec::with_capacity(rules.len());
            for (folder, blob) in rules.iter() {
                given.push((folder.clone(), self.store.blob(blob)?));
            }
            all.push(IgnoreFiles::new(&self.path, &options, given));
        }
        let now = found.folders.iter().filter_map(|at| Some((at.clone(), IgnoreFiles::in_folder(&self.path, at)?)));
        all.push(IgnoreFiles::new(&self.path, &options, now));
        found.files.retain(|path| all.iter().any(|rules| rules.ignore(path)));
        if !found.files.is_empty() {
            let tracked = self.tracked();
            found.files.retain(|path| !tracked.contains(path.as_bytes()));
        }
        Ok(found.files)
    }

    /// What git tracks here; nothing where there is no git to ask.
    fn tracked(&self) -> HashSet<Vec<u8>> {
        let git = Git::at(&self.path, self.environment.git.as_deref());
        let said = git.and_then(|git| git.run(&["ls-files", "-z"]));
        let said = said.unwrap_or_default();
        said.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    }
}

impl Found {
    fn look(&mut self, workspace: &Workspace, path: &WorkspacePath, id: &ObjectId) -> Result<Rules, StoreError> {
        if let Some(rules) = self.seen.get(&(path.clone(), *id)) {
            return Ok(rules.clone());
        }
        let mut rules = BTreeSet::new();
        for (name, entry) in workspace.store.tree(id)?.entries() {
            let at = path.join(name);
            match entry {
                Entry::File { blob, .. } => {
                    if name.as_bytes() == IGNORE_FILE {
                        rules.insert((path.clone(), *blob));
                    }
                    self.files.insert(at);
                }
                Entry::Symlink { .. } => drop(self.files.insert(at)),
                Entry::Folder { tree, .. } => rules.extend(self.look(workspace, &at, tree)?.iter().cloned()),
                Entry::Skipped { .. } => {}
            }
        }
        self.folders.insert(path.clone());
        let rules = Arc::new(rules);
        self.seen.insert((path.clone(), *id), rules.clone());
        Ok(rules)
    }
}
