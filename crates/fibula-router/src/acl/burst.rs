//! Rules over a burst: addresses of all packets in one batch, and then each packet's row of rules in registers.
//!
//! A packet's fields come from the first pass of the pipeline, the first word above IP among them. A field that the packet's protocol
//! does not have becomes [`ABSENT`] by a mask, because a branch would be predicted wrongly in traffic of many protocols. Fields that the
//! packets of an interface have in common are combined once for all of them.

use fibula::net::{Key, NextHop};

use super::compile::{Direction, RuleSet};
use super::dimension::{ABSENT, Numbers, Prefixes, row_of};
use super::fields::{Field, UpperKind};
use super::protocol::ProtocolRow;
use super::room::{BurstKeys, BurstRows};
use super::row::{Long, Row, Short};
use crate::io::BURST;

/// A packet of a burst, as the first pass has read it.
#[derive(Debug)]
pub(crate) struct BurstPacket {
    pub(crate) v6: bool,
    pub(crate) protocol: u8,
    /// As on the wire: that of one segment, if several are combined.
    pub(crate) length: u16,
    pub(crate) input: u16,
    pub(crate) vrf: u16,
    /// The first four bytes above IP; `None` if the packet ends before them, or if they are not a header.
    pub(crate) word: Option<u32>,
}

/// Addresses of all packets of a burst, one after the other: sources, and destinations.
pub(crate) type AddressColumns<'b, K> = (&'b [K], &'b [K]);

/// The packets of a burst.
pub(crate) trait BurstPackets {
    /// Returns their number, at most [`BURST`].
    fn count(&self) -> usize;

    /// Returns a bit for each packet of IPv4, and for each of IPv6.
    fn families(&self) -> (u64, u64);

    /// Returns the addresses of all packets, if all are of IPv4 and the first pass has written them one after the other.
    fn v4_columns(&self) -> Option<AddressColumns<'_, u32>>;

    /// Returns those of IPv6 packets.
    fn v6_columns(&self) -> Option<AddressColumns<'_, u128>>;

    /// Returns the source and the destination of a packet. An IPv4 address is in the low bits.
    fn addresses(&self, place: usize) -> (u128, u128);

    /// Returns the fields of a packet that most rules test.
    fn read(&mut self, place: usize) -> BurstPacket;

    /// Returns the bytes above IP, as many as the packet has.
    fn upper(&mut self, place: usize) -> &[u8];

    /// Returns the code point of a packet.
    fn dscp(&mut self, place: usize) -> u8;

    /// Returns the fragment bits of a packet that rules test.
    fn fragment(&self, place: usize) -> u8;
}

impl RuleSet {
    /// Makes room for a worker's bursts.
    pub(crate) fn burst_rows(&self) -> BurstRows {
        BurstRows::new(self.words)
    }

    /// Finds the rules that each packet of a burst passes, but for tests of the interface by which it leaves.
    pub(crate) fn pass(&self, burst: &mut BurstRows, packets: &mut impl BurstPackets) {
        self.look_up(burst, packets);
        // Functions of their own, because each needs all registers.
        match self.words {
            1 => self.combine::<Short<1>>(burst, packets),
            2 => self.combine::<Short<2>>(burst, packets),
            4 => self.combine::<Short<4>>(burst, packets),
            _ => self.combine::<Long>(burst, packets),
        }
    }

    /// Looks up the addresses of a burst that rules test.
    fn look_up(&self, burst: &mut BurstRows, packets: &impl BurstPackets) {
        let [sources, destinations] = &mut *burst.found;
        let keys = &mut *burst.keys;
        let (v4, v6) = (packets.v4_columns(), packets.v6_columns());
        if let Some(direction) = &self.source {
            let columns = (v4.map(|columns| columns.0), v6.map(|columns| columns.0));
            direction.look_up(columns, packets, keys, sources, |place| packets.addresses(place).0);
        }
        if let Some(direction) = &self.destination {
            let columns = (v4.map(|columns| columns.1), v6.map(|columns| columns.1));
            direction.look_up(columns, packets, keys, destinations, |place| packets.addresses(place).1);
        }
    }

    /// Combines the rows of all fields.
    #[inline(never)]
    fn combine<R: Row>(&self, burst: &mut BurstRows, packets: &mut impl BurstPackets) {
        let BurstRows { words, rows, verdicts, lengths, common, found, .. } = burst;
        // Before the packets, because the tables of fields are the same for all of them.
        let dimension = |field| {
            let of = |numbers| (numbers, R::rows(Numbers::bits(numbers), *words));
            self.field(field).map(of)
        };
        let protocols = R::rows(self.protocols.bits(), *words);
        let source = self.source.as_ref().map(|direction| direction.rows::<R>(*words));
        let destination = self.destination.as_ref().map(|direction| direction.rows::<R>(*words));
        let (source_port, destination_port) =
            (dimension(Field::SourcePort), dimension(Field::DestinationPort));
        let length = dimension(Field::Length);
        let has_rare = RARE.iter().any(|&field| self.field(field).is_some());
        let mut interface = u32::MAX;
        for place in 0..packets.count().min(BURST) {
            let packet = packets.read(place);
            if interface != u32::from(packet.input) {
                interface = packet.input.into();
                self.combine_common(common, packet.input, packet.vrf);
            }
            let protocol = self.protocols.get(packet.v6, packet.protocol);
            let (protocol, word) = match packet.word {
                Some(word) => (protocol, word),
                None => short_word(protocol, packets.upper(place)),
            };
            let mut row = R::begin(rows, place, protocols, protocol.number(), R::rows(common, *words));
            if let Some(source) = &source {
                row.and(rows, source[usize::from(packet.v6)], row_of(found[0][place]));
            }
            if let Some(destination) = &destination {
                row.and(rows, destination[usize::from(packet.v6)], row_of(found[1][place]));
            }
            if let Some((numbers, bits)) = length {
                row.and(rows, bits, numbers.number(packet.length.into()));
            }
            if let Some((numbers, bits)) = source_port {
                row.and(rows, bits, numbers.number(word >> 16 | protocol.no_ports()));
            }
            if let Some((numbers, bits)) = destination_port {
                row.and(rows, bits, numbers.number(word & 0xffff | protocol.no_ports()));
            }
            if has_rare {
                row = self.combine_rare(row, (rows, *words), (packets, place), (protocol, word));
            }
            lengths[place] = packet.length;
            verdicts[place] = self.verdicts[row.end(rows)];
        }
    }

    /// Combines the fields that few rules test.
    // The row is passed on, because one that is borrowed would be in memory for all fields.
    #[inline(never)]
    fn combine_rare<R: Row>(
        &self,
        mut row: R,
        (rows, words): (&mut [u64], usize),
        (packets, place): (&mut impl BurstPackets, usize),
        (protocol, word): (ProtocolRow, u32),
    ) -> R {
        let mut and = |numbers: &Numbers, value: u32| {
            row.and(rows, R::rows(numbers.bits(), words), numbers.number(value));
        };
        if let Some(flags) = self.field(Field::TcpFlags) {
            let set = packets.upper(place).get(13).filter(|_| protocol.kind().is_tcp());
            and(flags, set.map_or(ABSENT, |&set| set.into()));
        }
        if let Some(kind) = self.field(Field::IcmpType) {
            and(kind, word >> 24 | absent(!protocol.kind().is_icmp()));
        }
        if let Some(code) = self.field(Field::IcmpCode) {
            and(code, word >> 16 & 0xff | absent(!protocol.kind().is_icmp()));
        }
        if let Some(point) = self.field(Field::Dscp) {
            and(point, packets.dscp(place).into());
        }
        if let Some(fragment) = self.field(Field::Fragment) {
            and(fragment, packets.fragment(place).into());
        }
        row
    }

    /// Combines the fields that all packets of an interface have in common.
    #[inline(never)]
    fn combine_common(&self, common: &mut [u64], input: u16, vrf: u16) {
        // All rules pass at first, because each field only excludes some.
        common.fill(u64::MAX);
        for (field, value) in [(Field::In, input), (Field::Vrf, vrf)] {
            let Some(numbers) = self.field(field) else { continue };
            common.iter_mut().zip(numbers.row(Some(value))).for_each(|(row, bits)| *row &= bits);
        }
    }
}

/// Fields that few rules test.
const RARE: [Field; 5] = [Field::TcpFlags, Field::IcmpType, Field::IcmpCode, Field::Dscp, Field::Fragment];
/// A new field has to be read in `combine` too, or in `combine_common`. Of these, ports are two, and the output comes later.
const _: () = assert!(Field::COUNT == 13);

/// Returns the first word above IP of a packet that ends before four bytes, or that has no header there. It has no ports, but may have the
/// type and the code of ICMP.
#[cold]
fn short_word(protocol: ProtocolRow, upper: &[u8]) -> (ProtocolRow, u32) {
    match upper {
        &[first, second, ..] if protocol.kind().is_icmp() => {
            (protocol, u32::from_be_bytes([first, second, 0, 0]))
        }
        _ => (protocol.with(UpperKind::NONE), 0),
    }
}

/// Returns the bit that makes a value absent.
#[inline(always)]
fn absent(is_absent: bool) -> u32 {
    u32::from(is_absent) * ABSENT
}

impl Direction {
    /// Returns the rows of IPv4, and those of IPv6.
    fn rows<R: Row>(&self, words: usize) -> [R::Rows<'_>; 2] {
        [R::rows(self.v4.bits(), words), R::rows(self.v6.bits(), words)]
    }

    /// Looks up an address of each packet, those of a family in one batch.
    #[inline]
    fn look_up(
        &self,
        (v4_column, v6_column): (Option<&[u32]>, Option<&[u128]>),
        packets: &impl BurstPackets,
        keys: &mut BurstKeys,
        found: &mut [Option<NextHop>; BURST],
        address: impl Fn(usize) -> u128,
    ) {
        // The usual burst is of one family, and the first pass has written its columns.
        if let Some(column) = v4_column {
            self.v4.look_up(column, &mut found[..column.len()]);
            return;
        }
        if let Some(column) = v6_column {
            self.v6.look_up(column, &mut found[..column.len()]);
            return;
        }
        let (v4, v6) = packets.families();
        if v4 != 0 {
            look_up(&self.v4, v4, (&mut keys.v4, &mut keys.found), found, |place| address(place) as u32);
        }
        if v6 != 0 {
            look_up(&self.v6, v6, (&mut keys.v6, &mut keys.found), found, address);
        }
    }
}

/// Looks up an address of each packet that has a bit in `wanted`.
#[inline]
fn look_up<K: Key>(
    prefixes: &Prefixes<K>,
    wanted: u64,
    (keys, dense): (&mut [K; BURST], &mut [Option<NextHop>; BURST]),
    found: &mut [Option<NextHop>; BURST],
    address: impl Fn(usize) -> K,
) {
    let count = wanted.count_ones() as usize;
    let places = |rest: u64| {
        core::iter::successors(Some(rest), |rest| Some(rest & rest.wrapping_sub(1)))
            .take_while(|&rest| rest != 0)
            .map(|rest| rest.trailing_zeros() as usize)
    };
    keys.iter_mut().zip(places(wanted)).for_each(|(key, place)| *key = address(place));
    prefixes.look_up(&keys[..count], &mut dense[..count]);
    dense.iter().zip(places(wanted)).for_each(|(&number, place)| found[place] = number);
}
