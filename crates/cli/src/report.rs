//! A failure on the console: in words on stderr, and with `--json` as the one document on stdout.

use std::process::ExitCode;

use piton_wording::escape::escape;
use piton_wording::{Code, Failure, Fault, Style, Surface, Text};

use crate::console::Console;

/// Says why a command was not done, and ends with the exit code for it.
pub fn report(failure: &Failure, console: &mut Console) -> ExitCode {
    report_with(failure, "", console)
}

/// The same, with a line after what happened.
pub fn report_with(failure: &Failure, line: &str, console: &mut Console) -> ExitCode {
    match failure.code {
        Code::OutputClosed => return ExitCode::SUCCESS,
        Code::Declined => console.say("Nothing was changed."),
        _ => {
            console.say(Text::new(Style::Alarm, "error:").and(Style::Plain, format!(" {}", failure.message)));
            if !line.is_empty() {
                console.say(line);
            }
            for hint in &failure.hints {
                console.say(Text::new(Style::Id, "hint:").and(Style::Plain, " ").and_all(hint.clone()));
            }
        }
    }
    if console.is_json() { print_document(failure, console) } else { exit_code(failure) }
}

/// The same in words, for somebody who is not at the console.
pub fn in_lines(failure: &Failure, surface: &dyn Surface) -> String {
    let hints = failure.hints.iter().map(|hint| format!("hint: {}", escape(&hint.said(surface))));
    [format!("error: {}", escape(&failure.message))].into_iter().chain(hints).collect::<Vec<_>>().join("\n")
}

/// Only the document of `--json`.
pub fn print_document(failure: &Failure, console: &mut Console) -> ExitCode {
    let document = failure.document(console.talk.surface.as_ref());
    let _ = console.print(&document, |_, _| Ok(())).and_then(|()| console.flush());
    exit_code(failure)
}

fn exit_code(failure: &Failure) -> ExitCode {
    match failure.fault {
        Fault::User => ExitCode::from(1),
        Fault::Piton => ExitCode::from(2),
    }
}
