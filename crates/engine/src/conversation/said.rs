//! Reading a conversation: what was said, turn by turn.
//!
//! From the agent's transcript where it keeps one, read as safely as for a branch and never whole in memory; else from what
//! was reported: the messages of an agent without a transcript, prompts, tool calls and last words of any other. A branch
//! has its parent's turns too, so this is also where an agent without a transcript gets them back.

use std::ops::RangeInclusive;

use piton_agents::Transcripts;
use piton_agents::transcript::{Said, Speaker};
use piton_model::conversation::Began;
use piton_model::{Session, Timestamp};
use piton_store::StoreError;

use crate::conversation::{NoConversation, Source, with_bytes};
use crate::history::target::TargetError;
use crate::view::{Conversation, SaidSource, SaidView};
use crate::workspace::History;

/// As much is read at once; what follows is read from the next turn on.
const MOST: usize = 32 << 20;

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct ConversationOptions {
    /// Whose: the beginning of its id, the agent's id or its name; where not given, the session that the user is in.
    pub session: Option<String>,
    /// From this turn on.
    pub from: Option<u32>,
    /// Up to this turn, with it.
    pub to: Option<u32>,
}

/// Why a conversation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Its transcript.
    #[error("the conversation cannot be read: {0}")]
    Transcript(#[from] NoConversation),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl History {
    /// What was said in a session, with the turns that it has of those that it is a branch of.
    ///
    /// # Errors
    /// Where there is no such session, or the system refuses. A transcript that is gone is no error: then what was
    /// reported is told, and [`Conversation::no_transcript`] says why.
    pub fn conversation(&self, options: &ConversationOptions) -> Result<Conversation, ConversationError> {
        let session = self.session_meant(options.session.as_deref(), "conversation")?.session;
        let turns = options.from.unwrap_or(0)..=options.to.unwrap_or(u32::MAX);
        let mut read = Read::default();
        let mut no_transcript = None;
        let format = self.environment.agents.transcripts(&session.agent);
        let transcript = format.and_then(|format| match self.transcript_of(&session, format) {
            Ok((found, ..)) => Some((format, found)),
            Err(why) => {
                no_transcript = Some(why.to_string());
                None
            }
        });
        let missing = session.origin.as_ref().map_or(0, |origin| origin.missing);
        let source = match &transcript {
            Some((format, found)) => {
                let mut each = |one: SaidView| {
                    if turns.contains(&one.turn) {
                        read.add(one);
                    }
                };
                self.each_said(*format, found, (0, u64::MAX), missing, &mut each)?;
                SaidSource::Transcript
            }
            None => {
                self.reported(&session, &turns)?.into_iter().for_each(|one| read.add(one));
                SaidSource::Reports
            }
        };
        Ok(Conversation {
            last: read.last.max(self.last_turn_in(&self.lineage(&session.id)?)?),
            session: session.id,
            agent: session.agent,
            agent_id: session.agent_id,
            missing,
            origin: session.origin.as_ref().map(Into::into),
            source,
            no_transcript,
            said: read.said,
            next: read.next,
        })
    }

    /// Tells what was said in a part of a transcript; `before` turns come before that part.
    pub(crate) fn each_said(
        &self,
        format: &dyn Transcripts,
        source: &Source,
        part: (u64, u64),
        before: u32,
        each: &mut (dyn FnMut(SaidView) + Send),
    ) -> Result<(), ConversationError> {
        with_bytes(&self.store, source, part, |bytes| format.said(bytes, &mut |one| each(view(one, before))))
    }

    /// What piton heard of these turns of a conversation, in order. Messages are whole: an agent may have nothing else to
    /// go on with.
    pub(crate) fn reported(&self, session: &Session, turns: &RangeInclusive<u32>) -> Result<Vec<SaidView>, StoreError> {
        let lineage = self.lineage(&session.id)?;
        let missing = session.origin.as_ref().map_or(0, |origin| origin.missing);
        // A summary stands for those.
        let is_missing = |turn: u32| missing > 0 && turn <= missing;
        let mut found: Vec<SaidView> = Vec::new();
        let sessions: Vec<_> = lineage.sessions().collect();
        for id in sessions.into_iter().rev() {
            let is_here = |turn: u32| lineage.holds(id, turn) && turns.contains(&turn);
            let one = |turn, speaker: &str, text: String, at| SaidView {
                turn,
                speaker: speaker.to_owned(),
                text,
                tool: None,
                at: Some(at),
            };
            let origin = self.store.session(id)?.and_then(|row| row.session.origin);
            if let Some((origin, text)) = origin.as_ref().and_then(|o| Some((o, o.summary.clone()?))) {
                let stands_at = match origin.how {
                    Began::SummaryUpTo => origin.missing,
                    Began::SummaryFrom | Began::Rewind | Began::Fork => origin.turn.saturating_sub(1),
                };
                if is_here(stands_at) && stands_at >= missing {
                    found.push(one(stands_at, "summary", text, origin.at));
                }
            }
            let is_told = |turn: u32| is_here(turn) && !is_missing(turn);
            let mut messages = self.store.messages(id)?;
            messages.retain(|message| is_told(message.turn));
            for row in self.store.turns(id)?.into_iter().filter(|row| is_told(row.turn.number)) {
                let number = row.turn.number;
                let of_turn = || messages.iter().filter(|message| message.turn == number);
                let prompt = row.turn.prompt.unwrap_or_default();
                // Some report the prompt as a message too.
                if !prompt.is_empty() && !of_turn().any(|message| message.role == "user" && message.text == prompt) {
                    found.push(one(number, "user", prompt, row.turn.at));
                }
                // The last words of a turn are reported cut, and may be a message too.
                let last = row.message.filter(|words| !words.trim().is_empty());
                let is_a_message = |words: &String| {
                    of_turn().any(|message| message.role != "user" && message.text.starts_with(words.as_str()))
                };
                if let Some(words) = last.filter(|words| !is_a_message(words)) {
                    found.push(one(number, "assistant", words, row.ended_at.unwrap_or(row.turn.at)));
                }
            }
            for row in self.store.steps(id, None)?.into_iter().filter(|row| is_told(row.step.at.turn)) {
                let at = Timestamp(row.step.opened.div_euclid(1_000_000));
                let call = one(row.step.at.turn, "tool", row.step.summary, at);
                found.push(SaidView { tool: Some(row.step.tool), ..call });
            }
            found.extend(messages.into_iter().map(|said| one(said.turn, &said.role, said.text, said.at)));
        }
        found.sort_by_key(|one| (one.turn, one.at));
        Ok(found)
    }
}

/// What is read, up to a limit.
#[derive(Default)]
struct Read {
    said: Vec<SaidView>,
    length: usize,
    last: u32,
    next: Option<u32>,
}

impl Read {
    fn add(&mut self, one: SaidView) {
        self.last = self.last.max(one.turn);
        self.length += one.text.len() + 64;
        match self.next {
            Some(_) => {}
            // A turn that does not fit by itself is not begun again and again.
            None if self.length > MOST => {
                let first = self.said.first().map_or(one.turn, |first| first.turn);
                if first == one.turn {
                    self.next = Some(one.turn + 1);
                } else {
                    self.said.retain(|said| said.turn != one.turn);
                    self.next = Some(one.turn);
                }
            }
            None => self.said.push(one),
        }
    }
}

fn view(said: Said, before: u32) -> SaidView {
    let speaker = match said.speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
        Speaker::Tool => "tool",
        Speaker::Summary => "summary",
    };
    SaidView {
        turn: said.turn.saturating_add(before),
        speaker: speaker.to_owned(),
        text: said.text,
        tool: said.tool,
        at: said.at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_read_from_the_next_turn_on() {
        let one =
            |turn, length| SaidView { turn, speaker: "user".into(), text: "x".repeat(length), tool: None, at: None };
        let read = |all: &[(u32, usize)]| {
            let mut read = Read::default();
            all.iter().for_each(|(turn, length)| read.add(one(*turn, *length)));
            (read.said.iter().map(|said| said.turn).collect::<Vec<_>>(), read.next, read.last)
        };
        let half = MOST / 2;
        assert_eq!(read(&[(1, 10), (2, 10)]), (vec![1, 2], None, 2));
        assert_eq!(read(&[(1, half), (2, 10), (2, half), (3, 1)]), (vec![1], Some(2), 3));
        assert_eq!(read(&[(2, half), (2, half), (3, 1)]), (vec![2], Some(3), 3));
    }
}
