//! Summaries that stand for turns of a conversation: the text a summarizer is given, what is accepted of its answer,
//! and the digest that is made where there is no summarizer.
//!
//! Text in, text out. Who summarizes, and how it is called, is up to the caller.

use std::collections::VecDeque;

use crate::diff::ChangeKind;
use crate::short::one_line;

/// Most bytes of a conversation that a summarizer is given.
pub const MOST_GIVEN: usize = 400_000;

/// Most bytes of a summary.
pub const MOST_SUMMARY: usize = 100_000;

/// Which turns a summary stands for, relative to the named turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SummarySide {
    /// That turn and all later ones.
    From,
    /// All turns before it.
    UpTo,
}

/// Why a text cannot stand for turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSummary {
    #[error("the summary is empty")]
    Empty,
    #[error("the summary is longer than {} bytes", MOST_SUMMARY)]
    TooLong,
}

/// A summarizer's answer without terminal control sequences.
///
/// # Errors
/// When nothing is left, or too much.
pub fn tidy(answer: &str) -> Result<String, BadSummary> {
    let text = plain(answer);
    let text = text.trim();
    match text.len() {
        0 => Err(BadSummary::Empty),
        length if length > MOST_SUMMARY => Err(BadSummary::TooLong),
        _ => Ok(text.to_owned()),
    }
}

/// A text without escape sequences that colour it or move the cursor, and without other control characters.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                Some('[') => skip_control(&mut rest),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                // An escape of two characters, or a lone one at the end.
                _ => {}
            },
            '\u{9b}' => skip_control(&mut rest),
            '\n' | '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            _ if c.is_control() => {}
            _ => out.push(c),
        }
    }
    out
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips the parameters and the final letter of a control sequence. A malformed one ends where it breaks off.
fn skip_control(rest: &mut Rest<'_>) {
    while rest.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    rest.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

/// Skips a terminal string, such as a title or a link. An unterminated one ends with its line, so that it does not
/// swallow everything after it.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        if c == '\u{7}' || (c == '\u{1b}' && rest.next_if(|c| *c == '\\').is_some()) {
            return;
        }
    }
}

/// Collects a long text piece by piece in bounded memory, keeping its beginning and end.
#[derive(Debug)]
pub struct Excerpt {
    most: usize,
    head: String,
    tail: VecDeque<String>,
    tail_length: usize,
    left_out: u64,
}

impl Excerpt {
    /// `most` is approximate, in bytes.
    pub fn new(most: usize) -> Self {
        Self { most, head: String::new(), tail: VecDeque::new(), tail_length: 0, left_out: 0 }
    }

    pub fn add(&mut self, piece: String) {
        if self.tail.is_empty() && self.left_out == 0 && self.head.len() + piece.len() <= self.most / 2 {
            self.head += &piece;
            return;
        }
        self.tail_length += piece.len();
        self.tail.push_back(piece);
        while self.tail_length > self.most / 2 && self.tail.len() > 1 {
            let Some(gone) = self.tail.pop_front() else { break };
            self.tail_length -= gone.len();
            self.left_out += gone.len() as u64;
        }
    }

    /// The text, with a remark where something was left out, and how many bytes that is.
    pub fn finish(self) -> (String, u64) {
        let mut text = self.head;
        if self.left_out > 0 {
            text += &format!("[… {} bytes of the conversation are left out here …]\n\n", self.left_out);
        }
        text.extend(self.tail);
        (text, self.left_out)
    }
}

/// A turn as told in a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigestTurn {
    pub number: u32,
    pub prompt: Option<String>,
    pub files: Vec<(ChangeKind, String)>,
    pub commands: Vec<String>,
    /// Tool calls of which nothing more is known.
    pub calls: Vec<String>,
    /// The agent's last message.
    pub answer: Option<String>,
}

/// Most items of each kind listed for a turn.
const MOST_LISTED: usize = 20;
/// Most characters of a prompt or an answer.
const MOST_WORDS: usize = 1_000;
/// Most characters of a command or a path.
const MOST_COMMAND: usize = 200;
/// Most bytes of a digest.
const MOST_DIGEST: usize = 40_000;

/// A summary made from the turns themselves: prompts, changed files, commands, last answers. It says that no model
/// wrote it.
pub fn digest(turns: &[DigestTurn]) -> String {
    let told: Vec<String> = turns.iter().map(tell).collect();
    let mut text = "A digest of these turns that piton extracted, without a model: what the user asked, which files \
                    changed, which commands ran, and the agent's last words.\n"
        .to_owned();
    // The beginning says what it is about, and the end where it stands.
    let head = within(told.iter(), MOST_DIGEST / 4);
    let tail = within(told[head..].iter().rev(), MOST_DIGEST * 3 / 4).max(usize::from(head < told.len()));
    told[..head].iter().for_each(|one| text += one);
    let (first, last) = (head, told.len() - tail);
    if first < last {
        text += &format!("\n(turns {} to {} are left out)\n", turns[first].number, turns[last - 1].number);
    }
    told[last..].iter().for_each(|one| text += one);
    text
}

/// How many of the texts fit into `most` bytes.
fn within<'a>(texts: impl Iterator<Item = &'a String>, most: usize) -> usize {
    let mut length = 0;
    texts
        .take_while(|text| {
            length += text.len();
            length <= most
        })
        .count()
}

fn tell(turn: &DigestTurn) -> String {
    let mut text = format!("\nTurn {}\n", turn.number);
    if let Some(prompt) = &turn.prompt {
        text += &format!("- asked: {}\n", shorten(prompt, MOST_WORDS));
    }
    let word = |kind: &ChangeKind| match kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    };
    list(
        &mut text,
        "files",
        turn.files.iter().map(|(kind, path)| format!("{} {}", word(kind), shorten(path, MOST_COMMAND))),
    );
    list(&mut text, "commands", turn.commands.iter().map(|command| format!("`{}`", shorten(command, MOST_COMMAND))));
    list(&mut text, "calls", turn.calls.iter().map(|call| shorten(call, MOST_COMMAND)));
    if let Some(answer) = &turn.answer {
        text += &format!("- answered: {}\n", shorten(answer, MOST_WORDS));
    }
    text
}

fn list(text: &mut String, what: &str, all: impl ExactSizeIterator<Item = String>) {
    let count = all.len();
    if count == 0 {
        return;
    }
    let shown: Vec<String> = all.take(MOST_LISTED).collect();
    let more = match count - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    *text += &format!("- {what}: {}{more}\n", shown.join("; "));
}

/// On one line, without terminal control sequences.
fn shorten(text: &str, most: usize) -> String {
    one_line(&plain(text), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_taken_out_and_the_words_stay() {
        for (raw, expected) in [
            ("plain größe\n\t日本", "plain größe\n\t日本"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "ablink"),
            ("\u{9b}2Jx\u{85}y\r\nz\x08\x7f", "xy\nz"),
            ("never\x1b]52;c;ends\nnext", "never\nnext"),
            ("half \x1b[3", "half "),
            ("end\x1b", "end"),
            ("a\u{202e}b\u{2066}c", "abc"),
            ("\x1b[\u{e9}t\u{e9}", "\u{e9}t\u{e9}"),
        ] {
            assert_eq!(plain(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn an_answer_is_refused_where_it_is_empty_or_endless() {
        assert_eq!(tidy(" so it was \r\n").as_deref(), Ok("so it was"));
        assert_eq!(tidy(" \n\x1b[0m\x07"), Err(BadSummary::Empty));
        assert_eq!(tidy(&"x".repeat(MOST_SUMMARY + 1)), Err(BadSummary::TooLong));
        assert!(tidy(&"x".repeat(MOST_SUMMARY)).is_ok());
    }

    #[test]
    fn of_a_long_text_the_beginning_and_the_end_stay_and_what_is_left_out_is_said() {
        let mut all = Excerpt::new(40);
        let piece = |n: u32| format!("piece {n:03}\n");
        (0..4).for_each(|n| all.add(piece(n)));
        assert_eq!(all.finish(), ("piece 000\npiece 001\npiece 002\npiece 003\n".into(), 0));
        let mut all = Excerpt::new(40);
        (0..100).for_each(|n| all.add(piece(n)));
        let (text, left_out) = all.finish();
        assert_eq!(left_out, 960);
        let remark = "[… 960 bytes of the conversation are left out here …]\n\n";
        assert_eq!(text, format!("piece 000\npiece 001\n{remark}piece 098\npiece 099\n"));
        // A piece that is too long on its own is kept as the end.
        let mut one = Excerpt::new(4);
        one.add("0123456789".into());
        assert_eq!(one.finish(), ("0123456789".into(), 0));
    }

    #[test]
    fn a_digest_says_that_it_is_one_and_has_what_was_asked_changed_run_and_answered() {
        let turn = DigestTurn {
            number: 5,
            prompt: Some("make\nit \x1b[1mblue".into()),
            files: vec![(ChangeKind::Created, "a.css".into()), (ChangeKind::Deleted, "b.css".into())],
            commands: vec!["npm test".into()],
            calls: Vec::new(),
            answer: Some("It is blue.".into()),
        };
        let told = digest(&[turn, DigestTurn { number: 6, calls: vec!["Edit c".into()], ..DigestTurn::default() }]);
        assert!(told.starts_with("A digest of these turns that piton extracted, without a model"), "{told}");
        let expected = "\nTurn 5\n- asked: make it blue\n- files: created a.css; deleted b.css\n\
                        - commands: `npm test`\n- answered: It is blue.\n\nTurn 6\n- calls: Edit c\n";
        assert!(told.ends_with(expected), "{told}");
    }

    #[test]
    fn a_digest_of_very_many_turns_is_bounded_and_has_the_first_and_the_last() {
        let turn = |number| DigestTurn {
            number,
            prompt: Some(format!("prompt {number} {}", "é".repeat(5000))),
            commands: vec!["true".into(); 1000],
            ..DigestTurn::default()
        };
        let told = digest(&(1..=500).map(turn).collect::<Vec<_>>());
        assert!(told.len() < MOST_DIGEST + 1000, "{}", told.len());
        assert!(told.contains("prompt 1 ") && told.contains("prompt 500 ") && told.contains("; and 980 more"));
        assert!(told.contains("are left out)") && tidy(&told).is_ok());
        assert_eq!(digest(&[turn(1)]).matches("left out").count(), 0);
    }
}
