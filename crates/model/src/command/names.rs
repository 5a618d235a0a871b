//! Names of files in a command: words with patterns, seen from the folder that the command stands in.

use crate::path::WorkspacePath;

/// A word that names files: with `*`, `?`, `[…]` and `**`, whose quoted forms stand behind a backslash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub pattern: String,
    /// Whether it means everything in a folder that it names.
    pub whole: bool,
    /// Only files whose names end like this; all where empty.
    pub endings: &'static [&'static str],
}

/// Where a command began to run.
#[derive(Clone, Copy, Debug)]
pub struct CommandPlace<'a> {
    /// The workspace, absolute.
    pub root: &'a [u8],
    /// The folder that the command stands in, absolute.
    pub folder: &'a [u8],
}

impl Name {
    pub(super) fn file(pattern: String) -> Self {
        Self { pattern, whole: false, endings: &[] }
    }

    pub(super) fn folder(pattern: String) -> Self {
        Self { pattern, whole: true, endings: &[] }
    }

    pub(super) fn names(&self, path: &WorkspacePath, place: &CommandPlace<'_>) -> bool {
        let name = path.as_bytes();
        if !self.endings.is_empty() && !self.endings.iter().any(|ending| name.ends_with(ending.as_bytes())) {
            return false;
        }
        braces(&self.pattern).iter().any(|pattern| self.is_match(pattern, path, place))
    }

    fn is_match(&self, pattern: &str, path: &WorkspacePath, place: &CommandPlace<'_>) -> bool {
        let Some(pattern) = from_root(pattern, place) else { return false };
        let parts: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
        let pattern: Vec<&[u8]> = pattern.iter().map(Vec::as_slice).collect();
        matches_parts(&pattern, &parts, self.whole)
    }
}

/// The parts of a pattern from the workspace's root on; none where it leads elsewhere. A pattern that means a folder
/// around the workspace means all of it, which is no part.
fn from_root(pattern: &str, place: &CommandPlace<'_>) -> Option<Vec<Vec<u8>>> {
    let parts = |text: &[u8]| -> Vec<Vec<u8>> {
        text.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
    };
    if pattern.starts_with('~') {
        return None;
    }
    let root = parts(place.root);
    let mut at = match pattern.starts_with('/') {
        true => Vec::new(),
        false => parts(place.folder),
    };
    for part in parts(pattern.as_bytes()) {
        match &part[..] {
            b"." => {}
            b".." => drop(at.pop()),
            _ => at.push(part),
        }
    }
    if root.starts_with(&at) {
        return Some(Vec::new());
    }
    at.strip_prefix(&root[..]).map(<[_]>::to_vec)
}

fn matches_parts(pattern: &[&[u8]], path: &[&[u8]], whole: bool) -> bool {
    match (pattern, path) {
        ([], []) => true,
        ([], _) => whole,
        ([b"**", rest @ ..], _) => {
            matches_parts(rest, path, whole) || (!path.is_empty() && matches_parts(pattern, &path[1..], whole))
        }
        ([first, rest @ ..], [part, more @ ..]) => matches_part(first, part, true) && matches_parts(rest, more, whole),
        (_, []) => false,
    }
}

/// Whether a part of a path is one that a pattern means. Like a shell, it takes a leading dot only for one that is said.
fn matches_part(pattern: &[u8], part: &[u8], is_first: bool) -> bool {
    match (pattern, part) {
        ([], []) => true,
        ([b'*' | b'?' | b'[', ..], [b'.', ..]) if is_first => false,
        ([b'*', rest @ ..], _) => {
            matches_part(rest, part, false) || (!part.is_empty() && matches_part(pattern, &part[1..], false))
        }
        ([b'?', rest @ ..], [_, more @ ..]) => matches_part(rest, more, false),
        ([b'[', rest @ ..], [byte, more @ ..]) => match rest.iter().skip(1).position(|b| *b == b']') {
            Some(end) => is_in_class(&rest[..=end], *byte) && matches_part(&rest[end + 2..], more, false),
            None => *byte == b'[' && matches_part(rest, more, false),
        },
        ([b'\\', escaped, rest @ ..], [byte, more @ ..]) => escaped == byte && matches_part(rest, more, false),
        ([byte, rest @ ..], [other, more @ ..]) => byte == other && matches_part(rest, more, false),
        _ => false,
    }
}

fn is_in_class(class: &[u8], byte: u8) -> bool {
    let (is_negated, class) = match class {
        [b'!' | b'^', rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, class),
    };
    let mut rest = class;
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [from, b'-', to, more @ ..] => {
                found |= (*from..=*to).contains(&byte);
                more
            }
            [one, more @ ..] => {
                found |= *one == byte;
                more
            }
        };
    }
    found != is_negated
}

/// The most names that braces make of one.
const MOST: usize = 256;

/// `a{b,c}` is `ab` and `ac`.
fn braces(pattern: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(one) = open.pop() {
        let found = pair(&one).filter(|_| done.len() + open.len() < MOST);
        let Some((start, end)) = found else {
            done.push(one);
            continue;
        };
        for choice in choices(&one[start + 1..end]) {
            open.push(format!("{}{choice}{}", &one[..start], &one[end + 1..]));
        }
    }
    done
}

/// The first pair of braces with a comma in it.
fn pair(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    for (start, _) in text.match_indices('{').filter(|(at, _)| *at == 0 || bytes[at - 1] != b'\\') {
        let mut depth = 0;
        for (at, byte) in bytes.iter().enumerate().skip(start) {
            match byte {
                b'{' => depth += 1,
                b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        if text[start..at].contains(',') {
                            return Some((start, at));
                        }
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    None
}

fn choices(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                all.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&text[from..]);
    all
}

/// A text as a pattern that means it literally.
pub(super) fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | '\\' | '{') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Whether something may be several files.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}
