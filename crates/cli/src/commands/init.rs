//! `piton init`: make a folder a workspace, or change a workspace's settings.

use std::path::{Path, PathBuf};

use piton_engine::InitOptions;
use piton_wording::escape::escape_path;
use piton_wording::words::size;
use piton_wording::{Code, Failure, call, text};

use crate::args::Global;
use crate::console::Console;
use crate::environment::{Surroundings, say_unread};

/// Make a folder a workspace, or change its settings
///
/// Captures nothing yet. `piton checkpoint` makes a folder a workspace by itself, so this is needed only to choose
/// the folder or its budget, or to insist on a folder that piton refuses.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder [default: the workspace that the current folder belongs to, else the git repository around it, else the
    /// current folder]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
    /// How much disk its checkpoints may take, such as 5G [default: 10G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    budget: Option<u64>,
    /// Allow even your home folder, the root of the file system, or a huge folder
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton init
  piton init --budget 20G
  piton init ~/work/site --force";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let folder = match (&args.folder, &global.workspace) {
        (Some(_), Some(_)) => {
            return Err(
                Failure::user(Code::ArgumentsClash, "both DIR and --workspace name the folder").hint("leave one out")
            );
        }
        (Some(folder), None) => surroundings.here.join(folder),
        (None, _) => surroundings.folder()?,
    };
    let made = surroundings.engine.init(&folder, InitOptions { force: args.force, budget: args.budget })?;
    console.print_done(&made, |out, look| {
        let path = escape_path(&made.path);
        let what = if made.already_known { "was a workspace already" } else { "is a workspace now" };
        writeln!(out, "{} {what}", look.paint.bold(path))?;
        writeln!(out, "its checkpoints may take {} in {}", size(made.budget), escape_path(&made.store))
    })?;
    say_unread(console, &made);
    if !made.already_known {
        console.advise(text![call("checkpoint"), " captures it"]);
    } else if args.folder.is_none() && global.workspace.is_none() && !is_same_folder(&surroundings.here, &made.path) {
        let here = escape_path(&surroundings.here);
        console.advise(text![
            &here,
            " belongs to it; ",
            call("init").there("."),
            " makes ",
            &here,
            " a workspace of its own"
        ]);
    }
    Ok(())
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| one == other)
}

/// Reads `5G`, `500M`, `1T`; units are powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "a size is a number and a unit, such as 500M, 5G or 1T".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let shift = match unit.trim().to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" if !unit.is_empty() || number == 0 => return Err(wrong()),
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << shift).filter(|bytes| (1..1 << 60).contains(bytes)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_a_number_and_a_unit() {
        for (text, bytes) in [("5G", 5 << 30), ("500M", 500 << 20), ("1t", 1 << 40), ("2GiB", 2 << 30), ("4096", 4096)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "G", "5X", "-1G", "1.5G", "0", "0G", "99999999999T", "5 apples", "B"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
