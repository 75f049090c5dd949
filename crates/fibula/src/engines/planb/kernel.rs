//! The walk down, with the node search of each instruction set.

use crate::net::{Key, NextHop};
use crate::simd::kernel;

use super::layout::{Code, Node, PlanB, Row, Word};
use super::scalar::{Host, Order, Walk};

kernel! {
    /// Looks up a batch: [`PlanB::batch`].
    pub(super) fn batch<K: Key, N: Node, O: Order<K>, C: Code>[const LEVELS: usize](
        fib: &PlanB<K, N>,
        walk: Walk<O, LEVELS>,
        codes: &[C],
        keys: &[O::Item],
        results: &mut [Option<NextHop>],
    )
    scalar PlanB::batch_by_thirds;
    vector op {
        fib.batch::<O, C, LEVELS, 32>(walk, codes, keys, results, |node, word| match N::Word::row(node.keys(), word) {
            Row::Narrow(keys, word) => op::rank32(keys, word),
            Row::Wide(keys, word) => op::rank64(keys, word),
        });
    }
}

kernel! {
    /// Looks up one key: [`PlanB::one`].
    pub fn one<K: Key, N: Node, C: Code>[const LEVELS: usize](
        fib: &PlanB<K, N>,
        walk: Walk<Host, LEVELS>,
        codes: &[C],
        key: K,
    ) -> Option<NextHop>;
    scalar PlanB::one_by_thirds;
    vector op {
        let _ = walk;
        fib.one::<C, LEVELS>(codes, key, |node, word| match N::Word::row(node.keys(), word) {
            Row::Narrow(keys, word) => op::rank32(keys, word),
            Row::Wide(keys, word) => op::rank64(keys, word),
        })
    }
}
