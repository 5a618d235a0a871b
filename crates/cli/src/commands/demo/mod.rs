//! `piton demo`: the whole of piton in ten seconds, in a scratch folder, with the real engine.

mod scratch;

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use piton_engine::{
    CaptureOptions, Choice, DiffOptions, Engine, Environment, IntoTarget, RedoOptions, RewindOptions, TimelineOptions,
    Tool, UndoOptions, Which,
};
use piton_wording::escape::escape_path;
use piton_wording::owners::Names;
use piton_wording::words::plural;
use piton_wording::{Code, Failure};
use serde::Serialize;

use self::scratch::Snapshot;
use super::{checkpoint, log, redo, rewind, undo};
use crate::console::{Console, Look};
use crate::patch;

/// See it work in a scratch folder
///
/// A small project appears and an agent works on it. One of its turns is taken back without what you did since; then
/// everything goes back to the beginning, byte for byte. Your own files and your own checkpoints are not touched.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep the scratch folder, to look around in it
    #[arg(long)]
    keep: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    /// Whether the files were what they should be after the undo, the redo and the rewind.
    proved: bool,
    files: usize,
    bytes: usize,
    restored: usize,
    created: usize,
    deleted: usize,
    capture_ms: f64,
    undo_ms: f64,
    rewind_ms: f64,
    /// The scratch folder, where it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

pub fn run(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let scratch = tempfile::Builder::new().prefix("piton-demo-").tempdir().map_err(no_scratch)?;
    let mut story = Vec::new();
    let told = tell(scratch.path(), &mut story, &console.look);
    let kept = args.keep.then(|| scratch.keep());
    if told.is_err() {
        // How far it came helps to see why.
        console.say_with(|out, _| out.write_all(&story));
    }
    let readable = kept.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let summary = Summary { kept: readable, ..told? };
    console.print(&summary, |out, look| {
        out.write_all(&story)?;
        if let Some(folder) = &kept {
            let (project, home) = (folder.join("shop"), folder.join("store"));
            writeln!(out, "\nKept: cd {} && export PITON_HOME={}", escape_path(&project), escape_path(&home))?;
        }
        writeln!(out, "\n{}", look.paint.bold("Now yours"))?;
        writeln!(out, "  cd YOUR/PROJECT && piton checkpoint before-agent")?;
        writeln!(out, "  piton --help")
    })?;
    if summary.proved { Ok(()) } else { Err(Failure::bug("the files are not what they were")) }
}

/// Tells the story while it happens.
fn tell(scratch: &Path, out: &mut Vec<u8>, look: &Look) -> Result<Summary, Failure> {
    let paint = look.paint;
    let (project, home) = (scratch.join("shop"), scratch.join("store"));
    scratch::make_folder(&project).map_err(no_scratch)?;
    scratch::make_project(&project).map_err(no_scratch)?;
    let before = Snapshot::of(&project).map_err(no_scratch)?;
    let engine = Engine::new(home, Environment::default());
    let mut story = Story { out, look };

    let place = paint.dim(format!("(in {}; your files are not touched)", escape_path(scratch)));
    story.heading(&format!("A small project {place}"))?;
    story.line("README.md  price -> src/price.py  run.sh  src/cart.py  src/price.py  tests/…")?;

    story.heading("Drive in a piton")?;
    story.command("piton checkpoint before-agent")?;
    let mut workspace = engine.open_or_init(&project)?;
    let options = CaptureOptions { name: Some("before-agent".into()), ..CaptureOptions::default() };
    let (captured, capture_time) = timed(|| workspace.capture(&options));
    let captured = captured?;
    story.show(|out, look| checkpoint::write(out, look, &captured))?;

    story.heading("An agent gets to work, and so do you")?;
    let mut session = workspace.begin_session("demo-agent", "demo")?;
    let mut work = |prompt: &str, tool: &Tool, id: &str, work: fn(&Path) -> io::Result<()>| {
        session.begin_turn(prompt)?;
        session.before_tool(tool)?;
        work(&project).map_err(no_scratch)?;
        session.after_tool(id)?;
        session.end_turn()?;
        Ok::<(), Failure>(())
    };
    work("add a discount", &Tool::new("1", "Write").names("src/discount.py"), "1", scratch::help)?;
    let helped = Snapshot::of(&project).map_err(no_scratch)?;
    work("make the tests pass", &Tool::new("2", "Bash").runs(SPOILS), "2", scratch::spoil)?;
    story.line("agent, “add a discount”: writes src/discount.py")?;
    story.line("agent, “make the tests pass”: sed … src/price.py && chmod -x run.sh && rm -rf tests")?;
    story.line("you: add a function at the end of src/price.py")?;
    scratch::add_own(&project).map_err(no_scratch)?;
    let spoiled = Snapshot::of(&project).map_err(no_scratch)?;
    story.command("piton log --steps")?;
    let timeline = workspace.timeline(&TimelineOptions::default())?;
    let around = log::around(&workspace, &timeline)?;
    story.show(|out, look| log::write(out, look, &timeline, &around, log::Detail { steps: true, files: false }))?;

    story.heading("Turn 2 made the tests pass by deleting them. Take it back, and keep the rest")?;
    story.command("piton undo t2 --yes")?;
    let choice = Choice { what: Some(Which::Places(vec![(2, None)])), ..Choice::default() };
    let (undone, undo_time) = timed(|| workspace.undo_now(&UndoOptions { choice, ..UndoOptions::default() }));
    let undone = undone?;
    story.show(|out, look| undo::write(out, look, &undone))?;
    story.command("piton diff t2 @ -U0")?;
    let compared = workspace.diff(&DiffOptions { from: Some("t2".into_target()?), ..DiffOptions::default() })?;
    story.show(|out, look| compared.files.iter().try_for_each(|file| patch::write(out, look, file)))?;
    // The same edit of the same state, without piton's help.
    let expected = helped.with_own();
    let kept = Snapshot::of(&project).map_err(no_scratch)?;
    let is_undone = story.proof(&expected, &kept, "as before turn 2, plus your function")?;

    story.heading("And if the agent was right after all?")?;
    story.command("piton redo --yes")?;
    let redone = workspace.redo_now(&RedoOptions::default())?;
    let names = Names::of(&workspace.sessions()?.sessions);
    let of = redo::taken_back(&workspace, &redone, &names)?;
    story.show(|out, look| redo::write(out, look, &redone, &of))?;
    let again = Snapshot::of(&project).map_err(no_scratch)?;
    let is_again = story.proof(&spoiled, &again, "as before the undo")?;

    story.heading("Fall, and fall only to the last piton")?;
    story.command("piton rewind before-agent --yes")?;
    let (rewound, rewind_time) = timed(|| workspace.rewind_now("before-agent", &RewindOptions::default()));
    let rewound = rewound?;
    let target = rewind::target_of(&workspace, &rewound, "before-agent")?;
    story.show(|out, look| rewind::write(out, look, &rewound, (&target, &[]), &names))?;
    let after = Snapshot::of(&project).map_err(no_scratch)?;
    let is_back = story.proof(&before, &after, "as at the beginning")?;

    let ms = |time: Duration| (time.as_secs_f64() * 10_000.0).round() / 10.0;
    let (capture_ms, undo_ms, rewind_ms) = (ms(capture_time), ms(undo_time), ms(rewind_time));
    story.heading(&format!("Capture {capture_ms} ms, undo {undo_ms} ms, rewind {rewind_ms} ms"))?;
    Ok(Summary {
        proved: is_undone && is_again && is_back,
        files: before.files(),
        bytes: before.bytes(),
        restored: rewound.restored.len(),
        created: rewound.created.len(),
        deleted: rewound.deleted.len(),
        capture_ms,
        undo_ms,
        rewind_ms,
        kept: None,
    })
}

/// What the agent runs in its second turn.
const SPOILS: &str = "sed -i 's/0.19/0.0  # TODO/; s/ \\* (1 + TAX)//' src/price.py && chmod -x run.sh && rm -rf tests";

/// The lines of the story.
struct Story<'a> {
    out: &'a mut Vec<u8>,
    look: &'a Look,
}

impl Story<'_> {
    fn heading(&mut self, text: &str) -> Result<(), Failure> {
        let gap = if self.out.is_empty() { "" } else { "\n" };
        writeln!(self.out, "{gap}{}", self.look.paint.bold(text)).map_err(Failure::output)
    }

    fn command(&mut self, text: &str) -> Result<(), Failure> {
        self.line(&format!("{} {text}", self.look.paint.id("$")))
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.out, "  {text}").map_err(Failure::output)
    }

    /// What a command prints, set in.
    fn show(&mut self, write: impl FnOnce(&mut dyn Write, &Look) -> io::Result<()>) -> Result<(), Failure> {
        let mut text = Vec::new();
        write(&mut text, self.look).map_err(Failure::output)?;
        String::from_utf8_lossy(&text).lines().try_for_each(|line| self.line(line))
    }

    /// Compares every path with what it should be.
    fn proof(&mut self, expected: &Snapshot, found: &Snapshot, what: &str) -> Result<bool, Failure> {
        let paint = self.look.paint;
        let wrong = expected.differing(found);
        if wrong.is_empty() {
            let files = plural(found.files() as u64, "file");
            let text = format!("proof, read without piton: {files} byte for byte {what}");
            self.line(&paint.good(text))?;
        }
        for path in &wrong {
            self.line(&paint.bad(format!("not as it should be: {}", escape_path(path))))?;
        }
        Ok(wrong.is_empty())
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let result = work();
    (result, begin.elapsed())
}

fn no_scratch(error: io::Error) -> Failure {
    Failure::user(Code::CannotWrite, format!("the scratch folder: {error}")).hint("TMPDIR chooses where it is made")
}
