//! Two threads and one table: one replays recorded updates, the other looks addresses up. `live TABLE UPDATES`

use std::{error::Error, sync::atomic::AtomicBool, sync::atomic::Ordering::Relaxed, thread, time::Instant};

use fibula::live::{Options, Table};
use fibula_feed::{LoadOptions, Loader};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [routes, updates] = &files[..] else { return Err("usage: live TABLE UPDATES".into()) };
    let mut loader = Loader::new(LoadOptions::default());
    let mut loaded = loader.load(routes.as_str())?;
    let (table, done) = (Table::from_routes(loaded.ribs, Options::default())?, AtomicBool::new(false));
    let (mut reader, mut micros) = (table.reader()?, Vec::new());
    let keys: Vec<u32> = (0..1 << 16).map(|at: u32| at.wrapping_mul(0x9e37_79b9)).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut found, mut count, start) = ([None; 256], 0, Instant::now());
            while !done.load(Relaxed) {
                keys.chunks(256).for_each(|keys| reader.pin().lookup_batch(keys, &mut found));
                count += keys.len();
            }
            println!("{:.0} M lookups/s", count as f64 / start.elapsed().as_secs_f64() / 1e6);
        });
        let replayed = loader.events(updates.as_str(), |event| {
            let begun = Instant::now();
            let changed = event.apply(&table, &mut loaded.next_hops)?.changed;
            micros.extend((changed > 0).then(|| begun.elapsed().as_secs_f64() * 1e6));
            Ok(())
        });
        done.store(true, Relaxed);
        micros.sort_by(f64::total_cmp);
        let [half, most] = [500, 999].map(|at| micros.get(micros.len() * at / 1000).unwrap_or(&0.0));
        println!("{:.2} M changes/s", micros.len() as f64 / micros.iter().sum::<f64>());
        println!("visible after {half:.1} us (p50), {most:.1} us (p99.9)");
        replayed.map(drop).map_err(Into::into)
    })
}
