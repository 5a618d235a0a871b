//! Where scanned bytes go: into the store for a capture, only through the hash for a plan.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, OnceLock};

use piton_host::{Index, Sink};
use piton_model::diff::TreeSource;
use piton_model::edit::NewTrees;
use piton_model::{ObjectId, Tree};
use piton_store::{Batch, CHUNKED_FROM, Packed, Reader, StoreError, Writer, pack_blob, pack_large, pack_tree};

/// Stores what a scan reads. Hashing and packing happen outside the writer's lock, on the scan's own threads.
pub(crate) struct StoringSink<'s> {
    writer: Mutex<Writer<'s>>,
    trees: Mutex<HashMap<ObjectId, Vec<u8>>>,
    /// Reads existing objects back before relying on them.
    distrusts: bool,
}

impl<'s> StoringSink<'s> {
    pub(crate) fn new(writer: Writer<'s>) -> Self {
        Self { writer: Mutex::new(writer), trees: Mutex::default(), distrusts: false }
    }

    /// For what will be the only copy: an existing object that is damaged is stored again.
    pub(crate) fn distrusting(self) -> Self {
        Self { distrusts: true, ..self }
    }

    /// The writer, with all that was stored, and the trees that are not committed yet.
    pub(crate) fn finish(self) -> (Writer<'s>, FreshTrees) {
        let trees = self.trees.into_inner().unwrap_or_else(|e| e.into_inner());
        (self.writer.into_inner().unwrap_or_else(|e| e.into_inner()), FreshTrees::new(trees))
    }

    fn contains(&self, id: &ObjectId) -> Result<bool, StoreError> {
        let writer = self.writer.lock().unwrap_or_else(|e| e.into_inner());
        if !self.distrusts || writer.is_added(id) {
            return writer.contains(id);
        }
        let store = writer.store();
        // Read without the lock, which the other threads need.
        drop(writer);
        store.is_sound(id)
    }

    fn append(&self, packed: io::Result<Packed>) -> Result<(), StoreError> {
        let packed = packed.map_err(pack_error)?;
        let batch = self.writer.lock().unwrap_or_else(|e| e.into_inner()).append_later(packed)?;
        batch.map_or(Ok(()), Batch::write)
    }
}

fn pack_error(source: io::Error) -> StoreError {
    StoreError::Io { what: "cannot pack a file for", path: "the store".into(), source }
}

/// Converts a stream's own error into an error of the store.
struct Failure(StoreError);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(pack_error(error))
    }
}

impl Sink for StoringSink<'_> {
    type Error = StoreError;

    fn large_from(&self) -> u64 {
        CHUNKED_FROM
    }

    fn small(&self, bytes: &[u8]) -> Result<ObjectId, StoreError> {
        let id = ObjectId::of_blob(bytes);
        if !self.contains(&id)? {
            self.append(pack_blob(id, bytes))?;
        }
        Ok(id)
    }

    fn large(&self, bytes: &mut dyn Read) -> Result<(ObjectId, u64), StoreError> {
        let chunk = |id: ObjectId, bytes: &[u8]| {
            if !self.contains(&id).map_err(Failure)? {
                self.append(pack_blob(id, bytes)).map_err(Failure)?;
            }
            Ok(())
        };
        let (id, length, list) = pack_large(bytes, chunk).map_err(|Failure(error)| error)?;
        if !self.contains(&id)? {
            self.append(Ok(list))?;
        }
        Ok((id, length))
    }

    fn tree(&self, id: ObjectId, encoded: Vec<u8>) -> Result<(), StoreError> {
        if !self.contains(&id)? {
            self.append(pack_tree(id, &encoded))?;
        }
        self.trees.lock().unwrap_or_else(|e| e.into_inner()).insert(id, encoded);
        Ok(())
    }
}

/// A larger file is not compared or merged line by line, so its bytes need not be at hand.
const LARGEST_KEPT: u64 = 16 << 20;

/// Hashes what a scan reads and keeps the trees; with `contents`, also the bytes of files, for a diff with now.
#[derive(Default)]
pub(crate) struct HashingSink {
    trees: Mutex<HashMap<ObjectId, Vec<u8>>>,
    contents: Option<Mutex<HashMap<ObjectId, Vec<u8>>>>,
}

impl HashingSink {
    pub(crate) fn with_contents() -> Self {
        Self { trees: Mutex::default(), contents: Some(Mutex::default()) }
    }

    pub(crate) fn finish(self) -> (FreshTrees, HashMap<ObjectId, Vec<u8>>) {
        let contents = self.contents.map(|c| c.into_inner().unwrap_or_else(|e| e.into_inner()));
        (FreshTrees::new(self.trees.into_inner().unwrap_or_else(|e| e.into_inner())), contents.unwrap_or_default())
    }
}

impl Sink for HashingSink {
    type Error = Infallible;

    fn large_from(&self) -> u64 {
        CHUNKED_FROM
    }

    fn small(&self, bytes: &[u8]) -> Result<ObjectId, Infallible> {
        let id = ObjectId::of_blob(bytes);
        if let Some(contents) = &self.contents {
            contents.lock().unwrap_or_else(|e| e.into_inner()).insert(id, bytes.to_vec());
        }
        Ok(id)
    }

    fn large(&self, bytes: &mut dyn Read) -> Result<(ObjectId, u64), Infallible> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 256 << 10];
        let mut length = 0;
        let mut kept = Vec::new();
        // The scan's streams end at an error and report it themselves.
        while let Ok(n @ 1..) = bytes.read(&mut buffer) {
            hasher.update(&buffer[..n]);
            length += n as u64;
            if self.contents.is_some() && length <= LARGEST_KEPT {
                kept.extend_from_slice(&buffer[..n]);
            }
        }
        let id = ObjectId(*hasher.finalize().as_bytes());
        if let Some(contents) = self.contents.as_ref().filter(|_| length <= LARGEST_KEPT) {
            contents.lock().unwrap_or_else(|e| e.into_inner()).insert(id, kept);
        }
        Ok((id, length))
    }

    fn tree(&self, id: ObjectId, encoded: Vec<u8>) -> Result<(), Infallible> {
        self.trees.lock().unwrap_or_else(|e| e.into_inner()).insert(id, encoded);
        Ok(())
    }
}

/// Trees that a scan made and the store may not have; and those that were looked at since, for one act compares the
/// same trees several times.
#[derive(Default)]
pub(crate) struct FreshTrees {
    encoded: HashMap<ObjectId, Vec<u8>>,
    decoded: Mutex<HashMap<ObjectId, Arc<Tree>>>,
    before: Option<Before>,
}

/// The stat cache of before the scan. It knows the trees of the last capture, which is what a new one is compared with and
/// what most rewinds go back to, and has them at hand.
struct Before {
    index: Index,
    places: OnceLock<HashMap<ObjectId, usize>>,
}

/// Most trees kept in memory: a first capture reads each one only once.
const AT_HAND: usize = 8192;

impl FreshTrees {
    fn new(encoded: HashMap<ObjectId, Vec<u8>>) -> Self {
        Self { encoded, decoded: Mutex::default(), before: None }
    }

    /// Adds more trees.
    pub(crate) fn with(mut self, other: Self, new: &NewTrees) -> Self {
        self.encoded.extend(other.encoded);
        self.encoded.extend(new.iter().map(|(id, tree)| (*id, tree.encode())));
        self
    }

    /// Takes trees from the stat cache of before the scan where it has them.
    pub(crate) fn with_before(self, index: Option<Index>) -> Self {
        Self { before: index.map(|index| Before { index, places: OnceLock::new() }), ..self }
    }

    /// The stat cache of before the scan.
    pub(crate) fn index_before(&self) -> Option<&Index> {
        self.before.as_ref().map(|before| &before.index)
    }

    fn tree_before(&self, id: &ObjectId) -> Option<Tree> {
        let before = self.before.as_ref()?;
        let places = before.places.get_or_init(|| before.index.trees());
        before.index.tree(*places.get(id)?)
    }
}

/// Fresh trees laid over the store.
pub(crate) struct Trees<'a> {
    pub fresh: &'a FreshTrees,
    pub store: &'a Reader,
}

impl TreeSource for Trees<'_> {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        let mut decoded = self.fresh.decoded.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(tree) = decoded.get(id) {
            return Ok(tree.clone());
        }
        let tree = match self.fresh.encoded.get(id) {
            Some(encoded) => Arc::new(Tree::decode(encoded).map_err(|_| StoreError::Damaged(*id))?),
            None => match self.fresh.tree_before(id) {
                Some(tree) => Arc::new(tree),
                None => self.store.tree(id)?,
            },
        };
        if decoded.len() < AT_HAND {
            decoded.insert(*id, tree.clone());
        }
        Ok(tree)
    }
}
