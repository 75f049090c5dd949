//! The choice of strides: the trie with the fewest expected accesses that fits a budget of entries.

use fibula::net::Key;

use super::layout::STRIDE_MAX;

/// A part of the address space, the ranges of answers that begin in it, and the routes in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a, K> {
    pub(super) first: K,
    pub(super) len: u8,
    /// First address and code of the ranges that begin after its first address, in order.
    pub(super) ranges: &'a [(K, u32)],
    /// The code of its first address.
    pub(super) code: u32,
    /// Address and length of the routes that it contains, in order.
    pub(super) routes: &'a [(K, u8)],
    /// The keys of routes that contain it and are shorter which fall into it, of one key a route.
    pub(super) from_above: f64,
}

impl<'a, K: Key> Span<'a, K> {
    /// Returns whether not all addresses have the same answer.
    #[inline(always)]
    pub(super) fn is_divided(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Returns the keys that fall into it, where every route of the table has one, at a random address.
    fn keys(&self) -> f64 {
        self.from_above + self.routes.len() as f64
    }

    /// Returns its halves.
    pub(super) fn halves(&self) -> [Self; 2] {
        let middle = self.first.or(K::mask(self.len + 1).xor(K::mask(self.len)));
        let len = self.len + 1;
        let at = self.ranges.partition_point(|&(start, _)| start < middle);
        let (left, mut right) = self.ranges.split_at(at);
        let mut code = left.last().map_or(self.code, |&(_, code)| code);
        if let Some((&(start, begun), rest)) = right.split_first()
            && start == middle
        {
            (code, right) = (begun, rest);
        }
        // Its own route comes before those of both halves.
        let own = usize::from(self.routes.first() == Some(&(self.first, self.len)));
        let routes = &self.routes[own..];
        let at = routes.partition_point(|&(addr, _)| addr < middle);
        let (of_left, of_right) = routes.split_at(at);
        let from_above = (self.from_above + own as f64) / 2.0;
        [
            Self { len, ranges: left, routes: of_left, from_above, ..*self },
            Self { first: middle, len, ranges: right, code, routes: of_right, from_above },
        ]
    }
}

/// What tries take that begin at the divided spans so many bits below one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Below {
    /// Accesses of all keys, by the number of bits; at 0 those of the trie that begins at the span itself.
    accesses: [f64; BELOW],
    /// Entries.
    entries: [f64; BELOW],
    /// The stride of the node at the span.
    pub(super) stride: u8,
}

const BELOW: usize = STRIDE_MAX as usize + 1;

impl Below {
    const NOTHING: Self = Self { accesses: [0.0; BELOW], entries: [0.0; BELOW], stride: 0 };

    /// Returns the entries of the trie that begins at the span.
    pub(super) fn entries(&self) -> f64 {
        self.entries[0]
    }

    /// Returns the accesses that the keys of all routes make in it.
    #[cfg(test)]
    pub(super) fn accesses(&self) -> f64 {
        self.accesses[0]
    }
}

/// Returns the trie for a span that has the least sum of accesses and, at this price, of entries: exact, as the best trie of a span
/// consists of best tries of the spans below.
pub(super) fn best<K: Key>(span: &Span<'_, K>, price: f64) -> Below {
    best_noting(span, price, &mut Unnoted)
}

/// Takes the strides of the divided spans, each span before its halves.
pub(super) trait Notes {
    /// A span begins. Returns its number.
    fn begin(&mut self) -> usize;

    /// The node at a span of this number, if there is one, has this stride.
    fn end(&mut self, number: usize, stride: u8);
}

struct Unnoted;

impl Notes for Unnoted {
    fn begin(&mut self) -> usize {
        0
    }

    fn end(&mut self, _number: usize, _stride: u8) {}
}

impl Notes for Vec<u8> {
    fn begin(&mut self) -> usize {
        self.push(0);
        self.len() - 1
    }

    fn end(&mut self, number: usize, stride: u8) {
        self[number] = stride;
    }
}

/// Returns the number of divided spans: this one, its halves, their halves and so on.
pub(super) fn divided<K: Key>(span: &Span<'_, K>) -> usize {
    if span.is_divided() { 1 + span.halves().iter().map(divided).sum::<usize>() } else { 0 }
}

/// Like [`best`], with the strides noted.
pub(super) fn best_noting<K: Key>(span: &Span<'_, K>, price: f64, notes: &mut impl Notes) -> Below {
    if !span.is_divided() {
        return Below::NOTHING;
    }
    let number = notes.begin();
    let [left, right] = span.halves().map(|half| best_noting(&half, price, notes));
    let mut below = Below::NOTHING;
    for bits in 1..BELOW {
        below.accesses[bits] = left.accesses[bits - 1] + right.accesses[bits - 1];
        below.entries[bits] = left.entries[bits - 1] + right.entries[bits - 1];
    }
    let keys = span.keys();
    let mut least = f64::INFINITY;
    for stride in 1..=STRIDE_MAX.min(K::BITS - span.len) {
        let bits = usize::from(stride);
        let (accesses, entries) =
            (keys + below.accesses[bits], f64::from(1u32 << bits) + below.entries[bits]);
        let sum = accesses + price * entries;
        if sum < least {
            least = sum;
            (below.accesses[0], below.entries[0], below.stride) = (accesses, entries, stride);
        }
    }
    notes.end(number, below.stride);
    below
}

/// Most trials of a price.
const TRIALS: usize = 8;

/// The share of the budget from which on no other price is tried.
const ENOUGH: f64 = 0.9;

/// Returns the price of an entry at which the best trie of the whole space takes about a budget of entries and no more; where none is
/// so small, a price at which next to nothing but entries counts.
pub(super) fn price<K: Key>(all: &Span<'_, K>, budget: f64) -> f64 {
    if best(all, 0.0).entries() <= budget {
        return 0.0;
    }
    // From a thousandth of an access up to those of all keys in all nodes there can be.
    let (mut low, mut high) = (1.0 / 1_024.0, (1.0 + all.keys()) * f64::from(K::BITS));
    for _ in 0..TRIALS {
        let middle = (low * high).sqrt();
        let entries = best(all, middle).entries();
        *(if entries <= budget { &mut high } else { &mut low }) = middle;
        if (ENOUGH * budget..=budget).contains(&entries) {
            break;
        }
    }
    high
}

/// Returns the stride of a node for a span where at least this share of its entries begins a range or is divided: the greedy choice,
/// which looks at one node at a time.
pub(super) fn greedy<K: Key>(span: &Span<'_, K>, share: f64) -> u8 {
    let most = STRIDE_MAX.min(K::BITS - span.len);
    let is_full = |stride: &u8| {
        let mask = K::mask(span.len + stride);
        let (mut count, mut last) = (0, span.first);
        for &(start, _) in span.ranges {
            let slot = start.and(mask);
            count += u32::from(slot != last || count == 0);
            last = slot;
        }
        f64::from(count) >= share * f64::from(1u32 << stride)
    };
    (1..=most).rev().find(is_full).unwrap_or(1)
}
