//! Finds the routes among the values of a JSON text.

use std::borrow::Cow;

use fibula::net::{Family, HostBits, parse_address};

use super::super::head::TextHead;
use super::super::names;
use super::super::record::{Fields, RouteScope, TableRecord, communities};
use super::super::{ByRule, Stop, Take};
use super::next_hop;
use super::parse::{Node, Object, get};
use super::scope::{Around, Scope};
use crate::text::{self, LineError, LineErrorKind};
use crate::value::Value;

/// Which marks of the route in use the text has. Where it has one, routes without it are not in use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    selected: bool,
    best_path: bool,
    best: bool,
}

impl Marks {
    pub(super) fn of(head: &TextHead<'_>) -> Self {
        let has = |name: &str| head.all().contains(name);
        Self { selected: has("\"selected\""), best_path: has("\"bestpath\""), best: has("\"best\"") }
    }
}

/// Finds the routes in a value.
pub(super) struct Visitor<'t> {
    pub(super) take: &'t mut dyn Take,
    pub(super) marks: Marks,
    pub(super) line: u64,
    /// The value as it is written.
    pub(super) text: &'t [u8],
}

/// Returns whether a name is a prefix. The value under it then belongs to that prefix.
pub(super) fn is_prefix(name: &str) -> bool {
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_hexdigit() || byte == b':');
    begins && name.contains(['.', ':']) && text::place(name, HostBits::Mask).is_ok()
}

/// Returns the paths of a prefix: of FRRouting and GoBGP, or of Arista EOS.
fn paths<'n, 'a>(fields: &'n Object<'a>) -> Option<&'n [Node<'a>]> {
    get(fields, "paths").or_else(|| get(fields, "bgpRoutePaths")).and_then(Node::list)
}

/// Names of lists whose texts are prefixes or addresses.
fn lists_addresses(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["prefix", "cidr", "address", "network", "subnet", "range", "ip"].iter().any(|part| name.contains(part))
}

impl Visitor<'_> {
    fn excerpt(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text[..self.text.len().min(200)])
    }

    /// Counts a value that should have been a route.
    pub(super) fn missing(&mut self) -> Result<(), Stop> {
        let excerpt = self.excerpt().into_owned();
        self.take.bad(self.line, LineError::new(LineErrorKind::NoPrefix, 0), &excerpt)
    }

    fn said(&mut self, record: &TableRecord<'_>) -> Result<u64, Stop> {
        let excerpt = match record.place {
            RouteScope::Prefix(text)
            | RouteScope::Masked(text, _)
            | RouteScope::Range(text, _)
            | RouteScope::Count(text, _) => text,
        };
        self.take.record(record, self.line, excerpt)?;
        Ok(1)
    }

    /// Finds the routes in a value that is under a name, or in a list. Returns the number of entries found.
    pub(super) fn visit(
        &mut self,
        scope: &Scope<'_>,
        name: Option<&str>,
        node: &Node<'_>,
    ) -> Result<u64, Stop> {
        if let Some(prefix) = name.filter(|name| is_prefix(name)) {
            return self.prefixed(scope, prefix, node);
        }
        match node {
            Node::Object(fields) => {
                if let Some(place) = place(fields) {
                    return match place {
                        RouteScope::Prefix(prefix) if paths(fields).is_some() => {
                            self.prefixed(scope, prefix, node)
                        }
                        place => self.route(scope, place, fields),
                    };
                }
                // Effective routes of Azure: each has a list of prefixes.
                if let Some(prefixes) = get(fields, "addressPrefix").and_then(Node::list) {
                    return prefixes.iter().filter_map(Node::plain).try_fold(0, |found, prefix| {
                        Ok(found + self.route(scope, RouteScope::Prefix(prefix), fields)?)
                    });
                }
                scope.with(name, fields, |scope| {
                    let mut found = 0;
                    for (name, value) in fields {
                        found += match value {
                            Node::List(_) | Node::Object(_) => self.visit(scope, Some(name), value)?,
                            value if is_prefix(name) => self.prefixed(scope, name, value)?,
                            _ => 0,
                        };
                    }
                    Ok(found)
                })
            }
            Node::List(values) => {
                let (mut found, mut without) = (0, 0);
                for value in values {
                    let entries = match value {
                        Node::List(_) | Node::Object(_) => {
                            scope.with(name, &[], |scope| self.visit(scope, None, value))?
                        }
                        value => self.element(scope, name, value)?,
                    };
                    found += entries;
                    without += u64::from(entries == 0 && matches!(value, Node::Object(_)));
                }
                // An object without a prefix among routes was meant to be one.
                if found > 0 {
                    for _ in 0..without {
                        self.missing()?;
                        found += 1;
                    }
                }
                Ok(found)
            }
            _ => Ok(0),
        }
    }

    /// Takes a text of a list, if it is a prefix.
    pub(super) fn element(
        &mut self,
        scope: &Scope<'_>,
        list: Option<&str>,
        node: &Node<'_>,
    ) -> Result<u64, Stop> {
        let Node::Text(text) = node else { return Ok(0) };
        let is_expected = list.map_or(scope.around().count() == 0, lists_addresses);
        if !(is_prefix(text) && (is_expected || text.contains('/'))) && !(is_expected && list.is_none()) {
            return Ok(0);
        }
        let fields = Element { scope, list };
        self.said(&TableRecord { vrf: None, ..TableRecord::plain(RouteScope::Prefix(text), &fields) })
    }

    /// Takes the value under a name that is a prefix.
    pub(super) fn prefixed(&mut self, scope: &Scope<'_>, prefix: &str, node: &Node<'_>) -> Result<u64, Stop> {
        let place = RouteScope::Prefix(prefix);
        match node {
            Node::Object(fields) => match paths(fields) {
                Some(paths) => scope.with(Some(prefix), fields, |scope| {
                    paths.iter().try_fold(0, |found, path| {
                        Ok(found + path.object().map_or(Ok(0), |path| self.route(scope, place, path))?)
                    })
                }),
                None => self.route(scope, place, fields),
            },
            Node::List(values) if values.iter().any(|value| value.object().is_some()) => {
                values.iter().try_fold(0, |found, value| {
                    Ok(found + value.object().map_or(Ok(0), |route| self.route(scope, place, route))?)
                })
            }
            value => {
                let fields = PrefixedValue { value };
                self.said(&TableRecord::plain(place, &fields))
            }
        }
    }

    /// Takes an object that is a route.
    fn route(
        &mut self,
        scope: &Scope<'_>,
        place: RouteScope<'_>,
        route: &[(Cow<'_, str>, Node<'_>)],
    ) -> Result<u64, Stop> {
        let is_kernel = get(route, "dst").is_some();
        let is_used = |name: &str| {
            get(route, name)
                .is_some_and(|mark| mark.is_true() || mark.get("overall").is_some_and(Node::is_true))
        };
        let active = get(route, "routeType").and_then(|kind| kind.get("active"));
        let is_invalid = get(route, "nextHopType").is_some()
            && get(route, "state").and_then(Node::plain).is_some_and(|state| state == "Invalid");
        // Birdwatcher has the routes of all protocols.
        let is_other = get(route, "from_protocol").is_some()
            && get(route, "primary").is_some_and(|primary| !primary.is_true());
        if active.is_some_and(|active| !active.is_true()) || is_invalid || is_other {
            self.take.by_rule(ByRule::NotInUse);
            return Ok(1);
        }
        // What only a router writes.
        let listing = ["nexthops", "vias", "TABLE_path", "nlri", "attrs", "exit_nexthop"];
        let is_listed = active.is_some() || listing.iter().any(|name| get(route, name).is_some());
        let mut rank = None;
        if get(route, "destRange").is_some() {
            // Google Cloud takes the route with the lowest one.
            rank = get(route, "priority").and_then(|priority| priority.plain()?.parse().ok());
        }
        if is_listed && !is_kernel && active.is_none() {
            let marks = [
                (self.marks.selected, "selected"),
                (self.marks.best_path, "bestpath"),
                (self.marks.best, "best"),
            ];
            let marks = marks.into_iter().filter(|&(has, _)| has);
            let (mut has, mut used) = (false, false);
            for (_, name) in marks {
                has = true;
                used |= is_used(name);
            }
            if has && !used {
                self.take.by_rule(ByRule::NotInUse);
                return Ok(1);
            }
            rank = Some(0);
        }
        let mut family = None;
        if is_kernel {
            let text = |name: &str| get(route, name).and_then(Node::plain).unwrap_or_default();
            rank = Some(text("metric").parse().unwrap_or(0));
            if !matches!(text("from"), "" | "all" | "default") {
                self.take.by_rule(ByRule::SourceSpecific);
                return Ok(1);
            }
            family = next_hop::family(route);
        }
        let next_hop = next_hop::of(route);
        if next_hop == next_hop::NextHop::Dead {
            self.take.by_rule(ByRule::NotInUse);
            return Ok(1);
        }
        let fields = JsonRoute { route, scope, next_hop };
        let vrf = vrf(route, scope, is_listed && !is_kernel);
        self.said(&TableRecord { place, rank, family, vrf, fields: &fields })
    }
}

/// Returns whether a text may be a prefix or an address.
fn looks(text: &str) -> bool {
    text == "default"
        || text.contains(['.', ':']) && text.starts_with(|c: char| c.is_ascii_hexdigit() || c == ':')
}

/// Returns where the route of an object applies; `None` if it is no route.
fn place<'n>(object: &'n Object<'_>) -> Option<RouteScope<'n>> {
    let text = |names: &[&str]| -> Option<&'n str> {
        let mut found: Option<&str> = None;
        for name in names {
            for (own, value) in object {
                if let Node::Text(text) = value
                    && names::is_same(own, name)
                    && !text.trim().is_empty()
                {
                    // FRRouting writes an address as the prefix, and the network with its length.
                    if text.contains('/') && looks(text) || text == "default" {
                        return Some(text);
                    }
                    // The network of a route of Google Cloud is a link.
                    found = found.filter(|found| looks(found) || !looks(text)).or(Some(&**text));
                }
            }
        }
        found
    };
    if let Some(prefix) = text(names::PREFIX) {
        let has_parts = || object.iter().any(|(_, value)| matches!(value, Node::List(_) | Node::Object(_)));
        if looks(prefix) || !has_parts() {
            let mask =
                || object.iter().find(|(own, _)| names::MASK.iter().any(|name| names::is_same(own, name)));
            return Some(match mask().and_then(|(_, value)| value.plain()) {
                Some(mask) if !prefix.contains('/') && prefix != "default" => {
                    RouteScope::Masked(prefix, mask)
                }
                _ => RouteScope::Prefix(prefix),
            });
        }
    }
    let end = |names: &[&str]| {
        let is_end = |(own, value): &&(Cow<'_, str>, Node<'_>)| {
            names.iter().any(|name| names::is_same(own, name))
                && matches!(value, Node::Text(_) | Node::Number(_))
        };
        object.iter().find(is_end).and_then(|(_, value)| value.plain()).filter(|text| !text.is_empty())
    };
    Some(RouteScope::Range(end(names::FIRST)?, end(names::LAST)?))
}

/// Returns the VRF or the table of a route.
fn vrf<'n>(route: &'n [(Cow<'_, str>, Node<'_>)], scope: &Scope<'n>, is_listed: bool) -> Option<&'n str> {
    let other =
        |name: &'n str| Some(name).filter(|name| !matches!(*name, "default" | "main" | "254" | "253" | ""));
    if get(route, "dst").is_some() {
        return get(route, "table").and_then(Node::plain).and_then(other);
    }
    if let Some(name) = get(route, "vrfName").and_then(Node::plain) {
        return other(name);
    }
    if let Some(name) = scope.around().find_map(|around| around.text("vrfName")) {
        return other(name);
    }
    // NX-OS names it in an object around its routes; Arista EOS puts them under its name, in `vrfs`.
    if let Some(name) = scope.around().find_map(|around| around.text("vrf-name-out")) {
        return other(name);
    }
    let names = || scope.around().map(Around::name);
    if let Some(at) = names().position(|name| name == Some("vrfs")) {
        return names().nth(at.checked_sub(1)?)?.and_then(other);
    }
    // FRRouting puts the routes of each VRF under its name.
    let mut around = scope.around();
    let name = around.next()?.name()?;
    (is_listed
        && around.next().is_some_and(|outer| outer.name().is_none())
        && around.next().is_none()
        && !matches!(name, "routes" | "rib"))
    .then_some(name)
    .and_then(other)
}

/// The fields of an object that is a route, and of those around it.
struct JsonRoute<'a> {
    route: &'a [(Cow<'a, str>, Node<'a>)],
    scope: &'a Scope<'a>,
    next_hop: next_hop::NextHop<'a>,
}

/// Returns the text of a value: those of a list, separated by blanks.
fn joined<'n>(node: &'n Node<'_>) -> Option<Cow<'n, str>> {
    match node {
        Node::List(values) => {
            let texts: Vec<&str> = values.iter().filter_map(Node::plain).collect();
            (!texts.is_empty()).then(|| texts.join(" ").into())
        }
        node => node.plain().map(Cow::Borrowed),
    }
}

/// Returns the value at a path of names and of numbers of list elements, separated by dots. Names may have dots themselves.
fn at<'n, 'a>(object: &'n [(Cow<'a, str>, Node<'a>)], path: &str) -> Option<&'n Node<'a>> {
    if let Some(node) = get(object, path) {
        return Some(node);
    }
    let mut dots = path.match_indices('.').map(|(at, _)| at);
    dots.find_map(|dot| inside(get(object, &path[..dot])?, &path[dot + 1..]))
}

fn inside<'n, 'a>(node: &'n Node<'a>, path: &str) -> Option<&'n Node<'a>> {
    match node {
        Node::Object(fields) => at(fields, path),
        Node::List(values) => {
            let (number, rest) =
                path.split_once('.').map_or((path, None), |(number, rest)| (number, Some(rest)));
            let value = values.get(number.parse::<usize>().ok()?)?;
            rest.map_or(Some(value), |rest| inside(value, rest))
        }
        _ => None,
    }
}

impl JsonRoute<'_> {
    fn field(&self, value: &Value) -> Option<Cow<'_, str>> {
        let fields = || self.route.iter();
        let named = fields()
            .find(|(name, _)| value.is_exactly(name))
            .or_else(|| fields().find(|(name, _)| value.is_column(name)));
        named.and_then(|(_, node)| joined(node))
    }

    fn around(&self, is: impl Fn(&str) -> bool) -> Option<Cow<'_, str>> {
        self.scope.around().find_map(|around| around.find(&is)).map(|(_, text)| text.into())
    }

    fn community_text(&self) -> Option<Cow<'_, str>> {
        let text = |name: &str| {
            let node = get(self.route, name)?;
            node.get("string").map_or_else(|| joined(node), joined)
        };
        match (text("community"), text("largeCommunity")) {
            (Some(plain), Some(large)) => Some(format!("{plain} {large}").into()),
            (plain, large) => plain.or(large),
        }
    }
}

impl Fields for JsonRoute<'_> {
    fn text(&self, value: &Value) -> Option<Cow<'_, str>> {
        match value {
            Value::NextHop => {
                if let Some(next_hop) = self.field(value) {
                    return Some(next_hop);
                }
                match self.next_hop {
                    next_hop::NextHop::Is(next_hop) => Some(next_hop.into()),
                    _ => None,
                }
            }
            Value::AsPath => {
                let path = get(self.route, "path")
                    .or_else(|| get(self.route, "aspath").or_else(|| get(self.route, "as_path")));
                match path {
                    Some(node) => node.get("string").map_or_else(|| joined(node), joined),
                    None => self.field(value).or_else(|| next_hop::as_path(self.route).map(Cow::Owned)),
                }
            }
            Value::Communities => self
                .community_text()
                .or_else(|| self.field(value))
                .map(|text| Cow::Owned(communities(&text)))
                .or_else(|| next_hop::communities(self.route).map(Cow::Owned)),
            Value::Column(name) => {
                at(self.route, name).and_then(joined).or_else(|| self.around(|own| own == &**name))
            }
            value => self.field(value).or_else(|| {
                // What is around a route with a path is the AS of the router.
                let is_of_the_router = *value == Value::OriginAs && self.text(&Value::AsPath).is_some();
                if is_of_the_router { None } else { self.around(|name| value.is_column(name)) }
            }),
        }
    }

    fn first(&self) -> Option<Cow<'_, str>> {
        let is_value = |name: &str| !names::is_place(name) && name != "family";
        let mut own = self.route.iter().filter(|(name, _)| is_value(name));
        // Fields around all routes do not distinguish them. However, the lists of the route itself may.
        let around: Vec<_> = self.scope.around().collect();
        let inner = &around[..around.len().saturating_sub(1)];
        let lists =
            || self.route.iter().filter(|(name, _)| is_value(name)).find_map(|(_, node)| joined(node));
        own.find_map(|(_, node)| first_text(node))
            .or_else(|| inner.iter().find_map(|around| around.find(is_value)).map(|(_, text)| text.into()))
            .or_else(lists)
    }
}

/// Returns the text of a value, or of the first value in an object.
fn first_text<'n>(node: &'n Node<'_>) -> Option<Cow<'n, str>> {
    match node {
        Node::Object(fields) => fields.iter().find_map(|(_, node)| first_text(node)),
        Node::List(_) => None,
        node => joined(node),
    }
}

/// A prefix of a list: its fields are those around the list.
struct Element<'a> {
    scope: &'a Scope<'a>,
    list: Option<&'a str>,
}

impl Fields for Element<'_> {
    fn text(&self, value: &Value) -> Option<Cow<'_, str>> {
        let found = self.scope.around().find_map(|around| around.find(|name| value.is_column(name)));
        found.map(|(_, text)| text.into())
    }

    fn first(&self) -> Option<Cow<'_, str>> {
        let around = || self.scope.around();
        let named = around().find_map(|around| around.find(|name| name == "name"));
        let named =
            named.or_else(|| around().find_map(|around| around.find(|name| name.eq_ignore_ascii_case("id"))));
        // Otherwise the name of the list is the label of its prefixes.
        named.map(|(_, text)| text).or(self.list).map(Cow::Borrowed)
    }
}

/// A value under a prefix.
struct PrefixedValue<'a> {
    value: &'a Node<'a>,
}

impl Fields for PrefixedValue<'_> {
    fn text(&self, value: &Value) -> Option<Cow<'_, str>> {
        match value {
            Value::NextHop => joined(self.value),
            Value::Column(name) if &**name == "value" => joined(self.value),
            _ => None,
        }
    }
}

/// Returns the family of an address.
pub(super) fn family_of(address: &str) -> Option<Family> {
    let address = parse_address(address.as_bytes()).ok()?;
    Some(if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 })
}
