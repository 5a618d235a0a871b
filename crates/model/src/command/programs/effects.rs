//! Side effects of programs beside files: the network, packages, databases, services, processes.

use super::Call;
use crate::command::SideEffect;

pub(super) const NETWORK: &[&str] = &[
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

pub(super) const PACKAGES: &[&str] = &[
    "apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "rpm", "zypper", "pacman", "apk", "brew", "port", "snap",
    "flatpak", "choco", "winget", "nix-env", "rustup", "nvm", "pyenv", "rbenv", "asdf", "mise", "volta", "corepack",
    "sdk", "conda", "mamba", "pipx",
];

pub(super) const DATABASES: &[&str] = &[
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

pub(super) const SERVICES: &[&str] = &[
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
pub(super) const ONLY_SHOWS: &[&str] = &[
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

impl Call<'_> {
    pub(super) fn note_effects(&mut self, program: &str, texts: &[&str], first: &str) {
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
