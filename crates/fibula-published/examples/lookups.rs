//! Fixed lookups, whose instructions `cargo xtask instructions` counts under callgrind.
//!
//! ```text
//! lookups list                                          what is counted, one `family engine isa batch` a line
//! lookups run FAMILY ENGINE ISA BATCH PASSES         look all keys up PASSES times; print the number of keys
//! ```

use std::error::Error;
use std::hint::black_box;

use fibula::fib::registry::Role;
use fibula::memory::Limits;
use fibula::net::{Key, RouteSlice};
use fibula::simd::{self, Isa};
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Small enough to build in moments on an emulated processor, large enough that every level is there.
const ROUTES: usize = 20_000;
/// Keys of a pass.
const KEYS: usize = 1 << 13;
/// Instruction sets and batches that are counted; 1 is one key a call. Valgrind knows no AVX-512.
const COUNTED: [(Isa, usize); 5] =
    [(Isa::Scalar, 1), (Isa::Scalar, 256), (Isa::Avx2, 256), (Isa::Neon, 1), (Isa::Neon, 256)];

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list"] => {
            list::<u32>();
            list::<u128>();
            Ok(())
        }
        ["run", "ipv4", engine, isa, batch, passes] => {
            run::<u32>(engine, isa.parse()?, batch.parse()?, passes.parse()?)
        }
        ["run", "ipv6", engine, isa, batch, passes] => {
            run::<u128>(engine, isa.parse()?, batch.parse()?, passes.parse()?)
        }
        _ => Err("usage: lookups list | run FAMILY ENGINE ISA BATCH PASSES".into()),
    }
}

/// Oracles without an index are left out: they only loop over the table.
fn list<K: Key>() {
    for engine in fibula_published::engines::<K>() {
        if !matches!(engine.role, Role::Oracle { routes_limit } if routes_limit < ROUTES) {
            let here = |(isa, _): &(Isa, usize)| engine.isas.contains(isa) && isa.present().is_ok();
            for (isa, batch) in COUNTED.into_iter().filter(here) {
                println!("{} {} {isa} {batch}", K::FAMILY.name(), engine.name);
            }
        }
    }
}

/// All work except the passes is the same for every number of passes, and cancels out in the difference of two
/// counts.
fn run<K: Key>(engine: &str, isa: Isa, batch: usize, passes: usize) -> Outcome {
    // The set of single lookups is forced too, because valgrind reports other sets than the machine has.
    simd::force(Some(isa))?;
    let isa = isa.present()?;
    let spec = TableSpec { routes: ROUTES, next_hops: 256, seed: 1 };
    let routes = generate::<K>(&spec, &Profile::of::<K>())?;
    let routes = RouteSlice::new(&routes)?;
    let pattern = traffic::find::<K>("match").ok_or("no traffic 'match'")?;
    let keys = (pattern.generate)(&routes, KEYS, 1)?;
    let fib = fibula_published::find::<K>(engine)?.build(&routes, Limits::default())?;
    let mut results = vec![None; batch];
    for _ in 0..passes {
        for keys in black_box(&keys).chunks(batch) {
            match keys {
                &[key] => results[0] = fib.lookup(key),
                keys => fib.lookup_batch_on(isa, keys, &mut results[..keys.len()]),
            }
            black_box(&mut results);
        }
    }
    println!("{KEYS}");
    Ok(())
}
