//! The timeline as a person reads it: a line for each turn, and beneath it what else there is to say of it.
//!
//! Every line has the same columns, beneath a turn as well: what to type to mean that moment, when it was, what it was,
//! what it changed. On a narrow terminal ages are short and the session's column goes; texts are cut, never a target.

use std::io::{self, Write};

use piton_engine::model::Counts;
use piton_engine::view::Timeline;
use piton_wording::escape::escape;
use piton_wording::timeline::{Around, Below, Detail, Row, few, rows, signs};
use piton_wording::{Style, Text, words};

use crate::console::Look;
use crate::table::{Cell, ShownText, line, widest};

/// Narrower than this, words give way.
const NARROW: usize = 72;
/// Narrower than this, whose a turn is gives way to what it was, where there is one session alone.
const WIDE: usize = 100;
/// Counts stay near their texts, however wide the terminal is.
const LONGEST_TEXT: usize = 64;
/// Narrower than this a text says nothing.
const SHORTEST_TEXT: usize = 12;

/// Writes all of it.
pub fn write(out: &mut dyn Write, look: &Look, timeline: &Timeline, around: &Around, detail: Detail) -> io::Result<()> {
    let narrow = look.width < NARROW;
    let mut rows = rows(timeline, around, detail);
    rows.iter_mut().for_each(|row| fit(row, look));
    let columns = Columns::of(look, &rows, narrow);
    for row in &rows {
        columns.write(out, row)?;
        for below in &row.below {
            columns.write_below(out, below)?;
        }
    }
    Ok(())
}

/// Makes texts of the lists of paths that there is only so much room for.
fn fit(row: &mut Row, look: &Look) {
    let width = |text: &Text| text.width();
    if !row.paths.is_empty() {
        let room = look.width.saturating_sub(40).clamp(SHORTEST_TEXT, LONGEST_TEXT);
        row.text = few(std::mem::take(&mut row.text), &row.paths, room, width);
    }
    let room = look.width.saturating_sub(28).clamp(SHORTEST_TEXT, 2 * LONGEST_TEXT);
    for below in row.below.iter_mut().filter(|below| !below.paths.is_empty()) {
        below.text = few(std::mem::take(&mut below.text), &below.paths, room, width);
    }
}

fn age_of(row: &Row, look: &Look, narrow: bool) -> String {
    if narrow { words::short_age(row.at, &look.now) } else { words::age(row.at, &look.now) }
}

/// Where each column begins.
struct Columns<'a> {
    look: &'a Look,
    narrow: bool,
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
        let age = widest(rows.iter().map(|row| age_of(row, look, narrow).len()));
        let all_counts = rows.iter().map(|row| (row.counts, row.is_unknown));
        let all_counts = all_counts.chain(below().map(|below| (below.counts, below.is_unknown)));
        let counts = widest(all_counts.map(|(counts, is_unknown)| signs(counts, is_unknown).width()));
        let session = if narrow { 0 } else { widest(rows.iter().map(|row| escape(&row.session).len())) };
        // What has no counts has its remark right behind its text.
        let remark = widest(rows.iter().filter(|row| row.counts.is_some()).map(|row| row.remark.width()));
        let gap = |width: usize| if width == 0 { 0 } else { width + 2 };
        // Where there is one session alone, a prompt says more than whose it is.
        let names = rows.iter().map(|row| &row.session).filter(|name| !name.is_empty()).count();
        let longest = widest(rows.iter().filter(|row| row.counts.is_some()).map(|row| row.text.width()));
        let needed = 2 + gap(target) + gap(age) + gap(counts) + gap(session) + gap(remark) + longest;
        let session = if names == 1 && look.width < WIDE && needed > look.width { 0 } else { session };
        let taken = 2 + gap(target) + gap(age) + gap(counts) + gap(session) + gap(remark);
        let room = look.width.saturating_sub(taken + 2).clamp(SHORTEST_TEXT, LONGEST_TEXT);
        let cut = below().filter(|below| below.counts.is_some()).map(|below| below.text.width());
        let text = widest(rows.iter().map(|row| row.text.width()).chain(cut)).min(room);
        Self { look, narrow, target: gap(target), age: gap(age), text, counts, session }
    }

    fn write(&self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        let look = self.look;
        let session = if self.session == 0 { Text::default() } else { Text::new(Style::Dim, &row.session) };
        // Nothing follows a text without counts.
        let remark = if row.remark.is_empty() { 0 } else { row.remark.width() + 2 };
        let left = look.width.saturating_sub(2 + self.target + self.age + remark).max(SHORTEST_TEXT);
        let text = match (row.counts, look.terminal) {
            (Some(_), _) => self.text,
            (None, true) => left,
            (None, false) => usize::MAX,
        };
        if row.counts.is_none() {
            let text = row.text.cut(look, text);
            let column = text.width + 2;
            let cells = [
                (row.marker.cut(look, 1), 2),
                (Text::new(Style::Id, &row.target).cut(look, usize::MAX), self.target),
                (Text::new(Style::Dim, age_of(row, look, self.narrow)).cut(look, usize::MAX), self.age),
                (text, column),
                (row.remark.cut(look, usize::MAX), 0),
            ];
            return writeln!(out, "{}", line(&cells));
        }
        let cells = [
            (row.marker.cut(look, 1), 2),
            (Text::new(Style::Id, &row.target).cut(look, usize::MAX), self.target),
            (Text::new(Style::Dim, age_of(row, look, self.narrow)).cut(look, usize::MAX), self.age),
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
            (self.counts(below.counts, below.is_unknown), counts),
            (below.remark.cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))
    }

    fn counts(&self, counts: Option<Counts>, is_unknown: bool) -> Cell {
        signs(counts, is_unknown).cut(self.look, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use piton_engine::model::Timestamp;
    use piton_engine::view::{LogEntry, OperationView};
    use piton_wording::Titles;
    use piton_wording::owners::Names;
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
