//! Columns: the shapes of addresses that can be looked up.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula::net::parse_address;

use crate::arrow::bytes_of;
use crate::bitmap::Bitmap;
use crate::error::{ColumnError, RowFault};
use crate::rows::{ByteRows, EntryNumbers};

/// A column of addresses, borrowed as they lie in memory.
///
/// Made by one of the functions below, of an array of Arrow by [`from_arrow`](Self::from_arrow);
/// [`with_validity`](Self::with_validity) says which of its rows are null.
#[derive(Debug, Clone)]
pub struct Column<'a> {
    pub(crate) data: ColumnData<'a>,
    pub(crate) validity: Option<Bitmap<'a>>,
}

#[derive(Debug, Clone)]
pub(crate) enum ColumnData<'a> {
    Ipv4(&'a [u32]),
    Ipv6(&'a [u128]),
    Spaced(Spaced<'a>),
    Binary(ByteRows<'a>),
    Text(ByteRows<'a>),
    Dictionary(EntryNumbers<'a>, Box<Column<'a>>),
    Nulls(usize),
}

/// How an address lies in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressLayout {
    /// IPv4: an integer of 4 bytes in the machine's order.
    HostIpv4,
    /// IPv4: an integer of 8 bytes in the machine's order. One above 2^32 - 1 is invalid, and so is a negative one.
    WideIpv4,
    /// IPv6: an integer of 16 bytes in the machine's order.
    HostIpv6,
    /// IPv4: 4 bytes in network order.
    NetworkIpv4,
    /// IPv6: 16 bytes in network order.
    NetworkIpv6,
}

impl AddressLayout {
    /// Returns the number of bytes of an address.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::HostIpv4 | Self::NetworkIpv4 => 4,
            Self::WideIpv4 => 8,
            Self::HostIpv6 | Self::NetworkIpv6 => 16,
        }
    }
}

/// Addresses at a fixed distance from each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spaced<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where row 0 is.
    pub(crate) first: usize,
    /// From each row to the next, backwards if negative.
    pub(crate) stride: isize,
    pub(crate) rows: usize,
    pub(crate) layout: AddressLayout,
}

impl<'a> Spaced<'a> {
    fn new(bytes: &'a [u8], first: usize, stride: isize, rows: usize, layout: AddressLayout) -> Option<Self> {
        if rows > 0 {
            let way = isize::try_from(rows - 1).ok()?.checked_mul(stride)?;
            let last = first.checked_add_signed(way)?;
            if first.max(last).checked_add(layout.bytes())? > bytes.len() {
                return None;
            }
        }
        Some(Self { bytes, first, stride, rows, layout })
    }

    /// Returns the bytes of a row.
    #[inline(always)]
    pub(crate) fn at<const BYTES: usize>(&self, row: usize) -> [u8; BYTES] {
        let start = self.first.wrapping_add_signed(self.stride.wrapping_mul(row as isize));
        let mut address = [0; BYTES];
        address.copy_from_slice(&self.bytes[start..start + BYTES]);
        address
    }
}

impl<'a> Column<'a> {
    pub(crate) fn new(data: ColumnData<'a>) -> Self {
        Self { data, validity: None }
    }

    /// Returns a column of IPv4 addresses in host order.
    #[must_use]
    pub fn ipv4(keys: &'a [u32]) -> Self {
        Self::new(ColumnData::Ipv4(keys))
    }

    /// Returns a column of IPv6 addresses in host order.
    #[must_use]
    pub fn ipv6(keys: &'a [u128]) -> Self {
        Self::new(ColumnData::Ipv6(keys))
    }

    /// Returns a column of IPv4 addresses in host order, as engines without unsigned integers have them: the bits count.
    #[must_use]
    pub fn ipv4_signed(keys: &'a [i32]) -> Self {
        Self::packed(bytes_of(keys), AddressLayout::HostIpv4)
    }

    /// Returns a column of IPv4 addresses in host order, in integers of 64 bits. Those above 2^32 - 1 are invalid.
    #[must_use]
    pub fn ipv4_wide(keys: &'a [u64]) -> Self {
        Self::packed(bytes_of(keys), AddressLayout::WideIpv4)
    }

    /// Returns a column of IPv4 addresses in host order, in integers of 64 bits. Those above 2^32 - 1 and negative ones are invalid.
    #[must_use]
    pub fn ipv4_wide_signed(keys: &'a [i64]) -> Self {
        Self::packed(bytes_of(keys), AddressLayout::WideIpv4)
    }

    /// Returns a column of IPv4 addresses in network order.
    #[must_use]
    pub fn network_ipv4(addresses: &'a [[u8; 4]]) -> Self {
        Self::packed(addresses.as_flattened(), AddressLayout::NetworkIpv4)
    }

    /// Returns a column of IPv6 addresses in network order.
    #[must_use]
    pub fn network_ipv6(addresses: &'a [[u8; 16]]) -> Self {
        Self::packed(addresses.as_flattened(), AddressLayout::NetworkIpv6)
    }

    /// Returns a column of addresses that follow each other in `bytes`, as many as there are whole ones. They need no alignment.
    #[must_use]
    pub fn packed(bytes: &'a [u8], layout: AddressLayout) -> Self {
        let (stride, rows) = (layout.bytes() as isize, bytes.len() / layout.bytes());
        Self::new(ColumnData::Spaced(Spaced { bytes, first: 0, stride, rows, layout }))
    }

    /// Returns a column of addresses inside larger records: row 0 is at `first`, each row is `stride` bytes after the one before, or
    /// before it if `stride` is negative. They need no alignment, and may overlap.
    ///
    /// # Errors
    /// When a row would not lie in `bytes` whole.
    pub fn strided(
        bytes: &'a [u8],
        first: usize,
        stride: isize,
        rows: usize,
        layout: AddressLayout,
    ) -> Result<Self, ColumnError> {
        let spaced = Spaced::new(bytes, first, stride, rows, layout);
        let spaced = spaced.ok_or(ColumnError::Array("strides that leave the buffer"))?;
        Ok(Self::new(ColumnData::Spaced(spaced)))
    }

    /// Returns a column of addresses in network order, of either family by their length: 4 or 16 bytes. Others are invalid.
    #[must_use]
    pub fn binary(rows: ByteRows<'a>) -> Self {
        Self::new(ColumnData::Binary(rows))
    }

    /// Returns a column of addresses as text, of either family.
    #[must_use]
    pub fn text(rows: ByteRows<'a>) -> Self {
        Self::new(ColumnData::Text(rows))
    }

    /// Returns a column of addresses as text, of either family.
    #[must_use]
    pub fn texts(rows: &'a [&'a [u8]]) -> Self {
        Self::text(ByteRows::slices(rows))
    }

    /// Returns a column whose rows are entries of a dictionary, which is a column of any other kind. A number that no entry has makes
    /// its row invalid.
    ///
    /// # Errors
    /// When the dictionary has a dictionary itself.
    pub fn dictionary(entries: EntryNumbers<'a>, dictionary: Self) -> Result<Self, ColumnError> {
        if matches!(dictionary.data, ColumnData::Dictionary(..)) {
            return Err(ColumnError::Array("dictionary of a dictionary"));
        }
        Ok(Self::new(ColumnData::Dictionary(entries, Box::new(dictionary))))
    }

    /// Returns a column of nulls alone.
    #[must_use]
    pub fn nulls(rows: usize) -> Self {
        Self::new(ColumnData::Nulls(rows))
    }

    /// Returns the column with nulls, where the bitmap has no bit.
    ///
    /// # Errors
    /// When the bitmap has another number of rows.
    pub fn with_validity(self, validity: Bitmap<'a>) -> Result<Self, ColumnError> {
        if validity.rows() != self.len() {
            return Err(ColumnError::Length { rows: self.len(), other: validity.rows() });
        }
        Ok(Self { validity: Some(validity), ..self })
    }

    /// Takes rows of bytes for text, which engines without a type for text hand over. Other columns are unchanged.
    #[must_use]
    pub fn bytes_as_text(self) -> Self {
        let data = match self.data {
            ColumnData::Binary(rows) => ColumnData::Text(rows),
            ColumnData::Dictionary(entries, dictionary) => {
                ColumnData::Dictionary(entries, Box::new(dictionary.bytes_as_text()))
            }
            data => data,
        };
        Self { data, ..self }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.data {
            ColumnData::Ipv4(keys) => keys.len(),
            ColumnData::Ipv6(keys) => keys.len(),
            ColumnData::Spaced(spaced) => spaced.rows,
            ColumnData::Binary(rows) | ColumnData::Text(rows) => rows.len(),
            ColumnData::Dictionary(entries, _) => entries.len(),
            ColumnData::Nulls(rows) => *rows,
        }
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the bitmap has a bit for the row. A row that has one may still be a null of the dictionary.
    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.validity.is_none_or(|validity| validity.is_valid(row))
    }

    /// Returns the address of one row, `None` if it is null. For rows that something is to be said about: a lookup converts whole
    /// columns much faster.
    ///
    /// # Errors
    /// Why the row has no address.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn address(&self, row: usize) -> Result<Option<IpAddr>, RowFault> {
        assert!(row < self.len(), "row {row} of a column of {}", self.len());
        if !self.is_valid(row) {
            return Ok(None);
        }
        let (v4, v6) =
            (|key: u32| Ipv4Addr::from_bits(key).into(), |key: u128| Ipv6Addr::from_bits(key).into());
        let address = match &self.data {
            ColumnData::Ipv4(keys) => v4(keys[row]),
            ColumnData::Ipv6(keys) => v6(keys[row]),
            ColumnData::Spaced(spaced) => match spaced.layout {
                AddressLayout::HostIpv4 => v4(u32::from_ne_bytes(spaced.at(row))),
                AddressLayout::HostIpv6 => v6(u128::from_ne_bytes(spaced.at(row))),
                AddressLayout::NetworkIpv4 => v4(u32::from_be_bytes(spaced.at(row))),
                AddressLayout::NetworkIpv6 => v6(u128::from_be_bytes(spaced.at(row))),
                AddressLayout::WideIpv4 => {
                    let bits = u64::from_ne_bytes(spaced.at(row));
                    v4(u32::try_from(bits).map_err(|_| RowFault::Integer(bits))?)
                }
            },
            ColumnData::Binary(rows) => {
                let bytes = rows.get(row).ok_or(RowFault::Outside)?;
                match (bytes.try_into(), bytes.try_into()) {
                    (Ok(address), _) => v4(u32::from_be_bytes(address)),
                    (_, Ok(address)) => v6(u128::from_be_bytes(address)),
                    _ => return Err(RowFault::Bytes(bytes.len())),
                }
            }
            ColumnData::Text(rows) => {
                let text = rows.get(row).ok_or(RowFault::Outside)?;
                parse_address(text).map_err(|error| RowFault::text(text, error))?
            }
            ColumnData::Dictionary(entries, dictionary) => {
                let entry = entries.entry(row);
                if entry >= dictionary.len() {
                    return Err(RowFault::Entry(entries.number(row)));
                }
                return dictionary.address(entry);
            }
            ColumnData::Nulls(_) => return Ok(None),
        };
        Ok(Some(address))
    }
}
