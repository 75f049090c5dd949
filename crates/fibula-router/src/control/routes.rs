//! Shows routes on the control socket.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use fibula::live::{TableError, TableKey};
use fibula::net::{HostBits, IpPrefix, NextHop, Prefix, Route};

use super::answer::send;
use super::{ControlError, Router};
use crate::api;
use crate::feed::history::{RouteEvent, What};
use crate::feed::path::{Out, Path, Way};
use crate::feed::{Rib, lock};
use crate::forward::Shared;
use crate::forward::fabric::{Fabric, Gateway, Hop, Vrf};
use crate::kernel::sys;

/// Which routes to list.
#[derive(Debug, Clone, Copy)]
struct PrefixFilter {
    prefix: IpPrefix,
    /// Also list routes that contain the prefix.
    covers: bool,
    /// Also list routes inside it.
    inside: bool,
}

/// A listing of all routes of a VRF, or of the routes of a prefix. Another thread can write it while the router continues.
#[derive(Debug)]
pub(super) struct Listing {
    vrf: Vrf,
    shared: Arc<Shared>,
    fabric: Arc<Fabric>,
    wanted: Option<PrefixFilter>,
    /// The feeds that routes come from, if there are feeds.
    sources: Option<Sources>,
    /// The last changes of each prefix, if they were requested.
    changes: BTreeMap<IpPrefix, Vec<api::Change>>,
    /// Routes that have not been written yet.
    page: Vec<(IpPrefix, NextHop)>,
    count: u64,
}

/// Access to the RIB, to find the feed of each route of a VRF.
#[derive(Debug)]
struct Sources {
    rib: Arc<Mutex<Rib>>,
    vrf: u16,
    names: Vec<String>,
    /// Number of the feed whose routes are listed; `None`: all routes.
    only: Option<usize>,
}

/// Routes whose feeds are looked up together, under one lock of the RIB.
const PAGE: usize = 256;

fn vrf<'r>(router: &'r Router<'_>, name: &str) -> Result<(u16, &'r Vrf), ControlError> {
    let mut vrfs = router.vrfs.iter().enumerate();
    let found = vrfs.find(|(_, known)| known.name == name).map(|(number, vrf)| (number as u16, vrf));
    found.ok_or_else(|| ControlError::NoVrf(name.to_owned()))
}

/// Answers with the route of an address. With the word `changes`, also lists the last changes of all prefixes that contain it.
pub(super) fn get(
    router: &Router<'_>,
    name: &str,
    address: &str,
    words: &[&str],
) -> Result<api::FoundRoute, ControlError> {
    let (number, vrf) = vrf(router, name)?;
    let address: IpAddr = address.parse().map_err(|_| ControlError::Address(address.to_owned()))?;
    let fabric = router.shared.fabric();
    let found = vrf.table.lookup_prefix(address)?;
    let changes = words.contains(&"changes").then(|| {
        let changes = changes(router, number, |prefix| prefix.contains(address)).into_iter();
        changes.map(|(prefix, change)| api::Change { prefix: Some(prefix), ..change }).collect()
    });
    Ok(api::FoundRoute {
        prefix: found.map(|found| found.0),
        next_hop: found.and_then(|found| next_hop(&fabric, found.1)),
        changes,
    })
}

/// Returns the last changes of some prefixes of a VRF, latest first.
fn changes(router: &Router<'_>, vrf: u16, wanted: impl Fn(IpPrefix) -> bool) -> Vec<(IpPrefix, api::Change)> {
    let (fabric, now_ns) = (router.shared.fabric(), sys::now_ns());
    let rib = router.feeds.rib();
    let events = rib.history().events().filter(|event| event.place.0 == vrf && wanted(event.place.1));
    let change = |event: &RouteEvent| {
        let change = api::Change {
            seconds_ago: now_ns.saturating_sub(event.at_ns) as f64 / 1e9,
            change: event.what.into(),
            feed: event.feed.map(|feed| rib.feeds()[feed].name.clone()),
            metric: event.metric,
            next_hop: event.path.as_ref().and_then(|to| path(&fabric, &router.devices, to)),
            prefix: None,
        };
        (event.place.1, change)
    };
    events.map(change).collect()
}

impl From<What> for api::ChangeKind {
    fn from(what: What) -> Self {
        match what {
            What::Inserted => Self::Inserted,
            What::Replaced => Self::Replaced,
            What::Removed => Self::Removed,
            What::Swept => Self::Swept,
            What::Expired => Self::Expired,
            What::Refused => Self::Refused,
        }
    }
}

/// Prepares a listing from the words `VRF [PREFIX] [covers] [inside] [changes]` and the name of a feed.
pub(super) fn show(router: &Router<'_>, words: &[&str], feed: Option<&str>) -> Result<Listing, ControlError> {
    let [name, words @ ..] = words else {
        return Err(ControlError::Form("show VRF [PREFIX] [covers] [inside] [changes] [feed=NAME]"));
    };
    let has = |word: &str| words.contains(&word);
    let prefix = words.first().filter(|word| !["covers", "inside", "changes"].contains(word));
    let wanted = match prefix {
        None => None,
        Some(prefix) => {
            let parsed = IpPrefix::parse(prefix.as_bytes(), HostBits::Refuse);
            let prefix = parsed.map_err(|error| ControlError::Prefix((*prefix).to_owned(), error))?;
            Some(PrefixFilter { prefix, covers: has("covers"), inside: has("inside") })
        }
    };
    let (number, vrf) = vrf(router, name)?;
    let names: Vec<String> = router.config.feeds.iter().map(|feed| feed.name.clone()).collect();
    let only = match feed {
        None => None,
        Some(feed) => {
            let found = names.iter().position(|name| name == feed);
            Some(found.ok_or_else(|| ControlError::NoFeed(feed.to_owned()))?)
        }
    };
    let rib = Arc::clone(&router.feeds.rib);
    let sources = (!names.is_empty()).then_some(Sources { rib, vrf: number, names, only });
    let mut by_prefix: BTreeMap<IpPrefix, Vec<api::Change>> = BTreeMap::new();
    if has("changes") {
        let is_wanted = |prefix| wanted.is_none_or(|wanted: PrefixFilter| wanted.takes(prefix));
        for (prefix, change) in changes(router, number, is_wanted) {
            by_prefix.entry(prefix).or_default().push(change);
        }
    }
    let shared = Arc::clone(&router.shared);
    let fabric = shared.fabric();
    let changes = by_prefix;
    Ok(Listing { vrf: vrf.clone(), shared, fabric, wanted, sources, changes, page: Vec::new(), count: 0 })
}

impl PrefixFilter {
    fn takes(&self, prefix: IpPrefix) -> bool {
        let covers = |outer: IpPrefix, inner: IpPrefix| match (outer, inner) {
            (IpPrefix::V4(outer), IpPrefix::V4(inner)) => outer.covers(inner),
            (IpPrefix::V6(outer), IpPrefix::V6(inner)) => outer.covers(inner),
            _ => false,
        };
        prefix == self.prefix
            || (self.covers && covers(prefix, self.prefix))
            || (self.inside && covers(self.prefix, prefix))
    }
}

impl Listing {
    /// Writes a line of JSON for each route, in order, and a last line with their number.
    pub(super) fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.wanted {
            None => {
                let table = self.vrf.table.clone();
                self.all(table.iter::<u32>(), out)?;
                self.all(table.iter::<u128>(), out)?;
            }
            Some(PrefixFilter { prefix: IpPrefix::V4(prefix), covers, inside }) => {
                self.some(prefix, covers, inside, out)?;
            }
            Some(PrefixFilter { prefix: IpPrefix::V6(prefix), covers, inside }) => {
                self.some(prefix, covers, inside, out)?;
            }
        }
        self.flush(out)?;
        // The remaining prefixes have changed and have no route now.
        for (prefix, changes) in std::mem::take(&mut self.changes) {
            let gone = api::ListedRoute { prefix, next_hop: None, feed: None, changes: Some(changes) };
            send(out, &gone)?;
        }
        send(out, &api::ListingEnd { routes: self.count })
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
        if covers {
            let mut around = table.covers(prefix).map_err(io::Error::other)?;
            // The prefix itself is written below, with the routes inside it or alone.
            around.retain(|route| route.prefix != prefix);
            self.all(around.into_iter().map(Ok), out)?;
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
        self.page.push((prefix.into(), number));
        if self.page.len() < PAGE { Ok(()) } else { self.flush(out) }
    }

    /// Writes the routes that have not been written yet.
    fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let page = std::mem::take(&mut self.page);
        let feeds: Vec<Option<usize>> = match &self.sources {
            None => vec![None; page.len()],
            Some(sources) => {
                let rib = lock(&sources.rib);
                let feed = |prefix| rib.choice((sources.vrf, prefix)).and_then(|choice| choice.0);
                page.iter().map(|route| feed(route.0)).collect()
            }
        };
        for ((prefix, number), feed) in page.into_iter().zip(feeds) {
            if self.sources.as_ref().is_some_and(|sources| sources.only.is_some() && sources.only != feed) {
                continue;
            }
            if number.id() as usize >= self.fabric.hops.len() {
                // The route is newer than our fabric. Numbers of next hops only grow, so the present fabric has it.
                self.fabric = self.shared.fabric();
            }
            self.count += 1;
            let name = |sources: &Sources| feed.map(|feed| sources.names[feed].clone());
            let route = api::ListedRoute {
                prefix,
                next_hop: next_hop(&self.fabric, number),
                feed: self.sources.as_ref().map(name),
                changes: self.changes.remove(&prefix),
            };
            send(out, &route)?;
        }
        Ok(())
    }
}

/// Returns a next hop; `None` if its number is no longer in use.
pub(super) fn next_hop(fabric: &Fabric, number: NextHop) -> Option<api::NextHop> {
    let found = hop(fabric, number.id())?;
    let word = |word| Some(api::NextHop::Word(word));
    match found {
        Hop::Via { .. } | Hop::Connected { .. } => way(fabric, found).map(api::NextHop::Way),
        Hop::Local => word(api::NextHopWord::Local),
        Hop::Blackhole => word(api::NextHopWord::Blackhole),
        Hop::Unreachable => word(api::NextHopWord::Unreachable),
        Hop::Prohibit => word(api::NextHopWord::Prohibit),
        Hop::Group(members) => {
            // Each member is repeated as often as its weight says, and has places of dead ones between.
            let mut weights: Vec<(u32, u64)> = Vec::new();
            for &member in members {
                match weights.iter_mut().find(|weight| weight.0 == member) {
                    Some(weight) => weight.1 += 1,
                    None => weights.push((member, 1)),
                }
            }
            let member = |&(number, weight): &(u32, u64)| {
                Some(api::Member { way: way(fabric, hop(fabric, number)?)?, weight })
            };
            Some(api::NextHop::Group(weights.iter().filter_map(member).collect()))
        }
    }
}

/// Returns the path of a feed's route in the same form. A device that is not an interface of the router is shown by its number.
pub(super) fn path(fabric: &Fabric, devices: &BTreeMap<u32, u16>, path: &Path) -> Option<api::NextHop> {
    let word = |word| Some(api::NextHop::Word(word));
    let ways = match *path {
        Path::Blackhole => return word(api::NextHopWord::Blackhole),
        Path::Unreachable => return word(api::NextHopWord::Unreachable),
        Path::Prohibit => return word(api::NextHopWord::Prohibit),
        Path::Object { id, .. } => return Some(api::NextHop::Object { next_hop_object: id }),
        Path::Ways(ref ways) => ways,
    };
    let interface = |device: u32| {
        let interface = devices.get(&device).and_then(|&number| fabric.interfaces.get(usize::from(number)));
        interface.map_or_else(|| format!("device {device}"), |interface| interface.name.clone())
    };
    let way = |way: &Way| {
        let interface = match way.out {
            Out::Device(device) => Some(interface(device)),
            Out::Near(_) => None,
        };
        api::Way::new(way.gateway, interface)
    };
    if let [only] = &ways[..] {
        return way(only).map(api::NextHop::Way);
    }
    let member = |member: &Way| Some(api::Member { way: way(member)?, weight: member.weight.into() });
    Some(api::NextHop::Group(ways.iter().filter_map(member).collect()))
}

fn hop(fabric: &Fabric, number: u32) -> Option<&Hop> {
    fabric.hops.get(number as usize)?.as_ref()
}

fn way(fabric: &Fabric, hop: &Hop) -> Option<api::Way> {
    let gateway = match *hop {
        Hop::Via { gateway: Gateway::V4(ip), .. } => Some(Ipv4Addr::from(ip).into()),
        Hop::Via { gateway: Gateway::V6(ip), .. } => Some(Ipv6Addr::from(ip).into()),
        _ => None,
    };
    let interface = hop.interface().and_then(|number| fabric.interfaces.get(usize::from(number)));
    api::Way::new(gateway, interface.map(|interface| interface.name.clone()))
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
            tags: Default::default(),
            mac: Default::default(),
            virtual_macs: vec![],
            mtu: 1500,
            v4: vec![],
            v6: vec![],
            vrf: 0,
            urpf: Urpf::Off,
            kernel: false,
            machine: None,
            up: true,
            missing: false,
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
        let wanted = wanted.map(|(prefix, covers, inside)| PrefixFilter {
            prefix: prefix.parse().unwrap(),
            covers,
            inside,
        });
        let fabric = shared.fabric();
        let mut out = Vec::new();
        let (sources, changes, page) = (None, BTreeMap::new(), Vec::new());
        Listing { vrf, shared, fabric, wanted, sources, changes, page, count: 0 }.write(&mut out).unwrap();
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
