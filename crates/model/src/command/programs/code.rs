//! Programs in other languages, given as text: which files they name, and whether they write any.

use super::Call;
use crate::command::names::{CommandPlace, Name};
use crate::command::{Argument, Folder, SideEffect, Writes};
use crate::path::WorkspacePath;

impl Call<'_> {
    pub(super) fn interpreter(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        if let Some(at) = texts
            .iter()
            .position(|word| matches!(*word, "-c" | "-e" | "--eval" | "-r" | "-p" | "-ne" | "-pe" | "-lne" | "-E"))
        {
            match words.get(at + 1).cloned().flatten() {
                Some(code) => self.code(code.plain),
                None => self.unknown(),
            }
            return;
        }
        if matches!(texts, ["--version" | "-V" | "-v" | "--help"]) {
            return;
        }
        if program.starts_with("python")
            && let Some(at) = texts.iter().position(|word| *word == "-m")
        {
            let module = texts.get(at + 1).copied().unwrap_or_default();
            let rest: Vec<Argument> = words.iter().skip(at + 2).cloned().collect();
            match module {
                "http.server" | "unittest" | "doctest" | "timeit" | "json.tool" | "compileall" | "py_compile"
                | "site" | "this" => {}
                "pip" => self.effect(SideEffect::Packages),
                "venv" | "virtualenv" => drop(self.writes_all(&rest, &[])),
                module => {
                    let module = module.to_owned();
                    self.program(&module, &rest);
                }
            }
            return;
        }
        if program == "php" && texts.contains(&"-S") {
            return;
        }
        let is_manage = texts.iter().any(|word| word.ends_with("manage.py") || word.ends_with("artisan"));
        if is_manage {
            let verb = texts
                .iter()
                .skip_while(|word| !(word.ends_with("manage.py") || word.ends_with("artisan")))
                .nth(1)
                .copied();
            match verb.unwrap_or_default() {
                "runserver" | "test" | "check" | "shell" | "showmigrations" | "serve" => return,
                "migrate" | "flush" | "loaddata" | "createsuperuser" | "db:seed" | "dbshell" => {
                    self.effect(SideEffect::Database)
                }
                "makemigrations" | "startapp" => {
                    self.everything(&[]);
                    return;
                }
                _ => {}
            }
        }
        if let Some(code) = self.here.take() {
            self.code(code);
            return;
        }
        // The script itself is read and not written.
        let mut rest: Vec<Argument> = words.to_vec();
        if let Some(script) = rest.iter().position(|word| word.as_ref().is_none_or(|word| !word.plain.starts_with('-')))
        {
            rest.remove(script);
        }
        self.script_of_its_own(&rest);
    }

    fn code(&mut self, text: String) {
        const BESIDE: [&str; 9] = [
            "requests.",
            "urllib",
            "http.client",
            "fetch(",
            "axios",
            "subprocess",
            "os.system",
            "child_process",
            "socket.",
        ];
        if BESIDE.iter().any(|word| text.contains(word)) {
            self.effect(SideEffect::Script);
        }
        match &self.reading.folder {
            Folder::At(folder) => {
                let folder = folder.clone();
                self.reading.writes.push(Writes::Code { folder, text });
            }
            Folder::Unknown => self.unknown(),
        }
    }
}

/// Words of programs that write files.
const CODE_WRITES: &[&str] = &[
    "write",
    "'w'",
    "\"w\"",
    "'a'",
    "\"a\"",
    "'w+'",
    "\"w+\"",
    "'r+'",
    "\"r+\"",
    "'wb'",
    "\"wb\"",
    "rename",
    "replace(",
    "unlink",
    "remove",
    "rmtree",
    "copy",
    "move",
    "dump",
    "truncate",
    "save",
    "put_contents",
    "touch",
    "chmod",
    ":>",
    "'>'",
    "\">\"",
];

/// Whether a program in another language says a file's path, in quotes, and writes files.
pub(in crate::command) fn code_names(text: &str, folder: &str, path: &WorkspacePath, place: &CommandPlace<'_>) -> bool {
    if !CODE_WRITES.iter().any(|word| text.contains(word)) {
        return false;
    }
    let quoted = ['\'', '"', '`'].into_iter().flat_map(|quote| text.split(quote).skip(1).step_by(1));
    let mut quoted = quoted.filter(|word| !word.is_empty() && word.len() < 1_000 && !word.contains('\n'));
    quoted.any(|word| {
        let word = crate::command::names::escaped(word);
        let pattern = if folder.is_empty() || word.starts_with('/') { word } else { format!("{folder}/{word}") };
        Name::file(pattern).names(path, place)
    })
}
