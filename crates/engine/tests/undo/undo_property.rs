//! Random sessions of two agents and a user in one tree: whatever is undone comes back by a redo, byte for byte, and what
//! is undone takes nothing with it that is somebody else's.
//!
//! The second needs a model that knows nothing of merging. Files have lines of their own, in slots of four with two lines
//! between them that nobody touches, and every edit has a slot to itself: so what a file should be is written down from
//! the list of edits in effect.

use std::collections::{BTreeMap, BTreeSet};

use piton_engine::model::Except;
use piton_engine::model::content::Decision;
use piton_engine::{
    Carry, Choice, ChosenError, OperationError, RedoOptions, RewindOptions, Settle, UndoOptions, Which, Workspace,
};
use piton_testkit::{Agent, Snapshot, World};
use proptest::prelude::*;

/// Who does something: an agent, by its number, or the user.
type Who = usize;
const USER: Who = 2;
const SESSIONS: [&str; 2] = ["one", "two"];

/// Something random that somebody does; what it comes to depends on what is there.
type Raw = (u8, u8, u8);

/// A turn of an agent, each step with whether a shell does it; or something of the user's.
#[derive(Clone, Debug)]
struct Part {
    who: Who,
    steps: Vec<(bool, Vec<Raw>)>,
}

fn part() -> impl Strategy<Value = Part> {
    let step = (any::<bool>(), prop::collection::vec(any::<Raw>(), 1..3));
    (0..3usize, prop::collection::vec(step, 1..4)).prop_map(|(who, steps)| Part { who, steps })
}

fn parts(most: usize) -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec(part(), 1..=most)
}

/// A turn: whose, and its number in the session.
type Turn = (Who, u32);

fn of_turn((who, turn): Turn, settle: Settle, agents: &[Agent<'_>; 2]) -> UndoOptions {
    let session = Some(agents[who].id().to_string());
    let what = Some(Which::Places(vec![(turn, None)]));
    UndoOptions { choice: Choice { what, session, ..Choice::default() }, settle, ..UndoOptions::default() }
}

fn all_of(who: Who, agents: &[Agent<'_>; 2]) -> UndoOptions {
    let session = Some(agents[who].id().to_string());
    let choice = Choice { what: Some(Which::All), session, ..Choice::default() };
    UndoOptions { choice, ..UndoOptions::default() }
}

/// Ends a chain of writing.
fn done(_: &World) {}

fn agents(world: &World) -> [Agent<'_>; 2] {
    SESSIONS.map(|session| Agent::new(world, session))
}

/// Undoes; none where nothing of it is in effect any more, else whether anything was done.
fn undo(workspace: &mut Workspace, options: &UndoOptions) -> Option<Result<bool, OperationError>> {
    match workspace.undo_now(options) {
        Ok(outcome) => {
            assert!(outcome.verified && outcome.unsure.is_empty(), "{outcome:?}");
            Some(Ok(outcome.operation.is_some()))
        }
        Err(OperationError::Chosen(ChosenError::Nothing { .. })) => None,
        Err(error) => Some(Err(error)),
    }
}

#[track_caller]
fn same(world: &World, expected: &Snapshot, when: &str) {
    let now = world.snapshot();
    assert!(now == *expected, "is | should be: {when}\n{}", now.differences(expected).join("\n"));
}

/// A few on every run; `PROPTEST_CASES=2000` for a night of them.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

// Everybody writes where they like.

/// Names that get in each other's way.
const PATHS: [&str; 6] = ["a", "b", "d/c", "d/e", "f/g/h", "f"];

/// Does something to any file; returns the paths that it touches.
fn anything(world: &World, (what, where_, how): Raw, serial: &mut u32) -> Vec<&'static str> {
    let path = PATHS[usize::from(where_) % PATHS.len()];
    let other = PATHS[usize::from(how) % PATHS.len()];
    *serial += 1;
    let line = |n: u32| format!("{serial} {n}\n");
    let read = std::fs::read_to_string(world.path(path)).ok();
    let has_room = |path: &str| path != "f/g/h" || !world.path("f").is_file();
    match (what % 8, read) {
        (0..=4, Some(text)) => {
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            let at = usize::from(how) % (lines.len() + 1);
            let end = (at + usize::from(what % 3)).min(lines.len());
            let new = if what % 8 == 4 { 0 } else { u32::from(what / 8) % 3 + 1 };
            lines.splice(at..end, (0..new).map(line));
            world.write(path, lines.concat());
            vec![path]
        }
        (5, Some(_)) => {
            world.remove(path);
            vec![path]
        }
        (6, Some(_)) if !world.path(other).exists() && has_room(other) && !(path == "f" && other == "f/g/h") => {
            world.folder(world.path(other).parent().unwrap()).rename(path, other);
            vec![path, other]
        }
        (7, _) if !world.path("made").exists() => {
            world.folder("made");
            vec!["made"]
        }
        (_, None) if !world.path(path).is_dir() && has_room(path) => {
            world.write(path, (0..8).map(line).collect::<String>());
            vec![path]
        }
        _ => vec![],
    }
}

/// Plays a session in which anything goes; returns the turns.
fn play_anything(world: &World, agents: &[Agent<'_>; 2], parts: &[Part]) -> Vec<Turn> {
    let mut serial = 0;
    for path in &PATHS[..4] {
        world.write(path, (0..12).map(|n| format!("{path} {n}\n")).collect::<String>());
    }
    let mut turns = Vec::new();
    let mut count = [0, 0];
    for part in parts {
        let Some(agent) = agents.get(part.who) else {
            for raw in part.steps.iter().flat_map(|(_, acts)| acts) {
                anything(world, *raw, &mut serial);
            }
            continue;
        };
        agent.prompt("go");
        count[part.who] += 1;
        turns.push((part.who, count[part.who]));
        for (_, acts) in &part.steps {
            // It names all that there is, so that all it does is surely its own.
            agent.step("Edit", &["a", "b", "d", "f", "made"], |world| {
                for raw in acts {
                    anything(world, *raw, &mut serial);
                }
            });
        }
        agent.end_turn();
    }
    turns
}

const SETTLES: [Settle; 4] = [
    Settle { conflicts: None, partial: true, except: Except::NOTHING },
    Settle { conflicts: Some(Decision::Ours), partial: false, except: Except::NOTHING },
    Settle { conflicts: Some(Decision::Theirs), partial: false, except: Except::NOTHING },
    // Not everything can have markers.
    Settle { conflicts: Some(Decision::Markers), partial: true, except: Except::NOTHING },
];

/// Undoes a turn, settling conflicts where there are any; whether anything was done.
fn undo_somehow(world: &World, options: impl Fn(Settle) -> UndoOptions, settle: usize, when: &str) -> bool {
    let before = world.snapshot();
    let mut workspace = world.open();
    let result = match undo(&mut workspace, &options(Settle::default())) {
        Some(Err(OperationError::Conflict(_))) => {
            same(world, &before, when);
            undo(&mut workspace, &options(SETTLES[settle % SETTLES.len()].clone()))
        }
        result => result,
    };
    match result {
        None => false,
        Some(Ok(done)) => {
            assert!(done || world.snapshot() == before, "changed without an operation: {when}");
            done
        }
        Some(Err(error)) => panic!("{error}: {when}"),
    }
}

fn undo_and_redo(parts: &[Part], order: &[(usize, usize)]) {
    let world = World::new();
    let agents = agents(&world);
    let turns = play_anything(&world, &agents, parts);
    let start = world.snapshot();
    let mut states = Vec::new();
    for (pick, settle) in order {
        let Some(turn) = turns.get(pick % turns.len().max(1)) else { return };
        let before = world.snapshot();
        let when = format!("{turn:?} of {order:?} after {parts:?}");
        if undo_somehow(&world, |settle| of_turn(*turn, settle, &agents), *settle, &when) {
            states.push(before);
        }
    }
    for state in states.iter().rev() {
        world.redo();
        same(&world, state, &format!("redo of {order:?} after {parts:?}"));
    }
    same(&world, &start, "all redone");
    assert!(matches!(world.open().redo_now(&RedoOptions::default()), Err(OperationError::NothingToRedo)));
    world.assert_sound();
}

// Everybody writes where nobody else does.

const FILES: usize = 3;
const SLOTS: usize = 8;

/// One thing that was done, which touches nothing of any other.
#[derive(Clone, Debug)]
struct Deed {
    who: Who,
    turn: u32,
    what: Thing,
}

#[derive(Clone, Debug, PartialEq)]
enum Thing {
    /// Other lines in a slot of a file.
    Lines {
        file: usize,
        slot: usize,
        how: u8,
    },
    Created(usize),
    Deleted(usize),
    Renamed(usize),
    /// The user edits a file that somebody renamed.
    Touched(usize),
    Folder(usize),
}

/// Files that exist from the beginning for somebody to delete or rename.
const SPARE: usize = 4;

fn shared(file: usize) -> String {
    format!("src/file{file}")
}

fn spare(what: &str, n: usize) -> String {
    format!("{what}{n}/file")
}

fn renamed(n: usize, touched: bool) -> Vec<u8> {
    let line = |at: usize| if touched && at == 5 { format!("user {n}\n") } else { format!("to be renamed {n} {at}\n") };
    (0..8).map(line).collect::<String>().into_bytes()
}

fn slot_lines(file: usize, slot: usize) -> [String; 4] {
    [0, 1, 2, 3].map(|n| format!("file {file} slot {slot} line {n}\n"))
}

fn edited_lines(file: usize, slot: usize, deed: usize, how: u8) -> Vec<String> {
    let old = slot_lines(file, slot);
    let new = (0..how / 4 % 3 + 1).map(|n| format!("deed {deed} line {n}\n"));
    match how % 4 {
        // Replaced, in part or all.
        0 => new.collect(),
        1 => old[..1].iter().cloned().chain(new).chain(old[3..].iter().cloned()).collect(),
        // Put in between.
        2 => old[..2].iter().cloned().chain(new).chain(old[2..].iter().cloned()).collect(),
        // Taken out.
        _ => old[..1].iter().cloned().chain(old[3..].iter().cloned()).collect(),
    }
}

/// All that was ever done.
#[derive(Default)]
struct Chronicle {
    deeds: Vec<Deed>,
    slots: BTreeSet<(usize, usize)>,
    /// Spares that are used up, and how many files and folders were made.
    used: [usize; 4],
}

/// Which deeds are in effect.
type InEffect = BTreeSet<usize>;

impl Chronicle {
    /// The whole tree with some deeds in effect: contents of files; folders have none.
    fn tree(&self, in_effect: &InEffect) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut tree = BTreeMap::new();
        for file in 0..FILES {
            let mut text = "head\n".to_owned();
            for slot in 0..SLOTS {
                let deed = in_effect.iter().find_map(|number| match self.deeds[*number].what {
                    Thing::Lines { file: f, slot: s, how } if (f, s) == (file, slot) => Some((*number, how)),
                    _ => None,
                });
                match deed {
                    Some((number, how)) => text.extend(edited_lines(file, slot, number, how)),
                    None => text.extend(slot_lines(file, slot)),
                }
                text += &format!("file {file} between {slot}\nfile {file} and {slot}\n");
            }
            tree.insert(shared(file), Some(text.into_bytes()));
        }
        for n in 0..SPARE {
            tree.insert(spare("delete", n), Some(format!("to be deleted {n}\n").into_bytes()));
            let is_touched = |deed: &usize| matches!(self.deeds[*deed].what, Thing::Touched(of) if of == n);
            tree.insert(spare("rename", n), Some(renamed(n, in_effect.iter().any(is_touched))));
        }
        for number in in_effect {
            match self.deeds[*number].what {
                Thing::Lines { .. } | Thing::Touched(_) => {}
                Thing::Created(n) => drop(tree.insert(spare("new", n), Some(format!("new {n}\n").into_bytes()))),
                Thing::Deleted(n) => drop(tree.remove(&spare("delete", n))),
                Thing::Renamed(n) => {
                    let moved = tree.remove(&spare("rename", n)).unwrap();
                    tree.insert(spare("moved", n), moved);
                }
                Thing::Folder(n) => drop(tree.insert(format!("folder{n}"), None)),
            }
        }
        // Those of the spares stay when they are empty: their last file went, and nobody took the folder.
        let folders: Vec<String> = tree.keys().filter_map(|p| Some(p.rsplit_once('/')?.0.to_owned())).collect();
        tree.extend(folders.into_iter().map(|folder| (folder, None)));
        for n in 0..SPARE {
            tree.entry(format!("delete{n}")).or_insert(None);
            tree.entry(format!("rename{n}")).or_insert(None);
        }
        tree
    }

    /// Puts a random thing where nobody else has been; none where there is no room left.
    fn deed(&mut self, (what, where_, how): Raw, who: Who, turn: u32, in_effect: &InEffect) -> Option<usize> {
        let has = |one: Thing| in_effect.iter().any(|deed| self.deeds[*deed].what == one);
        let touchable = (0..SPARE).find(|n| has(Thing::Renamed(*n)) && !has(Thing::Touched(*n)));
        let mut next = |at: usize, most: usize| {
            let n = self.used[at];
            self.used[at] += usize::from(n < most);
            (n < most).then_some(n)
        };
        let what = match what % 9 {
            0 => Thing::Created(next(0, usize::MAX)?),
            1 => Thing::Deleted(next(1, SPARE)?),
            2 => Thing::Renamed(next(2, SPARE)?),
            3 => Thing::Folder(next(3, usize::MAX)?),
            4 | 5 if who == USER && touchable.is_some() => Thing::Touched(touchable?),
            _ => {
                let all = (0..FILES * SLOTS).map(|n| (usize::from(where_) + n) % (FILES * SLOTS));
                let (file, slot) = all.map(|n| (n % FILES, n / FILES)).find(|place| !self.slots.contains(place))?;
                self.slots.insert((file, slot));
                Thing::Lines { file, slot, how }
            }
        };
        self.deeds.push(Deed { who, turn, what });
        Some(self.deeds.len() - 1)
    }

    /// Does it in the files that are there, which hold the deeds that are in effect.
    fn carry_out(&mut self, world: &World, number: usize, in_effect: &mut InEffect) {
        in_effect.insert(number);
        let Deed { what, .. } = self.deeds[number].clone();
        match what {
            Thing::Lines { file, .. } => {
                let tree = self.tree(in_effect);
                world.write(shared(file), tree[&shared(file)].as_ref().unwrap());
            }
            Thing::Created(n) => done(world.write(spare("new", n), format!("new {n}\n"))),
            Thing::Deleted(n) => done(world.remove(spare("delete", n))),
            Thing::Renamed(n) => done(world.folder(format!("moved{n}")).rename(spare("rename", n), spare("moved", n))),
            Thing::Touched(n) => done(world.write(spare("moved", n), renamed(n, true))),
            Thing::Folder(n) => done(world.folder(format!("folder{n}"))),
        }
    }

    fn paths(&self, number: usize) -> Vec<String> {
        match self.deeds[number].what {
            Thing::Lines { file, .. } => vec![shared(file)],
            Thing::Created(n) => vec![spare("new", n)],
            Thing::Deleted(n) => vec![spare("delete", n)],
            Thing::Renamed(n) => vec![spare("rename", n), spare("moved", n)],
            Thing::Touched(n) => vec![spare("moved", n)],
            Thing::Folder(n) => vec![format!("folder{n}")],
        }
    }

    fn of(&self, keep: impl Fn(&Deed) -> bool) -> InEffect {
        (0..self.deeds.len()).filter(|n| keep(&self.deeds[*n])).collect()
    }
}

/// A world in which everybody keeps to their own lines.
struct Apart<'w> {
    world: &'w World,
    agents: [Agent<'w>; 2],
    chronicle: Chronicle,
    in_effect: InEffect,
    /// What was in effect when each turn began.
    turns: Vec<(Turn, InEffect)>,
    /// Rewinds and undos that stand: which deeds each put out of effect, and which into it.
    operations: Vec<(InEffect, InEffect)>,
    told: String,
}

impl<'w> Apart<'w> {
    fn new(world: &'w World, told: String) -> Self {
        let (chronicle, in_effect) = (Chronicle::default(), InEffect::new());
        for (path, bytes) in chronicle.tree(&in_effect) {
            match bytes {
                Some(bytes) => world.write(path, bytes),
                None => world.folder(path),
            };
        }
        world.capture();
        Self { world, agents: agents(world), chronicle, in_effect, turns: Vec::new(), operations: Vec::new(), told }
    }

    fn part(&mut self, part: &Part) {
        let Self { world, agents, chronicle, in_effect, turns, .. } = self;
        let Some(agent) = agents.get(part.who) else {
            for raw in part.steps.iter().flat_map(|(_, acts)| acts) {
                if let Some(number) = chronicle.deed(*raw, USER, 0, in_effect) {
                    chronicle.carry_out(world, number, in_effect);
                }
            }
            return;
        };
        agent.prompt("go");
        let turn = turns.iter().filter(|((who, _), _)| *who == part.who).count() as u32 + 1;
        turns.push(((part.who, turn), in_effect.clone()));
        for (shell, acts) in &part.steps {
            let deeds: Vec<usize> =
                acts.iter().filter_map(|raw| chronicle.deed(*raw, part.who, turn, in_effect)).collect();
            // What a shell writes where the user wrote not long ago is not surely its own.
            let was_yours = |number: &usize| match chronicle.deeds[*number].what {
                Thing::Lines { file, .. } => chronicle.deeds.iter().any(|deed| {
                    deed.who == USER && matches!(deed.what, Thing::Lines { file: other, .. } if other == file)
                }),
                _ => false,
            };
            let paths: Vec<String> = deeds.iter().flat_map(|number| chronicle.paths(*number)).collect();
            let is_shell = *shell && !deeds.iter().any(was_yours);
            let named: Vec<&str> = if is_shell { Vec::new() } else { paths.iter().map(String::as_str).collect() };
            agent.step(if is_shell { "Bash" } else { "Edit" }, &named, |world| {
                for number in &deeds {
                    chronicle.carry_out(world, *number, in_effect);
                }
            });
        }
        agent.end_turn();
    }

    /// Fails unless the tree is what the deeds in effect make of it.
    #[track_caller]
    fn check(&self, when: &str) {
        let (expected, now) = (self.chronicle.tree(&self.in_effect), self.world.snapshot());
        for (path, bytes) in &expected {
            let is_right = now.has(path) && now.bytes(path) == bytes.as_deref();
            let shown = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8_lossy(b).into_owned());
            assert!(
                is_right,
                "{when}: `{path}` is\n{:?}\nand should be\n{:?}\n{:#?}\n{}",
                shown(now.bytes(path)),
                shown(bytes.as_deref()),
                self.chronicle.deeds,
                self.told
            );
        }
        let count = now.len();
        assert_eq!(count, expected.len(), "{when}: {now:?}\n{expected:?}\n{:#?}\n{}", self.chronicle.deeds, self.told);
    }

    /// Notes what an operation did to the deeds in effect.
    fn operated(&mut self, in_effect: InEffect) {
        let out = self.in_effect.difference(&in_effect).copied().collect();
        let into = in_effect.difference(&self.in_effect).copied().collect();
        self.operations.push((out, into));
        self.in_effect = in_effect;
    }

    fn undo(&mut self, options: &UndoOptions, goes: impl Fn(&Deed) -> bool, when: &str) {
        let goes = self.chronicle.of(goes);
        let left: InEffect = self.in_effect.difference(&goes).copied().collect();
        let result = undo(&mut self.world.open(), options);
        match result {
            None => assert_eq!(left, self.in_effect, "{when}: nothing, they say: {}", self.told),
            Some(Ok(done)) => {
                assert_eq!(done, left != self.in_effect, "{when}: {:#?} {}", self.chronicle.deeds, self.told);
                if done {
                    self.operated(left);
                }
            }
            Some(Err(error)) => panic!("{when}: {error}: {:#?} {}", self.chronicle.deeds, self.told),
        }
        self.check(when);
    }

    fn undo_turn(&mut self, turn: Turn, when: &str) {
        let options = of_turn(turn, Settle::default(), &self.agents);
        self.undo(&options, |deed| (deed.who, deed.turn) == turn, when);
    }

    fn undo_all(&mut self, who: Who, when: &str) {
        // A session that never came has nothing to undo.
        if self.turns.iter().any(|((of, _), _)| *of == who) {
            let options = all_of(who, &self.agents);
            self.undo(&options, |deed| deed.who == who, when);
        }
    }

    fn rewind(&mut self, (who, turn): Turn, then: InEffect, options: &RewindOptions, when: &str) {
        let target = format!("{}:t{turn}", self.agents[who].id());
        let outcome = self.world.open().rewind_now(&target, options);
        let outcome = outcome.unwrap_or_else(|e| panic!("{when}: {e}: {:#?} {}", self.chronicle.deeds, self.told));
        assert_eq!(outcome.operation.is_some(), then != self.in_effect, "{when} {}", self.told);
        if outcome.operation.is_some() {
            self.operated(then);
        }
        self.check(when);
    }

    fn redo(&mut self, when: &str) {
        match (self.operations.pop(), self.world.open().redo_now(&RedoOptions::default())) {
            (None, Err(OperationError::NothingToRedo)) => {}
            (Some((out, into)), Ok(_)) => {
                self.in_effect.extend(out);
                self.in_effect.retain(|deed| !into.contains(deed));
            }
            (standing, result) => panic!("{when}: {standing:?}, {result:?} {}", self.told),
        }
        self.check(when);
    }
}

#[derive(Clone, Debug)]
enum Act {
    Part(Part),
    Undo(usize),
    Rewind(usize),
    Redo,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => part().prop_map(Act::Part),
        2 => any::<usize>().prop_map(Act::Undo),
        1 => any::<usize>().prop_map(Act::Rewind),
        2 => Just(Act::Redo),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn turns_that_are_undone_in_any_order_come_back_by_redos_byte_for_byte(
        parts in parts(6), order in prop::collection::vec(any::<(usize, usize)>(), 1..4),
    ) {
        undo_and_redo(&parts, &order);
    }

    #[test]
    fn undoing_a_turn_leaves_exactly_what_others_did(parts in parts(6), pick in any::<usize>()) {
        let world = World::new();
        let mut apart = Apart::new(&world, format!("{parts:?} {pick}"));
        parts.iter().for_each(|part| apart.part(part));
        apart.check("as played");
        let turns: Vec<Turn> = apart.turns.iter().map(|(turn, _)| *turn).collect();
        if !turns.is_empty() {
            apart.undo_turn(turns[pick % turns.len()], "the turn is undone");
            if !apart.operations.is_empty() {
                apart.redo("the undo is taken back");
            }
        }
        world.assert_sound();
    }

    #[test]
    fn a_rewind_that_keeps_mine_leaves_exactly_what_is_mine(parts in parts(6), only in any::<bool>()) {
        let world = World::new();
        let mut apart = Apart::new(&world, format!("{parts:?} {only}"));
        parts.iter().for_each(|part| apart.part(part));
        let Some((turn, _)) = apart.turns.first().cloned() else { return Ok(()) };
        let options = RewindOptions { carry: if only { Carry::Others } else { Carry::Mine }, ..RewindOptions::default() };
        let stays = apart.chronicle.of(|deed| deed.who == USER || (only && deed.who != turn.0));
        apart.rewind(turn, stays, &options, "rewound");
        if !apart.operations.is_empty() {
            apart.redo("the rewind is taken back");
        }
        world.assert_sound();
    }

    #[test]
    fn whatever_was_undone_redone_and_rewound_undoing_all_leaves_the_users_own(
        acts in prop::collection::vec(act(), 1..12)
    ) {
        let world = World::new();
        let mut apart = Apart::new(&world, format!("{acts:?}"));
        for (number, act) in acts.iter().enumerate() {
            let when = format!("act {number}");
            let turn = |n: &usize| apart.turns.get(n % apart.turns.len().max(1)).cloned();
            match act {
                Act::Part(part) => apart.part(part),
                Act::Undo(n) => if let Some((turn, _)) = turn(n) { apart.undo_turn(turn, &when) },
                Act::Rewind(n) => if let Some((turn, then)) = turn(n) {
                    apart.rewind(turn, then, &RewindOptions::default(), &when);
                },
                Act::Redo => apart.redo(&when),
            }
        }
        apart.undo_all(0, "all of one");
        apart.undo_all(1, "all of the other");
        let users = apart.chronicle.of(|deed| deed.who == USER);
        prop_assert!(apart.in_effect.is_subset(&users));
        world.assert_sound();
    }
}
