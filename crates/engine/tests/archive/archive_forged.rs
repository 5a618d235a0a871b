//! Archives that somebody made with bad intent, or that a disk damaged: refused as a whole, and the store is as before.

use std::path::PathBuf;

use crate::forge::{BLOB, Forge, Object, branch, checkpoint_id, frame, listing, session, step, turn, turn_end};
use piton_engine::model::record::Record;
use piton_engine::model::session::{KeptTranscript, Message};
use piton_engine::model::tree::TreeEncoder;
use piton_engine::model::{CheckpointId, ObjectId, OperationId, SkipReason, Timestamp};
use piton_engine::{CaptureOptions, InitOptions, MINIMUM_BUDGET, RewindOptions};
use piton_testkit::{Agent, World};
use serde_json::json;

/// A workspace with a session, a name and files of its own.
fn target() -> World {
    let world = World::new();
    world.write("mine.txt", "mine\n");
    Agent::new(&world, "mine").edits("my own", &["mine.txt"], |world| {
        world.write("mine.txt", "mine 2\n");
    });
    let name = Some("good".to_owned());
    world.open().capture(&CaptureOptions { name, ..CaptureOptions::default() }).unwrap();
    world
}

/// Before any clock that counts from 1970: what is reckoned from it may overflow.
const BEFORE: &str = "-009000-01-01T00:00:00Z";

/// Everything that a store says.
fn state(world: &World) -> (Vec<(String, Vec<u8>)>, String) {
    let workspace = world.open();
    let mut packs: Vec<_> = std::fs::read_dir(workspace.store_folder().join("packs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    packs.sort();
    let log = serde_json::to_string(&workspace.log(Default::default()).unwrap()).unwrap();
    let sessions = serde_json::to_string(&workspace.sessions().unwrap()).unwrap();
    (packs, log + &sessions)
}

fn put(world: &World, bytes: &[u8]) -> PathBuf {
    let file = world.base().join("forged.piton");
    std::fs::write(&file, bytes).unwrap();
    file
}

/// Why an archive is refused, with nothing changed.
#[track_caller]
fn refusal(world: &World, bytes: &[u8]) -> String {
    let before = state(world);
    let refused = world.open().import_session(&put(world, bytes));
    let said = refused.expect_err("it is refused").to_string();
    assert!(state(world) == before, "the store is as it was: {said}");
    said
}

#[test]
fn an_archive_made_by_hand_from_the_documented_format_is_taken() {
    let world = target();
    let imported = world.open().import_session(&put(&world, &Forge::sound("other").bytes())).unwrap();
    assert_eq!((imported.turns, imported.checkpoints, imported.objects), (1, 1, 2));
    world.assert_sound();
    let turns = Agent::new(&world, "other").turns();
    // What nobody heard the end of has ended: no tool of it runs here.
    assert_eq!(turns[0].steps[0].ending.unwrap().as_str(), "lost");
    let options = RewindOptions { across: true, ..RewindOptions::default() };
    world.open().rewind_now("other:t1", &options).unwrap();
    assert_eq!(world.snapshot().bytes("a.txt"), Some(&b"hello\n"[..]));
}

/// One thing that is wrong with an otherwise sound archive, and what is said of it.
type Case = (&'static str, Box<dyn Fn(&mut Forge)>);

fn case(said: &'static str, act: impl Fn(&mut Forge) + 'static) -> Case {
    (said, Box::new(act))
}

/// Puts another tree in place of the checkpoint's.
fn replace_tree(forge: &mut Forge, tree: Object) {
    forge.record("checkpoint")["root"]["tree"] = json!(tree.id());
    *forge.objects.last_mut().unwrap() = tree;
}

fn cases_of_trees() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for name in [&b".."[..], b".", b"", b".git", b".GIT", b"a/b", b"../../etc/passwd", b"/etc/passwd", b"a\0b"] {
        cases.push(case("a tree in it is not valid", move |forge| {
            let tree = listing(&[name], 0o644, &forge.objects[0]);
            replace_tree(forge, tree);
        }));
    }
    cases.push(case("a tree in it is not valid", |forge| {
        let tree = listing(&[b"a", b"a"], 0o644, &forge.objects[0]);
        replace_tree(forge, tree);
    }));
    cases.push(case("a tree in it is not valid", |forge| {
        let tree = listing(&[b"a"], 0o100_644, &forge.objects[0]);
        replace_tree(forge, tree);
    }));
    for mode in [0o4755, 0o2755] {
        cases.push(case("would run as whoever lays it out", move |forge| {
            let tree = listing(&[b"a"], mode, &forge.objects[0]);
            replace_tree(forge, tree);
        }));
    }
    // A terabyte that is not there.
    cases.push(case("another length than is said", |forge| {
        let mut tree = TreeEncoder::new(false);
        tree.file(b"a", 0o644, 1 << 40, &forge.objects[0].id());
        replace_tree(forge, Object::tree(tree.finish()));
    }));
    cases.push(case("a blob that a record names is not in it", |forge| {
        let tree = listing(&[b"a"], 0o644, &Object::blob("elsewhere"));
        replace_tree(forge, tree);
        forge.objects.remove(0);
    }));
    cases.push(case("a folder of a tree is not in it", |forge| {
        let mut tree = TreeEncoder::new(false);
        tree.folder(b"d", 0o755, &ObjectId([7; 32]), false);
        replace_tree(forge, Object::tree(tree.finish()));
    }));
    // A blob where a folder should be.
    cases.push(case("a folder of a tree is not in it", |forge| {
        let mut tree = TreeEncoder::new(false);
        tree.folder(b"d", 0o755, &forge.objects[0].id(), false);
        replace_tree(forge, Object::tree(tree.finish()));
    }));
    cases.push(case("captured whole and is not", |forge| {
        let mut inner = TreeEncoder::new(false);
        inner.skipped(b"node_modules", SkipReason::Ignored);
        let inner = Object::tree(inner.finish());
        let mut tree = TreeEncoder::new(false);
        tree.folder(b"d", 0o755, &inner.id(), false);
        forge.objects = vec![inner, Object::blob("x")];
        replace_tree(forge, Object::tree(tree.finish()));
    }));
    for target in [&b""[..], b"a\0b", &[b'x'; 5_000]] {
        cases.push(case("a link leads where no link can", move |forge| {
            let mut tree = TreeEncoder::new(false);
            tree.symlink(b"l", target);
            replace_tree(forge, Object::tree(tree.finish()));
        }));
    }
    // A few kilobytes that are more paths than there are atoms.
    cases.push(case("more than a folder can", |forge| {
        let mut last = forge.objects[1].clone();
        for _ in 0..30 {
            let mut tree = TreeEncoder::new(false);
            for name in [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"] {
                tree.folder(name, 0o755, &last.id(), false);
            }
            last = Object::tree(tree.finish());
            forge.objects.push(last.clone());
        }
        forge.record("checkpoint")["root"]["tree"] = json!(last.id());
    }));
    cases.push(case("deeper than any path goes", |forge| {
        let mut last = forge.objects[1].clone();
        for _ in 0..2_100 {
            let mut tree = TreeEncoder::new(false);
            tree.folder(b"d", 0o755, &last.id(), false);
            last = Object::tree(tree.finish());
            forge.objects.push(last.clone());
        }
        forge.record("checkpoint")["root"]["tree"] = json!(last.id());
    }));
    cases
}

/// A file of three chunks in the checkpoint's tree, whose list may be wrong.
fn with_large(forge: &mut Forge, change: impl Fn(&mut Vec<Object>, &mut Object)) {
    let mut chunks: Vec<Object> = (1..4_u8).map(|n| Object::blob(vec![n; 70_000])).collect();
    let mut list = Object::list(&chunks.iter().collect::<Vec<_>>());
    let mut tree = TreeEncoder::new(false);
    tree.file(b"large", 0o644, 210_000, &list.id());
    change(&mut chunks, &mut list);
    chunks.push(list);
    chunks.push(Object::tree(tree.finish()));
    forge.record("checkpoint")["root"]["tree"] = json!(chunks.last().unwrap().id());
    forge.objects = chunks;
}

/// A chunk that is named again and again makes a file of any length: 1 TiB takes an hour to hash.
#[test]
fn what_is_said_to_be_far_larger_than_the_budget_is_refused_before_it_is_read() {
    let world = target();
    world.engine.init(&world.ws(), InitOptions { budget: Some(MINIMUM_BUDGET), force: false }).unwrap();
    let said = |times: usize| {
        let mut forge = Forge::sound("other");
        with_large(&mut forge, |chunks, list| {
            *chunks = vec![Object::blob(vec![7; 1 << 20])];
            chunks[0].packed = true;
            list.raw = [&chunks[0].id[..], &(1_u32 << 20).to_le_bytes()].concat().repeat(times);
            list.packed = true;
        });
        refusal(&world, &forge.bytes())
    };
    assert!(said(2).contains("the chunks of a file are not those of it"), "{}", said(2));
    let began = std::time::Instant::now();
    let large = said(1 << 20);
    assert!(large.contains("too much for a budget of 8388608 bytes"), "{large}");
    assert!(began.elapsed() < std::time::Duration::from_secs(60));
    // Many small ones that unpack to much.
    let mut forge = Forge::sound("other");
    let zeros: Vec<Object> = (0..200_u32)
        .map(|n| Object { packed: true, ..Object::blob([&n.to_le_bytes()[..], &vec![0; 1 << 20]].concat()) })
        .collect();
    forge.objects.splice(0..0, zeros);
    assert!(refusal(&world, &forge.bytes()).contains("too much for a budget"));
    // An archive that is larger than the budget itself.
    let mut forge = Forge::sound("other");
    forge.objects.insert(0, Object::blob(vec![1; 9 << 20]));
    assert!(refusal(&world, &forge.bytes()).contains("over its budget"));
}

fn cases_of_objects() -> Vec<Case> {
    vec![
        case("a record is not what it was", |forge| forge.objects[0].raw = b"hello!".to_vec()),
        case("a record is not what it was", |forge| forge.objects[1].id[0] ^= 1),
        case("an object comes twice", |forge| {
            let first = forge.objects[0].clone();
            forge.objects.insert(0, first);
        }),
        case("an object that nothing needs", |forge| forge.objects.insert(0, Object::blob("filler"))),
        case("the tree of a checkpoint is not in it", |forge| {
            forge.record("checkpoint")["root"]["tree"] = json!(ObjectId([9; 32]));
        }),
        case("the tree of a checkpoint is not in it", |forge| {
            let blob = forge.objects[0].id();
            forge.record("checkpoint")["root"]["tree"] = json!(blob);
        }),
        case("a blob that a record names is not in it", |forge| forge.objects.reverse()),
        // Sizes: before anything is unpacked, and by what really comes out.
        case("a record says that it is larger than any", |forge| {
            let zeros = Object { packed: true, ..Object::blob(vec![0; 100_000]) };
            forge.objects.insert(0, Object { said: Some(1), ..zeros });
        }),
        case("there is no record", |forge| {
            forge.objects.insert(0, Object { said: Some(u32::MAX), ..Object::blob("x") });
        }),
        case("there is no record", |forge| {
            forge.objects.insert(0, Object { said: Some((256 << 20) + 1), ..Object::blob("x") });
        }),
        case("a record is not what it was", |forge| {
            // 64 MiB of zeros in some kilobytes, which are said to be 100,000 bytes.
            let bomb = Object { packed: true, ..Object::blob(vec![0; 64 << 20]) };
            forge.objects.insert(0, Object { said: Some(100_000), ..bomb });
        }),
        case("a record is not what it was", |forge| {
            let few = Object { packed: true, ..Object::blob(vec![7; 500]) };
            forge.objects.insert(0, Object { said: Some(200 << 20), ..few });
        }),
        case("a record says that it is larger than any", |forge| {
            let mut long = forge.records[0].clone();
            long["name"] = json!("x".repeat(65 << 20));
            forge.records[0] = long;
        }),
        case("more than a session has", |forge| {
            let session = session("other").id;
            let text = "x".repeat(30 << 20);
            let message = Message { session, turn: 1, role: "user".into(), text, at: Timestamp(1) };
            (0..5).for_each(|_| forge.add(Record::Message(message.clone())));
        }),
        case("the chunks of a file are not those of it", |forge| {
            with_large(forge, |_, list| list.raw[..72].rotate_left(36));
        }),
        case("a chunk of a file is not in it", |forge| with_large(forge, |chunks, _| drop(chunks.remove(1)))),
        case("a chunk has another length", |forge| with_large(forge, |_, list| list.raw[33] ^= 1)),
        case("a list of chunks is not valid", |forge| with_large(forge, |_, list| list.raw.truncate(100))),
        case("a list of chunks is not valid", |forge| with_large(forge, |_, list| list.raw.clear())),
        case("a small blob that a record names is not in it", |forge| {
            with_large(forge, |_, _| {});
            let large = forge.objects[3].id();
            forge.record("checkpoint")["git"] = json!(large);
        }),
    ]
}

fn cases_of_records() -> Vec<Case> {
    let set = |kind: &'static str, field: &'static str, value: serde_json::Value| {
        move |forge: &mut Forge| forge.record(kind)[field] = value.clone()
    };
    let again = |kind: &'static str| {
        move |forge: &mut Forge| {
            let twice = forge.record(kind).clone();
            forge.records.push(twice);
        }
    };
    let add = |record: Record| move |forge: &mut Forge| forge.add(record.clone());
    let (other, mine) = (session("other"), session("mine"));
    let with = |act: fn(&mut serde_json::Value)| move |forge: &mut Forge| act(forge.record("checkpoint"));
    let mut cases = vec![
        case("it does not say what it is of", |forge| forge.manifest = json!({"session": "../x"})),
        case("the session that it is of is not in it", |forge| forge.manifest["session"] = json!(session("no").id)),
        case("no clock goes", |forge| forge.manifest["made_at"] = json!(BEFORE)),
        case("a session comes twice", |forge| forge.records.insert(0, forge.records[0].clone())),
        case("a session comes after what is of it", again("session")),
        case("it holds a session that it is not of", |forge| {
            let stranger = serde_json::to_value(Record::Session(session("stranger"))).unwrap();
            forge.records.insert(0, stranger);
        }),
        case("a session's parent is not in it", |forge| {
            forge.records[0] = serde_json::to_value(Record::Session(branch("other", &session("no"), 2))).unwrap();
        }),
        case("are each other's parents", |forge| {
            let (a, b) = (branch("other", &session("b"), 2), branch("b", &session("other"), 2));
            forge.records[0] = serde_json::to_value(Record::Session(a)).unwrap();
            forge.records.insert(0, serde_json::to_value(Record::Session(b)).unwrap());
        }),
        // An id that is another session's.
        case("id is not that of its agent", set("session", "id", json!(mine.id))),
        case("letters, digits", set("session", "agent_id", json!("../../x"))),
        case("letters, digits", set("session", "agent_id", json!(""))),
        case("its agent has no name", set("session", "agent", json!("a\u{1b}[2J"))),
        case("a session's name is longer", set("session", "name", json!("x".repeat(1_000)))),
        case("no clock goes", set("session", "started_at", json!(BEFORE))),
        case("a blob that a record names is not in it", |forge| {
            let kept = KeptTranscript { blob: ObjectId([1; 32]), size: 5 };
            forge.record("session")["kept"] = serde_json::to_value(kept).unwrap();
        }),
        case("another length than is said", |forge| {
            let kept = KeptTranscript { blob: forge.objects[0].id(), size: 1 << 40 };
            forge.record("session")["kept"] = serde_json::to_value(kept).unwrap();
        }),
        case("a turn comes twice", again("turn")),
        case("a turn's end comes twice", again("turn-ended")),
        case("a step comes twice", again("step")),
        case("a checkpoint comes twice", again("checkpoint")),
        case("a turn or step has no such number", set("turn", "number", json!(0))),
        case("a turn or step has no such number", set("turn", "number", json!(100_000_000))),
        case("a record in it is not valid", set("turn", "number", json!(-1))),
        case("a turn or step has no such number", set("step", "step", json!(0))),
        case("a turn or step has no such number", set("step", "turn", json!(u32::MAX))),
        case("no clock goes", set("step", "opened", json!(-5))),
        case("no clock goes", set("step", "opened", json!(i64::MAX))),
        case("a record in it is not valid", set("turn", "at", json!("+999999-01-01T00:00:00Z"))),
        case("no clock goes", set("turn-ended", "at", json!(BEFORE))),
        case("a turn ends that did not begin", add(turn_end(&other, 7))),
        case("a record in it is not valid", set("step", "paths", json!(["../../etc/passwd"]))),
        case("a record in it is not valid", set("step", "paths", json!([".git/config"]))),
        case("a record in it is not valid", set("step", "paths", json!([{"b64": "Li4vLi4veA=="}]))),
        case("names a session that is not in it", add(turn(&mine, 9, "x"))),
        case("names a session that is not in it", add(step(&mine, 1, 9))),
        case("a record in it is not valid", set("checkpoint", "id", json!("../../../../x"))),
        case("a record in it is not valid", set("checkpoint", "operation", json!("x"))),
        case("no clock goes", set("checkpoint", "created_at", json!(BEFORE))),
        case("more than there can be", set("checkpoint", "skipped", json!(u64::MAX))),
        case("more than there can be", with(|c| c["changes"]["created"] = json!(1_u64 << 60))),
        case("bits that no folder has", with(|c| c["root"]["mode"] = json!(0o40_755))),
        case("a record in it is not valid", with(|c| c["unsettled"] = json!(["/etc/passwd"]))),
        case("a blob that a record names is not in it", with(|c| c["git"] = json!(ObjectId([3; 32])))),
        case("the state of a repository in it is not valid", |forge| {
            let blob = forge.objects[0].id();
            forge.record("checkpoint")["git"] = json!(blob);
        }),
        case(
            "names a checkpoint that is not in it",
            add(Record::Name { checkpoint: checkpoint_id(9), name: "x".into() }),
        ),
        case("names a checkpoint that is not in it", {
            add(Record::Annotation { checkpoint: checkpoint_id(9), text: "x".into() })
        }),
        case("a name comes twice", |forge| {
            forge.add(Record::Name { checkpoint: checkpoint_id(1), name: "x".into() });
            forge.add(Record::Name { checkpoint: checkpoint_id(1), name: "x".into() });
        }),
        case("a note comes twice", |forge| {
            forge.add(Record::Annotation { checkpoint: checkpoint_id(1), text: "x".into() });
            forge.add(Record::Annotation { checkpoint: checkpoint_id(1), text: "y".into() });
        }),
        case("a note is longer than any", {
            add(Record::Annotation { checkpoint: checkpoint_id(1), text: "x".repeat(10_001) })
        }),
        case("a session's end comes twice", |forge| {
            let end = || Record::SessionEnded { session: session("other").id, reason: None, at: Timestamp(1) };
            forge.add(end());
            forge.add(end());
        }),
        case("not a session's", add(Record::Imported { session: other.id.clone(), at: Timestamp(1) })),
        case("not a session's", |forge| {
            let outcome = piton_engine::model::Outcome::RolledBack { why: "x".into() };
            let operation = OperationId::from_random([1; 8]);
            forge.add(Record::Ended { operation, outcome, ended_at: Timestamp(1) });
        }),
        case("a record in it is not valid", |forge| forge.records.push(json!({"record": "later"}))),
        case("a record is out of order", |forge| forge.records[2]["seq"] = json!(2)),
        case("a record is out of order", |forge| forge.first = 2),
        case("format 2", |forge| forge.version = 2),
        case("format 0", |forge| forge.version = 0),
    ];
    for name in ["t5", "@", "start", "-x", "kmzqkmzqkmzqkmzq", "a:b", "a\u{7}", "10m", ""] {
        cases.push(case(
            "a name in it is not valid",
            add(Record::Name { checkpoint: checkpoint_id(1), name: name.into() }),
        ));
    }
    for (field, value) in
        [("commit", "--upload-pack=x"), ("commit", "abc"), ("branch", "-D"), ("branch", "../../x"), ("branch", "a b")]
    {
        cases.push(case("names no commit or branch", move |forge| {
            let state = Object::blob(json!({"head": {field: value}}).to_string());
            forge.record("checkpoint")["git"] = json!(state.id());
            forge.objects.insert(0, state);
        }));
    }
    cases
}

#[test]
fn whatever_no_piton_would_have_written_is_refused_and_the_store_is_as_before() {
    let world = target();
    for (said, act) in cases_of_trees().into_iter().chain(cases_of_objects()).chain(cases_of_records()) {
        let mut forge = Forge::sound("other");
        act(&mut forge);
        let refused = refusal(&world, &forge.bytes());
        assert!(refused.contains(said), "{said:?} should be said, and not {refused:?}");
    }
    world.assert_sound();
    assert!(!world.open().import_session(&put(&world, &Forge::sound("other").bytes())).unwrap().already_here);
}

#[test]
fn what_an_archive_names_elsewhere_comes_to_nothing() {
    let world = target();
    let mine = Agent::new(&world, "mine").id();
    let mut forge = Forge::sound("other");
    let stranger = json!({"who": "step", "session": mine, "turn": 1, "step": 1, "evidence": "named"});
    let checkpoint = forge.record("checkpoint");
    // A later one, one of the workspace's own, an operation, another session's step: none is in the archive.
    checkpoint["parent"] = json!(checkpoint_id(1));
    checkpoint["operation"] = json!(OperationId::from_random([4; 8]));
    checkpoint["owned"] = json!([{"owner": stranger, "paths": [{"path": "mine.txt", "kind": "modified"}]}]);
    checkpoint["line"] = json!(1);
    let session = forge.record("session");
    session["transcript"] = json!("/etc/passwd");
    session["rank"] = json!("deleted");
    let step = forge.record("step");
    step["outside"] = json!([{"path": "/etc/passwd", "file": null}]);
    step["process"] = json!({"pid": 1, "started": 1});
    let mine_before = serde_json::to_value(Agent::new(&world, "mine").turns()).unwrap();
    world.open().import_session(&put(&world, &forge.bytes())).unwrap();
    world.assert_sound();
    let workspace = world.open();
    let row = workspace.resolve("other:t1").unwrap().checkpoint;
    assert_eq!((row.parent, row.operation), (None, None));
    assert!(row.line >= 1 << 31);
    assert_eq!(serde_json::to_value(&row.owned[0].owner).unwrap(), json!({"who": "unsure", "candidates": []}));
    let session = workspace.session_meant(Some("other"), "").unwrap().session;
    assert_eq!((session.transcript, session.rank.as_str()), (None, "plain"));
    assert_eq!(serde_json::to_value(Agent::new(&world, "mine").turns()).unwrap(), mine_before);
    // Nothing outside comes into any plan.
    let options = RewindOptions { outside: true, ..RewindOptions::default() };
    assert!(workspace.plan_rewind("mine:t1", &options).unwrap().view().outside.is_empty());
}

#[test]
fn an_archive_cannot_take_the_place_of_anything_that_is_here() {
    let world = target();
    let own: CheckpointId = world.open().resolve("good").unwrap().checkpoint.id;
    // The id of one of the workspace's own checkpoints.
    let mut forge = Forge::sound("other");
    forge.record("checkpoint")["id"] = json!(own);
    assert!(refusal(&world, &forge.bytes()).contains("is in this store already"));
    // The session of the workspace itself.
    assert!(refusal(&world, &Forge::sound("mine").bytes()).contains("is in this store already"));
    // Its name as a branch's parent.
    let parent = session("mine");
    let mut forge = Forge::sound("other");
    forge.records[0] = serde_json::to_value(Record::Session(branch("other", &parent, 2))).unwrap();
    forge.records.insert(0, serde_json::to_value(Record::Session(parent.clone())).unwrap());
    forge.add(turn(&parent, 1, "never said"));
    assert!(refusal(&world, &forge.bytes()).contains("is a branch of"));
    // What a person types for the workspace's own session.
    let id = Agent::new(&world, "mine").id();
    for agent_id in ["min", &id.as_str()[..4], id.as_str()] {
        let said = refusal(&world, &Forge::sound(agent_id).bytes());
        assert!(said.contains("here that means session"), "{said}");
    }
    // A name that is the beginning of a checkpoint's id.
    let mut forge = Forge::sound("other");
    let short = own.as_str()[..5].to_owned();
    forge.add(Record::Name { checkpoint: checkpoint_id(1), name: short.clone() });
    forge.add(Record::Name { checkpoint: checkpoint_id(1), name: "good".into() });
    let imported = world.open().import_session(&put(&world, &forge.bytes())).unwrap();
    assert_eq!(imported.renamed.len(), 2);
    assert_eq!(world.open().resolve(&short).unwrap().checkpoint.id, own);
    assert_eq!(world.open().resolve("good").unwrap().checkpoint.id, own);
    world.assert_sound();
}

#[test]
fn any_flipped_bit_and_any_cut_is_refused_and_nothing_panics() {
    let world = target();
    let mut forge = Forge::sound("other");
    forge.objects[0].packed = false;
    let sound = forge.bytes();
    let before = state(&world);
    let mut workspace = world.open();
    let mut tried = 0;
    let mut try_one = |bytes: &[u8], what: String| {
        let refused = workspace.import_session(&put(&world, bytes));
        assert!(refused.is_err(), "{what} is taken");
        tried += 1;
    };
    for at in 0..sound.len() {
        let mut bad = sound.clone();
        bad[at] ^= 1 << (at % 8);
        try_one(&bad, format!("a flipped bit at {at}"));
        try_one(&sound[..at], format!("a cut at {at}"));
    }
    for extra in [&b"x"[..], b"PITONEND", &sound] {
        try_one(&[&sound, extra].concat(), "more at the end".to_owned());
    }
    assert!(tried > 2_000);
    drop(workspace);
    assert!(state(&world) == before);
    world.assert_sound();
}

#[test]
fn records_in_any_other_order_or_with_any_left_out_are_refused_or_hold_together() {
    let world = target();
    let sound = Forge::sound("other");
    let before = state(&world);
    for a in 0..sound.records.len() {
        for b in 0..=sound.records.len() {
            let mut forge = sound.clone();
            let one = forge.records.remove(a);
            if b < sound.records.len() {
                forge.records.insert(b, one);
            }
            if b == a {
                continue;
            }
            // With numbers that fit, and with those that they had.
            let moved = forge.bytes();
            let world = target();
            if world.open().import_session(&put(&world, &moved)).is_ok() {
                world.assert_sound();
                world.open().timeline(&Default::default()).unwrap();
            }
        }
    }
    for (a, b) in [(0, 1), (1, 0)] {
        let mut forge = sound.clone();
        forge.objects.swap(a, b);
        assert!(refusal(&world, &forge.bytes()).contains("is not in it"));
    }
    // An object among the records, and a record among the objects.
    let body = sound.body();
    let blob = frame(BLOB, 0, 1, 1, &ObjectId::of_blob(b"z").0, b"z");
    let mut bytes = [&body[..], &blob].concat();
    let digest = blake3::hash(&bytes);
    bytes.extend_from_slice(b"PITONEND");
    bytes.extend_from_slice(digest.as_bytes());
    assert!(refusal(&world, &bytes).contains("an object is out of order"));
    assert!(state(&world) == before);
}

#[test]
fn what_is_no_archive_at_all_is_refused() {
    let world = target();
    for bytes in [&b""[..], b"x", b"PITONPK1\x01\0\0\0\0\0\0\0", &[0; 4_096], b"PITONAR1\x01\0\0\0\x01\0\0\0"] {
        assert_eq!(refusal(&world, bytes), "it is not a session archive");
    }
    let workspace = &mut world.open();
    for path in ["/dev/zero", "/nonexistent", "."] {
        assert!(workspace.import_session(path.as_ref()).is_err(), "{path}");
    }
}

#[test]
fn a_small_archive_of_much_takes_little_memory_and_little_disk() {
    let world = target();
    let mut forge = Forge::sound("other");
    // The most that one object may be, in some kilobytes: it is taken, and takes as much on the disk as it came with.
    let bomb = Object { packed: true, ..Object::blob(vec![0; 100 << 20]) };
    let tree = listing(&[b"zeros"], 0o644, &bomb);
    forge.record("checkpoint")["root"]["tree"] = json!(tree.id());
    forge.objects = vec![bomb, tree];
    let bytes = forge.bytes();
    assert!(bytes.len() < 100_000);
    let imported = world.open().import_session(&put(&world, &bytes)).unwrap();
    assert!(imported.bytes < 100_000);
    world.assert_sound();
    // More of it than a folder can hold is refused before anybody looks at it.
    let mut forge = Forge::sound("another");
    forge.record("checkpoint")["id"] = json!(checkpoint_id(2));
    let bomb = Object { packed: true, ..Object::blob(vec![0; 100 << 20]) };
    let names: Vec<String> = (10_000..22_000).map(|n| n.to_string()).collect();
    let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let tree = listing(&names, 0o644, &bomb);
    forge.record("checkpoint")["root"]["tree"] = json!(tree.id());
    forge.objects = vec![bomb, tree];
    assert!(refusal(&world, &forge.bytes()).contains("too much for a budget"));
}
