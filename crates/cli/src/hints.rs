//! Commands that hints name, so that whoever types one literally means the same workspace.

/// Commands that are about no workspace, or that name a folder themselves.
const ANYWHERE: [&str; 10] = ["completions", "config", "demo", "doctor", "help", "hook", "init", "man", "run", "setup"];

/// A text of piton's own in which each command is about the workspace that `--workspace` chose, given as a word of a
/// shell. Where none was chosen, the text is right as it is.
pub fn about(text: &str, workspace: Option<&str>) -> String {
    let Some(workspace) = workspace.filter(|_| text.contains("`piton ")) else { return text.to_owned() };
    let mut parts: Vec<String> = text.split('`').map(str::to_owned).collect();
    // Without its closing mark, the last one is no command.
    let last = parts.len() - 1;
    for command in parts[..last].iter_mut().skip(1).step_by(2) {
        let verb = command.strip_prefix("piton ").and_then(|rest| rest.split(' ').next());
        let is_here = verb.is_some_and(|verb| !ANYWHERE.contains(&verb) && !verb.starts_with('-'));
        let is_init = verb == Some("init");
        if is_here && !command.contains(" --workspace ") {
            command.push_str(&format!(" --workspace {workspace}"));
        } else if is_init && !names_a_folder(command) {
            command.push_str(&format!(" {workspace}"));
        }
    }
    parts.join("`")
}

/// Whether an `init` says which folder is meant; without one it is the current one.
fn names_a_folder(init: &str) -> bool {
    let words = init.split(' ').skip(2).collect::<Vec<_>>();
    let is_value = |at: usize| at > 0 && words[at - 1] == "--budget";
    words.iter().enumerate().any(|(at, word)| !word.starts_with("--") && !is_value(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_for_this_workspace_name_it_and_nothing_else_does() {
        let check = |text: &str, expected: &str| assert_eq!(about(text, Some("'a b'")), expected);
        check("`piton redo` takes it back", "`piton redo --workspace 'a b'` takes it back");
        check(
            "`piton undo --op kmzq`, then `piton redo --outside`, puts it back",
            "`piton undo --op kmzq --workspace 'a b'`, then `piton redo --outside --workspace 'a b'`, puts it back",
        );
        check("`piton init` makes it known", "`piton init 'a b'` makes it known");
        check("`piton init --force`", "`piton init --force 'a b'`");
        check("`piton init --budget 1G`", "`piton init --budget 1G 'a b'`");
        for same in [
            "`piton init DIR`, or `piton init .` for the current one",
            "`piton init --budget 1G DIR`",
            "`--partial` leaves it; `src/a.rs` stays",
            "`piton help config` lists the keys; `piton setup` adds it",
            "`piton redo --workspace /other` takes it back there",
            "`piton redo",
            "piton redo",
        ] {
            check(same, same);
        }
        assert_eq!(about("`piton redo`", None), "`piton redo`");
    }
}
