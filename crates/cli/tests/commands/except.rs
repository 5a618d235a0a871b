//! `--except` as a person and a script see it.

use piton_testkit::{Agent, Scene};

use crate::PITON;

#[test]
fn a_path_is_left_out_of_a_rewind_an_undo_and_a_redo() {
    let scene = Scene::new(PITON);
    let agent = Agent::new(&scene.world, "run-1");
    scene.world.write("a", "1\n").write("d/b", "1\n");
    agent.edits("both", &["a", "d/b"], |world| {
        world.write("a", "2\n").write("d/b", "2\n");
    });
    for (verb, target) in [("rewind", Some("t1")), ("undo", Some("t1"))] {
        let words: Vec<&str> = [verb].into_iter().chain(target).collect();
        let with = |more: &[&'static str]| words.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
        let plan = scene.ok(&with(&["--except", "d", "--preview"]));
        assert!(plan.contains("restore  a") && plan.contains("Left as it is, as you asked:\n  d\n"), "{plan}");
        assert!(!plan.contains("restore  d/b"), "{plan}");
        // From a subfolder, by a path of there.
        let (code, said) = scene.run_in(&scene.world.path("d"), &with(&["--except", "b", "--yes"]));
        assert!(code == Some(0) && said.contains("left as it is, as you asked:\n  d/b"), "{said}");
        assert_eq!((scene.read("a"), scene.read("d/b")), ("1\n".to_owned(), "2\n".to_owned()));
        let redone = scene.told(&["redo", "--yes", "--except", "a"]);
        assert!(redone.contains("nothing to do: you chose to leave all of it as it is"), "{redone}");
        scene.ok(&["redo", "--yes"]);
        assert_eq!((scene.read("a"), scene.read("d/b")), ("2\n".to_owned(), "2\n".to_owned()));
        let refused = scene.fails(&with(&["--except", "nowhere", "--yes"]));
        assert!(refused.contains("this would not change `nowhere`") && refused.contains("--preview"), "{refused}");
    }
    let json = scene.ok(&["undo", "t1", "--except", "a", "--preview", "--json"]);
    assert!(json.contains("\"excepted\"") && json.contains("\"fingerprint\""), "{json}");
}
