//! The walk down the trie.

use crate::fib::{CheckError, Fib, Updatable};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};

use super::BinaryTrie;
use super::layout::{Node, ROOT};

impl<K: Key> Fib<K> for BinaryTrie<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
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
        let live = self.nodes.len() - self.free_len;
        Memory { lookup_bytes: live * size_of::<Node>(), ..memory::of(&self.nodes) }
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}
