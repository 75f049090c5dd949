//! The gate: keeps packets for the machine from the kernel until the router has judged them.
//!
//! A packet socket gets a copy of every frame, and the kernel keeps the original, so that rules and policers of the router could hold
//! nothing back. The gate is a program at the device's ingress (TCX), which frames reach after they were copied. It drops the originals.
//! The router judges its copies by the code of all other back ends, and sends those that pass to a tap of its own with a mark: the
//! number of the device. A program at the tap's egress gives them to the ingress of that device, where the gate knows them by their mark. So
//! the kernel has them from the device that received them, with their header and the work that offloads left.
//!
//! ```text
//! device ──> copy to the packet socket ──> gate: drop            ┌──> judged: dropped, or
//!                     └────────────────────────────────> router ─┴──> tap, marked ──> device, as if received
//! device <── the same frame, marked: the socket refuses it ──> gate: pass ──> kernel
//! ```
//!
//! At the gate:
//!
//! ```text
//! pass a frame with this router's mark, and clear the mark; pass one with another router's
//! pass a frame to another station, but for addresses of VRRP, and one that the machine has sent to itself
//! pass if the device is not in the map: the gate is open
//! pass a frame of a VLAN: it belongs to another device
//! drop if the device's number is CLOSED
//! drop packets that the kernel would take for the machine itself, and pass those that it would forward: the number is LOCAL
//! ```
//!
//! Links and the tap go with the process: after SIGKILL the kernel has all packets again, and no rule judges them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use fibula_bpf::kernel::{Link, Map, MapKind, Program, ProgramKind};

use super::assembler::{
    self, ADD_VALUE, AND_VALUE, Assembler, CALL, EXIT, JUMP, JUMP_DIFFERENT, JUMP_EQUAL, LOAD_WORD, LOOK_UP,
    Label, MOVE, MOVE_VALUE, PASS, SHIFT_RIGHT, SHOT, STACK, STORE_WORD, copy,
};
use super::netlink::{self, Event, Netlink};
use super::sys;
use crate::config::release;

/// The upper half of the marks of all routers.
const FAMILY: u32 = 0x4642;
// Of a negative mark, the comparison in the program would have the upper half of the register wrong.
const _: () = assert!(FAMILY != 0 && FAMILY < 1 << 15);
/// Most devices with a gate.
const DEVICES: u32 = 4096;
/// Values of a device in the map.
const CLOSED: u32 = 1;
const LOCAL: u32 = 2;

/// Helper: gives the frame to a device.
const REDIRECT: i32 = 23;
/// Flag of the helper: to the device's ingress.
const INGRESS: i32 = 1;
/// Fields of `struct __sk_buff`.
const KIND: i16 = 4;
const MARK: i16 = 8;
const PROTOCOL: i16 = 16;
const HAS_TAG: i16 = 20;
const TAG: i16 = 24;
const DEVICE: i16 = 40;
/// Kinds of frames from here on are not for this station, or were not received.
const OTHER_STATION: i32 = 3;

/// Largest MTU of a tap. Longer frames are those of several segments, to which it does not apply.
const MTU: usize = 65_521;
const IFF_TAP: i16 = 0x0002;
const IFF_NO_PI: i16 = 0x1000;

/// The frames that a packet socket receives of a device with a gate: instructions with their code, the jumps if they hold and if not, and a value.
pub type Sieve = &'static [(u16, u8, u8, u32)];

/// Places of facts about a frame, which socket filters load as if they were bytes.
const FACTS: u32 = 0xffff_f000;
const LOAD: u16 = 0x20;
const LOAD_OCTET: u16 = 0x30;
const SHIFT: u16 = 0x74;
const MASK: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ABOVE: u16 = 0x25;
const RETURN: u16 = 0x06;

/// All frames but those that come back from a router.
pub const WITHOUT_RETURNED: Sieve = &[
    (LOAD, 0, 0, FACTS + 20),
    (SHIFT, 0, 0, 16),
    (IF_EQUAL, 1, 0, FAMILY),
    (RETURN, 0, 0, u32::MAX),
    (RETURN, 0, 0, 0),
];

/// The frames that a closed gate drops.
pub const KEPT: Sieve = &[
    (LOAD, 0, 0, FACTS + 20),
    (SHIFT, 0, 0, 16),
    (IF_EQUAL, 13, 0, FAMILY),
    // The kind; of frames to another station, those to an address of VRRP.
    (LOAD, 0, 0, FACTS + 4),
    (IF_ABOVE, 11, 0, OTHER_STATION as u32),
    (IF_ABOVE, 0, 5, OTHER_STATION as u32 - 1),
    (LOAD, 0, 0, 0),
    (IF_EQUAL, 0, 8, 0x5e00),
    (LOAD_OCTET, 0, 0, 4),
    (IF_EQUAL, 6, 0, 0),
    (IF_ABOVE, 5, 0, 2),
    // Whether there is a tag, and its VLAN.
    (LOAD, 0, 0, FACTS + 48),
    (IF_EQUAL, 4, 0, 0),
    (LOAD, 0, 0, FACTS + 44),
    (MASK, 0, 0, 0xfff),
    (IF_EQUAL, 1, 0, 0),
    (RETURN, 0, 0, 0),
    (RETURN, 0, 0, u32::MAX),
];

/// The gate of a router, for all of its devices.
#[derive(Debug)]
pub struct Gate {
    program: Program,
    devices: Arc<Map>,
    /// The mark of frames that come back.
    own: u32,
    /// The number of the tap.
    tap: u32,
    _return: Link,
    _tap: File,
}

/// The gate at a device, for as long as this value lives. It is open at first.
#[derive(Debug)]
pub struct GateAt {
    devices: Arc<Map>,
    device: u32,
    _link: Link,
}

/// How far a gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateState {
    /// The kernel has all frames.
    Open,
    /// The kernel has only the packets that the router gives it.
    Closed,
    /// The kernel has the packets that it forwards, and of the rest only those that the router gives it.
    ClosedToMachine,
}

impl Gate {
    /// Loads the programs, and makes the tap. `addresses` are the machine's: those of the filter.
    ///
    /// # Errors
    /// Without CAP_BPF and CAP_NET_ADMIN, without /dev/net/tun, and on kernels before 6.6.
    pub(super) fn load(addresses: &Map) -> io::Result<Self> {
        // Other routers may be in this namespace, and one of them is perhaps about to be taken over.
        let own = FAMILY << 16 | std::process::id() & 0xffff;
        let devices = Map::create(MapKind::Hash, "fibula_gates", (4, 4), DEVICES)?;
        let code = program(addresses.as_fd().as_raw_fd(), devices.as_fd().as_raw_fd(), own);
        let program = Program::load(ProgramKind::Ingress, "fibula_gate", &code, &[])?;
        let back = Program::load(ProgramKind::Egress, "fibula_return", &way_back(own), &[])?;
        let name = format!("fibula{}", std::process::id());
        let (tap, number) = tap(&name)
            .map_err(|error| io::Error::new(error.kind(), format!("tap {name} by /dev/net/tun: {error}")))?;
        let link = back.attach(number, 0).map_err(without_tcx)?;
        Ok(Self { program, devices: Arc::new(devices), own, tap: number, _return: link, _tap: tap })
    }

    /// Attaches the gate to a device, by its number. It is open.
    ///
    /// # Errors
    /// When the device is gone, or has this gate.
    pub fn attach(&self, device: u32) -> io::Result<GateAt> {
        let link = self.program.attach(device, 0).map_err(without_tcx)?;
        Ok(GateAt { devices: Arc::clone(&self.devices), device, _link: link })
    }

    /// Runs the program once with a frame, as if the loopback device had received it with this mark. Returns whether the kernel has the
    /// frame, and with which mark. For tests.
    ///
    /// # Errors
    /// When the frame is shorter than a header.
    #[doc(hidden)]
    pub fn run(&self, state: GateState, frame: &[u8], mark: u32) -> io::Result<(bool, u32)> {
        GateAt::set_of(&self.devices, 1, state)?;
        // struct __sk_buff.
        let mut context = [0; 192];
        context[MARK as usize..][..4].copy_from_slice(&mark.to_ne_bytes());
        let verdict = self.program.run_in(frame, &mut context);
        let _ = GateAt::set_of(&self.devices, 1, GateState::Open);
        let word =
            |at: usize| u32::from_ne_bytes([context[at], context[at + 1], context[at + 2], context[at + 3]]);
        match verdict? as i32 {
            PASS => Ok((true, word(MARK as usize))),
            SHOT => Ok((false, word(MARK as usize))),
            other => Err(io::Error::other(format!("verdict {other}"))),
        }
    }

    /// Returns the mark of frames that this router gives back. For tests.
    #[doc(hidden)]
    #[must_use]
    pub const fn mark(&self) -> u32 {
        self.own
    }

    /// Opens a socket by which frames come back to the kernel, once [`set_device`] has said where.
    ///
    /// # Errors
    /// Without CAP_NET_RAW.
    pub fn way_back(&self) -> io::Result<OwnedFd> {
        const SOL_PACKET: i32 = 263;
        const PACKET_VNET_HDR: i32 = 15;
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        sys::set_number(socket.as_fd(), SOL_PACKET, PACKET_VNET_HDR, 1)?;
        // Without a protocol it receives nothing.
        sys::bind(socket.as_fd(), &sys::packet_address(0, self.tap))?;
        Ok(socket)
    }
}

/// Sets the device, by its number, to which a [way back](Gate::way_back) leads.
///
/// # Errors
/// Without CAP_NET_ADMIN.
pub fn set_device(way_back: BorrowedFd<'_>, device: u32) -> io::Result<()> {
    sys::set_number(way_back, libc::SOL_SOCKET, libc::SO_MARK, device as i32)
}

impl GateAt {
    /// Closes or opens the gate, which takes effect at once.
    ///
    /// # Errors
    /// When there are too many devices.
    pub fn set(&self, state: GateState) -> io::Result<()> {
        Self::set_of(&self.devices, self.device, state)
    }

    fn set_of(devices: &Map, device: u32, state: GateState) -> io::Result<()> {
        let key = device.to_ne_bytes();
        let number = match state {
            GateState::Open => {
                return match devices.delete(&key) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    done => done,
                };
            }
            GateState::Closed => CLOSED,
            GateState::ClosedToMachine => LOCAL,
        };
        devices.update(&key, &number.to_ne_bytes())
    }
}

impl Drop for GateAt {
    fn drop(&mut self) {
        // Another device may get the number.
        let _ = self.set(GateState::Open);
    }
}

fn without_tcx(error: io::Error) -> io::Error {
    match release::version() {
        Some(version) if version < release::TCX => {
            io::Error::new(io::ErrorKind::Unsupported, release::NO_GATE)
        }
        _ => error,
    }
}

/// Makes a tap that is up and has no addresses. Returns it with its number.
fn tap(name: &str) -> io::Result<(File, u32)> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    sys::set_tap(file.as_fd(), name, IFF_TAP | IFF_NO_PI)?;
    // So that the kernel gives it no address. Where the file is not there, there is no IPv6.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    let mut netlink = Netlink::open()?;
    let find = |netlink: &mut Netlink| -> io::Result<netlink::Link> {
        let mut found = None;
        netlink.dump(|event| match event {
            Event::Link(link) if link.name == name => found = Some(link),
            _ => {}
        })?;
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let link = find(&mut netlink)?;
    netlink.set_up(link.index, link.mac.unwrap_or_default(), MTU)?;
    match find(&mut netlink)? {
        link if link.is_enabled => Ok((file, link.index)),
        _ => Err(io::Error::other("the kernel did not set it up")),
    }
}

/// Assembles the gate. [`Label::Pass`] is where packets for the machine go, which do not pass here, so that the functions of the filter
/// find them.
fn program(addresses: i32, devices: i32, own: u32) -> Vec<u8> {
    let mut asm = Assembler::default();
    let be = |value: u16| i32::from(value.to_be());
    asm.put(MOVE, 6, 1, 0, 0);
    asm.put(LOAD_WORD, 2, 6, MARK, 0);
    asm.put(MOVE, 3, 2, 0, 0);
    asm.put(SHIFT_RIGHT, 3, 0, 0, 16);
    asm.jump(JUMP_DIFFERENT, 3, FAMILY as i32, Label::Kept);
    asm.jump(JUMP_DIFFERENT, 2, own as i32, Label::Take);
    asm.put(MOVE_VALUE, 2, 0, 0, 0);
    asm.put(STORE_WORD, 6, 2, MARK, 0);
    asm.jump(JUMP, 0, 0, Label::Take);

    asm.place(Label::Kept);
    asm.put(LOAD_WORD, 2, 6, KIND, 0);
    for kind in 0..OTHER_STATION {
        asm.jump(JUMP_EQUAL, 2, kind, Label::Station);
    }
    assembler::virtual_router(&mut asm, Label::Take);
    asm.place(Label::Station);
    asm.put(LOAD_WORD, 2, 6, DEVICE, 0);
    asm.put(STORE_WORD, STACK, 2, -20, 0);
    asm.map(1, devices);
    asm.put(MOVE, 2, STACK, 0, 0);
    asm.put(ADD_VALUE, 2, 0, 0, -20);
    asm.put(CALL, 0, 0, 0, LOOK_UP);
    asm.jump(JUMP_EQUAL, 0, 0, Label::Take);
    asm.put(LOAD_WORD, 7, 0, 0, 0);
    asm.put(LOAD_WORD, 2, 6, HAS_TAG, 0);
    asm.jump(JUMP_EQUAL, 2, 0, Label::Own);
    asm.put(LOAD_WORD, 2, 6, TAG, 0);
    asm.put(AND_VALUE, 2, 0, 0, 0xfff);
    asm.jump(JUMP_DIFFERENT, 2, 0, Label::Take);

    asm.place(Label::Own);
    asm.jump(JUMP_DIFFERENT, 7, LOCAL as i32, Label::Pass);
    // A group of stations has it, so the kernel does not forward it.
    asm.put(LOAD_WORD, 2, 6, KIND, 0);
    for kind in 1..OTHER_STATION {
        asm.jump(JUMP_EQUAL, 2, kind, Label::Pass);
    }
    asm.put(LOAD_WORD, 2, 6, PROTOCOL, 0);
    asm.jump(JUMP_EQUAL, 2, be(0x0800), Label::V4);
    asm.jump(JUMP_EQUAL, 2, be(0x86dd), Label::V6);
    asm.jump(JUMP, 0, 0, Label::Pass);
    asm.place(Label::V4);
    assembler::mapped(&mut asm);
    copy(&mut asm, 14 + 16, -4, 4);
    assembler::scope_v4(&mut asm);
    asm.place(Label::V6);
    copy(&mut asm, 14 + 24, -16, 16);
    assembler::scope_v6(&mut asm);
    assembler::find(&mut asm, addresses);

    asm.place(Label::Take);
    asm.put(MOVE_VALUE, 0, 0, 0, PASS);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.place(Label::Pass);
    asm.put(MOVE_VALUE, 0, 0, 0, SHOT);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.finish()
}

/// Assembles the program at the tap's egress: a frame goes to the device that its mark names, and one without a mark is the kernel's own.
fn way_back(own: u32) -> Vec<u8> {
    let mut asm = Assembler::default();
    asm.put(MOVE, 6, 1, 0, 0);
    asm.put(LOAD_WORD, 7, 6, MARK, 0);
    asm.jump(JUMP_EQUAL, 7, 0, Label::Pass);
    asm.put(MOVE_VALUE, 2, 0, 0, own as i32);
    asm.put(STORE_WORD, 6, 2, MARK, 0);
    asm.put(MOVE, 1, 7, 0, 0);
    asm.put(MOVE_VALUE, 2, 0, 0, INGRESS);
    asm.put(CALL, 0, 0, 0, REDIRECT);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.place(Label::Pass);
    asm.put(MOVE_VALUE, 0, 0, 0, SHOT);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_leads_forward_into_the_program() {
        assembler::check(&program(5, 6, FAMILY << 16));
        assembler::check(&way_back(FAMILY << 16));
    }

    /// Runs a filter of sockets over facts about a frame: mark, kind, whether it has a tag, the tag, and its destination.
    fn passes(sieve: Sieve, facts: [u32; 4], mac: [u8; 6]) -> bool {
        let (mut at, mut value) = (0, 0u32);
        loop {
            let (code, holds, fails, operand) = sieve[at];
            at += 1;
            let jump = |condition| usize::from(if condition { holds } else { fails });
            match code {
                LOAD if operand == 0 => value = u32::from_be_bytes([mac[0], mac[1], mac[2], mac[3]]),
                LOAD_OCTET => value = mac[operand as usize].into(),
                LOAD => {
                    value = match operand.wrapping_sub(FACTS) {
                        20 => facts[0],
                        4 => facts[1],
                        48 => facts[2],
                        44 => facts[3],
                        other => panic!("fact {other}"),
                    };
                }
                SHIFT => value >>= operand,
                MASK => value &= operand,
                IF_EQUAL => at += jump(value == operand),
                IF_ABOVE => at += jump(value > operand),
                RETURN => return operand != 0,
                other => panic!("code {other}"),
            }
        }
    }

    #[test]
    fn sockets_have_each_frame_once() {
        let own = FAMILY << 16 | 7;
        for kind in 0..6 {
            for mark in [0, 1, own, own + 1, own >> 1] {
                let returned = mark == own || mark == own + 1;
                assert_eq!(passes(WITHOUT_RETURNED, [mark, kind, 0, 0], [0; 6]), !returned);
                for (has_tag, tag, is_own) in
                    [(0, 0, true), (0, 7, true), (1, 0, true), (1, 0x6000, true), (1, 0x6007, false)]
                {
                    for (fourth, fifth) in [(0x5e, 0), (0x5e, 1), (0x5e, 2), (0x5e, 3), (0x5f, 1)] {
                        let mac = [0, 0, fourth, 0, fifth, 51];
                        let is_virtual = fourth == 0x5e && [1, 2].contains(&fifth);
                        let kept = (kind < 3 || kind == 3 && is_virtual) && is_own && !returned;
                        let facts = [mark, kind, has_tag, tag];
                        assert_eq!(passes(KEPT, facts, mac), kept, "{facts:x?} {mac:x?}");
                    }
                }
            }
        }
    }
}
