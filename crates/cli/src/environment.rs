//! Where the process stands: what the engine must know of its surroundings, and which workspace is meant.
//!
//! The engine reads no variable of its own; all of them are read here.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use piton_agents::{Agent, Agents, STATE_FOLDERS_OF_OTHERS};
use piton_engine::model::settings::Settings;
use piton_engine::model::{SessionId, WorkspaceId};
use piton_engine::view::{Initialized, Recovered, UnreadStore};
use piton_engine::{Engine, Environment, InitOptions, LeftOut, OpenError, Workspace};
use piton_wording::escape::{escape, escape_path, escape_view, quoted};
use piton_wording::outcome::leftover;
use piton_wording::{Code, Failure, Text, agreement, another_folder, call, flag, note, text, warning};

use crate::args::Global;
use crate::console::Console;
use crate::gitconfig::{user_config, usual_excludes};
use crate::{hook, inside, settings};

/// Variables that agents set for what they run.
fn set_by_agents() -> impl Iterator<Item = &'static str> {
    Agents::default().shell_variables()
}

/// The variable that tells that an agent started this process, or one that it comes from.
pub fn agents_shell() -> Option<&'static str> {
    set_by_agents().find(|name| variable(name).is_some())
}

/// Lets a command be the user's own, who typed it to an agent.
pub fn typed_by_user(command: &mut std::process::Command) {
    for name in set_by_agents() {
        command.env_remove(name);
    }
}

/// The surroundings of a command.
pub struct Surroundings {
    /// The engine.
    pub engine: Engine,
    /// The current folder, which may be gone.
    pub here: PathBuf,
    chosen: Option<PathBuf>,
    /// Mistakes in the settings. They must not keep anybody from a rewind, so they are said and nothing more.
    problems: Vec<String>,
}

impl Surroundings {
    /// Reads the environment.
    pub fn read(global: &Global) -> Result<Self, Failure> {
        let mut all = Self {
            engine: engine(None)?,
            here: current_folder()?,
            chosen: global.workspace.clone(),
            problems: Vec::new(),
        };
        let (settings, problems) = settings::load_leniently(all.folder().ok().as_deref());
        all.engine = engine(Some(&settings))?;
        all.problems = problems;
        Ok(all)
    }

    /// The folder of the workspace that is meant.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        match &self.chosen {
            Some(folder) => Ok(self.workspace_called(folder)),
            None => Ok(self.engine.locate(&self.here)?),
        }
    }

    /// A folder as it was given: a path, or the beginning of a workspace's id where nothing has that name.
    fn workspace_called(&self, given: &Path) -> PathBuf {
        let path = self.here.join(given);
        let is_path = path.symlink_metadata().is_ok() || self.engine.workspaces().contains(&path);
        let store = given.to_str().filter(|_| !is_path).and_then(|id| self.engine.store_called(id));
        store.unwrap_or(path)
    }

    /// Opens the workspace that is meant, and says what its user should know, whatever the command is.
    pub fn open(&self, console: &mut Console) -> Result<Workspace, Failure> {
        let workspace = self.open_for_rules(console)?;
        self.say_waiting(console, &workspace);
        Ok(workspace)
    }

    /// The same, for a command that tells of rules that wait by itself.
    pub fn open_for_rules(&self, console: &mut Console) -> Result<Workspace, Failure> {
        self.say_problems(console);
        let folder = self.folder()?;
        let mut workspace = self.engine.open(&folder).map_err(|error| self.fitting(self.explain(error, &folder)))?;
        workspace.record_aside();
        announce(console, &workspace);
        self.say_left_out(console);
        if workspace.is_cut_off_from_git() {
            let path = quoted(workspace.path());
            let repair = format!("`git worktree repair {path}`, run in its repository, mends it");
            console.advise(note(format!("{path} has a `.git` file that leads nowhere; if it is a worktree, {repair}")));
        }
        Ok(workspace)
    }

    /// The workspace that is meant as its store says, with nothing ended, recorded or said: for what is shown all the time.
    pub fn at_a_glance(global: &Global) -> Result<Workspace, Failure> {
        let (engine, here) = (engine(None)?, current_folder()?);
        let folder = match &global.workspace {
            Some(folder) => here.join(folder),
            None => engine.locate(&here)?,
        };
        Ok(engine.open_as_it_is(&folder)?)
    }

    /// Says once which changed rules wait for the user's word.
    fn say_waiting(&self, console: &mut Console, workspace: &Workspace) {
        // What cannot be told is no reason to fail.
        let waiting = workspace.waiting().unwrap_or_default();
        let session = SessionId::of("piton", "commands");
        for said in agreement::sentences(&waiting) {
            let key = format!("{}: {said}", escape_path(workspace.path()));
            if self.engine.is_news(&session, &key).unwrap_or(false) {
                console.advise(note(text![said, "; ", agreement::how(None)]));
            }
        }
    }

    /// Says that the current folder is not captured, where it is not.
    fn say_left_out(&self, console: &mut Console) {
        if let Some((left_out, root)) = self.left_out() {
            console.advise(note(hook::unprotected_note(&left_out, &root)));
        }
    }

    /// The current folder or one around it, where the workspace that it belongs to leaves it out; and that workspace.
    pub fn left_out(&self) -> Option<(LeftOut, PathBuf)> {
        let located = self.engine.located(&self.here).ok().filter(|_| self.chosen.is_none())?;
        Some((located.left_out?, located.root))
    }

    /// The way out for somebody whose repository shares a workspace with others, and who means that repository alone.
    pub fn own_workspace_hint(&self, workspace: &Workspace) -> Option<Text> {
        let repository = self.engine.repository_inside(workspace.path(), &self.here)?;
        let (own, root) = (quoted(&repository), escape_path(workspace.path()));
        let init = call("init").there(repository);
        Some(text![own, " belongs to the workspace ", root, "; ", init, " makes it a workspace of its own"])
    }

    /// Says that a folder's store has not always been there, and which one has what was before.
    pub fn say_earlier_turns(&self, console: &mut Console, workspace: &Workspace) {
        if let Some(earlier) = self.earlier_turns(workspace.path(), Some(workspace.id())) {
            console.advise(note(earlier));
        }
    }

    /// Adds which other store may have what was not found in a workspace's own.
    pub fn hint_earlier_turns(&self, failure: Failure, workspace: &Workspace) -> Failure {
        match self.earlier_turns(workspace.path(), Some(workspace.id())) {
            Some(earlier) => failure.hint(earlier),
            None => failure,
        }
    }

    /// Which store has the turns from before a folder had its own, which is given where it has one.
    fn earlier_turns(&self, folder: &Path, own: Option<&WorkspaceId>) -> Option<Text> {
        let mut hidden = self.engine.hidden_at(folder);
        hidden.retain(|id| Some(id) != own);
        if !hidden.is_empty() {
            return Some(turns_of_hidden(&hidden));
        }
        // What cannot be told is no reason to fail.
        let around = self.engine.earlier_turns(folder).ok().flatten().map(|around| earlier_turns(&around));
        let former = || Some(turns_at_former_place(&self.engine.former_place(folder).ok()??));
        let possible = || Some(turns_at_possible_place(&self.engine.possible_former_place(folder)?));
        around.or_else(former).or_else(possible)
    }

    /// The same, for checking the store: nothing is ended first, since the store may be too damaged for that.
    pub fn open_as_it_is(&self) -> Result<Workspace, Failure> {
        let folder = self.folder()?;
        self.engine.open_as_it_is(&folder).map_err(|error| self.explain(error, &folder))
    }

    /// The same, for a command that makes an unknown folder a workspace.
    pub fn open_or_init(&self, console: &mut Console) -> Result<Workspace, Failure> {
        self.open_or_init_if(console, || Ok(()))
    }

    /// The same, where `check` passes before a folder becomes a workspace.
    pub fn open_or_init_if(
        &self,
        console: &mut Console,
        check: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Workspace, Failure> {
        self.say_problems(console);
        let folder = self.folder()?;
        match self.engine.open(&folder) {
            Err(OpenError::NotKnown(_)) => {
                check()?;
                let made = self.engine.init(&folder, InitOptions::default());
                let made = made.map_err(|error| self.fitting(error.into()))?;
                console.advise(format!("{} is a workspace now", escape_path(&made.path)));
                say_unread(console, &made);
                Ok(self.engine.open(&folder)?)
            }
            Err(error) => Err(self.fitting(error.into())),
            Ok(workspace) => {
                announce(console, &workspace);
                self.say_left_out(console);
                Ok(workspace)
            }
        }
    }

    fn say_problems(&self, console: &mut Console) {
        for problem in &self.problems {
            console.say(warning(problem));
        }
    }

    /// Without the advice to name another folder, for whoever has just named one.
    fn fitting(&self, mut failure: Failure) -> Failure {
        if self.chosen.is_some() {
            failure.hints.retain(|hint| *hint != another_folder());
            if failure.hints.is_empty() {
                return failure.hint("name a folder that is there, or the beginning of a workspace's id");
            }
        }
        failure
    }

    /// A folder inside a workspace is not that workspace, and whoever named it may not know.
    fn explain(&self, error: OpenError, folder: &Path) -> Failure {
        let OpenError::NotKnown(path) = &error else { return error.into() };
        if !path.is_dir() {
            return Failure::user(
                Code::NoFolder,
                format!("{} is not a folder, and not a workspace that was there", escape_path(path)),
            )
            .hint(another_folder());
        }
        if let Some(refusal) = self.engine.refusal(path) {
            return refusal.into();
        }
        if let Some(earlier) = self.earlier_turns(path, None) {
            return Failure::from(error).hint(earlier);
        }
        let around = self.engine.locate(folder).ok().filter(|around| self.engine.workspaces().contains(around));
        match around {
            Some(around) => Failure::from(error).hint(format!("it is inside the workspace {}", escape_path(&around))),
            None => error.into(),
        }
    }
}

fn earlier_turns(around: &Path) -> Text {
    text![
        "this worktree's own store is younger than the worktree; earlier turns are in that of ",
        quoted(around),
        ": ",
        call("log").there(around)
    ]
}

fn turns_of_hidden(hidden: &[WorkspaceId]) -> Text {
    let logs = hidden.iter().map(|id| call("log").there(id.short()).into());
    text![
        "another folder was captured at this path before, and is gone; its checkpoints are in its own store: ",
        Text::join(logs, ", ")
    ]
}

fn turns_at_former_place(place: &Path) -> Text {
    let name = quoted(place);
    let text = format!(
        "this folder was captured at {name} before another folder took that place; its turns of that time are in the \
         store of {name}: "
    );
    text![text, call("log").there(place)]
}

fn turns_at_possible_place(place: &Path) -> Text {
    text![
        "a folder that was captured at ",
        quoted(place),
        " is gone, and may be this one: its file system does not tell; ",
        call("log").there(place),
        " shows its turns"
    ]
}

/// Piton's home: where stores are, and the hook's log.
pub fn home() -> Result<PathBuf, Failure> {
    match variable("PITON_HOME") {
        // It would be another place in every folder, and a hook's is not the user's.
        Some(place) if place.is_relative() => Err(Failure::user(
            Code::NoHome,
            format!("PITON_HOME is `{}`, which is not an absolute path", escape_path(&place)),
        )
        .hint("set it to one that begins with `/`, or unset it")),
        Some(place) => Ok(place),
        None => Ok(data_folder()?.join("piton")),
    }
}

/// An engine whose captures go by these settings, where they are known.
pub fn engine(settings: Option<&Settings>) -> Result<Engine, Failure> {
    Ok(Engine::new(home()?, environment(settings)))
}

/// An engine for a workspace, by its own settings: those of one never hold in another.
pub fn engine_for(root: &Path) -> Result<Engine, Failure> {
    engine(Some(&settings::load_leniently(Some(root)).0))
}

/// What the engine must know of its surroundings, by these settings where they are known.
pub fn environment(settings: Option<&Settings>) -> Environment {
    let home_folder = variable("HOME").or_else(|| etcetera::home_dir().ok());
    let agents = Agents::default();
    let state_folders = agents.iter().flat_map(|agent| agent.state_folders).chain(&STATE_FOLDERS_OF_OTHERS);
    let state_folders: Vec<_> = state_folders.collect();
    let agent_state =
        home_folder.iter().flat_map(|home| state_folders.iter().map(|folder| home.join(folder))).collect();
    let root = |agent: Agent| agent.transcripts?.root(home_folder.as_deref(), &|name| variable(name));
    let transcripts = agents.iter().filter_map(|agent| Some((agent.name.to_owned(), root(agent)?))).collect();
    let usual = Environment::default();
    let most_branches = settings.and_then(|settings| usize::try_from(settings.most_branches.value).ok());
    Environment {
        most_branches: most_branches.unwrap_or(usual.most_branches),
        transcripts,
        global_excludes: usual_excludes(home_folder.as_deref(), &|name| std::env::var_os(name)),
        git_config: user_config(home_folder.as_deref(), &|name| std::env::var_os(name)),
        home_folder,
        agent_state,
        // Where nobody can be asked, a guess that is wrong would be found out too late.
        session: std::env::var(inside::SESSION).ok().and_then(|id| id.parse().ok()),
        guesses_session: io::stdin().is_terminal() && io::stderr().is_terminal(),
        users_settings: settings.map(|settings| settings.users.clone()).unwrap_or_default(),
        largest_file: settings.map(|settings| settings.size_limit.value),
        largest_ignored_file: settings.map(|settings| settings.ignored_limit.value),
        ..usual
    }
}

fn data_folder() -> Result<PathBuf, Failure> {
    let strategy = etcetera::base_strategy::choose_native_strategy();
    strategy.map(|strategy| strategy.data_dir()).map_err(|error| {
        Failure::user(Code::NoHome, format!("there is no place for piton's store: {error}"))
            .hint("set HOME or PITON_HOME")
    })
}

/// The current folder. After `rm -rf` of it the system knows it no more, and the shell still does.
fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().or_else(|error| {
        variable("PWD").filter(|folder| folder.is_absolute()).ok_or_else(|| {
            Failure::user(Code::NoCurrentFolder, format!("the current folder is gone: {error}"))
                .hint(text![flag("--workspace").asking("DIR"), " says which one is meant"])
        })
    })
}

/// An empty variable is one that is not set.
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Says which stores could not be asked whether they are of a folder that has become a workspace.
pub fn say_unread(console: &mut Console, made: &Initialized) {
    for UnreadStore { store, reason } in made.unread.iter().filter(|_| !made.already_known) {
        console.advise(warning(format!("{} cannot be read: {}", escape_path(store), escape(reason))));
        console.advise("         if it is of this folder, under an earlier path, its checkpoints are not found here");
    }
}

fn announce(console: &mut Console, workspace: &Workspace) {
    if let Some(error) = workspace.unended() {
        console.say_with(|out, look| writeln!(out, "{} {}", look.paint.warn("note:"), escape(&error.to_string())));
    }
    say_recovered(console, workspace.recovered());
}

/// Says what became of operations that had been cut off.
pub fn say_recovered(console: &mut Console, recovered: &[Recovered]) {
    for one in recovered {
        console.say_with(|out, look| {
            let id = look.paint.id(one.operation.short());
            let note = look.paint.warn("note:");
            let rewind = call("rewind").arg(one.before.short());
            let back = look.text(text!["      ", &rewind, " brings back the state before it"]);
            if one.replaced {
                writeln!(out, "{note} operation {id} had been cut off, and another folder has taken the place of its own")?;
                writeln!(out, "      nothing was done here; in a copy of that folder files may be half changed, and `.piton-` files")?;
                let text = text!["      are the operation's; ", rewind.arg("--across"), " brings back the state before it"];
                writeln!(out, "{}", look.text(text))?;
            } else if one.mixed {
                writeln!(
                    out,
                    "{note} operation {id} had been cut off, and its files were changed since, as was what it had put"
                )?;
                writeln!(out, "      beside them: nothing tells the old from the new, so nothing was put back")?;
                writeln!(out, "{back}")?;
            } else if one.damaged {
                writeln!(out, "{note} operation {id} had been cut off, and what is needed to end it is damaged")?;
                writeln!(out, "      its files may be half changed")?;
                writeln!(out, "{back}")?;
            } else if !one.moved.is_empty() {
                writeln!(out, "{note} operation {id} had been cut off, and folders of it were moved or removed since")?;
                writeln!(out, "      the files of those folders may be half changed:")?;
                one.moved.iter().try_for_each(|path| writeln!(out, "        {}", escape_view(path)))?;
                writeln!(out, "{back}")?;
            } else if one.finished {
                writeln!(out, "{note} operation {id} had been cut off at its end; it is done now")?;
            } else if one.left_alone.is_empty() && one.left_outside.is_empty() && one.waits_outside.is_empty() {
                writeln!(
                    out,
                    "{note} operation {id} had been cut off; it is taken back, and the files are as before it"
                )?;
            } else {
                writeln!(out, "{note} operation {id} had been cut off; it is taken back, but for the files below")?;
                if !one.left_alone.is_empty() {
                    writeln!(out, "{back}")?;
                }
            }
            write_left_alone(out, one)
        });
    }
}

fn write_left_alone(out: &mut dyn Write, one: &Recovered) -> std::io::Result<()> {
    // Of a mix all is named that is not as before it, whoever changed it.
    let who = if one.mixed { "changed by it, or by somebody since" } else { "changed by somebody since" };
    if !one.left_alone.is_empty() {
        writeln!(out, "      {who}, and left as they are:")?;
    }
    for path in &one.left_alone {
        writeln!(out, "        {}", escape_view(path))?;
    }
    if !one.left_outside.is_empty() {
        writeln!(out, "      outside the workspace, {who}, and left as they are:")?;
    }
    for path in &one.left_outside {
        writeln!(out, "        {}", escape(path))?;
    }
    if !one.waits_outside.is_empty() {
        writeln!(out, "      outside the workspace, not put back yet; the next command tries again:")?;
    }
    one.waits_outside.iter().try_for_each(|left| writeln!(out, "        {}", leftover(left)))?;
    if let Some(why) = &one.git_stays {
        writeln!(out, "      git stays as it is: {}", escape(why))?;
    }
    if !one.leftovers.is_empty() {
        writeln!(out, "      could not be removed:")?;
    }
    one.leftovers.iter().try_for_each(|left| writeln!(out, "        {}", leftover(left)))
}
