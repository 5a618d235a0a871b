//! The page of one turn, or of one step of it.

use std::io::{self, Write};

use piton_engine::view::{ChangedFile, SessionView, StepView, TurnDiff, TurnShown};
use piton_wording::escape::{escape, escape_view};
use piton_wording::owners::Names;
use piton_wording::{Style, Text, Titles, call, owners, text, timeline, turns, words};

use crate::console::Look;
use crate::prose::wrapped;
use crate::table::ShownText;
use crate::{files, patch};

/// What is shown beneath the list of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    Whole,
    Counted,
}

/// The width of the words at the left.
const WORDS: usize = 14;
/// As much of an agent's last words is shown on a terminal, in lines.
const ANSWER: usize = 6;

/// Writes all of it.
pub fn write(
    out: &mut dyn Write,
    look: &Look,
    shown: &TurnShown,
    titles: &Titles,
    sessions: &[SessionView],
    contents: Contents,
) -> io::Result<()> {
    let names = Names::of(sessions);
    let page = Page { look, shown, titles, names: &names };
    page.head(out, sessions)?;
    match shown.step {
        Some(number) => page.step(out, number)?,
        None => page.steps(out)?,
    }
    page.files(out)?;
    if shown.diffs.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    if contents == Contents::Counted {
        return crate::commands::diff::write_stat(out, look, &shown.diff());
    }
    let sure = |diff: &&TurnDiff| !diff.unsure;
    shown.diffs.iter().filter(sure).try_for_each(|diff| patch::write(out, look, &diff.file))?;
    let unsure: Vec<_> = shown.diffs.iter().filter(|diff| diff.unsure).collect();
    if !unsure.is_empty() {
        writeln!(out, "\n{}", look.paint.warn("Not sure whose:"))?;
    }
    unsure.iter().try_for_each(|diff| patch::write(out, look, &diff.file))
}

struct Page<'a> {
    look: &'a Look,
    shown: &'a TurnShown,
    titles: &'a Titles,
    names: &'a Names,
}

impl Page<'_> {
    fn line(&self, out: &mut dyn Write, word: &str, text: impl Into<Text>) -> io::Result<()> {
        let word = self.look.paint.dim(format!("{word:<WORDS$}"));
        writeln!(out, "{word}{}", self.look.text(text))
    }

    /// What was asked, when and of whom, and how it stands.
    fn head(&self, out: &mut dyn Write, sessions: &[SessionView]) -> io::Result<()> {
        let (shown, turn) = (self.shown, &self.shown.turn);
        let agent = sessions.iter().find(|session| session.id == turn.session).map(|session| session.agent.as_str());
        let target = self.names.target(&turn.session, turn.number, shown.step);
        let session = format!(" of {} {}", agent.unwrap_or("session"), turn.session.short());
        let what = match shown.step {
            Some(step) => format!("step {step} of turn {}", turn.number),
            None => format!("turn {}", turn.number),
        };
        let title = text![Text::new(Style::Id, target), "  ", Text::new(Style::Bold, what), session];
        writeln!(out, "{}", self.look.text(title))?;
        if shown.step.is_none() {
            self.prompt(out)?;
        }
        let at = turn.steps.iter().find(|step| Some(step.number) == shown.step).map_or(turn.at, |step| step.at);
        let when = self.look.surface.time(at);
        let age = words::age(at, &self.look.now);
        let age = if when.starts_with(&age) { String::new() } else { format!(" ({age})") };
        let took = turn.ended_at.filter(|_| shown.step.is_none()).map(|end| words::lasted(end.0 - at.0));
        self.line(out, "when", format!("{when}{age}{}", took.map(|took| format!(", {took}")).unwrap_or_default()))?;
        let standing = turns::standing(shown, self.titles);
        if !standing.is_empty() {
            self.line(out, "state", standing)?;
        }
        if let Some(before) = &shown.before {
            if let Some(name) = &before.name {
                self.line(out, "name", Text::new(Style::Bold, name))?;
            }
            for (at, line) in self.wrapped(before.annotation.as_deref().unwrap_or_default()).iter().enumerate() {
                let word = if at == 0 { "annotation" } else { "" };
                writeln!(out, "{}{line}", self.look.paint.dim(format!("{word:<WORDS$}")))?;
            }
            let id = Text::new(Style::Id, before.id.short());
            let back = call("rewind").arg(self.names.target(&turn.session, turn.number, shown.step));
            self.line(out, "before it", text![id, "; ", back, " goes back there"])?;
        }
        for gap in turn.gaps.iter().filter(|gap| shown.step.is_none() || gap.step == shown.step) {
            self.line(out, "gap", Text::new(Style::Warn, owners::gap(gap, &turn.steps)))?;
        }
        if let Some(why) = turn.unknown.as_ref().filter(|_| turn.gaps.is_empty()) {
            self.line(out, "not known", words::unknown(why, &self.names.target(&turn.session, turn.number, None)))?;
        }
        let answer = self.wrapped(turn.message.as_deref().filter(|_| shown.step.is_none()).unwrap_or_default());
        let few = self.look.lines(ANSWER).min(answer.len());
        for (at, line) in answer[..few].iter().enumerate() {
            let word = if at == 0 { "answer" } else { "" };
            let more = if at + 1 == few && few < answer.len() { " …" } else { "" };
            writeln!(out, "{}{line}{more}", self.look.paint.dim(format!("{word:<WORDS$}")))?;
        }
        Ok(())
    }

    /// All of the prompt.
    fn prompt(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(prompt) = self.shown.turn.prompt.as_deref().filter(|prompt| !prompt.trim().is_empty()) else {
            return writeln!(out, "  {}", self.look.text(turns::prompt(self.shown.turn.prompt.as_deref())));
        };
        let width = self.look.width.saturating_sub(4).max(WORDS);
        wrapped(prompt, width).iter().try_for_each(|line| writeln!(out, "{}", format!("  {line}").trim_end()))
    }

    fn wrapped(&self, text: &str) -> Vec<String> {
        wrapped(text, self.look.width.saturating_sub(WORDS + 2).max(WORDS))
    }

    fn steps(&self, out: &mut dyn Write) -> io::Result<()> {
        let turn = &self.shown.turn;
        let targets: Vec<String> =
            turn.steps.iter().map(|step| self.names.target(&turn.session, turn.number, Some(step.number))).collect();
        let width = targets.iter().map(String::len).max().unwrap_or(0);
        for (at, (step, target)) in turn.steps.iter().zip(&targets).enumerate() {
            let word = if at == 0 { "steps" } else { "" };
            let signs = timeline::signs(Some(step.changes), turn.unknown.is_some());
            let remark = turns::step_remark(step, self.shown.running);
            let ends = signs.width() + if remark.is_empty() { 0 } else { remark.width() + 2 };
            let room = self.look.width.saturating_sub(WORDS + width + 2 + ends + 2).max(WORDS);
            let room = if self.look.terminal { room } else { usize::MAX };
            let summary = Text::new(Style::Plain, &step.summary).cut(self.look, room).painted;
            let mut line =
                format!("{}  {summary}  {}", self.look.paint.id(format!("{target:<width$}")), self.look.text(signs));
            if !remark.is_empty() {
                line += &format!("  {}", self.look.text(remark));
            }
            writeln!(out, "{}{line}", self.look.paint.dim(format!("{word:<WORDS$}")))?;
        }
        Ok(())
    }

    fn step(&self, out: &mut dyn Write, number: u32) -> io::Result<()> {
        let step: Option<&StepView> = self.shown.turn.steps.iter().find(|step| step.number == number);
        let Some(step) = step else { return Ok(()) };
        self.line(out, "tool", step.tool.as_str())?;
        let command = step.command.as_deref().unwrap_or_default();
        if command.is_empty() {
            return self.line(out, "did", step.summary.as_str());
        }
        for (at, line) in self.wrapped(command).iter().enumerate() {
            let word = if at == 0 { "command" } else { "" };
            writeln!(out, "{}{line}", self.look.paint.dim(format!("{word:<WORDS$}")))?;
        }
        Ok(())
    }

    /// What changed, and whose it is.
    fn files(&self, out: &mut dyn Write) -> io::Result<()> {
        let (shown, turn) = (self.shown, &self.shown.turn);
        let sure = shown.diff().changes;
        let unsure = shown.diffs.iter().filter(|diff| diff.unsure).count() as u64;
        let text = match (sure.is_empty(), turn.unknown.is_some()) {
            (true, true) => Text::new(Style::Warn, "not known"),
            (true, false) => Text::new(Style::Plain, "nothing"),
            _ => Text::new(Style::Plain, words::changes(&sure)),
        };
        let text = if unsure > 0 { text.and(Style::Warn, format!("; {unsure} unsure")) } else { text };
        self.line(out, "changed", text)?;
        let few = self.look.lines(files::ON_A_TERMINAL).min(shown.diffs.len());
        for diff in &shown.diffs[..few] {
            let evidence = match diff.unsure {
                true => format!("unsure: {}", self.names.evidence(&diff.owner, &[])),
                false => self.names.evidence(&diff.owner, &[]),
            };
            let back = if diff.undone { "taken back" } else { "" };
            let remarks = [evidence.as_str(), back].into_iter().filter(|remark| !remark.is_empty());
            let remarks = remarks.collect::<Vec<_>>().join(", ");
            files::write_line(out, self.look, "  ", &diff.file.change, &remarks)?;
        }
        files::write_rest(out, self.look, "  ", shown.diffs.len() - few)?;
        if shown.step.is_none() && !turn.yours.is_empty() {
            let yours = words::plural(turn.yours.len() as u64, "file");
            self.line(out, "you", format!("{yours}, before it and while it ran; not part of the turn"))?;
            let few = self.look.lines(files::ON_A_TERMINAL).min(turn.yours.len());
            let write = |file: &ChangedFile| {
                let text = format!("{} {}", words::sign(file.kind), escape_view(&file.path));
                writeln!(out, "  {}", escape(&text))
            };
            turn.yours[..few].iter().try_for_each(write)?;
            files::write_rest(out, self.look, "  ", turn.yours.len() - few)?;
        }
        Ok(())
    }
}
