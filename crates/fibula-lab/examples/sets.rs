//! Speed of sets and maps of values: `cargo run --release -p fibula-lab --example sets [FILE]`.
//!
//! Takes two overlapping halves of a table's prefixes, two of every three in each, and combines them as sets of prefixes and
//! as sets of addresses; then looks random addresses up in the table as a map of values. Without a file, the table is one
//! million IPv4 prefixes of the generator. Each figure is the median of five rounds.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use fibula::map::{AddressSet, PrefixMap, PrefixSet};
use fibula::net::{Key, Prefix, Route};
use fibula_feed::{LoadOptions, Loader};
use fibula_lab::random::Random;
use fibula_lab::table::{Profile, TableSpec, generate};

const ROUNDS: usize = 5;
/// Addresses that are looked up in a round.
const ADDRESSES: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(file) => {
            let ribs = Loader::new(LoadOptions::default()).load(file.as_str())?.ribs;
            measure::<u32>(ribs.v4.iter().collect())?;
            measure::<u128>(ribs.v6.iter().collect())
        }
        None => {
            let spec = TableSpec { routes: 1_000_000, next_hops: 256, seed: 1 };
            measure::<u32>(generate(&spec, &Profile::of::<u32>())?)
        }
    }
}

/// Runs what is measured, and prints the median of its time.
fn time<T>(what: &str, each: usize, mut run: impl FnMut() -> T) -> T {
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        // What the round before made is freed outside of the time.
        drop(last.take());
        let start = Instant::now();
        last = Some(black_box(run()));
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let median = times[ROUNDS / 2];
    println!("{what:42} {:9.1} ms {:8.1} ns each", median * 1e3, median * 1e9 / each as f64);
    last.expect("there is a round")
}

fn measure<K: Key>(mut routes: Vec<Route<K>>) -> Result<(), Box<dyn Error>> {
    if routes.is_empty() {
        return Ok(());
    }
    let third = |which: usize| {
        let part = routes.iter().enumerate().filter(move |(at, _)| at % 3 != which);
        part.map(|(_, route)| route.prefix).collect::<Vec<_>>()
    };
    let [one, two] = [third(0), third(1)];
    let count = one.len();
    println!("{}: sets of {} and {} prefixes", K::FAMILY, one.len(), two.len());
    let [one, two] = [one, two].map(|prefixes| {
        time("a set of sorted prefixes", count, || prefixes.iter().copied().collect::<PrefixSet<K>>())
    });
    println!("{:42} {:9.1} MB", "its memory", one.memory().held_bytes() as f64 / 1e6);
    let rest = time("difference of prefixes, a set", count, || &one - &two);
    println!("{:42} {:9} prefixes", "", rest.len());
    time("difference of prefixes, counted", count, || one.difference(&two).count());
    time("union of prefixes, a set", count, || &one | &two);
    time("intersection of prefixes, a set", count, || &one & &two);
    let addresses = [&one, &two].map(|set| time("addresses of a set", count, || AddressSet::from(set)));
    let rest = time("difference of addresses", count, || &addresses[0] - &addresses[1]);
    let prefixes = time("its fewest prefixes", count, || rest.prefixes().collect::<Vec<Prefix<K>>>());
    println!("{:42} {:9} prefixes, {} ranges", "", prefixes.len(), rest.ranges().count());
    time("from prefixes to prefixes, all of it", count, || {
        let [one, two] = [&one, &two].map(|set| set.iter().collect::<AddressSet<K>>());
        (&one - &two).prefixes().count()
    });

    let mut random = Random::new(5);
    let keys: Vec<K> = (0..ADDRESSES)
        .map(|_| {
            let prefix = routes[random.below(routes.len() as u64) as usize].prefix;
            prefix.addr().or(K::from_bits(random.wide()).and(K::mask(prefix.len()).not()))
        })
        .collect();
    random.shuffle(&mut routes);
    let routes_count = routes.len();
    let map = time("a map of shuffled prefixes", routes_count, || {
        routes.iter().map(|route| (route.prefix, route.next_hop.id())).collect::<PrefixMap<K, u32>>()
    });
    println!("{:42} {:9.1} MB", "its memory", map.memory().held_bytes() as f64 / 1e6);
    time("lookups in the map", ADDRESSES, || {
        keys.iter().filter_map(|&key| map.lookup(key)).map(|&id| u64::from(id)).sum::<u64>()
    });
    let compiled = time("compile", routes_count, || map.compile());
    let compiled = compiled?;
    println!("{:42} {:9.1} MB", "its memory", compiled.memory().held_bytes() as f64 / 1e6);
    let mut found = vec![None; 256];
    time("lookups in batches of 256, with values", ADDRESSES, || {
        let mut sum = 0;
        for keys in keys.chunks(256) {
            compiled.lookup_batch(keys, &mut found[..keys.len()]);
            sum += found.iter().flatten().map(|&&id| u64::from(id)).sum::<u64>();
        }
        sum
    });
    let mut next_hops = vec![None; 256];
    time("the same in the structure, without values", ADDRESSES, || {
        let mut sum = 0;
        for keys in keys.chunks(256) {
            compiled.fib().lookup_batch(keys, &mut next_hops[..keys.len()]);
            sum += next_hops.iter().flatten().map(|hop| u64::from(hop.id())).sum::<u64>();
        }
        sum
    });
    let count_matches = |matches: usize, _: Prefix<K>, _: &u32| matches + 1;
    time("all matches in the map, one by one", ADDRESSES, || {
        keys.iter().map(|&key| map.covers(Prefix::host(key)).count()).sum::<usize>()
    });
    time("all matches in the map, covers_batch", ADDRESSES, || {
        let mut matches = 0;
        map.covers_batch(&keys, |_, prefix, value| matches = count_matches(matches, prefix, value));
        matches
    });
    let covers = time("compile_covers", routes_count, || map.compile_covers())?;
    let matches = time("all matches, compiled covers_batch", ADDRESSES, || {
        let mut matches = 0;
        covers.covers_batch(&keys, |_, prefix, value| matches = count_matches(matches, prefix, value));
        matches
    });
    println!("{:42} {:9.2} matches an address", "", matches as f64 / ADDRESSES as f64);
    let mut merged = map.clone();
    let fewer = time("aggregate, of a copy", routes_count, || {
        merged = map.clone();
        merged.aggregate()
    });
    println!("{:42} {:9} prefixes fewer of {routes_count}", "", fewer);
    Ok(())
}
