//! Taking a conversation back: a branch of the agent's transcript, which the agent goes on with. The original is read and
//! never written.
//!
//! A branch is planned from one reading of the transcript, without any side effect. When it is carried out, its bytes go
//! to the store first and then, as one more step of the operation, to a new file in the agent's own folder: so a crash
//! leaves both the files and the branch, or neither.

pub(crate) mod branches;
pub(crate) mod compare;
pub(crate) mod fork;
pub(crate) mod said;
pub(crate) mod summarize;
pub(crate) mod trash;

mod transcript;

use std::io;
use std::path::PathBuf;

use piton_agents::Transcripts;
use piton_agents::transcript::{Survey, uuid};
use piton_host::{clock, outside};
use piton_model::conversation::{Began, ConversationMove, Origin, Went};
use piton_model::target::{TurnPlace, split_session};
use piton_model::{Cause, Entry, OperationKind, Rank, Session, SessionId, Step, Target};
use piton_store::{CheckpointRow, PATIENCE, SessionRow, Writer};

use crate::history::lineage::Lineage;
use crate::history::target::TargetError;
use crate::operation::draft::{Aim, Remarks, Request, Seen, Settle};
use crate::operation::operate::OperationError;
use crate::operation::outside::{OutsideChanges, place};
use crate::operation::rewind::files;
use crate::view::{ConversationOutcome, ConversationPlanView};
use crate::workspace::Workspace;

use transcript::{CopyPlan, CopyTo, hash, unreadable};
pub(crate) use transcript::{Source, with_bytes};

/// Why a conversation stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum NoConversation {
    /// A checkpoint outside every session.
    #[error("the checkpoint is of no session")]
    NoSession,
    /// A moment within a turn.
    #[error("a conversation goes back by whole turns; `t{turn}` is before this one, `t{turn}.end` after it")]
    Within {
        /// Which.
        turn: u32,
    },
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
    NotThere {
        /// Which.
        turn: u32,
    },
    /// The system.
    #[error("its transcript cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// A place between two turns of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub session: SessionRow,
    /// The turn that it is just before.
    pub turn: u32,
}

/// A branch that is asked for by itself: files stay.
pub(crate) struct BranchAsked {
    pub point: Point,
    pub terms: Terms,
}

/// How a branch is to be.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
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

impl Terms {
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

/// What an operation does to the conversation.
#[derive(Clone)]
pub(crate) enum Talk {
    /// Makes a branch.
    Branch(Box<BranchPlan>),
    /// Goes back to a session that is there.
    Back(Went),
}

impl Talk {
    pub(crate) fn view(&self) -> ConversationPlanView {
        match self {
            Self::Branch(plan) => plan.view.clone(),
            Self::Back(went) => ConversationPlanView {
                from: went.from.clone(),
                to: went.to.clone(),
                turn: went.turn,
                leaves: 0,
                prompt: None,
                anew: false,
                cut_off: false,
                newer: Vec::new(),
            },
        }
    }
}

/// A branch as it is planned.
#[derive(Clone)]
pub(crate) struct BranchPlan {
    pub(crate) parent: Session,
    /// How its agent keeps conversations.
    format: Option<&'static dyn Transcripts>,
    pub(crate) origin: Origin,
    pub(crate) terms: Terms,
    /// None where nothing is left of the conversation, or its agent keeps no transcript.
    pub(crate) copy: Option<CopyPlan>,
    /// The folder that the agent finds it from.
    cwd: Option<String>,
    pub(crate) view: ConversationPlanView,
}

/// As much of a transcript tells where its session began.
const BEGINNING: u64 = 1 << 20;

impl Workspace {
    /// The place in a conversation that goes with a target: the one that it names, else the one that its checkpoint was
    /// made at.
    pub(crate) fn point_of(&self, text: &str, row: Option<&CheckpointRow>) -> Result<Point, OperationError> {
        let (session, rest) = split_session(text);
        if let Ok(Target::Turn { turn, place }) = rest.parse() {
            let session = self.session_meant(session, text)?;
            let turn = match place {
                TurnPlace::Before => turn,
                TurnPlace::End => turn.saturating_add(1),
                TurnPlace::Step(_) => return Err(NoConversation::Within { turn }.into()),
            };
            return Ok(Point { session, turn });
        }
        let Some(row) = row else { return Err(TargetError::Unknown(text.to_owned()).into()) };
        let place = row.checkpoint.place.as_ref().ok_or(NoConversation::NoSession)?;
        // Where the user is has that moment too, if it is a branch that began after it.
        let here = self.here()?.map(|here| self.lineage(&here)).transpose()?;
        let here = here.filter(|here| here.holds(&place.session, place.turn));
        let session = here.as_ref().map_or(&place.session, Lineage::session);
        let session = self.store.session(session)?.ok_or(NoConversation::NoSession)?;
        let turn = match row.checkpoint.cause {
            Cause::Prompt => place.turn,
            Cause::SessionStart | Cause::TurnEnd => place.turn.saturating_add(1),
            Cause::BeforeTool | Cause::AfterTool | Cause::Compaction => {
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
    pub(crate) fn plan_branch(&self, point: &Point, terms: &Terms) -> Result<BranchPlan, OperationError> {
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
            (None, Source::File(_)) => all.cwd.unwrap_or_else(here),
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

    /// A request for a branch alone.
    pub(crate) fn branch_request(&self, asked: &BranchAsked, _: &Seen<'_>) -> Result<Request, OperationError> {
        let mut plan = self.plan_branch(&asked.point, &asked.terms)?;
        let turn = asked.point.turn;
        if asked.terms.summary.is_some() {
            // Those turns are told, and nobody says them again.
            plan.view.prompt = None;
        }
        if asked.terms.goes {
            plan.view.newer = self.newer_than(&asked.point)?;
        }
        let about = match asked.terms.how {
            Began::Rewind => format!("rewind of the conversation to before turn {turn}"),
            Began::Fork => format!("fork before turn {turn}"),
            Began::SummaryFrom => format!("summary from turn {turn} on"),
            Began::SummaryUpTo => format!("summary of the turns before turn {turn}"),
        };
        Ok(Request {
            kind: OperationKind::Branch,
            about: Some(about),
            aim: Aim::Nothing,
            paths: Vec::new(),
            git: None,
            git_stays: None,
            outside: OutsideChanges::default(),
            touches_outside: false,
            conversation: Some(Talk::Branch(Box::new(plan))),
            conversation_stays: None,
            fresh: Vec::new(),
            returns: None,
            settle: Settle::default(),
            left_out: Vec::new(),
            remarks: Remarks::default(),
        })
    }

    /// The files that turns from a point on changed, as far as that is in effect.
    fn newer_than(&self, point: &Point) -> Result<Vec<crate::view::ChangedFile>, OperationError> {
        let lineage = self.lineage(&point.session.session.id)?;
        let mut changes = self.all_changes(0)?;
        changes.retain(|change| {
            let turn = change.owner.turn();
            turn.is_some_and(|(session, turn)| turn >= point.turn && lineage.holds(session, turn))
        });
        let in_effect = self.in_effect(&changes.iter().collect::<Vec<_>>())?;
        let mut in_effect = in_effect.into_iter();
        changes.retain(|_| in_effect.next().unwrap_or(false));
        changes.reverse();
        Ok(files(&changes))
    }

    /// Keeps a branch's bytes in the store, and says what the operation will do with them.
    pub(crate) fn keep_branch(
        &self,
        writer: &mut Writer<'_>,
        plan: &BranchPlan,
    ) -> Result<(ConversationMove, ConversationOutcome), OperationError> {
        if let Some(summary) = &plan.terms.summary
            && self.replaced_by(plan)?.mark != summary.mark
        {
            return Err(OperationError::WentOn);
        }
        let random = |error| OperationError::Store(crate::operation::operate::random_error(error));
        let random = clock::random().map_err(random)?;
        let agent_id = plan.format.map_or_else(|| uuid(random), |format| format.new_session(random));
        let parent = &plan.parent;
        let id = SessionId::of(&parent.agent, &agent_id);
        let goes_on = !plan.view.anew || plan.copy.is_some();
        let mut file = None;
        if let Some(copy) = &plan.copy {
            let (blob, size) = self.copy_to_store(writer, plan, copy, &agent_id)?;
            let path = copy.to.file(copy.format, &agent_id).ok_or(NoConversation::Elsewhere)?;
            outside::make_folder(path.parent().unwrap_or(&path)).map_err(unreadable)?;
            let path = path.to_str().and_then(place).ok_or(NoConversation::Elsewhere)?;
            file = Some(Step { path, before: None, after: Some(Entry::File { mode: copy.mode, size, blob }) });
        }
        let transcript =
            file.as_ref().map(|step| crate::operation::outside::whole(&step.path).to_string_lossy().into_owned());
        let branch = goes_on.then(|| Session {
            id: id.clone(),
            agent: parent.agent.clone(),
            agent_id: agent_id.clone(),
            name: plan.terms.name.clone(),
            transcript: transcript.clone(),
            started_at: self.environment.clock.now(),
            origin: Some(plan.origin.clone()),
            rank: Rank::Plain,
            kept: None,
            along: false,
        });
        let to = branch.as_ref().map(|branch| branch.id.clone());
        let goes = plan.terms.goes;
        let from = if goes { self.comes_from(&parent.id)? } else { parent.id.clone() };
        let turn = self.lineage(&from)?.parted(&self.lineage(&parent.id)?, plan.view.turn);
        let went = Went { from, to: to.clone(), turn, goes };
        let outcome = ConversationOutcome {
            agent_id: to.as_ref().map(|_| agent_id.clone()),
            session: to,
            parent: parent.id.clone(),
            turn: plan.view.turn,
            prompt: plan.view.prompt.clone(),
            resume: file.as_ref().and_then(|_| plan.format?.resume_command(&agent_id)),
            cwd: plan.cwd.clone(),
            transcript,
        };
        Ok((ConversationMove { went, branch, file, worktree: plan.terms.worktree.clone() }, outcome))
    }

    /// Tells the other workspaces of a conversation of its branch, so that its turns have the same numbers and owners
    /// there. Where one cannot be told now, the branch is a session of its own there, and nothing is lost.
    ///
    /// One that goes on in a folder of its own reports there and not here.
    pub(crate) fn note_branch_elsewhere(&self, branch: &Session, works_here: bool) {
        let Some(origin) = &branch.origin else { return };
        let engine = self.engine();
        if works_here {
            let _ = self.home.note_session(&branch.id, &self.record.id, false);
        }
        for (id, path) in self.home.workspaces_of(&origin.parent).into_iter().filter(|(id, _)| *id != self.record.id) {
            let told = engine.open(&path).ok().and_then(|other| {
                let lock = other.store.lock(PATIENCE).ok()?;
                other.record_session(&lock, branch).ok()
            });
            if told.is_some() && works_here {
                let _ = self.home.note_session(&branch.id, &id, false);
            }
        }
    }

    /// Back to where an operation came from, where it went anywhere.
    pub(crate) fn talk_back(&self, went: &Went) -> Result<Option<Talk>, OperationError> {
        if !went.goes {
            return Ok(None);
        }
        let to = went.from.clone();
        if self.store.session(&to)?.is_some_and(|row| row.session.rank == Rank::Deleted) {
            return Err(OperationError::DeletedBranch(to));
        }
        let from = self.comes_from(went.to.as_ref().unwrap_or(&to))?;
        Ok(Some(Talk::Back(Went { from, to: Some(to), turn: went.turn, goes: true })))
    }

    /// What is said of going back to a session that is there.
    pub(crate) fn back_at(&self, went: &Went) -> Result<ConversationOutcome, OperationError> {
        let session = went.to.as_ref().map(|id| self.store.session(id)).transpose()?.flatten();
        let session = session.map(|row| row.session);
        let format = session.as_ref().and_then(|session| self.environment.agents.transcripts(&session.agent));
        let known = format.zip(session.as_ref());
        let resume = known.and_then(|(format, one)| format.resume_command(&one.agent_id));
        let file = known.and_then(|(format, one)| match self.transcript_of(one, format).ok()?.0 {
            source @ Source::File(_) => Some((format, source)),
            Source::Kept { .. } => None,
        });
        let cwd = match &file {
            Some((format, source)) => {
                with_bytes(&self.store, source, (0, BEGINNING), |bytes| format.survey(bytes))?.cwd
            }
            None => None,
        };
        Ok(ConversationOutcome {
            session: went.to.clone(),
            agent_id: session.as_ref().map(|session| session.agent_id.clone()),
            parent: went.from.clone(),
            turn: went.turn,
            prompt: None,
            resume: resume.filter(|_| file.is_some()),
            cwd,
            transcript: session.and_then(|session| session.transcript),
        })
    }

    /// Refuses one more branch where there are very many of a conversation.
    fn check_branch_count(&self, session: &SessionId) -> Result<(), OperationError> {
        let most = self.environment.most_branches;
        let lineage = self.lineage(session)?;
        let mut count = 0;
        for row in self.store.sessions()?.iter().filter(|row| row.session.origin.is_some()) {
            let is_there = row.session.rank != Rank::Deleted;
            if is_there && self.lineage(&row.session.id)?.root() == lineage.root() {
                count += 1;
            }
        }
        if count >= most { Err(OperationError::TooManyBranches(most)) } else { Ok(()) }
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
