//! What could not be read: ignore files, and listings in the store.

use std::io::{self, Write};
use std::process::ExitCode;

use piton_engine::view::{PathView, UnreadRulesView};
use piton_wording::escape::{escape_path, escape_view};
use piton_wording::{call, text, warning};

use crate::console::{Console, Look};

/// Ignore files whose rules do not hold, a line each.
pub fn write_unread_rules(out: &mut dyn Write, look: &Look, unread: &[UnreadRulesView]) -> io::Result<()> {
    unread.iter().try_for_each(|one| {
        let warning = look.paint.warn("warning:");
        writeln!(out, "{warning} {} cannot be read, so its rules do not hold: {}", escape_path(&one.path), one.reason)
    })
}

/// Names the folders whose listing is damaged in the store; 1 where there are any.
pub fn say_unreadable(console: &mut Console, folders: &[PathView]) -> ExitCode {
    if folders.is_empty() {
        return ExitCode::SUCCESS;
    }
    let names: Vec<_> = folders.iter().map(escape_view).collect();
    console.say(warning(format!("damaged in piton's store, so what is in them cannot be told: {}", names.join(", "))));
    console.advise(text![call("verify"), " names what is damaged"]);
    ExitCode::from(1)
}
