//! Where the forms change: the number of ranges, and the widest next hop.

use super::RangeBtree;
use super::layout::{FEW, LASTS, ROOT_CHILDREN, RangeEncoding};
use crate::fib::Fib;
use crate::fib::parts::lanes;
use crate::memory::Limits;
use crate::net::{NextHop, Prefix, Route, RouteSlice};
use crate::simd::LANES;

/// Builds a table of exactly `ranges` ranges: /24s side by side, the next hops in turn, then `id`. Checks it at both ends
/// of every range.
fn build(ranges: u32, id: u32) -> RangeBtree<u32> {
    let next_hop = |at: u32| if at + 2 == ranges { id } else { 1 + at % 2 };
    let routes: Vec<_> = (0..ranges - 1)
        .map(|at| Route::new(Prefix::masked(at << 8, 24).unwrap(), NextHop::new(next_hop(at)).unwrap()))
        .collect();
    let fib = RangeBtree::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    fib.check().unwrap();
    let keys: Vec<u32> =
        (0..ranges).flat_map(|at| [at << 8, at << 8 | 255]).chain([u32::MAX]).cycle().take(2100).collect();
    for &key in &keys {
        let at = key >> 8;
        let expected = if at + 1 < ranges { NextHop::new(next_hop(at)) } else { None };
        assert_eq!(fib.lookup_key(key), expected, "{key:x} of {ranges} ranges");
        assert_eq!(fib.one_portable(key), expected, "{key:x} of {ranges} ranges");
    }
    lanes::agree(&fib, &keys);
    fib
}

#[test]
fn ranges_decide_the_form() {
    let id_of_width = [7, 300, 70_000];
    for (width, id) in id_of_width.into_iter().enumerate() {
        // Full registers, full leaves, full levels, and one more each.
        let leaf = LASTS[width] + 1;
        let levels = [ROOT_CHILDREN * leaf, ROOT_CHILDREN * 8 * leaf, ROOT_CHILDREN * 64 * leaf];
        for full in [FEW / 2, FEW, 5 * leaf, 6 * leaf].into_iter().chain(levels) {
            for ranges in [full, full + 1] {
                let fib = build(ranges as u32, id);
                match fib.form {
                    RangeEncoding::Few { nodes } => assert_eq!(nodes, if ranges <= FEW / 2 { 2 } else { 4 }),
                    RangeEncoding::Tree(tree) => {
                        assert!(ranges > FEW);
                        assert_eq!(tree.width as usize, width);
                        let expected = levels.iter().filter(|&&full| ranges > full).count();
                        assert_eq!(tree.levels, expected, "{ranges}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_widest_next_hop_decides_the_width() {
    for (id, width) in [(255, 0), (256, 1), (65_535, 1), (65_536, 2), (u32::MAX, 2)] {
        assert!(matches!(build(100, id).form, RangeEncoding::Tree(tree) if tree.width == width), "{id}");
        // The only next hop, because the bits of others would make it wider.
        let alone: Vec<_> = (0..50)
            .map(|at| Route::new(Prefix::masked(at << 9, 24).unwrap(), NextHop::new(id).unwrap()))
            .collect();
        let fib = RangeBtree::build(&RouteSlice::new(&alone).unwrap(), Limits::default()).unwrap();
        assert!(matches!(fib.form, RangeEncoding::Tree(tree) if tree.width == width), "{id} alone");
    }
}

#[test]
fn an_empty_table_is_one_range() {
    let fib = RangeBtree::<u32>::build(&RouteSlice::new(&[]).unwrap(), Limits::default()).unwrap();
    fib.check().unwrap();
    assert_eq!(fib.memory().lookup_bytes, 128);
    lanes::agree(&fib, &[0, 1, u32::MAX, 7].repeat(200));
    assert_eq!(fib.lookup_key(u32::MAX), None);
}

#[test]
fn the_check_finds_what_is_broken() {
    for ranges in [10, 20, 200, 2000] {
        let fib = build(ranges, 7);
        // The words of last addresses. In other words, any next hop is as valid as another.
        let is_last = |at: &usize| match fib.form {
            RangeEncoding::Few { nodes } => *at < nodes * LANES,
            RangeEncoding::Tree(tree) => *at < tree.leaves() * LANES || at % LANES < LASTS[0],
        };
        for at in (0..fib.nodes.len() * LANES).filter(is_last) {
            let mut broken = fib.clone();
            // The address before it, or an address instead of padding.
            let word = &mut broken.nodes[at / LANES][at % LANES];
            *word = word.wrapping_sub(1 << 8);
            assert!(broken.check().is_err(), "word {at} of {ranges} ranges");
        }
    }
}
