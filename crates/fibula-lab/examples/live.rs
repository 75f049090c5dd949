//! Measures changes of a live table, and lookups beside them: `live FILE [MILLISECONDS]`.
//!
//! Random routes of the table are removed and added again, in batches of 1 and 64, with no reader, with one that looks up
//! random addresses of the table in batches of 256, and at a rate of a million changes a second. Times are those of the
//! writer; readers are given in million lookups a second, beside what they make while nothing changes.

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fibula::live::{Options, Table, TableKey};
use fibula::net::{Change, NextHop, Route};
use fibula::rib::DualRib;
use fibula_feed::{LoadOptions, Loader};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: live FILE [MILLISECONDS]")?;
    let time = Duration::from_millis(arguments.next().map_or(Ok(2_000), |text| text.parse())?);
    let ribs = Loader::new(LoadOptions::default()).load(file.as_str())?.ribs;
    if ribs.v4.len() > ribs.v6.len() {
        let routes: Vec<_> = ribs.v4.iter().collect();
        measure::<u32>(ribs, &routes, time)
    } else {
        let routes: Vec<_> = ribs.v6.iter().collect();
        measure::<u128>(ribs, &routes, time)
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * end as u64) >> 32) as usize
    }
}

fn measure<K: TableKey>(ribs: DualRib, routes: &[Route<K>], time: Duration) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let table = Table::from_routes(ribs, Options::default())?;
    println!("{} routes, built in {:.0} ms", routes.len(), start.elapsed().as_secs_f64() * 1e3);
    let mut random = Random(1);
    let keys: Vec<K> = (0..1 << 18)
        .map(|_| {
            let prefix = routes[random.below(routes.len())].prefix;
            let inside = K::from_bits(random.below(1 << 30) as u128);
            prefix.addr().xor(inside.and(prefix.last().xor(prefix.addr())))
        })
        .collect();
    for batch in [1, 64] {
        change(&table, routes, batch, time, None)?;
    }
    let idle = read(&table, &keys, || thread::sleep(time));
    println!("a reader while nothing changes: {idle:.0} M lookups/s");
    for rate in [None, Some(1e6)] {
        let mut outcome = Ok(());
        let busy = read(&table, &keys, || outcome = change(&table, routes, 64, time, rate));
        outcome?;
        println!("  a reader meanwhile: {busy:.0} M lookups/s, {:.1} % less", 100.0 * (1.0 - busy / idle));
    }
    table.check()?;
    println!("{:?}", table.statistics()?);
    Ok(())
}

/// Removes random routes and adds them again; prints what a change takes.
fn change<K: TableKey>(
    table: &Table,
    routes: &[Route<K>],
    batch: usize,
    time: Duration,
    rate: Option<f64>,
) -> Result<(), Box<dyn Error>> {
    let mut random = Random(batch as u64);
    let (mut changes, mut out, mut back) = (0, Vec::new(), Vec::new());
    let mut calls: Vec<f64> = Vec::new();
    let start = Instant::now();
    let mut work = Duration::ZERO;
    while start.elapsed() < time {
        out.clear();
        back.clear();
        for _ in 0..batch {
            let route = routes[random.below(routes.len())];
            out.push(Change::Remove(route.prefix));
            back.push(Change::Insert(route));
        }
        for some in [&out, &back] {
            let begun = Instant::now();
            changes += table.apply(some)?.changed;
            let took = begun.elapsed();
            work += took;
            calls.push(took.as_secs_f64() * 1e6);
        }
        if let Some(rate) = rate {
            while start.elapsed().as_secs_f64() * rate < changes as f64 {
                std::hint::spin_loop();
            }
        }
    }
    calls.sort_by(f64::total_cmp);
    let at = |share: f64| calls[(calls.len() as f64 * share) as usize];
    println!(
        "batches of {batch}{}: {:.3} us a change, {:.2} M changes/s; a call p50 {:.1} us, p99.9 {:.1} us, max {:.0} us",
        if rate.is_some() { " at a million a second" } else { "" },
        work.as_secs_f64() * 1e6 / changes as f64,
        changes as f64 / start.elapsed().as_secs_f64() / 1e6,
        at(0.5),
        at(0.999),
        at(1.0 - 1.0 / calls.len() as f64),
    );
    Ok(())
}

/// Looks keys up in another thread while `work` lasts; returns million lookups a second.
fn read<K: TableKey>(table: &Table, keys: &[K], work: impl FnOnce()) -> f64 {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = table.reader().expect("memory for a reader");
            let mut found = [None::<NextHop>; 256];
            let mut pin = reader.pin();
            while !stop.load(Ordering::Relaxed) {
                for keys in keys.chunks(256) {
                    pin.lookup_batch(keys, &mut found[..keys.len()]);
                    black_box(&mut found);
                    pin.refresh();
                    done.fetch_add(keys.len() as u64, Ordering::Relaxed);
                }
            }
        });
        thread::sleep(Duration::from_millis(50));
        let (start, before) = (Instant::now(), done.load(Ordering::Relaxed));
        work();
        let looked_up = done.load(Ordering::Relaxed) - before;
        let rate = looked_up as f64 / start.elapsed().as_secs_f64() / 1e6;
        stop.store(true, Ordering::Relaxed);
        rate
    })
}
