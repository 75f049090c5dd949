//! The columns of a file: the list of them, and each from its sections.

use crate::memory::{Budget, Buffer, Limits, OutOfMemory, Shared};

use super::column::{ColumnType, Offsets, StoredColumn, ValueWords};
use super::error::FileErrorKind;
use super::source::{FileSections, Source};

/// The section with the list of columns.
pub(super) const COLUMNS: &str = "values/columns";

/// The name of the column of a file whose values have none: see [`Contents::values`](super::Contents::values).
pub const VALUE: &str = "value";

/// Most columns of a file: each may need three of the 1,024 sections that a file has at most.
pub(super) const MOST_COLUMNS: usize = 256;

/// Most bytes of a name.
pub(super) const NAME_BYTES: usize = 1000;

pub(super) fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// Returns the name of a section of column `number`.
pub(super) fn section_name(number: usize, part: &str) -> String {
    format!("values/{number}/{part}")
}

/// Returns the line of a column in the list.
pub(super) fn column_line(column: &StoredColumn) -> String {
    format!("{} {} {}\n", column.kind, column.len(), column.name)
}

/// Reads the line of a column: its type, the number of its values, and its name.
fn parse(line: &str) -> Option<(ColumnType, usize, &str)> {
    let (kind, rest) = line.split_once(' ')?;
    let (len, name) = rest.split_once(' ')?;
    let len: u32 = len.parse().ok()?;
    Some((ColumnType::named(kind)?, len as usize, name)).filter(|_| is_name(name))
}

/// Opens the columns of a file, or its values as a column.
pub(super) fn columns(
    source: &mut dyn Source,
    sections: &mut FileSections,
    limits: Limits,
) -> Result<Vec<StoredColumn>, FileErrorKind> {
    // First, because a file of version 1 has nothing else.
    let old = values(source, sections, limits)?;
    let Some(list) = sections.take(COLUMNS) else { return Ok(old.into_iter().collect()) };
    let damaged = || FileErrorKind::Disorder { what: COLUMNS.to_owned(), at: 0 };
    let text = source.bytes(&list)?;
    let lines = core::str::from_utf8(&text).map_err(|_| damaged())?;
    let mut columns: Vec<StoredColumn> = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let wrong = || FileErrorKind::Disorder { what: COLUMNS.to_owned(), at: number };
        let (kind, len, name) = parse(line).ok_or_else(wrong)?;
        if number == MOST_COLUMNS || columns.iter().any(|before| before.name() == name) {
            return Err(wrong());
        }
        columns.push(column(source, sections, (number, kind, len, name))?);
    }
    // No writer makes a list of no columns, or both kinds of values.
    if columns.is_empty() || old.is_some() {
        return Err(damaged());
    }
    Ok(columns)
}

fn column(
    source: &mut dyn Source,
    sections: &mut FileSections,
    (number, kind, len, name): (usize, ColumnType, usize, &str),
) -> Result<StoredColumn, FileErrorKind> {
    let part = |part: &str| section_name(number, part);
    let valid = match sections.contains(&part("valid")) {
        true => Some(sections.shared::<u8>(source, &part("valid"))?),
        false => None,
    };
    let values = match kind {
        ColumnType::U32 => ValueWords::Narrow(sections.shared(source, &part("words"))?),
        ColumnType::U64 | ColumnType::I64 | ColumnType::F64 => {
            ValueWords::Wide(sections.shared(source, &part("words"))?)
        }
        ColumnType::Bool => ValueWords::Bits(len, sections.shared(source, &part("bits"))?),
        ColumnType::Text | ColumnType::Bytes => {
            // The width is the writer's choice, because most columns are short.
            let offsets = match sections.width(&part("offsets")) {
                Some(4) => Offsets::Narrow(sections.shared(source, &part("offsets"))?),
                _ => Offsets::Wide(sections.shared(source, &part("offsets"))?),
            };
            ValueWords::Bytes(offsets, sections.shared(source, &part("bytes"))?)
        }
    };
    let column = StoredColumn { name: name.into(), kind, values, valid, ids: None };
    // Each access is checked, but a column whose arrays differ in length would lack values without a word.
    let bits = [
        column.valid.as_ref(),
        match &column.values {
            ValueWords::Bits(_, bits) => Some(bits),
            _ => None,
        },
    ];
    let is_whole = bits.into_iter().flatten().all(|bits| bits.len() == len.div_ceil(8));
    if column.len() != len || !is_whole {
        return Err(FileErrorKind::Disorder { what: part(kind.name()), at: len });
    }
    Ok(column)
}

/// Opens the values of a file without columns, which have ids of their own. They are copied, even from a mapped file, because their
/// order is verified: it tells where the value of an id is.
fn values(
    source: &mut dyn Source,
    sections: &mut FileSections,
    limits: Limits,
) -> Result<Option<StoredColumn>, FileErrorKind> {
    let names = ["values/next-hops", "values/ends", "values/bytes"];
    let (ids, ends, bytes) = match names.map(|name| sections.take(name)) {
        [None, None, None] => return Ok(None),
        [Some(ids), Some(ends), Some(bytes)] => (ids, ends, bytes),
        _ => return Err(FileErrorKind::Disorder { what: "values".to_owned(), at: 0 }),
    };
    let (ids, ends, bytes) = (source.bytes(&ids)?, source.bytes(&ends)?, source.bytes(&bytes)?);
    let mut budget = Budget::new(limits);
    let ids = words(&mut budget, ids.as_chunks().0.iter().map(|&id| u32::from_le_bytes(id)))?;
    let ends = ends.as_chunks().0.iter().map(|&end| u64::from_le_bytes(end));
    let offsets = words(&mut budget, with_zero(ends))?;
    // Version 1 says no type. However, `fibula compile` wrote text alone.
    let kind = if is_text(&offsets, &bytes) { ColumnType::Text } else { ColumnType::Bytes };
    let mut copy = budget.buffer(bytes.len())?;
    copy.extend_from_slice(&bytes);
    let values = ValueWords::Bytes(Offsets::Wide(offsets.into()), copy.into());
    let column = StoredColumn { name: VALUE.into(), kind, values, valid: None, ids: Some(Shared::from(ids)) };
    match column.disorder() {
        Some(at) => Err(FileErrorKind::Disorder { what: "values".to_owned(), at }),
        None => Ok(Some(column)),
    }
}

/// Returns 0 before the ends of values.
fn with_zero(ends: impl ExactSizeIterator<Item = u64>) -> impl ExactSizeIterator<Item = u64> {
    let mut ends = ends;
    (0..ends.len() + 1).map(move |at| if at == 0 { 0 } else { ends.next().unwrap_or(0) })
}

fn words<T: Copy>(
    budget: &mut Budget,
    words: impl ExactSizeIterator<Item = T>,
) -> Result<Buffer<T>, OutOfMemory> {
    let mut buffer = budget.buffer(words.len())?;
    buffer.extend(words);
    Ok(buffer)
}

/// Returns whether each value is UTF-8.
fn is_text(offsets: &[u64], bytes: &[u8]) -> bool {
    let mut ranges = offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize);
    ranges.all(|range| bytes.get(range).is_some_and(|value| core::str::from_utf8(value).is_ok()))
}
