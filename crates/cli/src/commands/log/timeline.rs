//! The timeline as a person reads it: a line for each turn, and beneath it what else there is to say of it.
//!
//! Every line has the same columns, beneath a turn as well: what to type to mean that moment, when it was, what it was,
//! what it changed. On a narrow terminal ages are short and the session's column goes; texts are cut, never a target.

use std::io::{self, Write};

use piton_engine::model::ownership::Owner;
use piton_engine::model::short::one_line;
use piton_engine::model::{ChangeKind, Counts, OperationVerb, SessionId, Timestamp};
use piton_engine::view::{
    ChangedFile, CheckpointView, LogEntry, OperationStatus, OperationView, SessionView, StepView, Timeline, TurnView,
    Unknown,
};
use piton_wording::escape::{escape, escape_view};
use piton_wording::owners::Names;
use piton_wording::{Style, Text, Titles, owners, turns, words};

use crate::console::Look;
use crate::table::{Cell, ShownText, line, widest};

/// What is shown beneath each turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// Its tool calls.
    pub steps: bool,
    /// Every changed path, with its owner.
    pub files: bool,
}

/// What the timeline itself does not say.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// How sessions are called.
    pub names: Names,
    /// Every session.
    pub sessions: Vec<SessionView>,
    /// What operations are called.
    pub titles: Titles,
    /// The line of the folder that is captured now.
    pub line: u32,
}

/// Narrower than this, words give way.
const NARROW: usize = 72;
/// Counts stay near their texts, however wide the terminal is.
const LONGEST_TEXT: usize = 64;
/// Narrower than this a text says nothing.
const SHORTEST_TEXT: usize = 12;

/// Writes all of it.
pub fn write(out: &mut dyn Write, look: &Look, timeline: &Timeline, around: &Around, detail: Detail) -> io::Result<()> {
    let narrow = look.width < NARROW;
    let rows = rows(look, timeline, around, detail, narrow);
    let columns = Columns::of(look, &rows, narrow);
    for row in &rows {
        columns.write(out, row)?;
        for below in &row.below {
            columns.write_below(out, below)?;
        }
    }
    Ok(())
}

/// One line, and what is beneath it.
#[derive(Default)]
struct Row {
    marker: Text,
    target: String,
    age: String,
    text: Text,
    counts: Option<Counts>,
    /// Not all that it changed is known.
    is_unknown: bool,
    session: String,
    remark: Text,
    below: Vec<Below>,
}

/// A line beneath another.
#[derive(Default)]
struct Below {
    label: Text,
    text: Text,
    /// Only a text with counts after it is cut: paths and reasons are shown whole.
    counts: Option<Counts>,
    remark: Text,
}

fn rows(look: &Look, timeline: &Timeline, around: &Around, detail: Detail, narrow: bool) -> Vec<Row> {
    let age = |at: Timestamp| if narrow { words::short_age(at, &look.now) } else { words::age(at, &look.now) };
    let line = around.line;
    let several = timeline.sessions.len() > 1;
    let mut told: Option<SessionId> = None;
    let mut rows = Vec::new();
    for entry in &timeline.entries {
        let row = match entry {
            LogEntry::Turn(turn) => {
                let mut row = of_turn(look, turn, around, detail);
                // Once is enough where there is only one.
                if several || told.as_ref() != Some(&turn.session) {
                    row.session = session_label(&turn.session, around);
                    told = Some(turn.session.clone());
                }
                Row { age: age(turn.at), ..row }
            }
            LogEntry::Checkpoint { checkpoint, files } => {
                Row { age: age(checkpoint.created_at), ..of_checkpoint(checkpoint, files, line, around, detail) }
            }
            LogEntry::Yours { checkpoint, files } => {
                let remark = other_folder(checkpoint, line);
                let room = look.width.saturating_sub(40).clamp(SHORTEST_TEXT, LONGEST_TEXT);
                let text = Text::new(Style::Bold, "you");
                let (text, below) = if files.is_empty() {
                    let all = words::plural(sum(&checkpoint.changes), "file");
                    (text.and(Style::Plain, format!("  {all}")), Vec::new())
                } else if detail.files {
                    (text, files.iter().map(|file| file_line("you", Style::Bold, file, String::new())).collect())
                } else {
                    (few(text.and(Style::Plain, "  "), files, room), Vec::new())
                };
                Row {
                    target: checkpoint.id.short().to_owned(),
                    age: age(checkpoint.created_at),
                    text,
                    counts: Some(if files.is_empty() { checkpoint.changes } else { counts(files) }),
                    remark,
                    below,
                    ..Row::default()
                }
            }
            LogEntry::Operation(operation) => Row { age: age(operation.began_at), ..of_operation(operation, around) },
            LogEntry::Gap { session, gap } => Row {
                marker: Text::new(Style::Warn, "!"),
                age: age(gap.at),
                text: Text::new(Style::Warn, "gap").and(Style::Plain, format!("  {}", owners::gap(gap, &[]))),
                session: session_label(session, around),
                ..Row::default()
            },
        };
        rows.push(row);
    }
    rows
}

fn session_label(id: &SessionId, around: &Around) -> String {
    let agent = around.sessions.iter().find(|session| session.id == *id).map(|session| session.agent.as_str());
    format!("{} {}", agent.unwrap_or("session"), around.names.session(id))
}

fn of_turn(look: &Look, turn: &TurnView, around: &Around, detail: Detail) -> Row {
    let session = around.sessions.iter().find(|session| session.id == turn.session);
    let is_running = turn.ending.is_none() && session.is_some_and(|s| s.live && s.turns == turn.number);
    let remark = turns::remark(turn, is_running);
    Row {
        target: around.names.target(&turn.session, turn.number, None),
        text: turns::prompt(turn.prompt.as_deref()),
        counts: Some(turn.changes),
        is_unknown: turn.unknown.is_some(),
        remark,
        below: beneath_turn(look, turn, is_running, around, detail),
        ..Row::default()
    }
}

fn beneath_turn(look: &Look, turn: &TurnView, is_running: bool, around: &Around, detail: Detail) -> Vec<Below> {
    let names = &around.names;
    let owned_line = |file: &ChangedFile, style| {
        let evidence = names.evidence(&file.owner, &turn.steps);
        file_line(&names.who(&file.owner), style, file, evidence)
    };
    let mut below = Vec::new();
    if detail.steps {
        for step in &turn.steps {
            below.push(of_step(turn, step, is_running, names));
            if detail.files {
                let inner = |file: &ChangedFile| Below { label: Text::default(), ..owned_line(file, Style::Id) };
                below.extend(step.files.iter().map(inner));
            }
        }
    }
    if detail.files {
        let is_told = |file: &&ChangedFile| !detail.steps || !matches!(file.owner, Owner::Step { .. });
        below.extend(turn.files.iter().filter(is_told).map(|file| owned_line(file, style_of(&file.owner))));
    }
    // What one turn alone can have done is that turn's, whichever of its steps it was.
    let unsure: Vec<ChangedFile> = turn.unsure.iter().filter(|file| file.owner.turn().is_none()).cloned().collect();
    let (you, nobody) = (("you", Style::Bold), ("unsure", Style::Warn));
    for ((who, style), unlisted) in [(you, &turn.yours_unlisted), (nobody, &turn.unsure_unlisted)] {
        if !unlisted.is_empty() {
            let all = words::plural(sum(unlisted), "file");
            below.push(Below { label: Text::new(style, who), text: Text::new(Style::Plain, all), ..Below::default() });
        }
    }
    for ((who, style), list) in [(you, &turn.yours), (nobody, &unsure)] {
        if list.is_empty() {
            continue;
        }
        if detail.files {
            below.extend(list.iter().map(|file| owned_line(file, style)));
        } else {
            let room = look.width.saturating_sub(28).clamp(SHORTEST_TEXT, 2 * LONGEST_TEXT);
            below.push(Below {
                label: Text::new(style, who),
                text: few(Text::default(), list, room),
                ..Below::default()
            });
        }
    }
    // A gap says so itself.
    let unknown = turn.unknown.iter().filter(|why| !matches!(why, Unknown::Gap { .. }));
    below.extend(unknown.map(|why| Below {
        label: Text::new(Style::Warn, "not known"),
        text: words::unknown(why, &names.target(&turn.session, turn.number, None)),
        ..Below::default()
    }));
    below.extend(turn.gaps.iter().map(|gap| Below {
        label: Text::new(Style::Warn, "gap"),
        text: Text::new(Style::Plain, owners::gap(gap, &turn.steps)),
        ..Below::default()
    }));
    below
}

fn of_step(turn: &TurnView, step: &StepView, is_running: bool, names: &Names) -> Below {
    let remark = turns::step_remark(step, is_running);
    Below {
        label: Text::new(Style::Id, names.target(&turn.session, turn.number, Some(step.number))),
        text: Text::new(Style::Plain, one_line(&step.summary, usize::MAX)),
        counts: Some(step.changes),
        remark,
    }
}

fn of_checkpoint(
    checkpoint: &CheckpointView,
    files: &[ChangedFile],
    line: u32,
    around: &Around,
    detail: Detail,
) -> Row {
    let name = checkpoint.name.as_deref().unwrap_or_default();
    let note = checkpoint.annotation.as_deref().map(|note| one_line(note, usize::MAX)).unwrap_or_default();
    let text = match (name, &note[..], checkpoint.pinned) {
        ("", "", true) => Text::new(Style::Dim, "checkpoint by hand"),
        ("", "", false) => Text::new(Style::Dim, "the first session began"),
        ("", note, _) => Text::new(Style::Plain, note),
        (name, "", _) => Text::new(Style::Bold, name),
        (name, note, _) => Text::new(Style::Bold, name).and(Style::Plain, format!("  {note}")),
    };
    let of_file = |file: &ChangedFile| {
        let evidence = around.names.evidence(&file.owner, &[]);
        file_line(&around.names.who(&file.owner), style_of(&file.owner), file, evidence)
    };
    Row {
        marker: if checkpoint.pinned { Text::new(Style::Bold, "*") } else { Text::default() },
        target: checkpoint.id.short().to_owned(),
        text,
        counts: Some(checkpoint.changes),
        remark: other_folder(checkpoint, line),
        below: if detail.files { files.iter().map(of_file).collect() } else { Vec::new() },
        ..Row::default()
    }
}

fn of_operation(operation: &OperationView, around: &Around) -> Row {
    let marker = match operation.kind {
        OperationVerb::Redo => "↻",
        OperationVerb::Undo => "↶",
        _ => "↺",
    };
    // Whether it was taken back since is known there.
    let operation = around.titles.get(&operation.id).unwrap_or(operation);
    let remark = match operation.state {
        OperationStatus::Done if operation.taken_back => (Style::Dim, "  (taken back)"),
        OperationStatus::Done => (Style::Dim, ""),
        OperationStatus::Pending => (Style::Warn, "  (not ended)"),
        OperationStatus::RolledBack => (Style::Warn, "  (rolled back)"),
        OperationStatus::GivenUp => (Style::Warn, "  (given up)"),
    };
    // Not in the column of remarks, which all turns would have to make room for.
    let text = around.titles.title(operation).and(remark.0, remark.1);
    Row { marker: Text::new(Style::Bold, marker), text, ..Row::default() }
}

fn other_folder(checkpoint: &CheckpointView, line: u32) -> Text {
    Text::new(Style::Dim, words::of_line(checkpoint.line, line))
}

fn style_of(owner: &Owner) -> Style {
    match owner {
        Owner::Step { .. } | Owner::Operation { .. } => Style::Id,
        Owner::You => Style::Bold,
        Owner::Unsure { .. } => Style::Warn,
    }
}

fn file_line(who: &str, style: Style, file: &ChangedFile, evidence: String) -> Below {
    let remark = if evidence.is_empty() { evidence } else { format!("({evidence})") };
    Below { label: Text::new(style, who), text: file_text(file), counts: None, remark: Text::new(Style::Dim, remark) }
}

fn file_text(file: &ChangedFile) -> Text {
    let style = match file.kind {
        ChangeKind::Created => Style::Good,
        ChangeKind::Modified => Style::Warn,
        ChangeKind::Deleted => Style::Bad,
    };
    Text::new(style, format!("{} {}", words::sign(file.kind), escape_view(&file.path)))
}

/// As many paths as fit, and how many more there are.
fn few(mut text: Text, list: &[ChangedFile], room: usize) -> Text {
    for (at, file) in list.iter().enumerate() {
        let one = file_text(file);
        let is_last = at + 1 == list.len();
        // The words that may have to follow need their room as well.
        let needed = text.width() + one.width() + if is_last { 0 } else { 14 };
        if at > 0 && needed > room {
            return text.and(Style::Dim, format!("and {} more", words::grouped((list.len() - at) as u64)));
        }
        text = text.and_all(one).and(Style::Plain, if is_last { "" } else { "  " });
    }
    text
}

fn sum(counts: &Counts) -> u64 {
    counts.created + counts.modified + counts.deleted
}

fn counts(files: &[ChangedFile]) -> Counts {
    let of = |kind| files.iter().filter(|file| file.kind == kind).count() as u64;
    Counts { created: of(ChangeKind::Created), modified: of(ChangeKind::Modified), deleted: of(ChangeKind::Deleted) }
}

/// Where each column begins.
struct Columns<'a> {
    look: &'a Look,
    target: usize,
    age: usize,
    text: usize,
    counts: usize,
    session: usize,
}

impl<'a> Columns<'a> {
    fn of(look: &'a Look, rows: &[Row], narrow: bool) -> Self {
        let below = || rows.iter().flat_map(|row| &row.below);
        let target = widest(rows.iter().map(|row| row.target.len()));
        let age = widest(rows.iter().map(|row| row.age.len()));
        let all_counts = rows.iter().map(|row| (row.counts, row.is_unknown));
        let all_counts = all_counts.chain(below().map(|below| (below.counts, false)));
        let counts = widest(all_counts.map(|(counts, is_unknown)| signs(counts, is_unknown).width()));
        let session = if narrow { 0 } else { widest(rows.iter().map(|row| escape(&row.session).len())) };
        let remark = widest(rows.iter().map(|row| row.remark.width()));
        let gap = |width: usize| if width == 0 { 0 } else { width + 2 };
        let taken = 2 + gap(target) + gap(age) + gap(counts) + gap(session) + gap(remark);
        let room = look.width.saturating_sub(taken + 2).clamp(SHORTEST_TEXT, LONGEST_TEXT);
        let cut = below().filter(|below| below.counts.is_some()).map(|below| below.text.width());
        let text = widest(rows.iter().map(|row| row.text.width()).chain(cut)).min(room);
        Self { look, target: gap(target), age: gap(age), text, counts, session }
    }

    fn write(&self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        let look = self.look;
        let session = if self.session == 0 { Text::default() } else { Text::new(Style::Dim, &row.session) };
        // Nothing follows a text without counts, so nothing is gained by cutting it.
        let text = if row.counts.is_some() { self.text } else { usize::MAX };
        let cells = [
            (row.marker.cut(look, 1), 2),
            (Text::new(Style::Id, &row.target).cut(look, usize::MAX), self.target),
            (Text::new(Style::Dim, &row.age).cut(look, usize::MAX), self.age),
            (row.text.cut(look, text), self.text + 2),
            (self.counts(row.counts, row.is_unknown), self.counts + 2),
            (session.cut(look, usize::MAX), if self.session == 0 { 0 } else { self.session + 2 }),
            (row.remark.cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))
    }

    fn write_below(&self, out: &mut dyn Write, below: &Below) -> io::Result<()> {
        let look = self.look;
        let label = below.label.cut(look, usize::MAX);
        // A label that is too long for its column pushes the rest of its line, and only that.
        let column = (2 + self.target + self.age).saturating_sub(4).max(label.width + 2);
        let text =
            if below.counts.is_some() { below.text.cut(look, self.text) } else { below.text.cut(look, usize::MAX) };
        let after = if below.counts.is_some() { self.text + 2 } else { text.width + 2 };
        let counts = if below.counts.is_some() { self.counts + 2 } else { 0 };
        let cells = [
            (Cell::default(), 4),
            (label, column),
            (text, after),
            (self.counts(below.counts, false), counts),
            (below.remark.cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))
    }

    fn counts(&self, counts: Option<Counts>, is_unknown: bool) -> Cell {
        signs(counts, is_unknown).cut(self.look, usize::MAX)
    }
}

/// `+1 ~2`, `=` where nothing changed, `?` where nobody knows.
fn signs(counts: Option<Counts>, is_unknown: bool) -> Text {
    if is_unknown && counts.is_some_and(|counts| counts.is_empty()) {
        return Text::new(Style::Warn, "?");
    }
    counts.map(|counts| words::signs(&counts)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_794_772_991_042;

    fn ago(minutes: i64) -> String {
        Timestamp(NOW - minutes * 60_000).to_string()
    }

    fn session(id: &str, agent: &str, turns: u32) -> Value {
        json!({
            "id": id, "agent": agent, "agent_id": id, "started_at": ago(60), "last_at": ago(2), "live": true,
            "turns": turns, "checkpoints": 4, "changes": { "created": 0, "modified": 0, "deleted": 0 }, "gaps": 0,
        })
    }

    fn file(path: &str, kind: &str, owner: Value) -> Value {
        json!({ "path": path, "kind": kind, "owner": owner })
    }

    fn turn(id: &str, number: u32, minutes: i64, prompt: Option<&str>, more: Value) -> Value {
        let mut turn = json!({
            "entry": "turn", "session": id, "number": number, "target": format!("t{number}"), "prompt": prompt,
            "at": ago(minutes), "ended_at": ago(minutes - 1), "ending": "done",
            "changes": { "created": 1, "modified": 3, "deleted": 0 },
            "files": [], "steps": [], "yours": [], "unsure": [], "gaps": [],
        });
        turn.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        turn
    }

    fn step(number: u32, summary: &str, ending: Option<&str>) -> Value {
        let tool = summary.split(' ').next();
        json!({
            "number": number, "target": format!("t3.{number}"), "tool": tool, "summary": summary, "background": false,
            "ending": ending, "at": ago(2), "changes": { "created": 0, "modified": 1, "deleted": 0 }, "files": [],
        })
    }

    const ONE: &str = "kkkkllllmmmmnnnn";
    const TWO: &str = "zzzzyyyyxxxxwwww";

    /// Three turns, a checkpoint by hand and a rewind.
    fn entries() -> Vec<Value> {
        let owner = json!({ "who": "step", "session": ONE, "turn": 3, "step": 1, "evidence": "named" });
        let unsure = json!({
            "who": "unsure",
            "candidates": [{ "step": { "session": ONE, "turn": 3, "step": 2 } }, "you"],
        });
        vec![
            turn(
                ONE,
                3,
                2,
                Some("make the tests pass\nall of them"),
                json!({
                    "ended_at": null, "ending": null,
                    "files": [file("src/auth.ts", "modified", owner)],
                    "steps": [step(1, "Edit src/auth.ts", Some("done")), step(2, "Bash npm install", None)],
                    "yours": [file("notes.md", "modified", json!({ "who": "you" }))],
                    "unsure": [file("cache.json", "created", unsure)],
                    "gaps": [{
                        "turn": 3, "step": 2, "cause": "before-tool", "at": ago(2),
                        "reason": "not all files could be read in time",
                    }],
                }),
            ),
            json!({
                "entry": "checkpoint", "id": "mmmmnnnnoooopppp", "name": "release", "annotation": "it works",
                "created_at": ago(5), "cause": "manual", "line": 1, "skipped_count": 0, "pinned": true,
                "changes": { "created": 0, "modified": 0, "deleted": 0 }, "files": [],
            }),
            json!({
                "entry": "operation", "id": "ppppqqqqrrrrssss", "kind": "rewind", "target": "qqqqrrrrsssstttt",
                "before": "qqqqrrrrsssstttt", "state": "done", "began_at": ago(9),
            }),
            turn(ONE, 2, 20, None, json!({ "ending": "failed" })),
        ]
    }

    fn operation(entry: &LogEntry) -> Option<OperationView> {
        if let LogEntry::Operation(operation) = entry { Some(operation.clone()) } else { None }
    }

    fn shown(entries: Vec<Value>, sessions: Vec<Value>, width: usize, detail: Detail) -> String {
        let total = entries.len();
        let timeline = json!({ "entries": entries, "total": total, "sessions": sessions });
        let timeline: Timeline = serde_json::from_value(timeline).unwrap();
        let around = Around {
            line: 1,
            names: Names::of(&timeline.sessions),
            sessions: timeline.sessions.clone(),
            titles: Titles::new(
                timeline.entries.iter().filter_map(operation).collect(),
                HashMap::from([("qqqqrrrrsssstttt".to_owned(), "t2".to_owned())]),
            ),
        };
        let look = Look { now: piton_wording::words::Now::utc(Timestamp(NOW)), ..Look::plain(width) };
        let mut out = Vec::new();
        write(&mut out, &look, &timeline, &around, detail).unwrap();
        format!("\n{}", String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_line_has_the_same_columns() {
        let one = vec![session(ONE, "claude-code", 3)];
        let plain = shown(entries(), one.clone(), 100, Detail::default());
        assert_eq!(
            plain,
            "
  t3        2 min ago   make the tests pass …                    +1 ~3  claude-code kkkk  running
    you                 ~ notes.md
    unsure              + cache.json
    gap                 before Bash npm install: not all files could be read in time
* mmmmnnnn  5 min ago   release  it works                        =
↺           9 min ago   rewind to t2
  t2        20 min ago  (piton came in the middle of this turn)  +1 ~3                    failed
"
        );
        let detailed = shown(entries(), one, 100, Detail { steps: true, files: true });
        assert_eq!(
            detailed.lines().take(8).collect::<Vec<_>>().join("\n"),
            "
  t3        2 min ago   make the tests pass …                    +1 ~3  claude-code kkkk  running
    t3.1                Edit src/auth.ts                         ~1
    t3.2                Bash npm install                         ~1     running
    you                 ~ notes.md
    unsure              + cache.json  (t3.2 Bash or you)
    gap                 before Bash npm install: not all files could be read in time
* mmmmnnnn  5 min ago   release  it works                        ="
        );
    }

    #[test]
    fn operations_say_what_they_are_about_and_how_they_stand() {
        let one = |id: &str, kind: &str, minutes: i64, more: Value| {
            let mut operation = json!({
                "entry": "operation", "id": id, "kind": kind, "target": null, "before": "qqqqrrrrsssstttt",
                "state": "done", "began_at": ago(minutes),
            });
            operation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            operation
        };
        let entries = vec![
            one("nnnnqqqqrrrrssss", "redo", 1, json!({ "target": "ooooqqqqrrrrssss", "about": "the undo of turn 3" })),
            one("ooooqqqqrrrrssss", "undo", 2, json!({ "about": "turn 3 “make it blue”", "taken_back": true })),
            one("ppppqqqqrrrrssss", "rewind", 3, json!({ "target": "qqqqrrrrsssstttt", "state": "rolled-back" })),
        ];
        let text = shown(entries, Vec::new(), 100, Detail::default());
        assert_eq!(
            text,
            "
↻ 1 min ago  redo of the undo of turn 3 “make it blue”
↶ 2 min ago  undo of turn 3 “make it blue”  (taken back)
↺ 3 min ago  rewind to t2  (rolled back)
"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_short_ages_and_cut_texts_and_every_target() {
        let text = shown(entries(), vec![session(ONE, "claude-code", 3)], 48, Detail::default());
        assert_eq!(
            text,
            "
  t3        2m   make the tes…  +1 ~3  running
    you          ~ notes.md
    unsure       + cache.json
    gap          before Bash npm install: not all files could be read in time
* mmmmnnnn  5m   release  it …  =
↺           9m   rewind to t2
  t2        20m  (piton came …  +1 ~3  failed
"
        );
    }

    #[test]
    fn with_several_sessions_each_turn_says_whose_it_is_and_what_to_type() {
        let entries =
            vec![turn(TWO, 1, 1, Some("fix it"), json!({})), turn(ONE, 1, 3, Some("try \u{1b}[2J this"), json!({}))];
        let text =
            shown(entries, vec![session(TWO, "mine", 1), session(ONE, "claude-code", 1)], 100, Detail::default());
        assert_eq!(
            text,
            "
  t1       1 min ago  fix it            +1 ~3  mine zzzz
  kkkk:t1  3 min ago  try \\x1b[2J this  +1 ~3  claude-code kkkk
"
        );
    }

    #[test]
    fn a_future_turn_says_that_it_is_one() {
        let future = |ending: Value| json!({ "future": true, "passed_by": "ooooqqqqrrrrssss", "ending": ending });
        let entries = vec![
            turn(ONE, 3, 1, Some("third"), future(json!("failed"))),
            turn(ONE, 2, 2, Some("second"), future(json!("done"))),
            turn(ONE, 1, 3, Some("first"), json!({ "ending": "done" })),
        ];
        let text = shown(entries, vec![session(ONE, "a", 3)], 80, Detail::default());
        assert_eq!(
            text,
            "
  t3  1 min ago  third   +1 ~3  a kkkk  failed, future
  t2  2 min ago  second  +1 ~3          future
  t1  3 min ago  first   +1 ~3
"
        );
    }

    #[test]
    fn many_paths_are_told_by_the_first_and_how_many_more() {
        let you = json!({ "who": "you" });
        let many: Vec<Value> = (0..30).map(|n| file(&format!("some/file {n}.md"), "created", you.clone())).collect();
        let one = turn(ONE, 1, 1, Some("x"), json!({ "yours": many }));
        let text = shown(vec![one], vec![session(ONE, "a", 1)], 80, Detail::default());
        let line = text.lines().nth(2).unwrap();
        assert_eq!(line, "    you          + some/file 0.md  + some/file 1.md  and 28 more");
    }
}
