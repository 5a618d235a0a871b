//! What is asked of a plan, place by place, and what stays as it is in the end.

use piton_engine::model::except::ExceptHunk;
use piton_engine::model::text::{Hunk, Side};
use piton_engine::model::{Except, WorkspacePath};
use piton_engine::view::{EntryView, FileDiff};

/// What somebody says of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
    /// No to this and to everything that follows.
    Quit,
    AllOfFile,
    NoneOfFile,
    /// Ask about its parts.
    Split,
}

/// One thing that is asked about.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file it is of, or both ends of a file that is moved.
    pub subject: usize,
    /// None for a file that is taken or left as a whole.
    pub hunk: Option<Hunk>,
    is_wanted: Option<bool>,
}

/// All that is asked.
pub struct Questions<'a> {
    files: &'a [FileDiff],
    /// The numbers of the files of each.
    subjects: Vec<Vec<usize>>,
    places: Vec<Place>,
    at: usize,
}

impl<'a> Questions<'a> {
    pub fn new(files: &'a [FileDiff], moves: &[(WorkspacePath, WorkspacePath)]) -> Self {
        let mut questions = Self { files, subjects: Vec::new(), places: Vec::new(), at: 0 };
        let paths: Vec<_> = files.iter().map(|file| file.change.path.exact()).collect();
        let number = |path: &WorkspacePath| paths.iter().position(|one| one.as_ref() == Some(path));
        let ends: Vec<[usize; 2]> = moves.iter().filter_map(|(from, to)| Some([number(from)?, number(to)?])).collect();
        let mut is_asked = vec![false; files.len()];
        for at in 0..files.len() {
            // What lies in a folder is asked about, and the folder follows.
            if is_asked[at] || questions.beneath(at).next().is_some() {
                continue;
            }
            let of_move = ends.iter().find(|ends| ends.contains(&at) && ends.iter().all(|end| !is_asked[*end]));
            let of = of_move.map_or_else(|| vec![at], |ends| ends.to_vec());
            of.iter().for_each(|number| is_asked[*number] = true);
            let subject = questions.subjects.len();
            let place = |hunk| Place { subject, hunk, is_wanted: None };
            match hunks(&files[at]).filter(|_| of.len() == 1) {
                Some(hunks) => questions.places.extend(hunks.iter().map(|hunk| place(Some(hunk.clone())))),
                None => questions.places.push(place(None)),
            }
            questions.subjects.push(of);
        }
        questions
    }

    pub fn current(&self) -> Option<&Place> {
        self.places.get(self.at)
    }

    /// The number of this question, from 1, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.at + 1, self.places.len())
    }

    pub fn files_of(&self, place: &Place) -> Vec<&'a FileDiff> {
        self.subjects[place.subject].iter().map(|number| &self.files[*number]).collect()
    }

    /// Whether there are several differences in this place.
    pub fn can_split(&self) -> bool {
        self.current().and_then(|place| place.hunk.as_ref()).is_some_and(|hunk| parts(hunk).len() > 1)
    }

    pub fn answer(&mut self, answer: Answer) {
        let Some(place) = self.places.get(self.at) else { return };
        let subject = place.subject;
        if answer == Answer::Split {
            let parts = place.hunk.as_ref().map(parts).unwrap_or_default();
            if parts.len() > 1 {
                let parts = parts.into_iter().map(|hunk| Place { subject, hunk: Some(hunk), is_wanted: None });
                self.places.splice(self.at..=self.at, parts);
            }
            return;
        }
        let is_wanted = matches!(answer, Answer::Yes | Answer::AllOfFile);
        let is_answered = |number: usize, place: &Place| match answer {
            Answer::Yes | Answer::No | Answer::Split => number == 0,
            Answer::AllOfFile | Answer::NoneOfFile => place.subject == subject,
            Answer::Quit => true,
        };
        // The places of a file follow each other.
        let rest = self.places[self.at..].iter_mut().enumerate();
        let answered = rest.take_while(|(number, place)| is_answered(*number, place));
        self.at += answered.map(|(_, place)| place.is_wanted = Some(is_wanted)).count();
    }

    /// What stays as it is. A place without an answer does.
    pub fn except(&self) -> Except {
        let mut except = Except::default();
        let wants = |place: &Place| place.is_wanted == Some(true);
        let mut stays = vec![false; self.files.len()];
        for (subject, files) in self.subjects.iter().enumerate() {
            let (wanted, left): (Vec<_>, Vec<_>) =
                self.places.iter().filter(|place| place.subject == subject).partition(|place| wants(place));
            match (wanted.is_empty(), left.is_empty()) {
                (true, _) => files.iter().for_each(|number| stays[*number] = true),
                (false, true) => {}
                (false, false) => except.hunks.extend(left.iter().filter_map(|place| self.left_out(place))),
            }
        }
        for at in 0..self.files.len() {
            let mut beneath = self.beneath(at).peekable();
            if beneath.peek().is_some() {
                stays[at] = beneath.all(|number| stays[number]);
            }
        }
        let paths = self.files.iter().zip(stays).filter(|(_, stays)| *stays);
        except.paths = paths.filter_map(|(file, _)| file.change.path.exact()).collect();
        except
    }

    fn left_out(&self, place: &Place) -> Option<ExceptHunk> {
        let file = self.files_of(place).into_iter().next()?;
        let (Some(EntryView::File { hash: now, .. }), Some(EntryView::File { hash: then, .. })) =
            (&file.change.before, &file.change.after)
        else {
            return None;
        };
        let at = place.hunk.as_ref()?.into();
        Some(ExceptHunk { path: file.change.path.exact()?, now: *now, then: *then, at })
    }

    /// What lies in a folder, of all that changes.
    fn beneath(&self, folder: usize) -> impl Iterator<Item = usize> {
        let path = self.files[folder].change.path.exact();
        let is_within = move |other: &FileDiff| {
            path.as_ref().zip(other.change.path.exact()).is_some_and(|(path, other)| other.is_within(path))
        };
        (0..self.files.len()).filter(move |number| *number != folder && is_within(&self.files[*number]))
    }
}

/// The places of a file that can be chosen one by one.
fn hunks(file: &FileDiff) -> Option<&[Hunk]> {
    let is_file = |entry: &Option<EntryView>| matches!(entry, Some(EntryView::File { .. }));
    let is_changed = is_file(&file.change.before) && is_file(&file.change.after);
    (is_changed && !file.binary && !file.unavailable && !file.hunks.is_empty()).then_some(&file.hunks)
}

/// A hunk as one for each of its differences, with the equal lines up to the next ones.
fn parts(hunk: &Hunk) -> Vec<Hunk> {
    // Where lines go from equal to different.
    let is_equal = |number: usize| hunk.lines.get(number).is_none_or(|line| line.side == Side::Context);
    let begins = |number: &usize| !is_equal(*number) && (*number == 0 || is_equal(number - 1));
    let ends = |number: &usize| !is_equal(*number) && is_equal(number + 1);
    let begins: Vec<usize> = (0..hunk.lines.len()).filter(begins).collect();
    let ends: Vec<usize> = (0..hunk.lines.len()).filter(ends).map(|number| number + 1).collect();
    let last = begins.len().saturating_sub(1);
    (0..begins.len())
        .map(|number| {
            let from = if number == 0 { 0 } else { ends[number - 1] };
            let to = if number == last { hunk.lines.len() } else { begins[number + 1] };
            let count = |lines: std::ops::Range<usize>, side: Side| {
                hunk.lines[lines].iter().filter(|line| line.side == Side::Context || line.side == side).count() as u32
            };
            // A header names the line before where a side has none.
            let start = |first: u32, all: u32, side: Side| {
                let lines = count(from..to, side);
                let next = first + u32::from(all == 0) + count(0..from, side);
                (next - u32::from(lines == 0), lines)
            };
            let (old_start, old_lines) = start(hunk.old_start, hunk.old_lines, Side::Removed);
            let (new_start, new_lines) = start(hunk.new_start, hunk.new_lines, Side::Added);
            Hunk { old_start, old_lines, new_start, new_lines, lines: hunk.lines[from..to].to_vec() }
        })
        .collect()
}

#[cfg(test)]
mod tests;
