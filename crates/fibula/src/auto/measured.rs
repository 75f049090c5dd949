//! The measurements in `measured.csv`.
//!
//! `cargo run --release -p fibula-lab --example choices` makes the file from the benchmark records. It is read once.

use std::sync::LazyLock;

use crate::net::Key;
use crate::simd::Isa;

use super::Workload;

/// One structure with one instruction set and batch length, over tables of one kind.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) family: &'static str,
    pub(super) hosts: bool,
    pub(super) isa: Isa,
    pub(super) batch: usize,
    pub(super) algorithm: &'static str,
    /// Ascending by routes.
    pub(super) points: Vec<Point>,
}

/// One measured table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) routes: f64,
    pub(super) bytes: f64,
    pub(super) mlps: f64,
}

impl Curve {
    /// Returns whether this was measured for such a workload.
    pub(super) fn serves<K: Key>(&self, wanted: &Workload) -> bool {
        self.family == K::FAMILY.name()
            && self.hosts == wanted.is_mostly_hosts()
            && self.isa.is_within(wanted.isa)
            && self.batch <= wanted.batch.max(1)
    }

    /// Returns the million lookups a second over this many routes.
    pub(super) fn mlps(&self, routes: f64) -> f64 {
        self.between(routes, |point| point.mlps)
    }

    /// Returns the lookup bytes of this many routes; they are proportional above the largest measured table.
    pub(super) fn bytes(&self, routes: f64) -> f64 {
        let last = self.points[self.points.len() - 1];
        self.between(routes, |point| point.bytes) * (routes / last.routes).max(1.0)
    }

    /// Interpolates between the neighbouring tables, logarithm over logarithm.
    fn between(&self, routes: f64, figure: impl Fn(&Point) -> f64) -> f64 {
        let above = self.points.partition_point(|point| point.routes < routes);
        let high = &self.points[above.min(self.points.len() - 1)];
        let low = &self.points[above.saturating_sub(1)];
        if high.routes <= low.routes {
            return figure(low);
        }
        let share = (routes / low.routes).ln() / (high.routes / low.routes).ln();
        (figure(low).ln() * (1.0 - share) + figure(high).ln() * share).exp()
    }
}

/// Returns all curves.
pub(super) fn curves() -> &'static [Curve] {
    &MEASURED.curves
}

/// Returns the size of a core's second-level cache on the measured machine.
pub(super) fn l2_bytes() -> usize {
    MEASURED.l2_bytes
}

struct Measured {
    l2_bytes: usize,
    curves: Vec<Curve>,
}

static MEASURED: LazyLock<Measured> =
    LazyLock::new(|| read(include_str!("measured.csv")).expect("the file is generated"));

/// Returns `None` for text that the generator would not write.
fn read(text: &'static str) -> Option<Measured> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let l2_bytes = lines.next()?.strip_prefix("l2_bytes,")?.parse().ok()?;
    let mut curves: Vec<Curve> = Vec::new();
    for line in lines.skip(1) {
        let [family, hosts, isa, batch, algorithm, routes, bytes, mlps] =
            line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let curve = Curve {
            family,
            hosts: hosts == "hosts",
            isa: isa.parse().ok()?,
            batch: batch.parse().ok()?,
            algorithm,
            points: Vec::new(),
        };
        let point =
            Point { routes: routes.parse().ok()?, bytes: bytes.parse().ok()?, mlps: mlps.parse().ok()? };
        match curves.last_mut().filter(|last| last.is_of(&curve)) {
            Some(last) => last.points.push(point),
            None => curves.push(Curve { points: vec![point], ..curve }),
        }
    }
    Some(Measured { l2_bytes, curves })
}

impl Curve {
    fn is_of(&self, other: &Self) -> bool {
        (self.family, self.hosts, self.isa, self.batch, self.algorithm)
            == (other.family, other.hosts, other.isa, other.batch, other.algorithm)
    }
}
