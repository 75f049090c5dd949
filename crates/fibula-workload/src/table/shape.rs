//! The shape of a table in figures, which decide how much memory engines take.

use std::collections::HashMap;
use std::ops::ControlFlow;

use fibula::fib::ranges::{self, Merge};
use fibula::net::{Key, NextHop, Prefix, Route, Routes};

/// The shape of a table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Shape {
    /// Number of routes.
    pub routes: usize,
    /// Number of routes and of nested routes, by prefix length.
    pub lengths: Vec<(usize, usize)>,
    /// Number of routes, by the number of their covers.
    pub depths: Vec<usize>,
    /// Number of nested routes with the next hop of their longest cover.
    pub same_as_cover: usize,
    /// Share of the address space that matches a route.
    pub announced: f64,
    /// Number of routes of each next hop, the most popular first.
    pub popularity: Vec<usize>,
    /// Number of ranges between the addresses at which a route begins or ends.
    pub ranges: usize,
    /// Number of ranges after merging neighbours with the same next hop.
    pub merged: usize,
    /// The chunks of each of the given sizes.
    pub chunks: Vec<Chunks>,
}

/// The address space cut into chunks by leading bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunks {
    /// Number of leading bits.
    pub bits: u8,
    /// Chunks that contain longer routes: segments of a direct table, or inner nodes of a trie at that depth.
    pub divided: usize,
    /// Chunks with more than one merged range.
    pub mixed: usize,
    /// Merged ranges in mixed chunks. Each chunk begins a new range.
    pub ranges: usize,
    /// Those in mixed chunks where a range begins within a block of 2^8 addresses, or has a next hop with an id above
    /// 255.
    pub long_ranges: usize,
}

/// Measures a table, cut into chunks of each of the given numbers of leading bits.
///
/// # Panics
/// If a number of leading bits exceeds the width of the family.
pub fn shape<K: Key>(routes: &dyn Routes<K>, chunk_bits: &[u8]) -> Shape {
    assert!(chunk_bits.iter().all(|&bits| bits <= K::BITS), "chunks have no more bits than addresses");
    let mut shape = Shape {
        routes: routes.len(),
        lengths: vec![(0, 0); usize::from(K::BITS) + 1],
        depths: Vec::new(),
        same_as_cover: 0,
        announced: 0.0,
        popularity: Vec::new(),
        ranges: 0,
        merged: 0,
        chunks: Vec::new(),
    };
    let mut walk = Nesting { shape: &mut shape, open: Vec::new(), next_hops: HashMap::new() };
    let mut divided = vec![(0usize, None::<K>); chunk_bits.len()];
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        walk.add(route);
        for (&bits, (count, before)) in chunk_bits.iter().zip(&mut divided) {
            let chunk = route.prefix.addr().and(K::mask(bits));
            if route.prefix.len() > bits && *before != Some(chunk) {
                *count += 1;
                *before = Some(chunk);
            }
        }
        ControlFlow::Continue(())
    });
    let mut popularity: Vec<usize> = walk.next_hops.into_values().collect();
    popularity.sort_unstable_by(|a, b| b.cmp(a));
    shape.popularity = popularity;
    let _ = ranges::visit(routes, Prefix::ALL, Merge::Never, |_| {
        shape.ranges += 1;
        ControlFlow::Continue(())
    });
    let mut open: Vec<Mixed<K>> = chunk_bits.iter().map(|&bits| Mixed::new(bits)).collect();
    let _ = ranges::visit(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
        shape.merged += 1;
        let id = range.next_hop.map_or(0, NextHop::id);
        open.iter_mut().for_each(|chunk| chunk.add(range.start, id));
        ControlFlow::Continue(())
    });
    shape.chunks = open
        .into_iter()
        .zip(divided)
        .map(|(mut chunk, (divided, _))| {
            chunk.close();
            Chunks { divided, ..chunk.chunks }
        })
        .collect();
    shape
}

struct Nesting<'a, K: Key> {
    shape: &'a mut Shape,
    /// The covers of the current route.
    open: Vec<Route<K>>,
    next_hops: HashMap<u32, usize>,
}

impl<K: Key> Nesting<'_, K> {
    fn add(&mut self, route: Route<K>) {
        while self.open.last().is_some_and(|cover| !cover.prefix.covers(route.prefix)) {
            self.open.pop();
        }
        let length = &mut self.shape.lengths[usize::from(route.prefix.len())];
        length.0 += 1;
        match self.open.last() {
            None => self.shape.announced += (-f64::from(route.prefix.len())).exp2(),
            Some(cover) => {
                length.1 += 1;
                self.shape.same_as_cover += usize::from(cover.next_hop == route.next_hop);
            }
        }
        let depth = self.open.len();
        if self.shape.depths.len() <= depth {
            self.shape.depths.resize(depth + 1, 0);
        }
        self.shape.depths[depth] += 1;
        *self.next_hops.entry(route.next_hop.id()).or_default() += 1;
        self.open.push(route);
    }
}

/// The current chunk, and the sums of those before it.
struct Mixed<K> {
    chunks: Chunks,
    /// First address of the chunk.
    chunk: Option<K>,
    /// Ranges in it, the one that reaches into it included.
    ranges: usize,
    long: bool,
    /// Next hop of the last range.
    before: u32,
}

impl<K: Key> Mixed<K> {
    fn new(bits: u8) -> Self {
        let chunks = Chunks { bits, divided: 0, mixed: 0, ranges: 0, long_ranges: 0 };
        Self { chunks, chunk: None, ranges: 0, long: false, before: 0 }
    }

    fn add(&mut self, start: K, id: u32) {
        let chunk = start.and(K::mask(self.chunks.bits));
        if self.chunk != Some(chunk) {
            self.close();
            self.chunk = Some(chunk);
            (self.ranges, self.long) = (1, self.before > 255);
        }
        if start != chunk {
            self.ranges += 1;
            self.long |= start.to_bits() & 0xff != 0;
        } else {
            self.long = false;
        }
        self.long |= id > 255;
        self.before = id;
    }

    fn close(&mut self) {
        if self.ranges > 1 {
            self.chunks.mixed += 1;
            self.chunks.ranges += self.ranges;
            self.chunks.long_ranges += if self.long { self.ranges } else { 0 };
        }
        self.ranges = 0;
    }
}

impl Shape {
    /// Returns the share of nested routes.
    #[must_use]
    pub fn nested(&self) -> f64 {
        let nested: usize = self.depths.iter().skip(1).sum();
        nested as f64 / self.routes.max(1) as f64
    }

    /// Returns the share of the routes that have one of the `count` most popular next hops.
    #[must_use]
    pub fn top(&self, count: usize) -> f64 {
        self.popularity.iter().take(count).sum::<usize>() as f64 / self.routes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use fibula::net::{RouteSlice, Toy};

    use super::*;

    #[test]
    fn a_small_table_is_measured_right() {
        let route = |text: &str, id| Route::new(text.parse().unwrap(), NextHop::new(id).unwrap());
        let routes: [Route<Toy<16>>; 5] =
            [route("0/4", 1), route("256/8", 1), route("512/8", 2), route("768/9", 300), route("4096/4", 3)];
        let shape = shape(&RouteSlice::new(&routes).unwrap(), &[4, 7, 8]);
        assert_eq!((shape.routes, shape.ranges, shape.merged), (5, 7, 6));
        assert_eq!((shape.lengths[8], shape.lengths[9], shape.lengths[4]), ((2, 2), (1, 1), (2, 0)));
        assert_eq!((shape.depths.as_slice(), shape.same_as_cover), ([2, 3].as_slice(), 1));
        assert_eq!(shape.popularity, [2, 1, 1, 1]);
        assert!(shape.announced == 0.125 && shape.nested() == 0.6 && shape.top(1) == 0.4);
        // Ranges at 0, 512, 768, 896, 4096 and 8192.
        assert_eq!(
            shape.chunks,
            [
                Chunks { bits: 4, divided: 1, mixed: 1, ranges: 4, long_ranges: 4 },
                Chunks { bits: 7, divided: 2, mixed: 1, ranges: 3, long_ranges: 3 },
                Chunks { bits: 8, divided: 1, mixed: 1, ranges: 2, long_ranges: 2 },
            ]
        );
    }
}
