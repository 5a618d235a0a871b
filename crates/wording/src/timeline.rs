//! The timeline as rows: what each entry of it says, on every surface.
//!
//! A surface decides on columns, colours and how long ago is said; which rows there are, their marks, words, counts and what is
//! beneath them is decided here.

use piton_engine::model::ownership::Owner;
use piton_engine::model::short::one_line;
use piton_engine::model::{ChangeKind, Counts, OperationVerb, SessionId, Timestamp};
use piton_engine::view::{
    ChangedFile, CheckpointView, LogEntry, OperationStatus, OperationView, SessionView, StepView, Timeline, TurnView,
    Unknown,
};

use crate::escape::escape_view;
use crate::owners::Names;
use crate::{Style, Text, Titles, owners, turns, words};

/// What is shown beneath each turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// Its tool calls.
    pub steps: bool,
    /// Every changed path, with its owner.
    pub files: bool,
}

/// What the timeline itself does not say.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// How sessions are called.
    pub names: Names,
    /// Every session.
    pub sessions: Vec<SessionView>,
    /// What operations are called.
    pub titles: Titles,
    /// The line of the folder that is captured now.
    pub line: u32,
}

/// One line, and what is beneath it.
#[derive(Clone, Debug)]
pub struct Row {
    /// One sign for what kind of entry it is; empty for a turn.
    pub marker: Text,
    /// What to type to mean that moment.
    pub target: String,
    /// When it was.
    pub at: Timestamp,
    /// What it was.
    pub text: Text,
    /// After the text: as many of these as there is room for. See [`few`].
    pub paths: Vec<Text>,
    /// What it changed.
    pub counts: Option<Counts>,
    /// Not all that it changed is known.
    pub is_unknown: bool,
    /// Whose it is; empty where the row before says so.
    pub session: String,
    /// How it stands, where that is worth a word.
    pub remark: Text,
    /// What else there is to say of it.
    pub below: Vec<Below>,
}

impl Row {
    fn at(at: Timestamp) -> Self {
        Self {
            marker: Text::default(),
            target: String::new(),
            at,
            text: Text::default(),
            paths: Vec::new(),
            counts: None,
            is_unknown: false,
            session: String::new(),
            remark: Text::default(),
            below: Vec::new(),
        }
    }
}

/// A line beneath another.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// Whose, or what to type.
    pub label: Text,
    pub text: Text,
    /// In the text's place: as many of these as there is room for. See [`few`].
    pub paths: Vec<Text>,
    /// Only a text with counts after it is cut: paths and reasons are shown whole.
    pub counts: Option<Counts>,
    /// Whether there may be more than is counted.
    pub is_unknown: bool,
    /// How that is known, or how it ended.
    pub remark: Text,
}

/// The rows of a timeline, in its order.
pub fn rows(timeline: &Timeline, around: &Around, detail: Detail) -> Vec<Row> {
    let line = around.line;
    let several = timeline.sessions.len() > 1;
    let mut told: Option<SessionId> = None;
    let mut rows = Vec::new();
    for entry in &timeline.entries {
        let row = match entry {
            LogEntry::Turn(turn) => {
                let mut row = of_turn(turn, around, detail);
                // Once is enough where there is only one.
                if several || told.as_ref() != Some(&turn.session) {
                    row.session = session_label(&turn.session, around);
                    told = Some(turn.session.clone());
                }
                row
            }
            LogEntry::Checkpoint { checkpoint, files } => of_checkpoint(checkpoint, files, line, around, detail),
            LogEntry::Yours { checkpoint, files } => {
                let remark = other_folder(checkpoint, line);
                let text = Text::new(Style::Bold, "you");
                let (text, paths, below) = if files.is_empty() {
                    let all = words::plural(sum(&checkpoint.changes), "file");
                    (text.and(Style::Plain, format!("  {all}")), Vec::new(), Vec::new())
                } else if detail.files {
                    let below = files.iter().map(|file| file_line("you", Style::Bold, file, String::new()));
                    (text, Vec::new(), below.collect())
                } else {
                    (text.and(Style::Plain, "  "), files.iter().map(file_text).collect(), Vec::new())
                };
                Row {
                    target: checkpoint.id.short().to_owned(),
                    text,
                    paths,
                    counts: Some(if files.is_empty() { checkpoint.changes } else { counts(files) }),
                    remark,
                    below,
                    ..Row::at(checkpoint.created_at)
                }
            }
            LogEntry::Operation(operation) => of_operation(operation, around),
            LogEntry::Gap { session, gap } => Row {
                marker: Text::new(Style::Warn, "!"),
                text: Text::new(Style::Warn, "gap").and(Style::Plain, format!("  {}", owners::gap(gap, &[]))),
                session: session_label(session, around),
                ..Row::at(gap.at)
            },
        };
        rows.push(row);
    }
    rows
}

fn session_label(id: &SessionId, around: &Around) -> String {
    let agent = around.sessions.iter().find(|session| session.id == *id).map(|session| session.agent.as_str());
    format!("{} {}", agent.unwrap_or("session"), around.names.session(id))
}

fn of_turn(turn: &TurnView, around: &Around, detail: Detail) -> Row {
    let session = around.sessions.iter().find(|session| session.id == turn.session);
    let is_running = turn.ending.is_none() && session.is_some_and(|s| s.live && s.turns == turn.number);
    let remark = turns::remark(turn, is_running);
    Row {
        target: around.names.target(&turn.session, turn.number, None),
        text: turns::prompt(turn.prompt.as_deref()),
        counts: Some(turn.changes),
        is_unknown: turn.unknown.is_some(),
        remark,
        below: beneath_turn(turn, is_running, around, detail),
        ..Row::at(turn.at)
    }
}

fn beneath_turn(turn: &TurnView, is_running: bool, around: &Around, detail: Detail) -> Vec<Below> {
    let names = &around.names;
    let owned_line = |file: &ChangedFile, style| {
        let evidence = names.evidence(&file.owner, &turn.steps);
        file_line(&names.who(&file.owner), style, file, evidence)
    };
    let mut below = Vec::new();
    if turn.name.is_some() || turn.annotation.is_some() {
        let name = Text::new(Style::Bold, turn.name.as_deref().unwrap_or_default());
        let note = turn.annotation.as_deref().map(|note| one_line(note, usize::MAX)).unwrap_or_default();
        let space = if turn.name.is_some() && !note.is_empty() { "  " } else { "" };
        let text = name.and(Style::Plain, format!("{space}{note}"));
        below.push(Below { label: Text::new(Style::Bold, "note"), text, ..Below::default() });
    }
    if detail.steps {
        for step in &turn.steps {
            below.push(of_step(turn, step, is_running, names));
            if detail.files {
                let inner = |file: &ChangedFile| Below { label: Text::default(), ..owned_line(file, Style::Id) };
                below.extend(step.files.iter().map(inner));
            }
        }
    }
    if detail.files {
        let is_told = |file: &&ChangedFile| !detail.steps || !matches!(file.owner, Owner::Step { .. });
        below.extend(turn.files.iter().filter(is_told).map(|file| owned_line(file, style_of(&file.owner))));
    }
    // What one turn alone can have done is that turn's, whichever of its steps it was.
    let unsure: Vec<ChangedFile> = turn.unsure.iter().filter(|file| file.owner.turn().is_none()).cloned().collect();
    let (you, nobody) = (("you", Style::Bold), ("unsure", Style::Warn));
    for ((who, style), unlisted) in [(you, &turn.yours_unlisted), (nobody, &turn.unsure_unlisted)] {
        if !unlisted.is_empty() {
            let all = words::plural(sum(unlisted), "file");
            below.push(Below { label: Text::new(style, who), text: Text::new(Style::Plain, all), ..Below::default() });
        }
    }
    for ((who, style), list) in [(you, &turn.yours), (nobody, &unsure)] {
        if list.is_empty() {
            continue;
        }
        if detail.files {
            below.extend(list.iter().map(|file| owned_line(file, style)));
        } else {
            let paths = list.iter().map(file_text).collect();
            below.push(Below { label: Text::new(style, who), paths, ..Below::default() });
        }
    }
    // A gap says so itself.
    let unknown = turn.unknown.iter().filter(|why| !matches!(why, Unknown::Gap { .. }));
    below.extend(unknown.map(|why| Below {
        label: Text::new(Style::Warn, "not known"),
        text: words::unknown(why, &names.target(&turn.session, turn.number, None)),
        ..Below::default()
    }));
    below.extend(turn.gaps.iter().map(|gap| Below {
        label: Text::new(Style::Warn, "gap"),
        text: Text::new(Style::Plain, owners::gap(gap, &turn.steps)),
        ..Below::default()
    }));
    below
}

fn of_step(turn: &TurnView, step: &StepView, is_running: bool, names: &Names) -> Below {
    let remark = turns::step_remark(step, is_running);
    Below {
        label: Text::new(Style::Id, names.target(&turn.session, turn.number, Some(step.number))),
        text: Text::new(Style::Plain, one_line(&step.summary, usize::MAX)),
        counts: Some(step.changes),
        is_unknown: turn.unknown.is_some(),
        remark,
        ..Below::default()
    }
}

fn of_checkpoint(
    checkpoint: &CheckpointView,
    files: &[ChangedFile],
    line: u32,
    around: &Around,
    detail: Detail,
) -> Row {
    let name = checkpoint.name.as_deref().unwrap_or_default();
    let note = checkpoint.annotation.as_deref().map(|note| one_line(note, usize::MAX)).unwrap_or_default();
    let text = match (name, &note[..], checkpoint.pinned) {
        ("", "", true) => Text::new(Style::Dim, "checkpoint by hand"),
        ("", "", false) => Text::new(Style::Dim, "the first session began"),
        ("", note, _) => Text::new(Style::Plain, note),
        (name, "", _) => Text::new(Style::Bold, name),
        (name, note, _) => Text::new(Style::Bold, name).and(Style::Plain, format!("  {note}")),
    };
    let of_file = |file: &ChangedFile| {
        let evidence = around.names.evidence(&file.owner, &[]);
        file_line(&around.names.who(&file.owner), style_of(&file.owner), file, evidence)
    };
    Row {
        marker: if checkpoint.pinned { Text::new(Style::Bold, "*") } else { Text::default() },
        target: checkpoint.id.short().to_owned(),
        text,
        counts: Some(checkpoint.changes),
        remark: other_folder(checkpoint, line),
        below: if detail.files { files.iter().map(of_file).collect() } else { Vec::new() },
        ..Row::at(checkpoint.created_at)
    }
}

fn of_operation(operation: &OperationView, around: &Around) -> Row {
    let marker = match operation.kind {
        OperationVerb::Redo => "↻",
        OperationVerb::Undo => "↶",
        _ => "↺",
    };
    // Whether it was taken back since is known there.
    let operation = around.titles.get(&operation.id).unwrap_or(operation);
    let remark = match operation.state {
        OperationStatus::Done if operation.taken_back => (Style::Dim, "(taken back)"),
        OperationStatus::Done => (Style::Dim, ""),
        OperationStatus::Pending => (Style::Warn, "(not ended)"),
        OperationStatus::RolledBack => (Style::Warn, "(rolled back)"),
        OperationStatus::GivenUp => (Style::Warn, "(given up)"),
    };
    let (text, remark) = (around.titles.title(operation), Text::new(remark.0, remark.1));
    Row { marker: Text::new(Style::Bold, marker), text, remark, ..Row::at(operation.began_at) }
}

fn other_folder(checkpoint: &CheckpointView, line: u32) -> Text {
    Text::new(Style::Dim, words::of_line(checkpoint.line, line))
}

fn style_of(owner: &Owner) -> Style {
    match owner {
        Owner::Step { .. } | Owner::Operation { .. } => Style::Id,
        Owner::You => Style::Bold,
        Owner::Unsure { .. } => Style::Warn,
    }
}

fn file_line(who: &str, style: Style, file: &ChangedFile, evidence: String) -> Below {
    let remark = if evidence.is_empty() { evidence } else { format!("({evidence})") };
    let remark = Text::new(Style::Dim, remark);
    Below { label: Text::new(style, who), text: file_text(file), remark, ..Below::default() }
}

fn file_text(file: &ChangedFile) -> Text {
    let style = match file.kind {
        ChangeKind::Created => Style::Good,
        ChangeKind::Modified => Style::Warn,
        ChangeKind::Deleted => Style::Bad,
    };
    Text::new(style, format!("{} {}", words::sign(file.kind), escape_view(&file.path)))
}

/// A text with as many paths after it as there is room for, and how many more there are. `width` says how much a text takes.
pub fn few(mut text: Text, list: &[Text], room: usize, width: impl Fn(&Text) -> usize) -> Text {
    for (at, one) in list.iter().enumerate() {
        let is_last = at + 1 == list.len();
        // The words that may have to follow need their room as well.
        let needed = width(&text) + width(one) + if is_last { 0 } else { 14 };
        if at > 0 && needed > room {
            return text.and(Style::Dim, format!("and {} more", words::grouped((list.len() - at) as u64)));
        }
        text = text.and_all(one.clone()).and(Style::Plain, if is_last { "" } else { "  " });
    }
    text
}

fn sum(counts: &Counts) -> u64 {
    counts.created + counts.modified + counts.deleted
}

fn counts(files: &[ChangedFile]) -> Counts {
    let of = |kind| files.iter().filter(|file| file.kind == kind).count() as u64;
    Counts { created: of(ChangeKind::Created), modified: of(ChangeKind::Modified), deleted: of(ChangeKind::Deleted) }
}

/// `+1 ~2`, `=` where nothing changed, `?` where nobody knows.
pub fn signs(counts: Option<Counts>, is_unknown: bool) -> Text {
    if is_unknown && counts.is_some_and(|counts| counts.is_empty()) {
        return Text::new(Style::Warn, "?");
    }
    counts.map(|counts| words::signs(&counts)).unwrap_or_default()
}
