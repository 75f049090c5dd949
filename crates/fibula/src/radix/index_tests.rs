//! The index against one that is filled anew, and batches with a log.
//!
//! The test machine's trees have slots too if their keys are toys; these tests have the shapes of both families.

use super::*;
use crate::net::{Change, Toy};

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A prefix among a few tens of blocks of 16 bits, inside of the base of IPv6 or not, or a short one.
    fn prefix<K: Key>(&mut self) -> Prefix<K> {
        let blocks = [0x2000, 0x2001, 0x2a00, 0x2a01, 0x2a02, 0x3fff, 0xfc00, 0x0a00];
        let first = u128::from(blocks[self.below(8) as usize] + self.below(4));
        let rest = (0..8).fold(0, |bits, _| bits << 16 | u128::from(self.below(1 << 16)));
        let bits = first << 112 | (rest >> 16);
        let len = match self.below(20) {
            0 => self.below(17) as u8,
            1..8 => 16 + self.below(8) as u8,
            _ => 20 + self.below(13) as u8,
        };
        Prefix::of(K::from_bits(bits >> (128 - K::BITS)), len.min(K::BITS))
    }

    fn change<K: Key>(&mut self, prefixes: &[Prefix<K>]) -> Change<K> {
        let prefix = match self.below(3) {
            0 => self.prefix(),
            _ => prefixes[self.below(prefixes.len() as u64) as usize],
        };
        let next_hop = NextHop::new(1 + self.below(3) as u32).unwrap();
        if self.below(2) == 0 { Change::Remove(prefix) } else { Change::Insert(Route::new(prefix, next_hop)) }
    }
}

fn filled<K: Key>(count: usize) -> (RadixTree<K>, Vec<Prefix<K>>, Numbers) {
    let mut numbers = Numbers(7);
    let mut tree = RadixTree::default();
    let prefixes: Vec<_> = (0..count).map(|_| numbers.prefix()).collect();
    for &prefix in &prefixes {
        tree.insert(Route::new(prefix, NextHop::new(1).unwrap())).unwrap();
    }
    (tree, prefixes, numbers)
}

/// A copy takes prefixes in parts that have no block yet, without growing before that.
#[test]
fn copies_take_prefixes_where_the_tree_has_none() {
    fn copied<K: Key>(count: usize) {
        let (tree, prefixes, _) = filled::<K>(count);
        let (mut copy, mut again) = (tree.clone(), tree.clone());
        for prefix in &prefixes[..count / 4] {
            copy.remove(*prefix);
        }
        for block in 0..60u128 {
            let bits = (0x2100 + 7 * block) << 112 | 5 << 100;
            let route = Route::new(
                Prefix::of(K::from_bits(bits >> (128 - K::BITS)), 24.min(K::BITS)),
                NextHop::new(9).unwrap(),
            );
            for tree in [&mut copy, &mut again] {
                tree.insert(route).unwrap();
                assert_eq!(tree.get(route.prefix), Some(route.next_hop));
            }
        }
        copy.check().unwrap();
        again.check().unwrap();
    }
    copied::<u32>(60_000);
    copied::<u128>(60_000);
    copied::<Toy<16>>(3_000);
}

fn slots_follow<K: Key>(count: usize) {
    let (mut tree, prefixes, mut numbers) = filled::<K>(count);
    assert!(tree.index.memory().held_bytes() > 0, "there are slots");
    tree.check().unwrap();
    for round in 0..40 {
        let changes: Vec<_> = (0..200).map(|_| numbers.change(&prefixes)).collect();
        if round % 2 == 0 {
            tree.apply(&changes).unwrap();
        } else {
            for change in changes {
                match change {
                    Change::Insert(route) => drop(tree.insert(route).unwrap()),
                    Change::Remove(prefix) => drop(tree.remove(prefix)),
                }
            }
        }
        tree.check().unwrap();
    }
    tree.shrink();
    tree.check().unwrap();
    let held = tree.clone();
    held.check().unwrap();
    assert!(held.iter().eq(tree.iter()));
    for prefix in held.iter().map(|route| route.prefix) {
        assert!(tree.remove(prefix).is_some());
    }
    assert!(tree.is_empty());
    tree.check().unwrap();
    tree.clear();
    tree.check().unwrap();
    tree.apply(&held.iter().map(Change::Insert).collect::<Vec<_>>()).unwrap();
    tree.check().unwrap();
    assert!(held.iter().eq(tree.iter()));
    for &prefix in &prefixes {
        let mut met = Vec::new();
        let _ = tree.visit_from_parent(prefix, &mut |route| {
            met.push(route);
            if met.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let expected: Vec<_> = tree.parent(prefix).into_iter().chain(tree.subnets(prefix)).take(3).collect();
        assert_eq!(met, expected, "{prefix}");
        let cover = tree.covers(Prefix::host(prefix.addr())).last();
        assert_eq!(tree.lookup_prefix(prefix.addr()), cover);
    }
}

#[test]
fn slots_are_as_filled_anew_after_any_change() {
    slots_follow::<Toy<8>>(300);
    slots_follow::<Toy<16>>(3_000);
    slots_follow::<u32>(20_000);
    slots_follow::<u128>(20_000);
}

#[test]
fn small_trees_have_no_slots() {
    let (tree, ..) = filled::<u32>(1_000);
    assert_eq!(tree.index.memory(), Memory::default());
    let (mut tree, ..) = filled::<u32>(20_000);
    let bytes = tree.index.memory().held_bytes();
    assert!(bytes > 0 && bytes * 8 <= tree.memory().held_bytes(), "{bytes}");
    tree.clear();
    tree.shrink();
    assert_eq!(tree.index.memory(), Memory::default());
}

#[test]
fn slots_make_room_for_nodes() {
    let limits = Limits { memory_bytes: Some(1 << 20), huge_pages: false };
    let (filled, ..) = filled::<u32>(60_000);
    let mut tree = RadixTree::new(limits);
    let mut most = 0;
    for route in filled.iter() {
        match tree.insert(route) {
            Ok(_) => most = most.max(tree.index.memory().held_bytes()),
            Err(error) => {
                assert_eq!(error.limit_bytes, limits.memory_bytes);
                break;
            }
        }
    }
    assert!(most > 0, "there were slots");
    assert_eq!(tree.index.memory(), Memory::default(), "no slots where nodes had no room");
    assert!(tree.memory().held_bytes() <= 1 << 20);
    tree.check().unwrap();
    assert!(tree.iter().eq(filled.iter().take(tree.len())));
}

#[test]
fn an_undone_batch_leaves_no_trace() {
    fn undone<K: Key>(count: usize) {
        let (mut tree, prefixes, mut numbers) = filled::<K>(count);
        let mut log = Vec::new();
        for round in 0..60 {
            tree.shrink();
            let changes: Vec<_> = (0..round * 3).map(|_| numbers.change(&prefixes)).collect();
            let before = tree.clone();
            let mut others = 0;
            let mut by_one = tree.clone();
            let tally = tree.apply_logged(&changes, &mut log).unwrap();
            for (change, entry) in changes.iter().zip(&log) {
                let previous = match *change {
                    Change::Insert(route) => by_one.insert(route).unwrap(),
                    Change::Remove(prefix) => by_one.remove(prefix),
                };
                assert_eq!((entry.prefix, entry.next_hop), (change.prefix(), previous));
                others += usize::from(by_one.get(change.prefix()) != previous);
            }
            assert_eq!((log.len(), tally.changed), (changes.len(), others));
            assert_eq!(tally.changed + tally.unchanged + tally.absent, changes.len());
            assert!(tree.iter().eq(by_one.iter()));
            let held = tree.memory().held_bytes();
            tree.undo(&mut log);
            tree.check().unwrap();
            assert_eq!((log.len(), tree.memory().held_bytes()), (0, held));
            assert!(tree.len() == before.len() && tree.iter().eq(before.iter()));
            let live = |tree: &RadixTree<K>| tree.nodes.len() - tree.free_len;
            assert_eq!(live(&tree), live(&before));
            // Some of it stays.
            tree.apply(&changes[..changes.len() / 2]).unwrap();
        }
    }
    undone::<Toy<8>>(40);
    undone::<Toy<16>>(1_000);
    undone::<u32>(16_000);
    undone::<u128>(16_000);
}

#[test]
fn a_log_says_what_changed() {
    let [one, two] = [1, 2].map(|id| NextHop::new(id).unwrap());
    let prefix = |len| Prefix::<u32>::of(0x0a00_0000, len);
    let mut tree = RadixTree::default();
    tree.insert(Route::new(prefix(8), one)).unwrap();
    let mut log = Vec::new();
    let tally = tree.apply_logged(
        &[
            Change::Insert(Route::new(prefix(8), one)),
            Change::Remove(prefix(9)),
            Change::Insert(Route::new(prefix(9), one)),
            Change::Insert(Route::new(prefix(9), two)),
            Change::Remove(prefix(8)),
        ],
        &mut log,
    );
    assert_eq!(tally, Ok(Tally { changed: 3, unchanged: 1, absent: 1 }));
    let before: Vec<_> = log.iter().map(|entry| (entry.prefix.len(), entry.next_hop)).collect();
    assert_eq!(before, [(8, Some(one)), (9, None), (9, None), (9, Some(one)), (8, Some(one))]);
    tree.undo(&mut log);
    assert!(tree.iter().eq([Route::new(prefix(8), one)]));
}

#[test]
fn a_refused_batch_leaves_an_empty_log() {
    let limits = Limits { memory_bytes: Some(1_000), huge_pages: false };
    let mut tree = RadixTree::<u32>::new(limits);
    let next_hop = NextHop::new(1).unwrap();
    let many: Vec<_> =
        (0..100).map(|at| Change::Insert(Route::new(Prefix::of(at << 20, 12), next_hop))).collect();
    let mut log = vec![Before { prefix: Prefix::ALL, next_hop: None, sole: None }];
    assert_eq!(tree.apply_logged(&many, &mut log).unwrap_err().limit_bytes, limits.memory_bytes);
    assert_eq!((log.len(), tree.len()), (0, 0));
}

/// The tree grows, and its index with it, under inserts of prefixes that are one bit longer than the index distinguishes:
/// their walks begin at a slot, and afterwards they have slots of their own.
#[test]
fn slots_follow_where_the_index_grows_under_an_insert() {
    let next_hop = NextHop::new(1).unwrap();
    let index_len = |tree: &RadixTree<u32>| (0..=32).rev().find(|&len| tree.index.has(len));
    // The walk begins at 224.0.0.0/3, where the paths to the two hosts part: the route around it is above the start. A prefix
    // around a host takes one node, one beside it another, where the two part.
    let hosts = [Prefix::host(7 << 29 | 1), Prefix::host(u32::MAX)];
    for takes in [1, 2] {
        let mut tree = RadixTree::default();
        for prefix in [Prefix::of(0, 1), Prefix::of(1 << 31, 1)].into_iter().chain(hosts) {
            tree.insert(Route::new(prefix, next_hop)).unwrap();
        }
        let mut grown = Vec::new();
        // Each of the prefixes below 0.0.0.0/1 takes one node.
        for prefix in
            (2..19_u8).flat_map(|len| (0..1 << (len - 1)).map(move |at| Prefix::of(at << (32 - len), len)))
        {
            let before = index_len(&tree);
            if let Some(len) = before
                && tree.nodes.capacity() - tree.nodes.len() + tree.free_len < takes
            {
                let beside = if takes == 2 { 1 << (31 - len) } else { 0 };
                let longer = Prefix::of(7 << 29 | beside, len + 1);
                tree.insert(Route::new(longer, next_hop)).unwrap();
                tree.check().unwrap();
                tree.remove(longer);
                grown.extend(index_len(&tree).filter(|len| Some(*len) != before));
            }
            tree.insert(Route::new(prefix, next_hop)).unwrap();
        }
        assert_eq!(grown, [13, 14, 15, 16]);
    }
}

/// Changes one prefix or many at once, in trees with slots. The log tells the only route of each prefix that no other of the call meets.
fn says_what_is_inside<K: Key>(count: usize) {
    let (mut tree, prefixes, mut numbers) = filled::<K>(count);
    let (mut log, mut alone) = (Vec::new(), [0; 2]);
    for round in 0..400 {
        let calls = if round % 2 == 0 { 1 } else { 1 + round / 4 };
        let changes: Vec<_> = (0..calls).map(|_| numbers.change(&prefixes)).collect();
        tree.apply_logged(&changes, &mut log).unwrap();
        for (at, (change, entry)) in changes.iter().zip(&log).enumerate() {
            let prefix = change.prefix();
            let meets = |other: Prefix<K>| other.covers(prefix) || prefix.covers(other);
            let is_absent = matches!(change, Change::Remove(_)) && entry.next_hop.is_none();
            let mut others = changes.iter().enumerate().filter(|&(other, _)| other != at);
            if is_absent || others.any(|(_, other)| meets(other.prefix())) {
                continue;
            }
            let is_leaf = tree.subnets(prefix).all(|route| route.prefix == prefix);
            let around = tree.covers(prefix).last();
            let sole = Sole {
                next_hop: around.map(|route| route.next_hop),
                len: around.map_or(0, |route| route.prefix.len()),
            };
            assert_eq!(entry.sole, is_leaf.then_some(sole), "{prefix}, {change:?}");
            alone[usize::from(is_leaf)] += 1;
        }
    }
    assert!(alone.iter().all(|&count| count > 50), "{alone:?}");
}

#[test]
fn a_log_says_what_prefixes_without_others_inside_answer() {
    says_what_is_inside::<u32>(40_000);
    says_what_is_inside::<u128>(20_000);
}
