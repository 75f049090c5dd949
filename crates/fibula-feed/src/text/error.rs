//! Why a line cannot be read.

use core::fmt;

use fibula::net::{AddressError, PrefixError};

/// Why a line cannot be read, and at which column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineError {
    reason: Reason,
    offset: usize,
}

/// The kind of a fault in a line; prints without the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason(LineErrorKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineErrorKind {
    Prefix(PrefixError),
    LeadingZero,
    NoNextHop,
    NextHopAddress(AddressError),
    NotANextHop,
    UnterminatedQuote,
    AfterQuote,
    NotText,
    NotJson,
    RangeAddress(AddressError),
    NumberTooLarge,
    NotAnOrigin,
    OriginTooLarge,
    ExtraField,
    ExtraUpdateField,
    MissingField(&'static str),
    NotATime,
    NotAWord { wanted: &'static str },
    Address(AddressError),
    RangeFamilies,
    RangeOrder,
    OtherKind,
    LineTooLong { limit_bytes: usize },
    EntryTooLong { limit_bytes: usize },
    TooDeep { levels: usize },
    EndsEarly,
    NotARoute,
    BetweenColumns,
    NoPrefix,
    RangeNumber,
}

impl LineError {
    pub(crate) fn new(kind: LineErrorKind, offset: usize) -> Self {
        Self { reason: Reason(kind), offset }
    }

    /// Returns the kind of the fault.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the place in the line, in bytes from its start.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the place in the line as editors count, in bytes from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.offset + 1
    }

    /// Returns whether a quote is not closed.
    pub(crate) fn is_unterminated_quote(&self) -> bool {
        self.reason.0 == LineErrorKind::UnterminatedQuote
    }

    /// Returns whether the only fault was bits set after the prefix length, which
    /// [`HostBits::Mask`](fibula::net::HostBits::Mask) accepts.
    #[must_use]
    pub fn is_host_bits(&self) -> bool {
        matches!(self.reason.0, LineErrorKind::Prefix(error) if error.is_host_bits())
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column(), self.reason)
    }
}

impl core::error::Error for LineError {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LineErrorKind::Prefix(error) => error.reason().fmt(f),
            LineErrorKind::LeadingZero => f.write_str(
                "the prefix length has a leading zero, which some tools read as octal: leave it out",
            ),
            LineErrorKind::NoNextHop => f.write_str("no next hop after the prefix"),
            LineErrorKind::NextHopAddress(error) => {
                write!(f, "the next hop is not an IP address: {}", error.reason())
            }
            LineErrorKind::NotANextHop => {
                f.write_str("the next hop is not a number, an address, a list of AS numbers or a name")
            }
            LineErrorKind::NotJson => f.write_str("not JSON"),
            LineErrorKind::RangeAddress(error) => {
                write!(f, "an end of the range is not an IP address: {}", error.reason())
            }
            LineErrorKind::UnterminatedQuote => f.write_str("unterminated quote"),
            LineErrorKind::AfterQuote => f.write_str("unexpected text after the closing quote"),
            LineErrorKind::NotText => f.write_str("the quoted text has control characters or is not UTF-8"),
            LineErrorKind::NumberTooLarge => write!(f, "the next hop is a number above {}", u32::MAX),
            LineErrorKind::NotAnOrigin => f.write_str("an AS number is missing or not a number"),
            LineErrorKind::OriginTooLarge => write!(f, "an AS number is above {}", u32::MAX),
            LineErrorKind::ExtraField => f.write_str("unexpected text after the next hop"),
            LineErrorKind::ExtraUpdateField => f.write_str("unexpected text after the next AS"),
            LineErrorKind::MissingField(what) => write!(f, "the line ends before its {what}"),
            LineErrorKind::BetweenColumns => {
                f.write_str("a word overlaps two columns, or comes before the first")
            }
            LineErrorKind::NoPrefix => f.write_str("no field holds a prefix"),
            LineErrorKind::NotATime => f.write_str("the time is not a number of seconds"),
            LineErrorKind::NotAWord { wanted } => write!(f, "expected {wanted}"),
            LineErrorKind::Address(error) => {
                write!(f, "the peer is not an IP address: {}", error.reason())
            }
            LineErrorKind::RangeFamilies => f.write_str("the range begins and ends in different families"),
            LineErrorKind::RangeOrder => f.write_str("the range ends before it begins"),
            LineErrorKind::OtherKind => f.write_str(
                "lines with and without a peer are mixed: only those of the first line's kind are read",
            ),
            LineErrorKind::LineTooLong { limit_bytes } => {
                write!(f, "the line is longer than {limit_bytes} bytes")
            }
            LineErrorKind::EntryTooLong { limit_bytes } => {
                write!(f, "the route is longer than {limit_bytes} bytes")
            }
            LineErrorKind::TooDeep { levels } => {
                write!(f, "lists and objects are within each other more than {levels} times")
            }
            LineErrorKind::EndsEarly => f.write_str("the text ends inside a list or an object"),
            LineErrorKind::NotARoute => f.write_str("not a line of this form"),
            LineErrorKind::RangeNumber => f.write_str("the range has a number that is too large, or is none"),
        }
    }
}
