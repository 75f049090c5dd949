//! What to measure, as data.

use core::fmt;
use core::time::Duration;

use fibula::simd::Isa;
use serde::{Deserialize, Serialize};

/// What to measure: every structure with all kinds of traffic, batch lengths and numbers of threads.
///
/// The benchmark record keeps the plan with its rows, so that the measurement can be repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Names of the structures. Empty means all.
    pub algorithms: Vec<String>,
    /// Names of the traffic patterns. Empty means all. Recorded addresses are measured whenever they are given.
    pub traffic: Vec<String>,
    /// The instruction set that all contestants are restricted to, rivals too; kernels for smaller sets take part.
    /// None means no restriction.
    #[serde(default)]
    pub isa: Option<String>,
    /// Keys a call. 1 means one key a call by [`Fib::lookup_key`](fibula::fib::Fib::lookup_key).
    pub batches: Vec<usize>,
    /// Forms of keys. Keys in network order are only looked up in batches.
    #[serde(default = "host_order")]
    pub orders: Vec<Order>,
    /// Numbers of threads, each with its own part of the keys.
    pub threads: Vec<usize>,
    /// Keys of each traffic.
    pub keys: usize,
    /// Seed of the keys.
    pub seed: u64,
    /// Timed runs of each contestant in each cell.
    pub runs: usize,
    /// Seconds to spend on all timed runs together. Building, checking and warming up come on top.
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

/// The default batches: single lookups, a vector or two, a burst of packets, enough to keep many loads in flight, and
/// a piece of a long column.
pub const BATCHES: [usize; 5] = [1, 16, 64, 256, 1024];

fn host_order() -> Vec<Order> {
    vec![Order::Host]
}

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

/// The most threads; a larger number is a typing error.
const THREADS_MAX: usize = 4096;

impl Plan {
    /// Returns an error unless the plan can be carried out.
    ///
    /// # Errors
    /// Names what is wrong with it.
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
            _ if !(0.0..1e7).contains(&self.seconds) => {
                wrong("the time must be a number of seconds, 0 or more")
            }
            _ => Ok(()),
        }
    }

    /// Returns what the plan takes for this many structures to build and lanes to time; a lane is one kernel in one
    /// cell.
    #[must_use]
    pub fn estimate(&self, structures: usize, lanes: usize, key_bytes: usize) -> Estimate {
        let timed = lanes * self.runs;
        let slot = Duration::from_secs_f64(self.seconds / timed.max(1) as f64);
        Estimate {
            steps: structures + lanes * (self.runs + 1),
            slot,
            // Warming up takes as long again at most.
            time: slot.mul_f64(timed as f64 * 2.0),
            // The structure's answers and the expected ones are 32-bit words.
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

/// A cell of the plan, in which all contestants take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// Index of the traffic.
    pub(super) traffic: usize,
    pub(super) batch: usize,
    pub(super) threads: usize,
    pub(super) order: Order,
}

/// Returns the cells of a plan, by kind of traffic. In dependent traffic each lookup waits for the one before, so it
/// has no batches.
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
