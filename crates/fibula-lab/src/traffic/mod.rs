//! Keys to measure lookups with: seeded, and made before the clock runs.
//!
//! A pattern is a file of this folder and a line of [`patterns`]; command and benchmarks follow.

mod matching;
mod uniform;

use core::fmt;

use fibula::net::{Key, Routes};

/// A way to choose keys.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Pattern<K: Key> {
    /// The name by which command and records know it. Lower case.
    pub name: &'static str,
    /// What it is, in half a line.
    pub summary: &'static str,
    /// Makes keys for a table.
    pub generate: Generate<K>,
}

/// Makes `count` keys for a table; the seed decides which.
pub type Generate<K> = fn(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, NoRoutes>;

impl<K: Key> fmt::Debug for Pattern<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All patterns.
#[must_use]
pub fn patterns<K: Key>() -> Vec<Pattern<K>> {
    vec![uniform::pattern(), matching::pattern()]
}

/// The pattern of this name.
#[must_use]
pub fn find<K: Key>(name: &str) -> Option<Pattern<K>> {
    patterns().into_iter().find(|pattern| pattern.name == name)
}

/// A pattern draws its keys from the table, and the table is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoutes {
    /// The pattern.
    pub pattern: &'static str,
}

impl fmt::Display for NoRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keys of pattern '{}' come from a table with routes, this one is empty", self.pattern)
    }
}

impl core::error::Error for NoRoutes {}
