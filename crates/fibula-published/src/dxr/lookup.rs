//! Lookups: vector kernels for the branch-free search, portable code for everything else.

use core::sync::atomic::Ordering;

use fibula::fib::{CheckError, Fib};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};
use fibula::unstable::parts::lanes;
use fibula::unstable::simd::Present;

use super::check::Walked;
use super::entries::Entries;
use super::kernel;
use super::layout::{Compact, Dxr, Form, Live, Shape, Wide};
use super::options::Search;
use super::view::Viewed;

impl Shape {
    /// Looks up a batch.
    fn lookup<K: Key, F: Entries + Viewed>(
        self,
        form: &F,
        isa: Present,
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if self.search == Search::BranchFree
            && lanes::filled(isa, keys.len())
            && let Some(view) = self.view(K::BITS, form)
        {
            return lanes::for_each_block(keys, results, |keys, results| match (F::WIDE, F::LIVE) {
                (false, false) => kernel::block::<false, false>(isa, &view, keys, results),
                (true, false) => kernel::block::<true, false>(isa, &view, keys, results),
                (false, true) => kernel::block::<false, true>(isa, &view, keys, results),
                (true, true) => kernel::block::<true, true>(isa, &view, keys, results),
            });
        }
        self.batch(form, keys, results);
    }
}

impl<K: Key> Fib<K> for Dxr<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(self.find_key(key).0)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        match &self.form {
            Form::Compact(form) => self.shape.lookup(form, isa, keys, results),
            Form::Wide(form) => self.shape.lookup(form, isa, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        match &self.form {
            Form::Compact(Compact { direct, ranges, next_hops, .. }) => {
                memory::of(direct) + memory::of(ranges) + memory::of(next_hops)
            }
            Form::Wide(Wide { direct, bases, next_hops }) => {
                memory::of(direct) + memory::of(bases) + memory::of(next_hops)
            }
        }
    }

    fn check(&self) -> Result<(), CheckError> {
        match &self.form {
            Form::Compact(form) => form.walk(self.shape.geometry),
            Form::Wide(form) => form.walk(self.shape.geometry),
        }
    }
}

impl<K: Key, F: Walked> Fib<K> for Live<K, F> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(self.shape.find_key(&self.form, key).0)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        self.shape.lookup(&self.form, isa, keys, results);
    }

    fn memory(&self) -> Memory {
        self.form.memory(self.used())
    }

    fn check(&self) -> Result<(), CheckError> {
        self.form.walk(self.shape.geometry, self.form.next_hops().len()).map(drop)
    }
}

impl<K, F> Live<K, F> {
    /// Returns the words of halves and of next hops up to the last ones.
    fn used(&self) -> [usize; 2] {
        [0, 1].map(|array| self.used[array].load(Ordering::Relaxed) as usize)
    }
}
