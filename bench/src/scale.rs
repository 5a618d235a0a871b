//! How large everything is: as measured, or in miniature, to check that the bench itself still works.

/// The divisor of a scenario's sizes.
#[derive(Debug, Clone, Copy)]
pub struct Scale(usize);

impl Scale {
    pub const FULL: Self = Self(1);
    /// A few seconds for everything; the figures mean nothing.
    pub const TRIAL: Self = Self(50);

    pub fn of(self, full: usize) -> usize {
        full / self.0
    }
}
