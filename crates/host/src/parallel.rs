//! Spreading work over all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

/// Fewer items than this are not worth a thread.
const FEW: usize = 64;
/// Items that a thread takes at a time: neighbours share their folder.
const SHARE: usize = 16;

/// How many threads are worth having.
pub(crate) fn threads() -> usize {
    sys::cores().clamp(1, 8)
}

/// Runs `work` on several threads at once, including this one. Each takes its own share of what there is to do, so it
/// does not matter how many there are or how soon they start.
pub(crate) fn together(threads: usize, work: impl Fn() + Sync) {
    let here = sys::core();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                // A new thread often starts on the core of the one that created it and stays there for many
                // milliseconds while another core is idle: longer than most of what is done together here.
                sys::leave_core(here);
                work();
            });
        }
        if threads > 1 {
            // Yield to one that waits on this core, so that it can leave it.
            std::thread::yield_now();
        }
        work();
    });
}

/// Runs `work` for each number below `count` and returns the results in order; the first error ends it. Each thread has
/// its own state.
pub fn in_parallel<S, T: Send, E: Send>(
    count: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    // A test that counts failpoints needs them in order, on its own thread.
    if count < FEW || crate::fail::is_armed() || sys::is_refusing() {
        let mut state = state();
        return (0..count).map(|number| work(&mut state, number)).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let failure = Mutex::new(None);
    let run = || {
        let mut state = state();
        let mut mine = Vec::new();
        'all: loop {
            let from = next.fetch_add(SHARE, Ordering::Relaxed);
            if from >= count {
                break;
            }
            for number in from..(from + SHARE).min(count) {
                match work(&mut state, number) {
                    Ok(value) => mine.push((number, value)),
                    Err(error) => {
                        next.store(count, Ordering::Relaxed);
                        failure.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
                        break 'all;
                    }
                }
            }
        }
        done.lock().unwrap_or_else(|e| e.into_inner()).append(&mut mine);
    };
    together(threads().min(count.div_ceil(SHARE)), run);
    if let Some(error) = failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_works_once() {
        let seen = Mutex::new(Vec::new());
        together(4, || seen.lock().unwrap().push(std::thread::current().id()));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable_by_key(|id| format!("{id:?}"));
        seen.dedup();
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn results_come_in_order_and_an_error_ends_it() {
        let squares = in_parallel(1000, || (), |(), n| Ok::<_, ()>(n * n));
        assert_eq!(squares, Ok((0..1000).map(|n| n * n).collect()));
        assert_eq!(in_parallel(1000, || (), |(), n| if n == 500 { Err("no") } else { Ok(n) }), Err("no"));
    }
}
