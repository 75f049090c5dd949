//! What a packet costs: 64-byte frames through the whole pipeline, with ports in memory that neither copy nor wait.
//!
//! `cargo run --release -p fibula-router --example cost -- TABLE... [--passes N] [--record FILE]`, with a table of each family (or
//! both in one file); `--record` writes what was measured as JSON, see `records/router`. With the feature `dpdk` and `--stages RUNS`,
//! packets a second by stages and processors on ports of DPDK are measured in the place of all else: see `netlab/measure-stages`. Every prefix leads to one of 16
//! gateways; packets go to a random address below a random prefix. Forwarding spends the TTL, so headers are written afresh before
//! every pass; a pass of that alone is measured in turn and subtracted. Passes of both kinds alternate, and the median of their
//! processor times is shown; stages on several threads are timed by the clock on the wall, and are left out while other programs have
//! the processors. With the feature `dpdk`, also on ports of DPDK without hardware (net_null). "lookup" is the batch lookup of the same addresses
//! alone, and "bridge" the same frames by the router as a bridge.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use fibula::Table;
use fibula::live::Options;
use fibula::net::NextHop;
use fibula::rib::DualRib;
use fibula_feed::{LoadOptions, Loader, Source};
use fibula_router::count::Totals;
use fibula_router::forward::{Shared, Worker};
use fibula_router::io::{BURST, Io};
use fibula_router::measure::{FrameRing, Frames, GATEWAYS, Keys, counters, network};
use fibula_router::stage::{self, Staged};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

#[path = "../tests/support/circumstances.rs"]
mod circumstances;
#[path = "../tests/support/random.rs"]
mod random;
use random::Random;

/// Bytes of a frame, its checksum included.
const FRAME: usize = 64;
const PACKETS: usize = 1 << 16;
const END: stage::End = stage::End { kernel: false, sends: true, segments: false, pool: None };

/// Returns random addresses below random routes.
fn keys(ribs: &DualRib, v6: bool, random: &mut Random) -> (Vec<u32>, Vec<u128>) {
    let v4_prefixes: Vec<_> = ribs.v4.iter().map(|route| route.prefix).collect();
    let v6_prefixes: Vec<_> = ribs.v6.iter().map(|route| route.prefix).collect();
    let (mut v4, mut v6_keys) = (Vec::new(), Vec::new());
    for _ in 0..PACKETS {
        let bits = random.next();
        if v6 {
            let prefix = v6_prefixes[bits as usize % v6_prefixes.len()];
            let low = u128::from(random.next()) << 64 | u128::from(random.next());
            v6_keys.push(prefix.addr() | low & (prefix.last() ^ prefix.addr()));
        } else {
            let prefix = v4_prefixes[bits as usize % v4_prefixes.len()];
            v4.push(prefix.addr() | (bits >> 32) as u32 & (prefix.last() ^ prefix.addr()));
        }
    }
    (v4, v6_keys)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the processor time of this thread that `what` takes, in nanoseconds a packet: what else the machine does in between does
/// not count.
fn timed(what: impl FnOnce()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let begin = now();
    what();
    (now() - begin) / PACKETS as f64
}

/// What was measured of a family: nanoseconds a packet.
#[derive(Debug)]
struct Measured {
    rows: Vec<(&'static str, f64)>,
}

fn fresh(template: &Frames) -> FrameRing {
    FrameRing::new([template.clone()])
}

/// Two or three stages in turn on one thread: all of their work.
fn stages_together(shared: &Arc<Shared>, template: &Frames, passes: usize, three: bool) -> f64 {
    let mut worker = Worker::new(Arc::clone(shared), counters(2)).expect("memory for a worker");
    let (mut source, mut sink) = (fresh(template), fresh(template));
    let mut times = Vec::new();
    if three {
        let mut stages = stage::three(&[END; 2], [1, 1, 1], false, &mut || counters(2)).expect("rings");
        for _ in 0..passes {
            source.rewind();
            times.push(timed(|| {
                for _ in 0..PACKETS / BURST {
                    stages.receive[0].turn(&mut source, 0);
                    worker.burst(&mut stages.workers[0], 0, 1);
                    stages.transmit[0].turn(&mut sink);
                }
            }));
        }
        assert_eq!(sink.sent(), (passes * PACKETS) as u64);
    } else {
        let stages = stage::two(&[END; 2], [1, 1], false, &mut || counters(2)).expect("rings");
        let (mut receive, io) = (stages.receive, stages.workers.into_iter().next().expect("a worker"));
        let mut io = io.direct(sink);
        for _ in 0..passes {
            source.rewind();
            times.push(timed(|| {
                for _ in 0..PACKETS / BURST {
                    receive[0].turn(&mut source, 0);
                    worker.burst(&mut io, 0, 1);
                }
            }));
        }
        assert_eq!(io.out().0.sent(), (passes * PACKETS) as u64);
    }
    median(times)
}

/// Receives all passes, never more than there is room for, and then ends.
fn first_stage(mut stage: stage::Receive, template: &Frames, passes: usize) {
    let mut io = fresh(template);
    let mut left = passes * PACKETS / BURST;
    while left > 0 {
        if stage.has_room(0) {
            if io.left(0) == 0 {
                io.rewind();
            }
            stage.turn(&mut io, 0);
            left -= 1;
        } else {
            std::hint::spin_loop();
        }
    }
}

fn middle<I: Io>(mut worker: Worker, io: &mut I, ready: impl Fn(&mut I) -> bool, ended: impl Fn(&I) -> bool) {
    loop {
        let end = ended(io);
        if !ready(io) || worker.burst(io, 0, 1) == 0 {
            if end {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// Two or three stages, each on a thread of its own: the time a packet takes of all together.
fn stages_apart(shared: &Arc<Shared>, template: &Frames, passes: usize, three: bool) -> f64 {
    let worker = Worker::new(Arc::clone(shared), counters(2)).expect("memory for a worker");
    let begin = Instant::now();
    if three {
        let stages = stage::three(&[END; 2], [1, 1, 1], false, &mut || counters(2)).expect("rings");
        let (receive, lookup, send) = (stages.receive, stages.workers, stages.transmit);
        std::thread::scope(|scope| {
            for stage in receive {
                scope.spawn(move || first_stage(stage, template, passes));
            }
            for (mut io, worker) in lookup.into_iter().zip([worker]) {
                scope.spawn(move || middle(worker, &mut io, |io| io.out().has_room(), Staged::ended));
            }
            for mut stage in send {
                let mut io = fresh(template);
                while !stage.ended() {
                    if stage.turn(&mut io) == 0 {
                        std::hint::spin_loop();
                    }
                }
            }
        });
    } else {
        let stages = stage::two(&[END; 2], [1, 1], false, &mut || counters(2)).expect("rings");
        std::thread::scope(|scope| {
            for stage in stages.receive {
                scope.spawn(move || first_stage(stage, template, passes));
            }
            for (io, worker) in stages.workers.into_iter().zip([worker]) {
                let mut io = io.direct(fresh(template));
                middle(worker, &mut io, |_| true, Staged::ended);
            }
        });
    }
    begin.elapsed().as_nanos() as f64 / (passes * PACKETS) as f64
}

/// Frames to these destinations, in the family that has some.
fn frames((v4_keys, v6_keys): (&[u32], &[u128])) -> Frames {
    let destinations = if v4_keys.is_empty() { Keys::V6(v6_keys) } else { Keys::V4(v4_keys) };
    Frames::new(destinations, None, PACKETS, FRAME, 0).expect("addresses to forward to")
}

fn measure(ribs: &DualRib, v6: bool, (passes, load): (usize, f64)) -> Measured {
    let (v4_keys, v6_keys) = keys(ribs, v6, &mut Random::new(7));
    let template = frames((&v4_keys, &v6_keys));
    let table = Table::from_routes(ribs.clone(), Options::default()).expect("memory for the table");
    let shared = network(table.clone(), 1, false);
    let counts = counters(2);
    let mut worker = Worker::new(Arc::clone(&shared), Arc::clone(&counts)).expect("memory for a worker");
    let across = network(Table::new().expect("memory for a table"), 1, true);
    let mut other = Worker::new(across, counters(2)).expect("memory for a worker");
    let mut io = fresh(&template);
    let (mut write, mut whole, mut lookup, mut bridge) = (vec![], vec![], vec![], vec![]);
    let mut reader = table.reader().expect("memory for a reader");
    for _ in 0..passes {
        write.push(timed(|| black_box(&mut io).renew()));
        whole.push(timed(|| {
            io.renew();
            for _ in 0..PACKETS / BURST {
                worker.burst(&mut io, 0, 1);
            }
        }));
        lookup.push(timed(|| {
            let mut pin = reader.pin();
            let mut results = [None; BURST];
            for begin in (0..PACKETS).step_by(BURST) {
                if v6 {
                    pin.lookup_batch(&v6_keys[begin..begin + BURST], &mut results);
                } else {
                    pin.lookup_batch(&v4_keys[begin..begin + BURST], &mut results);
                }
                black_box(&results);
                pin.refresh();
            }
        }));
        bridge.push(timed(|| {
            io.renew();
            for _ in 0..PACKETS / BURST {
                other.burst(&mut io, 0, 1);
            }
        }));
    }
    let mut totals = Totals::default();
    counts[0].add_to(&mut totals);
    let expected = (passes * PACKETS) as u64;
    assert_eq!((totals.forwarded, totals.received), (expected, expected), "{totals:?}");
    let (write, lookup) = (median(write), median(lookup));
    let whole = median(whole) - write;
    let bridge = median(bridge) - write;
    let mut rows = vec![
        ("run to completion", whole),
        ("of it lookup", lookup),
        ("of it bridge", bridge),
        ("of it rules, next hop, neighbour, rewriting", whole - lookup - bridge),
        ("writing headers afresh, subtracted", write),
        ("two stages, one thread", stages_together(&shared, &template, passes, false)),
        ("three stages, one thread", stages_together(&shared, &template, passes, true)),
    ];
    // Threads look for packets without end, and only a processor each lets them.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for (name, threads) in [("two stages, two threads", 2), ("three stages, three threads", 3)] {
        if threads > processors {
            continue;
        }
        if load + threads as f64 > processors as f64 + 1.0 {
            println!("SKIPPED {name}: other programs have the processors (load average {load})");
            continue;
        }
        rows.push((name, stages_apart(&shared, &template, passes, threads == 3)));
    }
    #[cfg(all(target_os = "linux", feature = "dpdk"))]
    rows.extend(on_null(&shared, other, &template, passes));
    Measured { rows }
}

/// On ports of DPDK that receive frames without contents and free what they send: the contents are written afresh.
#[cfg(all(target_os = "linux", feature = "dpdk"))]
fn on_null(
    shared: &Arc<Shared>,
    mut other: Worker,
    template: &Frames,
    passes: usize,
) -> [(&'static str, f64); 3] {
    let mut io = fibula_router::measure::null::NullPorts::open().expect("ports of DPDK");
    io.set_frames(&Arc::new(template.clone()));
    let mut worker = Worker::new(Arc::clone(shared), counters(2)).expect("memory for a worker");
    let (mut write, mut whole, mut bridge) = (vec![], vec![], vec![]);
    for _ in 0..passes {
        write.push(timed(|| {
            for _ in 0..PACKETS / BURST {
                io.receive(0);
                io.finish();
            }
        }));
        whole.push(timed(|| {
            for _ in 0..PACKETS / BURST {
                worker.burst(&mut io, 0, 1);
            }
        }));
        bridge.push(timed(|| {
            for _ in 0..PACKETS / BURST {
                other.burst(&mut io, 0, 1);
            }
        }));
    }
    let write = median(write);
    [
        ("run to completion, net_null", median(whole) - write),
        ("of it bridge, net_null", median(bridge) - write),
        ("receiving, headers and freeing, subtracted", write),
    ]
}

/// Rates of packets by shape and processors, on the same ports: the median of some runs, which alternate.
#[cfg(all(target_os = "linux", feature = "dpdk"))]
fn rates(shared: &Arc<Shared>, template: &Frames, runs: usize) -> Vec<Value> {
    use fibula_router::config::Shape;
    use fibula_router::measure::null::{Bench, StagePlan};

    let frames = Arc::new(template.clone());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut bench = Bench::open(processors).expect("ports of DPDK");
    let mut ways = Vec::new();
    let mut cores = 1;
    while cores <= processors {
        // As many threads as processors, but one of each stage at least.
        let ends = (cores / 4).max(1);
        ways.push(StagePlan { shape: Shape::Complete, workers: cores, cores });
        let receive = (cores / 2).max(1);
        ways.push(StagePlan {
            shape: Shape::Two { receive },
            workers: cores.saturating_sub(receive).max(1),
            cores,
        });
        let workers = cores.saturating_sub(2 * ends).max(1);
        ways.push(StagePlan { shape: Shape::Three { receive: ends, send: ends }, workers, cores });
        cores *= 2;
    }
    let mut found: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for _ in 0..runs {
        for (way, found) in ways.iter().zip(&mut found) {
            let time = std::time::Duration::from_millis(500);
            found.push(bench.run(shared, &frames, *way, time).expect("packets"));
        }
    }
    let row = |(way, mut runs): (&StagePlan, Vec<f64>)| {
        runs.sort_by(f64::total_cmp);
        let (shape, threads) = match way.shape {
            Shape::Complete => ("run to completion", vec![way.workers]),
            Shape::Two { receive } => ("two stages", vec![receive, way.workers]),
            Shape::Three { receive, send } => ("three stages", vec![receive, way.workers, send]),
        };
        let rounded = |rate: f64| (rate * 100.0).round() / 100.0;
        json!({
            "shape": shape, "threads": threads, "cores": way.cores, "mpps": rounded(runs[runs.len() / 2]),
            "least": rounded(runs[0]), "most": rounded(runs[runs.len() - 1]),
        })
    };
    ways.iter().zip(found).map(row).collect()
}

/// Measures the rates of both families, and prints them as JSON.
#[cfg(all(target_os = "linux", feature = "dpdk"))]
fn stages(ribs: &DualRib, runs: usize, load: f64) -> ExitCode {
    let mut measured = serde_json::Map::new();
    let mut engines = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        if if v6 { ribs.v6.is_empty() } else { ribs.v4.is_empty() } {
            continue;
        }
        let (v4_keys, v6_keys) = keys(ribs, v6, &mut Random::new(7));
        let table = Table::from_routes(ribs.clone(), Options::default()).expect("memory for the table");
        let rates = rates(&network(table, 1, false), &frames((&v4_keys, &v6_keys)), runs);
        measured.insert(family.to_owned(), rates.into());
        engines.push(if v6 { Options::default().ipv6.name } else { Options::default().ipv4.name });
    }
    let record = circumstances::record(
        load,
        &json!({
            "what": "million packets of 64 bytes a second on ports of DPDK without hardware (net_null), by stages and processors",
            "ipv4_routes": ribs.v4.len(),
            "ipv6_routes": ribs.v6.len(),
            "runs": runs,
            "engines": engines,
            "measured": measured,
        }),
    );
    println!("{record:#}");
    ExitCode::SUCCESS
}

#[cfg(not(all(target_os = "linux", feature = "dpdk")))]
fn stages(_: &DualRib, _: usize, _: f64) -> ExitCode {
    eprintln!("--stages takes the feature dpdk");
    ExitCode::from(2)
}

fn record(
    path: &str,
    ribs: &DualRib,
    (passes, load): (usize, f64),
    measured: &[(&str, Measured)],
) -> std::io::Result<()> {
    let families = measured.iter().map(|(family, measured)| {
        let rows =
            measured.rows.iter().map(|(name, ns)| ((*name).into(), ((ns * 10.0).round() / 10.0).into()));
        ((*family).to_owned(), Value::Object(rows.collect()))
    });
    let families: serde_json::Map<String, Value> = families.collect();
    let record = circumstances::record(
        load,
        &json!({
            "what": "nanoseconds a packet of 64 bytes, ports in memory (examples/cost.rs)",
            "ipv4_routes": ribs.v4.len(),
            "ipv6_routes": ribs.v6.len(),
            "packets": PACKETS,
            "passes": passes,
            "engines": [Options::default().ipv4.name, Options::default().ipv6.name],
            "measured": families,
        }),
    );
    if let Some(folder) = std::path::Path::new(path).parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, format!("{record:#}\n"))
}

fn main() -> ExitCode {
    let (load, mut files, mut passes, mut path, mut runs) =
        (circumstances::load(), Vec::new(), 51, None, None);
    let usage = || {
        eprintln!("usage: cost TABLE... [--passes N] [--record FILE] [--stages RUNS]");
        ExitCode::from(2)
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--passes" => passes = args.next().and_then(|count| count.parse().ok()).unwrap_or(passes),
            "--record" => match args.next() {
                Some(file) => path = Some(file),
                None => return usage(),
            },
            "--stages" => runs = args.next().and_then(|count| count.parse().ok()),
            _ => files.push(arg),
        }
    }
    if files.is_empty() {
        return usage();
    }
    let mut ribs = DualRib::default();
    for file in files {
        let table = match Loader::new(LoadOptions::default()).load(Source::files([file.as_str()])) {
            Ok(table) => table,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(3);
            }
        };
        for (prefix, label) in table.ribs.iter() {
            let hop = NextHop::new(label.id() % GATEWAYS + 1).expect("not zero");
            ribs.insert(prefix, hop).expect("memory for a route");
        }
    }
    if let Some(runs) = runs {
        return stages(&ribs, runs, load);
    }
    println!("{} IPv4 and {} IPv6 routes, {PACKETS} frames of {FRAME} bytes", ribs.v4.len(), ribs.v6.len());
    let mut measured = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        if if v6 { ribs.v6.is_empty() } else { ribs.v4.is_empty() } {
            continue;
        }
        let found = measure(&ribs, v6, (passes, load));
        println!("{family}, nanoseconds a packet");
        found.rows.iter().for_each(|(name, ns)| println!("  {name:<46}{ns:8.1}"));
        measured.push((family, found));
    }
    if let Some(path) = path
        && let Err(error) = record(&path, &ribs, (passes, load), &measured)
    {
        eprintln!("{path}: {error}");
        return ExitCode::from(3);
    }
    ExitCode::SUCCESS
}
