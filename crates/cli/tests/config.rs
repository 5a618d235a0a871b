//! `piton config` from outside: which file decides, and what is said about a file with a mistake in it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test may stop where it likes")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// A workspace, a store, a home and a configuration folder in a scratch folder; commands run inside the workspace.
struct Scene {
    scratch: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for folder in ["ws/.piton", "ws/src", "home/.config", "settings", "tmp"] {
            fs::create_dir_all(scratch.path().join(folder)).unwrap();
        }
        Self { scratch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    fn user(&self) -> PathBuf {
        self.path("settings/piton/config.toml")
    }

    fn workspace(&self) -> PathBuf {
        self.path("ws/.piton/config.toml")
    }

    fn piton(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_piton"));
        command.env_clear().current_dir(self.path("ws")).args(args).stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("XDG_CONFIG_HOME", self.path("settings"));
        command.env("PITON_HOME", self.path("store")).env("TMPDIR", self.path("tmp"));
        command
    }

    /// The stdout of a command that works.
    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        out(self.piton(args))
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--json"]].concat())).unwrap()
    }

    /// What `piton config` says on stderr when it cannot be done.
    #[track_caller]
    fn refused(&self) -> String {
        said(self.piton(&["config"]))
    }
}

#[track_caller]
fn out(mut command: Command) -> String {
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{command:?}: {}", both(&done));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{command:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[track_caller]
fn said(mut command: Command) -> String {
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{command:?}: {}", both(&done));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "", "{command:?}");
    String::from_utf8(done.stderr).unwrap()
}

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

mod values {
    use super::*;

    #[test]
    fn without_files_the_defaults_hold() {
        let scene = Scene::new();
        let (user, workspace) = (scene.user(), scene.workspace());
        assert_eq!(
            scene.ok(&["config"]),
            format!(
                "capture.automatic           true            default\n\
                 capture.size-limit          2GiB            default\n\
                 capture.ignored-limit       1MiB            default\n\
                 hook.time-budget            10s             default\n\
                 hook.user-line              false           default\n\
                 hook.tell-agent             true            default\n\
                 tools.readers               none            default\n\
                 tools.writers               none            default\n\
                 conversation.most-branches  100             default\n\
                 summary.command             none            default\n\
                 summary.url                 none            default\n\
                 summary.model               none            default\n\
                 summary.key-env             OPENAI_API_KEY  default\n\
                 summary.time-limit          3m              default\n\
                 \n\
                 user       {} (not there)\n\
                 workspace  {} (not there)\n",
                user.display(),
                workspace.display(),
            )
        );
        assert!(!scene.path("store").exists(), "showing settings makes no store");
    }

    #[test]
    fn a_variable_decides_over_the_workspace_and_the_workspace_over_the_user() {
        let scene = Scene::new();
        write(
            &scene.user(),
            "[capture]\nautomatic = false\nsize-limit = \"1 GB\"\nignored-limit = 1500\n[hook]\ntime-budget = \"20s\"\n",
        );
        write(
            &scene.workspace(),
            "capture.size-limit = \"512KiB\"\nhook.time-budget = \"30s\"\n\
             tools.readers = [\"mcp__docs__search\", \"mcp__wiki__*\"]\n",
        );
        let mut command = scene.piton(&["config"]);
        command.env("PITON_HOOK_TIME_BUDGET", "1m").env("PITON_HOOK_USER_LINE", "");
        let table = out(command);
        let rows: Vec<_> = table.lines().take(9).collect();
        assert_eq!(
            rows,
            [
                "capture.automatic           false                            user",
                "capture.size-limit          512KiB                           workspace",
                "capture.ignored-limit       1500                             user",
                "hook.time-budget            1m                               PITON_HOOK_TIME_BUDGET",
                "hook.user-line              false                            default",
                "hook.tell-agent             true                             default",
                "tools.readers               mcp__docs__search, mcp__wiki__*  workspace",
                "tools.writers               none                             default",
                "conversation.most-branches  100                              default",
            ]
        );
        assert!(!table.contains("not there"), "{table}");
    }

    #[test]
    fn one_value_is_printed_plainly() {
        let scene = Scene::new();
        write(&scene.user(), "[tools]\nreaders = ['a', \"b\\u001b[2J\"]\n");
        for (key, expected) in [
            ("capture.automatic", "true\n"),
            ("capture.size-limit", "2GiB\n"),
            ("hook.time-budget", "10s\n"),
            ("tools.readers", "a\nb\\x1b[2J\n"),
            ("tools.writers", ""),
        ] {
            assert_eq!(scene.ok(&["config", key]), expected, "{key}");
        }
        let refused = said(scene.piton(&["config", "capture.automtic"]));
        assert!(refused.contains("capture.automtic") && refused.contains("'capture.automatic'"), "{refused}");
    }

    #[test]
    fn it_works_in_a_workspace_in_its_folders_and_outside_of_any() {
        let scene = Scene::new();
        write(&scene.workspace(), "[hook]\nuser-line = true\n");
        scene.piton(&["checkpoint"]).output().unwrap();
        for (folder, expected) in [("ws", "true\n"), ("ws/src", "true\n"), ("tmp", "false\n"), ("home", "false\n")] {
            let mut command = scene.piton(&["config", "hook.user-line"]);
            command.current_dir(scene.path(folder));
            assert_eq!(out(command), expected, "{folder}");
        }
        let named = scene.path("ws");
        let mut command = scene.piton(&["config", "hook.user-line", "--workspace", named.to_str().unwrap()]);
        command.current_dir("/");
        assert_eq!(out(command), "true\n");
    }
}

mod places {
    use super::*;

    #[test]
    fn the_users_file_is_where_the_variables_say() {
        let scene = Scene::new();
        let workspace = scene.workspace();
        let paths = |command: Command| {
            let printed = out(command);
            let (user, rest) = printed.split_once('\n').unwrap();
            assert_eq!(rest, format!("{}\n", workspace.display()));
            PathBuf::from(user)
        };
        assert_eq!(paths(scene.piton(&["config", "--path"])), scene.user());
        let mut no_folder = scene.piton(&["config", "--path"]);
        no_folder.env_remove("XDG_CONFIG_HOME").env("PITON_CONFIG", "");
        assert_eq!(paths(no_folder), scene.path("home/.config/piton/config.toml"));
        let mut chosen = scene.piton(&["config", "--path"]);
        chosen.env("PITON_CONFIG", "src/mine.toml");
        assert_eq!(paths(chosen), scene.path("ws/src/mine.toml"));
    }

    #[test]
    fn a_chosen_file_is_read_instead_of_the_usual_one() {
        let scene = Scene::new();
        write(&scene.user(), "[hook]\nuser-line = true\n");
        write(&scene.path("tmp/mine.toml"), "[hook]\ntime-budget = '9s'\n");
        for (place, line, budget) in [("tmp/mine.toml", "false\n", "9s\n"), ("tmp/nosuch.toml", "false\n", "10s\n")] {
            for (key, expected) in [("hook.user-line", line), ("hook.time-budget", budget)] {
                let mut command = scene.piton(&["config", key]);
                command.env("PITON_CONFIG", scene.path(place));
                assert_eq!(out(command), expected, "{place}");
            }
        }
        let mut none = scene.piton(&["config", "hook.user-line"]);
        none.env("PITON_CONFIG", "/dev/null");
        assert_eq!(out(none), "false\n");
    }

    #[test]
    fn the_path_of_a_file_with_a_mistake_is_still_told() {
        let scene = Scene::new();
        write(&scene.user(), "[capture\n");
        scene.refused();
        assert!(scene.ok(&["config", "--path"]).starts_with(scene.user().to_str().unwrap()));
        let document = scene.json(&["config", "--path"]);
        assert_eq!(document["files"][0]["exists"], true);
        assert_eq!(document.get("settings"), None);
    }

    #[test]
    fn the_users_file_may_be_a_link() {
        let scene = Scene::new();
        write(&scene.path("home/dotfiles/piton.toml"), "[hook]\nuser-line = true\n");
        fs::create_dir_all(scene.user().parent().unwrap()).unwrap();
        symlink(scene.path("home/dotfiles/piton.toml"), scene.user()).unwrap();
        assert_eq!(scene.ok(&["config", "hook.user-line"]), "true\n");
    }
}

mod mistakes {
    use super::*;

    #[test]
    fn a_wrong_key_is_named_with_its_place_and_the_nearest_one() {
        let scene = Scene::new();
        let file = scene.path("home/.config/piton/config.toml");
        write(&file, "\n[capture]\nautomtic = true\n");
        let mut command = scene.piton(&["config"]);
        command.env_remove("XDG_CONFIG_HOME");
        assert_eq!(
            said(command),
            "error: ~/.config/piton/config.toml:3:1: unknown key `capture.automtic`; \
             did you mean `capture.automatic`?\n\
             hint: `piton help config` lists the keys and what they take\n"
        );
    }

    #[test]
    fn a_wrong_value_says_what_is_expected() {
        let scene = Scene::new();
        for (text, expected) in [
            ("capture.automatic = 'on'", ":1:21: `capture.automatic` takes true or false; found \"on\"\n"),
            ("capture.size-limit = 'huge'", ":1:22: `capture.size-limit` takes a size such as \"512KiB\""),
            (
                "hook.time-budget = '1h'",
                ":1:20: `hook.time-budget` takes a time from \"1s\" to \"10m\", such as \"10s\"",
            ),
            ("tools.readers = 'Read'", ":1:17: `tools.readers` takes a list of tools such as [\"mcp__docs__search\""),
            ("[hooks]", ":1:2: unknown section `hooks`; did you mean `hook`?\n"),
            ("[hook\n", ":1:6: this is not TOML: "),
        ] {
            write(&scene.workspace(), text);
            let refused = scene.refused();
            let place = format!("error: {}{expected}", scene.workspace().display());
            assert!(refused.starts_with(&place), "{refused}\n{place}");
        }
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let scene = Scene::new();
        let mut command = scene.piton(&["config"]);
        command.env("PITON_HOOK_TIME_BUDGET", "soon");
        assert_eq!(
            said(command),
            "error: PITON_HOOK_TIME_BUDGET: `hook.time-budget` takes a time from \"1s\" to \"10m\", such as \"10s\"; \
             found \"soon\"\n"
        );
    }

    #[test]
    fn what_a_hostile_file_says_reaches_no_terminal_raw() {
        let scene = Scene::new();
        write(&scene.workspace(), "\"\\u001b[2J\\u202e\" = 1\n");
        let refused = scene.refused();
        assert!(refused.contains("unknown key `\\x1b[2J\\u{202e}`") && !refused.contains('\x1b'), "{refused}");
    }
}

mod files {
    use super::*;

    #[test]
    fn a_link_in_a_workspace_is_refused_and_nothing_is_read_through_it() {
        let scene = Scene::new();
        let outside = scene.path("home/elsewhere/config.toml");
        write(&outside, "secret = 1\n");
        symlink(&outside, scene.workspace()).unwrap();
        let is_refused = || {
            let refused = scene.refused();
            assert!(refused.contains(".piton/config.toml: a symlink leads there"), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
        };
        is_refused();
        fs::remove_dir_all(scene.path("ws/.piton")).unwrap();
        symlink(outside.parent().unwrap(), scene.path("ws/.piton")).unwrap();
        is_refused();
        // A link to nowhere is a link too.
        fs::remove_file(scene.path("ws/.piton")).unwrap();
        fs::create_dir(scene.path("ws/.piton")).unwrap();
        symlink("/nosuch", scene.workspace()).unwrap();
        is_refused();
    }

    #[test]
    fn a_workspace_that_is_reached_through_a_link_has_its_settings() {
        let scene = Scene::new();
        write(&scene.workspace(), "[hook]\nuser-line = true\n");
        symlink(scene.path("ws"), scene.path("link")).unwrap();
        let link = scene.path("link");
        assert_eq!(scene.ok(&["config", "hook.user-line", "--workspace", link.to_str().unwrap()]), "true\n");
    }

    #[test]
    fn what_is_no_file_of_settings_is_named() {
        let scene = Scene::new();
        let user = scene.user();
        let is_refused = |why: &str| {
            let refused = scene.refused();
            assert!(refused.starts_with(&format!("error: {}: {why}", user.display())), "{refused}");
        };
        write(&user, b"# caf\xc3\xa9\n# caf\xe9\n");
        is_refused("line 2 is not UTF-8");
        write(&user, "#".repeat((1 << 20) + 1));
        is_refused("this is larger than 1 MiB");
        fs::remove_file(&user).unwrap();
        fs::create_dir(&user).unwrap();
        is_refused("this is no file");
        fs::remove_dir(&user).unwrap();
        // A pipe that nobody writes to must not make a hook wait.
        assert!(Command::new("mkfifo").arg(&user).status().unwrap().success());
        is_refused("this is no file");
        fs::remove_file(&user).unwrap();
        symlink("config.toml", &user).unwrap();
        is_refused("the settings cannot be read");
    }

    #[test]
    fn a_file_as_large_as_allowed_is_read() {
        let scene = Scene::new();
        let mut text = "hook.user-line = true\n#".to_owned();
        text.extend(std::iter::repeat_n('x', (1 << 20) - text.len()));
        write(&scene.user(), text);
        assert_eq!(scene.ok(&["config", "hook.user-line"]), "true\n");
    }

    #[test]
    fn a_file_where_a_folder_should_be_is_no_settings() {
        let scene = Scene::new();
        fs::remove_dir(scene.path("ws/.piton")).unwrap();
        write(&scene.path("ws/.piton"), "");
        write(&scene.path("settings/piton"), "");
        assert!(scene.ok(&["config"]).contains("(not there)"));
    }
}

mod json {
    use super::*;

    #[test]
    fn a_document_has_every_setting_and_both_files() {
        let scene = Scene::new();
        write(&scene.workspace(), "capture.automatic = false\ntools.writers = ['Read']\n");
        let mut command = scene.piton(&["config", "--json"]);
        command.env("PITON_HOOK_USER_LINE", "true");
        let document: Value = serde_json::from_str(&out(command)).unwrap();
        let file = scene.workspace();
        assert_eq!(
            document,
            json!({
                "settings": [
                    { "key": "capture.automatic", "value": false, "source": "workspace", "file": file },
                    { "key": "capture.size-limit", "value": 2_147_483_648_u64, "source": "default" },
                    { "key": "capture.ignored-limit", "value": 1_048_576, "source": "default" },
                    { "key": "hook.time-budget", "value": "10s", "source": "default" },
                    { "key": "hook.user-line", "value": true, "source": "environment", "variable": "PITON_HOOK_USER_LINE" },
                    { "key": "hook.tell-agent", "value": true, "source": "default" },
                    { "key": "tools.readers", "value": [], "source": "default" },
                    { "key": "tools.writers", "value": ["Read"], "source": "workspace", "file": file },
                    { "key": "conversation.most-branches", "value": 100, "source": "default" },
                    { "key": "summary.command", "value": "", "source": "default" },
                    { "key": "summary.url", "value": "", "source": "default" },
                    { "key": "summary.model", "value": "", "source": "default" },
                    { "key": "summary.key-env", "value": "OPENAI_API_KEY", "source": "default" },
                    { "key": "summary.time-limit", "value": "3m", "source": "default" },
                ],
                "files": [
                    { "source": "user", "path": scene.user(), "exists": false },
                    { "source": "workspace", "path": file, "exists": true },
                ],
            })
        );
    }

    #[test]
    fn one_key_is_the_same_document_with_one_setting() {
        let scene = Scene::new();
        let document = scene.json(&["config", "hook.time-budget"]);
        let expected = json!([{ "key": "hook.time-budget", "value": "10s", "source": "default" }]);
        assert_eq!(document["settings"], expected);
    }

    #[test]
    fn a_mistake_is_a_document_too() {
        let scene = Scene::new();
        write(&scene.user(), "x = 1\n");
        let done = scene.piton(&["config", "--json"]).output().unwrap();
        assert_eq!(done.status.code(), Some(1));
        let document: Value = serde_json::from_slice(&done.stdout).unwrap();
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("config.toml:1:1: unknown key `x`"), "{message}");
    }
}

mod help {
    use super::*;

    /// The help, the page about settings and the code say the same.
    #[test]
    fn the_defaults_in_the_help_and_in_the_docs_are_the_defaults() {
        let scene = Scene::new();
        let help = scene.ok(&["help", "config"]);
        let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md")).unwrap();
        let example: String = docs.split("```toml\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
        let (_, rest) = help.split_once("as a file has them:\n").unwrap();
        let (in_help, _) = rest.split_once("\n\n").unwrap();
        let defaults = scene.json(&["config"])["settings"].clone();
        for text in [&example, in_help] {
            write(&scene.user(), text);
            let read = scene.json(&["config"])["settings"].clone();
            for (setting, default) in read.as_array().unwrap().iter().zip(defaults.as_array().unwrap()) {
                assert_eq!(setting["source"], "user", "{setting}");
                assert_eq!(setting["value"], default["value"], "{setting}");
            }
            fs::remove_file(scene.user()).unwrap();
        }
        for setting in defaults.as_array().unwrap() {
            let key = setting["key"].as_str().unwrap();
            assert!(docs.contains(&format!("| `{key}` |")), "{key}");
            if !key.starts_with("tools.") {
                let variable = format!("PITON_{}", key.replace(['.', '-'], "_").to_uppercase());
                assert!(help.contains(&variable), "{variable}");
            }
        }
    }
}
