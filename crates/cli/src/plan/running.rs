//! Showing what agents are at, while somebody wants to change files under them.

use std::io::{self, Write};

use piton_engine::view::{Activity, Interrupted, PlanView, RunningView};
use piton_wording::escape::escape;
use piton_wording::owners::Names;

use crate::console::Look;

/// Writes what agents are at, and what that means for a plan.
pub fn write(out: &mut dyn Write, look: &Look, plan: &PlanView, names: &Names) -> io::Result<()> {
    let paint = look.paint;
    write_interrupted(out, look, &plan.running, names)?;
    for one in plan.running.iter().filter(|one| one.interrupted.is_none()) {
        let said = sentence(one, names);
        match one {
            RunningView { blocks: true, what: Activity::Tool, .. } => {
                writeln!(out, "{} {said}; `--wait` waits for its end", paint.warn("warning:"))?;
            }
            RunningView { blocks: true, .. } => writeln!(out, "{} {said}", paint.warn("warning:"))?,
            RunningView { what: Activity::Background, .. } => {
                writeln!(out, "{} {said}, and may go on changing files", paint.warn("note:"))?;
            }
            RunningView { own: true, .. } => {
                writeln!(out, "{} {said}; its session goes on as it is", paint.warn("note:"))?;
            }
            _ => writeln!(out, "{} {said}, and may be changing files", paint.warn("warning:"))?,
        }
    }
    Ok(())
}

/// Writes which turns count as interrupted, and why.
pub fn write_interrupted(out: &mut dyn Write, look: &Look, running: &[RunningView], names: &Names) -> io::Result<()> {
    for (one, why) in running.iter().filter_map(|one| Some((one, one.interrupted?))) {
        let turn = names.target(&one.session, one.turn, None);
        writeln!(out, "{}", look.paint.dim(format!("{turn} counts as interrupted: {}", reason(why))))?;
    }
    Ok(())
}

fn sentence(one: &RunningView, names: &Names) -> String {
    let place = names.target(&one.session, one.turn, one.step);
    let about = escape(one.about.as_deref().unwrap_or("a tool"));
    match one.what {
        Activity::Tool => format!("the agent runs “{about}” ({place})"),
        Activity::Turn => format!("the agent is in the middle of {place}"),
        Activity::Background => format!("“{about}” ({place}) goes on in the background"),
    }
}

fn reason(why: Interrupted) -> &'static str {
    match why {
        Interrupted::Gone => "its agent's process is gone",
        Interrupted::Transcript => "its transcript says so",
        Interrupted::Said => "you say so",
    }
}
