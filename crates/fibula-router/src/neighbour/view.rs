//! The workers' view of the neighbours: an array that is read without waiting and written by one thread at a time.
//!
//! A slot is guarded by a sequence number, which is odd while the slot is written. A reader that meets a writer tries again a few
//! times, and then treats the neighbour as being resolved, so it never waits. All words are atomic. A torn read is possible, but
//! the sequence number reveals it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use super::{Answer, Key};
use crate::packet::ethernet::Mac;

/// Number of slots in which a key may be.
const REACH: usize = 16;
/// First word of the key in a slot that has never held one.
const EMPTY: u64 = 0;
/// First word of the key in a slot whose key was removed.
const REMOVED: u64 = 1;

#[derive(Debug, Default)]
struct Slot {
    sequence: AtomicU32,
    used: AtomicBool,
    /// `EMPTY`, `REMOVED`, or interface and family of the key.
    kind: AtomicU64,
    high: AtomicU64,
    low: AtomicU64,
    /// State in the upper 16 bits, MAC address below.
    answer: AtomicU64,
}

/// The array.
#[derive(Debug)]
pub(super) struct NeighbourView {
    slots: Box<[Slot]>,
    changes: AtomicU64,
}

#[inline]
fn kind_of(key: &Key) -> u64 {
    u64::from(key.interface) << 8 | u64::from(key.v6) << 1 | 4
}

#[inline]
fn hash(key: &Key) -> usize {
    let word =
        (key.address as u64) ^ ((key.address >> 64) as u64).rotate_left(29) ^ kind_of(key).rotate_left(51);
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

fn encode(answer: Answer) -> u64 {
    match answer {
        Answer::Unknown => 0,
        Answer::Waiting => 1 << 48,
        Answer::Known(mac) => 2 << 48 | mac.word(),
        Answer::Failed => 3 << 48,
    }
}

#[inline]
fn decode(word: u64) -> Answer {
    match word >> 48 {
        1 => Answer::Waiting,
        2 => Answer::Known(Mac::from_word(word & 0xffff_ffff_ffff)),
        3 => Answer::Failed,
        _ => Answer::Unknown,
    }
}

impl NeighbourView {
    /// Makes a view with room for about `capacity` neighbours.
    pub(super) fn new(capacity: usize) -> Self {
        let slots = (capacity.max(REACH) * 4).next_power_of_two();
        Self { slots: (0..slots).map(|_| Slot::default()).collect(), changes: AtomicU64::new(0) }
    }

    /// Returns a number that grows after every change of a slot. While it stays, so does each answer, and none has to be noted as used
    /// again.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn change(&self) {
        // Release: who sees the number sees the change.
        self.changes.fetch_add(1, Ordering::Release);
    }

    #[inline]
    fn reach(&self, key: &Key) -> impl Iterator<Item = usize> {
        let (first, mask) = (hash(key), self.slots.len() - 1);
        (0..REACH).map(move |step| (first + step) & mask)
    }

    /// Returns the state of a neighbour, and notes that it is used.
    #[inline]
    pub(super) fn get(&self, key: &Key) -> Answer {
        let kind = kind_of(key);
        for index in self.reach(key) {
            let slot = &self.slots[index];
            let Some((found, high, low, answer)) = read(slot) else { return Answer::Waiting };
            if found == EMPTY {
                break;
            }
            if found == kind && low == key.address as u64 && high == (key.address >> 64) as u64 {
                // Store only if it changes something, because every store takes the cache line away from other workers.
                if !slot.used.load(Ordering::Relaxed) {
                    slot.used.store(true, Ordering::Relaxed);
                }
                return decode(answer);
            }
        }
        Answer::Unknown
    }

    /// Gives a slot to a new key. Returns `None` if all its slots are taken. For the writer.
    pub(super) fn insert(&self, key: &Key, answer: Answer) -> Option<usize> {
        let index =
            self.reach(key).find(|&index| self.slots[index].kind.load(Ordering::Relaxed) <= REMOVED)?;
        let slot = &self.slots[index];
        write(slot, || {
            slot.kind.store(kind_of(key), Ordering::Relaxed);
            slot.high.store((key.address >> 64) as u64, Ordering::Relaxed);
            slot.low.store(key.address as u64, Ordering::Relaxed);
            slot.answer.store(encode(answer), Ordering::Relaxed);
        });
        // The key before it may have been used.
        slot.used.store(false, Ordering::Relaxed);
        self.change();
        Some(index)
    }

    /// Changes the state of the neighbour in a slot. For the writer.
    pub(super) fn set(&self, index: usize, answer: Answer) {
        let slot = &self.slots[index];
        write(slot, || slot.answer.store(encode(answer), Ordering::Relaxed));
        self.change();
    }

    /// Frees a slot. For the writer.
    pub(super) fn remove(&self, index: usize) {
        let slot = &self.slots[index];
        write(slot, || {
            slot.kind.store(REMOVED, Ordering::Relaxed);
            slot.answer.store(0, Ordering::Relaxed);
        });
        self.change();
    }

    /// Returns whether the neighbour of a slot was used since the last call.
    pub(super) fn take_used(&self, index: usize) -> bool {
        let was_used = self.slots[index].used.swap(false, Ordering::Relaxed);
        if was_used {
            self.change();
        }
        was_used
    }
}

#[inline]
fn read(slot: &Slot) -> Option<(u64, u64, u64, u64)> {
    for _ in 0..8 {
        let before = slot.sequence.load(Ordering::Acquire);
        let kind = slot.kind.load(Ordering::Relaxed);
        let high = slot.high.load(Ordering::Relaxed);
        let low = slot.low.load(Ordering::Relaxed);
        let answer = slot.answer.load(Ordering::Relaxed);
        // Orders the loads above before the next one.
        fence(Ordering::Acquire);
        if before & 1 == 0 && slot.sequence.load(Ordering::Relaxed) == before {
            return Some((kind, high, low, answer));
        }
    }
    None
}

fn write(slot: &Slot, change: impl FnOnce()) {
    let sequence = slot.sequence.load(Ordering::Relaxed);
    slot.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
    // Orders the odd number before the stores that follow.
    fence(Ordering::Release);
    change();
    slot.sequence.store(sequence.wrapping_add(2), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_whole_answers_while_a_writer_changes_them() {
        let view = NeighbourView::new(16);
        let keys: Vec<Key> = (0..8).map(|n| Key::v4(n, 0x0a00_0000 + u32::from(n))).collect();
        let slots: Vec<usize> = keys.iter().map(|key| view.insert(key, Answer::Waiting).unwrap()).collect();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for (number, key) in keys.iter().enumerate() {
                        if let Answer::Known(mac) = view.get(key) {
                            let [a, _, _, _, e, f] = mac.0;
                            assert_eq!((usize::from(a), e), (number, f), "a torn or foreign answer");
                        }
                    }
                }
            });
            for round in 0..200_000u32 {
                let number = (round % 8) as usize;
                let byte = round as u8;
                view.set(slots[number], Answer::Known(Mac([number as u8, 0, 0, 0, byte, byte])));
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn removed_keys_do_not_hide_those_after_them() {
        let view = NeighbourView::new(16);
        let keys: Vec<Key> = (0..40).map(|n| Key::v6(1, n)).collect();
        let slots: Vec<_> = keys.iter().map(|key| view.insert(key, Answer::Failed)).collect();
        for (key, slot) in keys.iter().zip(&slots).step_by(2) {
            if let Some(slot) = *slot {
                view.remove(slot);
                assert_eq!(view.get(key), Answer::Unknown);
            }
        }
        for (key, slot) in keys.iter().zip(&slots).skip(1).step_by(2) {
            assert_eq!(view.get(key), if slot.is_some() { Answer::Failed } else { Answer::Unknown });
        }
    }
}
