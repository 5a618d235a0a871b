//! The hook from outside: whatever an agent sends and whatever the machine does, it ends in 0 and says nothing of its
//! own; and what agents do in normal life becomes sessions, turns and steps.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use piton_agents::claude_code::settings::HookCommand;
use piton_engine::Workspace;
use piton_engine::model::Ending;
use piton_engine::model::ownership::Owner;
use piton_engine::view::SessionView;
use piton_testkit::{
    Mounted, Scene, SmallDisk, Snapshot, give, make_program, snapshot, start, until, without_privileges,
};
use serde_json::{Value, json};

use crate::PITON;

/// A workspace, a store and a home in a scratch folder.
fn scene() -> Scene {
    let scene = Scene::with_a_home(PITON);
    scene.world.write("a.txt", "one\n");
    scene
}

/// Sends an event of a session, and expects that nothing comes back.
#[track_caller]
fn event(scene: &Scene, session: &str, event: &str, more: Value) {
    let said = scene.claude_event(session, event, more);
    // A turn that changed files is named at its end.
    let is_indicator = said["systemMessage"].as_str().is_some_and(|line| line.starts_with("piton: turn "));
    assert!(said.is_null() || (event == "Stop" && is_indicator), "{event}: {said}");
}

fn workspace(scene: &Scene) -> Workspace {
    scene.world.engine.open(&scene.world.ws()).unwrap()
}

fn sessions(scene: &Scene) -> Vec<SessionView> {
    workspace(scene).sessions().unwrap().sessions
}

/// Everything that is not the store.
fn outside(scene: &Scene) -> Snapshot {
    snapshot(scene.world.base()).without("store")
}

#[track_caller]
fn assert_quiet(done: &Output) {
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

/// A `PreToolUse` and its kin.
fn tool(id: &str, name: &str, input: Value) -> Value {
    json!({ "tool_name": name, "tool_use_id": id, "tool_input": input, "prompt_id": "p1" })
}

mod bad_input {
    use super::*;

    #[test]
    fn whatever_comes_the_hook_ends_in_0_and_a_line_of_the_log_tells_of_it() {
        let long = "x".repeat(3000);
        let deep = "[".repeat(200_000);
        let half = br#"{"hook_event_name":"PreToolUse","session_id":"s1","#;
        let cases: &[(&[&str], Vec<u8>, &str)] = &[
            (&["claude-code"], b"".to_vec(), "claude-code - - - error: a report is a JSON object"),
            (&["claude-code"], b"\xff\xfe\0\0".to_vec(), "error: a report is a JSON object"),
            (&["claude-code"], b"[1,2]".to_vec(), "error: a report is a JSON object"),
            (&["claude-code"], half.to_vec(), "error: the report is not JSON"),
            (&["claude-code"], b"{}".to_vec(), "error: the report has no `hook_event_name`"),
            (&["claude-code"], br#"{"hook_event_name":"Stop"}"#.to_vec(), "error: the report has no `session_id`"),
            (
                &["claude-code"],
                br#"{"hook_event_name":"PreToolUse","session_id":"s1","cwd":"/"}"#.to_vec(),
                "error: the report has no `tool_name`",
            ),
            (
                &["claude-code"],
                br#"{"hook_event_name":"Stop","session_id":"../../x","cwd":"/"}"#.to_vec(),
                "error: `../../x` is not a session id",
            ),
            (
                &["claude-code"],
                br#"{"hook_event_name":"Stop","session_id":"s1","cwd":"relative"}"#.to_vec(),
                "error: `cwd` of the report is not an absolute path",
            ),
            (
                &["claude-code"],
                br#"{"hook_event_name":"Stop","session_id":"s1","cwd":"/no/such/folder"}"#.to_vec(),
                "turn-ended s1 - gap: /no/such/folder",
            ),
            (
                &["claude-code"],
                br#"{"hook_event_name":"Brand\u001b[2JNew","session_id":"s1"}"#.to_vec(),
                "claude-code Brand_[2JNew s1 - ignored",
            ),
            (&["claude-code"], format!(r#"{{"hook_event_name":{deep}"#).into_bytes(), "error: the report is not JSON"),
            (
                &["claude-code"],
                format!(r#"{{"session_id":"{long}","hook_event_name":"Stop"}}"#).into_bytes(),
                "error: ",
            ),
            (&["generic"], br#"{"event":"prompt","session":"s1","text":7}"#.to_vec(), "generic - - - error: `text`"),
            (&[], b"{}".to_vec(), "- - - - error: which agent?"),
            (&["nobody"], b"{}".to_vec(), "nobody - - - error: piton knows no agent `nobody`"),
            (&["--wrong\x1b[2J"], b"{}".to_vec(), "means nothing here"),
            (&["claude-code", "--wrong"], b"{}".to_vec(), "; `--wrong` means nothing here"),
        ];
        let scene = scene();
        let before = outside(&scene);
        for (args, bytes, expected) in cases {
            let seen = scene.hook_log().len();
            let done = scene.send(&[&["hook"], *args].concat(), bytes);
            assert_quiet(&done);
            assert_eq!(String::from_utf8_lossy(&done.stdout), "", "{expected}");
            let lines = scene.hook_log();
            assert_eq!(lines.len(), seen + 1, "{expected}");
            // How long it took is nobody's business here.
            let words: Vec<&str> = lines[seen].split(' ').filter(|word| !word.ends_with("ms")).collect();
            let line = words.join(" ");
            assert!(line.contains(expected), "{line}\n{expected}");
            assert!(line.len() < 2100 && !line.contains('\x1b'), "{line}");
        }
        assert!(outside(&scene) == before);
        assert!(!scene.at("store").join("workspaces").exists());
    }

    #[test]
    fn a_flag_that_means_nothing_costs_no_capture() {
        let scene = scene();
        let done =
            scene.send(&["hook", "claude-code", "--wrong"], &scene.claude_report("s1", "SessionStart", json!({})));
        assert_quiet(&done);
        assert!(
            scene.hook_log()[0].contains("captured") && scene.hook_log()[0].ends_with("`--wrong` means nothing here")
        );
    }

    #[test]
    fn fifty_megabytes_are_read_and_a_hundred_are_let_pass() {
        let scene = scene();
        let half = "y".repeat(25 << 20);
        let input = json!({ "file_path": scene.world.ws().join("a.txt"), "content": half });
        let more = json!({ "tool_name": "Write", "tool_use_id": "c1", "tool_input": input, "tool_response": half });
        event(&scene, "s1", "PostToolUse", more);
        assert!(scene.hook_log()[0].contains("captured"), "{:?}", scene.hook_log());
        let mut broken = vec![b'{'; 50 << 20];
        assert_quiet(&scene.send(&["hook", "claude-code"], &broken));
        assert!(scene.hook_log()[1].contains("error: the report is not JSON"), "{:?}", scene.hook_log());
        broken.resize(100 << 20, b'{');
        assert_quiet(&scene.send(&["hook", "claude-code"], &broken));
        assert!(scene.hook_log()[2].contains("error: the report is longer than 64 MiB"), "{:?}", scene.hook_log());
    }

    #[test]
    fn a_report_whose_end_never_comes_is_given_up_and_a_whole_one_is_taken() {
        let scene = scene();
        let sent = [b"{\"hook_event_name\":".to_vec(), scene.claude_report("s1", "SessionStart", json!({}))];
        let begun = Instant::now();
        let mut open = Vec::new();
        for bytes in sent {
            let mut child = start(&mut scene.piton(&["hook", "claude-code"]));
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(&bytes).unwrap();
            open.push((child, stdin));
        }
        for (child, _) in &mut open {
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
        assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
        let mut log = scene.hook_log();
        log.sort();
        assert!(log[0].contains("error: the report did not come to its end in time"), "{log:?}");
        assert!(log[1].contains("captured"), "{log:?}");
    }

    #[test]
    fn a_transcript_elsewhere_is_not_read_and_not_touched() {
        let scene = scene();
        let secret = scene.at("home").join("secret");
        fs::write(&secret, "{\"type\":\"user\"}\n").unwrap();
        let before = outside(&scene);
        for path in [json!(secret), json!("../../etc/passwd"), json!("/dev/zero"), json!(7)] {
            event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "x", "transcript_path": path }));
        }
        assert!(scene.hook_log().iter().all(|line| line.contains("captured")), "{:?}", scene.hook_log());
        assert!(outside(&scene) == before);
    }

    #[test]
    fn the_log_has_nothing_of_what_was_said() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "my secret plan" }));
        event(&scene, "s1", "PreToolUse", tool("c1", "Bash", json!({ "command": "echo secret" })));
        scene.send(
            &["hook", "claude-code"],
            &scene.claude_report("s1", "UserPromptSubmit", json!({ "prompt": "/piton secret" })),
        );
        let log = scene.hook_log();
        assert!(log.len() == 3 && log.iter().all(|line| !line.contains("secret")), "{log:?}");
    }
}

mod a_bad_machine {
    use super::*;

    fn prompt(scene: &Scene) -> Vec<u8> {
        scene.claude_report("s1", "UserPromptSubmit", json!({ "prompt": "x" }))
    }

    #[test]
    fn a_home_that_cannot_be_written_is_no_reason_to_fail() {
        let scene = scene();
        let file = scene.at("home").join("file");
        fs::write(&file, "").unwrap();
        let before = outside(&scene);
        for home in [file.join("store"), PathBuf::from("/proc/piton"), PathBuf::from("/dev/null"), PathBuf::from("\n")]
        {
            let mut command = scene.piton(&["hook", "claude-code"]);
            command.current_dir("/proc").env("PITON_HOME", &home);
            assert_quiet(&give(command, &prompt(&scene)));
        }
        let closed = scene.at("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
        let before_closed = outside(&scene);
        let mut command = scene.started_by(without_privileges(), &["hook", "claude-code"]);
        command.env("PITON_HOME", &closed);
        assert_quiet(&give(command, &prompt(&scene)));
        assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
        assert!(outside(&scene) == before_closed);
        fs::remove_dir(&closed).unwrap();
        assert!(outside(&scene) == before);
    }

    #[test]
    fn without_a_home_folder_the_store_is_enough() {
        let scene = scene();
        let mut command = scene.piton(&["hook", "claude-code"]);
        command.env_remove("HOME");
        assert_quiet(&give(command, &prompt(&scene)));
        assert!(scene.hook_log()[0].contains("captured"), "{:?}", scene.hook_log());
    }

    #[test]
    fn a_damaged_store_is_told_of_in_the_log() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "x" }));
        for entry in fs::read_dir(scene.at("store").join("workspaces")).unwrap() {
            for path in files(&entry.unwrap().path()) {
                if !path.ends_with("workspace.json") {
                    fs::write(&path, "no such thing as a store").unwrap();
                }
            }
        }
        let before = outside(&scene);
        assert_quiet(&scene.send(&["hook", "claude-code"], &prompt(&scene)));
        assert!(outside(&scene) == before);
        assert_eq!(scene.hook_log().len(), 2);
    }

    #[test]
    fn a_full_disk_costs_the_capture_and_nothing_else() {
        piton_testkit::needs_mounts!();
        let scene = scene();
        let disk = SmallDisk::new(4096);
        disk.fill_but(0);
        let before = outside(&scene);
        let mut command = scene.piton(&["hook", "claude-code"]);
        command.env("PITON_HOME", disk.path().join("store"));
        let done = give(command, &prompt(&scene));
        assert_quiet(&done);
        assert!(String::from_utf8_lossy(&done.stdout).contains("not captured"), "{done:?}");
        assert!(outside(&scene) == before);
        fs::remove_file(disk.path().join("filler")).unwrap();
        let mut command = scene.piton(&["hook", "claude-code"]);
        command.env("PITON_HOME", disk.path().join("store"));
        assert_quiet(&give(command, &prompt(&scene)));
        let log = fs::read_to_string(disk.path().join("store/hook.log")).unwrap();
        assert!(log.lines().last().unwrap().contains("captured"), "{log}");
    }

    #[test]
    fn a_disk_that_is_full_is_told_at_every_prompt_and_by_status_and_what_came_then_is_nobodys() {
        piton_testkit::needs_mounts!();
        let scene = scene();
        let disk = SmallDisk::new(4096);
        let run = |args: &[&str], bytes: &[u8]| {
            let mut command = scene.piton(args);
            command.env("PITON_HOME", disk.path().join("store"));
            give(command, bytes)
        };
        let tell = |event: &str, more: Value| {
            let done = run(&["hook", "claude-code"], &scene.claude_report("s1", event, more));
            assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0));
            String::from_utf8(done.stdout).unwrap()
        };
        let says = |turn: &str| tell("UserPromptSubmit", json!({ "prompt": turn, "prompt_id": turn }));
        assert_eq!(says("one"), "");
        assert_eq!(tell("Stop", json!({ "prompt_id": "one" })), "");
        let filler = disk.fill_but(0);
        for turn in ["two", "three"] {
            assert!(says(turn).contains("not captured"));
            assert_eq!(tell("PreToolUse", tool("c1", "Bash", json!({ "command": "x" }))), "");
            scene.world.write("a.txt", turn);
            tell("PostToolUse", tool("c1", "Bash", json!({ "command": "x" })));
            tell("Stop", json!({ "prompt_id": turn }));
        }
        let status = run(&["status"], b"");
        let shown = String::from_utf8_lossy(&status.stdout).into_owned();
        assert_eq!(status.status.code(), Some(1), "{shown}");
        assert!(shown.contains("not protected: nothing can be captured"), "{shown}");
        fs::remove_file(filler).unwrap();
        says("four");
        let log = run(&["log", "--files", "--json"], b"");
        let log = String::from_utf8_lossy(&log.stdout).into_owned();
        assert!(log.contains("\"gaps\":[{") || log.contains("\"gap\":{"), "{log}");
        assert!(!log.contains("\"who\":\"you\""), "{log}");
        assert_eq!(run(&["status"], b"").status.code(), Some(0));
    }

    /// A session that had been told of one gap was never told again, and what came then left no trace.
    #[test]
    fn a_store_that_takes_nothing_is_told_at_every_prompt_and_what_came_then_is_recorded_later() {
        piton_testkit::needs_mounts!();
        let scene = scene();
        let says = |session: &str, turn: &str| {
            let body = scene.claude_report(session, "UserPromptSubmit", json!({ "prompt": turn, "prompt_id": turn }));
            let mut command = scene.piton(&["hook", "claude-code"]);
            command.env("PITON_HOOK_TIME_BUDGET", "1s");
            let done = give(command, &body);
            assert_quiet(&done);
            String::from_utf8(done.stdout).unwrap()
        };
        assert_eq!(says("s1", "one"), "");
        let store = workspace(&scene).store_folder().to_owned();
        // A gap that the store keeps for later is told once.
        let busy = fs::File::options().write(true).open(store.join("lock")).unwrap();
        busy.lock().unwrap();
        assert!(says("s1", "two").contains("not captured"));
        assert_eq!(says("s1", "three"), "");
        drop(busy);
        assert_eq!(says("s1", "four"), "");
        let closed = Mounted::read_only(&store);
        for (session, turn) in [("s1", "five"), ("s1", "six"), ("s2", "one"), ("s2", "two")] {
            assert!(says(session, turn).contains("not captured"), "{session} {turn}");
        }
        let status = scene.send(&["status"], b"");
        let shown = String::from_utf8_lossy(&status.stdout).into_owned();
        assert_eq!(status.status.code(), Some(1), "{shown}");
        assert!(shown.contains("not protected: 4 events could not be recorded yet"), "{shown}");
        assert!(shown.contains("not protected: nothing can be captured"), "{shown}");
        let verify = scene.send(&["verify"], b"");
        let shown = String::from_utf8_lossy(&verify.stdout).into_owned();
        assert_eq!(verify.status.code(), Some(1), "{shown}");
        assert!(shown.contains("sound") && shown.contains("not protected: nothing can be captured"), "{shown}");
        let doctor = scene.send(&["doctor"], b"");
        assert!(String::from_utf8_lossy(&doctor.stdout).contains("problem store      nothing can be captured"));
        drop(closed);
        says("s1", "seven");
        let mut gaps: Vec<_> = sessions(&scene).iter().map(|session| (session.turns, session.gaps)).collect();
        gaps.sort_unstable();
        assert_eq!(gaps, [(2, 2), (7, 4)]);
        assert_eq!(scene.send(&["status"], b"").status.code(), Some(0));
        assert_eq!(fs::read_dir(scene.at("store").join("gaps")).unwrap().count(), 0);
    }

    #[test]
    fn a_home_that_cannot_be_made_is_told_at_every_prompt() {
        let scene = scene();
        for _ in 0..2 {
            let mut command = scene.piton(&["hook", "claude-code"]);
            command.env("PITON_HOME", "/dev/null/x");
            let done = give(command, &prompt(&scene));
            assert!(String::from_utf8_lossy(&done.stdout).contains("not captured"), "{done:?}");
        }
    }

    #[test]
    fn closed_streams_are_no_reason_to_fail() {
        let scene = scene();
        let body = scene.at("home").join("body");
        fs::write(&body, scene.claude_report("s1", "UserPromptSubmit", json!({ "prompt": "/piton" }))).unwrap();
        let hook = format!("{PITON} hook claude-code");
        for script in [
            format!("{hook} <&- >&- 2>&-"),
            format!("{hook} < {} >&-", body.display()),
            format!("{hook} < {} > /dev/full", body.display()),
            format!("{hook} < {} | true", body.display()),
            format!("{hook} < {}", scene.world.ws().display()),
            format!("{hook} > /dev/null < /dev/null"),
        ] {
            let mut command = Command::new("bash");
            scene.surround(&mut command);
            command.args(["-o", "pipefail", "-c", &script]);
            assert_quiet(&command.output().unwrap());
        }
    }

    #[test]
    fn a_bug_is_a_line_in_the_log() {
        let scene = scene();
        let mut command = scene.piton(&["hook", "claude-code"]);
        command.env("PITON_FAIL", "panic");
        assert_quiet(&give(command, &prompt(&scene)));
        assert!(scene.hook_log()[0].contains("prompt s1 - "), "{:?}", scene.hook_log());
        assert!(scene.hook_log()[0].contains("error: a bug in piton: panicked at"), "{:?}", scene.hook_log());
    }

    #[test]
    fn a_hook_that_hangs_is_over_when_its_time_is() {
        let scene = scene();
        let begun = Instant::now();
        let mut command = scene.piton(&["hook", "claude-code"]);
        let never = scene.at("home").join("never");
        command.env("PITON_HOOK_TIME_BUDGET", "1s");
        command.env("PITON_FAIL", format!("wait=capture:scanned={}", never.display()));
        assert_quiet(&give(command, &prompt(&scene)));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(
            scene.hook_log()[0].contains("prompt s1 - ")
                && scene.hook_log()[0].ends_with("gap: the time budget is over")
        );
        // Nothing is left behind that the next one stumbles over, and the gap is one of the session.
        assert_quiet(&scene.send(&["hook", "claude-code"], &prompt(&scene)));
        assert!(scene.hook_log()[1].contains("captured"), "{:?}", scene.hook_log());
        assert_eq!(sessions(&scene)[0].gaps, 1);
        let status = workspace(&scene).status().unwrap();
        assert_eq!(status.gaps.len(), 1);
        assert_eq!(status.gaps[0].reason, "the time budget is over");
    }

    #[test]
    fn a_store_that_is_busy_costs_a_gap_and_no_more_than_the_budget() {
        let scene = scene();
        event(&scene, "s1", "SessionStart", json!({}));
        let go_on = scene.at("home").join("go-on");
        let mut command = scene.piton(&["hook", "claude-code"]);
        command.env("PITON_FAIL", format!("wait=capture:scanned={}", go_on.display()));
        let mut holder = start(&mut command);
        holder.stdin.take().unwrap().write_all(&prompt(&scene)).unwrap();
        until(|| go_on.with_extension("reached").exists());
        let mut command = scene.piton(&["hook", "claude-code"]);
        command.env("PITON_HOOK_TIME_BUDGET", "1s");
        let begun = Instant::now();
        assert_quiet(&give(command, &scene.claude_report("s2", "UserPromptSubmit", json!({ "prompt": "x" }))));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        assert!(
            scene.hook_log()[1].contains("prompt s2 - ") && scene.hook_log()[1].contains("gap: "),
            "{:?}",
            scene.hook_log()
        );
        fs::write(&go_on, "").unwrap();
        assert_eq!(holder.wait().unwrap().code(), Some(0));
        assert!(scene.hook_log()[2].contains("captured"), "{:?}", scene.hook_log());
    }

    #[test]
    fn a_program_that_is_gone_or_crashes_ends_in_0_too() {
        let scene = scene();
        let crashes = scene.at("home").join("piton");
        make_program(&crashes, "#!/bin/sh\necho noise >&2\nkill -SEGV $$\n");
        for program in [Path::new("/no such/folder/piton"), &crashes] {
            let mut command = Command::new("sh");
            command.arg("-c").arg(HookCommand::new(program).text().unwrap()).current_dir(scene.world.ws());
            let mut child = start(&mut command);
            let _ = child.stdin.take().unwrap().write_all(&prompt(&scene));
            let done = child.wait_with_output().unwrap();
            assert_quiet(&done);
            assert!(done.stdout.is_empty());
        }
    }

    #[test]
    fn off_is_off_and_help_is_help() {
        let scene = scene();
        let mut command = scene.piton(&["hook", "claude-code"]);
        command.env("PITON_HOOK", "off");
        assert_quiet(&give(command, &prompt(&scene)));
        assert!(!scene.at("store").exists());
        for args in [&["hook", "--help"][..], &["hook", "claude-code", "-h"], &["help", "hook"]] {
            let done = scene.piton(args).output().unwrap();
            assert_quiet(&done);
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(said.contains("piton hook") && said.contains("PITON_HOOK=off"), "{said}");
        }
        assert!(!scene.at("store").exists());
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
        }
        found
    }
}

mod no_capture {
    use super::*;

    #[test]
    fn what_only_reads_or_means_nothing_opens_no_store() {
        let scene = scene();
        event(&scene, "s1", "PreToolUse", tool("c1", "Read", json!({ "file_path": "a.txt" })));
        event(&scene, "s1", "SubagentStart", json!({ "agent_id": "a1", "agent_type": "reviewer" }));
        event(&scene, "s1", "SubagentStop", json!({ "agent_id": "a1", "agent_type": "reviewer" }));
        event(&scene, "s1", "Notification", json!({}));
        let said: Vec<_> = scene.hook_log().iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
        assert_eq!(said, ["reader", "ignored", "ignored", "ignored"]);
        assert!(!scene.at("store").join("workspaces").exists());
    }

    #[test]
    fn pitons_own_folder_is_no_workspace() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "x" }));
        std::os::unix::fs::symlink(scene.at("store"), scene.at("link")).unwrap();
        for inside in ["store", "store/workspaces", "link/workspaces"] {
            event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "x", "cwd": scene.at(inside) }));
        }
        let log = scene.hook_log();
        assert!(log[0].contains("captured"), "{log:?}");
        let refused = |line: &String| {
            line.contains("error: ") && line.ends_with("is piton's own folder, which is not a workspace")
        };
        assert!(log[1..].iter().all(refused) && log.len() == 4, "{log:?}");
        assert_eq!(fs::read_dir(scene.at("store/workspaces")).unwrap().count(), 1);
    }

    #[test]
    fn whoever_begins_in_a_workspace_that_switches_captures_off_is_told() {
        let scene = scene();
        for (settings, said) in [
            ("capture.automatic = false\n", Some("switches automatic captures off")),
            ("tools.readers = [\"*\"]\n", Some("lets almost any tool run without a capture")),
            ("hook.time-budget = \"1s\"\n", Some("gives a capture only 1s")),
            ("hook.time-budget = \"20s\"\n", None),
        ] {
            scene.world.write(".piton/config.toml", settings);
            let done = scene.send(&["hook", "claude-code"], &scene.claude_report("s1", "SessionStart", json!({})));
            assert_quiet(&done);
            let line: Option<Value> = serde_json::from_slice(&done.stdout).ok();
            let expected = said.map(|said| format!("piton: warning: this workspace's .piton/config.toml {said}"));
            assert_eq!(line.map(|line| line["systemMessage"].as_str().unwrap().to_owned()), expected);
        }
    }

    #[test]
    fn the_settings_decide_which_tools_read_and_whether_anything_is_captured() {
        let scene = scene();
        scene.world.write(".piton/config.toml", "tools.readers = [\"mcp__docs__*\"]\ntools.writers = [\"Read\"]\n");
        event(&scene, "s1", "PreToolUse", tool("c1", "mcp__docs__find", json!({})));
        event(&scene, "s1", "PreToolUse", tool("c2", "Read", json!({})));
        event(&scene, "s1", "PostToolUse", tool("c2", "Read", json!({})));
        // What changes while a tool runs is not the user's word.
        std::thread::sleep(Duration::from_millis(80));
        scene.world.write(".piton/config.toml", "capture.automatic = false\n");
        event(&scene, "s1", "PreToolUse", tool("c3", "Bash", json!({ "command": "x" })));
        scene.world.write(".piton/config.toml", "capture.automatik = false\n");
        event(&scene, "s1", "PreToolUse", tool("c4", "Bash", json!({ "command": "x" })));
        let log = scene.hook_log();
        assert!(log[0].ends_with("reader") && log[1].contains("captured") && log[3].ends_with("noted"), "{log:?}");
        assert!(log[4].contains("captured") && log[4].contains("; settings: "), "{log:?}");
    }
}

mod normal_life {
    use super::*;

    #[test]
    fn a_session_becomes_turns_and_steps_and_each_can_be_rewound_to() {
        let scene = scene();
        event(&scene, "s1", "SessionStart", json!({ "source": "startup" }));
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "change a", "prompt_id": "p1" }));
        let edit = tool("c1", "Edit", json!({ "file_path": scene.world.ws().join("a.txt") }));
        event(&scene, "s1", "PreToolUse", edit.clone());
        scene.world.write("a.txt", "two\n");
        event(&scene, "s1", "PostToolUse", edit);
        let bash = tool("c2", "Bash", json!({ "command": "touch b.txt" }));
        event(&scene, "s1", "PreToolUse", bash.clone());
        scene.world.write("b.txt", "b\n");
        event(&scene, "s1", "PostToolUse", bash);
        event(&scene, "s1", "Stop", json!({ "prompt_id": "p1" }));
        event(&scene, "s1", "SessionEnd", json!({ "reason": "other" }));
        let turns = scene.world.turns(None);
        assert_eq!(turns.len(), 1);
        let steps: Vec<_> = turns[0]
            .steps
            .iter()
            .map(|step| (&step.summary[..], step.changes.created + step.changes.modified))
            .collect();
        assert_eq!(steps, [("Edit a.txt", 1), ("Bash touch b.txt", 1)]);
        assert_eq!(turns[0].ending, Some(Ending::Done));
        let places: Vec<_> = scene.hook_log().iter().map(|line| line.split(' ').nth(3).unwrap().to_owned()).collect();
        assert_eq!(places, ["t0", "t1", "t1.1", "t1.1", "t1.2", "t1.2", "t1", "t1"]);
        let done = scene.piton(&["rewind", "t1.2", "--yes"]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert!(!scene.world.ws().join("b.txt").exists());
        assert_eq!(fs::read_to_string(scene.world.ws().join("a.txt")).unwrap(), "two\n");
    }

    #[test]
    fn parallel_calls_from_several_processes_are_all_recorded() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "many", "prompt_id": "p1" }));
        let names: Vec<String> = (0..6).map(|n| format!("f{n}.txt")).collect();
        let call = |name: &str| tool(name, "Write", json!({ "file_path": scene.world.ws().join(name) }));
        for name_of_event in ["PreToolUse", "PostToolUse"] {
            std::thread::scope(|scope| {
                for name in &names {
                    let (scene, call) = (&scene, &call);
                    scope.spawn(move || {
                        if name_of_event == "PostToolUse" {
                            scene.world.write(name, name);
                        }
                        event(scene, "s1", name_of_event, call(name));
                    });
                }
            });
        }
        event(&scene, "s1", "Stop", json!({ "prompt_id": "p1" }));
        let turn = &scene.world.turns(None)[0];
        assert_eq!(turn.steps.len(), 6);
        let mut numbers: Vec<_> = turn.steps.iter().map(|step| step.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(turn.changes.created, 6);
        for step in &turn.steps {
            assert_eq!(step.ending, Some(Ending::Done));
            // Named files are told apart, whoever's hook found them.
            assert_eq!(step.files.len(), 1, "{step:?}");
            assert!(step.summary.ends_with(&step.files[0].path.path), "{step:?}");
        }
        assert!(scene.hook_log().iter().all(|line| line.contains("captured")), "{:?}", scene.hook_log());
    }

    #[test]
    fn a_tool_that_failed_may_have_changed_files() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "x", "prompt_id": "p1" }));
        let bash = tool("c1", "Bash", json!({ "command": "make" }));
        event(&scene, "s1", "PreToolUse", bash.clone());
        scene.world.write("half.o", "half");
        let mut failed = bash;
        failed.as_object_mut().unwrap().insert("error".into(), json!("Exit code 2"));
        event(&scene, "s1", "PostToolUseFailure", failed);
        event(&scene, "s1", "Stop", json!({ "prompt_id": "p1" }));
        let turn = &scene.world.turns(None)[0];
        assert_eq!(turn.steps[0].ending, Some(Ending::Failed));
        assert_eq!(turn.steps[0].changes.created, 1);
    }

    #[test]
    fn a_turn_that_was_interrupted_without_a_word_ends_with_the_next_prompt() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "one", "prompt_id": "p1" }));
        event(&scene, "s1", "PreToolUse", tool("c1", "Bash", json!({ "command": "sleep 100" })));
        scene.world.write("left.txt", "left");
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "two", "prompt_id": "p2" }));
        let turns = scene.world.turns(None);
        assert_eq!(turns.len(), 2);
        assert_eq!(turns[0].steps[0].ending, Some(Ending::Lost));
        let done = scene.piton(&["rewind", "t1", "--yes", "--interrupted"]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert!(!scene.world.ws().join("left.txt").exists());
    }

    #[test]
    fn a_missing_after_is_found_at_the_turns_end() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "one", "prompt_id": "p1" }));
        event(&scene, "s1", "PreToolUse", tool("c1", "Bash", json!({ "command": "x" })));
        scene.world.write("b.txt", "b");
        event(&scene, "s1", "Stop", json!({ "prompt_id": "p1" }));
        let turn = &scene.world.turns(None)[0];
        assert_eq!(turn.steps[0].ending, Some(Ending::Lost));
        assert_eq!(turn.changes.created, 1);
    }

    #[test]
    fn what_a_subagent_does_is_a_step_of_the_turn() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "one", "prompt_id": "p1" }));
        let mut write = tool("c1", "Write", json!({ "file_path": scene.world.ws().join("sub.txt") }));
        write
            .as_object_mut()
            .unwrap()
            .extend(json!({ "agent_id": "ab28", "agent_type": "general-purpose" }).as_object().unwrap().clone());
        event(&scene, "s1", "PreToolUse", write.clone());
        scene.world.write("sub.txt", "sub");
        event(&scene, "s1", "PostToolUse", write);
        event(&scene, "s1", "Stop", json!({ "prompt_id": "p1" }));
        let step = &scene.world.turns(None)[0].steps[0];
        assert_eq!(step.subagent.as_deref(), Some("ab28"));
        assert_eq!(step.changes.created, 1);
    }

    #[test]
    fn what_a_background_command_writes_later_has_no_sure_owner() {
        let scene = scene();
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "one", "prompt_id": "p1" }));
        let dev = tool("c1", "Bash", json!({ "command": "npm run dev", "run_in_background": true }));
        event(&scene, "s1", "PreToolUse", dev.clone());
        event(&scene, "s1", "PostToolUse", dev);
        event(&scene, "s1", "Stop", json!({ "prompt_id": "p1", "background_tasks": [{ "id": "b1" }] }));
        scene.world.write("made-later.txt", "x");
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "two", "prompt_id": "p2" }));
        let turns = scene.world.turns(None);
        assert!(turns[0].steps[0].background);
        let all = turns.iter().flat_map(|turn| turn.yours.iter().chain(&turn.unsure).chain(&turn.files));
        let owner = all.filter(|file| file.path.path == "made-later.txt").map(|file| &file.owner).next().unwrap();
        assert!(matches!(owner, Owner::Unsure { .. }), "{owner:?}");
    }

    #[test]
    fn a_session_that_began_before_piton_gets_its_turns_numbers_from_the_transcript() {
        let scene = scene();
        let transcript = scene.at("home").join("s1.jsonl");
        let line = |id: &str| {
            let message = json!({ "role": "user", "content": id });
            json!({ "type": "user", "promptId": id, "uuid": id, "message": message }).to_string() + "\n"
        };
        fs::write(&transcript, ["p1", "p2", "p3"].map(line).concat()).unwrap();
        let mut bash = tool("c1", "Bash", json!({ "command": "x" }));
        bash.as_object_mut()
            .unwrap()
            .extend(json!({ "prompt_id": "p3", "transcript_path": transcript }).as_object().unwrap().clone());
        event(&scene, "s1", "PreToolUse", bash);
        let more = json!({ "prompt": "four", "prompt_id": "p4", "transcript_path": transcript });
        event(&scene, "s1", "UserPromptSubmit", more);
        let numbers: Vec<_> = scene.world.turns(None).iter().map(|turn| turn.number).collect();
        assert_eq!(numbers, [3, 4]);
    }

    #[test]
    fn two_sessions_at_once_have_turns_of_their_own() {
        let scene = scene();
        for session in ["s1", "s2"] {
            event(&scene, session, "UserPromptSubmit", json!({ "prompt": session, "prompt_id": "p1" }));
        }
        for (session, file) in [("s1", "one.txt"), ("s2", "two.txt")] {
            let write = tool("c1", "Write", json!({ "file_path": scene.world.ws().join(file) }));
            event(&scene, session, "PreToolUse", write.clone());
            scene.world.write(file, file);
            event(&scene, session, "PostToolUse", write);
        }
        let sessions = sessions(&scene);
        assert_eq!(sessions.len(), 2);
        for turn in scene.world.turns(None) {
            assert_eq!((turn.number, turn.steps.len(), turn.changes.created), (1, 1, 1), "{turn:?}");
        }
    }

    #[test]
    fn what_real_versions_of_claude_code_sent_is_taken_in() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/fixtures/claude-code");
        for (name, turns) in [
            ("2.1.197/hooks.jsonl", None),
            ("2.1.325/hooks.jsonl", Some(3)),
            ("2.1.325/hooks-subagent.jsonl", Some(1)),
            ("2.1.325/hooks-background.jsonl", None),
            ("2.1.325/hooks-compaction.jsonl", None),
        ] {
            let scene = scene();
            let text = fs::read_to_string(fixtures.join(name)).unwrap();
            let text = text.replace("/home/dev/work", scene.world.ws().to_str().unwrap());
            for line in text.lines() {
                assert_quiet(&scene.send(&["hook", "claude-code"], line.as_bytes()));
            }
            let log = scene.hook_log();
            assert_eq!(log.len(), text.lines().count());
            assert!(log.iter().all(|line| !line.contains("error: ") && !line.contains("gap: ")), "{name} {log:#?}");
            if let Some(turns) = turns {
                assert_eq!(scene.world.turns(None).len(), turns, "{name}");
            }
        }
    }

    #[test]
    fn a_generic_agent_is_captured_in_the_folder_it_runs_its_hook_in() {
        let scene = scene();
        let body = json!({ "event": "prompt", "session": "run-1", "agent": "mine", "text": "x" }).to_string();
        assert_quiet(&scene.send(&["hook", "generic"], body.as_bytes()));
        assert_eq!(sessions(&scene)[0].agent, "mine");
        assert!(scene.hook_log()[0].starts_with("mine prompt run-1 t1 "), "{:?}", scene.hook_log());
    }
}

mod answers {
    use super::*;

    /// What a prompt is answered with.
    #[track_caller]
    fn answer(scene: &Scene, session: &str, prompt: &str) -> String {
        let body = scene.claude_report(session, "UserPromptSubmit", json!({ "prompt": prompt, "prompt_id": "p9" }));
        let done = scene.send(&["hook", "claude-code"], &body);
        assert_quiet(&done);
        let reply: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(reply["decision"], "block");
        reply["reason"].as_str().unwrap().to_owned()
    }

    fn one_turn(scene: &Scene, session: &str, file: &str) {
        event(scene, session, "UserPromptSubmit", json!({ "prompt": "x", "prompt_id": "p1" }));
        let write = tool("c1", "Write", json!({ "file_path": scene.world.ws().join(file) }));
        event(scene, session, "PreToolUse", write.clone());
        scene.world.write(file, "new\n");
        event(scene, session, "PostToolUse", write);
        event(scene, session, "Stop", json!({ "prompt_id": "p1" }));
    }

    #[test]
    fn a_command_for_piton_is_answered_and_is_no_turn() {
        let scene = scene();
        one_turn(&scene, "s1", "b.txt");
        assert!(answer(&scene, "s1", "/piton").contains("/piton rewind t5"));
        assert!(answer(&scene, "s1", "/piton status").contains("workspace"));
        assert!(answer(&scene, "s1", "/piton rewind t1").contains("rewound to"));
        assert!(!scene.world.ws().join("b.txt").exists());
        assert!(answer(&scene, "s1", "/piton redo").contains("redone") || scene.world.ws().join("b.txt").exists());
        assert_eq!(scene.world.turns(None).len(), 1);
        assert!(scene.hook_log().last().unwrap().ends_with("answered redo"), "{:?}", scene.hook_log());
    }

    #[test]
    fn a_turn_is_one_of_the_session_that_asks() {
        let scene = scene();
        one_turn(&scene, "s1", "one.txt");
        one_turn(&scene, "s2", "two.txt");
        assert!(answer(&scene, "s1", "/piton rewind t1 --preview").contains("one.txt"));
        let refused = answer(&scene, "s1", "/piton rewind t1");
        assert!(refused.contains("would delete another session's two.txt"), "{refused}");
        assert!(answer(&scene, "s1", "/piton rewind t1 --only-session").contains("rewound to"));
        assert!(!scene.world.ws().join("one.txt").exists() && scene.world.ws().join("two.txt").exists());
    }

    #[test]
    fn a_file_that_is_called_like_a_turn_is_a_file() {
        let scene = scene();
        one_turn(&scene, "s1", "t5");
        scene.world.write("other.txt", "mine");
        assert!(answer(&scene, "s1", "/piton rewind t1 --path t5").contains("rewound"));
        assert!(!scene.world.ws().join("t5").exists() && scene.world.ws().join("other.txt").exists());
    }

    #[test]
    fn what_cannot_be_done_in_there_says_so_and_does_nothing() {
        let scene = scene();
        let before = outside(&scene);
        for (typed, said) in [
            ("/piton setup --remove", "`setup` is for a terminal"),
            ("/piton run -- rm -rf .", "`run` is for a terminal"),
            ("/piton rewind 'x", "a quote is not closed"),
            ("/piton rewind nonsense", "error: "),
            ("/piton log --nonsense", "error: "),
            ("/piton undo last 2", "error: "),
        ] {
            let answered = answer(&scene, "s1", typed);
            assert!(answered.contains(said), "{typed}: {answered}");
        }
        assert!(outside(&scene) == before);
    }

    #[test]
    fn the_user_is_told_of_turns_that_changed_files_and_can_turn_that_off() {
        let scene = scene();
        let end = |session: &str, setting: Option<&str>| {
            let mut command = scene.piton(&["hook", "claude-code"]);
            command.envs(setting.map(|value| ("PITON_HOOK_USER_LINE", value)));
            let done = give(command, &scene.claude_report(session, "Stop", json!({ "prompt_id": "p1" })));
            assert_quiet(&done);
            String::from_utf8(done.stdout).unwrap()
        };
        event(&scene, "s1", "UserPromptSubmit", json!({ "prompt": "x", "prompt_id": "p1" }));
        assert_eq!(end("s1", None), "");
        // What the user does meanwhile is nothing that the turn did.
        event(&scene, "s2", "UserPromptSubmit", json!({ "prompt": "x", "prompt_id": "p1" }));
        scene.world.write("mine.txt", "b");
        assert_eq!(end("s2", None), "");
        for (session, setting, files, expected) in [
            ("s3", None, &["b.txt"][..], Some("piton: turn 1 changed b.txt · `/piton undo` takes it back")),
            ("s4", Some("false"), &["c.txt"], None),
            (
                "s5",
                Some("true"),
                &["d/1", "d/2", "d/3", "d/4", "d/5"],
                Some("piton: turn 1 changed d/1, d/2, d/3 and 2 more · `/piton undo` takes it back"),
            ),
        ] {
            event(&scene, session, "UserPromptSubmit", json!({ "prompt": "x", "prompt_id": "p1" }));
            for file in files {
                let call = json!({ "prompt_id": "p1", "tool_name": "Write", "tool_use_id": format!("{session}{file}"),
                    "tool_input": { "file_path": scene.world.path(file) } });
                event(&scene, session, "PreToolUse", call.clone());
                scene.world.write(file, session);
                event(&scene, session, "PostToolUse", call);
            }
            let said = end(session, setting);
            let line: Option<Value> = (!said.is_empty()).then(|| serde_json::from_str(&said).unwrap());
            assert_eq!(line.as_ref().and_then(|line| line["systemMessage"].as_str()), expected, "{session}");
        }
    }
}
