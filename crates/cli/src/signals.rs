//! Signals while files change: an operation that has begun is ended first.
//!
//! Until an operation begins to change files, a signal ends the command as it always does. From then on SIGINT, SIGTERM
//! and SIGHUP wait: a process that died in the middle would leave a mix of two states until the next command. What is
//! told of the outcome says that one came. A second Ctrl-C ends the process at once, and the next command ends the
//! operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use piton_engine::Workspace;
use piton_wording::{Call, note, text};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::console::Console;

/// Hears of signals as long as it lives; afterwards they do what they always do.
pub struct Signals {
    /// Whether a signal ends the process. The engine clears it when an operation begins.
    may_stop: Arc<AtomicBool>,
    /// The last one that came and was kept waiting; 0 where none did.
    came: Arc<AtomicUsize>,
}

impl Signals {
    /// Keeps signals waiting from the moment that an operation of a workspace begins to change files.
    pub fn watch(workspace: &Workspace) -> Self {
        let signals = Self { may_stop: Arc::clone(&workspace.progress().may_stop), came: Arc::default() };
        // What whoever started the process lets it ignore stays ignored: `nohup`, a job in the background.
        let ignored = piton_engine::ignored_signals().unwrap_or(0);
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0) {
            // Where the system refuses, it ends the process as before.
            let _ = signals.register(signal);
        }
        signals
    }

    /// Each is called in the order of its registration.
    fn register(&self, signal: i32) -> std::io::Result<()> {
        flag::register_conditional_default(signal, Arc::clone(&self.may_stop))?;
        if signal == SIGINT {
            let is_typed = Arc::<AtomicBool>::default();
            flag::register_conditional_default(signal, Arc::clone(&is_typed))?;
            flag::register(signal, is_typed)?;
        }
        flag::register_usize(signal, Arc::clone(&self.came), signal as usize)?;
        Ok(())
    }

    /// Keeps signals waiting though no file is changed, until it is dropped.
    pub fn hold(&self) -> Held<'_> {
        self.may_stop.store(false, SeqCst);
        Held(self)
    }

    /// Says that a signal came when it was too late, with the command that takes back what was done.
    pub fn tell(self, console: &mut Console, back: &Call) {
        if let Some(signal) = self.came() {
            let name = low_level::signal_name(signal).unwrap_or("a signal");
            console.say(note(text![name, " came too late to stop it; it is done, and ", back, " takes it back"]));
        }
    }

    fn came(&self) -> Option<i32> {
        i32::try_from(self.came.load(SeqCst)).ok().filter(|signal| *signal != 0)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.may_stop.store(true, SeqCst);
    }
}

/// Signals that are kept waiting.
pub struct Held<'a>(&'a Signals);

impl Held<'_> {
    /// Whether Ctrl-C was typed. Any other signal ends the process here.
    pub fn is_interrupted(&self) -> bool {
        match self.0.came() {
            None => false,
            Some(SIGINT) => true,
            Some(signal) => {
                let _ = low_level::emulate_default_handler(signal);
                false
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.may_stop.store(true, SeqCst);
    }
}
