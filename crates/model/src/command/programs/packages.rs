//! Package managers and build tools, which run scripts of the workspace's own.

use super::known::{IDLE_SCRIPTS, RUST};
use super::{Call, operands};
use crate::command::{Argument, SideEffect};

impl Call<'_> {
    pub(super) fn cargo(&mut self, words: &[Argument], texts: &[&str]) {
        let has = |wanted: &[&str]| texts.iter().any(|word| wanted.contains(word));
        let verb = texts.iter().find(|word| !word.starts_with(['-', '+'])).copied().unwrap_or_default();
        match verb {
            "fmt" if has(&["--check"]) => {}
            "fmt" => self.everything(RUST),
            "fix" => self.everything(RUST),
            "clippy" if has(&["--fix"]) => self.everything(RUST),
            "test" | "t" | "nextest" | "check" | "c" | "clippy" | "bench" | "doc" | "tree" | "metadata" | "search"
            | "audit" | "deny" | "outdated" | "udeps" | "machete" | "miri" | "--version" | "version" | "clean"
            | "fetch" => {
                if self.updates(texts) {
                    self.unknown_with_names(words);
                }
            }
            "add" | "remove" | "rm" | "update" | "generate-lockfile" | "upgrade" => {
                self.name("**/Cargo.toml", false, &[]);
                self.name("**/Cargo.lock", false, &[]);
            }
            "new" | "init" => drop(self.writes_all(&operands(words).skip(1).cloned().collect::<Vec<_>>(), &[])),
            "install" | "uninstall" | "publish" | "login" | "yank" | "package" => {}
            _ => self.unknown_with_names(words),
        }
    }

    /// Package managers: what they install is in folders that are ignored, as a rule; what else they write is known by name.
    pub(super) fn node_packages(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        let mut given = texts.iter().filter(|word| !word.starts_with('-'));
        let verb = given.next().copied().unwrap_or_default();
        let script = match verb {
            "run" | "run-script" | "rum" | "urn" => given.next().copied().unwrap_or_default(),
            "test" | "t" | "tst" | "start" => verb,
            "" if texts.iter().any(|word| matches!(*word, "--version" | "-v" | "--help")) => return,
            "ls" | "list" | "view" | "info" | "outdated" | "audit" | "why" | "explain" | "config" | "bin" | "root"
            | "prefix" | "whoami" | "ping" | "search" | "pack" | "help" | "doctor" | "fund" | "licenses" | "docs"
            | "publish" | "login"
                if !texts.contains(&"fix") =>
            {
                return;
            }
            "install" | "i" | "add" | "ci" | "update" | "up" | "upgrade" | "remove" | "rm" | "uninstall" | "un"
            | "link" | "dedupe" | "prune" | "rebuild" | "audit" | "import" | "" => {
                for name in [
                    "package.json",
                    "package-lock.json",
                    "npm-shrinkwrap.json",
                    "yarn.lock",
                    "pnpm-lock.yaml",
                    "bun.lockb",
                    "bun.lock",
                ] {
                    self.file(name);
                }
                self.folder("node_modules");
                // Scripts of packages may write anything.
                self.unknown();
                return;
            }
            _ if program == "deno" && matches!(verb, "lint" | "check" | "info") => return,
            _ if program == "deno" && verb == "fmt" => {
                if !texts.contains(&"--check") {
                    self.rewrites_after(words, &[]);
                }
                return;
            }
            _ if program == "npm" => {
                self.unknown_with_names(words);
                return;
            }
            // The others run scripts by their names alone.
            script => script,
        };
        self.named_script(script, words, texts);
    }

    /// A script of which only the name is known.
    fn named_script(&mut self, script: &str, words: &[Argument], texts: &[&str]) {
        let lower = script.to_ascii_lowercase();
        let parts: Vec<&str> = lower.split([':', '-', '_', '.', '/']).collect();
        if ["db", "migrate", "migration", "migrations", "seed"].iter().any(|word| parts.contains(word)) {
            self.effect(SideEffect::Database);
        }
        if ["deploy", "publish", "release", "push", "upload"].iter().any(|word| parts.contains(word)) {
            self.effect(SideEffect::Push);
        }
        let writes = ["fix", "write", "update", "format", "fmt", "generate", "gen", "codegen", "build"];
        let is_idle =
            parts.first().is_some_and(|first| IDLE_SCRIPTS.contains(first)) || IDLE_SCRIPTS.contains(&&lower[..]);
        if is_idle
            && !parts.iter().any(|part| writes.contains(part))
            && !texts.contains(&"--fix")
            && !self.updates(texts)
        {
            return;
        }
        self.effect(SideEffect::Script);
        self.unknown_with_names(words);
    }

    pub(super) fn build(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        if texts.iter().any(|word| matches!(*word, "-n" | "--dry-run" | "--version" | "--help" | "-v")) {
            return;
        }
        let goals: Vec<&str> =
            texts.iter().filter(|word| !word.starts_with('-') && !word.contains('=')).copied().collect();
        if program == "rails" && matches!(goals.first(), Some(&("server" | "s" | "test" | "routes" | "console" | "c")))
        {
            return;
        }
        if matches!(program, "rails") && matches!(goals.first(), Some(&("generate" | "g" | "destroy" | "d"))) {
            self.everything(&[]);
            return;
        }
        if program == "mix" && goals.first() == Some(&"format") && !texts.contains(&"--check-formatted") {
            self.everything(&[".ex", ".exs", ".heex"]);
            return;
        }
        if program == "dotnet" && goals.first() == Some(&"format") && !texts.contains(&"--verify-no-changes") {
            self.everything(&[]);
            return;
        }
        match goals.is_empty() {
            true => {
                self.effect(SideEffect::Script);
                self.unknown_with_names(words);
            }
            false => goals.into_iter().for_each(|goal| self.named_script(goal, words, texts)),
        }
    }
}
