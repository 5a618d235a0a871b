//! The stable names of everything that can go wrong.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What went wrong, under a name that never changes: scripts and surfaces act on it, people read the message.
        ///
        /// `docs/errors.md` lists them all.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every one of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name, such as `name-taken`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

codes! {
    // What was asked for.
    /// Arguments that are missing, unknown, or mean nothing.
    Arguments = "arguments",
    /// Arguments that exclude each other.
    ArgumentsClash = "arguments-clash",
    /// It is for a terminal, and was typed inside an agent.
    OnlyInTerminal = "only-in-terminal",
    /// Nobody can be asked, and it was not said that nobody has to be.
    NobodyToAsk = "nobody-to-ask",
    /// A person was asked and said no.
    Declined = "declined",
    /// Only the user may do this, and an agent or nobody known wants it done.
    OnlyTheUser = "only-the-user",
    /// The waiting for an agent was stopped.
    WaitStopped = "wait-stopped",
    /// The program that was to be run is not there or cannot be started.
    CannotRun = "cannot-run",

    // Workspaces and their folders.
    /// The folder is no workspace yet.
    NotKnown = "not-known",
    /// There is no such folder.
    NoFolder = "no-folder",
    /// A folder cannot be read.
    FolderUnreadable = "folder-unreadable",
    /// The folder is hardly one project, such as the home folder.
    NotAProject = "not-a-project",
    /// The folder is piton's own.
    OwnFolder = "own-folder",
    /// The folder is git's own.
    GitFolder = "git-folder",
    /// The workspace's folder is gone.
    WorkspaceGone = "workspace-gone",
    /// The workspace's folder is gone, and something else stands in its place.
    Displaced = "displaced",
    /// An empty folder stands where a full one was captured.
    EmptyFolder = "empty-folder",
    /// The checkpoint was captured in another folder that stood at this path.
    OtherFolder = "other-folder",
    /// The folder is left out by the rules of the workspace around it.
    LeftOut = "left-out",
    /// The budget is too small for a store.
    BadBudget = "bad-budget",
    /// The folder is inside a workspace.
    InWorkspace = "in-workspace",
    /// There is no place for piton's store.
    NoHome = "no-home",
    /// The current folder is gone.
    NoCurrentFolder = "no-current-folder",

    // Captures.
    /// The name cannot be one.
    BadName = "bad-name",
    /// Something else has the name already.
    NameTaken = "name-taken",
    /// There are too many files or bytes for one capture.
    TooLarge = "too-large",
    /// Not all files could be read in time.
    OutOfTime = "out-of-time",
    /// The session has as many manual checkpoints as are allowed.
    TooManyCheckpoints = "too-many-checkpoints",
    /// The note is too long.
    NoteTooLong = "note-too-long",
    /// Something that should have been captured was not.
    NotCaptured = "not-captured",

    // What is meant.
    /// The words are no target.
    BadTarget = "bad-target",
    /// There is no such checkpoint.
    UnknownTarget = "unknown-target",
    /// The beginning of an id means several checkpoints.
    AmbiguousTarget = "ambiguous-target",
    /// No checkpoint is that old.
    TooOld = "too-old",
    /// The workspace as it is now was meant, and only a checkpoint will do.
    TargetIsNow = "target-is-now",
    /// Nothing has been captured here yet.
    NothingCaptured = "nothing-captured",
    /// No session is recorded here.
    NoSession = "no-session",
    /// There is no such session.
    UnknownSession = "unknown-session",
    /// Several sessions could be meant.
    SeveralSessions = "several-sessions",
    /// The session has no such turn.
    UnknownTurn = "unknown-turn",
    /// The turn has no such step.
    UnknownStep = "unknown-step",
    /// There is no such operation.
    UnknownOperation = "unknown-operation",
    /// No checkpoint has such a path.
    UnknownPath = "unknown-path",
    /// The path means nothing.
    BadPath = "bad-path",
    /// The path is not in the workspace.
    PathOutside = "path-outside",
    /// The file is in other checkpoints, and not at this moment.
    NotThen = "not-then",
    /// What is there is no file, so it has no lines.
    NotAFile = "not-a-file",
    /// The file is binary, or too large to be compared line by line.
    NotText = "not-text",
    /// The file has no such line.
    NoSuchLine = "no-such-line",

    // Operations.
    /// Something changed after the plan was made.
    Stale = "stale",
    /// What was to be left out of a plan is not in it, or only as a whole.
    NotInPlan = "not-in-plan",
    /// An agent is at work.
    Running = "running",
    /// Taking back does not go together with what is there now.
    Conflict = "conflict",
    /// The same, of a file outside the workspace.
    ConflictOutside = "conflict-outside",
    /// Edits that are not this session's would be overwritten.
    OverwritesOthers = "overwrites-others",
    /// The words say nothing that could be undone.
    BadChoice = "bad-choice",
    /// The session has no change of that number.
    UnknownChange = "unknown-change",
    /// The user's own changes have no numbers.
    NoNumbers = "no-numbers",
    /// Nothing of what is meant is still there.
    NothingToUndo = "nothing-to-undo",
    /// There is nothing to accept, or nothing of it was accepted.
    NothingToAccept = "nothing-to-accept",
    /// The last turn changed files in another workspace.
    ChangedElsewhere = "changed-elsewhere",
    /// Another workspace of the session cannot be asked.
    ElsewhereUnread = "elsewhere-unread",
    /// It is not known what the turn changed.
    ChangesUnknown = "changes-unknown",
    /// There is no rewind or undo to take back.
    NothingToRedo = "nothing-to-redo",
    /// Records of operations are lost, so that it is not known which was the last.
    OperationsLost = "operations-lost",
    /// The operation was taken back already.
    NotStanding = "not-standing",
    /// The operation failed, and everything is as it was before.
    RolledBack = "rolled-back",
    /// The operation failed, and could not be taken back to its end.
    HalfDone = "half-done",
    /// The files are right, and the store does not know it yet.
    Unrecorded = "unrecorded",
    /// An operation was cut off and cannot be ended yet.
    CutOff = "cut-off",
    /// Another piton is in the middle of an operation.
    UnderWay = "under-way",

    // Conversations and branches.
    /// The conversation cannot be read, or not go back there.
    NoConversation = "no-conversation",
    /// Nothing was said before that moment.
    NothingSaid = "nothing-said",
    /// The agent cannot be started in the conversation.
    CannotResume = "cannot-resume",
    /// The conversation has as many branches as the settings allow.
    TooManyBranches = "too-many-branches",
    /// The session is no branch.
    NotABranch = "not-a-branch",
    /// The session is where the user is.
    BranchInUse = "branch-in-use",
    /// The session has branches of its own.
    HasBranches = "has-branches",
    /// The session has no branches and is none.
    NoBranches = "no-branches",
    /// The branch was deleted.
    BranchDeleted = "branch-deleted",
    /// The branch was not deleted.
    NotDeleted = "not-deleted",
    /// A session's transcript is gone.
    TranscriptGone = "transcript-gone",
    /// A session's transcript cannot be moved.
    TranscriptStays = "transcript-stays",
    /// Two sessions are needed, and one was named twice.
    SameSession = "same-session",
    /// There are no turns to summarize.
    NothingToSummarize = "nothing-to-summarize",
    /// The summary cannot stand for the turns.
    BadSummary = "bad-summary",
    /// Whoever summarizes gave no summary.
    SummarizerFailed = "summarizer-failed",

    // Exports and archives.
    /// The session has no checkpoints here.
    NothingToExport = "nothing-to-export",
    /// The session's records cannot leave this store.
    NotPortable = "not-portable",
    /// Something is there already, and is not replaced.
    PathTaken = "path-taken",
    /// The file is no session archive.
    NotAnArchive = "not-an-archive",
    /// A later piton made the archive.
    ArchiveNewer = "archive-newer",
    /// The archive is damaged.
    ArchiveDamaged = "archive-damaged",
    /// No piton makes such an archive.
    ArchiveRefused = "archive-refused",
    /// Something of the archive is in this store already, and not as the archive has it.
    AlreadyHere = "already-here",
    /// The paths are in the commits anyway.
    NotLeftOut = "not-left-out",

    // Git.
    /// Git is not installed.
    NoGit = "no-git",
    /// Git failed, or did nothing for too long.
    GitFailed = "git-failed",
    /// There is no git repository.
    NoRepository = "no-repository",
    /// Another git command is at work, or git is in the middle of something.
    GitBusy = "git-busy",
    /// The checkpoint's git state cannot be put back.
    GitStateLost = "git-state-lost",
    /// The branch is checked out somewhere.
    CheckedOut = "checked-out",
    /// Git takes no such name for a branch.
    BadReference = "bad-reference",
    /// Git read back something else than was written.
    GitDiffers = "git-differs",

    // Settings and set-up.
    /// The settings cannot be read, or mean nothing.
    BadSettings = "bad-settings",
    /// The settings file of an agent cannot be changed.
    AgentSettings = "agent-settings",
    /// It is not known where this piton is, so no agent can be told.
    ProgramUnknown = "program-unknown",

    // Disk, store and streams.
    /// The disk is full.
    FullDisk = "full-disk",
    /// A file cannot be read.
    CannotRead = "cannot-read",
    /// A file or the output cannot be written.
    CannotWrite = "cannot-write",
    /// Whoever read the output has seen enough, as `head` does.
    OutputClosed = "output-closed",
    /// The system refuses what the operation needs.
    Refused = "refused",
    /// The store's place cannot be used.
    StoreRefused = "store-refused",
    /// The store would take more than its budget.
    OverBudget = "over-budget",
    /// Another piton holds the store.
    StoreBusy = "store-busy",
    /// The store was exchanged in the middle of the work.
    StoreReplaced = "store-replaced",
    /// A later piton made the store.
    StoreNewer = "store-newer",
    /// Something in the store is damaged or missing.
    StoreDamaged = "store-damaged",
    /// The store cannot be read or written, and nobody knows why.
    StoreFailed = "store-failed",
    /// A bug in piton.
    Bug = "bug",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_list_of_errors_once_and_nothing_else_is() {
        let list = include_str!("../../../docs/errors.md");
        let codes = list.split("\n## ").skip(1).flat_map(str::lines);
        let listed: Vec<&str> = codes.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(listed, Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>());
        let mut names = listed;
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len(), "a name is used twice");
        let is_kebab =
            |name: &&str| name.split('-').all(|word| word.chars().all(|c| c.is_ascii_lowercase()) && !word.is_empty());
        assert!(names.iter().all(is_kebab), "{names:?}");
    }
}
