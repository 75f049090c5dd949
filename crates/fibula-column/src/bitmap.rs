//! Validity bitmaps: a bit for each row, the lowest bit of each byte first, set where the row has a value.

use core::ops::Range;

use crate::error::ColumnError;

/// A validity bitmap, whose first row may be at any bit.
#[derive(Debug, Clone, Copy)]
pub struct Bitmap<'a> {
    bytes: &'a [u8],
    /// The bit of row 0.
    offset: usize,
    rows: usize,
}

impl<'a> Bitmap<'a> {
    /// Returns the bitmap of `rows` rows. The first row is bit `offset` of `bytes`.
    ///
    /// # Errors
    /// When the last row would be past the end of `bytes`.
    pub fn new(bytes: &'a [u8], offset: usize, rows: usize) -> Result<Self, ColumnError> {
        let bits = offset.checked_add(rows).ok_or(ColumnError::Array("validity bitmap too long"))?;
        if bits.div_ceil(8) > bytes.len() {
            return Err(ColumnError::Array("validity bitmap shorter than the rows"));
        }
        Ok(Self { bytes, offset, rows })
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns whether a row has a value.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        let bit = self.offset + row;
        self.bytes[bit / 8] >> (bit % 8) & 1 == 1
    }

    /// Puts 0 in place of the ids of the rows that have no value. `ids` has one for each of `rows`.
    pub(crate) fn clear_nulls<T: Default>(&self, rows: Range<usize>, ids: &mut [T]) {
        let (first, mut at) = (self.offset + rows.start, 0);
        while at < ids.len() {
            let bit = first + at;
            // Whole bytes of valid rows, the usual case, are passed over eight at a time.
            if bit.is_multiple_of(8) && at + 64 <= ids.len() && self.bytes[bit / 8..][..8] == [0xff; 8] {
                at += 64;
                continue;
            }
            if self.bytes[bit / 8] >> (bit % 8) & 1 == 0 {
                ids[at] = T::default();
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_at_any_bit() {
        let bytes: Vec<u8> = (0..32_u8).map(|i| if i % 5 == 0 { 0xff } else { i.wrapping_mul(37) }).collect();
        for offset in [0, 1, 7, 8, 13] {
            for rows in [0, 1, 63, 64, 65, 200] {
                let bitmap = Bitmap::new(&bytes, offset, rows).unwrap();
                for first in [0, 1, 9].into_iter().filter(|&first| first <= rows) {
                    let mut ids = vec![7_u32; rows - first];
                    bitmap.clear_nulls(first..rows, &mut ids);
                    for (row, id) in (first..rows).zip(ids) {
                        assert_eq!(id == 7, bitmap.is_valid(row), "offset {offset}, row {row} of {rows}");
                    }
                }
            }
        }
        let full = [0xff; 40];
        let mut ids = [7_u32; 300];
        Bitmap::new(&full, 3, 300).unwrap().clear_nulls(0..300, &mut ids);
        assert_eq!(ids, [7; 300]);
    }

    #[test]
    fn bitmaps_that_end_early_are_refused() {
        assert!(Bitmap::new(&[0; 2], 3, 13).is_ok());
        assert!(Bitmap::new(&[0; 2], 4, 13).is_err());
        assert!(Bitmap::new(&[0; 2], usize::MAX, 13).is_err());
    }
}
