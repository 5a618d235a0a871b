//! A small mutational fuzzer for readers of untrusted bytes: it runs on stable Rust, inside ordinary tests.
//!
//! It mutates seeds at random, the same way in every run, and passes them to a harness. A harness returns the outcome
//! of an input (which error, how many turns): an input with a new outcome becomes a seed, too. This stands in for the
//! coverage that a compiler's instrumentation would give.
//!
//! | variable | what it does |
//! |---|---|
//! | `PITON_FUZZ_SECONDS` | how long each harness runs; a few seconds without it |
//! | `PITON_FUZZ_SEED` | other random numbers than those of every run |
//! | `PITON_FUZZ_INPUT` | runs this file alone, in the harness that it is named after |
//!
//! An input on which a harness panics, hangs or takes too much memory is stored in `fuzz/` of the target folder.

mod memory;
mod mutate;
mod watchdog;

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use memory::Measured;
pub use mutate::{Mutator, Random};

/// How long a harness runs by default: all of them together take about a minute.
const SHARE: Duration = Duration::from_millis(2_500);
/// Most inputs with new outcomes that are mutated further; more would only make each of them rarer.
const MOST_KEPT: usize = 4_096;
/// No reader may take more memory for an input of a few KiB. Some unpack up to 256 MiB by design.
const MOST_MEMORY: usize = 1 << 30;

/// Runs a harness on mutated seeds until its time is over, and returns how many it tried.
///
/// # Panics
/// If the harness does, with the name of the file that contains the input.
pub fn fuzz<O: Hash>(name: &str, seeds: &[Vec<u8>], mut act: impl FnMut(&[u8]) -> O) -> u64 {
    assert!(!seeds.is_empty(), "{name}: nothing to begin with");
    let mut run = Run::of(name);
    if let Some(path) = std::env::var_os("PITON_FUZZ_INPUT").map(PathBuf::from) {
        if is_named_after(&path, name) {
            let input = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            run.one(&input, &mut act);
        }
        return run.tried;
    }
    let mut mutator = Mutator::new(run.seed, seeds.to_vec());
    let mut known = HashSet::new();
    for seed in seeds {
        known.insert(run.one(seed, &mut act));
    }
    let began = Instant::now();
    let share = number_in("PITON_FUZZ_SECONDS").map_or(SHARE, Duration::from_secs);
    while began.elapsed() < share {
        let input = mutator.next_input();
        if known.insert(run.one(&input, &mut act)) && mutator.seeds() < MOST_KEPT {
            mutator.keep(input);
        }
    }
    println!("fuzz {name}: {} inputs, {} outcomes, seed {}", run.tried, known.len(), run.seed);
    run.tried
}

struct Run<'a> {
    name: &'a str,
    seed: u64,
    tried: u64,
    watchdog: watchdog::Watchdog,
}

impl<'a> Run<'a> {
    fn of(name: &'a str) -> Self {
        let seed = number_in("PITON_FUZZ_SEED").unwrap_or(1);
        Self { name, seed, tried: 0, watchdog: watchdog::Watchdog::start(name) }
    }

    fn one<O: Hash>(&mut self, input: &[u8], act: &mut impl FnMut(&[u8]) -> O) -> u64 {
        self.tried += 1;
        self.watchdog.begin(input);
        let (outcome, used) = memory::peak(|| catch_unwind(AssertUnwindSafe(|| act(input))));
        self.watchdog.end();
        let Ok(outcome) = outcome else { self.found("panics", input) };
        if used > MOST_MEMORY {
            self.found(&format!("takes {used} bytes of memory"), input);
        }
        let mut hasher = DefaultHasher::new();
        outcome.hash(&mut hasher);
        hasher.finish()
    }

    fn found(&self, what: &str, input: &[u8]) -> ! {
        let path = keep(self.name, input);
        panic!(
            "{} {what} at input {} of seed {}, kept as {}; run it alone with PITON_FUZZ_INPUT",
            self.name,
            self.tried,
            self.seed,
            path.display()
        )
    }
}

/// Stores an input in a file named after its harness.
fn keep(name: &str, input: &[u8]) -> PathBuf {
    // The test's binary is in `<target>/<profile>/deps`.
    let target = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("fuzz")));
    let folder = target.unwrap_or_else(std::env::temp_dir);
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = folder.join(format!("{name}-{:016x}", hasher.finish()));
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
    if let Err(error) = kept {
        eprintln!("{} cannot be written: {error}", path.display());
    }
    path
}

fn is_named_after(input: &Path, harness: &str) -> bool {
    let name = input.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.rsplit_once('-').is_some_and(|(name, _)| name == harness)
}

fn number_in(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_fault_is_found_and_its_input_kept() {
        let seeds = [br#"{"length":12,"text":"abc"}"#.to_vec()];
        let run = catch_unwind(|| {
            fuzz("planted", &seeds, |input| {
                let text = String::from_utf8_lossy(input);
                let length = text.split("\"length\":").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok());
                assert!(length != Some(u64::MAX) && length != Some(u64::from(u32::MAX)), "planted");
            })
        });
        let message = *run.expect_err("the fault is found").downcast::<String>().expect("it says where");
        let path = message.split("kept as ").nth(1).and_then(|rest| rest.split(';').next()).expect("a path");
        let kept = std::fs::read(path).expect("the input is there");
        assert!(String::from_utf8_lossy(&kept).contains("\"length\":"), "{kept:?}");
        assert!(is_named_after(Path::new(path), "planted"));
        std::fs::remove_file(path).expect("it goes");
    }

    #[test]
    fn what_brings_something_new_is_changed_further() {
        // Four bytes at once are never found by chance in this time; one after the other they are.
        let deepest = std::cell::Cell::new(0);
        fuzz("steps", &[b"....".to_vec()], |input| {
            let depth = input.iter().zip(b"Trip").take_while(|(is, should)| is == should).count();
            deepest.set(deepest.get().max(depth));
            depth
        });
        assert_eq!(deepest.get(), 4);
    }
}
