//! How large everything is: as measured, or in miniature, to see that the bench itself still works.

/// By what the sizes of a scenario are divided.
#[derive(Debug, Clone, Copy)]
pub struct Scale(usize);

impl Scale {
    /// As measured.
    pub const FULL: Self = Self(1);
    /// A few seconds for all of it; the figures mean nothing.
    pub const TRIAL: Self = Self(50);

    /// A size in this scale.
    pub fn of(self, full: usize) -> usize {
        full / self.0
    }
}
