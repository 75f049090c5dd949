//! What routes mean, in plain maps.

use std::collections::BTreeMap;

use fibula::net::{IpPrefix, NextHop};
use fibula_router::feed::Place;
use fibula_router::forward::fabric::{Gateway, Hop};

/// Devices of the kernel that are interfaces of the router, by their first numbers, in the order of these; the last is in the second
/// VRF.
pub const DEVICES: [u32; 3] = [5, 6, 7];
/// A device of the kernel that is an interface of the router, or was one: it goes, and comes back with its number or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    pub number: u32,
    pub exists: bool,
    pub is_enabled: bool,
    pub has_carrier: bool,
    pub has_address: bool,
}

impl Device {
    pub const fn new(number: u32) -> Self {
        Self { number, exists: true, is_enabled: true, has_carrier: true, has_address: true }
    }

    pub const fn is_up(&self) -> bool {
        self.exists && self.is_enabled && self.has_carrier
    }
}

/// One that is not.
pub const FOREIGN: u32 = 77;
/// The VRF of each interface.
pub const VRF_OF: [u16; 3] = [0, 0, 1];
/// The kernel's table of each VRF.
pub const TABLES: [u32; 2] = [254, 10];

/// A way: to host 9 of the network of an interface, by a device; 0: by the interface that has the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    pub network: u8,
    pub device: u32,
    pub weight: u32,
}

impl Way {
    pub const fn gateway(&self) -> [u8; 4] {
        [10, 0, self.network, 9]
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    Blackhole,
    Unreachable,
    /// Of a type that the router does not forward by.
    Unsupported,
    Ways(Vec<Way>),
    Object(u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    Way(Way),
    Blackhole,
    Group(Vec<(u32, u32)>),
}

/// Where packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Fixed(Hop),
    /// Interfaces and gateways, each as often as it is in the group.
    Ways(BTreeMap<(u16, u32), usize>),
}

/// Returns where a route leads; `None` if nowhere at the moment.
pub fn resolve(
    spec: &Spec,
    vrf: u16,
    objects: &BTreeMap<u32, Object>,
    devices: &[Device; 3],
) -> Option<Answer> {
    let ways = match spec {
        Spec::Blackhole => return Some(Answer::Fixed(Hop::Blackhole)),
        Spec::Unreachable => return Some(Answer::Fixed(Hop::Unreachable)),
        Spec::Unsupported => return None,
        Spec::Ways(ways) => ways.clone(),
        Spec::Object(id) => match objects.get(id)? {
            Object::Blackhole => return Some(Answer::Fixed(Hop::Blackhole)),
            Object::Way(way) => vec![way.clone()],
            Object::Group(members) => {
                let way = |&(id, weight): &(u32, u32)| match objects.get(&id) {
                    Some(Object::Way(way)) => Some(Way { weight, ..way.clone() }),
                    _ => None,
                };
                members.iter().filter_map(way).collect()
            }
        },
    };
    // A way of an object without a device is looked for in the first VRF: objects belong to none.
    let near = if matches!(spec, Spec::Object(_)) { 0 } else { vrf };
    let interface = |way: &Way| match way.device {
        0 => Some(usize::from(way.network) - 1)
            .filter(|&at| VRF_OF[at] == near && devices[at].exists && devices[at].has_address),
        number => devices.iter().position(|device| device.exists && device.number == number),
    };
    let found: Vec<(usize, Way)> = ways.into_iter().filter_map(|way| Some((interface(&way)?, way))).collect();
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let common = found.iter().map(|way| way.1.weight).fold(0, gcd);
    let (mut answer, mut dead, mut alive) = (BTreeMap::new(), 0, Vec::new());
    for (at, way) in &found {
        let share = if found.len() == 1 { 1 } else { way.weight / common } as usize;
        let to = (*at as u16, u32::from_be_bytes(way.gateway()));
        *answer.entry(to).or_insert(0) += share;
        if devices[*at].is_up() {
            alive.extend(std::iter::repeat_n(to, share));
        } else {
            dead += share;
        }
    }
    if !alive.is_empty() && dead > 0 {
        // Each place is cut into parts, and those of ways that are down go to the others in turn. Groups are small here.
        answer.clear();
        let parts = alive.len().min(1024 / (alive.len() + dead));
        let others = alive.iter().cycle().take(dead * parts);
        alive.iter().flat_map(|to| std::iter::repeat_n(to, parts)).chain(others).for_each(|to| {
            *answer.entry(*to).or_insert(0) += 1;
        });
    }
    (!answer.is_empty()).then_some(Answer::Ways(answer))
}

/// Returns where a next hop of the fabric leads; `None` if the fabric does not have it.
pub fn meaning(fabric: &[Option<Hop>], number: NextHop) -> Option<Answer> {
    let hop = fabric.get(number.id() as usize)?.as_ref()?;
    let mut ways = BTreeMap::new();
    let mut add = |hop: &Hop| match hop {
        Hop::Via { interface, gateway: Gateway::V4(gateway) } => {
            *ways.entry((*interface, *gateway)).or_insert(0) += 1;
            true
        }
        _ => false,
    };
    match hop {
        Hop::Group(members) => {
            for &member in members {
                if !add(fabric.get(member as usize)?.as_ref()?) {
                    return None;
                }
            }
        }
        hop => {
            if !add(hop) {
                return Some(Answer::Fixed(hop.clone()));
            }
        }
    }
    Some(Answer::Ways(ways))
}

/// The prefixes of a seed: nested ones, so that the order of changes matters.
pub fn prefixes() -> Vec<IpPrefix> {
    let mut texts: Vec<String> =
        ["0.0.0.0/0", "10.0.0.0/8", "10.16.0.0/12", "10.1.128.7/32", "::/0", "2001:db8::/32"]
            .map(str::to_owned)
            .into();
    for n in 0..4 {
        texts.push(format!("10.{n}.0.0/16"));
        texts.push(format!("10.{n}.0.0/24"));
        texts.push(format!("10.{n}.128.0/25"));
        texts.push(format!("2001:db8:{n}::/48"));
    }
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Routes by prefix.
pub type Routes = BTreeMap<Place, Spec>;
