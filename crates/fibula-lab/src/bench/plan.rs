//! Plans of measurements, as data.
//!
//! Everything in every cell would take hours, so each question has the cells that answer it:
//!
//! | measured | in which cells |
//! |---|---|
//! | our engines, and those they are compared with (DPDK's tables, DIR-24-8, DXR as published, PlanB, Poptrie) | all |
//! | the registry's other engines | all but those of the larger key set, unless they are named |
//! | oracles, and all other rivals | batches of 1 and 256 |
//! | each instruction set | batches of 256; single keys with the smallest and the largest set |
//! | the set that was the fastest there, for each engine and traffic | all other batches |
//! | the larger key set | batches of 32 and 256, with RND, MATCH and ZIPF |
//! | the second order of keys, and further ones | batches of 32 and 256 |
//! | the second number of threads, and further ones | batches of 256 |
//!
//! A plan without batches of 256 takes its largest ones instead. [`Plan::every_isa`] measures each instruction set in all
//! batches.

use core::fmt;
use core::time::Duration;

use fibula::simd::Isa;
use serde::{Deserialize, Serialize};

use super::contestant::Standing;
use super::sources::{Measures, Scope};

/// A plan of measurements: every engine with all kinds of traffic, batch lengths and numbers of threads.
///
/// The benchmark record keeps the plan with its rows, so that the measurement can be repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Names of the engines. Empty means all.
    pub engines: Vec<String>,
    /// Names of the traffic patterns. Empty means all. Recorded addresses are measured whenever they are given.
    pub traffic: Vec<String>,
    /// The instruction set that all contestants are restricted to, rivals too; kernels for smaller sets take part.
    /// None means no restriction.
    pub isa: Option<String>,
    /// Whether every instruction set is measured in every batch.
    pub every_isa: bool,
    /// Keys a call. 1 means one key a call by [`Fib::lookup_key`](fibula::fib::Fib::lookup_key).
    pub batches: Vec<usize>,
    /// Forms of keys. Keys in network order are only looked up in batches.
    pub orders: Vec<Order>,
    /// Numbers of threads, each with its own part of the keys.
    pub threads: Vec<usize>,
    /// Keys of each traffic.
    pub keys: usize,
    /// Keys of a second, larger set of some traffics, which no cache holds.
    pub many_keys: Option<usize>,
    /// Seed of the keys.
    pub seed: u64,
    /// Timed runs of each contestant in each cell.
    pub runs: usize,
    /// Seconds to spend on all timed runs together. Building, checking and warming up come on top.
    pub seconds: f64,
}

impl Measures for Plan {
    const SCOPE: Scope = Scope::Lookups;
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            engines: Vec::new(),
            traffic: Vec::new(),
            isa: None,
            every_isa: false,
            batches: BATCHES.to_vec(),
            orders: vec![Order::Host],
            threads: vec![1],
            keys: 1 << 20,
            many_keys: None,
            seed: 1,
            runs: RUNS,
            seconds: 20.0,
        }
    }
}

/// The default batches: single lookups, a vector or two, bursts of packets, enough to keep many loads in flight, and a
/// piece of a long column.
pub const BATCHES: [usize; 7] = [1, 8, 16, 32, 64, 256, 1024];

/// The batch that all instruction sets are compared at.
const SETS_BATCH: usize = 256;

/// The burst that larger key sets and further orders are measured with, besides [`SETS_BATCH`].
const BURST: usize = 32;

/// Traffics with a larger key set.
const MANY_TRAFFIC: [&str; 3] = ["rnd", "match", "zipf"];

/// The form of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Integers in the machine's byte order.
    Host,
    /// Bytes as in packets.
    Network,
}

impl Order {
    /// Returns the name that outputs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Network => "network",
        }
    }
}

/// The fewest timed runs: the median of fewer says little.
pub const RUNS_MIN: usize = 5;

/// The default number of runs: 95 % intervals leave out the slowest and the fastest one.
pub const RUNS: usize = 9;

/// The most threads; a larger number is a typing error.
const THREADS_MAX: usize = 4096;

impl Plan {
    /// Returns an error unless the plan can be carried out.
    ///
    /// # Errors
    /// Names the part of the plan that cannot be carried out.
    pub fn check(&self) -> Result<(), PlanError> {
        let wrong = |what| Err(PlanError(what));
        match self {
            _ if self.batches.is_empty() || self.batches.contains(&0) => {
                wrong("a batch must hold at least one key")
            }
            _ if self.threads.is_empty() || self.threads.iter().any(|n| !(1..=THREADS_MAX).contains(n)) => {
                wrong("the number of threads must be 1 to 4096")
            }
            _ if self.orders.is_empty() => wrong("an order of the keys is needed: host or network"),
            _ if self.isa.as_ref().is_some_and(|isa| isa.parse::<Isa>().is_err()) => {
                wrong("unknown instruction set")
            }
            _ if self.runs < RUNS_MIN => wrong("at least 5 runs are needed for a median"),
            _ if self.keys == 0 => wrong("at least one key is needed"),
            _ if self.many_keys.is_some_and(|many| many <= self.keys) => {
                wrong("the larger set of keys must be larger than the other one")
            }
            _ if !(0.0..1e7).contains(&self.seconds) => {
                wrong("the time must be a number of seconds, 0 or more")
            }
            _ => Ok(()),
        }
    }

    /// Returns the cost of the plan for this many engines to build and lanes to time; a lane is one kernel in one
    /// cell, and `many_lanes` of them are in cells of the larger key set.
    #[must_use]
    pub fn estimate(&self, structures: usize, lanes: usize, many_lanes: usize, key_bytes: usize) -> Estimate {
        let shares = (lanes - many_lanes + many_lanes * MANY_SHARE) * self.runs;
        let slot = Duration::from_secs_f64(self.seconds / shares.max(1) as f64);
        let many_keys = self.many_keys.unwrap_or(0);
        // All keys are looked up in a run, and to warm up, if that takes no longer than some 20 ms.
        let run = slot.mul_f64(1.25).max(PER_KEY * 2 * self.keys as u32);
        let many_run = (slot * MANY_SHARE as u32).max(PER_KEY * many_keys as u32).mul_f64(1.25);
        let all_runs = run * (lanes - many_lanes) as u32 + many_run * many_lanes as u32;
        let checked = self.keys * (lanes - many_lanes) + many_keys * many_lanes;
        let checks = PER_CHECK.mul_f64(checked as f64);
        let builds = Duration::from_millis(if self.seconds > 0.0 { 500 } else { 0 }) * structures as u32;
        Estimate {
            steps: structures + lanes * (self.runs + 1),
            slot,
            time: all_runs * self.runs as u32 + checks + builds,
            // The engine's answers and the expected ones are 32-bit words.
            key_bytes: self.keys.max(many_keys) * (key_bytes + 8),
        }
    }

    /// Returns the batch that all instruction sets are compared at.
    fn sets_batch(&self) -> usize {
        let largest = self.batches.iter().copied().max().unwrap_or(1);
        if self.batches.contains(&SETS_BATCH) { SETS_BATCH } else { largest }
    }

    /// Returns whether these are the first order, the first number of threads, and the smaller key set.
    fn is_main(&self, cell: &Cell) -> bool {
        cell.order == self.orders[0] && cell.threads == self.threads[0] && !cell.many
    }

    /// Returns whether all instruction sets are compared in this cell.
    pub(super) fn compares_sets(&self, cell: &Cell) -> bool {
        cell.batch > 1 && cell.batch == self.sets_batch() && self.is_main(cell)
    }

    /// Returns which kernels of a contestant take part in a cell.
    pub(super) fn part(&self, standing: Standing, cell: &Cell) -> KernelSelection {
        let (main, sets) = (self.is_main(cell), self.compares_sets(cell));
        match standing {
            Standing::Few if !main || !(cell.batch == 1 || sets) => KernelSelection::None,
            Standing::Listed if cell.many && self.engines.is_empty() => KernelSelection::None,
            // Single lookups of most engines are the same for every set.
            _ if cell.batch == 1 => KernelSelection::Ends,
            _ if sets || self.every_isa => KernelSelection::All,
            _ => KernelSelection::Fastest,
        }
    }
}

/// How many times the slot of others a run over the larger key set gets.
const MANY_SHARE: usize = 4;

/// The time of a lookup, about, that is timed and checked: for estimates.
const PER_KEY: Duration = Duration::from_nanos(9);
const PER_CHECK: Duration = Duration::from_nanos(12);

/// Which kernels of a contestant take part in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KernelSelection {
    /// None.
    None,
    /// Those of the smallest and of the largest instruction set.
    Ends,
    /// The one that was the fastest where all were compared; before that, that of the largest set.
    Fastest,
    /// All.
    All,
}

/// The cost of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Steps that progress is counted in: builds, checks and timed runs.
    pub steps: usize,
    /// Time of one timed run.
    pub slot: Duration,
    /// Time of everything, about.
    pub time: Duration,
    /// Bytes of the keys and answers of one traffic.
    pub key_bytes: usize,
}

impl Estimate {
    /// Returns the time of one timed run in a cell.
    pub(super) fn slot_of(&self, cell: &Cell) -> Duration {
        if cell.many { self.slot * MANY_SHARE as u32 } else { self.slot }
    }
}

/// A cell of the plan, in which all contestants take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// Index of the traffic.
    pub(super) traffic: usize,
    /// Whether the keys are those of the larger set.
    pub(super) many: bool,
    pub(super) batch: usize,
    pub(super) threads: usize,
    pub(super) order: Order,
}

/// Returns the cells of a plan with these traffics, each given by its name and whether it is dependent, in the order in
/// which they are reported. In dependent traffic each lookup waits for the one before, so it has no batches.
pub(super) fn cells(plan: &Plan, traffics: &[(&str, bool)]) -> Vec<Cell> {
    let sets = plan.sets_batch();
    let burst = |batch: usize| batch > 1 && (batch == BURST || batch == sets);
    let mut cells = Vec::new();
    for (traffic, &(name, dependent)) in traffics.iter().enumerate() {
        let batches: &[usize] = if dependent { &[1] } else { &plan.batches };
        let (order, threads) = (plan.orders[0], plan.threads[0]);
        let main = |&batch: &usize| Cell { traffic, many: false, batch, threads, order };
        let packets = |cell: &Cell| cell.order == Order::Host || cell.batch > 1;
        cells.extend(batches.iter().map(main).filter(packets));
        for &threads in &plan.threads[1..] {
            let cell = |batch| Cell { threads, ..main(batch) };
            cells.extend(
                batches.iter().filter(|&&batch| dependent || batch == sets).map(cell).filter(packets),
            );
        }
        for &order in &plan.orders[1..] {
            let bursts = batches.iter().filter(|&&batch| burst(batch));
            cells.extend(bursts.map(|batch| Cell { order, ..main(batch) }));
        }
        if plan.many_keys.is_some() && MANY_TRAFFIC.contains(&name) {
            let bursts = batches.iter().filter(|&&batch| burst(batch));
            cells.extend(bursts.map(|batch| Cell { many: true, ..main(batch) }));
        }
    }
    cells
}

/// A plan that cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanError(pub(super) &'static str);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for PlanError {}
