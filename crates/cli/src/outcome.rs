//! Telling what an operation did, and what it left.

use std::collections::HashSet;
use std::io::{self, Write};
use std::process::ExitCode;

use piton_engine::model::SkipReason;
use piton_engine::view::{LeftoverView, OperationOutcome, OutsideAct, OutsideView, PathView, SkippedView};
use piton_wording::escape::{escape, escape_view};
use piton_wording::owners::Names;
use piton_wording::words::{grouped, plural};
use piton_wording::{Call, Text, call, skipped, text};
use unicode_width::UnicodeWidthStr;

use crate::console::{Console, Look};
use crate::conversation;
use crate::files::{ON_A_TERMINAL, write_rest};
use crate::paint::Paint;
use crate::plan::{
    whose, write_git, write_interrupted, write_other_workspaces, write_outside, write_owned, write_unknown,
};

/// What an operation did, in one line: `2 restored, 1 recreated, 3 deleted, 1 merged; verified`.
pub fn summary(outcome: &OperationOutcome, look: &Look) -> String {
    let merged: HashSet<_> = outcome.merged.iter().filter_map(PathView::exact).collect();
    let is_merged = |path: &&PathView| path.exact().is_some_and(|path| merged.contains(&path));
    let pure = |paths: &[PathView]| paths.iter().filter(|path| !is_merged(path)).count();
    let mixed = outcome.restored.iter().chain(&outcome.created).filter(is_merged).count();
    let parts = [
        (pure(&outcome.restored), "restored"),
        (pure(&outcome.created), "recreated"),
        (pure(&outcome.deleted), "deleted"),
        (mixed, "merged"),
    ];
    let said: Vec<_> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", grouped(*n as u64))).collect();
    // What has no path of its own to list.
    let said = match said.is_empty() {
        false => said,
        true if outcome.touched_outside => vec!["only files outside the workspace".to_owned()],
        true if outcome.git.is_some() => vec!["only git's state".to_owned()],
        true if outcome.conversation.is_some() => vec!["only the conversation; the files stay".to_owned()],
        true if !outcome.not_done.is_empty() => vec!["nothing restored".to_owned()],
        true => vec!["the workspace folder's own mode restored".to_owned()],
    };
    let end = match outcome.not_done.len() {
        0 if !outcome.unknown.is_empty() => look.paint.warn("not all of it is known"),
        _ if !outcome.changed_again.is_empty() => look.paint.warn("changed again since"),
        0 => look.paint.good("verified"),
        left => look.paint.warn(format!("{} not restored", plural(left as u64, "path"))),
    };
    format!("{}; {end}", said.join(", "))
}

/// The whole line, `undid turn 3 “make it blue”: 2 restored; verified`; two of them where the screen is too narrow.
pub fn headline(look: &Look, verb: &str, about: &str, outcome: &OperationOutcome) -> String {
    let about = format!("{verb} {}", escape(about));
    let plain = Look { paint: Paint::none(), ..look.clone() };
    let is_long = about.width() + 2 + summary(outcome, &plain).width() > look.width;
    let space = if look.terminal && is_long { "\n  " } else { " " };
    format!("{about}:{space}{}", summary(outcome, look))
}

/// Why nothing was done.
pub fn nothing(outcome: &OperationOutcome, otherwise: &str) -> String {
    if outcome.conflicts.iter().any(|conflict| !conflict.decided) {
        return "nothing was done: everything is in conflict".to_owned();
    }
    if !outcome.conflicts.is_empty() {
        return "nothing to do: what is there now was decided for".to_owned();
    }
    if !outcome.not_done.is_empty() && outcome.not_done.iter().all(|one| one.was_captured) {
        return "nothing was done: what is there now is left out by a rule, so only a rewind brings back what was there"
            .to_owned();
    }
    if !outcome.not_done.is_empty() {
        return "nothing was done: what is left cannot be restored".to_owned();
    }
    if !outcome.unsure.is_empty() {
        return "nothing was done: what is left may be somebody else's".to_owned();
    }
    if outcome.git_stays.is_some() {
        return "nothing was done: only git's part is left, and git stays as it is".to_owned();
    }
    if outcome.touches_outside && outcome.outside.iter().any(is_left) {
        return "nothing was done: what is left lies outside the workspace and stays as it is".to_owned();
    }
    if !outcome.carried.is_empty() {
        return "nothing to do: what changed since is carried over".to_owned();
    }
    format!("nothing to do: {otherwise}")
}

/// Whether a file outside the workspace stays as it is.
fn is_left(file: &OutsideView) -> bool {
    matches!(file.act, OutsideAct::Unknown | OutsideAct::Conflict)
}

/// What else there is to know of what a verb did. `way_outside` says how to have files outside the workspace put back too.
fn write_remarks(
    out: &mut dyn Write,
    look: &Look,
    outcome: &OperationOutcome,
    names: &Names,
    verb: &str,
    way_outside: &Text,
) -> io::Result<()> {
    let paint = look.paint;
    if let Some(conversation) = &outcome.conversation {
        conversation::write_outcome(out, look, conversation, names)?;
    }
    if let (Some(why), Some(_)) = (&outcome.conversation_stays, &outcome.operation) {
        conversation::write_stays(out, look, why)?;
    }
    write_interrupted(out, look, &outcome.interrupted, names)?;
    let git = (outcome.git.as_ref(), outcome.git_stays.as_deref());
    write_git(out, look, git.0, git.1, outcome.head_moved.as_ref())?;
    if outcome.also.is_empty() {
        write_other_workspaces(out, look, verb, &outcome.other_workspaces)?;
    }
    let list = |out: &mut dyn Write, heading: &str, paths: &[String]| -> io::Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        writeln!(out, "{} {heading}:", paint.warn("note:"))?;
        let shown = look.lines(ON_A_TERMINAL).min(paths.len());
        paths[..shown].iter().try_for_each(|path| writeln!(out, "  {path}"))?;
        write_rest(out, look, "  ", paths.len() - shown)
    };
    let escaped = |paths: &[PathView]| paths.iter().map(escape_view).collect::<Vec<_>>();
    list(out, "changed by another program right after they were put in place", &escaped(&outcome.changed_again))?;
    let before = outcome.operation.as_ref().map(|operation| operation.before.short().to_owned());
    let place = before.map(|id| format!("; kept in {}", paint.id(id))).unwrap_or_default();
    list(out, &format!("written by another program in the last moment{place}"), &escaped(&outcome.rescued))?;
    list(out, "came or changed after the plan was shown, and left as they are", &escaped(&outcome.came_since))?;
    let heading = format!("deleted, though neither a plan nor an earlier checkpoint showed them{place}");
    list(out, &heading, &escaped(&outcome.deleted_new))?;
    let left: Vec<_> = outcome.leftovers.iter().map(leftover).collect();
    list(out, "done, but its own copies of what came out could not all be removed", &left)?;
    let left = outcome.conflicts.iter().filter(|conflict| !conflict.decided);
    let left: Vec<_> = left.map(|c| format!("{}: {}", escape_view(&c.path), c.why.describe())).collect();
    list(out, "left as they are, because in conflict", &left)?;
    let (refused, unknown): (Vec<_>, Vec<_>) =
        outcome.not_done.iter().partition(|one| one.reason == SkipReason::Refused);
    list(out, "not restored", &unknown.into_iter().map(|one| look.text(not_done(one))).collect::<Vec<_>>())?;
    let refused: Vec<_> = refused.into_iter().map(|one| escape_view(&one.path)).collect();
    list(out, "not restored, or with other permission bits, because the system refused it", &refused)?;
    write_unknown(out, look, &outcome.unknown)?;
    let along = outcome.along.iter().filter(|_| outcome.operation.is_some());
    let along: Vec<_> =
        along.map(|one| format!("{} (the same file as {})", escape_view(&one.path), escape_view(&one.with))).collect();
    list(out, "went along, because it was moved", &along)?;
    let heading = format!("{} left alone, because it may be somebody else's:", paint.warn("note:"));
    let shown = look.lines(ON_A_TERMINAL / 4);
    write_owned(out, look, &heading, &outcome.unsure, shown, |file| names.evidence(&file.owner, &[]))?;
    if !outcome.unsure.is_empty() {
        writeln!(out, "{}", paint.dim("`--unsure` takes that back too"))?;
    }
    let heading = format!("{} came back, though the deletion may be somebody else's:", paint.warn("note:"));
    write_owned(out, look, &heading, &outcome.unsure_back, shown, |file| names.evidence(&file.owner, &[]))?;
    let heading = format!("{} carried over:", paint.warn("note:"));
    write_owned(out, look, &heading, &outcome.carried, shown, |file| whose(file, names))?;
    write_outside(out, look, &outcome.outside, outcome.touched_outside, way_outside)?;
    if outcome.operation.is_some() && !outcome.commands.is_empty() {
        let ran = plural(outcome.commands.len() as u64, "command");
        writeln!(out, "{} not undone: what {ran} did beside files", paint.warn("note:"))?;
    }
    let others = skipped::others(&outcome.skipped, &outcome.not_done);
    if !others.is_empty() {
        let text = format!("left alone, because not captured: {}", skipped::summary(&others));
        writeln!(out, "{}", paint.dim(text))?;
    }
    Ok(())
}

/// `.piton-kmzqwxyl-0/f: Operation not permitted`.
pub fn leftover(left: &LeftoverView) -> String {
    format!("{}: {}", escape_view(&left.path), escape(&left.why))
}

/// `src/a.rs (unreadable)`.
pub fn not_done(one: &SkippedView) -> Text {
    let way_out = match one.reason {
        SkipReason::Worktree => text!["; run piton in it"],
        SkipReason::GitFolder => text!["; not captured, so only git brings it back"],
        _ if one.was_captured => {
            let rewind = call("rewind").asking("TURN").arg("--path").asking("PATH");
            text!["; ", rewind, " brings back what was there before that turn"]
        }
        _ => Text::default(),
    };
    text![escape_view(&one.path), " (", skipped::word(one.reason), way_out, ")"]
}

/// 1 where not all of it was done, here or in another workspace.
pub fn exit_code(outcome: &OperationOutcome) -> ExitCode {
    if outcome.also.iter().any(|also| also.outcome.is_none()) {
        return ExitCode::from(1);
    }
    let also = outcome.also.iter().filter_map(|also| also.outcome.as_ref());
    let is_damaged = |one: &SkippedView| one.reason == SkipReason::Damaged;
    let is_whole = |outcome: &OperationOutcome| {
        let is_open = outcome.conflicts.iter().any(|conflict| !conflict.decided);
        // What may be the user's own is left on purpose; but where nothing else was there, nothing was done.
        let is_in_vain = outcome.operation.is_none() && (!outcome.unsure.is_empty() || outcome.git_stays.is_some());
        let is_left_outside = outcome.touches_outside && outcome.outside.iter().any(is_left);
        outcome.not_done.is_empty()
            && outcome.unknown.is_empty()
            && !outcome.skipped.iter().any(is_damaged)
            && !is_open
            && !is_in_vain
            && !is_left_outside
    };
    let is_whole = [outcome].into_iter().chain(also).all(is_whole);
    if is_whole { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Says all of it, to a person; the verb is the one that was asked for: `rewind`, `undo` or `redo`.
pub fn say_remarks(console: &mut Console, outcome: &OperationOutcome, names: &Names, verb: &str) {
    if console.is_json() {
        return;
    }
    // It is done, so that the same again would be another act.
    let way = match &outcome.operation {
        Some(done) if done.kind == "redo" => {
            let undo = call("undo").with("--op", done.id.short());
            text![undo, ", then ", call("redo").arg("--outside"), ","]
        }
        _ => text![call("redo"), ", then the same with `--outside`,"],
    };
    console.say_with(|out, look| write_remarks(out, look, outcome, names, verb, &way));
}

/// The command that takes back what was done, files outside the workspace too where it touched any.
pub fn way_back(outcome: &OperationOutcome) -> Call {
    let redo = match &outcome.operation {
        Some(done) if done.kind == "redo" => call("undo").with("--op", done.id.short()),
        _ => call("redo"),
    };
    if outcome.touched_outside { redo.arg("--outside") } else { redo }
}
