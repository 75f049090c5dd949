//! Lookups: vector kernels for the branch-free search, portable code for everything else.

use crate::fib::parts::lanes;
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::kernel;
use super::layout::{Compact, Dxr, Form, Wide};
use super::options::Search;

impl<K: Key> Fib<K> for Dxr<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(self.find_key(key).0)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if self.search == Search::BranchFree
            && lanes::filled(isa, keys.len())
            && let Some(view) = self.view()
        {
            return lanes::for_each_block(keys, results, |keys, results| match self.form {
                Form::Compact(_) => kernel::block::<false>(isa, &view, keys, results),
                Form::Wide(_) => kernel::block::<true>(isa, &view, keys, results),
            });
        }
        match &self.form {
            Form::Compact(form) => self.batch(form, keys, results),
            Form::Wide(form) => self.batch(form, keys, results),
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
            Form::Compact(form) => form.walk(self.geometry),
            Form::Wide(form) => form.walk(self.geometry),
        }
    }
}
