//! Which structure to take: by family, table, batch, instruction set and cache, from what was measured.
//!
//! No structure is the best one for everybody: what is fastest over a full table loses over a hundred routes, what needs
//! full vectors loses where keys come one by one. [`choose`] knows rates that were measured and committed (`records/`),
//! over tables from ten routes to full ones, in batches from one key on, with every instruction set; it takes the
//! fastest for the use at hand, and says why.
//!
//! ```
//! use fibula::auto::{self, Use};
//!
//! let router = Use { routes: 900_000, ..Use::default() };
//! let choice = auto::choose::<u32>(&router, None).expect("IPv4 was measured");
//! println!("{choice}");
//!
//! // The table grows: what is there stays unless another is clearly better.
//! let grown = Use { routes: 950_000, ..router };
//! let later = auto::choose::<u32>(&grown, Some(choice.algorithm.name)).expect("IPv4 was measured");
//! assert_eq!(later.algorithm.name, choice.algorithm.name);
//! ```
//!
//! # How
//!
//! - **Rates** are geometric means of MATCH and ZIPF (a random address below a random prefix, uniform and skewed), on one
//!   core. Between two tables that were measured the logarithm of the rate is interpolated over that of the number of
//!   routes; beyond the smallest and the largest it stays.
//! - **Tables** whose routes are mostly host routes are compared with measured ones of that kind.
//! - **Batch**: the largest measured one that is not larger. **Instruction set**: a structure's best kernels within the
//!   given set.
//! - **Cache**: on a machine whose second-level cache is k times that of the measured one, a table behaves as one of a
//!   k-th of the routes there.
//! - **Ties**: of those within 5 % of the best, the one that takes the fewest bytes.
//! - **Hysteresis**: what is in use stays while nothing is expected to be more than 10 % faster.

mod measured;
#[cfg(test)]
mod tests;

use core::fmt;

use crate::fib::registry::{self, Algorithm};
use crate::net::{Key, Prefix, Routes};
use crate::simd::{self, Isa};

use measured::{Curve, curves, l2_bytes};

/// What share of the best rate counts as equal to it.
const TIE: f64 = 0.95;

/// How many times faster another must be than what is in use.
const CHANGE: f64 = 1.1;

/// What a structure is to be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Routes of the table.
    pub routes: usize,
    /// How many of them are host routes, or so long that nearly all of their address is given.
    pub host_routes: usize,
    /// Keys that arrive together; 1 for single lookups.
    pub batch: usize,
    /// The instruction set lookups will take.
    pub isa: Isa,
    /// The second-level cache of a core; none for one like the measured machine's.
    pub l2_bytes: Option<usize>,
    /// Lookup bytes that the structure may take; none for as many as it likes.
    pub bytes_most: Option<usize>,
}

impl Default for Use {
    /// An empty table, batches of 256, the set that lookups take by themselves.
    fn default() -> Self {
        let isa = simd::chosen().isa();
        Self { routes: 0, host_routes: 0, batch: 256, isa, l2_bytes: None, bytes_most: None }
    }
}

impl Use {
    /// This use for a table: its routes are counted.
    #[must_use]
    pub fn with_table<K: Key>(mut self, routes: &dyn Routes<K>) -> Self {
        // Within a byte of a whole address.
        let long = K::BITS - K::BITS / 16;
        (self.routes, self.host_routes) = (0, 0);
        let _ = routes.visit(Prefix::ALL, &mut |route| {
            self.routes += 1;
            self.host_routes += usize::from(route.prefix.len() > long);
            core::ops::ControlFlow::Continue(())
        });
        self
    }

    fn is_mostly_hosts(&self) -> bool {
        self.host_routes * 2 > self.routes
    }
}

/// A structure, and what speaks for it.
#[derive(Debug, Clone, Copy)]
pub struct Choice<K: Key> {
    /// The structure.
    pub algorithm: Algorithm<K>,
    /// Expected rate, million lookups a second on one core of the measured machine.
    pub mlps: f64,
    /// Expected lookup bytes.
    pub bytes: usize,
    /// The set its kernels were measured with.
    pub isa: Isa,
    /// Keys a call when they were.
    pub batch: usize,
    /// Why this one.
    pub why: Why,
}

/// Why a structure was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// It is the fastest.
    Fastest,
    /// The fastest is less than 5 % faster, and larger.
    Smallest {
        /// The fastest.
        fastest: &'static str,
        /// Its rate.
        mlps: f64,
    },
    /// It is in use, and the best is less than 10 % faster.
    InUse {
        /// The best.
        best: &'static str,
        /// Its rate.
        mlps: f64,
    },
}

impl<K: Key> fmt::Display for Choice<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithm, mlps, bytes, isa, batch, why } = self;
        write!(
            f,
            "{}: {mlps:.0} M/s expected in batches of {batch} with {isa}, about {} kB; {why}",
            algorithm.name,
            bytes.div_ceil(1000)
        )
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fastest => f.write_str("the fastest that was measured"),
            Self::Smallest { fastest, mlps } => {
                write!(f, "smaller than {fastest}, which is less than 5 % faster ({mlps:.0} M/s)")
            }
            Self::InUse { best, mlps } => {
                write!(f, "in use, and {best} is not more than 10 % faster ({mlps:.0} M/s)")
            }
        }
    }
}

/// All structures that were measured for such a use, the fastest first; those that take too many bytes are left out.
#[must_use]
pub fn rank<K: Key>(wanted: &Use) -> Vec<Choice<K>> {
    let scale = wanted.l2_bytes.map_or(1.0, |bytes| bytes.max(1) as f64 / l2_bytes() as f64);
    let routes = wanted.routes.max(1) as f64 / scale;
    let mut all: Vec<Choice<K>> = Vec::new();
    for curve in curves().iter().filter(|curve| curve.serves::<K>(wanted)) {
        let Ok(algorithm) = registry::find::<K>(curve.algorithm) else { continue };
        let bytes = curve.bytes(wanted.routes.max(1) as f64) as usize;
        if wanted.bytes_most.is_some_and(|most| bytes > most) {
            continue;
        }
        let Curve { isa, batch, .. } = *curve;
        let choice = Choice { algorithm, mlps: curve.mlps(routes), bytes, isa, batch, why: Why::Fastest };
        // Of one structure the largest batch that fits, and of those the best set.
        match all.iter_mut().find(|other| other.algorithm.name == algorithm.name) {
            Some(other) if (other.batch, other.mlps) < (batch, choice.mlps) => *other = choice,
            Some(_) => {}
            None => all.push(choice),
        }
    }
    all.sort_by(|a, b| b.mlps.total_cmp(&a.mlps));
    all
}

/// The structure to take, where one was measured for such a use. `in_use` is the one there is, if any.
#[must_use]
pub fn choose<K: Key>(wanted: &Use, in_use: Option<&str>) -> Option<Choice<K>> {
    let ranked = rank::<K>(wanted);
    let fastest = *ranked.first()?;
    if let Some(name) = in_use
        && let Some(choice) = ranked.iter().find(|choice| choice.algorithm.name == name)
        && fastest.mlps <= choice.mlps * CHANGE
        && name != fastest.algorithm.name
    {
        let why = Why::InUse { best: fastest.algorithm.name, mlps: fastest.mlps };
        return Some(Choice { why, ..*choice });
    }
    let equal = ranked.iter().take_while(|choice| choice.mlps >= fastest.mlps * TIE);
    let smallest = equal.min_by_key(|choice| choice.bytes)?;
    if in_use == Some(fastest.algorithm.name) || smallest.algorithm.name == fastest.algorithm.name {
        return Some(fastest);
    }
    let why = Why::Smallest { fastest: fastest.algorithm.name, mlps: fastest.mlps };
    Some(Choice { why, ..*smallest })
}
