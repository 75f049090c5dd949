//! What lookups elsewhere read: the levels, longest first, and what their filters and hash tables are.

use crate::bloom::divisor::Divisor;
use crate::bloom::hash::{Hash, Hashes, Pair, Stored};
use crate::bloom::level::Level;
use crate::bloom::table::Table;
use fibula::net::Key;
use fibula::unstable::sections::{OwnedWords, Sections};

use super::NAME;

/// Returns the numbers and arrays of a table. Levels beyond the stored bits come first, so that the first answer is the longest.
pub(super) fn sections<K: Key, S: Stored, H: Hashes<S> + Hashes<u128>>(
    table: &Table<K, S, H>,
    pair: Option<Pair>,
) -> Sections<'_> {
    let [filter, buckets] = pair.map_or([0; 2], |pair| [pair.filter, pair.table].map(number_of));
    let numbers = [
        ("narrow", u32::from(S::BITS == 32)),
        ("direct-bits", table.direct_bits.into()),
        ("filter-hash", filter),
        ("table-hash", buckets),
    ];
    let mut sections = Sections::new(NAME, &[]).with_numbers(&numbers).with("direct", &table.direct[..]);
    for level in table.long.iter().filter(|level| level.count > 0) {
        sections = with_level(sections, level);
    }
    for level in table.levels.iter().filter(|level| level.count > 0) {
        sections = with_level(sections, level);
    }
    sections
}

/// Returns the number of a function, as the chapter has it.
fn number_of(hash: Hash) -> u32 {
    match hash {
        Hash::Murmur => 0,
        Hash::Knuth => 1,
        Hash::H2 => 2,
    }
}

fn with_level<'a, S: Stored>(sections: Sections<'a>, level: &'a Level<S>) -> Sections<'a> {
    let divisor = |Divisor { size, magic, first, second }| {
        [("divisor", size), ("magic", magic), ("first-shift", first), ("second-shift", second)]
    };
    sections
        .with_numbers(&[
            ("length", level.len.into()),
            ("stored-bits", S::BITS.into()),
            ("hashes", level.filter.hashes),
        ])
        .with_numbers(&divisor(level.filter.size))
        .with_numbers(&divisor(level.buckets))
        .with("bits", &level.filter.bits[..])
        .with("heads", &level.heads[..])
        .with_copy("entries", OwnedWords::Narrow(entries(level)))
}

/// Returns the entries in words: the key, its first word first, the next hop, and the next entry.
fn entries<S: Stored>(level: &Level<S>) -> Vec<u32> {
    let words = S::BITS / 32;
    let mut all = Vec::with_capacity(level.entries.len() * (usize::from(words) + 2));
    for entry in level.entries.iter() {
        let key = entry.key.widened();
        all.extend((0..words).map(|word| (key >> (96 - 32 * u32::from(word))) as u32));
        all.extend([entry.next_hop, entry.next]);
    }
    all
}
