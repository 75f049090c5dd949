//! The AS that announces an address, by a table.

use core::fmt;
use std::net::IpAddr;
use std::path::Path;

use fibula::rib::DualRib;
use fibula_feed::{Label, LoadError, LoadOptions, Loader, Source, Value};

/// Origins of addresses: a table of prefixes whose values are ASes.
#[derive(Debug)]
pub struct Origins {
    ribs: DualRib,
    /// The AS of each value of the table, from 1.
    numbers: Vec<u32>,
}

/// Why a table of origins cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum OriginsError {
    /// It cannot be read.
    Load(LoadError),
    /// None of its routes has an AS.
    NoOrigin,
}

impl fmt::Display for OriginsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::NoOrigin => f.write_str(
                "no route has the value origin-as: take an MRT table, CAIDA's pfx2as, or lines of a prefix and an AS",
            ),
        }
    }
}

impl core::error::Error for OriginsError {}

impl Origins {
    /// Loads a table, in any form that `fibula table` reads, compiled ones included.
    ///
    /// # Errors
    /// When it cannot be read, or no route of it has an AS.
    pub fn load(path: &Path) -> Result<Self, OriginsError> {
        let mut options = LoadOptions::default();
        options.values = vec![Value::OriginAs];
        let table = Loader::new(options).load(Source::files([path])).map_err(OriginsError::Load)?;
        let numbers: Vec<u32> = table.next_hops.iter().map(|(_, label)| number(label)).collect();
        if numbers.iter().all(|&number| number == 0) {
            return Err(OriginsError::NoOrigin);
        }
        Ok(Self { ribs: table.ribs, numbers })
    }

    /// Returns the AS that announces an address; 0 if the table does not say. It takes a walk down a tree, less than a microsecond.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> u32 {
        let id = self.ribs.lookup(address).map_or(0, |found| found.id() as usize);
        id.checked_sub(1).and_then(|at| self.numbers.get(at)).copied().unwrap_or(0)
    }
}

/// Returns the AS of a label. Of several origins that announce a prefix, the first counts, because a record has room for one.
fn number(label: &Label) -> u32 {
    let first = |text: &str| {
        let digits: &str =
            text.split(|sign: char| !sign.is_ascii_digit()).find(|part| !part.is_empty()).unwrap_or("");
        digits.parse().unwrap_or(0)
    };
    match label {
        Label::Number(number) => *number,
        Label::Origins(text) => first(text),
        Label::Text(text) if text.starts_with(['{', '[']) || text.starts_with("AS") => first(text),
        Label::Fields(fields) => fields.first().map_or(0, number),
        Label::Address(_) | Label::Text(_) | Label::Absent => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(name: &str, text: &str) -> Result<Origins, String> {
        let path = std::env::temp_dir().join(format!("fibula-origins-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let loaded = Origins::load(&path).map_err(|error| error.to_string());
        std::fs::remove_file(&path).unwrap();
        loaded
    }

    #[test]
    fn the_origin_is_that_of_the_longest_prefix() {
        let text = "192.0.2.0/24 64500\n192.0.2.128/25 64501_64502\n2001:db8::/32 4200000000\n";
        let origins = loaded("good", text).unwrap();
        for (address, origin) in [
            ("192.0.2.1", 64_500),
            ("192.0.2.200", 64_501),
            ("198.51.100.1", 0),
            ("2001:db8::1", 4_200_000_000),
            ("2001:db9::1", 0),
        ] {
            assert_eq!(origins.of(address.parse().unwrap()), origin, "{address}");
        }
    }

    #[test]
    fn a_table_without_origins_is_refused() {
        let refused = loaded("gateways", "192.0.2.0/24 10.0.0.1\n").unwrap_err();
        assert!(refused.contains("no route has the value origin-as"), "{refused}");
        assert!(Origins::load(Path::new("/nonexistent/table")).is_err());
    }
}
