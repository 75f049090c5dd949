//! The members of a group, in a normal form that is the same for equal groups.

use crate::memory::{Budget, OutOfMemory};
use crate::net::NextHop;

use super::blocks::BucketBlock;
use super::{HopsError, MOST_BUCKETS};

/// A member and its weight.
pub(super) type Member = (NextHop, u32);

/// A group.
#[derive(Debug)]
pub(super) struct Group {
    /// Sorted by number; the weights have no common factor.
    pub(super) members: Vec<Member>,
    pub(super) block: BucketBlock,
}

/// The members and the number of buckets, which are the same in equal groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    pub(super) members: Vec<Member>,
    pub(super) log2: u8,
}

/// The fewest buckets that a group has by default, and the average number of buckets for a member.
const FEWEST: u64 = 64;
const A_MEMBER: u64 = 16;

/// Weights up to this sum are exact by default, in groups of few members.
const EXACT: u64 = 1024;

impl GroupKey {
    /// Returns the normal form of these members.
    pub(super) fn new(
        members: &[Member],
        buckets: Option<usize>,
        budget: &mut Budget,
    ) -> Result<Self, HopsError> {
        if members.is_empty() {
            return Err(HopsError::Empty);
        }
        let mut sorted = budget.vec(members.len())?;
        sorted.extend_from_slice(members);
        match Self::normal(&mut sorted, buckets) {
            Ok(log2) => Ok(Self { members: sorted, log2 }),
            Err(error) => {
                // On an error too, because the budget counts the list.
                budget.free(sorted);
                Err(error)
            }
        }
    }

    fn normal(members: &mut [Member], buckets: Option<usize>) -> Result<u8, HopsError> {
        members.sort_unstable();
        if let Some(&(hop, _)) = members.iter().find(|&&(_, weight)| weight == 0) {
            return Err(HopsError::Weight(hop));
        }
        if let Some(pair) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(HopsError::Twice(pair[0].0));
        }
        // Without common factors, groups of weights 1 and 3 and of weights 2 and 6 are the same.
        let factor = members.iter().fold(0, |factor, &(_, weight)| common(factor, weight));
        members.iter_mut().for_each(|(_, weight)| *weight /= factor);
        log2(members, buckets)
    }

    /// Returns a copy.
    pub(super) fn copy(&self, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let mut members = budget.vec(self.members.len())?;
        members.extend_from_slice(&self.members);
        Ok(Self { members, log2: self.log2 })
    }
}

impl Group {
    /// Returns the place of a member among the members.
    pub(super) fn place(&self, hop: NextHop) -> Option<usize> {
        self.members.binary_search_by_key(&hop, |&(hop, _)| hop).ok()
    }
}

fn log2(members: &[Member], buckets: Option<usize>) -> Result<u8, HopsError> {
    let most = MOST_BUCKETS as u64;
    let buckets = match buckets {
        Some(buckets) => buckets as u64,
        None => {
            let sum: u64 = members.iter().map(|&(_, weight)| u64::from(weight)).sum();
            let exact = if sum <= EXACT { sum } else { 0 };
            exact.max(members.len() as u64 * A_MEMBER).max(FEWEST).min(most).next_power_of_two()
        }
    };
    if !buckets.is_power_of_two() || buckets > most || (buckets as usize) < members.len() {
        return Err(HopsError::Buckets { buckets: buckets as usize, members: members.len() });
    }
    Ok(buckets.ilog2() as u8)
}

/// Returns the greatest common factor.
fn common(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(id: u32) -> NextHop {
        NextHop::new(id).unwrap()
    }

    fn key(members: &[(u32, u32)], buckets: Option<usize>) -> Result<GroupKey, HopsError> {
        let members: Vec<_> = members.iter().map(|&(id, weight)| (hop(id), weight)).collect();
        GroupKey::new(&members, buckets, &mut Budget::default())
    }

    #[test]
    fn equal_groups_have_one_form() {
        let one = key(&[(2, 6), (1, 4)], None).unwrap();
        assert_eq!(one, key(&[(1, 2), (2, 3)], None).unwrap());
        assert_eq!(one.members, [(hop(1), 2), (hop(2), 3)]);
        assert_ne!(one, key(&[(1, 2), (2, 3)], Some(128)).unwrap());
        assert_ne!(one, key(&[(1, 3), (2, 2)], None).unwrap());
    }

    #[test]
    fn groups_that_cannot_be_are_refused() {
        assert_eq!(key(&[], None), Err(HopsError::Empty));
        assert_eq!(key(&[(1, 1), (7, 0)], None), Err(HopsError::Weight(hop(7))));
        assert_eq!(key(&[(7, 1), (1, 1), (7, 2)], None), Err(HopsError::Twice(hop(7))));
        for buckets in [0, 1, 3, 1 << 17] {
            assert_eq!(
                key(&[(1, 1), (2, 1)], Some(buckets)),
                Err(HopsError::Buckets { buckets, members: 2 })
            );
        }
    }

    #[test]
    fn buckets_are_enough_for_members_and_small_weights() {
        let log2 = |members: &[(u32, u32)]| key(members, None).unwrap().log2;
        assert_eq!(log2(&[(1, 1)]), 6);
        assert_eq!(log2(&[(1, 1), (2, 255)]), 8);
        assert_eq!(log2(&[(1, 1), (2, 1 << 20)]), 6);
        let many: Vec<_> = (1..=100).map(|id| (id, 1)).collect();
        assert_eq!(log2(&many), 11);
        let most: Vec<_> = (1..=50_000).map(|id| (id, 1)).collect();
        assert_eq!(log2(&most), 16);
        let too_many: Vec<_> = (1..=70_000).map(|id| (id, 1)).collect();
        assert_eq!(key(&too_many, None), Err(HopsError::Buckets { buckets: 1 << 16, members: 70_000 }));
    }
}
