//! A session as one file: written beside its place, and put there when it is whole.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use piton_engine::model::When;
use piton_engine::view::{PathView, PrivatePaths, SessionExported};
use piton_engine::{ArchiveError, ExportSessionError, TargetError, Workspace};
use piton_wording::escape::{escape, escape_path, escape_view};
use piton_wording::{Code, Failure, call, flag, text, without, words};

use super::Args;
use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::files;

/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 20;

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let Some(wanted) = args.session.as_deref().or(args.target.as_deref()) else {
        return Err(
            Failure::user(Code::Arguments, "an export needs a session").hint(text![call("sessions"), " lists them"])
        );
    };
    let is_stream = args.output.as_deref() == Some(Path::new("-"));
    if is_stream && console.is_json() {
        return Err(Failure::user(Code::ArgumentsClash, "the archive and the JSON document cannot both go to stdout")
            .hint(text!["leave out ", without("--json"), ", or name a file: ", flag("-o").asking("FILE")]));
    }
    if is_stream && console.look.terminal {
        return Err(Failure::user(Code::CannotWrite, "a terminal cannot show an archive").hint(text![
            "name a file with ",
            flag("-o").asking("FILE"),
            ", or use a pipe"
        ]));
    }
    let surroundings = Surroundings::read(global)?;
    let workspace = surroundings.open(console)?;
    let session = match workspace.session_meant(Some(wanted), wanted) {
        Ok(row) => row.session,
        Err(TargetError::UnknownSession { .. }) if matches!(wanted.parse(), Ok(When::Turn { .. })) => {
            return Err(Failure::user(
                Code::UnknownSession,
                format!("`{wanted}` is not a session, and an archive is of a whole one"),
            )
            .hint(text![call("sessions"), " lists them"])
            .hint(text![
                flag("--git").asking("BRANCH"),
                " makes commits of checkpoints under that name, such as ",
                flag("--git").arg("piton/export")
            ]));
        }
        Err(error) => return Err(error.into()),
    };
    let PrivatePaths { ignored, filtered, unwatched, copies } = workspace.private_in_session(session.id.as_str())?;
    say_private(console, &ignored, "that git ignores or ignored, which may hold secrets");
    say_private(console, &filtered, "as it is here, which a filter of git's changes (git-crypt, LFS)");
    say_private(console, &unwatched, "as it is here, which git is told not to look at");
    let paths: Vec<PathView> = copies.iter().map(|copy| copy.path.clone()).collect();
    say_private(console, &paths, "with what one of those held at some time, or an edited version of it");
    if is_stream {
        let mut out = BufWriter::with_capacity(GATHERED, io::stdout().lock());
        workspace.export_session(session.id.as_str(), &mut out)?;
        return out.flush().map_err(Failure::output);
    }
    let place = match &args.output {
        Some(file) => exact(&surroundings.here.join(file))?,
        None => outside(&surroundings).join(format!("session-{}.piton", session.id.short())),
    };
    let exported = write_file(&workspace, session.id.as_str(), &place, args.force)?;
    let exported = SessionExported { ignored, filtered, unwatched, copies, ..exported };
    console.print_done(&exported, |out, look| write(out, look, &exported, &place))?;
    if !console.is_json() {
        console.say_with(|out, look| write_remarks(out, look, &exported, place.starts_with(workspace.path())));
    }
    Ok(())
}

/// Names what whoever gets the archive could read, before there is one. JSON has it in the document.
fn say_private(console: &mut Console, paths: &[PathView], which: &str) {
    if paths.is_empty() || console.is_json() {
        return;
    }
    console.say_with(|out, look| {
        let count = words::plural(paths.len() as u64, "file");
        writeln!(out, "{} {count} in it {which}:", look.paint.warn("note:"))?;
        let shown = look.lines(files::ON_A_TERMINAL).min(paths.len());
        paths[..shown].iter().try_for_each(|path| writeln!(out, "  {}", escape_view(path)))?;
        files::write_rest(out, look, "  ", paths.len() - shown)
    });
}

/// Where an archive goes that has no place: here, or in the first folder around it that is in no workspace, where no
/// checkpoint captures it.
fn outside(surroundings: &Surroundings) -> PathBuf {
    let here = surroundings.here.canonicalize().unwrap_or_else(|_| surroundings.here.clone());
    let workspaces = surroundings.engine.workspaces();
    let is_outside = |folder: &&Path| !workspaces.iter().any(|workspace| folder.starts_with(workspace));
    let outside = here.ancestors().find(is_outside).map(Path::to_owned);
    outside.unwrap_or(here)
}

/// The same place without `..` and links on the way, so that it can be seen whether it lies in the workspace.
fn exact(place: &Path) -> Result<PathBuf, Failure> {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(Failure::user(Code::PathTaken, format!("{} is a folder", escape_path(place)))
            .hint("name the file to write"));
    };
    let folder = folder.canonicalize();
    let folder =
        folder.map_err(|error| Failure::user(Code::CannotWrite, format!("{}: {error}", escape_path(place))))?;
    Ok(folder.join(name))
}

fn write_file(workspace: &Workspace, session: &str, place: &Path, force: bool) -> Result<SessionExported, Failure> {
    let refused = |error: io::Error| {
        Failure::user(Code::CannotWrite, format!("{}: {error}", escape_path(place)))
            .hint(text![flag("-o").asking("FILE"), " writes it elsewhere"])
    };
    let taken = || Failure::user(Code::PathTaken, format!("{} is there already", escape_path(place)));
    let taken =
        || taken().hint(text![flag("-o").asking("FILE"), " takes another name, ", flag("--force"), " replaces it"]);
    if place.is_dir() {
        return Err(Failure::user(Code::PathTaken, format!("{} is a folder", escape_path(place)))
            .hint("name the file to write"));
    }
    // What a link leads to, a device or a pipe is nothing that was meant to be replaced, and a link to nothing is
    // something too.
    if is_other_than_a_file(place).map_err(refused)? {
        return Err(Failure::user(
            Code::PathTaken,
            format!("{} is not a plain file, so it is not replaced", escape_path(place)),
        )
        .hint("name another file, or `-o -` to write to stdout"));
    }
    if !force && place.exists() {
        return Err(taken());
    }
    let folder = place.parent().map_or_else(PathBuf::new, Path::to_owned);
    // For its user alone, as the store is.
    let mut file = tempfile::Builder::new().prefix(".piton-").tempfile_in(&folder).map_err(refused)?;
    let mut out = BufWriter::with_capacity(GATHERED, file.as_file_mut());
    let mut exported = workspace.export_session(session, &mut out).map_err(|error| match error {
        ExportSessionError::Archive(ArchiveError::Write(error)) => refused(error),
        other => other.into(),
    })?;
    out.flush().map_err(refused)?;
    drop(out);
    file.as_file().sync_all().map_err(refused)?;
    let put = if force { file.persist(place) } else { file.persist_noclobber(place) };
    match put {
        Ok(_) => {}
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Err(taken()),
        Err(error) => return Err(refused(error.error)),
    }
    exported.file = Some(place.to_owned());
    Ok(exported)
}

#[expect(clippy::disallowed_methods, reason = "the archive's place is the user's choice, wherever it is")]
fn is_other_than_a_file(place: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(place) {
        Ok(found) => Ok(!found.is_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write(out: &mut dyn Write, look: &Look, exported: &SessionExported, place: &Path) -> io::Result<()> {
    writeln!(
        out,
        "{}: session {} of {}, {}, {}, {}",
        escape_path(place),
        look.paint.id(exported.session.short()),
        escape(&exported.agent),
        words::plural(exported.turns, "turn"),
        words::plural(exported.checkpoints, "checkpoint"),
        words::size(exported.size),
    )
}

fn write_remarks(out: &mut dyn Write, look: &Look, exported: &SessionExported, is_inside: bool) -> io::Result<()> {
    let note = look.paint.warn("note:");
    if let Some(why) = &exported.transcript_missing {
        writeln!(out, "{note} without the transcript: {}", escape(why))?;
    }
    if exported.sessions.len() > 1 {
        let parents: Vec<_> = exported.sessions[1..].iter().map(|id| id.short().to_owned()).collect();
        writeln!(out, "with the turns that it shares with {}", parents.join(", "))?;
    }
    if is_inside {
        writeln!(out, "{note} it lies in the workspace, so the next checkpoint captures it too")?;
    }
    Ok(())
}
