//! Tables that gathers read: slices whose bounds are kept by the type.

use super::LANES;

/// 32-bit elements; never empty, at most 2^29, so that every index is a positive lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a>(&'a [u32]);

/// 16-bit elements that are read 32 bits at a time: at least two, the last one read only as somebody's upper half.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Halves<'a>(&'a [u16]);

/// Words that are read at any byte offset, 32 bits at a time; at least one word, at most 2^31 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a>(&'a [u32]);

/// Most bytes a table may have.
const BYTES_MAX: usize = 1 << 31;

impl<'a> Words<'a> {
    /// The whole slice.
    ///
    /// # Panics
    /// When it is empty or beyond 2 GiB.
    #[inline]
    pub(crate) fn new(slice: &'a [u32]) -> Self {
        assert!(!slice.is_empty() && size_of_val(slice) <= BYTES_MAX, "a table of 1 element to 2 GiB");
        Self(slice)
    }

    /// As [`new`](Self::new), none where that would panic.
    #[inline]
    pub(crate) fn fitting(slice: &'a [u32]) -> Option<Self> {
        (!slice.is_empty() && size_of_val(slice) <= BYTES_MAX).then_some(Self(slice))
    }

    /// The elements.
    #[inline]
    pub(crate) fn slice(self) -> &'a [u32] {
        self.0
    }

    /// The last index that may be read.
    #[inline]
    pub(crate) fn last(self) -> u32 {
        (self.0.len() - 1) as u32
    }
}

impl<'a> Halves<'a> {
    /// All but the last element can be asked for.
    ///
    /// # Panics
    /// When there are fewer than two, or they are beyond 2 GiB.
    #[inline]
    pub(crate) fn new(slice: &'a [u16]) -> Self {
        assert!(slice.len() >= 2 && size_of_val(slice) <= BYTES_MAX, "a table of 2 elements to 2 GiB");
        Self(slice)
    }

    /// As [`new`](Self::new), none where that would panic.
    #[inline]
    pub(crate) fn fitting(slice: &'a [u16]) -> Option<Self> {
        (slice.len() >= 2 && size_of_val(slice) <= BYTES_MAX).then_some(Self(slice))
    }

    /// The elements, the padding included.
    #[inline]
    pub(crate) fn slice(self) -> &'a [u16] {
        self.0
    }

    /// The last index that may be read.
    #[inline]
    pub(crate) fn last(self) -> u32 {
        (self.0.len() - 2) as u32
    }
}

impl<'a> Bytes<'a> {
    /// The whole slice.
    ///
    /// # Panics
    /// When it is empty or beyond 2 GiB.
    #[inline]
    pub(crate) fn new(slice: &'a [u32]) -> Self {
        assert!(!slice.is_empty() && size_of_val(slice) <= BYTES_MAX, "a table of 1 element to 2 GiB");
        Self(slice)
    }

    /// The words.
    #[inline]
    pub(crate) fn slice(self) -> &'a [u32] {
        self.0
    }

    /// The last byte offset at which 32 bits can be read.
    #[inline]
    pub(crate) fn last(self) -> u32 {
        (size_of_val(self.0) - size_of::<u32>()) as u32
    }
}

/// Vectors of lanes that are filled one after the other with what is no more than a bound.
pub(crate) struct Bounded<'a> {
    /// What no lane of the first `filled` vectors is above.
    last: u32,
    at: &'a mut [[u32; LANES]],
    filled: usize,
}

impl Bounded<'_> {
    /// The bound.
    #[inline]
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// The lanes of the next vector, for those who write nothing above the bound there.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub(super) fn next(&mut self) -> &mut [u32; LANES] {
        self.filled += 1;
        &mut self.at[self.filled - 1]
    }

    /// What stands where the next vector will.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub(crate) fn before(&self) -> &[u32; LANES] {
        &self.at[self.filled]
    }

    /// One more vector; lanes above the bound become the bound.
    #[inline]
    pub(crate) fn push(&mut self, lanes: [u32; LANES]) {
        let last = self.last;
        *self.next() = lanes.map(|lane| lane.min(last));
    }

    /// All lanes that are filled.
    #[inline]
    fn filled(&mut self) -> &mut [u32] {
        self.at[..self.filled].as_flattened_mut()
    }
}

/// Byte offsets at which a table is read one lane after the other; where they stood are the values then.
///
/// A gather costs as much as so many loads and keeps others from starting: kernels that gather at one level and load
/// lane by lane at the next are faster than those that do either at both.
pub(crate) struct Places<'a> {
    table: Bytes<'a>,
    at: Bounded<'a>,
}

impl<'a> Places<'a> {
    /// No places yet, and room for them.
    #[inline]
    pub(crate) fn new(table: Bytes<'a>, at: &'a mut [[u32; LANES]]) -> Self {
        Self { at: Bounded { last: table.last(), at, filled: 0 }, table }
    }

    /// The places, to be filled.
    #[inline]
    pub(crate) fn lanes(&mut self) -> &mut Bounded<'a> {
        &mut self.at
    }

    /// Puts the values of 2^`WIDTH` bytes where their places stood.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn read<const WIDTH: u32>(mut self) {
        // Whoever has the lanes might have put others in their place.
        assert!(self.at.last <= self.table.last(), "places of this table");
        let start = self.table.slice().as_ptr().cast::<u8>();
        for lane in self.at.filled() {
            // SAFETY: every offset is at most that of the table's last word.
            let place = unsafe { start.add(*lane as usize) };
            let value = match WIDTH {
                // SAFETY: the place is within the table.
                0 => u32::from(unsafe { place.read() }),
                // SAFETY: four bytes from the place on are within the table; no alignment is asked for.
                1 => u32::from(unsafe { place.cast::<u16>().read_unaligned() }),
                // SAFETY: as above.
                _ => unsafe { place.cast::<u32>().read_unaligned() },
            };
            put(lane, value);
        }
    }
}

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 16;

/// A cache line of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u32; LINE_WORDS]);

const _: () = assert!(size_of::<Line>() == 64);

/// Lines of trees, the children of each somewhere behind it; the last [`MARGIN`](Self::MARGIN) of them are padding.
///
/// Lines are found by their *places*: a line is [`LINE`](Self::LINE) places, so that an address is one sum with a
/// factor that processors have. The lower bits of a place are for whoever keeps it to mark it with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nodes<'a>(&'a [Line]);

impl<'a> Nodes<'a> {
    /// Lines at the end that are nobody's, so that the children of any other line are there.
    pub(crate) const MARGIN: usize = 33;

    /// Places of a line.
    pub(crate) const LINE: u32 = 8;

    /// Most lines.
    pub(crate) const MOST: usize = 1 << 29;

    /// The whole slice.
    ///
    /// # Panics
    /// When there is nothing but padding, or more than [`MOST`](Self::MOST).
    #[inline]
    pub(crate) fn new(slice: &'a [Line]) -> Self {
        assert!(
            slice.len() > Self::MARGIN && slice.len() <= Self::MOST,
            "a line and the padding, 2^29 at most"
        );
        Self(slice)
    }

    /// The last place that is not padding, with all its marks.
    #[inline]
    fn last(self) -> u32 {
        (self.0.len() - Self::MARGIN) as u32 * Self::LINE - 1
    }

    /// The line at a place without marks.
    ///
    /// # Panics
    /// When the place is behind the end.
    #[inline]
    pub(crate) fn at(self, place: u32) -> &'a [u32; LINE_WORDS] {
        &self.0[(place / Self::LINE) as usize].0
    }

    /// The words that begin so many lines behind a place, marks and all.
    ///
    /// # Safety
    /// The place must be at most `(lines - behind - 1) * LINE`, padding counted.
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn words(self, place: u32, behind: usize) -> &'a [u32; LINE_WORDS] {
        const SCALE: usize = size_of::<Line>() / Nodes::LINE as usize;
        // Sums of addresses are free where those of places, which could wrap, are not.
        let start = self.0.as_ptr().wrapping_add(behind).cast::<u8>();
        // SAFETY: the words end within the slice, and every place is a multiple of eight bytes.
        unsafe { &*start.wrapping_add(place as usize * SCALE).cast() }
    }
}

/// Places of lines, one a lane, on the way down.
pub(crate) struct Walks<'a> {
    nodes: Nodes<'a>,
    at: Bounded<'a>,
}

impl<'a> Walks<'a> {
    /// No places yet, and room for them.
    #[inline]
    pub(crate) fn new(nodes: Nodes<'a>, at: &'a mut [[u32; LANES]]) -> Self {
        Self { nodes, at: Bounded { last: nodes.last(), at, filled: 0 } }
    }

    /// The places, to be filled.
    #[inline]
    pub(crate) fn lanes(&mut self) -> &mut Bounded<'a> {
        &mut self.at
    }

    /// The place of a lane, with its marks.
    ///
    /// # Panics
    /// When the lane has none.
    #[inline]
    pub(crate) fn place(&mut self, lane: usize) -> u32 {
        self.at.filled()[lane]
    }

    /// The places of these lanes become what `to` makes of the line there, their key and the place, at most the last
    /// line's.
    ///
    /// # Panics
    /// When a lane has no place, or there are fewer keys than places.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn step(
        &mut self,
        lanes: &[u8],
        keys: &[[u32; LANES]],
        to: impl Fn(&[u32; LINE_WORDS], u32, u32) -> u32,
    ) {
        assert!(self.at.last <= self.nodes.last(), "places of these nodes");
        let Self { nodes, at } = self;
        let last = at.last;
        let keys = keys[..at.filled].as_flattened();
        let places = at.filled();
        for &lane in lanes {
            let lane = usize::from(lane);
            let place = places[lane];
            // SAFETY: the place is at most that of the last line, with marks or without.
            let line = unsafe { nodes.words(place & !(Nodes::LINE - 1), 0) };
            put(&mut places[lane], to(line, keys[lane], place).min(last));
        }
    }

    /// Replaces all places, which have no marks, by what `value` makes of the child there whose number `rank` gives, child
    /// 0 being the line behind. A number beyond 31 counts modulo 32. Two loops by fours, all of which are searched before
    /// the first is stored. The second one asks for a line of what is wanted `next` with every four.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn descend<T>(
        self,
        keys: &[[u32; LANES]],
        next: &[T],
        rank: impl Fn(&[u32; LINE_WORDS], u32) -> u32,
        value: impl Fn(&[u32; LINE_WORDS], u32) -> u32,
    ) {
        // Whoever has the lanes might have put others in their place.
        assert!(self.at.last <= self.nodes.last(), "places of these nodes");
        let Self { nodes, mut at } = self;
        let keys = keys[..at.filled].as_flattened().as_chunks::<4>().0;
        let places = at.filled().as_chunks_mut::<4>().0;
        for (places, keys) in places.iter_mut().zip(keys) {
            let children: [u32; 4] = core::array::from_fn(|lane| {
                let place = places[lane];
                // SAFETY: the place is at most that of the last line.
                let line = unsafe { nodes.words(place, 0) };
                // The line before the child: one operation less.
                place + rank(line, keys[lane]) % 32 * Nodes::LINE
            });
            places.iter_mut().zip(children).for_each(|(place, child)| put(place, child));
        }
        for (four, (places, keys)) in places.iter_mut().zip(keys).enumerate() {
            fetch_line(next, four);
            let values: [u32; 4] = core::array::from_fn(|lane| {
                // SAFETY: the first loop has made every place one of at most 31 lines behind the last; 33 are padding.
                let line = unsafe { nodes.words(places[lane], 1) };
                value(line, keys[lane])
            });
            places.iter_mut().zip(values).for_each(|(place, value)| put(place, value));
        }
    }
}

/// The byte of words at an offset, the lowest one of each word first.
///
/// # Panics
/// When it is behind the end.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn byte_of(words: &[u32], offset: usize) -> u8 {
    // SAFETY: these are the bytes of the slice, all of them initialised, and bytes need no alignment.
    let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
    bytes[if cfg!(target_endian = "big") { offset ^ 3 } else { offset }]
}

/// The 16-bit half of words at an index, the lower one of each word first.
///
/// # Panics
/// When it is behind the end.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn half_of(words: &[u32], index: usize) -> u16 {
    // SAFETY: these are the halves of the slice's words, all of them initialised, and words are aligned for halves.
    let halves = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u16>(), 2 * words.len()) };
    halves[if cfg!(target_endian = "big") { index ^ 1 } else { index }]
}

/// Writes a lane by a store of its own: the compiler does not collect several in a register first, which takes longer
/// than their stores.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn put(lane: &mut u32, value: u32) {
    // SAFETY: this is a reference's own lane.
    unsafe { core::ptr::write_volatile(lane, value) };
}

/// Asks for the cache lines of values that are wanted soon. A hint, and nothing where the machine takes none.
#[inline(always)]
pub fn fetch<T>(values: &[T]) {
    for line in 0..size_of_val(values).div_ceil(LINE_BYTES) {
        fetch_line(values, line);
    }
}

/// Asks for one of the cache lines of such values, or for the one behind them.
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
