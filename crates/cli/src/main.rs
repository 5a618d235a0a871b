//! `piton`, the command line: keep every state of a folder that an agent works in, and put any of them back.
//!
//! This room reads arguments, asks, and shows; each command is a file under `commands/`. It has no rule about
//! rewinding: what may be changed, and how, is the engine's alone.

mod agent_files;
mod args;
mod columns;
mod commands;
mod console;
mod conversation;
mod environment;
mod files;
mod gitconfig;
mod help;
mod hook;
mod hunks;
mod inside;
mod operate;
mod outcome;
mod pager;
mod paint;
mod patch;
mod paths;
mod progress;
mod prose;
mod report;
mod settings;
mod settle;
mod signals;
mod summarizer;
mod table;
mod titles;
mod tree;
mod unread;
mod waiting;
mod zone;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use console::Console;
use inside::Inside;
use piton_wording::{Failure, Surface, Terminal};

fn main() -> ExitCode {
    // With a handler, a write beyond the limit on a file's size is an error like any other instead of the end.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    // Before all else: an agent waits, and a mistake in the arguments is no reason to stop it.
    if let Some(arguments) = hook::arguments() {
        return hook::run(arguments, || args::print_help(hook::NAME));
    }
    let mut cli = match args::read() {
        Ok(cli) => cli,
        Err(refused) => return refused.show(),
    };
    let (surface, settled): (Rc<dyn Surface>, _) = match Inside::of_process() {
        Some(mut inside) => {
            let settled = inside.settle(&mut cli);
            (Rc::new(inside), settled)
        }
        None => {
            let workspace = cli.global.workspace.clone().map(Into::into);
            (Rc::new(Terminal { workspace, zone: zone::local() }), Ok(()))
        }
    };
    let mut console = Console::new(cli.global.json, cli.global.color, surface);
    let run = || settled.and_then(|()| commands::run(cli, &mut console));
    let ran = catch_unwind(AssertUnwindSafe(run));
    let code = ran
        .unwrap_or_else(|_| Err(Failure::bug("piton stopped in the middle of its work")))
        .and_then(|code| console.flush().map(|()| code))
        .unwrap_or_else(|failure| report::report(&failure, &mut console));
    console.finish();
    code
}
