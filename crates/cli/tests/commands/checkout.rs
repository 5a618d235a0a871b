//! `piton checkout` as a person and a script see it.

use piton_testkit::{Scene, both};

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::with_a_home(PITON);
    scene.world.write("a.txt", "one\n").write(".gitignore", "node_modules\n").write("node_modules/m.js", "");
    scene.ok(&["checkpoint", "first"]);
    scene.world.write("a.txt", "two\n");
    scene
}

#[test]
fn it_says_where_the_files_are_and_what_is_not_there() {
    let scene = scene();
    let folder = scene.at("out");
    // A relative folder begins where the command is typed.
    let done = scene.run(&["checkout", "first", "../out"]);
    assert_eq!(done.status.code(), Some(0), "{}", both(&done));
    let said = both(&done);
    assert!(
        said.starts_with("first (") && said.contains(&format!(") is in {}; verified\n", folder.display())),
        "{said}"
    );
    assert!(said.contains("not there, because not captured") && said.contains("  node_modules (ignored)"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "one\n");
    assert_eq!(scene.read("a.txt"), "two\n");
    assert!(scene.ok(&["ops"]).contains(&format!("checkout of first to {}", folder.display())));
    assert!(!scene.ok(&["log"]).contains("checkout"), "nothing happened here");
    let document = scene.json(&["checkout", "first", "../two"]);
    assert_eq!(document["checkpoint"]["name"], "first");
    assert_eq!((&document["verified"], &document["skipped"][0]["path"]), (&true.into(), &"node_modules".into()));
    assert_eq!(document["operation"]["kind"], "checkout");
}

#[test]
fn a_folder_that_cannot_be_had_is_refused_with_a_way_out() {
    let scene = scene();
    std::fs::create_dir(scene.at("full")).unwrap();
    std::fs::write(scene.at("full/mine"), "mine").unwrap();
    for (args, message, hint) in [
        (
            &["checkout", "first", "../full"][..],
            "something is in that folder; nothing was made",
            "empty or does not exist",
        ),
        (&["checkout", "first", "out"], "is inside the workspace", "--inside"),
        (&["checkout", "first", "../none/out"], "the folder around it is not there", ""),
        (&["checkout", "nosuch", "../out"], "there is no checkpoint `nosuch`", "piton log"),
        (&["checkout", "@", "../out"], "not a checkpoint", ""),
        (&["checkout", "first"], "needs DIR", "<DIR>"),
    ] {
        let said = scene.fails(args);
        assert!(said.contains(message) && said.contains(hint), "{args:?}: {said}");
    }
    assert!(!scene.at("out").exists() && !scene.world.path("out").exists());
    scene.ok(&["checkout", "first", "out", "--inside"]);
    assert_eq!(scene.read("out/a.txt"), "one\n");
}

#[test]
fn an_empty_folder_that_somebody_stands_in_is_exchanged_and_they_are_told() {
    let scene = scene();
    std::fs::create_dir(scene.at("out")).unwrap();
    let mut command = scene.piton(&["checkout", "first", "."]);
    command.arg("--workspace").arg(scene.world.ws()).current_dir(scene.at("out"));
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", both(&done));
    assert!(both(&done).contains("still in the empty folder"), "{}", both(&done));
    assert_eq!(std::fs::read_to_string(scene.at("out/a.txt")).unwrap(), "one\n");
}
