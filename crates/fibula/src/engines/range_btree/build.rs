//! Builds nodes from ranges: the ranges are swept into two arrays, and then every node is written in one pass.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::lanes;
use crate::fib::parts::ranges::{self, Merge};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, Key, NextHop, Prefix, Routes};
use crate::simd::LANES;

use super::NAME;
use super::layout::{
    CHILDREN, FEW, LASTS, NEVER, Node, ROOT, ROOT_CHILDREN, RangeBtree, RangeEncoding, TreeLayout,
};

impl<K: Ipv4Key> RangeBtree<K> {
    /// Builds the nodes of the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "keys fill lanes of 32 bits") };
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let ranges = Ranges::of(routes, &mut budget).map_err(memory)?;
        let (form, nodes) = ranges.nodes(&mut budget).map_err(memory)?;
        Ok(Self { form, nodes, keys: PhantomData })
    }
}

/// The merged ranges of a table.
struct Ranges {
    /// The last address of every range but the last, aligned to the left.
    lasts: Buffer<u32>,
    /// The next hop of every range, 0 for none.
    words: Buffer<u32>,
    /// The bits that are set in any next hop.
    union: u32,
}

impl Ranges {
    fn of<K: Key>(routes: &dyn Routes<K>, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let mut all = Self { lasts: Buffer::new(), words: Buffer::new(), union: 0 };
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            let word = NextHop::word(range.next_hop);
            if !all.words.is_empty() {
                // One before the start in its lane, because a lane may be wider than the key.
                budget.push(&mut all.lasts, lanes::aligned(range.start) - 1)?;
            }
            all.union |= word;
            budget.push(&mut all.words, word)
        })?;
        Ok(all)
    }

    /// Returns the last address of a range, or padding after the last range.
    fn last(&self, range: usize) -> u32 {
        self.lasts.get(range).copied().unwrap_or(NEVER)
    }

    /// Returns the next hop of a range. After the last range, its next hop is repeated.
    fn word(&self, range: usize) -> u32 {
        self.words[range.min(self.words.len() - 1)]
    }

    fn nodes(&self, budget: &mut Budget) -> Result<(RangeEncoding, Buffer<Node>), OutOfMemory> {
        let count = self.words.len();
        if count <= FEW {
            // Two sizes, which the kernels hold in registers: 16 ranges and 32.
            let nodes = if count <= FEW / 2 { 2 } else { 4 };
            let mut all = budget.buffer(2 * nodes)?;
            all.extend((0..nodes).map(|node| core::array::from_fn(|at| self.last(LANES * node + at))));
            all.extend((0..nodes).map(|node| core::array::from_fn(|at| self.word(LANES * node + at))));
            return Ok((RangeEncoding::Few { nodes }, all));
        }
        // The union of all next hops is below a power of two exactly if each of them is.
        let width = if self.union < 1 << 8 { 0 } else { u32::from(self.union >= 1 << 16) + 1 };
        let (tree, nodes) = TreeLayout::of(count, width);
        let leaf_ranges = LASTS[width as usize] + 1;
        let mut all = budget.buffer(nodes + 1)?;
        let last_below = |leaves: usize| self.last(leaves * leaf_ranges - 1);
        // Separators are computed, not copied from below: the key left of a child is the last address of the range before its
        // first leaf.
        let per = tree.leaves_below(0);
        // The last word of the root stays unused, because 31 addresses separate 32 children.
        all.extend((0..ROOT).map(|node| {
            core::array::from_fn(|at| match LANES * node + at + 1 {
                ROOT_CHILDREN => NEVER,
                child => last_below(child * per),
            })
        }));
        for level in 0..tree.levels {
            let per = tree.leaves_below(level + 1);
            let first = tree.starts[level] as usize;
            all.extend((first..tree.starts[level + 1] as usize).map(|node| {
                let child = (node - first) * CHILDREN;
                core::array::from_fn(|at| match at + 1 {
                    CHILDREN => NEVER,
                    next => last_below((child + next) * per),
                })
            }));
        }
        let first = tree.leaves();
        all.extend((first..nodes).map(|node| self.leaf((node - first) * leaf_ranges, width)));
        // Single lookups compare two nodes at once, so a node of padding must follow the last one.
        all.push([NEVER; LANES]);
        Ok((RangeEncoding::Tree(tree), all))
    }

    /// Returns the leaf that begins with this range.
    fn leaf(&self, range: usize, width: u32) -> Node {
        let lasts = LASTS[width as usize];
        let bits = 8 << width;
        let mut words = [0; LANES];
        for (at, word) in words[..lasts].iter_mut().enumerate() {
            *word = self.last(range + at);
        }
        for value in 0..=lasts {
            words[lasts + value * bits / 32] |= self.word(range + value) << (value * bits % 32);
        }
        words
    }
}
