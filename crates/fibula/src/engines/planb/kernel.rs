//! The walk down, with the node search of each instruction set.

use crate::net::{Key, NextHop};
use crate::simd::kernel;

use super::layout::{Code, Node, NodeWord, PlanB, Row};
use super::scalar::Order;

kernel! {
    /// Looks up a batch: [`PlanB::batch`].
    pub(super) fn batch<K: Key, N: Node, O: Order<K>, C: Code>[const LEVELS: usize](
        fib: &PlanB<K, N>,
        codes: &[C],
        keys: &[O::Item],
        results: &mut [Option<NextHop>],
    )
    scalar PlanB::<K, N>::batch_by_thirds::<O, C, LEVELS>;
    no icelake;
    vector op {
        fib.batch::<O, C, LEVELS, 32>(codes, keys, results, |node, word| match N::Word::row(node.keys(), word) {
            Row::Narrow(keys, word) => op::rank32(keys, word),
            Row::Wide(keys, word) => op::rank64(keys, word),
        });
    }
}

kernel! {
    /// Looks up one key: [`PlanB::one`].
    pub fn one<K: Key, N: Node, C: Code>[const LEVELS: usize](
        fib: &PlanB<K, N>,
        codes: &[C],
        key: K,
    ) -> Option<NextHop>;
    scalar PlanB::<K, N>::one_by_thirds::<C, LEVELS>;
    no icelake;
    vector op {
        fib.one_of::<C, LEVELS>(codes, key, |node, word| match N::Word::row(node.keys(), word) {
            Row::Narrow(keys, word) => op::rank32(keys, word),
            Row::Wide(keys, word) => op::rank64(keys, word),
        })
    }
}
