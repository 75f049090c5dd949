//! The writer's side of all VRFs, and the order in which a change is made: first all that can fail, then the stores.

mod check;

use core::sync::atomic::Ordering;

use crate::fib::in_place;
use crate::live::books::Books;
use crate::live::epoch::Domain;
use crate::live::root::{CurrentRoot, OldRoot};
use crate::live::{Outcome, TableError};
use crate::memory::{self, Cell, Memory, Shared, Word};
use crate::net::{Change, Dual, Key, NextHop};
use crate::rib::DualRib;

use super::Vrf;
use super::block;
use super::family::{BuildContext, EditMode, FamilyGarbage, PreparedStep, VrfFamily, VrfTable};
use super::options::Options;
use super::roots::{Structures, VrfRoots};

/// The tables of a VRF.
pub(super) type VrfTables = Dual<VrfTable<u32>, VrfTable<u128>>;

type PreparedSteps = Dual<PreparedStep<u32>, PreparedStep<u128>>;

/// The writer's side of all VRFs.
pub(super) struct VrfsWriter {
    pub(super) options: Options,
    pub(super) books: Books<VrfsGarbage>,
    /// The VRFs by their numbers.
    pub(super) tables: Vec<Option<VrfTables>>,
    /// Numbers that are free; there is room for all.
    vacant: Vec<u32>,
    directory: Shared<u64>,
    pub(super) families: Dual<VrfFamily<u32>, VrfFamily<u128>>,
    serial: u64,
}

/// A retired item.
pub(super) enum VrfsGarbage {
    V4(FamilyGarbage),
    V6(FamilyGarbage),
    Roots(OldRoot<VrfRoots>),
    /// The number of a VRF that was dropped.
    Number(u32),
}

/// The memory that publishing needs, reserved beforehand because publishing cannot fail.
struct Reserved {
    /// New roots, if readers need them.
    lists: Option<Dual<Structures<u32>, Structures<u128>>>,
    /// A copy of the directory, if words change that readers of the old roots must not see.
    directory: Option<Shared<u64>>,
    shadow: bool,
}

/// Entries that are looked at with each change, for units that could move.
const TIDY: usize = 4;

impl VrfsWriter {
    pub(super) fn new(options: Options) -> Result<Self, TableError> {
        let limits = options.limits;
        let directory = Shared::zeros(options.vrfs as usize, limits.huge_pages)?;
        let v4 = VrfFamily::new(limits, |options| options.ipv4)?;
        let v6 = VrfFamily::new(limits, |options| options.ipv6)?;
        Ok(Self {
            options,
            books: Books::new(limits),
            tables: Vec::new(),
            vacant: Vec::new(),
            directory,
            families: Dual { v4, v6 },
            serial: 0,
        })
    }

    /// Returns the first roots.
    pub(super) fn roots(&mut self) -> Result<VrfRoots, TableError> {
        let lists = Dual { v4: self.families.v4.list()?, v6: self.families.v6.list()? };
        Ok(self.roots_of(lists))
    }

    fn roots_of(&mut self, lists: Dual<Structures<u32>, Structures<u128>>) -> VrfRoots {
        VrfRoots {
            directory: self.directory.another(),
            v4: self.families.v4.roots(lists.v4),
            v6: self.families.v6.roots(lists.v6),
        }
    }

    /// Returns the tables of a VRF.
    pub(super) fn table(&self, vrf: Vrf) -> Result<&VrfTables, TableError> {
        self.tables.get(vrf.index()).and_then(Option::as_ref).ok_or(TableError::UnknownVrf(vrf))
    }

    /// Makes a VRF without routes.
    pub(super) fn create(&mut self, domain: &Domain) -> Result<Vrf, TableError> {
        // Readers may have let go of a number since.
        self.collect(domain);
        let limits = self.options.limits;
        let number = match self.vacant.last() {
            Some(&number) => number,
            None => {
                let number = self.tables.len();
                if number >= self.options.vrfs as usize {
                    return Err(TableError::NoVrfLeft { vrfs: self.options.vrfs });
                }
                self.books.budget.reserve(&mut self.tables, 1)?;
                // Room for every number at once, because `delete` gives numbers back and must not fail.
                let more = self.tables.capacity() - self.vacant.len();
                self.books.budget.reserve(&mut self.vacant, more)?;
                self.tables.push(None);
                self.vacant.push(number as u32);
                number as u32
            }
        };
        // Nothing fails from here on.
        self.vacant.pop();
        let empty = Dual { v4: VrfTable::empty(limits), v6: VrfTable::empty(limits) };
        // The word of a VRF without routes is not 0, because 0 says that there is no such VRF.
        self.store(number, &empty);
        self.tables[number as usize] = Some(empty);
        self.books.totals.version = self.books.retired.advance(domain);
        Ok(Vrf(number))
    }

    /// Stores the word of a VRF.
    fn store(&self, number: u32, sides: &VrfTables) {
        self.directory[number as usize].store(self.word(sides), Ordering::Release);
    }

    fn word(&self, sides: &VrfTables) -> u64 {
        block::word(self.families.v4.root(&sides.v4), self.families.v6.root(&sides.v6))
    }

    /// Applies changes of both families to a VRF; all at once for new pins if `atomic`. With `compact`, engines that
    /// have grown by changes are rebuilt.
    pub(super) fn change(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot<VrfRoots>,
        vrf: Vrf,
        changes: Dual<&[Change<u32>], &[Change<u128>]>,
        way: EditMode,
    ) -> Result<Outcome, TableError> {
        self.table(vrf)?;
        self.make_room(domain)?;
        self.books.expect_uses(changes)?;
        let mut outcome = Outcome::default();
        // Taken out, because preparing borrows both the tables and the families. Between here and the line that puts it back,
        // nothing may return early, and nothing is freed: either would lose the VRF.
        let mut sides = self.tables[vrf.index()].take().ok_or(TableError::UnknownVrf(vrf))?;
        let changed = self
            .prepare(&mut sides, changes, way, &mut outcome)
            .and_then(|steps| self.reserved(&mut sides, steps, way.atomic))
            .map(|(steps, reserved)| {
                // Nothing fails from here on, so the counts need not be taken back.
                self.count(&sides, changes);
                let rebuilt = rebuilt(&steps.v4) + rebuilt(&steps.v6);
                self.publish(domain, root, vrf, &mut sides, steps, reserved);
                rebuilt
            });
        self.tables[vrf.index()] = Some(sides);
        let rebuilt = changed?;
        outcome.rebuilt = rebuilt;
        self.end(domain, vrf, root, &mut outcome);
        Ok(outcome)
    }

    fn prepare(
        &mut self,
        sides: &mut VrfTables,
        changes: Dual<&[Change<u32>], &[Change<u128>]>,
        way: EditMode,
        outcome: &mut Outcome,
    ) -> Result<PreparedSteps, TableError> {
        let Self { families, books, options, serial, .. } = self;
        let making = &mut BuildContext { budget: &mut books.budget, options, serial };
        let v4 = families.v4.prepare(&mut sides.v4, changes.v4, way, outcome, making)?;
        match families.v6.prepare(&mut sides.v6, changes.v6, way, outcome, making) {
            Ok(v6) => Ok(Dual { v4, v6 }),
            Err(error) => {
                // Both families or none: the caller sees one error and one state.
                families.v4.undo(&mut sides.v4, v4);
                Err(error)
            }
        }
    }

    /// Reserves the space that publishing needs, or undoes the preparation.
    fn reserved(
        &mut self,
        sides: &mut VrfTables,
        steps: PreparedSteps,
        atomic: bool,
    ) -> Result<(PreparedSteps, Reserved), TableError> {
        match self.reserve(sides, &steps, atomic) {
            Ok(reserved) => Ok((steps, reserved)),
            Err(error) => {
                self.families.v4.undo(&mut sides.v4, steps.v4);
                self.families.v6.undo(&mut sides.v6, steps.v6);
                Err(error)
            }
        }
    }

    /// Updates the counts of routes by next hop for the prepared changes.
    fn count(&mut self, sides: &VrfTables, changes: Dual<&[Change<u32>], &[Change<u128>]>) {
        if let Some(uses) = &mut self.books.uses {
            self.families.v4.count(&sides.v4, changes.v4, uses);
            self.families.v6.count(&sides.v6, changes.v6, uses);
        }
    }

    /// Exchanges the routes of a VRF with others.
    pub(super) fn swap(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot<VrfRoots>,
        vrf: Vrf,
        routes: &mut DualRib,
    ) -> Result<Outcome, TableError> {
        self.table(vrf)?;
        self.make_room(domain)?;
        if let Some(uses) = &mut self.books.uses {
            uses.expect_all(next_hops_of(routes))?;
        }
        let Self { families, books, options, serial, .. } = self;
        let making = &mut BuildContext { budget: &mut books.budget, options, serial };
        let v4 = families.v4.side(&mut routes.v4, making)?;
        let v6 = match families.v6.side(&mut routes.v6, making) {
            Ok(v6) => v6,
            Err(error) => {
                // The caller gets its routes back, as it gave them.
                routes.v4 = families.v4.unmake(v4);
                return Err(error);
            }
        };
        let steps = Dual { v4: PreparedStep::Side(v4), v6: PreparedStep::Side(v6) };
        let mut sides = self.tables[vrf.index()].take().ok_or(TableError::UnknownVrf(vrf))?;
        let reserved = self.reserve(&mut sides, &steps, false);
        let swapped = match reserved {
            Ok(reserved) => {
                *routes = self.publish(domain, root, vrf, &mut sides, steps, reserved);
                if let Some(uses) = &mut self.books.uses {
                    next_hops(&sides).for_each(|next_hop| uses.replace(None, Some(next_hop)));
                    next_hops_of(routes).for_each(|next_hop| uses.replace(Some(next_hop), None));
                }
                Ok(())
            }
            Err(error) => {
                if let Dual { v4: PreparedStep::Side(v4), v6: PreparedStep::Side(v6) } = steps {
                    let Dual { v4: of_v4, v6: of_v6 } = &mut self.families;
                    *routes = DualRib::new(of_v4.unmake(v4), of_v6.unmake(v6));
                }
                Err(error)
            }
        };
        let mut outcome =
            Outcome { changed: sides.v4.rib().len() + sides.v6.rib().len(), ..Outcome::default() };
        self.tables[vrf.index()] = Some(sides);
        swapped?;
        self.end(domain, vrf, root, &mut outcome);
        Ok(outcome)
    }

    /// Drops a VRF, and returns its routes.
    pub(super) fn delete(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot<VrfRoots>,
        vrf: Vrf,
    ) -> Result<DualRib, TableError> {
        self.table(vrf)?;
        self.make_room(domain)?;
        // Two blocks, the number and the old roots.
        self.books.retired.reserve(4, &mut self.books.budget)?;
        let sides = self.table(vrf)?;
        let lists = if sides.v4.is_large() || sides.v6.is_large() {
            Some(Dual { v4: self.families.v4.list()?, v6: self.families.v6.list()? })
        } else {
            None
        };
        // Nothing fails from here on.
        let sides = self.tables[vrf.index()].take().ok_or(TableError::UnknownVrf(vrf))?;
        // First the word, so that new lookups find no routes; the memory that it led to is
        // retired below, and freed when pins end.
        self.directory[vrf.index()].store(0, Ordering::Release);
        let Self { families, books, .. } = self;
        let retired = &mut books.retired;
        let (v4, of_v4) =
            families.v4.discard(sides.v4, |gone, bytes| retired.retire(domain, VrfsGarbage::V4(gone), bytes));
        let (v6, of_v6) =
            families.v6.discard(sides.v6, |gone, bytes| retired.retire(domain, VrfsGarbage::V6(gone), bytes));
        // The number is retired like memory, because a reader pinned before could take the next VRF of this number for the old
        // one.
        retired.retire(domain, VrfsGarbage::Number(vrf.0), 0);
        if let Some(lists) = lists {
            let old = root.swap(self.roots_of(lists));
            self.books.retired.retire(domain, VrfsGarbage::Roots(old), of_v4 + of_v6);
        }
        let routes = DualRib::new(v4, v6);
        if let Some(uses) = &mut self.books.uses {
            next_hops_of(&routes).for_each(|next_hop| uses.replace(Some(next_hop), None));
        }
        self.books.totals.version = self.books.retired.advance(domain);
        self.collect(domain);
        Ok(routes)
    }

    /// Waits until less is retired than the limit says.
    fn make_room(&mut self, domain: &Domain) -> Result<(), TableError> {
        let Self { books, families, tables, vacant, options, .. } = self;
        let free = |item| free(item, families, tables, vacant);
        books.make_room(domain, options.retired_bytes, options.patience, free)
    }

    /// Makes room for all that publishing takes.
    fn reserve(
        &mut self,
        sides: &mut VrfTables,
        steps: &PreparedSteps,
        atomic: bool,
    ) -> Result<Reserved, TableError> {
        let needs_roots = VrfFamily::needs_roots(&sides.v4, &steps.v4, atomic)
            || VrfFamily::needs_roots(&sides.v6, &steps.v6, atomic);
        // New roots show all changes at once, so entries must be changed in a copy: stores in place would be seen before.
        let shadow = needs_roots;
        let units = self.families.v4.reserve(&mut sides.v4, &steps.v4, shadow)?
            + self.families.v6.reserve(&mut sides.v6, &steps.v6, shadow)?;
        self.books.reserve(units)?;
        if !needs_roots {
            return Ok(Reserved { lists: None, directory: None, shadow });
        }
        let is_side = matches!(steps.v4, PreparedStep::Side(_)) || matches!(steps.v6, PreparedStep::Side(_));
        // A copy, because a word that leads to a new engine must not be seen through old roots, which lack the engine.
        let directory = if is_side {
            Some(Shared::<u64>::zeros(self.directory.len(), self.options.limits.huge_pages)?)
        } else {
            None
        };
        let lists = Dual { v4: self.families.v4.list()?, v6: self.families.v6.list()? };
        Ok(Reserved { lists: Some(lists), directory, shadow })
    }

    /// Publishes prepared changes; space must be reserved. Returns the routes of tables that were replaced.
    fn publish(
        &mut self,
        domain: &Domain,
        root: &CurrentRoot<VrfRoots>,
        vrf: Vrf,
        sides: &mut VrfTables,
        steps: PreparedSteps,
        reserved: Reserved,
    ) -> DualRib {
        let Reserved { lists, directory, shadow } = reserved;
        let is_side = matches!(steps.v4, PreparedStep::Side(_)) || matches!(steps.v6, PreparedStep::Side(_));
        let Self { families, books, .. } = self;
        let Books { retired, units, .. } = books;
        let mut routes = DualRib::default();
        let mut bytes = 0;
        let retire = |gone, bytes| retired.retire(domain, VrfsGarbage::V4(gone), bytes);
        match steps.v4 {
            PreparedStep::Same => {}
            PreparedStep::Side(side) => {
                let old = core::mem::replace(&mut sides.v4, side);
                let (rib, of_structure) = families.v4.discard(old, retire);
                routes.v4 = rib;
                bytes += of_structure;
            }
            PreparedStep::Ready(ready) => {
                bytes += families.v4.publish(&mut sides.v4, ready, shadow, vrf.0, units, retire);
            }
        }
        let retire = |gone, bytes| retired.retire(domain, VrfsGarbage::V6(gone), bytes);
        match steps.v6 {
            PreparedStep::Same => {}
            PreparedStep::Side(side) => {
                let old = core::mem::replace(&mut sides.v6, side);
                let (rib, of_structure) = families.v6.discard(old, retire);
                routes.v6 = rib;
                bytes += of_structure;
            }
            PreparedStep::Ready(ready) => {
                bytes += families.v6.publish(&mut sides.v6, ready, shadow, vrf.0, units, retire);
            }
        }
        if let Some(directory) = directory {
            // Only the numbers that were ever used: the rest is zero in both, and writing zeros would take memory for its pages.
            for (to, word) in directory.iter().zip(&self.directory[..self.tables.len()]) {
                word.read().write(to);
            }
            self.directory = directory;
        }
        if is_side {
            // After the copy and before the swap: the new directory must have the word when readers get the new roots.
            self.store(vrf.0, sides);
        }
        if let Some(lists) = lists {
            let old = root.swap(self.roots_of(lists));
            self.books.retired.retire(domain, VrfsGarbage::Roots(old), bytes);
        }
        routes
    }

    /// Ends the epoch of a publication, and does the work that is due after it.
    fn end(&mut self, domain: &Domain, vrf: Vrf, root: &CurrentRoot<VrfRoots>, outcome: &mut Outcome) {
        outcome.version = self.books.retired.advance(domain);
        self.tidy(domain, root, vrf, TIDY);
        self.collect(domain);
        self.books.end(outcome);
    }

    /// Moves units of a VRF's engines towards the beginning of their arrays. Moves that fail are left for later.
    pub(super) fn tidy(&mut self, domain: &Domain, root: &CurrentRoot<VrfRoots>, vrf: Vrf, entries: usize) {
        let Some(mut sides) = self.tables.get_mut(vrf.index()).and_then(Option::take) else { return };
        let steps = Dual { v4: tidied(&mut sides.v4, entries), v6: tidied(&mut sides.v6, entries) };
        if matches!(steps, Dual { v4: PreparedStep::Same, v6: PreparedStep::Same }) {
            self.tables[vrf.index()] = Some(sides);
            return;
        }
        match self.reserve(&mut sides, &steps, false) {
            Ok(reserved) => {
                let _ = self.publish(domain, root, vrf, &mut sides, steps, reserved);
                self.books.totals.version = self.books.retired.advance(domain);
            }
            Err(_) => {
                abandon(&mut sides.v4);
                abandon(&mut sides.v6);
            }
        }
        self.tables[vrf.index()] = Some(sides);
    }

    /// Puts tables that have few routes now into blocks, where that succeeds.
    pub(super) fn shrink(&mut self, domain: &Domain, root: &CurrentRoot<VrfRoots>, vrf: Vrf) {
        // A quarter, so that a table whose size varies around the limit does not move to and fro.
        let few = self.options.small_routes / 4;
        let Ok(Dual { v4, v6 }) = self.table(vrf) else { return };
        let shrinks = |is_large: bool, routes: usize| is_large && routes <= few;
        let shrinks =
            Dual { v4: shrinks(v4.is_large(), v4.rib().len()), v6: shrinks(v6.is_large(), v6.rib().len()) };
        if !shrinks.v4 && !shrinks.v6 {
            return;
        }
        let Some(mut sides) = self.tables[vrf.index()].take() else { return };
        let Self { families, books, options, serial, .. } = self;
        let making = &mut BuildContext { budget: &mut books.budget, options, serial };
        let v4 = if shrinks.v4 { families.v4.shrunk(&mut sides.v4, making) } else { PreparedStep::Same };
        let v6 = if shrinks.v6 { families.v6.shrunk(&mut sides.v6, making) } else { PreparedStep::Same };
        let steps = Dual { v4, v6 };
        if !matches!(steps, Dual { v4: PreparedStep::Same, v6: PreparedStep::Same }) {
            match self.reserve(&mut sides, &steps, false) {
                Ok(reserved) => {
                    let _ = self.publish(domain, root, vrf, &mut sides, steps, reserved);
                    self.books.totals.version = self.books.retired.advance(domain);
                }
                Err(_) => {
                    self.families.v4.unshrink(&mut sides.v4, steps.v4);
                    self.families.v6.unshrink(&mut sides.v6, steps.v6);
                }
            }
        }
        self.tables[vrf.index()] = Some(sides);
    }

    /// Frees retired memory that no reader can see any more.
    pub(super) fn collect(&mut self, domain: &Domain) {
        let Self { books, families, tables, vacant, .. } = self;
        let _ = books.retired.collect(domain, |item| free(item, families, tables, vacant));
    }

    /// Returns the memory of the directory.
    pub(super) fn directory_memory(&self) -> Memory {
        self.directory.memory_of(self.tables.len())
    }

    /// Returns the memory of the writer's lists.
    pub(super) fn bookkeeping(&self) -> Memory {
        let lists = memory::allocated(&self.tables) + memory::allocated(&self.vacant);
        let Dual { v4, v6 } = &self.families;
        let lists = Memory { allocated_bytes: lists, ..Memory::default() };
        lists + self.books.memory() + v4.bookkeeping() + v6.bookkeeping()
    }
}

/// Returns the next hop of every route of a VRF.
pub(super) fn next_hops(sides: &VrfTables) -> impl Iterator<Item = NextHop> {
    let v4 = sides.v4.rib().iter().map(|route| route.next_hop);
    v4.chain(sides.v6.rib().iter().map(|route| route.next_hop))
}

fn next_hops_of(routes: &DualRib) -> impl Iterator<Item = NextHop> {
    routes.v4.iter().map(|route| route.next_hop).chain(routes.v6.iter().map(|route| route.next_hop))
}

fn rebuilt<K: Key>(step: &PreparedStep<K>) -> usize {
    match step {
        PreparedStep::Side(side) => usize::from(side.is_large()),
        PreparedStep::Ready(ready) => usize::from(ready.replaces()),
        PreparedStep::Same => 0,
    }
}

/// Returns the moves that a structure has prepared.
fn tidied<K: Key>(side: &mut VrfTable<K>, entries: usize) -> PreparedStep<K> {
    match side {
        VrfTable::Large { family, .. } => {
            let ready = family.tidy(entries);
            if ready.is_in_place() { PreparedStep::Ready(ready) } else { PreparedStep::Same }
        }
        VrfTable::Small { .. } => PreparedStep::Same,
    }
}

fn abandon<K: Key>(side: &mut VrfTable<K>) {
    if let VrfTable::Large { family, .. } = side {
        family.abandon();
    }
}

/// Returns the unit that is retired, if it is of the structure of a VRF as it is.
fn of_structure<K: Key>(
    gone: &FamilyGarbage,
    number: u32,
    side: &VrfTable<K>,
) -> Option<in_place::RetiredUnit> {
    // The VRF may be another one of the same number, or have another engine by now.
    match (*gone, side) {
        (
            FamilyGarbage::Unit { vrf, serial, generation, unit },
            VrfTable::Large { family, serial: present, .. },
        ) if vrf == number && serial == *present && generation == family.generation => Some(unit),
        _ => None,
    }
}

fn free(
    item: VrfsGarbage,
    families: &mut Dual<VrfFamily<u32>, VrfFamily<u128>>,
    tables: &mut [Option<VrfTables>],
    vacant: &mut Vec<u32>,
) {
    match item {
        VrfsGarbage::V4(gone) => back(gone, &mut families.v4, tables, |sides| &mut sides.v4),
        VrfsGarbage::V6(gone) => back(gone, &mut families.v6, tables, |sides| &mut sides.v6),
        VrfsGarbage::Roots(old) => drop(old),
        VrfsGarbage::Number(number) => vacant.push(number),
    }
}

/// Frees a retired unit of a family. The units of an engine that was dropped were freed with it.
fn back<K: Key>(
    gone: FamilyGarbage,
    family: &mut VrfFamily<K>,
    tables: &mut [Option<VrfTables>],
    of: impl Fn(&mut VrfTables) -> &mut VrfTable<K>,
) {
    let number = match gone {
        FamilyGarbage::Lines(unit) => return family.arena.free(unit),
        FamilyGarbage::Unit { vrf, .. } => vrf,
    };
    if let Some(Some(sides)) = tables.get_mut(number as usize) {
        let side = of(sides);
        if let Some(unit) = of_structure(&gone, number, side)
            && let VrfTable::Large { family, .. } = side
        {
            family.free(unit);
        }
    }
}
