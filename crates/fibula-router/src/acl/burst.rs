//! Rules over a burst: one field after the other for all packets, so that no packet waits for the memory of another.

use fibula::net::NextHop;

use super::dimension::{ABSENT, Numbers, Prefixes};
use super::fields::{Field, HeaderFields};
use crate::io::BURST;

const fn bit(field: Field) -> u16 {
    1 << field as u8
}

/// The fields above IP.
const UPPER: u16 = bit(Field::SourcePort)
    | bit(Field::DestinationPort)
    | bit(Field::TcpFlags)
    | bit(Field::IcmpType)
    | bit(Field::IcmpCode);

/// The rules that each packet of a burst passes so far, as rows of bits, and the room to find them.
#[derive(Debug)]
pub(crate) struct BurstRows {
    pub(super) words: usize,
    /// Whether rules test fields above IP. If none does, these are not noted.
    pub(super) needs_upper: bool,
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
    pub(super) fn new(words: usize, fields: impl Iterator<Item = Field>, needs_addresses: bool) -> Self {
        Self {
            words,
            needs_upper: fields.fold(0, |all, field| all | bit(field)) & UPPER != 0,
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

    /// Adds a packet, in the order of their places.
    #[inline]
    pub(crate) fn put(&mut self, place: usize, packet: &HeaderFields) {
        let mut set = |field: Field, value: u32| self.columns[field as usize][place] = value;
        set(Field::Protocol, packet.protocol.into());
        set(Field::Length, packet.length.into());
        set(Field::In, packet.input.into());
        set(Field::Vrf, packet.vrf.into());
        set(Field::Dscp, packet.dscp.into());
        set(Field::Fragment, packet.fragment.into());
        if self.needs_upper {
            let mut set = |field, value: Option<u16>| set(field, value.map_or(ABSENT, u32::from));
            set(Field::SourcePort, packet.ports.map(|ports| ports.0));
            set(Field::DestinationPort, packet.ports.map(|ports| ports.1));
            set(Field::TcpFlags, packet.tcp_flags.map(u16::from));
            set(Field::IcmpType, packet.icmp.map(|icmp| icmp.0.into()));
            set(Field::IcmpCode, packet.icmp.map(|icmp| icmp.1.into()));
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

    /// Returns the length of a packet.
    #[inline]
    pub(super) fn length(&self, place: usize) -> u32 {
        self.columns[Field::Length as usize][place]
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
