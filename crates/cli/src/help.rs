//! Help pages, as the surface on which they are read says commands.
//!
//! Prose is written in the doc comments of arguments, where a command in backquotes that begins with `piton` is a call:
//! it is read as one here, before clap has the page, and said by the surface. Examples are data of each command.

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, Command, CommandFactory};
use piton_wording::{Call, Place, Surface, Text, text};
use unicode_width::UnicodeWidthStr;

use crate::args::Cli;
use crate::commands::{EXAMPLES, diff};
use crate::prose::wrapped;

/// One line of a page's examples, with what it says of itself.
#[derive(Clone, Copy, Debug)]
pub enum Example {
    /// A command, as words after the program's name.
    Call(&'static str, &'static str),
    /// Something for a shell, or that only a terminal can do.
    Shell(&'static str, &'static str),
}

/// Where pages are read.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// What stands before a command.
    pub program: &'static str,
    /// Whether lines for a shell can be used there.
    pub has_shell: bool,
    pub surface: &'a dyn Surface,
}

/// What the page of all commands lists, in groups. A command that is in none of them is listed last.
pub const GROUPS: [(&str, &[&str]); 5] = [
    ("Every day", &["undo", "rewind", "redo", "log", "show", "diff", "status", "accept", "checkpoint"]),
    (
        "Sessions and branches",
        &["sessions", "changes", "conversation", "fork", "branch", "summarize", "export", "import"],
    ),
    ("Looking", &["cat", "checkout", "search", "blame", "ops", "annotate", "watch"]),
    ("Setting up", &["setup", "init", "config", "rules", "doctor", "run", "demo", "completions"]),
    ("Plumbing", &["hook", "verify", "man"]),
];

/// The width of the page of all commands, where the terminal is not narrower.
const PAGE: usize = 80;

/// A command that is told about by its groups instead of one long list.
pub fn grouped(command: Command) -> Command {
    let is_listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> = command
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
        .map(Command::get_name)
        .filter(|name| !is_listed(name))
        .collect();
    let groups = GROUPS.iter().copied().chain((!others.is_empty()).then_some(("Others", &others[..])));
    let groups: Vec<String> = groups.map(|(title, names)| group(&command, title, names)).collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\n{{all-args}}{{after-help}}",
        groups.join("\n")
    );
    let usage = format!("{} [OPTIONS] COMMAND", command.get_bin_name().unwrap_or("piton"));
    command.help_template(template).override_usage(usage).mut_subcommands(|one| one.hide(true))
}

fn group(command: &Command, title: &str, names: &[&str]) -> String {
    let mut out = format!("{title}:\n");
    for name in names {
        let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
        let lines = wrapped(&about.unwrap_or_default(), PAGE - NAME - 4);
        for (at, line) in lines.iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            out += format!("  {name:<NAME$}  {line}").trim_end();
            out.push('\n');
        }
    }
    out
}

/// The width of the longest command.
const NAME: usize = 12;

/// Every command, with its pages.
pub fn command(page: Page<'_>) -> Command {
    let mut command = said(Cli::command(), page).bin_name(page.program);
    for (verb, examples) in EXAMPLES {
        command = command.mut_subcommand(verb, |command| command.after_help(list(examples, page)));
    }
    // What holds everywhere is explained on the first page; the others say in a line each that it is there.
    let everywhere: Vec<Arg> = command.get_arguments().filter(|one| one.is_global_set()).cloned().collect();
    let in_short = everywhere.into_iter().map(|one| one.long_help(Resettable::<StyledStr>::Reset));
    let in_short: Vec<Arg> = in_short.collect();
    command
        .mut_subcommands(|one| set_in(one.args(in_short.clone())))
        .mut_subcommand("diff", |command| command.override_usage(diff::usage(page.program)))
}

/// A command whose lists of examples keep their columns on a page.
fn set_in(command: Command) -> Command {
    let kept = |text: Option<&StyledStr>| -> Resettable<StyledStr> {
        text.map(|text| StyledStr::from(in_columns(&text.to_string()))).into()
    };
    let (after, long) = (kept(command.get_after_help()), kept(command.get_after_long_help()));
    command.after_help(after).after_long_help(long)
}

/// Lists of two columns, none wider than a page: what is said of a command goes on beneath its beginning, and begins on a line of
/// its own where the command leaves no room.
fn in_columns(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        let Some((left, right)) = line.trim_start().split_once("  ") else { return line.to_owned() };
        if indent == 0 || line.width() <= PAGE {
            return line.to_owned();
        }
        let right = right.trim_start();
        let column = line.width() - right.width();
        let (begin, column) = if PAGE.saturating_sub(column) < LEAST {
            (format!("{:indent$}{}\n", "", left.trim_end()), indent + 6)
        } else {
            (line[..line.len() - right.len()].to_owned(), column)
        };
        let gap = format!("\n{:column$}", "");
        let first = if begin.ends_with('\n') { &gap[1..] } else { "" };
        format!("{begin}{first}{}", wrapped(right, PAGE - column).join(&gap))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What is said of an example takes at least so much room.
const LEAST: usize = 30;

/// A call as it is written in prose and in examples, without the program's name.
pub fn read_call(words: &str) -> Option<Call> {
    let mut words = shlex::split(words)?.into_iter();
    let verb = words.next()?;
    // A page is about no workspace in particular.
    let call = Call { verb: verb.into(), arguments: Vec::new(), session: None, place: Place::Anywhere };
    Some(words.fold(call, Call::arg))
}

/// A command whose prose, and that of all beneath it, is said by the page's surface.
fn said(command: Command, page: Page<'_>) -> Command {
    let prose = |text: Option<&StyledStr>| -> Resettable<StyledStr> {
        text.map(|text| StyledStr::from(prose(&text.to_string()).said(page.surface))).into()
    };
    let (about, long) = (prose(command.get_about()), prose(command.get_long_about()));
    let (after, after_long) = (prose(command.get_after_help()), prose(command.get_after_long_help()));
    let of_argument = |argument: Arg| {
        let (help, long) = (prose(argument.get_help()), prose(argument.get_long_help()));
        argument.help(help).long_help(long)
    };
    let command = command.about(about).long_about(long).after_help(after).after_long_help(after_long);
    command.mut_args(of_argument).mut_subcommands(|command| said(command, page))
}

/// Prose with its calls.
fn prose(markup: &str) -> Text {
    let pieces = markup.split('`').enumerate();
    pieces.fold(Text::default(), |text, (at, piece)| match (at % 2, piece.strip_prefix("piton ").and_then(read_call)) {
        (0, _) => text![text, piece],
        (_, Some(call)) => text![text, call],
        (_, None) => text![text, "`", piece, "`"],
    })
}

/// Examples as a list with what each does beside it.
fn list(examples: &[Example], page: Page<'_>) -> String {
    let rows = examples.iter().filter_map(|example| match *example {
        Example::Call(words, does) => read_call(words).map(|call| (page.surface.command(&call), prose(does))),
        Example::Shell(line, does) => page.has_shell.then(|| (line.to_owned(), prose(does))),
    });
    let rows: Vec<(String, String)> = rows.map(|(line, does)| (line, does.said(page.surface))).collect();
    let explained = rows.iter().filter(|(_, does)| !does.is_empty());
    let width = explained.map(|(line, _)| line.chars().count()).max().unwrap_or_default();
    let row = |(line, does): &(String, String)| match does.is_empty() {
        true => format!("\n  {line}"),
        false => format!("\n  {line:<width$}  {does}"),
    };
    let rows: String = rows.iter().map(row).collect();
    if rows.is_empty() { rows } else { format!("Examples:{rows}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_an_example_stays_in_its_column() {
        let long = "what it does, in more words than one line of a page has room for";
        for (text, expected) in [
            ("Examples:\n  piton log  all".to_owned(), "Examples:\n  piton log  all".to_owned()),
            (
                format!("  piton log --steps   {long}"),
                "  piton log --steps   what it does, in more words than one line of a page has\n                      room for".to_owned(),
            ),
            (
                format!("  piton log --steps --files --path src/deep/down/auth.ts  {long}"),
                format!("  piton log --steps --files --path src/deep/down/auth.ts\n        {long}"),
            ),
        ] {
            assert_eq!(in_columns(&text), expected);
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        for name in command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name) {
            assert_eq!(listed.iter().filter(|one| **one == name).count(), 1, "{name}");
        }
        assert!(listed.iter().all(|name| command.find_subcommand(name).is_some()), "{listed:?}");
    }
}
