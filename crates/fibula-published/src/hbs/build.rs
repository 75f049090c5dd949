//! Routes to tables, in sweeps over the routes in order: lengths, entries, and what these hold.

use fibula::fib::BuildError;
use fibula::net::{Key, Prefix, Route, Routes};
use fibula::unstable::memory::{Budget, Limits, OutOfMemory};

use super::NAME;
use super::layout::{Hbs, Kind, Table};
use super::tree::{LENGTHS, Tree};

impl<K: Key> Hbs<K> {
    /// Builds the tables of the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        Self::try_build(routes, limits).map_err(|error| BuildError::memory(NAME, error))
    }

    fn try_build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, OutOfMemory> {
        let mut budget = Budget::new(limits);
        let mut weights = [0; LENGTHS + 1];
        let mut default = 0;
        each(routes, |route| {
            weights[usize::from(route.prefix.len())] += 1;
            if route.prefix.len() == 0 {
                default = route.next_hop.id();
            }
        });
        let mut tree = Tree::new(K::BITS, &mut budget)?;
        let (weights, count) = of_lengths(weights);
        tree.shape(&weights[..count], &mut budget)?;
        let mut tables = budget.vec(K::BITS.into())?;
        make(routes, &tree, |_| true, &mut tables, &mut budget)?;
        Ok(Self { tree, tables, default, shifted: 0, budget })
    }
}

/// Returns the lengths that occur, without 0, with the numbers of their routes, and how many lengths these are.
pub(super) fn of_lengths(weights: [usize; LENGTHS + 1]) -> ([(u8, usize); LENGTHS], usize) {
    let mut lengths = [(0, 0); LENGTHS];
    let mut count = 0;
    for (len, &routes) in weights.iter().enumerate().skip(1).filter(|&(_, &routes)| routes > 0) {
        lengths[count] = (len as u8, routes);
        count += 1;
    }
    (lengths, count)
}

/// Appends the table of each length of a tree to `tables`, which has room for them: those whose rank is not `wanted` stay
/// without slots.
///
/// # Errors
/// When memory runs out. What was appended is not taken back.
pub(super) fn make<K: Key>(
    routes: &dyn Routes<K>,
    tree: &Tree,
    wanted: impl Fn(usize) -> bool,
    tables: &mut Vec<Table<K>>,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    let entries = entries(routes, tree);
    for (rank, &len) in tree.lens().iter().enumerate() {
        tables.push(Table::without_slots(len));
        if wanted(rank) {
            tables[rank].reserve(entries[rank], budget)?;
        }
    }
    fill(routes, tree, wanted, tables);
    Ok(())
}

/// Returns how many entries the table of each rank has.
fn entries<K: Key>(routes: &dyn Routes<K>, tree: &Tree) -> [usize; LENGTHS] {
    // The first bits of addresses ascend, so that equal ones follow each other.
    let (mut entries, mut last) = ([0; LENGTHS], [K::ZERO; LENGTHS]);
    each(routes, |route| {
        let Ok(rank) = tree.rank(route.prefix.len()) else { return };
        let mut count = |rank: usize| {
            let key = route.prefix.addr().and(K::mask(tree.lens()[rank]));
            if entries[rank] == 0 || last[rank] != key {
                entries[rank] += 1;
                last[rank] = key;
            }
        };
        count(rank);
        tree.marked(rank).for_each(count);
    });
    entries
}

/// Fills tables that have room.
fn fill<K: Key>(
    routes: &dyn Routes<K>,
    tree: &Tree,
    wanted: impl Fn(usize) -> bool,
    tables: &mut [Table<K>],
) {
    let mut covers = Covers::new();
    each(routes, |route| {
        let (addr, len) = (route.prefix.addr(), route.prefix.len());
        covers.push(route);
        let Ok(rank) = tree.rank(len) else { return };
        if wanted(rank) {
            tables[rank].routes += 1;
            let entry = tables[rank].entry(addr, || 0);
            (entry.kind, entry.best) = (Kind::Route, route.next_hop.id());
        }
        for at in tree.marked(rank).filter(|&at| wanted(at)) {
            let (table, len) = (&mut tables[at], tree.lens()[at]);
            table.entry(addr.and(table.mask), || covers.best(len)).origins |= origin(at, rank);
        }
    });
}

/// Returns the bit of a rank in the markers of another one, to the left of it.
pub(super) fn origin(at: usize, rank: usize) -> u64 {
    1 << (rank - at - 1)
}

fn each<K: Key>(routes: &dyn Routes<K>, mut each: impl FnMut(Route<K>)) {
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        each(route);
        core::ops::ControlFlow::Continue(())
    });
}

/// The routes that contain the last one of a sweep, itself included.
pub(super) struct Covers<K> {
    at: K,
    /// Length and next hop of each, the shortest first.
    open: [(u8, u32); LENGTHS + 1],
    count: usize,
}

impl<K: Key> Covers<K> {
    pub(super) fn new() -> Self {
        Self { at: K::ZERO, open: [(0, 0); LENGTHS + 1], count: 0 }
    }

    /// Goes on to the next route.
    pub(super) fn push(&mut self, route: Route<K>) {
        let addr = route.prefix.addr();
        let common = self.at.common_len(addr);
        while self.count > 0 && self.open[self.count - 1].0 > common {
            self.count -= 1;
        }
        self.at = addr;
        self.open[self.count] = (route.prefix.len(), route.next_hop.id());
        self.count += 1;
    }

    /// Returns the next hop of the longest route of at most this length, but not of length 0; 0 for none.
    pub(super) fn best(&self, len: u8) -> u32 {
        let of_length = |&&(open, _): &&(u8, u32)| (1..=len).contains(&open);
        self.open[..self.count].iter().rev().find(of_length).map_or(0, |&(_, next_hop)| next_hop)
    }
}
