//! The demo's scratch folder: a project, an agent that spoils it, and eyes of its own.
//!
//! The proof must not lean on what it proves: [`Snapshot`] reads the folder without a line of the engine's code.

#![expect(
    clippy::disallowed_methods,
    reason = "the scratch folder is the demo's own, and the proof must not be the engine's"
)]

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every path beneath a folder, with its permission bits and its bytes or the link's target.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, (u32, Vec<u8>)>);

impl Snapshot {
    /// Reads a folder.
    pub fn of(root: &Path) -> io::Result<Self> {
        let mut found = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                let meta = std::fs::symlink_metadata(&path)?;
                let content = if meta.is_symlink() {
                    path.read_link()?.into_os_string().into_encoded_bytes()
                } else if meta.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else {
                    std::fs::read(&path)?
                };
                let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
                found.insert(name, (meta.permissions().mode(), content));
            }
        }
        Ok(Self(found))
    }

    /// How many files and links there are.
    pub fn files(&self) -> usize {
        // A folder's mode says what it is.
        self.0.values().filter(|(mode, _)| mode & 0o170_000 != 0o040_000).count()
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> usize {
        self.0.values().map(|(_, content)| content.len()).sum()
    }

    /// The same, had the user added to it what [`add_own`] adds.
    pub fn with_own(mut self) -> Self {
        if let Some((_, content)) = self.0.get_mut(Path::new(PRICE)) {
            content.extend_from_slice(OWN.as_bytes());
        }
        self
    }

    /// Paths that are not the same in both.
    pub fn differing<'a>(&'a self, other: &'a Self) -> Vec<&'a PathBuf> {
        let all: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        all.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path)).collect()
    }
}

/// A small project.
pub fn make_project(root: &Path) -> io::Result<()> {
    for (name, text) in [
        ("README.md", "# shop\n\nA very small shop.\n"),
        ("src/cart.py", "from price import total\n\n\ndef checkout(items):\n    return total(items)\n"),
        (PRICE, "TAX = 0.19\n\n\ndef total(items):\n    return sum(items) * (1 + TAX)\n"),
        ("tests/test_cart.py", "from cart import checkout\n\n\ndef test_empty():\n    assert checkout([]) == 0\n"),
        ("tests/test_price.py", "from price import total\n\n\ndef test_tax():\n    assert total([100]) == 119\n"),
        ("run.sh", "#!/bin/sh\nexec python3 src/cart.py\n"),
    ] {
        let path = root.join(name);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    std::fs::set_permissions(root.join("run.sh"), std::fs::Permissions::from_mode(0o755))?;
    std::os::unix::fs::symlink("src/price.py", root.join("price"))
}

/// What the agent does first; the story shows the same in words.
pub fn help(root: &Path) -> io::Result<()> {
    std::fs::write(root.join("src/discount.py"), "def discount(price):\n    return price * 0.5\n")
}

/// What the agent does then; the story shows the same as shell commands.
pub fn spoil(root: &Path) -> io::Result<()> {
    let price = "TAX = 0.0  # TODO\n\n\ndef total(items):\n    return sum(items)\n";
    std::fs::write(root.join(PRICE), price)?;
    std::fs::set_permissions(root.join("run.sh"), std::fs::Permissions::from_mode(0o644))?;
    std::fs::remove_dir_all(root.join("tests"))
}

/// What the user adds to a file, whatever is in it.
pub fn add_own(root: &Path) -> io::Result<()> {
    let path = root.join(PRICE);
    let text = std::fs::read_to_string(&path)?;
    std::fs::write(path, format!("{text}{OWN}"))
}

const PRICE: &str = "src/price.py";
const OWN: &str = "\n\ndef shipping():\n    return 5\n";

/// Makes a folder.
pub fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}
