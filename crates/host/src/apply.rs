//! Applies a plan's steps to the workspace: stage, swap, check, clear; and rolls them back.
//!
//! Called only by the engine's operations and their recovery. Never decides *what* to change: if a step looks wrong
//! here, the bug is in `model::plan`. Every path is resolved anew beneath the root's handle and never through a
//! symlink, so a folder that was replaced by a link between plan and apply ends the operation and does no harm.
//!
//! Step `n` of operation `op` owns the name `.piton-<op>-<n>` next to its path. Before the swap that name holds the new
//! content, after it the old one. Nothing is ever written into an existing inode.

mod bits;
mod clear;
mod entry;
mod made_root;
mod moving;
mod sync;

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use piton_model::{Entry, FolderMode, ObjectId, OperationId, Step, Tree, WorkspacePath};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

pub use self::bits::{Reopened, close_again, mode_of, way_to_readable};
use self::bits::{open_folder, set_mode};
pub use self::entry::Removal;
pub use self::entry::is_kept_open;
use self::entry::{Bits, MakeError, make, open_old};
pub use self::made_root::{MadeRoot, make_root};
pub(crate) use self::moving::move_out;
use self::moving::{exchange, move_in, settle};
use crate::fail::point;
use crate::parallel::in_parallel;
use crate::root::Root;
use crate::rules::{join, parent_of};

/// Prefix of staged files' names.
pub const STAGED: &str = ".piton-";

/// The operation that a name belongs to, if it looks like a staged file's.
pub fn staged_by(name: &[u8]) -> Option<OperationId> {
    staged_step(name).map(|(operation, _)| operation)
}

/// Like [`staged_by`], with the step's number.
pub fn staged_step(name: &[u8]) -> Option<(OperationId, usize)> {
    let rest = std::str::from_utf8(name.strip_prefix(STAGED.as_bytes())?).ok()?;
    let (operation, number) = rest.split_once('-')?;
    let number = number.strip_suffix("o").unwrap_or(number);
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    Some((operation.parse().ok().filter(|_| digits)?, number.parse().unwrap_or(usize::MAX)))
}

/// Source of staged content. What it writes is verified against its id.
pub trait Content: Sync {
    type Error: Send;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, Self::Error>;

    /// Writes a file's bytes; the inner error is the writer's.
    fn write_blob(&self, id: &ObjectId, to: &mut dyn Write) -> Result<io::Result<()>, Self::Error>;
}

#[derive(Debug, thiserror::Error)]
pub enum ApplyError<E> {
    /// The system refused.
    #[error("{path:?}: {source}")]
    Path { path: WorkspacePath, source: io::Error },
    /// Something is where nothing was when the plan was made, or the other way round.
    #[error("{path:?} is not as it was when the plan was made")]
    Stale { path: WorkspacePath },
    /// A staged file does not read back as what was written.
    #[error("{path:?} does not read back as it was written")]
    ReadBack { path: WorkspacePath },
    /// The content could not be read from the store.
    #[error(transparent)]
    Content(E),
}

/// One operation's steps on one root.
pub struct Applier<'a> {
    pub root: &'a Root,
    /// Part of the staged files' names.
    pub operation: &'a OperationId,
    pub steps: &'a [Step],
    /// Folders whose bits change or must be opened.
    pub folders: &'a [FolderMode],
}

/// Which steps of an operation have been swapped.
#[derive(Debug, Default)]
pub struct Swapped(Mutex<Vec<usize>>);

impl Swapped {
    fn note(&self, number: usize) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push(number);
    }

    /// In the order in which they were swapped.
    fn numbers(&self) -> Vec<usize> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

/// The paths that the system did not let an operation change.
#[derive(Debug, Default)]
pub struct Refusals {
    /// Whether to continue after a refusal, so that all are found before everything is put back.
    finds_all: bool,
    paths: Mutex<Vec<WorkspacePath>>,
}

impl Refusals {
    pub fn new(finds_all: bool) -> Self {
        Self { finds_all, ..Self::default() }
    }

    /// Records an error if it is the system's refusal to change a path rather than a lack of space or a disk fault.
    pub fn note<E>(&self, error: &ApplyError<E>) {
        let ApplyError::Path { path, source } = error else { return };
        let is_refusal = matches!(
            Errno::from_io_error(source),
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::XDEV | Errno::TXTBSY)
        );
        let mut paths = self.paths.lock().unwrap_or_else(|e| e.into_inner());
        if is_refusal && !paths.contains(path) {
            paths.push(path.clone());
        }
    }

    /// Each path once.
    pub fn paths(&self) -> Vec<WorkspacePath> {
        self.paths.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// The outer error ends the work at once, the inner one after the remaining steps were tried.
    fn gather<T, E>(&self, done: Result<T, ApplyError<E>>) -> Result<Result<T, ApplyError<E>>, ApplyError<E>> {
        let Err(error) = done else { return Ok(done) };
        let before = self.paths().len();
        self.note(&error);
        if self.finds_all && self.paths().len() > before { Ok(Err(error)) } else { Err(error) }
    }
}

impl<'a> Applier<'a> {
    /// The path of a step's own name, next to its path.
    pub fn staged_path(&self, step: usize) -> Vec<u8> {
        join(parent_of(self.steps[step].path.as_bytes()), &self.staged_name(step))
    }

    fn staged_name(&self, step: usize) -> Vec<u8> {
        format!("{STAGED}{}-{step}", self.operation).into_bytes()
    }

    /// The name for the old content, used for an instant where a filesystem cannot exchange two names.
    fn aside_name(&self, step: usize) -> Vec<u8> {
        format!("{STAGED}{}-{step}o", self.operation).into_bytes()
    }

    /// Gives folders the bits they need while their entries are swapped.
    pub fn open_folders<E>(&self) -> Result<(), ApplyError<E>> {
        self.folders
            .iter()
            .try_for_each(|f| point("apply:open-folder").and_then(|()| open_folder(self.root, f)).map_err(at(&f.path)))
    }

    /// Like [`Applier::open_folders`], for a rollback: opens as many as possible, since one failure must not keep the
    /// others closed.
    pub fn reopen_folders(&self) {
        self.folders.iter().for_each(|f| drop(open_folder(self.root, f)));
    }

    /// Gives folders their final bits, or those from before the operation. Returns the folders that have other bits
    /// nevertheless: a system may silently accept only some of them.
    pub fn close_folders<E>(&self, to_after: bool) -> Result<Vec<WorkspacePath>, ApplyError<E>> {
        let mut others = Vec::new();
        // Inner ones first: a folder that loses its bits may no longer be traversable.
        for folder in self.folders.iter().rev() {
            let mode = if to_after { folder.after } else { folder.before };
            let set = point("apply:close-folder").and_then(|()| set_mode(self.root, &folder.path, mode));
            if set.map_err(at(&folder.path))? != mode {
                others.push(folder.path.clone());
            }
        }
        others.sort();
        Ok(others)
    }

    /// Writes all new content next to its destination and reads it back. No file of the user's has changed yet. Returns
    /// the steps whose permission bits the filesystem did not accept.
    pub fn stage<C: Content>(&self, content: &C, refusals: &Refusals) -> Result<Vec<usize>, ApplyError<C::Error>> {
        let stage = |parents: &mut Parents<'a>, number: usize| {
            let step = &self.steps[number];
            let Some(after) = &step.after else { return Ok(Bits::Set) };
            let error = at(&step.path);
            point("apply:stage").map_err(&error)?;
            let (parent, name) = parents.of(&step.path).map_err(&error)?;
            let like = matches!(step.before, Some(Entry::File { .. })).then(|| open_old(parent, name).ok()).flatten();
            make(parent, &self.staged_name(number), after, like.as_ref(), content).map_err(|e| match e {
                MakeError::Io(source) => ApplyError::Path { path: step.path.clone(), source },
                MakeError::ReadBack => ApplyError::ReadBack { path: step.path.clone() },
                MakeError::Content(error) => ApplyError::Content(error),
            })
        };
        let stage = |parents: &mut Parents<'a>, number: usize| refusals.gather(stage(parents, number));
        let staged = in_parallel(self.steps.len(), || Parents::new(self.root), stage)?;
        let mut not_taken = Vec::new();
        for (number, bits) in staged.into_iter().enumerate() {
            if bits? == Bits::NotTaken {
                not_taken.push(number);
            }
        }
        Ok(not_taken)
    }

    /// Swaps staged content with what is there, several steps at once: none is beneath another. Deletions go first, for
    /// folders in which `readme` and `README` are the same name. Records which steps were swapped even if some fail.
    pub fn swap<E: Send>(&self, swapped: &Swapped, refusals: &Refusals) -> Result<(), ApplyError<E>> {
        let swap = |parents: &mut Parents<'a>, number: usize| {
            let step = &self.steps[number];
            let error = at(&step.path);
            point("apply:swap").map_err(&error)?;
            let (parent, name) = parents.of(&step.path).map_err(&error)?;
            let staged = self.staged_name(number);
            let result = match (&step.before, &step.after) {
                (Some(_), Some(_)) => exchange(parent, &staged, name, &self.aside_name(number)),
                (None, Some(_)) => move_in(parent, &staged, name),
                (Some(_), None) => move_out(parent, name, parent, &staged[..]),
                (None, None) => Ok(()),
            };
            result.map_err(|errno| match errno {
                Errno::EXIST | Errno::NOENT => ApplyError::Stale { path: step.path.clone() },
                errno => ApplyError::Path { path: step.path.clone(), source: errno.into() },
            })?;
            swapped.note(number);
            Ok(())
        };
        let (gone, made): (Vec<usize>, Vec<usize>) =
            (0..self.steps.len()).partition(|number| self.steps[*number].after.is_none());
        for numbers in [gone, made] {
            let swap = |parents: &mut Parents<'a>, at: usize| refusals.gather(swap(parents, numbers[at]));
            in_parallel(numbers.len(), || Parents::new(self.root), swap)?.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }

    /// Swaps back all steps that were swapped, newly created paths first.
    pub fn swap_all_back<E>(&self, swapped: &Swapped) -> Result<(), ApplyError<E>> {
        swapped.numbers().into_iter().rev().try_for_each(|number| self.swap_back(number))
    }

    /// Swaps one step back. Needs no space: it is the same rename.
    pub fn swap_back<E>(&self, number: usize) -> Result<(), ApplyError<E>> {
        let step = &self.steps[number];
        let error = at(&step.path);
        point("apply:swap-back").map_err(&error)?;
        let (parent, name) = self.root.parent(&step.path).map_err(&error)?;
        let (parent, name, staged) = (parent.as_fd(), name.as_bytes(), self.staged_name(number));
        match (&step.before, &step.after) {
            (Some(_), Some(_)) => exchange(parent, &staged, name, &self.aside_name(number)),
            (None, Some(_)) => move_out(parent, name, parent, &staged[..]),
            (Some(_), None) => move_in(parent, &staged, name),
            (None, None) => Ok(()),
        }
        .map_err(io::Error::from)
        .map_err(&error)
    }

    /// Sets the permission bits at a step's path.
    pub fn set_bits<E>(&self, path: &WorkspacePath, mode: u16) -> Result<(), ApplyError<E>> {
        set_mode(self.root, path, mode).map(drop).map_err(at(path))
    }

    /// Fails where an exchange got neither to its end nor back: the operation's end must not be recorded then.
    pub fn check_settled<E>(&self) -> Result<(), ApplyError<E>> {
        for (number, step) in self.steps.iter().enumerate() {
            let Ok((parent, _)) = self.root.parent(&step.path) else { continue };
            if statat(&parent, &self.aside_name(number)[..], AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                let source = io::Error::other("it was being exchanged with what was staged, and that broke off");
                return Err(ApplyError::Path { path: step.path.clone(), source });
            }
        }
        Ok(())
    }

    /// Completes a move or an exchange that a crash interrupted: afterwards it happened whole or not at all.
    pub fn settle<E>(&self, number: usize) -> Result<(), ApplyError<E>> {
        let path = &self.steps[number].path;
        let Ok((parent, name)) = self.root.parent(path) else { return Ok(()) };
        let (aside, staged) = (self.aside_name(number), self.staged_name(number));
        settle(parent.as_fd(), &staged, name.as_bytes(), &aside).map_err(at(path))
    }
}

fn at<E>(path: &WorkspacePath) -> impl Fn(io::Error) -> ApplyError<E> + use<'_, E> {
    |source| ApplyError::Path { path: path.clone(), source }
}

fn known(path: &[u8]) -> WorkspacePath {
    WorkspacePath::new(path).unwrap_or_default()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// Handles on the folders of steps, which come in path order: most share their folder with the previous one.
struct Parents<'r> {
    root: &'r Root,
    last: Option<(WorkspacePath, OwnedFd)>,
    name: Vec<u8>,
}

impl<'r> Parents<'r> {
    fn new(root: &'r Root) -> Self {
        Self { root, last: None, name: Vec::new() }
    }

    fn of(&mut self, path: &WorkspacePath) -> io::Result<(BorrowedFd<'_>, &[u8])> {
        let (parent, name) = path.split().ok_or(io::ErrorKind::InvalidInput)?;
        let fd = match self.last.take() {
            Some((last, fd)) if last == parent => fd,
            _ => self.root.folder(&parent)?,
        };
        self.name = name.as_bytes().to_vec();
        let last = self.last.insert((parent, fd));
        Ok((last.1.as_fd(), &self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_exchange_in_three_that_breaks_off_puts_back_what_was_there_or_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let here = |name: &[u8]| folder.path().join(std::str::from_utf8(name).unwrap());
        let root = Root::open(folder.path()).unwrap();
        let operation = OperationId::from_random([7; 8]);
        let entry = Some(Entry::File { mode: 0o644, size: 3, blob: ObjectId([0; 32]) });
        let steps = [Step { path: WorkspacePath::new("f").unwrap(), before: entry.clone(), after: entry }];
        let applier = Applier { root: &root, operation: &operation, steps: &steps, folders: &[] };
        let (staged, aside) = (applier.staged_name(0), applier.aside_name(0));
        let exchange = || moving::exchange_in_three(root.fd(), &staged, b"f", &aside);
        let read = |name: &[u8]| std::fs::read_to_string(here(name)).ok();

        std::fs::write(here(b"f"), "old").unwrap();
        assert_eq!(exchange(), Err(Errno::NOENT), "nothing is staged");
        assert_eq!((read(b"f").as_deref(), read(&aside)), (Some("old"), None));
        applier.check_settled::<()>().unwrap();

        std::fs::write(here(&staged), "new").unwrap();
        exchange().unwrap();
        assert_eq!((read(b"f").as_deref(), read(&staged).as_deref()), (Some("new"), Some("old")));
        applier.check_settled::<()>().unwrap();

        std::fs::rename(here(&staged), here(&aside)).unwrap();
        assert!(matches!(applier.check_settled::<()>(), Err(ApplyError::Path { path, .. }) if path == steps[0].path));
    }

    /// Enough steps for several threads, and one that cannot be swapped: those that were, whichever they are, are
    /// swapped back.
    #[test]
    fn a_step_that_fails_among_many_leaves_a_note_of_all_that_were_swapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = |number: usize| format!("d{}/f{number}", number / 50);
        let entry = Some(Entry::File { mode: 0o644, size: 3, blob: ObjectId([0; 32]) });
        let goes = |number: usize| number.is_multiple_of(3);
        let step = |number: usize| Step {
            path: WorkspacePath::new(path(number)).unwrap(),
            before: entry.clone(),
            after: entry.clone().filter(|_| !goes(number)),
        };
        let steps: Vec<Step> = (0..400).map(step).collect();
        let root = Root::open(folder.path()).unwrap();
        let operation = OperationId::from_random([7; 8]);
        let applier = Applier { root: &root, operation: &operation, steps: &steps, folders: &[] };
        let here = |number: usize| folder.path().join(path(number));
        let beside = |number: usize| {
            folder.path().join(std::path::Path::new(std::str::from_utf8(&applier.staged_path(number)).unwrap()))
        };
        for number in 0..steps.len() {
            std::fs::create_dir_all(here(number).parent().unwrap()).unwrap();
            std::fs::write(here(number), "old").unwrap();
            if !goes(number) {
                std::fs::write(beside(number), "new").unwrap();
            }
        }
        std::fs::remove_file(here(301)).unwrap();

        let swapped = Swapped::default();
        let refused = applier.swap::<()>(&swapped, &Refusals::default());
        assert!(matches!(refused, Err(ApplyError::Stale { path }) if path == steps[301].path));
        let read = |path: PathBuf| std::fs::read_to_string(path).ok();
        let new = |number: usize| (!goes(number)).then(|| "new".to_owned());
        let old = || Some("old".to_owned());
        let numbers = swapped.numbers();
        for number in (0..steps.len()).filter(|number| *number != 301) {
            let expected = if numbers.contains(&number) { [new(number), old()] } else { [old(), new(number)] };
            assert_eq!([read(here(number)), read(beside(number))], expected, "{number}");
        }
        assert!(!numbers.contains(&301));
        // All deletions come before anything is created.
        let gone = (0..steps.len()).filter(|number| goes(*number)).count();
        assert!(numbers.len() > gone && numbers[..gone].iter().all(|number| goes(*number)));

        applier.swap_all_back::<()>(&swapped).unwrap();
        for number in (0..steps.len()).filter(|number| *number != 301) {
            assert_eq!([read(here(number)), read(beside(number))], [old(), new(number)], "{number}");
        }
    }
}
