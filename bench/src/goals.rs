//! Piton's targets, row by row.
//!
//! The only module that knows them; the measuring knows no targets and the report knows no rows.

use crate::disk::{Disk, megabytes};
use crate::report::{Figure, Goal, Row, Unit, thousands};
use crate::rounds::{Bench, Samples};

/// The rows of a tree, in table order. `aimed`: whether the targets apply to this tree.
pub fn rows(bench: &Bench, aimed: bool) -> Vec<Row> {
    let labels = bench.labels();
    let row = |name: &str, unit: Unit, samples: &Samples, goal: Goal, seeds_limit: Option<f64>| Row {
        name: name.to_owned(),
        unit,
        figures: labels.iter().zip(samples).map(|(label, samples)| Figure::new(label, samples.clone())).collect(),
        goal: if aimed { goal } else { Goal::None },
        seeds_limit,
    };
    let time =
        |name: &str, samples: &Samples, goal: Goal, limit: Option<f64>| row(name, Unit::Millis, samples, goal, limit);
    let size = |name: &str, disks: &[Option<Disk>], of: fn(&Disk) -> u64, goal: Goal| {
        let figure = |disk: &Option<Disk>| disk.iter().map(|disk| megabytes(of(disk))).collect();
        row(name, Unit::Megabytes, &disks.iter().map(figure).collect(), goal, None)
    };

    let measured = bench.measured();
    let churn = bench.churn();
    let turns = measured.ten_edits[0].len();
    let many = thousands(&(churn.changed + churn.created + churn.deleted).to_string());
    let disk: Vec<Option<Disk>> = measured.disk.iter().copied().map(Some).collect();
    // Piton needs no explicit housekeeping: its figure is the one above.
    let kept: Vec<Option<Disk>> = disk.iter().take(1).chain(measured.kept.iter().skip(1)).copied().collect();
    vec![
        time("first capture", &measured.first_capture, Goal::TimesFaster(6.0), None),
        time("nothing changed", &measured.nothing_changed, Goal::TimesFaster(2.0), None),
        time("after 10 edits", &measured.ten_edits, Goal::TimesFaster(2.5), Some(100.0)),
        time("diff of 10 edits", &measured.diff, Goal::None, None),
        time("restore of 10 files", &measured.restore_ten, Goal::TimesFaster(2.5), Some(2_000.0)),
        time(&format!("restore of {many} files"), &measured.restore_many, Goal::TimesFaster(1.0), None),
        size(&format!("disk after {turns} turns"), &disk, |disk| disk.allocated, Goal::ShareOfGit(0.55)),
        size("  the same, apparent size", &disk, |disk| disk.apparent, Goal::None),
        size("  the same, git after gc", &kept, |disk| disk.allocated, Goal::None),
    ]
}
