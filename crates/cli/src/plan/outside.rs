//! Files outside the workspace that tools named: what becomes of them, or would on request.

use std::io::{self, Write};

use piton_engine::view::{OutsideAct, OutsideView};
use piton_wording::escape::escape;
use piton_wording::{Style, Text, text};

use crate::console::Look;

/// Writes each with what becomes of it. `way` says how to have them put back where they are left alone.
pub fn write(out: &mut dyn Write, look: &Look, files: &[OutsideView], is_touched: bool, way: &Text) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let paint = look.paint;
    let heading = if is_touched { "Outside the workspace:" } else { "Outside the workspace, left alone:" };
    writeln!(out, "{heading}")?;
    for file in files {
        let (sign, word) = match file.act {
            OutsideAct::Restore => ("~", "restore"),
            OutsideAct::Delete => ("-", "delete"),
            OutsideAct::Recreate => ("+", "recreate"),
            OutsideAct::Merge => ("±", "merge"),
            OutsideAct::Conflict => ("!", "conflict"),
            OutsideAct::Unknown => ("?", "unknown"),
        };
        let why = match file.act {
            OutsideAct::Merge => Some("other edits in it stay"),
            _ => file.why.as_deref(),
        };
        let why = why.map(|why| paint.dim(format!(" ({})", escape(why)))).unwrap_or_default();
        let line = format!("{sign} {word:<8} {}", escape(&file.path));
        let painted = match sign {
            "~" | "±" => paint.warn(line),
            "+" => paint.good(line),
            "?" => paint.dim(line),
            _ => paint.bad(line),
        };
        writeln!(out, "  {painted}{why}")?;
    }
    let any = files.iter().any(|file| !matches!(file.act, OutsideAct::Unknown | OutsideAct::Conflict));
    if any && !is_touched {
        let text = text![way.clone(), " puts those back too"];
        writeln!(out, "{}", look.text(text.in_style(Style::Dim)))?;
    }
    Ok(())
}
