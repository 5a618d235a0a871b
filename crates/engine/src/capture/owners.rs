//! Whose the changes of a capture are: what the rules of `model::ownership` need to know of each is gathered here.

use crate::capture::sound::is_uncompared;
use crate::capture::{About, CaptureError, hands};
use crate::workspace::History;
use crate::workspace::near::window_of;
use piton_host::Index;
use piton_model::diff::Change;
use piton_model::ownership::{self, ChangedPath, FolderGone, Judged, Moment, ObservedChange, Owned, Window};
use piton_model::{Ending, Entry, SessionId, StepRef, Timestamp, TurnContext, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};
use std::collections::{HashMap, HashSet};

/// With more changes than this, the checkpoint's record has only their owner, if they all have the same.
const MOST_LISTED: usize = 5_000;

impl History {
    /// The owners of the changes found since a checkpoint.
    pub(crate) fn owners(
        &self,
        changes: &[Change],
        index: Option<&Index>,
        parent: &CheckpointRow,
        about: &About,
    ) -> Result<Vec<Owned>, CaptureError> {
        let listed: Vec<&Change> = changes.iter().filter(|change| !change.implied).collect();
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        let is_listed = listed.len() <= MOST_LISTED;
        let gone = if about.is_folder_gone { self.store.gone_since(parent.seq)? } else { None };
        let mut windows = self.windows(parent.seq, gone.as_ref().map(|(seq, _)| *seq), &about.moment)?;
        let went = gone.map(|(_, gap)| FolderGone {
            moment: Moment::of(gap.cause, &gap.place),
            at: gap.at.0.saturating_mul(1_000_000),
        });
        if let Some(ending) = &about.ending {
            windows.retain(|window| window.step != ending.step);
            windows.push(ending.clone());
            windows.sort_by(|a, b| a.step.cmp(&b.step));
        }
        // A step that ends for want of a word in its own turn is as if it had reported its end.
        for window in windows.iter_mut().filter(|window| window.closed.is_none()) {
            let over = about.over.iter().find(|(step, ..)| *step == window.step);
            if let Some((_, Ending::Lost, cut)) = over
                && about.moment == Moment::Between
            {
                (window.cut_off, window.closed) = (true, *cut);
            }
        }
        self.add_tools_before(&mut windows, parent.seq, about)?;
        let reported = match &about.place {
            Some(TurnContext { session, turn, step: Some(step) }) => {
                Some(StepRef { session: session.clone(), turn: *turn, step: *step })
            }
            _ => None,
        };
        let nearby = self.nearby_since(parent, reported.as_ref());
        windows.extend(nearby.windows);
        let has_missed = about.has_missed
            || self.store.has_lost_events_since(parent.seq)?
            // While another folder was here, this one was not captured.
            || self.store.has_other_line_since(parent.seq, self.record.line)?;
        let has_lost = self.store.has_lost_records_since(parent.seq)?;
        let may_be_a_tools = windows.iter().any(|window| !window.says || window.followed_until.is_some());
        let paths: HashSet<&WorkspacePath> = listed.iter().map(|change| &change.path).collect();
        let hand_edits = if may_be_a_tools { self.hand_edits(&paths)? } else { HashMap::new() };
        let gone_or_not: Vec<_> = listed.iter().map(|change| (&change.path, change.after.is_none())).collect();
        let in_git = if windows.is_empty() { HashSet::new() } else { self.as_in_git(parent, &gone_or_not)? };
        let asks_editors = may_be_a_tools && hands::are_few(listed.len());
        let came = |change: &&Change| change.before.is_none() && change.after.as_ref().is_some_and(Entry::is_folder);
        let new_folders: HashSet<&WorkspacePath> = changes.iter().filter(came).map(|change| &change.path).collect();
        let mut owned: Vec<Owned> = Vec::new();
        for change in listed {
            // A folder's own times do not tell when its contents changed.
            let is_compared = !is_uncompared(change.before.as_ref(), change.after.as_ref());
            let when = index.filter(|_| is_compared);
            let found = ObservedChange {
                path: &change.path,
                when: when.and_then(|index| when_it_came(index, change, &new_folders, parent.checkpoint.created_at)),
                deleted: change.after.is_none(),
                created: change.before.is_none(),
                hand_edit: hand_edits.get(&change.path).copied(),
                is_open_in_editor: asks_editors && self.is_being_edited(&change.path),
                is_as_in_git: in_git.contains(&change.path),
            };
            let judged = match &went {
                Some(went) => Judged { owner: went.owner(&change.path, &windows), doubt: None },
                None => ownership::judge(found, &windows, &about.moment),
            };
            let is_missed = has_missed || nearby.missed.iter().any(|part| change.path.is_within(part));
            let Judged { owner, doubt } = match (has_lost || !is_compared, is_missed) {
                (true, _) => judged.across_a_lost_record(),
                (false, true) => judged.beside_a_missed_tool(),
                (false, false) => judged,
            };
            // Of too many to list, whose they all are is enough.
            let doubt = doubt.filter(|_| is_listed);
            // If there are too many to list, a single owner is recorded, and only if none of them needs more detail.
            let settles = if is_listed && went.is_none() { ownership::settles(&owner, found, &windows) } else { None };
            let path = ChangedPath { path: change.path.clone(), kind: change.kind() };
            let is_same = |group: &&mut Owned| group.owner == owner && group.settles == settles && group.doubt == doubt;
            match owned.iter_mut().find(is_same) {
                Some(group) if is_listed => group.paths.push(path),
                Some(_) => {}
                None => {
                    owned.push(Owned { owner, settles, doubt, paths: if is_listed { vec![path] } else { Vec::new() } })
                }
            }
            // Too many to list, and without a common owner.
            if !is_listed && owned.len() > 1 {
                return Ok(Vec::new());
            }
        }
        Ok(owned)
    }

    /// The windows of tools that were open at any time since a checkpoint and had opened by a given record.
    pub(crate) fn windows(&self, since: u64, until: Option<u64>, moment: &Moment) -> Result<Vec<Window>, StoreError> {
        let ended = self.store.steps_ended_since(since)?;
        let all = ended.into_iter().chain(self.store.open_steps()?);
        let all = all.filter(|row| until.is_none_or(|until| row.seq < until));
        let mut along: HashMap<SessionId, bool> = HashMap::new();
        let mut windows = Vec::new();
        for row in all {
            let session = &row.step.at.session;
            let along = match along.get(session) {
                Some(along) => *along,
                None => {
                    let is_along = self.store.session(session)?.is_some_and(|row| row.session.along);
                    *along.entry(session.clone()).or_insert(is_along)
                }
            };
            let mut window = window_of(&row, since, along, &self.path);
            // Nobody hears of a tool that the user interrupted: its transcript may tell, and its process.
            if row.ending.is_none()
                && *moment == Moment::Between
                && let Some(cut) = self.cut_off(&row)?
            {
                (window.cut_off, window.closed) = (true, cut);
            }
            windows.push(window);
        }
        Ok(windows)
    }

    /// Adds the edit tools that hooks of their agent may still be following, and says until when of each that is there.
    fn add_tools_before(&self, windows: &mut Vec<Window>, since: u64, about: &About) -> Result<(), StoreError> {
        for row in self.store.steps_followed(since)? {
            if windows.iter().all(|window| window.step != row.step.at) {
                windows.push(Window { past: true, ..window_of(&row, 0, false, &self.path) });
            }
        }
        for window in windows.iter_mut().filter(|window| window.followed_until.is_some()) {
            if let Some((session, at)) = &about.ended_together
                && *session == window.step.session
            {
                window.followed_until = Some(*at);
            }
            let turn = self.store.turn(&window.step.session, window.step.turn)?;
            window.prompted = turn.map_or(i64::MIN, |row| row.turn.at.0.saturating_mul(1_000_000));
        }
        Ok(())
    }

    /// Whether any tool of a session has ended that its agent's hooks may be following.
    pub(crate) fn is_followed(&self, session: &SessionId) -> Result<bool, StoreError> {
        Ok(self.store.steps_followed(u64::MAX >> 1)?.iter().any(|row| row.step.at.session == *session))
    }
}

/// When a change happened, in nanoseconds since 1970. What is older than the last capture and was not there then came with
/// a folder that was moved, and that folder's time tells when.
fn when_it_came(index: &Index, change: &Change, new_folders: &HashSet<&WorkspacePath>, last: Timestamp) -> Option<i64> {
    let mut when = index.changed_at(&change.path)?;
    if change.before.is_none() && when < last.0.saturating_mul(1_000_000) {
        let mut at = change.path.clone();
        while let Some((above, _)) = at.split().filter(|(above, _)| new_folders.contains(above)) {
            when = when.max(index.changed_at(&above)?);
            at = above;
        }
    }
    Some(when)
}
