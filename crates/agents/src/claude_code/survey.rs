//! What a branch of a transcript needs to know of it, in one pass: where its turns begin, and where it is whole.

use std::io::{self, BufRead};

use super::lines::{LINE_IN_MEMORY, Lines};
use super::transcript::{Entry, TEXT_IN_MEMORY, TranscriptTurn, read, stream};

/// A transcript, surveyed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Every turn in order, with its place.
    pub turns: Vec<TurnAt>,
    /// The end of the last line that has a newline and can be read: as much of the file as is good for a branch.
    pub length: u64,
    /// Whether bytes without a newline follow: the transcript's writer is at work at a line, or was stopped at it. That
    /// line is in nothing here, even where what is there of it can be read.
    pub cut_off: bool,
    /// How many whole lines could not be read.
    pub unreadable: u64,
    /// The byte at which the line of each compaction begins.
    pub compactions: Vec<u64>,
    /// The folder that the session began in. `claude --resume` finds it from there only.
    pub cwd: Option<String>,
    /// Whether the last turn was interrupted: after its prompt stands the mark that an interruption leaves.
    pub interrupted: bool,
}

/// A turn, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnAt {
    /// The turn.
    pub turn: TranscriptTurn,
    /// The byte at which its user's line begins. The bytes before are the conversation before this turn.
    pub offset: u64,
}

/// Reads a transcript from its beginning.
pub fn survey(reader: impl BufRead) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let mut lines = Lines::new(reader, TEXT_IN_MEMORY);
    loop {
        let unknown = survey.cwd.is_none();
        let in_memory = |bytes: &[u8]| {
            let (cwd, entry) = read(bytes)?;
            Ok((cwd.filter(|_| unknown).map(|cwd| cwd.into_owned()), entry))
        };
        let Some(line) = lines.next(in_memory, |reader| Ok((None, stream(reader)?)))? else { return Ok(survey) };
        if !line.ended {
            survey.cut_off = true;
            return Ok(survey);
        }
        let Ok((cwd, entry)) = line.read else {
            survey.unreadable += 1;
            continue;
        };
        survey.cwd = survey.cwd.or(cwd);
        survey.length = line.end;
        match entry {
            Entry::Boundary => survey.compactions.push(line.at),
            Entry::User(user) => match user.turn_text() {
                Some(text) => {
                    // A transcript of so many turns does not exist.
                    let number = u32::try_from(survey.turns.len() + 1).unwrap_or(u32::MAX);
                    survey.turns.push(TurnAt { turn: user.into_turn(number, text), offset: line.at });
                    survey.interrupted = false;
                }
                None => survey.interrupted |= user.is_interruption() && !survey.turns.is_empty(),
            },
            Entry::Other => {}
        }
    }
}

/// Whether the last turn in a part of a transcript was interrupted. The part may begin within that turn, and in the middle
/// of a line: so the end of a long transcript is enough.
pub fn ends_interrupted(part: impl BufRead) -> io::Result<bool> {
    let mut lines = Lines::new(part, TEXT_IN_MEMORY);
    let mut interrupted = false;
    while let Some(line) = lines.next(|bytes| Ok(read(bytes)?.1), stream)? {
        if let Ok(Entry::User(user)) = line.read {
            interrupted = user.turn_text().is_none() && (interrupted || user.is_interruption());
        }
    }
    Ok(interrupted)
}

/// The prompt of the turn whose line begins where the reader stands, whole, as it was typed: up to about 1 MiB of it.
///
/// Empty where the user gave only an image; none where no turn begins there.
pub fn prompt_at(line: impl BufRead) -> io::Result<Option<String>> {
    let mut lines = Lines::new(line, LINE_IN_MEMORY);
    let line = lines.next(|bytes| Ok(read(bytes)?.1), stream)?;
    Ok(match line.map(|line| line.read) {
        Some(Ok(Entry::User(user))) => user.prompt(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    const TURN: &str = r#"{"type":"user","message":{"content":"x"}}"#;
    const STOPPED: &str =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;

    fn of(transcript: &str) -> Survey {
        survey(BufReader::with_capacity(7, transcript.as_bytes())).unwrap()
    }

    #[test]
    fn the_length_is_that_of_whole_lines_that_can_be_read() {
        let whole = TURN.len() as u64 + 1;
        for (transcript, turns, length, cut_off, unreadable) in [
            (String::new(), 0, 0, false, 0),
            (format!("{TURN}\n"), 1, whole, false, 0),
            (format!("{TURN}\n\n"), 1, whole, false, 0),
            (format!("{TURN}\r\n"), 1, whole + 1, false, 0),
            (format!("\n{TURN}\n"), 1, whole + 1, false, 0),
            (format!("{TURN}\n{}", &TURN[..9]), 1, whole, true, 0),
            // It may be whole, or the beginning of a longer line of another writer.
            (format!("{TURN}\n{TURN}"), 1, whole, true, 0),
            (format!("{TURN}\nnot json\n"), 1, whole, false, 1),
            (format!("{TURN}\nnot json\n{TURN}\n"), 2, 2 * whole + 9, false, 1),
            ("not json".to_owned(), 0, 0, true, 0),
        ] {
            let found = of(&transcript);
            assert_eq!(
                (found.turns.len(), found.length, found.cut_off, found.unreadable),
                (turns, length, cut_off, unreadable),
                "{transcript:?}"
            );
        }
    }

    #[test]
    fn an_interruption_counts_for_the_last_turn_only() {
        let side = STOPPED.replace("\"message\"", "\"isSidechain\":true,\"message\"");
        for (lines, expected) in [
            (vec![TURN], false),
            (vec![TURN, STOPPED], true),
            (vec![TURN, STOPPED, r#"{"type":"mode"}"#], true),
            (vec![TURN, STOPPED, TURN], false),
            (vec![TURN, STOPPED, TURN, STOPPED], true),
            (vec![TURN, &side], false),
            (vec![STOPPED], false),
        ] {
            assert_eq!(of(&(lines.join("\n") + "\n")).interrupted, expected, "{lines:?}");
        }
    }

    #[test]
    fn the_end_of_a_transcript_says_whether_its_last_turn_was_interrupted() {
        for (lines, expected) in [
            (vec!["half of a line\"}", STOPPED], true),
            (vec!["half of a line\"}", STOPPED, TURN], false),
            (vec![TURN, STOPPED, r#"{"type":"assistant"}"#, r#"{"type":"mode"}"#], true),
            (vec![TURN], false),
            (vec![], false),
        ] {
            assert_eq!(ends_interrupted(lines.join("\n").as_bytes()).unwrap(), expected, "{lines:?}");
        }
    }

    #[test]
    fn places_are_right_behind_lines_that_do_not_fit_in_memory() {
        let image = format!(r#"{{"type":"user","toolUseResult":"{}"}}"#, "A".repeat(LINE_IN_MEMORY));
        let many = format!(r#"{{"type":"x","all":["{}"]}}"#, "é\",\"".repeat(LINE_IN_MEMORY / 4));
        let boundary = r#"{"type":"system","subtype":"compact_boundary","cwd":"/v"}"#;
        let later = TURN.replace("\"message\"", "\"cwd\":\"/later\",\"message\"");
        let lines = [TURN, &image, TURN, &many, boundary, &later, ""];
        let starts: Vec<u64> =
            lines.iter().scan(0, |at, line| Some(std::mem::replace(at, *at + line.len() as u64 + 1))).collect();
        let found = of(&lines.join("\n"));
        assert_eq!(found.turns.iter().map(|turn| turn.offset).collect::<Vec<_>>(), [starts[0], starts[2], starts[5]]);
        assert_eq!((found.compactions, found.length, found.unreadable), (vec![starts[4]], starts[6], 0));
        assert_eq!(found.cwd.as_deref(), Some("/v"));
    }

    #[test]
    fn a_prompt_comes_back_whole_and_as_it_was_typed() {
        let long = "é".repeat(100_000);
        let user = |content: &str| format!(r#"{{"type":"user","message":{{"content":{content}}}}}"#);
        let image = format!(r#"{{"type":"image","source":{{"data":"{}"}}}}"#, "A".repeat(2 * LINE_IN_MEMORY));
        for (line, expected) in [
            (user(r#"" do this\n""#), Some(" do this\n")),
            (user(&format!("\"{long}\"")), Some(&*long)),
            (user(&format!(r#"[{image},{{"type":"text","text":"{long}"}}]"#)), Some(&*long)),
            (
                user(
                    r#""<command-message>go</command-message>\n<command-name>/go</command-name>\n<command-args>fast</command-args>""#,
                ),
                Some("/go fast"),
            ),
            (user(&format!("[{image}]")), Some("")),
            (user(r#"[{"type":"tool_result"}]"#), None),
            (r#"{"type":"assistant"}"#.into(), None),
            ("not json".into(), None),
        ] {
            // What follows on other lines is not read.
            let found = prompt_at(format!("{line}\n{TURN}\n").as_bytes()).unwrap();
            assert!(found.as_deref() == expected, "{:.200}", line);
        }
        assert_eq!(prompt_at(io::empty()).unwrap(), None);
    }

    #[test]
    fn a_prompt_is_bounded() {
        let huge = format!(r#"{{"type":"user","message":{{"content":"{}"}}}}"#, "é".repeat(2 * LINE_IN_MEMORY));
        let length = prompt_at(huge.as_bytes()).unwrap().unwrap().len();
        assert!((LINE_IN_MEMORY..LINE_IN_MEMORY + 4).contains(&length), "{length}");
        let blocks = vec![format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(100_000)); 30].join(",");
        let many = format!(r#"{{"type":"user","message":{{"content":[{blocks}]}}}}"#);
        let length = prompt_at(many.as_bytes()).unwrap().unwrap().len();
        assert!((LINE_IN_MEMORY..LINE_IN_MEMORY + 100_100).contains(&length), "{length}");
    }

    #[test]
    fn a_failing_reader_is_an_error() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk"))
            }
        }
        for length in [0, 10, LINE_IN_MEMORY + 10] {
            let text = format!("{TURN}\n\"{}", "a".repeat(length));
            assert!(survey(BufReader::new(text.as_bytes().chain(Fails))).is_err(), "{length}");
        }
    }
}
