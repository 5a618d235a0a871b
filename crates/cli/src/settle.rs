//! What `--conflict` and `--partial` are: how a person settles what does not go together.

use clap::ValueEnum;
use piton_engine::Settle;
use piton_engine::model::content::Decision;

/// The flags of every command that merges.
#[derive(Debug, Default, clap::Args)]
pub struct SettleArgs {
    /// Decide conflicts: now, before or markers
    ///
    /// A conflict is a place that was changed again since. `now` keeps what is there now, `before` brings back what was there
    /// before, and `markers` writes both into the file, for you to choose. Markers need text on both sides; where there is
    /// none, the conflict stays open.
    #[arg(long, value_name = "WHICH", hide_possible_values = true)]
    pub conflict: Option<Which>,
    /// Leave files in conflict, and what the system refuses, as they are, and go on with the rest
    #[arg(long)]
    pub partial: bool,
}

/// How conflicts are decided. The aliases are what these were called once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Which {
    #[value(alias = "ours")]
    Now,
    #[value(alias = "theirs")]
    Before,
    Markers,
}

impl SettleArgs {
    /// What the engine takes.
    pub fn settle(&self) -> Settle {
        let decision = |which| match which {
            Which::Now => Decision::Ours,
            Which::Before => Decision::Theirs,
            Which::Markers => Decision::Markers,
        };
        Settle { conflicts: self.conflict.map(decision), partial: self.partial }
    }
}
