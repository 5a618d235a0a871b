//! The tree of sessions: each branch beneath the session that it began in, with the turn that it left from, how and when.

use std::io::{self, Write};

use piton_engine::view::SessionView;
use piton_wording::sessions::{TreeRow, left_at, marks, title, tree};
use piton_wording::{Style, Text, words};
use unicode_width::UnicodeWidthStr;

use crate::console::Look;
use crate::table::{Cell, ShownText, line, widest};

/// Narrower than this, ages are short.
const TIGHT: usize = 100;
/// Narrower than this, ages, counts and agents go.
const NARROW: usize = 60;
/// Narrower than this a title says nothing.
const SHORTEST: usize = 12;
const LONGEST: usize = 60;
/// As many letters of an id are shown.
const ID: usize = 8;

/// Writes the tree, the session that reported last first.
pub fn write(out: &mut dyn Write, look: &Look, sessions: &[SessionView]) -> io::Result<()> {
    let rows = tree(sessions, look.width / 3);
    let (tight, narrow) = (look.width < TIGHT, look.width < NARROW);
    let age = |session: &SessionView| {
        let at = session.origin.as_ref().map_or(session.started_at, |origin| origin.at);
        match (narrow, tight) {
            (true, _) => String::new(),
            (_, true) => words::short_age(at, &look.now),
            _ => words::age(at, &look.now),
        }
    };
    let turns = |session: &SessionView| {
        if narrow { String::new() } else { words::plural(u64::from(session.turns), "turn") }
    };
    let from = |session: &SessionView| match &session.origin {
        Some(origin) => Text::new(Style::Plain, left_at(origin, narrow)),
        None if narrow => Text::default(),
        None => Text::new(Style::Dim, &session.agent),
    };
    let column = |width: usize| if width == 0 { 0 } else { width + 2 };
    let trees = widest(rows.iter().map(|row| row.prefix.width() + ID));
    let origins = widest(rows.iter().map(|row| from(row.session).width()));
    let ages = widest(rows.iter().map(|row| age(row.session).width()));
    let counts = widest(rows.iter().map(|row| turns(row.session).width()));
    let ends = widest(rows.iter().map(|row| marks(row.session, tight).width()));
    let taken = 2 + column(trees) + 2 + column(origins) + column(ages) + column(counts) + ends;
    let titles = widest(rows.iter().map(|row| title(row.session).width()));
    let titles = titles.min(look.width.saturating_sub(taken).clamp(SHORTEST, LONGEST));
    for TreeRow { prefix, session } in &rows {
        let live = if session.live { Text::new(Style::Bold, "*") } else { Text::default() };
        let id = Text::new(Style::Dim, prefix).and(Style::Id, session.id.short());
        let cells = [
            (live.cut(look, 1), 2),
            (id.cut(look, trees), column(trees)),
            (title(session).cut(look, titles), column(titles)),
            (from(session).cut(look, origins), column(origins)),
            (Text::new(Style::Dim, age(session)).cut(look, ages), column(ages)),
            (Cell::plain(turns(session)), column(counts)),
            (marks(session, tight).cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use piton_engine::model::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_794_772_991_042;

    /// An id of a letter.
    fn id(letter: char) -> String {
        letter.to_string().repeat(16)
    }

    fn session(letter: char, title: &str, more: Value) -> SessionView {
        let at = Timestamp(NOW - 3_600_000);
        let mut all = json!({
            "id": id(letter), "agent": "claude-code", "agent_id": letter.to_string(), "name": null, "title": title,
            "started_at": at, "last_at": at, "ended_at": null, "live": false, "turns": 3, "checkpoints": 0,
            "changes": {"created": 0, "modified": 0, "deleted": 0}, "gaps": 0, "transcript": null,
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn branch(parent: char, turn: u32, how: &str) -> Value {
        json!({"parent": id(parent), "turn": turn, "at": Timestamp(NOW - 120_000), "how": how})
    }

    fn sessions() -> Vec<SessionView> {
        vec![
            session('m', "twig", json!({"origin": branch('l', 4, "fork"), "name": "try \u{1b}[2J", "turns": 1})),
            session('k', "add a login form", json!({"rank": "archived", "live": true})),
            session(
                'l',
                "add a login form (branch)",
                json!({"origin": branch('k', 3, "rewind"), "current": true, "rank": "main"}),
            ),
            session('n', "日本語のタイトル", json!({"origin": branch('k', 2, "summary-from"), "rank": "deleted"})),
            session('o', "another", json!({})),
        ]
    }

    fn shown(sessions: &[SessionView], width: usize) -> String {
        let look = Look { now: piton_wording::words::Now::utc(Timestamp(NOW)), ..Look::plain(width) };
        let mut out = Vec::new();
        write(&mut out, &look, sessions).unwrap();
        format!("\n{}", String::from_utf8(out).unwrap())
    }

    #[test]
    fn branches_hang_from_what_they_left_and_every_line_has_the_same_columns() {
        assert_eq!(
            shown(&sessions(), 120),
            "
* kkkkkkkk        add a login form           claude-code    1 h ago    3 turns  archived
  ├─ nnnnnnnn     日本語のタイトル           summary at t2  2 min ago  3 turns  deleted
  └─ llllllll     add a login form (branch)  rewind at t3   2 min ago  3 turns  you are here, main line
     └─ mmmmmmmm  try \\x1b[2J                fork at t4     2 min ago  1 turn
  oooooooo        another                    claude-code    1 h ago    3 turns
"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_every_id_and_turn_and_cut_titles() {
        let text = shown(&sessions(), 80);
        assert_eq!(
            text,
            "
* kkkkkkkk        add a login form   claude-code    1h  3 turns  archived
  ├─ nnnnnnnn     日本語のタイトル   summary at t2  2m  3 turns  deleted
  └─ llllllll     add a login form…  rewind at t3   2m  3 turns  here, main line
     └─ mmmmmmmm  try \\x1b[2J        fork at t4     2m  1 turn
  oooooooo        another            claude-code    1h  3 turns
"
        );
        let text = shown(&sessions(), 48);
        assert_eq!(
            text,
            "
* kkkkkkkk        add a login…              archived
  ├─ nnnnnnnn     日本語のタ…   summary t2  deleted
  └─ llllllll     add a login…  rewind t3   here, main line
     └─ mmmmmmmm  try \\x1b[2J   fork t4
  oooooooo        another
"
        );
    }

    #[test]
    fn a_branch_whose_parent_is_not_listed_and_one_that_goes_in_a_circle_are_shown_all_the_same() {
        let lost = vec![
            session('l', "lost", json!({"origin": branch('k', 3, "rewind")})),
            session('m', "round", json!({"origin": branch('n', 3, "rewind")})),
            session('n', "and round", json!({"origin": branch('m', 3, "rewind")})),
        ];
        let text = shown(&lost, 80);
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn a_very_deep_tree_keeps_its_ids_on_the_screen() {
        let mut all = vec![session('k', "root", json!({}))];
        let letters: Vec<char> = ('l'..='z').collect();
        for (at, letter) in letters.iter().enumerate() {
            let parent = if at == 0 { 'k' } else { letters[at - 1] };
            all.push(session(*letter, "deep", json!({"origin": branch(parent, 2, "rewind")})));
        }
        let text = shown(&all, 80);
        assert!(text.lines().all(|line| line.width() <= 92), "{text}");
        assert!(letters.iter().all(|letter| text.contains(&letter.to_string().repeat(8))), "{text}");
    }
}
