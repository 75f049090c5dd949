//! The prefixes that a call has changed, in the order in which structures take them, and the only route of each where it is known.
//!
//! The routes walk to each prefix to change it. Most prefixes have no routes inside them, so that the walk knows the answer
//! of all of their addresses, and the structure needs no second one. That is so only while no other prefix of the call lies
//! inside the prefix or around it: those are looked up in the routes as they are after the call.

use core::cell::Cell;
use core::ops::ControlFlow;

use crate::memory::OutOfMemory;
use crate::net::{Key, NextHop, Prefix, Route, Routes};
use crate::rib::{Rib, Sole};

use super::options::TableError;

/// The bits of a place, below those of a length: a list never has as many prefixes.
const PLACE_BITS: u32 = 56;

/// The changed prefixes, each once and ascending.
#[derive(Debug)]
pub(super) struct ChangedPrefixes<K> {
    prefixes: Vec<Prefix<K>>,
    /// The only route of each prefix, where that is known.
    soles: Vec<Option<Sole>>,
    /// Addresses, and lengths with places in the list below them: the same numbers for both families, so that one sort is compiled.
    order: Vec<(u128, u64)>,
}

impl<K> Default for ChangedPrefixes<K> {
    fn default() -> Self {
        Self { prefixes: Vec::new(), soles: Vec::new(), order: Vec::new() }
    }
}

impl<K: Key> ChangedPrefixes<K> {
    /// Takes prefixes in any order, and the only route of each where it is known. Nothing is known of prefixes past the end of `soles`.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn fill(&mut self, changed: &[Prefix<K>], soles: &[Option<Sole>]) -> Result<(), TableError> {
        self.prefixes.clear();
        self.soles.clear();
        self.order.clear();
        reserve(&mut self.prefixes, changed.len())?;
        reserve(&mut self.soles, changed.len())?;
        reserve(&mut self.order, changed.len())?;
        self.order.extend(
            changed
                .iter()
                .zip(0u64..)
                .map(|(prefix, at)| (prefix.addr().to_bits(), u64::from(prefix.len()) << PLACE_BITS | at)),
        );
        self.order.sort_unstable();
        // The last prefix that no other contains.
        let mut outermost: Option<(usize, Prefix<K>)> = None;
        for &(_, low) in &self.order {
            let at = (low & ((1 << PLACE_BITS) - 1)) as usize;
            let prefix = changed[at];
            let mut sole = soles.get(at).copied().flatten();
            match outermost {
                Some((around, outer)) if outer.covers(prefix) => {
                    // Either change may have come first, and the walk of the first did not see the other.
                    self.soles[around] = None;
                    sole = None;
                    // Once each, because a unit is opened for all prefixes in it and closed when the next one begins.
                    if self.prefixes.last() == Some(&prefix) {
                        continue;
                    }
                }
                _ => outermost = Some((self.prefixes.len(), prefix)),
            }
            self.prefixes.push(prefix);
            self.soles.push(sole);
        }
        Ok(())
    }

    /// Returns the prefixes.
    pub(super) fn prefixes(&self) -> &[Prefix<K>] {
        &self.prefixes
    }

    /// Returns the routes after the call, which answer for changed prefixes without a walk where that is possible.
    pub(super) fn routes<'a>(&'a self, rib: &'a Rib<K>) -> ChangedRoutes<'a, K> {
        ChangedRoutes { rib, changed: self, last: Cell::new(0) }
    }
}

/// The routes of a table after a call.
pub(super) struct ChangedRoutes<'a, K> {
    rib: &'a Rib<K>,
    changed: &'a ChangedPrefixes<K>,
    /// The number of the last changed prefix that was looked for. Structures visit most of them in order.
    last: Cell<usize>,
}

impl<K: Key> ChangedRoutes<'_, K> {
    /// Returns the only route of a prefix, if it is known.
    fn sole(&self, within: Prefix<K>) -> Option<Sole> {
        let ChangedPrefixes { prefixes, soles, .. } = self.changed;
        let last = self.last.get();
        let at = match [last, last + 1].into_iter().find(|&at| prefixes.get(at) == Some(&within)) {
            Some(at) => at,
            None => prefixes.binary_search(&within).ok()?,
        };
        self.last.set(at);
        soles[at]
    }
}

impl<K: Key> Routes<K> for ChangedRoutes<'_, K> {
    fn len(&self) -> usize {
        self.rib.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        Routes::visit(self.rib, within, each)
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.rib.parent(prefix)
    }

    fn sole_answer(&self, within: Prefix<K>) -> Option<Option<NextHop>> {
        self.sole(within).map(|sole| sole.next_hop)
    }

    fn visit_from_parent(
        &self,
        within: Prefix<K>,
        each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.sole(within) {
            Some(Sole { next_hop: Some(next_hop), len }) => {
                each(Route::new(Prefix::of(within.addr(), len), next_hop))
            }
            Some(Sole { next_hop: None, .. }) => ControlFlow::Continue(()),
            None => self.rib.visit_from_parent(within, each),
        }
    }
}

/// Makes room in a list.
pub(super) fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), TableError> {
    list.try_reserve(more).map_err(|_| {
        let wanted_bytes = more.saturating_mul(size_of::<T>());
        TableError::Memory(OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::parts::ranges::{self, Merge};
    use crate::live::tests::{V4, V6};
    use crate::net::Change;
    use crate::random::Random;

    fn answers<K: Key>(routes: &dyn Routes<K>, within: Prefix<K>) -> Vec<(K, Option<NextHop>)> {
        let mut found = Vec::new();
        let _ = ranges::visit(routes, within, Merge::EqualNeighbours, |range| {
            found.push((range.start, range.next_hop));
            ControlFlow::Continue(())
        });
        found
    }

    /// Applies calls of many sizes to a small part of the space. In each, prefixes lie inside others, and some come several times.
    /// Returns for how many changed prefixes of all the routes told the answer.
    fn told<K: Key>(lengths: &[u8], calls: usize) -> [usize; 2] {
        let mut random = Random(11);
        let mut rib = Rib::<K>::default();
        let mut changed = ChangedPrefixes::default();
        let (mut log, mut counts) = (Vec::new(), [0; 2]);
        for call in 0..calls {
            let most = [4, 16, 80][call % 3];
            let mut changes: Vec<Change<K>> =
                (0..1 + random.below(most)).map(|_| random.change(lengths, 3)).collect();
            let again = changes[random.below(changes.len() as u64) as usize].prefix();
            changes
                .extend([Change::Insert(Route::new(again, NextHop::new(1).unwrap())), Change::Remove(again)]);
            changes.truncate(if call % 4 == 0 { 1 } else { changes.len() });
            rib.apply_logged(&changes, &mut log).unwrap();
            let mut prefixes: Vec<_> = changes.iter().map(Change::prefix).collect();
            let soles: Vec<_> = log.iter().map(|before| before.sole).collect();
            changed.fill(&prefixes, &soles).unwrap();
            prefixes.sort_unstable();
            prefixes.dedup();
            assert_eq!(changed.prefixes(), prefixes);
            let routes = changed.routes(&rib);
            // In order, as structures do, and then from the end.
            for &prefix in prefixes.iter().chain(prefixes.iter().rev()) {
                assert_eq!(answers(&routes, prefix), answers(&rib, prefix), "{prefix}, call {call}");
                assert_eq!(routes.parent(prefix), rib.parent(prefix));
                if let Some(answer) = routes.sole_answer(prefix) {
                    assert_eq!(answers(&rib, prefix), [(prefix.addr(), answer)], "{prefix}, call {call}");
                }
            }
            counts[0] += changed.soles.iter().flatten().count();
            counts[1] += prefixes.len();
            changed.fill(&prefixes, &[]).unwrap();
            assert!(changed.soles.iter().all(Option::is_none));
        }
        counts
    }

    #[test]
    fn what_the_routes_tell_is_what_they_answer_after_the_call() {
        for [known, all] in [told::<u32>(V4, 400), told::<u32>(&V4[8..], 400), told::<u128>(V6, 300)] {
            assert!(known > 100 && known < all, "{known} of {all}");
        }
    }
}
