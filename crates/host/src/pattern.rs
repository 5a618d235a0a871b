//! Translates lines of git's ignore files for the glob library, which reads some of them differently: it treats braces
//! as alternatives, knows neither escapes nor named classes in brackets, and strips a trailing tab.

use std::iter::Peekable;
use std::str::Chars;

/// The translated line; `None` where it can match nothing in git.
pub(crate) fn translate(line: &str) -> Option<String> {
    let line = trim(line);
    if line.starts_with('#') {
        return None;
    }
    let (body, is_folder) = line.strip_suffix('/').map_or((line, false), |body| (body, true));
    let mut out = String::with_capacity(line.len() + 8);
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '[' => set(&mut chars, &mut out)?,
            '\\' => literal(chars.next()?, true, &mut out),
            c => literal(c, false, &mut out),
        }
    }
    if is_folder {
        out.push('/');
    }
    Some(out)
}

/// Strips trailing spaces, unless they are escaped, and the carriage return of a Windows line ending.
fn trim(line: &str) -> &str {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut end = 0;
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            ' ' => {}
            '\\' => end = chars.next().map_or(line.len(), |(at, c)| at + c.len_utf8()),
            c => end = at + c.len_utf8(),
        }
    }
    &line[..end]
}

fn literal(c: char, is_escaped: bool, out: &mut String) {
    match c {
        // The library would strip it at the end of a line.
        c if c.is_whitespace() => out.extend(['[', c, ']']),
        '{' | '}' => out.extend(['\\', c]),
        c if is_escaped => out.extend(['\\', c]),
        c => out.push(c),
    }
}

/// Reads a bracket expression and writes out each of its characters, so that nothing is left to be read differently. A
/// slash is never one of them.
fn set(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ascii = [false; 128];
    let mut others = String::new();
    let mut add = |from: char, to: char| {
        (from..=to).take_while(char::is_ascii).for_each(|c| ascii[c as usize] = true);
        others.extend([from, to].iter().filter(|c| !c.is_ascii()));
    };
    // The character that a dash would form a range with.
    let mut before = None;
    let mut next = chars.next()?;
    loop {
        before = match (next, before) {
            ('-', Some(from)) if chars.peek() != Some(&']') => {
                let to = chars.next()?;
                add(from, if to == '\\' { chars.next()? } else { to });
                None
            }
            ('[', _) if chars.peek() == Some(&':') => match named(chars) {
                Some(name) => {
                    let holds = holds(&name)?;
                    ('\0'..='\x7f').filter(holds).for_each(|c| add(c, c));
                    None
                }
                None => Some('[').inspect(|c| add(*c, *c)),
            },
            ('\\', _) => Some(chars.next()?).inspect(|c| add(*c, *c)),
            (c, _) => Some(c).inspect(|c| add(*c, *c)),
        };
        next = match chars.next()? {
            ']' => break,
            c => c,
        };
    }
    let has = |c: char| c != '/' && ascii[c as usize] != negated;
    // The library's required order: a closing bracket only first, a dash only last, and nothing first that negates the
    // set. No name contains NUL.
    out.extend(['[', if has(']') { ']' } else { '\0' }]);
    out.extend(('\x01'..='\x7f').filter(|c| !matches!(c, ']' | '-') && has(*c)));
    out.push_str(if negated { "\u{80}-\u{10ffff}" } else { &others });
    out.push_str(if has('-') { "-]" } else { "]" });
    Some(())
}

/// Reads the name of a named class such as `[:digit:]`, after its first bracket; consumes nothing if it is not one.
fn named(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut ahead = chars.clone();
    ahead.next();
    let mut name: String = ahead.by_ref().take_while(|c| *c != ']').collect();
    (name.pop() == Some(':')).then(|| *chars = ahead)?;
    Some(name)
}

/// The members of a named class; in git, an unknown name matches nothing.
fn holds(name: &str) -> Option<fn(&char) -> bool> {
    Some(match name {
        "alnum" => char::is_ascii_alphanumeric,
        "alpha" => char::is_ascii_alphabetic,
        "blank" => |c| matches!(c, ' ' | '\t'),
        "cntrl" => char::is_ascii_control,
        "digit" => char::is_ascii_digit,
        "graph" => char::is_ascii_graphic,
        "lower" => char::is_ascii_lowercase,
        "print" => |c| *c == ' ' || c.is_ascii_graphic(),
        "punct" => char::is_ascii_punctuation,
        "space" => |c| c.is_ascii_whitespace() || *c == '\x0b',
        "upper" => char::is_ascii_uppercase,
        "xdigit" => char::is_ascii_hexdigit,
        _ => return None,
    })
}
