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
    ("testkit", &["engine", "agents", "host", "store"]),
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

/// What only Linux has, or has under this name. Another system is to be one more file in `host/src/sys`.
const LINUX_ONLY: [&str; 18] = [
    "openat2",
    "renameat_with",
    "renameat2",
    "RenameFlags",
    "RESOLVE_",
    "statx",
    "syncfs",
    "\"/proc",
    "OFlags::PATH",
    "NOATIME",
    "TMPFILE",
    "RawDir",
    "sched_",
    "fstatfs",
    "xattr",
    "fadvise",
    "sync_file_range",
    "close_range",
];

#[test]
fn what_is_the_systems_own_is_in_one_folder() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sys = crates.join("host/src/sys");
    let mut folders: Vec<_> =
        ROOMS.iter().filter(|(room, _)| *room != "testkit").map(|(room, _)| crates.join(room).join("src")).collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.extend((path != sys).then_some(path));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let used = LINUX_ONLY.iter().filter(|name| code.contains(**name));
                found.extend(used.map(|name| format!("{}:{}: {name}", path.display(), number + 1)));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
