//! Output of `show ip route` in vtysh of FRRouting and Quagga. The selected one of several routes of a prefix is used.

use fibula::net::HostBits;

use super::head::TextHead;
use super::ip_route::is_prompt;
use super::record::{NamedFields, RouteScope, TableRecord};
use super::{ByRule, Document, Settings, Stop, Take};
use crate::text::{self, LineError, LineErrorKind};

pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    if head.count(|line| begins(line).is_some()) == 0 {
        return 0;
    }
    head.count(|line| {
        begins(line).is_some() || continues(line).is_some() || is_legend(line) || vrf(line).is_some()
    })
}

pub(super) fn read() -> Box<dyn Document> {
    Box::<Vtysh>::default()
}

#[derive(Default)]
struct Vtysh {
    vrf: Option<String>,
    route: Option<VtyshRoute>,
    /// Whether the lines of codes go on.
    in_legend: bool,
}

struct VtyshRoute {
    number: u64,
    code: char,
    is_selected: bool,
    prefix: String,
    /// `[distance/metric]`
    cost: Option<String>,
    /// The next hop in use: the text after the prefix, and whether packets take it.
    next_hop: Option<(String, bool)>,
}

/// Returns the code, the other marks, the prefix and the rest of a line that begins a route.
fn begins(line: &str) -> Option<(char, &str, &str, &str)> {
    let code = line.chars().next().filter(|c| c.is_ascii_alphabetic() || *c == '?')?;
    let (marks, rest) = line.get(1..)?.split_at_checked(2).or(Some(("", "")))?;
    let is_mark = |c: char| matches!(c, ' ' | '>' | '*' | 'q' | 'r' | 'b' | 't' | 'o' | '!' | 'i');
    if !marks.chars().all(is_mark) {
        return None;
    }
    let rest = rest.trim_start();
    let (prefix, rest) = rest.split_once(' ')?;
    if text::place(prefix, HostBits::Mask).is_err() {
        return None;
    }
    let rest = rest.trim();
    let is_ours = rest.starts_with('[')
        || rest.starts_with("is directly")
        || rest.starts_with("via ")
        || rest.starts_with("unreachable");
    is_ours.then_some((code, marks, prefix, rest))
}

/// Returns the marks and the next hop of a line that goes on with the route before it.
fn continues(line: &str) -> Option<(&str, &str)> {
    if !line.starts_with(' ') {
        return None;
    }
    let text = line.trim_start();
    let (marks, text) = text.strip_prefix('*').map_or(("", text), |rest| ("*", rest.trim_start()));
    (text.starts_with("via ")
        || text.starts_with("is directly")
        || text.starts_with("unreachable")
        || text.starts_with("blackhole"))
    .then_some((marks, text))
}

fn is_legend(line: &str) -> bool {
    line.starts_with("Codes:") || (line.starts_with("  ") && line.contains(" - "))
}

fn vrf(line: &str) -> Option<&str> {
    line.strip_prefix("VRF ")?.trim_end().strip_suffix(':')
}

impl Vtysh {
    fn finish(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        let Some(route) = self.route.take() else { return Ok(()) };
        if !route.is_selected {
            take.by_rule(ByRule::NotInUse);
            return Ok(());
        }
        let mut fields = NamedFields::default();
        let text = route.next_hop.as_ref().map_or("", |(text, _)| text);
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let dev = parts.next().filter(|dev| !dev.contains(' ') && !dev.contains(':'));
        let next_hop = match first.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            ["via", next_hop, ..] => next_hop,
            ["is", "directly", "connected", ..] => dev.unwrap_or("connected"),
            ["unreachable", "(blackhole)", ..] | ["blackhole", ..] => "blackhole",
            ["unreachable", "(ICMP", "admin-prohibited)", ..] => "prohibit",
            ["unreachable", ..] => "unreachable",
            _ => "",
        };
        if next_hop.is_empty() {
            return take.bad(route.number, LineError::new(LineErrorKind::NoNextHop, 0), &route.prefix);
        }
        fields.push("next_hop", next_hop.to_owned());
        if let Some(dev) = dev {
            fields.push("dev", dev);
        }
        fields.push("protocol", protocol(route.code));
        if let Some((distance, metric)) = route.cost.as_deref().and_then(|cost| cost.split_once('/')) {
            fields.push("distance", distance);
            fields.push("metric", metric);
        }
        let vrf = self.vrf.as_deref().filter(|&vrf| vrf != "default");
        let record = TableRecord { vrf, ..TableRecord::plain(RouteScope::Prefix(&route.prefix), &fields) };
        take.record(&record, route.number, &route.prefix)
    }
}

impl VtyshRoute {
    /// Takes a next hop if it is better than the one before: packets take it, and it is not one that others resolve.
    fn offer(&mut self, marks: &str, text: &str) {
        let is_used = marks.contains('*')
            && !text.contains("(recursive")
            && !text.contains("inactive")
            && !text.contains("(duplicate");
        if self.next_hop.as_ref().is_none_or(|&(_, used)| is_used && !used) {
            self.next_hop = Some((text.chars().take(512).collect(), is_used));
        }
    }
}

fn protocol(code: char) -> &'static str {
    match code {
        'K' => "kernel",
        'C' => "connected",
        'L' => "local",
        'S' => "static",
        'R' => "rip",
        'O' => "ospf",
        'I' => "isis",
        'B' => "bgp",
        'E' => "eigrp",
        'N' => "nhrp",
        'T' => "table",
        'D' => "sharp",
        'F' => "pbr",
        'f' => "openfabric",
        'A' => "babel",
        'v' => "vnc",
        'V' => "vnc-direct",
        't' => "table-direct",
        _ => "other",
    }
}

impl Document for Vtysh {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        let line = line.trim_end();
        if line.is_empty() {
            self.in_legend = false;
            return Ok(());
        }
        if let Some((code, marks, prefix, rest)) = begins(line) {
            self.in_legend = false;
            self.finish(take)?;
            let (cost, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((cost, rest)) => (Some(cost.to_owned()), rest.trim_start()),
                None => (None, rest),
            };
            let is_selected = marks.contains('>');
            let mut route =
                VtyshRoute { number, code, is_selected, prefix: prefix.to_owned(), cost, next_hop: None };
            route.offer(marks, rest);
            self.route = Some(route);
            return Ok(());
        }
        if let Some((marks, text)) = continues(line) {
            if let Some(route) = &mut self.route {
                route.offer(marks, text);
                return Ok(());
            }
            return take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), line);
        }
        if let Some(name) = vrf(line) {
            self.finish(take)?;
            self.vrf = Some(name.to_owned());
            return Ok(());
        }
        if line.starts_with("Codes:") {
            self.finish(take)?;
            self.in_legend = true;
            return Ok(());
        }
        let is_other = line.starts_with(['#', '%'])
            || is_prompt(line)
            || line.contains(" unicast VRF ")
            || line.ends_with(['#', '>']);
        if self.in_legend || is_other {
            return Ok(());
        }
        take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), line)
    }

    fn end(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        self.finish(take)
    }
}
