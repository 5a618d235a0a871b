//! A damaged object in the store, at the command line.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use piton_testkit::{Scene, both};

#[test]
fn what_is_damaged_is_named_and_partial_does_the_rest_and_ends_in_1() {
    let scene = Scene::new(env!("CARGO_BIN_EXE_piton"));
    scene.world.write("a", "first content of a").write("b", "first content of b");
    scene.ok(&["checkpoint", "before"]);
    scene.world.write("a", "2").write("b", "2");
    let pack = scene.world.open().store_folder().join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(18).position(|window| window == b"first content of a").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&pack, bytes).unwrap();

    let refused = scene.run(&["rewind", "before", "--yes"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = both(&refused);
    assert!(said.contains("`a` is damaged in piton's store") && said.contains("--partial"), "{said}");
    assert_eq!((&scene.read("a")[..], &scene.read("b")[..]), ("2", "2"));

    let done = scene.run(&["rewind", "before", "--yes", "--partial"]);
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
    assert!(both(&done).contains("damaged"), "{}", both(&done));
    assert_eq!((&scene.read("a")[..], &scene.read("b")[..]), ("2", "first content of b"));
}
