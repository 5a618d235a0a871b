//! Text that looks like source code, to a compressor as much as to a person.
//!
//! Real source compresses as it does because a file is about few things, again and again: so each text has its own
//! names, introduced once and then reused, recent ones most, and lines that are repeated verbatim. The three
//! probabilities set the ratio: about 3.4 with `zstd -3` and with `gzip`, file by file (the README says how to check).

use std::ops::Range;

use crate::prng::Prng;

/// How often a name is new instead of one that the file used before.
const NEW_NAME: f64 = 0.28;
/// How often a line repeats an earlier one of the file.
const AGAIN: f64 = 0.15;
/// How often a line is a comment: prose, which compresses worst.
const COMMENT: f64 = 0.14;

const WORDS: &[&str] = &[
    "account", "action", "active", "address", "agent", "alias", "amount", "anchor", "append", "apply", "array",
    "async", "atom", "author", "backup", "balance", "batch", "before", "binary", "block", "bounds", "branch", "bridge",
    "bucket", "buffer", "build", "bundle", "cache", "call", "cancel", "channel", "chunk", "client", "clock", "close",
    "cluster", "code", "collect", "column", "command", "commit", "config", "connect", "content", "context", "copy",
    "count", "create", "cursor", "data", "decode", "default", "delete", "delta", "depth", "device", "digest", "direct",
    "driver", "edge", "edit", "encode", "engine", "entry", "error", "event", "expect", "export", "factory", "fetch",
    "field", "file", "filter", "final", "find", "flag", "flush", "folder", "format", "frame", "future", "gateway",
    "global", "graph", "group", "guard", "handle", "hash", "header", "height", "history", "host", "image", "import",
    "index", "init", "inner", "input", "insert", "invoke", "item", "iter", "job", "join", "journal", "kernel", "key",
    "kind", "label", "layer", "layout", "leader", "length", "level", "limit", "line", "link", "list", "load", "local",
    "lock", "log", "loop", "map", "marker", "mask", "match", "memory", "merge", "message", "meta", "method", "metric",
    "mode", "model", "module", "mount", "name", "network", "next", "node", "notify", "number", "object", "offset",
    "open", "option", "order", "origin", "outer", "output", "owner", "packet", "page", "panel", "param", "parent",
    "parse", "part", "patch", "path", "peer", "pending", "plan", "player", "point", "policy", "pool", "port", "prefix",
    "print", "process", "profile", "project", "proxy", "query", "queue", "random", "range", "rank", "read", "record",
    "region", "release", "remote", "render", "replace", "report", "request", "reset", "resolve", "result", "retry",
    "root", "route", "rule", "sample", "scale", "schema", "scope", "score", "screen", "search", "section", "segment",
    "select", "sender", "server", "session", "shape", "share", "signal", "size", "slice", "socket", "source", "span",
    "stack", "stage", "start", "state", "status", "step", "storage", "stream", "string", "submit", "suffix", "switch",
    "symbol", "table", "target", "task", "temp", "term", "text", "thread", "ticket", "timer", "token", "total",
    "trace", "track", "transfer", "tree", "trigger", "tuple", "type", "update", "upload", "user", "value", "vector",
    "verify", "version", "view", "visit", "wait", "walk", "watch", "weight", "widget", "width", "window", "worker",
    "wrap", "writer", "zone",
];

const PROSE: &[&str] = &[
    "the", "a", "is", "of", "to", "and", "in", "that", "this", "for", "with", "not", "when", "it", "only", "we",
    "must", "so", "from", "be", "if", "are", "on", "by", "has", "no", "as", "at", "one", "all", "was", "can", "never",
    "each",
];

const TYPES: &[&str] =
    &["String", "usize", "u64", "bool", "Vec<u8>", "Option<u32>", "&str", "Result<()>", "Duration", "PathBuf"];

/// A name of one to three words, as for a file or a variable.
pub fn name(rng: &mut Prng) -> String {
    let mut name = String::from(rng.pick(WORDS));
    for _ in 0..rng.below(3) {
        name.push('_');
        name.push_str(rng.pick(WORDS));
    }
    name
}

/// One word, as for a folder.
pub fn word(rng: &mut Prng) -> &'static str {
    rng.pick(WORDS)
}

/// `len` bytes of source text: whole lines, the last one cut.
pub fn source(rng: &mut Prng, len: usize) -> Vec<u8> {
    let names = (0..4).map(|_| name(rng)).collect();
    let mut writer = Writer { rng, out: Vec::with_capacity(len + 256), names, statements: Vec::new(), depth: 0 };
    while writer.out.len() < len {
        writer.line();
    }
    let mut bytes = writer.out;
    bytes.truncate(len);
    if let Some(last) = bytes.last_mut() {
        *last = b'\n';
    }
    bytes
}

struct Writer<'a> {
    rng: &'a mut Prng,
    out: Vec<u8>,
    names: Vec<String>,
    /// The position of each statement in `out`, without its indentation.
    statements: Vec<Range<usize>>,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self) {
        if self.depth == 0 {
            return self.opening();
        }
        if self.rng.chance(COMMENT) {
            return self.comment();
        }
        if self.depth < 5 && self.rng.chance(0.25) {
            return self.block();
        }
        self.indent();
        if !self.statements.is_empty() && self.rng.chance(AGAIN) {
            let earlier = self.rng.pick(&self.statements);
            self.out.extend_from_within(earlier);
        } else {
            let start = self.out.len();
            self.statement();
            self.statements.push(start..self.out.len());
        }
        if self.rng.chance(0.35) {
            self.close();
        }
    }

    fn statement(&mut self) {
        match self.rng.below(8) {
            0 => {
                self.put("return Err(Error::new(\"");
                self.prose(5);
                self.put("\"))");
            }
            1 => {
                self.put("assert_eq!(");
                self.known();
                let number = self.rng.below(1000);
                self.put(&format!(", {number})"));
            }
            2 | 3 => {
                self.put("self.");
                self.known();
                self.put(" = ");
                self.call();
            }
            4 | 5 => {
                self.call();
                self.put("?");
            }
            _ => {
                self.put("let ");
                self.known();
                self.put(" = ");
                self.call();
            }
        }
        self.put(";\n");
    }

    fn block(&mut self) {
        self.indent();
        if self.rng.chance(0.7) {
            self.put("if ");
        } else {
            self.put("for ");
            self.known();
            self.put(" in ");
        }
        self.call();
        self.put(" {\n");
        self.depth += 1;
    }

    fn opening(&mut self) {
        self.put("\n/// ");
        self.prose(9);
        self.put(".\npub fn ");
        self.known();
        self.put("(&self");
        for _ in 0..self.rng.below(3) {
            self.put(", ");
            self.known();
            self.put(": ");
            let kind = self.rng.pick(TYPES);
            self.put(kind);
        }
        self.put(") -> ");
        let kind = self.rng.pick(TYPES);
        self.put(kind);
        self.put(" {\n");
        self.depth = 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.indent();
        self.put("}\n");
    }

    fn comment(&mut self) {
        self.indent();
        self.put("// ");
        self.prose(8);
        self.put("\n");
    }

    fn call(&mut self) {
        self.known();
        self.put(".");
        self.known();
        self.put("(");
        for argument in 0..self.rng.below(3) {
            if argument > 0 {
                self.put(", ");
            }
            self.known();
        }
        self.put(")");
    }

    /// A name: usually one of the file's own, recent ones most.
    fn known(&mut self) {
        if self.rng.chance(NEW_NAME) {
            let new = name(self.rng);
            self.put(&new);
            self.names.push(new);
            return;
        }
        let back = (self.rng.unit().powi(2) * self.names.len().min(300) as f64) as usize;
        let index = self.names.len() - 1 - back.min(self.names.len() - 1);
        self.out.extend_from_slice(self.names[index].as_bytes());
    }

    fn prose(&mut self, words: usize) {
        for position in 0..words {
            if position > 0 {
                self.put(" ");
            }
            let word = if self.rng.chance(0.5) { self.rng.pick(PROSE) } else { self.rng.pick(WORDS) };
            self.put(word);
        }
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.put("    ");
        }
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }
}
