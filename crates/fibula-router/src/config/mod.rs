//! The configuration file (TOML): read, checked as a whole, and refused with line and reason.
//!
//! ```toml
//! threads = 2
//! socket = "/run/fibula/router.sock"
//!
//! [[interface]]
//! name = "lan"
//! device = "eth0"                 # back end af-packet, before Linux 6.6 af-xdp; addresses, MAC and MTU are the kernel's
//! urpf = "strict"
//!
//! [[interface]]
//! name = "guests"
//! backend = "tap"
//! device = "tap0"
//! addresses = ["192.0.2.1/24", "2001:db8::1/64"]
//!
//! [[route]]
//! prefix = "0.0.0.0/0"
//! via = "198.51.100.1"
//!
//! [[table]]
//! file = "routes.txt"             # prefixes and gateways, in any form that 'fibula table' reads
//!
//! [[feed]]
//! name = "zebra"
//! kind = "fpm"                    # FRR connects to 127.0.0.1:2620
//! ```
//!
//! `docs/guide/router.md` has every key.

mod accounts;
mod failover;
mod fast;
mod feed;
mod file;
mod filter;
#[cfg(target_os = "linux")]
mod numbered;
mod policer;
mod read;
pub mod release;
mod sampling;

#[cfg(target_os = "linux")]
#[cfg(target_os = "linux")]
pub(crate) use accounts::PASSWD;
pub use accounts::{Account, Accounts};
pub use failover::Backup;
#[cfg(target_os = "linux")]
pub(crate) use fast::{PORTS as FAST_PORTS, VRFS as FAST_VRFS};
pub use feed::{BmpPolicy, BmpView, Feed, FeedKind, FeedServer, MrtRate};
pub use filter::{FilterLines, PrefixList, RuleLines, RuleSets};
#[cfg(target_os = "linux")]
pub use numbered::{HopNumbers, NumberedConfig};
#[cfg(target_os = "linux")]
pub(crate) use read::network;
pub use sampling::SamplingPlan;

use core::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use fibula::fib::registry::{Engine, Engines};
use fibula::net::IpPrefix;

use crate::forward::fabric::Urpf;
use crate::neighbour::Limits;
use crate::packet::ethernet::{Mac, Tags};
use crate::packet::flow::FlowHash;
use crate::packet::martian::Martians;
use crate::police::PolicerRates;

/// Default path of the control socket.
pub const SOCKET: &str = "/run/fibula/router.sock";

/// Default number of changes of routes that are kept.
pub const HISTORY: usize = 4096;

/// A configuration that has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Threads that look up, and in one stage also receive and send.
    pub threads: usize,
    /// How the work is divided among threads.
    pub shape: Shape,
    /// How threads are created.
    pub run_time: RunTime,
    /// Whether each thread runs on a processor of its own.
    pub pin: bool,
    /// Whether frames are passed on as they are, from one port of a pair to the other.
    pub bridge: bool,
    /// Path of the control socket.
    pub socket: PathBuf,
    /// Where metrics are served, on a loopback address.
    pub metrics: Option<SocketAddr>,
    /// Arguments of DPDK's own.
    pub dpdk: Vec<String>,
    /// Engine for IPv4.
    pub ipv4: Engine<u32>,
    /// Engine for IPv6.
    pub ipv6: Engine<u128>,
    /// How flows are spread over groups.
    pub hash: FlowHash,
    /// ICMP errors a second, and in a burst, for each port and thread.
    pub icmp_rate: (u32, u32),
    /// The martians that are forwarded all the same.
    pub martians: Martians,
    /// Limits on neighbours.
    pub limits: Limits,
    /// Prefixes a second that are compared between the RIB, the tables and the kernel; 0: none.
    pub verify_rate: u32,
    /// Changes of routes that are kept, over all.
    pub history: usize,
    /// Whether the router refuses to start while a device is missing.
    pub require_devices: bool,
    /// Take over the router that answers at the control socket, if there is one.
    pub take_over: bool,
    /// Seconds after which forwarding begins though a feed has no full table yet.
    pub start_after_s: u32,
    /// Most bytes of all paths and next-hop objects of feeds.
    pub path_bytes: usize,
    /// Names of the VRFs; the first is "default".
    pub vrfs: Vec<String>,
    /// Most routes of all feeds together, of each VRF that has such a limit.
    pub vrf_limits: Vec<Option<usize>>,
    /// Interfaces.
    pub interfaces: Vec<Interface>,
    /// Static routes.
    pub routes: Vec<Route>,
    /// Files of routes.
    pub tables: Vec<TableFile>,
    /// Feeds of routes.
    pub feeds: Vec<Feed>,
    /// Rules for packets.
    pub filter: FilterLines,
    /// Rates of packets to the machine itself.
    pub policers: PolicerRates,
    /// The sampling of packets; `None` if it is off.
    pub sampling: Option<SamplingPlan>,
    /// The control socket of FRR's bfdd, from the folder of the configuration file.
    pub bfd_socket: Option<PathBuf>,
    /// Gateways that take the packets of others while those are dead.
    pub backups: Vec<Backup>,
    /// Whether the router judges packets to the machine that the kernel would take past it: there are rules or rates for them, and
    /// interfaces where the kernel would.
    pub gate: bool,
}

/// How the work is divided among threads; see [`stage`](crate::stage).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Each thread receives, looks up and sends.
    #[default]
    Complete,
    /// Some threads receive, others look up and send.
    Two {
        /// Threads that receive.
        receive: usize,
    },
    /// Some threads receive, others look up, others send.
    Three {
        /// Threads that receive.
        receive: usize,
        /// Threads that send.
        send: usize,
    },
}

impl Shape {
    /// The names of the shapes.
    pub const NAMES: [&str; 3] = ["run-to-completion", "two-stages", "three-stages"];

    /// Returns how many threads receive, where `threads` look up.
    #[must_use]
    pub const fn receiving(self, threads: usize) -> usize {
        match self {
            Self::Complete => threads,
            Self::Two { receive } | Self::Three { receive, .. } => receive,
        }
    }

    /// Returns how many threads there are in all.
    #[must_use]
    pub const fn threads(self, threads: usize) -> usize {
        match self {
            Self::Complete => threads,
            Self::Two { receive } => receive + threads,
            Self::Three { receive, send } => receive + threads + send,
        }
    }

    /// Returns how many threads send.
    #[must_use]
    pub const fn sending(self, threads: usize) -> usize {
        match self {
            Self::Complete | Self::Two { .. } => threads,
            Self::Three { send, .. } => send,
        }
    }
}

/// How threads are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunTime {
    /// The router, one by one.
    #[default]
    Threads,
    /// The data-parallel run-time of the language (rayon), by a broadcast.
    Rayon,
}

/// Where a program for AF_XDP is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XdpMode {
    /// In the driver if it supports that, otherwise in the kernel's own code.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the kernel's own code, for any device.
    Generic,
}

/// How packets get in and out: the list of back ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// Rings of packet sockets, on a device of the kernel.
    Packet {
        /// Name of the device.
        device: String,
        /// Frames of each ring.
        frames: usize,
    },
    /// Rings of AF_XDP sockets, on a device of the kernel.
    Xdp {
        /// Name of the device.
        device: String,
        /// Frames of each ring, a power of two.
        frames: usize,
        /// Where the program is attached.
        mode: XdpMode,
        /// Whether the program itself forwards plain packets.
        fast: bool,
    },
    /// A port of DPDK, with the feature `dpdk`.
    Dpdk {
        /// Name that DPDK has for it: the address of a card on its bus, or the name of a virtual device.
        device: String,
        /// Name of the tap through which the kernel has the port; `None` if the kernel has no part of it.
        host: Option<String>,
        /// Frames of each queue.
        frames: usize,
    },
    /// A tap that the router makes.
    Tap {
        /// Name of the tap.
        device: String,
        /// Whether it is the kernel's part of an interface with VLANs, and no interface itself.
        is_side: bool,
    },
    /// Files.
    Pcap {
        /// Frames that are received.
        input: Option<PathBuf>,
        /// File for the frames that are sent.
        output: Option<PathBuf>,
    },
}

impl Backend {
    /// The names of all back ends.
    pub const NAMES: [&str; 5] = ["af-packet", "af-xdp", "dpdk", "tap", "pcap"];

    /// Returns the name of the back end of interfaces whose line names none, on a kernel of this version: the first that works there
    /// without hardware of its own.
    #[must_use]
    pub fn default_name(kernel: Option<(u32, u32)>) -> &'static str {
        // Before TCX nothing keeps the kernel from forwarding what packet sockets receive too.
        if kernel.is_some_and(|version| version < release::TCX) { Self::NAMES[1] } else { Self::NAMES[0] }
    }

    /// Whether this build has DPDK.
    pub const HAS_DPDK: bool = cfg!(all(target_os = "linux", feature = "dpdk"));

    /// Returns the name of the back end.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Packet { .. } => Self::NAMES[0],
            Self::Xdp { .. } => Self::NAMES[1],
            Self::Dpdk { .. } => Self::NAMES[2],
            Self::Tap { .. } => Self::NAMES[3],
            Self::Pcap { .. } => Self::NAMES[4],
        }
    }

    /// Returns whether the device is the kernel's, with its MAC address, its MTU and its link.
    #[must_use]
    pub const fn is_device(&self) -> bool {
        matches!(self, Self::Packet { .. } | Self::Xdp { .. })
    }

    /// Returns whether the kernel can be given frames of the port, or has them already.
    #[must_use]
    pub const fn has_host(&self) -> bool {
        matches!(self, Self::Packet { .. } | Self::Dpdk { host: Some(_), .. })
    }

    /// Returns whether the program at the device forwards plain packets.
    #[must_use]
    pub const fn is_fast(&self) -> bool {
        matches!(self, Self::Xdp { fast: true, .. })
    }

    /// Returns the kernel's device through which the kernel has the port too.
    #[must_use]
    pub fn link(&self) -> Option<&str> {
        match self {
            Self::Packet { device, .. } | Self::Xdp { device, .. } => Some(device),
            Self::Dpdk { host, .. } => host.as_deref(),
            Self::Tap { .. } | Self::Pcap { .. } => None,
        }
    }

    /// Returns the name of the device or file.
    #[must_use]
    pub fn device(&self) -> String {
        match self {
            Self::Packet { device, .. }
            | Self::Xdp { device, .. }
            | Self::Dpdk { device, .. }
            | Self::Tap { device, .. } => device.clone(),
            Self::Pcap { input, output } => {
                input.as_ref().or(output.as_ref()).map_or(String::new(), |path| path.display().to_string())
            }
        }
    }
}

/// An interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Back end; interfaces of several VLANs and pairs of VLANs may share a device.
    pub backend: Backend,
    /// VLAN, or pair of VLANs.
    pub tags: Tags,
    /// Name of the tap through which the kernel has it, if it has VLANs.
    pub host: Option<String>,
    /// MAC address, if the kernel has none.
    pub mac: Option<Mac>,
    /// MTU, if the kernel has none or a smaller one is wanted.
    pub mtu: Option<usize>,
    /// Addresses and lengths of their networks; none where they are the kernel's.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Number of the VRF.
    pub vrf: usize,
    /// Which sources are accepted.
    pub urpf: Urpf,
    /// Whether it was taken out of the file while the router runs. It keeps its number, and has no name.
    pub removed: bool,
}

impl Interface {
    /// Returns the kernel's device that has the addresses and neighbours of the interface, if the kernel has a part of it.
    #[must_use]
    pub fn machine(&self) -> Option<&str> {
        if self.tags.is_none() { self.backend.link() } else { self.host.as_deref() }
    }

    /// Returns the back end of the tap through which the kernel has the interface.
    #[must_use]
    pub fn side(&self) -> Option<Backend> {
        self.host.as_ref().map(|host| Backend::Tap { device: host.clone(), is_side: true })
    }

    /// Returns the properties with which it would be another interface.
    pub(crate) fn identity(&self) -> (&Backend, Tags, Option<&str>) {
        (&self.backend, self.tags, self.host.as_deref())
    }
}

/// Where packets of a route go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// Nowhere, silently.
    Blackhole,
    /// Nowhere; senders are told that it is unreachable.
    Unreachable,
    /// Nowhere; senders are told that it is prohibited.
    Prohibit,
    /// To one of several.
    Group(Vec<Member>),
}

/// A way out, with its weight in a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// The next router; `None`: the destination is a neighbour.
    pub gateway: Option<IpAddr>,
    /// Name of the interface; `None`: that whose network the gateway is in.
    pub interface: Option<String>,
    /// Weight, from 1.
    pub weight: u32,
}

/// A static route.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Number of the VRF.
    pub vrf: usize,
    /// Its destinations.
    pub prefix: IpPrefix,
    /// Where they go.
    pub target: Target,
    /// Line in the file.
    pub line: usize,
}

/// A file of routes.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFile {
    /// Path, from the folder of the configuration file.
    pub path: PathBuf,
    /// Number of the VRF.
    pub vrf: usize,
    /// Where all routes go; `None`: to the gateways that the file names.
    pub target: Option<Target>,
    /// Line in the configuration file.
    pub line: usize,
}

/// Why a file is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Line, from 1; `None` if it is about the file as a whole.
    pub line: Option<usize>,
    /// The fault, and what to do about it.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// When the text is not TOML, has an unknown key, or has an impossible setting. None of the text is then used.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_among(text, Engines::OWN)
    }

    /// Reads a configuration that may name the engines of this list.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_among(text: &str, engines: Engines) -> Result<Self, ConfigError> {
        read::config(text, engines)
    }

    /// Gives the interfaces the numbers that they have in the configuration of a running router. Interfaces that are the same keep
    /// their numbers, those that are gone leave their numbers to nobody, and new ones come after them.
    pub fn keep_numbers(&mut self, running: &Self) {
        let mut new = std::mem::take(&mut self.interfaces);
        for old in &running.interfaces {
            let is_same = |line: &Interface| line.identity() == old.identity();
            let same = new.iter().position(|line| is_same(line) && (old.removed || line.name == old.name));
            self.interfaces.push(match same {
                Some(at) => new.remove(at),
                None => {
                    Interface { name: String::new(), addresses: Vec::new(), removed: true, ..old.clone() }
                }
            });
        }
        self.interfaces.append(&mut new);
    }

    /// Returns whether a port has a gate: the router judges the packets that its device receives for the machine.
    #[must_use]
    pub fn has_gate(&self, backend: &Backend) -> bool {
        let mut lines = self.interfaces.iter().filter(|line| line.backend == *backend && !line.removed);
        self.gate && lines.any(filter::past)
    }

    /// Returns the number of an interface.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<usize> {
        self.interfaces.iter().position(|interface| interface.name == name)
    }
}
