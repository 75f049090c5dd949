//! The C++ loops as contestants.

use core::convert::Infallible;
use core::error::Error;
use core::marker::PhantomData;
use core::ops::Range;
use std::time::{Duration, Instant};

use fibula::fib::BuildError;
use fibula::fib::registry::Role;
use fibula::memory::Memory;
use fibula::net::{Key, NextHop, Prefix, Routes};

use super::form::{Form, Layout, Set};
use super::sys::{Call, Handle, Keys, Loop, Route};
use crate::bench::{Bounds, Contestant, Kernel, KeyPrefetch, Native, Prepared, Shape, Structure};

/// Returns the contestant of one form.
pub(super) fn contestant<K: Key>(form: Form) -> Contestant<K> {
    Contestant {
        name: form.name.to_owned(),
        rival: true,
        kernels: vec![Kernel::of_rival(form.set.name())],
        role: Role::Published,
        bounds: Bounds::NONE,
        build: Box::new(move |routes| Ok(Structure::Native(Box::new(Rival::<K>::build(form, routes)?)))),
    }
}

/// A table, with the loop that reads it.
struct Rival<K> {
    table: Handle,
    with: Loop,
    layout: Layout,
    build_time: Duration,
    family: PhantomData<fn(K)>,
}

impl<K: Key> Rival<K> {
    fn build(form: Form, routes: &dyn Routes<K>) -> Result<Self, Box<dyn Error>> {
        let with = Loop::of(form.set)
            .ok_or_else(|| format!("{}: this machine has no {}", form.name, form.set.name()))?;
        // The clock starts once the routes have the form that the C++ side takes.
        let mut all = Vec::with_capacity(routes.len());
        let Ok(()) = routes.try_for_each::<Infallible>(Prefix::ALL, |route| {
            let bits = route.prefix.addr().to_bits();
            all.push(Route {
                upper: (bits >> 64) as u64,
                lower: bits as u64,
                len: route.prefix.len().into(),
                next_hop: route.next_hop.id(),
            });
            Ok(())
        });
        let highest = all.iter().map(|route| route.next_hop).max().unwrap_or(0);
        if highest >= 1 << 31 {
            let (limit, need) = ((1 << 31) - 1, highest.into());
            return Err(BuildError::limit(form.name, "next hops (numbered from 1)", limit, need).into());
        }
        let begin = Instant::now();
        let table = Handle::build(&all, form.set == Set::Avx2)
            .ok_or_else(|| format!("{}: out of memory", form.name))?;
        let build_time = begin.elapsed();
        Ok(Self { table, with, layout: form.layout, build_time, family: PhantomData })
    }
}

impl<K: Key> Native<K> for Rival<K> {
    fn memory(&self) -> Memory {
        let (lookup_bytes, mapped_bytes) = self.table.bytes();
        Memory { lookup_bytes, allocated_bytes: 0, mapped_bytes, huge_bytes: mapped_bytes }
    }

    fn prepare(&self, keys: &[K], room: usize) -> Box<dyn Prepared + '_> {
        let keys = NativeKeys::new(self.layout, keys);
        let last = vec![UNTOUCHED; room];
        Box::new(NativeLookup { table: &self.table, with: self.with, keys, answers: last })
    }

    fn key_prefetch(&self) -> KeyPrefetch {
        KeyPrefetch::Kernel
    }

    fn build_time(&self) -> Option<Duration> {
        Some(self.build_time)
    }
}

/// Keys in one of the layouts.
enum NativeKeys {
    Host(Vec<u128>),
    Network(Vec<[u8; 16]>),
    Halves(Vec<u64>, Vec<u64>),
}

impl NativeKeys {
    fn new<K: Key>(layout: Layout, keys: &[K]) -> Self {
        let bits = keys.iter().map(|key| key.to_bits());
        match layout {
            Layout::Host => Self::Host(bits.collect()),
            Layout::Network => Self::Network(bits.map(u128::to_be_bytes).collect()),
            Layout::Halves => Self::Halves(
                bits.clone().map(|bits| (bits >> 64) as u64).collect(),
                bits.map(|bits| bits as u64).collect(),
            ),
        }
    }

    #[inline]
    fn part(&self, range: Range<usize>) -> Keys<'_> {
        match self {
            Self::Host(keys) => Keys::Host(&keys[range]),
            Self::Network(keys) => Keys::Network(&keys[range]),
            Self::Halves(upper, lower) => Keys::Halves(&upper[range.clone()], &lower[range]),
        }
    }
}

/// A next hop that no table has.
const UNTOUCHED: u32 = u32::MAX;

struct NativeLookup<'a> {
    table: &'a Handle,
    with: Loop,
    keys: NativeKeys,
    answers: Vec<u32>,
}

impl Prepared for NativeLookup<'_> {
    fn lookup(&mut self, shape: Shape, keys: Range<usize>) {
        let call = match shape {
            Shape::Single => Call::Single,
            Shape::Dependent => Call::Dependent,
            Shape::Batch(_) => Call::Batch,
        };
        self.table.lookup(self.with, call, self.keys.part(keys), &mut self.answers);
    }

    fn take(&mut self, results: &mut [Option<NextHop>]) {
        for (result, answer) in results.iter_mut().zip(&mut self.answers) {
            *result = NextHop::new(core::mem::replace(answer, UNTOUCHED));
        }
    }
}
