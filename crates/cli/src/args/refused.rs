//! Arguments that nobody understands: what is wrong with them, in piton's own words.
//!
//! Clap's words are those of a parser, and its usage lines name whichever flags had been given. Its findings are data, though.

use std::ffi::{OsStr, OsString};
use std::num::ParseIntError;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use piton_engine::model::near::nearest;
use piton_wording::{Call, Code, Failure, Text, call, did_you_mean, text};

use super::RUN;

/// What is wrong, and how the command that was meant is used.
pub struct Explained {
    pub failure: Failure,
    pub usage: String,
}

/// Puts an error of the parser into words. `words` is what was typed after the program's name.
pub fn explain(error: &clap::Error, command: &mut Command, words: &[OsString]) -> Explained {
    command.build();
    let mut path = meant(command, words);
    // Help on a command that there is not is an error about that command, and not about `help`.
    if path.first().is_some_and(|verb| verb == "help") {
        path.remove(0);
    }
    let usage = follow(command, &path).clone().render_usage().to_string();
    let verb = path.first().cloned();
    let program = command.get_bin_name().unwrap_or("piton").to_owned();
    let name = [program].into_iter().chain(path.iter().cloned()).collect::<Vec<_>>().join(" ");
    let meant = follow(command, &path);
    let asked = Asked { error, command: meant, name: &name, words };
    let failure = asked.failure();
    let page = match verb {
        Some(verb) => text![call("help").arg(&verb), " says more"],
        None => text![call("help"), " lists the commands"],
    };
    Explained { failure: failure.hint(page), usage }
}

/// The name of the command that the words mean, in parts.
fn meant(command: &Command, words: &[OsString]) -> Vec<String> {
    let mut path = Vec::new();
    let mut at = command;
    for word in words.iter().map(|word| word.to_string_lossy()) {
        if let Some(next) = at.find_subcommand(word.as_ref()) {
            path.push(next.get_name().to_owned());
            at = next;
        } else if !path.is_empty() && !word.starts_with('-') {
            // From here on they are arguments; before a command there are only flags and their values.
            break;
        }
    }
    path
}

fn follow<'a>(command: &'a Command, path: &[String]) -> &'a Command {
    path.iter().fold(command, |at, part| at.find_subcommand(part).unwrap_or(at))
}

struct Asked<'a> {
    error: &'a clap::Error,
    command: &'a Command,
    name: &'a str,
    words: &'a [OsString],
}

impl Asked<'_> {
    fn failure(&self) -> Failure {
        let name = self.name;
        let wrong = |message: String| Failure::user(Code::Arguments, message);
        match self.error.kind() {
            ErrorKind::InvalidSubcommand => {
                let typed = self.string(ContextKind::InvalidSubcommand);
                let names: Vec<&str> = self.command.get_subcommands().map(Command::get_name).collect();
                let near: Vec<_> = nearest(&typed, names).iter().map(|near| format!("{name} {near}")).collect();
                wrong(format!("there is no command `{name} {typed}`")).hints(did_you_mean(&near))
            }
            ErrorKind::MissingSubcommand => wrong(format!("`{name}` needs one of its commands")),
            ErrorKind::MissingRequiredArgument => {
                let missing = self.strings(ContextKind::InvalidArg);
                let missing: Vec<_> = missing.iter().map(|one| bare(one)).collect();
                wrong(format!("`{name}` needs {}", listed(&missing, "and")))
            }
            ErrorKind::UnknownArgument => self.unknown(),
            ErrorKind::InvalidValue => {
                let (of, value) = (bare(&self.string(ContextKind::InvalidArg)), self.string(ContextKind::InvalidValue));
                let valid = self.strings(ContextKind::ValidValue);
                if value.is_empty() {
                    let values = if valid.is_empty() { String::new() } else { format!(": {}", listed(&valid, "or")) };
                    return wrong(format!("`{of}` needs a value{values}"));
                }
                let near = nearest(&value, valid.iter().map(String::as_str));
                let of = if of.starts_with('-') {
                    format!("for `{}`", of.split(' ').next().unwrap_or(&of))
                } else {
                    format!("for {of}")
                };
                // A long list says less than the one that was meant.
                let takes = match near.is_empty() || valid.len() <= FEW {
                    true => format!("; it takes {}", listed(&valid, "or")),
                    false => String::new(),
                };
                wrong(format!("`{value}` is not a value {of}{takes}")).hints(did_you_mean(&near))
            }
            ErrorKind::ValueValidation => {
                let (of, value) = (bare(&self.string(ContextKind::InvalidArg)), self.string(ContextKind::InvalidValue));
                let why = std::error::Error::source(self.error);
                if why.is_some_and(|why| why.is::<ParseIntError>()) {
                    return wrong(format!("`{value}` is not a number"));
                }
                if value.parse() == Ok(0) {
                    return wrong(format!("`{value}` is too small for `{of}`"));
                }
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                wrong(format!("`{value}` is not a value for `{of}`{why}"))
            }
            ErrorKind::ArgumentConflict => {
                let (one, others) = (self.string(ContextKind::InvalidArg), self.strings(ContextKind::PriorArg));
                let others: Vec<_> = others.iter().map(|other| flag_alone(other)).collect();
                let one = flag_alone(&one);
                if others == [one.clone()] {
                    return Failure::user(Code::ArgumentsClash, format!("{one} is given twice"));
                }
                let others = if others.is_empty() { vec!["what else is given".to_owned()] } else { others };
                let message = format!("{one} does not go together with {}", listed(&others, "and"));
                Failure::user(Code::ArgumentsClash, message)
            }
            _ => wrong(first_line(self.error)),
        }
    }

    /// A word or a flag where none is expected.
    fn unknown(&self) -> Failure {
        let (name, typed) = (self.name, self.string(ContextKind::InvalidArg));
        let wrong = |message: String| Failure::user(Code::Arguments, message);
        if self.command.get_name() == RUN && !typed.starts_with("--") {
            return wrong("the command to run comes after `--`".to_owned()).hint(self.run_hint(&typed));
        }
        if !typed.starts_with('-') {
            let end = if self.command.get_positionals().count() == 0 {
                "it takes no words"
            } else {
                "quote what belongs together"
            };
            return wrong(format!("`{typed}` is one word too many for `{name}`; {end}"));
        }
        let flags: Vec<String> = self
            .command
            .get_arguments()
            .filter(|one| !one.is_hide_set())
            .filter_map(|one| one.get_long())
            .map(|long| format!("--{long}"))
            .collect();
        let near = nearest(&typed, flags.iter().map(String::as_str));
        wrong(format!("`{name}` has no flag `{typed}`")).hints(did_you_mean(&near))
    }

    /// The words as they should have been typed.
    fn run_hint(&self, typed: &str) -> Text {
        let at = self.words.iter().position(|word| word == OsStr::new(typed)).unwrap_or(self.words.len());
        let before = self.words[..at].iter().filter(|word| *word != OsStr::new(RUN));
        let call: Call = before.fold(call(RUN), |call, word| call.arg(word)).arg("--");
        text![self.words[at..].iter().fold(call, |call, word| call.arg(word))]
    }

    fn string(&self, kind: ContextKind) -> String {
        self.strings(kind).into_iter().next().unwrap_or_default()
    }

    fn strings(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(one)) => vec![one.clone()],
            Some(ContextValue::Strings(all)) => all.clone(),
            Some(ContextValue::StyledStr(one)) => vec![one.to_string()],
            _ => Vec::new(),
        }
    }
}

/// So many possible values are read at a glance.
const FEW: usize = 6;

/// `<TARGET>` and `[KEY]` without their marks.
fn bare(argument: &str) -> String {
    argument.replace(['<', '>', '[', ']'], "").replace('|', " or ")
}

/// `--since <AGE>` as `` `--since` ``.
fn flag_alone(argument: &str) -> String {
    let word = argument.split(' ').next().unwrap_or(argument);
    if word.starts_with('-') { format!("`{word}`") } else { bare(word) }
}

/// `a, b and c`.
fn listed(all: &[String], word: &str) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} {word} {last}", others.join(", ")),
    }
}

/// What clap says itself.
fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
