//! The decoders that run over buffers: gzip, bzip2, xz.

use std::io;

use lzma_rust2::{Action, Status, XzStream};

use super::coded::Codec;
use super::window::WindowCharge;

/// Decodes gzip members, with their headers and checksums.
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

/// Decodes bzip2 streams.
pub(super) struct Bzip2(bzip2::Decompress);

/// Bytes of bzip2's block array for each of the nine sizes in its header.
const BZIP2_LEVEL_BYTES: u64 = 400_000;

impl Codec for Bzip2 {
    fn begin(head: &[u8], window: &mut WindowCharge) -> io::Result<()> {
        match head {
            [b'B', b'Z', b'h', level @ b'1'..=b'9', ..] => {
                let bytes = u64::from(level - b'0') * BZIP2_LEVEL_BYTES;
                window.charge("bzip2", "block", bytes, bytes)
            }
            // The decoder itself reports the fault.
            _ => Ok(()),
        }
    }

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

/// Decodes xz streams, and the padding between them.
pub(super) struct Xz(XzStream);

impl Codec for Xz {
    /// A step decodes all its input before it returns any output.
    const STEP_BYTES: usize = 512;
    /// `xz -9` needs 64 MiB, and a header can claim 4 GiB.
    const MOST_BYTES: u64 = 512 << 20;

    fn new() -> Self {
        // Nothing is allowed until it is charged.
        Self(XzStream::new_mem_limit(true, 0))
    }

    fn allow(&mut self, window: &mut WindowCharge) -> io::Result<bool> {
        let need_kib = self.0.memory_usage().unwrap_or(0);
        if need_kib <= self.0.mem_limit() {
            return Ok(false);
        }
        let need = u64::from(need_kib) << 10;
        window.charge("xz", "dictionary", need.saturating_sub(XZ_STATE_BYTES), need)?;
        self.0.set_mem_limit(need_kib);
        Ok(true)
    }

    fn totals(&self) -> (u64, u64) {
        (self.0.total_in(), self.0.total_out())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8], last: bool) -> io::Result<bool> {
        let action = if last { Action::Finish } else { Action::Run };
        Ok(self.0.process(input, output, action)?.status == Status::StreamEnd)
    }
}

/// Bytes that the decoder counts in addition to the dictionary.
const XZ_STATE_BYTES: u64 = 40 << 10;

fn invalid(error: impl core::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
