//! What agents are at, while somebody wants to change files under them.

use piton_engine::view::{Activity, Interrupted, PlanView, RunningView};

use crate::call::flag;
use crate::lines::Lines;
use crate::owners::Names;
use crate::text;
use crate::text::{Style, Text, note, warning};

/// What agents are at, and what that means for a plan.
pub fn say(out: &mut Lines, plan: &PlanView, names: &Names) {
    say_interrupted(out, &plan.running, names);
    say_at_work(out, &plan.running, names);
}

/// What goes on, and what that means for an operation.
pub fn say_at_work(out: &mut Lines, running: &[RunningView], names: &Names) {
    for one in running.iter().filter(|one| one.interrupted.is_none()) {
        let said = sentence(one, names);
        out.say(match one {
            RunningView { blocks: true, what: Activity::Tool, .. } => {
                warning(text![said, "; ", flag("--wait"), " waits for its end"])
            }
            RunningView { blocks: true, .. } => warning(said),
            RunningView { what: Activity::Background, .. } => note(text![said, ", and may go on changing files"]),
            RunningView { own: true, .. } => note(text![said, "; its session goes on as it is"]),
            _ => warning(text![said, ", and may be changing files"]),
        });
    }
}

/// Which turns count as interrupted, and why.
pub fn say_interrupted(out: &mut Lines, running: &[RunningView], names: &Names) {
    for (one, why) in running.iter().filter_map(|one| Some((one, one.interrupted?))) {
        let turn = names.target(&one.session, one.turn, None);
        out.say(Text::new(Style::Dim, format!("{turn} counts as interrupted: {}", reason(why))));
    }
}

fn sentence(one: &RunningView, names: &Names) -> String {
    let place = names.target(&one.session, one.turn, one.step);
    let about = one.about.as_deref().unwrap_or("a tool");
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
