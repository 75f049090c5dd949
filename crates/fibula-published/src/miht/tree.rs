//! Changes of the B+-tree: keys inserted and nodes divided, keys removed and nodes joined.

use fibula::unstable::memory::{Budget, OutOfMemory};

use super::layout::{Index, Tree, Word};

/// Most children of a node of any geometry.
pub(super) const MOST: usize = 32;

/// Most levels: every node but the root has two children or more, and no key has more than 32 bits.
const LEVELS: usize = 33;

/// The way to a leaf: the nodes above it, and the child that was taken in each.
type TriePath = [(usize, usize); LEVELS];

impl<W: Word, const M: usize> Tree<W, M> {
    /// Makes a tree without keys.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn new(order: usize, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        assert!((3..=M.min(MOST)).contains(&order), "a node has 3 children or more, and fits its words");
        let mut nodes = budget.buffer(1)?;
        nodes.push(Index::of(&[], &[]));
        Ok(Self { nodes, root: 0, height: 0, keys: 0, order, free: W::default(), free_len: 0 })
    }

    /// Returns the fewest keys of a leaf, and of a node above the leaves, other than the root.
    pub(super) fn fewest(&self, is_leaf: bool) -> usize {
        if is_leaf { (self.order - 1) / 2 } else { self.order.div_ceil(2) - 1 }
    }

    /// Makes room for so many inserts, after which there are at most `fresh` keys more than now.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn reserve(
        &mut self,
        inserts: usize,
        fresh: usize,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        if inserts == 0 {
            return Ok(());
        }
        // Every insert divides a node a level at most, and may add a level.
        let levels = self.height + 3 + inserts.ilog2() as usize;
        let divided = inserts.saturating_mul(levels);
        // Nor are there more nodes than if all had their fewest keys.
        let leaves = (self.keys + fresh) / self.fewest(true) + 1;
        let children = self.fewest(false) + 1;
        let all = leaves + leaves.div_ceil(children - 1) + 1;
        let used = self.nodes.len() - self.free_len;
        let wanted = divided.min(all.saturating_sub(used));
        budget.reserve_an_eighth(&mut self.nodes, wanted.saturating_sub(self.free_len))
    }

    /// Notes the way to the leaf of a key, and returns the leaf.
    fn walk_to(&self, key: W, way: &mut TriePath) -> usize {
        let mut node = self.root;
        for step in &mut way[..self.height] {
            let child = self.nodes[node].child(key);
            *step = (node, child);
            node = self.nodes[node].below[child].number();
        }
        node
    }

    /// Inserts a key that the tree does not have, with what it leads to. There must be room.
    pub(super) fn insert(&mut self, key: W, below: usize) {
        let mut way = [(0, 0); LEVELS];
        let leaf = self.walk_to(key, &mut way);
        self.keys += 1;
        let at = self.nodes[leaf].child(key);
        let mut added = self.put(leaf, (key, at), (W::of(below), at), true);
        for &(node, child) in way[..self.height].iter().rev() {
            let Some((key, right)) = added else { return };
            added = self.put(node, (key, child), (W::of(right), child + 1), false);
        }
        if let Some((key, right)) = added {
            let root = Index::of(&[key], &[W::of(self.root), W::of(right)]);
            self.root = self.add(root);
            self.height += 1;
        }
    }

    /// Puts a key and a number into the places of a node. If it is full, returns a new node with the second half, and the key
    /// that divides the two.
    fn put(
        &mut self,
        node: usize,
        (key, key_at): (W, usize),
        (below, below_at): (W, usize),
        is_leaf: bool,
    ) -> Option<(W, usize)> {
        let old = self.nodes[node];
        let (len, more) = (old.len(), usize::from(!is_leaf));
        let (mut keys, mut all) = ([W::default(); MOST], [W::default(); MOST + 1]);
        insert_into(&mut keys, old.keys(), key_at, key);
        insert_into(&mut all, &old.below[..len + more], below_at, below);
        let (keys, all) = (&keys[..len + 1], &all[..len + 1 + more]);
        if keys.len() < self.order {
            self.nodes[node] = Index::of(keys, all);
            return None;
        }
        let half = keys.len() / 2;
        self.nodes[node] = Index::of(&keys[..half], &all[..half + more]);
        let right = Index::of(&keys[half + more..], &all[half + more..]);
        Some((keys[half], self.add(right)))
    }

    /// Removes a key that the tree has.
    pub(super) fn remove(&mut self, key: W) {
        let mut way = [(0, 0); LEVELS];
        let leaf = self.walk_to(key, &mut way);
        let Ok(at) = self.nodes[leaf].keys().binary_search(&key) else { return };
        self.keys -= 1;
        self.take_out(leaf, at, at);
        let (mut node, mut is_leaf) = (leaf, true);
        for &(above, child) in way[..self.height].iter().rev() {
            if self.nodes[node].len() >= self.fewest(is_leaf) {
                return;
            }
            self.mend(above, child, is_leaf);
            (node, is_leaf) = (above, false);
        }
        if self.height > 0 && self.nodes[self.root].len() == 0 {
            let only = self.nodes[self.root].below[0].number();
            self.give_up(self.root);
            self.root = only;
            self.height -= 1;
        }
    }

    /// Removes a key and a number from a node.
    fn take_out(&mut self, node: usize, key_at: usize, below_at: usize) {
        let old = &mut self.nodes[node];
        let len = old.len();
        old.keys.copy_within(key_at + 1..M - 1, key_at);
        old.below.copy_within(below_at + 1.., below_at);
        old.keys[M - 1] = W::of(len - 1);
    }

    /// Gives a child that has one key too few one of a neighbour's, or joins it with the neighbour.
    fn mend(&mut self, above: usize, child: usize, is_leaf: bool) {
        // The two neighbours, of which one is short, and the key between them.
        let left_at = child.saturating_sub(1);
        let number = |at: usize| self.nodes[above].below[at].number();
        let (left, right) = (number(left_at), number(left_at + 1));
        let (one, other) = (self.nodes[left], self.nodes[right]);
        let more = usize::from(!is_leaf);
        let (mut keys, mut all) = ([W::default(); 2 * MOST], [W::default(); 2 * MOST]);
        let (mut count, mut numbers) = (0, 0);
        let middle = [self.nodes[above].keys[left_at]];
        // Above the leaves, the key between two nodes belongs to what is joined.
        for part in [one.keys(), &middle[..more], other.keys()] {
            keys[count..count + part.len()].copy_from_slice(part);
            count += part.len();
        }
        for part in [&one.below[..one.len() + more], &other.below[..other.len() + more]] {
            all[numbers..numbers + part.len()].copy_from_slice(part);
            numbers += part.len();
        }
        let (keys, all) = (&keys[..count], &all[..numbers]);
        if count < self.order {
            self.nodes[left] = Index::of(keys, all);
            self.give_up(right);
            self.take_out(above, left_at, left_at + 1);
            return;
        }
        let half = (count - more) / 2;
        self.nodes[left] = Index::of(&keys[..half], &all[..half + more]);
        self.nodes[right] = Index::of(&keys[half + more..], &all[half + more..]);
        self.nodes[above].keys[left_at] = keys[half];
    }

    /// Returns the number of a new node, for which there is room.
    fn add(&mut self, node: Index<W, M>) -> usize {
        if self.free_len == 0 {
            debug_assert!(self.nodes.len() < self.nodes.capacity());
            self.nodes.push(node);
            return self.nodes.len() - 1;
        }
        let at = self.free.number();
        self.free = self.nodes[at].below[0];
        self.free_len -= 1;
        self.nodes[at] = node;
        at
    }

    fn give_up(&mut self, node: usize) {
        self.nodes[node].below[0] = self.free;
        self.free = W::of(node);
        self.free_len += 1;
    }
}

/// Copies words, with one more between them.
fn insert_into<W: Copy>(to: &mut [W], words: &[W], at: usize, word: W) {
    to[..at].copy_from_slice(&words[..at]);
    to[at] = word;
    to[at + 1..=words.len()].copy_from_slice(&words[at..]);
}
