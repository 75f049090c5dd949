//! Zstandard as a reader: frames one after another, checksums verified, nothing lost at a cut.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::source::CountedReader;
use super::window::WindowCharge;
use crate::ledger::Ledger;

/// An empty raw block, the last of its frame (RFC 8878 section 3.1.1.2), and room for a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Largest window that is accepted, as by the `zstd` tool without `--long`. It is limited because a header can claim
/// terabytes.
const LIMIT_BYTES: u64 = 128 << 20;

/// Longest header of a frame, its magic included (RFC 8878 section 3.1.1.1).
const HEADER_BYTES: usize = 18;
/// Largest block, decoded (RFC 8878 section 3.1.1.2.4).
const BLOCK_BYTES: u64 = 128 << 10;

/// Returns the window that the header of a frame claims; `None` if this is not such a header.
fn window_bytes(header: &[u8]) -> Option<u64> {
    let [0x28, 0xb5, 0x2f, 0xfd, descriptor, rest @ ..] = header else { return None };
    if descriptor & 0x20 == 0 {
        let window = *rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // A single segment: the window is the content.
    let rest = rest.get([0, 1, 2, 4][usize::from(descriptor & 3)]..)?;
    let little = |count: usize| -> Option<u64> {
        Some(rest.get(..count)?.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    };
    match descriptor >> 6 {
        0 => little(1),
        1 => little(2).map(|size| size + 256),
        2 => little(4),
        _ => little(8),
    }
}

/// Returns the memory that the decoder may take for a window, beyond what small windows take: its ring grows by powers
/// of two and some slack, and the old ring exists until the new one is filled.
fn needed_bytes(window: u64) -> u64 {
    const SLACK: u64 = 2 * BLOCK_BYTES + 1;
    /// Bytes that the smallest window takes, which `THREAD_BYTES` includes.
    const SMALLEST: u64 = 8 * BLOCK_BYTES;
    let ring =
        |bytes: u64| bytes.saturating_sub(SLACK).max(1).checked_next_power_of_two().map(|ring| ring + SLACK);
    let settled = ring(window.saturating_add(BLOCK_BYTES));
    // A block that breaks the rules gets this far before it is refused.
    let most = ring(window.saturating_add(4 * BLOCK_BYTES));
    let needed = match (settled, most) {
        (Some(settled), Some(most)) if settled == most => settled,
        (Some(settled), Some(most)) => settled.saturating_add(most),
        _ => u64::MAX,
    };
    needed.saturating_sub(SMALLEST).max(window)
}

/// Returns whether the block at the beginning of `head` claims more literals than a block may hold. The decoder would
/// make room for them before it refuses the block.
fn has_too_many_literals(head: &[u8]) -> bool {
    let [low, _, _, literals @ ..] = head else { return false };
    let is_compressed = low >> 1 & 3 == 2;
    let [first, second, third, ..] = *literals else { return false };
    if !is_compressed {
        return false;
    }
    let [first, second, third] = [first, second, third].map(u64::from);
    let fourth = literals.get(3).map_or(0, |&byte| u64::from(byte));
    let little = first | second << 8 | third << 16 | fourth << 24;
    let regenerated = match (first & 3, first >> 2 & 3) {
        // Raw and repeated: 5, 12 or 20 bits.
        (0 | 1, 0 | 2) => first >> 3,
        (0 | 1, 1) => (little & 0xffff) >> 4,
        (0 | 1, _) => (little & 0xff_ffff) >> 4,
        // Compressed: 10, 14 or 18 bits.
        (_, 0 | 1) => little >> 4 & 0x3ff,
        (_, 2) => little >> 4 & 0x3fff,
        _ => little >> 4 & 0x3_ffff,
    };
    regenerated > BLOCK_BYTES
}

pub(super) struct ZstdDecoder<R> {
    input: CountedReader<R>,
    decoder: FrameDecoder,
    window: WindowCharge,
    in_frame: bool,
    /// The error to return after the bytes still in the decoder.
    pending: Option<io::Error>,
}

impl<R> ZstdDecoder<R> {
    pub(super) fn new(input: CountedReader<R>, ledger: &Ledger) -> Self {
        let mut decoder = FrameDecoder::new();
        // This reader decides what is accepted, before the decoder sees a header.
        decoder.set_max_window_size(u64::MAX);
        let window = WindowCharge::new(ledger, LIMIT_BYTES);
        Self { input, decoder, window, in_frame: false, pending: None }
    }

    /// Returns whether a frame was refused because it needs too much memory.
    pub(super) fn is_refused(&self) -> bool {
        self.window.is_refused()
    }

    pub(super) fn get_ref(&self) -> &CountedReader<R> {
        &self.input
    }

    pub(super) fn get_mut(&mut self) -> &mut CountedReader<R> {
        &mut self.input
    }
}

impl<R: Read> ZstdDecoder<R> {
    /// Begins the next frame; returns false at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            if let Some(bytes) = window_bytes(self.input.head(HEADER_BYTES)?) {
                self.window.charge("zstd", "window", bytes, needed_bytes(bytes))?;
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(length.into())?,
                Err(error) => return Err(invalid(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.input.by_ref().take(length), &mut io::sink())?;
        if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Decodes the next block.
    fn advance(&mut self) -> io::Result<()> {
        let claims_too_much = has_too_many_literals(self.input.head(8)?);
        let decoded = if claims_too_much {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a block claims more literals than fit into it"))
        } else {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.input, one).map_err(invalid)
        };
        let Err(error) = decoded else { return Ok(()) };
        // A frame that cannot be read further is ended by an empty last block, because the decoder holds back a whole
        // window until the frame ends. That window is often all of the output.
        let ended = self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::UptoBlocks(1));
        debug_assert!(ended.is_ok(), "a valid block");
        self.pending = Some(error);
        Ok(())
    }

    /// Compares the frame's checksum, which the decoder only computes.
    fn verify(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if Some(sum) != self.decoder.get_calculated_checksum() => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the frame's checksum does not match"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for ZstdDecoder<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buf);
            }
            if let Some(error) = self.pending.take() {
                return Err(error);
            }
            if self.decoder.is_finished() {
                self.in_frame = false;
                self.verify()?;
            } else {
                self.advance()?;
            }
        }
    }
}

fn invalid(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
