//! Random gaps between packets that are drawn as samples.

/// Draws the gaps between samples, so that each packet is one of them with the same probability, whatever its neighbours are.
///
/// The gaps have a geometric distribution: packets are drawn independently of each other ("uniform probabilistic sampling", RFC 5475,
/// section 5.2.2.1). A fixed stride would see all or nothing of traffic that comes in step with it, and a new gap after a change of
/// the rate takes nothing from the gap before, because the distribution has no memory.
#[derive(Debug, Clone)]
pub(super) struct Draw {
    state: u64,
    /// 1 / ln(1 - 1 / interval).
    scale: f64,
}

impl Draw {
    /// Begins with a seed. Of `interval` packets one is drawn, on average. An interval of 0 counts as 1.
    pub(super) fn new(seed: u64, interval: u32) -> Self {
        Self { state: seed, scale: (-1.0 / f64::from(interval.max(1))).ln_1p().recip() }
    }

    /// Returns a seed for another interval.
    pub(super) fn seed(&self) -> u64 {
        self.state
    }

    /// Draws the number of packets that pass before the next sample.
    pub(super) fn gap(&mut self) -> u64 {
        // From (0, 1], because the logarithm of 0 would be a gap without end. The largest gap is 37 intervals.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        (uniform.ln() * self.scale) as u64
    }

    /// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 14).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_one_draws_all() {
        for interval in [0, 1] {
            let mut draw = Draw::new(1, interval);
            assert!((0..10_000).all(|_| draw.gap() == 0));
        }
    }

    /// Counts by gap, against the probabilities of a geometric distribution: their chi-squared statistic.
    #[test]
    fn gaps_have_a_geometric_distribution() {
        const DRAWS: u32 = 100_000;
        for interval in [2_u32, 7, 100] {
            let mut draw = Draw::new(u64::from(interval), interval);
            let mut counts = vec![0_u32; 20];
            let mut sum = 0;
            // Twenty classes, each as wide as a part of the interval.
            let width = u64::from(interval).div_ceil(5);
            for _ in 0..DRAWS {
                let gap = draw.gap();
                sum += gap;
                counts[usize::try_from(gap / width).unwrap().min(19)] += 1;
            }
            let stay = 1.0 - 1.0 / f64::from(interval);
            let beyond = |class: usize| stay.powf((class as u64 * width) as f64);
            let statistic: f64 = (0..20)
                .map(|class| {
                    let share = beyond(class) - if class == 19 { 0.0 } else { beyond(class + 1) };
                    let wanted = share * f64::from(DRAWS);
                    (f64::from(counts[class]) - wanted).powi(2) / wanted.max(1e-9)
                })
                .sum();
            // With 19 degrees of freedom, one of 10,000 is above 50. The seed is fixed.
            assert!(statistic < 50.0, "interval {interval}: {statistic}, {counts:?}");
            let mean = sum as f64 / f64::from(DRAWS) + 1.0;
            assert!((mean / f64::from(interval) - 1.0).abs() < 0.02, "interval {interval}: mean {mean}");
        }
    }

    #[test]
    fn the_largest_interval_has_gaps_that_fit() {
        let mut draw = Draw::new(3, u32::MAX);
        let gaps: Vec<u64> = (0..1000).map(|_| draw.gap()).collect();
        assert!(gaps.iter().all(|&gap| gap < 37 * u64::from(u32::MAX)), "{gaps:?}");
        assert!(gaps.iter().any(|&gap| gap > u64::from(u32::MAX)), "{gaps:?}");
    }
}
