//! What an engine can do that changes while readers look: the writer's side.

use core::ops::Range;
use std::sync::Arc;

use crate::check::CheckError;
use crate::memory::{Memory, OutOfMemory, Words};
use crate::net::{Change, Key, NextHop, Prefix, Routes};
use crate::simd::Present;

use super::parts::units::Unit;
use super::{Applied, BuildError, Fib, Sections, Updatable};

/// A unit of one of an engine's arrays, which new lookups do not reach any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RetiredUnit {
    /// The number of the array.
    pub array: u8,
    /// The unit.
    pub unit: Unit,
}

/// The receiver of a change as it is published.
pub trait Publication {
    /// Receives a unit that no new lookup reaches.
    fn retire(&mut self, retired: RetiredUnit);

    /// Returns whether stored words are to be emitted, which takes time.
    fn listens(&self) -> bool {
        false
    }

    /// Receives the numbers that shape the arrays of an engine.
    fn structure(&mut self, _shape: &[(&'static str, u32)]) {}

    /// Receives words that have been stored: those of new units before any entry, then each entry.
    fn stored(&mut self, _stored: StoredWords<'_>) {}
}

/// Words that were stored in an array of an engine.
#[derive(Debug, Clone, Copy)]
pub struct StoredWords<'a> {
    /// The number of the array.
    pub array: u8,
    /// The first of the words in the array.
    pub first: usize,
    /// How many words the array has room for.
    pub room: usize,
    /// The words.
    pub words: Words<'a>,
    /// Whether these are the words in use of an array that takes the place of the one of this number.
    pub is_whole: bool,
}

impl<'a> StoredWords<'a> {
    /// Describes words that were stored in an array.
    pub fn part(array: u8, all: impl Into<Words<'a>>, range: Range<usize>) -> Self {
        let all = all.into();
        Self { array, first: range.start, room: all.len(), words: all.part(range), is_whole: false }
    }

    /// Describes a whole array; its first `used` words are in use.
    pub fn whole(array: u8, all: impl Into<Words<'a>>, used: usize) -> Self {
        Self { is_whole: true, ..Self::part(array, all, 0..used) }
    }
}

/// Most arrays of an engine that changes in place.
pub const ARRAYS: usize = 4;

/// The most words that each array may have, by its number. The default limits none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rooms(pub [usize; ARRAYS]);

impl Default for Rooms {
    fn default() -> Self {
        Self([usize::MAX; ARRAYS])
    }
}

impl Rooms {
    /// Returns the first array that has more words than its room, by the words that each has.
    #[must_use]
    pub fn exceeded_by(&self, words: &[usize]) -> Option<RoomExceeded> {
        let all = (0u8..).zip(words.iter().zip(self.0));
        let mut exceeded = all.filter(|(_, (words, room))| *words > room);
        exceeded.next().map(|(array, (&words, room))| RoomExceeded { array, words, room })
    }
}

/// An array that has no room for its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomExceeded {
    /// The number of the array.
    pub array: u8,
    /// The words that it has, or needs at least.
    pub words: usize,
    /// The words that it may have.
    pub room: usize,
}

/// Why changes could not be prepared in place.
#[derive(Debug)]
pub enum PrepareError {
    /// Memory ran out.
    Memory(OutOfMemory),
    /// The engine has to be built again, for this reason.
    Rebuild(&'static str),
}

impl From<OutOfMemory> for PrepareError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

/// The writer's side of an engine that one writer changes and any number of threads look up in.
///
/// A change is prepared, which writes units that no lookup reaches yet and can fail, and then published, which stores the
/// entries that lead to them, or a value of a unit in place of another, and cannot. Units that were replaced are retired: they come back by [`free`](Self::free) when
/// no reader can be in them.
pub trait InPlace<K: Key>: Send + Sync {
    /// Returns what readers look up in.
    fn reading(&self) -> Arc<dyn Fib<K>>;

    /// Returns the name of the engine, for errors.
    fn name(&self) -> &'static str;

    /// Prefetches the words that [`try_prepare`](Self::try_prepare) reads first for these changes. Called before the routes are
    /// changed, so that both wait for memory at the same time. Without an implementation nothing is prefetched.
    fn fetch(&mut self, _changes: &[Change<K>]) {}

    /// Prepares the answers of all addresses in these prefixes, which ascend. `after` has the routes as they will be. With
    /// `shadow`, they are to be published in a copy of the entries, so that nothing may be stored in units that readers see.
    ///
    /// # Errors
    /// When memory runs out, or the engine has to be built again. The caller then abandons what is prepared.
    fn try_prepare(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        shadow: bool,
    ) -> Result<(), PrepareError>;

    /// Returns whether so much of the arrays is free that units should move towards their beginning.
    fn is_loose(&self) -> bool;

    /// Prepares moves of units towards the beginning of their arrays; looks at so many entries.
    ///
    /// # Errors
    /// When memory runs out. The caller then abandons what is prepared.
    fn move_some(&mut self, entries: usize) -> Result<(), OutOfMemory>;

    /// Makes a copy of the entries.
    ///
    /// # Errors
    /// When memory runs out; what is prepared stays prepared.
    fn copy_entries(&mut self) -> Result<(), OutOfMemory>;

    /// Prepares the answers of all addresses in these prefixes, as [`try_prepare`](Self::try_prepare).
    ///
    /// # Errors
    /// When memory runs out. Then, and if the engine has to be built again, nothing is prepared.
    fn prepare(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        shadow: bool,
    ) -> Result<Applied, BuildError> {
        let Err(refused) = self.try_prepare(prefixes, after, shadow) else { return Ok(Applied::InPlace) };
        self.abandon();
        match refused {
            PrepareError::Memory(error) => Err(BuildError::memory(self.name(), error)),
            PrepareError::Rebuild(reason) => Ok(Applied::NeedsRebuild(reason)),
        }
    }

    /// Prepares moves of units towards the beginning of their arrays, if much of these is free, looking at so many entries.
    ///
    /// # Errors
    /// When memory runs out; nothing is prepared then.
    fn tidy(&mut self, entries: usize) -> Result<(), BuildError> {
        if !self.is_loose() {
            return Ok(());
        }
        self.move_some(entries).map_err(|error| {
            self.abandon();
            BuildError::memory(self.name(), error)
        })
    }

    /// Limits the words of each array from now on. A change that needs more must be made by a build, whose result may be
    /// smaller. Without an implementation an engine takes no limits.
    ///
    /// # Errors
    /// When an array has more words already. Nothing is limited then.
    fn limit(&mut self, rooms: &Rooms) -> Result<(), RoomExceeded> {
        rooms.exceeded_by(&[usize::MAX - 1; ARRAYS]).map_or(Ok(()), Err)
    }

    /// Returns the most units that publishing retires.
    fn retires(&self) -> usize;

    /// Forgets what is prepared.
    fn abandon(&mut self);

    /// Publishes what is prepared, entry by entry.
    fn publish(&mut self, publication: &mut dyn Publication);

    /// Makes room for a copy of the entries, so that [`publish_shadow`](Self::publish_shadow) can follow.
    ///
    /// # Errors
    /// When memory runs out; what is prepared still is.
    fn make_shadow(&mut self) -> Result<(), BuildError> {
        self.copy_entries().map_err(|error| BuildError::memory(self.name(), error))
    }

    /// Publishes what is prepared in a copy of the entries, for readers that see all of it or nothing: those of what
    /// [`reading`](Self::reading) returns from then on. Readers of the old entries still reach what is retired.
    fn publish_shadow(&mut self, publication: &mut dyn Publication);

    /// Emits the words in use of all arrays: those that entries lead to, then the entries.
    fn emit(&self, publication: &mut dyn Publication);

    /// Takes a unit back that was retired.
    fn free(&mut self, retired: RetiredUnit);

    /// Returns the bytes of a retired unit.
    fn bytes(&self, retired: RetiredUnit) -> usize;

    /// Returns the memory of everything, the lists of the writer included.
    fn memory(&self) -> Memory;

    /// Verifies all invariants, given what is retired and has not come back.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self, retired: &[RetiredUnit]) -> Result<(), CheckError>;

    /// Returns what makes an engine of the same shape from the words of its arrays. For tests of the engine itself, which
    /// implement it.
    #[cfg(any(test, feature = "testing"))]
    fn mirrored(&self) -> Mirrored<K> {
        unreachable!("only tests of the engine itself ask")
    }

    /// Returns the words of no unit that is in use, by array. As above.
    #[cfg(any(test, feature = "testing"))]
    fn free_words(&self) -> Vec<(u8, Range<usize>)> {
        unreachable!("only tests of the engine itself ask")
    }
}

/// Makes an engine from the words of its arrays.
#[cfg(any(test, feature = "testing"))]
pub type Mirrored<K> = Box<dyn Fn(&[Vec<u64>]) -> Box<dyn Fib<K>>>;

/// An engine that changes in place, without other readers than those that borrow it: what is retired is free at once.
pub struct Exclusive<K: Key> {
    editor: Box<dyn InPlace<K>>,
    reading: Arc<dyn Fib<K>>,
    retired: Vec<RetiredUnit>,
}

impl<K: Key> Exclusive<K> {
    /// Takes the writer's side.
    pub fn new(editor: Box<dyn InPlace<K>>) -> Self {
        Self { reading: editor.reading(), editor, retired: Vec::new() }
    }
}

/// Publishes what is prepared where no other thread reads, and takes back what that retires. Leaves `retired` empty.
///
/// # Errors
/// When there is no memory for a list of that; nothing is prepared any more then.
pub fn publish_alone<K: Key>(
    editor: &mut dyn InPlace<K>,
    retired: &mut Vec<RetiredUnit>,
) -> Result<(), BuildError> {
    if retired.try_reserve(editor.retires()).is_err() {
        editor.abandon();
        return Err(out_of_memory(editor.retires() * size_of::<RetiredUnit>()));
    }
    editor.publish(retired);
    retired.drain(..).for_each(|unit| editor.free(unit));
    Ok(())
}

impl<K: Key> Fib<K> for Exclusive<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.reading.lookup_key(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        self.reading.lookup_batch_on(isa, keys, results);
    }

    fn prefetches_keys(&self, isa: Present) -> bool {
        self.reading.prefetches_keys(isa)
    }

    fn memory(&self) -> Memory {
        self.editor.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.editor.check(&self.retired)
    }

    fn sections(&self) -> Option<Sections<'_>> {
        self.reading.sections()
    }

    fn exported(&self) -> Option<Sections<'_>> {
        self.reading.exported()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}

impl<K: Key> Updatable<K> for Exclusive<K> {
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        let mut prefixes: Vec<Prefix<K>> = Vec::new();
        if prefixes.try_reserve(changes.len()).is_err() {
            return Err(out_of_memory(size_of_val(changes)));
        }
        prefixes.extend(changes.iter().map(Change::prefix));
        prefixes.sort_unstable();
        match self.editor.prepare(&prefixes, after, false)? {
            Applied::InPlace => publish_alone(&mut *self.editor, &mut self.retired)?,
            refused => return Ok(refused),
        }
        if self.editor.tidy(TIDY).is_ok() {
            // What could not be moved will be another time.
            let _ = publish_alone(&mut *self.editor, &mut self.retired);
        }
        Ok(Applied::InPlace)
    }
}

impl Publication for Vec<RetiredUnit> {
    fn retire(&mut self, retired: RetiredUnit) {
        self.push(retired);
    }
}

/// Entries to look at with each change for units that could move.
pub const TIDY: usize = 4;

fn out_of_memory(wanted_bytes: usize) -> BuildError {
    BuildError::memory("changes", OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None })
}
