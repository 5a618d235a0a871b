use proptest::prelude::*;

use super::json::Unique;
use super::*;

fn run(base: &str, ours: &str, theirs: &str, decision: Option<Decision>) -> Merged {
    content::merge(true, base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), decision, &NO_LABELS)
}

#[track_caller]
fn check(base: &str, ours: &str, theirs: &str, expected: &str) {
    let merged = run(base, ours, theirs, None);
    assert!(merged.is_clean(), "{:?}", merged.clashes);
    assert_eq!(String::from_utf8(merged.bytes.unwrap()).unwrap(), expected);
}

/// Checks a merge that needs a decision, and the result of each decision.
#[track_caller]
fn check_clash(base: &str, ours: &str, theirs: &str, line: u32, if_ours: &str, if_theirs: &str) {
    for decision in [None, Some(Decision::Markers)] {
        let merged = run(base, ours, theirs, decision);
        assert_eq!(merged.bytes, None);
        assert_eq!(merged.clashes.iter().map(|c| c.line).collect::<Vec<_>>(), [line], "{:?}", merged.clashes);
    }
    for (decision, expected) in [(Decision::Ours, if_ours), (Decision::Theirs, if_theirs)] {
        let merged = run(base, ours, theirs, Some(decision));
        assert_eq!(String::from_utf8(merged.bytes.unwrap()).unwrap(), expected);
    }
}

/// A cell as Jupyter writes it. Source lines are separated by `|`; an empty id means none.
fn cell(id: &str, source: &str, metadata: &str, count: &str) -> String {
    let id = if id.is_empty() { String::new() } else { format!("   \"id\": \"{id}\",\n") };
    let lines = source.replace('|', "\n");
    let lines: Vec<_> = lines.split_inclusive('\n').map(|l| format!("    {}", Value::from(l))).collect();
    let source = if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n   ]", lines.join(",\n")) };
    format!(
        "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": {count},\n{id}   \"metadata\": {metadata},\n   \
         \"outputs\": [],\n   \"source\": {source}\n  }}"
    )
}

fn file(cells: &[String], kernel: &str) -> String {
    let cells = if cells.is_empty() { "[]".to_owned() } else { format!("[\n{}\n ]", cells.join(",\n")) };
    format!(
        "{{\n \"cells\": {cells},\n \"metadata\": {{\n  \"kernel\": \"{kernel}\",\n  \"x\": 1\n }},\n \
         \"nbformat\": 4,\n \"nbformat_minor\": 5\n}}\n"
    )
}

/// A notebook of cells `id:source`.
fn book(cells: &str) -> String {
    let cells: Vec<_> = cells
        .split_whitespace()
        .map(|c| c.split_once(':').unwrap())
        .map(|(id, source)| cell(id, source, "{}", "null"))
        .collect();
    file(&cells, "py")
}

fn check_cells(base: &str, ours: &str, theirs: &str, expected: &str) {
    check(&book(base), &book(ours), &book(theirs), &book(expected));
}

#[test]
fn changes_of_different_cells_are_both_kept() {
    check_cells("a:1 b:2 c:3", "a:1 b:X c:3", "a:1 b:2 c:Y", "a:1 b:X c:Y");
    check_cells("a:1 b:2", "a:X b:2", "a:1 n:N b:2", "a:X n:N b:2");
    check_cells("a:1 b:2", "a:X b:2", "a:1", "a:X");
    check_cells("a:1 b:2", "b:2", "a:1", "");
    check_cells("a:1 b:2", "n:N a:1 b:2", "a:1 b:2 m:M", "n:N a:1 b:2 m:M");
}

#[test]
fn cells_without_ids_are_found_by_what_they_say_or_where_they_are() {
    check_cells(":1 :2 :3", ":1 :X :3", ":1 :2 :Y", ":1 :X :Y");
    check_cells(":1 :2", ":X :2", ":1 :Y", ":X :Y");
    check_cells(":1|2|3", ":X|2|3", ":1|2|Z", ":X|2|Z");
}

#[test]
fn a_cell_that_both_changed_is_merged_inside() {
    check_cells("a:1|2|3", "a:X|2|3", "a:1|2|Z", "a:X|2|Z");
    check(
        &file(&[cell("a", "1|2|3", "{}", "1")], "py"),
        &file(&[cell("a", "1|2|Z", "{}", "2")], "py"),
        &file(&[cell("a", "1|2|3", "{\"t\": 1}", "1")], "py"),
        &file(&[cell("a", "1|2|Z", "{\"t\": 1}", "2")], "py"),
    );
}

#[test]
fn runs_of_both_sides_do_not_clash() {
    check(
        &file(&[cell("a", "1|2|3", "{}", "1")], "py"),
        &file(&[cell("a", "X|2|3", "{}", "2")], "py"),
        &file(&[cell("a", "1|2|Z", "{}", "3")], "py"),
        &file(&[cell("a", "X|2|Z", "{}", "2")], "py"),
    );
}

#[test]
fn a_line_that_both_changed_is_a_clash_at_its_line_of_the_file() {
    check_clash(&book("a:1|2 b:3"), &book("a:1|X b:4"), &book("a:1|Y b:3"), 11, &book("a:1|X b:4"), &book("a:1|Y b:4"));
}

#[test]
fn metadata_that_both_changed_is_a_clash() {
    let with = |source, metadata| file(&[cell("a", source, metadata, "1")], "py");
    check_clash(
        &with("1|2|3", "{}"),
        &with("X|2|3", "[1]"),
        &with("1|2|Z", "[2]"),
        7,
        &with("X|2|Z", "[1]"),
        &with("X|2|Z", "[2]"),
    );
}

#[test]
fn a_cell_that_one_side_changed_and_the_other_deleted_is_a_clash() {
    check_clash(&book("a:1 b:2"), &book("a:1 b:X"), &book("a:1"), 13, &book("a:1 b:X"), &book("a:1"));
    check_clash(&book("a:1 b:2"), &book("a:1"), &book("a:1 b:X"), 13, &book("a:1"), &book("a:1 b:X"));
}

#[test]
fn a_cell_that_became_prose_on_one_side_clashes_as_a_whole() {
    let prose = r#"{"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "1"}]}"#;
    let code = |n| {
        format!(
            r#"{{"cells": [{{"cell_type": "code", "id": "a", "metadata": {{}}, "outputs": [{n}], "source": "1"}}]}}"#
        )
    };
    check_clash(&code(1), &code(2), prose, 1, &code(2), prose);
}

#[test]
fn what_is_around_the_cells_is_merged_by_line() {
    let cells = [cell("a", "1", "{}", "1")];
    check(
        &file(&cells, "py"),
        &file(&cells, "rs"),
        &file(&cells, "py").replace("\"x\": 1", "\"x\": 2"),
        &file(&cells, "rs").replace("\"x\": 1", "\"x\": 2"),
    );
    check_clash(
        &file(&cells, "py"),
        &file(&cells, "rs"),
        &file(&cells, "js"),
        15,
        &file(&cells, "rs"),
        &file(&cells, "js"),
    );
}

#[test]
fn a_mix_that_is_no_notebook_is_taken_whole() {
    // Both added the same member at different places: each is valid, together they are not.
    let with = |foot: &str| format!("{{\n\"cells\": [],\n\"a\": 1,\n\"b\": 2,\n\"c\": 3\n{foot}}}\n");
    let base = with("");
    let ours = base.replace("\"a\"", "\"n\": 1,\n\"a\"");
    let theirs = base.replace("\"c\"", "\"n\": 2,\n\"c\"");
    // The same cell was moved to different places.
    let moved = (book("a:1 b:2 c:3 d:4"), book("b:2 a:1 c:3 d:4"), book("b:2 c:3 d:4 a:1"));
    for (base, ours, theirs) in [(base, ours, theirs), moved] {
        for (decision, expected) in [(None, None), (Some(Decision::Ours), Some(&ours))] {
            let merged = run(&base, &ours, &theirs, decision);
            assert_eq!(merged.bytes.as_deref(), expected.map(|text| text.as_bytes()));
            assert!(!merged.is_clean());
        }
    }
}

#[test]
fn what_is_no_notebook_is_merged_by_line_and_stays_json() {
    check("[\n1,\n2,\n3\n]", "[\n4,\n2,\n3\n]", "[\n1,\n2,\n5\n]", "[\n4,\n2,\n5\n]");
    check("not\njson\n", "NOT\njson\n", "not\njson\n!\n", "NOT\njson\n!\n");
    let merged = run("[\n1,\n2,\n3\n]", "[\n2,\n3\n]", "[\n1,\n2\n]", None);
    assert_eq!(written(&merged), Some("[\n2\n]".to_owned()));
    let (ours, theirs) = ("[\n1\n,2,\n3\n]", "[\n1,\n2\n,3\n]");
    let merged = run("[\n1,\n2,\n3\n]", ours, theirs, None);
    assert!(merged.bytes.is_none());
}

#[test]
fn the_layout_of_ours_is_kept() {
    let base = r#"{"cells":[{"id":"a","source":["1\n","2\n","3"]},{"id":"b","source":"é"}],"n":1}"#;
    let ours = r#"{"cells": [ {"id": "a", "source": ["X\n", "2\n", "3"]} , {"id": "b", "source": "\u00e9"} ], "n": 1}"#;
    let theirs = r#"{"cells":[{"id":"a","k":1,"source":["1\n","2\n","Z"]},{"id":"b","source":"é"}],"n":1}"#;
    check(
        base,
        ours,
        theirs,
        r#"{"cells": [ {"id": "a","k":1, "source": ["X\n", "2\n", "Z"]} , {"id": "b", "source": "\u00e9"} ], "n": 1}"#,
    );
}

fn written(merged: &Merged) -> Option<String> {
    merged.bytes.clone().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Notebooks that share many cells; some have no ids, and the layout may differ.
fn any_book() -> impl Strategy<Value = String> {
    let id = prop::sample::select(vec!["", "a", "b", "c", "d"]);
    let source = prop::sample::select(vec!["", "1", "1|2", "1|2|3", "X|2|3", "1|2|Z", "é|\"", "1|"]);
    let cell_ = (id, source, prop::sample::select(vec!["{}", "[1]"]), prop::sample::select(vec!["1", "2"]));
    (prop::collection::vec(cell_, 0..5), prop::sample::select(vec!["py", "rs"]), any::<bool>()).prop_map(
        |(cells, kernel, compact)| {
            let mut seen = HashSet::new();
            let cells: Vec<_> = cells
                .into_iter()
                .filter(|(id, ..)| id.is_empty() || seen.insert(*id))
                .map(|(id, source, metadata, count)| cell(id, source, metadata, count))
                .collect();
            let text = file(&cells, kernel);
            if compact { serde_json::from_str::<Value>(&text).unwrap().to_string() } else { text }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn a_merged_notebook_is_a_notebook(base in any_book(), ours in any_book(), theirs in any_book()) {
        for decision in [None, Some(Decision::Ours), Some(Decision::Theirs), Some(Decision::Markers)] {
            let merged = run(&base, &ours, &theirs, decision);
            if let Some(bytes) = &merged.bytes {
                let book = Notebook::parse(bytes);
                prop_assert!(book.is_some_and(|book| book.unique_ids()));
                prop_assert!(serde_json::from_slice::<Unique>(bytes).is_ok());
            } else {
                prop_assert!(matches!(decision, None | Some(Decision::Markers)));
                prop_assert!(!merged.is_clean());
            }
        }
        let turned = run(&base, &theirs, &ours, None);
        prop_assert_eq!(turned.is_clean(), run(&base, &ours, &theirs, None).is_clean());
    }

    #[test]
    fn a_side_that_only_changed_its_layout_gives_way(base in any_book(), theirs in any_book()) {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let pretty = serde_json::to_string_pretty(&value(&base)).unwrap();
        let merged = run(&base, &pretty, &theirs, Some(Decision::Theirs));
        let cells = |text: &str| value(text)["cells"].clone();
        prop_assert_eq!(cells(&written(&merged).unwrap()), cells(&theirs));
    }
}
