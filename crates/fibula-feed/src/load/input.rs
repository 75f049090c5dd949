//! A file or a stream that may have to be read twice.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::replay::Chain;
use crate::ledger::{Held, Ledger};

/// Most bytes of a stream that are kept for a second reading where no limit is set.
const KEPT_BYTES: usize = 2 << 30;

/// Whether a stream is to be read twice, which is known after its first bytes.
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

/// The input of a load.
pub(super) enum Input<'a> {
    File(File),
    Stream(Stream<'a>),
    /// The second reading of a stream.
    Kept(Kept),
    Chain(Chain),
}

/// A stream, and the bytes that were read from it.
pub(super) struct Stream<'a> {
    input: Box<dyn Read + 'a>,
    kept: Kept,
    readings: Arc<Readings>,
    overflowed: bool,
}

impl<'a> Input<'a> {
    /// Returns a stream that is kept for a second reading, as far as the ledger has room, unless one reading is enough.
    pub(super) fn stream(input: impl Read + 'a, ledger: &Ledger) -> Self {
        let kept = Kept::new(ledger);
        Self::Stream(Stream { input: Box::new(input), kept, readings: Arc::default(), overflowed: false })
    }

    /// Returns the input of a file. One that is not a regular file, such as a FIFO, cannot be read again from its
    /// beginning.
    pub(super) fn file(file: File, ledger: &Ledger) -> io::Result<Self> {
        Ok(if file.metadata()?.is_file() { Self::File(file) } else { Self::stream(file, ledger) })
    }

    /// Returns the place to store whether a stream needs a second reading.
    pub(super) fn readings(&self) -> Option<Arc<Readings>> {
        match self {
            Self::Stream(stream) => Some(Arc::clone(&stream.readings)),
            _ => None,
        }
    }

    /// Returns the length of a file in bytes; `None` if that cannot be known.
    pub(super) fn bytes_total(&self) -> Option<u64> {
        match self {
            Self::File(file) => file.metadata().ok().map(|metadata| metadata.len()),
            _ => None,
        }
    }

    /// Returns the most bytes that can be kept, if that was not enough.
    pub(super) fn overflow(&self) -> Option<usize> {
        match self {
            Self::Stream(Stream { overflowed: true, kept, .. }) => Some(kept.limit_bytes()),
            _ => None,
        }
    }

    /// Returns the input from its beginning again. A stream must have been read to its end.
    pub(super) fn again(self) -> io::Result<Self> {
        Ok(match self {
            Self::File(mut file) => {
                file.rewind()?;
                Self::File(file)
            }
            Self::Stream(stream) => Self::Kept(stream.kept),
            Self::Kept(kept) => Self::Kept(kept),
            Self::Chain(chain) => Self::Chain(chain.again()),
        })
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buf),
            Self::Kept(kept) => Ok(kept.take(buf)),
            Self::Chain(chain) => chain.read(buf),
            Self::Stream(stream) => stream.read(buf),
        }
    }
}

impl Stream<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buf)?;
        if self.readings.is(Readings::ONCE) {
            self.kept.clear();
            return Ok(count);
        }
        if self.overflowed || !self.kept.append(&buf[..count]) {
            self.kept.clear();
            self.overflowed = true;
            if self.readings.is(Readings::TWICE) {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(count)
    }
}

/// Bytes in the order in which they came, in pieces that are freed as they are read again.
pub(super) struct Kept {
    pieces: VecDeque<Vec<u8>>,
    len: usize,
    /// Bytes of the first piece that were read again.
    taken: usize,
    held: Held,
}

impl Kept {
    /// Room of the first piece; each is as large as all before it, up to the largest.
    const PIECE_BYTES: core::ops::RangeInclusive<usize> = 512..=256 << 10;

    fn new(ledger: &Ledger) -> Self {
        Self { pieces: VecDeque::new(), len: 0, taken: 0, held: Held::new(ledger) }
    }

    fn limit_bytes(&self) -> usize {
        self.held.ledger().limit_bytes().unwrap_or(KEPT_BYTES)
    }

    /// Appends the bytes; returns whether there was room for them.
    fn append(&mut self, mut bytes: &[u8]) -> bool {
        if self.len + bytes.len() > self.limit_bytes() {
            return false;
        }
        self.len += bytes.len();
        while !bytes.is_empty() {
            let room = self.pieces.back().map_or(0, |piece| piece.capacity() - piece.len());
            if room == 0 {
                let (least, most) = Self::PIECE_BYTES.into_inner();
                let piece_bytes = self.len.clamp(least, most);
                let mut piece = Vec::new();
                if self.held.add(piece_bytes).is_err() || piece.try_reserve_exact(piece_bytes).is_err() {
                    return false;
                }
                self.pieces.push_back(piece);
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if let Some(piece) = self.pieces.back_mut() {
                piece.extend_from_slice(now);
            }
            bytes = later;
        }
        true
    }

    fn take(&mut self, buf: &mut [u8]) -> usize {
        let Some(piece) = self.pieces.front() else { return 0 };
        let rest = &piece[self.taken..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        if self.taken == piece.len() {
            self.held.sub(piece.capacity().min(self.held.bytes()));
            self.pieces.pop_front();
            self.taken = 0;
        }
        count
    }

    fn clear(&mut self) {
        self.pieces = VecDeque::new();
        self.held.sub(self.held.bytes());
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_charged_and_given_back_as_it_is_read_again() {
        let ledger = Ledger::new(Some(3_000_000));
        let mut kept = Kept::new(&ledger);
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|at| (at * 7) as u8).collect();
        for step in [1, 100, 70_000].into_iter().cycle() {
            let step = step.min(bytes.len() - kept.len);
            if step == 0 {
                break;
            }
            assert!(kept.append(&bytes[kept.len..][..step]));
            assert!(ledger.used_bytes() >= kept.len);
        }
        assert!(ledger.used_bytes() < 2_600_000, "{}", ledger.used_bytes());
        let mut again = Vec::new();
        let mut buf = [0; 50_000];
        loop {
            let count = kept.take(&mut buf);
            if count == 0 {
                break;
            }
            again.extend_from_slice(&buf[..count]);
            assert!(ledger.used_bytes() <= bytes.len() - again.len() + (600 << 10));
        }
        assert!(again == bytes);
        assert_eq!(ledger.used_bytes(), 0);
        assert!(!kept.append(&vec![0; 3_000_001]));
    }
}
