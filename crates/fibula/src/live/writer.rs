//! What the one writer of a table has, and the order in which a change is made: first all that can fail, then the stores.

use crate::check::CheckError;
use crate::fib::in_place;
use crate::memory::{Budget, Limits, Memory};
use crate::net::{Change, Dual};

use super::epoch::{Domain, Retired};
use super::family::{FamilyWriter, Ready};
use super::options::{Options, Outcome, TableError};
use super::root::{OldRoot, Root, Roots};

/// The writer's side of a table.
pub(super) struct Writer {
    pub(super) families: Dual<FamilyWriter<u32>, FamilyWriter<u128>>,
    retired: Retired<Item>,
    budget: Budget,
    /// Units that are being retired.
    units: Vec<in_place::Retired>,
    /// Structures that replaced others. Units that were retired before belong to others.
    generations: Dual<u32>,
    options: Options,
    /// Counts since the table was made.
    pub(super) totals: Outcome,
}

/// What was retired.
enum Item {
    /// A unit of the structure of this generation.
    V4(u32, in_place::Retired),
    V6(u32, in_place::Retired),
    Roots(OldRoot),
}

/// Entries that are looked at with each change, for units that could move.
const TIDY: usize = 4;

impl Writer {
    pub(super) fn new(families: Dual<FamilyWriter<u32>, FamilyWriter<u128>>, options: Options) -> Self {
        let budget = Budget::new(Limits { memory_bytes: None, ..options.limits });
        let (retired, units) = (Retired::default(), Vec::new());
        let (generations, totals) = (Dual::default(), Outcome::default());
        Self { families, retired, budget, units, generations, options, totals }
    }

    pub(super) fn roots(&self) -> Roots {
        Roots { v4: self.families.v4.reading(), v6: self.families.v6.reading() }
    }

    /// Applies changes of both families, all at once for new pins if `atomic`.
    pub(super) fn apply(
        &mut self,
        domain: &Domain,
        root: &Root,
        v4: &[Change<u32>],
        v6: &[Change<u128>],
        atomic: bool,
    ) -> Result<Outcome, TableError> {
        let mut outcome = Outcome::default();
        self.make_room(domain)?;
        let ready = Dual {
            v4: self.families.v4.prepare(v4, &mut outcome)?,
            v6: match self.families.v6.prepare(v6, &mut outcome) {
                Ok(ready) => ready,
                Err(error) => {
                    self.families.v4.undo();
                    return Err(error);
                }
            },
        };
        let replaces = matches!(ready.v4, Ready::Replace(_)) || matches!(ready.v6, Ready::Replace(_));
        let in_place = matches!(ready.v4, Ready::InPlace) || matches!(ready.v6, Ready::InPlace);
        let aside = (atomic || replaces) && in_place;
        if let Err(error) = self.reserve(aside) {
            self.families.v4.undo();
            self.families.v6.undo();
            return Err(error);
        }
        // Nothing fails from here on.
        let mut replaced_bytes = 0;
        match ready.v4 {
            Ready::Replace(replacement) => {
                replaced_bytes += self.families.v4.replace(replacement);
                self.generations.v4 += 1;
                outcome.rebuilt += 1;
            }
            Ready::InPlace => {
                self.families.v4.publish(aside, &mut self.units);
                let generation = self.generations.v4;
                for unit in self.units.drain(..) {
                    let bytes = self.families.v4.bytes(unit);
                    self.retired.retire(domain, Item::V4(generation, unit), bytes);
                }
            }
            Ready::Nothing => {}
        }
        match ready.v6 {
            Ready::Replace(replacement) => {
                replaced_bytes += self.families.v6.replace(replacement);
                self.generations.v6 += 1;
                outcome.rebuilt += 1;
            }
            Ready::InPlace => {
                self.families.v6.publish(aside, &mut self.units);
                let generation = self.generations.v6;
                for unit in self.units.drain(..) {
                    let bytes = self.families.v6.bytes(unit);
                    self.retired.retire(domain, Item::V6(generation, unit), bytes);
                }
            }
            Ready::Nothing => {}
        }
        if replaces || aside {
            let old = root.swap(self.roots());
            self.retired.retire(domain, Item::Roots(old), replaced_bytes);
        }
        outcome.version = if outcome.changed > 0 { self.retired.advance(domain) } else { domain.epoch() };
        self.tidy(domain, TIDY);
        self.collect(domain);
        outcome.retired_bytes = self.retired.bytes();
        self.totals.changed += outcome.changed;
        self.totals.unchanged += outcome.unchanged;
        self.totals.absent += outcome.absent;
        self.totals.rebuilt += outcome.rebuilt;
        Ok(outcome)
    }

    /// Waits until less is retired than the limit says.
    fn make_room(&mut self, domain: &Domain) -> Result<(), TableError> {
        let limit = self.options.retired_bytes;
        if self.retired.bytes() <= limit {
            return Ok(());
        }
        let Self { retired, families, generations, options, .. } = self;
        let waited = retired.wait(domain, limit, options.patience, |item| free(item, families, *generations));
        waited.map_err(|stalled| TableError::stalled(stalled, self.retired.bytes()))
    }

    /// Makes room for what publishing retires.
    fn reserve(&mut self, aside: bool) -> Result<(), TableError> {
        let units = self.families.v4.retires() + self.families.v6.retires();
        if self.units.capacity() < units {
            self.budget.reserve(&mut self.units, units)?;
        }
        self.retired.reserve(units + 1, &mut self.budget)?;
        if aside {
            self.families.v4.set_aside()?;
            self.families.v6.set_aside()?;
        }
        Ok(())
    }

    /// Moves units towards the beginning of their arrays, looking at so many entries. What fails is left for later.
    pub(super) fn tidy(&mut self, domain: &Domain, entries: usize) {
        let moves = [self.families.v4.tidy(entries), self.families.v6.tidy(entries)];
        if moves == [Ok(false), Ok(false)] {
            return;
        }
        if self.reserve(false).is_err() {
            self.families.v4.abandon();
            self.families.v6.abandon();
            return;
        }
        self.families.v4.publish(false, &mut self.units);
        for unit in self.units.drain(..) {
            let bytes = self.families.v4.bytes(unit);
            self.retired.retire(domain, Item::V4(self.generations.v4, unit), bytes);
        }
        self.families.v6.publish(false, &mut self.units);
        for unit in self.units.drain(..) {
            let bytes = self.families.v6.bytes(unit);
            self.retired.retire(domain, Item::V6(self.generations.v6, unit), bytes);
        }
        self.retired.advance(domain);
    }

    /// Frees what no reader can see any more.
    pub(super) fn collect(&mut self, domain: &Domain) {
        let Self { retired, families, generations, .. } = self;
        let _ = retired.collect(domain, |item| free(item, families, *generations));
    }

    /// Collects, and gives back the room that a long list has left.
    pub(super) fn shrink(&mut self, domain: &Domain) {
        self.collect(domain);
        self.retired.shrink(&mut self.budget);
    }

    /// Returns the reader that holds up the oldest of what is retired, and the changes since its pin.
    pub(super) fn stalled(&self, domain: &Domain) -> Option<(usize, u64)> {
        self.retired.stalled(domain).map(|stalled| (stalled.reader, stalled.epochs))
    }

    /// Returns the memory of the list of what is retired.
    pub(super) fn memory(&self) -> Memory {
        self.retired.memory()
    }

    /// Returns the bytes that are retired.
    pub(super) fn retired_bytes(&self) -> usize {
        self.retired.bytes()
    }

    /// Verifies all invariants.
    pub(super) fn check(&self) -> Result<(), CheckError> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for item in self.retired.items() {
            match item {
                Item::V4(generation, unit) if *generation == self.generations.v4 => v4.push(*unit),
                Item::V6(generation, unit) if *generation == self.generations.v6 => v6.push(*unit),
                _ => {}
            }
        }
        self.families.v4.check(&v4)?;
        self.families.v6.check(&v6)
    }
}

fn free(item: Item, families: &mut Dual<FamilyWriter<u32>, FamilyWriter<u128>>, generations: Dual<u32>) {
    match item {
        Item::V4(generation, unit) if generation == generations.v4 => families.v4.free(unit),
        Item::V6(generation, unit) if generation == generations.v6 => families.v6.free(unit),
        // Units of structures that are gone go with them.
        Item::V4(..) | Item::V6(..) => {}
        Item::Roots(old) => drop(old),
    }
}
