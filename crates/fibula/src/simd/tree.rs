//! Walks down a tree without pointers, many side by side.

use core::hint::black_box;

/// The most walks that are kept in registers. The places of more are kept in memory, one by one: a compiler that is free
/// to choose moves them between both at every level, at two thirds of the rate.
pub const IN_REGISTERS: usize = 8;

/// A tree without pointers: full levels of nodes in one array, the root first, and after them leaves. A node has one
/// child more than keys, and is made of its keys.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a, N> {
    nodes: &'a [N],
    /// Keys of a node.
    keys: usize,
    /// Number of the full levels. Their nodes and one leaf are within `nodes`.
    levels: u32,
    /// Number of their nodes.
    full: usize,
}

impl<'a, N> Tree<'a, N> {
    /// Takes the nodes of a tree with so many keys a node and so many full levels.
    ///
    /// # Panics
    /// When the nodes of these levels and a leaf are more than there are, or keys of that number are no node.
    #[inline]
    pub fn new(nodes: &'a [N], keys: usize, levels: u32) -> Self {
        let (mut full, mut width) = (0_usize, 1_usize);
        for _ in 0..levels {
            (full, width) = (full.saturating_add(width), width.saturating_mul(keys + 1));
        }
        assert!(full < nodes.len() && size_of::<N>().is_multiple_of(keys), "full levels and a leaf");
        Self { nodes, keys, levels, full }
    }

    /// Returns walks that begin at the root.
    #[inline(always)]
    pub fn walks<const COUNT: usize>(self) -> TreeWalks<'a, N, COUNT> {
        TreeWalks { tree: self, level: 0, at: [1; COUNT] }
    }
}

/// Walks that are at the same level of a tree.
pub struct TreeWalks<'a, N, const COUNT: usize> {
    tree: Tree<'a, N>,
    /// At most that of the first leaves.
    level: u32,
    /// For each walk, one more than the keys before its node. Where the level is full, that is a node of it. The next
    /// place is then a sum without a constant, and the one is subtracted in the address.
    at: [usize; COUNT],
}

impl<N, const COUNT: usize> TreeWalks<'_, N, COUNT> {
    /// Steps from a full level down: each walk to the child that `child` returns for its node and its number, counted
    /// from 0. `keys` is that of the tree once more, as a constant: the compiler does not trust its own field after it
    /// has put the places into memory.
    ///
    /// # Panics
    /// When the level is that of leaves, there is no such child, or nodes have another number of keys.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn step(&mut self, keys: usize, child: impl Fn(&N, usize) -> usize) {
        assert!(self.level < self.tree.levels && keys == self.tree.keys, "leaves have no children");
        self.level += 1;
        let start = self.tree.nodes.as_ptr();
        let at = &mut self.at;
        each_lane::<COUNT>(|lane| {
            // SAFETY: the place is that of a node of a full level, which is within the nodes.
            let node = unsafe { &*start.wrapping_byte_add((at[lane] - 1) * (size_of::<N>() / keys)) };
            let child = child(node, lane);
            assert!(child <= keys, "a child of the node");
            at[lane] = at[lane] * (keys + 1) + child * keys;
        });
        if const { COUNT > IN_REGISTERS } {
            black_box(at);
        }
    }

    /// Returns the keys before the leaf that a walk has come to, and the leaf. `keys` is that of the tree.
    ///
    /// # Panics
    /// When there is no such leaf.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn leaf(&self, keys: usize, lane: usize) -> (usize, &N) {
        let before = self.at[lane] - 1;
        assert!(keys == self.tree.keys && before < self.tree.nodes.len() * keys, "a leaf that there is");
        // SAFETY: the keys before the leaf are those of whole nodes, and fewer than all.
        let leaf = unsafe { &*self.tree.nodes.as_ptr().wrapping_byte_add(before * (size_of::<N>() / keys)) };
        (before, leaf)
    }

    /// Returns, for each walk, the number of keys before its leaf, those of full levels left out, and those that `rank` counts of the
    /// leaf's own. Bounds are checked once for all walks. `keys` is that of the tree.
    ///
    /// # Panics
    /// When a walk is not at a leaf that there is, or `rank` counts more keys than a node has.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn ranks(&mut self, keys: usize, rank: impl Fn(&N, usize) -> usize) -> &[usize; COUNT] {
        assert!(keys == self.tree.keys && self.level == self.tree.levels, "walks are at leaves");
        assert!(greatest(&self.at) <= self.tree.nodes.len() * keys, "leaves that there are");
        if const { COUNT > IN_REGISTERS } {
            black_box(&mut self.at);
        }
        let start = self.tree.nodes.as_ptr();
        let first = self.tree.full * keys + 1;
        let at = &mut self.at;
        each_lane::<COUNT>(|lane| {
            // SAFETY: the keys before the leaf are those of whole nodes, and fewer than all.
            let leaf = unsafe { &*start.wrapping_byte_add((at[lane] - 1) * (size_of::<N>() / keys)) };
            let rank = rank(leaf, lane);
            assert!(rank <= keys, "keys of a node");
            at[lane] = at[lane] - first + rank;
        });
        if const { COUNT > IN_REGISTERS } {
            black_box(&mut self.at);
        }
        &self.at
    }
}

/// Calls `each` with each lane and the value at its place. Bounds are checked once.
///
/// # Panics
/// When there is no value at one of the places.
#[inline(always)]
#[allow(unsafe_code)]
pub fn each_value<V: Copy, const COUNT: usize>(
    values: &[V],
    places: &[usize; COUNT],
    mut each: impl FnMut(usize, V),
) {
    assert!(greatest(places) < values.len(), "values at all places");
    // Or the compiler keeps the places of the comparison in registers, one by one, and spills them.
    let places = if const { COUNT > IN_REGISTERS } { black_box(places) } else { places };
    // SAFETY: the place is at most the greatest.
    each_lane::<COUNT>(|lane| each(lane, unsafe { *values.get_unchecked(places[lane]) }));
}

/// Returns the greatest of the numbers.
#[inline(always)]
fn greatest<const COUNT: usize>(numbers: &[usize; COUNT]) -> usize {
    // By eights, which are vectors.
    let (eights, rest) = numbers.as_chunks::<8>();
    let mut most = [0; 8];
    for eight in eights {
        for (most, &number) in most.iter_mut().zip(eight) {
            *most = number.max(*most);
        }
    }
    let mut greatest = 0;
    for &number in most.iter().chain(rest) {
        greatest = number.max(greatest);
    }
    greatest
}

/// Calls `body` for each of `COUNT` lanes, at most 32, without a loop in the code.
#[inline(always)]
pub fn each_lane<const COUNT: usize>(mut body: impl FnMut(usize)) {
    const { assert!(COUNT <= 32) };
    macro_rules! lanes {
        ($($lane:literal)*) => { $(if const { $lane < COUNT } { body($lane); })* };
    }
    lanes!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
}
