//! Makes a fabric and the routes of each VRF from a configuration and the machine's links and addresses.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;

use fibula::live::TableError;
use fibula::net::{IpPrefix, NextHop, Prefix};
use fibula::rib::DualRib;
use fibula::{Table, live};
use fibula_feed::{Label, LoadOptions, Loader, Source};

use super::ControlError;
use super::hops::Hops;
use super::machine::Machine;
use crate::config::{Backend, Config, Member, Target, network};
use crate::forward::fabric::{Fabric, Hop, Interface, Own, Port, Urpf, Vrf};
use crate::io::xdp;
use crate::kernel::netlink::Link;
use crate::neighbour::Key;
use crate::packet::ethernet::{Mac, Tags};
use crate::packet::ipv6;

/// MTU of interfaces unknown to the kernel, unless it is configured.
pub(super) const MTU: usize = 1500;

/// A file of routes, loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    table: fibula_feed::LoadedRoutes,
    vrf: usize,
    target: Option<Target>,
    name: String,
}

/// Loads the files of routes that a configuration names. Paths are relative to `folder`.
pub(super) fn load(config: &Config, folder: &Path) -> Result<Vec<Loaded>, ControlError> {
    let load = |file: &crate::config::TableFile| {
        let path = folder.join(&file.path);
        let table = Loader::new(LoadOptions::default()).load(Source::files([path.clone()]));
        let name = path.display().to_string();
        match table {
            Ok(table) => Ok(Loaded { table, vrf: file.vrf, target: file.target.clone(), name }),
            Err(error) => Err(ControlError::File { line: file.line, name, error }),
        }
    };
    config.tables.iter().map(load).collect()
}

/// Returns the back ends of the ports that a configuration needs, each once and in the order of its interfaces.
pub(super) fn ports(config: &Config) -> Vec<Backend> {
    let mut ports: Vec<Backend> = Vec::new();
    for interface in &config.interfaces {
        for port in [Some(interface.backend.clone()), interface.side()].into_iter().flatten() {
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    ports
}

/// Returns the names of the kernel's devices that a configuration has.
pub(super) fn devices(config: &Config) -> impl Iterator<Item = &str> {
    let present = config.interfaces.iter().filter(|interface| !interface.removed);
    present.flat_map(|interface| {
        let side = interface.host.as_deref();
        [interface.backend.link(), side].into_iter().flatten()
    })
}

/// A fabric and its routes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fabric: Fabric,
    /// Routes of each VRF.
    pub(super) routes: Vec<DualRib>,
    /// Pairs of a device and an address of the machine. The filter passes packets to these addresses to the kernel.
    pub(super) locals: Vec<(u32, IpAddr)>,
    /// Numbers of interfaces whose neighbours the kernel resolves, by number of the device.
    pub(super) devices: BTreeMap<u32, u16>,
    /// Routes that lead nowhere at the moment, and why.
    pub(super) warnings: Vec<String>,
}

/// Makes tables for the VRFs of a configuration. Tables that exist already are kept.
pub(super) fn tables(config: &Config, known: &[Vrf]) -> Result<Vec<Vrf>, TableError> {
    let options = live::Options { ipv4: config.ipv4, ipv6: config.ipv6, ..live::Options::default() };
    let make = |name: &String| match known.iter().find(|vrf| vrf.name == *name) {
        Some(vrf) => Ok(vrf.clone()),
        None => Ok(Vrf { name: name.clone(), table: Table::from_routes(DualRib::default(), options)? }),
    };
    config.vrfs.iter().map(make).collect()
}

/// Makes a plan.
pub(super) fn plan(
    config: &Config,
    machine: &Machine,
    vrfs: &[Vrf],
    loaded: &[Loaded],
    hops: &mut Hops,
) -> Result<Plan, ControlError> {
    let backends = ports(config);
    let port = |backend: &Backend| {
        let mut port = Port::new(backend.device(), backend.has_host());
        let has_gate = config.has_gate(backend);
        port.past = matches!(backend, Backend::Packet { .. }) && !has_gate;
        port.host |= has_gate;
        port
    };
    let mut plan = Plan {
        fabric: Fabric {
            ports: backends.iter().map(port).collect(),
            vrfs: vrfs.to_vec(),
            hash: config.hash,
            icmp_rate: config.icmp_rate,
            martians: config.martians,
            bridge: config.bridge,
            ..Fabric::default()
        },
        routes: vec![DualRib::default(); vrfs.len()],
        locals: Vec::new(),
        devices: BTreeMap::new(),
        warnings: Vec::new(),
    };
    for (number, line) in config.interfaces.iter().enumerate() {
        let port = backends.iter().position(|backend| *backend == line.backend).unwrap_or(0);
        if line.removed {
            plan.fabric.interfaces.push(removed(port));
            continue;
        }
        plan.fabric.ports[port].attach(line.tags, number as u16);
        let mut interface = interface(line, port, machine);
        if let Some(side) = line.side().and_then(|side| backends.iter().position(|port| *port == side)) {
            interface.machine = Some(side);
            plan.fabric.ports[side].machine_of = Some(number as u16);
        }
        if let (true, Some(link)) = (interface.kernel, line.machine().and_then(|name| machine.link(name))) {
            plan.devices.insert(link.index, number as u16);
        }
        plan.fabric.interfaces.push(interface);
    }
    plan.kernel_networks(machine, hops)?;
    // The order is a priority, because a later insertion replaces an earlier one: configured routes come last.
    plan.connected(machine, hops)?;
    for file in loaded {
        plan.file(file, hops)?;
    }
    for route in &config.routes {
        let number = plan.target(&route.target, route.vrf, hops);
        match number {
            Ok(number) => plan.insert(route.vrf, route.prefix, number)?,
            Err(reason) => plan.warnings.push(format!("line {}: {reason}", route.line)),
        }
    }
    plan.fabric.hops = hops.all().to_vec();
    plan.fabric.own = Own::of(&plan.fabric.interfaces);
    Ok(plan)
}

/// Makes an interface that was taken out of the configuration: nothing is received or sent there.
fn removed(port: usize) -> Interface {
    Interface {
        name: String::new(),
        port,
        tags: Tags::NONE,
        mac: Mac::default(),
        virtual_macs: Vec::new(),
        mtu: MTU,
        v4: Vec::new(),
        v6: Vec::new(),
        vrf: 0,
        urpf: Urpf::Off,
        kernel: false,
        machine: None,
        up: false,
        missing: true,
    }
}

/// Returns whether the link of an interface is up.
pub(super) fn is_up(line: &crate::config::Interface, machine: &Machine) -> bool {
    let near = line.machine().map(|name| machine.link(name));
    wire(line, machine).up && near.is_none_or(|link| link.is_some_and(|link| link.up))
}

fn interface(line: &crate::config::Interface, port: usize, machine: &Machine) -> Interface {
    let link = line.backend.link().and_then(|name| machine.link(name));
    // The kernel's part: the device itself, or the tap of an interface with VLANs.
    let near = line.machine().and_then(|name| machine.link(name));
    let kernel = line.machine().is_some();
    let Wire { mac, mtu, .. } = wire(line, machine);
    let is_side = line.host.is_some();
    let is_missing = |name: Option<&str>, link: Option<&Link>| name.is_some() && link.is_none();
    // Addresses of a port with a tap come from the kernel, once the kernel has them.
    let mut addresses = if kernel { Vec::new() } else { line.addresses.clone() };
    if let (true, Some(link)) = (kernel, near) {
        addresses.extend(machine.addresses(link.index).map(|address| (address.ip, address.len)));
    }
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for (ip, len) in addresses {
        match ip {
            IpAddr::V4(ip) => v4.push((ip.into(), len)),
            IpAddr::V6(ip) => v6.push((ip.into(), len)),
        }
    }
    if !kernel && !v6.is_empty() {
        v6.push((mac.link_local(), 64));
    }
    let virtual_macs = [link, near].into_iter().flatten().flat_map(|link| machine.virtual_macs(link.index));
    Interface {
        virtual_macs: virtual_macs.collect(),
        name: line.name.clone(),
        port,
        tags: line.tags,
        mac: near.filter(|_| is_side).and_then(|link| link.mac).unwrap_or(mac),
        mtu: near.filter(|_| is_side).map_or(mtu, |link| mtu.min(link.mtu)),
        v4,
        v6,
        vrf: line.vrf,
        urpf: line.urpf,
        kernel,
        machine: None,
        missing: is_missing(line.backend.link(), link) || is_missing(line.machine(), near),
        up: is_up(line, machine),
    }
}

/// The properties of an interface that are those of its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wire {
    pub(super) mac: Mac,
    pub(super) mtu: usize,
    pub(super) up: bool,
}

/// Returns the properties of an interface that are those of its port.
pub(super) fn wire(line: &crate::config::Interface, machine: &Machine) -> Wire {
    let device = line.backend.device();
    let link = line.backend.link().and_then(|name| machine.link(name));
    let own = machine.port(&device);
    let mac = link.and_then(|link| link.mac).or(line.mac).or(own.map(|port| port.mac));
    let mtu = link.map_or(MTU, |link| link.mtu);
    let mtu = if matches!(line.backend, Backend::Xdp { .. }) { mtu.min(xdp::MTU) } else { mtu };
    // Devices leave room for one tag.
    let mtu = if link.is_some() && line.tags.outer().is_some() { mtu.saturating_sub(4) } else { mtu };
    Wire {
        mac: mac.unwrap_or_else(|| made_up(&device)),
        // The kernel's MTU is an upper bound, because the device sends nothing larger.
        mtu: line.mtu.map_or(mtu, |wanted| if link.is_some() { wanted.min(mtu) } else { wanted }),
        up: line.backend.link().is_none_or(|_| link.is_some_and(|link| link.up && link.refusal().is_none()))
            && own.is_none_or(|port| port.up),
    }
}

/// Returns why the router cannot have devices of a configuration, each with its interface.
pub(super) fn refused(config: &Config, machine: &Machine) -> Vec<String> {
    let lines = config.interfaces.iter().filter(|line| !line.removed && line.backend.is_device());
    let refused = lines.filter_map(|line| {
        let refusal = machine.link(line.backend.link()?)?.refusal()?;
        Some(format!("interface {}: {refusal}", line.name))
    });
    refused.collect()
}

/// Makes a MAC address for a port without one. It depends on the name of the device alone, so it is the same at every start.
pub(super) fn made_up(device: &str) -> Mac {
    let hash = device.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    // 0x02 marks a locally administered address of a single station.
    Mac([0x02, a, b, c, d, e])
}

fn host(ip: IpAddr) -> IpPrefix {
    match ip {
        IpAddr::V4(ip) => IpPrefix::V4(Prefix::host(ip.into())),
        IpAddr::V6(ip) => IpPrefix::V6(Prefix::host(ip.into())),
    }
}

impl Plan {
    fn insert(&mut self, vrf: usize, prefix: IpPrefix, number: NextHop) -> Result<(), ControlError> {
        self.routes[vrf].insert(prefix, number)?;
        Ok(())
    }

    /// Adds the networks that the kernel reaches by interfaces, as its own routes have it: by metric, without those of addresses that
    /// have no such route, and of several interfaces by the one that it uses. An address whose network leaves elsewhere, or nowhere,
    /// stays the router's, but nothing is near it.
    fn kernel_networks(&mut self, machine: &Machine, hops: &mut Hops) -> Result<(), ControlError> {
        let mut used: HashMap<(usize, IpPrefix), u16> = HashMap::new();
        for route in machine.connected() {
            let Some(&number) = self.devices.get(&route.index) else { continue };
            let interface = &self.fabric.interfaces[usize::from(number)];
            let Some(network) = network(route.network, route.len).filter(|_| interface.up) else { continue };
            used.entry((interface.vrf, network)).or_insert(number);
        }
        for (number, interface) in self.fabric.interfaces.iter_mut().enumerate().filter(|line| line.1.kernel)
        {
            let Interface { name, vrf, v4, v6, up, .. } = interface;
            let v4 = v4.iter_mut().map(|(ip, len)| (IpAddr::V4((*ip).into()), len, 32));
            let v6 = v6.iter_mut().map(|(ip, len)| (IpAddr::V6((*ip).into()), len, 128));
            for (ip, len, host) in v4.chain(v6) {
                let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
                let Some(prefix) = network(ip, *len).filter(|_| *up && *len < host && !is_link_local) else {
                    continue;
                };
                match used.get(&(*vrf, prefix)) {
                    Some(&by) if usize::from(by) == number => continue,
                    Some(_) => self.warnings.push(format!(
                        "interface {name}: its network {prefix} leaves by another interface, as the kernel's route does"
                    )),
                    None => self.warnings.push(format!(
                        "interface {name}: the kernel has no route to its network {prefix}, nor has the router"
                    )),
                }
                *len = host;
            }
        }
        for ((vrf, network), interface) in used {
            let connected = hops.number(Hop::Connected { interface });
            self.insert(vrf, network, connected)?;
        }
        Ok(())
    }

    /// Adds the networks of interfaces that the kernel has no part of, and the machine's own addresses.
    fn connected(&mut self, machine: &Machine, hops: &mut Hops) -> Result<(), ControlError> {
        let local = hops.number(Hop::Local);
        for number in 0..self.fabric.interfaces.len() {
            let interface = &self.fabric.interfaces[number];
            let (vrf, up, kernel) = (interface.vrf, interface.up, interface.kernel);
            let v4 = interface.v4.iter().map(|&(ip, len)| (IpAddr::V4(ip.into()), len));
            let v6 = interface.v6.iter().filter(|address| !ipv6::is_link_local(address.0));
            let addresses: Vec<_> = v4.chain(v6.map(|&(ip, len)| (IpAddr::V6(ip.into()), len))).collect();
            let connected = hops.number(Hop::Connected { interface: number as u16 });
            for (ip, len) in addresses {
                if let Some(network) = network(ip, len).filter(|_| up && !kernel) {
                    self.insert(vrf, network, connected)?;
                }
                self.insert(vrf, host(ip), local)?;
                // Networks of /31 and /32 have no broadcast address (RFC 3021).
                if let (IpAddr::V4(ip), false, ..=30) = (ip, kernel, len) {
                    let broadcast = u32::from(ip) | u32::MAX.checked_shr(len.into()).unwrap_or(0);
                    self.insert(vrf, IpPrefix::V4(Prefix::host(broadcast)), local)?;
                }
            }
        }
        // A device that is not an interface of the router, for example `lo`, belongs to the first VRF.
        let vrf_of = |plan: &Self, device: u32| {
            let found = plan.devices.get(&device).or_else(|| plan.devices.get(&machine.below(device)?));
            found.map_or(0, |&number| plan.fabric.interfaces[usize::from(number)].vrf)
        };
        for (device, ip) in machine.locals() {
            let vrf = vrf_of(self, device);
            self.insert(vrf, host(ip), local)?;
            let towards = self.devices.keys().copied().filter(|&other| vrf_of(self, other) == vrf);
            let towards: Vec<u32> = towards.collect();
            self.locals.extend(towards.into_iter().map(|other| (other, ip)));
        }
        Ok(())
    }

    /// Returns the number of a target's next hop.
    fn target(&mut self, target: &Target, vrf: usize, hops: &mut Hops) -> Result<NextHop, ControlError> {
        let members = match target {
            Target::Blackhole => return Ok(hops.number(Hop::Blackhole)),
            Target::Unreachable => return Ok(hops.number(Hop::Unreachable)),
            Target::Prohibit => return Ok(hops.number(Hop::Prohibit)),
            Target::Group(members) => members,
        };
        let (mut numbers, mut refused) = (Vec::new(), Vec::new());
        for member in members {
            match self.member(member, vrf, hops) {
                Ok(number) => numbers.extend(std::iter::repeat_n(number, member.weight as usize)),
                Err(reason) => refused.push(reason),
            }
        }
        match numbers[..] {
            [] => return Err(refused.pop().unwrap_or(ControlError::NoTarget)),
            // The others of the group have its flows.
            _ => {
                for text in refused.iter().map(|reason| format!("a member of a group: {reason}")) {
                    if !self.warnings.contains(&text) {
                        self.warnings.push(text);
                    }
                }
            }
        }
        match numbers[..] {
            [only] => Ok(only),
            _ => Ok(hops.number(Hop::Group(numbers.iter().map(|number| number.id()).collect()))),
        }
    }

    fn member(&self, member: &Member, vrf: usize, hops: &mut Hops) -> Result<NextHop, ControlError> {
        let named = member.interface.as_ref().map(|name| {
            let found = self.fabric.interfaces.iter().position(|interface| interface.name == *name);
            found.ok_or_else(|| ControlError::NoInterface(name.clone()))
        });
        let number = match (named.transpose()?, member.gateway) {
            (Some(number), _) => number,
            (None, Some(gateway)) => near(&self.fabric.interfaces, gateway, vrf).ok_or_else(|| {
                ControlError::NoNetwork { vrf: self.fabric.vrfs[vrf].name.clone(), gateway }
            })?,
            (None, None) => return Err(ControlError::NoTarget),
        };
        let interface = number as u16;
        Ok(hops.number(match member.gateway {
            None => Hop::Connected { interface },
            Some(ip) => Hop::Via { interface, gateway: ip.into() },
        }))
    }

    /// Adds the routes of a file.
    fn file(&mut self, file: &Loaded, hops: &mut Hops) -> Result<(), ControlError> {
        let mut numbers: HashMap<NextHop, Option<NextHop>> = HashMap::new();
        let mut left_out = 0;
        for (prefix, label) in file.table.ribs.iter() {
            // Resolve each label once, so that a label without a target gives one warning and not one for each route.
            let number = match numbers.get(&label) {
                Some(number) => *number,
                None => {
                    let number = self.labelled(file, label, hops);
                    if let Err(reason) = &number {
                        self.warnings.push(format!("{}: {reason}", file.name));
                    }
                    *numbers.entry(label).or_insert(number.ok())
                }
            };
            match number {
                Some(number) => self.insert(file.vrf, prefix, number)?,
                None => left_out += 1,
            }
        }
        if left_out > 0 {
            self.warnings.push(format!("{}: {left_out} routes lead nowhere and are left out", file.name));
        }
        Ok(())
    }

    fn labelled(&mut self, file: &Loaded, label: NextHop, hops: &mut Hops) -> Result<NextHop, ControlError> {
        if let Some(target) = &file.target {
            return self.target(target, file.vrf, hops);
        }
        match file.table.next_hops.label(label) {
            Some(Label::Address(ip)) => {
                self.member(&Member { gateway: Some(*ip), interface: None, weight: 1 }, file.vrf, hops)
            }
            Some(label) => Err(ControlError::Label(label.to_string())),
            None => Err(ControlError::NoLabel),
        }
    }
}

/// Returns the router's own addresses on interfaces unknown to the kernel. The router must check these for duplicates. Interfaces
/// of files are left out, because nothing can answer there.
pub(super) fn own_addresses(config: &Config, fabric: &Fabric) -> impl Iterator<Item = Key> {
    let lines = fabric.interfaces.iter().zip(&config.interfaces).enumerate();
    let own = lines.filter(|(_, (line, wanted))| {
        !line.kernel && line.up && !fabric.bridge && !matches!(wanted.backend, Backend::Pcap { .. })
    });
    own.flat_map(|(number, (line, _))| {
        let v4 = line.v4.iter().map(move |&(address, _)| Key::v4(number as u16, address));
        v4.chain(line.v6.iter().map(move |&(address, _)| Key::v6(number as u16, address)))
    })
}

/// Returns the interface of a VRF whose network contains an address. The longest prefix wins.
pub(super) fn near(interfaces: &[Interface], address: IpAddr, vrf: usize) -> Option<usize> {
    let networks = |interface: &Interface| -> Vec<(IpAddr, u8)> {
        let v4 = interface.v4.iter().map(|&(ip, len)| (IpAddr::V4(ip.into()), len));
        v4.chain(interface.v6.iter().map(|&(ip, len)| (IpAddr::V6(ip.into()), len))).collect()
    };
    let inside =
        |ip: IpAddr, len: u8| ip.is_ipv4() == address.is_ipv4() && network(ip, len) == network(address, len);
    let candidates = interfaces.iter().enumerate().filter(|(_, other)| other.vrf == vrf);
    let matching = candidates.flat_map(|(number, interface)| {
        networks(interface)
            .into_iter()
            .filter(|&(ip, len)| inside(ip, len))
            .map(move |(_, len)| (len, number))
    });
    matching.max().map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::install::changes;
    use crate::kernel::netlink::{Address, Connected, Event, Link};

    fn machine() -> Machine {
        let mut machine = Machine::default();
        for (index, name) in [(1, "lo"), (2, "eth0"), (3, "eth1")] {
            let mac = Some(Mac([2, 0, 0, 0, 0, index as u8]));
            let link = Link {
                index,
                below: None,
                name: name.into(),
                mac,
                mtu: 1400,
                up: true,
                is_enabled: true,
                kind: None,
                master: None,
            };
            assert!(machine.take(&Event::Link(link.clone())));
            assert!(!machine.take(&Event::Link(link)), "nothing new");
        }
        for (index, ip, len) in
            [(1, "192.0.2.9", 32), (2, "10.0.1.1", 24), (3, "10.0.2.1", 24), (2, "fe80::1", 64)]
        {
            let ip: IpAddr = ip.parse().unwrap();
            machine.take(&Event::Address(Address { index, ip, len, broadcast: None }));
        }
        for (index, network) in [(2, "10.0.1.0"), (3, "10.0.2.0")] {
            machine.take(&Event::Connected(connected(index, network, 0)));
        }
        machine
    }

    #[test]
    fn ports_of_a_bridge_are_named_and_down() {
        let mut machine = machine();
        let text = "[[interface]]\nname = \"a\"\ndevice = \"eth0\"\n[[interface]]\nname = \"b\"\ndevice = \"eth1\"\n";
        let config = Config::parse(text).unwrap();
        let is_up = |machine: &Machine| {
            config.interfaces.iter().map(|line| wire(line, machine).up).collect::<Vec<_>>()
        };
        assert_eq!((refused(&config, &machine), is_up(&machine)), (vec![], vec![true, true]));
        let mut link = machine.link("eth1").unwrap().clone();
        link.master = Some("bridge".into());
        assert!(machine.take(&Event::Link(link)));
        let refused = refused(&config, &machine);
        assert!(
            refused.len() == 1 && refused[0].starts_with("interface b: device eth1 is a port"),
            "{refused:?}"
        );
        assert_eq!(is_up(&machine), [true, false]);
    }

    fn connected(index: u32, network: &str, metric: u32) -> Connected {
        Connected { index, network: network.parse().unwrap(), len: 24, metric }
    }

    #[test]
    fn networks_leave_where_the_routes_of_the_kernel_do() {
        let config = Config::parse(&CONFIG.replace("vrf = \"blue\"\n", "")).unwrap();
        let vrfs = tables(&config, &[]).unwrap();
        let mut machine = machine();
        // A second address in the network of the first device: without a route, and with one of a higher and of a lower metric.
        let ip = "10.0.1.5".parse().unwrap();
        machine.take(&Event::Address(Address { index: 3, ip, len: 24, broadcast: None }));
        let planned = |machine: &Machine| {
            let plan = plan(&config, machine, &vrfs, &[], &mut Hops::default()).unwrap();
            let number = plan.routes[0].lookup("10.0.1.9".parse::<IpAddr>().unwrap());
            let hop = number.and_then(|number| plan.fabric.hops[number.id() as usize].clone());
            let by = near(&plan.fabric.interfaces, "10.0.1.9".parse().unwrap(), 0);
            (hop.and_then(|hop| hop.interface()), by, plan.warnings.len())
        };
        assert_eq!(planned(&machine), (Some(0), Some(0), 1));
        machine.take(&Event::Connected(connected(3, "10.0.1.0", 500)));
        assert_eq!(planned(&machine), (Some(0), Some(0), 1));
        machine.take(&Event::ConnectedGone(connected(2, "10.0.1.0", 0)));
        machine.take(&Event::Connected(connected(2, "10.0.1.0", 600)));
        assert_eq!(planned(&machine), (Some(1), Some(1), 1));
        // Without any, the network is reached by nobody.
        machine.take(&Event::ConnectedGone(connected(2, "10.0.1.0", 600)));
        machine.take(&Event::ConnectedGone(connected(3, "10.0.1.0", 500)));
        assert_eq!(planned(&machine).0, None);
    }

    const CONFIG: &str = "
[[vrf]]
name = \"blue\"
[[interface]]
name = \"a\"
device = \"eth0\"
[[interface]]
name = \"b\"
device = \"eth1\"
vrf = \"blue\"
[[interface]]
name = \"c\"
device = \"eth0\"
vlan = 7
addresses = [\"10.0.3.1/24\", \"2001:db8::1/64\"]
[[route]]
prefix = \"198.51.100.0/24\"
group = [{ via = \"10.0.1.9\", weight = 2 }, { via = \"10.0.3.9\" }]
[[route]]
prefix = \"203.0.113.0/24\"
via = \"10.0.2.9\"
";

    /// Applies a plan's routes to a table, and returns the number of changes.
    fn apply(table: &Table, wanted: &DualRib) -> usize {
        let have = table.routes().unwrap();
        let (v4, v6) = (changes(&have.v4, &wanted.v4), changes(&have.v6, &wanted.v6));
        table.apply(&v4).and_then(|_| table.apply(&v6)).unwrap();
        v4.len() + v6.len()
    }

    #[test]
    fn routes_addresses_and_what_leads_nowhere() {
        let config = Config::parse(CONFIG).unwrap();
        let vrfs = tables(&config, &[]).unwrap();
        let mut hops = Hops::default();
        let plan = plan(&config, &machine(), &vrfs, &[], &mut hops).unwrap();
        assert_eq!((plan.fabric.ports.len(), plan.fabric.interfaces.len()), (2, 3));
        assert!(!plan.fabric.interfaces[2].kernel && plan.fabric.interfaces[2].mtu == 1400);
        assert_eq!(plan.warnings.len(), 1, "10.0.2.9 is near another VRF: {:?}", plan.warnings);
        let hop = |vrf: usize, ip: &str| {
            let number = plan.routes[vrf].lookup(ip.parse::<IpAddr>().unwrap())?;
            plan.fabric.hops[number.id() as usize].clone()
        };
        assert_eq!(hop(0, "10.0.1.1"), Some(Hop::Local));
        assert_eq!(hop(0, "192.0.2.9"), Some(Hop::Local), "an address of lo");
        assert_eq!(hop(0, "10.0.1.7"), Some(Hop::Connected { interface: 0 }));
        assert_eq!(hop(0, "2001:db8::7"), Some(Hop::Connected { interface: 2 }));
        assert_eq!(hop(0, "10.0.2.1"), None, "of the other VRF");
        assert_eq!(hop(1, "10.0.2.1"), Some(Hop::Local));
        assert!(matches!(hop(0, "198.51.100.1"), Some(Hop::Group(members)) if members.len() == 3));
        let mut towards: Vec<u32> = plan
            .locals
            .iter()
            .filter(|local| local.1.to_string() == "10.0.1.1")
            .map(|local| local.0)
            .collect();
        towards.sort_unstable();
        assert_eq!(towards, [2], "an address is the machine's towards its own VRF alone");

        // Addresses that no kernel has are checked for duplicates. Addresses of files are left out.
        let own: Vec<_> = own_addresses(&config, &plan.fabric).map(|key| key.ip().to_string()).collect();
        assert_eq!(own[..2], ["10.0.3.1", "2001:db8::1"]);
        assert!(own.len() == 3 && own[2].starts_with("fe80::"), "{own:?}");
        let file = CONFIG.replace("device = \"eth0\"\nvlan", "backend = \"pcap\"\ninput = \"in\"\nvlan");
        let file = Config::parse(&file).unwrap();
        assert_eq!(own_addresses(&file, &plan.fabric).count(), 0);

        // The table takes the routes. The next plan changes only the routes that differ, and numbers stay.
        assert!(apply(&vrfs[0].table, &plan.routes[0]) > 5);
        let again = super::plan(&config, &machine(), &vrfs, &[], &mut hops).unwrap();
        assert_eq!(apply(&vrfs[0].table, &again.routes[0]), 0);
        let mut gone = machine();
        gone.take(&Event::LinkGone(2));
        let after = super::plan(&config, &gone, &vrfs, &[], &mut hops).unwrap();
        assert!(!after.fabric.interfaces[0].up);
        assert!(apply(&vrfs[0].table, &after.routes[0]) > 0);
    }
}
