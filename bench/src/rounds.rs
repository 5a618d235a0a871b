//! Measures one tree: contenders side by side, alternating, the order rotated round by round.
//!
//! Two rules make the rows comparable. Every contender sees the same sequence of workspace states and makes the same
//! sequence of captures, measured or not; before each measured action the disk is idle and the clock has ticked. And
//! nothing frees many inodes before something else is measured (`attic` says why): a store is never removed before the
//! run ends, and housekeeping, which deletes every loose object, waits until all trees are measured.

use std::path::PathBuf;

use crate::attic::Attic;
use crate::disk::Disk;
use crate::edits::{Churn, Edit, Editor};
use crate::fingerprint::Fingerprint;
use crate::peers::{BenchFolders, Contender, State};
use crate::process::{millis, settle};
use crate::tree::Tree;
use crate::{Result, say};

/// How often each row is measured.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// First captures, each into an empty store.
    pub first: usize,
    /// Turns of ten edits: the samples of that row and the history whose disk use is measured.
    pub turns: usize,
    pub others: usize,
    /// Restores by a contender that rewrites every file: after each, all have to read everything again.
    pub whole_tree_restores: usize,
}

/// For each contender its measurements, in milliseconds, in the order in which they were taken.
pub type Samples = Vec<Vec<f64>>;

/// Everything measured on one tree.
#[derive(Debug, Default)]
pub struct Measured {
    /// A capture into an empty store.
    pub first_capture: Samples,
    /// A capture of an unchanged workspace.
    pub nothing_changed: Samples,
    /// A capture after ten edits.
    pub ten_edits: Samples,
    /// The text of ten edits.
    pub diff: Samples,
    /// Ten edits taken back.
    pub restore_ten: Samples,
    /// A large change taken back.
    pub restore_many: Samples,
    /// The stores after the first capture and all turns.
    pub disk: Vec<Disk>,
    /// The stores after their own housekeeping, if they have any.
    pub kept: Vec<Option<Disk>>,
}

/// The contenders of one tree and the workspace they share. All benches `run` before the first housekeeping.
pub struct Bench {
    name: &'static str,
    contenders: Vec<Box<dyn Contender>>,
    workspace: PathBuf,
    editor: Editor,
    churn: Churn,
    rounds: Rounds,
    measured: Measured,
}

/// What the last turn left, for the diff.
struct LastTurn {
    before: Vec<State>,
    after: Vec<State>,
    edits: Vec<Edit>,
}

impl Bench {
    /// A bench on a tree that has already been written.
    pub fn new(
        name: &'static str,
        contenders: Vec<Box<dyn Contender>>,
        place: &BenchFolders,
        tree: &Tree,
        rounds: Rounds,
    ) -> Self {
        let none = || vec![Vec::new(); contenders.len()];
        let measured = Measured {
            first_capture: none(),
            nothing_changed: none(),
            ten_edits: none(),
            diff: none(),
            restore_ten: none(),
            restore_many: none(),
            ..Measured::default()
        };
        Self {
            name,
            contenders,
            workspace: place.workspace.clone(),
            editor: Editor::new(&place.workspace, tree, Attic::new(place.root.join("attic"))),
            churn: Churn::for_files(tree.files.len()),
            rounds,
            measured,
        }
    }

    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    pub fn churn(&self) -> Churn {
        self.churn
    }

    /// The contenders' names, in the order of all samples.
    pub fn labels(&self) -> Vec<&'static str> {
        self.contenders.iter().map(|contender| contender.label()).collect()
    }

    /// Measures every row but the last.
    pub fn run(&mut self) -> Result<()> {
        self.first_capture()?;
        let last = self.turns()?;
        settle()?;
        self.measured.disk = self.contenders.iter().map(|contender| contender.disk()).collect::<Result<_>>()?;
        self.nothing_changed()?;
        self.diff(&last)?;

        let churn = self.churn;
        self.measured.restore_ten = self.restores("10 files", |editor| editor.edit(10).map(drop))?;
        self.measured.restore_many = self.restores("the large change", |editor| editor.churn(churn))?;
        Ok(())
    }

    /// Measures the last row: the stores after housekeeping. They contain a few more states than when `disk` was
    /// measured, all of the same tree: too little to notice.
    pub fn housekeeping(&mut self) -> Result<()> {
        self.say("git gc");
        self.measured.kept =
            self.contenders.iter_mut().map(|contender| contender.disk_after_housekeeping()).collect::<Result<_>>()?;
        Ok(())
    }

    fn first_capture(&mut self) -> Result<()> {
        self.say("first capture");
        for round in 0..self.rounds.first {
            for index in self.order(round) {
                let contender = &mut self.contenders[index];
                contender.start_anew()?;
                settle()?;
                self.measured.first_capture[index].push(millis(contender.first_capture()?.took));
            }
        }
        Ok(())
    }

    /// The history of an agent's session: the row `after 10 edits`, and the stores whose disk use is measured.
    fn turns(&mut self) -> Result<LastTurn> {
        self.say("turns of 10 edits");
        let after = self.capture_all()?;
        let mut last = LastTurn { before: after.clone(), after, edits: Vec::new() };
        for round in 0..self.rounds.turns {
            last.before.clone_from(&last.after);
            last.edits = self.editor.edit(10)?;
            for index in self.order(round) {
                settle()?;
                let captured = self.contenders[index].capture()?;
                self.measured.ten_edits[index].push(millis(captured.took));
                last.after[index] = captured.value;
            }
        }
        Ok(last)
    }

    fn nothing_changed(&mut self) -> Result<()> {
        self.say("nothing changed");
        self.capture_all()?;
        for round in 0..self.rounds.others {
            for index in self.order(round) {
                settle()?;
                let captured = self.contenders[index].capture()?;
                self.measured.nothing_changed[index].push(millis(captured.took));
            }
        }
        Ok(())
    }

    fn diff(&mut self, last: &LastTurn) -> Result<()> {
        self.say("diff");
        for round in 0..self.rounds.others {
            for index in self.order(round) {
                settle()?;
                let contender = &mut self.contenders[index];
                let diff = contender.diff(&last.before[index], &last.after[index])?;
                check_diff(contender.label(), &diff.value, &last.edits)?;
                self.measured.diff[index].push(millis(diff.took));
            }
        }
        Ok(())
    }

    /// Changes the workspace and lets each contender in turn take the change back.
    fn restores(&mut self, what: &str, change: impl Fn(&mut Editor) -> Result<()>) -> Result<Samples> {
        self.say(&format!("restore of {what}"));
        let states = self.capture_all()?;
        let expected = Fingerprint::of(&self.workspace)?;
        let mut samples = vec![Vec::new(); self.contenders.len()];
        for round in 0..self.rounds.others {
            for index in self.order(round) {
                let rewrites_all = self.contenders[index].rewrites_every_file();
                if rewrites_all && round >= self.rounds.whole_tree_restores {
                    continue;
                }
                change(&mut self.editor)?;
                if rewrites_all {
                    self.editor.keep_all()?;
                }
                settle()?;
                let contender = &mut self.contenders[index];
                samples[index].push(millis(contender.restore(&states[index])?));
                if let Some(difference) = expected.difference(&Fingerprint::of(&self.workspace)?) {
                    let label = contender.label();
                    return Err(format!("{}: {label} did not restore {what}: {difference}", self.name).into());
                }
                // The restored files have new times: everyone reads them once, so that the next contender does not pay
                // for this one's writes.
                self.capture_all()?;
            }
        }
        Ok(samples)
    }

    /// Every contender captures, unmeasured.
    fn capture_all(&mut self) -> Result<Vec<State>> {
        settle()?;
        self.contenders.iter_mut().map(|contender| Ok(contender.capture()?.value)).collect()
    }

    fn order(&self, round: usize) -> Vec<usize> {
        rotated(self.contenders.len(), round)
    }

    fn say(&self, what: &str) {
        say(&format!("{}: {what}", self.name));
    }
}

fn rotated(count: usize, round: usize) -> Vec<usize> {
    (0..count).map(|position| (position + round) % count).collect()
}

/// A list of changed files is less work than their text: a contender that prints only that must not be compared with
/// one that prints both.
fn check_diff(label: &str, diff: &[u8], edits: &[Edit]) -> Result<()> {
    let diff = String::from_utf8_lossy(diff);
    match edits.iter().find(|edit| !diff.contains(&edit.marker)) {
        None => Ok(()),
        Some(edit) => Err(format!(
            "{label}: the diff does not show the new text `{}` of {}; it begins:\n{}",
            edit.marker,
            edit.path.display(),
            diff.chars().take(400).collect::<String>()
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_goes_first_once_in_as_many_rounds() {
        let orders: Vec<_> = (0..3).map(|round| rotated(3, round)).collect();
        assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }

    #[test]
    fn a_diff_that_only_lists_files_is_refused() {
        let edits = [Edit { path: "src/main.rs".into(), marker: "edit_1_cache".to_owned() }];
        assert!(check_diff("piton", b"M src/main.rs", &edits).is_err());
        assert!(check_diff("piton", b"+    let edit_1_cache = 4;", &edits).is_ok());
    }
}
