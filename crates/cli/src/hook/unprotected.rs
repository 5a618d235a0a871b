//! What a user is told once in a session whose agent works where nothing is captured.

use std::path::Path;

use piton_engine::{EventPlace, LeftOut, ObserveError, OpenError};
use piton_wording::escape::escape_path;
use piton_wording::{Text, call, skipped, text};

/// The part of the log's line that says what is not captured.
pub fn remark(left_out: &LeftOut) -> String {
    format!("; not captured: {} ({})", escape_path(&left_out.folder), why(left_out))
}

/// What to tell the user, given where an event was to be captured and whether it was; none where all that the agent works on
/// is.
pub fn warning(place: &EventPlace, is_captured: bool) -> Option<String> {
    let left_out = place.left_out.as_ref()?;
    let folder = escape_path(&left_out.folder);
    let way_out = match left_out.reason.is_none_or(|reason| reason.is_by_rule()) {
        true => text!["; ", call("init").there(&left_out.folder), " makes it a workspace of its own"],
        false => Text::default(),
    };
    let (root, why) = (escape_path(&place.root), why(left_out));
    // Without the reason, which may be another each time, and this is told once.
    let rest = match is_captured {
        true => text!["only ", root, " is"],
        false => text!["and neither is ", root, ": ", call("status").there(&place.root), " tells why"],
    };
    let said = format!("piton: warning: {folder} is not captured ({why}), ");
    Some(text![said, rest, way_out].plain())
}

/// What to tell the user of an event that was not captured at all because of where the agent works.
pub fn refusal(error: &ObserveError) -> Option<String> {
    let ObserveError::Open(error) = error else { return None };
    let way_out = match error {
        OpenError::Refused { .. } => {
            text!["start the agent in a project's folder, or insist with ", call("init").arg("--force")]
        }
        OpenError::Own { .. } => text!["start the agent in the folder that you work in"],
        OpenError::Git { .. } => text!["start the agent in a working tree of it"],
        _ => return None,
    };
    Some(text![format!("piton: warning: nothing is captured: {error}; "), way_out].plain())
}

/// Why a folder is not captured, in a few words.
pub fn why(left_out: &LeftOut) -> &'static str {
    left_out.reason.map_or("in no repository and no workspace", skipped::word)
}

/// A line about a folder that is not captured, for whoever runs a command in it.
pub fn note(left_out: &LeftOut, root: &Path) -> String {
    let (folder, root) = (escape_path(&left_out.folder), escape_path(root));
    format!("{folder} is not captured ({}), only the rest of {root} is", why(left_out))
}
