//! The DXR paper.

mod counts;
mod findings;
mod times;

use fibula::fib::internals::{Dxr, Format, Options, Search};
use fibula::memory::Limits;
use fibula::rib::Rib;

use super::definition::{
    Chart, Claim, Column, Contestants, Dimension, Exhibit, Judge, Paper, Part, Published, Rates, Table, Work,
};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "dxr",
    title: "DXR: Towards a Billion Routing Lookups per Second in Software",
    citation: "Zec, Rizzo and Mikuc, ACM SIGCOMM Computer Communication Review 42(5), 2012",
    summary: "Replaces a longest-prefix match by a direct table of the first k bits and a binary search in the few ranges of the \
              chunk that an entry leads to. A full IPv4 table takes less than a megabyte, and stays in the processor's cache.",
    exhibits: &[TABLE_1, FIGURE_2, TABLE_2, FIGURE_3, FIGURE_4, TABLE_3, FIGURE_5, FIGURE_6, RADIX, FIGURE_7],
    findings: findings::ALL,
};

/// Full IPv4 tables: one of the years of the paper's, and one of today.
const OF_2015: Table = Table { real: Some("pch4-2015"), made: "ipv4-2012" };
const OF_2023: Table = Table { real: Some("dfz4-2023"), made: "ipv4-2023" };

const MLPS: &str = "million lookups a second";
const SETTING: &str = "AMD FX-8150 at 3.6 GHz, 8 cores, 2 MB of L2 a pair of cores, 8 MB of L3; LINX, April 2012: 417,523 prefixes, \
                       213 next hops";
const DIFFERS: &str = "a table of 2015 with 577,000 prefixes (or a generated one of the size of 2012), another processor and compiler";

/// Builds DXR in the paper's format, with the paper's search.
fn build(rib: &Rib<u32>, k: u8) -> Result<Dxr<u32>, String> {
    let options = Options { k, format: Format::Stretched, search: Search::EarlyStop };
    Dxr::build(rib, options, Limits::default()).map_err(|error| error.to_string())
}

const TABLE_1: Exhibit = Exhibit {
    name: "table-1",
    title: "Table 1: what the structures consist of",
    about: "Bytes are 4 * 2^k + 2 * short + 4 * long + 24 * (next hops + 1): the paper's count with its table of next-hop \
            descriptors, which reproduces all published totals. Short ranges include the padding to units of 4 bytes.",
    rows: "table and k",
    columns: &[
        Column { name: "prefixes", unit: "" },
        Column { name: "next hops", unit: "" },
        Column { name: "bytes", unit: "" },
        Column { name: "bytes a prefix", unit: "" },
        Column { name: "full chunks", unit: "" },
        Column { name: "short ranges", unit: "" },
        Column { name: "long ranges", unit: "" },
        Column { name: "build", unit: "ms" },
    ],
    published: counts::TABLE_1,
    setting: "AMD FX-8150; snapshots of April 2012, and a table of four static routes",
    differs: "tables of 2015 and 2023, or generated ones; the real one of 2015 has 3,751 next hops, and entries of more than 256 are long",
    parts: &[
        Part { name: "2015", work: Work::Values(|context| counts::table_1(context, OF_2015, "2015")) },
        Part { name: "2023", work: Work::Values(|context| counts::table_1(context, OF_2023, "2023")) },
    ],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "a full table takes less than 2 bytes a prefix with k = 16",
        published: "1.92",
        judge: Judge::Value { of: ("2015, k = 16", "bytes a prefix"), least: 0.0, most: 2.0 },
    }],
};

const FIGURE_2: Exhibit = Exhibit {
    name: "figure-2",
    title: "Fig. 2: prefixes by length",
    about: "How many prefixes of each length the tables have. The paper chose LINX for its many prefixes longer than /24.",
    rows: "length",
    columns: &[Column { name: "2015", unit: "prefixes" }, Column { name: "2023", unit: "prefixes" }],
    published: &[],
    setting: "",
    differs: "the values of the published figure are not printed",
    parts: &[
        Part { name: "2015", work: Work::Values(|context| counts::lengths(context, OF_2015, "2015")) },
        Part { name: "2023", work: Work::Values(|context| counts::lengths(context, OF_2023, "2023")) },
    ],
    against: None,
    chart: Chart::Lines,
    claims: &[],
};

/// Numbers of cores, as columns.
const CORES: &[Column] = &[
    Column { name: "1", unit: "million lookups a second, by cores" },
    Column { name: "2", unit: "million lookups a second, by cores" },
    Column { name: "4", unit: "million lookups a second, by cores" },
    Column { name: "8", unit: "million lookups a second, by cores" },
];

const SWEEP: Rates<u32> = Rates {
    table: OF_2015,
    contestants: Contestants::Registry(&[
        "dxr-16", "dxr-17", "dxr-18", "dxr-19", "dxr-20", "dxr-21", "dxr-22", "dxr-23", "dxr-24",
    ]),
    traffic: &["rnd"],
    batches: &[256],
    threads: &[1, 2, 4, 8],
    rows: Dimension::Algorithm,
    columns: Dimension::Threads,
};

const TABLE_2: Exhibit = Exhibit {
    name: "table-2",
    title: "Table 2: speed by k and by cores, RND",
    about: "Keys uniform over the address space without 0/8, 10/8, 127/8 and 224/3, looked up in calls of 256. The paper's memory \
            for the same k is in Table 1.",
    rows: "structure",
    columns: CORES,
    published: &[
        Published::new("dxr-16", "1", 75.0),
        Published::new("dxr-16", "2", 136.0),
        Published::new("dxr-16", "4", 271.0),
        Published::new("dxr-16", "8", 491.0),
        Published::new("dxr-17", "1", 95.0),
        Published::new("dxr-17", "2", 167.0),
        Published::new("dxr-17", "4", 338.0),
        Published::new("dxr-17", "8", 603.0),
        Published::new("dxr-18", "1", 115.0),
        Published::new("dxr-18", "2", 204.0),
        Published::new("dxr-18", "4", 408.0),
        Published::new("dxr-18", "8", 718.0),
        Published::new("dxr-19", "1", 110.0),
        Published::new("dxr-19", "2", 194.0),
        Published::new("dxr-19", "4", 393.0),
        Published::new("dxr-19", "8", 709.0),
        Published::new("dxr-20", "1", 100.0),
        Published::new("dxr-20", "2", 177.0),
        Published::new("dxr-20", "4", 348.0),
        Published::new("dxr-20", "8", 643.0),
        Published::new("dxr-21", "1", 91.0),
        Published::new("dxr-21", "2", 159.0),
        Published::new("dxr-21", "4", 282.0),
        Published::new("dxr-21", "8", 499.0),
        Published::new("dxr-23", "1", 45.0),
        Published::new("dxr-23", "2", 78.0),
        Published::new("dxr-23", "4", 116.0),
        Published::new("dxr-23", "8", 160.0),
        Published::new("dxr-24", "1", 43.0),
        Published::new("dxr-24", "2", 74.0),
        Published::new("dxr-24", "4", 110.0),
        Published::new("dxr-24", "8", 150.0),
    ],
    setting: SETTING,
    differs: DIFFERS,
    parts: &[Part { name: "rates", work: Work::Ipv4(SWEEP) }],
    against: Some("1"),
    chart: Chart::Bars,
    claims: &[
        Claim {
            text: "D18R makes 50 to 200 million lookups a second on one core, or more",
            published: "115",
            judge: Judge::Value { of: ("dxr-18", "1"), least: 50.0, most: f64::INFINITY },
        },
        Claim {
            text: "two cores are nearly twice as fast as one, for k up to 20",
            published: "1.77 to 1.81",
            judge: Judge::Ratio { of: ("dxr-18", "2"), over: ("dxr-18", "1"), least: 1.7, most: 2.2 },
        },
        Claim {
            text: "k = 18 is faster than k = 16 on one core",
            published: "1.53",
            judge: Judge::Ratio {
                of: ("dxr-18", "1"),
                over: ("dxr-16", "1"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "k = 24 is slower than k = 18: the table outgrows the caches",
            published: "0.37",
            judge: Judge::Ratio { of: ("dxr-24", "1"), over: ("dxr-18", "1"), least: 0.0, most: 1.0 },
        },
    ],
};

const FIGURE_3: Exhibit = Exhibit {
    name: "figure-3",
    title: "Fig. 3: speed by k, beside the published Xeon",
    about: "The sweep of Table 2 again, drawn, with the published values of the second processor.",
    rows: "structure",
    columns: &[Column { name: "1", unit: MLPS }, Column { name: "4", unit: MLPS }],
    published: &[
        Published::new("dxr-16", "1", 64.0),
        Published::new("dxr-16", "4", 253.0),
        Published::new("dxr-17", "1", 76.0),
        Published::new("dxr-17", "4", 303.0),
        Published::new("dxr-18", "1", 93.0),
        Published::new("dxr-18", "4", 368.0),
        Published::new("dxr-19", "1", 115.0),
        Published::new("dxr-19", "4", 451.0),
        Published::new("dxr-20", "1", 137.0),
        Published::new("dxr-20", "4", 531.0),
        Published::new("dxr-21", "1", 102.0),
        Published::new("dxr-21", "4", 311.0),
        Published::new("dxr-23", "1", 57.0),
        Published::new("dxr-23", "4", 165.0),
        Published::new("dxr-24", "1", 54.0),
        Published::new("dxr-24", "4", 153.0),
    ],
    setting: "Xeon W3530 at 2.8 GHz, 4 cores, 256 KB of L2 each, 8 MB of L3",
    differs: DIFFERS,
    parts: &[Part { name: "rates", work: Work::Ipv4(Rates { threads: &[1, 4], ..SWEEP }) }],
    against: None,
    chart: Chart::Lines,
    claims: &[],
};

const PATTERNS: Rates<u32> = Rates {
    table: OF_2015,
    contestants: Contestants::Registry(&["dxr-16", "dxr-18"]),
    traffic: &["rep", "rnd"],
    batches: &[256],
    threads: &[1, 2, 4, 8],
    rows: Dimension::Threads,
    columns: Dimension::AlgorithmAndTraffic,
};

const FIGURE_4: Exhibit = Exhibit {
    name: "figure-4",
    title: "Fig. 4: speed by request pattern and by cores",
    about: "REP repeats each key 16 times, RND has independent keys, and in SEQ each lookup waits for the answer of the one before.",
    rows: "threads",
    columns: &[
        Column { name: "dxr-18, rep", unit: MLPS },
        Column { name: "dxr-18, rnd", unit: MLPS },
        Column { name: "dxr-18, seq", unit: MLPS },
        Column { name: "dxr-16, rep", unit: MLPS },
        Column { name: "dxr-16, rnd", unit: MLPS },
        Column { name: "dxr-16, seq", unit: MLPS },
    ],
    published: &[
        Published::new("1", "dxr-18, rep", 190.0),
        Published::new("1", "dxr-18, rnd", 115.0),
        Published::new("1", "dxr-18, seq", 61.0),
        Published::new("8", "dxr-18, rep", 1_100.0),
        Published::new("8", "dxr-18, rnd", 718.0),
        Published::new("8", "dxr-18, seq", 400.0),
    ],
    setting: SETTING,
    differs: DIFFERS,
    parts: &[
        Part { name: "independent", work: Work::Ipv4(PATTERNS) },
        Part { name: "dependent", work: Work::Ipv4(Rates { traffic: &["seq"], batches: &[1], ..PATTERNS }) },
    ],
    against: None,
    chart: Chart::Lines,
    claims: &[
        Claim {
            text: "REP is faster than RND",
            published: "1.65",
            judge: Judge::Ratio {
                of: ("1", "dxr-18, rep"),
                over: ("1", "dxr-18, rnd"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "SEQ is slower than RND",
            published: "0.53",
            judge: Judge::Ratio {
                of: ("1", "dxr-18, seq"),
                over: ("1", "dxr-18, rnd"),
                least: 0.0,
                most: 1.0,
            },
        },
        Claim {
            text: "D16R is slower than D18R, by 25 to 50 %",
            published: "0.50 to 0.75",
            judge: Judge::Ratio {
                of: ("1", "dxr-16, rnd"),
                over: ("1", "dxr-18, rnd"),
                least: 0.5,
                most: 0.8,
            },
        },
    ],
};

const TABLE_3: Exhibit = Exhibit {
    name: "table-3",
    title: "Table 3: share of keys by steps of the binary search",
    about: "Keys of RND. An answer of the direct table takes 0 steps. Counted are the iterations of a loop that stops as soon as \
            the key lies between two neighbours; the paper does not print its loop, and one that stops early takes fewer steps. \
            The paper prints the last shares as bounds, which are left out here.",
    rows: "steps",
    columns: &[
        Column { name: "k = 20", unit: "of all keys" },
        Column { name: "k = 18", unit: "of all keys" },
        Column { name: "k = 16", unit: "of all keys" },
    ],
    published: counts::TABLE_3,
    setting: "LINX, April 2012: 417,523 prefixes",
    differs: "a table of 2015, or a generated one; the loop may be another",
    parts: &[Part { name: "2015", work: Work::Values(|context| counts::table_3(context, OF_2015)) }],
    against: None,
    chart: Chart::Bars,
    claims: &[Claim {
        text: "most keys need no search: 0.757 with k = 16",
        published: "0.757",
        judge: Judge::Value { of: ("0", "k = 16"), least: 0.65, most: 1.0 },
    }],
};

const FIGURE_5: Exhibit = Exhibit {
    name: "figure-5",
    title: "Fig. 5: time of a lookup by steps of the search, D18R",
    about: "Keys that take exactly so many steps, chosen from random ones and looked up again and again. Where too few of them are \
            found, the row is missing.",
    rows: "steps",
    columns: &[Column { name: "one core", unit: "ns a lookup" }],
    published: &[],
    setting: "",
    differs: "the paper prints no values, only that a core makes 10 to 50 million lookups a second, which is 20 to 100 ns",
    parts: &[Part { name: "steps", work: Work::Values(|context| times::by_steps(context, OF_2015)) }],
    against: None,
    chart: Chart::Bars,
    claims: &[
        Claim {
            text: "even keys that need many steps are looked up in 20 to 100 ns",
            published: "20 to 100 ns",
            judge: Judge::Value { of: ("*", "one core"), least: 0.0, most: 100.0 },
        },
        Claim {
            text: "more steps take longer: five against one",
            published: "longer",
            judge: Judge::Ratio {
                of: ("5", "one core"),
                over: ("1", "one core"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
    ],
};

const FIGURE_6: Exhibit = Exhibit {
    name: "figure-6",
    title: "Fig. 6: DXR and DIR-24-8 by cores, RND",
    about: "D24R is DXR with k = 24, of twice the size of DIR-24-8.",
    rows: "threads",
    columns: &[
        Column { name: "dxr-18", unit: MLPS },
        Column { name: "dxr-16", unit: MLPS },
        Column { name: "dxr-24", unit: MLPS },
        Column { name: "dir-24-8", unit: MLPS },
    ],
    published: &[
        Published::new("1", "dxr-18", 115.0),
        Published::new("2", "dxr-18", 204.0),
        Published::new("4", "dxr-18", 408.0),
        Published::new("8", "dxr-18", 718.0),
        Published::new("1", "dxr-16", 75.0),
        Published::new("2", "dxr-16", 136.0),
        Published::new("4", "dxr-16", 271.0),
        Published::new("8", "dxr-16", 491.0),
        Published::new("1", "dxr-24", 43.0),
        Published::new("2", "dxr-24", 74.0),
        Published::new("4", "dxr-24", 110.0),
        Published::new("8", "dxr-24", 150.0),
    ],
    setting: SETTING,
    differs: "DIR-24-8 has vector kernels here, which the paper's has not; its published values are not printed",
    parts: &[Part {
        name: "rates",
        work: Work::Ipv4(Rates {
            contestants: Contestants::Registry(&["dxr-16", "dxr-18", "dxr-24", "dir-24-8"]),
            rows: Dimension::Threads,
            columns: Dimension::Algorithm,
            ..SWEEP
        }),
    }],
    against: Some("dxr-18"),
    chart: Chart::Lines,
    claims: &[Claim {
        text: "DXR with k = 18 outperforms DIR-24-8, whose table is in memory and not in the cache",
        published: "faster",
        judge: Judge::Ratio { of: ("*", "dxr-18"), over: ("*", "dir-24-8"), least: 1.0, most: f64::INFINITY },
    }],
};

const RADIX: Exhibit = Exhibit {
    name: "radix",
    title: "Section 4.3: the BSD radix tree by cores",
    about: "Lookups in the primary database itself. The paper's tree has nodes of 200 bytes; those of the radix tree here have 20, \
            and walks begin at an index.",
    rows: "threads",
    columns: &[Column { name: "rnd", unit: MLPS }, Column { name: "rep", unit: MLPS }],
    published: &[
        Published::new("1", "rnd", 2.2),
        Published::new("2", "rnd", 3.5),
        Published::new("4", "rnd", 6.8),
        Published::new("8", "rnd", 12.7),
        Published::new("1", "rep", 9.6),
        Published::new("2", "rep", 11.7),
        Published::new("4", "rep", 22.3),
        Published::new("8", "rep", 38.4),
    ],
    setting: "Xeon W3530 at 2.8 GHz, 4 cores with 2 threads each",
    differs: DIFFERS,
    parts: &[Part {
        name: "rates",
        work: Work::Ipv4(Rates {
            contestants: Contestants::Registry(&["radix"]),
            columns: Dimension::Traffic,
            ..PATTERNS
        }),
    }],
    against: None,
    chart: Chart::Lines,
    claims: &[],
};

const FIGURE_7: Exhibit = Exhibit {
    name: "figure-7",
    title: "Fig. 7: time of an update by prefix length",
    about: "Prefixes of each length, in random order, are removed from the full table and added back, one at a time. As in the paper, \
            changing the routes themselves is not counted. The paper prints milliseconds beside 80,000 updates a second; \
            microseconds are meant.",
    rows: "length",
    columns: &[
        Column { name: "dxr-16", unit: "us an update" },
        Column { name: "dxr-18", unit: "us an update" },
        Column { name: "dxr-20", unit: "us an update" },
    ],
    published: &[
        Published::new("all", "dxr-16", 11.9),
        Published::new("all", "dxr-18", 11.0),
        Published::new("all", "dxr-20", 10.2),
    ],
    setting: SETTING,
    differs: "at most 256 prefixes of a length; the row for all weighs the lengths as the table has them; where an update needs more \
              room at once than is free, the structure is built anew, which counts",
    parts: &[Part { name: "updates", work: Work::Values(|context| times::updates(context, OF_2015)) }],
    against: None,
    chart: Chart::Lines,
    claims: &[
        Claim {
            text: "more than 80,000 updates a second: at most 12.5 us each",
            published: "10.2 to 11.9 us",
            judge: Judge::Value { of: ("all", "dxr-18"), least: 0.0, most: 12.5 },
        },
        Claim {
            text: "shorter prefixes take longer: /12 against /24",
            published: "longer",
            judge: Judge::Ratio {
                of: ("12", "dxr-18"),
                over: ("24", "dxr-18"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
    ],
};
