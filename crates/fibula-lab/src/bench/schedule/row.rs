//! A row of the results of schedules, and the plan they come from.

use fibula_workload::interval::Interval;
use serde::{Deserialize, Serialize};

use crate::bench::lane::round;
use crate::bench::record::Record;
use crate::bench::sources::{Measures, Scope};

/// How lookups are divided among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Division {
    /// Each thread has its share of the keys, all of the same size.
    Static,
    /// A thread that is free takes the next chunk.
    Dynamic,
    /// A data-parallel run-time divides the chunks, and its threads steal them from each other.
    Rayon,
}

impl Division {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Static, Self::Dynamic, Self::Rayon];

    /// Returns the name, as outputs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Rayon => "rayon",
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SchedulePlan {
    /// The forms.
    pub forms: Vec<Division>,
    /// Keys of a chunk, for the forms that have chunks.
    pub chunks: Vec<usize>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Whether a core is left to the thread that manages the others.
    pub reserve: bool,
    /// Name of the traffic pattern.
    pub traffic: String,
    /// Most keys of a call.
    pub batch: usize,
    /// Keys.
    pub keys: usize,
    /// Seed of the keys.
    pub seed: u64,
    /// Timed runs of each engine in each form.
    pub runs: usize,
    /// Seconds for all timed runs together.
    pub seconds: f64,
}

impl Measures for SchedulePlan {
    const SCOPE: Scope = Scope::Lookups;
}

impl Default for SchedulePlan {
    fn default() -> Self {
        Self {
            forms: Division::ALL.to_vec(),
            chunks: vec![1, 16, 256, 4096],
            threads: vec![1],
            reserve: false,
            traffic: "match".to_owned(),
            batch: 256,
            keys: 1 << 20,
            seed: 1,
            runs: 9,
            seconds: 20.0,
        }
    }
}

/// An engine in one form. Scripts rely on the names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRow {
    /// The engine.
    pub engine: String,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// The pattern of the keys.
    pub traffic: String,
    /// `static`, `dynamic` or `rayon`.
    pub form: Division,
    /// Keys of a chunk; 0 for shares.
    pub chunk: usize,
    /// Most keys of a call.
    pub batch: usize,
    /// Threads that look up.
    pub threads: usize,
    /// Whether each has a core of its own.
    pub pinned: bool,
    /// Whether a further core is left to the thread that manages them.
    pub reserved: bool,
    /// The instruction set.
    pub isa: String,
    /// Million lookups a second, all threads together, median of the runs.
    pub mlps_median: Option<f64>,
    /// The lower end of its 95 % interval.
    pub mlps_low: Option<f64>,
    /// Its upper end.
    pub mlps_high: Option<f64>,
    /// The rate divided by that of the fewest threads of the plan, in the same form: the median of the ratios of the same runs.
    pub speedup: Option<f64>,
    /// The lower end of its 95 % interval.
    pub speedup_low: Option<f64>,
    /// Its upper end.
    pub speedup_high: Option<f64>,
    /// Answers that differ from the oracle's.
    pub wrong: usize,
    /// Why there are no figures.
    pub error: Option<String>,
    /// Prefixes of the table.
    pub routes: usize,
    /// Million lookups a second of each run.
    pub mlps_runs: Vec<f64>,
}

impl ScheduleRow {
    /// The names of the fields in JSON order, for the head of a CSV file.
    pub const COLUMNS: &'static [&'static str] = &[
        "engine",
        "family",
        "traffic",
        "form",
        "chunk",
        "batch",
        "threads",
        "pinned",
        "reserved",
        "isa",
        "mlps_median",
        "mlps_low",
        "mlps_high",
        "speedup",
        "speedup_low",
        "speedup_high",
        "wrong",
        "error",
        "routes",
        "mlps_runs",
    ];

    pub(super) fn fill(&mut self, runs: &[f64], wrong: usize) {
        let median = Interval::of(runs);
        self.mlps_median = median.map(|interval| interval.median);
        self.mlps_low = median.map(|interval| interval.low);
        self.mlps_high = median.map(|interval| interval.high);
        (self.mlps_runs, self.wrong) = (runs.to_vec(), wrong);
    }

    pub(super) fn scale(&mut self, ratio: Option<Interval>) {
        self.speedup = ratio.map(|interval| round(interval.median, 3));
        self.speedup_low = ratio.map(|interval| round(interval.low, 3));
        self.speedup_high = ratio.map(|interval| round(interval.high, 3));
    }
}

/// A record of schedules.
pub type ScheduleRecord = Record<SchedulePlan, ScheduleRow>;
