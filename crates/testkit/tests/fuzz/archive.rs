//! Session archives, which may come from anybody.

use piton_engine::Workspace;
use piton_model::ObjectId;
use piton_testkit::World;
use piton_testkit::fuzz::fuzz;

use super::host::scratch;
use super::store::{framed, sample};

const HEAD: usize = 16;

fn exported() -> Vec<u8> {
    let mut bytes = Vec::new();
    sample().open().export_session("run-1", &mut bytes).unwrap();
    bytes
}

/// A workspace to import into. Recreated after each successful import.
struct Target(World, Vec<u8>);

impl Target {
    fn new() -> Self {
        let scratch = scratch();
        let mut world = World::at(scratch.path(), |_| {});
        world.hold(scratch);
        world.write("mine", "mine\n");
        world.capture();
        let pack = pack(&world.open());
        Self(world, pack)
    }

    fn import(&mut self, bytes: &[u8]) -> String {
        let file = self.0.base().join("it.piton");
        std::fs::write(&file, bytes).unwrap();
        let mut workspace = self.0.open();
        match workspace.import_session(&file) {
            Ok(imported) => {
                drop(workspace);
                self.0.assert_sound();
                let workspace = self.0.open();
                workspace.log(Default::default()).unwrap();
                workspace.sessions().unwrap();
                let told = format!("{} {} {}", imported.turns, imported.checkpoints, imported.objects);
                drop(workspace);
                *self = Self::new();
                told
            }
            Err(error) => {
                assert!(pack(&workspace) == self.1, "a refused archive leaves the store as it was");
                error.to_string().chars().take(60).collect()
            }
        }
    }
}

fn pack(workspace: &Workspace) -> Vec<u8> {
    std::fs::read(workspace.store_folder().join("packs/000001.pack")).unwrap()
}

#[test]
fn a_changed_archive_is_refused() {
    let real = exported();
    let mut target = Target::new();
    fuzz("archive", std::slice::from_ref(&real), |bytes| {
        let said = target.import(bytes);
        assert!(bytes == real || said.contains(char::is_alphabetic), "an archive that was changed is refused");
        said
    });
}

/// An archive without its checksums: each record's kind, length and contents.
fn open(archive: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in framed(archive, HEAD, 0) {
        let raw = record.raw.unwrap();
        out.push(record.kind);
        out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        // The id of a large file does not follow from its list.
        if record.kind == 3 {
            out.extend_from_slice(&record.id);
        }
        out.extend_from_slice(&raw);
    }
    out
}

/// The archive with these contents and valid checksums.
fn closed(mut opened: &[u8]) -> Vec<u8> {
    let mut out = b"PITONAR1\x01\0\0\0\0\0\0\0".to_vec();
    while let Some((head, rest)) = opened.split_at_checked(5) {
        let length = u32::from_le_bytes(head[1..].try_into().unwrap()) as usize;
        let (id, rest) = match head[0] {
            3 => rest.split_at(rest.len().min(32)),
            _ => (&[][..], rest),
        };
        let (raw, rest) = rest.split_at(rest.len().min(length));
        opened = rest;
        let id = match head[0] {
            2 => ObjectId::of_tree(raw),
            3 => ObjectId(id.try_into().unwrap_or([0; 32])),
            _ => ObjectId::of_blob(raw),
        };
        let from = out.len();
        out.extend_from_slice(b"PiTn");
        out.extend_from_slice(&[head[0], 0, 0, 0]);
        out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        out.extend_from_slice(&id.0);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&out[from..]);
        hasher.update(raw);
        out.extend_from_slice(&hasher.finalize().as_bytes()[..8]);
        out.extend_from_slice(raw);
    }
    let digest = blake3::hash(&out);
    out.extend_from_slice(b"PITONEND");
    out.extend_from_slice(digest.as_bytes());
    out
}

#[test]
fn a_forged_archive_is_refused_or_imported_soundly() {
    let seed = open(&exported());
    let mut target = Target::new();
    let taken = target.import(&closed(&seed));
    assert!(!taken.contains(char::is_alphabetic), "what nobody changed is taken: {taken}");
    fuzz("archive-forged", &[seed], |bytes| target.import(&closed(bytes)));
}
