//! The control socket: a line in, a line of JSON out. Only its owner may connect.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fibula::net::IpPrefix;
use serde_json::{Map, Value, json};

use super::routes::{self, Listing};
use super::{Router, feed_state};
use crate::count::{Made, Totals};
use crate::drops::Drop as Reason;
use crate::kernel::sys;
use crate::neighbour::OwnState;

/// How long one who asks may take.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long the reader of a listing may take nothing.
const STALLED: Duration = Duration::from_secs(5);
/// Most listings at once.
const LISTINGS: usize = 4;
/// Longest question.
const LONGEST: u64 = 1024;

/// The socket of a router that runs.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
    path: PathBuf,
    /// Held by each listing that is being written.
    listings: Arc<()>,
}

impl Server {
    /// Opens the socket. One that a router left behind is replaced; one that answers is not.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another router answers there"));
            }
            std::fs::remove_file(path)?;
        }
        // For everybody but the owner it never exists.
        let before = sys::umask(0o177);
        let listener = UnixListener::bind(path);
        sys::umask(before);
        let listener = listener?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: path.to_owned(), listings: Arc::default() })
    }

    /// Answers those who ask now.
    pub(super) fn answer(&mut self, router: &mut Router<'_>) {
        while let Ok((stream, _)) = self.listener.accept() {
            // One who goes away early has no answer.
            let _ = answer(stream, router, &self.listings);
        }
    }
}

impl AsRawFd for Server {
    fn as_raw_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer(mut stream: UnixStream, router: &mut Router<'_>, listings: &Arc<()>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut question)?;
    // A name is the rest of the line, whatever is in it.
    let (words, feed) = match question.trim_end().split_once(" feed=") {
        Some((words, feed)) => (words, Some(feed)),
        None => (question.trim_end(), None),
    };
    let answer = match words.split_whitespace().collect::<Vec<_>>()[..] {
        ["stats"] => stats(router),
        ["neigh"] => neighbours(router),
        ["feeds"] => feed_state::feeds(router),
        ["verify"] => return router.verify.begin(stream),
        ["get", vrf, address, ref words @ ..] => {
            routes::get(router, vrf, address, words).unwrap_or_else(|error| json!({ "error": error }))
        }
        ["show", ref words @ ..] => match routes::show(router, words, feed) {
            Ok(listing) => return list(listing, stream, listings),
            Err(error) => json!({ "error": error }),
        },
        _ => json!({ "error": format!("no question '{}'", question.trim()) }),
    };
    writeln!(stream, "{answer}")
}

/// Writes a listing on a thread of its own, as it may be long and its reader slow.
fn list(listing: Listing, mut stream: UnixStream, listings: &Arc<()>) -> io::Result<()> {
    if Arc::strong_count(listings) > LISTINGS {
        return writeln!(stream, "{}", json!({ "error": "too many listings at once: try again later" }));
    }
    stream.set_write_timeout(Some(STALLED))?;
    let held = Arc::clone(listings);
    let write = move || {
        let _held = held;
        // It needs no right, and a reader that goes away early has no answer.
        let _ = sys::keep_capabilities(0).and_then(|()| {
            let mut out = BufWriter::new(stream);
            listing.write(&mut out).and_then(|()| out.flush())
        });
    };
    std::thread::Builder::new().name("listing".into()).spawn(write).map(drop)
}

/// Queries a router that runs, for the routes of a VRF: all, or those of a prefix, and with `covers` and `inside` also those around
/// and inside it. Calls `each` with every route, in order.
///
/// # Errors
/// When no router answers at `path`, it refuses, or it ends before its answer does; and the errors of `each`.
pub fn list_routes(
    path: &Path,
    question: &RoutesOf<'_>,
    mut each: impl FnMut(&Value) -> io::Result<()>,
) -> io::Result<()> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(STALLED))?;
    write!(stream, "show {}", question.vrf)?;
    if let Some(prefix) = question.prefix {
        write!(stream, " {prefix}")?;
    }
    let words = [("covers", question.covers), ("inside", question.inside), ("changes", question.changes)];
    for (word, _) in words.iter().filter(|word| word.1) {
        write!(stream, " {word}")?;
    }
    if let Some(feed) = question.feed {
        write!(stream, " feed={feed}")?;
    }
    writeln!(stream)?;
    for line in BufReader::new(stream).lines() {
        let value: Value = serde_json::from_str(&line?).map_err(io::Error::other)?;
        if let Some(error) = value["error"].as_str() {
            return Err(io::Error::other(error.to_owned()));
        }
        if value.get("routes").is_some() {
            return Ok(());
        }
        each(&value)?;
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Which routes of a router to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoutesOf<'q> {
    /// Name of the VRF.
    pub vrf: &'q str,
    /// The prefix; `None`: all.
    pub prefix: Option<IpPrefix>,
    /// Also the routes that contain the prefix.
    pub covers: bool,
    /// Also the routes inside it.
    pub inside: bool,
    /// Only routes of the feed of this name.
    pub feed: Option<&'q str>,
    /// The last changes too, also of prefixes that have no route any more.
    pub changes: bool,
}

/// Asks a router that runs, and returns what it answers.
///
/// # Errors
/// When no router answers at `path`, or its answer is not JSON.
pub fn ask(path: &Path, question: &str) -> io::Result<Value> {
    ask_within(path, question, Duration::from_secs(5))
}

/// Like [`ask`], for questions that take long to answer, as `verify` does for large tables.
///
/// # Errors
/// When no router answers at `path` within the time, or its answer is not JSON.
pub fn ask_within(path: &Path, question: &str, patience: Duration) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    writeln!(stream, "{question}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

fn counters(totals: &Totals) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, count) in [
        ("received", totals.received),
        ("received_bytes", totals.received_bytes),
        ("forwarded", totals.forwarded),
        ("delivered", totals.delivered),
        ("consumed", totals.consumed),
        ("dropped", totals.all_dropped()),
        ("sent", totals.sent),
        ("sent_bytes", totals.sent_bytes),
    ] {
        map.insert(name.into(), count.into());
    }
    map.insert("waiting".into(), totals.waiting().into());
    let drops =
        Reason::ALL.iter().map(|reason| (reason.name().into(), totals.dropped[reason.index()].into()));
    map.insert("drops".into(), Value::Object(drops.collect()));
    let made = Made::ALL.iter().map(|&made| (made.name().into(), totals.made[made as usize].into()));
    map.insert("made".into(), Value::Object(made.collect()));
    map
}

fn stats(router: &Router<'_>) -> Value {
    let ports = router.totals().into_iter().enumerate().map(|(number, (name, totals))| {
        let mut map = Map::new();
        map.insert("name".into(), name.into());
        map.append(&mut counters(&totals));
        map.insert("ring_lost".into(), router.lost[number].load(Ordering::Relaxed).into());
        let queues = router.counters.iter().map(|worker| {
            let mut totals = Totals::default();
            worker[number].add_to(&mut totals);
            Value::Object(counters(&totals))
        });
        map.insert("queues".into(), queues.collect());
        Value::Object(map)
    });
    let ports: Vec<Value> = ports.collect();
    let rib = router.feeds.rib();
    let vrfs = router.vrfs.iter().zip(&router.counts).enumerate().map(|(number, (vrf, counts))| {
        json!({
            "name": vrf.name,
            "ipv4_routes": counts.v4,
            "ipv6_routes": counts.v6,
            "feed_routes": rib.len_of(number),
            "limit": rib.vrf_limit(number),
        })
    });
    json!({
        "threads": router.counters.len(),
        "ports": ports,
        "vrfs": vrfs.collect::<Vec<_>>(),
        "verify": router.verify.counts.json(router.config.verify_rate),
    })
}

fn neighbours(router: &Router<'_>) -> Value {
    let fabric = router.shared.fabric();
    let mut list = Vec::new();
    router.shared.neighbours.for_each(|key, mac, state| {
        let interface = fabric.interfaces.get(usize::from(key.interface));
        list.push((
            interface.map_or_else(String::new, |interface| interface.name.clone()),
            key.ip(),
            mac,
            state.name(),
        ));
    });
    router.shared.own.for_each(|key, state| {
        let Some(interface) = fabric.interfaces.get(usize::from(key.interface)) else { return };
        let (mac, state) = match state {
            OwnState::Probing => (interface.mac, "own, probing"),
            OwnState::InUse => (interface.mac, "own"),
            OwnState::Taken(other) => (other, "own, taken"),
        };
        list.push((interface.name.clone(), key.ip(), Some(mac), state));
    });
    list.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let entry = |(interface, ip, mac, state): (String, std::net::IpAddr, Option<_>, &str)| {
        let mac = mac.map(|mac: crate::packet::ethernet::Mac| mac.to_string());
        json!({ "interface": interface, "address": ip.to_string(), "mac": mac, "state": state })
    };
    list.into_iter().map(entry).collect()
}
