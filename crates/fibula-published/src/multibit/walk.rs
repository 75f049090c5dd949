//! Lookups: one key at a time, and batches side by side.

use fibula::net::{Key, NextHop};

use super::layout::{Multibit, ROOT};

/// Keys side by side.
const LANES: usize = 32;

impl<K: Key> Multibit<K> {
    #[inline(always)]
    pub(super) fn find(&self, key: K) -> Option<NextHop> {
        let (mut node, mut best, mut offset) = (ROOT, 0, 0);
        loop {
            let slot = self.slots[self.at(node, key, offset)];
            if slot.next_hop != 0 {
                best = slot.next_hop;
            }
            if slot.node == ROOT {
                return NextHop::new(best);
            }
            node = slot.node;
            offset += self.stride;
        }
    }

    pub(super) fn find_all(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        for (keys, results) in keys.chunks(LANES).zip(results.chunks_mut(LANES)) {
            self.find_block(keys, results);
        }
    }

    fn find_block(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let mut nodes = [ROOT; LANES];
        let mut best = [0; LANES];
        let mut going = core::array::from_fn::<u8, LANES, _>(|lane| lane as u8);
        let (mut count, mut offset) = (keys.len(), 0);
        while count > 0 {
            let mut left = 0;
            for number in 0..count {
                let lane = usize::from(going[number]);
                let slot = self.slots[self.at(nodes[lane], keys[lane], offset)];
                best[lane] = if slot.next_hop == 0 { best[lane] } else { slot.next_hop };
                nodes[lane] = slot.node;
                going[left] = lane as u8;
                left += usize::from(slot.node != ROOT);
            }
            count = left;
            offset += self.stride;
        }
        for (result, &best) in results.iter_mut().zip(&best) {
            *result = NextHop::new(best);
        }
    }
}
