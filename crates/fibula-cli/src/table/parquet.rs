//! Intervals as Parquet.
//!
//! | column | type | |
//! |---|---|---|
//! | `family` | INT32 | 4 or 6 |
//! | `start`, `end` | UTF8 | the bounds as text |
//! | `start_key`, `end_key` | BYTE_ARRAY | the bounds in network order, 4 or 16 bytes: within a family they compare as addresses do |
//! | `value` | UTF8 | the next hop |

use std::io::Write;
use std::sync::Arc;

use fibula::net::Family;
use fibula_feed::LoadedRoutes;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::intervals::{self, Interval};

const SCHEMA: &str = "message intervals {
    REQUIRED INT32 family;
    REQUIRED BYTE_ARRAY start (UTF8);
    REQUIRED BYTE_ARRAY end (UTF8);
    REQUIRED BYTE_ARRAY start_key;
    REQUIRED BYTE_ARRAY end_key;
    REQUIRED BYTE_ARRAY value (UTF8);
}";

/// Rows that are held in memory and written together.
const GROUP_ROWS: usize = 128 << 10;

pub(super) fn write(table: &LoadedRoutes, out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(WriterProperties::default()))?;
    let mut group = Vec::new();
    intervals::try_for_each(table, |interval| {
        group.push(interval);
        if group.len() < GROUP_ROWS {
            return Ok(());
        }
        write_group(table, &mut writer, &std::mem::take(&mut group))
    })?;
    if !group.is_empty() {
        write_group(table, &mut writer, &group)?;
    }
    writer.close().map(|_| ())
}

fn write_group<W: Write + Send>(
    table: &LoadedRoutes,
    writer: &mut SerializedFileWriter<W>,
    rows: &[Interval],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    let families: Vec<i32> = rows.iter().map(|row| if row.family == Family::Ipv6 { 6 } else { 4 }).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<Int32Type>().write_batch(&families, None, None)?;
        column.close()?;
    }
    column(&mut group, rows, |row| row.start.as_str().into())?;
    column(&mut group, rows, |row| row.end.as_str().into())?;
    column(&mut group, rows, |row| row.keys[0].clone().into())?;
    column(&mut group, rows, |row| row.keys[1].clone().into())?;
    column(&mut group, rows, |row| {
        table.next_hops.label(row.next_hop).map(ToString::to_string).unwrap_or_default().as_str().into()
    })?;
    group.close().map(|_| ())
}

fn column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Interval],
    value: impl Fn(&Interval) -> ByteArray,
) -> Result<(), ParquetError> {
    let values: Vec<ByteArray> = rows.iter().map(value).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        column.close()?;
    }
    Ok(())
}
