//! Prints the shape of a generated table or of one in a file, to compare them.
//!
//! ```text
//! shape ipv4 [routes [seed]]    a generated table
//! shape ipv6 FILE               a table in a file
//! ```

use std::error::Error;
use std::time::Instant;

use fibula::memory::Limits;
use fibula::net::{Key, Route, RouteSlice};
use fibula_feed::{LoadOptions, Loader, Table};
use fibula_workload::table::{Profile, Shape, TableSpec, generate, shape};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.split_first() {
        Some((&"ipv4", rest)) => show::<u32>(TableSpec::ipv4(), rest, |table| table.ribs.v4.iter().collect()),
        Some((&"ipv6", rest)) => {
            show::<u128>(TableSpec::ipv6(), rest, |table| table.ribs.v6.iter().collect())
        }
        _ => Err("usage: shape ipv4|ipv6 [FILE | routes [seed]]".into()),
    }
}

fn show<K: Key>(mut spec: TableSpec, arguments: &[&str], of: fn(&Table) -> Vec<Route<K>>) -> Outcome {
    let routes = match arguments {
        [file] if file.parse::<usize>().is_err() => of(&Loader::new(LoadOptions::default()).load(*file)?),
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
    let slice = RouteSlice::new(&routes)?;
    let chunk_bits = if K::BITS == 32 { 8..=24 } else { 16..=64 };
    print(&shape(&slice, &chunk_bits.collect::<Vec<_>>()));
    for algorithm in fibula::fib::algorithms::<K>() {
        let fib = algorithm.build(&slice, Limits::default())?;
        println!("{}: {} bytes", algorithm.name, fib.memory().lookup_bytes);
    }
    Ok(())
}

fn print(shape: &Shape) {
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    println!("routes: {}, announced share of the space: {:.6} %", shape.routes, 100.0 * shape.announced);
    for (len, &(count, nested)) in shape.lengths.iter().enumerate().filter(|(_, line)| line.0 > 0) {
        println!("/{len}: {:.3} %, nested {:.0} %", share(count, shape.routes), share(nested, count));
    }
    let nested: usize = shape.depths.iter().skip(1).sum();
    println!(
        "nested: {:.1} %, with the next hop of the cover: {:.1} %",
        share(nested, shape.routes),
        share(shape.same_as_cover, nested)
    );
    for (depth, &count) in shape.depths.iter().enumerate() {
        println!("depth {depth}: {:.3} %", share(count, shape.routes));
    }
    let [one, eight, many] = [1, 8, 64].map(|count| 100.0 * shape.top(count));
    println!("next hops: {}, top 1 / 8 / 64: {one:.1} / {eight:.1} / {many:.1} %", shape.popularity.len());
    println!("ranges: {}, {} after merging equal neighbours", shape.ranges, shape.merged);
    for chunks in &shape.chunks {
        println!(
            "chunks of /{}: {} divided, {} mixed with {} ranges, {} of them long",
            chunks.bits, chunks.divided, chunks.mixed, chunks.ranges, chunks.long_ranges
        );
    }
}
