//! Every pattern means to piton what it means to git.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use piton_testkit::{World, git, git_command};

/// Patterns that are easily read otherwise than git reads them.
#[rustfmt::skip]
const PATTERNS: &[&str] = &[
    "foo", "/foo", "foo/", "/foo/", "foo/*", "foo/**", "**/foo", "**/foo/bar", "foo/bar", "/foo/bar", "*/foo",
    "foo/*/baz", "a/**/b", "a/**/", "a/**", "**/b", "**", "/**", "**/", "*", "/*", "*/", "*/*", "a**b", "a*b", "a?b",
    "?x", "???", "[abc]x", "[!a]x", "[^a]x", "[a-c]x", "[]]x", "[]-]x", "[[:digit:]]x", "[[:alpha:]]x", "[ab",
    "[\\]]x", "#hash", "\\#hash", "!bang", "\\!bang", "!", "\\", "/", "//", "a\\", "./foo", "../foo", "foo//bar",
    "foo/.", "\\foo", "foo bar", "foo\\ bar", "trailing ", "trailing\\ ", "trailing\t", "foo\r", " foo", "  ",
    "{a,b}", "*.{js,ts}", "\\{a,b\\}", "{", "a{b", "a\\*b", "a\\?b", "*\\*b", "Foo", "FOO", "é", "[é]", "f*o/b*r",
    "*\n!foo", "/*\n!/foo", "*\n!*/", "foo\n!foo/bar", "foo/*\n!foo/bar", "foo/bar\n!foo", "!foo\nfoo",
    "foo\n!foo\nfoo/", "*.js\n!a.js", "**/bar\n!/bar", "\u{feff}foo", "foo\n\n# c\nbar", "foo/**/*", "**/foo/**",
    "**foo", "foo**", "**/*.js", "a/b", "a/*/b", "x/y", "**/x/**/b", "*.js/", ".*", ".", "..", "foo\\/bar", "foo\\/",
    "foo[!a]bar", "foo[/]bar", "foo?bar", "foo*bar", "[!-]x", "[a-]x", "[!]a]x", "[^^]x", "[!!]x", "[+--]x", "[z-a]x",
    "x[]", "[^]", "[[:nonsense:]]x", "[[:digit:]-z]x", "[[:digit]x", "[[:punct:]]x", "[![:alpha:]]x", "[\\\\]",
    "[\\a-\\c]x", "[a-\\]x", "[[]ab", "\\[ab", "{a,b", "a\\{b", "[{]", "[!b-d]x", "foo\\\t", "!\\!bang",
    "foo\r\nbar\r\n", "trailing  ", "trailing\\  ", "[\\",
];

/// Folders to try them on.
#[rustfmt::skip]
const FOLDERS: &[&str] = &[
    "foo", "foo/bar", "foo/bar/baz", "foo/qux", "bar", "bar/foo", "bar/foo/bar", "a", "a/b", "a/x", "a/x/b",
    "a/x/y/b", "x", "x/y", "ax", "bx", "dx", "5x", "]x", "-x", "[ab", "#hash", "!bang", "foo bar", " foo", "trailing",
    "trailing ", "trailing\t", "foo\r", "{a,b}", "b", "a.js", "b.ts", "c.{js,ts}", "a{b", "{", "a*b", "a?b", "azb",
    "azzb", "Foo", "é", "e", "\\", "a\\", ".hidden", "foobar", "^x", "!x", "+x", ",x", "zx", "_x", "foo\t",
    "[[:digit]x", "foo-bar",
];

#[test]
fn piton_reads_every_pattern_as_git_does() {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    for folder in FOLDERS {
        world.folder(folder);
    }
    let workspace = world.open();
    let mut wrong = Vec::new();
    for pattern in PATTERNS {
        std::fs::write(world.path(".gitignore"), pattern).unwrap();
        let by_git = ignored_by_git(&world, FOLDERS);
        let skipped = workspace.status().unwrap().skipped;
        for folder in FOLDERS {
            let is_skipped = |path: &Path| skipped.iter().any(|s| Path::new(&s.path.path) == path);
            let by_piton = Path::new(folder).ancestors().any(is_skipped);
            let by_git = by_git.iter().any(|path| path == folder);
            if by_piton != by_git {
                wrong.push(format!("{pattern:?} and {folder:?}: git {by_git}, piton {by_piton}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are read otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

fn ignored_by_git(world: &World, paths: &[&str]) -> Vec<String> {
    let mut command = git_command(&world.ws(), &["check-ignore", "--no-index", "-z", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Less than a pipe holds, so that this does not wait for an answer.
    child.stdin.take().unwrap().write_all(paths.join("\0").as_bytes()).unwrap();
    let answer = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    answer.split('\0').map(str::to_owned).collect()
}
