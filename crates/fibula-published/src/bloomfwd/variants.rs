//! The structure with the parameters of the paper's figures: found by name, not in the list.

use crate::bloom::hash::{Hash, Pair};
use crate::bloom::lengths::Choice;
use crate::bloom::sizes::Ratio;
use crate::bloom::table::Expansion;
use fibula::net::{ForIpv4, Ipv4Key, Key, KeyKind};

use super::layout::{self, NarrowOptions, Vectors, WideOptions};
use super::{CAPTURE, EXACT, GREEDY, SUMMARY, entry, narrow, wide};
use super::{CHOSEN_LEVELS, PAPER, chosen};
use fibula::fib::registry::{Engine, Families, Role, Update};
use fibula::unstable::simd::Isa;

/// Returns the entries with other hash functions and ratios (IPv4), or other numbers of levels (IPv6).
pub(crate) fn variants<K: Key>() -> Vec<Engine<K>> {
    struct Entries;
    impl<K: Key> ForIpv4<K> for Entries {
        type Output = Vec<Engine<K>>;

        fn call() -> Self::Output
        where
            K: Ipv4Key,
        {
            hashes_and_ratios()
        }
    }
    // Constant conditions, so that what is not for these keys is not compiled.
    if const { matches!(K::KIND, KeyKind::Ipv4) } {
        K::if_ipv4::<Entries>().unwrap_or_default()
    } else if const { matches!(K::KIND, KeyKind::Ipv6) } {
        numbers_of_levels()
    } else {
        Vec::new()
    }
}

fn hashes_and_ratios<K: Ipv4Key>() -> Vec<Engine<K>> {
    macro_rules! ratios {
        ($all:ident, $name:literal, $filter:ident, $table:ident: $($percent:literal)*) => {
            $($all.push(narrow!(
                concat!("bloomfwd:", $name, ":", $percent),
                SUMMARY,
                Ipv4,
                (20, 24),
                Pair { filter: Hash::$filter, table: Hash::$table },
                Ratio::percent($percent),
                Kernels
            ));)*
        };
    }
    macro_rules! pairs {
        ($all:ident: $($name:literal $filter:ident $table:ident)*) => {
            $(ratios!($all, $name, $filter, $table: 1 5 10 15 20 25 30 35 40 45 50 55 60 90);)*
        };
    }
    let mut all = Vec::new();
    pairs!(all:
        "murmur+murmur" Murmur Murmur
        "murmur+knuth" Murmur Knuth
        "murmur+h2" Murmur H2
        "knuth+murmur" Knuth Murmur
        "knuth+knuth" Knuth Knuth
        "knuth+h2" Knuth H2
        "h2+murmur" H2 Murmur
        "h2+knuth" H2 Knuth
        "h2+h2" H2 H2
    );
    all
}

fn numbers_of_levels<K: Key>() -> Vec<Engine<K>> {
    macro_rules! levels {
        ($all:ident, $name:literal, $summary:expr, $choice:ident: $($levels:literal)*) => {
            $($all.push(wide!(
                concat!($name, ":", $levels),
                $summary,
                Ipv6,
                Expansion::Chosen { choice: Choice::$choice, levels: $levels, strict: true },
                Kernels
            ));)*
        };
    }
    let mut all =
        vec![wide!("bloomfwd-greedy", GREEDY, Ipv6, chosen(Choice::Greedy, CHOSEN_LEVELS), Kernels)];
    levels!(all, "bloomfwd-greedy", GREEDY, Greedy: 2 3 4 5 6 7 8);
    levels!(all, "bloomfwd-exact", EXACT, Exact: 2 3 4 5 6 7 8);
    levels!(all, "bloomfwd-capture", CAPTURE, Capture: 2 3 4 5 6 7 8);
    all
}
