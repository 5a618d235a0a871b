//! Three-way merge of Jupyter notebooks, cell by cell, that preserves the bytes of whatever nobody changed.
//!
//! Called only by `content::merge`. The result is a valid notebook, or there is none: no markers, no mix that Jupyter
//! could not open.

mod json;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use self::json::{Members, as_sound, is_json};
use crate::content::{self, Clash, Decision, Hunk, Labels, Merged};

/// Merges three contents of an `.ipynb`; line by line where one of them is not a notebook.
pub(crate) fn merge(base: &[u8], ours: &[u8], theirs: &[u8], decision: Option<Decision>) -> Merged {
    // With markers in it, no program could open the file.
    let pick = decision.filter(|d| *d != Decision::Markers);
    let sides = (Notebook::parse(base), Notebook::parse(ours), Notebook::parse(theirs));
    let (text, clashes) = if let (Some(b), Some(o), Some(t)) = &sides {
        let mut merging = Merging { ours: o, starts: line_starts(o.text), decision: pick, clashes: Vec::new() };
        let text = merging.notebook(b, t).into_bytes();
        (text, merging.clashes)
    } else {
        let (text, clashes) = content::merge_text(base, ours, theirs, pick, &NO_LABELS);
        (text.unwrap_or_default(), clashes)
    };
    if !clashes.is_empty() && pick.is_none() {
        return Merged { bytes: None, clashes, whole: false };
    }
    let valid = match &sides {
        (Some(_), Some(o), Some(t)) => {
            Notebook::parse(&text).is_some_and(|n| n.unique_ids() || !(o.unique_ids() && t.unique_ids()))
                && as_sound(&text, ours, theirs)
        }
        _ => !(is_json(ours) && is_json(theirs)) || as_sound(&text, ours, theirs),
    };
    if !valid {
        return Merged::whole(ours, theirs, clashes, decision);
    }
    Merged { bytes: Some(text), clashes, whole: false }
}

const NO_LABELS: Labels = Labels { ours: "", base: "", theirs: "" };

/// A notebook as slices of its text: `head` `[` cells `]` `foot`.
struct Notebook<'a> {
    text: &'a str,
    head: &'a str,
    foot: &'a str,
    list: List<'a>,
    cells: Vec<Cell<'a>>,
}

/// A cell as slices of its text: `{` members `}`.
struct Cell<'a> {
    text: &'a str,
    names: Vec<String>,
    members: Vec<Item<'a>>,
    /// White space before the closing bracket.
    tail: &'a str,
    id: Option<String>,
    kind: Option<String>,
    source: Option<String>,
}

/// An element of a list or a member of an object, with the text around it up to the commas or brackets.
struct Item<'a> {
    /// White space, and a member's name with its colon.
    lead: &'a str,
    value: &'a str,
    /// White space before a comma; white space before the closing bracket belongs to the list.
    trail: &'a str,
}

/// A list as slices of its text.
#[derive(Default)]
struct List<'a> {
    items: Vec<Item<'a>>,
    /// White space before the closing bracket.
    tail: &'a str,
}

impl<'a> Notebook<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Outer<'a> {
            #[serde(borrow)]
            cells: &'a RawValue,
        }
        let text = std::str::from_utf8(bytes).ok()?;
        let cells = serde_json::from_str::<Outer>(text).ok()?.cells.get();
        let at = offset(text, cells);
        let list = list(cells)?;
        let parsed = list.items.iter().map(|item| Cell::parse(item.value)).collect::<Option<_>>()?;
        Some(Self { text, head: &text[..at], foot: &text[at + cells.len()..], list, cells: parsed })
    }

    /// Where a cell begins, or where one after the last would.
    fn place(&self, cell: usize) -> usize {
        self.list.items.get(cell).map_or(self.text.len() - self.foot.len(), |item| offset(self.text, item.value))
    }

    fn unique_ids(&self) -> bool {
        let mut seen = HashSet::new();
        self.cells.iter().filter_map(|cell| cell.id.as_ref()).all(|id| seen.insert(id))
    }
}

impl<'a> Cell<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let Members(members) = serde_json::from_str(text).ok()?;
        let (names, values): (Vec<String>, Vec<&str>) = members.into_iter().unzip();
        let (members, tail) = items(text, &values);
        let mut cell = Self { text, names, members, tail, id: None, kind: None, source: None };
        let string = |name: &str| serde_json::from_str::<String>(cell.value(name)?).ok();
        (cell.id, cell.kind, cell.source) =
            (string("id"), string("cell_type"), cell.value("source").and_then(source_text));
        Some(cell)
    }

    fn member(&self, name: &str) -> Option<&Item<'a>> {
        self.names.iter().position(|n| n == name).map(|at| &self.members[at])
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.member(name).map(|item| item.value)
    }
}

struct Merging<'m, 'a> {
    ours: &'m Notebook<'a>,
    /// The byte offset of each line of ours.
    starts: Vec<usize>,
    /// Never `Markers`.
    decision: Option<Decision>,
    clashes: Vec<Clash>,
}

impl<'a> Merging<'_, 'a> {
    /// The merged text, with ours in place of an undecided clash.
    fn notebook(&mut self, base: &Notebook<'a>, theirs: &Notebook<'a>) -> String {
        let ours = self.ours;
        let head = self.frame(base.head, ours.head, theirs.head);
        let mut out: Vec<(Option<usize>, Cow<str>)> = Vec::new();
        let (to_ours, to_theirs) = (align(&base.cells, &ours.cells), align(&base.cells, &theirs.cells));
        for piece in content::pieces(base.cells.len(), &to_ours, &to_theirs) {
            let (b, o, t) = (&base.cells[piece.base], &ours.cells[piece.ours.clone()], &theirs.cells[piece.theirs]);
            let own = piece.ours.clone().zip(o).map(|(at, cell)| (Some(at), Cow::Borrowed(cell.text)));
            if !piece.changed {
                for (((at, o), b), t) in piece.ours.zip(o).zip(b).zip(t) {
                    out.push((Some(at), self.cell(b, o, t)));
                }
            } else if alike(o, t) || alike(b, t) {
                out.extend(own);
            } else if alike(b, o) || !self.keeps_ours(ours.place(piece.ours.start), o, b, t) {
                out.extend(t.iter().map(|cell| (None, Cow::Borrowed(cell.text))));
            } else {
                out.extend(own);
            }
        }
        let foot_line = self.line(ours.text.len() - ours.foot.len()) - 1;
        let known = self.clashes.len();
        let foot = self.frame(base.foot, ours.foot, theirs.foot);
        for clash in &mut self.clashes[known..] {
            clash.line += foot_line;
        }
        let cells = write_list(&out, [&ours.list, &theirs.list, &base.list]);
        format!("{head}{cells}{foot}")
    }

    /// Merges what surrounds the cells, line by line. Whether that is valid JSON is checked at the end, on the whole.
    fn frame(&mut self, base: &str, ours: &str, theirs: &str) -> String {
        let (text, clashes) = self.lines(base, ours, theirs);
        self.clashes.extend(clashes);
        text
    }

    /// Like [`content::merge_text`], with ours in place of an undecided clash.
    fn lines(&self, base: &str, ours: &str, theirs: &str) -> (String, Vec<Clash>) {
        let [b, o, t] = [base, ours, theirs].map(str::as_bytes);
        let (text, clashes) = content::merge_text(b, o, t, self.decision, &NO_LABELS);
        (text.and_then(|text| String::from_utf8(text).ok()).unwrap_or_else(|| ours.to_owned()), clashes)
    }

    /// Records that whole cells clash and returns whether ours stay.
    fn keeps_ours(&mut self, place: usize, ours: &[Cell], base: &[Cell], theirs: &[Cell]) -> bool {
        let shown = |cells: &[Cell]| cells.iter().flat_map(|c| c.text.lines()).map(str::to_owned).collect();
        self.clash(place, shown(ours), shown(base), shown(theirs))
    }

    /// Records a clash at a byte offset of ours and returns whether ours stays.
    fn clash(&mut self, place: usize, ours: Vec<String>, base: Vec<String>, theirs: Vec<String>) -> bool {
        self.clashes.push(Clash { line: self.line(place), ours, base, theirs });
        self.decision != Some(Decision::Theirs)
    }

    /// The line of ours that contains a byte offset, from 1.
    fn line(&self, place: usize) -> u32 {
        self.starts.partition_point(|start| *start <= place) as u32
    }

    /// Merges a cell that all sides have.
    fn cell(&mut self, base: &Cell<'a>, ours: &Cell<'a>, theirs: &Cell<'a>) -> Cow<'a, str> {
        if ours.text == theirs.text || base.text == theirs.text {
            return Cow::Borrowed(ours.text);
        }
        if ours.text == base.text {
            return Cow::Borrowed(theirs.text);
        }
        // If a cell is code on one side and prose on the other, their members do not fit together.
        if ours.kind != theirs.kind && !same(base.text, theirs.text) && !same(base.text, ours.text) {
            let [o, b, t] = [ours, base, theirs].map(std::slice::from_ref);
            let place = offset(self.ours.text, ours.text);
            return Cow::Borrowed(if self.keeps_ours(place, o, b, t) { ours.text } else { theirs.text });
        }
        let mut names: Vec<&str> = ours.names.iter().map(String::as_str).collect();
        for (at, name) in theirs.names.iter().enumerate().filter(|(_, name)| !ours.names.contains(name)) {
            // Next to its neighbour on that side, since the names are usually sorted.
            let before = at.checked_sub(1).and_then(|b| names.iter().position(|n| *n == theirs.names[b]));
            names.insert(before.map_or(0, |before| before + 1), name);
        }
        let mut out = Vec::new();
        for name in names {
            let Some(value) = self.member(name, base, ours, theirs) else { continue };
            match (ours.member(name), theirs.member(name)) {
                (Some(own), _) => out.push((own.lead, value, own.trail)),
                (None, Some(new)) => out.push((new.lead, value, "")),
                (None, None) => {}
            }
        }
        Cow::Owned(write('{', &out, ours.tail, '}'))
    }

    /// Merges one member of a cell that both sides changed.
    fn member(&mut self, name: &str, base: &Cell<'a>, ours: &Cell<'a>, theirs: &Cell<'a>) -> Option<Cow<'a, str>> {
        let (b, o, t) = (base.value(name), ours.value(name), theirs.value(name));
        if both_same(o, t) || both_same(b, t) {
            return o.map(Cow::Borrowed);
        }
        if b == o {
            return t.map(Cow::Borrowed);
        }
        if name == "source"
            && let (Some(b), Some(o), Some(t)) = (b, o, t)
            && let (Some(b_text), Some(o_text), Some(t_text)) = (&base.source, &ours.source, &theirs.source)
        {
            return Some(self.source([b, o, t], [b_text, o_text, t_text]));
        }
        if both_same(b, o) {
            return t.map(Cow::Borrowed);
        }
        // Cell output is never worth a question; what is there now is the more recent run.
        if matches!(name, "outputs" | "execution_count") {
            return o.map(Cow::Borrowed);
        }
        let shown = |cell: &Cell| {
            let Some(item) = cell.member(name) else { return Vec::new() };
            format!("{}{}", item.lead.trim_start(), item.value).lines().map(str::to_owned).collect()
        };
        let place = offset(self.ours.text, o.unwrap_or(ours.text));
        let keep = self.clash(place, shown(ours), shown(base), shown(theirs));
        if keep { o } else { t }.map(Cow::Borrowed)
    }

    /// Merges the lines of a cell, given each side's raw JSON and its decoded text.
    fn source(&mut self, raw: [&'a str; 3], text: [&str; 3]) -> Cow<'a, str> {
        let ours = raw[1];
        let (merged, clashes) = self.lines(text[0], text[1], text[2]);
        let lists = raw.map(|raw| list(raw).unwrap_or_default());
        let a_line_each = lists[1].items.len() == text[1].split_inclusive('\n').count();
        for clash in clashes {
            let literal = lists[1].items.get(clash.line as usize - 1).filter(|_| a_line_each);
            let place = offset(self.ours.text, literal.map_or(ours, |item| item.value));
            self.clashes.push(Clash { line: self.line(place), ..clash });
        }
        if merged == text[1] {
            return Cow::Borrowed(ours);
        }
        if ours.starts_with('"') {
            return Cow::Owned(Value::String(merged).to_string());
        }
        // Each line keeps a side's own spelling: programs differ in what they escape.
        let mut literals = HashMap::new();
        for item in [0, 2, 1].into_iter().flat_map(|side| &lists[side].items) {
            if let Ok(line) = serde_json::from_str::<String>(item.value) {
                literals.insert(line, item.value);
            }
        }
        let written = |line: &str| match literals.get(line) {
            Some(literal) => Cow::Borrowed(*literal),
            None => Cow::Owned(Value::from(line).to_string()),
        };
        let out: Vec<_> = merged.split_inclusive('\n').map(|line| (None, written(line))).collect();
        Cow::Owned(write_list(&out, [&lists[1], &lists[2], &lists[0]]))
    }
}

/// Where a side added or removed cells; an edited cell is still the same cell.
///
/// Cells are matched by id, or by their whole text where they have none; then by their source; and the remaining ones
/// by position, where both sides have equally many.
fn align<'a>(base: &[Cell<'a>], side: &[Cell<'a>]) -> Vec<Hunk> {
    fn by_id<'c>(cell: &'c Cell) -> &'c str {
        cell.id.as_deref().unwrap_or(cell.text)
    }
    fn by_source<'c>(cell: &'c Cell) -> &'c str {
        cell.source.as_deref().unwrap_or(cell.text)
    }
    let mut pairs = Vec::new();
    for hunk in keyed(base, side, by_id, &mut pairs, 0, 0) {
        let (b, s) = (hunk.base.start, hunk.side.start);
        for hunk in keyed(&base[hunk.base], &side[hunk.side], by_source, &mut pairs, b, s) {
            if hunk.base.len() != hunk.side.len() {
                continue;
            }
            for (b, s) in hunk.base.zip(hunk.side) {
                let strangers = base[b].id.is_some() && side[s].id.is_some() && base[b].id != side[s].id;
                if !strangers && base[b].kind == side[s].kind {
                    pairs.push((b, s));
                }
            }
        }
    }
    pairs.sort_unstable();
    pairs.push((base.len(), side.len()));
    let (mut b, mut s) = (0, 0);
    let mut out = Vec::new();
    for (next_b, next_s) in pairs {
        if (b, s) != (next_b, next_s) {
            out.push(Hunk { base: b..next_b, side: s..next_s, open: false, floats: false });
        }
        (b, s) = (next_b + 1, next_s + 1);
    }
    out
}

/// Pairs cells by a key and returns the gaps in between, counted from `from_base` and `from_side`.
fn keyed<'a>(
    base: &[Cell<'a>],
    side: &[Cell<'a>],
    key: for<'c> fn(&'c Cell) -> &'c str,
    pairs: &mut Vec<(usize, usize)>,
    from_base: usize,
    from_side: usize,
) -> Vec<Hunk> {
    let keys = |cells| -> Vec<&str> { <[Cell]>::iter(cells).map(key).collect() };
    let mut hunks = content::hunks(&keys(base), &keys(side));
    let (mut b, mut s) = (0, 0);
    for hunk in &mut hunks {
        pairs.extend((from_base + b..from_base + hunk.base.start).zip(from_side + s..));
        (b, s) = (hunk.base.end, hunk.side.end);
        hunk.base = from_base + hunk.base.start..from_base + b;
        hunk.side = from_side + hunk.side.start..from_side + s;
    }
    pairs.extend((from_base + b..from_base + base.len()).zip(from_side + s..));
    hunks
}

/// Whether cells are the same apart from their layout.
fn alike(a: &[Cell], b: &[Cell]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a.text, b.text))
}

fn both_same(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a == b,
    }
}

/// Whether two pieces of JSON have the same value.
fn same(a: &str, b: &str) -> bool {
    let value = |text| serde_json::from_str::<Value>(text).ok();
    a == b || matches!((value(a), value(b)), (Some(a), Some(b)) if a == b)
}

/// A list's text, laid out like the first of `styles` that has elements; an element may have an index in that first
/// list.
fn write_list(elements: &[(Option<usize>, Cow<str>)], styles: [&List; 3]) -> String {
    let ours = &styles[0].items;
    let style = styles.into_iter().find(|style| !style.items.is_empty()).unwrap_or(styles[0]);
    let first = style.items.first().map_or("", |item| item.lead);
    let rest = match style.items.get(1) {
        Some(second) => second.lead,
        None if first.is_empty() => " ",
        None => first,
    };
    let written = |(n, (place, value)): (usize, &(Option<usize>, Cow<str>))| {
        let own = place.and_then(|place| ours.get(place));
        let lead = match own {
            _ if n == 0 => first,
            Some(own) if *place != Some(0) => own.lead,
            _ => rest,
        };
        (lead, Cow::Owned(value.to_string()), own.map_or("", |own| own.trail))
    };
    let out: Vec<_> = elements.iter().enumerate().map(written).collect();
    write('[', &out, style.tail, ']')
}

fn write(open: char, items: &[(&str, Cow<str>, &str)], tail: &str, close: char) -> String {
    let mut out = String::from(open);
    for (n, (lead, value, trail)) in items.iter().enumerate() {
        out += lead;
        out += value;
        if n + 1 < items.len() {
            out += trail;
            out.push(',');
        } else {
            out += tail;
        }
    }
    out.push(close);
    out
}

fn list(text: &str) -> Option<List<'_>> {
    let values: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let (items, tail) = items(text, &values.into_iter().map(RawValue::get).collect::<Vec<_>>());
    Some(List { items, tail })
}

/// The values of a list or an object, which are slices of its text, with the text around them; and the tail.
fn items<'a>(text: &'a str, values: &[&'a str]) -> (Vec<Item<'a>>, &'a str) {
    // After the opening bracket.
    let mut at = 1;
    let mut out = Vec::with_capacity(values.len());
    for value in values {
        let start = offset(text, value);
        let end = start + value.len();
        let blank = text[end..].len() - text[end..].trim_start().len();
        out.push(Item { lead: &text[at..start], value, trail: &text[end..end + blank] });
        at = end + blank + 1;
    }
    let tail = out.last_mut().map_or("", |last: &mut Item<'a>| std::mem::take(&mut last.trail));
    (out, tail)
}

/// The offset of a slice in the text it was taken from.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// A cell's source: a string, or a list of strings that form one text.
fn source_text(raw: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Source {
        One(String),
        Many(Vec<String>),
    }
    Some(match serde_json::from_str(raw).ok()? {
        Source::One(text) => text,
        Source::Many(parts) => parts.concat(),
    })
}

#[cfg(test)]
mod tests;
