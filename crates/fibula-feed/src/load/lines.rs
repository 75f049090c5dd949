//! Bytes to lines, in bounded memory.

use std::io::{self, Read};

/// The longest line that is read, without its line feed. Longer ones are bad lines.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// A line without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RawLine<'a> {
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than [`MAX_LINE_BYTES`].
    TooLong(&'a [u8]),
}

/// Splits the bytes of a reader into lines.
pub(super) struct Lines<R> {
    input: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    bytes_read: u64,
    /// Bytes after which no more are read.
    most_bytes: u64,
    /// Whether the current line is too long.
    skipping: bool,
    ended: bool,
}

impl<R: Read> Lines<R> {
    /// Several times the longest line, so that few bytes are moved.
    const BUFFER_BYTES: usize = 4 * MAX_LINE_BYTES;

    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; Self::BUFFER_BYTES].into(),
            start: 0,
            end: 0,
            bytes_read: 0,
            most_bytes: u64::MAX,
            skipping: false,
            ended: false,
        }
    }

    pub(super) fn input(&self) -> &R {
        &self.input
    }

    /// Returns the number of bytes of text read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Ends the text once this many bytes of it were read.
    pub(super) fn give_up_at(&mut self, most_bytes: u64) {
        self.most_bytes = most_bytes;
    }

    /// Returns whether the text was cut off by [`give_up_at`](Self::give_up_at).
    pub(super) fn gave_up(&self) -> bool {
        self.bytes_read >= self.most_bytes
    }

    /// Returns the next line; `None` after the last, which needs no line feed.
    ///
    /// All complete lines are returned before an error; an incomplete one is dropped.
    pub(super) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        // Bytes from `start` on known to hold no line feed.
        let mut searched = 0;
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]);
            let begin = self.start;
            if let Some(at) = found {
                let len = searched + at;
                self.start += len + 1;
                if !std::mem::take(&mut self.skipping) {
                    return Ok(Some(line(&self.buffer[begin..begin + len])));
                }
                searched = 0;
                continue;
            }
            searched = self.end - self.start;
            if self.skipping {
                self.start = self.end;
                searched = 0;
            } else if searched > MAX_LINE_BYTES {
                self.start = self.end;
                self.skipping = true;
                return Ok(Some(line(&self.buffer[begin..begin + searched])));
            }
            if self.ended {
                self.start = self.end;
                let rest = &self.buffer[self.end - searched..self.end];
                return Ok((!rest.is_empty()).then(|| line(rest)));
            }
            if self.gave_up() {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Moves the rest to the front and reads after it.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.end += count;
                    self.bytes_read += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

fn line(bytes: &[u8]) -> RawLine<'_> {
    if bytes.len() > MAX_LINE_BYTES {
        RawLine::TooLong(&bytes[..MAX_LINE_BYTES])
    } else {
        RawLine::Whole(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most `step` bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1).min(buf.len());
            buf[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    /// Length of every line, and whether it was whole.
    fn lines(text: &[u8], step: usize) -> Vec<(usize, bool)> {
        let mut lines = Lines::new(Drip(text, step));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                RawLine::Whole(bytes) => (bytes.len(), true),
                RawLine::TooLong(bytes) => (bytes.len(), false),
            });
        }
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.bytes_read(), text.len() as u64);
        found
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        for step in [1, 2, 3, 7, usize::MAX] {
            assert_eq!(lines(b"", step), []);
            assert_eq!(lines(b"\n", step), [(0, true)]);
            assert_eq!(lines(b"a", step), [(1, true)]);
            assert_eq!(lines(b"a\n\nbc", step), [(1, true), (0, true), (2, true)]);
        }
    }

    #[test]
    fn lines_above_the_limit_are_cut_and_skipped() {
        let most = MAX_LINE_BYTES;
        for len in [most - 1, most, most + 1, 3 * most, 4 * most, 4 * most + 1, 9 * most] {
            let expected = if len > most { (most, false) } else { (len, true) };
            for step in [most, most + 1, 12_345, usize::MAX] {
                let mut text = vec![b'x'; len];
                assert_eq!(lines(&text, step), [expected], "{len} {step}");
                text.extend_from_slice(b"\nab\n");
                assert_eq!(lines(&text, step), [expected, (2, true)], "{len} {step}");
                let twice = [b"ab\n", &text[..], &text[..]].concat();
                let both = [(2, true), expected, (2, true), expected, (2, true)];
                assert_eq!(lines(&twice, step), both, "{len} {step}");
            }
        }
    }
}
