//! The data that lookups read: a hash table a prefix length, and the tree over the lengths.

use fibula::net::Key;
use fibula::unstable::memory::{Budget, Buffer, OutOfMemory};

use super::tree::Tree;

/// What a slot of a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub(super) enum Kind {
    #[default]
    Free,
    /// Nothing but a marker.
    Marker,
    /// A route, which may be a marker too.
    Route,
}

/// A slot of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Entry<K> {
    /// The first bits of addresses, as many as the table has; the rest is zero.
    pub(super) key: K,
    /// The lengths that the marker was made for: bit 0 for the next greater length of the tree.
    pub(super) origins: u64,
    /// Next hop of the longest route that contains the key, of length 1 or more; 0 for none.
    pub(super) best: u32,
    pub(super) kind: Kind,
}

const _: () = assert!(size_of::<Entry<u128>>() == 32);
// 17 bytes and padding: 32-bit x86 aligns words of 64 bits to 4 bytes.
const _: () = assert!(size_of::<Entry<u32>>() == 17_usize.next_multiple_of(align_of::<u64>()));

/// The routes of one length, and the markers of longer ones: open addressing, where an entry is at the place of its hash or, with
/// no free slot between, after it.
#[derive(Debug)]
pub(super) struct Table<K> {
    pub(super) mask: K,
    /// Never full, so that a search ends.
    pub(super) slots: Buffer<Entry<K>>,
    /// Entries that are not free.
    pub(super) used: usize,
    /// Number of routes.
    pub(super) routes: usize,
}

impl<K: Key> Table<K> {
    /// Returns a table without slots, which must get room before it is searched.
    pub(super) fn without_slots(len: u8) -> Self {
        Self { mask: K::mask(len), slots: Buffer::new(), used: 0, routes: 0 }
    }

    /// Returns the slot at which the search for a key begins.
    #[inline(always)]
    pub(super) fn home(&self, key: K) -> usize {
        ((u128::from(hash(key)) * self.slots.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// Returns the slot of a key from `slot` on, or the free slot where the search ends.
    #[inline(always)]
    fn search(&self, key: K, slot: usize) -> usize {
        let mut slot = slot;
        while self.slots[slot].kind != Kind::Free && self.slots[slot].key != key {
            slot = self.after(slot);
        }
        slot
    }

    /// Returns the entry of a key, whose search begins at `slot`.
    #[inline(always)]
    pub(super) fn find_from(&self, key: K, slot: usize) -> Option<&Entry<K>> {
        let entry = &self.slots[self.search(key, slot)];
        (entry.kind != Kind::Free).then_some(entry)
    }

    /// Returns the entry of a key.
    pub(super) fn find(&self, key: K) -> Option<&Entry<K>> {
        self.find_from(key, self.home(key))
    }

    /// Returns the entry of a key, to be changed but for the key.
    pub(super) fn find_mut(&mut self, key: K) -> Option<&mut Entry<K>> {
        let slot = self.search(key, self.home(key));
        Some(&mut self.slots[slot]).filter(|entry| entry.kind != Kind::Free)
    }

    /// Returns the entry of a key, which is made as a marker with this best match if it is not there. There must be room.
    pub(super) fn entry(&mut self, key: K, best: impl FnOnce() -> u32) -> &mut Entry<K> {
        let slot = self.search(key, self.home(key));
        if self.slots[slot].kind == Kind::Free {
            self.used += 1;
            debug_assert!(self.used < self.slots.len());
            self.slots[slot] = Entry { key, origins: 0, best: best(), kind: Kind::Marker };
        }
        &mut self.slots[slot]
    }

    /// Frees the slot of a key, which has one. Entries that were placed after it for want of room move up.
    pub(super) fn remove(&mut self, key: K) {
        let mut free = self.search(key, self.home(key));
        self.used -= 1;
        let mut slot = free;
        loop {
            slot = self.after(slot);
            let entry = self.slots[slot];
            if entry.kind == Kind::Free {
                break;
            }
            // An entry whose search begins after the free slot would not be found there.
            let (home, len) = (self.home(entry.key), self.slots.len());
            let from_home = |slot: usize| if slot < home { slot + len - home } else { slot - home };
            if from_home(free) < from_home(slot) {
                self.slots[free] = entry;
                free = slot;
            }
        }
        self.slots[free] = Entry::default();
    }

    /// Makes room for so many more entries.
    ///
    /// # Errors
    /// When memory runs out; the entries are as they were.
    pub(super) fn reserve(&mut self, more: usize, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let entries = self.used + more;
        // Half is free after a build, and at least three eighths later.
        if !self.slots.is_empty() && (more == 0 || entries * 8 <= self.slots.len() * 5) {
            return Ok(());
        }
        let slots = 2 * entries + 1;
        let mut larger = budget.buffer(slots)?;
        larger.resize(slots, Entry::default());
        let old = core::mem::replace(&mut self.slots, larger);
        for entry in old.iter().filter(|entry| entry.kind != Kind::Free) {
            let slot = self.search(entry.key, self.home(entry.key));
            self.slots[slot] = *entry;
        }
        budget.free(old);
        Ok(())
    }

    /// Returns the entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<K>> {
        self.slots.iter().filter(|entry| entry.kind != Kind::Free)
    }
}

/// Mixes all bits of a key into the highest ones, which choose the slot.
#[inline(always)]
fn hash<K: Key>(key: K) -> u64 {
    let bits = key.to_bits();
    // Two odd constants of many ones and zeros: the golden ratio, and that of SplitMix64's first step.
    let mixed = (bits as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (bits >> 64) as u64;
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Hash tables by prefix length under a tree of the lengths.
#[derive(Debug)]
pub(crate) struct Hbs<K> {
    pub(super) tree: Tree,
    /// A table for each length of the tree, in their order.
    pub(super) tables: Vec<Table<K>>,
    /// Next hop of the route of length 0; 0 for none.
    pub(super) default: u32,
    /// Routes that came or went since the tree was last compared with the best one.
    pub(super) shifted: usize,
    pub(super) budget: Budget,
}
