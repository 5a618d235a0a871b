//! What stays as it is in a draft: what is in conflict, what was taken out of the plan, and what needs those.

use super::NowAndThen;
use crate::capture::sink::Trees;
use crate::capture::sound::folder_at;
use crate::operation::except::Excepted;
use crate::workspace::History;
use piton_model::content::Decision;
use piton_model::diff::{self, TreeSource};
use piton_model::inverse::{self, Conflict, Drafted, Inverse, Link};
use piton_model::plan::{Layered, RootState};
use piton_model::{Entry, WorkspacePath};
use piton_store::StoreError;

impl History {
    /// Puts back what stays as it is: what is in conflict, what was taken out of the plan, and what would take lines along that
    /// then stand nowhere.
    pub(super) fn leave_what_stays(
        &self,
        (trees, contents, now): (&Trees<'_>, &NowAndThen<'_>, RootState),
        (changes, is_reached): (&Inverse, &dyn Fn(&WorkspacePath) -> bool),
        decision: Option<Decision>,
        excepted: &Excepted,
        drafted: &mut Drafted,
    ) -> Result<(), StoreError> {
        loop {
            name_other_ends(decision, drafted);
            self.name_what_is_in_the_way(trees, now, decision, drafted)?;
            self.leave_conflicts(trees, contents, now, decision, excepted, drafted)?;
            // What stays may stay without lines that stand elsewhere now.
            let lost = inverse::lines_lost(trees, contents, now, drafted, (changes, is_reached), decision)?;
            if lost.is_empty() {
                return Ok(());
            }
            drafted.conflicts.extend(lost);
        }
    }

    /// Adds to conflicts the folders in whose place something else would come: what stays in one needs it.
    fn name_what_is_in_the_way(
        &self,
        trees: &Trees<'_>,
        now: RootState,
        decision: Option<Decision>,
        drafted: &mut Drafted,
    ) -> Result<(), StoreError> {
        let layered = Layered { over: &drafted.new_trees, under: trees };
        for conflict in drafted.conflicts.iter_mut().filter(|conflict| conflict.stays(decision)) {
            let mut ways = Vec::new();
            for path in conflict.paths() {
                ways.extend(replaced_folders(trees, now, &layered, drafted.root, path)?);
            }
            ways.retain(|way| !conflict.paths().any(|path| path == way));
            ways.sort();
            ways.dedup();
            conflict.others.extend(ways);
        }
        Ok(())
    }

    /// Where an earlier moment and what is carried over to it do not go together, what is there now stays; so does what was taken
    /// out of the plan.
    fn leave_conflicts(
        &self,
        trees: &Trees<'_>,
        contents: &NowAndThen<'_>,
        now: RootState,
        decision: Option<Decision>,
        excepted: &Excepted,
        drafted: &mut Drafted,
    ) -> Result<(), StoreError> {
        let stays = drafted.conflicts.iter().filter(|conflict| conflict.stays(decision));
        let open: Vec<_> = stays.flat_map(Conflict::paths).chain(&excepted.paths).chain(&excepted.unseen).collect();
        if open.is_empty() {
            return Ok(());
        }
        let layered = Layered { over: &drafted.new_trees, under: trees };
        let mut stay = Inverse::default();
        for path in open {
            let (then, here) = (folder_at(&layered, drafted.root, path)?, folder_at(trees, now, path)?);
            for change in diff::entry_changes(&layered, path, then.as_ref(), here.as_ref())? {
                stay.add(change.path, Link { after: change.before, before: change.after });
            }
            self.note_folders(trees, &mut stay, now, path)?;
        }
        let stays = inverse::draft(&layered, contents, drafted.root, &stay, None)?;
        drafted.root = stays.root;
        drafted.new_trees.extend(stays.new_trees);
        Ok(())
    }
}

/// Adds to conflicts the other ends of files that would move: where one end stays as it is, the file would be nowhere, or twice.
fn name_other_ends(decision: Option<Decision>, drafted: &mut Drafted) {
    let Drafted { conflicts, moves, .. } = drafted;
    for conflict in conflicts.iter_mut().filter(|conflict| conflict.stays(decision)) {
        while let Some(one) = moves.iter().find(|one| conflict.holds(&one.from) != conflict.holds(&one.to)) {
            let other = if conflict.holds(&one.from) { &one.to } else { &one.from };
            conflict.others.push(other.clone());
        }
    }
}

/// The folders above a path that are there now and in whose place something else would come.
pub(crate) fn replaced_folders<A: TreeSource<Error = StoreError>, B: TreeSource<Error = StoreError>>(
    now_trees: &A,
    now: RootState,
    then_trees: &B,
    then: RootState,
    path: &WorkspacePath,
) -> Result<Vec<WorkspacePath>, StoreError> {
    let is_folder = |entry: &Option<Entry>| matches!(entry, Some(Entry::Folder { .. }));
    let mut found = Vec::new();
    let mut at = path.clone();
    while let Some((above, _)) = at.split().filter(|(above, _)| !above.is_root()) {
        let (here, aimed) = (folder_at(now_trees, now, &above)?, folder_at(then_trees, then, &above)?);
        if is_folder(&here) && aimed.is_some() && !is_folder(&aimed) {
            found.push(above.clone());
        }
        at = above;
    }
    Ok(found)
}
