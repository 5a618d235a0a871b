//! Why nobody can tell whose a change is, in plain words: `saved at 14:02, while “npm test” ran, which does not write it`.

use piton_engine::model::Timestamp;
use piton_engine::model::ownership::Why;
use piton_engine::view::{ChangedFile, DoubtView};

use crate::escape::escape;
use crate::owners::Names;
use crate::words::{Now, moment};

/// Who may have made a change, and why that is not sure, as far as it is recorded.
pub fn of_file(file: &ChangedFile, names: &Names, now: &Now) -> String {
    let who = names.evidence(&file.owner, &[]);
    match &file.doubt {
        Some(doubt) => format!("{who}: {}", sentence(doubt, now)),
        None => who,
    }
}

/// The reason alone.
pub fn sentence(view: &DoubtView, now: &Now) -> String {
    let DoubtView { doubt, tool } = view;
    let at = |time: Timestamp| moment(time, &now.zone, "%H:%M");
    let tool = match tool.as_deref().map(|tool| tool.strip_prefix("Bash ").unwrap_or(tool)) {
        Some(tool) => format!("“{}”", escape(tool)),
        None => "the tool".to_owned(),
    };
    let saved = match doubt.at {
        Some(time) => format!("saved at {}", at(time)),
        None => "changed".to_owned(),
    };
    match doubt.why {
        Why::HandEdit => match doubt.edited {
            Some(edited) => format!("you edited it at {}, and it was {saved} while {tool} ran", at(edited)),
            None => format!("you had edited it, and it was {saved} while {tool} ran"),
        },
        Why::Editor => format!("{saved} while {tool} ran and an editor had it open"),
        Why::Idle => format!("{saved} while {tool} ran, which does not write it by itself"),
        Why::Background => format!("{saved} while {tool} ran in the background"),
        Why::AfterEdit => format!("{saved} right after {tool}, by a hook or by you"),
        Why::OtherFile => format!("{saved} while {tool} ran, which names other files"),
        Why::SeveralNamed => format!("{saved} while several tools ran that name it"),
        Why::SeveralTools => format!("{saved} while several tools ran"),
        Why::SeveralSessions => format!("{saved} while tools of several sessions ran"),
        Why::MayNotHaveRun => format!("{tool} names it, and did not finish"),
        Why::NotCapturedBefore => format!("nothing was captured when {tool} began"),
        Why::Attended => format!("{saved} while {tool} ran, beside which you could work"),
        Why::CutOff => format!("{saved} after {tool} was interrupted, or around then"),
        Why::Undated => format!("nobody knows when it went; {tool} ran before that"),
        Why::StillRunning => format!("{saved} while {tool} had not reported its end"),
        Why::Elsewhere => format!("{saved} while {tool} ran, which works in another folder"),
        Why::Missed => "tools may have run then that nobody reported".to_owned(),
        Why::OutOfSight => "changed while it was not captured".to_owned(),
        Why::Lost => "a record of that time is lost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use piton_engine::model::ownership::Doubt;

    use super::*;

    #[test]
    fn a_doubt_names_the_time_and_what_ran_then() {
        let now = Now::utc(Timestamp(0));
        let say = |why, edited: Option<i64>, tool: Option<&str>| {
            let doubt = Doubt { why, at: Some(Timestamp(50_520_000)), edited: edited.map(Timestamp) };
            sentence(&DoubtView { doubt, tool: tool.map(str::to_owned) }, &now)
        };
        assert_eq!(
            say(Why::Idle, None, Some("Bash npm test")),
            "saved at 14:02 while “npm test” ran, which does not write it by itself"
        );
        assert_eq!(
            say(Why::HandEdit, Some(50_400_000), Some("Bash make")),
            "you edited it at 14:00, and it was saved at 14:02 while “make” ran"
        );
        assert_eq!(say(Why::Background, None, None), "saved at 14:02 while the tool ran in the background");
    }
}
