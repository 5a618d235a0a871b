//! What a hook says of operations that had been cut off and that its event ended: files changed without the user's asking.

use std::path::Path;

use piton_engine::view::Recovered;
use piton_wording::escape::{escape, escape_path, escape_view};
use piton_wording::{call, text};

/// So many paths are named; `piton ops` and `piton log` tell the rest.
const NAMED: usize = 5;

/// A line for the user; in a workspace that is not the session's first, with its folder.
pub fn line(one: &Recovered, elsewhere: Option<&Path>) -> String {
    let place = elsewhere.map(|path| format!(" in {}", escape_path(path))).unwrap_or_default();
    let is_whole = one.left_alone.is_empty() && one.left_outside.is_empty() && one.waits_outside.is_empty();
    let came = if one.replaced {
        "and another folder has taken the place of its own"
    } else if one.damaged || one.mixed || !one.moved.is_empty() {
        "and its files may be half changed"
    } else if one.finished {
        "and is done now"
    } else {
        match is_whole {
            true => "and was taken back: the files are as before it",
            false => "and was taken back, but for some files",
        }
    };
    let mut text = format!("piton: note: operation {}{place} had been cut off, {came}", one.operation.short());
    let mut left: Vec<String> = one.moved.iter().chain(&one.left_alone).map(escape_view).collect();
    left.extend(one.left_outside.iter().map(|path| escape(path).into_owned()));
    left.extend(one.waits_outside.iter().map(|left| escape_view(&left.path)));
    left.extend(one.leftovers.iter().map(|left| escape_view(&left.path)));
    if !left.is_empty() {
        let rest = left.len().saturating_sub(NAMED);
        left.truncate(NAMED);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        text += &format!("; left as they are: {}{more}", left.join(", "));
    }
    if let Some(why) = &one.git_stays {
        text += &format!("; git stays as it is: {}", escape(why));
    }
    let back = call("rewind").arg(one.before.short());
    let back = if one.replaced { back.arg("--across") } else { back };
    text![text, "; ", back, " brings back the state before it"].plain()
}
