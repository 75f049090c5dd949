//! What the tables of the Bloomfwd paper print: prefixes before and after expansion, and lengths of levels.

use fibula::fib::BuildError;
use fibula::net::{Key, Routes};
use fibula::unstable::memory::{Budget, Limits, OutOfMemory};

use super::expansion::for_each_length;
use super::hash::{Hash, Hashes, Pair, Sequence, Stored, short_bits};
use super::lengths::{Choice, Counts};
use super::sizes::Ratio;
use super::table::{Expansion, Parameters, Table};

/// Levels that were chosen for a table, of its prefixes up to /64 or /32.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenLevels {
    /// The lengths, ascending.
    pub lengths: Vec<u8>,
    /// Number of prefixes after expansion by the paper's cost function, which ignores captured ones.
    pub estimate: u128,
    /// Number of prefixes after expansion.
    pub actual: u128,
}

/// Chooses so many levels for a table.
///
/// # Errors
/// When memory runs out.
pub fn chosen_levels<K: Key>(
    routes: &dyn Routes<K>,
    choice: Choice,
    levels: u8,
) -> Result<ChosenLevels, OutOfMemory> {
    let longest = short_bits::<K, u64>();
    let mut budget = Budget::default();
    let mut counts = Counts::new(longest, true, &mut budget)?;
    for_each_length(routes, &mut |len, cover| {
        if len <= longest {
            counts.add(len, cover);
        }
    });
    counts.finish();
    let bits = counts.choose(choice, levels, u128::MAX, &mut budget)?.bits;
    let lengths: Vec<u8> = (1..=longest).filter(|len| bits >> len & 1 != 0).collect();
    let mut found = ChosenLevels { lengths: Vec::new(), estimate: 0, actual: 0 };
    let mut shortest = 1;
    for &len in &lengths {
        found.estimate += counts.expanded(shortest, len);
        found.actual += counts.distinct(shortest, len);
        shortest = len + 1;
    }
    found.lengths = lengths;
    Ok(found)
}

/// Returns the number of prefixes from a shortest to a longest length, and how many they are when they are expanded to
/// the longest, each counted once.
#[must_use]
pub fn expanded_group<K: Key>(routes: &dyn Routes<K>, shortest: u8, longest: u8) -> (u64, u128) {
    let (mut before, mut after) = (0, 0);
    for_each_length(routes, &mut |len, cover| {
        if (shortest..=longest).contains(&len) {
            before += 1;
            after += if cover < shortest { 1 << (longest - len) } else { 0 };
        }
    });
    (before, after)
}

/// Returns the share of those keys whose prefix is not in a group that pass the filter of the group, hashed by H2: of the
/// /32s and of the /24s. `None` for a group without prefixes.
///
/// # Errors
/// When the groups cannot be built.
pub fn false_positives(
    routes: &dyn Routes<u32>,
    ratio: Ratio,
    keys: &[u32],
) -> Result<[Option<f64>; 2], BuildError> {
    let hashes = Pair { filter: Hash::H2, table: Hash::H2 };
    let expansion = Expansion::Fixed { direct: 20, first: 24 };
    let parameters = Parameters { name: "bloomfwd", expansion, ratio, hashes };
    let table = Table::<u32, u32, Pair>::build(routes, parameters, Limits::default())?;
    Ok([0, 1].map(|group| {
        let level = &table.levels[group];
        let (mut absent, mut passed) = (0u64, 0u64);
        for &key in keys.iter().filter(|&&key| level.count > 0 && level.find(key, hashes) == 0) {
            let mut sequence = Hashes::<u32>::sequence(hashes, key.masked(level.len));
            absent += 1;
            passed += u64::from((0..level.filter.hashes).all(|_| level.filter.has(sequence.next())));
        }
        (absent > 0).then(|| passed as f64 / absent as f64)
    }))
}
