//! Where Claude Code stores a transcript, and what it stores next to it.

use std::path::{Path, PathBuf};

use super::branch::is_session_id;

/// Its own folders next to the transcripts', limited to names that hardly anyone else uses: its configuration may be in
/// a folder of the user's.
const BESIDE: [&str; 3] = ["file-history", "session-env", "shell-snapshots"];

pub fn file_name(session: &str) -> String {
    format!("{session}.jsonl")
}

/// The name of the folder in `~/.claude/projects` for the transcripts of sessions that began in `cwd`.
///
/// Every character but ASCII letters and digits becomes `-`. Claude Code cuts names over 200 characters and adds a hash
/// of its own, so the answer is `None` for those: a hook's report has the path itself.
pub fn project_folder(cwd: &str) -> Option<String> {
    let mut name = String::new();
    for c in cwd.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c),
            // JavaScript replaces UTF-16 units, so an emoji becomes two.
            c => name.extend(std::iter::repeat_n('-', c.len_utf16())),
        }
    }
    (name.len() <= 200).then_some(name)
}

/// Whether a path has the name of a transcript: `SESSION.jsonl`, of the session that reports it or of another one.
pub fn looks_like_transcript(session: &str, path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    path.extension().is_some_and(|ending| ending == "jsonl")
        && stem.is_some_and(|stem| stem == session || is_session_id(stem))
}

/// What belongs to the session of a transcript. In its usual place, `projects/-the-folder/SESSION.jsonl`, that is the
/// folder with the transcripts, including those of subagents, and what is stored next to `projects`.
pub fn belongings(transcript: &Path) -> Vec<PathBuf> {
    let session = transcript.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_session_id(stem));
    let (Some(session), Some(folder)) = (session, transcript.parent()) else { return Vec::new() };
    // Named after an absolute path, whose `/` became `-`.
    let is_named_so = folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"-"));
    let projects = folder.parent().filter(|above| above.file_name().is_some_and(|name| name == "projects"));
    match projects.and_then(Path::parent).filter(|_| is_named_so) {
        Some(home) => {
            let beside = BESIDE.iter().map(|name| home.join(name));
            std::iter::once(folder.to_owned()).chain(beside).collect()
        }
        None => vec![folder.join(session)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_folder_is_its_path_with_everything_but_letters_and_digits_as_dashes() {
        for (cwd, expected) in [
            ("/home/dev/work", Some("-home-dev-work")),
            ("/home/dev/my.app_2", Some("-home-dev-my-app-2")),
            ("/é/😀", Some("-----")),
        ] {
            assert_eq!(project_folder(cwd).as_deref(), expected);
        }
        assert_eq!(project_folder(&"/long".repeat(50)), None);
    }
}
