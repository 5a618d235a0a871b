//! What an event says, as records: what begins, what ends, and the files elsewhere that its tool names.

use std::path::{Path, PathBuf};

use piton_host::{outside, written_by_name};
use piton_model::event::{Event, Report};
use piton_model::session::{Attended, Ending, Gap, Message, Outside, OutsideFile, Session, Step, StepEnd, TurnEnd};
use piton_model::{Record, SkipReason};
use piton_store::{StoreError, Writer};

use super::LARGEST_OUTSIDE;
use super::context::{Context, Over, is_repeated};
use crate::workspace::History;
use crate::workspace::transcripts::is_within_any;

impl History {
    /// The record of an event's session as it is once the event is recorded.
    pub(super) fn session_of(&self, context: &Context) -> Result<Option<Session>, StoreError> {
        match &context.new_session {
            Some(session) => Ok(Some(session.clone())),
            None => Ok(self.store.session(&context.session)?.map(|row| row.session)),
        }
    }

    /// Records what an event says without a checkpoint.
    pub(crate) fn note(
        &self,
        writer: &mut Writer<'_>,
        report: &Report,
        context: &Context,
        also: &[PathBuf],
        gap: Option<Gap>,
    ) -> Result<(), StoreError> {
        self.note_what_begins(writer, context)?;
        if let Some(gap) = gap {
            writer.record(Record::Gap(gap))?;
        }
        self.note_what_ends(writer, report, context, also)
    }

    pub(super) fn note_what_begins(&self, writer: &mut Writer<'_>, context: &Context) -> Result<(), StoreError> {
        if let Some(session) = &context.new_session {
            writer.record(Record::Session(session.clone()))?;
        }
        if let Some(turn) = &context.new_turn {
            writer.record(Record::Turn(turn.clone()))?;
        }
        Ok(())
    }

    pub(super) fn note_what_ends(
        &self,
        writer: &mut Writer<'_>,
        report: &Report,
        context: &Context,
        also: &[PathBuf],
    ) -> Result<(), StoreError> {
        let (now, opened) = match context.aside {
            Some(at) => (at, at.0.saturating_mul(1_000_000)),
            None => (self.environment.clock.now(), self.environment.clock.now_ns()),
        };
        let closed = context.asked;
        for Over { row, how, cut } in &context.over {
            writer.record(Record::StepEnded(StepEnd {
                at: row.step.at.clone(),
                how: *how,
                closed,
                cut: *cut,
                outside: Vec::new(),
            }))?;
        }
        match (&report.event, &context.step) {
            (Event::BeforeTool(call), Some(row)) if context.is_new_step => {
                // Its window opens now: whatever the scan found was there before it.
                let outside = self.look_outside(writer, call.paths.iter().cloned(), also, context.aside.is_some())?;
                writer.record(Record::Step(Step { opened, outside, ..row.step.clone() }))?;
            }
            // It comes once more, or was recorded before its process was ended.
            (Event::AfterTool(_) | Event::ToolFailed { .. }, Some(row))
                if is_repeated(&report.event, row) || (context.aside.is_some() && row.ending.is_some()) => {}
            (Event::AfterTool(call) | Event::ToolFailed { call, .. }, Some(row)) => {
                // Heard of for the first time, or gone to the background while it ran.
                let is_more = call.background && !row.step.background || call.attended == Attended::Interactive;
                if context.is_new_step || is_more {
                    let background = row.step.background || call.background;
                    writer.record(Record::Step(Step { background, ..row.step.clone() }))?;
                }
                let how = match &report.event {
                    Event::ToolFailed { interrupted: true, .. } => Ending::Interrupted,
                    Event::ToolFailed { .. } => Ending::Failed,
                    _ => Ending::Done,
                };
                // A command in the background has returned and goes on: its window stays open.
                if !((row.step.background || call.background) && how == Ending::Done) {
                    // Not every agent says again which files it is about.
                    let before = row.step.outside.iter().map(|file| PathBuf::from(&file.path));
                    let named = call.paths.iter().cloned().chain(before);
                    let outside = self.look_outside(writer, named, also, context.aside.is_some())?;
                    let cut = (how == Ending::Interrupted).then_some(closed);
                    writer.record(Record::StepEnded(StepEnd { at: row.step.at.clone(), how, closed, cut, outside }))?;
                }
            }
            (Event::TurnEnded { failed, message, .. }, _) if context.turn > 0 => {
                writer.record(Record::TurnEnded(TurnEnd {
                    session: context.session.clone(),
                    number: context.turn,
                    how: if *failed { Ending::Failed } else { Ending::Done },
                    message: message.clone(),
                    at: now,
                }))?;
            }
            (Event::SessionEnded { reason }, _) => {
                writer.record(Record::SessionEnded {
                    session: context.session.clone(),
                    reason: reason.clone(),
                    at: now,
                })?;
            }
            (Event::Message { role, text }, _) => {
                writer.record(Record::Message(Message {
                    session: context.session.clone(),
                    turn: context.turn,
                    role: role.clone(),
                    text: text.clone(),
                    at: now,
                }))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps what the files elsewhere that a call names hold. What cannot be kept, or what they held when it is too late to
    /// look, is said to be unknown.
    fn look_outside(
        &self,
        writer: &mut Writer<'_>,
        paths: impl Iterator<Item = PathBuf>,
        also: &[PathBuf],
        is_too_late: bool,
    ) -> Result<Vec<Outside>, StoreError> {
        let mut found: Vec<Outside> = Vec::new();
        for whole in paths.filter(|path| path.is_absolute()).flat_map(|path| written_by_name(&path)) {
            let is_known = found.iter().any(|one| Path::new(&one.path) == whole);
            if is_known || whole.starts_with(&self.path) || self.is_never_read(&whole) {
                continue;
            }
            // The store of the workspace that it is in has it.
            if also.iter().any(|other| whole.starts_with(other)) {
                continue;
            }
            if is_too_late {
                let path = whole.to_string_lossy().into_owned();
                found.push(Outside { path, file: None, skipped: Some(SkipReason::Unreadable) });
                continue;
            }
            let (file, skipped) = match outside::read(&whole, LARGEST_OUTSIDE) {
                Ok(Some(plain)) => {
                    let size = plain.bytes.len() as u64;
                    (Some(OutsideFile { blob: writer.blob(&plain.bytes)?, size, mode: plain.mode }), None)
                }
                Ok(None) => (None, None),
                Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => (None, Some(SkipReason::TooLarge)),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => (None, Some(SkipReason::Special)),
                Err(_) => (None, Some(SkipReason::Unreadable)),
            };
            found.push(Outside { path: whole.to_string_lossy().into_owned(), file, skipped });
        }
        Ok(found)
    }

    /// Piton's own folder, and those where agents keep their state. Given a canonical path.
    fn is_never_read(&self, path: &Path) -> bool {
        let (own, noted) = ([self.home.path().to_owned()], self.home.agent_state().paths);
        is_within_any(path, own.iter().chain(&self.environment.agent_state).chain(&noted))
    }
}
