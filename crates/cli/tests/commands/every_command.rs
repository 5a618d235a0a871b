//! The commands from outside: the real binary, in an environment of its own.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use piton_testkit::{Scene, at_a_terminal, both, snapshot};
use serde_json::{Value, json};

use crate::PITON;

/// A workspace, a store and a home in a scratch folder; commands run inside the workspace.
fn scene() -> Scene {
    Scene::with_a_home(PITON)
}

/// With two files and a checkpoint `first`.
fn with_first() -> Scene {
    let scene = scene();
    scene.world.write("a.txt", "one\n").write("src/b.txt", "two\n");
    scene.ok(&["checkpoint", "first"]);
    scene
}

mod json {
    use super::*;

    #[test]
    fn a_checkpoint_says_what_changed_and_what_was_skipped() {
        let scene = with_first();
        scene.world.write(".gitignore", "node_modules\n");
        scene.world.write("node_modules/x/y.js", "");
        scene.world.write("a.txt", "changed\n");
        fs::remove_file(scene.world.ws().join("src/b.txt")).unwrap();
        let made = scene.json(&["checkpoint", "before refactor", "-m", "tests are green"]);
        let checkpoint = &made["checkpoint"];
        assert_eq!(checkpoint["id"].as_str().unwrap().len(), 16);
        assert_eq!(checkpoint["name"], "before refactor");
        assert_eq!(checkpoint["annotation"], "tests are green");
        assert!(checkpoint["created_at"].as_str().unwrap().ends_with('Z'));
        assert_eq!(checkpoint["changes"], json!({ "created": 1, "modified": 1, "deleted": 1 }));
        assert_eq!(checkpoint["skipped"], json!([{ "path": "node_modules", "reason": "ignored" }]));
        assert_eq!(made.as_object().unwrap().len(), 1);
    }

    #[test]
    fn a_rewind_lists_what_it_did() {
        let scene = with_first();
        scene.world.write("a.txt", "changed\n");
        fs::remove_file(scene.world.ws().join("src/b.txt")).unwrap();
        scene.world.write("new file.txt", "new\n");
        let plan = scene.json(&["rewind", "first", "--preview"]);
        let done = scene.json(&["rewind", "first", "--yes"]);
        for document in [&plan, &done] {
            assert_eq!(document["created"], json!([{ "path": "src/b.txt" }]));
            assert_eq!(document["restored"], json!([{ "path": "a.txt" }]));
            assert_eq!(document["deleted"], json!([{ "path": "new file.txt" }]));
            assert_eq!(document["skipped"], json!([]));
        }
        assert_eq!(plan["kind"], "rewind");
        assert_eq!(plan["target"]["name"], "first");
        assert_eq!(done["operation"]["kind"], "rewind");
        assert_eq!(done["operation"]["state"], "done");
        assert_eq!(done["verified"], true);
        let redone = scene.json(&["redo", "--yes"]);
        assert_eq!(redone["operation"]["kind"], "redo");
        assert_eq!(scene.read("new file.txt"), "new\n");
        let nothing = scene.json(&["rewind", "@", "--yes"].map(|a| if a == "@" { "0s" } else { a }));
        assert_eq!(nothing["operation"], Value::Null);
    }

    #[test]
    fn every_command_prints_one_document() {
        let scene = with_first();
        scene.world.write("a.txt", "changed\n");
        for (args, field) in [
            (&["init"][..], "already_known"),
            (&["status"], "changes"),
            (&["log"], "entries"),
            (&["log", "--checkpoints"], "checkpoints"),
            (&["sessions"], "sessions"),
            (&["search", "first"], "found"),
            (&["watch", "--timeout", "0s"], "cursor"),
            (&["annotate", "first", "a note"], "checkpoint"),
            (&["show", "first"], "files"),
            (&["diff"], "files"),
            (&["diff", "--name-only"], "files"),
            (&["config"], "settings"),
            (&["rules"], "waiting"),
            (&["verify"], "sound"),
            (&["demo"], "proved"),
            (&["completions", "bash"], "script"),
            (&["man"], "pages"),
        ] {
            assert!(scene.json(args).get(field).is_some(), "{args:?}");
        }
    }

    #[test]
    fn an_error_is_one_document_too_and_is_told_in_words_beside_it() {
        let scene = with_first();
        for args in [&["rewind", "nosuch", "--yes"][..], &["rewind", "first"], &["log", "--nosuch"], &["show"]] {
            let done = scene.run(&[args, &["--json"]].concat());
            assert_eq!(done.status.code(), Some(1));
            let document: Value = serde_json::from_slice(&done.stdout).unwrap();
            let message = document["error"]["message"].as_str().unwrap();
            assert!(document["error"]["hints"].is_array(), "{document}");
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(said.contains(&format!("error: {message}")), "{said}\n{message}");
        }
    }

    #[test]
    fn a_name_that_is_not_utf_8_goes_out_and_comes_in_as_base64() {
        let scene = scene();
        let name = OsStr::from_bytes(b"caf\xe9.txt");
        scene.world.write(name, "one\n");
        scene.world.write("other.txt", "one\n");
        scene.ok(&["checkpoint", "first"]);
        scene.world.write(name, "two\n");
        scene.world.write("other.txt", "two\n");
        let diff = scene.json(&["diff"]);
        let b64 = diff["files"][0]["path_b64"].as_str().unwrap();
        assert_eq!(b64, "Y2Fm6S50eHQ=");
        let done = scene.json(&["rewind", "first", "--path-b64", b64, "--yes"]);
        assert_eq!(done["restored"], json!([{ "path": "caf\u{fffd}.txt", "path_b64": b64 }]));
        assert_eq!(fs::read(scene.world.ws().join(name)).unwrap(), b"one\n");
        assert_eq!(scene.read("other.txt"), "two\n");
        // As the shell passes it, it works as well.
        scene.world.write(name, "three\n");
        assert_eq!(
            scene.piton(&["diff", "--name-only", "-z", "--"]).arg(name).output().unwrap().stdout,
            b"caf\xe9.txt\0"
        );
        assert_eq!(scene.ok(&["diff", "first", "--name-only"]), "caf\\xe9.txt\nother.txt\n");
    }
}

mod exit_codes {
    use super::*;

    #[test]
    fn help_and_version_are_done() {
        let scene = scene();
        assert!(scene.ok(&["--help"]).contains("piton demo"));
        assert!(scene.ok(&["help", "rewind"]).contains("Examples:"));
        assert_eq!(scene.ok(&["--version"]), concat!("piton ", env!("CARGO_PKG_VERSION"), "\n"));
    }

    #[test]
    fn what_the_user_can_fix_is_1_and_has_a_hint() {
        let scene = with_first();
        let elsewhere = scene.at("tmp").display().to_string();
        let home = scene.at("home").display().to_string();
        for (args, error, hint) in [
            (&["rewind", "nosuch", "--yes"][..], "there is no checkpoint `nosuch`", "piton log"),
            (&["rewind", "first", "--path", "../..", "--yes"], "outside the workspace", "--workspace"),
            (&["rewind", "first", "--path", "nosuch", "--yes"], "`nosuch`", "relative path"),
            (&["rewind", "first", "--path", "", "--yes"], "empty path", "current folder"),
            (&["rewind", "first", "--path", ".git/config", "--yes"], "never captured", ""),
            (&["rewind", "@", "--yes"], "not a checkpoint", "piton log"),
            (&["rewind", "first"], "no terminal", "--yes"),
            (&["redo"], "no rewind or undo to take back", "piton log"),
            (&["redo", "--yes"], "no rewind or undo to take back", "piton log"),
            (&["checkpoint", "first"], "taken", "another name"),
            (&["checkpoint", "a:b"], "cannot be a checkpoint's name", "before-refactor"),
            (&["diff", "nosuch"], "`nosuch` is not a checkpoint, nor a path", "piton log"),
            (&["--workspace", &elsewhere, "log"], "not a workspace yet", "piton checkpoint"),
            (&["--workspace", &home, "checkpoint"], "your home folder", "--force"),
            (&["--workspace", "/nosuch", "log"], "not a folder", "name a folder that is there"),
            (&["init", "--budget", "much"], "a size is a number", ""),
            (&["frobnicate"], "there is no command `piton frobnicate`", ""),
        ] {
            let said = scene.fails(args);
            assert!(said.starts_with("error: "), "{args:?}: {said}");
            assert!(said.contains(error) && said.contains(hint), "{args:?}: {said}");
        }
    }

    #[test]
    fn a_damaged_store_is_found_named_and_mended() {
        let scene = with_first();
        scene.world.write("a.txt", "changed\n");
        let store = PathBuf::from(scene.json(&["status"])["store"].as_str().unwrap());
        let pack = store.join("packs/000001.pack");
        let mut damaged = fs::read(&pack).unwrap();
        let content = damaged.windows(4).position(|bytes| bytes == b"one\n").expect("short content is stored as it is");
        damaged[content] ^= 0xff;
        fs::write(&pack, &damaged).unwrap();
        let done = scene.run(&["verify"]);
        assert_eq!(done.status.code(), Some(1), "{}", both(&done));
        assert!(both(&done).contains("damaged") && both(&done).contains("verify --repair"), "{}", both(&done));
        let refused = scene.run(&["rewind", "first", "--yes"]);
        assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
        assert_eq!(scene.read("a.txt"), "changed\n");
        // The byte alone: what was recorded since stays.
        let mut mended = fs::read(&pack).unwrap();
        mended[content] ^= 0xff;
        fs::write(&pack, &mended).unwrap();
        assert!(
            scene.ok(&["verify"]).starts_with("sound: 2 checkpoints"),
            "the capture of the refused rewind is there"
        );
    }

    #[test]
    fn output_that_cannot_be_written_is_told() {
        let scene = with_first();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let done =
            scene.piton(&["log"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(1));
        assert!(both(&done).contains("output cannot be written"), "{}", both(&done));
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_failure() {
        let scene = scene();
        for n in 0..3000 {
            scene.world.write(format!("some folder with a long name/file number {n}"), "");
        }
        scene.ok(&["checkpoint", "many"]);
        for args in [&["show", "many"][..], &["show", "many", "--json"], &["log"], &["--help"]] {
            let mut child = scene.piton(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            drop(child.stdout.take());
            let done = child.wait_with_output().unwrap();
            assert_eq!((done.status.code(), both(&done)), (Some(0), String::new()), "{args:?}");
        }
    }
}

mod asking {
    use super::*;

    #[test]
    fn a_no_changes_nothing_and_a_yes_rewinds() {
        let scene = with_first();
        scene.world.write("a.txt", "changed\n");
        scene.world.write("new.txt", "new\n");
        for answer in ["n\n", "\n", "nonsense\n", "\u{4}"] {
            let (shown, code) = at_a_terminal(scene.piton(&["rewind", "first"]), answer);
            assert!(shown.contains("~ restore  a.txt") && shown.contains("- delete   new.txt"), "{shown}");
            assert!(shown.contains("Rewind 2 files (a.txt, new.txt)? [y]es [d]iff [N]o"), "{shown}");
            assert!(shown.contains("Nothing was changed."), "{shown}");
            assert_eq!(code, Some(1));
            assert_eq!(scene.read("a.txt"), "changed\n");
        }
        let (shown, code) = at_a_terminal(scene.piton(&["rewind", "first"]), "y\n");
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("\"first\": 1 restored, 1 deleted; "), "{shown}");
        assert!(shown.contains("`piton redo` takes it back"), "{shown}");
        assert_eq!(scene.read("a.txt"), "one\n");
        let (shown, code) = at_a_terminal(scene.piton(&["redo"]), "yes\n");
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(scene.read("a.txt"), "changed\n");
    }

    #[test]
    fn a_preview_changes_nothing_and_needs_no_terminal() {
        let scene = with_first();
        scene.world.write("a.txt", "changed\n");
        let before = snapshot(&scene.world.ws());
        let shown = scene.ok(&["rewind", "first", "--preview"]);
        assert!(shown.contains("~ restore  a.txt"), "{shown}");
        scene.ok(&["rewind", "first", "--preview", "--yes"]);
        assert!(snapshot(&scene.world.ws()) == before);
        assert_eq!(scene.json(&["log"])["total"], 1);
    }

    #[test]
    fn a_long_plan_is_cut_at_a_terminal_and_whole_in_a_preview() {
        let scene = with_first();
        for n in 0..60 {
            scene.world.write(format!("new/{n:02}"), "");
        }
        let (shown, _) = at_a_terminal(scene.piton(&["rewind", "first"]), "n\n");
        assert!(shown.contains("new/39") && !shown.contains("new/40") && shown.contains("… and 20 more"), "{shown}");
        let (shown, _) = at_a_terminal(scene.piton(&["rewind", "first", "--preview"]), "");
        assert!(shown.contains("new/59") && !shown.contains("more"), "{shown}");
    }
}

mod looks {
    use super::*;

    /// A workspace whose names, notes and contents try to take the terminal over.
    fn hostile() -> Scene {
        let scene = scene();
        let name = "evil\x1b[2J\u{9b}31m\u{202e}\nname";
        scene.world.write(name, "one\n");
        scene.ok(&["checkpoint", "first", "-m", "note \x1b]0;title\x07\u{2066}"]);
        scene.world.write(name, "two \x1b[2J\u{9b}31m\u{202e}\n");
        scene
    }

    #[test]
    fn no_control_character_reaches_a_terminal() {
        let scene = hostile();
        for args in [
            &["status"][..],
            &["log"],
            &["log", "--json"],
            &["log", "--files"],
            &["log", "--checkpoints"],
            &["search", "note"],
            &["annotate", "first", "a\x1b[2J\u{9b}note"],
            &["show", "first"],
            &["diff"],
            &["diff", "--json"],
            &["diff", "--stat"],
            &["diff", "--side-by-side"],
            &["diff", "--name-only"],
            &["rewind", "first", "--preview"],
            &["show", "nosuch\x1b[2J"],
            &["diff", "--", "nosuch\x1b[2J\nx"],
            &["rewind", "first", "--path", "../x\x1b[2J"],
            &["checkpoint", "na\x1b[2Jme"],
            &["log", "--nosuch\x1b[2J"],
        ] {
            let mut command = scene.piton(args);
            command.env("TERM", "xterm");
            let (shown, _) = at_a_terminal(command, "");
            let raw: Vec<char> = shown
                .replace("\r\n", "\n")
                .chars()
                .filter(|c| (c.is_control() && *c != '\n' && *c != '\x1b') || "\u{202e}\u{2066}\u{9b}".contains(*c))
                .collect();
            assert!(raw.is_empty() && !shown.contains("\x1b[2J") && !shown.contains("\x1b]"), "{args:?}: {shown:?}");
        }
        // Text that goes to a file has its names escaped as well, one a line.
        assert_eq!(scene.ok(&["diff", "--name-only"]).lines().count(), 1);
        assert!(!scene.ok(&["status"]).contains('\x1b'));
    }

    #[test]
    fn colour_is_for_terminals_and_for_those_who_ask() {
        let scene = with_first();
        let mut coloured = scene.piton(&["log"]);
        coloured.env("TERM", "xterm");
        let (shown, _) = at_a_terminal(coloured, "");
        assert!(shown.contains("\x1b["), "{shown:?}");
        let mut quiet = scene.piton(&["log"]);
        quiet.env("TERM", "xterm").env("NO_COLOR", "1");
        let (shown, _) = at_a_terminal(quiet, "");
        assert!(!shown.contains('\x1b'), "{shown:?}");
        assert!(!scene.ok(&["log"]).contains('\x1b'));
        assert!(scene.ok(&["log", "--color", "always"]).contains("\x1b["));
        let forced = scene.piton(&["log"]).env("CLICOLOR_FORCE", "1").output().unwrap();
        assert!(both(&forced).contains("\x1b["));
        let never = scene.piton(&["log", "--color=never"]).env("CLICOLOR_FORCE", "1").output().unwrap();
        assert!(!both(&never).contains('\x1b'));
    }

    #[test]
    fn the_log_is_newest_first_and_the_flat_list_says_why_each_checkpoint_exists() {
        let scene = with_first();
        scene.world.write("a.txt", "changed\n");
        scene.ok(&["rewind", "first", "--yes"]);
        let text = scene.ok(&["log"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("↺ ") && lines[0].ends_with("rewind to first"), "{text}");
        assert!(lines[1].contains("you  ~ a.txt") && lines[1].ends_with("~1"), "{text}");
        assert!(lines[2].starts_with("* ") && lines[2].contains("first") && lines[2].ends_with("+2"), "{text}");
        let text = scene.ok(&["log", "--checkpoints"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("* ") && lines[0].contains("rewind to "), "{text}");
        assert!(lines[1].contains("before the rewind to first") && lines[1].ends_with("~1"), "{text}");
        assert!(lines[2].contains("first") && lines[2].ends_with("+2"), "{text}");
        let empty = super::scene();
        empty.ok(&["init"]);
        let done = empty.run(&["log"]);
        assert!(done.stdout.is_empty() && both(&done).contains("piton checkpoint"), "{}", both(&done));
    }
}

mod places {
    use super::*;

    #[test]
    fn a_subfolder_means_the_workspace_around_it_and_paths_begin_there() {
        let scene = with_first();
        scene.world.write("a.txt", "changed\n");
        scene.world.write("src/b.txt", "changed\n");
        let done = scene
            .piton(&["rewind", "first", "--path", "b.txt", "--yes"])
            .current_dir(scene.world.ws().join("src"))
            .output();
        assert!(done.as_ref().unwrap().status.success(), "{}", both(&done.unwrap()));
        assert_eq!((scene.read("a.txt"), scene.read("src/b.txt")), ("changed\n".into(), "two\n".into()));
    }

    #[test]
    fn workspace_means_another_folder_and_paths_begin_at_its_root() {
        let scene = with_first();
        scene.world.write("src/b.txt", "changed\n");
        scene.world.write("folder with spaces/c d.txt", "new\n");
        let ws = scene.world.ws().display().to_string();
        let names = scene.piton(&["--workspace", &ws, "diff", "--name-only"]).current_dir("/").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&names.stdout), "folder with spaces/c d.txt\nsrc/b.txt\n");
        let args = ["rewind", "first", "--workspace", &ws, "--yes", "--path", "folder with spaces"];
        let done = scene.piton(&args).current_dir("/").output().unwrap();
        assert!(done.status.success(), "{}", both(&done));
        assert!(!scene.world.ws().join("folder with spaces").exists());
        assert_eq!(scene.read("src/b.txt"), "changed\n");
    }

    #[test]
    fn a_workspace_that_was_removed_under_the_users_feet_comes_back() {
        let scene = with_first();
        let before = snapshot(&scene.world.ws());
        let script = format!("rm -rf ../ws && exec {} rewind first --yes", PITON);
        let mut shell = Command::new("sh");
        scene.surround(&mut shell);
        let done = shell.args(["-c", &script]).output().unwrap();
        assert!(done.status.success(), "{}", both(&done));
        assert!(snapshot(&scene.world.ws()) == before);
    }

    #[test]
    fn a_word_that_is_a_checkpoint_and_a_path_is_the_checkpoint_and_that_is_said() {
        let scene = with_first();
        scene.world.write("first", "a file\n");
        scene.world.write("a.txt", "changed\n");
        let done = scene.run(&["diff", "first", "--name-only"]);
        assert_eq!(String::from_utf8_lossy(&done.stdout), "a.txt\nfirst\n");
        assert!(both(&done).contains("`first` is taken as a checkpoint"), "{}", both(&done));
        assert_eq!(scene.ok(&["diff", "./first", "--name-only"]), "first\n");
        assert_eq!(scene.ok(&["diff", "first", "@", "first", "--name-only"]), "first\n");
        assert_eq!(scene.ok(&["diff", "--name-only", "--", "first"]), "first\n");
    }
}

mod patches {
    use super::*;

    fn git(folder: &Path, args: &[&str], input: &[u8]) -> Output {
        use std::io::Write;
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).current_dir(folder).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    #[test]
    fn git_applies_them_both_ways() {
        let scene = scene();
        let long = |word: &str| {
            (1..40).map(|n| format!("{n} {}\n", if n % 13 == 0 { word } else { "same" })).collect::<String>()
        };
        scene.world.write("text", long("old"));
        scene.world.write("no end", "a\nb");
        scene.world.write("gone", "a\nb\nc\n");
        scene.world.write("gone empty", "");
        scene.world.write("run.sh", "#!/bin/sh\n");
        scene.world.write("crlf", "a\r\nb\r\n");
        scene.world.write("escape", "\x1b[31mred\x1b[0m\n");
        scene.world.write("becomes a link", "a\nb\n");
        scene.world.write("quo\"ted \\ \t\n name", "a\n");
        scene.world.write("größe", "a\n");
        symlink("one", scene.world.ws().join("link")).unwrap();
        scene.ok(&["checkpoint", "first"]);
        let old = snapshot(&scene.world.ws());

        scene.world.write("text", long("new"));
        scene.world.write("no end", "a\nb\nc");
        fs::remove_file(scene.world.ws().join("gone")).unwrap();
        fs::remove_file(scene.world.ws().join("gone empty")).unwrap();
        fs::set_permissions(scene.world.ws().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        scene.world.write("crlf", "a\r\nB\r\n");
        scene.world.write("escape", "\x1b[32mgreen\x1b[0m\n");
        fs::remove_file(scene.world.ws().join("becomes a link")).unwrap();
        symlink("to", scene.world.ws().join("becomes a link")).unwrap();
        scene.world.write("quo\"ted \\ \t\n name", "b\n");
        scene.world.write("größe", "b\n");
        fs::remove_file(scene.world.ws().join("link")).unwrap();
        symlink("two", scene.world.ws().join("link")).unwrap();
        scene.world.write("new/empty", "");
        scene.world.write("new/file", "x\n");
        fs::set_permissions(scene.world.ws().join("new/file"), fs::Permissions::from_mode(0o755)).unwrap();
        let new = snapshot(&scene.world.ws());

        for context in ["3", "1"] {
            let patch = scene.run(&["diff", "-U", context]).stdout;
            let back = git(&scene.world.ws(), &["apply", "-R", "-v", "-"], &patch);
            assert!(back.status.success(), "{}\n{}", both(&back), String::from_utf8_lossy(&patch));
            let now = snapshot(&scene.world.ws());
            assert!(now == old, "{}", now.differences(&old).join("\n"));
            let forth = git(&scene.world.ws(), &["apply", "-v", "-"], &patch);
            assert!(forth.status.success(), "{}\n{}", both(&forth), String::from_utf8_lossy(&patch));
            let now = snapshot(&scene.world.ws());
            assert!(now == new, "{}", now.differences(&new).join("\n"));
        }
    }

    /// Git 2.47 cannot apply its own patch of this backwards, so only forwards.
    #[test]
    fn a_link_that_becomes_a_file_is_one_that_goes_and_one_that_comes() {
        let scene = scene();
        symlink("one", scene.world.ws().join("x")).unwrap();
        scene.ok(&["checkpoint", "first"]);
        fs::remove_file(scene.world.ws().join("x")).unwrap();
        scene.world.write("x", "now\na file\n");
        let new = snapshot(&scene.world.ws());
        let patch = scene.run(&["diff"]).stdout;
        scene.ok(&["rewind", "first", "--yes"]);
        let forth = git(&scene.world.ws(), &["apply", "-"], &patch);
        assert!(forth.status.success() && snapshot(&scene.world.ws()) == new, "{}", both(&forth));
    }

    #[test]
    fn binary_files_are_named_and_nothing_is_said_in_colour() {
        let scene = with_first();
        fs::write(scene.world.ws().join("a.txt"), b"\0\x01").unwrap();
        let patch = scene.ok(&["diff"]);
        assert_eq!(patch, "diff --git a/a.txt b/a.txt\nBinary files a/a.txt and b/a.txt differ\n");
    }
}

mod demo {
    use super::*;

    #[test]
    fn it_works_proves_itself_and_leaves_nothing_behind() {
        let scene = scene();
        let text = scene.ok(&["demo"]);
        assert_eq!(text.matches("proof, ").count(), 3, "{text}");
        assert!(text.contains("byte for byte as at the beginning"), "{text}");
        assert!(!text.contains('\x1b') && text.lines().count() <= 60, "{text}");
        let summary = scene.json(&["demo"]);
        assert_eq!(summary["proved"], true);
        assert_eq!(fs::read_dir(scene.at("tmp")).unwrap().count(), 0);
        assert!(!scene.at("store").exists(), "the demo has a store of its own");
    }

    #[test]
    fn what_it_keeps_can_be_looked_at() {
        let scene = scene();
        let kept = PathBuf::from(scene.json(&["demo", "--keep"])["kept"].as_str().unwrap());
        let log = scene.piton(&["log"]).current_dir(kept.join("shop")).env("PITON_HOME", kept.join("store")).output();
        assert!(both(&log.unwrap()).contains("before-agent"));
    }
}

mod papers {
    use super::*;

    #[test]
    fn there_is_a_manual_page_for_each_command() {
        let scene = scene();
        assert!(scene.ok(&["man"]).contains(".TH piton 1"));
        let pages = scene.at("home/man/man1");
        scene.ok(&["man", pages.to_str().unwrap()]);
        for command in [
            "",
            "-init",
            "-checkpoint",
            "-rewind",
            "-undo",
            "-redo",
            "-ops",
            "-diff",
            "-log",
            "-sessions",
            "-changes",
            "-search",
            "-show",
            "-annotate",
            "-status",
            "-verify",
            "-config",
            "-rules",
        ] {
            let page = fs::read_to_string(pages.join(format!("piton{command}.1"))).unwrap();
            assert!(page.contains("piton"), "{command}");
        }
    }

    #[test]
    fn shells_get_their_completions() {
        let scene = scene();
        for shell in ["bash", "zsh", "fish"] {
            assert!(scene.ok(&["completions", shell]).contains(" complete -- "), "{shell}");
        }
        for shell in ["elvish", "powershell"] {
            assert!(scene.ok(&["completions", shell]).contains("checkpoint"), "{shell}");
        }
    }
}
