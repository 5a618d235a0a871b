//! Git's ids of files and folders, computed without git: what an export is compared with.

use super::hash::{Format, Hasher, Id};
use super::tree::order;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GitId(Id);

impl GitId {
    pub fn to_hex(self) -> String {
        self.0.to_hex()
    }
}

/// Which hash a repository uses.
#[derive(Clone, Copy, Debug)]
pub struct GitIds(Format);

impl GitIds {
    /// By git's own name for it: `sha1` or `sha256`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "sha1" => Some(Self(Format::Sha1)),
            "sha256" => Some(Self(Format::Sha256)),
            _ => None,
        }
    }

    /// Begins the id of a blob of `size` bytes.
    pub fn blob(self, size: u64) -> BlobHasher {
        let mut hasher = self.0.hasher();
        hasher.update(format!("blob {size}\0").as_bytes());
        BlobHasher(hasher)
    }

    pub fn tree(self, mut items: Vec<TreeItem<'_>>) -> GitId {
        let is_folder = |item: &TreeItem<'_>| item.mode == TreeItem::FOLDER;
        items.sort_by(|a, b| order(a.name, is_folder(a), b.name, is_folder(b)));
        let mut content = Vec::new();
        for item in &items {
            content.extend_from_slice(format!("{:o} ", item.mode).as_bytes());
            content.extend_from_slice(item.name);
            content.push(0);
            content.extend_from_slice(item.id.0.as_bytes());
        }
        GitId(self.0.id_of("tree", &content))
    }
}

/// An entry of one of git's trees.
pub struct TreeItem<'a> {
    pub mode: u32,
    pub name: &'a [u8],
    pub id: GitId,
}

impl TreeItem<'_> {
    pub const FOLDER: u32 = super::tree::MODE_FOLDER;
    pub const FILE: u32 = 0o100_644;
    pub const PROGRAM: u32 = 0o100_755;
    /// The content of a symlink is its target.
    pub const SYMLINK: u32 = 0o120_000;
}

pub struct BlobHasher(Hasher);

impl BlobHasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> GitId {
        GitId(self.0.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_git_gives() {
        let ids = GitIds::named("sha1").unwrap();
        assert_eq!(ids.tree(Vec::new()).to_hex(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let mut blob = ids.blob(6);
        blob.update(b"hel");
        blob.update(b"lo\n");
        let blob = blob.finish();
        assert_eq!(blob.to_hex(), "ce013625030ba8dba906f756967f9e9ca394464a");
        let tree = ids.tree(vec![TreeItem { mode: TreeItem::FILE, name: b"f", id: blob }]);
        assert_eq!(tree.to_hex(), "10731d0b170b98481a00bdca161e874e0ab93377");
    }
}
