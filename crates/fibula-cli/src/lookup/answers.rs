//! From lines to rows, a block at a time.

use std::io::Write;

use fibula::fib::Match;
use fibula::net::{AddressError, Dual, Key};

use super::digits::Digits;
use super::finder::Finder;
use super::lines::{LINE_LIMIT_BYTES, Line};
use super::rows::Rows;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::text::thousands;

/// Lines looked up together: enough for a structure's batches, few enough for the first-level cache.
const BLOCK: usize = 1024;

/// Bytes of output that are written at once, even if more lines have arrived.
const OUTPUT_BYTES: usize = 256 << 10;

/// Bad lines that are reported one by one.
const REPORTED: usize = 5;

/// Takes lines, writes rows. Nothing is allocated once the buffers have grown to the size of a block.
pub(super) struct Answers<'a, W: Write> {
    finders: Dual<Finder<'a, u32>, Finder<'a, u128>>,
    rows: Rows,
    block: Block,
    out: Vec<u8>,
    sink: W,
    messages: Messages,
    /// The word for an input in messages.
    input: &'static str,
    pub(super) tally: Tally,
}

/// Counts of lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) lines: usize,
    pub(super) bad: usize,
    pub(super) matched: usize,
}

/// Lines waiting for their answers.
#[derive(Default)]
struct Block {
    /// The addresses as given, one after another.
    text: Vec<u8>,
    lines: Vec<(Kind, u8)>,
    v4: Vec<u32>,
    v6: Vec<u128>,
    found_v4: Vec<Option<Match>>,
    found_v6: Vec<Option<Match>>,
}

#[derive(Clone, Copy)]
enum Kind {
    V4,
    V6,
    Bad,
}

impl<'a, W: Write> Answers<'a, W> {
    pub(super) fn new(
        finders: Dual<Finder<'a, u32>, Finder<'a, u128>>,
        rows: Rows,
        sink: W,
        messages: Messages,
        input: &'static str,
    ) -> Self {
        let mut out = Vec::with_capacity(OUTPUT_BYTES + (OUTPUT_BYTES >> 2));
        rows.start(&mut out);
        let (block, tally) = (Block::default(), Tally::default());
        Self { finders, rows, block, out, sink, messages, input, tally }
    }

    /// Adds a line. Its row is written by the next [`flush`](Self::flush) at the latest.
    #[inline]
    pub(super) fn push(&mut self, line: Line<'_>) -> Result<(), Failure> {
        self.tally.lines += 1;
        match line {
            Line::Text(text) => {
                let text = text.trim_ascii();
                if let Err(error) = self.block.push(text) {
                    self.bad(text, &error.reason());
                }
            }
            Line::TooLong(start) => self.bad(start, &format_args!("more than {LINE_LIMIT_BYTES} bytes")),
        }
        if self.block.lines.len() == BLOCK { self.answer() } else { Ok(()) }
    }

    #[cold]
    fn bad(&mut self, text: &[u8], reason: &dyn std::fmt::Display) {
        self.block.lines.push((Kind::Bad, 0));
        self.tally.bad += 1;
        if self.tally.bad <= REPORTED {
            let (input, number) = (self.input, thousands(self.tally.lines));
            if text.is_empty() {
                self.messages.warning(format_args!("{input} {number} is empty"));
            } else {
                let text = excerpt(text);
                self.messages
                    .warning(format_args!("{input} {number}: {text} is not an IP address ({reason})"));
            }
        }
    }

    /// Answers all lines so far, and writes the answers.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.answer()?;
        self.write()
    }

    /// Writes the end of the output and reports how many lines were not addresses.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.answer()?;
        self.rows.end(&mut self.out);
        self.write()?;
        let Tally { bad, .. } = self.tally;
        if bad > REPORTED {
            let inputs = format!("{}s", self.input);
            self.messages.warning(format_args!("{} {inputs} in all were not IP addresses", thousands(bad)));
        }
        Ok(())
    }

    /// Returns what answered how many addresses, as text.
    pub(super) fn stats(&self) -> impl Iterator<Item = String> {
        [self.finders.v4.stats(), self.finders.v6.stats()].into_iter().flatten()
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.sink.write_all(&self.out)?;
        self.out.clear();
        self.sink.flush()?;
        Ok(())
    }

    fn answer(&mut self) -> Result<(), Failure> {
        let Self { finders, rows, block, out, tally, .. } = self;
        finders.v4.find(&block.v4, &mut block.found_v4, self.messages)?;
        finders.v6.find(&block.v6, &mut block.found_v6, self.messages)?;
        let (mut at, mut at_v4, mut at_v6) = (0, 0, 0);
        for &(kind, len) in &block.lines {
            let text = &block.text[at..at + usize::from(len)];
            at += usize::from(len);
            let hit = match kind {
                Kind::V4 => put_row(rows, out, text, block.v4[at_v4], block.found_v4[at_v4], &mut at_v4),
                Kind::V6 => put_row(rows, out, text, block.v6[at_v6], block.found_v6[at_v6], &mut at_v6),
                Kind::Bad => {
                    rows.bad(out);
                    false
                }
            };
            tally.matched += usize::from(hit);
        }
        block.clear();
        if self.out.len() >= OUTPUT_BYTES { self.write() } else { Ok(()) }
    }
}

/// Writes the row of an address, advances `at`, and returns whether there was a route.
#[inline]
fn put_row<K: Digits>(
    rows: &mut Rows,
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
        let kind = match u32::parse(text) {
            Ok(key) => {
                self.v4.push(key);
                Kind::V4
            }
            // A colon means IPv6, also in error messages.
            Err(_) if memchr::memchr(b':', text).is_some() => {
                self.v6.push(u128::parse(text)?);
                Kind::V6
            }
            Err(error) => return Err(error),
        };
        self.text.extend_from_slice(text);
        // An address has at most 45 bytes, because leading zeros are refused.
        self.lines.push((kind, text.len() as u8));
        Ok(())
    }

    fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.v4.clear();
        self.v6.clear();
        self.found_v4.clear();
        self.found_v6.clear();
    }
}

/// Returns the beginning of a text, safe for a terminal.
fn excerpt(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    let more = if text.len() > SHOWN { "..." } else { "" };
    format!("'{}{more}'", text[..SHOWN.min(text.len())].escape_ascii())
}
