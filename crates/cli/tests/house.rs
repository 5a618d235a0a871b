//! The rooms of the house depend on each other in one direction.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

/// Every room with the rooms that it may use, tests apart.
const ROOMS: [(&str, &[&str]); 8] = [
    ("model", &[]),
    ("agents", &["model"]),
    ("host", &["model"]),
    ("store", &["model", "host"]),
    ("engine", &["model", "agents", "host", "store"]),
    ("wording", &["engine"]),
    ("cli", &["engine", "agents", "wording"]),
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
const LINUX_ONLY: [&str; 19] = [
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
    "inotify",
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
    for room in ["model", "host", "store", "engine", "wording", "cli"] {
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

/// What a room does that prints, or looks at the machine it runs on.
const IMPURE: [&str; 7] = ["std::env", "std::fs", "println!", "std::process", "stdout()", "stderr()", "stdin()"];

#[test]
fn what_people_read_is_made_of_values_alone() {
    for (path, text) in sources("wording") {
        for (number, line) in text.lines().enumerate() {
            let found = IMPURE.iter().find(|name| line.split("//").next().unwrap_or_default().contains(**name));
            assert!(found.is_none(), "{}:{}: {found:?}", path.display(), number + 1);
        }
    }
}

#[test]
fn every_command_that_a_text_names_is_one() {
    let mut names = std::collections::BTreeSet::new();
    for (_, text) in ["wording", "cli"].into_iter().flat_map(sources) {
        let calls = text.split("call(\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
        names.extend(calls);
    }
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let help = std::process::Command::new(env!("CARGO_BIN_EXE_piton")).args(["help", &name]).output().unwrap();
        assert!(help.status.success(), "{name}");
    }
}

/// The folders of `engine/src`, each of which may use those before it and none after it: so no two of them need each other.
const FOLDERS: [&str; 8] =
    ["view", "workspace", "capture", "history", "observe", "conversation", "operation", "archive"];

#[test]
fn folders_of_the_engine_use_each_other_in_one_direction() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("engine/src");
    let place = |folder: &str| FOLDERS.iter().position(|one| *one == folder);
    let mut found = Vec::new();
    for (path, text) in sources("engine") {
        let path = path.strip_prefix(&src).unwrap().with_extension("");
        let folder = path.iter().next().unwrap().to_str().unwrap();
        if folder == "lib" {
            continue;
        }
        let own = place(folder).unwrap_or_else(|| panic!("{folder}: a folder that this test does not know"));
        let depth = path.iter().count();
        for (number, used) in imports(&text, depth) {
            // What is re-exported at the root has a folder of its own, and goes by that name.
            let is_upward = place(used.split("::").next().unwrap()).is_none_or(|used| used > own);
            if is_upward {
                found.push(format!("{}.rs:{number}: {folder} uses {used}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "the order is {}, and these go against it: {found:#?}", FOLDERS.join(", "));
}

#[test]
fn an_import_is_seen_however_it_is_written() {
    let text = "use crate::view::{A, B};\nuse crate::{\n    capture::sink::{C, D},\n    E,\n};\n// crate::no::Matter\n\
        pub(crate) fn f() -> super::super::archive::G { super::h() }\n#[cfg(test)]\nuse crate::tests::Apart;\n";
    let found = imports(text, 2);
    let expected = [(1, "view::"), (2, "capture::sink::"), (2, "E"), (7, "archive::G")];
    assert_eq!(found, expected.map(|(number, used)| (number, used.to_owned())));
}

/// What a file of a crate uses by its path from the crate's root, with the line that it stands in, tests apart. `depth` is how
/// many modules deep the file is.
fn imports(text: &str, depth: usize) -> Vec<(usize, String)> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n").replace(&"super::".repeat(depth), "crate::");
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let path_at = |text: &str| text.trim_start().split(|c| !is_of_path(c)).next().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for (at, root) in code.match_indices("crate::") {
        let (number, rest) = (code[..at].matches('\n').count() + 1, &code[at + root.len()..]);
        let Some(list) = rest.strip_prefix('{') else {
            found.push((number, path_at(rest)));
            continue;
        };
        let (mut open, mut begins) = (0, true);
        for (at, c) in list.char_indices() {
            match c {
                '{' => open += 1,
                '}' if open == 0 => break,
                '}' => open -= 1,
                ',' if open == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    found.push((number, path_at(&list[at..])));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// Rust says nothing of a file that no program names: its tests would never run.
#[test]
fn every_test_file_is_part_of_a_program_which_alone_says_what_tests_may_do() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for (room, _) in ROOMS.iter().filter(|(room, _)| crates.join(room).join("tests").exists()) {
        let tests = files(room, "tests");
        for (path, text) in &tests {
            let main = path.with_file_name("main.rs");
            let Some((_, program)) = tests.iter().find(|(path, _)| *path == main) else { continue };
            let module = format!("mod {};", path.file_stem().unwrap().to_str().unwrap());
            if *path != main && !program.lines().any(|line| line == module) {
                found.push(format!("{}: {module} is missing", main.display()));
            }
            if *path != main && text.contains("#![allow(clippy::") {
                found.push(format!("{}: that is said in {}", path.display(), main.display()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Where paths in documents begin: at the top, in a room, or in the engine.
const BASES: [&str; 3] = ["", "crates", "crates/engine/src"];

#[test]
fn every_path_that_a_document_names_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let top = crates.parent().unwrap();
    let mut documents = vec![top.join("ARCHITECTURE.md"), top.join("GLOSSARY.md"), top.join("README.md")];
    documents.extend(std::fs::read_dir(top.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let folders = ROOMS.iter().flat_map(|(room, _)| [(room, "src"), (room, "tests")]);
    let folders = folders.filter(|(room, folder)| crates.join(room).join(folder).exists());
    let sources = folders.flat_map(|(room, folder)| files(room, folder));
    let names = sources.map(|(path, _)| path.file_name().unwrap().to_str().unwrap().to_owned());
    let names: std::collections::BTreeSet<_> = names.collect();
    let (mut count, mut found) = (0, Vec::new());
    for document in documents.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let text = std::fs::read_to_string(document).unwrap();
        let folder = document.parent().unwrap();
        for (number, line) in text.lines().enumerate() {
            let (paths, links) = (paths_in(line), links_in(line));
            count += paths.len() + links.len();
            let is_there = |path: &&str| match path.contains('/') {
                true => BASES.iter().any(|base| top.join(base).join(path).exists()),
                false => names.contains(*path),
            };
            let missing = paths.into_iter().filter(|path| !is_there(path));
            let missing = missing.chain(links.into_iter().filter(|link| !folder.join(link).exists()));
            found.extend(missing.map(|path| format!("{}:{}: {path}", document.display(), number + 1)));
        }
    }
    assert!(count > 100, "only {count} paths were seen");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_path_in_a_document_is_told_from_other_words() {
    let line = "`model/src/plan.rs` and `host/src/sys/`, [here](docs/a.md#part), `house.rs`, `/piton`, `.git/info/`, \
        `<home>/trash/`, `aside/`, `a b.rs`, [there](https://example.org/a.md)";
    assert_eq!(paths_in(line), ["model/src/plan.rs", "host/src/sys/", "house.rs"]);
    assert_eq!(links_in(line), ["docs/a.md"]);
}

/// The source files and folders that a line of a document names.
fn paths_in(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let is_of_path = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let is_ours = |word: &&str| word.starts_with(|c: char| c.is_alphanumeric()) && word.chars().all(is_of_path);
    let is_path = |word: &&str| word.ends_with(".rs") || (word.ends_with('/') && word.contains("/src/"));
    quoted.filter(is_ours).filter(is_path).collect()
}

/// The files of this repository that a line of a document links to.
fn links_in(line: &str) -> Vec<&str> {
    let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    links.filter(|link| !link.is_empty() && !link.contains("://")).collect()
}

/// Every source file of a room, with its text.
fn sources(room: &str) -> Vec<(PathBuf, String)> {
    files(room, "src")
}

/// Every Rust file in a folder of a room, with its text.
fn files(room: &str, folder: &str) -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut folders, mut files) = (vec![crates.join(room).join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files
}
