//! A packet's family and protocol choose the first row of its rules, and say which fields above IP it can have.

use super::RuleError;
use super::dimension::{ABSENT, Numbers, Rows};
use super::fields::UpperKind;

/// The number of a row, the bit [`ABSENT`] for protocols without ports, and above it the kind of header.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProtocolRow(u32);

impl ProtocolRow {
    const KIND: u32 = 24;

    fn new(number: u32, kind: UpperKind) -> Self {
        Self(number & 0xffff).with(kind)
    }

    /// Returns the same row for another kind of header.
    pub(super) const fn with(self, kind: UpperKind) -> Self {
        let no_ports = if kind.has_ports() { 0 } else { ABSENT };
        Self(self.0 & 0xffff | no_ports | (kind.bits() as u32) << Self::KIND)
    }

    #[inline(always)]
    pub(super) const fn number(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// Returns the bit that makes ports absent where the protocol has none.
    #[inline(always)]
    pub(super) const fn no_ports(self) -> u32 {
        self.0 & ABSENT
    }

    #[inline(always)]
    pub(super) const fn kind(self) -> UpperKind {
        UpperKind::from_bits((self.0 >> Self::KIND) as u8)
    }
}

/// The rows of all protocols of both families.
#[derive(Debug)]
pub(super) struct Protocols {
    entries: Box<[ProtocolRow; 512]>,
    bits: Vec<u64>,
}

impl Protocols {
    /// Combines the rows of families, IPv4 first, with those of protocols, where rules test them.
    pub(super) fn compile(
        words: usize,
        families: Option<&[u64]>,
        protocols: Option<&Numbers>,
    ) -> Result<Self, RuleError> {
        let mut rows = Rows::new(words);
        let mut entries = Box::new([ProtocolRow(0); 512]);
        for (at, entry) in entries.iter_mut().enumerate() {
            let (v6, protocol) = (at / 256, at % 256);
            let mut row = families.map_or(vec![u64::MAX; words], |rows| rows[v6 * words..][..words].to_vec());
            if let Some(protocols) = protocols {
                row.iter_mut().zip(protocols.row(Some(protocol as u16))).for_each(|(row, bits)| *row &= bits);
            }
            *entry = ProtocolRow::new(rows.number(row)?, UpperKind::of(protocol as u8, v6 == 1));
        }
        Ok(Self { entries, bits: rows.finish().1 })
    }

    #[inline(always)]
    pub(super) fn get(&self, v6: bool, protocol: u8) -> ProtocolRow {
        self.entries[usize::from(v6) << 8 | usize::from(protocol)]
    }

    /// Returns all rows.
    pub(super) fn bits(&self) -> &[u64] {
        &self.bits
    }
}
