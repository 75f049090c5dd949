//! A table as disjoint ranges of addresses.

use std::io::{self, Write};

use fibula::fib::ranges::{self, Merge, Range};
use fibula::net::{Family, Key, NextHop, Prefix};
use fibula::rib::Rib;
use fibula_feed::LoadedRoutes;

use crate::objects::csv_field;

/// A range of addresses that lead to the same place.
#[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "CSV has fewer columns than Parquet"))]
pub(super) struct Interval {
    pub(super) family: Family,
    pub(super) start: String,
    pub(super) end: String,
    /// The bounds in network order, 4 or 16 bytes: they compare as addresses do.
    pub(super) keys: [Vec<u8>; 2],
    pub(super) next_hop: NextHop,
}

/// Calls `each` for all ranges that a route covers, IPv4 first, in ascending order; neighbours that lead to the same place
/// are one.
pub(super) fn try_for_each<E>(
    table: &LoadedRoutes,
    mut each: impl FnMut(Interval) -> Result<(), E>,
) -> Result<(), E> {
    family(&table.ribs.v4, &mut each)?;
    family(&table.ribs.v6, &mut each)
}

fn family<K: Key, E>(rib: &Rib<K>, each: &mut impl FnMut(Interval) -> Result<(), E>) -> Result<(), E> {
    let mut open: Option<Range<K>> = None;
    let mut close = |range: Range<K>, end: K| match range.next_hop {
        Some(next_hop) => each(Interval {
            family: K::FAMILY,
            start: range.start.address().to_string(),
            end: end.address().to_string(),
            keys: [range.start, end].map(|key| key.to_network().as_ref().to_vec()),
            next_hop,
        }),
        None => Ok(()),
    };
    ranges::try_for_each(rib, Prefix::ALL, Merge::EqualNeighbours, |range| {
        let before = open.replace(range);
        match before.zip(range.start.previous()) {
            Some((before, end)) => close(before, end),
            None => Ok(()),
        }
    })?;
    open.map_or(Ok(()), |range| close(range, K::MAX))
}

/// `start,end,value` a line.
pub(super) fn write_csv(table: &LoadedRoutes, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "start,end,value")?;
    try_for_each(table, |Interval { start, end, next_hop, .. }| {
        let label = table.next_hops.label(next_hop).map(ToString::to_string).unwrap_or_default();
        writeln!(out, "{start},{end},{}", csv_field(&label))
    })
}
