//! What a search found.

use piton_engine::view::Found;

use crate::text::{Style, Text};

/// The text in one line, the words that were found in bold.
pub fn highlighted(found: &Found) -> Text {
    // A byte for a byte: the marks stay where they are.
    let text = found.text.replace(['\n', '\r', '\t'], " ");
    let (mut out, mut at) = (Text::default(), text.len() - text.trim_start().len());
    for (from, to) in &found.marks {
        if let (Some(before), Some(word)) = (text.get(at..*from), text.get(*from..*to)) {
            out = out.and(Style::Plain, before).and(Style::Bold, word);
            at = *to;
        }
    }
    out.and(Style::Plain, text.get(at..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use piton_engine::HitKind;

    use super::*;

    #[test]
    fn marks_that_are_no_places_lose_no_text() {
        let found = |marks| Found {
            kind: HitKind::Prompt,
            target: None,
            session: None,
            text: " größe\nzwei".into(),
            marks,
            at: None,
        };
        for marks in [vec![], vec![(1, 8)], vec![(0, 2), (3, 4), (9, 13)], vec![(50, 60)]] {
            assert_eq!(highlighted(&found(marks)).plain(), "größe zwei");
        }
    }
}
