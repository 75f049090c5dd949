//! Columns of values, made in memory.

use core::fmt;

use crate::memory::{Budget, Buffer, Limits, OutOfMemory, Shared};

use super::column::{ColumnType, ColumnValue, Offsets, StoredColumn, ValueWords};

/// Makes a column of values: the first one that is pushed is that of id 1.
///
/// ```
/// use fibula::file::{ColumnBuilder, ColumnType, ColumnValue};
/// use fibula::net::NextHop;
///
/// let mut names = ColumnBuilder::new("name", ColumnType::Text);
/// names.push(Some(ColumnValue::Text("gateway".into())))?;
/// names.push(None)?;
/// let names = names.finish();
/// assert_eq!(names.value(NextHop::try_from(1)?), Some(ColumnValue::Text("gateway".into())));
/// assert_eq!((names.len(), names.value(NextHop::try_from(2)?)), (2, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ColumnBuilder {
    name: Box<str>,
    kind: ColumnType,
    budget: Budget,
    len: usize,
    /// Whether a value is missing.
    lacks: bool,
    valid: Buffer<u8>,
    /// Words, or offsets of bytes.
    narrow: Buffer<u32>,
    /// Words, or offsets of bytes that are more than narrow ones can count.
    wide: Buffer<u64>,
    /// Bits, or bytes.
    bytes: Buffer<u8>,
}

/// Why a column did not take a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnRefusal {
    /// The column has values of the first type, and this one is of the second.
    Type(ColumnType, ColumnType),
    /// There is an id for each of the values that are there already.
    NoIds,
    /// Memory ran out.
    Memory(OutOfMemory),
}

impl From<OutOfMemory> for ColumnRefusal {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for ColumnRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(own, other) => write!(f, "a column of {own} takes no value of {other}"),
            Self::NoIds => write!(f, "a column has at most {} values", u32::MAX),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ColumnRefusal {}

impl ColumnBuilder {
    /// Returns an empty column.
    #[must_use]
    pub fn new(name: &str, kind: ColumnType) -> Self {
        Self::within(name, kind, Limits::default())
    }

    /// Returns an empty column that stays within `limits`.
    #[must_use]
    pub fn within(name: &str, kind: ColumnType, limits: Limits) -> Self {
        // Columns are read here and there, and most are small: huge pages would be waste.
        let budget = Budget::new(Limits { huge_pages: false, ..limits });
        let (valid, narrow, wide, bytes) = Default::default();
        Self { name: name.into(), kind, budget, len: 0, lacks: false, valid, narrow, wide, bytes }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the value of the next id, or that it has none.
    ///
    /// # Errors
    /// When the value is of another type, or memory runs out. The column is then as before.
    pub fn push(&mut self, value: Option<ColumnValue<'_>>) -> Result<(), ColumnRefusal> {
        if let Some(other) = value.as_ref().map(ColumnValue::kind).filter(|&other| other != self.kind) {
            return Err(ColumnRefusal::Type(self.kind, other));
        }
        // No id is left, because ids have 32 bits, and 0 is none.
        if self.len == u32::MAX as usize {
            return Err(ColumnRefusal::NoIds);
        }
        // All room first, so that a refusal changes nothing.
        self.budget.reserve(&mut self.valid, 1)?;
        let is_there = value.is_some();
        match self.kind {
            ColumnType::U32 => {
                // A missing value has a word too, because places are counted from the id.
                let word = if let Some(ColumnValue::U32(word)) = value { word } else { 0 };
                self.budget.push(&mut self.narrow, word)?;
            }
            ColumnType::U64 | ColumnType::I64 | ColumnType::F64 => {
                let word = match value {
                    Some(ColumnValue::U64(word)) => word,
                    Some(ColumnValue::I64(word)) => word.cast_unsigned(),
                    Some(ColumnValue::F64(word)) => word.to_bits(),
                    _ => 0,
                };
                self.budget.push(&mut self.wide, word)?;
            }
            ColumnType::Bool => {
                self.budget.reserve(&mut self.bytes, 1)?;
                set(&mut self.bytes, self.len, value == Some(ColumnValue::Bool(true)));
            }
            ColumnType::Text | ColumnType::Bytes => {
                let bytes = match &value {
                    Some(ColumnValue::Text(text)) => text.as_bytes(),
                    Some(ColumnValue::Bytes(bytes)) => bytes,
                    _ => &[],
                };
                self.budget.reserve(&mut self.bytes, bytes.len())?;
                self.push_end(self.bytes.len() + bytes.len())?;
                self.bytes.extend_from_slice(bytes);
            }
        }
        set(&mut self.valid, self.len, is_there);
        self.lacks |= !is_there;
        self.len += 1;
        Ok(())
    }

    /// Adds the end of the bytes of a value.
    fn push_end(&mut self, end: usize) -> Result<(), OutOfMemory> {
        if !self.wide.is_empty() {
            return self.budget.push(&mut self.wide, end as u64);
        }
        // The first value begins at 0.
        self.budget.reserve(&mut self.narrow, 2)?;
        if self.narrow.is_empty() {
            self.narrow.push(0);
        }
        if i32::try_from(end).is_ok() {
            self.narrow.push(end as u32);
            return Ok(());
        }
        // Once for a column, when its bytes pass 2^31. Then all offsets are wide, because a column has one width.
        let mut wide = self.budget.buffer(2 * self.narrow.len())?;
        wide.extend(self.narrow.iter().copied().map(u64::from));
        wide.push(end as u64);
        self.wide = wide;
        self.budget.free(core::mem::take(&mut self.narrow));
        Ok(())
    }

    /// Returns the column.
    #[must_use]
    pub fn finish(self) -> StoredColumn {
        // The bits of a column without missing values are dropped, because all of them would be set.
        let Self { name, kind, len, lacks, valid, narrow, wide, bytes, .. } = self;
        let values = match kind {
            ColumnType::U32 => ValueWords::Narrow(narrow.into()),
            ColumnType::U64 | ColumnType::I64 | ColumnType::F64 => ValueWords::Wide(wide.into()),
            ColumnType::Bool => ValueWords::Bits(len, bytes.into()),
            ColumnType::Text | ColumnType::Bytes => {
                let offsets =
                    if wide.is_empty() { Offsets::Narrow(narrow.into()) } else { Offsets::Wide(wide.into()) };
                ValueWords::Bytes(offsets, bytes.into())
            }
        };
        StoredColumn { name, kind, values, valid: lacks.then(|| Shared::from(valid)), ids: None }
    }
}

/// Sets bit number `at`, which is the next one. There is room.
fn set(bits: &mut Buffer<u8>, at: usize, is_set: bool) {
    if at.is_multiple_of(8) {
        bits.push(0);
    }
    bits[at / 8] |= u8::from(is_set) << (at % 8);
}
