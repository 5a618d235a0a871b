//! Where a repository goes, or why it stays.

use std::io::{self, Write};

use piton_engine::view::{GitPlanView, HeadMoved};
use piton_wording::escape::{escape, escape_path};
use piton_wording::words::plural;

use crate::console::Look;

/// Writes what becomes of a repository: what was asked for, else what stays as it is.
pub fn write(
    out: &mut dyn Write,
    look: &Look,
    git: Option<&GitPlanView>,
    stays: Option<&str>,
    moved: Option<&HeadMoved>,
) -> io::Result<()> {
    let note = look.paint.warn("note:");
    if let Some(why) = stays {
        writeln!(out, "{note} git stays as it is: {}", escape(why))?;
    }
    let Some(git) = git else {
        let (Some(HeadMoved { was, is }), None) = (moved, stays) else { return Ok(()) };
        return writeln!(
            out,
            "{note} git was at {} then and is at {} now; .git stays as it is",
            escape(was),
            escape(is)
        );
    };
    let mut parts = Vec::new();
    // Where HEAD stays on its branch, the branch is what moves.
    let is_on = |head: &str| git.branch.as_ref().is_some_and(|branch| head.starts_with(&format!("{branch} (")));
    if git.from != git.to && !(is_on(&git.from) && is_on(&git.to)) {
        parts.push(format!("HEAD from {} to {}", escape(&git.from), escape(&git.to)));
    }
    if let Some(branch) = &git.branch {
        let end = |commit: &Option<String>| commit.as_deref().map_or("nothing".into(), |id| escape(id).into_owned());
        parts.push(format!("{} from {} to {}", escape(branch), end(&git.branch_from), end(&git.branch_to)));
    }
    if git.index_changes > 0 {
        parts.push(format!("{} of the index", plural(git.index_changes, "path")));
    }
    if parts.is_empty() {
        parts.push("nothing to do".to_owned());
    }
    writeln!(out, "{} {}", look.paint.bold("git:"), parts.join(", "))?;
    match &git.whole_repository {
        Some(whole) => writeln!(out, "{note} HEAD and the index are those of all of {}", escape_path(whole)),
        None => Ok(()),
    }
}
