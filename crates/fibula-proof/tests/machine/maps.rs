//! Maps of values against a model: a `BTreeMap`, searched from end to end.

use std::collections::BTreeMap;

use fibula::map::{PrefixMap, prefixes_of};
use fibula::net::{Key, Prefix, Toy};
use libtest_mimic::Trial;

use fibula_proof::tables::Random;
use fibula_proof::toy::{keys, prefixes};
use fibula_proof::verdict::Failure;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("map-ranges/toy8", || every_range().map_err(Failure::from)),
        Trial::test("map-changes/toy3", || changes::<Toy<3>>(400, 12)),
        Trial::test("map-changes/toy8", || changes::<Toy<8>>(150, 120)),
        Trial::test("map-changes/toy16", || changes::<Toy<16>>(40, 400)),
        Trial::test("map-changes/ipv4", || changes::<u32>(25, 800)),
        Trial::test("map-changes/ipv6", || changes::<u128>(25, 800)),
        Trial::test("map-merges/toy3", || every_merge().map_err(Failure::from)),
        Trial::test("map-pairs/toy8", || pairs::<Toy<8>>(200)),
        Trial::test("map-pairs/ipv6", || pairs::<u128>(40)),
    ]
}

fn require(holds: bool, what: &str, context: &dyn std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("map: {what}: {context:?}")) }
}

/// A value that no other insert made, so that one in the wrong place is seen, with a small part for merges.
type Value = (u32, String);

type Model<K> = BTreeMap<Prefix<K>, Value>;

fn value(random: &mut Random, serial: &mut u32) -> Value {
    *serial += 1;
    (*serial, random.below(3).to_string())
}

fn around<K: Key>(model: &Model<K>, prefix: Prefix<K>) -> Vec<(Prefix<K>, &Value)> {
    model.iter().filter(|(cover, _)| cover.covers(prefix)).map(|(&cover, value)| (cover, value)).collect()
}

/// Every query about one prefix, and about its first address.
fn ask<K: Key>(map: &PrefixMap<K, Value>, model: &Model<K>, prefix: Prefix<K>) -> Result<(), String> {
    let inside: Vec<_> =
        model.iter().filter(|(inside, _)| prefix.covers(**inside)).map(|(&p, v)| (p, v)).collect();
    let covers = around(model, prefix);
    require(map.get(prefix) == model.get(&prefix), "get", &prefix)?;
    require(map.contains(prefix) == model.contains_key(&prefix), "contains", &prefix)?;
    require(map.covers(prefix).eq(covers.iter().copied()), "covers", &prefix)?;
    require(map.subnets(prefix).eq(inside.iter().copied()), "subnets", &prefix)?;
    require(map.overlaps(prefix) != (inside.is_empty() && covers.is_empty()), "overlaps", &prefix)?;
    let parent = covers.iter().rfind(|(cover, _)| *cover != prefix).copied();
    require(map.parent(prefix) == parent, "parent", &prefix)?;
    let longest = around(model, Prefix::host(prefix.addr())).last().copied();
    require(map.lookup_prefix(prefix.addr()) == longest, "lookup_prefix", &prefix)?;
    require(map.lookup(prefix.addr()) == longest.map(|(_, value)| value), "lookup", &prefix)
}

/// All matches, from the map and compiled, of prefixes and of addresses.
fn bulk<K: Key>(map: &PrefixMap<K, Value>, model: &Model<K>, asked: &[Prefix<K>]) -> Result<(), Failure> {
    let keys: Vec<K> = asked.iter().map(|prefix| prefix.last()).collect();
    let mut of_prefixes = Vec::new();
    let mut of_keys = Vec::new();
    for (at, &prefix) in asked.iter().enumerate() {
        of_prefixes.extend(around(model, prefix).into_iter().map(|(cover, value)| (at, cover, value)));
        of_keys.extend(
            around(model, Prefix::host(keys[at])).into_iter().map(|(cover, value)| (at, cover, value)),
        );
    }
    let compiled = map.compile_covers()?;
    let mut found = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    map.covers_prefixes(asked, |at, cover, value| found[0].push((at, cover, value)));
    compiled.covers_prefixes(asked, |at, cover, value| found[1].push((at, cover, value)));
    map.covers_batch(&keys, |at, cover, value| found[2].push((at, cover, value)));
    compiled.covers_batch(&keys, |at, cover, value| found[3].push((at, cover, value)));
    require(found[0] == of_prefixes, "covers_prefixes", &asked)?;
    require(found[1] == of_prefixes, "compiled covers_prefixes", &asked)?;
    require(found[2] == of_keys, "covers_batch", &keys)?;
    require(found[3] == of_keys, "compiled covers_batch", &keys)?;
    for &prefix in asked {
        require(compiled.covers(prefix).eq(around(model, prefix)), "compiled covers", &prefix)?;
    }
    let equal = map.compile()?;
    let mut results = vec![None; keys.len()];
    equal.lookup_batch(&keys, &mut results);
    let mut of_map = vec![None; keys.len()];
    map.lookup_batch(&keys, &mut of_map);
    require(of_map == results, "lookup_batch", &asked)?;
    for (&key, result) in keys.iter().zip(results) {
        require(result == map.lookup(key), "compiled lookup_batch", &key)?;
    }
    Ok(())
}

fn whole<K: Key>(map: &mut PrefixMap<K, Value>, model: &mut Model<K>) -> Result<(), String> {
    map.check().map_err(|error| format!("map: {error}"))?;
    require(map.len() == model.len() && map.is_empty() == model.is_empty(), "len", &map.len())?;
    require(map.iter().eq(model.iter().map(|(&prefix, value)| (prefix, value))), "iter", &map.len())?;
    require(map.keys().eq(model.keys().copied()), "keys", &map.len())?;
    require(map.values().eq(model.values()), "values", &map.len())?;
    let mut values: Vec<_> = map.values_mut().map(|value| value.clone()).collect();
    values.sort();
    let mut expected: Vec<_> = model.values().cloned().collect();
    expected.sort();
    require(values == expected, "values_mut", &map.len())?;
    let all = model.iter_mut().map(|(&prefix, value)| (prefix, value));
    require(map.iter_mut().eq(all), "iter_mut", &map.len())
}

/// One random change, and what it returns.
fn change<K: Key>(
    map: &mut PrefixMap<K, Value>,
    model: &mut Model<K>,
    random: &mut Random,
    serial: &mut u32,
) -> Result<Prefix<K>, String> {
    let anchors: Vec<_> = model.keys().take(64).copied().collect();
    let present = (!model.is_empty() && random.below(2) == 0)
        .then(|| model.keys().nth(random.below(model.len())).copied())
        .flatten();
    let prefix = present.unwrap_or_else(|| random.prefix(&anchors));
    match random.below(8) {
        0..=2 => {
            let new = value(random, serial);
            require(map.insert(prefix, new.clone()) == model.insert(prefix, new), "insert", &prefix)?;
        }
        3 | 4 => require(map.remove(prefix) == model.remove(&prefix), "remove", &prefix)?,
        5 => {
            let new = value(random, serial);
            let map = map.entry(prefix).and_modify(|value| value.0 += 1 << 20).or_insert(new.clone());
            let model = model.entry(prefix).and_modify(|value| value.0 += 1 << 20).or_insert(new);
            require(map == model, "entry", &prefix)?;
        }
        6 => {
            require(map.entry(prefix).remove() == model.remove(&prefix), "entry, remove", &prefix)?;
        }
        _ => {
            // Short enough for the model to hold each prefix of it.
            let last =
                random.inside(Prefix::masked(prefix.addr(), K::BITS - K::BITS.min(9)).expect("it fits"));
            let new = value(random, serial);
            let count = map.insert_range(prefix.addr()..=last, new.clone());
            let parts: Vec<_> = prefixes_of(prefix.addr()..=last).collect();
            require(count == parts.len(), "insert_range", &prefix)?;
            parts.into_iter().for_each(|part| drop(model.insert(part, new.clone())));
        }
    }
    Ok(prefix)
}

fn changes<K: Key>(rounds: usize, count: usize) -> Result<(), Failure> {
    let (mut random, mut serial) = (Random(11), 0);
    let mut map = PrefixMap::<K, Value>::new();
    let mut model = Model::new();
    for round in 0..rounds {
        let mut asked = vec![Prefix::ALL];
        for _ in 0..1 + random.below(count / 4) {
            let prefix = change(&mut map, &mut model, &mut random, &mut serial)?;
            ask(&map, &model, prefix)?;
            asked.push(prefix);
            asked.push(random.prefix(&[prefix]));
        }
        whole(&mut map, &mut model)?;
        asked.iter().take(20).try_for_each(|&prefix| ask(&map, &model, prefix))?;
        bulk(&map, &model, &asked)?;
        match round % 10 {
            3 => {
                let inside = asked[asked.len() / 2];
                let before = model.len();
                model.retain(|prefix, _| !inside.covers(*prefix));
                require(map.remove_subnets(inside) == before - model.len(), "remove_subnets", &inside)?;
            }
            6 => {
                let mut seen = Vec::new();
                map.retain(|prefix, value| {
                    seen.push(prefix);
                    value.0 += 1;
                    value.0 % 3 != 0
                });
                require(seen.iter().eq(model.keys()), "retain, order", &seen)?;
                model.retain(|_, value| {
                    value.0 += 1;
                    value.0 % 3 != 0
                });
            }
            8 => merged(&map, &mut random)?,
            _ => {}
        }
        whole(&mut map, &mut model)?;
    }
    let copy = map.clone();
    require(copy == map && copy.into_iter().eq(model.clone()), "into_iter", &model.len())?;
    map.clear();
    whole(&mut map, &mut Model::new())?;
    Ok(())
}

/// Merges of a map in which many values are equal: no answer is another, and nothing is left to merge.
fn merged<K: Key>(map: &PrefixMap<K, Value>, random: &mut Random) -> Result<(), String> {
    let before: PrefixMap<K, &str> = map.iter().map(|(prefix, value)| (prefix, value.1.as_str())).collect();
    let mut after = before.clone();
    let fewer = after.aggregate();
    after.check().map_err(|error| format!("map: {error}"))?;
    require(after.len() + fewer == before.len(), "aggregate, count", &fewer)?;
    let edges = before.keys().flat_map(|prefix| {
        [Some(prefix.addr()), Some(prefix.last()), prefix.addr().previous(), prefix.last().next()]
    });
    let keys: Vec<K> = edges.flatten().chain((0..200).map(|_| random.key())).collect();
    for key in keys {
        require(before.lookup(key) == after.lookup(key), "aggregate, lookup", &(key, &before, &after))?;
    }
    require(after.clone().aggregate() == 0, "aggregate, twice", &after)
}

/// Every table of three bits with two values, in which each prefix is absent or has one of them, up to a third of all.
fn every_merge() -> Result<(), String> {
    type K = Toy<3>;
    let (prefixes, keys) = (prefixes::<K>(), keys::<K>());
    let mut random = Random(13);
    for _ in 0..200_000 {
        let mut map = PrefixMap::<K, u8>::new();
        for &prefix in &prefixes {
            let value = random.below(4);
            if value > 1 {
                map.insert(prefix, value as u8);
            }
        }
        let before: Vec<_> = keys.iter().map(|&key| map.lookup(key).copied()).collect();
        let table = map.clone();
        let fewer = map.aggregate();
        let after: Vec<_> = keys.iter().map(|&key| map.lookup(key).copied()).collect();
        require(before == after, "aggregate, lookup", &table)?;
        require(map.len() + fewer == table.len(), "aggregate, count", &table)?;
        for (prefix, value) in &map {
            let twin = prefixes.iter().find(|twin| {
                twin.len() == prefix.len() && **twin != prefix && parent(**twin) == parent(prefix)
            });
            require(twin.and_then(|&twin| map.get(twin)) != Some(value), "aggregate, halves", &table)?;
            require(
                map.parent(prefix).map(|(_, value)| value) != Some(value),
                "aggregate, repeated",
                &table,
            )?;
        }
    }
    Ok(())
}

/// The block of which a prefix is a half.
fn parent<K: Key>(prefix: Prefix<K>) -> Option<Prefix<K>> {
    Prefix::masked(prefix.addr(), prefix.len().checked_sub(1)?).ok()
}

/// Every range of 8 bits: its prefixes are the range, and no fewer are.
fn every_range() -> Result<(), String> {
    type K = Toy<8>;
    for first in 0..=255_u128 {
        for last in 0..=255_u128 {
            let parts: Vec<_> = prefixes_of(K::from_bits(first)..=K::from_bits(last)).collect();
            let mut next = first;
            for part in &parts {
                require(part.addr().to_bits() == next, "a range without gaps", &(first, last))?;
                next = part.last().to_bits() + 1;
            }
            require(next == if first <= last { last + 1 } else { first }, "the range", &(first, last))?;
            let halves =
                |pair: &[Prefix<K>]| pair[0].len() == pair[1].len() && parent(pair[0]) == parent(pair[1]);
            require(!parts.windows(2).any(halves), "the fewest prefixes", &(first, last))?;
        }
    }
    Ok(())
}

/// Operations on two maps, element by element.
fn pairs<K: Key>(rounds: usize) -> Result<(), Failure> {
    let mut random = Random(17);
    for _ in 0..rounds {
        let mut table = || {
            let mut model = BTreeMap::<Prefix<K>, u32>::new();
            for _ in 0..random.below(60) {
                let anchors: Vec<_> = model.keys().copied().collect();
                model.insert(random.prefix(&anchors), random.below(5) as u32);
            }
            model
        };
        let (mut left, right) = (table(), table());
        left.extend(right.iter().take(7).map(|(&prefix, &value)| (prefix, value + 1)));
        let map = |model: &BTreeMap<Prefix<K>, u32>| PrefixMap::from_iter(model.clone());
        let (one, two) = (map(&left), map(&right));
        let mut all = left.clone();
        for (&prefix, &value) in &right {
            all.entry(prefix).and_modify(|sum| *sum = *sum * 10 + value).or_insert(value);
        }
        let joined: Vec<_> =
            all.keys().map(|prefix| (*prefix, left.get(prefix), right.get(prefix))).collect();
        require(one.join(&two).eq(joined), "join", &(&left, &right))?;
        require(one.union_with(&two, |_, a, b| a * 10 + b) == map(&all), "union_with", &(&left, &right))?;
        let both = left.iter().filter_map(|(p, a)| Some((*p, (*a, *right.get(p)?)))).collect();
        let met = one.intersection_with(&two, |_, &a, &b| (a, b));
        require(met == both, "intersection_with", &(&left, &right))?;
        let rest: BTreeMap<_, _> =
            left.iter().filter(|(p, _)| !right.contains_key(p)).map(|(p, v)| (*p, *v)).collect();
        require(one.difference(&two) == map(&rest), "difference", &(&left, &right))?;
    }
    Ok(())
}
