//! The two streams: data goes to stdout, talk to stderr.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::rc::Rc;

use piton_engine::{Clock, SystemClock};
use piton_wording::escape::{escape, escape_json};
use piton_wording::lines::{LineKind, Lines, Room};
use piton_wording::words::Now;
use piton_wording::{Failure, Part, Span, Style, Surface, Text, note};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::args::Color;
use crate::pager::Pager;
use crate::paint::Paint;
use crate::table::ShownText;
use crate::zone;

/// How a stream wants its text.
#[derive(Clone, Debug)]
pub struct Look {
    /// Its colours.
    pub paint: Paint,
    /// Whether a person looks at it right now.
    pub terminal: bool,
    /// How many columns it has.
    pub width: usize,
    /// What ages count from.
    pub now: Now,
    /// How commands are named in what is said.
    pub surface: Rc<dyn Surface>,
}

impl Look {
    /// A terminal without colour, for tests.
    #[cfg(test)]
    pub fn plain(width: usize) -> Self {
        let now = Now::utc(piton_engine::model::Timestamp(0));
        Self { paint: Paint::none(), terminal: true, width, now, surface: Rc::new(piton_wording::Terminal::default()) }
    }

    /// A text as it is shown here: escaped, with its colours, and with commands as they are typed here.
    pub fn text(&self, text: impl Into<Text>) -> String {
        let show = |span: &Span| self.paint.styled(span.style, escape(&span.part.said(self.surface.as_ref())));
        text.into().spans().iter().map(show).collect()
    }

    /// The same, broken between words where a terminal has no room; what follows a break stands `indent` columns further in
    /// than the line, or behind the same bar. Commands are not broken: they are to be copied.
    pub fn wrapped(&self, text: impl Into<Text>, indent: usize) -> String {
        let text = text.into();
        let plain = text.plain();
        if !self.terminal || text.width() <= self.width {
            return self.text(text);
        }
        let spaces = plain.chars().take_while(|c| *c == ' ').count();
        let (columns, next) = match plain.trim_start().starts_with(BAR) {
            true => (spaces + 2, format!("{:spaces$}{} ", "", self.paint.dim(BAR))),
            false => (spaces + indent, " ".repeat(spaces + indent)),
        };
        let (mut out, mut line) = (String::new(), Vec::new());
        let mut used = 0;
        for word in words_of(&text, self.surface.as_ref()) {
            let width: usize = word.iter().map(|(_, piece)| piece.width()).sum();
            let shown = width - usize::from(word.last().is_some_and(|(_, piece)| piece.ends_with(' ')));
            if used + shown > self.width && used > columns {
                out += &self.pieces(std::mem::take(&mut line));
                out = format!("{out}\n{next}");
                used = columns;
            }
            line.extend(word);
            used += width;
        }
        out + &self.pieces(line)
    }

    /// One line, without the space at its end.
    fn pieces(&self, mut line: Vec<(Style, String)>) -> String {
        if let Some((_, last)) = line.last_mut() {
            last.truncate(last.trim_end().len());
        }
        let runs = line.chunk_by(|(one, _), (other, _)| one == other);
        let run = |run: &[(Style, String)]| run.iter().map(|(_, piece)| piece.as_str()).collect::<String>();
        runs.filter_map(|pieces| pieces.first().map(|(style, _)| self.paint.styled(*style, run(pieces)))).collect()
    }

    /// What there is room for.
    pub fn room(&self) -> Room {
        Room { is_short: self.terminal, now: self.now.clone() }
    }

    /// Writes several lines.
    pub fn write(&self, out: &mut dyn Write, lines: &Lines) -> io::Result<()> {
        lines.iter().try_for_each(|line| match line.kind {
            LineKind::Said => writeln!(out, "{}", self.wrapped(line.text.clone(), HANGING)),
            LineKind::Content => writeln!(out, "{}", line.text.cut(self, usize::MAX).painted),
            LineKind::CutContent => {
                let width = self.width.saturating_sub(MARGIN).max(NARROWEST);
                writeln!(out, "{}", line.text.cut(self, width).painted)
            }
        })
    }

    /// How many lines of a list are shown: a terminal is not flooded, a file gets all.
    pub fn lines(&self, on_terminal: usize) -> usize {
        if self.terminal { on_terminal } else { usize::MAX }
    }

    /// Whether contents are written as they are: only where no terminal will get them, now or through `less -R`.
    pub fn is_raw(&self) -> bool {
        !self.terminal && !self.paint.is_on()
    }
}

/// The words of a text, each with the space after it, in the pieces that have a style of their own.
fn words_of(text: &Text, surface: &dyn Surface) -> Vec<Vec<(Style, String)>> {
    let mut words: Vec<Vec<(Style, String)>> = Vec::new();
    let mut is_ended = true;
    for Span { style, part } in text.spans() {
        let said = escape(&part.said(surface)).into_owned();
        let pieces: Vec<&str> = match part {
            Part::Call(_) | Part::Flag(_) => vec![&said],
            Part::Words(_) | Part::Time(_) => said.split_inclusive(' ').collect(),
        };
        for piece in pieces {
            let is_end = piece.ends_with(' ');
            match words.last_mut().filter(|_| !is_ended) {
                Some(word) => word.push((*style, piece.to_owned())),
                None => words.push(vec![(*style, piece.to_owned())]),
            }
            is_ended = is_end;
        }
    }
    words
}

/// What the process prints to.
pub struct Console {
    json: bool,
    stdout: Out,
    /// Whether what is printed is to be read in a pager, once something is.
    pages: bool,
    /// What was said while the pager had the terminal.
    said: Vec<u8>,
    /// How stdout wants its text.
    pub look: Look,
    /// How stderr wants its text.
    pub talk: Look,
    /// Whether what stdout should have got is given up.
    is_given_up: bool,
}

/// Where what is printed goes.
enum Out {
    Stdout(BufWriter<Stdout>),
    Pager(Pager),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Pager(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Pager(out) => out.flush(),
        }
    }
}

/// How far a broken line is set in.
const HANGING: usize = 2;
/// Stands before quoted lines.
const BAR: &str = "│";
/// Contents end before the last columns do.
const MARGIN: usize = 2;
/// Contents narrower than this say nothing.
const NARROWEST: usize = 36;
/// The width of what is no terminal.
const WIDTH: usize = 120;

impl Console {
    /// The process's own streams.
    pub fn new(json: bool, color: Color, surface: Rc<dyn Surface>) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let now = Now { at: SystemClock.now(), zone: zone::local() };
        let look = Look {
            paint: Paint::for_stream(color, &stdout),
            terminal: stdout.is_terminal(),
            width: width(rustix::termios::tcgetwinsize(&stdout)),
            now: now.clone(),
            surface: Rc::clone(&surface),
        };
        let talk = Look {
            paint: Paint::for_stream(color, &stderr),
            terminal: stderr.is_terminal(),
            width: width(rustix::termios::tcgetwinsize(&stderr)),
            now,
            surface,
        };
        let stdout = Out::Stdout(BufWriter::new(stdout));
        Self { json, stdout, pages: false, said: Vec::new(), look, talk, is_given_up: false }
    }

    /// Lets what is printed be read in a pager, where it goes to a terminal.
    pub fn page(&mut self) {
        self.pages = self.look.terminal && !self.json;
    }

    /// Waits until the user has read what is in the pager, and says what there was to say meanwhile.
    pub fn finish(self) {
        if let Out::Pager(pager) = self.stdout {
            pager.wait();
            let _ = io::stderr().write_all(&self.said);
        }
    }

    /// Whether one JSON document is wanted.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a command's result: the value itself as JSON, or as text for people.
    pub fn print<T: Serialize>(
        &mut self,
        value: &T,
        text: impl FnOnce(&mut dyn Write, &Look) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.write(value, text)?.map_err(Failure::output)
    }

    /// Prints the result of something that is done already. It stays done where nobody can be told: that is said to stderr
    /// and is no failure, or a script would do it again.
    pub fn print_done<T: Serialize>(
        &mut self,
        value: &T,
        text: impl FnOnce(&mut dyn Write, &Look) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if let Err(error) = self.write(value, text)?.and_then(|()| self.stdout.flush()) {
            self.is_given_up = true;
            // Who closes a pipe has seen enough.
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.say(note(format!("it is done, but the output cannot be written: {error}")));
            }
        }
        Ok(())
    }

    /// Gives stdout bytes as they are. The inner error of `write` is the stream's.
    pub fn print_raw(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<io::Result<()>, Failure>,
    ) -> Result<(), Failure> {
        write(&mut self.stdout)?.map_err(Failure::output)
    }

    /// The outer error is a bug, the inner one the stream's.
    fn write<T: Serialize>(
        &mut self,
        value: &T,
        text: impl FnOnce(&mut dyn Write, &Look) -> io::Result<()>,
    ) -> Result<io::Result<()>, Failure> {
        if !self.json {
            if std::mem::take(&mut self.pages)
                && let Some(pager) = Pager::start()
            {
                let _ = self.stdout.flush();
                self.stdout = Out::Pager(pager);
            }
            return Ok(text(&mut self.stdout, &self.look));
        }
        let document = serde_json::to_string(value)
            .map_err(|error| Failure::bug(format!("the result cannot be written as JSON: {error}")))?;
        Ok(writeln!(self.stdout, "{}", escape_json(&document)))
    }

    /// Says something about the work, such as what to do next. Nobody may be listening, which is no failure.
    pub fn say(&mut self, text: impl Into<Text>) {
        let line = self.talk.wrapped(text, HANGING);
        self.say_with(|out, _| writeln!(out, "{line}"));
    }

    /// Says something that only a person at this command would want to read, not a program that reads JSON.
    pub fn advise(&mut self, text: impl Into<Text>) {
        if !self.json {
            self.say(text);
        }
    }

    /// Says several lines.
    pub fn say_with(&mut self, text: impl FnOnce(&mut dyn Write, &Look) -> io::Result<()>) {
        // What is printed already comes first where both streams are one terminal.
        let _ = self.stdout.flush();
        let _ = match self.stdout {
            Out::Stdout(_) => text(&mut io::stderr().lock(), &self.talk),
            Out::Pager(_) => text(&mut self.said, &self.talk),
        };
    }

    /// Whether a person is there to be asked.
    pub fn can_ask(&self) -> bool {
        self.talk.terminal && io::stdin().is_terminal()
    }

    /// Asks; no answer is a no.
    pub fn ask(&mut self, question: &str) -> bool {
        self.answer(&format!("{question} [y/N] ")).is_some_and(|answer| matches!(&answer[..], "y" | "yes"))
    }

    /// Asks for one of several answers, each known by its first letter; the last one, which does nothing, where there is no
    /// answer. `[y]es [d]iff [N]o`
    pub fn choose(&mut self, question: &str, answers: &[&'static str]) -> &'static str {
        let Some((none, others)) = answers.split_last() else { return "" };
        let shown = |answer: &str| format!("[{}]{}", &answer[..1], &answer[1..]);
        let others: Vec<String> = others.iter().map(|answer| shown(answer)).collect();
        let none_shown = format!("[{}]{}", none[..1].to_uppercase(), &none[1..]);
        let typed = self.answer(&format!("{question} {} {none_shown} ", others.join(" ")));
        let is_meant =
            |answer: &&&str| typed.as_deref().is_some_and(|typed| **answer == typed || answer[..1] == *typed);
        answers.iter().find(is_meant).unwrap_or(none)
    }

    /// What somebody types at a question, in lower case; none where nobody answers.
    pub fn answer(&mut self, question: &str) -> Option<String> {
        let _ = self.stdout.flush();
        let _ = write!(io::stderr(), "{} ", self.talk.wrapped(question.trim_end(), HANGING));
        let _ = io::stderr().flush();
        let mut typed = String::new();
        match io::stdin().read_line(&mut typed) {
            Ok(0) => {
                // The line that the person did not end.
                let _ = writeln!(io::stderr());
                None
            }
            Ok(_) => Some(typed.trim().to_lowercase()),
            Err(_) => None,
        }
    }

    /// Brings out what is still buffered.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.is_given_up {
            return Ok(());
        }
        self.stdout.flush().map_err(Failure::output)
    }
}

fn width(size: rustix::io::Result<rustix::termios::Winsize>) -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns = told.or_else(|| size.ok().map(|size| usize::from(size.ws_col)));
    columns.filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

#[cfg(test)]
mod tests {
    use piton_wording::{call, text};

    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_never_in_a_command() {
        let look = Look::plain(24);
        for (text, expected) in [
            (
                text!["hint: ", call("log").arg("--future"), " lists them"],
                "hint:\n  `piton log --future`\n  lists them",
            ),
            (text!["  │ one two three four five"], "  │ one two three four\n  │ five"),
            (text!["short, and ", Text::new(Style::Bold, "bold"), ", fits"], "short, and bold, fits"),
            (text!["  a-path-that-is-longer-than-the-line"], "  a-path-that-is-longer-than-the-line"),
        ] {
            assert_eq!(look.wrapped(text, 2), expected);
        }
    }
}
