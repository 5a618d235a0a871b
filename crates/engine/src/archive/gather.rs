//! Gathering what goes into an archive: the records of a session, as they stand, without what is of this machine only.

use std::collections::{HashMap, HashSet};

use piton_model::diff::TreeSource;
use piton_model::git::{GitState, StagedEntry};
use piton_model::ownership::{Candidate, Owned, Owner, Settles};
use piton_model::session::{KeptTranscript, StepEnd, TurnEnd};
use piton_model::{Checkpoint, CheckpointId, Entry, NeededObject, ObjectId, Rank, Record, Session, SessionId, Turn};
use piton_store::{ArchiveError, ArchiveWriter, CheckpointRow, StoreError};

use crate::history::lineage::Lineage;
use crate::workspace::History;

/// Why a repository's state is not whole in an archive.
const NOT_SHOWN: &str = "what was staged and is in no checkpoint of the session was left out of the archive";

/// What goes into an archive.
#[derive(Default)]
pub(super) struct Gathered {
    /// In order.
    pub records: Vec<Record>,
    /// The session's own first.
    pub sessions: Vec<SessionId>,
    pub turns: u64,
    pub checkpoints: u64,
}

impl Gathered {
    /// Says where the transcript of a session is.
    pub(super) fn set_kept(&mut self, of: &SessionId, transcript: Option<KeptTranscript>) {
        for record in &mut self.records {
            match record {
                Record::Session(session) if session.id == *of => session.kept = transcript.clone(),
                _ => {}
            }
        }
    }
}

/// Where a record stands: by the number of its own, or after what it is said of.
type Order = (u64, u8);

impl History {
    /// The records of a conversation: of the session itself all, of those that it is a branch of the turns that it shares.
    pub(super) fn gather(&self, lineage: &Lineage) -> Result<Gathered, StoreError> {
        let mut all = Gathered::default();
        let mut sessions: Vec<Session> = Vec::new();
        for id in lineage.sessions() {
            sessions.extend(self.store.session(id)?.map(|row| row.session));
        }
        all.sessions = sessions.iter().map(|session| session.id.clone()).collect();
        let has = |session: &SessionId, turn: u32| all.sessions.contains(session) && lineage.holds(session, turn);
        let mut items: Vec<(Order, Record)> = Vec::new();
        let mut rows: Vec<CheckpointRow> = Vec::new();
        for id in &all.sessions {
            let checkpoints = self.store.checkpoints_of(id)?.into_iter();
            rows.extend(checkpoints.filter(|row| row.checkpoint.place.as_ref().is_some_and(|p| has(id, p.turn))));
            all.turns += self.gather_turns(id, |turn| has(id, turn), &rows, &mut items)?;
        }
        let parents = self.parents_among(&rows)?;
        for CheckpointRow { seq, checkpoint, names, annotation } in rows {
            let id = checkpoint.id.clone();
            let parent = parents.get(&seq).cloned();
            let checkpoint = Record::Checkpoint(portable(Checkpoint { parent, ..checkpoint }, has));
            items.push(((seq, 1), checkpoint));
            for name in names {
                items.push(((seq, 3), Record::Name { checkpoint: id.clone(), name }));
            }
            if let Some(text) = annotation.filter(|text| !text.is_empty()) {
                items.push(((seq, 4), Record::Annotation { checkpoint: id, text }));
            }
            all.checkpoints += 1;
        }
        // What is equal keeps its order, so that the same session always gives the same archive.
        items.sort_by_key(|(order, _)| *order);
        // Those that others are branches of come first.
        for session in sessions.into_iter().rev() {
            let origin = session.origin.filter(|origin| all.sessions.contains(&origin.parent));
            let session = Session { transcript: None, kept: None, rank: Rank::Plain, origin, along: false, ..session };
            all.records.push(Record::Session(session));
        }
        all.records.extend(items.into_iter().map(|(_, record)| record));
        if let Some(row) = self.store.session(lineage.session())?
            && let Some(at) = row.ended_at
        {
            all.records.push(Record::SessionEnded { session: row.session.id, reason: None, at });
        }
        Ok(all)
    }

    /// Turns, steps, gaps and what was said, of a session as far as it is wanted. Returns how many turns.
    fn gather_turns(
        &self,
        session: &SessionId,
        is_wanted: impl Fn(u32) -> bool,
        checkpoints: &[CheckpointRow],
        items: &mut Vec<(Order, Record)>,
    ) -> Result<u64, StoreError> {
        let mut last: HashMap<u32, u64> = HashMap::new();
        let mut note = |turn: u32, seq: u64| {
            let last = last.entry(turn).or_insert(seq);
            *last = seq.max(*last);
        };
        for row in checkpoints {
            if let Some(place) = row.checkpoint.place.as_ref().filter(|place| place.session == *session) {
                note(place.turn, row.seq);
            }
        }
        let ends = self.store.step_ends(session)?;
        for row in self.store.steps(session, None)?.into_iter().filter(|row| is_wanted(row.step.at.turn)) {
            let at = row.step.at.clone();
            // A step of an archive has no such number here: its end comes right after it.
            let ended = ends.get(&at).copied().unwrap_or(row.seq);
            note(at.turn, row.seq.max(ended));
            let step = piton_model::session::Step { outside: Vec::new(), process: None, cwd: None, ..row.step };
            items.push(((row.seq, 1), Record::Step(step)));
            if let Some((how, closed)) = row.ending.zip(row.closed) {
                let end = StepEnd { at, how, closed, cut: row.cut, outside: Vec::new() };
                items.push(((ended, 2), Record::StepEnded(end)));
            }
        }
        for (seq, gap) in self.store.gaps(Some(session))?.into_iter().filter(|(_, gap)| is_wanted(gap.place.turn)) {
            note(gap.place.turn, seq);
            items.push(((seq, 1), Record::Gap(gap)));
        }
        for (seq, message) in self.store.messages_numbered(session)?.into_iter().filter(|(_, m)| is_wanted(m.turn)) {
            note(message.turn, seq);
            items.push(((seq, 1), Record::Message(message)));
        }
        let mut turns = 0;
        for row in self.store.turns(session)?.into_iter().filter(|row| is_wanted(row.turn.number)) {
            let number = row.turn.number;
            let last = last.get(&number).copied().unwrap_or(row.seq).max(row.seq);
            items.push(((row.seq, 0), Record::Turn(Turn { mark: None, ..row.turn })));
            if let Some((how, at)) = row.ending.zip(row.ended_at) {
                let end = TurnEnd { session: session.clone(), number, how, message: row.message, at };
                items.push(((last, 5), Record::TurnEnded(end)));
            }
            turns += 1;
        }
        Ok(turns)
    }

    /// The nearest ancestor of each checkpoint that is among them too: what lies between is of others.
    fn parents_among(&self, rows: &[CheckpointRow]) -> Result<HashMap<u64, CheckpointId>, StoreError> {
        let ids: HashMap<u64, &CheckpointId> = rows.iter().map(|row| (row.seq, &row.checkpoint.id)).collect();
        let mut nearest: HashMap<u64, Option<u64>> = HashMap::new();
        // In order: of every link the answer for the one before it is known.
        for link in self.store.links()? {
            let parent = link.parent.and_then(|parent| match ids.contains_key(&parent) {
                true => Some(parent),
                false => nearest.get(&parent).copied().flatten(),
            });
            nearest.insert(link.seq, parent);
        }
        let found =
            rows.iter().filter_map(|row| Some((row.seq, (*ids.get(&nearest.get(&row.seq).copied()??)?).clone())));
        Ok(found.collect())
    }

    /// Adds the repositories' states with what was staged. One that is not whole is left out, as it is everywhere else.
    ///
    /// What is staged and is in none of the checkpoints stays out: nobody was told of it. It may be of a file that is ignored and
    /// was staged once, or of one that is not even in the workspace's folder.
    pub(super) fn add_git(&self, gathered: &mut Gathered, archive: &mut ArchiveWriter<'_>) -> Result<(), ArchiveError> {
        let (mut trees, mut states) = (HashSet::new(), Vec::new());
        for need in gathered.records.iter().flat_map(Record::needs) {
            match need.object {
                NeededObject::Tree(id) => drop(trees.insert(id)),
                NeededObject::GitState(id) if !states.contains(&id) => states.push(id),
                NeededObject::GitState(_) | NeededObject::Blob { .. } => {}
            }
        }
        let shown = self.blobs_in(trees)?;
        let mut kept: HashMap<ObjectId, ObjectId> = HashMap::new();
        for id in states {
            let state = self.store.blob(&id).ok().and_then(|json| serde_json::from_slice::<GitState>(&json).ok());
            let Some(mut state) = state else { continue };
            let is_shown = |entry: &StagedEntry| entry.blob.is_none_or(|blob| shown.contains(&blob));
            let is_whole = state.staged.iter().all(is_shown);
            state.staged.retain(is_shown);
            if !state.needs().all(|need| self.store.blob(&need.object.id()).is_ok()) {
                continue;
            }
            state.needs().try_for_each(|need| archive.needed(&need))?;
            if is_whole {
                archive.blob(&id)?;
                kept.insert(id, id);
                continue;
            }
            state.incomplete.get_or_insert_with(|| NOT_SHOWN.to_owned());
            if let Ok(json) = serde_json::to_vec(&state) {
                kept.insert(id, archive.bytes(&mut &json[..], json.len() as u64)?);
            }
        }
        for record in &mut gathered.records {
            if let Record::Checkpoint(checkpoint) = record {
                checkpoint.git = checkpoint.git.and_then(|id| kept.get(&id).copied());
            }
        }
        Ok(())
    }

    /// The contents of all files of some trees.
    fn blobs_in(&self, trees: HashSet<ObjectId>) -> Result<HashSet<ObjectId>, StoreError> {
        let mut blobs = HashSet::new();
        let mut next: Vec<ObjectId> = trees.iter().copied().collect();
        let mut seen = trees;
        while let Some(id) = next.pop() {
            for (_, entry) in self.store.tree(&id)?.entries() {
                match entry {
                    Entry::File { blob, .. } => drop(blobs.insert(*blob)),
                    Entry::Symlink { target } => drop(blobs.insert(ObjectId::of_blob(target))),
                    Entry::Folder { tree, .. } if seen.insert(*tree) => next.push(*tree),
                    _ => {}
                }
            }
        }
        Ok(blobs)
    }
}

/// A checkpoint without what only its own store knows: operations, and sessions that do not come along.
pub(super) fn portable(checkpoint: Checkpoint, has: impl Fn(&SessionId, u32) -> bool) -> Checkpoint {
    let owner = |owner: Owner| match owner {
        Owner::You => Owner::You,
        Owner::Step { step, evidence } if has(&step.session, step.turn) => Owner::Step { step, evidence },
        Owner::Step { .. } | Owner::Operation { .. } => Owner::Unsure { candidates: Vec::new() },
        Owner::Unsure { mut candidates } => {
            candidates.retain(|one| match one {
                Candidate::Step(step) => has(&step.session, step.turn),
                Candidate::You => true,
            });
            Owner::Unsure { candidates }
        }
    };
    let settles = |settles: Settles| has(&settles.step.session, settles.step.turn).then_some(settles);
    let each = |one: Owned| Owned { owner: owner(one.owner), settles: one.settles.and_then(settles), ..one };
    let owned = checkpoint.owned.into_iter().map(each).collect();
    let place = checkpoint.place.filter(|place| has(&place.session, place.turn));
    let (held, unagreed, settings) = (Vec::new(), Vec::new(), Box::default());
    Checkpoint { line: 1, operation: None, place, owned, held, unagreed, settings, ..checkpoint }
}
