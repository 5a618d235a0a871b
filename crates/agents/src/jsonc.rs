//! Edits of JSON text that can be undone byte for byte.
//!
//! The text is a person's file: comments, order, indentation and line endings are theirs, and only the bytes of an edit
//! change. An edit leaves no trace of its own in a comment or another file, so what [`take_out`] needs to restore the
//! old text must follow from the new one:
//!
//! - A new item goes directly after the last thing in its list or object. The white space that was there comes after
//!   it, so the white space before it belongs to the edit and is removed with it.
//! - A comma is added only if the item before had none after it. A trailing comma stays one: the new item gets its own.
//! - In an empty list or object, the white space after the item encodes what was there before: as many extra spaces
//!   over tidy formatting as it takes to tell "it did not exist" from `[]` from `[ ]`; see [`Blank`].

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};

/// The value of a text; `None` for a text of only comments.
pub(crate) fn parse(text: &str) -> Result<Option<Value<'_>>, jsonc_parser::errors::ParseError> {
    // Comments and trailing commas, as editors allow in settings; none of the looser forms.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    Ok(jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options)?.value)
}

/// The position of a list or an object in a text, and of its items.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    place: Range<usize>,
    items: Vec<Range<usize>>,
}

impl From<&Object<'_>> for Container {
    fn from(object: &Object<'_>) -> Self {
        let item = |prop: &ObjectProp<'_>| prop.range.start..prop.range.end;
        Self { place: object.range.start..object.range.end, items: object.properties.iter().map(item).collect() }
    }
}

impl From<&Array<'_>> for Container {
    fn from(array: &Array<'_>) -> Self {
        let item = |value: &Value<'_>| value.start()..value.end();
        Self { place: array.range.start..array.range.end, items: array.elements.iter().map(item).collect() }
    }
}

impl Container {
    /// The position of its closing bracket.
    fn close(&self) -> usize {
        self.place.end - 1
    }

    /// What the white space in it looks like when it contains nothing or one item.
    fn blank(&self, text: &str, over_lines: bool) -> Blank {
        let tidy = if over_lines {
            format!("{}{}", newline(text), line_indent(text, self.place.start))
        } else {
            String::new()
        };
        Blank { tidy }
    }
}

/// A value to insert into a text.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Text(String),
    Number(u32),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

/// How a text is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    newline: &'static str,
    unit: String,
    over_lines: bool,
    gap: &'static str,
}

impl Style {
    /// The style of a new file.
    pub fn tidy() -> Self {
        Self { newline: "\n", unit: "  ".into(), over_lines: true, gap: " " }
    }

    /// The style of a text with this outermost object.
    pub fn of(text: &str, root: &Object<'_>) -> Self {
        let first = root.properties.first();
        // A property on its own line shows the indentation of one level; anything else does not.
        let unit =
            first.map(|prop| prop.range.start).filter(|at| starts_line(text, *at)).map(|at| line_indent(text, at));
        let gap = first.map_or(" ", |prop| {
            let colon = text[skip(text, prop.name.end())..].strip_prefix(':').unwrap_or_default();
            if colon.starts_with(char::is_whitespace) { " " } else { "" }
        });
        Self {
            newline: newline(text),
            unit: unit.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned(),
            over_lines: root.properties.is_empty() || text[root.range.start..root.range.end].contains('\n'),
            gap,
        }
    }

    /// A value, or a property if it has a key, as text.
    pub fn write(&self, key: Option<&str>, value: &Json, over_lines: bool, indent: &str) -> String {
        let mut out = String::new();
        if let Some(key) = key {
            out += &quoted(key);
            out.push(':');
            out += if over_lines { " " } else { self.gap };
        }
        let (open, close, items): (_, _, Vec<(Option<&str>, &Json)>) = match value {
            Json::Text(text) => return out + &quoted(text),
            Json::Number(number) => return out + &number.to_string(),
            Json::List(list) => ('[', ']', list.iter().map(|item| (None, item)).collect()),
            Json::Object(props) => ('{', '}', props.iter().map(|(key, item)| (Some(*key), item)).collect()),
        };
        let deeper = format!("{indent}{}", self.unit);
        out.push(open);
        for (at, (key, item)) in items.into_iter().enumerate() {
            out += if at > 0 { "," } else { "" };
            out += &match over_lines {
                true => format!("{}{deeper}", self.newline),
                false => if at > 0 { self.gap } else { "" }.to_owned(),
            };
            out += &self.write(key, item, over_lines, &deeper);
        }
        if over_lines {
            out += self.newline;
            out += indent;
        }
        out.push(close);
        out
    }
}

/// Inserts an item after the last one of a list or object.
pub(crate) fn put_in(text: &str, at: &Container, key: Option<&str>, value: &Json, style: &Style) -> String {
    let end = text[..at.close()].trim_end().len();
    let over_lines = if at.items.is_empty() { style.over_lines } else { text[at.place.clone()].contains('\n') };
    let indent = match at.items.last() {
        Some(last) => line_indent(text, last.start).to_owned(),
        None => format!("{}{}", line_indent(text, at.place.start), style.unit),
    };
    let item = style.write(key, value, over_lines, &indent);
    let before = match (over_lines, at.items.is_empty()) {
        (true, _) => format!("{}{indent}", style.newline),
        (false, true) => String::new(),
        (false, false) => style.gap.to_owned(),
    };
    match at.items.last() {
        Some(last) if comma_after(text, last.end).is_some() => splice(text, &[(end..end, format!("{before}{item},"))]),
        Some(last) => splice(text, &[(last.end..last.end, ",".into()), (end..end, before + &item)]),
        None if end > at.place.start + 1 => splice(text, &[(end..end, before + &item)]),
        None => {
            let after = at.blank(text, over_lines).after(&text[end..at.close()]);
            splice(text, &[(end..at.close(), before + &item + &after)])
        }
    }
}

/// Removes an item again. `None` if the whole list or object was added with it and should be removed with it.
pub(crate) fn take_out(text: &str, at: &Container, index: usize) -> Option<String> {
    let item = at.items[index].clone();
    let before = text[..item.start].trim_end().len();
    let alone = at.items.len() == 1
        && before == at.place.start + 1
        && text[item.end..at.close()].chars().all(char::is_whitespace);
    if alone {
        let over_lines = text[before..item.start].contains('\n');
        let was = at.blank(text, over_lines).before(&text[item.end..at.close()])?;
        return Some(splice(text, &[(before..at.close(), was)]));
    }
    let previous = index.checked_sub(1).map(|previous| at.items[previous].end);
    let comma = comma_after(text, item.end);
    // What follows a line comment must not become part of it.
    let beginning = previous.unwrap_or(at.place.start + 1);
    let mut instead = String::new();
    let rest = comma.filter(|comma| text[item.end..*comma].trim().is_empty()).map_or(item.end, |comma| comma + 1);
    let goes_on = !text[rest..].trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
    if goes_on && ends_in_line_comment(text, beginning, before) {
        instead.push_str(newline(text));
    }
    let gone = (before..item.end, instead);
    let comma_gone = |comma: usize| (comma..comma + 1, String::new());
    Some(match (comma, previous.and_then(|end| comma_after(text, end))) {
        (Some(comma), _) => splice(text, &[gone, comma_gone(comma)]),
        (None, Some(comma)) => splice(text, &[comma_gone(comma), gone]),
        (None, None) => splice(text, &[gone]),
    })
}

pub(crate) fn replace(text: &str, place: Range<usize>, with: &str) -> String {
    splice(text, &[(place, with.to_owned())])
}

/// Text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The white space between the only item of a list or object and its closing bracket, which encodes what was between
/// the brackets before the item was added.
///
/// Tidy formatting means that the list or object itself was added with the item. Any other white space stands for
/// itself, except for spaces followed by tidy formatting: these are shifted to make room for the two cases that have no
/// white space of their own, "the list did not exist" and "it was empty".
struct Blank {
    tidy: String,
}

impl Blank {
    /// What to write after the item, in a list or object that contained this white space.
    fn after(&self, before: &str) -> String {
        let spaces = match (before, self.spaces(before)) {
            ("", _) => 1,
            (_, Some(spaces)) => spaces + self.shift(),
            (_, None) => return before.to_owned(),
        };
        format!("{}{}", " ".repeat(spaces), self.tidy)
    }

    /// The inverse of `after`; `None` if the list or object was added with the item.
    fn before(&self, after: &str) -> Option<String> {
        match self.spaces(after) {
            None => Some(after.to_owned()),
            Some(0) => None,
            Some(1) => Some(String::new()),
            Some(spaces) => Some(format!("{}{}", " ".repeat(spaces - self.shift()), self.tidy)),
        }
    }

    /// The number of spaces before the tidy part of a text.
    fn spaces(&self, text: &str) -> Option<usize> {
        let spaces = text.strip_suffix(self.tidy.as_str())?;
        spaces.bytes().all(|b| b == b' ').then_some(spaces.len())
    }

    /// If tidy formatting is empty, no spaces and "it was empty" are the same.
    fn shift(&self) -> usize {
        if self.tidy.is_empty() { 1 } else { 2 }
    }
}

/// The first line ending in a text.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The indentation of the line that contains a position.
fn line_indent(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = text[line..].find(|c: char| !matches!(c, ' ' | '\t')).map_or(text.len(), |length| line + length);
    &text[line..indent]
}

/// Whether only white space precedes a position in its line.
fn starts_line(text: &str, at: usize) -> bool {
    text[..at].trim_end_matches([' ', '\t']).ends_with('\n')
}

/// The position of the comma after an item.
fn comma_after(text: &str, end: usize) -> Option<usize> {
    let at = skip(text, end);
    text[at..].starts_with(',').then_some(at)
}

/// The next position that is neither white space nor in a comment.
fn skip(text: &str, mut at: usize) -> usize {
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        match comment_end(text, at) {
            Some((end, _)) => at = end,
            None => return at,
        }
    }
}

/// The end of the comment that begins here, and whether it is a line comment.
fn comment_end(text: &str, at: usize) -> Option<(usize, bool)> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        // A `\r` before the `
        // ` is part of the line ending.
        let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
        Some((at + line.trim_end_matches('\r').len(), true))
    } else if rest.starts_with("/*") {
        Some((rest.find("*/").map_or(text.len(), |end| at + end + 2), false))
    } else {
        None
    }
}

/// Whether the text between an item and a later position ends in a line comment.
fn ends_in_line_comment(text: &str, mut at: usize, end: usize) -> bool {
    let mut to_the_line_end = false;
    while at < end {
        match comment_end(text, at) {
            Some((after, line)) => (at, to_the_line_end) = (after, line),
            None => {
                let c = text[at..].chars().next().map_or(1, char::len_utf8);
                (at, to_the_line_end) = (at + c, false);
            }
        }
    }
    to_the_line_end
}

/// Replaces ranges of a text, given in order.
fn splice(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + edits.iter().map(|(_, with)| with.len()).sum::<usize>());
    let mut at = 0;
    for (place, with) in edits {
        out += &text[at..place.start];
        out += with;
        at = place.end;
    }
    out + &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_after_an_item_tells_what_was_there_before() {
        for tidy in ["", "\n", "\r\n  "] {
            let blank = Blank { tidy: tidy.into() };
            assert_eq!(blank.before(tidy), None, "{tidy:?} came with the item");
            let mut seen = vec![tidy.to_owned()];
            for before in ["", " ", "  ", "\n", " \n", "  \n", "\n\n", "\r\n  ", " \r\n  ", "\t", "\n ", "\t\n"] {
                let after = blank.after(before);
                assert_eq!(blank.before(&after).as_deref(), Some(before), "{tidy:?}");
                assert!(!seen.contains(&after), "{after:?} means two things");
                seen.push(after);
            }
        }
    }

    #[test]
    fn a_comment_to_the_end_of_its_line_is_told_from_text_and_from_other_comments() {
        for (text, expected) in [
            (", // x", true),
            ("// x", true),
            ("/* // x */", false),
            ("// x\n,", false),
            ("/* a */ // b", true),
            ("", false),
        ] {
            assert_eq!(ends_in_line_comment(text, 0, text.len()), expected, "{text:?}");
        }
    }

    #[test]
    fn the_comma_behind_an_item_is_found_through_comments() {
        for (text, expected) in
            [(", 2", Some(0)), (" /* , */ , 2", Some(9)), (" // ,\r\n,", Some(7)), (" // ,", None), (" ]", None)]
        {
            assert_eq!(comma_after(text, 0), expected, "{text:?}");
        }
    }
}
