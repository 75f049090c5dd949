//! From lines of addresses to rows, a block at a time.

use clap::ValueEnum;
use fibula::fib::Match;
use fibula::net::{AddressError, Dual, Key};

use super::around::address_in;
use super::chunks::Lines;
use super::digits::Digits;
use super::finder::Finder;
use super::pipeline::{LineCounts, Out, Worker};
use super::rows::AnswerRows;
use crate::failure::Failure;
use crate::messages::Messages;

/// Lines looked up together: enough for an engine's batches, few enough for the first-level cache.
pub(super) const BLOCK: usize = 1024;

/// Length above which a line is not kept. No address is a tenth as long.
const LINE_LIMIT_BYTES: usize = 4096;

/// How lines of addresses end.
pub(super) const LINES: Lines = Lines::Cut(LINE_LIMIT_BYTES);

/// The finders of both families.
pub(super) type Finders<'a> = Dual<Finder<'a, u32>, Finder<'a, u128>>;

/// Takes lines, makes rows. Nothing is allocated once the buffers have grown to the size of a block.
pub(super) struct Answers<'a, 't> {
    finders: &'a Finders<'t>,
    rows: AnswerRows,
    block: Block,
    messages: Messages,
    tally: LineCounts,
}

/// Lines waiting for their answers.
#[derive(Default)]
struct Block {
    /// The addresses as given, one after another.
    text: Vec<u8>,
    lines: Vec<(AddressKind, u8)>,
    keys: Keys,
}

/// The routes by which IPv4-mapped IPv6 addresses (::ffff:192.0.2.1) are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum V4Mapped {
    /// Those of IPv4, by the address that is mapped
    Ipv4,
    /// Those of IPv6, unchanged
    #[default]
    Ipv6,
}

/// Addresses and their answers.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) v4: Vec<u32>,
    pub(super) v6: Vec<u128>,
    pub(super) found_v4: Vec<Option<Match>>,
    pub(super) found_v6: Vec<Option<Match>>,
    mapped: V4Mapped,
}

#[derive(Clone, Copy)]
pub(super) enum AddressKind {
    V4,
    V6,
    Bad,
}

impl Keys {
    pub(super) fn new(mapped: V4Mapped) -> Self {
        Self { mapped, ..Self::default() }
    }

    /// Adds an address, which may have the surroundings that logs give it.
    #[inline]
    pub(super) fn push(&mut self, text: &[u8]) -> Result<AddressKind, AddressError> {
        match u32::parse(text) {
            Ok(key) => {
                self.v4.push(key);
                Ok(AddressKind::V4)
            }
            Err(error) => self.push_other(text, error),
        }
    }

    fn push_other(&mut self, text: &[u8], error: AddressError) -> Result<AddressKind, AddressError> {
        // A colon means IPv6, also in error messages.
        let error = match memchr::memchr(b':', text).map(|_| u128::parse(text)) {
            Some(Ok(key)) => return Ok(self.push_v6(key)),
            Some(Err(error)) => error,
            None => error,
        };
        let inner = address_in(text).ok_or(error)?;
        match u32::parse(inner) {
            Ok(key) => {
                self.v4.push(key);
                Ok(AddressKind::V4)
            }
            Err(_) => Ok(self.push_v6(u128::parse(inner).map_err(|_| error)?)),
        }
    }

    /// Adds an IPv6 address, or the IPv4 address that is mapped to it.
    pub(super) fn push_v6(&mut self, key: u128) -> AddressKind {
        if self.mapped == V4Mapped::Ipv4 && key >> 32 == 0xffff {
            self.v4.push(key as u32);
            return AddressKind::V4;
        }
        self.v6.push(key);
        AddressKind::V6
    }

    pub(super) fn find(&mut self, finders: &Finders<'_>, messages: Messages) -> Result<(), Failure> {
        finders.v4.find(&self.v4, &mut self.found_v4, messages)?;
        finders.v6.find(&self.v6, &mut self.found_v6, messages)
    }

    pub(super) fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
        self.found_v4.clear();
        self.found_v6.clear();
    }
}

impl<'a, 't> Answers<'a, 't> {
    pub(super) fn new(
        finders: &'a Finders<'t>,
        rows: AnswerRows,
        mapped: V4Mapped,
        messages: Messages,
    ) -> Self {
        let block = Block { keys: Keys::new(mapped), ..Block::default() };
        Self { finders, rows, block, messages, tally: LineCounts::default() }
    }

    /// Adds a line. Its row is in `out` after [`end`](Self::end) at the latest.
    #[inline]
    pub(super) fn push(&mut self, line: &[u8], out: &mut Out<'_>) -> Result<(), Failure> {
        self.tally.lines += 1;
        if line.len() > LINE_LIMIT_BYTES {
            self.bad(line, &format_args!("more than {LINE_LIMIT_BYTES} bytes"));
        } else {
            let text = line.trim_ascii();
            if let Err(error) = self.block.push(text) {
                self.bad(text, &error.reason());
            }
        }
        if self.block.lines.len() == BLOCK { self.respond(out) } else { Ok(()) }
    }

    #[cold]
    fn bad(&mut self, text: &[u8], reason: &dyn std::fmt::Display) {
        self.block.lines.push((AddressKind::Bad, 0));
        self.tally.bad(self.tally.lines, || match text {
            [] => " is empty".to_owned(),
            text => format!(": {} is not an IP address ({reason})", excerpt(text)),
        });
    }

    /// Answers the addresses that are left, and returns the counts since the last end.
    pub(super) fn end(&mut self, out: &mut Out<'_>) -> Result<LineCounts, Failure> {
        self.respond(out)?;
        Ok(std::mem::take(&mut self.tally))
    }

    fn respond(&mut self, out: &mut Out<'_>) -> Result<(), Failure> {
        let Self { finders, rows, block, tally, .. } = self;
        block.keys.find(finders, self.messages)?;
        let keys = &block.keys;
        let (mut at, mut at_v4, mut at_v6) = (0, 0, 0);
        for &(kind, len) in &block.lines {
            let text = &block.text[at..at + usize::from(len)];
            at += usize::from(len);
            let hit = match kind {
                AddressKind::V4 => {
                    put_row(rows, &mut out.bytes, text, keys.v4[at_v4], keys.found_v4[at_v4], &mut at_v4)
                }
                AddressKind::V6 => {
                    put_row(rows, &mut out.bytes, text, keys.v6[at_v6], keys.found_v6[at_v6], &mut at_v6)
                }
                AddressKind::Bad => {
                    rows.bad(&mut out.bytes);
                    false
                }
            };
            tally.matched += usize::from(hit);
            out.relieve();
        }
        block.clear();
        Ok(())
    }
}

impl Worker for Answers<'_, '_> {
    fn answer(&mut self, chunk: &[u8], first: bool, out: &mut Out<'_>) -> Result<LineCounts, Failure> {
        self.rows.set_first(first);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            self.push(&chunk[start..end], out)?;
            start = end + 1;
        }
        // Only the last line of all may lack its line feed.
        if start < chunk.len() {
            self.push(&chunk[start..], out)?;
        }
        self.end(out)
    }
}

/// Writes the row of an address, advances `at`, and returns whether there was a route.
#[inline]
fn put_row<K: Digits>(
    rows: &mut AnswerRows,
    out: &mut Vec<u8>,
    text: &[u8],
    key: K,
    found: Option<Match>,
    at: &mut usize,
) -> bool {
    *at += 1;
    match found {
        Some(found) => rows.hit(out, text, key, found),
        None => rows.miss(out, text),
    }
    found.is_some()
}

impl Block {
    #[inline]
    fn push(&mut self, text: &[u8]) -> Result<(), AddressError> {
        let kind = self.keys.push(text)?;
        self.text.extend_from_slice(text);
        // An address has at most 45 bytes, because leading zeros are refused, and its surroundings have at most 50.
        self.lines.push((kind, text.len() as u8));
        Ok(())
    }

    fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.keys.clear();
    }
}

/// Returns the beginning of a text, safe for a terminal.
fn excerpt(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    let more = if text.len() > SHOWN { "..." } else { "" };
    format!("'{}{more}'", text[..SHOWN.min(text.len())].escape_ascii())
}
