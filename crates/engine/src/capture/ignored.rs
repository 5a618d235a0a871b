//! What of some checkpoints the user's git does not hold as it is: files that are ignored and that git does not track, such as
//! `.env`, those that a filter makes something else of, such as what git-crypt encrypts, and those that git was told not to look
//! at (`--skip-worktree`, `--assume-unchanged`) and that hold something else than it has.
//!
//! Piton captures them, so that an undo brings them back; but what leaves the machine is another matter. Asked by
//! exports. A file counts as ignored, or filtered, where the files with rules of any of the checkpoints say so, or those of
//! now: one that was ignored only later was meant to be so from its beginning. It counts as tracked where git tracks it now,
//! and at each of the checkpoints that has it tracked it as well, or has now what was in it then.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use piton_host::git::{Git, GitIds, Repository};
use piton_host::{IgnoreFiles, IgnoredAt};
use piton_model::diff::{self, TreeSource};
use piton_model::git::{ASSUME_VALID, GitState, INTENT_TO_ADD, SKIP_WORKTREE, StagedKind};
use piton_model::{Checkpoint, Entry, ObjectId, WorkspacePath};
use piton_store::StoreError;

use crate::workspace::History;

/// Git's own rule files.
const IGNORE_FILE: &str = ".gitignore";
const ATTRIBUTES_FILE: &str = ".gitattributes";

/// Rule files: the folder, name and content of each.
type Rules = Arc<BTreeSet<(WorkspacePath, &'static str, ObjectId)>>;

/// Files that may be private.
#[derive(Debug, Default)]
pub(crate) struct Private {
    /// Ignored and not tracked.
    pub ignored: BTreeSet<WorkspacePath>,
    /// Transformed by a filter before git stores them.
    pub filtered: BTreeSet<WorkspacePath>,
    /// Tracked, and edited although git was told not to look.
    pub unwatched: BTreeSet<WorkspacePath>,
}

impl Private {
    pub fn all(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.ignored.iter().chain(&self.filtered).chain(&self.unwatched)
    }
}

/// What was found in trees; each tree is searched once, wherever it occurs.
#[derive(Default)]
struct RulesFound {
    files: BTreeSet<WorkspacePath>,
    folders: BTreeSet<WorkspacePath>,
    repositories: BTreeSet<WorkspacePath>,
    seen: HashMap<(WorkspacePath, ObjectId), Rules>,
}

impl History {
    /// The files of these checkpoints that may be private.
    pub(crate) fn private_in<'c>(
        &self,
        checkpoints: impl IntoIterator<Item = &'c Checkpoint>,
    ) -> Result<Private, StoreError> {
        let mut found = RulesFound::default();
        let mut moments: HashSet<(Rules, Option<String>)> = HashSet::new();
        let mut states: HashMap<ObjectId, Option<GitState>> = HashMap::new();
        let mut captured: HashSet<(Option<ObjectId>, ObjectId)> = HashSet::new();
        for checkpoint in checkpoints {
            let rules = found.look(self, &WorkspacePath::root(), &checkpoint.root.tree)?;
            let kept = |git: &ObjectId| {
                let json = self.store.blob(git).ok()?;
                serde_json::from_slice::<GitState>(&json).ok()
            };
            let state = checkpoint.git.and_then(|git| states.entry(git).or_insert_with(|| kept(&git)).as_ref());
            let excludes = state.and_then(|state| state.excludes.clone());
            captured.insert((checkpoint.git, checkpoint.root.tree));
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
            let tracked = self.tracked_all_the_while(&ignored, &captured, &states)?;
            ignored.retain(|path| !tracked.contains(path));
        }
        let told = self.filtered(&found.files);
        let is = |path: &WorkspacePath| told.contains(path.as_bytes()) || filters.iter().any(|f| f.name_file(path));
        let filtered = found.files.iter().filter(|path| !ignored.contains(*path) && is(path)).cloned().collect();
        let unwatched = self.unwatched(&found.files, &captured, &states)?;
        Ok(Private { ignored, filtered, unwatched })
    }

    /// Which of some files git is told not to look at, now or at one of some checkpoints, where one of those has something else
    /// than git: that was never meant for a commit.
    fn unwatched(
        &self,
        files: &BTreeSet<WorkspacePath>,
        captured: &HashSet<(Option<ObjectId>, ObjectId)>,
        states: &HashMap<ObjectId, Option<GitState>>,
    ) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let mut flagged: BTreeSet<WorkspacePath> = BTreeSet::new();
        // `S` is skip-worktree, and a small letter assume-unchanged.
        for line in self.ask_git(&["ls-files", "-v", "-z"]).unwrap_or_default() {
            if let [b'S' | b'a'..=b'z', b' ', path @ ..] = &line[..] {
                flagged.extend(WorkspacePath::new(path));
            }
        }
        if let Some(repository) = Repository::find(&self.path) {
            for state in states.values().flatten() {
                let staged = state.staged.iter().map(|one| (&one.path, one.flags));
                let all = staged.chain(state.flagged.iter().map(|one| (&one.path, one.flags)));
                for (path, _) in all.filter(|(_, flags)| flags & (ASSUME_VALID | SKIP_WORKTREE) != 0) {
                    flagged.extend(within(path, repository.prefix()).and_then(|path| WorkspacePath::new(path).ok()));
                }
            }
        }
        flagged.retain(|path| files.contains(path));
        if flagged.is_empty() {
            return Ok(flagged);
        }
        let now = self.tracked();
        let mut unwatched = BTreeSet::new();
        for path in flagged {
            let ids = now.get(path.as_bytes()).map(|ids| &ids[..]).unwrap_or_default();
            for (_, tree) in captured {
                if !self.is_as_git_has_it(tree, &path, ids)? {
                    unwatched.insert(path);
                    break;
                }
            }
        }
        Ok(unwatched)
    }

    /// Whether a tree has at a path what git has, given its ids, or nothing that a commit would have.
    fn is_as_git_has_it(&self, tree: &ObjectId, path: &WorkspacePath, ids: &[String]) -> Result<bool, StoreError> {
        Ok(match diff::lookup(&self.store, tree, path)? {
            Some(Entry::File { blob, .. }) => match self.store.blob(&blob) {
                Ok(content) => is_one_of(&content, ids),
                Err(StoreError::Missing(_) | StoreError::Damaged(_)) => false,
                Err(error) => return Err(error),
            },
            Some(Entry::Symlink { target }) => is_one_of(&target, ids),
            Some(Entry::Folder { .. } | Entry::Skipped { .. }) | None => true,
        })
    }

    /// Which of some files git tracks now and tracked at each of some checkpoints that has them, or has now as they were then: what
    /// was in a file before somebody made git track it is in no commit, and may be a secret.
    fn tracked_all_the_while(
        &self,
        files: &BTreeSet<WorkspacePath>,
        captured: &HashSet<(Option<ObjectId>, ObjectId)>,
        states: &HashMap<ObjectId, Option<GitState>>,
    ) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let now = self.tracked();
        let mut tracked: BTreeSet<_> = files.iter().filter(|path| now.contains_key(path.as_bytes())).cloned().collect();
        let mut commits = HashMap::new();
        let mut then: HashMap<ObjectId, Option<HashSet<Vec<u8>>>> = HashMap::new();
        for (git, tree) in captured {
            if tracked.is_empty() {
                break;
            }
            let state = git.and_then(|git| Some((git, states.get(&git)?.as_ref()?)));
            let then = state.and_then(|(id, state)| {
                then.entry(id).or_insert_with(|| self.tracked_at(state, &mut commits)).as_ref()
            });
            let mut others = HashSet::new();
            for path in tracked.iter().filter(|path| then.is_none_or(|then| !then.contains(path.as_bytes()))) {
                if !self.is_as_git_has_it(tree, path, &now[path.as_bytes()])? {
                    others.insert(path.clone());
                }
            }
            tracked.retain(|path| !others.contains(path));
        }
        Ok(tracked)
    }

    /// What git tracks here, with the ids of its objects; empty if git is not available.
    fn tracked(&self) -> HashMap<Vec<u8>, Vec<String>> {
        let mut tracked: HashMap<Vec<u8>, Vec<String>> = HashMap::new();
        for line in self.ask_git(&["ls-files", "-s", "-z"]).unwrap_or_default() {
            let Some(at) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let id = line[..at].split(|byte| *byte == b' ').nth(1).unwrap_or_default();
            tracked.entry(line[at + 1..].to_vec()).or_default().push(String::from_utf8_lossy(id).into_owned());
        }
        tracked
    }

    /// What git tracked in one of its states: all that HEAD has, but for what was staged. None where that cannot be told, as where
    /// the commit is gone. `commits` keeps what those have that were asked for.
    fn tracked_at(
        &self,
        state: &GitState,
        commits: &mut HashMap<String, Option<HashSet<Vec<u8>>>>,
    ) -> Option<HashSet<Vec<u8>>> {
        let repository = Repository::find(&self.path).filter(|_| state.incomplete.is_none())?;
        let mut tracked = match &state.head.commit {
            Some(commit) if commit.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let of = |commit: &String| self.ask_git(&["ls-tree", "-r", "-z", "--name-only", commit]);
                let listed =
                    commits.entry(commit.clone()).or_insert_with_key(|commit| Some(of(commit)?.into_iter().collect()));
                listed.clone()?
            }
            Some(_) => return None,
            None => HashSet::new(),
        };
        for entry in &state.staged {
            let Some(path) = within(&entry.path, repository.prefix()) else { continue };
            // Git has no content for a file that was only added with intent-to-add.
            if entry.kind == StagedKind::Deleted || entry.flags & INTENT_TO_ADD != 0 {
                tracked.remove(path);
            } else {
                tracked.insert(path.to_vec());
            }
        }
        Some(tracked)
    }

    /// Git's zero-terminated output; `None` if git is not available or fails.
    fn ask_git(&self, arguments: &[&str]) -> Option<Vec<Vec<u8>>> {
        let said = Git::at(&self.path, self.environment.git.as_deref()).and_then(|git| git.run(arguments)).ok()?;
        Some(said.split(|byte| *byte == 0).filter(|one| !one.is_empty()).map(<[u8]>::to_vec).collect())
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

/// A path of a repository, from the folder in it that is the workspace.
fn within<'p>(path: &'p WorkspacePath, prefix: &[u8]) -> Option<&'p [u8]> {
    match prefix {
        [] => Some(path.as_bytes()),
        prefix => path.as_bytes().strip_prefix(prefix).and_then(|rest| rest.strip_prefix(b"/")),
    }
}

/// Whether a content is one of git's objects, given their ids.
fn is_one_of(content: &[u8], ids: &[String]) -> bool {
    ids.iter().any(|id| {
        let Some(kind) = GitIds::named(if id.len() == 40 { "sha1" } else { "sha256" }) else { return false };
        let mut hasher = kind.blob(content.len() as u64);
        hasher.update(content);
        hasher.finish().to_hex() == *id
    })
}

impl RulesFound {
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
