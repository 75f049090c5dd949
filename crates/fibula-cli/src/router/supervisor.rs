//! Reports to systemd, by the protocol of `sd_notify`: a datagram to the socket that `NOTIFY_SOCKET` names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use fibula_router::control::Notice;

/// How often the supervisor hears that the main thread runs.
const OFTEN: Duration = Duration::from_secs(3);

/// The supervisor, if there is one.
#[derive(Debug)]
pub(super) struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    told: Option<Instant>,
}

impl Supervisor {
    /// Finds the supervisor in the environment.
    pub(super) fn of_environment() -> Self {
        Self::at(std::env::var_os("NOTIFY_SOCKET").as_deref())
    }

    fn at(name: Option<&OsStr>) -> Self {
        // A supervisor that cannot be reached is none: the router runs without it.
        let socket = name.and_then(|name| Some((UnixDatagram::unbound().ok()?, address(name).ok()?)));
        if let Some((socket, _)) = &socket {
            // The main thread does not wait for a supervisor that does not read.
            let _ = socket.set_nonblocking(true);
        }
        Self { socket, told: None }
    }

    /// Passes a notice on.
    pub(super) fn notify(&mut self, notice: Notice) {
        let Some((socket, address)) = &self.socket else { return };
        let text = match notice {
            Notice::Alive if self.told.is_some_and(|told| told.elapsed() < OFTEN) => return,
            Notice::Alive => "WATCHDOG=1",
            Notice::Ready => "READY=1",
            Notice::Reloading => "RELOADING=1",
            Notice::Stopping => "STOPPING=1",
        };
        if notice == Notice::Alive {
            self.told = Some(Instant::now());
        }
        let _ = socket.send_to_addr(text.as_bytes(), address);
    }
}

/// Returns the address of a socket: a path, or an abstract name, which starts with `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_hears_each_change_and_that_the_router_lives() {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("@fibula-test-{}", std::process::id());
        let path = folder.path().join("notify");
        let ends = [
            UnixDatagram::bind(&path).unwrap(),
            UnixDatagram::bind_addr(&address(OsStr::new(&name)).unwrap()).unwrap(),
        ];
        for (end, name) in ends.into_iter().zip([path.as_os_str(), OsStr::new(&name)]) {
            end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut supervisor = Supervisor::at(Some(name));
            for notice in [Notice::Ready, Notice::Alive, Notice::Alive, Notice::Reloading, Notice::Stopping] {
                supervisor.notify(notice);
            }
            let mut heard = Vec::new();
            for _ in 0..4 {
                let mut bytes = [0; 64];
                let len = end.recv(&mut bytes).unwrap();
                heard.push(String::from_utf8_lossy(&bytes[..len]).into_owned());
            }
            assert_eq!(heard, ["READY=1", "WATCHDOG=1", "RELOADING=1", "STOPPING=1"]);
        }
        // Nobody there: nothing happens.
        Supervisor::at(Some(OsStr::new("/nowhere/notify"))).notify(Notice::Ready);
        Supervisor::at(None).notify(Notice::Ready);
    }
}
