//! `piton man`: the manual pages.

use std::path::{Path, PathBuf};

use clap_mangen::Man;
use piton_wording::escape::escape_path;
use piton_wording::{Code, Failure};
use serde::Serialize;

use crate::args;
use crate::console::Console;

/// Write the manual pages
///
/// With DIR, one page for piton and one for each command; without it, piton's page on stdout.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where to write them; created if it does not exist
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  piton man | man -l -
  piton man ~/.local/share/man/man1";

#[derive(Serialize)]
struct Pages {
    pages: Vec<Page>,
}

#[derive(Serialize)]
struct Page {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub fn run(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let mut command = args::in_terminal().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        let text = page_of(command)?;
        let page = Page { name: "piton".into(), file: None, text: Some(String::from_utf8_lossy(&text).into_owned()) };
        return console.print(&Pages { pages: vec![page] }, |out, _| out.write_all(&text));
    };
    make_folder(folder)?;
    let mut pages = Vec::new();
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    for command in std::iter::once(&command).chain(shown) {
        let file = folder.join(Man::new(command.clone()).get_filename());
        write_page(&file, &page_of(command.clone())?).map_err(|error| refused(folder, &error))?;
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        pages.push(Page { name, file: Some(file.to_string_lossy().into_owned()), text: None });
    }
    let made = Pages { pages };
    console.print_done(&made, |out, _| {
        made.pages
            .iter()
            .flat_map(|page| &page.file)
            .try_for_each(|file| writeln!(out, "{}", piton_wording::escape::escape(file)))
    })
}

/// A command's page. Its lists are set in columns, which roff would run together.
fn page_of(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text).map_err(Failure::bug)?;
    let text = String::from_utf8_lossy(&text);
    let (mut page, mut is_set) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with(".SH ") && std::mem::take(&mut is_set) {
            page += ".fi\n";
        }
        page += line;
        page.push('\n');
        if line == EXTRA {
            is_set = true;
            page += ".nf\n";
        }
    }
    Ok(page.into_bytes())
}

/// The section of a page that has the lists.
const EXTRA: &str = ".SH EXTRA";

#[expect(clippy::disallowed_methods, reason = "the pages' folder is the user's choice and no workspace of piton's")]
fn write_page(file: &Path, text: &[u8]) -> std::io::Result<()> {
    std::fs::write(file, text)
}

#[expect(clippy::disallowed_methods, reason = "the pages' folder is the user's choice and no workspace of piton's")]
fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| refused(folder, &error))
}

fn refused(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::user(Code::CannotWrite, format!("the pages cannot be written to {}: {error}", escape_path(folder)))
}
