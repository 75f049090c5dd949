//! Metrics in the text format of Prometheus, over HTTP on a loopback address (prometheus.io, "Exposition formats").

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Router;
use crate::count::{Made, Totals};
use crate::drops::DropReason as Reason;

/// How long a client may take for its request and its answer together.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request.
const LONGEST: usize = 4096;
/// Most clients at once. Others wait until one of them has its answer.
const CLIENTS: usize = 8;

/// Answers requests for metrics, without waiting for any client.
#[derive(Debug)]
pub(super) struct Metrics {
    listener: TcpListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    until: Instant,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

impl Metrics {
    /// Listens at an address.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, clients: Vec::new() })
    }

    /// Serves all clients as far as possible without waiting.
    pub(super) fn turn(&mut self, router: &Router<'_>) {
        while self.clients.len() < CLIENTS
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                let until = Instant::now() + PATIENCE;
                let (request, answer) = (Vec::new(), Vec::new());
                self.clients.push(Client { stream, until, request, answer, sent: 0 });
            }
        }
        self.clients.retain_mut(|client| client.turn(&|| text(router)).unwrap_or(false));
    }
}

impl AsRawFd for Metrics {
    fn as_raw_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }
}

impl Client {
    /// Returns whether there is more to do. An error means that the client has gone.
    fn turn(&mut self, text: &dyn Fn() -> String) -> io::Result<bool> {
        let done = match self.answer.is_empty() {
            true => read(&mut self.stream, &mut self.request).and_then(|status| {
                self.answer = response(status, text);
                self.send()
            }),
            false => self.send(),
        };
        match done {
            Ok(()) => Ok(false),
            // The deadline bounds the time of a client that stops halfway. Without it, eight such clients would block the
            // metrics.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Instant::now() < self.until),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.answer.len() {
            self.sent += match self.stream.write(&self.answer[self.sent..])? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => sent,
            };
        }
        Ok(())
    }
}

fn response(status: Status, text: &dyn Fn() -> String) -> Vec<u8> {
    let (status, body) = match status {
        Ok(()) => ("200 OK", text()),
        Err(status) => (status, format!("{status}\n")),
    };
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The answer to a request: metrics, or the status of a failure.
type Status = Result<(), &'static str>;

/// Reads a request whose first bytes are in `bytes`.
fn read(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Status> {
    let mut part = [0; 1024];
    loop {
        let read = stream.read(&mut part)?;
        bytes.extend_from_slice(&part[..read]);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        return Ok(match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => match (request.method, request.path) {
                (Some("GET"), Some("/metrics")) => Ok(()),
                (Some("GET"), _) => Err("404 Not Found"),
                _ => Err("405 Method Not Allowed"),
            },
            Ok(httparse::Status::Partial) if read > 0 && bytes.len() < LONGEST => continue,
            Ok(httparse::Status::Partial) | Err(_) => Err("400 Bad Request"),
        });
    }
}

/// A family of metrics: its name, kind and meaning.
pub(super) type Family = (&'static str, &'static str, &'static str);

pub(super) fn head(out: &mut String, (name, kind, help): Family) {
    let _ = writeln!(out, "# HELP fibula_router_{name} {help}\n# TYPE fibula_router_{name} {kind}");
}

/// Escapes the value of a label.
pub(super) fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A counter of a port: its name, its help text, and its value in the totals.
type Count = (&'static str, &'static str, fn(&Totals) -> u64);

const COUNTS: [Count; 7] = [
    ("received_frames_total", "Frames received.", |totals| totals.received),
    ("received_bytes_total", "Bytes received.", |totals| totals.received_bytes),
    ("forwarded_packets_total", "Packets received here and sent on by any port.", |totals| totals.forwarded),
    ("delivered_frames_total", "Frames given to the kernel of the machine.", |totals| totals.delivered),
    ("consumed_frames_total", "Frames for the router itself.", |totals| totals.consumed),
    ("sent_frames_total", "Frames sent by this port.", |totals| totals.sent),
    ("sent_bytes_total", "Bytes sent by this port.", |totals| totals.sent_bytes),
];

fn text(router: &Router<'_>) -> String {
    let mut out = String::new();
    let totals = router.totals();
    ports(&mut out, &totals);
    head(
        &mut out,
        (
            "ring_lost_frames_total",
            "counter",
            "Frames that the kernel had no slot for; the router never had them.",
        ),
    );
    for ((name, _), port) in totals.iter().zip(router.ports()) {
        let lost = router.lost[port].load(Ordering::Relaxed);
        let _ = writeln!(out, "fibula_router_ring_lost_frames_total{{port=\"{}\"}} {lost}", quoted(name));
    }
    head(&mut out, ("routes", "gauge", "Routes of a VRF."));
    for (vrf, counts) in router.vrfs.iter().zip(&router.counts) {
        for (family, count) in [("ipv4", counts.v4), ("ipv6", counts.v6)] {
            let name = quoted(&vrf.name);
            let _ = writeln!(out, "fibula_router_routes{{vrf=\"{name}\",family=\"{family}\"}} {count}");
        }
    }
    head(&mut out, ("neighbours", "gauge", "Neighbours that are known or looked for."));
    let mut count = 0;
    router.shared.neighbours.for_each(|_, _, _| count += 1);
    let _ = writeln!(out, "fibula_router_neighbours {count}");
    router.verify.counts.metrics(&mut out);
    super::feed_state::metrics(&mut out, router);
    out
}

fn ports(out: &mut String, totals: &[(String, Totals)]) {
    for (name, help, read) in COUNTS {
        head(out, (name, "counter", help));
        for (port, totals) in totals {
            let _ = writeln!(out, "fibula_router_{name}{{port=\"{}\"}} {}", quoted(port), read(totals));
        }
    }
    head(out, ("waiting_packets", "gauge", "Packets that wait for a neighbour."));
    for (port, totals) in totals {
        let _ =
            writeln!(out, "fibula_router_waiting_packets{{port=\"{}\"}} {}", quoted(port), totals.waiting());
    }
    head(out, ("dropped_packets_total", "counter", "Packets dropped, by reason."));
    for (port, totals) in totals {
        for (reason, count) in Reason::ALL.iter().zip(totals.dropped) {
            let (port, reason) = (quoted(port), reason.name());
            let _ = writeln!(
                out,
                "fibula_router_dropped_packets_total{{port=\"{port}\",reason=\"{reason}\"}} {count}"
            );
        }
    }
    head(out, ("made_total", "counter", "What the router made itself, by kind."));
    for (port, totals) in totals {
        for (made, count) in Made::ALL.iter().zip(totals.made) {
            let (port, kind) = (quoted(port), made.name());
            let _ = writeln!(out, "fibula_router_made_total{{port=\"{port}\",kind=\"{kind}\"}} {count}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        for (text, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Ok(())),
            ("GET / HTTP/1.1\r\n\r\n", Err("404 Not Found")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Err("405 Method Not Allowed")),
            ("GET /metrics", Err("400 Bad Request")),
            ("\u{1}\u{2}", Err("400 Bad Request")),
        ] {
            assert_eq!(read(&mut text.as_bytes(), &mut Vec::new()).unwrap(), expected, "{text}");
        }
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "a".repeat(9000));
        assert_eq!(read(&mut long.as_bytes(), &mut Vec::new()).unwrap(), Err("400 Bad Request"));
    }

    #[test]
    fn a_request_in_parts_is_read_without_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        stream.set_nonblocking(true).unwrap();
        let (request, answer) = (Vec::new(), Vec::new());
        let mut client =
            Client { stream, until: Instant::now() + Duration::from_secs(60), request, answer, sent: 0 };
        let text = || "x 1\n".to_owned();
        assert!(client.turn(&text).unwrap(), "nothing has arrived");
        far.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        assert!(client.turn(&text).unwrap(), "the end is missing");
        far.write_all(b"\r\n").unwrap();
        while client.turn(&text).unwrap() {}
        drop(client);
        let mut answer = String::new();
        far.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nx 1\n"), "{answer}");
    }

    #[test]
    fn every_line_is_a_comment_or_a_value() {
        let mut out = String::new();
        ports(&mut out, &[("a\"b".to_owned(), Totals::default())]);
        assert!(out.contains("{port=\"a\\\"b\",reason=\"no-route\"} 0\n"));
        for line in out.lines() {
            let value = line.rsplit_once(' ').map(|(_, value)| value.parse::<i64>());
            assert!(line.starts_with('#') || matches!(value, Some(Ok(_))), "{line}");
        }
    }
}
