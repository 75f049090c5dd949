//! The readers' slots, and how readers get and return them.

use core::fmt;
use core::marker::PhantomData;

use super::super::sync::{Arc, AtomicU64, Ordering, fence};
use super::{Domain, IDLE, SeenPin};
use crate::memory::{Budget, Limits, Memory, OutOfMemory, allocated};

/// A word on cache lines of its own: two, because processors fetch them in pairs.
#[repr(align(128))]
pub(super) struct PaddedWord(pub(super) AtomicU64);

/// Bytes that the allocator gives for one slot: the line, and the two counters of the `Arc` in front of it.
const SLOT_BYTES: usize = 2 * size_of::<PaddedWord>();

/// All slots of a domain, in the order of their numbers.
pub(super) struct ReaderSlots {
    places: Vec<Place>,
    budget: Budget,
}

struct Place {
    slot: Arc<PaddedWord>,
    taken: bool,
}

impl ReaderSlots {
    pub(super) fn new(limits: Limits) -> Self {
        Self { places: Vec::new(), budget: Budget::new(limits) }
    }

    /// Takes the free slot with the lowest number, or a new one.
    fn take(&mut self) -> Result<(usize, Arc<PaddedWord>), OutOfMemory> {
        let number = match self.places.iter().position(|place| !place.taken) {
            Some(number) => number,
            None => self.add()?,
        };
        let place = &mut self.places[number];
        place.taken = true;
        Ok((number, Arc::clone(&place.slot)))
    }

    fn add(&mut self) -> Result<usize, OutOfMemory> {
        self.budget.reserve(&mut self.places, 1)?;
        self.budget.charge(SLOT_BYTES)?;
        self.places.push(Place { slot: Arc::new(PaddedWord(AtomicU64::new(IDLE))), taken: false });
        Ok(self.places.len() - 1)
    }

    fn give_back(&mut self, number: usize) {
        self.places[number].taken = false;
    }

    pub(super) fn readers(&self) -> usize {
        self.places.iter().filter(|place| place.taken).count()
    }

    pub(super) fn memory(&self) -> Memory {
        let allocated_bytes = allocated(&self.places) + self.places.len() * SLOT_BYTES;
        Memory { allocated_bytes, ..Memory::default() }
    }

    /// Returns the pin with the lowest epoch.
    pub(super) fn oldest_pin(&self) -> Option<SeenPin> {
        let mut oldest: Option<SeenPin> = None;
        for (reader, place) in self.places.iter().enumerate() {
            // A slot that was given back is idle, and its line need not be loaded.
            if !place.taken {
                continue;
            }
            // Acquire: if this is the end of a pin, the reader's loads come before anything that the writer does with the unit
            // next.
            let epoch = place.slot.0.load(Ordering::Acquire);
            if epoch != IDLE && oldest.is_none_or(|pin| epoch < pin.epoch) {
                oldest = Some(SeenPin { reader, epoch });
            }
        }
        oldest
    }
}

/// A reader's slot. One thread at a time pins it. It is given back when it is dropped, pinned or not.
///
/// Whatever the reader found in the tables is valid from [`pin`](Self::pin) to the next call of any of the three, and a
/// type that borrows must make sure of that.
pub(crate) struct ReaderSlot {
    domain: Arc<Domain>,
    slot: Arc<PaddedWord>,
    number: usize,
    /// `Send`, but not `Sync`: only one thread may store.
    _not_sync: OfOneThread<()>,
}

/// A part that is `Send` but not `Sync`, because no type implements [`SharedByThreads`].
struct OfOneThread<T>(PhantomData<T>);

/// A bound that never holds. The compiler reports its message when a program shares a reader.
#[diagnostic::on_unimplemented(
    message = "a reader belongs to one thread: threads cannot share it",
    label = "threads would share this reader",
    note = "give each thread a reader of its own: `table.reader()?`, or a clone of another reader"
)]
trait SharedByThreads {}

#[allow(unsafe_code)]
// SAFETY: no type implements the bound, so this never applies. It is here because a cell or a pointer in its place would be
// named by the compiler instead of the message.
unsafe impl<T: SharedByThreads> Sync for OfOneThread<T> {}

impl ReaderSlot {
    /// Registers a reader. Takes a lock, and at times allocates.
    ///
    /// # Errors
    /// When the domain's memory limit is reached, or there is no memory.
    pub(crate) fn register(domain: &Arc<Domain>) -> Result<Self, OutOfMemory> {
        let (number, slot) = domain.slots().take()?;
        Ok(Self { domain: Arc::clone(domain), slot, number, _not_sync: OfOneThread(PhantomData) })
    }

    /// Returns the domain.
    #[inline]
    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the number of the slot, by which errors name the reader. Numbers are reused, the lowest first.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Pins the reader and returns the epoch: all changes that ended before it are visible. A reader that is pinned
    /// already is pinned again, at the present epoch.
    #[inline]
    pub(crate) fn pin(&self) -> u64 {
        // Relaxed: the fence acquires what this load has seen.
        let epoch = self.domain.epoch.0.load(Ordering::Relaxed);
        // Release: the writer may see this store without the one of the unpin before.
        self.slot.0.store(epoch, Ordering::Release);
        fence(Ordering::SeqCst);
        epoch
    }

    /// Moves the pin of a pinned reader to the present epoch, and returns that epoch. Memory that the old pin kept may be freed.
    #[inline]
    pub(crate) fn refresh(&self) -> u64 {
        // An idle slot would need the fence of a pin.
        debug_assert_ne!(self.slot.0.load(Ordering::Relaxed), IDLE, "refresh without a pin");
        // Acquire: lookups after this see the entries that were stored before the epoch ended. No fence is needed, because the
        // old pin covers the time in between.
        let now = self.domain.epoch.0.load(Ordering::Acquire);
        self.slot.0.store(now, Ordering::Release);
        now
    }

    /// Ends the pin.
    #[inline]
    pub(crate) fn unpin(&self) {
        // Release: the loads of the pin come before the writer sees that it has ended.
        self.slot.0.store(IDLE, Ordering::Release);
    }
}

impl Drop for ReaderSlot {
    fn drop(&mut self) {
        // Before the slot is given back: the next reader's pin must not be ended by this store.
        self.unpin();
        self.domain.slots().give_back(self.number);
    }
}

impl fmt::Debug for ReaderSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderSlot").field("number", &self.number).finish_non_exhaustive()
    }
}
