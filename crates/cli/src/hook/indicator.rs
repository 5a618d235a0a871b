//! The line after a turn that changed files: which, and how to take that back.

use piton_engine::view::{Observed, TurnChanges};
use piton_wording::escape::escape_view;
use piton_wording::words::grouped;

/// What the user sees at the end of a turn; nothing where it changed no file.
pub fn line(observed: &Observed) -> Option<String> {
    let changes = observed.turn_changes.as_ref()?;
    Some(format!("piton: turn {} changed {} · `/piton undo` takes it back", observed.turn, named(changes)))
}

/// `a.rs, b.rs and 4 more`.
fn named(changes: &TurnChanges) -> String {
    let names: Vec<String> = changes.paths.iter().map(escape_view).collect();
    match (&names[..], changes.total.saturating_sub(names.len() as u64)) {
        ([], 1) => "1 file".to_owned(),
        ([], total) => format!("{} files", grouped(total)),
        ([all @ .., last], 0) if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        (names, 0) => names.join(", "),
        (names, more) => format!("{} and {} more", names.join(", "), grouped(more)),
    }
}

#[cfg(test)]
mod tests {
    use piton_engine::view::PathView;

    use super::*;

    #[test]
    fn a_few_files_are_named_and_the_rest_is_counted() {
        for (names, total, expected) in [
            (&["a"][..], 1, "a"),
            (&["a", "b"], 2, "a and b"),
            (&["a", "b", "c"], 3, "a, b and c"),
            (&["a", "b", "c"], 12_003, "a, b, c and 12,000 more"),
            (&["a\nb"], 1, "a\\nb"),
            (&[], 12_000, "12,000 files"),
            (&[], 1, "1 file"),
        ] {
            let path = |name: &&str| PathView { path: (*name).to_owned(), path_b64: None };
            assert_eq!(named(&TurnChanges { paths: names.iter().map(path).collect(), total }), expected);
        }
    }
}
