//! Waiting for an agent that is at work. Nothing is held meanwhile: whoever stops waiting has changed nothing.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use piton_engine::view::RunningView;
use piton_engine::{OperationError, Workspace};
use piton_wording::escape::escape;
use piton_wording::{Code, Failure};

use crate::console::Console;
use crate::operate::{Act, Way};
use crate::signals::Signals;

/// Nobody who waits for longer than this remembers for what.
pub const AT_MOST: Duration = Duration::from_secs(30 * 60);
/// How often the store is asked.
const TICK: Duration = Duration::from_millis(200);

/// Reads a length of time: `1500ms`, `90s`, `10m`, `2h`.
///
/// # Errors
/// Where it is none.
pub fn time(typed: &str) -> Result<Duration, String> {
    let at = typed.find(|c: char| !c.is_ascii_digit()).unwrap_or(typed.len());
    let unit = match &typed[at..] {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let number = typed[..at].parse::<u64>().ok();
    let time = number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    // More than a year of milliseconds is no time that anybody waits.
    let time = time.filter(|ms| *ms < 366 * 24 * 3_600_000);
    time.map(Duration::from_millis).ok_or_else(|| "a time such as 90s, 10m or 2h".to_owned())
}

/// Waits until no agent stands in the way of an act any more.
///
/// # Errors
/// Where that takes longer than it may, or somebody stops the waiting.
pub fn until_idle(
    console: &mut Console,
    workspace: &Workspace,
    act: &Act,
    way: &Way,
    signals: &Signals,
    (until, at_most): (Instant, Duration),
) -> Result<(), Failure> {
    let at_work = || -> Result<Vec<RunningView>, Failure> {
        let mut running = act.running(workspace).map_err(|error| act.failed(error, &way.command))?;
        running.retain(|one| one.blocks);
        Ok(running)
    };
    let mut running = at_work()?;
    let Some(first) = running.first() else { return Ok(()) };
    console.say(format!("waiting: {}; Ctrl-C stops, and nothing is changed", escape(&first.describe())));
    let held = signals.hold();
    let bar = console.talk.terminal.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
    loop {
        // Also when there is nothing more to wait for: whoever typed it meant the waiting.
        if held.is_interrupted() {
            bar.inspect(|bar| bar.finish_and_clear());
            return Err(Failure::user(Code::WaitStopped, "the waiting was stopped; nothing was changed"));
        }
        if running.is_empty() {
            break;
        }
        if Instant::now() >= until {
            bar.inspect(|bar| bar.finish_and_clear());
            return Err(timed_out(running, way, at_most));
        }
        if let (Some(bar), Some(one)) = (&bar, running.first()) {
            bar.set_style(
                ProgressStyle::with_template("{spinner} {elapsed} {msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar.set_message(escape(&one.describe()).into_owned());
            bar.tick();
        }
        std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
        running = at_work()?;
    }
    bar.inspect(|bar| bar.finish_and_clear());
    Ok(())
}

/// The failure where an agent is still at work after all the waiting.
pub fn timed_out(running: Vec<RunningView>, way: &Way, at_most: Duration) -> Failure {
    let limit = piton_engine::model::settings::Value::Time(at_most);
    Failure::waited_in_vain(OperationError::Running(running), &way.command, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_an_end() {
        for (typed, expected) in [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("5ms", 5), ("0s", 0)] {
            assert_eq!(time(typed).unwrap(), Duration::from_millis(expected), "{typed}");
        }
        for bad in ["", "10", "s", "-1s", "1d", "1 s", "99999999999999999999s", "9999999h", "1s "] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
