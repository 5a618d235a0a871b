//! One file for each command: its arguments, its help, what it asks of the engine and how it shows the answer.

mod accept;
mod annotate;
mod blame;
mod branch;
mod cat;
mod changes;
mod checkout;
mod checkpoint;
mod complete;
mod completions;
mod config;
mod conversation;
mod demo;
pub mod diff;
mod doctor;
mod export;
mod fork;
mod here;
mod hook;
mod import;
mod init;
mod log;
mod man;
mod ops;
mod redo;
mod rewind;
mod rules;
mod run;
mod search;
mod sessions;
mod setup;
mod show;
mod status;
mod summarize;
mod undo;
mod verify;
mod watch;

use std::process::ExitCode;

use piton_wording::Failure;

use crate::args::Cli;
use crate::console::Console;
use crate::help::Example;
use crate::inside::only_in_terminal;

/// Examples of the commands that can be typed to an agent as well: how they are written depends on where they are shown.
pub const EXAMPLES: [(&str, &[Example]); 16] = [
    ("log", &log::EXAMPLES),
    ("status", &status::EXAMPLES),
    ("changes", &changes::EXAMPLES),
    ("sessions", &sessions::EXAMPLES),
    ("show", &show::EXAMPLES),
    ("diff", &diff::EXAMPLES),
    ("blame", &blame::EXAMPLES),
    ("search", &search::EXAMPLES),
    ("checkpoint", &checkpoint::EXAMPLES),
    ("annotate", &annotate::EXAMPLES),
    ("accept", &accept::EXAMPLES),
    ("ops", &ops::EXAMPLES),
    ("undo", &undo::EXAMPLES),
    ("rewind", &rewind::EXAMPLES),
    ("redo", &redo::EXAMPLES),
    ("rules", &rules::EXAMPLES),
];

/// What piton can do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Checkpoint(checkpoint::Args),
    Rewind(rewind::Args),
    Undo(undo::Args),
    Redo(redo::Args),
    Ops(ops::Args),
    Log(log::Args),
    Sessions(sessions::Args),
    Fork(fork::Args),
    Branch(branch::Args),
    Conversation(conversation::Args),
    Summarize(summarize::Args),
    Changes(changes::Args),
    Search(search::Args),
    Watch(watch::Args),
    Show(show::Args),
    Annotate(annotate::Args),
    Accept(accept::Args),
    Diff(diff::Args),
    Export(export::Args),
    Import(import::Args),
    Blame(blame::Args),
    Cat(cat::Args),
    Checkout(checkout::Args),
    Status(status::Args),
    Rules(rules::Args),
    Init(init::Args),
    Setup(setup::Args),
    Doctor(doctor::Args),
    Run(run::Args),
    Hook(hook::Args),
    Config(config::Args),
    Verify(verify::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Complete(complete::Args),
    Man(man::Args),
}

impl Command {
    /// Whether what it prints is to be read, and may be longer than a screen.
    fn is_read(&self) -> bool {
        matches!(
            self,
            Self::Log(_)
                | Self::Show(_)
                | Self::Diff(_)
                | Self::Blame(_)
                | Self::Changes(_)
                | Self::Search(_)
                | Self::Ops(_)
                | Self::Sessions(_)
                | Self::Conversation(_)
        )
    }

    /// Sets what goes without saying where a command is typed to an agent: nobody is asked there, since who typed it is there
    /// to see what it did.
    ///
    /// # Errors
    /// Where the command, or one of its flags, is for a terminal.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        match self {
            Self::Rewind(args) => args.settle_inside(),
            Self::Undo(args) => args.settle_inside(),
            Self::Redo(args) => args.settle_inside(),
            Self::Rules(args) => args.settle_inside(),
            Self::Diff(args) => args.settle_inside(),
            Self::Show(args) => args.settle_inside(),
            Self::Checkpoint(_)
            | Self::Ops(_)
            | Self::Log(_)
            | Self::Sessions(_)
            | Self::Changes(_)
            | Self::Search(_)
            | Self::Annotate(_)
            | Self::Accept(_)
            | Self::Blame(_)
            | Self::Status(_) => Ok(()),
            Self::Fork(_)
            | Self::Branch(_)
            | Self::Conversation(_)
            | Self::Summarize(_)
            | Self::Cat(_)
            | Self::Checkout(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Init(_)
            | Self::Setup(_)
            | Self::Doctor(_)
            | Self::Run(_)
            | Self::Hook(_)
            | Self::Config(_)
            | Self::Verify(_)
            | Self::Watch(_)
            | Self::Demo(_)
            | Self::Completions(_)
            | Self::Complete(_)
            | Self::Man(_) => Err(only_in_terminal("this command", "and cannot be used in here")),
        }
    }
}

/// Runs a command.
pub fn run(cli: Cli, console: &mut Console) -> Result<ExitCode, Failure> {
    let Cli { global, command } = cli;
    let Some(command) = command else {
        here::run(&global, console)?;
        return Ok(ExitCode::SUCCESS);
    };
    if command.is_read() && !global.no_pager {
        console.page();
    }
    match command {
        Command::Checkpoint(args) => checkpoint::run(args, &global, console)?,
        Command::Rewind(args) => return rewind::run(&args, &global, console),
        Command::Undo(args) => return undo::run(&args, &global, console),
        Command::Redo(args) => return redo::run(&args, &global, console),
        Command::Ops(args) => ops::run(&args, &global, console)?,
        Command::Log(args) => log::run(&args, &global, console)?,
        Command::Sessions(args) => sessions::run(&args, &global, console)?,
        Command::Fork(args) => fork::run(&args, &global, console)?,
        Command::Branch(args) => branch::run(&args, &global, console)?,
        Command::Conversation(args) => conversation::run(&args, &global, console)?,
        Command::Summarize(args) => summarize::run(&args, &global, console)?,
        Command::Changes(args) => changes::run(&args, &global, console)?,
        Command::Search(args) => search::run(&args, &global, console)?,
        Command::Watch(args) => watch::run(&args, &global, console)?,
        Command::Show(args) => return show::run(&args, &global, console),
        Command::Annotate(args) => annotate::run(&args, &global, console)?,
        Command::Accept(args) => accept::run(&args, &global, console)?,
        Command::Diff(args) => return diff::run(&args, &global, console),
        Command::Export(args) => export::run(&args, &global, console)?,
        Command::Import(args) => import::run(&args, &global, console)?,
        Command::Blame(args) => blame::run(&args, &global, console)?,
        Command::Cat(args) => cat::run(&args, &global, console)?,
        Command::Checkout(args) => checkout::run(&args, &global, console)?,
        Command::Status(args) => return status::run(&args, &global, console),
        Command::Rules(args) => rules::run(&args, &global, console)?,
        Command::Init(args) => init::run(&args, &global, console)?,
        Command::Setup(args) => setup::run(&args, &global, console)?,
        Command::Doctor(args) => return doctor::run(&args, &global, console),
        Command::Run(args) => return run::run(&args, &global, console),
        Command::Hook(args) => return Ok(hook::run(args)),
        Command::Config(args) => config::run(&args, &global, console)?,
        Command::Verify(args) => return verify::run(&args, &global, console),
        Command::Demo(args) => demo::run(&args, console)?,
        Command::Complete(args) => complete::run(&args, &global, console)?,
        Command::Completions(args) => completions::run(&args, console)?,
        Command::Man(args) => man::run(&args, console)?,
    }
    Ok(ExitCode::SUCCESS)
}
