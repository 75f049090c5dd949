//! Cases that the test machine cannot cover: pins, drops, refusals, and threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::Duration;

use super::word::HopWord;
use super::{HopsError, NextHops, Resolved};
use crate::live::{Options, Table};
use crate::memory::Limits;
use crate::net::{IpPrefix, NextHop};
use crate::random::Random;
use crate::rib::DualRib;

fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

/// Counts its instances.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>, u32);

impl Counted {
    fn new(count: &Arc<AtomicUsize>, number: u32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count), number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls the next hops when it is dropped, and counts how often the call was answered.
struct Calling(Weak<NextHops<Calling>>, Arc<AtomicUsize>);

impl Drop for Calling {
    fn drop(&mut self) {
        let Some(hops) = self.0.upgrade() else { return };
        let (answered, answer) = mpsc::channel();
        // From another thread: a call under the lock would wait for ever, and so would the test.
        std::thread::spawn(move || answered.send(hops.statistics().is_ok()));
        let is_answered = answer.recv_timeout(Duration::from_secs(60)).unwrap_or(false);
        self.1.fetch_add(usize::from(is_answered), Ordering::Relaxed);
    }
}

#[test]
fn values_may_call_the_next_hops_when_they_are_dropped() {
    let count = Arc::new(AtomicUsize::new(0));
    let hops = Arc::new(NextHops::new(&Table::new().unwrap()).unwrap());
    let value = || Calling(Arc::downgrade(&hops), Arc::clone(&count));
    let one = hops.add(value()).unwrap();
    hops.change(one, value()).unwrap();
    hops.remove(one).unwrap();
    // Also a value that is refused.
    assert_eq!(hops.change(hop(7), value()), Err(HopsError::Unknown(hop(7))));
    for _ in 0..4 {
        hops.maintain().unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn routes_follow_a_change_and_a_withdrawal_at_once() {
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let id = hops.add("old").unwrap();
    assert_eq!(id, hop(1));
    table.insert(prefix("192.0.2.0/24"), id).unwrap();
    table.insert(prefix("2001:db8::/32"), id).unwrap();
    let mut reader = hops.reader().unwrap();
    let pin = reader.pin();
    let keys = (0xc000_0201_u32, 0x2001_0db8_u128 << 96);
    let both = |pin: &crate::Pinned<'_, NextHops<&'static str>>| {
        (pin.lookup(keys.0, 7).value().copied(), pin.lookup(keys.1, 7).value().copied())
    };
    assert_eq!(both(&pin), (Some("old"), Some("old")));
    // Under the same pin, since a pin holds memory in place and not the state.
    hops.change(id, "new").unwrap();
    assert_eq!(both(&pin), (Some("new"), Some("new")));
    assert_eq!(hops.withdraw(id), Ok(true));
    assert_eq!(hops.withdraw(id), Ok(false));
    assert_eq!(pin.lookup(keys.0, 7), Resolved::Withdrawn(id));
    assert_eq!(pin.lookup(0x0a00_0001_u32, 7), Resolved::NoRoute);
    assert_eq!(pin.get(id), None);
    assert_eq!(hops.get(id), Ok(None));
    hops.change(id, "back").unwrap();
    assert_eq!(both(&pin), (Some("back"), Some("back")));
    assert_eq!(hops.statistics().unwrap().withdrawn_lookups, 1);
    hops.check().unwrap();
}

#[test]
fn batches_say_what_single_lookups_do() {
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let ids: Vec<_> = (0..5).map(|number| hops.add(number).unwrap()).collect();
    let group = hops.add_group(&[(ids[0], 1), (ids[1], 2)]).unwrap();
    hops.withdraw(ids[4]).unwrap();
    let of = [group, ids[2], ids[4], hop(77), ids[3]];
    for (at, &id) in of.iter().enumerate() {
        table.insert(prefix(&format!("10.{at}.0.0/16")), id).unwrap();
    }
    let mut random = Random(3);
    let keys: Vec<u32> = (0..700).map(|_| 0x0a00_0000 + (random.below(7) << 16) as u32).collect();
    let hashes: Vec<u32> = (0..700).map(|_| random.below(1 << 31) as u32).collect();
    let mut reader = hops.reader().unwrap();
    let pin = reader.pin();
    let (mut members, mut again, mut found) = (vec![None; 700], vec![None; 700], vec![None; 700]);
    let counts = pin.lookup_batch(&keys, &hashes, &mut members);
    table.reader().unwrap().pin().lookup_batch(&keys, &mut found);
    assert_eq!(pin.resolve_batch(&found, &hashes, &mut again), counts);
    assert_eq!(members, again);
    let mut expected = super::Counts::default();
    for ((&key, &hash), &member) in keys.iter().zip(&hashes).zip(&members) {
        let resolved = pin.lookup(key, hash);
        assert_eq!(resolved.member(), member);
        assert_eq!(resolved.value(), member.and_then(|member| pin.get(member)));
        match resolved {
            Resolved::Found { .. } => expected.found += 1,
            Resolved::NoRoute => expected.no_route += 1,
            Resolved::Withdrawn(id) => expected.withdrawn += usize::from(id == ids[4]),
            Resolved::Unknown(id) => expected.unknown += usize::from(id == hop(77)),
        }
    }
    assert_eq!(counts, expected);
    assert!(pin.get(group).is_none(), "a group has no value");
    let statistics = hops.statistics().unwrap();
    assert_eq!(statistics.withdrawn_lookups, 3 * counts.withdrawn as u64);
    assert_eq!(statistics.unknown_lookups, 3 * counts.unknown as u64);
    drop(pin);
    drop(reader);
    assert_eq!(hops.statistics().unwrap().unknown_lookups, 3 * counts.unknown as u64);
}

/// Asks for a lookup in another thread when it is cloned, and waits for the answer.
struct Asking(mpsc::Sender<()>, Arc<Mutex<mpsc::Receiver<bool>>>);

impl Clone for Asking {
    fn clone(&self) -> Self {
        self.0.send(()).unwrap();
        let is_found = self.1.lock().unwrap().recv_timeout(Duration::from_secs(60));
        assert_eq!(is_found, Ok(true));
        Self(self.0.clone(), Arc::clone(&self.1))
    }
}

#[test]
fn lookups_go_on_while_a_thread_holds_the_next_hops() {
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let (ask, asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    let id = hops.add(Asking(ask, Arc::new(Mutex::new(answered)))).unwrap();
    table.insert(prefix("10.0.0.0/8"), id).unwrap();
    let mut reader = hops.reader().unwrap();
    let thread = std::thread::spawn(move || {
        asked.recv().unwrap();
        answer.send(reader.pin().lookup(0x0a00_0001_u32, 0).value().is_some()).unwrap();
    });
    // The value is cloned under the locks of the next hops and of the table.
    assert!(hops.get(id).unwrap().is_some());
    thread.join().unwrap();
}

#[test]
fn numbers_are_reused_when_no_route_and_no_reader_has_them() {
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let [one, two] = [1, 2].map(|number| hops.add(Counted::new(&count, number)).unwrap());
    table.insert(prefix("10.0.0.0/8"), one).unwrap();
    hops.release(one).unwrap();
    hops.maintain().unwrap();
    assert_eq!(hops.release(one), Err(HopsError::Unknown(one)));
    assert!(HopsError::Unknown(one).to_string().starts_with(&format!("next hop {one} was not added")));
    assert_eq!(hops.change(one, Counted::new(&count, 9)), Err(HopsError::Unknown(one)));
    // A route has it: it resolves, and is not given out.
    let mut reader = hops.reader().unwrap();
    let pin = reader.pin();
    assert_eq!(pin.lookup(0x0a00_0001_u32, 0).value().unwrap().1, 1);
    let three = hops.add(Counted::new(&count, 3)).unwrap();
    assert_eq!(three, hop(3));
    table.insert(prefix("10.0.0.0/8"), two).unwrap();
    // The reader may have found the number before.
    for _ in 0..4 {
        hops.maintain().unwrap();
    }
    assert_eq!(pin.resolve(Some(one), 0).value().unwrap().1, 1);
    assert_eq!(hops.add(Counted::new(&count, 4)).unwrap(), hop(4));
    assert_eq!(count.load(Ordering::Relaxed), 4);
    drop(pin);
    for _ in 0..4 {
        hops.maintain().unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 3);
    assert_eq!(reader.pin().resolve(Some(one), 0).member(), None);
    assert_eq!(hops.add(Counted::new(&count, 5)).unwrap(), one);
    hops.check().unwrap();
    table.check().unwrap();
    drop((reader, hops));
    assert_eq!(count.load(Ordering::Relaxed), 0, "all values are dropped with the last handle");
}

#[test]
fn numbers_that_waiting_changes_may_still_show_are_not_reused() {
    let options = Options { coalesce: Duration::from_secs(3600), ..Options::default() };
    let table = Table::from_routes(DualRib::default(), options).unwrap();
    let hops = NextHops::new(&table).unwrap();
    let (one, two) = (hops.add(1).unwrap(), hops.add(2).unwrap());
    table.insert(prefix("10.0.0.0/8"), one).unwrap();
    table.flush().unwrap();
    table.insert(prefix("10.0.0.0/8"), two).unwrap();
    hops.release(one).unwrap();
    for _ in 0..4 {
        hops.maintain().unwrap();
    }
    let mut reader = hops.reader().unwrap();
    assert_eq!(reader.pin().lookup(0x0a00_0001_u32, 0).value(), Some(&1));
    assert_eq!(hops.add(3).unwrap(), hop(3));
    table.flush().unwrap();
    for _ in 0..4 {
        hops.maintain().unwrap();
    }
    assert_eq!(hops.add(4).unwrap(), one);
    hops.check().unwrap();
}

#[test]
fn numbers_that_routes_had_before_are_not_given_out() {
    let table = Table::new().unwrap();
    table.insert(prefix("10.0.0.0/8"), hop(2)).unwrap();
    table.insert(prefix("10.0.0.0/9"), hop(u32::MAX)).unwrap();
    let hops = NextHops::new(&table).unwrap();
    assert_eq!(NextHops::<u32>::new(&table).unwrap_err(), HopsError::Numbered);
    assert_eq!([hops.add(1), hops.add(3)], [Ok(hop(1)), Ok(hop(3))]);
    assert_eq!(hops.reader().unwrap().pin().lookup(0x0aff_0001_u32, 0), Resolved::Unknown(hop(2)));
    assert_eq!((hops.routes_of(hop(2)), hops.routes_of(hop(u32::MAX))), (Ok(1), Ok(1)));
    hops.check().unwrap();
    table.remove(prefix("10.0.0.0/8")).unwrap();
    for _ in 0..4 {
        hops.maintain().unwrap();
    }
    assert_eq!(hops.add(2), Ok(hop(2)));
    // A free number is kept back if a route gets it nevertheless.
    hops.release(hop(3)).unwrap();
    for _ in 0..4 {
        hops.maintain().unwrap();
    }
    table.insert(prefix("10.0.0.0/8"), hop(3)).unwrap();
    assert_eq!(hops.add(4), Ok(hop(4)));
    hops.check().unwrap();
    drop(hops);
    NextHops::<u32>::new(&table).unwrap();
}

#[test]
fn equal_groups_are_one() {
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let (a, b) = (hops.add('a').unwrap(), hops.add('b').unwrap());
    let group = hops.add_group(&[(a, 2), (b, 4)]).unwrap();
    assert_eq!(hops.add_group(&[(b, 2), (a, 1)]), Ok(group));
    assert_ne!(hops.add_group_with(&[(a, 1), (b, 2)], 128), Ok(group));
    assert_eq!(hops.members(group).unwrap(), [(a, 1, 21), (b, 2, 43)]);
    assert_eq!(hops.change_group(group, &[(a, 1)]), Err(HopsError::Shared { group, holds: 2 }));
    hops.release(group).unwrap();
    hops.change_group(group, &[(a, 1)]).unwrap();
    assert_eq!(hops.members(group).unwrap(), [(a, 1, 64)]);
    assert_eq!(hops.add_group(&[(a, 5)]), Ok(group));
    let other = hops.add_group(&[(a, 1), (b, 2)]).unwrap();
    assert_ne!(other, group);
    assert_eq!(hops.statistics().unwrap().shared_groups, 2);
    // A next hop without a hold, but with a route, comes back.
    table.insert(prefix("10.0.0.0/8"), other).unwrap();
    hops.release(other).unwrap();
    hops.maintain().unwrap();
    assert_eq!(hops.add_group(&[(a, 1), (b, 2)]), Ok(other));
    hops.release(other).unwrap();
    table.remove(prefix("10.0.0.0/8")).unwrap();
    let mut reader = hops.reader().unwrap();
    let _pin = reader.pin();
    hops.maintain().unwrap();
    assert_ne!(hops.add_group(&[(a, 1), (b, 2)]), Ok(other), "a retired group is not returned");
    hops.check().unwrap();
    assert_eq!(hops.members(a), Err(HopsError::IsHop(a)));
    assert_eq!(hops.withdraw(group), Err(HopsError::IsGroup(group)));
    assert_eq!(hops.add_group(&[(group, 1)]), Err(HopsError::IsGroup(group)));
    assert_eq!(hops.add_group(&[(hop(99), 1)]), Err(HopsError::Unknown(hop(99))));
    hops.check().unwrap();
}

#[test]
fn a_member_that_goes_moves_only_its_own_flows() {
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let ids: Vec<_> = (0..4).map(|number| hops.add(number).unwrap()).collect();
    let members: Vec<_> = ids.iter().map(|&id| (id, 1)).collect();
    let group = hops.add_group(&members).unwrap();
    let mut reader = hops.reader().unwrap();
    let flows: Vec<u32> = (0..4000).collect();
    let mut ways = || -> Vec<_> {
        let pin = reader.pin();
        flows.iter().map(|&hash| pin.resolve(Some(group), hash).member()).collect()
    };
    let before = ways();
    hops.withdraw(ids[2]).unwrap();
    assert_eq!(hops.statistics().unwrap().moved_buckets, 16);
    let meanwhile = ways();
    for (new, old) in meanwhile.iter().zip(&before) {
        assert!(*new != Some(ids[2]) && (*old == Some(ids[2]) || new == old));
    }
    hops.change(ids[2], 2).unwrap();
    assert_eq!(hops.statistics().unwrap().moved_buckets, 32);
    let after = ways();
    assert!(after.iter().zip(&meanwhile).all(|(new, old)| new == old || *new == Some(ids[2])));
    // The same by a change of the group.
    hops.change_group(group, &members[..3]).unwrap();
    assert_eq!(hops.statistics().unwrap().moved_buckets, 48);
    assert!(ways().iter().zip(&after).all(|(new, old)| new == old || *old == Some(ids[3])));
    ids[..3].iter().for_each(|&id| assert!(hops.withdraw(id).unwrap()));
    assert_eq!(reader.pin().resolve(Some(group), 1), Resolved::Withdrawn(group));
    hops.check().unwrap();
    hops.change(ids[1], 1).unwrap();
    assert_eq!(reader.pin().resolve(Some(group), 1).value(), Some(&1));
    hops.check().unwrap();
}

#[test]
fn no_flow_goes_nowhere_between_the_stores_of_a_withdrawal() {
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let ids: Vec<_> = (0..3).map(|number| hops.add(number).unwrap()).collect();
    let group = hops.add_group(&ids.iter().map(|&id| (id, 1)).collect::<Vec<_>>()).unwrap();
    let mut reader = hops.reader().unwrap();
    let pin = reader.pin();
    let before: Vec<_> = (0..500).map(|hash| pin.resolve(Some(group), hash).member()).collect();
    // The state that readers see after the first store.
    pin.shared_words().store(ids[0], HopWord::WITHDRAWN);
    for (hash, before) in before.into_iter().enumerate() {
        let now = pin.resolve(Some(group), hash as u32).member();
        assert!(now.is_some() && now != Some(ids[0]) && (before == Some(ids[0]) || now == before));
    }
}

#[test]
fn refusals_change_nothing() {
    for kibibytes in [0, 1, 2, 4, 8, 16, 32] {
        let table = Table::new().unwrap();
        let hops = NextHops::within(&table, Limits::within(kibibytes << 10)).unwrap();
        let mut ids = Vec::new();
        let refused = loop {
            match hops.add([0_u64; 4]) {
                Ok(id) => ids.push(id),
                Err(error) => break error,
            }
            let numbers = hops.statistics().unwrap().numbers;
            let members: Vec<_> = ids.iter().map(|&id| (id, id.id())).collect();
            match hops.add_group(&members) {
                Ok(group) => {
                    let _ = hops.change_group(group, &members[members.len() / 2..]);
                }
                Err(error) => break error,
            }
            hops.check().unwrap();
            assert!(numbers < 10_000);
        };
        assert!(matches!(refused, HopsError::Memory(_)), "{refused}");
        hops.check().unwrap();
        ids.iter().for_each(|&id| assert!(hops.withdraw(id).unwrap()));
        hops.check().unwrap();
    }
}

/// A value whose parts a reader compares.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Versioned {
    number: u32,
    version: u32,
    sum: u32,
}

impl Versioned {
    fn new(number: u32, version: u32) -> Self {
        Self { number, version, sum: number.wrapping_mul(31) ^ version }
    }
}

#[test]
fn readers_meanwhile_see_whole_values_of_versions_that_were_current() {
    const HOPS: u32 = 8;
    let rounds = if cfg!(miri) { 20 } else { 4000 };
    let table = Table::new().unwrap();
    let hops = NextHops::new(&table).unwrap();
    let ids: Vec<_> = (0..HOPS).map(|number| hops.add(Versioned::new(number, 0)).unwrap()).collect();
    let group = hops.add_group(&ids.iter().map(|&id| (id, 1 + id.id() % 3)).collect::<Vec<_>>()).unwrap();
    table.insert(prefix("10.0.0.0/8"), group).unwrap();
    table.insert(prefix("11.0.0.0/8"), ids[0]).unwrap();
    // The newest version of each value that is surely published, and the newest that may be.
    let published: Vec<_> = (0..HOPS).map(|_| AtomicU32::new(0)).collect();
    let begun: Vec<_> = (0..HOPS).map(|_| AtomicU32::new(0)).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let mut reader = hops.reader().unwrap();
            let (published, begun, is_over, ids) = (&published, &begun, &is_over, &ids);
            scope.spawn(move || {
                let mut random = Random(seed);
                let mut seen = 0_u64;
                while !is_over.load(Ordering::Relaxed) || seen == 0 {
                    let before: Vec<_> = published.iter().map(|at| at.load(Ordering::Acquire)).collect();
                    let pin = reader.pin();
                    for _ in 0..16 {
                        let key = [0x0a00_0001_u32, 0x0b00_0001][random.below(2) as usize];
                        let resolved = pin.lookup(key, random.below(1 << 31) as u32);
                        let Resolved::Found { member, value } = resolved else {
                            // The first next hop is withdrawn at times, but never all of them.
                            assert!(key == 0x0b00_0001 && resolved == Resolved::Withdrawn(ids[0]));
                            continue;
                        };
                        let Versioned { number, version, sum } = *value;
                        assert_eq!(sum, number.wrapping_mul(31) ^ version, "a value is whole");
                        assert_eq!(ids[number as usize], member);
                        assert!(version >= before[number as usize]);
                        assert!(version <= begun[number as usize].load(Ordering::Acquire));
                        seen += 1;
                    }
                }
            });
        }
        let mut random = Random(99);
        for _ in 0..rounds {
            let number = random.below(HOPS.into()) as usize;
            if random.below(4) == 0 {
                hops.withdraw(ids[number]).unwrap();
            }
            // At most one next hop is withdrawn at a time.
            let version = begun[number].fetch_add(1, Ordering::AcqRel) + 1;
            hops.change(ids[number], Versioned::new(number as u32, version)).unwrap();
            published[number].store(version, Ordering::Release);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    hops.maintain().unwrap();
    hops.check().unwrap();
    table.check().unwrap();
}
