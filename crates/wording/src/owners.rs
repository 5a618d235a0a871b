//! Who made a change and how that is known, and where something was not captured, in plain words.

use std::collections::HashMap;

use piton_engine::model::ownership::{Candidate, Evidence, Owner};
use piton_engine::model::{Cause, SessionId, StepRef};
use piton_engine::view::{GapView, SessionView, StepView};

use crate::escape::escape;

/// How sessions are told apart in what a person types: `t3` is of the conversation where the user is, `kmzq:t3` of another.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The session where the user is, and those that it is a branch of, each with the first turn that is not of it any more.
    here: Vec<(SessionId, u32)>,
    short: HashMap<SessionId, String>,
}

/// As few letters of an id are seldom another's.
const FEWEST: usize = 4;

impl Names {
    /// The names of a workspace's sessions. A turn without one is of the session where the user is.
    pub fn of(sessions: &[SessionView]) -> Self {
        let short = |id: &SessionId| {
            let is_enough = |letters: &usize| {
                sessions.iter().filter(|other| other.id.as_str().starts_with(&id.as_str()[..*letters])).count() <= 1
            };
            let letters = (FEWEST..id.as_str().len()).find(is_enough).unwrap_or(id.as_str().len());
            id.as_str()[..letters].to_owned()
        };
        let all = sessions.iter().map(|session| (session.id.clone(), short(&session.id))).collect();
        let mut here: Vec<(SessionId, u32)> = Vec::new();
        let mut next = sessions.iter().find(|session| session.current).or(sessions.first()).map(|one| (one, u32::MAX));
        while let Some((session, end)) = next {
            here.push((session.id.clone(), end));
            let parent = session.origin.as_ref().filter(|origin| here.iter().all(|(one, _)| *one != origin.parent));
            next = parent.and_then(|origin| {
                let parent = sessions.iter().find(|one| one.id == origin.parent)?;
                Some((parent, end.min(origin.turn)))
            });
        }
        Self { here, short: all }
    }

    /// As few letters of a session's id as mean it.
    pub fn session<'a>(&'a self, id: &'a SessionId) -> &'a str {
        self.short.get(id).map_or(id.short(), String::as_str)
    }

    /// What to type to mean a turn, or a step in it.
    pub fn target(&self, session: &SessionId, turn: u32, step: Option<u32>) -> String {
        let is_here = self.here.iter().any(|(one, end)| one == session && turn < *end);
        let of = if is_here { String::new() } else { format!("{}:", self.session(session)) };
        match step {
            Some(step) => format!("{of}t{turn}.{step}"),
            None => format!("{of}t{turn}"),
        }
    }

    /// What to type to mean a step.
    pub fn step(&self, step: &StepRef) -> String {
        self.target(&step.session, step.turn, Some(step.step))
    }

    /// Who, in a word: `t3.1`, `you`, `operation`, `unsure`.
    pub fn who(&self, owner: &Owner) -> String {
        match owner {
            Owner::Step { step, .. } => self.step(step),
            Owner::You => "you".to_owned(),
            Owner::Operation { .. } => "operation".to_owned(),
            Owner::Unsure { .. } => "unsure".to_owned(),
        }
    }

    /// How that is known, or who it may have been. `steps` are those whose tools are known.
    pub fn evidence(&self, owner: &Owner, steps: &[StepView]) -> String {
        let tool = |wanted: &StepRef| {
            let found = steps.iter().find(|step| step.number == wanted.step && step.target == own_target(wanted));
            found.map(|step| escape(&step.tool).into_owned())
        };
        match owner {
            Owner::Step { step, evidence } => {
                let tool = tool(step).unwrap_or_else(|| self.step(step));
                match evidence {
                    Evidence::Named => format!("{tool} names it"),
                    Evidence::Window => format!("changed while only {tool} ran"),
                    Evidence::Time => format!("by time alone: changed while only {tool} ran, for over 10 s"),
                    Evidence::Followed => format!("changed by a hook right after {tool} named it"),
                }
            }
            Owner::Unsure { candidates } => {
                let one = |candidate: &Candidate| match candidate {
                    Candidate::Step(step) => match tool(step) {
                        Some(tool) => format!("{} {tool}", self.step(step)),
                        None => self.step(step),
                    },
                    Candidate::You => "you".to_owned(),
                };
                either(&candidates.iter().map(one).collect::<Vec<_>>())
            }
            Owner::You | Owner::Operation { .. } => String::new(),
        }
    }

    /// Both, for a list that has no column for the owner.
    pub fn whole(&self, owner: &Owner) -> String {
        match owner {
            Owner::Unsure { .. } => format!("unsure: {}", self.evidence(owner, &[])),
            Owner::Step { .. } => self.evidence(owner, &[]),
            Owner::You | Owner::Operation { .. } => self.who(owner),
        }
    }
}

/// What was not captured and why: `before Bash npm install: not all files could be read in time`.
pub fn gap(gap: &GapView, steps: &[StepView]) -> String {
    let step = gap.step.and_then(|number| steps.iter().find(|step| step.number == number));
    let tool = match (step, gap.step) {
        (Some(step), _) => escape(&step.summary).into_owned(),
        (None, Some(number)) => format!("t{}.{number}", gap.turn),
        (None, None) => "a tool".to_owned(),
    };
    let when = match gap.cause {
        Cause::SessionStart => "at the session's start".to_owned(),
        Cause::Prompt => "at the prompt".to_owned(),
        Cause::BeforeTool => format!("before {tool}"),
        Cause::AfterTool => format!("after {tool}"),
        Cause::AfterTools => "after the tools had ended".to_owned(),
        Cause::TurnEnd => "at the turn's end".to_owned(),
        Cause::Compaction => "before a compaction".to_owned(),
        Cause::Manual | Cause::BeforeOperation | Cause::Operation => crate::words::cause(gap.cause).to_owned(),
    };
    format!("{when}: {}", escape(&gap.reason))
}

/// `a`, `a or b`, `a, b or c`.
fn either(all: &[String]) -> String {
    match all {
        [] => "unknown".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

fn own_target(step: &StepRef) -> String {
    format!("t{}.{}", step.turn, step.step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(session: &SessionId, turn: u32, step: u32) -> StepRef {
        StepRef { session: session.clone(), turn, step }
    }

    #[test]
    fn owners_and_their_evidence_are_told_in_plain_words() {
        let (one, two) = (SessionId::of("a", "1"), SessionId::of("a", "2"));
        let names =
            Names { here: vec![(one.clone(), u32::MAX)], short: HashMap::from([(two.clone(), "kmzq".to_owned())]) };
        let named = Owner::Step { step: step(&one, 3, 1), evidence: Evidence::Named };
        let by_time = Owner::Step { step: step(&one, 3, 1), evidence: Evidence::Time };
        let window = Owner::Step { step: step(&two, 1, 2), evidence: Evidence::Window };
        let unsure = Owner::Unsure {
            candidates: vec![Candidate::Step(step(&one, 3, 1)), Candidate::Step(step(&two, 1, 2)), Candidate::You],
        };
        for (owner, words) in [
            (named, "t3.1 names it"),
            (by_time, "by time alone: changed while only t3.1 ran, for over 10 s"),
            (window, "changed while only kmzq:t1.2 ran"),
            (unsure, "unsure: t3.1, kmzq:t1.2 or you"),
            (Owner::You, "you"),
        ] {
            assert_eq!(names.whole(&owner), words);
        }
    }
}
