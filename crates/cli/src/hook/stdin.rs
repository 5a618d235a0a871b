//! Reading a report from standard input, which may be long, endless, or never come.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use piton_agents::{Agent, Report};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A report over this is none.
const MOST: usize = 64 << 20;
const PIECE: usize = 64 << 10;

/// What came.
pub struct Input {
    bytes: Vec<u8>,
    /// It was longer than a report can be; the rest was read and dropped.
    is_too_long: bool,
    /// It came to its end.
    is_whole: bool,
}

impl Input {
    /// The report in it.
    pub fn report(&self, agent: Agent) -> Result<Report, String> {
        if self.is_too_long {
            return Err(format!("error: the report is longer than {} MiB", MOST >> 20));
        }
        // One that is complete is worth taking in, whether or not its writer remembers to close the pipe.
        agent.events.parse(&self.bytes).map_err(|error| match self.is_whole {
            true => format!("error: {error}"),
            false => "error: the report did not come to its end in time".to_owned(),
        })
    }
}

/// Reads to the end, or until the time is over.
pub fn read(until: Instant) -> Input {
    let stdin = io::stdin();
    let stdin = stdin.as_fd();
    let mut input = Input { bytes: Vec::new(), is_too_long: false, is_whole: true };
    let mut piece = vec![0; PIECE];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&left)) {
            Ok(0) => {
                input.is_whole = false;
                return input;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return input,
        }
        match rustix::io::read(stdin, &mut piece[..]) {
            Ok(0) => return input,
            Ok(count) if input.bytes.len() + count <= MOST && !input.is_too_long => {
                input.bytes.extend_from_slice(&piece[..count]);
            }
            Ok(_) => {
                input.is_too_long = true;
                input.bytes = Vec::new();
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return input,
        }
    }
}
