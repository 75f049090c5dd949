//! Routes as the control socket shows them.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use fibula::live::{TableError, TableKey};
use fibula::net::{HostBits, IpPrefix, NextHop, Prefix, Route};
use serde_json::{Value, json};

use super::Router;
use crate::forward::Shared;
use crate::forward::fabric::{Fabric, Gateway, Hop, Vrf};

/// Which routes to list.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    prefix: IpPrefix,
    /// Also those that contain the prefix.
    covers: bool,
    /// Also those inside it.
    inside: bool,
}

/// Routes that are to be listed: all of a VRF, or those of a prefix. Can be written while the router goes on.
#[derive(Debug)]
pub(super) struct Listing {
    vrf: Vrf,
    shared: Arc<Shared>,
    fabric: Arc<Fabric>,
    wanted: Option<Wanted>,
    count: u64,
}

fn vrf<'r>(router: &'r Router<'_>, name: &str) -> Result<&'r Vrf, String> {
    router.vrfs.iter().find(|known| known.name == name).ok_or_else(|| format!("no VRF '{name}'"))
}

/// Answers with the route of an address.
pub(super) fn get(router: &Router<'_>, name: &str, address: &str) -> Result<Value, String> {
    let vrf = vrf(router, name)?;
    let address: IpAddr = address.parse().map_err(|_| format!("'{address}' is not an IP address"))?;
    let fabric = router.shared.fabric();
    let found = match address {
        IpAddr::V4(ip) => longest(vrf, Prefix::host(u32::from(ip))),
        IpAddr::V6(ip) => longest(vrf, Prefix::host(u128::from(ip))),
    };
    Ok(match found.map_err(|error| error.to_string())? {
        Some((prefix, number)) => {
            json!({ "prefix": prefix.to_string(), "next_hop": next_hop(&fabric, number) })
        }
        None => json!({ "prefix": null, "next_hop": null }),
    })
}

/// Returns the longest route that contains a prefix: a look at each length, instead of a copy of all routes.
fn longest<K: TableKey>(vrf: &Vrf, host: Prefix<K>) -> Result<Option<(IpPrefix, NextHop)>, TableError>
where
    Prefix<K>: Into<IpPrefix>,
{
    for len in (0..=host.len()).rev() {
        let Ok(prefix) = Prefix::masked(host.addr(), len) else { continue };
        if let Some(number) = vrf.table.get(prefix)? {
            return Ok(Some((prefix.into(), number)));
        }
    }
    Ok(None)
}

/// Prepares a listing, of the words `VRF [PREFIX [covers] [inside]]`.
pub(super) fn show(router: &Router<'_>, words: &[&str]) -> Result<Listing, String> {
    let [name, wanted @ ..] = words else { return Err("show VRF [PREFIX [covers] [inside]]".into()) };
    let wanted = match wanted {
        [] => None,
        [prefix, how @ ..] => {
            let parsed = IpPrefix::parse(prefix.as_bytes(), HostBits::Refuse);
            let prefix = parsed.map_err(|error| format!("'{prefix}': {}", error.reason()))?;
            Some(Wanted { prefix, covers: how.contains(&"covers"), inside: how.contains(&"inside") })
        }
    };
    let vrf = vrf(router, name)?.clone();
    let shared = Arc::clone(&router.shared);
    let fabric = shared.fabric();
    Ok(Listing { vrf, shared, fabric, wanted, count: 0 })
}

impl Listing {
    /// Writes a line of JSON a route, in order, and one with their number at the end.
    pub(super) fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.wanted {
            None => {
                let table = self.vrf.table.clone();
                self.all(table.iter::<u32>(), out)?;
                self.all(table.iter::<u128>(), out)?;
            }
            Some(Wanted { prefix: IpPrefix::V4(prefix), covers, inside }) => {
                self.some(prefix, covers, inside, out)?;
            }
            Some(Wanted { prefix: IpPrefix::V6(prefix), covers, inside }) => {
                self.some(prefix, covers, inside, out)?;
            }
        }
        writeln!(out, "{}", json!({ "routes": self.count }))
    }

    fn some<K: TableKey>(
        &mut self,
        prefix: Prefix<K>,
        covers: bool,
        inside: bool,
        out: &mut dyn Write,
    ) -> io::Result<()>
    where
        Prefix<K>: Into<IpPrefix>,
    {
        let table = self.vrf.table.clone();
        for len in if covers { 0..prefix.len() } else { 0..0 } {
            let Ok(cover) = Prefix::masked(prefix.addr(), len) else { continue };
            if let Some(number) = table.get(cover).map_err(io::Error::other)? {
                self.put(cover, number, out)?;
            }
        }
        if inside {
            let routes = table.subnets(prefix).map_err(io::Error::other)?;
            return self.all(routes.into_iter().map(Ok), out);
        }
        match table.get(prefix).map_err(io::Error::other)? {
            Some(number) => self.put(prefix, number, out),
            None => Ok(()),
        }
    }

    fn all<K: TableKey>(
        &mut self,
        mut routes: impl Iterator<Item = Result<Route<K>, TableError>>,
        out: &mut dyn Write,
    ) -> io::Result<()>
    where
        Prefix<K>: Into<IpPrefix>,
    {
        routes.try_for_each(|route| {
            let route = route.map_err(io::Error::other)?;
            self.put(route.prefix, route.next_hop, out)
        })
    }

    fn put(&mut self, prefix: impl Into<IpPrefix>, number: NextHop, out: &mut dyn Write) -> io::Result<()> {
        if number.id() as usize >= self.fabric.hops.len() {
            // A route that came since: numbers of next hops only grow.
            self.fabric = self.shared.fabric();
        }
        self.count += 1;
        let prefix = prefix.into().to_string();
        writeln!(out, "{}", json!({ "prefix": prefix, "next_hop": next_hop(&self.fabric, number) }))
    }
}

/// Returns a next hop: a word, or an object with its gateway and interface, or a list of those with their weights.
fn next_hop(fabric: &Fabric, number: NextHop) -> Value {
    let Some(hop) = hop(fabric, number.id()) else { return Value::Null };
    match hop {
        Hop::Via { .. } | Hop::Connected { .. } => way(fabric, hop),
        Hop::Local => "local".into(),
        Hop::Blackhole => "blackhole".into(),
        Hop::Unreachable => "unreachable".into(),
        Hop::Prohibit => "prohibit".into(),
        Hop::Group(members) => {
            // Each member is there as often as its weight says, all of one in a row.
            let group = members.chunk_by(|a, b| a == b).filter_map(|same| {
                let mut way = way(fabric, hop_of(fabric, same)?);
                way["weight"] = same.len().into();
                Some(way)
            });
            group.collect()
        }
    }
}

fn hop(fabric: &Fabric, number: u32) -> Option<&Hop> {
    fabric.hops.get(number as usize)?.as_ref()
}

fn hop_of<'f>(fabric: &'f Fabric, members: &[u32]) -> Option<&'f Hop> {
    hop(fabric, *members.first()?)
}

fn way(fabric: &Fabric, hop: &Hop) -> Value {
    let mut way = json!({});
    if let Hop::Via { gateway, .. } = hop {
        let gateway: IpAddr = match *gateway {
            Gateway::V4(ip) => Ipv4Addr::from(ip).into(),
            Gateway::V6(ip) => Ipv6Addr::from(ip).into(),
        };
        way["via"] = gateway.to_string().into();
    }
    if let Some(interface) = hop.interface().and_then(|number| fabric.interfaces.get(usize::from(number))) {
        way["interface"] = interface.name.as_str().into();
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::fabric::{Interface, Port, Urpf};
    use fibula::Table;

    fn listing(wanted: Option<(&str, bool, bool)>) -> Vec<String> {
        let interface = |name: &str| Interface {
            name: name.into(),
            port: 0,
            vlan: 0,
            mac: Default::default(),
            mtu: 1500,
            v4: vec![],
            v6: vec![],
            vrf: 0,
            urpf: Urpf::Off,
            kernel: false,
            up: true,
        };
        let via = |interface, ip| Some(Hop::Via { interface, gateway: Gateway::V4(ip) });
        let hops = vec![
            None,
            via(0, 0x0a00_0001),
            via(1, 0x0a00_0101),
            Some(Hop::Group(Box::new([1, 1, 2]))),
            Some(Hop::Blackhole),
        ];
        let table = Table::new().unwrap();
        for (prefix, number) in
            [("10.0.0.0/8", 1), ("10.1.0.0/16", 3), ("10.1.2.0/24", 4), ("2001:db8::/32", 2)]
        {
            let prefix: IpPrefix = prefix.parse().unwrap();
            table.insert(prefix, NextHop::try_from(number).unwrap()).unwrap();
        }
        let vrf = Vrf { name: "default".into(), table };
        let fabric = Fabric {
            ports: vec![Port::new("port", false)],
            interfaces: vec![interface("left"), interface("right")],
            vrfs: vec![vrf.clone()],
            hops,
            ..Fabric::default()
        };
        let shared = Shared::new(fabric, Default::default());
        let wanted =
            wanted.map(|(prefix, covers, inside)| Wanted { prefix: prefix.parse().unwrap(), covers, inside });
        let fabric = shared.fabric();
        let mut out = Vec::new();
        Listing { vrf, shared, fabric, wanted, count: 0 }.write(&mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn routes_are_listed_in_order_with_their_next_hops() {
        assert_eq!(
            listing(None),
            [
                r#"{"prefix":"10.0.0.0/8","next_hop":{"via":"10.0.0.1","interface":"left"}}"#,
                concat!(
                    r#"{"prefix":"10.1.0.0/16","next_hop":[{"via":"10.0.0.1","interface":"left","weight":2},"#,
                    r#"{"via":"10.0.1.1","interface":"right","weight":1}]}"#
                ),
                r#"{"prefix":"10.1.2.0/24","next_hop":"blackhole"}"#,
                r#"{"prefix":"2001:db8::/32","next_hop":{"via":"10.0.1.1","interface":"right"}}"#,
                r#"{"routes":4}"#,
            ]
        );
    }

    #[test]
    fn routes_of_a_prefix_are_its_own_those_around_and_those_inside() {
        let found = |covers, inside| -> Vec<String> {
            let lines = listing(Some(("10.1.0.0/16", covers, inside)));
            let (last, lines) = lines.split_last().unwrap();
            assert_eq!(*last, format!("{{\"routes\":{}}}", lines.len()));
            lines.iter().map(|line| line.split('"').nth(3).unwrap().to_owned()).collect()
        };
        assert_eq!(found(false, false), ["10.1.0.0/16"]);
        assert_eq!(found(true, false), ["10.0.0.0/8", "10.1.0.0/16"]);
        assert_eq!(found(false, true), ["10.1.0.0/16", "10.1.2.0/24"]);
        assert_eq!(found(true, true), ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24"]);
        assert_eq!(listing(Some(("192.0.2.0/24", true, true))), [r#"{"routes":0}"#]);
    }
}
