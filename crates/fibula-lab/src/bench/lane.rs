//! One contestant in a race: how much it looks up in each run.

use std::time::Duration;

use fibula::net::Key;
use fibula::simd::{self, Isa};

use super::clock::Spent;
use super::native::Structure;
use super::pass::{self, CallForm, Load};

/// One kernel of one contestant in a race, with its results so far.
pub(super) struct Lane<'a, K: Key> {
    structure: &'a Structure<K>,
    way: CallForm,
    pub(super) keys: &'a [K],
    /// Whether the keys are a set that no cache should hold.
    many: bool,
    threads: usize,
    /// Lookups a second, as last measured.
    pace: f64,
    /// Rates of the runs, in order, by the clock that counts and by wall-clock time.
    pub(super) mlps: Vec<f64>,
    pub(super) mlps_wall: Vec<f64>,
    pub(super) clock: &'static str,
    pub(super) wrong: usize,
}

impl<'a, K: Key> Lane<'a, K> {
    pub(super) fn new(
        structure: &'a Structure<K>,
        way: CallForm,
        keys: &'a [K],
        many: bool,
        threads: usize,
        pace: f64,
        wrong: usize,
    ) -> Self {
        let (mlps, mlps_wall, clock) = (Vec::new(), Vec::new(), "wall");
        Self { structure, way, keys, many, threads, pace, mlps, mlps_wall, clock, wrong }
    }

    /// Times run number `run`, which lasts about as long as the slot. An untimed run comes first, because the contestant
    /// before has filled the caches with its own memory: over the same keys, or over the last quarter of a larger set,
    /// whose first keys are then as cold as any.
    pub(super) fn time(&mut self, run: usize, runs: usize, slot: Duration) {
        if self.keys.is_empty() {
            return;
        }
        force(self.way.isa.isa());
        let wanted = |pace: f64, time: Duration| (pace * time.as_secs_f64()) as usize;
        let pass_min = if self.many { MANY_PASS_MIN } else { PASS_MIN };
        let fewest = LOOKUPS_MIN.max(wanted(self.pace, pass_min)).min(self.keys.len());
        let load = load(self.keys, wanted(self.pace, slot).max(fewest), run, runs);
        let warm_up = match self.many {
            true => Load {
                keys: &load.keys[load.keys.len() - load.keys.len().div_ceil(WARM_UP_PARTS)..],
                passes: 1,
            },
            false => Load { passes: load.passes.div_ceil(WARM_UP_PARTS), ..load },
        };
        pass::time(self.structure, self.way, warm_up, self.threads);
        let spent = pass::time(self.structure, self.way, load, self.threads);
        let rate = |time: Duration| (load.keys.len() * load.passes) as f64 / time.as_secs_f64().max(1e-9);
        self.pace = rate(spent.wall);
        self.clock = if matches!(spent, Spent { thread: Some(_), .. }) { "thread" } else { "wall" };
        self.mlps.push(round(rate(spent.counted()) / 1e6, 5));
        self.mlps_wall.push(round(self.pace / 1e6, 5));
    }
}

/// An engine that looks up all keys within this time does so in each run, and to warm up: some of the keys would
/// touch only a part of a large engine.
const PASS_MIN: Duration = Duration::from_millis(20);

/// The same for larger sets of keys.
const MANY_PASS_MIN: Duration = Duration::from_millis(100);

/// The untimed run makes a quarter of the passes, and at least one.
const WARM_UP_PARTS: usize = 4;

/// The fewest lookups of a run, however short its time, if there are as many keys.
const LOOKUPS_MIN: usize = 4096;

/// Returns about `wanted` lookups: whole passes over all keys, or some of the keys. In the same run, all contestants
/// begin at the same key.
fn load<K>(keys: &[K], wanted: usize, run: usize, runs: usize) -> Load<'_, K> {
    if wanted >= keys.len() {
        return Load { keys, passes: wanted.div_ceil(keys.len().max(1)) };
    }
    let first = (keys.len() * run / runs).min(keys.len() - wanted);
    Load { keys: &keys[first..first + wanted], passes: 1 }
}

/// Sets the instruction set of single lookups. There is a kernel for it, so the machine supports it.
pub(super) fn force(isa: Isa) {
    let _ = simd::force(Some(isa));
}

/// Rounds a figure to the digits that mean something, for readers of the record.
pub(super) fn round(number: f64, decimals: i32) -> f64 {
    let unit = 10_f64.powi(decimals);
    (number * unit).round() / unit
}
