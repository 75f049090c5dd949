//! The next hop of a route, and its path, as Linux, FRRouting, GoBGP, OpenBGPD, birdwatcher, Arista EOS, NX-OS,
//! Azure and Google Cloud write them.

use std::borrow::Cow;

use fibula::net::Family;

use super::parse::{Node, get};
use super::routes::family_of;

type Fields<'a> = [(Cow<'a, str>, Node<'a>)];

/// The next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextHop<'a> {
    Is(&'a str),
    /// No next hop is in use.
    Dead,
    /// The route names none in a way that routers do.
    Unnamed,
}

/// Returns the next hop of a route. Of several the first that is in use stands for all.
pub(super) fn of<'n>(route: &'n Fields<'_>) -> NextHop<'n> {
    let text = |name: &str| get(route, name).and_then(Node::plain);
    if let Some(kind @ ("unreachable" | "blackhole" | "prohibit" | "throw")) = text("type") {
        return NextHop::Is(kind);
    }
    if let Some(all) = listed(route) {
        let is = |next_hop: &Fields<'_>, name: &str| get(next_hop, name).is_some_and(Node::is_true);
        let find = |used: &dyn Fn(&Fields<'_>) -> bool| all.iter().copied().find(|next_hop| used(next_hop));
        // FRRouting lists a recursive next hop and then those that it resolves to; those in the FIB are what packets take.
        let used = find(&|hop| is(hop, "fib") && !is(hop, "recursive") && !is(hop, "duplicate"))
            .or_else(|| {
                find(&|hop| is(hop, "used") || get(hop, "ubest").and_then(Node::plain) == Some("true"))
            })
            .or_else(|| find(&|hop| is(hop, "active") && !is(hop, "recursive")))
            .or_else(|| find(&|hop| is(hop, "active")))
            .or_else(|| find(&|hop| !flagged(hop, &["dead", "linkdown"])))
            .or_else(|| find(&|hop| !flagged(hop, &["dead"])));
        return match used {
            Some(next_hop) => in_list(next_hop).map_or(NextHop::Unnamed, NextHop::Is),
            None if all.is_empty() => NextHop::Unnamed,
            None => NextHop::Dead,
        };
    }
    if flagged(route, &["dead"]) {
        return NextHop::Dead;
    }
    if let Some(attributes) = get(route, "attrs").and_then(Node::list) {
        let named = attributes.iter().find_map(|attribute| attribute.get("nexthop")?.plain());
        if let Some(next_hop) = named {
            return NextHop::Is(next_hop);
        }
    }
    let is_kernel = get(route, "dst").is_some();
    let named = single(route).or_else(|| text("type").filter(|_| is_kernel));
    named.map_or(NextHop::Unnamed, NextHop::Is)
}

/// Returns the next hops of a route that lists them: FRRouting and Linux, Arista EOS, and NX-OS, which writes a list of one as its element.
fn listed<'n>(route: &'n Fields<'_>) -> Option<Vec<&'n Fields<'n>>> {
    let paths = || get(route, "TABLE_path")?.get("ROW_path");
    match get(route, "nexthops").or_else(|| get(route, "vias")).or_else(paths)? {
        Node::List(next_hops) => Some(next_hops.iter().filter_map(Node::object).collect()),
        next_hop => Some(vec![next_hop.object()?]),
    }
}

fn flagged(route: &Fields<'_>, flags: &[&str]) -> bool {
    let list = get(route, "flags").and_then(Node::list).unwrap_or_default();
    list.iter().filter_map(Node::plain).any(|flag| flags.contains(&flag))
}

/// Returns the next hop that an object names itself.
fn single<'n>(object: &'n Fields<'_>) -> Option<&'n str> {
    let is = |name: &str| get(object, name).is_some_and(Node::is_true);
    if is("blackhole") {
        return Some("blackhole");
    }
    if is("adminProhibited") || is("prohibit") {
        return Some("prohibit");
    }
    if is("unreachable") || is("reject") {
        return Some("unreachable");
    }
    let text = |name: &str| {
        get(object, name).and_then(|node| match node {
            Node::Text(text) if !text.is_empty() => Some(&**text),
            _ => None,
        })
    };
    let via = || get(object, "via").and_then(|via| via.get("host")?.plain());
    ["gateway", "nexthopAddr", "ipnexthop", "exit_nexthop"]
        .into_iter()
        .find_map(text)
        .or_else(via)
        .or_else(|| ["interfaceName", "dev"].into_iter().find_map(text))
        .or_else(|| object.iter().find_map(|(name, node)| typed(name, node)))
}

/// Returns the text of a field such as `nextHopIpAddress`, `nextHopType` or `nextHopGateway`; of a list its first one.
fn typed<'n>(name: &str, node: &'n Node<'_>) -> Option<&'n str> {
    let begins = name.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("nexthop"));
    let text = match node {
        Node::List(values) => values.first(),
        node => Some(node),
    };
    match text {
        Some(Node::Text(text)) if begins && !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Returns a next hop of a list. The names of its address and of its device mean something else in other objects.
fn in_list<'n>(next_hop: &'n Fields<'_>) -> Option<&'n str> {
    let text = |name: &str| get(next_hop, name)?.plain().filter(|text| !text.is_empty());
    text("ip").or_else(|| single(next_hop)).or_else(|| ["interface", "ifname"].into_iter().find_map(text))
}

/// Returns the family of a route of Linux, if its words give it.
pub(super) fn family(route: &Fields<'_>) -> Option<Family> {
    if get(route, "pref").is_some() || get(route, "error").is_some() {
        return Some(Family::Ipv6);
    }
    let first = get(route, "nexthops").and_then(Node::list).and_then(|next_hops| next_hops.first()?.object());
    let via = |object: &Fields<'_>| {
        // A next hop of the other family is named with its own.
        match get(object, "via")?.get("family")?.plain()? {
            "inet6" => Some(Family::Ipv4),
            "inet" => Some(Family::Ipv6),
            _ => None,
        }
    };
    via(route).or_else(|| first.and_then(via)).or_else(|| family_of(get(route, "prefsrc")?.plain()?))
}

/// Returns the AS path of a route of Arista EOS, whose last word is the origin, of birdwatcher, or of GoBGP.
pub(super) fn as_path(route: &Fields<'_>) -> Option<String> {
    if let Some(path) = get(route, "asPathEntry").and_then(|entry| entry.get("asPath")?.plain()) {
        return Some(path.trim_end_matches([' ', 'i', 'e', '?']).to_owned());
    }
    if let Some(path) = get(route, "bgp").and_then(|bgp| bgp.get("as_path")?.list()) {
        return Some(path.iter().filter_map(Node::plain).collect::<Vec<_>>().join(" "));
    }
    let attributes = get(route, "attrs")?.list()?;
    let segments = attributes.iter().find_map(|attribute| attribute.get("as_paths")?.list())?;
    let mut path = String::new();
    for segment in segments {
        let numbers = segment.get("asns").and_then(Node::list).unwrap_or_default();
        let numbers: Vec<&str> = numbers.iter().filter_map(Node::plain).collect();
        if !path.is_empty() {
            path.push(' ');
        }
        match segment.get("segment_type").and_then(Node::plain) {
            Some("1") => path.push_str(&format!("{{{}}}", numbers.join(","))),
            _ => path.push_str(&numbers.join(" ")),
        }
    }
    Some(path)
}

/// Returns the communities of a route of GoBGP.
pub(super) fn communities(route: &Fields<'_>) -> Option<String> {
    let attributes = get(route, "attrs")?.list()?;
    let list = attributes.iter().find_map(|attribute| attribute.get("communities")?.list())?;
    let all: Vec<String> = list
        .iter()
        .filter_map(|one| one.plain()?.parse::<u32>().ok())
        .map(|number| format!("{}:{}", number >> 16, number & 0xffff))
        .collect();
    Some(all.join(" "))
}
