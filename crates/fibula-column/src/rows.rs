//! Rows of bytes of different lengths, and the numbers of dictionary entries.

use crate::arrow::bytes_of;

/// Where the bytes of a row lie. `start + len` is at most the length of the buffer, so that a reader can load more than the row where
/// the buffer has more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) buffer: &'a [u8],
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl<'a> Slot<'a> {
    #[inline(always)]
    fn new(buffer: &'a [u8], start: usize, end: usize) -> Option<Self> {
        (start <= end && end <= buffer.len()).then(|| Self { buffer, start, len: end - start })
    }

    /// Returns the bytes of the row.
    #[inline(always)]
    pub(crate) fn bytes(self) -> &'a [u8] {
        &self.buffer[self.start..self.start + self.len]
    }
}

/// Rows whose bytes can be found. One type for each shape, so that loops over rows are compiled for it.
pub(crate) trait Slots {
    /// Returns where the bytes of a row lie; `None` if that is outside the buffers.
    ///
    /// # Panics
    /// When there is no such row.
    fn slot(&self, row: usize) -> Option<Slot<'_>>;
}

/// Rows of bytes or of text, which differ in length: the shapes that columns have in memory.
///
/// Nothing but the number of rows is verified when one is made. A row that lies outside its buffer is an invalid row.
#[derive(Debug, Clone)]
pub struct ByteRows<'a>(pub(crate) RowShape<'a>);

#[derive(Debug, Clone)]
pub(crate) enum RowShape<'a> {
    Offsets32(Offsets32<'a>),
    Offsets64(Offsets64<'a>),
    Views(Views<'a>),
    Slices(Slices<'a>),
}

/// Calls a function that is generic over [`Slots`] with the rows of a [`ByteRows`].
macro_rules! with_slots {
    ($rows:expr, $slots:ident => $call:expr) => {
        match &$rows.0 {
            $crate::rows::RowShape::Offsets32($slots) => $call,
            $crate::rows::RowShape::Offsets64($slots) => $call,
            $crate::rows::RowShape::Views($slots) => $call,
            $crate::rows::RowShape::Slices($slots) => $call,
        }
    };
}
pub(crate) use with_slots;

impl<'a> ByteRows<'a> {
    /// Returns the rows whose bytes follow each other in `bytes`: row `i` is from `offsets[i]` to `offsets[i + 1]`. There is one
    /// offset more than rows, or none if there are no rows. As Arrow's `binary` and `string`.
    #[must_use]
    pub fn offsets32(offsets: &'a [i32], bytes: &'a [u8]) -> Self {
        Self::packed_offsets32(bytes_of(offsets).as_chunks().0, bytes)
    }

    /// Like [`offsets32`](Self::offsets32), with offsets of 64 bits. As Arrow's `large_binary` and `large_string`.
    #[must_use]
    pub fn offsets64(offsets: &'a [i64], bytes: &'a [u8]) -> Self {
        Self::packed_offsets64(bytes_of(offsets).as_chunks().0, bytes)
    }

    pub(crate) fn packed_offsets32(offsets: &'a [[u8; 4]], bytes: &'a [u8]) -> Self {
        Self(RowShape::Offsets32(Offsets32 { offsets, bytes }))
    }

    pub(crate) fn packed_offsets64(offsets: &'a [[u8; 8]], bytes: &'a [u8]) -> Self {
        Self(RowShape::Offsets64(Offsets64 { offsets, bytes }))
    }

    /// Returns the rows of these views: a length of 4 bytes, then the bytes themselves if there are at most 12, or else their first
    /// four, the number of the buffer they are in, and where in it they start. As Arrow's `binary_view` and `string_view`.
    #[must_use]
    pub fn views(views: &'a [[u8; 16]], buffers: Vec<&'a [u8]>) -> Self {
        Self(RowShape::Views(Views { views, buffers }))
    }

    /// Returns the rows that these slices are.
    #[must_use]
    pub fn slices(rows: &'a [&'a [u8]]) -> Self {
        Self(RowShape::Slices(Slices(rows)))
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            RowShape::Offsets32(rows) => rows.offsets.len().saturating_sub(1),
            RowShape::Offsets64(rows) => rows.offsets.len().saturating_sub(1),
            RowShape::Views(rows) => rows.views.len(),
            RowShape::Slices(rows) => rows.0.len(),
        }
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a row; `None` if it lies outside its buffer.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        with_slots!(self, rows => rows.slot(row).map(Slot::bytes))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Offsets32<'a> {
    offsets: &'a [[u8; 4]],
    bytes: &'a [u8],
}

impl Slots for Offsets32<'_> {
    #[inline(always)]
    fn slot(&self, row: usize) -> Option<Slot<'_>> {
        // A negative offset becomes one past every buffer.
        let at = |row: usize| i32::from_ne_bytes(self.offsets[row]) as usize;
        Slot::new(self.bytes, at(row), at(row + 1))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Offsets64<'a> {
    offsets: &'a [[u8; 8]],
    bytes: &'a [u8],
}

impl Slots for Offsets64<'_> {
    #[inline(always)]
    fn slot(&self, row: usize) -> Option<Slot<'_>> {
        let at = |row: usize| usize::try_from(i64::from_ne_bytes(self.offsets[row])).unwrap_or(usize::MAX);
        Slot::new(self.bytes, at(row), at(row + 1))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Views<'a> {
    views: &'a [[u8; 16]],
    buffers: Vec<&'a [u8]>,
}

/// Most bytes that a view holds itself.
const INLINE: usize = 12;

impl Slots for Views<'_> {
    #[inline(always)]
    fn slot(&self, row: usize) -> Option<Slot<'_>> {
        let view = &self.views[row];
        let field =
            |at: usize| u32::from_ne_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]) as usize;
        let len = field(0);
        if len <= INLINE {
            // All views are one buffer, so that loads may go on into the next one.
            let start = size_of_val(view) * row + 4;
            return Some(Slot { buffer: self.views.as_flattened(), start, len });
        }
        // A negative number becomes one that is past every buffer.
        let (buffer, start) = (*self.buffers.get(field(8))?, field(12));
        Slot::new(buffer, start, start.checked_add(len)?)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Slices<'a>(&'a [&'a [u8]]);

impl Slots for Slices<'_> {
    #[inline(always)]
    fn slot(&self, row: usize) -> Option<Slot<'_>> {
        let bytes = self.0[row];
        Some(Slot { buffer: bytes, start: 0, len: bytes.len() })
    }
}

/// The entry of a dictionary that each row has: integers of any width, in the machine's order.
#[derive(Debug, Clone, Copy)]
pub struct EntryNumbers<'a>(EntryWidth<'a>);

#[derive(Debug, Clone, Copy)]
enum EntryWidth<'a> {
    I8(&'a [[u8; 1]]),
    U8(&'a [[u8; 1]]),
    I16(&'a [[u8; 2]]),
    U16(&'a [[u8; 2]]),
    I32(&'a [[u8; 4]]),
    U32(&'a [[u8; 4]]),
    I64(&'a [[u8; 8]]),
    U64(&'a [[u8; 8]]),
}

impl<'a> EntryNumbers<'a> {
    /// Returns the numbers that lie in `bytes`, each of this many bytes, signed or not; `None` if there are no such integers. Bytes
    /// that make no whole number are left out.
    pub(crate) fn new(bytes: &'a [u8], width: usize, is_signed: bool) -> Option<Self> {
        Some(Self(match (width, is_signed) {
            (1, true) => EntryWidth::I8(bytes.as_chunks().0),
            (1, false) => EntryWidth::U8(bytes.as_chunks().0),
            (2, true) => EntryWidth::I16(bytes.as_chunks().0),
            (2, false) => EntryWidth::U16(bytes.as_chunks().0),
            (4, true) => EntryWidth::I32(bytes.as_chunks().0),
            (4, false) => EntryWidth::U32(bytes.as_chunks().0),
            (8, true) => EntryWidth::I64(bytes.as_chunks().0),
            (8, false) => EntryWidth::U64(bytes.as_chunks().0),
            _ => return None,
        }))
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            EntryWidth::I8(numbers) | EntryWidth::U8(numbers) => numbers.len(),
            EntryWidth::I16(numbers) | EntryWidth::U16(numbers) => numbers.len(),
            EntryWidth::I32(numbers) | EntryWidth::U32(numbers) => numbers.len(),
            EntryWidth::I64(numbers) | EntryWidth::U64(numbers) => numbers.len(),
        }
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of a row.
    #[inline(always)]
    pub(crate) fn number(&self, row: usize) -> i128 {
        match self.0 {
            EntryWidth::I8(numbers) => i8::from_ne_bytes(numbers[row]).into(),
            EntryWidth::U8(numbers) => u8::from_ne_bytes(numbers[row]).into(),
            EntryWidth::I16(numbers) => i16::from_ne_bytes(numbers[row]).into(),
            EntryWidth::U16(numbers) => u16::from_ne_bytes(numbers[row]).into(),
            EntryWidth::I32(numbers) => i32::from_ne_bytes(numbers[row]).into(),
            EntryWidth::U32(numbers) => u32::from_ne_bytes(numbers[row]).into(),
            EntryWidth::I64(numbers) => i64::from_ne_bytes(numbers[row]).into(),
            EntryWidth::U64(numbers) => u64::from_ne_bytes(numbers[row]).into(),
        }
    }

    /// Returns the entry of a row; one past every dictionary if the number is negative.
    #[inline(always)]
    pub(crate) fn entry(&self, row: usize) -> usize {
        usize::try_from(self.number(row)).unwrap_or(usize::MAX)
    }
}

macro_rules! from_integers {
    ($($integer:ty, $is_signed:literal;)*) => {$(
        impl<'a> From<&'a [$integer]> for EntryNumbers<'a> {
            fn from(numbers: &'a [$integer]) -> Self {
                Self::new(bytes_of(numbers), size_of::<$integer>(), $is_signed).expect("an integer of a known width")
            }
        }
    )*};
}
from_integers! {
    i8, true; u8, false; i16, true; u16, false; i32, true; u32, false; i64, true; u64, false;
}
