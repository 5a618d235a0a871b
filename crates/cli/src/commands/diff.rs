//! `piton diff`: what differs between two moments.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use piton_engine::model::{Target, When, WorkspacePath};
use piton_engine::view::{Diff, FileDiff, TurnShown};
use piton_engine::{DiffError, DiffOptions, IntoTarget, TargetError, TurnOptions, Workspace};
use piton_wording::escape::{bytes_of, escape_path, escape_view};
use piton_wording::owners::Names;
use piton_wording::words::{changes, grouped, label, plural, sign, unknown};
use piton_wording::{Code, Failure, Text, call, did_you_mean, note, skipped, text, turns};
use unicode_width::UnicodeWidthStr;

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::paths::{PathArgs, resolve};
use crate::progress::with_progress;
use crate::unread;
use crate::{columns, patch, titles};

/// Show what a turn did, what changed since, or what differs between two moments
///
/// Without a target: what changed since the last turn began, or since a later rewind. A turn alone (`t5`), or one of
/// its steps (`t5.2`), is what that turn did, without your own edits meanwhile and without what may be yours. Any
/// other target alone is compared with now, and two targets with each other: `t5 @` is everything that changed since
/// before turn 5.
///
/// The first words are read as targets if they are targets; all others are paths, and so is everything after `--`.
/// For a path that is also a target, write `-- PATH` or `./PATH`.
///
/// In a file or pipe the unified form is a patch for `git apply` and `patch`, with contents written as they are. On a
/// terminal, or with colour, control characters are escaped. Text that is not UTF-8 is shown with replacement
/// characters, so a patch of such a file does not apply; and git's patches have no empty folders.
#[derive(Debug, clap::Args)]
#[command(override_usage = usage("piton"))]
pub struct Args {
    /// A turn, or one or two moments; then the paths to compare
    #[arg(value_name = "TARGET|PATH", value_hint = clap::ValueHint::AnyPath)]
    words: Vec<OsString>,
    /// Paths, whatever they look like
    #[arg(last = true, value_name = "PATH", value_hint = clap::ValueHint::AnyPath, hide = true)]
    after: Vec<OsString>,
    #[command(flatten)]
    paths: PathArgs,
    /// Count the lines that differ, file by file
    #[arg(long, group = "form")]
    stat: bool,
    /// Only the paths that differ
    #[arg(long, group = "form")]
    name_only: bool,
    /// End each path with a NUL byte, and do not quote it
    #[arg(short = 'z', requires = "name_only")]
    nul: bool,
    /// Two columns: before and after
    #[arg(long, group = "form")]
    side_by_side: bool,
    /// Lines of context around each difference
    #[arg(short = 'U', long = "context", value_name = "N", default_value_t = 3)]
    context: u32,
}

/// How the command is typed: which of the words are targets is not told by their places.
pub fn usage(program: &str) -> String {
    format!("{program} diff [OPTIONS] [TURN | FROM [TO]] [PATH]... [-- PATH...]")
}

impl Args {
    /// Sets what goes without saying where it is typed to an agent: whole contents are too much to read there.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        self.stat |= !self.name_only && !self.side_by_side;
        Ok(())
    }
}

pub const EXAMPLES: [Example; 8] = [
    Example::Call("diff", "since the last turn began"),
    Example::Call("diff t5", "what turn 5 did"),
    Example::Call("diff t5 @", "since before turn 5, whoever did it"),
    Example::Call("diff before-refactor --stat", ""),
    Example::Call("diff 2h @ src/auth.rs --side-by-side", ""),
    Example::Call("diff start before-refactor -- docs", ""),
    Example::Shell("piton diff before-refactor > work.patch && git apply -R work.patch", ""),
    Example::Shell("piton diff --name-only -z | xargs -0 ls -l", ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::read(global)?;
    let workspace = surroundings.open(console)?;
    let asked = Asked::read(args, &workspace, &surroundings.here, console)?;
    let options = DiffOptions {
        from: asked.from,
        to: asked.to,
        paths: asked.paths,
        context: args.context,
        names_only: args.name_only,
    };
    let of_turn = match (&options.from, &options.to) {
        (Some(target), None) => {
            let paths = options.paths.clone();
            let options = TurnOptions { paths, context: options.context, names_only: options.names_only };
            workspace.turn_shown(target, &options)?
        }
        _ => None,
    };
    let diff = match &of_turn {
        Some(shown) => shown.diff(),
        None => {
            let progress = workspace.progress();
            let result = with_progress(console, &progress, "Comparing", || workspace.diff(&options));
            result.map_err(|error| explain(error, &asked.guessed, options.to.is_some(), &workspace))?
        }
    };
    console.print(&diff, |out, look| {
        if args.name_only {
            write_names(out, &diff, args.nul)
        } else if args.stat {
            write_stat(out, look, &diff)
        } else if args.side_by_side {
            diff.files.iter().try_for_each(|file| columns::write(out, look, file))
        } else {
            diff.files.iter().try_for_each(|file| patch::write(out, look, file))
        }
    })?;
    if !diff.not_compared.is_empty() {
        let what = skipped::lines(&diff.not_compared, console.talk.lines(5)).join("; ");
        console.say(note(format!("not compared, because not captured: {what}")));
    } else if diff.files.is_empty() && diff.unreadable.is_empty() {
        console.advise(nothing(&diff, of_turn.as_ref(), &options, &workspace)?);
    }
    if !diff.unsure.is_empty() {
        let target = diff.turn.as_deref().unwrap_or_default();
        let count = plural(diff.unsure.len() as u64, "file");
        let shows = call("show").arg(options.from.as_ref().map_or(target.to_owned(), Target::to_string));
        let why = text![" that ", target, " may not have changed; ", shows, " has everything"];
        console.advise(note(text!["left out ", count, why]));
    }
    Ok(unread::say_unreadable(console, &diff.unreadable))
}

/// What an empty answer means.
fn nothing(
    diff: &Diff,
    of_turn: Option<&TurnShown>,
    options: &DiffOptions,
    workspace: &Workspace,
) -> Result<Text, Failure> {
    let at = if options.paths.is_empty() { "" } else { " there" };
    if let Some(shown) = of_turn {
        let so_far = if shown.running { " so far" } else { "" };
        let target = shown.target();
        return Ok(match &shown.turn.unknown {
            Some(why) => text!["it is not known what ", &target, " changed", at, ": ", unknown(why, &target)],
            None if diff.unsure.is_empty() => text![&target, " changed nothing", at, so_far],
            None => text![&target, " changed nothing", at, " for sure", so_far],
        });
    }
    if let Some(since) = &diff.since {
        let titles = titles::of_all(workspace, &Names::of(&workspace.sessions()?.sessions))?;
        return Ok(text!["nothing changed", at, " since ", turns::since(since, &titles)]);
    }
    if diff.from.is_none() && diff.to.is_none() {
        return Ok(text!["no differences", at, ": both sides are the workspace as it is now"]);
    }
    let side = |side: &Option<_>| side.as_ref().map_or_else(|| "now".into(), label);
    Ok(text!["no differences", at, " between ", side(&diff.from), " and ", side(&diff.to)])
}

/// The words, sorted into targets and paths.
struct Asked {
    from: Option<Target>,
    to: Option<Target>,
    paths: Vec<WorkspacePath>,
    /// Words that are no targets and nothing else says that they are paths.
    guessed: Vec<(WorkspacePath, OsString)>,
}

impl Asked {
    fn read(args: &Args, workspace: &Workspace, here: &Path, console: &mut Console) -> Result<Self, Failure> {
        let mut targets = Vec::new();
        let mut words = args.words.iter().peekable();
        while targets.len() < 2
            && let Some(word) = words.peek()
            && let Some(target) = as_target(workspace, here, word)?
        {
            if here.join(word).symlink_metadata().is_ok() {
                let word = escape_path(Path::new(word));
                console.advise(format!("note: `{word}` is taken as a checkpoint; `./{word}` is the path"));
            }
            targets.push(target);
            words.next();
        }
        let mut guessed = Vec::new();
        let mut paths = args.paths.resolve(workspace.path(), here)?;
        for word in words {
            let path = resolve(workspace.path(), here, word)?;
            guessed.push((path.clone(), word.clone()));
            paths.push(path);
        }
        for word in &args.after {
            paths.push(resolve(workspace.path(), here, word)?);
        }
        let mut targets = targets.into_iter();
        Ok(Self { from: targets.next(), to: targets.next(), paths, guessed })
    }
}

/// A word as a target, if it is one. A word that looks like one and is not is an error, unless there is such a path.
fn as_target(workspace: &Workspace, here: &Path, word: &OsString) -> Result<Option<Target>, Failure> {
    let Some(text) = word.to_str().filter(|text| !text.starts_with('/') && !text.starts_with('.')) else {
        return Ok(None);
    };
    let Ok(target) = text.into_target() else { return Ok(None) };
    match workspace.resolve(&target) {
        Ok(_) | Err(TargetError::Now) => Ok(Some(target)),
        Err(TargetError::Unknown { .. } | TargetError::Operation(_) | TargetError::Bad(_)) => Ok(None),
        // `5` may be a turn by a slip, and a path that is not there any more.
        Err(TargetError::NoTurn { .. }) if !matches!(target.when, When::Turn { .. }) => Ok(None),
        Err(TargetError::Store(error)) => Err(error.into()),
        Err(_) if here.join(word).symlink_metadata().is_ok() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A word that is nothing at all may have been meant either way.
fn explain(
    error: DiffError,
    guessed: &[(WorkspacePath, OsString)],
    has_two_targets: bool,
    workspace: &Workspace,
) -> Failure {
    let word = match &error {
        DiffError::Target(TargetError::NoPath(path)) => guessed.iter().find(|(guess, _)| guess == path),
        _ => None,
    };
    let Some((_, word)) = word else { return error.into() };
    let meant = word.to_str().map(|word| workspace.resolve(word));
    if let Some(Ok(_) | Err(TargetError::Now)) = meant {
        let word = escape_path(Path::new(word));
        let text = match has_two_targets {
            true => format!("`{word}` is a third moment, and a diff is between two"),
            false => format!("`{word}` is a target after a path, and there is no such path on either side"),
        };
        return Failure::user(Code::Arguments, text)
            .hint("targets come first, two at most, and paths after them")
            .hint(text![call("log").arg("--files"), " lists what each turn changed"]);
    }
    let near = match meant {
        Some(Err(error @ (TargetError::NoTurn { .. } | TargetError::Operation(_)))) => return error.into(),
        Some(Err(TargetError::Unknown { near, .. })) => did_you_mean(&near),
        _ => None,
    };
    Failure::user(
        Code::UnknownTarget,
        format!("`{}` is not a checkpoint, nor a path on either side", escape_path(Path::new(word))),
    )
    .hints(near)
    .hint(text![
        call("log"),
        " lists the checkpoints; ",
        call("diff").arg("--name-only"),
        " lists the paths that differ"
    ])
}

fn write_names(out: &mut dyn Write, diff: &Diff, nul: bool) -> io::Result<()> {
    for file in &diff.files {
        if nul {
            out.write_all(&bytes_of(&file.change.path))?;
            out.write_all(b"\0")?;
        } else {
            writeln!(out, "{}", escape_view(&file.change.path))?;
        }
    }
    Ok(())
}

/// One line for each file, and their sum.
pub fn write_stat(out: &mut dyn Write, look: &Look, diff: &Diff) -> io::Result<()> {
    let rows: Vec<(String, String, &FileDiff)> = diff
        .files
        .iter()
        .map(|file| {
            let name = format!("{} {}", sign(file.change.kind), escape_view(&file.change.path));
            let remarks = [piton_wording::files::content_remark(file), piton_wording::files::remark(&file.change)];
            let count = match file.added + file.removed {
                0 => remarks.into_iter().find(|remark| !remark.is_empty()).unwrap_or("0".to_owned()),
                lines => grouped(lines),
            };
            (name, count, file)
        })
        .collect();
    let names = rows.iter().map(|(name, ..)| name.width()).max().unwrap_or(0);
    // Remarks instead of numbers do not push the numbers away.
    let counts = rows.iter().filter(|(.., file)| file.added + file.removed > 0).map(|(_, count, _)| count.len());
    let counts = counts.max().unwrap_or(0);
    let most = diff.files.iter().map(|file| file.added + file.removed).max().unwrap_or(0);
    let room = (look.width.saturating_sub(names + counts + 4) as u64).clamp(10, 40).min(most.max(1));
    for (name, count, file) in &rows {
        let pad = " ".repeat(names - name.width());
        let bar = |lines: u64, sign: &str| sign.repeat((lines * room).div_ceil(most.max(1)) as usize);
        let (plus, minus) = (bar(file.added, "+"), bar(file.removed, "-"));
        let line = format!("{name}{pad} | {count:>counts$} {}{}", look.paint.good(plus), look.paint.bad(minus));
        writeln!(out, "{}", line.trim_end())?;
    }
    let sum = |count: fn(&FileDiff) -> u64| diff.files.iter().map(count).sum::<u64>();
    if !diff.files.is_empty() {
        let lines = format!("{} added, {} removed", plural(sum(|f| f.added), "line"), grouped(sum(|f| f.removed)));
        writeln!(out, "{}; {lines}", changes(&diff.changes))?;
    }
    Ok(())
}
