//! The walk down.

use crate::fib::{CheckError, Fib, Updatable};
use crate::memory::{Memory, allocated};
use crate::net::{Key, NextHop};

use super::BinaryTrie;
use super::layout::{Node, ROOT};

impl<K: Key> Fib<K> for BinaryTrie<K> {
    fn lookup(&self, key: K) -> Option<NextHop> {
        let mut node = &self.nodes[ROOT as usize];
        let mut best = node.next_hop;
        for index in 0..K::BITS {
            let next = node.children[usize::from(key.bit(index))];
            if next == ROOT {
                break;
            }
            node = &self.nodes[next as usize];
            if node.next_hop != 0 {
                best = node.next_hop;
            }
        }
        NextHop::new(best)
    }

    fn memory(&self) -> Memory {
        Memory {
            lookup_bytes: (self.nodes.len() - self.free_len) * size_of::<Node>(),
            allocated_bytes: allocated(&self.nodes),
            mapped_bytes: 0,
        }
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}
