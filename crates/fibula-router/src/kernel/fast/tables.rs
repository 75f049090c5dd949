//! The words that the program reads: next hops, members of groups, interfaces, neighbours. The program has the same forms.
//!
//! ```text
//! hop          kind 0..3   interface 8..24   place of the neighbour 32..64          via, connected
//!                          members 8..32     first member 32..64                     group
//! interface    MAC address, first byte lowest 0..48
//!              up 0   out 1: programs in the kernel's own code   out 2: in drivers   strict 3   loose 4   in 5
//!              port 8..16   MTU 16..32   VLAN 32..44   tables 44..48
//! neighbour    MAC address 0..48, known 48; then a word that is not 0 once a packet has used it
//! ```
//!
//! Each word is stored at once, so a program sees the old one or the new one. A place in an array has another meaning only after a
//! grace period: a program may have read a word that leads there.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;

use fibula_bpf::kernel::{Map, Memory};

use crate::forward::fabric::{Fabric, Gateway, Hop, Interface, Urpf};
use crate::neighbour::{Key, Neighbours};
use crate::packet::ethernet::Mac;

const HOPS: usize = 65_536;
const MEMBERS: usize = 262_144;
const INTERFACES: usize = 4096;
const NEIGHBOURS: usize = 32_768;

const UNKNOWN: u64 = 0;
const VIA: u64 = 1;
const CONNECTED: u64 = 2;
const LOCAL: u64 = 3;
const BLACKHOLE: u64 = 4;
const GROUP: u64 = 5;
const REFUSED: u64 = 6;

/// A group is left to the router if it has more members than this.
const MEMBERS_OF_GROUP: usize = 1 << 16;

type Shared = (Map, Memory);

/// Waits until no program reads words that were replaced; returns whether it could.
pub(super) type GraceWait<'w> = &'w dyn Fn() -> bool;

fn mac_word(mac: Mac) -> u64 {
    let m = mac.0;
    u64::from_le_bytes([m[0], m[1], m[2], m[3], m[4], m[5], 0, 0])
}

fn store(memory: &Memory, place: usize, word: u64) {
    let at = memory.long(8 * place);
    if at.load(Ordering::Relaxed) != word {
        at.store(word, Ordering::Release);
    }
}

/// Next hops, groups, interfaces and settings.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) hops: Shared,
    pub(super) members: Shared,
    pub(super) interfaces: Shared,
    pub(super) settings: Shared,
    /// The numbers of the VRFs that have maps.
    slots: Vec<usize>,
    /// Groups that have members there, by number: where they begin, and which.
    groups: HashMap<u32, (usize, Box<[u32]>)>,
    /// Where no group has had members since the last grace period.
    free_member: usize,
    /// Hops and interfaces that have words.
    used: (usize, usize),
}

impl Words {
    pub(super) fn new(slots: &[usize]) -> io::Result<Self> {
        Ok(Self {
            hops: Map::memory("fibula_hops", 8 * HOPS as u32)?,
            members: Map::memory("fibula_members", 4 * MEMBERS as u32)?,
            interfaces: Map::memory("fibula_lines", 16 * INTERFACES as u32)?,
            settings: Map::memory("fibula_settings", 64)?,
            slots: slots.to_vec(),
            groups: HashMap::new(),
            free_member: 0,
            used: (0, 0),
        })
    }

    fn slot(&self, vrf: usize) -> Option<usize> {
        self.slots.iter().position(|&slot| slot == vrf)
    }

    /// Writes interfaces. `ways` says of a port whether its device is fast, whether frames may leave by it, and whether those of other
    /// drivers may.
    pub(super) fn set_interfaces(&mut self, fabric: &Fabric, ways: impl Fn(usize) -> (bool, bool, bool)) {
        for (number, line) in fabric.interfaces.iter().enumerate().take(INTERFACES) {
            let word = self.interface(line, ways(line.port));
            store(&self.interfaces.1, 2 * number, mac_word(line.mac));
            store(&self.interfaces.1, 2 * number + 1, word);
        }
        let count = fabric.interfaces.len().min(INTERFACES);
        (count..self.used.1).for_each(|number| store(&self.interfaces.1, 2 * number + 1, 0));
        self.used.1 = count;
    }

    fn interface(&self, line: &Interface, (is_fast, out, takes): (bool, bool, bool)) -> u64 {
        let slot = self.slot(line.vrf);
        let urpf = match line.urpf {
            Urpf::Off => 0,
            Urpf::Strict => 1 << 3,
            Urpf::Loose => 1 << 4,
        };
        // Programs put one tag on: the router sends what leaves with two.
        let out = out && line.tags.outer().is_none();
        let bits = [(line.up, 0), (out, 1), (out && takes, 2), (is_fast && slot.is_some(), 5)];
        let bits = bits.iter().fold(urpf, |word, &(is_set, bit)| word | u64::from(is_set) << bit);
        let mtu = line.mtu.min(0xffff) as u64;
        bits | (line.port as u64 & 0xff) << 8
            | mtu << 16
            | u64::from(line.tags.vlan()) << 32
            | (slot.unwrap_or(0) as u64) << 44
    }

    pub(super) fn set_settings(&self, fabric: &Fabric) {
        store(&self.settings.1, 1, fabric.hash.seed);
        store(&self.settings.1, 2, fabric.hash.symmetric.into());
    }

    /// Writes next hops. Groups get new places for their members, because a program may be reading the old ones.
    pub(super) fn set_hops(
        &mut self,
        fabric: &Fabric,
        neighbourhood: &mut Neighbourhood,
        wait: GraceWait<'_>,
    ) {
        let gateways = fabric.hops.iter().flatten().filter_map(|hop| match hop {
            Hop::Via { interface, gateway } => Some(key_of(*interface, *gateway)),
            _ => None,
        });
        neighbourhood.keep_gateways(gateways, wait);
        let count = fabric.hops.len().min(HOPS);
        let is_group = |number: u32, members: &[u32]| {
            matches!(
            fabric.hops.get(number as usize), Some(Some(Hop::Group(other))) if **other == *members)
        };
        self.groups.retain(|&number, (_, members)| is_group(number, members));
        let mut late = Vec::new();
        for number in 0..count {
            let hop = fabric.hops[number].as_ref();
            let word = match hop {
                Some(Hop::Group(members)) => match self.group(number as u32, members) {
                    Some(word) => word,
                    None => {
                        late.push(number as u32);
                        UNKNOWN
                    }
                },
                hop => hop.map_or(UNKNOWN, |hop| word_of(hop, neighbourhood)),
            };
            store(&self.hops.1, number, word);
        }
        (count..self.used.0).for_each(|number| store(&self.hops.1, number, UNKNOWN));
        self.used.0 = count;
        if !late.is_empty() {
            self.pack(fabric, wait);
        }
    }

    /// Returns the word of a group; `None` if there is no room for its members.
    fn group(&mut self, number: u32, members: &[u32]) -> Option<u64> {
        let word = |first: usize| GROUP | (members.len() as u64) << 8 | (first as u64) << 32;
        if members.is_empty() || members.len() > MEMBERS_OF_GROUP {
            return Some(UNKNOWN);
        }
        if let Some((first, _)) = self.groups.get(&number) {
            return Some(word(*first));
        }
        let first = self.free_member;
        if first + members.len() > MEMBERS {
            return None;
        }
        for (at, &member) in members.iter().enumerate() {
            self.members.1.word(4 * (first + at)).store(member, Ordering::Release);
        }
        self.free_member += members.len();
        self.groups.insert(number, (first, members.into()));
        Some(word(first))
    }

    /// Gives all groups new places from the first on. Meanwhile the router forwards by groups.
    fn pack(&mut self, fabric: &Fabric, wait: GraceWait<'_>) {
        let groups: Vec<(usize, &[u32])> = (fabric.hops.iter().take(HOPS).enumerate())
            .filter_map(|(number, hop)| match hop {
                Some(Hop::Group(members)) => Some((number, &**members)),
                _ => None,
            })
            .collect();
        groups.iter().for_each(|group| store(&self.hops.1, group.0, UNKNOWN));
        self.groups.clear();
        if !wait() {
            return;
        }
        self.free_member = 0;
        for (number, members) in groups {
            let word = self.group(number as u32, members).unwrap_or(UNKNOWN);
            store(&self.hops.1, number, word);
        }
    }
}

fn key_of(interface: u16, gateway: Gateway) -> Key {
    match gateway {
        Gateway::V4(address) => Key::v4(interface, address),
        Gateway::V6(address) => Key::v6(interface, address),
    }
}

/// Returns the word of a next hop that is no group.
fn word_of(hop: &Hop, neighbourhood: &Neighbourhood) -> u64 {
    let out = |interface: u16| u64::from(interface) << 8;
    if hop.interface().is_some_and(|interface| usize::from(interface) >= INTERFACES) {
        return UNKNOWN;
    }
    match hop {
        Hop::Via { interface, gateway } => {
            let place = neighbourhood.place(&key_of(*interface, *gateway)).unwrap_or(0);
            VIA | out(*interface) | (place as u64) << 32
        }
        Hop::Connected { interface } => CONNECTED | out(*interface),
        Hop::Local => LOCAL,
        Hop::Blackhole => BLACKHOLE,
        Hop::Unreachable | Hop::Prohibit => REFUSED,
        Hop::Group(_) => UNKNOWN,
    }
}

/// A neighbour that has a place.
#[derive(Debug, Clone, Copy)]
struct Placed {
    place: usize,
    /// A next hop leads there.
    is_gateway: bool,
    /// It is in the map, for packets to the neighbour itself.
    is_listed: bool,
}

/// Neighbours, and the map that finds them and the router's own addresses by address.
#[derive(Debug)]
pub(super) struct Neighbourhood {
    pub(super) map: Map,
    memory: Memory,
    pub(super) known: Map,
    placed: HashMap<Key, Placed>,
    /// Places without a neighbour, and those that programs may still lead to.
    free: Vec<usize>,
    left: Vec<usize>,
    /// The router's own addresses that are in the map: number of the tables, family and address.
    own: Vec<(usize, bool, u128)>,
    own_bits: u64,
    generation: Option<u64>,
}

/// The kinds of keys in the map, to which 1 is added for IPv6.
const NEIGHBOUR: u32 = 0;
const OWN: u32 = 2;

fn known_key(of: u32, kind: u32, v6: bool, address: u128) -> [u8; 24] {
    let mut key = [0; 24];
    key[..4].copy_from_slice(&of.to_ne_bytes());
    key[4..8].copy_from_slice(&(kind + u32::from(v6)).to_ne_bytes());
    key[8..16].copy_from_slice(&((address >> 64) as u64).to_ne_bytes());
    key[16..].copy_from_slice(&(address as u64).to_ne_bytes());
    key
}

impl Neighbourhood {
    pub(super) fn new(known: Map) -> io::Result<Self> {
        let (map, memory) = Map::memory("fibula_near", 16 * NEIGHBOURS as u32)?;
        Ok(Self {
            map,
            memory,
            known,
            placed: HashMap::new(),
            // Place 0 means that there is none.
            free: (1..NEIGHBOURS).rev().collect(),
            left: Vec::new(),
            own: Vec::new(),
            own_bits: 0,
            generation: None,
        })
    }

    fn place(&self, key: &Key) -> Option<usize> {
        self.placed.get(key).map(|placed| placed.place)
    }

    fn take_place(&mut self, wait: GraceWait<'_>) -> Option<usize> {
        if self.free.is_empty() && !self.left.is_empty() && wait() {
            self.free.append(&mut self.left);
        }
        self.free.pop()
    }

    /// Gives each gateway a place, and takes that of others back unless they are neighbours.
    fn keep_gateways(&mut self, gateways: impl Iterator<Item = Key>, wait: GraceWait<'_>) {
        self.placed.values_mut().for_each(|placed| placed.is_gateway = false);
        for key in gateways {
            if let Some(placed) = self.placed.get_mut(&key) {
                placed.is_gateway = true;
            } else if let Some(place) = self.take_place(wait) {
                self.placed.insert(key, Placed { place, is_gateway: true, is_listed: false });
                // The MAC address, if it is known, is written by `follow`.
                self.generation = None;
            }
        }
        self.forget_unused();
    }

    fn forget_unused(&mut self) {
        let (memory, left) = (&self.memory, &mut self.left);
        self.placed.retain(|_, placed| {
            let stays = placed.is_gateway || placed.is_listed;
            if !stays {
                store(memory, 2 * placed.place, 0);
                left.push(placed.place);
            }
            stays
        });
    }

    /// Takes over all neighbours, if any has changed.
    pub(super) fn follow_if_changed(&mut self, neighbours: &Neighbours, wait: GraceWait<'_>) {
        if self.generation != Some(neighbours.generation()) {
            self.follow(neighbours, wait);
        }
    }

    /// Takes over all neighbours.
    pub(super) fn follow(&mut self, neighbours: &Neighbours, wait: GraceWait<'_>) {
        // Read first: later changes are taken over next time.
        self.generation = Some(neighbours.generation());
        let mut found = HashMap::new();
        neighbours.for_each(|key, mac, _| _ = mac.map(|mac| found.insert(key, mac)));
        let known = &self.known;
        for (key, placed) in &mut self.placed {
            let mac = found.remove(key);
            store(&self.memory, 2 * placed.place, mac.map_or(0, |mac| mac_word(mac) | 1 << 48));
            let name = known_key(key.interface.into(), NEIGHBOUR, key.v6, key.address);
            if mac.is_none() && placed.is_listed {
                let _ = known.delete(&name);
                placed.is_listed = false;
            } else if mac.is_some() && !placed.is_listed {
                placed.is_listed = known.update(&name, &(placed.place as u32).to_ne_bytes()).is_ok();
            }
        }
        for (key, mac) in found {
            let Some(place) = self.take_place(wait) else { break };
            store(&self.memory, 2 * place + 1, 0);
            store(&self.memory, 2 * place, mac_word(mac) | 1 << 48);
            let name = known_key(key.interface.into(), NEIGHBOUR, key.v6, key.address);
            // Without room in the map, the router forwards to this neighbour.
            let is_listed = self.known.update(&name, &(place as u32).to_ne_bytes()).is_ok();
            self.placed.insert(key, Placed { place, is_gateway: false, is_listed });
        }
        self.forget_unused();
    }

    /// Tells which neighbours packets have used since the last call, so that they are confirmed.
    pub(super) fn tell_used(&self, neighbours: &Neighbours) {
        for (key, placed) in &self.placed {
            let used = self.memory.long(8 * (2 * placed.place + 1));
            if used.load(Ordering::Relaxed) != 0 {
                used.store(0, Ordering::Relaxed);
                // To ask is to use.
                let _ = neighbours.get(key);
            }
        }
    }

    /// Writes the router's own addresses, from which no packet is forwarded.
    pub(super) fn set_own(&mut self, fabric: &Fabric, words: &Words) {
        let mut wanted = Vec::new();
        for line in &fabric.interfaces {
            let Some(slot) = words.slot(line.vrf) else { continue };
            wanted.extend(line.v4.iter().map(|&(address, _)| (slot, false, u128::from(address))));
            wanted.extend(line.v6.iter().map(|&(address, _)| (slot, true, address)));
        }
        wanted.sort_unstable();
        wanted.dedup();
        if wanted == self.own {
            return;
        }
        let name = |own: &(usize, bool, u128)| known_key(own.0 as u32, OWN, own.1, own.2);
        // The map has room for all, as it has twice the entries of neighbours. Without memory, it is tried again at the next fabric.
        let (known, before) = (&self.known, &self.own);
        wanted.retain(|own| {
            before.binary_search(own).is_ok() || known.update(&name(own), &1u32.to_ne_bytes()).is_ok()
        });
        self.own_bits = wanted.iter().fold(0, |bits, own| bits | 1 << (own.2 & 63));
        store(&words.settings.1, 0, self.own_bits);
        for own in self.own.iter().filter(|own| wanted.binary_search(own).is_err()) {
            let _ = self.known.delete(&name(own));
        }
        self.own = wanted;
    }
}
