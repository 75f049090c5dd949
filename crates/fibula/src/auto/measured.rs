//! The measurements in `measured.csv`, and what they say of other tables and machines.
//!
//! `fibula-lab document choices` makes the file from the records of `records/choices/`. It is read
//! once.

use std::sync::LazyLock;

use crate::net::{Key, KeyKind};
use crate::simd::Isa;

use super::{Machine, TableKind, Workload};

/// Batches that were measured.
pub(super) const BATCHES: [usize; 7] = [1, 8, 16, 32, 64, 256, 1024];

/// One engine with one instruction set, over tables of one kind.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) family: &'static str,
    pub(super) kind: TableKind,
    pub(super) isa: Isa,
    pub(super) engine: &'static str,
    /// How many loads of the engine's size a lookup waits for, by batch: fitted.
    loads: [f64; BATCHES.len()],
    /// Ascending by ranges.
    pub(super) points: Vec<Point>,
}

/// One measured table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) ranges: f64,
    pub(super) bytes: f64,
    /// Nanoseconds a lookup, by batch.
    pub(super) ns: [f64; BATCHES.len()],
}

impl Curve {
    /// Returns whether this was measured for tables of this kind and can run with this instruction set.
    pub(super) fn serves<K: Key>(&self, kind: TableKind, isa: Isa) -> bool {
        // Narrow keys were not measured.
        K::KIND != KeyKind::Toy
            && self.family == K::FAMILY.name()
            && self.kind == kind
            && self.isa.is_within(isa)
    }

    /// Returns the nanoseconds of a lookup in an engine of so many bytes for so many ranges.
    pub(super) fn ns(&self, ranges: f64, bytes: f64, batch: usize, machine: &Machine) -> f64 {
        let (low, share) = between_batches(batch);
        let at = |number: usize| {
            let recorded = self.between(ranges, |point| point.ns[number]);
            // What the recorded lookups waited for memory, at most all but a fifth of their time.
            let loads = self.loads[number];
            let waited = loads * RECORDED.machine.load_ns(touched(ranges, self.bytes(ranges)));
            let waited = waited.min(0.8 * recorded);
            let loads = if loads > 0.0 {
                waited / RECORDED.machine.load_ns(touched(ranges, self.bytes(ranges)))
            } else {
                0.0
            };
            let steps = machine.step_ns() / RECORDED.machine.step_ns();
            (recorded - waited) * steps + loads * machine.load_ns(touched(ranges, bytes))
        };
        if share == 0.0 { at(low) } else { at(low) * (1.0 - share) + at(low + 1) * share }
    }

    /// Returns the lookup bytes for this many ranges; they are proportional above the largest measured table.
    pub(super) fn bytes(&self, ranges: f64) -> f64 {
        let last = self.points[self.points.len() - 1];
        self.between(ranges, |point| point.bytes) * (ranges / last.ranges).max(1.0)
    }

    /// Interpolates between the neighbouring tables, logarithm over logarithm.
    fn between(&self, ranges: f64, figure: impl Fn(&Point) -> f64) -> f64 {
        let above = self.points.partition_point(|point| point.ranges < ranges);
        let high = &self.points[above.min(self.points.len() - 1)];
        let low = &self.points[above.saturating_sub(1)];
        if high.ranges <= low.ranges {
            return figure(low);
        }
        let share = (ranges / low.ranges).ln() / (high.ranges / low.ranges).ln();
        (figure(low).ln() * (1.0 - share) + figure(high).ln() * share).exp()
    }
}

/// Returns how much of an engine lookups touch: of a direct table, a few lines for each range.
pub(super) fn touched(ranges: f64, bytes: f64) -> f64 {
    bytes.min(ranges * 256.0)
}

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

/// Returns the kind of table to compare the workload's with: its own, or plain if that was not measured.
pub(super) fn kind_for<K: Key>(wanted: &Workload) -> TableKind {
    let kind = wanted.kind();
    let is_measured = curves().iter().any(|curve| curve.serves::<K>(kind, wanted.isa));
    if is_measured { kind } else { TableKind::Plain }
}

/// Returns all curves.
pub(super) fn curves() -> &'static [Curve] {
    &RECORDED.curves
}

/// Returns the measured machine.
pub(super) fn machine() -> Machine {
    RECORDED.machine
}

struct Recorded {
    machine: Machine,
    curves: Vec<Curve>,
}

static RECORDED: LazyLock<Recorded> =
    LazyLock::new(|| read(include_str!("measured.csv")).expect("the file is generated"));

/// Returns `None` for text that the generator would not write.
fn read(text: &'static str) -> Option<Recorded> {
    let (machine, rows) = text.split_once("\n\n")?;
    let machine = machine.parse().ok()?;
    let mut curves: Vec<Curve> = Vec::new();
    // The first line names the columns. Each curve begins with its loads, where the other lines have ranges and bytes.
    for line in rows.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [family, kind, isa, engine, ranges, bytes, figures @ ..] = &fields[..] else { return None };
        let figures: Vec<f64> = figures.iter().filter_map(|figure| figure.parse().ok()).collect();
        let figures: [f64; BATCHES.len()] = figures.try_into().ok()?;
        if *ranges == "loads" {
            let kind = TableKind::ALL.into_iter().find(|named| named.name() == *kind)?;
            let isa = isa.parse().ok()?;
            curves.push(Curve { family, kind, isa, engine, loads: figures, points: Vec::new() });
        } else {
            let ns = figures.map(|mlps| 1e3 / mlps);
            let point = Point { ranges: ranges.parse().ok()?, bytes: bytes.parse().ok()?, ns };
            curves.last_mut()?.points.push(point);
        }
    }
    curves.iter().all(|curve| !curve.points.is_empty()).then_some(Recorded { machine, curves })
}
