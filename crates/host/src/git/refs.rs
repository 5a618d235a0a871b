//! References: where HEAD is, from loose files and `packed-refs`; reftables are read by `reftable`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use piton_model::git::Head;

use super::files::{self, trim_end};
use super::hash::{Format, Id};
use super::{Repository, Watch, reftable};

/// Longest chain of symbolic references, as in git.
const MOST_LINKS: usize = 5;
/// In bytes; a loose reference is one line.
const LARGEST_LOOSE: u64 = 64 << 10;
const LARGEST_PACKED: u64 = 256 << 20;

pub(super) enum Reference {
    /// The name of another reference.
    Symbolic(Vec<u8>),
    Id(Id),
}

/// Where HEAD is, and what could not be read.
pub(super) fn head(repository: &Repository, format: Format, has_reftable: bool) -> (Head, Option<String>) {
    let look_up = |name: &[u8]| match has_reftable {
        true => reftable::look_up(repository, name, format),
        false => look_up(repository, name, format),
    };
    let mut name = b"HEAD".to_vec();
    for link in 0..=MOST_LINKS {
        let is_branch = link > 0;
        match look_up(&name) {
            Ok(Some(Reference::Symbolic(target))) => name = target,
            Ok(Some(Reference::Id(id))) if is_branch => return (Head::on(&name, Some(id.to_hex())), None),
            Ok(Some(Reference::Id(id))) => return (Head::detached(id.to_hex()), None),
            // A branch without a commit.
            Ok(None) if is_branch => return (Head::on(&name, None), None),
            Ok(None) => return (Head::default(), Some("HEAD is missing".into())),
            Err(reason) if is_branch => return (Head::on(&name, None), Some(reason)),
            Err(reason) => return (Head::default(), Some(reason)),
        }
    }
    (Head::default(), Some("HEAD's references go round in a circle".into()))
}

/// Adds everything that decides where HEAD is to a signature.
pub(super) fn watch(repository: &Repository, watch: &mut Watch) {
    // Table names are never reused, and a table never changes.
    watch.content(&repository.common_dir.join("reftable/tables.list"), LARGEST_LOOSE);
    if repository.git_dir != repository.common_dir {
        watch.content(&repository.git_dir.join("reftable/tables.list"), LARGEST_LOOSE);
    }
    let mut name = b"HEAD".to_vec();
    for _ in 0..=MOST_LINKS {
        match watch.reference(&place(repository, &name), LARGEST_LOOSE) {
            Some(bytes) => match symbolic(&bytes) {
                Some(target) if is_sound(&target) => name = target,
                _ => return,
            },
            None => return watch.times(&repository.common_dir.join("packed-refs")),
        }
    }
}

fn look_up(repository: &Repository, name: &[u8], format: Format) -> Result<Option<Reference>, String> {
    let reason = |why: &dyn std::fmt::Display| format!("reference {}: {why}", String::from_utf8_lossy(name));
    if !is_sound(name) {
        return Err(reason(&"such a name cannot be"));
    }
    let file = place(repository, name);
    if let Some(target) = linked(&file) {
        return Ok(Some(Reference::Symbolic(target)));
    }
    match files::read(&file, LARGEST_LOOSE) {
        Ok(Some((bytes, _))) => {
            if let Some(target) = symbolic(&bytes) {
                return Ok(Some(Reference::Symbolic(target)));
            }
            let id = bytes.get(..format.len() * 2).and_then(|hex| Id::from_hex(hex, format));
            let ends = bytes.get(format.len() * 2).is_none_or(|b| b.is_ascii_whitespace());
            id.filter(|_| ends).map(|id| Some(Reference::Id(id))).ok_or_else(|| reason(&"its file is damaged"))
        }
        Ok(None) => {
            let packed = files::read(&repository.common_dir.join("packed-refs"), LARGEST_PACKED);
            match packed.map_err(|e| reason(&e))? {
                Some((bytes, _)) => Ok(packed_id(&bytes, name, format).map(Reference::Id)),
                None => Ok(None),
            }
        }
        Err(error) => Err(reason(&error)),
    }
}

fn place(repository: &Repository, name: &[u8]) -> PathBuf {
    folder_of(repository, name).join(OsStr::from_bytes(name))
}

/// The folder that stores a reference: a worktree has its own HEAD and a few others, and shares the rest.
pub(super) fn folder_of<'a>(repository: &'a Repository, name: &[u8]) -> &'a Path {
    let is_own = [&b"refs/bisect/"[..], b"refs/worktree/", b"refs/rewritten/"].iter().any(|p| name.starts_with(p));
    if name.starts_with(b"refs/") && !is_own { &repository.common_dir } else { &repository.git_dir }
}

/// Whether a name is HEAD or that of a reference, and leads nowhere else.
fn is_sound(name: &[u8]) -> bool {
    let is_name = |part: &[u8]| !part.is_empty() && part[0] != b'.' && !part.contains(&0);
    name == b"HEAD" || (name.starts_with(b"refs/") && name.len() < 4096 && name.split(|b| *b == b'/').all(is_name))
}

/// The reference that a file names.
fn symbolic(bytes: &[u8]) -> Option<Vec<u8>> {
    let target = trim_end(bytes.strip_prefix(b"ref:")?);
    let blank = target.iter().take_while(|b| b.is_ascii_whitespace()).count();
    Some(target[blank..].to_vec())
}

/// The reference that a symlink names, as git wrote HEAD long ago.
pub(super) fn linked(file: &Path) -> Option<Vec<u8>> {
    let target = rustix::fs::readlink(file, Vec::new()).ok()?.into_bytes();
    (target.starts_with(b"refs/") && is_sound(&target)).then_some(target)
}

/// Finds a reference in `packed-refs`: lines of an id, a blank and a name.
fn packed_id(bytes: &[u8], name: &[u8], format: Format) -> Option<Id> {
    let digits = format.len() * 2;
    let parse = |line: &[u8]| -> Option<Id> {
        let is_it = line.get(digits) == Some(&b' ') && trim_end(&line[digits + 1..]) == name;
        if is_it { Id::from_hex(&line[..digits], format) } else { None }
    };
    let header = bytes.split(|b| *b == b'\n').next().filter(|line| line.starts_with(b"# pack-refs with:"));
    let is_sorted = header.is_some_and(|line| line.split(|b| *b == b' ').any(|word| trim_end(word) == b"sorted"));
    if !is_sorted {
        return bytes.split(|b| *b == b'\n').find_map(parse);
    }
    let line_from = |at: usize| {
        let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
        (&bytes[at..end], end)
    };
    // `low` and `high` are always at the beginning of a line.
    let (mut low, mut high) = ((header.map_or(0, <[u8]>::len) + 1).min(bytes.len()), bytes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let mut from = bytes[low..middle].iter().rposition(|b| *b == b'\n').map_or(low, |at| low + at + 1);
        // The line below a tag's own has the id that the tag points to.
        while from > low && bytes.get(from) == Some(&b'^') {
            from = bytes[low..from - 1].iter().rposition(|b| *b == b'\n').map_or(low, |at| low + at + 1);
        }
        let (line, end) = line_from(from);
        let found = trim_end(line.get(digits + 1..).unwrap_or_default());
        match found.cmp(name) {
            std::cmp::Ordering::Equal => return parse(line),
            std::cmp::Ordering::Greater => high = from,
            std::cmp::Ordering::Less => {
                low = (end + 1).min(high);
                while bytes.get(low) == Some(&b'^') && low < high {
                    low = (line_from(low).1 + 1).min(high);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packed_reference_is_found_and_no_other() {
        let names: Vec<String> = (0..40).map(|n| format!("refs/heads/b{n:02}")).collect();
        let id = |n: usize| Format::Sha1.id_of("blob", &[n as u8]);
        for header in ["# pack-refs with: peeled fully-peeled sorted \n", "# pack-refs with: peeled \n", ""] {
            for peeled in 0..4 {
                let mut text = header.to_owned();
                for (n, name) in names.iter().enumerate() {
                    text += &format!("{} {name}\n", id(n).to_hex());
                    if peeled > 0 && n % peeled == 0 {
                        text += &format!("^{}\n", id(n).to_hex());
                    }
                }
                for (n, name) in names.iter().enumerate() {
                    let found = packed_id(text.as_bytes(), name.as_bytes(), Format::Sha1);
                    assert!(found == Some(id(n)), "{header:?} {name}");
                    let longer = format!("{name}x");
                    assert!(packed_id(text.as_bytes(), longer.as_bytes(), Format::Sha1).is_none());
                }
                assert!(packed_id(text.as_bytes(), b"refs/heads/a", Format::Sha1).is_none());
                assert!(packed_id(text.as_bytes(), b"refs/heads/z", Format::Sha1).is_none());
                // However it is truncated, reading it does not panic.
                for end in 0..text.len() {
                    packed_id(&text.as_bytes()[..end], b"refs/heads/b20", Format::Sha1);
                }
            }
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_repository_is_refused() {
        for bad in ["refs/../../x", "refs//x", "refs/heads/", "/etc/passwd", "config", "refs/heads/.x", "refs/a\0b", ""]
        {
            assert!(!is_sound(bad.as_bytes()), "{bad:?}");
        }
        assert!(is_sound(b"refs/heads/a.b/c"));
    }
}
