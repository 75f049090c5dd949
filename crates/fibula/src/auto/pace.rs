//! Rates of the engines themselves on a machine, over one table of each family. What a gather or a branch costs differs between
//! processors by more than loads and steps do: a lookup's cost there is what the model expects, multiplied by what it was off for
//! this table.

use core::fmt;
use core::str::FromStr;

use super::machine::MeasuredRates;
use super::model::{self, BATCHES};
use crate::net::Family;
use crate::simd::Isa;

/// Costs that the model has at most.
pub(super) const MOST_COSTS: usize = 32;

/// How far a measurement can move a cost: beyond, something else was at work.
const MOST: f64 = 4.0;

/// What was measured, for each [cost](model::costs) in its order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paces([Option<Pace>; MOST_COSTS]);

/// The times of lookups by one engine with one set, and the table that they were of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    pub(super) ranges: u32,
    pub(super) bytes: u32,
    /// Nanoseconds of a lookup, by batch.
    ns: [f32; BATCHES.len()],
}

impl Pace {
    /// Returns what an expected time of this batch is to be multiplied by.
    pub(super) fn ratio(&self, batch: usize, expected_ns: f64) -> f64 {
        (f64::from(self.ns[batch]) / expected_ns).clamp(1.0 / MOST, MOST)
    }
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

    pub(super) fn insert(&mut self, of: &MeasuredRates<'_>) {
        let is_of = |cost: &model::Cost| {
            cost.family == of.family.name() && cost.engine == of.engine && cost.isa == of.isa
        };
        if let Some(at) = model::costs().iter().position(is_of) {
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

    /// Reads the lines that begin with `rates`; `None` if one of them is not whole. Engines that the model does not have are left
    /// out.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut all = Self::NONE;
        for line in text.lines().filter_map(|line| line.strip_prefix("rates ")) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let &[family, engine, isa, ranges, bytes, ref mlps @ ..] = &fields[..] else { return None };
            let family = [Family::Ipv4, Family::Ipv6].into_iter().find(|named| named.name() == family)?;
            let is_rate = |mlps: &f64| *mlps > 0.0 && *mlps < 1e6;
            let mlps: Vec<f64> = mlps.iter().filter_map(|mlps| mlps.parse().ok()).filter(is_rate).collect();
            let (isa, mlps) = (Isa::from_str(isa).ok()?, mlps.try_into().ok()?);
            let (ranges, bytes) = (ranges.parse().ok()?, bytes.parse().ok()?);
            all.insert(&MeasuredRates { family, engine, isa, ranges, bytes, mlps });
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
            write!(f, "rates {} {} {} {ranges} {bytes}", cost.family, cost.engine, cost.isa)?;
            ns.iter().try_for_each(|ns| write!(f, " {:.1}", 1e3 / ns))?;
            writeln!(f)?;
        }
        Ok(())
    }
}
