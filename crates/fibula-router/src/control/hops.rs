//! Numbers of next hops.

use std::collections::HashMap;

use fibula::net::NextHop;

use crate::forward::fabric::Hop;

/// Numbers of next hops: each kind keeps its number as long as the router runs, so that routes and workers, which change at
/// different moments, always mean the same.
#[derive(Debug)]
pub struct Hops {
    numbers: HashMap<Hop, u32>,
    hops: Vec<Option<Hop>>,
    /// Numbers that were reserved and are not used any more.
    free: Vec<NextHop>,
}

impl Default for Hops {
    fn default() -> Self {
        Self { numbers: HashMap::new(), hops: vec![None], free: Vec::new() }
    }
}

impl Hops {
    /// Returns the number of a next hop whose meaning does not change.
    ///
    /// # Panics
    /// After 2^32 kinds of next hops.
    pub fn number(&mut self, hop: Hop) -> NextHop {
        let next = self.hops.len() as u32;
        let number = *self.numbers.entry(hop.clone()).or_insert(next);
        if number == next {
            self.hops.push(Some(hop));
        }
        NextHop::new(number).expect("numbers begin at 1")
    }

    /// Returns a number whose meaning is set, and may change.
    ///
    /// # Panics
    /// After 2^32 numbers at once.
    pub fn reserve(&mut self) -> NextHop {
        self.free.pop().unwrap_or_else(|| {
            self.hops.push(None);
            NextHop::new(self.hops.len() as u32 - 1).expect("numbers begin at 1")
        })
    }

    /// Sets what a reserved number means. Returns whether that is news.
    pub fn set(&mut self, number: NextHop, hop: Option<Hop>) -> bool {
        let place = &mut self.hops[number.id() as usize];
        let news = *place != hop;
        *place = hop;
        news
    }

    /// Gives reserved numbers back, which nothing leads to any more.
    pub fn give_back(&mut self, numbers: &[NextHop]) {
        self.free.extend(numbers);
    }

    /// Returns all next hops by number.
    #[must_use]
    pub fn all(&self) -> &[Option<Hop>] {
        &self.hops
    }
}
