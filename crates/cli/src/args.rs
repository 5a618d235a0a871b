//! What every command understands, and what is done with arguments that none does.

mod refused;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::error::ErrorKind;
use clap::{FromArgMatches, Parser, ValueEnum, ValueHint};
use piton_wording::escape::escape_line;
use piton_wording::{Failure, Surface, Terminal};

use crate::commands::Command;
use crate::console::Console;
use crate::help::{self, Page};
use crate::inside::{self, Inside};
use crate::report;
use refused::{Explained, explain};

/// Checkpoints and rewinds the folder that an AI coding agent works in.
///
/// Piton captures every file of a folder as a checkpoint, stored outside the folder and without touching its git
/// history, and can make the folder equal to any checkpoint again. Every rewind begins with a capture, so it can
/// always be taken back.
#[derive(Debug, Parser)]
#[command(name = "piton", version, max_term_width = 100, after_help = BEGIN)]
#[command(after_long_help = LONG)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    /// Where there is none, how things stand and what comes next is shown.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What every command understands.
#[derive(Debug, clap::Args)]
pub struct Global {
    /// The workspace's folder [default: the one around the current folder]
    ///
    /// Without it, the workspace is the known one around the current folder, else the root of the git repository
    /// around it, else the current folder itself. A workspace whose folder is gone, with another one at its path, is
    /// named by the beginning of its id.
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Everywhere")]
    pub workspace: Option<PathBuf>,
    /// Print one JSON document
    ///
    /// Exactly one document goes to stdout, whatever happens. An error is
    /// `{"error":{"code":"conflict","message":"…","fault":"user","hints":["…"],"ways":[…]}}`, and stderr has it in
    /// words as always. A code never changes its meaning.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// When to use colour; NO_COLOR and CLICOLOR_FORCE are honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    #[arg(hide_default_value = true, help_heading = "Everywhere", help = "Use colour: auto, always or never")]
    pub color: Color,
    /// Print long output directly instead of in a pager
    ///
    /// The pager is PITON_PAGER, else PAGER, else `less`; if that is empty or `cat`, there is none.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub no_pager: bool,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// The command that runs another, whose words come after `--`.
const RUN: &str = "run";

const BEGIN: &str = "\
Begin:
  piton demo     see it work in a scratch folder, in ten seconds
  piton setup    add piton to your agent

`piton` alone says where you stand; `piton help COMMAND` says more about each command.";

const LONG: &str = "\
Begin:
  piton demo               see it work in a scratch folder, in ten seconds
  piton setup              add piton to your agent
  piton checkpoint NAME    capture this project
  piton undo               take back the agent's last turn, keep your own edits
  piton rewind NAME        make the files equal to that checkpoint again
  piton redo               take the undo or the rewind back

Targets, wherever a command takes one:
  t5, t5.2, t5.end    just before turn 5, before its second tool call, after it
  kmzq:t5             the same of another session; `piton sessions` lists them
  before-agent        a checkpoint's name, whole
  kmzq                the beginning of its id, which has the letters k to z only
  10m, 2h, 3d         the last checkpoint that is at least that old
  start               the first checkpoint
  @                   the workspace as it is now (for `piton diff`)

Exit codes:
  0  done
  1  not done, and you can do something about it: the hint says what
  2  not done: a bug in piton, or a damaged store

Environment:
  PITON_HOME          where checkpoints are [default: piton in your data folder]
  PITON_PAGER, PAGER  what long output is read in [default: less]
  NO_COLOR            no colour
  CLICOLOR_FORCE      colour although the output is not a terminal

`piton help COMMAND` says more about each command.";

/// Arguments that are not understood, or that ask for help.
pub struct Refused {
    error: clap::Error,
    /// Everything that could have been meant.
    command: Box<clap::Command>,
    /// What was typed after the program's name.
    words: Vec<OsString>,
}

/// Reads the process's arguments.
pub fn read() -> Result<Cli, Refused> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    Ok(parse(help::grouped(in_terminal()), words)?.cli)
}

fn parse(command: clap::Command, mut words: Vec<OsString>) -> Result<Typed, Refused> {
    // Clap's own `help` takes names of commands alone; before it, the flag is understood.
    if words.first().is_some_and(|word| word == "help") {
        let flags = words.extract_if(.., |word| word == "--json").collect::<Vec<_>>();
        words.splice(0..0, flags);
    }
    let program = command.get_bin_name().unwrap_or("piton").to_owned();
    let all = [OsString::from(program)].into_iter().chain(words.iter().cloned());
    let parsed = command.clone().try_get_matches_from(all).and_then(|matches| {
        let verb = matches.subcommand_name().unwrap_or_default().to_owned();
        Ok(Typed { cli: Cli::from_arg_matches(&matches)?, verb })
    });
    parsed.map_err(|error| Refused { error, command: Box::new(command), words })
}

/// Every command, with its pages for a terminal.
pub fn in_terminal() -> clap::Command {
    help::command(Page { program: "piton", has_shell: true, surface: &Terminal::default() })
}

/// What was typed to an agent.
pub struct Typed {
    pub cli: Cli,
    /// The name of the command.
    pub verb: String,
}

/// Reads words that were typed to an agent after `/piton`.
pub fn parse_inside(words: &[OsString], place: &Inside) -> Result<Typed, Refused> {
    let page = Page { program: inside::PROGRAM, has_shell: false, surface: place };
    parse(help::command(page).term_width(INSIDE_WIDTH), words.to_vec())
}

/// As wide is what an agent shows, as far as anybody knows.
const INSIDE_WIDTH: usize = 100;

/// Prints a command's help.
pub fn print_help(command: &str) {
    let mut cli = in_terminal();
    cli.build();
    if let Some(command) = cli.find_subcommand_mut(command) {
        let _ = command.print_long_help();
    }
}

impl Refused {
    /// Them, or the help, for somebody who is not at a terminal.
    pub fn text(&mut self, surface: &dyn Surface) -> String {
        if self.is_help() {
            // Clap repeats what was typed as it was typed, so its words pass through the same sieve as all others.
            let rendered = self.error.render().to_string();
            return rendered.trim_end().lines().map(escape_line).collect::<Vec<_>>().join("\n");
        }
        let Explained { failure, usage } = explain(&self.error, &mut self.command, &self.words);
        format!("{}\n{usage}", report::in_lines(&failure, surface))
    }

    /// Help and versions, which `--json` wraps in a document.
    fn print_page(&self, is_json: bool) -> Result<(), Failure> {
        if is_json {
            let mut console = Console::new(true, Color::Never, Rc::new(Terminal::default()));
            let page = serde_json::json!({ "help": self.error.render().to_string() });
            return console.print(&page, |_, _| Ok(())).and_then(|()| console.flush());
        }
        self.error.print().and_then(|()| io::stdout().flush()).map_err(Failure::output)
    }

    fn is_help(&self) -> bool {
        matches!(
            self.error.kind(),
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        )
    }

    /// Shows them. Help is what was asked for; everything else is the user's to fix, which is exit code 1 here and 2 in
    /// clap.
    pub fn show(mut self) -> ExitCode {
        let is_json = self.words.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
        if self.is_help() {
            let is_asked_for = self.error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            let end = if is_asked_for { ExitCode::SUCCESS } else { ExitCode::from(1) };
            return self.print_page(is_json).map_or_else(
                |failure| report::report(&failure, &mut Console::new(false, Color::Auto, Rc::new(Terminal::default()))),
                |()| end,
            );
        }
        let Explained { failure, usage } = explain(&self.error, &mut self.command, &self.words);
        let mut console = Console::new(is_json, Color::Auto, Rc::new(Terminal::default()));
        report::report_with(&failure, usage.as_str(), &mut console)
    }
}
