//! One family of a table, as the writer has it: the routes, and the structure that follows them.

use std::sync::Arc;

use crate::fib::in_place::{self, InPlace, Publication};
use crate::fib::registry::{self, Algorithm};
use crate::fib::{Applied, Fib};
use crate::memory::{Limits, Memory, OutOfMemory};
use crate::net::{Change, Key, Prefix, Routes};
use crate::rib::{Before, Rib};

use super::options::{Outcome, TableError};

/// The routes of a family, and the structure.
pub(super) struct FamilyWriter<K: Key> {
    pub(super) rib: Rib<K>,
    algorithm: Algorithm<K>,
    engine: Engine<K>,
    limits: Limits,
    /// What the routes were before the changes at hand, in order.
    log: Vec<Before<K>>,
    /// The prefixes that changed, ascending.
    prefixes: Vec<Prefix<K>>,
}

/// A structure.
enum Engine<K: Key> {
    /// It is changed in place.
    InPlace(Box<dyn InPlace<K>>),
    /// It is built anew at every change.
    Rebuilt(Arc<dyn Fib<K>>),
}

/// What changes need before readers can see them.
pub(super) enum Ready<K: Key> {
    /// Nothing has changed.
    Nothing,
    /// The structure has prepared them.
    InPlace,
    /// Another structure has to take its place.
    Replace(Replacement<K>),
}

/// A structure that was built aside.
pub(super) struct Replacement<K: Key>(Engine<K>);

impl<K: Key> Engine<K> {
    fn build(algorithm: &Algorithm<K>, routes: &dyn Routes<K>, limits: Limits) -> Result<Self, TableError> {
        Ok(match algorithm.in_place {
            Some(build) => Self::InPlace(build(routes, limits)?),
            None => Self::Rebuilt(algorithm.build(routes, limits)?.into()),
        })
    }
}

impl<K: Key> FamilyWriter<K> {
    pub(super) fn new(rib: Rib<K>, name: &str, limits: Limits) -> Result<Self, TableError> {
        let algorithm = registry::find(name)?;
        let engine = Engine::build(&algorithm, &rib, limits)?;
        Ok(Self { rib, algorithm, engine, limits, log: Vec::new(), prefixes: Vec::new() })
    }

    /// Returns what readers look up in.
    pub(super) fn reading(&self) -> Arc<dyn Fib<K>> {
        match &self.engine {
            Engine::InPlace(editor) => editor.reading(),
            Engine::Rebuilt(fib) => Arc::clone(fib),
        }
    }

    /// Changes the routes and prepares the structure, or leaves both as they were.
    pub(super) fn prepare(
        &mut self,
        changes: &[Change<K>],
        outcome: &mut Outcome,
    ) -> Result<Ready<K>, TableError> {
        let ready = self.change(changes, outcome).and_then(|()| self.prepare_engine());
        if ready.is_err() {
            self.undo();
        }
        ready
    }

    fn change(&mut self, changes: &[Change<K>], outcome: &mut Outcome) -> Result<(), TableError> {
        self.log.clear();
        self.prefixes.clear();
        self.prefixes.try_reserve(changes.len()).map_err(|_| OutOfMemory {
            wanted_bytes: size_of_val(changes),
            used_bytes: 0,
            limit_bytes: None,
        })?;
        let tally = self.rib.apply_logged(changes, &mut self.log)?;
        outcome.changed += tally.changed;
        outcome.unchanged += tally.unchanged;
        outcome.absent += tally.absent;
        let changed = changes.iter().zip(&self.log).filter(|(change, before)| match change {
            Change::Insert(route) => before.next_hop != Some(route.next_hop),
            Change::Remove(_) => before.next_hop.is_some(),
        });
        self.prefixes.extend(changed.map(|(change, _)| change.prefix()));
        self.prefixes.sort_unstable();
        self.prefixes.dedup();
        Ok(())
    }

    fn prepare_engine(&mut self) -> Result<Ready<K>, TableError> {
        if self.prefixes.is_empty() {
            return Ok(Ready::Nothing);
        }
        if let Engine::InPlace(editor) = &mut self.engine
            && editor.prepare(&self.prefixes, &self.rib)? == Applied::InPlace
        {
            return Ok(Ready::InPlace);
        }
        let built = Engine::build(&self.algorithm, &self.rib, self.limits)?;
        Ok(Ready::Replace(Replacement(built)))
    }

    /// Prepares what makes the structure smaller, looking at so many entries. Returns whether there is anything to publish.
    pub(super) fn tidy(&mut self, entries: usize) -> Result<bool, TableError> {
        let Engine::InPlace(editor) = &mut self.engine else { return Ok(false) };
        editor.tidy(entries)?;
        Ok(editor.retires() > 0)
    }

    /// Makes room for a copy of the entries, so that what is prepared can be published aside.
    pub(super) fn set_aside(&mut self) -> Result<(), TableError> {
        match &mut self.engine {
            Engine::InPlace(editor) => Ok(editor.set_aside()?),
            Engine::Rebuilt(_) => Ok(()),
        }
    }

    /// Takes the changes back.
    pub(super) fn undo(&mut self) {
        self.abandon();
        self.rib.undo(&mut self.log);
    }

    /// Forgets what the structure has prepared.
    pub(super) fn abandon(&mut self) {
        if let Engine::InPlace(editor) = &mut self.engine {
            editor.abandon();
        }
    }

    /// Returns the most units that publishing retires.
    pub(super) fn retires(&self) -> usize {
        match &self.engine {
            Engine::InPlace(editor) => editor.retires(),
            Engine::Rebuilt(_) => 0,
        }
    }

    /// Publishes what is prepared in place: all at once for new pins if `aside`, else entry by entry.
    pub(super) fn publish(&mut self, aside: bool, publication: &mut dyn Publication) {
        if let Engine::InPlace(editor) = &mut self.engine {
            if aside { editor.publish_aside(publication) } else { editor.publish(publication) }
        }
    }

    /// Makes the replacement the structure. Returns the bytes of the old one, which readers may still be in.
    pub(super) fn replace(&mut self, replacement: Replacement<K>) -> usize {
        let bytes = self.structure_memory().held_bytes();
        self.engine = replacement.0;
        bytes
    }

    /// Takes a unit back that was retired.
    pub(super) fn free(&mut self, retired: in_place::Retired) {
        if let Engine::InPlace(editor) = &mut self.engine {
            editor.free(retired);
        }
    }

    /// Returns the bytes of a retired unit.
    pub(super) fn bytes(&self, retired: in_place::Retired) -> usize {
        match &self.engine {
            Engine::InPlace(editor) => editor.bytes(retired),
            Engine::Rebuilt(_) => 0,
        }
    }

    pub(super) fn structure_memory(&self) -> Memory {
        match &self.engine {
            Engine::InPlace(editor) => editor.memory(),
            Engine::Rebuilt(fib) => fib.memory(),
        }
    }

    /// Verifies all invariants of routes and structure, given what is retired.
    pub(super) fn check(&self, retired: &[in_place::Retired]) -> Result<(), crate::check::CheckError> {
        self.rib.check()?;
        match &self.engine {
            Engine::InPlace(editor) => editor.check(retired),
            Engine::Rebuilt(fib) => fib.check(),
        }
    }
}
