//! A progress bar for work over a second, on stderr, and only for a person.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use piton_engine::Progress;

use crate::console::Console;

/// Shorter work is over before a bar could be read.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// Does work on this thread, and shows on another how far it is.
pub fn with_progress<T>(console: &Console, progress: &Progress, what: &'static str, work: impl FnOnce() -> T) -> T {
    if !console.talk.terminal {
        return work();
    }
    // What an earlier scan of the same process read is none of this one's.
    progress.files_read.store(0, Relaxed);
    progress.bytes_read.store(0, Relaxed);
    std::thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            if is_done.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            while is_done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                draw(&bar, progress, what);
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(done);
        result
    })
}

fn draw(bar: &ProgressBar, progress: &Progress, what: &'static str) {
    let (files, bytes) = (progress.files.load(Relaxed), progress.bytes.load(Relaxed));
    let read = progress.files_read.load(Relaxed).min(files);
    bar.set_prefix(what);
    if files == 0 || read == files {
        // Listing folders, or after the reading: there is nothing to count.
        bar.set_style(style("{spinner} {prefix} {elapsed}"));
        bar.tick();
        return;
    }
    bar.set_length(bytes.max(1));
    bar.set_position(progress.bytes_read.load(Relaxed).min(bytes));
    bar.set_message(format!("{} of {} files, {}", HumanCount(read), HumanCount(files), HumanBytes(bytes)));
    bar.set_style(style("{prefix} [{bar:24}] {percent}% {msg}"));
    bar.tick();
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}
