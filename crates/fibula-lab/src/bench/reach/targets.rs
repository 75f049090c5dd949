//! The targets of speed and size, as data.

use fibula::fib::registry::Families;
use fibula::simd::Isa;

use super::super::peers;
use super::super::row::Row;
use super::live::Live;
use fibula_workload::machine::Machine;

/// A target: a figure, its bound, and a further goal.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The measurement, in words for people.
    pub work: &'static str,
    /// The families it applies to.
    pub families: Families,
    /// The figure.
    pub figure: Figure,
    /// The bound that it must meet; none if there is only a goal.
    pub reach: Option<Bound>,
    /// A further goal, to read benchmark records by.
    pub goal: Option<Bound>,
}

/// A figure of one of our own engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Million lookups a second.
    Rate(Race),
    /// Lookup bytes a prefix.
    Bytes(Variant),
    /// Milliseconds to build from routes in order.
    Build,
    /// The rate with additional host routes, relative to the plain table's.
    Hosts {
        /// The keys.
        traffic: &'static str,
    },
    /// The rate with a table of many routes beyond /64, relative to the same table with those routes cut to /64; MATCH.
    Exact {
        /// Whether the keys are of that table, most of them below routes beyond /64; otherwise of the plain table.
        beyond: bool,
    },
    /// Lookup bytes of a table of this many routes, relative to its sorted array.
    SmallBytes(usize),
    /// Microseconds to build a table of this many routes.
    SmallBuild(usize),
    /// The scaling efficiency of all cores; MATCH.
    Cores,
    /// A figure of a table that changes.
    Live(Live),
}

/// A comparison of rates: our engines and their peers take turns over the same keys, each at the fastest of the
/// batches and instruction sets that it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// The table: the given one, or one of this many routes.
    pub routes: Option<usize>,
    /// The keys.
    pub traffic: &'static str,
    /// Keys a call of our engines; any number if none.
    pub own: Option<usize>,
    /// Keys a call of the others; any number if none.
    pub theirs: Option<usize>,
    /// The largest instruction set allowed; any if none.
    pub within: Option<Isa>,
}

/// A change of the table that bytes are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// None.
    Plain,
    /// With routes for link-local and multicast addresses, NAT64 and an unallocated block, all far from the others.
    Exotic,
    /// With tens of thousands of next hops beyond 16 bits, a block of addresses having one, as by origin AS.
    WideNextHops,
}

/// The bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// This many times as good as the best of these, measured in the same run: this many times the rate, or the time
    /// divided by it.
    Times(Factor, Peers),
}

/// A factor that depends on the processor's vendor: caches differ, and with them the possible rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// On AMD's processors.
    pub amd: f64,
    /// On all others.
    pub others: f64,
}

impl Factor {
    /// Returns the factor for this machine.
    #[must_use]
    pub fn here(self) -> f64 {
        if self.amd == self.others || !Machine::this().is_amd() { self.others } else { self.amd }
    }
}

/// The engines that a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peers {
    /// DPDK's tables, and the published engines: DIR-24-8, DXR as published, PlanB, Poptrie.
    Contestants,
    /// PlanB: the registry's, and the loop in plain C++.
    PlanB,
    /// Any form of `rte_fib` or `rte_fib6`.
    RteFib,
    /// The range search of the registry.
    RangeSearch,
}

/// A member of a group of peers.
pub(super) struct Member {
    /// Its name for people.
    pub(super) name: &'static str,
    families: Families,
    /// Whether a row of an engine of this name is its; and of a rival.
    is: fn(&str, bool) -> bool,
    /// How to get it measured.
    pub(super) get: &'static str,
}

impl Member {
    pub(super) fn has(&self, row: &Row) -> bool {
        let family = if row.family == "ipv4" { fibula::net::Family::Ipv4 } else { fibula::net::Family::Ipv6 };
        row.role != "oracle" && self.families.contains(family) && (self.is)(&row.engine, row.rival)
    }
}

const NOT: &str = "not measured";
const NEEDS_DPDK: &str = "not measured: needs --rivals with feature dpdk";
const NEEDS_PLAIN: &str = "not measured: needs --rivals with feature plain";

const fn member(
    name: &'static str,
    families: Families,
    is: fn(&str, bool) -> bool,
    get: &'static str,
) -> Member {
    Member { name, families, is, get }
}

const PLANB: Member = member("PlanB", Both, |name, rival| !rival && peers::is_planb(name), NOT);
const PLAIN_PLANB: Member =
    member("PlanB in C++", Ipv6, |name, rival| rival && peers::is_planb(name), NEEDS_PLAIN);

impl Peers {
    /// Returns whether the row is that of a peer.
    pub(super) fn contain(self, row: &Row) -> bool {
        !row.is_ours() && self.members().iter().any(|member| member.has(row))
    }

    /// Returns the members of the group in a family.
    pub(super) fn of(self, family: fibula::net::Family) -> impl Iterator<Item = &'static Member> {
        self.members().iter().filter(move |member| member.families.contains(family))
    }

    fn members(self) -> &'static [Member] {
        match self {
            Self::Contestants => CONTESTANTS,
            Self::PlanB => PLANBS,
            Self::RteFib => RTE_FIBS,
            Self::RangeSearch => RANGE_SEARCH,
        }
    }
}

const CONTESTANTS: &[Member] = &[
    member("DPDK", Both, |name, _| peers::is_dpdk(name), NEEDS_DPDK),
    member("DIR-24-8", Ipv4, |name, _| name == "dir-24-8", NOT),
    member("DXR as published", Ipv4, |name, _| peers::is_published_dxr(name), NOT),
    member("Poptrie", Both, |name, _| name == "poptrie", NOT),
    PLANB,
    PLAIN_PLANB,
];
const PLANBS: &[Member] = &[PLANB, PLAIN_PLANB];
const RTE_FIBS: &[Member] = &[
    member("rte_fib", Ipv4, |name, _| peers::is_rte_fib(name), NEEDS_DPDK),
    member("rte_fib6", Ipv6, |name, _| peers::is_rte_fib6(name), NEEDS_DPDK),
];
const RANGE_SEARCH: &[Member] = &[member("range-search", Both, |name, _| name == "range-search", NOT)];

const fn rate(traffic: &'static str) -> Figure {
    Figure::Rate(Race { routes: None, traffic, own: None, theirs: None, within: None })
}

const fn within(traffic: &'static str, isa: Isa) -> Figure {
    Figure::Rate(Race { routes: None, traffic, own: None, theirs: None, within: Some(isa) })
}

/// Both with this many keys a call.
const fn burst(traffic: &'static str, batch: usize) -> Figure {
    Figure::Rate(Race { routes: None, traffic, own: Some(batch), theirs: Some(batch), within: None })
}

/// Ours with this many keys a call, the others with any number.
const fn at(traffic: &'static str, batch: usize) -> Figure {
    Figure::Rate(Race { routes: None, traffic, own: Some(batch), theirs: None, within: None })
}

const fn small(routes: usize) -> Figure {
    Figure::Rate(Race { routes: Some(routes), traffic: "match", own: None, theirs: None, within: None })
}

const fn target(
    work: &'static str,
    families: Families,
    figure: Figure,
    reach: Bound,
    goal: Option<Bound>,
) -> Target {
    Target { work, families, figure, reach: Some(reach), goal }
}

/// A target that only has a goal.
const fn goal(work: &'static str, families: Families, figure: Figure, goal: Bound) -> Target {
    Target { work, families, figure, reach: None, goal: Some(goal) }
}

const fn times(factor: f64, peers: Peers) -> Bound {
    Times(Factor { amd: factor, others: factor }, peers)
}

const fn by_vendor(others: f64, amd: f64, peers: Peers) -> Bound {
    Times(Factor { amd, others }, peers)
}

use Bound::{AtLeast, AtMost, Times};
use Families::{Both, Ipv4, Ipv6};
use Figure::{Bytes, Cores, Exact, Hosts, SmallBuild, SmallBytes};
use Peers::{Contestants, PlanB, RangeSearch, RteFib};

const AHEAD: Bound = times(1.0, Contestants);
const FURTHER: Option<Bound> = Some(times(1.3, Contestants));
const HOSTS: Bound = AtLeast(0.6);
const HOSTS_GOAL: Option<Bound> = Some(AtLeast(0.8));

/// All of them.
pub const TARGETS: &[Target] = &[
    target("RND", Ipv4, rate("rnd"), by_vendor(3.0, 2.7, Contestants), Some(AtLeast(1000.0))),
    target("MATCH", Ipv4, rate("match"), times(1.4, Contestants), Some(times(2.0, Contestants))),
    target("ZIPF, batch 256", Ipv4, at("zipf", 256), AHEAD, FURTHER),
    target("ZIPF, batch 1024", Ipv4, at("zipf", 1024), AHEAD, FURTHER),
    target("RND, batch 16", Ipv4, burst("rnd", 16), times(2.0, RteFib), None),
    target("RND, batch 32", Ipv4, burst("rnd", 32), times(2.0, RteFib), None),
    target("MATCH, batch 16", Ipv4, burst("match", 16), times(1.3, RteFib), None),
    target("MATCH, batch 32", Ipv4, burst("match", 32), times(1.3, RteFib), None),
    goal("ZIPF, batch 16", Ipv4, burst("zipf", 16), times(1.0, RteFib)),
    goal("ZIPF, batch 32", Ipv4, burst("zipf", 32), times(1.0, RteFib)),
    target("MATCH, PlanB", Ipv6, rate("match"), by_vendor(1.4, 1.7, PlanB), Some(by_vendor(2.0, 3.0, PlanB))),
    target("ZIPF, PlanB", Ipv6, rate("zipf"), by_vendor(1.4, 1.7, PlanB), Some(by_vendor(2.0, 3.0, PlanB))),
    target("MATCH, rte_fib6", Ipv6, rate("match"), by_vendor(2.5, 3.0, RteFib), None),
    target("ZIPF, rte_fib6", Ipv6, rate("zipf"), by_vendor(2.5, 3.0, RteFib), None),
    target("MATCH, batch 16, PlanB", Ipv6, burst("match", 16), times(1.0, PlanB), None),
    target("MATCH, batch 16, rte_fib6", Ipv6, burst("match", 16), times(1.0, RteFib), None),
    target("MATCH, batch 32, PlanB", Ipv6, burst("match", 32), times(1.0, PlanB), None),
    target("MATCH, batch 32, rte_fib6", Ipv6, burst("match", 32), times(1.0, RteFib), None),
    target("ZIPF, batch 16, PlanB", Ipv6, burst("zipf", 16), times(1.0, PlanB), None),
    target("ZIPF, batch 16, rte_fib6", Ipv6, burst("zipf", 16), times(1.0, RteFib), None),
    target("ZIPF, batch 32, PlanB", Ipv6, burst("zipf", 32), times(1.0, PlanB), None),
    target("ZIPF, batch 32, rte_fib6", Ipv6, burst("zipf", 32), times(1.0, RteFib), None),
    target("SEQ", Both, burst("seq", 1), AHEAD, FURTHER),
    target("batch of 1, RND", Both, burst("rnd", 1), AHEAD, FURTHER),
    target("batch of 1, MATCH", Both, burst("match", 1), AHEAD, FURTHER),
    target("AVX-512 forbidden, RND", Both, within("rnd", Isa::Avx2), AHEAD, None),
    target("AVX-512 forbidden, MATCH", Both, within("match", Isa::Avx2), AHEAD, None),
    target("AVX-512 forbidden, ZIPF", Both, within("zipf", Isa::Avx2), AHEAD, None),
    target("scalar alone, RND", Both, within("rnd", Isa::Scalar), AHEAD, None),
    target("scalar alone, MATCH", Both, within("match", Isa::Scalar), AHEAD, None),
    target("scalar alone, ZIPF", Both, within("zipf", Isa::Scalar), AHEAD, None),
    target("bytes a prefix", Ipv4, Bytes(Variant::Plain), AtMost(2.0), Some(AtMost(0.8))),
    goal("bytes a prefix, wide next hops", Ipv4, Bytes(Variant::WideNextHops), AtMost(2.0)),
    target("bytes a prefix", Ipv6, Bytes(Variant::Plain), AtMost(6.1), Some(AtMost(4.0))),
    target("bytes a prefix, exotic routes", Ipv6, Bytes(Variant::Exotic), AtMost(6.1), Some(AtMost(4.0))),
    target(
        "bytes a prefix, wide next hops",
        Ipv6,
        Bytes(Variant::WideNextHops),
        AtMost(6.1),
        Some(AtMost(4.0)),
    ),
    target("with host routes, RND", Both, Hosts { traffic: "rnd" }, HOSTS, HOSTS_GOAL),
    target("with host routes, MATCH", Both, Hosts { traffic: "match" }, HOSTS, HOSTS_GOAL),
    target("keys of 128 bits, exact", Ipv6, Exact { beyond: false }, AtLeast(0.9), Some(AtLeast(1.0))),
    goal("the same, keys below host routes", Ipv6, Exact { beyond: true }, AtLeast(0.9)),
    target("10 routes, MATCH", Both, small(10), times(2.0, RangeSearch), None),
    target("100 routes, MATCH", Both, small(100), times(2.0, RangeSearch), None),
    target("1000 routes, MATCH", Both, small(1000), times(2.0, RangeSearch), None),
    target("10 routes, bytes", Both, SmallBytes(10), AtMost(2.0), None),
    target("100 routes, bytes", Both, SmallBytes(100), AtMost(2.0), None),
    target("1000 routes, bytes", Both, SmallBytes(1000), AtMost(2.0), None),
    target("10 routes, build", Both, SmallBuild(10), AtMost(10.0), None),
    target("100 routes, build", Both, SmallBuild(100), AtMost(50.0), None),
    target("1000 routes, build", Both, SmallBuild(1000), AtMost(200.0), None),
    target("build in ms", Ipv4, Figure::Build, AtMost(60.0), Some(AtMost(20.0))),
    target("build in ms", Ipv6, Figure::Build, AtMost(30.0), Some(AtMost(10.0))),
    target("build, times faster", Both, Figure::Build, times(5.0, RteFib), None),
    target("all cores, scaling efficiency", Both, Cores, AtLeast(0.95), None),
    target("a change, calls of 64", Ipv4, Figure::Live(Live::Change), AtMost(0.3), Some(AtMost(0.15))),
    target("a change, calls of 64", Ipv6, Figure::Live(Live::Change), AtMost(0.5), Some(AtMost(0.15))),
    target("changes beside a reader", Both, Figure::Live(Live::Rate), AtLeast(1.0), Some(AtLeast(5.0))),
    target("a reader's loss at 1 M changes/s", Both, Figure::Live(Live::Loss), AtMost(0.05), None),
    target("changes in place", Both, Figure::Live(Live::InPlace), AtLeast(0.999), None),
    target("visible, p50", Both, Figure::Live(Live::VisibleMedian), AtMost(5.0), Some(AtMost(1.0))),
    target("visible, p99.9", Both, Figure::Live(Live::VisibleMost), AtMost(100.0), Some(AtMost(20.0))),
    target("64 changes seen at once", Both, Figure::Live(Live::Atomic), AtMost(100.0), None),
    target("bytes after changes", Both, Figure::Live(Live::Churned), AtMost(1.25), None),
];

/// Numbers of routes of the small tables.
pub(super) const SMALL: [usize; 3] = [10, 100, 1000];
