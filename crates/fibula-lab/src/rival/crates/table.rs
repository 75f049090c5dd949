//! A crate's table as a contestant.

use core::error::Error;
use core::hint::black_box;
use core::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fibula::fib::registry::Role;
use fibula::memory::Memory;
use fibula::net::{Change, Key, NextHop, Prefix, Routes};

use crate::bench::{Bounds, Contestant, Kernel, Native, Prepared, Shape, Structure};
use crate::rival::Tools;

/// A crate's table for one family.
pub(super) trait Table: Send + Sync + Sized + 'static {
    /// The type that routes are inserted into.
    type Filling;
    /// The type of its keys.
    type Key: Copy + Send + Sync;

    fn new() -> Self::Filling;
    /// Adds a route to the prefix of the first `len` bits of a right-aligned address.
    fn insert(table: &mut Self::Filling, bits: u128, len: u8, next_hop: u32) -> Result<(), Box<dyn Error>>;
    fn finish(table: Self::Filling) -> Self;
    /// Gives the prefix of the first `len` bits of a right-aligned address this next hop, or removes its route.
    fn change(&mut self, _bits: u128, _len: u8, _next_hop: Option<u32>) -> Result<(), Box<dyn Error>> {
        Err("its form for lookups does not change".into())
    }
    fn key(bits: u128) -> Self::Key;
    /// Returns the next hop of the longest match, 0 if there is none.
    fn longest(&self, key: &Self::Key) -> u32;
    /// Its size by its own count.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

pub(super) fn contestant<K: Key, T: Table>(name: &'static str, tools: &Tools) -> Contestant<K> {
    let heap = tools.heap;
    Contestant {
        name: name.to_owned(),
        rival: true,
        kernels: vec![Kernel::of_rival("scalar")],
        role: Role::Published,
        bounds: Bounds::NONE,
        build: Box::new(move |routes| {
            // A crate that panics refuses the table; the others go on.
            let built = catch_unwind(AssertUnwindSafe(|| Rival::<T>::build(routes, heap)));
            let rival = built.unwrap_or_else(|_| Err("it panicked while it was built".into()));
            Ok(Structure::Native(Box::new(rival.map_err(|error| format!("{name}: {error}"))?)))
        }),
    }
}

/// A table with its size.
struct Rival<T> {
    table: T,
    memory: Memory,
}

impl<T: Table> Rival<T> {
    fn build<K: Key>(routes: &dyn Routes<K>, heap: Option<fn() -> usize>) -> Result<Self, Box<dyn Error>> {
        let before = heap.map(|heap| heap());
        let mut table = T::new();
        routes.try_for_each(Prefix::ALL, |route| {
            T::insert(&mut table, route.prefix.addr().to_bits(), route.prefix.len(), route.next_hop.id())
        })?;
        let table = T::finish(table);
        let allocated = heap.zip(before).map(|(heap, before)| heap().saturating_sub(before));
        let memory = Memory {
            lookup_bytes: table.bytes().or(allocated).unwrap_or(0),
            allocated_bytes: allocated.or(table.bytes()).unwrap_or(0),
            mapped_bytes: 0,
            huge_bytes: 0,
        };
        Ok(Self { table, memory })
    }
}

impl<K: Key, T: Table> Native<K> for Rival<T> {
    fn memory(&self) -> Memory {
        self.memory
    }

    fn apply(&mut self, changes: &[Change<K>]) -> Result<Duration, String> {
        let begin = Instant::now();
        for change in changes {
            let (prefix, next_hop) = match *change {
                Change::Insert(route) => (route.prefix, Some(route.next_hop.id())),
                Change::Remove(prefix) => (prefix, None),
            };
            self.table
                .change(prefix.addr().to_bits(), prefix.len(), next_hop)
                .map_err(|error| error.to_string())?;
        }
        Ok(begin.elapsed())
    }

    fn prepare(&self, keys: &[K], room: usize) -> Box<dyn Prepared + '_> {
        let keys = keys.iter().map(|key| T::key(key.to_bits())).collect();
        Box::new(NativeKeys { table: &self.table, keys, answers: vec![SPOILT; room] })
    }
}

/// A next hop that no table has.
const SPOILT: u32 = u32::MAX;

/// Keys in the crate's own form.
struct NativeKeys<'a, T: Table> {
    table: &'a T,
    keys: Vec<T::Key>,
    answers: Vec<u32>,
}

impl<T: Table> Prepared for NativeKeys<'_, T> {
    fn lookup(&mut self, shape: Shape, keys: Range<usize>) {
        let room = self.answers.len().max(1);
        match shape {
            Shape::Single | Shape::Batch(_) => {
                for block in self.keys[keys].chunks(room) {
                    for (key, answer) in block.iter().zip(&mut self.answers) {
                        *answer = self.table.longest(key);
                    }
                    black_box(&mut self.answers);
                }
            }
            Shape::Dependent => {
                // Always 0, which neither compiler nor processor can know. So the place of the next key depends on
                // the answer before it.
                let nothing = black_box(0_u32);
                let mut last = 0;
                let keys = &self.keys[keys];
                for (at, answer) in (0..keys.len()).zip((0..room).cycle()) {
                    last = self.table.longest(&keys[at + (last & nothing) as usize]);
                    self.answers[answer] = last;
                }
            }
        }
    }

    fn take(&mut self, results: &mut [Option<NextHop>]) {
        for (result, answer) in results.iter_mut().zip(&mut self.answers) {
            *result = NextHop::new(core::mem::replace(answer, SPOILT));
        }
    }
}
