//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::layout::{Multibit, ROOT, Slot};

impl<K: Key> Multibit<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let all = self.slots.len() >> self.stride;
        holds(self.lens.len() == self.slots.len(), "(4) a slot has a length", self.lens.len())?;
        let mut stack = vec![(ROOT, 0)];
        let mut reached = 0;
        while let Some((node, level)) = stack.pop() {
            let index = node as usize;
            holds(index < all, "(2) a node exists", index)?;
            reached += 1;
            holds(reached <= all, "(2) a node is reachable once", index)?;
            holds(
                level * self.stride < u32::from(K::BITS),
                "(3) a node begins before the end of the key",
                index,
            )?;
            let slots = &self.slots[index << self.stride..(index + 1) << self.stride];
            let leads = slots.iter().any(|slot| *slot != Slot::default());
            holds(node == ROOT || leads, "(1) every node leads to a route", index)?;
            self.check_lens(node)?;
            let below = slots.iter().filter(|slot| slot.node != ROOT);
            stack.extend(below.map(|slot| (slot.node, level + 1)));
        }
        // The bound ends the walk of a free chain that is a circle.
        let (mut free, mut node) = (0, self.free);
        while node != ROOT && free <= self.free_len {
            free += 1;
            let first = self.slots.get((node as usize) << self.stride);
            node = first.ok_or(CheckError::new("(2) a free node exists", node as usize))?.node;
        }
        holds(free == self.free_len, "(2) the free chain has the recorded length", free)?;
        holds(reached + free == all, "(2) every node is in the trie or free", reached)
    }

    /// Checks the prefixes of a node.
    fn check_lens(&self, node: u32) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let (begin, count) = ((node as usize) << self.stride, 1 << self.stride);
        let (slots, lens) = (&self.slots[begin..begin + count], &self.lens[begin..begin + count]);
        let shortest = if node == ROOT { 1 } else { 2 };
        for (number, (slot, &len)) in slots.iter().zip(lens).enumerate() {
            let at = begin + number;
            holds((slot.next_hop == 0) == (len == 0), "(4) a next hop has a length", at)?;
            if len == 0 {
                continue;
            }
            let is_within = len >= shortest && u32::from(len) <= self.stride + 1;
            holds(is_within, "(4) a prefix ends in its node", at)?;
            let expanded = 1 << (self.stride + 1 - u32::from(len));
            let first = number & !(expanded - 1);
            if lens[first..number].contains(&len) {
                // The first slot of this prefix was compared with the others.
                let earlier = (first..number).rev().find(|&slot| lens[slot] == len);
                let same = earlier.is_none_or(|earlier| slots[earlier].next_hop == slot.next_hop);
                holds(same, "(5) a prefix has one next hop", at)?;
                continue;
            }
            let longest = lens[first..first + expanded].iter().all(|&other| other >= len);
            holds(longest, "(5) a prefix has all slots without a longer one", at)?;
        }
        Ok(())
    }
}
