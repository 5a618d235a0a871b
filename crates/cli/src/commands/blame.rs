//! `piton blame`: who wrote each line of a file.

use std::ffi::OsString;
use std::io::{self, Write};

use piton_engine::view::Blame;
use piton_engine::{BlameOptions, IntoTarget};
use piton_wording::blame::{Margin, margin};
use piton_wording::escape::{escape_line, escape_view};
use piton_wording::owners::Names;
use piton_wording::{Failure, Style, Text};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::paths::{from_base64, resolve};
use crate::progress::with_progress;
use crate::table::{Cell, ShownText, line, widest};

/// Show who wrote each line of a file: the turn and step of an agent, its prompt, or you
///
/// Each line begins with who wrote it: `t3.1`, a step that you can rewind to; `you`; `before piton`, if it was
/// already there; `unsure`, with everybody who may have written it; or `now`, if no checkpoint has it yet. Then how
/// long ago, the tool, and the prompt behind it.
///
/// What a rewind, undo or redo brought back keeps its author, and moved files are followed. In a file or pipe nothing
/// is shortened, and contents are written as they are.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, required_unless_present = "path_b64")]
    file: Option<OsString>,
    /// The file, for a name that cannot be typed: the `path_b64` of --json
    #[arg(long = "path-b64", value_name = "B64", conflicts_with = "file")]
    path_b64: Option<String>,
    /// As it was at this checkpoint: an id or its beginning, a name, a turn such as t3, an age such as 10m [default: now]
    #[arg(long, value_name = "TARGET")]
    at: Option<String>,
    /// Only these lines: 10,20, or 10,+5, or 10, (line 10 to the end)
    #[arg(short = 'L', long = "lines", value_name = "START,END", value_parser = range)]
    lines: Option<(u32, u32)>,
}

pub const EXAMPLES: [Example; 4] = [
    Example::Call("blame src/auth.ts", ""),
    Example::Call("blame src/auth.ts -L 10,20", ""),
    Example::Call("blame src/auth.ts --at t3", "as it was before turn 3"),
    Example::Shell(r#"piton blame src/auth.ts --json | jq -r '.origins[] | select(.kind == "step") | .prompt'"#, ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let workspace = surroundings.open(console)?;
    let path = match (&args.file, &args.path_b64) {
        (Some(file), _) => resolve(workspace.path(), &surroundings.here, file)?,
        (None, b64) => from_base64(b64.as_deref().unwrap_or_default())?,
    };
    let options = BlameOptions { at: args.at.as_ref().map(IntoTarget::into_target).transpose()?, lines: args.lines };
    let progress = workspace.progress();
    let blame = with_progress(console, &progress, "Reading", || workspace.blame(&path, &options))?;
    let names = if console.is_json() { Names::default() } else { Names::of(&workspace.sessions()?.sessions) };
    console.print(&blame, |out, look| write(out, look, &blame, &names))?;
    if blame.lines.is_empty() {
        console.advise(format!("`{}` is empty", escape_view(&blame.path)));
    }
    Ok(())
}

/// `10,20`, `10,+5`, `10,`, `,20`, `10`.
fn range(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a line number"));
    let (start, end) = text.split_once(',').unwrap_or((text, "+1"));
    let first = if start.is_empty() && !text.is_empty() { 1 } else { number(start)? };
    let last = match end.strip_prefix('+') {
        _ if end.is_empty() => u32::MAX,
        Some(count) => first.saturating_add(number(count)?).saturating_sub(1),
        None => number(end)?,
    };
    if first == 0 || last < first {
        return Err("lines count from 1, and the first comes before the last".to_owned());
    }
    Ok((first, last))
}

/// Narrower than this, there is no room for prompts.
const ROOM_FOR_PROMPTS: usize = 100;
/// However wide the terminal is, the lines themselves are what it is about.
const LONGEST_ABOUT: usize = 32;
/// A path or a line needs so much at least.
const SHORTEST_TEXT: usize = 16;

fn write(out: &mut dyn Write, look: &Look, blame: &Blame, names: &Names) -> io::Result<()> {
    let with_prompts = look.width >= ROOM_FOR_PROMPTS;
    let margins: Vec<Margin> =
        blame.origins.iter().map(|origin| margin(origin, names, &look.now, with_prompts)).collect();
    let whos = widest(margins.iter().map(|margin| margin.who.width()));
    let ages = widest(margins.iter().map(|margin| margin.age.len()));
    let abouts = widest(margins.iter().map(|margin| margin.about.width())).min(LONGEST_ABOUT);
    let numbers = blame.lines.last().map_or(0, |last| last.number.to_string().len());
    let before = whos + ages + abouts + numbers + 10;
    let mut told = None;
    for shown in &blame.lines {
        // On a terminal a block says once whose it is; a program that reads lines wants it on each.
        let is_told = look.terminal && told == Some(shown.origin);
        told = Some(shown.origin);
        let nothing = Cell::default;
        let cells = match margins.get(shown.origin).filter(|_| !is_told) {
            Some(margin) => [
                (margin.who.cut(look, whos), whos + 2),
                (Text::new(Style::Dim, margin.age.clone()).cut(look, ages), ages + 2),
                (margin.about.cut(look, abouts), abouts + 1),
            ],
            None => [(nothing(), whos + 2), (nothing(), ages + 2), (nothing(), abouts + 1)],
        };
        let [who, age, about] = cells;
        let bar = Text::new(Style::Dim, format!("│ {:>numbers$} │", shown.number)).cut(look, usize::MAX);
        let width = bar.width;
        write!(out, "{}", line(&[who, age, about, (bar, width)]))?;
        if look.terminal {
            let room = look.width.saturating_sub(before).max(SHORTEST_TEXT);
            let text = Text::new(Style::Plain, shown.text.clone()).cut(look, room);
            writeln!(out, "{}{}", if text.width > 0 { " " } else { "" }, text.painted)?;
        } else if shown.text.is_empty() {
            writeln!(out)?;
        } else if look.is_raw() {
            writeln!(out, " {}", shown.text)?;
        } else {
            writeln!(out, " {}", escape_line(&shown.text))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use piton_engine::model::ownership::{Candidate, Owner};
    use piton_engine::model::{Evidence, SessionId, StepRef, Timestamp};
    use piton_engine::view::{BlameLine, LineOrigin, OriginKind, PathView};

    use super::*;

    fn origin(kind: OriginKind, owner: Option<Owner>) -> LineOrigin {
        let (session, turn) = match owner.as_ref().and_then(Owner::turn) {
            Some((session, turn)) => (Some(session.clone()), Some(turn)),
            None => (None, None),
        };
        LineOrigin {
            kind,
            owner,
            prompt: turn.map(|_| "add a login page and all that belongs to it".to_owned()),
            session,
            turn,
            step: None,
            tool: (kind == OriginKind::Step).then(|| "Edit".to_owned()),
            summary: (kind == OriginKind::Operation).then(|| "undo".to_owned()),
            checkpoint: None,
            at: Some(Timestamp(0)),
            moved_from: None,
        }
    }

    /// Checks what a terminal of a width shows of lines of every origin.
    fn check(width: usize, expected: &str) {
        let id = SessionId::of("a", "1");
        let step = |step| StepRef { session: id.clone(), turn: 3, step };
        let unsure = |candidates| Some(Owner::Unsure { candidates });
        let one_turn = vec![Candidate::Step(step(1)), Candidate::Step(step(2))];
        let origins = vec![
            origin(OriginKind::Step, Some(Owner::Step { step: step(1), evidence: Evidence::Named })),
            origin(OriginKind::BeforePiton, None),
            origin(OriginKind::Unsure, unsure(one_turn)),
            origin(OriginKind::Unsure, unsure(vec![Candidate::Step(step(1)), Candidate::You])),
            origin(OriginKind::Unsure, unsure(Vec::new())),
            origin(OriginKind::Operation, None),
            LineOrigin { at: None, ..origin(OriginKind::Now, None) },
        ];
        let line = |(number, origin)| BlameLine {
            number,
            text: if number == 10 {
                String::new()
            } else {
                "\tx \x1b[2J a line that is long enough to be cut".to_owned()
            },
            origin,
        };
        let lines = (9..).zip([0, 0, 1, 2, 3, 4, 5, 6]).map(line).collect();
        let path = PathView { path: "x".into(), path_b64: None };
        let blame = Blame { path, at: None, lines, origins };
        let look = Look { now: piton_wording::words::Now::utc(Timestamp(120_000)), ..Look::plain(width) };
        let mut out = Vec::new();
        write(&mut out, &look, &blame, &Names::default()).unwrap();
        let session = id.short();
        let text = String::from_utf8(out).unwrap().replace(session, "kkkkkkkk");
        assert_eq!(format!("\n{text}"), expected);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }

    #[test]
    fn a_block_says_once_whose_it_is_and_lines_are_cut_to_the_terminal() {
        check(
            100,
            "
kkkkkkkk:t3.1  2m  Edit  add a login page and all … │  9 │     x \\x1b[2J a line that is long enough…
                                                    │ 10 │
before piton                                        │ 11 │     x \\x1b[2J a line that is long enough…
kkkkkkkk:t3    2m  kkkkkkkk:t3.1 or kkkkkkkk:t3.2   │ 12 │     x \\x1b[2J a line that is long enough…
unsure         2m  kkkkkkkk:t3.1 or you             │ 13 │     x \\x1b[2J a line that is long enough…
unsure         2m  unknown                          │ 14 │     x \\x1b[2J a line that is long enough…
undo           2m                                   │ 15 │     x \\x1b[2J a line that is long enough…
now                not captured yet                 │ 16 │     x \\x1b[2J a line that is long enough…
",
        );
    }

    #[test]
    fn a_range_of_lines_reads_as_gits_does() {
        for (text, expected) in [
            ("10,20", Some((10, 20))),
            ("10,+5", Some((10, 14))),
            ("10,", Some((10, u32::MAX))),
            (",3", Some((1, 3))),
            ("7", Some((7, 7))),
            ("1,+4294967295", Some((1, u32::MAX - 1))),
            ("0,3", None),
            ("5,4", None),
            ("5,+0", None),
            ("a,b", None),
            ("", None),
        ] {
            assert_eq!(range(text).ok(), expected, "{text}");
        }
    }
}
