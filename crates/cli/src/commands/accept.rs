//! `piton accept`: changes that are fine, which an undo leaves unless they are named.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use piton_engine::model::target::{TurnPlace, meant_turn, split_session};
use piton_engine::model::{When, WorkspacePath};
use piton_engine::view::AcceptedChanges;
use piton_engine::{AcceptError, AcceptOptions};
use piton_wording::escape::escape_path;
use piton_wording::owners::Names;
use piton_wording::{Code, Failure, call, did_you_mean, text, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::files;
use crate::help::Example;
use crate::paths::resolve;

/// Accept changes, so that an undo leaves them unless you name them
///
/// What an agent did in these turns, or to these paths until now, is fine: `piton undo all` and `piton undo` of the
/// last turn leave it, and `piton log` marks the turns. No file changes. `piton undo t3` still takes back an accepted
/// turn, because you name it, and a rewind goes back as before. `--take-back` withdraws the acceptance.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Turns or single tool calls, such as t3, t3.2 or kmzq:t3, or paths
    ///
    /// A path that looks like a turn is written as ./t3. Turns and paths together mean the changes of those turns to
    /// those paths.
    #[arg(value_name = "TURN|PATH", required = true, value_hint = clap::ValueHint::AnyPath)]
    what: Vec<OsString>,
    /// Only this session: the beginning of its id, or its name
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Withdraw the acceptance
    #[arg(long)]
    take_back: bool,
}

pub const EXAMPLES: [Example; 4] = [
    Example::Call("accept t3", "turn 3 is fine"),
    Example::Call("accept src/auth.ts docs", "what agents did to these until now is fine, too"),
    Example::Call("undo all", "take back everything else"),
    Example::Call("accept --take-back t3", ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let mut workspace = surroundings.open(console)?;
    let mut options =
        AcceptOptions { session: args.session.clone(), take_back: args.take_back, ..AcceptOptions::default() };
    for word in &args.what {
        match place(word) {
            Some((session, place)) => {
                let other = session.as_ref().is_some_and(|it| options.session.as_ref().is_some_and(|one| one != it));
                if other {
                    let text = "the turns are of several sessions";
                    return Err(Failure::user(Code::ArgumentsClash, text).hint("accept those of one session at a time"));
                }
                options.session = session.or(options.session);
                options.places.push(place);
            }
            None => options.paths.push(resolve(workspace.path(), &surroundings.here, word)?),
        }
    }
    let done = match workspace.accept(&options) {
        Err(AcceptError::Nothing) => return Err(nothing_to_accept(args, workspace.path(), &options.paths)),
        done => done?,
    };
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print_done(&done, |out, look| write(out, look, &done, &names))?;
    if !done.already {
        let what = || args.what.iter();
        let (verb, does) = match args.take_back {
            true => (what().fold(call("accept"), |call, word| call.arg(word)), " accepts them again"),
            false => (what().fold(call("accept").arg("--take-back"), |call, word| call.arg(word)), " takes that back"),
        };
        console.advise(text![verb, does]);
    }
    Ok(())
}

/// Why there is nothing to accept: a word may be neither a turn nor a path.
fn nothing_to_accept(args: &Args, root: &Path, paths: &[WorkspacePath]) -> Failure {
    let mut words = args.what.iter().filter(|word| place(word).is_none()).zip(paths);
    let not_there = words.find(|(_, path)| root.join(path.as_path()).symlink_metadata().is_err());
    let Some((word, _)) = not_there else { return AcceptError::Nothing.into() };
    let shown = word.to_string_lossy();
    let (session, text) = split_session(&shown);
    let near = meant_turn(text).map(|turn| session.map_or_else(|| turn.to_string(), |one| format!("{one}:{turn}")));
    Failure::user(Code::NothingToAccept, format!("there is no turn or path `{}`", escape_path(Path::new(word))))
        .hints(near.and_then(|near| did_you_mean(&[near])))
        .hint(text![call("changes"), " lists what the session changed, with its turns"])
}

/// A turn, or a step of it.
type TurnOrStep = (u32, Option<u32>);

/// A turn or a step, with its session where that is named.
fn place(word: &OsString) -> Option<(Option<String>, TurnOrStep)> {
    let (session, place) = split_session(word.to_str()?);
    let place = match place.parse() {
        Ok(When::Turn { turn, place: TurnPlace::Before }) => (turn, None),
        Ok(When::Turn { turn, place: TurnPlace::Step(step) }) => (turn, Some(step)),
        _ => return None,
    };
    Some((session.map(str::to_owned), place))
}

fn write(out: &mut dyn Write, look: &Look, done: &AcceptedChanges, names: &Names) -> io::Result<()> {
    if done.already {
        return writeln!(out, "all of that is accepted already");
    }
    // Each file once, however often it was changed.
    let count = words::plural(done.files.len() as u64, "change");
    match done.taken_back {
        true => writeln!(out, "no longer accepted: {count}")?,
        false => writeln!(out, "accepted {count}")?,
    }
    let shown = look.lines(files::ON_A_TERMINAL).min(done.files.len());
    for file in &done.files[..shown] {
        writeln!(
            out,
            "  {}  {}",
            piton_wording::escape::escape_view(&file.path),
            look.paint.dim(names.who(&file.owner))
        )?;
    }
    files::write_rest(out, look, "  ", done.files.len() - shown)
}
