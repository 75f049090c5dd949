//! Routes that compete, each kept once.

use fibula::memory::OutOfMemory;
use fibula::net::NextHop;

use super::{Rank, Rule};
use crate::event::Peer;
use crate::ledger::{Ledger, Set};

/// A route as it competes for its prefix. Routes of several prefixes that agree in all fields are one candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Candidate {
    /// The number of the next hop's label.
    pub(crate) label: NextHop,
    pub(crate) path_len: Option<u32>,
    /// The number of the peer: see [`Candidates::source`].
    pub(crate) source: u32,
    /// The number of the feed.
    pub(crate) feed: u32,
    pub(crate) path_id: Option<u32>,
}

/// Candidates and their peers, numbered from 0.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// `None` for tables that name no peers.
    sources: Set<Option<Peer>>,
    candidates: Set<Candidate>,
    ledger: Ledger,
}

impl Candidates {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        Self { sources: Set::new(ledger), candidates: Set::new(ledger), ledger: ledger.clone() }
    }

    /// Returns the number of the peer.
    pub(crate) fn source(&mut self, peer: Option<Peer>) -> Result<u32, OutOfMemory> {
        // A feed of 2^32 peers does not end in a lifetime.
        Ok(self.sources.insert(peer)? as u32)
    }

    /// Returns the number of the candidate.
    pub(crate) fn insert(&mut self, candidate: Candidate) -> Result<u32, OutOfMemory> {
        let index = self.candidates.insert(candidate)?;
        // Tables hold candidates as next hops, whose ids count from 1, so the last number of 32 bits has no id.
        match u32::try_from(index + 1) {
            Ok(_) => Ok(index as u32),
            Err(_) => Err(OutOfMemory {
                wanted_bytes: usize::MAX,
                used_bytes: self.ledger.used_bytes(),
                limit_bytes: self.ledger.limit_bytes(),
            }),
        }
    }

    /// Returns the candidate with this number.
    pub(crate) fn get(&self, number: u32) -> &Candidate {
        self.candidates.get(number as usize)
    }

    /// Returns whether `old` stays in its place where `new` comes, and the rule that decides.
    pub(crate) fn stays(&self, old: u32, new: u32) -> (bool, Rule) {
        self.rank(old).stays(&self.rank(new))
    }

    /// Returns whether a peer announces the candidate.
    pub(crate) fn has_peer(&self, number: u32) -> bool {
        self.sources.get(self.get(number).source as usize).is_some()
    }

    fn rank(&self, number: u32) -> Rank {
        let Candidate { path_len, source, feed, path_id, .. } = *self.get(number);
        Rank { path_len, peer: *self.sources.get(source as usize), feed, path_id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_candidates_are_one_and_the_better_one_stays() {
        let mut candidates = Candidates::new(&Ledger::new(None));
        let peer = Peer { address: "192.0.2.1".parse().unwrap(), asn: 1 };
        let unnamed = candidates.source(None).unwrap();
        let named = candidates.source(Some(peer)).unwrap();
        assert_eq!(
            (candidates.source(Some(peer)).unwrap(), candidates.source(None).unwrap()),
            (named, unnamed)
        );
        let label = NextHop::new(1).unwrap();
        let candidate = |source, path_len| Candidate { label, path_len, source, feed: 0, path_id: None };
        let short = candidates.insert(candidate(unnamed, Some(1))).unwrap();
        let long = candidates.insert(candidate(named, Some(2))).unwrap();
        let unknown = candidates.insert(candidate(named, None)).unwrap();
        assert_eq!(candidates.insert(candidate(unnamed, Some(1))).unwrap(), short);
        assert_eq!(candidates.get(long).path_len, Some(2));
        assert_eq!(candidates.stays(short, long), (true, Rule::PathLength));
        assert_eq!(candidates.stays(unknown, long), (false, Rule::PathLength));
        let other = candidates.insert(candidate(unnamed, None)).unwrap();
        assert_eq!(candidates.stays(other, unknown), (false, Rule::Peer));
        assert_eq!(candidates.stays(other, other), (true, Rule::First));
    }

    #[test]
    fn candidates_stay_within_the_limit() {
        let mut candidates = Candidates::new(&Ledger::new(Some(2_000)));
        let label = NextHop::new(1).unwrap();
        let refused = (0..1_000).find_map(|feed| {
            candidates.insert(Candidate { label, path_len: None, source: 0, feed, path_id: None }).err()
        });
        assert_eq!(refused.unwrap().limit_bytes, Some(2_000));
    }
}
