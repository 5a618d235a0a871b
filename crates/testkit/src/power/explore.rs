//! Opens what power cuts leave, and judges it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use piton_engine::view::DamageView;
use piton_engine::{CaptureOptions, OpenError, RewindOptions};

use super::cuts::Cut;
use super::recorder::{FOLDERS, Phase, Recorded, store_in};
use crate::snapshot::Snapshot;
use crate::{Dice, kept};

/// How many states are tried by default.
const STATES: usize = 200;
/// After this many known states in a row, all are taken to be found.
const PATIENCE: usize = 3_000;
/// One in this many states is used further: rewound, captured, checked again.
const USED: u64 = 6;

/// What was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explored {
    pub cuts: usize,
    /// Distinct disks that they left.
    pub states: usize,
    /// States with something set aside.
    pub aside: usize,
    /// States with the workspace as it was before the interrupted command, where that differs from after it.
    pub old: usize,
    /// States with the workspace as it was after it.
    pub new: usize,
}

impl Recorded {
    /// Tries power cuts until `PITON_POWER_STATES` distinct states are found, or for `PITON_POWER_SECONDS`; fails with
    /// everything needed to repeat the case.
    #[track_caller]
    pub fn explore(&self, name: &str, seed: u64) -> Explored {
        let (explored, failures) = self.try_cuts(seed);
        let _ = writeln_stderr(&format!("{name}: {explored:?}"));
        assert!(failures.is_empty(), "{name}: {explored:?}\n{}", failures.join("\n\n"));
        explored
    }

    fn try_cuts(&self, seed: u64) -> (Explored, Vec<String>) {
        let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
        let until = setting("PITON_POWER_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let states = setting("PITON_POWER_STATES").map_or(STATES, |states| states as usize);
        let mut dice = Dice::new(seed);
        let points: Vec<(&Phase, usize)> =
            self.phases.iter().flat_map(|phase| (phase.began..=phase.ended).map(move |at| (phase, at))).collect();
        let certain = points
            .iter()
            .flat_map(|(phase, at)| Cut::certain(&self.recording, *at).into_iter().map(move |cut| (*phase, cut)));
        let mut certain: Vec<(&Phase, Cut)> = certain.collect();
        for left in (1..certain.len()).rev() {
            certain.swap(left, dice.below(left as u64 + 1) as usize);
        }
        let mut explored = Explored::default();
        let mut seen = HashSet::new();
        let mut failures: Vec<String> = Vec::new();
        let mut in_vain = 0;
        while in_vain < PATIENCE && failures.len() < 3 {
            let is_over = until.map_or(explored.states >= states, |until| Instant::now() >= until);
            if is_over {
                break;
            }
            let (phase, cut) = match certain.pop().filter(|_| explored.cuts.is_multiple_of(2)) {
                Some(next) => next,
                None => {
                    let (phase, at) = *dice.one_of(&points);
                    (phase, Cut::by_chance(&mut dice, at))
                }
            };
            explored.cuts += 1;
            let disk = self.recording.after_cut(cut.at, |event, sector| cut.keeps(&self.recording, event, sector));
            let is_done = cut.at == phase.ended;
            let mut hasher = DefaultHasher::new();
            (disk.hash(), phase.began, is_done).hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                in_vain += 1;
                continue;
            }
            in_vain = 0;
            explored.states += 1;
            disk.restore(self.world.base(), &FOLDERS);
            let is_used = dice.below(USED) == 0;
            let judged = catch_unwind(AssertUnwindSafe(|| self.judge(phase, is_done, is_used, &mut explored)));
            let judged = judged.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                Err(format!(
                    "panicked: {}",
                    text.or(panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
                ))
            });
            if let Err(why) = judged {
                failures.push(self.tell(phase, cut, &why));
            }
        }
        (explored, failures)
    }

    /// Checks what must be true of what is on the disk now.
    fn judge(&self, phase: &Phase, is_done: bool, is_used: bool, explored: &mut Explored) -> Result<(), String> {
        let world = &self.world;
        let promised = if is_done { &phase.promised_after } else { &phase.promised };
        let workspace = match world.engine.open(&world.ws()) {
            Ok(workspace) => workspace,
            Err(OpenError::NotKnown(_)) if promised.is_empty() => {
                let now = world.snapshot();
                return if phase.allowed.contains(&now) {
                    Ok(())
                } else {
                    Err("a workspace that is unknown changed".into())
                };
            }
            Err(error) => return Err(format!("it does not open: {error}")),
        };
        let now = world.snapshot();
        let allowed = if is_done { std::slice::from_ref(&phase.after) } else { &phase.allowed[..] };
        if !allowed.contains(&now) {
            let differs = allowed.iter().map(|one| now.differences(one).join("\n")).collect::<Vec<_>>();
            return Err(format!("the workspace is a mix: is | should be\n{}", differs.join("\nor\n")));
        }
        if phase.allowed.len() > 1 {
            if now == phase.after { explored.new += 1 } else { explored.old += 1 }
        }
        let found = workspace.verify(false).map_err(|error| format!("verify: {error}"))?;
        let is_aside = |damage: &&DamageView| matches!(damage, DamageView::Aside { .. });
        explored.aside += usize::from(found.damage.iter().any(|damage| is_aside(&damage)));
        let unsound: Vec<&DamageView> = found.damage.iter().filter(|damage| !is_aside(damage)).collect();
        if !unsound.is_empty() {
            return Err(format!("verify: {unsound:?}"));
        }
        let store = store_in(&world.base().join("home")).ok_or("there is no store")?;
        drop(workspace);
        let held = kept(&store).map_err(|error| format!("the store does not open: {error}"))?;
        for (id, holds) in &held {
            match (holds, self.known.get(id)) {
                (Err(error), _) => return Err(format!("{id} is listed and cannot be read: {error}")),
                (Ok(holds), Some(known)) if holds != known => {
                    return Err(format!(
                        "{id} holds something else: is | should be\n{}",
                        holds.differences(known).join("\n")
                    ));
                }
                _ => {}
            }
        }
        let held: HashMap<String, Snapshot> =
            held.into_iter().filter_map(|(id, holds)| Some((id, holds.ok()?))).collect();
        if let Some(lost) = promised.iter().find(|id| !held.contains_key(*id)) {
            return Err(format!("{lost} was promised and is lost; {} of {} are there", held.len(), self.known.len()));
        }
        if is_used { self.make_use_of(&held) } else { Ok(()) }
    }

    /// Continues with what was found: every verb works, and every state there can be returned to.
    fn make_use_of(&self, held: &HashMap<String, Snapshot>) -> Result<(), String> {
        let world = &self.world;
        let open = || world.engine.open(&world.ws()).map_err(|error| format!("it does not open again: {error}"));
        world.write("written after the cut", "by somebody");
        let last = world.snapshot();
        let captured = open()?.capture(&CaptureOptions::default());
        let captured = captured.map_err(|error| format!("nothing can be captured: {error}"))?;
        let mut ids: Vec<&String> = held.keys().collect();
        ids.sort();
        let last_id = captured.checkpoint.checkpoint.id.to_string();
        for (id, holds) in ids.into_iter().map(|id| (id, &held[id])).chain([(&last_id, &last)]) {
            let outcome = open()?.rewind_now(id, &RewindOptions { interrupted: true, ..RewindOptions::default() });
            outcome.map_err(|error| format!("no rewind to {id}: {error}"))?;
            let now = world.snapshot();
            if now != *holds {
                return Err(format!("a rewind to {id}: is | should be\n{}", now.differences(holds).join("\n")));
            }
        }
        let found = open()?.verify(false).map_err(|error| format!("verify: {error}"))?;
        let unsound = found.damage.iter().find(|damage| !matches!(damage, DamageView::Aside { .. }));
        unsound.map_or(Ok(()), |damage| Err(format!("after all that, verify: {damage:?}")))
    }

    fn tell(&self, phase: &Phase, cut: Cut, why: &str) -> String {
        let events = self.recording.describe(cut.at, |event, sector| cut.keeps(&self.recording, event, sector));
        let from = events.len().saturating_sub(120);
        let state = if cut.at == phase.ended { "after" } else { "during" };
        format!("a power cut {state} `{}`, {cut:?}: {why}\n  {}", phase.command, events[from..].join("\n  "))
    }
}

/// Bypasses the test runner's capture: the figures of a long run are worth seeing.
fn writeln_stderr(line: &str) -> std::io::Result<()> {
    use std::io::Write;
    if std::env::var_os("PITON_POWER_STATES").or(std::env::var_os("PITON_POWER_SECONDS")).is_none() {
        return Ok(());
    }
    std::io::stderr().write_all(format!("{line}\n").as_bytes())
}
