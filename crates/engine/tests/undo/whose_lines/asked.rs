//! What is asked of piton, at random.

use std::collections::BTreeSet;

use piton_engine::model::content::Decision;
use piton_engine::model::{Except, OperationId, WorkspacePath};
use piton_engine::view::OperationOutcome;
use piton_engine::{
    Carry, Choice, OperationError, Plan, Policy, RedoOptions, RewindOptions, Settle, UndoOptions, Which,
};
use piton_testkit::{Agent, Snapshot, World};

use super::play::{Play, SESSIONS};

pub enum Asked {
    Undo(UndoOptions),
    Rewind(String, RewindOptions),
    Redo(RedoOptions),
}

impl Asked {
    pub fn settle(&mut self) -> &mut Settle {
        match self {
            Self::Undo(options) => &mut options.settle,
            Self::Rewind(_, options) => &mut options.settle,
            Self::Redo(options) => &mut options.settle,
        }
    }

    pub fn plan(&self, world: &World) -> Result<Plan, OperationError> {
        match self {
            Self::Undo(options) => world.open().plan_undo(options),
            Self::Rewind(target, options) => world.open().plan_rewind(target, options),
            Self::Redo(options) => world.open().plan_redo(options),
        }
    }

    pub fn act(&self, world: &World) -> Result<OperationOutcome, OperationError> {
        match self {
            Self::Undo(options) => world.open().undo_now(options),
            Self::Rewind(target, options) => world.open().rewind_now(target, options),
            Self::Redo(options) => world.open().redo_now(options),
        }
    }
}

/// Turns of an agent: whose, from which to which.
pub type Turns = (usize, u32, u32);

/// Something to ask for, and what the model expects of it.
pub struct Question {
    pub asked: Asked,
    pub told: String,
    /// The turns that are taken back as a whole.
    pub taken: Option<Turns>,
    /// The sessions whose work it is about.
    pub about: BTreeSet<usize>,
    /// Lines that an earlier operation brought back, and that may go again with what took them; and those that only the turns which
    /// go back brought back.
    pub may_go: BTreeSet<String>,
    /// The state that it leads back to, if nothing but operations happened since.
    pub back_to: Option<Snapshot>,
    pub policy: Policy,
}

/// An operation that was carried out.
pub struct Done {
    pub id: OperationId,
    pub about: BTreeSet<usize>,
    pub before: Snapshot,
    pub after: Snapshot,
    pub is_redo: bool,
}

impl Done {
    /// The lines that it brought into the folder.
    fn brought(&self) -> BTreeSet<String> {
        let lines = |state: &Snapshot| -> BTreeSet<String> {
            let texts = state.contents().map(String::from_utf8_lossy);
            texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
        };
        lines(&self.after).difference(&lines(&self.before)).cloned().collect()
    }
}

/// What was done so far, and how much of it before somebody last did something by hand.
#[derive(Default)]
pub struct AllDone {
    pub all: Vec<Done>,
    pub before_hands: usize,
}

impl AllDone {
    fn brought(&self, about: impl Fn(usize) -> bool) -> BTreeSet<String> {
        let ours = self.all.iter().filter(|done| done.about.iter().any(|n| about(*n)));
        ours.flat_map(Done::brought).collect()
    }
}

const SETTLES: [Settle; 5] = [
    settled(None, false),
    settled(None, true),
    settled(Some(Decision::Ours), false),
    settled(Some(Decision::Theirs), false),
    settled(Some(Decision::Markers), true),
];

const fn settled(conflicts: Option<Decision>, partial: bool) -> Settle {
    Settle { conflicts, partial, except: Except::NOTHING }
}

pub fn path(path: &str) -> WorkspacePath {
    WorkspacePath::new(path).unwrap()
}

/// Something to ask for.
pub fn question(play: &mut Play<'_>, agents: &[Agent<'_>; 2], done: &AllDone) -> Option<Question> {
    let mut question = match play.dice.below(14) {
        0..=5 => undo(play, agents)?,
        6..=7 => redo(play, done)?,
        _ => rewind(play, agents, done)?,
    };
    let settle = play.dice.one_of(&SETTLES).clone();
    if let Some(decision) = settle.conflicts {
        question.told += &format!(" --conflict {decision:?}").to_lowercase();
    }
    if settle.partial {
        question.told += " --partial";
    }
    *question.asked.settle() = settle;
    Some(question)
}

/// An agent that did something, and one of its turns.
fn turn(play: &mut Play<'_>) -> Option<(usize, u32)> {
    let n = play.dice.below(2) as usize;
    let turns = play.turns[n];
    (turns > 0).then(|| (n, 1 + play.dice.below(u64::from(turns)) as u32))
}

/// Some path: of a file that is there, of a folder, or of nothing.
fn some_path(play: &mut Play<'_>) -> String {
    let files = play.files();
    if play.dice.below(2) == 0 && !files.is_empty() {
        return play.dice.one_of(&files).clone();
    }
    (*play.dice.one_of(&["d", "e", "a", "b", "e/b", "x", "d/a"])).to_owned()
}

fn undo(play: &mut Play<'_>, agents: &[Agent<'_>; 2]) -> Option<Question> {
    let (n, turn) = turn(play)?;
    let name = SESSIONS[n];
    let turns = play.turns[n];
    let session = Some(agents[n].id().to_string());
    let mut choice = Choice { session, what: Some(Which::All), ..Choice::default() };
    let (told, taken) = match play.dice.below(6) {
        0 | 1 => (format!("undo all of {name}"), Some((n, 1, turns))),
        2 | 3 => {
            choice.what = Some(Which::Places(vec![(turn, None)]));
            (format!("undo {name}:t{turn}"), Some((n, turn, turn)))
        }
        4 => {
            let some = some_path(play);
            choice.paths = vec![path(&some)];
            (format!("undo all of {name} --path {some}"), None)
        }
        _ => {
            let count = 1 + play.dice.below(3) as usize;
            choice.what = Some(Which::Last(count));
            (format!("undo last {count} of {name}"), None)
        }
    };
    let asked = Asked::Undo(UndoOptions { choice, ..UndoOptions::default() });
    let about = BTreeSet::from([n]);
    let (may_go, back_to) = (BTreeSet::new(), None);
    Some(Question { asked, told, taken, about, may_go, back_to, policy: Policy::Anything })
}

/// A rewind makes good again what was taken back of its own session since the target, and with that goes what of the user's had
/// come back; without `--only-session` it does so of others, too.
fn rewind(play: &mut Play<'_>, agents: &[Agent<'_>; 2], done: &AllDone) -> Option<Question> {
    let (n, turn) = turn(play)?;
    let carry = *play.dice.one_of(&[Carry::Nothing, Carry::Mine, Carry::Mine, Carry::Others, Carry::Others]);
    let mut options = RewindOptions { carry, ..RewindOptions::default() };
    let mut told = format!("rewind {}:t{turn}", SESSIONS[n]);
    told += match carry {
        Carry::Nothing => "",
        Carry::Mine => " --keep-mine",
        Carry::Others => " --keep-mine --only-session",
    };
    if play.dice.below(3) == 0 {
        let some = some_path(play);
        told += &format!(" --path {some}");
        options.paths = vec![path(&some)];
    }
    let mut policy = Policy::Anything;
    if carry == Carry::Nothing && play.dice.below(2) == 0 {
        policy = Policy::Careful;
        told += " --careful";
    }
    let taken = (carry.has_others() && options.paths.is_empty()).then_some((n, turn, play.turns[n]));
    let mut may_go = done.brought(|of| of == n || !carry.has_others());
    if carry == Carry::Nothing && options.paths.is_empty() {
        may_go.extend(play.brought_since(n, turn));
    }
    let asked = Asked::Rewind(format!("{}:t{turn}", agents[n].id()), options);
    // Whose work is not carried over goes back too, and comes back with a rewind of that session.
    let about = if carry.has_others() { BTreeSet::from([n]) } else { BTreeSet::from([0, 1]) };
    Some(Question { asked, told, taken, about, may_go, back_to: None, policy })
}

/// Takes back the last operation, any one, or several at once.
fn redo(play: &mut Play<'_>, done: &AllDone) -> Option<Question> {
    if done.all.is_empty() {
        return None;
    }
    let number = play.dice.below(done.all.len() as u64) as usize;
    let Done { id, before, .. } = &done.all[number];
    let is_to = play.dice.below(2) == 0;
    let taken_back = if is_to { &done.all[number..] } else { &done.all[number..=number] };
    let is_last = is_to || number + 1 == done.all.len();
    let back_to = (is_last && number >= done.before_hands).then(|| before.clone());
    let mut options = RedoOptions::default();
    let named = if is_to { &mut options.to } else { &mut options.operation };
    *named = Some(id.to_string());
    Some(Question {
        asked: Asked::Redo(options),
        told: format!("redo {} {}", if is_to { "--to" } else { "--op" }, number + 1),
        taken: None,
        about: taken_back.iter().flat_map(|done| done.about.iter().copied()).collect(),
        may_go: taken_back.iter().flat_map(Done::brought).collect(),
        back_to,
        policy: Policy::Anything,
    })
}
