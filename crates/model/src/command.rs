//! What a shell command does, as far as its text tells: which files it writes, and what it does beside files.
//!
//! The text is read and never run. Whose a change is may depend on the answer, so nothing is claimed that the text does not
//! say: a program that piton does not know may write anything ([`Verdict::Unknown`]), a name that only a shell can work out
//! is no name, and a text that was cut off in the middle is unknown to its end.

mod names;
mod programs;
mod shell;

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

pub use self::names::CommandPlace;
use self::names::{Name, escaped};
use self::shell::{Piece, Token, Word, literal, tokens};
use crate::path::WorkspacePath;

/// What a command does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandClass {
    /// What its parts write.
    writes: Vec<Writes>,
    /// What it does that no checkpoint has.
    effects: BTreeSet<SideEffect>,
}

/// Whether a command writes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It names the file, its folder or a pattern that means it, or it rewrites trees that the file is in.
    Writer,
    /// All of it is known, and it does not write this file: it looks, tests, serves, waits, or writes others.
    Idle,
    Unknown,
}

/// What a command does beside files, as far as it may matter to whoever takes its changes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideEffect {
    /// It sends something to another machine, or may.
    Network,
    /// It pushes commits, or publishes a package or an image.
    Push,
    /// It installs or removes packages.
    Packages,
    Database,
    /// It starts, stops or changes services, containers or machines.
    Services,
    /// It leaves processes running, or ends others.
    Processes,
    /// It runs a script whose content is not known.
    Script,
}

/// What one part of a command writes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Writes {
    Named(Name),
    /// The text of a program in another language, which names files and writes some.
    Code {
        folder: String,
        text: String,
    },
    Unknown,
}

impl CommandClass {
    pub fn of(text: &str) -> Self {
        let mut reading = Reading::default();
        reading.script(text);
        Self { writes: reading.writes, effects: reading.effects }
    }

    /// Whether it writes a file.
    pub fn verdict(&self, path: &WorkspacePath, place: &CommandPlace<'_>) -> Verdict {
        let is_named = |writes: &Writes| match writes {
            Writes::Named(name) => name.names(path, place),
            Writes::Code { folder, text } => programs::code_names(text, folder, path, place),
            Writes::Unknown => false,
        };
        if self.writes.iter().any(is_named) {
            return Verdict::Writer;
        }
        let is_unknown = self.writes.iter().any(|writes| matches!(writes, Writes::Unknown | Writes::Code { .. }));
        if is_unknown { Verdict::Unknown } else { Verdict::Idle }
    }

    /// What it does beside files.
    pub fn effects(&self) -> impl Iterator<Item = SideEffect> {
        self.effects.iter().copied()
    }
}

/// An argument: a text, or something that only a shell can work out.
type Argument = Option<Text>;

/// A known word.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    /// As it stands there, without its quotes.
    plain: String,
    /// As a pattern.
    pattern: String,
}

/// How deep scripts in scripts are followed.
const DEEPEST: u8 = 6;
/// More words than this of one command tell nothing more.
const MOST_WORDS: usize = 4_000;

/// A script that is read from its beginning to its end.
#[derive(Default)]
struct Reading {
    /// The folder that the next command stands in, seen from where it all began; none where that is not known any more.
    folder: Folder,
    /// Variables whose values are known.
    variables: HashMap<String, Vec<Text>>,
    writes: Vec<Writes>,
    effects: BTreeSet<SideEffect>,
    depth: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Folder {
    At(String),
    Unknown,
}

impl Default for Folder {
    fn default() -> Self {
        Self::At(String::new())
    }
}

/// A command without its redirections.
#[derive(Default)]
struct Simple {
    words: Vec<Word>,
    writes_to: Vec<Word>,
    here: Option<String>,
    /// Nothing comes from a pipe, a file or a here-document.
    reads: bool,
}

impl Reading {
    fn script(&mut self, text: &str) {
        if self.depth >= DEEPEST {
            self.writes.push(Writes::Unknown);
            return;
        }
        self.depth += 1;
        let (tokens, is_whole) = tokens(text);
        if !is_whole {
            self.writes.push(Writes::Unknown);
        }
        let mut simple = Simple::default();
        // The names that the commands before it in a pipe print.
        let mut printed: Option<Vec<Name>> = None;
        let mut subshells: Vec<(Folder, HashMap<String, Vec<Text>>)> = Vec::new();
        for token in tokens.into_iter().chain([Token::Next]) {
            match token {
                Token::Word(word) => simple.words.push(word),
                Token::WriteTo(word) => simple.writes_to.push(word),
                Token::ReadFrom(_) => simple.reads = true,
                Token::Here(text) => {
                    simple.here = Some(text);
                    simple.reads = true;
                }
                Token::Pipe => {
                    let piped = std::mem::take(&mut simple);
                    let names = self.command(piped, printed.take());
                    printed = Some(names.unwrap_or_default());
                    simple.reads = true;
                }
                Token::Next | Token::Background => {
                    let last = std::mem::take(&mut simple);
                    let is_anything = !last.words.is_empty();
                    self.command(last, printed.take());
                    if token == Token::Background && is_anything {
                        self.effects.insert(SideEffect::Processes);
                    }
                }
                // `name() { … }`: what it does is known where it is called, and who calls it is not.
                Token::Open if !simple.words.is_empty() => {
                    simple = Simple::default();
                    self.writes.push(Writes::Unknown);
                }
                Token::Open => subshells.push((self.folder.clone(), self.variables.clone())),
                Token::Close => {
                    let last = std::mem::take(&mut simple);
                    self.command(last, printed.take());
                    if let Some((folder, variables)) = subshells.pop() {
                        (self.folder, self.variables) = (folder, variables);
                    }
                }
            }
        }
        self.depth -= 1;
    }

    /// One command of a script. Returns the names that it prints, where it lists files.
    fn command(&mut self, mut simple: Simple, printed: Option<Vec<Name>>) -> Option<Vec<Name>> {
        for word in std::mem::take(&mut simple.writes_to) {
            self.written(&word);
        }
        let mut words = std::mem::take(&mut simple.words);
        // Words that only say how commands follow each other.
        while let Some(first) = words.first().map(literal) {
            match &first[..] {
                "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{" | "time" => {
                    drop(words.remove(0))
                }
                "fi" | "done" | "esac" | "}" | ";;" => return None,
                "for" | "select" => {
                    self.looped(&words);
                    return None;
                }
                "case" => {
                    self.writes.push(Writes::Unknown);
                    return None;
                }
                _ => break,
            }
        }
        // `NAME=value`, before a command or alone.
        let mut set = Vec::new();
        while let Some((name, value)) = words.first().and_then(assignment) {
            words.remove(0);
            set.push(name.clone());
            let values = self.expanded(&value);
            match values.iter().cloned().collect::<Option<Vec<_>>>() {
                Some(values) if words.is_empty() => drop(self.variables.insert(name, values)),
                Some(_) => {}
                None => drop(self.variables.remove(&name)),
            }
        }
        // What a word prints is run too.
        for script in words.iter().flatten().filter_map(output) {
            self.script(&script);
        }
        let expanded = words.iter().flat_map(|word| self.expanded(word)).take(MOST_WORDS).collect::<Vec<_>>();
        if expanded.is_empty() {
            return None;
        }
        programs::Call { reading: self, set, reads: simple.reads, here: simple.here, printed }.run(expanded)
    }

    /// `for NAME in …`: the name stands for each.
    fn looped(&mut self, words: &[Word]) {
        let Some(name) = words.get(1).map(literal) else { return };
        for script in words.iter().skip(3).flatten().filter_map(output) {
            self.script(&script);
        }
        let values: Option<Vec<Text>> = words.iter().skip(3).flat_map(|word| self.expanded(word)).collect();
        match values {
            Some(values) => self.variables.insert(name, values),
            None => self.variables.remove(&name),
        };
    }

    /// Something is redirected to a file.
    fn written(&mut self, word: &Word) {
        for one in self.expanded(word) {
            match one {
                Some(one) if one.plain.starts_with("/dev/") => {}
                one => {
                    let name = one.and_then(|one| self.at(&one.pattern)).map(Name::file);
                    self.writes.push(name.map_or(Writes::Unknown, Writes::Named));
                }
            }
        }
    }

    /// A pattern as one that is seen from where the script began.
    fn at(&self, pattern: &str) -> Option<String> {
        match &self.folder {
            Folder::At(folder) if folder.is_empty() || pattern.starts_with(['/', '~']) => Some(pattern.to_owned()),
            Folder::At(folder) => Some(format!("{folder}/{pattern}")),
            Folder::Unknown if pattern.starts_with('/') => Some(pattern.to_owned()),
            Folder::Unknown => None,
        }
    }

    /// The words that a shell makes of one.
    fn expanded(&self, word: &Word) -> Vec<Argument> {
        let mut all = vec![Text { plain: String::new(), pattern: String::new() }];
        for piece in word {
            match piece {
                Piece::Plain(text) => all.iter_mut().for_each(|one| {
                    one.plain.push_str(text);
                    one.pattern.push_str(text);
                }),
                Piece::Quoted(text) => all.iter_mut().for_each(|one| {
                    one.plain.push_str(text);
                    one.pattern.push_str(&escaped(text));
                }),
                Piece::Variable(name) => {
                    let Some(values) = self.variables.get(name) else { return vec![None] };
                    if values.len() * all.len() > MOST_WORDS {
                        return vec![None];
                    }
                    let with = |one: &Text| {
                        let one = one.clone();
                        values.iter().map(move |value| Text {
                            plain: format!("{}{}", one.plain, value.plain),
                            pattern: format!("{}{}", one.pattern, value.pattern),
                        })
                    };
                    all = all.iter().flat_map(with).collect();
                }
                Piece::Output(script) => {
                    let Some(names) = self.listed(script) else { return vec![None] };
                    // Names that are listed stand for themselves; whole folders of them are patterns.
                    let of = |name: Name| {
                        let pattern = if name.whole { format!("{}/**", name.pattern) } else { name.pattern };
                        Text { plain: pattern.clone(), pattern }
                    };
                    all = names.into_iter().map(of).collect();
                }
                Piece::Unknown => return vec![None],
            }
        }
        all.into_iter().map(Some).collect()
    }

    /// The names that a script prints, where it only lists files.
    fn listed(&self, script: &str) -> Option<Vec<Name>> {
        let mut inner = Self {
            folder: self.folder.clone(),
            variables: self.variables.clone(),
            depth: self.depth + 1,
            ..Self::default()
        };
        if inner.depth >= DEEPEST {
            return None;
        }
        let (tokens, is_whole) = tokens(script);
        let mut simple = Simple::default();
        let mut printed = None;
        for token in tokens.into_iter().chain([Token::Pipe]) {
            match token {
                Token::Word(word) => simple.words.push(word),
                Token::WriteTo(word) if literal(&word) == "/dev/null" => {}
                Token::Pipe => {
                    let names = inner.command(std::mem::take(&mut simple), printed.take())?;
                    printed = Some(names);
                    simple.reads = true;
                }
                _ => return None,
            }
        }
        printed.filter(|_| is_whole && inner.writes.is_empty() && inner.folder != Folder::Unknown)
    }
}

/// `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Piece::Plain(first)) = word.first() else { return None };
    let (name, value) = first.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let rest = [Piece::Plain(value.to_owned())].into_iter().chain(word.iter().skip(1).cloned()).collect();
    is_name.then(|| (name.to_owned(), rest))
}

fn output(piece: &Piece) -> Option<String> {
    match piece {
        Piece::Output(script) => Some(script.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
