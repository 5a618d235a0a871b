//! Lines of git's ignore files, said in the words of the glob library, which reads some of them otherwise than git: it
//! takes braces for alternatives, knows neither escapes nor named sets in brackets, and cuts a tab off the end.

use std::iter::Peekable;
use std::str::Chars;

/// The line as the library must be told it; `None` where git finds nothing that it could match.
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

/// Spaces at the end go, unless they are escaped; and so does the half of a line's end that Windows adds.
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
        // At the end of a line the library would cut it off.
        c if c.is_whitespace() => out.extend(['[', c, ']']),
        '{' | '}' => out.extend(['\\', c]),
        c if is_escaped => out.extend(['\\', c]),
        c => out.push(c),
    }
}

/// Reads a set to its closing bracket and writes out each character of it, so that nothing is left to be read
/// otherwise. A slash is never one of them.
fn set(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ascii = [false; 128];
    let mut others = String::new();
    let mut add = |from: char, to: char| {
        (from..=to).take_while(char::is_ascii).for_each(|c| ascii[c as usize] = true);
        others.extend([from, to].iter().filter(|c| !c.is_ascii()));
    };
    // The character that a dash would make a range with.
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
    // The library's own order: a closing bracket only in front, a dash only at the end, and in front nothing that
    // turns the set round. No name has a NUL.
    out.extend(['[', if has(']') { ']' } else { '\0' }]);
    out.extend(('\x01'..='\x7f').filter(|c| !matches!(c, ']' | '-') && has(*c)));
    out.push_str(if negated { "\u{80}-\u{10ffff}" } else { &others });
    out.push_str(if has('-') { "-]" } else { "]" });
    Some(())
}

/// Takes the name of a named set, such as `[:digit:]`, whose first bracket is taken; leaves everything where it is none.
fn named(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut ahead = chars.clone();
    ahead.next();
    let mut name: String = ahead.by_ref().take_while(|c| *c != ']').collect();
    (name.pop() == Some(':')).then(|| *chars = ahead)?;
    Some(name)
}

/// What a named set holds; git matches nothing with a name that it does not know.
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
