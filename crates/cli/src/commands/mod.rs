//! One file for each command: its arguments, its help, what it asks of the engine and how it shows the answer.

mod checkpoint;
mod completions;
mod demo;
mod diff;
mod init;
mod log;
mod man;
mod redo;
mod rewind;
mod show;
mod status;
mod verify;

use std::process::ExitCode;

use crate::args::Cli;
use crate::console::Console;
use crate::error::Failure;

/// What piton can do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Checkpoint(checkpoint::Args),
    Rewind(rewind::Args),
    Redo(redo::Args),
    Log(log::Args),
    Show(show::Args),
    Diff(diff::Args),
    Status(status::Args),
    Init(init::Args),
    Verify(verify::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs a command.
pub fn run(cli: Cli, console: &mut Console) -> Result<ExitCode, Failure> {
    let Cli { global, command } = cli;
    match command {
        Command::Checkpoint(args) => checkpoint::run(args, &global, console)?,
        Command::Rewind(args) => rewind::run(&args, &global, console)?,
        Command::Redo(args) => redo::run(&args, &global, console)?,
        Command::Log(args) => log::run(&args, &global, console)?,
        Command::Show(args) => show::run(&args, &global, console)?,
        Command::Diff(args) => diff::run(&args, &global, console)?,
        Command::Status(args) => status::run(&args, &global, console)?,
        Command::Init(args) => init::run(&args, &global, console)?,
        Command::Verify(args) => return verify::run(&args, &global, console),
        Command::Demo(args) => demo::run(&args, console)?,
        Command::Completions(args) => completions::run(&args, console)?,
        Command::Man(args) => man::run(&args, console)?,
    }
    Ok(ExitCode::SUCCESS)
}
