//! Showing what a rewind or redo would do, asking, and telling what it did.

use std::io::{self, Write};
use std::path::PathBuf;

use piton_engine::model::inverse::Conflict;
use piton_engine::view::{HeadMoved, OperationOutcome, PathView, PlanView};
use piton_engine::{OperationError, Workspace};

use crate::console::{Console, Look};
use crate::error::Failure;
use crate::escape::{escape, escape_path, escape_view};
use crate::files::{ON_A_TERMINAL, write_rest};
use crate::skipped;
use crate::words::{age, grouped, label, plural};

/// Writes a plan; a whole one, or as much as a person reads before answering.
pub fn write(out: &mut dyn Write, look: &Look, plan: &PlanView, is_whole: bool) -> io::Result<()> {
    let paint = look.paint;
    let target = plan.target.as_ref();
    let target = target.map(|target| format!("{} ({})", label(target, paint), age(target.created_at, look.now)));
    let target = target.unwrap_or_default();
    match plan.kind.as_str() {
        "redo" => writeln!(out, "{} of the last rewind, back to {target}", paint.bold("Redo"))?,
        _ => writeln!(out, "{} to {target}", paint.bold("Rewind"))?,
    }
    if !plan.paths.is_empty() {
        let paths: Vec<_> = plan.paths.iter().map(escape_view).collect();
        writeln!(out, "only {}", paths.join(", "))?;
    }
    if plan.missing_folder {
        writeln!(out, "{} the workspace's folder is gone and is made anew", paint.warn("warning:"))?;
    }
    if plan.other_folder {
        let text = "that checkpoint was captured in another folder that stood at this path";
        writeln!(out, "{} {text}", paint.warn("warning:"))?;
    }
    write_head_moved(out, look, plan.head_moved.as_ref())?;
    let conflicts: Vec<_> = plan.conflicts.iter().map(|conflict| conflict.path.clone()).collect();
    let lists: [(&[PathView], &str, &str, &str); 4] = [
        (&conflicts, "!", "conflict", "in conflict"),
        (&plan.restored, "~", "restore", "to restore"),
        (&plan.created, "+", "create", "to create"),
        (&plan.deleted, "-", "delete", "to delete"),
    ];
    let all = lists.iter().flat_map(|(paths, sign, word, _)| paths.iter().map(move |path| (path, *sign, *word)));
    let total = lists.iter().map(|(paths, ..)| paths.len()).sum::<usize>();
    let shown = if is_whole { total } else { look.lines(ON_A_TERMINAL).min(total) };
    for (path, sign, word) in all.take(shown) {
        let line = format!("{sign} {word:<8} {}", escape_view(path));
        let painted = match sign {
            "~" => paint.warn(line),
            "+" => paint.good(line),
            _ => paint.bad(line),
        };
        writeln!(out, "  {painted}")?;
    }
    write_rest(out, look, "  ", total - shown)?;
    if plan.is_empty() {
        writeln!(out, "  nothing to do: the files are like that already")?;
    } else {
        let counts = lists.iter().filter(|(paths, ..)| !paths.is_empty());
        let counts: Vec<_> =
            counts.map(|(paths, .., said)| format!("{} {said}", grouped(paths.len() as u64))).collect();
        writeln!(out, "{}", counts.join(", "))?;
    }
    if !plan.skipped.is_empty() {
        writeln!(out, "Left alone, because not captured:")?;
        for line in skipped::lines(&plan.skipped, if is_whole { usize::MAX } else { 3 }) {
            writeln!(out, "  {line}")?;
        }
    }
    write_others(out, look, &plan.other_workspaces)
}

fn write_head_moved(out: &mut dyn Write, look: &Look, moved: Option<&HeadMoved>) -> io::Result<()> {
    let Some(HeadMoved { was, is }) = moved else { return Ok(()) };
    let note = look.paint.warn("note:");
    writeln!(out, "{note} git was at {} then and is at {} now; .git stays as it is", escape(was), escape(is))
}

fn write_others(out: &mut dyn Write, look: &Look, others: &[PathBuf]) -> io::Result<()> {
    if others.is_empty() {
        return Ok(());
    }
    let places: Vec<_> = others.iter().map(|path| escape_path(path)).collect();
    let note = look.paint.warn("note:");
    writeln!(out, "{note} this session also worked in {}; `--all-workspaces` rewinds those too", places.join(", "))
}

/// Shows a plan and asks whether to go on. The engine would refuse a plan with a conflict or, unless insisted on, of
/// another folder: nobody is asked about those.
pub fn confirm(console: &mut Console, workspace: &Workspace, plan: &PlanView, across: bool) -> Result<(), Refusal> {
    if plan.is_empty() {
        return Ok(());
    }
    console.say_with(|out, look| write(out, look, plan, false));
    if !plan.conflicts.is_empty() {
        let conflicts = plan.conflicts.iter().filter_map(|conflict| {
            let path = conflict.path.exact()?;
            Some(Conflict { path, why: conflict.why, clashes: conflict.clashes.clone(), decided: conflict.decided })
        });
        return Err(Refusal::Engine(OperationError::Conflict(conflicts.collect())));
    }
    if plan.other_folder && !across {
        return Err(Refusal::Engine(OperationError::OtherFolder(workspace.path().to_owned())));
    }
    let files = plural((plan.created.len() + plan.restored.len() + plan.deleted.len()) as u64, "file");
    let question = match plan.kind.as_str() {
        "redo" => format!("Take back the rewind of {files}?"),
        _ => format!("Rewind {files}?"),
    };
    if console.ask(&question) { Ok(()) } else { Err(Refusal::No) }
}

/// Why a plan is not carried out.
pub enum Refusal {
    /// The person said no.
    No,
    /// The engine would not do it.
    Engine(OperationError),
}

/// Refuses to guess where nobody can be asked.
pub fn someone_to_ask(console: &Console) -> Result<(), Failure> {
    if console.can_ask() {
        return Ok(());
    }
    Err(Failure::user("there is no terminal to ask at; nothing was changed")
        .hint("`--preview` shows what would change; `--yes` goes on without asking"))
}

/// What an operation did, in one line: `2 restored, 1 came back, 3 deleted; verified`.
pub fn summary(outcome: &OperationOutcome, look: &Look) -> String {
    let parts = [
        (outcome.restored.len(), "restored"),
        (outcome.created.len(), "came back"),
        (outcome.deleted.len(), "deleted"),
    ];
    let said: Vec<_> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", grouped(*n as u64))).collect();
    // What has no path of its own to list.
    let said = if said.is_empty() { vec!["the workspace folder's own mode restored".to_owned()] } else { said };
    let end = if outcome.verified { look.paint.good("verified") } else { look.paint.warn("changed again since") };
    format!("{}; {end}", said.join(", "))
}

/// What else there is to know of it.
pub fn write_remarks(out: &mut dyn Write, look: &Look, outcome: &OperationOutcome) -> io::Result<()> {
    let paint = look.paint;
    write_head_moved(out, look, outcome.head_moved.as_ref())?;
    if outcome.also.is_empty() {
        write_others(out, look, &outcome.other_workspaces)?;
    }
    if !outcome.changed_again.is_empty() {
        writeln!(out, "{} changed by another program right after they were put in place:", paint.warn("note:"))?;
        for path in &outcome.changed_again {
            writeln!(out, "  {}", escape_view(path))?;
        }
    }
    if !outcome.rescued.is_empty() {
        let before = outcome.operation.as_ref().map(|operation| operation.before.short().to_owned());
        let place = before.map(|id| format!("; kept in {}", paint.id(id))).unwrap_or_default();
        writeln!(out, "{} written by another program in the last moment{place}:", paint.warn("note:"))?;
        for path in &outcome.rescued {
            writeln!(out, "  {}", escape_view(path))?;
        }
    }
    if !outcome.skipped.is_empty() {
        writeln!(
            out,
            "{}",
            paint.dim(format!("left alone, because not captured: {}", skipped::summary(&outcome.skipped)))
        )?;
    }
    Ok(())
}
