//! What a structure's own walk over itself can find. Knows nobody.

use core::fmt;

/// A broken invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckError {
    invariant: &'static str,
    at: usize,
}

impl CheckError {
    /// `invariant` does not hold at element `at`.
    #[must_use]
    pub fn new(invariant: &'static str, at: usize) -> Self {
        Self { invariant, at }
    }

    /// `Ok` where `holds`, this error where not.
    pub(crate) fn unless(holds: bool, invariant: &'static str, at: usize) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { invariant, at }) }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant at element {}: {}", self.at, self.invariant)
    }
}

impl core::error::Error for CheckError {}
