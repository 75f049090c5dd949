//! The room of a worker for the rules of a burst, and what is found there: rows and decisions.

use fibula::net::NextHop;

use super::Action;
use crate::io::BURST;

/// The decision about packets that pass the same rule first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleVerdict(u32);

impl RuleVerdict {
    /// Makes that of a rule; without an action, more rules have to be looked at.
    pub(super) const fn new(rule: usize, action: Option<Action>) -> Self {
        let action = match action {
            Some(Action::Permit) => 0,
            Some(Action::Deny) => 1,
            Some(Action::Reject) => 2,
            Some(Action::Count) | None => 3,
        };
        Self(action << 16 | rule as u32)
    }

    /// Returns the number of the rule; that after the last is the default.
    #[inline]
    pub(super) const fn rule(self) -> usize {
        self.0 as usize & 0xffff
    }

    #[inline]
    pub(super) const fn permits(self) -> bool {
        self.0 >> 16 == 0
    }

    #[inline]
    pub(super) const fn action(self) -> Option<Action> {
        match self.0 >> 16 {
            0 => Some(Action::Permit),
            1 => Some(Action::Deny),
            2 => Some(Action::Reject),
            _ => None,
        }
    }
}

/// The rules that each packet of a burst passes but for its output, as rows of bits, and the room to find them.
#[derive(Debug)]
pub(crate) struct BurstRows {
    pub(super) words: usize,
    pub(super) rows: Box<[u64]>,
    pub(super) verdicts: [RuleVerdict; BURST],
    pub(super) lengths: [u16; BURST],
    /// The rules that packets of an interface pass by this and by its VRF.
    pub(super) common: Box<[u64]>,
    /// The numbers of sources, and of destinations.
    pub(super) found: Box<[[Option<NextHop>; BURST]; 2]>,
    pub(super) keys: Box<BurstKeys>,
}

/// Room for the addresses of one batch.
#[derive(Debug)]
pub(super) struct BurstKeys {
    pub(super) v4: [u32; BURST],
    pub(super) v6: [u128; BURST],
    pub(super) found: [Option<NextHop>; BURST],
}

impl BurstRows {
    /// Makes room for rules of a number of words.
    pub(super) fn new(words: usize) -> Self {
        Self {
            words,
            rows: vec![0; words * BURST].into(),
            verdicts: [RuleVerdict::new(0, None); BURST],
            lengths: [0; BURST],
            common: vec![0; words].into(),
            found: Box::new([[None; BURST]; 2]),
            keys: Box::new(BurstKeys { v4: [0; BURST], v6: [0; BURST], found: [None; BURST] }),
        }
    }

    /// Returns the decision about a packet by the first rule that it passes.
    #[inline]
    pub(super) const fn verdict(&self, place: usize) -> RuleVerdict {
        self.verdicts[place]
    }

    /// Returns the length of a packet.
    #[inline]
    pub(super) fn length(&self, place: usize) -> u64 {
        self.lengths[place].into()
    }

    /// Returns the rules that a packet passes, but for tests of the interface by which it leaves.
    #[inline]
    pub(super) fn row(&self, place: usize) -> &[u64] {
        &self.rows[place * self.words..][..self.words]
    }
}
