//! Blobs and trees: taking them in, giving them out. What is given out is what was taken in, or an error.

use std::io::{self, Read, Write};
use std::sync::Arc;

use piton_model::diff::TreeSource;
use piton_model::{ObjectId, Tree};
use rusqlite::OptionalExtension;

use crate::error::StoreError;
use crate::pack::{self, Kind, Place};
use crate::write::Writer;
use crate::{Reader, Store, pack::Sound};

/// Files of this size and more are kept in chunks that their content decides, so that a small edit of a large file
/// stores a few chunks and not the file.
pub const CHUNKED_FROM: u64 = 1 << 20;

const CHUNK_MIN: usize = 64 << 10;
const CHUNK_AVERAGE: usize = 256 << 10;
pub(crate) const CHUNK_MAX: usize = 1 << 20;

/// An object ready to be written. Made outside any lock, since that is where the work is.
pub struct Packed(pub(crate) pack::Packed);

/// Packs a small file.
pub fn pack_blob(id: ObjectId, bytes: &[u8]) -> io::Result<Packed> {
    pack::pack(Kind::Blob, id, bytes).map(Packed)
}

/// Packs a tree.
pub fn pack_tree(id: ObjectId, encoded: &[u8]) -> io::Result<Packed> {
    pack::pack(Kind::Tree, id, encoded).map(Packed)
}

/// Splits a stream into chunks, gives each to `chunk`, and returns the id and length of the whole with its list of
/// chunks packed.
pub fn pack_large<E: From<io::Error>>(
    bytes: &mut dyn Read,
    mut chunk: impl FnMut(ObjectId, &[u8]) -> Result<(), E>,
) -> Result<(ObjectId, u64, Packed), E> {
    let mut whole = blake3::Hasher::new();
    let mut list = Vec::new();
    let mut length = 0;
    for piece in fastcdc::v2020::StreamCDC::new(bytes, CHUNK_MIN, CHUNK_AVERAGE, CHUNK_MAX) {
        let piece = piece.map_err(|e| io::Error::other(e.to_string()))?;
        whole.update(&piece.data);
        let id = ObjectId::of_blob(&piece.data);
        list.extend_from_slice(&id.0);
        list.extend_from_slice(&(piece.data.len() as u32).to_le_bytes());
        length += piece.data.len() as u64;
        chunk(id, &piece.data)?;
    }
    let id = ObjectId(*whole.finalize().as_bytes());
    Ok((id, length, Packed(pack::pack(Kind::Chunks, id, &list)?)))
}

impl Writer<'_> {
    /// Takes in a whole blob. Like all that comes one by one, it is stored again where the copy that is there is damaged: the
    /// good bytes are at hand.
    pub fn blob(&mut self, bytes: &[u8]) -> Result<ObjectId, StoreError> {
        let id = ObjectId::of_blob(bytes);
        if !self.contains_sound(&id)? {
            self.append(pack_blob(id, bytes).map_err(StoreError::io("cannot pack", self.folder()))?)?;
        }
        Ok(id)
    }

    /// Takes in a large blob as it comes, in chunks. Returns its id and its length.
    pub fn large(&mut self, bytes: &mut dyn Read) -> Result<(ObjectId, u64), StoreError> {
        struct Failure(StoreError);
        impl From<io::Error> for Failure {
            fn from(source: io::Error) -> Self {
                Self(StoreError::Io { what: "cannot read", path: "a transcript".into(), source })
            }
        }
        let (id, length, list) = pack_large(bytes, |id, bytes| {
            if !self.contains_sound(&id).map_err(Failure)? {
                self.append(pack_blob(id, bytes)?).map_err(Failure)?;
            }
            Ok(())
        })
        .map_err(|Failure(error)| error)?;
        if !self.contains_sound(&id)? {
            self.append(list)?;
        }
        Ok((id, length))
    }

    /// Takes in a tree.
    pub fn tree(&mut self, tree: &Tree) -> Result<ObjectId, StoreError> {
        let encoded = tree.encode();
        let id = ObjectId::of_tree(&encoded);
        if !self.contains_sound(&id)? {
            self.append(pack_tree(id, &encoded).map_err(StoreError::io("cannot pack", self.folder()))?)?;
        }
        Ok(id)
    }
}

impl Writer<'_> {
    /// Takes in a tree though there is one: what is there is damaged.
    pub fn tree_again(&mut self, tree: &Tree) -> Result<(), StoreError> {
        let encoded = tree.encode();
        let id = ObjectId::of_tree(&encoded);
        self.append(pack_tree(id, &encoded).map_err(StoreError::io("cannot pack", self.folder()))?)
    }
}

impl Reader {
    /// Whether an object's own record can be read back; the chunks that it may list are objects of their own.
    pub fn is_sound(&self, id: &ObjectId) -> Result<bool, StoreError> {
        match self.object(id) {
            Ok(_) => Ok(true),
            Err(StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::Io { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether an object is there, as far as the rows tell.
    pub fn contains(&self, id: &ObjectId) -> Result<bool, StoreError> {
        Ok(self.place(id)?.is_some())
    }

    pub(crate) fn place(&self, id: &ObjectId) -> Result<Option<Place>, StoreError> {
        let place = self
            .db()
            .prepare_cached(
                "SELECT pack, offset, length FROM fresh_objects WHERE id = ?1
                 UNION ALL SELECT pack, offset, length FROM objects WHERE id = ?1 LIMIT 1",
            )?
            .query_row([&id.0[..]], |r| {
                Ok(Place { pack: r.get(0)?, offset: r.get::<_, i64>(1)? as u64, length: r.get(2)? })
            })
            .optional()?;
        Ok(place)
    }

    pub(crate) fn object(&self, id: &ObjectId) -> Result<Sound, StoreError> {
        let mut sound = self.stored(id)?;
        // From the top of a chain of deltas down to what is whole, and back up.
        let mut above = Vec::new();
        while let Some(delta) = &sound.delta {
            let base = self.stored(&delta.base)?;
            above.push(std::mem::replace(&mut sound, base));
            if above.len() > pack::DEEPEST_DELTA {
                return Err(StoreError::Damaged(*id));
            }
        }
        while let Some(delta) = above.pop() {
            sound = delta.over(&sound.raw).ok_or(StoreError::Damaged(*id))?;
        }
        Ok(sound)
    }

    /// An object as its pack has it.
    fn stored(&self, id: &ObjectId) -> Result<Sound, StoreError> {
        let place = self.place(id)?.ok_or(StoreError::Missing(*id))?;
        let file = self.pack_file(place.pack)?;
        let sound = pack::read(&file, &place).map_err(StoreError::io("cannot read", &self.pack_path(place.pack)))?;
        sound.filter(|s| s.id == *id).ok_or(StoreError::Damaged(*id))
    }

    /// Writes a blob's bytes; the inner error is the writer's. Nothing wrong is ever written whole: a damaged blob
    /// ends in an error.
    pub fn write_blob(&self, id: &ObjectId, to: &mut dyn Write) -> Result<io::Result<()>, StoreError> {
        let sound = self.here_or_beside(id)?;
        match sound.kind {
            Kind::Blob => Ok(to.write_all(&sound.raw)),
            Kind::Chunks => {
                let mut whole = blake3::Hasher::new();
                for chunk in chunks(&sound.raw).ok_or(StoreError::Damaged(*id))? {
                    let piece = self.here_or_beside(&chunk)?;
                    if piece.kind != Kind::Blob {
                        return Err(StoreError::Damaged(*id));
                    }
                    whole.update(&piece.raw);
                    if let Err(error) = to.write_all(&piece.raw) {
                        return Ok(Err(error));
                    }
                }
                if whole.finalize().as_bytes() != &id.0 {
                    return Err(StoreError::Damaged(*id));
                }
                Ok(Ok(()))
            }
            Kind::Tree | Kind::Timeline | Kind::Commit => Err(StoreError::Damaged(*id)),
        }
    }

    /// A blob's bytes.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.write_blob(id, &mut bytes)?.map_err(StoreError::io("cannot read", &self.folder))?;
        Ok(bytes)
    }
}

/// The chunks of a large file.
pub(crate) fn chunks(list: &[u8]) -> Option<Vec<ObjectId>> {
    let (entries, rest) = list.as_chunks::<36>();
    rest.is_empty().then(|| {
        entries
            .iter()
            .map(|entry| {
                let mut id = [0; 32];
                id.copy_from_slice(&entry[..32]);
                ObjectId(id)
            })
            .collect()
    })
}

impl TreeSource for Reader {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        let sound = self.here_or_beside(id)?;
        if sound.kind != Kind::Tree {
            return Err(StoreError::Damaged(*id));
        }
        Tree::decode(&sound.raw).map(Arc::new).map_err(|_| StoreError::Damaged(*id))
    }
}

impl TreeSource for Store {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        Reader::tree(self, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PATIENCE;

    /// A store with a chain of so many deltas, and the id and content of the last.
    fn chain(length: usize) -> (tempfile::TempDir, Store, ObjectId, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let lock = store.lock(PATIENCE).unwrap();
        let mut writer = store.write(&lock).unwrap();
        let mut raw: Vec<u8> = (0..2_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let mut id = writer.blob(&raw).unwrap();
        for n in 0..length {
            let base = (id, raw.clone());
            raw[n * 7] ^= 0x55;
            id = ObjectId::of_blob(&raw);
            let packed = pack::pack_delta(Kind::Blob, id, &raw, (base.0, &base.1));
            assert!(packed.bytes.len() < 400, "a delta is short");
            writer.append(Packed(packed)).unwrap();
        }
        writer.commit(true, false).unwrap();
        drop(lock);
        (folder, store, id, raw)
    }

    #[test]
    fn a_delta_gives_what_was_put_in_and_a_chain_has_an_end() {
        let (_folder, store, id, raw) = chain(pack::DEEPEST_DELTA);
        assert_eq!(store.blob(&id).unwrap(), raw);
        assert!(store.verify().unwrap().damage.is_empty());
        let (_folder, store, id, _) = chain(pack::DEEPEST_DELTA + 1);
        assert!(matches!(store.blob(&id), Err(StoreError::Damaged(found)) if found == id));
    }

    /// What is captured beside the tree, a file outside the workspace say, relied on the damaged copy while its bytes were at hand.
    #[test]
    fn what_is_taken_in_one_by_one_is_stored_again_where_the_copy_that_is_there_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let lock = store.lock(PATIENCE).unwrap();
        let put = || {
            let mut writer = store.write(&lock).unwrap();
            let small = writer.blob(b"precious").unwrap();
            let large = writer.large(&mut &[7; 3_000_000][..]).unwrap().0;
            writer.commit(true, false).unwrap();
            [small, large]
        };
        let ids = put();
        let length = std::fs::metadata(store.pack_path(1)).unwrap().len();
        for id in ids {
            let place = store.place(&id).unwrap().unwrap();
            let path = store.pack_path(place.pack);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[place.offset as usize + place.length as usize - 1] ^= 1;
            std::fs::write(path, bytes).unwrap();
            assert!(store.blob(&id).is_err());
        }
        assert_eq!(put(), ids);
        assert!(ids.iter().all(|id| store.blob(id).is_ok()));
        let healed = std::fs::metadata(store.pack_path(1)).unwrap().len();
        put();
        let same = std::fs::metadata(store.pack_path(1)).unwrap().len();
        assert!(healed > length && same == healed, "{length} {healed} {same}");
    }

    #[test]
    fn a_delta_over_something_else_is_never_served() {
        let raw = b"some text that is long enough to be packed, again and again and again".repeat(4);
        let other = b"another text of which nothing is in the first, as far as anybody can tell".repeat(4);
        let id = ObjectId::of_blob(&raw);
        let delta = pack::pack_delta(Kind::Blob, id, &raw, (ObjectId::of_blob(b"base"), b"base"));
        let sound = || pack::unpack(&delta.bytes).unwrap();
        assert_eq!(sound().over(b"base").unwrap().raw, raw);
        assert!(sound().over(&other).is_none_or(|whole| whole.raw == raw));
    }
}
