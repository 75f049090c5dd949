//! Chooses a structure by family, table, batch, instruction set and cache, from committed measurements.
//!
//! Which structure is fastest depends on the use: the fastest over a full table loses over a hundred routes, and one that
//! needs full vectors loses where keys come one by one. [`choose`] knows rates measured over tables from ten routes to
//! full ones, in batches from one key up, with every instruction set (`records/`). It takes the fastest structure for a
//! [`Workload`] and gives the reason. [`build`] builds it.
//!
//! ```
//! use fibula::auto::{self, Workload};
//!
//! let router = Workload { routes: 900_000, ..Workload::default() };
//! let choice = auto::choose::<u32>(&router, None).expect("IPv4 was measured");
//! println!("{choice}");
//!
//! // The table grows: the structure in use stays unless another is clearly better.
//! let grown = Workload { routes: 950_000, ..router };
//! let later = auto::choose::<u32>(&grown, Some(choice.algorithm.name)).expect("IPv4 was measured");
//! assert_eq!(later.algorithm.name, choice.algorithm.name);
//! ```
//!
//! # How
//!
//! - **Rates** are geometric means of the traffic MATCH and ZIPF (a random address under a random prefix, uniform and
//!   skewed), on one core. Between two measured tables the logarithm of the rate is interpolated over the logarithm of
//!   the number of routes; below the smallest and above the largest the rate is constant.
//! - **Tables** with mostly host routes are compared with measured tables of that kind.
//! - **Batch**: the largest measured one that is not larger. **Instruction set**: a structure's best kernels within the
//!   given set.
//! - **Cache**: on a machine whose second-level cache is k times that of the measured machine, a table counts as one
//!   with 1/k of its routes.
//! - **Ties**: of the structures within 5 % of the best, the one that takes the fewest bytes.
//! - **Hysteresis**: the structure in use stays unless another is expected to be more than 10 % faster.

mod measured;
#[cfg(test)]
mod tests;

use core::fmt;

use crate::fib::registry::{self, Algorithm};
use crate::fib::{BuildError, Fib};
use crate::memory::Limits;
use crate::net::{Key, Prefix, Routes};
use crate::simd::{self, Isa};

use measured::{Curve, curves, l2_bytes};

/// Rates of at least this share of the best one count as equal to it.
const TIE: f64 = 0.95;

/// How many times faster another structure must be to replace the one in use.
const CHANGE: f64 = 1.1;

/// What a structure is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Number of routes of the table.
    pub routes: usize,
    /// Number of host routes among them, counting routes within a byte of the full length.
    pub host_routes: usize,
    /// Keys that arrive together; 1 for single lookups.
    pub batch: usize,
    /// The instruction set that lookups use.
    pub isa: Isa,
    /// Size of a core's second-level cache; `None` for that of the measured machine.
    pub l2_bytes: Option<usize>,
    /// Most [lookup bytes](crate::memory::Memory::lookup_bytes) that the structure may take; `None` for any number.
    pub max_bytes: Option<usize>,
}

impl Default for Workload {
    /// An empty table, batches of 256, the [chosen](simd::chosen) instruction set.
    fn default() -> Self {
        let isa = simd::chosen().isa();
        Self { routes: 0, host_routes: 0, batch: 256, isa, l2_bytes: None, max_bytes: None }
    }
}

impl Workload {
    /// Returns this workload with the routes of a table counted.
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

/// A structure, with what is expected of it.
#[derive(Debug, Clone, Copy)]
pub struct Choice<K: Key> {
    /// The structure.
    pub algorithm: Algorithm<K>,
    /// Expected rate in million lookups a second, on one core of the measured machine.
    pub mlps: f64,
    /// Expected lookup bytes.
    pub bytes: usize,
    /// The instruction set that was measured.
    pub isa: Isa,
    /// Keys a call that were measured.
    pub batch: usize,
    /// Why it was chosen.
    pub reason: Reason,
}

/// Why a structure was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// It is the fastest one measured.
    Fastest,
    /// It is smaller than the fastest one, which is less than 5 % faster.
    Smallest {
        /// The fastest.
        fastest: &'static str,
        /// Its rate.
        mlps: f64,
    },
    /// It is in use, and the fastest one is at most 10 % faster.
    InUse {
        /// The fastest.
        fastest: &'static str,
        /// Its rate.
        mlps: f64,
    },
}

impl<K: Key> fmt::Display for Choice<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithm, mlps, bytes, isa, batch, reason } = self;
        write!(
            f,
            "{}: {reason}, about {:.1} MB, {mlps:.0} M lookups/s expected in batches of {batch} with {isa}",
            algorithm.name,
            *bytes as f64 / 1e6
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fastest => f.write_str("fastest measured for this table"),
            Self::Smallest { fastest, mlps } => {
                write!(f, "smaller than {fastest}, which is less than 5 % faster ({mlps:.0} M/s)")
            }
            Self::InUse { fastest, mlps } => {
                write!(f, "in use, and {fastest} is at most 10 % faster ({mlps:.0} M/s)")
            }
        }
    }
}

/// Returns all structures that were measured for such a workload and fit its limit on bytes, the fastest first.
#[must_use]
pub fn rank<K: Key>(wanted: &Workload) -> Vec<Choice<K>> {
    let scale = wanted.l2_bytes.map_or(1.0, |bytes| bytes.max(1) as f64 / l2_bytes() as f64);
    let routes = wanted.routes.max(1) as f64 / scale;
    let mut all: Vec<Choice<K>> = Vec::new();
    for curve in curves().iter().filter(|curve| curve.serves::<K>(wanted)) {
        let Ok(algorithm) = registry::find::<K>(curve.algorithm) else { continue };
        let bytes = curve.bytes(wanted.routes.max(1) as f64) as usize;
        if wanted.max_bytes.is_some_and(|most| bytes > most) {
            continue;
        }
        let Curve { isa, batch, .. } = *curve;
        let choice =
            Choice { algorithm, mlps: curve.mlps(routes), bytes, isa, batch, reason: Reason::Fastest };
        // Keeps one curve for each structure: the largest batch that fits, and the best set for that batch.
        match all.iter_mut().find(|other| other.algorithm.name == algorithm.name) {
            Some(other) if (other.batch, other.mlps) < (batch, choice.mlps) => *other = choice,
            Some(_) => {}
            None => all.push(choice),
        }
    }
    all.sort_by(|a, b| b.mlps.total_cmp(&a.mlps));
    all
}

/// Returns the best structure for the workload; `None` if none was measured for it. `in_use` is the name of the
/// structure that the table has now, if any.
#[must_use]
pub fn choose<K: Key>(wanted: &Workload, in_use: Option<&str>) -> Option<Choice<K>> {
    let ranked = rank::<K>(wanted);
    let fastest = *ranked.first()?;
    if let Some(name) = in_use
        && let Some(choice) = ranked.iter().find(|choice| choice.algorithm.name == name)
        && fastest.mlps <= choice.mlps * CHANGE
        && name != fastest.algorithm.name
    {
        let reason = Reason::InUse { fastest: fastest.algorithm.name, mlps: fastest.mlps };
        return Some(Choice { reason, ..*choice });
    }
    let equal = ranked.iter().take_while(|choice| choice.mlps >= fastest.mlps * TIE);
    let smallest = equal.min_by_key(|choice| choice.bytes)?;
    if in_use == Some(fastest.algorithm.name) || smallest.algorithm.name == fastest.algorithm.name {
        return Some(fastest);
    }
    let reason = Reason::Smallest { fastest: fastest.algorithm.name, mlps: fastest.mlps };
    Some(Choice { reason, ..*smallest })
}

/// Builds the structure that [`choose`] returns for the workload, with the routes counted.
///
/// Where it refuses the table (its format is too small, or `limits` are), the next fastest is built, and `range-search`,
/// which holds any table, at the end.
///
/// # Errors
/// The first refusal, if every structure refuses the table or takes more than [`Workload::max_bytes`].
pub fn build<K: Key>(
    routes: &dyn Routes<K>,
    workload: Workload,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    let workload = workload.with_table(routes);
    let mut candidates: Vec<Algorithm<K>> =
        choose(&workload, None).iter().map(|choice| choice.algorithm).collect();
    candidates.extend(rank(&workload).iter().map(|choice| choice.algorithm));
    candidates.extend(registry::find(LAST_RESORT).ok());
    let mut refusal = None;
    for (at, algorithm) in candidates.iter().enumerate() {
        if candidates[..at].iter().any(|tried| tried.name == algorithm.name) {
            continue;
        }
        match build_one(algorithm, routes, &workload, limits) {
            Ok(fib) => return Ok(fib),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.expect("the registry has the last resort for every family"))
}

/// The structure that has no limits but memory.
const LAST_RESORT: &str = "range-search";

fn build_one<K: Key>(
    algorithm: &Algorithm<K>,
    routes: &dyn Routes<K>,
    workload: &Workload,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    let fib = algorithm.build(routes, limits)?;
    let bytes = fib.memory().lookup_bytes;
    match workload.max_bytes {
        Some(most) if bytes > most => {
            Err(BuildError::limit(algorithm.name, "lookup bytes", most as u64, bytes as u64))
        }
        _ => Ok(fib),
    }
}
