//! What was done to a disk, in order, and which of it a power cut may lose.

use std::collections::HashMap;

use super::disk::{Disk, Effect, Inode, Node};

/// Bytes that a disk writes atomically.
pub const SECTOR: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// `sync`, `syncfs`.
    All,
    /// Bytes and length of a file: `fdatasync`.
    Bytes(Inode),
    /// Also its permission bits, or the names in a folder: `fsync`.
    Inode(Inode),
}

#[derive(Clone, Debug)]
pub enum Event {
    Effect(Effect),
    /// A sync that has returned. It covers what had happened before event `began`, when it was requested.
    Sync(Synced, usize),
}

/// A disk, and what was done to it.
#[derive(Clone, Debug)]
pub struct Recording {
    /// As it was at the beginning, all of it durable. Includes inodes that were created later, without a name.
    pub start: Disk,
    /// With everything that was done.
    pub live: Disk,
    pub events: Vec<Event>,
    /// For each event, the sync that made it durable, if any.
    durable_by: Vec<Option<usize>>,
}

impl Recording {
    pub fn new(start: Disk) -> Self {
        Self { live: start.clone(), start, events: Vec::new(), durable_by: Vec::new() }
    }

    pub fn make(&mut self, node: Node, mode: u32) -> Inode {
        self.start.make(node.clone(), mode);
        self.live.make(node, mode)
    }

    pub fn happens(&mut self, effect: Effect) {
        self.live.apply(&effect);
        self.events.push(Event::Effect(effect));
        self.durable_by.push(None);
    }

    /// Adds a change that survives every power cut after it.
    pub fn happens_durably(&mut self, effect: Effect) {
        self.happens(effect);
        let number = self.events.len() - 1;
        self.durable_by[number] = Some(number);
    }

    /// Adds a sync that was requested when `began` events had happened.
    pub fn synced(&mut self, what: Synced, began: usize) {
        let number = self.events.len();
        for (event, by) in self.events[..began].iter().zip(&mut self.durable_by) {
            if let (Event::Effect(effect), None) = (event, &by)
                && covers(what, effect)
            {
                *by = Some(number);
            }
        }
        self.events.push(Event::Sync(what, began));
        self.durable_by.push(None);
    }

    /// Whether an event certainly survives a power cut after `at` events.
    pub fn is_durable(&self, event: usize, at: usize) -> bool {
        self.durable_by[event].is_some_and(|by| by < at)
    }

    /// The changes that a power cut after `at` events may lose.
    pub fn at_risk(&self, at: usize) -> impl Iterator<Item = (usize, &Effect)> {
        self.events[..at].iter().enumerate().filter_map(move |(number, event)| match event {
            Event::Effect(effect) if !self.is_durable(number, at) => Some((number, effect)),
            _ => None,
        })
    }

    /// The disk after a power cut when `at` events had happened. `survives` is called for each change at risk: for a
    /// write once for each of its sectors (counted from the file's beginning), else for sector 0.
    pub fn after_cut(&self, at: usize, survives: impl Fn(usize, u64) -> bool) -> Disk {
        let mut disk = self.start.clone();
        for (number, event) in self.events[..at].iter().enumerate() {
            let Event::Effect(effect) = event else { continue };
            match effect {
                _ if self.is_durable(number, at) => disk.apply(effect),
                Effect::Write { file, at, bytes } => {
                    for (from, piece) in sectors(*at, bytes) {
                        if survives(number, from / SECTOR) {
                            disk.write(*file, from, piece);
                        }
                    }
                }
                effect if survives(number, 0) => disk.apply(effect),
                _ => {}
            }
        }
        disk
    }

    /// One line for each event that matters when investigating a failure.
    pub fn describe(&self, cut: usize, survives: impl Fn(usize, u64) -> bool) -> Vec<String> {
        let names: HashMap<Inode, String> = self.names_of_inodes();
        let name = |inode: &Inode| names.get(inode).cloned().unwrap_or_else(|| format!("#{inode}"));
        let describe = |number: usize, event: &Event| {
            let text = match event {
                Event::Sync(what, began) => {
                    return format!(
                        "{number}: sync {} since {began}",
                        match what {
                            Synced::All => "all".to_owned(),
                            Synced::Bytes(inode) | Synced::Inode(inode) => name(inode),
                        }
                    );
                }
                Event::Effect(Effect::Write { file, at, bytes }) => {
                    let kept = sectors(*at, bytes).filter(|(from, _)| survives(number, from / SECTOR)).count();
                    let all = sectors(*at, bytes).count();
                    let text = format!("write {} {at}+{}", name(file), bytes.len());
                    if self.is_durable(number, cut) { text } else { format!("{text} ({kept} of {all} sectors kept)") }
                }
                Event::Effect(Effect::Length(file, length)) => format!("length {} {length}", name(file)),
                Event::Effect(Effect::Mode(inode, mode)) => format!("mode {} {mode:o}", name(inode)),
                Event::Effect(Effect::Names(slots)) => {
                    let slot = |(folder, entry, to): &(Inode, Vec<u8>, Option<Inode>)| {
                        let to = to.map_or("nothing".to_owned(), |to| format!("#{to}"));
                        format!("{}/{} is {to}", name(folder), String::from_utf8_lossy(entry))
                    };
                    slots.iter().map(slot).collect::<Vec<_>>().join(", ")
                }
            };
            let fate = match () {
                () if self.is_durable(number, cut) => "durable",
                () if survives(number, 0) => "kept",
                () => "LOST",
            };
            format!("{number}: {text}: {fate}")
        };
        self.events[..cut].iter().enumerate().map(|(number, event)| describe(number, event)).collect()
    }

    fn names_of_inodes(&self) -> HashMap<Inode, String> {
        let all = self.start.names.iter().map(|((_, name), to)| (*to, name.clone()));
        let later = self.events.iter().flat_map(|event| match event {
            Event::Effect(Effect::Names(slots)) => slots.clone(),
            _ => Vec::new(),
        });
        let later = later.into_iter().filter_map(|(_, name, to)| Some((to?, name)));
        all.chain(later).map(|(inode, name)| (inode, format!("{}#{inode}", String::from_utf8_lossy(&name)))).collect()
    }
}

/// The parts of a write that a disk writes atomically.
fn sectors(at: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut from = at;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.len().min((SECTOR - from % SECTOR) as usize));
        let found = (from, piece);
        from += piece.len() as u64;
        rest = after;
        (!found.1.is_empty()).then_some(found)
    })
}

fn covers(what: Synced, effect: &Effect) -> bool {
    match (what, effect) {
        (Synced::All, _) => true,
        (Synced::Bytes(synced), Effect::Write { file, .. } | Effect::Length(file, _)) => *file == synced,
        (Synced::Bytes(_), _) => false,
        // A rename is atomic, so it is in both folders once one of them is synced.
        (Synced::Inode(synced), Effect::Names(slots)) => slots.iter().any(|(folder, _, _)| *folder == synced),
        (Synced::Inode(synced), effect) => effect.inode() == Some(synced),
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk::ROOT;
    use super::*;

    fn write(file: Inode, at: u64, bytes: &[u8]) -> Effect {
        Effect::Write { file, at, bytes: bytes.to_vec() }
    }

    fn name(name: &str, to: Option<Inode>) -> (Inode, Vec<u8>, Option<Inode>) {
        (ROOT, name.as_bytes().to_vec(), to)
    }

    /// An empty disk with one new file.
    fn with_file() -> (Recording, Inode) {
        let mut recording = Recording::new(Disk { nodes: vec![(Node::Folder, 0o755)], ..Disk::default() });
        let file = recording.make(Node::File(Vec::new()), 0o644);
        recording.happens(Effect::Names(vec![name("f", Some(file))]));
        (recording, file)
    }

    fn content(disk: &Disk, path: &str) -> Option<Vec<u8>> {
        disk.find(path.as_ref()).map(|inode| match &disk.nodes[inode].0 {
            Node::File(bytes) => bytes.clone(),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn bytes_and_name_survive_only_what_was_synced_each_for_itself() {
        let (mut recording, file) = with_file();
        recording.happens(write(file, 0, b"bytes"));
        let at = |recording: &Recording| content(&recording.after_cut(recording.events.len(), |_, _| false), "f");
        assert_eq!(at(&recording), None);
        recording.synced(Synced::Bytes(file), 2);
        assert_eq!(at(&recording), None, "the folder was not synced");
        recording.synced(Synced::Inode(ROOT), 3);
        assert_eq!(at(&recording).unwrap(), b"bytes");
        // Nothing is certain before the sync has returned.
        assert_eq!(content(&recording.after_cut(3, |_, _| false), "f"), None);
        recording.happens(write(file, 5, b" and more"));
        assert_eq!(at(&recording).unwrap(), b"bytes");
        assert_eq!(content(&recording.after_cut(5, |_, _| true), "f").unwrap(), b"bytes and more");
    }

    #[test]
    fn what_is_written_while_a_sync_runs_is_not_covered_by_it() {
        let (mut recording, file) = with_file();
        recording.synced(Synced::Inode(ROOT), 1);
        recording.happens(write(file, 0, b"early"));
        recording.happens(write(file, 5, b"late"));
        recording.synced(Synced::All, 3);
        assert_eq!(content(&recording.after_cut(5, |_, _| false), "f").unwrap(), b"early");
    }

    #[test]
    fn a_write_is_torn_at_sectors_and_what_is_lost_before_it_reads_as_zeros() {
        let (mut recording, file) = with_file();
        recording.synced(Synced::Inode(ROOT), 1);
        recording.happens(write(file, 500, &[7; 600]));
        let disk = recording.after_cut(3, |_, sector| sector == 1);
        let bytes = content(&disk, "f").unwrap();
        assert_eq!(bytes.len(), 1024);
        assert!(bytes[..512].iter().all(|byte| *byte == 0) && bytes[512..].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn a_rename_is_whole_or_not_at_all() {
        let (mut recording, file) = with_file();
        recording.synced(Synced::All, 1);
        recording.happens(Effect::Names(vec![name("f", None), name("g", Some(file))]));
        for kept in [false, true] {
            let disk = recording.after_cut(3, |_, _| kept);
            assert_eq!(
                (disk.find("f".as_ref()), disk.find("g".as_ref())),
                if kept { (None, Some(file)) } else { (Some(file), None) }
            );
        }
        recording.synced(Synced::Bytes(file), 3);
        assert_eq!(recording.at_risk(4).count(), 1, "names are the folder's");
    }

    #[test]
    fn permission_bits_are_not_covered_by_a_sync_of_bytes_alone() {
        let (mut recording, file) = with_file();
        recording.synced(Synced::All, 1);
        recording.happens(Effect::Mode(file, 0o600));
        recording.synced(Synced::Bytes(file), 3);
        assert_eq!(recording.at_risk(4).count(), 1);
        recording.synced(Synced::Inode(file), 4);
        assert_eq!(recording.at_risk(5).count(), 0);
    }

    #[test]
    fn equal_states_have_equal_hashes_whatever_led_to_them() {
        let (mut recording, file) = with_file();
        recording.happens(write(file, 0, b"a"));
        recording.happens(write(file, 0, b"a"));
        let hash = |survives: fn(usize) -> bool| recording.after_cut(3, |event, _| survives(event)).hash();
        assert_eq!(hash(|_| true), hash(|event| event != 1));
        assert_ne!(hash(|_| true), hash(|event| event == 0));
        assert_eq!(hash(|event| event > 0), hash(|_| false), "bytes without a name are nowhere");
    }
}
