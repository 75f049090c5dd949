//! A decoder over a reader.
//!
//! The libraries have readers of their own, but those drop what a step decoded when it ends with an error, and take zeros
//! after a stream for damage. Here the decoders are run over buffers, so that all they gave comes before the error.

use std::io::{self, BufRead, Read};

use super::source::Source;
use super::window::Window;
use crate::ledger::Ledger;

/// What decodes buffers.
pub(super) trait Codec {
    /// Largest window that is accepted where there is no memory limit.
    const MOST_BYTES: u64 = u64::MAX;

    /// Most bytes of a step: what a step that fails may lose where the decoder keeps it to itself.
    const STEP_BYTES: usize = usize::MAX;

    /// Before a stream.
    fn new() -> Self;

    /// Charges what a stream needs that begins with `head`, at least [`HEAD_BYTES`] where there are so many.
    fn begin(_head: &[u8], _window: &mut Window) -> io::Result<()> {
        Ok(())
    }

    /// Charges what a step needed that ran out of memory; true where the step is to be tried again.
    fn allow(&mut self, _window: &mut Window) -> io::Result<bool> {
        Ok(false)
    }

    /// Bytes taken and given so far, the last step included if it failed.
    fn totals(&self) -> (u64, u64);

    /// Decodes; true when the stream has ended. `last` says that there is no input, nor will there be.
    fn step(&mut self, input: &[u8], output: &mut [u8], last: bool) -> io::Result<bool>;
}

/// Bytes of a stream that tell what it needs.
const HEAD_BYTES: usize = 4;

/// Reads streams one after another.
pub(super) struct Coded<R, C> {
    input: Source<R>,
    codec: C,
    window: Window,
    /// Before the first step of a stream.
    begins: bool,
    /// After a stream.
    between: bool,
    /// The error that comes after what the failing step gave, and then again and again.
    failed: Option<(io::ErrorKind, String)>,
}

impl<R, C: Codec> Coded<R, C> {
    pub(super) fn new(input: Source<R>, ledger: &Ledger) -> Self {
        let window = Window::new(ledger, C::MOST_BYTES);
        Self { input, codec: C::new(), window, begins: true, between: false, failed: None }
    }

    pub(super) fn get_ref(&self) -> &Source<R> {
        &self.input
    }

    pub(super) fn get_mut(&mut self) -> &mut Source<R> {
        &mut self.input
    }

    /// Whether what the stream needs is not allowed.
    pub(super) fn is_refused(&self) -> bool {
        self.window.is_refused()
    }
}

impl<R: Read, C: Codec> Coded<R, C> {
    /// Begins the next stream; false at the end of the input. Zeros up to there fill a tape or a disk block, and gzip(1)
    /// takes them for no stream either.
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

    /// Decodes a step; how many bytes that gave.
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
