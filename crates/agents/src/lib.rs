//! What piton knows about each agent: hook input becomes events, transcripts become turns and branches, settings files
//! get piton's hooks.
//!
//! Called by the engine, which acts on the results, and by the command line, which reads and writes the files. Never
//! touches a file, a clock or the environment itself: bytes in, values out. Nothing here decides what to capture.

mod agent;
pub mod claude_code;
pub mod event;
mod fields;
pub mod generic;
mod jsonc;
pub mod setup;
pub mod transcript;

pub use agent::{Agent, Agents, STATE_FOLDERS_OF_OTHERS};
pub use event::{BadReport, Event, Events, Reply, Report, Subagent, ToolCall};
pub use setup::Setup;
pub use transcript::Transcripts;
