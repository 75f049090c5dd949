//! Fixed lookups for counting instructions, and the comparison of counts with the committed ones. Driven by
//! `.ci/instructions`, which runs it under callgrind.
//!
//! ```text
//! instructions list                             what is counted, one `family algorithm isa batch` a line
//! instructions run FAMILY ALGORITHM ISA BATCH PASSES    so many passes over the keys; prints how many those are
//! instructions compare FILE < COUNTS            exit 1 beyond the tolerance
//! instructions record FILE < COUNTS
//! ```
//!
//! A count is such a line followed by the instructions a lookup.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::process::ExitCode;

use fibula::fib::registry::Role;
use fibula::memory::Limits;
use fibula::net::{Key, RouteSlice};
use fibula::simd::{self, Isa};
use fibula_lab::bench::{Program, family_name};
use fibula_workload::table::{Profile, TableSpec, generate};
use fibula_workload::traffic;
use serde::{Deserialize, Serialize};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Small enough to build in moments on an emulated processor, large enough that every level is there.
const ROUTES: usize = 20_000;
/// Keys of a pass.
const KEYS: usize = 1 << 13;
/// Instruction sets and batches that are counted; 1 is one key a call. Valgrind knows no AVX-512.
const COUNTED: [(Isa, usize); 3] = [(Isa::Scalar, 1), (Isa::Scalar, 256), (Isa::Avx2, 256)];
/// How far a count may be from the committed one.
const TOLERANCE_PERCENT: f64 = 2.0;

fn main() -> Outcome<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list"] => {
            list::<u32>();
            list::<u128>();
        }
        ["run", "ipv4", algorithm, isa, batch, passes] => {
            run::<u32>(algorithm, isa.parse()?, batch.parse()?, passes.parse()?)?;
        }
        ["run", "ipv6", algorithm, isa, batch, passes] => {
            run::<u128>(algorithm, isa.parse()?, batch.parse()?, passes.parse()?)?;
        }
        ["compare", file] => return compare(file),
        ["record", file] => record(file)?,
        _ => {
            return Err(
                "usage: instructions list | run FAMILY ALGORITHM ISA BATCH PASSES | compare FILE".into()
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Oracles without an index are left out: they only loop over the table.
fn list<K: Key>() {
    for algorithm in fibula_published::algorithms::<K>() {
        if !matches!(algorithm.role, Role::Oracle { routes_limit } if routes_limit < ROUTES) {
            let here = |(isa, _): &(Isa, usize)| algorithm.isas.contains(isa) && isa.present().is_ok();
            for (isa, batch) in COUNTED.into_iter().filter(here) {
                println!("{} {} {isa} {batch}", family_name(K::FAMILY), algorithm.name);
            }
        }
    }
}

/// All work except the passes is the same for every number of passes, and cancels out in the difference of two
/// counts.
fn run<K: Key>(algorithm: &str, isa: Isa, batch: usize, passes: usize) -> Outcome {
    // The set of single lookups is forced too, because valgrind reports other sets than the machine has.
    simd::force(Some(isa))?;
    let isa = isa.present()?;
    let spec = TableSpec { routes: ROUTES, next_hops: 256, seed: 1 };
    let routes = generate::<K>(&spec, &Profile::of::<K>())?;
    let routes = RouteSlice::new(&routes)?;
    let pattern = traffic::find::<K>("match").ok_or("no traffic 'match'")?;
    let keys = (pattern.generate)(&routes, KEYS, 1)?;
    let fib = fibula_published::find::<K>(algorithm)?.build(&routes, Limits::default())?;
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

/// The committed counts.
#[derive(Serialize, Deserialize)]
struct Counts {
    /// What compiled the counted program: another version gives other counts.
    rustc: String,
    target: String,
    /// Instructions a lookup.
    instructions: BTreeMap<String, f64>,
}

fn counted() -> Outcome<Counts> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut instructions = BTreeMap::new();
    for line in text.lines() {
        let (name, count) = line.rsplit_once(' ').ok_or("a line without a count")?;
        instructions.insert(name.to_owned(), count.parse()?);
    }
    let Program { rustc, target, .. } = Program::this();
    Ok(Counts { rustc, target, instructions })
}

fn record(file: &str) -> Outcome {
    let mut text = serde_json::to_string_pretty(&counted()?)?;
    text.push('\n');
    fs::write(file, text)?;
    println!("recorded in {file}");
    Ok(())
}

fn compare(file: &str) -> Outcome<ExitCode> {
    let counted = counted()?;
    let before: Counts = serde_json::from_str(&fs::read_to_string(file)?)?;
    if (&before.rustc, &before.target) != (&counted.rustc, &counted.target) {
        let [then, now] = [&before, &counted].map(|counts| format!("{}, {}", counts.rustc, counts.target));
        return Err(format!("the counts were recorded with {then}, and this is {now}").into());
    }
    let mut beyond = 0;
    for (name, count) in &counted.instructions {
        match before.instructions.get(name) {
            None => {
                println!("{name}: {count:.2}, NOT RECORDED");
                beyond += 1;
            }
            Some(before) => {
                let change = 100.0 * (count - before) / before;
                let verdict = if change.abs() > TOLERANCE_PERCENT { "CHANGED" } else { "ok" };
                println!("{name}: {count:.2}, recorded {before:.2}, {change:+.2} %, {verdict}");
                beyond += usize::from(verdict != "ok");
            }
        }
    }
    for name in before.instructions.keys().filter(|name| !counted.instructions.contains_key(*name)) {
        let isa = name.split(' ').nth(2).and_then(|isa| isa.parse::<Isa>().ok());
        if isa.is_some_and(|isa| isa.present().is_err()) {
            println!("SKIPPED {name}: not on this CPU");
            continue;
        }
        println!("{name}: recorded, and no longer counted");
        beyond += 1;
    }
    if beyond > 0 {
        println!("{beyond} beyond {TOLERANCE_PERCENT} %; where that is meant: .ci/instructions --record");
    }
    Ok(if beyond > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
