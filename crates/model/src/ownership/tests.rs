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
        cut_off: false,
        background: false,
        command: None,
        attended: false,
        followed_until: None,
        past: false,
        prompted: 0,
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
    let found = seen(&path, when, was_yours);
    told(&owner(found, windows, moment))
}

/// What is seen of a path; deleted where no time is given.
fn seen(path: &WorkspacePath, when: Option<i64>, was_edited: bool) -> ObservedChange<'_> {
    let hand_edit = was_edited.then_some(SECOND);
    ObservedChange { when: when.map(|s| s * SECOND), deleted: when.is_none(), hand_edit, ..ObservedChange::of(path) }
}

/// An owner in a few words.
fn told(owner: &Owner) -> String {
    let name = |s: &StepRef| {
        let session = (0..9).find(|n| SessionId::of("test", &n.to_string()) == s.session).unwrap();
        format!("{session}.{}.{}", s.turn, s.step)
    };
    match owner {
        Owner::Step { step, evidence } => format!("{} {}", evidence.as_str(), name(step)),
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
            "window 1.1.2",
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
    let gone = |when: i64| ObservedChange { when: Some(when * SECOND), deleted: true, ..ObservedChange::of(&path) };
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
            "it names the file, and another session's tests end first",
            "named 1.1.1",
            Some(5),
            false,
            vec![edit(mine.clone(), 3, "a.txt"), running(other.clone(), "npm test")],
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
        let found = seen(&path, when, was_yours);
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
        ("both shells", "unsure 1.1.1 2.1.1 you", vec![here.clone(), in_part(there.clone(), "a.txt")]),
        ("its shell elsewhere", "window 1.1.1", vec![here.clone(), in_part(there.clone(), "b")]),
        ("its shell alone, elsewhere", "unsure 2.1.1 you", vec![in_part(there.clone(), "b")]),
        ("its shell alone", "window 2.1.1", vec![in_part(there, "a.txt")]),
        ("it names the file", "named 2.1.1", vec![here.clone(), named("a.txt")]),
        ("it names the file elsewhere", "named 2.1.1", vec![here, named("b")]),
        ("it names the file, beside tests", "named 2.1.1", vec![running(step(1, 1, 1), "npm test"), named("b")]),
        (
            "its shell elsewhere, beside an edit",
            "named 1.1.1",
            vec![edit(step(1, 1, 1), 4, "a.txt"), in_part(closed(shell(step(2, 1, 1), 4), 6), "b")],
        ),
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

/// A shell that runs a command in the workspace's root, from second 4 on.
fn running(at: StepRef, command: &str) -> Window {
    let command = Command {
        class: CommandClass::of(command),
        root: b"/home/dev/work".to_vec(),
        folder: b"/home/dev/work".to_vec(),
    };
    Window { command: Some(command), ..shell(at, 4) }
}

/// An edit tool that ended at second 4, and whose batch ends at second 8.
fn edited_before(at: StepRef, path: &str) -> Window {
    Window { followed_until: Some(8 * SECOND), past: true, prompted: 2 * SECOND, ..closed(edit(at, 3, path), 4) }
}

fn cut_off(window: Window, end: Option<i64>) -> Window {
    Window { cut_off: true, closed: end.map(|s| s * SECOND), ..window }
}

/// The rows of the table, each with the situations that it is about; what changes is `a.txt`.
#[test]
fn each_row_of_the_table_decides_what_no_row_before_it_does() {
    use Moment::{After, Between, Within};
    let (one, two, other) = (step(1, 1, 1), step(1, 1, 2), step(2, 4, 1));
    let path = WorkspacePath::new("a.txt").unwrap();
    let at = |second: i64| ObservedChange { when: Some(second * SECOND), ..ObservedChange::of(&path) };
    let saved = ObservedChange { hand_edit: Some(3 * SECOND), ..at(5) };
    let earlier = ObservedChange { hand_edit: Some(SECOND), ..at(5) };
    let open_in_editor = ObservedChange { is_open_in_editor: true, ..at(5) };
    let as_in_git = ObservedChange { is_as_in_git: true, ..at(5) };
    let created = ObservedChange { created: true, ..at(5) };
    let gone = ObservedChange { deleted: true, ..at(9) };
    let undated = ObservedChange { deleted: true, ..ObservedChange::of(&path) };
    let within = Within(one.session.clone(), 1);
    let run = |command: &str| running(one.clone(), command);
    let attended = |command: &str| Window { attended: true, ..run(command) };
    let (sed, make, test) = (run("sed -i s/a/b/ *.txt"), run("make"), run("npm test"));
    let own = After(one.clone());
    let mut rows = std::collections::BTreeSet::new();
    for (row, story, expected, found, windows, moment) in [
        (1, "it names the path", "named 1.1.1", at(5), vec![edit(one.clone(), 4, "a.txt")], own.clone()),
        (1, "and was edited by hand", "named 1.1.1", saved, vec![edit(one.clone(), 4, "a.txt")], own.clone()),
        (
            1,
            "and a shell writes it",
            "named 1.1.2",
            at(5),
            vec![sed.clone(), edit(two.clone(), 4, "a.txt")],
            After(two.clone()),
        ),
        (
            1,
            "two name it",
            "unsure 1.1.1 1.1.2",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), edit(two.clone(), 4, "a.txt")],
            After(two.clone()),
        ),
        (
            1,
            "and another session's shell writes it",
            "unsure 1.1.1 2.4.1",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), running(other.clone(), "sed -i s/a/b/ a.txt")],
            own.clone(),
        ),
        (
            1,
            "and another session's shell ends, which writes it",
            "unsure 1.1.1 2.4.1 you",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), running(other.clone(), "sed -i s/a/b/ a.txt")],
            After(other.clone()),
        ),
        (
            1,
            "and another session's command may write it",
            "named 1.1.1",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), running(other.clone(), "make")],
            own.clone(),
        ),
        (
            1,
            "and another session's command is idle",
            "named 1.1.1",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), running(other.clone(), "npm test")],
            own.clone(),
        ),
        (
            1,
            "and another session's command ended before",
            "named 1.1.1",
            at(5),
            vec![edit(one.clone(), 2, "a.txt"), closed(running(other.clone(), "sed -i s/a/b/ a.txt"), 4)],
            own.clone(),
        ),
        (
            1,
            "and another session's server runs in the background",
            "named 1.1.1",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), background(running(other.clone(), "make"))],
            own.clone(),
        ),
        (
            1,
            "and another session's writer runs in the background",
            "unsure 1.1.1 2.4.1",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), background(running(other.clone(), "sed -i s/a/b/ a.txt"))],
            own.clone(),
        ),
        (
            1,
            "two sessions name it",
            "unsure 1.1.1 2.4.1 you",
            at(5),
            vec![edit(one.clone(), 4, "a.txt"), edit(other.clone(), 4, "a.txt")],
            own.clone(),
        ),
        (2, "a formatter after it", "followed 1.1.1", at(6), vec![edited_before(one.clone(), "a.txt")], within.clone()),
        (
            2,
            "the user edited it before the prompt",
            "followed 1.1.1",
            earlier,
            vec![edited_before(one.clone(), "a.txt")],
            within.clone(),
        ),
        (
            2,
            "beside its own event",
            "followed 1.1.1",
            at(6),
            vec![Window { past: false, ..edited_before(one.clone(), "a.txt") }],
            own.clone(),
        ),
        (
            2,
            "its own shell runs too",
            "followed 1.1.1",
            at(6),
            vec![edited_before(one.clone(), "a.txt"), running(two.clone(), "make")],
            within.clone(),
        ),
        (
            2,
            "the last of two edits",
            "followed 1.1.2",
            at(6),
            vec![
                edited_before(one.clone(), "a.txt"),
                Window { closed: Some(5 * SECOND), ..edited_before(two.clone(), "a.txt") },
            ],
            within.clone(),
        ),
        (
            2,
            "another session's shell runs",
            "unsure 1.1.1 2.4.1",
            at(6),
            vec![edited_before(one.clone(), "a.txt"), running(other.clone(), "make")],
            within.clone(),
        ),
        (
            2,
            "another session's tests run",
            "followed 1.1.1",
            at(6),
            vec![edited_before(one.clone(), "a.txt"), running(other.clone(), "npm test")],
            within.clone(),
        ),
        (
            3,
            "edited by hand since the prompt",
            "unsure 1.1.1 you",
            saved,
            vec![edited_before(one.clone(), "a.txt")],
            within.clone(),
        ),
        (3, "another path", "unsure 1.1.1 you", at(6), vec![edited_before(one.clone(), "b.txt")], within.clone()),
        (3, "the batch has ended", "you", at(9), vec![edited_before(one.clone(), "a.txt")], within.clone()),
        (4, "a writer", "window 1.1.1", at(5), vec![sed.clone()], own.clone()),
        (4, "of a file that was edited by hand", "window 1.1.1", saved, vec![sed.clone()], own.clone()),
        (4, "of one that an editor has open", "window 1.1.1", open_in_editor, vec![sed.clone()], own.clone()),
        (4, "a formatter of all files", "window 1.1.1", saved, vec![run("npx prettier --write .")], own.clone()),
        (
            4,
            "beside another shell",
            "window 1.1.1",
            saved,
            vec![sed.clone(), running(two.clone(), "make")],
            own.clone(),
        ),
        (4, "of another file", "unsure 1.1.1 you", at(5), vec![run("sed -i s/a/b/ b.txt")], own.clone()),
        (
            4,
            "nothing was captured before",
            "unsure 1.1.1 you",
            at(5),
            vec![Window { late: true, ..sed.clone() }],
            own.clone(),
        ),
        (
            5,
            "in the window of a script",
            "window 1.1.1",
            ObservedChange { hand_edit: Some(SECOND), ..as_in_git },
            vec![make.clone()],
            own.clone(),
        ),
        (5, "of one that only stages", "unsure 1.1.1 you", as_in_git, vec![run("git add -A")], own.clone()),
        (5, "outside", "you", as_in_git, vec![], Between),
        (5, "beside a command in the background", "you", as_in_git, vec![background(make.clone())], Between),
        (
            6,
            "two sessions",
            "unsure 1.1.1 2.4.1 you",
            at(5),
            vec![make.clone(), running(other.clone(), "make")],
            own.clone(),
        ),
        (6, "the only writer", "window 1.1.1", at(5), vec![sed.clone(), running(other.clone(), "make")], own.clone()),
        (
            6,
            "a writer beside tests",
            "window 1.1.1",
            at(5),
            vec![sed.clone(), running(other.clone(), "npm test")],
            own.clone(),
        ),
        (
            6,
            "the other session only tests",
            "unsure 1.1.1 2.4.1 you",
            at(5),
            vec![make.clone(), running(other.clone(), "npm test")],
            own.clone(),
        ),
        (7, "edited by hand", "unsure 1.1.1 you", saved, vec![make.clone()], own.clone()),
        (7, "an editor has it open", "unsure 1.1.1 you", open_in_editor, vec![make.clone()], own.clone()),
        (8, "tests", "unsure 1.1.1 you", at(5), vec![test.clone()], own.clone()),
        (8, "tests, and a new file", "unsure 1.1.1 you", created, vec![test.clone()], own.clone()),
        (
            8,
            "tests beside a build",
            "window 1.1.2",
            at(5),
            vec![test.clone(), running(two.clone(), "make")],
            After(two.clone()),
        ),
        (9, "a build", "window 1.1.1", at(5), vec![make.clone()], own.clone()),
        (
            9,
            "two builds of one turn",
            "unsure 1.1.1 1.1.2",
            at(5),
            vec![make.clone(), running(two.clone(), "make")],
            After(two.clone()),
        ),
        (9, "a tool of which nothing is known", "window 1.1.1", at(5), vec![shell(one.clone(), 4)], own.clone()),
        (9, "a build of ten seconds", "window 1.1.1", at(5), vec![closed(make.clone(), 14)], own.clone()),
        (9, "by time alone", "time 1.1.1", at(5), vec![closed(make.clone(), 15)], own.clone()),
        (9, "by time alone, and it went", "time 1.1.1", gone, vec![closed(make.clone(), 15)], own.clone()),
        (9, "a long command that names it", "window 1.1.1", at(5), vec![closed(sed.clone(), 99)], own.clone()),
        (10, "a file that was there", "unsure 1.1.1 you", at(5), vec![attended("aider")], own.clone()),
        (10, "a new file", "window 1.1.1", created, vec![attended("aider")], own.clone()),
        (10, "a writer all the same", "window 1.1.1", at(5), vec![attended("sed -i s/a/b/ a.txt")], own.clone()),
        (11, "up to its end", "window 1.1.1", at(5), vec![cut_off(make.clone(), Some(6))], Between),
        (11, "up to its end, a test", "unsure 1.1.1 you", at(5), vec![cut_off(test, Some(6))], Between),
        (11, "later", "unsure 1.1.1 you", at(8), vec![cut_off(make.clone(), Some(6))], Between),
        (11, "later, a writer", "unsure 1.1.1 you", at(8), vec![cut_off(sed.clone(), Some(6))], Between),
        (11, "no end is known", "unsure 1.1.1 you", at(5), vec![cut_off(make.clone(), None)], Between),
        (11, "no end is known, a writer", "window 1.1.1", at(60), vec![cut_off(sed.clone(), None)], Between),
        (
            11,
            "no end is known, a writer, and after a minute",
            "unsure 1.1.1 you",
            at(70),
            vec![cut_off(sed.clone(), None)],
            Between,
        ),
        (
            11,
            "an edit tool may not have run",
            "unsure 1.1.1 you",
            at(5),
            vec![cut_off(edit(one.clone(), 4, "a.txt"), Some(6))],
            Between,
        ),
        (12, "in the background alone", "unsure 1.1.1 you", at(5), vec![background(make.clone())], Between),
        (12, "in the background, a writer", "unsure 1.1.1 you", at(5), vec![background(sed.clone())], Between),
        (
            12,
            "beside another window",
            "window 1.1.2",
            at(5),
            vec![background(make.clone()), running(two.clone(), "make")],
            After(two.clone()),
        ),
        (13, "no window", "you", at(5), vec![], within.clone()),
        (14, "a window that covers all", "window 1.1.1", undated, vec![make.clone()], own.clone()),
        (14, "a window that has closed", "unsure 1.1.1 you", gone, vec![closed(make, 6)], within.clone()),
        (14, "a window that has closed, of a writer", "window 1.1.1", gone, vec![closed(run("rm a.txt"), 6)], within),
    ] {
        assert_eq!(told(&owner(found, &windows, &moment)), expected, "row {row}: {story}");
        rows.insert(row);
    }
    assert!(rows.into_iter().eq(1..=14));
}

#[test]
fn a_doubt_says_why_and_when() {
    let path = WorkspacePath::new("a.txt").unwrap();
    let one = step(1, 1, 1);
    let found = ObservedChange { when: Some(5 * SECOND), hand_edit: Some(3 * SECOND), ..ObservedChange::of(&path) };
    let why = |found: ObservedChange<'_>, window: Window| judge(found, &[window], &Moment::After(one.clone())).doubt;
    let edited = Doubt { why: Why::HandEdit, at: Some(Timestamp(5_000)), edited: Some(Timestamp(3_000)) };
    assert_eq!(why(found, running(one.clone(), "make")), Some(edited));
    let idle = Doubt { why: Why::Idle, at: Some(Timestamp(5_000)), edited: None };
    assert_eq!(why(ObservedChange { hand_edit: None, ..found }, running(one.clone(), "npm test")), Some(idle));
    assert_eq!(why(found, running(one.clone(), "touch a.txt")), None);
    let json = serde_json::to_string(&edited).unwrap();
    assert_eq!(json, r#"{"why":"hand-edit","at":"1970-01-01T00:00:05.000Z","edited":"1970-01-01T00:00:03.000Z"}"#);
    // Records of before have no reason.
    let old = r#"{"owner":{"who":"unsure","candidates":["you"]},"paths":[]}"#;
    assert_eq!(serde_json::from_str::<Owned>(old).unwrap().doubt, None);
}
