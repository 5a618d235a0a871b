//! What a rewind would do, path by path: computed without side effects, shown as the preview, applied unchanged.
//!
//! All rules about skipped things are here:
//! - what the target skipped is unknown, so whatever is there now stays; if it could not be captured and is gone since,
//!   it is listed as not restored ([`Plan::undone`]);
//! - what is skipped now is never deleted, and a folder that contains it stays;
//! - where the target has something and a rule skips what is there now, the plan asks for that to be captured first
//!   ([`Plan::unknown`]); if it cannot be captured, it stays and is listed ([`Plan::kept`]);
//! - where a file must go and a folder with skipped things is in its place, that is a conflict;
//! - a path that stays although it should have changed never counts as equal ([`Plan::undone`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::diff::{TreeSource, lookup, pairs};
use crate::edit::{Edit, NewTrees, edit, keep};
use crate::id::ObjectId;
use crate::inverse::Why;
use crate::path::WorkspacePath;
use crate::tree::{Entry, SkipReason, Tree};

/// A root as recorded in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootState {
    pub tree: ObjectId,
    pub mode: u16,
}

/// One path to change as a whole: nothing beneath a step's path is a step of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub path: WorkspacePath,
    /// What must be there for the plan to be valid.
    pub before: Option<Entry>,
    /// What will be there. A folder here has no skipped entries, since those cannot be created.
    pub after: Option<Entry>,
}

/// A folder that stays and whose permission bits change, or must be opened while it is written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderMode {
    /// The root is the empty path.
    pub path: WorkspacePath,
    pub before: u16,
    pub after: u16,
}

impl FolderMode {
    /// The bits it has while its entries are swapped.
    pub fn open(&self) -> u16 {
        self.before | 0o700
    }
}

/// A path that stays as it is although it should change, because what is there now cannot be captured first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub path: WorkspacePath,
    /// Why it cannot be captured.
    pub reason: SkipReason,
    /// What belongs there, or was captured there last, if known. Its bits may allow it to be read again.
    pub known: Option<Entry>,
}

impl Undone {
    /// Whether it is still not done, given the entry at the path: what belongs there is not there or, where that is
    /// unknown, the path is gone.
    pub fn holds_with(&self, here: Option<&Entry>) -> bool {
        match &self.known {
            Some(known) => here != Some(known),
            None => here.is_none(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In path order; none is beneath another.
    pub steps: Vec<Step>,
    /// Folders whose bits change or must be opened.
    pub folders: Vec<FolderMode>,
    /// Left alone because what is there, or what was there, is unknown.
    pub kept: Vec<(WorkspacePath, SkipReason)>,
    /// Those that are known to differ from what they should be.
    pub undone: Vec<Undone>,
    /// Paths where a rule skipped what is there now: capture them and plan again.
    pub unknown: Vec<WorkspacePath>,
    /// Paths that cannot become what the target has without touching something unknown or not requested.
    pub conflicts: Vec<(WorkspacePath, Why)>,
    /// Trees that the steps refer to and no checkpoint has.
    pub new_trees: NewTrees,
    /// The roots it leads from and to, if the plan covers everything that differs between them.
    pub exact: Option<(RootState, RootState)>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.folders.iter().all(|f| f.before == f.after)
    }

    /// The root after the plan, given the root before it.
    pub fn result<S: TreeSource>(&self, source: &S, now: RootState) -> Result<(RootState, NewTrees), S::Error> {
        if let Some((_, to)) = self.exact.filter(|(from, _)| *from == now) {
            return Ok((to, self.new_trees.clone()));
        }
        let layered = Layered { over: &self.new_trees, under: source };
        let mut edits: Vec<(WorkspacePath, Edit)> = Vec::new();
        let mut mode = now.mode;
        for folder in &self.folders {
            if folder.path.is_root() {
                mode = folder.after;
            } else {
                edits.push((folder.path.clone(), Edit::Mode(folder.after)));
            }
        }
        edits.extend(self.steps.iter().map(|s| (s.path.clone(), Edit::Put(s.after.clone()))));
        let (tree, mut new) = edit(&layered, &now.tree, &edits)?;
        new.extend(self.new_trees.iter().map(|(id, tree)| (*id, tree.clone())));
        Ok((RootState { tree, mode }, new))
    }
}

/// Plans the way from `now` to `target` for the paths within `scope` (all when it is empty).
pub fn plan<S: TreeSource>(
    source: &S,
    now: RootState,
    target: RootState,
    scope: &[WorkspacePath],
) -> Result<Plan, S::Error> {
    let mut planner = Planner {
        source,
        scope,
        plan: Plan::default(),
        folders: BTreeMap::new(),
        is_exact: scope.is_empty(),
        is_going: false,
    };
    let root = WorkspacePath::root();
    if planner.reach(&root) == Reach::Within && now.mode != target.mode {
        planner.folder_mode(&root, now.mode, target.mode);
    }
    planner.folder(&root, now.mode, Some(&now.tree), Some(&target.tree))?;
    planner.name_unknown_scope(&now.tree, &target.tree)?;
    planner.plan.folders = planner.folders.into_values().collect();
    planner.plan.exact = planner.is_exact.then_some((now, target));
    Ok(planner.plan)
}

/// Trees in memory laid over another source.
pub struct Layered<'a, S> {
    /// Searched first.
    pub over: &'a NewTrees,
    pub under: &'a S,
}

impl<S: TreeSource> TreeSource for Layered<'_, S> {
    type Error = S::Error;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, S::Error> {
        match self.over.get(id) {
            Some(tree) => Ok(tree.clone()),
            None => self.under.tree(id),
        }
    }
}

/// How a path relates to the scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Within,
    Above,
    Outside,
}

struct Planner<'a, S> {
    source: &'a S,
    scope: &'a [WorkspacePath],
    plan: Plan,
    folders: BTreeMap<WorkspacePath, FolderMode>,
    /// Whether everything that differs is a step or a folder's bits.
    is_exact: bool,
    /// Whether this is in a folder that the target does not have, and that stays because of its contents.
    is_going: bool,
}

impl<S: TreeSource> Planner<'_, S> {
    fn reach(&self, path: &WorkspacePath) -> Reach {
        if path.is_in_scope(self.scope) {
            Reach::Within
        } else if self.scope.iter().any(|s| s.is_within(path)) {
            Reach::Above
        } else {
            Reach::Outside
        }
    }

    fn load(&self, id: Option<&ObjectId>) -> Result<Arc<Tree>, S::Error> {
        id.map(|id| self.source.tree(id)).transpose().map(Option::unwrap_or_default)
    }

    /// Plans one folder that exists now and stays.
    fn folder(
        &mut self,
        path: &WorkspacePath,
        mode: u16,
        now: Option<&ObjectId>,
        target: Option<&ObjectId>,
    ) -> Result<(), S::Error> {
        if now == target {
            return Ok(());
        }
        let (now, target) = (self.load(now)?, self.load(target)?);
        self.is_exact &= now.has_git == target.has_git;
        if self.is_going && now.has_git {
            self.plan.kept.push((path.clone(), SkipReason::GitFolder));
        }
        let steps = self.plan.steps.len();
        for (name, have, want) in pairs(&now, &target) {
            if have != want {
                self.entry(path.join(name), have, want)?;
            }
        }
        let own_steps = self.plan.steps[steps..].iter().any(|s| s.path.split().is_some_and(|(p, _)| p == *path));
        if own_steps && mode & 0o700 != 0o700 {
            self.folder_mode(path, mode, mode);
        }
        Ok(())
    }

    fn folder_mode(&mut self, path: &WorkspacePath, before: u16, after: u16) {
        // A folder whose mode changes is recorded before its entries are visited; keep that record.
        self.folders.entry(path.clone()).or_insert(FolderMode { path: path.clone(), before, after });
    }

    fn entry(&mut self, path: WorkspacePath, have: Option<&Entry>, want: Option<&Entry>) -> Result<(), S::Error> {
        let reach = self.reach(&path);
        if reach == Reach::Outside {
            return Ok(());
        }
        match (have, want) {
            (None, None) => self.is_exact = false,
            (None, Some(Entry::Skipped { reason })) => {
                self.is_exact = false;
                if reach == Reach::Within {
                    self.miss(&path, *reason);
                }
            }
            (Some(Entry::Skipped { reason }), None) => {
                self.is_exact = false;
                match reason {
                    // An ordinary file or folder that is new since the target and cannot be deleted.
                    SkipReason::Unreadable => {
                        self.plan.undone.push(Undone { path: path.clone(), reason: *reason, known: None });
                        self.plan.kept.push((path, *reason));
                    }
                    // A running program made it, and it has no contents; or it is an ordinary file that is new since
                    // the target and was never captured.
                    SkipReason::Special | SkipReason::TooLarge | SkipReason::Budget => {
                        self.plan.kept.push((path, *reason));
                    }
                    // It is the reason why the folder around it stays.
                    _ if self.is_going => self.plan.kept.push((path, *reason)),
                    _ => {}
                }
            }
            (Some(_), Some(Entry::Skipped { reason })) => {
                self.is_exact = false;
                self.plan.kept.push((path, *reason));
            }
            (Some(Entry::Skipped { reason }), Some(want)) => {
                self.is_exact = false;
                if reason.is_by_rule() {
                    self.ask_for(&path, want)?;
                }
                self.plan.undone.push(Undone { path: path.clone(), reason: *reason, known: Some(want.clone()) });
                self.plan.kept.push((path, *reason));
            }
            (Some(Entry::Folder { mode, tree, .. }), Some(Entry::Folder { mode: to, tree: want, .. })) => {
                if mode != to && reach == Reach::Within {
                    self.folder_mode(&path, *mode, *to);
                }
                self.folder(&path, *mode, Some(tree), Some(want))?;
            }
            (Some(Entry::Folder { mode, tree, holds_skipped }), None) if *holds_skipped || reach == Reach::Above => {
                self.is_exact = false;
                let was_going = std::mem::replace(&mut self.is_going, true);
                self.folder(&path, *mode, Some(tree), None)?;
                self.is_going = was_going;
            }
            // The requested path lies in a folder that the target does not have, so it is absent there.
            (Some(Entry::Folder { mode, tree, .. }), Some(_)) if reach == Reach::Above => {
                self.folder(&path, *mode, Some(tree), None)?;
            }
            (Some(Entry::Folder { holds_skipped: true, .. }), Some(_)) => {
                self.is_exact = false;
                self.plan.conflicts.push((path, Why::Skipped));
            }
            (Some(_), Some(Entry::Folder { .. })) if reach == Reach::Above => {
                self.plan.conflicts.push((path, Why::InTheWay));
            }
            (Some(_), _) if reach == Reach::Above => {}
            (have, want) => {
                let after = match want {
                    Some(want) => self.makeable(&path, want)?,
                    None => None,
                };
                self.is_exact &= after.as_ref() == want;
                // A folder in which nothing is requested, or nothing can be created, need not exist.
                if have.is_some() || after.is_some() {
                    self.plan.steps.push(Step { path, before: have.cloned(), after });
                }
            }
        }
        Ok(())
    }

    /// Records what the target could not capture and is gone since: nobody can bring it back.
    fn miss(&mut self, path: &WorkspacePath, reason: SkipReason) {
        if reason.is_missed() {
            self.plan.undone.push(Undone { path: path.clone(), reason, known: None });
        }
    }

    /// The part of an entry that can be created and lies in the scope; `None` where that is nothing.
    fn makeable(&mut self, path: &WorkspacePath, want: &Entry) -> Result<Option<Entry>, S::Error> {
        let reach = self.reach(path);
        match want {
            _ if reach == Reach::Outside => Ok(None),
            Entry::Skipped { reason } => {
                if reach == Reach::Within {
                    self.miss(path, *reason);
                }
                Ok(None)
            }
            Entry::Folder { mode, tree, holds_skipped } if *holds_skipped || reach == Reach::Above => {
                let mut made = Vec::new();
                let tree = self.source.tree(tree)?;
                // The repository was deleted with its folder, and its own data was not captured.
                if tree.has_git && reach != Reach::Above {
                    let reason = SkipReason::GitFolder;
                    self.plan.undone.push(Undone { path: path.clone(), reason, known: None });
                }
                for (name, entry) in tree.entries() {
                    if let Some(entry) = self.makeable(&path.join(name), entry)? {
                        made.push((name.clone(), entry));
                    }
                }
                if reach == Reach::Above && made.is_empty() {
                    return Ok(None);
                }
                let tree = keep(Arc::new(Tree::new(false, made)), &mut self.plan.new_trees);
                Ok(Some(Entry::Folder { mode: *mode, tree, holds_skipped: false }))
            }
            _ if reach == Reach::Above => Ok(None),
            _ => Ok(Some(want.clone())),
        }
    }

    /// A path that is requested by name and not captured, now or at the target, is never reported as equal: nobody
    /// knows.
    fn name_unknown_scope(&mut self, now: &ObjectId, target: &ObjectId) -> Result<(), S::Error> {
        for path in self.scope.iter().filter(|path| !path.is_root()) {
            let is_named = self.plan.undone.iter().any(|undone| path.is_within(&undone.path));
            for tree in [now, target] {
                match lookup(self.source, tree, path)? {
                    Some(Entry::Skipped { reason }) if !is_named => {
                        self.plan.undone.push(Undone { path: path.clone(), reason, known: None });
                        break;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Asks for every path that the target has here to be captured, whatever the rules say.
    fn ask_for(&mut self, path: &WorkspacePath, want: &Entry) -> Result<(), S::Error> {
        let mut paths = captured_paths(self.source, path, want)?;
        paths.retain(|path| self.reach(path) != Reach::Outside);
        self.plan.unknown.append(&mut paths);
        Ok(())
    }
}

/// A path and everything captured beneath it.
pub fn captured_paths<S: TreeSource>(
    source: &S,
    path: &WorkspacePath,
    entry: &Entry,
) -> Result<Vec<WorkspacePath>, S::Error> {
    if entry.is_skipped() {
        return Ok(Vec::new());
    }
    let mut paths = vec![path.clone()];
    if let Entry::Folder { tree, .. } = entry {
        for (name, entry) in source.tree(tree)?.entries() {
            paths.append(&mut captured_paths(source, &path.join(name), entry)?);
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::literal::{Forest, Lit, executable, file, folder, link, skipped, special};

    fn path(p: &str) -> WorkspacePath {
        WorkspacePath::new(p).unwrap()
    }

    /// Checks a plan: `+ a` creates, `= a` replaces, `- a` deletes, `m a` changes or opens a folder's bits, `k a`
    /// keeps, `? a` asks for a capture, `! a` is a conflict.
    fn check(now: &[(&str, Lit)], target: &[(&str, Lit)], scope: &[&str], expected: &[&str]) {
        let mut forest = Forest::default();
        let state = |tree| RootState { tree, mode: 0o755 };
        let (now, target) = (state(forest.plant(now)), state(forest.plant(target)));
        let scope: Vec<_> = scope.iter().map(|p| path(p)).collect();
        let plan = plan(&forest.0, now, target, &scope).unwrap();
        let mut found: Vec<String> = Vec::new();
        for step in &plan.steps {
            let sign = match (&step.before, &step.after) {
                (None, _) => '+',
                (_, None) => '-',
                _ => '=',
            };
            found.push(format!("{sign} {}", step.path.display()));
        }
        found.extend(plan.folders.iter().map(|f| format!("m {}", f.path.display())));
        found.extend(plan.kept.iter().map(|(p, _)| format!("k {}", p.display())));
        found.extend(plan.unknown.iter().map(|p| format!("? {}", p.display())));
        found.extend(plan.conflicts.iter().map(|(p, why)| match why {
            Why::InTheWay => format!("! {} in the way", p.display()),
            _ => format!("! {}", p.display()),
        }));
        assert_eq!(found, expected);
        // Computed step by step, regardless of `exact`.
        let computed = Plan { exact: None, ..plan.clone() }.result(&forest.0, now).unwrap();
        if plan.exact.is_some() {
            assert_eq!((computed.0, plan.exact), (target, Some((now, target))));
        }
        if plan.kept.is_empty() && plan.conflicts.is_empty() && scope.is_empty() && !plan_holds_skipped(&forest, now) {
            let (result, new) = computed;
            let layered = Layered { over: &new, under: &forest.0 };
            let again = crate::diff::changes(&layered, Some(&result.tree), Some(&target.tree)).unwrap();
            assert!(again.is_empty(), "the result differs from the target: {again:?}");
            assert_eq!(plan.exact.is_some(), result == target);
        }
    }

    fn plan_holds_skipped(forest: &Forest, now: RootState) -> bool {
        forest.0[&now.tree].holds_skipped()
    }

    #[test]
    fn files_are_created_replaced_and_deleted() {
        check(
            &[("a", file("1")), ("b", file("2")), ("d/e", file("1"))],
            &[("a", file("1")), ("b", file("1")), ("c", file("1"))],
            &[],
            &["= b", "+ c", "- d"],
        );
        check(&[("a", file("1"))], &[("a", executable("1", 0o755))], &[], &["= a"]);
    }

    #[test]
    fn a_change_of_kind_is_one_step() {
        for (a, b) in [
            (vec![("x", file("1"))], vec![("x/y", file("1"))]),
            (vec![("x", link("t"))], vec![("x/y", file("1"))]),
            (vec![("x", link("t"))], vec![("x", file("1"))]),
        ] {
            check(&a, &b, &[], &["= x"]);
            check(&b, &a, &[], &["= x"]);
        }
    }

    #[test]
    fn a_folder_that_holds_skipped_things_is_emptied_and_kept_and_what_it_holds_is_named() {
        check(&[("d/f", file("1")), ("d/node_modules", skipped())], &[], &[], &["- d/f", "k d/node_modules"]);
        check(&[("repo/f", file("1")), ("repo/", Lit::Git)], &[], &[], &["- repo/f", "k repo"]);
        check(&[("d/e/x", skipped())], &[], &[], &["k d/e/x"]);
        // In a folder that the target also has, it keeps nothing.
        check(&[("d/f", file("1")), ("d/x", skipped())], &[("d/f", file("1"))], &[], &[]);
    }

    #[test]
    fn a_file_where_skipped_things_are_is_a_conflict() {
        check(&[("d/x", skipped())], &[("d", file("1"))], &[], &["! d"]);
    }

    #[test]
    fn what_the_target_skipped_stays() {
        check(&[("x", file("1"))], &[("x", skipped())], &[], &["k x"]);
        check(&[], &[("x", skipped())], &[], &[]);
    }

    #[test]
    fn what_a_rule_skips_now_is_asked_for_and_what_cannot_be_read_is_left_alone() {
        check(&[("x", skipped())], &[("x/y", file("1"))], &[], &["k x", "? x", "? x/y"]);
        check(&[("x", special())], &[("x", file("1"))], &[], &["k x"]);
        // What belongs to somebody else is not asked for: old checkpoints may contain what is in it.
        for reason in [SkipReason::Worktree, SkipReason::GitFolder, SkipReason::BareRepository, SkipReason::AgentState]
        {
            let apart = || Lit::Entry(Entry::Skipped { reason });
            check(&[("x", apart())], &[("x/y", file("1"))], &[], &["k x"]);
            check(&[("d/x", apart())], &[], &[], &["k d/x"]);
        }
    }

    #[test]
    fn what_is_asked_for_by_its_path_and_not_captured_is_named() {
        let undone = |now: &[(&str, Lit)], target: &[(&str, Lit)], scope: &str| {
            let mut forest = Forest::default();
            let state = |tree| RootState { tree, mode: 0o755 };
            let (now, target) = (state(forest.plant(now)), state(forest.plant(target)));
            let plan = plan(&forest.0, now, target, &[path(scope)]).unwrap();
            plan.undone.iter().map(|undone| undone.path.display().to_string()).collect::<Vec<_>>()
        };
        // Skipped on both sides, now only, at the target only, and something inside it.
        assert_eq!(undone(&[("x", skipped())], &[("x", skipped())], "x"), ["x"]);
        assert_eq!(undone(&[("x", skipped())], &[], "x"), ["x"]);
        assert_eq!(undone(&[], &[("x", skipped())], "x"), ["x"]);
        assert_eq!(undone(&[("x", file("1"))], &[("x", skipped())], "x"), ["x"]);
        assert_eq!(undone(&[("x", skipped())], &[("x", skipped())], "x/y"), ["x/y"]);
        // Listed once, and not where only something inside the folder is skipped.
        assert_eq!(undone(&[("x", special())], &[("x", file("1"))], "x"), ["x"]);
        assert_eq!(undone(&[("d/x", skipped()), ("d/f", file("1"))], &[("d/x", skipped())], "d"), [""; 0]);
    }

    #[test]
    fn a_new_folder_is_made_without_what_was_skipped_in_it() {
        check(&[], &[("d/f", file("1")), ("d/x", skipped())], &[], &["+ d"]);
    }

    #[test]
    fn a_read_only_folder_is_opened_for_the_swap() {
        check(
            &[("d", folder(0o555)), ("d/f", file("1")), ("d/e/g", file("1"))],
            &[("d", folder(0o555)), ("d/f", file("2")), ("d/e/g", file("1"))],
            &[],
            &["= d/f", "m d"],
        );
        // Only deeper paths change, so the read-only folder itself is not opened.
        check(
            &[("d", folder(0o555)), ("d/e/g", file("1"))],
            &[("d", folder(0o555)), ("d/e/g", file("2"))],
            &[],
            &["= d/e/g"],
        );
    }

    #[test]
    fn a_scope_limits_the_plan_to_its_paths() {
        let now = [("a/x", file("1")), ("a/y", file("1")), ("b", file("1"))];
        let target = [("a/x", file("2")), ("a/y", file("2")), ("b", file("2"))];
        check(&now, &target, &["a/x"], &["= a/x"]);
        check(&now, &target, &["a"], &["= a/x", "= a/y"]);
        check(&[], &target, &["a/x"], &["+ a"]);
        check(&now, &[], &["a/x"], &["- a/x"]);
        check(&[("a", file("1"))], &target, &["a/x"], &["! a in the way"]);
    }
}
