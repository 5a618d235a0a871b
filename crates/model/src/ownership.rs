//! Who made a change: the rules that assign an owner to a path's difference, and the evidence for it.
//!
//! A wrong owner that is claimed with certainty would make an undo take back somebody else's work, so anything
//! uncertain is [`Owner::Unsure`], with everyone it may have been.
//!
//! - A tool's *window* is open from its before event to its after event (or to what shows that it must have ended).
//! - `named`: a tool whose window was open names the file and reports that it ran. A tool that failed, or was never
//!   heard of again, may not have run at all: the user may have edited the file in its place.
//! - `window`: the file changed while the only open window was that of a tool that does not say what it writes, such as
//!   a shell.
//! - Found while no window was open: the user's own, unless events were lost and a tool may have run unnoticed
//!   ([`beside_a_missed_tool`]).
//! - A shell of a session that works here takes precedence over one of a session that works elsewhere, such as in the
//!   folder around this worktree: two agents side by side in worktrees of one repository hardly ever write into each
//!   other's.
//! - Workspaces may be nested. A tool of a session that works only in one part of this folder counts in that part;
//!   outside it, its shell yields to every other one and is never the only candidate.
//! - Where nothing was captured when a tool began, the same change includes what the user did before it: unsure.
//! - What disappeared with the workspace's folder did so before anyone found the folder gone: it is judged as of that
//!   moment, whatever ran since ([`FolderGone`]).
//! - A capture made while another session's tool is running cannot know that it still runs. What is in doubt for that
//!   reason alone is settled by the tool's own after event ([`settles`]).
//! - Nobody reports a user who saves a file while a shell runs. If the user was the last to change that file, it may
//!   have been either; otherwise the evidence `window` is all there is, and it is shown.

use serde::{Deserialize, Serialize};

use crate::diff::ChangeKind;
use crate::id::{OperationId, SessionId};
use crate::path::WorkspacePath;
use crate::record::Cause;
use crate::session::{StepRef, TurnContext};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "kebab-case")]
pub enum Owner {
    Step {
        #[serde(flatten)]
        step: StepRef,
        evidence: Evidence,
    },
    You,
    /// A rewind, an undo or a redo.
    Operation {
        operation: OperationId,
    },
    Unsure {
        /// Everyone it may have been.
        candidates: Vec<Candidate>,
    },
}

impl Owner {
    /// Who it is, without which.
    pub fn kind(&self) -> OwnerKind {
        match self {
            Self::Step { .. } => OwnerKind::Step,
            Self::You => OwnerKind::You,
            Self::Operation { .. } => OwnerKind::Operation,
            Self::Unsure { .. } => OwnerKind::Unsure,
        }
    }

    /// Whether it is a step of one of some sessions, or may be.
    pub fn may_be_of(&self, is_meant: impl Fn(&SessionId) -> bool) -> bool {
        match self {
            Self::Step { step, .. } => is_meant(&step.session),
            Self::Unsure { candidates } => {
                candidates.iter().any(|one| matches!(one, Candidate::Step(step) if is_meant(&step.session)))
            }
            Self::You | Self::Operation { .. } => false,
        }
    }

    /// Whether it is the user, or may be.
    pub fn may_be_you(&self) -> bool {
        match self {
            Self::You => true,
            Self::Unsure { candidates } => candidates.is_empty() || candidates.contains(&Candidate::You),
            Self::Step { .. } | Self::Operation { .. } => false,
        }
    }

    /// The one turn that made it: that of the step, or of all candidates if they share one.
    pub fn turn(&self) -> Option<(&SessionId, u32)> {
        match self {
            Self::Step { step, .. } => Some((&step.session, step.turn)),
            Self::Unsure { candidates } => {
                let mut turns = candidates.iter().map(|c| match c {
                    Candidate::Step(step) => Some((&step.session, step.turn)),
                    Candidate::You => None,
                });
                let first = turns.next()??;
                turns.all(|turn| turn == Some(first)).then_some(first)
            }
            Self::You | Self::Operation { .. } => None,
        }
    }
}

/// The kinds of owners, as rows and records name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    Step,
    You,
    Operation,
    Unsure,
}

impl OwnerKind {
    /// The word that it is recorded by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::You => "you",
            Self::Operation => "operation",
            Self::Unsure => "unsure",
        }
    }

    /// The kind of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Step, Self::You, Self::Operation, Self::Unsure].into_iter().find(|kind| kind.as_str() == word)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The tool names the file.
    Named,
    /// The file changed while only this tool ran.
    Window,
}

impl Evidence {
    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Window => "window",
        }
    }

    /// The evidence of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Named, Self::Window].into_iter().find(|evidence| evidence.as_str() == word)
    }
}

/// Who may have made a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    Step(StepRef),
    You,
}

/// Changes of one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    pub owner: Owner,
    /// The step that becomes the owner once its own after event has arrived; see [`settles`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<Settles>,
    pub paths: Vec<ChangedPath>,
}

impl Owned {
    /// Changes whose owner is final.
    pub fn of(owner: Owner, paths: Vec<ChangedPath>) -> Self {
        Self { owner, settles: None, paths }
    }
}

/// The tool call that will prove to be a change's owner if it reports its own end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settles {
    #[serde(flatten)]
    pub step: StepRef,
    /// The evidence for it in that case.
    pub evidence: Evidence,
}

impl From<Settles> for Owner {
    fn from(settles: Settles) -> Self {
        Self::Step { step: settles.step, evidence: settles.evidence }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
    pub path: WorkspacePath,
    pub kind: ChangeKind,
}

/// The time during which a tool may have changed files.
#[derive(Clone, Debug)]
pub struct Window {
    pub step: StepRef,
    /// The files of this workspace that the tool names.
    pub named: Vec<WorkspacePath>,
    /// Whether the tool names any files, here or elsewhere. If it does, they are taken to be all that it writes.
    pub says: bool,
    /// In nanoseconds since 1970; [`UNKNOWN`] if its before event never arrived.
    pub opened: i64,
    /// Nothing was captured when it opened: a change found now may be older.
    pub late: bool,
    /// In nanoseconds since 1970, if known.
    pub closed: Option<i64>,
    /// The tool has returned and may still write.
    pub background: bool,
    /// Its session works elsewhere; this workspace is only captured along.
    pub along: bool,
    /// Its session works only in this part of the workspace, which is a workspace of its own.
    pub part: Option<WorkspacePath>,
    /// The tool reported that it failed or was interrupted: it may not have run at all.
    pub failed: bool,
}

impl Window {
    /// Whether the tool's session works in a part of the workspace that does not contain this path.
    fn is_elsewhere(&self, path: &WorkspacePath) -> bool {
        self.part.as_ref().is_some_and(|part| !path.is_within(part))
    }
}

/// [`Window::opened`] of a tool whose before event never arrived.
pub const UNKNOWN: i64 = i64::MIN;

/// The event that caused this capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// This tool has ended.
    After(StepRef),
    /// The turn continues or ends: before another tool, before a compaction, at the turn's end.
    Within(SessionId, u32),
    /// Nothing says that a tool was just running: a prompt, a session's start, a person's request.
    Between,
}

impl Moment {
    /// For an event that is, or would have been, a checkpoint.
    pub fn of(cause: Cause, place: &TurnContext) -> Self {
        match (cause, place.step) {
            (Cause::AfterTool, Some(step)) => {
                Self::After(StepRef { session: place.session.clone(), turn: place.turn, step })
            }
            (Cause::Prompt | Cause::SessionStart, _) => Self::Between,
            _ => Self::Within(place.session.clone(), place.turn),
        }
    }
}

/// A workspace's folder that was found gone, with everything in it.
///
/// Nobody deletes its files one by one: whoever removed the folder removed them, including those that the user was the
/// last to change.
#[derive(Clone, Debug)]
pub struct FolderGone {
    /// The event at which it was found gone.
    pub moment: Moment,
    /// In nanoseconds since 1970.
    pub at: i64,
}

impl FolderGone {
    /// Who removed it, given the windows that were open at any time since the last capture and had opened by then.
    pub fn owner(&self, path: &WorkspacePath, windows: &[Window]) -> Owner {
        let then =
            |window: &Window| Window { closed: window.closed.filter(|closed| *closed <= self.at), ..window.clone() };
        let windows: Vec<Window> = windows.iter().map(then).collect();
        owner(ObservedChange { path, when: None, deleted: true, was_yours: false }, &windows, &self.moment)
    }
}

/// A change whose owner is to be determined.
#[derive(Clone, Copy, Debug)]
pub struct ObservedChange<'a> {
    pub path: &'a WorkspacePath,
    /// When it was made, in nanoseconds since 1970, if known; for a deletion, the latest possible time.
    pub when: Option<i64>,
    /// A deleted file has no time of its own.
    pub deleted: bool,
    /// The user was the last to change this path, or may have been.
    pub was_yours: bool,
}

/// In nanoseconds. Filesystem clocks tick coarsely, so a change may appear slightly older than it is.
const TICK: i64 = 20_000_000;

/// The owner of a change found at `moment`, given the windows that were open at any time since the last capture.
pub fn owner(found: ObservedChange<'_>, windows: &[Window], moment: &Moment) -> Owner {
    let is_open_then = |window: &&Window| match found.when {
        Some(when) => {
            let is_over = window.closed.is_some_and(|closed| when > closed + TICK);
            when >= window.opened.saturating_sub(TICK) && (found.deleted || !is_over)
        }
        None => true,
    };
    // It may have been deleted after the window closed.
    let gone_outside = |window: &Window| {
        found.deleted && window.closed.zip(found.when).is_some_and(|(closed, when)| when > closed + TICK)
    };
    let is_naming = |window: &Window| window.named.iter().any(|named| found.path.is_within(named));
    // A tool that names the files it writes elsewhere has nothing to do with this path.
    let is_about = |window: &&Window| !(window.says && window.is_elsewhere(found.path)) || is_naming(window);
    let open: Vec<&Window> = windows.iter().filter(is_open_then).filter(is_about).collect();
    // A window without an end, at a moment that does not belong to its turn: nobody knows when it ended.
    let is_vague = |window: &Window| {
        window.background
            || (window.closed.is_none()
                && match moment {
                    Moment::After(step) => (&step.session, step.turn) != (&window.step.session, window.step.turn),
                    Moment::Within(session, turn) => (session, *turn) != (&window.step.session, window.step.turn),
                    Moment::Between => true,
                })
            // A change without a time of its own may be from before or after a closed window.
            || (window.closed.is_some() && (found.deleted || found.when.is_none()))
    };
    let ended_now = |window: &Window| matches!(moment, Moment::After(step) if *step == window.step);

    let naming: Vec<&Window> = open.iter().copied().filter(|window| is_naming(window)).collect();
    let may_not_be = |w: &Window| (is_vague(w) && !ended_now(w)) || w.late || w.failed;
    let has_ended = |w: &Window| w.closed.is_some() || ended_now(w);
    match naming[..] {
        // Where nothing was captured when it began, the same change includes what the user did before.
        [one] if !may_not_be(one) && has_ended(one) => {
            return Owner::Step { step: one.step.clone(), evidence: Evidence::Named };
        }
        [] => {}
        [one] => return unsure(&[one], true),
        _ => return unsure(&naming, naming.iter().any(|window| may_not_be(window))),
    }

    let mut silent: Vec<&Window> = open.iter().copied().filter(|w| !w.says).collect();
    let gives_way = |window: &Window| window.along || window.is_elsewhere(found.path);
    if silent.iter().any(|window| !gives_way(window)) {
        silent.retain(|window| !gives_way(window));
    }
    match silent[..] {
        [] if open.is_empty() => Owner::You,
        // The tool says what it writes, and something else changed: through one of its own hooks, or the user.
        [] => unsure(&open, true),
        [one] if found.was_yours || one.opened == UNKNOWN || one.late || gone_outside(one) => unsure(&[one], true),
        [one] if one.is_elsewhere(found.path) => unsure(&[one], true),
        [one] if ended_now(one) || !is_vague(one) => Owner::Step { step: one.step.clone(), evidence: Evidence::Window },
        _ => {
            let or_you =
                |w: &&Window| (is_vague(w) && !ended_now(w)) || w.opened == UNKNOWN || w.late || gone_outside(w);
            unsure(&silent, found.was_yours || silent.iter().any(or_you))
        }
    }
}

/// The step that a doubtful change will prove to be from, if that step reports its own end.
///
/// The capture was made while its tool ran, for another session's event or for a person. At that moment nobody can tell
/// whether the tool still runs or was given up. Its own after event tells, and then the change is as certain as if that
/// event had been the first to find it.
pub fn settles(owner: &Owner, found: ObservedChange<'_>, windows: &[Window]) -> Option<Settles> {
    let Owner::Unsure { candidates } = owner else { return None };
    let mut steps = candidates.iter().filter_map(|candidate| match candidate {
        Candidate::Step(step) => Some(step),
        Candidate::You => None,
    });
    let (Some(step), None) = (steps.next(), steps.next()) else { return None };
    let is_at_work = |window: &Window| window.step == *step && window.closed.is_none() && !window.background;
    if !windows.iter().any(is_at_work) {
        return None;
    }
    match self::owner(found, windows, &Moment::After(step.clone())) {
        Owner::Step { step: then, evidence } if then == *step => Some(Settles { step: then, evidence }),
        _ => None,
    }
}

/// The owner of a change where a tool may have run unrecorded: what rested only on the absence of other tools is now in
/// doubt.
pub fn beside_a_missed_tool(owner: Owner) -> Owner {
    match owner {
        Owner::You => Owner::Unsure { candidates: vec![Candidate::You] },
        Owner::Step { step, evidence: Evidence::Window } => {
            Owner::Unsure { candidates: vec![Candidate::Step(step), Candidate::You] }
        }
        Owner::Unsure { mut candidates } => {
            if !candidates.is_empty() && !candidates.contains(&Candidate::You) {
                candidates.push(Candidate::You);
            }
            Owner::Unsure { candidates }
        }
        named @ (Owner::Step { .. } | Owner::Operation { .. }) => named,
    }
}

/// The owner of a change where a record of the timeline is lost: nothing lists what that record found, so anyone may
/// have contributed.
pub fn across_a_lost_record(owner: Owner) -> Owner {
    match owner {
        Owner::Step { step, .. } => Owner::Unsure { candidates: vec![Candidate::Step(step), Candidate::You] },
        owner => beside_a_missed_tool(owner),
    }
}

fn unsure(windows: &[&Window], or_you: bool) -> Owner {
    let mut candidates: Vec<Candidate> = windows.iter().map(|w| Candidate::Step(w.step.clone())).collect();
    if or_you {
        candidates.push(Candidate::You);
    }
    Owner::Unsure { candidates }
}

#[cfg(test)]
mod tests;
