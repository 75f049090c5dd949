//! Which lengths get a level (Bloomfwd, section 4.2: DPCPE). A prefix of another length is expanded to the next longer
//! length with a level, to `2^(q-i)` prefixes for a length of `i` and a level of `q`.

use fibula::unstable::memory::{Budget, OutOfMemory};

/// Lengths that can have a level.
pub(crate) const LENGTHS: usize = 65;

/// How the lengths are chosen for a number of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// From the longest length on, the length that lowers the cost most is added, and none is revised: as published.
    Greedy,
    /// The least cost, by dynamic programming over the cut between two levels.
    Exact,
    /// The same with the cost that a table really has: an expanded prefix that a longer one replaces costs nothing.
    Capture,
}

/// What the choice needs to know of a table.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Number of prefixes of each length, up to the longest length with expansion.
    pub(crate) of_length: [u64; LENGTHS],
    /// Number of prefixes of each length whose longest cover has each length or is shorter; rows of `longest + 1`. Empty
    /// unless captures are counted. 0 is no cover; the default route is none.
    pub(crate) covered_up_to: Vec<u64>,
    /// The longest length, to which every prefix can be expanded.
    pub(crate) longest: u8,
}

/// Lengths with a level, as bits of a number, and what the cost function says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) bits: u128,
    /// Number of prefixes after expansion, of which captured ones count only where the choice is [`Choice::Greedy`] or
    /// [`Choice::Exact`].
    pub(crate) cost: u128,
}

impl Counts {
    /// Returns counts of nothing.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn new(longest: u8, captures: bool, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let cells = if captures { (usize::from(longest) + 1).pow(2) } else { 0 };
        let mut covered_up_to = budget.vec(cells)?;
        covered_up_to.resize(cells, 0);
        Ok(Self { of_length: [0; LENGTHS], covered_up_to, longest })
    }

    /// Counts a prefix.
    pub(crate) fn add(&mut self, len: u8, cover: u8) {
        self.of_length[usize::from(len)] += 1;
        let row = usize::from(self.longest) + 1;
        if let Some(cell) = self.covered_up_to.get_mut(usize::from(len) * row + usize::from(cover)) {
            *cell += 1;
        }
    }

    /// Ends the counting.
    pub(crate) fn finish(&mut self) {
        let row = usize::from(self.longest) + 1;
        for row in self.covered_up_to.chunks_mut(row) {
            let mut sum = 0;
            for cell in row {
                sum += *cell;
                *cell = sum;
            }
        }
    }

    /// Returns the number of prefixes after the expansion of lengths from `shortest` on to `len`, captured ones included.
    pub(super) fn expanded(&self, shortest: u8, len: u8) -> u128 {
        (shortest..=len).map(|at| u128::from(self.of_length[usize::from(at)]) << (len - at)).sum()
    }

    /// Returns the same without captured ones. What counts is the prefixes that no other of these lengths covers, as all
    /// others expand within them.
    pub(super) fn distinct(&self, shortest: u8, len: u8) -> u128 {
        let row = usize::from(self.longest) + 1;
        let outermost = |at: u8| self.covered_up_to[usize::from(at) * row + usize::from(shortest) - 1];
        (shortest..=len).map(|at| u128::from(outermost(at)) << (len - at)).sum()
    }

    /// Chooses the lengths of so many levels, or of as many more as keep the cost within `allowance`.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn choose(
        &self,
        choice: Choice,
        levels: u8,
        allowance: u128,
        budget: &mut Budget,
    ) -> Result<Lengths, OutOfMemory> {
        match choice {
            Choice::Greedy => Ok(self.greedy(levels, allowance)),
            Choice::Exact => self.exact(levels, allowance, budget, Self::expanded),
            Choice::Capture => self.exact(levels, allowance, budget, Self::distinct),
        }
    }

    /// Returns the cost of a set of lengths: the function `f` of the paper.
    fn cost(&self, bits: u128) -> u128 {
        let (mut cost, mut shortest) = (0, 1);
        for len in (1..=self.longest).filter(|len| bits >> len & 1 != 0) {
            cost += self.expanded(shortest, len);
            shortest = len + 1;
        }
        cost
    }

    fn greedy(&self, levels: u8, allowance: u128) -> Lengths {
        let bits = 1 << self.longest;
        let mut found = Lengths { bits, cost: self.cost(bits) };
        while found.bits.count_ones() < levels.into() || found.cost > allowance {
            let more = (1..self.longest).filter(|len| found.bits >> len & 1 == 0).map(|len| {
                let bits = found.bits | 1 << len;
                Lengths { bits, cost: self.cost(bits) }
            });
            match more.min_by_key(|more| more.cost) {
                Some(best) if best.cost < found.cost => found = best,
                _ => break,
            }
        }
        found
    }

    fn exact(
        &self,
        levels: u8,
        allowance: u128,
        budget: &mut Budget,
        cost: impl Fn(&Self, u8, u8) -> u128,
    ) -> Result<Lengths, OutOfMemory> {
        let longest = usize::from(self.longest);
        let row = longest + 1;
        // Cost of one level for the lengths from the row's on to the column's.
        let mut costs = budget.vec(row * row)?;
        costs.extend((0..row * row).map(|cell| match (cell / row, cell % row) {
            (shortest, len) if shortest >= 1 && shortest <= len => cost(self, shortest as u8, len as u8),
            _ => 0,
        }));
        // Least cost of the lengths up to each, for one level more in each round, and where the last level begins.
        let mut least = [u128::MAX; LENGTHS];
        let mut begins = [[0u8; LENGTHS]; LENGTHS];
        least[0] = 0;
        let mut found = Lengths { bits: 0, cost: u128::MAX };
        for round in 1..row {
            let before = least;
            least[0] = u128::MAX;
            let cells = least.iter_mut().zip(&mut begins[round]).enumerate();
            for (len, (least, begins)) in cells.take(row).skip(1) {
                let with = |cut: usize| before[cut].saturating_add(costs[(cut + 1) * row + len]);
                let cut = (0..len).min_by_key(|&cut| with(cut)).unwrap_or(0);
                (*least, *begins) = (with(cut), cut as u8);
            }
            if least[longest] < found.cost {
                found = Lengths { bits: 0, cost: least[longest] };
                let (mut len, mut round) = (longest, round);
                while len > 0 {
                    found.bits |= 1 << len;
                    len = begins[round][len].into();
                    round -= 1;
                }
            }
            if round >= levels.into() && found.cost <= allowance {
                break;
            }
        }
        budget.free(costs);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(lengths: &[(u8, u64)]) -> Counts {
        let mut counts = Counts::new(64, false, &mut Budget::default()).unwrap();
        for &(len, count) in lengths {
            counts.of_length[usize::from(len)] = count;
        }
        counts
    }

    fn lengths(found: Lengths) -> Vec<u8> {
        (0..=64).filter(|len| found.bits >> len & 1 != 0).collect()
    }

    /// Every choice of so many lengths.
    fn best_of_all(counts: &Counts, longest: u8, levels: u32) -> u128 {
        let bits = |shorter: u32| u128::from(shorter) << 1 | 1 << longest;
        let all = (0..1u32 << (longest - 1)).filter(|shorter| shorter.count_ones() < levels);
        all.map(|shorter| counts.cost(bits(shorter))).min().unwrap()
    }

    #[test]
    fn the_exact_choice_is_the_best_and_the_greedy_one_is_not_better() {
        let mut state = 1u64;
        let mut greedy_loses = 0;
        for _ in 0..40 {
            let mut counts = Counts::new(10, false, &mut Budget::default()).unwrap();
            for count in &mut counts.of_length[1..=10] {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *count = (state >> 33) % [1, 10, 1_000][(state >> 60) as usize % 3];
            }
            for levels in 1..=10 {
                let choose =
                    |choice| counts.choose(choice, levels, u128::MAX, &mut Budget::default()).unwrap();
                let (exact, greedy) = (choose(Choice::Exact), choose(Choice::Greedy));
                assert_eq!(exact.cost, best_of_all(&counts, 10, levels.into()));
                assert_eq!((exact.cost, greedy.cost), (counts.cost(exact.bits), counts.cost(greedy.bits)));
                assert!(exact.bits.count_ones() <= levels.into() && greedy.cost >= exact.cost);
                // Each step adds the best length, and keeps the others.
                if let Some(before) = levels.checked_sub(1).filter(|&before| before > 0) {
                    let before =
                        counts.choose(Choice::Greedy, before, u128::MAX, &mut Budget::default()).unwrap();
                    let best = (1..10).map(|len| counts.cost(before.bits | 1 << len)).min();
                    assert_eq!((greedy.bits & before.bits, Some(greedy.cost)), (before.bits, best));
                }
                greedy_loses += u32::from(greedy.cost > exact.cost);
            }
        }
        assert!(greedy_loses > 5, "{greedy_loses}");
    }

    /// The shape of a full IPv6 table, on which the greedy choice cannot keep three levels small.
    #[test]
    fn the_greedy_choice_never_revises() {
        let table = [(29, 3_000), (32, 7_000), (36, 2_000), (40, 3_000), (44, 4_000), (48, 22_000), (64, 20)];
        let counts = counts(&table);
        let choose =
            |choice, levels| counts.choose(choice, levels, u128::MAX, &mut Budget::default()).unwrap();
        let three = choose(Choice::Greedy, 3);
        let five = choose(Choice::Greedy, 5);
        assert_eq!(three.bits & five.bits, three.bits, "what was added stays");
        assert_eq!(lengths(choose(Choice::Exact, 3)), [36, 48, 64]);
        assert!(three.cost > 20 * choose(Choice::Exact, 3).cost);
        // One level more at a time, until the table is small enough.
        let within = counts.choose(Choice::Greedy, 3, 1_000_000, &mut Budget::default()).unwrap();
        assert!(within.cost <= 1_000_000 && lengths(within).len() > 3);
    }
}
