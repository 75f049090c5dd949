//! Lists of engines: those that a command lists, measures and takes by name.

use fibula::fib::registry::{Engine, Engines, is_published};
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
    /// Whether it is an oracle, published, described, or our own.
    pub role: &'static str,
    /// Completes "take it when ...".
    pub use_when: &'static str,
}

/// Returns all engines of a list, with one entry for an engine of both families.
#[must_use]
pub fn entries(engines: Engines) -> Vec<Entry> {
    let mut entries = Vec::new();
    add(&mut entries, engines.all::<u32>());
    add(&mut entries, engines.all::<u128>());
    entries
}

/// Returns those of a list that the library lacks, with the families that it lacks them for.
#[must_use]
pub fn compared(engines: Engines) -> Vec<Entry> {
    fn lacking<K: Key>(engines: Engines) -> Vec<Engine<K>> {
        let own = Engines::OWN.all::<K>();
        engines.all::<K>().into_iter().filter(|engine| !own.contains(engine)).collect()
    }
    let mut entries = Vec::new();
    add(&mut entries, lacking::<u32>(engines));
    add(&mut entries, lacking::<u128>(engines));
    entries
}

/// Returns the names of all, each once.
#[must_use]
pub fn names(engines: Engines) -> Vec<&'static str> {
    entries(engines).iter().map(|entry| entry.name).collect()
}

/// Refuses a name that no engine of the list has.
///
/// # Errors
/// A message for the user: where the engine is, or the closest name, and the command that lists all.
pub fn refuse_unknown(engines: Engines, name: &str) -> Result<(), String> {
    let names = names(engines);
    if names.contains(&name) { Ok(()) } else { Err(unknown(engines, name, &names)) }
}

/// Returns the message for a name that is none of `names`, which are those of `engines` or some more.
#[must_use]
pub fn unknown(engines: Engines, name: &str, names: &[&str]) -> String {
    let own = engines == Engines::OWN;
    if own && is_published(name) {
        return format!("'{name}' is in fibula-lab only; 'fibula engines' lists the engines of this command");
    }
    let list = if own { "fibula engines" } else { "fibula-lab engines" };
    match closest(name, names) {
        Some(close) => format!("no engine '{name}'; did you mean '{close}'? ('{list}' lists all)"),
        None => format!("no engine '{name}'; '{list}' lists all"),
    }
}

/// Returns the name that the fewest changes of a letter make of this one, if they are few enough for a slip; else the first one that
/// begins with it.
#[must_use]
pub fn closest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    // A third of a short name is a name of its own: 'dirt' is not 'miht'.
    let most = name.len() / 3;
    let near = names.iter().map(|&other| (distance(name, other), other));
    let near = near.filter(|&(changes, _)| changes <= most).min_by_key(|&(changes, _)| changes);
    let begun = || names.iter().copied().find(|other| name.len() > 1 && other.starts_with(name));
    near.map(|(_, other)| other).or_else(begun)
}

/// Returns how many letters must be added, removed or replaced to make one of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, b) in other.bytes().enumerate() {
            let changes = (diagonal + usize::from(a != b)).min(row[place] + 1).min(row[place + 1] + 1);
            diagonal = std::mem::replace(&mut row[place + 1], changes);
        }
    }
    row[other.len()]
}

fn add<K: Key>(entries: &mut Vec<Entry>, engines: Vec<Engine<K>>) {
    let family = K::FAMILY.name();
    for engine in engines {
        match entries.iter_mut().find(|entry| entry.name == engine.name) {
            Some(entry) => {
                entry.families.push(family);
                let isas = engine.isas.iter().map(|isa| isa.name());
                entry.isas.extend(isas.filter(|isa| !entry.isas.contains(isa)).collect::<Vec<_>>());
            }
            None => entries.push(entry(&engine, family)),
        }
    }
}

fn entry<K: Key>(engine: &Engine<K>, family: &'static str) -> Entry {
    Entry {
        name: engine.name,
        summary: engine.summary,
        paper: engine.paper,
        families: vec![family],
        isas: engine.isas.iter().map(|isa| isa.name()).collect(),
        update: engine.update_name(),
        role: engine.role.name(),
        use_when: engine.use_when,
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

    #[test]
    fn an_unknown_name_is_answered_by_the_closest_or_by_its_place() {
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("a", "a")), (3, 3, 0));
        let message = |name| refuse_unknown(Engines::OWN, name).unwrap_err();
        assert_eq!(refuse_unknown(Engines::OWN, "dir-btree"), Ok(()));
        assert!(message("dir-btre").contains("did you mean 'dir-btree'?"), "{}", message("dir-btre"));
        assert!(message("dir-24_8").contains("did you mean 'dir-24-8'?"));
        assert!(message("dir-1").contains("did you mean 'dir-17-bitmap'?"), "{}", message("dir-1"));
        assert!(message("poptrie").starts_with("'poptrie' is in fibula-lab only"));
        assert_eq!(message("nonsense"), "no engine 'nonsense'; 'fibula engines' lists all");
    }
}
