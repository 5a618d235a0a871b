//! Making a branch of a conversation, which the agent goes on with, and going back to one that is there. The original is read
//! and never written.
//!
//! When a branch is carried out, its bytes go to the store first and then, as one more step of the operation, to a new file in
//! the agent's own folder: so a crash leaves both the files and the branch, or neither.

use std::io::{self, BufRead, BufReader, Write};

use piton_agents::transcript::{NewBranch, NewSummary, uuid};
use piton_host::{clock, outside};
use piton_model::conversation::{Began, ConversationMove, ConversationSwitch};
use piton_model::{Entry, ObjectId, OperationKind, Rank, Session, SessionId, Step};
use piton_store::{CHUNKED_FROM, PATIENCE, Writer};

use crate::conversation::transcript::{CopyPlan, Hashed, unreadable};
use crate::conversation::{BranchPlan, BranchTerms, NoConversation, Point, Source, with_bytes};
use crate::operation::error::{OperationError, random_error};
use crate::operation::outside::{place, whole};
use crate::operation::request::{Aim, Request};
use crate::operation::rewind::files;
use crate::view::{ChangedFile, ConversationOutcome, ConversationPlanView};
use crate::workspace::{History, Workspace};

/// A branch that is asked for by itself: files stay.
#[derive(Clone)]
pub(crate) struct BranchAsked {
    pub point: Point,
    pub terms: BranchTerms,
}

/// What an operation does to the conversation.
#[derive(Clone)]
pub(crate) enum ConversationPlan {
    /// Makes a branch.
    Branch(Box<BranchPlan>),
    /// Goes back to a session that is there.
    Back(ConversationSwitch),
}

impl ConversationPlan {
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

/// As much of a transcript tells where its session began.
const BEGINNING: u64 = 1 << 20;

impl Workspace {
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
            let told =
                engine.open(&path).ok().and_then(|mut other| other.lock(PATIENCE).ok()?.record_session(branch).ok());
            if told.is_some() && works_here {
                let _ = self.home.note_session(&branch.id, &id, false);
            }
        }
    }
}

impl History {
    /// A request for a branch alone.
    pub(crate) fn branch_request(&self, asked: &BranchAsked) -> Result<Request, OperationError> {
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
            about: Some(about),
            conversation: Some(ConversationPlan::Branch(Box::new(plan))),
            ..Request::new(OperationKind::Branch, Aim::Nothing)
        })
    }

    /// The files that turns from a point on changed, as far as that is in effect.
    fn newer_than(&self, point: &Point) -> Result<Vec<ChangedFile>, OperationError> {
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
        let random = |error| OperationError::Store(random_error(error));
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
        let transcript = file.as_ref().map(|step| whole(&step.path).to_string_lossy().into_owned());
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
        let went = ConversationSwitch { from, to: to.clone(), turn, goes };
        let outcome = ConversationOutcome {
            agent_id: to.as_ref().map(|_| agent_id.clone()),
            session: to,
            parent: parent.id.clone(),
            turn: plan.view.turn,
            prompt: plan.view.prompt.clone(),
            resume: file.as_ref().and_then(|_| plan.format?.resume_command(&agent_id)),
            resume_inside: file.as_ref().and_then(|_| plan.format?.resume_inside(&agent_id)),
            cwd: plan.cwd.clone(),
            transcript,
        };
        Ok((ConversationMove { went, branch, file, worktree: plan.terms.worktree.clone() }, outcome))
    }

    /// Copies what a branch takes over to the store, under the branch's id and with its summary.
    pub(crate) fn copy_to_store(
        &self,
        writer: &mut Writer<'_>,
        plan: &BranchPlan,
        copy: &CopyPlan,
        id: &str,
    ) -> Result<(ObjectId, u64), OperationError> {
        let random = || clock::random().map_err(unreadable);
        let replaces = (plan.terms.how == Began::SummaryUpTo).then_some(copy.cut);
        let summary = match &plan.terms.summary {
            Some(summary) => Some(NewSummary {
                text: &summary.text,
                at: self.environment.clock.now(),
                replaces,
                random: [random()?, random()?],
            }),
            None => None,
        };
        let branch = NewBranch { id, summary };
        let write = |bytes: &mut dyn BufRead, to: &mut dyn Write| -> io::Result<[u8; 32]> {
            let hashed = Hashed { from: bytes, hash: blake3::Hasher::new() };
            let mut all = BufReader::with_capacity(256 << 10, hashed);
            copy.format.branch(&mut all, to, &branch)?;
            Ok(*all.into_inner().hash.finalize().as_bytes())
        };
        // Few are so long that they must not be in memory whole.
        if copy.part.1 - copy.part.0 < CHUNKED_FROM {
            let (digest, bytes) = with_bytes(&self.store, &copy.source, copy.part, |from| {
                let mut bytes = Vec::new();
                write(from, &mut bytes).map(|digest| (digest, bytes))
            })?;
            if digest != copy.digest {
                return Err(OperationError::StaleTranscript);
            }
            return Ok((writer.blob(&bytes)?, bytes.len() as u64));
        }
        let store = &self.store;
        std::thread::scope(|scope| {
            let (mut reader, mut pipe) = io::pipe().map_err(unreadable)?;
            let writing =
                scope.spawn(move || with_bytes(store, &copy.source, copy.part, |from| write(from, &mut pipe)));
            let kept = writer.large(&mut reader);
            drop(reader);
            let digest = writing.join().map_err(|_| unreadable(io::Error::other("its reader failed")));
            // Where the store has no room, whoever gives to it only finds that nobody takes.
            let kept = kept?;
            if digest?? != copy.digest {
                return Err(OperationError::StaleTranscript);
            }
            Ok(kept)
        })
    }

    /// Back to where an operation came from, where it went anywhere.
    pub(crate) fn talk_back(&self, went: &ConversationSwitch) -> Result<Option<ConversationPlan>, OperationError> {
        if !went.goes {
            return Ok(None);
        }
        let to = went.from.clone();
        if self.store.session(&to)?.is_some_and(|row| row.session.rank == Rank::Deleted) {
            return Err(OperationError::DeletedBranch(to));
        }
        let from = self.comes_from(went.to.as_ref().unwrap_or(&to))?;
        Ok(Some(ConversationPlan::Back(ConversationSwitch { from, to: Some(to), turn: went.turn, goes: true })))
    }

    /// What is said of going back to a session that is there.
    pub(crate) fn back_at(&self, went: &ConversationSwitch) -> Result<ConversationOutcome, OperationError> {
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
            Some((format, source @ Source::File(path))) => {
                let here = session.as_ref().and_then(|one| self.resumed_in(one, *format, path));
                let began =
                    || with_bytes(&self.store, source, (0, BEGINNING), |bytes| format.survey(bytes)).map(|all| all.cwd);
                here.map_or_else(began, |here| Ok(Some(here)))?
            }
            _ => None,
        };
        Ok(ConversationOutcome {
            session: went.to.clone(),
            agent_id: session.as_ref().map(|session| session.agent_id.clone()),
            parent: went.from.clone(),
            turn: went.turn,
            prompt: None,
            resume: resume.filter(|_| file.is_some()),
            resume_inside: known
                .and_then(|(format, one)| format.resume_inside(&one.agent_id))
                .filter(|_| file.is_some()),
            cwd,
            transcript: session.and_then(|session| session.transcript),
        })
    }
}
