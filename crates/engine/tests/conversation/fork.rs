//! Forking: a branch on purpose, beside what goes on; with a worktree, in a folder of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use piton_agents::claude_code::places::project_folder;
use piton_engine::model::Scope;
use piton_engine::model::conversation::Began;
use piton_engine::view::{ForkOutcome, TurnView};
use piton_engine::{
    Carry, Choice, CompareOptions, DiffOptions, ForkError, ForkOptions, LayoutError, OpenError, OperationError,
    RewindOptions, TargetError, TurnOptions, UndoOptions, Which, Workspace, WorktreeError,
};
use piton_host::fail;
use piton_testkit::{Claude, World, git, snapshot, three_turns};

fn into(folder: &Path) -> ForkOptions {
    ForkOptions { worktree: Some(folder.to_owned()), ..ForkOptions::default() }
}

/// Where the agent keeps the transcripts of a folder.
fn project(world: &World, folder: &Path) -> PathBuf {
    world.base().join(".claude/projects").join(project_folder(folder.to_str().unwrap()).unwrap())
}

fn assert_sound_in(workspace: &Workspace) {
    let found = workspace.verify(false).unwrap();
    assert!(found.sound, "{:#?}", found.damage);
}

/// How many checkpoints and bytes a store has.
fn held_by(workspace: &Workspace) -> (usize, u64) {
    let log = workspace.log(Default::default()).unwrap();
    let packs = std::fs::read_dir(workspace.store_folder().join("packs")).unwrap();
    (log.checkpoints.len(), packs.map(|pack| pack.unwrap().metadata().unwrap().len()).sum())
}

fn agent_id(forked: &ForkOutcome) -> String {
    forked.outcome.conversation.as_ref().unwrap().agent_id.clone().unwrap()
}

#[test]
fn a_fork_is_a_branch_and_everybody_stays_where_they_are() {
    let world = World::new();
    let claude = three_turns(&world);
    let (before, original) = (world.snapshot(), std::fs::read(claude.path()).unwrap());
    let options = ForkOptions { name: Some("try two".into()), ..ForkOptions::default() };
    let forked = world.open().fork("t3", &options).unwrap();
    world.assert_is(&before);
    assert_eq!(std::fs::read(claude.path()).unwrap(), original);
    let conversation = forked.outcome.conversation.clone().unwrap();
    assert_eq!(conversation.prompt.as_deref(), Some("third"));
    let branch = Claude::resumed(&world, &agent_id(&forked));
    assert_eq!(conversation.resume.unwrap(), ["claude", "--resume", &branch.id]);
    assert_eq!(branch.prompts(), ["first", "second"]);
    let sessions = world.open().sessions().unwrap().sessions;
    let of_branch = sessions.iter().find(|session| session.id == branch.session()).unwrap();
    assert_eq!((of_branch.name.as_deref(), of_branch.current), (Some("try two"), false));
    let origin = of_branch.origin.as_ref().unwrap();
    assert_eq!((&origin.parent, origin.turn, origin.how), (&claude.session(), 3, Began::Fork));
    assert!(sessions.iter().find(|session| session.id == claude.session()).unwrap().current);
    // There is nothing to take back, and both go on with numbers of their own.
    assert!(world.open().redo_now(&Default::default()).is_err());
    claude.talks("fourth");
    branch.talks("third, otherwise");
    let turn = |claude: &Claude<'_>| world.open().resolve(&format!("{}:t3", claude.id)).unwrap().checkpoint.place;
    assert_eq!(turn(&branch).unwrap().session, branch.session());
    assert_eq!(turn(&claude).unwrap().session, claude.session());
    world.assert_sound();
}

#[test]
fn a_fork_that_cannot_be_is_refused_with_its_reason_and_makes_nothing() {
    let world = World::new();
    let claude = three_turns(&world);
    world.open().fork("t2", &ForkOptions { name: Some("taken".into()), ..ForkOptions::default() }).unwrap();
    let files = std::fs::read_dir(claude.folder()).unwrap().count();
    let refused = |target: &str, name: Option<&str>| {
        let options = ForkOptions { name: name.map(str::to_owned), ..ForkOptions::default() };
        world.open().fork(target, &options).unwrap_err()
    };
    assert!(matches!(refused("t1", None), ForkError::NothingSaid(1)));
    assert!(matches!(refused("t2", Some("taken")), ForkError::Name(_)));
    assert!(matches!(refused("t2", Some("t5")), ForkError::Name(_)));
    assert!(matches!(refused("t2", Some("a\u{7}b")), ForkError::Name(_)));
    assert!(matches!(refused("t2.1", None), ForkError::Operation(_)));
    assert!(matches!(refused("t9", None), ForkError::Operation(_)));
    assert_eq!(std::fs::read_dir(claude.folder()).unwrap().count(), files);
}

#[test]
fn a_worktree_has_the_code_of_that_moment_and_the_agent_goes_on_there() {
    let world = World::new();
    world.write("dir/x.sh", "#!").mode("dir/x.sh", 0o755).link("link", "a.txt").folder("empty").write(".env", "secret");
    world.write(".gitignore", "node_modules\n").write("node_modules/m/index.js", "skipped");
    let claude = Claude::new(&world, 1);
    claude.talks("first");
    let then = world.snapshot().without("node_modules");
    claude.edits("second", &["a.txt"], |world| {
        world.write("a.txt", "changed\n").remove("dir");
    });
    let now = world.snapshot();
    let folder = world.base().join("two approaches");
    let forked = world.open().fork("t2", &into(&folder)).unwrap();
    world.assert_is(&now);
    let made = forked.worktree.clone().unwrap();
    assert_eq!((&made.path, made.verified, made.problem), (&folder, true, None));
    assert_eq!(made.skipped.iter().map(|skipped| &skipped.path.path[..]).collect::<Vec<_>>(), ["node_modules"]);
    let there = snapshot(&folder);
    assert!(there == then, "{}", there.differences(&then).join("\n"));
    // The transcript is where an agent that works there looks for it.
    let id = agent_id(&forked);
    let transcript = project(&world, &folder).join(format!("{id}.jsonl"));
    assert!(transcript.exists(), "{}", transcript.display());
    assert_eq!(forked.outcome.conversation.as_ref().unwrap().cwd.as_deref(), folder.to_str());
    // It is a workspace of its own that knows the branch.
    let workspace = world.engine.open(&folder).unwrap();
    assert_eq!(workspace.log(Default::default()).unwrap().checkpoints[0].id, made.checkpoint.unwrap());
    let sessions = workspace.sessions().unwrap().sessions;
    let current: Vec<_> = sessions.iter().filter(|session| session.current).collect();
    assert_eq!((current.len(), &current[0].agent_id), (1, &id));
    assert_eq!(current[0].origin.as_ref().unwrap().parent, claude.session());
    // A turn that it shares with its parent is a turn of its own.
    assert_eq!(workspace.resolve("t1").unwrap().checkpoint.place.unwrap().session, claude.session());
    assert!(matches!(workspace.resolve("t7"), Err(TargetError::NoTurn { .. })));
    drop(workspace);
    // And what becomes of the branch is known in both.
    world.open().rename_session(&id, "beside").unwrap();
    let there = world.engine.open(&folder).unwrap().sessions().unwrap().sessions;
    assert!(there.iter().any(|session| session.agent_id == id && session.name.as_deref() == Some("beside")));
    world.assert_sound();
    // A later rewind here has nothing to do with that folder.
    let options = piton_engine::RewindOptions { outside: true, ..Default::default() };
    let rewound = world.open().rewind_now("start", &options).unwrap();
    assert!(rewound.outside.is_empty(), "{:?}", rewound.outside);
    assert!(snapshot(&folder) == then);
}

#[test]
fn an_empty_folder_is_taken_and_one_that_holds_something_or_is_in_the_way_is_not() {
    let world = World::new();
    let claude = three_turns(&world);
    let at = |name: &str| world.base().join(name);
    std::fs::create_dir(at("empty")).unwrap();
    let forked = world.open().fork("t3", &into(&at("empty"))).unwrap();
    assert!(forked.worktree.unwrap().verified);
    assert_eq!(std::fs::read_to_string(at("empty/a.txt")).unwrap(), "line\nline\n");
    // A private one stays private.
    std::fs::create_dir(at("private")).unwrap();
    std::fs::set_permissions(at("private"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(world.open().fork("t3", &into(&at("private"))).unwrap().worktree.unwrap().verified);
    assert_eq!(std::fs::metadata(at("private")).unwrap().permissions().mode() & 0o777, 0o700);
    let files = std::fs::read_dir(claude.folder()).unwrap().count();
    std::fs::create_dir(at("full")).unwrap();
    std::fs::write(at("full/mine"), "mine").unwrap();
    std::fs::write(at("file"), "a file").unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
    std::os::unix::fs::symlink(at("full"), at("link")).unwrap();
    for bad in ["full", "file", "dangling", "link", "ws", "ws/inside", ".", "none/inside", "home/inside", "x/.git/y"] {
        let error = world.open().fork("t3", &into(&at(bad))).unwrap_err();
        assert!(matches!(error, ForkError::Layout(LayoutError::Place { .. })), "{bad}: {error}");
    }
    git(world.base(), &["init", "-q", "--bare", "bare.git"]);
    let inside_git = world.open().fork("t3", &into(&at("bare.git/refs/fork"))).unwrap_err();
    assert!(matches!(inside_git, ForkError::Layout(LayoutError::Open(OpenError::Git { .. }))), "{inside_git}");
    assert_eq!(std::fs::read_to_string(at("full/mine")).unwrap(), "mine");
    assert!(at("dangling").symlink_metadata().unwrap().is_symlink() && !at("nowhere").exists());
    assert_eq!(std::fs::read_dir(claude.folder()).unwrap().count(), files, "no branch was made");
    // Before the first turn there is nothing to branch, and the code is there all the same.
    let anew = world.open().fork("t1", &into(&at("anew"))).unwrap();
    assert_eq!(anew.outcome.conversation.unwrap().session, None);
    assert!(anew.worktree.unwrap().verified && !at("anew/a.txt").exists());
}

#[test]
fn a_crash_at_any_step_leaves_the_folder_whole_with_its_branch_or_nothing_of_either() {
    let (mut made, mut none, mut known) = (0, 0, 0);
    for step in 1.. {
        let world = World::new();
        world.write("dir/x", "x");
        three_turns(&world);
        let (folder, before) = (world.base().join("two approaches"), world.snapshot());
        if fail::with(step, || world.open().fork("t3", &into(&folder)).unwrap()).is_some() {
            assert!(step > 20, "only {step} steps: are the failpoints there?");
            break;
        }
        drop(world.open());
        world.assert_is(&before);
        let branches = world.open().sessions().unwrap().sessions.len() - 1;
        let transcripts = std::fs::read_dir(project(&world, &folder)).map_or(0, Iterator::count);
        let leftovers = std::fs::read_dir(world.base())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".piton-"));
        assert_eq!(leftovers.count(), 0, "step {step}");
        if folder.exists() {
            made += 1;
            assert_eq!((branches, transcripts), (1, 1), "step {step}");
            assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "line\nline\n");
            assert_eq!(std::fs::read_to_string(folder.join("dir/x")).unwrap(), "x");
            let turn = |workspace: &Workspace| workspace.resolve("t1").ok().map(|row| row.checkpoint.id);
            known += usize::from(world.engine.open(&folder).is_ok_and(|there| turn(&there) == turn(&world.open())));
        } else {
            none += 1;
            assert_eq!((branches, transcripts), (0, 0), "step {step}");
            // And the way is free.
            let forked = world.open().fork("t3", &into(&folder)).unwrap();
            assert!(forked.worktree.unwrap().verified);
        }
        world.assert_sound();
    }
    assert!(made > 0 && none > 5, "{made} made, {none} not");
    assert!(known > 0, "what was cut off before its end was recorded is ended with a store of its own");
}

/// A fork with a worktree of git's.
fn with_git(folder: &Path) -> ForkOptions {
    ForkOptions { git: true, ..into(folder) }
}

#[test]
fn a_worktree_of_gits_is_detached_where_git_was_then_and_moves_no_reference() {
    let world = World::new();
    let repository = world.ws();
    world.write("a.txt", "line\n").write(".gitignore", ".env\n").write(".env", "secret");
    git(&repository, &["init", "-q", "-b", "main"]);
    git(&repository, &["add", "a.txt", ".gitignore"]);
    git(&repository, &["commit", "-q", "-m", "one"]);
    let claude = Claude::new(&world, 1);
    claude.edits("first", &["a.txt", "large.bin", "new.txt"], |world| {
        world.write("a.txt", "first\n");
    });
    claude.talks("second");
    let then = git(&repository, &["rev-parse", "HEAD"]);
    git(&repository, &["commit", "-q", "-a", "-m", "two"]);
    let references = git(&repository, &["for-each-ref"]);
    let folder = world.base().join("two approaches");
    let forked = world.open().fork("t2", &with_git(&folder)).unwrap();
    let made = forked.worktree.unwrap();
    assert_eq!((made.git.as_deref(), made.git_problem, made.problem), (Some(then.trim()), None, None));
    assert_eq!(git(&folder, &["rev-parse", "HEAD"]), then);
    assert_eq!(git(&folder, &["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD\n");
    assert_eq!(git(&folder, &["status", "--porcelain"]), " M a.txt\n");
    assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "first\n");
    assert_eq!(std::fs::read_to_string(folder.join(".env")).unwrap(), "secret");
    assert_eq!(git(&repository, &["for-each-ref"]), references);
    assert_eq!(git(&repository, &["rev-parse", "--abbrev-ref", "HEAD"]), "main\n");
    assert!(git(&repository, &["worktree", "list"]).contains("two approaches"));
    // A commit there is one of the repository's, and the worktree goes as any other.
    git(&folder, &["commit", "-q", "-a", "-m", "there"]);
    git(&repository, &["worktree", "remove", "--force", folder.to_str().unwrap()]);
    assert!(!folder.exists());
    let mut left = std::fs::read_dir(world.base()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.any(|name| name.to_string_lossy().starts_with(".piton-")));
    world.assert_sound();
}

#[test]
fn where_git_cannot_have_a_worktree_nothing_is_made() {
    let world = World::new();
    let claude = three_turns(&world);
    let files = std::fs::read_dir(claude.folder()).unwrap().count();
    let folder = world.base().join("out");
    let refused = |world: &World| world.open().fork("t3", &with_git(&folder)).unwrap_err();
    assert!(matches!(refused(&world), ForkError::Git(WorktreeError::NoRepository(_))));
    git(&world.ws(), &["init", "-q"]);
    assert!(matches!(refused(&world), ForkError::Git(WorktreeError::NoCommit)));
    git(&world.ws(), &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&world.ws(), &["config", "core.bare", "true"]);
    assert!(matches!(refused(&world), ForkError::Git(WorktreeError::Bare(_) | WorktreeError::NoRepository(_))));
    git(&world.ws(), &["config", "core.bare", "false"]);
    assert!(!folder.exists());
    assert_eq!(std::fs::read_dir(claude.folder()).unwrap().count(), files, "no branch was made");
    assert!(world.open().fork("t3", &with_git(&folder)).unwrap().worktree.unwrap().git.is_some());
}

/// Two turns, an edit by hand between them, and the fork of the third.
fn forked_after_two(world: &World) -> (Claude<'_>, PathBuf, ForkOutcome) {
    world.write("a.txt", "1\n2\n3\n4\n5\n").write("dir/b.txt", "b\n").write("large.bin", "x".repeat(3 << 20));
    let claude = Claude::new(world, 1);
    claude.edits("first", &["a.txt", "large.bin", "new.txt"], |world| {
        world.write("a.txt", "first\n2\n3\n4\n5\n").write("large.bin", "y".repeat(3 << 20)).write("new.txt", "new\n");
    });
    world.write("a.txt", "first\n2\n3\n4\n5\nmine\n");
    claude.edits("second", &["dir/b.txt", "c.txt"], |world| {
        world.remove("dir").write("c.txt", "c\n");
    });
    claude.prompt("third");
    let folder = world.base().join("beside");
    let forked = world.open().fork("t3", &into(&folder)).unwrap();
    assert_eq!(forked.worktree.as_ref().unwrap().problem, None);
    (claude, folder, forked)
}

#[test]
fn the_turns_that_a_fork_shares_with_its_parent_are_turns_in_its_folder() {
    let world = World::new();
    let (claude, folder, forked) = forked_after_two(&world);
    let begun = snapshot(&folder);
    let there = || world.engine.open(&folder).unwrap();
    assert_sound_in(&there());
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap_or_default();
    let sessions = there().sessions().unwrap().sessions;
    let current: Vec<_> = sessions.iter().filter(|session| session.current).map(|session| &session.agent_id).collect();
    assert_eq!(current, [&agent_id(&forked)]);
    assert!(
        matches!(there().resolve("t3"), Err(TargetError::NoTurn { last: 2, .. })),
        "that one is the parent's alone"
    );
    // Looking copies nothing.
    let held = held_by(&there());
    let diff = there().diff(&DiffOptions { from: "t1".parse().ok(), context: 3, ..Default::default() }).unwrap();
    assert_eq!(diff.files.len(), 5, "{diff:?}");
    assert!(diff.files.iter().all(|file| !file.unavailable));
    let shown = there().turn_shown("t1", &TurnOptions { context: 3, ..Default::default() }).unwrap().unwrap();
    assert_eq!((shown.diffs.len(), shown.running), (3, false));
    let code = RewindOptions { scope: Some(Scope::Code), ..Default::default() };
    let plan = there().plan_rewind("t1", &code).unwrap();
    let others: Vec<_> = plan.view().others.iter().map(|file| &file.path.path[..]).collect();
    assert_eq!(others, ["a.txt"], "the line that the user wrote");
    assert!(plan.view().other_workspaces.is_empty());
    assert_eq!(held_by(&there()), held);
    // It goes back to before all that was ever done in this folder, and back again.
    assert!(there().rewind_now("t1", &code).unwrap().verified);
    assert_eq!(
        (read("a.txt"), read("new.txt"), read("dir/b.txt")),
        ("1\n2\n3\n4\n5\n".into(), "".into(), "b\n".into())
    );
    assert_eq!(read("large.bin"), "x".repeat(3 << 20));
    there().redo_now(&Default::default()).unwrap();
    assert!(snapshot(&folder) == begun, "{}", snapshot(&folder).differences(&begun).join("\n"));
    // What the user wrote, there and here, is carried over.
    std::fs::write(folder.join("here.txt"), "mine too").unwrap();
    there().rewind_now("t1", &RewindOptions { carry: Carry::Mine, ..code.clone() }).unwrap();
    assert_eq!((read("a.txt"), read("here.txt")), ("1\n2\n3\n4\n5\nmine\n".into(), "mine too".into()));
    there().redo_now(&Default::default()).unwrap();
    // One turn of them is taken back.
    let choice = Choice { what: Some(Which::Places(vec![(1, None)])), ..Choice::default() };
    there().undo_now(&UndoOptions { choice, ..UndoOptions::default() }).unwrap();
    assert_eq!(
        (read("a.txt"), read("c.txt"), read("new.txt")),
        ("1\n2\n3\n4\n5\nmine\n".into(), "c\n".into(), "".into())
    );
    there().redo_now(&Default::default()).unwrap();
    assert_eq!(world.read("a.txt"), "first\n2\n3\n4\n5\nmine\n");
    assert_sound_in(&there());
    // A fork of the fork knows them too, and what comes after in each is its own.
    let of_fork = Claude::resumed_in(&world, &agent_id(&forked), folder.clone());
    of_fork.talks("another third");
    let further = world.base().join("further");
    there().fork("t3.end", &into(&further)).unwrap();
    let further = world.engine.open(&further).unwrap();
    assert_eq!(further.resolve("t1").unwrap().checkpoint.id, world.open().resolve("t1").unwrap().checkpoint.id);
    let of_third = further.resolve("t3").unwrap().checkpoint.place.unwrap().session;
    assert_eq!(of_third, of_fork.session());
    claude.answers("well");
    assert_eq!(world.open().resolve("t3").unwrap().checkpoint.place.unwrap().session, claude.session());
    assert_sound_in(&further);
}

#[test]
fn what_a_fork_went_back_to_is_its_own_and_the_rest_needs_the_parents_store() {
    let world = World::new();
    let (_, folder, _) = forked_after_two(&world);
    let there = || world.engine.open(&folder).unwrap();
    let code = RewindOptions { scope: Some(Scope::Code), ..Default::default() };
    there().rewind_now("t2", &code).unwrap();
    there().redo_now(&Default::default()).unwrap();
    let begun = snapshot(&folder);
    std::fs::remove_dir_all(world.open().store_folder()).unwrap();
    let error = there().rewind_now("t1", &code).unwrap_err();
    let OperationError::Target(TargetError::InParent { .. }) = error else { panic!("{error}") };
    assert!(snapshot(&folder) == begun);
    there().rewind_now("t2", &code).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("dir/b.txt")).unwrap(), "b\n");
    there().redo_now(&Default::default()).unwrap();
    let found = there().verify(false).unwrap();
    assert!(!found.sound);
}

#[test]
fn a_fork_and_its_parent_are_compared_from_either_folder() {
    let world = World::new();
    let claude = three_turns(&world);
    let folder = world.base().join("beside");
    let forked = world.open().fork("t3", &into(&folder)).unwrap();
    let branch = agent_id(&forked);
    // Before anything was done in it, it ends where it began.
    for there in [world.open(), world.engine.open(&folder).unwrap()] {
        let begun = there.compare(&claude.id, &branch, CompareOptions::default()).unwrap();
        assert!(begun.turns_b.is_empty() && begun.end_b.is_some());
        let files: Vec<_> = begun.diff.unwrap().files.into_iter().map(|file| file.change.path.path).collect();
        assert_eq!(files, ["a.txt"]);
    }
    std::fs::write(folder.join("theirs.txt"), "theirs\n").unwrap();
    let of_fork = Claude::resumed_in(&world, &branch, folder.clone());
    of_fork.talks("third, otherwise");
    let here = world.open().compare(&claude.id, &branch, CompareOptions::default()).unwrap();
    let there = world.engine.open(&folder).unwrap().compare(&claude.id, &branch, CompareOptions::default()).unwrap();
    for compared in [&here, &there] {
        assert_eq!(compared.parted.as_ref().unwrap().turn, 3);
        let prompts = |turns: &[TurnView]| turns.iter().map(|turn| turn.prompt.clone().unwrap()).collect::<Vec<_>>();
        assert_eq!(prompts(&compared.turns_a), ["third"]);
        assert_eq!(prompts(&compared.turns_b), ["third, otherwise"]);
        let diff = compared.diff.as_ref().unwrap();
        assert!(diff.files.iter().any(|file| file.change.path.path == "theirs.txt"), "{diff:?}");
        assert!(diff.files.iter().all(|file| !file.unavailable));
    }
    assert_eq!((&here.end_a, &here.end_b), (&there.end_a, &there.end_b));
}
