//! Divides a number of routes by weights, exactly and within limits.

/// Divides `total` in proportion to the weights. No part exceeds its room, and what a full part cannot take goes to
/// the others. `None` if all parts together cannot hold the total.
pub(super) fn apportion(total: usize, parts: &[(u64, u128)]) -> Option<Vec<usize>> {
    let mut counts = vec![0usize; parts.len()];
    let mut left = total;
    while left > 0 {
        let open = |at: usize, counts: &[usize]| parts[at].0 > 0 && (counts[at] as u128) < parts[at].1;
        let weight = |at: usize, counts: &[usize]| if open(at, counts) { u128::from(parts[at].0) } else { 0 };
        let sum: u128 = (0..parts.len()).map(|at| weight(at, &counts)).sum();
        if sum == 0 {
            return None;
        }
        // Rounding the running sum keeps every part within one of its share, and the total exact.
        let goal = left as u128;
        let (mut running, mut given) = (0, 0);
        for at in 0..parts.len() {
            running += weight(at, &counts);
            let upto = (goal * running + sum / 2) / sum;
            let room = parts[at].1 - counts[at] as u128;
            // At most `left`, which is a usize.
            let share = (upto - given).min(room) as usize;
            given = upto;
            counts[at] += share;
            left -= share;
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_proportion_and_within_their_room() {
        assert_eq!(apportion(10, &[(1, 100), (3, 100), (1, 100)]), Some(vec![2, 6, 2]));
        assert_eq!(apportion(10, &[(1, 100), (3, 4), (1, 100)]), Some(vec![3, 4, 3]));
        assert_eq!(apportion(7, &[(1, 2), (0, 9), (1, 5)]), Some(vec![2, 0, 5]));
        assert_eq!(apportion(8, &[(1, 2), (0, 9), (1, 5)]), None);
        assert_eq!(apportion(0, &[]), Some(vec![]));
        assert_eq!(apportion(1, &[(1, 9), (8, 9), (1, 9)]), Some(vec![0, 1, 0]));
    }
}
