//! A row of the results of updates, and the plan they come from.

use fibula_workload::interval::Interval;
use serde::{Deserialize, Serialize};

use crate::bench::record::Record;
use crate::bench::sources::{Measures, Scope};

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdatePlan {
    /// Timed runs of each engine.
    pub runs: usize,
    /// Seconds for timed changes, shared by all. Each figure takes at least one call. For an engine that
    /// is rebuilt for each call, that is a build.
    pub seconds: f64,
    /// Most different prefixes of each length, and of each batch size, that are removed and added again.
    pub prefixes: usize,
    /// Changes in a call, where calls of different sizes are not compared.
    pub batch: usize,
    /// The numbers of changes in a call that are compared.
    pub batches: Vec<usize>,
    /// Stretches that the trace is divided into.
    pub stretches: usize,
    /// Routes of the generated table that is built; 0 for none.
    pub build_routes: usize,
    /// Seed of the prefixes.
    pub seed: u64,
}

impl Measures for UpdatePlan {
    const SCOPE: Scope = Scope::Changes;
}

impl Default for UpdatePlan {
    fn default() -> Self {
        Self {
            runs: 9,
            seconds: 20.0,
            prefixes: 4096,
            batch: 64,
            batches: vec![1, 8, 64, 512, 4096],
            stretches: 20,
            build_routes: 1_000_000,
            seed: 1,
        }
    }
}

/// The subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowSubject {
    /// Microseconds for each change of prefixes of the length [`UpdateRow::at`].
    Length,
    /// Microseconds for each change in calls of [`UpdateRow::at`] changes.
    Batch,
    /// Microseconds for each change of a recorded trace, up to its change [`UpdateRow::at`] from the one where the row before
    /// ends.
    Trace,
    /// Milliseconds to build a generated table of [`UpdateRow::at`] routes.
    Build,
    /// Million lookups a second of [`UpdateRow::at`] readers together, while nothing changes.
    ReadersIdle,
    /// The same, beside the writer at full speed.
    ReadersBeside,
    /// Million changes a second of the writer beside [`UpdateRow::at`] readers.
    WriterBeside,
}

/// A figure of an engine. Scripts rely on the names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateRow {
    /// The engine.
    pub engine: String,
    /// Whether it is a rival, and not part of Fibula.
    pub rival: bool,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// `in-place`, or `rebuild` for an engine that is rebuilt for each call.
    pub update: String,
    /// The subject of the measurement.
    pub part: RowSubject,
    /// Where: see [`RowSubject`].
    pub at: usize,
    /// Most changes in a call.
    pub batch: usize,
    /// `us`, `ms` or `M/s`.
    pub unit: String,
    /// The median of the runs.
    pub median: Option<f64>,
    /// The lower end of its 95 % [interval](Interval).
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Changes that were timed, in all runs.
    pub changes: usize,
    /// Engines that were rebuilt for them.
    pub rebuilt: usize,
    /// Answers that were compared with the oracle's.
    pub checked: usize,
    /// Those of them that were wrong.
    pub wrong: usize,
    /// Why there is no figure.
    pub error: Option<String>,
    /// The figure of each run.
    pub runs: Vec<f64>,
}

impl RowSubject {
    /// Returns the unit of its figures.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Length | Self::Batch | Self::Trace => "us",
            Self::Build => "ms",
            Self::ReadersIdle | Self::ReadersBeside | Self::WriterBeside => "M/s",
        }
    }
}

impl UpdateRow {
    /// The names of the fields in JSON order, for the head of a CSV file.
    pub const COLUMNS: &'static [&'static str] = &[
        "engine", "rival", "family", "update", "part", "at", "batch", "unit", "median", "low", "high",
        "changes", "rebuilt", "checked", "wrong", "error", "runs",
    ];

    /// Adds the figure of a run.
    pub(super) fn add(&mut self, figure: f64) {
        self.runs.push(figure);
        if let Some(Interval { low, median, high }) = Interval::of(&self.runs) {
            (self.low, self.median, self.high) = (Some(low), Some(median), Some(high));
        }
    }
}

/// The results for one table on one machine: `records/updates/MACHINE/TABLE.json`.
pub type UpdateRecord = Record<UpdatePlan, UpdateRow>;
