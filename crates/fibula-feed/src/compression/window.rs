//! The window of a decoder (the output that it keeps), charged against the memory limit.

use core::fmt;
use std::io;

use crate::ledger::{Held, Ledger};

/// The charge for the window of a decoder.
pub(super) struct WindowCharge {
    held: Held,
    /// Largest window that is accepted if there is no memory limit.
    most_bytes: u64,
    refused: bool,
}

impl WindowCharge {
    pub(super) fn new(ledger: &Ledger, most_bytes: u64) -> Self {
        Self { held: Held::new(ledger), most_bytes, refused: false }
    }

    /// Returns whether a window was refused.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Charges a window of `bytes` for which the decoder takes up to `needed_bytes`. Windows are kept until the end: a
    /// smaller one costs nothing more.
    pub(super) fn charge(
        &mut self,
        name: &'static str,
        what: &'static str,
        bytes: u64,
        needed_bytes: u64,
    ) -> io::Result<()> {
        let ledger = self.held.ledger();
        let fits = match ledger.limit_bytes() {
            None => bytes <= self.most_bytes,
            Some(limit) => bytes <= limit as u64,
        };
        let needed = usize::try_from(needed_bytes).unwrap_or(usize::MAX);
        let limit_bytes = ledger.limit_bytes().map(|limit| limit as u64);
        let free_bytes = ledger.free_bytes().map_or(0, |free| (free + self.held.bytes()) as u64);
        if fits && (needed <= self.held.bytes() || self.held.set(needed).is_ok()) {
            return Ok(());
        }
        self.refused = true;
        let most_bytes = self.most_bytes;
        let error = WindowError { name, what, bytes, needed_bytes, limit_bytes, free_bytes, most_bytes };
        Err(io::Error::new(io::ErrorKind::OutOfMemory, error))
    }
}

/// Why a window was refused.
#[derive(Debug)]
struct WindowError {
    name: &'static str,
    what: &'static str,
    bytes: u64,
    needed_bytes: u64,
    limit_bytes: Option<u64>,
    free_bytes: u64,
    most_bytes: u64,
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, what, bytes, needed_bytes, limit_bytes, free_bytes, most_bytes } = *self;
        write!(f, "{name}: its {what} of {} ", Size(bytes))?;
        match limit_bytes {
            None => {
                write!(f, "is above {}, the most that is accepted without a memory limit", Size(most_bytes))
            }
            Some(limit) if bytes > limit => write!(f, "is above the memory limit of {}", Size(limit)),
            Some(limit) => write!(
                f,
                "takes up to {}, and {} of the memory limit of {} are left",
                Size(needed_bytes),
                Size(free_bytes),
                Size(limit)
            ),
        }
    }
}

impl core::error::Error for WindowError {}

/// Bytes as people read them: `4 MB`, `1.5 GB`.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => return write!(f, "{} bytes", self.0),
            1_000..1_000_000 => (1_000, "kB"),
            1_000_000..1_000_000_000 => (1_000_000, "MB"),
            _ => (1_000_000_000, "GB"),
        };
        let tenths = self.0.saturating_add(unit / 20) / (unit / 10);
        match tenths % 10 {
            0 => write!(f, "{} {name}", tenths / 10),
            rest => write!(f, "{}.{rest} {name}", tenths / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [(999, "999 bytes"), (4_000_000, "4 MB"), (4 << 20, "4.2 MB"), (1_500_000_000, "1.5 GB")];
        for (bytes, printed) in sizes {
            assert_eq!(Size(bytes).to_string(), printed);
        }
    }
}
