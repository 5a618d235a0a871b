//! What an agent and its user hear at a prompt: which files were changed under the session, and that it was left.

use piton_engine::model::Scope;
use piton_engine::model::event::Event;
use piton_engine::view::Told;
use piton_engine::{RedoOptions, RewindOptions, UndoOptions};
use piton_testkit::{Agent, Claude, World, three_turns};

fn undo(world: &World) {
    world.open().undo_now(&UndoOptions::default()).unwrap();
}

fn told(agent: &Agent<'_>, prompt: &str) -> Option<Told> {
    agent.prompt(prompt).told
}

/// `deleted a` of each file.
fn files(told: &Told) -> Vec<String> {
    told.files.iter().map(|file| format!("{} {}", format!("{:?}", file.kind).to_lowercase(), file.path.path)).collect()
}

/// Two turns: the first writes `a` and `b`, the second changes `a` and removes `b`.
fn two_turns<'w>(world: &'w World) -> Agent<'w> {
    let agent = Agent::new(world, "s");
    agent.edits("write", &["a", "b"], |w| {
        w.write("a", "1\n").write("b", "1\n");
    });
    agent.edits("change", &["a", "b", "c"], |w| {
        w.write("a", "2\n").remove("b").write("c", "2\n");
    });
    agent
}

#[test]
fn the_prompt_after_an_undo_tells_which_files_changed_and_later_ones_do_not() {
    let world = World::new();
    let agent = two_turns(&world);
    undo(&world);
    let said = told(&agent, "go on").unwrap();
    assert_eq!(files(&said), ["modified a", "created b", "deleted c"]);
    assert_eq!(said.did.len(), 1);
    assert!(said.did[0].starts_with("undid turn 2"), "{:?}", said.did);
    assert!(said.left.is_none());
    agent.end_turn();
    assert!(told(&agent, "and on").is_none());
    assert!(agent.tell(Event::SessionStarted { source: None }).told.is_none());
}

#[test]
fn what_was_brought_back_again_is_not_told() {
    let world = World::new();
    let agent = two_turns(&world);
    undo(&world);
    world.redo();
    assert!(told(&agent, "go on").is_none());
    agent.end_turn();
    // Two undos, and one of them taken back.
    undo(&world);
    undo(&world);
    world.redo();
    let said = told(&agent, "and on").unwrap();
    assert_eq!(files(&said), ["modified a", "created b", "deleted c"]);
    let [first, second, back] = &said.did[..] else { panic!("{:?}", said.did) };
    assert!(first.starts_with("undid turn 2") && second.starts_with("undid turn 1"), "{:?}", said.did);
    assert_eq!(back, "took that back");
    agent.end_turn();
    // A rewind that is taken back later is named by its moment and not by its id.
    world.rewind("t1");
    assert_eq!(told(&agent, "three").unwrap().did, ["rewound the files to before turn 1"]);
    agent.end_turn();
    world.redo();
    assert_eq!(told(&agent, "four").unwrap().did, ["took back the rewind to before turn 1"]);
}

#[test]
fn what_the_user_changed_by_hand_is_no_operation_and_an_undone_file_is_told_as_it_is_now() {
    let world = World::new();
    let agent = two_turns(&world);
    world.write("a", "mine\n");
    assert!(told(&agent, "go on").is_none());
    agent.step("Edit", &["d"], |w| {
        w.write("d", "3\n");
    });
    agent.end_turn();
    undo(&world);
    world.write("d", "mine\n");
    assert_eq!(files(&told(&agent, "and on").unwrap()), ["modified d"]);
}

#[test]
fn a_session_beside_hears_of_it_too_and_a_new_one_does_not() {
    let world = World::new();
    let beside = Agent::new(&world, "beside");
    beside.prompt("hello");
    beside.end_turn();
    let agent = two_turns(&world);
    undo(&world);
    assert_eq!(files(&told(&beside, "go on").unwrap()).len(), 3);
    assert!(told(&Agent::new(&world, "new"), "hello").is_none());
    assert_eq!(files(&told(&agent, "go on").unwrap()).len(), 3);
}

/// What the prompt of a session is told.
fn prompt(claude: &Claude<'_>, text: &str) -> Option<Told> {
    claude.prompt(text)
}

#[test]
fn a_branch_is_not_told_of_the_rewind_that_made_it_but_of_what_comes_after() {
    let world = World::new();
    three_turns(&world);
    let done = world.open().rewind_now("t3", &RewindOptions::default()).unwrap();
    let branch = Claude::resumed(&world, done.conversation.unwrap().agent_id.as_deref().unwrap());
    assert!(prompt(&branch, "otherwise").is_none());
    branch.answers("well");
    world.open().rewind_now("t3", &RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() }).unwrap();
    world.open().undo_now(&UndoOptions::default()).unwrap();
    let sessions = world.open().sessions().unwrap().sessions;
    let twig = sessions.iter().find(|session| session.current).unwrap();
    let twig = Claude::resumed(&world, &twig.agent_id);
    let said = prompt(&twig, "go on").unwrap();
    assert_eq!(files(&said), ["modified a.txt"]);
    assert!(said.left.is_none());
}

#[test]
fn going_on_in_a_session_that_was_rewound_is_told_once_with_the_way_to_the_branch() {
    let world = World::new();
    let claude = three_turns(&world);
    let done = world.open().rewind_now("t2", &RewindOptions::default()).unwrap().conversation.unwrap();
    let said = prompt(&claude, "four").unwrap();
    assert_eq!(files(&said), ["modified a.txt"]);
    let left = said.left.unwrap();
    assert_eq!((left.turn, &left.session, &left.resume), (2, &done.session, &done.resume));
    claude.answers("well");
    assert!(prompt(&claude, "five").is_none());
    claude.answers("well");
    // The conversation alone: no file to tell of.
    let options = RewindOptions { scope: Some(Scope::Conversation), ..RewindOptions::default() };
    world.open().rewind_now(&format!("{}:t5", claude.session()), &options).unwrap();
    let said = prompt(&claude, "six").unwrap();
    assert!(said.files.is_empty() && said.left.is_some(), "{said:?}");
}

#[test]
fn who_came_back_by_a_redo_is_told_nothing_and_further_rewinds_lead_to_the_last_branch() {
    let world = World::new();
    let claude = three_turns(&world);
    world.open().rewind_now("t3", &RewindOptions::default()).unwrap();
    world.open().redo_now(&RedoOptions::default()).unwrap();
    assert!(prompt(&claude, "four").is_none());
    claude.answers("well");
    let first = world.open().rewind_now("t4", &RewindOptions::default()).unwrap().conversation.unwrap();
    let branch = Claude::resumed(&world, first.agent_id.as_deref().unwrap());
    branch.talks("otherwise");
    let second = world.open().rewind_now("t4", &RewindOptions::default()).unwrap().conversation.unwrap();
    let left = prompt(&claude, "five").unwrap().left.unwrap();
    assert_eq!((left.turn, left.session), (4, second.session));
}
