//! Lists of structures: those that a command lists, measures and takes by name.

use fibula::fib::registry::{Algorithm, Engines};
use fibula::net::Key;

/// A registry entry, of both families together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The paper that it is from.
    pub paper: &'static str,
    /// Its families, in lower case.
    pub families: Vec<&'static str>,
    /// The instruction sets that it has kernels for.
    pub isas: Vec<&'static str>,
    /// How it follows changes.
    pub update: &'static str,
    /// Whether it is an oracle, published, or our own.
    pub role: &'static str,
}

/// Returns all structures of a list, with one entry for a structure of both families.
#[must_use]
pub fn entries(engines: Engines) -> Vec<Entry> {
    let mut entries = Vec::new();
    add(&mut entries, engines.all::<u32>());
    add(&mut entries, engines.all::<u128>());
    entries
}

/// Returns the names of all, each once.
#[must_use]
pub fn names(engines: Engines) -> Vec<&'static str> {
    entries(engines).iter().map(|entry| entry.name).collect()
}

fn add<K: Key>(entries: &mut Vec<Entry>, algorithms: Vec<Algorithm<K>>) {
    let family = K::FAMILY.name();
    for algorithm in algorithms {
        match entries.iter_mut().find(|entry| entry.name == algorithm.name) {
            Some(entry) => {
                entry.families.push(family);
                let isas = algorithm.isas.iter().map(|isa| isa.name());
                entry.isas.extend(isas.filter(|isa| !entry.isas.contains(isa)).collect::<Vec<_>>());
            }
            None => entries.push(entry(&algorithm, family)),
        }
    }
}

fn entry<K: Key>(algorithm: &Algorithm<K>, family: &'static str) -> Entry {
    Entry {
        name: algorithm.name,
        summary: algorithm.summary,
        paper: algorithm.paper,
        families: vec![family],
        isas: algorithm.isas.iter().map(|isa| isa.name()).collect(),
        update: algorithm.update.name(),
        role: algorithm.role.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_of_both_families_is_listed_once() {
        let entries = entries(Engines::OWN);
        let mut names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), entries.len());
    }
}
