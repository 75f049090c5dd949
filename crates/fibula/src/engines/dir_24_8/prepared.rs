//! The prepared state of a change: new segments next to those that lookups reach, and the entries that will lead to them.

use core::ops::Range;

use crate::fib::in_place::{Publication, StoredWords};
use crate::memory::{Budget, Cell, OutOfMemory, Shared};
use crate::net::NextHop;

use super::codes::Codes;
use super::fill::Sink;
use super::layout::{HALVES, SEGMENT, SPAN_MAX, word_of};
use super::written::{Run, Written};

/// Numbers of the arrays other than the segments.
pub(super) const FIRST: u8 = 0;
pub(super) const NEXT_HOPS: u8 = 2;

/// The tables, and the prepared stores.
pub(super) struct Prepared {
    pub(super) written: Written,
    pub(super) codes: Codes,
    pub(super) budget: Budget,
    /// Runs of entries to store. No entry is in two runs.
    pub(super) runs: Vec<Run>,
    /// Why the tables have to be rebuilt, if they have to be.
    pub(super) refused: Option<&'static str>,
}

impl Prepared {
    /// Prepares moves of segments, examining `count` of them from `cursor` on. Returns the next segment to examine.
    pub(super) fn tidy(&mut self, cursor: u32, count: usize) -> Result<u32, OutOfMemory> {
        let Self { written, budget, runs, .. } = self;
        let mut at = if cursor < written.segments.units.end() { cursor } else { 0 };
        // Segments before this place stay, because all segments would fit there.
        at = at.max(written.segments.used());
        // At most to the end, so that no segment is moved twice.
        for _ in 0..count.min((written.segments.units.end() - at) as usize) {
            budget.reserve(runs, 1)?;
            if let Some(run) = written.move_back(at, budget)? {
                runs.push(run);
            }
            at += 1;
        }
        Ok(at)
    }

    /// Forgets the prepared change.
    pub(super) fn abandon(&mut self) {
        self.written.segments.back_to(Default::default());
        self.codes.abandon();
        self.runs.clear();
        self.refused = None;
    }

    /// Notifies the publication of new segments and codes.
    pub(super) fn emit_contents(&mut self, publication: &mut dyn Publication) {
        self.codes.publish(NEXT_HOPS, publication);
        if publication.listens() {
            self.written.segments.emit(publication);
        }
    }

    /// Publishes the entries, word by word. If the publication listens, notifies it of `emitted` words at a time.
    pub(super) fn publish(&self, publication: &mut dyn Publication, emitted: usize) {
        let (first, listens) = (&self.written.first[..], publication.listens());
        for run in &self.runs {
            let Range { mut start, end } = run.words();
            while start < end {
                let words = start..end.min(start + emitted);
                run.store(first, words.clone());
                start = words.end;
                if listens {
                    publication.stored(StoredWords::part(FIRST, first, words));
                }
            }
        }
    }

    /// Stores the entries in a copy of the first table, which takes the place of the published one.
    pub(super) fn publish_in(&mut self, copy: Shared<u32>) {
        for run in &self.runs {
            run.store(&copy, run.words());
        }
        self.written.first = copy;
    }

    /// Notifies the publication of all arrays.
    pub(super) fn emit_all(&self, publication: &mut dyn Publication) {
        self.codes.emit(NEXT_HOPS, publication);
        self.written.segments.emit_all(publication);
        self.emit_first(publication);
    }

    /// Notifies the publication of the first table.
    pub(super) fn emit_first(&self, publication: &mut dyn Publication) {
        let first = &self.written.first;
        publication.stored(StoredWords::whole(FIRST, &first[..], first.len()));
    }

    /// Retires the segments that were replaced.
    pub(super) fn retire(&mut self, publication: &mut dyn Publication) {
        self.runs.clear();
        self.written.segments.retire(publication);
    }

    /// Prepares the store of one entry, which leads to a segment or has one code.
    fn store(&mut self, at: usize, entry: u16) -> Result<(), OutOfMemory> {
        self.written.give_up(self.written.entry(at), &mut self.budget)?;
        self.budget.push(&mut self.runs, Run { first: at as u32, count: 1, entry })
    }
}

impl Sink for Prepared {
    fn code(&mut self, next_hop: Option<NextHop>) -> Result<u16, OutOfMemory> {
        let code = self.codes.code(next_hop, &mut self.budget)?;
        Ok(code.unwrap_or_else(|reason| {
            // The sweep goes on with any code, because it cannot stop here. `whole` and `divided` store nothing from now on.
            self.refused = Some(reason);
            0
        }))
    }

    fn whole(&mut self, first: usize, count: usize, code: u16) -> Result<(), OutOfMemory> {
        if self.refused.is_some() {
            return Ok(());
        }
        let Self { written, budget, runs, .. } = self;
        let run = Run { first: first as u32, count: count as u32, entry: code };
        let all = word_of(code, code);
        // From the first entry that changes to the last one. Entries in between that have the code already are stored again.
        let mut changed: Option<Range<usize>> = None;
        for word in run.words() {
            // Whole words first: most of a large prefix has its code already.
            if written.first[word].read() == all {
                continue;
            }
            for at in (word * HALVES).max(first)..((word + 1) * HALVES).min(first + count) {
                let old = written.entry(at);
                if old != code {
                    written.give_up(old, budget)?;
                    changed = Some(changed.map_or(at, |changed| changed.start)..at + 1);
                }
            }
        }
        let Some(changed) = changed else { return Ok(()) };
        budget.push(runs, Run { first: changed.start as u32, count: changed.len() as u32, entry: code })
    }

    fn divided(&mut self, at: usize, codes: &[u16]) -> Result<(), OutOfMemory> {
        if self.refused.is_some() {
            return Ok(());
        }
        // An entry whose addresses have one code needs no segment, even if it has one now.
        if codes.iter().all(|&code| code == codes[0]) {
            return self.whole(at, 1, codes[0]);
        }
        let mut old = [0; SPAN_MAX];
        let old = &mut old[..codes.len()];
        self.written.read(at, old);
        if old == codes {
            return Ok(());
        }
        match self.written.make(at, codes, &mut self.budget)? {
            Some(number) => self.store(at, SEGMENT | number as u16),
            None => {
                self.refused = Some("more segments than entries can number");
                Ok(())
            }
        }
    }
}
