//! The folders of the new state: what was just listed, laid over what the index knows.

use piton_model::SkipReason;
use piton_model::path::compare_bytes;

use crate::index::{EntryView, FolderView, Index, Kind};
use crate::rules::{name_of, parent_of};
use crate::walk::{FolderNode, Node, NodeKind, WalkFound};

/// A folder of the new state: as in the index, or as listed.
pub(crate) enum Slot<'i> {
    Known(FolderView<'i>),
    Listed(FolderNode),
}

impl Slot<'_> {
    pub(crate) fn path(&self) -> &[u8] {
        match self {
            Self::Known(view) => view.path(),
            Self::Listed(node) => &node.path,
        }
    }
}

/// Lays the listed folders over those of the index, in path order, and drops what no longer exists.
pub(crate) fn merge<'i>(old: Option<&'i Index>, found: WalkFound) -> Vec<Slot<'i>> {
    let mut listed = found.folders;
    listed.sort_unstable_by(|a, b| compare_bytes(&a.path, &b.path));
    let mut slots: Vec<Slot<'i>> = Vec::with_capacity(old.map_or(0, Index::len) + listed.len());
    let mut listed = listed.into_iter().peekable();
    for view in old.into_iter().flat_map(Index::folders) {
        while let Some(node) = listed.next_if(|n| compare_bytes(&n.path, view.path()).is_lt()) {
            slots.push(Slot::Listed(node));
        }
        match listed.next_if(|n| n.path == view.path()) {
            Some(node) => slots.push(Slot::Listed(node)),
            None => slots.push(Slot::Known(view)),
        }
    }
    slots.extend(listed.map(Slot::Listed));
    for (path, gone) in found.failed {
        mend_parent(&mut slots, &path, (!gone).then_some(SkipReason::Unreadable));
    }
    for (path, reason) in found.apart {
        mend_parent(&mut slots, &path, Some(reason));
    }
    drop_orphans(slots)
}

/// Marks a folder that is left out as skipped in its parent or, without a reason, removes it there, since it is gone.
fn mend_parent(slots: &mut [Slot<'_>], path: &[u8], reason: Option<SkipReason>) {
    let Ok(at) = slots.binary_search_by(|s| compare_bytes(s.path(), parent_of(path))) else { return };
    let name = name_of(path);
    if let Slot::Known(view) = &slots[at] {
        // A worktree that leads to a folder reports this at each scan.
        let is_known = |entry: &EntryView<'_>| matches!(entry.kind, Kind::Skipped(known) if Some(known) == reason);
        if view.entries().any(|entry| entry.name == name && is_known(&entry)) {
            return;
        }
        slots[at] = Slot::Listed(to_node(view));
    }
    let Slot::Listed(node) = &mut slots[at] else { return };
    // If the listing found something other than a folder there, that is what is there now.
    let is_folder = |kind: &NodeKind| matches!(kind, NodeKind::Folder | NodeKind::Skipped(SkipReason::BareRepository));
    let Some(at) = node.entries.iter().position(|e| e.name == name && is_folder(&e.kind)) else {
        return;
    };
    match reason {
        Some(reason) => node.entries[at].kind = NodeKind::Skipped(reason),
        None => {
            // It disappeared between the listing of its parent and its own: something else may be there by now.
            node.young = true;
            node.entries.remove(at);
        }
    }
}

fn to_node(view: &FolderView<'_>) -> FolderNode {
    let head = view.head();
    let entries = view
        .entries()
        .map(|e| Node {
            name: e.name.to_vec(),
            kind: match e.kind {
                Kind::File(id) => NodeKind::File(Some(id)),
                Kind::Symlink(target) => NodeKind::Symlink(target.to_vec()),
                Kind::Folder => NodeKind::Folder,
                Kind::Skipped(reason) => NodeKind::Skipped(reason),
            },
            young: e.young,
            signature: e.signature,
        })
        .collect();
    FolderNode {
        path: view.path().to_vec(),
        signature: head.signature,
        young: head.young,
        has_git: head.has_git,
        partly: head.partly,
        git_stamp: head.git_stamp,
        entries,
    }
}

/// Drops folders that their parent no longer lists. Parents come first, so one pass is enough.
fn drop_orphans(slots: Vec<Slot<'_>>) -> Vec<Slot<'_>> {
    let mut kept: Vec<Slot<'_>> = Vec::with_capacity(slots.len());
    // The parents of the last kept folder, as positions in `kept`.
    let mut above: Vec<usize> = Vec::new();
    for slot in slots {
        let path = slot.path();
        if path.is_empty() {
            above = vec![kept.len()];
            kept.push(slot);
            continue;
        }
        let parent = parent_of(path);
        while above.last().is_some_and(|at| !is_beneath(path, kept[*at].path())) {
            above.pop();
        }
        let name = name_of(path);
        let above_it = above.last().filter(|at| kept[**at].path() == parent);
        let is_listed = above_it.is_some_and(|at| match &kept[*at] {
            // The index is valid: a folder that it knows is in its parent's block.
            Slot::Known(_) => true,
            Slot::Listed(node) => node
                .entries
                .binary_search_by(|e| e.name[..].cmp(name))
                .is_ok_and(|at| matches!(node.entries[at].kind, NodeKind::Folder)),
        });
        if is_listed {
            above.push(kept.len());
            kept.push(slot);
        }
    }
    kept
}

fn is_beneath(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty() || (path.starts_with(folder) && path.get(folder.len()) == Some(&b'/'))
}
