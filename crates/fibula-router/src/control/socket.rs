//! The control socket: a line in, a line of JSON out. Only its owner may connect.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Router;
use crate::count::{Made, Totals};
use crate::drops::Drop as Reason;
use crate::forward::fabric::Hop;
use crate::kernel::sys;

/// How long one who asks may take.
const PATIENCE: Duration = Duration::from_millis(200);
/// Longest question.
const LONGEST: u64 = 256;

/// The socket of a router that runs.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
    path: PathBuf,
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
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Answers those who ask now.
    pub(super) fn answer(&self, router: &Router<'_>) {
        while let Ok((stream, _)) = self.listener.accept() {
            // One who goes away early has no answer.
            let _ = answer(stream, router);
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

fn answer(mut stream: UnixStream, router: &Router<'_>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut question)?;
    let answer = match question.split_whitespace().collect::<Vec<_>>()[..] {
        ["stats"] => stats(router),
        ["neigh"] => neighbours(router),
        ["get", vrf, address] => get(router, vrf, address),
        _ => json!({ "error": format!("no question '{}'", question.trim()) }),
    };
    writeln!(stream, "{answer}")
}

/// Asks a router that runs, and returns what it answers.
///
/// # Errors
/// When no router answers at `path`, or its answer is not JSON.
pub fn ask(path: &Path, question: &str) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
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
    let vrfs = router.vrfs.iter().map(|vrf| {
        let statistics = vrf.table.routes().map(|routes| (routes.v4.len(), routes.v6.len()));
        let (v4, v6) = statistics.unwrap_or_default();
        json!({ "name": vrf.name, "ipv4_routes": v4, "ipv6_routes": v6 })
    });
    json!({ "threads": router.counters.len(), "ports": ports, "vrfs": vrfs.collect::<Vec<_>>() })
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
    list.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let entry = |(interface, ip, mac, state): (String, std::net::IpAddr, Option<_>, &str)| {
        let mac = mac.map(|mac: crate::packet::ethernet::Mac| mac.to_string());
        json!({ "interface": interface, "address": ip.to_string(), "mac": mac, "state": state })
    };
    list.into_iter().map(entry).collect()
}

fn get(router: &Router<'_>, vrf: &str, address: &str) -> Value {
    let Some(vrf) = router.vrfs.iter().find(|known| known.name == vrf) else {
        return json!({ "error": format!("no VRF '{vrf}'") });
    };
    let Ok(ip) = address.parse::<std::net::IpAddr>() else {
        return json!({ "error": format!("'{address}' is not an IP address") });
    };
    let fabric = router.shared.fabric();
    let route = vrf.table.routes().ok().and_then(|routes| routes.lookup_prefix(ip));
    let name = |interface: u16| fabric.interfaces[usize::from(interface)].name.clone();
    let show = |hop: &Hop| match hop {
        Hop::Via { interface, gateway } => {
            let gateway: std::net::IpAddr = match *gateway {
                crate::forward::fabric::Gateway::V4(ip) => std::net::Ipv4Addr::from(ip).into(),
                crate::forward::fabric::Gateway::V6(ip) => std::net::Ipv6Addr::from(ip).into(),
            };
            json!({ "via": gateway.to_string(), "interface": name(*interface) })
        }
        Hop::Connected { interface } => json!({ "interface": name(*interface) }),
        Hop::Local => json!("local"),
        Hop::Blackhole => json!("blackhole"),
        Hop::Unreachable => json!("unreachable"),
        Hop::Prohibit => json!("prohibit"),
        Hop::Group(members) => json!({ "group": members.len() }),
    };
    match route {
        Some((prefix, number)) => {
            let hop = fabric.hops.get(number.id() as usize).and_then(Option::as_ref);
            json!({ "prefix": prefix.to_string(), "next_hop": hop.map(show) })
        }
        None => json!({ "prefix": null, "next_hop": null }),
    }
}
