//! A block of its own as a structure, for the test machine.

use core::marker::PhantomData;

use crate::fib::registry::{Engine, Families, Role, Update};
use crate::fib::{BuildError, CheckError, Fib};
use crate::memory::{Budget, Limits, Memory, Shared};
use crate::net::{Key, NextHop, Routes};
use crate::simd::{self, Isa, Present};

use super::build::{self, BlockRefusal};
use super::check::check;
use super::layout::{BlockRoot, OBJECTS};
use super::walk;

const NAME: &str = "vrf-block";

/// One block.
struct Single<K> {
    words: Shared<u32>,
    root: BlockRoot,
    keys: PhantomData<fn(K)>,
}

impl<K: Key> Single<K> {
    fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let block = build::build(routes, &mut budget).map_err(|refusal| match refusal {
            BlockRefusal::Memory(error) => memory(error),
            // The build stops at the first object too many, so one more is all that is known.
            BlockRefusal::TooLarge => BuildError::limit(NAME, "objects", OBJECTS as u64, OBJECTS as u64 + 1),
        })?;
        let mut words = budget.buffer::<u32>(block.words.len()).map_err(memory)?;
        words.extend_from_slice(&block.words);
        Ok(Self { words: words.into(), root: BlockRoot::tree(block.before, block.levels), keys: PhantomData })
    }
}

impl<K: Key> Fib<K> for Single<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(walk::one(simd::chosen(), &walk::BlocksView::new(&self.words), self.root, key))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        // A column of keys in one VRF: each key has the same root.
        let roots = [self.root.0; 256];
        let view = walk::BlocksView::new(&self.words);
        for (keys, results) in keys.chunks(roots.len()).zip(results.chunks_mut(roots.len())) {
            walk::column(isa, &view, &roots[..keys.len()], keys, NextHop::words(results));
        }
    }

    fn memory(&self) -> Memory {
        self.words.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        check::<K>(&self.words, self.root.place(), self.root.levels())
    }
}

/// Returns the builder of blocks.
#[must_use]
pub fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![Engine {
        name: NAME,
        summary: "the routes of a small VRF, with windows of 32 bits in trees of cache lines",
        use_when: "a VRF is small",
        paper: "Fibula's own",
        families: Families::Both,
        role: Role::Own,
        update: Update::Rebuild,
        in_place: None,
        open: None,
        maps: false,
        limits: Some("32,768 objects"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Single::build(routes, limits)?)),
    }]
}
