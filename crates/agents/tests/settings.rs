//! Adding piton's hooks to a settings file and removing them changes nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use piton_agents::claude_code::settings::{EVENTS, HookCommand, install, installed, remove};
use piton_agents::setup::BadSettings;
use proptest::prelude::*;

fn piton() -> HookCommand {
    HookCommand::new("/usr/local/bin/piton")
}

/// Checks that a file can be set up, twice, and restored. Returns what it is in between.
fn check(text: &str) -> String {
    let with = install(text, &piton()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(install(&with, &piton()).as_ref(), Ok(&with), "twice is once\n{text}");
    let found = installed(&with).unwrap();
    assert_eq!(found.missing, Vec::<&str>::new(), "{with}");
    assert!(found.hooks.iter().all(|hook| hook.program == piton().program));
    assert_eq!(found.hooks.len(), EVENTS.len(), "{with}");
    let moved = install(&with, &HookCommand::new("/opt/it's \"new\"/piton")).unwrap();
    assert_eq!(install(&moved, &piton()).as_ref(), Ok(&with), "another path and back\n{text}");
    assert_eq!(remove(&moved).as_deref(), Ok(text), "taken out\n{with}");
    assert_eq!(remove(&with).as_deref(), Ok(text), "taken out\n{with}");
    with
}

const OTHERS: &str = r#"{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}"#;

#[test]
fn a_file_is_as_it_was_after_the_hooks_came_and_went() {
    for text in [
        "",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "{ \n}\n",
        "{  \n}\n",
        "{\n\n}\n",
        "{\r\n}\r\n",
        "\u{feff}{}\n",
        "  { }  ",
        "{\"model\":\"opus\"}",
        "{\"model\": \"opus\", \"a\": [1, 2]}\n",
        "{\n  \"model\": \"opus\"\n}\n",
        "{\n  \"model\": \"opus\"\n}",
        "{\n  \"model\": \"opus\",\n}\n",
        "{\"model\":\"opus\",}",
        "{\r\n    \"model\": \"opus\"\r\n}\r\n",
        "{\n\t\"model\": \"opus\",\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n",
        "{\n  // what I like   \n  \"model\": \"opus\" // really\n}\n",
        "{\n  \"model\": \"opus\", // really   \n}\n",
        "{\n  \"model\": \"opus\" /* a, } */\n  // the end\n}\n",
        "// before\n{\n  \"a\": \"}\\\"{\" }\n// after\n",
        "{ /* nothing yet */ }",
        "{\n  // nothing yet\n}\n",
        "{\"hooks\":{}}",
        "{\"hooks\": { }}",
        "{\"hooks\":{  }}",
        "{\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n  }\n}\n",
        "{\n  \"hooks\": { \n  }\n}\n",
        "{\n  \"hooks\": { // mine\n  }\n}\n",
        "{\n  \"hooks\": {},\n  \"model\": \"opus\"\n}\n",
        "{\n  \"hooks\": {\n    \"Notification\": []\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"PreToolUse\": [],\n    \"Stop\": [ ]\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"PreToolUse\": [\n    ],\n    \"SessionStart\": [\n\n\t]\n  }\n}\n",
        "{\"hooks\":{\"Stop\":[],\"PreToolUse\":[ ]}}",
        "{\n  \"hooks\": {\"Stop\": [], \"PreToolUse\": [\n\t\t], \"SessionStart\": []}\n}\n",
        "{\n  \"hooks\": {\n    \"SessionEnd\": [ /* none */ ],\n    \"Stop\": [\n      // none\n    ]\n  }\n}\n",
        &format!("{{\"hooks\":{{\"PreToolUse\":[{OTHERS}]}}}}"),
        &format!("{{\n  \"hooks\": {{\n    \"PreToolUse\": [\n      {OTHERS}\n    ]\n  }}\n}}\n"),
        &format!(
            "{{\n  \"hooks\": {{\n    \"PreToolUse\": [{OTHERS}, {OTHERS},],\n    \"Stop\": [{OTHERS} // x\n    ],\n  }},\n}}\n"
        ),
        &format!("{{\r\n\t\"hooks\": {{\r\n\t\t\"Stop\": [\r\n\t\t\t{OTHERS}, // x\r\n\t\t]\r\n\t}}\r\n}}\r\n"),
    ] {
        check(text);
    }
}

#[test]
fn a_new_file_is_tidy_json() {
    let with = check("");
    let value: serde_json::Value = serde_json::from_str(&with).unwrap();
    let hooks = value["hooks"].as_object().unwrap();
    assert_eq!(hooks.len(), EVENTS.len());
    assert_eq!(
        hooks["Stop"],
        serde_json::json!([{ "hooks": [{
            "type": "command",
            "command": "/usr/local/bin/piton hook claude-code 2>/dev/null || :",
            "timeout": 30,
        }] }])
    );
    for (event, groups) in hooks {
        let is_tool_event = ["PreToolUse", "PostToolUse", "PostToolUseFailure"].contains(&event.as_str());
        let matcher = groups[0]["matcher"].as_str();
        assert_eq!(matcher.is_some_and(|m| m.starts_with("^(?!(?:Read|Grep|Glob|")), is_tool_event, "{event}");
    }
    assert!(with.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\n        \"hooks\": ["), "{with}");
    assert!(with.ends_with("    ]\n  }\n}\n") && !with.contains(" \n"), "{with}");
}

#[test]
fn the_layout_of_a_file_is_taken_up() {
    let tabs = check("{\n\t\"model\": \"opus\"\n}\n");
    assert!(
        tabs.starts_with("{\n\t\"model\": \"opus\",\n\t\"hooks\": {\n\t\t\"SessionStart\": [\n\t\t\t{\n"),
        "{tabs}"
    );
    assert!(tabs.ends_with("\n\t\t]\n\t}\n}\n"), "{tabs}");
    let windows = check("{\r\n    \"model\": \"opus\"\r\n}\r\n");
    assert_eq!(windows.matches('\n').count(), windows.matches("\r\n").count());
    let line = check("{\"model\":\"opus\"}");
    assert!(line.starts_with("{\"model\":\"opus\",\"hooks\":{\"SessionStart\":[{\"hooks\":[{\"type\":"), "{line}");
    assert!(!line.contains('\n') && line.ends_with("\"timeout\":30}]}]}}"), "{line}");
    let airy = check("{\"model\": \"opus\"}");
    assert!(airy.starts_with("{\"model\": \"opus\", \"hooks\": {\"SessionStart\": [{"), "{airy}");
    let commented = check("{\n  \"model\": \"opus\" // really\n}\n");
    assert!(commented.starts_with("{\n  \"model\": \"opus\", // really\n  \"hooks\": {\n"), "{commented}");
}

#[test]
fn hooks_of_others_stay_where_they_are() {
    let text = format!("{{\n  \"hooks\": {{\n    \"PreToolUse\": [\n      {OTHERS}\n    ]\n  }}\n}}\n");
    let with = check(&text);
    assert!(with.starts_with(&text[..text.find("\n    ]").unwrap()]), "{with}");
    assert_eq!(remove(&text).as_deref(), Ok(text.as_str()));
}

#[test]
fn an_entry_that_only_resembles_pitons_is_not_touched() {
    for command in [
        "echo piton hook claude-code",
        "piton hook generic",
        "piton hook",
        "/opt/pitons hook claude-code",
        "notify 'piton hook claude-code'",
        "piton log hook claude-code",
        "'unclosed",
        "",
        // It does more than piton wrote, so it is the user's own.
        "piton hook claude-code && notify-send done",
        "piton hook claude-code | tee log",
        "piton hook claude-code > /tmp/mine",
        "piton hook claude-code --verbose",
        "piton hook claude-code # mine",
        "piton hook claude-code\nnotify-send done",
        "piton hook claude-code 2>/dev/null || : ; notify-send done",
        "piton hook claude-code 2>/dev/null || notify-send failed",
        "piton hook claude-code; notify-send done",
        "piton hook claude-code &",
        "A=b piton hook claude-code",
    ] {
        assert_eq!(HookCommand::of(command), None, "{command}");
        let text = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}});
        check(&text.to_string());
    }
    for command in [
        "piton hook claude-code",
        "piton hook claude-code\n",
        "\"/a b/piton\" hook claude-code || true",
        "'/a #b/piton' hook claude-code 2>/dev/null || :",
        "'/a/piton' hook 'claude-code'",
    ] {
        assert!(HookCommand::of(command).is_some(), "{command}");
    }
}

#[test]
fn a_setup_from_before_lacks_the_end_of_a_batch_and_gets_it_and_both_go_byte_for_byte() {
    let users = "{\n  \"model\": \"x\"\n}\n";
    let now = install(users, &piton()).unwrap();
    // As the piton of before left it.
    let place = |event: &str| now.find(&format!("    \"{event}\"")).unwrap();
    let without = format!("{}{}", &now[..place("PostToolBatch")], &now[place("Stop")..]);
    assert_eq!(installed(&without).unwrap().missing, ["PostToolBatch"]);
    let again = install(&without, &piton()).unwrap();
    assert!(installed(&again).unwrap().missing.is_empty(), "{again}");
    assert_eq!(remove(&again).unwrap(), users);
    assert_eq!(remove(&without).unwrap(), users);
}

#[test]
fn what_an_earlier_piton_left_is_brought_up_to_date() {
    let old = r#"{"hooks":{"SubagentStart":[{"hooks":[{"type":"command","command":"/old/piton hook claude-code"}]}],
        "PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/old/piton hook claude-code","timeout":5}]},
                      {"hooks":[{"type":"command","command":"/older/piton hook claude-code"}]}]}}"#;
    let with = install(old, &piton()).unwrap();
    let found = installed(&with).unwrap();
    assert_eq!(found.hooks.len(), EVENTS.len(), "{with}");
    assert!(found.missing.is_empty() && !with.contains("SubagentStart") && !with.contains("/old"), "{with}");
    // The user's own time limit stays.
    assert!(with.contains("\"timeout\":5") && !with.contains("\"matcher\":\"*\""), "{with}");
    // So do hooks for events that piton does not handle.
    let now: Vec<String> = found.hooks.into_iter().map(|hook| hook.event).collect();
    let old = with.replacen("\"SessionEnd\"", "\"SubagentStop\"", 1);
    assert_eq!(installed(&old).unwrap().missing, ["SessionEnd"]);
    let with = install(&old, &piton()).unwrap();
    assert!(!with.contains("Subagent"), "{with}");
    assert_eq!(installed(&with).unwrap().hooks.len(), now.len());
}

#[test]
fn a_hook_that_shares_its_group_goes_alone() {
    let shared = r#"{"hooks":{"Stop":[{"matcher":"x","hooks":[{"type":"command","command":"lint"},
        {"type":"command","command":"/p/piton hook claude-code"}]}]}}"#;
    let with = install(shared, &piton()).unwrap();
    assert!(with.contains(r#""matcher":"x""#), "{with}");
    let without = remove(&with).unwrap();
    assert_eq!(without, r#"{"hooks":{"Stop":[{"matcher":"x","hooks":[{"type":"command","command":"lint"}]}]}}"#);
}

#[test]
fn a_comment_never_swallows_what_follows_a_hook() {
    let with = "{\"hooks\":{\"Stop\":[ // piton's:\n{\"hooks\":[{\"command\":\"piton hook claude-code\"}]}, 7]}}";
    let without = remove(with).unwrap();
    assert_eq!(without, "{\"hooks\":{\"Stop\":[ // piton's:\n 7]}}");
}

#[test]
fn what_cannot_be_edited_is_refused_and_named() {
    let hook = piton();
    for (text, says) in [
        ("{", "not JSON"),
        ("{\"a\":1} x", "not JSON"),
        ("{a:1}", "not JSON"),
        ("{'a':1}", "not JSON"),
        ("{\"a\":1 \"b\":2}", "not JSON"),
        ("[]", "the settings file is not a JSON object"),
        ("null", "the settings file is not a JSON object"),
        ("// nothing", "the settings file is not a JSON object"),
        ("{\"hooks\":[]}", "`hooks` of the settings is not an object"),
        ("{\"hooks\":null}", "`hooks` of the settings is not an object"),
        ("{\"hooks\":{\"Stop\":{}}}", "`hooks.Stop` of the settings is not a list"),
        ("{\"hooks\":{},\"hooks\":{}}", "`hooks` comes twice"),
        ("{\"hooks\":{\"Stop\":[],\"Stop\":[]}}", "`Stop` comes twice"),
    ] {
        let error = install(text, &hook).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    for program in ["/a\0b/piton", ""] {
        let made = install("", &HookCommand::new(program));
        assert_eq!(made.is_err(), program.contains('\0'), "{program:?}");
    }
    let odd = std::os::unix::ffi::OsStringExt::from_vec(b"/\xff/piton".to_vec());
    let odd: std::ffi::OsString = odd;
    assert!(matches!(install("", &HookCommand::new(odd)), Err(BadSettings::Program { .. })));
}

#[test]
fn nothing_of_piton_is_nothing_to_remove() {
    for text in
        ["", " \n", "{}", "{\"hooks\":7}", "{\"hooks\":{\"Stop\":7}}", "{\"hooks\":{\"Stop\":[7,{\"hooks\":7},{}]}}"]
    {
        assert_eq!(remove(text).as_deref(), Ok(text));
        assert!(installed(text).unwrap().hooks.is_empty());
    }
    assert!(installed("{\"disableAllHooks\":true}").unwrap().disabled);
}

/// The command in a real shell: with a program that exists, one that does not, one that fails and one that dies.
#[test]
fn the_command_ends_in_0_whatever_the_program_does() {
    let folder = std::env::temp_dir().join(format!("piton agents' \"test\" {}", std::process::id()));
    let program = folder.join("piton");
    for (script, says) in [
        (None, ""),
        (Some("echo \"$@\""), "hook claude-code\n"),
        (Some("echo noise >&2; exit 2"), ""),
        (Some("kill -SEGV $$"), ""),
    ] {
        if let Some(script) = script {
            let made = Command::new("sh")
                .args(["-c", "mkdir -p \"$1\" && printf '#!/bin/sh\\n%s\\n' \"$3\" > \"$2\" && chmod +x \"$2\"", "sh"])
                .args([folder.as_os_str(), program.as_os_str(), script.as_ref()])
                .status();
            assert!(made.unwrap().success());
        }
        let text = HookCommand::new(&program).text().unwrap();
        assert_eq!(HookCommand::of(&text), Some(HookCommand::new(&program)));
        let out = Command::new("sh").args(["-c", &text]).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{script:?}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), says, "{script:?}");
        assert!(!String::from_utf8_lossy(&out.stderr).contains("noise"), "{script:?}");
    }
    Command::new("rm").arg("-r").arg(&folder).status().unwrap();
}

/// Makes settings files of every shape, out of a list of choices.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn pick<'b>(&mut self, from: &[&'b str]) -> &'b str {
        from[usize::from(*self.0.next().unwrap_or(&0)) % from.len()]
    }

    fn between(&mut self) -> &'static str {
        self.pick(&[
            "",
            "",
            " ",
            "\n",
            "\n  ",
            "\n    ",
            "\r\n\t",
            "  ",
            " \n",
            "\n\n",
            " \n  ",
            "\t",
            "/* , } ] */",
            " // x \"[{\n",
            "// y  \r\n  ",
            "\u{a0}",
        ])
    }

    fn list(&mut self, open: char, close: char, items: Vec<String>) -> String {
        let mut out = String::from(open);
        let last = items.len();
        for (at, item) in items.into_iter().enumerate() {
            out += self.between();
            out += &item;
            out += self.between();
            let trailing = at + 1 == last;
            out += if trailing { self.pick(&["", "", ","]) } else { "," };
        }
        out += self.between();
        out.push(close);
        out
    }

    fn property(&mut self, key: &str, value: String) -> String {
        format!("\"{key}\"{}:{}{value}", self.between(), self.between())
    }

    fn groups(&mut self) -> String {
        let items = (0..self.pick(&["", "", "1", "12"]).len())
            .map(|_| self.pick(&[OTHERS, "7", "{}", "{\"hooks\": []}", "[ ]"]).to_owned())
            .collect();
        self.list('[', ']', items)
    }

    fn events(&mut self) -> String {
        let mut items = Vec::new();
        for event in ["Notification", "Stop", "PreToolUse", "SessionStart", "SessionEnd", "PostToolUse"] {
            if self.pick(&["", "x"]) == "x" {
                let groups = self.groups();
                items.push(self.property(event, groups));
            }
        }
        self.list('{', '}', items)
    }

    fn file(&mut self) -> String {
        let mut items = Vec::new();
        for key in ["model", "hooks", "permissions"] {
            match self.pick(&["", "x"]) {
                "x" if key == "hooks" => {
                    let events = self.events();
                    items.push(self.property(key, events));
                }
                "x" => {
                    let value = self.pick(&["1", "\"a \\\" // b\"", "{ }", "[]", "{\"a\": [1,\n2]}"]).to_owned();
                    items.push(self.property(key, value));
                }
                _ => {}
            }
        }
        let root = self.list('{', '}', items);
        format!("{}{root}{}", self.between(), self.between())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_file_is_as_it_was_after_the_hooks_came_and_went(choices in proptest::collection::vec(any::<u8>(), 0..120)) {
        check(&Choices(choices.iter()).file());
    }
}
