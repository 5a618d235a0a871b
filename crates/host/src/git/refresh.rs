//! Refreshing an index's `stat` data without running anything of the user's.
//!
//! Only a filter knows how git sees a file that has one, and no run of ours uses filters. Such an entry stays as it is,
//! and git refreshes it when its user runs it.

use super::Git;
use super::command::GitError;

/// Refreshes an index that has no flags yet.
pub(super) fn refresh(git: &Git) -> Result<(), GitError> {
    let filtered = if git.filters()?.is_empty() { Vec::new() } else { filtered(git)? };
    mark(git, "--assume-unchanged", &filtered)?;
    // If a file differs from the index, git reports that by its exit code, which does not matter here.
    if let Err(error @ GitError::TimedOut { .. }) = git.ask(&["update-index", "-q", "--unmerged", "--refresh"]) {
        return Err(error);
    }
    mark(git, "--no-assume-unchanged", &filtered)
}

/// The files of the index that have a filter, each followed by a NUL byte.
fn filtered(git: &Git) -> Result<Vec<u8>, GitError> {
    let filters = git.filters()?;
    let mut files = Vec::new();
    for entry in git.run(&["ls-files", "-z", "--stage"])?.split(|byte| *byte == 0) {
        // `100644 <id> 0`, a tab and the path. Sides of a conflict are never refreshed.
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
        if entry.starts_with(b"100") && entry[..tab].ends_with(b" 0") {
            files.extend_from_slice(&entry[tab + 1..]);
            files.push(0);
        }
    }
    let said = git.run_with(&["check-attr", "-z", "--stdin", "filter"], &files)?;
    let words: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
    let mut found = Vec::new();
    for [path, _, filter] in words.as_chunks::<3>().0 {
        if std::str::from_utf8(filter).is_ok_and(|filter| filters.contains(filter)) {
            found.extend_from_slice(path);
            found.push(0);
        }
    }
    Ok(found)
}

fn mark(git: &Git, option: &str, paths: &[u8]) -> Result<(), GitError> {
    if !paths.is_empty() {
        git.run_with(&["update-index", "-z", option, "--stdin"], paths)?;
    }
    Ok(())
}
