//! Tables that gathers read: slices with their bounds.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::{LANES, part};
use crate::memory::Cell;

/// 32-bit elements, plain or atomic; never empty, at most 2^29, so that every index is a positive lane.
#[derive(Debug)]
pub struct Words<'a, C = u32>(&'a [C]);

/// An element for each value of some leading bits of 32-bit keys, so that every key has an index in bounds.
#[derive(Debug, Clone, Copy)]
pub struct Leading<'a> {
    slice: &'a [AtomicU32],
    bits: u32,
}

/// 64-bit elements that a writer may change, also read 32 bits at a time at any byte offset: at most 2 GiB. The last
/// [`MARGIN`](Self::MARGIN) of them are padding.
#[derive(Debug, Clone, Copy)]
pub struct Longs<'a>(&'a [AtomicU64]);

impl<C> Clone for Words<'_, C> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Words<'_, C> {}

/// An element of 32 bits.
pub trait Cell32: Cell<Value = u32> + Sized {
    /// Whether a writer may change the elements while they are read.
    const CHANGES: bool;

    /// Returns the byte of elements at an offset, the lowest one of each element first.
    ///
    /// # Panics
    /// When it is past the end.
    fn byte_of(words: &[Self], offset: usize) -> u32;

    /// Returns the value of 2^`WIDTH` bytes at a byte offset, the lowest byte first. If it is in two elements and they change,
    /// its bytes are some old and some new.
    ///
    /// # Safety
    /// Four bytes from the offset on are within the words, and the machine has the lowest byte of a word first.
    #[allow(unsafe_code)]
    unsafe fn value_at<const WIDTH: u32>(words: &[Self], offset: usize) -> u32;
}

impl Cell32 for u32 {
    const CHANGES: bool = false;

    #[inline(always)]
    fn byte_of(words: &[Self], offset: usize) -> u32 {
        u32::from(byte_of(words, offset))
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn value_at<const WIDTH: u32>(words: &[Self], offset: usize) -> u32 {
        // SAFETY: as the caller says, four bytes from there on are within the words.
        let place = unsafe { words.as_ptr().cast::<u8>().add(offset) };
        match WIDTH {
            // SAFETY: the place is within the words.
            0 => u32::from(unsafe { place.read() }),
            // SAFETY: so are the four bytes from there on; the read needs no alignment.
            1 => u32::from(unsafe { place.cast::<u16>().read_unaligned() }),
            // SAFETY: as above.
            _ => unsafe { place.cast::<u32>().read_unaligned() },
        }
    }
}

impl Cell32 for AtomicU32 {
    const CHANGES: bool = true;

    #[inline(always)]
    #[allow(unsafe_code)]
    fn byte_of(words: &[Self], offset: usize) -> u32 {
        assert!(offset < size_of_val(words), "a byte of the words");
        // SAFETY: the byte is within the words.
        unsafe { part::load::<0>(words, offset) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn value_at<const WIDTH: u32>(words: &[Self], offset: usize) -> u32 {
        // SAFETY: as the caller says, the value is within the words.
        unsafe { part::load::<WIDTH>(words, offset) }
    }
}

/// 16-bit elements that are read 32 bits at a time: at least two, the last one read only as an upper half.
#[derive(Debug, Clone, Copy)]
pub struct Halves<'a>(&'a [u16]);

/// Words, plain or atomic, that are read at any byte offset; at least one word, at most 2^31 bytes.
#[derive(Debug)]
pub struct Bytes<'a, C = u32>(&'a [C]);

impl<C> Clone for Bytes<'_, C> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Bytes<'_, C> {}

/// Most bytes a table may have.
const BYTES_MAX: usize = 1 << 31;

impl<'a, C: Cell32> Words<'a, C> {
    /// Takes the whole slice.
    ///
    /// # Panics
    /// When it is empty or larger than 2 GiB.
    #[inline]
    pub fn new(slice: &'a [C]) -> Self {
        assert!(!slice.is_empty() && size_of_val(slice) <= BYTES_MAX, "a table of 1 element to 2 GiB");
        Self(slice)
    }

    /// Like [`new`](Self::new), but returns `None` instead of panicking.
    #[inline]
    pub fn fitting(slice: &'a [C]) -> Option<Self> {
        (!slice.is_empty() && size_of_val(slice) <= BYTES_MAX).then_some(Self(slice))
    }

    /// Returns the elements.
    #[inline]
    pub fn slice(self) -> &'a [C] {
        self.0
    }

    /// Returns the last index that may be read.
    #[inline]
    pub fn last(self) -> u32 {
        (self.0.len() - 1) as u32
    }
}

impl<'a> Words<'a> {
    /// Takes the whole array.
    pub const fn of_one(array: &'a [u32; 1]) -> Self {
        Self(array)
    }
}

impl<'a> Leading<'a> {
    /// Takes the whole slice, which is for this many leading bits.
    ///
    /// # Panics
    /// When it has another number of elements, or there are no bits or more than 29.
    #[inline]
    pub fn new(slice: &'a [AtomicU32], bits: u32) -> Self {
        assert!((1..30).contains(&bits) && slice.len() == 1 << bits, "an element for all leading bits");
        Self { slice, bits }
    }

    /// Returns the elements.
    #[inline]
    pub fn slice(self) -> &'a [AtomicU32] {
        self.slice
    }

    /// Returns the number of bits after the leading ones, from 3 to 31.
    #[inline]
    pub fn behind(self) -> u32 {
        32 - self.bits
    }
}

impl<'a> Longs<'a> {
    /// Number of padding elements: a value of up to 8 bytes whose number is at most 64, counted from after an element,
    /// lies within so many.
    pub const MARGIN: usize = 66;

    /// Takes the whole slice.
    ///
    /// # Panics
    /// When there is nothing but padding, or more than 2 GiB.
    #[inline]
    pub fn new(slice: &'a [AtomicU64]) -> Self {
        let fits = slice.len() > Self::MARGIN && size_of_val(slice) <= BYTES_MAX;
        assert!(fits, "an element and the padding, 2 GiB at most");
        Self(slice)
    }

    /// Returns the elements.
    #[inline]
    pub fn slice(self) -> &'a [AtomicU64] {
        self.0
    }

    /// Returns the last index that is not of padding.
    #[inline]
    pub fn last(self) -> u32 {
        (self.0.len() - 1 - Self::MARGIN) as u32
    }

    /// Returns the last byte offset at which 32 bits can be read.
    #[inline]
    pub fn last_byte(self) -> u32 {
        (size_of_val(self.0) - size_of::<u32>()) as u32
    }

    /// Returns the last byte offset at which 64 bits can be read.
    #[inline]
    pub fn last_long(self) -> u32 {
        (size_of_val(self.0) - size_of::<u64>()) as u32
    }

    /// Returns the 64 bits at a byte offset, the lowest byte first.
    ///
    /// # Panics
    /// When they end past the table.
    #[inline(always)]
    pub fn long_at(self, offset: u32) -> u64 {
        part::long(self.0, offset as usize)
    }

    /// Returns the 32 bits at a byte offset, the lowest byte first.
    ///
    /// # Panics
    /// When they end past the table.
    #[cfg(any(test, target_arch = "aarch64"))]
    #[inline]
    pub fn at_byte(self, offset: u32) -> u32 {
        let (word, bits) = (offset as usize / 8, 8 * (offset % 8));
        let low = self.0[word].read() >> bits;
        // A word's upper half may need the next one.
        if bits <= 32 { low as u32 } else { (low | self.0[word + 1].read() << (64 - bits)) as u32 }
    }
}

impl<'a> Halves<'a> {
    /// Takes the whole array.
    pub const fn of_two(array: &'a [u16; 2]) -> Self {
        Self(array)
    }

    /// Takes the whole slice. All of its elements except the last one have an index.
    ///
    /// # Panics
    /// When there are fewer than two elements, or more than 2 GiB.
    #[inline]
    pub fn new(slice: &'a [u16]) -> Self {
        assert!(slice.len() >= 2 && size_of_val(slice) <= BYTES_MAX, "a table of 2 elements to 2 GiB");
        Self(slice)
    }

    /// Like [`new`](Self::new), but returns `None` instead of panicking.
    #[inline]
    pub fn fitting(slice: &'a [u16]) -> Option<Self> {
        (slice.len() >= 2 && size_of_val(slice) <= BYTES_MAX).then_some(Self(slice))
    }

    /// Returns the elements, the last one included.
    #[inline]
    pub fn slice(self) -> &'a [u16] {
        self.0
    }

    /// Returns the last index that may be read.
    #[inline]
    pub fn last(self) -> u32 {
        (self.0.len() - 2) as u32
    }
}

impl<'a, C: Cell32> Bytes<'a, C> {
    /// Takes the whole slice.
    ///
    /// # Panics
    /// When it is empty or larger than 2 GiB.
    #[inline]
    pub fn new(slice: &'a [C]) -> Self {
        assert!(!slice.is_empty() && size_of_val(slice) <= BYTES_MAX, "a table of 1 element to 2 GiB");
        Self(slice)
    }

    /// Returns the words.
    #[inline]
    pub fn slice(self) -> &'a [C] {
        self.0
    }

    /// Returns the last byte offset at which 32 bits can be read.
    #[inline]
    pub fn last(self) -> u32 {
        (size_of_val(self.0) - size_of::<u32>()) as u32
    }
}

/// Room for a block of vectors. It is not cleared, because that takes
/// two instructions a vector. Only the vectors that were filled can be read.
#[derive(Debug)]
pub struct Room<const VECTORS: usize> {
    at: [MaybeUninit<[u32; LANES]>; VECTORS],
    filled: usize,
}

/// Returns vectors as written.
///
/// # Safety
/// They have been.
#[inline]
#[allow(unsafe_code)]
unsafe fn written(vectors: &mut [MaybeUninit<[u32; LANES]>]) -> &mut [[u32; LANES]] {
    // SAFETY: the layout is the same, and the caller says that the vectors have been written.
    unsafe { &mut *(core::ptr::from_mut(vectors) as *mut [[u32; LANES]]) }
}

impl<const VECTORS: usize> Default for Room<VECTORS> {
    /// Returns room without vectors.
    #[inline]
    fn default() -> Self {
        Self { at: [const { MaybeUninit::uninit() }; VECTORS], filled: 0 }
    }
}

impl<const VECTORS: usize> Room<VECTORS> {
    /// Returns this number of vectors, all zero, for the caller to write.
    ///
    /// # Panics
    /// When there is no room for them.
    #[inline]
    #[allow(unsafe_code)]
    pub fn zeros(&mut self, vectors: usize) -> &mut [[u32; LANES]] {
        self.at[..vectors].fill(MaybeUninit::new([0; LANES]));
        self.filled = vectors;
        // SAFETY: the first `filled` vectors have been written.
        unsafe { written(&mut self.at[..vectors]) }
    }

    /// Returns the vectors that were filled last.
    #[inline]
    #[allow(unsafe_code)]
    pub fn filled(&self) -> &[[u32; LANES]] {
        // SAFETY: the first `filled` vectors have been written.
        unsafe { &*(core::ptr::from_ref(&self.at[..self.filled]) as *const [[u32; LANES]]) }
    }
}

/// Vectors of lanes that are filled one by one with values up to a bound.
pub struct Bounded<'a> {
    /// The bound of all lanes of the first `filled` vectors.
    last: u32,
    /// Of these, the first `filled` have been written.
    at: &'a mut [MaybeUninit<[u32; LANES]>],
    filled: usize,
}

impl<'a> Bounded<'a> {
    #[inline]
    #[allow(unsafe_code)]
    fn over(at: &'a mut [[u32; LANES]], last: u32) -> Self {
        // SAFETY: the layout is the same, and only whole vectors are written (`next`), so that none is unwritten later.
        let at = unsafe { &mut *(core::ptr::from_mut(at) as *mut [MaybeUninit<[u32; LANES]>]) };
        Self { last, at, filled: 0 }
    }

    /// Returns the bound.
    #[inline]
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// Returns the lanes of the next vector. The caller must write nothing above the bound.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub(super) fn next(&mut self) -> &mut [u32; LANES] {
        // Zero is within every bound. The compiler leaves the zeros out, as the caller writes all lanes.
        let next = self.at[self.filled].write([0; LANES]);
        self.filled += 1;
        next
    }

    /// Returns the vectors that are filled.
    #[inline]
    #[allow(unsafe_code)]
    fn filled(&mut self) -> &mut [[u32; LANES]] {
        // SAFETY: the first `filled` vectors have been written.
        unsafe { written(&mut self.at[..self.filled]) }
    }
}

/// Byte offsets at which a table is read lane by lane. The values replace the offsets, or go to an array of their own.
///
/// A gather costs as much as its loads and keeps others from starting: kernels that gather at one level and load lane
/// by lane at the next are faster than kernels that do the same at both.
pub struct Places<'a, C = u32> {
    table: Bytes<'a, C>,
    at: Bounded<'a>,
    /// Where a room notes how many vectors of it are filled.
    noted: Option<&'a mut usize>,
}

impl<'a, C: Cell32> Places<'a, C> {
    /// Returns an empty list of places that fills `at`.
    #[inline]
    pub fn new(table: Bytes<'a, C>, at: &'a mut [[u32; LANES]]) -> Self {
        Self { at: Bounded::over(at, table.last()), table, noted: None }
    }

    /// Returns an empty list of places that fills a room, and stays there after the values are [read](Self::read_beside).
    #[inline]
    pub fn in_room<const VECTORS: usize>(table: Bytes<'a, C>, room: &'a mut Room<VECTORS>) -> Self {
        room.filled = 0;
        let at = Bounded { last: table.last(), at: &mut room.at, filled: 0 };
        Self { table, at, noted: Some(&mut room.filled) }
    }

    /// Returns the places, to be filled.
    #[inline]
    pub fn lanes(&mut self) -> &mut Bounded<'a> {
        &mut self.at
    }

    /// Replaces each place by the value of 2^`WIDTH` bytes that it leads to.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn read<const WIDTH: u32>(mut self) {
        let words = self.checked();
        // By vectors, so that the compiler repeats the code of a lane: it does not know how often a list of lanes is gone through.
        for lanes in self.at.filled() {
            for lane in lanes {
                // SAFETY: the lane is one of this list.
                put(lane, unsafe { value_at::<C, WIDTH>(words, *lane) });
            }
        }
    }

    /// Writes the value of 2^`WIDTH` bytes that each place leads to. The places stay in the room.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn read_beside<const WIDTH: u32>(mut self, found: &mut [[u32; LANES]]) {
        let words = self.checked();
        for (lanes, found) in self.at.filled().iter().zip(found) {
            for (lane, found) in lanes.iter().zip(found) {
                // SAFETY: the lane is one of this list.
                put(found, unsafe { value_at::<C, WIDTH>(words, *lane) });
            }
        }
        if let Some(noted) = self.noted {
            *noted = self.at.filled;
        }
    }

    /// Returns the words, in which every lane is the offset of four bytes.
    #[inline(always)]
    fn checked(&self) -> &'a [C] {
        // A caller might have replaced the lanes.
        assert!(self.at.last <= self.table.last(), "places of this table");
        self.table.slice()
    }
}

/// Returns the value at a place.
///
/// # Safety
/// The place is one of a checked list of [`Places`] of these words.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn value_at<C: Cell32, const WIDTH: u32>(words: &[C], place: u32) -> u32 {
    // SAFETY: no place is beyond the last word. Lists are filled on machines only that have the lowest byte first.
    unsafe { C::value_at::<WIDTH>(words, place as usize) }
}

/// Number of words of a line.
pub const LINE_WORDS: usize = 16;

/// A cache line of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub(crate) [u32; LINE_WORDS]);

const _: () = assert!(size_of::<Line>() == 64);

/// Returns the byte of words at an offset, the lowest one of each word first.
///
/// # Panics
/// When it is past the end.
#[inline(always)]
#[allow(unsafe_code)]
fn byte_of(words: &[u32], offset: usize) -> u8 {
    // SAFETY: these are the bytes of the slice, all of them initialised, and bytes need no alignment.
    let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
    bytes[if cfg!(target_endian = "big") { offset ^ 3 } else { offset }]
}

/// Writes a lane by a store of its own. Otherwise the compiler collects several lanes in a register first, which takes
/// longer than the stores.
#[inline(always)]
#[allow(unsafe_code)]
pub fn put(lane: &mut u32, value: u32) {
    // SAFETY: this is a reference's own lane.
    unsafe { core::ptr::write_volatile(lane, value) };
}

/// Prefetches the cache lines of values that are needed soon. Does nothing on machines without such a hint.
#[inline(always)]
pub fn fetch<T>(values: &[T]) {
    for line in 0..size_of_val(values).div_ceil(LINE_BYTES) {
        fetch_line(values, line);
    }
}

/// Prefetches the cache line of a value. It may be past the end, because the bytes there may be read next. Does nothing on
/// machines without such a hint.
#[inline(always)]
pub fn fetch_past<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().wrapping_add(at).cast::<i8>());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}

/// Prefetches one cache line of the values, or the line after them.
#[inline(always)]
fn fetch_line<T>(values: &[T], line: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let offset = (line * LINE_BYTES).min(size_of_val(values));
        // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().wrapping_add(offset));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, line);
}

const LINE_BYTES: usize = size_of::<Line>();
