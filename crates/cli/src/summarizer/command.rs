//! A command of the user's that summarizes: `claude -p 'Summarize this conversation'`, a script, anything.
//!
//! It runs by `sh`, so that it reads as it would in a terminal. In a folder of its own, empty: what lies in a workspace may
//! come from anybody and is not to decide how a program of the user's behaves, and an agent that summarizes is not to be a
//! session of that workspace. With `PITON_HOOK=off`, for the same reason.

use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use piton_wording::escape::escape_line;
use piton_wording::{Code, Failure, flag, text};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::MOST_ANSWERED;
use crate::hook;

/// As many lines of its complaints are shown.
const LINES_SHOWN: usize = 10;
/// As many bytes of them are read, from the end.
const COMPLAINTS: u64 = 8 << 10;
/// As much may be written before it is ended: nothing that it says after that could count.
const MOST_WRITTEN: u64 = 16 << 20;
/// How often it is looked after.
const TICK: Duration = Duration::from_millis(20);
/// What a program has to clear up when it is asked to end.
const TO_END: Duration = Duration::from_secs(2);

/// What ends it before its time.
const STOPS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// How it came to its end.
enum End {
    Ended(ExitStatus),
    OutOfTime,
    TooMuch,
    /// Somebody typed Ctrl-C, or sent a signal.
    Stopped,
}

/// Runs it, gives it a text to read, and returns what it wrote.
pub fn ask(line: &str, given: &str, limit: Duration) -> Result<String, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::user(Code::SummarizerFailed, format!("the summary command cannot be run: {error}"))
    };
    let folder = tempfile::tempdir().map_err(cannot)?;
    // Files and not pipes: nobody waits for the other, and what it leaves running holds nothing open.
    let mut stdin = tempfile::tempfile().map_err(cannot)?;
    stdin.write_all(given.as_bytes()).and_then(|()| stdin.rewind()).map_err(cannot)?;
    let mut stdout = tempfile::tempfile().map_err(cannot)?;
    let mut stderr = tempfile::tempfile().map_err(cannot)?;
    let (out, err) = (stdout.try_clone().map_err(cannot)?, stderr.try_clone().map_err(cannot)?);
    // Before it starts: a Ctrl-C in between must not leave it running. Once it has ended, one ends piton as it always does.
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in STOPS {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_over)).map_err(cannot)?;
    }
    let mut signals = Signals::new(STOPS).map_err(cannot)?;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).current_dir(folder.path()).env(hook::VARIABLE, "off");
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(out)).stderr(Stdio::from(err)).process_group(0);
    let mut child = command.spawn().map_err(cannot)?;
    let end = wait(&mut child, limit, &mut signals, || {
        let written = |file: &_| file_length(file).unwrap_or(0);
        written(&stdout) + written(&stderr)
    });
    is_over.store(true, Ordering::SeqCst);
    let end = end.map_err(cannot)?;
    let said = |failure: String, stderr: &mut _| {
        let complaints = tail(stderr).unwrap_or_default();
        let lines: Vec<&str> = complaints.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        let said: Vec<_> = shown.iter().map(|line| escape_line(line)).collect();
        match said.is_empty() {
            true => Failure::user(Code::SummarizerFailed, failure),
            false => Failure::user(Code::SummarizerFailed, format!("{failure}: {}", said.join(" | "))),
        }
    };
    match end {
        End::Ended(status) if status.success() => {
            let mut bytes = Vec::new();
            stdout.rewind().map_err(cannot)?;
            (&mut stdout).take(MOST_ANSWERED as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
            if bytes.len() > MOST_ANSWERED {
                return Err(Failure::user(Code::SummarizerFailed, "the summary command wrote far more than a summary"));
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                return Err(said("the summary command wrote nothing".to_owned(), &mut stderr));
            }
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        End::Ended(status) => Err(said(format!("the summary command failed ({status})"), &mut stderr)),
        End::OutOfTime => {
            let text = format!("the summary command took longer than {} s and was ended", limit.as_secs_f32());
            Err(said(text, &mut stderr).hint(text![
                "`summary.time-limit` or ",
                flag("--time-limit").asking("TIME"),
                " gives it more time"
            ]))
        }
        End::TooMuch => Err(Failure::user(
            Code::SummarizerFailed,
            "the summary command wrote far more than a summary and was ended",
        )),
        End::Stopped => Err(Failure::user(Code::SummarizerFailed, "the summary command was stopped")),
    }
}

/// Waits for its end, or ends it with everything that it started.
fn wait(child: &mut Child, limit: Duration, signals: &mut Signals, written: impl Fn() -> u64) -> std::io::Result<End> {
    let begun = Instant::now();
    let why = loop {
        if has_ended(child)? {
            return Ok(End::Ended(reap(child)?));
        }
        if signals.pending().next().is_some() {
            break End::Stopped;
        }
        if begun.elapsed() > limit {
            break End::OutOfTime;
        }
        if written() > MOST_WRITTEN {
            break End::TooMuch;
        }
        std::thread::sleep(TICK);
    };
    kill_group(child, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < TO_END && !has_ended(child)? {
        std::thread::sleep(TICK);
    }
    reap(child)?;
    Ok(why)
}

/// Whether it has ended, while its number is still its own.
fn has_ended(child: &Child) -> std::io::Result<bool> {
    let pid = Pid::from_child(child);
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid), look)?.is_some())
}

/// Ends whatever it left running, and takes note of its end.
fn reap(child: &mut Child) -> std::io::Result<ExitStatus> {
    kill_group(child, Signal::KILL);
    child.wait()
}

fn kill_group(child: &Child, signal: Signal) {
    let _ = kill_process_group(Pid::from_child(child), signal);
}

fn file_length(file: &impl std::os::fd::AsFd) -> Option<u64> {
    u64::try_from(rustix::fs::fstat(file).ok()?.st_size).ok()
}

/// The end of what a file holds.
fn tail(file: &mut (impl Read + Seek + std::os::fd::AsFd)) -> Option<String> {
    let from = file_length(file)?.saturating_sub(COMPLAINTS);
    file.seek(std::io::SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(COMPLAINTS).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
