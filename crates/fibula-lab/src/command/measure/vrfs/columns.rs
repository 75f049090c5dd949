//! Columns of (VRF, address), beside one table at a time and beside random loads.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::rc::Rc;

use fibula::fib::{self, Fib};
use fibula::live::TableKey;
use fibula::memory::{Budget, Buffer, Limits};
use fibula::net::{NextHop, Route, RouteSlice};
use fibula::simd::Present;
use fibula::vrf::{Vrf, Vrfs, internals};
use fibula_workload::machine::Machine;
use fibula_workload::random::Random;

use super::super::cpu_ns;
use super::tables::{VrfTables, some};
use super::{Outcome, VrfsArgs};
use crate::command::figures::FigureTables;

/// Batches that are measured.
const BATCHES: [usize; 3] = [256, 1024, 4096];

/// Tables that are looked up one at a time.
const SINGLE: usize = 24;

type OfFamily<K> = fn(&VrfTables) -> &Rc<Vec<Route<K>>>;

/// The columns of the table. Rates are in million lookups a second.
const HEADER: [&str; 9] = [
    "",
    "VRFs",
    "MB",
    "one table at a time",
    "one table as large",
    "column",
    "of one at a time",
    "random loads",
    "of them",
];

/// Measures both families: a row for each case and batch.
pub(super) fn measure(
    figures: &mut FigureTables,
    vrfs: &Vrfs,
    numbers: &[Vrf],
    all: &[VrfTables],
    arguments: &VrfsArgs,
) -> Outcome {
    let isa = Present::all().last().map_or("", |present| present.isa().name());
    figures.table(format!("Columns of (VRF, address) by {isa}, million lookups a second"), &HEADER);
    family::<u32>(figures, "IPv4", vrfs, numbers, all, |tables| &tables.v4, arguments)?;
    family::<u128>(figures, "IPv6", vrfs, numbers, all, |tables| &tables.v6, arguments)
}

fn family<K: TableKey>(
    figures: &mut FigureTables,
    name: &str,
    vrfs: &Vrfs,
    numbers: &[Vrf],
    all: &[VrfTables],
    of: OfFamily<K>,
    arguments: &VrfsArgs,
) -> Outcome {
    for (case, members) in cases(all, of)? {
        let column = LookupColumn::new(all, &members, of, arguments.keys)?;
        let bytes = bytes(all, &members, of)?;
        let singles = singles(all, &members, of, arguments.keys)?;
        let as_large = as_large(all, &members, of, arguments.keys)?;
        let floor = Floor::new(bytes, arguments.keys)?;
        for batch in BATCHES {
            let ways = Ways { vrfs, numbers, singles: &singles, as_large: &as_large, floor: &floor };
            let [one, large, mixed, loads] = column.rates(&ways, batch, arguments.runs)?;
            figures.row(vec![
                format!("{name}, {case}, batches of {batch}"),
                members.len().to_string(),
                format!("{:.2}", bytes as f64 / 1e6),
                format!("{one:.0}"),
                if as_large.is_empty() { String::new() } else { format!("{large:.0}") },
                format!("{mixed:.0}"),
                format!("{:.2}", mixed / one),
                format!("{loads:.0}"),
                format!("{:.2}", mixed / loads),
            ]);
        }
    }
    Ok(())
}

/// Returns the kinds of columns: a name, and VRFs.
fn cases<K: TableKey>(all: &[VrfTables], of: OfFamily<K>) -> Outcome<[(&'static str, Vec<usize>); 5]> {
    let caches = Machine::this().caches;
    let l2 = caches.iter().find(|cache| cache.level == 2).map_or(1 << 19, |cache| cache.bytes as usize);
    let full: Vec<usize> = (0..all.len().min(10)).collect();
    let small: Vec<usize> = (full.len()..all.len()).filter(|&at| !of(&all[at]).is_empty()).collect();
    // Half of the cache, as keys, numbers and answers pass through it too.
    let mut near = Vec::new();
    for &at in &small {
        near.push(at);
        if bytes(all, &near, of)? > l2 / 2 {
            near.pop();
            break;
        }
    }
    let everything: Vec<usize> = full.iter().chain(&small).copied().collect();
    Ok([
        ("small ones in half of L2", near),
        ("all small ones", small),
        ("one full table", vec![0]),
        ("ten full tables", full),
        ("all", everything),
    ])
}

/// Returns the bytes that lookups in these VRFs can touch: equal ones once.
fn bytes<K: TableKey>(all: &[VrfTables], members: &[usize], of: OfFamily<K>) -> Outcome<usize> {
    let mut seen = BTreeSet::new();
    let mut sum = members.len() * size_of::<u64>();
    let block = internals::engines::<K>()[0];
    let name = if K::BITS == 32 { "dir-17-bitmap" } else { "dir-btree" };
    for &at in members {
        let routes = of(&all[at]);
        if seen.insert(Rc::as_ptr(routes)) {
            let engine = if routes.len() > 1 << 14 { fibula_published::find::<K>(name)? } else { block };
            sum += engine.build(&RouteSlice::new(routes)?, Limits::default())?.memory().lookup_bytes;
        }
    }
    Ok(sum)
}

/// Returns a random address below a random route.
fn address<K: TableKey>(routes: &[Route<K>], random: &mut Random) -> K {
    let prefix = routes[random.below(routes.len() as u64) as usize].prefix;
    let within = prefix.last().to_bits() - prefix.addr().to_bits();
    K::from_bits(prefix.addr().to_bits() + random.up_to(within))
}

/// One table as a user would have it, with keys for it.
struct Single<K: TableKey> {
    fib: Box<dyn Fib<K>>,
    keys: Vec<K>,
}

fn singles<K: TableKey>(
    all: &[VrfTables],
    members: &[usize],
    of: OfFamily<K>,
    keys: usize,
) -> Outcome<Vec<Single<K>>> {
    let mut random = Random::new(3);
    let count = members.len().min(SINGLE);
    // Full tables are much alike.
    let step = if of(&all[members[0]]).len() > 1 << 14 { members.len() } else { members.len() / count };
    let mut singles = Vec::new();
    for &at in members.iter().step_by(step).take(count) {
        let routes = of(&all[at]);
        let fib = fib::build(&RouteSlice::new(routes)?)?;
        singles.push((fib, at));
    }
    let each = keys / singles.len();
    let fill = |(fib, at): (Box<dyn Fib<K>>, usize)| {
        let keys = (0..each).map(|_| address(of(&all[at]), &mut random)).collect();
        Single { fib, keys }
    };
    Ok(singles.into_iter().map(fill).collect())
}

/// One table with as many routes as small tables have in all, with keys for it; none for full ones.
fn as_large<K: TableKey>(
    all: &[VrfTables],
    members: &[usize],
    of: OfFamily<K>,
    keys: usize,
) -> Outcome<Vec<Single<K>>> {
    let base = of(&all[0]);
    let count: usize = members.iter().map(|&at| of(&all[at]).len()).sum();
    if count > base.len() / 4 {
        return Ok(Vec::new());
    }
    let mut random = Random::new(5);
    let routes = some(base, count, &mut random);
    let keys = (0..keys).map(|_| address(&routes, &mut random)).collect();
    Ok(vec![Single { fib: fib::build(&RouteSlice::new(&routes)?)?, keys }])
}

/// The other ways that a column is compared with.
struct Ways<'a, K: TableKey> {
    vrfs: &'a Vrfs,
    numbers: &'a [Vrf],
    singles: &'a [Single<K>],
    as_large: &'a [Single<K>],
    floor: &'a Floor,
}

/// Returns the million lookups a second of tables one after the other.
fn rate_of<K: TableKey>(tables: &[Single<K>], batch: usize, results: &mut [Option<NextHop>]) -> f64 {
    let mut looked_up = 0;
    let time = seconds(|| {
        for single in tables {
            looked_up += single.keys.len();
            for keys in single.keys.chunks(batch) {
                single.fib.lookup_batch(black_box(keys), &mut results[..keys.len()]);
                black_box(&results);
            }
        }
    });
    looked_up as f64 / time / 1e6
}

/// Rows, and their answers.
struct LookupColumn<K> {
    rows: Vec<u32>,
    keys: Vec<K>,
    expected: Vec<Option<NextHop>>,
}

impl<K: TableKey> LookupColumn<K> {
    fn new(all: &[VrfTables], members: &[usize], of: OfFamily<K>, count: usize) -> Outcome<Self> {
        let mut random = Random::new(7);
        let rows: Vec<u32> =
            (0..count).map(|_| members[random.below(members.len() as u64) as usize] as u32).collect();
        let keys: Vec<K> = rows.iter().map(|&at| address(of(&all[at as usize]), &mut random)).collect();
        let mut expected = vec![None; count];
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&row| rows[row]);
        // Another engine's answers, one table after the other.
        let oracle = fibula_published::find::<K>("range-search")?;
        for same in order.chunk_by(|&a, &b| rows[a] == rows[b]) {
            let routes = of(&all[rows[same[0]] as usize]);
            let fib = oracle.build(&RouteSlice::new(routes)?, Limits::default())?;
            same.iter().for_each(|&row| expected[row] = fib.lookup_key(keys[row]));
        }
        Ok(Self { rows, keys, expected })
    }

    /// Returns the medians of the rates of tables one at a time, of one as large, of the column, and of random loads, in turn.
    fn rates(&self, ways: &Ways<'_, K>, batch: usize, runs: usize) -> Outcome<[f64; 4]> {
        let rows: Vec<Vrf> = self.rows.iter().map(|&at| ways.numbers[at as usize]).collect();
        let mut reader = ways.vrfs.reader()?;
        let pin = reader.pin();
        let mut results = vec![None; batch];
        let chunks = || rows.chunks(batch).zip(self.keys.chunks(batch));
        for ((rows, keys), expected) in chunks().zip(self.expected.chunks(batch)) {
            pin.lookup_batch(rows, keys, &mut results[..keys.len()]);
            if results[..keys.len()] != *expected {
                return Err("a wrong answer".into());
            }
        }
        let mut rates = [const { Vec::new() }; 4];
        for _ in 0..=runs {
            rates[0].push(rate_of(ways.singles, batch, &mut results));
            rates[1].push(rate_of(ways.as_large, batch, &mut results));
            let mixed = seconds(|| {
                for (rows, keys) in chunks() {
                    pin.lookup_batch(black_box(rows), black_box(keys), &mut results[..keys.len()]);
                    black_box(&results);
                }
            });
            rates[2].push(self.keys.len() as f64 / mixed / 1e6);
            let loads = seconds(|| ways.floor.pass());
            rates[3].push(ways.floor.places.len() as f64 / loads / 1e6);
        }
        Ok(rates.map(|mut rates| {
            // The first run warms up.
            rates.remove(0);
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        }))
    }
}

/// Random loads that do not wait for each other.
struct Floor {
    words: Buffer<u32>,
    places: Vec<u32>,
}

impl Floor {
    fn new(bytes: usize, count: usize) -> Outcome<Self> {
        // In huge pages, as engines are.
        let mut words = Budget::default().buffer(bytes / 4)?;
        words.extend(0..(bytes / 4) as u32);
        let mut random = Random::new(9);
        let places = (0..count).map(|_| random.below(words.len() as u64) as u32).collect();
        Ok(Self { words, places })
    }

    fn pass(&self) {
        let mut sum = 0_u32;
        for &place in black_box(&self.places) {
            sum = sum.wrapping_add(self.words[place as usize]);
        }
        black_box(sum);
    }
}

/// Returns the processor time that `work` takes.
fn seconds(work: impl FnOnce()) -> f64 {
    let start = cpu_ns();
    work();
    (cpu_ns() - start) * 1e-9
}
