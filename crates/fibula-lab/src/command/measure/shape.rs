//! The shape of a generated table or of one in a file, to compare them.

use std::time::Instant;

use clap::Args;
use fibula::memory::Limits;
use fibula::net::{Key, Route, RouteSlice};
use fibula_feed::{LoadOptions, LoadedRoutes, Loader};
use fibula_workload::table::{Profile, Shape, TableSpec, generate, shape};

use super::{OfFamily, Outcome};

/// Options of `fibula-lab measure shape`.
#[derive(Debug, Args)]
pub(in crate::command) struct ShapeArgs {
    /// The family
    #[arg(value_enum, value_name = "FAMILY")]
    family: OfFamily,

    /// The table in this file [default: a generated one]
    #[arg(value_name = "FILE", conflicts_with_all = ["routes", "seed"])]
    file: Option<String>,

    /// Routes of the generated table
    #[arg(long, value_name = "NUMBER")]
    routes: Option<usize>,

    /// Seed of the generated table
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

pub(super) fn run(args: &ShapeArgs) -> Outcome {
    match args.family {
        OfFamily::Ipv4 => show::<u32>(TableSpec::ipv4(), args, |table| table.ribs.v4.iter().collect()),
        OfFamily::Ipv6 => show::<u128>(TableSpec::ipv6(), args, |table| table.ribs.v6.iter().collect()),
    }
}

fn show<K: Key>(mut spec: TableSpec, args: &ShapeArgs, of: fn(&LoadedRoutes) -> Vec<Route<K>>) -> Outcome {
    let routes = match &args.file {
        Some(file) => of(&Loader::new(LoadOptions::default()).load(file.as_str())?),
        None => {
            spec.routes = args.routes.unwrap_or(spec.routes);
            spec.seed = args.seed.unwrap_or(spec.seed);
            let start = Instant::now();
            let routes = generate::<K>(&spec, &Profile::of::<K>())?;
            println!("generated in {} ms", start.elapsed().as_millis());
            routes
        }
    };
    let slice = RouteSlice::new(&routes)?;
    let chunk_bits = if K::BITS == 32 { 8..=24 } else { 16..=64 };
    print(&shape(&slice, &chunk_bits.collect::<Vec<_>>()));
    for engine in fibula_published::engines::<K>() {
        let fib = engine.build(&slice, Limits::default())?;
        println!("{}: {} bytes", engine.name, fib.memory().lookup_bytes);
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
