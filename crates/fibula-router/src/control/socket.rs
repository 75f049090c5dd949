//! Serves the control socket: a client sends a line, and the router answers with a line of JSON. Only the owner may connect.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::answer::{refuse, send};
use super::doors::{Caller, Doors};
use super::routes::{self, Listing};
use super::{Router, feed_state, takeover, trace};
use crate::api;
use crate::count::{Made, PortCounters, Totals};
use crate::drops::DropReason as Reason;
use crate::kernel::sys;
use crate::neighbour::{OwnState, State};

/// How long the reader of a listing may stall.
const STALLED: Duration = Duration::from_secs(5);
/// Most listings at once.
const LISTINGS: usize = 4;

/// The control socket of a running router.
#[derive(Debug)]
pub(super) struct Server {
    path: PathBuf,
    /// Whether the file goes with this router. While a router takes over, it is that of the one that runs.
    is_own: bool,
    /// Each listing that is being written holds a clone. The reference count is thus the number of listings, plus one.
    listings: Arc<()>,
}

impl Server {
    /// Has the socket of another router, which gave its listener. The file is this router's once it has [taken over](Self::own).
    pub(super) fn inherited(path: &Path) -> Self {
        Self { path: path.to_owned(), is_own: false, listings: Arc::default() }
    }

    /// Has taken over from the other router.
    pub(super) fn own(&mut self) {
        self.is_own = true;
    }

    /// Leaves the socket to another router.
    pub(super) fn leave(mut self) {
        self.is_own = false;
    }

    /// Opens the socket, and returns it with its listener. It replaces a socket file that nothing answers on, but not the socket of a
    /// running router.
    pub(super) fn open(path: &Path) -> io::Result<(Self, UnixListener)> {
        if let Some(folder) =
            path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
        {
            let reason = format!("{} is no folder: make it, or name another 'socket'", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another router answers there"));
            }
            std::fs::remove_file(path)?;
        }
        // Set the mode by umask, because with a later `chmod` others could connect in between.
        let before = sys::umask(0o177);
        let listener = UnixListener::bind(path);
        sys::umask(before);
        let listener = listener?;
        listener.set_nonblocking(true)?;
        let mut server = Self::inherited(path);
        server.own();
        Ok((server, listener))
    }

    /// Answers a question. Long answers are written by threads of their own.
    pub(super) fn answer(&self, router: &mut Router<'_>, doors: &Doors, stream: UnixStream, line: &str) {
        // A client that goes away early gets no answer, which is not an error.
        let _ = answer(stream, line, router, (&self.listings, doors));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_own {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn answer(
    stream: UnixStream,
    question: &str,
    router: &mut Router<'_>,
    (listings, doors): (&Arc<()>, &Doors),
) -> io::Result<()> {
    // The name of a feed is the rest of the line, because it may contain spaces.
    let (words, feed) = match question.trim_end().split_once(" feed=") {
        Some((words, feed)) => (words, Some(feed)),
        None => (question.trim_end(), None),
    };
    let mut answer = Vec::new();
    match words.split_whitespace().collect::<Vec<_>>()[..] {
        ["stats"] => send(&mut answer, &stats(router))?,
        ["neigh"] => send(&mut answer, &neighbours(router))?,
        ["feeds"] => send(&mut answer, &feed_state::feeds(router))?,
        ["filters"] => send(&mut answer, &router.filter_counts())?,
        ["bfd"] => send(&mut answer, &router.bfd_state())?,
        ["explain", ref words @ ..] => match trace::explain(router, words) {
            Ok(found) => send(&mut answer, &found)?,
            Err(error) => refuse(&mut answer, error.to_string())?,
        },
        ["trace", ref words @ ..] => return router.begin_trace(stream, words),
        ["top", ref words @ ..] => {
            if Arc::strong_count(listings) <= LISTINGS {
                return router.answer_top(stream, words, Arc::clone(listings));
            }
            refuse(&mut answer, "too many listings at once: try again later")?;
        }
        ["verify"] => {
            stream.set_nonblocking(false)?;
            return router.verify.begin(stream);
        }
        ["get", vrf, address, ref words @ ..] => match routes::get(router, vrf, address, words) {
            Ok(found) => send(&mut answer, &found)?,
            Err(error) => refuse(&mut answer, error.to_string())?,
        },
        ["show", ref words @ ..] => match routes::show(router, words, feed) {
            Ok(_) if Arc::strong_count(listings) > LISTINGS => {
                refuse(&mut answer, "too many listings at once: try again later")?;
            }
            Ok(listing) => {
                stream.set_nonblocking(false)?;
                return list(listing, stream, listings);
            }
            Err(error) => refuse(&mut answer, error.to_string())?,
        },
        [takeover::QUESTION] => {
            return match stream.try_clone().map_err(|error| error.to_string()) {
                Ok(other) => match router.meet_successor(other, doors) {
                    Ok(()) => Ok(()),
                    Err(reason) => {
                        refuse(&mut answer, reason)?;
                        doors.answer(Caller::Control(stream), answer);
                        Ok(())
                    }
                },
                Err(_) => Ok(()),
            };
        }
        _ => refuse(&mut answer, format!("no question '{}'", question.trim()))?,
    }
    doors.answer(Caller::Control(stream), answer);
    Ok(())
}

/// Writes a listing on a thread of its own, because it may be long and its reader slow.
fn list(listing: Listing, stream: UnixStream, listings: &Arc<()>) -> io::Result<()> {
    stream.set_write_timeout(Some(STALLED))?;
    let held = Arc::clone(listings);
    let write = move || {
        let _held = held;
        // Writing needs no capability. A reader that goes away early gets no answer, which is not an error.
        let _ = sys::keep_capabilities(0).and_then(|()| {
            let mut out = BufWriter::new(stream);
            listing.write(&mut out).and_then(|()| out.flush())
        });
    };
    std::thread::Builder::new().name("listing".into()).spawn(write).map(drop)
}

fn counters(totals: &Totals) -> api::Counters {
    api::Counters {
        received: totals.received,
        received_bytes: totals.received_bytes,
        forwarded: totals.forwarded,
        delivered: totals.delivered,
        consumed: totals.consumed,
        dropped: totals.all_dropped(),
        sent: totals.sent,
        sent_bytes: totals.sent_bytes,
        waiting: totals.waiting(),
        drops: Reason::ALL.iter().map(|reason| (reason.name(), totals.dropped[reason.index()])).collect(),
        made: Made::ALL.iter().map(|&made| (made.name(), totals.made[made as usize])).collect(),
    }
}

fn stats(router: &Router<'_>) -> api::Stats {
    let port = |(number, (name, totals)): (usize, (String, Totals))| {
        let queue = |worker: &Arc<[PortCounters]>| {
            let mut totals = Totals::default();
            worker[number].add_to(&mut totals);
            counters(&totals)
        };
        api::PortStats {
            name,
            counters: counters(&totals),
            ring_lost: router.lost[number].load(Ordering::Relaxed),
            queues: router.counters.iter().map(queue).collect(),
            fast: router.kept.fast.is_some().then(|| queue(&router.fast_counters)),
        }
    };
    let rib = router.feeds.rib();
    let vrfs = router.vrfs.iter().zip(&router.counts).enumerate().map(|(number, (vrf, counts))| {
        let limit = rib.vrf_limit(number).map(|limit| limit as u64);
        api::VrfStats {
            name: vrf.name.clone(),
            ipv4_routes: counts.v4 as u64,
            ipv6_routes: counts.v6 as u64,
            feed_routes: rib.len_of(number) as u64,
            limit,
        }
    });
    api::Stats {
        threads: router.counters.len() as u64,
        ports: router.ports().into_iter().zip(router.totals()).map(port).collect(),
        vrfs: vrfs.collect(),
        verify: router.verify.counts.stats(router.config.verify_rate),
    }
}

fn neighbours(router: &Router<'_>) -> Vec<api::Neighbour> {
    let fabric = router.shared.fabric();
    let mut list = Vec::new();
    router.shared.neighbours.for_each(|key, mac, state| {
        let interface = fabric.interfaces.get(usize::from(key.interface));
        list.push(api::Neighbour {
            interface: interface.map_or_else(String::new, |interface| interface.name.clone()),
            address: key.ip(),
            mac,
            state: state.into(),
        });
    });
    router.shared.own.for_each(|key, state| {
        let Some(interface) = fabric.interfaces.get(usize::from(key.interface)) else { return };
        let (mac, state) = match state {
            OwnState::Probing => (interface.mac, api::NeighbourState::OwnProbing),
            OwnState::InUse => (interface.mac, api::NeighbourState::Own),
            OwnState::Taken(other) => (other, api::NeighbourState::OwnTaken),
        };
        list.push(api::Neighbour {
            interface: interface.name.clone(),
            address: key.ip(),
            mac: Some(mac),
            state,
        });
    });
    list.sort_by(|a, b| (&a.interface, a.address).cmp(&(&b.interface, b.address)));
    list
}

impl From<State> for api::NeighbourState {
    fn from(state: State) -> Self {
        match state {
            State::Waiting => Self::Waiting,
            State::Reachable => Self::Reachable,
            State::Stale => Self::Stale,
            State::Verifying => Self::Verifying,
            State::Failed => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_with_the_router_that_has_the_socket_alone() {
        let path = std::env::temp_dir().join(format!("fibula-socket-{}", std::process::id()));
        let (running, _listener) = Server::open(&path).unwrap();
        // A take-over that fails.
        drop(Server::inherited(&path));
        assert!(path.exists());
        // One that succeeds.
        let mut next = Server::inherited(&path);
        next.own();
        running.leave();
        assert!(path.exists());
        drop(next);
        assert!(!path.exists());
    }
}
