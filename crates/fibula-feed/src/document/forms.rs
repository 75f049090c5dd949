//! The list of forms in which tables are read. The guide, the help, the message that refuses a file and the tests come from it.

use core::fmt;

use super::head::TextHead;
use super::hostile;
use super::{Document, Settings, bird, columns, csv, ip_route, json, list, netstat, show_bgp, vtysh};

/// A form of tables.
#[non_exhaustive]
pub struct TableForm {
    /// Its name, as `--table-format` takes it.
    pub name: &'static str,
    /// The form's name in the message that refuses a file. It is empty for rare forms, which that message leaves out.
    pub short: &'static str,
    /// A description of the form, for people.
    pub what: &'static str,
    /// Programs or organisations that write it.
    pub written_by: &'static str,
    /// How it is recognised.
    pub recognised: &'static str,
    /// Which of several routes of a prefix is used.
    pub choice: Choice,
    /// A table in this form with the route 198.51.100.0/24; empty for a binary form.
    pub example: &'static str,
    /// Inputs made to be expensive.
    pub hostile: &'static [Hostile],
    pub(crate) reader: Reader,
}

impl fmt::Debug for TableForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableForm").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Two forms are equal if their names are.
impl PartialEq for TableForm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TableForm {}

/// Which of several routes of a prefix is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// The route of the chosen peer, or the best path of several.
    Peer,
    /// The last one.
    Last,
    /// The last one; of ranges the smaller one.
    LastOrSmaller,
    /// The one with the lowest metric, of equals the first.
    Metric,
    /// The one that the router marks as selected or best.
    Marked,
    /// There is only one.
    One,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peer => "the route of the chosen peer, or the best path",
            Self::Last => "the last one",
            Self::LastOrSmaller => "the last one; of nested ranges the smaller one",
            Self::Metric => "the lowest metric, of equals the first",
            Self::Marked => "the one that the router marks as selected or best",
            Self::One => "there is only one",
        })
    }
}

/// An input made to be expensive.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Hostile {
    /// The reason why a file of this form can cost much to read.
    pub name: &'static str,
    /// Returns the file.
    pub make: fn() -> Vec<u8>,
}

impl fmt::Debug for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hostile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns how many lines of the head are of a form.
type Claims = fn(&TextHead<'_>, &Settings<'_>) -> usize;

/// Returns the reader of a text with this head, or why the form cannot be read.
type Open = fn(&TextHead<'_>, &Settings<'_>) -> Result<Box<dyn Document>, String>;

/// The reader of a form.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    /// Recognised by their first or last bytes before the text is examined.
    Binary,
    /// Lines that are read one by one, whatever the lines around them are.
    Lines,
    Json {
        claims: Claims,
    },
    Document {
        claims: Claims,
        open: Open,
    },
}

impl TableForm {
    /// All forms. Where two of them take as many lines of the first 64 KiB, the first one reads the file.
    ///
    /// To add a form: a file that reads it, and an entry here.
    pub const ALL: &[Self] = &[
        Self {
            name: "mrt",
            short: "MRT",
            what: "MRT: `TABLE_DUMP_V2` (also with ADD-PATH), `TABLE_DUMP`, `BGP4MP`, `BGP4MP_ET`, `BGP`",
            written_by: "RIPE RIS, RouteViews, BIRD, FRR, OpenBGPD, GoBGP",
            recognised: "the header of its first records",
            choice: Choice::Peer,
            example: "",
            hostile: &[Hostile { name: "records that claim more than they have", make: hostile::mrt_claims }],
            reader: Reader::Binary,
        },
        Self {
            name: "maxmind",
            short: "MaxMind DB",
            what: "MaxMind DB (`.mmdb`)",
            written_by: "GeoLite, DB-IP, IPinfo",
            recognised: "the mark of its metadata at the end of the file",
            choice: Choice::One,
            example: "",
            hostile: &[Hostile { name: "many networks of one large record", make: hostile::maxmind_records }],
            reader: Reader::Binary,
        },
        Self {
            name: "compiled",
            short: "",
            what: "tables that [`fibula compile`](files.md) wrote",
            written_by: "fibula",
            recognised: "its first 8 bytes",
            choice: Choice::One,
            example: "",
            hostile: &[Hostile {
                name: "sections that claim more than they have",
                make: hostile::compiled_sections,
            }],
            reader: Reader::Binary,
        },
        Self {
            name: "json",
            short: "JSON",
            what: "JSON: a list of objects, an object on each line or several after each other, prefixes in lists, or prefixes as names",
            written_by: "`ip -j route`, `vtysh -c 'show ip route json'`, `show bgp json`, `gobgp global rib -j`, `bgpctl -j show rib`, birdwatcher, Arista EOS, NX-OS, AWS, Azure, Google and Oracle Cloud, routinator, rpki-client, fibula",
            recognised: "`{` or `[` before a name or a value",
            choice: Choice::Marked,
            example: "{\"prefix\": \"198.51.100.0/24\", \"next_hop\": \"192.0.2.1\"}\n",
            hostile: &[
                Hostile { name: "a long name around many fields", make: hostile::json_names },
                Hostile { name: "numbers without end", make: hostile::json_numbers },
                Hostile { name: "an object that never ends", make: hostile::json_open },
                Hostile { name: "lists within lists", make: hostile::json_deep },
                Hostile { name: "objects that are not JSON within each other", make: hostile::json_wrong },
            ],
            reader: Reader::Json { claims: json::claims },
        },
        Self {
            name: "bird",
            short: "the output of 'birdc'",
            what: "`birdc show route`, also `all`",
            written_by: "BIRD 1, 2 and 3",
            recognised: "a prefix before `[protocol ...] (preference)`",
            choice: Choice::Marked,
            example: "BIRD 2.0.12 ready.\nTable master4:\n198.51.100.0/24      unicast [b1 09:43:10.123] * (100) [AS64500i]\n\tvia 192.0.2.1 on eth0\n",
            hostile: &[Hostile {
                name: "a route with attributes without end",
                make: hostile::bird_attributes,
            }],
            reader: Reader::Document { claims: bird::claims, open: |head, _| Ok(bird::read(head)) },
        },
        Self {
            name: "vtysh",
            short: "of 'vtysh'",
            what: "`show ip route` of vtysh",
            written_by: "FRRouting, Quagga, VyOS",
            recognised: "a letter and marks before a prefix and `[distance/metric]`",
            choice: Choice::Marked,
            example: "Codes: K - kernel route, B - BGP, > - selected route, * - FIB route\n\nB>* 198.51.100.0/24 [20/0] via 192.0.2.1, eth0, weight 1, 00:00:21\n",
            hostile: &[Hostile {
                name: "a route with next hops without end",
                make: hostile::vtysh_next_hops,
            }],
            reader: Reader::Document { claims: vtysh::claims, open: |_, _| Ok(vtysh::read()) },
        },
        Self {
            name: "show-bgp",
            short: "",
            what: "`show bgp`, `show ip bgp`",
            written_by: "FRRouting, Quagga, Cisco, RouteViews (oix-full-snapshot)",
            recognised: "the header `Network`, `Next Hop`, `Path`",
            choice: Choice::Marked,
            example: "   Network          Next Hop            Metric LocPrf Weight Path\n*> 198.51.100.0/24  192.0.2.1                0             0 64500 64501 i\n",
            hostile: &[Hostile { name: "paths whose lines never end", make: hostile::show_bgp_open }],
            reader: Reader::Document { claims: show_bgp::claims, open: |_, _| Ok(show_bgp::read()) },
        },
        Self {
            name: "netstat",
            short: "",
            what: "`netstat -rn`, `route -n`",
            written_by: "Linux",
            recognised: "the header `Destination`, `Gateway`, `Iface`",
            choice: Choice::Metric,
            example: "Kernel IP routing table\nDestination     Gateway         Genmask         Flags Metric Ref    Use Iface\n198.51.100.0    192.0.2.1       255.255.255.0   UG    0      0        0 eth0\n",
            hostile: &[Hostile { name: "a header of many columns", make: hostile::netstat_columns }],
            reader: Reader::Document { claims: netstat::claims, open: |_, _| Ok(netstat::read()) },
        },
        Self {
            name: "columns",
            short: "",
            what: "columns under a header that names the prefix, aligned by blanks",
            written_by: "`cilium ip list`, `display ip routing-table` (Huawei, H3C), `calicoctl get ippool`",
            recognised: "a header with a known name, and prefixes below that name",
            choice: Choice::Last,
            example: "IP                 IDENTITY   SOURCE\n198.51.100.0/24    51185      k8s\n",
            hostile: &[Hostile { name: "a header of many columns", make: hostile::columns_many }],
            reader: Reader::Document { claims: columns::claims, open: |_, _| Ok(columns::read()) },
        },
        Self {
            name: "ip-route",
            short: "of 'ip route'",
            what: "`ip route`, `ip -6 route`",
            written_by: "Linux",
            recognised: "a prefix before words such as `dev` and `proto`",
            choice: Choice::Metric,
            example: "198.51.100.0/24 via 192.0.2.1 dev eth0 proto static metric 50\n",
            hostile: &[Hostile {
                name: "a route with next hops without end",
                make: hostile::ip_route_next_hops,
            }],
            reader: Reader::Document { claims: ip_route::claims, open: |_, _| Ok(ip_route::read()) },
        },
        Self {
            name: "lines",
            short: "lines of 'PREFIX NEXT-HOP'",
            what: "lines of `PREFIX NEXT-HOP`, `FIRST-LAST NEXT-HOP`, `ADDRESS NETMASK NEXT-HOP`, `ADDRESS LENGTH ORIGIN`, `bgpdump -m` and `-M`, `bgpreader`, and updates as `TIME a|w PREFIX NEXT-HOP PEER PEER-AS NEXT-AS`",
            written_by: "bgpdump, bgpkit-parser, bgpreader, looking glasses, CAIDA's pfx2as, pyasn, registries, scripts",
            recognised: "most lines are in one of these forms",
            choice: Choice::LastOrSmaller,
            example: "198.51.100.0/24 192.0.2.1\n",
            hostile: &[
                Hostile { name: "a line that never ends", make: hostile::line_open },
                Hostile { name: "ranges of many prefixes each", make: hostile::lines_ranges },
            ],
            reader: Reader::Lines,
        },
        Self {
            name: "list",
            short: "",
            what: "prefixes, addresses or ranges alone, with comments",
            written_by: "Spamhaus DROP, FireHOL, block lists",
            recognised: "most lines are a prefix or a range and nothing else",
            choice: Choice::Last,
            example: "198.51.100.0/24 ; SBL1\n",
            hostile: &[Hostile { name: "ranges of many prefixes each", make: hostile::list_ranges }],
            reader: Reader::Document { claims: list::claims, open: |_, _| Ok(list::read()) },
        },
        Self {
            name: "csv",
            short: "CSV",
            what: "columns separated by commas, semicolons, tabs or bars, with a header that names the prefix or the ends of a range, or without one: prefixes, ranges of addresses or of integers, address and netmask",
            written_by: "GeoLite, DB-IP, IP2Location, iptoasn, IPinfo, routinator, rpki-client, RIPE (ROAs, riswhois), registries (delegated statistics), fibula",
            recognised: "a header with a known name, or a column that holds prefixes or ranges",
            choice: Choice::LastOrSmaller,
            example: "network,next_hop\n198.51.100.0/24,192.0.2.1\n",
            hostile: &[
                Hostile { name: "quotes that open on every line", make: hostile::csv_quotes },
                Hostile { name: "a header of many columns", make: hostile::csv_columns },
                Hostile { name: "ranges of many prefixes each", make: hostile::csv_ranges },
            ],
            reader: Reader::Document { claims: csv::claims, open: csv::read },
        },
    ];

    /// Returns the form with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|form| form.name == name)
    }

    /// Returns the table of all forms, and the forms that are refused by name, as the guide has them.
    #[must_use]
    pub fn guide() -> String {
        let mut table = String::from(
            "| form | what it is | written by | recognised by | of several routes of a prefix |\n|---|---|---|---|---|\n",
        );
        for form in Self::ALL {
            let Self { name, what, written_by, recognised, choice, .. } = form;
            let cells = [&format!("`{name}`"), *what, written_by, recognised, &choice.to_string()];
            let cells = cells.map(|cell| cell.replace("a|w", "a\\|w"));
            table += &format!("| {} |\n", cells.join(" | "));
        }
        table += "\nForms that look like one of these and mean something else are refused by name:\n\n";
        for Unread { name, instead, .. } in UNREAD {
            table += &format!("- {name}; {instead}\n").replace('\'', "`");
        }
        table
    }

    /// Returns whether the form can be named for a file. A form that is recognised by its bytes needs no name.
    #[must_use]
    pub fn is_text(&self) -> bool {
        !matches!(self.reader, Reader::Binary)
    }
}

/// A form that is known and not read.
struct Unread {
    name: &'static str,
    instead: &'static str,
    is: fn(&TextHead<'_>) -> bool,
}

/// Forms that are refused by their names, because they look like others and mean something else.
const UNREAD: &[Unread] = &[
    Unread {
        name: "the output of 'netstat -r' of BSD or macOS",
        instead: "read instead: the output of 'ip route', of vtysh ('show ip route') or birdc, or lines of 'PREFIX NEXT-HOP'",
        is: |head| {
            let has = |text: &str| head.lines().iter().any(|line| line.trim() == text);
            let header = |line: &str| {
                line.starts_with("Destination") && line.contains("Gateway") && line.contains("Netif")
            };
            has("Routing tables") && (has("Internet:") || has("Internet6:"))
                || head.lines().iter().any(|line| header(line))
        },
    },
    Unread {
        name: "the output of 'route print' of Windows",
        instead: "read instead: a CSV file: Get-NetRoute | Select DestinationPrefix,NextHop | ConvertTo-Csv, with --prefix-column DestinationPrefix",
        is: |head| {
            head.lines().iter().any(|line| line.contains("Network Destination") && line.contains("Netmask"))
        },
    },
    Unread {
        name: "the output of 'show ip route' of Cisco IOS or Arista EOS",
        instead: "read instead: 'show ip bgp', 'show ip route | json' of EOS, or lines of 'PREFIX NEXT-HOP'",
        is: |head| {
            let is = |line: &str| {
                line.contains("is variably subnetted") || line.starts_with("Gateway of last resort")
            };
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "the output of 'show route' of Junos",
        instead: "read instead: lines of 'PREFIX NEXT-HOP'",
        is: |head| {
            let is = |line: &str| {
                line.contains(" destinations, ") && line.contains(" routes (") && line.contains(" active")
            };
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "the output of 'show ip route' or 'show ip fib route' of NX-OS",
        instead: "read instead: 'show ip bgp', 'show ip route | json', or lines of 'PREFIX NEXT-HOP'",
        is: |head| {
            let is = |line: &str| {
                line.starts_with("IP Route Table for VRF") || line.starts_with("IPv4 routes for table")
            };
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "the output of 'show router route-table' of Nokia SR OS",
        instead: "read instead: lines of 'PREFIX NEXT-HOP'",
        is: |head| {
            let is = |line: &str| line.starts_with("Dest Prefix") || line.starts_with("Route Table (Router:");
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "the output of 'gobgp global rib' as text",
        instead: "read instead: 'gobgp global rib -j'",
        is: |head| {
            let is =
                |line: &str| line.contains("Network") && line.contains("AS_PATH") && line.contains("Attrs");
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "a prefix list of Cisco IOS or FRRouting",
        instead: "read instead: lines of prefixes (bgpq4 -F '%n/%l\\n'), or JSON (bgpq4 -j)",
        is: |head| {
            let is = |line: &str| {
                ["ip prefix-list ", "ipv6 prefix-list "]
                    .iter()
                    .any(|begin| line.trim_start().starts_with(begin))
            };
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "the output of 'bgpctl show rib' of OpenBGPD",
        instead: "read instead: 'bgpctl -j show rib', or MRT (dump table-v2)",
        is: |head| {
            let is = |line: &str| {
                line.starts_with("flags") && line.contains("destination") && line.contains("aspath")
            };
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "a stream of messages of ExaBGP",
        instead: "read instead: MRT, or lines of 'PREFIX NEXT-HOP'",
        is: |head| {
            head.lines().iter().any(|line| line.trim_start().starts_with('{') && line.contains("\"exabgp\":"))
        },
    },
    Unread {
        name: "the output of 'show ip fib' or 'show fib entry' of VPP",
        instead: "read instead: lines of 'PREFIX NEXT-HOP'",
        is: |head| {
            let is = |line: &str| line.contains("fib_index:") || line.trim() == "FIB Entries:";
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "a set of objects of a routing registry (RPSL)",
        instead: "read instead: lines of 'PREFIX ORIGIN', as bgpq4 and whois filters print them",
        is: |head| {
            let is = |line: &str| {
                line.starts_with("route:") || line.starts_with("route6:") || line.starts_with("inetnum:")
            };
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "a set of nftables or ipset",
        instead: "read instead: its elements, one a line",
        is: |head| {
            let is = |line: &str| {
                line.contains("type ipv4_addr")
                    || line.contains("type ipv6_addr")
                    || line.starts_with("create ") && line.contains(" hash:net")
            };
            head.lines().iter().any(|line| is(line))
        },
    },
    Unread {
        name: "the output of '/ip route print' of RouterOS",
        instead: "read instead: lines of 'PREFIX NEXT-HOP'",
        is: |head| head.lines().iter().any(|line| line.contains("DST-ADDRESS") && line.contains("GATEWAY")),
    },
];

/// How a text is read.
pub(crate) enum Settled {
    Form(&'static TableForm),
    /// A known form that is not read: its name, and the form to use instead.
    Unread(&'static str, &'static str),
}

/// Settles the form of a text by its head: the one that takes most of the lines.
pub(crate) fn settle(head: &TextHead<'_>, settings: &Settings<'_>, lines: fn(&str) -> bool) -> Settled {
    if let Some(unread) = UNREAD.iter().find(|unread| (unread.is)(head)) {
        return Settled::Unread(unread.name, unread.instead);
    }
    let by_columns = !settings.columns.is_empty();
    let claims = |form: &TableForm| match form.reader {
        Reader::Binary => 0,
        Reader::Lines if by_columns => 0,
        Reader::Lines => head.count(lines),
        Reader::Json { claims } | Reader::Document { claims, .. } => claims(head, settings),
    };
    let mut best: Option<(usize, &TableForm)> = None;
    for form in TableForm::ALL {
        if by_columns && !matches!(form.name, "csv") {
            continue;
        }
        let count = claims(form);
        if count > best.map_or(0, |(most, _)| most) {
            best = Some((count, form));
        }
    }
    // A text that no form recognises is refused line by line, so that the error names the lines.
    let other = if by_columns { "csv" } else { "lines" };
    let form = best.map(|(_, form)| form).or_else(|| TableForm::named(other));
    Settled::Form(form.expect("both are in the list"))
}

/// Returns the best known forms, as the message that refuses a file names them.
pub(crate) fn families() -> String {
    let names: Vec<&str> =
        TableForm::ALL.iter().map(|form| form.short).filter(|name| !name.is_empty()).collect();
    names.join(", ")
}
