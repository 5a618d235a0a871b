//! `piton search`: find a moment by words.

use std::io::{self, Write};

use piton_engine::view::{Found, SearchResult};
use piton_wording::search::highlighted;
use piton_wording::{Failure, Style, Text, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::table::{ShownText, line, widest};

/// Find moments by words: in prompts, names, notes, tool calls and paths
///
/// Newest first: what was found, what to type to mean that moment, when it was, and the text around the words. A text must
/// have all the words, which may be parts of longer ones: `port` finds `export`, and `登录` finds `修复登录`. Case does not
/// matter, and no character has a meaning of its own.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to look for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// At most N
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

pub const EXAMPLES: [Example; 4] = [
    Example::Call("search login", ""),
    Example::Call("search npm install -n 5", ""),
    Example::Call("search -- --force", "a word that begins with a dash"),
    Example::Shell("piton search src/auth.ts --json | jq -r '.found[].target'", ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    // One more than is shown tells whether there are more. Words in quotes are words.
    let wanted: Vec<String> = args.words.iter().flat_map(|typed| typed.split_whitespace()).map(str::to_owned).collect();
    let mut result = workspace.search(&wanted, args.limit.saturating_add(1))?;
    let is_more = result.found.len() as u64 > args.limit;
    result.found.truncate(usize::try_from(args.limit).unwrap_or(usize::MAX));
    console.print(&result, |out, look| write(out, look, &result))?;
    if result.found.is_empty() {
        console.advise("nothing has all of these words; fewer of them, or parts of them, find more");
    } else if is_more {
        let more = args.limit.saturating_mul(4);
        console.advise(Text::new(Style::Dim, format!("there are more; `-n {more}` shows up to {more}")));
    }
    Ok(())
}

/// A line for each.
fn write(out: &mut dyn Write, look: &Look, result: &SearchResult) -> io::Result<()> {
    let age = |found: &Found| found.at.map(|at| words::age(at, &look.now)).unwrap_or_default();
    let target = |found: &Found| found.target.clone().unwrap_or_default();
    let kinds = widest(result.found.iter().map(|found| found.kind.as_str().len())) + 2;
    let targets = widest(result.found.iter().map(|found| target(found).len())) + 2;
    let ages = widest(result.found.iter().map(|found| age(found).len())) + 2;
    let room = look.width.saturating_sub(kinds + targets + ages).max(24);
    for found in &result.found {
        let text = highlighted(found).cut(look, if look.terminal { room } else { usize::MAX });
        let cells = [
            (Text::new(Style::Plain, found.kind.as_str()).cut(look, kinds), kinds),
            (Text::new(Style::Id, target(found)).cut(look, targets), targets),
            (Text::new(Style::Dim, age(found)).cut(look, ages), ages),
            (text, 0),
        ];
        writeln!(out, "{}", line(&cells))?;
    }
    Ok(())
}
