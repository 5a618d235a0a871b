//! Blame: who wrote each line of a file, across edits, rewinds, redos, moves and what nobody knows.

use std::time::Duration;

use piton_engine::model::event::{Event, Report, ToolCall};
use piton_engine::model::ownership::{Candidate, Owner};
use piton_engine::model::{SkipReason, WorkspacePath};
use piton_engine::view::{Blame, LineOrigin, OriginKind};
use piton_engine::{BlameError, BlameOptions, Choice, ObserveOptions, RewindOptions, UndoOptions, Which};
use piton_host::fail;
use piton_testkit::World;
use proptest::prelude::*;

/// An agent that reports, in a world.
struct Agent<'w> {
    world: &'w World,
    calls: std::cell::Cell<u32>,
}

impl<'w> Agent<'w> {
    fn new(world: &'w World) -> Self {
        Self { world, calls: std::cell::Cell::new(0) }
    }

    fn tell(&self, event: Event) {
        let report = Report {
            agent: "test".into(),
            session: "s1".into(),
            cwd: Some(self.world.ws()),
            transcript: None,
            prompt_id: None,
            subagent: None,
            event,
        };
        let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
        self.world.engine.observe(&report, &options).unwrap();
    }

    fn prompt(&self, text: &str) -> &Self {
        self.tell(Event::Prompt { text: text.into() });
        self
    }

    fn begin(&self, tool: &str, paths: &[&str]) -> ToolCall {
        self.calls.set(self.calls.get() + 1);
        let call = ToolCall {
            id: Some(format!("call-{}", self.calls.get())),
            tool: tool.into(),
            summary: format!("{tool} {}", paths.join(" ")).trim().to_owned(),
            paths: paths.iter().map(|path| self.world.path(path)).collect(),
            ..ToolCall::default()
        };
        self.tell(Event::BeforeTool(call.clone()));
        call
    }

    fn end(&self, call: ToolCall) {
        self.tell(Event::AfterTool(call));
    }

    /// A tool that names a file writes it.
    fn edit(&self, path: &str, content: &str) -> &Self {
        let call = self.begin("Edit", &[path]);
        self.world.write(path, content);
        self.end(call);
        self
    }

    /// A shell does something.
    fn shell(&self, act: impl FnOnce(&World)) -> &Self {
        let call = self.begin("Bash", &[]);
        tick();
        act(self.world);
        self.end(call);
        self
    }
}

/// Long enough for a filesystem's clock to tick.
fn tick() {
    std::thread::sleep(Duration::from_millis(40));
}

fn path(path: &str) -> WorkspacePath {
    WorkspacePath::new(path).unwrap()
}

fn blame_at(world: &World, file: &str, at: Option<&str>) -> Result<Blame, BlameError> {
    world.open().blame(&path(file), &BlameOptions { at: at.map(|at| at.parse().unwrap()), lines: None })
}

/// `t1.2`, `you`, `unsure t1.1 you`, and so on.
fn who(origin: &LineOrigin) -> String {
    let candidates = |owner: &Option<Owner>| match owner {
        Some(Owner::Unsure { candidates }) => candidates.clone(),
        _ => Vec::new(),
    };
    match origin.kind {
        OriginKind::Step => format!("t{}.{}", origin.turn.unwrap(), origin.step.unwrap()),
        OriginKind::You => "you".into(),
        OriginKind::Unsure => {
            let names = candidates(&origin.owner).into_iter().map(|one| match one {
                Candidate::Step(step) => format!(" t{}.{}", step.turn, step.step),
                Candidate::You => " you".into(),
            });
            format!("unsure{}", names.collect::<String>())
        }
        OriginKind::Operation => origin.summary.clone().unwrap(),
        OriginKind::BeforePiton => "before".into(),
        OriginKind::Now => "now".into(),
    }
}

fn told(blame: &Blame) -> Vec<String> {
    blame.lines.iter().map(|line| format!("{}: {}", line.text, who(&blame.origins[line.origin]))).collect()
}

#[track_caller]
fn check(world: &World, file: &str, at: Option<&str>, expected: &[&str]) {
    assert_eq!(told(&blame_at(world, file, at).unwrap()), expected, "{file} at {at:?}");
}

/// A file with a line from before piton, two turns of an agent and the user.
fn four_hands(world: &World) -> Agent<'_> {
    world.write("f", "old\n");
    let agent = Agent::new(world);
    agent.prompt("first\nand more").edit("f", "old\nby one\n");
    world.write("f", "mine\nold\nby one\n");
    agent.prompt("second").edit("g", "other\n").edit("f", "mine\nold\nby one\nby two\n");
    agent
}

#[test]
fn each_line_has_its_turn_or_the_user_or_was_there_before() {
    let world = World::new();
    let _agent = four_hands(&world);
    check(&world, "f", None, &["mine: you", "old: before", "by one: t1.1", "by two: t2.2"]);
    check(&world, "f", Some("@"), &["mine: you", "old: before", "by one: t1.1", "by two: t2.2"]);
    check(&world, "f", Some("t2"), &["mine: you", "old: before", "by one: t1.1"]);
    check(&world, "f", Some("t1"), &["old: before"]);
    let blame = blame_at(&world, "f", None).unwrap();
    let first = &blame.origins[blame.lines[2].origin];
    assert_eq!(first.prompt.as_deref(), Some("first"));
    assert_eq!((first.tool.as_deref(), first.summary.as_deref()), (Some("Edit"), Some("Edit f")));
    assert!(first.session.is_some() && first.checkpoint.is_some() && first.at.is_some());
    assert!(matches!(first.owner, Some(Owner::Step { .. })));

    world.write("f", "mine\nnew\nold\nby two\n");
    check(&world, "f", None, &["mine: you", "new: now", "old: before", "by two: t2.2"]);
    let some = BlameOptions { at: None, lines: Some((2, 3)) };
    let some = world.open().blame(&path("f"), &some).unwrap();
    assert_eq!(some.lines.iter().map(|line| (line.number, line.origin)).collect::<Vec<_>>(), [(2, 0), (3, 1)]);
    assert_eq!(some.origins.len(), 2);
}

#[test]
fn after_a_rewind_the_lines_are_the_owners_of_then_and_work_goes_on_from_there() {
    let world = World::new();
    let agent = four_hands(&world);
    world.rewind("t2");
    check(&world, "f", None, &["mine: you", "old: before", "by one: t1.1"]);
    agent.prompt("third").edit("f", "mine\nold\nby three\nby one\n");
    check(&world, "f", None, &["mine: you", "old: before", "by three: t3.1", "by one: t1.1"]);
    check(&world, "f", Some("t2.end"), &["mine: you", "old: before", "by one: t1.1", "by two: t2.2"]);
    // What the rewind took away is written by the user now.
    world.write("f", "by two\n");
    world.capture();
    check(&world, "f", None, &["by two: you"]);
}

#[test]
fn after_a_rewind_and_a_redo_the_original_owners_are_back() {
    let world = World::new();
    let agent = four_hands(&world);
    let all = ["mine: you", "old: before", "by one: t1.1", "by two: t2.2"];
    world.rewind("t1");
    check(&world, "f", None, &["old: before"]);
    world.redo();
    check(&world, "f", None, &all);
    // With something else in between, the redo's result follows from what was there before it.
    world.rewind("t1");
    world.write("other", "x\n");
    world.capture();
    world.redo();
    check(&world, "f", None, &all);
    check(&world, "g", None, &["other: t2.1"]);
    check(&world, "other", None, &["x: you"]);
    agent.prompt("third").edit("f", "mine\nold\nby one\nby two\nby three\n");
    check(&world, "f", None, &["mine: you", "old: before", "by one: t1.1", "by two: t2.2", "by three: t3.1"]);
}

#[test]
fn a_rewind_of_one_path_brings_back_its_owners_and_leaves_the_others() {
    let world = World::new();
    let agent = four_hands(&world);
    agent.prompt("third").edit("f", "by three\n").edit("g", "other\nby three\n");
    let options = RewindOptions { paths: vec![path("f")], interrupted: true, ..RewindOptions::default() };
    world.open().rewind_now("t3", &options).unwrap();
    check(&world, "f", None, &["mine: you", "old: before", "by one: t1.1", "by two: t2.2"]);
    check(&world, "g", None, &["other: t2.1", "by three: t3.2"]);
    // A line that is in both by chance is what it was at the target.
    world.remove("f");
    world.capture();
    agent.edit("f", "x\nold\n");
    check(&world, "f", None, &["x: t3.3", "old: t3.3"]);
    world.open().rewind_now("t1.1", &options).unwrap();
    check(&world, "f", None, &["old: before"]);
}

#[test]
fn after_an_undo_what_came_back_is_whose_it_was_and_what_stayed_too() {
    let world = World::new();
    let agent = four_hands(&world);
    let undo = |turn: u32| {
        let choice = Choice { what: Some(Which::Places(vec![(turn, None)])), ..Choice::default() };
        world.open().undo_now(&UndoOptions { choice, interrupted: true, ..UndoOptions::default() }).unwrap();
    };
    agent.prompt("third").edit("f", "mine\nold\nby two\n");
    agent.prompt("fourth").edit("f", "by four\nmine\nold\nby two\n");
    // A line comes back, and the one that was written since stays.
    undo(3);
    check(&world, "f", None, &["by four: t4.1", "mine: you", "old: before", "by one: t1.1", "by two: t2.2"]);
    // A line goes.
    undo(1);
    check(&world, "f", None, &["by four: t4.1", "mine: you", "old: before", "by two: t2.2"]);
    world.redo();
    check(&world, "f", None, &["by four: t4.1", "mine: you", "old: before", "by one: t1.1", "by two: t2.2"]);
    agent.prompt("fifth").edit("f", "by four\nmine\nold\nby one\nby five\nby two\n");
    undo(4);
    check(&world, "f", None, &["mine: you", "old: before", "by one: t1.1", "by five: t5.1", "by two: t2.2"]);
}

#[test]
fn a_file_that_was_moved_is_followed_and_one_that_was_made_anew_is_not() {
    let world = World::new();
    let agent = four_hands(&world);
    let all = ["mine: you", "old: before", "by one: t1.1", "by two: t2.2"];
    agent.prompt("move").shell(|world| {
        world.folder("d/a").folder("d/b").rename("f", "d/b/f");
    });
    check(&world, "d/b/f", None, &all);
    let blame = blame_at(&world, "d/b/f", None).unwrap();
    assert!(blame.origins.iter().all(|origin| origin.moved_from.as_ref().is_some_and(|from| from.path == "f")));
    // Moved, and nobody has captured it yet.
    world.rename("d/b/f", "h");
    check(&world, "h", None, &all);
    world.write("h", "mine\nold\nby one\nby two\nx\n");
    check(&world, "h", None, &["mine: now", "old: now", "by one: now", "by two: now", "x: now"]);
    world.write("h", "mine\nold\nby one\nby two\n");
    world.capture();
    check(&world, "h", None, &all);

    // Of several that had the same content, the one with the same name is meant.
    world.write("p/same", "a\n");
    world.capture();
    agent.prompt("copy").edit("o/other", "a\n");
    agent.shell(|world| {
        world.folder("q").rename("p/same", "q/same").remove("o/other");
    });
    check(&world, "q/same", None, &["a: you"]);

    world.remove("h");
    agent.prompt("anew").edit("h", "mine\n");
    check(&world, "h", None, &["mine: t5.1"]);
}

#[test]
fn a_file_that_is_moved_over_another_keeps_the_lines_of_both() {
    let world = World::new();
    let agent = four_hands(&world);
    agent.prompt("third").edit("f.new", "mine\nold\nby three\n");
    agent.shell(|world| {
        world.rename("f.new", "f");
    });
    check(&world, "f", None, &["mine: you", "old: before", "by three: t3.1"]);
}

#[test]
fn what_nobody_can_tell_is_unsure_with_those_who_may_have_been_it() {
    let world = World::new();
    world.write("f", "a\n");
    let agent = Agent::new(&world);
    agent.prompt("one");
    // Two shells at once: the turn is sure, the step is not.
    let (one, two) = (agent.begin("Bash", &[]), agent.begin("Bash", &[]));
    tick();
    world.write("f", "a\nb\n");
    agent.end(one);
    agent.end(two);
    // A tool that names another file: its own doing, or the user's.
    let call = agent.begin("Edit", &["other"]);
    tick();
    world.write("f", "a\nb\nc\n");
    agent.end(call);
    check(&world, "f", None, &["a: before", "b: unsure t1.1 t1.2", "c: unsure t1.3 you"]);
    let blame = blame_at(&world, "f", None).unwrap();
    let of = |line: usize| &blame.origins[blame.lines[line].origin];
    assert_eq!((of(1).turn, of(1).step, of(1).prompt.as_deref()), (Some(1), None, Some("one")));
    assert_eq!((of(2).turn, of(2).prompt.as_deref()), (None, None));
}

#[test]
fn where_too_much_changed_to_list_it_the_tools_that_ran_tell() {
    let world = World::new();
    world.write("f", "a\n");
    let many = |folder: &str| {
        world.folder(folder);
        for number in 0..5_200 {
            world.write(format!("{folder}/{number}"), "");
        }
    };
    let agent = Agent::new(&world);
    agent.prompt("one").shell(|world| {
        many("x");
        world.write("f", "a\nshell\n");
    });
    many("y");
    world.write("f", "a\nshell\nmine\n");
    agent.prompt("two");
    world.write("f", "a\nshell\nmine\nalso mine\n");
    // What was the user's last may be the user's again, and the others are the shell's: not all one's.
    agent.shell(|world| {
        many("z");
        world.write("f", "a\nshell\nmine\nalso mine\nwhose\n");
    });
    let (one, two) = (agent.begin("Bash", &[]), agent.begin("Bash", &[]));
    many("w");
    world.write("f", "a\nshell\nmine\nalso mine\nwhose\neither\n");
    agent.end(one);
    agent.end(two);
    let sure = ["a: before", "shell: t1.1", "mine: you", "also mine: you"];
    check(&world, "f", None, &[&sure[..], &["whose: unsure t2.1 you", "either: unsure t2.2 t2.3 you"]].concat());
}

#[test]
fn what_was_not_captured_for_a_while_is_unsure() {
    let world = World::new();
    world.write(".pitonignore", "").write("f", "a\n");
    let agent = Agent::new(&world);
    agent.prompt("one").edit("f", "a\nb\n");
    world.write(".pitonignore", "f\n");
    world.capture();
    assert!(matches!(blame_at(&world, "f", None), Err(BlameError::NotCaptured { reason: SkipReason::Excluded, .. })));
    world.write("f", "a\nb\nc\n").write(".pitonignore", "");
    world.capture();
    check(&world, "f", None, &["a: before", "b: t1.1", "c: unsure"]);
}

#[test]
fn a_rewind_that_was_cut_off_makes_nobody_an_owner() {
    let world = World::new();
    let _agent = four_hands(&world);
    let all = ["mine: you", "old: before", "by one: t1.1", "by two: t2.2"];
    // Dies at every step of it, and whoever opens the workspace next puts it back or ends it.
    for step in 1.. {
        let done = fail::with(step, || world.rewind("t1")).is_some();
        drop(world.open());
        let is_rewound = std::fs::read(world.path("f")).unwrap() == b"old\n";
        check(&world, "f", None, if is_rewound { &all[1..2] } else { &all });
        world.capture();
        check(&world, "f", None, if is_rewound { &all[1..2] } else { &all });
        if is_rewound {
            world.redo();
            check(&world, "f", None, &all);
        }
        if done {
            break;
        }
    }
}

#[test]
fn what_has_no_lines_is_refused() {
    let world = World::new();
    world.write("bin", b"a\0b").write("d/f", "x\n").write("gone", "x\n").write("empty", "").link("l", "d/f");
    world.write("large", vec![b'x'; (16 << 20) + 1]);
    let with_gone = world.capture();
    world.remove("gone");
    let after = world.capture();
    assert!(matches!(blame_at(&world, "bin", None), Err(BlameError::Binary(_))));
    assert!(matches!(blame_at(&world, "bin", Some("start")), Err(BlameError::Binary(_))));
    for at in [None, Some("start")] {
        assert!(matches!(blame_at(&world, "d", at), Err(BlameError::Folder(_))));
        assert!(matches!(blame_at(&world, "", at), Err(BlameError::Folder(_))));
        assert!(matches!(blame_at(&world, "l", at), Err(BlameError::Symlink(_))));
        assert!(matches!(blame_at(&world, "large", at), Err(BlameError::TooLarge { .. })));
    }
    let gone = blame_at(&world, "gone", None);
    assert!(matches!(gone, Err(BlameError::Gone { last, .. }) if last.as_str() == with_gone));
    assert!(matches!(blame_at(&world, "gone", Some(&after)), Err(BlameError::NotThen { .. })));
    check(&world, "gone", Some(&with_gone), &["x: before"]);
    assert!(matches!(blame_at(&world, "never", None), Err(BlameError::Never(_))));
    check(&world, "empty", None, &[]);
    let beyond = BlameOptions { at: None, lines: Some((2, 9)) };
    let beyond = world.open().blame(&path("d/f"), &beyond);
    assert!(matches!(beyond, Err(BlameError::NoSuchLine { first: 2, has: 1, .. })));
}

#[test]
fn a_damaged_version_in_between_is_not_guessed_over() {
    let world = World::new();
    let noise = |seed: u32| {
        (0..400u32)
            .map(|n| format!("{:x}\n", (n + 1).wrapping_mul(seed).wrapping_mul(2_654_435_761)))
            .collect::<String>()
    };
    world.write("f", "a\n");
    world.capture();
    let marked = format!("a\nb\n{}", noise(77));
    world.write("f", &marked);
    world.capture();
    world.write("f", "a\nb\nc\n");
    world.capture();
    check(&world, "f", None, &["a: before", "b: you", "c: you"]);
    damage_blob(&world, marked.as_bytes());
    check(&world, "f", None, &["a: unsure", "b: unsure", "c: unsure"]);
}

/// Damages a content where it lies in its pack.
fn damage_blob(world: &World, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let store = world.open().store_folder().to_owned();
    let db = rusqlite::Connection::open(piton_store::database_file(&store).unwrap()).unwrap();
    let id = piton_engine::model::ObjectId::of_blob(bytes);
    let place = db.query_row("SELECT pack, offset, length FROM all_objects WHERE id = ?1", [&id.0[..]], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, row.get::<_, u32>(2)?))
    });
    let (pack, offset, length) = place.unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(store.join(format!("packs/{pack:06}.pack"))).unwrap();
    file.write_all_at(&[0x55; 16], u64::from(offset + length / 2)).unwrap();
}

/// One act on the file, for a reference that keeps an owner for each line.
#[derive(Clone, Debug)]
enum Act {
    /// Somebody puts lines in at a place and takes some out after them.
    Edit {
        by_agent: bool,
        at: u8,
        insert: u8,
        remove: u8,
    },
    Rewind {
        to: u8,
        only_this: bool,
    },
    Redo,
    Move,
}

fn act() -> impl Strategy<Value = Act> {
    let edit = (any::<bool>(), any::<u8>(), 0..4u8, 0..3u8);
    prop_oneof![
        6 => edit.prop_map(|(by_agent, at, insert, remove)| Act::Edit { by_agent, at, insert, remove }),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(to, only_this)| Act::Rewind { to, only_this }),
        1 => Just(Act::Redo),
        1 => Just(Act::Move),
    ]
}

/// Each line with its owner.
type Lines = Vec<(String, String)>;

fn text_of(lines: &Lines) -> String {
    lines.iter().map(|(text, _)| format!("{text}\n")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blame_is_what_a_reference_says_that_follows_every_line(acts in prop::collection::vec(act(), 1..14)) {
        let world = World::new();
        let mut lines: Lines = (0..5).map(|n| (format!("first {n}"), "before".to_owned())).collect();
        let mut file = "f".to_owned();
        world.write(&file, text_of(&lines));
        let agent = Agent::new(&world);
        agent.prompt("go");
        let mut made = 0;
        let mut states: Vec<(String, String, Lines)> = vec![(world.capture(), file.clone(), lines.clone())];
        let mut rewinds: Vec<(Lines, String)> = Vec::new();
        let mut steps = 0;
        for act in acts {
            match act {
                Act::Edit { by_agent, at, insert, remove } => {
                    let who = if by_agent { steps += 1; format!("t1.{steps}") } else { "you".to_owned() };
                    let at = usize::from(at) % (lines.len() + 1);
                    let to = (at + usize::from(remove)).min(lines.len());
                    let new: Lines = (0..insert).map(|_| { made += 1; (format!("line {made}"), who.clone()) }).collect();
                    lines.splice(at..to, new);
                    if by_agent {
                        agent.edit(&file, &text_of(&lines));
                    } else {
                        world.write(&file, text_of(&lines));
                    }
                    rewinds.clear();
                }
                Act::Rewind { to, only_this } => {
                    let (id, then, old) = states[usize::from(to) % states.len()].clone();
                    let paths = if only_this && then == file { vec![path(&file)] } else { Vec::new() };
                    let options = RewindOptions { paths, interrupted: true, ..RewindOptions::default() };
                    let outcome = world.open().rewind_now(&id, &options).unwrap();
                    if outcome.operation.is_some() {
                        rewinds.push((lines.clone(), file.clone()));
                        (lines, file) = (old, then);
                    }
                }
                Act::Redo => {
                    if let Some((before, was)) = rewinds.pop() {
                        world.redo();
                        (lines, file) = (before, was);
                    }
                }
                Act::Move => {
                    let to = if file == "f" { "m" } else { "f" };
                    world.rename(&file, to);
                    file = to.to_owned();
                    rewinds.clear();
                }
            }
            states.push((world.capture(), file.clone(), lines.clone()));
        }
        for (id, file, lines) in &states {
            let found = blame_at(&world, file, Some(id)).unwrap();
            let expected: Vec<String> = lines.iter().map(|(text, who)| format!("{text}: {who}")).collect();
            prop_assert_eq!(told(&found), expected, "at {}", id);
        }
    }
}
