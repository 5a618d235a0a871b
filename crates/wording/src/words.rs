//! Small texts that several commands share: counts, sizes, ages, and what a checkpoint is called.

use piton_engine::model::{Cause, ChangeKind, Counts, Timestamp};
use piton_engine::view::{CheckpointView, LargeFile, Unknown};

use jiff::tz::TimeZone;

use crate::call::call;
use crate::escape::escape_view;
use crate::text;
use crate::text::{Style, Text};

/// What ages count from, and the clock that whoever reads them has.
#[derive(Clone, Debug)]
pub struct Now {
    /// The moment that "just now" means.
    pub at: Timestamp,
    /// Unknown where nothing tells; then times say that they are of UTC.
    pub zone: TimeZone,
}

impl Now {
    /// A moment on a clock of UTC.
    pub fn utc(at: Timestamp) -> Self {
        Self { at, zone: TimeZone::UTC }
    }
}

/// `1 file`, `2 files`.
pub fn plural(count: u64, noun: &str) -> String {
    let number = grouped(count);
    if count == 1 { format!("{number} {noun}") } else { format!("{number} {noun}s") }
}

/// `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `12.4 MiB`.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" || value.fract() == 0.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// So many whole GiB hold it.
pub fn gibibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 30).max(1)
}

/// `3 created, 1 modified`; the words that are true.
pub fn changes(counts: &Counts) -> String {
    let parts = [(counts.created, "created"), (counts.modified, "modified"), (counts.deleted, "deleted")];
    let said: Vec<_> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", grouped(*n))).collect();
    if said.is_empty() { "no changes".to_owned() } else { said.join(", ") }
}

/// `+3 ~1 -2`, without the zeros.
pub fn signs(counts: &Counts) -> Text {
    let parts =
        [(counts.created, '+', Style::Good), (counts.modified, '~', Style::Warn), (counts.deleted, '-', Style::Bad)];
    let said = parts.into_iter().filter(|(n, ..)| *n > 0);
    let text = Text::join(said.map(|(n, sign, style)| Text::new(style, format!("{sign}{n}"))), " ");
    if text.is_empty() { Text::new(Style::Dim, "=") } else { text }
}

/// The sign of a change.
pub fn sign(kind: ChangeKind) -> char {
    match kind {
        ChangeKind::Created => '+',
        ChangeKind::Modified => '~',
        ChangeKind::Deleted => '-',
    }
}

/// `2 min ago`; a date for what is older than a day or, by a wrong clock, in the future.
pub fn age(then: Timestamp, now: &Now) -> String {
    let seconds = (now.at.0 - then.0).div_euclid(1000);
    match seconds {
        // Two clocks are seldom one.
        -2..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => moment(then, &now.zone, "%Y-%m-%d %H:%M"),
    }
}

/// How long something took: `took 12 s`.
pub fn lasted(ms: i64) -> String {
    match ms.max(0) / 1000 {
        0 => "took less than a second".to_owned(),
        seconds @ 1..120 => format!("took {seconds} s"),
        seconds @ 120..7200 => format!("took {} min", seconds / 60),
        seconds => format!("took {} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `2m`, `3h`, `4d`: an age where there is little room.
pub fn short_age(then: Timestamp, now: &Now) -> String {
    let seconds = (now.at.0 - then.0).div_euclid(1000);
    match seconds {
        -2..5 => "now".to_owned(),
        5..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..=i64::MAX => format!("{}d", seconds / 86_400),
        _ => moment(then, &now.zone, "%Y-%m-%d"),
    }
}

/// The moment itself, on a clock of this zone.
pub fn time_in(then: Timestamp, zone: &TimeZone) -> String {
    moment(then, zone, "%Y-%m-%d %H:%M:%S")
}

/// Why a checkpoint exists, for people.
pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::SessionStart => "at a session's start",
        Cause::Prompt => "at a prompt",
        Cause::BeforeTool => "before a tool",
        Cause::AfterTool => "after a tool",
        Cause::TurnEnd => "at a turn's end",
        Cause::AfterTools => "after its tools",
        Cause::Compaction => "before a compaction",
        Cause::Manual => "by hand",
        Cause::BeforeOperation => "before an operation",
        Cause::Operation => "by an operation",
    }
}

/// Lines from here on are imports.
const IMPORTED: u32 = 1 << 31;

/// Whether a checkpoint came with an archive.
pub fn is_imported(line: u32) -> bool {
    line >= IMPORTED
}

/// What to say of a checkpoint's line, in the workspace whose own line is `here`.
pub fn of_line(line: u32, here: u32) -> &'static str {
    match line {
        _ if line == here => "",
        _ if is_imported(line) => "(imported)",
        _ => "(another folder)",
    }
}

/// Why it is not known what a turn changed; `target` means the moment before it.
pub fn unknown(why: &Unknown, target: &str) -> Text {
    match why {
        Unknown::OtherFolder => {
            let back = call("rewind").arg(target).arg("--across");
            text!["it began in another folder that stood here; ", back, " brings that back"]
        }
        Unknown::BeforeFirstCapture => text!["it was under way when this folder was captured for the first time"],
        Unknown::Damaged => text!["a checkpoint of that time is damaged in piton's store"],
        Unknown::NotCaptured => {
            text!["nothing was captured after it; ", call("checkpoint"), " finds what it changed"]
        }
        Unknown::Gap { reason } => text!["not all of it was captured: ", reason],
    }
}

/// `kmzqwxyl "before refactor"`.
pub fn label(checkpoint: &CheckpointView) -> Text {
    let id = Text::new(Style::Id, checkpoint.id.short());
    match &checkpoint.name {
        Some(name) => text![id, " \"", name, "\""],
        None => id,
    }
}

pub(crate) fn moment(then: Timestamp, zone: &TimeZone, format: &str) -> String {
    let time = jiff::Timestamp::from_millisecond(then.0).unwrap_or_default();
    // A zone that the system does not know is taken for UTC, and whoever reads that must not take it for their own.
    let mark = if zone.is_unknown() { " UTC" } else { "" };
    format!("{}{mark}", time.to_zoned(zone.clone()).strftime(format))
}

/// What a large file means for the store.
pub fn large(file: &LargeFile) -> String {
    let (path, size) = (escape_view(&file.path), size(file.size));
    format!("{path} has {size}, and every changed version of it takes room; `.pitonignore` leaves it out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_words_for_a_day() {
        let now = Now::utc(Timestamp(1_794_772_991_042));
        for (ms, words) in [
            (0, "just now"),
            (-1_000, "just now"),
            (12_000, "12 s ago"),
            (120_000, "2 min ago"),
            (7_300_000, "2 h ago"),
        ] {
            assert_eq!(age(Timestamp(now.at.0 - ms), &now), words);
        }
        assert!(age(Timestamp(now.at.0 - 90_000_000), &now).starts_with("2026-11-1"));
        assert!(age(Timestamp(now.at.0 + 90_000_000), &now).starts_with("2026-11-1"));
    }

    #[test]
    fn numbers_and_sizes_are_readable() {
        assert_eq!(plural(1, "file"), "1 file");
        assert_eq!(plural(1_234_567, "file"), "1,234,567 files");
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(10 << 30), "10 GiB");
    }

    #[test]
    fn counts_say_only_what_is_true() {
        let counts = Counts { created: 3, modified: 0, deleted: 2 };
        assert_eq!(changes(&counts), "3 created, 2 deleted");
        assert_eq!(signs(&counts).plain(), "+3 -2");
        assert_eq!(changes(&Counts::default()), "no changes");
    }
}
