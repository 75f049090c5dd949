//! A table as disjoint ranges of addresses.
//!
//! Structures that search addresses rather than prefixes are built from these ranges (Lampson, Srinivasan and Varghese;
//! DXR section 3.1; PlanB section 3.1). They are made in one pass over the routes in order, with a stack of the routes
//! that contain the current address, at most one for each prefix length.

use core::ops::ControlFlow;

use crate::net::{Key, NextHop, Prefix, Routes};

/// Whether neighbouring ranges with the same next hop are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Neighbours with equal next hops become one range.
    EqualNeighbours,
    /// Every address where a route begins or ends starts a range.
    Never,
}

/// The addresses from `start` to the start of the next range, or to the end of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range<K> {
    /// First address.
    pub start: K,
    /// Their next hop; `None` if no route matches.
    pub next_hop: Option<NextHop>,
}

/// Most routes that contain one address: one for each prefix length.
const OPEN: usize = 129;

/// A route that contains the current address.
#[derive(Debug, Clone, Copy)]
struct OpenRoute<K> {
    last: K,
    next_hop: Option<NextHop>,
}

/// Calls `each` for the ranges of `within` in ascending order, until it breaks. The first range starts at the first
/// address of `within`; there is at least one range, and at most `2n + 1` for `n` routes.
pub fn visit<K: Key>(
    routes: &dyn Routes<K>,
    within: Prefix<K>,
    merge: Merge,
    each: impl FnMut(Range<K>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut sweep = Sweep {
        outside: OpenRoute { last: within.last(), next_hop: None },
        open: None,
        depth: 0,
        pending: Range { start: within.addr(), next_hop: None },
        emitted: None,
        merge,
        each,
    };
    routes.visit_from_parent(within, &mut |route| {
        if route.prefix.len() < within.len() {
            sweep.cover(route.next_hop);
            return ControlFlow::Continue(());
        }
        sweep.begin(route.prefix, route.next_hop)
    })?;
    sweep.finish()
}

/// Like [`visit`], for functions that can fail.
///
/// # Errors
/// The first failure of `each`.
pub fn try_for_each<K: Key, E>(
    routes: &dyn Routes<K>,
    within: Prefix<K>,
    merge: Merge,
    mut each: impl FnMut(Range<K>) -> Result<(), E>,
) -> Result<(), E> {
    let mut outcome = Ok(());
    let _ = visit(routes, within, merge, |range| {
        outcome = each(range);
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome
}

/// Returns a stack that is written whole.
fn stack<K: Copy>(open: OpenRoute<K>) -> [OpenRoute<K>; OPEN] {
    [open; OPEN]
}

struct Sweep<K, F> {
    /// The route that contains all of `within`.
    outside: OpenRoute<K>,
    /// Open routes inside `within`, the outermost first, from index 1 on. Changes of most prefixes find none, and to write
    /// the stack took longer than what is left.
    open: Option<[OpenRoute<K>; OPEN]>,
    /// Index of the innermost open route; 0 for the one outside.
    depth: usize,
    /// The current range; a later event at the same address changes its next hop.
    pending: Range<K>,
    /// Next hop of the last range passed to `each`.
    emitted: Option<Option<NextHop>>,
    merge: Merge,
    each: F,
}

impl<K: Key, F: FnMut(Range<K>) -> ControlFlow<()>> Sweep<K, F> {
    /// Begins with a route that covers all of `within` and more.
    fn cover(&mut self, next_hop: NextHop) {
        self.outside.next_hop = Some(next_hop);
        self.pending.next_hop = Some(next_hop);
    }

    /// Returns the open route of an index.
    fn open(&self, at: usize) -> OpenRoute<K> {
        self.open.as_ref().filter(|_| at > 0).map_or(self.outside, |open| open[at])
    }

    fn begin(&mut self, prefix: Prefix<K>, next_hop: NextHop) -> ControlFlow<()> {
        self.end_before(prefix.addr())?;
        let next_hop = Some(next_hop);
        // A route for all of `within` is outside, so that the stack has room for one of each length.
        if self.depth == 0 && prefix.last() == self.outside.last && prefix.addr() == self.pending.start {
            self.outside.next_hop = next_hop;
        } else {
            self.depth += 1;
            let innermost = OpenRoute { last: prefix.last(), next_hop };
            self.open.get_or_insert_with(|| stack(innermost))[self.depth] = innermost;
        }
        self.change(prefix.addr(), next_hop)
    }

    /// Ends the open routes that do not reach `addr`.
    fn end_before(&mut self, addr: K) -> ControlFlow<()> {
        while self.depth > 0 && self.open(self.depth).last < addr {
            self.end_innermost()?;
        }
        ControlFlow::Continue(())
    }

    fn end_innermost(&mut self) -> ControlFlow<()> {
        let ended = self.open(self.depth);
        self.depth -= 1;
        let below = self.open(self.depth);
        // If the covering route ends at the same address, its own end decides.
        match ended.last.next() {
            Some(start) if ended.last < below.last => self.change(start, below.next_hop),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Begins a range at `start`.
    fn change(&mut self, start: K, next_hop: Option<NextHop>) -> ControlFlow<()> {
        if start != self.pending.start {
            self.emit()?;
            self.pending.start = start;
        }
        self.pending.next_hop = next_hop;
        ControlFlow::Continue(())
    }

    fn emit(&mut self) -> ControlFlow<()> {
        if self.merge == Merge::EqualNeighbours && self.emitted == Some(self.pending.next_hop) {
            return ControlFlow::Continue(());
        }
        self.emitted = Some(self.pending.next_hop);
        (self.each)(self.pending)
    }

    fn finish(&mut self) -> ControlFlow<()> {
        while self.depth > 0 {
            self.end_innermost()?;
        }
        self.emit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Route, RouteSlice, Toy};

    fn ranges(table: &[(&str, u32)], within: &str, merge: Merge) -> Vec<(u128, u32)> {
        let prefix = |text: &str| text.parse::<Prefix<Toy<8>>>().unwrap();
        let routes: Vec<_> =
            table.iter().map(|&(text, id)| Route::new(prefix(text), NextHop::new(id).unwrap())).collect();
        let mut found = Vec::new();
        let _ = visit(&RouteSlice::new(&routes).unwrap(), prefix(within), merge, |range| {
            found.push((range.start.to_bits(), NextHop::word(range.next_hop)));
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn nested_routes_return_to_their_cover() {
        let table = [("64/2", 1), ("64/4", 2), ("68/6", 3), ("76/6", 3)];
        assert_eq!(
            ranges(&table, "0/0", Merge::EqualNeighbours),
            [(0, 0), (64, 2), (68, 3), (72, 2), (76, 3), (80, 1), (128, 0)]
        );
    }

    #[test]
    fn equal_neighbours_merge_only_on_request() {
        let table = [("0/1", 1), ("64/2", 1), ("128/1", 1)];
        assert_eq!(ranges(&table, "0/0", Merge::EqualNeighbours), [(0, 1)]);
        assert_eq!(ranges(&table, "0/0", Merge::Never), [(0, 1), (64, 1), (128, 1)]);
    }

    #[test]
    fn the_edges_of_the_space_do_not_wrap() {
        assert_eq!(ranges(&[("255/8", 7)], "0/0", Merge::Never), [(0, 0), (255, 7)]);
        assert_eq!(ranges(&[("0/8", 7)], "0/0", Merge::Never), [(0, 7), (1, 0)]);
        assert_eq!(ranges(&[("0/0", 7)], "0/0", Merge::Never), [(0, 7)]);
        assert_eq!(ranges(&[], "0/0", Merge::Never), [(0, 0)]);
    }

    #[test]
    fn a_part_of_the_space_begins_with_its_cover() {
        let table = [("0/0", 9), ("64/2", 1), ("64/4", 2), ("96/3", 4)];
        assert_eq!(ranges(&table, "64/2", Merge::Never), [(64, 2), (80, 1), (96, 4)]);
        assert_eq!(ranges(&table, "72/5", Merge::Never), [(72, 2)]);
        assert_eq!(ranges(&table, "192/2", Merge::Never), [(192, 9)]);
    }

    #[test]
    fn the_deepest_nesting_fits() {
        let routes: Vec<_> = (0..=128)
            .map(|len| {
                Route::new(Prefix::<u128>::of(u128::MAX, len), NextHop::new(u32::from(len) + 1).unwrap())
            })
            .collect();
        let mut count = 0;
        let _ = visit(&RouteSlice::new(&routes).unwrap(), Prefix::ALL, Merge::Never, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(count, 129);
    }
}
