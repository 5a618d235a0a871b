//! Resolving a target to a checkpoint.

use std::path::PathBuf;

use piton_model::diff::{self, TreeSource};
use piton_model::near::nearest;
use piton_model::target::{BadTarget, TurnPlace, meant_age, meant_turn};
use piton_model::{
    Cause, CheckpointId, OperationId, SessionId, StepRef, Target, Timestamp, TurnContext, When, WorkspacePath,
};
use piton_store::{CheckpointRow, SessionRow, StoreError};

use crate::history::lineage::Lineage;
use crate::workspace::History;

/// Why a target could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not the form of a target.
    #[error(transparent)]
    Bad(#[from] BadTarget),
    /// Nothing has that name or id.
    #[error("there is no checkpoint `{target}`")]
    Unknown {
        /// What was typed.
        target: String,
        /// Targets that may have been meant, the likeliest first.
        near: Vec<String>,
    },
    /// An operation's id.
    #[error("`{}` is an operation, not a checkpoint", .0.short())]
    Operation(OperationId),
    /// Several ids begin like that.
    #[error("`{prefix}` is the beginning of several ids: {}", candidates.join(", "))]
    Ambiguous {
        /// What was typed.
        prefix: String,
        /// What it could be.
        candidates: Vec<String>,
    },
    /// No checkpoint is that old.
    #[error("no checkpoint is that old; the oldest is of {oldest}")]
    TooOld {
        /// When the oldest was made.
        oldest: Timestamp,
    },
    /// Nothing was captured yet.
    #[error("nothing has been captured here yet")]
    Empty,
    /// `@` where a checkpoint is wanted.
    #[error("`@` is the workspace as it is now, not a checkpoint")]
    Now,
    /// No session is called that.
    #[error("there is no session `{session}`")]
    UnknownSession {
        /// What was typed.
        session: String,
        /// Sessions that may have been meant, by id or name.
        near: Vec<String>,
    },
    /// Several sessions are at work, and nobody can be asked which is meant.
    #[error("several sessions are in the middle of a turn, and `{target}` could be of any: {}", live.join(", "))]
    SeveralSessions {
        /// What was typed.
        target: String,
        live: Vec<String>,
    },
    /// The session has no such turn.
    #[error("session {} has no turn {turn}; its last one is {last}", session.short())]
    NoTurn {
        turn: u32,
        session: SessionId,
        /// The last there is.
        last: u32,
    },
    /// Before a fork, and the store that has the files of that time does not tell them any more.
    #[error("the files of that moment are in the store of {}, which this folder is a fork of, and are not there any more", parent.display())]
    InParent {
        /// The workspace's folder, or its store's where nothing is known of it.
        parent: PathBuf,
    },
    /// The turn has no such step.
    #[error("turn {turn} has no step {step}; it has {last}")]
    NoStep { turn: u32, step: u32, last: u32 },
    /// Nothing was captured at that moment.
    #[error("there is no checkpoint for `{target}`: {reason}")]
    Gap {
        /// What was typed.
        target: String,
        reason: String,
    },
    /// A turn, without a session.
    #[error("{}", no_session(.0))]
    NoSession(String),
    /// No operation has that id.
    #[error("there is no operation `{0}`")]
    UnknownOperation(String),
    /// A path that neither side has.
    #[error("neither the checkpoint nor the workspace has `{}`", .0.display())]
    NoPath(WorkspacePath),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a verb takes as its target: a [`Target`], a checkpoint's id, or the text of a target, which is read at once.
pub trait IntoTarget {
    /// # Errors
    /// Where a text is no target.
    fn into_target(self) -> Result<Target, TargetError>;
}

impl IntoTarget for Target {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(self)
    }
}

impl IntoTarget for &Target {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(self.clone())
    }
}

impl IntoTarget for &CheckpointId {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(self.into())
    }
}

impl IntoTarget for &str {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(self.parse()?)
    }
}

impl IntoTarget for &String {
    fn into_target(self) -> Result<Target, TargetError> {
        self.as_str().into_target()
    }
}

/// Fewer letters than this are hardly meant as the beginning of an operation's id.
const FEW_LETTERS: usize = 4;

impl History {
    /// The checkpoint that a target refers to, as it was recorded. If the view differs from the record, the view is rebuilt.
    pub fn resolve(&self, target: impl IntoTarget) -> Result<CheckpointRow, TargetError> {
        self.checkpoint_at(&target.into_target()?)
    }

    /// The same for what is a target already.
    pub(crate) fn checkpoint_at(&self, wanted: &Target) -> Result<CheckpointRow, TargetError> {
        let row = self.resolve_row(wanted).map_err(|error| match error {
            TargetError::Unknown { target, .. } => self.unknown_target(wanted, target),
            error => error,
        })?;
        let row = match self.store.check_checkpoint(&row) {
            Err(StoreError::Diverged { .. }) => {
                self.store.rebuild()?;
                self.resolve_row(wanted)?
            }
            checked => checked.map(|()| row)?,
        };
        if let Some(parent) = &self.record.forked_from
            && let Err(StoreError::Missing(_)) = self.store.tree(&row.checkpoint.root.tree)
        {
            let known = self.home.known(parent).map(|known| known.path);
            return Err(TargetError::InParent { parent: known.unwrap_or_else(|| self.home.folder(parent)) });
        }
        Ok(row)
    }

    /// That a target means nothing, with what may have been meant. `target` is what was typed.
    pub(crate) fn unknown_target(&self, wanted: &Target, target: String) -> TargetError {
        if let Some(turn) = meant_turn(&wanted.when.to_string()) {
            let turn = Target { session: wanted.session.clone(), when: turn };
            match self.resolve_row(&turn) {
                Ok(_) | Err(TargetError::Gap { .. }) => {
                    return TargetError::Unknown { target, near: vec![turn.to_string()] };
                }
                Err(error @ TargetError::NoTurn { .. }) => return error,
                Err(_) => {}
            }
        }
        if let (None, When::Id(prefix)) = (&wanted.session, &wanted.when)
            && prefix.len() >= FEW_LETTERS
            && let Ok(operations) = self.store.operations()
            && let Some(row) = operations.into_iter().find(|row| row.id.as_str().starts_with(prefix.as_str()))
        {
            return TargetError::Operation(row.id);
        }
        TargetError::Unknown { near: self.near_targets(wanted), target }
    }

    /// Targets that may have been meant by one that means nothing, and is like no turn.
    fn near_targets(&self, wanted: &Target) -> Vec<String> {
        let text = &wanted.to_string();
        if let (None, Some(age)) = (&wanted.session, meant_age(text)) {
            return vec![age.to_string()];
        }
        // An id of a session alone is no moment.
        if wanted.session.is_none()
            && let Ok(row) = self.session_meant(Some(text), text)
            && let Ok(last) = self.lineage(&row.session.id).and_then(|lineage| self.last_turn_in(&lineage))
            && last > 0
        {
            return vec![format!("{text}:t{last}")];
        }
        let names = self.store.names().unwrap_or_default();
        nearest(text, names.iter().map(String::as_str))
    }

    fn resolve_row(&self, target: &Target) -> Result<CheckpointRow, TargetError> {
        let session = target.session.as_deref();
        match &target.when {
            When::Start if session.is_some() => {
                let session = self.session_meant(session, &target.to_string())?;
                let first = self.store.checkpoints_of(&session.session.id)?.into_iter().next();
                first.ok_or(TargetError::Empty)
            }
            When::Turn { turn, place } => self.resolve_turn(target, *turn, *place),
            _ if session.is_some() => Err(unknown(&target.to_string())),
            When::Now => Err(TargetError::Now),
            When::Start => self.store.first(self.record.line)?.ok_or(TargetError::Empty),
            When::Name(name) => self.store.named(name)?.ok_or(unknown(name)),
            When::Age(ms) => {
                let moment = Timestamp(self.environment.clock.now().0.saturating_sub(*ms));
                match self.store.not_after(self.record.line, moment)? {
                    Some(row) => Ok(row),
                    None => match self.store.first(self.record.line)? {
                        Some(first) => Err(TargetError::TooOld { oldest: first.checkpoint.created_at }),
                        None => Err(TargetError::Empty),
                    },
                }
            }
            When::Id(prefix) => {
                if let Some(row) = self.store.named(prefix)? {
                    return Ok(row);
                }
                let mut rows = self.store.with_prefix(prefix)?;
                match rows.len() {
                    0 => Err(unknown(prefix)),
                    1 => Ok(rows.remove(0)),
                    _ => Err(TargetError::Ambiguous {
                        prefix: prefix.clone(),
                        candidates: rows.iter().map(|r| r.checkpoint.id.to_string()).collect(),
                    }),
                }
            }
        }
    }

    /// The checkpoint at a position in a session.
    fn resolve_turn(&self, target: &Target, turn: u32, place: TurnPlace) -> Result<CheckpointRow, TargetError> {
        let lineage = self.lineage(&self.session_of_target(target)?.session.id)?;
        if self.turn_in(&lineage, turn)?.is_none() {
            return Err(self.no_turn(&lineage, turn));
        }
        let session = lineage.session_of(turn).clone();
        let at = |step| TurnContext { session: session.clone(), turn, step };
        let found = match place {
            TurnPlace::Before => self.before_turn(&session, turn)?,
            TurnPlace::Step(step) => {
                if self.store.step(&StepRef { session: session.clone(), turn, step })?.is_none() {
                    let last = self.store.steps(&session, Some(turn))?.len() as u32;
                    return Err(TargetError::NoStep { turn, step, last });
                }
                self.store.checkpoint_at(&at(Some(step)), Cause::BeforeTool)?
            }
            TurnPlace::End => self.store.last_of_turn(&session, turn)?,
        };
        found.ok_or_else(|| {
            let gaps = self.store.gaps(Some(&session)).unwrap_or_default();
            let gap = gaps.into_iter().find(|(_, gap)| gap.place.turn == turn);
            let reason = gap.map_or_else(|| "nothing was captured there".to_owned(), |(_, gap)| gap.reason);
            TargetError::Gap { target: target.to_string(), reason }
        })
    }

    /// That a conversation has no such turn.
    pub(crate) fn no_turn(&self, lineage: &Lineage, turn: u32) -> TargetError {
        match self.last_turn_in(lineage) {
            Ok(last) => TargetError::NoTurn { turn, session: lineage.session().clone(), last },
            Err(error) => error.into(),
        }
    }

    /// The checkpoint of the moment before a turn was acted on.
    pub(crate) fn before_turn(&self, session: &SessionId, turn: u32) -> Result<Option<CheckpointRow>, StoreError> {
        let at = |step| TurnContext { session: session.clone(), turn, step };
        match self.store.checkpoint_at(&at(None), Cause::Prompt)? {
            // Piton started in the middle of the turn, or there was a gap: use the next moment before anything else was done.
            None => self.store.checkpoint_at(&at(Some(1)), Cause::BeforeTool),
            found => Ok(found),
        }
    }

    /// The session that a target names, else the one that is meant without one.
    pub(crate) fn session_of_target(&self, target: &Target) -> Result<SessionRow, TargetError> {
        self.session_meant(target.session.as_deref(), &target.to_string())
    }

    /// The session that is meant: by the beginning of its id, the agent's id or its name; without one, the one that
    /// it is typed in, else the one that reported last.
    pub fn session_meant(&self, wanted: Option<&str>, text: &str) -> Result<SessionRow, TargetError> {
        let mut all = self.store.sessions()?;
        if let Some(wanted) = wanted {
            let is_whole = |row: &SessionRow| {
                let session = &row.session;
                session.id.as_str() == wanted || session.agent_id == wanted || session.name.as_deref() == Some(wanted)
            };
            // `run-1` is a session of its own though `run-10` begins like it.
            let any_is_whole = all.iter().any(is_whole);
            all.retain(|row| {
                if any_is_whole {
                    return is_whole(row);
                }
                let session = &row.session;
                session.id.as_str().starts_with(wanted) || session.agent_id.starts_with(wanted)
            });
            return match all.len() {
                1 => Ok(all.remove(0)),
                0 => {
                    let all = self.store.sessions()?;
                    let called = |row: &SessionRow| {
                        let session = &row.session;
                        [session.name.clone(), Some(session.agent_id.clone()), Some(session.id.short().to_owned())]
                    };
                    let called: Vec<String> = all.iter().flat_map(called).flatten().collect();
                    let near = nearest(wanted, called.iter().map(String::as_str));
                    Err(TargetError::UnknownSession { session: wanted.to_owned(), near })
                }
                _ => Err(TargetError::Ambiguous {
                    prefix: wanted.to_owned(),
                    candidates: all.iter().map(|row| row.session.id.to_string()).collect(),
                }),
            };
        }
        if let Some(own) = &self.environment.session {
            let is_own = |row: &SessionRow| row.session.id == *own;
            return all.into_iter().find(is_own).ok_or_else(|| TargetError::NoSession(text.to_owned()));
        }
        let all = self.working_sessions()?;
        let live = self.sessions_in_a_turn(&all)?;
        if live.len() > 1 && !self.environment.guesses_session {
            return Err(TargetError::SeveralSessions { target: text.to_owned(), live });
        }
        all.into_iter().next().ok_or_else(|| TargetError::NoSession(text.to_owned()))
    }

    /// Those of some sessions that are in the middle of a turn, as people say them.
    pub(crate) fn sessions_in_a_turn(&self, sessions: &[SessionRow]) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        for row in sessions.iter().filter(|row| self.is_live(row)) {
            if self.store.last_turn(&row.session.id)?.is_some_and(|turn| turn.ending.is_none()) {
                found.push(row.session.id.short().to_owned());
            }
        }
        Ok(found)
    }

    /// Checks that each path is on one side at least, so that a mistyped one does not pass for "nothing to do".
    pub(crate) fn check_paths<S: diff::TreeSource<Error = StoreError>>(
        source: &S,
        roots: [&piton_model::ObjectId; 2],
        paths: &[WorkspacePath],
    ) -> Result<(), TargetError> {
        for path in paths.iter().filter(|p| !p.is_root()) {
            let mut found = false;
            for root in roots {
                found |= diff::lookup(source, root, path)?.is_some();
            }
            if !found {
                return Err(TargetError::NoPath(path.clone()));
            }
        }
        Ok(())
    }
}

/// `asked` is what was typed to mean a turn, or anything else that needs a session.
fn no_session(asked: &str) -> String {
    match asked.parse::<Target>() {
        Ok(Target { when: When::Turn { .. }, .. }) => {
            format!("`{asked}` means a turn of a session, and no session is recorded here")
        }
        _ => "no session is recorded here".to_owned(),
    }
}

fn unknown(target: &str) -> TargetError {
    TargetError::Unknown { target: target.to_owned(), near: Vec::new() }
}
