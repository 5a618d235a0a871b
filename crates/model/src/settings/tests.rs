use super::*;

fn check(text: &str, key: Key, expected: Value) {
    let partial = read(text, Layer::User).unwrap_or_else(|bad| panic!("{text:?}: {bad}"));
    let shown = Settings::merged([partial]).show(key);
    assert_eq!(shown, Setting { value: expected, source: Layer::User }, "{text:?}");
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let said = read(text, Layer::User).map(|_| ()).unwrap_err().to_string();
    assert_eq!(said, expected, "{text:?}");
}

#[test]
fn an_empty_file_says_nothing() {
    for text in ["", "\n# nothing\n", "[capture]\n[hook]\n[tools]\n", "\u{feff}"] {
        let partial = read(text, Layer::User).unwrap();
        assert_eq!(partial, LayerSettings::empty(Layer::User));
        assert_eq!(Settings::merged([partial]), Settings::default());
    }
}

#[test]
fn every_key_can_be_set() {
    check("[capture]\nautomatic = false", Key::Automatic, Value::Switch(false));
    check("capture.size-limit = '512KiB'", Key::SizeLimit, Value::Size(512 << 10));
    check("capture = { ignored-limit = \"0\" }", Key::IgnoredLimit, Value::Size(0));
    check("[hook]\ntime-budget = \"2m\"", Key::TimeBudget, Value::Time(Duration::from_secs(120)));
    check("[hook]\nuser-line = true", Key::UserLine, Value::Switch(true));
    check("[tools]\nreaders = ['a', 'b*']", Key::Readers, Value::Tools(vec!["a".into(), "b*".into()]));
    check("[tools]\nwriters = []", Key::Writers, Value::Tools(Vec::new()));
    check("[conversation]\nmost-branches = 7", Key::MostBranches, Value::Count(7));
}

#[test]
fn a_number_of_branches_is_at_least_one() {
    for bad in ["0", "-1", "100001", "'many'", "1.5", "true"] {
        assert!(read(&format!("conversation.most-branches = {bad}"), Layer::User).is_err(), "{bad}");
    }
    assert_eq!(Key::MostBranches.variable().as_deref(), Some("PITON_CONVERSATION_MOST_BRANCHES"));
}

#[test]
fn sizes_are_bytes_or_have_a_unit() {
    for (text, bytes) in [
        ("4096", 4096),
        ("0x10_00", 4096),
        ("1_000_000", 1_000_000),
        ("'4096'", 4096),
        ("'7 B'", 7),
        ("'512KiB'", 512 << 10),
        ("'2 GB'", 2 << 30),
        ("'3m'", 3 << 20),
        ("' 1TiB '", 1 << 40),
    ] {
        check(&format!("capture.size-limit = {text}"), Key::SizeLimit, Value::Size(bytes));
    }
    for text in ["0", "'0'", "-1", "1.5", "'1.5GiB'", "'GiB'", "''", "'5 apples'", "'99999999999TiB'", "true", "[1]"] {
        assert!(read(&format!("capture.size-limit = {text}"), Layer::User).is_err(), "{text}");
    }
}

#[test]
fn times_have_a_unit_and_keep_to_the_limits() {
    for (text, ms) in [("1s", 1000), ("1500ms", 1500), ("10 s", 10_000), ("10m", 600_000), ("600s", 600_000)] {
        let expected = Value::Time(Duration::from_millis(ms));
        check(&format!("hook.time-budget = '{text}'"), Key::TimeBudget, expected);
    }
    for text in ["'500ms'", "'0s'", "'11m'", "'601s'", "10", "'10'", "'1h'", "'-1s'", "'1.5s'", "'99999999999999999m'"]
    {
        assert!(read(&format!("hook.time-budget = {text}"), Layer::User).is_err(), "{text}");
    }
}

#[test]
fn a_value_is_shown_as_it_could_be_written() {
    for (value, text) in [
        (Value::Size(0), "0"),
        (Value::Size(1500), "1500"),
        (Value::Size(1536), "1536"),
        (Value::Size(1 << 20), "1MiB"),
        (Value::Size(3 << 29), "1536MiB"),
        (Value::Time(Duration::from_secs(10)), "10s"),
        (Value::Time(Duration::from_secs(120)), "2m"),
        (Value::Time(Duration::from_millis(1500)), "1500ms"),
    ] {
        assert_eq!(value.to_string(), text);
    }
    let time = serde_json::to_string(&Value::Time(Duration::from_secs(10))).unwrap();
    assert_eq!(time, "\"10s\"");
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest_one() {
    for (text, expected) in [
        ("\n[capture]\nautomtic = true", "3:1: unknown key `capture.automtic`; did you mean `capture.automatic`?"),
        ("capture.size_limit = 1", "1:9: unknown key `capture.size_limit`; did you mean `capture.size-limit`?"),
        ("[hook]\nautomatic = true", "2:1: unknown key `hook.automatic`; did you mean `capture.automatic`?"),
        ("user-line = true", "1:1: unknown key `user-line`; did you mean `hook.user-line`?"),
        ("[tools]\nreader = []", "2:1: unknown key `tools.reader`; did you mean `tools.readers`?"),
        ("[capture]\ncolour = 'red'", "2:1: unknown key `capture.colour`"),
        ("[hooks]\nuser-line = true", "1:2: unknown section `hooks`; did you mean `hook`?"),
        ("[captrue.x]", "1:2: unknown section `captrue`; did you mean `capture`?"),
        ("[foo]", "1:2: unknown section `foo`"),
        ("\"\" = 1", "1:1: unknown key ``"),
    ] {
        refused(text, expected);
    }
}

#[test]
fn a_wrong_value_is_told_with_what_is_expected() {
    for (text, expected) in [
        ("capture.automatic = 'yes'", "1:21: `capture.automatic` takes true or false; found \"yes\""),
        ("capture.automatic.x = 1", "1:9: `capture.automatic` takes true or false; found a section"),
        (
            "[capture]\nsize-limit = '2 apples'",
            "2:14: `capture.size-limit` takes a size such as \"512KiB\" or \"2GiB\"; found \"2 apples\"",
        ),
        (
            "capture.ignored-limit = -1",
            "1:25: `capture.ignored-limit` takes a size such as \"1MiB\", or \"0\" for none; found -1",
        ),
        (
            "hook.time-budget = 10",
            "1:20: `hook.time-budget` takes a time from \"1s\" to \"10m\", such as \"10s\"; found 10",
        ),
        (
            "capture = true",
            "1:11: `capture` is a section and takes no value of its own; write `[capture]` on a line, and its keys below",
        ),
    ] {
        refused(text, expected);
    }
}

#[test]
fn of_a_list_the_wrong_entry_is_found() {
    let list = "`tools.readers` takes a list of tools such as [\"mcp__docs__search\", \"mcp__wiki__*\"]; \
                a `*` stands at the end of a name; found ";
    for (text, place, found) in [
        ("tools.readers = 'Read'", "1:17", "\"Read\""),
        ("tools.readers = ['Read', 7]", "1:26", "7"),
        ("tools.readers = [\n  'ü', 'm*p']", "2:8", "\"m*p\""),
        ("tools.readers = ['']", "1:18", "\"\""),
    ] {
        refused(text, &format!("{place}: {list}{found}"));
    }
}

#[test]
fn of_several_mistakes_the_first_in_the_file_is_told() {
    refused("[tools]\nx = 1\n[capture]\nautomatic = 1", "2:1: unknown key `tools.x`");
    refused("[hook]\nzzz = 1\naaa = 1", "2:1: unknown key `hook.zzz`");
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    for (text, place) in [
        ("[capture\n", "1:9: "),
        ("[capture]\nautomatic true\n", "2:11: "),
        ("[capture]\nautomatic = true\nautomatic = false\n", "3:1: "),
        ("x = \"\u{1b}\"", "1:6: "),
    ] {
        let said = read(text, Layer::User).unwrap_err().to_string();
        assert!(said.starts_with(&format!("{place}this is not TOML: ")), "{text:?}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn long_names_are_cut_and_deep_ones_are_refused() {
    let said = read(&format!("{} = 1", "x".repeat(500_000)), Layer::Workspace).unwrap_err().to_string();
    assert!(said.len() < 200, "{said}");
    let said = read(&format!("capture.automatic = '{}'", "x".repeat(500_000)), Layer::Workspace).unwrap_err();
    assert!(said.to_string().len() < 200, "{said}");
    for deep in [format!("x = {}", "[".repeat(500_000)), format!("x{} = 1", ".x".repeat(200_000))] {
        assert!(read(&deep, Layer::Workspace).is_err());
    }
}

#[test]
fn the_later_layer_decides_key_by_key() {
    let user = read("capture.automatic = false\ncapture.size-limit = 1\ntools.readers = ['a']", Layer::User).unwrap();
    let workspace = read("capture.size-limit = 2\ntools.readers = ['b']", Layer::Workspace).unwrap();
    let mut variables = LayerSettings::empty(Layer::Environment);
    variables.set_text(Key::TimeBudget, "3s").unwrap();
    // In whatever order they come.
    let settings = Settings::merged([variables, workspace, user]);
    assert_eq!(settings.automatic, Setting { value: false, source: Layer::User });
    assert_eq!(settings.size_limit, Setting { value: 2, source: Layer::Workspace });
    assert_eq!(settings.ignored_limit, Setting { value: 1 << 20, source: Layer::Default });
    assert_eq!(settings.time_budget, Setting { value: Duration::from_secs(3), source: Layer::Environment });
    assert_eq!(settings.readers, Setting { value: vec!["b".into()], source: Layer::Workspace });
}

#[test]
fn a_variable_is_written_without_quotes() {
    let mut partial = LayerSettings::empty(Layer::Environment);
    for (key, text) in [
        (Key::Automatic, "false"),
        (Key::SizeLimit, "4096"),
        (Key::IgnoredLimit, "2 MiB"),
        (Key::TimeBudget, "1m"),
        (Key::UserLine, " true "),
        (Key::MostBranches, " 12 "),
    ] {
        assert_eq!(partial.set_text(key, text), Ok(()), "{text}");
    }
    let said = partial.set_text(Key::UserLine, "yes").unwrap_err().to_string();
    assert_eq!(said, "`hook.user-line` takes true or false; found \"yes\"");
    assert_eq!(Key::TimeBudget.variable().as_deref(), Some("PITON_HOOK_TIME_BUDGET"));
    assert_eq!(Key::Readers.variable(), None);
}

#[test]
fn who_summarizes_is_the_users_own_to_say_and_no_workspaces() {
    let text =
        "[summary]\ncommand = \"summarize -p 'Briefly'\"\nurl = 'https://x/v1'\nkey-env = 'MY_KEY'\ntime-limit = '10m'";
    check(text, Key::SummaryCommand, Value::Text("summarize -p 'Briefly'".into()));
    check(text, Key::SummaryUrl, Value::Text("https://x/v1".into()));
    check(text, Key::SummaryKeyEnv, Value::Text("MY_KEY".into()));
    check(text, Key::SummaryTimeLimit, Value::Time(Duration::from_secs(600)));
    check("summary.url = ''", Key::SummaryUrl, Value::Text(String::new()));
    for bad in ["url = 'ftp://x'", "url = 'https://'", "url = 'http://a b'", "key-env = 'A B'", "time-limit = '2h'"] {
        assert!(read(&format!("summary.{bad}"), Layer::User).is_err(), "{bad}");
    }
    for key in Key::ALL.into_iter().filter(|key| key.is_personal()) {
        let bad = read(&format!("{} = 'x'", key.name()), Layer::Workspace).unwrap_err();
        assert_eq!(bad.wrong, SettingsMistake::NotHere(key));
        assert!(key.name().starts_with("summary.") && key.variable().is_some());
    }
}

#[test]
fn a_tool_is_a_reader_if_somebody_says_so_and_nobody_calls_it_a_writer() {
    let text = "[tools]\nreaders = ['mcp__docs__*', 'Peek', 'Both']\nwriters = ['Read', 'Both', 'mcp__docs__put*']";
    let settings = Settings::merged([read(text, Layer::User).unwrap()]);
    for (tool, known, expected) in [
        ("Grep", true, true),
        ("Bash", false, false),
        ("Peek", false, true),
        ("PeekMore", false, false),
        ("mcp__docs__search", false, true),
        ("mcp__docs__", false, true),
        ("mcp__docs", false, false),
        ("mcp__docs__put_page", false, false),
        ("Read", true, false),
        ("Both", false, false),
    ] {
        assert_eq!(settings.is_reader(tool, known), expected, "{tool}");
    }
}
