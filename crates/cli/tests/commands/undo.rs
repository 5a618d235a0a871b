//! `piton undo`, `redo` and `ops` as a person types them: real sessions made through the engine, and the real binary
//! over them.

use piton_engine::model::event::{Event, ToolCall};
use piton_testkit::{Agent, Scene, both};
use serde_json::{Value, json};

use crate::PITON;

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// Two turns: the first writes `a.txt` and `my notes.md`, the second changes `a.txt` and runs a command that writes
/// `built.txt`. Then the user changes `a.txt` at another place.
fn two_turns() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("a.txt", TEN).write("b.txt", "b\n");
    let agent = Agent::new(&scene.world, "s1");
    agent.edits("write it", &["a.txt", "my notes.md"], |world| {
        world.write("a.txt", TEN.replace("1\n2", "one\n2")).write("my notes.md", "notes\n");
    });
    agent.prompt("make it better");
    agent.step("Edit", &["a.txt"], |world| {
        world.write("a.txt", TEN.replace("1\n2", "one\n2").replace("5\n", "five\n"));
    });
    agent.end_turn();
    agent.runs("build it", "make all\necho done", |world| {
        world.write("built.txt", "built\n");
    });
    scene.world.write("a.txt", TEN.replace("1\n2", "one\n2").replace("5\n", "five\n").replace("9\n", "mine\n"));
    scene
}

/// The same line changed by the agent and by the user since.
fn a_conflict() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("a.txt", "one\n").write("b.txt", "one\n");
    Agent::new(&scene.world, "s1").edits("break it", &["a.txt", "b.txt"], |world| {
        world.write("a.txt", "two\n").write("b.txt", "two\n");
    });
    scene.world.write("a.txt", "mine\n");
    scene
}

/// A script that took the exit code for the act did it twice.
#[test]
fn what_is_done_is_done_though_nobody_can_be_told() {
    let scene = two_turns();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let into_full = |args: &[&str]| scene.piton(args).stdout(full()).output().unwrap();
    for args in [
        &["undo", "t3", "--yes"][..],
        &["redo", "--yes", "--json"],
        &["rewind", "t3", "--scope", "code", "--yes"],
        &["checkpoint", "named"],
        &["annotate", "named", "a note"],
    ] {
        let done = into_full(args);
        let said = both(&done);
        assert!(done.status.success(), "{args:?}: {said}");
        assert!(said.contains("it is done, but the output cannot be written"), "{args:?}: {said}");
    }
    assert!(!scene.world.path("built.txt").exists());
    for args in [&["log"][..], &["status", "--json"], &["undo", "t1", "--preview"]] {
        assert_eq!(into_full(args).status.code(), Some(1), "{args:?}");
    }
    // Nobody reads any more.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert!(scene.piton(&["redo", "--yes"]).stdout(writer).status().unwrap().success());
    assert!(scene.world.path("built.txt").exists());
}

mod words {
    use super::*;

    #[test]
    fn without_words_the_last_turn_goes_and_what_you_did_stays() {
        let scene = two_turns();
        let told = scene.told(&["undo", "--yes"]);
        assert!(told.contains("undid turn 3 “build it”: 1 deleted; verified"), "{told}");
        assert!(told.contains("not undone: side effects of 1 command outside the workspace's files"), "{told}");
        assert!(told.contains("`piton redo` takes it back"), "{told}");
        assert!(!scene.world.path("built.txt").exists());
        let told = scene.told(&["undo", "--yes"]);
        assert!(told.contains("undid turn 2 “make it better”: 1 merged; verified"), "{told}");
        assert_eq!(scene.read("a.txt"), TEN.replace("1\n2", "one\n2").replace("9\n", "mine\n"));
        scene.told(&["undo", "--yes"]);
        assert_eq!(scene.read("a.txt"), TEN.replace("9\n", "mine\n"));
        let refused = scene.fails(&["undo", "--yes"]);
        assert!(refused.contains("taken back already") && refused.contains("piton redo"), "{refused}");
    }

    #[test]
    fn the_last_so_many_changes() {
        let scene = two_turns();
        let told = scene.told(&["undo", "last", "2", "--yes"]);
        assert!(told.contains("undid the last 2 changes: 1 deleted, 1 merged"), "{told}");
        assert!(scene.told(&["undo", "last", "--yes"]).contains("undid the last change"));
    }

    #[test]
    fn changes_by_their_numbers() {
        let scene = two_turns();
        assert!(scene.ok(&["changes"]).contains("[2] my notes.md"));
        let told = scene.told(&["undo", "2", "4", "--yes"]);
        assert!(told.contains("undid changes 2, 4: 2 deleted"), "{told}");
        assert!(!scene.world.path("my notes.md").exists() && !scene.world.path("built.txt").exists());
        let refused = scene.fails(&["undo", "9", "--yes"]);
        assert!(refused.contains("has no change 9; it has 4") && refused.contains("piton changes"), "{refused}");
    }

    #[test]
    fn turns_steps_and_other_sessions() {
        let scene = two_turns();
        Agent::new(&scene.world, "s2").edits("elsewhere", &["c.txt"], |world| {
            world.write("c.txt", "c\n");
        });
        let first = scene.json(&["sessions"])["sessions"][1]["id"].as_str().unwrap().to_owned();
        let told = scene.told(&["undo", &format!("{first}:t1"), &format!("{first}:t3.1"), "--yes"]);
        assert!(told.contains("turn 1 “write it”, step 3.1"), "{told}");
        assert!(!scene.world.path("built.txt").exists() && !scene.world.path("my notes.md").exists());
        assert!(scene.world.path("c.txt").exists());
        let told = scene.told(&["undo", "t2", "--session", &first, "--yes"]);
        assert!(told.contains("turn 2"), "{told}");
        assert_eq!(scene.read("a.txt"), TEN.replace("9\n", "mine\n"));
        let refused = scene.fails(&["undo", "t7", "--session", &first, "--yes"]);
        assert!(refused.contains("turn 7"), "{refused}");
        let refused = scene.fails(&["undo", &format!("{first}:t2"), "--session", &first, "--yes"]);
        assert!(refused.contains("said twice"), "{refused}");
    }

    #[test]
    fn all_of_it_or_only_a_path_a_time_or_a_range() {
        let scene = two_turns();
        let plan = scene.json(&["undo", "all", "--path", "my notes.md", "--preview"]);
        assert_eq!(plan["deleted"], json!([{ "path": "my notes.md" }]));
        assert_eq!(plan["restored"], json!([]));
        let plan = scene.json(&["undo", "--between", "t3", "@", "--preview"]);
        assert_eq!(plan["deleted"], json!([{ "path": "built.txt" }]));
        let plan = scene.json(&["undo", "--since", "1h", "--preview"]);
        assert_eq!(plan["deleted"].as_array().unwrap().len(), 2);
        assert_eq!(plan["merged"], json!([{ "path": "a.txt" }]));
        let refused = scene.fails(&["undo", "--since", "yesterday", "--preview"]);
        assert!(refused.contains("is not an age"), "{refused}");
        let told = scene.told(&["undo", "all", "--path", "my notes.md", "--yes"]);
        assert!(told.contains("undid all changes of the session in my notes.md: 1 deleted"), "{told}");
        assert!(scene.ok(&["ops"]).contains("all changes of the session in my notes.md"));
        assert!(!scene.world.path("my notes.md").exists() && scene.world.path("built.txt").exists());
    }

    #[test]
    fn your_own_changes_on_demand() {
        let scene = two_turns();
        let told = scene.told(&["undo", "--owner", "you", "--path", "a.txt", "--yes"]);
        assert!(told.contains("your own changes"), "{told}");
        assert_eq!(scene.read("a.txt"), TEN.replace("1\n2", "one\n2").replace("5\n", "five\n"));
    }

    #[test]
    fn other_words_are_refused_with_the_forms() {
        let scene = two_turns();
        for words in [&["nonsense"][..], &["last", "x"], &["0"], &["t1", "3"], &["t1.end"], &["a.txt"]] {
            let refused = scene.fails(&[&["undo", "--yes"], words].concat());
            assert!(
                refused.contains("is not something to undo") && refused.contains("`last 3`"),
                "{words:?}: {refused}"
            );
        }
        assert!(scene.fails(&["undo", "t1", "--op", "kmzq", "--yes"]).contains("does not go together with"));
    }

    #[test]
    fn without_a_session_there_is_nothing_to_undo() {
        let scene = Scene::new(PITON);
        scene.world.write("a.txt", "a");
        scene.ok(&["checkpoint"]);
        let refused = scene.fails(&["undo", "--yes"]);
        assert!(refused.contains("no session is recorded here") && refused.contains("piton setup"), "{refused}");
    }
}

mod asking {
    use super::*;

    #[test]
    fn a_preview_shows_every_file_and_changes_nothing() {
        let scene = two_turns();
        let before = scene.world.snapshot();
        let shown = scene.ok(&["undo", "t1", "t2", "t3", "--preview"]);
        let expected = "\
Undo turn 1 “write it”, turn 2 “make it better”, turn 3 “build it”
  - delete   built.txt
  - delete   my notes.md
  ± merge    a.txt
2 to delete, 1 to merge
Not undone: side effects of these commands outside the workspace's files
  t3.1  make all …
";
        assert_eq!(shown, expected);
        scene.world.assert_is(&before);
        assert_eq!(scene.json(&["ops"])["operations"], json!([]));
    }

    #[test]
    fn contents_are_shown_on_demand_as_they_would_change() {
        let scene = two_turns();
        let before = scene.world.snapshot();
        let shown = scene.ok(&["undo", "t2", "--preview", "--diff"]);
        assert!(shown.contains("--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-five\n+5\n"), "{shown}");
        let plan = scene.json(&["undo", "t2", "--preview", "--diff"]);
        assert_eq!((&plan["kind"], &plan["diff"]["files"][0]["path"]), (&json!("undo"), &json!("a.txt")));
        assert!(scene.ok(&["rewind", "t1", "--preview", "--diff"]).contains("-mine\n"));
        scene.world.assert_is(&before);
        scene.told(&["undo", "t2", "--yes"]);
        assert!(scene.ok(&["redo", "--preview", "--diff"]).contains("-5\n+five\n"));
    }

    #[test]
    fn the_question_names_the_files_and_a_no_changes_nothing() {
        let scene = two_turns();
        let before = scene.world.snapshot();
        let (shown, code) = scene.at_a_terminal(&["undo", "t1"], "n\n");
        assert!(shown.contains("Undo 2 files (a.txt, my notes.md)? [y/N]"), "{shown}");
        assert!(shown.contains("Nothing was changed.") && code == Some(1), "{shown}");
        scene.world.assert_is(&before);
        let (shown, code) = scene.at_a_terminal(&["undo", "t1"], "y\n");
        assert!(shown.contains("undid turn 1 “write it”: 1 deleted, 1 merged;") && code == Some(0), "{shown}");
        assert!(!scene.world.path("my notes.md").exists());
    }

    #[test]
    fn without_a_terminal_nobody_is_asked_and_nothing_is_done() {
        let scene = two_turns();
        let before = scene.world.snapshot();
        let refused = scene.fails(&["undo"]);
        assert!(refused.contains("no terminal") && refused.contains("--yes"), "{refused}");
        scene.world.assert_is(&before);
    }

    #[test]
    fn many_files_are_counted_and_not_named() {
        let scene = Scene::new(PITON);
        scene.world.write("a", "a");
        let names: Vec<String> = (0..6).map(|n| format!("new{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Agent::new(&scene.world, "s1").edits("many", &names, |world| {
            for name in &names {
                world.write(name, "x");
            }
        });
        let (shown, _) = scene.at_a_terminal(&["undo"], "n\n");
        assert!(shown.contains("Undo 6 files? [y/N]"), "{shown}");
    }

    #[test]
    fn what_may_be_yours_is_left_alone_and_named() {
        let scene = Scene::new(PITON);
        scene.world.write("mine.txt", "one\n").write("a.txt", "one\n");
        let agent = Agent::new(&scene.world, "s1");
        agent.edits("one", &["a.txt"], |world| {
            world.write("a.txt", "two\n");
        });
        scene.world.write("mine.txt", "two\n");
        agent.runs("two", "make", |world| {
            world.write("mine.txt", "three\n").write("built.txt", "x");
        });
        let shown = scene.ok(&["undo", "--preview"]);
        assert!(
            shown.contains(
                "Left alone, because it may be your own edit or another session's:\n  ~ mine.txt (t2.1 or you: you edited it at "
            ),
            "{shown}"
        );
        assert!(shown.contains("`--unsure` takes that back too"), "{shown}");
        assert!(
            scene
                .told(&["undo", "--yes"])
                .contains("note: left alone, because it may be your own edit or another session's")
        );
        assert_eq!(scene.read("mine.txt"), "three\n");
        // At a terminal undo asks; `d` shows the difference first.
        let (shown, code) = scene.at_a_terminal(&["undo", "t2"], "d\nn\n");
        let question = "Also this one (mine.txt), which may be your own? [y]es [d]iff [N]o";
        assert_eq!((shown.matches(question).count(), code), (2, Some(1)), "{shown}");
        assert!(shown.contains("-three") && shown.contains("+two"), "{shown}");
        let (shown, code) = scene.at_a_terminal(&["undo", "t2"], "y\ny\n");
        assert!(shown.contains("Undo 1 file (mine.txt)? [y/N]"), "{shown}");
        assert_eq!((scene.read("mine.txt"), code), ("two\n".to_owned(), Some(0)), "{shown}");
        scene.ok(&["redo", "--yes"]);
        let done = scene.run(&["undo", "t2", "--yes"]);
        let told = both(&done);
        assert_eq!(done.status.code(), Some(1), "{told}");
        assert!(told.contains("nothing was done: what is left may be your own edits or another session's"), "{told}");
        scene.told(&["undo", "t2", "--unsure", "--yes"]);
        assert_eq!(scene.read("mine.txt"), "two\n");
    }

    #[test]
    fn undo_alone_means_the_newest_turn_that_stands_of_whichever_session() {
        let scene = Scene::new(PITON);
        scene.world.write("a.txt", "one\n").write("b.txt", "one\n");
        let (first, second) = (Agent::new(&scene.world, "s1"), Agent::new(&scene.world, "s2"));
        let write = |path: &'static str, text: &'static str| {
            move |world: &piton_testkit::World| {
                world.write(path, text);
            }
        };
        first.edits("turn it blue", &["a.txt"], write("a.txt", "two\n"));
        second.edits("turn it red", &["b.txt"], write("b.txt", "two\n"));
        first.edits("only talk", &[], |_| {});
        second.edits("and talk", &[], |_| {});
        // The newest change is the second session's, then the first one's, then there is none.
        assert!(scene.told(&["undo", "--yes"]).contains("turn it red"));
        assert_eq!((scene.read("a.txt"), scene.read("b.txt")), ("two\n".to_owned(), "one\n".to_owned()));
        assert!(scene.told(&["undo", "--yes"]).contains("turn it blue"));
        assert_eq!(scene.read("a.txt"), "one\n");
        let said = scene.fails(&["undo", "--yes"]);
        assert!(said.contains("nothing that is still there"), "{said}");
        // One that is in the middle of a turn is not passed over without a word.
        scene.ok(&["redo", "--yes"]);
        second.prompt("go on");
        let shown = scene.ok(&["undo", "--preview"]);
        assert!(shown.contains("turn it blue") && shown.contains("the agent is in the middle of"), "{shown}");
        second.end_turn();
        // Two that are in the middle of a turn: without a terminal nobody sees which is meant.
        first.prompt("more");
        second.prompt("more");
        let said = scene.fails(&["undo", "--yes"]);
        assert!(said.contains(first.id().short()) && said.contains(second.id().short()), "{said}");
    }

    #[test]
    fn what_is_not_undone_lists_what_may_matter_and_not_each_ls() {
        let scene = Scene::new(PITON);
        let agent = Agent::new(&scene.world, "s1");
        agent.prompt("ship it");
        for (at, command) in ["ls", "cat a.txt", "git push origin main", "touch a.txt"].into_iter().enumerate() {
            let id = format!("c{at}");
            let call = ToolCall { command: Some(command.into()), ..agent.call(&id, "Bash", &[], false) };
            agent.tell(Event::BeforeTool(call));
            if at == 3 {
                scene.world.write("a.txt", "");
            }
            agent.after(&id);
        }
        agent.end_turn();
        let plan = scene.json(&["undo", "--preview"]);
        let commands = plan["commands"].as_array().unwrap();
        assert_eq!(commands.len(), 1, "{plan:#}");
        assert_eq!(
            (&commands[0]["command"], &commands[0]["effects"][0]),
            (&"git push origin main".into(), &"push".into())
        );
        assert!(scene.told(&["undo", "--yes"]).contains("side effects of 1 command"));
    }

    #[test]
    fn of_a_workspace_that_is_gone_nothing_is_made_where_somebody_else_may_have_taken_it() {
        let scene = Scene::new(PITON);
        scene.world.write("f", "1");
        let (agent, other) = (Agent::new(&scene.world, "s1"), Agent::new(&scene.world, "s2"));
        agent.prompt("one");
        other.prompt("two");
        agent.before("c1", "Bash", &[]);
        other.before("c2", "Bash", &[]);
        std::fs::remove_dir_all(scene.world.ws()).unwrap();
        agent.after("c1");
        other.after("c2");
        agent.end_turn();
        other.end_turn();
        let ws = scene.world.ws().display().to_string();
        let undo = |more: &[&str]| {
            let args = [&["undo", "--session", "s1", "--workspace", &ws], more].concat();
            scene.piton(&args).current_dir(scene.world.base()).output().unwrap()
        };
        let shown = both(&undo(&["--preview"]));
        assert!(shown.contains("the workspace's folder is gone\n") && shown.contains("nothing to do"), "{shown}");
        let done = undo(&["--yes"]);
        let told = both(&done);
        assert_eq!(done.status.code(), Some(1), "{told}");
        assert!(told.contains("nothing was done: what is left may be your own edits or another session's"), "{told}");
        assert!(!scene.world.ws().exists());
        assert_eq!(undo(&["--yes", "--unsure"]).status.code(), Some(0));
        assert_eq!(scene.read("f"), "1");
    }
}

mod conflicts {
    use super::*;

    #[test]
    fn nothing_is_done_and_the_places_and_the_ways_out_are_shown() {
        let scene = a_conflict();
        let before = scene.world.snapshot();
        let refused = scene.fails(&["undo", "t1", "--path", "a.txt", "--path", "b.txt", "--yes"]);
        for said in [
            "Conflicts:\n  a.txt: changed at the same place since\n    line 1\n      now    │ mine\n      before │ one\n",
            "error: `a.txt`: changed at the same place since; nothing was changed",
            "hint: `piton undo t1 --path a.txt --path b.txt --partial` leaves",
            "--conflict before",
            "--conflict now",
            "--conflict markers",
        ] {
            assert!(refused.contains(said), "{said}: {refused}");
        }
        scene.world.assert_is(&before);
        let (shown, code) = scene.at_a_terminal(&["undo"], "");
        assert!(shown.contains("! conflict a.txt") && !shown.contains("[y/N]") && code == Some(1), "{shown}");
        let refused = scene.run(&["undo", "--yes", "--json"]);
        let document: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert!(document["error"]["hints"][0].as_str().unwrap().contains("--partial"), "{document}");
        scene.world.assert_is(&before);
    }

    #[test]
    fn a_preview_has_them_all_as_json_too() {
        let scene = a_conflict();
        let plan = scene.json(&["undo", "--preview"]);
        let conflict = json!({
            "path": "a.txt", "why": "same-place", "decided": false,
            "clashes": [{ "line": 1, "ours": ["mine"], "base": ["two"], "theirs": ["one"] }],
        });
        assert_eq!(plan["conflicts"], json!([conflict]));
        assert_eq!(plan["restored"], json!([{ "path": "b.txt" }]));
        assert_eq!(plan["kind"], "undo");
        assert!(scene.ok(&["undo", "--preview"]).contains("Nothing is done while a conflict is open:"));
    }

    #[test]
    fn the_rest_is_done_on_demand() {
        let scene = a_conflict();
        let done = scene.run(&["undo", "--partial", "--yes"]);
        let told = both(&done);
        assert_eq!(done.status.code(), Some(1), "not all of it is done: {told}");
        assert!(told.contains("1 restored"), "{told}");
        assert!(
            told.contains("left as they are because of conflicts:\n  a.txt: changed at the same place since"),
            "{told}"
        );
        assert_eq!((scene.read("a.txt").as_str(), scene.read("b.txt").as_str()), ("mine\n", "one\n"));
        // Still there, so it can be decided later.
        scene.told(&["undo", "t1", "--conflict", "before", "--yes"]);
        assert_eq!(scene.read("a.txt"), "one\n");
    }

    #[test]
    fn what_a_redo_in_part_left_is_what_the_next_one_goes_on_with() {
        let scene = a_conflict();
        scene.told(&["undo", "--conflict", "before", "--yes"]);
        scene.world.write("a.txt", "mine again\n");
        let done = scene.run(&["redo", "--partial", "--yes"]);
        let told = both(&done);
        assert_eq!(done.status.code(), Some(1), "{told}");
        assert!(told.contains("`piton redo` continues with what was left"), "{told}");
        let refused = scene.run(&["redo", "--partial", "--yes"]);
        let told = both(&refused);
        assert!(
            told.contains("nothing was done: everything is in conflict") && told.contains("`piton redo --op ID`"),
            "{told}"
        );
        scene.told(&["redo", "--conflict", "before", "--yes"]);
        assert_eq!((scene.read("a.txt").as_str(), scene.read("b.txt").as_str()), ("mine\n", "two\n"));
        assert!(both(&scene.run(&["redo", "--yes"])).contains("no rewind or undo to take back"));
    }

    #[test]
    fn each_decision_does_what_it_says() {
        for (which, expected) in [("now", "mine\n"), ("before", "one\n"), ("ours", "mine\n"), ("theirs", "one\n")] {
            let scene = a_conflict();
            scene.told(&["undo", "--conflict", which, "--yes"]);
            assert_eq!((scene.read("a.txt").as_str(), scene.read("b.txt").as_str()), (expected, "one\n"), "{which}");
        }
        let scene = a_conflict();
        let shown = scene.ok(&["undo", "--conflict", "markers", "--preview"]);
        assert!(shown.contains("± merge    a.txt") && shown.contains("(decided)"), "{shown}");
        let outcome = scene.json(&["undo", "--conflict", "markers", "--yes"]);
        assert_eq!(outcome["conflicts"][0]["decided"], true);
        let written = scene.read("a.txt");
        for part in ["<<<<<<< now\nmine\n", "=======\none\n>>>>>>> before\n"] {
            assert!(written.contains(part), "{written}");
        }
    }
}

mod back_and_forth {
    use super::*;

    #[test]
    fn redo_walks_back_through_undos_and_says_how_many_are_left() {
        let scene = two_turns();
        let before = scene.world.snapshot();
        scene.ok(&["undo", "--yes"]);
        let between = scene.world.snapshot();
        scene.ok(&["undo", "--yes"]);
        let shown = scene.ok(&["redo", "--preview"]);
        assert!(shown.starts_with("Redo: takes back the undo of turn 2 “make it better”\n"), "{shown}");
        let told = scene.told(&["redo", "--yes"]);
        assert!(told.contains("took back the undo of turn 2 “make it better”: 1 restored; verified"), "{told}");
        assert!(told.contains("`piton redo` can take back 1 operation more"), "{told}");
        scene.world.assert_is(&between);
        let told = scene.told(&["redo", "--yes"]);
        assert!(told.contains("took back the undo of turn 3") && !told.contains("more"), "{told}");
        scene.world.assert_is(&before);
        assert!(scene.fails(&["redo", "--yes"]).contains("no rewind or undo to take back"));
        scene.world.assert_sound();
    }

    #[test]
    fn one_that_was_taken_back_by_hand_does_not_stand_in_the_way_of_those_before_it() {
        let scene = two_turns();
        let before = scene.world.snapshot();
        scene.ok(&["undo", "--yes"]);
        let between = scene.world.snapshot();
        scene.ok(&["undo", "--yes"]);
        scene.world.write("a.txt", between.bytes("a.txt").unwrap());
        let told = scene.told(&["redo", "--yes"]);
        let said = "nothing to do: the files are already as they were before it; the undo of turn 2 “make it better” counts as taken back";
        assert!(told.contains(said), "{told}");
        scene.world.assert_is(&between);
        assert!(scene.told(&["redo", "--yes"]).contains("took back the undo of turn 3"));
        scene.world.assert_is(&before);
        scene.world.assert_sound();
    }

    #[test]
    fn operations_are_listed_and_taken_back_by_their_ids() {
        let scene = two_turns();
        assert!(both(&scene.run(&["ops"])).contains("nothing was rewound or undone here yet"));
        scene.ok(&["undo", "t1", "--yes"]);
        scene.ok(&["rewind", "t3", "--yes"]);
        scene.ok(&["redo", "--yes"]);
        let listed = scene.ok(&["ops"]);
        let lines: Vec<&str> = listed.lines().collect();
        assert!(lines[0].contains("redo of the rewind to before turn 3 “") && lines[0].ends_with("done"), "{listed}");
        assert!(lines[1].contains("rewind to before turn 3 “") && lines[1].ends_with("taken back"), "{listed}");
        assert!(lines[2].contains("undo of turn 1 “write it”") && lines[2].ends_with("done"), "{listed}");
        assert!(lines[2].contains("~1 -1"), "{listed}");
        let operations = scene.json(&["ops"])["operations"].clone();
        assert_eq!(operations[1]["taken_back"], true);
        assert_eq!(scene.json(&["ops", "-n", "1"])["operations"].as_array().unwrap().len(), 1);
        let undo = operations[2]["id"].as_str().unwrap();
        let told = scene.told(&["undo", "--op", undo, "--yes"]);
        assert!(told.contains("took back the undo of turn 1"), "{told}");
        assert_eq!(scene.read("my notes.md"), "notes\n");
        let refused = scene.fails(&["redo", "--op", undo, "--yes"]);
        assert!(refused.contains("was already taken back") && refused.contains("piton ops"), "{refused}");
        let refused = scene.fails(&["redo", "--op", "zzzz", "--yes"]);
        assert!(refused.contains("no operation `zzzz`"), "{refused}");
        let log = scene.ok(&["log"]);
        assert!(log.contains("↶") && log.contains("undo of turn 1 “write it”"), "{log}");
        assert!(scene.ok(&["log", "--checkpoints"]).contains("before the undo of turn 1 “write it”"));
    }

    #[test]
    fn the_outcome_is_one_document() {
        let scene = two_turns();
        let outcome = scene.json(&["undo", "t2", "--yes"]);
        assert_eq!(outcome["operation"]["kind"], "undo");
        assert_eq!(outcome["operation"]["about"], "turn 2 “make it better”");
        assert_eq!(outcome["merged"], json!([{ "path": "a.txt" }]));
        assert_eq!(outcome["verified"], true);
        assert_eq!(scene.json(&["redo", "--yes"])["operation"]["kind"], "redo");
    }
}

mod rewinding {
    use super::*;

    #[test]
    fn the_repository_goes_back_on_demand_and_comes_forth_again() {
        let scene = Scene::new(PITON);
        let git = |args: &[&str]| piton_testkit::git(&scene.world.ws(), args);
        scene.world.write("a.txt", "one\n");
        git(&["init", "-q", "-b", "main", "."]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "one"]);
        Agent::new(&scene.world, "s1").runs("commit it", "git commit -am two", |world| {
            world.write("a.txt", "two\n");
            git(&["commit", "-q", "-a", "-m", "two"]);
        });
        let path = std::env::var_os("PATH").unwrap();
        let piton = |args: &[&str]| {
            let done = scene.piton(args).env("PATH", &path).output().unwrap();
            assert!(done.status.success(), "{args:?}: {}", both(&done));
            both(&done)
        };
        for undoes in [&["rewind", "t1", "--preview"][..], &["undo", "--preview"]] {
            let shown = piton(undoes);
            assert!(shown.contains("stays there; with `--git` a rewind moves it back"), "{shown}");
        }
        let shown = piton(&["rewind", "t1", "--git", "--preview"]);
        assert!(shown.contains("git: main from ") && shown.contains("1 path of the index"), "{shown}");
        piton(&["rewind", "t1", "--git", "--yes"]);
        assert_eq!(git(&["log", "--format=%s"]).trim(), "one");
        assert!(piton(&["redo", "--yes"]).contains("git: main from "));
        assert_eq!(git(&["log", "--format=%s"]).trim(), "two\none");
    }

    #[test]
    fn files_outside_the_workspace_are_named_and_put_back_on_demand() {
        let scene = Scene::new(PITON);
        scene.world.write("a.txt", "one\n");
        let outside = scene.world.base().join("elsewhere.txt");
        std::fs::write(&outside, "one\n").unwrap();
        Agent::new(&scene.world, "s1").edits("both", &["a.txt", "../elsewhere.txt"], |world| {
            world.write("a.txt", "two\n");
            std::fs::write(&outside, "two\n").unwrap();
        });
        let shown = scene.ok(&["undo", "--preview"]);
        let said = format!("Outside the workspace, left alone:\n  ~ restore  {}\n", outside.display());
        assert!(shown.contains(&said) && shown.contains("`--outside`"), "{shown}");
        let (shown, _) = scene.at_a_terminal(&["undo", "--outside"], "n\n");
        assert!(shown.contains("and outside the workspace "), "{shown}");
        scene.told(&["undo", "--outside", "--yes"]);
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "one\n");
    }

    /// What a terminal shows, however wide it is.
    fn in_one_line(shown: &str) -> String {
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn edits_of_others_are_named_and_carried_over_on_demand() {
        let scene = two_turns();
        let shown = scene.ok(&["rewind", "t2", "--preview"]);
        let said = "These hold edits that are not this session's and would be overwritten:\n  ~ a.txt (you)\n";
        assert!(shown.contains(said) && shown.contains("--keep-mine"), "{shown}");
        let (shown, _) = scene.at_a_terminal(&["rewind", "t2"], "n\n");
        assert!(
            in_one_line(&shown).contains("and overwrite your edits in a.txt? [y]es [k]eep mine [d]iff [N]o"),
            "{shown}"
        );
        // The contents, and then no.
        let (shown, code) = scene.at_a_terminal(&["rewind", "t2"], "d\nn\n");
        assert!(shown.contains("-mine\n") && in_one_line(&shown).contains("? [y]es [k]eep mine [N]o"), "{shown}");
        assert_eq!((code, scene.read("a.txt").contains("mine")), (Some(1), true));
        // The user's own edits carried over: that plan is shown, and asked about.
        let (shown, code) = scene.at_a_terminal(&["rewind", "t2"], "k\nn\n");
        assert!(shown.contains("Carried over:\n  ~ a.txt (you)") && shown.contains("? [y]es [d]iff [N]o"), "{shown}");
        assert_eq!((code, scene.world.has("built.txt")), (Some(1), true));
        let refused = scene.fails(&["rewind", "t2", "--careful"]);
        assert!(refused.contains("this would overwrite your edits in a.txt; nothing was changed"), "{refused}");
        let shown = scene.ok(&["rewind", "t2", "--keep-mine", "--preview"]);
        assert!(shown.contains("Carried over:\n  ~ a.txt (you)"), "{shown}");
        scene.told(&["rewind", "t2", "--only-session", "--careful"]);
        assert_eq!(scene.read("a.txt"), TEN.replace("1\n2", "one\n2").replace("9\n", "mine\n"));
        assert!(!scene.world.path("built.txt").exists());
        scene.told(&["redo", "--yes"]);
        let (shown, code) = scene.at_a_terminal(&["rewind", "t2"], "k\ny\n");
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(scene.read("a.txt"), TEN.replace("1\n2", "one\n2").replace("9\n", "mine\n"));
    }

    #[test]
    fn a_rewind_says_what_it_deletes_and_names_the_moment_with_its_note() {
        let scene = two_turns();
        scene.ok(&["annotate", "t2", "the tests passed here"]);
        scene.world.write("new.txt", "mine\n");
        let shown = scene.ok(&["rewind", "t2", "--preview"]);
        assert!(shown.starts_with("Rewind to before turn 2 “"), "{shown}");
        assert!(shown.contains("\n  the tests passed here\n"), "{shown}");
        assert!(
            shown.contains("would be deleted:\n  - new.txt (you)\n")
                || shown.contains("would be deleted:\n  + new.txt (you)\n"),
            "{shown}"
        );
        let (shown, _) = scene.at_a_terminal(&["rewind", "t2"], "n\n");
        assert!(in_one_line(&shown).contains("overwrite your edits in a.txt and delete your own new.txt?"), "{shown}");
        let done = scene.told(&["rewind", "t2", "--yes"]);
        assert!(done.starts_with("rewound to before turn 2 “") && done.contains("\n  - new.txt\n"), "{done}");
        scene.ok(&["checkpoint", "good"]);
        scene.world.write("a.txt", "other\n");
        assert!(scene.told(&["rewind", "good", "--yes"]).starts_with("rewound to \"good\": 1 restored"));
    }
}

mod inside_an_agent {
    use super::*;

    #[track_caller]
    fn event(scene: &Scene, name: &str, more: Value) -> Value {
        scene.claude_event("s1", name, more)
    }

    #[track_caller]
    fn answer(scene: &Scene, typed: &str) -> String {
        let reply = event(scene, "UserPromptSubmit", json!({ "prompt": typed, "prompt_id": "p9" }));
        reply["reason"].as_str().unwrap().to_owned()
    }

    fn a_turn(scene: &Scene, id: &str, files: &[(&str, &str)]) {
        event(scene, "UserPromptSubmit", json!({ "prompt": "write it", "prompt_id": id }));
        for (file, text) in files {
            let call = format!("{id}-{file}");
            let tool = json!({
                "tool_name": "Write", "tool_use_id": call, "tool_input": { "file_path": scene.world.path(file) },
            });
            event(scene, "PreToolUse", tool.clone());
            scene.world.write(file, text);
            event(scene, "PostToolUse", tool);
        }
        event(scene, "Stop", json!({ "prompt_id": id }));
    }

    #[test]
    fn an_undo_is_done_at_once_and_says_how_to_take_it_back() {
        let scene = Scene::new(PITON);
        scene.world.write("a.txt", "one\n");
        a_turn(&scene, "p1", &[("a.txt", "two\n"), ("b.txt", "b\n"), ("c.txt", "c\n")]);
        let answered = answer(&scene, "/piton undo last 2");
        assert!(answered.contains("undid the last 2 changes: 2 deleted; verified"), "{answered}");
        assert!(answered.contains("`/piton redo` takes it back"), "{answered}");
        assert!(!scene.world.path("b.txt").exists() && !scene.world.path("c.txt").exists());
        assert_eq!(scene.read("a.txt"), "two\n");
        assert!(answer(&scene, "/piton redo").contains("took back the undo of the last 2 changes"));
        assert!(scene.world.path("c.txt").exists());
        assert!(answer(&scene, "/piton ops").contains("undo of the last 2 changes"));
        assert!(answer(&scene, "/piton undo t1 --preview").contains("~ restore  a.txt"));
        assert!(answer(&scene, "/piton undo nonsense").contains("is not something to undo"));
    }

    #[test]
    fn with_conflicts_nothing_is_done_and_the_answer_says_what_can_be_typed() {
        let scene = Scene::new(PITON);
        scene.world.write("a.txt", "one\n");
        a_turn(&scene, "p1", &[("a.txt", "two\n"), ("b.txt", "b\n")]);
        scene.world.write("a.txt", "mine\n");
        let before = scene.world.snapshot();
        let answered = answer(&scene, "/piton undo t1");
        assert!(answered.contains("now    │ mine") && answered.contains("nothing was changed"), "{answered}");
        assert!(answered.contains("`/piton undo t1 --partial`"), "{answered}");
        assert!(answered.contains("`/piton undo t1 --conflict before`"), "{answered}");
        scene.world.assert_is(&before);
        assert!(answer(&scene, "/piton undo t1 --partial").contains("undid turn 1"));
        assert_eq!(scene.read("a.txt"), "mine\n");
        assert!(!scene.world.path("b.txt").exists());
    }

    #[test]
    fn a_rewind_does_not_take_your_edits_unasked() {
        let scene = Scene::new(PITON);
        scene.world.write("a.txt", "one\n");
        a_turn(&scene, "p1", &[("b.txt", "b\n")]);
        scene.world.write("a.txt", "mine\n");
        let answered = answer(&scene, "/piton rewind t1");
        assert!(answered.contains("this would overwrite your edits in a.txt"), "{answered}");
        assert!(answered.contains("`/piton rewind t1 --keep-mine`"), "{answered}");
        assert!(scene.world.path("b.txt").exists());
        assert!(answer(&scene, "/piton rewind t1 --keep-mine").contains("rewound to"));
        assert_eq!(scene.read("a.txt"), "mine\n");
        assert!(!scene.world.path("b.txt").exists());
    }
}

mod hints {
    use super::*;

    /// What a hint tells to type goes no further than what was typed: a rewind that keeps the user's edits still does.
    #[test]
    fn a_hint_keeps_what_was_asked_for() {
        let scene = a_conflict();
        let refused = scene.fails(&["rewind", "t1", "--keep-mine", "--path", "a.txt", "--yes"]);
        assert!(refused.contains("`piton rewind t1 --path a.txt --keep-mine --partial`"), "{refused}");
        let refused = scene.fails(&["rewind", "t1", "--path", "a.txt", "--careful"]);
        assert!(refused.contains("`piton rewind t1 --path a.txt --keep-mine`"), "{refused}");
    }

    /// An operation that only touched files elsewhere says so, and not that a mode was restored.
    #[test]
    fn what_was_done_outside_only_is_said() {
        let scene = Scene::new(PITON);
        let elsewhere = scene.world.base().join("elsewhere");
        std::fs::write(&elsewhere, "one\n").unwrap();
        let agent = Agent::new(&scene.world, "s1");
        agent.edits("write elsewhere", &[elsewhere.to_str().unwrap()], |world| {
            std::fs::write(world.base().join("elsewhere"), "two\n").unwrap();
        });
        let told = scene.told(&["undo", "t1", "--outside", "--yes"]);
        assert!(told.contains("only files outside the workspace; verified"), "{told}");
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "one\n");
    }
}

/// Another folder stands where the workspace was: what is suggested can be typed as it is, and works.
#[test]
fn an_undo_or_redo_in_another_folder_names_a_command_that_works() {
    // A redo would bring back the second turn; an undo is about what was there last.
    for (args, expected) in [(&["redo", "--yes"][..], "3\n"), (&["undo", "--yes"], "2\n"), (&["undo"], "2\n")] {
        let scene = Scene::new(PITON);
        scene.world.write("a", "1\n");
        let agent = Agent::new(&scene.world, "s");
        for content in ["2\n", "3\n"] {
            agent.edits("edit", &["a"], |w| {
                w.write("a", content);
            });
        }
        scene.told(&["undo", "--yes"]);
        std::fs::remove_dir_all(scene.world.ws()).unwrap();
        scene.world.write("other", "x\n");
        let refused = match args.contains(&"--yes") {
            true => both(&scene.run(args)),
            false => scene.at_a_terminal(args, "").0,
        };
        let (_, rest) = refused.split_once("hint: `piton ").unwrap_or_else(|| panic!("{refused}"));
        let command: Vec<&str> = rest.split('`').next().unwrap().split(' ').collect();
        assert!(command[0] == "rewind" && command.contains(&"--across"), "{refused}");
        scene.told(&[&command[..], &["--yes"]].concat());
        assert_eq!(scene.read("a"), expected, "{args:?}: {refused}");
    }
}

/// It used to be "undid turn 1: …; verified", though the turn had begun before piton saw the folder.
#[test]
fn an_undo_of_a_turn_that_is_known_in_part_says_so() {
    let scene = Scene::new(PITON);
    scene.world.write("a", "1\n");
    let agent = Agent::new(&scene.world, "s1");
    // The first word that piton hears.
    agent.after("c0");
    agent.step("Bash", &[], |world| {
        world.write("a", "2\n");
    });
    agent.end_turn();
    let why = "not all that turn 1 changed is known: it was under way when this folder was captured for the first time";
    let text = scene.ok(&["undo", "--preview"]);
    assert!(text.contains(&format!("warning: {why}\n")), "{text}");
    let plan = scene.json(&["undo", "--preview"]);
    assert_eq!(plan["unknown"], json!([{ "turn": 1, "why": "before-first-capture" }]));
    let done = scene.run(&["undo", "--yes"]);
    assert_eq!((done.status.code(), scene.read("a")), (Some(1), "1\n".into()));
    let text = both(&done);
    assert!(text.contains("not all of it is known\n") && text.contains(why) && !text.contains("verified"), "{text}");
    scene.ok(&["redo", "--yes"]);
    let done = scene.run(&["undo", "t1", "--yes", "--json"]);
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &outcome["unknown"]), (Some(1), &plan["unknown"]));
}
