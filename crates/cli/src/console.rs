//! The two streams: data goes to stdout, talk to stderr.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::rc::Rc;

use piton_engine::{Clock, SystemClock};
use piton_wording::escape::{escape, escape_json};
use piton_wording::lines::{LineKind, Lines, Room};
use piton_wording::words::Now;
use piton_wording::{Failure, Span, Surface, Text, note};
use serde::Serialize;

use crate::args::Color;
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

    /// What there is room for.
    pub fn room(&self) -> Room {
        Room { is_short: self.terminal, now: self.now.clone() }
    }

    /// Writes several lines.
    pub fn write(&self, out: &mut dyn Write, lines: &Lines) -> io::Result<()> {
        lines.iter().try_for_each(|line| match line.kind {
            LineKind::Said => writeln!(out, "{}", self.text(line.text.clone())),
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

/// What the process prints to.
pub struct Console {
    json: bool,
    stdout: BufWriter<Stdout>,
    /// How stdout wants its text.
    pub look: Look,
    /// How stderr wants its text.
    pub talk: Look,
    /// Whether what stdout should have got is given up.
    is_given_up: bool,
}

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
        Self { json, stdout: BufWriter::new(stdout), look, talk, is_given_up: false }
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

    /// The outer error is a bug, the inner one the stream's.
    fn write<T: Serialize>(
        &mut self,
        value: &T,
        text: impl FnOnce(&mut dyn Write, &Look) -> io::Result<()>,
    ) -> Result<io::Result<()>, Failure> {
        if !self.json {
            return Ok(text(&mut self.stdout, &self.look));
        }
        let document = serde_json::to_string(value)
            .map_err(|error| Failure::bug(format!("the result cannot be written as JSON: {error}")))?;
        Ok(writeln!(self.stdout, "{}", escape_json(&document)))
    }

    /// Says something about the work, such as what to do next. Nobody may be listening, which is no failure.
    pub fn say(&mut self, text: impl Into<Text>) {
        // What is printed already comes first where both streams are one terminal.
        let _ = self.stdout.flush();
        let _ = writeln!(io::stderr(), "{}", self.talk.text(text));
    }

    /// Says something that only a person at this command would want to read, not a program that reads JSON.
    pub fn advise(&mut self, text: impl Into<Text>) {
        if !self.json {
            self.say(text);
        }
    }

    /// Says several lines.
    pub fn say_with(&mut self, text: impl FnOnce(&mut dyn Write, &Look) -> io::Result<()>) {
        let _ = self.stdout.flush();
        let _ = text(&mut io::stderr().lock(), &self.talk);
    }

    /// Whether a person is there to be asked.
    pub fn can_ask(&self) -> bool {
        self.talk.terminal && io::stdin().is_terminal()
    }

    /// Asks; no answer is a no.
    pub fn ask(&mut self, question: &str) -> bool {
        let _ = self.stdout.flush();
        let _ = write!(io::stderr(), "{question} [y/N] ");
        let _ = io::stderr().flush();
        let mut answer = String::new();
        match io::stdin().read_line(&mut answer) {
            Ok(0) => {
                // The line that the person did not end.
                let _ = writeln!(io::stderr());
                false
            }
            Ok(_) => matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"),
            Err(_) => false,
        }
    }

    /// Asks for one of some letters; the last of them where none is typed.
    pub fn choose(&mut self, question: &str, letters: &[char]) -> char {
        let otherwise = letters.last().copied().unwrap_or_default();
        let _ = self.stdout.flush();
        let _ = write!(io::stderr(), "{question} ");
        let _ = io::stderr().flush();
        let mut answer = String::new();
        match io::stdin().read_line(&mut answer) {
            Ok(0) | Err(_) => {
                let _ = writeln!(io::stderr());
                otherwise
            }
            Ok(_) => {
                let first = answer.trim().to_lowercase().chars().next();
                first.filter(|letter| letters.contains(letter)).unwrap_or(otherwise)
            }
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
