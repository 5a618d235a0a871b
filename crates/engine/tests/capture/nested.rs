//! A known workspace inside a known workspace, such as a submodule in which an agent was started once: what a session does in
//! one of them is no other session's, and not the user's, in the store of the other.

use std::path::Path;
use std::time::Duration;

use piton_engine::model::ownership::{Candidate, Owner};
use piton_engine::model::{SessionId, StepRef};
use piton_engine::view::{Activity, OperationOutcome};
use piton_engine::{CaptureOptions, Choice, LogOptions, OperationError, RewindOptions, UndoOptions};
use piton_testkit::{Agent, World, git};

/// A workspace with a known one in it, `in`.
fn nested() -> World {
    let world = World::new();
    world.write("README", "outer\n").write("in/lib.rs", "inner\n");
    git(&world.ws(), &["init", "-q"]);
    git(&world.path("in"), &["init", "-q"]);
    for folder in [world.path("in"), world.ws()] {
        world.engine.open_or_init(&folder).unwrap().capture(&CaptureOptions::default()).unwrap();
    }
    world
}

/// An agent in the inner workspace.
fn inside<'w>(world: &'w World, session: &'static str) -> Agent<'w> {
    let agent = Agent::new(world, session);
    *agent.folder.borrow_mut() = world.path("in");
    agent
}

/// Who made the newest change of a path, as a workspace's store says: `you`, `s1`, `unsure s2 you`.
fn owner(world: &World, folder: &Path, path: &str) -> String {
    let mut workspace = world.engine.open(folder).unwrap();
    workspace.capture(&CaptureOptions::default()).unwrap();
    let name = |step: &StepRef| {
        let name = ["s1", "s2"].into_iter().find(|name| SessionId::of("test", name) == step.session);
        name.unwrap().to_owned()
    };
    for checkpoint in workspace.log(LogOptions::default()).unwrap().checkpoints {
        let files = workspace.show(checkpoint.id.as_str()).unwrap().files;
        let Some(file) = files.into_iter().find(|file| file.change.path.path == path) else { continue };
        return match file.owner {
            Some(Owner::You) => "you".to_owned(),
            Some(Owner::Step { step, .. }) => name(&step),
            Some(Owner::Unsure { candidates }) => {
                let who = candidates.iter().map(|one| match one {
                    Candidate::Step(step) => name(step),
                    Candidate::You => "you".to_owned(),
                });
                format!("unsure {}", who.collect::<Vec<_>>().join(" "))
            }
            other => format!("{other:?}"),
        };
    }
    panic!("{path} never changed")
}

fn undo(world: &World, session: &str) -> Result<OperationOutcome, OperationError> {
    let choice = Choice { session: Some(session.to_owned()), ..Choice::default() };
    world.open().undo_now(&UndoOptions { choice, ..UndoOptions::default() })
}

/// An undo in the outer workspace used to take back what the other session wrote in the inner one, as sure.
#[test]
fn what_another_session_does_in_the_inner_workspace_is_not_of_the_shell_that_runs_around_it() {
    let world = nested();
    let (outer, inner) = (Agent::new(&world, "s1"), inside(&world, "s2"));
    outer.prompt("build");
    outer.before("make", "Bash", &[]);
    inner.edits("write", &["feature.rs"], |w| {
        w.write("in/feature.rs", "work\n");
    });
    inner.runs("generate", "gen", |w| {
        w.write("in/made.rs", "work\n");
    });
    world.write("build.log", "out\n");
    outer.after("make");
    outer.end_turn();
    assert_eq!(owner(&world, &world.path("in"), "feature.rs"), "s2");
    assert_eq!(owner(&world, &world.ws(), "in/feature.rs"), "unsure s2 you");
    assert_eq!(owner(&world, &world.ws(), "in/made.rs"), "unsure s1 s2 you");
    assert_eq!(owner(&world, &world.ws(), "build.log"), "s1", "a shell elsewhere gives way");
    undo(&world, "s1").unwrap();
    assert!(!world.path("build.log").exists());
    assert!(world.path("in/feature.rs").exists() && world.path("in/made.rs").exists());
}

#[test]
fn without_overlap_no_store_calls_the_other_agents_change_the_users() {
    let world = nested();
    let (outer, inner) = (Agent::new(&world, "s1"), inside(&world, "s2"));
    inner.edits("write", &["feature.rs"], |w| {
        w.write("in/feature.rs", "work\n");
    });
    inner.runs("reach out", "gen", |w| {
        w.write("NEWS", "work\n");
    });
    // Clocks of file systems tick coarsely: what comes right after a tool may be the tool's.
    std::thread::sleep(Duration::from_millis(50));
    outer.runs("reach in", "gen", |w| {
        w.write("in/config.rs", "work\n");
    });
    assert_eq!(owner(&world, &world.ws(), "in/feature.rs"), "unsure s2 you");
    assert_eq!(owner(&world, &world.ws(), "NEWS"), "unsure s2 you");
    assert_eq!(owner(&world, &world.ws(), "in/config.rs"), "s1");
    assert_eq!(owner(&world, &world.path("in"), "config.rs"), "unsure s1 you");
    // What the user does when nobody is at work is still the user's.
    std::thread::sleep(Duration::from_millis(50));
    world.write("in/lib.rs", "mine\n").write("README", "mine\n");
    assert_eq!(owner(&world, &world.ws(), "README"), "you");
    assert_eq!(owner(&world, &world.ws(), "in/lib.rs"), "you");
}

/// What an operation in one workspace wrote in the other one is not the user's there.
#[test]
fn an_undo_around_the_inner_workspace_is_not_the_users_edit_in_it() {
    let world = nested();
    let outer = Agent::new(&world, "s1");
    let inner = world.path("in");
    outer.runs("reach in", "gen", |w| {
        w.write("in/lib.rs", "work\n");
    });
    world.engine.open(&inner).unwrap().capture(&CaptureOptions::default()).unwrap();
    undo(&world, "s1").unwrap();
    // The tool that just ended may count too: it is a matter of moments.
    let whose = owner(&world, &inner, "lib.rs");
    assert!(whose.starts_with("unsure "), "{whose}");
}

#[test]
fn a_tool_that_runs_in_a_workspace_inside_or_around_is_not_written_under() {
    let world = nested();
    let (outer, inner) = (Agent::new(&world, "s1"), inside(&world, "s2"));
    for (runs, folder) in [(&inner, world.ws()), (&outer, world.path("in"))] {
        let id = world.engine.open(&folder).unwrap().capture(&CaptureOptions::default()).unwrap();
        let id = id.checkpoint.checkpoint.id.to_string();
        world.write("in/lib.rs", format!("{}\n", folder.display()));
        runs.prompt("go");
        runs.before("c", "Bash", &[]);
        let mut workspace = world.engine.open(&folder).unwrap();
        let refused = workspace.rewind_now(&id, &RewindOptions::default());
        let Err(OperationError::Running(running)) = refused else { panic!("{refused:?}") };
        assert_eq!((&running[0].session, running[0].what), (&runs.id(), Activity::Tool));
        runs.after("c");
        runs.end_turn();
        workspace.rewind_now(&id, &RewindOptions::default()).unwrap();
    }
}

/// A turn that named a file in there is in both stores. The other one used to hold every further undo up.
#[test]
fn what_is_taken_back_around_the_inner_workspace_does_not_stand_before_earlier_turns() {
    let world = nested();
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["README"], |w| {
        w.write("README", "one\n");
    });
    agent.edits("two", &["in/lib.rs"], |w| {
        w.write("in/lib.rs", "two\n");
    });
    let read = |path: &str| std::fs::read_to_string(world.path(path)).unwrap();
    let outcome = undo(&world, "s1").unwrap();
    assert_eq!((read("in/lib.rs").as_str(), outcome.other_workspaces.len()), ("inner\n", 0));
    undo(&world, "s1").unwrap();
    assert_eq!(read("README"), "outer\n");
}

/// Between two tools of a turn nothing is open, and a rewind around the inner workspace used to go over its agent.
#[test]
fn an_agent_in_the_middle_of_a_turn_inside_is_not_rewound_under() {
    let world = nested();
    let inner = inside(&world, "s2");
    let id = world.open().capture(&CaptureOptions::default()).unwrap().checkpoint.checkpoint.id.to_string();
    inner.prompt("go");
    inner.before("c", "Bash", &[]);
    world.write("in/lib.rs", "half\n");
    inner.after("c");
    let refused = world.open().rewind_now(&id, &RewindOptions::default());
    let Err(OperationError::Running(running)) = refused else { panic!("{refused:?}") };
    assert_eq!((&running[0].session, running[0].what), (&inner.id(), Activity::Turn));
    inner.end_turn();
    world.open().rewind_now(&id, &RewindOptions::default()).unwrap();
    assert_eq!(std::fs::read_to_string(world.path("in/lib.rs")).unwrap(), "inner\n");
    let told = inner.prompt("next").told.expect("its file changed under it");
    assert_eq!(told.files.iter().map(|file| file.path.path.as_str()).collect::<Vec<_>>(), ["lib.rs"]);
    assert_eq!(told.did, [format!("went back in {}, which shares files with this folder", world.ws().display())]);
    inner.end_turn();
    assert!(inner.prompt("and on").told.is_none(), "once is enough");
}

/// The tool never says that it ended. The user's word used to be asked for at every operation around it.
#[test]
fn that_a_turn_inside_was_interrupted_is_said_once() {
    let world = nested();
    let inner = inside(&world, "s2");
    let id = world.open().capture(&CaptureOptions::default()).unwrap().checkpoint.checkpoint.id.to_string();
    inner.prompt("go");
    inner.before("c", "Bash", &[]);
    let rewind = |interrupted: bool, text: &str| {
        world.write("in/lib.rs", text);
        world.open().rewind_now(&id, &RewindOptions { interrupted, ..RewindOptions::default() })
    };
    assert!(matches!(rewind(false, "a\n"), Err(OperationError::Running(_))));
    rewind(true, "b\n").unwrap();
    rewind(false, "c\n").unwrap();
}
