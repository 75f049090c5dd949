//! A row of a benchmark's results.

use serde::{Deserialize, Serialize};

/// The results of one contestant, with one instruction set, in one cell of the plan. Scripts rely on the names.
///
/// The figures are missing if the engine could not be built or failed later. `error` then has the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The engine.
    pub engine: String,
    /// Whether it is a rival, and not part of Fibula.
    pub rival: bool,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// The pattern of the keys.
    pub traffic: String,
    /// Keys a call; 1 is one key a call.
    pub batch: usize,
    /// Threads that looked up at the same time; rates are their sum.
    pub threads: usize,
    /// The instruction set it looked up with.
    pub isa: String,
    /// Million lookups a second, median of the runs.
    pub mlps_median: Option<f64>,
    /// The slowest run.
    pub mlps_min: Option<f64>,
    /// The fastest run.
    pub mlps_max: Option<f64>,
    /// All bytes that a lookup can touch.
    pub lookup_bytes: Option<usize>,
    /// `lookup_bytes` divided by the number of prefixes.
    pub bytes_per_prefix: Option<f64>,
    /// Time to build it from routes in order, median of `builds`.
    pub build_time_ms: Option<f64>,
    /// Number of answers, of `checked`, that differ from the judge's.
    pub wrong: usize,

    /// Why there are no figures.
    pub error: Option<String>,
    /// Bytes requested from the allocator.
    pub allocated_bytes: Option<usize>,
    /// Bytes mapped from the system, rounded to pages.
    pub mapped_bytes: Option<usize>,
    /// Prefixes of the table.
    pub routes: usize,
    /// Different next hops of the table.
    pub next_hops: usize,
    /// `own`; `published`: made by others, or close to how others published it; or `oracle`: written to be obviously
    /// right.
    pub role: String,
    /// Whether each lookup waits for the answer of the one before.
    pub dependent: bool,
    /// Number of keys that were looked up.
    pub keys: usize,
    /// Number of keys of the traffic.
    pub key_set: usize,
    /// Whether the keys are those of the plan's larger set.
    pub many_keys: bool,
    /// Whether these are a sample, because the engine is too slow for all keys.
    pub sample: bool,
    /// Number of answers that were compared: those of all keys, and of addresses at the ends of prefixes and next to
    /// them.
    pub checked: usize,
    /// The engine that they were compared with.
    pub judge: String,
    /// Number of timed runs.
    pub runs: usize,
    /// Number of builds.
    pub builds: usize,
    /// The lower end of the 95 % interval of `build_time_ms`.
    pub build_low_ms: Option<f64>,
    /// Its upper end.
    pub build_high_ms: Option<f64>,
    /// Whether huge pages were requested for the engine or a part of it. The system decides whether to give them;
    /// its setting is kept with the machine.
    pub huge_pages: bool,
    /// The code that prefetched the keys of later batches: `next batch`, the loop over the batches; `kernel`, the
    /// engine itself; or `none`.
    pub key_prefetch: String,
    /// The form of the keys: `host` for integers in the machine's byte order, `network` for bytes as in packets.
    pub order: String,
    /// The clock of the rates: `thread`, the processor time of the one thread, or `wall`.
    pub clock: String,
    /// Million lookups a second by wall-clock time, median of the runs.
    pub mlps_wall: Option<f64>,
    /// Scaling efficiency of several threads: `mlps_median` divided by `threads` times the rate of one thread by the
    /// same clock.
    pub scaling: Option<f64>,
    /// The lower end of the 95 % [interval](fibula_workload::interval::Interval) of `mlps_median`.
    pub mlps_low: Option<f64>,
    /// Its upper end.
    pub mlps_high: Option<f64>,
    /// Whether the interval is wider than a fifth of the median: too wide to compare the median with others.
    pub noisy: bool,
    /// Million lookups a second of each run, in order. Runs with the same number, of rows with the same traffic, keys,
    /// batch, threads and order, were timed one after another: compare them by pairs.
    pub mlps_runs: Vec<f64>,
}

impl Row {
    /// Returns whether the engine is Fibula's own: not published by others, not an oracle, not a rival.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !self.rival && self.role == "own"
    }

    /// The names of the fields in JSON order, for the head of a CSV file.
    pub const COLUMNS: &'static [&'static str] = &[
        "engine",
        "rival",
        "family",
        "traffic",
        "batch",
        "threads",
        "isa",
        "mlps_median",
        "mlps_min",
        "mlps_max",
        "lookup_bytes",
        "bytes_per_prefix",
        "build_time_ms",
        "wrong",
        "error",
        "allocated_bytes",
        "mapped_bytes",
        "routes",
        "next_hops",
        "role",
        "dependent",
        "keys",
        "key_set",
        "many_keys",
        "sample",
        "checked",
        "judge",
        "runs",
        "builds",
        "build_low_ms",
        "build_high_ms",
        "huge_pages",
        "key_prefetch",
        "order",
        "clock",
        "mlps_wall",
        "scaling",
        "mlps_low",
        "mlps_high",
        "noisy",
        "mlps_runs",
    ];

    /// Returns the slowest, median and fastest run, in million lookups a second; `None` if there are no figures.
    #[must_use]
    pub fn rates(&self) -> Option<[f64; 3]> {
        Some([self.mlps_min?, self.mlps_median?, self.mlps_max?])
    }

    /// Returns the width of the median's interval, in percent of the median.
    #[must_use]
    pub fn width_percent(&self) -> Option<f64> {
        let (low, median, high) = (self.mlps_low?, self.mlps_median?, self.mlps_high?);
        (median > 0.0).then(|| 100.0 * (high - low) / median)
    }
}
