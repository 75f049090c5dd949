//! Size and filling time of the RIB: `cargo run --release -p fibula-lab --example rib`.
//!
//! One million IPv4 and 250,000 IPv6 routes of the generator, inserted one by one, in order and shuffled.

use std::time::Instant;

use fibula::net::{Key, Route};
use fibula::rib::Rib;
use fibula_lab::random::Random;
use fibula_lab::table::{Profile, TableSpec, generate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let total = fill::<u32>(1_000_000)? + fill::<u128>(250_000)?;
    println!("both: {:.1} MB", total as f64 / 1e6);
    Ok(())
}

fn fill<K: Key>(count: usize) -> Result<usize, Box<dyn std::error::Error>> {
    let spec = TableSpec { routes: count, next_hops: 256, seed: 1 };
    let mut routes: Vec<Route<K>> = generate(&spec, &Profile::of::<K>())?;
    let mut bytes = 0;
    for order in ["in order", "shuffled"] {
        let mut rib = Rib::<K>::default();
        let start = Instant::now();
        for &route in &routes {
            rib.insert(route)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        rib.check()?;
        bytes = rib.memory().held_bytes();
        println!(
            "{} {count} routes {order}: {:.0} ms, {:.1} MB, {:.1} bytes a route",
            K::FAMILY,
            seconds * 1e3,
            bytes as f64 / 1e6,
            bytes as f64 / count as f64
        );
        let mut random = Random::new(3);
        for at in (1..routes.len()).rev() {
            routes.swap(at, random.below(at as u64 + 1) as usize);
        }
    }
    Ok(bytes)
}
