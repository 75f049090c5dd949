//! Rates of the engines themselves on a machine, over one table of each family. What a gather or a branch costs differs between
//! processors by more than loads and steps do: a cost is what the model gives, multiplied by how much more the engine took for this table
//! than on the recorded machine.

use core::fmt;
use core::str::FromStr;

use super::machine::MeasuredRates;
use super::model::{self, BATCHES};
use crate::net::Family;
use crate::simd::Isa;

/// Costs that the model has at most.
pub(super) const MOST_COSTS: usize = 40;

/// How a line with rates begins.
pub(super) const RATES: &str = "rates ";

/// What was measured, for each [cost](model::costs) in its order.
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

    /// Returns what was measured of the cost of this number.
    pub(super) fn get(&self, cost: usize) -> Option<&Pace> {
        self.0[cost].as_ref()
    }

    /// Returns whether the best kernels of each engine within a set were measured, and there are any.
    pub(super) fn are_whole(&self, isa: Isa) -> bool {
        let costs = || model::costs().iter().enumerate().filter(|(_, cost)| cost.isa.is_within(isa));
        let is_best = |of: &model::Cost| {
            !costs()
                .any(|(_, cost)| (cost.family, cost.engine) == (of.family, of.engine) && cost.isa > of.isa)
        };
        costs().all(|(at, cost)| self.0[at].is_some() || !is_best(cost))
    }

    /// Adds what was measured of one of these costs, if it is one.
    pub(super) fn insert(&mut self, of: &MeasuredRates<'_>, costs: &[model::Cost]) {
        let is_of = |cost: &model::Cost| {
            cost.family == of.family.name() && cost.engine == of.engine && cost.isa == of.isa
        };
        if let Some(at) = costs.iter().position(is_of) {
            let ns = of.mlps.map(|mlps| (1e3 / mlps) as f32);
            // What is larger is no table to measure with, and only less exact.
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
    pub(super) fn read<'a>(lines: impl Iterator<Item = &'a str>, costs: &[model::Cost]) -> Option<Self> {
        let mut all = Self::NONE;
        for line in lines.filter_map(|line| line.strip_prefix(RATES)) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let &[family, engine, isa, ranges, bytes, ref mlps @ ..] = &fields[..] else { return None };
            let family = self::family(family)?;
            let is_rate = |mlps: &f64| *mlps > 0.0 && *mlps < 1e6;
            let mlps: Vec<f64> = mlps.iter().filter_map(|mlps| mlps.parse().ok()).filter(is_rate).collect();
            let (isa, mlps) = (Isa::from_str(isa).ok()?, mlps.try_into().ok()?);
            let (ranges, bytes) = (ranges.parse().ok()?, bytes.parse().ok()?);
            all.insert(&MeasuredRates { family, engine, isa, ranges, bytes, mlps }, costs);
        }
        Some(all)
    }
}

impl fmt::Display for Paces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            // Nor is the model read, which has a machine itself.
            return Ok(());
        }
        for (cost, pace) in model::costs().iter().zip(&self.0) {
            let Some(Pace { ranges, bytes, ns }) = pace else { continue };
            let (family, engine, isa) = (family(cost.family).ok_or(fmt::Error)?, cost.engine, cost.isa);
            let (ranges, bytes, mlps) = (*ranges as usize, *bytes as usize, ns.map(|ns| 1e3 / f64::from(ns)));
            writeln!(f, "{}", MeasuredRates { family, engine, isa, ranges, bytes, mlps })?;
        }
        Ok(())
    }
}

fn family(name: &str) -> Option<Family> {
    [Family::Ipv4, Family::Ipv6].into_iter().find(|family| family.name() == name)
}
