//! Tests of something process-wide, such as memory or umask: each has a process to itself.

use std::process::Command;

/// The first line of a test that needs a process to itself; the rest of it runs there alone. A given command starts
/// that process: it gets the program and its arguments as its last ones.
#[macro_export]
macro_rules! needs_a_process {
    () => {
        $crate::needs_a_process!(::std::process::Command::new("env"))
    };
    ($starter:expr) => {
        if !$crate::is_alone(::std::any::type_name_of_val(&|| ()), $starter) {
            return;
        }
    };
}

/// Set in the process of a test that has one to itself.
const ALONE: &str = "PITON_TEST_ALONE";

#[doc(hidden)]
pub fn is_alone(closure: &str, mut starter: Command) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let test = crate::namespace::name_of(closure);
    starter.arg(std::env::current_exe().expect("a test is a program"));
    let run = starter.args([test, "--exact", "--nocapture"]).env(ALONE, "1").output().expect("a test can be started");
    let [stdout, stderr] = [&run.stdout, &run.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    // A name that matches no test would pass as well.
    let passed = run.status.success() && stdout.contains("test result: ok. 1 passed");
    assert!(passed, "in a process of its own: {}\n{stdout}\n{stderr}", run.status);
    false
}
