//! One large file, changed by a few bytes: how much does the store grow?
//!
//! One round and one style of git: git takes half a minute for each of its captures here.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::disk::megabytes;
use crate::fingerprint::Fingerprint;
use crate::peers::{BenchFolders, Contender, Git, Piton, State, Style};
use crate::prng::Prng;
use crate::process::{millis, settle};
use crate::report::{Figure, Goal, Row, Section, Unit, thousands};
use crate::scale::Scale;
use crate::tree::Tree;
use crate::{Result, context, say, text};

/// Length of the large file, in bytes.
const LENGTH: usize = 500_000_000;
/// Text and noise alternate in pieces of this length, as in a file that contains several kinds of data.
const STRIPE: usize = 1_000_000;
/// Number of other files.
const BESIDE: usize = 1_000;

pub fn run(place: &BenchFolders, piton: &Path, style: Style, scale: Scale, seed: u64) -> Result<Section> {
    say("500mb: writing the tree");
    let (length, beside) = (scale.of(LENGTH), scale.of(BESIDE));
    let tree = Tree::plan(seed, beside);
    tree.write(&place.workspace)?;
    let file = place.workspace.join("recording.dat");
    write_large(&file, length, seed)?;
    let mut contenders: Vec<Box<dyn Contender>> =
        vec![Box::new(Piton::new(piton, place)), Box::new(Git::new(style, place))];

    say("500mb: first capture");
    let mut first = Vec::new();
    let mut states: Vec<State> = Vec::new();
    for contender in &mut contenders {
        contender.start_anew()?;
        settle()?;
        let captured = contender.first_capture()?;
        first.push(millis(captured.took));
        states.push(captured.value);
    }
    let before = Fingerprint::of(&place.workspace)?;

    say("500mb: capture after a few bytes changed");
    change(&file)?;
    let mut again = Vec::new();
    let mut growth = Vec::new();
    for contender in &mut contenders {
        settle()?;
        let size = contender.disk()?.allocated;
        again.push(millis(contender.capture()?.took));
        settle()?;
        growth.push(megabytes(contender.disk()?.allocated.saturating_sub(size)));
    }

    // Also proves that the small growth is not a file left out.
    say("500mb: restore");
    let mut restore = Vec::new();
    for (contender, state) in contenders.iter_mut().zip(&states) {
        if !restore.is_empty() {
            change(&file)?;
            contender.capture()?;
        }
        settle()?;
        restore.push(millis(contender.restore(state)?));
        if let Some(difference) = before.difference(&Fingerprint::of(&place.workspace)?) {
            return Err(format!("{} did not restore the large file: {difference}", contender.label()).into());
        }
    }

    let labels: Vec<&'static str> = contenders.iter().map(|contender| contender.label()).collect();
    let row = |name: &str, unit, values: Vec<f64>, goal| Row {
        name: name.to_owned(),
        unit,
        figures: labels.iter().zip(values).map(|(label, value)| Figure::new(label, vec![value])).collect(),
        goal,
        seeds_limit: None,
    };
    Ok(Section {
        name: "500mb".to_owned(),
        title: format!(
            "500mb: {} files and one of {} MB, half text and half noise",
            thousands(&beside.to_string()),
            length / 1_000_000
        ),
        rows: vec![
            row("first capture", Unit::Millis, first, Goal::None),
            row("a few bytes changed", Unit::Millis, again, Goal::None),
            row("  growth of the store", Unit::Megabytes, growth, Goal::AtMost(8.0)),
            row("restore of the file", Unit::Millis, restore, Goal::None),
        ],
    })
}

fn write_large(path: &PathBuf, length: usize, seed: u64) -> Result<()> {
    let mut rng = Prng::new(seed, u64::MAX - 1);
    let mut out = BufWriter::new(fs::File::create(path).map_err(context(path))?);
    for stripe in 0..length / STRIPE {
        let bytes = if stripe % 2 == 0 { text::source(&mut rng, STRIPE) } else { rng.noise(STRIPE) };
        out.write_all(&bytes).map_err(context(path))?;
    }
    out.flush().map_err(context(path))
}

/// Changes three places. The first is an insertion near the front: everything after it shifts by three bytes, so only a
/// store with content-defined chunks finds the rest again.
fn change(path: &PathBuf) -> Result<()> {
    let mut bytes = fs::read(path).map_err(context(path))?;
    let len = bytes.len();
    for start in [len / 2, len - len / 50] {
        for byte in &mut bytes[start..start + 5] {
            *byte ^= 0x55;
        }
    }
    let (front, rest) = bytes.split_at(len / 100);
    let mut out = fs::File::create(path).map_err(context(path))?;
    [front, b"new", rest].iter().try_for_each(|part| out.write_all(part)).map_err(context(path))
}
