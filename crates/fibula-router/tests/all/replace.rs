//! No packet is lost, and none goes astray, while a table is loaded, replaced and withdrawn under traffic.
//!
//! The ports are in memory and the sender waits for room, so the rate is whatever the router can do. Every packet goes to a
//! prefix that stays: it must leave once, by its old or its new next hop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fibula::net::{Change, NextHop, Prefix, Route};
use fibula_router::forward::fabric::{Gateway, Hop};
use fibula_router::io::memory::Frame;

use crate::support::frames::build;
use crate::support::network::{self, Network};

/// Prefixes that come and go; `FIBULA_ROUTES` says how many.
fn count() -> u32 {
    std::env::var("FIBULA_ROUTES").ok().and_then(|count| count.parse().ok()).unwrap_or(60_000)
}

fn routes(count: u32, hop: NextHop) -> Vec<Change<u32>> {
    let prefix = |n: u32| {
        Prefix::masked(0x2000_0000_u32.wrapping_add(n << 8), if n.is_multiple_of(3) { 24 } else { 23 })
    };
    (0..count).filter_map(|n| Some(Change::Insert(Route::new(prefix(n).ok()?, hop)))).collect()
}

/// The first of 64 addresses of a prefix that stays, evenly among those that come and go.
fn stay_at(n: u32) -> u32 {
    0x2000_0000 + ((n * (count() / 256)) << 8)
}

#[test]
fn every_packet_leaves_once_by_its_old_or_its_new_next_hop() {
    let mut fabric = network::fabric();
    let gateway = Gateway::V4(0x0a00_0101);
    let right = network::add(&mut fabric, Hop::Via { interface: 1, gateway });
    let ten = network::add(&mut fabric, Hop::Via { interface: 2, gateway: Gateway::V4(0x0a00_0201) });
    let table = fabric.vrfs[0].table.clone();
    let (right, ten) = (NextHop::try_from(right).unwrap(), NextHop::try_from(ten).unwrap());
    // Prefixes that stay, each within one that comes and goes, so that the load rewrites what their packets are looked up in. Their next
    // hop changes too.
    let stays: Vec<Prefix<u32>> = (0..256).map(|n| Prefix::new(stay_at(n), 26).unwrap()).collect();
    let stay = |hop| stays.iter().map(|&prefix| Change::Insert(Route::new(prefix, hop))).collect::<Vec<_>>();
    table.apply(&stay(right)).unwrap();

    let (done, versions) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut network = Network::with(fabric, Default::default());
    let sent = std::thread::scope(|scope| {
        scope.spawn(|| {
            let all = routes(count(), ten);
            for round in 0..4 {
                for changes in all.chunks(512) {
                    table.apply(changes).unwrap();
                }
                table.apply(&stay(if round % 2 == 0 { ten } else { right })).unwrap();
                let others = routes(count(), right);
                others.chunks(512).for_each(|changes| {
                    table.apply(changes).unwrap();
                });
                for changes in all.chunks(512) {
                    let removes: Vec<_> =
                        changes.iter().map(|change| Change::Remove(change.prefix())).collect();
                    table.apply(&removes).unwrap();
                }
                versions.fetch_add(1, Ordering::Relaxed);
            }
            done.store(true, Ordering::Relaxed);
        });
        let template = build("eth R0 a / ip4 10.0.0.1 32.0.0.1 / udp 1 2 / data 18", &[]).bytes;
        let mut sent = 0u64;
        while !done.load(Ordering::Relaxed) {
            for n in 0..64u32 {
                let mut bytes = template.clone();
                let destination = stay_at((sent as u32 + n) % 256) + n;
                bytes[30..34].copy_from_slice(&destination.to_be_bytes());
                bytes[24..26].fill(0);
                let sum = fibula_router::packet::checksum::checksum(&bytes[14..34]);
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
                network.io.ports[0].input.push_back(Frame::from(bytes));
            }
            network.run();
            let (by_right, by_ten) = (network.io.take_output(1), network.io.take_output(2));
            assert_eq!(by_right.len() + by_ten.len(), 64, "after {sent} packets");
            sent += 64;
        }
        sent
    });
    network.check();
    assert_eq!(network.totals(0).all_dropped(), 0);
    assert_eq!(network.totals(0).forwarded, sent);
    assert_eq!(versions.load(Ordering::Relaxed), 4);
    println!("{sent} packets while {} routes came, changed and went, four times", count());
}
