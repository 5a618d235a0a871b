//! `piton config` from outside: which file decides, and what is said about a file with a mistake in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use piton_testkit::{Scene, both};
use serde_json::{Value, json};

use crate::PITON;

/// With folders for settings of the user's and of the workspace's.
fn scene() -> Scene {
    let mut scene = Scene::with_a_home(PITON);
    for folder in ["ws/.piton", "ws/src", "home/.config", "settings"] {
        fs::create_dir_all(scene.at(folder)).unwrap();
    }
    scene.environment.push(("XDG_CONFIG_HOME", scene.at("settings").into()));
    scene
}

fn user(scene: &Scene) -> PathBuf {
    scene.at("settings/piton/config.toml")
}

fn workspace(scene: &Scene) -> PathBuf {
    scene.world.path(".piton/config.toml")
}

/// The stdout of a command that works and says nothing beside it.
#[track_caller]
fn ok(scene: &Scene, args: &[&str]) -> String {
    out(scene.piton(args))
}

#[track_caller]
fn json(scene: &Scene, args: &[&str]) -> Value {
    serde_json::from_str(&ok(scene, &[args, &["--json"]].concat())).unwrap()
}

/// What `piton config` says on stderr when it cannot be done.
#[track_caller]
fn refused(scene: &Scene) -> String {
    scene.fails(&["config"])
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

fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

mod values {
    use super::*;

    #[test]
    fn without_files_the_defaults_hold() {
        let scene = scene();
        let (user, workspace) = (user(&scene), workspace(&scene));
        assert_eq!(
            ok(&scene, &["config"]),
            format!(
                "capture.automatic           true            default\n\
                 capture.size-limit          2GiB            default\n\
                 capture.ignored-limit       1MiB            default\n\
                 hook.time-budget            10s             default\n\
                 hook.user-line              true            default\n\
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
        assert!(!scene.at("store").exists(), "showing settings makes no store");
    }

    #[test]
    fn a_variable_decides_over_the_workspace_and_the_workspace_over_the_user() {
        let scene = scene();
        write(
            user(&scene),
            "[capture]\nautomatic = false\nsize-limit = \"1 GB\"\nignored-limit = 1500\n[hook]\ntime-budget = \"20s\"\n",
        );
        write(
            workspace(&scene),
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
                "hook.user-line              true                             default",
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
        let scene = scene();
        write(user(&scene), "[tools]\nreaders = ['a', \"b\\u001b[2J\"]\n");
        for (key, expected) in [
            ("capture.automatic", "true\n"),
            ("capture.size-limit", "2GiB\n"),
            ("hook.time-budget", "10s\n"),
            ("tools.readers", "a\nb\\x1b[2J\n"),
            ("tools.writers", ""),
        ] {
            assert_eq!(ok(&scene, &["config", key]), expected, "{key}");
        }
        let refused = said(scene.piton(&["config", "capture.automtic"]));
        assert!(
            refused.contains("capture.automtic") && refused.contains("did you mean `capture.automatic`?"),
            "{refused}"
        );
    }

    #[test]
    fn it_works_in_a_workspace_in_its_folders_and_outside_of_any() {
        let scene = scene();
        write(workspace(&scene), "[hook]\nuser-line = false\n");
        scene.piton(&["checkpoint"]).output().unwrap();
        for (folder, expected) in [("ws", "false\n"), ("ws/src", "false\n"), ("tmp", "true\n"), ("home", "true\n")] {
            let mut command = scene.piton(&["config", "hook.user-line"]);
            command.current_dir(scene.at(folder));
            assert_eq!(out(command), expected, "{folder}");
        }
        let named = scene.at("ws");
        let mut command = scene.piton(&["config", "hook.user-line", "--workspace", named.to_str().unwrap()]);
        command.current_dir("/");
        assert_eq!(out(command), "false\n");
    }
}

mod places {
    use super::*;

    #[test]
    fn the_users_file_is_where_the_variables_say() {
        let scene = scene();
        let workspace = workspace(&scene);
        let paths = |command: Command| {
            let printed = out(command);
            let (user, rest) = printed.split_once('\n').unwrap();
            assert_eq!(rest, format!("{}\n", workspace.display()));
            PathBuf::from(user)
        };
        assert_eq!(paths(scene.piton(&["config", "--path"])), user(&scene));
        let mut no_folder = scene.piton(&["config", "--path"]);
        no_folder.env_remove("XDG_CONFIG_HOME").env("PITON_CONFIG", "");
        assert_eq!(paths(no_folder), scene.at("home/.config/piton/config.toml"));
        let mut chosen = scene.piton(&["config", "--path"]);
        chosen.env("PITON_CONFIG", "src/mine.toml");
        assert_eq!(paths(chosen), scene.at("ws/src/mine.toml"));
    }

    #[test]
    fn a_chosen_file_is_read_instead_of_the_usual_one() {
        let scene = scene();
        write(user(&scene), "[hook]\nuser-line = false\n");
        write(scene.at("tmp/mine.toml"), "[hook]\ntime-budget = '9s'\n");
        for (place, line, budget) in [("tmp/mine.toml", "true\n", "9s\n"), ("tmp/nosuch.toml", "true\n", "10s\n")] {
            for (key, expected) in [("hook.user-line", line), ("hook.time-budget", budget)] {
                let mut command = scene.piton(&["config", key]);
                command.env("PITON_CONFIG", scene.at(place));
                assert_eq!(out(command), expected, "{place}");
            }
        }
        let mut none = scene.piton(&["config", "hook.user-line"]);
        none.env("PITON_CONFIG", "/dev/null");
        assert_eq!(out(none), "true\n");
    }

    #[test]
    fn the_path_of_a_file_with_a_mistake_is_still_told() {
        let scene = scene();
        write(user(&scene), "[capture\n");
        refused(&scene);
        assert!(ok(&scene, &["config", "--path"]).starts_with(user(&scene).to_str().unwrap()));
        let document = json(&scene, &["config", "--path"]);
        assert_eq!(document["files"][0]["exists"], true);
        assert_eq!(document.get("settings"), None);
    }

    #[test]
    fn the_users_file_may_be_a_link() {
        let scene = scene();
        write(scene.at("home/dotfiles/piton.toml"), "[hook]\nuser-line = false\n");
        fs::create_dir_all(user(&scene).parent().unwrap()).unwrap();
        symlink(scene.at("home/dotfiles/piton.toml"), user(&scene)).unwrap();
        assert_eq!(ok(&scene, &["config", "hook.user-line"]), "false\n");
    }
}

mod mistakes {
    use super::*;

    #[test]
    fn a_wrong_key_is_named_with_its_place_and_the_nearest_one() {
        let scene = scene();
        let file = scene.at("home/.config/piton/config.toml");
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
        let scene = scene();
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
            write(workspace(&scene), text);
            let refused = refused(&scene);
            let place = format!("error: {}{expected}", workspace(&scene).display());
            assert!(refused.starts_with(&place), "{refused}\n{place}");
        }
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let scene = scene();
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
        let scene = scene();
        write(workspace(&scene), "\"\\u001b[2J\\u202e\" = 1\n");
        let refused = refused(&scene);
        assert!(refused.contains("unknown key `\\x1b[2J\\u{202e}`") && !refused.contains('\x1b'), "{refused}");
    }
}

mod files {
    use super::*;

    #[test]
    fn a_link_in_a_workspace_is_refused_and_nothing_is_read_through_it() {
        let scene = scene();
        let outside = scene.at("home/elsewhere/config.toml");
        write(&outside, "secret = 1\n");
        symlink(&outside, workspace(&scene)).unwrap();
        let is_refused = || {
            let refused = refused(&scene);
            assert!(refused.contains(".piton/config.toml: a symlink leads there"), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
        };
        is_refused();
        fs::remove_dir_all(scene.at("ws/.piton")).unwrap();
        symlink(outside.parent().unwrap(), scene.at("ws/.piton")).unwrap();
        is_refused();
        // A link to nowhere is a link too.
        fs::remove_file(scene.at("ws/.piton")).unwrap();
        fs::create_dir(scene.at("ws/.piton")).unwrap();
        symlink("/nosuch", workspace(&scene)).unwrap();
        is_refused();
    }

    #[test]
    fn a_workspace_that_is_reached_through_a_link_has_its_settings() {
        let scene = scene();
        write(workspace(&scene), "[hook]\nuser-line = false\n");
        symlink(scene.at("ws"), scene.at("link")).unwrap();
        let link = scene.at("link");
        assert_eq!(ok(&scene, &["config", "hook.user-line", "--workspace", link.to_str().unwrap()]), "false\n");
    }

    #[test]
    fn what_is_no_file_of_settings_is_named() {
        let scene = scene();
        let user = user(&scene);
        let is_refused = |why: &str| {
            let refused = refused(&scene);
            assert!(refused.starts_with(&format!("error: {}: {why}", user.display())), "{refused}");
        };
        write(&user, b"# caf\xc3\xa9\n# caf\xe9\n");
        is_refused("line 2 is not UTF-8");
        write(&user, "#".repeat((1 << 20) + 1));
        is_refused("this is larger than 1 MiB");
        fs::remove_file(&user).unwrap();
        fs::create_dir(&user).unwrap();
        is_refused("this is not a file");
        fs::remove_dir(&user).unwrap();
        // A pipe that nobody writes to must not make a hook wait.
        assert!(Command::new("mkfifo").arg(&user).status().unwrap().success());
        is_refused("this is not a file");
        fs::remove_file(&user).unwrap();
        symlink("config.toml", &user).unwrap();
        is_refused("the settings cannot be read");
    }

    #[test]
    fn a_file_as_large_as_allowed_is_read() {
        let scene = scene();
        let mut text = "hook.user-line = false\n#".to_owned();
        text.extend(std::iter::repeat_n('x', (1 << 20) - text.len()));
        write(user(&scene), text);
        assert_eq!(ok(&scene, &["config", "hook.user-line"]), "false\n");
    }

    #[test]
    fn a_file_where_a_folder_should_be_is_no_settings() {
        let scene = scene();
        fs::remove_dir(scene.at("ws/.piton")).unwrap();
        write(scene.at("ws/.piton"), "");
        write(scene.at("settings/piton"), "");
        assert!(ok(&scene, &["config"]).contains("(not there)"));
    }
}

mod json {
    use super::*;

    #[test]
    fn a_document_has_every_setting_and_both_files() {
        let scene = scene();
        write(workspace(&scene), "capture.automatic = false\ntools.writers = ['Read']\n");
        let mut command = scene.piton(&["config", "--json"]);
        command.env("PITON_HOOK_USER_LINE", "true");
        let document: Value = serde_json::from_str(&out(command)).unwrap();
        let file = workspace(&scene);
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
                    { "source": "user", "path": user(&scene), "exists": false },
                    { "source": "workspace", "path": file, "exists": true },
                ],
            })
        );
    }

    #[test]
    fn one_key_is_the_same_document_with_one_setting() {
        let scene = scene();
        let document = json(&scene, &["config", "hook.time-budget"]);
        let expected = json!([{ "key": "hook.time-budget", "value": "10s", "source": "default" }]);
        assert_eq!(document["settings"], expected);
    }

    #[test]
    fn a_mistake_is_a_document_too() {
        let scene = scene();
        write(user(&scene), "x = 1\n");
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
        let scene = scene();
        let help = ok(&scene, &["help", "config"]);
        let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md")).unwrap();
        let example: String = docs.split("```toml\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
        let (_, rest) = help.split_once("as a file has them:\n").unwrap();
        let (in_help, _) = rest.split_once("\n\n").unwrap();
        let defaults = json(&scene, &["config"])["settings"].clone();
        for text in [&example, in_help] {
            write(user(&scene), text);
            let read = json(&scene, &["config"])["settings"].clone();
            for (setting, default) in read.as_array().unwrap().iter().zip(defaults.as_array().unwrap()) {
                assert_eq!(setting["source"], "user", "{setting}");
                assert_eq!(setting["value"], default["value"], "{setting}");
            }
            fs::remove_file(user(&scene)).unwrap();
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

mod setting {
    use super::*;

    #[test]
    fn a_key_is_set_in_the_users_file_or_the_workspaces_and_the_rest_stays() {
        let scene = scene();
        assert_eq!(ok(&scene, &["config", "hook.time-budget", "20s"]), "hook.time-budget = 20s (user)\n");
        assert_eq!(fs::read_to_string(user(&scene)).unwrap(), "[hook]\ntime-budget = \"20s\"\n");
        fs::write(user(&scene), "# mine\n[hook]\ntime-budget = \"20s\" # long\n").unwrap();
        ok(&scene, &["config", "hook.time-budget", "30s"]);
        assert_eq!(fs::read_to_string(user(&scene)).unwrap(), "# mine\n[hook]\ntime-budget = \"30s\" # long\n");
        scene.run(&["config", "tools.readers", "a,mcp__b__*", "--project"]);
        assert_eq!(fs::read_to_string(workspace(&scene)).unwrap(), "[tools]\nreaders = [\"a\", \"mcp__b__*\"]\n");
        ok(&scene, &["config", "hook.time-budget", "--unset"]);
        assert_eq!(fs::read_to_string(user(&scene)).unwrap(), "# mine\n[hook]\n");
        assert_eq!(json(&scene, &["config", "hook.user-line", "true"])["value"], true);
    }

    #[test]
    fn a_wrong_value_a_broken_file_and_a_symlink_change_nothing() {
        let scene = scene();
        let refused = said(scene.piton(&["config", "hook.time-budget", "soon"]));
        assert!(refused.contains("takes a time from") && refused.contains("nothing was changed"), "{refused}");
        assert!(!user(&scene).exists());
        let refused = said(scene.piton(&["config", "summary.command", "x", "--project"]));
        assert!(refused.contains("counts in your own file only"), "{refused}");
        fs::create_dir_all(user(&scene).parent().unwrap()).unwrap();
        fs::write(user(&scene), "[hoook]\n").unwrap();
        let refused = said(scene.piton(&["config", "hook.user-line", "true"]));
        assert!(refused.contains("hint: mend the file first"), "{refused}");
        assert_eq!(fs::read_to_string(user(&scene)).unwrap(), "[hoook]\n");
        symlink("/nowhere/else", workspace(&scene)).unwrap();
        let refused = said(scene.piton(&["config", "hook.user-line", "true", "--project"]));
        assert!(refused.contains("a symlink leads there"), "{refused}");
    }

    #[test]
    fn what_decides_over_the_file_is_named() {
        let scene = scene();
        let done =
            scene.piton(&["config", "hook.user-line", "true"]).env("PITON_HOOK_USER_LINE", "false").output().unwrap();
        assert!(both(&done).contains("PITON_HOOK_USER_LINE says otherwise and decides"), "{}", both(&done));
    }
}
