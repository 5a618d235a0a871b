//! Whose the last turn is, where somebody asks to take it back without saying of which session: that of the newest change
//! which is in effect, in whatever session of this workspace. So it is the same turn after the conversation was cleared, or
//! another one was begun.

use piton_model::ownership::Owner;
use piton_store::SessionRow;

use super::{Choice, Which, Whose, step_of, steps_of_owner, stuck};
use crate::history::changes::OwnedChange;
use crate::history::lineage::Lineage;
use crate::history::target::TargetError;
use crate::operation::draft::FolderNow;
use crate::operation::error::OperationError;
use crate::workspace::History;

impl Choice {
    /// Whether the last turn is meant, of whichever session.
    pub(crate) fn is_last_turn(&self) -> bool {
        self.what.is_none()
            && self.session.is_none()
            && self.paths.is_empty()
            && self.since.is_none()
            && self.between.is_none()
            && self.whose != Some(Whose::You)
    }

    /// Whether the user's own changes are meant, and nothing says which of them.
    fn is_all_of_yours(&self) -> bool {
        self.whose == Some(Whose::You)
            && self.what.is_none()
            && self.session.is_none()
            && self.paths.is_empty()
            && self.since.is_none()
            && self.between.is_none()
    }
}

impl History {
    /// What a person means who asks for their own changes and says nothing else: those since the last prompt, as the agent's are
    /// those of its last turn. None where something else is said, or nobody was prompted here.
    pub(super) fn since_last_prompt(&self, choice: &Choice) -> Result<Option<Choice>, OperationError> {
        if !choice.is_all_of_yours() {
            return Ok(None);
        }
        let mut newest = None;
        for row in self.working_sessions()? {
            let turn = self.store.last_turn(&row.session.id)?;
            newest = newest.max(turn.map(|turn| (turn.seq, turn.turn.number, row.session.id)));
        }
        Ok(newest.map(|(_, turn, session)| Choice {
            what: Some(Which::Places(vec![(turn, None)])),
            session: Some(session.to_string()),
            ..choice.clone()
        }))
    }

    /// The session whose last turn is meant; none where there are not several, or where a command is typed to an agent, whose
    /// session it then is. Without what is there now, what nobody has captured yet does not count.
    pub(crate) fn session_of_last_turn(
        &self,
        seen: Option<&FolderNow<'_>>,
    ) -> Result<Option<SessionRow>, OperationError> {
        let sessions = self.working_sessions()?;
        if self.environment.session.is_some() || sessions.len() < 2 {
            return Ok(None);
        }
        self.refuse_several(&sessions)?;
        let mut lines: Vec<(SessionRow, Lineage)> = Vec::new();
        for row in sessions {
            let lineage = self.lineage(&row.session.id)?;
            lines.push((row, lineage));
        }
        let is_of_any = |owner: &Owner| lines.iter().any(|(_, lineage)| lineage.may_own(owner));
        let mut changes = self.all_changes(0)?;
        if let Some(seen) = seen {
            changes.extend(self.uncaptured(seen)?);
        }
        changes.retain(|change| is_of_any(&change.owner));
        let all: Vec<&OwnedChange> = changes.iter().collect();
        let in_effect = match seen {
            Some(seen) => self.in_effect_here(&all, seen)?,
            None => self.in_effect(&all)?,
        };
        let (mut last, mut last_stuck) = (None, None);
        for (change, _) in changes.iter().zip(in_effect).rev().filter(|(_, in_effect)| *in_effect) {
            let is_stuck = match seen {
                Some(seen) => stuck(change, seen)?.is_some(),
                None => false,
            };
            match is_stuck {
                false => {
                    last = Some(change);
                    break;
                }
                true => last_stuck = last_stuck.or(Some(change)),
            }
        }
        // With nothing to take back, the session that reported last is the one to speak of.
        let Some(last) = last.or(last_stuck) else { return Ok(lines.into_iter().next().map(|(row, _)| row)) };
        // Of a change that may be of several, the first that is sure of itself, else the newest session's.
        let steps = || step_of(&last.owner).into_iter().chain(steps_of_owner(&last.owner));
        let holds = |(_, lineage): &(SessionRow, Lineage)| steps().any(|step| lineage.holds_step(step));
        Ok(lines.into_iter().find(|line| holds(line)).map(|(row, _)| row))
    }

    /// Refuses to choose between sessions that are all in the middle of a turn, where nobody sees which one it is.
    fn refuse_several(&self, sessions: &[SessionRow]) -> Result<(), OperationError> {
        if self.environment.guesses_session {
            return Ok(());
        }
        let live = self.sessions_in_a_turn(sessions)?;
        if live.len() < 2 {
            return Ok(());
        }
        Err(TargetError::SeveralSessions { target: "undo".to_owned(), live }.into())
    }
}
