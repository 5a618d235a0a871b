//! Which paths git's rules ignore, for paths of any checkpoint, which need not exist now; and which files a git filter
//! transforms before git stores them.
//!
//! The workspace's own rule files are passed in, since they may be of any moment; those above it and the user's own are
//! read as they are now. Never decides what is captured: that is `rules`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;
use piton_model::WorkspacePath;

use crate::bounded;
use crate::git::{Repository, excludes_file, ignores_case};
use crate::rules::{LARGEST_RULES, RuleOptions, exclude_file, join, name_of, parent_of, parse, parse_in, says};

/// The ignore files of one moment.
pub struct IgnoreFiles {
    /// By folder.
    folders: HashMap<Vec<u8>, Gitignore>,
    /// The exclude files of nested repositories, by the folder each begins in.
    inside: HashMap<Vec<u8>, Gitignore>,
    /// Those above the workspace, nearest first, each with the workspace's path relative to it.
    around: Vec<(PathBuf, Gitignore)>,
}

/// What is known of a moment.
#[derive(Default)]
pub struct IgnoredAt<'a> {
    /// The workspace's ignore files, each with its folder.
    pub files: Vec<(WorkspacePath, Vec<u8>)>,
    /// Folders in which a repository begins.
    pub repositories: Option<&'a BTreeSet<WorkspacePath>>,
    /// The exclude file of the repository around the workspace, as it was; its current content where that is unknown.
    pub excludes: Option<&'a str>,
}

impl IgnoreFiles {
    pub fn new(workspace: &Path, options: &RuleOptions, at: IgnoredAt<'_>) -> Self {
        let repository = Repository::find(workspace);
        let any_case = ignores_case(repository.as_ref(), &options.git);
        let parse = |bytes: &[u8]| parse_in(bytes, any_case);
        let read = |path: &Path| bounded::read(path, LARGEST_RULES).ok().flatten().map(|bytes| parse(&bytes));
        let top = repository.as_ref().map_or(workspace, Repository::work_tree);
        let inner = |folder: &Path| workspace.strip_prefix(folder).map(Path::to_owned).unwrap_or_default();
        let above = workspace.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
        let mut around: Vec<(PathBuf, Gitignore)> =
            above.filter_map(|folder| Some((inner(folder), read(&folder.join(".gitignore"))?))).collect();
        let own = match at.excludes {
            Some(text) => Some(parse(text.as_bytes())),
            None => exclude_file(&top.join(".git")).and_then(|file| read(&file)),
        };
        let global = excludes_file(workspace, repository.as_ref(), &options.git);
        let global = global.or_else(|| options.global_excludes.clone()).and_then(|file| read(&file));
        around.extend([own, global].into_iter().flatten().map(|rules| (inner(top), rules)));
        let of_repository = |folder: &WorkspacePath| {
            let git = workspace.join(OsStr::from_bytes(folder.as_bytes())).join(".git");
            Some((folder.as_bytes().to_vec(), exclude_file(&git).and_then(|file| read(&file))?))
        };
        let inside = at.repositories.into_iter().flatten().filter_map(of_repository).collect();
        let folders = at.files.into_iter().map(|(folder, bytes)| (folder.as_bytes().to_vec(), parse(&bytes)));
        Self { folders: folders.collect(), inside, around }
    }

    /// Which files a git filter changes (git-crypt, LFS), according to `.gitattributes` files, each given with its
    /// folder.
    pub fn of_filters(given: &[(WorkspacePath, Vec<u8>)]) -> Self {
        let macros: HashSet<&[u8]> = given.iter().flat_map(|(_, bytes)| filter_macros(bytes)).collect();
        let folders =
            given.iter().map(|(at, bytes)| (at.as_bytes().to_vec(), parse(&filter_rules(bytes, &macros)))).collect();
        Self { folders, inside: HashMap::new(), around: Vec::new() }
    }

    /// A rule file that a folder of the workspace has now.
    pub fn in_folder(workspace: &Path, folder: &WorkspacePath, name: &str) -> Option<Vec<u8>> {
        let folder = workspace.join(OsStr::from_bytes(folder.as_bytes()));
        bounded::read(&folder.join(name), LARGEST_RULES).ok().flatten()
    }

    /// Whether a rule matches a file itself, whatever the rules for its folders say.
    pub fn name_file(&self, file: &WorkspacePath) -> bool {
        self.names(file.as_bytes(), false)
    }

    /// Whether a file is ignored, on its own or with one of its folders.
    pub fn ignore(&self, file: &WorkspacePath) -> bool {
        let path = file.as_bytes();
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        ends.clone().any(|end| self.names(&path[..end], true)) || self.names(path, false)
    }

    /// What the nearest rule that matches a path says.
    fn names(&self, path: &[u8], is_folder: bool) -> bool {
        let os = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let (mut folder, mut inner) = (parent_of(path), name_of(path).to_vec());
        loop {
            let here = [self.folders.get(folder), self.inside.get(folder)];
            let mut said = here.into_iter().flatten().filter_map(|rules| says(rules.matched(os(&inner), is_folder)));
            if let Some(ignored) = said.next() {
                return ignored;
            }
            if folder.is_empty() {
                break;
            }
            inner = join(name_of(folder), &inner);
            folder = parent_of(folder);
        }
        let around = self.around.iter();
        let mut said = around.filter_map(|(prefix, rules)| says(rules.matched(prefix.join(os(path)), is_folder)));
        said.next().unwrap_or(false)
    }
}

/// The words of each line of an attributes file: its pattern, which may be quoted, and its attributes.
fn attribute_lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], impl Iterator<Item = &[u8]>)> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii();
        let (pattern, rest) = match line.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = quoted.iter().position(|byte| *byte == b'"')?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => line.split_at(line.iter().position(u8::is_ascii_whitespace)?),
        };
        let words = rest.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        (!pattern.starts_with(b"#")).then_some((pattern, words))
    })
}

fn is_filter(word: &[u8]) -> bool {
    word == b"filter" || word.starts_with(b"filter=")
}

/// The macros of an attributes file that include a filter.
fn filter_macros(bytes: &[u8]) -> Vec<&[u8]> {
    let mut macros = Vec::new();
    for (pattern, mut words) in attribute_lines(bytes) {
        macros.extend(pattern.strip_prefix(b"[attr]").filter(|_| words.any(is_filter)));
    }
    macros
}

/// An attributes file's filters in the form of an ignore file: the last matching line decides.
fn filter_rules(bytes: &[u8], macros: &HashSet<&[u8]>) -> Vec<u8> {
    let mut rules = Vec::new();
    for (pattern, words) in attribute_lines(bytes) {
        let says = |word: &[u8]| match word {
            b"-filter" | b"!filter" => Some(false),
            _ => (is_filter(word) || macros.contains(word)).then_some(true),
        };
        let Some(has_filter) = words.filter_map(says).last() else { continue };
        if !has_filter {
            rules.push(b'!');
        }
        rules.extend_from_slice(pattern);
        rules.push(b'\n');
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_decides_and_a_folder_takes_all_that_it_holds() {
        let scratch = tempfile::tempdir().unwrap();
        let workspace = scratch.path().join("repo/ws");
        for name in ["info", "objects", "refs"] {
            std::fs::create_dir_all(scratch.path().join("repo/.git").join(name)).unwrap();
        }
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(scratch.path().join("repo/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(scratch.path().join("repo/.git/info/exclude"), "/ws/mine\n").unwrap();
        std::fs::write(scratch.path().join("repo/.gitignore"), "*.key\n").unwrap();
        let path = |text: &str| WorkspacePath::new(text).unwrap();
        let given =
            [(WorkspacePath::root(), b".env\nbuilt/\n!keep.key\n".to_vec()), (path("a/b"), b"!.env\nlocal\n".to_vec())];
        let at = IgnoredAt { files: given.to_vec(), ..IgnoredAt::default() };
        let files = IgnoreFiles::new(&workspace, &RuleOptions::default(), at);
        for ignored in [".env", "a/.env", "x.key", "built/x", "c/built/x/y", "a/b/local", "a/b/c/local", "mine"] {
            assert!(files.ignore(&path(ignored)), "{ignored}");
        }
        for other in ["a/b/.env", "keep.key", "built", "local", "a/mine", "env"] {
            assert!(!files.ignore(&path(other)), "{other}");
        }
    }

    #[test]
    fn the_last_line_about_a_filter_decides_and_the_nearest_file_does() {
        let path = |text: &str| WorkspacePath::new(text).unwrap();
        let root = b"# filter=no\n[attr]secret filter=crypt -diff\n*.key filter=crypt diff=crypt\npublic.key !filter\n\
                     \"a b\" filter=lfs\n/keys/** secret\n*.txt text\nmodels/*.bin filter=lfs -text\n";
        let given = [(WorkspacePath::root(), root.to_vec()), (path("open"), b"*.key -filter\nx secret\n".to_vec())];
        let files = IgnoreFiles::of_filters(&given);
        for filtered in ["x.key", "a/b/x.key", "keys/x", "keys/a/x", "a b", "models/m.bin", "open/x"] {
            assert!(files.name_file(&path(filtered)), "{filtered}");
        }
        for other in ["public.key", "a.txt", "a/keys/x", "models/a/m.bin", "open/y.key", "x"] {
            assert!(!files.name_file(&path(other)), "{other}");
        }
    }
}
