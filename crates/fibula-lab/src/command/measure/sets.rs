//! Speed of sets and maps of values.
//!
//! Takes two overlapping halves of a table's prefixes, two of every three in each, and combines them as sets of prefixes and
//! as sets of addresses; then looks random addresses up in the table as a map of values. Without a file, the table is one
//! million IPv4 prefixes of the generator. Each figure is the median of five rounds.

use std::hint::black_box;
use std::time::Instant;

use fibula::map::{AddressSet, PrefixMap, PrefixSet};
use fibula::net::{Key, Prefix, Route};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::{Outcome, RecordedArgs};
use crate::command::figures::FigureTables;

const ROUNDS: usize = 5;
/// Addresses that are looked up in a round.
const ADDRESSES: usize = 1 << 20;

pub(super) fn run(args: &RecordedArgs) -> Outcome {
    let mut figures = FigureTables::new("sets", args.table.as_slice());
    match &args.table {
        Some(file) => {
            let ribs = Loader::new(LoadOptions::default()).load(file.as_str())?.ribs;
            measure::<u32>(&mut figures, ribs.v4.iter().collect())?;
            measure::<u128>(&mut figures, ribs.v6.iter().collect())?;
        }
        None => {
            let spec = TableSpec { routes: 1_000_000, next_hops: 256, seed: 1 };
            measure::<u32>(&mut figures, generate(&spec, &Profile::of::<u32>())?)?;
        }
    }
    figures.keep(args.record)
}

/// Runs an operation, and adds a row with the median of its time.
fn time<T>(figures: &mut FigureTables, what: &str, each: usize, mut run: impl FnMut() -> T) -> T {
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        // The result of the round before is freed outside of the time.
        drop(last.take());
        let start = Instant::now();
        last = Some(black_box(run()));
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let median = times[ROUNDS / 2];
    let figure = |figure: f64| format!("{figure:.1}");
    figures.row(vec![what.to_owned(), figure(median * 1e3), figure(median * 1e9 / each as f64)]);
    last.expect("there is a round")
}

/// The columns.
const TIMES: [&str; 3] = ["", "ms", "ns each"];

fn measure<K: Key>(figures: &mut FigureTables, mut routes: Vec<Route<K>>) -> Outcome {
    if routes.is_empty() {
        return Ok(());
    }
    let third = |which: usize| {
        let part = routes.iter().enumerate().filter(move |(at, _)| at % 3 != which);
        part.map(|(_, route)| route.prefix).collect::<Vec<_>>()
    };
    let [one, two] = [third(0), third(1)];
    let count = one.len();
    figures.table(format!("Sets of {} and {} {} prefixes", one.len(), two.len(), K::FAMILY), &TIMES);
    let [one, two] = [one, two].map(|prefixes| {
        time(figures, "a set of sorted prefixes", count, || {
            prefixes.iter().copied().collect::<PrefixSet<K>>()
        })
    });
    figures.row(vec![
        "its memory, MB".to_owned(),
        format!("{:.1}", one.memory().held_bytes() as f64 / 1e6),
        String::new(),
    ]);
    let rest = time(figures, "difference of prefixes, a set", count, || &one - &two);
    figures.row(vec!["its prefixes".to_owned(), rest.len().to_string(), String::new()]);
    time(figures, "difference of prefixes, counted", count, || one.difference(&two).count());
    time(figures, "union of prefixes, a set", count, || &one | &two);
    time(figures, "intersection of prefixes, a set", count, || &one & &two);
    let addresses =
        [&one, &two].map(|set| time(figures, "addresses of a set", count, || AddressSet::from(set)));
    let rest = time(figures, "difference of addresses", count, || &addresses[0] - &addresses[1]);
    let prefixes =
        time(figures, "its fewest prefixes", count, || rest.prefixes().collect::<Vec<Prefix<K>>>());
    figures.row(vec!["how many these are".to_owned(), prefixes.len().to_string(), String::new()]);
    time(figures, "from prefixes to prefixes, all of it", count, || {
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
    figures.table(format!("A map of {routes_count} {} prefixes", K::FAMILY), &TIMES);
    let map = time(figures, "a map of shuffled prefixes", routes_count, || {
        routes.iter().map(|route| (route.prefix, route.next_hop.id())).collect::<PrefixMap<K, u32>>()
    });
    figures.row(vec![
        "its memory, MB".to_owned(),
        format!("{:.1}", map.memory().held_bytes() as f64 / 1e6),
        String::new(),
    ]);
    time(figures, "lookups in the map", ADDRESSES, || {
        keys.iter().filter_map(|&key| map.lookup(key)).map(|&id| u64::from(id)).sum::<u64>()
    });
    let compiled = time(figures, "compile", routes_count, || map.compile());
    let compiled = compiled?;
    figures.row(vec![
        "its memory, MB".to_owned(),
        format!("{:.1}", compiled.memory().held_bytes() as f64 / 1e6),
        String::new(),
    ]);
    let mut found = vec![None; 256];
    time(figures, "lookups in batches of 256, with values", ADDRESSES, || {
        let mut sum = 0;
        for keys in keys.chunks(256) {
            compiled.lookup_batch(keys, &mut found[..keys.len()]);
            sum += found.iter().flatten().map(|&&id| u64::from(id)).sum::<u64>();
        }
        sum
    });
    let mut next_hops = vec![None; 256];
    time(figures, "the same in the engine, without values", ADDRESSES, || {
        let mut sum = 0;
        for keys in keys.chunks(256) {
            compiled.fib().lookup_batch(keys, &mut next_hops[..keys.len()]);
            sum += next_hops.iter().flatten().map(|hop| u64::from(hop.id())).sum::<u64>();
        }
        sum
    });
    let count_matches = |matches: usize, _: Prefix<K>, _: &u32| matches + 1;
    time(figures, "all matches in the map, one by one", ADDRESSES, || {
        keys.iter().map(|&key| map.covers(Prefix::host(key)).count()).sum::<usize>()
    });
    time(figures, "all matches in the map, covers_batch", ADDRESSES, || {
        let mut matches = 0;
        map.covers_batch(&keys, |_, prefix, value| matches = count_matches(matches, prefix, value));
        matches
    });
    let covers = time(figures, "compile_covers", routes_count, || map.compile_covers())?;
    let matches = time(figures, "all matches, compiled covers_batch", ADDRESSES, || {
        let mut matches = 0;
        covers.covers_batch(&keys, |_, prefix, value| matches = count_matches(matches, prefix, value));
        matches
    });
    let each = format!("{:.2}", matches as f64 / ADDRESSES as f64);
    figures.row(vec!["matches an address".to_owned(), each, String::new()]);
    let mut merged = map.clone();
    let fewer = time(figures, "aggregate, of a copy", routes_count, || {
        merged = map.clone();
        merged.aggregate()
    });
    figures.row(vec!["prefixes fewer".to_owned(), fewer.to_string(), String::new()]);
    Ok(())
}
