//! Reporting what could not run here.

use std::io::Write;

/// Lists a test, or a part of one, as not run. `./check` names a file for the list in `PITON_TEST_NOT_RUN` and ends
/// with it; without one the line goes to stderr, bypassing the test runner's capture.
pub fn not_run(what: &str, reason: &str) {
    let line = format!("NOT RUN: {what}: {reason}\n");
    let listed = std::env::var_os("PITON_TEST_NOT_RUN").is_some_and(|list| {
        let list = std::fs::File::options().append(true).create(true).open(list);
        // In one write, since other tests append at the same time.
        list.and_then(|mut list| list.write_all(line.as_bytes())).is_ok()
    });
    if !listed {
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
