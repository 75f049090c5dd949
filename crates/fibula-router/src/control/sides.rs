//! The machine's sides of interfaces with VLANs: taps that have the MAC address, the MTU and the carrier of their port.

use std::collections::BTreeMap;
use std::io;

use super::machine::{Identity, Machine};
use super::plan::{self, Wire};
use crate::config::Config;
use crate::io::tap::TapQueue;
use crate::kernel::netlink::Netlink;

/// The properties that the taps were given last, by name.
#[derive(Debug, Default)]
pub(super) struct Sides {
    given: BTreeMap<String, (Identity, Wire)>,
}

impl Sides {
    /// Gives taps the present properties of their ports. A new tap is set up, with the addresses of the configuration. Changes by an
    /// operator stay until the port changes. Returns the errors of the system, each with the name of its tap.
    pub(super) fn follow(
        &mut self,
        config: &Config,
        machine: &Machine,
        netlink: &mut Netlink,
        taps: &[(String, TapQueue)],
    ) -> Vec<(String, io::Error)> {
        let mut refused = Vec::new();
        for line in config.interfaces.iter().filter(|line| !line.removed) {
            let Some(tap) = &line.host else { continue };
            let Some((link, identity)) = machine.link(tap).zip(machine.identity(tap)) else {
                self.given.remove(tap);
                continue;
            };
            let wire = plan::wire(line, machine);
            let before = self.given.insert(tap.clone(), (identity, wire));
            if before == Some((identity, wire)) {
                continue;
            }
            let before = before.filter(|before| before.0 == identity);
            let set = match before {
                Some((_, Wire { mac, mtu, .. })) if (mac, mtu) == (wire.mac, wire.mtu) => Ok(()),
                Some(_) => netlink.change(link.index, wire.mac, wire.mtu),
                None => {
                    let add = |netlink: &mut Netlink| {
                        let mut addresses = line.addresses.iter();
                        addresses.try_for_each(|&(ip, len)| netlink.add_address(link.index, ip, len))
                    };
                    netlink.set_up(link.index, wire.mac, wire.mtu).and_then(|()| add(netlink))
                }
            };
            let queue = taps.iter().find(|queue| queue.0 == *tap);
            let carrier = queue.map_or(Ok(()), |(_, queue)| queue.set_carrier(wire.up));
            refused
                .extend([set, carrier].into_iter().filter_map(Result::err).map(|error| (tap.clone(), error)));
        }
        refused
    }
}
