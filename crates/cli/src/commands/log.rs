//! `piton log`: what happened, newest first.

mod checkpoints;
mod timeline;

use std::path::Path;

use piton_engine::model::target::meant_age;
use piton_engine::model::{Timestamp, When};
use piton_engine::view::{Cursor, LogEntry, Timeline};
use piton_engine::{LogOptions, TimelineOptions, Workspace};
use piton_wording::escape::escape_path;
use piton_wording::owners::Names;
use piton_wording::{Code, Failure, Style, Text, Titles, call, did_you_mean, flag, text, words};

use crate::args::Global;
use crate::console::Console;
use crate::environment::Surroundings;
use crate::help::Example;
use crate::inside::Inside;
use crate::paths::PathArgs;
use crate::titles;

pub use piton_wording::timeline::{Around, Detail};
pub use timeline::write;

/// Show what happened, turn by turn, newest first
///
/// One line for each turn of an agent: what to type to rewind to just before it (`t3`, or `kmzq:t3` for a session
/// that is not the last one), when it was, the prompt, and how many paths it created (+), modified (~) and deleted
/// (-), or none (=). Below it: what you changed yourself, what may be yours or the agent's (unsure), and what could not be
/// captured (gap). `*` marks checkpoints made by hand, `↶` undos, `↻` redos, and `↺` rewinds, forks, summaries and all
/// else that piton did. With `--checkpoints`, `*` marks the newest checkpoint instead. The end of the line says if the turn is running, failed, was interrupted or was taken back, and if the agent compacted its conversation in
/// it; `note` is your note on it. `piton show t3` has the whole prompt.
///
/// Turns after the point that a conversation was rewound to are future turns: left out here, and counted at the end.
/// `--future` shows them, marked; `piton redo` goes back to them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show the tool calls of each turn
    #[arg(long, conflicts_with = "checkpoints")]
    steps: bool,
    /// List every changed path, who changed it, and how that is known
    #[arg(long, conflicts_with = "checkpoints")]
    files: bool,
    #[command(flatten)]
    paths: PathArgs,
    /// Only this session: the beginning of its id, or its name
    #[arg(long, value_name = "SESSION", conflicts_with = "checkpoints")]
    session: Option<String>,
    /// Only what happened in the last 10m, 2h, 3d
    #[arg(long, value_name = "AGE", conflicts_with = "checkpoints")]
    since: Option<String>,
    /// Also show future turns: those after the point that the conversation was rewound to
    #[arg(long, conflicts_with = "checkpoints")]
    future: bool,
    /// Show at most N entries [default: the newest 20 if no other option narrows them down; all into a file or pipe]
    #[arg(short = 'n', long = "limit", value_name = "N")]
    limit: Option<u64>,
    /// Show everything, even on a terminal
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Continue where a page ended: the `next` of its --json
    #[arg(long, value_name = "CURSOR", conflicts_with = "checkpoints")]
    before: Option<Cursor>,
    /// List every checkpoint in one flat list, including automatic ones
    #[arg(long, conflicts_with_all = ["paths", "paths_b64"])]
    checkpoints: bool,
}

pub const EXAMPLES: [Example; 8] = [
    Example::Call("log", ""),
    Example::Call("log --all", "everything, not just the newest 20"),
    Example::Call("log --steps -n 3", "the last three entries, tool by tool"),
    Example::Call("log --files --path src/auth.ts", "who changed it, and when"),
    Example::Call("log --since 2h", ""),
    Example::Call("log --future", "with the turns after the rewind point"),
    Example::Shell("piton log -n 50 --json | jq -r .next", "the cursor of the next page, for --before"),
    Example::Shell("piton log --checkpoints --json | jq -r '.checkpoints[].id'", ""),
];

/// As many entries are enough to see what happened last.
const NEWEST: u64 = 20;

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let workspace = surroundings.open(console)?;
    if args.checkpoints {
        return run_flat(args, &workspace, console);
    }
    let session = match &args.session {
        Some(typed) => Some(workspace.session_meant(Some(typed), typed)?.session.id),
        None => None,
    };
    // Whoever narrows it down wants all of that; and a file or a pipe gets all of everything.
    let is_narrowed = args.session.is_some() || args.since.is_some() || !args.paths.paths.is_empty();
    let is_read = !console.is_json() && (console.look.terminal || Inside::of_process().is_some());
    let usual = (is_read && !args.all && !is_narrowed).then_some(NEWEST);
    let options = TimelineOptions {
        limit: args.limit.or(usual),
        before: args.before.clone(),
        session,
        paths: args.paths.resolve(workspace.path(), &surroundings.here)?,
        since: args.since.as_deref().map(|typed| since(typed, console.look.now.at)).transpose()?,
        future: args.future,
    };
    let shown = workspace.timeline(&options)?;
    if shown.begin_again {
        let why = "that page's records were removed or rebuilt since";
        return Err(Failure::user(Code::Arguments, why).hint(text![call("log"), " begins again"]));
    }
    let around = if console.is_json() { Around::default() } else { around(&workspace, &shown)? };
    let detail = Detail { steps: args.steps, files: args.files };
    console.print(&shown, |out, look| write(out, look, &shown, &around, detail))?;
    let is_whole = options.session.is_none() && options.paths.is_empty() && options.since.is_none();
    if shown.total == 0 && is_whole && workspace.log(LogOptions { limit: Some(1) })?.total == 0 {
        console.advise(text!["nothing has been captured here yet; ", call("checkpoint"), " captures the workspace"]);
    } else if shown.total == 0 {
        console.advise(args.nothing());
    }
    if shown.older > 0 && args.limit.is_none() {
        let (rest, more) = (words::grouped(shown.older), call("log").arg("-n").arg((5 * NEWEST).to_string()));
        let text =
            text![rest, " older: ", more, ", ", call("log").arg("--all"), ", ", call("log").with("--since", "2h")];
        console.advise(text.in_style(Style::Dim));
    } else {
        tell_rest(console, shown.older);
    }
    surroundings.say_earlier_turns(console, &workspace);
    if shown.future > 0 && !args.future {
        let text = text![words::plural(shown.future, "future turn"), ": ", call("log").arg("--future")];
        console.advise(text.in_style(Style::Dim));
    }
    Ok(())
}

fn run_flat(args: &Args, workspace: &Workspace, console: &mut Console) -> Result<(), Failure> {
    let mut log = workspace.log(LogOptions { limit: args.limit })?;
    // A person gets the size of one with `show`.
    if console.is_json() {
        workspace.measure(&mut log.checkpoints)?;
    }
    let log = log;
    let (titles, names) = if console.is_json() {
        (Titles::default(), Names::default())
    } else {
        let names = Names::of(&workspace.sessions()?.sessions);
        (titles::of_all(workspace, &names)?, names)
    };
    console.print(&log, |out, look| checkpoints::write(out, look, &log, workspace.line(), &titles, &names))?;
    if log.total == 0 {
        console.advise(text!["nothing has been captured here yet; ", call("checkpoint"), " captures the workspace"]);
    }
    tell_rest(console, log.total - log.checkpoints.len() as u64);
    Ok(())
}

fn tell_rest(console: &mut Console, rest: u64) {
    if rest > 0 {
        let text = text![words::grouped(rest), " older: ", call("log").arg("--all")];
        console.advise(text.in_style(Style::Dim));
    }
}

/// What a timeline does not say by itself.
pub fn around(workspace: &Workspace, shown: &Timeline) -> Result<Around, Failure> {
    let sessions = workspace.sessions()?.sessions;
    let names = Names::of(&sessions);
    let any = shown.entries.iter().any(|entry| matches!(entry, LogEntry::Operation(_)));
    let titles = if any { titles::of_all(workspace, &names)? } else { Titles::default() };
    Ok(Around { names, sessions, titles, line: workspace.line() })
}

/// The moment that an age means.
pub fn since(typed: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    match typed.parse() {
        Ok(When::Age(ms)) => Ok(Timestamp(now.0.saturating_sub(ms))),
        _ => Err(Failure::user(Code::Arguments, format!("`{typed}` is not an age"))
            .hints(meant_age(typed).and_then(|age| did_you_mean(&[age.to_string()])))
            .hint(text!["an age is a number and s, m, h or d, as in ", flag("--since").arg("10m")])),
    }
}

impl Args {
    /// What an empty log means: what was asked for did not happen.
    fn nothing(&self) -> Text {
        let all = call("log").arg("--checkpoints");
        if self.before.is_some() {
            return "nothing older".into();
        }
        let paths: Vec<_> = self.paths.paths.iter().map(|path| escape_path(Path::new(path))).collect();
        let what = match &paths[..] {
            [] if self.paths.paths_b64.is_empty() => "nothing happened".to_owned(),
            [] => "nothing changed there".to_owned(),
            paths => {
                let paths: Vec<_> = paths.iter().map(|path| format!("`{path}`")).collect();
                format!("nothing changed {}", paths.join(" or "))
            }
        };
        let session = self.session.as_deref().map(|session| format!(" in session {session}")).unwrap_or_default();
        let since = self.since.as_deref().map(|age| format!(" in the last {age}")).unwrap_or_default();
        if self.since.is_none() && self.session.is_none() && what == "nothing happened" {
            return text!["no turn is recorded here yet; ", all, " lists every checkpoint"];
        }
        format!("{what}{session}{since}").into()
    }
}
