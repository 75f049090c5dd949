//! Where records begin and end (RFC 6396 section 2).

use super::{KINDS, Skipped, table_dump};
use crate::event::Time;

/// The largest record that is accepted. The largest messages are 65,535 bytes (RFC 8654); a prefix with the routes of
/// many peers may take more.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// The common header of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When the record was written; the microseconds of the extended kinds are in their bodies.
    pub time: Time,
    /// The kind of the record.
    pub kind: u16,
    /// The subtype within its kind.
    pub subtype: u16,
    /// Bytes after the header.
    pub len: u32,
}

impl Header {
    /// Length of the header itself.
    pub const BYTES: usize = 12;

    /// Returns the header at the beginning of `bytes`; `None` if there are too few.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (header, _) = bytes.split_first_chunk::<{ Self::BYTES }>()?;
        let u32_at =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let time = Time { seconds: u32_at(0), micros: None };
        Some(Self { time, kind: u16_at(4), subtype: u16_at(6), len: u32_at(8) })
    }

    /// Returns the length of the record, its header included; `usize::MAX` if that exceeds an address space of 32 bits.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        Self::BYTES.saturating_add(self.len as usize)
    }

    /// Returns whether it looks like a header: it has a kind that exists and a possible length. Twelve zeros, which
    /// fill files and devices, do not.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        if self.kind == 0 && self.len == 0 && self.time.seconds == 0 {
            return false;
        }
        let known = match KINDS.iter().find(|kind| kind.number == self.kind) {
            Some(kind) => self.subtype < kind.subtypes,
            None => Skipped::record(self.kind).is_some() && self.subtype < 64,
        };
        known && self.record_bytes() <= MAX_RECORD_BYTES
    }

    /// Returns whether it is a header of a kind that is read here.
    fn is_read(&self) -> bool {
        self.is_plausible() && KINDS.iter().any(|kind| kind.number == self.kind)
    }
}

/// The result of looking for a record at the start of a run of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// A whole record.
    Record(Header),
    /// The beginning of a record, or nothing: more bytes are needed.
    More,
    /// This many bytes that are not a record, up to the next one.
    Lost(usize),
    /// An incomplete last record: no more bytes follow.
    Cut,
}

impl Frame {
    /// Looks for a record at the start of `bytes`. `last` means that no more bytes follow them.
    ///
    /// A record is accepted if another record or the end of the file follows it. Otherwise the next place is searched
    /// for at which two records follow each other.
    #[must_use]
    pub fn next(bytes: &[u8], last: bool) -> Self {
        Self::counted(bytes, last, &mut 0)
    }

    /// Like [`next`](Self::next); adds the number of places examined to `steps`.
    pub(crate) fn counted(bytes: &[u8], last: bool, steps: &mut u64) -> Self {
        *steps += 1;
        let mut resume = |cut: bool| resume(bytes, last, cut, steps);
        match believed(bytes, last) {
            Belief::Yes(header) => Self::Record(header),
            Belief::Unsure if !last => Self::More,
            Belief::Unsure => resume(true).map_or(Self::Cut, Self::Lost),
            Belief::No(header) => match (resume(false), header) {
                // As far as is known, the damage follows this record.
                (Some(at), Some(header)) if at >= header.record_bytes() => Self::Record(header),
                (Some(at), _) => Self::Lost(at),
                (None, _) if !last && bytes.len() <= MAX_RECORD_BYTES => Self::More,
                (None, Some(header)) => Self::Record(header),
                (None, None) if last => Self::Lost(bytes.len()),
                // The end may be the beginning of a header.
                (None, None) => Self::Lost(bytes.len() - Header::BYTES),
            },
        }
    }
}

enum Belief {
    Yes(Header),
    /// Depends on the bytes after these.
    Unsure,
    /// Not a record. Has the header if it is a plausible one, although the bytes after the record are not.
    No(Option<Header>),
}

fn believed(bytes: &[u8], last: bool) -> Belief {
    let Some(header) = Header::read(bytes) else { return Belief::Unsure };
    if !header.is_plausible() {
        return Belief::No(None);
    }
    let Some(rest) = bytes.get(header.record_bytes()..) else { return Belief::Unsure };
    match Header::read(rest) {
        Some(next) if next.is_plausible() => Belief::Yes(header),
        Some(_) => short(header, bytes, last).unwrap_or(Belief::No(Some(header))),
        // A few bytes of a record whose rest is missing, or the end.
        None if last => short(header, bytes, last).unwrap_or(Belief::Yes(header)),
        None => Belief::Unsure,
    }
}

/// Bytes that are missing from the length of a record of `TABLE_DUMP`, in dumps that RIS made in January 2000: it leaves out the
/// view and the sequence number.
const SHORT_BY: u32 = 4;

/// Judges a record whose length is too short by [`SHORT_BY`]: its routes end there, and so do the bytes, or another
/// record follows. The header that is returned has the whole length.
fn short(header: Header, bytes: &[u8], last: bool) -> Option<Belief> {
    let whole = Header { len: header.len + SHORT_BY, ..header };
    if !table_dump::ends_at(whole, bytes) {
        return None;
    }
    let rest = bytes.get(whole.record_bytes()..)?;
    match Header::read(rest) {
        Some(next) => next.is_plausible().then_some(Belief::Yes(whole)),
        None if last => Some(Belief::Yes(whole)),
        None => Some(Belief::Unsure),
    }
}

/// Returns the first place after the beginning at which a record of a kind that is read here is followed by another. At
/// the end of the file one record that ends with it is enough, unless the bytes may be the rest of one long record
/// (`cut`): then two are required.
fn resume(bytes: &[u8], last: bool, cut: bool, steps: &mut u64) -> Option<usize> {
    let end = bytes.len().saturating_sub(Header::BYTES);
    let found = (1..end).find(|&at| {
        let Some(header) = Header::read(&bytes[at..]).filter(Header::is_read) else { return false };
        let follows = match bytes.get(at + header.record_bytes()..) {
            Some([]) => last && !cut,
            Some(rest) => Header::read(rest).is_some_and(|next| next.is_read()),
            None => false,
        };
        follows || matches!(short(header, &bytes[at..], last && !cut), Some(Belief::Yes(_)))
    });
    *steps += found.unwrap_or(end) as u64;
    found
}

/// Returns whether the bytes begin with a plausible header of a record.
pub(crate) fn begins_with_header(head: &[u8]) -> bool {
    Header::read(head).is_some_and(|header| header.is_plausible())
}

/// Returns whether a file that begins with these bytes is an MRT file; text never is.
pub(crate) fn is_mrt(head: &[u8]) -> bool {
    if begins_with_header(head) {
        return true;
    }
    // Damage may begin with the first record. Text holds no zeros, MRT in every length.
    head.iter().take(64).any(|&byte| byte == 0) && resume(head, false, true, &mut 0).is_some()
}
