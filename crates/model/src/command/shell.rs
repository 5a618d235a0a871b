//! A shell's words: a script is cut into simple commands, with what connects them. Only reads; nothing is ever run.
//!
//! What a shell would only know at run time (variables that are not set here, the output of commands) stays a piece of
//! its word, so that nobody takes it for a name.

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Unquoted: `*` and its like are patterns.
    Plain(String),
    Quoted(String),
    Variable(String),
    /// `$(…)` or backticks, with the script inside.
    Output(String),
    /// What only a shell can work out: `${x%y}`, `$((1+1))`, `$1`.
    Unknown,
}

pub(super) type Word = Vec<Piece>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `;`, a line's end, `&&` or `||`.
    Next,
    Pipe,
    /// `&`: what is before it goes on in the background.
    Background,
    /// `(` or `)`.
    Open,
    Close,
    /// Something is written to a file.
    WriteTo(Word),
    /// Something is read from a file.
    ReadFrom(Word),
    /// The text of a here-document or here-string.
    Here(String),
}

/// The tokens of a script, and whether all of it could be read: one that was cut off in the middle has no end.
pub(super) fn tokens(text: &str) -> (Vec<Token>, bool) {
    let mut lexer = Lexer { rest: text.chars().collect(), at: 0, tokens: Vec::new(), waiting: Vec::new(), whole: true };
    lexer.run();
    let whole = lexer.whole && lexer.waiting.is_empty();
    (lexer.tokens, whole)
}

struct Lexer {
    rest: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    /// Here-documents whose text begins after this line: the place of each token, its end, whether tabs are cut.
    waiting: Vec<(usize, String, bool)>,
    whole: bool,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn is_next(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, wanted)| self.peek(ahead) == Some(wanted))
    }

    fn run(&mut self) {
        while let Some(next) = self.peek(0) {
            match next {
                '\n' => {
                    self.at += 1;
                    self.tokens.push(Token::Next);
                    self.here_documents();
                }
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                next if next.is_whitespace() => self.at += 1,
                '#' => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                ';' => self.take(1, Token::Next),
                '&' if self.is_next("&&") => self.take(2, Token::Next),
                '&' if self.is_next("&>>") => self.redirect(3, false),
                '&' if self.is_next("&>") => self.redirect(2, false),
                '&' => self.take(1, Token::Background),
                '|' if self.is_next("||") => self.take(2, Token::Next),
                '|' if self.is_next("|&") => self.take(2, Token::Pipe),
                '|' => self.take(1, Token::Pipe),
                '(' => self.take(1, Token::Open),
                ')' => self.take(1, Token::Close),
                '<' if self.is_next("<<<") => {
                    self.at += 3;
                    self.blanks();
                    let text = literal(&self.word());
                    self.tokens.push(Token::Here(text));
                }
                '<' if self.is_next("<<") => self.here(),
                // What a command writes into such a pipe is no file's.
                '<' | '>' if self.peek(1) == Some('(') => {
                    self.at += 2;
                    let script = self.until_closed();
                    self.tokens.push(Token::Word(vec![Piece::Output(script)]));
                }
                '<' if self.is_next("<&") => self.redirect(2, true),
                '<' if self.is_next("<>") => self.redirect(2, false),
                '<' => self.redirect(1, true),
                '>' if self.is_next(">>") || self.is_next(">|") => self.redirect(2, false),
                '>' if self.is_next(">&") => self.redirect(2, false),
                '>' => self.redirect(1, false),
                digit if digit.is_ascii_digit() && matches!(self.peek(1), Some('<' | '>')) => self.at += 1,
                _ => {
                    let word = self.word();
                    self.tokens.push(Token::Word(word));
                }
            }
        }
    }

    fn take(&mut self, length: usize, token: Token) {
        self.at += length;
        self.tokens.push(token);
    }

    fn blanks(&mut self) {
        while self.peek(0).is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
    }

    fn redirect(&mut self, length: usize, reads: bool) {
        let is_copy = self.rest.get(self.at + length - 1) == Some(&'&');
        self.at += length;
        self.blanks();
        let word = self.word();
        // `2>&1` only joins two streams.
        if is_copy && literal(&word).chars().all(|c| c.is_ascii_digit() || c == '-') {
            return;
        }
        self.tokens.push(if reads { Token::ReadFrom(word) } else { Token::WriteTo(word) });
    }

    fn here(&mut self) {
        self.at += 2;
        let cuts_tabs = self.peek(0) == Some('-');
        self.at += usize::from(cuts_tabs);
        self.blanks();
        let end = literal(&self.word());
        self.waiting.push((self.tokens.len(), end, cuts_tabs));
        self.tokens.push(Token::Here(String::new()));
    }

    /// Reads the here-documents that begin on this line.
    fn here_documents(&mut self) {
        for (place, end, cuts_tabs) in std::mem::take(&mut self.waiting) {
            let mut text = String::new();
            loop {
                if self.peek(0).is_none() {
                    self.whole = false;
                    break;
                }
                let mut line = String::new();
                while let Some(next) = self.peek(0).filter(|c| *c != '\n') {
                    line.push(next);
                    self.at += 1;
                }
                self.at += 1;
                let given = if cuts_tabs { line.trim_start_matches('\t') } else { &line };
                if given == end {
                    break;
                }
                text.push_str(given);
                text.push('\n');
            }
            self.tokens[place] = Token::Here(text);
        }
    }

    /// The script up to the bracket that closes it.
    fn until_closed(&mut self) -> String {
        let (mut depth, mut text) = (1, String::new());
        let mut quote = None;
        while let Some(next) = self.peek(0) {
            self.at += 1;
            match (next, quote) {
                ('\\', None | Some('"')) => {
                    text.push(next);
                    text.extend(self.peek(0));
                    self.at += 1;
                    continue;
                }
                ('\'' | '"', None) => quote = Some(next),
                (c, Some(open)) if c == open => quote = None,
                ('(', None) => depth += 1,
                (')', None) => {
                    depth -= 1;
                    if depth == 0 {
                        return text;
                    }
                }
                _ => {}
            }
            text.push(next);
        }
        self.whole = false;
        text
    }

    fn word(&mut self) -> Word {
        let mut pieces: Word = Vec::new();
        let push = |pieces: &mut Word, c: char, is_quoted: bool| match (pieces.last_mut(), is_quoted) {
            (Some(Piece::Plain(text)), false) | (Some(Piece::Quoted(text)), true) => text.push(c),
            (_, false) => pieces.push(Piece::Plain(c.to_string())),
            (_, true) => pieces.push(Piece::Quoted(c.to_string())),
        };
        let mut in_quotes = false;
        while let Some(next) = self.peek(0) {
            match next {
                '"' => {
                    in_quotes = !in_quotes;
                    if in_quotes {
                        pieces.push(Piece::Quoted(String::new()));
                    }
                    self.at += 1;
                }
                '\\' => {
                    let escaped = self.peek(1);
                    self.at += 2;
                    match escaped {
                        Some('\n') | None => {}
                        Some(c) if in_quotes && !matches!(c, '"' | '\\' | '$' | '`') => {
                            push(&mut pieces, '\\', true);
                            push(&mut pieces, c, true);
                        }
                        Some(c) => push(&mut pieces, c, true),
                    }
                }
                '$' => self.dollar(&mut pieces, in_quotes),
                '`' => {
                    self.at += 1;
                    let mut script = String::new();
                    while let Some(c) = self.peek(0).filter(|c| *c != '`') {
                        script.push(c);
                        self.at += 1;
                    }
                    self.whole &= self.peek(0).is_some();
                    self.at += 1;
                    pieces.push(Piece::Output(script));
                }
                c if in_quotes => {
                    push(&mut pieces, c, true);
                    self.at += 1;
                }
                '\'' => {
                    self.at += 1;
                    let mut text = String::new();
                    while let Some(c) = self.peek(0).filter(|c| *c != '\'') {
                        text.push(c);
                        self.at += 1;
                    }
                    self.whole &= self.peek(0).is_some();
                    self.at += 1;
                    pieces.push(Piece::Quoted(text));
                }
                c if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') => break,
                c => {
                    push(&mut pieces, c, false);
                    self.at += 1;
                }
            }
        }
        self.whole &= !in_quotes;
        pieces
    }

    fn dollar(&mut self, pieces: &mut Word, in_quotes: bool) {
        self.at += 1;
        match self.peek(0) {
            Some('(') if self.peek(1) == Some('(') => {
                self.at += 1;
                self.until_closed();
                pieces.push(Piece::Unknown);
            }
            Some('(') => {
                self.at += 1;
                let script = self.until_closed();
                pieces.push(Piece::Output(script));
            }
            Some('{') => {
                let mut name = String::new();
                self.at += 1;
                while let Some(c) = self.peek(0).filter(|c| *c != '}') {
                    name.push(c);
                    self.at += 1;
                }
                self.whole &= self.peek(0).is_some();
                self.at += 1;
                let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                pieces.push(if is_name { Piece::Variable(name) } else { Piece::Unknown });
            }
            // `$'…'` has escapes of its own; as a name it is what it looks like.
            Some('\'') if !in_quotes => {}
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = self.peek(0).filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                    self.at += 1;
                }
                pieces.push(Piece::Variable(name));
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '@' | '*' | '#' | '?' | '$' | '!' | '-') => {
                self.at += 1;
                pieces.push(Piece::Unknown);
            }
            _ => pieces.push(Piece::Quoted("$".to_owned())),
        }
    }
}

/// The text of a word as far as it stands there.
pub(super) fn literal(word: &Word) -> String {
    let text = word.iter().map(|piece| match piece {
        Piece::Plain(text) | Piece::Quoted(text) => text.as_str(),
        Piece::Variable(_) | Piece::Output(_) | Piece::Unknown => "",
    });
    text.collect()
}
