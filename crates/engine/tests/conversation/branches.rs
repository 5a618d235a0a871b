//! What a person makes of branches: future turns, names, the main line, deleting and bringing back, comparing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use piton_engine::model::{Rank, Scope, SessionId};
use piton_engine::view::{LogEntry, SessionView, Timeline};
use piton_engine::{
    BranchError, Clock, CompareOptions, DeleteOptions, ForkOptions, OperationError, RedoOptions, RewindOptions,
    TimelineOptions,
};
use piton_host::fail;
use piton_testkit::{Claude, World, three_turns};

/// Goes back, and on in the branch.
fn rewound<'w>(world: &'w World, target: &str, scope: Scope) -> Claude<'w> {
    let options = RewindOptions { scope: Some(scope), ..RewindOptions::default() };
    let outcome = world.open().rewind_now(target, &options).unwrap();
    Claude::resumed(world, &outcome.conversation.unwrap().agent_id.unwrap())
}

/// A branch beside the line that goes on.
fn forked<'w>(world: &'w World, target: &str) -> Claude<'w> {
    let outcome = world.open().fork(target, &ForkOptions::default()).unwrap().outcome;
    Claude::resumed(world, &outcome.conversation.unwrap().agent_id.unwrap())
}

fn timeline(world: &World, future: bool) -> Timeline {
    world.open().timeline(&TimelineOptions { future, ..TimelineOptions::default() }).unwrap()
}

/// The prompts that the timeline shows, oldest first; future turns in brackets.
fn prompts(world: &World, future: bool) -> Vec<String> {
    let entries = timeline(world, future).entries.into_iter().rev();
    let turns = entries.filter_map(|entry| match entry {
        LogEntry::Turn(turn) => Some(turn),
        _ => None,
    });
    turns
        .map(|turn| {
            assert_eq!(turn.future, turn.passed_by.is_some());
            let prompt = turn.prompt.unwrap();
            if turn.future { format!("[{prompt}]") } else { prompt }
        })
        .collect()
}

fn session(world: &World, id: &SessionId) -> SessionView {
    world.open().sessions().unwrap().sessions.into_iter().find(|session| session.id == *id).unwrap()
}

fn delete(world: &World, claude: &Claude<'_>) -> Result<(), BranchError> {
    let options = DeleteOptions { sessions: vec![claude.id.clone()], older_than: None };
    world.open().delete_branches(&options).map(drop)
}

fn in_trash(world: &World, claude: &Claude<'_>) -> PathBuf {
    world.base().join("home/trash").join(claude.session().as_str()).join(format!("{}.jsonl", claude.id))
}

/// A clock that a test puts forward.
struct Moved(AtomicI64);

impl Clock for Moved {
    fn now_ns(&self) -> i64 {
        piton_engine::SystemClock.now_ns() + self.0.load(Ordering::SeqCst) * 1_000_000
    }
}

const DAY: i64 = 86_400_000;

#[test]
fn turns_that_a_rewind_went_past_are_future_until_it_is_taken_back() {
    let world = World::new();
    three_turns(&world);
    assert_eq!((prompts(&world, false), timeline(&world, false).future), (prompts(&world, true), 0));
    let branch = rewound(&world, "t3", Scope::Both);
    branch.talks("third, otherwise");
    assert_eq!(prompts(&world, false), ["first", "second", "third, otherwise"]);
    assert_eq!(prompts(&world, true), ["first", "second", "[third]", "third, otherwise"]);
    let shown = timeline(&world, false);
    assert_eq!((shown.future, shown.total), (1, timeline(&world, true).total - 1));
    world.redo();
    assert_eq!(prompts(&world, false), ["first", "second", "third", "third, otherwise"]);
    assert_eq!(timeline(&world, true).future, 0);
}

#[test]
fn going_back_again_and_again_marks_turns_of_every_depth_and_redo_unmarks_them_one_by_one() {
    let world = World::new();
    three_turns(&world);
    let branch = rewound(&world, "t3", Scope::Both);
    branch.talks("three");
    branch.talks("four");
    let twig = rewound(&world, "t2", Scope::Conversation);
    twig.talks("two");
    assert_eq!(prompts(&world, true), ["first", "[second]", "[third]", "[three]", "[four]", "two"]);
    world.redo();
    assert_eq!(prompts(&world, true), ["first", "second", "[third]", "three", "four", "two"]);
    world.redo();
    assert_eq!(prompts(&world, true), ["first", "second", "third", "three", "four", "two"]);
    // Before the first turn the conversation begins anew, and all of it is future.
    world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    assert_eq!(timeline(&world, false).future, 3);
}

#[test]
fn files_that_go_back_alone_and_a_fork_hide_no_turn() {
    let world = World::new();
    three_turns(&world);
    let options = RewindOptions { scope: Some(Scope::Code), ..RewindOptions::default() };
    world.open().rewind_now("t2", &options).unwrap();
    forked(&world, "t2");
    assert_eq!(timeline(&world, false).future, 0);
    assert_eq!(prompts(&world, false), ["first", "second", "third"]);
}

#[test]
fn a_session_has_another_name_where_that_is_one_and_nobody_elses() {
    let world = World::new();
    let claude = three_turns(&world);
    let branch = forked(&world, "t2");
    let mut workspace = world.open();
    workspace.rename_session(branch.session().as_str(), "try two").unwrap();
    workspace.rename_session(&claude.id, "the original").unwrap();
    assert_eq!(workspace.session_meant(Some("try two"), "").unwrap().session.id, branch.session());
    assert_eq!(session(&world, &claude.session()).name.as_deref(), Some("the original"));
    // The same again is no clash with itself.
    workspace.rename_session("try two", "try two").unwrap();
    let error = workspace.rename_session("try two", "the original").unwrap_err();
    assert!(matches!(&error, BranchError::NameTaken { session, .. } if *session == claude.session()), "{error}");
    for bad in ["", " ", "a\u{1b}[2J", "t5", "10m", "start", "@", "a:b", "-x", "kmzlopqrst", "two\nlines"] {
        let error = workspace.rename_session("try two", bad).unwrap_err();
        assert!(matches!(error, BranchError::Name { .. }), "{bad:?}: {error}");
    }
    assert!(matches!(workspace.rename_session("nobody", "x"), Err(BranchError::Target(_))));
    assert!(matches!(workspace.rename_session("try two", &claude.id), Err(BranchError::NameTaken { .. })));
}

#[test]
fn a_deleted_branch_comes_back_byte_for_byte_and_its_checkpoints_never_went() {
    let world = World::new();
    let claude = three_turns(&world);
    let branch = rewound(&world, "t3", Scope::Both);
    branch.edits("third, otherwise", &["b.txt"], |world| {
        world.write("b.txt", "b\n");
    });
    world.redo();
    let checkpoint = world.open().resolve(&format!("{}:t3", branch.id)).unwrap().checkpoint.id;
    let bytes = std::fs::read(branch.path()).unwrap();
    delete(&world, &branch).unwrap();
    assert!(!branch.path().exists());
    assert_eq!(std::fs::read(in_trash(&world, &branch)).unwrap(), bytes);
    assert_eq!(session(&world, &branch.session()).rank, Rank::Deleted);
    assert!(world.open().resolve(checkpoint.as_str()).is_ok());
    assert!(matches!(delete(&world, &branch), Err(BranchError::Deleted(_))));
    // Something else is in its place: nothing is overwritten.
    std::fs::write(branch.path(), "other").unwrap();
    let error = world.open().restore_branch(&branch.id).unwrap_err();
    assert!(matches!(error, BranchError::Occupied(_)), "{error}");
    assert_eq!(std::fs::read(branch.path()).unwrap(), b"other");
    std::fs::remove_file(branch.path()).unwrap();
    world.open().restore_branch(&branch.id).unwrap();
    assert_eq!(std::fs::read(branch.path()).unwrap(), bytes);
    assert!(!in_trash(&world, &branch).parent().unwrap().exists());
    assert_eq!(session(&world, &branch.session()).rank, Rank::Plain);
    assert!(matches!(world.open().restore_branch(&branch.id), Err(BranchError::NotDeleted(_))));
    assert!(claude.path().exists());
    world.assert_sound();
}

#[test]
fn only_a_branch_that_nobody_needs_is_deleted() {
    let world = World::new();
    let claude = three_turns(&world);
    assert!(matches!(delete(&world, &claude), Err(BranchError::NotABranch(_))));
    let branch = rewound(&world, "t3", Scope::Both);
    assert!(matches!(delete(&world, &branch), Err(BranchError::Current(_))));
    branch.talks("three");
    let twig = forked(&world, "t3");
    world.redo();
    // It said something and nobody heard of its end: the redo only left it.
    let error = delete(&world, &branch).unwrap_err();
    assert!(matches!(&error, BranchError::HasBranches { branches, .. } if *branches == [twig.session()]), "{error}");
    twig.talks("at work");
    claude.talks("at work too");
    assert!(matches!(delete(&world, &twig), Err(BranchError::Live(_))), "{:?}", delete(&world, &twig));
    assert!(branch.path().exists() && twig.path().exists());
}

#[test]
fn a_branch_goes_with_those_that_began_in_it() {
    let world = World::new();
    three_turns(&world);
    let branch = rewound(&world, "t3", Scope::Both);
    let twig = forked(&world, "t2");
    world.redo();
    let both = DeleteOptions { sessions: vec![branch.id.clone(), twig.id.clone()], older_than: None };
    let plan = world.open().plan_delete(&both).unwrap();
    assert_eq!((plan.branches.len(), plan.done), (2, false));
    assert!(branch.path().exists(), "a plan has no side effect");
    assert!(world.open().delete_branches(&both).unwrap().done);
    assert!(!branch.path().exists() && !twig.path().exists());
}

#[test]
fn old_branches_go_in_one_go_and_what_is_needed_stays_with_its_reason() {
    let clock = Arc::new(Moved(AtomicI64::new(0)));
    let world = World::with(|environment| environment.clock = clock.clone());
    let claude = three_turns(&world);
    let old = forked(&world, "t2");
    let parent = rewound(&world, "t3", Scope::Both);
    clock.0.store(40 * DAY, Ordering::SeqCst);
    let young = forked(&world, "t2");
    world.redo();
    let month = DeleteOptions { sessions: Vec::new(), older_than: Some(30 * DAY) };
    let plan = world.open().plan_delete(&month).unwrap();
    let ids = |sessions: &[SessionView]| sessions.iter().map(|session| session.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&plan.branches), [old.session()], "{plan:?}");
    assert_eq!(plan.stay.iter().map(|stay| stay.session.clone()).collect::<Vec<_>>(), [parent.session()]);
    assert!(plan.stay[0].why.contains("has branches of its own"), "{plan:?}");
    world.open().delete_branches(&month).unwrap();
    assert!(!old.path().exists() && parent.path().exists() && young.path().exists() && claude.path().exists());
    // Where the user is stays, however old it is.
    clock.0.store(80 * DAY, Ordering::SeqCst);
    world.open().rewind_now("t2", &RewindOptions::default()).unwrap();
    clock.0.store(120 * DAY, Ordering::SeqCst);
    let done = world.open().delete_branches(&month).unwrap();
    assert_eq!(done.branches.len(), 2, "{done:?}");
    assert!(done.stay[0].why.contains("where you are"), "{done:?}");
}

#[test]
fn a_crash_in_the_middle_of_a_deletion_can_be_ended_both_ways() {
    for again in [true, false] {
        let mut died = 0;
        for step in 1.. {
            let world = World::new();
            three_turns(&world);
            let branch = forked(&world, "t2");
            let bytes = std::fs::read(branch.path()).unwrap();
            if fail::with(step, || delete(&world, &branch).unwrap()).is_some() {
                break;
            }
            died += 1;
            assert!(branch.path().exists() || in_trash(&world, &branch).exists(), "step {step}: in neither place");
            let is_deleted = session(&world, &branch.session()).rank == Rank::Deleted;
            if again {
                // Where the file had gone already there is nothing left to do, and that is said.
                let ended = delete(&world, &branch);
                assert!(ended.is_ok() || matches!(ended, Err(BranchError::Deleted(_))), "step {step}: {ended:?}");
                assert!(!branch.path().exists(), "step {step}");
                assert_eq!(std::fs::read(in_trash(&world, &branch)).unwrap(), bytes);
                assert_eq!(session(&world, &branch.session()).rank, Rank::Deleted);
            } else if is_deleted {
                world.open().restore_branch(&branch.id).unwrap();
                assert_eq!(std::fs::read(branch.path()).unwrap(), bytes);
                assert_eq!(session(&world, &branch.session()).rank, Rank::Plain);
            } else {
                assert_eq!(std::fs::read(branch.path()).unwrap(), bytes, "step {step}: nothing was begun");
            }
            world.assert_sound();
        }
        assert!(died >= 3, "only {died} steps: are the failpoints there?");
    }
}

#[test]
fn a_crash_in_the_middle_of_bringing_back_can_be_repeated() {
    let mut died = 0;
    for step in 1.. {
        let world = World::new();
        three_turns(&world);
        let branch = forked(&world, "t2");
        let bytes = std::fs::read(branch.path()).unwrap();
        delete(&world, &branch).unwrap();
        if fail::with(step, || world.open().restore_branch(&branch.id).unwrap()).is_some() {
            break;
        }
        died += 1;
        let again = world.open().restore_branch(&branch.id);
        assert!(again.is_ok() || matches!(again, Err(BranchError::NotDeleted(_))), "step {step}: {again:?}");
        assert_eq!(std::fs::read(branch.path()).unwrap(), bytes, "step {step}");
        assert_eq!(session(&world, &branch.session()).rank, Rank::Plain);
    }
    assert!(died >= 2, "only {died} steps: are the failpoints there?");
}

#[test]
fn a_transcript_that_is_a_link_or_elsewhere_is_not_moved_and_nothing_is_recorded() {
    let world = World::new();
    three_turns(&world);
    let branch = forked(&world, "t2");
    let moved = world.base().join("moved.jsonl");
    std::fs::rename(branch.path(), &moved).unwrap();
    std::os::unix::fs::symlink(&moved, branch.path()).unwrap();
    let error = delete(&world, &branch).unwrap_err();
    assert!(matches!(error, BranchError::Transcript(_)), "{error}");
    assert_eq!(session(&world, &branch.session()).rank, Rank::Plain);
    assert!(moved.exists() && branch.path().symlink_metadata().unwrap().is_symlink());
    let world = World::new();
    three_turns(&world);
    let branch = forked(&world, "t2");
    // The agent keeps its transcripts elsewhere now.
    let other = World::at(world.base(), |environment| environment.transcripts.clear());
    let error = delete(&other, &branch).unwrap_err();
    assert!(matches!(error, BranchError::Transcript(_)), "{error}");
    assert_eq!(session(&world, &branch.session()).rank, Rank::Plain);
    assert!(branch.path().exists());
}

#[test]
fn a_branch_becomes_the_main_line_and_the_old_one_can_be_it_again() {
    let world = World::new();
    let claude = three_turns(&world);
    let alone = world.open().promote(&claude.id).unwrap_err();
    assert!(matches!(alone, BranchError::Alone(_)), "{alone}");
    let branch = rewound(&world, "t3", Scope::Both);
    branch.talks("three");
    let twig = forked(&world, "t3");
    let ranks = || [&claude, &branch, &twig].map(|one| session(&world, &one.session()).rank);
    let promoted = world.open().promote(&twig.id).unwrap();
    assert_eq!((promoted.archived.len(), promoted.already), (2, false));
    assert_eq!(ranks(), [Rank::Archived, Rank::Archived, Rank::Main]);
    assert!(world.open().promote(&twig.id).unwrap().already);
    let back = world.open().promote(&claude.id).unwrap();
    assert_eq!(back.archived.iter().map(|session| &session.id).collect::<Vec<_>>(), [&twig.session()]);
    assert_eq!(ranks(), [Rank::Main, Rank::Archived, Rank::Archived]);
    assert!([&claude, &branch, &twig].iter().all(|one| one.path().exists()), "their files stay");
    delete(&world, &twig).unwrap();
    assert!(matches!(world.open().promote(&twig.id), Err(BranchError::Deleted(_))));
    world.assert_sound();
}

#[test]
fn two_branches_are_compared_from_where_they_parted() {
    let world = World::new();
    let claude = three_turns(&world);
    let branch = rewound(&world, "t3", Scope::Both);
    branch.edits("third, otherwise", &["b.txt"], |world| {
        world.write("b.txt", "b\n");
    });
    branch.talks("fourth");
    let workspace = world.open();
    let compared = workspace.compare(&claude.id, &branch.id, CompareOptions::default()).unwrap();
    let parted = compared.parted.unwrap();
    assert_eq!((parted.session, parted.turn), (claude.session(), 3));
    let prompts = |turns: &[piton_engine::view::TurnView]| {
        turns.iter().map(|turn| (turn.number, turn.prompt.clone().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(prompts(&compared.turns_a), [(3, "third".into())]);
    assert_eq!(prompts(&compared.turns_b), [(3, "third, otherwise".into()), (4, "fourth".into())]);
    assert_eq!(compared.turns_b[0].files[0].path.path, "b.txt");
    // The end of the one is before the rewind, not what the rewind made of it.
    let changes = compared.diff.unwrap().changes;
    assert_eq!((changes.created, changes.modified, changes.deleted), (1, 1, 0), "b.txt came, a.txt has a line less");
    // Two branches of one parent.
    drop(workspace);
    world.redo();
    let other = forked(&world, "t2");
    let compared = world.open().compare(&branch.id, &other.id, CompareOptions::default()).unwrap();
    let parted = compared.parted.unwrap();
    assert_eq!((parted.session, parted.turn), (claude.session(), 2));
    assert_eq!(prompts(&compared.turns_a)[0], (2, "second".into()));
    // In the other nothing was done yet: it ends where it began.
    assert!(compared.turns_b.is_empty() && compared.diff.is_some());
    assert_eq!(compared.end_b, Some(world.open().resolve(&format!("{}:t2", claude.id)).unwrap().checkpoint.id));
    let same = world.open().compare(&branch.id, &branch.id, CompareOptions::default()).unwrap_err();
    assert!(matches!(same, BranchError::SameSession(_)), "{same}");
    // Two that have nothing in common.
    let stranger = Claude::new(&world, 2);
    stranger.talks("hello");
    let compared = world.open().compare(&stranger.id, &claude.id, CompareOptions::default()).unwrap();
    assert!(compared.parted.is_none() && compared.turns_b.len() == 3 && compared.diff.is_some());
}

#[test]
fn a_conversation_has_no_more_branches_than_its_limit_and_deleting_makes_room() {
    let world = World::with(|environment| environment.most_branches = 2);
    three_turns(&world);
    let first = forked(&world, "t2");
    forked(&world, "t2");
    let error = world.open().fork("t2", &ForkOptions::default()).unwrap_err();
    assert!(error.to_string().contains("2 branches, as many"), "{error}");
    let options = RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() };
    let error = world.open().rewind_now("t2", &options).unwrap_err();
    assert!(matches!(error, OperationError::TooManyBranches(2)), "{error}");
    delete(&world, &first).unwrap();
    world.open().rewind_now("t2", &options).unwrap();
    world.open().redo_now(&RedoOptions::default()).unwrap();
}

/// A bulk delete used to take the promoted main line along without a word.
#[test]
fn the_main_line_goes_only_by_its_name() {
    let clock = Arc::new(Moved(AtomicI64::new(0)));
    let world = World::with(|environment| environment.clock = clock.clone());
    three_turns(&world);
    let main = forked(&world, "t2");
    world.open().promote(&main.id).unwrap();
    clock.0.store(40 * DAY, Ordering::SeqCst);
    let month = DeleteOptions { sessions: Vec::new(), older_than: Some(30 * DAY) };
    let plan = world.open().plan_delete(&month).unwrap();
    assert!(plan.branches.is_empty() && plan.stay[0].why.ends_with("is the main line"), "{plan:?}");
    delete(&world, &main).unwrap();
    assert!(!main.path().exists());
}
