//! Programs that a test writes itself.

use std::path::Path;
use std::process::Command;

/// Creates a script that can be run at once. Another process writes it: otherwise whatever a parallel test starts at
/// that moment would inherit the open file, and the system runs no program that is open for writing.
#[track_caller]
pub fn make_program(path: &Path, script: &str) {
    let mut shell = Command::new("sh");
    let made = shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(path).arg(script).status();
    assert!(made.expect("a shell runs").success(), "{}", path.display());
}
