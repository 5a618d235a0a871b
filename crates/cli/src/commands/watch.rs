//! `piton watch`: what happens in a workspace, as it happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use piton_engine::view::{Cursor, NumberedNotice, Since};
use piton_wording::{Failure, call, notices, text};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use signal_hook::consts::SIGINT;
use signal_hook::flag::register_conditional_shutdown;

use crate::args::Global;
use crate::console::Console;
use crate::environment::Surroundings;
use crate::waiting;

/// Print what happens in the workspace, as it happens
///
/// One line for each thing that any process records: checkpoints, sessions, turns, tool calls, gaps, names, notes,
/// rewinds, undos, redos, branches. It only reads, and never makes others wait. Ctrl-C ends it.
///
/// With `--json` each line is a document of its own, with its `kind` and a `cursor`. The first line has the kind
/// `watching`. `--since` continues after a cursor. If records were removed or rebuilt since then, a line of the kind
/// `begin-again` comes first: read again what you show, and continue from there.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Begin after this cursor instead of now
    #[arg(long, value_name = "CURSOR")]
    since: Option<Cursor>,
    /// Stop after this time: 90s, 10m; with 0s, print what there is and do not wait
    #[arg(long, value_name = "TIME", value_parser = waiting::time)]
    timeout: Option<Duration>,
}

const EXAMPLES: &str = "\
Examples:
  piton watch
  piton watch --json | jq -r 'select(.kind == \"captured\").checkpoint.id'
  piton watch --json --since kmzqkmzqkmzqkmzq.1.204 --timeout 0s     what happened since, and no waiting";

/// A line that is no notice.
#[derive(Serialize)]
struct Mark<'a> {
    kind: &'a str,
    cursor: &'a Cursor,
}

/// Records that are read at once.
const PAGE: usize = 256;
/// How long nobody looks whether the reader of the output is still there.
const TICK: Duration = Duration::from_secs(1);

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open_as_it_is()?;
    // Nothing is half done when it comes. Where the system refuses, Ctrl-C ends it all the same.
    let _ = register_conditional_shutdown(SIGINT, 0, Arc::new(AtomicBool::new(true)));
    // First, so that nothing falls between reading and waiting.
    let watcher = workspace.watcher();
    let mut cursor = match &args.since {
        Some(cursor) => cursor.clone(),
        None => workspace.cursor_now()?,
    };
    print_mark(console, "watching", &cursor)?;
    let begun = Instant::now();
    loop {
        match workspace.since(&cursor, PAGE)? {
            Since::Notices { notices, next, more } => {
                notices.iter().try_for_each(|one| print(console, one))?;
                console.flush()?;
                cursor = next;
                if more {
                    continue;
                }
            }
            Since::BeginAgain { cursor: now } => {
                console.advise(text!["records were removed or rebuilt; ", call("log"), " shows the current ones"]);
                print_mark(console, "begin-again", &now)?;
                cursor = now;
            }
        }
        loop {
            let left = args.timeout.map_or(TICK, |timeout| timeout.saturating_sub(begun.elapsed()));
            if watcher.wait(&cursor, left.min(TICK))? {
                break;
            }
            if is_closed() || args.timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
                return Ok(());
            }
        }
    }
}

fn print(console: &mut Console, one: &NumberedNotice) -> Result<(), Failure> {
    console.print(one, |out, look| writeln!(out, "{}", look.text(notices::line(&one.notice))))
}

/// Only programs need to know where they are.
fn print_mark(console: &mut Console, kind: &str, cursor: &Cursor) -> Result<(), Failure> {
    console.print(&Mark { kind, cursor }, |_, _| Ok(()))?;
    console.flush()
}

/// Whether whoever read the output is gone.
fn is_closed() -> bool {
    let stdout = io::stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let asked_for = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    asked_for.is_ok() && asked[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL)
}
