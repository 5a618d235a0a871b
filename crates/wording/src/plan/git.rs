//! Where a repository goes, or why it stays.

use piton_engine::view::{GitPlanView, HeadMoved};

use crate::call::flag;
use crate::escape::escape_path;
use crate::lines::Lines;
use crate::text;
use crate::text::{Style, Text, note};
use crate::words::plural;

/// What becomes of a repository: what was asked for, else what stays as it is.
pub fn say(out: &mut Lines, git: Option<&GitPlanView>, stays: Option<&str>, moved: Option<&HeadMoved>) {
    if let Some(why) = stays {
        out.say(note(format!("git stays as it is: {why}")));
    }
    let Some(git) = git else {
        if let (Some(HeadMoved { was, is }), None) = (moved, stays) {
            let said = format!("git was at {was} then and is at {is} now, and stays there; ");
            out.say(note(text![said, "with ", flag("--git"), " a rewind moves it back"]));
        }
        return;
    };
    let mut parts = Vec::new();
    // Where HEAD stays on its branch, the branch is what moves.
    let is_on = |head: &str| git.branch.as_ref().is_some_and(|branch| head.starts_with(&format!("{branch} (")));
    if git.from != git.to && !(is_on(&git.from) && is_on(&git.to)) {
        parts.push(format!("HEAD from {} to {}", git.from, git.to));
    }
    if let Some(branch) = &git.branch {
        let end = |commit: &Option<String>| commit.clone().unwrap_or_else(|| "nothing".to_owned());
        parts.push(format!("{branch} from {} to {}", end(&git.branch_from), end(&git.branch_to)));
    }
    if git.index_changes > 0 {
        parts.push(format!("{} of the index", plural(git.index_changes, "path")));
    }
    if parts.is_empty() {
        parts.push("nothing to do".to_owned());
    }
    out.say(text![Text::new(Style::Bold, "git:"), " ", parts.join(", ")]);
    if let Some(whole) = &git.whole_repository {
        out.say(note(format!("HEAD and the index are those of all of {}", escape_path(whole))));
    }
}
