//! Which paths a program writes when it is given one.

use std::io;
use std::path::{Path, PathBuf};

/// The paths that a program writes when given `path`: the path itself and, where that is a symlink, its targets, link
/// by link. Each has a canonical parent; the last need not exist, nor its folders, since a program may create what a
/// symlink points to. Empty where the path has no name or cannot be followed.
pub fn written_by_name(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut next = path.to_owned();
    while found.len() <= MOST_LINKS {
        let (Some(parent), Some(name)) = (next.parent(), next.file_name()) else { break };
        let Ok(parent) = folder_led_to(parent, &mut MOST_LINKS.clone()) else { break };
        let whole = parent.join(name);
        if found.contains(&whole) {
            break;
        }
        let target = std::fs::read_link(&whole);
        found.push(whole);
        match target {
            Ok(target) => next = parent.join(target),
            Err(_) => break,
        }
    }
    found
}

/// As many symlinks as the system follows.
const MOST_LINKS: usize = 40;

/// The folder that a path leads to, which need not exist yet: for a dangling symlink, what would be created through it.
fn folder_led_to(path: &Path, links: &mut usize) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    match (absolute.canonicalize(), absolute.parent(), absolute.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            let parent = folder_led_to(parent, links)?;
            let whole = parent.join(name);
            match std::fs::read_link(&whole) {
                Ok(target) if *links > 0 => {
                    *links -= 1;
                    folder_led_to(&parent.join(target), links)
                }
                _ => Ok(whole),
            }
        }
        (result, ..) => result,
    }
}
