//! What a workspace's own settings take away from its protection. The file often comes with a repository that somebody
//! else made, so its user is told.

use std::time::Duration;

use piton_engine::model::settings::{Key, Layer, Settings};

/// Tools that change files in every agent's life.
const WRITERS: [&str; 6] = ["Bash", "Edit", "MultiEdit", "NotebookEdit", "Task", "Write"];
/// Names that no tool has: only a pattern for all tools, or for those of all servers, has them.
const ANY: [&str; 2] = ["\u{1}", "mcp__\u{1}"];
/// Less time than this is soon over on a busy machine.
const LITTLE_TIME: Duration = Duration::from_secs(3);
/// Ordinary files are larger than this.
const LITTLE_SIZE: u64 = 1 << 20;

/// What the workspace's file weakens, one sentence each. No text of that file is in them.
pub fn weakened(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |what: String| found.push(format!("this workspace's .piton/config.toml {what}"));
    if settings.automatic.source == Layer::Workspace && !settings.automatic.value {
        say("switches automatic captures off".to_owned());
    }
    if settings.readers.source == Layer::Workspace {
        let unseen = |tools: &[&'static str]| -> Vec<&str> {
            tools.iter().copied().filter(|tool| settings.is_reader(tool, false)).collect()
        };
        match &unseen(&WRITERS)[..] {
            _ if !unseen(&ANY).is_empty() => say("lets almost any tool run without a capture".to_owned()),
            [] => {}
            some => say(format!("lets {} run without a capture", some.join(", "))),
        }
    }
    if settings.time_budget.source == Layer::Workspace && settings.time_budget.value < LITTLE_TIME {
        say(format!("gives a capture only {}", settings.show(Key::TimeBudget).value));
    }
    if settings.size_limit.source == Layer::Workspace && settings.size_limit.value < LITTLE_SIZE {
        say(format!("leaves out files over {}", settings.show(Key::SizeLimit).value));
    }
    found
}

#[cfg(test)]
mod tests {
    use piton_engine::model::settings::read;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let of = |layer| weakened(&Settings::merged([read(text, layer).unwrap()]));
        let said: Vec<String> =
            of(Layer::Workspace).iter().map(|said| said.split_once(".toml ").unwrap().1.to_owned()).collect();
        assert_eq!(said, expected, "{text}");
        // What its user wrote, its user knows.
        assert!(of(Layer::User).is_empty());
    }

    #[test]
    fn what_a_workspace_takes_away_is_said_and_what_it_may_well_do_is_not() {
        check("capture.automatic = false", &["switches automatic captures off"]);
        check("capture.automatic = true\nhook.time-budget = \"30s\"", &[]);
        check("tools.readers = [\"*\"]", &["lets almost any tool run without a capture"]);
        check("tools.readers = [\"mcp_*\"]", &["lets almost any tool run without a capture"]);
        check("tools.readers = [\"Ba*\", \"Write\"]", &["lets Bash, Write run without a capture"]);
        check("tools.readers = [\"Ba*\"]\ntools.writers = [\"Bash\"]", &[]);
        check("tools.readers = [\"mcp__docs__*\", \"mcp__wiki__find\"]", &[]);
        check("hook.time-budget = \"1s\"", &["gives a capture only 1s"]);
        check("capture.size-limit = \"1KiB\"", &["leaves out files over 1KiB"]);
    }
}
