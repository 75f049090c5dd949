//! The multibit-trie router paper.

use std::ops::ControlFlow;

use fibula::fib::Fib as _;
use fibula::memory::Limits;
use fibula::net::{Key, Prefix, Routes};
use fibula_published::internals::Multibit;
use serde::Deserialize;

use super::context::PaperKey;
use super::definition::PaperTable;
use super::packets::PacketRow;
use super::values::{Function, bind};
use super::{Context, Point, packets};

/// The functions that the paper's file names.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("multibit/sizes-ipv4", |file| bind(file, sizes::<u32>)),
    ("multibit/sizes-ipv6", |file| bind(file, sizes::<u128>)),
    ("multibit/reads-ipv4", |file| bind(file, reads::<u32>)),
    ("multibit/reads-ipv6", |file| bind(file, reads::<u128>)),
    ("multibit/forwarding", |file| bind(file, forwarding)),
];

/// Packets that are forwarded: rows of each number of flows with each size.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Forwarding {
    table: PaperTable,
    flows: Vec<usize>,
    bytes: Vec<usize>,
    ports: usize,
    /// Why the column of the kernel is empty.
    no_kernel: String,
}

impl Forwarding {
    /// Rows are named by the parameter that differs.
    fn rows(&self) -> Vec<PacketRow> {
        let row = |flows: usize, bytes| {
            let name = if self.flows.len() > 1 { flows } else { bytes };
            PacketRow { name: name.to_string(), flows, bytes }
        };
        self.flows.iter().flat_map(|&flows| self.bytes.iter().map(move |&bytes| row(flows, bytes))).collect()
    }
}

fn forwarding(context: &mut Context<'_>, of: &Forwarding) -> Result<Vec<Point>, String> {
    let rows = of.rows();
    let mut points = packets::theoretical(&rows, of.ports);
    points.extend(packets::by_way(context, &of.table, "multibit", &rows, of.ports)?);
    points.extend(rows.iter().map(|row| Point::absent(&row.name, "kernel", &of.no_kernel)));
    Ok(points)
}

/// Tries of a table, which rows call by its label, with several strides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tries {
    table: PaperTable,
    label: String,
    strides: Vec<u32>,
}

impl Tries {
    /// Builds one after the other, each with the name of its row.
    fn visit<K: Key>(
        &self,
        routes: &dyn Routes<K>,
        visit: &mut dyn FnMut(String, Multibit<K>),
    ) -> Result<(), String> {
        for &stride in &self.strides {
            let trie =
                Multibit::build(routes, stride, Limits::default()).map_err(|error| error.to_string())?;
            visit(format!("{}, stride {stride}", self.label), trie);
        }
        Ok(())
    }
}

fn sizes<K: PaperKey>(context: &mut Context<'_>, tries: &Tries) -> Result<Vec<Point>, String> {
    let rib = K::table(context, &tries.table)?.rib;
    let mut points = Vec::new();
    tries.visit(&*rib, &mut |row, trie| {
        let bytes = trie.memory().lookup_bytes as f64;
        points.extend([
            Point::new(row.clone(), "nodes", trie.nodes() as f64),
            Point::new(row.clone(), "MB", bytes / 1e6),
            Point::new(row, "bytes a route", bytes / rib.len() as f64),
        ]);
    })?;
    Ok(points)
}

fn reads<K: PaperKey>(context: &mut Context<'_>, tries: &Tries) -> Result<Vec<Point>, String> {
    let rib = K::table(context, &tries.table)?.rib;
    let pattern = fibula_workload::traffic::find::<K>("match").ok_or("MATCH is a pattern")?;
    let keys = (pattern.generate)(&*rib, context.settings.keys, 1).map_err(|error| error.to_string())?;
    let mut points = Vec::new();
    tries.visit(&*rib, &mut |row, trie| {
        let mut most = 0;
        let _ = rib.visit(Prefix::ALL, &mut |route| {
            most = most.max(trie.reads(route.prefix.addr())).max(trie.reads(route.prefix.last()));
            ControlFlow::Continue(())
        });
        let all: u64 = keys.iter().map(|&key| u64::from(trie.reads(key))).sum();
        points.push(Point::new(row.clone(), "most", most.into()));
        points.push(Point::new(row, "mean", all as f64 / keys.len() as f64));
    })?;
    Ok(points)
}
