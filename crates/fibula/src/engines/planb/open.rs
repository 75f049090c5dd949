//! The tree in files: nodes, codes, next hops and blocks. The number of codes gives the shape of the tree.

use core::marker::PhantomData;

use crate::fib::parts::intervals::Blocks;
use crate::fib::parts::ranges::Merge;
use crate::fib::sections::{Parts, PartsError, Sections};
use crate::fib::{CheckError, Fib};
use crate::memory::{Budget, Buffer};
use crate::net::Key;

use super::layout::{Codes, Node, NodeWord, PlanB};
use super::statistics::TreeShape;

impl<K: Key, N: Node> PlanB<K, N> {
    /// Returns the arrays of the tree, as a file holds them.
    #[must_use]
    pub fn parts(&self, name: &'static str) -> Sections<'_> {
        // Copied, because a file has words, and nodes are aligned to cache lines.
        let words: Vec<N::Word> = self.nodes.iter().flat_map(|node| node.keys().iter().copied()).collect();
        let code_bytes = if matches!(self.codes, Codes::Narrow(_)) { 2 } else { 4 };
        let sections = Sections::new(name, &[("code-bytes", code_bytes)])
            .with_copy("nodes", NodeWord::owned(words))
            .with("next-hops", &self.next_hops[..])
            .with("blocks", &self.blocks.first[..])
            .with("piece-ends", &self.blocks.ends[..])
            .with("piece-next-hops", &self.blocks.next_hops[..]);
        match &self.codes {
            Codes::Narrow(codes) => sections.with("codes", &codes[..]),
            Codes::Wide(codes) => sections.with("codes", &codes[..]),
        }
    }

    /// Makes the tree from the arrays of a file.
    pub fn open(mut parts: Parts, merge: Merge) -> Result<Box<dyn Fib<K>>, PartsError> {
        let words = <N::Word as NodeWord>::found(&mut parts, "nodes")?;
        CheckError::unless(words.len().is_multiple_of(N::KEYS), "nodes are whole", words.len())?;
        // Memory of its own: the words of a file need not begin at a cache line.
        let mut nodes: Buffer<N> = Budget::new(parts.limits()).buffer(words.len() / N::KEYS)?;
        for keys in words.chunks_exact(N::KEYS) {
            let mut node = N::SENTINELS;
            node.keys_mut().copy_from_slice(keys);
            nodes.push(node);
        }
        let (codes, count) = if parts.number("code-bytes")? == 2 {
            let codes = parts.buffer::<u16>("codes")?;
            let count = codes.len();
            (Codes::Narrow(codes), count)
        } else {
            let codes = parts.buffer::<u32>("codes")?;
            let count = codes.len();
            (Codes::Wide(codes), count)
        };
        let keys = count.checked_sub(1).ok_or(CheckError::new("(4) there is an interval", 0))?;
        let shape = TreeShape::of(N::KEYS, keys);
        let all = shape.internal_nodes + shape.leaf_nodes;
        CheckError::unless(nodes.len() == all, "(1) no leaf of sentinels is stored", nodes.len())?;
        let next_hops = parts.vec("next-hops")?;
        let (first, ends) = (parts.vec::<u32>("blocks")?, parts.vec::<u64>("piece-ends")?);
        let blocks = Blocks { first, ends, next_hops: parts.vec("piece-next-hops")? };
        // Lookups cut pieces at these places. `check` finds other faults, such as a wrong order.
        let within = blocks.first.iter().all(|&first| first as usize <= blocks.ends.len());
        CheckError::unless(within, "(7) every piece belongs to a block", blocks.ends.len())?;
        Ok(Box::new(Self {
            nodes,
            leaf_first: shape.internal_nodes,
            levels: shape.internal_levels,
            codes,
            next_hops,
            blocks,
            merge,
            keys: PhantomData,
        }))
    }
}
