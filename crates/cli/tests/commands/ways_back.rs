//! The way back that is printed after an operation is one that works, typed literally; and an operation that has begun
//! comes to its end, so that there is one.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use piton_testkit::{Agent, Scene, both};

use crate::PITON;

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
        assert!(refused.contains("--keep-mine --outside --only-session"), "{refused}");
        assert!(!refused.contains("--outside --keep-mine"), "what is typed already is no way out: {refused}");
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

mod signals {
    use super::*;

    /// A command that waits at a point of its work.
    struct Waiting {
        child: Child,
        file: PathBuf,
    }

    fn scene() -> Scene {
        let scene = Scene::new(PITON);
        let write = |content: &str| {
            for n in 0..20 {
                scene.world.write(format!("f{n}"), content);
            }
        };
        write("one\n");
        scene.ok(&["checkpoint", "one"]);
        write("two\n");
        scene
    }

    fn waiting(scene: &Scene, mut command: Command, point: &str) -> Waiting {
        let file = scene.world.base().join("go-on");
        let _ = std::fs::remove_file(&file);
        let reached = file.with_extension("reached");
        let _ = std::fs::remove_file(&reached);
        command.env("PITON_FAIL", format!("wait={point}={}", file.display()));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while !reached.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{point} is never reached");
            std::thread::sleep(Duration::from_millis(5));
        }
        Waiting { child, file }
    }

    impl Waiting {
        /// Sends it, and lets it arrive.
        fn send(&self, signal: &str) {
            let sent = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
            assert!(sent.unwrap().success());
            std::thread::sleep(Duration::from_millis(300));
        }

        fn end(self) -> Output {
            std::fs::write(&self.file, "").unwrap();
            self.child.wait_with_output().unwrap()
        }
    }

    /// Who runs the tests in the background may have Ctrl-C ignored, and so would the command.
    fn is_interrupt_ignored() -> bool {
        let is_ignored = piton_engine::ignored_signals().unwrap_or(0) & 2 != 0;
        if is_ignored {
            piton_testkit::not_run("signals that come in the middle", "Ctrl-C is ignored here");
        }
        is_ignored
    }

    #[test]
    fn one_that_comes_while_files_change_waits_until_it_is_done_and_is_told() {
        if is_interrupt_ignored() {
            return;
        }
        for signal in ["INT", "TERM", "HUP"] {
            for point in ["operate:begun", "apply:swap", "operate:clearing"] {
                let scene = scene();
                let waiting = waiting(&scene, scene.piton(&["rewind", "one", "--yes"]), point);
                waiting.send(signal);
                let done = waiting.end();
                let told = both(&done);
                assert_eq!(done.status.code(), Some(0), "{signal} at {point}: {told}");
                assert!(told.contains("rewound to") && told.contains("verified"), "{told}");
                let late = format!("SIG{signal} came too late to stop it; it is done, and `piton redo` takes it back");
                assert!(told.contains(&late), "{told}");
                assert!((0..20).all(|n| scene.read(&format!("f{n}")) == "one\n"), "{told}");
                let left = std::fs::read_dir(scene.world.ws()).unwrap().count();
                assert_eq!(left, 20, "nothing of piton's own is left");
            }
        }
    }

    #[test]
    fn an_undo_and_a_redo_wait_too() {
        let scene = Scene::new(PITON);
        scene.world.write("a", "one\n");
        Agent::new(&scene.world, "s").edits("go", &["a"], |world| {
            world.write("a", "two\n");
        });
        for (words, now) in [(["undo", "--yes"], "one\n"), (["redo", "--yes"], "two\n")] {
            let waiting = waiting(&scene, scene.piton(&words), "apply:swap");
            waiting.send("TERM");
            let done = waiting.end();
            let told = both(&done);
            assert_eq!(done.status.code(), Some(0), "{told}");
            let back = commands(&told).pop().unwrap();
            assert!(told.contains(&format!("SIGTERM came too late to stop it; it is done, and `{back}`")), "{told}");
            assert_eq!(scene.read("a"), now);
        }
    }

    #[test]
    fn one_that_comes_before_ends_the_command() {
        if is_interrupt_ignored() {
            return;
        }
        for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
            let scene = scene();
            let mut waiting = waiting(&scene, scene.piton(&["rewind", "one", "--yes"]), "capture:scanned");
            waiting.send(signal);
            let ended = waiting.child.try_wait().unwrap().expect("it does not wait");
            assert_eq!(ended.signal(), Some(number), "{signal}");
            assert_eq!(scene.read("f0"), "two\n");
            assert!(!scene.told(&["status"]).contains("cut off"));
        }
    }

    #[test]
    fn a_second_interrupt_ends_it_at_once_and_the_next_command_ends_the_operation() {
        if is_interrupt_ignored() {
            return;
        }
        let scene = scene();
        let mut waiting = waiting(&scene, scene.piton(&["rewind", "one", "--yes"]), "apply:swap");
        waiting.send("INT");
        assert!(waiting.child.try_wait().unwrap().is_none(), "one is not enough");
        waiting.send("INT");
        let ended = waiting.child.try_wait().unwrap().expect("two are");
        assert_eq!(ended.signal(), Some(2));
        scene.told(&["status"]);
        let first = scene.read("f0");
        assert!((0..20).all(|n| scene.read(&format!("f{n}")) == first));
    }

    #[test]
    fn one_that_is_ignored_stays_so() {
        let scene = scene();
        let mut ignoring = scene.piton(&[]);
        let piton = ignoring.get_program().to_owned();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(piton).args(["rewind", "one", "--yes"]);
        shell.env_clear().current_dir(scene.world.ws()).stdin(Stdio::null());
        for (name, value) in ignoring.env_clear().get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell.env("HOME", scene.world.base()).env("PITON_HOME", scene.world.base().join("home"));
        let waiting = waiting(&scene, shell, "capture:scanned");
        waiting.send("HUP");
        let done = waiting.end();
        assert_eq!(done.status.code(), Some(0), "{}", both(&done));
        assert_eq!(scene.read("f0"), "one\n");
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
        assert!(preview.contains("src: is not a folder now, and what is asked for was in a folder there"), "{preview}");
        assert!(preview.contains("`--path src` asks for the whole of it"), "{preview}");
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
