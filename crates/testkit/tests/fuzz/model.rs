//! Pure readers: settings, trees, paths, targets, records; and merging what users wrote.

use piton_engine::model::content::{Decision, Labels, merge};
use piton_engine::model::git::GitState;
use piton_engine::model::record::Numbered;
use piton_engine::model::settings::{self, Key, Layer, Settings};
use piton_engine::model::target::{check_name, split_session};
use piton_engine::model::tree::TreeEncoder;
use piton_engine::model::{ObjectId, SkipReason, Timestamp, Tree, When, WorkspacePath, summary, text};
use piton_testkit::fuzz::fuzz;

#[test]
fn settings_are_taken_as_a_whole_or_refused_with_the_place() {
    let seeds = [
        "[capture]\nautomatic = false\nsize_limit = \"2 GiB\"\nignored_limit = 1048576\n",
        "[hook]\ntime_budget = \"2.5s\"\nuser_line = true\n[agent]\ntell = true\n",
        "[tools]\nreaders = [\"mcp__x\", 'y']\nwriters = []\n[branches]\nmost = 100\n",
        "[summary]\ncommand = \"llm\"\nurl = \"http://x/v1\"\nmodel = \"m\"\nkey_env = \"K\"\ntime_limit = \"60s\"\n",
        "capture.automatic = true # x\n\"a b\" = { c = 1 }\nd = 2026-11-17T00:00:00Z\n",
    ];
    let keys: String = Key::ALL.into_iter().map(|key| format!("{} = 1\n", key.name())).collect();
    let mut seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    seeds.push(keys.into_bytes());
    fuzz("settings", &seeds, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return String::new() };
        let user = settings::read(text, Layer::User);
        let workspace = settings::read(text, Layer::Workspace);
        assert!(user.is_ok() || workspace.is_err(), "a workspace may say no more than a user");
        let mut partial = settings::LayerSettings::empty(Layer::User);
        for key in Key::ALL {
            let _ = partial.set_text(key, text.lines().next().unwrap_or_default());
        }
        let merged = Settings::merged([partial]);
        for key in Key::ALL {
            let _ = (merged.show(key).value.to_string(), merged.is_reader(text, true));
        }
        match user {
            Ok(user) => {
                let merged = Settings::merged([user]);
                Key::ALL.into_iter().map(|key| merged.show(key).value.to_string().len().to_string()).collect()
            }
            Err(error) => error.to_string().chars().take(40).collect(),
        }
    });
}

#[test]
fn whatever_decodes_as_a_tree_has_that_one_encoding() {
    let id = ObjectId([7; 32]);
    let mut tree = TreeEncoder::new(true);
    tree.file(b"a", 0o644, 12, &id);
    tree.folder(b"d", 0o755, &id, true);
    tree.symlink(b"l", b"target");
    tree.skipped(b"node_modules", SkipReason::Ignored);
    tree.file(b"z\xff", 0o7777, u64::MAX, &id);
    fuzz("tree", &[tree.finish(), TreeEncoder::new(false).finish()], |bytes| match Tree::decode(bytes) {
        Ok(tree) => {
            assert_eq!(tree.encode(), bytes, "one encoding");
            assert_eq!(Tree::decode(&tree.encode()).as_ref().ok(), Some(&tree));
            (tree.entries().len(), String::new())
        }
        Err(error) => (0, error.to_string().chars().take(30).collect()),
    });
}

#[test]
fn paths_and_targets_are_what_they_say_or_refused() {
    let seeds =
        ["src/a.rs", "a", "", "../x", "a//b", "t5.3", "s1:t5.end", "10m", "@", "start", "kzmn", "99999999999h", "-1d"];
    fuzz("path", &seeds.map(|seed| seed.as_bytes().to_vec()), |bytes| {
        let path = WorkspacePath::new(bytes);
        if let Ok(path) = &path {
            assert_eq!(path.as_bytes(), bytes);
            assert!(!path.as_path().is_absolute());
            let is_plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
            assert!(path.as_path().components().all(is_plain), "{path:?} stays inside");
            let json = serde_json::to_vec(path).unwrap();
            assert_eq!(serde_json::from_slice::<WorkspacePath>(&json).ok().as_ref(), Some(path));
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return (path.is_ok(), String::new()) };
        let _ = (WorkspacePath::from_base64(text), serde_json::from_str::<WorkspacePath>(text));
        let (session, rest) = split_session(text);
        assert!(session.is_none_or(|session| text.starts_with(session)) && text.ends_with(rest));
        let target = text.parse::<When>();
        if check_name(text).is_ok() {
            assert!(matches!(target, Ok(When::Name(_) | When::Id(_))), "a name is never taken for something else");
        }
        (path.is_ok(), format!("{target:?}").chars().take(8).collect())
    });
}

const RECORDS: [&str; 9] = [
    r#"{"seq":1,"record":"name","checkpoint":"kkkkkkkkkkkkkkkk","name":"good","at":"2026-11-15T20:03:11.042Z"}"#,
    r#"{"seq":2,"record":"turn","session":"kkkkkkkkkkkkkkkk","number":1,"prompt":"do","at":"2026-11-15T20:03:11.042Z"}"#,
    r#"{"head":{"branch":"main","commit":"0123456789012345678901234567890123456789"},"staged":[],"uncommitted":true}"#,
    r#""2026-11-15T20:03:11.042Z""#,
    r#""-009999-01-02T01:59:59Z""#,
    r#""9999-12-30T22:00:00.9999999Z""#,
    r#"{"kind":"file","mode":420,"size":3,"blob":"0707070707070707070707070707070707070707070707070707070707070707"}"#,
    r#"{"kind":"symlink","target":"a"}"#,
    r#"{"seq":3,"record":"gap","session":null,"reason":"late","at":"2026-11-15T20:03:11.042Z"}"#,
];

#[test]
fn a_record_that_can_be_read_is_written_and_read_the_same() {
    fuzz("record", &records(), |bytes| {
        fn check<T: serde::Serialize + for<'a> serde::Deserialize<'a> + PartialEq + std::fmt::Debug>(
            bytes: &[u8],
        ) -> Option<usize> {
            let value: T = serde_json::from_slice(bytes).ok()?;
            let json = serde_json::to_vec(&value).unwrap();
            let again: T = serde_json::from_slice(&json).unwrap_or_else(|e| panic!("{e}: {value:?}"));
            assert_eq!(value, again);
            Some(format!("{value:?}").split(['{', '(']).take(3).map(str::len).sum())
        }
        let found = [
            check::<Numbered>(bytes),
            check::<GitState>(bytes),
            check::<Timestamp>(bytes),
            check::<piton_engine::model::Entry>(bytes),
            check::<piton_engine::model::Owner>(bytes),
        ];
        let why =
            serde_json::from_slice::<Numbered>(bytes).err().map(|e| e.to_string().chars().take(30).collect::<String>());
        (found, why)
    });
}

/// Those of a real store, and some made by hand.
fn records() -> Vec<Vec<u8>> {
    let mut all = RECORDS.map(|record| record.as_bytes().to_vec()).to_vec();
    all.extend(super::store::timeline());
    all
}

/// Three contents in one, separated by lines of `%%`.
fn three(bytes: &[u8]) -> [&[u8]; 3] {
    let mut parts = bytes.splitn(3, |b| *b == b'%').map(|part| part.strip_prefix(b"\n").unwrap_or(part));
    [(); 3].map(|()| parts.next().unwrap_or_default())
}

const TEXTS: [&str; 4] = [
    "a\nb\nc\n%\na\nB\nc\n%\na\nb\nC\n",
    "a\n\nb\n%\r\na\r\n%a",
    "fn a() {\n  1\n}\n%fn a() {\n  2\n}\n%fn a() {\n  1\n}\nfn b() {}\n",
    "%%",
];

const LABELS: Labels<'_> = Labels { ours: "now", base: "after", theirs: "before" };
const DECISIONS: [Option<Decision>; 4] = [None, Some(Decision::Ours), Some(Decision::Theirs), Some(Decision::Markers)];

#[test]
fn texts_are_merged_and_compared_whatever_is_in_them() {
    fuzz("text", &TEXTS.map(|seed| seed.as_bytes().to_vec()), |bytes| {
        let [base, ours, theirs] = three(bytes);
        let mut clashes = 0;
        for decision in DECISIONS {
            let merged = merge(false, base, ours, theirs, decision, &LABELS);
            clashes = merged.clashes.len();
            let has_bytes = match decision {
                None => merged.clashes.is_empty() && !merged.whole,
                Some(Decision::Markers) => !merged.whole,
                Some(Decision::Ours | Decision::Theirs) => true,
            };
            assert_eq!(merged.bytes.is_some(), has_bytes, "{decision:?}");
        }
        assert_eq!(merge(false, base, base, theirs, None, &LABELS).bytes.as_deref(), Some(theirs));
        assert_eq!(merge(false, base, ours, base, None, &LABELS).bytes.as_deref(), Some(ours));
        let context = [0, 1, 3, u32::MAX][bytes.len() % 4];
        let diff = text::diff(ours, theirs, context);
        if let Ok(text) = std::str::from_utf8(bytes) {
            let plain = summary::plain(text);
            assert_eq!(summary::plain(&plain), plain, "nothing is left to take out");
            let _ = summary::tidy(text);
        }
        (clashes, format!("{diff:?}").matches("Hunk").count())
    });
}

#[test]
fn notebooks_are_merged_to_notebooks() {
    let cell = |id: &str, source: &str| {
        format!(
            r#"{{"cell_type":"code","id":"{id}","metadata":{{}},"outputs":[],"execution_count":1,"source":["{source}\n","x"]}}"#
        )
    };
    let notebook = |cells: &[String]| {
        format!("{{\"cells\":[{}],\"metadata\":{{}},\"nbformat\":4,\"nbformat_minor\":5}}\n", cells.join(","))
    };
    let (a, b, c) = (cell("a", "1"), cell("b", "2"), cell("b", "3"));
    let seeds = [
        [notebook(&[a.clone(), b.clone()]), notebook(&[a.clone(), c.clone()]), notebook(&[b.clone(), a.clone()])],
        [notebook(std::slice::from_ref(&a)), notebook(&[a.clone(), b.clone()]), notebook(&[])],
        [notebook(&[a.clone(), b.clone()]), notebook(&[c, b.clone()]), notebook(&[b, a])],
    ];
    let seeds = seeds.map(|three| three.join("%").into_bytes());
    fuzz("notebook", &seeds, |bytes| {
        let [base, ours, theirs] = three(bytes);
        let is_json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
        let mut outcome = Vec::new();
        for decision in DECISIONS {
            let merged = merge(true, base, ours, theirs, decision, &LABELS);
            if let Some(bytes) = &merged.bytes {
                let was = [base, ours, theirs].into_iter().all(is_json);
                assert!(!was || is_json(bytes), "notebooks merge to a notebook");
            }
            outcome.push((merged.bytes.is_some(), merged.clashes.len(), merged.whole));
        }
        outcome
    });
}
