//! `fibula route ... --router`: the routes of a router that runs.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;

use fibula::net::IpPrefix;
use fibula_router::api::{Change, FoundRoute, ListedRoute, Member, NextHop, Way};
use fibula_router::control::client::{self, RoutesOf};
use serde::Serialize;

use super::args::{GetArgs, RouterTarget, ShowArgs};
use super::query::{self, exit_code, nothing};
use crate::answer::Answer;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::objects::csv_field;
use crate::options::{Format, SourceArgs};

/// Returns the socket of the router, and the VRF that is wanted.
fn target<'a>(args: &'a RouterTarget, source: &'a SourceArgs) -> (&'a Path, &'a str) {
    let socket = args.socket().unwrap_or(Path::new(fibula_router::config::SOCKET));
    (socket, source.feed.reading.vrf.as_deref().unwrap_or("default"))
}

pub(super) fn get(args: &GetArgs) -> Result<ExitCode, Failure> {
    let (socket, vrf) = target(&args.router, &args.lookup.source);
    let addresses = &args.lookup.addresses;
    if addresses.is_empty() {
        return Err(Failure::WrongUse("--router: name the addresses to look up".to_owned()));
    }
    check_format(&args.router, args.lookup.rows()?)?;
    let mut out = Answer::new(args.lookup.how.output.as_deref(), [])?;
    let mut rows = RouterRows::new(&mut out, args.lookup.rows()?, "address,prefix,next_hop,interface")?;
    let mut found = 0;
    for address in addresses {
        let not_an_address = |_| Failure::BadInput(format!("'{address}' is not an IP address"));
        let parsed: IpAddr = address.parse().map_err(not_an_address)?;
        let route = client::route_of(socket, vrf, parsed, args.router.changes)?.answer;
        found += u64::from(route.prefix.is_some());
        rows.add_found(address, &route)?;
    }
    rows.end()?;
    out.finish()?;
    Ok(exit_code(found))
}

/// Changes are several to a route, for which a row of CSV has no place.
fn check_format(args: &RouterTarget, format: Format) -> Result<(), Failure> {
    if args.changes && format == Format::Csv {
        return Err(Failure::WrongUse("--changes: not with --format csv; use json".to_owned()));
    }
    Ok(())
}

pub(super) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let (socket, vrf) = target(&args.router, &args.source);
    check_format(&args.router, args.output.format())?;
    let messages = Messages::new(args.quiet.quiet);
    let prefixes: Vec<_> = match query::prefixes(args)? {
        Some(prefixes) => prefixes.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut out = args.output.open([])?;
    let mut rows = RouterRows::new(&mut out, args.output.format(), "prefix,next_hop,interface")?;
    for prefix in prefixes {
        let question = RoutesOf {
            vrf,
            prefix,
            covers: args.include_super,
            inside: args.include_sub,
            feed: args.feed.as_deref(),
            changes: args.router.changes,
        };
        let before = rows.count;
        client::list_routes(socket, &question, |route| {
            rows.add_listed(&route.answer, &route.line).map_err(Failure::from)
        })?;
        if let Some(prefix) = prefix.filter(|_| rows.count == before) {
            messages.note(nothing(&prefix, longest(socket, vrf, &prefix)?.as_deref()));
        }
    }
    let count = rows.end()?;
    out.finish()?;
    Ok(exit_code(count))
}

/// Returns the longest route that contains a prefix.
fn longest(socket: &Path, vrf: &str, prefix: &IpPrefix) -> Result<Option<String>, Failure> {
    let question = RoutesOf { vrf, prefix: Some(*prefix), covers: true, ..RoutesOf::default() };
    let mut longest = None;
    client::list_routes(socket, &question, |route| {
        longest = Some(route.answer.prefix.to_string());
        Ok::<_, Failure>(())
    })?;
    Ok(longest)
}

/// A route, or an address without one.
struct RouteRow<'r> {
    address: Option<&'r str>,
    prefix: Option<IpPrefix>,
    next_hop: Option<&'r NextHop>,
    changes: &'r [Change],
}

/// Rows of routes, as the router answers them.
struct RouterRows<'o> {
    out: &'o mut dyn Write,
    format: Format,
    count: u64,
}

impl<'o> RouterRows<'o> {
    fn new(out: &'o mut dyn Write, format: Format, names: &str) -> io::Result<Self> {
        match format {
            Format::Csv => writeln!(out, "{names}")?,
            Format::Json => out.write_all(b"[")?,
            Format::Text | Format::JsonLine => {}
        }
        Ok(Self { out, format, count: 0 })
    }

    /// Writes the route of an address.
    fn add_found(&mut self, address: &str, route: &FoundRoute) -> io::Result<()> {
        #[derive(Serialize)]
        struct WithAddress<'r> {
            address: &'r str,
            #[serde(flatten)]
            route: &'r FoundRoute,
        }

        let json = serde_json::to_string(&WithAddress { address, route })?;
        let changes = route.changes.as_deref().unwrap_or_default();
        let (prefix, next_hop) = (route.prefix, route.next_hop.as_ref());
        self.add(&RouteRow { address: Some(address), prefix, next_hop, changes }, &json)
    }

    /// Writes a route of a listing. Its JSON is the router's line.
    fn add_listed(&mut self, route: &ListedRoute, line: &str) -> io::Result<()> {
        let changes = route.changes.as_deref().unwrap_or_default();
        let (prefix, next_hop) = (Some(route.prefix), route.next_hop.as_ref());
        self.add(&RouteRow { address: None, prefix, next_hop, changes }, line)
    }

    /// Writes a row, or its JSON.
    fn add(&mut self, row: &RouteRow<'_>, json: &str) -> io::Result<()> {
        self.count += 1;
        let RouteRow { address, prefix, next_hop, changes } = *row;
        let prefix = prefix.map(|prefix| prefix.to_string());
        match self.format {
            Format::Text => {
                let words = [address, prefix.as_deref()];
                for word in words.into_iter().flatten() {
                    write!(self.out, "{word} ")?;
                }
                let to = match (next_hop, words) {
                    (Some(next_hop), _) => text(next_hop),
                    // The route exists, although its next hop does not any more.
                    (None, [Some(_), Some(_)]) => String::new(),
                    (None, _) => "no route".to_owned(),
                };
                writeln!(self.out, "{to}")?;
                changes.iter().try_for_each(|change| self.change(change))
            }
            Format::Csv => {
                if let Some(address) = address {
                    write!(self.out, "{address},")?;
                }
                let (via, interface) = next_hop.map(cells).unwrap_or_default();
                writeln!(self.out, "{},{via},{interface}", prefix.unwrap_or_default())
            }
            Format::Json if self.count == 1 => write!(self.out, "\n  {json}"),
            Format::Json => write!(self.out, ",\n  {json}"),
            Format::JsonLine => writeln!(self.out, "{json}"),
        }
    }

    fn change(&mut self, change: &Change) -> io::Result<()> {
        let prefix = change.prefix.map(|prefix| format!(" {prefix}")).unwrap_or_default();
        let by = change.feed.as_ref();
        let by =
            by.map_or_else(|| "the configuration or an interface".to_owned(), |feed| format!("feed {feed}"));
        let to = change.next_hop.as_ref().map(|to| format!(": {}", text(to))).unwrap_or_default();
        let metric = match change.metric {
            0 => String::new(),
            metric => format!(" metric {metric}"),
        };
        let (ago, what) = (change.seconds_ago, change.change.name());
        writeln!(self.out, "  {ago:.3} s ago{prefix} {what} by {by}{to}{metric}")
    }

    fn end(self) -> io::Result<u64> {
        if self.format == Format::Json {
            self.out.write_all(if self.count > 0 { b"\n]\n" } else { b"]\n" })?;
        }
        Ok(self.count)
    }
}

/// Returns a next hop in the words of iproute2.
pub(crate) fn text(next_hop: &NextHop) -> String {
    let way = |way: &Way| {
        let via = way.via.map(|via| format!("via {via}"));
        let device = way.interface.as_ref().map(|name| format!("dev {name}"));
        via.into_iter().chain(device).collect::<Vec<_>>().join(" ")
    };
    match next_hop {
        NextHop::Word(word) => word.name().to_owned(),
        NextHop::Object { next_hop_object } => format!("nhid {next_hop_object}"),
        NextHop::Way(only) => way(only),
        NextHop::Group(members) => {
            let member = |member: &Member| format!("nexthop {} weight {}", way(&member.way), member.weight);
            members.iter().map(member).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Returns a next hop as two cells of CSV: gateways, and interfaces. Those of a group are separated by spaces.
fn cells(next_hop: &NextHop) -> (String, String) {
    let way = |way: &Way| {
        let via = way.via.map_or_else(|| "connected".to_owned(), |via| via.to_string());
        (via, way.interface.clone().unwrap_or_default())
    };
    let (via, interface) = match next_hop {
        NextHop::Word(word) => (word.name().to_owned(), String::new()),
        NextHop::Object { .. } => (text(next_hop), String::new()),
        NextHop::Way(only) => way(only),
        NextHop::Group(members) => {
            let (vias, interfaces): (Vec<_>, Vec<_>) = members.iter().map(|member| way(&member.way)).unzip();
            (vias.join(" "), interfaces.join(" "))
        }
    };
    (via, csv_field(&interface).into_owned())
}

#[cfg(test)]
mod tests {
    use fibula_router::api;
    use serde_json::{Value, json};

    use super::*;

    fn listed(rows: &mut RouterRows<'_>, line: &str) {
        let route: ListedRoute = api::read(line).unwrap();
        rows.add_listed(&route, line).unwrap();
    }

    fn rows(format: Format, address: Option<&str>) -> String {
        let mut out = Vec::new();
        let names =
            if address.is_some() { "address,prefix,next_hop,interface" } else { "prefix,next_hop,interface" };
        let mut rows = RouterRows::new(&mut out, format, names).unwrap();
        for next_hop in [
            r#"{"via":"10.0.0.1","interface":"left"}"#,
            r#"{"interface":"a,b"}"#,
            r#"[{"via":"10.0.0.1","interface":"left","weight":2},{"interface":"right","weight":1}]"#,
            r#""blackhole""#,
        ] {
            let line = format!(r#"{{"prefix":"10.1.0.0/16","next_hop":{next_hop}}}"#);
            match address {
                Some(address) => rows.add_found(address, &api::read(&line).unwrap()).unwrap(),
                None => listed(&mut rows, &line),
            }
        }
        rows.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn next_hops_are_words_of_iproute2_or_cells() {
        assert_eq!(
            rows(Format::Text, None),
            "10.1.0.0/16 via 10.0.0.1 dev left\n10.1.0.0/16 dev a,b\n\
             10.1.0.0/16 nexthop via 10.0.0.1 dev left weight 2 nexthop dev right weight 1\n10.1.0.0/16 blackhole\n"
        );
        assert_eq!(
            rows(Format::Csv, Some("10.1.1.1")),
            "address,prefix,next_hop,interface\n10.1.1.1,10.1.0.0/16,10.0.0.1,left\n\
             10.1.1.1,10.1.0.0/16,connected,\"a,b\"\n10.1.1.1,10.1.0.0/16,10.0.0.1 connected,left right\n\
             10.1.1.1,10.1.0.0/16,blackhole,\n"
        );
        let whole: Value = serde_json::from_str(&rows(Format::Json, Some("10.1.1.1"))).unwrap();
        assert_eq!(
            whole[3],
            json!({ "address": "10.1.1.1", "prefix": "10.1.0.0/16", "next_hop": "blackhole" })
        );
        let lines = rows(Format::JsonLine, None);
        assert_eq!(lines.lines().count(), 4);
        assert_eq!(lines.lines().last(), Some(r#"{"prefix":"10.1.0.0/16","next_hop":"blackhole"}"#));
        let lines = rows(Format::JsonLine, Some("10.1.1.1"));
        let line = r#"{"address":"10.1.1.1","prefix":"10.1.0.0/16","next_hop":"blackhole"}"#;
        assert_eq!(lines.lines().last(), Some(line));
    }

    #[test]
    fn changes_follow_their_route() {
        let mut out = Vec::new();
        let mut rows = RouterRows::new(&mut out, Format::Text, "").unwrap();
        let line = concat!(
            r#"{"prefix":"10.1.0.0/16","next_hop":null,"changes":["#,
            r#"{"seconds_ago":1.5,"change":"removed","feed":"zebra","metric":20,"next_hop":{"via":"10.0.0.1","interface":"left"}},"#,
            r#"{"seconds_ago":60.0,"change":"replaced","feed":null,"metric":0,"next_hop":null}]}"#
        );
        listed(&mut rows, line);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "10.1.0.0/16 no route\n  1.500 s ago removed by feed zebra: via 10.0.0.1 dev left metric 20\n  \
             60.000 s ago replaced by the configuration or an interface\n"
        );
    }

    #[test]
    fn an_address_without_a_route_is_a_row_too() {
        let mut out = Vec::new();
        let mut rows = RouterRows::new(&mut out, Format::Text, "").unwrap();
        rows.add_found("192.0.2.1", &api::read(r#"{"prefix":null,"next_hop":null}"#).unwrap()).unwrap();
        assert_eq!(out, b"192.0.2.1 no route\n");
    }
}
