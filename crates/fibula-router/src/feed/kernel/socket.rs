//! The follower's connection to the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Follower;
use crate::feed::enter::Entrance;
use crate::feed::routes::Routes;
use crate::feed::state::Phase;
use crate::feed::{Rib, lock};
use crate::kernel::sys;

/// Links, addresses, routes and rules of both families, next-hop objects: the groups of `rtnetlink.h`, as bits.
const GROUPS: u32 = 1 | 1 << 4 | 1 << 8 | 1 << 6 | 1 << 10 | 1 << 7 | 1 << 18 | 1 << 31;
/// Level and name of the option that makes the kernel apply the filters of a request.
const SOL_NETLINK: i32 = 270;
const STRICT: i32 = 12;
const BUFFER: i32 = 16 << 20;
/// How long to wait for input.
const TURN_MS: i32 = 20;
const TICK_NS: u64 = 100_000_000;
/// Datagrams that are entered at once.
const DATAGRAMS: usize = 16;

/// A feed of the kernel's routes.
#[derive(Debug)]
pub struct Kernel {
    fd: OwnedFd,
    follower: Follower,
    buffer: Box<[u8]>,
    next_tick_ns: u64,
}

impl Kernel {
    /// Opens a connection that receives notices of changes.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn open(entrance: Entrance) -> io::Result<Self> {
        Self::hearing(GROUPS, entrance)
    }

    fn hearing(groups: u32, entrance: Entrance) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        let fd = sys::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)?;
        let mut address = [0; 12];
        address[..2].copy_from_slice(&(libc::AF_NETLINK as u16).to_ne_bytes());
        address[8..12].copy_from_slice(&groups.to_ne_bytes());
        sys::bind(fd.as_fd(), &address)?;
        sys::set_number(fd.as_fd(), SOL_NETLINK, STRICT, 1)?;
        // Make room for bursts. Without the capability, the default must suffice.
        let _ = sys::set_number(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER);
        let buffer = vec![0; 1 << 16].into_boxed_slice();
        Ok(Self { fd, follower: Follower::new(entrance), buffer, next_tick_ns: 0 })
    }

    /// Waits for input, and handles it.
    ///
    /// # Errors
    /// When the connection has failed.
    pub fn turn(&mut self, rib: &Mutex<Rib>) -> io::Result<()> {
        // A signal may end the wait early, which does no harm.
        let _ = sys::poll(&mut [sys::readable(&self.fd)], TURN_MS);
        let now_ns = sys::now_ns();
        let mut rib = lock(rib);
        for _ in 0..DATAGRAMS {
            match sys::receive(self.fd.as_fd(), &mut self.buffer, 0) {
                Ok(len) => self.follower.datagram(&mut rib, &self.buffer[..len], now_ns),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.follower.lost(&mut rib, now_ns);
                }
                Err(error) => return Err(error),
            }
        }
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            self.follower.tick(&mut rib, now_ns);
        }
        if let Some(question) = self.follower.question(&mut rib, now_ns) {
            drop(rib);
            sys::send(self.fd.as_fd(), &question, 0)?;
        }
        Ok(())
    }
}

/// Reads the kernel's tables once, in the same way as they are followed, into a separate RIB. Its only feed has number 0.
///
/// # Errors
/// When the kernel refuses, or when its tables change so fast that they cannot be read in `patience`.
pub fn read(entrance: &Entrance, vrfs: usize, patience: Duration) -> io::Result<Rib> {
    let rib = Mutex::new(Rib::new(vec![Routes::new("kernel", 0, usize::MAX, vrfs)]));
    let mut kernel = Kernel::hearing(0, Entrance { feed: 0, ..entrance.clone() })?;
    let begin = Instant::now();
    while lock(&rib).feeds()[0].state.phase != Phase::Established {
        if begin.elapsed() > patience {
            let error = lock(&rib).feed(0).state.last_error.take();
            let reason = error.map_or_else(|| "it changes too fast to be read".to_owned(), |error| error.1);
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        kernel.turn(&rib)?;
    }
    Ok(rib.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}
