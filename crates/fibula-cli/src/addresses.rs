//! Recorded addresses, which lookups are measured with.

use std::io::{BufRead, BufReader};
use std::path::Path;

use fibula::net::Key;
use fibula_feed::compression::Decompressor;

use crate::failure::Failure;
use crate::messages::Messages;
use crate::text::thousands;

/// Recorded addresses of both families, in their order.
#[derive(Debug, Default)]
pub struct Addresses {
    /// Those of IPv4.
    pub v4: Vec<u32>,
    /// Those of IPv6.
    pub v6: Vec<u128>,
}

impl Addresses {
    /// Reads a file of addresses, one a line, plain or compressed. Other lines are counted and skipped.
    ///
    /// # Errors
    /// If the file cannot be read, or no line is an address.
    pub fn read(path: &Path, messages: Messages) -> Result<Self, Failure> {
        let failed = |error| Failure::reading(&path.display().to_string(), &error);
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut lines = BufReader::new(Decompressor::new(file).map_err(failed)?);
        let mut addresses = Self::default();
        let mut bad = 0_u64;
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
            let text = line.trim_ascii();
            if let Ok(address) = u32::parse(text) {
                addresses.v4.push(address);
            } else if let Ok(address) = u128::parse(text) {
                addresses.v6.push(address);
            } else if !text.is_empty() && text[0] != b'#' {
                bad += 1;
            }
            line.clear();
        }
        if bad > 0 {
            let lines = thousands(bad);
            messages.warning(format_args!(
                "{}: {lines} lines are not IP addresses and were skipped",
                path.display()
            ));
        }
        if addresses.v4.is_empty() && addresses.v6.is_empty() {
            return Err(Failure::BadInput(format!("{}: no line is an IP address", path.display())));
        }
        Ok(addresses)
    }
}
