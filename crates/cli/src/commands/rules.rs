//! `piton rules`: changed rules and settings that wait for the user's word, and that word.

use std::io::{self, Write};

use piton_engine::Workspace;
use piton_engine::view::{Accepted, Waiting};
use piton_wording::escape::{escape, escape_view};
use piton_wording::owners::Names;
use piton_wording::{Code, Failure, Text, call, flag, text, words};
use serde::Serialize;

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::{self, Surroundings};
use crate::help::Example;

/// Show changed rules that wait for your word, or agree to them
///
/// What you change in `.gitignore`, `.pitonignore` and the like, or in `.piton/config.toml`, applies at once. What an
/// agent or somebody unknown changes there takes no protection away until you agree here: every path that the last
/// checkpoint has stays captured, and a setting that protects less is not applied. To remove the change itself, undo
/// it: `piton undo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    act: Option<Act>,
    /// Agree without being asked
    #[arg(short, long, global = true)]
    yes: bool,
}

pub const EXAMPLES: [Example; 4] = [
    Example::Call("rules", "what waits, and who changed it"),
    Example::Call("rules accept", "shows it, and asks"),
    Example::Call("rules accept --yes", "for scripts; refused where an agent runs it"),
    Example::Shell("piton rules --json | jq '.waiting.paths[].path'", ""),
];

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// List what waits; `piton rules` alone does the same
    List,
    /// Agree to the rules and settings as they are
    ///
    /// Makes a checkpoint in which they apply; earlier ones keep all that they have. Asks first; without a terminal
    /// it needs `--yes`. Refused while an agent's tool runs, and if an agent started it, as far as that can be told.
    Accept,
}

/// What `piton rules --json` prints.
#[derive(Serialize)]
struct Document<'a> {
    waiting: &'a Waiting,
}

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let mut workspace = Surroundings::read(global)?.open_for_rules(console)?;
    match &args.act {
        None | Some(Act::List) => list(&workspace, console),
        Some(Act::Accept) => accept(&mut workspace, args.yes, console),
    }
}

impl Args {
    /// Sets what goes without saying where it is typed to an agent: `accept` asks nobody there, since the user typed it.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        self.yes = true;
        Ok(())
    }
}

fn list(workspace: &Workspace, console: &mut Console) -> Result<(), Failure> {
    let waiting = workspace.waiting_now()?;
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print(&Document { waiting: &waiting }, |out, look| write(out, look, &waiting, &names))?;
    if !waiting.is_empty() {
        let turn = waiting.paths.iter().filter(|held| held.undoable).find_map(|held| held.owner.turn());
        let undo = turn.map(|(session, turn)| {
            text!["; ", call("undo").arg(names.target(session, turn, None)), " takes the change back"]
        });
        // What piton does not capture it cannot take back.
        let by_hand = waiting.paths.iter().find(|held| !held.undoable).and_then(|held| held.rules.first());
        let by_hand = by_hand.map(|rule| text!["; no undo reaches ", rule, ": change that by hand"]);
        let ways = Text::join([undo, by_hand].into_iter().flatten(), "");
        console.advise(text![call("rules").arg("accept"), " agrees", ways]);
    }
    Ok(())
}

fn accept(workspace: &mut Workspace, is_sure: bool, console: &mut Console) -> Result<(), Failure> {
    let waiting = workspace.waiting_now()?;
    if waiting.is_empty() {
        let nothing = Accepted { agreed: waiting, checkpoint: None };
        return console.print(&nothing, |out, _| writeln!(out, "{NOTHING}"));
    }
    if workspace.is_run_by_agent()? {
        return Err(Failure::user(
            Code::OnlyTheUser,
            "an agent runs this command, and only you can agree; nothing was agreed to",
        )
        .hint("run it in a terminal of your own, while no tool of the agent runs it"));
    }
    // A command that went to the background is no child of the agent's any more, and any program can make a terminal.
    if workspace.has_running_tool()? {
        let text = "a tool of an agent runs, and nothing shows that this is you; nothing was agreed to";
        return Err(Failure::user(Code::Running, text).hint("wait for the tool's end"));
    }
    if let Some(variable) = environment::agents_shell() {
        let text =
            format!("this was started by an agent ({variable} is set), and only you can agree; nothing was agreed to");
        return Err(Failure::user(Code::OnlyTheUser, text)
            .hint("run it in a terminal of your own, or type `/piton rules accept` to the agent"));
    }
    if !console.can_ask() {
        if !is_sure {
            return Err(Failure::user(Code::NobodyToAsk, "nobody can be asked here; nothing was agreed to")
                .hint(text![flag("--yes"), " agrees without asking"]));
        }
    } else if !is_sure {
        let names = Names::of(&workspace.sessions()?.sessions);
        console.say_with(|out, look| write(out, look, &waiting, &names));
        if !console.ask("Agree to all of this?") {
            return Err(Failure::declined());
        }
    }
    let accepted = workspace.accept_rules()?;
    console.print_done(&accepted, |out, look| write_accepted(out, look, &accepted))
}

const NOTHING: &str = "nothing waits for your word: all rules and settings hold as they are";

fn write(out: &mut dyn Write, look: &Look, waiting: &Waiting, names: &Names) -> io::Result<()> {
    if waiting.is_empty() {
        return writeln!(out, "{NOTHING}");
    }
    let paths = waiting.paths.iter().map(|held| {
        let rules: Vec<_> = held.rules.iter().map(|rule| escape(rule)).collect();
        let text = format!("still captured; left out by {}, changed by {}", rules.join(", "), names.who(&held.owner));
        (escape_view(&held.path), text)
    });
    let settings = waiting.settings.iter().map(|setting| {
        let text = format!("{} holds; .piton/config.toml says {}", escape(&setting.holds), escape(&setting.says));
        (setting.key.clone(), text)
    });
    let lines: Vec<(String, String)> = paths.chain(settings).collect();
    let most = look.lines(40);
    writeln!(out, "waiting for your word:")?;
    for (what, text) in lines.iter().take(most) {
        writeln!(out, "  {what}  {}", look.paint.dim(text))?;
    }
    if lines.len() > most {
        writeln!(out, "  and {} more", words::grouped((lines.len() - most) as u64))?;
    }
    Ok(())
}

fn write_accepted(out: &mut dyn Write, look: &Look, accepted: &Accepted) -> io::Result<()> {
    let Some(checkpoint) = &accepted.checkpoint else { return writeln!(out, "{NOTHING}") };
    let (paths, settings) = (accepted.agreed.paths.len() as u64, accepted.agreed.settings.len() as u64);
    let mut what = Vec::new();
    what.extend((paths > 0).then(|| format!("{} left out from now on", words::plural(paths, "path"))));
    what.extend((settings > 0).then(|| format!("{} in force", words::plural(settings, "setting"))));
    writeln!(out, "agreed: {}; checkpoint {}", what.join(", "), look.text(words::label(checkpoint)))?;
    if paths > 0 {
        writeln!(out, "{}", look.paint.dim("what was captured of it stays in the checkpoints before"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use piton_engine::model::Owner;
    use piton_engine::view::{HeldView, PathView};

    use super::*;
    use piton_wording::agreement;

    #[test]
    fn a_rule_is_one_sentence_however_much_it_leaves_out() {
        let held = |name: &str| HeldView {
            path: PathView { path: name.to_owned(), path_b64: None },
            rules: vec![".gitignore".to_owned()],
            owner: Owner::Unsure { candidates: Vec::new() },
            undoable: true,
        };
        let paths = ["a", "b", "c", "d", "e", "f"].map(held).to_vec();
        let said = agreement::sentences(&Waiting { paths, settings: Vec::new() });
        let expected = ".gitignore changed (by an agent or an unknown program) and leaves out a, b, c, d and 2 more; they stay \
                        captured until you agree";
        assert_eq!(said, [expected]);
    }
}
