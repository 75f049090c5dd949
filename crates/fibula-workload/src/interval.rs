//! Medians and paired ratios, with 95 % intervals.
//!
//! In each run the contestants of a cell are timed one after another over the same keys, so a disturbance of the machine
//! that lasts longer than a run slows all of them. Their ratio in the same run hardly changes. A claim is therefore
//! decided by the ratios of the runs: their median, and the interval that holds the true median in 95 of 100 cases. Its
//! ends are two of the sorted ratios, counted from either end, which assumes nothing about how times are distributed.

use serde::Serialize;

/// A median with the interval that holds the true one in at least 95 of 100 cases.
///
/// Up to five values are too few for that: the interval then goes from the least to the greatest, which five values
/// justify in 94 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The median; of an even number of values, the lower of the two in the middle.
    pub median: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Returns the median of `values` and its interval; `None` if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let out = left_out(sorted.len());
        Some(Self { low: sorted[out], median: sorted[last / 2], high: sorted[last - out] })
    }

    /// Returns the median of the paired ratios of two contestants, one ratio a run. Returns `None` without runs, or if the
    /// contestants have different numbers of runs.
    #[must_use]
    pub fn of_ratios(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        if ours.len() != theirs.len() || theirs.iter().any(|&rate| rate <= 0.0) {
            return None;
        }
        Self::of(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
    }

    /// Returns the width of the interval as a part of the median.
    #[must_use]
    pub fn width(&self) -> f64 {
        if self.median > 0.0 { (self.high - self.low) / self.median } else { 0.0 }
    }
}

/// Returns how many of the sorted values lie outside of the interval on either side. The true median is below the value
/// with this index in as many cases as a fair coin, thrown `count` times, falls on one side at most so often.
fn left_out(count: usize) -> usize {
    let mut ways = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut below, mut out) = (0.0, 0);
    // One side of the 5 %.
    while out < count / 2 {
        below += ways;
        if below > 0.025 {
            break;
        }
        out += 1;
        ways *= (count - out + 1) as f64 / out as f64;
    }
    out.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks from tables of the sign test, the first value being rank 1.
    #[test]
    fn ends_are_the_ranks_of_the_sign_test() {
        for (count, rank) in
            [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (17, 5), (21, 6), (25, 8)]
        {
            assert_eq!(left_out(count) + 1, rank, "{count}");
        }
        let values: Vec<f64> = (1..=9).rev().map(f64::from).collect();
        assert_eq!(Interval::of(&values), Some(Interval { low: 2.0, median: 5.0, high: 8.0 }));
        assert_eq!(Interval::of(&[3.0, 1.0]), Some(Interval { low: 1.0, median: 1.0, high: 3.0 }));
        assert_eq!(Interval::of(&[]), None);
        assert!(Interval::of(&vec![1.0; 1000]).is_some());
    }

    #[test]
    fn ratios_are_of_the_same_run() {
        // Both are slowed alike: the rates differ by a factor of nine, the ratio never changes.
        let theirs: Vec<f64> = (1..=9).map(f64::from).collect();
        let ours: Vec<f64> = theirs.iter().map(|rate| 2.0 * rate).collect();
        let ratio = Interval::of_ratios(&ours, &theirs).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high, ratio.width()), (2.0, 2.0, 2.0, 0.0));
        assert!(Interval::of(&ours).unwrap().width() > 1.0);
        assert_eq!(Interval::of_ratios(&ours, &theirs[1..]), None);
        assert_eq!(Interval::of_ratios(&[1.0], &[0.0]), None);
    }
}
