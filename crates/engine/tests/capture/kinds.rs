//! Every kind of thing that can stand at a path comes back as it was, and so does every change from one to another.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use piton_engine::model::TreeSource;
use piton_testkit::World;

fn project() -> World {
    let world = World::new();
    world.write("README.md", "hello\n").write("src/main.rs", "fn main() {}\n").write("src/lib/deep/x.rs", "x\n");
    world
}

#[test]
fn files_that_any_program_made_edited_deleted_and_renamed_come_back() {
    project().assert_comes_back(&[], |w| {
        let script = "echo new > made; echo more >> README.md; rm src/main.rs; mv src/lib src/moved; mkdir -p a/b; cp README.md a/b/";
        let run = std::process::Command::new("sh").args(["-c", script]).current_dir(w.ws()).status().unwrap();
        assert!(run.success());
    });
}

#[test]
fn binary_and_empty_files_come_back() {
    let world = project();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    world.write("binary", &bytes).write("empty", "").write("nul", b"\0\0\0");
    world.assert_comes_back(&[], |w| {
        w.write("binary", &bytes[1..]).write("empty", "no longer").write("nul", "").write("new-empty", "");
    });
}

#[test]
fn empty_folders_come_back_and_go() {
    let world = project();
    world.folder("empty").folder("nest/of/empty");
    world.assert_comes_back(&[], |w| {
        w.remove("empty").remove("nest").folder("other/empty");
    });
}

#[test]
fn modes_come_back() {
    let world = project();
    world.write("run.sh", "#!/bin/sh\n").mode("run.sh", 0o755).write("secret", "s").mode("secret", 0o600);
    world.write("fixed", "f").mode("fixed", 0o444).folder("shared").mode("shared", 0o2775).folder("closed");
    world.mode("closed", 0o500);
    world.assert_comes_back(&[], |w| {
        w.mode("run.sh", 0o644).mode("secret", 0o644).mode("fixed", 0o666).mode("shared", 0o755);
        w.mode("closed", 0o755).mode("README.md", 0o4755);
    });
}

#[test]
fn the_mode_of_the_root_comes_back() {
    let world = project();
    let mode = || std::fs::metadata(world.ws()).unwrap().mode() & 0o7777;
    world.mode("", 0o750);
    let id = world.capture();
    world.mode("", 0o700);
    world.rewind(&id);
    assert_eq!(mode(), 0o750);
    world.redo();
    assert_eq!(mode(), 0o700);
}

#[test]
fn symlinks_come_back_whatever_they_point_to() {
    let world = project();
    world
        .link("to-file", "README.md")
        .link("to-folder", "src")
        .link("outside", "/etc/passwd")
        .link("dangling", "nowhere");
    world.link("circle-a", "circle-b").link("circle-b", "circle-a").link("self", "self");
    world.assert_comes_back(&[], |w| {
        for name in ["to-file", "to-folder", "outside", "circle-a"] {
            w.remove(name);
        }
        w.link("to-file", "src/main.rs").write("outside", "now a file").link("new", "..").remove("self").folder("self");
    });
    assert!(std::fs::read("/etc/passwd").is_ok());
}

#[test]
fn a_path_changes_between_file_folder_and_symlink_in_every_direction() {
    type Make = fn(&World, &str);
    let kinds: [(&str, Make); 4] = [
        ("file", |w, p| {
            w.write(p, "content");
        }),
        ("folder", |w, p| {
            w.write(format!("{p}/in/side"), "content");
        }),
        ("empty folder", |w, p| {
            w.folder(p);
        }),
        ("symlink", |w, p| {
            w.link(p, "README.md");
        }),
    ];
    for (from, make_from) in kinds {
        for (to, make_to) in kinds.iter().filter(|(to, _)| *to != from) {
            eprintln!("{from} to {to}");
            let world = project();
            make_from(&world, "thing");
            world.assert_comes_back(&[], |w| {
                w.remove("thing");
                make_to(w, "thing");
            });
        }
    }
}

#[test]
fn a_symlink_that_takes_a_folders_place_leads_nobody_outside() {
    let world = project();
    let outside = world.base().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("main.rs"), "not yours").unwrap();
    world.assert_comes_back(&[], |w| {
        w.rename("src", "gone").link("src", &outside);
    });
    assert_eq!(std::fs::read(outside.join("main.rs")).unwrap(), b"not yours");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn names_of_all_bytes_come_back() {
    let world = project();
    let long = "n".repeat(255);
    let names =
        [" two  spaces ", "new\nline", "-rf", "--help", "🧗 piton", "tab\tand \\ and \"", &long, "con", "*", "$(x)"];
    for name in names {
        world.write(name, name);
    }
    world.write(OsStr::from_bytes(b"not-utf8-\xff\xfe"), "bytes").write(OsStr::from_bytes(b"\xc3\x28/inner"), "bytes");
    world.assert_comes_back(&[], |w| {
        for name in names {
            w.write(name, "other");
        }
        w.remove(OsStr::from_bytes(b"not-utf8-\xff\xfe")).remove(OsStr::from_bytes(b"\xc3\x28"));
    });
}

#[test]
fn hidden_files_come_back() {
    let world = project();
    world.write(".config/.hidden", "h").write(".x", "x");
    world.assert_comes_back(&[], |w| {
        w.remove(".config").write(".x", "y");
    });
}

#[test]
fn a_folder_200_levels_deep_comes_back() {
    let world = project();
    // Longer than a path may be for the kernel, so it is made and read step by step.
    let deep = |name: &str| vec![name; 200].join("/");
    world.write(format!("{}/file", deep("d")), "deep");
    world.assert_comes_back(&[], |w| {
        w.write(format!("{}/file", deep("d")), "changed").write(format!("{}/new", deep("d")), "new");
    });
    let world = project();
    let name = "long-".repeat(10);
    let script = format!(
        "i=0; while [ $i -lt 200 ]; do mkdir {name} && cd {name} || exit 1; i=$((i+1)); done; echo deep > file"
    );
    let shell = |script: &str| {
        let run = std::process::Command::new("bash").args(["-c", script]).current_dir(world.ws()).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    shell(&script);
    let id = world.capture();
    let down = format!("i=0; while [ $i -lt 200 ]; do cd {name} || exit 1; i=$((i+1)); done;");
    shell(&format!("{down} echo changed > file; echo new > other"));
    world.rewind(&id);
    assert_eq!(shell(&format!("{down} cat *")), "deep\n");
    shell(&format!("rm -rf {name}"));
    world.rewind(&id);
    assert_eq!(shell(&format!("{down} cat *")), "deep\n");
    shell(&format!("rm -rf {name}"));
}

#[test]
fn piton_never_writes_into_an_existing_inode() {
    let world = project();
    let outside = world.base().join("hard-linked");
    std::fs::hard_link(world.path("README.md"), &outside).unwrap();
    let id = world.capture();
    // Both names change, since they are one file.
    std::fs::write(world.path("README.md"), "edited").unwrap();
    world.rewind(&id);
    assert_eq!(std::fs::read(world.path("README.md")).unwrap(), b"hello\n");
    assert_eq!(std::fs::read(&outside).unwrap(), b"edited");
    assert_ne!(std::fs::metadata(&outside).unwrap().ino(), std::fs::metadata(world.path("README.md")).unwrap().ino());
    // A mode is a property of the inode as well.
    std::fs::remove_file(&outside).unwrap();
    std::fs::hard_link(world.path("README.md"), &outside).unwrap();
    world.mode("README.md", 0o600);
    world.rewind(&id);
    assert_eq!(std::fs::metadata(&outside).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_restored_file_has_a_fresh_mtime_so_that_build_tools_notice() {
    let world = project();
    let id = world.capture();
    let old = std::fs::metadata(world.path("README.md")).unwrap().mtime_nsec();
    world.write("README.md", "edited");
    std::thread::sleep(std::time::Duration::from_millis(30));
    let before = std::time::SystemTime::now();
    std::thread::sleep(std::time::Duration::from_millis(30));
    world.rewind(&id);
    let meta = std::fs::metadata(world.path("README.md")).unwrap();
    assert_ne!(meta.mtime_nsec(), old);
    assert!(meta.modified().unwrap() > before);
}

#[test]
fn the_stat_cache_has_every_tree_of_the_last_capture() {
    let world = World::new();
    world.write("a/b/c", "c").write("a/x", "x").mode("a/x", 0o755).folder("a/empty").link("a/link", "nowhere");
    world.write(".gitignore", "node_modules\n").write("node_modules/m", "m").folder("repo/.git").write("repo/f", "f");
    world.mode("a/b", 0o700);
    world.capture();
    // Once more, so that blocks of the cache are patched and not made anew.
    world.write("a/b/c", "d");
    world.capture();
    let store = piton_store::Store::open(world.open().store_folder()).unwrap();
    let index = store.index().unwrap();
    let places = index.trees();
    assert_eq!(places.len(), 5, "root, a, a/b, a/empty, repo");
    for (id, at) in places {
        assert_eq!(index.tree(at).as_ref(), Some(&*store.tree(&id).unwrap()));
    }
}
