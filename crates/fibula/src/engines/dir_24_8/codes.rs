//! The codes of next hops in a table with a writer: ids, or numbers of a dictionary, which never takes a number back.

use core::sync::atomic::Ordering;

use crate::check::CheckError;
use crate::fib::in_place::{Publication, StoredWords};
use crate::fib::parts::next_hop_dictionary::NextHopDictionary;
use crate::memory::{Budget, Cell, Memory, OutOfMemory, Shared};
use crate::net::NextHop;

use super::layout::NEXT_HOPS_MAX;

/// The number of codes of 15 bits, "no route" included.
const CODES: usize = NEXT_HOPS_MAX as usize + 1;

/// How next hops get codes.
pub(super) struct Codes {
    /// The largest id that is a code.
    id_max: u32,
    /// `None` if codes are ids.
    dictionary: Option<Dictionary>,
}

/// A dictionary, and the array in which lookups find next hops.
struct Dictionary {
    codes: NextHopDictionary,
    next_hops: Shared<u32>,
    /// The number of codes that are published.
    published: usize,
}

impl Codes {
    /// Takes over the codes of a build.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn new(
        id_max: u32,
        built: Option<NextHopDictionary>,
        budget: &mut Budget,
    ) -> Result<Self, OutOfMemory> {
        let Some(codes) = built else { return Ok(Self { id_max, dictionary: None }) };
        budget.charge(CODES * size_of::<u32>())?;
        // Room for every code that entries can have: readers hold the array, so it must not move when next hops are added.
        let next_hops: Shared<u32> = Shared::zeros(CODES, false)?;
        for (to, id) in next_hops.iter().zip(codes.ids()) {
            to.store(id, Ordering::Relaxed);
        }
        let published = codes.len();
        Ok(Self { id_max, dictionary: Some(Dictionary { codes, next_hops, published }) })
    }

    /// Returns the code of a next hop, and makes one if it has none. Returns the reason if that is not possible.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn code(
        &mut self,
        next_hop: Option<NextHop>,
        budget: &mut Budget,
    ) -> Result<Result<u16, &'static str>, OutOfMemory> {
        let word = NextHop::word(next_hop);
        let Some(Dictionary { codes, next_hops, .. }) = &mut self.dictionary else {
            let is_code = word <= self.id_max;
            return Ok(if is_code {
                Ok(word as u16)
            } else {
                Err("a next hop that entries have no room for")
            });
        };
        let known = codes.len();
        let code = codes.code(next_hop, budget)?;
        if codes.len() == known {
            return Ok(Ok(code as u16));
        }
        let Some(to) = next_hops.get(code as usize) else {
            // Entries have no room for the code, so the dictionary must not have it either.
            codes.truncate(known);
            return Ok(Err("more next hops than entries can name"));
        };
        // Relaxed: no entry has the code yet, and the store of the entry that will have it is a release.
        to.store(word, Ordering::Relaxed);
        Ok(Ok(code as u16))
    }

    /// Takes back the codes that were made since the last publication.
    pub(super) fn abandon(&mut self) {
        if let Some(Dictionary { codes, published, .. }) = &mut self.dictionary {
            // Published codes stay for good, because readers may hold entries that have them.
            codes.truncate(*published);
        }
    }

    /// Notes a publication, and notifies it of the new codes.
    pub(super) fn publish(&mut self, array: u8, publication: &mut dyn Publication) {
        let Some(Dictionary { codes, next_hops, published }) = &mut self.dictionary else { return };
        if codes.len() > *published && publication.listens() {
            publication.stored(StoredWords::part(array, &next_hops[..], *published..codes.len()));
        }
        *published = codes.len();
    }

    /// Notifies the publication of all codes.
    pub(super) fn emit(&self, array: u8, publication: &mut dyn Publication) {
        if let Some(Dictionary { next_hops, published, .. }) = &self.dictionary {
            publication.stored(StoredWords::whole(array, &next_hops[..], *published));
        }
    }

    /// Returns a handle to the next hops; `None` if codes are ids.
    pub(super) fn next_hops(&mut self) -> Option<Shared<u32>> {
        self.dictionary.as_mut().map(|dictionary| dictionary.next_hops.another())
    }

    /// Returns whether the codes are numbers of a dictionary.
    pub(super) fn are_numbered(&self) -> bool {
        self.dictionary.is_some()
    }

    /// Returns the number of codes.
    pub(super) fn len(&self) -> usize {
        self.dictionary.as_ref().map_or(self.id_max as usize + 1, |dictionary| dictionary.codes.len())
    }

    /// Returns the memory of the lists, which lookups do not read.
    pub(super) fn memory(&self) -> Memory {
        self.dictionary.as_ref().map(|dictionary| dictionary.codes.memory()).unwrap_or_default()
    }

    /// Verifies that each code leads to the next hop that has it.
    ///
    /// # Errors
    /// At the first one that does not.
    pub(super) fn check(&self) -> Result<(), CheckError> {
        let Some(Dictionary { codes, next_hops, published }) = &self.dictionary else { return Ok(()) };
        CheckError::unless(
            codes.len() == *published,
            "(5) codes that are given out are published",
            *published,
        )?;
        for (code, (id, word)) in codes.ids().zip(&next_hops[..]).enumerate() {
            let is_known = codes.known(NextHop::new(id)) == Some(code as u32);
            let holds = id == word.read() && is_known && (code == 0) == (id == 0);
            CheckError::unless(holds, "(5) a code leads to the next hop that has it", code)?;
        }
        Ok(())
    }
}
