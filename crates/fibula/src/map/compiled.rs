//! Maps compiled into engines.

use core::fmt;
use core::hash::Hash;
use core::ops::ControlFlow;
use std::collections::HashMap;

use crate::auto::{self, Workload};
use crate::fib::{BuildError, Fib};
use crate::memory::{self, Limits, Memory};
use crate::net::{Batch, BatchLookup, IntoKey, Key, Keys, NextHop, Prefix, Route, Routes};
use crate::rib::Rib;

use super::prefix_map::PrefixMap;
use super::slab::{index, number};

/// A map that no longer changes, compiled for lookups: an engine of [`fib`](crate::fib), and the values.
///
/// It looks up at the speed of the engine and then reads the value: for single addresses, batches, and batches inside packets.
/// It does not depend on the map that it was compiled from, and is `Send + Sync` if the values are.
///
/// ```
/// use fibula::ipnet::Ipv4Net;
/// use fibula::map::PrefixMap;
///
/// let sites = PrefixMap::<u32, &str>::from([
///     ("10.0.0.0/8".parse::<Ipv4Net>()?, "office"),
///     ("10.1.0.0/16".parse()?, "lab"),
/// ]);
/// let compiled = sites.compile()?;
/// let mut found = [None; 3];
/// compiled.lookup_batch(&[0x0a01_0203, 0x0a09_0909, 0xc000_0201], &mut found);
/// assert_eq!(found, [Some(&"lab"), Some(&"office"), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CompiledMap<K, V> {
    fib: Box<dyn Fib<K>>,
    /// By next hop, from 1 on.
    values: Vec<V>,
}

impl<K: Key, V: Clone> PrefixMap<K, V> {
    /// Compiles the map into the engine that [`fib::build`](crate::fib::build) chooses. Equal values are kept once, because
    /// engines are smaller and faster with fewer of them; values without `Hash` need [`compile_each`](Self::compile_each).
    ///
    /// # Errors
    /// When memory runs out. (The lists of values allocate as usual.)
    pub fn compile(&self) -> Result<CompiledMap<K, V>, BuildError>
    where
        V: Eq + Hash,
    {
        self.compile_for(Workload::default(), Limits::default())
    }

    /// Like [`compile`](Self::compile), for batches of another size than 256, or within limits on memory.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn compile_for(&self, workload: Workload, limits: Limits) -> Result<CompiledMap<K, V>, BuildError>
    where
        V: Eq + Hash,
    {
        let mut values = Vec::new();
        let mut known: HashMap<&V, NextHop> = HashMap::new();
        // By slot. Free slots have no number, and no route asks for one.
        let mut numbers = vec![None; self.values.end()];
        // Numbered in the order of the prefixes, so that equal maps compile to equal engines.
        for route in &self.rib {
            let value = self.values.get(route.next_hop);
            let at = known.entry(value).or_insert_with(|| {
                values.push(value.clone());
                number(values.len() - 1)
            });
            numbers[index(route.next_hop)] = Some(*at);
        }
        self.build(numbers, values, workload, limits)
    }

    /// Like [`compile`](Self::compile), for values of any type: each prefix keeps a value of its own. The engine is larger,
    /// because it needs more bits to tell more values apart.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn compile_each(&self) -> Result<CompiledMap<K, V>, BuildError> {
        let mut values = Vec::with_capacity(self.len());
        let mut numbers = vec![None; self.values.end()];
        for route in &self.rib {
            numbers[index(route.next_hop)] = Some(number(values.len()));
            values.push(self.values.get(route.next_hop).clone());
        }
        self.build(numbers, values, Workload::default(), Limits::default())
    }

    fn build(
        &self,
        numbers: Vec<Option<NextHop>>,
        values: Vec<V>,
        workload: Workload,
        limits: Limits,
    ) -> Result<CompiledMap<K, V>, BuildError> {
        let fib = auto::build(&Renumbered { rib: &self.rib, numbers }, workload, limits)?;
        Ok(CompiledMap { fib, values })
    }
}

impl<K: Key, V> CompiledMap<K, V> {
    /// Returns the value of the longest prefix that contains `key`.
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: impl IntoKey<K>) -> Option<&V> {
        self.fib.lookup_key(key.into_key()).map(|at| &self.values[index(at)])
    }

    /// Looks up `keys`, writing the value of `keys[i]` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch<'a>(&'a self, keys: &[K], results: &mut [Option<&'a V>]) {
        self.batch(keys).run(results);
    }

    /// Returns a batch of lookups of keys in any of the shapes of [`Keys`], to be run: see [`Batch`].
    pub fn batch<'a, 'k>(
        &'a self,
        keys: impl Into<Keys<'k, K>>,
    ) -> Batch<'k, K, impl BatchLookup<K, Option<&'a V>>> {
        let lookup = |isa, _: usize, keys: Keys<'_, K>, results: &mut [Option<&'a V>]| {
            // In blocks, so that the numbers stay in the first-level cache between the lookup and the reading of values.
            let mut next_hops = [None; BLOCK];
            keys.for_each_block(|first, block| {
                let results = &mut results[first..first + block.len()];
                for (keys, results) in block.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
                    let next_hops = &mut next_hops[..keys.len()];
                    self.fib.lookup_batch_on(isa, keys, next_hops);
                    for (result, at) in results.iter_mut().zip(next_hops) {
                        *result = at.and_then(|at| self.values.get(index(at)));
                    }
                }
            });
        };
        Batch::new(keys.into(), lookup)
    }

    /// Returns the engine. Its next hops number the values: [`value`](Self::value) has the value of each.
    #[must_use]
    pub fn fib(&self) -> &dyn Fib<K> {
        &*self.fib
    }

    /// Returns the value of a next hop of [`fib`](Self::fib); `None` for any other number.
    #[must_use]
    pub fn value(&self, next_hop: NextHop) -> Option<&V> {
        self.values.get(index(next_hop))
    }

    /// Returns the values: that of next hop `n` is the one before `n`.
    #[must_use]
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Returns the memory of the engine and the values. Memory that values allocate themselves is not included.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.fib.memory() + memory::of(&self.values)
    }
}

/// Shows the number of values and the memory.
impl<K: Key, V> fmt::Debug for CompiledMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledMap")
            .field("values", &self.values.len())
            .field("fib", &self.fib)
            .finish_non_exhaustive()
    }
}

/// Results that are looked up before their values are.
pub(super) const BLOCK: usize = 256;

/// The table of a map with other next hops.
pub(super) struct Renumbered<'a, K> {
    pub(super) rib: &'a Rib<K>,
    /// By slot; `None` where no prefix has the slot.
    pub(super) numbers: Vec<Option<NextHop>>,
}

impl<K: Key> Renumbered<'_, K> {
    fn renumber(&self, route: Route<K>) -> Route<K> {
        let number = self.numbers.get(index(route.next_hop)).copied().flatten();
        Route { next_hop: number.expect("every prefix was numbered"), ..route }
    }
}

impl<K: Key> Routes<K> for Renumbered<'_, K> {
    fn len(&self) -> usize {
        self.rib.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.rib.subnets(within).try_for_each(|route| each(self.renumber(route)))
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.rib.parent(prefix).map(|route| self.renumber(route))
    }

    fn visit_from_parent(
        &self,
        within: Prefix<K>,
        each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.rib.visit_from_parent(within, &mut |route| each(self.renumber(route)))
    }

    fn shared(&self) -> Option<&(dyn Routes<K> + Sync)> {
        // Routes and numbers only, and no values: a build on several threads demands nothing of `V`.
        Some(self)
    }
}
