//! Looks at the beginning of a file's content before it is read.

use std::io::{self, Read};

use crate::compression::Decompressor;

/// A decompressor whose first bytes can be looked at.
pub(super) struct Peeked<R> {
    head: Vec<u8>,
    /// Bytes of the head that were read.
    read: usize,
    /// The error that ended the look-ahead, if there was one; it is returned after the head.
    pending: Option<io::Error>,
    inner: Decompressor<R>,
}

impl<R: Read> Peeked<R> {
    /// Enough to find a record after damage that the file begins with.
    const HEAD_BYTES: usize = 64 << 10;

    pub(super) fn new(mut inner: Decompressor<R>) -> Self {
        let mut head = vec![0; Self::HEAD_BYTES];
        let mut len = 0;
        let mut pending = None;
        while len < head.len() {
            match inner.read(&mut head[len..]) {
                Ok(0) => break,
                Ok(count) => len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    pending = Some(error);
                    break;
                }
            }
        }
        head.truncate(len);
        Self { head, read: 0, pending, inner }
    }

    /// Returns the first 64 KiB, or the whole content if it is shorter.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns whether more may come after the head.
    pub(super) fn goes_on(&self) -> bool {
        self.head.len() == Self::HEAD_BYTES
    }

    pub(super) fn inner(&self) -> &Decompressor<R> {
        &self.inner
    }
}

impl<R: Read> Read for Peeked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.read < self.head.len() {
            let count = (&self.head[self.read..]).read(buf)?;
            self.read += count;
            return Ok(count);
        }
        match self.pending.take() {
            Some(error) => Err(error),
            None => self.inner.read(buf),
        }
    }
}
