//! `piton conversation`: what was said in a session.

use std::io::{self, Write};

use piton_engine::ConversationOptions;
use piton_engine::model::When;
use piton_engine::model::target::TurnPlace;
use piton_engine::view::{Conversation, SaidView};
use piton_wording::escape::{escape, escape_line};
use piton_wording::owners::Names;
use piton_wording::words::{age, plural};
use piton_wording::{Failure, call, flag, note, text};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;

/// Read what was said in a session, turn by turn
///
/// The prompts, the agent's words, and a short line for each tool call; a branch includes its parent's turns. It is
/// read from the agent's transcript or, if the agent keeps none, from what it reported. Turns after a rewind point
/// are in the session that was left: `piton sessions` lists it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The session: the beginning of its id, its name or the agent's own id [default: the one that you are in]
    session: Option<String>,
    /// Begin with this turn
    #[arg(long, value_name = "TURN", value_parser = turn)]
    from: Option<u32>,
    /// End with this turn
    #[arg(long, value_name = "TURN", value_parser = turn)]
    to: Option<u32>,
}

const EXAMPLES: &str = "\
Examples:
  piton conversation
  piton conversation kmzq --from t5
  piton conversation --from t5 --to t5
  piton conversation --json | jq -r '.said[] | select(.speaker == \"user\") | .text'";

/// `t5`, or `5`.
fn turn(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match text.parse() {
        Ok(When::Turn { turn, place: TurnPlace::Before }) => Ok(turn),
        _ => Err("a turn is written as `t5`".to_owned()),
    }
}

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    let options = ConversationOptions { session: args.session.clone(), from: args.from, to: args.to };
    let conversation = workspace.conversation(&options)?;
    console.print(&conversation, |out, look| write(out, look, &conversation))?;
    if console.is_json() {
        return Ok(());
    }
    if let Some(why) = &conversation.no_transcript {
        console.say(note(format!("only what was reported is shown: {why}")));
    }
    if let (Some(origin), true) = (&conversation.origin, conversation.missing > 0) {
        let names = Names::of(&workspace.sessions()?.sessions);
        let (turns, parent) = (plural(u64::from(conversation.missing), "turn"), names.session(&origin.parent));
        console.say(text![
            "a summary stands for the first ",
            turns,
            "; ",
            call("conversation").arg(parent),
            " has them"
        ]);
    }
    match (conversation.next, conversation.said.is_empty()) {
        (Some(next), _) => console.say(text!["there is more: ", flag("--from").arg(format!("t{next}")), " goes on"]),
        (None, true) if conversation.last == 0 => console.say("nothing was said yet"),
        (None, true) => console.say(format!("nothing was said there; the last turn is t{}", conversation.last)),
        (None, false) => {}
    }
    Ok(())
}

/// A block for each turn.
fn write(out: &mut dyn Write, look: &Look, conversation: &Conversation) -> io::Result<()> {
    let mut last = None;
    for said in &conversation.said {
        // What stands for turns belongs to none.
        let of = (said.speaker != "summary").then_some(said.turn);
        if last != Some(of) {
            if last.is_some() {
                writeln!(out)?;
            }
            let when = said.at.map(|at| look.paint.dim(format!("  {}", age(at, &look.now)))).unwrap_or_default();
            match of {
                Some(0) | None => {}
                Some(turn) => writeln!(out, "{}{when}", look.paint.bold(format!("t{turn}")))?,
            }
            last = Some(of);
        }
        write_said(out, look, said)?;
    }
    Ok(())
}

/// Who in a column, and beside it what, line by line.
fn write_said(out: &mut dyn Write, look: &Look, said: &SaidView) -> io::Result<()> {
    const WHO: usize = 9;
    let who = match said.speaker.as_str() {
        "user" => "you",
        "assistant" => "agent",
        other => other,
    };
    let who = escape(who);
    let space = " ".repeat(WHO.saturating_sub(who.chars().count()).max(1));
    let paint = look.paint;
    let painted = match said.speaker.as_str() {
        "user" => paint.id(&who),
        "tool" => paint.dim(&who),
        _ => paint.bold(&who),
    };
    let mut lines = said.text.lines();
    let of_tool = said.speaker == "tool";
    let shown = |line: &str| {
        let line = escape_line(line).into_owned();
        if of_tool { paint.dim(line) } else { line }
    };
    writeln!(out, "  {painted}{space}{}", shown(lines.next().unwrap_or_default()))?;
    for line in lines {
        match line.is_empty() {
            true => writeln!(out)?,
            false => writeln!(out, "  {}{}", " ".repeat(WHO), shown(line))?,
        }
    }
    Ok(())
}
