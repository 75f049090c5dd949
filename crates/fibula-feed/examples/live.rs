//! Two threads and one table: one replays the updates of the peer that has most, the other looks addresses up.
//! `live TABLE UPDATES`

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use fibula::live::{Options, Table};
use fibula_feed::{LoadOptions, Loader};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [routes, updates] = &files[..] else { return Err("usage: live TABLE UPDATES".into()) };
    let loaded = Loader::new(LoadOptions::default()).load(routes.as_str())?;
    let (table, mut next_hops) = (Table::from_routes(loaded.ribs, Options::default())?, loaded.next_hops);
    let (done, mut reader) = (AtomicBool::new(false), table.reader()?);
    thread::scope(|scope| {
        scope.spawn(|| {
            let keys: Vec<u32> = (0..1 << 16).map(|at: u32| at.wrapping_mul(0x9e37_79b9)).collect();
            let (mut results, mut count, start) = (vec![None; 256], 0, Instant::now());
            while !done.load(Relaxed) {
                for keys in keys.chunks(256) {
                    reader.pin().lookup_batch(keys, &mut results);
                    count += keys.len();
                }
            }
            println!("{:.0} M lookups/s", count as f64 / start.elapsed().as_secs_f64() / 1e6);
        });
        let (mut changed, mut slowest, start) = (0, 0.0_f64, Instant::now());
        let outcome = Loader::new(LoadOptions::default()).events(updates.as_str(), |event| {
            let begun = Instant::now();
            changed += event.apply(&table, &mut next_hops)?.changed;
            slowest = slowest.max(begun.elapsed().as_secs_f64() * 1e6);
            Ok(())
        });
        done.store(true, Relaxed);
        let seconds = start.elapsed().as_secs_f64();
        println!("{changed} changes in {seconds:.2} s; the slowest was visible after {slowest:.0} us");
        outcome.map(drop).map_err(Into::into)
    })
}
