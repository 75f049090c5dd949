//! Numbers of next hops.

use std::collections::HashMap;

use fibula::net::NextHop;

use crate::forward::fabric::Hop;

/// Numbers of next hops. Each kind of next hop keeps its number for as long as the router runs, because routes and workers change
/// at different moments and must always mean the same next hop.
#[derive(Debug)]
pub struct Hops {
    numbers: HashMap<Hop, u32>,
    hops: Vec<Option<Hop>>,
    /// Reserved numbers that were given back.
    free: Vec<NextHop>,
}

impl Default for Hops {
    fn default() -> Self {
        // Number 0 means "no next hop", so the first real number is 1.
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

    /// Reserves a number whose meaning is set later and may change.
    ///
    /// # Panics
    /// After 2^32 numbers at once.
    pub fn reserve(&mut self) -> NextHop {
        self.free.pop().unwrap_or_else(|| {
            self.hops.push(None);
            NextHop::new(self.hops.len() as u32 - 1).expect("numbers begin at 1")
        })
    }

    /// Sets the meaning of a reserved number. Returns whether the meaning has changed.
    pub fn set(&mut self, number: NextHop, hop: Option<Hop>) -> bool {
        let place = &mut self.hops[number.id() as usize];
        let news = *place != hop;
        *place = hop;
        news
    }

    /// Gives back reserved numbers that no route uses any more.
    pub fn give_back(&mut self, numbers: &[NextHop]) {
        self.free.extend(numbers);
    }

    /// Returns all next hops by number.
    #[must_use]
    pub fn all(&self) -> &[Option<Hop>] {
        &self.hops
    }
}
