//! What of some checkpoints the user's git does not hold as it is: files that are ignored and that git does not track, such as
//! `.env`, those that a filter makes something else of, such as what git-crypt encrypts, and those that git was told not to look
//! at (`--skip-worktree`, `--assume-unchanged`) and that hold something else than it has.
//!
//! Piton captures them, so that an undo brings them back; but what leaves the machine is another matter. Asked by
//! exports. A file counts as ignored, or filtered, where the files with rules of any checkpoint in the store say so, or those of
//! now: one that was ignored only later was meant to be so from its beginning, and a rule that an agent removed was meant by
//! somebody. It counts as tracked where git tracks it now, and at each of the checkpoints that has it tracked it as well, or has
//! now what was in it then. What such a file held is followed to other paths in `copies`.

mod copies;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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

/// Those of one name.
trait OfName {
    fn of(&self, name: &str) -> BTreeSet<(WorkspacePath, ObjectId)>;
}

impl OfName for Rules {
    fn of(&self, name: &str) -> BTreeSet<(WorkspacePath, ObjectId)> {
        let those = self.iter().filter(|(_, one, _)| *one == name);
        those.map(|(folder, _, blob)| (folder.clone(), *blob)).collect()
    }
}

/// Files that may be private.
#[derive(Debug, Default)]
pub(crate) struct Private {
    /// Ignored and not tracked.
    pub ignored: BTreeSet<WorkspacePath>,
    /// Transformed by a filter before git stores them.
    pub filtered: BTreeSet<WorkspacePath>,
    /// Tracked, and edited although git was told not to look.
    pub unwatched: BTreeSet<WorkspacePath>,
    /// Holding what one of the others held, or an edited version of it, by the path that it was at first.
    pub copies: BTreeMap<WorkspacePath, WorkspacePath>,
}

impl Private {
    pub fn all(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.ignored.iter().chain(&self.filtered).chain(&self.unwatched).chain(self.copies.keys())
    }

    /// Takes out what is asked for by name.
    pub fn allow(&mut self, wanted: &WorkspacePath) {
        for paths in [&mut self.ignored, &mut self.filtered, &mut self.unwatched] {
            paths.retain(|path| !path.is_within(wanted));
        }
        self.copies.retain(|path, _| !path.is_within(wanted));
    }
}

/// What was found in trees; each tree is searched once, wherever it occurs.
#[derive(Default)]
struct RulesFound {
    /// Files with everything that they held; nothing is noted of a symlink.
    files: BTreeMap<WorkspacePath, BTreeSet<ObjectId>>,
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
        let mut states: HashMap<ObjectId, Option<GitState>> = HashMap::new();
        let mut captured: HashSet<(Option<ObjectId>, ObjectId)> = HashSet::new();
        let mut ignores = Moments::default();
        let mut filters = Moments::default();
        let mut filters_past = Moments::default();
        let kept = |git: &ObjectId| serde_json::from_slice::<GitState>(&self.store.blob(git).ok()?).ok();
        for checkpoint in checkpoints {
            let rules = found.look(self, &WorkspacePath::root(), &checkpoint.root.tree)?;
            let state = checkpoint.git.and_then(|git| states.entry(git).or_insert_with(|| kept(&git)).as_ref());
            captured.insert((checkpoint.git, checkpoint.root.tree));
            ignores.add(rules.of(IGNORE_FILE), state.and_then(|state| state.excludes.clone()));
            filters.add(rules.of(ATTRIBUTES_FILE), None);
        }
        let held = std::mem::take(&mut found.files);
        let files: BTreeSet<WorkspacePath> = held.keys().cloned().collect();
        // The rules of all other checkpoints. What is damaged there keeps nobody from exporting what is sound.
        let past = self.store.every_tree()?;
        let mut excludes: HashMap<ObjectId, Option<String>> = HashMap::new();
        for one in &past {
            let rules = match found.look(self, &WorkspacePath::root(), &one.tree) {
                Ok(rules) => rules,
                Err(StoreError::Missing(_) | StoreError::Damaged(_)) => continue,
                Err(error) => return Err(error),
            };
            let of = |git: ObjectId| excludes.entry(git).or_insert_with(|| kept(&git)?.excludes).clone();
            ignores.add(rules.of(IGNORE_FILE), one.git.and_then(of));
            filters_past.add(rules.of(ATTRIBUTES_FILE), None);
        }
        let options = self.rules();
        let repositories = Some(&found.repositories);
        let mut ignoring = Vec::with_capacity(ignores.0.len() + 1);
        for (rules, excludes) in &ignores.0 {
            let at = IgnoredAt { files: self.contents_of(rules)?, repositories, excludes: excludes.as_deref() };
            ignoring.push(IgnoreFiles::new(&self.path, &options, at));
        }
        let (mut filtering, mut filtering_past) = (Vec::new(), Vec::new());
        for (rules, _) in &filters.0 {
            filtering.push(IgnoreFiles::of_filters(&self.contents_of(rules)?));
        }
        for (rules, _) in filters_past.0.difference(&filters.0) {
            filtering_past.push(IgnoreFiles::of_filters(&self.contents_of(rules)?));
        }
        let now = |name: &str| -> Vec<_> {
            let read = |at: &WorkspacePath| Some((at.clone(), IgnoreFiles::in_folder(&self.path, at, name)?));
            found.folders.iter().filter_map(read).collect()
        };
        let at = IgnoredAt { files: now(IGNORE_FILE), repositories, excludes: None };
        ignoring.push(IgnoreFiles::new(&self.path, &options, at));
        filtering.push(IgnoreFiles::of_filters(&now(ATTRIBUTES_FILE)));

        let mut git = Tracking::of(self, &captured, &states);
        // What git tracked from the first checkpoint on needs no look at the rules, and that is most of a repository.
        let first = past.first().and_then(|first| Some((first.git?, first.tree)));
        let first = first.and_then(|(git, _)| states.get(&git).cloned().unwrap_or_else(|| kept(&git)));
        let first = first.and_then(|state| self.tracked_at(&state, &mut git.commits));
        let is_always_tracked = |path: &WorkspacePath| {
            first.as_ref().is_some_and(|first| first.has(path.as_bytes())) && git.is_tracked_in_all(path)
        };
        let mut named: HashMap<WorkspacePath, bool> = HashMap::new();
        let mut is_ignored = |path: &WorkspacePath| match named.get(path) {
            Some(is) => *is,
            None => {
                let is = !is_always_tracked(path) && ignoring.iter().any(|rules| rules.ignore(path));
                named.insert(path.clone(), is);
                is
            }
        };
        let mut ignored: BTreeSet<_> = files.iter().filter(|path| is_ignored(path)).cloned().collect();
        if !ignored.is_empty() {
            let tracked = self.tracked_all_the_while(&ignored, &captured, &git)?;
            ignored.retain(|path| !tracked.contains(path));
        }
        let told = self.filtered(&files);
        let is_filtered =
            |path: &WorkspacePath| told.contains(path.as_bytes()) || filtering.iter().any(|f| f.name_file(path));
        let was_filtered = |path: &WorkspacePath| filtering_past.iter().any(|f| f.name_file(path));
        let mut filtered = BTreeSet::new();
        for (path, contents) in held.iter().filter(|(path, _)| !ignored.contains(*path)) {
            // Where the filter was given up, git has the file as it is.
            let is = is_filtered(path) || was_filtered(path) && !git.has_all(self, path, contents)?;
            if is {
                filtered.insert(path.clone());
            }
        }
        let unwatched = self.unwatched(&files, &captured, &states, &git.now)?;
        let mut is_private = |path: &WorkspacePath| {
            is_ignored(path) || is_filtered(path) || was_filtered(path) || unwatched.contains(path)
        };
        let copies = self.copies(&held, &past, &mut is_private, &git)?;
        Ok(Private { ignored, filtered, unwatched, copies })
    }

    /// What rule files of one moment hold; those that are damaged are left out.
    fn contents_of(
        &self,
        rules: &BTreeSet<(WorkspacePath, ObjectId)>,
    ) -> Result<Vec<(WorkspacePath, Vec<u8>)>, StoreError> {
        let mut contents = Vec::with_capacity(rules.len());
        for (folder, blob) in rules {
            match self.store.blob(blob) {
                Ok(content) => contents.push((folder.clone(), content)),
                Err(StoreError::Missing(_) | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(contents)
    }

    /// Which of some files git is told not to look at, now or at one of some checkpoints, where one of those has something else
    /// than git: that was never meant for a commit.
    fn unwatched(
        &self,
        files: &BTreeSet<WorkspacePath>,
        captured: &HashSet<(Option<ObjectId>, ObjectId)>,
        states: &HashMap<ObjectId, Option<GitState>>,
        now: &HashMap<Vec<u8>, Vec<String>>,
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
        git: &Tracking,
    ) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let mut tracked: BTreeSet<_> =
            files.iter().filter(|path| git.now.contains_key(path.as_bytes())).cloned().collect();
        for (state, tree) in captured {
            if tracked.is_empty() {
                break;
            }
            let then = state.and_then(|state| git.then.get(&state)?.as_ref());
            let mut others = HashSet::new();
            for path in tracked.iter().filter(|path| then.is_none_or(|then| !then.has(path.as_bytes()))) {
                if !self.is_as_git_has_it(tree, path, &git.now[path.as_bytes()])? {
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
            if let Some((path, id)) = listed_object(&line, 1) {
                tracked.entry(path).or_default().push(id);
            }
        }
        tracked
    }

    /// What git tracked in one of its states: all that HEAD has, but for what was staged. None where that cannot be told, as where
    /// the commit is gone. `commits` keeps what those have that were asked for.
    fn tracked_at(&self, state: &GitState, commits: &mut Commits) -> Option<TrackedThen> {
        let repository = Repository::find(&self.path).filter(|_| state.incomplete.is_none())?;
        let committed = match &state.head.commit {
            Some(commit) if commit.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let listed = commits.entry(commit.clone()).or_insert_with_key(|commit| {
                    let lines = self.ask_git(&["ls-tree", "-r", "-z", commit])?;
                    Some(Arc::new(lines.iter().filter_map(|line| listed_object(line, 2)).collect()))
                });
                listed.clone()?
            }
            Some(_) => return None,
            None => Arc::default(),
        };
        let mut staged = HashMap::new();
        for entry in &state.staged {
            let Some(path) = within(&entry.path, repository.prefix()) else { continue };
            // Git has no content for a file that was only added with intent-to-add.
            let is_there = entry.kind != StagedKind::Deleted && entry.flags & INTENT_TO_ADD == 0;
            staged.insert(path.to_vec(), is_there.then(|| entry.id.clone()));
        }
        Some(TrackedThen { committed, staged })
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

/// The commits that git was asked about: each file with its id; none of a commit that is gone.
type Commits = HashMap<String, Option<Arc<HashMap<Vec<u8>, String>>>>;

/// The path and the id in a line of `git ls-files -s` or `git ls-tree`, given which word the id is.
fn listed_object(line: &[u8], word: usize) -> Option<(Vec<u8>, String)> {
    let at = line.iter().position(|byte| *byte == b'\t')?;
    let id = line[..at].split(|byte| *byte == b' ').nth(word)?;
    Some((line[at + 1..].to_vec(), String::from_utf8_lossy(id).into_owned()))
}

/// What git tracked at one moment.
struct TrackedThen {
    committed: Arc<HashMap<Vec<u8>, String>>,
    /// What the index had otherwise; none where it had nothing.
    staged: HashMap<Vec<u8>, Option<String>>,
}

impl TrackedThen {
    fn id(&self, path: &[u8]) -> Option<&String> {
        match self.staged.get(path) {
            Some(staged) => staged.as_ref(),
            None => self.committed.get(path),
        }
    }

    fn has(&self, path: &[u8]) -> bool {
        self.id(path).is_some()
    }
}

/// What git tracks now, and tracked at some checkpoints, by the ids of their git states.
struct Tracking {
    now: HashMap<Vec<u8>, Vec<String>>,
    then: HashMap<ObjectId, Option<TrackedThen>>,
    commits: Commits,
    /// Whether git's state is known at each of the checkpoints.
    is_known: bool,
}

impl Tracking {
    fn of(
        workspace: &History,
        captured: &HashSet<(Option<ObjectId>, ObjectId)>,
        states: &HashMap<ObjectId, Option<GitState>>,
    ) -> Self {
        let (now, mut commits) = (workspace.tracked(), HashMap::new());
        let mut then = HashMap::new();
        for (id, state) in states {
            then.insert(*id, state.as_ref().and_then(|state| workspace.tracked_at(state, &mut commits)));
        }
        let is_known =
            captured.iter().all(|(git, _)| git.is_some_and(|git| then.get(&git).is_some_and(Option::is_some)));
        Self { now, then, commits, is_known }
    }

    /// Whether git tracks a file now, and did at each of the checkpoints.
    fn is_tracked_in_all(&self, path: &WorkspacePath) -> bool {
        let path = path.as_bytes();
        self.is_known && self.now.contains_key(path) && self.then.values().flatten().all(|then| then.has(path))
    }

    /// Whether git has a content at a path, now or at one of the checkpoints.
    fn has(&self, workspace: &History, path: &WorkspacePath, blob: &ObjectId) -> Result<bool, StoreError> {
        let bytes = path.as_bytes();
        let then = self.then.values().flatten().filter_map(|then| then.id(bytes));
        let ids: BTreeSet<String> = self.now.get(bytes).into_iter().flatten().chain(then).cloned().collect();
        if ids.is_empty() {
            return Ok(false);
        }
        match workspace.store.blob(blob) {
            Ok(content) => Ok(is_one_of(&content, &ids.into_iter().collect::<Vec<_>>())),
            Err(StoreError::Missing(_) | StoreError::Damaged(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn has_all(
        &self,
        workspace: &History,
        path: &WorkspacePath,
        blobs: &BTreeSet<ObjectId>,
    ) -> Result<bool, StoreError> {
        for blob in blobs {
            if !self.has(workspace, path, blob)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A folder's rule files and their contents.
type RuleFiles = BTreeSet<(WorkspacePath, ObjectId)>;

/// The rule files of different moments, each once, with the exclude file of then.
#[derive(Default)]
struct Moments(HashSet<(RuleFiles, Option<String>)>);

impl Moments {
    fn add(&mut self, rules: RuleFiles, excludes: Option<String>) {
        self.0.insert((rules, excludes));
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
                    self.files.entry(at).or_default().insert(*blob);
                }
                Entry::Symlink { .. } => drop(self.files.entry(at).or_default()),
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
