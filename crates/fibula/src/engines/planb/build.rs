//! Routes to layout: ranges become intervals of the upper half and blocks, intervals become leaves, and leaves give
//! separators.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::intervals::{self, Blocks, Leads};
use crate::fib::parts::next_hop_dictionary::NextHopDictionary;
use crate::fib::parts::ranges::Merge;
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Key, Routes};

use super::layout::{Codes, Node, upper_bits, word};
use super::statistics::TreeShape;
use super::{NAME, PlanB};

impl<K: Key, N: Node> PlanB<K, N> {
    /// Builds the tree of the routes, with a key at the end of every interval, or only where the next hop changes.
    ///
    /// # Errors
    /// When memory runs out, or when next hops and blocks together exceed 2^32.
    pub fn build(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Result<Self, BuildError> {
        let refused = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let mut intervals = Intervals::<K, N>::new(&mut budget).map_err(refused)?;
        let blocks =
            intervals::split(routes, merge, upper_bits::<K>(), &mut budget, |start, leads, budget| {
                intervals.add(start, leads, budget)
            })
            .map_err(refused)?;
        intervals.limits(&blocks)?;
        intervals.finish(blocks, merge, &mut budget).map_err(refused)
    }
}

/// The intervals that the sweep has found so far.
struct Intervals<K: Key, N: Node> {
    /// Last upper half of every interval but the last, as nodes store it.
    ends: Vec<N::Word>,
    /// Code of each interval, at full width: next hops count from 0 up, blocks from all ones down.
    codes: Buffer<u32>,
    next_hops: NextHopDictionary,
    keys: PhantomData<fn(K)>,
}

impl<K: Key, N: Node> Intervals<K, N> {
    fn new(budget: &mut Budget) -> Result<Self, OutOfMemory> {
        Ok(Self {
            ends: Vec::new(),
            codes: Buffer::new(),
            next_hops: NextHopDictionary::new(budget)?,
            keys: PhantomData,
        })
    }

    /// Adds an interval, before which the last one ends.
    fn add(&mut self, start: u64, leads: Leads, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if start > 0 {
            // Keys are inclusive ends, so that an address equal to a key belongs to its interval (see the chapter).
            budget.push(&mut self.ends, word::<K, N::Word>(start - 1))?;
        }
        let code = match leads {
            Leads::To(next_hop) => self.next_hops.code(next_hop, budget)?,
            Leads::Block(block) => !block,
        };
        budget.push(&mut self.codes, code)
    }

    /// Checks that codes and piece numbers fit their 32 bits.
    fn limits(&self, blocks: &Blocks<u64>) -> Result<(), BuildError> {
        let codes = self.next_hops.len() as u64 + blocks.first.len() as u64;
        let pieces = blocks.ends.len() as u64;
        let limit = 1 << 32;
        if codes > limit {
            return Err(BuildError::limit(
                NAME,
                "next hops and blocks beyond the searched half",
                limit,
                codes,
            ));
        }
        if pieces > limit {
            return Err(BuildError::limit(NAME, "ranges beyond the searched half", limit, pieces));
        }
        Ok(())
    }

    /// Builds the tree over the intervals.
    fn finish(
        mut self,
        mut blocks: Blocks<u64>,
        merge: Merge,
        budget: &mut Budget,
    ) -> Result<PlanB<K, N>, OutOfMemory> {
        let shape = TreeShape::of(N::KEYS, self.ends.len());
        let nodes = tree::<N>(budget, &shape, &self.ends)?;
        // Freed before the codes are copied, so that the peak of the build stays low.
        budget.free(self.ends);
        let all = self.next_hops.len() + blocks.first.len();
        let next_hops = self.next_hops.into_next_hops(budget)?;
        // Cut to 16 bits, blocks still count from all ones down.
        let codes = if all <= 1 << 16 {
            let mut narrow = budget.buffer(self.codes.len())?;
            narrow.extend(self.codes.iter().map(|&code| code as u16));
            budget.free(self.codes);
            Codes::Narrow(narrow)
        } else {
            budget.shrink(&mut self.codes);
            Codes::Wide(self.codes)
        };
        blocks.shrink(budget);
        Ok(PlanB {
            nodes,
            leaf_first: shape.internal_nodes,
            levels: shape.internal_levels,
            codes,
            next_hops,
            blocks,
            merge,
            keys: PhantomData,
        })
    }
}

/// Builds the nodes over `keys`, which ascend.
pub(super) fn tree<N: Node>(
    budget: &mut Budget,
    shape: &TreeShape,
    keys: &[N::Word],
) -> Result<Buffer<N>, OutOfMemory> {
    let count = shape.internal_nodes + shape.leaf_nodes;
    let mut nodes = budget.buffer(count)?;
    // Sentinels everywhere first: slots that get no key below must compare as above every address.
    nodes.resize(count, N::SENTINELS);
    let (internal, leaves) = nodes.split_at_mut(shape.internal_nodes);
    for (leaf, keys) in leaves.iter_mut().zip(keys.chunks(N::KEYS)) {
        leaf.keys_mut()[..keys.len()].copy_from_slice(keys);
    }
    let mut level = internal;
    for depth in 0..shape.internal_levels {
        let (nodes, below) = level.split_at_mut(shape.arity().pow(depth));
        let stride = shape.keys_below(depth + 1);
        // Child j of node m is child m * arity + j of the level, and separator j copies its least leaf key. The
        // separator of a child that is not stored stays a sentinel, and so do all after it.
        for (at, node) in nodes.iter_mut().enumerate() {
            for (child, separator) in (1..).zip(node.keys_mut()) {
                match keys.get((at * shape.arity() + child) * stride) {
                    Some(&key) => *separator = key,
                    None => break,
                }
            }
        }
        level = below;
    }
    Ok(nodes)
}
