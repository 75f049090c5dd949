//! The pace at which updates are played.

use fibula_feed::event::Time;

use crate::config::MrtRate;

const SECOND_NS: u128 = 1_000_000_000;

/// Computes when each update is due.
#[derive(Debug)]
pub struct Pace {
    rate: MrtRate,
    /// Time at which the first update was played, and its recorded time, both in nanoseconds.
    first: Option<(u64, u128)>,
    count: u64,
}

impl Pace {
    /// Creates a pace. Its first update sets the origin of time.
    #[must_use]
    pub const fn new(rate: MrtRate) -> Self {
        Self { rate, first: None, count: 0 }
    }

    /// Returns when the next update is due, by the clock `now`. 0 means at once.
    pub fn due_ns(&mut self, time: Time, now: impl FnOnce() -> u64) -> u64 {
        if self.rate == MrtRate::Max {
            return 0;
        }
        let at = u128::from(time.seconds) * SECOND_NS + u128::from(time.micros.unwrap_or(0)) * 1000;
        let (began_ns, from) = *self.first.get_or_insert_with(|| (now(), at));
        let after = match self.rate {
            MrtRate::Max => 0,
            MrtRate::Times(times) => at.saturating_sub(from) / u128::from(times.max(1)),
            MrtRate::PerSecond(count) => u128::from(self.count) * SECOND_NS / u128::from(count.max(1)),
        };
        self.count += 1;
        began_ns.saturating_add(after as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_due_by_their_times_or_by_their_number() {
        let at = |seconds: u32, micros: u32| Time { seconds, micros: Some(micros) };
        let mut pace = Pace::new(MrtRate::Max);
        assert_eq!([at(1, 0), at(9, 0)].map(|time| pace.due_ns(time, || 7)), [0, 0]);
        let mut pace = Pace::new(MrtRate::Times(10));
        let times = [at(100, 0), at(101, 500_000), at(101, 0), at(99, 0)];
        assert_eq!(times.map(|time| pace.due_ns(time, || 7)), [7, 150_000_007, 100_000_007, 7]);
        let mut pace = Pace::new(MrtRate::PerSecond(4));
        assert_eq!(times.map(|time| pace.due_ns(time, || 7)), [7, 250_000_007, 500_000_007, 750_000_007]);
    }
}
