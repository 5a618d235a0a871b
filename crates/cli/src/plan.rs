//! Showing what a rewind, an undo or a redo would do, file by file, and what it would not do.

mod conflicts;
mod git;
mod outside;
mod running;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;

use piton_engine::model::Cause;
use piton_engine::model::ownership::Owner;
use piton_engine::view::{ChangedFile, CheckpointView, CommandView, Diff, PathView, PlanView, UnknownTurn};
use piton_wording::escape::{escape, escape_path, escape_view};
use piton_wording::owners::Names;
use piton_wording::words::{age, grouped, is_imported, label};
use piton_wording::{Titles, call, note, skipped, text, warning, words};

use crate::columns::fit;
use crate::console::Look;
use crate::conversation;
use crate::files::{ON_A_TERMINAL, sign, write_rest};
use crate::outcome;
use crate::patch;

pub use conflicts::write as write_conflicts;
pub use git::write as write_git;
pub use outside::write as write_outside;
pub use running::write_interrupted;

/// More commands than this tell nobody more.
const MOST_COMMANDS: usize = 6;

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
    /// The contents of what would change, where they are asked for.
    pub diff: Option<Diff>,
}

/// Writes a plan.
pub fn write(out: &mut dyn Write, look: &Look, plan: &PlanView, around: &Around) -> io::Result<()> {
    let paint = look.paint;
    write_title(out, look, plan, around)?;
    if !plan.paths.is_empty() {
        let paths: Vec<_> = plan.paths.iter().map(escape_view).collect();
        writeln!(out, "only {}", paths.join(", "))?;
    }
    if plan.missing_folder {
        let is_made = plan.target.is_some() || !plan.is_empty();
        let and = if is_made { " and is made anew" } else { "" };
        writeln!(out, "{} the workspace's folder is gone{and}", paint.warn("warning:"))?;
    }
    if plan.other_folder {
        let text = match &plan.target {
            Some(target) if is_imported(target.line) => {
                "that checkpoint was imported: it was captured in another folder"
            }
            _ => "that checkpoint was captured in another folder that stood at this path",
        };
        writeln!(out, "{} {text}", paint.warn("warning:"))?;
    }
    running::write(out, look, plan, &around.names)?;
    let git = (plan.git.as_ref(), plan.git_stays.as_deref());
    write_git(out, look, git.0, git.1, plan.head_moved.as_ref())?;
    // A branch alone has nothing to say of files.
    if plan.kind != "branch" {
        write_files(out, look, plan, around.whole)?;
    }
    if let Some(conversation) = &plan.conversation {
        conversation::write_plan(out, look, conversation, &around.names, around.whole)?;
    }
    if let Some(why) = &plan.conversation_stays {
        conversation::write_stays(out, look, why)?;
    }
    conflicts::write(out, look, &plan.conflicts, around.whole)?;
    if around.whole && !around.partial && plan.open_conflicts().next().is_some() {
        let can_be_decided = plan.open_conflicts().any(|conflict| conflict.why.can_be_decided());
        writeln!(out, "{}", if can_be_decided { conflicts::WAYS } else { conflicts::ONLY_PARTIAL })?;
    }
    let shown = if around.whole { usize::MAX } else { look.lines(ON_A_TERMINAL / 4) };
    if !plan.along.is_empty() {
        writeln!(out, "Goes along, because it was moved:")?;
        for one in plan.along.iter().take(shown) {
            let with = paint.dim(format!("(the same file as {})", escape_view(&one.with)));
            writeln!(out, "  {} {with}", escape_view(&one.path))?;
        }
        write_rest(out, look, "  ", plan.along.len().saturating_sub(shown))?;
    }
    let with_owner = |file: &ChangedFile| around.names.evidence(&file.owner, &[]);
    write_owned(out, look, "Left alone, because it may be somebody else's:", &plan.unsure, shown, with_owner)?;
    if !plan.unsure.is_empty() {
        writeln!(out, "{}", paint.dim("`--unsure` takes that back too"))?;
    }
    let heading = "Comes back, though its deletion may be somebody else's:";
    write_owned(out, look, heading, &plan.unsure_back, shown, with_owner)?;
    let heading = "These hold edits that are not this session's and would be overwritten:";
    write_owned(out, look, heading, &plan.others, shown, |file| whose(file, &around.names))?;
    if !plan.others.is_empty() {
        let ways = "`--keep-mine` carries your own over, `--only-session` those of other sessions too";
        writeln!(out, "{}", paint.dim(ways))?;
    }
    write_owned(out, look, "Carried over:", &plan.carried, shown, |file| whose(file, &around.names))?;
    write_outside(out, look, &plan.outside, plan.touches_outside, &"`--outside`".into())?;
    write_commands(out, look, &plan.commands, around)?;
    if !plan.not_done.is_empty() {
        writeln!(out, "{} not restored:", paint.warn("warning:"))?;
        let shown = shown.min(plan.not_done.len());
        plan.not_done[..shown].iter().try_for_each(|one| writeln!(out, "  {}", look.text(outcome::not_done(one))))?;
        write_rest(out, look, "  ", plan.not_done.len() - shown)?;
    }
    write_unknown(out, look, &plan.unknown)?;
    let others = skipped::others(&plan.skipped, &plan.not_done);
    if !others.is_empty() {
        writeln!(out, "Left alone, because not captured:")?;
        for line in skipped::lines(&others, if around.whole { usize::MAX } else { 3 }) {
            writeln!(out, "  {line}")?;
        }
    }
    if !around.all_workspaces {
        write_other_workspaces(out, look, &plan.kind, &plan.other_workspaces)?;
    }
    around.diff.iter().flat_map(|diff| &diff.files).try_for_each(|file| patch::write(out, look, file))
}

/// `Undo turn 3 “make it blue”`, `Rewind to kmzqwxyl (2 min ago)`, `Redo: takes back the undo of turn 3`.
fn write_title(out: &mut dyn Write, look: &Look, plan: &PlanView, around: &Around) -> io::Result<()> {
    let paint = look.paint;
    let about = plan.about.as_deref().unwrap_or_default();
    match (plan.kind.as_str(), &plan.target) {
        ("branch", _) => {
            let (first, rest) = about.split_at(about.chars().next().map_or(0, char::len_utf8));
            writeln!(out, "{}", paint.bold(format!("{}{}", first.to_uppercase(), escape(rest))))
        }
        ("undo", _) => writeln!(out, "{} {}", paint.bold("Undo"), escape(about)),
        ("redo", _) => {
            let of = plan.operation.as_ref().and_then(|id| around.titles.get(id));
            let of = of.map_or_else(|| about.to_owned(), |of| format!("the {}", around.titles.plain(of)));
            writeln!(out, "{}: takes back {}", paint.bold("Redo"), escape(&of))
        }
        (_, Some(target)) => {
            let (id, age) = (look.text(label(target)), age(target.created_at, &look.now));
            match place(target, &around.names) {
                Some(place) => writeln!(out, "{} to just before {place} ({id}, {age})", paint.bold("Rewind")),
                None => writeln!(out, "{} to {id} ({age})", paint.bold("Rewind")),
            }
        }
        (kind, None) => writeln!(out, "{}", paint.bold(escape(kind))),
    }
}

/// The turn or step that a checkpoint was made for.
fn place(checkpoint: &CheckpointView, names: &Names) -> Option<String> {
    let place = checkpoint.place.as_ref().filter(|place| place.turn > 0)?;
    let is_before = matches!(checkpoint.cause, Cause::Prompt | Cause::BeforeTool);
    is_before.then(|| names.target(&place.session, place.turn, place.step))
}

/// Every path with what becomes of it, and how many there are of each.
fn write_files(out: &mut dyn Write, look: &Look, plan: &PlanView, is_whole: bool) -> io::Result<()> {
    let paint = look.paint;
    let open: Vec<&PathView> = plan.open_conflicts().map(|conflict| &conflict.path).collect();
    let merged: HashSet<_> = plan.merged.iter().filter_map(PathView::exact).collect();
    let is_merged = |path: &&PathView| path.exact().is_some_and(|path| merged.contains(&path));
    let (mut together, mut lists) = (Vec::new(), Vec::new());
    for paths in [&plan.restored, &plan.created, &plan.deleted] {
        let (mixed, pure): (Vec<&PathView>, Vec<&PathView>) = paths.iter().partition(is_merged);
        together.extend(mixed);
        lists.push(pure);
    }
    let words = [("~", "restore", "to restore"), ("+", "recreate", "to recreate"), ("-", "delete", "to delete")];
    let mut lists: Vec<_> = lists.into_iter().zip(words).collect();
    lists.insert(0, (open, ("!", "conflict", "in conflict")));
    lists.push((together, ("±", "merge", "to merge")));
    let total = lists.iter().map(|(paths, _)| paths.len()).sum::<usize>();
    let shown = if is_whole { total } else { look.lines(ON_A_TERMINAL).min(total) };
    let all = lists.iter().flat_map(|(paths, words)| paths.iter().map(move |path| (path, words)));
    for (path, (sign, word, _)) in all.take(shown) {
        let line = format!("{sign} {word:<8} {}", escape_view(path));
        let painted = match *sign {
            "~" | "±" => paint.warn(line),
            "+" => paint.good(line),
            _ => paint.bad(line),
        };
        writeln!(out, "  {painted}")?;
    }
    write_rest(out, look, "  ", total - shown)?;
    if plan.is_empty() {
        if !plan.not_done.is_empty() {
            return writeln!(out, "  nothing can be done");
        }
        let why = match plan.kind == "rewind" {
            // It is said below.
            _ if !plan.carried.is_empty() => "what changed since is carried over",
            // What the target did not capture may be otherwise, or gone: nobody knows.
            true if !plan.skipped.is_empty() => "what was captured is as it was then",
            true => "the files are like that already",
            false => "nothing of it is left",
        };
        // What may be somebody else's is said below.
        return writeln!(
            out,
            "  nothing to do{}",
            if plan.unsure.is_empty() { format!(": {why}") } else { String::new() }
        );
    }
    if total == 0 {
        return Ok(());
    }
    let counts = lists.iter().filter(|(paths, _)| !paths.is_empty());
    let counts: Vec<_> = counts.map(|(paths, (.., said))| format!("{} {said}", grouped(paths.len() as u64))).collect();
    writeln!(out, "{}", counts.join(", "))
}

/// Files with a word on each about who changed it.
pub fn write_owned(
    out: &mut dyn Write,
    look: &Look,
    heading: &str,
    files: &[ChangedFile],
    most: usize,
    who: impl Fn(&ChangedFile) -> String,
) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    writeln!(out, "{heading}")?;
    for file in files.iter().take(most) {
        let who = look.paint.dim(format!("({})", who(file)));
        writeln!(out, "  {} {} {who}", sign(file.kind), escape_view(&file.path))?;
    }
    write_rest(out, look, "  ", files.len().saturating_sub(most))
}

/// Whose an edit is: `you`, `session kmzq`, `unsure: t3.1 or you`.
pub fn whose(file: &ChangedFile, names: &Names) -> String {
    match &file.owner {
        Owner::Step { step, .. } => format!("session {}", names.session(&step.session)),
        other => names.whole(other),
    }
}

/// What files cannot take back. The newest are the ones that a person remembers, so they are kept where there are many.
fn write_commands(out: &mut dyn Write, look: &Look, commands: &[CommandView], around: &Around) -> io::Result<()> {
    if commands.is_empty() {
        return Ok(());
    }
    let mut commands: Vec<&CommandView> = commands.iter().collect();
    commands.sort_by_key(|command| command.at);
    let shown = if around.whole { commands.len() } else { look.lines(MOST_COMMANDS).min(commands.len()) };
    writeln!(out, "Not undone: what these commands did beside files (processes, databases, pushes)")?;
    if shown < commands.len() {
        let earlier = grouped((commands.len() - shown) as u64);
        writeln!(out, "  {}", look.paint.dim(format!("… {earlier} earlier; `--preview` shows all")))?;
    }
    for command in &commands[commands.len() - shown..] {
        let step = around.names.step(&command.step);
        let mut lines = command.command.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let more = if lines.next().is_some() { " …" } else { "" };
        let room = if look.terminal { look.width.saturating_sub(step.len() + 6).max(20) } else { usize::MAX };
        let (text, _) = fit(&format!("{first}{more}"), room);
        writeln!(out, "  {}  {text}", look.paint.id(step))?;
    }
    Ok(())
}

/// Says of which turns not all is known that they changed, so that not all of it is taken back.
pub fn write_unknown(out: &mut dyn Write, look: &Look, turns: &[UnknownTurn]) -> io::Result<()> {
    for UnknownTurn { turn, why } in turns {
        let why = words::unknown(why, &format!("t{turn}"));
        let text = text!["not all that turn ", turn.to_string(), " changed is known: ", why];
        writeln!(out, "{}", look.text(warning(text)))?;
    }
    Ok(())
}

/// Says where else the session worked.
pub fn write_other_workspaces(out: &mut dyn Write, look: &Look, kind: &str, others: &[PathBuf]) -> io::Result<()> {
    if others.is_empty() {
        return Ok(());
    }
    let places: Vec<_> = others.iter().map(|path| escape_path(path)).collect();
    let way = match kind {
        "rewind" => text!["`--all-workspaces` rewinds those too"],
        "undo" => text![call("undo").in_asked("DIR"), " is for one of those"],
        _ => text![call("redo").in_asked("DIR"), " is for one of those"],
    };
    let text = text!["this session also worked in ", places.join(", "), "; ", way];
    writeln!(out, "{}", look.text(note(text)))
}
