//! Session archives: what was exported is what is imported, byte for byte, and nothing else changes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use piton_engine::model::ObjectId;
use piton_engine::model::event::{Event, Report};
use piton_engine::model::ownership::Owner;
use piton_engine::model::record::Record;
use piton_engine::view::{LogEntry, SessionExported, SessionImported};
use piton_engine::{
    CaptureOptions, Carry, DiffOptions, ExportSessionError, ForkOptions, ImportError, ObserveOptions, RewindOptions,
    TimelineOptions, TurnOptions, Workspace,
};
use piton_testkit::{Agent, Claude, World, git, snapshot};

fn export(world: &World, session: &str) -> (Vec<u8>, SessionExported) {
    let mut bytes = Vec::new();
    let exported = world.open().export_session(session, &mut bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(exported.size, bytes.len() as u64);
    (bytes, exported)
}

fn kept(world: &World, bytes: &[u8]) -> PathBuf {
    let file = world.base().join("archive.piton");
    std::fs::write(&file, bytes).unwrap();
    file
}

#[track_caller]
fn import(world: &World, bytes: &[u8]) -> SessionImported {
    let imported = world.open().import_session(&kept(world, bytes)).unwrap_or_else(|error| panic!("{error}"));
    world.assert_sound();
    imported
}

fn across() -> RewindOptions {
    RewindOptions { across: true, ..RewindOptions::default() }
}

#[test]
fn an_imported_conversation_is_forked_and_rewound_to_where_the_agent_finds_it_here() {
    let world = World::new();
    let claude = Claude::new(&world, 1);
    for (prompt, text) in [("first", "1\n"), ("second", "2\n")] {
        claude.edits(prompt, &["a"], |world| {
            world.write("a", text);
        });
    }
    let (bytes, _) = export(&world, &claude.id);
    let other = World::new();
    other.write("b", "b\n");
    other.capture();
    import(&other, &bytes);
    let forked = other.open().fork(&format!("{}:t2", claude.id), &ForkOptions::default()).unwrap();
    let conversation = forked.outcome.conversation.unwrap();
    assert_eq!(conversation.cwd.as_deref(), other.ws().to_str());
    let branch = Claude::resumed(&other, conversation.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["first"]);
    assert!(branch.path().starts_with(other.base()));
    assert_eq!(std::fs::read(other.path("b")).unwrap(), b"b\n", "nothing was laid out");
    branch.edits("second, here", &["b"], |world| {
        world.write("b", "bb\n");
    });
    other.open().rewind_now(&format!("{}:t2", branch.id), &RewindOptions::default()).unwrap();
    assert_eq!(std::fs::read(other.path("b")).unwrap(), b"b\n");
    other.assert_sound();
}

fn diffed(workspace: &Workspace, from: &str, to: &str) -> Vec<String> {
    let options = DiffOptions { from: from.parse().ok(), to: to.parse().ok(), ..DiffOptions::default() };
    workspace.diff(&options).unwrap().files.into_iter().map(|file| file.change.path.path).collect()
}

#[test]
fn a_session_comes_to_another_store_byte_for_byte() {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    world
        .write("a.txt", "one\n")
        .write("run.sh", "#!/bin/sh\n")
        .mode("run.sh", 0o755)
        .write("key", "k")
        .mode("key", 0o600);
    world.link("link", "a.txt").link("dangling", "no where\n\"").folder("empty/inside").mode("empty", 0o1777);
    world.write(OsStr::from_bytes(b"odd/n\xff\n x"), "odd\n").write("zero", "");
    let large: Vec<u8> = (0..3_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    world.write("large.bin", &large);
    git(&world.ws(), &["add", "a.txt", "run.sh"]);
    let agent = Agent::new(&world, "run-1");
    agent.edits("first: add a login page", &["login.rs"], |world| {
        world.write("login.rs", "fn login() {}\n");
    });
    let before_second = snapshot(&world.ws()).without(".git");
    agent.runs("second: shuffle", "make shuffle", |world| {
        let mut edited = large.clone();
        edited[7_000_000] ^= 1;
        world.write("large.bin", &edited).remove("link").link("link", "key").write("a.txt", "two\n");
    });
    let after = snapshot(&world.ws()).without(".git");
    let id = agent.id();
    let target = format!("{id}:t2.end");
    world.open().annotate(&target, "this was good").unwrap();
    let (bytes, exported) = export(&world, "run-1");
    assert_eq!((exported.turns, exported.sessions.len(), exported.transcript), (2, 1, None));
    assert!(exported.transcript_missing.is_some());

    let other = World::new();
    other.write("mine.txt", "mine\n");
    let head = other.capture();
    let imported = import(&other, &bytes);
    assert_eq!((imported.turns, imported.checkpoints), (2, exported.checkpoints));
    assert_eq!(imported.objects, exported.objects);
    let mut workspace = other.open();
    // Looking at it.
    let sessions = workspace.sessions().unwrap().sessions;
    assert_eq!((sessions.len(), sessions[0].turns, sessions[0].live), (1, 2, false));
    assert_eq!(sessions[0].changes.modified + sessions[0].changes.created, 4);
    let turns = Agent::new(&other, "run-1").turns();
    let was = agent.turns();
    assert_eq!(serde_json::to_value(&turns).unwrap(), serde_json::to_value(&was).unwrap());
    assert_eq!(diffed(&workspace, &format!("{id}:t1"), &format!("{id}:t2")), ["login.rs"]);
    assert_eq!(diffed(&workspace, &format!("{id}:t2"), &format!("{id}:t2.end")), ["a.txt", "large.bin", "link"]);
    let turn = workspace.turn_shown(&format!("{id}:t2"), &TurnOptions::default()).unwrap().unwrap();
    let paths: Vec<_> = turn.diffs.iter().map(|one| &one.file.change.path.path[..]).collect();
    assert_eq!((paths, turn.taken_back), (vec!["a.txt", "large.bin", "link"], 0));
    let shown = workspace.show(&target).unwrap();
    assert_eq!(shown.checkpoint.checkpoint.annotation.as_deref(), Some("this was good"));
    assert_eq!(shown.git.unwrap().staged.len(), 2);
    assert_eq!(workspace.search(&["login".into()], 10).unwrap().found.len(), 3);
    // Laying it out.
    let refused = workspace.rewind_now(&format!("{id}:t2"), &RewindOptions::default());
    assert!(refused.is_err(), "another folder's checkpoint asks first");
    workspace.rewind_now(&format!("{id}:t2"), &across()).unwrap();
    other.assert_is(&before_second);
    workspace.rewind_now(&target, &across()).unwrap();
    other.assert_is(&after);
    workspace.rewind_now(&head, &RewindOptions::default()).unwrap();
    assert!(other.snapshot().has("mine.txt") && !other.snapshot().has("a.txt"));
    other.assert_sound();
    // And on to a third: nothing was lost on the way.
    let (again, _) = export(&other, "run-1");
    let third = World::new();
    third.capture();
    import(&third, &again);
    assert_eq!(serde_json::to_value(Agent::new(&third, "run-1").turns()).unwrap(), serde_json::to_value(&was).unwrap());
    third.open().rewind_now(&target, &across()).unwrap();
    third.assert_is(&after);
}

#[test]
fn what_was_done_here_before_an_import_is_since_what_was_imported() {
    let world = World::new();
    world.write("a.txt", "one\n");
    let agent = Agent::new(&world, "run-1");
    agent.edits("first", &["a.txt"], |world| {
        world.write("a.txt", "two\n");
    });
    let (bytes, _) = export(&world, "run-1");
    let other = World::new();
    other.capture();
    other.write("mine.txt", "mine\n");
    other.capture();
    import(&other, &bytes);
    let mine = RewindOptions { carry: Carry::Mine, ..across() };
    other.open().rewind_now(&format!("{}:t1", agent.id()), &mine).unwrap();
    assert_eq!((other.read("a.txt"), other.read("mine.txt")), ("one\n".into(), "mine\n".into()));
    other.redo();
    assert!(!other.snapshot().has("a.txt") && other.snapshot().has("mine.txt"));
}

#[test]
fn the_transcript_comes_along_up_to_its_last_whole_line() {
    let world = World::new();
    for (number, content, whole) in
        [(1, "{\"a\":1}\n{\"b\":2}\n{\"c\":", 16), (2, &*format!("{{}}\n{}\n", "x".repeat(3 << 20)), 3 + (3 << 20) + 1)]
    {
        let claude = with_transcript(&world, number, content);
        let (bytes, exported) = export(&world, &claude.id);
        assert_eq!((exported.transcript, exported.transcript_missing), (Some(whole), None));
        let other = World::new();
        other.capture();
        assert_eq!(import(&other, &bytes).transcript, Some(whole));
        let row = other.open().session_meant(Some(&claude.id), "").unwrap();
        assert_eq!(row.session.transcript, None);
        assert_eq!(row.session.kept.as_ref().unwrap().size, whole);
        // What the store keeps goes on to the next archive, and is the same.
        let (again, exported) = export(&other, &claude.id);
        assert_eq!(exported.transcript, Some(whole));
        let third = World::new();
        third.capture();
        import(&third, &again);
        let kept = third.open().session_meant(Some(&claude.id), "").unwrap().session.kept.unwrap();
        assert_eq!(kept.blob.0, *blake3::hash(&content.as_bytes()[..whole as usize]).as_bytes());
    }
    let claude = with_transcript(&world, 3, "{}\n");
    std::fs::remove_file(claude.path()).unwrap();
    let (bytes, exported) = export(&world, &claude.id);
    assert_eq!(exported.transcript_missing.as_deref(), Some("its file is gone"));
    let other = World::new();
    other.capture();
    assert_eq!(import(&other, &bytes).transcript, None);
}

/// A session of one turn whose transcript holds something of the test's.
fn with_transcript<'w>(world: &'w World, number: u32, content: &str) -> Claude<'w> {
    let claude = Claude::new(world, number);
    claude.edits("one", &["a"], |world| {
        world.write("a", number.to_string());
    });
    std::fs::write(claude.path(), content).unwrap();
    claude
}

#[test]
fn a_file_that_a_report_named_comes_along_only_where_the_agent_keeps_transcripts() {
    let elsewhere = "its file is not where the agent keeps transcripts";
    let world = World::new();
    // An agent whose transcripts are nowhere that piton knows.
    let mut agent = Agent::new(&world, "run-1");
    let file = world.base().join("run-1.jsonl");
    std::fs::write(&file, "{\"secret\":1}\n").unwrap();
    agent.transcript = Some(file);
    agent.edits("one", &["a"], |world| {
        world.write("a", "0");
    });
    assert_eq!(export(&world, "run-1").1.transcript, None);
    // A file that is called after the session, and is not in a folder of the agent's.
    let claude = with_transcript(&world, 1, "{}\n");
    let name = claude.path().file_name().unwrap().to_owned();
    let others = world.base().join("others");
    std::fs::create_dir(&others).unwrap();
    let projects = world.base().join(".claude/projects");
    let deeper = claude.folder().join("deeper");
    std::fs::create_dir(&deeper).unwrap();
    std::os::unix::fs::symlink(&others, projects.join("link")).unwrap();
    for folder in [&others, &projects, &deeper, &projects.join("link"), &claude.folder().join("../../../others")] {
        let path = folder.join(&name);
        std::fs::write(&path, "{\"secret\":1}\n").unwrap();
        reports(&claude, path);
        let (_, exported) = export(&world, &claude.id);
        assert_eq!(
            (exported.transcript, exported.transcript_missing.as_deref()),
            (None, Some(elsewhere)),
            "{folder:?}"
        );
    }
    reports(&claude, "/etc/passwd".into());
    assert_eq!(export(&world, &claude.id).1.transcript_missing.as_deref(), Some(elsewhere));
    // In its place, and a link to another file.
    reports(&claude, claude.path());
    assert_eq!(export(&world, &claude.id).1.transcript, Some(3));
    std::fs::remove_file(claude.path()).unwrap();
    std::os::unix::fs::symlink(others.join(&name), claude.path()).unwrap();
    let (_, exported) = export(&world, &claude.id);
    assert_eq!(exported.transcript_missing.as_deref(), Some("its file cannot be read"));
}

/// A report that says where the session's transcript is.
fn reports(claude: &Claude<'_>, transcript: PathBuf) {
    let report = Report {
        agent: "claude-code".into(),
        session: claude.id.clone(),
        cwd: Some(claude.world.ws()),
        transcript: Some(transcript.clone()),
        prompt_id: None,
        subagent: None,
        event: Event::Prompt { text: "go on".into() },
    };
    claude.world.engine.observe(&report, &ObserveOptions::default()).unwrap();
    let session = claude.world.open().session_meant(Some(&claude.id), "").unwrap().session;
    assert_eq!(session.transcript.as_deref(), transcript.to_str());
}

#[test]
fn a_session_whose_kept_transcript_is_damaged_is_exported_without_any_of_it() {
    let noise: String = (0..400_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    let world = World::new();
    let claude = with_transcript(&world, 1, &format!("{noise}\n"));
    let (bytes, _) = export(&world, &claude.id);
    let other = World::new();
    other.capture();
    import(&other, &bytes);
    // The last chunk: those before it are sound.
    damage(&other, "kind = 1 AND length > 4096", 3);
    let (again, exported) = export(&other, &claude.id);
    assert_eq!((exported.transcript, exported.transcript_missing.as_deref()), (None, Some("it is damaged")));
    let third = World::new();
    third.capture();
    assert_eq!(import(&third, &again).transcript, None);
    // The list itself.
    damage(&other, "kind = 3", 1);
    assert_eq!(export(&other, &claude.id).1.transcript_missing.as_deref(), Some("it is damaged"));
}

/// Damages the last object of those of a kind, of which there are so many at least, where it lies in its pack.
fn damage(world: &World, which: &str, at_least: usize) {
    use std::os::unix::fs::FileExt;
    let store = world.open().store_folder().to_owned();
    let db = rusqlite::Connection::open(piton_store::database_file(&store).unwrap()).unwrap();
    let sql = format!("SELECT pack, offset, length FROM all_objects WHERE {which} ORDER BY pack, offset");
    let mut query = db.prepare(&sql).unwrap();
    let rows = query.query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, row.get::<_, u32>(2)?)));
    let found: Vec<_> = rows.unwrap().map(Result::unwrap).collect();
    assert!(found.len() >= at_least, "{found:?}");
    let (pack, offset, length) = found[found.len() - 1];
    let file = std::fs::OpenOptions::new().write(true).open(store.join(format!("packs/{pack:06}.pack"))).unwrap();
    file.write_all_at(&[0x55; 16], u64::from(offset + length / 2)).unwrap();
}

#[test]
fn an_import_leaves_everything_of_the_workspace_as_it_was() {
    let world = World::new();
    world.write("a.txt", "theirs\n");
    Agent::new(&world, "theirs").runs("build it", "make", |world| {
        world.write("b.txt", "theirs\n");
    });
    world.write("d.txt", "by their own hand\n");
    world.open().capture(&CaptureOptions { name: Some("good".into()), ..CaptureOptions::default() }).unwrap();
    let theirs = Agent::new(&world, "theirs").id();
    world.open().name_session(&theirs, "work").unwrap();
    let (bytes, _) = export(&world, "theirs");

    let other = World::new();
    other.write("a.txt", "mine\n").write("c.txt", "mine\n").write("d.txt", "mine\n");
    let mine = Agent::new(&other, "mine");
    mine.edits("my own", &["a.txt"], |world| {
        world.write("a.txt", "mine 2\n");
    });
    other.open().name_session(&mine.id(), "work").unwrap();
    let options = CaptureOptions { name: Some("good".into()), ..CaptureOptions::default() };
    let good = other.open().capture(&options).unwrap().checkpoint.checkpoint.id;
    let before = (other.snapshot(), serde_json::to_value(mine.turns()).unwrap());
    let outside = snapshot(other.base()).without("home").without("archive.piton");
    let imported = import(&other, &bytes);
    assert_eq!(snapshot(other.base()).without("home").without("archive.piton"), outside);
    other.assert_is(&before.0);

    let mut workspace = other.open();
    // Targets without a session are of the session that works here, and names mean what they meant.
    assert_eq!(workspace.session_meant(None, "t1").unwrap().session.id, mine.id());
    assert_eq!(workspace.session_meant(Some("work"), "t1").unwrap().session.id, mine.id());
    assert_eq!(workspace.resolve("good").unwrap().checkpoint.id, good);
    assert_eq!(workspace.resolve("t1").unwrap().checkpoint.place.unwrap().session, mine.id());
    let renamed: Vec<_> = imported.renamed.iter().map(|one| (one.session, one.now.clone())).collect();
    let longer = format!("{}-good", theirs.short());
    assert_eq!(renamed, [(true, None), (false, Some(longer.clone()))]);
    assert_eq!(workspace.resolve(&longer).unwrap().checkpoint.cause.as_str(), "manual");
    assert_eq!(serde_json::to_value(mine.turns()).unwrap(), before.1);
    // The windows of its tools were never open here: what changes now is the user's.
    other.write("a.txt", "mine 3\n").write("b.txt", "mine\n").remove("c.txt");
    let captured = other.captured().checkpoint.checkpoint;
    assert_eq!(captured.parent, Some(good));
    assert_eq!(captured.place.unwrap().session, mine.id());
    let shown = workspace.show(captured.id.as_str()).unwrap();
    assert!(shown.files.len() == 3 && shown.files.iter().all(|file| file.owner == Some(Owner::You)), "{shown:?}");
    // Nor does anybody's work elsewhere say whose a change here is.
    mine.runs("build", "make", |world| {
        world.write("d.txt", "made\n");
    });
    let last = mine.turns().pop().unwrap();
    assert_eq!((last.files.len(), last.unsure.len()), (1, 0), "{last:?}");
    // A plan of the workspace's own knows nothing of commands that ran elsewhere.
    let plan = workspace.plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().commands.len(), 1, "{:?}", plan.view().commands);
    workspace.rewind_now("t1", &RewindOptions::default()).unwrap();
    assert_eq!(other.snapshot().bytes("a.txt"), Some(&b"mine\n"[..]));
    other.assert_sound();
    // A lost database comes back the same.
    let folder = workspace.store_folder().to_owned();
    drop(workspace);
    std::fs::remove_file(piton_store::database_file(&folder).unwrap()).unwrap();
    assert_eq!(other.open().session_meant(None, "t1").unwrap().session.id, mine.id());
    other.assert_sound();
}

#[test]
fn the_same_archive_twice_changes_nothing_and_another_state_of_it_is_refused() {
    let world = World::new();
    world.write("a", "1");
    let agent = Agent::new(&world, "run-1");
    agent.edits("one", &["a"], |world| {
        world.write("a", "2");
    });
    let (first, _) = export(&world, "run-1");
    agent.edits("two", &["a"], |world| {
        world.write("a", "3");
    });
    let (second, _) = export(&world, "run-1");
    // Where it was made everything is there too.
    assert!(import(&world, &first).already_here);
    let other = World::new();
    other.capture();
    assert!(!import(&other, &first).already_here);
    let log = other.open().log(Default::default()).unwrap().total;
    let again = import(&other, &first);
    assert!(again.already_here && again.sessions.is_empty());
    assert_eq!(other.open().log(Default::default()).unwrap().total, log);
    let refused = other.open().import_session(&kept(&other, &second));
    assert!(matches!(refused, Err(ImportError::Here(_))), "{refused:?}");
    other.assert_sound();
}

#[test]
fn a_branch_brings_the_turns_that_it_shares_with_its_parent_and_no_more() {
    use crate::forge::{Forge, Object, branch, checkpoint, listing, session, turn, turn_end};
    let parent = session("parent");
    let child = branch("child", &parent, 2);
    let blobs = [Object::blob("1"), Object::blob("2"), Object::blob("3")];
    let trees: Vec<Object> = blobs.iter().map(|blob| listing(&[b"f"], 0o644, blob)).collect();
    let mut all = Forge::empty(&child.id);
    all.objects = blobs.into_iter().chain(trees.iter().cloned()).collect();
    all.add(Record::Session(parent.clone()));
    all.add(Record::Session(child.clone()));
    for (number, of, at) in [(1, &parent, 1), (2, &parent, 2), (3, &child, 2)] {
        all.add(turn(of, at, &format!("prompt {number}")));
        all.add(Record::Checkpoint(checkpoint(of, number, at, &trees[usize::from(number) - 1])));
        all.add(turn_end(of, at));
    }
    let world = World::new();
    world.capture();
    let imported = import(&world, &all.bytes());
    assert_eq!((imported.sessions.len(), imported.turns, imported.checkpoints), (2, 3, 3));

    let (bytes, exported) = export(&world, "child");
    assert_eq!((exported.turns, exported.checkpoints), (2, 2));
    assert_eq!(exported.sessions, [child.id.clone(), parent.id.clone()]);
    let other = World::new();
    other.capture();
    import(&other, &bytes);
    let workspace = other.open();
    let options = TimelineOptions { session: Some(parent.id.clone()), ..TimelineOptions::default() };
    let turns = workspace.timeline(&options).unwrap().entries;
    let prompts: Vec<_> =
        turns.iter().filter_map(|one| if let LogEntry::Turn(t) = one { t.prompt.clone() } else { None }).collect();
    assert_eq!(prompts, ["prompt 1"]);
    let row = workspace.session_meant(Some("child"), "").unwrap().session;
    assert_eq!(row.origin.unwrap().parent, parent.id);
    drop(workspace);
    other.open().rewind_now("child:t2", &across()).unwrap();
    assert_eq!(other.snapshot().bytes("f"), Some(&b"3"[..]));
    // The parent alone, with all of its turns, is another thing than what is here of it.
    let (whole, _) = export(&world, "parent");
    let refused = other.open().import_session(&kept(&other, &whole));
    assert!(matches!(refused, Err(ImportError::Here(_))), "{refused:?}");
    // Where the parent is whole, its branch joins it.
    let third = World::new();
    third.capture();
    import(&third, &whole);
    let joined = import(&third, &bytes);
    assert_eq!((joined.sessions, joined.turns), (vec![child.id], 1));
}

#[test]
fn a_session_that_is_not_there_or_holds_nothing_is_not_exported() {
    let world = World::new();
    world.write("a", "1");
    world.capture();
    let refused = world.open().export_session("nobody", &mut Vec::new());
    assert!(matches!(refused, Err(ExportSessionError::Target(_))), "{refused:?}");
    world.open().begin_session("test", "../../x").unwrap();
    let refused = world.open().export_session("../../x", &mut Vec::new());
    assert!(matches!(refused, Err(ExportSessionError::Unportable { .. })), "{refused:?}");
}

#[test]
fn an_archive_that_does_not_fit_in_the_budget_is_refused_before_anything_is_written() {
    let world = World::new();
    let noise: Vec<u8> =
        (0..5_000_000_u64).flat_map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[..2].to_vec()).collect();
    world.write("noise", &noise);
    Agent::new(&world, "run-1").edits("one", &["a"], |world| {
        world.write("a", "2");
    });
    let (bytes, _) = export(&world, "run-1");
    let other = World::new();
    let budget = Some(piton_engine::MINIMUM_BUDGET);
    other.engine.init(&other.ws(), piton_engine::InitOptions { budget, force: false }).unwrap();
    other.capture();
    let before = packs(&other);
    let refused = other.open().import_session(&kept(&other, &bytes));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("over its budget"), "{text}");
    assert_eq!(packs(&other), before);
    other.assert_sound();
}

fn packs(world: &World) -> Vec<u64> {
    let folder = world.open().store_folder().join("packs");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect()
}

#[test]
fn what_was_staged_and_is_in_no_checkpoint_does_not_leave() {
    let world = World::new();
    // The workspace is a folder of the repository, and was one before that came.
    world.capture();
    git(world.base(), &["init", "-q", "-b", "main"]);
    std::fs::write(world.base().join("above.txt"), "a secret above\n").unwrap();
    world.write(".gitignore", ".env\n").write(".env", "a secret that was staged\n").write("a.txt", "one\n");
    git(world.base(), &["add", "-f", "above.txt"]);
    git(&world.ws(), &["add", "-f", ".env", "a.txt"]);
    world.remove(".env");
    let agent = Agent::new(&world, "run-1");
    agent.edits("edit", &["b.txt"], |world| {
        world.write("b.txt", "b\n");
    });
    let target = format!("{}:t1.end", agent.id());
    let staged = |world: &World| world.open().show(&target).unwrap().git.unwrap().staged.len();
    assert_eq!(staged(&world), 3);
    let (bytes, _) = export(&world, "run-1");
    let holds = |text: &str| {
        let id = ObjectId::of_blob(text.as_bytes());
        bytes.windows(32).any(|window| window == id.0)
    };
    assert!(holds("one\n") && !holds("a secret above\n") && !holds("a secret that was staged\n"));
    let other = World::new();
    import(&other, &bytes);
    assert_eq!(staged(&other), 1);
}
