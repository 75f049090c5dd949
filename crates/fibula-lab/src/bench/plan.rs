//! What to measure, as data.

use core::fmt;
use core::time::Duration;

use fibula::simd::Isa;
use serde::{Deserialize, Serialize};

/// What to measure: every structure over every traffic, in every batch length, on every number of threads.
///
/// A plan is kept in the record beside its rows, so that what was measured can be measured again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Names of the structures; all where there are none.
    pub algorithms: Vec<String>,
    /// Names of the patterns; all where there are none. Recorded addresses are measured whenever they are given.
    pub traffic: Vec<String>,
    /// The instruction set that everybody is restricted to: sets within it take part. All there are where there is none.
    #[serde(default)]
    pub isa: Option<String>,
    /// Keys a call. 1 means one key a call by [`Fib::lookup`](fibula::fib::Fib::lookup).
    pub batches: Vec<usize>,
    /// Forms of keys. In network order there are batches alone.
    #[serde(default = "host_order")]
    pub orders: Vec<Order>,
    /// Numbers of threads, each with its own part of the keys.
    pub threads: Vec<usize>,
    /// Keys of each traffic.
    pub keys: usize,
    /// Which keys.
    pub seed: u64,
    /// Timed runs of each structure in each cell.
    pub runs: usize,
    /// Seconds to spend on timed runs in all; building, checking and warming up come on top.
    pub seconds: f64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            algorithms: Vec::new(),
            traffic: Vec::new(),
            isa: None,
            batches: BATCHES.to_vec(),
            orders: host_order(),
            threads: vec![1],
            keys: 1 << 20,
            seed: 1,
            runs: RUNS_MIN,
            seconds: 20.0,
        }
    }
}

/// Batches where nothing else is asked for: single lookups, a vector or two, a burst of packets, enough to keep many
/// loads under way, and a piece of a long column.
pub const BATCHES: [usize; 5] = [1, 16, 64, 256, 1024];

fn host_order() -> Vec<Order> {
    vec![Order::Host]
}

/// The form of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Integers of the machine.
    Host,
    /// Bytes as packets hold them.
    Network,
}

impl Order {
    /// The name that outputs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Network => "network",
        }
    }
}

/// Fewest timed runs: below this a median says little.
pub const RUNS_MIN: usize = 5;

/// Most threads; more is a slip of the keyboard.
const THREADS_MAX: usize = 4096;

impl Plan {
    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// Names what is wrong with it.
    pub fn check(&self) -> Result<(), PlanError> {
        let wrong = |what| Err(PlanError(what));
        match self {
            _ if self.batches.is_empty() || self.batches.contains(&0) => {
                wrong("a batch holds a key at least")
            }
            _ if self.threads.is_empty() || self.threads.iter().any(|n| !(1..=THREADS_MAX).contains(n)) => {
                wrong("lookups run on 1 to 4096 threads")
            }
            _ if self.orders.is_empty() => wrong("keys are in host or in network order"),
            _ if self.isa.as_ref().is_some_and(|isa| isa.parse::<Isa>().is_err()) => {
                wrong("there is no such instruction set")
            }
            _ if self.runs < RUNS_MIN => wrong("fewer than 5 runs make no median"),
            _ if self.keys == 0 => wrong("without keys there is nothing to look up"),
            _ if !(0.0..1e7).contains(&self.seconds) => wrong("the time is a number of seconds from 0 on"),
            _ => Ok(()),
        }
    }

    /// What the plan will take for so many structures that are built and lanes that are timed: one for each kernel in
    /// each cell.
    #[must_use]
    pub fn estimate(&self, structures: usize, lanes: usize, key_bytes: usize) -> Estimate {
        let timed = lanes * self.runs;
        let slot = Duration::from_secs_f64(self.seconds / timed.max(1) as f64);
        Estimate {
            steps: structures + lanes * (self.runs + 1),
            slot,
            // The runs that warm the caches are as long at most.
            time: slot.mul_f64(timed as f64 * 2.0),
            // The answers, ours and the oracle's, are words of 32 bits.
            key_bytes: self.keys * (key_bytes + 8),
        }
    }
}

/// What a plan takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Steps that progress is counted in: builds, checks and timed runs.
    pub steps: usize,
    /// Time of one timed run.
    pub slot: Duration,
    /// Time of all timed runs and their warm-up.
    pub time: Duration,
    /// Bytes of the keys and answers of one traffic.
    pub key_bytes: usize,
}

/// A cell of the plan: what all contestants do in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// Index of the traffic.
    pub(super) traffic: usize,
    pub(super) batch: usize,
    pub(super) threads: usize,
    pub(super) order: Order,
}

/// The cells of a plan, traffic by traffic. Each lookup of dependent traffic waits for the one before: it has no
/// batches.
pub(super) fn cells(plan: &Plan, dependent: &[bool]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (traffic, &dependent) in dependent.iter().enumerate() {
        let batches: &[usize] = if dependent { &[1] } else { &plan.batches };
        for (&order, &batch) in
            plan.orders.iter().flat_map(|order| batches.iter().map(move |batch| (order, batch)))
        {
            if order == Order::Host || batch > 1 {
                cells.extend(plan.threads.iter().map(|&threads| Cell { traffic, batch, threads, order }));
            }
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
