//! The walk for one key, with searches of nodes that the compiler makes.

use fibula::net::{Key, NextHop};
use fibula::unstable::planb::{Code, Node, PlanB};
use fibula::unstable::simd::kernel;

/// Looks one key up, counting in all nodes.
#[inline(always)]
fn by_counting<K: Key, N: Node, C: Code>(fib: &PlanB<K, N>, codes: &[C], key: K) -> Option<NextHop> {
    fib.one::<C>(codes, key, |node, word| node.keys().iter().map(|&key| usize::from(key < word)).sum())
}

kernel! {
    /// Looks up one key: [`PlanB::one`].
    pub(super) fn counted<K: Key, N: Node, C: Code>(
        fib: &PlanB<K, N>,
        codes: &[C],
        key: K,
    ) -> Option<NextHop>;
    scalar by_counting;
    vector op {
        // None of the set's own operations takes part.
        let _ = op::rank64;
        by_counting(fib, codes, key)
    }
}
