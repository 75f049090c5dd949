//! Maps that are made and replaced as a whole, against a model; refusals, readers meanwhile, and one-off reads.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::shared_tests::{Calling, Counted, prefix};
use super::{IpPrefixMap, SharedPrefixMap};
use crate::live::{Options, TableError};
use crate::memory::Limits;
use crate::net::{IpPrefix, Prefix};
use crate::random::Random;

type Model = BTreeMap<IpPrefix, u32>;

fn random_prefix(random: &mut Random) -> IpPrefix {
    let bits = random.below(1 << 12);
    match random.below(3) {
        0 => Prefix::masked((bits as u128) << 116, random.below(13) as u8).unwrap().into(),
        _ => Prefix::masked((bits as u32) << 20, random.below(13) as u8).unwrap().into(),
    }
}

fn random_entries(random: &mut Random, most: u64) -> Vec<(IpPrefix, u32)> {
    let count = random.below(most);
    (0..count).map(|_| (random_prefix(random), random.below(20) as u32)).collect()
}

fn contains(prefix: IpPrefix, key: u32) -> bool {
    matches!(prefix, IpPrefix::V4(prefix) if prefix.contains(key))
}

fn compare(map: &SharedPrefixMap<u32>, model: &Model, random: &mut Random) {
    let expected: Vec<_> = model.iter().map(|(&prefix, &value)| (prefix, value)).collect();
    assert_eq!(map.entries().unwrap(), expected);
    assert_eq!(map.iter().collect::<Result<Vec<_>, _>>().unwrap(), expected);
    let owned: IpPrefixMap<u32> = expected.into_iter().collect();
    let copied = |(prefix, &value): (IpPrefix, &u32)| (prefix, value);
    let keys: Vec<u32> = (0..70).map(|_| (random.below(1 << 12) as u32) << 20 | 9).collect();
    let mut reader = map.reader().unwrap();
    let pin = reader.pin();
    pin.batch(&keys).for_each(|at, value| {
        let longest = model.iter().filter(|&(&prefix, _)| contains(prefix, keys[at]));
        assert_eq!(value, longest.max_by_key(|(prefix, _)| prefix.len()).map(|(_, value)| value));
    });
    for key in keys.into_iter().take(9).map(core::net::Ipv4Addr::from) {
        assert_eq!(map.lookup(key, |&value| value).unwrap(), owned.lookup(key).copied());
        let found = map.lookup_prefix(key, |prefix, &value| (prefix, value)).unwrap();
        assert_eq!(found, owned.lookup_prefix(key).map(copied));
    }
    for _ in 0..9 {
        let prefix = random_prefix(random);
        assert_eq!(map.get(prefix, |&value| value).unwrap(), model.get(&prefix).copied());
        assert_eq!(map.contains(prefix).unwrap(), model.contains_key(&prefix));
        assert_eq!(map.covers(prefix).unwrap(), owned.covers(prefix).map(copied).collect::<Vec<_>>());
        assert_eq!(map.subnets(prefix).unwrap(), owned.subnets(prefix).map(copied).collect::<Vec<_>>());
        assert_eq!(map.overlaps(prefix).unwrap(), owned.overlaps(prefix));
        let parent = map.parent(prefix, |prefix, &value| (prefix, value)).unwrap();
        assert_eq!(parent, owned.parent(prefix).map(copied));
        let after: Vec<_> = map.iter_after(prefix).collect::<Result<_, _>>().unwrap();
        assert_eq!(after, owned.iter_after(prefix).map(copied).collect::<Vec<_>>());
    }
}

/// Makes random changes of every kind to a map and to the model.
fn changes_as_a_model(options: Options, is_interning: bool, seed: u64) {
    let mut random = Random(seed);
    let entries = random_entries(&mut random, 900);
    let mut model: Model = entries.iter().copied().collect();
    let map = if is_interning {
        SharedPrefixMap::from_entries_interning(entries, options).unwrap()
    } else {
        SharedPrefixMap::from_entries(entries, options).unwrap()
    };
    for step in 0..if cfg!(miri) { 3 } else { 20 } {
        match random.below(5) {
            0 => {
                let (entries, before) = (random_entries(&mut random, 900), model.clone());
                model = entries.iter().copied().collect();
                let changed = map.replace(entries).unwrap();
                let keys = before.keys().chain(model.keys()).collect::<std::collections::BTreeSet<_>>();
                let different = keys.iter().filter(|key| before.get(key) != model.get(key)).count();
                assert_eq!(changed, if is_interning { different } else { keys.len() });
            }
            // A few differences.
            1 => {
                random_entries(&mut random, 9).into_iter().for_each(|(prefix, value)| {
                    let _ = model.insert(prefix, value);
                });
                let gone = model.keys().nth(random.below(9) as usize).copied();
                gone.map(|gone| model.remove(&gone));
                map.replace(model.clone()).unwrap();
            }
            2 => {
                let (divisor, rest) = (2 + random.below(5) as u32, random.below(2) as u32);
                let before = model.len();
                model.retain(|prefix, value| (*value + u32::from(prefix.len())) % divisor != rest);
                let removed =
                    map.retain(|prefix, value| (*value + u32::from(prefix.len())) % divisor != rest).unwrap();
                assert_eq!(removed, before - model.len());
            }
            3 => {
                let entries = random_entries(&mut random, 300);
                model.extend(entries.iter().copied());
                assert_eq!(map.extend(entries.clone()), Ok(entries.len()));
            }
            _ => {
                let (prefix, value) = (random_prefix(&mut random), random.below(20) as u32);
                assert_eq!(map.remove(prefix).unwrap(), model.remove(&prefix).is_some());
                let prefix = random_prefix(&mut random);
                assert_eq!(map.insert(prefix, value).unwrap(), model.insert(prefix, value).is_some());
            }
        }
        map.flush().unwrap();
        compare(&map, &model, &mut random);
        if step % 3 == 0 {
            map.check().unwrap();
        }
    }
    assert_eq!(map.clear(), Ok(model.len()));
    map.maintain().unwrap();
    assert_eq!((map.is_empty(), map.value_count()), (Ok(true), Ok(0)));
    map.check().unwrap();
}

#[test]
fn maps_change_as_a_model() {
    let second = Duration::from_secs(1);
    for seed in 0..if cfg!(miri) { 1 } else { 3 } {
        changes_as_a_model(Options::default(), true, seed);
        changes_as_a_model(Options::default(), false, seed + 100);
        let options = Options { aggregate: true, coalesce: second, ..Options::default() };
        changes_as_a_model(options, true, seed + 200);
        changes_as_a_model(Options { background: true, ..options }, seed % 2 == 0, seed + 300);
    }
}

#[test]
fn engines_that_are_built_anew_are_replaced_too() {
    let options = Options::of::<crate::engines::RangeBtree, crate::engines::PlanB>();
    changes_as_a_model(options, true, 1);
    changes_as_a_model(options, false, 2);
    // A structure that is being built when its routes go.
    changes_as_a_model(Options { background: true, ..options }, true, 3);
}

#[test]
fn the_last_value_of_a_prefix_counts() {
    let count = Arc::new(AtomicUsize::new(0));
    let entries =
        (0..100).map(|at| (prefix(["10.0.0.0/8", "::/0"][at as usize % 2]), Counted::new(&count, at)));
    let map = SharedPrefixMap::from_entries(entries, Options::default()).unwrap();
    assert_eq!((map.get(prefix("10.0.0.0/8"), |value| value.1), map.len()), (Ok(Some(98)), Ok(2)));
    assert_eq!((map.get(prefix("::/0"), |value| value.1), count.load(Ordering::Relaxed)), (Ok(Some(99)), 2));
}

#[test]
fn replaced_values_are_dropped_once_no_reader_has_them() {
    let count = Arc::new(AtomicUsize::new(0));
    let entries =
        |values| (0..500).map(move |at| (IpPrefix::from(core::net::Ipv4Addr::from(at << 8)), values + at));
    let counted = |values| entries(values).map(|(prefix, value)| (prefix, Counted::new(&count, value)));
    let map = SharedPrefixMap::from_entries(counted(0), Options::default()).unwrap();
    let mut reader = map.reader().unwrap();
    let pin = reader.pin();
    let before = pin.lookup(7_u32 << 8).unwrap();
    assert_eq!(map.replace(counted(1000)), Ok(500));
    map.maintain().unwrap();
    assert_eq!((before.1, count.load(Ordering::Relaxed)), (7, 1000));
    // A pin has the structures of its time, with their values.
    assert_eq!(pin.lookup(8_u32 << 8).unwrap().1, 8);
    drop(pin);
    assert_eq!(map.replace(counted(2000)), Ok(500));
    assert_eq!((map.value_count(), count.load(Ordering::Relaxed)), (Ok(500), 500));
    assert_eq!(map.retain(|_, value| value.1 % 2 == 0), Ok(250));
    (0..2).for_each(|_| map.maintain().unwrap());
    assert_eq!((map.value_count(), count.load(Ordering::Relaxed)), (Ok(250), 250));
    map.check().unwrap();
    drop((reader, map));
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[test]
fn values_may_call_the_map_when_they_are_replaced() {
    let count = Arc::new(AtomicUsize::new(0));
    let options = Options { limits: Limits::within(1 << 20), ..Options::default() };
    let map = Arc::new(SharedPrefixMap::interning(options).unwrap());
    let value = |number| Calling(Arc::downgrade(&map), Arc::clone(&count), number);
    let entries =
        |from: u32| (0..5).map(move |at| (IpPrefix::from(core::net::Ipv4Addr::from(at)), from + at % 2));
    map.replace(entries(0).map(|(prefix, number)| (prefix, value(number)))).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 3);
    map.replace(entries(1).map(|(prefix, number)| (prefix, value(number)))).unwrap();
    // Four equal ones, and the one that no prefix has any more.
    assert_eq!((count.load(Ordering::Relaxed), map.value_count()), (3 + 4 + 1, Ok(2)));
    // Those of a refused replacement, which is larger than the limit.
    let entries = (0..40_000).map(|at| (IpPrefix::from(core::net::Ipv4Addr::from(at << 8)), value(9)));
    assert!(map.replace(entries).is_err());
    (0..2).for_each(|_| map.maintain().unwrap());
    assert_eq!((count.load(Ordering::Relaxed), map.value_count()), (8 + 40_000, Ok(2)));
    map.check().unwrap();
}

#[test]
fn refused_replacements_leave_the_map_as_it_was() {
    let count = Arc::new(AtomicUsize::new(0));
    let entries = |number: u32, of: u32| {
        let count = Arc::clone(&count);
        (0..number)
            .map(move |at| (IpPrefix::from(core::net::Ipv4Addr::from(at << 12)), Counted::new(&count, of)))
    };
    let mut refusals = 0;
    for kibibytes in [600, 700, 800, 1000, 1500] {
        let options = Options { limits: Limits::within(kibibytes << 10), ..Options::default() };
        let Ok(map) = SharedPrefixMap::from_entries(entries(50, 1), options) else { continue };
        let mut held = 50;
        let mut reader = map.reader().unwrap();
        for (round, number) in [100, 2_000, 10_000, 60_000, 5, 30_000].into_iter().enumerate() {
            let of = 2 + round as u32;
            let is_replaced = match map.replace(entries(number, of)) {
                Ok(_) => true,
                Err(error) => {
                    let is_memory = matches!(
                        error,
                        TableError::Memory(_) | TableError::Routes(_) | TableError::Structure(_)
                    );
                    assert!(is_memory, "{error:?}");
                    false
                }
            };
            refusals += usize::from(!is_replaced);
            held = if is_replaced { number } else { held };
            map.check().unwrap();
            (0..2).for_each(|_| map.maintain().unwrap());
            assert_eq!((map.len(), map.value_count()), (Ok(held as usize), Ok(held as usize)));
            assert_eq!(count.load(Ordering::Relaxed), held as usize);
            let pin = reader.pin();
            assert!(pin.lookup((held - 1) << 12).is_some() && pin.lookup(held << 12).is_none());
        }
        drop((reader, map));
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
    assert!(refusals > 3, "{refusals}");
}

/// Equal values are dropped when the new map serves already. That of 1 then makes a change in which the hash of another value panics.
struct Poisoning(Weak<SharedPrefixMap<Poisoning>>, u32);

impl PartialEq for Poisoning {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

impl Eq for Poisoning {}

impl Hash for Poisoning {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(self.1 < 9, "on purpose");
        self.1.hash(state);
    }
}

impl Drop for Poisoning {
    fn drop(&mut self) {
        if self.1 == 1
            && let Some(map) = self.0.upgrade()
        {
            let insert = || drop(map.insert(prefix("12.0.0.0/8"), Self(Weak::new(), 9)));
            assert!(catch_unwind(AssertUnwindSafe(insert)).is_err());
        }
    }
}

/// A call that fails has left the old map; this one has not, so it does not fail.
#[test]
fn a_replacement_that_serves_is_no_failure_where_its_values_are_dropped() {
    let map = Arc::new(SharedPrefixMap::interning(Options::default()).unwrap());
    let entries = |values: [u32; 2]| {
        let value = |number| Poisoning(Arc::downgrade(&map), number);
        [(prefix("10.0.0.0/8"), value(values[0])), (prefix("11.0.0.0/8"), value(values[1]))]
    };
    let mut reader = map.reader().unwrap();
    assert_eq!(map.replace(entries([2, 3])), Ok(2));
    assert_eq!(map.replace(entries([1, 1])), Ok(2));
    assert_eq!(reader.pin().lookup(10_u32 << 24).map(|value| value.1), Some(1));
    assert_eq!(map.replace(entries([4, 5])), Err(TableError::Poisoned));
    assert_eq!(reader.pin().lookup(11_u32 << 24).map(|value| value.1), Some(1));
}

#[test]
fn a_stalled_reader_refuses_replacements() {
    let options = Options { retired_bytes: 0, patience: Duration::ZERO, ..Options::default() };
    let map = SharedPrefixMap::from_entries([(prefix("10.0.0.0/8"), 0)], options).unwrap();
    let mut reader = map.reader().unwrap();
    let pin = reader.pin();
    assert_eq!(map.replace([(prefix("10.0.0.0/8"), 1)]), Ok(1));
    assert!(matches!(map.replace([(prefix("10.0.0.0/8"), 2)]), Err(TableError::Stalled { .. })));
    assert_eq!(
        (pin.lookup(10_u32 << 24), map.entries().unwrap()),
        (Some(&0), vec![(prefix("10.0.0.0/8"), 1)])
    );
    drop(pin);
    assert_eq!(map.replace([(prefix("10.0.0.0/8"), 2)]), Ok(1));
    map.check().unwrap();
}

/// Replaces a map again and again, while readers look all of it up by one pin.
fn whole_versions(map: &SharedPrefixMap<u32>, entries: impl Fn(u32) -> Vec<(IpPrefix, u32)>, rounds: u32) {
    let is_over = AtomicBool::new(false);
    // Of both families, by batches and alone. No two replacements have a value in common.
    let keys: Vec<u32> = (0..700).map(|at| at << 20 | 5).collect();
    map.replace(entries(0)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let mut reader = map.reader().unwrap();
            let (keys, is_over) = (&keys, &is_over);
            scope.spawn(move || {
                let mut pin = reader.pin();
                let (mut newest, mut seen) = (0, 0);
                while !is_over.load(Ordering::Relaxed) {
                    pin.refresh();
                    let generation = *pin.lookup(0_u32).unwrap();
                    pin.batch(keys).for_each(|_, value| assert_eq!(value, Some(&generation)));
                    assert_eq!(pin.lookup(1_u128 << 100), Some(&generation));
                    assert!(generation >= newest);
                    seen += usize::from(generation > newest);
                    newest = generation;
                }
                seen
            });
        }
        for round in 1..=rounds {
            map.replace(entries(round)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    map.check().unwrap();
}

#[test]
fn readers_see_whole_versions_only() {
    let rounds = if cfg!(miri) { 5 } else { 60 };
    for map in [SharedPrefixMap::new().unwrap(), SharedPrefixMap::interning(Options::default()).unwrap()] {
        // All prefixes get another value, and some of them come and go: structures are built.
        let all = |round: u32| {
            let mut entries = vec![(prefix("0.0.0.0/0"), round), (prefix("::/0"), round)];
            let some = (0..700).filter(|at: &u32| !(at + round).is_multiple_of(3));
            entries.extend(some.map(|at| (Prefix::masked(at << 20, 12).unwrap().into(), round)));
            entries
        };
        whole_versions(&map, all, rounds);
    }
    // The generation is in few prefixes, of both families, among many that stay: changes in place.
    let map = SharedPrefixMap::interning(Options::default()).unwrap();
    let few = |round: u32| {
        let mut entries = vec![(prefix("0.0.0.0/0"), round), (prefix("::/0"), round)];
        entries.extend(
            (0..4000).map(|at| (Prefix::masked(0xf000_0000_u32 | at << 8, 24).unwrap().into(), 1 << 20)),
        );
        entries
    };
    whole_versions(&map, few, rounds);
}

#[test]
fn changes_that_wait_are_seen_with_a_replacement() {
    let options = Options { coalesce: Duration::from_secs(1000), ..Options::default() };
    // IPv4 has few differences, which are changed in place, or many, for which its structure is built.
    for few in [1_u32, 1000] {
        let map = SharedPrefixMap::from_entries_interning([(prefix("::/0"), 1)], options).unwrap();
        let many = (0..few).map(|at| (Prefix::masked(at << 12, 24).unwrap().into(), 5));
        let entries: Vec<_> =
            [(prefix("::/0"), 1), (prefix("2001:db8::/32"), 2)].into_iter().chain(many).collect();
        map.replace(
            (0..9).map(|at| (IpPrefix::from(core::net::Ipv6Addr::from(at)), 3)).chain(entries.clone()),
        )
        .unwrap();
        map.insert(prefix("2001:db8::/32"), 4).unwrap();
        map.extend((0..9).map(|at| (core::net::Ipv6Addr::from(at), 6))).unwrap();
        let mut reader = map.reader().unwrap();
        assert_eq!(reader.pin().lookup(0x2001_0db8_u128 << 96), Some(&2));
        // IPv6 as the changes that wait have left it.
        let mut now = map.entries().unwrap();
        let of_v4 = now.iter_mut().filter(|(prefix, _)| matches!(prefix, IpPrefix::V4(_)));
        of_v4.for_each(|(_, value)| *value = 7);
        assert_eq!(map.replace(now), Ok(few as usize));
        let pin = reader.pin();
        assert_eq!((pin.lookup(5_u32), pin.lookup(0x2001_0db8_u128 << 96)), (Some(&7), Some(&4)));
        assert_eq!(pin.lookup(5_u128), Some(&6));
        drop(pin);
        map.check().unwrap();
    }
}

#[test]
fn panics_of_closures_leave_the_map_usable() {
    let map = SharedPrefixMap::from_entries([(prefix("10.0.0.0/8"), 1)], Options::default()).unwrap();
    let panics = |call: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    panics(&|| drop(map.get(prefix("10.0.0.0/8"), |_| panic!("of a closure"))));
    panics(&|| drop(map.for_each(|_, _| panic!("of a closure"))));
    panics(&|| drop(map.retain(|_, _| panic!("of a closure"))));
    panics(&|| drop(map.lookup_prefix(core::net::Ipv4Addr::new(10, 0, 0, 1), |_, _| panic!("of a closure"))));
    panics(&|| {
        drop(map.replace([0].map(|_| (prefix("10.0.0.0/8"), 2)).into_iter().inspect(|_| panic!("here"))));
    });
    assert_eq!((map.len(), map.get(prefix("10.0.0.0/8"), |&value| value)), (Ok(1), Ok(Some(1))));
    assert_eq!(map.remove(prefix("10.0.0.0/8")), Ok(true));
    map.check().unwrap();
}

#[test]
fn iterators_see_changes_between_pages() {
    let entries = (0..1000).map(|at| (IpPrefix::from(core::net::Ipv4Addr::from(at)), at));
    let map = SharedPrefixMap::from_entries(entries, Options::default()).unwrap();
    let mut iter = map.iter();
    assert_eq!(iter.next().unwrap().unwrap().1, 0);
    // In the page that was read, and in one that was not.
    map.remove(core::net::Ipv4Addr::from(1)).unwrap();
    map.remove(core::net::Ipv4Addr::from(900)).unwrap();
    map.insert(core::net::Ipv6Addr::LOCALHOST, 7).unwrap();
    let rest: Vec<u32> = iter.map(|entry| entry.unwrap().1).collect();
    assert_eq!(rest, (1..1000).filter(|&at| at != 900).chain([7]).collect::<Vec<_>>());
}
