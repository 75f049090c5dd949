//! One family of a table, as the writer has it: the routes, and the structure that follows them.

use std::sync::Arc;

use crate::aggregate::Aggregated;
use crate::fib::in_place::{self, Publication, RoomExceeded, Rooms};
use crate::fib::registry::Engine;
use crate::fib::{Applied, Fib};
use crate::memory::{Limits, Memory};
use crate::net::{Change, Key, Prefix, Route};
use crate::rib::{Before, Rib, Sole};

use super::changed::{ChangedPrefixes, reserve};
use super::growth::Growth;
use super::options::{Options, Outcome, TableError};
use super::serving::{Replacement, Serving, Whole};
use super::uses::Uses;

/// The routes of a family, and the structure.
pub(crate) struct FamilyWriter<K: Key> {
    pub(crate) rib: Rib<K>,
    /// Fewer routes with the same answers. The engine is built from them.
    aggregated: Option<Aggregated<K>>,
    engine: Engine<K>,
    serving: Serving<K>,
    /// Structures that the one at hand has followed. Units of those that are gone went with them.
    pub(crate) generation: u32,
    limits: Limits,
    /// The previous state of each route that the present changes touch, in order. It undoes them if a later step fails.
    log: Vec<Before<K>>,
    /// Prefixes that readers do not see as they are in the routes, in the order of their changes.
    waiting: Vec<Prefix<K>>,
    /// Number of these that waited before the changes at hand, and the only route of each of the others, where it is known.
    waited: usize,
    soles: Vec<Option<Sole>>,
    /// Those of them that are being published, ascending, and the place in `waiting` where they begin.
    changed: ChangedPrefixes<K>,
    from: usize,
    /// A structure that is being built in the background.
    growth: Option<Growth<K>>,
    /// Bytes that lookups read and number of routes, when the structure was built.
    built: [usize; 2],
    /// The words that the listener has room for, kept because engines that follow are limited too.
    rooms: Rooms,
}

/// An engine is rebuilt once its memory has grown by 1/BLOAT since the last build, and by at least BLOAT_LEAST bytes.
const BLOAT: u128 = 6;
const BLOAT_LEAST: u128 = 1 << 14;

/// The step that makes prepared changes visible to readers.
pub(crate) enum PreparedChange<K: Key> {
    /// Nothing has changed, or changes wait.
    Nothing,
    /// The structure has prepared them.
    InPlace,
    /// Another structure has to take its place.
    Replace(Replacement<K>),
}

/// When changes are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At once, even if a structure has to be built for it.
    Now,
    /// At once if they can be made in place, else when a structure has been built in the background.
    Soon,
    /// Later.
    Later,
}

impl<K: Key> PreparedChange<K> {
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace)
    }

    pub(crate) fn replaces(&self) -> bool {
        matches!(self, Self::Replace(_))
    }
}

impl<K: Key> FamilyWriter<K> {
    pub(super) fn new(mut rib: Rib<K>, engine: Engine<K>, options: &Options) -> Result<Self, TableError> {
        Self::of(&mut rib, engine, options)
    }

    /// Takes the routes; on an error they are left where they are.
    pub(crate) fn of(rib: &mut Rib<K>, engine: Engine<K>, options: &Options) -> Result<Self, TableError> {
        let limits = options.limits;
        let aggregated = options.aggregate.then(|| Aggregated::new(rib, limits)).transpose()?;
        let routes = aggregated.as_ref().map_or(&*rib, Aggregated::rib);
        let serving = Serving::build(&engine, routes, limits)?;
        let (log, waiting, soles) = (Vec::new(), Vec::new(), Vec::new());
        let routes = routes.len();
        let mut family = Self {
            rib: core::mem::take(rib),
            aggregated,
            engine,
            serving,
            generation: 0,
            limits,
            log,
            waiting,
            waited: 0,
            soles,
            changed: ChangedPrefixes::default(),
            from: 0,
            growth: None,
            built: [0, routes],
            rooms: Rooms::default(),
        };
        family.built[0] = family.structure_memory().lookup_bytes;
        Ok(family)
    }

    /// Returns the routes that the structure is made of.
    fn routes(&self) -> &Rib<K> {
        self.aggregated.as_ref().map_or(&self.rib, Aggregated::rib)
    }

    /// Returns the engine that readers look up in.
    pub(crate) fn reading(&self) -> Arc<dyn Fib<K>> {
        match &self.serving {
            Serving::InPlace(editor) => editor.reading(),
            Serving::Rebuilt(fib) => Arc::clone(fib),
        }
    }

    /// Returns how many changed prefixes readers do not see yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Changes the routes and prepares the engine, or leaves both as they were. With `compact`, an engine that has grown by
    /// changes is rebuilt. With `atomic`, new pins see all of the changes or none.
    pub(crate) fn prepare(
        &mut self,
        changes: &[Change<K>],
        when: When,
        compact: bool,
        atomic: bool,
        outcome: &mut Outcome,
    ) -> Result<PreparedChange<K>, TableError> {
        // Without closures, which would each move a prepared change of some hundred bytes.
        let mut ready = match self.change(changes, outcome) {
            Ok(()) => self.prepare_engine(when, compact, atomic),
            Err(error) => Err(error),
        };
        if let Ok(replacing) = &mut ready
            && let Err(error) = self.within_rooms(replacing)
        {
            ready = Err(error);
        }
        if ready.is_err() {
            self.undo();
        }
        ready
    }

    /// Refuses a prepared change that replaces the engine by one that the listener has no room for.
    fn within_rooms(&self, ready: &mut PreparedChange<K>) -> Result<(), TableError> {
        if let PreparedChange::Replace(Replacement { engine, serving: Serving::InPlace(editor), .. }) = ready
        {
            editor.limit(&self.rooms).map_err(|exceeded| no_room(engine, exceeded))?;
        }
        Ok(())
    }

    /// Limits the words of each array, in this engine and in those that follow it, because a copy cannot grow.
    ///
    /// # Errors
    /// When an array has more words already. Nothing is limited then.
    pub(super) fn limit(&mut self, rooms: Rooms) -> Result<(), TableError> {
        if let Serving::InPlace(editor) = &mut self.serving {
            editor.limit(&rooms).map_err(|exceeded| no_room(&self.engine, exceeded))?;
        }
        self.rooms = rooms;
        Ok(())
    }

    /// Returns the words that the listener has room for.
    pub(super) fn rooms(&self) -> Rooms {
        self.rooms
    }

    fn change(&mut self, changes: &[Change<K>], outcome: &mut Outcome) -> Result<(), TableError> {
        self.log.clear();
        if let Some(aggregated) = &mut self.aggregated {
            aggregated.keep();
        }
        // From here on, `undo` can cut the list back to the changes of earlier calls.
        self.waited = self.waiting.len();
        self.soles.clear();
        reserve(&mut self.waiting, changes.len())?;
        reserve(&mut self.soles, changes.len())?;
        if let Some(growth) = &mut self.growth {
            // As many again for `undo`.
            reserve(&mut growth.missed, 2 * changes.len())?;
        }
        if let Serving::InPlace(editor) = &mut self.serving
            && !changes.is_empty()
        {
            editor.fetch(changes);
        }
        // The first step that changes anything. All memory that later steps need for undoing is reserved above.
        let tally = self.rib.apply_logged(changes, &mut self.log)?;
        outcome.changed += tally.changed;
        outcome.unchanged += tally.unchanged;
        outcome.absent += tally.absent;
        // A change without an effect does not wait: it would make the engine prepare a unit that stays as it is.
        let changed = changes.iter().zip(&self.log).filter(|(change, before)| match change {
            Change::Insert(route) => before.next_hop != Some(route.next_hop),
            Change::Remove(_) => before.next_hop.is_some(),
        });
        for (_, before) in changed {
            self.waiting.push(before.prefix);
            self.soles.push(before.sole);
        }
        if let Some(growth) = &mut self.growth {
            growth.missed.extend_from_slice(&self.waiting[self.waited..]);
        }
        if let Some(aggregated) = &mut self.aggregated {
            self.changed.fill(&self.waiting[self.waited..], &[])?;
            aggregated.follow(self.changed.prefixes(), &self.rib)?;
        }
        Ok(())
    }

    /// Builds a structure of other routes, which take the place of all that there are when it is published.
    pub(crate) fn prepare_all(&self, routes: &[Route<K>]) -> Result<PreparedChange<K>, TableError> {
        let mut rib = Rib::new(self.limits);
        for &route in routes {
            rib.insert(route)?;
        }
        let aggregated = match self.aggregated {
            Some(_) => Some(Aggregated::new(&rib, self.limits)?),
            None => None,
        };
        let routes = aggregated.as_ref().map_or(&rib, Aggregated::rib);
        let serving = Serving::build(&self.engine, routes, self.limits)?;
        let routes = Some(Box::new(Whole { rib, aggregated }));
        let engine = self.engine;
        let mut ready = PreparedChange::Replace(Replacement { engine, serving, routes, missed: Vec::new() });
        self.within_rooms(&mut ready)?;
        Ok(ready)
    }

    /// Builds another engine of the routes as they are, which takes the place of the present one when it is published.
    pub(super) fn prepare_other(&self, engine: Engine<K>) -> Result<PreparedChange<K>, TableError> {
        let serving = Serving::build(&engine, self.routes(), self.limits)?;
        let replacement = Replacement { engine, serving, routes: None, missed: Vec::new() };
        let mut ready = PreparedChange::Replace(replacement);
        self.within_rooms(&mut ready)?;
        Ok(ready)
    }

    /// Returns the engine that the family has once this is published.
    pub(super) fn engine_of(&self, ready: &PreparedChange<K>) -> Engine<K> {
        match ready {
            PreparedChange::Replace(replacement) => replacement.engine,
            PreparedChange::Nothing | PreparedChange::InPlace => self.engine,
        }
    }

    /// Updates the counts of routes by next hop for the present changes.
    pub(crate) fn count(&self, changes: &[Change<K>], uses: &mut Uses) {
        uses.change(changes, &self.log);
    }

    fn prepare_engine(
        &mut self,
        when: When,
        compact: bool,
        atomic: bool,
    ) -> Result<PreparedChange<K>, TableError> {
        if when == When::Later {
            return Ok(PreparedChange::Nothing);
        }
        if let Some(growth) = self.growth.take_if(|growth| growth.is_finished())
            && let Some(replacement) = growth.finish(self.routes())?
            && (when == When::Soon || replacement.missed.is_empty())
        {
            return Ok(PreparedChange::Replace(replacement));
        }
        if compact && self.growth.is_none() && self.is_bloated() {
            // Without memory for it, the structure stays as it is.
            if when == When::Soon {
                let _ = self.grow();
            } else if let Ok(replacement) = self.build() {
                return Ok(PreparedChange::Replace(replacement));
            }
        }
        if self.waiting.is_empty() {
            return Ok(PreparedChange::Nothing);
        }
        // Earlier changes wait for the engine that is being built, because it is built from a copy that has them.
        self.from = if self.growth.is_some() && when == When::Soon { self.waited } else { 0 };
        if let Serving::InPlace(editor) = &mut self.serving {
            // They are of the changes at hand alone, and a later call may have changed the routes inside a prefix that waited.
            let soles = if self.from == self.waited { &self.soles[..] } else { &[] };
            self.changed.fill(&self.waiting[self.from..], soles)?;
            let routes = self.aggregated.as_ref().map_or(&self.rib, Aggregated::rib);
            let routes = self.changed.routes(routes);
            if editor.prepare(self.changed.prefixes(), &routes, atomic)? == Applied::InPlace {
                return Ok(PreparedChange::InPlace);
            }
        }
        if when == When::Now {
            // One that is being built has less left to do, if it can be used.
            if let Some(growth) = self.growth.take()
                && let Some(replacement) = growth.finish(self.routes())?
                && replacement.missed.is_empty()
            {
                return Ok(PreparedChange::Replace(replacement));
            }
            return self.build().map(PreparedChange::Replace);
        }
        self.grow()?;
        Ok(PreparedChange::Nothing)
    }

    fn build(&self) -> Result<Replacement<K>, TableError> {
        let serving = Serving::build(&self.engine, self.routes(), self.limits)?;
        Ok(Replacement { engine: self.engine, serving, routes: None, missed: Vec::new() })
    }

    /// Begins to build a structure in the background, unless one is being built.
    fn grow(&mut self) -> Result<(), TableError> {
        if self.growth.is_none() {
            let mut growth = Growth::start(self.routes().clone(), self.engine, self.limits)?;
            // For `undo`.
            reserve(&mut growth.missed, self.waiting.len() - self.waited)?;
            self.growth = Some(growth);
        }
        Ok(())
    }

    /// Returns whether the structure takes much more for a route than when it was built.
    fn is_bloated(&self) -> bool {
        let Serving::InPlace(editor) = &self.serving else { return false };
        let [bytes, routes] = self.built.map(|number| number as u128);
        let expected = bytes * self.routes().len() as u128 / routes.max(1);
        editor.memory().lookup_bytes as u128 > expected + expected / BLOAT + BLOAT_LEAST
    }

    /// Prepares moves that make the engine smaller, and looks at a limited number of entries. Moves that fail are left out.
    pub(crate) fn tidy(&mut self, entries: usize) -> PreparedChange<K> {
        // Moves publish no waiting changes, so all of these still wait afterwards.
        self.from = self.waiting.len();
        if entries > 0
            && let Serving::InPlace(editor) = &mut self.serving
            && editor.tidy(entries).is_ok()
            && editor.retires() > 0
        {
            return PreparedChange::InPlace;
        }
        PreparedChange::Nothing
    }

    /// Makes the routes of the structure as few as can be, if changes have made them many. Without memory for it, they stay.
    pub(super) fn tighten(&mut self) {
        if let Some(aggregated) = &mut self.aggregated
            && aggregated.is_loose(self.rib.len())
        {
            let _ = aggregated.rebuild(&self.rib);
        }
    }

    /// Allocates a copy of the entries, so that prepared changes can be published in it.
    pub(crate) fn make_shadow(&mut self) -> Result<(), TableError> {
        match &mut self.serving {
            Serving::InPlace(editor) => Ok(editor.make_shadow()?),
            Serving::Rebuilt(_) => Ok(()),
        }
    }

    /// Takes the changes back.
    pub(crate) fn undo(&mut self) {
        self.abandon();
        if let Some(aggregated) = &mut self.aggregated {
            aggregated.undo();
        }
        self.rib.undo(&mut self.log);
        if let Some(growth) = &mut self.growth {
            // A structure that is built from the routes as they were has them wrong.
            growth.missed.extend_from_slice(&self.waiting[self.waited..]);
        }
        self.waiting.truncate(self.waited);
    }

    /// Discards the prepared changes.
    pub(crate) fn abandon(&mut self) {
        if let Serving::InPlace(editor) = &mut self.serving {
            editor.abandon();
        }
    }

    /// Returns the most units that publishing retires.
    pub(crate) fn retires(&self) -> usize {
        match &self.serving {
            Serving::InPlace(editor) => editor.retires(),
            Serving::Rebuilt(_) => 0,
        }
    }

    /// Publishes changes that are prepared in place, all at once for new pins if `shadow`, else entry by entry; or installs a
    /// replacement of the engine. Returns the bytes of the old engine, because readers may still be in it.
    pub(crate) fn publish(
        &mut self,
        ready: PreparedChange<K>,
        shadow: bool,
        publication: &mut dyn Publication,
    ) -> usize {
        match (ready, &mut self.serving) {
            (PreparedChange::InPlace, Serving::InPlace(editor)) => {
                if shadow {
                    editor.publish_shadow(publication);
                } else {
                    editor.publish(publication);
                }
                self.waiting.truncate(self.from);
                // Those that were published are the last ones. Changes before them wait for another engine.
                0
            }
            (PreparedChange::Replace(replacement), _) => {
                // Before the engine is replaced, because these are the bytes of the old one.
                let bytes = self.structure_memory().held_bytes();
                if let Some(whole) = replacement.routes {
                    (self.rib, self.aggregated) = (whole.rib, whole.aggregated);
                    // It is being built from routes that are gone.
                    self.growth = None;
                    self.log.clear();
                }
                if self.engine != replacement.engine {
                    // The one that is being built is not wanted any more.
                    self.growth = None;
                    self.engine = replacement.engine;
                }
                self.serving = replacement.serving;
                self.built = [self.structure_memory().lookup_bytes, self.routes().len()];
                self.generation += 1;
                self.waiting = replacement.missed;
                if publication.listens() {
                    self.emit(publication);
                }
                bytes
            }
            _ => 0,
        }
    }

    /// Tells of the structure and of all of its arrays, if it has any that change.
    pub(super) fn emit(&self, publication: &mut dyn Publication) {
        match &self.serving {
            Serving::InPlace(editor) => editor.emit(publication),
            Serving::Rebuilt(_) => publication.structure(&[]),
        }
    }

    /// Returns the structure if it changes in place.
    #[cfg(test)]
    pub(super) fn editor(&self) -> Option<&dyn in_place::InPlace<K>> {
        match &self.serving {
            Serving::InPlace(editor) => Some(&**editor),
            Serving::Rebuilt(_) => None,
        }
    }

    /// Returns the engine.
    pub(super) fn engine(&self) -> Engine<K> {
        self.engine
    }

    /// Takes a unit back that was retired.
    pub(crate) fn free(&mut self, retired: in_place::RetiredUnit) {
        if let Serving::InPlace(editor) = &mut self.serving {
            editor.free(retired);
        }
    }

    /// Returns the bytes of a retired unit.
    pub(crate) fn bytes(&self, retired: in_place::RetiredUnit) -> usize {
        match &self.serving {
            Serving::InPlace(editor) => editor.bytes(retired),
            Serving::Rebuilt(_) => 0,
        }
    }

    /// Returns the memory of the routes, and of those that the structure is made of.
    pub(crate) fn routes_memory(&self) -> Memory {
        self.rib.memory() + self.aggregated.as_ref().map_or_else(Memory::default, Aggregated::memory)
    }

    pub(crate) fn structure_memory(&self) -> Memory {
        match &self.serving {
            Serving::InPlace(editor) => editor.memory(),
            Serving::Rebuilt(fib) => fib.memory(),
        }
    }

    /// Verifies all invariants of routes and engine, given the retired units.
    pub(crate) fn check(&self, retired: &[in_place::RetiredUnit]) -> Result<(), crate::check::CheckError> {
        self.rib.check()?;
        if let Some(aggregated) = &self.aggregated {
            aggregated.check(&self.rib)?;
        }
        match &self.serving {
            Serving::InPlace(editor) => editor.check(retired),
            Serving::Rebuilt(fib) => fib.check(),
        }
    }
}

fn no_room<K: Key>(engine: &Engine<K>, exceeded: RoomExceeded) -> TableError {
    let RoomExceeded { array, words, room } = exceeded;
    TableError::Room { family: K::FAMILY, engine: engine.name, array, words, room }
}
