//! Columns of values by id, as files hold them.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::borrow::Cow;

use crate::memory::{Cell, Memory, Shared};
use crate::net::NextHop;

/// The type of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnType {
    /// Integers of 32 bits without a sign.
    U32,
    /// Integers of 64 bits without a sign.
    U64,
    /// Integers of 64 bits with a sign.
    I64,
    /// Floating-point numbers of 64 bits.
    F64,
    /// Truth values.
    Bool,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
}

impl ColumnType {
    /// All types.
    pub const ALL: [Self; 7] =
        [Self::U32, Self::U64, Self::I64, Self::F64, Self::Bool, Self::Text, Self::Bytes];

    /// Returns the name, as files and commands write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Text => "text",
            Self::Bytes => "bytes",
        }
    }

    /// Returns the type of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Reads a value of this type: digits for integers, a number as Rust writes it for `f64`, `true` or `false`, any text. `None` if
    /// the text is none.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<ColumnValue<'_>> {
        // Refused because no writer of integers puts a plus sign there, although the parsers of the standard library take one.
        let integer = if text.starts_with('+') { "" } else { text };
        Some(match self {
            Self::U32 => ColumnValue::U32(integer.parse().ok()?),
            Self::U64 => ColumnValue::U64(integer.parse().ok()?),
            Self::I64 => ColumnValue::I64(integer.parse().ok()?),
            Self::F64 => ColumnValue::F64(text.parse().ok()?),
            Self::Bool => ColumnValue::Bool(text.parse().ok()?),
            Self::Text => ColumnValue::Text(text.into()),
            Self::Bytes => ColumnValue::Bytes(text.as_bytes().into()),
        })
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnValue<'a> {
    /// Of [`ColumnType::U32`].
    U32(u32),
    /// Of [`ColumnType::U64`].
    U64(u64),
    /// Of [`ColumnType::I64`].
    I64(i64),
    /// Of [`ColumnType::F64`].
    F64(f64),
    /// Of [`ColumnType::Bool`].
    Bool(bool),
    /// Of [`ColumnType::Text`].
    Text(Cow<'a, str>),
    /// Of [`ColumnType::Bytes`].
    Bytes(Cow<'a, [u8]>),
}

impl ColumnValue<'_> {
    /// Returns the type.
    #[must_use]
    pub fn kind(&self) -> ColumnType {
        match self {
            Self::U32(_) => ColumnType::U32,
            Self::U64(_) => ColumnType::U64,
            Self::I64(_) => ColumnType::I64,
            Self::F64(_) => ColumnType::F64,
            Self::Bool(_) => ColumnType::Bool,
            Self::Text(_) => ColumnType::Text,
            Self::Bytes(_) => ColumnType::Bytes,
        }
    }
}

/// Bytes are shown as text; those that are not UTF-8 are replaced.
impl fmt::Display for ColumnValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U32(number) => number.fmt(f),
            Self::U64(number) => number.fmt(f),
            Self::I64(number) => number.fmt(f),
            Self::F64(number) => number.fmt(f),
            Self::Bool(is_true) => is_true.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
        }
    }
}

/// A column of values by id, in memory of its own or in a mapped file. It has a value, or none, for each of the ids from 1 to
/// [`len`](Self::len).
///
/// Words of a mapped file may change at any time, so each access is checked against the bounds of the column. Where a file was damaged,
/// a value may be another one or missing.
pub struct StoredColumn {
    pub(super) name: Box<str>,
    pub(super) kind: ColumnType,
    pub(super) values: ValueWords,
    /// A bit for each value, if some are missing.
    pub(super) valid: Option<Shared<u8>>,
    /// The ids that have values, in order; of files of version 1 alone, whose ids may have gaps.
    pub(super) ids: Option<Shared<u32>>,
}

/// The words of the values of a column.
#[derive(Debug)]
pub(super) enum ValueWords {
    Narrow(Shared<u32>),
    Wide(Shared<u64>),
    /// The number of values, and a bit for each.
    Bits(usize, Shared<u8>),
    /// Value number `i` is the bytes from offset `i` to offset `i + 1`.
    Bytes(Offsets, Shared<u8>),
}

/// Where bytes begin and end: one more than values. Narrow ones are half as long, and nearly all columns have few enough bytes for
/// them.
#[derive(Debug)]
pub(super) enum Offsets {
    Narrow(Shared<u32>),
    Wide(Shared<u64>),
}

/// The words of a column, where they lie. They are atomic because another process may write into a mapped file.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ColumnWords<'a> {
    /// Of [`ColumnType::U32`].
    Narrow(&'a [AtomicU32]),
    /// Of [`ColumnType::U64`], and the bits of [`ColumnType::I64`] and [`ColumnType::F64`].
    Wide(&'a [AtomicU64]),
    /// Of [`ColumnType::Bool`]: a bit for each value, the lowest of a byte first.
    Bits(&'a [AtomicU8]),
    /// Of [`ColumnType::Text`] and [`ColumnType::Bytes`]: value number `i` is the bytes from offset `i` to offset `i + 1`.
    Bytes {
        /// One more than there are values.
        offsets: ColumnOffsets<'a>,
        /// The bytes of all values.
        bytes: &'a [AtomicU8],
    },
}

/// The offsets of the values of a column. A file may hold any number there: whoever cuts bytes by them must check them.
#[derive(Debug, Clone, Copy)]
pub enum ColumnOffsets<'a> {
    /// Of 32 bits, if all bytes of the column together are fewer than 2^31.
    Narrow(&'a [AtomicU32]),
    /// Of 64 bits.
    Wide(&'a [AtomicU64]),
}

impl Offsets {
    /// Returns the number of values.
    fn values(&self) -> usize {
        let offsets = match self {
            Self::Narrow(offsets) => offsets.len(),
            Self::Wide(offsets) => offsets.len(),
        };
        offsets.saturating_sub(1)
    }

    fn get(&self, at: usize) -> Option<usize> {
        match self {
            Self::Narrow(offsets) => Some(offsets.get(at)?.read() as usize),
            Self::Wide(offsets) => usize::try_from(offsets.get(at)?.read()).ok(),
        }
    }

    fn range(&self, at: usize) -> Option<Range<usize>> {
        Some(self.get(at)?..self.get(at + 1)?)
    }
}

/// Returns a bit, `false` outside.
fn bit(bits: &[AtomicU8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte.read() >> (at % 8) & 1 == 1)
}

impl StoredColumn {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the values.
    #[must_use]
    pub fn kind(&self) -> ColumnType {
        self.kind
    }

    /// Returns the number of values, missing ones included. They are those of the ids from 1 on, unless there are [`ids`](Self::ids).
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.values {
            ValueWords::Narrow(words) => words.len(),
            ValueWords::Wide(words) => words.len(),
            ValueWords::Bits(len, _) => *len,
            ValueWords::Bytes(offsets, _) => offsets.values(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ids of the values, in order, if they are not 1, 2 and so on. Only files of version 1 have such columns.
    #[must_use]
    pub fn ids(&self) -> Option<&[AtomicU32]> {
        self.ids.as_deref()
    }

    /// Returns a bit for each value, the lowest of a byte first: whether there is one. `None` if there are all.
    #[must_use]
    pub fn validity(&self) -> Option<&[AtomicU8]> {
        self.valid.as_deref()
    }

    /// Returns the words of all values.
    #[must_use]
    pub fn words(&self) -> ColumnWords<'_> {
        match &self.values {
            ValueWords::Narrow(words) => ColumnWords::Narrow(words),
            ValueWords::Wide(words) => ColumnWords::Wide(words),
            ValueWords::Bits(_, bits) => ColumnWords::Bits(bits),
            ValueWords::Bytes(Offsets::Narrow(offsets), bytes) => {
                ColumnWords::Bytes { offsets: ColumnOffsets::Narrow(offsets), bytes }
            }
            ValueWords::Bytes(Offsets::Wide(offsets), bytes) => {
                ColumnWords::Bytes { offsets: ColumnOffsets::Wide(offsets), bytes }
            }
        }
    }

    /// Returns the number of the value of an id, from 0 on; `None` if it has none.
    #[must_use]
    pub fn place(&self, id: NextHop) -> Option<usize> {
        // An index where ids are dense. However, ids of version 1 may have gaps, so those are searched.
        let at = match &self.ids {
            None => id.id() as usize - 1,
            Some(ids) => ids.binary_search_by_key(&id.id(), Cell::read).ok()?,
        };
        let is_there = at < self.len() && self.valid.as_ref().is_none_or(|valid| bit(valid, at));
        is_there.then_some(at)
    }

    /// Returns the value of an id; `None` if it has none. Text and bytes are copied: [`append`](Self::append) takes no memory of its
    /// own for them.
    #[must_use]
    pub fn value(&self, id: NextHop) -> Option<ColumnValue<'static>> {
        self.at(self.place(id)?)
    }

    fn at(&self, at: usize) -> Option<ColumnValue<'static>> {
        Some(match &self.values {
            ValueWords::Narrow(words) => ColumnValue::U32(words.get(at)?.read()),
            ValueWords::Wide(words) => {
                // Read once, because another read could return another word of a mapped file.
                let word = words.get(at)?.read();
                match self.kind {
                    ColumnType::I64 => ColumnValue::I64(word.cast_signed()),
                    ColumnType::F64 => ColumnValue::F64(f64::from_bits(word)),
                    _ => ColumnValue::U64(word),
                }
            }
            ValueWords::Bits(_, bits) => ColumnValue::Bool(bit(bits, at)),
            ValueWords::Bytes(..) => {
                let bytes: Vec<u8> = self.bytes_at(at)?.iter().map(Cell::read).collect();
                if self.kind == ColumnType::Text {
                    // Only where a mapped file changed are there bytes to replace.
                    let text = String::from_utf8(bytes);
                    let replaced = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    ColumnValue::Text(text.unwrap_or_else(|error| replaced(error.as_bytes())).into())
                } else {
                    ColumnValue::Bytes(bytes.into())
                }
            }
        })
    }

    /// Returns the bytes of a value of text or bytes; `None` if the id has none, or the column is of another type.
    #[must_use]
    pub fn bytes(&self, id: NextHop) -> Option<&[AtomicU8]> {
        self.bytes_at(self.place(id)?)
    }

    /// Returns the bytes of a value of text or bytes by its [place](Self::place); `None` if there are none.
    #[must_use]
    pub fn bytes_at(&self, at: usize) -> Option<&[AtomicU8]> {
        match &self.values {
            // Checked at each access, because nobody has verified the offsets of a mapped file.
            ValueWords::Bytes(offsets, bytes) => bytes.get(offsets.range(at)?),
            _ => None,
        }
    }

    /// Appends the bytes of a value of text or bytes; returns whether there is one.
    pub fn append(&self, id: NextHop, to: &mut Vec<u8>) -> bool {
        // Byte by byte, because a slice of plain bytes must not change while it is borrowed.
        let found = self.bytes(id);
        to.extend(found.unwrap_or_default().iter().map(Cell::read));
        found.is_some()
    }

    /// Returns all values in order, with their ids. Those that are missing are left out.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, ColumnValue<'static>)> {
        (0..self.len()).filter_map(|at| {
            let id = match &self.ids {
                None => u32::try_from(at + 1).ok()?,
                Some(ids) => ids.get(at)?.read(),
            };
            let id = NextHop::new(id)?;
            Some((id, self.value(id)?))
        })
    }

    /// Returns the memory of the column, mapped memory included.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let values = match &self.values {
            ValueWords::Narrow(words) => words.memory(),
            ValueWords::Wide(words) => words.memory(),
            ValueWords::Bits(_, bits) => bits.memory(),
            ValueWords::Bytes(Offsets::Narrow(offsets), bytes) => offsets.memory() + bytes.memory(),
            ValueWords::Bytes(Offsets::Wide(offsets), bytes) => offsets.memory() + bytes.memory(),
        };
        let valid = self.valid.as_ref().map(Shared::memory).unwrap_or_default();
        values + valid + self.ids.as_ref().map(Shared::memory).unwrap_or_default()
    }

    /// Returns the number of the first value that is out of order: bytes outside the column, text that is not UTF-8, or an id that does
    /// not follow the one before it.
    pub(super) fn disorder(&self) -> Option<usize> {
        let bits = [
            self.valid.as_ref(),
            match &self.values {
                ValueWords::Bits(_, bits) => Some(bits),
                _ => None,
            },
        ];
        // Bits after the last value are zero, so that equal columns have equal bytes.
        let is_whole = |bits: &Shared<u8>| {
            bits.len() == self.len().div_ceil(8) && !(self.len()..8 * bits.len()).any(|at| bit(bits, at))
        };
        if !bits.into_iter().flatten().all(is_whole) {
            return Some(self.len());
        }
        // Equal ids would hide a value, because a search finds one of them.
        if let Some(ids) = &self.ids {
            let before = |at: usize| if at == 0 { 0 } else { ids[at - 1].read() };
            if let Some(at) = (0..ids.len()).find(|&at| ids[at].read() <= before(at)) {
                return Some(at);
            }
            if ids.len() != self.len() {
                return Some(ids.len());
            }
        }
        // Words of numbers are good whatever they are.
        let ValueWords::Bytes(offsets, bytes) = &self.values else { return None };
        let is_text = self.kind == ColumnType::Text;
        let mut text = Vec::new();
        let wrong = (0..self.len()).find(|&at| match self.bytes_at(at) {
            None => true,
            Some(_) if !is_text => false,
            Some(found) => {
                text.clear();
                text.extend(found.iter().map(Cell::read));
                core::str::from_utf8(&text).is_err()
            }
        });
        // A column that never had a value has no offsets.
        let is_from_0_to_end = match self.len() {
            0 => bytes.is_empty(),
            len => offsets.get(0) == Some(0) && offsets.get(len) == Some(bytes.len()),
        };
        wrong.or((!is_from_0_to_end).then_some(self.len()))
    }
}

impl fmt::Debug for StoredColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kind, .. } = self;
        f.debug_struct("StoredColumn")
            .field("name", name)
            .field("kind", kind)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
