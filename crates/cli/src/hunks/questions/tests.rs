use piton_engine::model::except::with_places_as_now;
use piton_engine::model::text::{TextDiff, diff};
use piton_engine::model::{ChangeKind, ObjectId};
use piton_engine::view::{FileChange, PathView};

use super::*;

fn entry(text: &str) -> Option<EntryView> {
    Some(EntryView::File { mode: "0644".into(), size: 0, hash: ObjectId::of_blob(text.as_bytes()) })
}

fn folder() -> Option<EntryView> {
    Some(EntryView::Folder { mode: "0755".into() })
}

fn of(path: &str, before: Option<EntryView>, after: Option<EntryView>, content: TextDiff) -> FileDiff {
    let (binary, hunks) = match content {
        TextDiff::Text { hunks } => (false, hunks),
        TextDiff::Binary => (true, Vec::new()),
    };
    let path = PathView { path: path.into(), path_b64: None };
    let change = FileChange { path, kind: ChangeKind::Modified, before, after };
    FileDiff { change, binary, unavailable: false, added: 0, removed: 0, hunks }
}

fn changed(path: &str, now: &str, then: &str) -> FileDiff {
    of(path, entry(now), entry(then), diff(now.as_bytes(), then.as_bytes(), 1))
}

fn created(path: &str) -> FileDiff {
    of(path, None, entry("x\n"), diff(b"", b"x\n", 1))
}

fn deleted(path: &str) -> FileDiff {
    of(path, entry("x\n"), None, diff(b"x\n", b"", 1))
}

fn path(path: &str) -> WorkspacePath {
    WorkspacePath::new(path.as_bytes()).unwrap()
}

/// Answers with the letters of a person, and says what stays: paths, and places with the first line of their now.
fn stays(files: &[FileDiff], moves: &[(&str, &str)], typed: &str) -> Vec<String> {
    let moves: Vec<_> = moves.iter().map(|(from, to)| (path(from), path(to))).collect();
    let mut questions = Questions::new(files, &moves);
    for letter in typed.chars() {
        assert!(questions.current().is_some(), "{letter} of {typed} is not asked for");
        questions.answer(match letter {
            'y' => Answer::Yes,
            'n' => Answer::No,
            'q' => Answer::Quit,
            'a' => Answer::AllOfFile,
            'd' => Answer::NoneOfFile,
            's' => Answer::Split,
            other => panic!("{other}"),
        });
    }
    assert!(questions.current().is_none(), "more is asked than {typed}");
    let except = questions.except();
    let hunks = except.hunks.iter().map(|hunk| format!("{}:{}", hunk.path.display(), hunk.at.old_start));
    except.paths.iter().map(WorkspacePath::display).chain(hunks).collect()
}

const NOW: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
const THEN: &str = "X\n2\nX\n4\n5\n6\n7\n8\nX\n";

#[test]
fn what_is_answered_with_no_stays() {
    let files = [changed("a", NOW, THEN), created("b"), deleted("c")];
    for (typed, expected) in [
        ("yyyy", &[][..]),
        ("nnnn", &["a", "b", "c"]),
        ("nyyy", &["a:1"]),
        ("ynyy", &["a:8"]),
        ("ayn", &["c"]),
        ("dyy", &["a"]),
        ("ydyy", &["a:8"]),
        ("nayy", &["a:1"]),
        ("q", &["a", "b", "c"]),
        ("yq", &["b", "c", "a:8"]),
        ("yyaa", &[]),
        ("yydd", &["b", "c"]),
    ] {
        assert_eq!(stays(&files, &[], typed), expected, "{typed}");
    }
}

#[test]
fn a_place_is_split_into_its_differences_which_fit_the_contents() {
    let files = [changed("a", NOW, THEN)];
    assert_eq!(stays(&files, &[], "snyy"), ["a:1"]);
    assert_eq!(stays(&files, &[], "syny"), ["a:2"]);
    assert_eq!(stays(&files, &[], "syd"), ["a:2", "a:8"]);
    for (now, then) in [
        (NOW, THEN),
        ("a\nb\nc\n", "b\nX\nc\nY\n"),
        ("", "a\nb\n"),
        ("a\nb\nc\nd\n", "b\nd\n"),
        ("b\nd\n", "a\nb\nc\nd\ne\n"),
    ] {
        let TextDiff::Text { hunks } = diff(now.as_bytes(), then.as_bytes(), 3) else { panic!() };
        let all: Vec<Hunk> = hunks.iter().flat_map(parts).collect();
        // Each can be left out alone, and all together are everything.
        for one in &all {
            let with = with_places_as_now(now.as_bytes(), then.as_bytes(), &[one.into()]);
            assert!(with.is_some_and(|with| with != then.as_bytes()), "{now:?} {then:?} {one:?}");
        }
        let places: Vec<_> = all.iter().map(Into::into).collect();
        assert_eq!(with_places_as_now(now.as_bytes(), then.as_bytes(), &places).unwrap(), now.as_bytes());
    }
}

#[test]
fn both_ends_of_a_move_are_one_question_and_stay_together() {
    let files = [created("a"), changed("b", NOW, THEN), deleted("c")];
    assert_eq!(stays(&files, &[("c", "a")], "nyy"), ["a", "c"]);
    assert_eq!(stays(&files, &[("c", "a")], "ynn"), ["b"]);
    // A file in whose place another one comes is asked about as a whole.
    assert_eq!(stays(&files, &[("b", "a")], "ny"), ["a", "b"]);
}

#[test]
fn a_folder_follows_what_is_in_it() {
    let files = [of("d", folder(), folder(), TextDiff::Text { hunks: vec![] }), created("d/a"), deleted("d/b")];
    assert_eq!(stays(&files, &[], "nn"), ["d", "d/a", "d/b"]);
    assert_eq!(stays(&files, &[], "ny"), ["d/a"]);
    assert_eq!(stays(&files[..1], &[], "n"), ["d"]);
}

#[test]
fn a_binary_file_is_taken_or_left_as_a_whole() {
    let files = [of("a", entry("1"), entry("2"), TextDiff::Binary)];
    assert_eq!(stays(&files, &[], "n"), ["a"]);
    assert_eq!(stays(&files, &[], "y").len(), 0);
}
