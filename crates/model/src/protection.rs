//! How well a workspace's own settings protect it, and whether they protect less than before.
//!
//! Pure values: who wrote the settings, and whether that counts, is determined in `engine::agreed`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::{Key, Layer, LayerSettings, Settings};

/// The settings of one file that affect protection; `None` for a key that the file does not have. Each field is the one
/// of `Settings` with that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Protection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_budget: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writers: Option<Vec<String>>,
}

impl Protection {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The keys in which it protects less than `other`, each falling back to the user's own file.
    pub fn weaker_than(&self, other: &Self, users: &Self) -> Vec<Key> {
        let (now, then) = (self.settings(users), other.settings(users));
        let has_more = |these: &[String], than: &[String]| these.iter().any(|tool| !than.contains(tool));
        let weaker = [
            (Key::Automatic, !now.automatic.value && then.automatic.value),
            (Key::SizeLimit, now.size_limit.value < then.size_limit.value),
            (Key::IgnoredLimit, now.ignored_limit.value < then.ignored_limit.value),
            (Key::TimeBudget, now.time_budget.value < then.time_budget.value),
            (Key::Readers, has_more(&now.readers.value, &then.readers.value)),
            (Key::Writers, has_more(&then.writers.value, &now.writers.value)),
        ];
        weaker.into_iter().filter(|(_, is_weaker)| *is_weaker).map(|(key, _)| key).collect()
    }

    /// The settings in force while nobody has agreed to the weaker ones: those are as last agreed, the others as the
    /// file says.
    pub fn held_to(&self, agreed: &Self, users: &Self) -> Self {
        let mut held = self.clone();
        for key in self.weaker_than(agreed, users) {
            match key {
                Key::Automatic => held.automatic = agreed.automatic,
                Key::SizeLimit => held.size_limit = agreed.size_limit,
                Key::IgnoredLimit => held.ignored_limit = agreed.ignored_limit,
                Key::TimeBudget => held.time_budget = agreed.time_budget,
                Key::Readers => held.readers.clone_from(&agreed.readers),
                Key::Writers => held.writers.clone_from(&agreed.writers),
                _ => {}
            }
        }
        held
    }

    /// These settings, falling back to the user's own file and then to the defaults.
    pub fn settings(&self, users: &Self) -> Settings {
        let of = |layer: Layer, what: &Self| LayerSettings::empty(layer).protecting(what);
        Settings::merged([of(Layer::User, users), of(Layer::Workspace, self)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Protection {
        crate::settings::read(text, Layer::Workspace).unwrap().protection()
    }

    #[track_caller]
    fn check(now: &str, agreed: &str, weaker: &[Key], held: &str) {
        check_over("", now, agreed, weaker, held);
    }

    #[track_caller]
    fn check_over(users: &str, now: &str, agreed: &str, weaker: &[Key], held: &str) {
        let (users, now, agreed) = (of(users), of(now), of(agreed));
        assert_eq!(now.weaker_than(&agreed, &users), weaker);
        assert_eq!(now.held_to(&agreed, &users), of(held));
    }

    #[test]
    fn what_the_user_says_elsewhere_is_what_a_file_is_measured_by() {
        let limit = |size: &str| format!("capture.ignored-limit = \"{size}\"");
        // More than the default, and less than the user wants everywhere.
        check_over(&limit("50MiB"), &limit("5MiB"), "", &[Key::IgnoredLimit], "");
        check_over(&limit("50MiB"), &limit("60MiB"), "", &[], &limit("60MiB"));
        // Less than the default, as the user wants it everywhere.
        check_over("capture.automatic = false", "capture.automatic = false", "", &[], "capture.automatic = false");
        check_over("tools.writers = [\"Read\"]", "tools.writers = []", "", &[Key::Writers], "");
        check_over(&limit("5MiB"), "", &limit("50MiB"), &[Key::IgnoredLimit], &limit("50MiB"));
    }

    #[test]
    fn only_what_protects_less_is_held_to_what_was_agreed() {
        check("", "", &[], "");
        check("capture.automatic = false", "", &[Key::Automatic], "");
        check("capture.automatic = true", "capture.automatic = false", &[], "capture.automatic = true");
        check(
            "capture.size-limit = 1\nhook.time-budget = \"20s\"",
            "",
            &[Key::SizeLimit],
            "hook.time-budget = \"20s\"",
        );
        // Removing a setting that protects more than the default is weaker, too.
        check("", "capture.ignored-limit = \"5MiB\"", &[Key::IgnoredLimit], "capture.ignored-limit = \"5MiB\"");
        check("tools.readers = [\"Bash\"]", "tools.readers = [\"X\"]", &[Key::Readers], "tools.readers = [\"X\"]");
        check("tools.readers = []", "tools.readers = [\"X\"]", &[], "tools.readers = []");
        check("", "tools.writers = [\"Read\"]", &[Key::Writers], "tools.writers = [\"Read\"]");
        check("hook.time-budget = \"1s\"", "", &[Key::TimeBudget], "");
        // Keys that do not affect protection are ignored.
        assert!(of("hook.user-line = true").is_empty());
    }
}
