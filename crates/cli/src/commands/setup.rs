//! `piton setup`: make an agent report to piton, or stop it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use piton_agents::setup::{BadSettings, CommandFile, StatusLine};
use piton_agents::{Agent, Agents, Setup};
use piton_engine::view::Captured;
use piton_engine::{CaptureOptions, Clock, SystemClock, TargetError};
use piton_wording::escape::escape_path;
use piton_wording::words::{changes, label};
use piton_wording::{Code, Failure, call, flag, text};
use serde::Serialize;

use crate::agent_files;
use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::{self, Surroundings};
use crate::progress::with_progress;
use crate::settings::shown;

/// Connect an agent to piton, so that each of its steps is captured
///
/// Adds piton's hooks to the agent's settings file and keeps everything else in it: other hooks, comments, order. A
/// copy of the original file is kept beside it. It also adds the command /piton for use inside the agent, and
/// captures this workspace once, because the first capture takes longest. Running it again changes nothing.
///
/// By default that is your own settings file, so that every project is protected, even one that you have not thought
/// of. With --project it is this workspace's own, in the file that is not shared through git, because a hook contains
/// the path of piton on this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = examples())]
pub struct Args {
    #[arg(help = which_agent())]
    #[arg(value_name = "AGENT", default_value = usual_agent().name, hide_default_value = true)]
    #[arg(value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    agent: String,
    /// For all projects: your own settings file (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// For this workspace alone
    #[arg(long)]
    project: bool,
    /// Remove what was added; checkpoints are kept
    #[arg(long)]
    remove: bool,
    /// Do not capture the workspace now
    #[arg(long, conflicts_with = "remove")]
    no_capture: bool,
    /// Show the last turn, and whether it was taken back, in the agent's status line; nothing else is added
    ///
    /// A status line of your own is never replaced: call `piton status --short` in it instead. With --remove, piton's
    /// is removed.
    #[arg(long)]
    status_line: bool,
}

/// `The agent: one or another, or generic for how any other can report`.
fn which_agent() -> String {
    let agents = Agents::default();
    let (with, without): (Vec<_>, Vec<_>) = agents.iter().partition(|agent| agent.setup.is_some());
    let names = |agents: &[Agent]| agents.iter().map(|agent| agent.name).collect::<Vec<_>>().join(" or ");
    format!("The agent: {}, or {} for how any other can report", names(&with), names(&without))
}

fn examples() -> String {
    let usual = usual_agent();
    let (name, title) = (usual.name, usual.title);
    let mut text = format!(
        "\
Examples:
  piton setup                          {title}, in every project
  piton setup {name} --project    {title}, in this workspace alone
  piton setup --remove
  piton setup --status-line            the last turn in {title}'s status line
  piton doctor                         proves that it works

Environment:"
    );
    for agent in Agents::default().iter() {
        let Some(files) = agent.setup.map(Setup::files) else { continue };
        let (variable, title, folder) = (files.variable, agent.title, files.folder);
        text += &format!("\n  {variable}   where {title} keeps your settings [default: ~/{folder}]");
    }
    text
}

const GENERIC: &str = "\
There is no settings file to edit: an agent or script reports by itself. Before and after
each tool, and at each prompt, it writes one line of JSON to `piton hook generic`:

  echo '{\"event\":\"prompt\",\"session\":\"run-1\",\"cwd\":\"'\"$PWD\"'\",\"text\":\"add a login page\"}' \\
    | piton hook generic

docs/events.md in piton's repository has every event and field. An agent that cannot report
is protected as a whole: piton run -- COMMAND";

/// What `--json` prints.
#[derive(Serialize)]
struct Done {
    agent: &'static str,
    scope: Scope,
    /// The settings file.
    settings: String,
    hooks: Change,
    /// The settings file as it was, where one was made now.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
    /// The file of the command inside the agent.
    command: String,
    command_file: Change,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Captured>,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    User,
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    Added,
    Updated,
    /// It was there already.
    Unchanged,
    Removed,
    /// There was nothing to remove.
    Absent,
    /// A file of the user's own is in its place, or one that its user has changed.
    Kept,
}

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let agent = Agents::default().of_session(&args.agent);
    let Some(setup) = agent.setup else {
        return console.print(&serde_json::json!({ "agent": args.agent, "explanation": GENERIC }), |out, _| {
            writeln!(out, "{GENERIC}")
        });
    };
    let surroundings = Surroundings::read(global)?;
    let scope = if args.project { Scope::Project } else { Scope::User };
    let places = Places::of(scope, agent, setup, &surroundings)?;
    if args.status_line {
        return set_status_line(&places, args.remove, console);
    }
    let mut done = if args.remove { take_out(&places)? } else { put_in(&places)? };
    if !args.remove && !args.no_capture {
        match first_capture(&surroundings, console) {
            Ok(captured) => done.checkpoint = captured,
            // The hooks are in place, and the next event captures what this could not.
            Err(failure) => {
                done.notes.push(format!("this folder was not captured: {}", failure.message));
                done.notes.extend(failure.hints.iter().take(1).map(|hint| hint.said(console.talk.surface.as_ref())));
            }
        }
    }
    console.print_done(&done, |out, look| write(out, look, agent, &done))?;
    for note in &done.notes {
        console.advise(piton_wording::note(note));
    }
    if matches!(done.hooks, Change::Added | Change::Updated) {
        console.advise(text![
            "Restart running sessions so that they use it; ",
            call("doctor"),
            " proves that it works"
        ]);
    }
    Ok(())
}

/// The agent that is meant where none is named.
pub fn usual_agent() -> Agent {
    let agents = Agents::default();
    agents.iter().find(|agent| agent.setup.is_some()).unwrap_or_else(|| agents.of_session(""))
}

/// The names of all agents.
pub fn names() -> Vec<&'static str> {
    Agents::default().iter().map(|agent| agent.name).collect()
}

/// Where an agent's files are.
struct Places {
    agent: Agent,
    setup: &'static dyn Setup,
    scope: Scope,
    settings: PathBuf,
    command: PathBuf,
}

impl Places {
    fn of(scope: Scope, agent: Agent, setup: &'static dyn Setup, surroundings: &Surroundings) -> Result<Self, Failure> {
        let files = setup.files();
        let (folder, file) = match scope {
            Scope::User => (user_folder(agent, setup)?, files.user),
            Scope::Project => {
                (surroundings.folder()?.join(files.folder), files.project.last().copied().unwrap_or(files.user))
            }
        };
        Ok(Self { agent, setup, scope, settings: folder.join(file), command: folder.join(files.command.path) })
    }

    fn done(&self, hooks: Change, command_file: Change) -> Done {
        Done {
            agent: self.agent.name,
            scope: self.scope,
            settings: self.settings.to_string_lossy().into_owned(),
            hooks,
            backup: None,
            command: self.command.to_string_lossy().into_owned(),
            command_file,
            checkpoint: None,
            notes: Vec::new(),
        }
    }
}

/// What `--status-line --json` prints.
#[derive(Serialize)]
struct LineDone {
    agent: &'static str,
    scope: Scope,
    settings: String,
    status_line: Change,
    /// The command of the user's own, which was left as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
}

/// Puts piton's status line into an agent's settings, or takes it out.
fn set_status_line(places: &Places, removes: bool, console: &mut Console) -> Result<(), Failure> {
    let program = if removes { PathBuf::new() } else { program()?.0 };
    let settings = places.settings.to_string_lossy().into_owned();
    let unchanged = if removes { Change::Absent } else { Change::Unchanged };
    let mut done = LineDone {
        agent: places.agent.name,
        scope: places.scope,
        settings,
        status_line: unchanged,
        users: None,
        backup: None,
    };
    let mut was_empty = false;
    let new = edit(&places.settings, |old| {
        let text = old.unwrap_or_default();
        (done.status_line, done.users) = (unchanged, None);
        let put = if removes { None } else { Some(places.setup.put_status_line(text, &program)) };
        let new = match put {
            None => places.setup.take_status_line(text).map_err(|bad| unusable(&places.settings, &bad))?,
            Some(None) => {
                let what = format!("{} has no status line", places.agent.title);
                return Err(Failure::user(Code::AgentSettings, what));
            }
            Some(Some(put)) => match put.map_err(|bad| unusable(&places.settings, &bad))? {
                StatusLine::Put(new) => new,
                StatusLine::Users(command) => {
                    (done.status_line, done.users) = (Change::Kept, command);
                    text.to_owned()
                }
            },
        };
        if new != text {
            done.status_line = if removes { Change::Removed } else { Change::Added };
            if let Some(old) = old.filter(|_| !removes) {
                done.backup = Some(back_up(&places.settings, old.as_bytes(), Change::Updated)?);
            }
        }
        was_empty = old.is_none();
        Ok(new)
    })?;
    if done.status_line == Change::Removed && new.is_empty() && !was_empty && !agent_files::is_link(&places.settings) {
        agent_files::remove(&places.settings).map_err(|error| refused(&places.settings, &error))?;
    }
    let (title, file) = (places.agent.title, shown(&places.settings));
    console.print_done(&done, |out, look| {
        let headline = match done.status_line {
            Change::Added | Change::Updated => format!("{title}'s status line shows the last turn now"),
            Change::Unchanged => format!("already set up: {title}'s status line is piton's"),
            Change::Removed => format!("{title}'s status line is no longer piton's"),
            Change::Absent => format!("nothing to remove: {title}'s status line is not piton's"),
            Change::Kept => format!("{title} has a status line of yours, which was left as it is"),
        };
        writeln!(out, "{}", look.paint.bold(headline))?;
        writeln!(out, "  settings  {file}")?;
        match &done.backup {
            Some(backup) => writeln!(out, "  backup    {}", shown(Path::new(backup))),
            None => Ok(()),
        }
    })?;
    if done.status_line == Change::Kept {
        console.advise(text!["call ", call("status").arg("--short"), " in it to have both"]);
    }
    Ok(())
}

/// Where an agent keeps the user's settings.
pub fn user_folder(agent: Agent, setup: &dyn Setup) -> Result<PathBuf, Failure> {
    let home = environment::variable("HOME").or_else(|| etcetera::home_dir().ok());
    let folder = setup.user_folder(home.as_deref(), &|name| environment::variable(name)).ok_or_else(|| {
        let (title, variable) = (agent.title, setup.files().variable);
        Failure::user(
            Code::AgentSettings,
            format!("there is no home folder, so it is not known where {title}'s settings are"),
        )
        .hint(text![format!("set HOME or {variable}, or use "), flag("--project")])
    })?;
    std::path::absolute(&folder).map_err(|error| refused(&folder, &error))
}

const BACKUP: &str = ".piton-backup";
/// So many copies can be made in one second.
const COPIES: usize = 20;
/// Who else writes to the file at this moment will have done so after a few tries.
const TRIES: usize = 5;

fn put_in(places: &Places) -> Result<Done, Failure> {
    let (program, notes) = program()?;
    let mut done = places.done(Change::Unchanged, Change::Unchanged);
    done.notes = notes;
    edit(&places.settings, |old| {
        let text = old.unwrap_or_default();
        let new = places.setup.install(text, &program).map_err(|bad| unusable(&places.settings, &bad))?;
        if new == text {
            done.hooks = Change::Unchanged;
            return Ok(new);
        }
        let before = places.setup.installed(text).map_err(|bad| unusable(&places.settings, &bad))?;
        done.hooks = if before.hooks.is_empty() { Change::Added } else { Change::Updated };
        if let Some(old) = old {
            done.backup = Some(back_up(&places.settings, old.as_bytes(), done.hooks)?);
        }
        Ok(new)
    })?;
    let now = agent_files::read(&places.settings).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    let now = now.and_then(|text| places.setup.installed(&text).ok());
    if let Some(why) = now.as_ref().and_then(|installed| installed.skipped.as_ref()) {
        let (title, file) = (places.agent.title, shown(&places.settings));
        done.notes.push(format!("{title} skips the whole of {file}, so nothing is reported: {why}"));
    }
    if now.is_some_and(|installed| installed.disabled) {
        done.notes.push(format!(
            "`{}` in {} turns all hooks off",
            places.setup.files().off_switch,
            shown(&places.settings)
        ));
    }
    if places.scope == Scope::Project && is_shared(&places.settings) {
        let file = shown(&places.settings);
        done.notes.push(format!("git does not ignore {file}, which names a path of this machine"));
    }
    done.command_file = put_command(&places.command, &places.setup.files().command)?;
    if done.command_file == Change::Kept {
        done.notes.push(format!("{} is not piton's, and was left as it is", shown(&places.command)));
    }
    Ok(done)
}

/// Keeps a file as it is before it is changed. The plain name is for the file as it was before piton came: what has
/// something of piton's in it gets a name with the time.
fn back_up(path: &Path, bytes: &[u8], change: Change) -> Result<String, Failure> {
    let now = jiff::Timestamp::from_millisecond(SystemClock.now().0).unwrap_or_default();
    let dated = format!("{BACKUP}-{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let plain = (change == Change::Added).then(|| BACKUP.to_owned());
    let more: Vec<String> = (2..=COPIES).map(|number| format!("{dated}-{number}")).collect();
    let kept = agent_files::back_up(path, bytes, plain.into_iter().chain([dated]).chain(more));
    kept.map(|kept| kept.to_string_lossy().into_owned()).map_err(|error| refused(path, &error))
}

fn put_command(path: &Path, command: &CommandFile) -> Result<Change, Failure> {
    let found = agent_files::read(path).map_err(|error| refused(path, &error))?;
    let change = match &found {
        None => Change::Added,
        Some(bytes) if bytes == command.text.as_bytes() => return Ok(Change::Unchanged),
        Some(bytes) if is_our_command(bytes, command) => Change::Updated,
        Some(_) => return Ok(Change::Kept),
    };
    if let Some(found) = &found {
        back_up(path, found, change)?;
    }
    let written = agent_files::replace(path, found.as_deref(), command.text.as_bytes());
    written.map_err(|error| refused(path, &error)).map(|_| change)
}

/// A command file that an earlier piton made.
fn is_our_command(bytes: &[u8], command: &CommandFile) -> bool {
    String::from_utf8_lossy(bytes).contains(command.mark)
}

fn take_out(places: &Places) -> Result<Done, Failure> {
    let mut done = places.done(Change::Absent, Change::Absent);
    let backup = agent_files::with_ending(&places.settings, BACKUP);
    let kept = agent_files::read(&backup).ok().flatten();
    let new = edit(&places.settings, |old| {
        let old = old.unwrap_or_default();
        let new = places.setup.remove(old).map_err(|bad| unusable(&places.settings, &bad))?;
        let new = places.setup.take_status_line(&new).map_err(|bad| unusable(&places.settings, &bad))?;
        done.hooks = if new == old { Change::Absent } else { Change::Removed };
        if done.hooks == Change::Removed && !is_as_added(places.setup, old, &new) {
            done.backup = Some(back_up(&places.settings, old.as_bytes(), done.hooks)?);
        }
        Ok(new)
    })?;
    if done.hooks == Change::Removed {
        // The file was piton's idea, unless an empty one was there before.
        if new.is_empty() && kept.is_none() && !agent_files::is_link(&places.settings) {
            agent_files::remove(&places.settings).map_err(|error| refused(&places.settings, &error))?;
        }
        if kept.is_some_and(|kept| kept == new.as_bytes()) {
            agent_files::remove(&backup).map_err(|error| refused(&backup, &error))?;
        }
    }
    let found = agent_files::read(&places.command).map_err(|error| refused(&places.command, &error))?;
    let command = &places.setup.files().command;
    done.command_file = match found {
        None => Change::Absent,
        Some(bytes) if bytes == command.text.as_bytes() => {
            agent_files::remove(&places.command).map_err(|error| refused(&places.command, &error))?;
            Change::Removed
        }
        Some(_) => Change::Kept,
    };
    if done.command_file == Change::Removed
        && let Some(folder) = places.command.parent()
    {
        agent_files::remove_if_empty(folder);
        if places.scope == Scope::Project
            && let Some(folder) = folder.parent()
        {
            agent_files::remove_if_empty(folder);
        }
    }
    Ok(done)
}

/// Whether what was taken out is to the byte what a setup adds, so that nothing of its user's is lost.
fn is_as_added(setup: &dyn Setup, old: &str, new: &str) -> bool {
    let was = setup.installed(old).ok().and_then(|installed| installed.hooks.into_iter().next());
    was.is_some_and(|hook| setup.install(new, &hook.program).is_ok_and(|again| again == old))
}

/// Changes a text file, again where somebody else changed it in between. A file that is not there and a text that stays
/// the same are left alone.
fn edit(path: &Path, mut change: impl FnMut(Option<&str>) -> Result<String, Failure>) -> Result<String, Failure> {
    for _ in 0..TRIES {
        let bytes = agent_files::read(path).map_err(|error| refused(path, &error))?;
        let text = bytes.as_deref().map(std::str::from_utf8).transpose();
        let text = text.map_err(|_| {
            Failure::user(
                Code::AgentSettings,
                format!("{} is not UTF-8, which JSON is; nothing was changed", shown(path)),
            )
            .hint("save the file as UTF-8")
        })?;
        let new = change(text)?;
        if new == text.unwrap_or_default() {
            return Ok(new);
        }
        let written = agent_files::replace(path, bytes.as_deref(), new.as_bytes());
        if written.map_err(|error| refused(path, &error))? {
            return Ok(new);
        }
    }
    Err(Failure::user(
        Code::AgentSettings,
        format!("{} keeps being changed by somebody else; nothing was changed", shown(path)),
    )
    .hint("run the command again"))
}

/// The program that hooks run: this one, by its real path.
fn program() -> Result<(PathBuf, Vec<String>), Failure> {
    let program = std::env::current_exe().and_then(|program| program.canonicalize()).map_err(|error| {
        Failure::user(Code::ProgramUnknown, format!("it is not known where this piton is: {error}"))
            .hint("run it by its whole path")
    })?;
    if program.file_name().is_none_or(|name| name != "piton") {
        return Err(Failure::user(Code::ProgramUnknown, format!("this program is called {}", escape_path(&program)))
            .hint("hooks are told from others by the name `piton`: rename it"));
    }
    let mut notes = Vec::new();
    if program.components().any(|part| part.as_os_str() == "target") {
        notes.push(format!("{} is in a build folder: when that is cleaned, nothing is captured", shown(&program)));
    }
    let by_name = agent_files::in_path("piton").and_then(|found| found.canonicalize().ok());
    if by_name.as_ref() != Some(&program) {
        let what = match by_name {
            Some(other) => format!("`piton` in your PATH is another one, {}", shown(&other)),
            None => "`piton` is not in your PATH".to_owned(),
        };
        notes.push(format!("{what}; hooks run {}", shown(&program)));
    }
    Ok((program, notes))
}

/// Whether git would take a file up. Where there is no git, nobody does.
fn is_shared(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    let asked = std::process::Command::new("git").arg("-C").arg(folder).args(["check-ignore", "-q"]).arg(path).output();
    // 0: ignored; 1: not; all others: no repository, no git.
    asked.is_ok_and(|asked| asked.status.code() == Some(1))
}

/// Captures a workspace that has no checkpoint yet.
fn first_capture(surroundings: &Surroundings, console: &mut Console) -> Result<Option<Captured>, Failure> {
    let folder = surroundings.folder()?;
    let mut workspace = surroundings.engine.open_or_init(&folder)?;
    match workspace.resolve("start") {
        Ok(_) => return Ok(None),
        Err(TargetError::Empty) => {}
        Err(error) => return Err(error.into()),
    }
    let progress = workspace.progress();
    let capture = || workspace.capture(&CaptureOptions::default());
    Ok(Some(with_progress(console, &progress, "Capturing", capture)?))
}

fn write(out: &mut dyn Write, look: &Look, agent: Agent, done: &Done) -> io::Result<()> {
    let settings = shown(Path::new(&done.settings));
    let title = agent.title;
    let headline = match done.hooks {
        Change::Added => format!("{title} reports to piton now"),
        Change::Updated => format!("{title}'s hooks of piton are up to date now"),
        Change::Removed if done.scope == Scope::Project => {
            format!("{title} does not report to piton by this workspace's settings any more; checkpoints are kept")
        }
        Change::Removed => format!("{title} does not report to piton any more; checkpoints are kept"),
        Change::Absent => format!("nothing to remove: {title} does not report to piton"),
        Change::Unchanged | Change::Kept => format!("already set up: {title} reports to piton"),
    };
    writeln!(out, "{}", look.paint.bold(headline))?;
    writeln!(out, "  settings  {settings}")?;
    if let Some(backup) = &done.backup {
        writeln!(out, "  backup    {}", shown(Path::new(backup)))?;
    }
    let command = shown(Path::new(&done.command));
    match done.command_file {
        Change::Added | Change::Updated | Change::Unchanged => writeln!(out, "  command   /piton, in {command}")?,
        Change::Removed => writeln!(out, "  command   {command} was removed")?,
        Change::Kept => writeln!(out, "  command   {command} was left as it is")?,
        Change::Absent => {}
    }
    if let Some(captured) = &done.checkpoint {
        let checkpoint = &captured.checkpoint.checkpoint;
        writeln!(out, "  captured  {}: {}", look.text(label(checkpoint)), changes(&checkpoint.changes))?;
    }
    Ok(())
}

fn unusable(path: &Path, bad: &BadSettings) -> Failure {
    let failure = Failure::user(Code::AgentSettings, format!("{}: {bad}; nothing was changed", shown(path)));
    match bad {
        BadSettings::Program { .. } => failure.hint("move piton to a folder whose path is plain text"),
        _ => failure.hint("repair the file, or move it away, and run the command again"),
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::user(Code::AgentSettings, format!("{}: {error}; nothing was changed", shown(path)));
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            failure.hint(text!["let your user write there, or use ", flag("--project")])
        }
        io::ErrorKind::NotFound => failure.hint("it is a symlink that leads nowhere: mend or remove it"),
        _ => failure,
    }
}
