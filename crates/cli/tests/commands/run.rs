//! `piton run` from outside: the command behaves as if piton were not there, and can be taken back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};

use piton_engine::model::Ending;
use piton_engine::view::{SessionView, TurnView};
use piton_testkit::{Scene, until};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::with_a_home(PITON);
    scene.world.write("a.txt", "one\n");
    scene
}

/// `piton` with the signals of one that is typed.
fn piton(scene: &Scene, args: &[&str]) -> Command {
    scene.started_by(as_usual(), args)
}

fn run(scene: &Scene, args: &[&str]) -> Output {
    piton(scene, &[&["run"], args].concat()).output().unwrap()
}

fn sessions(scene: &Scene) -> Vec<SessionView> {
    let workspace = scene.world.engine.open(&scene.world.ws());
    workspace.map(|workspace| workspace.sessions().unwrap().sessions).unwrap_or_default()
}

/// The last turn.
fn turn(scene: &Scene) -> TurnView {
    scene.world.turns(None).pop().unwrap()
}

/// A command that ignores no signal, as one that is typed: what runs these tests may (`nohup` does, and a shell for what
/// it starts in the background), and what is ignored stays so.
fn as_usual() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal");
    command
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn a_command_is_a_session_of_one_turn_and_can_be_taken_back() {
    let scene = scene();
    let script = "echo out; echo err >&2; echo two > a.txt; touch b.txt";
    let done = run(&scene, &["--name", "upgrade", "--", "sh", "-c", script]);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done.stderr));
    assert_eq!(said(&done.stdout), "out\n");
    let talk = said(&done.stderr);
    let line = talk.strip_prefix("err\n").unwrap();
    let id = line.strip_prefix("piton: 1 created, 1 modified · piton rewind ").unwrap();
    let id = id.strip_suffix(" takes it back\n").unwrap();
    let sessions = sessions(&scene);
    assert_eq!((sessions.len(), &sessions[0].agent[..], sessions[0].turns), (1, "run", 1));
    assert_eq!(sessions[0].name.as_deref(), Some("upgrade"));
    assert!(sessions[0].ended_at.is_some() && !sessions[0].live);
    let turn = turn(&scene);
    assert_eq!(turn.prompt.as_deref(), Some(&format!("sh -c '{script}'")[..]));
    assert_eq!(turn.steps.len(), 1);
    assert!(turn.steps[0].summary.starts_with("Run sh -c"), "{:?}", turn.steps[0]);
    assert_eq!((turn.steps[0].changes.created, turn.steps[0].changes.modified), (1, 1));
    assert_eq!((turn.ending, turn.steps[0].ending), (Some(Ending::Done), Some(Ending::Done)));
    assert!(piton(&scene, &["rewind", id, "--yes"]).output().unwrap().status.success());
    assert_eq!(fs::read_to_string(scene.at("ws/a.txt")).unwrap(), "one\n");
    assert!(!scene.at("ws/b.txt").exists());
}

/// "no changes" used to be said where somebody else's capture had found them.
#[test]
fn what_another_capture_found_while_it_ran_is_told_too() {
    let scene = scene();
    let script = "echo new > b.txt; touch ../go; while [ -e ../go ]; do sleep 0.05; done";
    let child = piton(&scene, &["run", "--", "sh", "-c", script]).stderr(Stdio::piped()).spawn().unwrap();
    until(|| scene.at("go").exists());
    assert!(piton(&scene, &["checkpoint"]).output().unwrap().status.success());
    fs::remove_file(scene.at("go")).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(said(&done.stderr).contains("piton: 1 created · piton rewind "), "{}", said(&done.stderr));
}

#[test]
fn a_command_that_takes_the_whole_workspace_is_taken_back_too() {
    let scene = scene();
    let ws = scene.at("ws");
    let done = run(&scene, &["--", "rm", "-rf", ws.to_str().unwrap()]);
    assert!(done.status.success() && !ws.exists());
    let talk = said(&done.stderr);
    let way = format!(" --workspace {} takes it back", ws.display());
    assert!(talk.contains("is gone") && talk.contains(&way), "{talk}");
    let undo = |more: &str| {
        let mut command = piton(&scene, &["undo", "--workspace", ws.to_str().unwrap(), more]);
        command.current_dir(scene.at("home")).output().unwrap()
    };
    let shown = said(&undo("--preview").stdout);
    assert!(shown.contains("a.txt") && shown.contains("is gone and is made anew"), "{shown}");
    let done = undo("--yes");
    assert!(done.status.success(), "{}", said(&done.stderr));
    assert_eq!(fs::read_to_string(scene.at("ws/a.txt")).unwrap(), "one\n");
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let scene = scene();
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        let done = run(&scene, &["--", "sh", "-c", script]);
        assert_eq!(done.status.code(), Some(code), "{script}: {}", said(&done.stderr));
        assert_eq!(said(&done.stderr), "piton: no changes\n");
    }
    assert_eq!(turn(&scene).ending, Some(Ending::Failed));
}

#[test]
fn what_cannot_be_run_is_no_session() {
    let scene = scene();
    fs::write(scene.at("ws/plain"), "echo x\n").unwrap();
    for (command, code, why) in [
        ("no-such-command", 127, "there is no command `no-such-command`"),
        ("./no-such-file", 127, "there is no command"),
        ("", 127, "there is no command"),
        ("./plain", 126, "cannot be run"),
        ("./", 126, "cannot be run"),
    ] {
        let done = run(&scene, &["--", command]);
        assert_eq!(done.status.code(), Some(code), "{command}");
        assert!(said(&done.stderr).contains(why), "{}", said(&done.stderr));
    }
    assert!(sessions(&scene).is_empty());
    // Without a first line that names a shell, only a shell runs it.
    fs::set_permissions(scene.at("ws/plain"), PermissionsExt::from_mode(0o755)).unwrap();
    let code = run(&scene, &["--", "./plain"]).status.code();
    assert!(matches!(code, Some(0 | 126)), "{code:?}");
    assert_eq!(run(&scene, &[]).status.code(), Some(1));
}

#[test]
fn without_a_capture_nothing_is_run_unless_somebody_insists() {
    let scene = scene();
    let run = |args: &[&str]| piton(&scene, args).env("PITON_HOME", "/proc/piton").output().unwrap();
    let done = run(&["run", "--", "touch", "ran"]);
    assert_eq!(done.status.code(), Some(125), "{}", said(&done.stderr));
    assert!(said(&done.stderr).contains("nothing was run; `--anyway`"), "{}", said(&done.stderr));
    assert!(!scene.at("ws/ran").exists());
    let done = run(&["run", "--anyway", "--", "sh", "-c", "touch ran; exit 7"]);
    assert_eq!(done.status.code(), Some(7), "{}", said(&done.stderr));
    assert!(scene.at("ws/ran").exists());
}

#[test]
fn signals_pass_through() {
    for (name, signal, to_all, expected) in [
        ("TERM", Signal::TERM, false, "TERM"),
        ("HUP", Signal::HUP, false, "HUP"),
        ("USR1", Signal::USR1, false, "USR1"),
        ("USR2", Signal::USR2, false, "USR2"),
        ("ALRM", Signal::ALARM, false, "ALRM"),
        ("VTALRM", Signal::VTALARM, false, "VTALRM"),
        ("PROF", Signal::PROF, false, "PROF"),
        ("IO", Signal::IO, false, "IO"),
        ("PWR", Signal::POWER, false, "PWR"),
        ("XCPU", Signal::XCPU, false, "XCPU"),
        ("XFSZ", Signal::XFSZ, false, "XFSZ"),
        ("URG", Signal::URG, false, "URG"),
        ("WINCH", Signal::WINCH, false, "WINCH"),
        ("INT", Signal::INT, true, "INT"),
        ("INT", Signal::INT, false, "INT"),
        ("QUIT", Signal::QUIT, false, "QUIT"),
        ("QUIT", Signal::QUIT, true, "QUIT"),
    ] {
        let scene = scene();
        let script = format!("trap 'echo {name} > got; exit 9' {name}; touch ready; while :; do sleep 0.02; done");
        let mut command = piton(&scene, &["run", "--", "sh", "-c", &script]);
        let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until(|| scene.at("ws/ready").exists());
        let pid = Pid::from_child(&child);
        // What is typed at a terminal goes to the whole group.
        if to_all { kill_process_group(pid, signal) } else { kill_process(pid, signal) }.unwrap();
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(9), "{name}: {}", said(&done.stderr));
        assert_eq!(fs::read_to_string(scene.at("ws/got")).unwrap().trim(), expected);
        assert!(said(&done.stderr).contains("takes it back"), "{}", said(&done.stderr));
    }
}

#[test]
fn a_command_that_a_signal_ends_is_captured_all_the_same() {
    let scene = scene();
    let mut command = piton(&scene, &["run", "--", "sh", "-c", "touch ready; exec sleep 60"]);
    let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| scene.at("ws/ready").exists());
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.status.signal()), (Some(130), None));
    let turn = turn(&scene);
    assert_eq!(turn.steps[0].ending, Some(Ending::Interrupted));
    assert_eq!(turn.changes.created, 1);
}

#[test]
fn a_run_that_was_killed_does_not_claim_what_others_do_later() {
    let scene = scene();
    let mut command = piton(&scene, &["run", "--", "sh", "-c", "echo $$ > pid; exec sleep 60"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| fs::read_to_string(scene.at("ws/pid")).is_ok_and(|text| text.ends_with('\n')));
    let left: i32 = fs::read_to_string(scene.at("ws/pid")).unwrap().trim().parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
    assert_eq!(run(&scene, &["--", "true"]).status.code(), Some(0));
    fs::write(scene.at("ws/later.txt"), "x").unwrap();
    assert_eq!(run(&scene, &["--", "true"]).status.code(), Some(0));
    let turn = turn(&scene);
    assert_eq!(turn.unsure, [], "{turn:?}");
    assert_eq!(turn.yours.len(), 1, "{turn:?}");
}

#[test]
fn signals_that_were_ignored_stay_ignored_for_the_command_and_others_are_as_usual() {
    let scene = scene();
    let piton = PITON;
    let script = format!("trap '' HUP; exec {piton} run -- grep SigIgn /proc/self/status");
    let mut command = as_usual();
    scene.surround(&mut command);
    let done = command.args(["sh", "-c", &script]).output().unwrap();
    let ignored = u64::from_str_radix(said(&done.stdout).split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_eq!(ignored & 0b100_0000_0000_0111, 1, "{ignored:b}");
}

#[test]
fn the_command_has_the_terminal_and_its_input() {
    let scene = scene();
    let mut command = piton(&scene, &["run", "--", "sh", "-c", "cat > typed"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"hello\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(scene.at("ws/typed")).unwrap(), "hello\n");
    let done = run(&scene, &["--json", "--", "true"]);
    assert_eq!(done.status.code(), Some(125));
    assert!(said(&done.stdout).contains("\"error\""), "{}", said(&done.stdout));
}
