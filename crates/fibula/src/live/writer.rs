//! The one writer of a table, and the order in which it makes a change: first all that can fail, then the stores.

use std::time::Instant;

use crate::check::CheckError;
use crate::fib::in_place::{self, Rooms};
use crate::fib::registry::Engine;
use crate::memory::Limits;
use crate::net::{Change, Dual, Key, Route};

use super::books::Books;
use super::epoch::{Domain, RetireList};
use super::family::{FamilyWriter, PreparedChange, When};
use super::listener::{Listener, Notifier};
use super::options::{Options, Outcome, TableError};
use super::root::{CurrentRoot, OldRoot, TableRoots};

/// The writer's side of a table.
pub(super) struct TableWriter {
    pub(super) families: Dual<FamilyWriter<u32>, FamilyWriter<u128>>,
    pub(super) books: Books<TableGarbage>,
    options: Options,
    /// When the first of the changes that wait was made, if any do.
    since: Instant,
    /// Receives reports of the words that are stored.
    listener: Option<Box<dyn Listener>>,
}

/// A retired item.
pub(super) enum TableGarbage {
    /// A unit of the structure of this generation.
    V4(u32, in_place::RetiredUnit),
    V6(u32, in_place::RetiredUnit),
    Roots(OldRoot),
}

/// All routes of each family, if they take the place of others.
pub(crate) type ReplacementRoutes<'a> = Dual<Option<&'a [Route<u32>]>, Option<&'a [Route<u128>]>>;

/// The engine of each family, if it is to be another one.
pub(super) type OtherEngines = Dual<Option<Engine<u32>>, Option<Engine<u128>>>;

/// Changed prefixes that wait at most, but for those that wait for a structure.
const MOST_WAITING: usize = 1 << 16;

/// Entries that are looked at with each change, for units that could move.
const TIDY: usize = 4;

impl TableWriter {
    pub(super) fn new(families: Dual<FamilyWriter<u32>, FamilyWriter<u128>>, options: Options) -> Self {
        let books = Books::new(Limits { memory_bytes: None, ..options.limits });
        Self { families, books, options, since: Instant::now(), listener: None }
    }

    /// Reports to a listener all words that readers see, and every change from here on. Returns the previous listener. On an
    /// error that one stays.
    pub(super) fn listen(
        &mut self,
        domain: &Domain,
        listener: Option<Box<dyn Listener>>,
        rooms: Dual<Rooms, Rooms>,
    ) -> Result<Option<Box<dyn Listener>>, TableError> {
        let before = self.families.v4.rooms();
        self.families.v4.limit(rooms.v4)?;
        if let Err(error) = self.families.v6.limit(rooms.v6) {
            // These were kept until now, so they still are.
            self.families.v4.limit(before)?;
            return Err(error);
        }
        let before = core::mem::replace(&mut self.listener, listener);
        if let Some(listener) = &mut self.listener {
            let Dual { v4, v6 } = &self.families;
            v4.emit(&mut notifier(
                v4,
                v4.engine().name,
                v4.generation,
                &mut **listener,
                &mut self.books.units,
            ));
            v6.emit(&mut notifier(
                v6,
                v6.engine().name,
                v6.generation,
                &mut **listener,
                &mut self.books.units,
            ));
            listener.published(domain.epoch());
        }
        Ok(before)
    }

    pub(super) fn roots(&self) -> TableRoots {
        TableRoots { v4: self.families.v4.reading(), v6: self.families.v6.reading() }
    }

    /// Applies changes of both families, all at once for new pins if `atomic`.
    pub(super) fn apply(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot,
        v4: &[Change<u32>],
        v6: &[Change<u128>],
        atomic: bool,
    ) -> Result<Outcome, TableError> {
        let when = if atomic { When::Now } else { self.when(v4.len() + v6.len()) };
        // A build would hold up the caller, unless another thread makes it.
        let compact = self.options.background && !atomic;
        self.change(domain, root, Dual { v4, v6 }, ChangeMode { when, compact, atomic })
    }

    /// Publishes all waiting changes if `now`. Otherwise it publishes those that need not wait for an engine, and rebuilds engines
    /// that have grown by changes.
    pub(super) fn publish_waiting(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot,
        now: bool,
    ) -> Result<Outcome, TableError> {
        let when = if now { When::Now } else { self.at_best() };
        let way = ChangeMode { when, compact: !now, atomic: false };
        self.change(domain, root, Dual { v4: &[], v6: &[] }, way)
    }

    /// Returns when changes are published that would be at once if nothing was put off.
    fn at_best(&self) -> When {
        if self.options.background { When::Soon } else { When::Now }
    }

    /// Decides when to publish a call with `changes` changes.
    fn when(&mut self, changes: usize) -> When {
        let waiting = self.waiting();
        if self.options.coalesce.is_zero() || waiting + changes >= MOST_WAITING {
            return self.at_best();
        }
        if waiting == 0 {
            self.since = Instant::now();
        } else if self.since.elapsed() >= self.options.coalesce {
            return self.at_best();
        }
        When::Later
    }

    fn change(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot,
        changes: Dual<&[Change<u32>], &[Change<u128>]>,
        way: ChangeMode,
    ) -> Result<Outcome, TableError> {
        let ChangeMode { when, compact, atomic } = way;
        let mut outcome = Outcome::default();
        self.make_room(domain)?;
        let ready = Dual {
            // Both families are prepared before either is published, because a failure of the second must leave the first as it
            // was.
            v4: self.families.v4.prepare(changes.v4, when, compact, atomic, &mut outcome)?,
            v6: match self.families.v6.prepare(changes.v6, when, compact, atomic, &mut outcome) {
                Ok(ready) => ready,
                Err(error) => {
                    self.families.v4.undo();
                    return Err(error);
                }
            },
        };
        // Readers that see new roots see all of the changes or none.
        let shadow = atomic || ready.v4.replaces() || ready.v6.replaces();
        if let Err(error) = self.reserve(&ready, shadow).and_then(|()| Ok(self.books.expect_uses(changes)?)) {
            self.families.v4.undo();
            self.families.v6.undo();
            return Err(error);
        }
        // Nothing fails from here on.
        if let Some(uses) = &mut self.books.uses {
            self.families.v4.count(changes.v4, uses);
            self.families.v6.count(changes.v6, uses);
        }
        Ok(self.end(domain, root, ready, shadow, outcome))
    }

    /// Puts other routes in the place of all, with structures that are built of them; a family without any stays as it is. New
    /// pins see all of it or nothing, unless changes of a family that stays wait. `changed` prefixes are different.
    ///
    /// Next hops are not counted: a table whose next hops are numbered takes changes.
    pub(super) fn replace(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot,
        routes: ReplacementRoutes<'_>,
        changed: usize,
    ) -> Result<Outcome, TableError> {
        debug_assert!(self.books.uses.is_none(), "next hops are counted by changes alone");
        self.make_room(domain)?;
        let ready = Dual {
            v4: routes
                .v4
                .map_or(Ok(PreparedChange::Nothing), |routes| self.families.v4.prepare_all(routes))?,
            v6: routes
                .v6
                .map_or(Ok(PreparedChange::Nothing), |routes| self.families.v6.prepare_all(routes))?,
        };
        self.reserve(&ready, true)?;
        Ok(self.end(domain, root, ready, true, Outcome { changed, ..Outcome::default() }))
    }

    /// Puts other engines in the place of those of the families that have one here. All changes are published with it.
    pub(super) fn set_engines(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot,
        engines: OtherEngines,
    ) -> Result<Outcome, TableError> {
        self.make_room(domain)?;
        let Dual { v4, v6 } = &self.families;
        let ready = Dual {
            v4: engines.v4.map_or(Ok(PreparedChange::Nothing), |engine| v4.prepare_other(engine))?,
            v6: engines.v6.map_or(Ok(PreparedChange::Nothing), |engine| v6.prepare_other(engine))?,
        };
        self.reserve(&ready, true)?;
        Ok(self.end(domain, root, ready, true, Outcome::default()))
    }

    /// Publishes prepared changes, and completes the outcome. Space must be reserved.
    fn end(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot,
        ready: Dual<PreparedChange<u32>, PreparedChange<u128>>,
        shadow: bool,
        mut outcome: Outcome,
    ) -> Outcome {
        // Moves in a family that does not change can wait until it does.
        let entries = |changed: bool| if changed { TIDY } else { 0 };
        let entries = Dual { v4: entries(ready.v4.is_in_place()), v6: entries(ready.v6.is_in_place()) };
        let published = self.publish(domain, Some(root), ready, shadow);
        outcome.rebuilt = published.replaced;
        outcome.version = if published.any { self.advance(domain) } else { domain.epoch() };
        outcome.waiting = self.waiting();
        self.tidy(domain, entries);
        // Once for the change and the moves, because it looks at the slots of all readers.
        self.collect(domain);
        self.books.end(&mut outcome);
        outcome
    }

    /// Publishes prepared changes; space must be reserved. Pass `None` for `root` only if no engine was replaced.
    fn publish(
        &mut self,
        domain: &Domain,
        root: Option<&CurrentRoot>,
        ready: Dual<PreparedChange<u32>, PreparedChange<u128>>,
        shadow: bool,
    ) -> Published {
        let in_place = ready.v4.is_in_place() || ready.v6.is_in_place();
        let replaced = usize::from(ready.v4.replaces()) + usize::from(ready.v6.replaces());
        let Self { families, books, listener, .. } = self;
        let Books { retired, units, .. } = books;
        let listener = listener.as_mut();
        let mut publishing = Publishing { domain, shadow, retired, units, listener };
        let replaced_bytes = publishing.family(&mut families.v4, ready.v4, TableGarbage::V4)
            + publishing.family(&mut families.v6, ready.v6, TableGarbage::V6);
        if let Some(root) = root
            && (replaced > 0 || shadow && in_place)
        {
            let old = root.swap(self.roots());
            // In the epoch of the swap, because readers of that epoch may have loaded the old roots.
            self.books.retired.retire(domain, TableGarbage::Roots(old), replaced_bytes);
        }
        Published { any: in_place || replaced > 0, replaced }
    }

    /// Waits until less is retired than the limit says. It comes before a change is prepared, because a table whose readers hold
    /// too much refuses the change whole.
    fn make_room(&mut self, domain: &Domain) -> Result<(), TableError> {
        let Self { books, families, options, .. } = self;
        books.make_room(domain, options.retired_bytes, options.patience, |item| free(item, families))
    }

    /// Reserves space for the units that publishing retires, and for copies of the entries of families that are published in a shadow.
    fn reserve(
        &mut self,
        ready: &Dual<PreparedChange<u32>, PreparedChange<u128>>,
        shadow: bool,
    ) -> Result<(), TableError> {
        self.books.reserve(self.families.v4.retires() + self.families.v6.retires())?;
        if shadow && ready.v4.is_in_place() {
            self.families.v4.make_shadow()?;
        }
        if shadow && ready.v6.is_in_place() {
            self.families.v6.make_shadow()?;
        }
        Ok(())
    }

    /// Moves units towards the beginning of their arrays. In each family it looks at this many entries. A move that fails is tried again
    /// later.
    pub(super) fn tidy(&mut self, domain: &Domain, entries: Dual<usize, usize>) {
        let Dual { v4, v6 } = &mut self.families;
        let ready = Dual { v4: v4.tidy(entries.v4), v6: v6.tidy(entries.v6) };
        if !ready.v4.is_in_place() && !ready.v6.is_in_place() {
            return;
        }
        if self.reserve(&ready, false).is_err() {
            self.families.v4.abandon();
            self.families.v6.abandon();
            return;
        }
        // Moves replace no engine, so the roots stay.
        let _ = self.publish(domain, None, ready, false);
        self.advance(domain);
    }

    /// Ends the epoch of a publication. Returns the version that it made.
    fn advance(&mut self, domain: &Domain) -> u64 {
        let version = self.books.retired.advance(domain);
        if let Some(listener) = &mut self.listener {
            listener.published(version);
        }
        version
    }

    /// Frees retired units that no reader can see any more.
    pub(super) fn collect(&mut self, domain: &Domain) {
        let Self { books, families, .. } = self;
        let _ = books.retired.collect(domain, |item| free(item, families));
    }

    /// Reclaims retired units, and shrinks the list of them and the aggregated routes.
    pub(super) fn shrink(&mut self, domain: &Domain) {
        self.families.v4.tighten();
        self.families.v6.tighten();
        self.collect(domain);
        self.books.shrink();
    }

    /// Returns the limits on the routes and on the engine of each family.
    pub(super) fn limits(&self) -> Limits {
        self.options.limits
    }

    /// Returns how many changed prefixes readers do not see yet.
    pub(super) fn waiting(&self) -> usize {
        self.families.v4.waiting() + self.families.v6.waiting()
    }

    /// Verifies all invariants.
    pub(super) fn check(&self) -> Result<(), CheckError> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for item in self.books.retired.items() {
            match item {
                TableGarbage::V4(generation, unit) if *generation == self.families.v4.generation => {
                    v4.push(*unit);
                }
                TableGarbage::V6(generation, unit) if *generation == self.families.v6.generation => {
                    v6.push(*unit);
                }
                _ => {}
            }
        }
        self.families.v4.check(&v4)?;
        self.families.v6.check(&v6)
    }
}

/// How changes are made.
#[derive(Debug, Clone, Copy)]
struct ChangeMode {
    when: When,
    /// Whether engines that have grown by changes may be rebuilt.
    compact: bool,
    /// Whether new pins see all of the changes or none.
    atomic: bool,
}

/// The arguments of publishing.
struct Publishing<'a> {
    domain: &'a Domain,
    shadow: bool,
    retired: &'a mut RetireList<TableGarbage>,
    units: &'a mut Vec<in_place::RetiredUnit>,
    listener: Option<&'a mut Box<dyn Listener>>,
}

/// The result of publishing.
struct Published {
    /// Whether anything was published.
    any: bool,
    /// Structures that took the place of others.
    replaced: usize,
}

impl Publishing<'_> {
    /// Publishes the prepared changes of a family, and retires the units that they replace. A whole engine that was replaced
    /// is not retired here: its bytes are returned.
    fn family<K: Key>(
        &mut self,
        family: &mut FamilyWriter<K>,
        ready: PreparedChange<K>,
        item: fn(u32, in_place::RetiredUnit) -> TableGarbage,
    ) -> usize {
        let replaced_bytes = match &mut self.listener {
            None => family.publish(ready, self.shadow, self.units),
            Some(listener) => {
                // A listener must see the new engine's words under its new generation and name, which it gets only in `publish`.
                let generation = family.generation + u32::from(ready.replaces());
                let engine = family.engine_of(&ready).name;
                let mut notifier = notifier(family, engine, generation, &mut ***listener, self.units);
                family.publish(ready, self.shadow, &mut notifier)
            }
        };
        for unit in self.units.drain(..) {
            let bytes = family.bytes(unit);
            self.retired.retire(self.domain, item(family.generation, unit), bytes);
        }
        replaced_bytes
    }
}

/// Returns the receiver that passes the stores of a family on to a listener.
fn notifier<'a, K: Key>(
    family: &FamilyWriter<K>,
    engine: &'static str,
    generation: u32,
    listener: &'a mut dyn Listener,
    units: &'a mut Vec<in_place::RetiredUnit>,
) -> Notifier<'a> {
    let rooms = family.rooms();
    Notifier { units, listener, family: K::FAMILY, generation, engine, rooms }
}

fn free(item: TableGarbage, families: &mut Dual<FamilyWriter<u32>, FamilyWriter<u128>>) {
    let Dual { v4, v6 } = families;
    match item {
        TableGarbage::V4(generation, unit) if generation == v4.generation => v4.free(unit),
        TableGarbage::V6(generation, unit) if generation == v6.generation => v6.free(unit),
        // The engine of these units has been dropped, and its units with it.
        TableGarbage::V4(..) | TableGarbage::V6(..) => {}
        TableGarbage::Roots(old) => drop(old),
    }
}
