//! The few repository settings that affect how its files are read.
//!
//! Only the repository's own: git takes formats from nowhere else.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::files;
use super::hash::Format;

pub(super) struct Config {
    pub format: Format,
    /// References are in `reftable/`.
    pub has_reftable: bool,
    /// It has no working tree.
    pub is_bare: bool,
    /// Its working tree, if that is not next to `.git`.
    pub work_tree: Option<PathBuf>,
    /// Executable bits in the working tree are meaningful.
    pub file_mode: bool,
    /// Symlinks in the working tree are symlinks.
    pub symlinks: bool,
    /// Git sets and clears skip-worktree by patterns.
    pub is_sparse: bool,
    /// Why its files cannot be understood.
    pub unknown: Option<String>,
    has_worktree_config: bool,
}

/// Largest settings file that is read, in bytes.
pub(super) const LARGEST: u64 = 4 << 20;

impl Config {
    /// Reads a repository's settings, and a worktree's own if it has any.
    pub(super) fn read(git_dir: &Path, common_dir: &Path) -> Self {
        let mut config = Self {
            format: Format::Sha1,
            has_reftable: false,
            is_bare: false,
            work_tree: None,
            file_mode: true,
            symlinks: true,
            is_sparse: false,
            unknown: None,
            has_worktree_config: false,
        };
        config.add(&common_dir.join("config"));
        if git_dir != common_dir {
            // These two belong to the main working tree.
            (config.is_bare, config.work_tree) = (false, None);
        }
        if config.has_worktree_config {
            config.add(&git_dir.join("config.worktree"));
        }
        config.work_tree = config.work_tree.map(|path| git_dir.join(path));
        config
    }

    fn add(&mut self, path: &Path) {
        match files::read(path, LARGEST) {
            Ok(Some((bytes, _))) => parse(&bytes, &mut |section, key, value| self.set(section, key, value)),
            Ok(None) => {}
            Err(error) => self.unknown = Some(format!("{}: {error}", path.display())),
        }
    }

    fn set(&mut self, section: &str, key: &str, value: Option<&[u8]>) {
        match (section, key) {
            ("core", "bare") => self.is_bare = is_true(value),
            ("core", "worktree") => {
                self.work_tree = value.map(|v| PathBuf::from(OsString::from_vec(v.to_vec())));
            }
            ("core", "filemode") => self.file_mode = is_true(value),
            ("core", "symlinks") => self.symlinks = is_true(value),
            ("core", "sparsecheckout") => self.is_sparse = is_true(value),
            ("core", "repositoryformatversion") if !matches!(value, Some(b"0" | b"1")) => {
                self.unknown = Some("the repository has a format that piton does not know".into());
            }
            ("extensions", "objectformat") => match value {
                Some(b"sha1") => self.format = Format::Sha1,
                Some(b"sha256") => self.format = Format::Sha256,
                _ => self.unknown = Some("the repository has a hash that piton does not know".into()),
            },
            ("extensions", "refstorage") => match value {
                Some(b"files") => self.has_reftable = false,
                Some(b"reftable") => self.has_reftable = true,
                _ => {
                    self.unknown = Some("the repository keeps its references in a way that piton does not know".into())
                }
            },
            ("extensions", "worktreeconfig") => self.has_worktree_config = is_true(value),
            // These do not affect the files that are read here.
            (
                "extensions",
                "noop"
                | "noop-v1"
                | "partialclone"
                | "preciousobjects"
                | "relativeworktrees"
                | "compatobjectformat"
                | "submodulepathconfig",
            ) => {}
            ("extensions", other) => {
                self.unknown = Some(format!("the repository uses the extension {other}, which piton does not know"));
            }
            _ => {}
        }
    }
}

/// Git's words for true; a key without a value is one.
pub(super) fn is_true(value: Option<&[u8]>) -> bool {
    value.is_none_or(|v| {
        [&b"true"[..], b"yes", b"on"].iter().any(|word| v.eq_ignore_ascii_case(word))
            || std::str::from_utf8(v).is_ok_and(|v| v.parse::<i64>().is_ok_and(|n| n != 0))
    })
}

/// Visits each setting: its section and key in lower case, and its value. Subsections are reported under their section.
fn parse(bytes: &[u8], each: &mut impl FnMut(&str, &str, Option<&[u8]>)) {
    parse_all(bytes, &mut |section, _, key, value| each(section, key, value));
}

/// Like `parse`, with the name of the subsection, empty if there is none.
pub(super) fn parse_all(bytes: &[u8], each: &mut impl FnMut(&str, &[u8], &str, Option<&[u8]>)) {
    let mut section = String::new();
    let mut subsection: Vec<u8> = Vec::new();
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    loop {
        let blank = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        rest = &rest[blank..];
        let Some(first) = rest.first() else { return };
        match first {
            b'#' | b';' => rest = after_line(rest),
            b'[' => {
                let name = rest[1..].iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
                section = name.map(|b| b.to_ascii_lowercase() as char).collect();
                // The rest of a heading is a quoted name, in which `]` has no meaning.
                subsection.clear();
                let mut is_quoted = false;
                let mut at = 1;
                while let Some(byte) = rest.get(at) {
                    match byte {
                        b'"' => is_quoted = !is_quoted,
                        b'\\' if is_quoted => {
                            at += 1;
                            subsection.extend(rest.get(at));
                        }
                        b']' if !is_quoted => break,
                        b'\n' => break,
                        byte if is_quoted => subsection.push(*byte),
                        _ => {}
                    }
                    at += 1;
                }
                rest = rest.get(at + 1..).unwrap_or_default();
            }
            _ => {
                let key: String = rest
                    .iter()
                    .take_while(|b| b.is_ascii_alphanumeric() || **b == b'-')
                    .map(|b| b.to_ascii_lowercase() as char)
                    .collect();
                rest = &rest[key.len()..];
                let blank = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
                rest = &rest[blank..];
                match rest.strip_prefix(b"=") {
                    Some(after) => {
                        let (value, after) = parse_value(after);
                        each(&section, &subsection, &key, Some(&value));
                        rest = after;
                    }
                    None => {
                        if !key.is_empty() {
                            each(&section, &subsection, &key, None);
                        }
                        rest = after_line(rest);
                    }
                }
            }
        }
    }
}

/// A value up to the end of its line, and the rest.
fn parse_value(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    // Blanks count if something follows them, or in quotes.
    let mut kept = 0;
    let mut is_quoted = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\n' => break,
            b'#' | b';' if !is_quoted => return (value[..kept].to_vec(), after_line(&bytes[at..])),
            b'"' => is_quoted = !is_quoted,
            b'\\' => {
                let next = bytes.get(at).copied();
                at += 1;
                match next {
                    Some(b'\n') => {}
                    Some(b'n') => value.push(b'\n'),
                    Some(b't') => value.push(b'\t'),
                    Some(other) => value.push(other),
                    None => break,
                }
                kept = value.len();
            }
            _ => {
                let is_blank = byte.is_ascii_whitespace() && !is_quoted;
                if !(is_blank && value.is_empty()) {
                    value.push(*byte);
                }
                if !is_blank {
                    kept = value.len();
                }
            }
        }
    }
    value.truncate(kept);
    (value, bytes.get(at..).unwrap_or_default())
}

fn after_line(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|b| *b == b'\n').map_or(&[], |at| &bytes[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, Option<&str>)]) {
        let mut found = Vec::new();
        parse(text.as_bytes(), &mut |section, key, value| {
            found.push((section.to_owned(), key.to_owned(), value.map(|v| String::from_utf8_lossy(v).into_owned())));
        });
        let expected: Vec<_> =
            expected.iter().map(|(s, k, v)| (s.to_string(), k.to_string(), v.map(str::to_owned))).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        check(
            "[core]\n\tbare = false\n\tFileMode=true ; why\n",
            &[("core", "bare", Some("false")), ("core", "filemode", Some("true"))],
        );
        check(
            "[Core] bare\n# bare = 1\n[remote \"a]\\\"b\"]\nurl = \"x # y\" z  \n",
            &[("core", "bare", None), ("remote", "url", Some("x # y z"))],
        );
        check("[a]\nb = one \\\n  two\nc=\n", &[("a", "b", Some("one   two")), ("a", "c", Some(""))]);
    }

    #[test]
    fn a_damaged_file_ends_in_nothing_worse_than_no_settings() {
        for text in ["[", "[core", "[core]\n=", "=\\", "[x \"", "a\\", "\"", "[]]]\n\n==", "[core]\nk = \"x"] {
            parse(text.as_bytes(), &mut |_, _, _| {});
        }
    }

    #[test]
    fn yes_has_many_words() {
        for (value, expected) in [("true", true), ("Yes", true), ("on", true), ("1", true), ("0", false), ("no", false)]
        {
            assert_eq!(is_true(Some(value.as_bytes())), expected, "{value}");
        }
        assert!(is_true(None));
        assert!(!is_true(Some(b"")));
    }
}
