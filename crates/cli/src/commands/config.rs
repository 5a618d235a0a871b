//! `piton config`: the settings, and where each comes from.

use std::io::{self, Write};
use std::path::Path;

use clap::builder::PossibleValuesParser;
use piton_engine::model::settings::edit::{EditError, with_key, without_key};
use piton_engine::model::settings::{Key, Layer, Value};
use piton_wording::escape::{escape, escape_path};
use piton_wording::{Code, Failure, agreement, note, text};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::agent_files;
use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::settings::{self, Found, SettingsFile};

/// Show the settings and where each comes from, or set one
///
/// A setting comes from a variable, else from the workspace's `.piton/config.toml`, else from your own `config.toml`,
/// else it is the default. With a VALUE, the setting is written to your own file, or with --project to the
/// workspace's; comments and everything else in the file stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = LONG)]
pub struct Args {
    /// Print only this setting's value; of a list, one entry per line
    #[arg(value_name = "KEY", value_parser = PossibleValuesParser::new(Key::ALL.map(Key::name)))]
    #[arg(hide_possible_values = true)]
    key: Option<String>,
    /// Set it to this; separate the entries of a list with commas
    #[arg(value_name = "VALUE", requires = "key", allow_hyphen_values = true)]
    value: Option<String>,
    /// Remove it from the file, so that it is what it would be without
    #[arg(long, requires = "key", conflicts_with = "value")]
    unset: bool,
    /// Set or unset it in the workspace's file instead of your own
    #[arg(long)]
    project: bool,
    /// Print where the files are, whether or not they exist
    #[arg(long, conflicts_with = "key")]
    path: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton config
  piton config hook.time-budget
  piton config hook.time-budget 20s
  piton config tools.readers 'mcp__docs__*' --project
  piton config hook.time-budget --unset
  $EDITOR \"$(piton config --path | head -n1)\"

`piton help config` lists the keys.";

const LONG: &str = "\
Keys, with their defaults as a file has them:
  [capture]
  automatic = true          # checkpoints at an agent's events
  size-limit = \"2GiB\"       # files over this are skipped
  ignored-limit = \"1MiB\"    # ignored single files over this are skipped
  [hook]
  time-budget = \"10s\"       # how long an agent waits at most, 1s to 10m
  user-line = true          # after a turn, a line that names what it changed
  tell-agent = true         # tell the agent which files you took back under it
  [tools]
  readers = []              # tools that only read, such as \"mcp__docs__*\"
  writers = []              # tools that write, whatever is said elsewhere
  [conversation]
  most-branches = 100       # how many branches a conversation may have
  [summary]                 # for `piton summarize`; in your own file only
  command = \"\"              # for `sh -c`: conversation in, summary out
  url = \"\"                  # else a model, as \"https://api.openai.com/v1\"
  model = \"\"                # what that model is called
  key-env = \"OPENAI_API_KEY\" # the variable that holds the key for it
  time-limit = \"3m\"         # how long a summary may take, from 1s to 60m

Examples:
  piton config
  piton config hook.time-budget
  piton config hook.time-budget 20s
  piton config tools.readers 'mcp__docs__*' --project
  piton config hook.time-budget --unset
  $EDITOR \"$(piton config --path | head -n1)\"
  PITON_CAPTURE_AUTOMATIC=false piton config

Environment:
  PITON_CONFIG              your own file [default: ~/.config/piton/config.toml]
  PITON_CAPTURE_AUTOMATIC, PITON_CAPTURE_SIZE_LIMIT,
  PITON_CAPTURE_IGNORED_LIMIT, PITON_HOOK_TIME_BUDGET,
  PITON_HOOK_USER_LINE, PITON_HOOK_TELL_AGENT,
  PITON_CONVERSATION_MOST_BRANCHES, PITON_SUMMARY_COMMAND, PITON_SUMMARY_URL,
  PITON_SUMMARY_MODEL, PITON_SUMMARY_KEY_ENV, PITON_SUMMARY_TIME_LIMIT
                            take precedence over both files";

/// What `--json` prints.
#[derive(Serialize)]
struct Document {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    settings: Vec<Shown>,
    files: Vec<FileShown>,
    /// What the workspace's file says and does not hold until the user agrees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<&'static str>,
}

#[derive(Serialize)]
struct Shown {
    key: &'static str,
    value: Value,
    source: Layer,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
}

#[derive(Serialize)]
struct FileShown {
    source: Layer,
    path: String,
    exists: bool,
}

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let folder = Surroundings::read(global)?.folder()?;
    if args.value.is_some() || args.unset {
        return set(args, &folder, console);
    }
    let found = settings::find(Some(&folder));
    let files = found.files.iter().map(|(file, exists)| FileShown {
        source: file.layer,
        path: file.path.to_string_lossy().into_owned(),
        exists: *exists,
    });
    let files = files.collect();
    let waiting: Vec<_> = found.waiting.iter().map(|key| key.name()).collect();
    if args.path {
        // A file with a mistake in it is the very one that somebody wants to find.
        return console.print(&Document { settings: Vec::new(), files, waiting }, |out, _| {
            found.files.iter().try_for_each(|(file, _)| writeln!(out, "{}", escape_path(&file.path)))
        });
    }
    let found = found.strictly()?;
    let wanted = Key::ALL.into_iter().filter(|key| args.key.as_ref().is_none_or(|name| name == key.name()));
    let document = Document { settings: wanted.map(|key| shown(key, &found)).collect(), files, waiting };
    if !document.waiting.is_empty() {
        let keys = document.waiting.join(", ");
        let text = format!("what .piton/config.toml says of {keys} waits for your word");
        console.advise(note(text![text, "; ", agreement::how(None)]));
    }
    console.print(&document, |out, look| match &document.settings[..] {
        [one] => write_plainly(out, &one.value),
        all => write(out, look, all, &found.files),
    })
}

/// What `piton config KEY VALUE --json` prints.
#[derive(Serialize)]
struct Set {
    #[serde(flatten)]
    now: Shown,
    /// The file that was written.
    written: String,
    /// Whether it holds another value than before.
    changed: bool,
}

/// Sets or unsets a key in one of the files.
fn set(args: &Args, folder: &Path, console: &mut Console) -> Result<(), Failure> {
    let named = args.key.as_deref().unwrap_or_default();
    let Some(key) = Key::ALL.into_iter().find(|key| key.name() == named) else {
        return Err(Failure::user(Code::BadSettings, format!("there is no setting `{named}`")));
    };
    let layer = if args.project { Layer::Workspace } else { Layer::User };
    let place = settings::places(Some(folder)).into_iter().find(|file| file.layer == layer);
    let Some(file) = place else {
        return Err(Failure::user(Code::BadSettings, "there is no folder for your settings")
            .hint("set HOME, or name a file in PITON_CONFIG"));
    };
    // What may be read is what may be written: of a workspace no symlink, and nothing that is no file.
    let was = settings::text_of(&file)?;
    let text = was.as_deref().unwrap_or_default();
    let edited = match &args.value {
        Some(value) => with_key(text, layer, key, value),
        None => without_key(text, layer, key),
    };
    let name = settings::shown(&file.path);
    let new = edited.map_err(|error| match error {
        EditError::File(_) => {
            Failure::user(Code::BadSettings, format!("{name}:{error}; nothing was changed")).hint("mend the file first")
        }
        EditError::Form(_) => Failure::user(Code::BadSettings, format!("{name}: {error}; nothing was changed")),
        EditError::Value(_) => Failure::user(Code::BadSettings, format!("{error}; nothing was changed")),
    })?;
    if new != text {
        let refused =
            |error: io::Error| Failure::user(Code::CannotWrite, format!("{name}: {error}; nothing was changed"));
        let written = agent_files::replace(&file.path, was.as_deref().map(str::as_bytes), new.as_bytes());
        if !written.map_err(refused)? {
            let what = format!("{name} was changed by somebody else just now; nothing was changed");
            return Err(Failure::user(Code::BadSettings, what).hint("run the command again"));
        }
    }
    let found = settings::find(Some(folder));
    let set = Set { now: shown(key, &found), written: file.path.to_string_lossy().into_owned(), changed: new != text };
    console.print_done(&set, |out, look| {
        let value = in_a_table(&set.now.value);
        let from = look.paint.dim(format!("({})", set.now.source));
        writeln!(out, "{} = {value} {from}", look.paint.bold(key.name()))
    })?;
    let decides = set.now.source;
    if args.value.is_some() && decides != layer && decides != Layer::Default {
        let who = set.now.variable.clone().or(set.now.file.clone()).unwrap_or_else(|| decides.to_string());
        console.advise(note(format!("it is written to {name}, and {} says otherwise and decides", escape(&who))));
    } else if found.waiting.contains(&key) {
        console.advise(note(text![format!("what {name} says of it waits for your word; "), agreement::how(None)]));
    }
    Ok(())
}

fn shown(key: Key, found: &Found) -> Shown {
    let setting = found.settings.show(key);
    let file = found.files.iter().find(|(file, _)| file.layer == setting.source);
    Shown {
        key: key.name(),
        value: setting.value,
        source: setting.source,
        file: file.map(|(file, _)| file.path.to_string_lossy().into_owned()),
        variable: key.variable().filter(|_| setting.source == Layer::Environment),
    }
}

/// For scripts.
fn write_plainly(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    match value {
        Value::Tools(names) => names.iter().try_for_each(|name| writeln!(out, "{}", escape(name))),
        Value::Text(text) => writeln!(out, "{}", escape(text)),
        other => writeln!(out, "{other}"),
    }
}

/// The whole table, and the files below it.
fn write(out: &mut dyn Write, look: &Look, settings: &[Shown], files: &[(SettingsFile, bool)]) -> io::Result<()> {
    /// One long list must not push every source out of sight.
    const WIDEST: usize = 32;
    let values: Vec<_> = settings.iter().map(|setting| in_a_table(&setting.value)).collect();
    let width = values.iter().map(|value| value.width()).filter(|width| *width <= WIDEST).max().unwrap_or(0);
    for (setting, value) in settings.iter().zip(&values) {
        let space = " ".repeat(width.saturating_sub(value.width()));
        let source = match &setting.variable {
            Some(name) => name.clone(),
            None => setting.source.to_string(),
        };
        let source = if setting.source == Layer::Default { look.paint.dim(source) } else { source };
        writeln!(out, "{:<27} {value}{space}  {source}", setting.key)?;
    }
    writeln!(out)?;
    for (file, exists) in files {
        let remark = if *exists { "" } else { " (not there)" };
        writeln!(out, "{:<10} {}{}", file.layer, settings::shown(&file.path), look.paint.dim(remark))?;
    }
    Ok(())
}

fn in_a_table(value: &Value) -> String {
    match value {
        Value::Tools(names) if names.is_empty() => "none".to_owned(),
        Value::Text(text) if text.is_empty() => "none".to_owned(),
        other => escape(&other.to_string()).into_owned(),
    }
}
