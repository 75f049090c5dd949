//! The tree over the prefix lengths that occur, which a search goes down.

use fibula::unstable::memory::{Budget, OutOfMemory};

/// Most lengths of a tree: those of IPv6, without length 0.
pub(super) const LENGTHS: usize = 128;

/// Most lengths to the right of one below it, which are the bits of a marker.
pub(super) const MARKED: usize = 64;

/// A binary search tree of lengths. Lengths are named by their rank among those of the tree.
#[derive(Debug)]
pub(super) struct Tree {
    /// The lengths, which ascend.
    lens: [u8; LENGTHS],
    /// The depth of each in the tree. Of the ranks of a subtree, the root has the least.
    depths: [u8; LENGTHS],
    count: usize,
    /// For each range of ranks, first and last, the one that is least deep: where the ways to all of them part.
    parts: Vec<u8>,
    /// Ranks that `parts` has room for.
    width: usize,
}

/// How many routes have each of some lengths, which ascend.
pub(super) type Weights<'a> = &'a [(u8, usize)];

impl Tree {
    /// Returns a tree without lengths, with room for all up to `most`.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn new(most: u8, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let width = usize::from(most);
        let mut parts = budget.vec(width * width)?;
        parts.resize(width * width, 0);
        Ok(Self { lens: [0; LENGTHS], depths: [0; LENGTHS], count: 0, parts, width })
    }

    /// Makes it the tree that finds all routes with the fewest steps.
    ///
    /// # Errors
    /// When memory runs out; the tree is unchanged.
    pub(super) fn shape(&mut self, weights: Weights<'_>, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let best = Best::new(weights, budget)?;
        self.count = weights.len();
        for (to, &(len, _)) in self.lens.iter_mut().zip(weights) {
            *to = len;
        }
        best.write_depths(&mut self.depths, 0, self.count, 0);
        best.free(budget);
        self.index();
        Ok(())
    }

    /// Fills `parts` from the depths.
    fn index(&mut self) {
        for first in 0..self.count {
            let mut least = first;
            for last in first..self.count {
                if self.depths[last] < self.depths[least] {
                    least = last;
                }
                self.parts[first * self.width + last] = least as u8;
            }
        }
    }

    /// Adds a length as a leaf, with which no other moves. Returns its rank, or `None` if a marker has no bit for it: the tree is
    /// unchanged then.
    pub(super) fn add(&mut self, len: u8) -> Option<usize> {
        let rank = self.rank(len).err()?;
        // It comes to the right of all whose right side ends before it or later.
        let crowded = |at: usize| {
            let last = self.to_the_right(at);
            last + 1 >= rank && last - at >= MARKED
        };
        if (0..rank).any(crowded) {
            return None;
        }
        self.lens[rank..=self.count].rotate_right(1);
        self.depths[rank..=self.count].rotate_right(1);
        self.count += 1;
        self.lens[rank] = len;
        // The deeper one of its neighbours has no child on this side.
        let before = rank.checked_sub(1).map(|at| self.depths[at] + 1);
        let after = (rank + 1 < self.count).then(|| self.depths[rank + 1] + 1);
        self.depths[rank] = before.max(after).unwrap_or(0);
        self.index();
        Some(rank)
    }

    /// Returns the number of lengths.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the lengths, which ascend.
    pub(super) fn lens(&self) -> &[u8] {
        &self.lens[..self.count]
    }

    /// Returns the rank of a length, or the one that it would have.
    pub(super) fn rank(&self, len: u8) -> Result<usize, usize> {
        self.lens().binary_search(&len)
    }

    /// Returns the rank at which the ways to those from `first` to `last` part.
    #[inline(always)]
    pub(super) fn part(&self, first: usize, last: usize) -> usize {
        self.parts[first * self.width + last].into()
    }

    /// Returns the last rank of the subtree to the right of a rank; the rank itself if there is none.
    pub(super) fn to_the_right(&self, rank: usize) -> usize {
        let deeper = |&at: &usize| self.depths[at] > self.depths[rank];
        (rank + 1..self.count).take_while(deeper).last().unwrap_or(rank)
    }

    /// Returns the ranks that a search for a rank goes to and then to the right of: those that have its markers.
    pub(super) fn marked(&self, rank: usize) -> impl Iterator<Item = usize> {
        let (mut first, mut last) = (0, self.count.saturating_sub(1));
        core::iter::from_fn(move || {
            while first < rank {
                let at = self.part(first, last);
                if at < rank {
                    first = at + 1;
                    return Some(at);
                }
                if at == rank {
                    break;
                }
                last = at - 1;
            }
            None
        })
    }

    /// Returns the sum of the steps to all routes.
    pub(super) fn steps(&self, weights: Weights<'_>) -> usize {
        let depth = |len: u8| self.rank(len).map_or(0, |rank| usize::from(self.depths[rank]) + 1);
        weights.iter().map(|&(len, routes)| routes * depth(len)).sum()
    }

    /// Returns whether the same lengths are to the right of a length in another tree.
    pub(super) fn has_markers_of(&self, other: &Self, len: u8) -> bool {
        match (self.rank(len), other.rank(len)) {
            (Ok(here), Ok(there)) => {
                self.lens[here..=self.to_the_right(here)] == other.lens[there..=other.to_the_right(there)]
            }
            _ => false,
        }
    }

    /// Returns whether depths make a tree whose markers have bits for all lengths.
    pub(super) fn is_in_order(&self) -> bool {
        let ascend = self.lens().windows(2).all(|pair| pair[0] < pair[1]);
        let marked = (0..self.count).all(|rank| self.to_the_right(rank) - rank <= MARKED);
        // Of the ranks of a range, one is least deep.
        let parts = (0..self.count).all(|first| {
            let mut least = first;
            (first + 1..self.count).all(|last| {
                let is_alone = self.depths[last] != self.depths[least];
                if self.depths[last] < self.depths[least] {
                    least = last;
                }
                is_alone && self.part(first, last) == least
            })
        });
        ascend && marked && parts
    }

    /// Returns the array that searches read.
    pub(super) fn array(&self) -> &Vec<u8> {
        &self.parts
    }

    /// Returns the tree's array, to be freed.
    pub(super) fn into_array(self) -> Vec<u8> {
        self.parts
    }
}

/// The trees of all ranges of ranks with the fewest steps, by dynamic programming.
struct Best {
    /// For each range, first and end, the steps to all its routes.
    steps: Vec<u32>,
    /// And the root.
    roots: Vec<u8>,
    count: usize,
}

/// Bits of the number of all routes that are counted, so that steps have 32 bits.
const COUNTED_BITS: u32 = 24;

impl Best {
    fn new(weights: Weights<'_>, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let count = weights.len();
        let mut best = Self { steps: budget.vec((count + 1) * (count + 1))?, roots: Vec::new(), count };
        match budget.vec((count + 1) * (count + 1)) {
            Ok(roots) => best.roots = roots,
            Err(error) => {
                best.free(budget);
                return Err(error);
            }
        }
        best.steps.resize((count + 1) * (count + 1), 0);
        best.roots.resize((count + 1) * (count + 1), 0);
        best.find(weights);
        Ok(best)
    }

    fn find(&mut self, weights: Weights<'_>) {
        let all: usize = weights.iter().map(|&(_, routes)| routes).sum();
        let uncounted = (usize::BITS - all.leading_zeros()).saturating_sub(COUNTED_BITS);
        for size in 1..=self.count {
            for first in 0..=self.count - size {
                let end = first + size;
                let routes: u32 =
                    weights[first..end].iter().map(|&(_, routes)| (routes >> uncounted).max(1) as u32).sum();
                // A marker has a bit for each length to the right.
                let roots = first.max(end.saturating_sub(MARKED + 1))..end;
                let steps = |root: usize| self.steps(first, root) + self.steps(root + 1, end);
                let root = roots.min_by_key(|&root| steps(root)).unwrap_or(first);
                let steps = steps(root) + routes;
                let at = self.at(first, end);
                (self.steps[at], self.roots[at]) = (steps, root as u8);
            }
        }
    }

    fn at(&self, first: usize, end: usize) -> usize {
        first * (self.count + 1) + end
    }

    fn steps(&self, first: usize, end: usize) -> u32 {
        self.steps[self.at(first, end)]
    }

    fn write_depths(&self, depths: &mut [u8; LENGTHS], first: usize, end: usize, depth: u8) {
        if first == end {
            return;
        }
        let root = usize::from(self.roots[self.at(first, end)]);
        depths[root] = depth;
        self.write_depths(depths, first, root, depth + 1);
        self.write_depths(depths, root + 1, end, depth + 1);
    }

    fn free(self, budget: &mut Budget) {
        budget.free(self.steps);
        budget.free(self.roots);
    }
}
