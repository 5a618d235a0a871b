//! Setting and unsetting a key in a settings file's text: comments, order and everything else stay as they are.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::mistake::{BadSettings, SettingsMistake};
use super::{Key, Layer, LayerSettings, read};

/// Why a key could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The value is nothing for the key.
    #[error(transparent)]
    Value(SettingsMistake),
    /// The file has a mistake in it.
    #[error("{0}")]
    File(BadSettings),
    /// The key is written in a form that is not edited here.
    #[error("`{}` is written there in a form that only an editor can change", .0.name())]
    Form(Key),
}

/// The text with a key set. `value` is as typed in a shell: without quotes, a list with commas between its entries.
pub fn with_key(text: &str, layer: Layer, key: Key, value: &str) -> Result<String, EditError> {
    let literal = literal(key, value);
    let line = format!("{} = {literal}", own_name(key));
    // Whether the value is right is asked of a file that has nothing else.
    let alone = read(&format!("[{}]\n{line}\n", section(key)), layer).map_err(|bad| EditError::Value(bad.wrong))?;
    read(text, layer).map_err(EditError::File)?;
    let new = match place(text, key) {
        Some((_, value)) => splice(text, value, &literal),
        None => added(text, key, &line, &literal),
    };
    match read(&new, layer) {
        Ok(now) if now.has_same(&alone, key) => Ok(new),
        _ => Err(EditError::Form(key)),
    }
}

/// The text without a key: its line goes, with a comment at its end.
pub fn without_key(text: &str, layer: Layer, key: Key) -> Result<String, EditError> {
    read(text, layer).map_err(EditError::File)?;
    let Some((name, value)) = place(text, key) else { return Ok(text.to_owned()) };
    let start = text[..name.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[value.end..].find('\n').map_or(text.len(), |end| value.end + end + 1);
    let new = splice(text, start..end, "");
    match read(&new, layer) {
        Ok(now) if now.has_same(&LayerSettings::empty(layer), key) => Ok(new),
        _ => Err(EditError::Form(key)),
    }
}

/// A value as a file has it.
fn literal(key: Key, value: &str) -> String {
    let value = value.trim();
    match key {
        Key::Automatic | Key::UserLine | Key::TellAgent | Key::MostBranches if is_bare(value) => value.to_owned(),
        Key::Readers | Key::Writers if value.starts_with('[') => value.to_owned(),
        Key::Readers | Key::Writers => {
            let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
            format!("[{}]", names.map(quoted).collect::<Vec<_>>().join(", "))
        }
        _ => quoted(value),
    }
}

/// Whether a text is a value without quotes, so that it cannot be more than one.
fn is_bare(value: &str) -> bool {
    matches!(value, "true" | "false") || !value.is_empty() && value.chars().all(|c| c.is_ascii_digit())
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out + "\""
}

fn section(key: Key) -> &'static str {
    key.name().split_once('.').map_or("", |(section, _)| section)
}

fn own_name(key: Key) -> &'static str {
    key.name().split_once('.').map_or("", |(_, name)| name)
}

/// Where a key's name and its value are.
fn place(text: &str, key: Key) -> Option<(Range<usize>, Range<usize>)> {
    let document = DeTable::parse(text).ok()?;
    let (_, found) = document.get_ref().iter().find(|(name, _)| name.get_ref() == section(key))?;
    let DeValue::Table(keys) = found.get_ref() else { return None };
    let (name, value) = keys.iter().find(|(name, _)| name.get_ref() == own_name(key))?;
    Some((name.span(), value.span()))
}

/// The text with a new line: at the end of its section, or in a new section at the end of the file.
fn added(text: &str, key: Key, line: &str, literal: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let is_header = |line: &str| line.trim_start().starts_with('[');
    let name =
        |line: &str| line.trim_start().strip_prefix('[')?.split_once(']').map(|(name, _)| name.trim().to_owned());
    let mut at = 0;
    let mut is_in_it = false;
    let mut end = None;
    for one in text.split_inclusive('\n') {
        at += one.len();
        match is_header(one) {
            true => is_in_it = name(one).as_deref() == Some(section(key)),
            false if one.trim().is_empty() => continue,
            false => {}
        }
        if is_in_it {
            end = Some(at);
        }
    }
    let break_before = |at: usize| if at == 0 || text[..at].ends_with('\n') { "" } else { newline };
    if let Some(end) = end {
        return splice(text, end..end, &format!("{}{line}{newline}", break_before(end)));
    }
    let has_section =
        DeTable::parse(text).is_ok_and(|all| all.get_ref().iter().any(|(name, _)| name.get_ref() == section(key)));
    if has_section {
        // Its keys are written with their whole names, before every section.
        return format!("{} = {literal}{newline}{text}", key.name());
    }
    let gap = if text.trim().is_empty() { "" } else { newline };
    format!("{text}{}{gap}[{}]{newline}{line}{newline}", break_before(text.len()), section(key))
}

fn splice(text: &str, place: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..place.start], &text[place.end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: Key, value: &str) -> Result<String, EditError> {
        with_key(text, Layer::User, key, value)
    }

    #[test]
    fn a_key_is_set_where_it_stands_or_where_its_section_ends() {
        for (text, key, value, expected) in [
            ("", Key::UserLine, "true", "[hook]\nuser-line = true\n"),
            ("# mine", Key::UserLine, "true", "# mine\n\n[hook]\nuser-line = true\n"),
            (
                "[hook] # a\nuser-line = false # b\n\n[capture]\nautomatic = true\n",
                Key::UserLine,
                "true",
                "[hook] # a\nuser-line = true # b\n\n[capture]\nautomatic = true\n",
            ),
            (
                "[hook]\nuser-line = false\n\n[capture]\n",
                Key::TimeBudget,
                "20s",
                "[hook]\nuser-line = false\ntime-budget = \"20s\"\n\n[capture]\n",
            ),
            ("[capture]\n", Key::SizeLimit, "1GiB", "[capture]\nsize-limit = \"1GiB\"\n"),
            ("hook.user-line = true\n", Key::TellAgent, "false", "hook.tell-agent = false\nhook.user-line = true\n"),
            (
                "[tools]\nreaders = [\n  \"a\",\n]\n",
                Key::Readers,
                "b, mcp__c__*",
                "[tools]\nreaders = [\"b\", \"mcp__c__*\"]\n",
            ),
            (
                "[hook]\r\nuser-line = true\r\n",
                Key::TellAgent,
                "true",
                "[hook]\r\nuser-line = true\r\ntell-agent = true\r\n",
            ),
            ("[hook]\nuser-line = true", Key::TellAgent, "true", "[hook]\nuser-line = true\ntell-agent = true\n"),
            ("", Key::SummaryCommand, "llm -s \"x\\y\"", "[summary]\ncommand = \"llm -s \\\"x\\\\y\\\"\"\n"),
        ] {
            assert_eq!(set(text, key, value).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn a_key_is_unset_with_its_line_alone() {
        let text = "# a\n[hook]\nuser-line = true # mine\ntell-agent = false\n";
        assert_eq!(without_key(text, Layer::User, Key::UserLine).as_deref(), Ok("# a\n[hook]\ntell-agent = false\n"));
        assert_eq!(without_key(text, Layer::User, Key::Automatic).as_deref(), Ok(text));
        let list = "[tools]\nreaders = [\n  \"a\",\n]\nwriters = []\n";
        assert_eq!(without_key(list, Layer::User, Key::Readers).as_deref(), Ok("[tools]\nwriters = []\n"));
    }

    #[test]
    fn what_is_wrong_changes_nothing() {
        assert!(matches!(set("", Key::TimeBudget, "soon"), Err(EditError::Value(_))));
        let Err(EditError::Value(wrong)) = set("", Key::UserLine, "maybe") else { panic!() };
        assert!(!wrong.to_string().contains("TOML"), "{wrong}");
        assert!(matches!(set("", Key::MostBranches, "1\n[hook]"), Err(EditError::Value(_))));
        assert!(matches!(set("[hoook]\n", Key::UserLine, "true"), Err(EditError::File(_))));
        assert!(matches!(set("hook = { user-line = true }\n", Key::TellAgent, "true"), Err(EditError::Form(_))));
        let personal = with_key("", Layer::Workspace, Key::SummaryCommand, "x");
        assert!(matches!(personal, Err(EditError::Value(SettingsMistake::NotHere(_)))), "{personal:?}");
    }
}
