//! Piton's hooks in Claude Code's settings file.
//!
//! Text in, text out: the command line reads, backs up and writes the file. Nothing but piton's own entries changes,
//! and [`remove`] after [`install`] restores the text byte for byte. An entry is piton's when its command runs `piton
//! hook claude-code` and nothing else, whatever folder that `piton` is in.

use std::ops::Range;
use std::path::PathBuf;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;

use super::tools;
use crate::jsonc::{self, Container, Json, Style, put_in, quoted, take_out};
use crate::setup::{BadSettings, Installed, InstalledHook};

/// The events that get a hook, in the order in which they are added.
///
/// `PostToolBatch` comes when all hooks after the tools that were called together have ended: what a formatter among them
/// changed until then is not the user's. A subagent's tools report themselves, so its start and end events tell piton
/// nothing new.
pub const EVENTS: [&str; 10] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "PreCompact",
    "SessionEnd",
];

/// The setting that disables all hooks.
pub const OFF_SWITCH: &str = "disableAllHooks";

/// Seconds after which Claude Code stops a hook; far more than piton's own budget, which should run out first.
pub const TIMEOUT: u32 = 30;

/// What may follow `piton hook claude-code` in one of piton's hooks: what this piton writes, and earlier forms of it.
const TAILS: [&str; 6] = [SILENT, "", "|| true", "|| :", "2>/dev/null", "2>/dev/null || true"];
const SILENT: &str = "2>/dev/null || :";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// Absolute: a hook's `PATH` is not the user's.
    pub program: PathBuf,
}

impl HookCommand {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// As a shell runs it: it exits with 0 and prints nothing, even if the program is missing or dies, because a hook
    /// that exits with 2 stops the agent's tool.
    pub fn text(&self) -> Result<String, BadSettings> {
        let quoted = self.program.to_str().and_then(|program| shlex::try_quote(program).ok());
        match quoted {
            Some(program) => Ok(format!("{program} hook {} {SILENT}", super::NAME)),
            None => Err(BadSettings::Program { path: self.program.clone() }),
        }
    }

    /// The command in a hook's text; `None` if the hook is not piton's. One that does more than piton wrote is the
    /// user's own.
    pub fn of(text: &str) -> Option<Self> {
        // A comment at the end swallows the mark.
        let words = shlex::split(&format!("{} {MARK}", text.trim_end()))?;
        let [program, hook, agent, tail @ .., MARK] = &words.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
            return None;
        };
        let program = PathBuf::from(program);
        let is_piton = matches!(program.file_name()?.to_str()?, "piton" | "piton.exe");
        let is_hook = *hook == "hook" && *agent == super::NAME && TAILS.contains(&&tail.join(" ")[..]);
        (is_piton && is_hook).then_some(Self { program })
    }
}

const MARK: &str = ".";

/// Adds piton's hooks, or updates existing ones. An empty text becomes a new settings file.
pub fn install(text: &str, command: &HookCommand) -> Result<String, BadSettings> {
    let command = command.text()?;
    let (mark, body) = split_mark(text);
    if body.trim().is_empty() {
        let hooks = EVENTS.into_iter().map(|event| (event, Json::List(vec![group(event, &command)]))).collect();
        let root = Json::Object(vec![("hooks", Json::Object(hooks))]);
        return Ok(format!("{}\n", Style::tidy().write(None, &root, true, "")));
    }
    let mut body = retire(body)?;
    for event in EVENTS {
        body = put(&body, event, &command)?;
    }
    Ok(format!("{mark}{body}"))
}

/// Removes piton's hooks and whatever was added with them. A file that was empty before is empty again.
pub fn remove(text: &str) -> Result<String, BadSettings> {
    let (mark, body) = split_mark(text);
    let mut body = body.to_owned();
    loop {
        if body.trim().is_empty() {
            return Ok(format!("{mark}{body}"));
        }
        let root = Settings::read(&body)?;
        // In the reverse order of adding: then each step finds the text that its counterpart left.
        let last = root.ours().into_iter().max_by_key(|ours| (ours.rank(), ours.place.start));
        let Some(last) = last else { return Ok(format!("{mark}{body}")) };
        body = last.taken_out(&body, &root);
    }
}

/// What a settings file contains of piton's.
pub fn installed(text: &str) -> Result<Installed, BadSettings> {
    let (_, body) = split_mark(text);
    if body.trim().is_empty() {
        return Ok(Installed { missing: EVENTS.into(), ..Installed::default() });
    }
    let root = Settings::read(body)?;
    let hooks = root.ours().into_iter().map(|ours| InstalledHook {
        narrowed_to: ours.matches.filter(|text| is_narrower(&ours.event, text)),
        event: ours.event,
        text: ours.text,
        program: ours.command.program,
        timeout: ours.timeout,
    });
    let hooks: Vec<InstalledHook> = hooks.collect();
    let missing = EVENTS.into_iter().filter(|event| hooks.iter().all(|hook| hook.event != *event)).collect();
    let disabled = root.object.get_boolean(OFF_SWITCH).is_some_and(|flag| flag.value);
    let set = root.object.get_object("env").map(|env| &env.properties[..]).unwrap_or_default();
    let variables = set.iter().filter_map(|one| Some((one.name.as_str().to_owned(), one.value.as_string_lit()?)));
    let variables = variables.filter(|(name, _)| name.starts_with("PITON_"));
    let variables = variables.map(|(name, value)| (name, value.value.clone().into_owned())).collect();
    // Claude Code reads plain JSON: a comment makes it skip the whole file, hooks and all.
    let plain = serde_json::from_str::<serde::de::IgnoredAny>(body);
    let skipped = plain.err().map(|error| format!("it is not plain JSON (a comment, for example): {error}"));
    Ok(Installed { hooks, missing, disabled, skipped, variables })
}

/// A byte order mark and the rest.
fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start_matches('\u{feff}').len())
}

/// What piton adds for an event.
fn group(event: &str, command: &str) -> Json {
    let hook = vec![
        ("type", Json::Text("command".into())),
        ("command", Json::Text(command.into())),
        ("timeout", Json::Number(TIMEOUT)),
    ];
    let mut group = vec![("hooks", Json::List(vec![Json::Object(hook)]))];
    if let Some(matcher) = matcher(event) {
        group.insert(0, ("matcher", Json::Text(matcher)));
    }
    Json::Object(group)
}

fn matcher(event: &str) -> Option<String> {
    matches!(event, "PreToolUse" | "PostToolUse" | "PostToolUseFailure").then(tools::matcher)
}

/// Whether some tools that may change files do not run an event's hook, because its matcher differs from piton's.
fn is_narrower(event: &str, given: &str) -> bool {
    matcher(event).is_some_and(|ours| given != ours && !matches!(given, "" | "*" | ".*"))
}

/// Removes duplicates, and hooks that piton no longer installs.
fn retire(body: &str) -> Result<String, BadSettings> {
    let mut body = body.to_owned();
    loop {
        let root = Settings::read(&body)?;
        let ours = root.ours();
        let is_first = |at: usize| ours[..at].iter().all(|other| other.event != ours[at].event);
        let stale = (0..ours.len()).rev().find(|at| !EVENTS.contains(&ours[*at].event.as_str()) || !is_first(*at));
        let Some(stale) = stale else { return Ok(body) };
        body = ours[stale].taken_out(&body, &root);
    }
}

/// Makes sure that an event has piton's hook.
fn put(body: &str, event: &'static str, command: &str) -> Result<String, BadSettings> {
    let root = Settings::read(body)?;
    let style = Style::of(body, &root.object);
    let new = group(event, command);
    let Some(hooks) = root.hooks()? else {
        let hooks = Json::Object(vec![(event, Json::List(vec![new]))]);
        return Ok(put_in(body, &Container::from(&root.object), Some("hooks"), &hooks, &style));
    };
    let Some(groups) = hooks.get(event) else {
        return Ok(put_in(body, &Container::from(hooks), Some(event), &Json::List(vec![new]), &style));
    };
    let Value::Array(groups) = &groups.value else {
        return Err(BadSettings::Shape { what: format!("`hooks.{event}` of the settings"), expected: "a list" });
    };
    let Some(ours) = root.ours().into_iter().find(|ours| ours.event == event) else {
        return Ok(put_in(body, &Container::from(groups), None, &new, &style));
    };
    // From the back, so that the first change does not shift the second.
    let mut changes = vec![(ours.place, command.to_owned())];
    changes.extend(ours.matcher.zip(matcher(event)));
    changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    Ok(changes.into_iter().fold(body.to_owned(), |body, (place, text)| jsonc::replace(&body, place, &quoted(&text))))
}

/// A settings file, parsed as far as piton needs it.
struct Settings<'a> {
    object: Object<'a>,
}

/// One of piton's hooks, with its location from the inside out.
struct Ours {
    event: String,
    text: String,
    command: HookCommand,
    /// The location of its command.
    place: Range<usize>,
    /// The matcher of its group, if the group contains nothing else.
    matcher: Option<Range<usize>>,
    /// The matcher's text, even if the group contains other hooks.
    matches: Option<String>,
    timeout: Option<f64>,
    /// Its containers, with its index in each: the hooks of its group if there are others, the groups of its event, the
    /// events, the settings.
    held: Vec<(Container, usize)>,
}

impl<'a> Settings<'a> {
    fn read(body: &'a str) -> Result<Self, BadSettings> {
        let value = jsonc::parse(body).map_err(|e| BadSettings::Json { message: e.to_string() })?;
        let Some(Value::Object(object)) = value else {
            return Err(BadSettings::Shape { what: "the settings file".into(), expected: "a JSON object" });
        };
        once(&object.properties, |name| name == "hooks")?;
        if let Some(hooks) = object.get_object("hooks") {
            once(&hooks.properties, |_| true)?;
        }
        Ok(Self { object })
    }

    /// The hooks of all events.
    fn hooks(&self) -> Result<Option<&Object<'a>>, BadSettings> {
        match self.object.get("hooks").map(|prop| &prop.value) {
            None => Ok(None),
            Some(Value::Object(hooks)) => Ok(Some(hooks)),
            Some(_) => Err(BadSettings::Shape { what: "`hooks` of the settings".into(), expected: "an object" }),
        }
    }

    /// Every hook of piton's, in file order.
    fn ours(&self) -> Vec<Ours> {
        let mut found = Vec::new();
        let named_hooks = self.object.properties.iter().position(|prop| prop.name.as_str() == "hooks");
        let (Some(in_root), Ok(Some(hooks))) = (named_hooks, self.hooks()) else { return found };
        for (in_hooks, event) in hooks.properties.iter().enumerate() {
            let Value::Array(groups) = &event.value else { continue };
            for (in_event, group) in groups.elements.iter().enumerate() {
                let Some(group) = group.as_object() else { continue };
                let Some(entries) = group.get_array("hooks") else { continue };
                let commands: Vec<_> = entries.elements.iter().map(command_of).collect();
                let shared = commands.iter().any(Option::is_none);
                for (in_group, command) in commands.into_iter().enumerate() {
                    let Some((place, text, command)) = command else { continue };
                    let mut held = vec![
                        (Container::from(groups), in_event),
                        (Container::from(hooks), in_hooks),
                        (Container::from(&self.object), in_root),
                    ];
                    if entries.elements.len() > 1 {
                        held.insert(0, (Container::from(entries), in_group));
                    }
                    let matcher = group.get_string("matcher");
                    let entry = entries.elements[in_group].as_object();
                    let timeout = entry.and_then(|entry| entry.get_number("timeout")?.value.parse().ok());
                    found.push(Ours {
                        matches: matcher.map(|matcher| matcher.value.clone().into_owned()),
                        timeout,
                        event: event.name.as_str().to_owned(),
                        text,
                        command,
                        place,
                        matcher: matcher.filter(|_| !shared).map(range),
                        held,
                    });
                }
            }
        }
        found
    }
}

impl Ours {
    /// Its event's position in the order of adding; last if piton does not add it.
    fn rank(&self) -> usize {
        EVENTS.iter().position(|event| *event == self.event).unwrap_or(EVENTS.len())
    }

    /// The text without it and without what was added with it.
    fn taken_out(&self, body: &str, root: &Settings<'_>) -> String {
        if let Some(text) = self.held.iter().find_map(|(container, index)| take_out(body, container, *index)) {
            return text;
        }
        let place = range(&root.object);
        match (&body[..place.start], &body[place.end..]) {
            ("", "\n") => String::new(),
            _ => jsonc::replace(body, place, "{}"),
        }
    }
}

/// The command of an entry, if it is piton's.
fn command_of(entry: &Value<'_>) -> Option<(Range<usize>, String, HookCommand)> {
    let text = entry.as_object()?.get_string("command")?;
    Some((range(text), text.value.to_string(), HookCommand::of(&text.value)?))
}

fn range(node: &impl Ranged) -> Range<usize> {
    node.start()..node.end()
}

/// Checks that no key of interest is duplicated.
fn once(properties: &[ObjectProp<'_>], of_interest: impl Fn(&str) -> bool) -> Result<(), BadSettings> {
    for (at, property) in properties.iter().enumerate() {
        let name = property.name.as_str();
        if of_interest(name) && properties[..at].iter().any(|other| other.name.as_str() == name) {
            return Err(BadSettings::Twice { key: name.to_owned() });
        }
    }
    Ok(())
}
