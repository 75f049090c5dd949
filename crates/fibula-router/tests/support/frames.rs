//! Frames in words, built independently of the router: every checksum is computed in full.
//!
//! Layers are separated by `/`: `eth TO FROM`, `vlan N`, `type 0xNNNN`, `arp request|reply MAC IP MAC IP`, `ip4 FROM TO [key=value]`,
//! `ip6 FROM TO [key=value]`, `ext KIND HEX`, `frag OFFSET more|last`, `udp FROM TO`, `tcp FROM TO`, `icmp TYPE CODE [HEX]`,
//! `icmp6 TYPE CODE [HEX]`, `data N`, `hex HEX`, `quote [N]` (the packet received last, up to N bytes), `cut N`, `pad N`, `xor AT HEX`
//! (these three alter the whole frame), `tag N` (a tag that the driver took out).

use std::net::{Ipv4Addr, Ipv6Addr};

/// A frame, and the tag beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    pub bytes: Vec<u8>,
    pub tag: Option<u16>,
}

/// Builds a frame. `last` is the frame received last, for `quote`.
pub fn build(text: &str, last: &[u8]) -> Words {
    let layers: Vec<Vec<&str>> = text
        .split('/')
        .map(|layer| layer.split_whitespace().collect::<Vec<_>>())
        .filter(|l| !l.is_empty())
        .collect();
    let (alter, layers): (Vec<_>, Vec<_>) =
        layers.into_iter().partition(|layer| matches!(layer[0], "cut" | "pad" | "xor" | "tag"));
    let mut bytes = layer(&layers, last, None);
    let mut tag = None;
    for words in alter {
        match words[0] {
            "cut" => bytes.truncate(number(words[1]) as usize),
            "pad" => bytes.resize(bytes.len() + number(words[1]) as usize, 0),
            "tag" => tag = Some(number(words[1]) as u16),
            _ => {
                for (index, byte) in hex(words[2]).into_iter().enumerate() {
                    bytes[number(words[1]) as usize + index] ^= byte;
                }
            }
        }
    }
    Words { bytes, tag }
}

pub fn mac(name: &str) -> [u8; 6] {
    match name {
        "ALL" => [0xff; 6],
        "NONE" => [0; 6],
        _ if name.len() == 1 => [2, 0, 0, 0, 0, u8::from_str_radix(name, 16).unwrap()],
        _ if name.starts_with('R') => [2, 0, 0, 0, 0, 0xf0 + name[1..].parse::<u8>().unwrap()],
        _ => {
            let bytes: Vec<u8> = name.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            bytes.try_into().unwrap()
        }
    }
}

pub fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number")),
    }
}

pub fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

pub fn v4(text: &str) -> [u8; 4] {
    text.parse::<Ipv4Addr>().unwrap_or_else(|_| panic!("'{text}'")).octets()
}

pub fn v6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap_or_else(|_| panic!("'{text}'")).octets()
}

fn sum(parts: &[&[u8]]) -> u16 {
    let mut total = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            total += u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from);
            total = (total & 0xffff) + (total >> 16);
        }
    }
    !(total as u16)
}

fn layer(layers: &[Vec<&str>], last: &[u8], addresses: Option<([u8; 16], [u8; 16])>) -> Vec<u8> {
    let Some((words, rest)) = layers.split_first() else { return Vec::new() };
    let inner = |addresses| layer(rest, last, addresses);
    let mut bytes = Vec::new();
    match words[0] {
        "eth" => {
            bytes.extend(mac(words[1]));
            bytes.extend(mac(words[2]));
            bytes.extend(ether_type(rest));
            bytes.extend(inner(None));
        }
        "vlan" => {
            bytes.extend((number(words[1]) as u16).to_be_bytes());
            bytes.extend(ether_type(rest));
            bytes.extend(inner(None));
        }
        "type" => bytes = inner(None),
        "arp" => {
            bytes.extend([0, 1, 8, 0, 6, 4, 0, if words[1] == "request" { 1 } else { 2 }]);
            bytes.extend(mac(words[2]));
            bytes.extend(v4(words[3]));
            bytes.extend(mac(words[4]));
            bytes.extend(v4(words[5]));
        }
        "ip4" => bytes = ip4(words, rest, &inner(None)),
        "ip6" => bytes = ip6(words, rest, &inner(Some((v6(words[1]), v6(words[2]))))),
        "ext" => {
            bytes.push(protocol(rest));
            bytes.extend(hex(words[2]));
            bytes.extend(inner(addresses));
        }
        "frag" => {
            let more = u16::from(words[2] == "more");
            bytes.extend([protocol(rest), 0]);
            bytes.extend(((number(words[1]) as u16) << 3 | more).to_be_bytes());
            bytes.extend([0, 0, 0, 9]);
            bytes.extend(inner(addresses));
        }
        "udp" | "tcp" => {
            bytes.extend((number(words[1]) as u16).to_be_bytes());
            bytes.extend((number(words[2]) as u16).to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(inner(None));
        }
        "icmp" | "icmp6" => {
            bytes.extend([number(words[1]) as u8, number(words[2]) as u8, 0, 0]);
            bytes.extend(words.get(3).map_or(vec![0; 4], |rest| hex(rest)));
            bytes.extend(inner(None));
            let check = match addresses {
                Some((from, to)) if words[0] == "icmp6" => {
                    sum(&[&from, &to, &(bytes.len() as u32).to_be_bytes(), &[0, 0, 0, 58], &bytes])
                }
                _ => sum(&[&bytes]),
            };
            bytes[2..4].copy_from_slice(&check.to_be_bytes());
        }
        "data" => bytes.extend((0..number(words[1])).map(|n| n as u8)),
        "hex" => bytes.extend(hex(words[1])),
        "quote" => {
            let most = words.get(1).map_or(usize::MAX, |most| number(most) as usize);
            let at = if last[12..14] == [0x81, 0] { 18 } else { 14 };
            let len = match last[at] >> 4 {
                4 => usize::from(u16::from_be_bytes([last[at + 2], last[at + 3]])),
                _ => 40 + usize::from(u16::from_be_bytes([last[at + 4], last[at + 5]])),
            };
            bytes.extend(&last[at..at + len.min(most)]);
        }
        other => panic!("no layer '{other}'"),
    }
    bytes
}

fn ether_type(rest: &[Vec<&str>]) -> [u8; 2] {
    let value = match rest.first().map(|words| (words[0], words.get(1))) {
        Some(("ip4", _)) => 0x0800,
        Some(("ip6", _)) => 0x86dd,
        Some(("arp", _)) => 0x0806,
        Some(("vlan", _)) => 0x8100,
        Some(("type", Some(value))) => number(value),
        _ => 0,
    };
    (value as u16).to_be_bytes()
}

fn protocol(rest: &[Vec<&str>]) -> u8 {
    match rest.first().map(|words| (words[0], words.get(1))) {
        Some(("udp", _)) => 17,
        Some(("tcp", _)) => 6,
        Some(("icmp", _)) => 1,
        Some(("icmp6", _)) => 58,
        Some(("frag", _)) => 44,
        Some(("ext", Some(kind))) => number(kind) as u8,
        _ => 59,
    }
}

fn value<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn ip4(words: &[&str], rest: &[Vec<&str>], payload: &[u8]) -> Vec<u8> {
    let options = value(words, "opt").map_or(Vec::new(), hex);
    let set = |key, default| value(words, key).map_or(default, number);
    let header = 20 + options.len();
    let mut bytes = vec![set("first", 0x40 | (header as u64 / 4)) as u8, set("tos", 0) as u8];
    bytes.extend((set("len", (header + payload.len()) as u64) as u16).to_be_bytes());
    bytes.extend((set("id", 0) as u16).to_be_bytes());
    let flags = u16::from(words.contains(&"df")) << 14 | u16::from(words.contains(&"mf")) << 13;
    bytes.extend((flags | set("off", 0) as u16).to_be_bytes());
    bytes.extend([set("ttl", 64) as u8, set("proto", protocol(rest).into()) as u8, 0, 0]);
    bytes.extend(v4(words[1]));
    bytes.extend(v4(words[2]));
    bytes.extend(options);
    let check = sum(&[&bytes]);
    bytes[10..12].copy_from_slice(&check.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn ip6(words: &[&str], rest: &[Vec<&str>], payload: &[u8]) -> Vec<u8> {
    let set = |key, default| value(words, key).map_or(default, number);
    let mut bytes = ((set("version", 6) as u32) << 28 | set("label", 0) as u32).to_be_bytes().to_vec();
    bytes.extend((set("len", payload.len() as u64) as u16).to_be_bytes());
    bytes.extend([set("next", protocol(rest).into()) as u8, set("hop", 64) as u8]);
    bytes.extend(v6(words[1]));
    bytes.extend(v6(words[2]));
    bytes.extend(payload);
    bytes
}
