//! Random sessions of two agents and a user, against a model that knows only who wrote each line.
//!
//! Every line is written once and says by whom, so whatever is done to files, moved, copied or deleted, the folder itself tells
//! what is left of whom. The model knows nothing of merging, of moves or of piton:
//!
//! - no line of the user's leaves the folder by an operation that takes back others' work, unless a decided conflict named its file,
//!   or the operation before it that is taken back had brought it;
//! - a rewind that carries nothing over names each file from which a line of the user's goes, and so does nothing where nobody may
//!   overwrite anything (`Policy::Careful`);
//! - what is taken back without a conflict leaves no line of it behind, but for what somebody else carried elsewhere;
//! - a conflict over lines that were carried is about lines that stood in the file that it names;
//! - what was taken out of a plan stays as it is, and so does what is not asked for;
//! - a preview tells what the act does, path by path, and an act that is refused changes nothing;
//! - every success redoes byte for byte, and done once more it comes to the same.
//!
//! `PITON_LINES_SECONDS=3600` runs it for an hour, `PITON_LINES_SEED=17` one session alone, `PITON_LINES_FIRST=900` from there
//! on; `PITON_LINES_GO_ON=1` goes on after a fault.

pub mod asked;
pub mod play;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::model::{OperationVerb, Owner, WorkspacePath};
use piton_engine::view::{ChangedFile, OperationOutcome, PathView, PlanView};
use piton_engine::{ChosenError, OperationError, RedoOptions, Refusal};
use piton_testkit::{Agent, Snapshot, World};

use asked::{AllDone, Asked, Done, Question, path, question};
use play::{COMMON, FIRST, PATHS, Play, SESSIONS, part};

/// The lines of a folder, with the paths that they are at.
type Lines = BTreeMap<String, BTreeSet<String>>;

fn lines_of(snapshot: &Snapshot, play: &Play<'_>) -> Lines {
    let mut lines = Lines::new();
    for path in play.files() {
        let Some(bytes) = snapshot.bytes(&path) else { continue };
        for line in String::from_utf8_lossy(bytes).lines() {
            lines.entry(line.to_owned()).or_default().insert(path.clone());
        }
    }
    lines
}

fn session(seed: u64) {
    let world = World::new();
    let agents = SESSIONS.map(|session| Agent::new(&world, session));
    let mut play = Play::begin(&world, seed);
    let first = 1 + play.dice.below(6);
    for _ in 0..first {
        part(&mut play, &agents);
    }
    let mut done = AllDone::default();
    let rounds = 1 + play.dice.below(4);
    for _ in 0..rounds {
        operation(&mut play, &agents, &mut done);
        if play.dice.below(4) == 0 {
            part(&mut play, &agents);
            done.before_hands = done.all.len();
        }
    }
    let left = &done.all[done.before_hands..];
    let has_redo = left.iter().any(|one| one.is_redo);
    for one in left.iter().rev() {
        assert!(world.snapshot() == one.after, "{}", play.story());
        // Of operations alone the last one is meant.
        take_back(&mut play, one, has_redo);
    }
    world.assert_sound();
}

/// Takes back an operation right after it was done.
fn take_back(play: &mut Play<'_>, one: &Done, is_named: bool) -> OperationOutcome {
    let operation = is_named.then(|| one.id.to_string());
    let outcome = play.world.open().redo_now(&RedoOptions { operation, ..RedoOptions::default() });
    let outcome = outcome.unwrap_or_else(|e| panic!("redo: {e}\n{}", play.story()));
    assert!(outcome.verified, "redo: {outcome:?}\n{}", play.story());
    play.told.push("redo".to_owned());
    assert_same(play, &one.before, "a redo");
    outcome
}

fn assert_same(play: &Play<'_>, expected: &Snapshot, after: &str) {
    let now = play.world.snapshot();
    let differences = || now.differences(expected).join("\n");
    assert!(now == *expected, "is | should be after {after}:\n{}\n{}", differences(), play.story());
}

/// Asks for something and checks what comes of it.
fn operation(play: &mut Play<'_>, agents: &[Agent<'_>; 2], done: &mut AllDone) {
    let Some(mut question) = question(play, agents, done) else { return };
    play.told.push(question.told.clone());
    let world = play.world;
    let before = world.snapshot();
    let had = lines_of(&before, play);
    let had_counts = play.counts();
    let mut excepted = None;
    let (plan, refusal) = loop {
        let plan = match question.asked.plan(world) {
            Ok(plan) => plan,
            Err(
                OperationError::Chosen(ChosenError::Nothing { .. })
                | OperationError::Target(_)
                | OperationError::NotStanding(_),
            ) => return,
            Err(error) => panic!("plan: {error}\n{}", play.story()),
        };
        let view = plan.view().clone();
        let changes: Vec<_> = [&view.created, &view.restored, &view.deleted].into_iter().flatten().collect();
        if excepted.is_none() && !changes.is_empty() && play.dice.below(6) == 0 {
            let one = play.dice.one_of(&changes).path.clone();
            question.asked.settle().except.paths = vec![path(&one)];
            play.told.push(format!("  --except {one}"));
            excepted = Some(one);
            continue;
        }
        let refusal = world.open().refusal(&plan, question.policy);
        break (view, refusal);
    };
    assert!(world.snapshot() == before, "a plan changed something\n{}", play.story());
    check_claims(&plan, &had, play);
    if let Some(Refusal::Others(_)) = refusal {
        play.told.push("  refused".to_owned());
        return;
    }
    let settle = question.asked.settle().clone();
    let outcome = match question.asked.act(world) {
        Ok(outcome) => outcome,
        Err(OperationError::Conflict(_)) => {
            let is_open = plan.conflicts.iter().any(|conflict| !conflict.decided);
            assert!(is_open && !settle.partial, "refused, and not so in the preview: {plan:?}\n{}", play.story());
            assert!(world.snapshot() == before, "refused, and changed something\n{}", play.story());
            play.told.push("  in conflict".to_owned());
            return;
        }
        Err(error) => panic!("{error}\n{}", play.story()),
    };
    assert!(outcome.verified, "{outcome:?}\n{}", play.story());
    play.captures();
    play.look();
    let after = world.snapshot();
    check_preview(&plan, &outcome, &before, &after, play);
    for stays in excepted.iter().chain(plan.excepted.iter().map(|path| &path.path)) {
        let all = |state: &Snapshot| (state.has(stays), state.bytes(stays).map(<[u8]>::to_vec), state.beneath(stays));
        assert!(all(&before) == all(&after), "{stays} was taken out, and changed\n{}", play.story());
    }
    let has = lines_of(&after, play);
    let named: BTreeSet<WorkspacePath> = plan
        .conflicts
        .iter()
        .filter(|conflict| conflict.decided && settle.conflicts != Some(Decision::Markers))
        .flat_map(|conflict| conflict.others.iter().chain([&conflict.path]))
        .chain(plan.others.iter().map(|file| &file.path))
        .filter_map(PathView::exact)
        .collect();
    let is_named = |one: &String| named.iter().any(|named| path(one).is_within(named));
    let lost: Vec<_> = had
        .iter()
        .filter(|(line, _)| (line.starts_with("user ") || line.ends_with(FIRST)) && !has.contains_key(*line))
        .filter(|(line, _)| !(play.copied.contains(*line) && play.dropped.contains(*line)))
        .filter(|(line, _)| !question.may_go.contains(*line))
        .filter(|(_, paths)| !paths.iter().all(is_named))
        .collect();
    assert!(lost.is_empty(), "lines of the user's that are gone: {lost:?}\n{outcome:?}\n{}", play.story());
    // With `ours`, lines stay that count as taken back from then on; with `theirs`, a file comes back as somebody deleted it, with
    // lines that were taken back since.
    play.is_marked |= settle.conflicts.is_some() && !plan.conflicts.is_empty();
    check_all_went(&question, (&plan, &outcome), (&had, &has), play);
    if let Some(back_to) = question.back_to.as_ref().filter(|_| plan.conflicts.is_empty() && excepted.is_none()) {
        assert_same(play, back_to, "what takes everything back");
    }
    let has_counts = play.counts();
    let more = has_counts.into_iter().filter(|(line, count)| had_counts.get(line).is_none_or(|had| had < count));
    play.copied.extend(more.map(|(line, _)| line));
    let Some(operation) = outcome.operation else { return };
    let is_redo = matches!(question.asked, Asked::Redo(_));
    done.all.push(Done { id: operation.id, about: question.about.clone(), before, after, is_redo });
    if play.dice.below(4) == 0 {
        again(&question, play, done);
    }
}

/// Takes what was just done back and does it once more.
fn again(question: &Question, play: &mut Play<'_>, done: &mut AllDone) {
    let Some(last) = done.all.last() else { return };
    let (about, before, after) = (last.about.clone(), last.before.clone(), last.after.clone());
    let (is_redo, taken_back) = (last.is_redo, take_back(play, last, last.is_redo));
    let acted = question.asked.act(play.world);
    play.told.push("the same again".to_owned());
    let acted = acted.unwrap_or_else(|e| panic!("the same again: {e}\n{}", play.story()));
    assert_same(play, &after, &format!("the same again ({:?})", acted.conflicts));
    play.captures();
    for (operation, before, after, is_redo) in [(taken_back, &after, &before, true), (acted, &before, &after, is_redo)]
    {
        let id = operation.operation.unwrap_or_else(|| panic!("nothing was done\n{}", play.story())).id;
        done.all.push(Done { id, about: about.clone(), before: before.clone(), after: after.clone(), is_redo });
    }
}

/// Of turns that are taken back as a whole, nothing is left.
fn check_all_went(
    question: &Question,
    (plan, outcome): (&PlanView, &OperationOutcome),
    (had, has): (&Lines, &Lines),
    play: &Play<'_>,
) {
    // What may be the user's is carried over by a rewind, and left alone by an undo.
    let is_unsure = |file: &ChangedFile| matches!(file.owner, Owner::Unsure { .. });
    let is_sure = plan.unsure.is_empty() && !plan.carried.iter().any(is_unsure);
    let is_whole = plan.conflicts.is_empty() && plan.not_done.is_empty() && plan.excepted.is_empty();
    let (Some((n, from, to)), true) = (question.taken, is_whole && is_sure && !play.is_marked) else { return };
    let is_of = |line: &&String| {
        let turn = line
            .strip_prefix(SESSIONS[n])
            .and_then(|rest| rest.strip_prefix("/t"))
            .and_then(|rest| rest.split_once(' ').and_then(|(turn, _)| turn.parse::<u32>().ok()));
        turn.is_some_and(|turn| (from..=to).contains(&turn))
    };
    // What somebody else put there, or another turn, is theirs.
    let by_others = |line: &&String| {
        let is_taken =
            |hand: &Option<(usize, u32)>| hand.is_some_and(|(agent, turn)| agent == n && (from..=to).contains(&turn));
        play.carriers.get(*line).is_some_and(|hands| !hands.iter().all(is_taken))
    };
    let is_left = |line: &&String| is_of(line) && had.contains_key(*line) && !by_others(line);
    let left = has.iter().filter(|(line, _)| is_left(line));
    let left: Vec<_> = left.collect();
    assert!(left.is_empty(), "lines that were to go: {left:?}\n{outcome:?}\n{}", play.story());
}

/// Of lines that are said to come from another file, some stood there.
fn check_claims(plan: &PlanView, had: &Lines, play: &Play<'_>) {
    for conflict in plan.conflicts.iter().filter(|conflict| conflict.why == Why::Lines) {
        let is_so = had.iter().any(|(line, paths)| {
            let is_common = COMMON.iter().any(|common| common.trim_end() == line);
            let stood = |other: &PathView| play.stood.get(line).is_some_and(|stood| stood.contains(&other.path));
            !is_common && paths.contains(&conflict.path.path) && conflict.others.iter().any(stood)
        });
        assert!(is_so, "a conflict that is none: {conflict:?}\n{}", play.story());
    }
}

/// A preview names just the paths that change, and they are among those that were asked for.
fn check_preview(plan: &PlanView, outcome: &OperationOutcome, before: &Snapshot, after: &Snapshot, play: &Play<'_>) {
    let story = || play.story();
    let lists =
        |lists: [&Vec<PathView>; 3]| lists.map(|list| list.iter().map(|p| p.path.clone()).collect::<BTreeSet<_>>());
    let planned = lists([&plan.created, &plan.restored, &plan.deleted]);
    let acted = lists([&outcome.created, &outcome.restored, &outcome.deleted]);
    assert_eq!(planned, acted, "a preview and its act\n{}", story());
    // A folder comes and goes with what it holds.
    let is_of = |known: &String, path: &str| known == path || known.starts_with(&format!("{path}/"));
    let is_known = |path: &str| planned.iter().flatten().any(|known| is_of(known, path));
    for path in PATHS {
        let same = before.bytes(path) == after.bytes(path) && before.has(path) == after.has(path);
        assert!(same || is_known(path), "{path} changed and is not in the preview: {planned:?}\n{}", story());
    }
    // An undo follows a file that was asked for to where it is now.
    if !plan.paths.is_empty() && plan.kind == OperationVerb::Rewind {
        let along = plan.along.iter().map(|along| &along.path);
        let asked: Vec<_> = plan.paths.iter().chain(along).filter_map(PathView::exact).collect();
        for one in planned.iter().flatten() {
            let one = path(one);
            let is_asked = asked.iter().any(|asked| one.is_within(asked) || asked.is_within(&one));
            assert!(is_asked, "{} was not asked for\n{}", one.display(), story());
        }
    }
}

#[test]
fn no_line_of_the_user_is_lost_and_none_of_what_is_taken_back_stays() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("PITON_LINES_SEED") {
        session(seed);
        return;
    }
    // Without being asked for more, a minute of always the same ones.
    let asked = number("PITON_LINES_SECONDS");
    let share = Duration::from_secs(asked.unwrap_or(60));
    let most = if asked.is_some() { u64::MAX } else { 500 };
    let first = number("PITON_LINES_FIRST").unwrap_or(1);
    // In a long run faults are gathered, so that one does not hide the next.
    let goes_on = number("PITON_LINES_GO_ON").is_some();
    let began = Instant::now();
    let mut seed = first;
    let mut failed = Vec::new();
    while began.elapsed() < share && seed - first < most {
        if std::panic::catch_unwind(|| session(seed)).is_err() {
            println!("PITON_LINES_SEED={seed} runs it alone ({} sessions done)", seed - first);
            failed.push(seed);
            if !goes_on {
                break;
            }
        }
        seed += 1;
        if asked.is_some() && (seed - first).is_multiple_of(100) {
            println!("{} sessions done, {} failed", seed - first, failed.len());
        }
    }
    println!("whose lines: {} sessions", seed - first);
    assert!(failed.is_empty(), "PITON_LINES_SEED={} runs it alone, of {failed:?}", failed[0]);
}
