//! Rules and settings that change under a session: the user's own word holds at once, an agent's waits for the user's.

use std::time::Duration;

use piton_engine::model::WorkspacePath;
use piton_engine::model::event::Event;
use piton_engine::model::settings::{Layer, read};
use piton_engine::view::Waiting;
use piton_engine::{Carry, InForce, RedoOptions, RewindOptions, UndoOptions};
use piton_host::fail;
use piton_testkit::{Agent, World, as_ordinary_user, git};

/// A project with data that is captured.
fn world() -> World {
    let world = World::new();
    world.write("src/main.rs", "main").write("data/a.csv", "a").write("data/b.csv", "b").write(".gitignore", "*.log\n");
    world
}

/// An agent with a turn behind it in which nothing happened.
fn an_agent(world: &World) -> Agent<'_> {
    let agent = Agent::new(world, "s");
    agent.prompt("begin");
    agent.end_turn();
    agent
}

/// An agent whose first turn wrote these rules.
fn an_agent_that_ignores<'w>(world: &'w World, rules: &str) -> Agent<'w> {
    let agent = Agent::new(world, "s");
    agent.edits("ignore the data", &[".gitignore"], |world| {
        world.write(".gitignore", rules);
    });
    agent
}

/// Ends a chain of writing.
fn done(_: &World) {}

/// So that nobody's edit is as old as the window of a tool that has just ended.
fn later() {
    std::thread::sleep(Duration::from_millis(80));
}

/// So that nothing made before counts as younger than the next checkpoint.
fn later_than_doubt() {
    std::thread::sleep(Duration::from_millis(2_200));
}

fn paths(waiting: &Waiting) -> Vec<String> {
    waiting.paths.iter().map(|held| held.path.path.clone()).collect()
}

fn waiting(world: &World) -> Vec<String> {
    paths(&world.open().waiting_now().unwrap())
}

/// The paths that a capture skips now.
fn skipped(world: &World) -> Vec<String> {
    world.captured().checkpoint.skipped.iter().map(|s| s.path.path.clone()).collect()
}

/// What waits for the user's word, and what a capture skips.
#[track_caller]
fn assert_rules(world: &World, waits: &[&str], skips: &[&str]) {
    let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    assert_eq!((waiting(world), skipped(world)), (owned(waits), owned(skips)));
}

/// Removes what is made anew from the packs: the files of the store whose names begin so.
fn forget(world: &World, names: &[&str]) {
    let store = world.open().store_folder().to_owned();
    for path in std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if names.iter().any(|one| name.starts_with(one)) {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// The user edits a file that an agent's rule would leave out, and the agent deletes it: the edit comes back.
#[track_caller]
fn assert_protected(world: &World, agent: &Agent<'_>) {
    later();
    world.write("data/b.csv", "edited by the user");
    agent.prompt("clean up");
    agent.step("Bash", &[], |world| {
        world.remove("data");
    });
    agent.end_turn();
    let turn = agent.turns().last().unwrap().number;
    world.rewind(&format!("t{turn}"));
    assert_eq!(world.snapshot().bytes("data/b.csv"), Some(&b"edited by the user"[..]));
    world.assert_sound();
}

#[test]
fn what_an_agent_begins_to_ignore_stays_captured_until_the_user_agrees() {
    let world = world();
    let agent = an_agent_that_ignores(&world, "*.log\ndata/\n");
    let told = agent.prompt("go on").waiting;
    assert_eq!(paths(&told), ["data"]);
    assert_eq!(told.paths[0].rules, [".gitignore"]);
    assert_eq!(told.paths[0].owner.turn().unwrap().1, 1);
    assert_protected(&world, &agent);
    assert_eq!(waiting(&world), ["data"]);

    let accepted = world.open().accept_rules().unwrap();
    assert_eq!(paths(&accepted.agreed), ["data"]);
    assert!(accepted.checkpoint.is_some());
    assert_eq!(waiting(&world), [""; 0]);
    assert_eq!(skipped(&world), ["data"]);
    assert!(agent.prompt("and now").waiting.is_empty());
    assert!(world.open().accept_rules().unwrap().checkpoint.is_none());
}

#[test]
fn a_shell_that_writes_rules_is_an_agents_word_too_wherever_it_writes_them() {
    for file in [".gitignore", ".pitonignore", ".git/info/exclude", "data/.gitignore"] {
        let world = world();
        git(&world.ws(), &["init", "-q"]);
        let agent = an_agent(&world);
        agent.runs("hide it", "gen", |world| {
            world.write(file, if file.starts_with("data") { "*\n!sub/\n" } else { "/data\n" });
            if file.starts_with("data") {
                world.write(".pitonignore", "b.csv\n");
            }
        });
        assert_ne!(waiting(&world), [""; 0], "{file}");
        assert_protected(&world, &agent);
    }
}

#[test]
fn settings_of_gits_that_name_other_excludes_are_rules_too() {
    let base = tempfile::tempdir().unwrap();
    let (settings, excludes) = (base.path().join("gitconfig"), base.path().join("excludes"));
    std::fs::write(&excludes, "data/\n").unwrap();
    std::fs::write(&settings, "").unwrap();
    let world = World::at(base.path(), |environment| environment.git_config.files = vec![settings.clone()]);
    world.write("data/b.csv", "b").write("src/main.rs", "main");
    let agent = Agent::new(&world, "s");
    agent.runs("hide it", "git config --global", |_| {
        std::fs::write(&settings, format!("[core]\nexcludesFile = {}\n", excludes.display())).unwrap();
    });
    assert_eq!(waiting(&world), ["data"]);
    assert_protected(&world, &agent);
}

#[test]
fn excludes_that_are_a_symlink_change_where_it_leads_to() {
    let base = tempfile::tempdir().unwrap();
    let (link, dot) = (base.path().join("ignore"), base.path().join("dot"));
    std::fs::write(&dot, "*.log\n").unwrap();
    std::os::unix::fs::symlink("dot", &link).unwrap();
    let world = World::at(base.path(), |environment| environment.global_excludes = Some(link.clone()));
    world.write("data/b.csv", "b").write("src/main.rs", "main");
    later_than_doubt();
    let agent = an_agent(&world);
    later();
    agent.runs("hide it", "gen", |_| std::fs::write(&dot, "*.log\ndata/\n").unwrap());
    assert_eq!(waiting(&world), ["data"]);
    assert_protected(&world, &agent);
}

#[test]
fn settings_of_gits_that_others_include_are_rules_too() {
    for way in ["include", "worktree"] {
        let world = world();
        git(&world.ws(), &["init", "-q"]);
        let excludes = world.base().join("ex");
        std::fs::write(&excludes, "data/\n").unwrap();
        let included = world.base().join("inc");
        std::fs::write(&included, "").unwrap();
        let file = match way {
            "include" => included.clone(),
            _ => world.path(".git/config.worktree"),
        };
        git(&world.ws(), &["config", "include.path", &included.to_string_lossy()]);
        git(&world.ws(), &["config", "extensions.worktreeConfig", "true"]);
        later_than_doubt();
        let agent = an_agent(&world);
        later();
        agent.runs("hide it", "git config", |_| {
            std::fs::write(&file, format!("[core]\nexcludesFile = {}\n", excludes.display())).unwrap();
        });
        assert_eq!(waiting(&world), ["data"], "{way}");
        assert_protected(&world, &agent);
    }
}

#[test]
fn a_rule_for_everything_hides_nothing() {
    let world = world();
    let agent = an_agent(&world);
    agent.runs("hide all", "gen", |world| {
        world.write(".pitonignore", "*\n");
    });
    assert_eq!(waiting(&world), [".gitignore", "data", "src"]);
    assert_protected(&world, &agent);
}

#[test]
fn what_the_user_changes_holds_at_once() {
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.edits("work", &["src/main.rs"], |world| {
        world.write("src/main.rs", "more");
    });
    later();
    world.write(".gitignore", "data/\n");
    assert!(agent.prompt("go on").waiting.is_empty());
    assert_eq!(skipped(&world), ["data"]);
    // Between two tools of a turn as well.
    world.write("logs/l", "l");
    agent.step("Edit", &["src/main.rs"], |world| {
        world.write("src/main.rs", "and more");
    });
    later();
    world.write(".gitignore", "data/\nlogs/\n");
    agent.step("Edit", &["src/main.rs"], |world| {
        world.write("src/main.rs", "and even more");
    });
    agent.end_turn();
    assert_rules(&world, &[], &["data", "logs"]);
}

#[test]
fn without_an_agent_every_rule_is_the_users_and_at_first_contact_all_hold() {
    let world = world();
    world.write(".gitignore", "data/\n");
    assert_eq!(skipped(&world), ["data"]);
    world.write(".gitignore", "");
    assert_eq!(skipped(&world), [""; 0]);
    world.write(".pitonignore", "src\n");
    assert_eq!((skipped(&world), waiting(&world)), (vec!["src".to_owned()], Vec::new()));
}

#[test]
fn the_users_own_rule_holds_beside_one_of_an_agent_that_waits() {
    let world = world();
    let agent = an_agent_that_ignores(&world, "data/\n");
    later();
    world.write(".gitignore", "data/\nsrc/\n");
    agent.prompt("go on");
    assert_rules(&world, &["data"], &["src"]);
}

#[test]
fn what_is_new_follows_every_rule_at_once() {
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.prompt("build");
    agent.step("Bash", &[], |world| {
        world.write(".gitignore", "data/\ntarget/\n").write("target/big", "big").write("data/new.csv", "new");
    });
    agent.end_turn();
    assert_eq!(waiting(&world), ["data"]);
    assert_eq!(skipped(&world), ["data/new.csv", "target"]);
}

/// `npm install`, and only then the rule for it.
#[test]
fn what_a_session_made_itself_it_may_ignore_as_long_as_nothing_of_anybody_elses_is_in_it() {
    for way in ["two steps", "two turns", "edited", "moved", "moved by a detour", "other session", "other rules"] {
        let world = world();
        world.write(".gitignore", "cache/\n");
        let agent = Agent::new(&world, "s");
        let other = Agent::new(&world, "other");
        agent.prompt("install");
        let install = |world: &World| {
            world.write("new/x/index.js", "x").write("new/y/index.js", "y").write("package.json", "{}");
        };
        let moved = |from: &str, to: &str| std::fs::rename(world.path(from), world.path(to)).unwrap();
        match way {
            "other rules" => {
                agent.step("Bash", &[], install);
                world.write("new/cache/c", "c");
                agent.step("Bash", &[], |world| {
                    world.write(".gitignore", "");
                });
            }
            "moved" => agent.step("Bash", &[], |_| moved("data", "new")),
            "moved by a detour" => {
                agent.step("Bash", &[], |_| moved("data", "../kept"));
                agent.step("Bash", &[], |_| moved("../kept", "new"));
            }
            _ => agent.step("Bash", &[], install),
        }
        if way != "two steps" {
            agent.end_turn();
            later();
        }
        match way {
            "edited" => {
                world.write("new/x/index.js", "patched");
            }
            "other session" => other.runs("build", "make", |world| {
                world.write("new/z", "z");
            }),
            _ => {}
        }
        if way != "two steps" {
            agent.prompt("go on");
        }
        agent.step("Bash", &[], |world| {
            world.write(".gitignore", "*.log\nnew/\n");
        });
        agent.end_turn();
        let expected: &[&str] = if way.starts_with("two") { &[] } else { &["new"] };
        assert_eq!(waiting(&world), expected, "{way}");
        assert_eq!(skipped(&world), if expected.is_empty() { &["new"][..] } else { &[] }, "{way}");
    }
}

#[test]
fn of_an_empty_folder_nobody_is_told() {
    let world = world();
    world.folder("build/objects");
    let agent = Agent::new(&world, "s");
    agent.runs("build", "make", |world| {
        world.write(".gitignore", "build/\n").write("build/objects/o", "o");
    });
    assert_rules(&world, &[], &["build"]);
}

/// A capture that is cut off has recorded all or nothing: whoever looks next holds the same.
#[test]
fn a_crash_at_any_step_of_a_capture_takes_nothing_away_and_one_of_agreeing_leaves_the_old_or_the_new() {
    let mut died = 0;
    for step in 1.. {
        let world = world();
        let agent = Agent::new(&world, "s");
        agent.prompt("work");
        agent.before("call", "Bash", &[]);
        world.write(".gitignore", "data/\n");
        let is_whole = fail::with(step, || drop(world.captured())).is_some();
        agent.after("call");
        agent.end_turn();
        assert_eq!((waiting(&world), skipped(&world)), (vec!["data".to_owned()], Vec::new()), "step {step}");
        let has_agreed = fail::with(step, || drop(world.open().accept_rules().unwrap())).is_some();
        let left = waiting(&world);
        assert!(left == ["data"] || skipped(&world) == ["data"], "step {step}: {left:?}");
        world.open().accept_rules().unwrap();
        assert_eq!((waiting(&world), skipped(&world)), (Vec::new(), vec!["data".to_owned()]), "step {step}");
        if is_whole && has_agreed {
            break;
        }
        died = step;
    }
    assert!(died > 3, "only {died} steps");
}

#[test]
fn nobody_known_is_not_the_user() {
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.prompt("work");
    // The tool names another file than the one that changed.
    agent.step("Edit", &["src/main.rs"], |world| {
        world.write(".gitignore", "data/\n");
    });
    agent.end_turn();
    assert_eq!(waiting(&world), ["data"]);
}

#[test]
fn an_undo_or_a_rewind_of_the_rule_ends_the_waiting() {
    for is_undo in [true, false] {
        let world = world();
        an_agent_that_ignores(&world, "data/\n");
        assert_eq!(waiting(&world), ["data"]);
        if is_undo {
            world.open().undo_now(&UndoOptions::default()).unwrap();
        } else {
            world.rewind("t1");
        }
        assert!(world.open().waiting().unwrap().is_empty());
        assert_rules(&world, &[], &[]);
    }
}

#[test]
fn a_rule_that_an_operation_brings_back_waits_again_and_one_that_the_user_writes_does_not() {
    for is_by_hand in [false, true] {
        let world = world();
        let agent = an_agent_that_ignores(&world, "data/\n");
        agent.runs("start over", "rm", |world| {
            world.remove("data").remove(".gitignore");
        });
        assert_eq!(waiting(&world), [""; 0]);
        world.rewind("t2");
        world.capture();
        assert_eq!(waiting(&world), ["data"]);
        later();
        world.write(".gitignore", "");
        assert_eq!(waiting(&world), [""; 0]);
        world.capture();
        later();
        if is_by_hand {
            world.write(".gitignore", "data/\n");
            world.capture();
            assert_rules(&world, &[], &["data"]);
        } else {
            agent.runs("again", "gen", |world| {
                world.write(".gitignore", "data/\n");
            });
            assert_rules(&world, &["data"], &[]);
        }
    }
}

#[test]
fn a_path_that_a_rewind_brings_back_is_still_held() {
    let world = world();
    let agent = an_agent_that_ignores(&world, "data/\n");
    agent.runs("clean up", "rm", |world| {
        world.remove("data");
    });
    let paths = vec![WorkspacePath::new("data").unwrap()];
    world.open().rewind_now("t2", &RewindOptions { paths, ..RewindOptions::default() }).unwrap();
    world.capture();
    world.capture();
    assert_rules(&world, &["data"], &[]);
    assert_eq!(world.snapshot().bytes("data/b.csv"), Some(&b"b"[..]));
}

#[test]
fn git_rm_cached_by_an_agent_takes_nothing_away_and_neither_does_a_repository_that_goes() {
    for command in ["rm", "repository"] {
        let world = World::new();
        git(&world.ws(), &["init", "-q"]);
        world.write(".gitignore", "data/\n").write("data/a.csv", "a").write("data/b.csv", "b").write("src/m", "m");
        git(&world.ws(), &["add", "-f", "."]);
        let agent = an_agent(&world);
        later();
        agent.runs("untrack", "git", |world| match command {
            "rm" => {
                git(&world.ws(), &["rm", "-rq", "--cached", "-f", "data"]);
            }
            _ => {
                world.remove(".git");
            }
        });
        assert_eq!(waiting(&world), ["data"], "{command}");
        assert_protected(&world, &agent);
    }
}

/// Git writes its index all day. What it never tracked, it does not let go of either.
#[test]
fn what_the_users_own_rules_leave_out_is_not_laid_to_gits_index() {
    for way in ["grows", "checkout", "stash", "orphan"] {
        let world = World::new();
        let run = |arguments: &[&str]| drop(git(&world.ws(), arguments));
        run(&["init", "-q", "-b", "main"]);
        world.write("src/m", "m").write("node_modules/x/index.js", "x").write("run.log", "small");
        run(&["add", "src"]);
        run(&["commit", "-qm", "first"]);
        world.write(".gitignore", "*.log\nnode_modules/\n").write("src/m", "n");
        let tracked = if way == "stash" { "src" } else { "." };
        run(&["add", tracked]);
        run(&["commit", "-qm", "second"]);
        let agent = an_agent(&world);
        later();
        let steps: [&[&[&str]]; 2] = match way {
            "grows" => [&[&["commit", "-q", "--allow-empty", "-m", "third"]], &[&["add", "."]]],
            "checkout" => [&[&["checkout", "-q", "HEAD~1"]], &[&["checkout", "-q", "main"]]],
            "stash" => [&[&["stash", "-qu"]], &[&["stash", "pop", "-q"]]],
            _ => [&[&["checkout", "-q", "--orphan", "o"], &["rm", "-rfq", "."]], &[&["checkout", "-qf", "main"]]],
        };
        for commands in steps {
            agent.runs("work", "git", |world| {
                commands.iter().for_each(|command| run(command));
                if way == "grows" {
                    world.write("run.log", vec![b'x'; 2 << 20]).write("src/m", "more");
                    run(&["add", "src"]);
                }
            });
        }
        assert_eq!(waiting(&world), [""; 0], "{way}");
        let log = if way == "grows" { &["node_modules", "run.log"][..] } else { &["node_modules"] };
        assert_eq!(skipped(&world), log, "{way}");
    }
}

#[test]
fn what_a_tool_names_against_the_rules_is_no_changed_rule() {
    let world = world();
    world.write(".gitignore", "out/\n").write("out/x", "x");
    let agent = Agent::new(&world, "s");
    agent.prompt("work");
    agent.step("Edit", &["out/x"], |world| {
        world.write("out/x", "y");
    });
    agent.step("Edit", &["src/main.rs"], |world| {
        world.write("src/main.rs", "z");
    });
    agent.end_turn();
    assert_rules(&world, &[], &["out"]);
}

#[test]
fn a_tool_that_was_never_heard_of_again_is_still_no_word_of_the_users() {
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.prompt("work");
    agent.before("call", "Bash", &[]);
    world.write(".gitignore", "data/\n");
    // Its process died, and the next prompt is the first to look.
    assert_eq!(paths(&agent.prompt("again").waiting), ["data"]);
}

#[test]
fn a_store_that_is_made_anew_from_its_packs_knows_what_is_held() {
    let world = world();
    let agent = an_agent_that_ignores(&world, "data/\n");
    forget(&world, &["view", "index", "agreed"]);
    assert_eq!(paths(&world.open().waiting().unwrap()), ["data"]);
    assert_protected(&world, &agent);
}

#[test]
fn two_sessions_at_once_leave_what_is_held_as_it_is() {
    let world = world();
    let (one, other) = (Agent::new(&world, "one"), Agent::new(&world, "other"));
    one.prompt("work");
    other.prompt("work too");
    one.before("a", "Bash", &[]);
    other.before("b", "Bash", &[]);
    world.write(".gitignore", "data/\n");
    let ended = || Event::TurnEnded { failed: false, message: None, background: false };
    let reports = [one.report(None, ended()), other.report(None, ended())];
    let engine = &world.engine;
    std::thread::scope(|scope| {
        for report in &reports {
            scope.spawn(move || engine.observe(report, &Default::default()).unwrap());
        }
    });
    assert_eq!(waiting(&world), ["data"]);
    assert_protected(&world, &one);
}

#[test]
fn sizes_are_limits_for_what_is_held_too() {
    let world = World::with(|environment| environment.largest_file = Some(1000));
    world.write("data/a.csv", "a").write("data/b.csv", "b");
    an_agent_that_ignores(&world, "data/\n");
    world.write("data/a.csv", vec![b'a'; 2000]);
    assert_rules(&world, &["data"], &["data/a.csv"]);
}

/// Small ignored files are captured, so an agent's rule may leave nothing out until a file grows.
#[test]
fn a_rule_of_an_agents_is_known_for_one_however_late_it_leaves_something_out() {
    for file in [".gitignore", ".git/info/exclude"] {
        let world = World::with(|environment| environment.largest_ignored_file = Some(1000));
        git(&world.ws(), &["init", "-q"]);
        world.write("data.csv", "d").write("app.log", "l").write(".gitignore", "*.log\n");
        let agent = an_agent(&world);
        agent.runs("hide it", "gen", |world| {
            world.write(file, if file == ".gitignore" { "*.log\n*.csv\n" } else { "*.csv\n" });
        });
        assert_eq!(waiting(&world), [""; 0]);
        agent.edits("more", &["src/x"], |world| {
            world.write("src/x", "x");
        });
        later();
        world.write("data.csv", vec![b'd'; 2000]).write("app.log", vec![b'l'; 2000]);
        // The rule about the log was the user's, and still is.
        let told = agent.prompt("go on").waiting;
        assert_eq!((paths(&told), &told.paths[0].rules[..]), (vec!["data.csv".to_owned()], &[file.to_owned()][..]));
        assert_eq!(told.paths[0].owner.turn().unwrap().1, 2);
        assert_eq!(skipped(&world), ["app.log"]);
        world.open().accept_rules().unwrap();
        assert_rules(&world, &[], &["app.log", "data.csv"]);
    }
}

#[test]
fn what_the_user_edits_in_a_file_with_rules_agrees_to_what_it_leaves_out_later() {
    let world = World::with(|environment| environment.largest_ignored_file = Some(1000));
    world.write("data.csv", "d");
    let agent = Agent::new(&world, "s");
    agent.edits("hide it", &[".gitignore"], |world| {
        world.write(".gitignore", "*.csv\n");
    });
    later();
    world.write(".gitignore", "*.csv\n*.tmp\n");
    world.capture();
    world.write("data.csv", vec![b'd'; 2000]);
    assert_rules(&world, &[], &["data.csv"]);
}

#[test]
fn a_rule_of_an_agents_that_an_operation_brings_back_is_no_word_of_the_users() {
    for is_redo in [true, false] {
        let world = World::new();
        world.write("src/main.rs", "main").write(".gitignore", "*.log\n");
        let agent = an_agent_that_ignores(&world, "*.log\ndata/\n");
        let ignored = world.capture();
        world.open().undo_now(&UndoOptions::default()).unwrap();
        later();
        world.write("data/b.csv", "mine");
        world.capture();
        if is_redo {
            world.open().redo_now(&RedoOptions::default()).unwrap();
        } else {
            let paths = vec![WorkspacePath::new(".gitignore").unwrap()];
            world.open().rewind_now(&ignored, &RewindOptions { paths, ..RewindOptions::default() }).unwrap();
        }
        assert_eq!(world.snapshot().bytes(".gitignore"), Some(&b"*.log\ndata/\n"[..]));
        later();
        assert_eq!((waiting(&world), skipped(&world)), (vec!["data".to_owned()], Vec::new()), "redo: {is_redo}");
        assert_protected(&world, &agent);
    }
}

#[test]
fn a_rule_of_the_users_that_an_operation_brings_back_holds() {
    let world = world();
    world.write(".gitignore", "data/\n");
    let agent = Agent::new(&world, "s");
    agent.edits("capture the data", &[".gitignore"], |world| {
        world.write(".gitignore", "");
    });
    world.capture();
    world.open().undo_now(&UndoOptions::default()).unwrap();
    assert_rules(&world, &[], &["data"]);
}

#[test]
fn a_folder_of_the_users_that_an_agent_makes_a_repository_of_stays_captured() {
    for is_users in [false, true] {
        for how in ["bare", "linked"] {
            let world = world();
            let agent = Agent::new(&world, "s");
            agent.edits("begin", &["src/main.rs"], |world| {
                world.write("src/main.rs", "more");
            });
            later();
            let hide = |world: &World| match how {
                "bare" => {
                    git(&world.ws(), &["init", "-q", "--bare", "data"]);
                }
                _ => {
                    world.folder("other/objects").folder("other/refs").write("data/HEAD", "ref: refs/heads/main\n");
                    world.write("data/commondir", "../other\n").write("src/.git", "gitdir: ../data\n");
                }
            };
            if is_users {
                hide(&world);
                agent.prompt("go on");
                assert_eq!(waiting(&world), [""; 0], "{how}");
                assert!(skipped(&world).contains(&"data".to_owned()), "{how}");
                continue;
            }
            agent.runs("hide it", "git", hide);
            assert_eq!(waiting(&world), ["data"], "{how}");
            assert!(!skipped(&world).contains(&"data".to_owned()), "{how}");
            assert_protected(&world, &agent);
        }
    }
}

/// Whatever lies between: what was captured at a path is no news there.
#[test]
fn what_goes_away_while_an_agent_writes_a_rule_for_it_is_held_when_it_comes_back() {
    for way in ["away", "outside", "copy", "one file"] {
        let world = world();
        let outside = world.base().join("kept");
        let agent = an_agent(&world);
        let moved = |from: std::path::PathBuf, to: std::path::PathBuf| std::fs::rename(from, to).unwrap();
        let (there, name) = match way {
            "outside" => (outside.clone(), "data"),
            "one file" => (world.path("kept.csv"), "data/b.csv"),
            _ => (world.path("away"), "data"),
        };
        agent.runs("away", "mv", |world| moved(world.path(name), there.clone()));
        agent.runs("hide it", "gen", |world| {
            world.write(".gitignore", "*.log\ndata/\n");
        });
        agent.runs("and back", "mv", |world| match way {
            "copy" => {
                for name in ["a.csv", "b.csv"] {
                    let bytes = std::fs::read(there.join(name)).unwrap();
                    world.write(format!("data/{name}"), bytes);
                }
                std::fs::remove_dir_all(&there).unwrap();
            }
            _ => moved(there.clone(), world.path(name)),
        });
        // What was never there is new all the same.
        world.write("data/new.csv", "new");
        assert_eq!(
            (waiting(&world), skipped(&world)),
            (vec!["data".to_owned()], vec!["data/new.csv".to_owned()]),
            "{way}"
        );
        assert_protected(&world, &agent);
    }
}

#[test]
fn what_a_repository_inside_excludes_is_known_for_an_agents_before_it_leaves_anything_out() {
    let world = World::new();
    world.write("sub/data/b.csv", "b").write("sub/src/m", "m").write("top", "t");
    git(&world.path("sub"), &["init", "-q"]);
    later_than_doubt();
    let away = |from: &str, to: &str| std::fs::rename(world.path(from), world.path(to)).unwrap();
    let agent = Agent::new(&world, "s");
    agent.runs("away", "mv", |_| away("sub/data", "../d"));
    agent.runs("hide it", "gen", |world| {
        world.write("sub/.git/info/exclude", "data\n");
    });
    later_than_doubt();
    agent.prompt("and now");
    agent.end_turn();
    later_than_doubt();
    agent.runs("and back", "mv", |_| away("../d", "sub/data"));
    assert_rules(&world, &["sub/data"], &[]);
}

#[test]
fn nothing_is_said_to_be_captured_that_is_gone() {
    let world = world();
    let agent = an_agent_that_ignores(&world, "data/\n");
    later();
    world.remove("data");
    assert_eq!(waiting(&world), [""; 0]);
    assert!(agent.prompt("go on").waiting.is_empty());
    assert!(world.open().waiting().unwrap().is_empty());
}

/// Other rules, another agent: what is said of it is of now.
#[test]
fn what_is_held_again_is_told_with_the_rule_and_the_turn_of_this_time() {
    let world = world();
    let agent = an_agent_that_ignores(&world, "data/\n");
    later();
    world.write(".gitignore", "*.log\n");
    world.capture();
    agent.edits("again", &[".pitonignore"], |world| {
        world.write(".pitonignore", "data\n");
    });
    let told = agent.prompt("go on").waiting;
    assert_eq!((paths(&told), &told.paths[0].rules[..]), (vec!["data".to_owned()], &[".pitonignore".to_owned()][..]));
    assert_eq!(told.paths[0].owner.turn().unwrap().1, 2);
}

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    as_ordinary_user(|| {
        let world = world();
        let agent = an_agent_that_ignores(&world, "data/\n");
        assert_eq!(waiting(&world), ["data"]);
        assert_protected(&world, &agent);
        world.open().accept_rules().unwrap();
        assert_eq!(waiting(&world), [""; 0]);
    });
}

mod settings {
    use super::*;

    const FILE: &str = ".piton/config.toml";
    const OFF: &str = "capture.automatic = false\n";

    /// What holds of the file's settings, as a hook asks.
    fn in_force(world: &World) -> InForce {
        let text = std::fs::read_to_string(world.path(FILE)).unwrap_or_default();
        let says = read(&text, Layer::Workspace).unwrap().protection();
        world.engine.settings_in_force(&world.ws().canonicalize().unwrap(), says)
    }

    fn is_off(world: &World) -> bool {
        in_force(world).protection.automatic == Some(false)
    }

    fn switch_off(agent: &Agent<'_>) {
        agent.runs("switch it off", "gen", |world| {
            world.write(FILE, OFF);
        });
    }

    #[test]
    fn an_agent_does_not_switch_its_own_protection_off() {
        let world = world();
        let agent = Agent::new(&world, "s");
        agent.prompt("work");
        agent.before("call", "Bash", &[]);
        world.write(FILE, "capture.automatic = false\ncapture.size-limit = 1\nhook.time-budget = \"30s\"\n");
        // The hook after the tool asks first, and then captures.
        let held = in_force(&world);
        assert_eq!((held.protection.automatic, held.protection.size_limit), (None, None));
        assert_eq!(held.protection.time_budget, Some(Duration::from_secs(30)));
        assert_eq!(held.waiting.len(), 2);
        agent.after("call");
        agent.end_turn();
        later();
        let told = agent.prompt("go on").waiting;
        assert_eq!(
            told.settings.iter().map(|s| &s.key[..]).collect::<Vec<_>>(),
            ["capture.automatic", "capture.size-limit"]
        );
        assert_eq!((&told.settings[0].holds[..], &told.settings[0].says[..]), ("true", "false"));
        assert!(!is_off(&world));
        world.open().accept_rules().unwrap();
        assert!(is_off(&world) && in_force(&world).waiting.is_empty());
        assert!(agent.prompt("more").waiting.is_empty());
    }

    #[test]
    fn what_the_user_writes_holds_at_once_and_so_does_what_is_found_at_first() {
        let world = world();
        world.write(FILE, OFF);
        assert!(is_off(&world));
        world.capture();
        assert!(is_off(&world));
        world.write(FILE, "");
        world.capture();
        let agent = Agent::new(&world, "s");
        agent.edits("work", &["src/main.rs"], |world| {
            world.write("src/main.rs", "more");
        });
        later();
        world.write(FILE, OFF);
        assert!(is_off(&world));
        agent.prompt("go on");
        assert!(is_off(&world));
    }

    #[test]
    fn an_agent_does_not_undo_what_the_user_says_for_every_workspace() {
        let users = read("capture.ignored-limit = \"50MiB\"", Layer::User).unwrap().protection();
        let world = World::with(|environment| environment.users_settings = users.clone());
        let agent = an_agent(&world);
        agent.runs("less", "gen", |world| {
            world.write(FILE, "capture.ignored-limit = \"5MiB\"\n");
        });
        assert_eq!(in_force(&world).protection.ignored_limit, None);
        let told = agent.prompt("go on").waiting;
        assert_eq!((&told.settings[0].holds[..], &told.settings[0].says[..]), ("50MiB", "5MiB"));
    }

    #[test]
    fn what_the_user_saves_again_is_the_users_whatever_it_says() {
        let world = world();
        let agent = an_agent(&world);
        switch_off(&agent);
        later();
        world.capture();
        // Other work of the user's is no word about it.
        world.write("src/main.rs", "mine");
        assert!(!is_off(&world) && !world.open().waiting().unwrap().is_empty());
        world.write(FILE, format!("# I want that\n{OFF}"));
        assert!(is_off(&world) && world.open().waiting().unwrap().is_empty());
        world.capture();
        assert!(is_off(&world));
    }

    #[test]
    fn taking_away_what_protects_more_waits_too_and_an_undo_ends_it() {
        let world = world();
        world.write(FILE, "tools.writers = [\"Read\"]\n");
        let agent = Agent::new(&world, "s");
        agent.runs("clean up", "rm", |world| {
            world.remove(".piton");
        });
        assert_eq!(in_force(&world).protection.writers, Some(vec!["Read".to_owned()]));
        assert!(!world.open().waiting().unwrap().is_empty());
        world.rewind("t1");
        assert!(world.open().waiting().unwrap().is_empty() && in_force(&world).waiting.is_empty());
    }

    #[test]
    fn settings_that_an_operation_brings_back_wait_unless_they_were_agreed_to_there() {
        let world = world();
        let agent = an_agent(&world);
        switch_off(&agent);
        agent.runs("clean up", "rm", |world| {
            world.remove(".piton");
        });
        world.rewind("t3");
        later();
        assert!(!is_off(&world));
        world.capture();
        assert!(!is_off(&world) && !world.open().waiting().unwrap().is_empty());
        world.open().accept_rules().unwrap();
        assert!(is_off(&world));
        let agreed = world.capture();
        later();
        world.write(FILE, "");
        world.capture();
        assert!(!is_off(&world));
        world.rewind(&agreed);
        later();
        assert!(is_off(&world) && world.open().waiting().unwrap().is_empty());
    }

    #[test]
    fn a_store_that_is_made_anew_knows_what_was_agreed_to() {
        let world = world();
        let agent = an_agent(&world);
        switch_off(&agent);
        forget(&world, &["view", "agreed"]);
        later();
        assert!(!is_off(&world));
        world.capture();
        assert!(!is_off(&world));
    }

    #[test]
    fn ignoring_the_folder_of_the_settings_hides_no_change_of_them() {
        let world = world();
        world.write(".gitignore", ".piton/\n");
        let agent = an_agent(&world);
        switch_off(&agent);
        later();
        agent.prompt("go on");
        assert!(!is_off(&world));
    }
}

#[test]
fn what_a_session_made_and_then_ignored_goes_with_a_rewind_to_before_it() {
    let world = world();
    let agent = Agent::new(&world, "s");
    let before = world.snapshot();
    agent.runs("install", "npm install", |world| {
        world.write("node_modules/x/index.js", "1").write("node_modules/y/index.js", "2").write("lock", "3");
    });
    agent.runs("ignore", "echo >> .gitignore", |world| {
        world.write(".gitignore", "*.log\nnode_modules/\n");
    });
    let here = world.snapshot();
    for options in [RewindOptions::default(), RewindOptions { carry: Carry::Mine, ..RewindOptions::default() }] {
        let plan = world.open().plan_rewind("t1", &options).unwrap();
        assert!(plan.view().deleted.iter().any(|path| path.path.starts_with("node_modules")), "{:?}", plan.view());
        let outcome = world.open().rewind_now("t1", &options).unwrap();
        assert!(outcome.skipped.is_empty() && outcome.not_done.is_empty(), "{outcome:?}");
        world.assert_is(&before);
        world.open().redo_now(&RedoOptions::default()).unwrap();
        world.assert_is(&here);
    }
    // What nobody ever captured there stays, with the folders that it is in, and is named.
    world.write("node_modules/x/cache", "nobody knows");
    let outcome = world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    assert_eq!(outcome.skipped.iter().map(|s| &s.path.path[..]).collect::<Vec<_>>(), ["node_modules/x/cache"]);
    let now = world.snapshot();
    assert_eq!(now.bytes("node_modules/x/cache"), Some(&b"nobody knows"[..]));
    assert_eq!((now.bytes("node_modules/x/index.js"), now.bytes("node_modules/y/index.js")), (None, None));
}

#[test]
fn what_the_user_made_and_then_ignored_stays_in_a_rewind_and_is_named() {
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.runs("work", "make", |world| {
        world.write("src/main.rs", "2");
    });
    later();
    world.write("notes/mine", "1");
    world.captured();
    world.write(".gitignore", "*.log\nnotes/\n");
    world.captured();
    let outcome = world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    assert_eq!(outcome.skipped.iter().map(|s| &s.path.path[..]).collect::<Vec<_>>(), ["notes/mine"]);
    assert_eq!(world.snapshot().bytes("notes/mine"), Some(&b"1"[..]));
    assert_eq!(world.snapshot().bytes("src/main.rs"), Some(&b"main"[..]));
}

#[test]
fn what_holds_something_of_the_users_and_is_ignored_now_stays_in_a_rewind_and_is_named() {
    type Act = fn(&World);
    let acts: [(Act, &[&str]); 4] = [
        (|world| done(world.write("conf/local", "1\npassword\n")), &["conf/local"]),
        (|world| done(world.remove("conf/local").link("conf/local", "/somewhere")), &["conf/local"]),
        (|world| done(world.mode("conf/local", 0o600)), &["conf/local"]),
        (|world| done(world.remove("conf/local")), &[]),
    ];
    for (act, named) in acts {
        for carry in [Carry::Nothing, Carry::Mine] {
            let world = world();
            let agent = Agent::new(&world, "s");
            agent.runs("make", "configure", |world| done(world.write("conf/local", "1\n").write("conf/other", "2\n")));
            later();
            world.write(".gitignore", "*.log\nconf/\n");
            world.captured();
            act(&world);
            let before = world.snapshot();
            let options = RewindOptions { carry, ..RewindOptions::default() };
            let outcome = world.open().rewind_now("t1", &options).unwrap();
            let skipped = outcome.skipped.iter().filter(|one| one.path.path == "conf/local");
            assert_eq!(skipped.map(|one| &one.path.path[..]).collect::<Vec<_>>(), named, "{outcome:?}");
            assert_eq!(world.snapshot().bytes("conf/local"), before.bytes("conf/local"));
            assert_eq!(world.snapshot().bytes("conf/other"), None);
            world.open().redo_now(&RedoOptions::default()).unwrap();
            world.assert_is(&before);
        }
    }

    // The agent's own is gone long since, and the user made another one at its path.
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.runs("make", "make", |world| done(world.write("out/report", "the agent's")));
    agent.runs("clean", "rm", |world| done(world.remove("out")));
    later();
    world.write(".gitignore", "*.log\nout/\n");
    world.captured();
    world.write("out/report", "the user's");
    world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    assert_eq!(world.read("out/report"), "the user's");
}

/// A session with so many checkpoints that nobody looks through all of them one by one.
fn long_session(world: &World) {
    let agent = Agent::new(world, "long");
    agent.prompt("work for long");
    for n in 0..260 {
        agent.step("Edit", &["src/main.rs"], |world| {
            world.write("src/main.rs", format!("{n}"));
        });
    }
    agent.end_turn();
    later();
}

#[test]
fn what_went_away_is_held_when_it_comes_back_however_long_ago_that_was() {
    let world = world();
    world.write("part/a", "a").write("part/b", "b");
    world.capture();
    world.write("made/later", "later");
    world.capture();
    let kept = |name: &str| world.base().join(name.replace('/', "-"));
    // Left out by the user, but for a while: no checkpoint lists a change of it.
    world.write(".gitignore", "once/\n").write("once/x", "x");
    for rules in ["once/\n", "*.log\n", "once/\n"] {
        world.write(".gitignore", rules);
        world.capture();
        later();
    }
    std::fs::rename(world.path("once"), kept("once")).unwrap();
    world.write(".gitignore", "*.log\n");
    world.capture();
    // More than a checkpoint lists.
    for n in 0..5_001 {
        world.write(format!("many/{n}"), "");
    }
    world.write("many/more", "more");
    world.capture();
    let agent = Agent::new(&world, "s");
    let went = ["data", "made", "many", "part/b"];
    agent.runs("hide it", "mv", |world| {
        for name in went {
            std::fs::rename(world.path(name), kept(name)).unwrap();
        }
        world.write(".gitignore", "data/\nmade/\nmany/\npart/\nnew/\nonce/\n");
    });
    long_session(&world);
    for name in went.into_iter().chain(["once"]) {
        std::fs::rename(kept(name), world.path(name)).unwrap();
    }
    // What was never there is new all the same.
    world.write("data/new.csv", "new").write("new/new", "new").write("part/new", "new");
    assert_eq!(skipped(&world), ["data/new.csv", "new", "part/new"]);
    let mut waiting = waiting(&world);
    waiting.sort();
    assert_eq!(waiting, ["data", "made", "many", "once", "part"]);
    assert_protected(&world, &agent);
}

#[test]
fn what_a_session_made_itself_it_may_ignore_however_many_checkpoints_there_are() {
    for way in ["made", "was the user's long ago", "was left out long ago"] {
        let world = world();
        world.capture();
        let place = if way == "was left out long ago" { "new" } else { "mine" };
        let content = if way == "made" { "another" } else { "x" };
        world.write(".gitignore", "new/\n").write(format!("{place}/x/index.js"), content);
        world.capture();
        world.remove(place).write(".gitignore", "*.log\n");
        world.capture();
        long_session(&world);
        let agent = Agent::new(&world, "s");
        agent.runs("install", "npm install", |world| {
            world.write("new/x/index.js", "x").write("package.json", "{}");
        });
        agent.runs("ignore", "gen", |world| {
            world.write(".gitignore", "*.log\nnew/\n");
        });
        // One that was left out may have been kept elsewhere meanwhile: nobody knows what it was.
        assert_eq!(waiting(&world), if way == "made" { &[][..] } else { &["new"] }, "{way}");
    }
}

#[test]
fn what_a_session_made_in_many_places_it_may_ignore_in_all_of_them() {
    let world = world();
    let agent = Agent::new(&world, "s");
    let each = |n: usize| format!("packages/p{n}/cache");
    agent.runs("build", "make", |world| {
        for n in 0..150 {
            world.write(format!("{}/s.pyc", each(n)), format!("{n}")).write(format!("packages/p{n}/s.py"), "s");
        }
    });
    later();
    world.write(format!("{}/mine", each(77)), "of the user");
    agent.runs("ignore", "gen", |world| {
        world.write(".gitignore", "*.log\ncache/\n");
    });
    assert_eq!(waiting(&world), [each(77)]);
}

#[test]
fn what_went_away_is_held_when_it_comes_back_among_much_that_is_new() {
    let world = world();
    world.write("a/data/x", "x").write("a/y", "y");
    let agent = Agent::new(&world, "s");
    let kept = world.base().join("kept");
    agent.runs("hide it", "mv", |world| {
        std::fs::rename(world.path("a/data"), &kept).unwrap();
        world.write(".gitignore", "a/data/\ncache/\n");
    });
    later();
    for n in 0..1_100 {
        world.write(format!("p{n}/cache/x"), "x");
    }
    std::fs::rename(&kept, world.path("a/data")).unwrap();
    assert_eq!(skipped(&world).len(), 1_100);
    assert_eq!(waiting(&world), ["a/data"]);
}

#[test]
fn what_the_user_edited_in_a_folder_that_a_session_made_and_ignored_stays_in_a_rewind() {
    for carry in [Carry::Nothing, Carry::Mine] {
        let world = world();
        let agent = Agent::new(&world, "s");
        agent.prompt("build");
        agent.step("Bash", &[], |world| done(world.write("build/x", "1\n").write("build/y", "2\n")));
        agent.step("Bash", &[], |world| done(world.write(".gitignore", "*.log\nbuild/\n")));
        agent.end_turn();
        later();
        world.write("build/y", "2\nthe user's\n");
        let options = RewindOptions { carry, ..RewindOptions::default() };
        let shown: Vec<String> = {
            let plan = world.open().plan_rewind("t1", &options).unwrap();
            plan.view().deleted.iter().map(|path| path.path.clone()).collect()
        };
        let outcome = world.open().rewind_now("t1", &options).unwrap();
        assert_eq!(outcome.deleted.iter().map(|path| path.path.clone()).collect::<Vec<_>>(), shown);
        assert_eq!((world.read("build/y"), world.has("build/x")), ("2\nthe user's\n".to_owned(), false));
    }
}

#[test]
fn what_a_session_made_and_ignored_is_not_asked_about_after_a_rewind_and_a_redo() {
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.runs("install", "npm install", |world| {
        world.write("node_modules/x/index.js", "1").write("node_modules/y/index.js", "2");
    });
    agent.runs("ignore", "echo >> .gitignore", |world| {
        world.write(".gitignore", "*.log\nnode_modules/\n");
    });
    assert_eq!(waiting(&world), [""; 0]);
    world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    world.open().redo_now(&RedoOptions::default()).unwrap();
    later();
    agent.runs("work", "make", |world| {
        world.write("src/main.rs", "2");
    });
    assert_eq!(waiting(&world), [""; 0]);

    // What the user put there meanwhile is not the session's.
    world.write("node_modules/x/index.js", "mine");
    world.open().rewind_now("t1", &RewindOptions { unsure: true, ..RewindOptions::default() }).unwrap();
    assert_eq!(world.read("node_modules/x/index.js"), "mine");
}

#[test]
fn a_folder_that_was_ignored_from_its_first_moment_stays_in_a_rewind_and_is_named() {
    let world = world();
    let agent = Agent::new(&world, "s");
    agent.runs("ignore", "echo >> .gitignore", |world| {
        world.write(".gitignore", "*.log\nnode_modules/\n");
    });
    agent.runs("install", "npm install", |world| {
        world.write("node_modules/x/index.js", "1").write("lock", "1");
    });
    for target in ["t2", "t1"] {
        let plan = world.open().plan_rewind(target, &RewindOptions::default()).unwrap();
        let names = |skipped: &[piton_engine::view::SkippedView]| {
            skipped.iter().map(|one| one.path.path.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&plan.view().skipped), ["node_modules"], "{target}");
        let outcome = world.open().rewind_now(target, &RewindOptions::default()).unwrap();
        assert_eq!(names(&outcome.skipped), ["node_modules"], "{target}");
        assert!(world.has("node_modules/x/index.js") && !world.has("lock"));
        world.open().redo_now(&RedoOptions::default()).unwrap();
    }
    // What is not asked for is not named.
    let options = RewindOptions { paths: vec![WorkspacePath::new("lock").unwrap()], ..RewindOptions::default() };
    assert!(world.open().plan_rewind("t2", &options).unwrap().view().skipped.is_empty());
}

#[test]
fn a_folder_that_waits_is_named_alone() {
    let world = world();
    world.write("data/a.csv", "1").write("data/b.csv", "2");
    world.captured();
    let agent = an_agent_that_ignores(&world, "data/\n");
    assert_eq!(waiting(&world), ["data"]);
    later();
    world.remove("data");
    world.captured();
    later();
    agent.edits("bring it back", &["data/b.csv"], |world| {
        world.write("data/b.csv", "3");
    });
    later();
    world.write("data/a.csv", "1");
    assert_eq!(paths(&world.open().waiting_now().unwrap()), ["data"]);
    assert_eq!(waiting(&world), ["data"]);
}

/// One with `*` left itself out, so that its undo had nothing to take back.
#[test]
fn rules_that_leave_themselves_out_are_captured_and_can_be_taken_back() {
    let world = World::new();
    world.write("a", "1\n");
    let agent = Agent::new(&world, "s");
    agent.runs("rules", "echo '*' > .pitonignore", |world| {
        world.write(".pitonignore", "*\n");
    });
    world.open().undo_now(&piton_testkit::undo_of("t1")).unwrap();
    assert!(!world.path(".pitonignore").exists() && world.read("a") == "1\n");
}
