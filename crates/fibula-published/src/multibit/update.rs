//! Changes in place: ways grown, slots set, empty ways pruned.

use core::ops::ControlFlow;

use fibula::fib::{Applied, BuildError, Updatable};
use fibula::net::{Change, Key, Prefix, Routes};
use fibula::unstable::memory::OutOfMemory;

use super::NAME;
use super::layout::{Multibit, ROOT, Slot};

/// Most levels, and one: the numbers of an IPv6 key's nodes, one bit a level.
const WAY: usize = 129;

/// Where a prefix ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The level of its node: 0 for the root.
    pub(super) level: usize,
    /// Bits of the key before the node.
    pub(super) offset: u32,
    /// One more than the bits of the prefix in the node, as `lens` has it.
    pub(super) reach: u8,
}

/// Returns where a prefix ends. One that ends with a level is in that level's node, and a default route in the root.
pub(super) fn place<K: Key>(prefix: Prefix<K>, stride: u32) -> Place {
    let len = u32::from(prefix.len());
    let level = len.saturating_sub(1) / stride;
    let offset = level * stride;
    Place { level: level as usize, offset, reach: (len - offset + 1) as u8 }
}

impl<K: Key> Updatable<K> for Multibit<K> {
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        // Room for the whole batch first: a batch that does not fit changes nothing. A node that one change of the batch frees
        // and another needs again is not counted: all nodes on the way are present ones or counted ones.
        let inserted = |change: &&Change<K>| matches!(change, Change::Insert(_));
        let wanted = changes.iter().filter(inserted).map(|change| self.missing(change.prefix())).sum();
        self.reserve(wanted)?;
        for change in changes {
            self.follow(change.prefix(), after);
        }
        Ok(Applied::InPlace)
    }
}

impl<K: Key> Multibit<K> {
    /// Makes the slots of a prefix what they are with these routes. The order of such calls does not matter: a slot has what
    /// its longest changed prefix says, or a longer one that did not change.
    fn follow(&mut self, prefix: Prefix<K>, after: &dyn Routes<K>) {
        let place = place(prefix, self.stride);
        let mut own = None;
        let _ = after.visit(prefix, &mut |route| {
            own = Some(route).filter(|route| route.prefix == prefix);
            ControlFlow::Break(())
        });
        if let Some(route) = own {
            let node = self.grow(prefix);
            self.expand(node, prefix, place, place.reach, route.next_hop.id());
            return;
        }
        let mut way = [ROOT; WAY];
        if !self.walk_to(prefix, place.level, &mut way) {
            return;
        }
        // The next longer prefix that ends in this node, if there is one.
        let is_here = |len: u8| u32::from(len) > place.offset || place.offset == 0;
        let (reach, next_hop) = match after.parent(prefix).filter(|route| is_here(route.prefix.len())) {
            Some(route) => ((u32::from(route.prefix.len()) - place.offset + 1) as u8, route.next_hop.id()),
            None => (0, 0),
        };
        self.expand(way[place.level], prefix, place, reach, next_hop);
        self.prune(prefix, &way[..=place.level]);
    }

    /// Gives the slots of a prefix this next hop, of a prefix that reaches as far as `reach` says, unless a longer one has them.
    pub(super) fn expand(&mut self, node: u32, prefix: Prefix<K>, place: Place, reach: u8, next_hop: u32) {
        let first = self.at(node, prefix.addr(), place.offset);
        let count = 1 << (self.stride + 1 - u32::from(place.reach));
        for at in first..first + count {
            if self.lens[at] <= place.reach {
                self.lens[at] = reach;
                self.slots[at] = Slot { next_hop, ..self.slots[at] };
            }
        }
    }

    /// Notes the nodes on the way to a level. Returns whether they all exist.
    fn walk_to(&self, prefix: Prefix<K>, level: usize, way: &mut [u32; WAY]) -> bool {
        for above in 0..level {
            let at = self.at(way[above], prefix.addr(), above as u32 * self.stride);
            way[above + 1] = self.slots[at].node;
            if way[above + 1] == ROOT {
                return false;
            }
        }
        true
    }

    /// Returns how many nodes are missing on the way to a prefix.
    fn missing(&self, prefix: Prefix<K>) -> usize {
        let level = place(prefix, self.stride).level;
        let mut node = ROOT;
        for above in 0..level {
            node = self.slots[self.at(node, prefix.addr(), above as u32 * self.stride)].node;
            if node == ROOT {
                return level - above;
            }
        }
        0
    }

    /// Makes room for `wanted` nodes, the free ones included.
    pub(super) fn reserve(&mut self, wanted: usize) -> Result<(), BuildError> {
        let fresh = wanted.saturating_sub(self.free_len);
        let nodes = (self.slots.len() >> self.stride).saturating_add(fresh);
        if nodes > u32::MAX as usize {
            return Err(BuildError::limit(NAME, "nodes", u32::MAX.into(), nodes as u64));
        }
        let refused = |error: OutOfMemory| BuildError::memory(NAME, error);
        let slots = fresh.checked_shl(self.stride).filter(|slots| slots >> self.stride == fresh);
        let slots = slots.unwrap_or(usize::MAX);
        self.budget.reserve(&mut self.slots, slots).map_err(refused)?;
        self.budget.reserve(&mut self.lens, slots).map_err(refused)
    }

    /// Returns the node of a prefix, and makes what is missing on the way to it.
    fn grow(&mut self, prefix: Prefix<K>) -> u32 {
        let mut node = ROOT;
        for above in 0..place(prefix, self.stride).level {
            let at = self.at(node, prefix.addr(), above as u32 * self.stride);
            node = self.slots[at].node;
            if node == ROOT {
                node = self.add();
                self.slots[at] = Slot { node, ..self.slots[at] };
            }
        }
        node
    }

    /// Returns a new empty node, for which [`reserve`](Self::reserve) has made room.
    pub(super) fn add(&mut self) -> u32 {
        if self.free == ROOT {
            let node = self.slots.len() >> self.stride;
            let end = (node + 1) << self.stride;
            debug_assert!(end <= self.slots.capacity() && end <= self.lens.capacity());
            self.slots.resize(end, Slot::default());
            self.lens.resize(end, 0);
            return node as u32;
        }
        let node = self.free;
        let first = &mut self.slots[(node as usize) << self.stride];
        self.free = first.node;
        *first = Slot::default();
        self.free_len -= 1;
        node
    }

    /// Frees the last nodes of the way to a prefix as far as they are empty.
    fn prune(&mut self, prefix: Prefix<K>, way: &[u32]) {
        for level in (1..way.len()).rev() {
            let first = (way[level] as usize) << self.stride;
            let slots = &mut self.slots[first..first + (1 << self.stride)];
            if slots.iter().any(|slot| *slot != Slot::default()) {
                return;
            }
            slots[0].node = self.free;
            self.free = way[level];
            self.free_len += 1;
            let above = self.at(way[level - 1], prefix.addr(), (level as u32 - 1) * self.stride);
            self.slots[above].node = ROOT;
        }
    }
}
