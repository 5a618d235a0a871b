//! `piton hook`, as the help knows it. What it does is in `crate::hook`, which `main` calls before arguments are parsed.

use std::ffi::OsString;
use std::process::ExitCode;

/// Receive an agent's event on standard input (run by agents, not by people)
///
/// Reads one report of an agent, captures what it must, and records who did what. `piton setup` makes an agent run
/// it; docs/events.md describes the format of `generic` reports. It always exits with 0, within the time budget
/// (`hook.time-budget`, 10 seconds), and prints nothing but an answer that the agent understands. What it did, or why
/// not, is in `hook.log` in piton's home; `piton doctor` reads that too.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[arg(help = format!("The agent: {}", super::setup::names().join(" or ")))]
    #[arg(value_name = "AGENT", allow_hyphen_values = true, num_args = 0.., trailing_var_arg = true)]
    rest: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  piton setup                       installs it
  echo '{\"event\":\"prompt\",\"session\":\"s1\",\"cwd\":\"'\"$PWD\"'\",\"text\":\"hello\"}' | piton hook generic

Environment:
  PITON_HOOK=off      do nothing";

/// Reached only where `hook` is not the first argument.
pub fn run(args: Args) -> ExitCode {
    crate::hook::run(args.rest.into_iter(), || ())
}
