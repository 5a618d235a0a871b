//! Checkpoints as commits: what git has of them is what was captured, byte for byte.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use piton_engine::model::WorkspacePath;
use piton_engine::model::event::{Event, Report, ToolCall};
use piton_engine::view::{Exported, PathView};
use piton_engine::{ExportError, ExportOptions, ExportWhat, ObserveOptions};
use piton_testkit::{World, git, git_command, snapshot};

fn options(what: ExportWhat, reference: &str) -> ExportOptions {
    ExportOptions { what, reference: reference.into(), include: Vec::new(), into: None, force: false }
}

fn of(target: &str, reference: &str) -> ExportOptions {
    options(ExportWhat::Checkpoint(target.parse().unwrap()), reference)
}

#[track_caller]
fn export(world: &World, options: &ExportOptions) -> Exported {
    let exported = world.open().export_git(options).unwrap_or_else(|error| panic!("{error}"));
    assert!(exported.verified);
    exported
}

fn repository() -> World {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    world.write("a.txt", "one\n");
    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["commit", "-q", "-m", "first"]);
    world
}

/// What git checks out of a commit, in a folder of its own.
fn checked_out(world: &World, repository: &Path, commit: &str) -> piton_testkit::Snapshot {
    let folder = tempfile::tempdir_in(world.base()).unwrap();
    let mut command = git_command(repository, &["-c", "core.autocrlf=false"]);
    command.env("GIT_WORK_TREE", folder.path()).env("GIT_INDEX_FILE", world.base().join("scratch-index"));
    assert!(command.args(["checkout", "-q", "-f", commit, "--", "."]).status().unwrap().success());
    std::fs::remove_file(world.base().join("scratch-index")).unwrap();
    snapshot(folder.path())
}

/// An agent with one turn after the other.
struct Agent<'w>(&'w World, &'static str);

impl Agent<'_> {
    fn tell(&self, event: Event) {
        let report = Report {
            agent: "test <agent>".into(),
            session: self.1.into(),
            cwd: Some(self.0.ws()),
            transcript: None,
            prompt_id: None,
            subagent: None,
            event,
        };
        let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
        self.0.engine.observe(&report, &options).unwrap();
    }

    fn turn(&self, prompt: &str, tool: &str, act: impl FnOnce(&World)) {
        self.tell(Event::Prompt { text: prompt.into() });
        let call = ToolCall { id: Some(prompt.into()), tool: tool.into(), ..ToolCall::default() };
        self.tell(Event::BeforeTool(call.clone()));
        act(self.0);
        self.tell(Event::AfterTool(call));
        self.tell(Event::TurnEnded { failed: false, message: None, background: false });
    }
}

#[test]
fn a_checkpoint_becomes_a_commit_with_the_same_bytes() {
    let world = repository();
    world.write("run.sh", "#!/bin/sh\n").mode("run.sh", 0o755).write("secret", "s").mode("secret", 0o600);
    world.link("link", "run.sh").link("dangling", "no where\n\"").folder("empty/inside").write("bin", [0, 255, 10, 13]);
    world.write(OsStr::from_bytes(b"odd/n\xff\n\"\\\t x"), "odd\n").write(" lead", "").write("\"q\"", "q");
    world.write("large.bin", "0123456789abcdef".repeat(400_000)).write("nested/n.rs", "nested\n");
    git(&world.path("nested"), &["init", "-q"]);
    world.write("untracked.log", "u\n").write("a.b", "1").write("a/x", "2").write("a-b", "3").write("a0", "4");
    let (status, head) = (git(&world.ws(), &["status", "--porcelain"]), git(&world.ws(), &["rev-parse", "HEAD"]));
    let id = world.capture();
    let exported = export(&world, &of(&id, "piton/one"));
    assert_eq!(exported.reference, "refs/heads/piton/one");
    assert_eq!(git(&world.ws(), &["rev-parse", "piton/one"]).trim(), exported.commit);
    assert_eq!(exported.empty_folders.len(), 1);
    assert_eq!((exported.empty_folders[0].path.as_str(), exported.other_modes), ("empty", 1));
    git(&world.ws(), &["fsck", "--strict"]);
    // Git has no empty folders and two modes; all else is the same.
    world.remove("empty").mode("secret", 0o644);
    let was = world.snapshot().without(".git").without("nested/.git");
    let is = checked_out(&world, &world.ws(), &exported.commit);
    assert!(is == was, "{:?}", is.differences(&was));
    // Neither HEAD nor the index nor any reference of the user's moved.
    assert_eq!(git(&world.ws(), &["status", "--porcelain"]), status.replace("?? empty/\n", ""));
    assert_eq!(git(&world.ws(), &["rev-parse", "HEAD"]), head);
    let all = git(&world.ws(), &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(all, "refs/heads/main\nrefs/heads/piton/one\n");
}

#[test]
fn the_same_checkpoint_is_the_same_commit_wherever_it_goes() {
    let world = repository();
    let id = world.capture();
    let first = export(&world, &of(&id, "one"));
    let again = export(&world, &of(&id, "refs/heads/two"));
    assert_eq!(first.commit, again.commit);
    let other = world.base().join("other.git");
    let elsewhere = export(&world, &ExportOptions { into: Some(other.clone()), ..of(&id, "one") });
    assert_eq!((elsewhere.commit.as_str(), elsewhere.made), (first.commit.as_str(), true));
    // Another is added to a repository that is there, and it can be cloned.
    world.write("b.txt", "b\n");
    let next = world.capture();
    let more = export(&world, &ExportOptions { into: Some(other.clone()), ..of(&next, "next") });
    assert!(!more.made);
    git(world.base(), &["clone", "-q", other.to_str().unwrap(), "clone"]);
    assert_eq!(std::fs::read(world.base().join("clone/a.txt")).unwrap(), b"one\n");
}

#[test]
fn a_session_becomes_a_commit_for_each_turn_and_for_the_users_edits_between() {
    let world = repository();
    let agent = Agent(&world, "s1");
    agent.tell(Event::SessionStarted { source: None });
    agent.turn("make b\nand more", "Write", |w| {
        w.write("b.txt", "agent\n").write("kind", "a file");
    });
    world.write("a.txt", "mine\n");
    agent.turn(&format!("turn two: use Vec<u8> {}", "x".repeat(100)), "Bash", |w| {
        w.remove("b.txt").remove("kind").write("kind/now", "a folder");
    });
    // Nothing between, and nothing in it.
    agent.turn("only look", "Bash", |_| {});
    let wanted = options(ExportWhat::Session("s1".into()), "session");
    let exported = export(&world, &wanted);
    let log = git(&world.ws(), &["log", "--reverse", "--format=%an|%ae|%s", "session"]);
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 5, "{log}");
    assert!(lines[0].starts_with("piton|piton@localhost|start of session "), "{log}");
    assert_eq!(lines[1], "test agent|piton@localhost|make b");
    assert_eq!(lines[2], "you|piton@localhost|your edits before turn 2");
    assert!(lines[3].starts_with("test agent|piton@localhost|turn two: use Vec<u8> xxx"), "{log}");
    assert_eq!(lines[3].rsplit('|').next().unwrap().chars().count(), 72);
    assert_eq!(lines[4], "test agent|piton@localhost|only look");
    let turns: Vec<_> = exported.commits.iter().map(|commit| commit.turn).collect();
    assert_eq!(turns, [None, Some(1), None, Some(2), Some(3)]);
    let of_turn = |n: usize| {
        git(&world.ws(), &["show", "--name-status", "--no-renames", "--format=", &exported.commits[n].commit])
    };
    assert_eq!(of_turn(1), "A\tb.txt\nA\tkind\n");
    assert_eq!(of_turn(2), "M\ta.txt\n");
    assert_eq!(of_turn(3), "D\tb.txt\nD\tkind\nA\tkind/now\n");
    assert_eq!(of_turn(4), "");
    let body = git(&world.ws(), &["show", "-s", "--format=%b", &exported.commits[1].commit]);
    assert!(body.contains("Turn 1 of session") && body.contains("Tools: Write x1."), "{body}");
    assert!(body.contains("Changes: 2 created, 0 modified, 0 deleted."), "{body}");
    git(&world.ws(), &["fsck", "--strict"]);
    // Each is what the checkpoint of that moment has.
    for commit in &exported.commits {
        world.rewind(commit.checkpoint.as_str());
        let was = world.snapshot().without(".git");
        let is = checked_out(&world, &world.ws(), &commit.commit);
        assert!(is == was, "{}: {:?}", commit.subject, is.differences(&was));
    }
    let again = export(&world, &ExportOptions { reference: "again".into(), ..wanted });
    assert_eq!(again.commit, exported.commit);
}

#[test]
fn what_a_later_checkpoint_skips_is_not_in_its_commit() {
    let world = repository();
    world.write("build/out.o", "o\n");
    let agent = Agent(&world, "s1");
    agent.turn("one", "Bash", |_| {});
    // A rule of the user's holds at once.
    world.write(".pitonignore", "build/\n");
    agent.turn("two", "Bash", |_| {});
    let exported = export(&world, &options(ExportWhat::Session("s1".into()), "session"));
    let files = |commit: &str| git(&world.ws(), &["ls-tree", "-r", "--name-only", commit]);
    assert!(files(&exported.commits[0].commit).contains("build/out.o"));
    assert_eq!(files(&exported.commit), ".pitonignore\na.txt\n");
    assert_eq!(exported.skipped_count, 1);
}

/// One push of such a branch would have told everybody what `.env` holds.
#[test]
fn what_is_ignored_and_not_tracked_stays_out_of_every_commit_unless_it_is_named() {
    let world = repository();
    let at = world.ws();
    world.write(".gitignore", "*.key\n").write("tracked.key", "t").write("sub/own.key", "k").write("sub/kept", "k");
    git(&at, &["add", "-f", "tracked.key", ".gitignore", "sub/kept"]);
    let agent = Agent(&world, "s");
    agent.turn("make secrets", "Bash", |w| {
        w.write(".env", "SECRET=1\n").write("only/a.key", "k");
    });
    agent.turn("ignore them", "Bash", |w| {
        w.write(".gitignore", "*.key\n.env\n");
    });
    agent.turn("no rule any more", "Bash", |w| {
        w.remove(".gitignore").write("b.txt", "b\n");
    });
    let files = |commit: &str| git(&at, &["ls-tree", "-r", "--name-only", commit]).lines().map(str::to_owned).collect();
    let session = ExportWhat::Session("s".into());
    let exported = export(&world, &options(session.clone(), "all"));
    let out: Vec<&str> = exported.ignored.iter().map(|path| &path.path[..]).collect();
    assert_eq!(out, [".env", "only/a.key", "sub/own.key"]);
    for commit in &exported.commits {
        let files: Vec<String> = files(&commit.commit);
        assert!(!files.iter().any(|file| out.contains(&&file[..])), "{files:?}");
        assert!(files.iter().any(|file| file == "tracked.key") && files.iter().any(|file| file == "sub/kept"));
    }
    let include = ["only", ".env"].map(|path| WorkspacePath::new(path).unwrap()).to_vec();
    let exported = export(&world, &ExportOptions { include, ..options(session.clone(), "named") });
    assert_eq!(exported.ignored.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), ["sub/own.key"]);
    let last: Vec<String> = files(&exported.commit);
    assert!(last.contains(&".env".to_owned()) && last.contains(&"only/a.key".to_owned()), "{last:?}");
    let include = vec![WorkspacePath::new("b.txt").unwrap()];
    let error = world.open().export_git(&ExportOptions { include, ..options(session, "none") }).unwrap_err();
    assert!(matches!(error, ExportError::NotIgnored(_)), "{error}");
    let held = world.open().private_in_session("s").unwrap().ignored;
    assert_eq!(held.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), out);
}

fn names(paths: &[PathView]) -> Vec<&str> {
    paths.iter().map(|path| &path.path[..]).collect()
}

fn files_of(world: &World, commit: &str) -> Vec<String> {
    git(&world.ws(), &["ls-tree", "-r", "--name-only", commit]).lines().map(str::to_owned).collect()
}

#[test]
fn what_the_excludes_of_a_nested_repository_or_of_an_earlier_time_ignored_stays_out() {
    let world = repository();
    world
        .write("nested/n.rs", "n")
        .write("nested/own.pem", "k")
        .write("nested/sub/own.pem", "k")
        .write("local.pem", "k");
    git(&world.path("nested"), &["init", "-q"]);
    world.write("nested/.git/info/exclude", "*.pem\n").write(".git/info/exclude", "# mine\n/local.pem\n");
    let id = world.capture();
    // Whoever changes the excludes later does not mean what was kept out then.
    world.write(".git/info/exclude", "# mine\n");
    let exported = export(&world, &of(&id, "x"));
    assert_eq!(names(&exported.ignored), ["local.pem", "nested/own.pem", "nested/sub/own.pem"]);
    assert_eq!(files_of(&world, "x"), ["a.txt", "nested/n.rs"]);
}

#[test]
fn where_git_ignores_case_so_does_an_export() {
    for ignores in ["true", "false"] {
        let world = repository();
        git(&world.ws(), &["config", "core.ignoreCase", ignores]);
        world.write(".gitignore", "secrets/\n.env\n").write(".ENV", "k").write("Secrets/x", "k");
        let id = world.capture();
        let exported = export(&world, &of(&id, "x"));
        let expected: &[&str] = if ignores == "true" { &[".ENV", "Secrets/x"] } else { &[] };
        assert_eq!(names(&exported.ignored), expected);
    }
}

/// Git would keep what the filter makes of it: what git-crypt encrypts is plain in the folder.
#[test]
fn what_a_filter_changes_stays_out_whoever_says_so_and_whenever() {
    let world = repository();
    world.write(".gitattributes", "*.crypt filter=git-crypt diff=git-crypt\nopen.crypt !filter\n");
    world.write("keys/a.crypt", "plain").write("open.crypt", "o").write("model.bin", "m").write("info.x", "i");
    git(&world.ws(), &["add", "-A"]);
    let id = world.capture();
    world.write(".gitattributes", "*.bin filter=lfs\n").write(".git/info/attributes", "*.x filter=own\n");
    let exported = export(&world, &of(&id, "x"));
    assert_eq!(names(&exported.filtered), ["info.x", "keys/a.crypt", "model.bin"]);
    assert_eq!(exported.ignored.len(), 0);
    assert_eq!(files_of(&world, "x"), [".gitattributes", "a.txt", "open.crypt"]);
    let include = vec![WorkspacePath::new("model.bin").unwrap()];
    let exported = export(&world, &ExportOptions { include, ..of(&id, "with") });
    assert_eq!(names(&exported.filtered), ["info.x", "keys/a.crypt"]);
    assert!(files_of(&world, "with").contains(&"model.bin".to_owned()));
}

#[test]
fn a_reference_that_is_there_checked_out_or_none_is_refused() {
    let world = repository();
    let id = world.capture();
    git(&world.ws(), &["branch", "taken"]);
    git(&world.ws(), &["worktree", "add", "-q", world.base().join("tree").to_str().unwrap()]);
    let before = git(&world.ws(), &["for-each-ref"]);
    let refused = |reference: &str, force: bool| {
        let error = world.open().export_git(&ExportOptions { force, ..of(&id, reference) }).unwrap_err();
        assert_eq!(git(&world.ws(), &["for-each-ref"]), before);
        error
    };
    assert!(matches!(refused("taken", false), ExportError::Exists(name) if name == "refs/heads/taken"));
    for force in [false, true] {
        assert!(matches!(refused("main", force), ExportError::CheckedOut { .. }));
        assert!(matches!(refused("refs/heads/tree", force), ExportError::CheckedOut { .. }));
    }
    for bad in [
        "",
        "a b",
        "a..b",
        "HEAD",
        "@",
        "@{-1}",
        "-x",
        "x.lock",
        "a\nb",
        "refs/",
        "refs/piton/x",
        "refs/stash",
        "refs/replace/x",
        "refs/tags/x",
        "refs/heads/HEAD",
        "refs/heads/refs/x",
    ] {
        assert!(matches!(refused(bad, true), ExportError::BadName(_)), "{bad:?}");
    }
    // A name beneath one that is there cannot be, and git says so.
    assert!(matches!(refused("taken/beneath", true), ExportError::Git(_)));
    let replaced = export(&world, &ExportOptions { force: true, ..of(&id, "taken") });
    assert_eq!(git(&world.ws(), &["rev-parse", "taken"]).trim(), replaced.commit);
}

#[test]
fn without_a_repository_a_folder_can_be_named_and_one_that_holds_other_things_is_refused() {
    let world = World::new();
    world.write("a.txt", "one\n");
    let id = world.capture();
    let error = world.open().export_git(&of(&id, "x")).unwrap_err();
    assert!(error.to_string().starts_with("there is no git repository around"), "{error}");
    let folder = world.base().join("full");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("f"), "f").unwrap();
    let into = |folder: &Path| ExportOptions { into: Some(folder.to_owned()), ..of(&id, "x") };
    let error = world.open().export_git(&into(&folder)).unwrap_err();
    assert!(error.to_string().ends_with("is not a git repository, and not empty"), "{error}");
    // A target that is none makes no repository.
    let never = world.base().join("never");
    let options = ExportOptions { into: Some(never.clone()), ..of("nothing", "x") };
    assert!(matches!(world.open().export_git(&options), Err(ExportError::Target(_))));
    assert!(!never.exists());
    let exported = export(&world, &into(&world.base().join("new")));
    assert_eq!(git(&exported.repository, &["show", "x:a.txt"]), "one\n");
}

#[test]
fn a_workspace_in_a_repository_is_exported_with_its_own_root() {
    let world = World::new();
    git(world.base(), &["init", "-q", "--object-format=sha256"]);
    world.write("a.txt", "one\n").write("dir/b.txt", "two\n");
    let id = world.capture();
    let exported = export(&world, &of(&id, "x"));
    assert_eq!(exported.repository, world.base());
    assert_eq!(git(world.base(), &["ls-tree", "-r", "--name-only", "x"]), "a.txt\ndir/b.txt\n");
}

#[test]
fn an_empty_checkpoint_is_an_empty_commit() {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    let id = world.capture();
    let exported = export(&world, &of(&id, "x"));
    assert_eq!(git(&world.ws(), &["ls-tree", &exported.commit]), "");
}

#[test]
fn a_damaged_store_exports_nothing_and_leaves_no_reference() {
    let world = repository();
    // Too short to be worth packing, so that it is found in the pack as it is.
    world.write("one.bin", "0123456789abcdef").write("two.bin", "fedcba9876543210");
    let id = world.capture();
    let packs = world.open().store_folder().join("packs");
    let pack = std::fs::read_dir(packs).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&pack).unwrap();
    let content = bytes.windows(16).position(|bytes| bytes == b"fedcba9876543210").unwrap();
    bytes[content] ^= 0x55;
    std::fs::write(&pack, bytes).unwrap();
    let before = git(&world.ws(), &["for-each-ref"]);
    let error = world.open().export_git(&of(&id, "x")).unwrap_err();
    assert!(matches!(error, ExportError::Store(_)), "{error}");
    assert_eq!(git(&world.ws(), &["for-each-ref"]), before);
    let left = std::fs::read_dir(world.path(".git")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("crash")));
}

/// What git has of a file today says nothing of what was in it before.
#[test]
fn what_git_did_not_track_at_a_checkpoint_stays_out_whatever_it_tracks_later() {
    for (way, add) in [
        ("staged", &["add", "-f", ".env"][..]),
        ("meant to be added", &["add", "-N", "-f", ".env"]),
        ("committed", &["add", "-f", ".env"]),
    ] {
        let world = repository();
        let at = world.ws();
        world.write(".gitignore", ".env*\nlogs/*\n").write(".env", "OLD-SECRET\n").write(".env.example", "none\n");
        world.write("logs/.gitkeep", "");
        git(&at, &["add", "-f", ".gitignore", ".env.example", "logs/.gitkeep"]);
        git(&at, &["commit", "-q", "-m", "second"]);
        let agent = Agent(&world, "s");
        agent.turn("one", "Bash", |w| {
            w.write("b", "b");
        });
        world.write(".env", "dummy\n");
        agent.turn("two", "Bash", |w| {
            git(&at, add);
            if way == "committed" {
                git(&at, &["commit", "-q", "-m", "third"]);
            }
            w.write("c", "c");
        });
        for what in [ExportWhat::Session("s".into()), ExportWhat::Checkpoint("t1".parse().unwrap())] {
            let exported = export(&world, &ExportOptions { force: true, ..options(what, "x") });
            assert_eq!(names(&exported.ignored), [".env"], "{way}");
            for one in &exported.commits {
                let files = files_of(&world, &one.commit);
                assert!(!files.contains(&".env".to_owned()), "{way}: {files:?}");
                assert!(files.contains(&".env.example".to_owned()) && files.contains(&"logs/.gitkeep".to_owned()));
            }
        }
        let held = world.open().private_in_session("s").unwrap().ignored;
        assert_eq!(names(&held), [".env"], "{way}");
        // Where git tracks it all the while, it is no secret; where it is only meant to be, git has nothing of it.
        let last = export(&world, &of("t2.end", "last"));
        let expected: &[&str] = if way == "meant to be added" { &[".env"] } else { &[] };
        assert_eq!(names(&last.ignored), expected, "{way}");
    }
}

#[test]
fn what_git_tracked_and_does_not_any_more_stays_out_too() {
    let world = repository();
    let at = world.ws();
    world.write(".gitignore", "*.key\n").write("own.key", "k");
    git(&at, &["add", "-f", "own.key", ".gitignore"]);
    git(&at, &["commit", "-q", "-m", "second"]);
    let tracked = world.capture();
    assert_eq!(names(&export(&world, &of(&tracked, "x")).ignored), [""; 0]);
    git(&at, &["rm", "-q", "--cached", "own.key"]);
    let since = world.capture();
    for id in [&tracked, &since] {
        assert_eq!(names(&export(&world, &of(id, &format!("{id}-1"))).ignored), ["own.key"]);
    }
    // Back again, with the same content: what it was is what git has; in between it was something else.
    world.write("own.key", "another");
    let between = world.capture();
    world.write("own.key", "k");
    git(&at, &["add", "-f", "own.key"]);
    for (id, expected) in [(&tracked, &[][..]), (&since, &[]), (&between, &["own.key"])] {
        assert_eq!(names(&export(&world, &of(id, &format!("{id}-2"))).ignored), expected);
    }
}

#[test]
fn where_nothing_is_known_of_git_only_what_it_has_now_is_no_secret() {
    let world = World::new();
    world.write(".gitignore", "*.key\n").write("a.key", "same").write("b.key", "secret").write("c", "c");
    let id = world.capture();
    git(&world.ws(), &["init", "-q"]);
    world.write("b.key", "dummy");
    git(&world.ws(), &["add", "-f", "."]);
    assert_eq!(names(&export(&world, &of(&id, "x")).ignored), ["b.key"]);
}

/// The commit that a checkpoint's index was made on may be gone.
#[test]
fn where_the_commit_of_a_checkpoint_is_gone_only_what_git_has_now_is_no_secret() {
    let world = repository();
    let at = world.ws();
    world.write(".gitignore", "*.key\n").write("a.key", "same").write("b.key", "was tracked");
    git(&at, &["add", "-f", "."]);
    git(&at, &["commit", "-q", "-m", "second"]);
    let id = world.capture();
    world.remove(".git").write("b.key", "another");
    git(&at, &["init", "-q", "-b", "main"]);
    git(&at, &["add", "-f", "."]);
    git(&at, &["commit", "-q", "-m", "all new"]);
    assert_eq!(names(&export(&world, &of(&id, "x")).ignored), ["b.key"]);
}

#[test]
fn in_a_part_of_a_repository_it_is_told_by_paths_of_the_part() {
    let world = World::new();
    git(world.base(), &["init", "-q", "-b", "main"]);
    world.write(".gitignore", "*.key\n").write("a.key", "a").write("b.key", "b").write("c.key", "c");
    git(&world.ws(), &["add", "-f", "a.key", ".gitignore"]);
    git(&world.ws(), &["commit", "-q", "-m", "first"]);
    git(&world.ws(), &["add", "-f", "b.key"]);
    let id = world.capture();
    world.write("a.key", "2").write("b.key", "2").write("c.key", "2");
    git(&world.ws(), &["add", "-f", "."]);
    assert_eq!(names(&export(&world, &of(&id, "x")).ignored), ["c.key"]);
}

#[test]
fn what_git_is_told_not_to_look_at_stays_out_where_it_is_not_what_git_has() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let world = repository();
        world.write("config.toml", "password = none\n").write("same.toml", "same\n");
        git(&world.ws(), &["add", "-A"]);
        git(&world.ws(), &["commit", "-q", "-m", "config"]);
        git(&world.ws(), &["update-index", flag, "config.toml", "same.toml"]);
        world.write("config.toml", "password = secret\n");
        let id = world.capture();
        let exported = export(&world, &of(&id, "out"));
        let names: Vec<_> = exported.unwatched.iter().map(|path| &path.path[..]).collect();
        assert_eq!(names, ["config.toml"], "{flag}");
        let out = checked_out(&world, &world.ws(), &exported.commit);
        assert!(!out.has("config.toml") && out.has("same.toml"), "{flag}");
        // What was captured then is as secret when git looks at it again.
        git(&world.ws(), &["update-index", &flag.replace("--", "--no-"), "config.toml"]);
        git(&world.ws(), &["checkout", "-q", "config.toml"]);
        let again = export(&world, &ExportOptions { force: true, ..of(&id, "out") });
        assert_eq!(again.unwatched.len(), 1, "{flag}");
        let include = vec![WorkspacePath::new("config.toml").unwrap()];
        let wanted = export(&world, &ExportOptions { include, force: true, ..of(&id, "out") });
        assert!(wanted.unwatched.is_empty() && checked_out(&world, &world.ws(), &wanted.commit).has("config.toml"));
    }
}

fn copies(exported: &Exported) -> Vec<(&str, &str)> {
    exported.copies.iter().map(|copy| (&copy.path.path[..], &copy.from.path[..])).collect()
}

const SECRET: &str = "TOKEN=1\nPASSWORD=2\nHOST=db\nUSER=me\n";

/// The rule names `.env`, and what it held is as secret under any other name.
#[test]
fn what_was_at_an_ignored_path_stays_out_wherever_an_agent_moved_or_copied_it() {
    let world = repository();
    world.write(".gitignore", ".env\n").write(".env", SECRET).write("b.txt", "b\n");
    git(&world.ws(), &["add", ".gitignore", "b.txt"]);
    git(&world.ws(), &["commit", "-q", "-m", "second"]);
    let agent = Agent(&world, "s");
    agent.turn("move it", "Bash", |w| {
        w.remove(".env").write("env.production", SECRET);
    });
    agent.turn("edit it there", "Bash", |w| {
        w.write("env.production", "TOKEN=9\nPASSWORD=8\nHOST=db9\nUSER=me9\n");
    });
    agent.turn("move it on, and edit it", "Bash", |w| {
        w.remove("env.production").write("conf/prod", "TOKEN=9\nPASSWORD=8\nHOST=db9\nUSER=nobody\n");
    });
    agent.turn("something else", "Bash", |w| {
        w.write("env.production", "nothing like it\n").write("c.txt", "c\n");
    });
    let expected: [(&str, &[(&str, &str)]); 4] = [
        ("t2", &[("env.production", ".env")]),
        ("t3", &[("env.production", ".env")]),
        ("t4", &[("conf/prod", ".env")]),
        ("t4.end", &[("conf/prod", ".env")]),
    ];
    for (target, expected) in expected {
        let exported = export(&world, &of(target, &format!("one/{target}")));
        assert_eq!(copies(&exported), expected, "{target}");
        let files = files_of(&world, &exported.commit);
        assert!(expected.iter().all(|(path, _)| !files.contains(&(*path).to_owned())), "{target}: {files:?}");
        assert!(files.contains(&"b.txt".to_owned()), "{target}: {files:?}");
    }
    // What has the name now, and nothing of the secret, is no copy where the export is only of that.
    assert!(files_of(&world, "one/t4.end").contains(&"env.production".to_owned()));
    let session = ExportWhat::Session("s".into());
    let exported = export(&world, &options(session.clone(), "all"));
    assert_eq!(copies(&exported), [("conf/prod", ".env"), ("env.production", ".env")]);
    assert_eq!(names(&exported.ignored), [".env"]);
    for commit in &exported.commits {
        let text = git(&world.ws(), &["grep", "-h", "-e", ".", &commit.commit]);
        assert!(!text.contains("PASSWORD"), "{text}");
    }
    let held = world.open().private_in_session("s").unwrap().copies;
    assert_eq!(held, exported.copies);
    let include = vec![WorkspacePath::new("conf").unwrap()];
    let exported = export(&world, &ExportOptions { include, ..options(session, "named") });
    assert_eq!(copies(&exported), [("env.production", ".env")]);
    assert!(files_of(&world, "named").contains(&"conf/prod".to_owned()));
}

/// The exported checkpoint says nothing of the rule that was there before it.
#[test]
fn what_a_rule_of_an_earlier_checkpoint_ignored_stays_out() {
    let world = repository();
    world.write(".gitignore", "*.key\n").write("a.key", "secret\n");
    world.capture();
    let agent = Agent(&world, "s");
    agent.turn("no rules", "Bash", |w| {
        w.write(".gitignore", "\n");
    });
    let exported = export(&world, &of("t1.end", "x"));
    assert_eq!(names(&exported.ignored), ["a.key"]);
    assert!(!files_of(&world, "x").contains(&"a.key".to_owned()));
    // The same again is the same, though much happened since.
    agent.turn("go on", "Bash", |w| {
        w.write("d.txt", "d\n").remove("a.key");
    });
    assert_eq!(export(&world, &of("t1.end", "y")).commit, exported.commit);
}

#[test]
fn what_a_secret_was_made_from_and_what_git_has_is_none() {
    let world = repository();
    world
        .write(".gitignore", ".env\n*.sample\n")
        .write("tracked.example", "A=none\nB=none\n")
        .write("old.sample", "kept\n");
    git(&world.ws(), &["add", "-f", ".gitignore", "tracked.example", "old.sample"]);
    git(&world.ws(), &["commit", "-q", "-m", "second"]);
    world.write("sub/.env", "A=none\nB=none\n").write("empty/.env", "");
    let agent = Agent(&world, "s");
    agent.turn("an example", "Bash", |w| {
        w.write("new.example", "C=none\nD=none\n").write("empty.txt", "");
    });
    agent.turn("use it", "Bash", |w| {
        w.write(".env", "C=none\nD=none\n").write("moved.txt", "kept\n").remove("old.sample");
    });
    // What is equal by chance, and what is something else again.
    world.write("count", "1\n").write("b.txt", "A=1\nB=2\nC=3\n").write("sub/.env", "1\n");
    agent.turn("write over it", "Bash", |w| {
        w.write("b.txt", "C=none\nD=none\n").write("a.txt", "C=none\nD=none\n");
    });
    world.write("a.txt", "of its own\nand more\n").write("b.txt", "A=1\nB=2\nC=3\n");
    agent.turn("edit the example", "Bash", |w| {
        w.write("tracked.example", "A=none\nB=none\nE=\n").write("new.example", "C=none\nD=none\nE=\n");
    });
    let exported = export(&world, &options(ExportWhat::Session("s".into()), "all"));
    // The session has a commit in which they hold what `.env` holds.
    assert_eq!(copies(&exported), [("a.txt", ".env"), ("b.txt", ".env")]);
    let exported = export(&world, &of("t4.end", "x"));
    // It began as a copy, so whatever it holds since stays out; the other one was there before.
    assert_eq!(copies(&exported), [("a.txt", ".env")]);
    let files = files_of(&world, &exported.commit);
    for path in ["tracked.example", "new.example", "moved.txt", "empty.txt", "b.txt", "count"] {
        assert!(files.contains(&path.to_owned()), "{path}: {files:?}");
    }
}
