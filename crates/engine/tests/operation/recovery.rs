//! What somebody does between a crash and the next command, and what is then said of the files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use piton_engine::model::WorkspacePath;
use piton_engine::view::OperationStatus;
use piton_engine::{RedoOptions, RewindOptions, UndoOptions, Workspace};
use piton_host::fail;
use piton_testkit::{Agent, World, as_ordinary_user};
use rusqlite::Connection;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const OUTSIDE: [&str; 2] = ["o1/f", "o2/g"];

/// Files that are replaced, one that goes and one that comes back, in a rewind that dies at its Nth swap.
fn cut_off(nth: u64) -> (World, String) {
    let world = World::new();
    for name in NAMES {
        world.write(name, format!("{name} one\n"));
    }
    world.write("gone", "gone one\n");
    let id = world.capture();
    for name in NAMES {
        world.write(name, format!("{name} two\n"));
    }
    world.remove("gone").write("new/q", "new two\n");
    let rewind = || world.open().rewind_now(&id, &RewindOptions::default());
    dies(nth, || drop(rewind()));
    (world, id)
}

fn dies(nth: u64, act: impl FnOnce()) {
    let act = || fail::when(nth, "apply:swap", || panic!("cut off"), act);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err());
}

/// Every file beneath a folder, staged ones too.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found.sort();
    found
}

fn contents(world: &World) -> Vec<(String, String)> {
    let name = |path: &PathBuf| path.strip_prefix(world.ws()).unwrap().display().to_string();
    files(&world.ws()).iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// It left a mix of old and new, and said that the files are as before it.
#[test]
fn a_change_of_bits_everywhere_leaves_the_old_or_the_new_contents() {
    for nth in 1..=6 {
        let (world, _) = cut_off(nth);
        for path in files(&world.ws()) {
            let mode = path.metadata().unwrap().permissions().mode();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode | 0o020)).unwrap();
        }
        let workspace = world.open();
        let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
        assert!(!said.mixed && said.left_alone.is_empty(), "{nth}: {said:?}");
        let two = |name: &&str| (name.to_string(), format!("{name} two\n"));
        let mut expected: Vec<_> = NAMES.iter().map(two).collect();
        expected.push(("new/q".into(), "new two\n".into()));
        assert_eq!(contents(&world), expected, "died at swap {nth}");
        for path in files(&world.ws()) {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o020, 0o020, "{}", path.display());
        }
    }
}

#[test]
fn a_change_of_one_files_bits_stays_when_its_content_goes_back() {
    let (world, _) = cut_off(6);
    let swapped = NAMES.iter().find(|name| world.read(name).contains("one")).unwrap();
    world.mode(swapped, 0o755);
    drop(world.open());
    assert!(world.read(swapped).contains("two"));
    assert_eq!(world.path(swapped).metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

/// Some were recreated and others left, and all were called as before it.
#[test]
fn where_nothing_tells_the_old_from_the_new_nothing_is_put_back_and_that_is_said() {
    let (world, _) = cut_off(4);
    for path in files(&world.ws()) {
        let content = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("// licence\n{content}")).unwrap();
    }
    let here: Vec<_> = contents(&world).into_iter().filter(|(name, _)| !name.contains(".piton-")).collect();
    let workspace = world.open();
    let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
    assert!(said.mixed && !said.finished);
    let before = said.before.to_string();
    for name in NAMES {
        assert!(said.left_alone.iter().any(|path| path.path == name), "{name}: {said:?}");
    }
    drop(workspace);
    assert_eq!(contents(&world), here);
    assert_eq!(world.open().operations().unwrap().operations[0].state, OperationStatus::GivenUp);
    world.rewind(&before);
    NAMES.iter().for_each(|name| assert_eq!(world.read(name), format!("{name} two\n")));
}

/// Nothing ever ended it, and its files in the copy were neither captured nor listed.
#[test]
fn an_operation_whose_folder_was_replaced_ends_once_the_other_is_captured() {
    let (world, _) = cut_off(3);
    let copy = world.base().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for path in files(&world.ws()) {
        let to = copy.join(path.strip_prefix(world.ws()).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(path, to).unwrap();
    }
    std::fs::remove_dir_all(world.ws()).unwrap();
    std::fs::rename(copy, world.ws()).unwrap();
    let mut workspace = world.open();
    assert!(workspace.recovered().is_empty());
    let captured = workspace.capture(&Default::default()).unwrap();
    let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
    assert!(said.replaced);
    assert!(workspace.status().unwrap().pending.is_empty());
    let id = captured.checkpoint.checkpoint.id.to_string();
    let files = contents(&world).len() as u64;
    assert_eq!(
        workspace.show(&id).unwrap().checkpoint.checkpoint.changes.created,
        files,
        "its own names are captured there"
    );
    drop(workspace);
    assert!(world.open().recovered().is_empty());
}

/// It had been given up while another folder stood there, and its own one kept a mix of old and new without a word.
#[test]
fn an_operation_whose_own_folder_comes_back_is_ended_there() {
    for (nth, acts) in [(3, "nothing"), (3, "capture"), (3, "event"), (3, "rewind"), (6, "capture")] {
        let (world, id) = cut_off(nth);
        let elsewhere = world.base().join("far/away");
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::fs::rename(world.ws(), elsewhere.join("own")).unwrap();
        world.folder("").write("other", "another folder's\n");
        let mut workspace = world.open();
        workspace.capture(&Default::default()).unwrap();
        let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
        assert!(said.replaced);
        // It does not go by what is done meanwhile.
        world.write("other", "changed\n");
        let other = asked_back(&mut workspace);
        assert_eq!(world.read("other"), "another folder's\n", "{other}");
        drop(workspace);
        std::fs::rename(world.ws(), elsewhere.join("other")).unwrap();
        std::fs::rename(elsewhere.join("own"), world.ws()).unwrap();
        world.write("since", "my own\n");
        if acts == "event" {
            Agent::new(&world, "s").prompt("go on");
        }
        let mut workspace = world.open();
        match acts {
            // Who only looks ends it too.
            "nothing" | "event" => {}
            "capture" => drop(workspace.capture(&Default::default()).unwrap()),
            _ => {
                let paths = vec![WorkspacePath::new("a").unwrap()];
                let options = RewindOptions { paths, ..RewindOptions::default() };
                drop(workspace.rewind_now(&id, &options).unwrap());
                workspace.redo_now(&RedoOptions::default()).unwrap();
            }
        }
        if acts != "event" {
            let [said] = workspace.recovered() else { panic!("{acts}: {:?}", workspace.recovered()) };
            assert!(!said.finished && said.left_alone.is_empty() && !said.replaced, "{acts}: {said:?}");
        }
        drop(workspace);
        let mut expected: Vec<_> = NAMES.iter().map(|name| ((*name).to_owned(), format!("{name} two\n"))).collect();
        expected.push(("new/q".to_owned(), "new two\n".to_owned()));
        expected.push(("since".to_owned(), "my own\n".to_owned()));
        assert_eq!(contents(&world), expected, "{acts}");
        let mut workspace = world.open();
        assert!(workspace.recovered().is_empty(), "it is ended once");
        let operations = workspace.operations().unwrap().operations;
        assert_eq!(operations.last().unwrap().state, OperationStatus::RolledBack);
        // None of its own files was captured on the way.
        let view = piton_store::database_file(workspace.store_folder()).unwrap();
        let sql = "SELECT count(*) FROM changes WHERE CAST(path AS TEXT) LIKE '%.piton-%'";
        let captured: i64 = Connection::open(view).unwrap().query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(captured, 0);
        workspace.capture(&Default::default()).unwrap();
    }
}

/// A change in the folder that stands there is taken back, by an operation of its own.
fn asked_back(workspace: &mut Workspace) -> String {
    let id = workspace.status().unwrap().last.unwrap().id.to_string();
    workspace.rewind_now(&id, &RewindOptions::default()).unwrap();
    id
}

/// An undo that dies between the swaps of two files outside; with the folder of the one that was swapped.
fn cut_off_outside() -> (World, PathBuf) {
    let world = World::new();
    let at = |name: &str| world.base().join(name);
    for name in OUTSIDE {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        std::fs::write(at(name), "before\n").unwrap();
    }
    world.write("a", "before\n");
    let named: Vec<String> = OUTSIDE.iter().map(|name| at(name).display().to_string()).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).chain(["a"]).collect();
    Agent::new(&world, "s").edits("go", &named, |w| {
        w.write("a", "agent\n");
        OUTSIDE.iter().for_each(|name| std::fs::write(at(name), "agent\n").unwrap());
    });
    let undo = UndoOptions { outside: true, ..UndoOptions::default() };
    dies(3, || drop(world.open().undo_now(&undo)));
    let swapped = OUTSIDE.iter().find(|name| std::fs::read(at(name)).unwrap() == b"before\n");
    let folder = at(swapped.expect("one of the two was swapped")).parent().unwrap().to_owned();
    (world, folder)
}

fn assert_put_back_outside(world: &World) {
    for name in OUTSIDE {
        let path = world.base().join(name);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "agent\n");
        assert_eq!(files(path.parent().unwrap()), [path], "nothing of piton's is left");
    }
}

/// It said that somebody had changed the file, and never tried again.
#[test]
fn a_file_outside_that_cannot_be_looked_at_is_put_back_later() {
    as_ordinary_user(|| {
        let (world, folder) = cut_off_outside();
        let mode = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0);
        let workspace = world.open();
        let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
        let [waits] = &said.waits_outside[..] else { panic!("{said:?}") };
        assert!(waits.path.path.starts_with(folder.to_str().unwrap()) && waits.why.contains("ermission"), "{waits:?}");
        assert!(said.left_outside.is_empty(), "{said:?}");
        drop(workspace);
        mode(0o755);
        drop(world.open());
        assert_put_back_outside(&world);
    });
}

/// The file outside stayed at the new end while all others went back.
#[test]
fn a_file_outside_goes_back_from_the_store_where_what_was_beside_it_is_removed() {
    let (world, folder) = cut_off_outside();
    for path in files(&folder).into_iter().filter(|path| path.to_string_lossy().contains(".piton-")) {
        std::fs::remove_file(path).unwrap();
    }
    let workspace = world.open();
    let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
    assert!(!said.finished && said.left_outside.is_empty(), "{said:?}");
    assert_put_back_outside(&world);
}

/// Every command failed, without a word of the files.
#[test]
fn whoever_reads_is_told_where_the_home_does_not_let_it_be_ended() {
    as_ordinary_user(|| {
        let (world, _) = cut_off(3);
        let store = world.base().join("home/workspaces").read_dir().unwrap().next().unwrap().unwrap().path();
        let lock = store.join("lock");
        std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o400)).unwrap();
        let workspace = world.open();
        let said = workspace.unended().expect("it is told").to_string();
        assert!(said.contains("half changed"), "{said}");
        assert_eq!(workspace.status().unwrap().pending.len(), 1);
        workspace.log(Default::default()).unwrap();
        drop(workspace);
        std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(world.open().unended().is_none());
    });
}

/// Every command waited for ever.
#[test]
fn a_pipe_in_the_place_of_a_note_holds_nobody_up() {
    let (world, id) = cut_off(3);
    let store = world.base().join("home/workspaces").read_dir().unwrap().next().unwrap().unwrap().path();
    for name in ["leftovers", "reopened", "progress"] {
        let path = store.join(name);
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
    }
    drop(world.open());
    world.rewind(&id);
    assert_eq!(world.read("a"), "a one\n");
}

/// A crash and its recovery are nobody's edits.
#[test]
fn what_a_recovery_found_and_put_back_is_not_the_users() {
    let world = World::new();
    world.write("a", "a\n").write("b", "b\n");
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["a", "b"], |world| {
        world.write("a", "one\n").write("b", "one\n");
    });
    let before = world.snapshot();
    for nth in 1.. {
        if fail::with(nth, || world.open().rewind_now("t1", &RewindOptions::default()).unwrap()).is_some() {
            break;
        }
        let was_finished = world.open().recovered().iter().any(|one| one.finished);
        if was_finished || world.snapshot() != before {
            world.open().redo_now(&RedoOptions::default()).unwrap();
        }
        world.capture();
        let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
        assert!(plan.view().others.is_empty(), "point {nth}: {:?}", plan.view().others);
    }
}
