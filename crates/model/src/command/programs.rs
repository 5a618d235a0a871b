//! What single programs do with their arguments. The lists are of what agents run every day; whatever is in none of them is
//! unknown.

mod code;
mod effects;
mod files;
mod git;
mod known;
mod packages;

use super::names::{Name, is_pattern};
use super::{Argument, Folder, Reading, SideEffect, Text, Writes};

pub(super) use self::code::code_names;
use self::effects::{DATABASES, NETWORK, ONLY_SHOWS, PACKAGES, SERVICES};
use self::known::{GO, IDLE, LOOKERS, PYTHON, REWRITERS, UPDATES, UPDATING, WRITERS};

/// A command with all that is known of how it is run.
pub(super) struct Call<'r> {
    pub reading: &'r mut Reading,
    /// Variables that are set for it.
    pub set: Vec<String>,
    pub reads: bool,
    pub here: Option<String>,
    /// The names that come through its pipe.
    pub printed: Option<Vec<Name>>,
}

impl Call<'_> {
    /// Returns the names that it prints, where it lists files.
    pub(super) fn run(mut self, mut words: Vec<Argument>) -> Option<Vec<Name>> {
        loop {
            let first = words.first().cloned()?;
            words.remove(0);
            let Some(first) = first else {
                self.unknown();
                return None;
            };
            if self.set_by_env(&first) {
                continue;
            }
            let program = first.plain.rsplit('/').next().unwrap_or_default().to_owned();
            let is_script = first.plain.contains('/') && !is_in_system(&first.plain);
            if is_script && !first.plain.contains("node_modules/.bin/") && !first.plain.contains("/bin/") {
                self.script_of_its_own(&words);
                return None;
            }
            match self.wraps(&program, &mut words) {
                Some(true) => {}
                Some(false) => return None,
                None => return self.program(&program, &words),
            }
        }
    }

    /// `NAME=value` behind `env` or `sudo`.
    fn set_by_env(&mut self, word: &Text) -> bool {
        let Some((name, _)) = word.plain.split_once('=') else { return false };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name {
            self.set.push(name.to_owned());
        }
        is_name
    }

    /// Whether a program runs another one: yes, with what is left of the words; yes, and that was done; else none.
    fn wraps(&mut self, program: &str, words: &mut Vec<Argument>) -> Option<bool> {
        let text = |words: &[Argument], at: usize| words.get(at).cloned().flatten().map(|word| word.plain);
        let is_option = |words: &[Argument]| text(words, 0).is_some_and(|word| word.starts_with('-') && word != "--");
        match program {
            "sudo" | "doas" | "env" | "nice" | "ionice" | "nohup" | "setsid" | "stdbuf" | "time" | "builtin"
            | "exec" | "command" | "caffeinate" | "unbuffer" | "chronic" | "winpty" | "dotenv" | "cross-env"
            | "dotenvx" => {
                if matches!(program, "nohup" | "setsid") {
                    self.reading.effects.insert(SideEffect::Processes);
                }
                let with_value: &[&str] = match program {
                    "sudo" | "doas" => &["-u", "-g", "-C", "-h", "-p", "-U"],
                    "nice" | "ionice" => &["-n", "-c", "-p"],
                    "env" => &["-u", "-C", "-S"],
                    _ => &[],
                };
                while is_option(words) {
                    let option = text(words, 0).unwrap_or_default();
                    // Another folder, or a whole line: nothing is known of what runs where.
                    if program == "env" && matches!(&option[..], "-C" | "-S")
                        || (program == "command" && option == "-v")
                    {
                        return if program == "command" { Some(false) } else { self.unknown_done() };
                    }
                    words.remove(0);
                    if with_value.contains(&&option[..]) && !words.is_empty() {
                        words.remove(0);
                    }
                }
                if text(words, 0).as_deref() == Some("--") {
                    words.remove(0);
                }
                Some(!words.is_empty())
            }
            "timeout" | "gtimeout" => {
                while is_option(words) {
                    let option = text(words, 0).unwrap_or_default();
                    words.remove(0);
                    if matches!(&option[..], "-k" | "-s") && !words.is_empty() {
                        words.remove(0);
                    }
                }
                if !words.is_empty() {
                    words.remove(0);
                }
                Some(!words.is_empty())
            }
            "npx" | "bunx" | "pnpx" | "uvx" => {
                while is_option(words) {
                    let option = text(words, 0).unwrap_or_default();
                    words.remove(0);
                    if matches!(&option[..], "-p" | "--package") && !words.is_empty() {
                        words.remove(0);
                    }
                }
                Some(!words.is_empty())
            }
            "npm" | "pnpm" | "yarn" | "bun" | "poetry" | "pipenv" | "uv" | "bundle" | "hatch" | "pdm" | "rye"
            | "composer" => {
                let runs = match program {
                    "poetry" | "pipenv" | "uv" | "hatch" | "pdm" | "rye" => "run",
                    "bun" => "x",
                    _ => "exec",
                };
                let is_run = text(words, 0).is_some_and(|word| word == runs || (program == "pnpm" && word == "dlx"));
                if !is_run {
                    return None;
                }
                words.remove(0);
                if text(words, 0).as_deref() == Some("--") {
                    words.remove(0);
                }
                Some(!words.is_empty())
            }
            "bash" | "sh" | "zsh" | "dash" | "ksh" | "ash" | "fish" => {
                let is_command = |word: &Argument| {
                    word.as_ref().is_some_and(|word| {
                        word.plain.starts_with('-') && !word.plain.starts_with("--") && word.plain.ends_with('c')
                    })
                };
                match (words.iter().position(is_command), self.here.take()) {
                    (Some(at), _) => match words.get(at + 1).cloned().flatten() {
                        Some(script) => self.inner(&script.plain),
                        None => return self.unknown_done(),
                    },
                    (None, Some(script))
                        if words.iter().all(|word| word.as_ref().is_some_and(|w| w.plain.starts_with('-'))) =>
                    {
                        self.inner(&script);
                    }
                    _ => {
                        let rest: Vec<_> = words.iter().skip(1).cloned().collect();
                        self.script_of_its_own(&rest);
                    }
                }
                Some(false)
            }
            "eval" => {
                let all: Option<Vec<String>> = words.iter().map(|word| Some(word.as_ref()?.plain.clone())).collect();
                match all {
                    Some(all) => self.inner(&all.join(" ")),
                    None => return self.unknown_done(),
                }
                Some(false)
            }
            "source" | "." => {
                self.unknown();
                self.reading.folder = Folder::Unknown;
                Some(false)
            }
            "xargs" | "parallel" => {
                while is_option(words) {
                    let option = text(words, 0).unwrap_or_default();
                    words.remove(0);
                    let with_value = ["-n", "-L", "-P", "-I", "-d", "-s", "-E", "--max-procs", "--max-args", "-j"];
                    if with_value.contains(&&option[..]) && !words.is_empty() {
                        words.remove(0);
                    }
                }
                match self.printed.take() {
                    // What it is given is what the commands before it list.
                    Some(names) if !names.is_empty() => words.extend(names.into_iter().map(listed_word).map(Some)),
                    _ => words.push(None),
                }
                // `{}` is where they go.
                words.retain(|word| word.as_ref().is_none_or(|word| word.plain != "{}"));
                Some(words.len() > 1)
            }
            _ => None,
        }
    }

    fn inner(&mut self, script: &str) {
        // It goes elsewhere by itself.
        let (folder, variables) = (self.reading.folder.clone(), self.reading.variables.clone());
        self.reading.script(script);
        (self.reading.folder, self.reading.variables) = (folder, variables);
    }

    fn unknown(&mut self) {
        self.reading.writes.push(Writes::Unknown);
    }

    fn unknown_done(&mut self) -> Option<bool> {
        self.unknown();
        Some(false)
    }

    fn effect(&mut self, effect: SideEffect) {
        self.reading.effects.insert(effect);
    }

    /// A script or program of which nothing is known: it writes the files that it is told by name, and maybe others.
    fn script_of_its_own(&mut self, words: &[Argument]) {
        self.effect(SideEffect::Script);
        self.unknown_with_names(words);
    }

    fn unknown_with_names(&mut self, words: &[Argument]) {
        self.unknown();
        let is_file = |text: &str| text.rsplit('/').next().is_some_and(|name| name.trim_matches('.').contains('.'));
        for (at, word) in words.iter().enumerate() {
            let Some(word) = word else { continue };
            // Where output goes is said by an option, and may be a folder.
            let before = at.checked_sub(1).and_then(|at| words[at].as_ref());
            let is_output = |option: &str| {
                matches!(
                    option,
                    "-o" | "--output" | "--out" | "--out-dir" | "--outdir" | "--output-dir" | "--outDir" | "--dest"
                )
            };
            if let Some((_, value)) = word.plain.split_once('=').filter(|(option, _)| is_output(option)) {
                self.folder(&super::names::escaped(value));
            } else if before.is_some_and(|before| is_output(&before.plain)) {
                self.folder(&word.pattern);
            } else if !word.plain.starts_with('-') && is_file(&word.plain) {
                self.file(&word.pattern);
            }
        }
    }

    fn name(&mut self, pattern: &str, whole: bool, endings: &'static [&'static str]) {
        let name = self.reading.at(pattern).map(|pattern| Name { pattern, whole, endings });
        self.reading.writes.push(name.map_or(Writes::Unknown, Writes::Named));
    }

    fn file(&mut self, pattern: &str) {
        self.name(pattern, false, &[]);
    }

    fn folder(&mut self, pattern: &str) {
        self.name(pattern, true, &[]);
    }

    /// Every word that is no option names something that is written.
    fn writes_all(&mut self, words: &[Argument], endings: &'static [&'static str]) -> usize {
        let mut count = 0;
        for word in operands(words) {
            count += 1;
            match word {
                Some(word) => self.name(&word.pattern, true, endings),
                None => self.unknown(),
            }
        }
        count
    }

    /// Everything that the workspace has.
    fn everything(&mut self, endings: &'static [&'static str]) {
        // A repository may begin above the folder that the command stands in.
        self.reading.writes.push(Writes::Named(Name { pattern: "/".into(), whole: true, endings }));
    }

    fn program(&mut self, program: &str, words: &[Argument]) -> Option<Vec<Name>> {
        let texts: Vec<&str> = words.iter().map(|word| word.as_ref().map_or("", |word| &word.plain)).collect();
        let first = texts.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
        let has = |wanted: &[&str]| texts.iter().any(|word| wanted.contains(word));
        self.note_effects(program, &texts, first);
        if let Some(rewriter) = REWRITERS.iter().find(|one| one.name == program) {
            let rewrites = (rewriter.needs.is_empty() || has(rewriter.needs)) && !has(rewriter.unless);
            if rewrites {
                let skipped = ["format", "fmt", "check", "lint", "fix", "run"];
                let given: Vec<Argument> = words
                    .iter()
                    .filter(|word| !word.as_ref().is_some_and(|w| skipped.contains(&&w.plain[..])))
                    .cloned()
                    .collect();
                // They know patterns themselves, also in quotes.
                let own = |word: Text| Text { pattern: word.plain.clone(), ..word };
                let given: Vec<Argument> = given.into_iter().map(|word| word.map(own)).collect();
                if self.writes_all(&given, rewriter.endings) == 0 {
                    self.everything(rewriter.endings);
                }
            }
            return None;
        }
        match program {
            "cd" | "pushd" => self.go_to(words),
            "popd" => self.reading.folder = Folder::Unknown,
            "find" | "fd" | "fdfind" => return self.find(program, words),
            "ls" | "grep" | "egrep" | "fgrep" | "rg" | "ag" if !self.reads => return Some(self.lists(program, words)),
            "grep" | "egrep" | "fgrep" | "rg" | "head" | "tail" | "sort" | "uniq" | "tac" if self.printed.is_some() => {
                return self.printed.take();
            }
            "sort" => {
                if let Some(at) = texts.iter().position(|word| matches!(*word, "-o" | "--output")) {
                    self.option_value(words, at);
                }
            }
            "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" | "mawk" => self.edits_in_place(program, words, &texts),
            "mkdir" => {}
            // Without a name it is one that piton did not see.
            _ if WRITERS.contains(&program) => {
                if self.writes_all(words, &[]) == 0 {
                    self.unknown();
                }
            }
            "cp" | "mv" | "ln" | "install" | "rsync" | "gcp" | "gmv" => self.copies(program, words, &texts),
            "dd" => {
                for word in words.iter().flatten() {
                    if let Some(file) = word.pattern.strip_prefix("of=") {
                        self.file(file);
                    }
                }
            }
            "patch" => match operands(words).next() {
                Some(Some(file)) => self.file(&file.pattern),
                _ if has(&["--dry-run"]) => {}
                _ => self.everything(&[]),
            },
            "sponge" | "sd" => {
                let skip = if program == "sd" { 2 } else { 0 };
                for word in operands(words).skip(skip) {
                    match word {
                        Some(word) => self.folder(&word.pattern),
                        None => self.unknown(),
                    }
                }
            }
            "tar" | "bsdtar" => self.tar(words, &texts),
            "unzip" | "gunzip" | "gzip" | "bzip2" | "xz" | "7z" | "zip" => self.archive(program, words, &texts),
            "curl" | "wget" => self.downloads(program, words, &texts),
            "git" => return self.git(words),
            "cargo" => self.cargo(words, &texts),
            "go" => match first {
                "fmt" | "fix" => self.everything(GO),
                "generate" => self.everything(&[]),
                "test" | "vet" | "version" | "env" | "list" | "doc" | "tool" if !has(&["-w"]) => {}
                "mod" | "get" | "work" => {
                    self.file("go.mod");
                    self.file("go.sum");
                }
                _ => self.unknown_with_names(words),
            },
            "npm" | "pnpm" | "yarn" | "bun" | "deno" => self.node_packages(program, words, &texts),
            "make" | "gmake" | "just" | "task" | "rake" | "gradle" | "gradlew" | "mvn" | "mvnw" | "sbt" | "ant"
            | "bazel" | "tox" | "nx" | "turbo" | "lerna" | "invoke" | "grunt" | "gulp" | "mix" | "dotnet" | "swift"
            | "rails" | "cmake" | "ninja" => {
                self.build(program, words, &texts);
            }
            "python" | "python3" | "python2" | "node" | "deno-run" | "php" | "lua" | "osascript" | "ts-node"
            | "tsx" | "Rscript" | "julia" | "pypy" | "pypy3" | "ipython" => self.interpreter(program, words, &texts),
            "tsc" => {
                if !has(&["--noEmit", "--version", "-v", "--showConfig", "--listFilesOnly"]) {
                    self.unknown_with_names(words);
                }
            }
            "ruff" => match first {
                "format" if !has(&["--check", "--diff"]) => self.rewrites_after(words, PYTHON),
                _ if has(&["--fix"]) && !has(&["--diff"]) => self.rewrites_after(words, PYTHON),
                _ => {}
            },
            "terraform" | "tofu" if first == "fmt" && !has(&["-check"]) => self.everything(&[".tf", ".tfvars"]),
            "dart" | "flutter" | "buf" | "zig" if matches!(first, "format" | "fmt") => self.everything(&[]),
            "playwright" | "vitest" | "jest" | "pytest" if self.updates(&texts) => self.unknown_with_names(words),
            "vite" | "next" | "astro" | "nuxt" | "ng" | "hugo" | "jekyll" | "webpack" | "parcel" | "remix" => {
                if !matches!(
                    first,
                    "" | "dev" | "serve" | "server" | "start" | "preview" | "watch" | "lint" | "check" | "test" | "s"
                ) {
                    self.unknown_with_names(words);
                } else if matches!((program, first), ("hugo" | "webpack" | "jekyll" | "ng", "")) {
                    self.unknown();
                }
            }
            "docker" | "podman" | "docker-compose" | "kubectl" | "helm" => {
                if !has(ONLY_SHOWS) {
                    self.unknown();
                }
            }
            "kill" | "pkill" | "killall" | "fuser" => {}
            _ if DATABASES.contains(&program) || SERVICES.contains(&program) || PACKAGES.contains(&program) => {
                if !has(ONLY_SHOWS) {
                    self.unknown_with_names(words);
                }
            }
            _ if IDLE.contains(&program) => {
                if self.updates(&texts) {
                    self.unknown_with_names(words);
                }
            }
            _ if LOOKERS.contains(&program) => {}
            _ if NETWORK.contains(&program) => self.unknown_with_names(words),
            _ => self.unknown_with_names(words),
        }
        None
    }

    fn updates(&self, texts: &[&str]) -> bool {
        texts.iter().any(|word| UPDATES.contains(&&word.to_ascii_lowercase()[..]))
            || self.set.iter().any(|name| UPDATING.contains(&&name[..]))
    }

    fn rewrites_after(&mut self, words: &[Argument], endings: &'static [&'static str]) {
        // The first word is what it does.
        let given: Vec<Argument> = operands(words).skip(1).cloned().collect();
        if self.writes_all(&given, endings) == 0 {
            self.everything(endings);
        }
    }

    fn option_value(&mut self, words: &[Argument], at: usize) {
        match words.get(at + 1).cloned().flatten() {
            Some(value) => self.file(&value.pattern),
            None => self.unknown(),
        }
    }

    fn go_to(&mut self, words: &[Argument]) {
        let to = operands(words).next().cloned();
        self.reading.folder = match to {
            Some(Some(to)) if to.plain != "-" && !is_pattern(&to.plain) => {
                self.reading.at(&to.pattern).map_or(Folder::Unknown, Folder::At)
            }
            _ => Folder::Unknown,
        };
    }
}

fn is_in_system(program: &str) -> bool {
    ["/bin/", "/usr/", "/opt/", "/sbin/", "/nix/", "/snap/"].iter().any(|folder| program.starts_with(folder))
}

/// The words that are no options.
fn operands(words: &[Argument]) -> impl Iterator<Item = &Argument> {
    let mut is_over = false;
    words.iter().filter(move |word| {
        let text = word.as_ref().map_or("", |word| &word.plain);
        if is_over {
            return true;
        }
        if text == "--" {
            is_over = true;
            return false;
        }
        word.is_none() || !text.starts_with('-') || text == "-"
    })
}

/// A name that another command lists, as a word.
fn listed_word(name: Name) -> Text {
    let pattern = if name.whole { format!("{}/**", name.pattern) } else { name.pattern };
    Text { plain: pattern.clone(), pattern }
}
