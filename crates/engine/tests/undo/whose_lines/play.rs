//! What two agents and a user do to files, at random, and what the model notes of it: who wrote and who carried each line.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use piton_testkit::{Agent, Dice, World};

pub const SESSIONS: [&str; 2] = ["one", "two"];
/// Names that get in each other's way.
pub const PATHS: [&str; 9] = ["a", "b", "c", "d/a", "d/b", "e/a", "e/b/c", "d/e", "e/b"];

/// What lines end with that were there before anybody came: they are as much the user's.
pub const FIRST: &str = "stood here first";
/// Lines that stand everywhere and are nobody's.
pub const COMMON: [&str; 5] = ["}\n", "\n", "return 0\n", "    else\n", "fi\n"];

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
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

/// Lines, with who carried each from one file to another or copied it.
type Carriers = BTreeMap<String, BTreeSet<Option<(usize, u32)>>>;

/// What everybody did so far.
pub struct Play<'w> {
    pub world: &'w World,
    pub dice: Dice,
    serial: u32,
    /// The turns of each agent.
    pub turns: [u32; 2],
    /// Lines that an agent copied, or an operation brought to where they had not been: the copy goes with its turn.
    pub copied: BTreeSet<String>,
    /// Lines that the user deleted in some file: where a copy is all that is left, it may go.
    pub dropped: BTreeSet<String>,
    /// Who carried a line from one file to another, or copied it: the user, or a turn of an agent.
    pub carriers: Carriers,
    /// Before each turn of an agent: the lines that stood in the folder, and who had carried lines.
    at_turns: BTreeMap<(usize, u32), (BTreeSet<String>, Carriers)>,
    /// Lines that were cut, from where, and that whoever cut them pastes later. Not where they were: who takes that back
    /// alone gets the file without them, as it was.
    clipboards: [(String, Vec<String>); 3],
    /// The files that each line ever stood in.
    pub stood: BTreeMap<String, BTreeSet<String>>,
    /// The files as the last capture found them, each by where it is now.
    captured: BTreeMap<String, Vec<String>>,
    /// Where an agent moved a file last: the user likes to edit those.
    moved_to: Option<String>,
    /// Whether a conflict was decided, so that a file may have lines of what was taken back.
    pub is_marked: bool,
    pub told: Vec<String>,
}

impl<'w> Play<'w> {
    /// A folder with some files.
    pub fn begin(world: &'w World, seed: u64) -> Self {
        let mut play = Self {
            world,
            dice: Dice::of(&[seed]),
            serial: 0,
            turns: [0, 0],
            copied: BTreeSet::new(),
            dropped: BTreeSet::new(),
            carriers: BTreeMap::new(),
            at_turns: BTreeMap::new(),
            clipboards: Default::default(),
            stood: BTreeMap::new(),
            captured: BTreeMap::new(),
            moved_to: None,
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
        play
    }

    pub fn story(&self) -> String {
        self.told.join("\n")
    }

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
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.files().iter().flat_map(|path| self.read(path)) {
            *counts.entry(line.trim_end().to_owned()).or_default() += 1;
        }
        counts
    }

    /// Notes what an agent finds before its next turn.
    fn begins_turn(&mut self, n: usize) {
        self.turns[n] += 1;
        let stood = self.counts().into_keys().collect();
        self.at_turns.insert((n, self.turns[n]), (stood, self.carriers.clone()));
    }

    /// Lines that stood nowhere before a turn, and that only this turn and later ones of the same agent brought back since: who
    /// goes back to before it as a whole asks for them to go.
    pub fn brought_since(&self, n: usize, turn: u32) -> BTreeSet<String> {
        let Some((stood, had)) = self.at_turns.get(&(n, turn)) else { return BTreeSet::new() };
        let is_brought = |(line, hands): &(&String, &BTreeSet<Option<(usize, u32)>>)| {
            let had = had.get(*line);
            let mut new = hands.iter().filter(|hand| had.is_none_or(|had| !had.contains(hand))).peekable();
            let is_of_turns = |hand: &Option<(usize, u32)>| hand.is_some_and(|(of, at)| of == n && at >= turn);
            !stood.contains(*line) && new.peek().is_some() && new.all(is_of_turns)
        };
        self.carriers.iter().filter(is_brought).map(|(line, _)| line.clone()).collect()
    }

    /// Notes which lines stand where, after every act.
    pub fn look(&mut self) {
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
    pub fn captures(&mut self) {
        self.captured = self.files().into_iter().map(|path| (path.clone(), self.read(&path))).collect();
    }

    pub fn files(&self) -> Vec<String> {
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
                let moved = self.moved_to.clone().filter(|moved| who == Who::User && files.contains(moved));
                let path = moved.filter(|_| self.dice.below(2) == 0).unwrap_or(path);
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
                if who != Who::User {
                    self.moved_to = Some(to.clone());
                }
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

/// A turn of an agent, or some work of the user's.
pub fn part(play: &mut Play<'_>, agents: &[Agent<'_>; 2]) {
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
    play.begins_turn(n);
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
