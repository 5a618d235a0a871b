//! What Claude Code keeps beside a transcript.

use std::path::{Path, PathBuf};

use super::branch::is_session_id;

/// Folders of its own beside that of the transcripts, by names that hardly anybody else uses: its configuration may be
/// in a folder of the user's.
const BESIDE: [&str; 3] = ["file-history", "session-env", "shell-snapshots"];

/// Whether a path has the name of a transcript: `SESSION.jsonl`, of the session that reports it or of another one.
pub fn looks_like_transcript(session: &str, path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    path.extension().is_some_and(|ending| ending == "jsonl")
        && stem.is_some_and(|stem| stem == session || is_session_id(stem))
}

/// What belongs to the session of a transcript. In its usual place, `projects/-the-folder/SESSION.jsonl`, that is the
/// folder with the transcripts, those of subagents among them, and what is kept beside `projects`.
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
