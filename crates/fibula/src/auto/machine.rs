//! How fast a machine is: a step of arithmetic, loads from tables of several sizes, and lookups by the engines themselves.

use core::fmt;
use core::hint::black_box;
use core::str::FromStr;
use std::sync::OnceLock;
use std::time::Instant;

use super::pace::{MeasuredRates, Paces, RATES};
use crate::memory::{Budget, Buffer};
use crate::simd::Isa;

/// Number of table sizes.
const SIZES: usize = 7;

/// Binary logarithm of the smallest size in bytes; each of the others is four times the one before. The smallest fits
/// every first-level cache, the largest few last-level ones.
const SMALLEST: u32 = 14;

/// What rates depend on besides the program: the speed of arithmetic, and of loads by the size of the table that they go
/// to.
///
/// A machine is [measured](Self::measure) in about 50 ms, or read from the text that [`Display`](fmt::Display) writes:
///
/// ```
/// use fibula::auto::Machine;
///
/// let text = Machine::recorded().to_string();
/// assert_eq!(text.parse::<Machine>()?, Machine::recorded());
/// # Ok::<(), fibula::auto::MachineError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    l2_bytes: usize,
    step_ns: f64,
    load_ns: [f64; SIZES],
    wait_ns: [f64; SIZES],
    pub(super) paces: Paces,
}

impl Machine {
    /// Returns the machine that the committed measurements were made on. Costs nothing.
    #[must_use]
    pub fn recorded() -> Self {
        super::model::machine()
    }

    /// Returns this machine, measured at the first call in a process: that one takes about 50 ms, all others nothing.
    #[must_use]
    pub fn here() -> Self {
        static HERE: OnceLock<Machine> = OnceLock::new();
        *HERE.get_or_init(|| Self::measure(None))
    }

    /// Measures this machine, in about 50 ms on one core, from the shortest times of three rounds. `l2_bytes` is the size of a core's second-level cache, if it is
    /// known; else the recorded machine's. Where there is no memory for the largest table, 64 MiB, the recorded machine is
    /// returned.
    #[must_use]
    pub fn measure(l2_bytes: Option<usize>) -> Self {
        let recorded = Self::recorded();
        let l2_bytes = l2_bytes.unwrap_or(recorded.l2_bytes);
        let words = 1 << (SMALLEST + 2 * (SIZES as u32 - 1) - 2);
        let table: Result<Buffer<u32>, _> = Budget::default().buffer(words);
        let Ok(mut table) = table else { return Self { l2_bytes, ..recorded } };
        // Written, so that every page is there; with other words than zeros, so that no system shares them.
        table.resize(words, 0x5bd1_e995);
        let (mut step_ns, mut load_ns, mut wait_ns) =
            (f64::INFINITY, [f64::INFINITY; SIZES], [f64::INFINITY; SIZES]);
        // All are timed in turn, and of the rounds the shortest time counts: whatever else a machine does makes one longer.
        for round in 0..ROUNDS as u64 {
            step_ns = step_ns.min(timed(STEPS, || steps(black_box(STEPS))));
            for size in 0..SIZES {
                let part = &table[..1 << (SMALLEST as usize + 2 * size - 2)];
                // As much of it in the caches as they hold: other sizes have taken its place.
                touch(part);
                load_ns[size] = load_ns[size].min(timed(LOADS, || loads(part, round)));
                // Again: after random loads, a table of 16 MiB would be half as slow again.
                touch(part);
                wait_ns[size] = wait_ns[size].min(timed(WAITS, || waits(part, round)));
            }
        }
        let (load_ns, wait_ns) = (rising(load_ns), rising(wait_ns));
        Self { l2_bytes, step_ns: step_ns.max(LEAST), load_ns, wait_ns, paces: Paces::NONE }
    }

    /// Returns this machine with the rates of an engine's kernels for one instruction set that were measured on it, in million lookups
    /// a second by [`BATCHES`](super::BATCHES): over a table that is [plain](super::TableKind::Plain), has so many ranges and takes so
    /// many lookup bytes. An engine that the model does not have is left out.
    #[must_use]
    pub fn with_rates(mut self, of: MeasuredRates<'_>) -> Self {
        self.paces.insert(&of, super::model::names());
        self
    }

    /// Returns this machine without rates of engines.
    #[must_use]
    pub fn without_rates(self) -> Self {
        Self { paces: Paces::NONE, ..self }
    }

    /// Returns whether it has the rates of all engines that lookups with this set run, so that choices use them.
    #[must_use]
    pub fn has_rates(&self, isa: Isa) -> bool {
        self.paces.are_whole(isa, super::model::names())
    }

    /// Returns this machine as the faster of two measurements of it shows each figure: what else it did made the other longer.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let least = |a: [f64; SIZES], b: [f64; SIZES]| core::array::from_fn(|size| a[size].min(b[size]));
        Self {
            step_ns: self.step_ns.min(other.step_ns),
            load_ns: least(self.load_ns, other.load_ns),
            wait_ns: least(self.wait_ns, other.wait_ns),
            paces: self.paces.least(&other.paces),
            ..self
        }
    }

    /// Returns this machine with another second-level cache, and without rates of engines: what was fast up to the size of the old one
    /// is so up to that of the new one.
    #[must_use]
    pub fn with_l2(self, l2_bytes: usize) -> Self {
        let scale = self.l2_bytes.max(1) as f64 / l2_bytes.max(1) as f64;
        let load_ns = core::array::from_fn(|size| self.load_ns(size_bytes(size) * scale));
        let wait_ns = core::array::from_fn(|size| self.wait_ns(size_bytes(size) * scale));
        // Engines were measured with the other cache.
        Self { l2_bytes, load_ns, wait_ns, paces: Paces::NONE, ..self }
    }

    /// Returns the size of a core's second-level cache.
    #[must_use]
    pub fn l2_bytes(&self) -> usize {
        self.l2_bytes
    }

    /// Returns the nanoseconds of a shift, an exclusive or and a multiplication that wait for one another.
    #[must_use]
    pub fn step_ns(&self) -> f64 {
        self.step_ns
    }

    /// Returns the nanoseconds of a load from a random place of a table of so many bytes, where loads do not wait for one
    /// another.
    #[must_use]
    pub fn load_ns(&self, bytes: f64) -> f64 {
        between(&self.load_ns, bytes)
    }

    /// Returns the nanoseconds of such a load where the next one waits for it: its place is a [step](Self::step_ns) from what it
    /// loads.
    #[must_use]
    pub fn wait_ns(&self, bytes: f64) -> f64 {
        between(&self.wait_ns, bytes)
    }
}

/// Interpolates between tables of measured sizes, over the logarithm of bytes.
fn between(ns: &[f64; SIZES], bytes: f64) -> f64 {
    let at = ((bytes.max(1.0).log2() - f64::from(SMALLEST)) / 2.0).clamp(0.0, (SIZES - 1) as f64);
    let low = (at as usize).min(SIZES - 2);
    let share = at - low as f64;
    ns[low] * (1.0 - share) + ns[low + 1] * share
}

/// Returns the times, each at least that of the smaller tables: a larger table is not faster, and what says so is noise.
fn rising(mut ns: [f64; SIZES]) -> [f64; SIZES] {
    let mut floor = LEAST;
    for ns in &mut ns {
        floor = floor.max(*ns);
        *ns = floor;
    }
    ns
}

/// The shortest time in nanoseconds that a machine is taken to need for anything.
const LEAST: f64 = 1e-3;

/// Rounds of a measurement.
const ROUNDS: usize = 3;

/// Returns the bytes of the table of this number.
fn size_bytes(size: usize) -> f64 {
    (1u64 << (SMALLEST as usize + 2 * size)) as f64
}

/// Loads that are timed together.
const LOADS: usize = 1 << 16;

/// Loads that wait for one another and are timed together.
const WAITS: usize = 1 << 14;

/// Steps that are timed together.
const STEPS: usize = 1 << 15;

/// Numbers for addresses: a multiplication and an addition.
fn step(state: u64) -> u64 {
    state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f)
}

/// Loads a word of each line of 64 bytes.
fn touch(table: &[u32]) {
    black_box(table.iter().step_by(16).fold(0, |sum, word| sum ^ word));
}

/// Four chains of numbers, so that the numbers are there before a load could be under way. Each round loads from other places: those
/// of the round before would be in caches too small for the table.
fn loads(table: &[u32], round: u64) {
    let mut states = [1, 2, 3, 4].map(|chain| black_box(chain + 4 * round) << 32);
    let mut sum = 0;
    for _ in 0..LOADS / 4 {
        for state in &mut states {
            *state = step(*state);
            sum ^= table[(*state >> 38) as usize & (table.len() - 1)];
        }
    }
    black_box(sum);
}

/// One chain, in which each place is made of the word before. Each round has other places.
fn waits(table: &[u32], round: u64) {
    let mut state = black_box(1 + round);
    for _ in 0..WAITS {
        state = step(state ^ u64::from(table[(state >> 38) as usize & (table.len() - 1)]));
    }
    black_box(state);
}

fn steps(count: usize) {
    let mut state = black_box(1_u64);
    for _ in 0..count {
        // A shift and a multiplication, which a compiler cannot combine with those of other steps.
        state = (state ^ state >> 29).wrapping_mul(0x5851_f42d_4c95_7f2d);
    }
    black_box(state);
}

/// Returns the nanoseconds of one of so many.
fn timed(count: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Writes `key value...` lines: the cache, a step, and the loads from 16 KiB up, each table four times the one before: those that
/// do not wait for one another, and those that do. Then for each engine and set that was measured `rates`, with the family, the
/// engine, the set, the table's ranges, the engine's bytes, and million lookups a second by batch.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "l2_bytes {}", self.l2_bytes)?;
        writeln!(f, "step_ns {:.3}", self.step_ns)?;
        for (name, ns) in [("load_ns", self.load_ns), ("wait_ns", self.wait_ns)] {
            write!(f, "{name}")?;
            ns.iter().try_for_each(|ns| write!(f, " {ns:.3}"))?;
            writeln!(f)?;
        }
        // Without any, the model is not read, which begins with a machine itself.
        if self.paces == Paces::NONE { Ok(()) } else { self.paces.write(f, super::model::names()) }
    }
}

impl FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let field = |name: &'static str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.ok_or(MachineError(name))
        };
        let number = |name: &'static str, text: &str| match text.trim().parse::<f64>() {
            Ok(number) if number > 0.0 && number < 1e9 => Ok(number),
            _ => Err(MachineError(name)),
        };
        let l2_bytes = number("l2_bytes", field("l2_bytes")?)? as usize;
        let step_ns = number("step_ns", field("step_ns")?)?;
        let numbers = |name: &'static str| {
            let all: Result<Vec<f64>, _> =
                field(name)?.split_whitespace().map(|ns| number(name, ns)).collect();
            all?.try_into().map(rising).map_err(|_| MachineError(name))
        };
        let (load_ns, wait_ns) = (numbers("load_ns")?, numbers("wait_ns")?);
        let mut rates = text.lines().filter(|line| line.starts_with(RATES)).peekable();
        // Without any, the model is not needed, which begins with a machine itself.
        let paces = match rates.peek() {
            Some(_) => Paces::read(rates, super::model::names()).ok_or(MachineError("rates"))?,
            None => Paces::NONE,
        };
        Ok(Self { l2_bytes, step_ns, load_ns, wait_ns, paces })
    }
}

/// The error for text that is not a [`Machine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineError(&'static str);

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(field) = self;
        write!(f, "a calibration needs a line '{field}' of positive numbers; measure it again")
    }
}

impl core::error::Error for MachineError {}
