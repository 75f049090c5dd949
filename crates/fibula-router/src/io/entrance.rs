//! The way of judged frames back to the kernel, for devices with a [gate].
//!
//! Each frame costs a system call, which copies it. A ring would not do: the kernel gives a slot back when the frame has reached a
//! socket, and not when it has been read.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::kernel::gate::{self, Gate};
use crate::kernel::sys;
use crate::packet::ethernet::{MAX_HEADER, VLAN};

use super::Received;
use super::packet::{VNET, vnet};

/// The way of one thread to the kernel's side of one device.
#[derive(Debug)]
pub struct WayBack {
    fd: OwnedFd,
    frame: Vec<u8>,
}

/// The socket of an [`WayBack`], for the thread that follows devices.
#[derive(Debug)]
pub struct EntranceSocket(OwnedFd);

impl EntranceSocket {
    /// Sets the device, by its number. Until then, no frame arrives.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN.
    pub fn move_to(&self, device: u32) -> io::Result<()> {
        gate::set_device(self.0.as_fd(), device)
    }
}

impl WayBack {
    /// Opens a way that leads nowhere before [`EntranceSocket::move_to`].
    ///
    /// # Errors
    /// Without CAP_NET_RAW, and when the process has no more descriptors.
    pub fn open(gate: &Gate) -> io::Result<(Self, EntranceSocket)> {
        let fd = gate.way_back()?;
        let socket = EntranceSocket(fd.try_clone()?);
        Ok((Self { fd, frame: Vec::new() }, socket))
    }

    /// Gives a frame to the kernel, as if the device had received it. Returns `false` if there is no room.
    fn give(&mut self, frame: &Received<'_>) -> bool {
        // The tag that the kernel took out is that of no VLAN, which it would leave out of account too.
        let link = if frame.bytes.get(12..14) == Some(&VLAN.to_be_bytes()) { MAX_HEADER } else { 14 };
        self.frame.clear();
        self.frame.extend_from_slice(&vnet(&frame.offload, link as u16));
        self.frame.extend_from_slice(frame.bytes);
        let sent = sys::send(self.fd.as_fd(), &self.frame, libc::MSG_DONTWAIT);
        sent.is_ok_and(|sent| sent + VNET >= self.frame.len())
    }
}

/// The ways of one thread, by port.
#[derive(Debug, Default)]
pub struct Entrances(Vec<Option<WayBack>>);

impl Entrances {
    /// Sets or removes the way of a port.
    pub fn set(&mut self, port: usize, entrance: Option<WayBack>) {
        if self.0.len() <= port {
            self.0.resize_with(port + 1, || None);
        }
        self.0[port] = entrance;
    }

    /// Returns the ways that are set.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = WayBack> {
        self.0.into_iter().flatten()
    }

    /// Gives a frame of a port to the kernel. Returns whether there was room, or `None` if the kernel has the frame in any case: no
    /// gate keeps it from the kernel, or it is one of a VLAN.
    pub(crate) fn give(&mut self, port: usize, frame: &Received<'_>) -> Option<bool> {
        let entrance = self.0.get_mut(port)?.as_mut()?;
        let header = crate::packet::ethernet::parse(frame.bytes, frame.tag).ok()?;
        header.tags.is_none().then(|| entrance.give(frame))
    }
}
