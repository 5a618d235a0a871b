//! Random sessions of two agents and a user, against a model that knows only who wrote each line.
//!
//! Every line is written once and says by whom, so whatever is done to files, moved, copied or deleted, the folder itself tells
//! what is left of whom. The model knows nothing of merging, of moves or of piton:
//!
//! - no line of the user's leaves the folder by an operation that takes back others' work, unless a decided conflict named its file;
//! - what is taken back without a conflict leaves no line of it behind, but for what somebody else carried elsewhere;
//! - a conflict over lines that were carried is about lines that stood in the file that it names;
//! - a preview tells what the act does, path by path, and an act that is refused changes nothing;
//! - every success redoes byte for byte.
//!
//! `PITON_LINES_SECONDS=3600` runs it for an hour, `PITON_LINES_SEED=17` one session alone.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::model::{Owner, WorkspacePath};
use piton_engine::view::{ChangedFile, OperationOutcome, PathView, PlanView};
use piton_engine::{
    Carry, Choice, ChosenError, OperationError, Plan, RedoOptions, RewindOptions, Settle, UndoOptions, Which,
};

use piton_testkit::{Agent, Dice, Snapshot, World};

const SESSIONS: [&str; 2] = ["one", "two"];
/// Names that get in each other's way.
const PATHS: [&str; 9] = ["a", "b", "c", "d/a", "d/b", "e/a", "e/b/c", "d/e", "e/b"];

/// What lines end with that were there before anybody came: they are as much the user's.
const FIRST: &str = "stood here first";
/// Lines that stand everywhere and are nobody's.
const COMMON: [&str; 5] = ["}\n", "\n", "return 0\n", "    else\n", "fi\n"];

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Agent(usize),
    User,
}

impl Who {
    fn number(self) -> usize {
        match self {
            Self::Agent(n) => n,
            Self::User => 2,
        }
    }
}

struct Play<'w> {
    world: &'w World,
    dice: Dice,
    serial: u32,
    /// The turns of each agent.
    turns: [u32; 2],
    /// Whose turns were taken back, in part or as a whole.
    undone: [bool; 2],
    /// Lines that an agent copied: the copy goes with its turn.
    copied: BTreeSet<String>,
    /// Lines that the user deleted in some file: where a copy is all that is left, it may go.
    dropped: BTreeSet<String>,
    /// Who carried a line from one file to another, or copied it: the user, or a turn of an agent.
    carriers: BTreeMap<String, BTreeSet<Option<(usize, u32)>>>,
    /// Lines that were cut, from where, and that whoever cut them pastes later. Not where they were: who takes that back
    /// alone gets the file without them, as it was.
    clipboards: [(String, Vec<String>); 3],
    /// The files that each line ever stood in.
    stood: BTreeMap<String, BTreeSet<String>>,
    /// The files as the last capture found them, each by where it is now.
    captured: BTreeMap<String, Vec<String>>,
    /// Whether a conflict was decided, so that a file may have lines of what was taken back.
    is_marked: bool,
    told: Vec<String>,
}

impl Play<'_> {
    /// A line that nobody wrote yet: `user 12`, `one/t3 13`.
    fn line(&mut self, who: Who) -> String {
        self.serial += 1;
        match who {
            Who::User => format!("user {} is the author\n", self.serial),
            Who::Agent(n) => format!("{}/t{} {} is the author\n", SESSIONS[n], self.turns[n], self.serial),
        }
    }

    /// Lines that nobody wrote yet, mostly.
    fn new_lines(&mut self, who: Who, count: u64) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..count {
            lines.push(self.line(who));
            if self.dice.below(6) == 0 {
                lines.push((*self.dice.one_of(&COMMON)).to_owned());
            }
        }
        lines
    }

    fn read(&self, path: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.world.path(path)).unwrap();
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    /// Notes that lines now stand in another file, too, by somebody's hand.
    fn carried(&mut self, who: Who, lines: &[String]) {
        let hand = match who {
            Who::User => None,
            Who::Agent(n) => Some((n, self.turns[n])),
        };
        for line in lines {
            self.carriers.entry(line.trim_end().to_owned()).or_default().insert(hand);
        }
    }

    fn copied(&mut self, who: Who, lines: &[String]) {
        self.carried(who, lines);
        self.copied.extend(lines.iter().filter(|_| who != Who::User).map(|line| line.trim_end().to_owned()));
    }

    /// How often each line stands anywhere.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.files().iter().flat_map(|path| self.read(path)) {
            *counts.entry(line.trim_end().to_owned()).or_default() += 1;
        }
        counts
    }

    /// Notes which lines stand where, after every act.
    fn look(&mut self) {
        for path in self.files() {
            for line in self.read(&path) {
                self.stood.entry(line.trim_end().to_owned()).or_default().insert(path.clone());
            }
        }
    }

    /// Another file, or a path where one can be made.
    fn other(&mut self, path: &str, files: &[String]) -> Option<String> {
        let others: Vec<&String> = files.iter().filter(|other| *other != path).collect();
        if self.dice.below(2) == 0 || others.is_empty() {
            return self.free();
        }
        Some((*self.dice.one_of(&others)).clone())
    }

    fn append(&self, path: &str, lines: &[String]) {
        self.make_way(path);
        let mut text = if self.world.has(path) { self.read(path).concat() } else { String::new() };
        text.push_str(&lines.concat());
        self.world.write(path, text);
    }

    /// Somebody cuts or copies some lines of a file, and puts them into another one, at once or later.
    fn carry(&mut self, who: Who, path: &str, files: &[String]) -> Option<String> {
        let number = who.number();
        let (from, clipboard) = std::mem::take(&mut self.clipboards[number]);
        if !clipboard.is_empty() {
            let to = self.other(&from, files).filter(|to| *to != from)?;
            self.append(&to, &clipboard);
            // Where the cut was taken back since, this is a copy.
            self.copied(who, &clipboard);
            return Some(format!("pastes {} lines into {to}", clipboard.len()));
        }
        let mut lines = self.read(path);
        let at = self.dice.below(lines.len() as u64 + 1) as usize;
        let end = (at + 1 + self.dice.below(4) as usize).min(lines.len());
        let run: Vec<String> = lines.get(at..end)?.to_vec();
        if run.is_empty() {
            return None;
        }
        match self.dice.below(5) {
            0 => {
                lines.drain(at..end);
                self.world.write(path, lines.concat());
                self.clipboards[number] = (path.to_owned(), run);
                Some(format!("cuts {path} {at}..{end}"))
            }
            1 => {
                let to = self.other(path, files)?;
                self.append(&to, &run);
                self.copied(who, &run);
                Some(format!("copies lines of {path} {at}..{end} into {to}"))
            }
            2 => {
                let to = self.other(path, files)?;
                // Of two files that become one, either may be the one that is followed.
                let had = if self.world.has(&to) { self.read(&to) } else { Vec::new() };
                let both: Vec<String> = had.into_iter().chain(lines.iter().cloned()).collect();
                self.append(&to, &lines);
                self.world.remove(path);
                self.carried(who, &both);
                Some(format!("merges {path} into {to}"))
            }
            _ => {
                let to = self.other(path, files)?;
                lines.drain(at..end);
                self.world.write(path, lines.concat());
                self.append(&to, &run);
                self.carried(who, &run);
                Some(format!("splits {path} {at}..{end} into {to}"))
            }
        }
    }

    /// Notes a move: a file that is hardly like what was captured of it is another one at its new place, and so may be one that
    /// has a twin.
    fn moved(&mut self, who: Who, from: &str, to: &str) {
        let Some(was) = self.captured.remove(from) else { return };
        let is = self.read(to);
        let alike = |other: &[String], tenths: usize| {
            let common = is.iter().filter(|line| other.contains(line)).count();
            10 * 2 * common >= tenths * (other.len() + is.len())
        };
        // Of files that are alike, either may have been moved.
        if !alike(&was, 6) || self.captured.values().any(|other| alike(other, 5)) {
            self.carried(who, &is);
        }
        self.captured.insert(to.to_owned(), was);
    }

    /// Notes what a capture finds.
    fn captures(&mut self) {
        self.captured = self.files().into_iter().map(|path| (path.clone(), self.read(&path))).collect();
    }

    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(self.world.path(&folder)).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(path),
                    kind if kind.is_file() => found.push(path),
                    _ => {}
                }
            }
        }
        found.sort();
        found
    }

    /// A path where a file can be made.
    fn free(&mut self) -> Option<String> {
        let path = *self.dice.one_of(&PATHS);
        let file = self.world.path(path);
        let in_way = |at: &std::path::Path| at.symlink_metadata().is_ok_and(|found| !found.is_dir());
        let is_free = file.symlink_metadata().is_err()
            && !file.ancestors().skip(1).take_while(|at| *at != self.world.ws()).any(in_way);
        is_free.then(|| path.to_owned())
    }

    fn make_way(&self, path: &str) {
        std::fs::create_dir_all(self.world.path(path).parent().unwrap()).unwrap();
    }

    /// Somebody does something to some file.
    fn act(&mut self, who: Who) {
        let files = self.files();
        let file = if files.is_empty() { None } else { Some(self.dice.one_of(&files).clone()) };
        let had = self.counts();
        // Whoever cut something mostly pastes it soon.
        let has_cut = !self.clipboards[who.number()].1.is_empty();
        let kind = if has_cut && self.dice.below(2) == 0 { 20 } else { self.dice.below(26) };
        let told = match (kind, file) {
            (0..=7, Some(path)) => {
                let text = std::fs::read_to_string(self.world.path(&path)).unwrap();
                let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
                let at = self.dice.below(lines.len() as u64 + 1) as usize;
                let end = (at + self.dice.below(3) as usize).min(lines.len());
                // Others' lines are the user's business, and what an agent deletes of the user's comes back.
                let count = self.dice.below(3);
                let new = self.new_lines(who, count);
                lines.splice(at..end, new);
                self.world.write(&path, lines.concat());
                format!("edits {path} {at}..{end} +{count}")
            }
            (8..=11, Some(path)) => {
                let Some(to) = self.free() else { return };
                self.make_way(&to);
                if std::fs::rename(self.world.path(&path), self.world.path(&to)).is_err() {
                    return;
                }
                let mut edited = "";
                if self.dice.below(4) == 0 {
                    let text = std::fs::read_to_string(self.world.path(&to)).unwrap();
                    let line = self.line(who);
                    self.world.write(&to, text + &line);
                    edited = " and edits it";
                }
                self.moved(who, &path, &to);
                format!("moves {path} to {to}{edited}")
            }
            (12, Some(path)) => {
                self.world.remove(&path);
                format!("deletes {path}")
            }
            (13, Some(path)) => {
                let mode = *self.dice.one_of(&[0o644, 0o755, 0o600]);
                std::fs::set_permissions(self.world.path(&path), PermissionsExt::from_mode(mode)).unwrap();
                format!("makes {path} {mode:o}")
            }
            (14, Some(path)) => {
                let Some(to) = self.free() else { return };
                self.make_way(&to);
                std::fs::copy(self.world.path(&path), self.world.path(&to)).unwrap();
                let lines = self.read(&path);
                self.copied(who, &lines);
                format!("copies {path} to {to}")
            }
            (15, _) => {
                let Some(path) = self.free() else { return };
                self.make_way(&path);
                self.world.write(&path, "");
                format!("makes {path} empty")
            }
            (16, _) => {
                let Some(path) = self.free() else { return };
                self.make_way(&path);
                self.world.link(&path, "nowhere");
                format!("links {path}")
            }
            (17, _) => {
                let (from, to) = (*self.dice.one_of(&["d", "e"]), *self.dice.one_of(&["d", "e", "x"]));
                if self.world.path(to).symlink_metadata().is_ok()
                    || std::fs::rename(self.world.path(from), self.world.path(to)).is_err()
                {
                    return;
                }
                format!("moves {from}/ to {to}/")
            }
            (20..=25, Some(path)) => match self.carry(who, &path, &files) {
                Some(told) => told,
                None => return,
            },
            _ => {
                let Some(path) = self.free() else { return };
                self.make_way(&path);
                let count = 3 + self.dice.below(6);
                let text = self.new_lines(who, count).concat();
                self.world.write(&path, text);
                format!("writes {path}")
            }
        };
        let name = match who {
            Who::User => "user".to_owned(),
            Who::Agent(n) => format!("{}/t{}", SESSIONS[n], self.turns[n]),
        };
        self.told.push(format!("{name} {told}"));
        self.look();
        if who == Who::User {
            let has = self.counts();
            let fewer = had.into_iter().filter(|(line, count)| has.get(line).is_none_or(|now| now < count));
            self.dropped.extend(fewer.map(|(line, _)| line));
        }
    }
}

/// The lines of a folder, with the paths that they are at.
fn lines_of(snapshot: &Snapshot, play: &Play<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in play.files() {
        let Some(bytes) = snapshot.bytes(&path) else { continue };
        for line in String::from_utf8_lossy(bytes).lines() {
            lines.entry(line.to_owned()).or_default().insert(path.clone());
        }
    }
    lines
}

fn session(seed: u64) {
    let world = World::new();
    let agents = SESSIONS.map(|session| Agent::new(&world, session));
    let mut play = Play {
        world: &world,
        dice: Dice::of(&[seed]),
        serial: 0,
        turns: [0, 0],
        undone: [false, false],
        copied: BTreeSet::new(),
        dropped: BTreeSet::new(),
        carriers: BTreeMap::new(),
        clipboards: Default::default(),
        stood: BTreeMap::new(),
        captured: BTreeMap::new(),
        is_marked: false,
        told: Vec::new(),
    };
    for path in &PATHS[..4] {
        let text: String = (0..10).map(|n| format!("{path} {n} {FIRST}\n")).collect();
        world.write(path, text);
    }
    if play.dice.below(3) == 0 {
        // Twins.
        world.write("e/a", std::fs::read(world.path("d/a")).unwrap());
    }
    play.look();
    let first = 1 + play.dice.below(6);
    for _ in 0..first {
        part(&mut play, &agents);
    }
    let rounds = 1 + play.dice.below(4);
    let mut done: Vec<(Snapshot, Snapshot)> = Vec::new();
    for _ in 0..rounds {
        let before = world.snapshot();
        if operation(&mut play, &agents) {
            done.push((before, world.snapshot()));
        }
        if play.dice.below(4) == 0 {
            part(&mut play, &agents);
            done.clear();
        }
    }
    for (before, after) in done.iter().rev() {
        assert!(world.snapshot() == *after, "{}", play.story());
        let outcome = world.open().redo_now(&RedoOptions::default());
        let outcome = outcome.unwrap_or_else(|e| panic!("redo: {e}\n{}", play.story()));
        assert!(outcome.verified, "redo: {outcome:?}\n{}", play.story());
        let now = world.snapshot();
        assert!(
            now == *before,
            "is | should be after a redo:\n{}\n{}",
            now.differences(before).join("\n"),
            play.story()
        );
        play.told.push("redo".to_owned());
    }
    world.assert_sound();
}

impl Play<'_> {
    fn story(&self) -> String {
        self.told.join("\n")
    }
}

/// A turn of an agent, or some work of the user's.
fn part(play: &mut Play<'_>, agents: &[Agent<'_>; 2]) {
    let who = match play.dice.below(5) {
        0 | 1 => Who::User,
        2 | 3 => Who::Agent(0),
        _ => Who::Agent(1),
    };
    let acts = 1 + play.dice.below(3);
    let Who::Agent(n) = who else {
        (0..acts).for_each(|_| play.act(Who::User));
        return;
    };
    let agent = &agents[n];
    agent.prompt("go");
    play.captures();
    play.turns[n] += 1;
    let steps = 1 + play.dice.below(2);
    for _ in 0..steps {
        // It names all that there is, so that all it does is surely its own.
        let names = ["a", "b", "c", "d", "e", "x"];
        let named: &[&str] = if play.dice.below(4) == 0 { &[] } else { &names };
        agent.step(if named.is_empty() { "Bash" } else { "Edit" }, named, |_| {
            (0..acts).for_each(|_| play.act(who));
        });
        play.captures();
    }
    agent.end_turn();
}

/// What is asked for.
enum Asked {
    Undo(UndoOptions),
    Rewind(String, RewindOptions),
}

impl Asked {
    fn settle(&mut self, settle: Settle) {
        match self {
            Self::Undo(options) => options.settle = settle,
            Self::Rewind(_, options) => options.settle = settle,
        }
    }

    fn plan(&self, world: &World) -> Result<Plan, OperationError> {
        match self {
            Self::Undo(options) => world.open().plan_undo(options),
            Self::Rewind(target, options) => world.open().plan_rewind(target, options),
        }
    }

    fn act(&self, world: &World) -> Result<OperationOutcome, OperationError> {
        match self {
            Self::Undo(options) => world.open().undo_now(options),
            Self::Rewind(target, options) => world.open().rewind_now(target, options),
        }
    }
}

/// Turns of an agent: whose, from which to which.
type Turns = (usize, u32, u32);

/// Something to ask for, and which turns are taken back by that.
fn asked(play: &mut Play<'_>, agents: &[Agent<'_>; 2]) -> Option<(Asked, String, Option<Turns>)> {
    let n = play.dice.below(2) as usize;
    let turns = play.turns[n];
    if turns == 0 {
        return None;
    }
    let session = Some(agents[n].id().to_string());
    let turn = 1 + play.dice.below(u64::from(turns)) as u32;
    let of = |what: Option<Which>| {
        let choice = Choice { what, session: session.clone(), ..Choice::default() };
        UndoOptions { choice, ..UndoOptions::default() }
    };
    let name = SESSIONS[n];
    // A rewind makes good again what was taken back of its own session since the target, and with that goes what of the user's
    // had come back; without `--only-session` it does so of others, too.
    let of_rewind = if play.undone[n] { 0 } else { 1 };
    let is_undone = play.undone[1 - n];
    let kind = play.dice.below(6 + of_rewind);
    play.undone[n] = true;
    Some(match kind {
        0 | 1 => (Asked::Undo(of(Some(Which::All))), format!("undo all of {name}"), Some((n, 1, turns))),
        2 | 3 => {
            let what = Which::Places(vec![(turn, None)]);
            (Asked::Undo(of(Some(what))), format!("undo {name}:t{turn}"), Some((n, turn, turn)))
        }
        4 => {
            let path = *play.dice.one_of(&["d", "e", "a", "b", "e/b"]);
            let mut options = of(Some(Which::All));
            options.choice.paths = vec![WorkspacePath::new(path).unwrap()];
            (Asked::Undo(options), format!("undo all of {name} --path {path}"), None)
        }
        5 => {
            let count = 1 + play.dice.below(3) as usize;
            (Asked::Undo(of(Some(Which::Last(count)))), format!("undo last {count} of {name}"), None)
        }
        _ => {
            let only_session = is_undone || play.dice.below(2) == 0;
            let options = RewindOptions {
                carry: if only_session { Carry::Others } else { Carry::Mine },
                ..RewindOptions::default()
            };
            let target = format!("{}:t{turn}", agents[n].id());
            let told =
                format!("rewind {name}:t{turn} --keep-mine{}", if only_session { " --only-session" } else { "" });
            let taken = only_session.then_some((n, turn, turns));
            (Asked::Rewind(target, options), told, taken)
        }
    })
}

/// Asks for something and checks what comes of it; whether anything was done.
fn operation(play: &mut Play<'_>, agents: &[Agent<'_>; 2]) -> bool {
    let Some((mut asked, told, taken)) = asked(play, agents) else { return false };
    let settles = [
        Settle::default(),
        Settle { conflicts: None, partial: true, ..Settle::default() },
        Settle { conflicts: Some(Decision::Ours), partial: false, ..Settle::default() },
        Settle { conflicts: Some(Decision::Theirs), partial: false, ..Settle::default() },
        Settle { conflicts: Some(Decision::Markers), partial: true, ..Settle::default() },
    ];
    let settle = play.dice.one_of(&settles).clone();
    asked.settle(settle.clone());
    play.told.push(format!("{told} {settle:?}"));
    let world = play.world;
    let before = world.snapshot();
    let had = lines_of(&before, play);
    let plan = match asked.plan(world) {
        Ok(plan) => plan.view().clone(),
        Err(OperationError::Chosen(ChosenError::Nothing { .. }) | OperationError::Target(_)) => return false,
        Err(error) => panic!("plan: {error}\n{}", play.story()),
    };
    assert!(world.snapshot() == before, "a plan changed something\n{}", play.story());
    check_claims(&plan, &had, play);
    let outcome = match asked.act(world) {
        Ok(outcome) => outcome,
        Err(OperationError::Conflict(_)) => {
            let is_open = plan.conflicts.iter().any(|conflict| !conflict.decided);
            assert!(is_open && !settle.partial, "refused, and not so in the preview: {plan:?}\n{}", play.story());
            assert!(world.snapshot() == before, "refused, and changed something\n{}", play.story());
            return false;
        }
        Err(error) => panic!("{error}\n{}", play.story()),
    };
    assert!(outcome.verified, "{outcome:?}\n{}", play.story());
    play.captures();
    let after = world.snapshot();
    check_preview(&plan, &outcome, &before, &after, play);
    let has = lines_of(&after, play);
    let named: BTreeSet<WorkspacePath> = plan
        .conflicts
        .iter()
        .filter(|conflict| conflict.decided && settle.conflicts != Some(Decision::Markers))
        .flat_map(|conflict| conflict.others.iter().chain([&conflict.path]))
        .filter_map(PathView::exact)
        .collect();
    let is_named = |path: &String| {
        let path = WorkspacePath::new(path.as_bytes()).unwrap();
        named.iter().any(|one| path.is_within(one))
    };
    let lost: Vec<_> = had
        .iter()
        .filter(|(line, _)| (line.starts_with("user ") || line.ends_with(FIRST)) && !has.contains_key(*line))
        .filter(|(line, _)| !(play.copied.contains(*line) && play.dropped.contains(*line)))
        .filter(|(_, paths)| !paths.iter().all(is_named))
        .collect();
    assert!(lost.is_empty(), "lines of the user's that are gone: {lost:?}\n{outcome:?}\n{}", play.story());
    // With `ours`, lines stay that count as taken back from then on; with `theirs`, a file comes back as somebody deleted it, with
    // lines that were taken back since.
    play.is_marked |= settle.conflicts.is_some() && !plan.conflicts.is_empty();
    // What may be the user's is carried over by a rewind, and left alone by an undo.
    let is_unsure = |file: &ChangedFile| matches!(file.owner, Owner::Unsure { .. });
    let is_sure = plan.unsure.is_empty() && !plan.carried.iter().any(is_unsure);
    let is_whole = !play.is_marked && plan.conflicts.is_empty() && is_sure && plan.not_done.is_empty();
    if let (Some((n, from, to)), true) = (taken, is_whole) {
        let is_of = |line: &&String| {
            let turn = line
                .strip_prefix(SESSIONS[n])
                .and_then(|rest| rest.strip_prefix("/t"))
                .and_then(|rest| rest.split_once(' ').and_then(|(turn, _)| turn.parse::<u32>().ok()));
            turn.is_some_and(|turn| (from..=to).contains(&turn))
        };
        // What somebody else put there, or another turn, is theirs.
        let by_others = |line: &&String| {
            let is_taken = |hand: &Option<(usize, u32)>| {
                hand.is_some_and(|(agent, turn)| agent == n && (from..=to).contains(&turn))
            };
            play.carriers.get(*line).is_some_and(|hands| !hands.iter().all(is_taken))
        };
        let left = has.keys().filter(is_of).filter(|line| had.contains_key(*line) && !by_others(line));
        let left: Vec<_> = left.collect();
        assert!(left.is_empty(), "lines that were to go: {left:?}\n{outcome:?}\n{}", play.story());
    }
    outcome.operation.is_some()
}

/// Of lines that are said to come from another file, some stood there.
fn check_claims(plan: &PlanView, had: &BTreeMap<String, BTreeSet<String>>, play: &Play<'_>) {
    for conflict in plan.conflicts.iter().filter(|conflict| conflict.why == Why::Lines) {
        let is_so = had.iter().any(|(line, paths)| {
            let is_common = COMMON.iter().any(|common| common.trim_end() == line);
            let stood = |other: &PathView| play.stood.get(line).is_some_and(|stood| stood.contains(&other.path));
            !is_common && paths.contains(&conflict.path.path) && conflict.others.iter().any(stood)
        });
        assert!(is_so, "a conflict that is none: {conflict:?}\n{}", play.story());
    }
}

/// A preview names just the paths that change.
fn check_preview(plan: &PlanView, outcome: &OperationOutcome, before: &Snapshot, after: &Snapshot, play: &Play<'_>) {
    let story = || play.story();
    let lists =
        |lists: [&Vec<PathView>; 3]| lists.map(|list| list.iter().map(|p| p.path.clone()).collect::<BTreeSet<_>>());
    let planned = lists([&plan.created, &plan.restored, &plan.deleted]);
    let acted = lists([&outcome.created, &outcome.restored, &outcome.deleted]);
    assert_eq!(planned, acted, "a preview and its act\n{}", story());
    // A folder comes and goes with what it holds.
    let is_of = |known: &String, path: &str| known == path || known.starts_with(&format!("{path}/"));
    let is_known = |path: &str| planned.iter().flatten().any(|known| is_of(known, path));
    for path in PATHS {
        let same = before.bytes(path) == after.bytes(path) && before.has(path) == after.has(path);
        assert!(same || is_known(path), "{path} changed and is not in the preview: {planned:?}\n{}", story());
    }
}

#[test]
fn no_line_of_the_user_is_lost_and_none_of_what_is_taken_back_stays() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("PITON_LINES_SEED") {
        session(seed);
        return;
    }
    // Without being asked for more, a minute of always the same ones.
    let asked = number("PITON_LINES_SECONDS");
    let share = Duration::from_secs(asked.unwrap_or(60));
    let most = if asked.is_some() { u64::MAX } else { 900 };
    let first = number("PITON_LINES_FIRST").unwrap_or(1);
    let began = Instant::now();
    let mut seed = first;
    while began.elapsed() < share && seed - first < most {
        let ended = std::panic::catch_unwind(|| session(seed));
        assert!(ended.is_ok(), "PITON_LINES_SEED={seed} runs it alone");
        seed += 1;
    }
    println!("whose lines: {} sessions", seed - first);
}
