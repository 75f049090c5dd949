//! Compressed streams, told apart by their first bytes and never by a file name.
//!
//! Members, streams and frames that follow each other are read as one, because the usual tools write and read them so.
//! Zeros after the last one are ignored; anything else is damage. All decoders are Rust. Data decoded before the place
//! where a stream is cut off or damaged is returned before the error.
//!
//! The memory that a stream makes its decoder keep (the dictionary of xz, the window of zstd, the block of bzip2)
//! counts against the memory limit; a stream that needs more is refused.

mod codecs;
mod coded;
mod other;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod window;
mod zstd;

use core::fmt;
use std::io::{self, Read};

use fibula::memory::Limits;

use crate::ledger::Ledger;
use codecs::{Bzip2, Gzip, Xz};
use coded::Coded;
pub(crate) use other::{OtherForm, ends_as_mmdb};
use source::CountedReader;
pub(crate) use window::Size;
use zstd::ZstdDecoder;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all, or in a way unknown here.
    Plain,
    /// gzip (RFC 1952).
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Compression {
    /// Bytes that [`recognise`](Self::recognise) looks at.
    pub const MAGIC_BYTES: usize = 6;

    /// Returns the compression of a stream that begins with these bytes.
    #[must_use]
    pub fn recognise(head: &[u8]) -> Self {
        match head {
            // Deflate is the only method that RFC 1952 section 2.3.1 knows.
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            // A frame, or a frame to be skipped (RFC 8878 section 3.1.2), which pzstd writes first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// A reader of the content of a stream, compressed or not.
///
/// After an error, [`fault`](Self::fault) returns the cause.
pub struct Decompressor<R> {
    decoder: Decoder<R>,
    compression: Compression,
    /// Bytes returned so far.
    bytes_made: u64,
    /// Whether the output may exceed [`MOST_RATIO`].
    any_ratio: bool,
    /// Whether the output has exceeded it.
    is_bomb: bool,
}

/// Most bytes that a compressed stream may give for one of its own, after the first ones. Honest data, apart from
/// zeros, reaches a tenth of it at best.
const MOST_RATIO: u64 = 2_000;

/// Bytes that a compressed stream gives before its ratio is checked.
const FREE_BYTES: u64 = 64 << 20;

enum Decoder<R> {
    Plain(CountedReader<R>),
    Gzip(Box<Coded<R, Gzip>>),
    Bzip2(Box<Coded<R, Bzip2>>),
    Xz(Box<Coded<R, Xz>>),
    Zstd(Box<ZstdDecoder<R>>),
}

/// The cause of a failed read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFault {
    /// The input could not be read.
    Input,
    /// The compressed stream is cut off. The data read before the cut is good, as far as can be known without the
    /// checksum that was cut off.
    EndsEarly,
    /// The compressed stream is damaged. The data read before may be damaged too, because checksums follow the data
    /// they cover.
    Damaged,
    /// The compressed stream needs more memory than it may take.
    TooLarge,
}

impl<R: Read> Decompressor<R> {
    /// Recognises the compression by the first bytes of `input`, and prepares to read the content.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn new(input: R) -> io::Result<Self> {
        Self::within(input, Limits::default())
    }

    /// Like [`new`](Self::new), with `limits` on the memory that the stream's window takes.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn within(input: R, limits: Limits) -> io::Result<Self> {
        Self::charged(input, &Ledger::new(limits.memory_bytes))
    }

    /// Like [`within`](Self::within), but shares one limit with everything else that is charged to `ledger`.
    pub(crate) fn charged(input: R, ledger: &Ledger) -> io::Result<Self> {
        let mut source = CountedReader::new(input);
        let compression = match source.peek(Compression::MAGIC_BYTES) {
            Ok(head) => Compression::recognise(head),
            Err(error) => return Err(source.take_failure().unwrap_or(error)),
        };
        let decoder = match compression {
            Compression::Plain => Decoder::Plain(source),
            Compression::Gzip => Decoder::Gzip(Box::new(Coded::new(source, ledger))),
            Compression::Bzip2 => Decoder::Bzip2(Box::new(Coded::new(source, ledger))),
            Compression::Xz => Decoder::Xz(Box::new(Coded::new(source, ledger))),
            Compression::Zstd => Decoder::Zstd(Box::new(ZstdDecoder::new(source, ledger))),
        };
        Ok(Self { decoder, compression, bytes_made: 0, any_ratio: false, is_bomb: false })
    }

    /// Takes the bound off: a stream may give more than 2,000 bytes for one of its own after its first 64 MiB.
    #[must_use]
    pub fn with_any_ratio(self, any_ratio: bool) -> Self {
        Self { any_ratio, ..self }
    }
}

impl<R> Decompressor<R> {
    /// Returns how the input is compressed.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the number of compressed bytes read from the input.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.source().bytes_read()
    }

    /// Returns the number of compressed bytes that the decoder has consumed; after an error, the place where it was
    /// noticed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.source().position()
    }

    /// Returns the cause of the last failed read.
    #[must_use]
    pub fn fault(&self) -> ReadFault {
        let refused = match &self.decoder {
            Decoder::Plain(_) | Decoder::Gzip(_) => false,
            Decoder::Bzip2(decoder) => decoder.is_refused(),
            Decoder::Xz(decoder) => decoder.is_refused(),
            Decoder::Zstd(decoder) => decoder.is_refused(),
        };
        if self.source().has_failed() {
            ReadFault::Input
        } else if refused || self.is_bomb {
            ReadFault::TooLarge
        } else if self.source().has_ended() {
            // A decoder that finds a fault in the bytes it has does not try to read more.
            ReadFault::EndsEarly
        } else {
            ReadFault::Damaged
        }
    }

    fn source(&self) -> &CountedReader<R> {
        match &self.decoder {
            Decoder::Plain(source) => source,
            Decoder::Gzip(decoder) => decoder.get_ref(),
            Decoder::Bzip2(decoder) => decoder.get_ref(),
            Decoder::Xz(decoder) => decoder.get_ref(),
            Decoder::Zstd(decoder) => decoder.get_ref(),
        }
    }

    fn source_mut(&mut self) -> &mut CountedReader<R> {
        match &mut self.decoder {
            Decoder::Plain(source) => source,
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Bzip2(decoder) => decoder.get_mut(),
            Decoder::Xz(decoder) => decoder.get_mut(),
            Decoder::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

impl<R> fmt::Debug for Decompressor<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor")
            .field("compression", &self.compression)
            .field("bytes_read", &self.bytes_read())
            .finish_non_exhaustive()
    }
}

impl<R: Read> Read for Decompressor<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let result = match &mut self.decoder {
            Decoder::Plain(source) => source.read(buf),
            Decoder::Gzip(decoder) => decoder.read(buf),
            Decoder::Bzip2(decoder) => decoder.read(buf),
            Decoder::Xz(decoder) => decoder.read(buf),
            Decoder::Zstd(decoder) => decoder.read(buf),
        };
        // Decoders wrap or replace the input's error; callers need the original.
        let count = result.map_err(|error| self.source_mut().take_failure().unwrap_or(error))?;
        self.bytes_made += count as u64;
        let is_much = |own: u64| self.bytes_made > FREE_BYTES && self.bytes_made / MOST_RATIO > own;
        if self.compression != Compression::Plain && !self.any_ratio && is_much(self.position()) {
            self.is_bomb = true;
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the {} stream gives more than {MOST_RATIO} bytes for one of its own (after {} MiB); if it is meant to, \
                     use --any-ratio",
                    self.compression,
                    self.bytes_made >> 20,
                ),
            ));
        }
        Ok(count)
    }
}
