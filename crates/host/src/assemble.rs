//! Builds the trees and the new index from the folders of the new state.

use piton_model::plan::RootState;
use piton_model::tree::TreeEncoder;
use piton_model::{ObjectId, SkipReason};

use crate::index::{EntryView, FolderHead, Index, Kind, Signature};
use crate::read::Sink;
use crate::rules::{name_of, parent_of};
use crate::slots::Slot;
use crate::tracked;
use crate::walk::{GitStamp, Node, NodeKind};

/// A folder's tree in the new state.
#[derive(Clone, Copy)]
struct Made {
    tree: ObjectId,
    mode: u16,
    holds_skipped: bool,
}

/// Builds the trees of listed folders and of all folders above them, and the new index.
pub(crate) fn assemble<S: Sink>(
    slots: &[Slot<'_>],
    (rules, tracked): ([u8; 32], u64),
    now_ns: i64,
    old: Option<&Index>,
    sink: &S,
) -> Result<(RootState, Index), S::Error> {
    // `end[i]`: the first folder after `i` that is not beneath it. Children are `i + 1`, `end[i + 1]`, and so on.
    let mut parent = vec![usize::MAX; slots.len()];
    let mut end = vec![slots.len(); slots.len()];
    let mut above: Vec<usize> = Vec::new();
    for (at, slot) in slots.iter().enumerate() {
        if at > 0 {
            let wanted = parent_of(slot.path());
            while above.last().is_some_and(|a| slots[*a].path() != wanted) {
                above.pop().into_iter().for_each(|a| end[a] = at);
            }
            parent[at] = above.last().copied().unwrap_or(usize::MAX);
        }
        above.push(at);
    }
    let mut changed: Vec<bool> = slots.iter().map(|s| matches!(s, Slot::Listed(_))).collect();
    for at in (1..slots.len()).rev() {
        if changed[at] && parent[at] != usize::MAX {
            changed[parent[at]] = true;
        }
    }

    let mut made: Vec<Option<Made>> = vec![None; slots.len()];
    for at in (0..slots.len()).rev() {
        made[at] = Some(match &slots[at] {
            Slot::Known(view) if !changed[at] => {
                let head = view.head();
                Made { tree: head.tree, mode: head.signature.bits(), holds_skipped: head.holds_skipped }
            }
            slot => {
                let mut children = std::iter::successors(Some(at + 1), |c| end.get(*c).copied())
                    .take_while(|c| *c < end[at])
                    .peekable();
                let child = |name: &[u8]| {
                    let at = children.next_if(|c| name_of(slots[*c].path()) == name)?;
                    made[at]
                };
                make(slot, child, sink)?
            }
        });
    }

    let size = old.map_or(0, Index::size);
    let mut index = Index::new(rules, now_ns, tracked, size + size / 16);
    for (at, slot) in slots.iter().enumerate() {
        let Some(made) = &made[at] else { continue };
        match slot {
            Slot::Known(view) => {
                index.push_block(*view);
                if changed[at] {
                    index.patch_last(&made.tree, made.holds_skipped);
                }
            }
            Slot::Listed(node) => {
                let head = FolderHead {
                    signature: node.signature,
                    young: node.young,
                    has_git: node.has_git,
                    holds_skipped: made.holds_skipped,
                    partly: node.partly,
                    git_stamp: node.git_stamp,
                    tree: made.tree,
                };
                index.push(&node.path, &head, node.entries.iter().map(Node::view));
            }
        }
    }
    index.seal(old, &changed);
    let root = made.first().copied().flatten();
    let root = root.map(|m| RootState { tree: m.tree, mode: m.mode });
    Ok((root.unwrap_or(RootState { tree: crate::read::empty_tree().0, mode: 0o755 }), index))
}

/// An index of what has been read so far: the next scan lists every folder again and reads the files that are not in
/// it.
pub(crate) fn partial_index(slots: &[Slot<'_>], rules: [u8; 32], now_ns: i64) -> Index {
    let mut index = Index::new(rules, now_ns, tracked::NONE_WILL_DO, 0);
    for slot in slots {
        let mut head = FolderHead {
            signature: Signature::default(),
            young: true,
            has_git: false,
            holds_skipped: true,
            partly: None,
            git_stamp: GitStamp::NONE_WILL_DO,
            tree: ObjectId([0; 32]),
        };
        match slot {
            Slot::Known(view) => {
                (head.has_git, head.partly) = (view.head().has_git, view.head().partly);
                index.push(view.path(), &head, view.entries());
            }
            Slot::Listed(node) => {
                (head.has_git, head.partly) = (node.has_git, node.partly);
                let known = node.entries.iter().filter(|node| !matches!(node.kind, NodeKind::File(None)));
                index.push(&node.path, &head, known.map(Node::view));
            }
        }
    }
    index.seal(None, &[]);
    index
}

/// Builds one folder's tree and passes it to the sink; `child` gives its subfolders' trees in name order.
fn make<S: Sink>(slot: &Slot<'_>, mut child: impl FnMut(&[u8]) -> Option<Made>, sink: &S) -> Result<Made, S::Error> {
    let mut holds_skipped;
    let (mode, encoded) = match slot {
        Slot::Known(view) => {
            let head = view.head();
            holds_skipped = head.has_git;
            let mut out = TreeEncoder::new(head.has_git);
            for entry in view.entries() {
                encode(&mut out, entry, &mut child, &mut holds_skipped);
            }
            (head.signature.bits(), out.finish())
        }
        Slot::Listed(node) => {
            holds_skipped = node.has_git;
            let mut out = TreeEncoder::new(node.has_git);
            for e in &node.entries {
                encode(&mut out, e.view(), &mut child, &mut holds_skipped);
            }
            (node.signature.bits(), out.finish())
        }
    };
    let tree = ObjectId::of_tree(&encoded);
    sink.tree(tree, encoded)?;
    Ok(Made { tree, mode, holds_skipped })
}

fn encode(
    out: &mut TreeEncoder,
    entry: EntryView<'_>,
    child: &mut impl FnMut(&[u8]) -> Option<Made>,
    holds_skipped: &mut bool,
) {
    match entry.kind {
        Kind::File(blob) => out.file(entry.name, entry.signature.bits(), entry.signature.size, &blob),
        Kind::Symlink(target) => out.symlink(entry.name, target),
        // No tree can hold such a name; marking the folder as having a `.git` prevents its removal.
        Kind::Skipped(SkipReason::GitName) => *holds_skipped = true,
        Kind::Skipped(reason) => {
            *holds_skipped = true;
            out.skipped(entry.name, reason);
        }
        Kind::Folder => {
            // Each listed folder has a slot; one without would be unknown, not absent.
            match child(entry.name) {
                Some(made) => {
                    *holds_skipped |= made.holds_skipped;
                    out.folder(entry.name, made.mode, &made.tree, made.holds_skipped);
                }
                None => {
                    *holds_skipped = true;
                    out.skipped(entry.name, SkipReason::Unreadable);
                }
            }
        }
    }
}
