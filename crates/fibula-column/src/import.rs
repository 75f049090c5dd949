//! Columns of arrays of Arrow.

use crate::arrow::{BorrowedArray, RowBuffers, Validity, aligned};
use crate::bitmap::Bitmap;
use crate::column::{AddressLayout, Column};
use crate::error::ColumnError;
use crate::rows::{ByteRows, EntryNumbers};

impl<'a> Column<'a> {
    /// Returns the column of addresses that an array of Arrow is: [`arrow`](crate::arrow) has the formats. A row that lies outside its
    /// buffers is an invalid row. Costs nothing for each row.
    ///
    /// # Errors
    /// When the type cannot be addresses, or a dictionary has a dictionary.
    pub fn from_arrow(array: BorrowedArray<'a>) -> Result<Self, ColumnError> {
        let BorrowedArray { format, rows, buffers, validity, dictionary } = array;
        let column = match dictionary {
            None => addresses(format, rows, buffers)?,
            Some(dictionary) => Self::dictionary(entries(format, buffers)?, Self::from_arrow(*dictionary)?)?,
        };
        match validity {
            None => Ok(column),
            Some(Validity { bits, offset }) => column.with_validity(Bitmap::new(bits, offset, rows)?),
        }
    }
}

/// Returns the column of addresses of this format.
fn addresses<'a>(format: &str, rows: usize, buffers: RowBuffers<'a>) -> Result<Column<'a>, ColumnError> {
    let bytes = match buffers {
        RowBuffers::Nulls => return Ok(Column::nulls(rows)),
        RowBuffers::Fixed(_, bytes) => {
            let layout = match format {
                "i" | "I" => AddressLayout::HostIpv4,
                "l" | "L" => AddressLayout::WideIpv4,
                "w:4" => AddressLayout::NetworkIpv4,
                "w:16" => AddressLayout::NetworkIpv6,
                _ => return Err(ColumnError::Type(format.to_owned())),
            };
            return Ok(match aligned(bytes) {
                Some(keys) if layout == AddressLayout::HostIpv4 => Column::ipv4(keys),
                _ => Column::packed(bytes, layout),
            });
        }
        RowBuffers::Bits => return Err(ColumnError::Type(format.to_owned())),
        RowBuffers::Offsets32(offsets, bytes) => ByteRows::packed_offsets32(offsets, bytes),
        RowBuffers::Offsets64(offsets, bytes) => ByteRows::packed_offsets64(offsets, bytes),
        RowBuffers::Views(views, buffers) => ByteRows::views(views, buffers),
    };
    Ok(match format {
        "u" | "U" | "vu" => Column::text(bytes),
        _ => Column::binary(bytes),
    })
}

/// Returns the numbers of the entries of a dictionary.
fn entries<'a>(format: &str, buffers: RowBuffers<'a>) -> Result<EntryNumbers<'a>, ColumnError> {
    let is_signed = matches!(format, "c" | "s" | "i" | "l");
    let is_integer = is_signed || matches!(format, "C" | "S" | "I" | "L");
    let entries = match buffers {
        RowBuffers::Fixed(width, bytes) if is_integer => EntryNumbers::new(bytes, width, is_signed),
        _ => None,
    };
    entries.ok_or_else(|| ColumnError::Type(format.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::{ArrayParts, OwnedArray};
    use crate::error::RowFault;

    #[test]
    fn types_that_are_not_addresses_are_named() {
        for (format, bytes) in [("f", 4), ("g", 8), ("b", 1), ("c", 1), ("C", 1), ("s", 2), ("S", 2)] {
            let array =
                || OwnedArray::new(ArrayParts::new(format, 1).no_buffer().buffer(vec![0_u8; bytes])).unwrap();
            let error = array().borrowed().and_then(Column::from_arrow).map(drop);
            assert_eq!(error, Err(ColumnError::Type(format.into())));
            let dictionary = Some(Box::new(array()));
            let parts = ArrayParts::new("C", 1).no_buffer().buffer(vec![0_u8]);
            let array = OwnedArray::new(ArrayParts { dictionary, ..parts }).unwrap();
            assert_eq!(array.borrowed().and_then(Column::from_arrow).map(drop), error);
        }
        let dictionary = Some(Box::new(OwnedArray::of_ids(vec![1])));
        let parts = ArrayParts::new("g", 1).no_buffer().buffer(vec![0.0]);
        let array = OwnedArray::new(ArrayParts { dictionary, ..parts }).unwrap();
        let error = array.borrowed().and_then(Column::from_arrow).map(drop);
        assert_eq!(error, Err(ColumnError::Type("g".into())));
    }

    #[test]
    fn rows_outside_the_buffers_are_invalid() {
        let offsets = vec![0_i32, 7, 3, -1, 9, 2, 7];
        let parts = ArrayParts::new("u", 6).no_buffer().buffer(offsets).buffer(b"1.2.3.4".to_vec());
        let array = OwnedArray::new(parts).unwrap();
        let column = array.borrowed().and_then(Column::from_arrow).unwrap();
        assert!(column.address(0).is_ok_and(|address| address.is_some()));
        for row in 1..5 {
            assert_eq!(column.address(row), Err(RowFault::Outside), "row {row}");
        }

        let text = b"1111:2222:3333::";
        let view = |len: i32, buffer: i32, start: i32| {
            [len, i32::from_ne_bytes(*b"1111"), buffer, start].map(i32::to_ne_bytes).concat()
        };
        let views = [
            view(16, 0, 0),
            view(16, 1, 0),
            view(16, -1, 0),
            view(16, 0, 1),
            view(16, 0, -1),
            view(16, 0, i32::MAX),
            view(17, 0, 0),
            view(-1, 0, 0),
            view(i32::MAX, 0, 0),
        ];
        let parts = ArrayParts::new("vu", views.len()).no_buffer().buffer(views.concat());
        let array = OwnedArray::new(parts.buffer(text.to_vec()).buffer(vec![text.len() as i64])).unwrap();
        let column = array.borrowed().and_then(Column::from_arrow).unwrap();
        assert!(column.address(0).is_ok_and(|address| address.is_some()));
        for row in 1..views.len() {
            assert_eq!(column.address(row), Err(RowFault::Outside), "row {row}");
        }
    }
}
