//! Ports, interfaces and neighbours.

use std::sync::Arc;

use fibula::Table;

use crate::count::PortCounters;
use crate::forward::Shared;
use crate::forward::fabric::{Fabric, Gateway, Hop, Interface, Port, Urpf, Vrf};
use crate::neighbour::Key;
use crate::packet::ethernet::{Mac, Tags};

/// Number of next hops. Routes have next hops from 1 to this.
pub const GATEWAYS: u32 = 16;

/// The address of a port.
pub(super) fn mac(port: usize) -> Mac {
    Mac([2, 0, 0, 0, 0, 0xf0 | port as u8])
}

/// Makes a fabric of pairs of ports. Packets arrive at the first port of a pair (0, 2, ...), and leave by the second port of a
/// pair. The next hops of the table are gateways with known MAC addresses, assigned to the ports in turn. A `bridge` passes all
/// frames from the first port of a pair to the second, without a lookup.
#[must_use]
pub fn network(table: Table, pairs: usize, bridge: bool) -> Arc<Shared> {
    let mut fabric = Fabric { hops: vec![None], icmp_rate: (1000, 100), bridge, ..Fabric::default() };
    for number in 0..2 * pairs as u16 {
        let mut port = Port::new(format!("port{number}"), false);
        port.attach(Tags::NONE, number);
        fabric.ports.push(port);
        fabric.interfaces.push(Interface {
            name: format!("port{number}"),
            port: usize::from(number),
            tags: Tags::NONE,
            mac: mac(usize::from(number)),
            virtual_macs: vec![],
            mtu: 1500,
            v4: vec![(address(u32::from(number), 0xfe), 24)],
            v6: vec![],
            vrf: 0,
            urpf: Urpf::Off,
            kernel: false,
            machine: None,
            up: true,
            missing: false,
        });
    }
    let ways = || (0..GATEWAYS).map(|gateway| (2 * (gateway % pairs as u32) + 1, gateway + 1));
    for (port, host) in ways() {
        fabric
            .hops
            .push(Some(Hop::Via { interface: port as u16, gateway: Gateway::V4(address(port, host)) }));
    }
    fabric.vrfs.push(Vrf { name: "default".into(), table });
    let shared = Shared::new(fabric, Default::default());
    for (port, host) in ways() {
        let key = Key::v4(port as u16, address(port, host));
        shared.neighbours.learn(key, Mac([2, 0, 0, 0, 1, host as u8]), true, true, 0);
    }
    shared
}

fn address(port: u32, host: u32) -> u32 {
    0x0a00_0000 | port << 8 | host
}

/// Returns counters for `ports` ports.
#[must_use]
pub fn counters(ports: usize) -> Arc<[PortCounters]> {
    (0..ports).map(|_| PortCounters::default()).collect()
}
