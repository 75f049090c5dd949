//! The filter that keeps the kernel from forwarding what the router forwards.
//!
//! A packet socket gets a copy of every frame; the kernel goes on with the original, and if it forwards too, every packet leaves
//! twice. This program is attached the device's ingress (TCX), which frames reach after they were copied, and drops IPv4 and IPv6 packets
//! to single addresses that are not the machine's. ARP, neighbour discovery, multicast, link-local and other EtherTypes
//! pass. It is attached by a link, which goes with the process: even SIGKILL leaves the kernel forwarding as it did before.
//!
//! ```text
//! if the frame is not for this station: pass
//! key = number of the device and destination, an IPv4 address as ::ffff:a.b.c.d
//! IPv4: pass if multicast, reserved, 0/8, 127/8 or 169.254/16
//! IPv6: pass if multicast or link-local
//! anything else: pass
//! pass if the key is among the machine's addresses; else drop
//!
//! An address is the machine's only towards devices of its own VRF.
//! ```
//!
//! The instructions are assembled here, so there is no compiler to install and nothing to load from a file.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::sys;

const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const MAP_TYPE_HASH: u32 = 1;
const PROGRAM_TYPE_SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
/// Most addresses of a machine.
const ADDRESSES: u32 = 16_384;

/// Goes on to the next program, or to the kernel.
const PASS: i32 = -1;
/// Drops the frame.
const SHOT: i32 = 2;

/// One filter for all devices; they share the list of addresses.
#[derive(Debug)]
pub struct Filter {
    addresses: OwnedFd,
    program: OwnedFd,
    present: Vec<[u8; 20]>,
}

/// A device whose frames are filtered, as long as this value lives.
#[derive(Debug)]
pub struct Attached {
    _link: OwnedFd,
}

impl Filter {
    /// Loads the program, with an empty list of addresses.
    ///
    /// # Errors
    /// Without the capabilities CAP_BPF and CAP_NET_ADMIN, and on kernels before 6.6.
    pub fn load() -> io::Result<Self> {
        let mut attributes = [0; 128];
        for (at, value) in [(0, MAP_TYPE_HASH), (4, 20), (8, 4), (12, ADDRESSES)] {
            attributes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let addresses = sys::bpf_fd(MAP_CREATE, &mut attributes)?;
        let code = program(addresses.as_raw_fd());
        let license = b"Dual MIT/GPL\0";
        let mut attributes = [0; 128];
        attributes[..4].copy_from_slice(&PROGRAM_TYPE_SCHED_CLS.to_ne_bytes());
        attributes[4..8].copy_from_slice(&((code.len() / 8) as u32).to_ne_bytes());
        attributes[8..16].copy_from_slice(&sys::pointer(&code));
        attributes[16..24].copy_from_slice(&sys::pointer(license));
        attributes[48..62].copy_from_slice(b"fibula_transit");
        attributes[68..72].copy_from_slice(&TCX_INGRESS.to_ne_bytes());
        let program = sys::bpf_fd(PROGRAM_LOAD, &mut attributes)?;
        Ok(Self { addresses, program, present: Vec::new() })
    }

    /// Attaches the filter to a device, by its number.
    ///
    /// # Errors
    /// When the device is gone, or the kernel knows no TCX.
    pub fn attach(&self, device: u32) -> io::Result<Attached> {
        let mut attributes = [0; 64];
        attributes[..4].copy_from_slice(&(self.program.as_raw_fd() as u32).to_ne_bytes());
        attributes[4..8].copy_from_slice(&device.to_ne_bytes());
        attributes[8..12].copy_from_slice(&TCX_INGRESS.to_ne_bytes());
        sys::bpf_fd(LINK_CREATE, &mut attributes).map(|link| Attached { _link: link })
    }

    /// Makes these the machine's addresses, each towards one device. New ones are added before old ones are removed.
    ///
    /// # Errors
    /// When there are too many.
    pub fn set_addresses(&mut self, addresses: impl IntoIterator<Item = (u32, IpAddr)>) -> io::Result<()> {
        let mut wanted: Vec<[u8; 20]> = addresses.into_iter().map(key).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for key in wanted.iter().filter(|key| !self.present.contains(key)) {
            self.element(MAP_UPDATE, key)?;
        }
        for key in self.present.iter().filter(|key| wanted.binary_search(key).is_err()) {
            self.element(MAP_DELETE, key)?;
        }
        self.present = wanted;
        Ok(())
    }

    fn element(&self, command: i32, key: &[u8; 20]) -> io::Result<()> {
        let value = [1u8, 0, 0, 0];
        let mut attributes = [0; 32];
        attributes[..4].copy_from_slice(&(self.addresses.as_fd().as_raw_fd() as u32).to_ne_bytes());
        attributes[8..16].copy_from_slice(&sys::pointer(key));
        if command == MAP_UPDATE {
            attributes[16..24].copy_from_slice(&sys::pointer(&value));
        }
        sys::bpf(command, &mut attributes).map(drop)
    }
}

fn key((device, address): (u32, IpAddr)) -> [u8; 20] {
    let octets = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut key = [0; 20];
    key[..4].copy_from_slice(&device.to_ne_bytes());
    key[4..].copy_from_slice(&octets);
    key
}

/// Where a jump leads to.
#[derive(Clone, Copy, PartialEq)]
enum Label {
    V4,
    V6,
    Find,
    Pass,
}

/// Instructions, with jumps to labels that are not placed yet.
#[derive(Default)]
struct Assembler {
    code: Vec<[u8; 8]>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        let [a, b] = offset.to_ne_bytes();
        let [c, d, e, f] = value.to_ne_bytes();
        self.code.push([code, registers, a, b, c, d, e, f]);
    }

    fn jump(&mut self, code: u8, register: u8, value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(code, register, 0, 0, value);
    }

    fn place(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    fn finish(mut self) -> Vec<u8> {
        for &(at, label) in &self.jumps {
            let target =
                self.labels.iter().find(|placed| placed.0 == label).map_or(at + 1, |placed| placed.1);
            let offset = (target - at - 1) as i16;
            self.code[at][2..4].copy_from_slice(&offset.to_ne_bytes());
        }
        self.code.concat()
    }
}

const MOVE: u8 = 0xbf;
const MOVE_VALUE: u8 = 0xb7;
const ADD_VALUE: u8 = 0x07;
const AND_VALUE: u8 = 0x57;
const LOAD_WORD: u8 = 0x61;
const LOAD_BYTE: u8 = 0x71;
const STORE_WORD: u8 = 0x63;
const STORE_WORD_VALUE: u8 = 0x62;
const STORE_DOUBLE_VALUE: u8 = 0x7a;
const LOAD_MAP: u8 = 0x18;
const JUMP: u8 = 0x05;
const JUMP_EQUAL: u8 = 0x15;
const JUMP_AT_LEAST: u8 = 0x35;
const JUMP_DIFFERENT: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOOK_UP: i32 = 1;
const LOAD_BYTES: i32 = 26;
/// Register of the stack.
const STACK: u8 = 10;

/// Assembles the program. The context is a `struct __sk_buff`; the key is on the stack, 20 bytes below its top.
fn program(addresses: i32) -> Vec<u8> {
    let mut asm = Assembler::default();
    let be = |value: u16| i32::from(value.to_be());
    asm.put(MOVE, 6, 1, 0, 0);
    // pkt_type: PACKET_HOST is 0.
    asm.put(LOAD_WORD, 2, 6, 4, 0);
    asm.jump(JUMP_DIFFERENT, 2, 0, Label::Pass);
    // ifindex.
    asm.put(LOAD_WORD, 2, 6, 40, 0);
    asm.put(STORE_WORD, STACK, 2, -20, 0);
    // protocol, in network order.
    asm.put(LOAD_WORD, 2, 6, 16, 0);
    asm.jump(JUMP_EQUAL, 2, be(0x0800), Label::V4);
    asm.jump(JUMP_EQUAL, 2, be(0x86dd), Label::V6);
    asm.jump(JUMP, 0, 0, Label::Pass);

    asm.place(Label::V4);
    asm.put(STORE_DOUBLE_VALUE, STACK, 0, -16, 0);
    asm.put(STORE_WORD_VALUE, STACK, 0, -8, u32::from_ne_bytes([0, 0, 0xff, 0xff]) as i32);
    load(&mut asm, 14 + 16, -4, 4);
    asm.put(LOAD_BYTE, 2, STACK, -4, 0);
    asm.jump(JUMP_AT_LEAST, 2, 224, Label::Pass);
    asm.jump(JUMP_EQUAL, 2, 0, Label::Pass);
    asm.jump(JUMP_EQUAL, 2, 127, Label::Pass);
    asm.jump(JUMP_DIFFERENT, 2, 169, Label::Find);
    asm.put(LOAD_BYTE, 2, STACK, -3, 0);
    asm.jump(JUMP_EQUAL, 2, 254, Label::Pass);
    asm.jump(JUMP, 0, 0, Label::Find);

    asm.place(Label::V6);
    load(&mut asm, 14 + 24, -16, 16);
    asm.put(LOAD_BYTE, 2, STACK, -16, 0);
    asm.jump(JUMP_EQUAL, 2, 0xff, Label::Pass);
    asm.jump(JUMP_DIFFERENT, 2, 0xfe, Label::Find);
    asm.put(LOAD_BYTE, 2, STACK, -15, 0);
    asm.put(AND_VALUE, 2, 0, 0, 0xc0);
    asm.jump(JUMP_EQUAL, 2, 0x80, Label::Pass);

    asm.place(Label::Find);
    asm.put(LOAD_MAP, 1, 1, 0, addresses);
    asm.put(0, 0, 0, 0, 0);
    asm.put(MOVE, 2, STACK, 0, 0);
    asm.put(ADD_VALUE, 2, 0, 0, -20);
    asm.put(CALL, 0, 0, 0, LOOK_UP);
    asm.jump(JUMP_DIFFERENT, 0, 0, Label::Pass);
    asm.put(MOVE_VALUE, 0, 0, 0, SHOT);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.place(Label::Pass);
    asm.put(MOVE_VALUE, 0, 0, 0, PASS);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.finish()
}

/// Copies bytes of the frame to the stack; a frame that has none there passes.
fn load(asm: &mut Assembler, offset: i32, stack: i32, len: i32) {
    asm.put(MOVE, 1, 6, 0, 0);
    asm.put(MOVE_VALUE, 2, 0, 0, offset);
    asm.put(MOVE, 3, STACK, 0, 0);
    asm.put(ADD_VALUE, 3, 0, 0, stack);
    asm.put(MOVE_VALUE, 4, 0, 0, len);
    asm.put(CALL, 0, 0, 0, LOAD_BYTES);
    asm.jump(JUMP_DIFFERENT, 0, 0, Label::Pass);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_leads_forward_into_the_program() {
        let code = program(5);
        assert_eq!(code.len() % 8, 0);
        let count = code.len() / 8;
        for (index, instruction) in code.chunks(8).enumerate() {
            if matches!(instruction[0], JUMP | JUMP_EQUAL | JUMP_AT_LEAST | JUMP_DIFFERENT) {
                let offset = i16::from_ne_bytes([instruction[2], instruction[3]]);
                assert!(offset >= 0 && index + 1 + (offset as usize) < count, "instruction {index}");
            }
        }
        assert_eq!(code[code.len() - 8], EXIT);
    }
}
