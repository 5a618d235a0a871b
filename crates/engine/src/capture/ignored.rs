//! What of some checkpoints the user's git does not hold as it is: files that are ignored and that git does not track, such as
//! `.env`, and those that a filter makes something else of, such as what git-crypt encrypts.
//!
//! Piton captures them, so that an undo brings them back; but what leaves the machine is another matter. Asked by
//! exports. A file counts as ignored, or filtered, where the files with rules of any of the checkpoints say so, or those of
//! now: one that was ignored only later was meant to be so from its beginning.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use piton_host::git::Git;
use piton_host::{IgnoreFiles, IgnoredAt};
use piton_model::diff::TreeSource;
use piton_model::git::GitState;
use piton_model::{Checkpoint, Entry, ObjectId, WorkspacePath};
use piton_store::StoreError;

use crate::workspace::History;

/// Git's own files of rules.
const IGNORE_FILE: &str = ".gitignore";
const ATTRIBUTES_FILE: &str = ".gitattributes";

/// Files with rules: the folder of each, its name, and its content.
type Rules = Arc<BTreeSet<(WorkspacePath, &'static str, ObjectId)>>;

/// Files that are not for others to see.
#[derive(Debug, Default)]
pub(crate) struct Private {
    /// Ignored and not tracked.
    pub ignored: BTreeSet<WorkspacePath>,
    /// Changed by a filter before git keeps them.
    pub filtered: BTreeSet<WorkspacePath>,
}

/// What is found in trees, each of which is looked at once wherever it stands.
#[derive(Default)]
struct Found {
    files: BTreeSet<WorkspacePath>,
    folders: BTreeSet<WorkspacePath>,
    repositories: BTreeSet<WorkspacePath>,
    seen: HashMap<(WorkspacePath, ObjectId), Rules>,
}

impl History {
    /// The files of some checkpoints that are not for others to see.
    pub(crate) fn private_in<'c>(
        &self,
        checkpoints: impl IntoIterator<Item = &'c Checkpoint>,
    ) -> Result<Private, StoreError> {
        let mut found = Found::default();
        let mut moments: HashSet<(Rules, Option<String>)> = HashSet::new();
        let mut excludes: HashMap<ObjectId, Option<String>> = HashMap::new();
        for checkpoint in checkpoints {
            let rules = found.look(self, &WorkspacePath::root(), &checkpoint.root.tree)?;
            let kept = |git: &ObjectId| {
                let json = self.store.blob(git).ok()?;
                serde_json::from_slice::<GitState>(&json).ok()?.excludes
            };
            let excludes = checkpoint.git.and_then(|git| excludes.entry(git).or_insert_with(|| kept(&git)).clone());
            moments.insert((rules, excludes));
        }
        let options = self.rules();
        let repositories = Some(&found.repositories);
        let mut ignores = Vec::with_capacity(moments.len() + 1);
        let mut filters = Vec::with_capacity(moments.len() + 1);
        for (rules, excludes) in &moments {
            let (mut files, mut attributes) = (Vec::new(), Vec::new());
            for (folder, name, blob) in rules.iter() {
                let given = if *name == IGNORE_FILE { &mut files } else { &mut attributes };
                given.push((folder.clone(), self.store.blob(blob)?));
            }
            let at = IgnoredAt { files, repositories, excludes: excludes.as_deref() };
            ignores.push(IgnoreFiles::new(&self.path, &options, at));
            filters.push(IgnoreFiles::of_filters(&attributes));
        }
        let now = |name: &str| -> Vec<_> {
            let read = |at: &WorkspacePath| Some((at.clone(), IgnoreFiles::in_folder(&self.path, at, name)?));
            found.folders.iter().filter_map(read).collect()
        };
        let at = IgnoredAt { files: now(IGNORE_FILE), repositories, excludes: None };
        ignores.push(IgnoreFiles::new(&self.path, &options, at));
        filters.push(IgnoreFiles::of_filters(&now(ATTRIBUTES_FILE)));

        let is = |path: &&WorkspacePath| ignores.iter().any(|rules| rules.ignore(path));
        let mut ignored: BTreeSet<_> = found.files.iter().filter(is).cloned().collect();
        if !ignored.is_empty() {
            let tracked = self.tracked();
            ignored.retain(|path| !tracked.contains(path.as_bytes()));
        }
        let told = self.filtered(&found.files);
        let is = |path: &WorkspacePath| told.contains(path.as_bytes()) || filters.iter().any(|f| f.name_file(path));
        let filtered = found.files.into_iter().filter(|path| !ignored.contains(path) && is(path)).collect();
        Ok(Private { ignored, filtered })
    }

    /// What git tracks here; nothing where there is no git to ask.
    fn tracked(&self) -> HashSet<Vec<u8>> {
        let git = Git::at(&self.path, self.environment.git.as_deref());
        let said = git.and_then(|git| git.run(&["ls-files", "-z"]));
        let said = said.unwrap_or_default();
        said.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    }

    /// What git itself says has a filter: it knows more files with attributes than those of the workspace. Nothing where there
    /// is no git to ask.
    fn filtered(&self, files: &BTreeSet<WorkspacePath>) -> HashSet<Vec<u8>> {
        let mut asked = Vec::new();
        for file in files {
            asked.extend_from_slice(file.as_bytes());
            asked.push(0);
        }
        let git = Git::at(&self.path, self.environment.git.as_deref());
        let said = git.and_then(|git| git.run_with(&["check-attr", "-z", "--stdin", "filter"], &asked));
        let said = said.unwrap_or_default();
        let words: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
        let has_one = |[_, _, filter]: &&[&[u8]; 3]| !matches!(*filter, b"unspecified" | b"unset");
        words.as_chunks::<3>().0.iter().filter(has_one).map(|[path, ..]| path.to_vec()).collect()
    }
}

impl Found {
    fn look(&mut self, workspace: &History, path: &WorkspacePath, id: &ObjectId) -> Result<Rules, StoreError> {
        if let Some(rules) = self.seen.get(&(path.clone(), *id)) {
            return Ok(rules.clone());
        }
        let mut rules = BTreeSet::new();
        let tree = workspace.store.tree(id)?;
        if tree.has_git && !path.is_root() {
            self.repositories.insert(path.clone());
        }
        for (name, entry) in tree.entries() {
            let at = path.join(name);
            match entry {
                Entry::File { blob, .. } => {
                    let known = [IGNORE_FILE, ATTRIBUTES_FILE].into_iter();
                    let known = known.filter(|known| name.as_bytes() == known.as_bytes());
                    rules.extend(known.map(|known| (path.clone(), known, *blob)));
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
