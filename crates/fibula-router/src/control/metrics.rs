//! Metrics in the text format of Prometheus, over HTTP on a loopback address (prometheus.io, "Exposition formats").

use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;

use super::Router;
use crate::count::{Made, Totals};
use crate::drops::DropReason as Reason;

/// Longest request.
const LONGEST: usize = 4096;

/// Listens at an address.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns the answer to a request: a body, or the status of a failure.
pub(super) fn response(body: Result<String, &'static str>) -> Vec<u8> {
    let (status, body) = match body {
        Ok(body) => ("200 OK", body),
        Err(status) => (status, format!("{status}\n")),
    };
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The target of a request: the metrics, or something else, which has the status of a failure.
type Status = Result<(), &'static str>;

/// Reads a request whose first bytes are in `bytes`.
pub(super) fn read(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Status> {
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

/// Returns the metrics.
pub(super) fn text(router: &Router<'_>) -> String {
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
    super::filters::metrics(&mut out, &router.filter_counts());
    super::bfd::metrics(&mut out, &router.bfd_state());
    super::samples::metrics(&mut out, &router.samples);
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
