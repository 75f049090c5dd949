//! Both families at full width: random tables, tables of the Internet's shape, real ones where they are; batch shapes; processor
//! and device together.

use std::sync::Arc;
use std::thread;

use fibula::fib::registry::Engine;
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice};
use fibula_gpu::cooperate::{Cooperative, Options, Share};
use fibula_gpu::device::Device;
use fibula_gpu::{Image, put_keys};
use fibula_proof::subject::Tested;
use fibula_proof::tables::{Model, Random};
use fibula_proof::toy::hop;
use fibula_proof::verdict::{Failure, edges};
use fibula_workload::table::{Profile, TableSpec, generate};
use libtest_mimic::Trial;

use super::support::{compare, engines, word};

pub(crate) fn trials(device: &Arc<dyn Device>) -> Vec<Trial> {
    let mut trials = of_family::<u32>(device, |routes| {
        generate(&TableSpec { routes, ..TableSpec::ipv4() }, &Profile::ipv4()).expect("a table")
    });
    trials.extend(of_family::<u128>(device, |routes| {
        generate(&TableSpec { routes, ..TableSpec::ipv6() }, &Profile::ipv6()).expect("a table")
    }));
    trials
}

fn of_family<K: Tested>(device: &Arc<dyn Device>, made: fn(usize) -> Vec<Route<K>>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (at, engine) in engines(K::entries()).into_iter().enumerate() {
        let mut add = |kind: &str, run: Run<K>| {
            let device = Arc::clone(device);
            let name = format!("{kind}/{}/{}/{}", engine.name, K::FAMILY.name(), device.facts().id);
            trials.push(Trial::test(name, move || run(&*device, &engine, made)));
        };
        add("random", |device, engine, _| random_tables(device, engine));
        add("shaped", shaped);
        add("batches", batches);
        add("together", together);
        // A matter of the driver: one engine shows it.
        if at == 0 {
            add("sizes", sizes);
        }
    }
    trials
}

type Run<K> = fn(&dyn Device, &Engine<K>, fn(usize) -> Vec<Route<K>>) -> Result<(), Failure>;

/// Returns keys at the ends of prefixes, within them, and anywhere.
fn probes<K: Key>(random: &mut Random, routes: &[Route<K>], count: usize) -> Vec<K> {
    let mut keys = edges(routes.iter().map(|route| route.prefix).take(count));
    for _ in 0..count {
        keys.push(random.key());
        if !routes.is_empty() {
            let route = routes[random.below(routes.len())];
            keys.push(random.inside(route.prefix));
        }
    }
    keys
}

pub(crate) fn judged<K: Key>(
    device: &dyn Device,
    engine: &Engine<K>,
    routes: &[Route<K>],
    keys: &[K],
) -> Result<(), Failure> {
    let slice = RouteSlice::new(routes)?;
    let fib = match engine.build(&slice, Limits::default()) {
        Err(error) if error.is_limit() => return Ok(()),
        built => built?,
    };
    let oracle = fibula_published::find::<K>("binary-trie")?.build(&slice, Limits::default())?;
    compare(device, Image::of(&*fib, engine.name)?, keys, &*oracle)
}

pub(crate) fn random_tables<K: Tested>(device: &dyn Device, engine: &Engine<K>) -> Result<(), Failure> {
    let mut random = Random(11);
    for (count, hops) in
        [(0, 1), (1, 1), (20, 3), (300, 200), (2_000, 300), (2_000, 32_000), (2_000, 100_000), (500, 1 << 30)]
    {
        let routes = Model::<K>::random(&mut random, count, hops).routes();
        let keys = probes(&mut random, &routes, 2_000);
        judged(device, engine, &routes, &keys)?;
    }
    // Side by side, as dense as nodes and lines get; and host routes, each in a part of the space of its own.
    let (len, width) = if K::BITS == 128 { (48, 80) } else { (22, 10) };
    for (len, count) in [(len, 3_000), (K::BITS, 9_000)] {
        let prefix =
            |at: u128| Prefix::masked(K::from_bits((1 << (K::BITS - 2)) + (at << width) + at % 7), len);
        let route = |at| Ok::<_, Failure>(Route::new(prefix(at)?, hop(1 + (at * 7 % 251) as u32)));
        let routes = (0..count).map(route).collect::<Result<Vec<_>, _>>()?;
        let keys = probes(&mut random, &routes, 10_000);
        judged(device, engine, &routes, &keys)?;
    }
    Ok(())
}

fn shaped<K: Tested>(
    device: &dyn Device,
    engine: &Engine<K>,
    made: fn(usize) -> Vec<Route<K>>,
) -> Result<(), Failure> {
    let (mut random, mut routes) = (Random(12), made(60_000));
    let keys = probes(&mut random, &routes, 100_000);
    judged(device, engine, &routes, &keys)?;
    // Host routes, alone in their /24 or /48 and several in one.
    for at in 0..4_000 {
        let prefix = routes[(at / 4) * 13].prefix;
        let inside = random.inside(prefix);
        let host = Prefix::masked(inside, K::BITS - (at % 3) as u8)?;
        routes.push(Route::new(host, hop(1 + (at % 700) as u32)));
    }
    routes.sort_unstable_by_key(|route| route.prefix);
    routes.dedup_by_key(|route| route.prefix);
    let keys = probes(&mut random, &routes, 100_000);
    judged(device, engine, &routes, &keys)
}

/// Batches of many lengths: of nothing, around groups of work items, and as long as the buffer.
fn batches<K: Tested>(
    device: &dyn Device,
    engine: &Engine<K>,
    _: fn(usize) -> Vec<Route<K>>,
) -> Result<(), Failure> {
    let mut random = Random(13);
    let routes = Model::<K>::random(&mut random, 500, 300).routes();
    let fib = engine.build(&RouteSlice::new(&routes)?, Limits::default())?;
    let loaded = device.load(&Image::of(&*fib, engine.name)?.into(), 0)?;
    let keys = probes(&mut random, &routes, 1_000);
    let room = 700;
    let mut lane = loaded.lane(room)?;
    for length in (0..4).chain(62..67).chain([127, 128, 255, 256, 257, 511, 699, 700, 3, 0, 700]) {
        let keys = &keys[random.below(keys.len() - length)..][..length];
        put_keys(keys, loaded.key_words(), lane.keys()?);
        lane.start(length, 0)?;
        let found = lane.wait()?;
        let right: Vec<u32> = keys.iter().map(|&key| word(fib.lookup_key(key))).collect();
        if found != right {
            return Err(format!("a batch of {length} has wrong answers").into());
        }
    }
    // What does not fit is refused, and the buffer serves as before.
    if lane.start(room + 1, 0).is_ok() || loaded.store(usize::MAX, &[0]).is_ok() {
        return Err("more keys or words than there is room for were taken".into());
    }
    Ok(())
}

/// Buffers of several threads, whose launches of one kernel overlap while their sizes grow.
fn sizes<K: Tested>(
    device: &dyn Device,
    engine: &Engine<K>,
    _: fn(usize) -> Vec<Route<K>>,
) -> Result<(), Failure> {
    let mut random = Random(15);
    let routes = Model::<K>::random(&mut random, 500, 300).routes();
    let fib = engine.build(&RouteSlice::new(&routes)?, Limits::default())?;
    let loaded = device.load(&Image::of(&*fib, engine.name)?.into(), 0)?;
    let mut keys = probes(&mut random, &routes, 4_000);
    keys.truncate(8_000);
    let mut right = vec![None; keys.len()];
    fib.lookup_batch(&keys, &mut right);
    let right: Vec<u32> = right.into_iter().map(word).collect();
    let growing = || -> Result<(), Failure> {
        let mut lane = loaded.lane(keys.len())?;
        for length in (20..=keys.len()).step_by(20) {
            put_keys(&keys[..length], loaded.key_words(), lane.keys()?);
            lane.start(length, 0)?;
            if lane.wait()? != &right[..length] {
                return Err(format!("a batch of {length} has wrong answers beside others").into());
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads = [(); 8].map(|()| scope.spawn(growing));
        for thread in threads {
            thread.join().map_err(|_| "a thread of lookups panicked")??;
        }
        Ok(())
    })
}

fn together<K: Tested>(
    device: &dyn Device,
    engine: &Engine<K>,
    made: fn(usize) -> Vec<Route<K>>,
) -> Result<(), Failure> {
    let (mut random, routes) = (Random(14), made(20_000));
    let fib = engine.build(&RouteSlice::new(&routes)?, Limits::default())?;
    let table = device.load(&Image::of(&*fib, engine.name)?.into(), 0)?;
    let keys: Vec<K> = probes(&mut random, &routes, 100_000);
    let mut right = vec![None; keys.len()];
    fib.lookup_batch(&keys, &mut right);
    for (buffers, threads, share, buffer_keys) in [
        (1, 0, Share::Measured, 1 << 14),
        (2, 0, Share::Measured, 10_000),
        (2, 2, Share::Measured, 1 << 13),
        (3, 1, Share::Fixed(0.8), 1 << 12),
        (2, 2, Share::Fixed(0.0), 1 << 12),
        (2, 2, Share::Fixed(1.0), 1 << 12),
    ] {
        let mut options = Options::default();
        (options.buffers, options.threads, options.share) = (buffers, threads, share);
        (options.buffer_keys, options.chunk_keys) = (buffer_keys, 1000);
        let mut both = Cooperative::new(Arc::clone(&table), options)?;
        for length in [0, 1, 999, 100_000, keys.len()] {
            let mut found = vec![NextHop::new(u32::MAX); length];
            let report = both.lookup(&*fib, &keys[..length], &mut found)?;
            let in_all = report.device_keys + report.processor_keys;
            let case = format!("{buffers} buffers, {threads} threads, {share:?}, {length} keys");
            if found != right[..length] || in_all != length || report.failure.is_some() {
                return Err(format!("{case}: {report:?}").into());
            }
            let of_batches: usize = report.batches.iter().map(|batch| batch.keys).sum();
            if of_batches != report.device_keys {
                return Err(format!("{case}: {of_batches} addresses in batches: {report:?}").into());
            }
        }
    }
    Ok(())
}
