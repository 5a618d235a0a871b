//! Git's own files, in small real repositories.

use std::path::{Path, PathBuf};

use piton_host::git::{
    Limits, Repository, SeenPath, UserConfig, excludes_file, is_git_folder, is_worktree, linked_worktrees,
};
use piton_testkit::fuzz::fuzz;
use piton_testkit::{git, git_command, not_run};
use sha1::Digest;

use super::host::scratch;

/// A repository with history in a pack, loose objects, a merge, staged changes and a linked worktree.
fn repository(folder: &Path, options: &[&str]) -> bool {
    std::fs::create_dir_all(folder).unwrap();
    let init = [&["init", "-q", "-b", "main"], options].concat();
    if !git_command(folder, &init).output().unwrap().status.success() {
        return false;
    }
    // Stored uncompressed, so that changed bytes survive decompression.
    git(folder, &["config", "core.compression", "0"]);
    let long: String = (0..200).map(|n| format!("line {n}\n")).collect();
    for n in 0..4 {
        std::fs::create_dir_all(folder.join("src/deep")).unwrap();
        std::fs::write(folder.join("long.txt"), format!("{n}\n{long}{n}\n")).unwrap();
        std::fs::write(folder.join("src/deep/a.rs"), format!("fn a() {{ {n} }}\n")).unwrap();
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-q", "-m", "commit"]);
    }
    git(folder, &["branch", "side"]);
    git(folder, &["tag", "-a", "-m", "tag", "v1"]);
    git(folder, &["repack", "-adfq", "--depth=50"]);
    git(folder, &["pack-refs", "--all"]);
    git(folder, &["worktree", "add", "-q", "../tree-of-it", "side"]);
    std::fs::write(folder.join("later"), "loose\n").unwrap();
    git(folder, &["add", "later"]);
    git(folder, &["commit", "-q", "-m", "loose"]);
    std::fs::write(folder.join("long.txt"), "staged\n").unwrap();
    std::fs::write(folder.join("new"), "new\n").unwrap();
    git(folder, &["add", "-A"]);
    git(folder, &["update-index", "--assume-unchanged", "src/deep/a.rs"]);
    true
}

/// Every small file of git's, the first one of those with random names.
fn files(git_dir: &Path, worktree: &Path) -> Vec<PathBuf> {
    let mut folders = vec![git_dir.to_owned()];
    let mut found = vec![worktree.join(".git")];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.strip_prefix(git_dir).unwrap().to_str().unwrap();
            let is_read =
                ["HEAD", "config", "index", "packed-refs", "objects", "refs", "worktrees", "reftable", "sharedindex"]
                    .iter()
                    .any(|wanted| name.starts_with(wanted));
            match path.is_dir() {
                true if is_read => folders.push(path),
                false if is_read && path.metadata().unwrap().len() < 16 << 10 => found.push(path),
                _ => {}
            }
        }
    }
    found
}

fn look(root: &Path, ids: &[String]) -> String {
    let Some(repository) = Repository::find(root) else { return "none".into() };
    let limits = Limits::default();
    repository.signature(0);
    let mut seen = |_: &[u8]| SeenPath::Unknown;
    let state = repository.read(&limits, Some(&mut seen));
    let uncommitted = repository.has_uncommitted(&limits, &mut seen);
    let objects = repository.objects();
    let mut readable = 0;
    for id in ids {
        if let Ok(bytes) = objects.blob(id, 1 << 20) {
            let head = format!("blob {}\0", bytes.len());
            let real = sha1::Sha1::new().chain_update(head).chain_update(&bytes).finalize();
            let real: String = real.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(real, *id, "an object is what its id says");
            readable += 1;
        }
    }
    let why: String = state.incomplete.unwrap_or_default().chars().take(40).collect();
    format!(
        "{} {:?} {why} {uncommitted:?} {readable} {}",
        state.head.commit.is_some(),
        state.in_progress,
        state.staged.len()
    )
}

/// Tries each of git's files in turn: the first byte says which one the rest replaces.
fn check(name: &str, repository: &Path, worktree: &Path) {
    let git_dir = repository.join(".git");
    let listed = git(repository, &["cat-file", "--batch-all-objects", "--batch-check"]);
    let ids: Vec<String> =
        listed.lines().filter_map(|line| line.split_once(" blob").map(|(id, _)| id.to_owned())).collect();
    assert!(ids.len() > 5, "{listed}");
    let mut all = files(&git_dir, worktree);
    for (path, content) in
        [("objects/info/alternates", "../../x\n\"/a\\303\\244\"\n"), ("config.worktree", "[core]\n\tbare = true\n")]
    {
        std::fs::create_dir_all(git_dir.join(path).parent().unwrap()).unwrap();
        std::fs::write(git_dir.join(path), content).unwrap();
        all.push(git_dir.join(path));
    }
    let real: Vec<Vec<u8>> = all.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let seeds: Vec<Vec<u8>> =
        real.iter().enumerate().map(|(at, content)| [&[at as u8], &content[..]].concat()).collect();
    let is_index = |path: &Path| path.file_name().is_some_and(|name| name == "index");
    fuzz(name, &seeds, |bytes| {
        let Some((which, content)) = bytes.split_first() else { return Default::default() };
        let which = usize::from(*which) % all.len();
        let mut content = content.to_vec();
        // Half of the changed indexes get a valid checksum.
        if is_index(&all[which]) && content.len() > 20 && content[0] & 1 == 0 {
            let end = content.len() - 20;
            let sum = sha1::Sha1::digest(&content[..end]);
            content[end..].copy_from_slice(&sum);
        }
        // Loose objects and packs are read-only.
        let _ = std::fs::remove_file(&all[which]);
        std::fs::write(&all[which], &content).unwrap();
        let user = UserConfig { files: vec![all[which].clone()], ..UserConfig::default() };
        let told = [look(repository, &ids), look(worktree, &ids)];
        let excludes = excludes_file(repository, Repository::find(repository).as_ref(), &user).is_some();
        let links = (linked_worktrees(repository).len(), is_worktree(worktree), is_git_folder(&git_dir));
        std::fs::write(&all[which], &real[which]).unwrap();
        (told, excludes, links)
    });
}

#[test]
fn files_of_a_repository() {
    let scratch = scratch();
    let base = scratch.path().canonicalize().unwrap();
    assert!(repository(&base.join("it"), &[]));
    check("git", &base.join("it"), &base.join("tree-of-it"));
}

#[test]
fn a_compressed_split_index() {
    let scratch = scratch();
    let base = scratch.path().canonicalize().unwrap();
    assert!(repository(&base.join("it"), &[]));
    git(&base.join("it"), &["update-index", "--index-version", "4"]);
    git(&base.join("it"), &["update-index", "--split-index"]);
    std::fs::write(base.join("it/split"), "split\n").unwrap();
    git(&base.join("it"), &["add", "split"]);
    git(&base.join("it"), &["rm", "-q", "--cached", "later"]);
    check("git-split-index", &base.join("it"), &base.join("tree-of-it"));
}

#[test]
fn tables_of_references() {
    let scratch = scratch();
    let base = scratch.path().canonicalize().unwrap();
    if !repository(&base.join("it"), &["--ref-format=reftable"]) {
        return not_run("fuzzing of git's tables of references", "this git does not write them");
    }
    check("git-reftable", &base.join("it"), &base.join("tree-of-it"));
}
