//! A decoder over a reader.
//!
//! The libraries have readers of their own. However, those drop the output of a step that ends with an error, and
//! report zeros after a stream as damage. Here the decoders run over buffers, so that all their output comes before the
//! error.

use std::io::{self, BufRead, Read};

use super::source::CountedReader;
use super::window::WindowCharge;
use crate::ledger::Ledger;

/// A decoder that works on buffers.
pub(super) trait Codec {
    /// Largest window that is accepted if there is no memory limit.
    const MOST_BYTES: u64 = u64::MAX;

    /// Most input bytes of a step: if the step fails, the decoder may lose their output.
    const STEP_BYTES: usize = usize::MAX;

    /// Returns a decoder at the beginning of a stream.
    fn new() -> Self;

    /// Charges the memory that a stream beginning with `head` needs. `head` has at least [`HEAD_BYTES`] unless the
    /// input ends before.
    fn begin(_head: &[u8], _window: &mut WindowCharge) -> io::Result<()> {
        Ok(())
    }

    /// Charges the memory for which the last step failed; returns whether to try the step again.
    fn allow(&mut self, _window: &mut WindowCharge) -> io::Result<bool> {
        Ok(false)
    }

    /// Returns the number of bytes consumed and produced so far, including those of a last step that failed.
    fn totals(&self) -> (u64, u64);

    /// Decodes a step; returns whether the stream has ended. `last` means that `input` is empty and no more will come.
    fn step(&mut self, input: &[u8], output: &mut [u8], last: bool) -> io::Result<bool>;
}

/// Bytes at the beginning of a stream from which its memory need is known.
const HEAD_BYTES: usize = 4;

/// Reads streams one after another.
pub(super) struct Coded<R, C> {
    input: CountedReader<R>,
    codec: C,
    window: WindowCharge,
    /// Whether the next step is the first of a stream.
    begins: bool,
    /// Whether the last step ended a stream.
    between: bool,
    /// The error to return once the output of the failing step has been read, and at every read after that.
    failed: Option<(io::ErrorKind, String)>,
}

impl<R, C: Codec> Coded<R, C> {
    pub(super) fn new(input: CountedReader<R>, ledger: &Ledger) -> Self {
        let window = WindowCharge::new(ledger, C::MOST_BYTES);
        Self { input, codec: C::new(), window, begins: true, between: false, failed: None }
    }

    pub(super) fn get_ref(&self) -> &CountedReader<R> {
        &self.input
    }

    pub(super) fn get_mut(&mut self) -> &mut CountedReader<R> {
        &mut self.input
    }

    /// Returns whether the stream was refused because it needs too much memory.
    pub(super) fn is_refused(&self) -> bool {
        self.window.is_refused()
    }
}

impl<R: Read, C: Codec> Coded<R, C> {
    /// Begins the next stream; returns false at the end of the input. Zeros up to the end only fill a tape or a disk
    /// block; gzip(1) ignores them too.
    fn begin(&mut self) -> io::Result<bool> {
        let mut zeros = false;
        loop {
            let input = self.input.fill_buf()?;
            let count = input.iter().take_while(|&&byte| byte == 0).count();
            let rest = input.len() - count;
            self.input.consume(count);
            zeros |= count > 0;
            if rest > 0 {
                if zeros {
                    self.fail(io::ErrorKind::InvalidData, "something follows the zeros after it");
                }
                self.codec = C::new();
                self.begins = true;
                self.between = false;
                return Ok(true);
            }
            if count == 0 {
                return Ok(false);
            }
        }
    }

    /// Decodes a step and returns the number of bytes that it produced.
    fn advance(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if core::mem::take(&mut self.begins)
            && let Err(error) = C::begin(self.input.head(HEAD_BYTES)?, &mut self.window)
        {
            self.fail(error.kind(), &error.to_string());
            return Ok(0);
        }
        let input = self.input.fill_buf()?;
        let input = &input[..input.len().min(C::STEP_BYTES)];
        let last = input.is_empty();
        let (taken_before, given_before) = self.codec.totals();
        let result = self.codec.step(input, buf, last);
        let (taken, given) = self.codec.totals();
        let [taken, given] = [taken - taken_before, given - given_before].map(|count| count as usize);
        self.input.consume(taken);
        match result {
            Ok(ended) => self.between = ended,
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                match self.codec.allow(&mut self.window) {
                    Ok(true) => return Ok(given),
                    Ok(false) => self.fail(error.kind(), &error.to_string()),
                    Err(error) => self.fail(error.kind(), &error.to_string()),
                }
            }
            Err(error) => self.fail(error.kind(), &error.to_string()),
        }
        if given == 0 && !self.between && self.failed.is_none() {
            if last {
                self.fail(io::ErrorKind::UnexpectedEof, "its end is missing");
            } else if taken == 0 {
                self.fail(io::ErrorKind::InvalidData, "it makes no sense");
            }
        }
        Ok(given)
    }

    fn fail(&mut self, kind: io::ErrorKind, reason: &str) {
        self.failed = Some((kind, reason.to_owned()));
    }
}

impl<R: Read, C: Codec> Read for Coded<R, C> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some((kind, reason)) = &self.failed {
                return Err(io::Error::new(*kind, reason.clone()));
            }
            if self.between && !self.begin()? {
                return Ok(0);
            }
            if self.failed.is_none() {
                let given = self.advance(buf)?;
                if given > 0 {
                    return Ok(given);
                }
            }
        }
    }
}
