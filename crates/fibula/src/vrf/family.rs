//! One family of all VRFs, as the writer has it.

use crate::check::CheckError;
use crate::fib::in_place;
use crate::fib::registry::Engine;
use crate::fib::units::Unit;
use crate::live::family::{FamilyWriter, PreparedChange, When};
use crate::live::{Outcome, TableError, Uses};
use crate::memory::{self, Budget, Limits, Memory, OutOfMemory};
use crate::net::{Change, Key};
use crate::rib::{Before, Rib};

use super::arena::{BlockArena, Number};
use super::block::{self, BlockRefusal, BlockRoot};
use super::options::Options;
use super::roots::{FamilyRoots, Structures};

/// How changes are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct EditMode {
    /// Whether new pins see all of the changes or none.
    pub(super) atomic: bool,
    /// Whether engines that have grown by changes are rebuilt.
    pub(super) compact: bool,
}

/// The table of a VRF in one family.
pub(super) enum VrfTable<K: Key> {
    /// The routes are in a block; without routes there is none.
    Small { rib: Rib<K>, block: Option<Number> },
    /// They have a structure of their own.
    Large { family: Box<FamilyWriter<K>>, number: u32, serial: u64 },
}

impl<K: Key> VrfTable<K> {
    /// Returns a table without routes.
    pub(super) fn empty(limits: Limits) -> Self {
        Self::Small { rib: Rib::new(limits), block: None }
    }

    /// Returns the routes.
    pub(super) fn rib(&self) -> &Rib<K> {
        match self {
            Self::Small { rib, .. } => rib,
            Self::Large { family, .. } => &family.rib,
        }
    }

    fn rib_mut(&mut self) -> &mut Rib<K> {
        match self {
            Self::Small { rib, .. } => rib,
            Self::Large { family, .. } => &mut family.rib,
        }
    }

    pub(super) fn is_large(&self) -> bool {
        matches!(self, Self::Large { .. })
    }

    /// Returns the memory of the routes.
    pub(super) fn routes_memory(&self) -> Memory {
        match self {
            Self::Small { rib, .. } => rib.memory(),
            Self::Large { family, .. } => family.routes_memory(),
        }
    }
}

/// The step that makes a prepared change visible to readers.
pub(super) enum PreparedStep<K: Key> {
    /// Nothing has changed.
    Same,
    /// Another table takes the place of the one there is, with its routes.
    Side(VrfTable<K>),
    /// The structure has prepared the change.
    Ready(PreparedChange<K>),
}

/// The budget, the options and the counters that making a table uses.
pub(super) struct BuildContext<'a> {
    pub(super) budget: &'a mut Budget,
    pub(super) options: &'a Options,
    /// The number of structures that were made.
    pub(super) serial: &'a mut u64,
}

/// A retired item of a family.
#[derive(Debug, Clone, Copy)]
pub(super) enum FamilyGarbage {
    /// The lines of a block.
    Lines(Unit),
    /// A unit of an engine: the VRF, the engine, and the generation of the engine.
    Unit { vrf: u32, serial: u64, generation: u32, unit: in_place::RetiredUnit },
}

/// The blocks and structures of a family.
pub(super) struct VrfFamily<K: Key> {
    pub(super) arena: BlockArena<K>,
    /// The engines that readers look up in, by their number.
    large: Structures<K>,
    /// The previous state of each route that the present change touches.
    log: Vec<Before<K>>,
    engine: fn(&Options) -> Engine<K>,
}

impl<K: Key> VrfFamily<K> {
    pub(super) fn new(limits: Limits, engine: fn(&Options) -> Engine<K>) -> Result<Self, OutOfMemory> {
        Ok(Self { arena: BlockArena::new(limits)?, large: Vec::new(), log: Vec::new(), engine })
    }

    /// Returns the half of a VRF's word.
    pub(super) fn root(&self, side: &VrfTable<K>) -> BlockRoot {
        match side {
            VrfTable::Small { block: None, .. } => BlockRoot::EMPTY,
            VrfTable::Small { block: Some(number), .. } => self.arena.root(*number),
            VrfTable::Large { number, .. } => BlockRoot::large(*number),
        }
    }

    /// Takes the routes and makes a table of them; on an error they are left where they are.
    pub(super) fn side(
        &mut self,
        rib: &mut Rib<K>,
        making: &mut BuildContext<'_>,
    ) -> Result<VrfTable<K>, TableError> {
        // Without a block, so that VRFs without routes take no line and no count.
        if rib.is_empty() {
            return Ok(VrfTable::Small { rib: core::mem::take(rib), block: None });
        }
        let options = making.options;
        if rib.len() <= options.small_routes
            && let Some(block) = self.block(rib, making)?
        {
            return Ok(VrfTable::Small { rib: core::mem::take(rib), block: Some(block) });
        }
        // The list stays short, because numbers of engines that are gone are used again: every reader has a copy of it.
        let number = match self.large.iter().position(Option::is_none) {
            Some(number) => number,
            None => {
                making.budget.reserve(&mut self.large, 1)?;
                self.large.len()
            }
        };
        // The slot is reserved first, because after this line nothing may fail: the routes have moved into the table.
        let family = Box::new(FamilyWriter::of(rib, (self.engine)(options), &options.of_structure())?);
        if number == self.large.len() {
            self.large.push(None);
        }
        self.large[number] = Some(family.reading());
        *making.serial += 1;
        Ok(VrfTable::Large { family, number: number as u32, serial: *making.serial })
    }

    /// Returns the block of these routes, unless they need a structure.
    fn block(&mut self, rib: &Rib<K>, making: &mut BuildContext<'_>) -> Result<Option<Number>, TableError> {
        // The budget counts only the block, because the other memory of the build is freed after it.
        let mut scratch = Budget::new(making.options.limits);
        let block = block::build(rib, &mut scratch).and_then(|block| self.arena.take(&block, making.budget));
        match block {
            Ok(number) => Ok(Some(number)),
            Err(BlockRefusal::TooLarge) => Ok(None),
            Err(BlockRefusal::Memory(error)) => Err(TableError::Memory(error)),
        }
    }

    /// Returns a block in the place of a structure that has few routes now, if that succeeds.
    pub(super) fn shrunk(
        &mut self,
        side: &mut VrfTable<K>,
        making: &mut BuildContext<'_>,
    ) -> PreparedStep<K> {
        // The engine goes on serving readers without its routes, which the block is built of, until the block is published.
        match self.side(side.rib_mut(), making) {
            Ok(small @ VrfTable::Small { .. }) => PreparedStep::Side(small),
            Ok(large) => {
                *side.rib_mut() = self.unmake(large);
                PreparedStep::Same
            }
            Err(_) => PreparedStep::Same,
        }
    }

    /// Undoes the preparation of [`shrunk`](Self::shrunk).
    pub(super) fn unshrink(&mut self, side: &mut VrfTable<K>, step: PreparedStep<K>) {
        if let PreparedStep::Side(small) = step {
            *side.rib_mut() = self.unmake(small);
        }
    }

    /// Gives up a table that no reader has seen, and returns its routes.
    pub(super) fn unmake(&mut self, side: VrfTable<K>) -> Rib<K> {
        match side {
            VrfTable::Small { rib, block } => {
                if let Some(unit) = block.and_then(|number| self.arena.give(number)) {
                    self.arena.free(unit);
                }
                rib
            }
            VrfTable::Large { mut family, number, .. } => {
                // Readers of earlier roots have a list of their own, which keeps the engine alive.
                self.large[number as usize] = None;
                core::mem::take(&mut family.rib)
            }
        }
    }

    /// Gives up a table that readers may still be in, and returns its routes and the bytes of its structure, which the old
    /// roots keep. Its block is passed to `retire`.
    pub(super) fn discard(
        &mut self,
        side: VrfTable<K>,
        mut retire: impl FnMut(FamilyGarbage, usize),
    ) -> (Rib<K>, usize) {
        match side {
            VrfTable::Small { rib, block } => {
                if let Some(unit) = block.and_then(|number| self.arena.give(number)) {
                    retire(FamilyGarbage::Lines(unit), BlockArena::<K>::bytes(unit));
                }
                (rib, 0)
            }
            VrfTable::Large { ref family, .. } => {
                // Readers of the old roots keep the engine alive through its `Arc`. Only its bytes are counted here, so that the
                // limit on retired memory sees them.
                let bytes = family.structure_memory().held_bytes();
                (self.unmake(side), bytes)
            }
        }
    }

    /// Changes the routes, and prepares the block or engine that readers will look up in; or leaves everything as it was.
    pub(super) fn prepare(
        &mut self,
        side: &mut VrfTable<K>,
        changes: &[Change<K>],
        way: EditMode,
        outcome: &mut Outcome,
        making: &mut BuildContext<'_>,
    ) -> Result<PreparedStep<K>, TableError> {
        let EditMode { compact, atomic } = way;
        match side {
            VrfTable::Large { family, .. } => {
                Ok(PreparedStep::Ready(family.prepare(changes, When::Now, compact, atomic, outcome)?))
            }
            VrfTable::Small { rib, .. } => {
                // A small table has no engine to prepare: its routes change, and a block is built of them or found among the
                // equal ones.
                let made = self.follow(rib, changes, outcome, making);
                if made.is_err() {
                    rib.undo(&mut self.log);
                }
                made
            }
        }
    }

    fn follow(
        &mut self,
        rib: &mut Rib<K>,
        changes: &[Change<K>],
        outcome: &mut Outcome,
        making: &mut BuildContext<'_>,
    ) -> Result<PreparedStep<K>, TableError> {
        self.log.clear();
        let tally = rib.apply_logged(changes, &mut self.log).map_err(TableError::from)?;
        outcome.changed += tally.changed;
        outcome.unchanged += tally.unchanged;
        outcome.absent += tally.absent;
        if tally.changed == 0 {
            return Ok(PreparedStep::Same);
        }
        self.side(rib, making).map(PreparedStep::Side)
    }

    /// Updates the counts of routes by next hop for the prepared changes.
    pub(super) fn count(&self, side: &VrfTable<K>, changes: &[Change<K>], uses: &mut Uses) {
        match side {
            VrfTable::Small { .. } => uses.change(changes, &self.log),
            VrfTable::Large { family, .. } => family.count(changes, uses),
        }
    }

    /// Takes a change back that was prepared.
    pub(super) fn undo(&mut self, side: &mut VrfTable<K>, step: PreparedStep<K>) {
        match (step, side) {
            (PreparedStep::Side(made), side) => {
                // The routes have moved into the new table. They come back first, and then their changes are undone.
                let rib = self.unmake(made);
                *side.rib_mut() = rib;
                side.rib_mut().undo(&mut self.log);
            }
            (PreparedStep::Ready(_), VrfTable::Large { family, .. }) => family.undo(),
            _ => {}
        }
    }

    /// Returns whether readers need other roots to see a change.
    pub(super) fn needs_roots(side: &VrfTable<K>, step: &PreparedStep<K>, atomic: bool) -> bool {
        match step {
            PreparedStep::Same => false,
            // A word alone can lead from block to block. Engines are in a list of the roots, so a change to or from one needs new
            // roots.
            PreparedStep::Side(made) => made.is_large() || side.is_large(),
            PreparedStep::Ready(ready) => ready.replaces() || atomic && ready.is_in_place(),
        }
    }

    /// Returns the most units that publishing a change retires, and makes room for a copy of the entries if the change is
    /// published in a shadow.
    pub(super) fn reserve(
        &mut self,
        side: &mut VrfTable<K>,
        step: &PreparedStep<K>,
        shadow: bool,
    ) -> Result<usize, TableError> {
        match (step, side) {
            (PreparedStep::Ready(ready), VrfTable::Large { family, .. }) => {
                if shadow && ready.is_in_place() {
                    family.make_shadow()?;
                }
                Ok(family.retires())
            }
            (PreparedStep::Same, _) => Ok(0),
            // At most the block that is replaced. Engines go with the old roots.
            _ => Ok(1),
        }
    }

    /// Publishes the prepared changes of an engine, or an engine in its place. Returns the bytes of the old engine.
    pub(super) fn publish(
        &mut self,
        side: &mut VrfTable<K>,
        ready: PreparedChange<K>,
        shadow: bool,
        vrf: u32,
        units: &mut Vec<in_place::RetiredUnit>,
        mut retire: impl FnMut(FamilyGarbage, usize),
    ) -> usize {
        let VrfTable::Large { family, number, serial } = side else { return 0 };
        let is_new = ready.replaces() || shadow && ready.is_in_place();
        let replaced = family.publish(ready, shadow, units);
        for unit in units.drain(..) {
            let generation = family.generation;
            retire(FamilyGarbage::Unit { vrf, serial: *serial, generation, unit }, family.bytes(unit));
        }
        if is_new {
            // A new engine, or a copy of its entries: readers reach either through new roots only.
            self.large[*number as usize] = Some(family.reading());
        }
        replaced
    }

    /// Returns a list with room for all structures.
    pub(super) fn list(&self) -> Result<Structures<K>, OutOfMemory> {
        let mut list = Vec::new();
        list.try_reserve_exact(self.large.len())
            .map_err(|_| super::options::no_memory(self.large.len() * size_of::<Structures<K>>()))?;
        Ok(list)
    }

    /// Returns the roots that readers look up in, with the list that has space for them.
    pub(super) fn roots(&mut self, mut list: Structures<K>) -> FamilyRoots<K> {
        list.extend_from_slice(&self.large);
        FamilyRoots { words: self.arena.reading(), large: list }
    }

    /// Returns the memory of lists.
    pub(super) fn bookkeeping(&self) -> Memory {
        // Readers have a copy of the list.
        let large = 2 * memory::allocated(&self.large);
        let lists = Memory { allocated_bytes: large + memory::allocated(&self.log), ..Memory::default() };
        self.arena.bookkeeping() + lists
    }

    /// Verifies one table, and counts its block.
    pub(super) fn check(
        &self,
        side: &VrfTable<K>,
        counts: &mut [u32],
        retired: &[in_place::RetiredUnit],
    ) -> Result<(), CheckError> {
        match side {
            VrfTable::Small { rib, block } => {
                rib.check()?;
                let Some(number) = *block else {
                    return CheckError::unless(rib.is_empty(), "a VRF with routes has a block", rib.len());
                };
                counts[number as usize] += 1;
                let fresh = block::build(rib, &mut Budget::default());
                let is_right = fresh.is_ok_and(|fresh| self.arena.is(number, &fresh));
                CheckError::unless(is_right, "a block is that of its VRF's routes", number as usize)
            }
            VrfTable::Large { family, number, .. } => {
                let is_read = self.large.get(*number as usize).is_some_and(Option::is_some);
                CheckError::unless(is_read, "readers have a VRF's structure", *number as usize)?;
                family.check(retired)
            }
        }
    }
}
