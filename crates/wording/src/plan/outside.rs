//! Files outside the workspace that tools named: what becomes of them, or would on request.

use piton_engine::view::{OutsideAct, OutsideView};

use crate::lines::Lines;
use crate::text;
use crate::text::{Style, Text};

/// Each with what becomes of it. `way` says how to have them put back where they are left alone.
pub fn say(out: &mut Lines, files: &[OutsideView], is_touched: bool, way: Text) {
    if files.is_empty() {
        return;
    }
    out.say(if is_touched { "Outside the workspace:" } else { "Outside the workspace, left alone:" });
    for file in files {
        let (sign, word, style) = match file.act {
            OutsideAct::Restore => ("~", "restore", Style::Warn),
            OutsideAct::Delete => ("-", "delete", Style::Bad),
            OutsideAct::Recreate => ("+", "recreate", Style::Good),
            OutsideAct::Merge => ("±", "merge", Style::Warn),
            OutsideAct::Conflict => ("!", "conflict", Style::Bad),
            OutsideAct::Unknown => ("?", "unknown", Style::Dim),
        };
        let why = match file.act {
            OutsideAct::Merge => Some("other edits in it stay"),
            _ => file.why.as_deref(),
        };
        let why = Text::new(Style::Dim, why.map(|why| format!(" ({why})")).unwrap_or_default());
        out.say(text!["  ", Text::new(style, format!("{sign} {word:<8} {}", file.path)), why]);
    }
    let any = files.iter().any(|file| !matches!(file.act, OutsideAct::Unknown | OutsideAct::Conflict));
    if any && !is_touched {
        out.say(text![way, " puts those back too"].in_style(Style::Dim));
    }
}
