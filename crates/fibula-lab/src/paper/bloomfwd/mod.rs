//! The Bloomfwd paper.

mod coprocessor;
mod counts;
mod findings;
mod ipv6;
mod published;
mod sizes;

use super::definition::{
    Chart, Claim, Column, Contestants, Dimension, Exhibit, Judge, Paper, Part, Published, Rates, Table, Work,
};
use super::schedules;
use coprocessor::{FIGURE_9, FIGURE_10};
use ipv6::{FIGURE_7, FIGURE_8, RECORDED_6};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "bloomfwd",
    title: "Bloom filters for IP lookup on many-core and multi-core processors",
    citation: "The Bloomfwd paper: Bloom-filter lookups on Intel Xeon Phi and multi-core CPUs, compared with the Multi-Index Hybrid \
               Trie",
    summary: "Keeps the prefixes of each length in a hash table after a Bloom filter, expands prefixes so that few lengths are left, \
              and makes the hashes cheap: two simple functions for all, in vectors, used again for the hash table.",
    exhibits: &[
        TABLE_3, TABLE_4, TABLE_5, RATIOS, FIGURE_1, FIGURE_2, SCHEDULES, FIGURE_3, ADDRESSES, FIGURE_4,
        FIGURE_5, FIGURE_6, FIGURE_7, RECORDED_6, FIGURE_8, FIGURE_9, FIGURE_10,
    ],
    findings: findings::ALL,
};

const FULL_4: Table = Table { real: Some("dfz4-2023"), made: "ipv4" };
const OF_2015: Table = Table { real: Some("pch4-2015"), made: "ipv4-2012" };
const FULL_6: Table = Table { real: Some("dfz6-2024"), made: "ipv6" };
const MADE_6: Table = Table { real: None, made: "ipv6-2025" };

const MLPS: &str = "million lookups a second";
const PHI: &str = "Intel Xeon Phi 7120P (61 cores at 1.33 GHz) with 244 threads; AS65000: 622,607 IPv4 prefixes, AS65000-V6: 31,645 \
                   IPv6 prefixes; 2^26 addresses";
const DIFFERS: &str = "a processor with few fast cores in place of many slow ones, one thread unless a row says more, a table of \
                       2023 or 2024 (or a generated one), and 2^20 addresses unless a row says more";

const TABLE_3: Exhibit = Exhibit {
    name: "table-3",
    title: "Table 3: IPv4 prefixes before and after expansion",
    about: "Prefixes up to /20 go to a direct array of 2^20 entries, /21 to /24 become /24s, and /25 to /32 become /32s. A prefix \
            within another of its group adds none. The published 11,3397 is read as 113,397.",
    rows: "table",
    columns: &[
        Column { name: "to /20", unit: "prefixes" },
        Column { name: "/21 to /24", unit: "prefixes" },
        Column { name: "/25 to /32", unit: "prefixes" },
        Column { name: "/24 after", unit: "prefixes" },
        Column { name: "/32 after", unit: "prefixes" },
    ],
    published: published::TABLE_3,
    setting: "seven tables of 2016 and 2017",
    differs: "tables of 2015 and 2023, or generated ones",
    parts: &[
        Part { name: "2023", work: Work::Values(|context| counts::table_3(context, FULL_4)) },
        Part { name: "2015", work: Work::Values(|context| counts::table_3(context, OF_2015)) },
    ],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "expansion of /21 to /24 less than doubles the prefixes",
        published: "1.84 to 1.91",
        judge: Judge::Ratio { of: ("*", "/24 after"), over: ("*", "/21 to /24"), least: 1.0, most: 2.0 },
    }],
};

const TABLE_4: Exhibit = Exhibit {
    name: "table-4",
    title: "Table 4: lengths of IPv6 levels by DPCPE, and prefixes after expansion",
    about: "The published choice begins with /64 and adds the length that lowers the cost most, without revising: all published sets \
            of a table are nested. \"Exact\" is the least cost by the same function, \"capture\" the least number of prefixes that \
            are then there. By the definition of the cost, actual can be at most the estimate; the published rows of EQUINIX, LINX \
            and NWAX have it up to twice as large and cannot come from this function.",
    rows: "table, choice and lengths",
    columns: &[
        Column { name: "estimate", unit: "thousand prefixes" },
        Column { name: "actual", unit: "thousand prefixes" },
    ],
    published: published::TABLE_4,
    setting: "AS65000-V6 and three tables of Routeviews; 3 levels were not possible",
    differs: "a table of 2024, or a generated one; prefixes beyond /64, which have levels of their own, are left out",
    parts: &[Part { name: "full", work: Work::Values(|context| counts::table_4(context, FULL_6)) }],
    against: None,
    chart: Chart::None,
    claims: &[
        Claim {
            text: "the estimate is a lower bound of the actual number",
            published: "actual up to 1.9 times the estimate",
            judge: Judge::Ratio {
                of: ("*", "actual"),
                over: ("*", "estimate"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "three levels are impossible: the greedy choice needs hundreds of millions of prefixes",
            published: "650,417 thousand",
            judge: Judge::Value {
                of: ("greedy, 3 levels", "estimate"),
                least: 67_108.864,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "that is the greedy choice's doing: exactly, three levels need few prefixes",
            published: "not in the paper",
            judge: Judge::Value { of: ("exact, 3 levels", "estimate"), least: 0.0, most: 67_108.864 },
        },
    ],
};

const TABLE_5: Exhibit = Exhibit {
    name: "table-5",
    title: "Table 5: sizes of filters by false-positive ratio",
    about: "m = ceil(n * log2(1/f) / ln 2) bits and k = ceil(log2(1/f)) hashes, with n the prefixes after expansion of Table 3. The \
            measured values are computed from the published n: they must be equal. The published 2,22,732 is read as 222,732.",
    rows: "table and group",
    columns: &[
        Column { name: "m, 1 %", unit: "bits" },
        Column { name: "m, 10 %", unit: "bits" },
        Column { name: "m, 30 %", unit: "bits" },
        Column { name: "m, 60 %", unit: "bits" },
        Column { name: "m, 90 %", unit: "bits" },
        Column { name: "k, 1 %", unit: "hashes" },
        Column { name: "k, 10 %", unit: "hashes" },
        Column { name: "k, 30 %", unit: "hashes" },
        Column { name: "k, 60 %", unit: "hashes" },
        Column { name: "k, 90 %", unit: "hashes" },
    ],
    published: published::TABLE_5,
    setting: "the seven tables of Table 3",
    differs: "nothing for the published tables; the last rows are of the table here",
    parts: &[
        Part { name: "published", work: Work::Values(counts::table_5) },
        Part { name: "full", work: Work::Values(|context| counts::table_5_here(context, FULL_4)) },
    ],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "the filter of AS65000's /24s at 30 % has 2,434,631 bits",
        published: "2,434,631",
        judge: Judge::Value { of: ("AS65000 G1", "m, 30 %"), least: 2_434_631.0, most: 2_434_631.0 },
    }],
};

const RATIOS: Exhibit = Exhibit {
    name: "ratios",
    title: "Section 6.2: the false-positive ratio that filters really have",
    about: "k is rounded up, so that the ratio of a full filter is (1 - e^(-kn/m))^k. Measured is the share of random prefixes that \
            are not in a group and pass its filter, with H2.",
    rows: "wanted ratio",
    columns: &[
        Column { name: "expected", unit: "%" },
        Column { name: "/24, measured", unit: "%" },
        Column { name: "/32, measured", unit: "%" },
    ],
    published: &[],
    setting: "",
    differs: "the paper prints no measured ratio",
    parts: &[Part { name: "full", work: Work::Values(|context| counts::ratios(context, FULL_4)) }],
    against: None,
    chart: Chart::Bars,
    claims: &[],
};

/// The pairs of hash functions at a ratio.
macro_rules! pairs {
    ($percent:literal) => {
        Work::Ipv4(Rates {
            table: FULL_4,
            contestants: Contestants::Registry(&[
                concat!("bloomfwd:murmur+murmur:", $percent),
                concat!("bloomfwd:murmur+knuth:", $percent),
                concat!("bloomfwd:murmur+h2:", $percent),
                concat!("bloomfwd:knuth+murmur:", $percent),
                concat!("bloomfwd:knuth+knuth:", $percent),
                concat!("bloomfwd:knuth+h2:", $percent),
                concat!("bloomfwd:h2+murmur:", $percent),
                concat!("bloomfwd:h2+knuth:", $percent),
                concat!("bloomfwd:h2+h2:", $percent),
            ]),
            traffic: &["rnd"],
            batches: &[256],
            threads: &[1],
            rows: Dimension::Structure,
            columns: Dimension::Parameter,
        })
    };
}

const FIGURE_1: Exhibit = Exhibit {
    name: "figure-1",
    title: "Fig. 1: hash functions and false-positive ratios",
    about: "Every pair of a function for the filters and one for the hash tables, as bloomfwd:FILTER+TABLE, by the ratio in percent. \
            The paper draws times, of which it prints none; here they are rates. Murmur is the 32-bit finaliser.",
    rows: "structure",
    columns: &[
        Column { name: "5", unit: MLPS },
        Column { name: "10", unit: MLPS },
        Column { name: "20", unit: MLPS },
        Column { name: "30", unit: MLPS },
        Column { name: "40", unit: MLPS },
        Column { name: "50", unit: MLPS },
        Column { name: "60", unit: MLPS },
    ],
    published: &[],
    setting: "",
    differs: DIFFERS,
    parts: &[
        Part { name: "ratio-5", work: pairs!(5) },
        Part { name: "ratio-10", work: pairs!(10) },
        Part { name: "ratio-20", work: pairs!(20) },
        Part { name: "ratio-30", work: pairs!(30) },
        Part { name: "ratio-40", work: pairs!(40) },
        Part { name: "ratio-50", work: pairs!(50) },
        Part { name: "ratio-60", work: pairs!(60) },
    ],
    against: None,
    chart: Chart::Bars,
    claims: &[
        Claim {
            text: "H2 for both is faster than Knuth's function for both, at 30 %",
            published: "faster",
            judge: Judge::Ratio {
                of: ("bloomfwd:h2+h2", "30"),
                over: ("bloomfwd:knuth+knuth", "30"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "one function for both, whose hash is used again, is faster than Murmur and H2, at 30 %",
            published: "faster",
            judge: Judge::Ratio {
                of: ("bloomfwd:h2+h2", "30"),
                over: ("bloomfwd:murmur+h2", "30"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "30 % is better than 5 %, for every pair",
            published: "the best on average",
            judge: Judge::Ratio { of: ("*", "30"), over: ("*", "5"), least: 1.0, most: f64::INFINITY },
        },
        Claim {
            text: "30 % is better than 60 %, for every pair",
            published: "the best on average",
            judge: Judge::Ratio { of: ("*", "30"), over: ("*", "60"), least: 1.0, most: f64::INFINITY },
        },
    ],
};

const IPV4: Rates<u32> = Rates {
    table: FULL_4,
    contestants: Contestants::Registry(&["bloomfwd", "bloomfwd-auto", "bloom-baseline", "miht"]),
    traffic: &["rnd"],
    batches: &[256],
    threads: &[1],
    rows: Dimension::Threads,
    columns: Dimension::Algorithm,
};

const FIGURE_2: Exhibit = Exhibit {
    name: "figure-2",
    title: "Fig. 2: speed by threads",
    about: "The baseline has the same filters with rand() for a hash and no vectors; bloomfwd-auto leaves the vectors to the \
            compiler. The naive filters have one row: they are no part of the figure.",
    rows: "threads",
    columns: &[
        Column { name: "bloomfwd", unit: MLPS },
        Column { name: "bloomfwd-auto", unit: MLPS },
        Column { name: "bloom-baseline", unit: MLPS },
        Column { name: "miht", unit: MLPS },
        Column { name: "bloom-naive", unit: MLPS },
    ],
    published: &[Published::new("1", "bloom-baseline", 0.31), Published::new("1", "miht", 0.46)],
    setting: PHI,
    differs: DIFFERS,
    parts: &[
        Part { name: "rates", work: Work::Ipv4(Rates { threads: &[1, 2, 4, 8, 16], ..IPV4 }) },
        Part {
            name: "naive",
            work: Work::Ipv4(Rates { contestants: Contestants::Registry(&["bloom-naive"]), ..IPV4 }),
        },
    ],
    against: Some("miht"),
    chart: Chart::Lines,
    claims: &[
        Claim {
            text: "on one core, Bloomfwd is the fastest, 3.7 times MIHT or more",
            published: "3.7",
            judge: Judge::Ratio {
                of: ("1", "bloomfwd"),
                over: ("1", "miht"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "on one core, MIHT is faster than the baseline",
            published: "0.46 / 0.31 = 1.5",
            judge: Judge::Ratio {
                of: ("1", "miht"),
                over: ("1", "bloom-baseline"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "vectors by hand are faster than those of the compiler",
            published: "faster on the Phi",
            judge: Judge::Ratio {
                of: ("1", "bloomfwd"),
                over: ("1", "bloomfwd-auto"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
    ],
};

const SCHEDULES: Exhibit = Exhibit {
    name: "schedules",
    title: "Section 4.3: ways to divide addresses among threads",
    about: "Shares of the same size for each thread; chunks that a free thread takes by adding to a counter; and chunks that rayon, \
            a data-parallel run-time, divides. Threads are pinned, one to a core. With a manager, a core is left to the thread \
            that starts the others. 'fibula bench --schedule' measures any structure.",
    rows: "structure and schedule",
    columns: schedules::COLUMNS,
    published: &[],
    setting: "",
    differs: "the paper schedules with OpenMP and prints no rates of its ways; it names the dynamic one with chunks of one as the best",
    parts: &[
        Part {
            name: "ways",
            work: Work::Values(|context| schedules::rates(context, FULL_4, &["bloomfwd", "miht"], false)),
        },
        Part {
            name: "manager",
            work: Work::Values(|context| schedules::rates(context, FULL_4, &["bloomfwd"], true)),
        },
    ],
    against: None,
    chart: Chart::None,
    claims: &[
        Claim {
            text: "a dynamic schedule with chunks of one is the best: against shares, on two cores",
            published: "the best",
            judge: Judge::Ratio {
                of: ("bloomfwd, dynamic, chunks of 1", "2"),
                over: ("bloomfwd, static", "2"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "chunks of a batch cost nothing against shares, on two cores",
            published: "not in the paper",
            judge: Judge::Ratio {
                of: ("bloomfwd, dynamic, chunks of 256", "2"),
                over: ("bloomfwd, static", "2"),
                least: 0.9,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "two cores look up almost twice as much as one, of shares",
            published: "116 times with 244 threads on 61 cores",
            judge: Judge::Ratio {
                of: ("bloomfwd, static", "2"),
                over: ("bloomfwd, static", "1"),
                least: 1.8,
                most: 2.2,
            },
        },
    ],
};

const FIGURE_3: Exhibit = Exhibit {
    name: "figure-3",
    title: "Fig. 3: speed by matching ratio",
    about: "Of mix:80, 80 % of the addresses are below a random prefix of the table, and the rest match nothing but a default route.",
    rows: "traffic",
    columns: &[Column { name: "bloomfwd", unit: MLPS }],
    published: &[],
    setting: "",
    differs: DIFFERS,
    parts: &[Part {
        name: "rates",
        work: Work::Ipv4(Rates {
            contestants: Contestants::Registry(&["bloomfwd"]),
            traffic: &["mix:0", "mix:20", "mix:40", "mix:60", "mix:80", "mix:100"],
            rows: Dimension::Traffic,
            ..IPV4
        }),
    }],
    against: None,
    chart: Chart::Bars,
    claims: &[Claim {
        text: "the matching ratio has little impact: all against none",
        published: "little",
        judge: Judge::Ratio {
            of: ("mix:100", "bloomfwd"),
            over: ("mix:0", "bloomfwd"),
            least: 0.8,
            most: 1.25,
        },
    }],
};

const ADDRESSES: Exhibit = Exhibit {
    name: "addresses",
    title: "Section 6.1: as many addresses as the paper, and fewer",
    about: "The paper looks up 2^26 addresses. The other exhibits look up 2^20 again and again; a larger set is read from memory.",
    rows: "random addresses",
    columns: &[Column { name: "bloomfwd", unit: MLPS }, Column { name: "miht", unit: MLPS }],
    published: &[],
    setting: "",
    differs: DIFFERS,
    parts: &[Part {
        name: "rates",
        work: Work::Ipv4(Rates {
            contestants: Contestants::Registry(&["bloomfwd", "miht"]),
            rows: Dimension::Keys,
            ..IPV4
        }),
    }],
    against: Some("miht"),
    chart: Chart::Bars,
    claims: &[],
};

const FIGURE_4: Exhibit = Exhibit {
    name: "figure-4",
    title: "Fig. 4: random and real addresses",
    about: "Real traffic repeats addresses. Recorded are the clients of a web server, in their order, where their list is in the \
            folder of tables ('fibula bench --addresses FILE' measures any list); ZIPF takes few prefixes often.",
    rows: "traffic",
    columns: &[Column { name: "bloomfwd", unit: MLPS }, Column { name: "miht", unit: MLPS }],
    published: &[],
    setting: "",
    differs: "10,000 addresses of a web server's log in place of a trace of CAIDA, which is no part of this project; and as in Fig. 2",
    parts: &[Part {
        name: "rates",
        work: Work::Ipv4(Rates {
            contestants: Contestants::Registry(&["bloomfwd", "miht"]),
            traffic: &["rnd", "zipf", "recorded:v4-apache2015-clients"],
            rows: Dimension::Traffic,
            ..IPV4
        }),
    }],
    against: Some("miht"),
    chart: Chart::Bars,
    claims: &[
        Claim {
            text: "real addresses are faster than random ones, as caches hold more of what they need",
            published: "1.16",
            judge: Judge::Ratio {
                of: ("recorded", "bloomfwd"),
                over: ("rnd", "bloomfwd"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
        Claim {
            text: "so are those that take few prefixes often",
            published: "not in the paper",
            judge: Judge::Ratio {
                of: ("zipf", "bloomfwd"),
                over: ("rnd", "bloomfwd"),
                least: 1.0,
                most: f64::INFINITY,
            },
        },
    ],
};

const FIGURE_5: Exhibit = Exhibit {
    name: "figure-5",
    title: "Fig. 5: speed by size of the table",
    about: "Prefixes are removed at random until this share is left.",
    rows: "share",
    columns: &[Column { name: "bloomfwd", unit: MLPS }],
    published: &[Published::new("1", "bloomfwd", 68.0), Published::new("1/16", "bloomfwd", 79.0)],
    setting: PHI,
    differs: DIFFERS,
    parts: &[
        Part { name: "whole", work: Work::Values(|context| sizes::rates(context, FULL_4, 1)) },
        Part { name: "half", work: Work::Values(|context| sizes::rates(context, FULL_4, 2)) },
        Part { name: "fourth", work: Work::Values(|context| sizes::rates(context, FULL_4, 4)) },
        Part { name: "eighth", work: Work::Values(|context| sizes::rates(context, FULL_4, 8)) },
        Part { name: "sixteenth", work: Work::Values(|context| sizes::rates(context, FULL_4, 16)) },
    ],
    against: None,
    chart: Chart::Bars,
    claims: &[Claim {
        text: "a sixteenth of the table is faster, but not by much",
        published: "1.16",
        judge: Judge::Ratio { of: ("1/16", "bloomfwd"), over: ("1", "bloomfwd"), least: 1.0, most: 1.5 },
    }],
};

const FIGURE_6: Exhibit = Exhibit {
    name: "figure-6",
    title: "Fig. 6: Bloomfwd and MIHT on IPv4 tables",
    about: "RND on several tables. The paper's gain is about 4 on the 7120P for each of its five tables.",
    rows: "table",
    columns: &[Column { name: "bloomfwd", unit: MLPS }, Column { name: "miht", unit: MLPS }],
    published: &[Published::new("best of five tables, Xeon Phi 7250", "bloomfwd", 169.65)],
    setting: "Intel Xeon Phi 7250 (68 cores at 1.6 GHz); 2^26 random addresses",
    differs: DIFFERS,
    parts: &[
        Part { name: "2023", work: TABLES },
        Part { name: "2015", work: Work::Ipv4(Rates { table: OF_2015, ..ON_TABLES }) },
        Part {
            name: "million",
            work: Work::Ipv4(Rates { table: Table { real: None, made: "ipv4-1m" }, ..ON_TABLES }),
        },
    ],
    against: Some("miht"),
    chart: Chart::Bars,
    claims: &[Claim {
        text: "Bloomfwd is about 4 times as fast as MIHT on every table",
        published: "about 4",
        judge: Judge::Ratio { of: ("*", "bloomfwd"), over: ("*", "miht"), least: 2.0, most: f64::INFINITY },
    }],
};

const ON_TABLES: Rates<u32> =
    Rates { contestants: Contestants::Registry(&["bloomfwd", "miht"]), rows: Dimension::Table, ..IPV4 };
const TABLES: Work = Work::Ipv4(ON_TABLES);
