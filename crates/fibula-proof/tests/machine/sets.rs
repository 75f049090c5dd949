//! Sets of prefixes against `BTreeSet`, and sets of addresses against the addresses themselves.

use std::collections::BTreeSet;

use fibula::map::{AddressSet, PrefixSet};
use fibula::net::{Key, Prefix, Toy};
use libtest_mimic::Trial;

use fibula_proof::tables::Random;
use fibula_proof::toy::keys;
use fibula_proof::verdict::Failure;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("prefix-sets/toy3", || prefix_sets::<Toy<3>>(3_000, 9)),
        Trial::test("prefix-sets/toy8", || prefix_sets::<Toy<8>>(600, 60)),
        Trial::test("prefix-sets/ipv4", || prefix_sets::<u32>(200, 90)),
        Trial::test("prefix-sets/ipv6", || prefix_sets::<u128>(200, 90)),
        Trial::test("address-sets/toy3", || every_pair().map_err(Failure::from)),
        Trial::test("address-sets/toy8", || address_sets::<Toy<8>>(300, 40)),
        Trial::test("address-sets/ipv4", || address_sets::<u32>(100, 60)),
        Trial::test("address-sets/ipv6", || address_sets::<u128>(100, 60)),
        Trial::test("address-changes/toy8", || address_changes().map_err(Failure::from)),
    ]
}

fn require(holds: bool, what: &str, context: &dyn std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("set: {what}: {context:?}")) }
}

/// Random prefixes, half of which the second set shares.
fn two<K: Key>(random: &mut Random, most: usize) -> [BTreeSet<Prefix<K>>; 2] {
    let mut sets = [BTreeSet::new(), BTreeSet::new()];
    let mut anchors = Vec::new();
    for _ in 0..random.below(most) {
        let prefix = random.prefix(&anchors);
        anchors.push(prefix);
        let which = random.below(4);
        if which != 1 {
            sets[0].insert(prefix);
        }
        if which > 0 {
            sets[1].insert(prefix);
        }
    }
    sets
}

fn prefix_sets<K: Key>(rounds: usize, most: usize) -> Result<(), Failure> {
    let mut random = Random(19);
    for _ in 0..rounds {
        let [left, right] = two::<K>(&mut random, most);
        let [mut one, two] = [&left, &right].map(|model| model.iter().copied().collect::<PrefixSet<K>>());
        let context = (&left, &right);
        one.check()?;
        require(one.iter().eq(left.iter().copied()) && one.len() == left.len(), "iter", &context)?;
        require(one.union(&two).eq(left.union(&right).copied()), "union", &context)?;
        require(one.intersection(&two).eq(left.intersection(&right).copied()), "intersection", &context)?;
        require(one.difference(&two).eq(left.difference(&right).copied()), "difference", &context)?;
        let exactly_one = left.symmetric_difference(&right).copied();
        require(one.symmetric_difference(&two).eq(exactly_one), "symmetric_difference", &context)?;
        require((&one | &two).len() == left.union(&right).count(), "|", &context)?;
        require(&(&one - &two) | &(&one & &two) == one, "- and &", &context)?;
        require(&(&one ^ &two) ^ &two == one, "^", &context)?;
        require(one.is_subset(&two) == left.is_subset(&right), "is_subset", &context)?;
        require((&one & &two).is_subset(&two) && one.is_superset(&(&one - &two)), "subsets", &context)?;
        require(one.is_disjoint(&two) == left.is_disjoint(&right), "is_disjoint", &context)?;
        let overlaps = left.iter().any(|a| right.iter().any(|b| a.overlaps(*b)));
        require(one.overlaps_set(&two) == overlaps, "overlaps_set", &context)?;
        // A few that are in one set alone, and not so short that they always overlap.
        for skip in 0..4 {
            let few = |model: &BTreeSet<Prefix<K>>, other: &BTreeSet<Prefix<K>>| -> Vec<Prefix<K>> {
                let alone = model.difference(other).filter(|prefix| prefix.len() > 1);
                alone.skip(skip).take(1 + skip).copied().collect()
            };
            let (few_left, few_right) = (few(&left, &right), few(&right, &left));
            let overlaps = few_left.iter().any(|a| few_right.iter().any(|b| a.overlaps(*b)));
            let [few_one, few_two] =
                [&few_left, &few_right].map(|prefixes| prefixes.iter().copied().collect::<PrefixSet<K>>());
            require(few_one.overlaps_set(&few_two) == overlaps, "overlaps_set", &(few_left, few_right))?;
        }
        for &prefix in right.iter().take(9) {
            require(one.contains(prefix) == left.contains(&prefix), "contains", &(prefix, context))?;
            let around = left.iter().copied().filter(|cover| cover.covers(prefix));
            require(one.covers(prefix).eq(around), "covers", &(prefix, context))?;
            let inside = left.iter().copied().filter(|inside| prefix.covers(*inside));
            require(one.subnets(prefix).eq(inside), "subnets", &(prefix, context))?;
            let any = left.iter().any(|other| other.overlaps(prefix));
            require(one.overlaps(prefix) == any, "overlaps", &(prefix, context))?;
            let longest = left.iter().copied().rfind(|cover| cover.contains(prefix.addr()));
            require(one.lookup_prefix(prefix.addr()) == longest, "lookup_prefix", &(prefix, context))?;
        }
        let mut changed = left.clone();
        for &prefix in &right {
            require(one.remove(prefix) == changed.remove(&prefix), "remove", &(prefix, context))?;
            require(one.insert(prefix) == changed.insert(prefix), "insert", &(prefix, context))?;
        }
        require(one.iter().eq(changed.iter().copied()), "after changes", &context)?;
    }
    Ok(())
}

/// All addresses of a small space that a set has.
fn members<K: Key>(set: &AddressSet<K>) -> Vec<bool> {
    keys::<K>().into_iter().map(|key| set.contains(key)).collect()
}

fn of_bits<K: Key>(bits: u32) -> AddressSet<K> {
    let member = |key: &K| bits >> key.to_bits() & 1 != 0;
    keys::<K>().into_iter().filter(member).map(Prefix::host).collect()
}

/// Every pair of sets of the eight addresses of three bits.
fn every_pair() -> Result<(), String> {
    type K = Toy<3>;
    for left in 0..1_u32 << 8 {
        let one = of_bits::<K>(left);
        one.check().map_err(|error| error.to_string())?;
        let bits = |set: &AddressSet<K>| {
            members(set).iter().rev().fold(0, |bits, &is_member| bits << 1 | u32::from(is_member))
        };
        require(bits(&one) == left && one.count() == left.count_ones().into(), "members", &left)?;
        require(bits(&!&one) == !left & 255 && !&!&one == one, "complement", &left)?;
        require(one.is_all() == (left == 255) && one.is_empty() == (left == 0), "all or nothing", &left)?;
        for right in 0..1_u32 << 8 {
            let two = of_bits::<K>(right);
            let context = (left, right);
            for (set, expected, what) in [
                (&one | &two, left | right, "union"),
                (&one & &two, left & right, "intersection"),
                (&one - &two, left & !right, "difference"),
                (&one ^ &two, left ^ right, "symmetric_difference"),
            ] {
                set.check().map_err(|error| format!("{what} of {context:?}: {error}"))?;
                require(bits(&set) == expected, what, &context)?;
            }
            require(one.is_subset(&two) == (left & !right == 0), "is_subset", &context)?;
            require(one.is_disjoint(&two) == (left & right == 0), "is_disjoint", &context)?;
        }
    }
    Ok(())
}

fn address_sets<K: Key>(rounds: usize, most: usize) -> Result<(), Failure> {
    let mut random = Random(23);
    for _ in 0..rounds {
        let [left, right] = two::<K>(&mut random, most);
        let context = (&left, &right);
        let one: AddressSet<K> = left.iter().rev().copied().collect();
        let two = AddressSet::from(&right.iter().copied().collect::<PrefixSet<K>>());
        let is_in = |model: &BTreeSet<Prefix<K>>, key: K| model.iter().any(|prefix| prefix.contains(key));
        let edges = left.iter().chain(&right).flat_map(|prefix| {
            [Some(prefix.addr()), Some(prefix.last()), prefix.addr().previous(), prefix.last().next()]
        });
        let probes: Vec<K> =
            edges.flatten().chain([K::ZERO, K::MAX]).chain((0..30).map(|_| random.key())).collect();
        let mut extended = one.clone();
        extended.extend(right.iter().copied());
        for (set, keep, what) in [
            (one.clone(), (|a, _| a) as fn(bool, bool) -> bool, "of prefixes"),
            (two.clone(), |_, b| b, "of a set of prefixes"),
            (&one | &two, |a, b| a || b, "union"),
            (extended, |a, b| a || b, "extend"),
            (&one & &two, |a, b| a && b, "intersection"),
            (&one - &two, |a, b| a && !b, "difference"),
            (&one ^ &two, |a, b| a != b, "symmetric_difference"),
            (one.complement(), |a, _| !a, "complement"),
        ] {
            set.check()?;
            for &key in &probes {
                let expected = keep(is_in(&left, key), is_in(&right, key));
                require(set.contains(key) == expected, what, &(key, context))?;
            }
            // Prefixes give the set back, and no two of them are halves of one.
            let prefixes: Vec<_> = set.prefixes().collect();
            require(
                prefixes.iter().copied().collect::<AddressSet<K>>() == set,
                "prefixes",
                &(what, context),
            )?;
            let sum = prefixes.iter().map(|p| (p.last().to_bits() - p.addr().to_bits()).saturating_add(1));
            require(sum.fold(0, u128::saturating_add) == set.count(), "count", &(what, context))?;
            for &prefix in left.iter().chain(&right).take(9) {
                let inside: AddressSet<K> = [prefix].into();
                require(
                    set.contains_prefix(prefix) == inside.is_subset(&set),
                    "contains_prefix",
                    &(prefix, context),
                )?;
                require(set.overlaps(prefix) != inside.is_disjoint(&set), "overlaps", &(prefix, context))?;
            }
        }
    }
    Ok(())
}

/// Random insertions and removals of ranges, with all 256 addresses after each.
fn address_changes() -> Result<(), String> {
    type K = Toy<8>;
    let mut random = Random(29);
    for _ in 0..300 {
        let (mut set, mut model) = (AddressSet::<K>::new(), vec![false; 256]);
        for _ in 0..40 {
            let [first, last] = [0; 2].map(|_: i32| random.below(256));
            let last = if random.below(2) == 0 { (first + last % 9).min(255) } else { last };
            let range = K::from_bits(first as u128)..=K::from_bits(last as u128);
            let is_added = random.below(2) == 0;
            if is_added {
                set.insert_range(range);
            } else {
                set.remove_range(range);
            }
            if first <= last {
                model[first..=last].fill(is_added);
            }
            set.check().map_err(|error| error.to_string())?;
            require(members(&set) == model, "after a change", &(first, last, is_added, &model))?;
        }
        let prefix = random.prefix::<K>(&[]);
        let mut without = set.clone();
        without.remove(prefix);
        require(without == &set - &[prefix].into(), "remove", &prefix)?;
        without.insert(prefix);
        require(without == &set | &[prefix].into(), "insert", &prefix)?;
    }
    Ok(())
}
