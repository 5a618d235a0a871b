//! How a surface says what it has its own way for.

use std::ffi::OsString;
use std::fmt::Debug;

use jiff::tz::TimeZone;
use piton_engine::model::Timestamp;

use crate::call::{Call, Flag};
use crate::escape::shell_word;
use crate::words::time_in;

/// Somebody who shows a [`Text`](crate::Text) to people.
pub trait Surface: Debug {
    /// A call in a sentence, with the marks that set it off from the words around it.
    fn call(&self, call: &Call) -> String {
        format!("`{}`", self.command(call))
    }

    /// A call as it is typed here, without marks.
    fn command(&self, call: &Call) -> String {
        command_line("piton", &call.verb, &self.arguments(call))
    }

    /// A flag of the reader's own command in a sentence, with the same marks. Whether it is to be left out, the sentence says.
    fn flag(&self, flag: &Flag) -> String {
        format!("`{}`", shell_words(&flag.to_words()))
    }

    /// What follows the verb here, with all that does not go without saying.
    fn arguments(&self, call: &Call) -> Vec<OsString>;

    /// A moment, on the clock of whoever reads it.
    fn time(&self, at: Timestamp) -> String;
}

/// A shell, whatever folder it is in.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// What every command has to name as its workspace; `None` where the current folder says it.
    pub workspace: Option<OsString>,
    /// Where the clock of whoever reads it stands.
    pub zone: TimeZone,
}

impl Default for Terminal {
    /// A shell in the workspace's folder, with its clock at UTC.
    fn default() -> Self {
        Self { workspace: None, zone: TimeZone::UTC }
    }
}

impl Surface for Terminal {
    fn arguments(&self, call: &Call) -> Vec<OsString> {
        call.words(self.workspace.as_deref())
    }

    fn time(&self, at: Timestamp) -> String {
        time_in(at, &self.zone)
    }
}

/// A line that a shell reads as these words.
pub fn command_line(program: &str, verb: &str, arguments: &[OsString]) -> String {
    let words: Vec<OsString> = [program.into(), verb.into()].into_iter().chain(arguments.iter().cloned()).collect();
    shell_words(&words)
}

/// Words as a shell reads them.
pub fn shell_words(words: &[OsString]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::call;
    use crate::text;

    #[test]
    fn commands_for_this_workspace_name_it_and_nothing_else_does() {
        let chosen = Terminal { workspace: Some("a b".into()), ..Terminal::default() };
        for (call, expected) in [
            (call("redo"), "`piton redo --workspace 'a b'`"),
            (call("undo").with("--op", "kmzq"), "`piton undo --op kmzq --workspace 'a b'`"),
            (call("redo").there("/other"), "`piton redo --workspace /other`"),
            (call("undo").in_asked("DIR"), "`piton undo --workspace DIR`"),
            (call("init"), "`piton init 'a b'`"),
            (call("init").with("--budget", "1G"), "`piton init --budget 1G 'a b'`"),
            (call("init").there("/other"), "`piton init /other`"),
            (call("init").asking("DIR"), "`piton init DIR`"),
            (call("help").arg("config"), "`piton help config`"),
            (call("setup"), "`piton setup`"),
        ] {
            assert_eq!(chosen.call(&call), expected);
        }
        assert_eq!(Terminal::default().call(&call("redo")), "`piton redo`");
    }

    #[test]
    fn a_word_is_quoted_so_that_a_shell_reads_it_as_it_is() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"a\xff'\n\x1b".to_vec());
        for (word, expected) in [
            (OsString::from("it's"), "`piton rewind \"it's\"`"),
            (odd, "`piton rewind $'a\\xff\\'\\x0a\\x1b'`"),
            ("größe".into(), "`piton rewind 'größe'`"),
        ] {
            assert_eq!(Terminal::default().call(&call("rewind").arg(word)), expected);
        }
    }

    #[test]
    fn a_text_is_said_with_its_calls_and_its_times() {
        let text = text!["since ", Timestamp(0), "; ", call("log").arg("--future"), " lists them"];
        assert_eq!(text.plain(), "since 1970-01-01 00:00:00; `piton log --future` lists them");
    }
}
