use super::*;
use crate::{PATIENCE, Store};
use piton_model::{CheckpointId, Record};

fn name(n: u8) -> Record {
    Record::Name { checkpoint: CheckpointId::from_random([n; 8]), name: format!("name {n}") }
}

fn names(store: &Store) -> Vec<String> {
    let db = store.db();
    let mut query = db.prepare("SELECT name FROM names ORDER BY seq").unwrap();
    query.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A pack of format 1, as pitons wrote it until there were commit records.
fn old_pack(folder: &Path) -> ObjectId {
    let mut bytes = HEAD_1.to_vec();
    let id = ObjectId::of_blob(b"an old blob");
    bytes.extend(pack::pack(Kind::Blob, id, b"an old blob").unwrap().bytes);
    for n in 1..=2 {
        let json = serde_json::to_vec(&Numbered { seq: n.into(), record: name(n) }).unwrap();
        bytes.extend(pack::pack(Kind::Timeline, ObjectId::of_blob(&json), &json).unwrap().bytes);
    }
    std::fs::create_dir_all(folder.join(PACKS)).unwrap();
    std::fs::write(folder.join(PACKS).join(pack_name(1)), bytes).unwrap();
    id
}

#[test]
fn a_pack_of_format_1_is_read_and_never_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let id = old_pack(folder.path());
    let before = std::fs::read(folder.path().join(PACKS).join(pack_name(1))).unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.blob(&id).unwrap(), b"an old blob");
    assert_eq!(names(&store), ["name 1", "name 2"]);
    let lock = store.lock(PATIENCE).unwrap();
    let mut writer = store.write(&lock).unwrap();
    assert_eq!(writer.record(name(3)).unwrap(), 3);
    let new = writer.blob(b"a new blob").unwrap();
    writer.commit(false, false).unwrap();
    assert!(store.verify().unwrap().damage.is_empty());
    drop((lock, store));
    for file in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() {
            std::fs::remove_file(file).unwrap();
        }
    }
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(names(&store), ["name 1", "name 2", "name 3"]);
    assert_eq!(store.blob(&new).unwrap(), b"a new blob");
    assert_eq!(std::fs::read(folder.path().join(PACKS).join(pack_name(1))).unwrap(), before);
}

#[test]
fn a_pack_of_format_1_with_a_damaged_head_is_read_beside_packs_of_format_2() {
    let folder = tempfile::tempdir().unwrap();
    let id = old_pack(folder.path());
    let store = Store::open(folder.path()).unwrap();
    write(&store, 3, 0..1);
    drop(store);
    let path = folder.path().join(PACKS).join(pack_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    lose_the_view(folder.path());
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(names(&store), ["name 1", "name 2", "name 3"]);
    assert_eq!(store.blob(&id).unwrap(), b"an old blob");
    write(&store, 4, 1..2);
    assert_eq!(names(&store), ["name 1", "name 2", "name 3", "name 4"]);
}

/// A piton that took the next number from a view with a wrong row wrote such packs.
#[test]
fn two_records_of_one_number_both_count_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    old_pack(folder.path());
    let path = folder.path().join(PACKS).join(pack_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    for (seq, n) in [(2, 3), (3, 4)] {
        let json = serde_json::to_vec(&Numbered { seq, record: name(n) }).unwrap();
        bytes.extend(pack::pack(Kind::Timeline, ObjectId::of_blob(&json), &json).unwrap().bytes);
    }
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(names(&store), ["name 1", "name 2", "name 3", "name 4"]);
    let named = [crate::Damage::RecordTwice { seq: 2 }];
    assert_eq!(store.verify().unwrap().damage, named);
    // What comes next has a number of its own, with this view and with another.
    write(&store, 5, 0..1);
    drop(store);
    lose_the_view(folder.path());
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(names(&store), ["name 1", "name 2", "name 3", "name 4", "name 5"]);
    assert_eq!(store.verify().unwrap().damage, named);
}

/// The commit record is found from its end, also one that names more packs than the first look back holds.
#[test]
fn a_commit_record_is_found_where_it_ends_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut ends = Vec::new();
    for (n, blobs) in [(1, 0..1), (2, 1..2), (3, 2..600)] {
        write(&store, n, blobs);
        ends.push(store.end().unwrap());
    }
    assert!(ends[2].pack > 80, "{ends:?}: its commit record is short");
    for (end, next) in ends.iter().zip(2..) {
        let file = store.pack_file(end.pack).unwrap();
        let tagger = tagger_of(folder.path(), &file, end.pack).unwrap().unwrap();
        let found = |offset| commit_ending_at(&file, &tagger, offset).unwrap().map(|commit| commit.next());
        assert_eq!(found(end.offset), Some(next));
        assert!((1..20).all(|less| found(end.offset - less).is_none()));
    }
}

#[test]
fn a_record_of_a_later_piton_is_refused_and_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    old_pack(folder.path());
    let path = folder.path().join(PACKS).join(pack_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    let json = br#"{"seq":3,"record":"delete","checkpoints":["kkkkkkkkkkkkkkkk"],"up_to":2}"#;
    bytes.extend(pack::pack(Kind::Timeline, ObjectId::of_blob(json), json).unwrap().bytes);
    std::fs::write(&path, bytes).unwrap();
    let refused = Store::open(folder.path()).err().unwrap();
    assert!(matches!(&refused, StoreError::UnknownRecord { record } if record == "delete"), "{refused}");
}

#[test]
fn a_pack_of_a_later_piton_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    old_pack(folder.path());
    let mut head = StoreKey([1; 16]).head();
    head[7] = b'3';
    head[8] = 3;
    let check = *blake3::hash(&head[..32]).as_bytes();
    head[32..].copy_from_slice(&check[..8]);
    let path = folder.path().join(PACKS).join(pack_name(2));
    std::fs::write(&path, head).unwrap();
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Newer { found: 3, known: 2 })));
    assert_eq!(std::fs::read(path).unwrap(), head);
}

/// Three transactions, of which each byte in turn is wrong while the view is lost: whatever else is lost, what the
/// other two hold is there.
#[test]
fn a_flipped_bit_anywhere_costs_at_most_the_transaction_that_it_is_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let path = store.pack_path(1);
    let mut ends = vec![0];
    for n in 1..=3 {
        let lock = store.lock(PATIENCE).unwrap();
        let mut writer = store.write(&lock).unwrap();
        writer.record(name(n)).unwrap();
        writer.blob(format!("blob {n}").as_bytes()).unwrap();
        writer.commit(false, false).unwrap();
        ends.push(std::fs::metadata(&path).unwrap().len() as usize);
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(9) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let other = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(other.path().join(PACKS)).unwrap();
        std::fs::write(other.path().join(PACKS).join(pack_name(1)), bytes).unwrap();
        let store = Store::open(other.path()).unwrap();
        let hit = ends.iter().rposition(|end| at >= *end).unwrap() + 1;
        let names = names(&store);
        for n in (1..=3).filter(|n| *n != hit) {
            assert!(names.contains(&format!("name {n}")), "byte {at}, in transaction {hit}: {names:?}");
            assert!(store.contains(&ObjectId::of_blob(format!("blob {n}").as_bytes())).unwrap());
        }
        // And it goes on from there.
        let lock = store.lock(PATIENCE).unwrap();
        let mut writer = store.write(&lock).unwrap();
        writer.record(name(9)).unwrap();
        writer.commit(false, false).unwrap();
        assert!(self::names(&store).contains(&"name 9".to_owned()), "byte {at}");
    }
}

/// A disk says that it cannot read a bad sector; it does not give zeros. Every reading used to end there.
#[test]
fn a_sector_that_cannot_be_read_costs_at_most_the_transactions_that_it_is_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let path = store.pack_path(1);
    let mut ends = vec![0];
    for n in 1..=3 {
        write(&store, n, usize::from(n)..usize::from(n) + 1);
        ends.push(std::fs::metadata(&path).unwrap().len());
    }
    drop(store);
    let length = ends[3];
    for (bad, loses_the_view) in (0..length).step_by(1024).flat_map(|bad| [(bad, false), (bad, true)]) {
        let other = tempfile::tempdir().unwrap();
        copy_store(folder.path(), other.path());
        let path = other.path().join(PACKS).join(pack_name(1));
        if loses_the_view {
            lose_the_view(other.path());
        }
        piton_host::fail::unreadable(&path, bad..bad + 512, || {
            let store = Store::open(other.path()).unwrap();
            let verified = store.verify().unwrap();
            let is_named = verified.damage.iter().any(|damage| match damage {
                crate::Damage::Pack { pack: 1, from, to } => *from < bad + 512 && *to > bad,
                crate::Damage::Aside { .. } => true,
                _ => false,
            });
            assert!(is_named, "byte {bad}: {:?}", verified.damage);
            write(&store, 9, 9..10);
            drop(store);
            lose_the_view(other.path());
            let store = Store::open(other.path()).unwrap();
            let names = names(&store);
            let page = bad / 4096 * 4096;
            for n in (1..=3).filter(|n| ends[*n] <= page || ends[*n - 1] >= page + 4096) {
                assert!(names.contains(&format!("name {n}")), "byte {bad}: {names:?}");
                assert!(store.blob(&ObjectId::of_blob(&noise(n))).is_ok(), "byte {bad}, blob {n}");
            }
            // Unless it was written to the very sector.
            if page + 4096 <= length {
                assert!(names.contains(&"name 9".to_owned()), "byte {bad}: {names:?}");
            }
        });
    }
}

fn copy_store(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.join(PACKS)).unwrap();
    for folder in ["", PACKS] {
        for entry in std::fs::read_dir(from.join(folder)).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                std::fs::copy(entry.path(), to.join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
}

/// What a power cut left of a transaction may lie in a sector that cannot be read: it is set aside all the same, as far as it can
/// be read.
#[test]
fn what_a_power_cut_left_in_a_bad_sector_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let path = store.pack_path(1);
    write(&store, 1, 0..1);
    drop(store.lock(PATIENCE).unwrap());
    let end = std::fs::metadata(&path).unwrap().len();
    write(&store, 2, 1..2);
    drop(store);
    let bad = end + 6_000;
    let store = piton_host::clock::in_another_run("another run", || {
        piton_host::fail::unreadable(&path, bad..bad + 512, || Store::open(folder.path()).unwrap())
    });
    assert_eq!(names(&store), ["name 1"]);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), end);
    let aside = store.aside_files();
    assert_eq!(aside.len(), 1, "{aside:?}");
    let kept = std::fs::read(&aside[0]).unwrap();
    assert!(kept[6_000..6_512].iter().all(|byte| *byte == 0) && kept[..1_000].iter().any(|byte| *byte != 0));
}

/// Bytes that do not pack.
fn noise(seed: usize) -> Vec<u8> {
    let mut bytes = vec![0; 10_000];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// One transaction with these blobs.
fn write(store: &Store, n: u8, blobs: std::ops::Range<usize>) {
    let lock = store.lock(PATIENCE).unwrap();
    let mut writer = store.write(&lock).unwrap();
    writer.record(name(n)).unwrap();
    for seed in blobs {
        writer.blob(&noise(seed)).unwrap();
    }
    writer.commit(false, false).unwrap();
}

fn lose_the_view(folder: &Path) {
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() {
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_transaction_that_fills_several_packs_counts_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    write(&store, 1, 0..3);
    write(&store, 2, 3..30);
    let packs = pack_numbers(folder.path()).unwrap();
    assert!(packs.len() > 3, "{packs:?}: the test would test nothing");
    drop(store);
    lose_the_view(folder.path());
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(names(&store), ["name 1", "name 2"]);
    assert!((0..30).all(|seed| store.blob(&ObjectId::of_blob(&noise(seed))).unwrap() == noise(seed)));
    write(&store, 3, 30..31);
    assert!(store.verify().unwrap().damage.is_empty());
    drop(store);
    // Its process died before it was closed: the last bytes of the last pack are not there yet.
    let last = folder.path().join(PACKS).join(pack_name(*packs.last().unwrap()));
    let length = std::fs::metadata(&last).unwrap().len();
    for cut in [1, 2_000, length - PACK_HEAD] {
        let other = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(other.path().join(PACKS)).unwrap();
        for pack in &packs {
            let from = folder.path().join(PACKS).join(pack_name(*pack));
            std::fs::copy(from, other.path().join(PACKS).join(pack_name(*pack))).unwrap();
        }
        let store = Store::open(other.path()).unwrap();
        assert_eq!(names(&store), ["name 1", "name 2", "name 3"]);
        drop(store);
        lose_the_view(other.path());
        // All of the third transaction goes, and the end of the second.
        let last = other.path().join(PACKS).join(pack_name(*packs.last().unwrap()));
        let third = transaction_starts(other.path())[2];
        assert_eq!(third.pack, *packs.last().unwrap());
        let file = File::options().write(true).open(&last).unwrap();
        file.set_len(third.offset.saturating_sub(cut).max(PACK_HEAD)).unwrap();
        let store = Store::open(other.path()).unwrap();
        assert_eq!(names(&store), ["name 1"]);
        write(&store, 4, 40..41);
        assert_eq!(names(&store), ["name 1", "name 4"]);
        assert!(store.verify().unwrap().damage.is_empty());
        assert!(pack_numbers(other.path()).unwrap().len() <= 2, "what nobody closed goes");
    }
}

/// In the same run of the machine no power was cut, whatever is missing.
#[test]
fn a_deleted_pack_costs_only_what_was_in_it_and_is_named() {
    for loses_the_view in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let mut packs = Vec::new();
        for n in 1..=24 {
            write(&store, n, usize::from(n)..usize::from(n) + 1);
            packs.push((n, store.end().unwrap().pack));
        }
        assert!(packs.last().unwrap().1 >= 3, "{packs:?}");
        drop(store);
        std::fs::remove_file(folder.path().join(PACKS).join(pack_name(2))).unwrap();
        if loses_the_view {
            lose_the_view(folder.path());
        }
        let store = Store::open(folder.path()).unwrap();
        let left = names(&store);
        // The transactions at its ends may lie in it in part.
        for (n, _) in packs.windows(2).filter(|w| w[0].1 != 2 && w[1].1 != 2).map(|w| w[1]) {
            assert!(left.contains(&format!("name {n}")), "{n}: {left:?}");
        }
        let found = store.verify().unwrap().damage;
        assert!(found.contains(&crate::Damage::PackMissing { pack: 2 }), "{found:?}");
        let is_noted = found.iter().any(|damage| matches!(damage, crate::Damage::Gone { pack: 2, .. }));
        assert_eq!(is_noted, !loses_the_view, "{found:?}");
        write(&store, 30, 30..31);
        let generation = store.generation();
        drop(store);
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.generation(), generation, "the view is made anew at every opening");
        assert!(names(&store).contains(&"name 30".to_owned()));
    }
}

fn transaction_starts(folder: &Path) -> Vec<Position> {
    let mut starts = Vec::new();
    read(folder, Position::default(), None, |transaction| {
        starts.push(transaction.start);
        Ok(())
    })
    .unwrap();
    starts
}

/// The process died between the commit record and the rows: it was closed, so it counts. And where the rows are
/// refused, the writer takes back what it wrote.
#[test]
fn a_closed_transaction_without_rows_is_rolled_forward_and_a_refused_one_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    write(&store, 1, 0..1);
    let before = std::fs::metadata(store.pack_path(1)).unwrap().len();
    let lock = store.lock(PATIENCE).unwrap();
    let mut writer = store.write(&lock).unwrap();
    writer.record(name(2)).unwrap();
    store
        .db()
        .execute_batch("CREATE TEMP TRIGGER refuse BEFORE INSERT ON names BEGIN SELECT raise(ABORT, 'no'); END")
        .unwrap();
    assert!(writer.commit(false, false).is_err());
    assert_eq!(std::fs::metadata(store.pack_path(1)).unwrap().len(), before);
    store.db().execute_batch("DROP TRIGGER refuse").unwrap();
    let mut writer = store.write(&lock).unwrap();
    writer.record(name(2)).unwrap();
    writer.commit(false, false).unwrap();
    drop(lock);
    assert_eq!(names(&store), ["name 1", "name 2"]);
    // As if only the packs had come to be written.
    let whole = std::fs::read(store.pack_path(1)).unwrap();
    std::fs::write(store.pack_path(1), &whole[..before as usize]).unwrap();
    drop(store);
    lose_the_view(folder.path());
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(names(&store), ["name 1"]);
    std::fs::write(store.pack_path(1), &whole).unwrap();
    drop(store.lock(PATIENCE).unwrap());
    assert_eq!(names(&store), ["name 1", "name 2"]);
    assert!(store.verify().unwrap().damage.is_empty());
}
