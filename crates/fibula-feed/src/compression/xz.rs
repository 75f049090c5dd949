//! xz as a reader.
//!
//! The library has a reader of its own, but that one takes in whole chunks of 64 KiB before it hands out the
//! first byte, and drops what it decoded when the next chunk is cut off; its stream decoder keeps all.

use std::io::{self, BufRead, Read};

use lzma_rust2::{Action, Status, XzStream};

/// Most memory a stream may ask for: `xz -9` needs 65 MiB, and a header can claim 4 GiB.
const LIMIT_KIB: u32 = 512 << 10;

pub(super) struct XzDecoder<R> {
    input: R,
    stream: XzStream,
    finished: bool,
}

impl<R> XzDecoder<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, stream: XzStream::new_mem_limit(true, LIMIT_KIB), finished: false }
    }

    pub(super) fn get_ref(&self) -> &R {
        &self.input
    }

    pub(super) fn get_mut(&mut self) -> &mut R {
        &mut self.input
    }
}

impl<R: BufRead> Read for XzDecoder<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        while !self.finished {
            let input = self.input.fill_buf()?;
            let ended = input.is_empty();
            let action = if ended { Action::Finish } else { Action::Run };
            let result = self.stream.process(input, buf, action)?;
            self.input.consume(result.bytes_consumed);
            self.finished = result.status == Status::StreamEnd;
            if result.bytes_produced > 0 {
                return Ok(result.bytes_produced);
            }
            if ended && !self.finished {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
