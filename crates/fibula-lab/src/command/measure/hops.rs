//! Next hops, groups and shared values over a table, without a file over a generated one.
//!
//! All ways are timed in turn in each round, over the same keys, and the printed figures are medians of rounds and the ratio to
//! lookups in the table alone. Every answer is compared with that of the table.

use std::hint::black_box;
use std::time::Instant;

use fibula::hops::NextHops;
use fibula::live::{Options, Table};
use fibula::map::{PrefixMap, SharedPrefixMap};
use fibula::net::{Change, IpPrefix, NextHop, Route};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::{Outcome, RecordedArgs};
use crate::command::figures::FigureTables;

/// Keys that are looked up in each round, in batches of 256.
const KEYS: usize = 1 << 18;
const BATCH: usize = 256;
const ROUNDS: usize = 15;

/// Next hops, and members of each group.
const HOPS: usize = 256;
const MEMBERS: usize = 8;

pub(super) fn run(args: &RecordedArgs) -> Outcome {
    let mut figures = FigureTables::new("hops", args.table.as_slice());
    let routes: Vec<Route<u32>> = match &args.table {
        Some(file) => Loader::new(LoadOptions::default()).load(file.as_str())?.ribs.v4.iter().collect(),
        None => generate(&TableSpec::ipv4(), &Profile::of::<u32>())?,
    };
    println!(
        "{} IPv4 routes, {HOPS} next hops, batches of {BATCH}, medians of {ROUNDS} rounds",
        routes.len()
    );
    let mut random = Random::new(1);
    let keys: Vec<u32> = (0..KEYS).map(|_| inside(&routes, &mut random)).collect();
    let hashes: Vec<u32> = (0..KEYS).map(|_| random.below(1 << 32) as u32).collect();
    let table = Table::new()?;
    let hops = NextHops::new(&table)?;
    let ids = (0..HOPS as u64).map(|number| hops.add(number)).collect::<Result<Vec<_>, _>>()?;
    let counted = fill(&table, &routes, &ids)?;
    let alone = fill(&Table::new()?, &routes, &ids)?;
    figures.table("Routes put in, 64 in a call", &["", "us each"]);
    figures.row(vec!["the table alone".to_owned(), format!("{alone:.2}")]);
    figures.row(vec!["counted by next hop".to_owned(), format!("{counted:.2}")]);
    let mut array = Array((0..=HOPS as u64).map(Hop::To).collect());
    figures.table(format!("A next hop a route, {} IPv4 routes, {HOPS} next hops", routes.len()), &RATES);
    rates(&mut figures, &hops, &array, &keys, &hashes)?;
    let gone = withdrawals(&hops, &ids)?;
    let members = |first: usize| -> Vec<(NextHop, u32)> {
        (0..MEMBERS).map(|member| (ids[(first + member * 31) % HOPS], 1 + member as u32 % 2)).collect()
    };
    let groups = (0..HOPS).map(|first| hops.add_group(&members(first))).collect::<Result<Vec<_>, _>>()?;
    fill(&table, &routes, &groups)?;
    for (first, group) in groups.iter().enumerate() {
        let repeated = |(id, weight): &(NextHop, u32)| std::iter::repeat_n(id.id(), *weight as usize);
        array.0.resize_with(array.0.len().max(group.id() as usize + 1), || Hop::To(0));
        array.0[group.id() as usize] = Hop::Group(members(first).iter().flat_map(repeated).collect());
    }
    figures.table(format!("A group of {MEMBERS} members a route, by flow hash, {HOPS} groups"), &RATES);
    rates(&mut figures, &hops, &array, &keys, &hashes)?;
    let gone_of_groups = withdrawals(&hops, &ids)?;
    let start = Instant::now();
    for _ in 0..100 {
        for first in 0..HOPS {
            hops.add_group(&members(first))?;
        }
    }
    let again = micros(start, 100 * HOPS);
    hops.check()?;
    let statistics = hops.statistics()?;
    println!("  {} buckets, {} moved; {:?}", statistics.buckets, statistics.moved_buckets, statistics.memory);
    figures.table("Changes of next hops under all of these routes", &["", "median, us", "at most, us"]);
    for (what, [gone, most, back]) in
        [("routes straight to it", gone), ("groups that have it", gone_of_groups)]
    {
        figures.row(vec![format!("withdrawn, {what}"), format!("{gone:.2}"), format!("{most:.1}")]);
        figures.row(vec![format!("brought back, {what}"), format!("{back:.2}"), String::new()]);
    }
    let mut times: Vec<f64> = (0..HOPS)
        .map(|_| {
            let start = Instant::now();
            black_box(array.clone());
            micros(start, 1)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let [median, most] = [times[HOPS / 2], times[HOPS - 1]];
    figures.row(vec![
        "another array of all, as the router makes".to_owned(),
        format!("{median:.2}"),
        format!("{most:.1}"),
    ]);
    figures.row(vec!["a group that is there, added again".to_owned(), format!("{again:.2}"), String::new()]);
    figures.table(format!("Values of 16 bytes, {HOPS} different ones, by the same routes"), &RATES);
    values(&mut figures, &routes, &keys)?;
    figures.keep(args.record)
}

/// The columns of rates.
const RATES: [&str; 3] = ["", "ns a key", "of the first"];

fn micros(start: Instant, count: usize) -> f64 {
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}

/// Returns a random address inside a random prefix.
fn inside(routes: &[Route<u32>], random: &mut Random) -> u32 {
    let prefix = routes[random.below(routes.len() as u64) as usize].prefix;
    prefix.addr() | (prefix.addr() ^ prefix.last()) & random.below(1 << 32) as u32
}

/// Next hops in an array that is replaced as a whole, as the router has them.
#[derive(Clone)]
struct Array(Vec<Hop>);

#[derive(Clone)]
enum Hop {
    To(u64),
    /// Members, each repeated as its weight says.
    Group(Box<[u32]>),
}

impl Array {
    /// Resolves the next hop of a flow.
    fn value(&self, next_hop: NextHop, hash: u32) -> Option<u64> {
        let hop = match self.0.get(next_hop.id() as usize)? {
            Hop::Group(members) => {
                let at = ((u64::from(hash) * members.len() as u64) >> 32) as usize;
                self.0.get(*members.get(at)? as usize)?
            }
            hop => hop,
        };
        match hop {
            Hop::To(value) => Some(*value),
            Hop::Group(_) => None,
        }
    }
}

/// Gives each route one of these next hops, chosen by the one that it had. Returns the microseconds of a route.
fn fill(table: &Table, routes: &[Route<u32>], ids: &[NextHop]) -> Outcome<f64> {
    let changes: Vec<_> = routes
        .iter()
        .map(|route| Change::Insert(Route::new(route.prefix, ids[route.next_hop.id() as usize % ids.len()])))
        .collect();
    let start = Instant::now();
    for changes in changes.chunks(64) {
        let _ = table.apply(changes)?;
    }
    Ok(micros(start, routes.len()))
}

/// Runs the ways in turn, round by round: a row for each, with its median and its ratio to the first.
fn race(figures: &mut FigureTables, ways: &mut [(&str, &mut dyn FnMut())]) {
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for ((_, way), times) in ways.iter_mut().zip(&mut times) {
            let start = Instant::now();
            way();
            times.push(start.elapsed().as_secs_f64() * 1e9 / KEYS as f64);
        }
    }
    let mut ratios = Vec::new();
    for times_of in &times {
        let mut ratio: Vec<_> = times_of.iter().zip(&times[0]).map(|(time, first)| time / first).collect();
        ratio.sort_by(f64::total_cmp);
        ratios.push(ratio[ROUNDS / 2]);
    }
    for (((name, _), mut times), ratio) in ways.iter().zip(times).zip(ratios) {
        times.sort_by(f64::total_cmp);
        figures.row(vec![(*name).to_owned(), format!("{:.2}", times[ROUNDS / 2]), format!("{ratio:.2}")]);
    }
}

fn rates(
    figures: &mut FigureTables,
    hops: &NextHops<u64>,
    array: &Array,
    keys: &[u32],
    hashes: &[u32],
) -> Outcome {
    let mut reader = hops.reader()?;
    let mut plain = hops.routed().reader()?;
    let (mut found, mut members) = (vec![None; KEYS], vec![None; KEYS]);
    {
        let pin = reader.pin();
        plain.pin().lookup_batch(keys, &mut found);
        let counts = pin.lookup_batch(keys, hashes, &mut members);
        let alone = |(key, hash): (&u32, &u32)| pin.lookup(*key, *hash).member();
        assert!(
            keys.iter().zip(hashes).map(alone).eq(members.iter().copied()),
            "batches and single lookups differ"
        );
        assert_eq!(counts.found + counts.no_route, KEYS, "{counts:?}");
    }
    let batches = || keys.chunks(BATCH).zip(hashes.chunks(BATCH));
    let (mut results, mut results_again) = ([None; BATCH], [None; BATCH]);
    let (mut found_again, mut found_beside) = ([None; BATCH], [None; BATCH]);
    let (mut reader_again, mut valued) = (reader.try_clone()?, reader.try_clone()?);
    let mut beside = hops.routed().reader()?;
    race(
        figures,
        &mut [
            ("the table alone, by batch", &mut || {
                for (keys, _) in batches() {
                    plain.pin().lookup_batch(keys, &mut results);
                    black_box(&results);
                }
            }),
            ("lookup and resolve, by batch", &mut || {
                for (keys, hashes) in batches() {
                    black_box(reader.pin().lookup_batch(keys, hashes, &mut results_again));
                }
            }),
            ("lookup and resolve to the value, by batch", &mut || {
                for (keys, hashes) in batches() {
                    let pin = valued.pin();
                    pin.lookup_batch(keys, hashes, &mut found_again);
                    found_again.iter().flatten().for_each(|&member| _ = black_box(pin.get(member)));
                }
            }),
            ("the table alone, then the router's array, by batch", &mut || {
                for (keys, hashes) in batches() {
                    beside.pin().lookup_batch(keys, &mut found_beside);
                    let values = found_beside.iter().zip(hashes);
                    values.for_each(|(at, &hash)| _ = black_box(at.and_then(|at| array.value(at, hash))));
                }
            }),
            ("resolve alone, by batch", &mut || {
                let mut members = [None; BATCH];
                for (found, hashes) in found.chunks(BATCH).zip(hashes.chunks(BATCH)) {
                    black_box(reader_again.pin().resolve_batch(found, hashes, &mut members));
                }
            }),
        ],
    );
    let (mut reader, mut plain) = (hops.reader()?, hops.routed().reader()?);
    race(
        figures,
        &mut [
            ("the table alone, one by one", &mut || {
                let pin = plain.pin();
                keys.iter().for_each(|&key| _ = black_box(pin.lookup(key)));
            }),
            ("lookup and resolve to the value", &mut || {
                let pin = reader.pin();
                for (&key, &hash) in keys.iter().zip(hashes) {
                    black_box(pin.lookup(key, hash).value());
                }
            }),
        ],
    );
    Ok(())
}

/// Withdraws next hops one after the other, and brings each back. Returns the microseconds of a withdrawal, median and most,
/// and of a return.
fn withdrawals(hops: &NextHops<u64>, ids: &[NextHop]) -> Outcome<[f64; 3]> {
    let mut routes = 0;
    let (mut gone, mut back) = (Vec::new(), Vec::new());
    for (number, &id) in ids.iter().enumerate() {
        routes += hops.routes_of(id)?;
        let start = Instant::now();
        hops.withdraw(id)?;
        gone.push(micros(start, 1));
        let start = Instant::now();
        hops.change(id, number as u64)?;
        back.push(micros(start, 1));
    }
    gone.sort_by(f64::total_cmp);
    back.sort_by(f64::total_cmp);
    println!("  a next hop has {} routes on average", routes / ids.len());
    Ok([gone[ids.len() / 2], gone[ids.len() - 1], back[ids.len() / 2]])
}

fn values(figures: &mut FigureTables, routes: &[Route<u32>], keys: &[u32]) -> Outcome {
    let value = |route: &Route<u32>| u128::from(route.next_hop.id() % HOPS as u32);
    let map = SharedPrefixMap::interning(Options::default())?;
    let start = Instant::now();
    map.apply(routes.iter().map(|route| (IpPrefix::from(route.prefix), Some(value(route)))))?;
    println!("  put in: {:.2} us each; {} values", micros(start, routes.len()), map.value_count()?);
    let mut owned = PrefixMap::<u32, u128>::new();
    owned.extend(routes.iter().map(|route| (route.prefix, value(route))));
    let compiled = owned.compile()?;
    let (mut reader, mut results, mut results_again) = (map.reader()?, [None; BATCH], [None; BATCH]);
    {
        let pin = reader.pin();
        assert!(keys.iter().all(|&key| pin.lookup(key) == owned.lookup(key)), "a value is wrong");
    }
    let pin = reader.pin();
    race(
        figures,
        &mut [
            ("a compiled map, by batch", &mut || {
                for keys in keys.chunks(BATCH) {
                    compiled.lookup_batch(keys, &mut results[..keys.len()]);
                    black_box(&results);
                }
            }),
            ("the shared map, by batch", &mut || {
                for keys in keys.chunks(BATCH) {
                    pin.lookup_batch(keys, &mut results_again[..keys.len()]);
                    black_box(&results_again);
                }
            }),
            ("the shared map, one by one", &mut || {
                keys.iter().for_each(|&key| _ = black_box(pin.lookup(key)));
            }),
        ],
    );
    println!("  {:?}", map.memory()?);
    Ok(())
}
