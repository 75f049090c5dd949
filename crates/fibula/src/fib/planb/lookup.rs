//! Lookups: the kernel of the chosen instruction set, by the width of codes.

use crate::fib::{CheckError, Fib};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::{self, Present};

use super::kernel;
use super::layout::{Codes, Node, PlanB};

impl<K: Key, N: Node> Fib<K> for PlanB<K, N> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        match &self.codes {
            Codes::Narrow(codes) => kernel::one(simd::chosen(), self, codes, key),
            Codes::Wide(codes) => kernel::one(simd::chosen(), self, codes, key),
        }
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        match &self.codes {
            Codes::Narrow(codes) => kernel::batch(isa, self, codes, keys, results),
            Codes::Wide(codes) => kernel::batch(isa, self, codes, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        self.bytes()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
