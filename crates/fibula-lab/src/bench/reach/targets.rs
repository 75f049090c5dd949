//! The targets of speed and size, as data.

use fibula::fib::registry::Families;
use fibula::simd::Isa;

use super::super::contestant::least_with;
use super::super::row::Row;

/// A target: a figure, its bound, and a further goal.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// What is measured, for people.
    pub work: &'static str,
    /// The families it applies to.
    pub families: Families,
    /// The figure.
    pub figure: Figure,
    /// The bound that it must meet.
    pub reach: Bound,
    /// A further goal, to read benchmark records by.
    pub goal: Option<Bound>,
}

/// A figure of one of our own structures: the best of the kernels and batches that the target allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Million lookups a second.
    Rate {
        /// The keys.
        traffic: &'static str,
        /// Keys a call; any batch of the plan if none.
        batch: Option<usize>,
        /// The largest instruction set allowed, for all contestants; any if none.
        within: Option<Isa>,
    },
    /// Lookup bytes a prefix.
    Bytes,
    /// Milliseconds to build from routes in order.
    Build,
    /// The rate with additional host routes, relative to the plain table's.
    Hosts {
        /// The keys.
        traffic: &'static str,
    },
    /// Lookup bytes of a table of this many routes, relative to its sorted array.
    SmallBytes(usize),
    /// Milliseconds to build a table of this many routes.
    SmallBuild(usize),
    /// Million lookups a second in a table of this many routes, MATCH.
    SmallRate(usize),
    /// The rate with a table that has routes longer than /64, relative to the same table without them; MATCH.
    Exact,
    /// The scaling efficiency of all cores; MATCH.
    Cores,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// This many times as good as the best of these, measured in the same run: this many times the rate, or the time
    /// divided by it.
    Times(f64, Peers),
}

/// The structures that a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peers {
    /// All that are not our own: published structures and rivals.
    Others,
    /// DIR24_8 of `rte_fib` in any form, Poptrie, and DXR as published: for every k, scalar.
    Ipv4,
    /// PlanB as published, at its best kernel and batch.
    PlanB,
    /// `rte_fib6` with its AVX-512 lookup.
    RteFib6Avx512,
    /// Any form of `rte_fib`.
    RteFib,
    /// Any form of `rte_fib6`.
    RteFib6,
}

/// A member of a group of peers: its name for people, which rows are its, and how to get it measured.
pub(super) type Member = (&'static str, fn(&Row) -> bool, &'static str);

const NEEDS_DPDK: &str = "not measured: needs --rivals with feature dpdk";

impl Peers {
    /// Returns whether the row is that of a peer.
    pub(super) fn contain(self, row: &Row) -> bool {
        !row.is_ours() && row.role != "oracle" && self.members().iter().any(|(_, is, _)| is(row))
    }

    /// Returns the members of the group.
    pub(super) fn members(self) -> &'static [Member] {
        const FIB: Member = ("rte_fib", |row| row.algorithm.starts_with("rte-fib-"), NEEDS_DPDK);
        const FIB6: Member = ("rte_fib6", |row| row.algorithm.starts_with("rte-fib6-"), NEEDS_DPDK);
        match self {
            Self::Others => &[
                ("published structures", |row| !row.rival, "not measured"),
                ("rivals", |row| row.rival, NEEDS_DPDK),
            ],
            Self::Ipv4 => &[
                FIB,
                ("Poptrie", |row| row.algorithm == "poptrie", "not measured"),
                ("DXR as published", is_published_dxr, "not measured"),
            ],
            Self::PlanB => {
                &[("PlanB", |row| ["planb", "planb-unmerged"].contains(&&*row.algorithm), "not measured")]
            }
            Self::RteFib6Avx512 => {
                &[("rte_fib6 AVX-512", |row| FIB6.1(row) && least_with(&row.isa) > Isa::Avx2, NEEDS_DPDK)]
            }
            Self::RteFib => &[FIB],
            Self::RteFib6 => &[FIB6],
        }
    }
}

/// `dxr-16` to `dxr-24`. Longer names are variants that the paper does not have.
fn is_published_dxr(row: &Row) -> bool {
    let k = row.algorithm.strip_prefix("dxr-");
    row.isa == "scalar" && k.is_some_and(|k| !k.is_empty() && k.bytes().all(|byte| byte.is_ascii_digit()))
}

const fn rate(traffic: &'static str) -> Figure {
    Figure::Rate { traffic, batch: None, within: None }
}

const fn within(traffic: &'static str, isa: Isa) -> Figure {
    Figure::Rate { traffic, batch: None, within: Some(isa) }
}

const fn one_key(traffic: &'static str) -> Figure {
    Figure::Rate { traffic, batch: Some(1), within: None }
}

const fn target(
    work: &'static str,
    families: Families,
    figure: Figure,
    reach: Bound,
    goal: Option<Bound>,
) -> Target {
    Target { work, families, figure, reach, goal }
}

use Bound::{AtLeast, AtMost, Times};
use Families::{Both, Ipv4, Ipv6};
use Peers::{Others, PlanB, RteFib, RteFib6, RteFib6Avx512};

const AHEAD: Bound = Times(1.0, Others);

/// All of them.
pub const TARGETS: &[Target] = &[
    target("RND", Ipv4, rate("rnd"), Times(3.0, Peers::Ipv4), Some(AtLeast(1000.0))),
    target("MATCH", Ipv4, rate("match"), Times(1.15, Peers::Ipv4), Some(Times(1.5, Peers::Ipv4))),
    target("ZIPF", Ipv4, rate("zipf"), Times(1.15, Peers::Ipv4), Some(Times(1.5, Peers::Ipv4))),
    target("bytes a prefix", Ipv4, Figure::Bytes, AtMost(2.0), Some(AtMost(1.3))),
    target("MATCH", Ipv6, rate("match"), Times(1.7, PlanB), Some(Times(2.5, PlanB))),
    target("ZIPF", Ipv6, rate("zipf"), Times(1.7, PlanB), Some(Times(2.5, PlanB))),
    target("MATCH", Ipv6, rate("match"), Times(3.0, RteFib6Avx512), None),
    target("ZIPF", Ipv6, rate("zipf"), Times(3.0, RteFib6Avx512), None),
    target("bytes a prefix", Ipv6, Figure::Bytes, AtMost(9.0), Some(AtMost(6.0))),
    target("SEQ", Both, rate("seq"), AHEAD, Some(Times(1.3, Others))),
    target("batch of 1, RND", Both, one_key("rnd"), AHEAD, Some(Times(1.3, Others))),
    target("batch of 1, MATCH", Both, one_key("match"), AHEAD, Some(Times(1.3, Others))),
    target("AVX-512 forbidden, RND", Both, within("rnd", Isa::Avx2), AHEAD, None),
    target("AVX-512 forbidden, MATCH", Both, within("match", Isa::Avx2), AHEAD, None),
    target("AVX-512 forbidden, ZIPF", Both, within("zipf", Isa::Avx2), AHEAD, None),
    target("scalar alone, RND", Both, within("rnd", Isa::Scalar), AHEAD, None),
    target("scalar alone, MATCH", Both, within("match", Isa::Scalar), AHEAD, None),
    target("scalar alone, ZIPF", Both, within("zipf", Isa::Scalar), AHEAD, None),
    target("with host routes, RND", Both, Figure::Hosts { traffic: "rnd" }, AtLeast(0.6), Some(AtLeast(0.8))),
    target(
        "with host routes, MATCH",
        Both,
        Figure::Hosts { traffic: "match" },
        AtLeast(0.6),
        Some(AtLeast(0.8)),
    ),
    target("10 routes, bytes", Both, Figure::SmallBytes(10), AtMost(2.0), None),
    target("100 routes, bytes", Both, Figure::SmallBytes(100), AtMost(2.0), None),
    target("1000 routes, bytes", Both, Figure::SmallBytes(1000), AtMost(2.0), None),
    target("10 routes, build", Both, Figure::SmallBuild(10), AtMost(1.0), None),
    target("100 routes, build", Both, Figure::SmallBuild(100), AtMost(1.0), None),
    target("1000 routes, build", Both, Figure::SmallBuild(1000), AtMost(1.0), None),
    target("10 routes, MATCH", Both, Figure::SmallRate(10), AHEAD, None),
    target("100 routes, MATCH", Both, Figure::SmallRate(100), AHEAD, None),
    target("1000 routes, MATCH", Both, Figure::SmallRate(1000), AHEAD, None),
    target("keys of 128 bits, exact", Ipv6, Figure::Exact, AtLeast(0.9), Some(AtLeast(1.0))),
    target("build in ms", Ipv4, Figure::Build, AtMost(60.0), Some(AtMost(20.0))),
    target("build in ms", Ipv6, Figure::Build, AtMost(30.0), Some(AtMost(10.0))),
    target("build, times faster", Ipv4, Figure::Build, Times(5.0, RteFib), None),
    target("build, times faster", Ipv6, Figure::Build, Times(5.0, RteFib6), None),
    target("all cores, scaling efficiency", Both, Figure::Cores, AtLeast(0.95), None),
];

/// Numbers of routes of the small tables.
pub(super) const SMALL: [usize; 3] = [10, 100, 1000];
