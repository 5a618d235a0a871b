//! Changed rules and settings that wait for the user's word, in plain words: for `piton rules`, `piton status`, the hook and a
//! note at any other command.

use std::path::Path;

use piton_engine::model::ownership::Owner;
use piton_engine::view::{HeldView, Waiting};

use crate::call::call;
use crate::escape::{escape, escape_view};
use crate::text;
use crate::text::Text;
use crate::words::grouped;

/// How to agree, and how to hear more; in another workspace where one is given.
pub fn how(workspace: Option<&Path>) -> Text {
    let rules = || workspace.map_or_else(|| call("rules"), |path| call("rules").there(path));
    text![rules().arg("accept"), " agrees, ", rules(), " says more"]
}

/// More paths than this are counted.
const MOST: usize = 4;

/// One sentence for each rule or file of settings that waits.
pub fn sentences(waiting: &Waiting) -> Vec<String> {
    let mut groups: Vec<(&HeldView, Vec<String>)> = Vec::new();
    for held in &waiting.paths {
        let path = escape_view(&held.path);
        match groups.iter_mut().find(|(first, _)| first.rules == held.rules && first.owner == held.owner) {
            Some((_, paths)) => paths.push(path),
            None => groups.push((held, vec![path])),
        }
    }
    let mut all: Vec<String> = groups.iter().map(|(held, paths)| rule(held, paths)).collect();
    if !waiting.settings.is_empty() {
        let says = |setting: &piton_engine::view::HeldSetting| format!("{} = {}", setting.key, escape(&setting.says));
        let says: Vec<_> = waiting.settings.iter().map(says).collect();
        all.push(format!(
            ".piton/config.toml was changed, and not by you: it says {}; that takes effect only when you agree",
            says.join(", ")
        ));
    }
    all
}

fn rule(held: &HeldView, paths: &[String]) -> String {
    let rules: Vec<_> = held.rules.iter().map(|rule| escape(rule)).collect();
    let more = paths.len().saturating_sub(MOST);
    let mut named = paths[..paths.len() - more].join(", ");
    if more > 0 {
        named += &format!(" and {} more", grouped(more as u64));
    }
    let stays = if paths.len() == 1 { "it stays" } else { "they stay" };
    let leaves = if rules.len() == 1 { "leaves" } else { "leave" };
    let (rules, by) = (rules.join(", "), by(&held.owner));
    format!("{rules} changed ({by}) and {leaves} out {named}; {stays} captured until you agree")
}

/// Who changed a rule, where no other session could be meant.
pub fn by(owner: &Owner) -> String {
    match owner.turn() {
        Some((_, turn)) => format!("by the agent, in turn {turn}"),
        None if matches!(owner, Owner::Operation { .. }) => "by an operation that brought them back".to_owned(),
        None => "by an agent or an unknown program".to_owned(),
    }
}
