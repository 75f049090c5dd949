//! Texts in which a line alone is not a route: CSV with a header, JSON, and what routers and Linux print.
//!
//! A document takes lines and gives records: a prefix, or a range of addresses, and named fields. Which of the fields
//! becomes the label of a route, [`Value`] says. Does no I/O.

mod bird;
mod csv;
mod ip_route;
mod json;

use std::borrow::Cow;
use std::net::IpAddr;

use fibula::net::{HostBits, IpPrefix, prefixes_of};

use crate::filter::Filter;
use crate::next_hops::Label;
use crate::text::{LineError, LineErrorKind};
use crate::value::{self, Value};

/// A kind of documents.
struct Kind {
    /// Returns the document that begins with this line, if it is of this kind.
    recognise: fn(&str) -> Option<Box<dyn Document>>,
}

/// All kinds. To add one: a file that defines its `KIND`, and a line here.
const KINDS: &[Kind] = &[json::KIND, bird::KIND, ip_route::KIND, csv::KIND];

/// A text that is being read.
pub(crate) trait Document {
    /// Takes a line without its line feed, and calls `each` for the records that are then complete.
    fn line(&mut self, line: &str, each: &mut dyn FnMut(Record<'_>) -> Reading) -> Reading;
}

/// The outcome for a line.
pub(crate) type Reading = Result<(), LineError>;

/// Names of fields that hold the prefix.
const PREFIX: &[&str] = &[
    "prefix",
    "network",
    "cidr",
    "subnet",
    "route",
    "dst",
    "ip_prefix",
    "ipv6_prefix",
    "ipv4Prefix",
    "ipv6Prefix",
];
/// Names of fields that hold the first and the last address of a range.
const FIRST: &[&str] = &["start", "first", "start_ip", "range_start", "ip_from", "from"];
const LAST: &[&str] = &["end", "last", "end_ip", "range_end", "ip_to", "to"];

/// Returns the document that begins with this line.
pub(crate) fn recognise(line: &[u8]) -> Option<Box<dyn Document>> {
    let line = std::str::from_utf8(line).ok()?;
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    KINDS.iter().find_map(|kind| (kind.recognise)(line))
}

/// A route of a document: its fields by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record<'a> {
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Record<'a> {
    fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        self.fields.push((name.into(), value.into()));
    }

    fn get(&self, names: &[&str]) -> Option<&str> {
        let found =
            names.iter().find_map(|name| self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns whether it has a prefix or a range.
    fn is_route(&self) -> bool {
        self.get(PREFIX).is_some() || (self.get(FIRST).is_some() && self.get(LAST).is_some())
    }

    fn text(&self, value: &Value) -> Option<&str> {
        let named = self.fields.iter().find(|(name, _)| value.is_column(name));
        let default = || match value {
            // What a table of another kind leads to: the first field that does not say where.
            Value::NextHop => {
                let place = |name: &str| {
                    [PREFIX, FIRST, LAST].concat().iter().any(|one| name.eq_ignore_ascii_case(one))
                };
                self.fields.iter().find(|(name, _)| !place(name) && name != "family")
            }
            _ => None,
        };
        named.or_else(default).map(|(_, value)| &**value)
    }

    fn value(&self, value: &Value) -> Label {
        match self.text(value) {
            Some(text) if *value == Value::OriginAs => value::origins(text),
            Some(text) => Label::of_text(text),
            // The number that a table leads to may be an AS.
            None if *value == Value::OriginAs => value::plain(&self.value(&Value::NextHop), value),
            None => Label::Absent,
        }
    }

    /// Returns the label for these values.
    pub(crate) fn label(&self, values: &[Value]) -> Label {
        value::label(values, |value| self.value(value))
    }

    /// Returns whether a filter takes the route.
    pub(crate) fn passes(&self, filter: &Filter) -> bool {
        let text = |value| self.text(&value).unwrap_or_default();
        filter.passes_fields(&self.value(&Value::OriginAs), text(Value::AsPath), text(Value::Communities))
    }

    /// Calls `each` for the prefixes of the route: several, if it is a range that is none.
    pub(crate) fn prefixes<E: From<LineError>>(
        &self,
        host_bits: HostBits,
        mut each: impl FnMut(IpPrefix) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(text) = self.get(PREFIX) {
            if text == "default" {
                let v6 = self.text(&Value::NextHop).is_some_and(|next_hop| next_hop.contains(':'));
                let all: IpAddr = if v6 { [0; 16].into() } else { [0; 4].into() };
                return each(
                    IpPrefix::try_from((all, 0))
                        .map_err(|error| LineError::new(LineErrorKind::Prefix(error), 0))?,
                );
            }
            let prefix = IpPrefix::parse(text.as_bytes(), host_bits);
            return each(prefix.map_err(|error| LineError::new(LineErrorKind::Prefix(error), 0))?);
        }
        let (Some(first), Some(last)) = (self.get(FIRST), self.get(LAST)) else {
            return Err(LineError::new(LineErrorKind::MissingField("prefix"), 0).into());
        };
        let parse = |text: &str| {
            fibula::net::parse_address(text.as_bytes())
                .map_err(|error| LineError::new(LineErrorKind::RangeAddress(error), 0))
        };
        match (parse(first)?, parse(last)?) {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
                prefixes_of::<u32, _>(first..=last).try_for_each(|prefix| each(prefix.into()))
            }
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
                prefixes_of::<u128, _>(first..=last).try_for_each(|prefix| each(prefix.into()))
            }
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                Err(LineError::new(LineErrorKind::RangeOrder, 0).into())
            }
            _ => Err(LineError::new(LineErrorKind::RangeFamilies, 0).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the routes of a document, with these values.
    fn read(text: &str, values: &str) -> Vec<String> {
        let values: Vec<Value> =
            values.split(',').filter(|name| !name.is_empty()).map(|name| name.parse().unwrap()).collect();
        let mut document = recognise(text.lines().next().unwrap().as_bytes()).expect("a document");
        let mut routes = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let read = document.line(line, &mut |record| {
                let label = record.label(&values);
                record.prefixes(HostBits::Refuse, |prefix| {
                    routes.push(format!("{prefix} {label}"));
                    Ok(())
                })
            });
            if let Err(error) = read {
                routes.push(format!("{}: {}", number + 1, error.reason()));
            }
        }
        routes
    }

    #[test]
    fn csv_has_named_columns() {
        let own =
            "prefix,next_hop,origin_as,as_path\n10.0.0.0/8,192.0.2.1,64500,\"64501 64500\"\n::/0,eth0,,\n";
        assert_eq!(read(own, ""), ["10.0.0.0/8 192.0.2.1", "::/0 eth0"]);
        assert_eq!(
            read(own, "next-hop,origin-as,as-path"),
            ["10.0.0.0/8 192.0.2.1 64500 64501 64500", "::/0 eth0 - -"]
        );
        let geo =
            "network,geoname_id,country\n1.0.0.0/24,2077456,\"Korea, Republic of\"\n1.0.1.0/24,,x\nx,1,2\n";
        assert_eq!(
            read(geo, ""),
            ["1.0.0.0/24 2077456", "1.0.1.0/24 -", "4: not an IP address: unexpected 'x'"]
        );
        assert_eq!(read(geo, "country")[0], "1.0.0.0/24 Korea, Republic of");
        let ranges = "start,end,value\n10.0.0.0,10.0.0.2,7\n10.0.0.9,10.0.0.1,8\n::,x,9\n::,10.0.0.1,10\n";
        assert_eq!(
            read(ranges, ""),
            [
                "10.0.0.0/31 7",
                "10.0.0.2/32 7",
                "3: the range ends before it begins",
                "4: an end of the range is not an IP address: unexpected 'x'",
                "5: the range begins and ends in different families"
            ]
        );
        // Files without a header, such as lists of addresses by country. A host followed by its next hop is not a range.
        assert_eq!(read("1.0.0.0,1.0.0.255,AU\n1.0.1.0,1.0.1.0,CN", ""), ["1.0.0.0/24 AU", "1.0.1.0/32 CN"]);
        assert_eq!(read("::,\"::7\",\"A, B\"\n", ""), ["::/125 A, B"]);
        assert_eq!(read("1.0.0.0,1.0.0.255\n", ""), ["1.0.0.0/32 1.0.0.255"]);
        assert_eq!(read("10.0.0.0/8,office,64500\n", ""), ["10.0.0.0/8 office"]);
        assert_eq!(read("10.0.0.0/8,office,64500\n", "3"), ["10.0.0.0/8 64500"]);
    }

    #[test]
    fn json_has_lines_lists_and_what_routers_print() {
        let lines =
            "{\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"eth0\"}\n{\"prefix\":\"::/0\",\"next_hop\":null}\n";
        assert_eq!(read(lines, ""), ["10.0.0.0/8 eth0", "::/0 -"]);
        let list = "[\n  {\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"1\",\"a\":{\"b\":\"c\"}},\n  {\"prefix\":\"11.0.0.0/8\"}\n]\n";
        assert_eq!(read(list, "a.b"), ["10.0.0.0/8 c", "11.0.0.0/8 -"]);
        let vtysh = r#"{
  "0.0.0.0/0":[
    {"prefix":"0.0.0.0/0","protocol":"kernel","nexthops":[{"ip":"192.0.2.9","interfaceName":"e9"}]},
    {"prefix":"0.0.0.0/0","protocol":"bgp","selected":true,"nexthops":[
      {"ip":"192.0.2.1","active":true,"interfaceName":"e0"}]}
  ],
  "10.0.0.0/8":[{"prefix":"10.0.0.0/8","protocol":"connected","selected":true,
    "nexthops":[{"directlyConnected":true,"interfaceName":"e1"}]}]
}"#;
        assert_eq!(read(vtysh, ""), ["0.0.0.0/0 192.0.2.1", "10.0.0.0/8 e1"]);
        assert_eq!(read(vtysh, "protocol"), ["0.0.0.0/0 bgp", "10.0.0.0/8 connected"]);
        let linux = r#"[{"dst":"default","gateway":"192.0.2.1","dev":"e0"},{"dst":"10.0.0.0/8","dev":"e1"}]"#;
        assert_eq!(read(linux, ""), ["0.0.0.0/0 192.0.2.1", "10.0.0.0/8 e1"]);
        let cloud = "{\n \"syncToken\":\"1\",\n \"prefixes\":[{\"ip_prefix\":\"3.0.0.0/15\",\"region\":\"x\",\"service\":\"EC2\"}]\n}";
        assert_eq!(read(cloud, "service"), ["3.0.0.0/15 EC2"]);
        assert_eq!(read("{\"prefix\":\"10.0.0.0/8\",}\n{\"a\":1}", "").len(), 2);
    }

    #[test]
    fn linux_prints_routes() {
        let text = "default via 192.0.2.1 dev eth0 proto dhcp src 192.0.2.7 metric 100 \n\
            10.0.0.0/8 proto bgp metric 20 \n\tnexthop via 192.0.2.2 dev eth1 weight 1 \n\tnexthop via 192.0.2.3 dev eth2 weight 1 \n\
            192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.7 \n\
            unreachable 10.9.0.0/16 metric 4278198272\n\
            192.0.2.255 dev eth0\n\
            default via fe80::1 dev eth0 proto ra\n";
        assert_eq!(
            read(text, ""),
            [
                "0.0.0.0/0 192.0.2.1",
                "10.0.0.0/8 192.0.2.2",
                "192.0.2.0/24 eth0",
                "10.9.0.0/16 unreachable",
                "192.0.2.255/32 eth0",
                "::/0 fe80::1"
            ]
        );
        assert_eq!(read(text, "dev,proto")[0], "0.0.0.0/0 eth0 dhcp");
    }

    #[test]
    fn bird_prints_routes() {
        let two = "BIRD 2.0.12 ready.\nTable master4:\n\
            10.0.0.0/8           unicast [b1 2024-01-01] * (100) [AS64500i]\n\tvia 192.0.2.1 on eth0\n\
            \x20                    unicast [b2 2024-01-01] (100) [AS64501i]\n\tvia 192.0.2.2 on eth1\n\
            10.1.0.0/16          unreachable [static1 2024-01-01] * (200)\n\
            192.0.2.0/24         unicast [direct1 2024-01-01] * (240)\n\tdev eth0\n\n\
            Table master6:\n::/0                 unicast [b6 12:00:00] * (100) [AS64502?]\n\tvia fe80::1 on eth0\n";
        assert_eq!(
            read(two, ""),
            ["10.0.0.0/8 192.0.2.1", "10.1.0.0/16 unreachable", "192.0.2.0/24 eth0", "::/0 fe80::1"]
        );
        assert_eq!(read(two, "origin-as,protocol")[0], "10.0.0.0/8 64500 b1");
        let one = "BIRD 1.6.8 ready.\n10.0.0.0/8         via 192.0.2.1 on eth0 [b1 2024-01-01] * (100) [AS64500i]\n\
            \x20                  via 192.0.2.2 on eth0 [b2 2024-01-01] (100) [AS64500i]\n\
            192.0.2.0/24       dev eth0 [direct1 2024-01-01] * (240)\n";
        assert_eq!(read(one, ""), ["10.0.0.0/8 192.0.2.1", "192.0.2.0/24 eth0"]);
    }

    #[test]
    fn plain_tables_are_no_documents() {
        for line in [
            "10.0.0.0/8 1",
            "10.0.0.0/8 via 192.0.2.1",
            "10.0.0.0\t8\t64500_64501,64502",
            "10.0.0.0/8 1,2",
            "# a,b",
            "TABLE_DUMP2|1|B|192.0.2.1|7|10.0.0.0/8|7 {8,9}|IGP|192.0.2.9|0|0||NAG||",
            "1445565695 a 198.51.100.0/24 192.0.2.1 192.0.2.2 64500 64501",
            "hello, world",
            "",
        ] {
            assert!(recognise(line.as_bytes()).is_none(), "{line}");
        }
    }
}
