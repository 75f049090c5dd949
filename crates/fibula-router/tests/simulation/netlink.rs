//! Messages of route netlink, as the kernel and zebra send them.

use fibula::net::IpPrefix;

use crate::oracle::{Device, Object, Spec, Way};

pub const NEW_ROUTE: u16 = 24;
pub const DEL_ROUTE: u16 = 25;
pub const NEW_NEXT_HOP: u16 = 104;
pub const DEL_NEXT_HOP: u16 = 105;
pub const NEW_LINK: u16 = 16;
pub const DEL_LINK: u16 = 17;
pub const NEW_ADDRESS: u16 = 20;
pub const DEL_ADDRESS: u16 = 21;
const DST: u16 = 1;
const OIF: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const MULTIPATH: u16 = 9;
const TABLE: u16 = 15;
const NH_ID: u16 = 30;

fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((value.len() as u16 + 4).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

pub fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// Returns what follows the head of a message about a route; without `spec`, of one that zebra removes.
pub fn route(prefix: IpPrefix, table: u32, metric: u32, spec: Option<&Spec>) -> Vec<u8> {
    let (family, octets) = match prefix {
        IpPrefix::V4(prefix) => (2, prefix.addr().to_be_bytes().to_vec()),
        IpPrefix::V6(prefix) => (10, prefix.addr().to_be_bytes().to_vec()),
    };
    let kind = match spec {
        Some(Spec::Blackhole) => 6,
        Some(Spec::Unreachable) => 7,
        Some(Spec::Unsupported) => 9,
        _ => 1,
    };
    let mut bytes = vec![family, prefix.len(), 0, 0, table.min(252) as u8, 11, 0, kind, 0, 0, 0, 0];
    if prefix.len() > 0 {
        attribute(&mut bytes, DST, &octets);
    }
    attribute(&mut bytes, TABLE, &table.to_ne_bytes());
    if metric > 0 {
        attribute(&mut bytes, PRIORITY, &metric.to_ne_bytes());
    }
    match spec {
        Some(Spec::Object(id)) => attribute(&mut bytes, NH_ID, &id.to_ne_bytes()),
        Some(Spec::Ways(ways)) if ways.len() == 1 => way(&mut bytes, &ways[0]),
        Some(Spec::Ways(ways)) => {
            let mut all = Vec::new();
            for way in ways {
                all.extend(16u16.to_ne_bytes());
                all.extend([0, way.weight as u8 - 1]);
                all.extend(way.device.to_ne_bytes());
                attribute(&mut all, GATEWAY, &way.gateway());
            }
            attribute(&mut bytes, MULTIPATH, &all);
        }
        _ => {}
    }
    bytes
}

fn way(bytes: &mut Vec<u8>, way: &Way) {
    attribute(bytes, GATEWAY, &way.gateway());
    if way.device != 0 {
        attribute(bytes, OIF, &way.device.to_ne_bytes());
    }
}

/// Returns what follows the head of a message about a next-hop object; without `object`, of one that is gone.
pub fn object(id: u32, object: Option<&Object>) -> Vec<u8> {
    let mut bytes = vec![2, 0, 11, 0, 0, 0, 0, 0];
    attribute(&mut bytes, 1, &id.to_ne_bytes());
    match object {
        Some(Object::Way(way)) => {
            attribute(&mut bytes, 6, &way.gateway());
            if way.device != 0 {
                attribute(&mut bytes, 5, &way.device.to_ne_bytes());
            }
        }
        Some(Object::Blackhole) => attribute(&mut bytes, 4, &[]),
        Some(Object::Group(members)) => {
            let mut all = Vec::new();
            for &(id, weight) in members {
                all.extend(id.to_ne_bytes());
                all.extend([weight as u8 - 1, 0, 0, 0]);
            }
            attribute(&mut bytes, 2, &all);
        }
        None => {}
    }
    bytes
}

/// Returns what follows the head of a message about a device.
pub fn link(device: &Device, name: &str) -> Vec<u8> {
    let carrier = if device.has_carrier { 0x1_0000 } else { 0 };
    let flags: u32 = if device.is_enabled { 1 | carrier } else { 0 };
    let mut body = vec![0, 0, 1, 0];
    body.extend(device.number.to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body.extend([0; 4]);
    attribute(&mut body, 3, format!("{name}\0").as_bytes());
    attribute(&mut body, 4, &1500u32.to_ne_bytes());
    body
}

/// Returns what follows the head of a message about the address of a device in its network.
pub fn address(device: &Device, network: u8) -> Vec<u8> {
    let mut body = vec![2, 24, 0, 0];
    body.extend(device.number.to_ne_bytes());
    attribute(&mut body, 2, &[10, 0, network, 1]);
    body
}

/// Returns a frame of FPM.
pub fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, kind];
    bytes.extend((body.len() as u16 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}
