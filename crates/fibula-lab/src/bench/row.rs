//! A line of a benchmark's result.

use serde::{Deserialize, Serialize};

/// What one structure did in one cell of the plan. The names are those scripts rely on.
///
/// Figures are none where the structure could not be built, or failed while it was asked: `error` says why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The structure.
    pub algorithm: String,
    /// Whether it is somebody else's.
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
    /// `lookup_bytes` by the number of prefixes.
    pub bytes_per_prefix: Option<f64>,
    /// Time to build it from routes in order, median of `builds`.
    pub build_time_ms: Option<f64>,
    /// Answers that were not the judge's, of `checked`.
    pub wrong: usize,

    /// Why there are no figures.
    pub error: Option<String>,
    /// Bytes asked of the allocator.
    pub allocated_bytes: Option<usize>,
    /// Bytes mapped from the system, rounded to pages.
    pub mapped_bytes: Option<usize>,
    /// Prefixes of the table.
    pub routes: usize,
    /// Different next hops of the table.
    pub next_hops: usize,
    /// `own`, `published`: made elsewhere or kept close to how it was published, or `oracle`: written to be evidently right.
    #[serde(deserialize_with = "role")]
    pub role: String,
    /// Whether each lookup waits for the answer of the one before.
    pub dependent: bool,
    /// Different keys that were looked up.
    pub keys: usize,
    /// Whether those are a sample, because the structure is too slow for all.
    pub sample: bool,
    /// Answers that were compared: those of all keys, and at the ends of prefixes and beside them.
    pub checked: usize,
    /// The structure that they were compared with.
    pub judge: String,
    /// Timed runs, taken in turn with the other structures.
    pub runs: usize,
    /// Times it was built.
    pub builds: usize,
    /// Whether huge pages were asked for where the structure lies, or a part of it. Whether they were given is the
    /// system's choice; the machine's record has its setting.
    pub huge_pages: bool,
    /// How keys are prefetched by software: the same for all.
    pub key_prefetch: String,
    /// The form of the keys: `host` for integers of the machine, `network` for bytes as packets hold them.
    #[serde(default = "host")]
    pub order: String,
    /// What the rates were timed by: `thread`, the time that the one thread had its core, or `wall`.
    #[serde(default = "wall")]
    pub clock: String,
    /// Million lookups a second by the wall's clock, median of the runs.
    #[serde(default)]
    pub mlps_wall: Option<f64>,
    /// Of several threads: `mlps_median` by `threads` times what one thread did by the same clock; 1 is linear.
    #[serde(default)]
    pub scaling: Option<f64>,
}

/// Older records call this project's own structures `contestant`.
fn role<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let role = String::deserialize(deserializer)?;
    Ok(if role == "contestant" { "own".to_owned() } else { role })
}

fn host() -> String {
    "host".to_owned()
}

fn wall() -> String {
    "wall".to_owned()
}

impl Row {
    /// Whether it is of a structure of this project's own, neither published elsewhere nor an oracle nor a rival.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !self.rival && self.role == "own"
    }

    /// The fields in the order of the JSON form: the head of a CSV.
    pub const COLUMNS: &'static [&'static str] = &[
        "algorithm",
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
        "sample",
        "checked",
        "judge",
        "runs",
        "builds",
        "huge_pages",
        "key_prefetch",
        "order",
        "clock",
        "mlps_wall",
        "scaling",
    ];

    /// Slowest, median and fastest run, in million lookups a second, where it ran.
    #[must_use]
    pub fn rates(&self) -> Option<[f64; 3]> {
        Some([self.mlps_min?, self.mlps_median?, self.mlps_max?])
    }

    /// The spread of the runs, in percent of the median.
    #[must_use]
    pub fn spread_percent(&self) -> Option<f64> {
        let [min, median, max] = self.rates()?;
        (median > 0.0).then(|| 100.0 * (max - min) / median)
    }
}
