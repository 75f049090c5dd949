//! The faults of a column, and of one of its rows.

use core::fmt;

use fibula::live::TableError;
use fibula::net::AddressError;

/// Why a column could not be looked up.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnError {
    /// Another column has this length, and not that of the addresses.
    Length {
        /// Number of addresses.
        rows: usize,
        /// Number of ids, or of VRFs.
        other: usize,
    },
    /// The column is malformed as a whole, in this way.
    Array(&'static str),
    /// An array of Arrow has a type that cannot be addresses: its format string.
    Type(String),
    /// A row has no address, and the caller does not want nulls for such rows.
    Invalid {
        /// The first such row, counted from 0.
        row: usize,
        /// The fault of that row.
        fault: RowFault,
    },
    /// Memory for this many entries of a dictionary, or values, was refused.
    Memory {
        /// Number of entries.
        entries: usize,
    },
    /// The table does not know the lengths of matched prefixes.
    Lengths,
    /// The VRFs could not be read.
    Vrfs(TableError),
    /// A stream of arrays ended with this error of its producer.
    Stream(String),
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { rows, other } => {
                write!(f, "columns differ in length: {rows} addresses, and {other} rows in another column")
            }
            Self::Array(what) => write!(f, "malformed array: {what}"),
            Self::Type(format) => {
                write!(f, "arrays of Arrow type '{}' are not addresses", format.escape_debug())
            }
            Self::Invalid { row, fault } => write!(f, "row {row}: {fault}"),
            Self::Memory { entries } => {
                write!(f, "out of memory for {entries} entries")
            }
            Self::Lengths => f.write_str(
                "the table does not know the lengths of matched prefixes; compile it with them (fibula compile --with-length)",
            ),
            Self::Vrfs(error) => error.fmt(f),
            Self::Stream(error) => write!(f, "the stream of arrays failed: {error}"),
        }
    }
}

impl core::error::Error for ColumnError {}

/// Why a row has no address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowFault {
    /// A text that is not an address, cut after [`TEXT_BYTES`](Self::TEXT_BYTES) bytes, and its fault.
    Text(Vec<u8>, AddressError),
    /// An integer that is not an IPv4 address: its bits.
    Integer(u64),
    /// Bytes of this length, which is neither 4 nor 16.
    Bytes(usize),
    /// The row lies outside the buffers of the array.
    Outside,
    /// A dictionary has no entry of this number.
    Entry(i128),
}

impl RowFault {
    /// Most bytes of a text that are kept.
    pub const TEXT_BYTES: usize = 64;

    /// Returns the fault of a text that is not an address.
    pub(crate) fn text(text: &[u8], error: AddressError) -> Self {
        Self::Text(text[..text.len().min(Self::TEXT_BYTES)].to_vec(), error)
    }
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text, error) => {
                let cut = if text.len() == Self::TEXT_BYTES { "..." } else { "" };
                write!(f, "'{}{cut}': {error}", text.escape_ascii())
            }
            Self::Integer(bits) => write!(f, "{bits} is above {}, the last IPv4 address", u32::MAX),
            Self::Bytes(len) => write!(f, "{len} bytes, where an address has 4 or 16"),
            Self::Outside => f.write_str("the row lies outside the buffers of its array"),
            Self::Entry(entry) => write!(f, "no entry {entry} in the dictionary"),
        }
    }
}

impl core::error::Error for RowFault {}
