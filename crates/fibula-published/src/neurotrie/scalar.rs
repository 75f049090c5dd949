//! The walk down the trie: one key, and a block of keys step by step.

use fibula::net::{Key, NextHop};
use fibula::unstable::simd;

use super::layout::{LEAF, Neurotrie, node_of};

/// Keys that walk down side by side.
const BLOCK: usize = 128;

impl<K: Key> Neurotrie<K> {
    /// Returns the next hop of the code in an entry.
    #[inline(always)]
    fn next_hop(&self, entry: u32) -> u32 {
        let code = entry & !LEAF;
        self.next_hops.as_ref().map_or(code, |next_hops| next_hops[code as usize])
    }

    /// Looks up one key.
    #[inline(always)]
    pub(super) fn one(&self, key: K) -> Option<NextHop> {
        let (mut entry, mut offset) = (self.root, 0);
        while entry & LEAF == 0 {
            let (first, stride) = node_of(entry);
            entry = self.entries[first + key.window(offset, stride) as usize];
            offset += stride;
        }
        NextHop::new(self.next_hop(entry))
    }

    /// Looks up a batch, each block of it step by step: no key waits for another.
    #[inline(always)]
    pub(super) fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let words = NextHop::words(results);
        if self.root & LEAF != 0 {
            return words.fill(self.next_hop(self.root));
        }
        for (keys, words) in keys.chunks(BLOCK).zip(words.chunks_mut(BLOCK)) {
            self.block(keys, words);
        }
    }

    #[inline(always)]
    fn block(&self, keys: &[K], words: &mut [u32]) {
        // The keys that are still walking, and the entry that each reads next: its number, and the bit of the key that follows.
        let mut walking = [0u8; BLOCK];
        let mut places = [(0usize, 0u8); BLOCK];
        let mut count = keys.len();
        let (first, stride) = node_of(self.root);
        for (at, &key) in keys.iter().enumerate() {
            walking[at] = at as u8;
            places[at] = (first + key.window(0, stride) as usize, stride);
            simd::fetch_past(&self.entries, places[at].0);
        }
        while count > 0 {
            let walkers = core::mem::take(&mut count);
            for index in 0..walkers {
                let number = walking[index];
                let at = usize::from(number);
                let (place, offset) = places[at];
                let entry = self.entries[place];
                // The list is rewritten in place: a key is written at or before the place that it is read from.
                walking[count] = number;
                if entry & LEAF != 0 {
                    words[at] = self.next_hop(entry);
                    continue;
                }
                let (first, stride) = node_of(entry);
                places[at] = (first + keys[at].window(offset, stride) as usize, offset + stride);
                simd::fetch_past(&self.entries, places[at].0);
                count += 1;
            }
        }
    }
}
