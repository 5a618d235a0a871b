//! Decompressing zlib, with one state for many small objects.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};

pub(super) struct Inflater {
    state: Decompress,
    input: Box<[u8]>,
    from: usize,
    to: usize,
}

impl Default for Inflater {
    fn default() -> Self {
        Self { state: Decompress::new(true), input: vec![0; 4096].into(), from: 0, to: 0 }
    }
}

impl Inflater {
    /// Resets the state; the source begins with the stream.
    pub(super) fn begin(&mut self) {
        (self.from, self.to) = (0, 0);
        self.state.reset(true);
    }

    /// Fills the output or reaches the stream's end; returns the length and whether it ended. `None` if it is damaged.
    pub(super) fn fill(
        &mut self,
        source: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
        output: &mut [u8],
    ) -> Option<(usize, bool)> {
        let mut filled = 0;
        while filled < output.len() {
            if self.from == self.to {
                self.from = 0;
                // At its end there may still be output that did not fit the last time.
                self.to = source(&mut self.input).ok()?;
            }
            let (taken, given) = (self.state.total_in(), self.state.total_out());
            let input = &self.input[self.from..self.to];
            let status = self.state.decompress(input, &mut output[filled..], FlushDecompress::None).ok()?;
            let taken = (self.state.total_in() - taken) as usize;
            let given = (self.state.total_out() - given) as usize;
            self.from += taken;
            filled += given;
            match status {
                Status::StreamEnd => return Some((filled, true)),
                _ if taken == 0 && given == 0 => return None,
                _ => {}
            }
        }
        Some((filled, false))
    }
}
