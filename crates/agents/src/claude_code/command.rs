//! `/piton …` typed inside Claude Code.
//!
//! The prompt hook answers it without a model call, so such a prompt is not a turn and leaves no line in the
//! conversation. The command's file exists so that Claude Code offers and accepts the name at all.

use crate::setup::CommandFile;

pub const FILE: CommandFile =
    CommandFile { path: "commands/piton.md", text: TEXT, mark: "Piton's own hook answers this command" };

/// Its body reaches the model only if the hook did not answer.
const TEXT: &str = "\
---
description: List and rewind what this session changed, with piton
argument-hint: log | changes | rewind t5 | redo
disable-model-invocation: true
---

The user called `/piton $ARGUMENTS`. Piton's own hook answers this command before it reaches you, so that you read this
means that the hook is not active in this session.

Run nothing and change nothing. Tell the user in one or two sentences that piton did not get the command, that nothing was
rewound, and that `piton doctor`, run in a terminal, says why.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_file_has_front_matter_with_a_description_and_a_hint() {
        let (front, body) = TEXT.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
        let (keys, values): (Vec<&str>, Vec<&str>) = front.lines().map(|line| line.split_once(": ").unwrap()).unzip();
        assert_eq!(keys, ["description", "argument-hint", "disable-model-invocation"]);
        // Plain YAML text, as long as no value looks like a key or a list.
        assert!(values.iter().all(|value| !value.contains(": ") && !value.starts_with(['[', '{', '|', '"'])));
        assert!(body.contains("piton doctor") && TEXT.ends_with(".\n"));
        assert!(TEXT.contains(FILE.mark));
        // What does not exist is not offered.
        assert!(!TEXT.contains("undo") && !TEXT.contains("ops"), "{TEXT}");
    }
}
