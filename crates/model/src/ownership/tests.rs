use super::*;

fn step(session: u8, turn: u32, step: u32) -> StepRef {
    StepRef { session: SessionId::of("test", &session.to_string()), turn, step }
}

fn shell(at: StepRef, opened: i64) -> Window {
    Window {
        step: at,
        named: Vec::new(),
        says: false,
        opened: opened * SECOND,
        late: false,
        closed: None,
        background: false,
        along: false,
        part: None,
        failed: false,
    }
}

fn along(window: Window) -> Window {
    Window { along: true, ..window }
}

fn edit(at: StepRef, opened: i64, path: &str) -> Window {
    Window { named: vec![WorkspacePath::new(path).unwrap()], says: true, ..shell(at, opened) }
}

fn closed(window: Window, at: i64) -> Window {
    Window { closed: Some(at * SECOND), ..window }
}

fn failed(window: Window) -> Window {
    Window { failed: true, ..window }
}

/// A window of a session that works in a part of the workspace.
fn in_part(window: Window, part: &str) -> Window {
    Window { part: Some(WorkspacePath::new(part).unwrap()), ..window }
}

fn background(window: Window) -> Window {
    Window { background: true, ..window }
}

const SECOND: i64 = 1_000_000_000;

/// Who owns a change of `a.txt` at second `when`: `named 1.2.3`, `window 1.2.3`, `you`, or `unsure …`.
fn who(when: impl Into<Option<i64>>, was_yours: bool, windows: &[Window], moment: &Moment) -> String {
    let path = WorkspacePath::new("a.txt").unwrap();
    let when = when.into();
    let found = ObservedChange { path: &path, when: when.map(|s| s * SECOND), deleted: when.is_none(), was_yours };
    let name = |s: &StepRef| {
        let session = (0..9).find(|n| SessionId::of("test", &n.to_string()) == s.session).unwrap();
        format!("{session}.{}.{}", s.turn, s.step)
    };
    match owner(found, windows, moment) {
        Owner::Step { step, evidence: Evidence::Named } => format!("named {}", name(&step)),
        Owner::Step { step, evidence: Evidence::Window } => format!("window {}", name(&step)),
        Owner::You => "you".into(),
        Owner::Operation { .. } => "operation".into(),
        Owner::Unsure { candidates } => {
            let all: Vec<_> = candidates
                .iter()
                .map(|c| match c {
                    Candidate::Step(s) => name(s),
                    Candidate::You => "you".into(),
                })
                .collect();
            format!("unsure {}", all.join(" "))
        }
    }
}

#[test]
fn beside_a_tool_that_nobody_recorded_only_what_a_tool_names_is_sure() {
    let at = step(1, 1, 1);
    let of = |evidence| Owner::Step { step: at.clone(), evidence };
    let unsure = |candidates: &[Candidate]| Owner::Unsure { candidates: candidates.to_vec() };
    let both = unsure(&[Candidate::Step(at.clone()), Candidate::You]);
    for (owner, expected) in [
        (Owner::You, unsure(&[Candidate::You])),
        (of(Evidence::Window), both.clone()),
        (of(Evidence::Named), of(Evidence::Named)),
        (unsure(&[Candidate::Step(at.clone())]), both.clone()),
        (both.clone(), both.clone()),
        (unsure(&[]), unsure(&[])),
    ] {
        assert_eq!(beside_a_missed_tool(owner), expected);
    }
}

#[test]
fn every_situation_has_its_owner_and_a_doubt_is_said() {
    use Moment::{After, Between, Within};
    let (bash, edited, other) = (step(1, 1, 1), step(1, 1, 2), step(2, 4, 1));
    let within = Within(bash.session.clone(), 1);
    let after = |s: &StepRef| After(s.clone());
    for (story, owner, when, was_yours, windows, moment) in [
        ("no tool ran", "you", Some(5), false, vec![], Between),
        ("no tool ran, before a tool", "you", Some(5), false, vec![], within.clone()),
        (
            "a tool names the file",
            "named 1.1.2",
            Some(5),
            false,
            vec![edit(edited.clone(), 4, "a.txt")],
            after(&edited),
        ),
        ("a folder that it names", "named 1.1.2", Some(5), false, vec![edit(edited.clone(), 4, "")], after(&edited)),
        (
            "a tool that names the file failed",
            "unsure 1.1.2 you",
            Some(5),
            false,
            vec![failed(edit(edited.clone(), 4, "a.txt"))],
            after(&edited),
        ),
        (
            "it failed earlier in the turn",
            "unsure 1.1.2 you",
            Some(5),
            false,
            vec![failed(closed(edit(edited.clone(), 4, "a.txt"), 6))],
            within.clone(),
        ),
        (
            "no after event of an edit, the turn goes on",
            "unsure 1.1.2 you",
            Some(5),
            false,
            vec![edit(edited.clone(), 4, "a.txt")],
            within.clone(),
        ),
        ("a shell failed", "window 1.1.1", Some(5), false, vec![failed(shell(bash.clone(), 4))], after(&bash)),
        ("only a shell ran", "window 1.1.1", Some(5), false, vec![shell(bash.clone(), 4)], after(&bash)),
        ("a shell deleted it", "window 1.1.1", None, false, vec![shell(bash.clone(), 4)], after(&bash)),
        ("changed before the shell began", "you", Some(2), false, vec![shell(bash.clone(), 4)], after(&bash)),
        (
            "the user saves a file of theirs while a shell runs",
            "unsure 1.1.1 you",
            Some(5),
            true,
            vec![shell(bash.clone(), 4)],
            after(&bash),
        ),
        (
            "an edit of another file",
            "unsure 1.1.2 you",
            Some(5),
            false,
            vec![edit(edited.clone(), 4, "b.txt")],
            after(&edited),
        ),
        (
            "parallel calls, one names it",
            "named 1.1.2",
            Some(5),
            false,
            vec![shell(bash.clone(), 3), edit(edited.clone(), 4, "a.txt")],
            after(&edited),
        ),
        (
            "parallel calls, one names another file",
            "window 1.1.1",
            Some(5),
            false,
            vec![shell(bash.clone(), 3), edit(edited.clone(), 4, "b.txt")],
            after(&edited),
        ),
        (
            "parallel shells of one turn",
            "unsure 1.1.1 1.1.2",
            Some(5),
            false,
            vec![shell(bash.clone(), 3), shell(edited.clone(), 4)],
            after(&edited),
        ),
        (
            "the second shell began later",
            "window 1.1.1",
            Some(3),
            false,
            vec![shell(bash.clone(), 3), shell(edited.clone(), 4)],
            after(&edited),
        ),
        (
            "two calls name it",
            "unsure 1.1.1 1.1.2",
            Some(5),
            false,
            vec![edit(bash.clone(), 3, "a.txt"), edit(edited.clone(), 4, "a.txt")],
            after(&edited),
        ),
        (
            "shells of two sessions",
            "unsure 1.1.1 2.4.1 you",
            Some(5),
            false,
            vec![shell(bash.clone(), 3), shell(other.clone(), 4)],
            after(&bash),
        ),
        (
            "another session's shell runs, this one's edit names it",
            "named 1.1.2",
            Some(5),
            false,
            vec![edit(edited.clone(), 4, "a.txt"), shell(other.clone(), 3)],
            after(&edited),
        ),
        (
            "another session looks while a shell runs",
            "unsure 2.4.1 you",
            Some(5),
            false,
            vec![shell(other.clone(), 3)],
            within.clone(),
        ),
        ("a person asks while a shell runs", "unsure 1.1.1 you", Some(5), false, vec![shell(bash.clone(), 3)], Between),
        (
            "no after event, the turn goes on",
            "window 1.1.1",
            Some(5),
            false,
            vec![shell(bash.clone(), 3)],
            within.clone(),
        ),
        ("no after event, the next prompt", "unsure 1.1.1 you", Some(5), false, vec![shell(bash.clone(), 3)], Between),
        (
            "no after event of an edit, the next prompt",
            "unsure 1.1.2 you",
            Some(5),
            false,
            vec![edit(edited.clone(), 3, "a.txt")],
            Between,
        ),
        (
            "a gap at its end, the time tells",
            "window 1.1.1",
            Some(5),
            false,
            vec![closed(shell(bash.clone(), 4), 6)],
            Between,
        ),
        ("a gap at its end, later than that", "you", Some(8), false, vec![closed(shell(bash.clone(), 4), 6)], Between),
        (
            "a gap at its end, and nothing tells when",
            "unsure 1.1.1 you",
            None,
            false,
            vec![closed(shell(bash.clone(), 4), 6)],
            Between,
        ),
        (
            "a background command, at a prompt",
            "unsure 1.1.1 you",
            Some(5),
            false,
            vec![background(shell(bash.clone(), 3))],
            Between,
        ),
        (
            "a background command beside a shell",
            "unsure 1.1.1 1.1.2 you",
            Some(5),
            false,
            vec![background(shell(bash.clone(), 3)), shell(edited.clone(), 4)],
            after(&edited),
        ),
        (
            "a background command beside an edit that names it",
            "named 1.1.2",
            Some(5),
            false,
            vec![background(shell(bash.clone(), 3)), edit(edited.clone(), 4, "a.txt")],
            after(&edited),
        ),
        (
            "a background command has just returned",
            "window 1.1.1",
            Some(5),
            false,
            vec![background(shell(bash.clone(), 3))],
            after(&bash),
        ),
    ] {
        assert_eq!(who(when, was_yours, &windows, &moment), owner, "{story}");
    }
}

#[test]
fn what_nobody_saw_begin_and_what_went_at_an_unknown_time_is_in_doubt() {
    let (bash, path) = (step(1, 1, 1), WorkspacePath::new("a.txt").unwrap());
    let gone = |when: i64| ObservedChange { path: &path, when: Some(when * SECOND), deleted: true, was_yours: false };
    let changed = |when: i64| ObservedChange { deleted: false, ..gone(when) };
    let after = Moment::After(bash.clone());
    let is_sure = |found: ObservedChange<'_>, window: Window, moment: &Moment| match owner(found, &[window], moment) {
        Owner::Step { .. } => true,
        Owner::Unsure { candidates } => {
            assert_eq!(candidates.len(), 2);
            false
        }
        other => panic!("{other:?}"),
    };
    assert!(is_sure(gone(5), shell(bash.clone(), 4), &after));
    // Its folder changed once more after the shell had ended.
    assert!(!is_sure(gone(9), closed(shell(bash.clone(), 4), 6), &after));
    assert!(!is_sure(gone(9), closed(shell(bash.clone(), 4), 6), &Moment::Between));
    assert!(!is_sure(gone(5), closed(shell(bash.clone(), 4), 6), &Moment::Between));
    // Nothing was captured when it began: the user may have deleted or edited it before.
    assert!(!is_sure(gone(5), Window { late: true, ..shell(bash.clone(), 4) }, &after));
    assert!(!is_sure(changed(5), Window { late: true, ..shell(bash.clone(), 4) }, &after));
    assert!(!is_sure(changed(5), Window { late: true, ..edit(bash.clone(), 4, "a.txt") }, &after));
    // Its before event never arrived: only what it names is its own.
    assert!(!is_sure(changed(5), Window { opened: UNKNOWN, ..shell(bash.clone(), 0) }, &after));
    assert!(is_sure(changed(5), Window { opened: UNKNOWN, ..edit(bash.clone(), 0, "a.txt") }, &after));
    // A tool that names a file elsewhere says what it writes.
    assert!(!is_sure(changed(5), Window { says: true, ..shell(bash.clone(), 4) }, &after));
}

/// Two sessions run at once, and a capture is made before this one's tool has reported its end.
#[test]
fn a_tools_own_after_event_settles_what_somebody_else_found_while_it_ran() {
    let (mine, beside, other) = (step(1, 1, 1), step(1, 1, 2), step(2, 4, 1));
    let elsewhere = Moment::After(other.clone());
    for (story, expected, when, was_yours, windows, moment) in [
        (
            "it names the file, and another session's edit ends first",
            "named 1.1.1",
            Some(5),
            false,
            vec![edit(mine.clone(), 3, "a.txt"), edit(other.clone(), 4, "b.txt")],
            elsewhere.clone(),
        ),
        (
            "it names the file, and another session's shell ends first",
            "named 1.1.1",
            Some(5),
            false,
            vec![edit(mine.clone(), 3, "a.txt"), shell(other.clone(), 4)],
            elsewhere.clone(),
        ),
        (
            "it names a file of the user's",
            "named 1.1.1",
            Some(5),
            true,
            vec![edit(mine.clone(), 3, "a.txt")],
            Moment::Between,
        ),
        (
            "it deletes the file that it names",
            "named 1.1.1",
            None,
            false,
            vec![edit(mine.clone(), 3, "a.txt"), edit(other.clone(), 4, "b.txt")],
            elsewhere.clone(),
        ),
        (
            "a shell, and another session's edit of another file ends first",
            "window 1.1.1",
            Some(5),
            false,
            vec![shell(mine.clone(), 3), edit(other.clone(), 4, "b.txt")],
            elsewhere.clone(),
        ),
        ("a shell, and a person looks", "window 1.1.1", Some(5), false, vec![shell(mine.clone(), 3)], Moment::Between),
        (
            "a shell, and the file was the user's",
            "never",
            Some(5),
            true,
            vec![shell(mine.clone(), 3)],
            elsewhere.clone(),
        ),
        (
            "shells of two sessions",
            "never",
            Some(5),
            false,
            vec![shell(mine.clone(), 3), shell(other.clone(), 4)],
            elsewhere.clone(),
        ),
        (
            "two name it",
            "never",
            Some(5),
            false,
            vec![edit(mine.clone(), 3, "a.txt"), edit(beside.clone(), 4, "a.txt")],
            elsewhere.clone(),
        ),
        ("an edit of another file", "never", Some(5), false, vec![edit(mine.clone(), 3, "b.txt")], elsewhere.clone()),
        (
            "a command in the background",
            "never",
            Some(5),
            false,
            vec![background(shell(mine.clone(), 3))],
            elsewhere.clone(),
        ),
        (
            "its after event has been already",
            "never",
            None,
            false,
            vec![closed(shell(mine.clone(), 3), 6)],
            Moment::Between,
        ),
    ] {
        let path = WorkspacePath::new("a.txt").unwrap();
        let found = ObservedChange { path: &path, when: when.map(|s| s * SECOND), deleted: when.is_none(), was_yours };
        let doubt = owner(found, &windows, &moment);
        assert!(matches!(doubt, Owner::Unsure { .. }), "{story}: {doubt:?}");
        let settled = settles(&doubt, found, &windows).map(|settled| {
            assert_eq!(settled.step, mine, "{story}");
            let word = if settled.evidence == Evidence::Named { "named" } else { "window" };
            format!("{word} 1.1.1")
        });
        assert_eq!(settled.as_deref().unwrap_or("never"), expected, "{story}");
    }
}

#[test]
fn what_went_with_the_whole_folder_is_of_who_was_at_work_when_that_was_found() {
    let (mine, beside, other) = (step(1, 1, 1), step(1, 1, 2), step(2, 4, 1));
    let path = WorkspacePath::new("a.txt").unwrap();
    let of = |step: &StepRef| Owner::Step { step: step.clone(), evidence: Evidence::Window };
    let unsure = |candidates: Vec<Candidate>| Owner::Unsure { candidates };
    let (one, two, you) = (Candidate::Step(mine.clone()), Candidate::Step(beside.clone()), Candidate::You);
    let after = Moment::After(mine.clone());
    let shell_of = |step: &StepRef| closed(shell(step.clone(), 4), 6);
    for (story, expected, windows, moment) in [
        ("its own after event", of(&mine), vec![shell_of(&mine)], after.clone()),
        ("its turn's end", of(&mine), vec![shell(mine.clone(), 4)], Moment::Within(mine.session.clone(), 1)),
        (
            "another shell of the turn, which ended later",
            unsure(vec![one.clone(), two]),
            vec![shell_of(&mine), closed(shell(beside.clone(), 5), 9)],
            after.clone(),
        ),
        (
            "another session's shell",
            unsure(vec![one.clone(), Candidate::Step(other.clone()), you.clone()]),
            vec![shell_of(&mine), closed(shell(other.clone(), 5), 9)],
            after.clone(),
        ),
        (
            "it had ended when somebody looked",
            unsure(vec![one.clone(), you.clone()]),
            vec![shell_of(&mine)],
            Moment::Between,
        ),
        (
            "nothing was captured when it began",
            unsure(vec![one, you]),
            vec![Window { late: true, ..shell_of(&mine) }],
            after.clone(),
        ),
        ("nobody was at work", Owner::You, vec![], Moment::Between),
    ] {
        let went = FolderGone { moment, at: 7 * SECOND };
        assert_eq!(went.owner(&path, &windows), expected, "{story}");
    }
}

#[test]
fn a_shell_of_who_works_here_goes_before_one_of_who_works_elsewhere() {
    let (here, there) = (shell(step(1, 1, 1), 10), along(shell(step(2, 1, 1), 5)));
    let after = Moment::After(step(1, 1, 1));
    assert_eq!(who(12, false, &[there.clone(), here.clone()], &after), "window 1.1.1");
    assert_eq!(who(12, false, &[along(here.clone()), there.clone()], &after), "unsure 1.1.1 2.1.1 you");
    // Before the shell here was open, it was the other one.
    assert_eq!(who(7, false, &[there.clone(), here], &Moment::After(step(2, 1, 1))), "window 2.1.1");
    assert_eq!(who(7, false, &[there], &Moment::After(step(2, 1, 1))), "window 2.1.1");
}

/// Another session works in a workspace inside this one, which `a.txt` is in or not.
#[test]
fn a_tool_of_who_works_in_a_part_of_the_workspace_counts_there() {
    let (here, there) = (shell(step(1, 1, 1), 4), closed(shell(step(2, 1, 1), 4), 6));
    let after = Moment::After(step(1, 1, 1));
    let named = |part: &str| in_part(closed(edit(step(2, 1, 1), 4, "a.txt"), 6), part);
    for (story, expected, windows) in [
        ("both shells", "unsure 1.1.1 2.1.1", vec![here.clone(), in_part(there.clone(), "a.txt")]),
        ("its shell elsewhere", "window 1.1.1", vec![here.clone(), in_part(there.clone(), "b")]),
        ("its shell alone, elsewhere", "unsure 2.1.1 you", vec![in_part(there.clone(), "b")]),
        ("its shell alone", "window 2.1.1", vec![in_part(there, "a.txt")]),
        ("it names the file", "named 2.1.1", vec![here.clone(), named("a.txt")]),
        ("it names the file elsewhere", "named 2.1.1", vec![here, named("b")]),
        ("it names another", "you", vec![in_part(closed(edit(step(2, 1, 1), 4, "b/c"), 6), "b")]),
    ] {
        assert_eq!(who(5, false, &windows, &after), expected, "{story}");
    }
}

#[test]
fn candidates_of_one_turn_are_sure_for_that_turn() {
    let candidates = |all: Vec<Candidate>| Owner::Unsure { candidates: all };
    let (a, b, c) = (step(1, 1, 1), step(1, 1, 2), step(1, 2, 1));
    let one = candidates(vec![Candidate::Step(a.clone()), Candidate::Step(b)]);
    assert_eq!(one.turn(), Some((&a.session, 1)));
    assert_eq!(candidates(vec![Candidate::Step(a.clone()), Candidate::Step(c)]).turn(), None);
    assert_eq!(candidates(vec![Candidate::Step(a), Candidate::You]).turn(), None);
}
