//! `fibula route ... --router`: the routes of a router that runs.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use fibula_router::control::{self, RoutesOf};
use serde_json::{Value, json};

use super::args::{GetArgs, RouterArgs, ShowArgs};
use super::query::{self, exit_code, nothing};
use crate::answer::Answer;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::objects::csv_field;
use crate::options::Format;

/// Returns the socket of the router, and the VRF that is wanted.
fn target(args: &RouterArgs) -> (&Path, &str) {
    let socket = args.router.as_deref().unwrap_or(Path::new(fibula_router::config::SOCKET));
    (socket, args.vrf.as_deref().unwrap_or("default"))
}

pub(super) fn get(args: &GetArgs) -> Result<ExitCode, Failure> {
    let (socket, vrf) = target(&args.router);
    let addresses = &args.lookup.addresses;
    if addresses.is_empty() {
        return Err(Failure::WrongUse("--router: name the addresses to look up".to_owned()));
    }
    check_format(&args.router, args.lookup.output.format())?;
    let mut out = Answer::new(args.lookup.how.output.as_deref(), [])?;
    let changes = if args.router.changes { " changes" } else { "" };
    let mut rows = Rows::new(&mut out, args.lookup.output.format(), "address,prefix,next_hop,interface")?;
    let mut found = 0;
    for address in addresses {
        let answer = control::ask(socket, &format!("get {vrf} {address}{changes}"));
        let answer = answer.map_err(|error| control_failure(socket, &error))?;
        if let Some(error) = answer["error"].as_str() {
            return Err(Failure::BadInput(error.to_owned()));
        }
        found += u64::from(!answer["prefix"].is_null());
        rows.add(Some(address), &answer)?;
    }
    rows.end()?;
    out.finish()?;
    Ok(exit_code(found))
}

/// Changes are several to a route, for which a row of CSV has no place.
fn check_format(args: &RouterArgs, format: Format) -> Result<(), Failure> {
    if args.changes && format == Format::Csv {
        return Err(Failure::WrongUse("--changes: not with --format csv; use json".to_owned()));
    }
    Ok(())
}

pub(super) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let (socket, vrf) = target(&args.router);
    check_format(&args.router, args.output.format())?;
    let messages = Messages::new(args.quiet.quiet);
    let prefixes: Vec<_> = match query::prefixes(args)? {
        Some(prefixes) => prefixes.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut out = args.output.open([])?;
    let mut rows = Rows::new(&mut out, args.output.format(), "prefix,next_hop,interface")?;
    for prefix in prefixes {
        let question = RoutesOf {
            vrf,
            prefix,
            covers: args.include_super,
            inside: args.include_sub,
            feed: args.feed.as_deref(),
            changes: args.router.changes,
        };
        let (before, mut unwritten) = (rows.count, None);
        let listed = control::list_routes(socket, &question, |route| {
            rows.add(None, route).map_err(|error| {
                unwritten = Some(error);
                io::ErrorKind::BrokenPipe.into()
            })
        });
        match (unwritten, listed) {
            (Some(error), _) => return Err(error.into()),
            (None, Err(error)) => return Err(control_failure(socket, &error)),
            (None, Ok(())) => {}
        }
        if let Some(prefix) = prefix.filter(|_| rows.count == before) {
            messages.note(nothing(&prefix, longest(socket, vrf, &prefix)?.as_deref()));
        }
    }
    let count = rows.end()?;
    out.finish()?;
    Ok(exit_code(count))
}

/// Returns the longest route that contains a prefix.
fn longest(socket: &Path, vrf: &str, prefix: &fibula::net::IpPrefix) -> Result<Option<String>, Failure> {
    let question = RoutesOf { vrf, prefix: Some(*prefix), covers: true, ..RoutesOf::default() };
    let mut longest = None;
    control::list_routes(socket, &question, |route| {
        longest = route["prefix"].as_str().map(str::to_owned);
        Ok(())
    })
    .map_err(|error| control_failure(socket, &error))?;
    Ok(longest)
}

fn control_failure(socket: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        // The router's own words.
        io::ErrorKind::Other => Failure::BadInput(error.to_string()),
        _ => crate::router::no_answer(socket, error),
    }
}

/// Rows of routes, as the router answers them.
struct Rows<'o> {
    out: &'o mut dyn Write,
    format: Format,
    count: u64,
}

impl<'o> Rows<'o> {
    fn new(out: &'o mut dyn Write, format: Format, names: &str) -> io::Result<Self> {
        match format {
            Format::Csv => writeln!(out, "{names}")?,
            Format::Json => out.write_all(b"[")?,
            Format::Text | Format::JsonLine => {}
        }
        Ok(Self { out, format, count: 0 })
    }

    fn add(&mut self, address: Option<&str>, route: &Value) -> io::Result<()> {
        self.count += 1;
        let prefix = route["prefix"].as_str();
        let next_hop = &route["next_hop"];
        match (self.format, address) {
            (Format::Text, address) => {
                match (address, prefix, next_hop) {
                    (Some(address), Some(prefix), _) => {
                        writeln!(self.out, "{address} {prefix} {}", text(next_hop))?;
                    }
                    (Some(address), None, _) => writeln!(self.out, "{address} no route")?,
                    (None, prefix, Value::Null) => writeln!(self.out, "{} no route", prefix.unwrap_or(""))?,
                    (None, prefix, _) => {
                        writeln!(self.out, "{} {}", prefix.unwrap_or(""), text(next_hop))?;
                    }
                }
                route["changes"].as_array().into_iter().flatten().try_for_each(|change| self.change(change))
            }
            (Format::Csv, address) => {
                if let Some(address) = address {
                    write!(self.out, "{address},")?;
                }
                let (via, interface) = cells(next_hop);
                writeln!(self.out, "{},{via},{interface}", prefix.unwrap_or(""))
            }
            (Format::Json | Format::JsonLine, address) => {
                let mut line = match address {
                    Some(address) => json!({ "address": address, "prefix": prefix, "next_hop": next_hop }),
                    None => route.clone(),
                };
                if let Some(changes) = route.get("changes") {
                    line["changes"] = changes.clone();
                }
                match self.format {
                    Format::Json if self.count == 1 => write!(self.out, "\n  {line}"),
                    Format::Json => write!(self.out, ",\n  {line}"),
                    _ => writeln!(self.out, "{line}"),
                }
            }
        }
    }

    fn change(&mut self, change: &Value) -> io::Result<()> {
        let word = |name: &str| change[name].as_str();
        let prefix = word("prefix").map(|prefix| format!(" {prefix}")).unwrap_or_default();
        let by = word("feed")
            .map_or("the configuration or an interface".to_owned(), |feed| format!("feed {feed}"));
        let to = match &change["next_hop"] {
            Value::Null => String::new(),
            to => format!(": {}", text(to)),
        };
        let metric = change["metric"].as_u64().filter(|&metric| metric > 0);
        let metric = metric.map(|metric| format!(" metric {metric}")).unwrap_or_default();
        let ago = change["seconds_ago"].as_f64().unwrap_or(0.0);
        writeln!(self.out, "  {ago:.3} s ago{prefix} {} by {by}{to}{metric}", word("change").unwrap_or(""))
    }

    fn end(self) -> io::Result<u64> {
        if self.format == Format::Json {
            self.out.write_all(if self.count > 0 { b"\n]\n" } else { b"]\n" })?;
        }
        Ok(self.count)
    }
}

fn field<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value[name].as_str()
}

/// Returns a next hop in the words of iproute2.
pub(crate) fn text(next_hop: &Value) -> String {
    let way = |way: &Value| {
        let via = field(way, "via").map(|via| format!("via {via}"));
        let device = field(way, "interface").map(|name| format!("dev {name}"));
        via.into_iter().chain(device).collect::<Vec<_>>().join(" ")
    };
    match next_hop {
        Value::String(word) => word.clone(),
        Value::Array(members) => {
            let member = |member: &Value| format!("nexthop {} weight {}", way(member), member["weight"]);
            members.iter().map(member).collect::<Vec<_>>().join(" ")
        }
        Value::Object(object) => match object.get("next_hop_object") {
            Some(id) => format!("nhid {id}"),
            None => way(next_hop),
        },
        _ => String::new(),
    }
}

/// Returns a next hop as two cells of CSV: gateways, and interfaces. Those of a group are separated by spaces.
fn cells(next_hop: &Value) -> (String, String) {
    let way = |way: &Value| {
        (
            field(way, "via").unwrap_or("connected").to_owned(),
            field(way, "interface").unwrap_or("").to_owned(),
        )
    };
    let (via, interface) = match next_hop {
        Value::String(word) => (word.clone(), String::new()),
        Value::Array(members) => {
            let (vias, interfaces): (Vec<_>, Vec<_>) = members.iter().map(way).unzip();
            (vias.join(" "), interfaces.join(" "))
        }
        Value::Object(_) => way(next_hop),
        _ => Default::default(),
    };
    (via, csv_field(&interface).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(format: Format, address: Option<&str>) -> String {
        let mut out = Vec::new();
        let names =
            if address.is_some() { "address,prefix,next_hop,interface" } else { "prefix,next_hop,interface" };
        let mut rows = Rows::new(&mut out, format, names).unwrap();
        for next_hop in [
            json!({ "via": "10.0.0.1", "interface": "left" }),
            json!({ "interface": "a,b" }),
            json!([{ "via": "10.0.0.1", "interface": "left", "weight": 2 }, { "interface": "right", "weight": 1 }]),
            json!("blackhole"),
        ] {
            rows.add(address, &json!({ "prefix": "10.1.0.0/16", "next_hop": next_hop })).unwrap();
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
        assert_eq!(rows(Format::JsonLine, None).lines().count(), 4);
    }

    #[test]
    fn changes_follow_their_route() {
        let mut out = Vec::new();
        let mut rows = Rows::new(&mut out, Format::Text, "").unwrap();
        let via = json!({ "via": "10.0.0.1", "interface": "left" });
        let changes = json!([
            { "seconds_ago": 1.5, "change": "removed", "feed": "zebra", "metric": 20, "next_hop": via },
            { "seconds_ago": 60.0, "change": "replaced", "feed": null, "metric": 0, "next_hop": null },
        ]);
        rows.add(None, &json!({ "prefix": "10.1.0.0/16", "next_hop": null, "changes": changes })).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "10.1.0.0/16 no route\n  1.500 s ago removed by feed zebra: via 10.0.0.1 dev left metric 20\n  \
             60.000 s ago replaced by the configuration or an interface\n"
        );
    }

    #[test]
    fn an_address_without_a_route_is_a_row_too() {
        let mut out = Vec::new();
        let mut rows = Rows::new(&mut out, Format::Text, "").unwrap();
        rows.add(Some("192.0.2.1"), &json!({ "prefix": null, "next_hop": null })).unwrap();
        assert_eq!(out, b"192.0.2.1 no route\n");
    }
}
