//! The entries of git's trees, and the sort order of trees and the index.

use std::cmp::Ordering;

use super::hash::{Format, Id};

pub(super) const MODE_FOLDER: u32 = 0o040_000;

/// One entry of a tree.
pub(super) struct Item<'a> {
    pub mode: u32,
    pub name: &'a [u8],
    pub id: Id,
}

impl Item<'_> {
    pub(super) fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == MODE_FOLDER
    }
}

/// The entries of a tree, which must be sorted.
pub(super) struct Items<'a> {
    rest: &'a [u8],
    last: Option<(&'a [u8], bool)>,
    tree: Id,
    format: Format,
}

impl<'a> Items<'a> {
    pub(super) fn new(content: &'a [u8], tree: Id, format: Format) -> Self {
        Self { rest: content, last: None, tree, format }
    }

    /// The next entry, or why it is invalid.
    pub(super) fn next(&mut self) -> Result<Option<Item<'a>>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let item = self.parse().ok_or_else(|| format!("tree {} is damaged", self.tree.to_hex()))?;
        Ok(Some(item))
    }

    fn parse(&mut self) -> Option<Item<'a>> {
        let blank = self.rest.iter().take(8).position(|b| *b == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&self.rest[..blank]).ok()?, 8).ok()?;
        let rest = &self.rest[blank + 1..];
        let nul = rest.iter().position(|b| *b == 0)?;
        let (name, rest) = (&rest[..nul], &rest[nul + 1..]);
        let (id, rest) = rest.split_at_checked(self.format.len())?;
        let item = Item { mode, name, id: Id::from_bytes(id) };
        let in_order = |(last, is_folder)| order(last, is_folder, name, item.is_folder()) == Ordering::Less;
        if name.is_empty() || name.contains(&b'/') || !self.last.is_none_or(in_order) {
            return None;
        }
        self.last = Some((name, item.is_folder()));
        self.rest = rest;
        Some(item)
    }
}

/// The order of names in trees and in the index: a folder's name counts as if it ended in `/`.
pub(super) fn order(a: &[u8], a_is_folder: bool, b: &[u8], b_is_folder: bool) -> Ordering {
    let common = a.len().min(b.len());
    let end = |name: &[u8], is_folder: bool| name.get(common).copied().unwrap_or(if is_folder { b'/' } else { 0 });
    a[..common].cmp(&b[..common]).then_with(|| end(a, a_is_folder).cmp(&end(b, b_is_folder))).then_with(|| {
        // Only if an invalid name contains a NUL byte: it is not the one without.
        a.len().cmp(&b.len())
    })
}

/// The modes that git means, whatever bits an old tree has.
pub(super) fn canonical(mode: u32) -> u32 {
    match mode & 0o170_000 {
        0o100_000 if mode & 0o100 != 0 => 0o100_755,
        0o100_000 => 0o100_644,
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_sorts_as_if_its_name_ended_in_a_slash() {
        let mut names =
            [("a", true), ("a", false), ("a.b", false), ("a-b", true), ("a0", false), ("ab", true), ("b", false)];
        names.sort_by(|a, b| order(a.0.as_bytes(), a.1, b.0.as_bytes(), b.1));
        let sorted = names.map(|(name, is_folder)| if is_folder { format!("{name}/") } else { name.to_owned() });
        assert_eq!(sorted, ["a", "a-b/", "a.b", "a/", "a0", "ab/", "b"]);
    }

    #[test]
    fn a_tree_whose_lines_are_cut_off_out_of_order_or_lead_elsewhere_is_damaged() {
        let line = |mode: &str, name: &str| [format!("{mode} {name}\0").as_bytes(), &[7; 20]].concat();
        let names = |bytes: &[u8]| {
            let mut items = Items::new(bytes, Id::from_bytes(&[1; 20]), Format::Sha1);
            let mut names = Vec::new();
            while let Some(item) = items.next()? {
                names.push(String::from_utf8_lossy(item.name).into_owned());
            }
            Ok::<_, String>(names)
        };
        let whole = [line("100644", "a"), line("40000", "b")].concat();
        assert_eq!(names(&whole).unwrap(), ["a", "b"]);
        let first = line("100644", "a").len();
        for end in (1..whole.len()).filter(|end| *end != first) {
            assert!(names(&whole[..end]).is_err(), "cut at {end}");
        }
        assert!(names(&[line("100644", "b"), line("100644", "a")].concat()).is_err());
        assert!(names(&[line("100644", "a"), line("100644", "a")].concat()).is_err());
        for bad in [line("100644", "a/b"), line("100644", ""), line("10064x", "a"), line("", "a")] {
            assert!(names(&bad).is_err(), "{bad:?}");
        }
    }
}
