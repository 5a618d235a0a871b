//! What a rewind, an undo or a redo would do, file by file, and what it would not do.

mod conflicts;
mod git;
mod outside;
mod running;

use std::collections::HashSet;
use std::path::PathBuf;

use piton_engine::Carry;
use piton_engine::model::OperationVerb;
use piton_engine::model::inverse::Why;
use piton_engine::model::ownership::{self, Candidate, Owner};
use piton_engine::model::short::one_line;
use piton_engine::view::{ChangedFile, CommandView, OutsideAct, OutsideView, PathView, PlanView, UnknownTurn};

use crate::call::{call, flag};
use crate::checkpoints::moment;
use crate::conversation;
use crate::doubt;
use crate::escape::{escape, escape_path, escape_view};
use crate::lines::{LONG_LIST, Lines, Room};
use crate::outcome;
use crate::owners::Names;
use crate::skipped;
use crate::text;
use crate::text::{Style, Text, note, warning};
use crate::titles::Titles;
use crate::words::{self, age, grouped, is_imported, plural, sign};

pub use conflicts::say as say_conflicts;
pub use git::say as say_git;
pub use outside::say as say_outside;
pub use running::{say_at_work, say_interrupted};

/// More commands than this tell nobody more.
const MOST_COMMANDS: usize = 6;
/// As many characters of a target's note are shown.
const NOTE: usize = 120;
/// As many files are named in a question.
const NAMED: usize = 5;

/// What a plan itself does not say.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// How sessions are called.
    pub names: Names,
    /// How operations are called.
    pub titles: Titles,
    /// All of it, or as much as a person reads before answering.
    pub whole: bool,
    /// Whether files in conflict are left as they are, so that the rest is done.
    pub partial: bool,
    /// Whether the session's other workspaces go back too, which are shown by themselves.
    pub all_workspaces: bool,
    /// Whose edits a rewind carries over.
    pub carry: Carry,
}

/// What a plan is about.
pub fn heading(room: &Room, plan: &PlanView, around: &Around) -> Lines {
    let mut out = Lines::default();
    out.say(title(plan, around, room));
    if let Some(annotation) = plan.target.as_ref().and_then(|target| target.annotation.as_deref()) {
        out.say(Text::new(Style::Dim, format!("  {}", one_line(annotation, NOTE))));
    }
    out
}

/// A plan as a person reads it, without the contents of files.
pub fn lines(room: &Room, plan: &PlanView, around: &Around) -> Lines {
    let mut all = heading(room, plan, around);
    let out = &mut all;
    if !plan.paths.is_empty() {
        let paths: Vec<_> = plan.paths.iter().map(escape_view).collect();
        out.say(format!("only {}", paths.join(", ")));
    }
    if plan.missing_folder {
        let is_made = plan.target.is_some() || !plan.is_empty();
        let and = if is_made { " and is made anew" } else { "" };
        out.say(warning(format!("the workspace's folder is gone{and}")));
    }
    if plan.other_folder {
        out.say(warning(match &plan.target {
            Some(target) if is_imported(target.line) => {
                "that checkpoint was imported: it was captured in another folder"
            }
            _ => "that checkpoint was captured in another folder that stood at this path",
        }));
    }
    running::say(out, plan, &around.names);
    say_git(out, plan.git.as_ref(), plan.git_stays.as_deref(), plan.head_moved.as_ref());
    // A branch alone has nothing to say of files.
    if plan.kind != OperationVerb::Branch {
        say_files(out, room, plan, around.whole);
    }
    if let Some(conversation) = &plan.conversation {
        conversation::say_plan(out, room, conversation, &around.names, around.whole);
    }
    if let Some(why) = &plan.conversation_stays {
        conversation::say_stays(out, why);
    }
    say_conflicts(out, room, &plan.conflicts, around.whole);
    if around.whole && !around.partial && plan.open_conflicts().next().is_some() {
        let can_be_decided = plan.open_conflicts().any(|conflict| conflict.why.can_be_decided());
        let goes_along = plan.open_conflicts().any(|conflict| conflict.why == Why::Along);
        conflicts::say_ways(out, can_be_decided, goes_along);
    }
    let shown = if around.whole { usize::MAX } else { room.lines(LONG_LIST / 4) };
    out.list("Left as it is, as you asked:", excepted(&plan.excepted, &plan.in_part), shown);
    let accepted = plan.accepted.iter().map(|path| Text::from(escape_view(path)));
    out.list("Left as it is, because you accepted it:", accepted, shown);
    let along = plan.along.iter().map(|one| {
        let with = Text::new(Style::Dim, format!("(the same file as {})", escape_view(&one.with)));
        text![escape_view(&one.path), " ", with]
    });
    out.list("Also changes, because the file was moved:", along, shown);
    let names = &around.names;
    let with_owner = |file: &ChangedFile| doubt::of_file(file, names, &room.now);
    say_owned(
        out,
        "Left alone, because it may be your own edit or another session's:",
        &plan.unsure,
        shown,
        with_owner,
    );
    if !plan.unsure.is_empty() {
        out.say(text![flag("--unsure"), " takes that back too"].in_style(Style::Dim));
    }
    let heading = "Comes back, though you or another session may have deleted it:";
    say_owned(out, heading, &plan.unsure_back, shown, with_owner);
    let (deleted, overwritten): (Vec<_>, Vec<_>) =
        plan.others.iter().cloned().partition(|file| plan.deleted.contains(&file.path));
    let heading = "These hold edits that are not this session's and would be overwritten:";
    say_owned(out, heading, &overwritten, shown, |file| whose(file, names));
    let heading = "These are not this session's alone and would be deleted:";
    say_owned(out, heading, &deleted, shown, |file| whose(file, names));
    if !plan.others.is_empty() {
        let (mine, all) = (flag("--keep-mine"), flag("--only-session"));
        match (around.carry.has_mine(), around.carry.has_others()) {
            (false, _) => out
                .say(text![mine, " carries your own over, ", all, " those of other sessions too"].in_style(Style::Dim)),
            (true, false) => out.say(text![all, " carries those of other sessions over too"].in_style(Style::Dim)),
            (true, true) => {}
        }
    }
    say_owned(out, "Carried over:", &plan.carried, shown, |file| whose(file, names));
    say_outside(out, &plan.outside, plan.touches_outside, flag("--outside").into());
    say_commands(out, room, &plan.commands, around);
    out.list(warning("not restored:"), plan.not_done.iter().map(outcome::not_done), shown);
    outcome::say_torn(out, &plan.torn);
    say_unknown(out, &plan.unknown);
    let others = skipped::others(&plan.skipped, &plan.not_done);
    let others = skipped::lines(&others, if around.whole { usize::MAX } else { 3 });
    out.list("Not captured, so left alone:", others.into_iter().map(Text::from), usize::MAX);
    if !around.all_workspaces {
        say_other_workspaces(out, plan.kind, &plan.other_workspaces);
    }
    all
}

/// What was taken out of a plan.
pub(crate) fn excepted(whole: &[PathView], in_part: &[PathView]) -> impl ExactSizeIterator<Item = Text> {
    let whole = whole.iter().map(|path| Text::from(escape_view(path)));
    let in_part = in_part.iter().map(|path| Text::from(format!("{} (in part)", escape_view(path))));
    whole.chain(in_part).collect::<Vec<_>>().into_iter()
}

/// `Undo turn 3 “make it blue”`, `Rewind to kmzqwxyl (2 min ago)`, `Redo: takes back the undo of turn 3`.
fn title(plan: &PlanView, around: &Around, room: &Room) -> Text {
    let bold = |words: &str| Text::new(Style::Bold, words);
    let about = plan.about.as_deref().unwrap_or_default();
    match (plan.kind, &plan.target) {
        (OperationVerb::Branch, _) => {
            let (first, rest) = about.split_at(about.chars().next().map_or(0, char::len_utf8));
            bold(&format!("{}{rest}", first.to_uppercase()))
        }
        (OperationVerb::Undo, _) => text![bold("Undo"), " ", about],
        (OperationVerb::Redo, _) => {
            let of = plan.operation.as_ref().and_then(|id| around.titles.get(id));
            let of = of.map_or_else(|| about.to_owned(), |of| format!("the {}", around.titles.plain(of)));
            let later = match plan.also.len() {
                0 => String::new(),
                more => format!(" and {} after it", plural(more as u64, "operation")),
            };
            text![bold("Redo"), ": takes back ", of, later]
        }
        (_, Some(target)) => {
            let age = age(target.created_at, &room.now);
            text![bold("Rewind"), " to ", moment(target, &around.names), " (", age, ")"]
        }
        (verb, None) => bold(verb.as_str()),
    }
}

/// Every path with what becomes of it, and how many there are of each.
fn say_files(out: &mut Lines, room: &Room, plan: &PlanView, is_whole: bool) {
    let open: Vec<&PathView> = plan.open_conflicts().map(|conflict| &conflict.path).collect();
    let merged: HashSet<_> = plan.merged.iter().filter_map(PathView::exact).collect();
    let is_merged = |path: &&PathView| path.exact().is_some_and(|path| merged.contains(&path));
    let (mut together, mut lists) = (Vec::new(), Vec::new());
    for paths in [&plan.restored, &plan.created, &plan.deleted] {
        let (mixed, pure): (Vec<&PathView>, Vec<&PathView>) = paths.iter().partition(is_merged);
        together.extend(mixed);
        lists.push(pure);
    }
    let words = [
        ("~", "restore", "to restore", Style::Warn),
        ("+", "recreate", "to recreate", Style::Good),
        ("-", "delete", "to delete", Style::Bad),
    ];
    let mut lists: Vec<_> = lists.into_iter().zip(words).collect();
    lists.insert(0, (open, ("!", "conflict", "in conflict", Style::Bad)));
    lists.push((together, ("±", "merge", "to merge", Style::Warn)));
    let total = lists.iter().map(|(paths, _)| paths.len()).sum::<usize>();
    let shown = if is_whole { total } else { room.lines(LONG_LIST).min(total) };
    let all = lists.iter().flat_map(|(paths, words)| paths.iter().map(move |path| (path, words)));
    for (path, (sign, word, _, style)) in all.take(shown) {
        out.say(text!["  ", Text::new(*style, format!("{sign} {word:<8} {}", escape_view(path)))]);
    }
    out.rest("  ", total - shown);
    if plan.is_empty() {
        out.say(nothing(plan));
    } else if total > 0 {
        let counts = lists.iter().filter(|(paths, _)| !paths.is_empty());
        let counts = counts.map(|(paths, (.., said, _))| format!("{} {said}", grouped(paths.len() as u64)));
        out.say(counts.collect::<Vec<_>>().join(", "));
    }
}

/// Why a plan has nothing to do.
fn nothing(plan: &PlanView) -> String {
    if !plan.not_done.is_empty() {
        return "  nothing can be done".to_owned();
    }
    // What may be somebody else's is said below.
    if !plan.unsure.is_empty() {
        return "  nothing to do".to_owned();
    }
    let why = match plan.kind == OperationVerb::Rewind {
        // It is said below.
        _ if !plan.carried.is_empty() => "what changed since is carried over",
        // What the target did not capture may be otherwise, or gone: nobody knows.
        true if !plan.skipped.is_empty() => "what was captured is as it was then",
        true => "the files are already like that",
        false => "nothing of it is left",
    };
    format!("  nothing to do: {why}")
}

/// Files with a word on each about who changed it.
pub fn say_owned(
    out: &mut Lines,
    heading: impl Into<Text>,
    files: &[ChangedFile],
    most: usize,
    who: impl Fn(&ChangedFile) -> String,
) {
    let files = files.iter().map(|file| {
        let who = Text::new(Style::Dim, format!("({})", who(file)));
        text![format!("{} {} ", sign(file.kind), escape_view(&file.path)), who]
    });
    out.list(heading, files, most);
}

/// Whose an edit is: `you`, `session kmzq`, `unsure: t3.1 or you`.
pub fn whose(file: &ChangedFile, names: &Names) -> String {
    match &file.owner {
        _ if file.doubt.as_ref().is_some_and(|view| view.doubt.why == ownership::Why::OutOfSight) => {
            "maybe yours: changed while it was not captured".to_owned()
        }
        Owner::Step { step, .. } => format!("session {}", names.session(&step.session)),
        other => names.whole(other),
    }
}

/// What files cannot take back. The newest are the ones that a person remembers, so they are kept where there are many.
fn say_commands(out: &mut Lines, room: &Room, commands: &[CommandView], around: &Around) {
    if commands.is_empty() {
        return;
    }
    let mut commands: Vec<&CommandView> = commands.iter().collect();
    commands.sort_by_key(|command| command.at);
    let shown = if around.whole { commands.len() } else { room.lines(MOST_COMMANDS).min(commands.len()) };
    out.say("Not undone: side effects of these commands outside the workspace's files");
    if shown < commands.len() {
        let earlier = grouped((commands.len() - shown) as u64);
        out.say(text!["  … ", earlier, " earlier; ", flag("--preview"), " shows all"].in_style(Style::Dim));
    }
    for command in &commands[commands.len() - shown..] {
        let mut lines = command.command.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let more = if lines.next().is_some() { " …" } else { "" };
        let step = Text::new(Style::Id, around.names.step(&command.step));
        out.show(text!["  ", step, "  ", format!("{first}{more}")], room.is_short);
    }
}

/// Of which turns not all is known that they changed, so that not all of it is taken back.
pub fn say_unknown(out: &mut Lines, turns: &[UnknownTurn]) {
    for UnknownTurn { turn, why } in turns {
        let why = words::unknown(why, &format!("t{turn}"));
        out.say(warning(text![format!("not all that turn {turn} changed is known: "), why]));
    }
}

/// Where else the session worked.
pub fn say_other_workspaces(out: &mut Lines, verb: OperationVerb, others: &[PathBuf]) {
    if others.is_empty() {
        return;
    }
    let places: Vec<_> = others.iter().map(|path| escape_path(path)).collect();
    let way = match verb {
        OperationVerb::Rewind => text![flag("--all-workspaces"), " rewinds those too"],
        OperationVerb::Undo => text![call("undo").in_asked("DIR"), " is for one of those"],
        _ => text![call("redo").in_asked("DIR"), " is for one of those"],
    };
    out.say(note(text!["this session also worked in ", places.join(", "), "; ", way]));
}

/// `Undo 2 files (a, b)?`, `Rewind 9 files, and overwrite your edits in notes.md?`.
pub fn question(plan: &PlanView) -> String {
    let paths: Vec<&PathView> = plan.restored.iter().chain(&plan.created).chain(&plan.deleted).collect();
    let files = plural(paths.len() as u64, "file");
    let files = match few(&paths) {
        Some(names) => format!("{files} ({names})"),
        None => files,
    };
    let files = match &touched_outside(plan)[..] {
        [] => files,
        elsewhere => format!("{files}, and outside the workspace {}", elsewhere.join(", ")),
    };
    let files = match (&plan.conversation, paths.is_empty()) {
        (Some(_), true) => "the conversation".to_owned(),
        (Some(_), false) => format!("{files} and the conversation"),
        (None, _) => files,
    };
    let others = if plan.others.is_empty() { String::new() } else { format!(", and {}", taking(plan)) };
    match plan.kind {
        OperationVerb::Redo => format!("Take it back in {files}?"),
        OperationVerb::Undo => format!("Undo {files}?"),
        _ => format!("Rewind {files}{others}?"),
    }
}

/// `Also these 2 (a, b), which may be your own?`: what is asked of changes of which nobody knows whose they are.
pub fn also(plan: &PlanView) -> String {
    let paths: Vec<&PathView> = plan.unsure.iter().map(|file| &file.path).collect();
    let these = if paths.len() == 1 { "this one".to_owned() } else { format!("these {}", grouped(paths.len() as u64)) };
    let names = few(&paths).map(|names| format!(" ({names})")).unwrap_or_default();
    let may_be_yours = plan.unsure.iter().any(|file| file.owner.may_be_you());
    let may_be_others = plan.unsure.iter().any(|file| may_be_another_sessions(&file.owner));
    let whose = match (may_be_yours, may_be_others) {
        (false, true) => "another session's",
        (true, true) => "your own or another session's",
        (_, false) => "your own",
    };
    format!("Also {these}{names}, which may be {whose}?")
}

/// Whether sessions beside the one that is meant may have made a change.
fn may_be_another_sessions(owner: &Owner) -> bool {
    match owner {
        Owner::Step { .. } => true,
        Owner::Unsure { candidates } => {
            let session = |candidate: &Candidate| match candidate {
                Candidate::Step(step) => Some(step.session.clone()),
                _ => None,
            };
            candidates.iter().filter_map(session).collect::<HashSet<_>>().len() > 1
        }
        Owner::You | Owner::Operation { .. } => false,
    }
}

/// What a plan changes outside the workspace: each is named, however many they are.
pub fn touched_outside(plan: &PlanView) -> Vec<String> {
    let is_changed = |file: &&OutsideView| !matches!(file.act, OutsideAct::Unknown | OutsideAct::Conflict);
    let files = plan.outside.iter().filter(|_| plan.touches_outside);
    files.filter(is_changed).map(|file| escape(&file.path).into_owned()).collect()
}

/// What a plan takes from others: `overwrite your edits in notes.md and delete your own new.md`.
pub fn taking(plan: &PlanView) -> String {
    let (deleted, overwritten): (Vec<_>, Vec<_>) =
        plan.others.iter().partition(|file| plan.deleted.contains(&file.path));
    let place = |files: &[&ChangedFile]| {
        let paths: Vec<&PathView> = files.iter().map(|file| &file.path).collect();
        few(&paths).unwrap_or_else(|| plural(paths.len() as u64, "file"))
    };
    let mut acts = Vec::new();
    if !overwritten.is_empty() {
        let whose = match &overwritten[..] {
            all if all.iter().all(|file| file.owner == Owner::You) => "your edits",
            all if all.iter().all(|file| file.owner.may_be_you()) => "what may be your edits",
            all if all.iter().all(|file| matches!(file.owner, Owner::Step { .. })) => "another session's edits",
            _ => "edits that are not this session's",
        };
        acts.push(format!("overwrite {whose} in {}", place(&overwritten)));
    }
    if !deleted.is_empty() {
        let place = place(&deleted);
        acts.push(match &deleted[..] {
            all if all.iter().all(|file| file.owner == Owner::You) => format!("delete your own {place}"),
            all if all.iter().all(|file| matches!(file.owner, Owner::Step { .. })) => {
                format!("delete another session's {place}")
            }
            _ => format!("delete {place}, not only this session's"),
        });
    }
    acts.join(" and ")
}

/// The names of some files, where they are few.
fn few(paths: &[&PathView]) -> Option<String> {
    let names = || paths.iter().map(|path| escape_view(path)).collect::<Vec<_>>().join(", ");
    (paths.len() <= NAMED).then(names)
}
