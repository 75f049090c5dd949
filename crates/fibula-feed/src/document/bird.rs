//! What `birdc show route` prints, by BIRD 1 and BIRD 2: of several routes of a prefix the one with a star.

use fibula::net::{HostBits, IpPrefix};

use super::{Document, Kind, Reading, Record};

pub(super) const KIND: Kind = Kind { recognise };

#[derive(Default)]
struct Bird {
    prefix: String,
    /// The best route, whose next hop is on the next line.
    waiting: Option<String>,
}

fn recognise(line: &str) -> Option<Box<dyn Document>> {
    let word = line.split_ascii_whitespace().next().unwrap_or_default();
    let is_prefix = IpPrefix::parse(word.as_bytes(), HostBits::Mask).is_ok();
    let is_route = is_prefix && line.contains(" [") && line.contains("] ") && line.contains('(');
    let is_head = (line.starts_with("BIRD ") && line.ends_with("ready.")) || line.starts_with("Table ");
    (is_head || is_route).then(|| Box::<Bird>::default() as Box<dyn Document>)
}

impl Document for Bird {
    fn line(&mut self, line: &str, each: &mut dyn FnMut(Record<'_>) -> Reading) -> Reading {
        let text = line.trim();
        let is_head = text.starts_with("BIRD ") || text.starts_with("Table ") || text.starts_with("Access ");
        if text.is_empty() || is_head || text.starts_with('#') {
            return Ok(());
        }
        if line.starts_with('\t') {
            // Of several next hops the first stands for all.
            return match (self.waiting.take(), next_hop(text)) {
                (Some(route), Some(next_hop)) => each(record(&self.prefix, &route, next_hop)),
                (waiting, _) => {
                    self.waiting = waiting;
                    Ok(())
                }
            };
        }
        self.waiting = None;
        let mut route = text;
        if !line.starts_with(' ') {
            let (prefix, rest) = text.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((text, ""));
            prefix.clone_into(&mut self.prefix);
            route = rest.trim_start();
        }
        if !route.contains("] * (") {
            return Ok(());
        }
        match next_hop(route) {
            Some(next_hop) => each(record(&self.prefix, route, next_hop)),
            None if route.starts_with("unicast") => {
                self.waiting = Some(route.to_owned());
                Ok(())
            }
            // unreachable, blackhole, prohibited
            None => {
                each(record(&self.prefix, route, route.split_ascii_whitespace().next().unwrap_or_default()))
            }
        }
    }
}

/// Returns the next hop of `via 192.0.2.1 on eth0` and of `dev eth0`.
fn next_hop(text: &str) -> Option<&str> {
    let mut words = text.split_ascii_whitespace();
    matches!(words.next(), Some("via" | "dev")).then(|| words.next()).flatten()
}

fn record<'a>(prefix: &'a str, route: &'a str, next_hop: &'a str) -> Record<'a> {
    let mut record = Record::default();
    record.push("prefix", prefix);
    record.push("next_hop", next_hop);
    let brackets = |text: &'a str| text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    if let Some((protocol, rest)) = brackets(route) {
        record.push("protocol", protocol.split_ascii_whitespace().next().unwrap_or_default());
        // The origin, and a letter for the attribute of that name.
        let origin = brackets(rest).and_then(|(origin, _)| origin.strip_prefix("AS"));
        if let Some(origin) = origin {
            record.push("origin_as", origin.trim_end_matches(|c: char| !c.is_ascii_digit()));
        }
    }
    record
}
