//! Cases as data: tables, changes, probes and answers in TOML, independent of any structure.

use std::path::PathBuf;

use fibula::net::{Change, Key, NextHop, Prefix, Route};
use serde::Deserialize;

use crate::verdict::Failure;

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its cases.
    pub case: Vec<Case>,
}

/// One case: a table, what it answers, and what it answers after changes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// `ipv4`, `ipv6`, `toy3`, `toy8` or `toy16`.
    pub family: String,
    /// `prefix next-hop`, in any order; a repeated prefix keeps its last next hop.
    pub routes: Vec<String>,
    /// `prefix length count`: so many prefixes of this length from the beginning of a prefix on, with next hops 1 and 2 in turn.
    #[serde(default)]
    pub filled: Vec<String>,
    /// `address next-hop`, `-` for no route.
    pub answers: Vec<String>,
    /// `+ prefix next-hop` and `- prefix`, applied as one batch.
    #[serde(default)]
    pub changes: Vec<String>,
    /// Answers after the changes.
    #[serde(default)]
    pub answers_after: Vec<String>,
}

/// Returns the name of a family in the files.
#[must_use]
pub fn family_name<K: Key>() -> String {
    match K::KIND {
        fibula::net::KeyKind::Ipv4 => "ipv4".to_owned(),
        fibula::net::KeyKind::Ipv6 => "ipv6".to_owned(),
        fibula::net::KeyKind::Toy => format!("toy{}", K::BITS),
    }
}

/// Returns all cases under `testdata/cases/`, with the name of their file.
///
/// # Errors
/// When a file cannot be read or is not a file of cases.
pub fn all() -> Result<Vec<(String, Case)>, Failure> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases");
    let mut cases = Vec::new();
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        let file: File = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        cases.extend(file.case.into_iter().map(|case| (stem.clone(), case)));
    }
    Ok(cases)
}

fn words<const COUNT: usize>(line: &str) -> Result<[&str; COUNT], Failure> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    <[&str; COUNT]>::try_from(words).map_err(|_| format!("'{line}': expected {COUNT} words").into())
}

fn route<K: Key>(line: &str) -> Result<Route<K>, Failure> {
    let [prefix, next_hop] = words(line)?;
    let next_hop = NextHop::new(next_hop.parse()?).ok_or("0 is not a next hop")?;
    Ok(Route::new(prefix.parse()?, next_hop))
}

impl Case {
    /// Returns the routes, in the order of the file.
    ///
    /// # Errors
    /// Names the line that cannot be read; likewise below.
    pub fn routes<K: Key>(&self) -> Result<Vec<Route<K>>, Failure> {
        let mut routes: Vec<Route<K>> =
            self.routes.iter().map(|line| route(line)).collect::<Result<_, _>>()?;
        for line in &self.filled {
            let [around, length, count] = words(line)?;
            let (around, length, count) =
                (around.parse::<Prefix<K>>()?, length.parse::<u8>()?, count.parse::<u32>()?);
            for at in 0..count {
                let bits = u128::from(at) << (K::BITS - length);
                let next_hop = NextHop::new(1 + at % 2).ok_or("0 is not a next hop")?;
                routes.push(Route::new(Prefix::new(around.addr().or(K::from_bits(bits)), length)?, next_hop));
            }
        }
        Ok(routes)
    }

    /// Returns the changes, in the order of the file.
    ///
    /// # Errors
    /// As [`routes`](Self::routes).
    pub fn changes<K: Key>(&self) -> Result<Vec<Change<K>>, Failure> {
        let change = |line: &String| match line.split_once(' ') {
            Some(("+", rest)) => Ok(Change::Insert(route(rest)?)),
            Some(("-", rest)) => Ok(Change::Remove(rest.trim().parse::<Prefix<K>>()?)),
            _ => Err(format!("'{line}': expected '+ prefix next-hop' or '- prefix'").into()),
        };
        self.changes.iter().map(change).collect()
    }

    /// Probes and their answers.
    ///
    /// # Errors
    /// As [`routes`](Self::routes).
    pub fn answers<K: Key>(lines: &[String]) -> Result<(Vec<K>, Vec<Option<NextHop>>), Failure> {
        let mut pairs = (Vec::new(), Vec::new());
        for line in lines {
            let [address, next_hop] = words(line)?;
            pairs.0.push(K::parse(address.as_bytes())?);
            pairs.1.push(if next_hop == "-" { None } else { NextHop::new(next_hop.parse()?) });
        }
        Ok(pairs)
    }
}
