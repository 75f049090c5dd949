//! A structure under test.

use fibula::fib::registry::{Engine, Update};
use fibula::fib::{Applied, BuildError, Fib};
use fibula::memory::Limits;
use fibula::net::{Change, Key, RouteSlice, Routes, Toy};

use crate::tables::Model;
use crate::verdict::{Failure, answers, edges, sound};

/// Keys whose structures are under test.
pub trait Tested: Key {
    /// Their registry entries, [`fibula_published::engines`], and [`others`]; of narrow keys, the library's engines, oracles and
    /// [`others`] alone, unless the feature `exhaustive` compiles all.
    ///
    /// Not a generic function, so that the toy widths are compiled once, here, for the machine, the fuzz targets and the
    /// tests of memory, as the library does for the real families.
    fn entries() -> Vec<Engine<Self>>;
}

macro_rules! tested {
    ($list:ident: $($key:ty),*) => {
        $(impl Tested for $key {
            fn entries() -> Vec<Engine<Self>> {
                let mut entries = $list();
                entries.extend(others());
                entries
            }
        })*
    };
}

#[cfg(feature = "exhaustive")]
use fibula_published::engines as narrow;

#[cfg(not(feature = "exhaustive"))]
fn narrow<K: Key>() -> Vec<Engine<K>> {
    let mut narrow = fibula::fib::engines();
    narrow.extend(fibula_published::oracles());
    narrow
}

/// Returns the engines under test that no list of engines has: the block that a small VRF has for its routes, and the example that
/// people copy to try an engine of their own.
#[must_use]
pub fn others<K: Key>() -> Vec<Engine<K>> {
    let mut others = Vec::from_iter(fibula::vrf::internals::engines());
    others.extend(fibula_example_engine::own());
    others
}

use fibula_published::engines as wide;

tested!(narrow: Toy<3>, Toy<8>, Toy<16>);
tested!(wide: u32, u128);

/// A structure, and how it came to hold its table.
pub struct Subject<K: Key> {
    /// Its registry entry.
    pub engine: Engine<K>,
    /// The structure.
    pub fib: Box<dyn Fib<K>>,
}

impl<K: Key> Subject<K> {
    /// Builds it.
    ///
    /// # Errors
    /// When the build refuses.
    pub fn build(engine: Engine<K>, routes: &dyn Routes<K>) -> Result<Self, Failure> {
        let fib = engine.build(routes, Limits::default())?;
        Ok(Self { engine, fib })
    }

    /// Builds it in a form that can be updated in place, if it has one.
    ///
    /// # Errors
    /// When the build refuses.
    pub fn build_updatable(engine: Engine<K>, routes: &dyn Routes<K>) -> Result<Self, Failure> {
        let fib = engine.build_updatable(routes, Limits::default())?;
        Ok(Self { engine, fib })
    }

    /// Builds it for a table that may exceed what its format can hold: the inner error then names the limit.
    ///
    /// # Errors
    /// When the build refuses for another reason, or for a limit although its registry entry has none.
    pub fn build_within_limits(
        engine: Engine<K>,
        routes: &dyn Routes<K>,
    ) -> Result<Result<Self, BuildError>, Failure> {
        match engine.build(routes, Limits::default()) {
            Ok(fib) => Ok(Ok(Self { engine, fib })),
            Err(refusal) if refusal.is_limit() && engine.limits.is_some() => Ok(Err(refusal)),
            Err(error) => Err(error.into()),
        }
    }

    /// Updates it: in place where it can be, otherwise by a build from `after`.
    ///
    /// # Errors
    /// When it refuses, or cannot be updated in the way that its registry entry says.
    pub fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<(), Failure> {
        let applied = match (self.engine.update, self.fib.updatable()) {
            (Update::InPlace, Some(fib)) => fib.apply(changes, after)?,
            (Update::Rebuild, None) => Applied::NeedsRebuild("it is always rebuilt"),
            (Update::InPlace, None) => {
                return Err("the registry says in-place, but the structure is not updatable".into());
            }
            (Update::Rebuild, Some(_)) => {
                return Err("the registry says rebuild, but the structure is updatable".into());
            }
        };
        if let Applied::NeedsRebuild(_) = applied {
            self.fib = self.engine.build_updatable(after, Limits::default())?;
        }
        Ok(())
    }
}

/// Applies batches of changes to an empty table, and compares with a model after each.
///
/// # Errors
/// As soon as the structure refuses, breaks an invariant, or answers differently from the model.
pub fn follow<K: Key>(engine: Engine<K>, batches: &[Vec<Change<K>>], keys: &[K]) -> Result<(), Failure> {
    let mut model = Model::<K>::default();
    let mut subject = Subject::build_updatable(engine, &RouteSlice::new(&[])?)?;
    for changes in batches {
        changes.iter().for_each(|&change| model.apply(change));
        let routes = model.routes();
        subject.apply(changes, &RouteSlice::new(&routes)?)?;
        sound(&*subject.fib, engine.name, &routes)?;
        let mut keys: Vec<K> = keys.to_vec();
        keys.extend(edges(model.0.keys().copied()));
        let expected: Vec<_> =
            keys.iter().map(|&key| model.lookup(key).map(|route| route.next_hop)).collect();
        answers(&*subject.fib, &engine, &routes, &keys, &expected)?;
    }
    Ok(())
}
