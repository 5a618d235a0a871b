//! Where git's global excludes are, read from the user's git configuration.
//!
//! By hand and not with the `ignore` crate's function, which compiles two regular expressions for it: that took longer
//! than opening the store, at every start.

use std::path::{Path, PathBuf};

/// The user's global excludes file: `core.excludesFile`, else `git/ignore` in the configuration folder.
pub fn excludes_file(home: Option<&Path>, config_folder: Option<&Path>) -> Option<PathBuf> {
    let config = config_folder.map(Path::to_path_buf).or_else(|| Some(home?.join(".config")));
    let files = [home.map(|h| h.join(".gitconfig")), config.as_ref().map(|c| c.join("git/config"))];
    let named = files.into_iter().flatten().find_map(|file| excludes_in(&read(&file)?, home));
    named.or_else(|| Some(config?.join("git/ignore")))
}

/// Larger configuration files, in bytes, are not read.
const LARGEST: u64 = 4 << 20;

fn read(file: &Path) -> Option<String> {
    let bytes = piton_engine::read_bounded(file, LARGEST).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last `excludesFile` of the `[core]` sections of a configuration.
fn excludes_in(text: &str, home: Option<&Path>) -> Option<PathBuf> {
    let mut in_core = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            in_core = section.split(']').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("core"));
        } else if let Some((key, value)) = line.split_once('=')
            && in_core
            && key.trim().eq_ignore_ascii_case("excludesfile")
        {
            let value = value.trim().trim_matches('"');
            found = match (value.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => Some(home.join(rest)),
                _ => Some(PathBuf::from(value)),
            };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excludes_file_is_the_last_one_in_a_core_section() {
        let home = Path::new("/home/u");
        for (text, expected) in [
            ("[core]\n\texcludesFile = ~/my/ignore\n", Some("/home/u/my/ignore")),
            ("[Core]\nEXCLUDESFILE=\"/etc/x y\"\n[other]\nexcludesfile=/no\n", Some("/etc/x y")),
            ("[core]\nexcludesfile = /a\n[core]\nexcludesfile = /b\n", Some("/b")),
            ("[other \"core\"]\nexcludesfile = /a\n", None),
            ("", None),
        ] {
            assert_eq!(excludes_in(text, Some(home)), expected.map(PathBuf::from), "{text:?}");
        }
    }
}
