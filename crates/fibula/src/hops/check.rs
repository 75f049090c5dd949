//! Verifies next hops and groups.

use std::collections::HashSet;

use crate::check::CheckError;
use crate::live::Hold;
use crate::net::NextHop;

use super::blocks::BucketBlock;
use super::group::{Group, GroupKey};
use super::state::{HopsGarbage, HopsState, NumberEntry, NumberKind};
use super::word::{HopWord, Meaning};

/// Returns the first invariant that does not hold, with the number, the bucket or the place in question.
pub(super) fn check<T: Send + Sync>(state: &HopsState<T>, held: &mut dyn Hold) -> Result<(), CheckError> {
    for (at, entry) in state.entries.iter().enumerate() {
        if let Some(id) = NextHop::new(at as u32 + 1) {
            number(state, id, entry)?;
        }
    }
    lists(state)?;
    uses(state, held)?;
    blocks(state)
}

fn number<T: Send + Sync>(state: &HopsState<T>, id: NextHop, entry: &NumberEntry) -> Result<(), CheckError> {
    let at = id.id() as usize;
    let word = match &entry.kind {
        NumberKind::Nothing => HopWord::UNKNOWN.meaning(),
        NumberKind::Hop(None) => HopWord::WITHDRAWN.meaning(),
        NumberKind::Hop(Some(slot)) => {
            CheckError::unless(state.values.is_kept(*slot), "a next hop has a value of its own", at)?;
            Meaning::Hop(*slot)
        }
        NumberKind::Group(group) => group_of(state, id, group)?,
    };
    CheckError::unless(state.words.meaning(id) == word, "the word of a number says what it is", at)?;
    CheckError::unless(entry.holds == 0 || !entry.is_gone, "a number that is held is not retired", at)?;
    let is_kind = entry.holds == 0 || !matches!(entry.kind, NumberKind::Nothing);
    CheckError::unless(is_kind, "a number that is held is a next hop or a group", at)?;
    let mut seen = HashSet::new();
    for &group in &entry.groups {
        let is_member = state.entries.get(group.id() as usize - 1).is_some_and(|other| match &other.kind {
            NumberKind::Group(group) => group.place(id).is_some(),
            _ => false,
        });
        CheckError::unless(is_member && seen.insert(group), "a member lists its groups, each once", at)?;
    }
    Ok(())
}

/// Verifies a group, and returns the meaning that its word should have.
fn group_of<T: Send + Sync>(state: &HopsState<T>, id: NextHop, group: &Group) -> Result<Meaning, CheckError> {
    let at = id.id() as usize;
    let is_sorted = group.members.windows(2).all(|pair| pair[0].0 < pair[1].0);
    CheckError::unless(is_sorted && !group.members.is_empty(), "members are in order, each once", at)?;
    let mut has_live = false;
    for &(member, _) in &group.members {
        let entry = &state.entries[member.id() as usize - 1];
        CheckError::unless(entry.groups.contains(&id), "every member lists the group", at)?;
        CheckError::unless(matches!(entry.kind, NumberKind::Hop(_)), "members are next hops", at)?;
        has_live |= matches!(entry.kind, NumberKind::Hop(Some(_)));
    }
    for place in 0..group.block.len() {
        let member = state.words.bucket(group.block, place).filter(|&member| group.place(member).is_some());
        let bucket = (group.block.place + place) as usize;
        let member =
            member.ok_or_else(|| CheckError::new("every bucket has a member of its group", bucket))?;
        let is_live = matches!(state.entries[member.id() as usize - 1].kind, NumberKind::Hop(Some(_)));
        CheckError::unless(is_live || !has_live, "no bucket has a withdrawn member", bucket)?;
    }
    // A group without a live member is withdrawn by its word. Its buckets are not read.
    Ok(if has_live { Meaning::Group(group.block) } else { Meaning::Withdrawn })
}

fn lists<T: Send + Sync>(state: &HopsState<T>) -> Result<(), CheckError> {
    let mut free = vec![false; state.entries.len()];
    for &id in &state.free {
        let place = free.get_mut(id.id() as usize - 1);
        let is_first = place.is_some_and(|place| !core::mem::replace(place, true));
        CheckError::unless(is_first, "a free number is free once", id.id() as usize)?;
    }
    let retired: HashSet<_> = state
        .retired
        .items()
        .filter_map(|gone| match gone {
            HopsGarbage::Id(id) => Some(*id),
            HopsGarbage::Block(_) => None,
        })
        .collect();
    let leaving: HashSet<_> = state.leaving.iter().copied().collect();
    CheckError::unless(leaving.len() == state.leaving.len(), "a leaving number is listed once", 0)?;
    for (at, entry) in state.entries.iter().enumerate() {
        let Some(id) = NextHop::new(at as u32 + 1) else { continue };
        let is_gone = free[at] || retired.contains(&id);
        CheckError::unless(is_gone == entry.is_gone, "a number is gone if it is free or retired", at + 1)?;
        CheckError::unless(
            leaving.contains(&id) == entry.is_leaving,
            "a leaving number is in the list",
            at + 1,
        )?;
        let is_listed = entry.holds > 0 || is_gone || entry.is_leaving;
        CheckError::unless(is_listed, "a number without a hold is leaving, retired or free", at + 1)?;
    }
    for (GroupKey { members, log2 }, id) in &state.index {
        let entry = &state.entries[id.id() as usize - 1];
        let is_it = match &entry.kind {
            NumberKind::Group(group) => {
                // Groups of the same members with other numbers of buckets are other groups.
                group.members == *members && group.block.log2 == *log2 && !entry.is_gone
            }
            _ => false,
        };
        CheckError::unless(is_it, "the list of groups has groups by their members", id.id() as usize)?;
    }
    Ok(())
}

/// Verifies the counts of routes by next hop.
fn uses<T: Send + Sync>(state: &HopsState<T>, held: &mut dyn Hold) -> Result<(), CheckError> {
    let mut counts = vec![0; state.entries.len()];
    held.for_each_next_hop(&mut |id| {
        // Routes may lead to numbers that were never given out, which have no entry.
        if let Some(count) = counts.get_mut(id.id() as usize - 1) {
            *count += 1;
        }
    });
    for (at, count) in counts.into_iter().enumerate() {
        let Some(id) = NextHop::new(at as u32 + 1) else { continue };
        let uses = held.uses().as_ref().map_or(0, |uses| uses.of(id));
        CheckError::unless(uses == count, "the routes of a next hop are counted", at + 1)?;
    }
    Ok(())
}

/// Verifies that every bucket is free, retired or of one group.
fn blocks<T: Send + Sync>(state: &HopsState<T>) -> Result<(), CheckError> {
    let mut all: Vec<BucketBlock> = state.blocks.free().collect();
    all.extend(state.retired.items().filter_map(|gone| match gone {
        HopsGarbage::Block(block) => Some(*block),
        HopsGarbage::Id(_) => None,
    }));
    all.extend(state.entries.iter().filter_map(|entry| match &entry.kind {
        NumberKind::Group(group) => Some(group.block),
        _ => None,
    }));
    all.sort_unstable();
    // Blocks are in order, so each must begin where the one before ends.
    let mut end = 0;
    for block in all {
        CheckError::unless(
            block.place == end,
            "every bucket is free, retired or of one group",
            end as usize,
        )?;
        end += block.len();
    }
    CheckError::unless(
        end == state.blocks.end(),
        "every bucket is free, retired or of one group",
        end as usize,
    )
}
