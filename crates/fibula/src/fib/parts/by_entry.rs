//! Changed prefixes, grouped by the entries of a table that the leading bits of keys index.

use crate::net::{Key, Prefix};

/// Which entries some changed prefixes meet.
#[derive(Debug, PartialEq, Eq)]
pub enum Meets<'a, K> {
    /// All addresses of one entry or of several.
    Whole(Prefix<K>),
    /// Parts of one entry. The prefixes ascend.
    Within(&'a [Prefix<K>]),
}

/// Groups ascending prefixes by the entries for so many leading bits. Prefixes inside one that meets whole entries are
/// left out.
pub fn by_entry<K: Key>(prefixes: &[Prefix<K>], bits: u8) -> impl Iterator<Item = Meets<'_, K>> {
    let mut rest = prefixes;
    core::iter::from_fn(move || {
        let first = *rest.first()?;
        let entry = Prefix::of(first.addr(), bits.min(first.len()));
        let (group, after) = rest.split_at(rest.partition_point(|&prefix| entry.covers(prefix)));
        rest = after;
        Some(if first.len() <= bits { Meets::Whole(first) } else { Meets::Within(group) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Toy;

    #[test]
    fn prefixes_are_grouped_by_the_entries_that_they_meet() {
        let prefixes: Vec<Prefix<Toy<8>>> =
            ["0/3", "0/5", "16/6", "64/5", "68/7", "72/6", "76/7", "80/4", "88/8", "96/8"]
                .map(|text| text.parse().unwrap())
                .to_vec();
        let groups: Vec<_> = by_entry(&prefixes, 4).collect();
        let expected = [
            Meets::Whole(prefixes[0]),
            Meets::Within(&prefixes[3..7]),
            Meets::Whole(prefixes[7]),
            Meets::Within(&prefixes[9..]),
        ];
        assert_eq!(groups, expected);
        assert_eq!(by_entry(&prefixes[..0], 4).count(), 0);
    }
}
