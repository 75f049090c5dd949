//! The filter that keeps the kernel from forwarding the router's packets a second time.
//!
//! A packet socket gets a copy of every frame, and the kernel keeps the original. If the kernel forwards too, every packet leaves
//! twice. This program is attached to the device's ingress (TCX), which frames reach after they were copied. It drops IPv4 and
//! IPv6 packets to unicast addresses other than the machine's. ARP, neighbour discovery, multicast, link-local and other
//! EtherTypes pass. The program is attached by a link, which the kernel removes with the process: even after SIGKILL, the kernel
//! forwards as before.
//!
//! To attach a program takes the kernel milliseconds. So the program of a device passes everything until it is switched on, which
//! takes effect at once, and so does switching it off.
//!
//! ```text
//! if the frame is neither for this station nor for an address of VRRP, which a macvlan of keepalived may have: pass
//! key = number of the device and destination, an IPv4 address as ::ffff:a.b.c.d
//! IPv4: pass if multicast, reserved, 0/8, 127/8 or 169.254/16
//! IPv6: pass if multicast or link-local
//! anything else: pass
//! pass if the key is among the machine's addresses
//! drop if the device is switched on: its number is a key with the address of all ones, which is no station's; else pass
//!
//! An address is the machine's only towards devices of its own VRF.
//! ```
//!
//! The instructions are assembled here, so there is no compiler to install and nothing to load from a file.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use fibula_bpf::kernel::{Link, Map, MapKind, Program, ProgramKind};

use super::assembler::{
    self, Assembler, EXIT, JUMP, JUMP_EQUAL, LOAD_WORD, Label, MOVE, MOVE_VALUE, PASS, SHOT, STACK,
    STORE_DOUBLE_VALUE, STORE_WORD, copy,
};
use super::fast::{Fast, FastProgram};
use super::gate::Gate;
use crate::config::release;

/// Flags of a link of XDP: in the kernel's own code, and in the driver.
const XDP_GENERIC: u32 = 2;
const XDP_DRIVER: u32 = 4;
/// Most queues of a device.
const QUEUES: u32 = 1024;
/// Most addresses of a machine.
const ADDRESSES: u32 = 16_384;

/// One filter for all devices; they share the list of addresses.
#[derive(Debug)]
pub struct Filter {
    addresses: Arc<Map>,
    program: Program,
    present: Vec<[u8; 20]>,
    everything: bool,
}

/// A device whose frames go through the filter, as long as this value lives. All pass until it is switched on.
#[derive(Debug)]
pub struct Attached {
    addresses: Arc<Map>,
    device: u32,
    _link: Link,
}

/// A device whose frames a program gives to AF_XDP sockets, as long as this value lives.
#[derive(Debug)]
pub struct Redirected {
    link: Link,
}

/// A program that gives the frames of a device to AF_XDP sockets.
#[derive(Debug)]
pub struct Redirect {
    program: RedirectProgram,
    sockets: Map,
}

/// The program of a device with AF_XDP sockets.
#[derive(Debug)]
enum RedirectProgram {
    /// The sockets have all that the kernel has not.
    Plain(Program),
    /// The program itself forwards plain packets.
    Fast(FastProgram),
}

impl RedirectProgram {
    const fn program(&self) -> &Program {
        match self {
            Self::Plain(program) => program,
            Self::Fast(fast) => &fast.program,
        }
    }
}

impl Filter {
    /// Loads the program, with an empty list of addresses.
    ///
    /// # Errors
    /// Without the capabilities CAP_BPF and CAP_NET_ADMIN, and on kernels before 6.6.
    pub fn load() -> io::Result<Self> {
        Self::assembled("fibula_transit", program, false)
    }

    /// Loads a program that keeps every frame from the kernel: for a bridge.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    pub fn load_everything() -> io::Result<Self> {
        Self::assembled("fibula_bridge", everything, true)
    }

    fn assembled(name: &str, code: fn(i32) -> Vec<u8>, everything: bool) -> io::Result<Self> {
        let addresses = Map::create(MapKind::Hash, "fibula_own", (20, 4), ADDRESSES)?;
        let code = code(addresses.as_fd().as_raw_fd());
        let program = Program::load(ProgramKind::Ingress, name, &code, &[])?;
        Ok(Self { addresses: Arc::new(addresses), program, present: Vec::new(), everything })
    }

    /// Loads the gate of packets for the machine.
    ///
    /// # Errors
    /// Without the capabilities CAP_BPF and CAP_NET_ADMIN, without /dev/net/tun, and on kernels before 6.6.
    pub fn gate(&self) -> io::Result<Gate> {
        Gate::load(&self.addresses)
    }

    /// Attaches the filter to a device, by its number. It is switched off.
    ///
    /// # Errors
    /// When the device is gone, or the kernel knows no TCX.
    pub fn attach(&self, device: u32) -> io::Result<Attached> {
        let link = self.program.attach(device, 0).map_err(|error| match release::version() {
            Some(version) if version < release::TCX => {
                io::Error::new(io::ErrorKind::Unsupported, release::NO_TCX)
            }
            _ => error,
        })?;
        Ok(Attached { addresses: Arc::clone(&self.addresses), device, _link: link })
    }

    /// Loads a program that gives the frames of a device to AF_XDP sockets. It passes the same frames to the kernel as the filter.
    /// With `tagged`, it gives frames with a VLAN tag to the sockets.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    pub fn redirect(&self, tagged: bool) -> io::Result<Redirect> {
        let sockets = Map::create(MapKind::Sockets, "fibula_sockets", (4, 4), QUEUES)?;
        let fd = sockets.as_fd().as_raw_fd();
        let code = match self.everything {
            true => super::redirect::everything(fd),
            false => super::redirect::program(self.addresses.as_fd().as_raw_fd(), fd, tagged),
        };
        let program = Program::load(ProgramKind::Xdp, "fibula_sockets", &code, &[])?;
        Ok(Redirect { program: RedirectProgram::Plain(program), sockets })
    }

    /// Loads a program that forwards plain packets, and leaves the rest as that of [`redirect`](Self::redirect).
    ///
    /// # Errors
    /// See [`load`](Self::load), and on kernels that are too old for it.
    pub fn redirect_fast(&self, fast: &mut Fast, port: usize, tagged: bool) -> io::Result<Redirect> {
        let sockets = Map::create(MapKind::Sockets, "fibula_sockets", (4, 4), QUEUES)?;
        let program = RedirectProgram::Fast(fast.program(port, tagged, &self.addresses, &sockets)?);
        Ok(Redirect { program, sockets })
    }

    /// Sets the machine's addresses, each towards one device. New addresses are added before old ones are removed.
    ///
    /// # Errors
    /// When there are too many. The old ones stay then.
    pub fn set_addresses(&mut self, addresses: impl IntoIterator<Item = (u32, IpAddr)>) -> io::Result<()> {
        let mut wanted: Vec<[u8; 20]> = addresses.into_iter().map(key).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let new: Vec<_> = wanted.iter().filter(|key| !self.present.contains(key)).collect();
        for (count, key) in new.iter().enumerate() {
            if let Err(error) = self.addresses.update(&key[..], &[1, 0, 0, 0]) {
                for key in &new[..count] {
                    let _ = self.addresses.delete(&key[..]);
                }
                return Err(error);
            }
        }
        for key in self.present.iter().filter(|key| wanted.binary_search(key).is_err()) {
            self.addresses.delete(key)?;
        }
        self.present = wanted;
        Ok(())
    }
}

impl Attached {
    /// Switches the filter on: the kernel has no more packets to forward. Or switches it off: the kernel has them all again. Both
    /// take effect at once.
    ///
    /// # Errors
    /// When the machine has too many addresses.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        let key = switch(self.device);
        if on {
            return self.addresses.update(&key, &[1, 0, 0, 0]);
        }
        match self.addresses.delete(&key) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Another device may get the number. If this fails, that device's frames are dropped until the router has it, as they
        // would be then.
        let _ = self.switch(false);
    }
}

impl AsFd for Redirected {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl Redirect {
    /// Sets the sockets, by the number of their queue. The kernel takes a socket out when it is closed.
    ///
    /// # Errors
    /// When a queue has too high a number, or a socket is not bound.
    pub fn set_sockets(&self, sockets: &[(u32, RawFd)]) -> io::Result<()> {
        let set =
            |(queue, socket): &(u32, RawFd)| self.sockets.update(&queue.to_ne_bytes(), &socket.to_ne_bytes());
        sockets.iter().try_for_each(set)
    }

    /// Gives no frames to the sockets any more. The kernel has them.
    pub fn clear(&self) {
        // A queue without a socket is no entry.
        (0..QUEUES).for_each(|queue| _ = self.sockets.delete(&queue.to_ne_bytes()));
    }

    /// Runs the program once with a frame, as if the loopback device had received it, and the program were in the kernel's own code. Returns
    /// its verdict and the frame as it left it. For tests.
    ///
    /// # Errors
    /// When the frame is shorter than a header.
    #[doc(hidden)]
    pub fn run(&self, frame: &[u8], most: usize) -> io::Result<(u32, Vec<u8>)> {
        if let RedirectProgram::Fast(fast) = &self.program {
            fast.set_native(false);
        }
        self.program.program().run(frame, most)
    }

    /// Attaches the program to a device, given by its number.
    ///
    /// # Errors
    /// When the device is gone, or cannot have such a program in this mode.
    pub fn attach(&self, device: u32, native: bool) -> io::Result<Redirected> {
        if let RedirectProgram::Fast(fast) = &self.program {
            fast.set_native(native);
        }
        let flags = if native { XDP_DRIVER } else { XDP_GENERIC };
        self.program.program().attach(device, flags).map(|link| Redirected { link })
    }

    /// Takes the place of the program of another router, whose link to this device it is: each frame goes through one of the two.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn replace(&self, link: OwnedFd, device: u32) -> io::Result<Redirected> {
        if let RedirectProgram::Fast(fast) = &self.program {
            fast.set_as_at(device);
        }
        let link = Link::inherited(link);
        link.replace(self.program.program())?;
        Ok(Redirected { link })
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

/// Returns the key that is there while the filter of a device is switched on.
fn switch(device: u32) -> [u8; 20] {
    let mut key = [0xff; 20];
    key[..4].copy_from_slice(&device.to_ne_bytes());
    key
}

/// Assembles the program. The context is a `struct __sk_buff`; the key is on the stack, 20 bytes below its top.
fn program(addresses: i32) -> Vec<u8> {
    let mut asm = Assembler::default();
    let be = |value: u16| i32::from(value.to_be());
    asm.put(MOVE, 6, 1, 0, 0);
    // pkt_type: PACKET_HOST is 0.
    asm.put(LOAD_WORD, 2, 6, 4, 0);
    asm.jump(JUMP_EQUAL, 2, 0, Label::Station);
    // A macvlan would take it, and the kernel would forward it.
    assembler::virtual_router(&mut asm, Label::Pass);
    asm.place(Label::Station);
    // ifindex.
    asm.put(LOAD_WORD, 2, 6, 40, 0);
    asm.put(STORE_WORD, STACK, 2, -20, 0);
    // protocol, in network order.
    asm.put(LOAD_WORD, 2, 6, 16, 0);
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
    drop_if_on(&mut asm, addresses);
    asm.finish()
}

/// Ends with a drop if the device, which is at the bottom of the key on the stack, is switched on; else the frame passes.
fn drop_if_on(asm: &mut Assembler, addresses: i32) {
    asm.put(STORE_DOUBLE_VALUE, STACK, 0, -16, -1);
    asm.put(STORE_DOUBLE_VALUE, STACK, 0, -8, -1);
    assembler::look_up(asm, addresses);
    asm.jump(JUMP_EQUAL, 0, 0, Label::Pass);
    asm.put(MOVE_VALUE, 0, 0, 0, SHOT);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.place(Label::Pass);
    asm.put(MOVE_VALUE, 0, 0, 0, PASS);
    asm.put(EXIT, 0, 0, 0, 0);
}

/// Assembles a program that drops everything. For a bridge, because the kernel must not handle its frames.
fn everything(addresses: i32) -> Vec<u8> {
    let mut asm = Assembler::default();
    // ifindex.
    asm.put(LOAD_WORD, 2, 1, 40, 0);
    asm.put(STORE_WORD, STACK, 2, -20, 0);
    drop_if_on(&mut asm, addresses);
    asm.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::assembler;

    #[test]
    fn every_jump_leads_forward_into_the_program() {
        assembler::check(&program(5));
        assert_eq!(program(5).len() / 8, 69, "docs/adr/0014-router.md says how many there are");
        assembler::check(&everything(5));
    }
}
