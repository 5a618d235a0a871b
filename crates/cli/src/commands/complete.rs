//! `piton complete`: what a shell may go on with, for the scripts of `piton completions`. Nobody types it.
//!
//! It answers from the store alone, at every press of a key: no file of the workspace is looked at, and whatever is wrong is no
//! reason to say anything.

use std::ffi::OsString;

use clap::builder::ValueHint;
use clap::{Arg, ArgAction, Command};
use piton_engine::Workspace;
use piton_engine::model::short::one_line;
use piton_wording::escape::escape_view;
use piton_wording::sessions::title;
use piton_wording::words::sign;
use piton_wording::{Failure, turns};

use crate::args::{self, Global};
use crate::console::Console;
use crate::environment::Surroundings;

/// Print what a word may become (the scripts of `piton completions` run this)
///
/// WORDS are those after `piton`, the last of which is still being typed. Each line of the answer is a word and, after a tab, what it
/// means; `:files` and `:folders` stand for those of the current folder.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

/// As much of a prompt is shown beside a turn, in characters.
const PROMPT: usize = 60;

/// A word, and what it means.
type Offer = (String, String);

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let words: Vec<String> = args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (typed, before) = words.split_last().map_or(("", &[][..]), |(typed, before)| (typed.as_str(), before));
    let command = args::in_terminal();
    let place = Place::of(&command, before);
    let mut offers = place.offers(typed, global);
    offers.retain(|(word, _)| word.starts_with(':') || word.starts_with(typed));
    let value: Vec<_> =
        offers.iter().map(|(word, about)| serde_json::json!({ "word": word, "about": about })).collect();
    console.print(&value, |out, _| {
        offers.iter().try_for_each(|(word, about)| match about.is_empty() {
            true => writeln!(out, "{word}"),
            false => writeln!(out, "{word}\t{}", one_line(about, PROMPT)),
        })
    })
}

/// Where in a command a word stands.
struct Place<'a> {
    command: &'a Command,
    /// The flag whose value it is.
    flag: Option<&'a Arg>,
    /// How many words of the command stand before it.
    words: usize,
    /// After `--` nothing is a flag.
    is_past_flags: bool,
}

impl<'a> Place<'a> {
    fn of(root: &'a Command, before: &[String]) -> Self {
        let mut place = Self { command: root, flag: None, words: 0, is_past_flags: false };
        for word in before {
            if place.flag.take().is_some() {
                continue;
            }
            if word == "--" && !place.is_past_flags {
                place.is_past_flags = true;
            } else if word.starts_with('-') && !place.is_past_flags {
                place.flag = if word.contains('=') { None } else { place.flag_called(root, word) };
            } else if word == "help" && place.words == 0 && std::ptr::eq(place.command, root) {
                // Its words are those of commands, which are offered at the root.
            } else if let Some(next) = place.command.find_subcommand(word).filter(|_| place.words == 0) {
                place.command = next;
            } else {
                place.words += 1;
            }
        }
        place
    }

    /// The flag of a name, where it takes a value.
    fn flag_called(&self, root: &'a Command, word: &str) -> Option<&'a Arg> {
        let long = word.strip_prefix("--");
        let short = word.strip_prefix('-').filter(|_| long.is_none()).and_then(|letters| letters.chars().last());
        let is_it =
            |arg: &&Arg| (long.is_some() && arg.get_long() == long) || (short.is_some() && arg.get_short() == short);
        let flag = self.command.get_arguments().chain(root.get_arguments()).find(is_it)?;
        matches!(flag.get_action(), ArgAction::Set | ArgAction::Append).then_some(flag)
    }

    fn offers(&self, typed: &str, global: &Global) -> Vec<Offer> {
        if let Some(flag) = self.flag {
            return values(flag, typed, global);
        }
        if typed.starts_with('-') && !self.is_past_flags {
            return self.flags();
        }
        let mut offers: Vec<Offer> = Vec::new();
        if self.words == 0 {
            let is_shown = |command: &&Command| !command.is_hide_set();
            let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
            offers.extend(
                self.command.get_subcommands().filter(is_shown).map(|one| (one.get_name().to_owned(), about(one))),
            );
        }
        let positionals: Vec<&Arg> = self.command.get_positionals().collect();
        let is_last = |arg: &&&Arg| arg.is_last_set() == self.is_past_flags;
        let wanted: Vec<_> = positionals.iter().filter(is_last).collect();
        // The last one may take any number of words.
        let many = |arg: &Arg| {
            arg.get_num_args().is_some_and(|range| range.max_values() > 1)
                || matches!(arg.get_action(), ArgAction::Append)
        };
        let arg = wanted.get(self.words).or_else(|| wanted.last().filter(|arg| many(arg)));
        offers.extend(arg.map(|arg| values(arg, typed, global)).unwrap_or_default());
        offers
    }

    fn flags(&self) -> Vec<Offer> {
        let flag = |arg: &Arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.get_long().map(|long| (format!("--{long}"), help))
        };
        let mut all: Vec<Offer> =
            self.command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(flag).collect();
        let everywhere = [
            ("--workspace", "The workspace's folder"),
            ("--json", "Print one JSON document"),
            ("--color", "Use colour: auto, always or never"),
            ("--no-pager", "Write long output to the terminal itself"),
            ("--help", "Print help"),
        ];
        all.extend(everywhere.map(|(flag, about)| (flag.to_owned(), about.to_owned())));
        all.sort();
        all.dedup_by(|a, b| a.0 == b.0);
        all
    }
}

/// The value of `piton diff`, which compares with now too.
const DIFFERS: &str = "TARGET|PATH";

/// What an argument may be.
fn values(arg: &Arg, typed: &str, global: &Global) -> Vec<Offer> {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let about =
            |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string).unwrap_or_default();
        return possible.iter().map(|value| (value.get_name().to_owned(), about(value))).collect();
    }
    let name = match arg.get_value_names() {
        Some([name, ..]) => name.to_string(),
        _ => arg.get_id().as_str().to_uppercase(),
    };
    let mut offers = Vec::new();
    let workspace = Surroundings::at_a_glance(global).ok();
    for kind in name.split('|') {
        match (kind, &workspace) {
            ("TARGET" | "TURN" | "WHAT" | "FROM" | "TO", Some(workspace)) => {
                // What takes turns and steps alone refuses every other moment.
                let is_any_moment = !matches!(kind, "TURN" | "WHAT");
                offers.extend(targets(workspace, typed, is_any_moment));
                if name == DIFFERS {
                    offers.push(("@".into(), "the workspace as it is now".into()));
                }
                if kind == "WHAT" {
                    offers.extend(numbers(workspace));
                }
            }
            ("SESSION" | "ONE" | "OTHER" | "BRANCH", Some(workspace)) => offers.extend(sessions(workspace, typed)),
            ("ID" | "OP" | "OPERATION", Some(workspace)) => offers.extend(operations(workspace)),
            _ => {}
        }
    }
    match arg.get_value_hint() {
        ValueHint::AnyPath | ValueHint::FilePath => offers.push((":files".into(), String::new())),
        ValueHint::DirPath => offers.push((":folders".into(), String::new())),
        _ => {}
    }
    offers
}

/// Turns with their prompts, the steps of one, and names.
fn targets(workspace: &Workspace, typed: &str, is_any_moment: bool) -> Vec<Offer> {
    let Ok(offered) = workspace.offered(typed) else { return Vec::new() };
    let before = typed.split_once(':').map(|(session, _)| format!("{session}:")).unwrap_or_default();
    let prompt = |prompt: &Option<String>| turns::prompt(prompt.as_deref()).plain();
    let mut all: Vec<Offer> = Vec::new();
    if let Some((turn, _)) = typed.split_once('.') {
        all.extend(offered.steps.iter().map(|(number, summary)| (format!("{turn}.{number}"), summary.clone())));
        if is_any_moment {
            all.push((format!("{turn}.end"), "after all of it".into()));
        }
        return all;
    }
    all.extend(offered.turns.iter().map(|turn| (format!("{before}t{}", turn.number), prompt(&turn.prompt))));
    if before.is_empty() && is_any_moment {
        let note = |note: String| if note.is_empty() { "a named checkpoint".to_owned() } else { note };
        all.extend(offered.names.into_iter().map(|(name, text)| (name, note(text))));
        all.push(("start".into(), "the first checkpoint".into()));
    }
    all
}

/// The changes that `piton undo` takes by their numbers.
fn numbers(workspace: &Workspace) -> Vec<Offer> {
    let changes = workspace.offered_changes().unwrap_or_default();
    let number = |(at, change): (usize, &piton_engine::view::ChangedFile)| {
        ((at + 1).to_string(), format!("{} {}", sign(change.kind), escape_view(&change.path)))
    };
    let words = [("last", "the last changes: `last 2`"), ("all", "all of the session")];
    let words = words.map(|(word, about)| (word.to_owned(), about.to_owned()));
    changes.iter().enumerate().map(number).rev().chain(words).collect()
}

fn sessions(workspace: &Workspace, typed: &str) -> Vec<Offer> {
    let Ok(offered) = workspace.offered(typed) else { return Vec::new() };
    let of = |session: &piton_engine::view::SessionView| {
        let about = format!("{}, {}", session.agent, title(session).plain());
        let name = session.name.clone().map(|name| (name, about.clone()));
        [Some((session.id.short().to_owned(), about)), name]
    };
    offered.sessions.iter().flat_map(of).flatten().collect()
}

fn operations(workspace: &Workspace) -> Vec<Offer> {
    let Ok(offered) = workspace.offered("") else { return Vec::new() };
    let about = |one: &piton_engine::view::OperationView| {
        let of = one.about.as_deref().map(|about| format!(" of {about}")).unwrap_or_default();
        format!("{}{of}", one.kind.as_str())
    };
    offered.operations.iter().map(|one| (one.id.short().to_owned(), about(one))).collect()
}
