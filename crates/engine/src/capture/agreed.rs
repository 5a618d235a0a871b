//! The workspace's own settings as far as its user agreed to them.
//!
//! `.piton/config.toml` is where an agent can write. What it says about protection is in force as the last checkpoint has it
//! (`Checkpoint::settings`); something weaker holds once the user has written it or agreed to it. A note beside the
//! store says the same, so that a hook need not open the store to know its settings.

use std::path::Path;

use piton_host::{bounded, is_taken, last_change};
use piton_model::settings::{self, Key, Layer, Settings};
use piton_model::{Cause, Protection, SettingsAt, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::About;
use crate::capture::held::{Witness, is_users};
use crate::view::HeldSetting;
use crate::workspace::{Engine, History};

/// Where a workspace's own settings are.
const FILE: &str = ".piton/config.toml";
const FOLDER: &str = ".piton";
/// Larger files are not read as settings; the command line refuses them too.
const LARGEST: u64 = 1 << 20;

/// The part of a workspace's own settings that is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// The settings in force.
    pub protection: Protection,
    /// The keys whose weaker value in the file waits for the user's agreement.
    pub waiting: Vec<Key>,
}

impl Engine {
    /// What is in force of the settings in a workspace's own file.
    pub fn settings_in_force(&self, root: &Path, now: Protection) -> InForce {
        let as_it_is = |now: Protection| InForce { protection: now, waiting: Vec::new() };
        // In a new workspace, everything found is in force.
        let Some(known) = self.home.of(root) else { return as_it_is(now) };
        if self.home.agreed(&known.id) == now {
            return as_it_is(now);
        }
        let asked = || -> Option<InForce> {
            let workspace = self.load(&known.id, known.path.clone()).ok()?;
            let head = workspace.store.head(workspace.record.line).ok()?;
            let in_force = workspace.in_force(&now, head.as_ref(), None).ok()?;
            // The note may be missing, or left by an interrupted capture.
            if let Some(head) = head.filter(|head| head.checkpoint.settings.holds == in_force.protection) {
                let _ = self.home.note_agreed(&known.id, &head.checkpoint.settings.holds);
            }
            Some(in_force)
        };
        // If the store cannot be read, nothing is captured either.
        asked().unwrap_or_else(|| as_it_is(now.clone()))
    }
}

impl History {
    /// What will be in force from the checkpoint about to be recorded, and what the file asks for.
    pub(crate) fn settings_to_record(
        &self,
        parent: Option<&CheckpointRow>,
        about: &About,
    ) -> Result<SettingsAt, StoreError> {
        let now = self.own_protection();
        let settings = match about.agrees {
            true => SettingsAt { holds: now, asked: None },
            false => {
                let InForce { protection, waiting } = self.in_force(&now, parent, Some(&about.witness()))?;
                SettingsAt { holds: protection, asked: (!waiting.is_empty()).then_some(now) }
            }
        };
        if parent.map(|parent| &parent.checkpoint.settings.holds).unwrap_or(&Protection::default()) != &settings.holds {
            // Only a note: without it, the store is queried.
            let _ = self.home.note_agreed(&self.record.id, &settings.holds);
        }
        Ok(settings)
    }
}

impl History {
    /// The settings that are weaker than those in force, for display.
    pub(crate) fn waiting_settings(&self, head: Option<&CheckpointRow>) -> Result<Vec<HeldSetting>, StoreError> {
        let now = self.own_protection();
        let in_force = self.in_force(&now, head, None)?;
        let users = &self.environment.users_settings;
        let (holds, says) = (in_force.protection.settings(users), now.settings(users));
        let shown = |settings: &Settings, key: Key| match settings.show(key).value.to_string() {
            text if text.is_empty() => "none".to_owned(),
            text => text,
        };
        let setting =
            |key: Key| HeldSetting { key: key.name().to_owned(), holds: shown(&holds, key), says: shown(&says, key) };
        Ok(in_force.waiting.into_iter().map(setting).collect())
    }

    fn own_protection(&self) -> Protection {
        // Most workspaces have none, and this runs in every capture.
        if !is_taken(&self.path.join(FOLDER)) {
            return Protection::default();
        }
        let bytes = bounded::read_in(&self.path, Path::new(FILE), LARGEST).ok().flatten();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        // A file with a mistake in it counts as empty.
        settings::read(&text, Layer::Workspace).map(|partial| partial.protection()).unwrap_or_default()
    }

    fn in_force(
        &self,
        now: &Protection,
        head: Option<&CheckpointRow>,
        witness: Option<&Witness>,
    ) -> Result<InForce, StoreError> {
        let as_it_is = || InForce { protection: now.clone(), waiting: Vec::new() };
        let Some(head) = head else { return Ok(as_it_is()) };
        let agreed = &head.checkpoint.settings.holds;
        let users = &self.environment.users_settings;
        let waiting = now.weaker_than(agreed, users);
        if waiting.is_empty() {
            return Ok(as_it_is());
        }
        let file = self.path.join(FILE);
        let is_gone = !is_taken(&file);
        let when = last_change(&file);
        let is_older = when.is_some_and(|when| when <= head.checkpoint.created_at.0.saturating_mul(1_000_000));
        // The file of the last checkpoint had an owner then; a user who saved it since may have agreed to it.
        if head.checkpoint.settings.asked.as_ref() != Some(now) || !(is_gone || is_older) {
            let path = WorkspacePath::new(FILE.as_bytes()).unwrap_or_else(|_| WorkspacePath::root());
            // An operation that restores an agent's settings is not the user's agreement.
            let is_by_operation = head.checkpoint.cause == Cause::Operation && is_older;
            if !is_by_operation && is_users(&self.owner_since(head, &path, when, is_gone, witness)?) {
                return Ok(as_it_is());
            }
        }
        Ok(InForce { protection: now.held_to(agreed, users), waiting })
    }
}
