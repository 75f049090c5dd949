//! Keys to measure lookups with, determined by a seed and made before the clock starts.
//!
//! A pattern is a file in this folder and an entry of [`patterns`]; the command and the benchmarks pick it up.
//! [`recorded`] makes traffic of a recorded list of addresses.

mod matching;
mod missing;
mod mixed;
mod repeated;
mod sequential;
mod space;
mod uniform;
mod zipf;

use core::fmt;

use fibula::net::{Key, Routes};

pub use space::{RESERVED_IPV4, reserved};

/// A way to choose keys.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Pattern<K: Key> {
    /// The name, in lower case.
    pub name: &'static str,
    /// A description of half a line.
    pub summary: &'static str,
    /// Whether a benchmark makes each key wait for the answer before it.
    pub dependent: bool,
    /// Generates keys for a table.
    pub generate: Generate<K>,
}

/// Generates `count` keys for a table from a seed.
pub type Generate<K> = fn(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError>;

impl<K: Key> fmt::Debug for Pattern<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns all patterns except the mixes, of which there is one for every percentage.
#[must_use]
pub fn patterns<K: Key>() -> Vec<Pattern<K>> {
    vec![
        uniform::pattern(),
        matching::pattern(),
        zipf::pattern(),
        repeated::pattern(),
        sequential::pattern(),
        missing::pattern(),
    ]
}

/// Finds the pattern of this name: one of [`patterns`], or `mix:0` to `mix:100`, with that percentage of `match` keys
/// and the rest `miss` keys.
#[must_use]
pub fn find<K: Key>(name: &str) -> Option<Pattern<K>> {
    patterns().into_iter().find(|pattern| pattern.name == name).or_else(|| mixed::find(name))
}

/// Takes `count` keys from a recorded list of addresses, in its order, and from the beginning again after its end.
/// The order is kept because it holds the locality of real traffic.
///
/// # Errors
/// If the list is empty and `count` is not 0.
pub fn recorded<K: Key>(addresses: &[K], count: usize) -> Result<Vec<K>, TrafficError> {
    if addresses.is_empty() && count > 0 {
        return Err(TrafficError::NoAddresses);
    }
    Ok(addresses.iter().copied().cycle().take(count).collect())
}

/// Why a pattern has no keys for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrafficError {
    /// The pattern takes its keys from the table, and the table is empty.
    NoRoutes {
        /// The pattern.
        pattern: &'static str,
    },
    /// The keys must miss every route, and none can: there is a default route, or the routes fill the space.
    NothingMissed {
        /// The pattern.
        pattern: &'static str,
    },
    /// A recorded list of addresses is empty.
    NoAddresses,
}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoutes { pattern } => {
                write!(f, "traffic '{pattern}' takes its keys from the routes, and the table is empty")
            }
            Self::NothingMissed { pattern } => write!(
                f,
                "traffic '{pattern}' needs addresses that no route matches, and this table matches all of them: it has \
                 a default route or fills the space"
            ),
            Self::NoAddresses => f.write_str("the recorded list of addresses is empty"),
        }
    }
}

impl core::error::Error for TrafficError {}
