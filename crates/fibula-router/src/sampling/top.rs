//! The largest of the recent samples, by one of their properties.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use super::observed::{Observed, Origin};
use super::origins::Origins;
use crate::acl;
use crate::api::{Top, TopBy, TopRow};
use crate::drops::DropReason;
use crate::forward::trace::Fate;

/// Samples that are kept, at most: some 10 MB.
pub const KEPT: usize = 65_536;

/// The latest samples.
#[derive(Debug, Default)]
pub struct Recent {
    samples: VecDeque<Observed>,
    /// When the oldest sample was left out that is not kept any more: milliseconds since 1970.
    since_ms: u64,
}

impl Recent {
    /// Keeps samples from this moment on.
    #[must_use]
    pub fn new(since_ms: u64) -> Self {
        Self { samples: VecDeque::new(), since_ms }
    }

    /// Adds a sample. Of too many, the oldest goes.
    pub fn push(&mut self, observed: Observed) {
        if self.samples.len() >= KEPT
            && let Some(oldest) = self.samples.pop_front()
        {
            self.since_ms = oldest.at_ms;
        }
        self.samples.push_back(observed);
    }

    /// Returns the samples of the last `seconds`, and the seconds that they are of: fewer if not so many are kept.
    #[must_use]
    pub fn last(&self, seconds: u64, now_ms: u64) -> (Vec<Observed>, f64) {
        let begin = now_ms.saturating_sub(seconds.saturating_mul(1000)).max(self.since_ms);
        // From the end, because a clock that was set back leaves samples from the future at the begin.
        let count = self.samples.iter().rev().take_while(|observed| observed.at_ms > begin).count();
        let samples = self.samples.range(self.samples.len() - count..).copied().collect();
        (samples, now_ms.saturating_sub(begin) as f64 / 1000.0)
    }
}

/// A property of samples, by which they are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Property {
    Address(bool, u128),
    Prefix(bool, u128, u8),
    NoRoute,
    As(u32),
    Way(u16, Option<u16>),
    Protocol(u8),
    Outcome(FateOrder),
    Uncounted,
}

/// A fate, with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum FateOrder {
    Forwarded,
    Waiting,
    Delivered,
    Consumed,
    Dropped(DropReason),
}

impl From<Fate> for FateOrder {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Forwarded => Self::Forwarded,
            Fate::Waiting => Self::Waiting,
            Fate::Delivered => Self::Delivered,
            Fate::Consumed => Self::Consumed,
            Fate::Dropped(reason) => Self::Dropped(reason),
        }
    }
}

fn ip(v6: bool, address: u128) -> IpAddr {
    if v6 { IpAddr::V6(address.into()) } else { IpAddr::V4((address as u32).into()) }
}

impl Property {
    fn of(observed: &Observed, by: TopBy) -> Self {
        let Observed { sample, source, destination, .. } = observed;
        let packet = &sample.packet;
        let prefix = |address: u128, origin: &Origin| match origin.has_route {
            true => {
                let bits = if packet.v6 { 128 } else { 32 };
                // The bits after the prefix, which a shift by all of them would not clear.
                let host = u128::MAX.checked_shr(128 - bits + u32::from(origin.len)).unwrap_or(0);
                Self::Prefix(packet.v6, address & !host, origin.len)
            }
            false => Self::NoRoute,
        };
        match by {
            TopBy::Source => Self::Address(packet.v6, packet.source),
            TopBy::Destination => Self::Address(packet.v6, packet.destination),
            TopBy::Prefix => prefix(packet.destination, destination),
            TopBy::SourcePrefix => prefix(packet.source, source),
            TopBy::As => Self::As(destination.origin),
            TopBy::SourceAs => Self::As(source.origin),
            TopBy::Interface => Self::Way(packet.input, packet.output),
            TopBy::Protocol => Self::Protocol(packet.protocol),
            TopBy::Outcome => Self::Outcome(sample.fate.into()),
            // Counters have these: see `by_rule`.
            TopBy::Rule => Self::Uncounted,
        }
    }

    fn name(self, interfaces: &[String]) -> String {
        let interface = |number: u16| interfaces.get(usize::from(number)).map_or("?", String::as_str);
        match self {
            Self::Address(v6, address) => ip(v6, address).to_string(),
            Self::Prefix(v6, address, len) => format!("{}/{len}", ip(v6, address)),
            Self::NoRoute => "no route".to_owned(),
            Self::Uncounted => "any rule".to_owned(),
            Self::As(0) => "unknown".to_owned(),
            Self::As(number) => format!("AS{number}"),
            Self::Way(input, Some(output)) => format!("{} > {}", interface(input), interface(output)),
            Self::Way(input, None) => format!("{} > -", interface(input)),
            Self::Protocol(number) => acl::protocol_name(number),
            Self::Outcome(FateOrder::Dropped(reason)) => format!("dropped: {}", reason.name()),
            Self::Outcome(FateOrder::Forwarded) => "forwarded".to_owned(),
            Self::Outcome(FateOrder::Waiting) => "waiting".to_owned(),
            Self::Outcome(FateOrder::Delivered) => "delivered".to_owned(),
            Self::Outcome(FateOrder::Consumed) => "consumed".to_owned(),
        }
    }
}

/// An estimate from samples that were drawn independently of each other.
///
/// A packet that is drawn with probability 1/N counts as N packets (Horvitz and Thompson). The variance of the sum is estimated by the sum
/// of `N * (N - 1) * x²`, and 1.96 standard deviations contain the truth in 95 of 100 cases, where there are enough samples. For
/// samples of equal size and large N that is 196 / sqrt(samples) percent, as sFlow has it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    samples: u64,
    packets: f64,
    packets_variance: f64,
    bytes: f64,
    bytes_variance: f64,
}

/// Standard deviations around an estimate that contain the truth in 95 of 100 cases.
const DEVIATIONS: f64 = 1.96;

impl Estimate {
    fn add(&mut self, observed: &Observed) {
        let interval = f64::from(observed.sample.interval.max(1));
        let (packets, bytes) = (f64::from(observed.sample.packets), f64::from(observed.sample.bytes));
        self.samples += 1;
        self.packets += interval * packets;
        self.packets_variance += interval * (interval - 1.0) * packets * packets;
        self.bytes += interval * bytes;
        self.bytes_variance += interval * (interval - 1.0) * bytes * bytes;
    }

    /// Returns a row of these numbers.
    #[must_use]
    pub fn row(&self, name: String) -> TopRow {
        let error = |variance: f64| (DEVIATIONS * variance.sqrt()).round() as u64;
        TopRow {
            name,
            samples: self.samples,
            packets: self.packets.round() as u64,
            packets_error: error(self.packets_variance),
            bytes: self.bytes.round() as u64,
            bytes_error: error(self.bytes_variance),
        }
    }
}

/// Adds the rows of an answer by address up by the AS that a table has for each address. `by` is what the answer is by then.
///
/// Errors are added as those of independent estimates, which the rows are.
#[must_use]
pub fn by_origin(answer: Top, by: TopBy, origins: &Origins, count: usize) -> Top {
    let mut groups = HashMap::<u32, (TopRow, [f64; 2])>::new();
    for row in &answer.rows {
        let origin = row.name.parse().map_or(0, |address| origins.of(address));
        let (sum, squares) = groups
            .entry(origin)
            .or_insert_with(|| (Estimate::default().row(Property::As(origin).name(&[])), [0.0; 2]));
        sum.samples += row.samples;
        sum.packets += row.packets;
        sum.bytes += row.bytes;
        squares[0] += (row.packets_error as f64).powi(2);
        squares[1] += (row.bytes_error as f64).powi(2);
    }
    let ended = |(mut row, [packets, bytes]): (TopRow, [f64; 2])| {
        (row.packets_error, row.bytes_error) = (packets.sqrt().round() as u64, bytes.sqrt().round() as u64);
        row
    };
    let mut rows: Vec<TopRow> = groups.into_values().map(ended).collect();
    rows.sort_unstable_by(|a, b| (b.packets, b.bytes, &a.name).cmp(&(a.packets, a.bytes, &b.name)));
    rows.truncate(count);
    Top { by, rows, ..answer }
}

/// Adds samples up by a property. Returns the sum of all, and the `count` rows of the most packets, then of the most bytes.
#[must_use]
pub fn top(samples: &[Observed], by: TopBy, count: usize, interfaces: &[String]) -> (TopRow, Vec<TopRow>) {
    let (mut all, mut groups) = (Estimate::default(), HashMap::<Property, Estimate>::new());
    for observed in samples {
        all.add(observed);
        groups.entry(Property::of(observed, by)).or_default().add(observed);
    }
    let mut groups: Vec<(Property, Estimate)> = groups.into_iter().collect();
    groups.sort_unstable_by(|(a, one), (b, other)| {
        let packets = other.packets.total_cmp(&one.packets);
        // By the property last, so that equal rows do not change their places.
        packets.then(other.bytes.total_cmp(&one.bytes)).then(a.cmp(b))
    });
    groups.truncate(count);
    let rows = groups.into_iter().map(|(property, sum)| sum.row(property.name(interfaces))).collect();
    (all.row("all".to_owned()), rows)
}
