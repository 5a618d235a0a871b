//! What piton's tests share: a world with a workspace and a store, snapshots of trees taken without piton's help,
//! ordinary users, small disks, real git.
//!
//! Tests only. A test fails where it cannot do its work here; it never skips.

mod disk;
mod git;
mod snapshot;
mod user;
mod world;

pub use disk::SmallDisk;
pub use git::{git, git_command};
pub use snapshot::{Snapshot, snapshot};
pub use user::{as_ordinary_user, is_root};
pub use world::World;
