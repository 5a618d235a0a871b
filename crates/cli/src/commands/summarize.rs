//! `piton summarize`: a branch in which a summary stands for some turns.

use std::io::{self, Write};
use std::time::Duration;

use piton_engine::model::settings::{Key, Layer, LayerSettings, Settings};
use piton_engine::model::summary::{SummarySide, tidy};
use piton_engine::view::{Summarized, SummaryView};
use piton_wording::escape::escape_line;
use piton_wording::owners::Names;
use piton_wording::words::grouped;
use piton_wording::{Code, Failure, call, flag, text};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::conversation;
use crate::environment::{Surroundings, say_recovered};
use crate::operate::someone_to_ask;
use crate::progress::with_progress;
use crate::settings;
use crate::summarizer::Summarizer;

/// Replace turns of a conversation by a summary, in a new branch
///
/// The branch has all other turns word for word, and the summary in place of these; the files and the original
/// conversation stay as they are. The agent continues in the branch once you resume it.
///
/// The summary is written by the command in your settings (`summary.command`), else by the model at an address
/// (`summary.url`). Otherwise it is a digest that piton makes itself: what was asked, which files changed, what ran,
/// and the agent's last words.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("side").required(true).args(["from", "up_to"]))]
pub struct Args {
    /// The turn: t5, or SESSION:t5 of another session
    target: String,
    /// Summarize this turn and all later ones
    #[arg(long)]
    from: bool,
    /// Summarize all turns before this one
    #[arg(long)]
    up_to: bool,
    /// What the summary should focus on or leave out
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// A name for the branch
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Make piton's own digest, whatever the settings say
    #[arg(long)]
    digest: bool,
    /// How long writing the summary may take, such as 90s or 10m [default: summary.time-limit]
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    time_limit: Option<Duration>,
    /// Show the summary, and make nothing
    #[arg(long)]
    preview: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Start the agent in the branch
    #[arg(long, conflicts_with_all = ["preview", "json"])]
    resume: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton summarize t9 --up-to                      a summary of turns 1 to 8, then turn 9 and on
  piton summarize t5 --from                       turns 1 to 4, then a summary of the rest
  piton summarize t5 --from --preview --digest
  piton summarize t9 --up-to --instructions 'keep every decision about the schema' --yes --resume

Who summarizes (in your own config.toml; `piton help config`):
  [summary]
  command = \"llm -s 'Summarize this conversation for whoever goes on with it'\"";

/// As the setting takes it.
fn time_limit(text: &str) -> Result<Duration, String> {
    let mut given = LayerSettings::empty(Layer::Environment);
    given.set_text(Key::SummaryTimeLimit, text).map_err(|_| Key::SummaryTimeLimit.takes().to_owned())?;
    Ok(Settings::merged([given]).summary_time_limit.value)
}

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let mut workspace = Surroundings::read(global)?.open(console)?;
    // Before somebody works for minutes on what nobody can be asked about.
    if !args.preview && !args.yes {
        someone_to_ask(console)?;
    }
    let side = if args.up_to { SummarySide::UpTo } else { SummarySide::From };
    let turns = workspace.to_summarize(&args.target, side, args.name.as_deref())?;
    let (summarizer, limit) = match args.digest {
        true => (Summarizer::Digest, Duration::MAX),
        false => {
            // A mistake there must not make a digest of what should have been a summary.
            let settings = settings::find(Some(workspace.path())).strictly();
            let settings =
                settings.map_err(|f| f.hint(text![flag("--digest"), " goes on without the settings"]))?.settings;
            (Summarizer::of(&settings), args.time_limit.unwrap_or(settings.summary_time_limit.value))
        }
    };
    if summarizer == Summarizer::Digest && args.instructions.is_some() {
        return Err(Failure::user(Code::ArgumentsClash, "a digest follows no instructions; nothing was made").hint(
            text![
                "`summary.command` or `summary.url` in your settings says who summarizes: ",
                call("help").arg("config")
            ],
        ));
    }
    let progress = workspace.progress();
    let text = with_progress(console, &progress, "Summarizing", || {
        summarizer.summarize(&turns, args.instructions.as_deref(), limit)
    })?;
    let summary = SummaryView {
        session: turns.session.clone(),
        first: turns.first,
        last: turns.last,
        by: summarizer.as_str().to_owned(),
        text: tidy(&text).map_err(|bad| Failure::user(Code::BadSummary, format!("{bad}; nothing was made")))?,
        left_out: turns.left_out,
    };
    if args.preview {
        let shown = Summarized { summary, outcome: None };
        return console.print(&shown, |out, look| write_summary(out, look, &shown.summary));
    }
    if !args.yes {
        console.say_with(|out, look| write_summary(out, look, &summary));
        if !console.ask("Make a branch with this summary?") {
            return Err(Failure::declined());
        }
    }
    let said = workspace.recovered().len();
    let outcome = workspace.summarize(&turns, &summary.text);
    say_recovered(console, &workspace.recovered()[said..]);
    let outcome = outcome?;
    let done = Summarized { summary, outcome: Some(outcome) };
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print_done(&done, |out, _| write_done(out, &done, side, &names))?;
    if console.is_json() {
        return Ok(());
    }
    let conversation = done.outcome.as_ref().and_then(|outcome| outcome.conversation.as_ref());
    let Some(conversation) = conversation else { return Ok(()) };
    if args.resume && conversation.resume.is_some() {
        return Err(conversation::resume(console, conversation));
    }
    if let Some(line) = conversation::resume_line(conversation) {
        console.say(format!("`{line}` goes on there; you stay where you are"));
    } else if let Some(session) = &conversation.session {
        console.say(text![call("conversation").arg(names.session(session)), " has what was said"]);
    }
    if args.resume {
        return Err(Failure::user(
            Code::CannotResume,
            "there is no command that continues this conversation; the branch itself is made",
        ));
    }
    Ok(())
}

/// The summary itself.
fn write_summary(out: &mut dyn Write, look: &Look, summary: &SummaryView) -> io::Result<()> {
    let title = format!("{}, by {}:", capital(&of_turns(summary)), by(summary));
    writeln!(out, "{}", look.paint.bold(title))?;
    for line in summary.text.lines() {
        match line.is_empty() {
            true => writeln!(out)?,
            false => writeln!(out, "  {}", escape_line(line))?,
        }
    }
    write_left_out(out, look, summary)
}

fn write_left_out(out: &mut dyn Write, look: &Look, summary: &SummaryView) -> io::Result<()> {
    if summary.left_out == 0 || summary.by == Summarizer::Digest.as_str() {
        return Ok(());
    }
    let text = format!("{} bytes in the middle were too much for one summary", grouped(summary.left_out));
    writeln!(out, "{} {text}", look.paint.warn("note:"))
}

/// What was made, in a line.
fn write_done(out: &mut dyn Write, done: &Summarized, side: SummarySide, names: &Names) -> io::Result<()> {
    let branch = done.outcome.as_ref().and_then(|outcome| outcome.conversation.as_ref()?.session.as_ref());
    let branch = branch.map(|id| names.session(id)).unwrap_or_default();
    let summary = &done.summary;
    let told = format!("{} by {}", of_turns(summary), by(summary));
    let what = match side {
        SummarySide::From if summary.first <= 1 => told,
        SummarySide::From => format!("{}, then {told}", turns(1, summary.first - 1)),
        SummarySide::UpTo => format!("{told}, then all from turn {} on", summary.last + 1),
    };
    writeln!(out, "made session {branch}: {what}; the files stay")
}

/// `a summary of turns 1 to 4`.
fn of_turns(summary: &SummaryView) -> String {
    format!("a summary of {}", turns(summary.first, summary.last))
}

fn turns(first: u32, last: u32) -> String {
    if first == last { format!("turn {first}") } else { format!("turns {first} to {last}") }
}

/// Who made it, for people.
fn by(summary: &SummaryView) -> &'static str {
    match summary.by.as_str() {
        "command" => "your summary command",
        "endpoint" => "the model at your summary address",
        _ => "piton itself (a digest)",
    }
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}
