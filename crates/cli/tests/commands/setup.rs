//! `piton setup` from outside, on real files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use piton_agents::claude_code::{command, settings};
use piton_testkit::{Scene, both, git, give, snapshot, without_privileges};
use serde_json::{Value, json};

use crate::PITON;

/// A workspace, a store and a home in a scratch folder.
fn scene() -> Scene {
    let scene = Scene::with_a_home(PITON);
    fs::create_dir(scene.at("home/.claude")).unwrap();
    scene.world.write("a.txt", "one\n");
    scene
}

const FULL: &str = r#"{
    // mine
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            { "matcher": "Bash", "hooks": [{ "type": "command", "command": "my-check" }] }, // keep
        ],
    },
    "env": { "A": "b" }
}
"#;

#[test]
fn what_was_added_is_taken_out_again_to_the_byte() {
    for before in [None, Some(""), Some("{}"), Some("{\n  \"model\": \"opus\"\n}\n"), Some(FULL)] {
        let scene = scene();
        let file = scene.at("home/.claude/settings.json");
        if let Some(text) = before {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        }
        let was = snapshot(&scene.at("home"));
        let done = scene.json(&["setup"]);
        assert_eq!((&done["hooks"], &done["scope"]), (&json!("added"), &json!("user")));
        let text = fs::read_to_string(&file).unwrap();
        let found = settings::installed(&text).unwrap();
        assert!(found.missing.is_empty(), "{text}");
        assert_eq!(found.hooks[0].program, PathBuf::from(PITON).canonicalize().unwrap());
        if before == Some(FULL) {
            assert!(text.contains("// mine") && text.contains("my-check") && text.contains("// keep"), "{text}");
        }
        if let Some(before) = before {
            let backup = fs::read_to_string(scene.at("home/.claude/settings.json.piton-backup")).unwrap();
            assert_eq!(backup, before);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        }
        assert_eq!(fs::read_to_string(scene.at("home/.claude/commands/piton.md")).unwrap(), command::FILE.text);
        let done = scene.json(&["setup", "--remove"]);
        assert_eq!((&done["hooks"], &done["command_file"]), (&json!("removed"), &json!("removed")));
        let now = snapshot(&scene.at("home"));
        assert!(now == was, "{before:?}\n{}", now.differences(&was).join("\n"));
        // Checkpoints are kept.
        assert!(scene.piton(&["show", "start"]).output().unwrap().status.success());
    }
}

#[test]
fn doing_it_again_changes_nothing_and_says_so() {
    let scene = scene();
    fs::write(scene.at("home/.claude/settings.json"), FULL).unwrap();
    let first = scene.json(&["setup", "claude-code"]);
    assert!(first["checkpoint"]["checkpoint"]["id"].is_string(), "{first}");
    let was = snapshot(&scene.at("home"));
    let second = scene.json(&["setup"]);
    assert_eq!((&second["hooks"], &second["command_file"]), (&json!("unchanged"), &json!("unchanged")));
    assert_eq!((&second["backup"], &second["checkpoint"]), (&Value::Null, &Value::Null));
    assert!(snapshot(&scene.at("home")) == was);
    let said = both(&scene.piton(&["setup"]).output().unwrap());
    assert!(said.contains("already set up"), "{said}");
    scene.json(&["setup", "--remove"]);
    assert_eq!(scene.json(&["setup", "--remove"])["hooks"], "absent");
}

#[test]
fn every_change_is_backed_up_and_a_backup_is_never_overwritten() {
    let scene = scene();
    let file = scene.at("home/.claude/settings.json");
    let backup = scene.at("home/.claude/settings.json.piton-backup");
    fs::write(&backup, "an older one").unwrap();
    // Hooks of a piton that is elsewhere by now.
    let old = settings::install(FULL, &settings::HookCommand::new("/old/piton")).unwrap();
    fs::write(&file, &old).unwrap();
    let done = scene.json(&["setup", "--no-capture"]);
    assert_eq!(done["hooks"], "updated");
    assert_eq!(fs::read_to_string(done["backup"].as_str().unwrap()).unwrap(), old);
    fs::write(&file, FULL).unwrap();
    let done = scene.json(&["setup", "--no-capture"]);
    assert_eq!(fs::read_to_string(&backup).unwrap(), "an older one");
    let dated = done["backup"].as_str().unwrap();
    assert!(dated.contains(".piton-backup-2"), "{dated}");
    assert_eq!(fs::read_to_string(dated).unwrap(), FULL);
}

#[test]
fn a_hook_of_the_users_own_that_runs_piton_too_is_kept() {
    let scene = scene();
    let file = scene.at("home/.claude/settings.json");
    let own = "piton hook claude-code && notify-send done";
    let text = json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": own }] }] } }).to_string();
    fs::write(&file, &text).unwrap();
    scene.json(&["setup", "--no-capture"]);
    assert!(fs::read_to_string(&file).unwrap().contains(own));
    scene.json(&["setup", "--remove"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn what_is_removed_is_kept_where_its_user_had_changed_it() {
    let scene = scene();
    let file = scene.at("home/.claude/settings.json");
    scene.json(&["setup", "--no-capture"]);
    let changed = fs::read_to_string(&file).unwrap().replacen("\"timeout\": 30", "\"timeout\": 7", 1);
    fs::write(&file, &changed).unwrap();
    let done = scene.json(&["setup", "--remove"]);
    assert_eq!(fs::read_to_string(done["backup"].as_str().unwrap()).unwrap(), changed);
    // A file that was piton's idea goes with its hooks, also after an update.
    fs::write(&file, settings::install("", &settings::HookCommand::new("/old/piton")).unwrap()).unwrap();
    assert_eq!(scene.json(&["setup", "--no-capture"])["hooks"], "updated");
    let done = scene.json(&["setup", "--remove"]);
    assert_eq!((&done["hooks"], &done["backup"]), (&json!("removed"), &Value::Null));
    assert!(!file.exists());
}

#[test]
fn a_symlink_stays_one_and_its_target_is_written() {
    let scene = scene();
    fs::create_dir(scene.at("dotfiles")).unwrap();
    let target = scene.at("dotfiles/claude.json");
    fs::write(&target, FULL).unwrap();
    let link = scene.at("home/.claude/settings.json");
    symlink("../../dotfiles/claude.json", &link).unwrap();
    scene.json(&["setup", "--no-capture"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(settings::installed(&fs::read_to_string(&target).unwrap()).unwrap().missing.is_empty());
    assert_eq!(fs::read_dir(scene.at("dotfiles")).unwrap().count(), 1);
    scene.json(&["setup", "--remove"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), FULL);
    fs::remove_file(&target).unwrap();
    assert!(scene.fails(&["setup"]).contains("symlink that leads nowhere"));
}

#[test]
fn a_command_file_of_the_users_own_is_left_alone() {
    let scene = scene();
    fs::create_dir(scene.at("home/.claude/commands")).unwrap();
    let file = scene.at("home/.claude/commands/piton.md");
    fs::write(&file, "climb!").unwrap();
    let done = scene.json(&["setup", "--no-capture"]);
    assert_eq!(done["command_file"], "kept");
    assert!(done["notes"].to_string().contains("is not piton's"), "{done}");
    assert_eq!(scene.json(&["setup", "--remove"])["command_file"], "kept");
    assert_eq!(fs::read_to_string(&file).unwrap(), "climb!");
    // One that an earlier piton made is brought up to date, and one that its user changed is not taken away.
    fs::write(&file, format!("{}\nolder\n", command::FILE.text)).unwrap();
    assert_eq!(scene.json(&["setup", "--remove"])["command_file"], "kept");
    let changed = fs::read_to_string(&file).unwrap();
    assert_eq!(scene.json(&["setup", "--no-capture"])["command_file"], "updated");
    let mut beside = fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    assert!(beside.any(|path| path != file && fs::read_to_string(path).unwrap() == changed));
    assert_eq!(fs::read_to_string(&file).unwrap(), command::FILE.text);
}

#[test]
fn a_project_gets_the_file_that_is_not_shared() {
    let scene = scene();
    git(&scene.at("ws"), &["init", "-q"]);
    let was = snapshot(&scene.at("home"));
    let done = scene.json(&["setup", "--project"]);
    assert_eq!(done["scope"], "project");
    assert!(done["notes"].to_string().contains("git does not ignore"), "{done}");
    assert!(scene.at("ws/.claude/settings.local.json").exists());
    assert!(scene.at("ws/.claude/commands/piton.md").exists());
    assert!(snapshot(&scene.at("home")) == was);
    fs::write(scene.at("ws/.gitignore"), ".claude/settings.local.json\n").unwrap();
    let again = scene.json(&["setup", "--project"]);
    assert!(!again["notes"].to_string().contains("git does not ignore"), "{again}");
    scene.json(&["setup", "--project", "--remove"]);
    assert!(!scene.at("ws/.claude").exists());
}

#[test]
fn another_folder_for_settings_is_honoured() {
    let scene = scene();
    let mut command = scene.piton(&["setup", "--no-capture"]);
    let done = command.env("CLAUDE_CONFIG_DIR", scene.at("elsewhere")).output().unwrap();
    assert!(done.status.success(), "{}", both(&done));
    assert!(scene.at("elsewhere/settings.json").exists());
    assert!(!scene.at("home/.claude/settings.json").exists());
}

#[test]
fn what_cannot_be_edited_is_said_with_its_place_and_left_as_it_is() {
    let scene = scene();
    let file = scene.at("home/.claude/settings.json");
    for (text, said) in [
        (&b"{\n  \"a\": 1,\n  oops\n}"[..], "line 3"),
        (b"[1]", "is not a JSON object"),
        (b"{\"hooks\": 7}", "`hooks` of the settings is not an object"),
        (b"{\"hooks\": {}, \"hooks\": {}}", "comes twice"),
        (b"{\"a\": \"\xff\"}", "is not UTF-8"),
    ] {
        fs::write(&file, text).unwrap();
        let was = snapshot(&scene.at("home"));
        let error = scene.fails(&["setup"]);
        assert!(error.contains(said) && error.contains("nothing was changed"), "{error}");
        // What holds nothing of piton's needs no mending for that.
        let removed = scene.piton(&["setup", "--remove"]).output().unwrap();
        assert!(both(&removed).contains(said) || both(&removed).contains("nothing to remove"), "{}", both(&removed));
        assert!(snapshot(&scene.at("home")) == was);
    }
}

#[test]
fn a_folder_that_may_not_be_written_is_named() {
    let scene = scene();
    let folder = scene.at("home/.claude");
    fs::write(folder.join("settings.json"), FULL).unwrap();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o500)).unwrap();
    let mut command = scene.started_by(without_privileges(), &["setup"]);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
    let error = both(&done);
    assert!(error.contains("~/.claude/settings.json: Permission denied"), "{error}");
    assert!(error.contains("nothing was changed") && error.contains("--project"), "{error}");
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(fs::read_to_string(folder.join("settings.json")).unwrap(), FULL);
}

#[test]
fn in_a_home_folder_the_hooks_are_installed_and_nothing_is_captured() {
    let scene = scene();
    let mut command = scene.piton(&["setup"]);
    let done = command.current_dir(scene.at("home")).output().unwrap();
    assert!(done.status.success(), "{}", both(&done));
    assert!(both(&done).contains("this folder was not captured"), "{}", both(&done));
    assert!(scene.at("home/.claude/settings.json").exists());
}

#[test]
fn other_agents_are_told_how_to_report() {
    let scene = scene();
    let said = both(&scene.piton(&["setup", "generic"]).output().unwrap());
    assert!(said.contains("piton hook generic") && said.contains("docs/events.md"), "{said}");
    let error = scene.fails(&["setup", "nobody"]);
    assert!(error.contains("claude-code"), "{error}");
    assert!(fs::read_dir(scene.at("home/.claude")).unwrap().next().is_none());
}

#[test]
fn the_installed_hook_captures() {
    let scene = scene();
    scene.json(&["setup"]);
    let text = fs::read_to_string(scene.at("home/.claude/settings.json")).unwrap();
    let hook = settings::installed(&text).unwrap().hooks[0].text.clone();
    let body = scene.claude_report("s1", "UserPromptSubmit", json!({ "prompt": "x" }));
    let mut command = Command::new("sh");
    scene.surround(&mut command);
    command.arg("-c").arg(hook).current_dir("/");
    let done = give(command, &body);
    assert!(done.status.success() && both(&done).is_empty(), "{}", both(&done));
    let log = fs::read_to_string(scene.at("store/hook.log")).unwrap();
    assert!(log.contains("prompt s1 t1") && log.contains("captured"), "{log}");
}
