//! Rates of packets, by a router that the caller supplies.

use core::time::Duration;

use fibula::net::{Key, Routes};
use fibula::rib::{DualRib, Rib};
use fibula_workload::interval::Interval;
use fibula_workload::traffic;
use serde::Deserialize;

use super::context::Context;
use super::definition::PaperTable;
use super::record::Point;

/// Why there are no rates of packets.
pub(super) const NO_ROUTER: &str = "takes a router, and the program that measured this supplied none";

/// Makes routers.
pub trait Routers {
    /// Returns the reason why this way cannot be measured; `None` if it can.
    fn lacks(&self, way: PacketPath) -> Option<&'static str>;

    /// Returns a router of these routes, with the engines of this name for the families that have routes.
    ///
    /// # Errors
    /// When memory runs out, or an engine refuses the routes.
    fn open(&self, routes: DualRib, engine: &str) -> Result<Box<dyn Router>, String>;
}

/// A router with ports in memory, or on ports of DPDK without hardware.
pub trait Router {
    /// Makes the packets that the next runs forward.
    ///
    /// # Errors
    /// When memory runs out, or the packets cannot be.
    fn load(&mut self, packets: &Packets<'_>) -> Result<(), String>;

    /// Forwards all packets as often as takes `time`, but once at least, and returns million packets a second.
    ///
    /// # Errors
    /// When a packet is lost, or the system has no threads.
    fn run(&mut self, way: PacketPath, time: Duration) -> Result<f64, String>;
}

/// Packets of one race.
#[derive(Debug, Clone, Copy)]
pub struct Packets<'a> {
    /// Destinations, taken in turn.
    pub keys: Destinations<'a>,
    /// Different packets on each port; `None` for one a key.
    pub flows: Option<usize>,
    /// Packets of a port in memory.
    pub count: usize,
    /// Bytes of a frame, its checksum included.
    pub bytes: usize,
    /// Ports that receive.
    pub ports: usize,
    /// Threads, which each have a queue of every port.
    pub threads: usize,
}

/// Destinations of one family.
#[derive(Debug, Clone, Copy)]
pub enum Destinations<'a> {
    /// IPv4 addresses.
    V4(&'a [u32]),
    /// IPv6 addresses.
    V6(&'a [u128]),
}

/// How packets are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketPath {
    /// By threads that the program starts.
    #[default]
    Threads,
    /// By those of a data-parallel run-time.
    RunTime,
    /// From port to port, without a lookup, by threads that the program starts.
    Bridge,
    /// By three threads, which receive, look up and send, between ports of DPDK without hardware (net_null).
    Stages,
}

/// The lines of a figure that are measured.
const WAYS: [(&str, PacketPath); 3] = [
    ("threads by hand", PacketPath::Threads),
    ("data-parallel run-time", PacketPath::RunTime),
    ("bridge", PacketPath::Bridge),
];

/// Packets of a port in memory where there are few flows: as many as the rings of a network card may have.
const RING: usize = 4096;

/// A row of a figure: flows on each port, and bytes of a frame.
pub(super) struct PacketRow {
    pub(super) name: String,
    pub(super) flows: usize,
    pub(super) bytes: usize,
}

/// Measures rates of forwarding by every way, with all cores, one race a row.
pub(super) fn by_way(
    context: &mut Context<'_>,
    table: &PaperTable,
    engine: &str,
    rows: &[PacketRow],
    ports: usize,
) -> Result<Vec<Point>, String> {
    let columns = || WAYS.map(|(name, _)| name);
    let Some(routers) = context.routers() else {
        let absent = |row: &PacketRow| columns().map(|column| Point::absent(&row.name, column, NO_ROUTER));
        return Ok(rows.iter().flat_map(absent).collect());
    };
    let (name, rib) = context.ipv4(table)?;
    let settings = context.settings;
    let keys = keys(&*rib, settings.keys.min(RING))?;
    let mut router = routers.open(DualRib::new((*rib).clone(), Rib::default()), engine)?;
    let mut points = Vec::new();
    for &PacketRow { name: ref row, flows, bytes } in rows {
        let threads = settings.cores;
        let count = RING.min(settings.keys);
        let keys = Destinations::V4(&keys);
        router.load(&Packets { keys, flows: Some(flows), count, bytes, ports, threads })?;
        let mut runs = WAYS.map(|_| Vec::new());
        for _ in 0..settings.runs {
            for ((_, way), runs) in WAYS.iter().zip(&mut runs) {
                runs.push(router.run(*way, settings.run)?);
            }
        }
        let race = format!("{name}, {bytes} bytes, {flows} flows, {ports} ports, {threads} threads");
        points.extend(columns().into_iter().zip(runs).map(|(column, runs)| point(row, column, runs, &race)));
    }
    Ok(points)
}

/// Engines that forward, and the tables that they do it in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Schemes {
    tables: Vec<PaperTable>,
    engines: Vec<String>,
    /// How packets are forwarded: by default one thread receives, looks up and sends.
    #[serde(default)]
    way: PacketPath,
}

/// Measures rates of forwarding by several engines, all of a table in one race: frames of 64 bytes to random addresses
/// below random routes. The columns are the engines.
pub(super) fn by_structure(context: &mut Context<'_>, schemes: &Schemes) -> Result<Vec<Point>, String> {
    let Schemes { tables, engines, way } = schemes;
    let mut points = Vec::new();
    for table in tables {
        let routers = context.routers().ok_or(NO_ROUTER);
        let routers = match routers.and_then(|routers| routers.lacks(*way).map_or(Ok(routers), Err)) {
            Ok(routers) => routers,
            Err(why) => {
                points.extend(engines.iter().map(|engine| Point::absent(&table.made, engine, why)));
                continue;
            }
        };
        let (name, rib) = context.ipv6(table)?;
        let settings = context.settings;
        let keys = keys(&*rib, settings.keys)?;
        let mut routers = engines
            .iter()
            .map(|engine| routers.open(DualRib::new(Rib::default(), (*rib).clone()), engine))
            .collect::<Result<Vec<_>, _>>()?;
        let count = settings.keys.min(1 << 16);
        for router in &mut routers {
            router.load(&Packets {
                keys: Destinations::V6(&keys),
                flows: None,
                count,
                bytes: 64,
                ports: 1,
                threads: 1,
            })?;
        }
        let mut runs = vec![Vec::new(); engines.len()];
        for _ in 0..settings.runs {
            for (router, runs) in routers.iter_mut().zip(&mut runs) {
                runs.push(router.run(*way, settings.run)?);
            }
        }
        points.extend(engines.iter().zip(runs).map(|(engine, runs)| point(&name, engine, runs, &name)));
    }
    Ok(points)
}

/// Returns random addresses below random routes.
fn keys<K: Key>(routes: &dyn Routes<K>, count: usize) -> Result<Vec<K>, String> {
    let pattern = traffic::find::<K>("match").ok_or("MATCH is a pattern")?;
    (pattern.generate)(routes, count, 1).map_err(|error| error.to_string())
}

/// Equation 1 of the multibit-trie router paper: packets of so many bytes that ports of 10 Gbit/s carry, in millions a second.
pub(super) fn theoretical(rows: &[PacketRow], ports: usize) -> Vec<Point> {
    let rate = |bytes: usize| ports as f64 * 10_000.0 / (8 * (bytes + 20)) as f64;
    rows.iter().map(|row| Point::new(&row.name, "theoretical", rate(row.bytes))).collect()
}

fn point(row: &str, column: &str, runs: Vec<f64>, race: &str) -> Point {
    let found = Interval::of(&runs);
    Point {
        value: found.map(|found| found.median),
        low: found.map(|found| found.low),
        high: found.map(|found| found.high),
        runs,
        race: Some(race.to_owned()),
        note: None,
        ..Point::absent(row, column, "")
    }
}
