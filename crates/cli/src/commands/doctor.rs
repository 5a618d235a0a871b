//! `piton doctor`: whether capture works now, proved by doing it.

mod round_trip;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use piton_agents::setup::InstalledHook;
use piton_agents::{Agent, Setup};
use piton_engine::OpenError;
use piton_wording::checks::{Checks, Report, Verdict};
use piton_wording::escape::{escape, escape_path};
use piton_wording::words::{plural, size};
use piton_wording::{Failure, Style, call, text};

use super::setup;
use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::{self, Surroundings};
use crate::settings::shown;
use crate::{agent_files, hook, settings};

/// Say whether capture works now, and what to do if not
///
/// Looks at the agent's settings, at piton's own, at the store and at the hook's log; then lets the installed hook
/// capture, and rewinds, in a scratch folder with a store of its own. Your files and your checkpoints are not touched: only a folder
/// `.piton-probe` is made in the workspace for a moment, to try out what its filesystem can do.
/// Exits with 1 if capture does not work.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

const EXAMPLES: &str = "\
Examples:
  piton doctor
  piton doctor --json | jq '.checks[] | select(.state == \"problem\")'";

/// Less space than this is soon none.
const LITTLE_SPACE: u64 = 256 << 20;
/// So much of the log is looked at, from its end.
const END_OF_LOG: usize = 64 << 10;

pub fn run(_: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::read(global)?;
    let folder = surroundings.folder()?;
    let mut checks = Checks::default();
    let agent = setup::usual_agent();
    let other = other_agent(&surroundings, &folder, agent);
    let installed = agent.setup.and_then(|setup| check_hooks(&mut checks, agent, setup, &folder, other.as_deref()));
    check_switches(&mut checks, agent, &folder);
    check_home(&mut checks);
    check_workspace(&mut checks, &surroundings, &folder, console);
    check_log(&mut checks);
    if let Some(setup) = agent.setup {
        check_round_trip(&mut checks, agent, setup, installed.as_ref());
    }
    let report = checks.report();
    console.print(&report, |out, look| write(out, look, &report))?;
    Ok(if report.works { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The files in which an agent looks for hooks, for a session in this workspace.
fn places(agent: Agent, setup: &dyn Setup, folder: &Path) -> Vec<PathBuf> {
    let files = setup.files();
    let user = setup::user_folder(agent, setup).ok().map(|folder| folder.join(files.user));
    let project = files.project.iter().map(|name| folder.join(files.folder).join(name));
    user.into_iter().chain(project).collect()
}

/// Another agent that reports here: one with an open session.
fn other_agent(surroundings: &Surroundings, folder: &Path, usual: Agent) -> Option<String> {
    let workspace = surroundings.engine.open(folder).ok()?;
    let sessions = workspace.sessions().ok()?.sessions;
    sessions.into_iter().find(|session| session.live && session.agent != usual.name).map(|session| session.agent)
}

/// Looks for piton's hooks; returns the one that is asked first. `other` is another agent, which reports already.
fn check_hooks(
    checks: &mut Checks,
    agent: Agent,
    setup: &dyn Setup,
    folder: &Path,
    other: Option<&str>,
) -> Option<InstalledHook> {
    const WHAT: &str = "hooks";
    let mut first: Option<InstalledHook> = None;
    let mut places_with = 0;
    let mut is_skipped = false;
    for path in places(agent, setup, folder) {
        let file = shown(&path);
        let text = match agent_files::read(&path) {
            Ok(None) => continue,
            Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => {
                checks.problem(WHAT, format!("{file}: {error}"), "let your user read it");
                continue;
            }
        };
        let found = match setup.installed(&text) {
            Ok(found) => found,
            Err(bad) => {
                let hint = format!("repair the file: {} cannot read it either", agent.title);
                checks.problem(WHAT, format!("{file}: {bad}"), hint);
                continue;
            }
        };
        if let Some(why) = &found.skipped {
            let what = format!("{} skips the whole of {file}: {}", agent.title, escape(why));
            checks.problem(WHAT, what, "take comments and trailing commas out of it");
            is_skipped = true;
            continue;
        }
        if found.disabled {
            checks.problem(
                WHAT,
                format!("`{}` in {file} turns all hooks off", setup.files().off_switch),
                "set it to false",
            );
        }
        for (name, value) in &found.variables {
            let what = format!("{file} sets {name}={} for every hook", escape(value));
            match name == hook::VARIABLE && value == "off" {
                true => checks.problem(WHAT, format!("{what}, so nothing is captured"), "take it out"),
                false => checks.note(WHAT, what, "what it says holds in hooks, and not for this command"),
            }
        }
        if found.hooks.is_empty() {
            continue;
        }
        for hook in &found.hooks {
            if let Some(tools) = &hook.narrowed_to {
                let tools = escape(tools);
                let what = format!("{file} reports {} only for tools that match `{tools}`", hook.event);
                checks.problem(WHAT, what, text![call("setup"), " makes it report all that may change files"]);
            }
            if hook.is_rushed() {
                let seconds = hook.timeout.unwrap_or_default();
                let what = format!("{file} gives the hook of {} {seconds} s", hook.event);
                let hint = format!("{} ends one that takes longer, and then nothing is captured", agent.title);
                checks.note(WHAT, what, hint);
            }
        }
        places_with += 1;
        match &found.missing[..] {
            [] => checks.ok(WHAT, format!("all {} events report to piton, by {file}", setup.events().len())),
            missing => checks.problem(
                WHAT,
                format!("{file} has none for {}", missing.join(", ")),
                text![call("setup"), " adds them"],
            ),
        }
        let mut programs: Vec<&Path> = found.hooks.iter().map(|hook| hook.program.as_path()).collect();
        programs.dedup();
        for program in programs {
            check_program(checks, program);
        }
        first = first.or_else(|| found.hooks.into_iter().next());
    }
    match (places_with, other) {
        // What is in it is no reason to set up once more.
        (0, _) if is_skipped => {}
        (0, Some(other)) => {
            let found = format!("{} does not report to piton; {} does", agent.title, escape(other));
            checks.note(WHAT, found, text![call("setup"), " makes it"]);
        }
        (0, None) => {
            checks.problem(WHAT, format!("{} does not report to piton", agent.title), text![call("setup"), " makes it"])
        }
        (1, _) => {}
        _ => checks.note(
            WHAT,
            "hooks are in several settings files, so each event is reported more than once",
            text![
                "take one out: ",
                call("setup").arg("--remove"),
                ", or ",
                call("setup").arg("--remove").arg("--project")
            ],
        ),
    }
    first
}

fn check_program(checks: &mut Checks, program: &Path) {
    const WHAT: &str = "program";
    let file = shown(program);
    if !agent_files::is_program(program) {
        checks.problem(
            WHAT,
            format!("hooks run {file}, which is not there or no program"),
            text![call("setup"), " mends it"],
        );
        return;
    }
    let is_this = std::env::current_exe().and_then(|this| this.canonicalize()).ok() == program.canonicalize().ok();
    match is_this {
        true => checks.ok(WHAT, format!("hooks run this piton, {file}")),
        false => checks.note(
            WHAT,
            format!("hooks run another piton, {file}"),
            text![call("setup"), " makes them run this one"],
        ),
    }
}

/// Looks at what turns captures off.
fn check_switches(checks: &mut Checks, agent: Agent, folder: &Path) {
    const WHAT: &str = "settings";
    if std::env::var_os(hook::VARIABLE).is_some_and(|value| value == "off") {
        checks.problem(WHAT, format!("{} is off in this environment", hook::VARIABLE), "unset it");
    }
    let found = settings::find(Some(folder));
    for problem in &found.problems {
        let hint = text![call("help").arg("config"), " lists what can be set"];
        checks.note(WHAT, format!("{}; it is ignored", problem.message), hint);
    }
    let weakened = hook::weakened(&found.settings);
    for what in &weakened {
        checks.note(
            WHAT,
            what.clone(),
            text!["the file may be somebody else's; ", call("config"), " shows what holds"],
        );
    }
    let (budget, longest) = (found.settings.time_budget.value, agent.events.time_limit());
    if budget > longest {
        let (set, longest, title) = (budget.as_secs(), longest.as_secs(), agent.title);
        let what = format!("`hook.time-budget` is {set} s; a hook of {title}'s takes at most {longest} s");
        let hint = format!("{title} itself ends one that takes longer, and then no gap could be noted");
        checks.note(WHAT, what, hint);
    }
    if !found.settings.automatic.value {
        let source = found.settings.automatic.source;
        checks.problem(WHAT, format!("`capture.automatic` is false ({source})"), "set it to true");
    } else if found.problems.is_empty() && weakened.is_empty() {
        let budget = budget.min(longest);
        checks.ok(WHAT, format!("automatic captures, of at most {} s each", budget.as_secs()));
    }
}

/// Looks at piton's home.
fn check_home(checks: &mut Checks) {
    const WHAT: &str = "store";
    let home = match environment::home() {
        Ok(home) => home,
        Err(failure) => return checks.failed(WHAT, failure),
    };
    // The first capture makes it: what matters is the nearest folder that is there.
    let Some(there) = home.ancestors().find(|folder| folder.exists()) else { return };
    if let Err(error) = tempfile::Builder::new().prefix(".piton-doctor-").tempfile_in(there) {
        let hint = "let your user write there, or choose another place with PITON_HOME";
        return checks.problem(WHAT, format!("{}: {error}", shown(there)), hint);
    }
    let free = rustix::fs::statvfs(there).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free {
        Ok(free) if free < LITTLE_SPACE => {
            let hint = "free some space, or choose another disk with PITON_HOME";
            checks.problem(WHAT, format!("{} free at {}", size(free), shown(&home)), hint);
        }
        Ok(free) => checks.ok(WHAT, format!("{} can be written, {} free", shown(&home), size(free))),
        Err(error) => checks.note(WHAT, format!("{}: {error}", shown(&home)), "its free space is not known"),
    }
}

/// Looks at the workspace around the current folder, which need not be known.
fn check_workspace(checks: &mut Checks, surroundings: &Surroundings, folder: &Path, console: &Console) {
    const WHAT: &str = "workspace";
    let path = escape_path(folder);
    let mut workspace = match surroundings.engine.open(folder) {
        Ok(workspace) => workspace,
        Err(OpenError::NotKnown(_)) => {
            if let Some(refusal) = surroundings.engine.refusal(folder) {
                return checks.failed(WHAT, refusal.into());
            }
            return checks.ok(WHAT, format!("{path} is not known yet; the first event makes it"));
        }
        Err(error) => return checks.failed(WHAT, error.into()),
    };
    workspace.record_aside();
    let status = match workspace.status() {
        Ok(status) => status,
        Err(error) => return checks.failed(WHAT, error.into()),
    };
    checks.about_status(folder, &status, &console.look.now);
    if let Some((left_out, root)) = surroundings.left_out() {
        let hint = text![call("init").there(&left_out.folder), " makes it a workspace of its own"];
        checks.problem(WHAT, hook::unprotected_note(&left_out, &root), hint);
    }
    if let Some(error) = workspace.unended() {
        let hint = "take away what is in its way; the next command ends it";
        checks.problem(WHAT, escape(&error.to_string()), hint);
    }
    checks.about_filesystem(workspace.abilities());
    checks.about_kept_git(workspace.kept_git(), &console.look.now);
    if let Ok(sessions) = workspace.sessions() {
        checks.about_sessions(&sessions.sessions, &console.look.now);
    }
}

/// Looks at the last lines of the hook's log.
fn check_log(checks: &mut Checks) {
    const WHAT: &str = "log";
    let Some(path) = hook::log_path() else { return };
    let file = shown(&path);
    let bytes = match agent_files::read(&path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return checks.ok(WHAT, format!("{file} is not there yet: no hook ran so far")),
        Err(error) => return checks.note(WHAT, format!("{file}: {error}"), "let your user read it"),
    };
    let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(END_OF_LOG)..]).into_owned();
    let lines: Vec<&str> = end.lines().collect();
    // What went wrong in another workspace of the session stands after its path.
    let went_wrong = |line: &&&str| ["ms gap: ", "ms error: ", ": gap: "].iter().any(|mark| line.contains(mark));
    let wrong = lines.iter().filter(went_wrong).count() as u64;
    match lines.iter().rev().find(went_wrong) {
        None => {
            checks.ok(WHAT, format!("{file}: nothing went wrong in the last {}", plural(lines.len() as u64, "event")))
        }
        Some(last) => {
            let found = format!("{} of the last {} went wrong", wrong, plural(lines.len() as u64, "event"));
            checks.note(WHAT, found, format!("the last one in {file}: {last}"));
        }
    }
}

/// Lets the hook do its work.
fn check_round_trip(checks: &mut Checks, agent: Agent, setup: &dyn Setup, installed: Option<&InstalledHook>) {
    const WHAT: &str = "round trip";
    let own = || std::env::current_exe().ok().and_then(|program| setup.hook_command(&program).ok());
    let Some(text) = installed.map(|hook| hook.text.clone()).or_else(own) else { return };
    let whose = if installed.is_some() { "the installed hook" } else { "this piton's hook, which is not installed," };
    match round_trip::run(&text, agent, setup) {
        Ok(trip) => {
            let (events, took) = (trip.events, trip.took.as_millis() / u128::from(trip.events.max(1)));
            checks.ok(WHAT, format!("{whose} captured {events} events, {took} ms each, and a rewind was exact"));
        }
        Err(why) => checks.problem(WHAT, format!("{whose} does not capture: {why}"), format!("it runs: {text}")),
    }
}

fn write(out: &mut dyn Write, look: &Look, report: &Report) -> io::Result<()> {
    let paint = look.paint;
    for check in &report.checks {
        let state = match check.state {
            Verdict::Ok => paint.good("ok     "),
            Verdict::Note => paint.warn("note   "),
            Verdict::Problem => paint.alarm("problem"),
        };
        writeln!(out, "{state} {:<10} {}", check.what, escape(&check.found))?;
        if let Some(hint) = &check.hint {
            writeln!(out, "{:19}{}", "", look.text(hint.clone().in_style(Style::Dim)))?;
        }
    }
    writeln!(out)?;
    match report.works {
        true => writeln!(out, "{}", paint.good("Capture works.")),
        false => writeln!(out, "{}", paint.alarm("Capture does not work.")),
    }
}
