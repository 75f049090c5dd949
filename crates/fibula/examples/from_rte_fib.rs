//! Migrating from DPDK's `rte_fib`: its calls, and the calls that replace them.
//!
//! `cargo run -p fibula --example from_rte_fib`; its output is shown in `docs/guide/cookbook.md`.

use std::error::Error;
use std::io::{self, Write};
use std::net::Ipv4Addr;

use fibula::fib::registry::{self, Engine};
use fibula::fib::{Applied, Fib};
use fibula::memory::Limits;
use fibula::net::{Change, Keys, NextHop, Prefix, Route, Strided};
use fibula::rib::Rib;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// A `struct rte_fib`: the routes, and the structure for lookups.
struct Table {
    engine: Engine<u32>,
    limits: Limits,
    rib: Rib<u32>,
    fib: Box<dyn Fib<u32>>,
    default_next_hop: u32,
}

impl Table {
    /// `rte_fib_create`. No number of routes is fixed in advance; memory can be limited.
    fn create(engine: &str, limits: Limits, default_next_hop: u32) -> Result<Self, Box<dyn Error>> {
        let engine = registry::find(engine)?;
        let rib = Rib::new(limits);
        let fib = engine.build(&rib, limits)?;
        Ok(Self { engine, limits, rib, fib, default_next_hop })
    }

    /// `rte_fib_add` and `rte_fib_delete` of many routes at once: if the structure cannot change in place, all of them
    /// cost one build.
    fn apply(&mut self, changes: &[Change<u32>]) -> Result<(), Box<dyn Error>> {
        self.rib.apply(changes)?;
        let applied = match self.fib.updatable() {
            Some(fib) => fib.apply(changes, &self.rib)?,
            None => Applied::NeedsRebuild("it does not change in place"),
        };
        if let Applied::NeedsRebuild(_) = applied {
            // If memory runs out here, the old structure keeps answering, and the next change builds again.
            self.fib = self.engine.build(&self.rib, self.limits)?;
        }
        Ok(())
    }

    /// `rte_fib_lookup_bulk`. 0 means no route; replace it by a default next hop if you need one.
    fn lookup_bulk(&self, keys: Keys<'_, u32>) -> Vec<u32> {
        let mut results = vec![None; keys.len()];
        self.fib.batch(keys).run(&mut results);
        results.into_iter().map(|result| result.map_or(self.default_next_hop, NextHop::id)).collect()
    }
}

/// The route of `rte_fib_add(fib, ip, depth, next_hop)`. Host bits are an error here.
fn route(ip: Ipv4Addr, depth: u8, next_hop: u32) -> Result<Route<u32>, Box<dyn Error>> {
    Ok(Route::new(Prefix::new(ip.to_bits(), depth)?, NextHop::try_from(next_hop)?))
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut table = Table::create("dir-24-8", Limits::within(256 << 20), 99)?;
    table.apply(&[
        Change::Insert(route(Ipv4Addr::new(192, 0, 2, 0), 24, 1)?),
        Change::Insert(route(Ipv4Addr::new(192, 0, 2, 128), 25, 2)?),
    ])?;

    // Keys in host order, as `rte_fib_lookup_bulk` takes them without flags.
    let addresses = [[192, 0, 2, 1], [192, 0, 2, 200], [203, 0, 113, 9]];
    let keys = addresses.map(u32::from_be_bytes);
    writeln!(out, "host order    {:?}", table.lookup_bulk(Keys::Host(&keys)))?;

    // Keys as packets hold them: RTE_FIB_F_LOOKUP_NETWORK_ORDER, chosen by the call rather than the table.
    writeln!(out, "network order {:?}", table.lookup_bulk(Keys::Network(&addresses)))?;

    // Destinations in IPv4 headers, 64 bytes from each other, are looked up in place.
    let mut headers = [[0; 64]; 3];
    for (header, address) in headers.iter_mut().zip(addresses) {
        header[16..20].copy_from_slice(&address);
    }
    let keys = Strided::new(headers.as_flattened(), 16, 64, 3).ok_or("the headers are too short")?;
    writeln!(out, "in headers    {:?}", table.lookup_bulk(Keys::Strided(keys)))?;

    let gone = Prefix::new(Ipv4Addr::new(192, 0, 2, 128).to_bits(), 25)?;
    table.apply(&[Change::Remove(gone)])?;
    writeln!(out, "one deleted   {:?}", table.lookup_bulk(Keys::Network(&addresses)))?;

    // The routes themselves, `rte_fib_get_rib` there.
    for route in &table.rib {
        writeln!(out, "{} -> {}", route.prefix, route.next_hop)?;
    }

    // A depth beyond the family and host bits are refused, and nothing has changed.
    assert!(route(Ipv4Addr::new(10, 0, 0, 0), 33, 1).is_err());
    assert!(route(Ipv4Addr::new(10, 0, 0, 1), 8, 1).is_err());
    // So is a next hop of 0, which means "no route" in results: number yours from 1.
    assert!(route(Ipv4Addr::new(10, 0, 0, 0), 8, 0).is_err());
    // And so is a table that exceeds the memory limit.
    assert!(Table::create("dir-24-8", Limits::within(1 << 20), 99).is_err());
    Ok(())
}
