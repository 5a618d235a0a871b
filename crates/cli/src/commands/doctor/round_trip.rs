//! A session of an agent that is not there: the hook's own command text, run by a shell as the agent runs it, in a
//! scratch folder with a store of its own; then a rewind.

#![expect(clippy::disallowed_methods, reason = "the scratch folder is the doctor's own")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use piton_agents::{Agent, Setup};
use piton_engine::{Engine, Environment, RewindOptions};

/// What came of it.
pub struct Trip {
    /// How many events were reported.
    pub events: u32,
    /// How long the hooks took together.
    pub took: Duration,
}

/// Far more than a hook's budget: who hangs longer is ended.
const AT_MOST: Duration = Duration::from_secs(30);

/// Makes the round trip, or says what was wrong.
pub fn run(text: &str, agent: Agent, setup: &dyn Setup) -> Result<Trip, String> {
    let io = |error: std::io::Error| format!("the scratch folder: {error}");
    let scratch = tempfile::Builder::new().prefix("piton-doctor-").tempdir().map_err(io)?;
    let (project, home) = (scratch.path().join("project"), scratch.path().join("store"));
    std::fs::create_dir(&project).map_err(io)?;
    let project = project.canonicalize().map_err(io)?;
    let file = project.join("file.txt");
    std::fs::write(&file, "before\n").map_err(io)?;
    let session = scratch.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let [before, after] = setup.rehearsal(&session, &project, &file);
    let mut trip = Trip { events: 0, took: Duration::ZERO };
    let mut report_all = |reports: &[String]| -> Result<(), String> {
        for report in reports {
            let begun = Instant::now();
            call(text, &project, &home, report)?;
            trip.took += begun.elapsed();
            trip.events += 1;
        }
        Ok(())
    };
    report_all(&before)?;
    std::fs::write(&file, "after\n").map_err(io)?;
    std::fs::write(project.join("new.txt"), "new\n").map_err(io)?;
    report_all(&after)?;
    check(&project, &home, agent.name, &session)?;
    Ok(trip)
}

/// Runs the command text once.
fn call(text: &str, project: &Path, home: &Path, report: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("a shell cannot run it: {error}");
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).current_dir(project).env("PITON_HOME", home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Who does not read it is found out by what is missing afterwards.
        let _ = stdin.write_all(report.as_bytes());
    }
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if begun.elapsed() > AT_MOST => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not end within {} s", AT_MOST.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
}

/// Checks what the hooks left, and rewinds.
fn check(project: &Path, home: &Path, agent: &str, session: &str) -> Result<(), String> {
    let why = || {
        let log = std::fs::read_to_string(home.join("hook.log")).unwrap_or_default();
        let last = log.lines().rev().find(|line| line.contains("ms gap: ") || line.contains("ms error: "));
        last.map_or_else(|| "it left no checkpoint".to_owned(), |line| format!("its log says: {line}"))
    };
    let engine = Engine::new(home.to_owned(), Environment::default());
    let mut workspace = engine.open(project).map_err(|_| why())?;
    let sessions = workspace.sessions().map_err(|error| error.to_string())?.sessions;
    let heard = sessions.iter().find(|heard| heard.agent == agent && heard.agent_id == session);
    let heard = heard.ok_or_else(why)?;
    if heard.checkpoints == 0 || heard.gaps > 0 {
        return Err(why());
    }
    let outcome = workspace.rewind_now("t1", &RewindOptions::default()).map_err(|error| error.to_string())?;
    let restored = std::fs::read(project.join("file.txt")).map_err(|error| error.to_string())?;
    match outcome.verified && restored == b"before\n" && !project.join("new.txt").exists() {
        true => Ok(()),
        false => Err("a rewind did not give back the files as they were".to_owned()),
    }
}
