//! The trait `Fib`.

use fibula::fib::{CheckError, Fib, Updatable};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};

use super::layout::{Data, Index, Miht, Word};

impl<K: Key, W: Word, const M: usize> Fib<K> for Miht<K, W, M> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.find(key)
    }

    fn memory(&self) -> Memory {
        let in_use =
            |array: Memory, count: usize, bytes: usize| Memory { lookup_bytes: count * bytes, ..array };
        let Self { tree, roots, data, .. } = self;
        let nodes = tree.nodes.len() - tree.free_len;
        in_use(memory::of(&tree.nodes), nodes, size_of::<Index<W, M>>())
            + in_use(memory::of(roots), roots.len() - self.free_roots, size_of::<u32>())
            + in_use(memory::of(data), data.len() - self.free_len, size_of::<Data<K>>())
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}
