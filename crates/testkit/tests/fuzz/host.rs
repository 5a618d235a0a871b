//! What is in a workspace and in the store's stat cache: ignore files, and the index.

use std::io::Read;
use std::path::Path;

use piton_host::{
    Held, Index, Limit, Progress, Root, RuleOptions, Scan, ScanOptions, Sink, left_out, scan, unread_rules,
};
use piton_model::{ObjectId, WorkspacePath};
use piton_testkit::fuzz::fuzz;

/// A scratch folder in memory if the system has that: each input writes files.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()) } else { tempfile::tempdir() }
        .unwrap()
}

/// A sink that only hashes.
struct Hashed;

impl Sink for Hashed {
    type Error = std::io::Error;

    fn large_from(&self) -> u64 {
        1 << 20
    }

    fn small(&self, bytes: &[u8]) -> Result<ObjectId, Self::Error> {
        Ok(ObjectId::of_blob(bytes))
    }

    fn large(&self, bytes: &mut dyn Read) -> Result<(ObjectId, u64), Self::Error> {
        let mut all = Vec::new();
        bytes.read_to_end(&mut all)?;
        Ok((ObjectId::of_blob(&all), all.len() as u64))
    }

    fn tree(&self, _: ObjectId, _: Vec<u8>) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn scanned(root: &Root, index: Option<&Index>) -> Scan {
    let options = ScanOptions {
        index,
        rules: RuleOptions::default(),
        now_ns: i64::MAX,
        is_staged: Box::new(|_| None),
        held: Held::default(),
        limit: Limit::NONE,
        progress: &Progress::default(),
    };
    scan(root, options, &Hashed).unwrap_or_else(|e| panic!("a scan works: {e}"))
}

fn workspace(folder: &Path) {
    for path in
        ["src/a.rs", "src/deep/er/b", "build/out.o", "x y", ".env", "node_modules/m/index.js", "a[b]", "#c", "!d"]
    {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, path.as_os_str().as_encoded_bytes()).unwrap();
    }
    std::os::unix::fs::symlink("src/a.rs", folder.join("link")).unwrap();
}

const RULES: [&str; 8] = [
    "/build\n*.o\n!keep.o\nnode_modules/\n",
    "# comment\n\\#c\n\\!d\n\"x y\"\nx\\ y  \n",
    "**/er/**\n/src/**/b\na/**/b\n**\n",
    "[a-z]*\n[!x]\n[^]]\n[[:alpha:]]\na[b]\n[\n",
    "!\n/\n//\n\\\n*\n?\n***\n",
    "src/\r\n.env\r\n\u{feff}x\n",
    "!node_modules\n!/build/\n",
    "{a,b}\n{\n}\n\\{x\\}\n",
];

#[test]
fn ignore_files_never_stop_a_scan_and_decide_the_same_twice() {
    let scratch = scratch();
    workspace(scratch.path());
    std::fs::create_dir_all(scratch.path().join(".git/info")).unwrap();
    for path in ["HEAD", "objects/x", "refs/x"] {
        let path = scratch.path().join(".git").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "ref: refs/heads/main\n").unwrap();
    }
    let root = Root::open(&scratch.path().canonicalize().unwrap()).unwrap();
    fuzz("ignore-files", &RULES.map(|rules| rules.as_bytes().to_vec()), |bytes| {
        let places = [".gitignore", "src/.gitignore", ".pitonignore", ".git/info/exclude"];
        let place = scratch.path().join(places[bytes.len() % places.len()]);
        std::fs::write(&place, bytes).unwrap();
        let mut first = scanned(&root, None);
        let again = scanned(&root, first.index.as_ref());
        assert_eq!(again.root, first.root, "an index changes nothing");
        let mut skipped: Vec<_> = first.skipped.iter().map(|(path, reason)| (path.display(), *reason as u8)).collect();
        skipped.sort();
        let left = left_out(&root, RuleOptions::default(), Path::new("src/deep/er"));
        let unread = unread_rules(&root, first.index.as_mut().unwrap(), &RuleOptions::default()).len();
        std::fs::remove_file(&place).unwrap();
        (skipped, left.is_some(), unread)
    });
}

const PREFIX: usize = 104;
const STAMP: [u8; 32] = [3; 32];

/// Gives the bytes a real index's head and valid checksums, whatever the blocks say, as far as their lengths allow.
fn seal(bytes: &mut [u8], real: &[u8]) {
    use xxhash_rust::xxh3::xxh3_64_with_seed;
    if bytes.len() < PREFIX {
        return;
    }
    let (mut at, mut sum) = (PREFIX, 0u64);
    while let Some(length) = bytes.get(at..at + 4).map(|four| u32::from_le_bytes(four.try_into().unwrap()) as usize) {
        let Some(block) = bytes.get(at..at + length).filter(|_| length > 0) else { break };
        sum = sum.wrapping_add(xxh3_64_with_seed(block, at as u64));
        at += length;
    }
    bytes[..8].copy_from_slice(&real[..8]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    bytes[16..48].copy_from_slice(&STAMP);
    let check = xxh3_64_with_seed(&bytes[..PREFIX - 8], 0);
    bytes[PREFIX - 8..PREFIX].copy_from_slice(&check.to_le_bytes());
}

#[test]
fn an_index_is_what_was_written_or_none_and_a_forged_one_stops_no_scan() {
    let scratch = scratch();
    workspace(scratch.path());
    let root = Root::open(&scratch.path().canonicalize().unwrap()).unwrap();
    let real = scanned(&root, None).index.unwrap().to_bytes(&STAMP).to_vec();
    let mut forged = 0_u64;
    fuzz("index", std::slice::from_ref(&real), |bytes| {
        let same = bytes == real;
        assert_eq!(Index::from_bytes(bytes.to_vec(), &STAMP).is_some(), same, "any other byte makes it none");
        let mut sealed = bytes.to_vec();
        seal(&mut sealed, &real);
        let Some(mut index) = Index::from_bytes(sealed.clone(), &STAMP) else { return (0, 0, 0) };
        forged += 1;
        let trees = index.trees();
        let told = trees.values().filter(|at| index.tree(**at).is_some()).count();
        for path in ["src/a.rs", "src", "nowhere/x"] {
            let _ = index.changed_at(&WorkspacePath::new(path).unwrap());
        }
        assert!(index.to_bytes(&STAMP) == sealed);
        let _ = unread_rules(&root, &index, &RuleOptions::default());
        let found = scanned(&root, Some(&index));
        (index.count().min(20), told, found.skipped.len())
    });
    assert!(forged > 10, "only {forged} were read at all");
}
