//! The PlanB paper.

mod ablation;
mod counts;
mod findings;

use super::definition::{
    Chart, Claim, Column, Contestants, Dimension, Exhibit, Judge, Paper, Part, Published, Rates, Table, Work,
};
use super::packets;

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "planb",
    title: "PlanB: Efficient Software IPv6 Lookup with Linearized B+-Tree",
    citation: "Zhang et al., USENIX NSDI 2026",
    summary: "Turns the prefixes of an IPv6 table into disjoint intervals, and searches their ends in a B+-tree that lies in one \
              array: nodes of a cache line, compared by vector instructions, many addresses side by side.",
    exhibits: &[
        TABLE_1, CAPACITY, INTERVALS, FIGURE_1, FIGURE_7, FIGURE_8, FIGURE_9, FIGURE_10, FIGURE_11,
        FIGURE_12, FIGURE_13, FIGURE_14,
    ],
    findings: findings::ALL,
};

/// A table of the paper: `rrc00-YY` of these years, of the size of the published ones, or synthetic.
const fn table(made: &'static str) -> Table {
    Table { real: None, made }
}

/// The real table of today.
const OF_2024: Table = Table { real: Some("dfz6-2024"), made: "ipv6-2024" };

/// All tables that are measured one after another, the smallest first.
const TABLES: [Table; 11] = [
    table("ipv6-2019"),
    table("ipv6-2020"),
    table("ipv6-2021"),
    table("ipv6-2022"),
    table("ipv6-2023"),
    table("ipv6-2024"),
    table("ipv6-2025"),
    table("ipv6-250k"),
    table("ipv6-500k"),
    table("ipv6-750k"),
    table("ipv6-1m"),
];

const MLPS: &str = "million lookups a second";
const INTEL: &str = "Xeon 8331C, 24 cores at 3 GHz, 36 MB of L3";
const AMD: &str = "Ryzen 9 370HX, 12 cores, up to 5.1 GHz";
const RANGES: &str = "figures are printed as ranges over all tables, in the text";
const DIFFERS: &str = "generated tables of the published sizes and prefix lengths, and a real one of 2024; another processor; keys are \
                       those of MATCH, as the paper makes them: a random address below a random prefix";

const TABLE_1: Exhibit = Exhibit {
    name: "table-1",
    title: "Table 1: the tables and their prefix lengths",
    about: "Prefixes and the shares of the five most frequent lengths. The tables of 2019 to 2025 are generated with the published sizes \
            and the lengths of a real table of 2024, so that their shares do not follow the years.",
    rows: "table",
    columns: &[
        Column { name: "prefixes", unit: "" },
        Column { name: "/48", unit: "%" },
        Column { name: "/32", unit: "%" },
        Column { name: "/44", unit: "%" },
        Column { name: "/40", unit: "%" },
        Column { name: "/36", unit: "%" },
    ],
    published: counts::TABLE_1,
    setting: "RIPE rrc00, August of each year",
    differs: "generated tables, and a real one of 2024",
    parts: &[
        Part { name: "generated", work: Work::Values(|context| counts::table_1(context, &TABLES[..7])) },
        Part { name: "real", work: Work::Values(|context| counts::table_1(context, &[OF_2024])) },
    ],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "nearly half of all prefixes are /48",
        published: "41.8 to 47.9 %",
        judge: Judge::Value { of: ("*", "/48"), least: 40.0, most: 50.0 },
    }],
};

const CAPACITY: Exhibit = Exhibit {
    name: "capacity",
    title: "Section 3.2: what a tree of a given height holds",
    about: "Nodes have 8 keys of 64 bits. For five internal levels the paper prints 6,560 internal nodes; its own sum is 7,381, which \
            also agrees with its 0.45 MB.",
    rows: "internal levels",
    columns: &[
        Column { name: "internal nodes", unit: "" },
        Column { name: "leaves", unit: "" },
        Column { name: "keys", unit: "" },
        Column { name: "leaf MiB", unit: "" },
        Column { name: "internal MiB", unit: "" },
    ],
    published: &[
        Published::new("5", "internal nodes", 6_560.0),
        Published::new("5", "leaves", 59_049.0),
        Published::new("5", "keys", 472_392.0),
        Published::new("5", "leaf MiB", 3.6),
        Published::new("5", "internal MiB", 0.45),
        Published::new("6", "keys", 4_200_000.0),
        Published::new("6", "leaf MiB", 32.0),
        Published::new("6", "internal MiB", 4.0),
    ],
    setting: "computed, section 3.2",
    differs: "",
    parts: &[Part { name: "capacity", work: Work::Values(counts::capacity_of_levels) }],
    against: None,
    chart: Chart::None,
    claims: &[],
};

const INTERVALS: Exhibit = Exhibit {
    name: "intervals",
    title: "Sections 3.1 and 3.2: intervals and nodes of a table",
    about: "By the paper's count: with values of 16 bits, and as many internal nodes as a full tree of that height has. For nodes alone \
            the paper prints 18 bytes a prefix: two keys a prefix, and an eighth of that for the internal levels.",
    rows: "table and form",
    columns: &[
        Column { name: "prefixes", unit: "" },
        Column { name: "intervals", unit: "" },
        Column { name: "internal levels", unit: "" },
        Column { name: "leaves", unit: "" },
        Column { name: "nodes", unit: "bytes a prefix" },
        Column { name: "with values", unit: "bytes a prefix" },
    ],
    published: &[Published::new("at most, unmerged", "nodes", 18.0)],
    setting: "computed, section 3.2",
    differs: "the unmerged form is the one that the paper prints; merged, neighbours with equal next hops are one interval",
    parts: &[Part { name: "real", work: Work::Values(|context| counts::intervals(context, OF_2024)) }],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "the nodes take 18 bytes a prefix at most",
        published: "18",
        judge: Judge::Value { of: ("*", "nodes"), least: 0.0, most: 18.0 },
    }],
};

const FIGURE_1: Exhibit = Exhibit {
    name: "figure-1",
    title: "Fig. 1: schemes before PlanB",
    about: "One core, calls of 256. The paper measures four schemes on its IPv6 tables; HBS falls from 136 to 85 million lookups a \
            second from 2019 to 2025.",
    rows: "table",
    columns: &[
        Column { name: "poptrie", unit: MLPS },
        Column { name: "cp-trie", unit: MLPS },
        Column { name: "neurotrie", unit: MLPS },
        Column { name: "hbs", unit: MLPS },
    ],
    published: &[Published::new("ipv6-2019", "hbs", 136.0), Published::new("ipv6-2025", "hbs", 85.0)],
    setting: INTEL,
    differs: DIFFERS,
    parts: &[
        Part { name: "2019", work: Work::Ipv6(Rates { table: TABLES[0], ..BEFORE }) },
        Part { name: "2022", work: Work::Ipv6(Rates { table: TABLES[3], ..BEFORE }) },
        Part { name: "2025", work: Work::Ipv6(Rates { table: TABLES[6], ..BEFORE }) },
    ],
    against: None,
    chart: Chart::Bars,
    claims: &[Claim {
        text: "the schemes slow down as tables grow: Poptrie on the table of 2025 against that of 2019",
        published: "slower",
        judge: Judge::Ratio {
            of: ("ipv6-2025", "poptrie"),
            over: ("ipv6-2019", "poptrie"),
            least: 0.0,
            most: 1.0,
        },
    }],
};

const BEFORE: Rates<u128> = Rates {
    table: TABLES[0],
    contestants: Contestants::Registry(&["poptrie", "cp-trie", "neurotrie", "hbs"]),
    traffic: &["match"],
    batches: &[256],
    threads: &[1],
    rows: Dimension::Table,
    columns: Dimension::Algorithm,
};

const FIGURE_7: Exhibit = Exhibit {
    name: "figure-7",
    title: "Fig. 7: forwarding 64-byte packets",
    about: "Packets a second through one and the same forwarder, by scheme and table.",
    rows: "table",
    columns: PACKETS,
    published: &[],
    setting: INTEL,
    differs: "one core that runs to completion, with ports in memory, in the place of a pipeline of many cores on DPDK; all rules of a \
              router are applied, which is a greater share of a packet; generated tables of the published sizes. Figures are printed as ranges over all \
              tables, in the text",
    parts: &[Part {
        name: "packets",
        work: Work::Values(|context| packets::by_structure(context, &TABLES, PACKETS)),
    }],
    against: Some("planb"),
    chart: Chart::Lines,
    claims: &[
        forwards("PlanB forwards 2.3 to 2.8 times as fast as Poptrie", "2.3 to 2.8", "poptrie", 2.3, 2.8),
        forwards("PlanB forwards 2.3 to 2.9 times as fast as CP-Trie", "2.3 to 2.9", "cp-trie", 2.3, 2.9),
        forwards("PlanB forwards 4.7 to 5.8 times as fast as Neurotrie", "4.7 to 5.8", "neurotrie", 4.7, 5.8),
        forwards("PlanB forwards 1.7 to 2.5 times as fast as HBS", "1.7 to 2.5", "hbs", 1.7, 2.5),
    ],
};

const MPPS: &str = "million packets a second";
const PACKETS: &[Column] = &[
    Column { name: "planb", unit: MPPS },
    Column { name: "poptrie", unit: MPPS },
    Column { name: "cp-trie", unit: MPPS },
    Column { name: "neurotrie", unit: MPPS },
    Column { name: "hbs", unit: MPPS },
    Column { name: "dir-btree", unit: MPPS },
];

const fn forwards(
    text: &'static str,
    published: &'static str,
    scheme: &'static str,
    least: f64,
    most: f64,
) -> Claim {
    Claim { text, published, judge: Judge::Ratio { of: ("*", "planb"), over: ("*", scheme), least, most } }
}

/// The schemes that are raced, in the batches that suit them.
const RACE: Rates<u128> = Rates {
    contestants: Contestants::Registry(&[
        "planb",
        "planb-unmerged",
        "planb-16",
        "poptrie",
        "cp-trie",
        "neurotrie",
        "hbs",
        "dir-btree",
    ]),
    batches: &[32, 256],
    ..BEFORE
};

const RACERS: &[Column] = &[
    Column { name: "planb", unit: MLPS },
    Column { name: "planb-unmerged", unit: MLPS },
    Column { name: "planb-16", unit: MLPS },
    Column { name: "poptrie", unit: MLPS },
    Column { name: "cp-trie", unit: MLPS },
    Column { name: "neurotrie", unit: MLPS },
    Column { name: "hbs", unit: MLPS },
    Column { name: "dir-btree", unit: MLPS },
];

/// PlanB against a scheme on every table of Fig. 8: the least published ratio, and nine tenths of it.
macro_rules! against {
    ($scheme:literal, $text:literal, $published:literal, $least:literal) => {
        Claim {
            text: $text,
            published: $published,
            judge: Judge::Ratio {
                of: ("*", "planb"),
                over: ("*", $scheme),
                least: $least,
                most: f64::INFINITY,
            },
        }
    };
}

const FIGURE_8: Exhibit = Exhibit {
    name: "figure-8",
    title: "Fig. 8: lookups of one core by table, beside the published Intel figures",
    about: "The tables of 2019 to 2025 and synthetic ones of up to a million prefixes. dir-btree is this project's own structure, which \
            the paper does not know. Each structure is looked up with its best batch and instruction set.",
    rows: "table",
    columns: RACERS,
    published: &[],
    setting: "",
    differs: DIFFERS,
    parts: &[
        Part { name: "2019", work: Work::Ipv6(Rates { table: TABLES[0], ..RACE }) },
        Part { name: "2020", work: Work::Ipv6(Rates { table: TABLES[1], ..RACE }) },
        Part { name: "2021", work: Work::Ipv6(Rates { table: TABLES[2], ..RACE }) },
        Part { name: "2022", work: Work::Ipv6(Rates { table: TABLES[3], ..RACE }) },
        Part { name: "2023", work: Work::Ipv6(Rates { table: TABLES[4], ..RACE }) },
        Part { name: "2024", work: Work::Ipv6(Rates { table: TABLES[5], ..RACE }) },
        Part { name: "2025", work: Work::Ipv6(Rates { table: TABLES[6], ..RACE }) },
        Part { name: "real-2024", work: Work::Ipv6(Rates { table: OF_2024, ..RACE }) },
        Part { name: "250k", work: Work::Ipv6(Rates { table: TABLES[7], ..RACE }) },
        Part { name: "500k", work: Work::Ipv6(Rates { table: TABLES[8], ..RACE }) },
        Part { name: "750k", work: Work::Ipv6(Rates { table: TABLES[9], ..RACE }) },
        Part { name: "1m", work: Work::Ipv6(Rates { table: TABLES[10], ..RACE }) },
    ],
    against: Some("planb"),
    chart: Chart::Bars,
    claims: &[
        against!("poptrie", "PlanB is 2 to 5.6 times as fast as Poptrie on every table", "2 to 5.6", 1.8),
        against!(
            "cp-trie",
            "PlanB is 2.1 to 5.8 times as fast as CP-Trie on every table",
            "2.1 to 5.8",
            1.89
        ),
        against!("hbs", "PlanB is 1.4 to 5.6 times as fast as HBS on every table", "1.4 to 5.6", 1.26),
        against!(
            "neurotrie",
            "PlanB is 4.3 to 9.6 times as fast as Neurotrie on every table",
            "4.3 to 9.6",
            3.87
        ),
        Claim {
            text: "the rate hardly depends on the table: a million prefixes against those of 2019",
            published: "191 to 197 M/s over all tables",
            judge: Judge::Ratio {
                of: ("ipv6-1m", "planb"),
                over: ("ipv6-2019", "planb"),
                least: 0.9,
                most: 1.1,
            },
        },
        Claim {
            text: "PlanB makes 191 to 197 million lookups a second on Intel",
            published: "191 to 197",
            judge: Judge::Value { of: ("*", "planb"), least: 191.0, most: f64::INFINITY },
        },
    ],
};

const FIGURE_9: Exhibit = Exhibit {
    name: "figure-9",
    title: "Fig. 9: lookups of one core, beside the published AMD figures",
    about: "The smallest and the largest table of Fig. 8 again.",
    rows: "table",
    columns: RACERS,
    published: &[],
    setting: "",
    differs: DIFFERS,
    parts: &[
        Part { name: "2019", work: Work::Ipv6(Rates { table: TABLES[0], ..RACE }) },
        Part { name: "1m", work: Work::Ipv6(Rates { table: TABLES[10], ..RACE }) },
    ],
    against: Some("planb"),
    chart: Chart::Bars,
    claims: &[
        Claim {
            text: "on AMD, PlanB is 2.3 to 6.7 times as fast as Poptrie",
            published: "2.3 to 6.7",
            judge: Judge::Ratio {
                of: ("*", "planb"),
                over: ("*", "poptrie"),
                least: 2.07,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "PlanB makes 374 to 393 million lookups a second on AMD",
            published: "374 to 393",
            judge: Judge::Value { of: ("*", "planb"), least: 374.0, most: f64::INFINITY },
        },
    ],
};

/// The schemes by cores.
const BY_CORES: Rates<u128> = Rates {
    table: OF_2024,
    contestants: Contestants::Registry(&["planb", "poptrie"]),
    batches: &[256],
    threads: &[1, 2, 4, 8, 12, 16, 24],
    rows: Dimension::Threads,
    ..RACE
};

const LINES: &[Column] = &[Column { name: "planb", unit: MLPS }, Column { name: "poptrie", unit: MLPS }];

const FIGURE_10: Exhibit = Exhibit {
    name: "figure-10",
    title: "Fig. 10: lookups by cores, beside the published Intel figures",
    about: "All cores look up in one table, each with its own keys.",
    rows: "threads",
    columns: LINES,
    published: &[Published::new("24", "planb", 4_600.0)],
    setting: INTEL,
    differs: DIFFERS,
    parts: &[Part { name: "cores", work: Work::Ipv6(BY_CORES) }],
    against: None,
    chart: Chart::Lines,
    claims: &[Claim {
        text: "the rate is nearly proportional to the cores: two against one",
        published: "0.98 a core on 24 cores",
        judge: Judge::Ratio { of: ("2", "planb"), over: ("1", "planb"), least: 1.9, most: 2.2 },
    }],
};

const FIGURE_11: Exhibit = Exhibit {
    name: "figure-11",
    title: "Fig. 11: lookups by cores, beside the published AMD figures",
    about: "As Fig. 10, on the second processor of the paper.",
    published: &[Published::new("12", "planb", 3_400.0)],
    setting: AMD,
    parts: &[Part { name: "cores", work: Work::Ipv6(Rates { threads: &[1, 2, 4, 8, 12], ..BY_CORES }) }],
    claims: &[],
    ..FIGURE_10
};

const FIGURE_12: Exhibit = Exhibit {
    name: "figure-12",
    title: "Fig. 12: memory",
    about: "Bytes that lookups can read.",
    rows: "table",
    columns: &[
        Column { name: "planb", unit: "MB" },
        Column { name: "planb-unmerged", unit: "MB" },
        Column { name: "poptrie", unit: "MB" },
        Column { name: "cp-trie", unit: "MB" },
        Column { name: "neurotrie", unit: "MB" },
        Column { name: "hbs", unit: "MB" },
        Column { name: "dir-btree", unit: "MB" },
    ],
    published: &[],
    setting: "",
    differs: RANGES,
    parts: &[
        Part { name: "generated", work: Work::Values(|context| counts::memory(context, &TABLES)) },
        Part { name: "real", work: Work::Values(|context| counts::memory(context, &[OF_2024])) },
    ],
    against: Some("poptrie"),
    chart: Chart::Bars,
    claims: &[Claim {
        text: "PlanB takes 60.8 to 79.6 % less memory than Poptrie",
        published: "0.204 to 0.392 of it",
        judge: Judge::Ratio { of: ("*", "planb-unmerged"), over: ("*", "poptrie"), least: 0.0, most: 0.44 },
    }],
};

const FIGURE_13: Exhibit = Exhibit {
    name: "figure-13",
    title: "Fig. 13: updates",
    about: "PlanB is built anew for a batch of changes and swapped in. The time of a build, and of a change where a batch has 4,096: \
            prefixes are removed and added back. Poptrie changes in place here.",
    rows: "table",
    columns: &[
        Column { name: "build, planb", unit: "ms" },
        Column { name: "build, poptrie", unit: "ms" },
        Column { name: "change, planb", unit: "us" },
        Column { name: "change, poptrie", unit: "us" },
    ],
    published: &[Published::new("ipv6-1m", "build, planb", 850.0)],
    setting: INTEL,
    differs: "the paper's hour of recorded updates is not there; it prints ratios only, and does not say the size of its batches",
    parts: &[
        Part { name: "2019", work: Work::Values(|context| counts::updates(context, TABLES[0])) },
        Part { name: "2024", work: Work::Values(|context| counts::updates(context, OF_2024)) },
        Part { name: "1m", work: Work::Values(|context| counts::updates(context, TABLES[10])) },
    ],
    against: None,
    chart: Chart::None,
    claims: &[
        Claim {
            text: "a table of a million prefixes is built in 850 ms",
            published: "850 ms",
            judge: Judge::Value { of: ("ipv6-1m", "build, planb"), least: 0.0, most: 850.0 },
        },
        Claim {
            text: "a change costs 32.5 to 44.6 % less than Poptrie's",
            published: "0.554 to 0.675 of it",
            judge: Judge::Ratio {
                of: ("*", "change, planb"),
                over: ("*", "change, poptrie"),
                least: 0.0,
                most: 0.75,
            },
        },
    ],
};

const FIGURE_14: Exhibit = Exhibit {
    name: "figure-14",
    title: "Fig. 14: what each step of the design contributes",
    about: "lower_bound is a binary search over the merged ranges. The tree is searched without vector instructions (planb-scalar), with \
            those that the compiler makes of a loop (planb-compiled), and with one comparison a node (planb-vectors), all of one \
            key at a time; batches are the last step. All of one core.",
    rows: "table",
    columns: &[
        Column { name: "lower_bound", unit: MLPS },
        Column { name: "tree", unit: MLPS },
        Column { name: "compiler-vectorised", unit: MLPS },
        Column { name: "vectors", unit: MLPS },
        Column { name: "batches", unit: MLPS },
    ],
    published: &[],
    setting: "",
    differs: "the published ratios, each over the step before, are 3.8 to 4.6, 1.15 to 1.3, 2 to 2.7 and 3 to 4.5, on AMD, from 5.8 to \
              10.7 up to 374 to 393 M/s",
    parts: &[
        Part { name: "2019", work: Work::Values(|context| ablation::steps(context, TABLES[0])) },
        Part { name: "2025", work: Work::Values(|context| ablation::steps(context, TABLES[6])) },
        Part { name: "1m", work: Work::Values(|context| ablation::steps(context, TABLES[10])) },
    ],
    against: Some("lower_bound"),
    chart: Chart::Bars,
    claims: &[
        Claim {
            text: "the tree without branches is 3.8 to 4.6 times as fast as lower_bound",
            published: "3.8 to 4.6",
            judge: Judge::Ratio {
                of: ("*", "tree"),
                over: ("*", "lower_bound"),
                least: 3.4,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "vectors make the tree 2.3 to 3.5 times as fast (2 to 2.7 over 1.15 to 1.3)",
            published: "2.3 to 3.5",
            judge: Judge::Ratio {
                of: ("*", "vectors"),
                over: ("*", "tree"),
                least: 2.1,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "batches make vectors 3 to 4.5 times as fast",
            published: "3 to 4.5",
            judge: Judge::Ratio {
                of: ("*", "batches"),
                over: ("*", "vectors"),
                least: 2.7,
                most: f64::INFINITY,
            },
        },
    ],
};
