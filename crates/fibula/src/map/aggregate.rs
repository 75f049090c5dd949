//! Fewer prefixes with the same answers, by local merges.

use crate::net::{Key, NextHop, Prefix, Route};

use super::prefix_map::{PrefixMap, refused};

impl<K: Key, V: PartialEq> PrefixMap<K, V> {
    /// Merges prefixes with equal values where no address gets another value by it. Returns how many prefixes fewer there are.
    ///
    /// - Two halves of a block with equal values become the block, also where the block had a value, which no address got.
    /// - A prefix whose value the next shorter one has too is removed.
    ///
    /// [`lookup`](Self::lookup) answers as before for every address; `get`, `lookup_prefix` and `covers` see fewer prefixes.
    /// The result is not always the smallest map with these answers. Compares each value a few times, and allocates a list
    /// of the prefixes.
    pub fn aggregate(&mut self) -> usize {
        let before = self.len();
        self.merge_halves();
        self.remove_repeated();
        before - self.len()
    }

    /// Merges halves, the longest first, because a block that came of a merge may itself be half of a larger block.
    fn merge_halves(&mut self) {
        // By length. The lower half stands for its pair, so that no pair is looked at twice.
        let mut lower: Vec<Vec<Prefix<K>>> = vec![Vec::new(); usize::from(K::BITS) + 1];
        for prefix in self.keys() {
            if is_lower_half(prefix) {
                lower[usize::from(prefix.len())].push(prefix);
            }
        }
        // From the longest on, because a block that a pair becomes may be half of a pair itself.
        for len in (1..=K::BITS).rev() {
            for half in core::mem::take(&mut lower[usize::from(len)]) {
                let block = Prefix::of(half.addr(), len - 1);
                // A block that had a value is in the list twice, which changes nothing.
                if self.merge(half, block) && is_lower_half(block) {
                    lower[usize::from(len - 1)].push(block);
                }
            }
        }
    }

    /// Puts the value of two halves into their block, if both have it. Needs no memory.
    fn merge(&mut self, half: Prefix<K>, block: Prefix<K>) -> bool {
        let Some((_, upper)) = block.halves() else { return false };
        let (Some(low), Some(high)) = (self.rib.get(half), self.rib.get(upper)) else { return false };
        // Values are compared, not numbers, because each prefix has a slot of its own.
        if self.values.get(low) != self.values.get(high) {
            return false;
        }
        // This cannot run out of memory: the tree has a node for the block already, because both of its sides have prefixes.
        match self.rib.insert(Route::new(block, low)) {
            Ok(old) => drop(old.map(|old| self.values.take(old))),
            Err(error) => refused(&error),
        }
        // The slot of the lower half belongs to the block now, so only the route of the half goes. The upper half
        // takes its value along.
        self.rib.remove(half);
        self.remove(upper);
        true
    }

    /// Removes each prefix that has the value of the one around it.
    fn remove_repeated(&mut self) {
        let mut around: Vec<(Prefix<K>, NextHop)> = Vec::new();
        let mut repeated = Vec::new();
        for route in self.rib.iter() {
            while around.last().is_some_and(|(prefix, _)| !prefix.covers(route.prefix)) {
                around.pop();
            }
            let value = self.values.get(route.next_hop);
            // The prefix is not pushed: prefixes inside it then have the value around it, which is equal.
            if around.last().is_some_and(|&(_, at)| self.values.get(at) == value) {
                repeated.push(route.prefix);
            } else {
                around.push((route.prefix, route.next_hop));
            }
        }
        for prefix in repeated {
            self.remove(prefix);
        }
    }
}

fn is_lower_half<K: Key>(prefix: Prefix<K>) -> bool {
    prefix.len().checked_sub(1).is_some_and(|last| !prefix.addr().bit(last))
}
