//! A file of MRT (RFC 6396): a table dump of two peers and updates after it, as an archive writes it, cut at any byte, or gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use fibula::net::IpPrefix;
use fibula_feed::Selection;
use fibula_router::config::MrtRate;
use fibula_router::feed::Rib;
use fibula_router::feed::mrt::{Options, Replay};

use crate::collector::{packed, update};
use crate::oracle::{Spec, Way};
use crate::random::Random;

/// Its number as a feed.
pub const ARCHIVE: usize = 3;
const WRITES: &str = "the folder of temporary files can be written";
const PEERS: usize = 2;
const TABLE_DUMP: [u8; 2] = [13, 2];
const PEER_INDEX: [u8; 2] = [13, 1];
const UPDATE: [u8; 2] = [16, 4];

/// The networks by which each peer has a route to a prefix. The first peer has the shorter paths.
type Entries = [Option<u8>; PEERS];

pub struct Archive {
    file: PathBuf,
    bytes: Vec<u8>,
    /// What the file says at its end.
    routes: BTreeMap<IpPrefix, Entries>,
    is_whole: bool,
    /// The file as it is was played to its end.
    is_played: bool,
    /// One was, since the router started.
    has_played: bool,
}

/// Updates are later than the table: others would be part of it.
fn record(kind: [u8; 2], body: &[u8]) -> Vec<u8> {
    let time = 1 + u8::from(kind == UPDATE);
    [&[0, 0, 0, time, 0, kind[0], 0, kind[1]][..], &(body.len() as u32).to_be_bytes(), body].concat()
}

fn number(peer: usize) -> [u8; 4] {
    (64_500 + peer as u32 + 1).to_be_bytes()
}

fn peers() -> Vec<u8> {
    let peer = |peer| [&[2, 10, 9, 0, peer as u8 + 1, 10, 9, 0, peer as u8 + 1][..], &number(peer)].concat();
    record(PEER_INDEX, &[&[10, 9, 0, 9, 0, 0, 0, PEERS as u8][..], &peer(0), &peer(1)].concat())
}

fn attributes(peer: usize, network: u8) -> Vec<u8> {
    let path: Vec<u8> = (0..=peer).flat_map(number).collect();
    let head = [0x40, 1, 1, 0, 0x40, 2, 2 + path.len() as u8, 2, peer as u8 + 1];
    [&head[..], &path, &[0x40, 3, 4, 10, 0, network, 9]].concat()
}

fn listed(prefix: &[u8], entries: &Entries) -> Vec<u8> {
    let mut body = [&[0; 4][..], prefix, &[0, entries.iter().flatten().count() as u8]].concat();
    for (peer, network) in entries.iter().enumerate() {
        let Some(network) = network else { continue };
        let attributes = attributes(peer, *network);
        body.extend([&[0, peer as u8, 0, 0, 0, 0][..], &(attributes.len() as u16).to_be_bytes()].concat());
        body.extend(attributes);
    }
    record(TABLE_DUMP, &body)
}

/// A message of BGP from a peer.
fn said(peer: usize, message: &[u8]) -> Vec<u8> {
    let ends =
        [&number(peer)[..], &[0, 0, 0xfd, 0xe8, 0, 0, 0, 1, 10, 9, 0, peer as u8 + 1, 10, 9, 0, 9]].concat();
    record(UPDATE, &[&ends, message].concat())
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

impl Archive {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("fibula-simulation-{}-{}.mrt", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let mut archive = Self {
            file: std::env::temp_dir().join(name),
            routes: BTreeMap::new(),
            bytes: Vec::new(),
            is_whole: false,
            is_played: false,
            has_played: false,
        };
        archive.repair();
        archive
    }

    /// A router plays it that has not done so before.
    pub fn replay(&mut self) -> Replay {
        (self.is_played, self.has_played) = (false, false);
        Replay::new(Options {
            feed: ARCHIVE,
            files: vec![self.file.clone()],
            vrf: 0,
            rate: MrtRate::Max,
            repeat: false,
            selection: Selection::Best,
            keep_ns: u64::MAX,
            routes: 1000,
        })
    }

    /// The file is another one, which may be cut at any byte, or it is gone.
    pub fn change(&mut self, prefixes: &[IpPrefix], random: &mut Random) {
        let network = |random: &mut Random| 1 + random.below(3) as u8;
        let (mut bytes, updates) = (peers(), random.below(12));
        self.routes.clear();
        for &prefix in prefixes {
            let (Some(packed), true) = (packed(prefix), random.once_in(3)) else { continue };
            let mut entries = [None; PEERS];
            entries[random.below(PEERS)] = Some(network(random));
            entries[random.below(PEERS)] = Some(network(random));
            bytes.extend(listed(&packed, &entries));
            self.routes.insert(prefix, entries);
        }
        for _ in 0..updates {
            let (prefix, peer) = (*random.pick(prefixes), random.below(PEERS));
            let Some(packed) = packed(prefix) else { continue };
            let network = (!random.once_in(3)).then(|| network(random));
            bytes.extend(said(
                peer,
                &match network {
                    Some(network) => update(&[], &attributes(peer, network), &packed),
                    None => update(&packed, &[], &[]),
                },
            ));
            self.routes.entry(prefix).or_default()[peer] = network;
        }
        self.bytes = bytes;
        self.repair();
        match random.below(4) {
            0 => {
                let most = random.below(self.bytes.len());
                self.is_whole = false;
                fs::write(&self.file, &self.bytes[..most]).expect(WRITES);
            }
            1 => {
                self.is_whole = false;
                fs::remove_file(&self.file).expect(WRITES);
            }
            _ => {}
        }
    }

    /// The whole file is there again.
    pub fn repair(&mut self) {
        if !self.is_whole {
            if self.bytes.is_empty() {
                self.bytes = peers();
            }
            self.is_whole = true;
        }
        fs::write(&self.file, &self.bytes).expect(WRITES);
        self.is_played = false;
    }

    /// Nothing is left of its routes.
    pub fn shrink(&mut self) {
        self.routes.clear();
        self.bytes = peers();
        self.repair();
    }

    /// The router plays it.
    pub fn play(&mut self, replay: &mut Replay, rib: &Mutex<Rib>) {
        let done = replay.play(rib, &AtomicBool::new(false));
        self.is_played = done.is_ok();
        self.has_played |= done.is_ok();
    }

    /// It is not whole, or was not played to its end.
    pub const fn is_due(&self) -> bool {
        !self.is_whole || !self.is_played
    }

    pub const fn has_played(&self) -> bool {
        self.has_played
    }

    /// Returns the best route to a prefix.
    pub fn best(&self, vrf: u16, prefix: IpPrefix) -> Option<Spec> {
        let entries = self.routes.get(&prefix).filter(|_| vrf == 0)?;
        let network = *entries.iter().flatten().next()?;
        Some(Spec::Ways(vec![Way { network, device: 0, weight: 1 }]))
    }

    /// Returns how many prefixes of a VRF have a route.
    pub fn len(&self, vrf: u16) -> usize {
        self.routes.keys().filter(|&&prefix| self.best(vrf, prefix).is_some()).count()
    }
}
