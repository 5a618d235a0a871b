//! Power cuts: everything that real piton processes do to the disk is recorded, the disks that a power cut may leave
//! are derived from that, and each of them is opened with another boot id.
//!
//! What a power cut may take is what docs/format.md assumes of the disk: between syncs any subset of the changes,
//! writes torn at blocks of 512 or 4096 bytes, renames whole or not at all. The pieces: [`trace`](self) turns strace's
//! output into a [`Recording`]; [`Recording::after_cut`] makes a [`Disk`] of a recording and a [`Cut`];
//! [`Recorded::explore`] tries many cuts and checks what must be true of each.

mod cuts;
mod disk;
mod explore;
mod recorder;
mod recording;
mod trace;

pub use cuts::{Cut, Survives};
pub use disk::{Disk, Effect, Inode, Node};
pub use explore::Explored;
pub use recorder::{Phase, Recorded, Recorder};
pub use recording::{Event, Recording, SECTOR, Synced};
