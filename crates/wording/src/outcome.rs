//! What an operation did, and what it left.

use std::collections::HashSet;
use std::path::Path;

use piton_engine::model::{OperationVerb, SkipReason};
use piton_engine::view::{LeftoverView, OperationOutcome, OutsideAct, OutsideView, PathView, SkippedView, TornView};

use crate::call::{Call, call, flag};
use crate::conversation;
use crate::doubt;
use crate::escape::{escape, escape_view};
use crate::lines::{LONG_LIST, Lines, Room};
use crate::owners::Names;
use crate::plan::{
    excepted, say_at_work, say_git, say_interrupted, say_other_workspaces, say_outside, say_owned, say_unknown, whose,
};
use crate::skipped;
use crate::text;
use crate::text::{Style, Text, note, warning};
use crate::words::{grouped, plural};

/// What an operation did, in one line: `2 restored, 1 recreated, 3 deleted, 1 merged; verified`.
pub fn summary(outcome: &OperationOutcome) -> Text {
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
        0 if !outcome.unknown.is_empty() => Text::new(Style::Warn, "not all of it is known"),
        _ if !outcome.changed_again.is_empty() => Text::new(Style::Warn, "changed again since"),
        0 => Text::new(Style::Good, "verified"),
        left => Text::new(Style::Warn, format!("{} not restored", plural(left as u64, "path"))),
    };
    text![said.join(", "), "; ", end]
}

/// As many files as an operation's result names; more are counted, and `show` lists them.
const NAMED: usize = 10;

/// The files that an operation changed, each with a sign for what became of it; nothing where they are too many.
pub fn changed_files(outcome: &OperationOutcome) -> Lines {
    let merged: HashSet<_> = outcome.merged.iter().filter_map(PathView::exact).collect();
    let is_merged = |path: &PathView| path.exact().is_some_and(|path| merged.contains(&path));
    let lists = [(&outcome.restored, "~"), (&outcome.created, "+"), (&outcome.deleted, "-")];
    let all: usize = lists.iter().map(|(paths, _)| paths.len()).sum();
    let mut out = Lines::default();
    if all > NAMED {
        return out;
    }
    for (paths, sign) in lists {
        for path in paths {
            let sign = if is_merged(path) { "±" } else { sign };
            out.say(text!["  ", sign, " ", escape_view(path)]);
        }
    }
    out
}

/// Why nothing was done.
pub fn nothing(outcome: &OperationOutcome, otherwise: &str) -> String {
    if outcome.conflicts.iter().any(|conflict| !conflict.decided) {
        return "nothing was done: everything is in conflict".to_owned();
    }
    if !outcome.conflicts.is_empty() {
        return "nothing to do: you chose to keep what is there now".to_owned();
    }
    if !outcome.excepted.is_empty() {
        return "nothing to do: you chose to leave all of it as it is".to_owned();
    }
    if !outcome.not_done.is_empty() && outcome.not_done.iter().all(|one| one.was_captured) {
        return "nothing was done: what is there now is left out by a rule, so only a rewind brings back what was there"
            .to_owned();
    }
    if !outcome.not_done.is_empty() {
        return "nothing was done: what is left cannot be restored".to_owned();
    }
    if !outcome.unsure.is_empty() {
        return "nothing was done: what is left may be your own edits or another session's".to_owned();
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

/// What else there is to know of what was done, by the verb that was asked for: `rewind`, `undo` or `redo`. `here` is the folder
/// that whoever reads it stands in.
pub fn remarks(
    room: &Room,
    outcome: &OperationOutcome,
    names: &Names,
    verb: OperationVerb,
    here: Option<&Path>,
) -> Lines {
    let mut all = Lines::default();
    let out = &mut all;
    if let Some(conversation) = &outcome.conversation {
        conversation::say_outcome(out, conversation, names, here);
    }
    if let (Some(why), Some(_)) = (&outcome.conversation_stays, &outcome.operation) {
        conversation::say_stays(out, why);
    }
    say_interrupted(out, &outcome.interrupted, names);
    say_at_work(out, &outcome.running, names);
    say_git(out, outcome.git.as_ref(), outcome.git_stays.as_deref(), outcome.head_moved.as_ref());
    if outcome.also.is_empty() {
        say_other_workspaces(out, verb, &outcome.other_workspaces);
    }
    let list = |out: &mut Lines, heading: Text, items: Vec<Text>| {
        out.list(note(text![heading, ":"]), items.into_iter(), room.lines(LONG_LIST));
    };
    let paths = |paths: &[PathView]| paths.iter().map(|path| escape_view(path).into()).collect::<Vec<Text>>();
    let changed_again = "changed by another program right after they were put in place";
    list(out, changed_again.into(), paths(&outcome.changed_again));
    let before = outcome.operation.as_ref().map(|operation| Text::new(Style::Id, operation.before.short()));
    let place = before.map(|id| text![" in ", id]).unwrap_or_default();
    let rescued = text!["written by another program at the last moment; kept", place.clone()];
    list(out, rescued, paths(&outcome.rescued));
    let came_since = "created or changed after the plan was shown; left as they are";
    list(out, came_since.into(), paths(&outcome.came_since));
    let deleted_new = match outcome.deleted_new.len() {
        1 => "never captured before it was deleted; its content is",
        _ => "never captured before they were deleted; their contents are",
    };
    list(out, text![deleted_new, " kept", place.clone()], paths(&outcome.deleted_new));
    let leftovers = "done, but some of piton's temporary copies could not be removed";
    list(out, leftovers.into(), outcome.leftovers.iter().map(|left| leftover(left).into()).collect());
    list(out, "left as it is, as you asked".into(), excepted(&outcome.excepted, &outcome.in_part).collect());
    list(out, "left as it is, because you accepted it".into(), paths(&outcome.accepted));
    let open = outcome.conflicts.iter().filter(|conflict| !conflict.decided);
    let open = open.map(|conflict| text![escape_view(&conflict.path), ": ", conflict.why.describe()]);
    list(out, "left as they are because of conflicts".into(), open.collect());
    let (refused, unknown): (Vec<_>, Vec<_>) =
        outcome.not_done.iter().partition(|one| one.reason == SkipReason::Refused);
    list(out, "not restored".into(), unknown.into_iter().map(not_done).collect());
    say_torn(out, &outcome.torn);
    let refused = refused.into_iter().map(|one| escape_view(&one.path).into()).collect();
    list(out, "not restored, or with other permission bits, because the system refused it".into(), refused);
    say_unknown(out, &outcome.unknown);
    let along = outcome.along.iter().filter(|_| outcome.operation.is_some());
    let along = along
        .map(|one| Text::from(format!("{} (the same file as {})", escape_view(&one.path), escape_view(&one.with))));
    list(out, "also changed, because the file was moved".into(), along.collect());
    let shown = room.lines(LONG_LIST / 4);
    let heading = note("left alone, because it may be your own edit or another session's:");
    say_owned(out, heading, &outcome.unsure, shown, |file| doubt::of_file(file, names, &room.now));
    if !outcome.unsure.is_empty() {
        out.say(text![flag("--unsure"), " takes that back too"].in_style(Style::Dim));
    }
    let heading = note("came back, though you or another session may have deleted it:");
    say_owned(out, heading, &outcome.unsure_back, shown, |file| doubt::of_file(file, names, &room.now));
    // Where nothing was done for conflicts, nothing was carried anywhere.
    let is_open = outcome.conflicts.iter().any(|conflict| !conflict.decided);
    if outcome.operation.is_some() || outcome.already || !is_open {
        say_owned(out, note("carried over:"), &outcome.carried, shown, |file| whose(file, names));
    }
    say_outside(out, &outcome.outside, outcome.touched_outside, way_outside(outcome));
    if outcome.operation.is_some() && !outcome.commands.is_empty() {
        let ran = plural(outcome.commands.len() as u64, "command");
        out.say(note(format!("not undone: side effects of {ran} outside the workspace's files")));
    }
    let others = skipped::others(&outcome.skipped, &outcome.not_done);
    if !others.is_empty() {
        let text = format!("not captured, so left alone: {}", skipped::summary(&others));
        out.say(Text::new(Style::Dim, text));
    }
    all
}

/// How to have files outside the workspace put back too. It is done, so that the same again would be another act.
fn way_outside(outcome: &OperationOutcome) -> Text {
    match &outcome.operation {
        Some(done) if done.kind == OperationVerb::Redo => {
            let undo = call("undo").with("--op", done.id.short());
            text![undo, ", then ", call("redo").arg("--outside"), ","]
        }
        _ => text![call("redo"), ", then the same with ", flag("--outside"), ","],
    }
}

/// `.piton-kmzqwxyl-0/f: Operation not permitted`.
pub fn leftover(left: &LeftoverView) -> String {
    format!("{}: {}", escape_view(&left.path), escape(&left.why))
}

/// That a repository is in two places, and how to bring it together.
pub fn say_torn(out: &mut Lines, torn: &[TornView]) {
    for TornView { from, to } in torn {
        let (from, to) = (format!("{}/.git", escape_view(from)), escape_view(to));
        let stays = format!("{from} stays where it is, since piton never writes git's own folders");
        out.say(warning(format!("{stays}; its files go to {to}, and moving {from} there too makes it whole")));
    }
}

/// `src/a.rs (unreadable)`.
pub fn not_done(one: &SkippedView) -> Text {
    let way_out = match one.reason {
        SkipReason::Worktree => text!["; run piton in it"],
        SkipReason::GitFolder => text!["; piton neither captures nor writes it"],
        _ if one.was_captured => {
            let rewind = call("rewind").asking("TURN").arg("--path").asking("PATH");
            text!["; ", rewind, " brings back what was there before that turn"]
        }
        _ => Text::default(),
    };
    text![escape_view(&one.path), " (", skipped::word(one.reason), way_out, ")"]
}

/// Whether all of it was done, here and in other workspaces.
pub fn is_whole(outcome: &OperationOutcome) -> bool {
    if outcome.also.iter().any(|also| also.outcome.is_none()) {
        return false;
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
    [outcome].into_iter().chain(also).all(is_whole)
}

/// The command that takes back what was done, files outside the workspace too where it touched any.
pub fn way_back(outcome: &OperationOutcome) -> Call {
    let redo = match &outcome.operation {
        Some(done) if done.kind == OperationVerb::Redo => call("undo").with("--op", done.id.short()),
        _ => call("redo"),
    };
    if outcome.touched_outside { redo.arg("--outside") } else { redo }
}
