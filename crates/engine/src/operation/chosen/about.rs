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

impl History {
    /// What a choice is, in a few words. Turns and steps that do not exist are refused.
    pub(super) fn about(
        &self,
        what: &Which,
        choice: &Choice,
        session: Option<&Lineage>,
    ) -> Result<String, TargetError> {
        let mut about = match (what, session) {
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
                let yours = if choice.whose == Some(Whose::You) { "your own changes during " } else { "" };
                format!("{yours}{}", said.join(", "))
            }
            (Which::Last(1), _) => "the last change".to_owned(),
            (Which::Last(count), _) => format!("the last {count} changes"),
            (Which::Numbers(numbers), _) => {
                let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
                let word = if numbers.len() == 1 { "change" } else { "changes" };
                format!("{word} {}", numbers.join(", "))
            }
            (Which::Places(_) | Which::All, _) if choice.whose == Some(Whose::You) => "your own changes".to_owned(),
            (Which::Places(_) | Which::All, _) => "all changes of the session".to_owned(),
        };
        match &choice.paths[..] {
            [] => {}
            paths if paths.len() > MOST_NAMED => about.push_str(&format!(" in {} paths", paths.len())),
            paths => {
                let paths: Vec<_> = paths.iter().map(WorkspacePath::display).collect();
                about.push_str(&format!(" in {}", paths.join(", ")));
            }
        }
        if let Some((from, to)) = &choice.between {
            about.push_str(&format!(" between {from} and {to}"));
        }
        Ok(about)
    }
}
