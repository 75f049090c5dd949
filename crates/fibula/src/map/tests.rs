//! What the test machine does not compare with its model: traits, limits, accounts, panics.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;

use super::*;
use crate::memory::{Limits, Memory};
use crate::net::{IpPrefix, Key, Keys, NextHop, Prefix};
use crate::random::Random;

fn net(text: &str) -> Prefix<u32> {
    text.parse().unwrap()
}

fn sites() -> PrefixMap<u32, &'static str> {
    [("10.0.0.0/8", "office"), ("10.1.0.0/16", "lab"), ("192.0.2.0/24", "guests")]
        .into_iter()
        .map(|(text, value)| (net(text), value))
        .collect()
}

#[test]
fn prefixes_are_of_ipnet_or_addresses_too() {
    let mut map = PrefixMap::<u32, u8>::new();
    assert_eq!(map.insert("10.1.2.3/8".parse::<ipnet::Ipv4Net>().unwrap(), 1), None);
    assert_eq!(map.insert(Ipv4Addr::new(10, 0, 0, 1), 2), None);
    assert_eq!(map.insert(Prefix::host(0x0a00_0001), 3), Some(2));
    assert_eq!((map.get(net("10.0.0.0/8")), map.get(net("10.0.0.1"))), (Some(&1), Some(&3)));
    assert_eq!(map.lookup(Ipv4Addr::new(10, 0, 0, 1)), Some(&3));
    assert_eq!(map.lookup(0x0a00_0002), Some(&1));
    *map.lookup_mut(0x0a00_0002).unwrap() = 9;
    *map.get_mut(net("10.0.0.1")).unwrap() = 8;
    assert_eq!(map.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), [9, 8]);
}

#[test]
fn entries_are_looked_at_and_changed() {
    let mut map = sites();
    assert_eq!(*map.entry(net("10.0.0.0/8")).and_modify(|value| *value = "home").or_insert("new"), "home");
    assert_eq!(*map.entry(net("11.0.0.0/8")).and_modify(|value| *value = "home").or_insert("new"), "new");
    assert_eq!(*map.entry(net("12.0.0.0/8")).or_default(), "");
    assert_eq!(map.entry(net("12.0.0.0/8")).prefix(), net("12.0.0.0/8"));
    assert_eq!(map.entry(net("13.0.0.0/8")).prefix(), net("13.0.0.0/8"));
    let mut entry = map.entry(net("10.1.0.0/16"));
    assert_eq!((entry.prefix(), entry.get()), (net("10.1.0.0/16"), Some(&"lab")));
    assert_eq!(format!("{entry:?}"), "Entry(10.1.0.0/16: Some(\"lab\"))");
    *entry.get_mut().unwrap() = "bench";
    assert_eq!(entry.insert("shed"), Some("bench"));
    assert_eq!(map.entry(net("10.1.0.0/16")).remove(), Some("shed"));
    assert!(!map.contains(net("10.1.0.0/16")));
    let mut entry = map.entry(net("10.1.0.0/16"));
    assert_eq!(format!("{entry:?}"), "Entry(10.1.0.0/16: None)");
    assert_eq!(entry.get(), None);
    assert_eq!(entry.get_mut(), None);
    assert_eq!(entry.insert("lab"), None);
    assert_eq!(map.entry(net("14.0.0.0/8")).remove(), None);
    map.check().unwrap();
    assert_eq!(map.len(), 5);
}

#[test]
fn maps_are_shown_compared_and_copied() {
    let map = sites();
    assert_eq!(format!("{map:?}"), r#"{10.0.0.0/8: "office", 10.1.0.0/16: "lab", 192.0.2.0/24: "guests"}"#);
    let mut copy = map.clone();
    assert_eq!(copy, map);
    copy.insert(net("10.1.0.0/16"), "shed");
    assert_ne!(copy, map);
    copy.extend([(net("10.1.0.0/16"), "lab")]);
    assert_eq!(copy, map);
    copy.remove(net("192.0.2.0/24"));
    assert_ne!(copy, map);
    for (_, value) in &mut copy {
        *value = "x";
    }
    assert_eq!(format!("{:?}", copy.covers(net("10.1.0.0/16"))), r#"{10.0.0.0/8: "x", 10.1.0.0/16: "x"}"#);
    assert_eq!(
        format!("{:?}", copy.iter_mut()),
        "[Prefix { addr: 167772160, len: 8 }, Prefix { addr: 167837696, len: 16 }]"
    );
    assert_eq!(map.into_iter().len(), 3);
    assert_eq!(PrefixMap::from([(net("10.0.0.0/8"), 1), (net("10.0.0.0/8"), 2)]).len(), 1);
}

#[test]
fn an_empty_map_allocates_nothing_and_a_small_one_little() {
    let map = PrefixMap::<u128, u32>::default();
    assert!(map.is_empty());
    assert_eq!(map.memory(), Memory::default());
    // Of ten prefixes that diverge at every bit, which takes the most nodes.
    fn ten<K: Key>() -> usize {
        let mut map = PrefixMap::<K, u32>::new();
        for at in 0..10_u8 {
            map.insert(
                Prefix::masked(K::MAX.xor(K::mask(at + 1).and(K::mask(at).not())), 24).unwrap(),
                at.into(),
            );
        }
        assert_eq!(map.len(), 10);
        map.memory().held_bytes()
    }
    assert!(ten::<u32>() < 1024, "{}", ten::<u32>());
    assert!(ten::<u128>() < 1024, "{}", ten::<u128>());
    let mut map = sites();
    map.clear();
    assert!(map.is_empty() && map.memory().held_bytes() > 0);
    map.check().unwrap();
    map.shrink();
    assert!(map.memory().held_bytes() <= 20);
}

#[test]
fn limits_refuse_and_leave_the_map_as_it_was() {
    let mut map = sites();
    let held = map.memory();
    map.set_limits(Limits::within(0));
    let mut refused = 0;
    for at in 0..100 {
        let (before, prefix) = (map.clone(), Prefix::masked(at << 24, 16).unwrap());
        match map.try_insert(prefix, "new") {
            Ok(old) => assert_eq!((old, map.len()), (None, before.len() + 1)),
            Err(error) => {
                assert!(error.to_string().starts_with("the table cannot grow: the memory limit is 0 bytes"));
                assert_eq!(map, before);
                refused += 1;
                assert!(map.entry(prefix).try_insert("new").is_err());
                assert!(map.entry(prefix).try_or_insert_with(|| "new").is_err());
                assert!(map.try_insert_range(at << 24..=(at << 24) + 77, "range").is_err());
                assert_eq!(map, before);
            }
        }
        map.check().unwrap();
    }
    assert!(refused > 80 && map.memory() == Memory { lookup_bytes: map.memory().lookup_bytes, ..held });
    map.set_limits(Limits::default());
    assert_eq!(map.insert_range(0..=77, "range"), 4);
    assert!(IpPrefixMap::within(Limits::within(0)).try_insert(net("10.0.0.0/8"), ()).is_err());
}

#[test]
#[should_panic(expected = "the table cannot grow: the memory limit is 0 bytes")]
fn inserts_without_try_panic_at_the_limit() {
    PrefixMap::within(Limits::within(0)).insert(net("10.0.0.0/8"), ());
}

#[test]
fn values_are_dropped_once() {
    let value = std::sync::Arc::new(());
    let mut map = PrefixMap::<u32, _>::new();
    for at in 0..100 {
        map.insert(Prefix::host(at / 2), value.clone());
    }
    assert_eq!(std::sync::Arc::strong_count(&value), 51);
    map.retain(|prefix, _| prefix.addr() % 5 != 0);
    assert_eq!(map.remove_subnets(net("0.0.0.0/29")), 6);
    assert_eq!((map.len(), std::sync::Arc::strong_count(&value)), (34, 35));
    map.insert_range(0_u32..=63, value.clone());
    assert_eq!(std::sync::Arc::strong_count(&value), 36);
    assert_eq!(map.into_iter().take(3).count(), 3);
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
}

#[test]
fn compiled_maps_answer_as_the_map() {
    let mut random = Random(3);
    let mut map = PrefixMap::<u32, u64>::new();
    for _ in 0..2_000 {
        let prefix = Prefix::masked((random.below(1 << 31) << 1) as u32, 8 + random.below(25) as u8).unwrap();
        map.insert(prefix, random.below(40));
    }
    let keys: Vec<u32> = (0..3_000).map(|_| (random.below(1 << 31) << 1) as u32).collect();
    let network: Vec<_> = keys.iter().map(|key| key.to_be_bytes()).collect();
    for compiled in [map.compile().unwrap(), map.compile_each().unwrap()] {
        let mut found = vec![Some(&77); keys.len()];
        compiled.lookup_batch(&keys, &mut found);
        for (&key, &found) in keys.iter().zip(&found) {
            assert_eq!(found, map.lookup(key));
            assert_eq!(compiled.lookup(key), found);
            assert_eq!(compiled.fib().lookup_key(key).and_then(|at| compiled.value(at)), found);
        }
        let mut again = vec![None; keys.len()];
        compiled.batch(Keys::Network(&network)).run(&mut again);
        assert_eq!(again, found);
        assert!(compiled.batch(&keys).try_run(&mut found[1..]).is_err());
        compiled.batch(&keys).try_run(&mut found).unwrap();
        assert_eq!(compiled.value(NextHop::new(1 << 31).unwrap()), None);
        assert!(format!("{compiled:?}").starts_with("CompiledMap { values: "));
    }
    let (equal, each) = (map.compile().unwrap(), map.compile_each().unwrap());
    assert_eq!((equal.values().len(), each.values().len()), (40, map.len()));
    assert!(equal.memory().lookup_bytes < each.memory().lookup_bytes);
    let nothing = PrefixMap::<u128, u8>::new().compile().unwrap();
    assert_eq!(nothing.lookup(Ipv6Addr::LOCALHOST), None);
}

#[test]
fn both_families_are_kept_apart() {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let prefix = |text: &str| text.parse::<IpPrefix>().unwrap();
    let mut map: IpPrefixMap<u32> = [("192.0.2.0/24", 1), ("0.0.0.0/0", 2), ("2001:db8::/32", 3)]
        .map(|(text, value)| (prefix(text), value))
        .into();
    assert_eq!((map.len(), map.v4.len(), map.v6.len()), (3, 2, 1));
    let found = ["192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.1"]
        .map(|text| map.lookup(address(text)).copied());
    assert_eq!(found, [Some(1), Some(2), Some(3), None]);
    assert_eq!(map.lookup_prefix(address("10.0.0.1")), Some((prefix("0.0.0.0/0"), &2)));
    assert_eq!(map.lookup_prefix(address("2001:db8::1")), Some((prefix("2001:db8::/32"), &3)));
    assert_eq!(map.covers(address("192.0.2.1")).map(|(_, &value)| value).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(map.covers(address("2001:db8::1")).count(), 1);
    assert_eq!(map.subnets(prefix("128.0.0.0/1")).count() + map.subnets(prefix("::/0")).count(), 2);
    assert!(map.overlaps(prefix("2001::/16")) && !map.overlaps(prefix("2002::/16")));
    *map.entry(prefix("2001:db8::/32")).or_default() += 10;
    *map.entry(prefix("10.0.0.0/8")).and_modify(|_| unreachable!()).or_insert(5) += 10;
    assert_eq!(map.entry(prefix("::/0")).prefix(), prefix("::/0"));
    *map.lookup_mut(address("192.0.2.1")).unwrap() += 10;
    *map.get_mut(prefix("0.0.0.0/0")).unwrap() += 10;
    assert_eq!(map.values().copied().collect::<Vec<_>>(), [12, 15, 11, 13]);
    map.values_mut().for_each(|value| *value -= 10);
    map.iter_mut().for_each(|(_, value)| *value += 1);
    assert_eq!(format!("{map:?}"), "{0.0.0.0/0: 3, 10.0.0.0/8: 6, 192.0.2.0/24: 2, 2001:db8::/32: 4}");
    let compiled = map.compile().unwrap();
    assert_eq!(compiled.lookup(address("2001:db8::1")), Some(&4));
    assert!(compiled.memory().held_bytes() > 0 && map.memory().held_bytes() > 0);
    let copy = map.clone();
    map.retain(|prefix, _| prefix.len() > 0);
    assert!(map != copy && map.keys().count() == 3 && map.contains(prefix("10.0.0.0/8")));
    map.insert(prefix("11.0.0.0/8"), 6);
    assert_eq!((map.aggregate(), map.get(prefix("10.0.0.0/7"))), (1, Some(&6)));
    assert_eq!(map.remove(prefix("10.0.0.0/7")), Some(6));
    assert_eq!(copy.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), [3, 6, 2, 4]);
    map.clear();
    assert!(map.is_empty());
    assert_eq!(map.insert(Ipv6Addr::LOCALHOST, 1), None);
    assert_eq!(map.remove(Ipv6Addr::LOCALHOST), Some(1));
}

#[test]
fn bulk_operations_of_all_types_agree() {
    let mut random = Random(5);
    let mut entries = |count| -> Vec<(Prefix<u32>, u32)> {
        let mut prefix = || Prefix::masked((random.below(256) as u32) << 24, random.below(9) as u8).unwrap();
        (0..count).map(|at| (prefix(), at)).collect()
    };
    for limits in [Limits::default(), Limits::within(1 << 20)] {
        let first = entries(200);
        let prefixes =
            |entries: &[(Prefix<u32>, u32)]| entries.iter().map(|entry| entry.0).collect::<Vec<_>>();
        let mut map = PrefixMap::from_entries(first.clone(), limits);
        let mut both = IpPrefixMap::from_entries(first.clone(), limits);
        let mut set = PrefixSet::from_entries(prefixes(&first), limits);
        both.insert(Ipv6Addr::LOCALHOST, 7);
        for round in 0..4 {
            let model: std::collections::BTreeMap<_, _> =
                map.iter().map(|(prefix, &value)| (prefix, value)).collect();
            assert!(set.iter().eq(model.keys().copied()) && both.v4 == map);
            let keys: Vec<u32> = (0..99).map(|at| at << 24 | 5 << 16).collect();
            let addresses: Vec<IpAddr> = keys.iter().map(|&key| Ipv4Addr::from(key).into()).collect();
            let (mut found, mut found_both, mut found_set) = ([None; 99], [None; 99], [None; 99]);
            map.lookup_batch(&keys, &mut found);
            both.lookup_batch(&addresses, &mut found_both);
            set.lookup_batch(&keys, &mut found_set);
            assert_eq!(found, found_both);
            for (at, &key) in keys.iter().enumerate() {
                assert_eq!(found_set[at].map(|prefix| &model[&prefix]), found[at]);
                let host = Prefix::masked(key, 9).unwrap();
                let longest = model.keys().copied().filter(|prefix| prefix.covers(host));
                assert_eq!(found_set[at], longest.max_by_key(|prefix| prefix.len()));
                let parent = map.parent(host).map(|(prefix, _)| prefix);
                assert_eq!(
                    (set.parent(host), both.parent(host).map(|(prefix, _)| prefix)),
                    (parent, parent.map(IpPrefix::from))
                );
                assert!(set.iter_after(host).eq(map.iter_after(host).map(|(prefix, _)| prefix)));
            }
            let inside = Prefix::masked(round << 30, 3).unwrap();
            let removed = map.remove_subnets(inside);
            assert_eq!((set.remove_subnets(inside), both.remove_subnets(inside)), (removed, removed));
            map.retain(|prefix, _| prefix.addr() >> 24 & 3 != round);
            both.retain(
                |prefix, _| !matches!(prefix, IpPrefix::V4(prefix) if prefix.addr() >> 24 & 3 == round),
            );
            set.retain(|prefix| prefix.addr() >> 24 & 3 != round);
            assert_eq!(set.clone().into_iter().collect::<PrefixSet<u32>>(), set);
            assert!(set.iter().eq(map.keys()) && both.v4 == map && both.v6.len() == 1);
            map.check().unwrap();
            both.check().unwrap();
            set.check().unwrap();
            let next = entries(50 * round);
            map.replace(next.clone());
            set.replace(prefixes(&next));
            both.replace(next.into_iter().map(|(prefix, value)| (IpPrefix::from(prefix), value)));
            assert!(both.v6.is_empty());
            both.insert(Ipv6Addr::LOCALHOST, 7);
        }
        both.shrink();
        // The limits stay.
        let many = || (0..100_000).map(|at| (Prefix::host(at), at));
        let (held, len) = (map.clone(), both.len());
        let is_limited = limits != Limits::default();
        assert_eq!(
            (map.try_replace(many()).is_err(), both.try_replace(many()).is_err()),
            (is_limited, is_limited)
        );
        assert_eq!(set.try_replace(many().map(|entry| entry.0)).is_err(), is_limited);
        assert_eq!((map == held, both.len() == len), (is_limited, is_limited));
        both.set_limits(Limits::within(0));
        set.set_limits(Limits::within(0));
        assert!(both.try_replace(many()).is_err() && set.try_replace(many().map(|entry| entry.0)).is_err());
        assert!(PrefixMap::try_from_entries(many(), Limits::within(0)).is_err());
    }
}

#[test]
fn sets_of_addresses_join_ranges_that_meet_or_touch() {
    let joined = |ranges: &[(u32, u32)]| {
        let mut set = AddressSet::<u32>::default();
        ranges.iter().for_each(|&(first, last)| set.insert_range(first..=last));
        set.check().unwrap();
        let contains = |address: u32| ranges.iter().any(|&(first, last)| (first..=last).contains(&address));
        assert!((0..50).all(|address| set.contains(address) == contains(address)), "{ranges:?}");
        set.ranges().map(RangeInclusive::into_inner).collect::<Vec<_>>()
    };
    assert_eq!(joined(&[(10, 20), (15, 30)]), [(10, 30)]);
    assert_eq!(joined(&[(10, 20), (5, 15)]), [(5, 20)]);
    assert_eq!(joined(&[(10, 20), (21, 30)]), [(10, 30)]);
    assert_eq!(joined(&[(10, 20), (22, 30)]), [(10, 20), (22, 30)]);
    assert_eq!(joined(&[(10, 20), (30, 40), (12, 35)]), [(10, 40)]);
    assert_eq!(joined(&[(10, 20), (0, u32::MAX)]), [(0, u32::MAX)]);
}

#[test]
fn sets_are_made_of_arrays() {
    let set = PrefixSet::from([net("192.0.2.0/24"), net("10.0.0.0/8")]);
    assert!(set.iter().eq([net("10.0.0.0/8"), net("192.0.2.0/24")]));
}
