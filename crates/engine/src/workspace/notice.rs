//! Telling whoever embeds piton what happened.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use piton_model::{OperationId, SessionId};

use crate::view::CheckpointView;
use crate::workspace::{Engine, History};

/// Something that happened in a workspace that this engine opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A checkpoint was recorded.
    Captured {
        /// Which.
        checkpoint: Box<CheckpointView>,
    },
    /// A session began, or was heard of for the first time.
    SessionBegan {
        /// Which.
        session: SessionId,
    },
    /// A turn began.
    TurnBegan {
        /// Of which session.
        session: SessionId,
        /// Which.
        turn: u32,
    },
    /// A turn came to its end.
    TurnEnded {
        /// Of which session.
        session: SessionId,
        /// Which.
        turn: u32,
    },
    /// A capture that should have been was not.
    Gap {
        /// Why.
        reason: String,
    },
    /// Files were made equal to a checkpoint.
    Rewound {
        /// By which operation.
        operation: OperationId,
    },
    /// Chosen changes were taken back.
    Undone {
        /// By which operation.
        operation: OperationId,
    },
    /// An operation was taken back.
    Redone {
        /// By which operation.
        operation: OperationId,
    },
}

/// Everybody who listens to an engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listeners(Arc<Mutex<Vec<Sender<Notice>>>>);

impl Listeners {
    fn tell(&self, notice: impl FnOnce() -> Notice) {
        let mut all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if all.is_empty() {
            return;
        }
        let notice = notice();
        // Whoever is gone is forgotten.
        all.retain(|listener| listener.send(notice.clone()).is_ok());
    }
}

impl Engine {
    /// Everything that happens from now on in workspaces that this engine (or a clone of it) opened.
    ///
    /// ```no_run
    /// # use piton_engine::{Engine, Environment, Notice};
    /// # let engine = Engine::new("/var/lib/piton".into(), Environment::default());
    /// let notices = engine.subscribe();
    /// // … work …
    /// for notice in notices.try_iter() {
    ///     if let Notice::Captured { checkpoint } = notice {
    ///         println!("captured {}", checkpoint.id);
    ///     }
    /// }
    /// ```
    pub fn subscribe(&self) -> Receiver<Notice> {
        let (sender, receiver) = channel();
        self.listeners.0.lock().unwrap_or_else(|e| e.into_inner()).push(sender);
        receiver
    }
}

impl History {
    pub(crate) fn tell(&self, notice: impl FnOnce() -> Notice) {
        self.listeners.tell(notice);
    }
}
