//! The rows of a Parquet file as addresses and numbers of bytes, for counting.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::super::answers::{Finders, V4Mapped};
use super::super::pipeline::LineCounts;
use super::answer::{AddressColumn, AddressMatch, BATCH, each};
use super::guard::{cannot_read, guarded};
use super::plan::{Address, Number};
use super::{each_group, open};
use crate::failure::Failure;
use crate::messages::Messages;

/// The counts of a row group.
pub(in super::super) struct Counted<T> {
    pub(in super::super) sums: T,
    pub(in super::super) tally: LineCounts,
}

/// Counts the rows of a file. `add` takes what was found for an address, and its bytes, into the sums of a row group.
pub(in super::super) fn count<T: Default + Send>(
    (path, address, bytes): (&Path, &str, Option<&str>),
    finders: &Finders<'_>,
    (mapped, messages): (V4Mapped, Messages),
    add: &(dyn Fn(&mut T, AddressMatch, u64) + Sync),
    take: &mut dyn FnMut(Counted<T>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (_, metadata) = open(path)?;
    let (address, number) = guarded(path, || {
        let schema = metadata.file_metadata().schema_descr();
        let number = bytes.map(|wanted| Number::find(wanted, schema)).transpose()?;
        Ok((Address::find(address, schema)?, number))
    })?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let begin = || {
        let file = File::open(path).map_err(|error| Failure::opening(path, &error))?;
        SerializedFileReader::new(file).map_err(|error| cannot_read(path, &error))
    };
    let unreadable = |error: ParquetError| cannot_read(path, &error);
    let work = |reader: &mut SerializedFileReader<File>, group: usize| {
        let rows = reader.get_row_group(group).map_err(unreadable)?;
        let mut left = usize::try_from(rows.metadata().num_rows()).unwrap_or(0);
        let column = rows.get_column_reader(address.leaf).map_err(unreadable)?;
        let mut input = AddressColumn::new(column, address.shape, address.defined, mapped);
        let column = |number: &Number| rows.get_column_reader(number.leaf).map_err(unreadable);
        let mut numbers = number.as_ref().map(column).transpose()?;
        let mut counted = Counted { sums: T::default(), tally: LineCounts::default() };
        while left > 0 {
            let batch = left.min(BATCH);
            let mut bad = vec![false; batch];
            input.read(&mut bad, &mut counted.tally).map_err(unreadable)?;
            let found = input.find(finders, messages)?;
            let sizes = match (&mut numbers, &number) {
                (Some(reader), Some(number)) => sizes(reader, number, batch).map_err(unreadable)?,
                _ => vec![Some(0); batch],
            };
            for (row, ((found, size), bad)) in found.into_iter().zip(sizes).zip(bad).enumerate() {
                if bad {
                    continue;
                }
                if size.is_none() {
                    let at = counted.tally.lines + row + 1;
                    counted.tally.bad(at, || " has a missing or invalid number of bytes".to_owned());
                }
                counted.tally.matched += usize::from(!matches!(found, AddressMatch::Nothing));
                add(&mut counted.sums, found, size.unwrap_or(0));
            }
            counted.tally.lines += batch;
            left -= batch;
        }
        Ok(counted)
    };
    each_group((path, metadata.num_row_groups(), threads), messages, &begin, &work, &mut |_, counted| {
        take(counted)
    })
}

/// Reads the next numbers, one a row; `None` where a number is null or negative.
fn sizes(reader: &mut ColumnReader, number: &Number, count: usize) -> Result<Vec<Option<u64>>, ParquetError> {
    let mut sizes = Vec::with_capacity(count);
    let &Number { defined, is_signed, .. } = number;
    match reader {
        ColumnReader::Int32ColumnReader(reader) => each(reader, count, defined, |value| {
            sizes.push(value.and_then(|&value| match is_signed {
                true => u64::try_from(value).ok(),
                false => Some(value.cast_unsigned().into()),
            }));
        })?,
        ColumnReader::Int64ColumnReader(reader) => each(reader, count, defined, |value| {
            sizes.push(value.and_then(|&value| match is_signed {
                true => u64::try_from(value).ok(),
                false => Some(value.cast_unsigned()),
            }));
        })?,
        _ => return Err(ParquetError::General("a column changed its type".to_owned())),
    }
    Ok(sizes)
}
