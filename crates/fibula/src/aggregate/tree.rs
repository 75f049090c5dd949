//! The binary tree of a table's answers, with the next hops that each node could have.

use crate::fib::ranges::{self, Merge};
use crate::memory::{Budget, Limits, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Route, Routes, prefixes_of};

/// The word of addresses without a route.
const NONE: u32 = 0;

/// Next hops of which a node could have any without a route more below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    /// This one; [`NONE`] where any address below has no route.
    One(u32),
    /// Those of the list that begins here: their number, then the words, which ascend.
    List(u32),
}

#[derive(Debug, Clone, Copy)]
struct TreeNode {
    is_leaf: bool,
    set: Set,
}

/// The answers of all addresses of a prefix: leaves are the longest runs of addresses with one answer that are prefixes.
#[derive(Debug)]
pub(super) struct AnswerTree<K> {
    within: Prefix<K>,
    /// Each node after the nodes below it, the left ones first.
    nodes: Vec<TreeNode>,
    lists: Vec<u32>,
    /// Lengths of nodes that wait for their sibling, and their places.
    open: Vec<(u8, u32)>,
    /// The list at hand.
    merged: Vec<u32>,
    budget: Budget,
}

impl<K: Key> AnswerTree<K> {
    pub(super) fn new(limits: Limits) -> Self {
        let (nodes, lists, open, merged) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { within: Prefix::ALL, nodes, lists, open, merged, budget: Budget::new(limits) }
    }

    /// Grows the tree of the answers in a prefix: passes 1 and 2 of the paper.
    pub(super) fn grow(&mut self, routes: &dyn Routes<K>, within: Prefix<K>) -> Result<(), OutOfMemory> {
        self.within = within;
        self.nodes.clear();
        self.lists.clear();
        self.open.clear();
        let mut last: Option<ranges::Range<K>> = None;
        ranges::try_for_each(routes, within, Merge::EqualNeighbours, |range| {
            match last.replace(range).zip(range.start.previous()) {
                Some((before, end)) => self.run(before, end),
                None => Ok(()),
            }
        })?;
        last.map_or(Ok(()), |range| self.run(range, within.last()))
    }

    /// Adds the leaves of addresses with one answer.
    fn run(&mut self, range: ranges::Range<K>, end: K) -> Result<(), OutOfMemory> {
        let set = Set::One(NextHop::word(range.next_hop));
        for leaf in prefixes_of(range.start..=end) {
            self.push(leaf.len(), TreeNode { is_leaf: true, set })?;
            // Siblings come one after the other.
            while let [.., (left_len, left), (len, right)] = self.open[..]
                && left_len == len
            {
                let set = self.join(self.nodes[left as usize].set, self.nodes[right as usize].set)?;
                self.open.truncate(self.open.len() - 2);
                self.push(len - 1, TreeNode { is_leaf: false, set })?;
            }
        }
        Ok(())
    }

    fn push(&mut self, len: u8, node: TreeNode) -> Result<(), OutOfMemory> {
        let place = u32::try_from(self.nodes.len()).map_err(|_| too_large())?;
        self.budget.push(&mut self.open, (len, place))?;
        self.budget.push(&mut self.nodes, node)
    }

    /// Returns what both sets have; all that either has if that is nothing.
    fn join(&mut self, left: Set, right: Set) -> Result<Set, OutOfMemory> {
        if left == right || right == Set::One(NONE) {
            return Ok(right);
        }
        if left == Set::One(NONE) {
            return Ok(left);
        }
        let mut merged = core::mem::take(&mut self.merged);
        let joined = self.merge(left, right, &mut merged).and_then(|()| self.set(&merged));
        self.merged = merged;
        joined
    }

    fn merge(&mut self, left: Set, right: Set, merged: &mut Vec<u32>) -> Result<(), OutOfMemory> {
        merged.clear();
        let most = self.words(&left).len() + self.words(&right).len();
        self.budget.reserve(merged, most)?;
        let (a, b) = (self.words(&left), self.words(&right));
        common(a, b, merged);
        if merged.is_empty() {
            merged.extend_from_slice(a);
            merged.extend_from_slice(b);
            merged.sort_unstable();
        }
        Ok(())
    }

    fn set(&mut self, words: &[u32]) -> Result<Set, OutOfMemory> {
        if let &[word] = words {
            return Ok(Set::One(word));
        }
        let begin = u32::try_from(self.lists.len()).map_err(|_| too_large())?;
        self.budget.reserve(&mut self.lists, words.len() + 1)?;
        self.lists.push(words.len() as u32);
        self.lists.extend_from_slice(words);
        Ok(Set::List(begin))
    }

    fn words<'a>(&'a self, set: &'a Set) -> &'a [u32] {
        match set {
            Set::One(word) => core::slice::from_ref(word),
            Set::List(begin) => {
                let begin = *begin as usize;
                &self.lists[begin + 1..][..self.lists[begin] as usize]
            }
        }
    }

    /// Returns whether any of the addresses has no route.
    pub(super) fn has_gap(&self) -> bool {
        self.nodes.last().is_some_and(|root| root.set == Set::One(NONE))
    }

    /// Returns the answer of all addresses if they have the same.
    pub(super) fn uniform(&self) -> Option<NextHop> {
        match self.nodes[..] {
            [TreeNode { set: Set::One(word), .. }] => NextHop::new(word),
            _ => None,
        }
    }

    /// Appends the fewest routes that give these answers below a route with this next hop, in order: pass 3 of the paper.
    pub(super) fn routes(
        &mut self,
        inherited: Option<NextHop>,
        out: &mut Vec<Route<K>>,
    ) -> Result<(), OutOfMemory> {
        debug_assert!(inherited.is_none() || !self.has_gap(), "no route takes an answer away");
        let begin = out.len();
        let mut waiting = [(self.within, NONE); 129];
        waiting[0].1 = NextHop::word(inherited);
        let mut count = 1;
        // Backwards each node comes before those below it, the right ones first.
        for at in (0..self.nodes.len()).rev() {
            let node = self.nodes[at];
            count -= 1;
            let (prefix, mut word) = waiting[count];
            let words = self.words(&node.set);
            if words.binary_search(&word).is_err() {
                word = words[0];
                if let Some(next_hop) = NextHop::new(word) {
                    self.budget.push(out, Route::new(prefix, next_hop))?;
                }
            }
            if !node.is_leaf
                && let Some((left, right)) = prefix.halves()
            {
                waiting[count] = (left, word);
                waiting[count + 1] = (right, word);
                count += 2;
            }
        }
        out[begin..].sort_unstable_by_key(|route| route.prefix);
        Ok(())
    }

    /// Frees what the tree took.
    pub(super) fn shrink(&mut self) {
        let Self { nodes, lists, open, merged, .. } = self;
        self.budget.free(core::mem::take(nodes));
        self.budget.free(core::mem::take(lists));
        self.budget.free(core::mem::take(open));
        self.budget.free(core::mem::take(merged));
    }
}

/// Appends what both lists have.
fn common(a: &[u32], b: &[u32], out: &mut Vec<u32>) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(&&left), Some(&&right)) = (a.peek(), b.peek()) {
        if left == right {
            out.push(left);
        }
        if left <= right {
            a.next();
        }
        if right <= left {
            b.next();
        }
    }
}

fn too_large() -> OutOfMemory {
    OutOfMemory { wanted_bytes: usize::MAX, used_bytes: 0, limit_bytes: None }
}
