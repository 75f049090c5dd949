//! Changes in place: a path grown, a next hop set, an empty path pruned.

use crate::fib::{Applied, BuildError, Updatable};
use crate::memory::OutOfMemory;
use crate::net::{Change, Key, Prefix, Route, Routes};

use super::layout::{Node, ROOT};
use super::{BinaryTrie, NAME};

impl<K: Key> Updatable<K> for BinaryTrie<K> {
    fn apply(&mut self, changes: &[Change<K>], _after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        // Room for the whole batch first: a batch that does not fit changes nothing.
        let wanted = changes.iter().map(|change| self.missing(change)).sum();
        self.reserve(wanted).map_err(|error| BuildError::memory(NAME, error))?;
        for change in changes {
            match *change {
                Change::Insert(route) => {
                    self.insert(route).map_err(|error| BuildError::memory(NAME, error))?;
                }
                Change::Remove(prefix) => self.remove(prefix),
            }
        }
        Ok(Applied::InPlace)
    }
}

impl<K: Key> BinaryTrie<K> {
    /// Returns the most nodes that the change can add to the present ones. A path that another change of the batch
    /// prunes and this one restores needs no count: every path of a trie in between is a present one or a counted one.
    fn missing(&self, change: &Change<K>) -> usize {
        match change {
            Change::Insert(route) => usize::from(route.prefix.len()) - self.depth(route.prefix),
            Change::Remove(_) => 0,
        }
    }

    /// Returns how many nodes below the root exist on the path to `prefix`.
    fn depth(&self, prefix: Prefix<K>) -> usize {
        let mut at = ROOT;
        for index in 0..prefix.len() {
            at = self.nodes[at as usize].children[usize::from(prefix.addr().bit(index))];
            if at == ROOT {
                return index.into();
            }
        }
        prefix.len().into()
    }

    /// Reserves room for `wanted` nodes, the free ones included.
    fn reserve(&mut self, wanted: usize) -> Result<(), OutOfMemory> {
        let fresh = wanted.saturating_sub(self.free_len);
        if self.nodes.len() + fresh > u32::MAX as usize {
            return Err(OutOfMemory {
                wanted_bytes: fresh.saturating_mul(size_of::<Node>()),
                used_bytes: self.budget.used_bytes(),
                limit_bytes: Some(u32::MAX as usize * size_of::<Node>()),
            });
        }
        self.budget.reserve(&mut self.nodes, fresh)
    }

    /// Adds the route or changes its next hop. On an error the trie is unchanged.
    pub(super) fn insert(&mut self, route: Route<K>) -> Result<(), OutOfMemory> {
        self.reserve(usize::from(route.prefix.len()) - self.depth(route.prefix))?;
        let mut at = ROOT;
        for index in 0..route.prefix.len() {
            let side = usize::from(route.prefix.addr().bit(index));
            let mut next = self.nodes[at as usize].children[side];
            if next == ROOT {
                next = self.add();
                self.nodes[at as usize].children[side] = next;
            }
            at = next;
        }
        self.nodes[at as usize].next_hop = route.next_hop.id();
        Ok(())
    }

    /// Returns a new empty node, for which [`reserve`](Self::reserve) has made room.
    fn add(&mut self) -> u32 {
        if self.free == ROOT {
            debug_assert!(self.nodes.len() < self.nodes.capacity());
            self.nodes.push(Node::default());
            return (self.nodes.len() - 1) as u32;
        }
        let at = self.free;
        self.free = self.nodes[at as usize].children[0];
        self.free_len -= 1;
        self.nodes[at as usize] = Node::default();
        at
    }

    /// Removes the route, if there is one, and the nodes that then lead to no route.
    fn remove(&mut self, prefix: Prefix<K>) {
        // The root, and a node for each of up to 128 bits.
        let mut path = [ROOT; 129];
        for index in 0..prefix.len() {
            let at = path[usize::from(index)];
            let next = self.nodes[at as usize].children[usize::from(prefix.addr().bit(index))];
            if next == ROOT {
                return;
            }
            path[usize::from(index) + 1] = next;
        }
        self.nodes[path[usize::from(prefix.len())] as usize].next_hop = 0;
        // From the leaf up, as far as the nodes are empty.
        for index in (0..prefix.len()).rev() {
            let at = path[usize::from(index) + 1];
            let node = &self.nodes[at as usize];
            if node.next_hop != 0 || node.children != [ROOT; 2] {
                return;
            }
            let parent = path[usize::from(index)];
            self.nodes[parent as usize].children[usize::from(prefix.addr().bit(index))] = ROOT;
            self.nodes[at as usize].children = [self.free, ROOT];
            self.free = at;
            self.free_len += 1;
        }
    }
}
