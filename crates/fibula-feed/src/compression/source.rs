//! The input of a decoder: a buffered reader that can look ahead, counts bytes, and remembers how the input ended.

use std::io::{self, BufRead, Read};

/// A buffered reader that knows how many bytes it took, whether the input has ended, and whether it failed.
pub(super) struct CountedReader<R> {
    input: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    bytes_read: u64,
    ended: bool,
    failed: bool,
    failure: Option<io::Error>,
}

impl<R> CountedReader<R> {
    const BUFFER_BYTES: usize = 64 << 10;

    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; Self::BUFFER_BYTES].into(),
            start: 0,
            end: 0,
            bytes_read: 0,
            ended: false,
            failed: false,
            failure: None,
        }
    }

    /// Returns the number of bytes read from the input so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns how many of them were consumed.
    pub(super) fn position(&self) -> u64 {
        self.bytes_read - (self.end - self.start) as u64
    }

    /// Returns whether more bytes were requested than there are.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether the input itself could not be read.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Takes the input's own error, if there was one.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

impl<R: Read> CountedReader<R> {
    /// Returns the first `count` bytes, or fewer if the input has fewer. Must be called before any other read.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end < count && self.more()? > 0 {}
        // A decoder must not see the input as ended because of a look-ahead; only reading on may end it.
        self.ended = false;
        Ok(&self.buffer[..self.end.min(count)])
    }

    /// Returns the next bytes, at least `count` unless the input ends before.
    pub(super) fn head(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.end - self.start < count {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            while self.end < count && self.more()? > 0 {}
            self.ended = false;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Appends the bytes of one read.
    fn more(&mut self) -> io::Result<usize> {
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(0);
                }
                Ok(count) => {
                    self.end += count;
                    self.bytes_read += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = true;
                    let kind = error.kind();
                    self.failure = Some(error);
                    return Err(kind.into());
                }
            }
        }
    }
}

impl<R: Read> BufRead for CountedReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // A terminal would go on after its end; a file does not.
        if self.start == self.end && !self.ended {
            self.start = 0;
            self.end = 0;
            self.more()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buf.len());
        buf[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}
