//! Named lists of prefixes, from the configuration and from files.

use core::fmt;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fibula::map::PrefixSet;
use fibula::net::{HostBits, IpPrefix, Prefix};

use super::RuleError;

/// A set of prefixes of both families.
#[derive(Debug, Clone, Default)]
pub(super) struct BothSets {
    pub(super) v4: PrefixSet<u32>,
    pub(super) v6: PrefixSet<u128>,
}

impl BothSets {
    /// Adds a prefix.
    pub(super) fn insert(&mut self, prefix: IpPrefix) -> Result<(), RuleError> {
        let inserted = match prefix {
            IpPrefix::V4(prefix) => self.v4.try_insert(prefix),
            IpPrefix::V6(prefix) => self.v6.try_insert(prefix),
        };
        inserted.map(drop).map_err(|error| RuleError(error.to_string()))
    }

    /// Returns whether a prefix contains the address.
    pub(super) fn contains(&self, v6: bool, address: u128) -> bool {
        match v6 {
            true => self.v6.lookup_prefix(Prefix::host(address).addr()).is_some(),
            false => self.v4.lookup_prefix(address as u32).is_some(),
        }
    }
}

/// Named sets of prefixes.
#[derive(Debug, Clone, Default)]
pub struct PrefixLists(BTreeMap<String, Arc<BothSets>>);

/// Why a file of prefixes is refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListError {
    /// It cannot be read.
    File(PathBuf, std::io::Error),
    /// A line is wrong: the file, the line from 1, and why.
    Line(PathBuf, usize, String),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Line(path, line, reason) => write!(f, "{}: line {line}: {reason}", path.display()),
        }
    }
}

impl core::error::Error for ListError {}

impl PrefixLists {
    /// Returns a list.
    pub(super) fn get(&self, name: &str) -> Result<Arc<BothSets>, RuleError> {
        self.0.get(name).cloned().ok_or_else(|| RuleError(format!("no prefix list '{name}'")))
    }

    /// Adds a list of prefixes, some of them from a file: a prefix or an address a line, with comments from `#` on. A line may have more
    /// words after its prefix, which are skipped, so that a table of routes is a list too.
    ///
    /// # Errors
    /// When the file cannot be read, or a line does not begin with a prefix. No list is added then.
    pub fn add(
        &mut self,
        name: &str,
        prefixes: &[IpPrefix],
        file: Option<&std::path::Path>,
    ) -> Result<usize, ListError> {
        let mut set = BothSets::default();
        let refused = |line: usize, error: RuleError| {
            ListError::Line(file.map_or_else(PathBuf::new, PathBuf::from), line, error.0)
        };
        for &prefix in prefixes {
            set.insert(prefix).map_err(|error| refused(0, error))?;
        }
        if let Some(path) = file {
            let text = std::fs::read(path).map_err(|error| ListError::File(path.to_owned(), error))?;
            for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
                // Only the first word, because tables of routes have more.
                let line = line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
                let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
                if word.is_empty() {
                    continue;
                }
                let prefix = IpPrefix::parse(word, HostBits::Refuse).map_err(|error| {
                    let word = String::from_utf8_lossy(word);
                    refused(number + 1, RuleError(format!("'{word}': {}", error.reason())))
                })?;
                set.insert(prefix).map_err(|error| refused(number + 1, error))?;
            }
        }
        let len = set.v4.len() + set.v6.len();
        self.0.insert(name.to_owned(), Arc::new(set));
        Ok(len)
    }

    /// Returns the lists: the name of each, and its number of prefixes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, set)| (name.as_str(), set.v4.len() + set.v6.len()))
    }
}
