//! Piton's status line in Claude Code's settings file: the last turn, what it changed, whether it was taken back.
//!
//! Like the hooks: only piton's own entry changes, and [`take`] after [`put`] restores the text byte for byte. A status line is
//! piton's when its command runs `piton status --short` and nothing else.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Object, Value};

use crate::jsonc::{self, Container, Json, Style, put_in, quoted, take_out};
use crate::setup::{BadSettings, StatusLine};

const KEY: &str = "statusLine";
const WORDS: [&str; 2] = ["status", "--short"];
/// Whatever becomes of piton, the agent shows an empty line and no error.
const SILENT: &str = "2>/dev/null || :";

/// Adds it, or updates the path of piton in it.
pub fn put(text: &str, program: &Path) -> Result<StatusLine, BadSettings> {
    let command = command(program)?;
    let (mark, body) = text.split_at(text.len() - text.trim_start_matches('\u{feff}').len());
    let line = || vec![("type", Json::Text("command".into())), ("command", Json::Text(command.clone()))];
    if body.trim().is_empty() {
        let root = Json::Object(vec![(KEY, Json::Object(line()))]);
        return Ok(StatusLine::Put(format!("{}\n", Style::tidy().write(None, &root, true, ""))));
    }
    let root = read(body)?;
    let Some(found) = root.get(KEY) else {
        let style = Style::of(body, &root);
        let new = put_in(body, &Container::from(&root), Some(KEY), &Json::Object(line()), &style);
        return Ok(StatusLine::Put(format!("{mark}{new}")));
    };
    let users = found.value.as_object().and_then(|line| line.get_string("command"));
    match users.filter(|text| is_ours(&text.value)) {
        Some(ours) => {
            let new = jsonc::replace(body, ours.range.start..ours.range.end, &quoted(&command));
            Ok(StatusLine::Put(format!("{mark}{new}")))
        }
        None => Ok(StatusLine::Users(users.map(|text| text.value.to_string()))),
    }
}

/// Takes it out with what was added with it. A text without it stays as it is.
pub fn take(text: &str) -> Result<String, BadSettings> {
    let (mark, body) = text.split_at(text.len() - text.trim_start_matches('\u{feff}').len());
    if body.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = read(body)?;
    let at = root.properties.iter().position(|property| {
        let line = property.value.as_object().filter(|_| property.name.as_str() == KEY);
        line.and_then(|line| line.get_string("command")).is_some_and(|command| is_ours(&command.value))
    });
    let Some(at) = at else { return Ok(text.to_owned()) };
    let new = take_out(body, &Container::from(&root), at).unwrap_or_else(|| {
        let (before, after) = (&body[..root.range.start], &body[root.range.end..]);
        // The whole file came with it.
        if before.is_empty() && after == "\n" { String::new() } else { format!("{before}{{}}{after}") }
    });
    Ok(format!("{mark}{new}"))
}

fn command(program: &Path) -> Result<String, BadSettings> {
    let quoted = program.to_str().and_then(|program| shlex::try_quote(program).ok());
    let program = quoted.ok_or_else(|| BadSettings::Program { path: program.to_owned() })?;
    Ok(format!("{program} {} {SILENT}", WORDS.join(" ")))
}

fn is_ours(command: &str) -> bool {
    let words = shlex::split(command).unwrap_or_default();
    let [program, status, short, tail @ ..] = &words[..] else { return false };
    let is_piton = PathBuf::from(program).file_name().is_some_and(|name| name == "piton");
    is_piton && [status, short] == WORDS && (tail.is_empty() || tail.join(" ") == SILENT)
}

fn read(body: &str) -> Result<Object<'_>, BadSettings> {
    let value = jsonc::parse(body).map_err(|error| BadSettings::Json { message: error.to_string() })?;
    let Some(Value::Object(object)) = value else {
        return Err(BadSettings::Shape { what: "the settings file".into(), expected: "a JSON object" });
    };
    if object.properties.iter().filter(|property| property.name.as_str() == KEY).count() > 1 {
        return Err(BadSettings::Twice { key: KEY.to_owned() });
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PITON: &str = "/opt/p i/piton";

    #[test]
    fn what_was_put_is_taken_out_to_the_byte() {
        for text in [
            "",
            "{}",
            "{ }\n",
            "{\n}\n",
            "{\n  // mine\n  \"model\": \"x\",\n}\n",
            "{\"a\":1}",
            "\u{feff}{\"a\": [1]}\n",
            "{\r\n\t\"a\": 1\r\n}\r\n",
        ] {
            let Ok(StatusLine::Put(new)) = put(text, Path::new(PITON)) else { panic!("{text:?}") };
            assert!(
                new.contains(r#""command": "'/opt/p i/piton' status --short"#) || new.contains("status --short"),
                "{new}"
            );
            assert_eq!(put(&new, Path::new(PITON)), Ok(StatusLine::Put(new.clone())), "again");
            assert_eq!(take(&new).as_deref(), Ok(text), "{new:?}");
            let Ok(StatusLine::Put(moved)) = put(&new, Path::new("/usr/bin/piton")) else { panic!("{text:?}") };
            assert_eq!(take(&moved).as_deref(), Ok(text));
        }
    }

    #[test]
    fn a_status_line_of_the_users_is_never_replaced_and_never_taken_out() {
        for command in ["~/.claude/line.sh", "piton status --short | tr a b", "echo $(piton status --short)"] {
            let text = format!("{{\"statusLine\": {{\"type\": \"command\", \"command\": {}}}}}", quoted(command));
            assert_eq!(put(&text, Path::new(PITON)), Ok(StatusLine::Users(Some(command.to_owned()))));
            assert_eq!(take(&text).as_deref(), Ok(&text[..]));
        }
        assert_eq!(put("{\"statusLine\": null}", Path::new(PITON)), Ok(StatusLine::Users(None)));
        assert!(put("[]", Path::new(PITON)).is_err() && put("{", Path::new(PITON)).is_err());
    }
}
