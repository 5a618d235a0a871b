//! What is typed to an agent after `/piton`: which commands that may be, what goes without saying there, and how texts name
//! commands there.
//!
//! The words are parsed by the same parser into the same arguments as in a terminal. The hook does so to know what was typed,
//! and the process that it starts does so again to run it; what tells that process where it is are two variables.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use piton_engine::model::near::nearest;
use piton_engine::model::{SessionId, Timestamp};
use piton_wording::escape::escape;
use piton_wording::words::time_in;
use piton_wording::{Argument, Call, Code, Failure, Flag, Place, Surface, command_line, shell_words};

use crate::args::Cli;
use crate::zone;

/// The session in which a command is typed, for the process that runs it.
pub const SESSION: &str = "PITON_INSIDE_SESSION";
/// The workspace that the session's agent works in, for the same.
pub const WORKSPACE: &str = "PITON_INSIDE_WORKSPACE";
/// The fingerprint of the plan that a yes is for, for the same.
pub const SHOWN: &str = "PITON_INSIDE_SHOWN";
/// What stands before a command there.
pub const PROGRAM: &str = "/piton";

/// What can be typed. Everything else is for a terminal.
const COMMANDS: [(&str, Effect); 16] = [
    ("log", Effect::Shows),
    ("status", Effect::Shows),
    ("changes", Effect::Shows),
    ("sessions", Effect::Shows),
    ("show", Effect::Shows),
    ("diff", Effect::Shows),
    ("blame", Effect::Shows),
    ("search", Effect::Shows),
    ("checkpoint", Effect::Shows),
    ("annotate", Effect::Shows),
    ("accept", Effect::Shows),
    ("ops", Effect::Shows),
    ("undo", Effect::Writes),
    ("rewind", Effect::Writes),
    ("redo", Effect::Writes),
    ("rules", Effect::Writes),
];

/// Shows a page of any other.
const HELP: &str = "help";

/// Flags of those commands that are refused.
const ONLY_IN_TERMINAL: [&str; 3] = ["--all-workspaces", "--resume", "--patch"];

/// What a command does to what the user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No file of the workspace changes, and no rule.
    Shows,
    /// Files change or rules are agreed to, which is not done under an agent at work.
    Writes,
}

/// What a command does that can be typed to an agent; none for all others.
pub fn effect(verb: &str) -> Option<Effect> {
    COMMANDS.iter().find(|(name, _)| *name == verb).map(|(_, effect)| *effect)
}

/// Whether a call can be run in here; the page of a command can where the command itself can be.
fn can_be_typed(call: &Call) -> bool {
    match &call.arguments[..] {
        [Argument::Word(about), ..] if call.verb == HELP => about.to_str().is_some_and(|verb| effect(verb).is_some()),
        _ => call.verb == HELP || effect(&call.verb).is_some(),
    }
}

/// The plan that the user has seen and said yes to, where the command of this process carries it out.
pub fn shown_before() -> Option<String> {
    std::env::var(SHOWN).ok()
}

/// What is said of a command that cannot be typed in here: one for a terminal, or none at all.
pub fn not_here(verb: &str) -> String {
    let is_one = <Cli as clap::CommandFactory>::command().get_subcommands().any(|one| one.get_name() == verb);
    let shown = escape(verb);
    let list = "`/piton help` lists what can be typed here";
    if is_one {
        return format!("piton: `{shown}` is for a terminal; nothing was done\n{list}");
    }
    let names = COMMANDS.iter().map(|(name, _)| *name).chain([HELP]);
    let near = nearest(verb, names).into_iter().next();
    let meant = near.map(|near| format!("; did you mean `/piton {near}`?")).unwrap_or_default();
    format!("piton: there is no command `{shown}`{meant}\n{list}; everything else is for a terminal")
}

/// Refuses what is for a terminal.
pub fn only_in_terminal(what: &str, because: &str) -> Failure {
    Failure::user(Code::OnlyInTerminal, format!("`{what}` is for a terminal, {because}; nothing was done"))
}

/// Where a command was typed to an agent.
#[derive(Clone, Debug)]
pub struct Inside {
    session: Option<SessionId>,
    /// The workspace that is meant where none is named.
    root: PathBuf,
    /// The one that was named.
    chosen: Option<OsString>,
    zone: TimeZone,
}

impl Inside {
    /// A place to type in.
    pub fn new(session: SessionId, root: &Path) -> Self {
        Self { session: Some(session), root: root.to_owned(), chosen: None, zone: TimeZone::UTC }
    }

    /// The place in which the command of this process was typed; none in a terminal.
    pub fn of_process() -> Option<Self> {
        let root = std::env::var_os(WORKSPACE).filter(|root| !root.is_empty())?;
        let session = std::env::var(SESSION).ok().and_then(|id| id.parse().ok());
        Some(Self { session, root: root.into(), chosen: None, zone: zone::local() })
    }

    /// Notes that the plan which this process has shown can be carried out by a yes; whether that is so.
    pub fn may_say_yes(&self, shown: &str) -> bool {
        let Some(session) = &self.session else { return false };
        // A yes adds what a yes means.
        let words = std::env::args_os().skip(1).filter(|word| shown_before().is_none() || word != "--yes");
        let words: Option<Vec<String>> = words.map(|word| word.into_string().ok()).collect();
        let command = words.and_then(|words| shlex::try_join(words.iter().map(String::as_str)).ok());
        let engine = crate::environment::engine(None);
        command.zip(engine.ok()).is_some_and(|(command, engine)| engine.note_asked(session, &command, shown).is_ok())
    }

    /// Lets arguments mean what they mean here: this workspace unless another is named, and nobody is asked.
    ///
    /// # Errors
    /// Where something is for a terminal.
    pub fn settle(&mut self, cli: &mut Cli) -> Result<(), Failure> {
        if let Some(command) = &mut cli.command {
            command.settle_inside()?;
        }
        self.chosen = cli.global.workspace.as_ref().filter(|chosen| **chosen != self.root).map(Into::into);
        cli.global.workspace.get_or_insert_with(|| self.root.clone());
        Ok(())
    }

    /// The workspace that a call in this place is about, where a terminal has to be told.
    fn here(&self) -> OsString {
        self.chosen.clone().unwrap_or_else(|| self.root.clone().into())
    }
}

impl Surface for Inside {
    fn call(&self, call: &Call) -> String {
        let command = self.command(call);
        if can_be_typed(call) { format!("`{command}`") } else { format!("`{command}` in a terminal") }
    }

    fn command(&self, call: &Call) -> String {
        let program = if can_be_typed(call) { PROGRAM } else { "piton" };
        command_line(program, &call.verb, &self.arguments(call))
    }

    fn flag(&self, flag: &Flag) -> String {
        let words = flag.to_words();
        let is_refused = words.iter().any(|word| ONLY_IN_TERMINAL.iter().any(|flag| word == flag)) && !flag.is_left_out;
        let flag = shell_words(&words);
        if is_refused { format!("`{flag}` in a terminal") } else { format!("`{flag}`") }
    }

    fn arguments(&self, call: &Call) -> Vec<OsString> {
        if !can_be_typed(call) {
            return call.words(Some(&self.here()));
        }
        let mut call = call.clone();
        // A turn is one of this session, and a command about this workspace, without a word.
        call.session = call.session.filter(|session| self.session.as_ref() != Some(session));
        let is_root = matches!(&call.place, Place::There(there) if *there == self.root);
        if is_root && self.chosen.is_none() {
            call.place = Place::Here;
        }
        call.words(self.chosen.as_deref())
    }

    fn time(&self, at: Timestamp) -> String {
        time_in(at, &self.zone)
    }
}

#[cfg(test)]
mod tests {
    use piton_wording::{call, flag};

    use super::*;
    use crate::args;
    use crate::commands::EXAMPLES;
    use crate::help::Example;

    fn settled(typed: &str) -> Result<Inside, Failure> {
        let words: Vec<_> = shlex::split(typed).unwrap().into_iter().map(OsString::from).collect();
        let mut inside = Inside::new(SessionId::of("an agent", "s1"), Path::new("/w x"));
        let mut typed = args::parse_inside(&words, &inside).unwrap_or_else(|_| panic!("{typed}"));
        inside.settle(&mut typed.cli).map(|()| inside)
    }

    #[test]
    fn whatever_can_be_typed_is_settled_and_nothing_else() {
        let inside = Inside::new(SessionId::of("an agent", "s1"), Path::new("/w"));
        for command in <Cli as clap::CommandFactory>::command().get_subcommands() {
            let words = [command.get_name(), "x", "y"].map(OsString::from);
            // As few words as each takes.
            let typed = (1..=words.len()).find_map(|count| args::parse_inside(&words[..count], &inside).ok());
            let Some(mut typed) = typed else { continue };
            let Some(given) = &mut typed.cli.command else { continue };
            let is_settled = given.settle_inside().is_ok();
            assert_eq!(is_settled, effect(command.get_name()).is_some(), "{}", command.get_name());
        }
    }

    #[test]
    fn what_needs_a_terminal_is_refused_and_nothing_else() {
        for (typed, refused) in [
            ("rewind t5", None),
            ("rewind t5 --scope both --copy", None),
            ("undo --diff --preview", None),
            ("rewind t5 --all-workspaces", Some("`--all-workspaces` is for a terminal")),
            ("rewind t5 --scope both --resume", Some("`--resume` is for a terminal")),
            ("undo t3 --diff", Some("`--diff` is for a terminal")),
            ("undo t3 --patch", Some("`--patch` is for a terminal")),
            ("rewind t3 -p", Some("`--patch` is for a terminal")),
        ] {
            let found = settled(typed).err().map(|failure| (failure.code, failure.message));
            match (found, refused) {
                (None, None) => {}
                (Some((code, message)), Some(text)) => {
                    assert!(code == Code::OnlyInTerminal && message.starts_with(text), "{typed}: {message}");
                }
                (found, _) => panic!("{typed}: {found:?}"),
            }
        }
    }

    #[test]
    fn every_example_is_one_that_can_be_used_where_it_is_shown() {
        for (verb, examples) in EXAMPLES {
            assert!(!examples.is_empty(), "{verb}");
            for example in examples {
                match example {
                    Example::Call(typed, _) => assert!(settled(typed).is_ok(), "{typed}"),
                    // A shell's own signs, or what is refused in here.
                    Example::Shell(line, _) => {
                        let is_refused = || line.strip_prefix("piton ").is_some_and(|typed| settled(typed).is_err());
                        assert!(line.contains(['|', '>']) || is_refused(), "{line}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_page_says_commands_as_they_are_typed_where_it_is_read() {
        let inside = Inside::new(SessionId::of("an agent", "s1"), Path::new("/w"));
        for (verb, _) in EXAMPLES {
            let page = args::parse_inside(&[verb.into(), "--help".into()], &inside).err().unwrap().text(&inside);
            assert!(page.contains(&format!("Usage: /piton {verb}")), "{page}");
            assert!(page.contains(&format!("\n  /piton {verb}")), "{page}");
            let named = page.split("`piton ").skip(1).filter_map(|rest| rest.split([' ', '`']).next());
            let wrong: Vec<&str> = named.filter(|verb| effect(verb).is_some()).collect();
            assert!(wrong.is_empty(), "{verb}: {wrong:?}");
            assert!(!page.lines().any(|line| line.trim_start().starts_with("piton ")), "{page}");
        }
    }

    #[test]
    fn a_flag_that_is_refused_in_here_is_for_a_terminal() {
        let inside = settled("undo").unwrap();
        assert_eq!(inside.flag(&flag("--all-workspaces")), "`--all-workspaces` in a terminal");
        assert_eq!(inside.flag(&flag("--path").arg("a b")), "`--path 'a b'`");
    }

    #[test]
    fn a_call_is_said_as_it_is_typed_here_or_is_for_a_terminal() {
        let check = |typed: &str, call: &Call, expected: &str| {
            assert_eq!(settled(typed).unwrap().call(call), expected, "{typed}");
        };
        check("undo", &call("redo"), "`/piton redo`");
        check("undo", &call("undo").arg("t3").there("/w x"), "`/piton undo t3`");
        check("undo", &call("undo").there("/b"), "`/piton undo --workspace /b`");
        check("undo --workspace /b", &call("redo"), "`/piton redo --workspace /b`");
        check("undo --workspace /b", &call("undo").there("/w x"), "`/piton undo --workspace '/w x'`");
        check("undo", &call("verify"), "`piton verify --workspace '/w x'` in a terminal");
        check("undo", &call("init").arg("--force"), "`piton init --force '/w x'` in a terminal");
        check("undo", &call("help").arg("undo"), "`/piton help undo`");
        check("undo", &call("help").arg("config"), "`piton help config` in a terminal");
        check("undo", &call("setup"), "`piton setup` in a terminal");
        let session = SessionId::of("an agent", "s1");
        check("undo", &call("log").of_session(&session), "`/piton log`");
        let other = SessionId::of("an agent", "s2");
        check("undo", &call("log").of_session(&other), &format!("`/piton log --session {}`", other.short()));
    }
}
