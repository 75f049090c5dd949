//! Reads the output of `birdc show route` (BIRD 1, 2 and 3). If a prefix has several routes, the one with a star counts.

use std::borrow::Cow;

use fibula::net::HostBits;

use super::head::TextHead;
use super::record::{Fields, RouteScope, TableRecord, communities};
use super::{ByRule, Document, Settings, Stop, Take};
use crate::text::{self, LineError, LineErrorKind};
use crate::value::Value;

/// Most bytes of a route with its attributes.
const ROUTE_BYTES: usize = 64 << 10;

pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    if head.count(|line| is_route(line, true)) == 0 {
        return 0;
    }
    head.count(|line| is_route(line, false) || is_heading(line) || line.starts_with('\t') || is_prompt(line))
}

pub(super) fn read(head: &TextHead<'_>) -> Box<dyn Document> {
    let tables: Vec<&str> = head.lines().iter().filter_map(|line| table(line)).collect();
    let is_one = tables.windows(2).all(|pair| pair[0] == pair[1]);
    let own = if is_one { tables.first().map(|&name| name.to_owned()) } else { None };
    Box::new(Bird { own, ..Bird::default() })
}

#[derive(Default)]
struct Bird {
    /// The name of the only table of the text.
    own: Option<String>,
    /// The table whose routes come, unless it is the main one.
    table: Option<String>,
    prefix: String,
    /// The route whose next hops and attributes come on the lines after it.
    route: Option<BirdRoute>,
}

#[derive(Default)]
struct BirdRoute {
    number: u64,
    prefix: String,
    next_hop: Option<String>,
    dev: Option<String>,
    protocol: String,
    origin: Option<String>,
    /// `unicast`, `unreachable`, `blackhole`, `prohibited`, or the `via` of BIRD 1.
    kind: String,
    attributes: Vec<(String, String)>,
    bytes: usize,
    is_used: bool,
}

fn table(line: &str) -> Option<&str> {
    line.strip_prefix("Table ")?.trim_end().strip_suffix(':')
}

fn is_heading(line: &str) -> bool {
    let line = line.trim();
    (line.starts_with("BIRD ") && line.ends_with("ready."))
        || table(line).is_some()
        || line.starts_with("Access restricted")
}

fn is_prompt(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("bird>") || line.starts_with("bird#") || line.contains("birdc")
}

/// Returns whether a line begins a route: of a prefix that it names, or of the prefix before it.
fn is_route(line: &str, names_prefix: bool) -> bool {
    let Some((before, after)) = line.split_once(" [") else { return false };
    let rest = after.split_once(']').map_or("", |(_, rest)| rest);
    let word = before.split_ascii_whitespace().next().unwrap_or_default();
    let named = !line.starts_with([' ', '\t']) && text::place(word, HostBits::Mask).is_ok();
    rest.contains('(') && (named || (!names_prefix && line.starts_with(' ')))
}

impl Bird {
    fn finish(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        let Some(route) = self.route.take() else { return Ok(()) };
        if !route.is_used {
            take.by_rule(ByRule::NotInUse);
            return Ok(());
        }
        let place = RouteScope::Prefix(&route.prefix);
        let record = TableRecord { vrf: self.table.as_deref(), ..TableRecord::plain(place, &route) };
        take.record(&record, route.number, &route.prefix)
    }

    fn begin(&mut self, route: &str, number: u64) -> Option<BirdRoute> {
        let (before, after) = route.split_once(" [").or_else(|| Some(("", route.strip_prefix('[')?)))?;
        let (session, rest) = after.split_once(']')?;
        let (flags, rest) = rest.split_once('(')?;
        let rest = rest.split_once(')').map_or("", |(_, rest)| rest);
        let origin =
            rest.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(origin, _)| origin);
        // The origin, and a letter for the attribute of that name.
        let origin = origin.and_then(|origin| origin.strip_prefix("AS"));
        let mut begun = BirdRoute {
            number,
            prefix: self.prefix.clone(),
            protocol: session.split_ascii_whitespace().next().unwrap_or_default().to_owned(),
            origin: origin.map(|origin| origin.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned()),
            kind: before.split_ascii_whitespace().next().unwrap_or_default().to_owned(),
            // '!': the best route, which the kernel has not taken yet.
            is_used: flags.split_ascii_whitespace().any(|flag| flag.starts_with(['*', '!'])),
            ..BirdRoute::default()
        };
        begun.next_hop_of(before);
        Some(begun)
    }
}

impl BirdRoute {
    /// Takes the next hop of `via 192.0.2.1 on eth0` and of `dev eth0`. Of several the first stands for all.
    fn next_hop_of(&mut self, text: &str) {
        let mut words = text.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("via"), Some(next_hop)) if self.next_hop.is_none() => {
                self.next_hop = Some(next_hop.to_owned());
                if words.next() == Some("on") {
                    self.dev = words.next().map(str::to_owned);
                }
            }
            (Some("dev"), Some(dev)) if self.next_hop.is_none() => {
                (self.next_hop, self.dev) = (Some(dev.to_owned()), Some(dev.to_owned()));
            }
            _ => {}
        }
    }

    fn attribute(&self, names: &[&str]) -> Option<&str> {
        let has = |own: &str, name: &str| own.eq_ignore_ascii_case(name);
        names.iter().find_map(|name| {
            self.attributes.iter().find(|(own, _)| has(own, name)).map(|(_, value)| &**value)
        })
    }
}

impl Fields for BirdRoute {
    fn text(&self, value: &Value) -> Option<Cow<'_, str>> {
        Some(match value {
            // unreachable, blackhole, prohibited
            Value::NextHop => self.next_hop.as_deref().unwrap_or(&self.kind).into(),
            Value::OriginAs => self.origin.as_deref()?.into(),
            Value::AsPath => self.attribute(&["BGP.as_path", "bgp_path"])?.into(),
            Value::Communities => {
                let plain = self.attribute(&["BGP.community", "bgp_community"]).map(communities);
                let large = self.attribute(&["BGP.large_community", "bgp_large_community"]).map(communities);
                match (plain, large) {
                    (Some(plain), Some(large)) => format!("{plain} {large}").into(),
                    (plain, large) => plain.or(large)?.into(),
                }
            }
            Value::Column(name) if &**name == "protocol" => self.protocol.as_str().into(),
            Value::Column(name) if matches!(&**name, "dev" | "interface") => self.dev.as_deref()?.into(),
            Value::Column(name) => self.attribute(&[name])?.into(),
            _ => return None,
        })
    }
}

impl Document for Bird {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if is_heading(text) || is_prompt(text) {
            self.finish(take)?;
            if let Some(name) = table(text) {
                let is_main = name.starts_with("master") || self.own.as_deref() == Some(name);
                self.table = (!is_main).then(|| name.to_owned());
            }
            return Ok(());
        }
        if line.starts_with('\t') || !(line.contains('[') && line.contains('(')) {
            let Some(route) = &mut self.route else {
                // Indented lines after a misread route belong to it.
                return if line.starts_with('\t') {
                    Ok(())
                } else {
                    take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), text)
                };
            };
            if !line.starts_with([' ', '\t']) {
                self.finish(take)?;
                return take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), text);
            }
            route.next_hop_of(text);
            if let Some((name, value)) = text.split_once(':')
                && !name.contains(' ')
            {
                route.bytes += text.len();
                if route.bytes > ROUTE_BYTES {
                    self.route = None;
                    return take.bad(
                        number,
                        LineError::new(LineErrorKind::EntryTooLong { limit_bytes: ROUTE_BYTES }, 0),
                        text,
                    );
                }
                route.attributes.push((name.to_owned(), value.trim().to_owned()));
            }
            return Ok(());
        }
        self.finish(take)?;
        let mut route = text;
        if !line.starts_with(' ') {
            let (prefix, rest) = text.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((text, ""));
            prefix.clone_into(&mut self.prefix);
            route = rest.trim_start();
        }
        match self.begin(route, number) {
            Some(route) => self.route = Some(route),
            None => return take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), text),
        }
        Ok(())
    }

    fn end(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        self.finish(take)
    }
}
