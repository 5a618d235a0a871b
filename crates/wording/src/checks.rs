//! Whether captures work: what was looked at, what was found, and what to do about it.
//!
//! What only a command line can look at (an agent's settings, the hook's log, the hook itself) is put in by it; what the engine
//! knows is judged here, of its view values.

use std::path::Path;

use piton_engine::view::{FolderState, KeptGit, KeptGitState, SessionView, Status};
use piton_engine::{Abilities, CaptureError, GitError, GitRefusal, StoreError, WriteError};
use serde::{Serialize, Serializer};

use crate::call::call;
use crate::escape::{escape, escape_path};
use crate::failure::Failure;
use crate::text::Text;
use crate::words::{Now, age, plural, size};
use crate::{agreement, owners, status, text};

/// Whether captures work, and what says so.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether an agent that is started now is captured.
    pub works: bool,
    /// In the order in which it was looked at.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// A word for it, such as `hooks`.
    pub what: &'static str,
    /// How it stands.
    pub state: Verdict,
    /// What was found.
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "as_plain")]
    /// What to do about it.
    pub hint: Option<Text>,
}

fn as_plain<S: Serializer>(hint: &Option<Text>, serializer: S) -> Result<S::Ok, S::Error> {
    hint.as_ref().map(Text::plain).serialize(serializer)
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing; capture works all the same.
    Note,
    /// Capture does not work.
    Problem,
}

/// What was found, in the order in which it was looked at.
#[derive(Clone, Debug, Default)]
pub struct Checks(Vec<Check>);

impl Checks {
    /// It is as it should be.
    pub fn ok(&mut self, what: &'static str, found: impl Into<String>) {
        self.0.push(Check { what, state: Verdict::Ok, found: found.into(), hint: None });
    }

    /// Worth knowing; captures work all the same.
    pub fn note(&mut self, what: &'static str, found: impl Into<String>, hint: impl Into<Text>) {
        self.0.push(Check { what, state: Verdict::Note, found: found.into(), hint: Some(hint.into()) });
    }

    /// Captures do not work, with what to do about it.
    pub fn problem(&mut self, what: &'static str, found: impl Into<String>, hint: impl Into<Text>) {
        self.0.push(Check { what, state: Verdict::Problem, found: found.into(), hint: Some(hint.into()) });
    }

    /// The same, where that is an error.
    pub fn failed(&mut self, what: &'static str, failure: Failure) {
        let hint = failure.hints.into_iter().next();
        self.0.push(Check { what, state: Verdict::Problem, found: failure.message, hint });
    }

    /// All of it, with the verdict.
    pub fn report(self) -> Report {
        Report { works: self.0.iter().all(|check| check.state != Verdict::Problem), checks: self.0 }
    }

    /// How a workspace stands, and whether it can be captured.
    pub fn about_status(&mut self, folder: &Path, status: &Status, now: &Now) {
        const WHAT: &str = "workspace";
        let path = escape_path(folder);
        if let Some(reason) = &status.unwritable {
            let hint = "free some space, or let your user write there: root may have made it";
            self.problem("store", format!("nothing can be captured: {reason}"), hint);
        }
        if let Some(last) = status.waiting.last() {
            let hint = "the next capture that works records them";
            self.problem("gap", status::waiting(&status.waiting, age(last.at, now)), hint);
        }
        if status.history_lost {
            let hint = text![call("verify"), " names it, and the file to delete when you have seen it"];
            self.note(WHAT, "some of what was captured is gone or incomplete", hint);
        }
        for worktree in &status.unprotected {
            let found = format!("{}: a worktree that only sessions in it capture", escape_path(worktree));
            self.note(WHAT, found, "it is captured from the first event on that is about it");
        }
        let used = format!("{} of {}", size(status.size), size(status.budget));
        match status.folder {
            FolderState::Missing => {
                let back = text![call("rewind").asking("TARGET"), " brings it back"];
                self.problem(WHAT, format!("{path} is gone"), back);
            }
            _ if status.room == 0 => {
                self.problem(
                    WHAT,
                    format!("{path}: {used} used, no room for captures"),
                    status::more_room(status.budget),
                );
            }
            _ if status.size.saturating_mul(10) > status.budget.saturating_mul(9) => {
                let more = text!["allow more: ", call("init").arg("--budget").asking("SIZE").there(folder)];
                self.note(WHAT, format!("{path}: {used} used"), more);
            }
            _ => self.ok(WHAT, format!("{path}: {}, {used}", plural(status.checkpoints, "checkpoint"))),
        }
        for said in agreement::sentences(&status.rules_waiting) {
            self.note("rules", said, agreement::how(None));
        }
        for unread in &status.unread_rules {
            let found = format!("{} cannot be read: {}", escape_path(&unread.path), unread.reason);
            self.note("rules", found, "its rules are not used; make it a plain file that your user may read");
        }
        if let Some(gap) = &status.not_captured {
            let found = format!("the last event was not captured, {}, {}", age(gap.at, now), owners::gap(gap, &[]));
            let hint = if status.room == 0 {
                status::more_room(status.budget)
            } else {
                text![call("log"), " shows every gap"]
            };
            self.problem("gap", found, hint);
        }
    }

    /// Whether sessions are at work, and whether the last one was captured whole. The newest comes first.
    pub fn about_sessions(&mut self, sessions: &[SessionView], now: &Now) {
        let Some(last) = sessions.first() else { return };
        let live = sessions.iter().filter(|session| session.live).count() as u64;
        let running = sessions.iter().filter(|session| session.running).count();
        let (heard, agent) = (age(last.last_at, now), escape(&last.agent));
        let open = plural(live, "open session");
        let found = format!("{open}, {running} at work; the last event came {heard}, from {agent}");
        match last.gaps {
            0 => self.ok("sessions", found),
            gaps => {
                let found = format!("{found}; {} in it", plural(gaps, "gap"));
                self.note("sessions", found, text![call("log"), " shows where and why"]);
            }
        }
    }

    /// What a rewind can rely on in the workspace's own folder.
    pub fn about_filesystem(&mut self, abilities: Result<Option<Abilities>, CaptureError>) {
        const WHAT: &str = "filesystem";
        match abilities {
            Ok(None) => {}
            Ok(Some(Abilities { set_mode: false, .. })) => self.note(
                WHAT,
                "it does not take permission bits, so that a rewind cannot bring them back",
                "contents come back; a rewind names what got other bits, and ends in 1",
            ),
            Ok(Some(Abilities { exchange: true, rename_to_new: true, .. })) => {
                self.ok(WHAT, "a rewind replaces each file in one step");
            }
            Ok(Some(found)) if found.rename_to_new || found.link => self.note(
                WHAT,
                "it cannot exchange two names, so a file that a rewind replaces is away for an instant",
                "nothing to do: a rewind works, and overwrites nothing",
            ),
            Ok(Some(_)) => self.note(
                WHAT,
                "it has neither safe renames nor hard links, so a file that a rewind replaces is away for an instant",
                "let nothing else write there during a rewind: a file that is made in that instant may be overwritten",
            ),
            Err(CaptureError::Store(StoreError::Busy)) => self.note(
                WHAT,
                "not tried out: another piton is at work in this workspace",
                text!["run ", call("doctor"), " again when it is done"],
            ),
            Err(error) => self.note(WHAT, error.to_string(), "captures work; a rewind may be refused"),
        }
    }

    /// What earlier operations keep in the user's repository and nobody needs any more.
    pub fn about_kept_git(&mut self, kept: Result<Vec<KeptGit>, GitRefusal>, now: &Now) {
        const WHAT: &str = "git";
        let kept = match kept {
            Ok(kept) => kept,
            Err(GitRefusal::Write(WriteError::Git(error @ GitError::Obstacle { .. }))) => {
                let hint =
                    "captures and rewinds work; what needs git (`--git`) is refused until that is a file or gone";
                return self.note(WHAT, error.to_string(), hint);
            }
            // Without git nothing was kept, or it cannot be listed; neither keeps a capture from working.
            Err(_) => Vec::new(),
        };
        let is_old = |one: &&KeptGit| matches!(one.state, KeptGitState::TakenBack | KeptGitState::Moved);
        let old: Vec<String> = kept
            .iter()
            .filter(is_old)
            .map(|one| {
                let age = one.began_at.map(|at| age(at, now)).unwrap_or_default();
                format!("{} ({age})", one.operation.short())
            })
            .collect();
        if !old.is_empty() {
            let found = format!("refs/piton/ keeps what can no longer be taken back, of operations {}", old.join(", "));
            self.note(WHAT, found, text![call("ops").arg("--forget-git"), " removes it"]);
        }
        let unknown: Vec<String> = kept
            .iter()
            .filter(|one| one.state == KeptGitState::Unknown)
            .map(|one| format!("refs/piton/{}/", one.operation))
            .collect();
        if !unknown.is_empty() {
            let found = format!("{} is of another workspace's store, or of one that is gone", unknown.join(", "));
            self.note(
                WHAT,
                found,
                "if it is gone, `git update-ref -d REF` removes what `git for-each-ref refs/piton` lists",
            );
        }
    }
}
