//! What a plan comes to before it is carried out: it is refused, done at once, or somebody is asked.

use piton_engine::view::{Diff, PathView, PlanView, RunningView};
use piton_engine::{Carry, OperationError, Plan, Refusal, UndoOptions, Workspace};
use piton_wording::owners::Names;
use piton_wording::{Call, Code, Failure, call, flag, plan, text};

use super::{Act, CONTEXT, How, Patch, Stopped, Way};
use crate::console::Console;
use crate::inside::Inside;
use crate::patch;

/// What is done with a plan.
pub(super) enum Decision {
    Refuse(Refusal),
    Do,
    /// Somebody says yes or no.
    Ask,
    /// The same of a rewind, of which more can be said.
    AskRewind {
        /// It would take edits that may be the user's own.
        can_keep_mine: bool,
    },
}

/// Nobody is asked about what would be refused, nor where there is nothing to agree to.
pub(super) fn decide(way: &Way, act: &Act, plan: &PlanView, refusal: Option<Refusal>) -> Decision {
    let is_agreed = matches!(way.how, How::Careful | How::Yes) || way.patch == Some(Patch::ThenDo);
    match refusal {
        _ if plan.is_empty() => Decision::Do,
        Some(refusal) => Decision::Refuse(refusal),
        None if is_agreed || does_nothing(plan) => Decision::Do,
        None => match act {
            Act::Rewind { .. } => Decision::AskRewind {
                // Whoever was asked about each change has kept what is to be kept.
                can_keep_mine: way.patch.is_none()
                    && act.carries() == Carry::Nothing
                    && plan.others.iter().any(|file| file.owner.may_be_you()),
            },
            Act::Undo(_) | Act::Redo(_) => Decision::Ask,
        },
    }
}

/// Whether every file that it is about is in conflict, and stays as it is.
fn does_nothing(plan: &PlanView) -> bool {
    plan.conversation.is_none()
        && plan::touched_outside(plan).is_empty()
        && plan.created.is_empty()
        && plan.restored.is_empty()
        && plan.deleted.is_empty()
}

/// The failure of a plan that is refused.
pub(super) fn refused(refusal: Refusal, plan: &PlanView, act: &Act, command: &Call) -> Failure {
    match refusal {
        Refusal::Impossible(error) => act.failed(error, command),
        Refusal::Running { running, .. } => act.failed(OperationError::Running(running), command),
        Refusal::Others(_) => {
            let outside = plan::touched_outside(plan);
            let redo = if outside.is_empty() { call("redo") } else { call("redo").arg("--outside") };
            let mut failure = Failure::overwrites(&plan::taking(plan), command, &redo, act.carries());
            // What is shown there is agreed to with a word.
            if Inside::of_process().is_some_and(|inside| inside.may_say_yes(&plan.fingerprint.to_string())) {
                failure.hints.pop();
                failure.hints.insert(0, text!["`/piton yes` carries this plan out; ", redo, " takes that back"]);
            }
            failure
        }
    }
}

/// Answers to the question of a rewind.
const YES: &str = "yes";
const KEEP_MINE: &str = "keep mine";
const DIFF: &str = "diff";
const NO: &str = "no";

/// What a person agreed to.
pub(super) enum Agreed {
    /// The plan.
    All,
    /// The same with their own edits carried over, which is another plan.
    KeepingMine,
}

pub(super) fn yes_or_no(console: &mut Console, plan: &PlanView) -> Result<Agreed, Failure> {
    if console.ask(&plan::question(plan)) { Ok(Agreed::All) } else { Err(Failure::declined()) }
}

/// Asks about a rewind until the answer is more than to show contents.
pub(super) fn yes_or_keep(
    console: &mut Console,
    plan: &PlanView,
    can_keep_mine: bool,
    has_contents: bool,
    contents: &dyn Fn() -> Result<Diff, Failure>,
) -> Result<Agreed, Failure> {
    let question = plan::question(plan);
    let mut is_shown = has_contents;
    loop {
        let all = [(YES, true), (KEEP_MINE, can_keep_mine), (DIFF, !is_shown), (NO, true)];
        let answers: Vec<&str> = all.into_iter().filter(|(_, is_there)| *is_there).map(|(answer, _)| answer).collect();
        match console.choose(&question, &answers) {
            YES => return Ok(Agreed::All),
            KEEP_MINE => return Ok(Agreed::KeepingMine),
            DIFF => {
                let diff = contents()?;
                console.say_with(|out, look| diff.files.iter().try_for_each(|file| patch::write(out, look, file)));
                is_shown = true;
            }
            _ => return Err(Failure::declined()),
        }
    }
}

/// Asks whether to take back what may be the user's own, too; the plan with all of it where they say so.
pub(super) fn also(
    console: &mut Console,
    workspace: &Workspace,
    view: &PlanView,
    options: &UndoOptions,
) -> Result<Option<Plan>, Stopped> {
    let mut options = options.clone();
    options.choice.unsure = true;
    let plan = |workspace: &Workspace| {
        workspace.plan_undo(&options).map_err(|error| Stopped::Failed(Failure::of_operation(error, &call("undo"))))
    };
    loop {
        match console.choose(&plan::also(view), &["yes", "diff", "no"]) {
            "yes" => return plan(workspace).map(Some),
            "diff" => {
                let diff = workspace.plan_diff(&plan(workspace)?, CONTEXT).map_err(Failure::from)?;
                let wanted = |path: &PathView| view.unsure.iter().any(|file| file.path == *path);
                let files: Vec<_> = diff.files.iter().filter(|file| wanted(&file.change.path)).collect();
                console.say_with(|out, look| files.into_iter().try_for_each(|file| patch::write(out, look, file)));
            }
            _ => return Ok(None),
        }
    }
}

/// Asks whether the turns that agents seem to be in were interrupted.
pub(super) fn was_interrupted(
    console: &mut Console,
    workspace: &Workspace,
    running: &[RunningView],
) -> Result<bool, Failure> {
    let names = Names::of(&workspace.sessions()?.sessions);
    let turns: Vec<_> = running.iter().map(|one| names.target(&one.session, one.turn, None)).collect();
    let turns = turns.join(" and ");
    Ok(console.ask(&format!("The agent is in the middle of {turns}. Has it been interrupted?")))
}

/// Refuses to guess where nobody can be asked.
pub fn someone_to_ask(console: &Console) -> Result<(), Failure> {
    if console.can_ask() {
        return Ok(());
    }
    Err(Failure::user(Code::NobodyToAsk, "there is no terminal to ask at; nothing was changed").hint(text![
        flag("--preview"),
        " shows what would change; ",
        flag("--yes"),
        " goes on without asking"
    ]))
}
