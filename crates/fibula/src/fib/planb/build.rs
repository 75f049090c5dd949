//! Routes to layout: ranges to intervals of the upper half and blocks, intervals to leaves, leaves to separators.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::codes;
use crate::fib::parts::ranges::{self, Merge, Range};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::layout::{Blocks, Codes, Node, lower, lower_max, upper, upper_max, word};
use super::statistics::Shape;
use super::{NAME, PlanB};

impl<K: Key, N: Node> PlanB<K, N> {
    /// Builds the tree of the routes, with a key at every interval's end, or only where the next hop changes.
    ///
    /// # Errors
    /// When memory runs out, or when next hops and blocks together exceed 2^32.
    pub fn build(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Result<Self, BuildError> {
        let refused = |error| BuildError::memory(NAME, error);
        let mut sweep = Sweep::<K, N>::new(limits).map_err(refused)?;
        ranges::try_for_each(routes, Prefix::ALL, merge, |range| sweep.add(range)).map_err(refused)?;
        sweep.close().map_err(refused)?;
        sweep.limits()?;
        sweep.finish(merge).map_err(refused)
    }
}

/// The intervals so far, and the block that is open.
struct Sweep<K: Key, N: Node> {
    budget: Budget,
    /// Last upper half of every interval but the last, as nodes hold it.
    ends: Vec<N::Word>,
    /// A code an interval, at full width: next hops from 0 up, blocks from all ones down.
    codes: Buffer<u32>,
    next_hops: codes::Codes,
    blocks: Blocks,
    /// First upper half of the last interval.
    start: u64,
    /// The upper half of the last block while ranges begin inside it.
    open: Option<u64>,
    /// Where addresses go after all ranges so far.
    next_hop: Option<NextHop>,
    keys: PhantomData<fn(K)>,
}

impl<K: Key, N: Node> Sweep<K, N> {
    fn new(limits: Limits) -> Result<Self, OutOfMemory> {
        let mut budget = Budget::new(limits);
        Ok(Self {
            next_hops: codes::Codes::new(&mut budget)?,
            budget,
            ends: Vec::new(),
            codes: Buffer::new(),
            blocks: Blocks::default(),
            start: 0,
            open: None,
            next_hop: None,
            keys: PhantomData,
        })
    }

    fn add(&mut self, range: Range<K>) -> Result<(), OutOfMemory> {
        let (start, inside) = (upper(range.start), lower(range.start));
        let adjoins = |open: u64| inside == 0 && start - open == 1;
        if self.open.is_some_and(|open| open != start && !adjoins(open)) {
            self.close()?;
        }
        let before = core::mem::replace(&mut self.next_hop, range.next_hop);
        if inside == 0 {
            self.open = None;
            let code = self.next_hops.code(range.next_hop, &mut self.budget)?;
            return self.interval(start, code);
        }
        if self.open != Some(start) {
            self.open(start, before)?;
        }
        let last = self.blocks.ends.len() - 1;
        self.blocks.ends[last] = inside - 1;
        self.piece(range.next_hop)
    }

    /// Begins an interval; the one before it ends right there.
    fn interval(&mut self, start: u64, code: u32) -> Result<(), OutOfMemory> {
        if start > 0 {
            self.budget.push(&mut self.ends, word::<K, N::Word>(start - 1))?;
        }
        self.start = start;
        self.budget.push(&mut self.codes, code)
    }

    /// Makes `start` a block of its own, which begins with what was there before.
    fn open(&mut self, start: u64, before: Option<NextHop>) -> Result<(), OutOfMemory> {
        self.open = Some(start);
        let code = !(self.blocks.first.len() as u32);
        match self.codes.last_mut() {
            Some(last) if self.start == start => *last = code,
            _ => self.interval(start, code)?,
        }
        self.budget.push(&mut self.blocks.first, self.blocks.ends.len() as u32)?;
        self.piece(before)
    }

    /// Adds a piece to the last block; it goes on to the block's end until the next one begins.
    fn piece(&mut self, next_hop: Option<NextHop>) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.blocks.ends, lower_max::<K>())?;
        self.budget.push(&mut self.blocks.next_hops, NextHop::word(next_hop))
    }

    /// Leaves the open block: behind it, addresses go where its last piece goes.
    fn close(&mut self) -> Result<(), OutOfMemory> {
        match self.open.take() {
            Some(open) if open < upper_max::<K>() => {
                let code = self.next_hops.code(self.next_hop, &mut self.budget)?;
                self.interval(open + 1, code)
            }
            _ => Ok(()),
        }
    }

    /// Whether codes and piece numbers stayed within their 32 bits.
    fn limits(&self) -> Result<(), BuildError> {
        let codes = self.next_hops.len() as u64 + self.blocks.first.len() as u64;
        let pieces = self.blocks.ends.len() as u64;
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

    fn finish(mut self, merge: Merge) -> Result<PlanB<K, N>, OutOfMemory> {
        let budget = &mut self.budget;
        let shape = Shape::of(N::KEYS, self.ends.len());
        let nodes = tree::<N>(budget, &shape, &self.ends)?;
        budget.free(self.ends);
        let all = self.next_hops.len() + self.blocks.first.len();
        let next_hops = self.next_hops.into_next_hops(budget)?;
        let codes = if all <= 1 << 16 {
            let mut narrow = budget.buffer(self.codes.len())?;
            narrow.extend(self.codes.iter().map(|&code| code as u16));
            budget.free(self.codes);
            Codes::Narrow(narrow)
        } else {
            budget.shrink(&mut self.codes);
            Codes::Wide(self.codes)
        };
        budget.shrink(&mut self.blocks.first);
        budget.shrink(&mut self.blocks.ends);
        budget.shrink(&mut self.blocks.next_hops);
        Ok(PlanB {
            nodes,
            leaf_first: shape.internal_nodes,
            levels: shape.internal_levels,
            codes,
            next_hops,
            blocks: self.blocks,
            merge,
            keys: PhantomData,
        })
    }
}

/// The nodes over `keys`, which ascend.
pub(super) fn tree<N: Node>(
    budget: &mut Budget,
    shape: &Shape,
    keys: &[N::Word],
) -> Result<Buffer<N>, OutOfMemory> {
    let count = shape.internal_nodes + shape.leaf_nodes;
    let mut nodes = budget.buffer(count)?;
    nodes.resize(count, N::SENTINELS);
    let (internal, leaves) = nodes.split_at_mut(shape.internal_nodes);
    for (leaf, keys) in leaves.iter_mut().zip(keys.chunks(N::KEYS)) {
        leaf.keys_mut()[..keys.len()].copy_from_slice(keys);
    }
    let mut level = internal;
    for depth in 0..shape.internal_levels {
        let (nodes, below) = level.split_at_mut(shape.arity().pow(depth));
        let stride = shape.keys_below(depth + 1);
        // Child j of node m is child m * arity + j of the level; separator j copies its least leaf key. One that
        // is not there stays a sentinel, and so does all behind it.
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
