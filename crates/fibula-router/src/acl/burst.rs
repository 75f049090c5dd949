//! Rules over a burst: one field after the other for all packets, so that no packet waits for the memory of another.

use fibula::net::NextHop;

use super::dimension::{ABSENT, Numbers, Prefixes};
use super::fields::{Field, kind_of};
use crate::io::BURST;

const fn bit(field: Field) -> u16 {
    1 << field as u8
}

const PORTS: u16 = bit(Field::SourcePort) | bit(Field::DestinationPort);
const ICMP: u16 = bit(Field::IcmpType) | bit(Field::IcmpCode);
/// The fields above IP.
const UPPER: u16 = PORTS | ICMP | bit(Field::TcpFlags);

/// The fields of a packet that rules test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketValues {
    pub(crate) v6: bool,
    pub(crate) source: u128,
    pub(crate) destination: u128,
    pub(crate) protocol: u8,
    pub(crate) length: u16,
    pub(crate) dscp: u8,
    pub(crate) fragment: u8,
    pub(crate) input: u16,
    pub(crate) vrf: u16,
}

/// The rules that each packet of a burst passes so far, as rows of bits, and the room to find them.
#[derive(Debug)]
pub(crate) struct BurstRows {
    pub(super) words: usize,
    /// The fields that rules test, a bit each. The others are not read.
    pub(super) needs: u16,
    /// Whether rules test addresses or families.
    pub(super) needs_addresses: bool,
    pub(super) rows: Vec<u64>,
    pub(super) columns: Box<[[u32; BURST]; Field::COUNT]>,
    pub(super) v4: [u32; BURST],
    pub(super) v6: Box<[[u128; BURST]; 2]>,
    pub(super) v4_other: [u32; BURST],
    /// The places of IPv4 packets from the front, and of IPv6 packets from the end.
    pub(super) places: [u8; BURST],
    pub(super) narrow: usize,
    pub(super) wide: usize,
    pub(super) count: usize,
    pub(super) found: [Option<NextHop>; BURST],
}

impl BurstRows {
    /// Makes room for the rules of a set.
    pub(super) fn new(words: usize, needs: impl Iterator<Item = Field>, needs_addresses: bool) -> Self {
        Self {
            words,
            needs: needs.fold(0, |needs, field| needs | bit(field)),
            needs_addresses,
            rows: vec![0; words * BURST],
            columns: Box::new([[ABSENT; BURST]; Field::COUNT]),
            v4: [0; BURST],
            v6: Box::new([[0; BURST]; 2]),
            v4_other: [0; BURST],
            places: [0; BURST],
            narrow: 0,
            wide: 0,
            count: 0,
            found: [None; BURST],
        }
    }

    /// Begins with a burst.
    pub(crate) fn clear(&mut self) {
        (self.narrow, self.wide, self.count) = (0, 0, 0);
    }

    /// Adds a packet, in the order of their places. `upper` is the packet from the end of the IP headers on.
    #[inline]
    pub(crate) fn put(&mut self, place: usize, packet: &PacketValues, upper: &[u8]) {
        let needs = self.needs;
        let mut set = |field: Field, value: u32| self.columns[field as usize][place] = value;
        set(Field::Protocol, packet.protocol.into());
        set(Field::Length, packet.length.into());
        set(Field::In, packet.input.into());
        set(Field::Vrf, packet.vrf.into());
        if needs & UPPER != 0 {
            let kind = kind_of(packet.protocol, packet.v6);
            if needs & PORTS != 0 {
                let ports = upper.first_chunk::<4>().filter(|_| kind.has_ports());
                let word = ports.map_or(0, |bytes| u32::from_be_bytes(*bytes));
                let absent = if ports.is_some() { 0 } else { ABSENT };
                set(Field::SourcePort, word >> 16 | absent);
                set(Field::DestinationPort, word & 0xffff | absent);
            }
            if needs & bit(Field::TcpFlags) != 0 {
                let flags = upper.get(13).filter(|_| kind.is_tcp());
                set(Field::TcpFlags, flags.map_or(ABSENT, |&flags| flags.into()));
            }
            if needs & ICMP != 0 {
                let icmp = upper.first_chunk::<2>().filter(|_| kind.is_icmp());
                set(Field::IcmpType, icmp.map_or(ABSENT, |icmp| icmp[0].into()));
                set(Field::IcmpCode, icmp.map_or(ABSENT, |icmp| icmp[1].into()));
            }
        }
        if needs & bit(Field::Dscp) != 0 {
            set(Field::Dscp, packet.dscp.into());
        }
        if needs & bit(Field::Fragment) != 0 {
            set(Field::Fragment, packet.fragment.into());
        }
        self.count += 1;
        if !self.needs_addresses {
            return;
        }
        if packet.v6 {
            self.wide += 1;
            let at = BURST - self.wide;
            self.places[at] = place as u8;
            self.v6[0][self.wide - 1] = packet.source;
            self.v6[1][self.wide - 1] = packet.destination;
        } else {
            let at = self.narrow;
            self.places[at] = place as u8;
            self.v4[at] = packet.source as u32;
            self.v4_other[at] = packet.destination as u32;
            self.narrow += 1;
        }
    }

    /// Returns the rules that a packet passes, but for tests of the interface by which it leaves.
    #[inline]
    pub(super) fn row(&self, place: usize) -> &[u64] {
        &self.rows[place * self.words..][..self.words]
    }
}

/// Combines a row with each of some rows.
#[inline]
pub(super) fn and_rows(
    words: usize,
    rows: &mut [u64],
    bits: &[u64],
    starts: impl Iterator<Item = (usize, usize)>,
) {
    match words {
        1 => and_const::<1>(rows, bits, starts),
        2 => and_const::<2>(rows, bits, starts),
        4 => and_const::<4>(rows, bits, starts),
        _ => {
            for (place, number) in starts {
                let row = &mut rows[place * words..][..words];
                let bits = &bits[number * words..][..words];
                row.iter_mut().zip(bits).for_each(|(row, bits)| *row &= bits);
            }
        }
    }
}

#[inline]
fn and_const<const WORDS: usize>(
    rows: &mut [u64],
    bits: &[u64],
    starts: impl Iterator<Item = (usize, usize)>,
) {
    let (rows, bits) = (rows.as_chunks_mut::<WORDS>().0, bits.as_chunks::<WORDS>().0);
    for (place, number) in starts {
        if let (Some(row), Some(bits)) = (rows.get_mut(place), bits.get(number)) {
            for word in 0..WORDS {
                row[word] &= bits[word];
            }
        }
    }
}

impl Numbers {
    #[inline]
    pub(super) fn combine(&self, words: usize, rows: &mut [u64], values: &[u32]) {
        let starts = values.iter().enumerate().map(|(place, &value)| (place, self.number(value)));
        and_rows(words, rows, self.bits(), starts);
    }
}

impl<K: fibula::net::Key> Prefixes<K> {
    #[inline]
    pub(super) fn combine<'p>(
        &self,
        words: usize,
        rows: &mut [u64],
        places: impl Iterator<Item = &'p u8>,
        found: &[Option<NextHop>],
    ) {
        let starts = places.zip(found).map(|(&place, &found)| (usize::from(place), self.number(found)));
        and_rows(words, rows, self.bits(), starts);
    }
}
