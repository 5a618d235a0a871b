//! A conversation: what was said in it, its branches, and what a new branch of it would be. The agent's transcript is read and
//! never written.
//!
//! A branch is planned from one reading of the transcript, without any side effect. How one is made is
//! [`crate::operation::branch`].

pub(crate) mod branches;
pub(crate) mod compare;
pub(crate) mod said;
pub(crate) mod transcript;
pub(crate) mod trash;

use std::io;
use std::path::PathBuf;

use piton_agents::Transcripts;
use piton_agents::transcript::Survey;
use piton_model::conversation::{Began, Origin};
use piton_model::target::TurnPlace;
use piton_model::{Cause, Rank, Session, SessionId, Step, Target, When};
use piton_store::{CheckpointRow, SessionRow, StoreError};

use crate::conversation::said::ConversationError;
use crate::history::lineage::Lineage;
use crate::view::ConversationPlanView;
use crate::workspace::History;

use transcript::{CopyPlan, CopyTo, hash};
pub(crate) use transcript::{Source, with_bytes};

/// Why a conversation stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum NoConversation {
    /// A checkpoint outside every session.
    #[error("the checkpoint is of no session")]
    NoSession,
    /// A moment within a turn.
    #[error("a conversation goes back by whole turns; `t{turn}` is before this one, `t{turn}.end` after it")]
    Within { turn: u32 },
    /// Only some paths.
    #[error("with only some paths, only files go back")]
    OnlyPaths,
    /// An agent whose conversations piton cannot branch.
    #[error("piton cannot go back in conversations of {0}")]
    Agent(String),
    /// An agent that does not report what is said.
    #[error("the agent did not report what was said")]
    NothingSaid,
    /// No transcript.
    #[error("its transcript is gone")]
    Gone,
    /// A transcript that a report named and that cannot be the session's.
    #[error("its transcript is not where the agent keeps transcripts")]
    Elsewhere,
    /// A transcript that does not go back so far, or not to this session's turns.
    #[error("its transcript does not have turn {turn}")]
    NotThere { turn: u32 },
    #[error("its transcript cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// Why a branch cannot be planned.
pub(crate) enum NoBranch {
    Conversation(ConversationError),
    /// There are as many as the settings allow.
    TooMany(usize),
}

impl From<ConversationError> for NoBranch {
    fn from(error: ConversationError) -> Self {
        Self::Conversation(error)
    }
}

impl From<NoConversation> for NoBranch {
    fn from(why: NoConversation) -> Self {
        Self::Conversation(why.into())
    }
}

impl From<StoreError> for NoBranch {
    fn from(error: StoreError) -> Self {
        Self::Conversation(error.into())
    }
}

/// A place between two turns of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub session: SessionRow,
    /// The turn that it is just before.
    pub turn: u32,
}

/// How a branch is to be.
#[derive(Clone, Debug)]
pub(crate) struct BranchTerms {
    pub how: Began,
    /// Whether the user goes there.
    pub goes: bool,
    /// What it is called.
    pub name: Option<String>,
    /// What stands for the turns that are left out.
    pub summary: Option<Replacement>,
    /// The folder that its agent will work in, where that is another one.
    pub cwd: Option<PathBuf>,
    /// How that folder gets the code of that moment.
    pub worktree: Option<Step>,
}

impl BranchTerms {
    /// Of a rewind.
    pub(crate) fn rewind() -> Self {
        Self { how: Began::Rewind, goes: true, name: None, summary: None, cwd: None, worktree: None }
    }
}

/// A summary in the place of turns.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    pub text: String,
    /// What was summarized: where something else is there when the branch is made, the summary does not tell it.
    pub mark: [u8; 32],
}

/// A branch as it is planned.
#[derive(Clone)]
pub(crate) struct BranchPlan {
    pub(crate) parent: Session,
    /// How its agent keeps conversations.
    pub(crate) format: Option<&'static dyn Transcripts>,
    pub(crate) origin: Origin,
    pub(crate) terms: BranchTerms,
    /// None where nothing is left of the conversation, or its agent keeps no transcript.
    pub(crate) copy: Option<CopyPlan>,
    /// The folder that the agent finds it from.
    pub(crate) cwd: Option<String>,
    pub(crate) view: ConversationPlanView,
}

impl History {
    /// The place in a conversation that goes with a target: the one that it names, else the one that its checkpoint was
    /// made at.
    pub(crate) fn point_of(&self, target: &Target, row: Option<&CheckpointRow>) -> Result<Point, ConversationError> {
        if let When::Turn { turn, place } = target.when {
            let session = self.session_of_target(target)?;
            let turn = match place {
                TurnPlace::Before => turn,
                TurnPlace::End => turn.saturating_add(1),
                TurnPlace::Step(_) => return Err(NoConversation::Within { turn }.into()),
            };
            return Ok(Point { session, turn });
        }
        let Some(row) = row else {
            return Err(self.unknown_target(target, target.to_string()).into());
        };
        let place = row.checkpoint.place.as_ref().ok_or(NoConversation::NoSession)?;
        // Where the user is has that moment too, if it is a branch that began after it.
        let here = self.here()?.map(|here| self.lineage(&here)).transpose()?;
        let here = here.filter(|here| here.holds(&place.session, place.turn));
        let session = here.as_ref().map_or(&place.session, Lineage::session);
        let session = self.store.session(session)?.ok_or(NoConversation::NoSession)?;
        let turn = match row.checkpoint.cause {
            Cause::Prompt => place.turn,
            Cause::SessionStart | Cause::TurnEnd => place.turn.saturating_add(1),
            Cause::BeforeTool | Cause::AfterTool | Cause::AfterTools | Cause::Compaction => {
                return Err(NoConversation::Within { turn: place.turn }.into());
            }
            Cause::Manual | Cause::BeforeOperation | Cause::Operation => {
                let lineage = self.lineage(&place.session)?;
                let ended = self.turn_in(&lineage, place.turn)?.and_then(|turn| turn.ended_at);
                if place.turn > 0 && ended.is_none_or(|at| at > row.checkpoint.created_at) {
                    return Err(NoConversation::Within { turn: place.turn }.into());
                }
                place.turn.saturating_add(1)
            }
        };
        Ok(Point { session, turn })
    }

    /// Plans a branch that has everything before a point, and nothing after.
    pub(crate) fn plan_branch(&self, point: &Point, terms: &BranchTerms) -> Result<BranchPlan, NoBranch> {
        let parent = &point.session.session;
        let lineage = self.lineage(&parent.id)?;
        let row = self.turn_in(&lineage, point.turn)?;
        let last = self.last_turn_in(&lineage)?;
        let mut is_reported = false;
        for session in lineage.sessions() {
            is_reported |= self.store.has_messages(session)?;
        }
        let agent = self.environment.agents.get(&parent.agent);
        if agent.is_none() && !is_reported {
            return Err(NoConversation::Agent(parent.agent.clone()).into());
        }
        self.check_branch_count(&parent.id)?;
        let mut view = ConversationPlanView {
            from: parent.id.clone(),
            to: None,
            turn: point.turn,
            leaves: (last + 1).saturating_sub(point.turn),
            prompt: row.as_ref().and_then(|row| row.turn.prompt.clone()),
            anew: point.turn <= 1,
            cut_off: false,
            newer: Vec::new(),
        };
        let mut origin = Origin {
            parent: parent.id.clone(),
            turn: point.turn,
            missing: 0,
            at: self.environment.clock.now(),
            how: terms.how,
            summary: None,
        };
        let missing = parent.origin.as_ref().map_or(0, |origin| origin.missing);
        origin.missing = missing;
        if terms.how == Began::SummaryUpTo {
            (origin.turn, origin.missing) = (last + 1, point.turn.saturating_sub(1));
        }
        let Some(format) = agent.and_then(|agent| agent.transcripts) else {
            if point.turn <= missing || point.turn > last + 1 {
                return Err(NoConversation::NotThere { turn: point.turn }.into());
            }
            if !is_reported {
                return Err(NoConversation::NothingSaid.into());
            }
            let terms = terms.clone();
            origin.summary = terms.summary.as_ref().map(|summary| summary.text.clone());
            // Without a transcript a summary is all that the agent needs to go on.
            view.anew &= terms.summary.is_none();
            return Ok(BranchPlan { parent: parent.clone(), format: None, origin, terms, copy: None, cwd: None, view });
        };
        let (source, mode, cut_off) = self.transcript_of(parent, format)?;
        let all = with_bytes(&self.store, &source, (0, u64::MAX), |bytes| format.survey(bytes))?;
        let prompt_id = row.as_ref().and_then(|row| row.turn.prompt_id.as_deref());
        let not_there = || NoConversation::NotThere { turn: point.turn };
        let at = cut_before(&all, missing, point.turn, prompt_id).ok_or_else(not_there)?;
        // Where the agent itself went back before that turn, what it went back past is in the file and was not said.
        let kept = all.turns.get(at).map_or(at, |turn| turn.after.min(at));
        let offset = all.turns.get(kept).map_or(all.length, |turn| turn.offset);
        if kept < at {
            origin.turn = missing + kept as u32 + 1;
        }
        view.cut_off = cut_off || all.cut_off;
        view.anew = kept == 0 && missing == 0;
        // What the transcript has to say of turns is more than piton may have heard.
        view.leaves = view.leaves.max((all.turns.len() - at) as u32);
        if let Some(turn) = all.turns.get(at) {
            let whole = with_bytes(&self.store, &source, (turn.offset, all.length), |bytes| format.prompt_at(bytes))?;
            view.prompt = whole.or_else(|| Some(turn.turn.text.clone()));
        }
        let part = match terms.how {
            Began::SummaryUpTo => {
                // Piton may have heard of a prompt that never got to the transcript.
                origin.turn = (missing + all.turns.len() as u32).max(last) + 1;
                (0, all.length)
            }
            Began::Rewind | Began::Fork | Began::SummaryFrom => (0, offset),
        };
        let digest = with_bytes(&self.store, &source, part, |bytes| hash(bytes))?;
        let here = || self.path.to_string_lossy().into_owned();
        let cwd = match (&terms.cwd, &source) {
            (Some(cwd), _) => cwd.to_string_lossy().into_owned(),
            (None, Source::File(file)) => self.resumed_in(parent, format, file).or(all.cwd).unwrap_or_else(here),
            // Where it was said may have been another machine.
            (None, Source::Kept { .. }) => here(),
        };
        let to = match (&source, &terms.cwd) {
            (Source::File(path), None) => CopyTo::Beside(path.clone()),
            _ => {
                let root = self.transcripts_root(&parent.agent).ok_or(NoConversation::Elsewhere)?;
                CopyTo::PlaceOf { root, cwd: cwd.clone() }
            }
        };
        to.file(format, &parent.agent_id).ok_or(NoConversation::Elsewhere)?;
        let copy = (!view.anew || terms.summary.is_some()).then_some(CopyPlan {
            format,
            source,
            to,
            mode,
            part,
            cut: offset,
            digest,
        });
        let (parent, terms) = (parent.clone(), terms.clone());
        Ok(BranchPlan { parent, format: Some(format), origin, terms, copy, cwd: Some(cwd), view })
    }

    /// Refuses one more branch where there are very many of a conversation.
    fn check_branch_count(&self, session: &SessionId) -> Result<(), NoBranch> {
        let most = self.environment.most_branches;
        let lineage = self.lineage(session)?;
        let mut count = 0;
        for row in self.store.sessions()?.iter().filter(|row| row.session.origin.is_some()) {
            let is_there = row.session.rank != Rank::Deleted;
            if is_there && self.lineage(&row.session.id)?.root() == lineage.root() {
                count += 1;
            }
        }
        if count >= most { Err(NoBranch::TooMany(most)) } else { Ok(()) }
    }
}

/// The turn to cut before, as its place among those that a transcript has; one past the last for all of them.
///
/// Turns are found by the prompt's own id. A session that the agent itself forked has one id on many of them, and one
/// from before piton has none that piton knows: then the number decides.
fn cut_before(all: &Survey, missing: u32, turn: u32, prompt_id: Option<&str>) -> Option<usize> {
    let by_number = turn.checked_sub(missing + 1).map(|at| at as usize).filter(|at| *at <= all.turns.len());
    let Some(wanted) = prompt_id else { return by_number };
    let has_it = |at: usize| all.turns.get(at).is_some_and(|turn| turn.turn.prompt_id.as_deref() == Some(wanted));
    let mut same = (0..all.turns.len()).filter(|at| has_it(*at));
    match (same.next(), same.next()) {
        (Some(one), None) => Some(one),
        (Some(_), Some(_)) => by_number.filter(|at| has_it(*at)),
        // Not there yet, where it is the next one; or a line that has no id.
        (None, _) => by_number.filter(|at| all.turns.get(*at).is_none_or(|turn| turn.turn.prompt_id.is_none())),
    }
}
