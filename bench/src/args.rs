//! The command line of the bench.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Result;

/// What `--help` prints.
pub const HELP: &str = "\
Measures piton beside shadow git repositories and prints a table of medians and ratios.

usage: bench/run [--quick|--trial] [--tree 1k|12k|hook|undo|blame|100k|500mb]... [--piton PATH] [--json FILE] [--keep DIR]
       bench/run --table FILE...

  --quick       only 1k, 12k, the hook, undo and blame, fewer rounds
  --trial       all but 12k and 100k in miniature, a few seconds: shows that the bench works, and nothing else
  --tree NAME   only this tree; may be given more than once
  --piton PATH  the binary to measure (default: target/release/piton)
  --json FILE   where all figures go (default: bench/results/latest.json without any arguments, else target/bench.json)
  --keep DIR    work in DIR and leave everything there
  --table FILE  measure nothing: print the table of README.md from the figures of a run; of several, their medians

Works in $PITON_BENCH_DIR, else in the system's temporary folder.
";

/// The trees by the names that `--tree` takes, in the order in which they run.
pub const TREES: [&str; 7] = ["1k", "12k", "hook", "undo", "blame", "100k", "500mb"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args {
    /// Print the help and exit.
    pub help: bool,
    /// Fewer rounds.
    pub quick: bool,
    /// In miniature.
    pub trial: bool,
    /// Which of `TREES`, in their order.
    pub trees: Vec<&'static str>,
    /// The binary to measure.
    pub piton: PathBuf,
    /// Where all figures go.
    pub json: PathBuf,
    /// A folder to work in and leave in place.
    pub keep: Option<PathBuf>,
    /// Runs whose figures to print as a table, in place of measuring.
    pub table: Vec<PathBuf>,
}

impl Args {
    /// Parses the arguments, without the program's name.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self> {
        let mut parsed = Self {
            help: false,
            quick: false,
            trial: false,
            trees: Vec::new(),
            piton: PathBuf::from("target/release/piton"),
            json: PathBuf::from("target/bench.json"),
            keep: None,
            table: Vec::new(),
        };
        let mut chosen = Vec::new();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{}` needs a value", arg.display()));
            match arg.to_str() {
                Some("--help" | "-h") => parsed.help = true,
                Some("--quick") => parsed.quick = true,
                Some("--trial") => parsed.trial = true,
                Some("--tree") => chosen.push(tree(&value()?)?),
                Some("--piton") => parsed.piton = value()?.into(),
                Some("--json") => parsed.json = value()?.into(),
                Some("--keep") => parsed.keep = Some(value()?.into()),
                Some("--table") => {
                    parsed.table.push(value()?.into());
                    parsed.table.extend(args.by_ref().map(PathBuf::from));
                }
                _ => return Err(format!("unknown argument `{}`; `--help` lists all", arg.display()).into()),
            }
        }
        let left_out: &[&str] = match (parsed.trial, parsed.quick) {
            (true, _) => &["12k", "100k"],
            (false, true) => &["100k", "500mb"],
            (false, false) => &[],
        };
        let wanted =
            |name: &&'static str| if chosen.is_empty() { !left_out.contains(name) } else { chosen.contains(name) };
        parsed.trees = TREES.into_iter().filter(wanted).collect();
        Ok(parsed)
    }
}

fn tree(name: &OsString) -> Result<&'static str> {
    let known = TREES.into_iter().find(|tree| name == tree);
    known.ok_or_else(|| format!("no tree `{}`; there are {}", name.display(), TREES.join(", ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(line: &str) -> Vec<&'static str> {
        Args::parse(line.split_whitespace().map(OsString::from)).unwrap().trees
    }

    #[test]
    fn without_arguments_every_tree_runs() {
        assert_eq!(trees(""), TREES);
    }

    #[test]
    fn quick_leaves_out_the_slow_trees_unless_they_are_named() {
        assert_eq!(trees("--quick"), ["1k", "12k", "hook", "undo", "blame"]);
        assert_eq!(trees("--quick --tree 100k"), ["100k"]);
        assert_eq!(trees("--trial"), ["1k", "hook", "undo", "blame", "500mb"]);
    }

    #[test]
    fn an_unknown_argument_or_tree_is_an_error() {
        for line in ["--fast", "--tree 13k", "--json"] {
            assert!(Args::parse(line.split_whitespace().map(OsString::from)).is_err(), "{line}");
        }
    }
}
