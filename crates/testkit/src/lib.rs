//! What piton's tests share: a world with a workspace and a store, the binary over it, snapshots of trees taken without
//! piton's help, ordinary users, small disks, power cuts, real git; a real agent with a scripted model, in an isolated
//! network.
//!
//! Tests only. A test that needs mounts or networks runs as any user ([`namespace`]). What cannot run here is never
//! skipped silently: [`not_run`] lists it, and `./check` ends with the list. A missing agent is a failure if
//! `PITON_TEST_AGENTS=required` is set, as `./check` does.

mod agent;
#[macro_use]
mod alone;
mod claude;
mod deep;
mod dice;
mod disk;
mod endpoint;
mod filesystems;
pub mod fuzz;
mod git;
mod http;
mod kept;
mod model;
mod mounts;
#[macro_use]
pub mod namespace;
mod network;
mod noise;
mod not_run;
mod played;
pub mod power;
mod program;
mod scene;
mod sessions;
mod snapshot;
mod tiny;
mod user;
mod wait;
mod world;

pub use agent::Agent;
#[doc(hidden)]
pub use alone::is_alone;
pub use claude::{CLAUDE_CODE_VERSION, ClaudeCode, ClaudeRun};
pub use deep::{make_deep, read_deep, remove_deep};
pub use dice::Dice;
pub use disk::SmallDisk;
pub use endpoint::{Endpoint, EndpointRequest};
pub use filesystems::{Filesystem, FilesystemKind};
pub use git::{git, git_command};
pub use kept::{KeptCheckpoint, kept};
pub use model::{Model, Request, Say, Turn};
pub use mounts::Mounted;
pub use network::Network;
pub use noise::noise;
pub use not_run::not_run;
pub use played::Claude;
pub use program::make_program;
pub use scene::{Scene, at_a_terminal, both, give, reply, start};
pub use sessions::{three_turns, undo_of};
pub use snapshot::{Snapshot, snapshot};
pub use tiny::{TINY, Tiny};
pub use user::{as_ordinary_user, is_root, without_privileges};
pub use wait::until;
pub use world::World;
