//! The consistency check.

use crate::fib::CheckError;
use crate::fib::parts::ranges::Merge;
use crate::net::Key;

use super::PlanB;
use super::layout::{Code, Codes, Node, NodeWord, half, lower_max, upper_max, word};
use super::statistics::TreeShape;

impl<K: Key, N: Node> PlanB<K, N> {
    /// Verifies all invariants.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn walk(&self) -> Result<(), CheckError> {
        match &self.codes {
            Codes::Narrow(codes) => self.walk_with(codes),
            Codes::Wide(codes) => self.walk_with(codes),
        }
    }

    fn walk_with<C: Code>(&self, codes: &[C]) -> Result<(), CheckError> {
        // One more code than keys: the last interval ends where the addresses do, and needs no key.
        let Some(keys) = codes.len().checked_sub(1) else {
            return Err(CheckError::new("(4) there is an interval", 0));
        };
        let shape = TreeShape::of(N::KEYS, keys);
        let TreeShape { internal_levels, internal_nodes, leaf_nodes, .. } = shape;
        CheckError::unless(self.levels == internal_levels, "(1) as few levels as hold the keys", keys)?;
        CheckError::unless(self.leaf_first == internal_nodes, "(1) internal levels are full", keys)?;
        let all = internal_nodes + leaf_nodes;
        CheckError::unless(self.nodes.len() == all, "(1) no leaf of sentinels is stored", self.nodes.len())?;
        self.leaves(keys)?;
        self.separators(&shape, keys)?;
        self.values(codes)?;
        self.pieces()
    }

    /// Returns key `at` of the leaves.
    fn key(&self, at: usize) -> N::Word {
        self.nodes[self.leaf_first + at / N::KEYS].keys()[at % N::KEYS]
    }

    /// Checks invariant 2.
    fn leaves(&self, keys: usize) -> Result<(), CheckError> {
        let slots = (self.nodes.len() - self.leaf_first) * N::KEYS;
        for at in 0..slots {
            let key = self.key(at);
            if at < keys {
                let ascends = at == 0 || self.key(at - 1) < key;
                CheckError::unless(ascends, "(2) leaf keys ascend strictly", at)?;
                CheckError::unless(key < N::Word::MAX, "(2) the last interval has no key", at)?;
                // Only toys can fail this: their words are wider than a half.
                let whole = word::<K, N::Word>(half::<K, _>(key)) == key;
                CheckError::unless(whole, "(2) a key is the last address of an upper half", at)?;
            } else {
                CheckError::unless(key == N::Word::MAX, "(2) sentinels fill the last leaf", at)?;
            }
        }
        Ok(())
    }

    /// Checks invariant 3.
    fn separators(&self, shape: &TreeShape, keys: usize) -> Result<(), CheckError> {
        let mut first = 0;
        for depth in 0..shape.internal_levels {
            let count = shape.arity().pow(depth);
            for at in 0..count * N::KEYS {
                let (node, child) = (at / N::KEYS, at % N::KEYS + 1);
                let position = (node * shape.arity() + child) * shape.keys_below(depth + 1);
                // Below a child beyond the last key are sentinels alone, so the separator before it is one too.
                let least = if position < keys { self.key(position) } else { N::Word::MAX };
                let separator = self.nodes[first + node].keys()[child - 1];
                CheckError::unless(
                    separator == least,
                    "(3) separator j is the least leaf key below child j",
                    first * N::KEYS + at,
                )?;
            }
            first += count;
        }
        Ok(())
    }

    /// Checks invariants 4 to 6.
    fn values<C: Code>(&self, codes: &[C]) -> Result<(), CheckError> {
        let next_hops = &self.next_hops;
        CheckError::unless(next_hops.first().is_none_or(|&word| word == 0), "(5) code 0 is no route", 0)?;
        for (at, &word) in next_hops.iter().enumerate().skip(1) {
            CheckError::unless(word != 0, "(5) other codes are next hops", at)?;
        }
        let mut blocks = 0;
        for (at, &code) in codes.iter().enumerate() {
            if code.next_hop() < next_hops.len() {
                let differs = at == 0 || codes[at - 1].next_hop() != code.next_hop();
                CheckError::unless(
                    self.merge == Merge::Never || differs,
                    "(4) merged neighbours differ",
                    at,
                )?;
                continue;
            }
            // Not a next hop, so it must be the next block.
            CheckError::unless(code.block() == blocks, "(6) blocks are named once, in order", at)?;
            blocks += 1;
            // An interval begins after the key before it.
            let first = if at == 0 { 0 } else { half::<K, N::Word>(self.key(at - 1)) + 1 };
            let last = if at + 1 == codes.len() { upper_max::<K>() } else { half::<K, _>(self.key(at)) };
            CheckError::unless(first == last, "(6) a block is one upper half", at)?;
        }
        CheckError::unless(blocks == self.blocks.first.len(), "(6) every block is named", blocks)
    }

    /// Checks invariant 7.
    fn pieces(&self) -> Result<(), CheckError> {
        let blocks = &self.blocks;
        let count = blocks.ends.len();
        CheckError::unless(blocks.next_hops.len() == count, "(7) one next hop a piece", count)?;
        let mut piece = 0;
        for at in 0..blocks.first.len() {
            let pieces = blocks.pieces(at);
            CheckError::unless(pieces.start == piece, "(7) blocks follow one another", at)?;
            CheckError::unless(pieces.len() >= 2, "(7) a block has at least two pieces", at)?;
            piece = pieces.end;
            let ends = &blocks.ends[pieces.clone()];
            let ascend = ends.windows(2).all(|pair| pair[0] < pair[1]);
            CheckError::unless(ascend, "(7) pieces ascend strictly", at)?;
            CheckError::unless(
                ends.last() == Some(&lower_max::<K>()),
                "(7) the last piece ends the block",
                at,
            )?;
            let differ = blocks.next_hops[pieces].windows(2).all(|pair| pair[0] != pair[1]);
            CheckError::unless(self.merge == Merge::Never || differ, "(7) merged pieces differ", at)?;
        }
        CheckError::unless(piece == count, "(7) every piece belongs to a block", piece)
    }
}
