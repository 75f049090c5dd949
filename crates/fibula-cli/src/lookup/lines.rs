//! Lines of a stream, as many as each read returns.

use std::io::{self, Read};

/// Bytes read at a time. A pipe returns at most 64 KiB, a file fills the buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// Length above which a line is not kept. No address is a tenth as long.
pub(super) const LINE_LIMIT_BYTES: usize = 4096;

/// A line without its line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Text(&'a [u8]),
    /// The beginning of a line of more than [`LINE_LIMIT_BYTES`].
    TooLong(&'a [u8]),
}

/// Splits a stream into lines without ever waiting for more than one read.
pub(super) struct LineReader<R> {
    source: R,
    /// The start holds bytes of an incomplete line.
    buffer: Box<[u8]>,
    filled: usize,
    /// Whether this line is too long; its beginning is in the buffer.
    skipping: bool,
    /// Whether no line was returned yet.
    first: bool,
}

impl<R: Read> LineReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES].into(), filled: 0, skipping: false, first: true }
    }

    /// Reads once, calls `each` for every line that is then complete, and returns the number of bytes read. At the end of
    /// the stream, calls `each` for what follows the last line feed, if anything, and returns 0.
    pub(super) fn read<E: From<io::Error>>(
        &mut self,
        mut each: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let count = loop {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        };
        if count == 0 {
            let rest = std::mem::take(&mut self.filled);
            if rest > 0 {
                let first = std::mem::take(&mut self.first);
                each(line(&self.buffer[..rest], std::mem::take(&mut self.skipping), first))?;
            }
            return Ok(0);
        }
        let end = self.filled + count;
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', &self.buffer[self.filled..end]) {
            let at = self.filled + at;
            let first = std::mem::take(&mut self.first);
            each(line(&self.buffer[start..at], std::mem::take(&mut self.skipping), first))?;
            start = at + 1;
        }
        self.buffer.copy_within(start..end, 0);
        self.filled = end - start;
        if self.filled > LINE_LIMIT_BYTES {
            // Enough for a message; drop the rest to make room.
            self.filled = LINE_LIMIT_BYTES;
            self.skipping = true;
        }
        Ok(count)
    }
}

fn line(bytes: &[u8], skipped: bool, first: bool) -> Line<'_> {
    // Some editors write a byte order mark.
    let mark: &[u8] = if first { b"\xef\xbb\xbf" } else { b"" };
    let bytes = bytes.strip_prefix(mark).unwrap_or(bytes);
    if skipped || bytes.len() > LINE_LIMIT_BYTES {
        Line::TooLong(&bytes[..LINE_LIMIT_BYTES.min(bytes.len())])
    } else {
        Line::Text(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brings its bytes in pieces of a given size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            let (piece, rest) = self.0.split_at(count);
            buffer[..count].copy_from_slice(piece);
            self.0 = rest;
            Ok(count)
        }
    }

    fn lines(bytes: &[u8], piece: usize) -> Vec<Result<Vec<u8>, usize>> {
        let mut reader = LineReader::new(Pieces(bytes, piece));
        let mut all = Vec::new();
        loop {
            let count = reader.read(|line| {
                all.push(match line {
                    Line::Text(text) => Ok(text.to_vec()),
                    Line::TooLong(text) => Err(text.len()),
                });
                io::Result::Ok(())
            });
            if count.unwrap() == 0 {
                return all;
            }
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_they_arrive() {
        let mut bytes = b"1.2.3.4\n\n  5.6.7.8\r\n".to_vec();
        bytes.extend(vec![b'a'; LINE_LIMIT_BYTES]);
        bytes.push(b'\n');
        bytes.extend(vec![b'b'; LINE_LIMIT_BYTES + 1]);
        bytes.push(b'\n');
        bytes.extend(vec![b'c'; 3 * BUFFER_BYTES]);
        bytes.extend(b"\nlast");
        let expected = [
            Ok(b"1.2.3.4".to_vec()),
            Ok(Vec::new()),
            Ok(b"  5.6.7.8\r".to_vec()),
            Ok(vec![b'a'; LINE_LIMIT_BYTES]),
            Err(LINE_LIMIT_BYTES),
            Err(LINE_LIMIT_BYTES),
            Ok(b"last".to_vec()),
        ];
        for piece in [1, 2, 3, 7, 100, 4095, 4096, 4097, 65_536, usize::MAX] {
            assert_eq!(lines(&bytes, piece), expected, "{piece}");
        }
        assert_eq!(lines(b"\xef\xbb\xbf1.2.3.4\n", 2), [Ok(b"1.2.3.4".to_vec())]);
        assert_eq!(lines(b"", 1), []);
        assert_eq!(lines(b"\n", 1), [Ok(Vec::new())]);
    }
}
