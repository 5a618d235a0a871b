use proptest::prelude::*;

use super::*;

const LABELS: Labels = Labels { ours: "now", base: "t5", theirs: "before t5" };

fn text(base: &str, ours: &str, theirs: &str, decision: Option<Decision>) -> Merged {
    merge(false, base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), decision, &LABELS)
}

fn written(merged: &Merged) -> Option<&str> {
    merged.bytes.as_deref().map(|bytes| std::str::from_utf8(bytes).unwrap())
}

/// Checks a merge that needs no decision, with the sides either way round.
fn check(base: &str, ours: &str, theirs: &str, expected: &str) {
    for merged in [text(base, ours, theirs, None), text(base, theirs, ours, None)] {
        assert_eq!(written(&merged), Some(expected), "{:?}", merged.clashes);
        assert!(merged.is_clean());
    }
}

/// Checks a merge with one clash: its line, and what the three sides have there.
fn check_clash(base: &str, ours: &str, theirs: &str, expected: (u32, &str, &str, &str)) {
    let merged = text(base, ours, theirs, None);
    assert_eq!(merged.bytes, None);
    let found: Vec<_> =
        merged.clashes.iter().map(|c| (c.line, c.ours.join(" "), c.base.join(" "), c.theirs.join(" "))).collect();
    let (line, o, b, t) = expected;
    assert_eq!(found, [(line, o.to_owned(), b.to_owned(), t.to_owned())]);
    let turned = text(base, theirs, ours, None);
    assert_eq!((turned.bytes, turned.clashes.len()), (None, 1));
}

#[test]
fn a_side_that_did_not_change_gives_way_whatever_the_content_is() {
    for notebook in [false, true] {
        for (a, b) in [(&b"a\0"[..], &b"b\0"[..]), (b"{", b"}"), (b"", b"x"), (b"\xff\r\n", b"\xfe")] {
            let bytes = |base, ours, theirs| merge(notebook, base, ours, theirs, None, &LABELS);
            assert_eq!(bytes(a, b, a), Merged::clean(b));
            assert_eq!(bytes(a, a, b), Merged::clean(b));
            assert_eq!(bytes(a, b, b), Merged::clean(b));
        }
    }
}

#[test]
fn binary_is_taken_whole_and_cannot_have_markers() {
    let with = |decision| merge(false, b"a", b"b\0", b"c", decision, &LABELS);
    for (decision, bytes) in [
        (None, None),
        (Some(Decision::Ours), Some(&b"b\0"[..])),
        (Some(Decision::Theirs), Some(b"c")),
        (Some(Decision::Markers), None),
    ] {
        assert_eq!(
            with(decision),
            Merged { bytes: bytes.map(<[u8]>::to_vec), clashes: Vec::new(), whole: true },
            "{decision:?}"
        );
    }
}

#[test]
fn a_nul_anywhere_makes_a_content_binary_on_whichever_side() {
    let text = b"line\n".repeat(4000);
    let (first, last) = ([b"new\n", &text[..]].concat(), [&text[..], b"new\n"].concat());
    let late = |text: &[u8]| [text, b"\0\n"].concat();
    for (base, ours, theirs) in [
        (late(&text), first.clone(), last.clone()),
        (text.clone(), late(&first), last.clone()),
        (text.clone(), first.clone(), late(&last)),
    ] {
        let merged = merge(false, &base, &ours, &theirs, None, &LABELS);
        assert_eq!((merged.bytes, merged.whole), (None, true));
    }
}

#[test]
fn an_edit_that_could_be_at_several_places_is_a_clash_where_it_matters() {
    // Which of the three was deleted, the one before the new line or one after it?
    check_clash("a\na\na\n", "a\na\n", "a\nx\na\na\n", (2, "", "a", "x a"));
    check_clash("a\na\n", "a\na\na\n", "a\nx\na\n", (2, "a", "", "x"));
    // Here it makes no difference, and neither does it away from the equal lines.
    check("a\na\na\nb\n", "a\na\nb\n", "a\na\na\nb\nx\n", "a\na\nb\nx\n");
    check("p\na\na\nq\n", "p\na\na\na\nq\n", "P\na\na\nq\n", "P\na\na\na\nq\n");
    check("a\na\nb\n", "a\nb\n", "x\na\na\nb\n", "x\na\nb\n");
}

#[test]
fn a_function_between_others_has_its_place_though_all_end_alike() {
    let (f, g, new) = ("fn f {\n  1\n}\n\n", "fn g {\n  2\n}\n\n", "fn new {\n  3\n}\n\n");
    let ours = [f, new, g].concat();
    let theirs = ["fn f {\n  1\n  more\n}\n\n", g].concat();
    check(&[f, g].concat(), &ours, &theirs, &["fn f {\n  1\n  more\n}\n\n", new, g].concat());
}

#[test]
fn changes_of_different_lines_are_both_kept() {
    check("a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n");
    check("a\nb\nc\n", "b\nc\n", "a\nb\nc\nd\n", "b\nc\nd\n");
    check("a\r\nb\r\n", "A\r\nb\r\n", "a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n");
}

#[test]
fn changes_that_only_touch_do_not_clash() {
    check("a\nb\n", "A\nb\n", "a\nB\n", "A\nB\n");
    check("a\nb\n", "A\nb\n", "a\nx\nb\n", "A\nx\nb\n");
    check("a\nb\n", "a\nB\n", "a\nx\nb\n", "a\nx\nB\n");
    check("a\nb\n", "b\n", "a\n", "");
}

#[test]
fn the_same_change_on_both_sides_is_made_once() {
    check("a\nb\n", "a\nx\nb\nc\n", "a\nx\nb\n", "a\nx\nb\nc\n");
    check("a\nb\nc\n", "a\nB\nc\n", "1\na\nB\nc\n", "1\na\nB\nc\n");
}

#[test]
fn a_line_that_both_changed_is_a_clash() {
    check_clash("a\nb\nc\n", "a\nB\nc\n", "a\nX\nc\n", (2, "B", "b", "X"));
    check_clash("a\nb\nc\n", "a\nc\n", "a\nX\nc\n", (2, "", "b", "X"));
    check_clash("a\nb\nc\n", "0\na\nB\nc\n", "a\nX\nc\n", (3, "B", "b", "X"));
}

#[test]
fn different_lines_at_the_same_point_are_a_clash() {
    check_clash("a\nb\n", "a\nx\nb\n", "a\ny\nb\n", (2, "x", "", "y"));
    check_clash("", "x\n", "y\n", (1, "x", "", "y"));
}

#[test]
fn lines_put_into_what_the_other_side_replaced_are_a_clash() {
    check_clash("a\nb\nc\n", "a\nb\nx\nc\n", "a\n", (2, "b x c", "b c", ""));
}

#[test]
fn hunks_that_overlap_in_a_chain_are_one_clash() {
    check_clash("1\n2\n3\n4\n5\n6\n", "1\nA\nB\n4\nC\n6\n", "1\n2\nX\nY\nZ\n6\n", (2, "A B 4 C", "2 3 4 5", "2 X Y Z"));
}

#[test]
fn a_clash_leaves_out_what_both_sides_have() {
    check_clash("a\nz\n", "a\np\nx\nq\nz\n", "a\np\ny\nq\nz\n", (3, "x", "", "y"));
}

#[test]
fn a_last_line_without_its_end_is_not_glued_to_the_next() {
    check("a\nb", "A\nb", "a\nb\nc", "A\nb\nc");
    check("a\nb\n", "a\nb", "A\nb\n", "A\nb");
    check_clash("a\n", "z", "a\nc\n", (1, "z", "a", "a c"));
    check_clash("a\n", "z", "a\nc", (1, "z", "a", "a c"));
    check_clash("a\nb\n", "a", "a\nb\nc\n", (1, "a", "a b", "a b c"));
    check("a\n", "z\n", "a\nc", "z\nc");
}

#[test]
fn a_decision_is_for_the_clashes_alone() {
    let (base, ours, theirs) = ("a\nb\nc\nd\n", "A\nB\nc\nd\n", "a\nX\nc\nD\n");
    let with = |decision| text(base, ours, theirs, Some(decision));
    assert_eq!(written(&with(Decision::Ours)), Some("A\nB\nc\nD\n"));
    assert_eq!(written(&with(Decision::Theirs)), Some("a\nX\nc\nD\n"));
    assert_eq!(with(Decision::Ours).clashes, text(base, ours, theirs, None).clashes);
    assert!(!with(Decision::Theirs).is_clean());
}

#[test]
fn markers_are_those_of_git() {
    let with = |base, ours, theirs| text(base, ours, theirs, Some(Decision::Markers));
    assert_eq!(
        written(&with("a\nb\nc\n", "a\nB\nc\n", "a\nc\n")),
        Some("a\n<<<<<<< now\nB\n||||||| t5\nb\n=======\n>>>>>>> before t5\nc\n")
    );
    assert_eq!(
        written(&with("a\r\nb", "a\r\nB", "a\r\nX")),
        Some("a\r\n<<<<<<< now\r\nB\r\n||||||| t5\r\nb\r\n=======\r\nX\r\n>>>>>>> before t5\r\n")
    );
}

#[test]
fn bytes_that_are_not_utf_8_are_kept() {
    let merged = merge(false, b"\xff\nb\n", b"\xff\nB\n", b"\xfe\nb\n", None, &LABELS);
    assert_eq!(merged, Merged::clean(b"\xfe\nB\n"));
}

/// Lines from a small alphabet, so that equal ones are frequent; the last may lack its line ending.
fn any_text() -> impl Strategy<Value = String> {
    (prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "", "}", "d\r"]), 0..12), any::<bool>()).prop_map(
        |(lines, ended)| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            if ended { text } else { text.strip_suffix('\n').unwrap_or(&text).to_owned() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn one_side_that_changed_is_the_result(base in any_text(), other in any_text()) {
        prop_assert_eq!(text(&base, &other, &base, None), Merged::clean(other.as_bytes()));
        prop_assert_eq!(text(&base, &base, &other, None), Merged::clean(other.as_bytes()));
        // The line merge agrees, without the shortcut.
        let (b, o) = (base.as_bytes(), other.as_bytes());
        for (ours, theirs) in [(b, o), (o, b), (o, o)] {
            prop_assert_eq!(merge_text(b, ours, theirs, None, &LABELS), (Some(o.to_vec()), Vec::new()));
        }
    }

    #[test]
    fn the_sides_can_be_turned_round(base in any_text(), ours in any_text(), theirs in any_text()) {
        let (one, other) = (text(&base, &ours, &theirs, None), text(&base, &theirs, &ours, None));
        prop_assert_eq!(one.bytes, other.bytes);
        prop_assert_eq!(one.clashes.len(), other.clashes.len());
        for (a, b) in one.clashes.iter().zip(&other.clashes) {
            prop_assert_eq!((&a.ours, &a.base, &a.theirs), (&b.theirs, &b.base, &b.ours));
        }
    }

    #[test]
    fn a_decision_always_gives_a_content_of_known_lines(
        base in any_text(), ours in any_text(), theirs in any_text(),
    ) {
        fn bare(line: &str) -> &str {
            line.trim_end_matches('\r')
        }
        let known: Vec<&str> = [&base, &ours, &theirs].into_iter().flat_map(|t| t.split('\n')).map(bare).collect();
        let clashes = text(&base, &ours, &theirs, None).clashes;
        for decision in [Decision::Ours, Decision::Theirs, Decision::Markers] {
            let merged = text(&base, &ours, &theirs, Some(decision));
            prop_assert_eq!(&merged.clashes, &clashes);
            let result = written(&merged);
            prop_assert!(result.is_some());
            for line in result.unwrap_or_default().split('\n').map(bare) {
                let marker = ["<<<<<<< ", "||||||| ", "=======", ">>>>>>> "].iter().any(|m| line.starts_with(m));
                prop_assert!(known.contains(&line) || line.is_empty() || marker, "glued: {:?}", line);
            }
        }
    }

    #[test]
    fn edits_of_different_lines_always_merge(
        edits in prop::collection::vec((any::<bool>(), 0..4u8, 1..4usize, 1..4usize), 0..12),
        apart in any::<bool>(),
    ) {
        let [mut base, mut ours, mut theirs, mut both] = [const { String::new() }; 4];
        let mut next = 0;
        let mut lines = |what: &str, count: usize| -> String {
            next += count;
            (next - count..next).map(|n| format!("{what} {n}\n")).collect()
        };
        let mut after_insertion = false;
        for (mine, kind, old, new) in edits {
            let kept = |kept: String| [kept.clone(), kept.clone(), kept.clone(), kept];
            let mut parts = Vec::new();
            // Two insertions need a line between them, or they would be at the same point.
            if apart || kind == 2 || after_insertion {
                parts.push(kept(lines("kept", 1)));
            }
            let old = if kind < 2 { lines("old", old) } else { String::new() };
            let new = if kind > 0 { lines("new", new) } else { String::new() };
            let (o, t) = if mine { (&new, &old) } else { (&old, &new) };
            parts.push([old.clone(), o.clone(), t.clone(), new.clone()]);
            if kind == 3 {
                parts.push(kept(lines("kept", 1)));
            }
            after_insertion = kind == 2;
            for part in parts {
                for (text, part) in [&mut base, &mut ours, &mut theirs, &mut both].into_iter().zip(part) {
                    *text += &part;
                }
            }
        }
        for merged in [text(&base, &ours, &theirs, None), text(&base, &theirs, &ours, None)] {
            prop_assert_eq!(written(&merged), Some(&*both));
        }
        // Undo: the change goes and everything made after it stays. Where edits touched, a deleted line may come
        // back on the other side of its new neighbour.
        if apart {
            let undone = text(&theirs, &both, &base, None);
            prop_assert_eq!(written(&undone), Some(&*ours));
        }
    }
}

#[test]
fn a_long_file_takes_no_time() {
    let lines: Vec<String> = (0..200_000).map(|n| format!("line {}\n", n % 5000)).collect();
    let edited = |every: usize, what: &str| -> String {
        lines.iter().enumerate().map(|(n, l)| if n % every == 1 { what } else { l }).collect()
    };
    let (ours, theirs) = (edited(7, "ours\n"), edited(11, "theirs\n"));
    let merged = text(&lines.concat(), &ours, &theirs, Some(Decision::Ours));
    assert!(merged.bytes.is_some() && merged.clashes.len() > 100);
}
