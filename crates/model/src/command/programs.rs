//! What single programs do with their arguments. The lists are of what agents run every day; whatever is in none of them is
//! unknown.

use super::names::{CommandPlace, Name, is_pattern};
use super::{Argument, Folder, Reading, SideEffect, Text, Writes};
use crate::path::WorkspacePath;

/// They write nothing but what their output is redirected to.
const LOOKERS: &[&str] = &[
    ":",
    "[",
    "[[",
    "alias",
    "ack",
    "ag",
    "apropos",
    "arch",
    "base64",
    "basename",
    "bat",
    "bc",
    "cal",
    "cat",
    "cksum",
    "cloc",
    "cmp",
    "column",
    "comm",
    "command",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "env",
    "exa",
    "exit",
    "expand",
    "export",
    "expr",
    "eza",
    "factor",
    "false",
    "fgrep",
    "file",
    "fold",
    "free",
    "getconf",
    "grep",
    "groups",
    "hash",
    "head",
    "hexdump",
    "history",
    "hostname",
    "id",
    "jobs",
    "jq",
    "less",
    "local",
    "look",
    "ls",
    "lsblk",
    "lscpu",
    "lsof",
    "man",
    "md5sum",
    "more",
    "nl",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "pgrep",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "return",
    "rev",
    "rg",
    "seq",
    "set",
    "sha1sum",
    "sha256sum",
    "shift",
    "shopt",
    "sleep",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "test",
    "tokei",
    "top",
    "tput",
    "tr",
    "trap",
    "tree",
    "true",
    "tsort",
    "tty",
    "type",
    "ulimit",
    "umask",
    "uname",
    "unalias",
    "unset",
    "uptime",
    "wait",
    "wc",
    "whatis",
    "whereis",
    "which",
    "who",
    "whoami",
    "xxd",
    "yes",
    "zcat",
    "zgrep",
    "uniq",
    "break",
    "continue",
    "ping",
    "dig",
    "nslookup",
    "host",
    "netstat",
    "ss",
    "watch",
    "cd",
];

/// They write every file that they name.
const WRITERS: &[&str] =
    &["touch", "rm", "rmdir", "unlink", "shred", "truncate", "chmod", "chown", "chgrp", "tee", "mkfifo"];

/// Tests, linters and servers: the code that they run is the workspace's own, and does not write it as a rule.
const IDLE: &[&str] = &[
    "pytest",
    "py.test",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "tape",
    "karma",
    "cypress",
    "playwright",
    "rspec",
    "phpunit",
    "pest",
    "ctest",
    "bats",
    "tox",
    "nox",
    "nosetests",
    "behave",
    "cucumber",
    "nyc",
    "c8",
    "mypy",
    "pyright",
    "flake8",
    "pylint",
    "pycodestyle",
    "pydocstyle",
    "bandit",
    "shellcheck",
    "hadolint",
    "yamllint",
    "actionlint",
    "tflint",
    "phpstan",
    "psalm",
    "brakeman",
    "vale",
    "codespell",
    "http-server",
    "live-server",
    "json-server",
    "serve",
    "uvicorn",
    "gunicorn",
    "hypercorn",
    "flask",
    "daphne",
    "puma",
    "caddy",
    "nodemon",
    "vulture",
    "depcheck",
    "madge",
    "knip",
    "commitlint",
    "vite",
    "next",
];

/// Formatters and codemods: the files or folders that they are given, else everything, but not where one of the words
/// says that they only look.
struct Rewriter {
    name: &'static str,
    /// One of these has to be there; none where it rewrites without a word.
    needs: &'static [&'static str],
    /// With one of these it only looks.
    unless: &'static [&'static str],
    endings: &'static [&'static str],
}

const PYTHON: &[&str] = &[".py", ".pyi", ".ipynb"];
const GO: &[&str] = &[".go"];
const RUST: &[&str] = &[".rs"];
const RUBY: &[&str] = &[".rb", ".rake", ".gemspec", "Gemfile", "Rakefile"];

const REWRITERS: &[Rewriter] = &[
    Rewriter { name: "prettier", needs: &["--write", "-w"], unless: &["--check", "-c"], endings: &[] },
    Rewriter { name: "eslint", needs: &["--fix"], unless: &["--fix-dry-run"], endings: &[] },
    Rewriter { name: "tslint", needs: &["--fix"], unless: &[], endings: &[] },
    Rewriter { name: "stylelint", needs: &["--fix"], unless: &[], endings: &[] },
    Rewriter { name: "markdownlint", needs: &["--fix", "-f"], unless: &[], endings: &[".md"] },
    Rewriter { name: "standard", needs: &["--fix"], unless: &[], endings: &[] },
    Rewriter { name: "xo", needs: &["--fix"], unless: &[], endings: &[] },
    Rewriter { name: "oxlint", needs: &["--fix"], unless: &[], endings: &[] },
    Rewriter { name: "biome", needs: &["--write", "--apply", "--fix", "--apply-unsafe"], unless: &[], endings: &[] },
    Rewriter { name: "rome", needs: &["--write", "--apply"], unless: &[], endings: &[] },
    Rewriter { name: "rustfmt", needs: &[], unless: &["--check"], endings: RUST },
    Rewriter { name: "gofmt", needs: &["-w"], unless: &[], endings: GO },
    Rewriter { name: "gofumpt", needs: &["-w"], unless: &[], endings: GO },
    Rewriter { name: "goimports", needs: &["-w"], unless: &[], endings: GO },
    Rewriter { name: "golangci-lint", needs: &["--fix"], unless: &[], endings: GO },
    Rewriter { name: "black", needs: &[], unless: &["--check", "--diff"], endings: PYTHON },
    Rewriter { name: "isort", needs: &[], unless: &["--check", "--check-only", "-c", "--diff"], endings: PYTHON },
    Rewriter { name: "autopep8", needs: &["-i", "--in-place"], unless: &[], endings: PYTHON },
    Rewriter { name: "yapf", needs: &["-i", "--in-place"], unless: &[], endings: PYTHON },
    Rewriter { name: "autoflake", needs: &["-i", "--in-place"], unless: &["--check"], endings: PYTHON },
    Rewriter { name: "pyupgrade", needs: &[], unless: &[], endings: PYTHON },
    Rewriter { name: "clang-format", needs: &["-i"], unless: &[], endings: &[] },
    Rewriter { name: "shfmt", needs: &["-w"], unless: &[], endings: &[] },
    Rewriter {
        name: "rubocop",
        needs: &["-a", "-A", "--autocorrect", "--auto-correct", "--autocorrect-all"],
        unless: &[],
        endings: RUBY,
    },
    Rewriter { name: "standardrb", needs: &["--fix"], unless: &[], endings: RUBY },
    Rewriter { name: "php-cs-fixer", needs: &["fix"], unless: &["--dry-run"], endings: &[".php"] },
    Rewriter { name: "phpcbf", needs: &[], unless: &[], endings: &[".php"] },
    Rewriter { name: "ktlint", needs: &["-F", "--format"], unless: &[], endings: &[".kt", ".kts"] },
    Rewriter { name: "swiftformat", needs: &[], unless: &["--lint", "--dryrun"], endings: &[".swift"] },
    Rewriter { name: "stylua", needs: &[], unless: &["--check"], endings: &[".lua"] },
    Rewriter { name: "taplo", needs: &["fmt", "format"], unless: &["--check"], endings: &[".toml"] },
    Rewriter { name: "dprint", needs: &["fmt"], unless: &[], endings: &[] },
    Rewriter { name: "treefmt", needs: &[], unless: &["--fail-on-change"], endings: &[] },
    Rewriter { name: "jscodeshift", needs: &[], unless: &["--dry", "-d"], endings: &[] },
    Rewriter { name: "codemod", needs: &[], unless: &[], endings: &[] },
    Rewriter { name: "fastmod", needs: &[], unless: &[], endings: &[] },
    Rewriter { name: "ast-grep", needs: &["-U", "--update-all"], unless: &[], endings: &[] },
    Rewriter { name: "sg", needs: &["-U", "--update-all"], unless: &[], endings: &[] },
    Rewriter { name: "comby", needs: &["-i", "-in-place"], unless: &[], endings: &[] },
    Rewriter { name: "semgrep", needs: &["--autofix"], unless: &["--dryrun"], endings: &[] },
    Rewriter { name: "lint-staged", needs: &[], unless: &[], endings: &[] },
];

/// Words with which a test writes what it expects.
const UPDATES: [&str; 9] = [
    "-u",
    "--update",
    "--updatesnapshot",
    "--update-snapshots",
    "--update-snapshot",
    "--snapshot-update",
    "--bless",
    "--accept",
    "--force-regen",
];
/// Variables that do the same.
const UPDATING: [&str; 6] = ["INSTA_UPDATE", "UPDATE_EXPECT", "UPDATE_SNAPSHOTS", "BLESS", "UPDATE_GOLDEN", "TRYBUILD"];

const NETWORK: &[&str] = &[
    "curl",
    "wget",
    "ssh",
    "scp",
    "sftp",
    "ftp",
    "rsync",
    "nc",
    "ncat",
    "telnet",
    "http",
    "https",
    "xh",
    "gh",
    "glab",
    "hub",
    "aws",
    "gcloud",
    "gsutil",
    "az",
    "doctl",
    "heroku",
    "vercel",
    "netlify",
    "fly",
    "flyctl",
    "wrangler",
    "firebase",
    "railway",
    "mail",
    "sendmail",
    "rclone",
    "s3cmd",
    "grpcurl",
    "websocat",
    "stripe",
    "twilio",
    "surge",
    "cap",
    "mosquitto_pub",
];
const PACKAGES: &[&str] = &[
    "apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "rpm", "zypper", "pacman", "apk", "brew", "port", "snap",
    "flatpak", "choco", "winget", "nix-env", "rustup", "nvm", "pyenv", "rbenv", "asdf", "mise", "volta", "corepack",
    "sdk", "conda", "mamba", "pipx",
];
const DATABASES: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "mongo",
    "mongosh",
    "redis-cli",
    "createdb",
    "dropdb",
    "createuser",
    "dropuser",
    "pg_restore",
    "mysqladmin",
    "mysqlimport",
    "mongoimport",
    "mongorestore",
    "cqlsh",
    "influx",
    "clickhouse-client",
    "duckdb",
    "alembic",
    "knex",
    "sequelize",
    "typeorm",
    "drizzle-kit",
    "flyway",
    "liquibase",
    "diesel",
    "sqlx",
    "goose",
    "dbmate",
    "prisma",
    "supabase",
    "atlas",
    "sqlcmd",
];
const SERVICES: &[&str] = &[
    "systemctl",
    "service",
    "launchctl",
    "docker",
    "docker-compose",
    "podman",
    "nerdctl",
    "kubectl",
    "helm",
    "terraform",
    "tofu",
    "pulumi",
    "ansible",
    "ansible-playbook",
    "vagrant",
    "minikube",
    "kind",
    "k3d",
    "pm2",
    "supervisorctl",
    "nginx",
    "apachectl",
    "crontab",
    "at",
    "initctl",
    "rc-service",
    "virsh",
    "multipass",
    "lxc",
    "nomad",
    "consul",
    "vault",
    "iptables",
    "ufw",
    "mount",
    "umount",
    "sysctl",
    "reboot",
    "shutdown",
];
/// Of services only these words look and change nothing.
const ONLY_SHOWS: &[&str] = &[
    "ps",
    "ls",
    "list",
    "logs",
    "status",
    "show",
    "get",
    "describe",
    "inspect",
    "images",
    "version",
    "--version",
    "info",
    "top",
    "is-active",
    "is-enabled",
    "config",
    "plan",
    "validate",
    "--help",
    "-h",
    "-l",
    "explain",
    "diff",
    "events",
    "stats",
];
/// Words in a script's name by which it is known to look only.
const IDLE_SCRIPTS: &[&str] = &[
    "test",
    "tests",
    "check",
    "lint",
    "typecheck",
    "type-check",
    "dev",
    "start",
    "serve",
    "watch",
    "preview",
    "tsc",
    "types",
    "t",
];

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

    fn find(&mut self, program: &str, words: &[Argument]) -> Option<Vec<Name>> {
        let texts: Vec<&str> = words.iter().map(|word| word.as_ref().map_or("", |word| &word.plain)).collect();
        let is_find = program == "find";
        let roots: Vec<&Argument> = match is_find {
            true => {
                words.iter().take_while(|w| w.as_ref().is_none_or(|w| !w.plain.starts_with(['-', '(', '!']))).collect()
            }
            false => operands(words).skip(1).collect(),
        };
        if roots.iter().any(|root| root.is_none()) {
            self.unknown();
            return None;
        }
        let roots: Vec<String> = match roots.is_empty() {
            true => vec![".".into()],
            false => roots.into_iter().flatten().map(|root| root.pattern.clone()).collect(),
        };
        let is_after_name = |two: &&[&str]| matches!(two[0], "-name" | "-iname");
        let wanted: Vec<String> = texts.windows(2).filter(is_after_name).map(|two| two[1].to_owned()).collect();
        let mut names = Vec::new();
        for root in &roots {
            let Some(root) = self.reading.at(root) else {
                self.unknown();
                return None;
            };
            match wanted.is_empty() {
                true => names.push(Name::folder(root)),
                false => names.extend(wanted.iter().map(|name| Name::file(format!("{root}/**/{name}")))),
            }
        }
        if texts.contains(&"-delete") {
            self.reading.writes.extend(names.iter().cloned().map(Writes::Named));
        }
        let ways = ["-exec", "-execdir", "-ok", "-x", "-X", "--exec", "--exec-batch"];
        for (at, _) in texts.iter().enumerate().filter(|(_, word)| ways.contains(word)) {
            let end = texts
                .iter()
                .skip(at + 1)
                .position(|word| matches!(*word, ";" | "+"))
                .map_or(texts.len(), |end| at + 1 + end);
            let mut inner: Vec<Argument> = Vec::new();
            for word in &words[at + 1..end] {
                match word {
                    Some(word) if word.plain == "{}" => inner.extend(names.iter().cloned().map(listed_word).map(Some)),
                    Some(word) if word.plain.contains("{}") => inner.push(None),
                    word => inner.push(word.clone()),
                }
            }
            // The names are seen from where the script began already.
            let folder = std::mem::take(&mut self.reading.folder);
            Call { reading: self.reading, set: Vec::new(), reads: false, here: None, printed: None }.run(inner);
            self.reading.folder = folder;
        }
        Some(names)
    }

    /// The files that a lister may print: those in what it is told to look at.
    fn lists(&mut self, program: &str, words: &[Argument]) -> Vec<Name> {
        let skip = if program == "ls" { 0 } else { 1 };
        let mut names = Vec::new();
        let mut is_any = false;
        for word in operands(words).skip(skip) {
            is_any = true;
            match word.as_ref().and_then(|word| self.reading.at(&word.pattern)) {
                Some(pattern) => names.push(Name::folder(pattern)),
                None => return Vec::new(),
            }
        }
        if !is_any {
            names.extend(self.reading.at(".").map(Name::folder));
        }
        names
    }

    fn edits_in_place(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        let is_awk = program.ends_with("awk");
        let is_in_place = match is_awk {
            true => texts.windows(2).any(|two| two == ["-i", "inplace"]),
            false => texts.iter().any(|word| {
                let short = word.starts_with('-') && !word.starts_with("--") && !word.starts_with("-e");
                word.starts_with("--in-place") || (short && word.contains('i') && !word.starts_with("-I"))
            }),
        };
        let is_script = matches!(program, "perl" | "ruby");
        if !is_in_place {
            match is_script {
                true => self.interpreter(program, words, texts),
                // `w` in a script writes a file that it names, and awk's own redirections do.
                false => {
                    let writes = |word: &&&str| if is_awk { word.contains('>') } else { word.contains("w ") };
                    if texts.iter().filter(writes).count() > 0 {
                        self.unknown_with_names(words);
                    }
                }
            }
            return;
        }
        let has_script = texts.iter().any(|word| matches!(*word, "-e" | "-f") || word.starts_with("--expression"));
        let is_short_e = is_script
            && texts.iter().any(|word| word.starts_with('-') && word.ends_with('e') && !word.starts_with("--"));
        let mut given: Vec<&Argument> = Vec::new();
        let mut skips = false;
        for word in words {
            let text = word.as_ref().map_or("", |word| &word.plain);
            if std::mem::take(&mut skips) {
                continue;
            }
            if text.starts_with('-') && word.is_some() {
                skips = matches!(text, "-e" | "-f") || (is_script && text.ends_with('e')) || (is_awk && text == "-i");
                continue;
            }
            given.push(word);
        }
        // Without `-e` the first is the script. Where macOS wants an ending for the copy, an empty word is it.
        let mut files = given.into_iter().filter(|word| word.as_ref().is_none_or(|word| !word.plain.is_empty()));
        if !has_script && !is_short_e {
            files.next();
        }
        let files: Vec<Argument> = files.cloned().collect();
        if files.is_empty() {
            self.unknown();
        }
        for file in files {
            match file {
                Some(file) => self.folder(&file.pattern),
                None => self.unknown(),
            }
        }
    }

    fn copies(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        let mut given: Vec<Argument> = operands(words).cloned().collect();
        if program == "rsync" && texts.iter().any(|word| word.contains(':')) {
            self.effect(SideEffect::Network);
        }
        if matches!(program, "mv" | "gmv") {
            self.writes_all(words, &[]);
        }
        let to_option = texts.iter().position(|word| matches!(*word, "-t" | "--target-directory"));
        let to = match to_option.and_then(|at| words.get(at + 1).cloned()) {
            Some(to) => {
                given.retain(|word| *word != to);
                to
            }
            // `ln -s TARGET` alone makes a name here.
            None if program == "ln" && given.len() == 1 => {
                let base = given[0].as_ref().map(|word| word.pattern.rsplit('/').next().unwrap_or_default().to_owned());
                match base {
                    Some(base) => self.file(&base),
                    None => self.unknown(),
                }
                return;
            }
            None => match given.pop() {
                Some(to) => to,
                None => return self.unknown(),
            },
        };
        let Some(to) = to else {
            self.unknown();
            return;
        };
        let is_deep = program == "rsync"
            || texts.iter().any(|word| {
                matches!(*word, "--recursive" | "--archive")
                    || (word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R', 'a']))
            });
        if is_deep || given.iter().any(Option::is_none) {
            self.folder(&to.pattern);
            return;
        }
        self.file(&to.pattern);
        for from in given.into_iter().flatten() {
            let base = from.pattern.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            let within = format!("{}/{base}", to.pattern.trim_end_matches('/'));
            self.folder(&within);
        }
    }

    fn tar(&mut self, words: &[Argument], texts: &[&str]) {
        let flags = texts.first().copied().unwrap_or_default().trim_start_matches('-');
        let extracts = texts.iter().any(|word| matches!(*word, "--extract" | "--get" | "-x")) || flags.contains('x');
        let lists = texts.iter().any(|word| matches!(*word, "--list" | "-t")) || flags.contains('t');
        if extracts {
            let to = texts.iter().position(|word| matches!(*word, "-C" | "--directory"));
            match to.and_then(|at| words.get(at + 1).cloned().flatten()) {
                Some(to) => self.folder(&to.pattern),
                None => self.unknown(),
            }
        } else if !lists {
            // The archive that it makes is the word after `f`.
            self.unknown_with_names(words);
        }
    }

    fn archive(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        match program {
            "unzip" if texts.iter().any(|word| matches!(*word, "-l" | "-p" | "-t")) => {}
            "unzip" => {
                match texts.iter().position(|word| *word == "-d").and_then(|at| words.get(at + 1).cloned().flatten()) {
                    Some(to) => self.folder(&to.pattern),
                    None => self.unknown(),
                }
            }
            _ => self.unknown_with_names(words),
        }
    }

    fn downloads(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        let options: &[&str] = if program == "curl" { &["-o", "--output"] } else { &["-O", "--output-document"] };
        let mut is_said = false;
        for at in (0..texts.len()).filter(|at| options.contains(&texts[*at])) {
            is_said = true;
            if texts.get(at + 1).is_none_or(|to| *to != "-" && !to.starts_with("/dev/")) {
                self.option_value(words, at);
            }
        }
        let is_remote_name = |word: &&str| {
            matches!(*word, "-O" | "--remote-name")
                || (word.starts_with('-') && !word.starts_with("--") && word.contains('O'))
        };
        if !is_said && (program == "wget" || texts.iter().any(is_remote_name)) {
            for word in operands(words).cloned().collect::<Vec<_>>() {
                let base = word.map(|word| word.plain.rsplit('/').next().unwrap_or_default().to_owned());
                match base.filter(|base| !base.is_empty()) {
                    Some(base) => self.file(&super::names::escaped(&base)),
                    None => self.unknown(),
                }
            }
        }
    }

    fn git(&mut self, words: &[Argument]) -> Option<Vec<Name>> {
        let mut words = words.to_vec();
        // Options of git itself come before its verb.
        while let Some(Some(first)) = words.first().cloned() {
            if !first.plain.starts_with('-') {
                break;
            }
            words.remove(0);
            if matches!(&first.plain[..], "-C" | "-c" | "--git-dir" | "--work-tree") && !words.is_empty() {
                let value = words.remove(0);
                if first.plain != "-c" {
                    self.reading.folder = match value.and_then(|value| self.reading.at(&value.pattern)) {
                        Some(folder) if first.plain == "-C" => Folder::At(folder),
                        _ => Folder::Unknown,
                    };
                }
            }
        }
        let Some(Some(verb)) = words.first().cloned() else { return None };
        words.remove(0);
        let texts: Vec<&str> = words.iter().map(|word| word.as_ref().map_or("", |word| &word.plain)).collect();
        let has = |wanted: &[&str]| texts.iter().any(|word| wanted.contains(word));
        let first = texts.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
        let after_dashes = texts.iter().position(|word| *word == "--").map(|at| words[at + 1..].to_vec());
        match &verb.plain[..] {
            "checkout" | "restore" => match after_dashes {
                Some(paths) => drop(self.writes_all(&paths, &[])),
                None if verb.plain == "restore" && has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) => {}
                None if verb.plain == "restore" => drop(self.writes_all(&words, &[])),
                // A new branch where it stands touches no file.
                None if has(&["-b", "-B"]) && operands(&words).count() == 1 => {}
                None => self.everything(&[]),
            },
            "switch" if has(&["-c", "-C", "--create"]) && operands(&words).count() == 1 => {}
            "stash" if matches!(first, "list" | "show" | "drop" | "clear" | "create" | "store") => {}
            "reset" if !has(&["--hard", "--merge", "--keep"]) => {}
            "worktree" | "clone" => match first {
                "list" | "prune" | "lock" | "unlock" => {}
                _ => drop(self.writes_all(&words, &[])),
            },
            "submodule" if matches!(first, "" | "status" | "summary" | "init") => {}
            "apply" if has(&["--check", "--stat", "--numstat", "--summary", "--cached"]) => {}
            "clean" if has(&["-n", "--dry-run", "-nd", "-dn"]) => {}
            "switch" | "stash" | "pull" | "merge" | "rebase" | "reset" | "clean" | "cherry-pick" | "revert"
            | "apply" | "am" | "submodule" | "sparse-checkout" | "bisect" | "read-tree" | "checkout-index"
            | "filter-branch" | "lfs" => {
                self.everything(&[]);
            }
            "mv" | "rm" if !has(&["--cached", "-n", "--dry-run"]) => {
                if self.writes_all(&words, &[]) == 0 {
                    self.unknown();
                }
            }
            "mv" | "rm" => {}
            // Its hooks may format what is committed.
            "commit" if has(&["--no-verify", "-n"]) => {}
            "commit" => self.unknown(),
            "push" => self.effect(SideEffect::Push),
            "ls-files" | "grep" | "diff" | "ls-tree" | "status" => {
                let skip = usize::from(verb.plain == "grep");
                let given: Vec<Argument> = operands(&words).skip(skip).cloned().collect();
                let is_paths = verb.plain == "ls-files" && !given.is_empty();
                if !is_paths {
                    return Some(vec![Name::folder("/".into())]);
                }
                let mut names = Vec::new();
                for word in given {
                    let pattern = self.reading.at(&word?.plain)?;
                    // Its patterns go through folders.
                    let pattern = match pattern.rsplit_once('/') {
                        _ if !is_pattern(&pattern) => pattern,
                        Some((folder, name)) => format!("{folder}/**/{name}"),
                        None => format!("**/{pattern}"),
                    };
                    names.push(Name::folder(pattern));
                }
                return Some(names);
            }
            "add" | "log" | "show" | "branch" | "fetch" | "tag" | "remote" | "config" | "rev-parse" | "blame"
            | "describe" | "shortlog" | "reflog" | "cat-file" | "hash-object" | "rev-list" | "merge-base"
            | "name-rev" | "notes" | "gc" | "fsck" | "for-each-ref" | "show-ref" | "symbolic-ref" | "update-ref"
            | "update-index" | "write-tree" | "commit-tree" | "help" | "version" | "var" | "check-ignore"
            | "check-attr" | "diff-tree" | "diff-index" | "diff-files" | "range-diff" | "ls-remote"
            | "count-objects" | "whatchanged" | "init" => {}
            "format-patch" | "archive" | "bundle" => self.unknown_with_names(&words),
            _ => self.unknown(),
        }
        None
    }

    fn cargo(&mut self, words: &[Argument], texts: &[&str]) {
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
    fn node_packages(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
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

    fn build(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
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

    fn interpreter(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        if let Some(at) = texts
            .iter()
            .position(|word| matches!(*word, "-c" | "-e" | "--eval" | "-r" | "-p" | "-ne" | "-pe" | "-lne" | "-E"))
        {
            match words.get(at + 1).cloned().flatten() {
                Some(code) => self.code(code.plain),
                None => self.unknown(),
            }
            return;
        }
        if matches!(texts, ["--version" | "-V" | "-v" | "--help"]) {
            return;
        }
        if program.starts_with("python")
            && let Some(at) = texts.iter().position(|word| *word == "-m")
        {
            let module = texts.get(at + 1).copied().unwrap_or_default();
            let rest: Vec<Argument> = words.iter().skip(at + 2).cloned().collect();
            match module {
                "http.server" | "unittest" | "doctest" | "timeit" | "json.tool" | "compileall" | "py_compile"
                | "site" | "this" => {}
                "pip" => self.effect(SideEffect::Packages),
                "venv" | "virtualenv" => drop(self.writes_all(&rest, &[])),
                module => {
                    let module = module.to_owned();
                    self.program(&module, &rest);
                }
            }
            return;
        }
        if program == "php" && texts.contains(&"-S") {
            return;
        }
        let is_manage = texts.iter().any(|word| word.ends_with("manage.py") || word.ends_with("artisan"));
        if is_manage {
            let verb = texts
                .iter()
                .skip_while(|word| !(word.ends_with("manage.py") || word.ends_with("artisan")))
                .nth(1)
                .copied();
            match verb.unwrap_or_default() {
                "runserver" | "test" | "check" | "shell" | "showmigrations" | "serve" => return,
                "migrate" | "flush" | "loaddata" | "createsuperuser" | "db:seed" | "dbshell" => {
                    self.effect(SideEffect::Database)
                }
                "makemigrations" | "startapp" => {
                    self.everything(&[]);
                    return;
                }
                _ => {}
            }
        }
        if let Some(code) = self.here.take() {
            self.code(code);
            return;
        }
        // The script itself is read and not written.
        let mut rest: Vec<Argument> = words.to_vec();
        if let Some(script) = rest.iter().position(|word| word.as_ref().is_none_or(|word| !word.plain.starts_with('-')))
        {
            rest.remove(script);
        }
        self.script_of_its_own(&rest);
    }

    fn code(&mut self, text: String) {
        const BESIDE: [&str; 9] = [
            "requests.",
            "urllib",
            "http.client",
            "fetch(",
            "axios",
            "subprocess",
            "os.system",
            "child_process",
            "socket.",
        ];
        if BESIDE.iter().any(|word| text.contains(word)) {
            self.effect(SideEffect::Script);
        }
        match &self.reading.folder {
            Folder::At(folder) => {
                let folder = folder.clone();
                self.reading.writes.push(Writes::Code { folder, text });
            }
            Folder::Unknown => self.unknown(),
        }
    }

    fn note_effects(&mut self, program: &str, texts: &[&str], first: &str) {
        let has = |wanted: &[&str]| texts.iter().any(|word| wanted.contains(word));
        let installs = |words: &[&str]| words.contains(&first);
        let effect = match program {
            "npm" | "pnpm" | "yarn" | "bun" if first == "publish" => Some(SideEffect::Push),
            "cargo" | "gem" | "poetry" | "uv" | "twine" if matches!(first, "publish" | "upload" | "push" | "yank") => {
                Some(SideEffect::Push)
            }
            "docker" | "podman" if has(&["push"]) => Some(SideEffect::Push),
            "npm" | "pnpm" | "bun" => installs(&[
                "install",
                "i",
                "ci",
                "add",
                "update",
                "up",
                "upgrade",
                "remove",
                "rm",
                "uninstall",
                "un",
                "link",
                "dedupe",
                "prune",
            ])
            .then_some(SideEffect::Packages),
            "yarn" => {
                installs(&["", "install", "add", "remove", "upgrade", "up", "link"]).then_some(SideEffect::Packages)
            }
            "pip" | "pip3" | "uv" | "poetry" | "pipenv" | "pdm" | "rye" | "gem" | "bundle" | "composer" | "cargo"
            | "go" | "mix" | "dotnet" | "dart" | "flutter" | "luarocks" | "cpan" | "cpanm" | "opam" | "stack"
            | "cabal" | "swift" | "nuget" => installs(&[
                "install",
                "uninstall",
                "add",
                "remove",
                "sync",
                "update",
                "upgrade",
                "require",
                "get",
                "deps.get",
                "restore",
                "pub",
                "lock",
                "pip",
                "download",
            ])
            .then_some(SideEffect::Packages)
            // These only write what the workspace says of its packages.
            .filter(|_| program != "cargo" || matches!(first, "install" | "uninstall")),
            "kill" | "pkill" | "killall" | "fuser" => Some(SideEffect::Processes),
            "screen" | "tmux" | "daemonize" | "disown" => Some(SideEffect::Processes),
            "rails" | "rake" if first.starts_with("db:") => Some(SideEffect::Database),
            "prisma" => matches!(first, "migrate" | "db").then_some(SideEffect::Database),
            _ if DATABASES.contains(&program) => Some(SideEffect::Database),
            _ if PACKAGES.contains(&program) => {
                (!has(ONLY_SHOWS) && !matches!(first, "search")).then_some(SideEffect::Packages)
            }
            _ if SERVICES.contains(&program) => (!has(ONLY_SHOWS) && first != "fmt").then_some(SideEffect::Services),
            "rsync" => None,
            _ if NETWORK.contains(&program) => Some(SideEffect::Network),
            _ => None,
        };
        self.reading.effects.extend(effect);
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

/// Words of programs that write files.
const CODE_WRITES: &[&str] = &[
    "write",
    "'w'",
    "\"w\"",
    "'a'",
    "\"a\"",
    "'w+'",
    "\"w+\"",
    "'r+'",
    "\"r+\"",
    "'wb'",
    "\"wb\"",
    "rename",
    "replace(",
    "unlink",
    "remove",
    "rmtree",
    "copy",
    "move",
    "dump",
    "truncate",
    "save",
    "put_contents",
    "touch",
    "chmod",
    ":>",
    "'>'",
    "\">\"",
];

/// Whether a program in another language says a file's path, in quotes, and writes files.
pub(super) fn code_names(text: &str, folder: &str, path: &WorkspacePath, place: &CommandPlace<'_>) -> bool {
    if !CODE_WRITES.iter().any(|word| text.contains(word)) {
        return false;
    }
    let quoted = ['\'', '"', '`'].into_iter().flat_map(|quote| text.split(quote).skip(1).step_by(1));
    let mut quoted = quoted.filter(|word| !word.is_empty() && word.len() < 1_000 && !word.contains('\n'));
    quoted.any(|word| {
        let word = super::names::escaped(word);
        let pattern = if folder.is_empty() || word.starts_with('/') { word } else { format!("{folder}/{word}") };
        Name::file(pattern).names(path, place)
    })
}
