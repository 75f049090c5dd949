//! Takes bytes one after another and keeps the place of each.

use core::net::IpAddr;

use super::fault::{Fault, FaultKind};

/// The result of reading: a value, or a fault and its place.
pub(crate) type Reading<T> = Result<T, Fault>;

/// A place in a run of bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    /// The place of the first byte that is left.
    position: usize,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the beginning of `bytes`, whose first byte is at `position` of the record.
    pub(crate) fn new(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    /// Returns the next `count` bytes.
    #[inline]
    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Reading<&'a [u8]> {
        match self.bytes.split_at_checked(count) {
            Some((taken, rest)) => {
                self.bytes = rest;
                self.position += count;
                Ok(taken)
            }
            None => Err(FaultKind::Short { what, need: count, have: self.bytes.len() }.at(self.position)),
        }
    }

    /// Returns a cursor over the next `count` bytes.
    pub(crate) fn part(&mut self, count: usize, what: &'static str) -> Reading<Self> {
        let position = self.position;
        self.take(count, what).map(|bytes| Self { bytes, position })
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Reading<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    #[inline]
    pub(crate) fn u8(&mut self, what: &'static str) -> Reading<u8> {
        self.array(what).map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self, what: &'static str) -> Reading<u16> {
        self.array(what).map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self, what: &'static str) -> Reading<u32> {
        self.array(what).map(u32::from_be_bytes)
    }

    /// Reads an AS number of two or four bytes.
    pub(crate) fn asn(&mut self, four: bool) -> Reading<u32> {
        if four { self.u32("AS number") } else { self.u16("AS number").map(u32::from) }
    }

    pub(crate) fn address(&mut self, v6: bool) -> Reading<IpAddr> {
        if v6 {
            self.array::<16>("address").map(IpAddr::from)
        } else {
            self.array::<4>("address").map(IpAddr::from)
        }
    }
}
