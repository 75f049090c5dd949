//! Finds the parts of a configuration that cannot work on this machine as it is now, though the machine may change.

use std::net::IpAddr;

use super::machine::Machine;
use super::open::NATIVE_BOND;
use crate::config::{Accounts, Backend, Config, Feed, PASSWD, Target, XdpMode, release};
use crate::kernel::netlink::{Link, Netlink};

/// Returns a sentence for each device that does not exist, for each gateway that is an address of this machine, and for accounts of
/// feeds that do not exist or are all.
#[must_use]
pub fn doubts(config: &Config) -> Vec<String> {
    let mut machine = Machine::default();
    let asked = Netlink::open().and_then(|mut netlink| netlink.dump(|event| _ = machine.take(&event)));
    match asked {
        Ok(()) => {
            let passwd = std::fs::read_to_string(PASSWD).unwrap_or_default();
            found(config, &machine, &passwd, release::version())
        }
        Err(error) => vec![format!("devices and addresses are not checked: {error}")],
    }
}

fn found(config: &Config, machine: &Machine, passwd: &str, kernel: Option<(u32, u32)>) -> Vec<String> {
    let mut doubts = Vec::new();
    for line in config.interfaces.iter().filter(|line| line.backend.is_device()) {
        let device = line.backend.device();
        if matches!(line.backend, Backend::Packet { .. })
            && Backend::default_name(kernel) != line.backend.name()
        {
            doubts.push(format!("interface {}: {}", line.name, release::NO_TCX));
        }
        if let Some(refusal) = machine.link(&device).and_then(Link::refusal) {
            doubts.push(format!("interface {}: {refusal}", line.name));
        }
        if let Backend::Xdp { mode: XdpMode::Native, .. } = line.backend
            && machine.link(&device).is_some_and(Link::has_frames_of_members)
        {
            doubts.push(format!("interface {}: {NATIVE_BOND}", line.name));
        }
        if machine.link(&device).is_none() {
            doubts.push(format!(
                "interface {}: there is no device {device}; it is taken up when it comes",
                line.name
            ));
        }
    }
    let configured = config.interfaces.iter().flat_map(|line| line.addresses.iter().map(|address| address.0));
    let own: Vec<IpAddr> = configured.chain(machine.locals().map(|local| local.1)).collect();
    let routes = config.routes.iter().map(|route| (route.line, Some(&route.target)));
    let tables = config.tables.iter().map(|table| (table.line, table.target.as_ref()));
    for (line, target) in routes.chain(tables) {
        let Some(Target::Group(members)) = target else { continue };
        for gateway in members.iter().filter_map(|member| member.gateway) {
            if own.contains(&gateway) {
                doubts.push(format!("line {line}: the gateway {gateway} is the router itself"));
            }
        }
    }
    doubts.extend(config.feeds.iter().flat_map(|feed| accounts(feed, passwd)));
    doubts
}

/// Returns a sentence for each account that a feed names and the machine lacks, and one if any may connect.
fn accounts(feed: &Feed, passwd: &str) -> Vec<String> {
    let Some(server) = feed.kind.server() else { return Vec::new() };
    let name = &feed.name;
    if server.accounts == Accounts::Any {
        return vec![format!("feed {name}: every account of this machine may change its routes")];
    }
    let unknown = server.accounts.unknown(passwd).into_iter();
    unknown.map(|account| format!("feed {name}: there is no account '{account}' in {PASSWD}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::netlink::{Address, Event};

    #[test]
    fn devices_accounts_and_gateways_that_cannot_work_are_named() {
        let mut machine = Machine::default();
        let kind = Some("veth".to_owned());
        machine.take(&Event::Link(Link {
            index: 2,
            below: None,
            name: "eth0".into(),
            mac: None,
            mtu: 1500,
            up: true,
            is_enabled: true,
            kind,
            master: Some("bridge".to_owned()),
        }));
        let ip = "192.0.2.1".parse().unwrap();
        machine.take(&Event::Address(Address { index: 2, ip, len: 24, broadcast: None }));
        let text = "[[interface]]\nname = \"a\"\ndevice = \"eth0\"\n[[interface]]\nname = \"b\"\ndevice = \"eth9\"\n\
                    [[interface]]\nname = \"t\"\nbackend = \"tap\"\ndevice = \"tap0\"\naddresses = [\"198.51.100.1/24\"]\n\
                    [[route]]\nprefix = \"10.0.0.0/8\"\nvia = \"192.0.2.1\"\n[[route]]\nprefix = \"11.0.0.0/8\"\nvia = \"192.0.2.9\"\n\
                    [[route]]\nprefix = \"12.0.0.0/8\"\ngroup = [{ via = \"192.0.2.9\" }, { via = \"198.51.100.1\" }]\n\
                    [[feed]]\nname = \"z\"\nkind = \"fpm\"\nallow_uid = \"any\"\n\
                    [[feed]]\nname = \"b\"\nkind = \"bmp\"\nlisten = \"127.0.0.1:1\"\nallow_uid = [\"gobgp\", \"root\"]\n\
                    [[feed]]\nname = \"usual\"\nkind = \"bmp\"\nlisten = \"127.0.0.1:2\"\n";
        let (config, passwd) = (Config::parse(text).unwrap(), "root:x:0:0::/root:/bin/sh\n");
        assert_eq!(
            found(&config, &machine, passwd, Some((6, 6))),
            [
                "interface a: device eth0 is a port of a bridge, which takes its frames: name the bridge instead, or take the device out with 'ip link set eth0 nomaster'",
                "interface b: there is no device eth9; it is taken up when it comes",
                "line 13: the gateway 192.0.2.1 is the router itself",
                "line 19: the gateway 198.51.100.1 is the router itself",
                "feed z: every account of this machine may change its routes",
                "feed b: there is no account 'gobgp' in /etc/passwd",
            ]
        );
        let old = found(&config, &machine, passwd, Some((6, 1)));
        let packets = old.iter().filter(|doubt| doubt.contains("back end af-packet needs Linux 6.6"));
        assert_eq!(packets.count(), 2, "{old:?}");
    }

    #[test]
    fn without_tcx_the_default_is_af_xdp() {
        for (kernel, name) in [
            (None, "af-packet"),
            (Some((6, 1)), "af-xdp"),
            (Some((5, 15)), "af-xdp"),
            (Some((6, 6)), "af-packet"),
            (Some((7, 0)), "af-packet"),
        ] {
            assert_eq!(Backend::default_name(kernel), name, "{kernel:?}");
        }
    }
}
