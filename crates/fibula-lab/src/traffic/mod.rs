//! Keys to measure lookups with: seeded, and made before the clock runs.
//!
//! A pattern is a file of this folder and a line of [`patterns`]; command and benchmarks follow. Keys that were
//! recorded elsewhere become traffic by [`recorded`].

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
    /// The name by which command and records know it. Lower case.
    pub name: &'static str,
    /// What it is, in half a line.
    pub summary: &'static str,
    /// Whether each key is to wait for the answer before it, as the [benchmark](crate::bench) has it.
    pub dependent: bool,
    /// Makes keys for a table.
    pub generate: Generate<K>,
}

/// Makes `count` keys for a table; the seed decides which.
pub type Generate<K> = fn(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError>;

impl<K: Key> fmt::Debug for Pattern<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All patterns but the mixes, of which there is one for every percent.
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

/// The pattern of this name. Beside those of [`patterns`] there are `mix:0` to `mix:100`: so many keys in a hundred
/// of `match`, the others of `miss`.
#[must_use]
pub fn find<K: Key>(name: &str) -> Option<Pattern<K>> {
    patterns().into_iter().find(|pattern| pattern.name == name).or_else(|| mixed::find(name))
}

/// `count` keys of a recorded list of addresses, in its order and from its beginning again where it ends. The order
/// is what a record is about: it holds the locality of real traffic.
///
/// # Errors
/// When there are no addresses to take keys from.
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
    /// The keys come from the table, and the table is empty.
    NoRoutes {
        /// The pattern.
        pattern: &'static str,
    },
    /// The keys are to miss every route, and none can: there is a default route, or the routes fill the space.
    NothingMissed {
        /// The pattern.
        pattern: &'static str,
    },
    /// A recorded list holds no address.
    NoAddresses,
}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoutes { pattern } => {
                write!(f, "the keys of pattern '{pattern}' come from a table with routes, this one is empty")
            }
            Self::NothingMissed { pattern } => write!(
                f,
                "pattern '{pattern}' asks for addresses that no route matches, and this table matches all: it has a \
                 default route or fills the space"
            ),
            Self::NoAddresses => f.write_str("the recorded list of addresses is empty"),
        }
    }
}

impl core::error::Error for TrafficError {}
