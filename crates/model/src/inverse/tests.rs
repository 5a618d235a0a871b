use super::*;
use crate::diff;
use crate::diff::lookup;
use crate::moves::{Happened, pair};
use crate::plan::Layered;
use crate::trail::{self, Begin, Moved, Taken};
use crate::tree::literal::{Forest, Lit, executable, file, folder, link, skipped, special};

type Paths<'a> = &'a [(&'a str, Lit)];

/// Contents that are their own names.
struct Known(HashMap<ObjectId, Vec<u8>>);

impl Contents for Known {
    type Error = ObjectId;

    fn content(&self, _: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, ObjectId> {
        self.0.get(blob).cloned().ok_or(*blob)
    }
}

const TEXTS: [&str; 9] =
    ["1", "2", "3", "mine", LONG, "1\nx\n3\n4\n5\n", "1\n2\n3\n4\ny\n", "1\nx\n3\n4\ny\n", "1\nY\n3\n4\n5\n"];
const LONG: &str = "1\n2\n3\n4\n5\n";

fn known() -> Known {
    Known(TEXTS.iter().map(|t| (ObjectId::of_blob(t.as_bytes()), t.as_bytes().to_vec())).collect())
}

/// The inverse of changes, each from one tree to the next, oldest first. Other people's changes in between, and before
/// the current state, are followed where they move files.
fn inverse(forest: &mut Forest, changes: &[(Paths<'_>, Paths<'_>)], now: Paths<'_>) -> Inverse {
    let mut inverse = Inverse::default();
    let mut taken = Vec::new();
    let mut moved = Vec::new();
    let mut last = None;
    let mut at = 0;
    let all = changes.iter().map(|change| (*change, true)).chain([((now, now), false)]);
    for ((before, after), is_taken) in all {
        let (before, after) = (forest.plant(before), forest.plant(after));
        if let Some(last) = last.replace(after) {
            at += 1;
            moved.push((at, moves(forest, last, before)));
        }
        if !is_taken {
            continue;
        }
        at += 1;
        moved.push((at, moves(forest, before, after)));
        for change in diff::changes(&forest.0, Some(&before), Some(&after)).unwrap() {
            let mut above_it = change.path.clone();
            while let Some((above, _)) =
                above_it.split().filter(|(above, _)| change.after.is_none() && !above.is_root())
            {
                if let Some(Entry::Folder { mode, .. }) = lookup(&forest.0, &before, &above).unwrap() {
                    inverse.folder(above.clone(), mode);
                }
                above_it = above;
            }
            taken.push(Taken { at, path: change.path, link: Link { after: change.after, before: change.before } });
        }
    }
    taken.sort_by_key(|one| std::cmp::Reverse(one.at));
    inverse.add_sorted(trail::follow(taken, &Moved::new(moved, []), Begin::Now));
    inverse
}

fn moves(forest: &Forest, before: ObjectId, after: ObjectId) -> Vec<Move> {
    let mut happened = Happened::default();
    for change in diff::changes(&forest.0, Some(&before), Some(&after)).unwrap() {
        happened.add(&change.path, change.before, change.after);
    }
    pair(&known(), &happened, |_| true).moves
}

fn drafted(forest: &Forest, now: ObjectId, inverse: &Inverse, decision: Option<Decision>) -> Drafted {
    draft(&forest.0, &known(), RootState { tree: now, mode: 0o755 }, inverse, decision).unwrap()
}

/// Takes back one change and checks the result and the conflicts: `path why`.
fn check(before: Paths<'_>, after: Paths<'_>, now: Paths<'_>, expected: Paths<'_>, conflicts: &[&str]) {
    check_all(&[(before, after)], now, None, expected, conflicts);
}

fn shown(conflict: &Conflict) -> String {
    let others: Vec<_> = conflict.others.iter().map(WorkspacePath::display).collect();
    let others = if others.is_empty() { String::new() } else { format!("+{}", others.join(",")) };
    format!("{}{others} {:?}", conflict.path.display(), conflict.why)
}

fn check_all(
    changes: &[(Paths<'_>, Paths<'_>)],
    now: Paths<'_>,
    decision: Option<Decision>,
    expected: Paths<'_>,
    conflicts: &[&str],
) {
    let mut forest = Forest::default();
    let inverse = inverse(&mut forest, changes, now);
    let (now, expected) = (forest.plant(now), forest.plant(expected));
    let out = drafted(&forest, now, &inverse, decision);
    let found: Vec<String> = out.conflicts.iter().map(shown).collect();
    assert_eq!(found, conflicts, "{decision:?} {now:?}");
    assert!(out.conflicts.iter().all(|c| c.decided == decision.is_some()), "{:?}", out.conflicts);
    let layered = Layered { over: &out.new_trees, under: &forest.0 };
    let wrong = diff::changes(&layered, Some(&expected), Some(&out.root.tree)).unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(out.root.tree, expected);
}

#[test]
fn a_folder_goes_with_the_last_thing_in_it_if_it_came_with_the_first() {
    let made: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1"))];
    check(&[], made, made, &[], &[]);
    // Somebody's own file keeps the folders around it.
    let beside: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/mine", file("mine"))];
    check(&[], made, beside, &[("d/mine", file("mine"))], &[]);
    let deep: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/e/mine", file("mine"))];
    check(&[], made, deep, &[("d/e/mine", file("mine"))], &[]);
    // What was there before the change stays.
    check(&[("d", folder(0o755))], &[("d/a", file("1"))], &[("d/a", file("1"))], &[("d", folder(0o755))], &[]);
    // So do repositories and things that are not captured.
    let git: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/e/", Lit::Git)];
    check(&[], made, git, &[("d/e/", Lit::Git)], &[]);
    let unknown: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/e/socket", special())];
    check(&[], made, unknown, &[("d/e/socket", special())], &[]);
    // Somebody else has already deleted half of it.
    check(&[], made, &[("d/e", folder(0o755))], &[], &[]);
    check(&[], made, &[], &[], &[]);
    check(&[], made, &[("d", link("elsewhere"))], &[("d", link("elsewhere"))], &[]);
}

#[test]
fn a_folder_comes_back_with_its_bits_and_without_what_others_took() {
    let was: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("1")), ("d/e", folder(0o750)), ("d/e/b", file("1"))];
    check(was, &[], &[], was, &[]);
    // A folder that somebody recreated has their bits.
    let again: Paths<'_> = &[("d", folder(0o711)), ("d/mine", file("mine"))];
    let both: Paths<'_> = &[
        ("d", folder(0o711)),
        ("d/mine", file("mine")),
        ("d/a", file("1")),
        ("d/e", folder(0o750)),
        ("d/e/b", file("1")),
    ];
    check(was, &[], again, both, &[]);
    check(was, &[], &[("d", file("mine"))], &[("d", file("mine"))], &["d Replaced"]);
    // The change deleted only a file of it, and somebody else the folder.
    let left: Paths<'_> = &[("d", folder(0o700)), ("d/e", folder(0o750)), ("d/e/b", file("1"))];
    check(was, left, &[], &[("d", folder(0o700)), ("d/a", file("1"))], &[]);
}

#[test]
fn a_file_where_a_folder_must_be_can_be_decided_like_any_other_conflict() {
    let was: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("1")), ("d/b", file("1"))];
    let left: Paths<'_> = &[("d", folder(0o700)), ("d/b", file("1"))];
    let (now, conflicts): (Paths<'_>, _) = (&[("d", file("mine"))], &["d Replaced"]);
    check(was, left, now, now, conflicts);
    check_all(&[(was, left)], now, Some(Decision::Ours), now, conflicts);
    let theirs: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("1"))];
    check_all(&[(was, left)], now, Some(Decision::Theirs), theirs, conflicts);
}

#[test]
fn files_and_folders_take_each_others_place_and_give_it_back() {
    let (f, d): (Paths<'_>, Paths<'_>) = (&[("x", file("1"))], &[("x/in", file("2"))]);
    check(f, d, d, f, &[]);
    check(d, f, f, d, &[]);
    let with_mine: Paths<'_> = &[("x/in", file("2")), ("x/mine", file("mine"))];
    check(f, d, with_mine, with_mine, &["x Holds"]);
    check_all(&[(f, d)], with_mine, Some(Decision::Theirs), f, &["x Holds"]);
    check(d, f, &[("x/mine", file("mine"))], with_mine, &[]);
    check(d, f, &[("x", file("mine"))], &[("x", file("mine"))], &["x Whole"]);
    check(f, d, &[("x", link("t"))], &[("x", link("t"))], &["x Replaced"]);
}

#[test]
fn bits_are_taken_back_by_themselves() {
    let (open, closed): (Paths<'_>, Paths<'_>) =
        (&[("d", folder(0o755)), ("d/a", file("1"))], &[("d", folder(0o700)), ("d/a", file("1"))]);
    let edited: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("mine"))];
    check(open, closed, edited, &[("d", folder(0o755)), ("d/a", file("mine"))], &[]);
    let other: Paths<'_> = &[("d", folder(0o711)), ("d/a", file("1"))];
    check(open, closed, other, other, &["d Mode"]);
    check(open, closed, &[], &[], &[]);
    let (plain, run): (Paths<'_>, Paths<'_>) = (&[("a", file("1"))], &[("a", executable("1", 0o755))]);
    check(plain, run, &[("a", executable("mine", 0o755))], &[("a", file("mine"))], &[]);
    check(plain, run, &[("a", executable("1", 0o700))], &[("a", executable("1", 0o700))], &["a Mode"]);
    // A file created by the change, whose bits somebody changed: reported as a mode conflict.
    check(&[], plain, run, run, &["a Mode"]);
    // The root has bits, too.
    let mut forest = Forest::default();
    let tree = forest.plant(plain);
    let root = |mode| Some(Entry::Folder { mode, tree, holds_skipped: false });
    let mut inverse = Inverse::default();
    inverse.add(WorkspacePath::root(), Link { after: root(0o755), before: root(0o700) });
    assert_eq!(drafted(&forest, tree, &inverse, None).root, RootState { tree, mode: 0o700 });
}

#[test]
fn a_move_takes_the_edit_along_only_where_there_is_room_for_it() {
    let (old, new): (Paths<'_>, Paths<'_>) = (&[("d/old", file(LONG))], &[("new", file(LONG))]);
    let edited: Paths<'_> = &[("new", file(TEXTS[5]))];
    check(old, new, edited, &[("d/old", file(TEXTS[5]))], &[]);
    // Its old path, or that of its folder, is occupied: the file must not disappear, edited or not.
    for content in [LONG, TEXTS[5]] {
        for taken in [("d", file("mine")), ("d/old", file("mine")), ("d/old/mine", file("mine"))] {
            let both: &[&str] = &["d Replaced", "new+d/old NoRoom"];
            let conflicts = if taken.0 == "d" { both } else { &both[1..] };
            let now: Paths<'_> = &[("new", file(content)), taken.clone()];
            check(old, new, now, now, conflicts);
            check_all(&[(old, new)], now, Some(Decision::Ours), now, conflicts);
            let back: Paths<'_> = &[("d/old", file(content))];
            // Once that is decided for the folder, there is room in it.
            let decided = if taken.0 == "d" { &both[..1] } else { conflicts };
            check_all(&[(old, new)], now, Some(Decision::Theirs), back, decided);
        }
    }
    // One that somebody put back, or recreated from scratch, is in nobody's way.
    check(old, new, &[("new", file(LONG)), ("d/old", file(LONG))], old, &[]);
}

#[test]
fn a_conflict_leaves_every_path_of_a_moved_file_alone() {
    let texts = |n: usize| file(["1\n2\n3\n4\n5\n", "1\nx\n3\n4\n5\n", "1\nY\n3\n4\n5\n"][n]);
    let [first, agent, mine, moved]: [Paths<'_>; 4] =
        [&[("f", texts(0))], &[("f", texts(1))], &[("f", texts(2))], &[("g", texts(2))]];
    // Edited, edited by somebody else at the same place, moved.
    let changes = [(first, agent), (mine, moved)];
    check_all(&changes, moved, None, moved, &["g+f SamePlace"]);
    check_all(&changes, moved, Some(Decision::Theirs), first, &["g+f SamePlace"]);
    check_all(&changes, moved, Some(Decision::Ours), mine, &["g+f SamePlace"]);
    // Moved again by somebody else.
    let (g, h): (Paths<'_>, Paths<'_>) = (&[("g", texts(0))], &[("h", texts(0))]);
    check_all(&[(first, g)], h, None, h, &["h+f,g Moved"]);
    check_all(&[(first, g)], h, Some(Decision::Ours), h, &["h+f,g Moved"]);
    check_all(&[(first, g)], h, Some(Decision::Theirs), first, &["h+f,g Moved"]);
}

#[test]
fn a_content_stays_where_it_came_to_until_it_is_back_where_it_came_from() {
    let mut forest = Forest::default();
    let (none, made): (Paths<'_>, Paths<'_>) = (&[], &[("g", file("mine"))]);
    let back: Paths<'_> = &[("f", file("mine")), ("g", file("mine"))];
    let path = |path: &str| WorkspacePath::new(path).unwrap();
    for (now, decision, conflicts, left) in [
        (made, None, &["g+f Half"][..], made),
        (made, Some(Decision::Ours), &["g+f Half"], made),
        (made, Some(Decision::Theirs), &["g+f Half"], none),
        (back, None, &[], &back[..1]),
    ] {
        let mut inverse = inverse(&mut forest, &[(none, made)], now);
        inverse.source(Source { path: path("g"), blob: ObjectId::of_blob(b"mine"), from: vec![path("f")] });
        let (now, left) = (forest.plant(now), forest.plant(left));
        let out = drafted(&forest, now, &inverse, decision);
        assert_eq!(out.conflicts.iter().map(shown).collect::<Vec<_>>(), conflicts);
        assert_eq!(out.root.tree, left, "{decision:?}");
    }
}

#[test]
fn an_edit_of_others_goes_along_a_chain_of_moves() {
    let [f, g, edited, h]: [Paths<'_>; 4] =
        [&[("f", file(LONG))], &[("g", file(LONG))], &[("g", file(TEXTS[5]))], &[("h", file(TEXTS[5]))]];
    check_all(&[(f, g), (edited, h)], h, None, &[("f", file(TEXTS[5]))], &[]);
    // Moved, edited by somebody else, edited.
    let again: Paths<'_> = &[("g", file(TEXTS[7]))];
    check_all(&[(f, g), (edited, again)], again, None, &[("f", file(TEXTS[5]))], &[]);
    // Edited, and moved by somebody else.
    let (changed, elsewhere): (Paths<'_>, Paths<'_>) = (&[("f", file(TEXTS[6]))], &[("z/f", file(TEXTS[6]))]);
    check_all(&[(f, changed)], elsewhere, None, &[("z/f", file(LONG))], &[]);
    // Another file had the name, and gets it back.
    let (both, one): (Paths<'_>, Paths<'_>) = (&[("f", file(LONG)), ("g", file("1"))], &[("f", file(LONG))]);
    check_all(&[(both, one), (f, g)], edited, None, &[("f", file(TEXTS[5])), ("g", file("1"))], &[]);
}

#[test]
fn changes_of_one_path_with_others_between_them_are_taken_back_one_by_one() {
    let [base, first, both, second]: [Paths<'_>; 4] =
        [&[("a", file(LONG))], &[("a", file(TEXTS[5]))], &[("a", file(TEXTS[7]))], &[("a", file(TEXTS[6]))]];
    // Somebody else's edit lies after the one that goes, or before it.
    check_all(&[(base, first)], both, None, second, &[]);
    check_all(&[(first, both)], both, None, first, &[]);
    // Two in a row are joined: the state between them is never needed.
    let between: Paths<'_> = &[("a", file("never stored"))];
    check_all(&[(base, between), (between, both)], both, None, base, &[]);
    // Created, deleted by somebody, created again.
    check_all(&[(&[], base), (&[], first)], first, None, &[], &[]);
}

#[test]
fn what_is_not_captured_now_is_asked_for_or_left_alone() {
    let mut forest = Forest::default();
    let change: [(Paths<'_>, Paths<'_>); 1] = [(&[("d/a", file("1")), ("s", file("1"))], &[])];
    let there: Paths<'_> = &[("d", skipped()), ("s", special())];
    let inverse = inverse(&mut forest, &change, there);
    let now = forest.plant(there);
    let out = drafted(&forest, now, &inverse, None);
    assert_eq!(out.root.tree, now);
    let shown = |paths: &[WorkspacePath]| paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
    assert_eq!(shown(&out.unknown), ["d", "d/a"]);
    assert_eq!(shown(&out.kept.into_iter().map(|(path, _)| path).collect::<Vec<_>>()), ["d", "s"]);
}
