//! The table of README.md, from the figures of a run.

use std::fmt::Write;

use serde_json::Value;

use crate::report::{Unit, median, show};

/// The trees that have a column.
const TREES: [&str; 2] = ["12k", "100k"];

/// The rows of the table, by their names in the figures.
const ROWS: [(&str, &str); 7] = [
    ("first capture", "first capture"),
    ("nothing changed", "capture, nothing changed"),
    ("after 10 edits", "capture after 10 edits"),
    ("diff of 10 edits", "diff of 10 edits"),
    ("restore of 10 files", "restore of 10 files"),
    ("restore of 1,400 files", "restore of 1,400 files"),
    ("disk after 50 turns", "disk after 50 turns of 10 edits"),
];

/// The table of one run, or of the medians of several, and how the figures were made.
pub fn table(runs: &[Value]) -> String {
    let mut out = String::from("| | 12,000 files | ratio | 100,000 files | ratio |\n|---|---|---|---|---|\n");
    for (name, shown) in ROWS {
        let _ = write!(out, "| {shown} |");
        for tree in TREES {
            let rows: Vec<&Value> = runs.iter().filter_map(|run| row(run, tree, name)).collect();
            let over = |figure: fn(&Value) -> &Value| {
                let samples: Vec<f64> = rows.iter().filter_map(|row| figure(row).as_f64()).collect();
                median(&samples)
            };
            match (over(|row| &row["figures"][0]["median"]), over(|row| &row["ratio"])) {
                (Some(figure), Some(ratio)) => {
                    let is_size = rows.iter().any(|row| row["unit"] == "MB");
                    // A share of a size tells less with one digit than a factor of a time.
                    let (unit, digits) = if is_size { (Unit::Megabytes, 2) } else { (Unit::Millis, 1) };
                    let _ = write!(out, " {} | {ratio:.digits$}x |", show(figure, unit));
                }
                _ => out.push_str(" - | - |"),
            }
        }
        out.push('\n');
    }
    out.push('\n');
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for run in runs {
        let (machine, made) = (&run["machine"], &run["made"]);
        let how = [&made["piton"], &made["day"], &machine["filesystem"], &machine["git"], &machine["kernel"]].map(text);
        let _ = writeln!(out, "{}, {} cores", how.join(", "), machine["cores"]);
    }
    out
}

fn row<'f>(figures: &'f Value, tree: &str, name: &str) -> Option<&'f Value> {
    let tree = figures["trees"].as_array()?.iter().find(|one| one["tree"] == tree)?;
    tree["rows"].as_array()?.iter().find(|one| one["row"] == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_the_medians_of_all_runs() {
        let run = |figure: f64, ratio: f64| {
            json!({
                "machine": { "cores": 2, "kernel": "Linux 6", "filesystem": "ext4", "git": "git version 2" },
                "made": { "piton": "piton 0.1.0", "day": "2026-01-02" },
                "trees": [{ "tree": "12k", "rows": [
                    { "row": "first capture", "unit": "ms", "ratio": ratio, "figures": [{ "median": figure }] },
                    { "row": "disk after 50 turns", "unit": "MB", "ratio": 0.493, "figures": [{ "median": 42.61 }] },
                ] }],
            })
        };
        let table = table(&[run(584.0, 8.2), run(600.0, 7.0), run(1590.4, 9.0)]);
        assert!(table.contains("| first capture | 600 ms | 8.2x | - | - |"), "{table}");
        assert!(table.contains("| disk after 50 turns of 10 edits | 42.6 MB | 0.49x | - | - |"), "{table}");
        assert!(table.contains("piton 0.1.0, 2026-01-02, ext4, git version 2, Linux 6, 2 cores"), "{table}");
    }
}
