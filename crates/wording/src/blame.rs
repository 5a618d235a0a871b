//! Who wrote which line of a file.

use piton_engine::model::ownership::{Candidate, Owner};
use piton_engine::view::{LineOrigin, OriginKind};

use crate::owners::Names;
use crate::text::{Style, Text};
use crate::words::{self, Now};

/// What stands before the lines of one origin.
#[derive(Clone, Debug)]
pub struct Margin {
    /// `t3.1`, `you`, `before piton`.
    pub who: Text,
    /// Short; empty where it says nothing.
    pub age: String,
    /// The tool, or who it may have been; and the prompt.
    pub about: Text,
}

/// Who wrote the lines of one origin, when, and with what.
pub fn margin(origin: &LineOrigin, names: &Names, now: &Now, with_prompts: bool) -> Margin {
    let who = match (origin.kind, &origin.owner) {
        (OriginKind::Step, Some(Owner::Step { step, .. })) => Text::new(Style::Id, names.step(step)),
        (OriginKind::Step, _) => Text::new(Style::Id, "step"),
        (OriginKind::You, _) => Text::new(Style::Bold, "you"),
        // One turn's for sure, whichever of its steps it was.
        (OriginKind::Unsure, _) => match (&origin.session, origin.turn) {
            (Some(session), Some(turn)) => Text::new(Style::Warn, names.target(session, turn, None)),
            _ => Text::new(Style::Warn, "unsure"),
        },
        (OriginKind::Operation, _) => Text::new(Style::Id, origin.summary.as_deref().unwrap_or("operation")),
        (OriginKind::BeforePiton, _) => Text::new(Style::Dim, "before piton"),
        (OriginKind::Now, _) => Text::new(Style::Good, "now"),
    };
    let about = match (&origin.owner, origin.kind) {
        (Some(Owner::Unsure { candidates }), _) => Text::new(Style::Dim, may_be(candidates, names)),
        (_, OriginKind::Now) => Text::new(Style::Dim, "not captured yet"),
        _ => Text::new(Style::Plain, origin.tool.clone().unwrap_or_default()),
    };
    let prompt = origin.prompt.as_deref().filter(|_| with_prompts).unwrap_or_default();
    let gap = if about.is_empty() || prompt.is_empty() { "" } else { "  " };
    let about = about.and(Style::Plain, gap).and(Style::Dim, prompt);
    // Its first checkpoint says nothing of when a line was written.
    let at = origin.at.filter(|_| origin.kind != OriginKind::BeforePiton);
    let age = at.map(|at| words::short_age(at, now)).unwrap_or_default();
    Margin { who, age, about }
}

/// `t1.1 or t1.2`.
fn may_be(candidates: &[Candidate], names: &Names) -> String {
    names.evidence(&Owner::Unsure { candidates: candidates.to_vec() }, &[])
}
