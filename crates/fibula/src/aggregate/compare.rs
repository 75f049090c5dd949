//! Whether two tables answer every address alike.

use core::ops::ControlFlow;

use crate::fib::ranges::{self, Merge};
use crate::memory::{Budget, Limits, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};

/// Addresses to which two tables give different answers: one answer each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference<K> {
    /// The first and the last address.
    pub addresses: (K, K),
    /// What each of the tables answers.
    pub answers: [Option<NextHop>; 2],
}

/// Calls `each` for every run of addresses that two tables answer otherwise, in order, until it breaks. `is_same` says which
/// next hops are the same, so that tables with other numbers for the same next hops can be compared.
///
/// Takes one pass over both tables, and 32 bytes at most for each route of the second.
///
/// # Errors
/// When there is no memory for these.
pub fn differences<K: Key>(
    tables: [&dyn Routes<K>; 2],
    is_same: impl Fn([Option<NextHop>; 2]) -> bool,
    mut each: impl FnMut(Difference<K>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, OutOfMemory> {
    let mut others = Vec::new();
    let mut budget = Budget::new(Limits::default());
    ranges::try_for_each(tables[1], Prefix::ALL, Merge::EqualNeighbours, |range| {
        budget.push(&mut others, range)
    })?;
    let (mut other, mut next) = (None, 0);
    // Up to the address before the next range's first.
    let mut run = |answer: Option<NextHop>, start: K, end: K| {
        let mut from = start;
        loop {
            while others.get(next).is_some_and(|range| range.start <= from) {
                other = others[next].next_hop;
                next += 1;
            }
            let to =
                others.get(next).and_then(|range| range.start.previous()).map_or(end, |last| last.min(end));
            let answers = [answer, other];
            if !is_same(answers) {
                each(Difference { addresses: (from, to), answers })?;
            }
            match to.next() {
                Some(after) if to < end => from = after,
                _ => return ControlFlow::Continue(()),
            }
        }
    };
    let mut last: Option<ranges::Range<K>> = None;
    let visited = ranges::visit(tables[0], Prefix::ALL, Merge::EqualNeighbours, |range| {
        match last.replace(range).zip(range.start.previous()) {
            Some((before, end)) => run(before.next_hop, before.start, end),
            None => ControlFlow::Continue(()),
        }
    });
    Ok(match (visited, last) {
        (ControlFlow::Continue(()), Some(range)) => run(range.next_hop, range.start, K::MAX),
        (visited, _) => visited,
    })
}

/// Returns the first addresses that two tables answer otherwise; `None` if the tables are equivalent.
///
/// # Errors
/// As for [`differences`].
pub fn first_difference<K: Key>(
    a: &dyn Routes<K>,
    b: &dyn Routes<K>,
) -> Result<Option<Difference<K>>, OutOfMemory> {
    let mut first = None;
    let each = |difference| {
        first = Some(difference);
        ControlFlow::Break(())
    };
    let _ = differences([a, b], |[a, b]| a == b, each)?;
    Ok(first)
}
