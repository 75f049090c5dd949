//! Batches of changes under a memory limit, what the tree reports of itself, and what `check` finds.
//!
//! That the tree answers as a model does is shown by the test machine (`rib-tables`, `rib-changes`).

use super::*;
use crate::net::{Change, Toy};
use crate::random::Random;

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

fn route<K: Key>(bits: u128, len: u8, id: u32) -> Route<K> {
    Route::new(Prefix::of(K::from_bits(bits << (K::BITS - len)), len), hop(id))
}

fn routes<K: Key>(tree: &RadixTree<K>) -> Vec<Route<K>> {
    tree.iter().collect()
}

/// 32 routes, of which each but the first needs a node of its own and one that branches.
fn spread() -> Vec<Change<u32>> {
    (0..32_u32).map(|at| Change::Insert(route(at.reverse_bits().into(), 32, at + 1))).collect()
}

#[test]
fn a_batch_that_does_not_fit_changes_nothing() {
    let node = size_of::<RadixNode<u32>>();
    for (present, added) in [(0, 32), (1, 32), (7, 32), (0, 10), (1, 10), (7, 10), (12, 5)] {
        let mut outcomes = [0; 2];
        for nodes in 16..160 {
            let limits = Limits { memory_bytes: Some(nodes * node), huge_pages: false };
            let mut tree = RadixTree::new(limits);
            if (0..present).any(|at| tree.insert(route(100 + at, 20, 99)).is_err()) {
                continue;
            }
            let before = routes(&tree);
            let result = tree.apply(&spread()[..added]);
            tree.check().unwrap();
            outcomes[usize::from(result.is_ok())] += 1;
            match result {
                Ok(()) => assert_eq!(tree.len(), before.len() + added),
                Err(error) => {
                    assert_eq!(error.limit_bytes, limits.memory_bytes);
                    assert_eq!(routes(&tree), before, "refused under {nodes} nodes, and yet changed");
                }
            }
        }
        assert!(outcomes.iter().all(|&count| count > 3), "{present} and {added}: {outcomes:?}");
    }
}

#[test]
fn room_that_is_reserved_is_enough() {
    for present in [0, 1, 5] {
        let mut tree = RadixTree::<u32>::default();
        for at in 0..present {
            tree.insert(route(100 + at, 20, 99)).unwrap();
        }
        tree.shrink();
        tree.reserve(32).unwrap();
        let held = tree.memory().held_bytes();
        tree.apply(&spread()).unwrap();
        assert_eq!(tree.memory().held_bytes(), held);
    }
    let mut none = RadixTree::<u32>::default();
    none.reserve(0).unwrap();
    assert_eq!(none.memory(), Memory::default());
}

#[test]
fn a_batch_that_adds_no_prefix_needs_no_memory() {
    let mut tree = RadixTree::<u32>::new(Limits { memory_bytes: Some(2_000), huge_pages: false });
    let mut count = 0;
    while tree.insert(route(count * 0x9e37_79b9 % (1 << 24), 24, 1)).is_ok() {
        count += 1;
    }
    let before = routes(&tree);
    assert!(before.len() > 20);
    let again: Vec<_> = before.iter().map(|route| Change::Insert(Route::new(route.prefix, hop(2)))).collect();
    tree.apply(&again).unwrap();
    assert!(tree.iter().all(|route| route.next_hop == hop(2)));
    let removals: Vec<_> = before.iter().map(|route| Change::Remove(route.prefix)).collect();
    tree.apply(&removals).unwrap();
    assert!(tree.is_empty());
    // What was freed is used again. A batch reserves for the worst case, two nodes more than these routes had.
    let restored: Vec<_> = before[1..].iter().copied().map(Change::Insert).collect();
    tree.apply(&restored).unwrap();
    assert_eq!(routes(&tree), before[1..]);
    tree.check().unwrap();
}

#[test]
fn more_nodes_than_indices_are_refused() {
    let mut tree = RadixTree::<u32>::default();
    let before = tree.memory();
    for inserts in [1 << 31, usize::MAX / 2, usize::MAX] {
        let error = tree.reserve(inserts).unwrap_err();
        assert_eq!(error.limit_bytes, Some(u32::MAX as usize * size_of::<RadixNode<u32>>()));
        assert_eq!(error.used_bytes, 0);
        assert!(error.wanted_bytes > u32::MAX as usize);
    }
    assert_eq!(tree.memory(), before);
    // With its root the largest tree of all: only the memory is missing.
    let mut limited = RadixTree::<u32>::new(Limits::within(1_000));
    assert_eq!(limited.reserve((1 << 31) - 1).unwrap_err().limit_bytes, Some(1_000));
}

#[test]
fn lookups_can_touch_the_nodes_that_are_in_use() {
    let mut tree = RadixTree::<u32>::default();
    let bytes = |nodes: usize| nodes * size_of::<RadixNode<u32>>();
    assert_eq!(tree.memory().lookup_bytes, 0);
    // The root, two leaves and the node that branches to them.
    tree.insert(route(0b10, 2, 1)).unwrap();
    assert_eq!(tree.memory().lookup_bytes, bytes(2));
    tree.insert(route(0b1111, 4, 2)).unwrap();
    assert_eq!(tree.memory().lookup_bytes, bytes(4));
    tree.remove(route::<u32>(0b10, 2, 1).prefix).unwrap();
    assert_eq!(tree.memory().lookup_bytes, bytes(2));
    tree.clear();
    assert_eq!(tree.memory().lookup_bytes, bytes(1));
    assert!(tree.memory().held_bytes() >= bytes(4));
    tree.shrink();
    assert_eq!(tree.memory().held_bytes(), bytes(1));
}

#[test]
fn a_copy_has_a_budget_of_its_own() {
    let limits = Limits { memory_bytes: Some(4_000), huge_pages: false };
    let mut tree = RadixTree::<u32>::new(limits);
    tree.insert(route(1, 8, 1)).unwrap();
    let mut copy = tree.clone();
    tree.clear();
    assert_eq!(routes(&copy), [route(1, 8, 1)]);
    let grow = |tree: &mut RadixTree<u32>| (0..4_000).find_map(|at| tree.insert(route(at, 20, 1)).err());
    let refused = grow(&mut copy).expect("the limit holds for the copy");
    assert_eq!((refused.limit_bytes, refused.used_bytes), (limits.memory_bytes, copy.memory().held_bytes()));
}

/// A tree of two branching levels, with a node on the free chain.
fn sound() -> RadixTree<Toy<8>> {
    let mut tree = RadixTree::default();
    for (bits, len) in [(0b00, 2), (0b0100, 4), (0b0111, 4), (0b1, 1), (0b1111_1111, 8)] {
        tree.insert(route(bits, len, 1)).unwrap();
    }
    tree.remove(route::<Toy<8>>(0b1, 1, 1).prefix).unwrap();
    tree.check().unwrap();
    tree
}

#[test]
fn check_finds_what_is_broken() {
    type Break = fn(&mut RadixTree<Toy<8>>);
    /// The node of a prefix.
    fn node(tree: &mut RadixTree<Toy<8>>, bits: u128, len: u8) -> &mut RadixNode<Toy<8>> {
        let at = tree.descend(route::<Toy<8>>(bits, len, 1).prefix).top.unwrap();
        &mut tree.nodes[at as usize]
    }
    let faults: [(&str, Break); 14] = [
        ("bits after the length are zero", |tree| node(tree, 0b00, 2).key = Toy::from_bits(1)),
        ("a node has a route or two children", |tree| node(tree, 0b00, 2).next_hop = 0),
        ("a host prefix has no children", |tree| node(tree, 0b1111_1111, 8).children[0] = 1),
        ("a child exists", |tree| node(tree, 0b00, 2).children[1] = 77),
        ("a child extends its parent", |tree| node(tree, 0b0111, 4).len = 1),
        ("a child extends its parent", |tree| {
            let same = *node(tree, 0b01, 2);
            *node(tree, 0b0111, 4) = RadixNode { children: [ROOT; 2], ..same };
        }),
        ("a child continues with the bit of its side", |tree| node(tree, 0b01, 2).children.reverse()),
        ("the free chain has the recorded length", |tree| tree.free_len += 1),
        ("every node is in the tree or free", |tree| (tree.free, tree.free_len) = (ROOT, 0)),
        ("the number of routes is right", |tree| tree.routes += 1),
        ("a node has a route or two children", |tree| node(tree, 0b01, 2).children[1] = ROOT),
        ("a free node has no prefix and no route", |tree| {
            let free = tree.free as usize;
            tree.nodes[free].len = 3;
        }),
        ("a slot has the longest node and route that contain it", |tree| {
            tree.index.replace_node(Prefix::ALL, ROOT, 1);
        }),
        ("a slot has the longest node and route that contain it", |tree| {
            tree.index.replace_cover(Prefix::ALL, ROOT, 1);
        }),
    ];
    for (invariant, damage) in faults {
        let mut tree = sound();
        damage(&mut tree);
        assert_eq!(tree.check().map_err(|error| error.invariant()), Err(invariant));
    }
}

#[test]
fn limits_can_change() {
    let mut tree = RadixTree::<u32>::default();
    tree.insert(route(1, 8, 1)).unwrap();
    let limits = Limits { memory_bytes: Some(tree.memory().held_bytes()), huge_pages: false };
    tree.set_limits(limits);
    let refused = (0..4_000).find_map(|at| tree.insert(route(at, 20, 1)).err()).expect("there is a limit");
    assert_eq!(refused.limit_bytes, limits.memory_bytes);
    let before = tree.len();
    tree.set_limits(Limits::default());
    tree.apply(&spread()).unwrap();
    assert_eq!(tree.len(), before + 32);
}

#[test]
fn every_next_hop_can_be_replaced() {
    let mut tree = sound();
    let before = routes(&tree);
    tree.map_next_hops(|route| hop(10 + u32::from(route.prefix.len())));
    let expected: Vec<_> = before
        .iter()
        .map(|route| Route::new(route.prefix, hop(10 + u32::from(route.prefix.len()))))
        .collect();
    assert_eq!(routes(&tree), expected);
    tree.check().unwrap();
}

#[test]
fn the_tree_is_a_set_of_routes() {
    let tree = sound();
    let set: &dyn Routes<Toy<8>> = &tree;
    assert_eq!((set.len(), set.is_empty()), (4, false));
    let host = route::<Toy<8>>(0b0111_0001, 8, 1).prefix;
    assert_eq!(set.parent(host), Some(route(0b0111, 4, 1)));
    assert_eq!(set.parent(Prefix::ALL), None);
    let mut walked = Vec::new();
    let whole: Result<(), ()> = set.try_for_each(Prefix::ALL, |route| {
        walked.push(route);
        Ok(())
    });
    assert_eq!((whole, walked), (Ok(()), routes(&tree)));
}

#[test]
fn iteration_goes_on_after_any_prefix() {
    let all: Vec<Prefix<u32>> = (0..=5)
        .flat_map(|len| {
            (0..1u32 << len)
                .map(move |at| Prefix::masked((u64::from(at) << (32 - len)) as u32, len as u8).unwrap())
        })
        .collect();
    let mut random = Random(3);
    for share in [0, 1, 5, 9, 10] {
        let mut tree = RadixTree::new(Limits::default());
        for &prefix in all.iter().filter(|_| random.below(10) < share) {
            tree.insert(Route::new(prefix, hop(1))).unwrap();
        }
        for &prefix in &all {
            let after: Vec<_> = tree.iter_after(prefix).collect();
            let expected: Vec<_> = tree.iter().filter(|route| route.prefix > prefix).collect();
            assert_eq!(after, expected, "{prefix}");
        }
    }
}
