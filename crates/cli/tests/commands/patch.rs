//! `--patch`: change by change, at a terminal.

use piton_testkit::{Agent, Scene, both};

use crate::PITON;

/// Nine lines, some of them changed.
fn lines(changed: &[usize]) -> String {
    (1..=9).map(|n| if changed.contains(&n) { format!("changed {n}\n") } else { format!("line {n}\n") }).collect()
}

/// A turn that changes two places of a file, makes one, and deletes another.
fn one_turn() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("a", lines(&[])).write("gone", "1\n").write("image", "\0one");
    scene.capture();
    let agent = Agent::new(&scene.world, "run-1");
    agent.edits("all", &["a", "gone", "image", "new"], |world| {
        world.write("a", lines(&[1, 9])).remove("gone").write("image", "\0two").write("new", "made anew\n");
    });
    scene
}

#[test]
fn an_undo_and_a_rewind_take_back_what_is_answered_with_yes_and_a_redo_too() {
    let scene = one_turn();
    for verb in ["undo", "rewind"] {
        // Place 1 of a, place 2 of a, gone, image, new, and the plan.
        let (screen, code) = scene.at_a_terminal(&[verb, "t1", "--patch"], "n\ny\ny\nn\ny\ny\n");
        assert_eq!(code, Some(0), "{screen}");
        for part in [
            "@@ -1,4 +1,4 @@\n-changed 1\n+line 1\n",
            "(1/5) ",
            "change in a [y,n,q,a,d,?]? ",
            "(3/5) Recreate gone [y,n,q,a,d,?]? ",
            "(4/5) Restore image [",
            "(5/5) Delete new [",
            "Left as it is, as you asked:\n  image\n  a (in part)\n",
        ] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
        assert_eq!(scene.read("a"), lines(&[1]));
        assert_eq!((scene.read("gone"), scene.read("image")), ("1\n".to_owned(), "\0two".to_owned()));
        assert!(!scene.world.has("new"));
        // Of the redo only the file that came back goes.
        let (screen, code) = scene.at_a_terminal(&["redo", "-p", "--yes"], "n\ny\nn\n");
        assert!(code == Some(0) && !screen.contains("[y/N]"), "{screen}");
        assert!(!scene.world.has("gone") && !scene.world.has("new"));
        assert_eq!(scene.read("a"), lines(&[1]));
        scene.world.write("a", lines(&[1, 9])).write("new", "made anew\n");
        scene.capture();
    }
}

#[test]
fn nothing_happens_where_nobody_answers_or_everything_is_to_stay() {
    let scene = one_turn();
    let before = scene.world.snapshot();
    let (screen, code) = scene.at_a_terminal(&["undo", "--patch"], "y\n\u{4}");
    assert!(code == Some(1) && screen.contains("Nothing was changed"), "{screen}");
    let (screen, code) = scene.at_a_terminal(&["undo", "--patch", "--yes"], "q\n");
    assert!(code == Some(0) && screen.contains("you chose to leave all of it as it is"), "{screen}");
    let (screen, code) = scene.at_a_terminal(&["undo", "--patch"], "a\nq\nn\n");
    assert!(code == Some(1) && screen.contains("Undo 1 file (a)? [y/N]"), "{screen}");
    let (screen, _) = scene.at_a_terminal(&["undo", "--patch"], "?\nx\nq\n");
    assert_eq!(screen.matches("y - do this\n").count(), 2, "{screen}");
    assert!(!screen.contains("s - split"), "{screen}");
    scene.world.assert_is(&before);
}

#[test]
fn neighbouring_changes_are_split_and_a_name_or_a_colour_changes_nothing() {
    let scene = Scene::new(PITON);
    scene.world.write("a", lines(&[]));
    scene.capture();
    let agent = Agent::new(&scene.world, "run-1");
    agent.edits("close", &["a"], |world| {
        world.write("a", lines(&[3, 5]));
    });
    let (screen, code) = scene.at_a_terminal(&["undo", "--patch", "--yes", "--color", "always"], "s\nn\ny\n");
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("(1/1) Undo this change in a [y,n,q,a,d,s,?]? "), "{screen}");
    assert!(screen.contains("(2/2) Undo this change in a [y,n,q,a,d,?]? "), "{screen}");
    assert!(screen.contains("\u{1b}[31m-changed 5"), "{screen}");
    assert_eq!(scene.read("a"), lines(&[3]));
}

#[test]
fn a_moved_file_is_asked_about_once() {
    let scene = Scene::new(PITON);
    scene.world.write("f", lines(&[])).write("other", "1\n");
    scene.capture();
    let agent = Agent::new(&scene.world, "run-1");
    agent.runs("move", "mv f g; sed -i s/1/2/ other; sed -i 's/line 2/changed 2/' g", |world| {
        world.rename("f", "g").write("g", lines(&[2])).write("other", "2\n");
    });
    let (screen, code) = scene.at_a_terminal(&["undo", "--patch", "--yes"], "n\ny\n");
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("move from g\nmove to f\n") && screen.contains("-changed 2\n+line 2\n"), "{screen}");
    assert!(screen.contains("(1/2) Move g to f ["), "{screen}");
    assert!(scene.world.has("g") && !scene.world.has("f"));
    assert_eq!(scene.read("other"), "1\n");
}

#[test]
fn without_a_terminal_it_says_what_does_the_same() {
    let scene = one_turn();
    let before = scene.world.snapshot();
    for words in [&["undo", "--patch"][..], &["undo", "--patch", "--yes"], &["rewind", "t1", "-p"]] {
        let said = scene.fails(words);
        for part in ["no terminal to ask at", "--preview --diff", "--except PATH"] {
            assert!(said.contains(part), "{words:?}: {said}");
        }
    }
    let refused = both(&scene.run(&["undo", "--patch", "--preview"]));
    assert!(refused.contains("--preview"), "{refused}");
    scene.world.assert_is(&before);
}
