//! The way back that is printed after an operation is one that works, typed literally; and an operation that has begun
//! comes to its end, so that there is one.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test may stop where it likes")]

use std::path::PathBuf;
use std::process::Output;

use piton_testkit::{Agent, Scene, both};

const PITON: &str = env!("CARGO_BIN_EXE_piton");

/// The commands that a text names: what stands between two backticks and begins with `piton`.
fn commands(told: &str) -> Vec<String> {
    told.split('`').skip(1).step_by(2).filter(|one| one.starts_with("piton ")).map(str::to_owned).collect()
}

mod outside {
    use super::*;

    /// One turn that writes a file in the workspace and one outside of it.
    fn turn() -> (Scene, PathBuf) {
        let scene = Scene::new(PITON);
        scene.world.write("a", "a\n");
        let there = scene.world.base().join("there");
        Agent::new(&scene.world, "s").edits("go", &["a", &there.display().to_string()], |world| {
            world.write("a", "changed\n");
            std::fs::write(&there, "made\n").unwrap();
        });
        (scene, there)
    }

    #[test]
    fn what_took_files_outside_back_is_taken_back_by_the_command_that_it_names() {
        for act in [&["rewind", "t1"][..], &["undo"]] {
            let (scene, there) = turn();
            let told = scene.told(&[act, &["--yes", "--outside"]].concat());
            assert!(!there.exists(), "{told}");
            assert_eq!(commands(&told), ["piton redo --outside"], "{told}");
            let told = scene.told(&["redo", "--outside", "--yes"]);
            assert_eq!((scene.read("a"), there.exists()), ("changed\n".to_owned(), true), "{told}");
            let back = commands(&told);
            assert!(back[0].starts_with("piton undo --op ") && back[0].ends_with(" --outside"), "{told}");
            let words: Vec<&str> = back[0].split(' ').skip(1).chain(["--yes"]).collect();
            scene.told(&words);
            assert_eq!((scene.read("a"), there.exists()), ("a\n".to_owned(), false));
        }
    }

    #[test]
    fn what_left_them_alone_is_taken_back_without() {
        let (scene, there) = turn();
        let told = scene.told(&["rewind", "t1", "--yes"]);
        assert!(told.contains("`piton redo` takes it back"), "{told}");
        assert!(there.exists());
    }

    #[test]
    fn they_are_not_meant_where_paths_are() {
        let (scene, _) = turn();
        for act in [&["rewind", "t1"][..], &["undo", "t1"]] {
            let refused = scene.fails(&[act, &["--path", "a", "--outside", "--yes"]].concat());
            assert!(refused.contains("`--path`") && refused.contains("`--outside`"), "{refused}");
        }
        assert_eq!(scene.read("a"), "changed\n");
    }

    #[test]
    fn another_sessions_file_is_named_and_careful_leaves_it() {
        let (scene, there) = turn();
        let theirs = scene.world.base().join("theirs");
        Agent::new(&scene.world, "other").edits("go", &[&theirs.display().to_string()], |_| {
            std::fs::write(&theirs, "theirs\n").unwrap();
        });
        let t1 = format!("{}:t1", Agent::new(&scene.world, "s").id());
        let refused = scene.fails(&["rewind", &t1, "--careful", "--keep-mine", "--outside"]);
        assert!(refused.contains("another session's edits in") && refused.contains("theirs"), "{refused}");
        assert!(there.exists() && theirs.exists());
        scene.told(&["rewind", &t1, "--careful", "--only-session", "--outside"]);
        assert!(!there.exists() && theirs.exists());
    }
}

mod workspace {
    use super::*;

    #[test]
    fn a_command_for_a_chosen_workspace_names_it() {
        let scene = Scene::new(PITON);
        let other = scene.world.base().join("an other");
        std::fs::create_dir(&other).unwrap();
        let run = |words: &[&str]| -> Output {
            let mut command = scene.piton(words);
            command.current_dir(&other).output().unwrap()
        };
        let here = scene.world.ws();
        let here = here.to_str().unwrap();
        scene.world.write("a", "one\n");
        scene.ok(&["checkpoint", "one"]);
        scene.world.write("a", "two\n");
        std::fs::write(other.join("o"), "one\n").unwrap();
        assert!(run(&["checkpoint", "one"]).status.success());
        std::fs::write(other.join("o"), "two\n").unwrap();
        assert!(run(&["rewind", "one", "--yes"]).status.success());

        let told = both(&run(&["rewind", "one", "--yes", "--workspace", here]));
        assert_eq!(scene.read("a"), "one\n", "{told}");
        let back = commands(&told);
        assert_eq!(back, [format!("piton redo --workspace {here}")], "{told}");
        let words: Vec<&str> = back[0].split(' ').skip(1).chain(["--yes"]).collect();
        let told = both(&run(&words));
        assert_eq!(scene.read("a"), "two\n", "{told}");
        assert_eq!(std::fs::read_to_string(other.join("o")).unwrap(), "one\n", "the other one is as it was");
        assert!(!commands(&told).is_empty());
        assert!(commands(&told).iter().all(|one| one.ends_with(&format!(" --workspace {here}"))), "{told}");
        // Failures as well, in words and in the document.
        let refused = run(&["rewind", "nothing", "--yes", "--json", "--workspace", here]);
        assert_eq!(refused.status.code(), Some(1));
        for said in [&refused.stdout, &refused.stderr] {
            let said = String::from_utf8_lossy(said);
            assert!(said.contains(&format!("`piton log --workspace {here}`")), "{said}");
        }
        // Without a choice nothing is added.
        assert!(!both(&run(&["rewind", "nothing", "--yes"])).contains("--workspace"));
    }
}

mod in_the_way {
    use super::*;

    #[test]
    fn a_file_where_a_folder_must_be_is_named_with_a_way_that_works() {
        let scene = Scene::new(PITON);
        scene.world.write("src/in/b", "b\n");
        scene.ok(&["checkpoint", "one"]);
        scene.world.remove("src").write("src", "a file\n");
        let preview = scene.ok(&["rewind", "one", "--path", "src/in/b", "--preview"]);
        assert!(preview.contains("src: stands where a folder of that moment must be"), "{preview}");
        assert!(!preview.contains("--conflict") && preview.contains("--partial"), "{preview}");
        let refused = scene.fails(&["rewind", "one", "--path", "src/in/b", "--yes"]);
        assert!(!refused.contains("--conflict") && !refused.contains("not captured"), "{refused}");
        assert!(refused.contains("`--path src` asks for the whole of it"), "{refused}");
        assert_eq!(scene.read("src"), "a file\n");
        scene.told(&["rewind", "one", "--path", "src", "--yes"]);
        assert_eq!(scene.read("src/in/b"), "b\n");
        scene.told(&["redo", "--yes"]);
        assert_eq!(scene.read("src"), "a file\n");
    }
}
