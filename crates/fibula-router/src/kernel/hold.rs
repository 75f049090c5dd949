//! Keeps two routers from one device: each that has it would forward every packet.
//!
//! A router listens at an abstract socket whose name is the number of the device. Such names belong to the network namespace, as
//! the numbers of devices do, and go with the process, however it ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::sys;

/// A device that is this router's, as long as this value lives.
#[derive(Debug)]
pub struct Hold {
    device: u32,
    listener: Option<UnixListener>,
}

impl Hold {
    /// Takes a device, given by its number.
    ///
    /// # Errors
    /// When another router has it. A process that cannot be one, as it may not configure the network, is passed over.
    pub fn take(device: u32) -> io::Result<Self> {
        let name = format!("fibula-router-device-{device}");
        let address = SocketAddr::from_abstract_name(name)?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Self { device, listener: Some(listener) }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => match holder(&address) {
                Some(process) => Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    format!("another router, process {process}, has the device"),
                )),
                // It ended just now, or is some account's that may not keep the router from its devices.
                None => Ok(Self { device, listener: UnixListener::bind_addr(&address).ok() }),
            },
            Err(error) => Err(error),
        }
    }

    /// Has the device of another router, which gave this descriptor.
    #[must_use]
    pub fn inherited(device: u32, listener: OwnedFd) -> Self {
        let listener = UnixListener::from(listener);
        // From here on the kernel names this process to others that want the device. If it does not, they are refused all the same.
        let _ = rustix::net::listen(&listener, 1);
        Self { device, listener: Some(listener) }
    }

    /// Returns the descriptor of the device, and its number.
    #[must_use]
    pub fn descriptor(&self) -> Option<(u32, BorrowedFd<'_>)> {
        Some((self.device, self.listener.as_ref()?.as_fd()))
    }

    /// Returns whether the device is the one with this number.
    #[must_use]
    pub const fn is_of(&self, device: u32) -> bool {
        self.device == device
    }
}

/// Returns the process that listens at an address, if it may be a router: it is of this account, or may configure the network.
fn holder(address: &SocketAddr) -> Option<u32> {
    let stream = UnixStream::connect_addr(address).ok()?;
    // struct ucred: process, user, group.
    let mut credentials = [0; 12];
    sys::option(stream.as_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, &mut credentials).ok()?;
    let [process, user, _] = [0, 4, 8].map(|at| {
        u32::from_ne_bytes([credentials[at], credentials[at + 1], credentials[at + 2], credentials[at + 3]])
    });
    (user == sys::user() || may_configure(process)).then_some(process)
}

/// Returns whether a process has the capability that a router needs.
fn may_configure(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    let permitted = permitted.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    permitted.is_some_and(|mask| mask & sys::NET_ADMIN != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_one_router_and_is_free_after_it() {
        // No device has this number.
        let device = u32::MAX - std::process::id();
        let held = Hold::take(device).unwrap();
        let error = Hold::take(device).unwrap_err();
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        assert!(Hold::take(device - 1).is_ok());
        drop(held);
        assert!(Hold::take(device).is_ok());
    }
}
