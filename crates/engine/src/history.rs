//! Reading what was captured: turns, changes, who wrote what, and the moments that a target can mean.

pub(crate) mod blame;
pub(crate) mod changes;
pub(crate) mod diff;
pub(crate) mod elsewhere;
pub(crate) mod file;
pub(crate) mod future;
pub(crate) mod glance;
pub(crate) mod lineage;
pub(crate) mod lost;
pub(crate) mod offered;
pub(crate) mod operations;
pub(crate) mod search;
pub(crate) mod session_changes;
pub(crate) mod sessions;
pub(crate) mod shown_turn;
pub(crate) mod since;
pub(crate) mod since_turn;
pub(crate) mod size;
pub(crate) mod target;
pub(crate) mod timeline;
pub(crate) mod together;
pub(crate) mod turns;
pub(crate) mod unknown;
