//! Chooses an engine by family, table, batch, instruction set and machine, by a model fitted to measurements.
//!
//! Which engine is fastest depends on the use: the fastest over a full table loses over a hundred routes, and one that
//! needs full vectors loses where keys come one by one. [`choose`] knows rates measured over tables from ten routes to
//! full ones, in batches from one key to 1,024, with every instruction set (`records/choices/`). It takes the fastest
//! engine for a [`Workload`] and gives the reason. [`choose_for`] builds the best few over the table itself, so that
//! it knows which engines refuse it and how large they are; [`build`] returns its choice alone.
//!
//! ```
//! use fibula::auto::{self, Workload};
//!
//! let router = Workload { ranges: 500_000, ..Workload::default() };
//! let choice = auto::choose::<u32>(&router, None).expect("IPv4 was measured");
//! println!("{choice}");
//!
//! // The table grows: the engine in use stays unless another is clearly better.
//! let grown = Workload { ranges: 550_000, ..router };
//! let later = auto::choose::<u32>(&grown, Some(choice.engine.name)).expect("IPv4 was measured");
//! assert_eq!(later.engine.name, choice.engine.name);
//! ```
//!
//! # How
//!
//! - **Rates** are geometric means of the traffic MATCH and ZIPF (a random address under a random prefix, uniform and
//!   skewed), on one core. They come from a model: a lookup costs steps and loads, and how many of which is fitted for each engine,
//!   instruction set and batch. Loads cost what the machine takes for tables of the engine's bytes and of its levels. Between two
//!   batches the time is interpolated over the logarithm of their keys.
//! - **Monotone**: no rate rises where a table has more ranges, an engine more bytes or a machine slower loads, so noise in
//!   measurements of one table cannot make a smaller table the slower one.
//! - **Tables** are of a [`TableKind`]: with mostly host routes, with many next hops, with next hops that need more than 15 bits, with
//!   both, or plain. Each kind has costs of its own besides.
//! - **Bytes** are those of the engine once it is built, and estimated before.
//! - **Machine**: the recorded one is the default; [`Machine::here`] measures this one. A machine may have rates of the engines
//!   themselves over one table ([`Machine::with_rates`]): engines are expected to differ from the model everywhere as they differ there,
//!   beyond the recorded machine's. The commands measure them.
//! - **Instruction set**: an engine's best kernels within the given set.
//! - **Limit on bytes**: by default in proportion to the table and the cache, [`Workload::most_bytes`].
//! - **Ties**: of the engines within 5 % of the best, the one that takes the fewest bytes, if it saves a fifth of the best one's.
//! - **Hysteresis**: the engine in use stays unless another is expected to be more than 10 % faster.
//!
//! What the model does not know is how skewed the traffic is: `fibula choose --measure --addresses FILE` measures that. The test
//! `choices` of `fibula-lab` compares the choices with records of tables that were left out of the fit.

mod kind;
mod machine;
mod model;
mod pace;
#[doc(hidden)]
pub mod probe;
#[cfg(test)]
mod tests;

use core::cell::Cell;
use core::fmt;
use core::ops::ControlFlow;

use crate::fib::ranges::{self, Merge};
use crate::fib::registry::Engine;
use crate::fib::{BuildError, Fib};
use crate::memory::Limits;
use crate::net::{Key, NextHop, Prefix, Route, Routes};
use crate::simd::{self, Isa};

#[doc(hidden)]
pub use kind::TableKind;
#[doc(hidden)]
pub use machine::{Machine, MachineError};
#[doc(hidden)]
pub use model::{FIGURES, figures};
#[doc(hidden)]
pub use pace::{BATCHES, MeasuredRates};

/// Rates of at least this share of the best one count as equal to it.
const TIE: f64 = 0.95;

/// The share of the fastest engine's bytes that an equal one takes at most to be chosen instead.
const SMALLER: f64 = 0.8;

/// Bits of a next hop beyond which it is wide.
const WIDE_BITS: u32 = 15;

/// How many times faster another engine must be to replace the one in use.
const CHANGE: f64 = 1.1;

/// Engines of at least this share of the best expected rate are built to know their bytes.
const CLOSE: f64 = 0.85;

/// What an engine is used for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Number of disjoint ranges of addresses with one next hop that the table makes, equal neighbours merged. For
    /// tables of the Internet's shape, half of the routes at a million, one and a half times as many at a hundred.
    pub ranges: usize,
    /// Number of routes, of which host routes are a part.
    pub routes: usize,
    /// Number of host routes among them, counting routes within a byte of the full length.
    pub host_routes: usize,
    /// Number of routes with a wide next hop, one that needs more than 15 bits. Some engines keep those apart from the
    /// others, which takes a further load.
    pub wide_routes: usize,
    /// Number of different next hops, told apart by the low 16 bits of their ids. Some engines are smaller and faster with few.
    pub next_hops: usize,
    /// Keys that arrive together; 1 for single lookups.
    pub batch: usize,
    /// The instruction set that lookups use.
    pub isa: Isa,
    /// The machine that lookups run on.
    pub machine: Machine,
    /// Most [lookup bytes](crate::memory::Memory::lookup_bytes) that the engine may take; `None` for what
    /// [`most_bytes`](Self::most_bytes) says.
    pub max_bytes: Option<usize>,
}

impl Default for Workload {
    /// An empty table, batches of 256, the [chosen](simd::chosen) instruction set, the recorded machine.
    fn default() -> Self {
        let (isa, machine) = (simd::chosen().isa(), Machine::recorded());
        Self {
            ranges: 1,
            routes: 0,
            host_routes: 0,
            wide_routes: 0,
            next_hops: 0,
            batch: 256,
            isa,
            machine,
            max_bytes: None,
        }
    }
}

impl Workload {
    /// Returns this workload with the routes and ranges of a table counted, in one pass over it.
    #[must_use]
    pub fn with_table<K: Key>(mut self, routes: &dyn Routes<K>) -> Self {
        let counted = RouteCounts {
            routes,
            all: Cell::new(0),
            hosts: Cell::new(0),
            wide: Cell::new(0),
            next_hops: vec![Cell::new(0); ID_WORDS],
        };
        self.ranges = 0;
        let _ = ranges::visit(&counted, Prefix::ALL, Merge::EqualNeighbours, |_| {
            self.ranges += 1;
            ControlFlow::Continue(())
        });
        (self.routes, self.host_routes, self.wide_routes) =
            (counted.all.get(), counted.hosts.get(), counted.wide.get());
        self.next_hops = counted.next_hops.iter().map(|word| word.get().count_ones() as usize).sum();
        self
    }

    /// Returns the most lookup bytes that an engine may take: [`max_bytes`](Self::max_bytes), by default an eighth of
    /// the second-level cache and 16 times what the sorted array of the ranges takes.
    #[must_use]
    pub fn most_bytes<K: Key>(&self) -> usize {
        let range = usize::from(K::BITS).div_ceil(8) + size_of::<NextHop>();
        self.max_bytes.unwrap_or(self.machine.l2_bytes() / 8 + 16 * range * self.ranges)
    }

    /// Returns the kind of the table.
    #[must_use]
    pub fn kind(&self) -> TableKind {
        TableKind::of(self.routes, self.host_routes, self.wide_routes, self.next_hops)
    }
}

/// A table that counts the routes that are visited.
struct RouteCounts<'a, K: Key> {
    routes: &'a dyn Routes<K>,
    all: Cell<usize>,
    hosts: Cell<usize>,
    wide: Cell<usize>,
    /// A bit for each value of the low bits of an id.
    next_hops: Vec<Cell<u64>>,
}

/// Words of 64 bits for the low 16 bits of ids.
const ID_WORDS: usize = 1 << 10;

impl<K: Key> Routes<K> for RouteCounts<'_, K> {
    fn len(&self) -> usize {
        self.routes.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        // Within a byte of a whole address.
        let long = K::BITS - K::BITS / 16;
        self.routes.visit(within, &mut |route| {
            self.all.update(|count| count + 1);
            self.hosts.update(|count| count + usize::from(route.prefix.len() > long));
            let id = route.next_hop.id();
            self.wide.update(|count| count + usize::from(id >= 1 << WIDE_BITS));
            self.next_hops[id as usize / 64 % ID_WORDS].update(|word| word | 1 << (id % 64));
            each(route)
        })
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.routes.parent(prefix)
    }
}

#[doc(hidden)]
/// An engine, with what is expected of it.
#[derive(Debug, Clone, Copy)]
pub struct Choice<K: Key> {
    /// The engine.
    pub engine: Engine<K>,
    /// Expected rate in million lookups a second, on one core of the workload's machine.
    pub mlps: f64,
    /// Lookup bytes: expected ones, unless the engine was built.
    pub bytes: usize,
    /// Whether it was built over the table.
    pub is_built: bool,
    /// The instruction set that was measured.
    pub isa: Isa,
    /// Keys a call.
    pub batch: usize,
    /// Why it was chosen.
    pub reason: Reason,
}

#[doc(hidden)]
/// Why an engine was chosen.
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
        let Self { engine, mlps, bytes, isa, batch, reason, .. } = self;
        write!(
            f,
            "{}: {reason}, about {:.1} MB, {mlps:.0} M lookups/s expected in batches of {batch} with {isa}",
            engine.name,
            *bytes as f64 / 1e6
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fastest => f.write_str("fastest for this table"),
            Self::Smallest { fastest, mlps } => {
                write!(f, "smaller than {fastest}, which is less than 5 % faster ({mlps:.0} M/s)")
            }
            Self::InUse { fastest, mlps } => {
                write!(f, "in use, and {fastest} is at most 10 % faster ({mlps:.0} M/s)")
            }
        }
    }
}

/// What is known of an engine over the table itself.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name of the engine.
    pub engine: &'static str,
    /// Its lookup bytes; `None` if it refuses the table.
    pub lookup_bytes: Option<usize>,
}

/// Returns all engines that were measured for such a workload and keep its limit on bytes, the fastest first.
#[doc(hidden)]
#[must_use]
pub fn rank<K: Key>(wanted: &Workload) -> Vec<Choice<K>> {
    rank_knowing(wanted, &[])
}

/// Like [`rank`], with what is known of engines over the table.
#[doc(hidden)]
#[must_use]
pub fn rank_knowing<K: Key>(wanted: &Workload, known: &[Known]) -> Vec<Choice<K>> {
    let most = wanted.most_bytes::<K>();
    let mut all: Vec<Choice<K>> = Vec::new();
    let recorded = Machine::recorded().paces;
    let is_measured = wanted.machine.has_rates(wanted.isa);
    for engine in crate::fib::engines::<K>() {
        let of_it =
            |(_, cost): &(_, &model::Cost)| cost.engine == engine.name && cost.serves::<K>(wanted.isa);
        // The largest set within the wanted one: what lookups will run.
        let best = model::costs().iter().enumerate().filter(of_it).max_by_key(|(_, cost)| cost.isa);
        let Some((number, cost)) = best else { continue };
        let built = known.iter().find(|known| known.engine == engine.name);
        let bytes = match built {
            Some(Known { lookup_bytes: None, .. }) => continue,
            Some(Known { lookup_bytes: Some(bytes), .. }) => *bytes,
            None => model::expected_bytes::<K>(wanted, engine.name).unwrap_or(usize::MAX),
        };
        // What is only estimated may turn out smaller.
        let slack = if built.is_some() { 0 } else { most / 4 };
        if bytes > most.saturating_add(slack) {
            continue;
        }
        // All by measurements, or none.
        let measured = wanted.machine.paces.get(number).filter(|_| is_measured).zip(recorded.get(number));
        let ns = cost.ns(wanted, bytes, measured.map(|(here, recorded)| [here, recorded]));
        let (isa, batch, is_built) = (cost.isa, wanted.batch, built.is_some());
        let (mlps, reason) = (1e3 / ns, Reason::Fastest);
        // In its place at once: they are few, and a sort is a lot of code.
        let at = all.partition_point(|faster| faster.mlps.total_cmp(&mlps).is_ge());
        all.insert(at, Choice { engine, mlps, bytes, is_built, isa, batch, reason });
    }
    all
}

#[doc(hidden)]
/// Returns the best engine for the workload; `None` if none was measured for it. `in_use` is the name of the
/// engine that the table has now, if any.
#[must_use]
pub fn choose<K: Key>(wanted: &Workload, in_use: Option<&str>) -> Option<Choice<K>> {
    pick(&rank::<K>(wanted), in_use)
}

/// Returns the best of ranked engines, the fastest of which is the first; `None` if there is none.
#[doc(hidden)]
#[must_use]
pub fn pick<K: Key>(ranked: &[Choice<K>], in_use: Option<&str>) -> Option<Choice<K>> {
    let fastest = *ranked.first()?;
    if let Some(name) = in_use
        && let Some(choice) = ranked.iter().find(|choice| choice.engine.name == name)
        && fastest.mlps <= choice.mlps * CHANGE
        && name != fastest.engine.name
    {
        let reason = Reason::InUse { fastest: fastest.engine.name, mlps: fastest.mlps };
        return Some(Choice { reason, ..*choice });
    }
    let equal = ranked.iter().take_while(|choice| choice.mlps >= fastest.mlps * TIE);
    let smallest = equal.min_by_key(|choice| choice.bytes)?;
    if in_use == Some(fastest.engine.name) || smallest.bytes as f64 > SMALLER * fastest.bytes as f64 {
        return Some(fastest);
    }
    let reason = Reason::Smallest { fastest: fastest.engine.name, mlps: fastest.mlps };
    Some(Choice { reason, ..*smallest })
}

/// A table's engine, and what else there was to choose.
#[doc(hidden)]
#[derive(Debug)]
pub struct Chosen<K: Key> {
    /// The engine.
    pub fib: Box<dyn Fib<K>>,
    /// What is expected of it; `None` for an engine that was not measured for such a table and holds any.
    pub choice: Option<Choice<K>>,
    /// All engines that would do, the fastest first.
    pub ranked: Vec<Choice<K>>,
}

/// Chooses an engine for this table, and builds it. The routes and ranges of the workload are those of the table.
///
/// The engines with the best expected rates, the first and those within 15 % of it, are built to know how large they
/// are and whether their format holds the table; only one of them exists at a time besides the best so far. If none is
/// left, `range-btree` is built, or `planb` for IPv6: they hold any table.
///
/// # Errors
/// The first refusal, if every engine refuses the table or takes more than [`Workload::most_bytes`].
#[doc(hidden)]
pub fn choose_for<K: Key>(
    routes: &dyn Routes<K>,
    workload: &Workload,
    in_use: Option<&str>,
    limits: Limits,
) -> Result<Chosen<K>, BuildError> {
    let wanted = workload.with_table(routes);
    let mut known: Vec<Known> = Vec::new();
    let mut best: Option<(&str, Box<dyn Fib<K>>)> = None;
    let mut refusal = None;
    loop {
        let ranked = rank_knowing::<K>(&wanted, &known);
        let choice = pick(&ranked, in_use);
        let least = ranked.first().map_or(0.0, |first| first.mlps * CLOSE);
        let chosen = choice.iter().chain(ranked.iter().take_while(|choice| choice.mlps >= least));
        let next = chosen.copied().find(|choice| !choice.is_built);
        let (engine, is_last) = match (next, &choice) {
            (Some(next), _) => (next.engine, false),
            // All that come into question are built.
            (None, Some(choice)) => match best.take() {
                Some((name, fib)) if name == choice.engine.name => {
                    return Ok(Chosen { fib, choice: Some(*choice), ranked });
                }
                _ => (choice.engine, true),
            },
            (None, None) => (last_resort().expect("the list has a last resort for every family"), true),
        };
        match build_one(&engine, routes, wanted.most_bytes::<K>(), limits) {
            Ok(fib) if is_last => return Ok(Chosen { fib, choice, ranked }),
            Ok(fib) => {
                let lookup_bytes = Some(fib.memory().lookup_bytes);
                known.push(Known { engine: engine.name, lookup_bytes });
                let name = pick(&rank_knowing::<K>(&wanted, &known), in_use).map(|choice| choice.engine.name);
                if best.is_none() || name == Some(engine.name) {
                    best = Some((engine.name, fib));
                }
            }
            Err(error) if is_last => return Err(refusal.unwrap_or(error)),
            Err(error) => {
                known.push(Known { engine: engine.name, lookup_bytes: None });
                refusal = refusal.or(Some(error));
            }
        }
    }
}

/// Builds the engine that [`choose_for`] chooses.
///
/// # Errors
/// As for [`choose_for`].
pub fn build<K: Key>(
    routes: &dyn Routes<K>,
    workload: Workload,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    choose_for(routes, &workload, None, limits).map(|chosen| chosen.fib)
}

/// Engines that have no limits but memory, and take little of it where a table is small: by name, as each serves one family.
const LAST_RESORTS: [&str; 2] = ["range-btree", "planb"];

fn last_resort<K: Key>() -> Option<Engine<K>> {
    crate::fib::engines().into_iter().find(|engine| LAST_RESORTS.contains(&engine.name))
}

fn build_one<K: Key>(
    engine: &Engine<K>,
    routes: &dyn Routes<K>,
    most_bytes: usize,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    let fib = engine.build(routes, limits)?;
    let bytes = fib.memory().lookup_bytes;
    if bytes > most_bytes {
        return Err(BuildError::limit(engine.name, "lookup bytes", most_bytes as u64, bytes as u64));
    }
    Ok(fib)
}
