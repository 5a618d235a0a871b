//! What the rules leave out, what they take in, and what a change of the rules does to a rewind.

use piton_engine::model::SkipReason::{AgentState, Store};
use piton_engine::{Engine, Environment, RedoOptions, RewindOptions};
use piton_host::fail;
use piton_testkit::{World, git};

/// The paths that a capture skips now, each with its reason.
fn skipped(world: &World) -> Vec<String> {
    let skipped = world.captured().checkpoint.skipped;
    skipped.iter().map(|s| format!("{} {:?}", s.path.path, s.reason)).collect()
}

fn assert_content(world: &World, expected: &[(&str, Option<&str>)]) {
    let now = world.snapshot();
    for (path, content) in expected {
        assert_eq!(now.bytes(path).map(String::from_utf8_lossy), content.map(Into::into), "{path}");
    }
}

#[test]
fn gits_own_rules_hold_in_gits_own_order() {
    let base = tempfile::tempdir().unwrap();
    let excludes = base.path().join("excludes");
    std::fs::write(&excludes, "global/\nback/\n").unwrap();
    let world = World::at(base.path(), |environment| environment.global_excludes = Some(excludes));
    git(&world.ws(), &["init", "-q"]);
    std::fs::write(world.path(".git/info/exclude"), "excluded/\n!back/\n").unwrap();
    world.write(".gitignore", "/build/\n*.out/\n").write("sub/.gitignore", "!keep.out/\nlocal/\n");
    for folder in ["build", "sub/build", "x.out", "sub/x.out", "sub/keep.out", "local", "sub/local", "sub/deep/local"] {
        world.write(format!("{folder}/f"), "f");
    }
    for folder in ["global", "sub/global", "excluded", "sub/excluded", "back"] {
        world.write(format!("{folder}/f"), "f");
    }
    let expected: Vec<_> = [
        "build",
        "excluded",
        "global",
        "sub/deep/local",
        "sub/excluded",
        "sub/global",
        "sub/local",
        "sub/x.out",
        "x.out",
    ]
    .map(|path| format!("{path} Ignored"))
    .into();
    assert_eq!(skipped(&world), expected);
    // The rules of an outer repository end where another one begins; the user's own do not.
    git(&world.path("sub"), &["init", "-q"]);
    let expected: Vec<_> = ["build", "excluded", "global", "sub/deep/local", "sub/global", "sub/local", "x.out"]
        .map(|path| format!("{path} Ignored"))
        .into();
    assert_eq!(skipped(&world), expected);
}

#[test]
fn ignored_folders_are_skipped_and_ignored_single_files_are_captured_up_to_a_size() {
    let world = World::new();
    world.write(".gitignore", ".env\nnode_modules\n*.bin\nlink\n").write(".env", "KEY=1");
    world.write("node_modules/m/index.js", "m").write("app/node_modules/m.js", "m").link("link", "node_modules");
    world
        .write("fits.bin", vec![7; 1 << 20])
        .write("large.bin", vec![7; (1 << 20) + 1])
        .write("large", vec![7; 3 << 20]);
    assert_eq!(skipped(&world), ["app/node_modules Ignored", "large.bin Ignored", "node_modules Ignored"]);
    world.assert_comes_back(&["node_modules", "app/node_modules", "large.bin"], |w| {
        w.write(".env", "KEY=2").remove("fits.bin").write("large", "small").remove("link");
        w.write("node_modules/m/index.js", "upgraded").remove("app").write("large.bin", vec![8; 2 << 20]);
    });
    assert_content(&world, &[("node_modules/m/index.js", Some("upgraded"))]);
}

#[test]
fn pitonignore_leaves_out_and_takes_in_whatever_git_says() {
    let world = World::new();
    world.write(".gitignore", "node_modules\nbuild/\n*.big\n").write("node_modules/m.js", "m").write("build/b", "b");
    world.write("taken.big", vec![7; 2 << 20]).write("left.big", vec![7; 2 << 20]);
    world.write(".pitonignore", "!node_modules\n!taken.big\n/secrets\n*.tmp\n").write("secrets/key", "k");
    world
        .write("a.tmp", "t")
        .write("sub/b.tmp", "t")
        .write("sub/.pitonignore", "!b.tmp\nlocal\n")
        .write("sub/local", "l");
    assert_eq!(
        skipped(&world),
        ["a.tmp Excluded", "build Ignored", "left.big Ignored", "secrets Excluded", "sub/local Excluded"]
    );
    world.assert_comes_back(&["a.tmp", "secrets", "sub/local"], |w| {
        w.write("node_modules/m.js", "upgraded").remove("taken.big").write("sub/b.tmp", "u");
        w.write("secrets/key", "l").write("a.tmp", "u").write("sub/local", "m");
    });
    assert_content(&world, &[("secrets/key", Some("l")), ("a.tmp", Some("u")), ("sub/local", Some("m"))]);
}

/// A change of the rules that leaves the folder `cache` out, and the way back.
type Rule = (&'static str, fn(&World), fn(&World));

/// Every way to leave out `sub/cache`; each is undone by its second half.
const RULES: [Rule; 5] = [
    (
        "an edited .gitignore",
        |w| drop(std::fs::write(w.path(".gitignore"), "cache/\n")),
        |w| drop(std::fs::write(w.path(".gitignore"), "#\n")),
    ),
    (
        "a new .gitignore in a subfolder",
        |w| drop(std::fs::write(w.path("sub/.gitignore"), "/cache\n")),
        |w| drop(std::fs::remove_file(w.path("sub/.gitignore"))),
    ),
    (
        ".git/info/exclude",
        |w| drop(std::fs::write(w.path(".git/info/exclude"), "cache/\n")),
        |w| drop(std::fs::write(w.path(".git/info/exclude"), "")),
    ),
    (
        "a .pitonignore",
        |w| drop(std::fs::write(w.path(".pitonignore"), "cache\n")),
        |w| drop(std::fs::remove_file(w.path(".pitonignore"))),
    ),
    (
        "the user's own excludes",
        |w| drop(std::fs::write(w.base().join("excludes"), "cache/\n")),
        |w| drop(std::fs::write(w.base().join("excludes"), "")),
    ),
];

fn ruled() -> (tempfile::TempDir, World) {
    let base = tempfile::tempdir().unwrap();
    let excludes = base.path().canonicalize().unwrap().join("excludes");
    let world = World::at(base.path(), |e| e.global_excludes = Some(excludes));
    git(&world.ws(), &["init", "-q"]);
    world.write(".gitignore", "#\n").write("sub/f", "1").write("sub/cache/a", "1").write("sub/cache/deep/b", "1");
    (base, world)
}

#[test]
fn a_folder_that_was_captured_and_is_ignored_now_gets_its_captured_files_back_and_keeps_the_others() {
    for (name, leave_out, _) in RULES {
        eprintln!("{name}");
        let (_base, world) = ruled();
        let id = world.capture();
        // Time for the cache to be trusted: what is as young as the capture is looked at again anyway.
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_eq!(skipped(&world), [""; 0]);
        leave_out(&world);
        assert_eq!(skipped(&world).len(), 1, "the new rule is noticed");
        world
            .write("sub/cache/a", "2")
            .remove("sub/cache/deep")
            .write("sub/cache/never", "captured")
            .write("sub/f", "2");
        let before = world.snapshot();
        let outcome = world.rewind(&id);
        assert!(outcome.verified);
        assert_content(&world, &[("sub/f", Some("1")), ("sub/cache/a", Some("1")), ("sub/cache/deep/b", Some("1"))]);
        assert_content(&world, &[("sub/cache/never", Some("captured"))]);
        world.redo();
        world.assert_is(&before);
        world.assert_sound();
    }
}

#[test]
fn a_folder_that_was_ignored_and_is_captured_now_stays_at_a_rewind_to_before() {
    for (name, leave_out, take_in) in RULES {
        eprintln!("{name}");
        let (_base, world) = ruled();
        leave_out(&world);
        let ignored = world.capture();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_eq!(skipped(&world).len(), 1);
        take_in(&world);
        assert_eq!(skipped(&world), [""; 0], "the rule's end is noticed");
        let taken = world.capture();
        world.write("sub/cache/a", "2").write("sub/f", "2");
        let outcome = world.rewind(&ignored);
        assert_eq!(outcome.skipped.iter().map(|s| &s.path.path[..]).collect::<Vec<_>>(), ["sub/cache"]);
        assert_content(&world, &[("sub/f", Some("1")), ("sub/cache/a", Some("2")), ("sub/cache/deep/b", Some("1"))]);
        // The checkpoint that has it brings it back, even where the rewind has put the rule back.
        world.rewind(&taken);
        assert_content(&world, &[("sub/cache/a", Some("1")), ("sub/cache/deep/b", Some("1"))]);
        world.redo();
        assert_content(&world, &[("sub/cache/a", Some("2"))]);
    }
}

#[test]
fn a_crash_in_the_middle_of_a_rewind_of_an_ignored_folder_ends_in_the_old_or_the_new_tree() {
    let crash_at = |step| {
        let (base, world) = ruled();
        let id = world.capture();
        std::fs::write(world.path(".git/info/exclude"), "cache/\n").unwrap();
        world
            .write("sub/cache/a", "2")
            .remove("sub/cache/deep")
            .write("sub/cache/never", "captured")
            .write("sub/f", "2");
        let old = world.snapshot();
        let done = fail::with(step, || world.rewind(&id)).is_some();
        let recovered = world.open().recovered().to_vec();
        assert!(recovered.iter().all(|r| r.left_alone.is_empty()), "at step {step}: {recovered:?}");
        (base, world, old, done)
    };
    let (_base, world, ..) = crash_at(0);
    let new = world.snapshot();
    for step in 1.. {
        let (_base, world, old, done) = crash_at(step);
        let now = world.snapshot();
        assert!(now == old || now == new, "at step {step}: is | old\n{}", now.differences(&old).join("\n"));
        world.assert_sound();
        if done {
            assert!(step > 10 && now == new);
            break;
        }
    }
}

#[test]
fn an_exclude_file_edited_twice_in_a_blink_is_noticed() {
    let (_base, world) = ruled();
    // The folders are old enough to be trusted, so only the file itself can tell.
    std::thread::sleep(std::time::Duration::from_millis(30));
    for round in 0..20 {
        std::fs::write(world.path(".git/info/exclude"), "cache/\n").unwrap();
        assert_eq!(skipped(&world), ["sub/cache Ignored"], "round {round}");
        std::fs::write(world.path(".git/info/exclude"), "# che/\n").unwrap();
        assert_eq!(skipped(&world), [""; 0], "round {round}");
    }
}

#[test]
fn rules_hold_in_a_folder_without_git() {
    let world = World::new();
    world.write(".gitignore", "build/\n").write("build/b", "b").write("sub/.gitignore", "!build/\n");
    world.write("sub/build/b", "b");
    assert_eq!(skipped(&world), ["build Ignored"]);
}

#[test]
fn a_workspace_inside_a_repository_obeys_the_rules_above_it() {
    let world = World::new();
    let base = world.base().to_owned();
    git(&base, &["init", "-q"]);
    std::fs::write(base.join(".gitignore"), "out/\n/ws/anchored/\n/anchored-above/\n").unwrap();
    std::fs::write(base.join(".git/info/exclude"), "excluded/\n").unwrap();
    for folder in ["out", "sub/out", "anchored", "sub/anchored", "anchored-above", "excluded", "sub/kept"] {
        world.write(format!("{folder}/f"), "f");
    }
    world.write("sub/.gitignore", "!out/\n");
    assert_eq!(skipped(&world), ["anchored Ignored", "excluded Ignored", "out Ignored"]);
    // They are outside the workspace, and a change of them is noticed all the same.
    std::fs::write(base.join(".gitignore"), "kept/\n").unwrap();
    assert_eq!(skipped(&world), ["excluded Ignored", "sub/kept Ignored"]);
    std::fs::write(base.join(".git/info/exclude"), "").unwrap();
    assert_eq!(skipped(&world), ["sub/kept Ignored"]);
    // A repository of its own: what is above has no say any more.
    git(&world.ws(), &["init", "-q"]);
    assert_eq!(skipped(&world), [""; 0]);
}

#[test]
fn a_store_inside_the_workspace_is_never_captured_and_never_touched() {
    let world = World::new();
    let engine = Engine::new(world.path(".piton-home"), Environment::default());
    world.write("f", "1");
    let open = || engine.open_or_init(&world.ws()).unwrap();
    let capture = || open().capture(&Default::default()).unwrap().checkpoint;
    let first = capture();
    assert_eq!(
        first.skipped.iter().map(|s| (&s.path.path[..], s.reason)).collect::<Vec<_>>(),
        [(".piton-home", Store)]
    );
    world.write("f", "2").write("new", "2");
    let outcome = open().rewind_now(first.checkpoint.id.as_str(), &RewindOptions::default()).unwrap();
    assert!(outcome.verified);
    assert_eq!(world.snapshot().without(".piton-home").len(), 1);
    assert!(open().verify(false).unwrap().sound);
    open().redo_now(&RedoOptions::default()).unwrap();
    assert_content(&world, &[("f", Some("2")), ("new", Some("2"))]);
    // A capture of an unchanged workspace is the same tree, though the store has grown.
    assert!(capture().checkpoint.changes.is_empty());
    assert_eq!(capture().skipped.len(), 1);
}

#[test]
fn state_folders_of_agents_are_never_captured_and_never_touched() {
    let base = tempfile::tempdir().unwrap();
    let state = base.path().canonicalize().unwrap().join("ws/.agent/state");
    let world = World::at(base.path(), |e| e.agent_state = vec![state]);
    world.write("f", "1").write(".agent/settings", "1").write(".agent/state/transcript", "1");
    // Not even where a rule would take it in.
    world.write(".pitonignore", "!.agent\n!state\n");
    let captured = world.captured().checkpoint;
    let id = captured.checkpoint.id.to_string();
    let found: Vec<_> = captured.skipped.iter().map(|s| (&s.path.path[..], s.reason)).collect();
    assert_eq!(found, [(".agent/state", AgentState)]);
    world.write("f", "2").write(".agent/settings", "2").write(".agent/state/transcript", "2");
    world.rewind(&id);
    assert_content(&world, &[("f", Some("1")), (".agent/settings", Some("1")), (".agent/state/transcript", Some("2"))]);
}

#[test]
fn a_repository_that_holds_the_home_folder_has_no_say_in_the_workspaces_inside() {
    let base = tempfile::tempdir().unwrap();
    let world = World::at(base.path(), |environment| environment.home_folder = Some(base.path().to_owned()));
    git(world.base(), &["init", "-q"]);
    std::fs::write(world.base().join(".git/info/exclude"), "*\n").unwrap();
    std::fs::write(world.base().join(".gitignore"), "*\n").unwrap();
    std::fs::write(world.base().join("excludes"), "sub/\n").unwrap();
    git(world.base(), &["config", "core.excludesFile", world.base().join("excludes").to_str().unwrap()]);
    world.write("sub/deep/f", "1").write("top", "1");
    assert!(skipped(&world).is_empty());
    world.assert_comes_back(&[], |world| {
        world.remove("sub").write("top", "2");
    });
}

#[test]
fn rules_that_leave_a_workspace_out_do_not_hold_in_it() {
    // Where the rules are, what they say, and the workspace in the repository.
    for (file, rules, inner) in [
        (".gitignore", "tmp/**\n", "tmp/work"),
        (".gitignore", "*\n", "work"),
        (".git/info/exclude", "tmp/**\n", "tmp/work"),
        ("tmp/.gitignore", "*\n", "tmp/work"),
        ("tmp/work/.gitignore", "*\n", "tmp/work"),
        ("excludes", "tmp/**\n*\n", "tmp/work"),
    ] {
        let base = tempfile::tempdir().unwrap();
        let excludes = base.path().join("ws/excludes");
        let world = World::at(base.path(), |environment| environment.global_excludes = Some(excludes));
        git(&world.ws(), &["init", "-q"]);
        world.write(file, rules);
        if file.starts_with("tmp") {
            world.write(".gitignore", "tmp/\n");
        }
        world.write(format!("{inner}/sub/deep/f"), "1").write(format!("{inner}/top"), "1");
        let mut workspace = world.engine.open_or_init(&world.path(inner)).unwrap();
        let captured = workspace.capture(&Default::default()).unwrap().checkpoint;
        assert!(captured.skipped.is_empty(), "{file} {rules:?}: {:?}", captured.skipped);
        world.remove(format!("{inner}/sub"));
        workspace.rewind_now(captured.checkpoint.id.as_str(), &RewindOptions::default()).unwrap();
        let back = std::fs::read_to_string(world.path(inner).join("sub/deep/f"));
        assert_eq!(back.ok().as_deref(), Some("1"), "{file} {rules:?}");
    }
}

#[test]
fn rules_above_a_workspace_hold_in_it_where_they_do_not_leave_it_out() {
    let base = tempfile::tempdir().unwrap();
    let excludes = base.path().join("excludes");
    std::fs::write(&excludes, "global/\n").unwrap();
    let world = World::at(base.path(), |environment| environment.global_excludes = Some(excludes));
    git(&world.ws(), &["init", "-q"]);
    world.write(".gitignore", "build/\nleft/\n").write("app/.gitignore", "out/\n");
    for folder in ["build", "global", "out", "src"] {
        world.write(format!("app/part/{folder}/f"), "1").write(format!("left/{folder}/f"), "1");
    }
    let skipped = |inner: &str| {
        let mut workspace = world.engine.open_or_init(&world.path(inner)).unwrap();
        let all = workspace.capture(&Default::default()).unwrap().checkpoint.skipped;
        all.into_iter().map(|one| one.path.path).collect::<Vec<_>>()
    };
    assert_eq!(skipped("app/part"), ["build", "global", "out"]);
    // The user's own rules hold everywhere.
    assert_eq!(skipped("left"), ["global"]);
}

/// A rewind must not take back what somebody committed.
#[test]
fn the_own_data_of_other_version_control_is_left_alone_unless_a_rule_takes_it_in() {
    let world = World::new();
    world.write("a", "1").write(".hg/store/00changelog.i", "1").write("sub/.svn/wc.db", "1");
    let id = world.capture();
    world.write("a", "2").write(".hg/store/00changelog.i", "2").write("sub/.svn/wc.db", "2");
    world.rewind(&id);
    let now = world.snapshot();
    let read = [("a", "1"), (".hg/store/00changelog.i", "2"), ("sub/.svn/wc.db", "2")];
    assert!(read.iter().all(|(path, content)| now.bytes(path) == Some(content.as_bytes())), "{read:?}");
    world.write(".pitonignore", "!.hg/\n");
    let id = world.capture();
    world.write(".hg/store/00changelog.i", "3");
    world.rewind(&id);
    assert_eq!(world.snapshot().bytes(".hg/store/00changelog.i"), Some(&b"2"[..]));
}
