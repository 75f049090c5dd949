//! All nodes of a tree, each before those below it.

use crate::net::Key;

use super::iter::DEPTH;
use super::{IndexSlot, ROOT, RadixNode};

/// Iterator over the nodes of at most so many bits, each before its children, with the node above and the last with a route
/// above.
pub(super) struct Preorder<'a, K> {
    nodes: &'a [RadixNode<K>],
    longest: u8,
    stack: [(u32, IndexSlot); DEPTH],
    depth: usize,
}

impl<'a, K: Key> Preorder<'a, K> {
    pub(super) fn new(nodes: &'a [RadixNode<K>], longest: u8) -> Self {
        let above = IndexSlot { node: ROOT, cover: ROOT };
        Self { nodes, longest, stack: [(ROOT, above); DEPTH], depth: usize::from(!nodes.is_empty()) }
    }
}

impl<'a, K: Key> Iterator for Preorder<'a, K> {
    type Item = (u32, &'a RadixNode<K>, IndexSlot);

    fn next(&mut self) -> Option<Self::Item> {
        self.depth = self.depth.checked_sub(1)?;
        let (at, above) = self.stack[self.depth];
        let node = &self.nodes[at as usize];
        let cover = if node.next_hop == 0 { above.cover } else { at };
        for child in node.children {
            if child != ROOT && self.nodes[child as usize].len <= self.longest {
                self.stack[self.depth] = (child, IndexSlot { node: at, cover });
                self.depth += 1;
            }
        }
        Some((at, node, above))
    }
}
