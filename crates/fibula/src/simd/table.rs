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

/// Words of a node: a cache line.
pub(crate) const NODE_WORDS: usize = 16;

/// Nodes of a tree, each followed by its children; the last [`MARGIN`](Self::MARGIN) of them are padding.
#[derive(Debug)]
pub(crate) struct Nodes<'a, N>(&'a [N]);

impl<N> Clone for Nodes<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Nodes<'_, N> {}

impl<'a, N: AsRef<[u32; NODE_WORDS]>> Nodes<'a, N> {
    /// Nodes at the end that are nobody's, so that the children of any other node are there.
    pub(crate) const MARGIN: usize = 32;

    /// The whole slice.
    ///
    /// # Panics
    /// When there is nothing but padding.
    #[inline]
    pub(crate) fn new(slice: &'a [N]) -> Self {
        assert!(slice.len() > Self::MARGIN, "a node and the padding");
        Self(slice)
    }

    /// The last node that is not padding.
    #[inline]
    fn last(self) -> u32 {
        (self.0.len() - 1 - Self::MARGIN) as u32
    }

    /// The node at a place.
    ///
    /// # Panics
    /// When the place is behind the end.
    #[inline]
    pub(crate) fn at(self, place: u32) -> &'a [u32; NODE_WORDS] {
        self.0[place as usize].as_ref()
    }
}

/// Places of nodes, one a lane, on the way down.
pub(crate) struct Walks<'a, N> {
    nodes: Nodes<'a, N>,
    at: Bounded<'a>,
}

impl<'a, N: AsRef<[u32; NODE_WORDS]>> Walks<'a, N> {
    /// No places yet, and room for them.
    #[inline]
    pub(crate) fn new(nodes: Nodes<'a, N>, at: &'a mut [[u32; LANES]]) -> Self {
        Self { nodes, at: Bounded { last: nodes.last(), at, filled: 0 } }
    }

    /// The places, to be filled.
    #[inline]
    pub(crate) fn lanes(&mut self) -> &mut Bounded<'a> {
        &mut self.at
    }

    /// The place of a lane becomes what `to` makes of it, the last node where that is beyond it.
    #[inline(always)]
    pub(crate) fn step(&mut self, lane: usize, to: impl FnOnce(Nodes<'a, N>, u32) -> u32) {
        let last = self.at.last;
        let place = &mut self.at.filled()[lane];
        put(place, to(self.nodes, *place).min(last));
    }

    /// Replaces all places by what `value` makes of the child there whose number `rank` gives, child 0 being the node
    /// behind. A number beyond 31 counts modulo 32. Two loops by fours, all of which are searched before the first is
    /// stored.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn descend(
        self,
        keys: &[[u32; LANES]],
        rank: impl Fn(&[u32; NODE_WORDS], u32) -> u32,
        value: impl Fn(&[u32; NODE_WORDS], u32) -> u32,
    ) {
        // Whoever has the lanes might have put others in their place.
        assert!(self.at.last <= self.nodes.last(), "places of these nodes");
        let Self { nodes: Nodes(nodes), mut at } = self;
        let keys = keys[..at.filled].as_flattened().as_chunks::<4>().0;
        let places = at.filled().as_chunks_mut::<4>().0;
        for (places, keys) in places.iter_mut().zip(keys) {
            let children: [u32; 4] = core::array::from_fn(|lane| {
                let place = places[lane];
                // SAFETY: the place is at most that of the last node.
                let node = unsafe { nodes.get_unchecked(place as usize) };
                // The node before the child: one operation less.
                place + rank(node.as_ref(), keys[lane]) % Nodes::<N>::MARGIN as u32
            });
            places.iter_mut().zip(children).for_each(|(place, child)| put(place, child));
        }
        for (places, keys) in places.iter_mut().zip(keys) {
            let values: [u32; 4] = core::array::from_fn(|lane| {
                // SAFETY: the first loop has made every place one at most 31 behind the last node; 32 are padding.
                let node = unsafe { nodes.get_unchecked(places[lane] as usize + 1) };
                value(node.as_ref(), keys[lane])
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
    #[cfg(target_arch = "x86_64")]
    {
        const LINE_BYTES: usize = 64;
        let start = values.as_ptr().cast::<i8>();
        for offset in (0..size_of_val(values)).step_by(LINE_BYTES) {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
