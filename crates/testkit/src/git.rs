//! Real git, isolated from the machine's settings.

use std::path::Path;
use std::process::Command;

/// Runs git in a folder and returns its output.
#[track_caller]
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let run = git_command(folder, arguments).output().expect("git can be run");
    assert!(run.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// Git in a folder, not run yet.
pub fn git_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", "/nonexistent");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(folder);
    for setting in ["protocol.file.allow=always", "user.name=n", "user.email=e@x", "init.defaultBranch=main"] {
        command.args(["-c", setting]);
    }
    command.args(arguments);
    command
}
