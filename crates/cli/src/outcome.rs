//! Telling at a console what an operation did.

use std::process::ExitCode;

use piton_engine::model::OperationVerb;
use piton_engine::view::OperationOutcome;
use piton_wording::outcome::{changed_files, is_whole, remarks, summary};
use piton_wording::owners::Names;
use piton_wording::text;

use crate::console::{Console, Look};
use crate::table::ShownText;

/// The whole line, `undid turn 3 “make it blue”: 2 restored; verified`; two of them where the screen is too narrow.
pub fn headline(look: &Look, verb: &str, about: &str, outcome: &OperationOutcome) -> String {
    let (about, summary) = (text![verb, " ", about, ":"], summary(outcome));
    let is_long = about.width() + 1 + summary.width() > look.width;
    let space = if look.terminal && is_long { "\n  " } else { " " };
    format!("{}{space}{}", look.text(about), look.text(summary))
}

/// 1 where not all of it was done, here or in another workspace.
pub fn exit_code(outcome: &OperationOutcome) -> ExitCode {
    if is_whole(outcome) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Says what else there is to know, to a person; the verb is the one that was asked for: `rewind`, `undo` or `redo`.
pub fn say_remarks(console: &mut Console, outcome: &OperationOutcome, names: &Names, verb: OperationVerb) {
    if console.is_json() {
        return;
    }
    let here = std::env::current_dir().ok();
    let named = changed_files(outcome);
    console.say_with(|out, look| look.write(out, &named));
    let lines = remarks(&console.talk.room(), outcome, names, verb, here.as_deref());
    console.say_with(|out, look| look.write(out, &lines));
}
