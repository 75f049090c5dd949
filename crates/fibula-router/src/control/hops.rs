//! Numbers of next hops.

use std::collections::HashMap;
use std::mem;

use fibula::net::NextHop;

use crate::forward::fabric::Hop;

/// Numbers of next hops. A next hop of the configuration keeps its number for as long as the router runs, because routes and workers
/// change at different moments and must always mean the same next hop. A member of groups keeps its number for as long as a group has
/// it: peers may name any number of gateways.
#[derive(Debug)]
pub struct Hops {
    numbers: HashMap<Hop, u32>,
    hops: Vec<Option<Hop>>,
    /// How often groups of reserved numbers have each number as a member; `None` for a number that stays, or that is reserved.
    uses: Vec<Option<u32>>,
    /// Numbers that were given back.
    free: Vec<NextHop>,
}

impl Default for Hops {
    fn default() -> Self {
        // Number 0 means "no next hop", so the first real number is 1.
        Self { numbers: HashMap::new(), hops: vec![None], uses: vec![None], free: Vec::new() }
    }
}

impl Hops {
    /// Returns the number of a next hop whose meaning does not change.
    ///
    /// # Panics
    /// After 2^32 kinds of next hops.
    pub fn number(&mut self, hop: Hop) -> NextHop {
        let number = self.member(hop);
        self.uses[number.id() as usize] = None;
        number
    }

    /// Returns the number of a next hop whose meaning does not change while a group that is [set](Self::set) has it. A number that no
    /// group has got is taken back by the next [`sweep`](Self::sweep).
    ///
    /// # Panics
    /// After 2^32 numbers at once.
    pub fn member(&mut self, hop: Hop) -> NextHop {
        if let Some(&number) = self.numbers.get(&hop) {
            return NextHop::new(number).expect("numbers begin at 1");
        }
        let number = self.reserve();
        self.numbers.insert(hop.clone(), number.id());
        self.hops[number.id() as usize] = Some(hop);
        self.uses[number.id() as usize] = Some(0);
        number
    }

    /// Reserves a number whose meaning is set later and may change.
    ///
    /// # Panics
    /// After 2^32 numbers at once.
    pub fn reserve(&mut self) -> NextHop {
        self.free.pop().unwrap_or_else(|| {
            self.hops.push(None);
            self.uses.push(None);
            NextHop::new(self.hops.len() as u32 - 1).expect("numbers begin at 1")
        })
    }

    /// Sets the meaning of a reserved number. Returns whether the meaning has changed.
    pub fn set(&mut self, number: NextHop, hop: Option<Hop>) -> bool {
        let place = &mut self.hops[number.id() as usize];
        if *place == hop {
            return false;
        }
        let before = mem::replace(place, hop);
        // The new members first, so that one that stays is never without a use.
        if let Some(Hop::Group(members)) = &self.hops[number.id() as usize] {
            for &member in members {
                if let Some(uses) = &mut self.uses[member as usize] {
                    *uses += 1;
                }
            }
        }
        if let Some(Hop::Group(members)) = before {
            for member in members {
                if let Some(uses) = &mut self.uses[member as usize] {
                    *uses -= 1;
                }
            }
        }
        true
    }

    /// Takes back the numbers of members that no group has any more, and returns them, to be [given back](Self::give_back) once no
    /// worker has a group with them.
    pub fn sweep(&mut self) -> Vec<NextHop> {
        let mut unused = Vec::new();
        for (number, uses) in self.uses.iter_mut().enumerate().filter(|(_, uses)| **uses == Some(0)) {
            *uses = None;
            if let Some(hop) = self.hops[number].take() {
                self.numbers.remove(&hop);
            }
            unused.extend(NextHop::new(number as u32));
        }
        unused
    }

    /// Gives back numbers that no route and no worker uses any more.
    pub fn give_back(&mut self, numbers: &[NextHop]) {
        self.free.extend(numbers);
    }

    /// Returns all next hops by number.
    #[must_use]
    pub fn all(&self) -> &[Option<Hop>] {
        &self.hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::fabric::Gateway;

    fn via(last: u32) -> Hop {
        Hop::Via { interface: 0, gateway: Gateway::V4(last) }
    }

    #[test]
    fn members_keep_their_numbers_as_long_as_a_group_has_them() {
        let mut hops = Hops::default();
        let stays = hops.number(via(1));
        let groups = [hops.reserve(), hops.reserve()];
        let set = |hops: &mut Hops, group: usize, gateways: &[u32]| {
            let members = gateways.iter().map(|&gateway| hops.member(via(gateway)).id()).collect();
            hops.set(groups[group], Some(Hop::Group(members)))
        };
        assert!(set(&mut hops, 0, &[1, 2, 2]) && set(&mut hops, 1, &[2, 3]));
        assert!(!set(&mut hops, 1, &[2, 3]));
        let [two, three] = [2, 3].map(|gateway| hops.member(via(gateway)));
        assert_eq!(hops.sweep(), []);
        assert!(set(&mut hops, 0, &[1]));
        assert_eq!(hops.sweep(), []);
        assert!(hops.set(groups[1], None));
        assert_eq!(hops.sweep(), [two, three]);
        assert_eq!((hops.all()[two.id() as usize].clone(), hops.number(via(1))), (None, stays));
        // Until they are given back, other next hops have other numbers.
        assert_eq!(hops.member(via(2)).id() as usize, hops.all().len() - 1);
        hops.give_back(&[two, three]);
        assert_eq!(hops.member(via(4)), three);
        // A number that no group has got, and one that stays from then on.
        hops.number(via(4));
        assert_eq!(hops.sweep().len(), 1);
        assert_eq!(hops.all()[three.id() as usize], Some(via(4)));
    }

    /// Peers may name other gateways for ever.
    #[test]
    fn numbers_are_as_many_as_are_used_at_once() {
        let mut hops = Hops::default();
        let group = hops.reserve();
        for round in 0..1000 {
            let members = (0..64).map(|way| hops.member(via(64 * round + way)).id()).collect();
            hops.set(group, Some(Hop::Group(members)));
            let unused = hops.sweep();
            hops.give_back(&unused);
        }
        assert!(hops.all().len() <= 2 * 64 + 2, "{}", hops.all().len());
    }
}
