//! The rooms of the house depend on each other in one direction.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]

use std::path::Path;

/// Every room with the rooms that it may use, tests apart.
const ROOMS: [(&str, &[&str]); 7] = [
    ("model", &[]),
    ("agents", &["model"]),
    ("host", &["model"]),
    ("store", &["model", "host"]),
    ("engine", &["model", "agents", "host", "store"]),
    ("cli", &["engine", "agents"]),
    ("testkit", &["engine", "agents", "host"]),
];

#[test]
fn a_room_knows_the_rooms_to_its_left_and_none_to_its_right() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (room, allowed) in ROOMS {
        let manifest = std::fs::read_to_string(crates.join(room).join("Cargo.toml")).unwrap();
        let normal = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
        for line in normal.lines().filter(|l| l.starts_with("piton-")) {
            let used = line["piton-".len()..].split(['.', ' ']).next().unwrap();
            assert!(allowed.contains(&used), "{room} uses {used}");
        }
    }
    let found = std::fs::read_dir(crates).unwrap().count();
    assert_eq!(found, ROOMS.len(), "a room that this test does not know");
}
