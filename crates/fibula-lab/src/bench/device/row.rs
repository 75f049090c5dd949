//! A row of the results of a coprocessor, and the plan they come from.

use fibula_workload::interval::Interval;
use serde::{Deserialize, Serialize};

use crate::bench::lane::round;
use crate::bench::record::Record;
use crate::bench::sources::{Measures, Scope};

/// Who looks up, and how addresses and answers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceForm {
    /// The processor alone.
    Processor,
    /// The device alone: a buffer is sent, looked up and fetched, and then the next one.
    Synchronous,
    /// The device alone: a buffer is sent while another is looked up.
    Asynchronous,
    /// Both, the device as in `synchronous`.
    BothSynchronous,
    /// Both, the device as in `asynchronous`.
    BothAsynchronous,
    /// The device alone, with addresses that are there already and answers that stay there: no transfers.
    Resident,
}

impl DeviceForm {
    /// All forms.
    pub const ALL: [Self; 6] = [
        Self::Processor,
        Self::Synchronous,
        Self::Asynchronous,
        Self::BothSynchronous,
        Self::BothAsynchronous,
        Self::Resident,
    ];

    /// Returns the name, as outputs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Synchronous => "synchronous",
            Self::Asynchronous => "asynchronous",
            Self::BothSynchronous => "both-synchronous",
            Self::BothAsynchronous => "both-asynchronous",
            Self::Resident => "resident",
        }
    }

    /// Returns whether the size of buffers matters.
    #[must_use]
    pub const fn has_buffers(self) -> bool {
        !matches!(self, Self::Processor)
    }
}

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DevicePlan {
    /// The forms.
    pub forms: Vec<DeviceForm>,
    /// Addresses of a buffer.
    pub buffers: Vec<usize>,
    /// Names of traffic patterns.
    pub traffic: Vec<String>,
    /// Threads of the processor.
    pub threads: usize,
    /// Keys.
    pub keys: usize,
    /// Seed of the keys.
    pub seed: u64,
    /// Timed runs in each form.
    pub runs: usize,
    /// Seconds for all timed runs together.
    pub seconds: f64,
}

impl Measures for DevicePlan {
    const SCOPE: Scope = Scope::Lookups;
}

impl Default for DevicePlan {
    /// Returns all forms, with a core left to the manager of the device.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            forms: DeviceForm::ALL.to_vec(),
            buffers: vec![1 << 12, 1 << 16, 1 << 20, 1 << 21],
            traffic: vec!["rnd".to_owned(), "match".to_owned()],
            threads: cores.saturating_sub(1).max(1),
            keys: 1 << 23,
            seed: 1,
            runs: 9,
            seconds: 20.0,
        }
    }
}

/// An engine in one form. Scripts rely on the names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceRow {
    /// The engine.
    pub engine: String,
    /// Always `false`: no rival runs on a device.
    pub rival: bool,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// The pattern of the keys.
    pub traffic: String,
    /// Addresses of a buffer; for the processor alone, of a call.
    pub batch: usize,
    /// Threads of the processor; 0 where the device looks up alone.
    pub threads: usize,
    /// The instruction set of the processor.
    pub isa: String,
    /// The device: `cuda:0`.
    pub device: String,
    /// Its driver's name for it.
    pub device_name: String,
    /// The driver and its version.
    pub driver: String,
    /// Whether the device is the processor itself. Rates then show that it works, and are no measurement of a coprocessor.
    pub device_is_processor: bool,
    /// Who looks up, and how addresses are sent.
    pub form: DeviceForm,
    /// The share of the addresses that the device looked up.
    pub share: Option<f64>,
    /// Million lookups a second by wall-clock time, median of the runs. All transfers count but those of `resident`.
    pub mlps_median: Option<f64>,
    /// The slowest run.
    pub mlps_min: Option<f64>,
    /// The fastest run.
    pub mlps_max: Option<f64>,
    /// The rate divided by that of the processor alone: the median of the ratios of the same runs.
    pub over_processor: Option<f64>,
    /// All bytes that a lookup can touch.
    pub lookup_bytes: Option<usize>,
    /// `lookup_bytes` divided by the number of prefixes.
    pub bytes_per_prefix: Option<f64>,
    /// Time to send the table to the device.
    pub upload_ms: Option<f64>,
    /// Answers that differ from the oracle's.
    pub wrong: usize,
    /// Why there are no figures.
    pub error: Option<String>,
    /// Prefixes of the table.
    pub routes: usize,
    /// Number of keys.
    pub keys: usize,
    /// Million lookups a second of each run.
    pub mlps_runs: Vec<f64>,
}

impl DeviceRow {
    /// The names of the fields in JSON order, for the head of a CSV file.
    pub const COLUMNS: &'static [&'static str] = &[
        "engine",
        "rival",
        "family",
        "traffic",
        "batch",
        "threads",
        "isa",
        "device",
        "device_name",
        "driver",
        "device_is_processor",
        "form",
        "share",
        "mlps_median",
        "mlps_min",
        "mlps_max",
        "over_processor",
        "lookup_bytes",
        "bytes_per_prefix",
        "upload_ms",
        "wrong",
        "error",
        "routes",
        "keys",
        "mlps_runs",
    ];

    pub(super) fn fill(&mut self, runs: &[f64]) {
        self.mlps_median = Interval::of(runs).map(|interval| interval.median);
        self.mlps_min = runs.iter().copied().reduce(f64::min);
        self.mlps_max = runs.iter().copied().reduce(f64::max);
        self.mlps_runs = runs.to_vec();
    }

    pub(super) fn compare(&mut self, ratio: Option<Interval>) {
        self.over_processor = ratio.map(|interval| round(interval.median, 3));
    }
}

/// A record of a coprocessor.
pub type DeviceRecord = Record<DevicePlan, DeviceRow>;
