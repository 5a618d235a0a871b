//! Files that git tracks are captured, whatever git's ignore rules say of the folder that they are in.

use std::os::unix::fs::symlink;

use piton_testkit::{World, git};

/// The paths that a capture skips now.
fn skipped(world: &World) -> Vec<String> {
    world.captured().checkpoint.skipped.iter().map(|s| s.path.path.clone()).collect()
}

/// A repository that ignores `dist/`, with one file in it that is tracked all the same and one that is not.
fn world() -> World {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    world.write(".gitignore", "dist/\n").write("src/main.js", "main");
    world.write("dist/app.js", "built").write("dist/cache/x", "x").write("dist/deep/in/lib.js", "lib");
    git(&world.ws(), &["add", "."]);
    git(&world.ws(), &["add", "-f", "dist/app.js", "dist/deep/in/lib.js"]);
    world
}

#[test]
fn a_tracked_file_in_an_ignored_folder_comes_back_and_the_rest_of_the_folder_is_listed() {
    let world = world();
    assert_eq!(skipped(&world), ["dist/cache"]);
    world.write("dist/app.js", "edited by the user").write("dist/new.js", "new");
    let before = world.capture();
    assert_eq!(skipped(&world), ["dist/cache", "dist/new.js"]);
    world.remove("dist");
    world.rewind(&before);
    let now = world.snapshot();
    assert_eq!(now.bytes("dist/app.js"), Some(&b"edited by the user"[..]));
    assert_eq!(now.bytes("dist/deep/in/lib.js"), Some(&b"lib"[..]));
    world.assert_sound();
}

#[test]
fn what_is_added_to_the_index_later_is_captured_though_no_file_changed() {
    let world = world();
    world.capture();
    // The stamp of the index is taken only once it is no longer young.
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(skipped(&world), ["dist/cache"]);
    assert_eq!(skipped(&world), ["dist/cache"]);
    git(&world.ws(), &["add", "-f", "dist/cache/x"]);
    assert_eq!(skipped(&world), [""; 0]);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(skipped(&world), [""; 0]);
    assert_eq!(skipped(&world), [""; 0]);
    world.write("dist/cache/x", "changed");
    let before = world.capture();
    world.remove("dist/cache");
    world.rewind(&before);
    assert_eq!(world.snapshot().bytes("dist/cache/x"), Some(&b"changed"[..]));
}

#[test]
fn pitonignore_goes_before_gits_index() {
    let world = world();
    world.write(".pitonignore", "app.js\n");
    assert_eq!(skipped(&world), ["dist/app.js", "dist/cache"]);
    world.write(".pitonignore", "dist/\n");
    assert_eq!(skipped(&world), ["dist"]);
}

#[test]
fn a_large_ignored_file_that_is_tracked_is_captured() {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    world.write(".gitignore", "*.bin\n").write("a.bin", vec![1; 2 << 20]).write("b.bin", vec![1; 2 << 20]);
    git(&world.ws(), &["add", "-f", "a.bin"]);
    assert_eq!(skipped(&world), ["b.bin"]);
}

#[test]
fn every_repository_has_its_own_index() {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    // The outer repository tracks a path that the inner one only ignores, from before the inner one was made.
    world.write("inner/out/a", "a").write("inner/out/b", "b").write(".gitignore", "vendor/\n");
    git(&world.ws(), &["add", "."]);
    git(&world.path("inner"), &["init", "-q"]);
    world.write("inner/.gitignore", "out/\n");
    git(&world.path("inner"), &["add", "-f", "out/b"]);
    assert_eq!(skipped(&world), ["inner/out/a"]);
    // A repository in an ignored folder, as a submodule is: all of it but what its own rules leave out.
    let vendor = world.path("vendor/lib");
    world.write("vendor/lib/l.js", "l").write("vendor/lib/.gitignore", "tmp/\n").write("vendor/lib/tmp/t", "t");
    world.write("vendor/other/o.js", "o");
    git(&vendor, &["init", "-q"]);
    git(&vendor, &["add", "."]);
    git(&vendor, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one"]);
    git(&world.ws(), &["add", "-f", "vendor/lib"]);
    assert_eq!(skipped(&world), ["inner/out/a", "vendor/lib/tmp", "vendor/other"]);
}

#[test]
fn a_workspace_in_a_repository_goes_by_the_index_of_that_repository() {
    let base = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(base.path().join("ws")).unwrap();
    git(base.path(), &["init", "-q"]);
    std::fs::write(base.path().join(".gitignore"), "dist/\nhome/\n").unwrap();
    let world = World::at(base.path(), |_| {});
    world.write("dist/app.js", "built").write("dist/x", "x");
    git(base.path(), &["add", "-f", "ws/dist/app.js"]);
    assert_eq!(skipped(&world), ["dist/x"]);
}

#[test]
fn every_form_of_the_index_is_understood() {
    for form in [
        &["update-index", "--index-version", "4"][..],
        &["update-index", "--split-index"],
        &["update-index", "--index-version", "3"],
    ] {
        let world = world();
        git(&world.ws(), form);
        assert_eq!(skipped(&world), ["dist/cache"], "{form:?}");
        git(&world.ws(), &["add", "-f", "dist/cache/x"]);
        assert_eq!(skipped(&world), [""; 0], "{form:?}");
    }
}

#[test]
fn an_index_that_cannot_be_read_tracks_nothing_and_holds_nothing_up() {
    let world = world();
    let index = world.path(".git/index");
    let whole = std::fs::read(&index).unwrap();
    for cut in [0, 11, 40, whole.len() / 2] {
        std::fs::write(&index, &whole[..cut]).unwrap();
        world.captured();
    }
    std::fs::remove_file(&index).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &index, 0o644.into()).unwrap();
    world.captured();
    std::fs::remove_file(&index).unwrap();
    symlink("/dev/zero", &index).unwrap();
    world.captured();
    std::fs::remove_file(&index).unwrap();
    std::fs::write(&index, &whole).unwrap();
    assert_eq!(skipped(&world), ["dist/cache"]);
}

#[test]
fn what_is_tracked_no_longer_is_unknown_and_neither_equal_nor_deleted() {
    let world = world();
    world.write("dist/app.js", "edited");
    let before = world.capture();
    git(&world.ws(), &["rm", "-q", "--cached", "-f", "dist/app.js", "dist/deep/in/lib.js"]);
    let after = world.capture();
    assert_eq!(skipped(&world), ["dist"]);
    world.write("dist/app.js", "edited again");
    // The later checkpoint says nothing of it, so going there leaves it alone; the earlier one has it.
    world.rewind(&after);
    assert_eq!(world.snapshot().bytes("dist/app.js"), Some(&b"edited again"[..]));
    world.rewind(&before);
    assert_eq!(world.snapshot().bytes("dist/app.js"), Some(&b"edited"[..]));
    world.redo();
    assert_eq!(world.snapshot().bytes("dist/app.js"), Some(&b"edited again"[..]));
}
