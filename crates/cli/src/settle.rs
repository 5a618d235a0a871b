//! What `--conflict`, `--partial` and `--except` are: what a person decides about parts of a plan.

use std::ffi::OsString;
use std::path::Path;

use clap::ValueEnum;
use piton_engine::Settle;
use piton_engine::model::Except;
use piton_engine::model::content::Decision;
use piton_wording::{Call, Failure};

use crate::paths;

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
    /// Leave files in conflict, and what the system refuses, as they are, and do the rest
    #[arg(long)]
    pub partial: bool,
    /// Leave this path, and everything under it, as it is; may be given several times
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub except: Vec<OsString>,
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
    /// What the engine takes, for the workspace at `root` and paths typed in the folder `here`.
    pub fn settle(&self, root: &Path, here: &Path) -> Result<Settle, Failure> {
        let paths = self.except.iter().map(|path| paths::resolve(root, here, path));
        let except = Except { paths: paths.collect::<Result<_, _>>()?, hunks: Vec::new() };
        Ok(Settle { except, ..self.elsewhere() })
    }

    /// A command with what it leaves as it is.
    pub fn said(&self, command: Call) -> Call {
        self.except.iter().fold(command, |command, path| command.with("--except", path))
    }

    /// What holds in other workspaces too: a path is one of this one.
    pub fn elsewhere(&self) -> Settle {
        let decision = |which| match which {
            Which::Now => Decision::Ours,
            Which::Before => Decision::Theirs,
            Which::Markers => Decision::Markers,
        };
        Settle { conflicts: self.conflict.map(decision), partial: self.partial, except: Except::default() }
    }
}
