//! Iterators over the tree, which do not allocate.

use crate::net::{Key, Prefix, Route};

use super::{ROOT, RadixNode};

/// Most nodes on the stack: one per level.
pub(super) const DEPTH: usize = 130;

/// Iterator over the routes inside a prefix, in order: by address, then by length.
#[derive(Debug, Clone)]
pub struct Subtree<'a, K> {
    nodes: &'a [RadixNode<K>],
    /// Nodes still to visit, the next one last.
    stack: [u32; DEPTH],
    depth: usize,
}

impl<'a, K: Key> Subtree<'a, K> {
    pub(super) fn new(nodes: &'a [RadixNode<K>], top: Option<u32>) -> Self {
        Self { nodes, stack: [top.unwrap_or(ROOT); DEPTH], depth: usize::from(top.is_some()) }
    }

    /// All routes after a prefix.
    pub(super) fn after(nodes: &'a [RadixNode<K>], prefix: Prefix<K>) -> Self {
        let mut after = Self::new(nodes, None);
        let mut at = (!nodes.is_empty()).then_some(ROOT);
        while let Some(node) = at.take() {
            let found = &nodes[node as usize];
            if !found.prefix().covers(prefix) {
                // All of the subtree comes after the prefix, or all of it before.
                if found.prefix() > prefix {
                    after.push(node);
                }
                break;
            }
            let [left, right] = found.children;
            if found.len == prefix.len() {
                after.push(right);
                after.push(left);
                break;
            }
            let side = found.side(prefix.addr());
            if side == 0 {
                after.push(right);
            }
            at = Some([left, right][side]).filter(|&child| child != ROOT);
        }
        after
    }

    /// Visits a node, if it is one, before those that were pushed earlier.
    fn push(&mut self, node: u32) {
        if node != ROOT {
            self.stack[self.depth] = node;
            self.depth += 1;
        }
    }
}

impl<K: Key> Iterator for Subtree<'_, K> {
    type Item = Route<K>;

    #[inline]
    fn next(&mut self) -> Option<Route<K>> {
        while self.depth > 0 {
            self.depth -= 1;
            let node = &self.nodes[self.stack[self.depth] as usize];
            self.push(node.children[1]);
            self.push(node.children[0]);
            if let Some(route) = node.route() {
                return Some(route);
            }
        }
        None
    }
}

/// Iterator over the routes that contain a prefix, shortest first.
#[derive(Debug, Clone)]
pub struct CoveringRoutes<'a, K> {
    nodes: &'a [RadixNode<K>],
    prefix: Prefix<K>,
    at: Option<u32>,
}

impl<'a, K: Key> CoveringRoutes<'a, K> {
    pub(super) fn new(nodes: &'a [RadixNode<K>], prefix: Prefix<K>) -> Self {
        Self { nodes, prefix, at: Some(ROOT) }
    }
}

impl<K: Key> Iterator for CoveringRoutes<'_, K> {
    type Item = Route<K>;

    fn next(&mut self) -> Option<Route<K>> {
        loop {
            let node = self.nodes.get(self.at? as usize)?;
            if !node.prefix().covers(self.prefix) {
                self.at = None;
                return None;
            }
            self.at = if node.len < self.prefix.len() {
                Some(node.children[node.side(self.prefix.addr())]).filter(|&child| child != ROOT)
            } else {
                None
            };
            if let Some(route) = node.route() {
                return Some(route);
            }
        }
    }
}
