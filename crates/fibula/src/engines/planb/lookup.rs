//! Lookups: the kernel of the chosen instruction set, by the width of codes.

use crate::fib::parts::ranges::Merge;
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::Memory;
use crate::net::{Key, KeyKind, Keys, NextHop};
use crate::simd::{self, Present};

use super::layout::{Codes, Node, PlanB};
use super::scalar::{ANY, Host, Network, Order};
use super::{DOUBLE, NAME, UNMERGED, kernel};

impl<K: Key, N: Node> Fib<K> for PlanB<K, N> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        let isa = simd::chosen();
        match (&self.codes, self.levels) {
            (Codes::Narrow(codes), 5) if const { Self::UNROLLED } => {
                kernel::one::<_, _, _, 5>(isa, self, codes, key)
            }
            (Codes::Narrow(codes), _) => kernel::one::<_, _, _, ANY>(isa, self, codes, key),
            (Codes::Wide(codes), _) => kernel::one::<_, _, _, ANY>(isa, self, codes, key),
        }
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        self.batch_of::<Host>(isa, keys, results);
    }

    fn lookup_keys_on(&self, isa: Present, keys: Keys<'_, K>, results: &mut [Option<NextHop>]) {
        match keys {
            Keys::Host(keys) => self.batch_of::<Host>(isa, keys, results),
            Keys::Network(keys) => self.batch_of::<Network>(isa, keys, results),
            Keys::Strided(_) => {
                assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
                keys.for_each_block(|first, block| {
                    self.batch_of::<Host>(isa, block, &mut results[first..first + block.len()]);
                });
            }
        }
    }

    fn prefetches_keys(&self, _: Present) -> bool {
        true
    }

    fn memory(&self) -> Memory {
        self.bytes()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        // Those of toys are a quarter as large.
        let is_double = matches!(size_of::<N>(), 32 | 128);
        Some(self.parts(match self.merge {
            Merge::Never => UNMERGED,
            _ if is_double => DOUBLE,
            _ => NAME,
        }))
    }
}

impl<K: Key, N: Node> PlanB<K, N> {
    /// Whether there is code without a loop over the levels.
    const UNROLLED: bool = matches!(K::KIND, KeyKind::Ipv6) && N::KEYS == 8;

    fn batch_of<O: Order<K>>(&self, isa: Present, keys: &[O::Item], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        // A loop over the levels costs a tenth in portable code and a twentieth in vectors: tables of today have that written out.
        match (&self.codes, self.levels) {
            (Codes::Narrow(codes), 5) if const { Self::UNROLLED } => {
                kernel::batch::<K, N, O, _, 5>(isa, self, codes, keys, results);
            }
            (Codes::Narrow(codes), _) => kernel::batch::<K, N, O, _, ANY>(isa, self, codes, keys, results),
            (Codes::Wide(codes), _) => kernel::batch::<K, N, O, _, ANY>(isa, self, codes, keys, results),
        }
    }
}
