//! The multibit-trie router paper.

mod findings;

use std::ops::ControlFlow;

use fibula::fib::Fib as _;
use fibula::fib::internals::Multibit;
use fibula::memory::Limits;
use fibula::net::{Key, Prefix, Routes};

use super::definition::{
    Chart, Claim, Column, Contestants, Dimension, Exhibit, Judge, Paper, Part, Published, Rates, Table, Work,
};
use super::packets::Row;
use super::{Context, Point, packets, schedules};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "multibit",
    title: "IP lookup in user space with a multibit trie, parallelised",
    citation: "The multibit-trie router paper: a software router over netmap, by POSIX threads and by OpenMP",
    summary: "Shows that a software router in user space with a multibit trie of 4 bits a level reaches the rate of 10 Gbit/s \
              links, and that threads started by hand and by a data-parallel run-time are equally fast.",
    exhibits: &[MEMORY, READS, RATES, WAYS, FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7, FIGURE_8],
    findings: findings::ALL,
};

/// The two tables of 2^24 routes that the paper may have meant.
const HOSTS: Table = Table { real: None, made: "ipv4-block-of-hosts" };
const SITES: Table = Table { real: None, made: "ipv4-all-sites" };
const FULL_4: Table = Table { real: Some("dfz4-2023"), made: "ipv4" };
const FULL_6: Table = Table { real: Some("dfz6-2024"), made: "ipv6" };

/// Strides that are compared.
const STRIDES: [u32; 5] = [1, 2, 4, 6, 8];

const MEMORY: Exhibit = Exhibit {
    name: "table-of-routes",
    title: "Section VI: the table of 16,777,216 routes in memory",
    about: "The paper fills its trie with 16,777,216 routes and does not list them. \"The most reads a packet\" fits all host \
            routes of one /8; all /24 routes are the other table of this size. All routes have one next hop, and the trie does not \
            merge them. Bytes are those that lookups can read: 8 a slot. Changes take another byte a slot.",
    rows: "table and stride",
    columns: &[
        Column { name: "nodes", unit: "" },
        Column { name: "MB", unit: "of 10^6 bytes" },
        Column { name: "bytes a route", unit: "" },
    ],
    published: &[
        Published::new("all /32s of one /8, stride 4", "nodes", 1_118_483.0),
        Published::new("all /24s, stride 4", "nodes", 1_118_481.0),
    ],
    setting: "the paper prints no memory; the numbers of nodes follow from its stride of 4 bits",
    differs: "a quick run has the first routes of each table only",
    parts: &[
        Part {
            name: "hosts",
            work: Work::Values(|context| sizes(context, HOSTS, "all /32s of one /8", &[4, 8])),
        },
        Part { name: "sites", work: Work::Values(|context| sizes(context, SITES, "all /24s", &[4, 8])) },
        Part {
            name: "full-ipv4",
            work: Work::Values(|context| sizes(context, FULL_4, "full table", &STRIDES)),
        },
        Part { name: "full-ipv6", work: Work::Values(sizes_ipv6) },
    ],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "with stride 4, a table of 16,777,216 routes fits the memory of a router",
        published: "8 GB machine",
        judge: Judge::Value { of: ("all /32s of one /8, stride 4", "MB"), least: 0.0, most: 1_000.0 },
    }],
};

const READS: Exhibit = Exhibit {
    name: "reads",
    title: "Section V.C: reads a lookup",
    about: "A lookup reads one word a level, at most 32/stride for IPv4. The greatest number is over the ends of all prefixes; the \
            mean is over keys of MATCH, random addresses below random routes.",
    rows: "table and stride",
    columns: &[Column { name: "most", unit: "reads" }, Column { name: "mean", unit: "reads" }],
    published: &[
        Published::new("all /32s of one /8, stride 4", "most", 8.0),
        Published::new("full table, stride 1", "most", 32.0),
        Published::new("full table, stride 4", "most", 8.0),
    ],
    setting: "the bound 32/stride, and 32 reads for a binary trie",
    differs: "an IPv6 key has 128 bits, and up to 32 reads with stride 4",
    parts: &[
        Part {
            name: "hosts",
            work: Work::Values(|context| reads(context, HOSTS, "all /32s of one /8", &[4, 8])),
        },
        Part { name: "sites", work: Work::Values(|context| reads(context, SITES, "all /24s", &[4, 8])) },
        Part {
            name: "full-ipv4",
            work: Work::Values(|context| reads(context, FULL_4, "full table", &STRIDES)),
        },
        Part { name: "full-ipv6", work: Work::Values(reads_ipv6) },
    ],
    against: None,
    chart: Chart::Bars,
    claims: &[Claim {
        text: "a multibit trie takes at most 32/stride reads: 8 with stride 4",
        published: "8",
        judge: Judge::Value { of: ("all /32s of one /8, stride 4", "most"), least: 8.0, most: 8.0 },
    }],
};

const RATES: Exhibit = Exhibit {
    name: "rates",
    title: "Lookups alone: what the trie leaves of a core",
    about: "The paper measures packets, not lookups. These are lookups of 32 keys a call on one core, without any packet, beside a \
            binary trie and two other structures. At 14.88 million packets a second, the rate of a 10 Gbit/s link with the \
            smallest packets, a lookup may take 67 ns.",
    rows: "table",
    columns: &[
        Column { name: "multibit", unit: "million lookups a second" },
        Column { name: "multibit-2", unit: "million lookups a second" },
        Column { name: "multibit-8", unit: "million lookups a second" },
        Column { name: "binary-trie", unit: "million lookups a second" },
        Column { name: "poptrie", unit: "million lookups a second" },
        Column { name: "dir-24-8", unit: "million lookups a second" },
    ],
    published: &[],
    setting: "",
    differs: "",
    parts: &[
        Part { name: "hosts", work: Work::Ipv4(Rates { table: HOSTS, ..LOOKUPS }) },
        Part { name: "full", work: Work::Ipv4(Rates { table: FULL_4, ..LOOKUPS }) },
    ],
    against: Some("multibit"),
    chart: Chart::Bars,
    claims: &[
        Claim {
            text: "with a greater stride lookups are faster: 8 bits against 4",
            published: "faster",
            judge: Judge::Ratio {
                of: ("*", "multibit-8"),
                over: ("*", "multibit"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "a multibit trie is preferred to a binary trie",
            published: "faster",
            judge: Judge::Ratio {
                of: ("*", "multibit"),
                over: ("*", "binary-trie"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "on the table with the most reads, lookups of one core keep up with a 10 Gbit/s link of 64-byte packets",
            published: "14.88 Mpps on 8 threads",
            judge: Judge::Value {
                of: ("ipv4-block-of-hosts", "multibit"),
                least: 14.88,
                most: f64::INFINITY,
            },
        },
    ],
};

const LOOKUPS: Rates<u32> = Rates {
    table: HOSTS,
    contestants: Contestants::Registry(&[
        "multibit",
        "multibit-2",
        "multibit-8",
        "binary-trie",
        "poptrie",
        "dir-24-8",
    ]),
    traffic: &["match"],
    batches: &[32],
    threads: &[1],
    rows: Dimension::Table,
    columns: Dimension::Algorithm,
};

const WAYS: Exhibit = Exhibit {
    name: "ways",
    title: "Section V.D: threads by hand and a data-parallel run-time, lookups alone",
    about: "Shares and chunks are given out by threads that are started by hand; rayon is a data-parallel run-time, as OpenMP is \
            in the paper. Threads are pinned, one to a core.",
    rows: "structure and schedule",
    columns: schedules::COLUMNS,
    published: &[],
    setting: "",
    differs: "lookups in a full table, and no packets",
    parts: &[Part {
        name: "ways",
        work: Work::Values(|context| schedules::rates(context, FULL_4, &["multibit"], false)),
    }],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "threads by hand and a data-parallel run-time are equally fast: shares against chunks of 4,096, on two cores",
        published: "almost identical",
        judge: Judge::Ratio {
            of: ("multibit, rayon, chunks of 4096", "2"),
            over: ("multibit, static", "2"),
            least: 0.9,
            most: 1.1,
        },
    }],
};

const PACKET_LINES: &[Column] = &[
    Column { name: "threads by hand", unit: "million packets a second" },
    Column { name: "data-parallel run-time", unit: "million packets a second" },
    Column { name: "kernel", unit: "million packets a second" },
    Column { name: "bridge", unit: "million packets a second" },
    Column { name: "theoretical", unit: "million packets a second" },
];

const NO_KERNEL: &str = "the kernel forwards between devices, and its rates over veth are not to be compared with ports in memory";

/// Packets of all sizes, in so many flows on each port.
const fn sizes_of_packets(flows: usize) -> [Row; 6] {
    [
        Row { name: "64", flows, bytes: 64 },
        Row { name: "128", flows, bytes: 128 },
        Row { name: "256", flows, bytes: 256 },
        Row { name: "512", flows, bytes: 512 },
        Row { name: "1024", flows, bytes: 1024 },
        Row { name: "1500", flows, bytes: 1500 },
    ]
}

const ONE_FLOW: &[Row] = &sizes_of_packets(1);
const MANY_FLOWS: &[Row] = &sizes_of_packets(64);
const FLOWS: &[Row] = &[
    Row { name: "1", flows: 1, bytes: 64 },
    Row { name: "2", flows: 2, bytes: 64 },
    Row { name: "4", flows: 4, bytes: 64 },
    Row { name: "8", flows: 8, bytes: 64 },
    Row { name: "16", flows: 16, bytes: 64 },
    Row { name: "32", flows: 32, bytes: 64 },
    Row { name: "64", flows: 64, bytes: 64 },
];

fn forwarding(context: &mut Context<'_>, rows: &[Row], ports: usize) -> Result<Vec<Point>, String> {
    let mut points = packets::theoretical(rows, ports);
    points.extend(packets::by_way(context, HOSTS, "multibit", rows, ports)?);
    points.extend(rows.iter().map(|row| Point::absent(row.name, "kernel", NO_KERNEL)));
    Ok(points)
}

/// A figure of packet rates.
const fn figure(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    published: &'static [Published],
    parts: &'static [Part],
) -> Exhibit {
    Exhibit {
        name,
        title,
        about,
        rows: "bytes a packet",
        columns: PACKET_LINES,
        published,
        setting: "Core i7-3770K at 3.5 GHz, 8 threads, netmap, two ports of 10 Gbit/s in and two out",
        differs: "ports are in memory, so that no link bounds the rates and a packet that is sent is not copied: they are what the \
                  cores forward. All rules of a router are applied, not the lookup alone. A thread a core, each with a queue of every port. The \
                  theoretical line is that of 10 Gbit/s links, as a reference: bit rate / (8 * (size + 20))",
        parts,
        against: Some("bridge"),
        chart: Chart::Lines,
        claims: &[],
    }
}

const FIGURE_4: Exhibit = figure(
    "figure-4",
    "Fig. 4: packet rates by size, one flow on one port",
    "One flow goes to one receive queue, so that one thread forwards all of it. The paper reaches the line rate from 309 bytes on.",
    &[
        Published::new("64", "threads by hand", 3.8),
        Published::new("64", "kernel", 1.06),
        Published::new("64", "bridge", 14.88),
        Published::new("64", "theoretical", 14.88),
    ],
    &[Part { name: "forwarding", work: Work::Values(|context| forwarding(context, ONE_FLOW, 1)) }],
);

const FIGURE_5: Exhibit = Exhibit {
    claims: &[
        Claim {
            text: "with 64 flows, forwarding with lookups reaches the rate of a 10 Gbit/s link",
            published: "14.88 Mpps",
            judge: Judge::Value { of: ("64", "threads by hand"), least: 14.88, most: f64::INFINITY },
        },
        Claim {
            text: "with 64 flows, forwarding is 3.6 times as fast as the kernel's",
            published: "3.6 x",
            judge: Judge::Missing(NO_KERNEL),
        },
    ],
    ..figure(
        "figure-5",
        "Fig. 5: packet rates by size, 64 flows on one port",
        "Flows are spread over the queues and threads by their addresses and ports.",
        &[
            Published::new("64", "threads by hand", 14.88),
            Published::new("64", "data-parallel run-time", 14.88),
            Published::new("64", "kernel", 4.09),
            Published::new("64", "theoretical", 14.88),
        ],
        &[Part { name: "forwarding", work: Work::Values(|context| forwarding(context, MANY_FLOWS, 1)) }],
    )
};

const FIGURE_6: Exhibit = figure(
    "figure-6",
    "Fig. 6: packet rates by size, one flow on each of two ports",
    "As Fig. 4, with both ports: twice the theoretical rate.",
    &[
        Published::new("64", "threads by hand", 7.38),
        Published::new("64", "data-parallel run-time", 7.49),
        Published::new("64", "kernel", 1.91),
        Published::new("64", "bridge", 29.61),
        Published::new("64", "theoretical", 29.76),
    ],
    &[Part { name: "forwarding", work: Work::Values(|context| forwarding(context, ONE_FLOW, 2)) }],
);

const FIGURE_7: Exhibit = Exhibit {
    claims: &[
        Claim {
            text: "with 64 flows on each of two ports, forwarding takes most of the rate of the bridge",
            published: "25.14 of 29.76 Mpps",
            judge: Judge::Ratio {
                of: ("64", "threads by hand"),
                over: ("64", "bridge"),
                least: 0.8,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "with 64 flows on each of two ports, forwarding is six times as fast as the kernel's",
            published: "25.14 and 25.26 against 4.05 Mpps",
            judge: Judge::Missing(NO_KERNEL),
        },
    ],
    ..figure(
        "figure-7",
        "Fig. 7: packet rates by size, 64 flows on each of two ports",
        "As Fig. 5, with both ports.",
        &[
            Published::new("64", "threads by hand", 25.14),
            Published::new("64", "data-parallel run-time", 25.26),
            Published::new("64", "kernel", 4.05),
            Published::new("64", "theoretical", 29.76),
        ],
        &[Part { name: "forwarding", work: Work::Values(|context| forwarding(context, MANY_FLOWS, 2)) }],
    )
};

const FIGURE_8: Exhibit = Exhibit {
    rows: "flows a port",
    claims: &[Claim {
        text: "threads by hand and a data-parallel run-time forward equally fast",
        published: "almost identical",
        judge: Judge::Ratio {
            of: ("*", "data-parallel run-time"),
            over: ("*", "threads by hand"),
            least: 0.9,
            most: 1.1,
        },
    }],
    ..figure(
        "figure-8",
        "Fig. 8: packet rates by the number of flows, 64-byte packets",
        "Both ports. The paper reaches its limit with 4 flows a port. Its caption repeats that of Fig. 6.",
        &[],
        &[Part { name: "forwarding", work: Work::Values(|context| forwarding(context, FLOWS, 2)) }],
    )
};

fn row(table: &str, stride: u32) -> String {
    format!("{table}, stride {stride}")
}

fn build<K: Key>(routes: &dyn Routes<K>, stride: u32) -> Result<Multibit<K>, String> {
    let trie = Multibit::build(routes, stride, Limits::default()).map_err(|error| error.to_string())?;
    Ok(trie)
}

fn sizes_of<K: Key>(routes: &dyn Routes<K>, table: &str, strides: &[u32]) -> Result<Vec<Point>, String> {
    let mut points = Vec::new();
    for &stride in strides {
        let (row, trie) = (row(table, stride), build(routes, stride)?);
        let bytes = trie.memory().lookup_bytes as f64;
        points.extend([
            Point::new(row.clone(), "nodes", trie.nodes() as f64),
            Point::new(row.clone(), "MB", bytes / 1e6),
            Point::new(row, "bytes a route", bytes / routes.len() as f64),
        ]);
    }
    Ok(points)
}

fn sizes(context: &mut Context<'_>, table: Table, name: &str, strides: &[u32]) -> Result<Vec<Point>, String> {
    let (_, rib) = context.ipv4(table)?;
    sizes_of(&*rib, name, strides)
}

fn sizes_ipv6(context: &mut Context<'_>) -> Result<Vec<Point>, String> {
    let (_, rib) = context.ipv6(FULL_6)?;
    sizes_of(&*rib, "full IPv6 table", &STRIDES)
}

fn reads_of<K: Key>(
    routes: &dyn Routes<K>,
    table: &str,
    strides: &[u32],
    keys: usize,
) -> Result<Vec<Point>, String> {
    let pattern = crate::traffic::find::<K>("match").ok_or("MATCH is a pattern")?;
    let keys = (pattern.generate)(routes, keys, 1).map_err(|error| error.to_string())?;
    let mut points = Vec::new();
    for &stride in strides {
        let (row, trie) = (row(table, stride), build(routes, stride)?);
        let mut most = 0;
        let _ = routes.visit(Prefix::ALL, &mut |route| {
            most = most.max(trie.reads(route.prefix.addr())).max(trie.reads(route.prefix.last()));
            ControlFlow::Continue(())
        });
        let all: u64 = keys.iter().map(|&key| u64::from(trie.reads(key))).sum();
        points.push(Point::new(row.clone(), "most", most.into()));
        points.push(Point::new(row, "mean", all as f64 / keys.len() as f64));
    }
    Ok(points)
}

fn reads(context: &mut Context<'_>, table: Table, name: &str, strides: &[u32]) -> Result<Vec<Point>, String> {
    let keys = context.settings.keys;
    let (_, rib) = context.ipv4(table)?;
    reads_of(&*rib, name, strides, keys)
}

fn reads_ipv6(context: &mut Context<'_>) -> Result<Vec<Point>, String> {
    let keys = context.settings.keys;
    let (_, rib) = context.ipv6(FULL_6)?;
    reads_of(&*rib, "full IPv6 table", &STRIDES, keys)
}
