//! Places at given distances from each other: what makes runs and clusters.

use crate::random::{Random, Weighted};

use super::profile::Gaps;

/// A [`Gaps`] line, ready to draw from.
#[derive(Debug, Clone)]
pub(super) struct Spacing {
    /// Octaves of distance, and the jump as the last.
    kinds: Weighted,
    jump: usize,
}

impl Spacing {
    /// None when all weights of the line are zero.
    pub(super) fn new(gaps: &Gaps) -> Option<Self> {
        let weights = gaps.octaves.iter().chain([&gaps.jump]);
        let kinds = Weighted::new(weights.map(|&weight| weight.into()))?;
        Some(Self { kinds, jump: gaps.octaves.len() })
    }

    /// `count` different places of 0 to `slots - 1`, ascending, in `places`. `count` is at most `slots`.
    ///
    /// Clusters are laid end to end first, with the distances inside them; then the slots that are left over
    /// are put between them at random. So no two places can meet, and none is drawn in vain.
    pub(super) fn place(&self, random: &mut Random, count: usize, slots: u128, places: &mut Vec<u128>) {
        places.clear();
        if count == 0 {
            return;
        }
        let mut spare = slots - count as u128;
        if count == 1 {
            places.push(random.up_to(spare));
            return;
        }
        // A narrow region would be used up by the first wide distances.
        let widest = (4 * (slots / count as u128)).max(1);
        let mut at = 0;
        let mut jumps = Vec::new();
        places.push(at);
        for index in 1..count {
            let kind = self.kinds.draw(random);
            at += 1;
            if kind == self.jump {
                jumps.push(index);
            } else if kind > 0 && spare > 0 {
                let wide = (1u128 << kind) - 1 + random.up_to((1 << kind) - 1);
                let wide = wide.min(widest - 1).min(spare);
                spare -= wide;
                at += wide;
            }
            places.push(at);
        }
        let mut shifts: Vec<u128> = (0..=jumps.len()).map(|_| random.up_to(spare)).collect();
        shifts.sort_unstable();
        let mut cluster = 0;
        for (index, place) in places.iter_mut().enumerate() {
            if jumps.get(cluster) == Some(&index) {
                cluster += 1;
            }
            *place += shifts[cluster];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_different_and_inside() {
        let mut random = Random::new(3);
        let line = Gaps { up_to: 32, octaves: vec![50, 20, 10, 10, 10], jump: 5 };
        let spacing = Spacing::new(&line).unwrap();
        let mut places = Vec::new();
        for slots in [1u128, 2, 3, 10, 100, 1 << 100] {
            for count in [0, 1, 2, 3, 10, 50, 99, 100] {
                if count as u128 <= slots {
                    spacing.place(&mut random, count, slots, &mut places);
                    assert_eq!(places.len(), count);
                    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{count} of {slots}");
                    assert!(places.last().is_none_or(|&last| last < slots), "{count} of {slots}");
                }
            }
        }
        let still = Gaps { up_to: 32, octaves: vec![0], jump: 0 };
        assert!(Spacing::new(&still).is_none());
    }
}
