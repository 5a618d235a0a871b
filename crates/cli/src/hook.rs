//! `piton hook AGENT`: an agent reports an event, and waits until this process ends.
//!
//! The hot path, run before and after every tool that an agent calls; `main` comes here before any argument is parsed.
//! Whatever happens, it ends in 0, within its time budget, with an empty stderr: an agent takes another exit code for
//! a reason to stop its tool. Nothing here decides what a capture is; that is the engine's.
//!
//! The order is for speed: what needs no capture is known from the report alone, and is over before a store is opened.

mod ahead;
mod indicator;
mod inside;
mod log;
mod recovered;
mod stdin;
mod told;
mod unprotected;
mod watchdog;
mod weakened;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use piton_agents::event::piton_command;
use piton_agents::{Agent, Agents, Event, Reply, Report};
use piton_engine::model::SessionId;
use piton_engine::model::settings::Settings;
use piton_engine::view::Observed;
use piton_engine::{EventPlace, ObserveError, ObserveOptions, OwnSettings};
use piton_wording::escape::{escape, escape_path};
use piton_wording::{agreement, call, text, words};

use self::log::Line;
use self::watchdog::Watchdog;
use crate::environment;
use crate::settings;

pub use self::log::path as log_path;
pub use self::unprotected::note as unprotected_note;
pub use self::weakened::weakened;

/// The word that leads here.
pub const NAME: &str = "hook";
/// Set to `off`, it makes every hook do nothing.
pub const VARIABLE: &str = "PITON_HOOK";

/// Until the settings are read, which takes the report to know whose.
const USUAL_BUDGET: Duration = Duration::from_secs(10);
/// What a capture may take over its budget to write down what it has. Then the process ends in the middle of it.
const GRACE: Duration = Duration::from_millis(500);

/// The arguments after `hook`, if this process is a hook.
pub fn arguments() -> Option<impl Iterator<Item = OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == NAME).then_some(arguments)
}

/// Runs it. `print_help` is what `--help` does.
pub fn run(arguments: impl Iterator<Item = OsString>, print_help: impl FnOnce()) -> ExitCode {
    let begun = Instant::now();
    let said = Arc::new(Mutex::new(None));
    let listener = Arc::clone(&said);
    // Nothing is to be printed; the log gets it.
    std::panic::set_hook(Box::new(move |panic| {
        if let Ok(mut said) = listener.lock() {
            said.get_or_insert_with(|| panic.to_string());
        }
    }));
    let mut arguments = arguments.peekable();
    if arguments.next_if(|argument| argument == ahead::ARGUMENT).is_some() {
        return arguments.next().map_or(ExitCode::SUCCESS, ahead::run);
    }
    let arguments: Vec<_> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        let _ = catch_unwind(AssertUnwindSafe(print_help));
        return ExitCode::SUCCESS;
    }
    let watchdog = Watchdog::start(begun, begun + USUAL_BUDGET + GRACE);
    let attended = catch_unwind(AssertUnwindSafe(|| attend(&arguments, begun, &watchdog)));
    if attended.is_err() {
        let said = said.lock().ok().and_then(|mut said| said.take());
        let outcome = format!("error: a bug in piton: {}", said.unwrap_or_default());
        // The line may be what it stumbled over.
        let _ = catch_unwind(AssertUnwindSafe(|| log::write(&watchdog.line(), begun.elapsed(), &outcome)));
    }
    ExitCode::SUCCESS
}

/// Reads the report, acts on it, answers, and writes one line to the log.
fn attend(arguments: &[String], begun: Instant, watchdog: &Watchdog) {
    // To its end even where nothing is done with it: who writes it is not to find the pipe closed.
    let input = stdin::read(begun + USUAL_BUDGET / 2);
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "off") {
        return;
    }
    let (agent, odd) = agent_of(arguments);
    watchdog.describe(Line::new(agent));
    let attended = match Agents::default().get(agent) {
        None if agent.is_empty() => {
            let known: Vec<_> = Agents::default().iter().map(|agent| format!("`piton hook {}`", agent.name)).collect();
            Err(format!("error: which agent? {}", known.join(" or ")))
        }
        None => Err(format!("error: piton knows no agent `{agent}`")),
        Some(agent) => input.report(agent).and_then(|report| {
            watchdog.describe(Line::of(&report));
            let (reply, outcome) = take_in(agent, report, begun, watchdog)?;
            // Who reads it may be gone, which is no failure of a capture.
            let _ = io::stdout().write_all(&agent.events.reply(&reply)).and_then(|()| io::stdout().flush());
            Ok(outcome)
        }),
    };
    let mut outcome = attended.unwrap_or_else(|failed| failed);
    if let Some(odd) = odd {
        outcome += &format!("; `{}` means nothing here", escape(odd));
    }
    log::write(&watchdog.line(), begun.elapsed(), &outcome);
}

/// The agent, and the first argument that is not understood: a capture is worth more than being right about a flag.
fn agent_of(arguments: &[String]) -> (&str, Option<&str>) {
    let mut plain = arguments.iter().filter(|argument| !argument.starts_with('-'));
    let agent = plain.next().map_or("", String::as_str);
    let odd = arguments.iter().find(|argument| argument.starts_with('-')).or(plain.next());
    (agent, odd.map(String::as_str))
}

/// What to say to the agent and what to the log.
type Outcome = (Reply, String);

fn take_in(agent: Agent, mut report: Report, begun: Instant, watchdog: &Watchdog) -> Result<Outcome, String> {
    if let Event::Other { .. } | Event::SubagentStarted | Event::SubagentEnded = &report.event {
        return Ok((Reply::Nothing, "ignored".to_owned()));
    }
    #[cfg(debug_assertions)]
    if std::env::var_os("PITON_FAIL").is_some_and(|value| value == "panic") {
        panic!("as a test asked for");
    }
    // An agent that does not say where it works runs its hooks there.
    let cwd = report.cwd.take().or_else(|| std::env::current_dir().ok());
    let cwd = cwd.ok_or("error: the report does not say where the agent works, and the current folder is gone")?;
    let engine = environment::engine(None).map_err(|failure| format!("error: {}", failure.message))?;
    if is_own(&cwd) {
        return Err(format!("error: {} is piton's own folder, which is not a workspace", escape_path(&cwd)));
    }
    let session = SessionId::of(&report.agent, &report.session);
    let worked_in = engine.workspaces_of(&session);
    let place = engine.event_place(&cwd, &worked_in);
    let place = place.unwrap_or_else(|_| EventPlace { root: cwd.clone(), left_out: None });
    let root = place.root.clone();
    if let Event::Prompt { text } = &report.event
        && let Some(typed) = piton_command(text)
    {
        watchdog.end_at(begun + inside::AT_MOST + GRACE);
        return Ok(inside::answer(&engine, typed, &report, &cwd, &root, begun + inside::AT_MOST));
    }
    report.cwd = Some(cwd);
    let (settings, mistakes) = settings::load_leniently(Some(&root));
    let deadline = begun + settings.time_budget.value.min(agent.events.time_limit());
    watchdog.end_at(deadline + GRACE);
    #[cfg(debug_assertions)]
    let deadline = if std::env::var_os("PITON_FAIL").is_some_and(|value| value == "late") { begun } else { deadline };
    let tool = match &report.event {
        Event::BeforeTool(call) | Event::AfterTool(call) | Event::ToolFailed { call, .. } => Some(call.tool.clone()),
        _ => None,
    };
    let is_reader =
        |settings: &Settings| tool.as_ref().is_some_and(|tool| settings.is_reader(tool, agent.events.is_reader(tool)));
    // What one workspace calls a reader may write in another that the session works in.
    let is_reader_in = |other: &PathBuf| *other == root || is_reader(&settings::load_leniently(Some(other)).0);
    let is_usual = tool.as_ref().is_some_and(|tool| agent.events.is_reader(tool));
    if is_reader(&settings) && (is_usual || worked_in.iter().all(is_reader_in)) {
        return Ok((Reply::Nothing, "reader".to_owned()));
    }
    let engine = match environment::engine(Some(&settings)) {
        Ok(engine) => engine,
        Err(failure) => return Err(format!("gap: {}", failure.message)),
    };
    watchdog.observing(root.clone(), report.clone());
    if !settings.automatic.value {
        watchdog.not_captured_in(&root);
    }
    let weak = RefCell::new(weakened(&settings));
    let settings_of = |other: &Path| {
        let (own, _) = settings::load_leniently(Some(other));
        weak.borrow_mut().extend(weakened(&own).into_iter().map(|what| format!("{}: {what}", escape_path(other))));
        let (automatic, is_reader) = (own.automatic.value, is_reader(&own));
        if !automatic || is_reader {
            watchdog.not_captured_in(other);
        }
        OwnSettings { environment: environment::environment(Some(&own)), automatic, is_reader }
    };
    let visiting = |still| watchdog.visiting(still);
    let options = ObserveOptions {
        automatic: settings.automatic.value,
        deadline: Some(deadline),
        place: Some(&place),
        settings_of: Some(&settings_of),
        visiting: Some(&visiting),
        ..ObserveOptions::default()
    };
    let (observed, others) = engine.observe_everywhere(&report, &options);
    watchdog.observed();
    let is_for_user = matches!(&report.event, Event::Prompt { .. } | Event::SessionStarted { .. });
    // Where nobody can note that it was said, it is said whenever the user is there to read it, and not at every tool.
    let is_news = |key: &str| engine.is_news(&session, key).unwrap_or(is_for_user);
    let once = |warning: Option<String>| warning.filter(|warning| is_news(warning));
    for (path, _) in others.iter().filter(|(_, other)| other.as_ref().is_ok_and(|observed| observed.out_of_time)) {
        ahead::start(path);
    }
    let elsewhere: String = others.iter().map(|(path, other)| told_elsewhere(path, other)).collect();
    let observed = match observed {
        Ok(observed) => observed,
        // Where not even a gap could be recorded, the log is the only one to tell of it at each event; the user hears of
        // it once where the store keeps the event for later, and at every prompt where it does not take even that.
        Err(error) => {
            let is_news_of_gap = || is_for_user && (is_news(FIRST_GAP) || !engine.keeps_events_aside(&root));
            let warning = match unprotected::refusal(&error) {
                Some(refusal) => once(Some(refusal)),
                None => is_news_of_gap().then(|| not_captured(&error.to_string())),
            };
            let reply = with_line(Reply::Nothing, warning);
            return Ok((reply, format!("gap: {error}{elsewhere}{}", remarks(&mistakes))));
        }
    };
    watchdog.describe(Line::of(&report).at(&observed));
    let mut outcome = outcome_of(&observed);
    if observed.out_of_time {
        ahead::start(&root);
    }
    outcome += &elsewhere;
    if let Some(left_out) = &place.left_out {
        outcome += &unprotected::remark(left_out);
    }
    outcome += &remarks(&mistakes);
    let unprotected = unprotected::warning(&place, observed.gap.is_none());
    let mut warnings: Vec<String> = once(unprotected).into_iter().collect();
    warnings.extend(observed.recovered.iter().map(|one| recovered::line(one, None)));
    for (path, other) in &others {
        let ended = other.as_ref().map_or(&[][..], |other| &other.recovered);
        warnings.extend(ended.iter().map(|one| recovered::line(one, Some(path))));
    }
    // They came in this very capture, so that no other event says it.
    let large = others.iter().flat_map(|(_, other)| other.iter().flat_map(|other| &other.large));
    warnings.extend(observed.large.iter().chain(large).map(|file| format!("piton: note: {}", words::large(file))));
    let mut asked = asked_for(&observed, None);
    for (path, other) in &others {
        asked.extend(other.iter().flat_map(|other| asked_for(other, Some(path))));
    }
    warnings.extend(asked.into_iter().filter(|warning| is_news(warning)));
    if observed.history_lost {
        let gone = "piton: warning: some of what was captured here is gone or incomplete; ";
        warnings.extend(once(Some(text![gone, call("verify"), " names it"].plain())));
    }
    if let Event::Prompt { .. } | Event::SessionStarted { .. } = &report.event {
        // Where not even a gap could be recorded in another workspace, the user hears of it in the same way.
        let failed = others.iter().filter_map(|(path, other)| Some((path, other.as_ref().err()?)));
        let failed = failed.map(|(path, error)| (path, not_captured_in(path, &error.to_string())));
        let failed = failed.filter(|(path, warning)| is_news(warning) || !engine.keeps_events_aside(path));
        warnings.extend(failed.map(|(_, warning)| warning));
        let weak = weak.take().into_iter().map(|what| format!("piton: warning: {what}"));
        warnings.extend(weak.filter(|warning| is_news(warning)));
    }
    let warning = (!warnings.is_empty()).then(|| warnings.join("\n"));
    let first_gap = first_gap(&observed, &others).filter(|_| is_news(FIRST_GAP));
    if let Event::Prompt { .. } = &report.event {
        let elsewhere = others.iter().filter_map(|(path, other)| Some((path.as_path(), other.as_ref().ok()?)));
        let reply = told::reply(&observed, &root, elsewhere, settings.tell_agent.value);
        return Ok((with_line(with_line(reply, first_gap), warning), outcome));
    }
    let indicator = indicator::line(&observed).filter(|_| settings.user_line.value);
    let reply = with_line(Reply::Nothing, indicator);
    Ok((with_line(with_line(reply, first_gap), warning), outcome))
}

/// The changed rules and settings that wait for the user's word, here or in another workspace of the session.
fn asked_for(observed: &Observed, workspace: Option<&Path>) -> Vec<String> {
    let place = workspace.map(|path| format!("in {}, ", escape_path(path))).unwrap_or_default();
    let how = agreement::how(workspace).plain();
    let all = agreement::sentences(&observed.waiting).into_iter();
    all.map(|said| format!("piton: warning: {place}{said}; {how}")).collect()
}

/// What the first gap of a session is noted as, once it was told: an event that could not even be recorded as one counts.
const FIRST_GAP: &str = "first gap";

/// The first gap of a session, here or in another of its workspaces, as the user reads it.
fn first_gap(observed: &Observed, others: &[(PathBuf, Result<Observed, ObserveError>)]) -> Option<String> {
    let others = others.iter().filter_map(|(path, other)| {
        let reason = other.as_ref().ok()?.first_gap.as_ref()?;
        Some(not_captured_in(path, reason))
    });
    let gaps: Vec<String> = observed.first_gap.iter().map(|reason| not_captured(reason)).chain(others).collect();
    (!gaps.is_empty()).then(|| gaps.join("\n"))
}

/// What the user reads where something was not captured. Said once in a session, so it says how to hear more.
fn not_captured(reason: &str) -> String {
    text!["piton: warning: not captured: ", escape(reason), "; ", call("status"), " says more"].plain()
}

/// The same of another workspace of the session.
fn not_captured_in(workspace: &Path, reason: &str) -> String {
    let said = format!("piton: warning: not captured in {}: {}; ", escape_path(workspace), escape(reason));
    text![said, call("status").there(workspace), " says more"].plain()
}

/// A reply with a line more for the user, which comes first.
fn with_line(reply: Reply, line: Option<String>) -> Reply {
    let Some(line) = line else { return reply };
    match reply {
        Reply::Nothing => Reply::Line(line),
        Reply::Line(other) => Reply::Line(format!("{line}\n{other}")),
        Reply::Context(context) => Reply::Both { line, context },
        Reply::Both { line: other, context } => Reply::Both { line: format!("{line}\n{other}"), context },
        answer @ Reply::Answer(_) => answer,
    }
}

fn outcome_of(observed: &Observed) -> String {
    match (&observed.checkpoint, &observed.gap) {
        (_, Some(reason)) => format!("gap: {reason}"),
        (Some(checkpoint), None) => format!("captured {}", checkpoint.id.short()),
        (None, None) => "noted".to_owned(),
    }
}

/// What came of an event in another workspace, for the log.
fn told_elsewhere(path: &Path, other: &Result<Observed, ObserveError>) -> String {
    let came = match other {
        Ok(observed) => outcome_of(observed),
        Err(error) => format!("gap: {error}"),
    };
    format!("; {}: {came}", escape_path(path))
}

fn remarks(mistakes: &[String]) -> String {
    mistakes.iter().map(|mistake| format!("; settings: {mistake}")).collect()
}

/// Whether a folder is piton's home or in it.
fn is_own(folder: &Path) -> bool {
    let home = environment::home().ok().and_then(|home| home.canonicalize().ok());
    home.is_some_and(|home| folder.canonicalize().is_ok_and(|folder| folder.starts_with(home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_over_before_its_agent_ends_it() {
        for agent in Agents::default().iter() {
            let Some(setup) = agent.setup else { continue };
            let settings = setup.install("", Path::new("/piton")).unwrap();
            for hook in setup.installed(&settings).unwrap().hooks {
                let theirs = Duration::from_secs_f64(hook.timeout.unwrap());
                for ours in [agent.events.time_limit(), inside::AT_MOST, USUAL_BUDGET] {
                    assert!(ours + 2 * GRACE < theirs, "{} {}", agent.name, hook.event);
                }
            }
        }
    }

    #[test]
    fn the_agent_is_the_first_plain_argument_and_what_is_odd_is_told() {
        let check = |arguments: &[&str], agent: &str, odd: Option<&str>| {
            let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string()).collect();
            assert_eq!(agent_of(&arguments), (agent, odd), "{arguments:?}");
        };
        check(&["claude-code"], "claude-code", None);
        check(&["--fast", "generic"], "generic", Some("--fast"));
        check(&["generic", "x"], "generic", Some("x"));
        check(&[], "", None);
    }
}
