//! Rolling back where others have made changes since: a three-way merge of whole entries.

use std::sync::Arc;

use crate::diff::{TreeSource, pairs};
use crate::edit::{NewTrees, keep};
use crate::id::ObjectId;
use crate::tree::{Entry, Tree};

/// What a path should hold so that everything still as in `base` becomes as in `theirs`, and everything else stays as
/// in `ours`.
///
/// Recovery passes what an operation put there as `base`, what is there now as `ours` and what was there before as
/// `theirs`.
pub fn merge_entry<S: TreeSource>(
    source: &S,
    base: Option<&Entry>,
    ours: Option<&Entry>,
    theirs: Option<&Entry>,
    new: &mut NewTrees,
) -> Result<Option<Entry>, S::Error> {
    if ours == theirs || base == theirs {
        return Ok(ours.cloned());
    }
    if ours == base {
        return Ok(theirs.cloned());
    }
    if let Some(merged) = merge_bits(base, ours, theirs) {
        return Ok(merged);
    }
    let Some(Entry::Folder { mode, tree, .. }) = ours else { return Ok(ours.cloned()) };
    let listing = |entry: Option<&Entry>| match entry {
        Some(Entry::Folder { tree, mode, .. }) => Ok((Some(*mode), load(source, new, tree)?)),
        _ => Ok((None, Arc::default())),
    };
    let ((base_mode, base), (their_mode, theirs_tree)) = (listing(base)?, listing(theirs)?);
    let ours_tree = load(source, new, tree)?;
    let mut merged = Tree::clone(&ours_tree);
    let mut names: Vec<_> = pairs(&ours_tree, &theirs_tree).map(|(name, _, _)| name.clone()).collect();
    names.dedup();
    for name in names {
        let at = name.as_bytes();
        let entry = merge_entry(source, base.get(at), ours_tree.get(at), theirs_tree.get(at), new)?;
        merged.set(name, entry);
    }
    if their_mode.is_none() && merged.entries().is_empty() && !merged.has_git {
        return Ok(theirs.cloned());
    }
    let mode = match their_mode {
        Some(theirs) if base_mode == Some(*mode) => theirs,
        _ => *mode,
    };
    let holds_skipped = merged.holds_skipped();
    Ok(Some(Entry::Folder { mode, tree: keep(Arc::new(merged), new), holds_skipped }))
}

/// A file whose bits alone were changed becomes as in `theirs`, with the same bits changed there. `None` where that is
/// not the case, or where `base` and `theirs` have the same content.
fn merge_bits(base: Option<&Entry>, ours: Option<&Entry>, theirs: Option<&Entry>) -> Option<Option<Entry>> {
    let (Some(Entry::File { mode, blob, .. }), Some(Entry::File { mode: was, blob: base, .. })) = (ours, base) else {
        return None;
    };
    match theirs {
        Some(Entry::File { blob: theirs, .. }) if blob == base && theirs == base => None,
        Some(Entry::File { mode: theirs, size, blob: put }) if blob == base => {
            Some(Some(Entry::File { mode: with_bits(*theirs, *was, *mode), size: *size, blob: *put }))
        }
        theirs if blob == base => Some(theirs.cloned()),
        _ => None,
    }
}

/// Applies the change of bits `from` → `to` to `bits`: bits that differ between the two get their new value, the rest
/// stay.
///
/// ```
/// use piton_model::merge::with_bits;
///
/// // Closed by hand while it was briefly open to all: it stays closed.
/// assert_eq!(with_bits(0o600, 0o644, 0o600), 0o600);
/// assert_eq!(with_bits(0o640, 0o644, 0o600), 0o600);
/// assert_eq!(with_bits(0o755, 0o644, 0o755), 0o755);
/// assert_eq!(with_bits(0o644, 0o755, 0o775), 0o664);
/// ```
pub fn with_bits(bits: u16, from: u16, to: u16) -> u16 {
    let changed = from ^ to;
    (bits & !changed) | (to & changed)
}

fn load<S: TreeSource>(source: &S, new: &NewTrees, id: &ObjectId) -> Result<Arc<Tree>, S::Error> {
    match new.get(id) {
        Some(tree) => Ok(tree.clone()),
        None => source.tree(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::lookup;
    use crate::path::WorkspacePath;
    use crate::plan::Layered;
    use crate::tree::literal::{Forest, Lit, file};

    /// Merges what is at `x` in three trees and lists the files of the result with their first bytes.
    fn check(base: &[(&str, Lit)], ours: &[(&str, Lit)], theirs: &[(&str, Lit)], expected: &[(&str, Lit)]) {
        let mut forest = Forest::default();
        let x = WorkspacePath::new("x").unwrap();
        let mut at_x = |paths: &[(&str, Lit)]| {
            let root = forest.plant(paths);
            lookup(&forest.0, &root, &x).unwrap()
        };
        let (base, ours, theirs, expected) = (at_x(base), at_x(ours), at_x(theirs), at_x(expected));
        let mut new = NewTrees::new();
        let merged = merge_entry(&forest.0, base.as_ref(), ours.as_ref(), theirs.as_ref(), &mut new).unwrap();
        assert_eq!(merged, expected);
        if let Some(Entry::Folder { tree, .. }) = merged {
            Layered { over: &new, under: &forest.0 }.tree(&tree).unwrap();
        }
    }

    #[test]
    fn what_nobody_touched_goes_back_and_what_somebody_edited_stays() {
        check(&[("x", file("new"))], &[("x", file("new"))], &[("x", file("old"))], &[("x", file("old"))]);
        check(&[("x", file("new"))], &[("x", file("edit"))], &[("x", file("old"))], &[("x", file("edit"))]);
        check(&[("x", file("new"))], &[], &[("x", file("old"))], &[]);
    }

    #[test]
    fn in_a_folder_that_was_made_only_the_edited_file_stays() {
        check(
            &[("x/a", file("1")), ("x/b", file("1")), ("x/d/c", file("1"))],
            &[("x/a", file("1")), ("x/b", file("edit")), ("x/d/c", file("1"))],
            &[],
            &[("x/b", file("edit"))],
        );
        check(
            &[("x/a", file("1"))],
            &[("x/a", file("1")), ("x/n", file("added"))],
            &[("x", file("a file once"))],
            &[("x/n", file("added"))],
        );
    }

    #[test]
    fn a_file_of_which_only_the_bits_were_changed_goes_back_and_keeps_that_change() {
        let file = |mode, byte| Entry::File { mode, size: 1, blob: ObjectId([byte; 32]) };
        let check = |base, ours, theirs: Option<Entry>, expected: Option<Entry>| {
            let found = merge_bits(Some(&base), Some(&ours), theirs.as_ref());
            assert_eq!(found, expected.map(Some));
        };
        check(file(0o644, 1), file(0o664, 1), Some(file(0o755, 2)), Some(file(0o775, 2)));
        // The content proves nothing where both ends have the same.
        check(file(0o644, 1), file(0o664, 1), Some(file(0o755, 1)), None);
        check(file(0o644, 1), file(0o664, 3), Some(file(0o755, 2)), None);
        assert_eq!(merge_bits(Some(&file(0o644, 1)), Some(&file(0o664, 1)), None), Some(None));
    }
}
