//! What a choice is, in a few words.

use super::{Choice, Which, Whose};
use crate::history::lineage::Lineage;
use crate::history::target::TargetError;
use crate::workspace::History;
use piton_model::short::one_line;
use piton_model::{StepRef, WorkspacePath};

/// The most characters of a prompt in the name of what is taken back.
const WORDS: usize = 60;

/// More paths than this are counted in the words for a choice.
const MOST_NAMED: usize = 3;

impl Choice {
    /// What narrows it down beside turns and numbers: ` in the last 10m in src`.
    pub(super) fn within(&self) -> String {
        let mut within = String::new();
        if let Some(since) = &self.since {
            within.push_str(&format!(" in the last {}", since.age));
        }
        match &self.paths[..] {
            [] => {}
            paths if paths.len() > MOST_NAMED => within.push_str(&format!(" in {} paths", paths.len())),
            paths => {
                let paths: Vec<_> = paths.iter().map(WorkspacePath::display).collect();
                within.push_str(&format!(" in {}", paths.join(", ")));
            }
        }
        if let Some((from, to)) = &self.between {
            within.push_str(&format!(" between {from} and {to}"));
        }
        within
    }
}

impl History {
    /// What a choice is, in a few words. Turns and steps that do not exist are refused.
    pub(super) fn about(
        &self,
        what: &Which,
        choice: &Choice,
        session: Option<&Lineage>,
    ) -> Result<String, TargetError> {
        let subject = match (what, session) {
            (Which::Places(_), None) | (Which::All, _) if choice.whose == Some(Whose::You) => "your own changes".into(),
            (Which::Places(_), Some(_)) if choice.whose == Some(Whose::You) => {
                format!("your own changes during {}", self.subject(what, session)?)
            }
            _ => self.subject(what, session)?,
        };
        Ok(format!("{subject}{}", choice.within()))
    }

    /// The turns, steps or numbers of a choice, whosever changes they are about.
    pub(super) fn subject(&self, what: &Which, session: Option<&Lineage>) -> Result<String, TargetError> {
        Ok(match (what, session) {
            (Which::Places(places), Some(session)) => {
                let mut said = Vec::new();
                for (turn, step) in places {
                    let id = session.session_of(*turn);
                    let Some(row) = self.store.turn(id, *turn)? else {
                        return Err(self.no_turn(session, *turn));
                    };
                    let what = match step {
                        Some(number) => {
                            let at = StepRef { session: id.clone(), turn: *turn, step: *number };
                            let last = self.store.steps(id, Some(*turn))?.len() as u32;
                            let step = self.store.step(&at)?;
                            let step = step.ok_or(TargetError::NoStep { turn: *turn, step: *number, last })?;
                            format!("step {turn}.{number} ({})", step.step.summary)
                        }
                        None => match row
                            .turn
                            .prompt
                            .as_deref()
                            .and_then(|text| text.lines().find(|l| !l.trim().is_empty()))
                        {
                            Some(line) => format!("turn {turn} “{}”", one_line(line, WORDS)),
                            None => format!("turn {turn}"),
                        },
                    };
                    said.push(what);
                }
                said.join(", ")
            }
            (Which::Last(1), _) => "the last change".to_owned(),
            (Which::Last(count), _) => format!("the last {count} changes"),
            (Which::Numbers(numbers), _) => {
                let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
                let word = if numbers.len() == 1 { "change" } else { "changes" };
                format!("{word} {}", numbers.join(", "))
            }
            (Which::Places(_) | Which::All, _) => "all changes of the session".to_owned(),
        })
    }
}
