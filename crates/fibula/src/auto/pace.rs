//! Rates of the engines themselves on a machine, over one table of each family. The costs of gathers and branches
//! differ between processors by more than those of loads and steps: the model's cost is multiplied by how much more the engine took for
//! this table than on the recorded machine.

use core::fmt;
use core::str::FromStr;

use crate::net::Family;
use crate::simd::Isa;

/// Batches that were measured.
pub const BATCHES: [usize; 7] = [1, 8, 16, 32, 64, 256, 1024];

/// Costs that the model has at most.
pub(super) const MOST_COSTS: usize = 40;

/// How a line with rates begins.
pub(super) const RATES: &str = "rates ";

/// The rates of an engine over one table, for [`Machine::with_rates`](super::Machine::with_rates).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredRates<'a> {
    /// The family.
    pub family: Family,
    /// The engine.
    pub engine: &'a str,
    /// The instruction set.
    pub isa: Isa,
    /// Ranges of the table.
    pub ranges: usize,
    /// Lookup bytes of the engine over it.
    pub bytes: usize,
    /// Million lookups a second, by batch.
    pub mlps: [f64; BATCHES.len()],
}

/// Writes the line of a [`Machine`](super::Machine)'s text.
impl fmt::Display for MeasuredRates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, engine, isa, ranges, bytes, mlps } = self;
        write!(f, "{RATES}{} {engine} {isa} {ranges} {bytes}", family.name())?;
        mlps.iter().try_for_each(|mlps| write!(f, " {mlps:.1}"))
    }
}

/// The family, engine and instruction set that a cost of the model is of. Functions take those of all costs, in their order.
pub(super) type CostName = (&'static str, &'static str, Isa);

/// Measurements, for each cost of the model in its order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paces([Option<Pace>; MOST_COSTS]);

/// The times of lookups by one engine with one set, and the table that they were of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    pub(super) ranges: u32,
    pub(super) bytes: u32,
    /// Nanoseconds of a lookup, by batch.
    pub(super) ns: [f32; BATCHES.len()],
}

impl Paces {
    /// Nothing was measured.
    pub(super) const NONE: Self = Self([None; MOST_COSTS]);

    /// Returns the measurement of the cost of this number.
    pub(super) fn get(&self, cost: usize) -> Option<&Pace> {
        self.0[cost].as_ref()
    }

    /// Returns whether the best kernels of each engine within a set were measured.
    pub(super) fn are_whole(&self, isa: Isa, costs: impl Iterator<Item = CostName> + Clone) -> bool {
        let costs = costs.enumerate().filter(|(_, (.., set))| set.is_within(isa));
        let is_best = |(family, engine, set): CostName| {
            !costs.clone().any(|(_, (other_family, other, better))| {
                (other_family, other) == (family, engine) && better > set
            })
        };
        costs.clone().all(|(at, name)| self.0[at].is_some() || !is_best(name))
    }

    /// Adds a measurement, if the engine has a cost: to that of its instruction set, or else to that of the largest one within, which
    /// choices for this set go by, unless that has one of its own.
    pub(super) fn insert(&mut self, of: &MeasuredRates<'_>, costs: impl Iterator<Item = CostName>) {
        let is_of = |&(_, (family, engine, isa)): &(usize, CostName)| {
            (family, engine) == (of.family.name(), of.engine) && isa.is_within(of.isa)
        };
        let best = costs.enumerate().filter(is_of).max_by_key(|(_, (.., isa))| *isa);
        if let Some((at, (.., isa))) = best
            && (isa == of.isa || self.0[at].is_none())
        {
            let ns = of.mlps.map(|mlps| (1e3 / mlps) as f32);
            // A larger table is not one to measure with, and its ratio only less exact.
            let [ranges, bytes] = [of.ranges, of.bytes].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            self.0[at] = Some(Pace { ranges, bytes, ns });
        }
    }

    /// Returns the faster of two measurements of each.
    pub(super) fn least(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|at| match (self.0[at], other.0[at]) {
            (Some(one), Some(other)) => {
                Some(Pace { ns: core::array::from_fn(|batch| one.ns[batch].min(other.ns[batch])), ..one })
            }
            (one, other) => one.or(other),
        }))
    }

    /// Reads lines that begin with [`RATES`]; `None` if one of them is not whole. Engines without one of these costs are left out.
    pub(super) fn read<'a>(
        lines: impl Iterator<Item = &'a str>,
        costs: impl Iterator<Item = CostName> + Clone,
    ) -> Option<Self> {
        let mut all = Self::NONE;
        for line in lines.filter_map(|line| line.strip_prefix(RATES)) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let &[family, engine, isa, ranges, bytes, ref mlps @ ..] = &fields[..] else { return None };
            let family = self::family(family)?;
            let is_rate = |mlps: &f64| *mlps > 0.0 && *mlps < 1e6;
            let mlps: Vec<f64> = mlps.iter().filter_map(|mlps| mlps.parse().ok()).filter(is_rate).collect();
            let (isa, mlps) = (Isa::from_str(isa).ok()?, mlps.try_into().ok()?);
            let (ranges, bytes) = (ranges.parse().ok()?, bytes.parse().ok()?);
            all.insert(&MeasuredRates { family, engine, isa, ranges, bytes, mlps }, costs.clone());
        }
        Some(all)
    }

    /// Writes the lines that are read.
    pub(super) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        costs: impl Iterator<Item = CostName>,
    ) -> fmt::Result {
        for ((family, engine, isa), pace) in costs.zip(&self.0) {
            let (Some(Pace { ranges, bytes, ns }), Some(family)) = (pace, self::family(family)) else {
                continue;
            };
            let (ranges, bytes, mlps) = (*ranges as usize, *bytes as usize, ns.map(|ns| 1e3 / f64::from(ns)));
            writeln!(f, "{}", MeasuredRates { family, engine, isa, ranges, bytes, mlps })?;
        }
        Ok(())
    }
}

fn family(name: &str) -> Option<Family> {
    [Family::Ipv4, Family::Ipv6].into_iter().find(|family| family.name() == name)
}
