//! Packets of a paper, by the router with ports in memory, or on ports of DPDK without hardware.

use core::fmt::Display;
use core::time::Duration;
use std::sync::Arc;

use crate::paper::{Destinations, PacketPath, Packets, Router, Routers};
use fibula::Table;
use fibula::fib::registry::Engine;
use fibula::live::Options;
use fibula::net::{Key, NextHop};
use fibula::rib::{DualRib, Rib};
use fibula_router::config::RunTime;
use fibula_router::forward::Shared;
use fibula_router::measure::{self, Crew, FrameRing, Frames, GATEWAYS};

/// Makes routers with ports in memory.
pub(super) struct InMemory;

/// A table, and the workers that forward by it now.
struct Pipeline {
    table: Table,
    loaded: Option<Loaded>,
}

/// Workers that look up, and others that pass the same packets on; and what stages take: the router, and packets for its first port.
struct Loaded {
    route: Crew,
    bridge: Crew,
    shared: Arc<Shared>,
    frames: Arc<Frames>,
}

impl Routers for InMemory {
    fn lacks(&self, way: PacketPath) -> Option<&'static str> {
        (way == PacketPath::Stages && !cfg!(all(target_os = "linux", feature = "router-dpdk")))
            .then_some("takes ports of DPDK: a build with the feature router-dpdk")
    }

    fn open(&self, routes: DualRib, engine: &str) -> Result<Box<dyn Router>, String> {
        let DualRib { mut v4, mut v6 } = routes;
        let mut options = Options::default();
        if let Some(engine) = among::<u32>(&mut v4, engine)? {
            options.ipv4 = engine;
        }
        if let Some(engine) = among::<u128>(&mut v6, engine)? {
            options.ipv6 = engine;
        }
        let table = Table::from_routes(DualRib::new(v4, v6), options).map_err(text)?;
        Ok(Box::new(Pipeline { table, loaded: None }))
    }
}

/// Makes the next hops of routes gateways of the router, and returns the engine; `None` without routes.
fn among<K: Key>(routes: &mut Rib<K>, engine: &str) -> Result<Option<Engine<K>>, String> {
    if routes.is_empty() {
        return Ok(None);
    }
    routes.map_next_hops(|route| NextHop::new(route.next_hop.id() % GATEWAYS + 1).unwrap_or(route.next_hop));
    fibula_published::find::<K>(engine).map(Some).map_err(text)
}

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Router for Pipeline {
    fn load(&mut self, packets: &Packets<'_>) -> Result<(), String> {
        // The workers that were loaded before are freed first.
        self.loaded = None;
        let keys = match packets.keys {
            Destinations::V4(keys) => measure::Keys::V4(keys),
            Destinations::V6(keys) => measure::Keys::V6(keys),
        };
        let mut queues: Vec<Vec<Frames>> = vec![Vec::new(); packets.threads];
        let mut first = Frames::none();
        for port in 0..packets.ports {
            let frames =
                Frames::new(keys, packets.flows, packets.count, packets.bytes, 2 * port).map_err(text)?;
            for (queue, frames) in queues.iter_mut().zip(frames.spread(packets.threads)) {
                // Every second port only sends.
                queue.extend([frames, Frames::none()]);
            }
            if port == 0 {
                first = frames;
            }
        }
        let crew = |shared: &Arc<Shared>| {
            Crew::new(shared, queues.iter().map(|ports| FrameRing::new(ports.iter().cloned())).collect())
        };
        let shared = measure::network(self.table.clone(), packets.ports, false);
        let route = crew(&shared).map_err(text)?;
        let bridge = crew(&measure::network(self.table.clone(), packets.ports, true)).map_err(text)?;
        self.loaded = Some(Loaded { route, bridge, shared, frames: Arc::new(first) });
        Ok(())
    }

    fn run(&mut self, way: PacketPath, time: Duration) -> Result<f64, String> {
        let Loaded { route, bridge, shared, frames } = self.loaded.as_mut().ok_or("no packets are loaded")?;
        let (crew, run_time) = match way {
            PacketPath::Threads => (route, RunTime::Threads),
            PacketPath::RunTime => (route, RunTime::Rayon),
            PacketPath::Bridge => (bridge, RunTime::Threads),
            PacketPath::Stages => return stages(shared, frames, time),
        };
        let mut forward =
            |passes| crew.forward(run_time, passes).ok_or("the system has no threads for the run-time");
        // The first pass says how many more take the time.
        let (mut passes, mut taken) = (1, forward(1)?);
        while taken < time {
            let a_pass = taken.as_secs_f64() / passes as f64;
            let more = ((time - taken).as_secs_f64() / a_pass.max(1e-9)).ceil() as usize;
            let more = more.clamp(1, 10_000);
            taken += forward(more)?;
            passes += more;
        }
        Ok((crew.packets() * passes) as f64 / taken.as_secs_f64().max(1e-9) / 1e6)
    }
}

/// Forwards by one thread of each stage, with a processor for each where there are three, and else all on one, where they take turns.
/// The ports of DPDK are opened once.
#[cfg(all(target_os = "linux", feature = "router-dpdk"))]
fn stages(shared: &Arc<Shared>, frames: &Arc<Frames>, time: Duration) -> Result<f64, String> {
    use std::sync::{Mutex, PoisonError};

    use fibula_router::config::Shape;
    use fibula_router::measure::null::{Bench, StagePlan};

    static BENCH: Mutex<Option<Bench>> = Mutex::new(None);
    let mut bench = BENCH.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = match &mut *bench {
        Some(bench) => bench,
        none => none.insert(Bench::open(1).map_err(text)?),
    };
    let cores = if std::thread::available_parallelism().map_or(1, usize::from) >= 3 { 3 } else { 1 };
    let way = StagePlan { shape: Shape::Three { receive: 1, send: 1 }, workers: 1, cores };
    bench.run(shared, frames, way, time).map_err(text)
}

#[cfg(not(all(target_os = "linux", feature = "router-dpdk")))]
fn stages(_: &Arc<Shared>, _: &Arc<Frames>, _: Duration) -> Result<f64, String> {
    Err("this build has no ports of DPDK".into())
}
