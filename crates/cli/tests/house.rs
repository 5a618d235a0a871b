//! The rooms of the house depend on each other in one direction.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

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
    let mut found = Vec::new();
    for (room, _) in ROOMS.iter().filter(|(room, _)| *room != "testkit") {
        for (path, text) in sources(room).into_iter().filter(|(path, _)| !path.starts_with(&sys)) {
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let used = LINUX_ONLY.iter().filter(|name| code.contains(**name));
                found.extend(used.map(|name| format!("{}:{}: {name}", path.display(), number + 1)));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Names of agents. They belong to their adapters: a room that knows one of them by name has to be changed for every other.
const AGENTS: [&str; 7] = ["claude", "codex", "gemini", "opencode", "copilot", "cursor-agent", "cline\""];

#[test]
fn agents_are_known_by_name_to_their_adapters_alone() {
    let mut found = Vec::new();
    for room in ["model", "host", "store", "engine", "cli"] {
        for (path, text) in sources(room) {
            // Tests play sessions of real agents.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate() {
                let line = line.split("//").next().unwrap_or_default().to_lowercase();
                let named = AGENTS.iter().filter(|name| line.contains(**name));
                found.extend(named.map(|name| format!("{}:{}: {name}", path.display(), number + 1)));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Every source file of a room, with its text.
fn sources(room: &str) -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut folders, mut files) = (vec![crates.join(room).join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files
}
