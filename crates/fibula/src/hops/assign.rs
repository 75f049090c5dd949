//! Assigns the buckets of a group to its members.

use core::cmp::Reverse;

/// A member of a group, while its buckets are being assigned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    /// 0 if it can have no buckets.
    pub(super) weight: u32,
    /// Buckets that it should have, and those that it has.
    pub(super) target: u32,
    pub(super) has: u32,
    /// The remainder of its fair share above the target, to choose which members get one more bucket.
    rest: u64,
    /// Its place, and the place of the next one that lacks buckets.
    at: u32,
    next: u32,
}

impl Share {
    pub(super) fn of(weight: u32) -> Self {
        Self { weight, ..Self::default() }
    }
}

/// A bucket that no member has.
pub(super) const VACANT: u32 = u32::MAX;

/// Which members give up buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reassignment {
    /// Members with weight 0.
    Gone,
    /// Members with weight 0, and members that have more than their share.
    Surplus,
}

/// Assigns each bucket to a member by its place in `shares`, with as few changes as the shares and `giving` allow. At least one
/// member must have a weight. Allocates nothing; the time is proportional to buckets and members, plus sorting the members.
pub(super) fn assign(owners: &mut [u32], shares: &mut [Share], giving: Reassignment) {
    targets(owners.len() as u32, shares);
    for share in shares.iter_mut() {
        share.has = 0;
    }
    for owner in owners.iter_mut() {
        // `VACANT` is beyond all shares, so such a bucket stays vacant.
        match shares.get_mut(*owner as usize).filter(|share| share.weight > 0) {
            Some(share) if giving == Reassignment::Gone || share.has < share.target => share.has += 1,
            _ => *owner = VACANT,
        }
    }
    fill(owners, shares);
}

/// Divides `buckets` by weight: the whole part of each fair share, then one more for the largest remainders.
fn targets(buckets: u32, shares: &mut [Share]) {
    let sum: u64 = shares.iter().map(|share| u64::from(share.weight)).sum();
    let mut left = buckets;
    for (at, share) in shares.iter_mut().enumerate() {
        let product = u64::from(buckets) * u64::from(share.weight);
        (share.target, share.rest) = ((product / sum) as u32, product % sum);
        share.at = at as u32;
        left -= share.target;
    }
    // The slice is in bounds because fewer buckets are left than there are members with a remainder.
    shares.sort_unstable_by_key(|share| (Reverse(share.rest), share.at));
    shares[..left as usize].iter_mut().for_each(|share| share.target += 1);
    // Back in the order of the members, because owners refer to them by place.
    shares.sort_unstable_by_key(|share| share.at);
}

/// Gives vacant buckets to members that have less than their share, in turn, so that neighbours differ.
fn fill(owners: &mut [u32], shares: &mut [Share]) {
    // A ring of the members that lack buckets. It starts after the last of them, so that the first member is next.
    let lacking = |share: &Share| share.has < share.target;
    let Some(last) = shares.iter().rposition(lacking) else { return };
    let mut before = last;
    for at in 0..=last {
        if lacking(&shares[at]) {
            shares[before].next = at as u32;
            before = at;
        }
    }
    for owner in owners.iter_mut().filter(|owner| **owner == VACANT) {
        let at = shares[before].next as usize;
        *owner = at as u32;
        shares[at].has += 1;
        if lacking(&shares[at]) {
            before = at;
        } else if at == before {
            // No bucket is left without an owner: the shortfall of all members equals the number of vacant buckets.
            return;
        } else {
            shares[before].next = shares[at].next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn shares(weights: &[u32]) -> Vec<Share> {
        weights.iter().map(|&weight| Share::of(weight)).collect()
    }

    fn counts(owners: &[u32], members: usize) -> Vec<u32> {
        let mut counts = vec![0; members];
        owners.iter().for_each(|&owner| counts[owner as usize] += 1);
        counts
    }

    fn is_fair(counts: &[u32], weights: &[u32], buckets: u64) -> bool {
        let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        counts.iter().zip(weights).all(|(&count, &weight)| {
            let product = buckets * u64::from(weight);
            u64::from(count) >= product / sum && u64::from(count) <= product.div_ceil(sum)
        })
    }

    #[test]
    fn new_groups_divide_buckets_by_weight() {
        for (weights, expected) in [
            (&[1, 1][..], &[32, 32][..]),
            (&[1, 3], &[16, 48]),
            (&[1, 1, 1], &[22, 21, 21]),
            (&[0, 5, 0], &[0, 64, 0]),
            (&[u32::MAX, 1], &[64, 0]),
        ] {
            let mut owners = [VACANT; 64];
            assign(&mut owners, &mut shares(weights), Reassignment::Gone);
            assert_eq!(counts(&owners, weights.len()), expected, "{weights:?}");
        }
    }

    #[test]
    fn members_that_go_move_only_their_own_buckets() {
        let mut random = Random(5);
        for _ in 0..400 {
            let members = 2 + random.below(9) as usize;
            let buckets = 1 << (4 + random.below(5));
            let mut weights: Vec<u32> = (0..members).map(|_| 1 + random.below(9) as u32).collect();
            let mut owners = vec![VACANT; buckets];
            assign(&mut owners, &mut shares(&weights), Reassignment::Gone);
            assert!(is_fair(&counts(&owners, members), &weights, buckets as u64));
            let gone = random.below(members as u64) as usize;
            let (before, weight) = (owners.clone(), core::mem::take(&mut weights[gone]));
            assign(&mut owners, &mut shares(&weights), Reassignment::Gone);
            for (&new, &old) in owners.iter().zip(&before) {
                assert!(new != gone as u32 && (new == old || old == gone as u32));
            }
            // And back: only the buckets that it lacks move, to it alone or within one bucket of rounding.
            let (before, had) = (owners.clone(), counts(&owners, members));
            weights[gone] = weight;
            assign(&mut owners, &mut shares(&weights), Reassignment::Surplus);
            let has = counts(&owners, members);
            assert!(is_fair(&has, &weights, buckets as u64));
            let moved = owners.iter().zip(&before).filter(|(new, old)| new != old).count() as u32;
            let gained: u32 = has.iter().zip(&had).map(|(has, had)| has.saturating_sub(*had)).sum();
            assert_eq!(moved, gained, "as few as there can be");
        }
    }
}
