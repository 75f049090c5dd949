//! The model in `model.csv`: what a lookup by an engine costs on a machine, in terms of the table and of the engine's bytes.
//!
//! A cost is a sum of [figures](figures) of the machine, the table and the engine, each with a weight of at least 0. No figure falls
//! where a table has more ranges, an engine more bytes or a machine slower loads. So a cost does not fall either, whatever the
//! weights are. `fibula-lab document choices` fits them to the records of `records/choices/`. The file is read once.

use std::sync::LazyLock;

use crate::net::{Key, KeyKind};
use crate::simd::Isa;

use super::pace::{BATCHES, CostName, MOST_COSTS, Pace, Paces, RATES};
use super::{Machine, TableKind, Workload};

/// The names of the [`figures`], in their order. Those of some kind of table come last, and are 0 for others.
pub const FIGURES: [&str; 26] = [
    "step",
    "step-log2-ranges",
    "load",
    "load-16th",
    "load-16-a-range",
    "load-64-a-range",
    "wait",
    "wait-16th",
    "wait-16-a-range",
    "wait-64-a-range",
    "hosts-step",
    "hosts-step-log2-ranges",
    "hosts-load",
    "hosts-wait",
    "wide-step",
    "wide-step-log2-ranges",
    "wide-load",
    "wide-wait",
    "many-step",
    "many-step-log2-ranges",
    "many-load",
    "many-wait",
    "many-wide-step",
    "many-wide-step-log2-ranges",
    "many-wide-load",
    "many-wide-wait",
];

/// Bytes of an engine that lookups touch for each range, at most: of a direct table, a few lines.
const TOUCHED: f64 = 256.0;

/// Returns the figures that costs are sums of, in nanoseconds.
///
/// A lookup takes steps, some of them for each halving of the ranges. It loads from the engine as a whole, and from levels above it:
/// a 16th of its bytes, or a sixteenth or a quarter of what it touches of each range. Loads that do not wait for one another, and
/// those that do, are figures apart: their shares depend on the batch.
#[must_use]
pub fn figures(kind: TableKind, ranges: usize, bytes: usize, machine: &Machine) -> [f64; FIGURES.len()] {
    let (ranges, bytes) = (ranges.max(1) as f64, bytes as f64);
    let (step, halvings) = (machine.step_ns(), (ranges + 1.0).log2());
    let touched = |a_range: f64| bytes.min(ranges * a_range);
    let levels = [touched(TOUCHED), bytes / 16.0, touched(TOUCHED / 16.0), touched(TOUCHED / 4.0)];
    let loads = levels.map(|bytes| machine.load_ns(bytes));
    let waits = levels.map(|bytes| machine.wait_ns(bytes));
    let whole = [step, step * halvings, loads[0], waits[0]];
    let of_kind = |one: TableKind| if kind == one { whole } else { [0.0; 4] };
    let mut all = [0.0; FIGURES.len()];
    let kinds = [TableKind::Hosts, TableKind::Wide, TableKind::Many, TableKind::ManyWide].map(of_kind);
    let parts = [&whole[..2], &loads, &waits, kinds.as_flattened()];
    parts.into_iter().flatten().zip(&mut all).for_each(|(figure, to)| *to = *figure);
    all
}

/// What lookups by one engine with one instruction set cost.
#[derive(Debug, Clone)]
pub(super) struct Cost {
    pub(super) family: &'static str,
    pub(super) isa: Isa,
    pub(super) engine: &'static str,
    /// Weights of the figures, by batch.
    weights: [[f64; FIGURES.len()]; BATCHES.len()],
}

impl Cost {
    fn name(&self) -> CostName {
        (self.family, self.engine, self.isa)
    }

    /// Returns whether this is a cost for such keys, of what can run with this instruction set.
    pub(super) fn serves<K: Key>(&self, isa: Isa) -> bool {
        // Narrow keys were not measured.
        K::KIND != KeyKind::Toy && self.family == K::FAMILY.name() && self.isa.is_within(isa)
    }

    /// Returns the nanoseconds of a lookup in an engine of so many bytes: the weighted sum, and where lookups were measured on this
    /// machine as on the recorded one, this times how much more of it they took here. That ratio does not depend on the table, and is 1
    /// for the recorded machine.
    pub(super) fn ns(&self, wanted: &Workload, bytes: usize, measured: Option<[&Pace; 2]>) -> f64 {
        let figures = figures(wanted.kind(), wanted.ranges, bytes, &wanted.machine);
        let (low, share) = between_batches(wanted.batch);
        let at = |batch: usize| {
            let ratio = |[here, recorded]: [&Pace; 2]| {
                self.off_by(here, &wanted.machine, batch) / self.off_by(recorded, &MODEL.machine, batch)
            };
            self.sum(batch, &figures) * measured.map_or(1.0, ratio).clamp(1.0 / MOST_OFF, MOST_OFF)
        };
        if share == 0.0 { at(low) } else { at(low) * (1.0 - share) + at(low + 1) * share }
    }

    /// Returns the nanoseconds of a lookup with these figures, in a batch.
    fn sum(&self, batch: usize, figures: &[f64]) -> f64 {
        self.weights[batch].iter().zip(figures).map(|(weight, figure)| weight * figure).sum()
    }

    /// Returns how many times the weighted sum lookups took on a machine.
    fn off_by(&self, pace: &Pace, machine: &Machine, batch: usize) -> f64 {
        let figures = figures(TableKind::Plain, pace.ranges as usize, pace.bytes as usize, machine);
        f64::from(pace.ns[batch]) / self.sum(batch, &figures)
    }
}

/// How far a measurement can move a cost: beyond, something else was at work.
const MOST_OFF: f64 = 4.0;

/// Returns the number of the measured batch below, and how far the batch is from there to the next one.
fn between_batches(batch: usize) -> (usize, f64) {
    let above = BATCHES.partition_point(|&measured| measured <= batch);
    let low = above.saturating_sub(1);
    if above == BATCHES.len() || BATCHES[low] >= batch {
        return (low, 0.0);
    }
    let [from, to, batch] = [BATCHES[low], BATCHES[above], batch].map(|keys| (keys as f64).ln());
    (low, (batch - from) / (to - from))
}

/// What an engine takes for tables of one kind.
#[derive(Debug, Clone, Copy)]
struct Size {
    family: &'static str,
    kind: TableKind,
    engine: &'static str,
    /// Lookup bytes without ranges, and of each.
    bytes: [f64; 2],
}

/// Returns the lookup bytes that an engine is expected to take.
pub(super) fn expected_bytes<K: Key>(wanted: &Workload, engine: &str) -> Option<usize> {
    let kind = wanted.kind();
    let of_it = |size: &&Size| size.family == K::FAMILY.name() && size.kind == kind && size.engine == engine;
    let [base, each] = MODEL.sizes.iter().find(of_it)?.bytes;
    Some((base + each * wanted.ranges as f64) as usize)
}

/// Returns all costs.
pub(super) fn costs() -> &'static [Cost] {
    &MODEL.costs
}

/// Returns the names of all costs.
pub(super) fn names() -> impl Iterator<Item = CostName> + Clone {
    costs().iter().map(Cost::name)
}

/// Returns the measured machine, with rates of the engines.
pub(super) fn machine() -> Machine {
    MODEL.machine
}

struct Model {
    machine: Machine,
    sizes: Vec<Size>,
    costs: Vec<Cost>,
}

static MODEL: LazyLock<Model> =
    LazyLock::new(|| read(include_str!("model.csv")).expect("the file is generated"));

/// Returns `None` for text that the generator would not write.
fn read(text: &'static str) -> Option<Model> {
    let (machine, rows) = text.split_once("\n\n")?;
    // Its rates are of costs, which are not read yet.
    let (rates, figures): (Vec<&str>, _) = machine.lines().partition(|line| line.starts_with(RATES));
    let machine_text = figures.join("\n");
    let mut model = Model { machine: machine_text.parse().ok()?, sizes: Vec::new(), costs: Vec::new() };
    for line in rows.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[..] {
            ["size", family, engine, kind, base, each] => {
                let kind = TableKind::ALL.into_iter().find(|named| named.name() == kind)?;
                let bytes = [base.parse().ok()?, each.parse().ok()?];
                model.sizes.push(Size { family, kind, engine, bytes });
            }
            ["cost", family, engine, isa] => {
                let weights = [[0.0; FIGURES.len()]; BATCHES.len()];
                model.costs.push(Cost { family, isa: isa.parse().ok()?, engine, weights });
                // Machines have a place for a measurement of each.
                (model.costs.len() <= MOST_COSTS).then_some(())?;
            }
            [figure, ref by_batch @ ..] => {
                let at = FIGURES.iter().position(|name| *name == figure)?;
                let cost = model.costs.last_mut()?;
                for (weight, weights) in by_batch.iter().zip(&mut cost.weights) {
                    weights[at] = weight.parse().ok()?;
                }
            }
            [] => return None,
        }
    }
    model.machine.paces = Paces::read(rates.into_iter(), model.costs.iter().map(Cost::name))?;
    Some(model)
}
