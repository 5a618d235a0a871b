//! Whether a tracked file differs from the index.
//!
//! Usually decided by `stat`, which the index stores as well. If that differs or could mislead, a few files are read
//! and hashed; git would then note in the index that they are equal, and we must not.

use std::io::Read;
use std::os::fd::AsFd;

use piton_model::git::{ASSUME_VALID, INTENT_TO_ADD, MODE_GITLINK, SKIP_WORKTREE};
use rustix::fs::OFlags;

use super::config::Config;
use super::hash::Format;
use super::index::{Entry, Index, KnownStat};
use super::tree::MODE_FOLDER;
use super::{FileStat, Limits, LookUp, Repository, SeenPath, files};
use crate::bounded;
use crate::root::Root;
use crate::sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Same,
    Changed,
    /// Too expensive to decide.
    Unsure,
}

/// Whether any tracked file differs from the index; `None` if that could not be decided within the limits.
pub(super) fn has_changes(
    repository: &Repository,
    index: &Index,
    config: &Config,
    limits: &Limits,
    seen: &mut LookUp<'_>,
) -> Option<bool> {
    let mut check = Check {
        index,
        config,
        root: Root::open(&repository.work_tree).ok()?,
        attributes: repository.common_dir.join("info/attributes"),
        asked_left: limits.asked,
        files_left: limits.hashed_files,
        bytes_left: limits.hashed_bytes,
    };
    let mut is_sure = true;
    for entry in &index.entries {
        match check.entry(entry, seen) {
            Answer::Same => {}
            Answer::Changed => return Some(true),
            Answer::Unsure => is_sure = false,
        }
    }
    is_sure.then_some(false)
}

struct Check<'a> {
    index: &'a Index,
    config: &'a Config,
    root: Root,
    attributes: std::path::PathBuf,
    asked_left: usize,
    files_left: usize,
    bytes_left: u64,
}

impl Check<'_> {
    fn entry(&mut self, entry: &Entry, seen: &mut LookUp<'_>) -> Answer {
        let flags = u16::from(entry.flags);
        let mode = self.index.mode(entry);
        if entry.stage > 0 || flags & INTENT_TO_ADD != 0 {
            return Answer::Changed;
        }
        if mode == MODE_GITLINK || flags & ASSUME_VALID != 0 {
            return Answer::Same;
        }
        let may_be_missing = flags & SKIP_WORKTREE != 0;
        if may_be_missing && !self.config.is_sparse {
            return Answer::Same;
        }
        let path = self.index.path(entry);
        let stat = match seen(path.strip_suffix(b"/").unwrap_or(path)) {
            SeenPath::Stat(stat) => Some(stat),
            SeenPath::Missing if may_be_missing => None,
            // Checked again even if the caller says so: a difference is only reported for what is really there.
            SeenPath::Missing | SeenPath::Unknown => match self.asked_left.checked_sub(1) {
                Some(left) => {
                    self.asked_left = left;
                    self.ask(path)
                }
                None => return Answer::Unsure,
            },
        };
        match stat {
            None if may_be_missing => Answer::Same,
            None => Answer::Changed,
            // Something is where a sparse checkout left out a whole folder.
            Some(_) if mode == MODE_FOLDER => Answer::Unsure,
            Some(stat) => self.compare(entry, mode, &stat),
        }
    }

    fn ask(&self, path: &[u8]) -> Option<FileStat> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let fd = self.root.open_beneath(path, sys::HANDLE).ok()?;
        Some(FileStat::of(&rustix::fs::fstat(&fd).ok()?))
    }

    fn compare(&mut self, entry: &Entry, mode: u32, stat: &FileStat) -> Answer {
        const KIND: u32 = 0o170_000;
        const LINK: u32 = 0o120_000;
        const FILE: u32 = 0o100_000;
        let is_link_as_file = mode & KIND == LINK && stat.mode & KIND == FILE && !self.config.symlinks;
        if mode & KIND != stat.mode & KIND && !is_link_as_file {
            return Answer::Changed;
        }
        if self.config.file_mode && mode & KIND == FILE && (mode ^ stat.mode) & 0o100 != 0 {
            return Answer::Changed;
        }
        let known = self.index.known(entry);
        // Git writes 0 to have the file read the next time.
        if known.size != 0 && known.size != stat.size as u32 {
            return Answer::Changed;
        }
        if is_as_known(&known, stat) && !self.could_mislead(&known) {
            return Answer::Same;
        }
        match self.files_left.checked_sub(1) {
            Some(left) if stat.size <= self.bytes_left => {
                self.files_left = left;
                self.bytes_left -= stat.size;
                self.read(entry, stat)
            }
            _ => Answer::Unsure,
        }
    }

    /// A file written at the same time as the index may have been written again since.
    fn could_mislead(&self, known: &KnownStat) -> bool {
        let written = self.index.written;
        if known.mtime.1 == 0 { known.mtime.0 >= written.0 } else { known.mtime >= written }
    }

    /// Compares the content itself.
    fn read(&self, entry: &Entry, stat: &FileStat) -> Answer {
        let path = self.index.path(entry);
        let Some(content) = self.content(path, stat) else { return Answer::Unsure };
        let id = self.index.id_bytes(entry);
        let format = if id.len() == 20 { Format::Sha1 } else { Format::Sha256 };
        let is_it = |content: &[u8]| format.id_of("blob", content).as_bytes() == id;
        if is_it(&content) {
            return Answer::Same;
        }
        // Git may store other bytes than the file has: line endings, or the output of a filter.
        let has_crlf = content.windows(2).any(|pair| pair == b"\r\n");
        if has_crlf {
            let mut unix = Vec::with_capacity(content.len());
            for (at, byte) in content.iter().enumerate() {
                if *byte != b'\r' || content.get(at + 1) != Some(&b'\n') {
                    unix.push(*byte);
                }
            }
            if is_it(&unix) {
                return Answer::Same;
            }
        }
        if self.may_be_filtered(path) { Answer::Unsure } else { Answer::Changed }
    }

    fn content(&self, path: &[u8], stat: &FileStat) -> Option<Vec<u8>> {
        if stat.mode & 0o170_000 == 0o120_000 {
            let fd = self.root.open_beneath(path, sys::HANDLE).ok()?;
            return sys::link_target(fd.as_fd()).ok();
        }
        let fd = self.root.open_beneath(path, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
        let found = rustix::fs::fstat(&fd).ok()?;
        if found.st_mode & 0o170_000 != 0o100_000 {
            return None;
        }
        let mut content = Vec::with_capacity(stat.size as usize + 1);
        // One extra byte: a file that grew since is not read to its end, and counts as different.
        std::fs::File::from(fd).take(stat.size + 1).read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// Whether attributes make git store something other than the file's bytes.
    fn may_be_filtered(&self, path: &[u8]) -> bool {
        const LARGEST: u64 = 1 << 20;
        let filters = |bytes: &[u8]| bytes.split(|b| *b == b'\n').any(|line| filters(line, path));
        if files::read(&self.attributes, LARGEST).is_ok_and(|f| f.is_some_and(|(bytes, _)| filters(&bytes))) {
            return true;
        }
        let folders = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at + 1);
        [0].into_iter().chain(folders).any(|end| {
            let file = [&path[..end], b".gitattributes"].concat();
            match bounded::read_beneath(&self.root, &file, LARGEST) {
                Ok(found) => found.is_some_and(|bytes| filters(&bytes)),
                // Git ignores what is not a file; what cannot be read may say anything.
                Err(error) => error.kind() != std::io::ErrorKind::InvalidInput,
            }
        })
    }
}

/// Whether a line of attributes may set a filter for a path; errs on the side of yes.
fn filters(line: &[u8], path: &[u8]) -> bool {
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let Some(pattern) = words.next() else { return false };
    let is_filter =
        |word: &[u8]| word.starts_with(b"filter=") || word == b"ident" || word.starts_with(b"working-tree-encoding=");
    if pattern.starts_with(b"#") || !words.any(is_filter) {
        return false;
    }
    // By far the most common pattern; others are taken to match.
    match pattern.strip_prefix(b"*.") {
        Some(ending) if !ending.iter().any(|b| b"*?[\\/".contains(b)) => {
            path.ends_with(ending) && path[..path.len() - ending.len()].ends_with(b".")
        }
        _ => true,
    }
}

/// Whether `stat` agrees with the index. Fields that another program left out of the index are 0 there.
fn is_as_known(known: &KnownStat, stat: &FileStat) -> bool {
    let is_time = |known: (u32, u32), ns: i64| {
        let (seconds, rest) = (ns.div_euclid(1_000_000_000) as u32, ns.rem_euclid(1_000_000_000) as u32);
        known.0 == seconds && (known.1 == 0 || known.1 == rest)
    };
    known.size == stat.size as u32
        && is_time(known.mtime, stat.mtime)
        && (known.ctime == (0, 0) || is_time(known.ctime, stat.ctime))
        && (known.inode == 0 || known.inode == stat.inode as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_attributes_names_a_filter_for_the_paths_it_matches() {
        for (line, path, expected) in [
            ("*.psd filter=lfs diff=lfs -text", "art/a.psd", true),
            ("*.psd filter=lfs diff=lfs -text", "src/a.rs", false),
            ("*.psd filter=lfs diff=lfs -text", "src/xpsd", false),
            ("art/** filter=lfs", "src/a.rs", true),
            ("* text=auto eol=lf", "a", false),
            ("*.c ident", "a.c", true),
            ("# *.c ident", "a.c", false),
            ("", "a.c", false),
        ] {
            assert_eq!(filters(line.as_bytes(), path.as_bytes()), expected, "{line:?} {path}");
        }
    }
}
