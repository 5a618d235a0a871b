//! Which power cuts are tried: after which event, and which of the changes at risk survive.

use super::disk::{Effect, Inode};
use super::recording::Recording;
use crate::dice::Dice;

/// Which of the changes at risk survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// The process was only killed.
    Everything,
    Nothing,
    /// Names and permission bits, but no bytes: as with delayed allocation.
    Names,
    /// Bytes but no names.
    Bytes,
    /// Everything but what was done to one inode, including its names.
    AllBut(Inode),
    /// Only what was done to one inode, and all names.
    OnlyBytesOf(Inode),
    /// What happened before an event.
    Before(usize),
    /// Everything but one event.
    AllButEvent(usize),
    /// Each change at random, with writes torn in blocks of sectors.
    Chance {
        seed: u64,
        /// How many of 16 survive.
        of_16: u64,
        /// How many sectors survive or are lost together; 0: writes are not torn.
        torn: u64,
    },
    /// What happened before an event and, of that event, which is a write, some sectors.
    TornAt {
        event: usize,
        seed: u64,
        /// How many sectors survive or are lost together.
        torn: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many events had happened.
    pub at: usize,
    pub survives: Survives,
}

/// In sectors: blocks of 512 and of 4096 bytes.
const BLOCKS: [u64; 2] = [1, 8];

impl Cut {
    /// Whether a sector of an event that is at risk survives.
    pub fn keeps(&self, recording: &Recording, event: usize, sector: u64) -> bool {
        let effect = match &recording.events[event] {
            super::Event::Effect(effect) => effect,
            super::Event::Sync(..) => return true,
        };
        let is_bytes = matches!(effect, Effect::Write { .. } | Effect::Length(..));
        match self.survives {
            Survives::Everything => true,
            Survives::Nothing => false,
            Survives::Names => !is_bytes,
            Survives::Bytes => is_bytes,
            Survives::AllBut(inode) => !concerns(effect, inode),
            Survives::OnlyBytesOf(inode) => !is_bytes || effect.inode() == Some(inode),
            Survives::Before(other) => event < other,
            Survives::AllButEvent(other) => event != other,
            Survives::Chance { seed, of_16, torn } => {
                let block = sector.checked_div(torn).unwrap_or(0);
                Dice::of(&[seed, event as u64, block]).below(16) < of_16
            }
            Survives::TornAt { event: other, seed, torn } => {
                event < other || (event == other && Dice::of(&[seed, sector / torn]).below(2) == 0)
            }
        }
    }

    /// The cuts worth trying first after an event: all that are not random.
    pub fn certain(recording: &Recording, at: usize) -> Vec<Self> {
        let mut inodes: Vec<Inode> = Vec::new();
        let mut found = vec![Survives::Everything, Survives::Nothing, Survives::Names, Survives::Bytes];
        for (event, effect) in recording.at_risk(at) {
            found.push(Survives::Before(event));
            found.push(Survives::AllButEvent(event));
            if let Effect::Write { bytes, .. } = effect
                && bytes.len() > 512
            {
                found.extend(BLOCKS.map(|torn| Survives::TornAt { event, seed: event as u64, torn }));
            }
            inodes.extend(effect.inode());
        }
        inodes.sort_unstable();
        inodes.dedup();
        found.extend(inodes.into_iter().flat_map(|inode| [Survives::AllBut(inode), Survives::OnlyBytesOf(inode)]));
        found.into_iter().map(|survives| Self { at, survives }).collect()
    }

    pub fn by_chance(dice: &mut Dice, at: usize) -> Self {
        let torn = [0, 0, 1, 8][dice.below(4) as usize];
        let of_16 = [2, 4, 8, 8, 12, 14, 15][dice.below(7) as usize];
        Self { at, survives: Survives::Chance { seed: dice.roll(), of_16, torn } }
    }
}

fn concerns(effect: &Effect, inode: Inode) -> bool {
    match effect {
        Effect::Names(slots) => slots.iter().any(|(_, _, to)| *to == Some(inode)),
        effect => effect.inode() == Some(inode),
    }
}
