//! Lookups: vector kernels, and portable code for batches shorter than a vector.

use crate::fib::parts::lanes;
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::{self, Memory};
use crate::net::{Ipv4Key, NextHop};
use crate::simd::{self, Present};

use super::kernel;
use super::layout::{ROOT, RangeBtree, RangeEncoding};

impl<K: Ipv4Key> Fib<K> for RangeBtree<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        kernel::one(simd::chosen(), self, key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if isa == Present::SCALAR {
            return self.batch(keys, results);
        }
        // Kernels take whole vectors of keys.
        if !lanes::filled(isa, keys.len()) {
            for (&key, result) in keys.iter().zip(results) {
                *result = kernel::one(isa, self, key);
            }
            return;
        }
        let nodes = &self.nodes[..];
        // By form once a batch. The number of registers and the width are then constants of a kernel.
        match &self.form {
            RangeEncoding::Few { nodes: 2 } => {
                let nodes = nodes.first_chunk().expect("two registers of each");
                lanes::for_each_block(keys, results, |keys, found| kernel::sixteen(isa, nodes, keys, found));
            }
            RangeEncoding::Few { .. } => {
                let (lasts, values) = (first(nodes), first(&nodes[ROOT..]));
                lanes::for_each_block(keys, results, |keys, found| {
                    kernel::thirty_two::<true>(isa, lasts, values, 0, keys, found);
                });
            }
            RangeEncoding::Tree(tree) => {
                let root = first(nodes);
                let kernel = match tree.width {
                    0 => kernel::tree::<0>,
                    1 => kernel::tree::<1>,
                    _ => kernel::tree::<2>,
                };
                lanes::for_each_block(keys, results, |keys, found| {
                    // The root's child of each key is in `found`, from which the levels below go on.
                    kernel::thirty_two::<false>(isa, root, root, ROOT as u32, keys, found);
                    kernel(isa, nodes, tree, keys, found);
                });
            }
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.nodes)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.parts())
    }

    fn exported(&self) -> Option<Sections<'_>> {
        Some(self.searched())
    }
}

/// Returns the first nodes. There must be enough of them.
fn first<T>(nodes: &[T]) -> &[T; ROOT] {
    nodes.first_chunk().expect("four registers")
}
