//! `piton verify`: compare the store with itself, byte by byte.

use std::io::{self, Write};
use std::process::ExitCode;

use piton_engine::model::CheckpointId;
use piton_engine::view::{DamageView, Verification};
use piton_wording::escape::{escape, escape_view};
use piton_wording::status::waiting;
use piton_wording::words::{age, plural, size};
use piton_wording::{Failure, Style, Text, call, text};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::progress::with_progress;

/// Check every byte of the workspace's store
///
/// Compares every object with its id, the database with the packs it was made from, and looks for everything that a
/// checkpoint needs. It also says which events wait to be recorded, which operation has not ended, and whether the store can
/// be written. Exit code 1 when something is wrong or has not ended.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Rebuild the database from the packs if it is wrong
    ///
    /// Damaged objects are forgotten, so that the next capture stores them again if the workspace still has them. The old
    /// database is kept beside the new one.
    #[arg(long)]
    repair: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton verify
  piton verify --repair";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::read(global)?;
    let workspace = surroundings.open_as_it_is()?;
    let check =
        |repair| with_progress(console, &workspace.progress(), "Checking the store", || workspace.verify(repair));
    let mut found = check(args.repair)?;
    if found.repaired {
        // The handle still reads the old database; what counts is how the new one stands.
        let again = surroundings.open_as_it_is()?;
        found = Verification { repaired: true, ..again.verify(false)? };
    }
    console.print(&found, |out, look| write(out, look, &found))?;
    if found.sound && found.unwritable.is_none() {
        if found.pending.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let ends = [call("status"), call("log")];
        let [status, log] = ends;
        console.advise(text![
            Text::new(Style::Id, "hint:"),
            " the next command that opens this folder, such as ",
            status,
            ", ends what was cut off; ",
            log,
            " shows how"
        ]);
        return Ok(ExitCode::from(1));
    }
    if found.sound {
        console.advise(text!["let your user write there; ", call("status"), " says more"]);
        return Ok(ExitCode::from(1));
    }
    let hint = if found.repaired {
        "every other file of every checkpoint is whole; a capture stores again what the workspace still has".into()
    } else {
        text![call("verify").arg("--repair"), " rebuilds the database from the packs"]
    };
    console.advise(text![Text::new(Style::Id, "hint:"), " ", hint]);
    Ok(ExitCode::from(1))
}

fn write(out: &mut dyn Write, look: &Look, found: &Verification) -> io::Result<()> {
    let paint = look.paint;
    let read = format!(
        "{}, {}, {}",
        plural(found.checkpoints, "checkpoint"),
        plural(found.objects, "object"),
        size(found.bytes)
    );
    if found.repaired {
        writeln!(out, "the database was rebuilt from the packs")?;
    }
    if found.sound {
        writeln!(out, "{}: {read} read, all as they were written", paint.good("sound"))?;
        return write_unprotected(out, look, found);
    }
    writeln!(out, "{}: {} in {read}", paint.bad("damaged"), plural(found.damage.len() as u64, "fault"))?;
    let listed = |checkpoints: &[CheckpointId]| {
        let ids: Vec<String> = checkpoints.iter().map(|id| paint.id(id.short()).to_string()).collect();
        format!("{} {}", if ids.len() == 1 { "checkpoint" } else { "checkpoints" }, ids.join(" "))
    };
    for damage in &found.damage {
        let text = match damage {
            DamageView::Pack { pack, from, to } => {
                format!("pack {pack}: bytes {from} to {to} are not what was written")
            }
            DamageView::Row { table, key } => {
                format!("database: row {} of {table} is not what the packs say", escape(key))
            }
            DamageView::Database { message } => format!("database: {}", escape(message)),
            DamageView::Needed { checkpoints, path, .. } => {
                format!("{} cannot be restored by {}", escape_view(path), listed(checkpoints))
            }
            DamageView::GitState { checkpoints, .. } => {
                format!("git's state cannot be restored by {}", listed(checkpoints))
            }
            DamageView::Transcript { session, .. } => {
                format!("the copy of session {}'s transcript is damaged", paint.id(session.short()))
            }
            DamageView::OutsideOfStep { step, path, .. } => {
                let step = format!("{}:t{}.{}", step.session.short(), step.turn, step.step);
                format!("{} cannot be brought back by an undo of {}", escape(path), paint.id(step))
            }
            DamageView::OutsideOfOperation { operation, path } => {
                let operation = paint.id(operation.short());
                format!("{} cannot be brought back by taking back operation {operation}", escape(path))
            }
            DamageView::Operation { operation, path, .. } => {
                let operation = paint.id(operation.short());
                format!("operation {operation} cannot be taken back in {}", escape_view(path))
            }
            DamageView::Gone { pack, from, to, checkpoints, file } => {
                let lost = match checkpoints.is_empty() {
                    true => String::new(),
                    false => format!(", and with them {}", listed(checkpoints)),
                };
                let file = escape(file);
                format!("pack {pack}: bytes {from} to {to} are gone{lost}; delete {file} when you have seen this")
            }
            DamageView::PackMissing { pack } => format!("pack {pack} is gone"),
            DamageView::RecordsMissing { from, to } => format!("records {from} to {to} of the timeline are gone"),
            DamageView::RecordTwice { seq } => {
                format!("two records of the timeline have number {seq}; both are kept")
            }
            DamageView::Aside { file, checkpoints } => {
                let lost = match checkpoints.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", listed(checkpoints)),
                };
                let file = escape(file);
                format!(
                    "captures{lost} that a power cut left incomplete are kept in {file}; delete it when you have seen this"
                )
            }
        };
        writeln!(out, "  {} {text}", paint.bad("!"))?;
    }
    write_unprotected(out, look, found)
}

/// What the store has not taken: it may be sound and lack what happened last.
fn write_unprotected(out: &mut dyn Write, look: &Look, found: &Verification) -> io::Result<()> {
    let alarm = look.paint.alarm("not protected:");
    for operation in &found.pending {
        let (kind, id) = (operation.kind.as_str(), look.paint.id(operation.id.short()));
        let warning = look.paint.warn("warning:");
        let began = age(operation.began_at, &look.now);
        writeln!(
            out,
            "{warning} {kind} {id} of {began} has not ended: it runs, or it was cut off and files are half changed"
        )?;
    }
    if let Some(last) = found.waiting.last() {
        writeln!(out, "{alarm} {}", waiting(&found.waiting, age(last.at, &look.now)))?;
    }
    match &found.unwritable {
        Some(reason) => writeln!(out, "{alarm} nothing can be captured: {}", escape(reason)),
        None => Ok(()),
    }
}
