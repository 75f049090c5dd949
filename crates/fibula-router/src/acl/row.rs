//! The rules that a packet of a burst passes so far: a row of bits, in registers if it is short.

/// A row of rules.
pub(super) trait Row: Sized {
    /// The rows of a table, one after the other.
    type Rows<'b>: Copy;

    /// Divides a table into rows.
    fn rows(bits: &[u64], words: usize) -> Self::Rows<'_>;

    /// Begins with a row of a table, and one that all packets of an interface have. It will be written to a place in `out`.
    fn begin(
        out: &mut [u64],
        place: usize,
        rows: Self::Rows<'_>,
        number: usize,
        common: Self::Rows<'_>,
    ) -> Self;

    /// Keeps the rules that are in a row of a table too.
    fn and(&mut self, out: &mut [u64], rows: Self::Rows<'_>, number: usize);

    /// Writes the row to its place. Returns the first bit; without any, the number of bits that a row has.
    fn end(self, out: &mut [u64]) -> usize;
}

/// A row that is in registers until it is complete.
pub(super) struct Short<const WORDS: usize> {
    bits: [u64; WORDS],
    place: usize,
}

impl<const WORDS: usize> Row for Short<WORDS> {
    type Rows<'b> = &'b [[u64; WORDS]];

    #[inline(always)]
    fn rows(bits: &[u64], _: usize) -> Self::Rows<'_> {
        bits.as_chunks().0
    }

    #[inline(always)]
    fn begin(
        out: &mut [u64],
        place: usize,
        rows: Self::Rows<'_>,
        number: usize,
        common: Self::Rows<'_>,
    ) -> Self {
        let mut row = Self { bits: rows[number], place };
        row.and(out, common, 0);
        row
    }

    #[inline(always)]
    fn and(&mut self, _: &mut [u64], rows: Self::Rows<'_>, number: usize) {
        self.bits.iter_mut().zip(&rows[number]).for_each(|(row, bits)| *row &= bits);
    }

    #[inline(always)]
    fn end(self, out: &mut [u64]) -> usize {
        out.as_chunks_mut().0[self.place] = self.bits;
        // From the last word to the first without leaving early: which word decides differs from packet to packet.
        let mut first = WORDS * 64;
        for word in (0..WORDS).rev() {
            if self.bits[word] != 0 {
                first = word * 64 + self.bits[word].trailing_zeros() as usize;
            }
        }
        first
    }
}

/// A row of any length, which is in its place all the time.
pub(super) struct Long {
    start: usize,
    words: usize,
}

impl Row for Long {
    type Rows<'b> = (&'b [u64], usize);

    #[inline]
    fn rows(bits: &[u64], words: usize) -> Self::Rows<'_> {
        (bits, words)
    }

    #[inline]
    fn begin(
        out: &mut [u64],
        place: usize,
        (bits, words): Self::Rows<'_>,
        number: usize,
        common: Self::Rows<'_>,
    ) -> Self {
        let start = place * words;
        out[start..start + words].copy_from_slice(&bits[number * words..][..words]);
        let mut row = Self { start, words };
        row.and(out, common, 0);
        row
    }

    #[inline]
    fn and(&mut self, out: &mut [u64], (bits, words): Self::Rows<'_>, number: usize) {
        let row = &mut out[self.start..self.start + self.words];
        row.iter_mut().zip(&bits[number * words..]).for_each(|(row, bits)| *row &= bits);
    }

    #[inline]
    fn end(self, out: &mut [u64]) -> usize {
        let row = &out[self.start..self.start + self.words];
        let word = row.iter().position(|&word| word != 0);
        word.map_or(self.words * 64, |word| word * 64 + row[word].trailing_zeros() as usize)
    }
}
