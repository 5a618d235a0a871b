//! Turns figures into a table, a list of targets and a JSON file.
//!
//! Never measures, never decides what is measured. A missed target is a line in the report, not a failure.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::Result;
use crate::machine::Machine;

const LEGEND: &str = "
Times are medians, spawn to exit; (n): of n rounds only.
Ratio: of times, the faster git's / piton's; of sizes, piton's / the smaller git's.
Of 1,400 files 1,000 were changed, 200 created and 200 deleted; in the 1k tree half of each.
piton's restore captures the state before it, syncs, and reads back what it wrote; git's does none of these.
";

/// Less is better for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Millis,
    Megabytes,
}

/// What piton should reach in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The row is informative only.
    None,
    /// Faster than the faster git by this factor.
    TimesFaster(f64),
    /// At most this share of the smaller git.
    ShareOfGit(f64),
    /// At most this much, whatever git does.
    AtMost(f64),
}

/// One contender's measurements in one row.
#[derive(Debug, Clone)]
pub struct Figure {
    pub contender: &'static str,
    /// In the order in which they were taken; empty if the row was not measured for this contender.
    pub samples: Vec<f64>,
    pub median: Option<f64>,
}

impl Figure {
    pub fn new(contender: &'static str, samples: Vec<f64>) -> Self {
        let median = median(&samples);
        Self { contender, samples, median }
    }
}

/// One thing measured for all contenders. The first figure is piton's.
#[derive(Debug, Clone)]
pub struct Row {
    pub name: String,
    pub unit: Unit,
    pub figures: Vec<Figure>,
    pub goal: Goal,
    /// A fixed limit in milliseconds, whatever git does.
    pub seeds_limit: Option<f64>,
}

/// The rows of one tree.
#[derive(Debug, Clone)]
pub struct Section {
    /// Short, as on the command line.
    pub name: String,
    pub title: String,
    pub rows: Vec<Row>,
}

impl Row {
    fn piton(&self) -> f64 {
        self.figures[0].median.expect("piton is measured in every row")
    }

    fn rounds(&self) -> usize {
        self.figures[0].samples.len()
    }

    fn best_git(&self) -> f64 {
        self.figures[1..].iter().filter_map(|figure| figure.median).fold(f64::INFINITY, f64::min)
    }

    /// For times how many times faster piton is; for sizes its share of git's.
    fn ratio(&self) -> f64 {
        match self.unit {
            Unit::Millis => self.best_git() / self.piton(),
            Unit::Megabytes => self.piton() / self.best_git(),
        }
    }

    fn reached(&self) -> Option<bool> {
        match self.goal {
            Goal::None => None,
            Goal::TimesFaster(times) => Some(self.ratio() >= times),
            Goal::ShareOfGit(share) => Some(self.ratio() <= share),
            Goal::AtMost(limit) => Some(self.piton() <= limit),
        }
    }

    fn wanted(&self) -> String {
        match self.goal {
            Goal::None => String::new(),
            Goal::TimesFaster(times) => format!(">= {times}x"),
            Goal::ShareOfGit(share) => format!("<= {share}x"),
            Goal::AtMost(limit) => format!("<= {}", show(limit, self.unit)),
        }
    }

    fn found(&self) -> String {
        match self.goal {
            Goal::AtMost(_) => show(self.piton(), self.unit),
            _ => show_ratio(self.ratio()),
        }
    }
}

/// The whole report for a person.
pub fn text(machine: &Machine, sections: &[Section]) -> String {
    let mut out = format!("{machine}\n");
    for section in sections {
        let _ = writeln!(out, "\n{}", section.title);
        out.push_str(&table(section));
    }
    out.push_str(LEGEND);

    let mut targets = Vec::new();
    let mut seeds = Vec::new();
    for section in sections {
        for row in &section.rows {
            if let Some(reached) = row.reached() {
                targets.push(verdict(section, row, &row.wanted(), &row.found(), reached));
            }
            if let Some(limit) = row.seeds_limit {
                let (wanted, found) = (format!("< {}", show(limit, row.unit)), show(row.piton(), row.unit));
                seeds.push(verdict(section, row, &wanted, &found, row.piton() < limit));
            }
        }
    }
    for (heading, lines) in [("Targets", targets), ("The seeds' targets", seeds)] {
        if !lines.is_empty() {
            let _ = write!(out, "\n{heading}\n{}", align(&lines, 2));
        }
    }
    out
}

/// The whole report for a program: every sample of every figure, with one row to a line.
pub fn json(machine: &Machine, made: &Value, sections: &[Section]) -> Result<String> {
    let round = |sample: &f64| (sample * 1000.0).round() / 1000.0;
    let row = |row: &Row| {
        json!({
            "row": row.name.trim(),
            "unit": match row.unit { Unit::Millis => "ms", Unit::Megabytes => "MB" },
            "figures": row.figures.iter().map(|figure| json!({
                "contender": figure.contender,
                "median": figure.median.as_ref().map(round),
                "samples": figure.samples.iter().map(round).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "ratio": round(&row.ratio()),
            "target": (row.goal != Goal::None).then(|| row.wanted()),
            "reached": row.reached(),
            "seeds_target_ms": row.seeds_limit,
            "seeds_reached": row.seeds_limit.map(|limit| row.piton() < limit),
        })
    };
    let mut trees = Vec::new();
    for section in sections {
        let rows: Vec<String> = section.rows.iter().map(|one| row(one).to_string()).collect();
        let (name, title) = (json!(section.name), json!(section.title));
        trees.push(format!("{{\"tree\":{name},\"title\":{title},\"rows\":[\n{}\n]}}", rows.join(",\n")));
    }
    let machine = machine.json();
    let all = format!("{{\"machine\":{machine},\n\"made\":{made},\n\"trees\":[\n{}\n]}}\n", trees.join(",\n"));
    // It is put together by hand.
    serde_json::from_str::<Value>(&all)?;
    Ok(all)
}

fn table(section: &Section) -> String {
    let mut header = vec![String::new(), "rounds".to_owned()];
    header.extend(section.rows[0].figures.iter().map(|figure| figure.contender.to_owned()));
    header.extend(["ratio", "target", ""].map(str::to_owned));
    let mut lines = vec![header];
    for row in &section.rows {
        let mut line = vec![row.name.clone(), row.rounds().to_string()];
        line.extend(row.figures.iter().map(|figure| {
            let Some(median) = figure.median else { return "-".to_owned() };
            let shown = show(median, row.unit);
            // A contender with fewer rounds than the row says so.
            match figure.samples.len() {
                same if same == row.rounds() => shown,
                other => format!("({other}) {shown}"),
            }
        }));
        line.extend([show_ratio(row.ratio()), row.wanted(), row.reached().map_or("", word).to_owned()]);
        lines.push(line);
    }
    align(&lines, 1)
}

fn verdict(section: &Section, row: &Row, wanted: &str, found: &str, reached: bool) -> Vec<String> {
    let name = row.name.trim();
    vec![section.name.clone(), name.to_owned(), wanted.to_owned(), found.to_owned(), word(reached).to_owned()]
}

fn word(reached: bool) -> &'static str {
    if reached { "reached" } else { "missed" }
}

/// Columns as wide as their widest cell: the first `left` and the last one left-aligned, the others right-aligned.
fn align(lines: &[Vec<String>], left: usize) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::from(" ");
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            let _ = match column < left || column + 1 == columns {
                true => write!(text, " {cell:<width$} "),
                false => write!(text, " {cell:>width$} "),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

pub fn show(value: f64, unit: Unit) -> String {
    let digits = if value < 100.0 { 1 } else { 0 };
    let plain = format!("{value:.digits$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let suffix = match unit {
        Unit::Millis => "ms",
        Unit::Megabytes => "MB",
    };
    format!("{}{rest} {suffix}", thousands(whole))
}

fn show_ratio(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

/// A number's digits with a comma at every third.
pub fn thousands(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    // With an even number of samples, halfway between the middle two.
    let lower = sorted[(sorted.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: Unit, goal: Goal, piton: f64, gits: [f64; 2]) -> Row {
        Row {
            name: "some row".to_owned(),
            unit,
            figures: vec![
                Figure::new("piton", vec![piton]),
                Figure::new("git a", vec![gits[0]]),
                Figure::new("git b", vec![gits[1]]),
            ],
            goal,
            seeds_limit: None,
        }
    }

    #[test]
    fn the_median_of_an_even_number_of_samples_is_between_the_middle_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 3.0, 5.0]), Some(4.0));
    }

    #[test]
    fn piton_is_compared_with_the_better_git_in_each_row() {
        let time = row(Unit::Millis, Goal::TimesFaster(2.5), 10.0, [90.0, 25.0]);
        assert_eq!((time.ratio(), time.reached()), (2.5, Some(true)));
        let disk = row(Unit::Megabytes, Goal::ShareOfGit(0.55), 60.0, [100.0, 200.0]);
        assert_eq!((disk.ratio(), disk.reached()), (0.6, Some(false)));
    }

    #[test]
    fn a_limit_of_its_own_does_not_ask_git() {
        let growth = row(Unit::Megabytes, Goal::AtMost(8.0), 7.5, [1.0, 1.0]);
        assert_eq!(growth.reached(), Some(true));
    }

    #[test]
    fn a_row_without_a_goal_is_neither_reached_nor_missed() {
        assert_eq!(row(Unit::Millis, Goal::None, 1.0, [1.0, 1.0]).reached(), None);
    }

    #[test]
    fn a_table_lines_up_its_columns() {
        let section = Section {
            name: "12k".to_owned(),
            title: String::new(),
            rows: vec![
                row(Unit::Millis, Goal::TimesFaster(6.0), 812.0, [5102.4, 5310.0]),
                row(Unit::Millis, Goal::None, 9.04, [51.26, 80.0]),
            ],
        };
        let expected = "
            rounds   piton     git a     git b  ratio  target
  some row       1  812 ms  5,102 ms  5,310 ms  6.28x   >= 6x  reached
  some row       1  9.0 ms   51.3 ms   80.0 ms  5.67x
";
        assert_eq!(table(&section), expected[1..]);
    }
}
