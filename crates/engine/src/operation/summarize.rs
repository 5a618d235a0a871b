//! Summarizing: a branch in which some turns are replaced by a summary of them, and the rest is as it was said. Files stay.
//!
//! Two calls, and the summarizer runs between them: [`Workspace::to_summarize`] reads what is to be summarized,
//! [`Workspace::summarize`] makes the branch. Neither knows where the summary comes from. No lock is held in between, so
//! the second looks whether what was summarized is still all there is.

use piton_model::ChangeKind;
use piton_model::conversation::Began;
use piton_model::summary::{BadSummary, DigestTurn, Excerpt, MOST_GIVEN, SummarySide, digest, plain, tidy};
use piton_model::{SessionId, Timestamp};

use crate::conversation::branches::BranchError;
use crate::conversation::{BranchPlan, BranchTerms, NoConversation, Point, Replacement};
use crate::history::target::{IntoTarget, TargetError};
use crate::operation::branch::BranchAsked;
use crate::operation::error::OperationError;
use crate::operation::request::Asked;
use crate::view::{OperationOutcome, SaidView};
use crate::workspace::{History, Workspace};

/// Why no summary was made of turns.
#[derive(Debug, thiserror::Error)]
pub enum SummarizeError {
    /// No turn is on that side.
    #[error("there is nothing to summarize: {}", nothing(*side, *turn))]
    Nothing {
        /// On which.
        side: SummarySide,
        /// Of which turn.
        turn: u32,
    },
    /// The conversation cannot be branched.
    #[error("this conversation cannot be summarized: {0}")]
    Conversation(NoConversation),
    /// The summary.
    #[error("{0}; nothing was made")]
    Bad(#[from] BadSummary),
    /// What the branch is to be called.
    #[error(transparent)]
    Name(#[from] BranchError),
    /// Making the branch.
    #[error(transparent)]
    Operation(OperationError),
}

fn nothing(side: SummarySide, turn: u32) -> String {
    match side {
        SummarySide::From => format!("nothing was said from turn {turn} on"),
        SummarySide::UpTo => format!("nothing was said before turn {turn}"),
    }
}

impl From<OperationError> for SummarizeError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Conversation(why) => Self::Conversation(why),
            other => Self::Operation(other),
        }
    }
}

impl From<TargetError> for SummarizeError {
    fn from(error: TargetError) -> Self {
        Self::Operation(error.into())
    }
}

/// Turns that are to be summarized.
#[derive(Clone, Debug)]
pub struct ToSummarize {
    /// Whose.
    pub session: SessionId,
    /// The first of them.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// What was said in them, for a summarizer to read: the beginning and the end, where it is long.
    pub text: String,
    /// How many bytes of it are left out.
    pub left_out: u64,
    /// A summary that needs no summarizer.
    pub digest: String,
    side: SummarySide,
    point: Point,
    /// What the branch is to be called.
    name: Option<String>,
    mark: [u8; 32],
}

/// What is read of the turns that a branch replaces.
#[derive(Default)]
pub(crate) struct Replaced {
    pub mark: [u8; 32],
    text: String,
    left_out: u64,
    turns: Vec<DigestTurn>,
}

impl Workspace {
    /// Makes the branch in which a summary stands for turns. The user stays where they are, as with a fork.
    ///
    /// # Errors
    /// Where the summary is none, or something was said since that it does not tell.
    pub fn summarize(&mut self, turns: &ToSummarize, summary: &str) -> Result<OperationOutcome, SummarizeError> {
        let summary = Replacement { text: tidy(summary)?, mark: turns.mark };
        let terms = terms(turns.side, summary, turns.name.clone());
        let ask = Asked::Branch(Box::new(BranchAsked { point: turns.point.clone(), terms }));
        Ok(self.operate(&ask, None)?)
    }
}

impl History {
    /// Reads the turns on one side of a target, for a branch with a name or without. Has no side effect.
    ///
    /// # Errors
    /// Where there are none, or the conversation cannot be branched there.
    pub fn to_summarize(
        &self,
        target: impl IntoTarget,
        side: SummarySide,
        name: Option<&str>,
    ) -> Result<ToSummarize, SummarizeError> {
        // Before anybody works on a summary for minutes.
        name.map_or(Ok(()), |name| self.check_session_name(name, None))?;
        // A turn from before piton has no checkpoint, and is in the transcript all the same.
        let target = &target.into_target().map_err(OperationError::from)?;
        let point = self.point_of(target, self.checkpoint_at(target).as_ref().ok()).map_err(OperationError::from)?;
        let plan = self
            .plan_branch(&point, &terms(side, Replacement { text: String::new(), mark: [0; 32] }, None))
            .map_err(OperationError::from)?;
        let mut replaced = self.replaced_by(&plan)?;
        let last = replaced.turns.last().map_or(0, |turn| turn.number);
        if last == 0 {
            return Err(SummarizeError::Nothing { side, turn: point.turn });
        }
        // Where a summary stood for the first turns already, this one stands for those too.
        let first = if side == SummarySide::UpTo { 1 } else { point.turn };
        self.add_changes(&mut replaced.turns, &point)?;
        Ok(ToSummarize {
            session: point.session.session.id.clone(),
            first,
            last,
            text: replaced.text,
            left_out: replaced.left_out,
            digest: digest(&replaced.turns),
            side,
            point,
            name: name.map(str::to_owned),
            mark: replaced.mark,
        })
    }

    /// What is there of the turns that a branch replaces by a summary.
    pub(crate) fn replaced_by(&self, plan: &BranchPlan) -> Result<Replaced, OperationError> {
        let turn = plan.view.turn;
        let before = plan.parent.origin.as_ref().map_or(0, |origin| origin.missing);
        let mut gather = Gather::new();
        match (&plan.copy, plan.terms.how) {
            (Some(copy), Began::SummaryUpTo) => {
                self.each_said(copy.format, &copy.source, (0, copy.cut), before, &mut |one| gather.add(one))?;
            }
            (Some(copy), _) => {
                let before = turn.saturating_sub(1);
                self.each_said(copy.format, &copy.source, (copy.cut, u64::MAX), before, &mut |one| gather.add(one))?;
            }
            (None, how) => {
                let turns = if how == Began::SummaryUpTo { 0..=turn.saturating_sub(1) } else { turn..=u32::MAX };
                self.reported(&plan.parent, &turns)?.into_iter().for_each(|one| gather.add(one));
            }
        }
        Ok(gather.finish())
    }

    /// Adds what piton knows of turns beside what was said.
    fn add_changes(&self, turns: &mut [DigestTurn], point: &Point) -> Result<(), OperationError> {
        let lineage = self.lineage(&point.session.session.id)?;
        for turn in turns.iter_mut() {
            if self.turn_in(&lineage, turn.number)?.is_none() {
                continue;
            }
            // Calls that change nothing and run nothing are of no use to anybody who goes on from here.
            turn.calls.clear();
            let steps = self.store.steps(lineage.session_of(turn.number), Some(turn.number))?;
            turn.commands.extend(steps.into_iter().filter_map(|row| row.step.command));
        }
        for change in self.all_changes(0)? {
            let Some((session, number)) = change.owner.turn() else { continue };
            if !lineage.holds(session, number) {
                continue;
            }
            let Some(turn) = turns.iter_mut().find(|turn| turn.number == number) else { continue };
            let path = change.path.display().to_string();
            match turn.files.iter_mut().find(|(_, known)| *known == path) {
                Some((kind, _)) if *kind == ChangeKind::Created && change.kind == ChangeKind::Modified => {}
                Some((kind, _)) => *kind = change.kind,
                None => turn.files.push((change.kind, path)),
            }
        }
        Ok(())
    }
}

fn terms(side: SummarySide, summary: Replacement, name: Option<String>) -> BranchTerms {
    let how = match side {
        SummarySide::From => Began::SummaryFrom,
        SummarySide::UpTo => Began::SummaryUpTo,
    };
    BranchTerms { how, goes: false, name, summary: Some(summary), cwd: None, worktree: None }
}

/// Takes in what was said, piece by piece.
struct Gather {
    text: Excerpt,
    hash: blake3::Hasher,
    turns: Vec<DigestTurn>,
}

impl Gather {
    fn new() -> Self {
        Self { text: Excerpt::new(MOST_GIVEN), hash: blake3::Hasher::new(), turns: Vec::new() }
    }

    fn add(&mut self, one: SaidView) {
        // As many characters of a prompt or an answer are more than a digest has of them.
        const MOST_HELD: usize = 4_000;
        /// As many calls of a turn, likewise.
        const MOST_CALLS: usize = 100;
        let SaidView { turn, speaker, text, tool, at } = one;
        let Timestamp(at) = at.unwrap_or(Timestamp(0));
        for part in [speaker.as_bytes(), text.as_bytes(), &turn.to_le_bytes(), &at.to_le_bytes()] {
            self.hash.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let text = plain(&text);
        // What an earlier summary says is summarized with the rest, and has no turn of its own.
        self.text.add(match speaker.as_str() {
            "tool" => format!("[turn {turn}, tool] {text}\n\n"),
            "summary" => format!("[summary of the turns before this]\n{text}\n\n"),
            speaker => format!("[turn {turn}, {speaker}]\n{text}\n\n"),
        });
        if self.turns.last().is_none_or(|last| last.number != turn) {
            self.turns.push(DigestTurn { number: turn, ..DigestTurn::default() });
        }
        let Some(last) = self.turns.last_mut() else { return };
        let held = || text.chars().take(MOST_HELD).collect::<String>();
        match speaker.as_str() {
            "user" => last.prompt = last.prompt.take().or_else(|| Some(held())),
            "assistant" => last.answer = Some(held()),
            "summary" => last.answer = Some(format!("(an earlier summary) {}", held())),
            _ if tool.is_some() && last.calls.len() < MOST_CALLS => last.calls.push(held()),
            _ => {}
        }
    }

    fn finish(self) -> Replaced {
        let (text, left_out) = self.text.finish();
        Replaced { mark: *self.hash.finalize().as_bytes(), text, left_out, turns: self.turns }
    }
}
