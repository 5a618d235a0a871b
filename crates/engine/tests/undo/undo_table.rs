//! What undo does, for every kind of change and every state of now, in text, notebooks and binary files: one table.
//!
//! The table says what becomes of the file; the test says that it is so byte for byte, that nothing else changed, and
//! that a redo brings back exactly what was there.

use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::{Choice, OperationError, Settle, UndoOptions, Which};
use piton_testkit::{Agent, Snapshot, World};

/// A change of an agent, by what the user did since.
///
/// - `back`: as before the change;
/// - `both`: as before the change, with what the user did since;
/// - `stays`: as it is now;
/// - `joined`: as before the change, with the user's file in the folder;
/// - anything else is a conflict and says why; where there are two, `+` is between them;
/// - `a/b`: a for text and notebooks, b for binary files; `-`: there is no such thing.
const TABLE: &str = "
                    | same | beside | elsewhere  | same-place   | deleted | folder      | other    | mode      | as-before
created             | back | both   | edited     | edited       | stays   | replaced    | replaced | mode      | -
modified            | back | both   | both/whole | place/whole  | deleted | replaced    | replaced | both      | stays
deleted             | back | both   | replaced   | replaced     | -       | replaced    | replaced | replaced  | stays
mode                | back | both   | both       | both         | deleted | replaced    | replaced | mode      | stays
mode-and-content    | back | both   | both/whole | place/whole  | deleted | replaced    | replaced | mode      | stays
renamed             | back | both   | both       | both         | back    | replaced    | replaced | both      | stays
renamed-and-edited  | back | both   | both/edited | place/edited | back    | replaced    | replaced | both/mode | stays
file-to-link        | back | both   | -          | whole        | deleted | replaced    | replaced | -         | stays
link-retargeted     | back | both   | -          | whole        | deleted | replaced    | replaced | -         | stays
file-to-folder      | back | both   | holds      | holds+edited | deleted | holds       | replaced | back      | stays
folder-to-file      | back | both   | whole      | whole        | deleted | joined      | replaced | mode      | stays
folder-made         | back | both   | stays      | -            | stays   | stays       | stays    | back      | -
folder-removed      | back | both   | replaced   | -            | -       | stays       | replaced | stays     | stays
folder-mode         | back | both   | both       | both         | stays   | stays       | replaced | mode      | stays
in-new-folder       | back | both   | edited     | edited       | back    | replaced    | replaced | mode      | stays
last-of-folder      | back | both   | replaced   | replaced     | -       | replaced    | replaced | replaced  | stays
";

/// Kinds of change in which no file's content matters.
const WITHOUT_CONTENT: [&str; 3] = ["link-retargeted", "folder-made", "folder-removed"];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Content {
    Text,
    Notebook,
    Binary,
}

impl Content {
    fn ending(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Notebook => "ipynb",
            Self::Binary => "bin",
        }
    }

    /// Twelve things of which the sixth and the eleventh are edited.
    fn of(self, sixth: &str, eleventh: &str) -> Vec<u8> {
        let thing = |n: usize| match n {
            6 => format!("{sixth} 6"),
            11 => format!("{eleventh} 11"),
            n => format!("line {n}"),
        };
        match self {
            Self::Text => (1..=12).map(|n| thing(n) + "\n").collect::<String>().into_bytes(),
            Self::Binary => (1..=12).map(|n| thing(n) + "\0").collect::<String>().into_bytes(),
            Self::Notebook => {
                let cells: Vec<String> = (1..=12)
                    .map(|n| {
                        format!(
                            "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"c{n}\",\n   \
                             \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"{}\"\n   ]\n  }}",
                            thing(n)
                        )
                    })
                    .collect();
                let frame = "\"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";
                format!("{{\n \"cells\": [\n{}\n ],\n {frame}", cells.join(",\n")).into_bytes()
            }
        }
    }

    fn before(self) -> Vec<u8> {
        self.of("line", "line")
    }

    fn after(self) -> Vec<u8> {
        self.of("agent", "line")
    }

    /// An edit of what is there, at the agent's place or far from it.
    fn edited(self, bytes: &[u8], same_place: bool) -> Vec<u8> {
        let is_agents = bytes == self.after();
        assert!(is_agents || bytes == self.before());
        let sixth = if same_place {
            "user"
        } else if is_agents {
            "agent"
        } else {
            "line"
        };
        self.of(sixth, if same_place { "line" } else { "user" })
    }
}

/// Ends a chain of writing.
fn done(_: &World) {}

/// One field of the table, in a world.
struct Case<'a> {
    kind: &'a str,
    state: &'a str,
    content: Content,
}

impl Case<'_> {
    /// What the change is about, where it stands after the change.
    fn subject(&self) -> String {
        let file = format!("x.{}", self.content.ending());
        match self.kind {
            "in-new-folder" => format!("p/new/deep/{file}"),
            "last-of-folder" => format!("p/old/{file}"),
            _ => format!("p/{file}"),
        }
    }

    /// The same where it stood before.
    fn origin(&self) -> String {
        if self.kind.starts_with("renamed") { format!("p/was.{}", self.content.ending()) } else { self.subject() }
    }

    fn before(&self, w: &World) {
        let (x, v0) = (self.origin(), self.content.before());
        w.write("p/bystander", "bystander\n").folder("p/empty").link("p/link", "bystander");
        match self.kind {
            "created" | "in-new-folder" | "folder-made" => {}
            "link-retargeted" => done(w.link(x, "bystander")),
            "folder-to-file" => done(w.write(format!("{x}/inside"), v0)),
            "folder-mode" => done(w.write(format!("{x}/inside"), v0).mode(x, 0o755)),
            "folder-removed" => done(w.folder(x)),
            "last-of-folder" => done(w.write(x, v0).mode("p/old", 0o750)),
            _ => done(w.write(x, v0)),
        }
    }

    fn change(&self, w: &World) {
        let (x, v0, v1) = (self.subject(), self.content.before(), self.content.after());
        match self.kind {
            "created" | "modified" | "in-new-folder" => done(w.write(x, v1)),
            "deleted" | "folder-removed" => done(w.remove(x)),
            "mode" => done(w.mode(x, 0o755)),
            "mode-and-content" => done(w.write(&x, v1).mode(x, 0o755)),
            "renamed" => done(w.rename(self.origin(), x)),
            "renamed-and-edited" => done(w.rename(self.origin(), &x).write(x, v1)),
            "file-to-link" | "link-retargeted" => done(w.remove(&x).link(x, "empty")),
            "file-to-folder" => done(w.remove(&x).write(format!("{x}/inside"), v1)),
            "folder-to-file" => done(w.remove(&x).write(x, v1)),
            "folder-made" => done(w.folder(x)),
            "folder-mode" => done(w.mode(x, 0o700)),
            "last-of-folder" => done(w.remove("p/old")),
            other => panic!("{other}: {v0:?}"),
        }
    }

    /// What the user does, to what the change left or to what was there before it.
    fn act(&self, w: &World, x: &str) {
        let there = std::fs::symlink_metadata(w.path(x)).ok();
        let is_folder = there.as_ref().is_some_and(std::fs::Metadata::is_dir);
        let is_link = there.as_ref().is_some_and(std::fs::Metadata::is_symlink);
        let clear = || {
            if there.is_some() {
                w.remove(x);
            }
            w.folder(x.rsplit_once('/').unwrap().0);
        };
        // A folder that the user makes again may have bits of its own, and those are no matter of the file in it.
        let own_bits = || {
            if self.kind == "last-of-folder" {
                w.mode("p/old", if self.state == "beside" { 0o711 } else { 0o750 });
            }
        };
        match self.state {
            "same" => {}
            "beside" => done(w.write(format!("{}/beside", x.rsplit_once('/').unwrap().0), "user\n")),
            "elsewhere" if is_folder => done(w.write(format!("{x}/users"), "user\n")),
            "elsewhere" | "same-place" => {
                let same_place = self.state == "same-place";
                let file = if is_folder { format!("{x}/inside") } else { x.to_owned() };
                if is_link {
                    w.remove(x).link(x, "users");
                } else if there.is_some() {
                    let bytes = std::fs::read(w.path(&file)).unwrap();
                    w.write(file, self.content.edited(&bytes, same_place));
                } else {
                    w.write(file, self.content.edited(&self.content.before(), same_place));
                }
            }
            "deleted" => done(w.remove(x)),
            "folder" => {
                clear();
                w.write(format!("{x}/users"), "user\n");
            }
            "other" if is_link => done(w.remove(x).write(x, "user\n")),
            "other" => {
                clear();
                w.link(x, "users");
            }
            "mode" if is_folder => done(w.mode(x, 0o711)),
            "mode" if self.kind == "folder-removed" => done(w.folder(x).mode(x, 0o711)),
            "mode" => {
                if there.is_none() {
                    w.write(x, self.content.before());
                }
                w.mode(x, 0o600);
            }
            "as-before" => {
                match self.kind {
                    "in-new-folder" => done(w.remove("p/new")),
                    "mode" | "mode-and-content" => done(w.mode(x, 0o644)),
                    _ if there.is_some() => done(w.remove(x)),
                    _ => {}
                }
                self.before_again(w);
                return;
            }
            other => panic!("{other}"),
        }
        if self.state != "same" {
            own_bits();
        }
    }

    fn before_again(&self, w: &World) {
        w.remove("p/link");
        self.before(w);
    }

    /// A tree as it should be, made by hand.
    fn twin(&self, make: impl FnOnce(&World)) -> Snapshot {
        let twin = World::new();
        make(&twin);
        twin.write("users.txt", "a new file of the user's\n").snapshot()
    }

    fn check(&self, expected: &str) {
        let told = format!("{}, {}, {:?}", self.kind, self.state, self.content);
        let world = World::new();
        self.before(&world);
        let agent = Agent::new(&world, "s");
        agent.runs("go", "work", |w| self.change(w));
        self.act(&world, &self.subject());
        world.write("users.txt", "a new file of the user's\n");
        let now = world.snapshot();

        let back = self.twin(|w| self.before(w));
        let result = match expected {
            "back" => back.clone(),
            "both" => self.twin(|w| {
                self.before(w);
                self.act(w, &self.origin());
            }),
            "joined" => self.twin(|w| {
                self.before(w);
                w.write(format!("{}/users", self.origin()), "user\n");
            }),
            "stays" => now.clone(),
            conflicts => {
                self.check_conflict(&world, conflicts, &now, &back, &told);
                return;
            }
        };
        let outcome = world.open().undo_now(&of_turn(None)).unwrap_or_else(|e| panic!("{told}: {e}"));
        assert!(outcome.verified && outcome.conflicts.is_empty(), "{told}: {outcome:?}");
        same(&world, &result, &told);
        self.assert_opens(&world, &told);
        assert_eq!(outcome.operation.is_some(), result != now, "{told}");
        if outcome.operation.is_some() {
            world.redo();
            same(&world, &now, &format!("{told}, after the redo"));
        }
    }

    /// A conflict writes nothing; decided for what was before, that is what comes.
    fn check_conflict(&self, world: &World, expected: &str, now: &Snapshot, back: &Snapshot, told: &str) {
        let whys: Vec<Why> = expected.split('+').map(why).collect();
        match world.open().undo_now(&of_turn(None)) {
            Err(OperationError::Conflict(found)) => {
                assert_eq!(found.iter().map(|c| c.why).collect::<Vec<_>>(), whys, "{told}: {found:?}");
            }
            other => panic!("{told}: {other:?}"),
        }
        same(world, now, told);
        let outcome = world.open().undo_now(&of_turn(Some(Decision::Theirs)));
        assert!(outcome.unwrap_or_else(|e| panic!("{told}: {e}")).verified, "{told}");
        same(world, back, &format!("{told}, decided for before"));
        self.assert_opens(world, told);
        world.redo();
        same(world, now, &format!("{told}, decided and redone"));
    }

    fn assert_opens(&self, world: &World, told: &str) {
        if self.content == Content::Notebook {
            let now = world.snapshot();
            for path in [self.subject(), self.origin(), format!("{}/inside", self.subject())] {
                if let Some(bytes) = now.bytes(&path) {
                    let read = serde_json::from_slice::<serde_json::Value>(bytes);
                    assert!(bytes == b"user\n" || read.is_ok(), "{told}: {path}: {read:?}");
                }
            }
        }
    }
}

fn of_turn(conflicts: Option<Decision>) -> UndoOptions {
    let what = Some(Which::Places(vec![(1, None)]));
    let (choice, settle) =
        (Choice { what, ..Choice::default() }, Settle { conflicts, partial: false, ..Settle::default() });
    UndoOptions { choice, settle, ..UndoOptions::default() }
}

fn why(word: &str) -> Why {
    match word {
        "place" => Why::SamePlace,
        "whole" => Why::Whole,
        "edited" => Why::Edited,
        "deleted" => Why::Deleted,
        "replaced" => Why::Replaced,
        "mode" => Why::Mode,
        "holds" => Why::Holds,
        other => panic!("`{other}` is no word of the table"),
    }
}

#[track_caller]
fn same(world: &World, expected: &Snapshot, told: &str) {
    let now = world.snapshot();
    assert!(now == *expected, "{told}: is | should be\n{}", now.differences(expected).join("\n"));
}

/// Checks every field of the table for one kind of content; tells of all that are wrong.
fn check_table(content: Content) {
    let mut rows = TABLE.lines().filter(|line| !line.is_empty()).map(|line| line.split('|').map(str::trim));
    let states: Vec<&str> = rows.next().unwrap().skip(1).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for mut row in rows {
        let kind = row.next().unwrap();
        if WITHOUT_CONTENT.contains(&kind) && content != Content::Text {
            continue;
        }
        let fields: Vec<&str> = row.collect();
        assert_eq!(fields.len(), states.len(), "{kind}");
        for (state, field) in states.iter().zip(fields) {
            let expected = match field.split_once('/') {
                Some((_, binary)) if content == Content::Binary => binary,
                Some((text, _)) => text,
                None => field,
            };
            if expected != "-" {
                let case = Case { kind, state, content };
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.check(expected)));
                wrong.extend(result.err().map(|_| format!("{kind}, {state}: not `{expected}`")));
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
    assert!(wrong.is_empty(), "{content:?}: {wrong:#?}");
}

#[test]
fn every_change_is_taken_back_from_every_state_of_a_text() {
    check_table(Content::Text);
}

#[test]
fn every_change_is_taken_back_from_every_state_of_a_notebook() {
    check_table(Content::Notebook);
}

#[test]
fn every_change_is_taken_back_from_every_state_of_a_binary_file() {
    check_table(Content::Binary);
}
