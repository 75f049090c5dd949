//! The tables that are measured.

use fibula::net::{Family, Key, Route};

use crate::table::{Profile, TableError, TableSpec, generate, hostile};

/// A table to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The name, in records.
    pub name: String,
    /// The family.
    pub family: Family,
    /// Whether it is left out of the fit, to judge it by.
    pub is_held_out: bool,
    /// The hostile table of this name instead of one of the Internet's shape.
    pub hostile: Option<&'static str>,
    /// Its size.
    pub spec: TableSpec,
}

impl Plan {
    /// Generates the table.
    ///
    /// # Errors
    /// If it does not fit the address space.
    pub fn routes<K: Key>(&self) -> Result<Vec<Route<K>>, TableError> {
        match self.hostile.and_then(hostile::find::<K>) {
            Some(table) => (table.generate)(&self.spec),
            None => generate::<K>(&self.spec, &Profile::of::<K>()),
        }
    }
}

/// Numbers of routes: what is fitted, and what is left out. Trees grow by whole levels, so that sizes between two may be
/// unlike both: there are many.
const PLAIN: [&[usize]; 2] = [
    &[
        10, 14, 20, 28, 40, 56, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_000, 20_000, 40_000, 80_000,
        160_000, 320_000, 640_000, 1_000_000,
    ],
    &[15, 30, 60, 300, 3_000, 30_000, 120_000, 450_000, 900_000],
];

/// The same for host routes.
const HOSTS: [&[usize]; 2] = [
    &[10, 20, 40, 80, 160, 640, 2_560, 10_000, 40_000, 160_000, 640_000],
    &[30, 300, 3_000, 25_000, 300_000],
];

/// Routes with more next hops than 16 bits hold, left out of the fit.
const MANY_NEXT_HOPS: [(usize, u32); 2] = [(50_000, 20_000), (200_000, 70_000)];

/// Returns all tables of a family, held out ones last. Those have another seed, so that they are not parts of the others.
#[must_use]
pub fn tables(family: Family) -> Vec<Plan> {
    let plan = |hostile: Option<&'static str>, spec: TableSpec, is_held_out| {
        let kind = hostile.map_or(String::new(), |name| format!("{name}-"));
        let name = format!("{}-{kind}{}-{}", family.name(), spec.routes, spec.next_hops);
        Plan { name, family, is_held_out, hostile, spec }
    };
    let mut all = Vec::new();
    for (held, seed) in [(false, 1), (true, 2)] {
        let spec = |routes: usize| {
            let next_hops = (routes as u32 / 4).clamp(2, 256);
            TableSpec { routes, next_hops, seed }
        };
        let sizes = usize::from(held);
        all.extend(PLAIN[sizes].iter().map(|&routes| plan(None, spec(routes), held)));
        all.extend(HOSTS[sizes].iter().map(|&routes| plan(Some("host-routes"), spec(routes), held)));
    }
    all.extend(
        MANY_NEXT_HOPS.map(|(routes, next_hops)| plan(None, TableSpec { routes, next_hops, seed: 2 }, true)),
    );
    all
}
