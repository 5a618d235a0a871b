//! Real processes by the dozen that are stopped and killed at random: whatever a hook reported as captured is there in the
//! end, and holds what that hook's own agent had in its files.
//!
//! Eight agents report through `piton hook generic`, each with a folder of its own; two users rewind, undo, redo, read and
//! verify; every second something is killed or suspended. 30 seconds, or as many as `PITON_SOAK_SECONDS` says.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use piton_testkit::{Dice, Scene, Snapshot, both, kept, snapshot};
use rustix::process::{Pid, Signal, kill_process};

const AGENTS: u64 = 8;
const USERS: u64 = 2;

/// What the threads share.
struct Soak {
    scene: Scene,
    ends: AtomicBool,
    /// Processes that may be killed. Whoever waits for one takes it out first, so that no other process gets its number.
    running: Mutex<Vec<Pid>>,
    /// While this is not the same, or somebody is at work, the agents' files may change under their hands.
    operations: Mutex<Operations>,
    captured: Mutex<Vec<Captured>>,
    /// What must never be.
    faults: Mutex<Vec<String>>,
    hooks: AtomicU64,
    commands: AtomicU64,
    kills: AtomicU64,
    stops: AtomicU64,
}

/// What users do to the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Operations {
    begun: u64,
    at_work: u64,
}

/// A checkpoint that a hook reported.
struct Captured {
    /// The beginning of its id.
    id: String,
    agent: u64,
    /// What the agent had in its folder, where nobody else can have changed it.
    holds: Option<Snapshot>,
}

impl Soak {
    /// Runs a command that may be killed at any moment.
    fn run(&self, mut command: Command, input: &str) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = self.running.lock().unwrap();
        let mut child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        running.push(pid);
        drop(running);
        // It may be dead already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let mut output = Output { status: Default::default(), stdout: Vec::new(), stderr: Vec::new() };
        let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| stderr.read_to_end(&mut output.stderr));
            let _ = stdout.read_to_end(&mut output.stdout);
        });
        // Its output has ended, so it is at its end, or dead; until it is waited for its number is its own.
        self.running.lock().unwrap().retain(|other| *other != pid);
        let _ = kill_process(pid, Signal::CONT);
        output.status = child.wait().unwrap();
        output
    }

    fn fault(&self, text: String) {
        self.faults.lock().unwrap().push(text);
        self.ends.store(true, Ordering::Relaxed);
    }

    fn folder(&self, agent: u64) -> PathBuf {
        self.scene.world.path(format!("agent-{agent}"))
    }

    /// An agent: prompt, tool, tool, end of turn, and its files in between.
    fn be_agent(&self, agent: u64) {
        let mut dice = Dice::of(&[1, agent]);
        let mut last_line = String::new();
        for turn in 0_u64.. {
            let report = |event: &str, call: u64| {
                serde_json::json!({
                    "event": event, "session": format!("agent-{agent}"), "cwd": self.scene.world.ws(),
                    "turn": format!("p{turn}"), "text": "go on", "tool": "shell", "call": format!("{turn}-{call}"),
                    "command": "make"
                })
            };
            let tools = 1 + dice.below(3);
            let mut events = vec![("prompt", 0)];
            events.extend((0..tools).flat_map(|call| [("before-tool", call), ("after-tool", call)]));
            events.push(("turn-ended", 0));
            for (event, call) in events {
                if self.ends.load(Ordering::Relaxed) {
                    return;
                }
                if event == "after-tool" {
                    self.work(agent, turn, &mut dice);
                }
                let operations = *self.operations.lock().unwrap();
                let before = snapshot(&self.folder(agent));
                let done = self.run(self.scene.piton(&["hook", "generic"]), &report(event, call).to_string());
                self.hooks.fetch_add(1, Ordering::Relaxed);
                if done.status.signal().is_none() && (done.status.code() != Some(0) || !done.stderr.is_empty()) {
                    self.fault(format!("a hook ended in {:?}: {}", done.status, both(&done)));
                }
                let is_calm = operations.at_work == 0 && *self.operations.lock().unwrap() == operations;
                let after = snapshot(&self.folder(agent));
                if is_calm && before != after {
                    self.fault(format!(
                        "the files of agent {agent} changed: {}",
                        before.differences(&after).join("\n")
                    ));
                }
                let Some(line) = self.last_line(agent).filter(|line| *line != last_line) else { continue };
                if let Some((_, id)) = line.split_once(" captured ") {
                    let id = id.split([' ', ';']).next().unwrap().to_owned();
                    self.captured.lock().unwrap().push(Captured { id, agent, holds: is_calm.then_some(before) });
                }
                last_line = line;
            }
        }
    }

    /// Changes files of its own folder, which a rewind may have taken away.
    fn work(&self, agent: u64, turn: u64, dice: &mut Dice) {
        for _ in 0..=dice.below(4) {
            let path = self.folder(agent).join(format!("{}/{}", dice.below(3), dice.below(4)));
            if dice.below(5) == 0 {
                let _ = std::fs::remove_file(path);
                continue;
            }
            let content = format!("agent {agent} in turn {turn}: {}", "x".repeat(dice.below(3000) as usize));
            // A rewind may remove the folder in this moment, or what is in it.
            let made = std::fs::create_dir_all(path.parent().unwrap()).and_then(|()| std::fs::write(path, content));
            drop(made);
        }
    }

    /// The last line of the hook's log that is of an agent.
    fn last_line(&self, agent: u64) -> Option<String> {
        let mut log = std::fs::File::open(self.scene.world.base().join("home/hook.log")).ok()?;
        let length = log.metadata().ok()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(20_000))).ok()?;
        let mut text = Vec::new();
        log.read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let word = format!(" agent-{agent} ");
        text.lines().rfind(|line| line.contains(&word)).map(str::to_owned)
    }

    /// A user: at random what a user does.
    fn be_user(&self, user: u64) {
        let mut dice = Dice::of(&[2, user]);
        while !self.ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(dice.below(700)));
            let some = {
                let captured = self.captured.lock().unwrap();
                if captured.is_empty() { None } else { Some(dice.one_of(&captured).id.clone()) }
            };
            let folder = format!("agent-{}", dice.below(AGENTS));
            let args: Vec<&str> = match (dice.below(7), &some) {
                (0, Some(id)) => vec!["rewind", id, "--yes", "--interrupted"],
                (1, Some(id)) => vec!["rewind", id, "--yes", "--interrupted", "--path", &folder],
                (2, _) => vec!["undo", "--session", &folder, "--yes", "--interrupted"],
                (3, _) => vec!["redo", "--yes", "--interrupted"],
                (4, _) => vec!["verify"],
                _ => vec!["log"],
            };
            let is_operation = !matches!(args[0], "log" | "verify");
            if is_operation {
                let mut operations = self.operations.lock().unwrap();
                operations.begun += 1;
                operations.at_work += 1;
            }
            let done = self.run(self.scene.piton(&args), "");
            self.commands.fetch_add(1, Ordering::Relaxed);
            match done.status.code() {
                None | Some(0) => {}
                // Refused, for a reason that the user can mend: another operation came in between, nothing to undo.
                Some(1) if is_operation => {}
                // An operation of another process that runs, or was just killed, is told of, and is no fault.
                Some(1) if args[0] == "verify" && both(&done).contains("has not ended") => {}
                _ => self.fault(format!("{args:?} ended in {:?}: {}", done.status, both(&done))),
            }
            if is_operation {
                // One that was killed is ended by whoever comes next; here is one that nobody kills.
                let settled = self.scene.run(&["log", "--json"]);
                // At the very beginning no hook may have got so far.
                let is_new =
                    both(&settled).contains("is not a workspace yet") && self.hooks.load(Ordering::Relaxed) < 50;
                if settled.status.code() != Some(0) && !is_new {
                    self.fault(format!("after {args:?}: {}", both(&settled)));
                }
                self.operations.lock().unwrap().at_work -= 1;
            }
        }
    }

    /// Kills or suspends one process a second. One that is suspended goes on later, or is killed.
    fn be_chance(&self, ended: &mpsc::Receiver<()>) {
        let mut dice = Dice::new(3);
        let mut suspended: Option<(Pid, Instant)> = None;
        loop {
            let pause = Duration::from_millis(100 + dice.below(400));
            let is_over = !matches!(ended.recv_timeout(pause), Err(mpsc::RecvTimeoutError::Timeout));
            // Under the lock, so that nobody waits for the process in between and its number becomes another's.
            let running = self.running.lock().unwrap();
            if let Some((pid, _)) =
                suspended.filter(|(_, since)| is_over || since.elapsed() > Duration::from_millis(700))
            {
                if running.contains(&pid) {
                    let signal = if dice.below(2) == 0 || is_over { Signal::CONT } else { Signal::KILL };
                    let _ = kill_process(pid, signal);
                }
                suspended = None;
            }
            if is_over {
                return;
            }
            if dice.below(3) > 0 || running.is_empty() {
                continue;
            }
            let pid = *dice.one_of(&running);
            if dice.below(2) == 0 {
                let _ = kill_process(pid, Signal::KILL);
                self.kills.fetch_add(1, Ordering::Relaxed);
            } else if suspended.is_none() {
                let _ = kill_process(pid, Signal::STOP);
                self.stops.fetch_add(1, Ordering::Relaxed);
                suspended = Some((pid, Instant::now()));
            }
        }
    }
}

#[test]
fn whatever_a_hook_reported_as_captured_is_there_and_holds_what_the_hook_saw() {
    let seconds = std::env::var("PITON_SOAK_SECONDS").ok().and_then(|value| value.parse().ok()).unwrap_or(30);
    let soak = Soak {
        scene: Scene::new(env!("CARGO_BIN_EXE_piton")),
        ends: AtomicBool::new(false),
        running: Mutex::default(),
        operations: Mutex::default(),
        captured: Mutex::default(),
        faults: Mutex::default(),
        hooks: AtomicU64::new(0),
        commands: AtomicU64::new(0),
        kills: AtomicU64::new(0),
        stops: AtomicU64::new(0),
    };
    let (over, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        let chance = scope.spawn({
            let soak = &soak;
            move || soak.be_chance(&ended)
        });
        let mut others: Vec<_> = (0..AGENTS)
            .map(|agent| {
                scope.spawn({
                    let soak = &soak;
                    move || soak.be_agent(agent)
                })
            })
            .collect();
        others.extend((0..USERS).map(|user| {
            scope.spawn({
                let soak = &soak;
                move || soak.be_user(user)
            })
        }));
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until && !soak.ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        soak.ends.store(true, Ordering::Relaxed);
        // Nobody is killed any more, and who is suspended goes on.
        drop(over);
        chance.join().unwrap();
        others.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let captured = soak.captured.into_inner().unwrap();
    let certain = captured.iter().filter(|one| one.holds.is_some()).count();
    let figures = format!(
        "{} hooks, {} commands, {} killed, {} suspended; {} checkpoints were reported, of {certain} it is known what they hold",
        count(&soak.hooks),
        count(&soak.commands),
        count(&soak.kills),
        count(&soak.stops),
        captured.len()
    );
    if std::env::var_os("PITON_SOAK_SECONDS").is_some() {
        let _ = std::io::stderr().write_all(format!("{figures}\n").as_bytes());
    }
    assert_eq!(soak.faults.into_inner().unwrap(), [""; 0], "{figures}");

    let scene = soak.scene;
    let verified = scene.run(&["verify"]);
    assert_eq!(verified.status.code(), Some(0), "{figures}\n{}", both(&verified));
    let stores = std::fs::read_dir(scene.world.base().join("home/workspaces")).unwrap();
    let stores: Vec<PathBuf> = stores.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(stores.len(), 1, "{stores:?}");
    // By the beginnings of their ids: among many thousands, two may well begin alike.
    let mut held: HashMap<String, Vec<Snapshot>> = HashMap::new();
    let length = captured.first().map_or(0, |one| one.id.len());
    for (id, holds) in kept(&stores[0]).unwrap() {
        let holds = holds.unwrap_or_else(|error| panic!("{id}: {error}"));
        held.entry(id[..length].to_owned()).or_default().push(holds);
    }
    for one in &captured {
        let Captured { id, agent, holds } = one;
        let meant = held.get(id).into_iter().flatten();
        let meant: Vec<_> = meant.map(|found| found.beneath(&format!("agent-{agent}"))).collect();
        assert!(!meant.is_empty(), "{id} of agent {agent} was reported and is not there; {figures}");
        if let Some(holds) = holds {
            let differences = || meant[0].differences(holds).join("\n");
            assert!(meant.contains(holds), "{id} of agent {agent}; is | should be\n{}", differences());
        }
    }
    // And by the way that a user goes.
    let mut dice = Dice::new(4);
    let is_one = |id: &str| held.get(id).is_some_and(|all| all.len() == 1);
    let certain: Vec<&Captured> = captured.iter().filter(|one| one.holds.is_some() && is_one(&one.id)).collect();
    assert!(!certain.is_empty(), "{figures}");
    for _ in 0..5 {
        let one = dice.one_of(&certain);
        let folder = format!("agent-{}", one.agent);
        // A folder that was not there then is no path that a rewind finds.
        if one.holds.as_ref().is_none_or(Snapshot::is_empty) {
            continue;
        }
        scene.ok(&["rewind", &one.id, "--yes", "--interrupted", "--path", &folder]);
        let (now, holds) = (snapshot(&scene.world.path(&folder)), one.holds.as_ref().unwrap());
        assert!(now == *holds, "{}; is | should be\n{}", one.id, now.differences(holds).join("\n"));
    }
}
