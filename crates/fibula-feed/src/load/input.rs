//! A file or a stream that may have to be read twice.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::sync::atomic::{AtomicU8, Ordering};

/// Most bytes of a stream that are kept for a second reading where no limit is set.
const KEPT_BYTES: usize = 2 << 30;

/// Whether a stream is to be read again, which shows after its first bytes.
#[derive(Debug, Default)]
pub(super) struct Readings(AtomicU8);

impl Readings {
    const ONCE: u8 = 1;
    const TWICE: u8 = 2;

    pub(super) fn once(&self) {
        self.0.store(Self::ONCE, Ordering::Relaxed);
    }

    pub(super) fn twice(&self) {
        self.0.store(Self::TWICE, Ordering::Relaxed);
    }

    fn is(&self, readings: u8) -> bool {
        self.0.load(Ordering::Relaxed) == readings
    }
}

/// What is loaded.
pub(super) enum Input<'a> {
    File(File),
    Stream(Stream<'a>),
    /// The second reading of a stream.
    Kept(Cursor<Vec<u8>>),
}

/// A stream, and what was read of it.
pub(super) struct Stream<'a> {
    input: &'a mut dyn Read,
    kept: Vec<u8>,
    readings: &'a Readings,
    limit_bytes: usize,
    overflowed: bool,
}

impl<'a> Input<'a> {
    /// A stream of which all is kept, up to a limit, unless it is to be read once.
    pub(super) fn stream(
        input: &'a mut dyn Read,
        readings: &'a Readings,
        limit_bytes: Option<usize>,
    ) -> Self {
        let limit_bytes = limit_bytes.unwrap_or(KEPT_BYTES);
        Self::Stream(Stream { input, kept: Vec::new(), readings, limit_bytes, overflowed: false })
    }

    /// Most bytes that can be kept, where that was too few.
    pub(super) fn overflow(&self) -> Option<usize> {
        match self {
            Self::Stream(Stream { overflowed: true, limit_bytes, .. }) => Some(*limit_bytes),
            _ => None,
        }
    }

    /// The same from its beginning. A stream has been read to its end.
    pub(super) fn again(self) -> io::Result<Self> {
        Ok(match self {
            Self::File(mut file) => {
                file.rewind()?;
                Self::File(file)
            }
            Self::Stream(stream) => Self::Kept(Cursor::new(stream.kept)),
            Self::Kept(mut kept) => {
                kept.set_position(0);
                Self::Kept(kept)
            }
        })
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buf),
            Self::Kept(kept) => kept.read(buf),
            Self::Stream(stream) => stream.read(buf),
        }
    }
}

impl Stream<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buf)?;
        if self.readings.is(Readings::ONCE) {
            self.kept = Vec::new();
            return Ok(count);
        }
        let fits = self.kept.len() + count <= self.limit_bytes && self.kept.try_reserve(count).is_ok();
        if self.overflowed || !fits {
            self.kept = Vec::new();
            self.overflowed = true;
            if self.readings.is(Readings::TWICE) {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        } else {
            self.kept.extend_from_slice(&buf[..count]);
        }
        Ok(count)
    }
}
