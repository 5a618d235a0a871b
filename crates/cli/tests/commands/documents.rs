//! The commands in README and in `docs/`, as somebody would copy them.

use std::path::PathBuf;

use piton_testkit::Scene;
use serde_json::Value;

use crate::PITON;

/// Every document that tells people what to type, with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let top = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(top.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let documents = docs.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let all = documents.chain([top.join("README.md")]);
    all.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The lines of `console` blocks that begin with `$ piton `, each with its words after the program's name. What follows for
/// the shell (a comment, a pipe, another command) is not piton's.
fn commands(document: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut in_console = false;
    for line in document.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if let (true, Some(command)) = (in_console, line.strip_prefix("$ piton")) {
            let words = shlex::split(command).unwrap_or_else(|| panic!("a shell cannot read this: {line}"));
            let is_for_the_shell = |word: &String| matches!(word.as_str(), "|" | ">" | "&&") || word.starts_with('#');
            found.push((line.to_owned(), words.into_iter().take_while(|word| !is_for_the_shell(word)).collect()));
        }
    }
    found
}

#[test]
fn every_command_in_a_document_has_arguments_that_piton_understands() {
    let scene = Scene::with_a_home(PITON);
    scene.world.write("src/auth.ts", "one\n");
    scene.ok(&["checkpoint", "before-refactor"]);
    let mut count = 0;
    for (path, text) in documents() {
        for (line, words) in commands(&text) {
            let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
            if !args.contains(&"--json") {
                args.insert(0, "--json");
            }
            if words.first().is_some_and(|verb| verb == "watch") {
                args.extend(["--timeout", "0s"]);
            }
            let output = scene.run(&args);
            let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            // Turns and sessions of the documents are not there; all that counts is that the words are understood.
            let code = printed["error"]["code"].as_str().unwrap_or_default();
            assert!(!code.starts_with("arguments"), "{}: {line}\n{printed:#}", path.display());
            assert_ne!(output.status.code(), Some(2), "{}: {line}\n{printed:#}", path.display());
            count += 1;
        }
    }
    assert!(count > 60, "only {count} commands were found");
}

#[test]
fn every_command_that_a_document_names_in_a_sentence_is_one() {
    let verbs: Vec<String> = {
        let help = Scene::with_a_home(PITON).ok(&["help"]);
        help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned)).collect()
    };
    for (path, text) in documents() {
        // Backquotes come in pairs, on one line or across its end.
        for call in text.replace('\n', " ").split('`').filter_map(|piece| piece.strip_prefix("piton ")) {
            let verb = call.split_whitespace().next().unwrap_or_default();
            // A placeholder (`piton COMMAND`), a flag, or no command at all.
            if verb == "help" || !verb.chars().all(|c| c.is_ascii_lowercase()) {
                continue;
            }
            assert!(verbs.iter().any(|one| one == verb), "{}: {call}", path.display());
        }
    }
}
