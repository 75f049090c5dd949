//! The writer's side: the kind of each number, its holds and groups, and the order of stores in a change.

use std::collections::HashMap;
use std::sync::Arc;

use crate::live::{Domain, Hold, RetireList, Uses, ValueStore};
use crate::memory::{self, Budget, Limits, Memory, OutOfMemory};
use crate::net::NextHop;

use super::HopsError;
use super::assign::{Reassignment, Share, VACANT, assign};
use super::blocks::{BucketBlock, FreeBlocks};
use super::group::{Group, GroupKey, Member};
use super::word::HopWord;
use super::words::HopWords;

/// The kind of a number.
#[derive(Debug)]
pub(super) enum NumberKind {
    /// No meaning: the number is free, or it was never given out but routes have it.
    Nothing,
    /// A next hop, with the slot of its value unless it is withdrawn.
    Hop(Option<u32>),
    Group(Group),
}

/// A number.
#[derive(Debug)]
pub(super) struct NumberEntry {
    pub(super) kind: NumberKind,
    pub(super) holds: u32,
    /// The groups that have this number as a member.
    pub(super) groups: Vec<NextHop>,
    /// Whether it is in the list of leaving numbers. A group that is added again has a hold, but stays in the list for a while.
    pub(super) is_leaving: bool,
    /// Whether it is free, or retired and free as soon as no reader can have found it.
    pub(super) is_gone: bool,
}

/// A retired number or block.
#[derive(Debug, Clone, Copy)]
pub(super) enum HopsGarbage {
    Id(NextHop),
    Block(BucketBlock),
}

/// Changes since the next hops were made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) moved_buckets: u64,
    pub(super) shared_groups: u64,
}

pub(super) struct HopsState<T> {
    pub(super) domain: Arc<Domain>,
    pub(super) words: Arc<HopWords>,
    /// The entry of each number, at the number less one.
    pub(super) entries: Vec<NumberEntry>,
    /// Free numbers. Has room for all numbers.
    pub(super) free: Vec<NextHop>,
    /// Numbers without a hold that are not retired, with room for all numbers, and the place of the next one to examine.
    pub(super) leaving: Vec<NextHop>,
    turn: usize,
    pub(super) values: ValueStore<T>,
    pub(super) blocks: FreeBlocks,
    pub(super) retired: RetireList<HopsGarbage>,
    /// Retired numbers and blocks that became free. Has room for all numbers and blocks.
    freed: Vec<HopsGarbage>,
    /// Groups by their members and number of buckets.
    pub(super) index: HashMap<GroupKey, NextHop>,
    /// Scratch memory, with room for the buckets and the members of the largest group.
    owners: Vec<u32>,
    shares: Vec<Share>,
    pub(super) budget: Budget,
    pub(super) totals: Totals,
}

/// Leaving numbers that each call examines, to retire those that no route has any more.
const SWEEP: usize = 16;

impl<T: Send + Sync> HopsState<T> {
    pub(super) fn new(domain: Arc<Domain>, words: Arc<HopWords>, limits: Limits) -> Self {
        Self {
            values: ValueStore::new(Arc::clone(&domain), limits),
            domain,
            words,
            entries: Vec::new(),
            free: Vec::new(),
            leaving: Vec::new(),
            turn: 0,
            blocks: FreeBlocks::default(),
            retired: RetireList::default(),
            freed: Vec::new(),
            index: HashMap::new(),
            owners: Vec::new(),
            shares: Vec::new(),
            budget: Budget::new(limits),
            totals: Totals::default(),
        }
    }

    fn entry(&mut self, id: NextHop) -> &mut NumberEntry {
        &mut self.entries[id.id() as usize - 1]
    }

    /// Returns the entry of a number that has a hold.
    pub(super) fn held(&self, id: NextHop) -> Result<&NumberEntry, HopsError> {
        let entry = self.entries.get(id.id() as usize - 1).filter(|entry| entry.holds > 0);
        entry.ok_or(HopsError::Unknown(id))
    }

    /// Returns the slot of a next hop that has a hold.
    pub(super) fn hop(&self, id: NextHop) -> Result<Option<u32>, HopsError> {
        match self.held(id)?.kind {
            NumberKind::Hop(slot) => Ok(slot),
            _ => Err(HopsError::IsGroup(id)),
        }
    }

    /// Returns a group that has a hold.
    pub(super) fn group(&self, id: NextHop) -> Result<&Group, HopsError> {
        match &self.held(id)?.kind {
            NumberKind::Group(group) => Ok(group),
            _ => Err(HopsError::IsHop(id)),
        }
    }

    /// Adds a next hop.
    pub(super) fn add(&mut self, value: T, held: &mut dyn Hold) -> Result<NextHop, HopsError> {
        let id = match self.values.reserve(1).map_err(HopsError::from).and_then(|()| self.take(held)) {
            Ok(id) => id,
            Err(error) => {
                // Kept for `unlock`: its destructor may call this table, whose locks are held here.
                self.values.discard(value);
                return Err(error);
            }
        };
        let slot = self.values.put(value);
        self.give_out(id, NumberKind::Hop(Some(slot)));
        // The word comes last, because a reader that finds it must find the value.
        self.words.store(id, HopWord::hop(slot));
        Ok(id)
    }

    /// Replaces the value of a next hop, or brings back a withdrawn one.
    pub(super) fn change(&mut self, id: NextHop, value: T) -> Result<(), HopsError> {
        let old = self.hop(id).and_then(|old| Ok(self.values.reserve(1).map(|()| old)?));
        let old = match old {
            Ok(old) => old,
            Err(error) => {
                self.values.discard(value);
                return Err(error);
            }
        };
        let slot = self.values.put(value);
        self.entry(id).kind = NumberKind::Hop(Some(slot));
        // This store changes the next hop for every route and group at once, so the value is in its slot before it.
        self.words.store(id, HopWord::hop(slot));
        match old {
            // Retired only after the store, because until then readers could still find the old slot.
            Some(old) => self.values.retire(old),
            None => self.each_group(id, Reassignment::Surplus),
        }
        Ok(())
    }

    /// Makes a next hop lead nowhere. Returns whether it led anywhere before.
    pub(super) fn withdraw(&mut self, id: NextHop) -> Result<bool, HopsError> {
        let Some(slot) = self.hop(id)? else { return Ok(false) };
        // The word comes first: from here on, flows of its buckets go to other members while the buckets are reassigned.
        self.words.store(id, HopWord::WITHDRAWN);
        self.entry(id).kind = NumberKind::Hop(None);
        self.each_group(id, Reassignment::Gone);
        self.values.retire(slot);
        Ok(true)
    }

    /// Ends a hold.
    pub(super) fn release(&mut self, id: NextHop) -> Result<(), HopsError> {
        self.held(id)?;
        let entry = self.entry(id);
        entry.holds -= 1;
        if entry.holds == 0 && !core::mem::replace(&mut entry.is_leaving, true) {
            self.leaving.push(id);
        }
        Ok(())
    }

    /// Adds a group, or returns the one with these members.
    pub(super) fn add_group(
        &mut self,
        members: &[Member],
        buckets: Option<usize>,
        held: &mut dyn Hold,
    ) -> Result<NextHop, HopsError> {
        let key = GroupKey::new(members, buckets, &mut self.budget)?;
        let added = self.find_or_make(&key, held);
        match added {
            // `expect_group` has made room for this.
            Ok((id, true)) => drop(self.index.insert(key, id)),
            _ => self.budget.free(key.members),
        }
        added.map(|(id, _)| id)
    }

    /// Returns the group of a key, and whether it is new.
    fn find_or_make(&mut self, key: &GroupKey, held: &mut dyn Hold) -> Result<(NextHop, bool), HopsError> {
        self.members_are_held(&key.members)?;
        if let Some(&id) = self.index.get(key) {
            self.entry(id).holds += 1;
            self.totals.shared_groups += 1;
            return Ok((id, false));
        }
        self.expect_group(key)?;
        // A step that fails below returns what was taken before it. Readers see nothing of the group until its word is stored.
        let block = self.blocks.take(key.log2, &self.words.buckets, &mut self.budget)?;
        let made = self.take(held).and_then(|id| match key.copy(&mut self.budget) {
            Ok(copy) => Ok((id, copy.members)),
            Err(error) => {
                self.free.push(id);
                Err(error.into())
            }
        });
        let (id, members) = match made {
            Ok(made) => made,
            Err(error) => {
                self.blocks.give(block);
                return Err(error);
            }
        };
        let group = Group { members, block };
        self.owners.clear();
        self.owners.resize(block.len() as usize, VACANT);
        let word = self.write_new(&group);
        self.link(id, &group.members);
        self.give_out(id, NumberKind::Group(group));
        self.words.store(id, word);
        Ok((id, true))
    }

    /// Replaces the members of a group. It keeps its number of buckets if they are enough.
    pub(super) fn change_group(&mut self, id: NextHop, members: &[Member]) -> Result<(), HopsError> {
        let block = self.group(id)?.block;
        let holds = self.held(id)?.holds;
        if holds > 1 {
            return Err(HopsError::Shared { group: id, holds });
        }
        let buckets = Some(block.len() as usize).filter(|&buckets| buckets >= members.len());
        let key = GroupKey::new(members, buckets, &mut self.budget)?;
        let changed = self.replace_members(id, &key);
        // If another group has these members already, the list keeps that one for later calls.
        if changed == Ok(true) && !self.index.contains_key(&key) {
            self.index.insert(key, id);
        } else {
            self.budget.free(key.members);
        }
        changed.map(drop)
    }

    /// Gives a group the members of a key. Returns whether they differ from the old ones.
    fn replace_members(&mut self, id: NextHop, key: &GroupKey) -> Result<bool, HopsError> {
        self.members_are_held(&key.members)?;
        let old = self.group(id)?;
        if old.members == key.members && old.block.log2 == key.log2 {
            return Ok(false);
        }
        self.expect_group(key)?;
        self.expect_retired()?;
        let members = key.copy(&mut self.budget)?.members;
        let block = match self.blocks.take(key.log2, &self.words.buckets, &mut self.budget) {
            Ok(block) => block,
            Err(error) => {
                self.budget.free(members);
                return Err(error.into());
            }
        };
        let group = Group { members, block };
        let NumberKind::Group(old) = core::mem::replace(&mut self.entry(id).kind, NumberKind::Nothing) else {
            return Err(HopsError::IsHop(id));
        };
        self.keep_owners(&group, old.block);
        let word = self.write_new(&group);
        let is_moved = |at: &u32| self.words.bucket(old.block, *at) != self.words.bucket(block, *at);
        // A block of another size has no bucket in common with the old one.
        let is_other = block.log2 != old.block.log2;
        let moved = if is_other { block.len() as usize } else { (0..block.len()).filter(is_moved).count() };
        self.totals.moved_buckets += moved as u64;
        // Before `unlink`, which removes one entry from each list: a member of both keeps one.
        self.link(id, &group.members);
        self.words.store(id, word);
        self.entry(id).kind = NumberKind::Group(group);
        self.unlink(id, &old.members);
        // Retired rather than freed, because readers may still be in the old block.
        self.retired.retire(&self.domain, HopsGarbage::Block(old.block), 4 << old.block.log2);
        self.forget(id, old);
        Ok(true)
    }

    /// Notes the owners that the buckets of a changed group keep: owners that are still members, if the size is the same.
    fn keep_owners(&mut self, group: &Group, before: BucketBlock) {
        self.owners.clear();
        for at in 0..group.block.len() {
            let kept = self.words.bucket(before, at).filter(|_| group.block.log2 == before.log2);
            let owner = kept.and_then(|member| group.place(member)).map_or(VACANT, |place| place as u32);
            self.owners.push(owner);
        }
    }

    /// Removes a group from the list of groups, and frees the list of its members.
    fn forget(&mut self, id: NextHop, group: Group) {
        let key = GroupKey { members: group.members, log2: group.block.log2 };
        if self.index.get(&key) == Some(&id)
            && let Some((key, _)) = self.index.remove_entry(&key)
        {
            self.budget.free(key.members);
        }
        self.budget.free(key.members);
    }

    fn members_are_held(&self, members: &[Member]) -> Result<(), HopsError> {
        members.iter().try_for_each(|&(member, _)| self.hop(member).map(drop))
    }

    /// Makes room for all that a group needs besides its number and its buckets.
    fn expect_group(&mut self, key: &GroupKey) -> Result<(), OutOfMemory> {
        let Self { budget, owners, shares, entries, index, .. } = self;
        owners.clear();
        shares.clear();
        budget.reserve(owners, 1 << key.log2)?;
        budget.reserve(shares, key.members.len())?;
        for &(member, _) in &key.members {
            // One more than now, because a changed group is added to the list before its old entry is removed.
            budget.reserve_an_eighth(&mut entries[member.id() as usize - 1].groups, 1)?;
        }
        let wanted_bytes = size_of::<(GroupKey, NextHop)>();
        let refused = |_| OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None };
        index.try_reserve(1).map_err(refused)
    }

    /// Makes room to retire every number, the buckets of every group, and those of one group that changes.
    fn expect_retired(&mut self) -> Result<(), OutOfMemory> {
        let more = 2 * self.entries.len() + 2;
        let all = self.retired.items().count() + more;
        let Self { retired, freed, budget, .. } = self;
        budget.reserve(freed, all.saturating_sub(freed.len()))?;
        retired.reserve(more, budget)
    }

    /// Takes a number that no route has: a free one, or else the next new one. Makes room for everything that its end needs.
    fn take(&mut self, held: &mut dyn Hold) -> Result<NextHop, HopsError> {
        loop {
            while self.free.is_empty() {
                self.make(held)?;
            }
            self.expect_retired()?;
            let Some(id) = self.free.pop() else { continue };
            if held.uses().as_ref().is_none_or(|uses| uses.of(id) == 0) {
                return Ok(id);
            }
            // A route was given a free number: the number is kept back until the route is gone.
            let entry = self.entry(id);
            (entry.is_leaving, entry.is_gone) = (true, false);
            self.leaving.push(id);
        }
    }

    /// Makes the next new number, which is free unless routes have it.
    fn make(&mut self, held: &mut dyn Hold) -> Result<(), HopsError> {
        let full = OutOfMemory { wanted_bytes: usize::MAX, used_bytes: 0, limit_bytes: None };
        let number = u32::try_from(self.entries.len() + 1).map_err(|_| full)?;
        let id = NextHop::new(number).ok_or(full)?;
        let all = number as usize;
        let Self { budget, entries, free, leaving, words, .. } = self;
        budget.reserve(entries, 1)?;
        budget.reserve(free, all - free.len())?;
        budget.reserve(leaving, all - leaving.len())?;
        words.words.reserve(number, budget, Default::default)?;
        let uses = held.uses().as_mut().ok_or(HopsError::Numbered)?;
        // After everything that can fail, because it cannot be taken back.
        uses.give()?;
        let is_used = uses.of(id) > 0;
        let (kind, groups) = (NumberKind::Nothing, Vec::new());
        entries.push(NumberEntry { kind, holds: 0, groups, is_leaving: is_used, is_gone: !is_used });
        if is_used {
            leaving.push(id);
        } else {
            free.push(id);
        }
        Ok(())
    }

    fn give_out(&mut self, id: NextHop, kind: NumberKind) {
        let entry = self.entry(id);
        (entry.kind, entry.holds, entry.is_gone) = (kind, 1, false);
    }

    /// Assigns the buckets of a new block, given the owners that they keep, and returns the word for it. A withdrawn member
    /// gets none, unless all members are withdrawn.
    fn write_new(&mut self, group: &Group) -> HopWord {
        let is_live = self.weigh(group);
        if !is_live {
            self.shares
                .iter_mut()
                .zip(&group.members)
                .for_each(|(share, &(_, weight))| share.weight = weight);
        }
        assign(&mut self.owners, &mut self.shares, Reassignment::Surplus);
        for (at, &owner) in self.owners.iter().enumerate() {
            self.words.store_bucket(group.block, at as u32, group.members[owner as usize].0);
        }
        if is_live { HopWord::group(group.block) } else { HopWord::WITHDRAWN }
    }

    /// Notes the weights of members, 0 for withdrawn ones. Returns whether any member is not withdrawn.
    fn weigh(&mut self, group: &Group) -> bool {
        let Self { shares, entries, .. } = self;
        shares.clear();
        for &(member, weight) in &group.members {
            let is_live = matches!(entries[member.id() as usize - 1].kind, NumberKind::Hop(Some(_)));
            shares.push(Share::of(if is_live { weight } else { 0 }));
        }
        shares.iter().any(|share| share.weight > 0)
    }

    /// Reassigns the buckets of all groups of a member that came or went.
    fn each_group(&mut self, member: NextHop, giving: Reassignment) {
        // Taken out, because `reassign` needs all of the state.
        let groups = core::mem::take(&mut self.entry(member).groups);
        for &id in &groups {
            self.reassign(id, giving);
        }
        self.entry(member).groups = groups;
    }

    fn reassign(&mut self, id: NextHop, giving: Reassignment) {
        let NumberKind::Group(group) = core::mem::replace(&mut self.entry(id).kind, NumberKind::Nothing)
        else {
            return;
        };
        if self.weigh(&group) {
            self.owners.clear();
            for at in 0..group.block.len() {
                let member = self.words.bucket(group.block, at);
                let place = member.and_then(|member| group.place(member));
                self.owners.push(place.map_or(VACANT, |place| place as u32));
            }
            assign(&mut self.owners, &mut self.shares, giving);
            for (at, &owner) in self.owners.iter().enumerate() {
                let member = group.members[owner as usize].0;
                // A store of the same member would only take the line from the readers' caches.
                if self.words.bucket(group.block, at as u32) != Some(member) {
                    self.words.store_bucket(group.block, at as u32, member);
                    self.totals.moved_buckets += 1;
                }
            }
            // Last, because a group that was withdrawn must not be found before its buckets have live members.
            self.words.store(id, HopWord::group(group.block));
        } else {
            self.words.store(id, HopWord::WITHDRAWN);
        }
        self.entry(id).kind = NumberKind::Group(group);
    }

    /// Adds a group to the lists of its members, which must have room.
    fn link(&mut self, id: NextHop, members: &[Member]) {
        for &(member, _) in members {
            self.entry(member).groups.push(id);
        }
    }

    /// Removes a group from the lists of its members, once from each.
    fn unlink(&mut self, id: NextHop, members: &[Member]) {
        for &(member, _) in members {
            let groups = &mut self.entry(member).groups;
            if let Some(at) = groups.iter().position(|&group| group == id) {
                groups.swap_remove(at);
            }
        }
    }

    /// Ends a call: retires leaving numbers that no route and no group has, looking at a few or at all of them. Then ends the
    /// epoch and frees the numbers and blocks that no reader can have.
    pub(super) fn finish(&mut self, held: &mut dyn Hold, all: bool) {
        // While changes wait, readers may still find numbers that the routes do not have any more.
        if !held.waits()
            && let Some(uses) = held.uses()
        {
            let count = self.leaving.len();
            self.sweep(uses, if all { count } else { count.min(SWEEP) });
        }
        // The epoch ends first, because items of the present one are never freed.
        self.retired.advance(&self.domain);
        self.collect();
    }

    fn sweep(&mut self, uses: &Uses, count: usize) {
        for _ in 0..count {
            if self.leaving.is_empty() {
                return;
            }
            // The list may have shrunk since the place was noted.
            self.turn %= self.leaving.len();
            let id = self.leaving[self.turn];
            let entry = &mut self.entries[id.id() as usize - 1];
            let is_held = entry.holds > 0;
            if !is_held && (uses.of(id) > 0 || !entry.groups.is_empty()) {
                self.turn += 1;
                continue;
            }
            entry.is_leaving = false;
            self.leaving.swap_remove(self.turn);
            if !is_held {
                self.retire(id);
            }
        }
    }

    /// Retires a number that no route and no group has. No call returns it until it is free.
    fn retire(&mut self, id: NextHop) {
        let entry = self.entry(id);
        entry.is_gone = true;
        if let NumberKind::Group(group) = &mut entry.kind {
            let key = GroupKey { members: core::mem::take(&mut group.members), log2: group.block.log2 };
            if self.index.get(&key) == Some(&id)
                && let Some((key, _)) = self.index.remove_entry(&key)
            {
                self.budget.free(key.members);
            }
            // The members are put back, because `free` unlinks the group by them.
            if let NumberKind::Group(group) = &mut self.entry(id).kind {
                group.members = key.members;
            }
        }
        self.retired.retire(&self.domain, HopsGarbage::Id(id), size_of::<NumberEntry>());
    }

    fn collect(&mut self) {
        let Self { retired, domain, freed, .. } = self;
        retired.collect(domain, |gone| freed.push(gone));
        let mut freed = core::mem::take(&mut self.freed);
        let has_freed = !freed.is_empty();
        for gone in freed.drain(..) {
            match gone {
                HopsGarbage::Id(id) => self.free(id),
                HopsGarbage::Block(block) => self.blocks.give(block),
            }
        }
        self.freed = freed;
        if has_freed {
            // The blocks of the freed groups were retired in the loop above, so their epoch has to end too.
            self.retired.advance(&self.domain);
        }
        self.values.collect();
    }

    /// Frees a number that no reader can have found.
    fn free(&mut self, id: NextHop) {
        // The word first, so that a caller who kept the number resolves it to nothing.
        self.words.store(id, HopWord::UNKNOWN);
        match core::mem::replace(&mut self.entry(id).kind, NumberKind::Nothing) {
            NumberKind::Hop(Some(slot)) => self.values.retire(slot),
            NumberKind::Group(group) => {
                self.unlink(id, &group.members);
                self.retired.retire(&self.domain, HopsGarbage::Block(group.block), 4 << group.block.log2);
                self.budget.free(group.members);
            }
            NumberKind::Hop(None) | NumberKind::Nothing => {}
        }
        self.free.push(id);
    }

    /// Returns the memory of all but the values' own allocations.
    pub(super) fn memory(&self) -> Memory {
        let lists = memory::allocated(&self.entries)
            + memory::allocated(&self.free)
            + memory::allocated(&self.leaving)
            + memory::allocated(&self.freed)
            + memory::allocated(&self.owners)
            + memory::allocated(&self.shares)
            + self.entries.iter().map(entry_bytes).sum::<usize>()
            + self.index.keys().map(|key| memory::allocated(&key.members)).sum::<usize>()
            + self.index.capacity() * (size_of::<(GroupKey, NextHop)>() + 1);
        let lists = Memory { allocated_bytes: lists, ..Memory::default() };
        let shared = self.words.words.memory() + self.words.buckets.memory();
        lists + shared + self.values.memory() + self.blocks.memory() + self.retired.memory()
    }
}

fn entry_bytes(entry: &NumberEntry) -> usize {
    let members = match &entry.kind {
        NumberKind::Group(group) => memory::allocated(&group.members),
        _ => 0,
    };
    members + memory::allocated(&entry.groups)
}
