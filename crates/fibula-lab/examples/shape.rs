//! Prints the shape of a table, made or read, so that the two can be held against each other.
//!
//! ```text
//! shape ipv4 [routes [seed]]    a generated table
//! shape ipv6 FILE               a table in a file, one `prefix nexthop` a line
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

use fibula::fib::parts::ranges::{self, Merge};
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice};
use fibula_lab::table::{Profile, TableSpec, generate};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.split_first() {
        Some((&"ipv4", rest)) => shape::<u32>(TableSpec::ipv4(), rest),
        Some((&"ipv6", rest)) => shape::<u128>(TableSpec::ipv6(), rest),
        _ => Err("usage: shape ipv4|ipv6 [FILE | routes [seed]]".into()),
    }
}

fn shape<K: Key>(mut spec: TableSpec, arguments: &[&str]) -> Outcome {
    let routes = match arguments {
        [file] if file.parse::<usize>().is_err() => read::<K>(file)?,
        numbers => {
            if let Some(routes) = numbers.first() {
                spec.routes = routes.parse()?;
            }
            if let Some(seed) = numbers.get(1) {
                spec.seed = seed.parse()?;
            }
            let start = Instant::now();
            let routes = generate::<K>(&spec, &Profile::of::<K>())?;
            println!("generated in {} ms", start.elapsed().as_millis());
            routes
        }
    };
    lengths_and_depths(&routes);
    next_hops(&routes);
    let slice = RouteSlice::new(&routes)?;
    let count = |merge| {
        let mut count = 0;
        let _ = ranges::visit(&slice, Prefix::ALL, merge, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    };
    println!("ranges: {}, merged {}", count(Merge::Never), count(Merge::EqualNeighbours));
    Ok(())
}

fn read<K: Key>(file: &str) -> Outcome<Vec<Route<K>>> {
    let mut routes = Vec::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let (prefix, next_hop) = line.split_once(' ').ok_or("a line without a next hop")?;
        let next_hop = NextHop::new(next_hop.parse()?).ok_or("next hop 0")?;
        routes.push(Route::new(prefix.parse::<Prefix<K>>()?, next_hop));
    }
    routes.sort_unstable();
    Ok(routes)
}

fn lengths_and_depths<K: Key>(routes: &[Route<K>]) {
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let mut lengths = [(0, 0); 129];
    let mut depths = [0; 129];
    let (mut same, mut nested) = (0, 0);
    let mut addresses = 0.0;
    let mut open: Vec<Route<K>> = Vec::new();
    for &route in routes {
        open.truncate(open.partition_point(|cover| cover.prefix.covers(route.prefix)));
        let length = &mut lengths[usize::from(route.prefix.len())];
        length.0 += 1;
        match open.last() {
            None => addresses += (-f64::from(route.prefix.len())).exp2(),
            Some(cover) => {
                length.1 += 1;
                nested += 1;
                same += usize::from(cover.next_hop == route.next_hop);
            }
        }
        depths[open.len()] += 1;
        open.push(route);
    }
    println!("routes: {}, announced share of the space: {addresses:.3e}", routes.len());
    for (len, &(count, nested)) in lengths.iter().enumerate().filter(|(_, line)| line.0 > 0) {
        println!("/{len}: {:.2} %, nested {:.0} %", share(count, routes.len()), share(nested, count));
    }
    println!(
        "nested: {:.1} %, to the same next hop as the cover: {:.1} %",
        share(nested, routes.len()),
        share(same, nested)
    );
    for (depth, &count) in depths.iter().enumerate().filter(|&(_, &count)| count > 0) {
        println!("depth {depth}: {:.3} %", share(count, routes.len()));
    }
}

fn next_hops<K: Key>(routes: &[Route<K>]) {
    let mut counts = HashMap::new();
    for route in routes {
        *counts.entry(route.next_hop).or_insert(0usize) += 1;
    }
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top = |n: usize| 100.0 * counts.iter().take(n).sum::<usize>() as f64 / routes.len().max(1) as f64;
    println!("next hops: {}, top 1 / 8 / 64: {:.1} / {:.1} / {:.1} %", counts.len(), top(1), top(8), top(64));
}
