//! The routes of many peers in memory: `adj_ribs_in TABLE [PEERS]`.
//!
//! Each of the peers (63 if not given) announces the routes of the table but for a seeded hundredth of them, with a next hop of
//! its own for one route in eight and the next hop of the table for the others. Then a hundredth of all is withdrawn.

use std::error::Error;
use std::time::Instant;

use fibula_feed::event::{Action, Announcement, Event, Path, Peer, Time};
use fibula_feed::select::AdjRibsIn;
use fibula_feed::{Label, LoadOptions, Loader};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: adj_ribs_in TABLE [PEERS]")?;
    let peers: u32 = arguments.next().map_or(Ok(63), |text| text.parse())?;
    let loaded = Loader::new(LoadOptions::default()).load(file.as_str())?;
    let (mut routes, mut next_hops) = (AdjRibsIn::default(), loaded.next_hops);
    let table: Vec<_> = loaded.ribs.iter().collect();
    // SplitMix64: seeded by route and peer.
    let number = |at: usize, peer: u32| {
        let mut z = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(peer) << 40;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let (mut changes, start) = (0, Instant::now());
    let mut events = 0;
    for peer in 0..peers {
        for (at, &(prefix, next_hop)) in table.iter().enumerate() {
            let number = number(at, peer);
            if number % 100 == 0 {
                continue;
            }
            let label = match number >> 32 & 7 {
                0 => Label::Address([203, 0, 113, peer as u8].into()),
                _ => next_hops.label(next_hop).ok_or("a next hop without a label")?.clone(),
            };
            let path_len = Some(2 + (number >> 40) as u32 % 5);
            let path = Path { prefix, id: None };
            let route = Announcement { path, next_hop: label, path_len, dumped: true, attributes: None };
            let event = event(peer, Action::Announce(route));
            routes.apply(event, &mut next_hops, |_, _| changes += 1)?;
            events += 1;
        }
    }
    report("announced", &routes, events, changes, start);
    let (mut changes, mut events, start) = (0, 0, Instant::now());
    for peer in 0..peers {
        for (at, &(prefix, _)) in table.iter().enumerate() {
            if number(at, peer) % 100 == 1 {
                let event = event(peer, Action::Withdraw(Path { prefix, id: None }));
                routes.apply(event, &mut next_hops, |_, _| changes += 1)?;
                events += 1;
            }
        }
    }
    report("withdrawn", &routes, events, changes, start);
    Ok(())
}

fn event(peer: u32, action: Action) -> Event {
    let peer = Some(Peer { address: [192, 0, 2, peer as u8].into(), asn: 64_496 + peer });
    Event { time: Time::default(), peer, action }
}

fn report(what: &str, routes: &AdjRibsIn, events: usize, changes: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{events} routes {what} in {seconds:.1} s, {:.0} ns each; {changes} changes of the best; {} routes of {} prefixes, \
         {:.0} MB",
        seconds * 1e9 / events.max(1) as f64,
        routes.routes(),
        routes.prefixes(),
        routes.memory().allocated_bytes as f64 / 1e6
    );
}
