//! Broken invariants, as structures report them.

use core::fmt;

/// A broken invariant of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckError {
    invariant: &'static str,
    at: usize,
}

impl CheckError {
    /// Returns an error: `invariant` does not hold at element `at`.
    #[must_use]
    pub fn new(invariant: &'static str, at: usize) -> Self {
        Self { invariant, at }
    }

    /// Returns the invariant that does not hold.
    #[must_use]
    pub fn invariant(&self) -> &'static str {
        self.invariant
    }

    /// Returns the element at which it does not hold.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns this error unless `holds`.
    #[doc(hidden)]
    pub fn unless(holds: bool, invariant: &'static str, at: usize) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { invariant, at }) }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant at element {}: {}", self.at, self.invariant)
    }
}

impl core::error::Error for CheckError {}
