//! Addresses as text, in bulk: exactly the texts that `inet_pton` takes, of either family.
//!
//! A pass over a block of rows tries one family, and notes the rows that are not of it; a second pass tries the other family on those.
//! The family of most rows of the block before is tried first. A text is never of both families, because one with a colon is not an
//! IPv4 address and one without is not an IPv6 address, so the order changes no answer.

#[cfg(target_arch = "x86_64")]
mod x86;

use core::net::IpAddr;

use fibula::net::{Family, parse_address};
use fibula::unstable::simd::{Present, chosen, kernel};

use crate::block::KeyBlock;
use crate::rows::{ByteRows, Slot, Slots, with_slots};

/// Reads blocks of texts.
#[derive(Debug, Default)]
pub(crate) struct TextParser {
    /// Whether most rows of the block before were IPv6.
    is_v6_first: bool,
}

impl TextParser {
    /// Reads rows from `first` on and adds their keys to an empty block. Its list `left` then has the rows that have no address.
    pub(crate) fn parse(&mut self, texts: &ByteRows<'_>, first: usize, count: usize, block: &mut KeyBlock) {
        self.parse_on(chosen(), texts, first, count, block);
    }

    pub(crate) fn parse_on(
        &mut self,
        isa: Present,
        texts: &ByteRows<'_>,
        first: usize,
        count: usize,
        block: &mut KeyBlock,
    ) {
        let family = if self.is_v6_first { Family::Ipv6 } else { Family::Ipv4 };
        with_slots!(texts, slots => read(isa, slots, family, first, count, block));
        self.is_v6_first = block.v6.len() > block.v4.len();
        // The passes leave a rare spelling to the exact parser: an IPv6 address that ends in an IPv4 address.
        for &row in block.left.take().as_slice() {
            let row = usize::from(row);
            match texts.get(first + row).map(parse_address) {
                Some(Ok(address)) => block.note_late(row, address),
                _ => block.left.note(row, true),
            }
        }
    }
}

kernel! {
    /// Reads texts, those of `family` in the first pass, with the instruction set `isa`.
    #[allow(unused_imports, reason = "the passes need no operations on vectors of lanes")]
    fn read<S: Slots>(slots: &S, family: Family, first: usize, count: usize, block: &mut KeyBlock)
    scalar portable;
    vector operations {
        #[cfg(target_arch = "x86_64")]
        x86::read(slots, family, first, count, block);
        #[cfg(not(target_arch = "x86_64"))]
        portable(slots, family, first, count, block);
    }
}

/// Reads texts one after the other.
fn portable<S: Slots>(slots: &S, _: Family, first: usize, count: usize, block: &mut KeyBlock) {
    for row in 0..count {
        let text = slots.slot(first + row).map(Slot::bytes);
        match text.and_then(|text| parse_address(text).ok()) {
            Some(IpAddr::V4(address)) => block.v4.note(row, address.to_bits(), true),
            Some(IpAddr::V6(address)) => block.v6.note(row, address.to_bits(), true),
            None => block.left.note(row, true),
        }
    }
}
