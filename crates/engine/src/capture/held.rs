//! Rules that somebody other than the user changed: what they newly ignore stays captured until the user agrees.
//!
//! What the user's own rules say decides. Of each file with rules that somebody else changed, a checkpoint has what the user had
//! there (`Checkpoint::unagreed`), until the user edits it or agrees; so a rule of an agent's that leaves nothing out today is
//! known for one when it does later. A path becomes held when it was captured, a rule leaves it out now, and with what the user
//! had it would not be left out; or when somebody else took it out of git's index, or made a repository of its folder. What is
//! held is listed in each checkpoint (`Checkpoint::held`), so it is as durable as what it protects, and a store that is made
//! anew from its packs knows it. It ends when nothing leaves the path out any more, or when the user agrees. What was never
//! captured follows every rule at once.

mod left_out;
mod past;
mod rules;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use piton_host::{Held, Instead, Root, Scan, rules_leave_out, rules_left_out};
use piton_model::diff::{self, TreeSource};
use piton_model::ownership::{Moment, Owner, Window};
use piton_model::{Entry, HeldPath, ObjectId, SkipReason, UnagreedRules, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::sink::Trees;
use crate::capture::{Attention, CaptureError, Taken};
use crate::workspace::History;
use crate::workspace::locked::Locked;

pub(crate) use self::left_out::LeftOutNow;
use self::left_out::holds_something;
pub(crate) use self::past::Recent;
use self::rules::blob_of;
pub(crate) use self::rules::{blob_at, is_users};

/// Tells who changed the rules.
pub(crate) struct Witness {
    pub moment: Moment,
    /// The window of the step that ends now.
    pub ending: Option<Window>,
    /// Some turns or tools were not recorded.
    pub has_missed: bool,
}

/// Where the current rules deviate from the user's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldNow {
    pub paths: Vec<HeldPath>,
    /// Trees of earlier checkpoints, for paths captured before that the last checkpoint does not have.
    pub known: Vec<(WorkspacePath, ObjectId)>,
    /// Rule files to which the user has not agreed.
    pub unagreed: Vec<UnagreedRules>,
}

/// Most folders whose rules are looked up: further ones hardly have different rules.
const MOST_ASKED: usize = 1000;

/// The workspace's own rule files.
const IGNORE_FILES: [&[u8]; 2] = [b".gitignore", b".pitonignore"];

impl Locked<'_> {
    /// Captures with everything held, old and new.
    pub(crate) fn take_held<'s>(&'s self, root: &Root, attention: &Attention<'_>) -> Result<Taken<'s>, CaptureError> {
        let head = self.store.head(self.record.line)?;
        if attention.agrees {
            return self.take_all(root, attention, head.as_ref(), HeldNow::default());
        }
        let mut held = self.held_since(root, head.as_ref())?;
        loop {
            let mut taken = self.take_all(root, attention, head.as_ref(), held.clone())?;
            let Some(head) = &head else { return Ok(taken) };
            let trees = Trees { fresh: &taken.fresh, store: &self.store };
            let mut left_out = LeftOutNow::between(&trees, &head.checkpoint.root.tree, &taken.scan.root.tree, &held);
            left_out.in_repositories = paths_in_repositories(&taken.scan);
            let is_whole = !self.hold_more(root, head, left_out, attention.witness, &mut held)?;
            if is_whole {
                taken.held = held;
                return Ok(taken);
            }
        }
    }
}

impl History {
    /// What the last checkpoint held, as far as something still ignores it.
    pub(crate) fn held_since(&self, root: &Root, head: Option<&CheckpointRow>) -> Result<HeldNow, CaptureError> {
        let Some(head) = head else { return Ok(HeldNow::default()) };
        let mut now = HeldNow { unagreed: head.checkpoint.unagreed.clone(), ..HeldNow::default() };
        let held = &head.checkpoint.held;
        if held.is_empty() {
            return Ok(now);
        }
        let paths: Vec<_> = held.iter().map(|one| one.path.clone()).collect();
        let is_left_out = rules_leave_out(root, &self.rules(), &paths, Instead::default());
        // A path in a folder that is held came back alone, and is captured with it from then on.
        let is_alone = |one: &HeldPath| !paths.iter().any(|path| one.path != *path && one.path.is_within(path));
        let left = held.iter().zip(is_left_out).filter(|(one, is_left_out)| *is_left_out && is_alone(one));
        now.paths = left.map(|(one, _)| one.clone()).collect();
        Ok(now)
    }

    /// What a scan needs to know about it.
    pub(crate) fn held_in_scan<'a>(&'a self, head: Option<&CheckpointRow>, held: &HeldNow) -> Held<'a> {
        let roots: BTreeSet<_> = held.paths.iter().map(|one| one.path.clone()).collect();
        let Some(tree) = head.map(|head| head.checkpoint.root.tree).filter(|_| !roots.is_empty()) else {
            return Held::default();
        };
        let known = held.known.clone();
        let captured = move |folder: &[u8]| {
            let folder = WorkspacePath::new(folder).ok()?;
            let mut names = names_in(&self.store, &tree, &folder)?;
            for (path, earlier) in &known {
                match path.split() {
                    Some((above, name)) if above == folder => drop(names.insert(name.as_bytes().to_vec())),
                    _ if folder.is_within(path) => names.extend(names_in(&self.store, earlier, &folder)?),
                    _ => {}
                }
            }
            Some(names)
        };
        Held { roots, captured: Some(Box::new(captured)) }
    }

    /// Adds what is to be held from now on to what is held; whether there is such, so that another scan is needed.
    pub(crate) fn hold_more(
        &self,
        root: &Root,
        head: &CheckpointRow,
        left_out: LeftOutNow,
        witness: Option<&Witness>,
        held: &mut HeldNow,
    ) -> Result<bool, CaptureError> {
        let LeftOutNow { lost, mut came, rules, in_repositories } = left_out;
        let (by_git, by_rules): (Vec<_>, Vec<_>) = lost.into_iter().partition(|(_, reason)| is_by_git(*reason));
        let mut lost: Vec<WorkspacePath> = by_rules.into_iter().map(|(path, _)| path).collect();
        came.retain(|path| !held.known.iter().any(|(known, _)| path.is_within(known)));
        // Everything directly in one folder has the same rules.
        let mut folders = HashSet::new();
        let is_first = |path: &&WorkspacePath| path.split().is_some_and(|(folder, _)| folders.insert(folder));
        let asked = rules.iter().chain(&lost).chain(&came).chain(&in_repositories).filter(is_first);
        let asked: Vec<_> = asked.take(MOST_ASKED).cloned().collect();
        let by_gits_own = self.look_at_rules(root, head, &asked, witness, &mut held.unagreed)?;

        let mut new = Vec::new();
        for (path, _) in by_git {
            // No timestamp tells which file made the folder a repository, and when.
            let owner = self.owner_since(head, &path, None, false, witness)?;
            if !is_users(&owner) {
                let rules = vec![format!("{}/HEAD", String::from_utf8_lossy(path.as_bytes()))];
                new.push(HeldPath { path, rules, owner });
            }
        }
        if !held.unagreed.is_empty() {
            let instead = self.users_rules(root, &held.unagreed);
            let is_users_too = |paths: &[WorkspacePath]| rules_leave_out(root, &self.rules(), paths, instead.clone());
            let mut are = is_users_too(&came).into_iter();
            came.retain(|_| !are.next().unwrap_or(true));
            for (path, tree) in self.captured_once(head.checkpoint.line, came)? {
                new.push(by_unagreed(path.clone(), &held.unagreed));
                held.known.push((path, tree));
            }
            let mut are = is_users_too(&lost).into_iter();
            let (users, others): (Vec<_>, Vec<_>) = lost.into_iter().partition(|_| are.next().unwrap_or(true));
            new.extend(others.into_iter().map(|path| by_unagreed(path, &held.unagreed)));
            lost = users;
        }
        // Git writes its index for many reasons: where another rule changed too, that is the one to look at.
        if let [(_, owner), ..] = &by_gits_own[..] {
            let rules: Vec<_> = by_gits_own.iter().map(|(rule, _)| rule.clone()).collect();
            let lost = self.captured_against_rules(root, head, lost)?;
            new.extend(lost.into_iter().map(|path| HeldPath { path, rules: rules.clone(), owner: owner.clone() }));
        }
        self.leave_to_its_maker(head, &mut new, &mut held.known)?;
        let is_more = !new.is_empty();
        held.paths.retain(|one| !new.iter().any(|new| one.path == new.path));
        held.paths.extend(new);
        Ok(is_more)
    }

    /// Takes away what is the work of the very session that changed the rule, all of it: of that nothing of the user's can be lost.
    fn leave_to_its_maker(
        &self,
        head: &CheckpointRow,
        new: &mut Vec<HeldPath>,
        known: &mut Vec<(WorkspacePath, ObjectId)>,
    ) -> Result<(), StoreError> {
        let by_session = |one: &HeldPath| match &one.owner {
            Owner::Step { step, .. } => Some(step.session.clone()),
            _ => None,
        };
        let asked: Vec<_> = new.iter().filter_map(|one| Some((one.path.clone(), by_session(one)?))).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let made = match self.made_by(head.checkpoint.line, asked) {
            // Damaged data proves nothing.
            Err(StoreError::Missing(_) | StoreError::Damaged(_)) => return Ok(()),
            made => made?,
        };
        let is_its = |one: &HeldPath| by_session(one).is_some() && made.contains(&one.path);
        let (its, others): (Vec<_>, Vec<_>) = std::mem::take(new).into_iter().partition(is_its);
        known.retain(|(path, _)| !its.iter().any(|one| one.path == *path));
        *new = others;
        Ok(())
    }

    /// Which of some paths a checkpoint has although its own ignore files left them out: git tracked those, or its settings named
    /// no such rule. All others it would have had without git, which has no part in it that they are left out now.
    fn captured_against_rules(
        &self,
        root: &Root,
        head: &CheckpointRow,
        paths: Vec<WorkspacePath>,
    ) -> Result<Vec<WorkspacePath>, StoreError> {
        let tree = &head.checkpoint.root.tree;
        let mut then = HashMap::new();
        let mut folders = HashSet::new();
        let mut were = Vec::new();
        for path in paths {
            let entry = match diff::lookup(&self.store, tree, &path) {
                Ok(entry) => entry,
                Err(StoreError::Missing(_) | StoreError::Damaged(_)) => None,
                Err(error) => return Err(error),
            };
            let mut at = path.clone();
            while let Some((above, _)) = at.split() {
                if !folders.insert(above.clone()) {
                    break;
                }
                for name in IGNORE_FILES {
                    let file = above.join_any(name);
                    let content = match diff::lookup(&self.store, tree, &file) {
                        Ok(None) => None,
                        Ok(Some(Entry::File { blob, .. })) => match self.store.blob(&blob) {
                            Ok(content) => Some(content),
                            Err(_) => continue,
                        },
                        // Its earlier content is unknown and taken to be the current one.
                        Ok(Some(_)) | Err(_) => continue,
                    };
                    then.insert(root.path().join(OsStr::from_bytes(file.as_bytes())), content);
                }
                at = above;
            }
            // The size of what cannot be read is unknown.
            let unknown = Entry::Skipped { reason: SkipReason::Ignored };
            were.push((path, entry.unwrap_or(unknown)));
        }
        let mut are = rules_left_out(root, &self.rules(), &were, Instead(then)).into_iter();
        were.retain(|_| are.next().unwrap_or(true));
        Ok(were.into_iter().map(|(path, _)| path).collect())
    }
}

fn paths_in_repositories(scan: &Scan) -> Vec<WorkspacePath> {
    scan.repositories.iter().map(|folder| folder.join_any(IGNORE_FILES[0])).collect()
}

fn is_by_rules(reason: SkipReason) -> bool {
    matches!(reason, SkipReason::Ignored | SkipReason::Excluded)
}

/// Whether a folder is skipped because it looks like a repository's own data.
fn is_by_git(reason: SkipReason) -> bool {
    matches!(reason, SkipReason::BareRepository | SkipReason::GitFolder)
}

pub(crate) fn is_ignore_file(path: &WorkspacePath) -> bool {
    path.split().is_some_and(|(_, name)| IGNORE_FILES.contains(&name.as_bytes()))
}

fn is_in(path: &WorkspacePath, held: &HeldNow) -> bool {
    held.paths.iter().any(|one| path.is_within(&one.path))
}

/// A path ignored by rules to which the user has not agreed.
fn by_unagreed(path: WorkspacePath, unagreed: &[UnagreedRules]) -> HeldPath {
    let is_on_the_way = |one: &&UnagreedRules| match one.file.as_ref().and_then(WorkspacePath::split) {
        Some((folder, _)) => path.is_within(&folder),
        // A nested repository's exclude file only affects that repository.
        None => match one.shown.strip_suffix(".git/info/exclude") {
            Some(folder) if !folder.starts_with('/') => path.as_bytes().starts_with(folder.as_bytes()),
            _ => true,
        },
    };
    let on_the_way: Vec<_> = unagreed.iter().filter(is_on_the_way).collect();
    let rules = on_the_way.iter().map(|one| one.shown.clone()).collect();
    let owner = on_the_way.first().map_or(Owner::Unsure { candidates: Vec::new() }, |one| one.owner.clone());
    HeldPath { path, rules, owner }
}

/// The tree of an entry, if it is a folder.
fn tree_of<S: TreeSource>(
    source: &S,
    root: &ObjectId,
    folder: &WorkspacePath,
) -> Result<Option<std::sync::Arc<piton_model::Tree>>, S::Error> {
    listing_of(source, root, folder)?.map(|listing| source.tree(&listing)).transpose()
}

/// The same, by its id.
fn listing_of<S: TreeSource>(
    source: &S,
    root: &ObjectId,
    folder: &WorkspacePath,
) -> Result<Option<ObjectId>, S::Error> {
    if folder.is_root() {
        return Ok(Some(*root));
    }
    match diff::lookup(source, root, folder)? {
        Some(Entry::Folder { tree, .. }) => Ok(Some(tree)),
        _ => Ok(None),
    }
}

/// The names in a folder that a checkpoint has; none where its listing cannot be read.
fn names_in<S: TreeSource>(source: &S, root: &ObjectId, folder: &WorkspacePath) -> Option<HashSet<Vec<u8>>> {
    let tree = tree_of(source, root, folder).ok()?;
    let entries = tree.iter().flat_map(|tree| tree.entries().iter());
    Some(entries.filter(|(_, entry)| !entry.is_skipped()).map(|(name, _)| name.as_bytes().to_vec()).collect())
}
