//! Zstandard as a reader: frames one behind another, checksums verified, nothing lost at a cut.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::source::Source;

/// An empty raw block, the last of its frame (RFC 8878 section 3.1.1.2), and room for a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Largest window that is accepted, that of the `zstd` tool without `--long`; a header can claim terabytes.
const LIMIT_BYTES: u64 = 128 << 20;

pub(super) struct ZstdDecoder<R> {
    input: Source<R>,
    decoder: FrameDecoder,
    in_frame: bool,
    /// The error that comes behind the bytes still in the decoder.
    pending: Option<io::Error>,
}

impl<R> ZstdDecoder<R> {
    pub(super) fn new(input: Source<R>) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LIMIT_BYTES);
        Self { input, decoder, in_frame: false, pending: None }
    }

    pub(super) fn get_ref(&self) -> &Source<R> {
        &self.input
    }

    pub(super) fn get_mut(&mut self) -> &mut Source<R> {
        &mut self.input
    }
}

impl<R: Read> ZstdDecoder<R> {
    /// Begins the next frame; false at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
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
    fn advance(&mut self) {
        let Err(error) = self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
        else {
            return;
        };
        // Until its frame ends the decoder holds back a whole window, often all it has; a frame that cannot be read on
        // is ended for it.
        let ended = self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::UptoBlocks(1));
        debug_assert!(ended.is_ok(), "a valid block");
        self.pending = Some(invalid(error));
    }

    /// The decoder computes the frame's checksum and leaves the comparison to us.
    fn verify(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if Some(sum) != self.decoder.get_calculated_checksum() => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the frame's checksum is another"))
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
                self.advance();
            }
        }
    }
}

fn invalid(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
