//! What a git command does with the files of the working tree.

use super::{Call, operands};
use crate::command::names::{Name, is_pattern};
use crate::command::{Argument, Folder, SideEffect};

impl Call<'_> {
    pub(super) fn git(&mut self, words: &[Argument]) -> Option<Vec<Name>> {
        let mut words = words.to_vec();
        // Options of git itself come before its verb.
        while let Some(Some(first)) = words.first().cloned() {
            if !first.plain.starts_with('-') {
                break;
            }
            words.remove(0);
            if matches!(&first.plain[..], "-C" | "-c" | "--git-dir" | "--work-tree") && !words.is_empty() {
                let value = words.remove(0);
                if first.plain != "-c" {
                    self.reading.folder = match value.and_then(|value| self.reading.at(&value.pattern)) {
                        Some(folder) if first.plain == "-C" => Folder::At(folder),
                        _ => Folder::Unknown,
                    };
                }
            }
        }
        let Some(Some(verb)) = words.first().cloned() else { return None };
        words.remove(0);
        let texts: Vec<&str> = words.iter().map(|word| word.as_ref().map_or("", |word| &word.plain)).collect();
        let has = |wanted: &[&str]| texts.iter().any(|word| wanted.contains(word));
        let first = texts.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
        let after_dashes = texts.iter().position(|word| *word == "--").map(|at| words[at + 1..].to_vec());
        match &verb.plain[..] {
            "checkout" | "restore" => match after_dashes {
                Some(paths) => drop(self.writes_all(&paths, &[])),
                None if verb.plain == "restore" && has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) => {}
                None if verb.plain == "restore" => drop(self.writes_all(&words, &[])),
                // A new branch where it stands touches no file.
                None if has(&["-b", "-B"]) && operands(&words).count() == 1 => {}
                None => self.everything(&[]),
            },
            "switch" if has(&["-c", "-C", "--create"]) && operands(&words).count() == 1 => {}
            "stash" if matches!(first, "list" | "show" | "drop" | "clear" | "create" | "store") => {}
            "reset" if !has(&["--hard", "--merge", "--keep"]) => {}
            "worktree" | "clone" => match first {
                "list" | "prune" | "lock" | "unlock" => {}
                _ => drop(self.writes_all(&words, &[])),
            },
            "submodule" if matches!(first, "" | "status" | "summary" | "init") => {}
            "apply" if has(&["--check", "--stat", "--numstat", "--summary", "--cached"]) => {}
            "clean" if has(&["-n", "--dry-run", "-nd", "-dn"]) => {}
            "switch" | "stash" | "pull" | "merge" | "rebase" | "reset" | "clean" | "cherry-pick" | "revert"
            | "apply" | "am" | "submodule" | "sparse-checkout" | "bisect" | "read-tree" | "checkout-index"
            | "filter-branch" | "lfs" => {
                self.everything(&[]);
            }
            "mv" | "rm" if !has(&["--cached", "-n", "--dry-run"]) => {
                if self.writes_all(&words, &[]) == 0 {
                    self.unknown();
                }
            }
            "mv" | "rm" => {}
            // Its hooks may format what is committed.
            "commit" if has(&["--no-verify", "-n"]) => {}
            "commit" => self.unknown(),
            "push" => self.effect(SideEffect::Push),
            "ls-files" | "grep" | "diff" | "ls-tree" | "status" => {
                let skip = usize::from(verb.plain == "grep");
                let given: Vec<Argument> = operands(&words).skip(skip).cloned().collect();
                let is_paths = verb.plain == "ls-files" && !given.is_empty();
                if !is_paths {
                    return Some(vec![Name::folder("/".into())]);
                }
                let mut names = Vec::new();
                for word in given {
                    let pattern = self.reading.at(&word?.plain)?;
                    // Its patterns go through folders.
                    let pattern = match pattern.rsplit_once('/') {
                        _ if !is_pattern(&pattern) => pattern,
                        Some((folder, name)) => format!("{folder}/**/{name}"),
                        None => format!("**/{pattern}"),
                    };
                    names.push(Name::folder(pattern));
                }
                return Some(names);
            }
            "add" | "log" | "show" | "branch" | "fetch" | "tag" | "remote" | "config" | "rev-parse" | "blame"
            | "describe" | "shortlog" | "reflog" | "cat-file" | "hash-object" | "rev-list" | "merge-base"
            | "name-rev" | "notes" | "gc" | "fsck" | "for-each-ref" | "show-ref" | "symbolic-ref" | "update-ref"
            | "update-index" | "write-tree" | "commit-tree" | "help" | "version" | "var" | "check-ignore"
            | "check-attr" | "diff-tree" | "diff-index" | "diff-files" | "range-diff" | "ls-remote"
            | "count-objects" | "whatchanged" | "init" => {}
            "format-patch" | "archive" | "bundle" => self.unknown_with_names(&words),
            _ => self.unknown(),
        }
        None
    }
}
