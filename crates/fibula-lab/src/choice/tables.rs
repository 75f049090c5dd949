//! The tables that are measured.

use fibula::net::{Family, Key, Route};

use fibula_workload::table::{Profile, TableError, TableSpec, generate, hostile};

/// A table to measure.
#[derive(Debug, Clone)]
pub struct TableToMeasure {
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

impl TableToMeasure {
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

/// Numbers of routes, to be fitted and to be left out. Trees grow by whole levels, so that sizes between two may be
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
    &[10, 20, 40, 80, 160, 640, 2_560, 10_000, 40_000, 80_000, 160_000, 320_000, 640_000],
    &[30, 300, 3_000, 25_000, 300_000],
];

/// The same for tables with wide next hops.
const WIDE: [&[usize]; 2] = [
    &[20, 200, 1_000, 2_500, 10_000, 40_000, 80_000, 160_000, 320_000, 640_000],
    &[60, 3_000, 25_000, 200_000, 450_000],
];

/// The same for tables with many next hops, none of them wide.
const MANY: [&[usize]; 2] = [&[2_500, 10_000, 40_000, 160_000, 640_000], &[50_000]];

/// Next hops of those tables.
const MANY_NEXT_HOPS: u32 = 20_000;

/// Next hops of a table with so many routes. Half of the ids below 70,000 are wide; small tables draw too few of them to
/// have a sure share, so nearly all of theirs are.
const fn wide_next_hops(routes: usize) -> u32 {
    if routes < 1_000 { 1 << 20 } else { 70_000 }
}

/// Returns all tables of a family, held out ones last. Those have another seed, so that they are not parts of the others.
#[must_use]
pub fn tables(family: Family) -> Vec<TableToMeasure> {
    let plan = |hostile: Option<&'static str>, spec: TableSpec, is_held_out| {
        let kind = hostile.map_or(String::new(), |name| format!("{name}-"));
        let name = format!("{}-{kind}{}-{}", family.name(), spec.routes, spec.next_hops);
        TableToMeasure { name, family, is_held_out, hostile, spec }
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
        let wide = |routes: usize| TableSpec { next_hops: wide_next_hops(routes), ..spec(routes) };
        all.extend(WIDE[sizes].iter().map(|&routes| plan(None, wide(routes), held)));
        let many = |routes: usize| TableSpec { next_hops: MANY_NEXT_HOPS, ..spec(routes) };
        all.extend(MANY[sizes].iter().map(|&routes| plan(None, many(routes), held)));
    }
    all
}

#[cfg(test)]
mod tests {
    use fibula::auto::{TableKind, Workload};
    use fibula::net::RouteSlice;

    use super::*;

    fn wide_tables<K: Key>() {
        for plan in tables(K::FAMILY).iter().filter(|plan| plan.spec.next_hops >= 1 << 16) {
            let routes = plan.routes::<K>().unwrap();
            let counted = Workload::default().with_table(&RouteSlice::new(&routes).unwrap());
            let (kind, routes) = (counted.kind(), plan.spec.routes);
            let of_size = if routes < 1_000 { TableKind::Wide } else { TableKind::ManyWide };
            // Those between have about as many next hops as are many.
            let is_between = (1_000..5_000).contains(&routes) && kind == TableKind::Wide;
            assert!(kind == of_size || is_between, "{}: {kind}", plan.name);
        }
        for plan in tables(K::FAMILY).iter().filter(|plan| plan.spec.next_hops == MANY_NEXT_HOPS) {
            let routes = plan.routes::<K>().unwrap();
            let counted = Workload::default().with_table(&RouteSlice::new(&routes).unwrap());
            let kind = if plan.spec.routes < 5_000 { TableKind::Plain } else { TableKind::Many };
            assert_eq!(counted.kind(), kind, "{}", plan.name);
        }
    }

    #[test]
    fn tables_with_wide_or_many_next_hops_are_of_their_kind() {
        wide_tables::<u32>();
        wide_tables::<u128>();
    }
}
