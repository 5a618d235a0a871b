//! Parses the output of `strace -f -y -xx`: which of a process's system calls changed the recorded folder, and how.
//!
//! Strict: a call that may change the folder and is not understood fails the test, since an incomplete recording would
//! prove nothing.

use std::collections::HashMap;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::disk::{Effect, Inode, Node};
use super::recording::{Recording, Synced};

/// The calls that strace records. `read` moves no offset that a later write depends on.
pub(super) const CALLS: &str = "open,openat,openat2,creat,close,dup,dup2,dup3,fcntl,lseek,write,pwrite64,writev,pwritev,\
     pwritev2,truncate,ftruncate,fallocate,copy_file_range,sendfile,splice,rename,renameat,renameat2,link,linkat,unlink,\
     unlinkat,rmdir,mkdir,mkdirat,symlink,symlinkat,mknod,mknodat,chmod,fchmod,fchmodat,fchmodat2,fsync,fdatasync,sync,\
     syncfs,msync,mmap,ioctl";

/// Adds a trace to a recording.
pub(super) struct Reader<'r> {
    pub recording: &'r mut Recording,
    /// The recorded folder.
    pub base: &'r Path,
    pub umask: u32,
    /// Open files: the inode, and where the next plain write goes.
    files: HashMap<i32, (Inode, u64, bool)>,
    /// Calls interrupted by other lines: their beginning, and how many events there were.
    unfinished: HashMap<u32, (String, usize)>,
}

/// An argument of a call, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Argument {
    Text(Vec<u8>),
    /// A file descriptor and its path; `None` if the file has lost its name.
    File(i32, Option<PathBuf>),
    /// The current folder.
    Here(PathBuf),
    Other(String),
}

impl<'r> Reader<'r> {
    pub(super) fn new(recording: &'r mut Recording, base: &'r Path, umask: u32) -> Self {
        Self { recording, base, umask, files: HashMap::new(), unfinished: HashMap::new() }
    }

    pub(super) fn read(&mut self, trace: &str) {
        for line in trace.lines() {
            self.line(line);
        }
        assert!(self.unfinished.is_empty(), "calls that never ended: {:?}", self.unfinished);
    }

    fn line(&mut self, line: &str) {
        let (process, rest) = line.split_once(' ').unwrap_or_else(|| panic!("no process: {line}"));
        let process: u32 = process.parse().unwrap_or_else(|_| panic!("no process: {line}"));
        let rest = rest.trim_start();
        if rest.starts_with("+++") {
            // A process killed in the middle of a call did not get to its end.
            self.unfinished.remove(&process);
            return;
        }
        if rest.starts_with("---") {
            return;
        }
        let now = self.recording.events.len();
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            self.unfinished.insert(process, (begun.to_owned(), now));
            return;
        }
        let (call, began) = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let (begun, began) = self.unfinished.remove(&process).unwrap_or_else(|| panic!("no beginning: {line}"));
                let (_, end) = resumed.split_once(" resumed>").unwrap_or_else(|| panic!("no end: {line}"));
                (format!("{begun}{end}"), began)
            }
            None => (rest.to_owned(), now),
        };
        let (name, rest) = call.split_once('(').unwrap_or_else(|| panic!("no call: {line}"));
        let (arguments, rest) = arguments(rest);
        let result = rest.trim_start().strip_prefix("= ").unwrap_or_else(|| panic!("no result: {line}"));
        // A process that ended, or a call that failed.
        if result.starts_with('?') || result.starts_with('-') {
            return;
        }
        self.call(name, &arguments, result, began);
    }

    fn call(&mut self, name: &str, arguments: &[Argument], result: &str, began: usize) {
        let odd = || -> ! { panic!("cannot be understood: {name}({arguments:?}) = {result}") };
        match name {
            "open" | "openat" | "openat2" | "creat" => self.open(name, arguments, result),
            "close" => {
                if let Some(Argument::File(fd, _)) = arguments.first() {
                    self.files.remove(fd);
                }
            }
            "dup" | "dup2" | "dup3" => self.duplicate(&arguments[0], result),
            "fcntl" if matches!(&arguments[1], Argument::Other(what) if what.starts_with("F_DUPFD")) => {
                self.duplicate(&arguments[0], result);
            }
            "fcntl" => {}
            "lseek" => {
                let at = number(result);
                if let Some((_, position, _)) = self.open_file(&arguments[0]) {
                    *position = at;
                }
            }
            "write" | "writev" => {
                let Some(file) = self.inode(&arguments[0]) else { return };
                let length = number(result);
                let end = self.length(file);
                let Some((_, position, appends)) = self.open_file(&arguments[0]) else { odd() };
                let at = if *appends { end } else { *position };
                *position = at + length;
                self.write(file, at, &arguments[1..], length);
            }
            "pwrite64" => {
                let Some(file) = self.inode(&arguments[0]) else { return };
                let Argument::Other(at) = &arguments[3] else { odd() };
                self.write(file, number(at), &arguments[1..2], number(result));
            }
            "ftruncate" | "truncate" => {
                let file = match &arguments[0] {
                    Argument::Text(path) => self.place(&path_of(path)).and_then(|path| self.recording.live.find(&path)),
                    file => self.inode(file),
                };
                let (Some(file), Argument::Other(length)) = (file, &arguments[1]) else { return };
                self.set_length(file, number(length));
            }
            "copy_file_range" | "sendfile" => self.copy(name, arguments, number(result)),
            "rename" | "renameat" | "renameat2" => self.rename(arguments),
            "link" | "linkat" => {
                let [from, to] = self.two_paths(arguments);
                let (Some(from), Some(to)) = (from, to) else { return };
                let inode = self.recording.live.find(&from).unwrap_or_else(|| odd());
                self.name(&to, Some(inode));
            }
            "unlink" | "unlinkat" | "rmdir" => {
                if let (Some(path), _) = self.one_path(arguments) {
                    self.name(&path, None);
                }
            }
            "mkdir" | "mkdirat" => {
                if let (Some(path), rest) = self.one_path(arguments) {
                    let mode = mode(&rest[0]) & !self.umask;
                    let inode = self.recording.make(Node::Folder, mode);
                    self.name(&path, Some(inode));
                }
            }
            "symlink" | "symlinkat" => {
                let Argument::Text(target) = &arguments[0] else { odd() };
                if let (Some(path), _) = self.one_path(&arguments[1..]) {
                    let inode = self.recording.make(Node::Link(target.clone()), 0o777);
                    self.name(&path, Some(inode));
                }
            }
            "chmod" | "fchmodat" | "fchmodat2" => {
                if let (Some(path), rest) = self.one_path(arguments) {
                    let inode = self.recording.live.find(&path).unwrap_or_else(|| odd());
                    self.recording.happens(Effect::Mode(inode, mode(&rest[0])));
                }
            }
            "fchmod" => {
                if let Some(inode) = self.inode(&arguments[0]) {
                    self.recording.happens(Effect::Mode(inode, mode(&arguments[1])));
                }
            }
            "fsync" | "fdatasync" => {
                if let Some(inode) = self.inode(&arguments[0]) {
                    let is_folder = self.recording.live.nodes[inode].0 == Node::Folder;
                    let whole = name == "fsync" || is_folder;
                    self.recording.synced(if whole { Synced::Inode(inode) } else { Synced::Bytes(inode) }, began);
                }
            }
            "sync" | "syncfs" => self.recording.synced(Synced::All, began),
            // SQLite maps its shared memory, which is never on a disk, and reads its database that way.
            "mmap" => {
                let flags =
                    |at: usize, flag: &str| matches!(&arguments[at], Argument::Other(flags) if flags.contains(flag));
                let writes = flags(2, "PROT_WRITE") && flags(3, "MAP_SHARED");
                if writes && let Argument::File(_, Some(path)) = &arguments[4] {
                    assert!(self.place(path).is_none(), "writes through memory: {arguments:?}");
                }
            }
            "ioctl" => {
                let clones = matches!(&arguments[1], Argument::Other(what) if what.contains("CLONE"));
                assert!(!clones || self.inode(&arguments[0]).is_none(), "clones a file: {arguments:?}");
            }
            "msync" => {}
            _ => {
                let inside = arguments.iter().any(|argument| match argument {
                    Argument::File(_, Some(path)) => self.place(path).is_some(),
                    Argument::Text(_) => self.one_path(arguments).0.is_some(),
                    _ => false,
                });
                if inside {
                    odd();
                }
            }
        }
    }

    fn open(&mut self, name: &str, arguments: &[Argument], result: &str) {
        let (opened, _) = argument(result);
        let Argument::File(fd, path) = opened else { panic!("no file: {result}") };
        self.files.remove(&fd);
        let Some(path) = path.and_then(|path| self.place(&path)) else { return };
        let flags = arguments.iter().filter_map(|argument| match argument {
            Argument::Other(text) => Some(text.as_str()),
            _ => None,
        });
        let flags = flags.collect::<Vec<_>>().join(",");
        assert!(!flags.contains("O_TMPFILE"), "{name}({arguments:?})");
        let inode = match self.recording.live.find(&path) {
            Some(inode) => inode,
            None => {
                assert!(flags.contains("O_CREAT") || name == "creat", "opened and unknown: {}", path.display());
                // For `openat` the last argument, for `openat2` a field.
                let wanted = flags.rsplit("mode=").next().unwrap_or_default();
                let wanted = if name == "openat2" { wanted } else { flags.rsplit(',').next().unwrap_or_default() };
                let digits: String = wanted.chars().take_while(char::is_ascii_digit).collect();
                let wanted = u32::from_str_radix(&digits, 8).unwrap_or_else(|_| panic!("no mode: {flags}"));
                let inode = self.recording.make(Node::File(Vec::new()), wanted & !self.umask);
                self.name(&path, Some(inode));
                inode
            }
        };
        if (flags.contains("O_TRUNC") || name == "creat") && self.length(inode) > 0 {
            self.set_length(inode, 0);
        }
        self.files.insert(fd, (inode, 0, flags.contains("O_APPEND")));
    }

    fn duplicate(&mut self, of: &Argument, result: &str) {
        let fd = i32::try_from(number(result.split('<').next().unwrap_or_default())).expect("a file descriptor");
        match self.open_file(of).copied() {
            Some(file) => self.files.insert(fd, file),
            None => self.files.remove(&fd),
        };
    }

    fn write(&mut self, file: Inode, at: u64, from: &[Argument], length: u64) {
        let mut bytes: Vec<u8> = from.iter().flat_map(texts).collect();
        assert!(bytes.len() as u64 >= length, "the trace lacks bytes of a write of {length}");
        bytes.truncate(length as usize);
        if length > 0 {
            self.recording.happens(Effect::Write { file, at, bytes });
        }
    }

    /// Copies within the kernel: the bytes are those of the first file.
    fn copy(&mut self, name: &str, arguments: &[Argument], length: u64) {
        let (from, to) = if name == "sendfile" { (1, 0) } else { (0, 2) };
        let Some(file) = self.inode(&arguments[to]) else { return };
        let source = self.inode(&arguments[from]).expect("a copy into the folder is from it");
        let (_, position, _) = self.open_file(&arguments[from]).expect("a source has an offset");
        let at = *position;
        *position += length;
        let Node::File(content) = &self.recording.live.nodes[source].0 else { panic!("a copy of no file") };
        let bytes = content[at as usize..(at + length) as usize].to_vec();
        let (_, position, _) = self.open_file(&arguments[to]).expect("a copy has an offset");
        let at = *position;
        *position += length;
        if length > 0 {
            self.recording.happens(Effect::Write { file, at, bytes });
        }
    }

    fn rename(&mut self, arguments: &[Argument]) {
        let [from, to] = self.two_paths(arguments);
        let (Some(from), Some(to)) = (from, to) else {
            panic!("a rename over the edge of the recorded folder: {arguments:?}");
        };
        let exchanges = arguments.iter().any(|a| matches!(a, Argument::Other(flags) if flags.contains("EXCHANGE")));
        let live = &self.recording.live;
        let moved = live.find(&from).unwrap_or_else(|| panic!("renamed and unknown: {}", from.display()));
        let back = if exchanges { live.find(&to) } else { None };
        if live.find(&to) == Some(moved) {
            return;
        }
        let (from, to) = (self.slot(&from), self.slot(&to));
        let slots = vec![(from.0, from.1, back), (to.0, to.1, Some(moved))];
        self.recording.happens(Effect::Names(slots));
    }

    fn name(&mut self, path: &Path, to: Option<Inode>) {
        let (folder, name) = self.slot(path);
        self.recording.happens(Effect::Names(vec![(folder, name, to)]));
    }

    fn set_length(&mut self, file: Inode, length: u64) {
        if self.length(file) != length {
            self.recording.happens(Effect::Length(file, length));
        }
    }

    fn length(&self, file: Inode) -> u64 {
        match &self.recording.live.nodes[file].0 {
            Node::File(bytes) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// The folder and the name of a path.
    fn slot(&self, path: &Path) -> (Inode, Vec<u8>) {
        let folder = path.parent().and_then(|folder| self.recording.live.find(folder));
        let folder = folder.unwrap_or_else(|| panic!("in an unknown folder: {}", path.display()));
        (folder, path.file_name().expect("a path has a name").to_owned().into_vec())
    }

    /// A path relative to the recorded folder, if it lies in it. SQLite's shared memory does not count: it never
    /// reaches a disk.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        let path = path.strip_prefix(self.base).ok()?;
        if path.as_os_str().as_encoded_bytes().ends_with(b"-shm") {
            return None;
        }
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::Normal(name) => plain.push(name),
                std::path::Component::ParentDir => assert!(plain.pop(), "out of the folder: {}", path.display()),
                _ => {}
            }
        }
        Some(plain)
    }

    /// The inode of an open file of the recorded folder.
    fn inode(&self, file: &Argument) -> Option<Inode> {
        let Argument::File(fd, path) = file else { return None };
        let by_path =
            path.as_deref().and_then(|path| self.place(path)).and_then(|path| self.recording.live.find(&path));
        by_path.or_else(|| self.files.get(fd).filter(|_| path.is_none()).map(|(inode, _, _)| *inode))
    }

    fn open_file(&mut self, file: &Argument) -> Option<&mut (Inode, u64, bool)> {
        let inode = self.inode(file)?;
        let Argument::File(fd, _) = file else { return None };
        self.files.get_mut(fd).filter(|(open, _, _)| *open == inode)
    }

    /// The path given by the first arguments, if it lies in the recorded folder, and the remaining arguments.
    fn one_path<'a>(&self, arguments: &'a [Argument]) -> (Option<PathBuf>, &'a [Argument]) {
        let (folder, path, rest) = match arguments {
            [Argument::Text(path), rest @ ..] => (None, path, rest),
            [Argument::Here(folder) | Argument::File(_, Some(folder)), Argument::Text(path), rest @ ..] => {
                (Some(folder), path, rest)
            }
            [_, Argument::Text(path), rest @ ..] => (None, path, rest),
            _ => return (None, &[]),
        };
        let path = path_of(path);
        // The kernel's own link to an open file.
        if let Some(fd) = path.to_str().and_then(|path| path.strip_prefix("/proc/self/fd/")) {
            let inode = fd.parse().ok().and_then(|fd: i32| self.files.get(&fd)).map(|(inode, _, _)| *inode);
            let paths = inode.and_then(|inode| self.path_of_inode(inode));
            return (paths, rest);
        }
        let path = folder.map_or(path.clone(), |folder| folder.join(path));
        (self.place(&path), rest)
    }

    fn two_paths(&self, arguments: &[Argument]) -> [Option<PathBuf>; 2] {
        let (from, rest) = self.one_path(arguments);
        [from, self.one_path(rest).0]
    }

    fn path_of_inode(&self, inode: Inode) -> Option<PathBuf> {
        let mut path = PathBuf::new();
        let mut inode = inode;
        while inode != super::disk::ROOT {
            let ((folder, name), _) = self.recording.live.names.iter().find(|(_, to)| **to == inode)?;
            path = Path::new(&std::ffi::OsString::from_vec(name.clone())).join(&path);
            inode = *folder;
        }
        Some(path.components().collect())
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

fn number(text: &str) -> u64 {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

fn mode(argument: &Argument) -> u32 {
    let Argument::Other(text) = argument else { panic!("no mode: {argument:?}") };
    u32::from_str_radix(text, 8).unwrap_or_else(|_| panic!("no mode: {text}"))
}

/// The arguments up to the closing bracket, and the rest.
fn arguments(mut text: &str) -> (Vec<Argument>, &str) {
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches([',', ' ']);
        if let Some(rest) = text.strip_prefix(')') {
            return (found, rest);
        }
        assert!(!text.is_empty(), "arguments without an end");
        let (next, rest) = argument(text);
        found.push(next);
        text = rest;
    }
}

/// One argument, and the rest. All text is in hex, so quotes, commas and brackets are never part of it.
fn argument(text: &str) -> (Argument, &str) {
    if let Some(rest) = text.strip_prefix('"') {
        let (hex, rest) = rest.split_once('"').expect("text has an end");
        assert!(!rest.starts_with("..."), "the trace cut a text short");
        return (Argument::Text(bytes(hex)), rest);
    }
    let mut depth = 0_u32;
    let end = text.char_indices().find(|(_, c)| {
        match c {
            '{' | '[' | '<' | '(' => depth += 1,
            '}' | ']' | '>' => depth -= 1,
            ')' if depth > 0 => depth -= 1,
            ')' | ',' if depth == 0 => return true,
            _ => {}
        }
        false
    });
    let (whole, rest) = text.split_at(end.map_or(text.len(), |(at, _)| at));
    let Some((before, path)) = whole.split_once('<').filter(|_| !whole.starts_with(['{', '['])) else {
        return (Argument::Other(whole.trim().to_owned()), rest);
    };
    let is_gone = path.contains("(deleted)");
    let path = path.split('>').next().filter(|_| !is_gone).map(|hex| path_of(&bytes(hex)));
    match (before, path) {
        ("AT_FDCWD", Some(path)) => (Argument::Here(path), rest),
        (before, path) => match before.parse() {
            Ok(fd) => (Argument::File(fd, path), rest),
            Err(_) => (Argument::Other(whole.to_owned()), rest),
        },
    }
}

/// Every text in an argument: `writev` has a list of them.
fn texts(argument: &Argument) -> Vec<u8> {
    match argument {
        Argument::Text(bytes) => bytes.clone(),
        Argument::Other(list) => list.split('"').skip(1).step_by(2).flat_map(bytes).collect(),
        _ => Vec::new(),
    }
}

/// The bytes of `\x68\x69`. What is not hex (a socket's `socket:[1]`) stands for itself.
fn bytes(text: &str) -> Vec<u8> {
    let mut found = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = rest.strip_prefix(b"\\x").and_then(|hex| Some((hex.first_chunk::<2>()?, &hex[2..])));
        let value = hex.and_then(|(hex, after)| {
            let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
            Some((digit(hex[0])? * 16 + digit(hex[1])?, after))
        });
        let (byte, after) = value.unwrap_or((*first, after));
        found.push(byte);
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::disk::Disk;
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
    }

    /// Reads a trace in which `'text'` stands for text in hex.
    fn read(trace: &str) -> Recording {
        let mut recording = Recording::new(Disk { nodes: vec![(Node::Folder, 0o755)], ..Disk::default() });
        let parts: Vec<String> = trace
            .split('\'')
            .enumerate()
            .map(|(n, part)| if n % 2 == 1 { hex(part) } else { part.to_owned() })
            .collect();
        Reader::new(&mut recording, Path::new("/b"), 0o022).read(&parts.concat());
        recording
    }

    fn content(recording: &Recording, path: &str) -> String {
        let inode = recording.live.find(path.as_ref()).unwrap_or_else(|| panic!("no {path}"));
        match &recording.live.nodes[inode].0 {
            Node::File(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_made_written_renamed_and_synced() {
        let recording = read(
            r#"7 mkdirat(AT_FDCWD<'/b'>, "'d'", 0700) = 0
7 openat(AT_FDCWD<'/b'>, "'d/f'", O_RDWR|O_CREAT|O_CLOEXEC, 0666) = 3<'/b/d/f'>
7 write(3<'/b/d/f'>, "'ab'", 2) = 2
7 writev(3<'/b/d/f'>, [{iov_base="'cd'", iov_len=2}, {iov_base="'e'", iov_len=1}], 2) = 3
7 pwrite64(3<'/b/d/f'>, "'X'", 1, 1) = 1
7 fdatasync(3<'/b/d/f'>) = 0
7 renameat2(4<'/b/d'>, "'f'", AT_FDCWD<'/b'>, "'g'", RENAME_NOREPLACE) = 0
7 write(1<'pipe:[5]'>, "'said'", 4) = 4
7 unlink("'/b/none'") = -1 ENOENT (No such file or directory)
7 +++ exited with 0 +++
"#,
        );
        assert_eq!(content(&recording, "g"), "aXcde");
        assert!(recording.live.find("d/f".as_ref()).is_none());
        let modes = recording
            .live
            .paths()
            .iter()
            .map(|(path, found)| (path.display().to_string(), found.1))
            .collect::<Vec<_>>();
        assert_eq!(modes, [("d".to_owned(), 0o700), ("g".to_owned(), 0o644)]);
        assert_eq!(recording.events.len(), 7);
    }

    #[test]
    fn a_sync_that_others_came_in_between_of_covers_what_was_before_it_began() {
        let recording = read(
            r#"7 openat(AT_FDCWD<'/b'>, "'f'", O_WRONLY|O_CREAT|O_APPEND, 0600) = 3<'/b/f'>
7 fsync(3<'/b/f'> <unfinished ...>
8 write(3<'/b/f'>, "'late'", 4) = 4
7 <... fsync resumed>) = 0
"#,
        );
        assert_eq!(recording.at_risk(3).count(), 2, "name and bytes");
        assert_eq!(content(&recording, "f"), "late");
    }

    #[test]
    fn a_copy_in_the_kernel_and_an_exchange_are_understood() {
        let recording = read(
            r#"7 openat(AT_FDCWD<'/b'>, "'f'", O_RDWR|O_CREAT, 0600) = 3<'/b/f'>
7 write(3<'/b/f'>, "'abcdef'", 6) = 6
7 lseek(3<'/b/f'>, 2, SEEK_SET) = 2
7 openat2(5<'/b'>, "'g'", {flags=O_WRONLY|O_CREAT, mode=0600, resolve=RESOLVE_BENEATH}, 24) = 4<'/b/g'>
7 copy_file_range(3<'/b/f'>, NULL, 4<'/b/g'>, NULL, 1024, 0) = 4
7 renameat2(5<'/b'>, "'f'", 5<'/b'>, "'g'", RENAME_EXCHANGE) = 0
7 ftruncate(4<'/b/f'>, 1) = 0
"#,
        );
        assert_eq!((content(&recording, "f").as_str(), content(&recording, "g").as_str()), ("c", "abcdef"));
    }

    #[test]
    #[should_panic(expected = "cut a text short")]
    fn a_trace_that_lacks_bytes_is_refused() {
        read(
            r#"7 write(3<'/b/f'>, "'ab'"..., 4) = 4
"#,
        );
    }
}
