//! Programs that find, edit, copy, unpack or fetch the files that their arguments name.

use super::{Call, listed_word, operands};
use crate::command::names::Name;
use crate::command::{Argument, SideEffect, Writes};

impl Call<'_> {
    pub(super) fn find(&mut self, program: &str, words: &[Argument]) -> Option<Vec<Name>> {
        let texts: Vec<&str> = words.iter().map(|word| word.as_ref().map_or("", |word| &word.plain)).collect();
        let is_find = program == "find";
        let roots: Vec<&Argument> = match is_find {
            true => {
                words.iter().take_while(|w| w.as_ref().is_none_or(|w| !w.plain.starts_with(['-', '(', '!']))).collect()
            }
            false => operands(words).skip(1).collect(),
        };
        if roots.iter().any(|root| root.is_none()) {
            self.unknown();
            return None;
        }
        let roots: Vec<String> = match roots.is_empty() {
            true => vec![".".into()],
            false => roots.into_iter().flatten().map(|root| root.pattern.clone()).collect(),
        };
        let is_after_name = |two: &&[&str]| matches!(two[0], "-name" | "-iname");
        let wanted: Vec<String> = texts.windows(2).filter(is_after_name).map(|two| two[1].to_owned()).collect();
        let mut names = Vec::new();
        for root in &roots {
            let Some(root) = self.reading.at(root) else {
                self.unknown();
                return None;
            };
            match wanted.is_empty() {
                true => names.push(Name::folder(root)),
                false => names.extend(wanted.iter().map(|name| Name::file(format!("{root}/**/{name}")))),
            }
        }
        if texts.contains(&"-delete") {
            self.reading.writes.extend(names.iter().cloned().map(Writes::Named));
        }
        let ways = ["-exec", "-execdir", "-ok", "-x", "-X", "--exec", "--exec-batch"];
        for (at, _) in texts.iter().enumerate().filter(|(_, word)| ways.contains(word)) {
            let end = texts
                .iter()
                .skip(at + 1)
                .position(|word| matches!(*word, ";" | "+"))
                .map_or(texts.len(), |end| at + 1 + end);
            let mut inner: Vec<Argument> = Vec::new();
            for word in &words[at + 1..end] {
                match word {
                    Some(word) if word.plain == "{}" => inner.extend(names.iter().cloned().map(listed_word).map(Some)),
                    Some(word) if word.plain.contains("{}") => inner.push(None),
                    word => inner.push(word.clone()),
                }
            }
            // The names are seen from where the script began already.
            let folder = std::mem::take(&mut self.reading.folder);
            Call { reading: self.reading, set: Vec::new(), reads: false, here: None, printed: None }.run(inner);
            self.reading.folder = folder;
        }
        Some(names)
    }

    /// The files that a lister may print: those in what it is told to look at.
    pub(super) fn lists(&mut self, program: &str, words: &[Argument]) -> Vec<Name> {
        let skip = if program == "ls" { 0 } else { 1 };
        let mut names = Vec::new();
        let mut is_any = false;
        for word in operands(words).skip(skip) {
            is_any = true;
            match word.as_ref().and_then(|word| self.reading.at(&word.pattern)) {
                Some(pattern) => names.push(Name::folder(pattern)),
                None => return Vec::new(),
            }
        }
        if !is_any {
            names.extend(self.reading.at(".").map(Name::folder));
        }
        names
    }

    pub(super) fn edits_in_place(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        let is_awk = program.ends_with("awk");
        let is_in_place = match is_awk {
            true => texts.windows(2).any(|two| two == ["-i", "inplace"]),
            false => texts.iter().any(|word| {
                let short = word.starts_with('-') && !word.starts_with("--") && !word.starts_with("-e");
                word.starts_with("--in-place") || (short && word.contains('i') && !word.starts_with("-I"))
            }),
        };
        let is_script = matches!(program, "perl" | "ruby");
        if !is_in_place {
            match is_script {
                true => self.interpreter(program, words, texts),
                // `w` in a script writes a file that it names, and awk's own redirections do.
                false => {
                    let writes = |word: &&&str| if is_awk { word.contains('>') } else { word.contains("w ") };
                    if texts.iter().filter(writes).count() > 0 {
                        self.unknown_with_names(words);
                    }
                }
            }
            return;
        }
        let has_script = texts.iter().any(|word| matches!(*word, "-e" | "-f") || word.starts_with("--expression"));
        let is_short_e = is_script
            && texts.iter().any(|word| word.starts_with('-') && word.ends_with('e') && !word.starts_with("--"));
        let mut given: Vec<&Argument> = Vec::new();
        let mut skips = false;
        for word in words {
            let text = word.as_ref().map_or("", |word| &word.plain);
            if std::mem::take(&mut skips) {
                continue;
            }
            if text.starts_with('-') && word.is_some() {
                skips = matches!(text, "-e" | "-f") || (is_script && text.ends_with('e')) || (is_awk && text == "-i");
                continue;
            }
            given.push(word);
        }
        // Without `-e` the first is the script. Where macOS wants an ending for the copy, an empty word is it.
        let mut files = given.into_iter().filter(|word| word.as_ref().is_none_or(|word| !word.plain.is_empty()));
        if !has_script && !is_short_e {
            files.next();
        }
        let files: Vec<Argument> = files.cloned().collect();
        if files.is_empty() {
            self.unknown();
        }
        for file in files {
            match file {
                Some(file) => self.folder(&file.pattern),
                None => self.unknown(),
            }
        }
    }

    pub(super) fn copies(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        let mut given: Vec<Argument> = operands(words).cloned().collect();
        if program == "rsync" && texts.iter().any(|word| word.contains(':')) {
            self.effect(SideEffect::Network);
        }
        if matches!(program, "mv" | "gmv") {
            self.writes_all(words, &[]);
        }
        let to_option = texts.iter().position(|word| matches!(*word, "-t" | "--target-directory"));
        let to = match to_option.and_then(|at| words.get(at + 1).cloned()) {
            Some(to) => {
                given.retain(|word| *word != to);
                to
            }
            // `ln -s TARGET` alone makes a name here.
            None if program == "ln" && given.len() == 1 => {
                let base = given[0].as_ref().map(|word| word.pattern.rsplit('/').next().unwrap_or_default().to_owned());
                match base {
                    Some(base) => self.file(&base),
                    None => self.unknown(),
                }
                return;
            }
            None => match given.pop() {
                Some(to) => to,
                None => return self.unknown(),
            },
        };
        let Some(to) = to else {
            self.unknown();
            return;
        };
        let is_deep = program == "rsync"
            || texts.iter().any(|word| {
                matches!(*word, "--recursive" | "--archive")
                    || (word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R', 'a']))
            });
        if is_deep || given.iter().any(Option::is_none) {
            self.folder(&to.pattern);
            return;
        }
        self.file(&to.pattern);
        for from in given.into_iter().flatten() {
            let base = from.pattern.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            let within = format!("{}/{base}", to.pattern.trim_end_matches('/'));
            self.folder(&within);
        }
    }

    pub(super) fn tar(&mut self, words: &[Argument], texts: &[&str]) {
        let flags = texts.first().copied().unwrap_or_default().trim_start_matches('-');
        let extracts = texts.iter().any(|word| matches!(*word, "--extract" | "--get" | "-x")) || flags.contains('x');
        let lists = texts.iter().any(|word| matches!(*word, "--list" | "-t")) || flags.contains('t');
        if extracts {
            let to = texts.iter().position(|word| matches!(*word, "-C" | "--directory"));
            match to.and_then(|at| words.get(at + 1).cloned().flatten()) {
                Some(to) => self.folder(&to.pattern),
                None => self.unknown(),
            }
        } else if !lists {
            // The archive that it makes is the word after `f`.
            self.unknown_with_names(words);
        }
    }

    pub(super) fn archive(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        match program {
            "unzip" if texts.iter().any(|word| matches!(*word, "-l" | "-p" | "-t")) => {}
            "unzip" => {
                match texts.iter().position(|word| *word == "-d").and_then(|at| words.get(at + 1).cloned().flatten()) {
                    Some(to) => self.folder(&to.pattern),
                    None => self.unknown(),
                }
            }
            _ => self.unknown_with_names(words),
        }
    }

    pub(super) fn downloads(&mut self, program: &str, words: &[Argument], texts: &[&str]) {
        let options: &[&str] = if program == "curl" { &["-o", "--output"] } else { &["-O", "--output-document"] };
        let mut is_said = false;
        for at in (0..texts.len()).filter(|at| options.contains(&texts[*at])) {
            is_said = true;
            if texts.get(at + 1).is_none_or(|to| *to != "-" && !to.starts_with("/dev/")) {
                self.option_value(words, at);
            }
        }
        let is_remote_name = |word: &&str| {
            matches!(*word, "-O" | "--remote-name")
                || (word.starts_with('-') && !word.starts_with("--") && word.contains('O'))
        };
        if !is_said && (program == "wget" || texts.iter().any(is_remote_name)) {
            for word in operands(words).cloned().collect::<Vec<_>>() {
                let base = word.map(|word| word.plain.rsplit('/').next().unwrap_or_default().to_owned());
                match base.filter(|base| !base.is_empty()) {
                    Some(base) => self.file(&crate::command::names::escaped(&base)),
                    None => self.unknown(),
                }
            }
        }
    }
}
