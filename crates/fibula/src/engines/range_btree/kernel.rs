//! The vector kernels: eight keys are compared with registers, and then with the columns of eight nodes.

use crate::fib::parts::lanes;
use crate::net::{Ipv4Key, NextHop};
use crate::simd::{LANES, kernel};

use super::layout::{LASTS, Node, ROOT, RangeBtree, RangeEncoding, TreeLayout, value};

kernel! {
    /// Looks up a block of keys among at most 16 ranges.
    pub(super) fn sixteen(
        nodes: &[Node; 4],
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
    )
    vector op {
        let [low, high, values_low, values_high] = nodes.each_ref().map(|node| op::load(node));
        let eight = op::splat(8);
        let middle = op::splat(nodes[0][7]);
        for (keys, found) in keys.iter().zip(found) {
            let key = op::load(keys);
            // A binary search without a branch: the first step chooses a half of the registers, the others halve it by
            // `pick_of_two`.
            let mut at = op::select(op::up_to(key, middle), op::splat(0), eight);
            for half in [4, 2, 1] {
                let next = op::add(at, op::splat(half));
                let last = op::pick_of_two(low, high, op::sub(next, op::splat(1)));
                at = op::select(op::up_to(key, last), at, next);
            }
            op::store(found, op::pick_of_two(values_low, values_high, at));
        }
    }
}

kernel! {
    /// Looks up a block of keys among at most 32 ranges, or among the children of a root. Without `VALUES`, the result is
    /// `first` plus the number of the range.
    pub(super) fn thirty_two[const VALUES: bool](
        lasts: &[Node; ROOT],
        values: &[Node; ROOT],
        first: u32,
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
    )
    vector op {
        let registers = lasts.each_ref().map(|node| op::load(node));
        let values = values.each_ref().map(|node| op::load(node));
        let [lower, middle, upper] = [0, 1, 2].map(|node| op::splat(lasts[node][7]));
        for (keys, found) in keys.iter().zip(found) {
            let key = op::load(keys);
            // Four registers hold 32 addresses. Both pairs are picked from, and one result is selected, because a branch cannot
            // differ by lane.
            let in_lower = op::up_to(key, middle);
            let quarter = op::select(in_lower, lower, upper);
            let mut at = op::select(op::up_to(key, quarter), op::splat(0), op::splat(8));
            for half in [4, 2, 1] {
                let next = op::add(at, op::splat(half));
                let place = op::sub(next, op::splat(1));
                let last = op::select(
                    in_lower,
                    op::pick_of_two(registers[0], registers[1], place),
                    op::pick_of_two(registers[2], registers[3], place),
                );
                at = op::select(op::up_to(key, last), at, next);
            }
            let result = if VALUES {
                op::select(
                    in_lower,
                    op::pick_of_two(values[0], values[1], at),
                    op::pick_of_two(values[2], values[3], at),
                )
            } else {
                let half = op::select(in_lower, op::splat(first), op::splat(first.wrapping_add(16)));
                op::add(at, half)
            };
            op::store(found, result);
        }
    }
}

kernel! {
    /// Looks up a block of keys: the root in registers, and then each level for all keys.
    pub(super) fn tree[const WIDTH: u32](
        nodes: &[Node],
        shape: &TreeLayout,
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
    )
    vector op {
        let eight_of = |numbers: &[u32; LANES]| numbers.map(|number| &nodes[number as usize]);
        for level in 0..shape.levels {
            // Starts at seven, because each last address that is not below a key takes one away.
            let children = op::splat(shape.children(level).wrapping_add(7));
            for (keys, found) in keys.iter().zip(&mut *found) {
                let key = op::load(keys);
                let columns = op::columns(eight_of(found));
                let mut not_above = op::splat(0);
                for &last in &columns[..7] {
                    not_above = op::increment(op::up_to(key, last), not_above);
                }
                let first = op::add(op::shl::<3>(op::load(found)), children);
                op::store(found, op::sub(first, not_above));
            }
        }
        for (keys, found) in keys.iter().zip(found) {
            let key = op::load(keys);
            let columns = op::columns(eight_of(found));
            let not_above = |at: usize| op::up_to(key, columns[at]);
            let lasts = const { LASTS[WIDTH as usize] };
            // Each value of 32 bits is a column of its own, so three selections find it without a shift.
            if WIDTH == 2 {
                let mut value = columns[lasts + 3];
                for at in [2, 1, 0] {
                    value = op::select(not_above(at), columns[lasts + at], value);
                }
                op::store(found, value);
            } else {
                let mut count = op::splat(0);
                for &last in &columns[..lasts] {
                    count = op::increment(op::up_to(key, last), count);
                }
                let rank = op::sub(op::splat(lasts as u32), count);
                let (word, shift) = if WIDTH == 0 {
                    // Four values a word: ranks up to 3 are in the first of the two.
                    let word = op::select(not_above(3), columns[6], columns[7]);
                    (word, op::shl::<3>(op::and(rank, op::splat(3))))
                } else {
                    // Two values a word: ranks up to 3 are in the first two of the three, and ranks up to 1 in the
                    // first.
                    let word = op::select(not_above(3), columns[6], columns[7]);
                    let word = op::select(not_above(1), columns[5], word);
                    (word, op::shl::<4>(op::and(rank, op::splat(1))))
                };
                let mask = op::splat((1 << (8 << WIDTH)) - 1);
                op::store(found, op::and(op::shrv(word, shift), mask));
            }
        }
    }
}

kernel! {
    /// Looks up one key.
    pub(super) fn one<K: Ipv4Key>(fib: &RangeBtree<K>, key: K) -> Option<NextHop>;
    scalar RangeBtree::one_portable;
    vector op {
        let key = lanes::aligned(key);
        let words = fib.nodes.as_flattened();
        let sixteen = |node: usize| words[node * LANES..].first_chunk().expect("padding follows");
        match &fib.form {
            RangeEncoding::Few { nodes: 2 } => {
                let at = op::rank_first::<16>(sixteen(0), key) as usize;
                // No key is above the last address, so the rank is below 16. The remainder saves the check of the
                // bounds.
                NextHop::new(words[16 + at % 16])
            }
            form => {
                // Both halves are counted, because a sum needs no branch.
                let at = op::rank_first::<16>(sixteen(0), key) + op::rank_first::<16>(sixteen(2), key);
                let RangeEncoding::Tree(tree) = form else { return NextHop::new(words[32 + at as usize % 32]) };
                let mut at = at + ROOT as u32;
                for level in 0..tree.levels {
                    let rank = op::rank_first::<7>(sixteen(at as usize), key);
                    at = (at * 8).wrapping_add(tree.children(level)).wrapping_add(rank);
                }
                let leaf = sixteen(at as usize);
                let node = leaf.first_chunk().expect("a leaf is the first of two nodes");
                NextHop::new(match tree.width {
                    0 => value(node, 0, op::rank_first::<6>(leaf, key) as usize),
                    1 => value(node, 1, op::rank_first::<5>(leaf, key) as usize),
                    _ => value(node, 2, op::rank_first::<3>(leaf, key) as usize),
                })
            }
        }
    }
}
