//! Conflicts as a person reads them: where, why, and what stands against what.

use std::io::{self, Write};

use piton_engine::model::content::Clash;
use piton_engine::view::ConflictView;
use piton_wording::escape::escape_view;

use crate::columns::fit;
use crate::console::Look;
use crate::files::write_rest;

/// How to go on where no decision settles any of them.
pub const ONLY_PARTIAL: &str = "\
Nothing is done while a conflict is open:
  --partial           leaves these files as they are, and does the rest";

/// How to go on.
pub const WAYS: &str = "\
Nothing is done while a conflict is open:
  --conflict ours     keeps what is there now
  --conflict theirs   brings back what was there before
  --conflict markers  writes both into the file, where it is text
  --partial           leaves these files as they are, and does the rest";

/// As many places of a file are shown before somebody is asked.
const PLACES: usize = 3;
/// As many lines of a side.
const LINES: usize = 4;

/// Writes each with its places; all of them, or as much as a person reads before answering.
pub fn write(out: &mut dyn Write, look: &Look, conflicts: &[ConflictView], is_whole: bool) -> io::Result<()> {
    if conflicts.is_empty() {
        return Ok(());
    }
    let is_cut = !is_whole && look.terminal;
    let (places, lines) = if is_cut { (PLACES, LINES) } else { (usize::MAX, usize::MAX) };
    writeln!(out, "Conflicts:")?;
    let mut is_all = true;
    for conflict in conflicts {
        let decided = if conflict.decided { look.paint.dim(" (decided)") } else { String::new() };
        let path = look.paint.bad(escape_view(&conflict.path));
        let others: Vec<_> = conflict.others.iter().map(escape_view).collect();
        let others = match &others[..] {
            [] => String::new(),
            others => look.paint.dim(format!(" (the same file as {})", others.join(", "))),
        };
        writeln!(out, "  {path}: {}{others}{decided}", conflict.why.describe())?;
        for clash in conflict.clashes.iter().take(places) {
            let sides = Sides { look, lines, is_cut };
            sides.write(out, clash)?;
            is_all &= clash.ours.len() <= lines && clash.theirs.len() <= lines;
        }
        is_all &= conflict.clashes.len() <= places;
        write_rest(out, look, "    ", conflict.clashes.len().saturating_sub(places))?;
    }
    if !is_all {
        writeln!(out, "  {}", look.paint.dim("`--preview` shows all of it"))?;
    }
    Ok(())
}

struct Sides<'a> {
    look: &'a Look,
    /// As many of each side.
    lines: usize,
    /// Whether long lines are cut to the screen.
    is_cut: bool,
}

impl Sides<'_> {
    fn write(&self, out: &mut dyn Write, clash: &Clash) -> io::Result<()> {
        writeln!(out, "    {}", self.look.paint.dim(format!("line {}", clash.line)))?;
        self.side(out, "now", &clash.ours)?;
        self.side(out, "before", &clash.theirs)
    }

    fn side(&self, out: &mut dyn Write, label: &str, lines: &[String]) -> io::Result<()> {
        let paint = self.look.paint;
        let room = if self.is_cut { self.look.width.saturating_sub(17).max(20) } else { usize::MAX };
        let bar = paint.dim("│");
        if lines.is_empty() {
            writeln!(out, "      {} {bar} {}", paint.bold(format!("{label:<6}")), paint.dim("(nothing)"))?;
        }
        for (at, line) in lines.iter().take(self.lines).enumerate() {
            let label = if at == 0 { label } else { "" };
            writeln!(out, "      {} {bar} {}", paint.bold(format!("{label:<6}")), fit(line, room).0)?;
        }
        let rest = lines.len().saturating_sub(self.lines);
        if rest > 0 {
            writeln!(out, "      {:<6} {bar} {}", "", paint.dim(format!("… and {rest} more")))?;
        }
        Ok(())
    }
}
