//! What people read, the same on every surface: errors with their codes and ways out, titles, ages, counts, whose a change is.
//!
//! Used by the command line, and by every other surface that shows what the engine says. Pure functions of the engine's view
//! values: nothing here prints, paints, asks, reads a variable or knows how wide a screen is. What a surface has its own way
//! to say (a command to type, a button, a time of the day) is data in a [`Text`], and a [`Surface`] says it.

pub mod agreement;
pub mod blame;
mod call;
pub mod changes;
pub mod checkpoints;
pub mod checks;
mod code;
pub mod conversation;
pub mod doubt;
pub mod escape;
mod failure;
pub mod files;
pub mod lines;
pub mod notices;
pub mod outcome;
pub mod owners;
pub mod plan;
pub mod search;
pub mod sessions;
pub mod skipped;
pub mod status;
mod surface;
mod text;
pub mod timeline;
mod titles;
pub mod turns;
pub mod words;

pub use call::{Argument, Call, Flag, Place, call, flag, without};
pub use code::Code;
pub use failure::{Document, Failure, Fault, another_folder, did_you_mean};
pub use surface::{Surface, Terminal, command_line, shell_words};
pub use text::{Part, Span, Style, Text, note, warning};
pub use titles::{Titles, state as operation_state};
