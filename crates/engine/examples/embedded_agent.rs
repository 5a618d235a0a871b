//! A small agent that protects itself with piton: it asks a model what to do, does it, and takes back a bad turn.
//!
//! Run it with `cargo run -p piton-engine --example embedded_agent`. The model here is a list of answers; everything
//! else is what a real agent would do.

use std::error::Error;
use std::path::{Path, PathBuf};

use piton_engine::view::{LogEntry, Notice, Since};
use piton_engine::{Engine, Environment, LiveSession, RewindOptions, TimelineOptions, Tool};

/// What the model wants done.
enum Action {
    Write { path: &'static str, text: &'static str },
    Shell { command: &'static str },
}

/// A prompt, and the model's answer to it.
struct Exchange {
    prompt: &'static str,
    actions: Vec<Action>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let story = run(scratch.path())?;
    print!("{story}");
    Ok(())
}

/// Lets the agent work in a scratch folder, and tells what happened.
pub fn run(scratch: &Path) -> Result<String, Box<dyn Error>> {
    let project = make_project(scratch)?;
    let engine = Engine::new(scratch.join("piton"), Environment::default());
    let mut workspace = engine.open_or_init(&project)?;
    let start = workspace.cursor_now()?;

    let mut session = workspace.begin_session("embedded-agent", "run-1")?;
    for exchange in script() {
        session.begin_turn(exchange.prompt)?;
        for (number, action) in exchange.actions.iter().enumerate() {
            act(&mut session, &project, &format!("call-{number}"), action)?;
        }
        session.end_turn()?;
    }
    session.end()?;

    let mut story = String::new();
    for entry in workspace.timeline(&TimelineOptions::default())?.entries.iter().rev() {
        if let LogEntry::Turn(turn) = entry {
            let prompt = turn.prompt.as_deref().unwrap_or_default();
            let counts = turn.changes;
            story += &format!(
                "{}  {prompt}: {} created, {} modified, {} deleted\n",
                turn.target, counts.created, counts.modified, counts.deleted
            );
            for step in &turn.steps {
                story += &format!("  {}  {}\n", step.target, step.summary);
            }
        }
    }

    // The second turn was a mistake: look at what taking it back would do, and do it.
    let plan = workspace.plan_rewind("t2", &RewindOptions::default())?;
    story += &format!("rewind to t2 would bring back {} files\n", plan.view().created.len());
    let outcome = workspace.carry_out(plan)?;
    story += &format!("rewound, verified: {}\n", outcome.verified);

    // What is told of a workspace is the same whichever process did it.
    if let Since::Notices { notices, .. } = workspace.since(&start, usize::MAX)? {
        let captured = notices.iter().filter(|one| matches!(one.notice, Notice::Captured { .. })).count();
        story += &format!("{captured} checkpoints were made on the way\n");
    }
    Ok(story)
}

/// Does one thing that the model asked for, with piton before and after it.
fn act(session: &mut LiveSession<'_>, project: &Path, id: &str, action: &Action) -> Result<(), Box<dyn Error>> {
    match action {
        Action::Write { path, text } => {
            session.before_tool(&Tool::new(id, "write_file").names(*path))?;
            write(&project.join(path), text)?;
        }
        Action::Shell { command } => {
            session.before_tool(&Tool::new(id, "shell").runs(*command))?;
            let status = std::process::Command::new("sh").args(["-c", command]).current_dir(project).status()?;
            if !status.success() {
                session.tool_failed(id, &status.to_string())?;
                return Ok(());
            }
        }
    }
    session.after_tool(id)?;
    Ok(())
}

fn script() -> Vec<Exchange> {
    vec![
        Exchange {
            prompt: "add a greeting",
            actions: vec![Action::Write { path: "src/greeting.txt", text: "hello\n" }],
        },
        Exchange { prompt: "clean up", actions: vec![Action::Shell { command: "rm -rf src && echo done > report" }] },
    ]
}

fn make_project(scratch: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let project = scratch.join("project");
    write(&project.join("src/main.txt"), "main\n")?;
    write(&project.join("README"), "a project\n")?;
    Ok(project)
}

#[allow(clippy::disallowed_methods, reason = "an agent writes files; that is what piton is for")]
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}
