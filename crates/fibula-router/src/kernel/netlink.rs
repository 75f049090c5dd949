//! Links, addresses and neighbours of the kernel, by route netlink.
//!
//! The decoding does no I/O and never reads past a message. Under load, the kernel drops messages and reports this. Everything
//! must then be read again ([`Event::Lost`]).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use crate::packet::ethernet::Mac;

use super::sys;

const NEW_LINK: u16 = 16;
const DEL_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const DEL_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const DEL_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const DEL_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const CREATE: u16 = 0x400;
/// Links, neighbours, IPv4 and IPv6 addresses, IPv4 and IPv6 routes.
const GROUPS: u32 = 0x1 | 0x4 | 0x10 | 0x100 | 0x40 | 0x400;
/// The kernel made the route itself, for an address.
const PROTOCOL_KERNEL: u8 = 2;
const TYPE_UNICAST: u8 = 1;
const TABLE_LOCAL: u8 = 255;
const SOL_NETLINK: i32 = 270;
/// Requests for a dump may name what is wanted.
const STRICT_CHECK: i32 = 12;
/// Resolve an unknown neighbour, or verify a stale one.
const NTF_USE: u8 = 1;
const NUD_STALE: u16 = 4;
const NUD_FAILED: u16 = 0x20;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
const NTF_EXT_LEARNED: u8 = 0x10;
const NUD_VALID: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80;

/// A device of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Number.
    pub index: u32,
    /// Number of the device that it lies on, as a macvlan does on a device of hardware; that one is of this namespace.
    pub below: Option<u32>,
    /// Name.
    pub name: String,
    /// MAC address, if it has one.
    pub mac: Option<Mac>,
    /// MTU.
    pub mtu: usize,
    /// Whether it is up and has a carrier.
    pub up: bool,
    /// Whether it was set up, with or without a carrier.
    pub is_enabled: bool,
    /// Kind, as in `ip link add ... type KIND`; `None` for a device of hardware.
    pub kind: Option<String>,
    /// Kind of the device that it is a port or a member of, for example `bridge`, `bond` or `vrf`.
    pub master: Option<String>,
}

impl Link {
    /// Returns the reason and the remedy, if the router cannot have the device because another device of the kernel takes its frames.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let name = &self.name;
        let advice = match self.master.as_deref()? {
            "bond" | "team" => format!(
                "a member of a {}: name that device instead, which has the frames of its members",
                self.master.as_deref()?
            ),
            "bridge" | "openvswitch" => format!(
                "a port of a bridge, which takes its frames: name the bridge instead, or take the device out with 'ip link set {name} nomaster'"
            ),
            // A VRF leaves frames alone, and so may others.
            _ => return None,
        };
        Some(format!("device {name} is {advice}"))
    }

    /// Returns whether a program in the driver of this device sees frames as those of other devices: the members of a bond. Sockets of
    /// AF_XDP of the bond take none of these (`xsk_rcv_check` in net/xdp/xsk.c), and the kernel drops them without a counter.
    #[must_use]
    pub fn has_frames_of_members(&self) -> bool {
        matches!(self.kind.as_deref(), Some("bond" | "team"))
    }
}

/// An address of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Number of the device.
    pub index: u32,
    /// The address.
    pub ip: IpAddr,
    /// Length of its network's prefix.
    pub len: u8,
    /// Broadcast address of the network.
    pub broadcast: Option<Ipv4Addr>,
}

/// A network that the kernel reaches by a device, because the device has an address in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// Number of the device.
    pub index: u32,
    /// The network: its first address.
    pub network: IpAddr,
    /// Length of its prefix.
    pub len: u8,
    /// Of several routes of a network, the kernel uses the one with the lowest metric.
    pub metric: u32,
}

/// A neighbour of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Number of the device.
    pub index: u32,
    /// Its address.
    pub ip: IpAddr,
    /// Its MAC address, if the kernel has a valid one.
    pub mac: Option<Mac>,
    /// Whether the MAC address should be verified before long.
    pub stale: bool,
    /// Whether it does not answer.
    pub failed: bool,
    /// Whether an operator or another program has set it: it is permanent, needs no resolution, or was learned elsewhere. The
    /// kernel never verifies it, and a request to do so would take that away.
    pub is_fixed: bool,
}

/// An event of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A device was added or has changed.
    Link(Link),
    /// A device is gone.
    LinkGone(u32),
    /// An address was added.
    Address(Address),
    /// An address is gone.
    AddressGone(Address),
    /// The kernel has a route to a network of a device.
    Connected(Connected),
    /// A route to a network of a device is gone.
    ConnectedGone(Connected),
    /// A neighbour was added or has changed.
    Neighbour(Neighbour),
    /// A neighbour is gone.
    NeighbourGone(Neighbour),
    /// The answer to the request with this sequence number is complete, or it was refused.
    Complete(u32),
    /// Events were lost, so everything must be read again.
    Lost,
}

fn u16_of(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_of(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Calls `each` with the events of a datagram of the kernel. Damaged messages and other kinds are left out.
pub fn decode(mut bytes: &[u8], mut each: impl FnMut(Event)) {
    while let (Some(len), Some(kind)) = (u32_of(bytes, 0), u16_of(bytes, 4)) {
        let Some(message) = bytes.get(16..len as usize) else { return };
        match kind {
            DONE | ERROR => each(Event::Complete(u32_of(bytes, 8).unwrap_or_default())),
            _ => {
                if let Some(event) = event(kind, message) {
                    each(event);
                }
            }
        }
        let next = (len as usize).next_multiple_of(4).min(bytes.len());
        bytes = &bytes[next..];
    }
}

fn event(kind: u16, message: &[u8]) -> Option<Event> {
    match kind {
        // About a port of a bridge as such, without most of what a device has. Its deletion leaves the device.
        NEW_LINK | DEL_LINK if message.first() == Some(&(libc::AF_BRIDGE as u8)) => None,
        NEW_LINK => link(message).map(Event::Link),
        DEL_LINK => u32_of(message, 4).map(Event::LinkGone),
        NEW_ADDRESS => address(message).map(Event::Address),
        DEL_ADDRESS => address(message).map(Event::AddressGone),
        NEW_ROUTE => connected(message).map(Event::Connected),
        DEL_ROUTE => connected(message).map(Event::ConnectedGone),
        NEW_NEIGHBOUR => neighbour(message).map(Event::Neighbour),
        DEL_NEIGHBOUR => neighbour(message).map(Event::NeighbourGone),
        _ => None,
    }
}

/// Returns the value of an attribute among those from `at` on.
fn attribute(message: &[u8], at: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = message.get(at..)?;
    loop {
        let (len, kind) = (usize::from(u16_of(rest, 0)?), u16_of(rest, 2)?);
        let value = rest.get(4..len)?;
        if kind & 0x3fff == wanted {
            return Some(value);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
}

/// Appends an attribute to a message.
fn put(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

fn octets(ip: IpAddr) -> (u8, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (libc::AF_INET as u8, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6 as u8, ip.octets().to_vec()),
    }
}

fn mac_of(value: &[u8]) -> Option<Mac> {
    value.try_into().ok().map(Mac)
}

fn ip_of(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(<[u8; 4]>::try_from(value).ok()?.into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
        _ => None,
    }
}

fn link(message: &[u8]) -> Option<Link> {
    let text = |value: &[u8]| String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned();
    let name = attribute(message, 16, 3).map(text)?;
    // IFF_UP and IFF_LOWER_UP. Taps and veths report both.
    let up = u32_of(message, 8)? & 0x1_0001 == 0x1_0001;
    Some(Link {
        index: u32_of(message, 4)?,
        // With IFLA_LINK_NETNSID (37), it is the number of another namespace.
        below: attribute(message, 16, 5)
            .and_then(|below| u32_of(below, 0))
            .filter(|_| attribute(message, 16, 37).is_none()),
        name,
        mac: attribute(message, 16, 1).and_then(mac_of),
        mtu: u32_of(attribute(message, 16, 4)?, 0)? as usize,
        up,
        is_enabled: u32_of(message, 8)? & 1 != 0,
        kind: attribute(message, 16, 18).and_then(|info| attribute(info, 0, 1)).map(text),
        master: attribute(message, 16, 18).and_then(|info| attribute(info, 0, 4)).map(text),
    })
}

fn address(message: &[u8]) -> Option<Address> {
    let ip = attribute(message, 8, 2).or_else(|| attribute(message, 8, 1)).and_then(ip_of)?;
    let broadcast = match attribute(message, 8, 4).and_then(ip_of) {
        Some(IpAddr::V4(broadcast)) => Some(broadcast),
        _ => None,
    };
    Some(Address { index: u32_of(message, 4)?, ip, len: *message.get(1)?, broadcast })
}

/// Reads a route, if it is one that the kernel made for an address and that leads to the network of a device.
fn connected(message: &[u8]) -> Option<Connected> {
    const DESTINATION: u16 = 1;
    const DEVICE: u16 = 4;
    const GATEWAY: u16 = 5;
    const METRIC: u16 = 6;
    const VIA: u16 = 18;
    let &[family, len, .., table, protocol, _, kind, _, _, _, _] = message.first_chunk::<12>()?;
    let has = |wanted| attribute(message, 12, wanted).is_some();
    if protocol != PROTOCOL_KERNEL || kind != TYPE_UNICAST || table == TABLE_LOCAL || has(GATEWAY) || has(VIA)
    {
        return None;
    }
    let network = match attribute(message, 12, DESTINATION) {
        Some(network) => ip_of(network)?,
        None if i32::from(family) == libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        None => Ipv6Addr::UNSPECIFIED.into(),
    };
    let index = u32_of(attribute(message, 12, DEVICE)?, 0)?;
    let metric = attribute(message, 12, METRIC).and_then(|metric| u32_of(metric, 0)).unwrap_or(0);
    Some(Connected { index, network, len, metric })
}

fn neighbour(message: &[u8]) -> Option<Neighbour> {
    let state = u16_of(message, 8)?;
    let mac = attribute(message, 12, 2).and_then(mac_of);
    Some(Neighbour {
        index: u32_of(message, 4)?,
        ip: attribute(message, 12, 1).and_then(ip_of)?,
        mac: mac.filter(|_| state & NUD_VALID != 0),
        stale: state & NUD_STALE != 0,
        failed: state & NUD_FAILED != 0,
        is_fixed: state & (NUD_NOARP | NUD_PERMANENT) != 0 || message.get(10)? & NTF_EXT_LEARNED != 0,
    })
}

/// Returns a filter of sockets that refuses the routes of others: a daemon's may be a million. Each instruction is its code, the
/// instructions to skip if its condition holds and if not, and a value.
fn only_connected() -> [(u16, u8, u8, u32); 7] {
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    // The filter loads in the order of the network, but the kernel writes these numbers in its own.
    let kind = |kind: u16| u32::from(kind.to_be());
    [
        (LOAD_HALF, 0, 0, 4),
        (JUMP_EQUAL, 1, 0, kind(NEW_ROUTE)),
        (JUMP_EQUAL, 0, 2, kind(DEL_ROUTE)),
        (LOAD_BYTE, 0, 0, 16 + 5),
        (JUMP_EQUAL, 0, 1, PROTOCOL_KERNEL.into()),
        (RETURN, 0, 0, u32::MAX),
        (RETURN, 0, 0, 0),
    ]
}

/// A connection to the kernel.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    buffer: Box<[u8]>,
    sequence: u32,
}

impl Netlink {
    /// Opens a connection that also receives notices of changes.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        let fd = sys::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)?;
        let mut address = [0; 12];
        address[..2].copy_from_slice(&(libc::AF_NETLINK as u16).to_ne_bytes());
        address[8..12].copy_from_slice(&GROUPS.to_ne_bytes());
        // Before it is bound, so that no other route comes.
        sys::set_filter(fd.as_fd(), &only_connected())?;
        sys::bind(fd.as_fd(), &address)?;
        // Older kernels dump all routes, of which the others are left out.
        let _ = sys::set_number(fd.as_fd(), SOL_NETLINK, STRICT_CHECK, 1);
        // Make room for bursts. Without the capability, the default must suffice.
        let _ = sys::set_number(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 4 << 20);
        Ok(Self { fd, buffer: vec![0; 1 << 16].into_boxed_slice(), sequence: 0 })
    }

    fn ask(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let mut message = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        sys::send(self.fd.as_fd(), &message, 0).map(drop)
    }

    /// Reads links, addresses, connected networks and neighbours, in this order, and calls `each` with all of them.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn dump(&mut self, mut each: impl FnMut(Event)) -> io::Result<()> {
        self.dump_of(GET_LINK, &[0; 16], &mut each)?;
        self.dump_of(GET_ADDRESS, &[0; 8], &mut each)?;
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut body = [0; 12];
            (body[0], body[5]) = (family as u8, PROTOCOL_KERNEL);
            self.dump_of(GET_ROUTE, &body, &mut each)?;
        }
        self.dump_neighbours(each)
    }

    /// Reads the neighbours, and calls `each` with all of them and with the events that come meanwhile.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn dump_neighbours(&mut self, mut each: impl FnMut(Event)) -> io::Result<()> {
        self.dump_of(GET_NEIGHBOUR, &[0; 12], &mut each)
    }

    fn dump_of(&mut self, kind: u16, body: &[u8], each: &mut dyn FnMut(Event)) -> io::Result<()> {
        self.ask(kind, DUMP, body)?;
        let (asked, mut complete) = (self.sequence, false);
        while !complete {
            if sys::poll(&mut [sys::readable(&self.fd)], 5000)? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.read(|event| match event {
                Event::Complete(sequence) => complete |= is_end(sequence, asked),
                event => each(event),
            })?;
        }
        Ok(())
    }

    /// Calls `each` with the events since the last call, without waiting.
    ///
    /// # Errors
    /// When reading fails.
    pub fn read(&mut self, mut each: impl FnMut(Event)) -> io::Result<()> {
        loop {
            match sys::receive(self.fd.as_fd(), &mut self.buffer, 0) {
                Ok(len) => decode(&self.buffer[..len], &mut each),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => each(Event::Lost),
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives a device a MAC address and an MTU, and sets it up. Does not wait for the kernel's answer. A later
    /// [`dump`](Self::dump) shows whether it was done.
    ///
    /// # Errors
    /// When the kernel does not take the message.
    pub fn set_up(&mut self, device: u32, mac: Mac, mtu: usize) -> io::Result<()> {
        // Set IFF_UP, and change no other flag.
        self.set_link(device, (mac, mtu), 1)
    }

    /// Like [`set_up`](Self::set_up), for a device that stays up or down as it is.
    ///
    /// # Errors
    /// When the kernel does not take the message.
    pub fn change(&mut self, device: u32, mac: Mac, mtu: usize) -> io::Result<()> {
        self.set_link(device, (mac, mtu), 0)
    }

    fn set_link(&mut self, device: u32, (mac, mtu): (Mac, usize), flags: u32) -> io::Result<()> {
        let mut body = vec![0; 4];
        body.extend(device.to_ne_bytes());
        body.extend(flags.to_ne_bytes());
        body.extend(flags.to_ne_bytes());
        put(&mut body, 1, &mac.0);
        put(&mut body, 4, &(mtu as u32).to_ne_bytes());
        self.ask(NEW_LINK, 0, &body)
    }

    /// Gives a device an address of a network of `len` bits. Like [`set_up`](Self::set_up), does not wait for the answer.
    ///
    /// # Errors
    /// When the kernel does not take the message.
    pub fn add_address(&mut self, device: u32, ip: IpAddr, len: u8) -> io::Result<()> {
        let (family, octets) = octets(ip);
        let mut body = vec![family, len, 0, 0];
        body.extend(device.to_ne_bytes());
        put(&mut body, 1, &octets);
        put(&mut body, 2, &octets);
        if let (IpAddr::V4(ip), ..=30) = (ip, len) {
            let broadcast = u32::from(ip) | u32::MAX.checked_shr(len.into()).unwrap_or(0);
            put(&mut body, 4, &broadcast.to_be_bytes());
        }
        self.ask(NEW_ADDRESS, CREATE, &body)
    }

    /// Requests the kernel to resolve a neighbour, or to verify a stale one. The kernel does not do this by itself, because it
    /// does not send the packets. A neighbour that [is fixed](Neighbour::is_fixed) must not be asked for: since Linux 5.16 the
    /// request makes an entry of it that is resolved and forgotten.
    ///
    /// # Errors
    /// When the kernel does not take the request.
    pub fn use_neighbour(&mut self, device: u32, ip: IpAddr) -> io::Result<()> {
        self.ask(NEW_NEIGHBOUR, CREATE, &neighbour_message(device, ip, NTF_USE))
    }

    /// Requests the kernel's entry of a neighbour, which comes as an event. This is needed because an entry may be stale: the kernel
    /// reports no change when it is [used](Self::use_neighbour), and verifies it after 5 s (`delay_first_probe_time`).
    ///
    /// # Errors
    /// When the kernel does not take the request.
    pub fn ask_for_neighbour(&mut self, device: u32, ip: IpAddr) -> io::Result<()> {
        self.ask(GET_NEIGHBOUR, 0, &neighbour_message(device, ip, 0))
    }

    /// Requests the kernel to forget a neighbour.
    ///
    /// # Errors
    /// When the kernel does not take the request.
    pub fn forget_neighbour(&mut self, device: u32, ip: IpAddr) -> io::Result<()> {
        self.ask(DEL_NEIGHBOUR, 0, &neighbour_message(device, ip, 0))
    }
}

/// Returns the message about a neighbour: its device, its address, and flags.
fn neighbour_message(device: u32, ip: IpAddr, flags: u8) -> Vec<u8> {
    let (family, octets) = octets(ip);
    let mut body = vec![family, 0, 0, 0];
    body.extend(device.to_ne_bytes());
    body.extend([0, 0, flags, 0]);
    put(&mut body, 1, &octets);
    body
}

impl AsRawFd for Netlink {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Returns whether the end of the answer to request `sequence` is the one to wait for after request `asked`. An earlier request may be
/// refused late.
fn is_end(sequence: u32, asked: u32) -> bool {
    sequence == asked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message about device 7, `eth0`, with the kind of its master, as the kernel nests it.
    fn message_of_port(master: &str) -> Vec<u8> {
        let mut info = Vec::new();
        put(&mut info, 1, b"veth\0");
        put(&mut info, 4, &[master.as_bytes(), &[0]].concat());
        let mut body = vec![0, 0, 1, 0];
        body.extend(7u32.to_ne_bytes());
        body.extend(0x1_0001u32.to_ne_bytes());
        body.extend([0; 4]);
        put(&mut body, 3, b"eth0\0");
        put(&mut body, 4, &1500u32.to_ne_bytes());
        put(&mut body, 18 | 0x8000, &info);
        let mut message = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(NEW_LINK.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(body);
        message
    }

    #[test]
    fn devices_whose_frames_another_device_takes_are_refused_by_name() {
        for (master, part) in [
            ("bridge", Some("device eth0 is a port of a bridge")),
            ("openvswitch", Some("'ip link set eth0 nomaster'")),
            ("bond", Some("device eth0 is a member of a bond: name that device instead")),
            ("team", Some("a member of a team")),
            ("vrf", None),
        ] {
            let message = message_of_port(master);
            let mut links = Vec::new();
            decode(&message, |event| {
                if let Event::Link(link) = event {
                    links.push(link);
                }
            });
            let [link] = &links[..] else { panic!("{links:?}") };
            assert_eq!((link.kind.as_deref(), link.master.as_deref()), (Some("veth"), Some(master)));
            let refusal = link.refusal();
            assert_eq!(refusal.is_some(), part.is_some(), "{master}");
            let as_kind = Link { kind: Some(master.to_owned()), ..link.clone() };
            assert_eq!(as_kind.has_frames_of_members(), ["bond", "team"].contains(&master));
            assert!(part.is_none_or(|part| refusal.unwrap().contains(part)), "{master}");
            (0..message.len()).for_each(|len| decode(&message[..len], |_| {}));
            // A message about the port as such is neither news of the device nor its end.
            for kind in [NEW_LINK, DEL_LINK] {
                let mut message = message.clone();
                message[4..6].copy_from_slice(&kind.to_ne_bytes());
                message[16] = libc::AF_BRIDGE as u8;
                decode(&message, |event| panic!("{event:?}"));
            }
        }
    }

    #[test]
    fn the_kernel_answers_and_cut_messages_are_left_out() {
        let mut netlink = Netlink::open().unwrap();
        let mut loopback = None;
        netlink
            .dump(|event| match event {
                Event::Link(link) if link.name == "lo" => loopback = Some(link),
                _ => {}
            })
            .unwrap();
        assert_eq!(loopback.take().expect("lo").index, 1);
        // The refusal of an earlier request, here for a device that does not exist, is not the end of an answer. Kernels that have the
        // whole answer at once would hide it.
        assert!(is_end(7, 7) && !is_end(6, 7));
        netlink.use_neighbour(u32::MAX, "192.0.2.1".parse().unwrap()).unwrap();
        let lo = &mut |event| match event {
            Event::Link(link) if link.name == "lo" => loopback = Some(link),
            _ => {}
        };
        netlink.dump_of(GET_LINK, &[0; 16], lo).unwrap();
        assert_eq!(loopback.expect("lo").index, 1);
        // A neighbour of device 3: 192.0.2.1 at 02:00:00:00:00:09, reachable.
        let mut message = 44u32.to_ne_bytes().to_vec();
        message.extend(NEW_NEIGHBOUR.to_ne_bytes());
        message.extend([0; 10]);
        message.extend([2, 0, 0, 0]);
        message.extend(3u32.to_ne_bytes());
        message.extend(2u16.to_ne_bytes());
        message.extend([0, 0]);
        message.extend(8u16.to_ne_bytes());
        message.extend(1u16.to_ne_bytes());
        message.extend([192, 0, 2, 1]);
        message.extend(10u16.to_ne_bytes());
        message.extend(2u16.to_ne_bytes());
        message.extend([2, 0, 0, 0, 0, 9, 0, 0]);
        let len = (message.len() as u32).to_ne_bytes();
        message[..4].copy_from_slice(&len);
        let mut events = Vec::new();
        decode(&message, |event| events.push(event));
        let expected = Neighbour {
            index: 3,
            ip: "192.0.2.1".parse().unwrap(),
            mac: Some(Mac([2, 0, 0, 0, 0, 9])),
            stale: false,
            failed: false,
            is_fixed: false,
        };
        assert_eq!(events, [Event::Neighbour(expected)]);
        // Entries that somebody has set: permanent, without resolution, learned elsewhere.
        for (state, flags) in [(0x80u16, 0u8), (0x40, 0), (0x02, 0x10)] {
            let mut message = message.clone();
            message[24..26].copy_from_slice(&state.to_ne_bytes());
            message[26] = flags;
            let mut events = Vec::new();
            decode(&message, |event| events.push(event));
            assert_eq!(events, [Event::Neighbour(Neighbour { is_fixed: true, ..expected })]);
        }
        for len in 0..message.len() {
            decode(&message[..len], |_| {});
            let mut cut = message.clone();
            cut[..4].copy_from_slice(&(len as u32).to_ne_bytes());
            decode(&cut, |_| {});
        }
    }
}
