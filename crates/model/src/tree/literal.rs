//! Tiny tree literals for tests.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::*;

/// What is at a path of a literal; folders above it are implied.
#[derive(Clone)]
pub enum Lit {
    Entry(Entry),
    Folder(u16),
    Git,
}

pub fn file(content: &str) -> Lit {
    executable(content, 0o644)
}

pub fn executable(content: &str, mode: u16) -> Lit {
    Lit::Entry(Entry::File { mode, size: content.len() as u64, blob: ObjectId::of_blob(content.as_bytes()) })
}

pub fn link(target: &str) -> Lit {
    Lit::Entry(Entry::Symlink { target: target.into() })
}

pub fn folder(mode: u16) -> Lit {
    Lit::Folder(mode)
}

pub fn skipped() -> Lit {
    Lit::Entry(Entry::Skipped { reason: SkipReason::Ignored })
}

pub fn special() -> Lit {
    Lit::Entry(Entry::Skipped { reason: SkipReason::Special })
}

/// Trees in memory.
#[derive(Default)]
pub struct Forest(pub HashMap<ObjectId, Arc<Tree>>);

impl Forest {
    /// Makes a tree of paths; `("d", folder(0o700))` sets a folder's mode, `("d", Lit::Git)` puts a `.git` in it.
    pub fn plant(&mut self, paths: &[(&str, Lit)]) -> ObjectId {
        let mut here: BTreeMap<String, Vec<(&str, Lit)>> = BTreeMap::new();
        let mut has_git = false;
        for (path, lit) in paths {
            match path.split_once('/') {
                _ if path.is_empty() => has_git = true,
                Some((head, rest)) => here.entry(head.into()).or_default().push((rest, lit.clone())),
                None => here.entry((*path).into()).or_default().push(("", lit.clone())),
            }
        }
        let mut entries = Vec::new();
        for (name, inside) in here {
            let mut mode = 0o755;
            let mut leaf = None;
            let mut rest = Vec::new();
            for (path, lit) in inside {
                match (path, lit) {
                    ("", Lit::Entry(entry)) => leaf = Some(entry),
                    ("", Lit::Folder(m)) => mode = m,
                    (path, lit) => rest.push((path, lit)),
                }
            }
            let entry = leaf.unwrap_or_else(|| {
                let tree = self.plant(&rest);
                Entry::Folder { mode, tree, holds_skipped: self.0[&tree].holds_skipped() }
            });
            entries.push((EntryName::new(name.as_bytes()).unwrap(), entry));
        }
        let tree = Tree::new(has_git, entries);
        let id = ObjectId::of_tree(&tree.encode());
        self.0.insert(id, Arc::new(tree));
        id
    }
}
