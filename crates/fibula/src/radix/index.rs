//! A table of the nodes at one depth, where walks for longer prefixes begin.
//!
//! ```text
//!             base    directory      block
//! IPv4        /0      0 bits         12 to 18 bits         one block for all addresses
//! IPv6        /3      13 bits        10 bits               a block for each /16 that has nodes of /16 to /26
//!
//! directory[bits after the base] -> block      none if there are no more blocks: walks begin at the root
//! slots[block, bits after that]  -> the longest node that contains these addresses,
//!                                   and the longest of those with a route, which walks would have met
//! ```
//!
//! The default route is not noted: the root stands for it, so that no slot changes with it. A tree of `n` bytes has at most
//! `n / 8` bytes of slots. There are none while the tree is small, or if there is no memory for them.

use crate::memory::{self, Budget, Buffer, Memory, OutOfMemory};
use crate::net::{Key, KeyKind, Prefix};

use super::preorder::Preorder;
use super::{ROOT, RadixNode};

/// Bytes of nodes for a byte of slots.
const SHARE: usize = 8;
/// With fewer slots, the whole tree fits into the cache.
const LEAST_SLOTS: usize = 1 << 12;
/// Most slots: 2 MB.
const MOST_SLOTS: usize = 1 << 18;
/// A directory entry without a block.
const NONE: u16 = u16::MAX;

/// Where walks begin for addresses that share the first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexSlot {
    /// The longest node that contains the slot.
    pub(super) node: u32,
    /// The longest of those that has a route, or the root.
    pub(super) cover: u32,
}

/// How an address leads to its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexShape<K> {
    base: Prefix<K>,
    /// Bits after the base that number an entry of the directory.
    directory: u8,
    /// Bits after those, that number a slot of a block.
    block: u8,
    /// Blocks there is room for.
    blocks: usize,
}

/// The slots, or none.
#[derive(Debug)]
pub(super) struct Index<K> {
    directory: Vec<u16>,
    slots: Buffer<IndexSlot>,
    shape: IndexShape<K>,
    /// Length of the slots as prefixes; `u8::MAX` if there are none, which no prefix is longer than.
    len: u8,
}

impl<K: Key> Clone for Index<K> {
    fn clone(&self) -> Self {
        let (directory, slots) = (self.directory.clone(), self.slots.clone());
        // A copy has no room after its last block. When the tree grows, it gets as many as fit.
        let shape = IndexShape { blocks: slots.len() >> self.shape.block, ..self.shape };
        Self { directory, slots, shape, len: self.len }
    }
}

impl<K: Key> Index<K> {
    pub(super) const fn new() -> Self {
        let shape = IndexShape { base: Prefix::ALL, directory: 0, block: 0, blocks: 0 };
        Self { directory: Vec::new(), slots: Buffer::new(), shape, len: u8::MAX }
    }

    /// Returns the number of the slot where a walk to a prefix of this length begins.
    #[inline]
    fn slot(&self, key: K, len: u8) -> Option<usize> {
        if len <= self.len || !self.shape.base.contains(key) {
            return None;
        }
        let block = self.block(key)?;
        Some((block << self.shape.block) + key.window(self.len - self.shape.block, self.shape.block) as usize)
    }

    /// Returns the number of the block of an address inside the base.
    #[inline]
    fn block(&self, key: K) -> Option<usize> {
        let at = key.window(self.shape.base.len(), self.shape.directory) as usize;
        Some(self.directory[at]).filter(|&block| block != NONE).map(usize::from)
    }

    /// Returns the slot where a walk to a prefix of this length begins; none if it begins at the root.
    #[inline]
    pub(super) fn start(&self, key: K, len: u8) -> Option<IndexSlot> {
        self.slot(key, len).map(|at| self.slots[at])
    }

    /// Prefetches what [`start`](Self::start) reads.
    #[inline]
    pub(super) fn fetch(&self, key: K, len: u8) {
        if let Some(at) = self.slot(key, len) {
            crate::simd::fetch_at(&self.slots, at);
        }
    }

    /// Returns whether nodes of this length are in slots.
    #[inline]
    pub(super) fn has(&self, len: u8) -> bool {
        self.len != u8::MAX && len <= self.len
    }

    pub(super) fn memory(&self) -> Memory {
        memory::of(&self.slots) + memory::of(&self.directory)
    }

    /// Returns the part of the directory that a node of this prefix needs a block for, and has none yet.
    #[inline]
    pub(super) fn missing_block(&self, prefix: Prefix<K>) -> Option<Prefix<K>> {
        if !self.has(prefix.len()) || self.slots.len() >> self.shape.block == self.shape.blocks {
            return None;
        }
        let len = self.shape.base.len() + self.shape.directory;
        let needs = prefix.len() >= len && self.shape.base.contains(prefix.addr());
        (needs && self.block(prefix.addr()).is_none()).then(|| Prefix::of(prefix.addr(), len))
    }

    /// Takes a block for a part of the directory which had none, and in which no node is.
    pub(super) fn add_block(&mut self, part: Prefix<K>, above: IndexSlot) {
        let block = self.slots.len() >> self.shape.block;
        let at = part.addr().window(self.shape.base.len(), self.shape.directory) as usize;
        self.directory[at] = block as u16;
        self.slots.resize((block + 1) << self.shape.block, above);
    }

    /// Puts a node into the slots of `prefix`, its own, in the place of another.
    #[inline]
    pub(super) fn replace_node(&mut self, prefix: Prefix<K>, old: u32, new: u32) {
        self.each_within(prefix, |slot| {
            if slot.node == old {
                slot.node = new;
            }
        });
    }

    /// Puts a node with a route into the slots of `prefix`, its own, in the place of another.
    #[inline]
    pub(super) fn replace_cover(&mut self, prefix: Prefix<K>, old: u32, new: u32) {
        self.each_within(prefix, |slot| {
            if slot.cover == old {
                slot.cover = new;
            }
        });
    }

    /// Calls `each` for the slots of a prefix.
    #[inline]
    fn each_within(&mut self, prefix: Prefix<K>, each: impl FnMut(&mut IndexSlot)) {
        if self.has(prefix.len()) && self.shape.base.overlaps(prefix) {
            self.each_of(prefix, each);
        }
    }

    fn each_of(&mut self, prefix: Prefix<K>, mut each: impl FnMut(&mut IndexSlot)) {
        let IndexShape { base, directory, block: bits, .. } = self.shape;
        let parts = base.len() + directory;
        if let Some(below) = prefix.len().checked_sub(parts) {
            if let Some(block) = self.block(prefix.addr()) {
                let first = (block << bits) + prefix.addr().window(parts, bits) as usize;
                self.slots[first..first + (1 << (bits - below))].iter_mut().for_each(each);
            }
            return;
        }
        // Several parts, of which some have blocks.
        let len = prefix.len().max(base.len());
        let first =
            Prefix::of(prefix.addr().or(base.addr()), len).addr().window(base.len(), directory) as usize;
        for &block in &self.directory[first..first + (1 << (parts - len))] {
            if block != NONE {
                let first = usize::from(block) << bits;
                self.slots[first..first + (1 << bits)].iter_mut().for_each(&mut each);
            }
        }
    }

    /// Gives up the slots.
    pub(super) fn give_up(&mut self, budget: &mut Budget) {
        let Self { directory, slots, .. } = core::mem::replace(self, Self::new());
        budget.free(directory);
        budget.free(slots);
    }

    /// Empties all slots, as in a tree that has only its root.
    pub(super) fn clear(&mut self) {
        if self.len != u8::MAX {
            self.fill(&[]);
        }
    }

    /// Makes the number of slots fit so many nodes, if there is memory for it.
    pub(super) fn fit(&mut self, nodes: &[RadixNode<K>], room: usize, budget: &mut Budget) {
        let shape = IndexShape::of(room);
        if shape.is_none() && self.len == u8::MAX || shape == Some(self.shape) {
            return;
        }
        self.give_up(budget);
        if let Some(shape) = shape
            && let Ok(mut index) = Self::within_budget(shape, budget)
        {
            index.fill(nodes);
            *self = index;
        }
    }

    fn within_budget(shape: IndexShape<K>, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let mut directory = budget.vec(1 << shape.directory)?;
        match budget.buffer(shape.blocks << shape.block) {
            Ok(slots) => {
                directory.resize(1 << shape.directory, NONE);
                let len = shape.base.len() + shape.directory + shape.block;
                Ok(Self { directory, slots, shape, len })
            }
            Err(error) => {
                budget.free(directory);
                Err(error)
            }
        }
    }

    /// Gives out the blocks anew, as these nodes need them.
    fn fill(&mut self, nodes: &[RadixNode<K>]) {
        self.directory.fill(NONE);
        self.slots.truncate(0);
        if self.shape.directory == 0 {
            self.add_block(self.shape.base, IndexSlot { node: ROOT, cover: ROOT });
        }
        for (at, node, above) in Preorder::new(nodes, self.len) {
            let prefix = node.prefix();
            if let Some(part) = self.missing_block(prefix) {
                self.add_block(part, above);
            }
            let cover = if node.next_hop == 0 { above.cover } else { at };
            self.each_within(prefix, |slot| *slot = IndexSlot { node: at, cover });
        }
    }

    /// Returns the first slot that does not have what the nodes say.
    pub(super) fn fault(&self, nodes: &[RadixNode<K>]) -> Option<usize> {
        let mut fresh = self.clone();
        fresh.slots.fill(IndexSlot { node: ROOT, cover: ROOT });
        for (at, node, above) in Preorder::new(nodes, if self.len == u8::MAX { 0 } else { self.len }) {
            let cover = if node.next_hop == 0 { above.cover } else { at };
            fresh.each_within(node.prefix(), |slot| *slot = IndexSlot { node: at, cover });
        }
        fresh.slots.iter().zip(&self.slots).position(|(fresh, slot)| fresh != slot)
    }
}

impl<K: Key> IndexShape<K> {
    /// Returns what fits a tree with room for so many nodes.
    fn of(room: usize) -> Option<Self> {
        let slots = room.saturating_mul(size_of::<RadixNode<K>>()) / (SHARE * size_of::<IndexSlot>());
        let (base, directory, block, least) = match K::KIND {
            KeyKind::Ipv4 => (Prefix::ALL, 0, slots.checked_ilog2()?, LEAST_SLOTS),
            // Of the global unicast addresses, which alone are assigned (RFC 4291, section 2.5.4), few /16s are in use.
            KeyKind::Ipv6 => (Prefix::of(K::from_bits(0b001 << 125), 3), 13, 10, LEAST_SLOTS),
            // Tests see both ways, also with some of the addresses and too few blocks.
            KeyKind::Toy if K::BITS == 8 => (Prefix::ALL, 0, slots.checked_ilog2()?.min(7), 1),
            KeyKind::Toy if K::BITS < 8 => (Prefix::ALL, 1, 1, 2),
            KeyKind::Toy => (Prefix::of(K::MAX, 1), 3, 4, 1 << 4),
        };
        if slots < least {
            return None;
        }
        let slots = slots.min(MOST_SLOTS);
        let block = block.min(MOST_SLOTS.ilog2());
        Some(Self { base, directory, block: block as u8, blocks: (slots >> block).min(1 << directory) })
    }
}
