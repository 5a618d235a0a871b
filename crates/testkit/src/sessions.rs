//! Simulated sessions that many tests begin with.

use piton_engine::{Choice, UndoOptions, Which};

use crate::{Claude, World};

/// A session of Claude Code with the prompts `first`, `second` and `third`, each of which adds a line to `a.txt`.
pub fn three_turns(world: &World) -> Claude<'_> {
    let claude = Claude::new(world, 1);
    for (turn, words) in ["first", "second", "third"].into_iter().enumerate() {
        claude.edits(words, &["a.txt"], |world| {
            world.write("a.txt", "line\n".repeat(turn + 1));
        });
    }
    claude
}

/// The options of an undo as somebody would type it, such as `t2` or `last 3`.
///
/// # Panics
/// If the words are not valid.
#[track_caller]
pub fn undo_of(words: &str) -> UndoOptions {
    let words: Vec<&str> = words.split_whitespace().collect();
    let (what, session) = Which::of_words(&words).unwrap_or_else(|e| panic!("{words:?}: {e:?}"));
    UndoOptions { choice: Choice { what, session, ..Choice::default() }, ..UndoOptions::default() }
}
