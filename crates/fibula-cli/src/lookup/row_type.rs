//! The address in a row of RowBinary, and where the row ends.

use clap::ValueEnum;

/// Length above which a text is refused: no address is a tenth as long.
const TEXT_LIMIT_BYTES: usize = 4096;

/// The types of an address in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum RowType {
    /// String: the text of an address of either family
    #[default]
    String,
    /// IPv4 or UInt32
    #[value(name = "ipv4")]
    Ipv4,
    /// IPv6 or FixedString(16)
    #[value(name = "ipv6")]
    Ipv6,
}

impl RowType {
    /// Returns the length of the first row, and where its address begins; `None` if not all of it is there.
    ///
    /// # Errors
    /// If the row is none.
    pub(super) fn row(self, bytes: &[u8]) -> Result<Option<(usize, usize)>, &'static str> {
        let (start, len) = match self {
            Self::Ipv4 => (0, 4),
            Self::Ipv6 => (0, 16),
            Self::String => {
                let mut len = 0_usize;
                let mut at = 0;
                loop {
                    let Some(&byte) = bytes.get(at) else { return Ok(None) };
                    len |= usize::from(byte & 0x7f) << (7 * at);
                    at += 1;
                    if len > TEXT_LIMIT_BYTES || at > 2 && byte >= 0x80 {
                        return Err("a text is longer than 4096 bytes: is --row-type right?");
                    }
                    if byte < 0x80 {
                        break (at, len);
                    }
                }
            }
        };
        Ok((bytes.len() >= start + len).then_some((start + len, start)))
    }
}
