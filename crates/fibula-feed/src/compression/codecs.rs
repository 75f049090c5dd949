//! The decoders that run over buffers: gzip, bzip2, xz.

use std::io;

use lzma_rust2::{Action, Status, XzStream};

use super::coded::Codec;

/// Members of gzip, their headers and checksums included.
pub(super) struct Gzip(flate2::Decompress);

impl Codec for Gzip {
    fn new() -> Self {
        // The largest window there is (RFC 1951 section 2).
        Self(flate2::Decompress::new_gzip(15))
    }

    fn totals(&self) -> (u64, u64) {
        (self.0.total_in(), self.0.total_out())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8], _last: bool) -> io::Result<bool> {
        let status = self.0.decompress(input, output, flate2::FlushDecompress::None).map_err(invalid)?;
        Ok(status == flate2::Status::StreamEnd)
    }
}

/// Streams of bzip2.
pub(super) struct Bzip2(bzip2::Decompress);

impl Codec for Bzip2 {
    fn new() -> Self {
        Self(bzip2::Decompress::new(false))
    }

    fn totals(&self) -> (u64, u64) {
        (self.0.total_in(), self.0.total_out())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8], _last: bool) -> io::Result<bool> {
        let status = self.0.decompress(input, output).map_err(invalid)?;
        Ok(status == bzip2::Status::StreamEnd)
    }
}

/// Most memory a stream may ask for: `xz -9` needs 65 MiB, and a header can claim 4 GiB.
const LIMIT_KIB: u32 = 512 << 10;

/// All streams of xz, and what may stand between them.
pub(super) struct Xz(XzStream);

impl Codec for Xz {
    /// A step decodes all its input before it gives anything.
    const STEP_BYTES: usize = 512;

    fn new() -> Self {
        Self(XzStream::new_mem_limit(true, LIMIT_KIB))
    }

    fn totals(&self) -> (u64, u64) {
        (self.0.total_in(), self.0.total_out())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8], last: bool) -> io::Result<bool> {
        let action = if last { Action::Finish } else { Action::Run };
        Ok(self.0.process(input, output, action)?.status == Status::StreamEnd)
    }
}

fn invalid(error: impl core::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
