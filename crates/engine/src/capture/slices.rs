//! How long a scan may read files, and in how many pieces.

use piton_host::ReadFor;
use std::time::{Duration, Instant};

/// How long a scan may read files.
#[derive(Clone, Copy, Default)]
pub(crate) enum Time {
    /// Without a limit.
    #[default]
    Any,
    /// Until a deadline. What was read is kept every now and then, so that a process which is ended with its deadline
    /// loses little of it.
    Until(Instant),
    /// For this long, not counting the time for listing, and at least one file.
    Slice(Duration),
}

/// Divides a scan's time into slices.
pub(super) struct Slices {
    /// How long each is; `None` if there is no limit.
    each: Option<Duration>,
    /// When reading stops.
    end: Option<Instant>,
    is_one: bool,
}

impl Slices {
    /// How much work may be lost if the process is killed in the middle of it.
    const LONGEST: Duration = Duration::from_secs(2);

    pub(super) fn begin(time: Time) -> Self {
        match time {
            Time::Any => Self { each: None, end: None, is_one: false },
            Time::Slice(each) => Self { each: Some(each), end: None, is_one: true },
            Time::Until(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                // The last slice has to be saved too, before the process is killed.
                Self { each: Some((left / 4).min(Self::LONGEST)), end: Some(deadline - left / 8), is_one: false }
            }
        }
    }

    pub(super) fn next(&self) -> ReadFor {
        ReadFor { until: self.each.map(|each| Instant::now() + each), deadline: self.end }
    }

    pub(super) fn are_over(&self) -> bool {
        self.is_one || self.end.is_some_and(|end| Instant::now() >= end)
    }
}
