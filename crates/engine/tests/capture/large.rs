//! Large files and many files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use piton_engine::model::SkipReason;
use piton_testkit::{World, noise};

const GIB: u64 = 1 << 30;
const BLOCK: u64 = 16 << 20;

/// A gibibyte with some noise in every block.
fn make_gibibyte(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(GIB).unwrap();
    for block in 0..GIB / BLOCK {
        file.write_all_at(&noise(block, 10_000), block * BLOCK + 5_000).unwrap();
    }
}

fn is_gibibyte(path: &Path) -> bool {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).unwrap());
    let mut bytes = vec![0; BLOCK as usize];
    for block in 0..GIB / BLOCK {
        file.read_exact(&mut bytes).unwrap();
        let noise = noise(block, 10_000);
        let (before, rest) = bytes.split_at(5_000);
        let (middle, after) = rest.split_at(10_000);
        if middle != noise || before.iter().chain(after).any(|b| *b != 0) {
            return false;
        }
    }
    file.read(&mut bytes).unwrap() == 0
}

/// Memory is told of a whole process, so a test that asks for it has one to itself.
fn assert_little_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 128 << 10, "{kib} KiB at the peak");
}

#[test]
fn a_gibibyte_is_captured_and_restored_in_little_memory() {
    piton_testkit::needs_a_process!();
    let world = World::new();
    let big = world.path("big");
    make_gibibyte(&big);
    let id = world.capture();
    let file = File::options().write(true).open(&big).unwrap();
    file.write_all_at(b"edited", GIB / 2).unwrap();
    file.set_len(GIB - 7).unwrap();
    let outcome = world.rewind(&id);
    assert!(outcome.verified && outcome.rescued.is_empty());
    assert!(is_gibibyte(&big));
    assert_little_memory();
}

/// Several large files at once, each thread with bytes that are on their way to a pack.
#[test]
fn many_bytes_that_do_not_pack_are_captured_in_little_memory() {
    piton_testkit::needs_a_process!();
    let world = World::new();
    for number in 0..4 {
        let file = File::create(world.path(format!("f{number}"))).unwrap();
        for block in 0..16 {
            file.write_all_at(&noise(number * 16 + block + 1, 4 << 20), block * (4 << 20)).unwrap();
        }
    }
    world.capture();
    assert!(world.open().status().unwrap().size > 256 << 20);
    assert_little_memory();
}

#[test]
fn a_small_edit_of_a_large_file_grows_the_store_by_little() {
    let world = World::new();
    let bytes = noise(1, 24 << 20);
    world.write("big", &bytes);
    world.capture();
    let size = || world.open().status().unwrap().size;
    let full = size();
    assert!(full >= 24 << 20);

    let mut edited = bytes.clone();
    edited[12 << 20..(12 << 20) + 3].copy_from_slice(b"new");
    world.write("big", &edited);
    let id = world.capture();
    let after_edit = size();
    assert!(after_edit - full < 3 << 20, "three bytes changed, {} stored", after_edit - full);
    // Bytes that come in at the front move all others, and the chunks with them.
    let mut shifted = b"in front".to_vec();
    shifted.extend_from_slice(&edited);
    world.write("big", &shifted);
    world.capture();
    assert!(size() - after_edit < 3 << 20, "eight bytes came in front, {} stored", size() - after_edit);
    // The same content elsewhere costs nothing.
    let before_copy = size();
    world.write("copy", &bytes);
    world.capture();
    assert!(size() - before_copy < 64 << 10);
    world.rewind(&id);
    assert!(std::fs::read(world.path("big")).unwrap() == edited);
}

#[test]
fn files_around_the_size_where_chunks_begin_come_back_and_cross_it_both_ways() {
    let border = 1 << 20;
    let world = World::new();
    let sizes = [border - 1, border, border + 1, 3 * border, 1, 0];
    for (n, size) in sizes.iter().enumerate() {
        world.write(format!("f{n}"), noise(n as u64, *size));
    }
    world.assert_comes_back(&[], |w| {
        for (n, size) in sizes.iter().rev().enumerate() {
            w.write(format!("f{n}"), noise(100 + n as u64, *size));
        }
    });
    // The same bytes as one blob and in chunks are the same content: one more and one less.
    world.write("grows", noise(7, border - 1)).write("shrinks", noise(7, border));
    world.assert_comes_back(&[], |w| {
        w.write("grows", noise(7, border)).write("shrinks", noise(7, border - 1));
    });
}

#[test]
fn a_file_over_the_size_rule_is_skipped_listed_and_never_touched() {
    let world = World::new();
    world.write("f", "1");
    let empty = world.capture();
    let huge = world.path("huge");
    File::create(&huge).unwrap().set_len((2 << 30) + 1).unwrap();
    let captured = world.captured().checkpoint;
    let skipped: Vec<_> = captured.skipped.iter().map(|s| (&s.path.path[..], s.reason)).collect();
    assert_eq!(skipped, [("huge", SkipReason::TooLarge)]);
    world.write("f", "2");
    world.rewind(captured.checkpoint.id.as_str());
    world.write("f", "3");
    world.rewind(&empty);
    assert_eq!(std::fs::metadata(&huge).unwrap().len(), (2 << 30) + 1);
    assert_eq!(std::fs::read(world.path("f")).unwrap(), b"1");
}

#[test]
fn thousands_of_files_come_back() {
    let world = World::new();
    for n in 0..5_000 {
        world.write(format!("d{}/e{}/f{n}", n % 40, n % 7), format!("content {n}"));
    }
    world.assert_comes_back(&[], |w| {
        for n in (0..5_000).step_by(3) {
            w.write(format!("d{}/e{}/f{n}", n % 40, n % 7), "edited");
        }
        for n in 0..10 {
            w.remove(format!("d{n}"));
        }
        w.rename("d20", "moved").write("new/file", "new");
    });
}
